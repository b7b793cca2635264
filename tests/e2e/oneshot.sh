#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A single tick has the stacks of its samples: it begins when the code that runs is read.
. "$(dirname "$0")/lib"
need_perf

start "$PROGRAMS/spin" 1
sleep 0.3
for try in 1 2 3; do
	"$PROFTOP" -p "$last" -n 1 -d 0.5 --rows=1 >"$TMP/out" || wrong "exit $?"
	# samples 498 = complete 498 + guessed 0 + ... + pending 0 + ...
	sed -n 's/^samples \([0-9]*\) = .* + pending \([0-9]*\) .*/\1 \2/p' "$TMP/out" >"$TMP/nr"
	read -r taken pending <"$TMP/nr" || wrong "no account in $(cat "$TMP/out")"
	echo "try $try: $taken samples, $pending pending"
	[ "$taken" -ge 20 ] || wrong "$taken samples only"
	[ $((pending * 100)) -le "$taken" ] || wrong "$pending of $taken samples are pending"
done
finish
