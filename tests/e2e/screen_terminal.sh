#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever kills it, the terminal is as it was.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" terminal || bad=1
finish
