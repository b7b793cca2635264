#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The got rate follows [ and ] within two ticks.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" rates || bad=1
finish
