#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that know their chain, sampled by a timer's handler instead of perf events: needs no rights.
# EMU and B: the same for another CPU, under an emulator (doc/UNWINDING.md).
. "$(dirname "$0")/lib"
need python3
MODES='chain deep pushes tail alloca signal noreturn plt jitfp jitleaf'
export MODES
# A busy machine gives the timers fewer signals: all modes again until there are enough samples to judge.
record_all() {
	for mode in $MODES; do
		${EMU:-} "$B/tests/tools/selfrecord" "$TMP/$mode" "$mode" "${TRUTH_SECONDS:-0.3}" 2>"$TMP/err" ||
			wrong "selfrecord $mode: $(cat "$TMP/err")"
		${EMU:-} "$B/tests/tools/chains" "$TMP/$mode" >>"$TMP/all" || wrong "chains of $mode"
	done
}
record_all
while [ $bad = 0 ] && [ "$(wc -l <"$TMP/all")" -lt 1500 ]; do record_all; done
python3 "$HERE/stacks.py" <"$TMP/all" || bad=1
finish
