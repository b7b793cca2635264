#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Lost and throttled samples are on the screen, on their CPU.
# Changes limits of the kernel.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/screen.py" trouble || bad=1
finish
