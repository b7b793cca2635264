#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The colours follow the terminal's background: its answer to OSC 11, in pieces as well, or COLORFGBG; an answer is
# never taken for keys; nothing waits for one.
. "$(dirname "$0")/lib"
need python3

export B
python3 "$HERE/screen_theme.py" || bad=1
finish
