#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# perf record -o - | proftop --replay -: profiles while it is written, which sum up to the whole recording.
. "$(dirname "$0")/lib"
need_perf
need perf

export B PROGRAMS TMP
python3 "$HERE/follow.py" || bad=1
finish
