#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever kills it, the terminal is as it was. A slow one is not left behind; ^C exits with 130.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" terminal || bad=1
python3 "$HERE/slow_terminal.py" "$PROFTOP" || bad=1
finish
