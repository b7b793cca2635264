#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# D on a row: debug symbols from a debuginfod server on this machine.
. "$(dirname "$0")/lib"
need_perf
need tmux cc objcopy strip readelf
python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null || skip "not installed: libdebuginfod"

export B
python3 "$HERE/fetch.py" || bad=1
finish
