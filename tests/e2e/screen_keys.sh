#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every key of the table at three sizes.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" keys || bad=1
finish
