#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each process and a thread of proftop killed by KILL and SEGV, with N=35 also by STOP, TERM, HUP: the terminal is restored, nothing is left.
. "$(dirname "$0")/lib"
need_perf
python3 -B "$HERE/killmatrix.py" "$PROFTOP" "$TMP" "${N:-14}" || bad=1
finish
