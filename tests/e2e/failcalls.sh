#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# System calls fail, each time another one, of a start, a tick, a screen with its keys, and a stop: proftop ends in time with
# a message or goes on, the terminal is restored, no process is left. POINTS=N: N calls of each kind and each error, of all parts.
. "$(dirname "$0")/lib"
need_perf
"$PROGRAMS/failcall" openat EIO 0 0 true || skip "not permitted: seccomp(2) with a listener"
python3 -B "$HERE/failcalls.py" "$PROFTOP" "$PROGRAMS/failcall" "$TMP" "${POINTS:-0}" ${PARTS:-} || bad=1
finish
