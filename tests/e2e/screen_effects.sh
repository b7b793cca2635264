#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Keys that must be seen to work, resizing, job control, ways to quit.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" effects || bad=1
finish
