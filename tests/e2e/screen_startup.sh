#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# First rows within half a second, on an idle and on a busy machine.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" startup || bad=1
finish
