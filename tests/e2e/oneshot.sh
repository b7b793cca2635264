#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A single tick has the stacks of its samples: it begins when the code that runs is read. On a loaded
# machine that may take longer than proftop waits: one of thirty tries, the later ones with longer ticks, is enough.
. "$(dirname "$0")/lib"
need_perf

start "$PROGRAMS/spin" 1
sleep 0.3
good=
for try in $(seq 30); do
	# Without the wait before it, also 2 s would have too many pending.
	d=0.5
	[ "$try" -le 10 ] || d=1
	[ "$try" -le 20 ] || d=2
	"$PROFTOP" -p "$last" -n 1 -d "$d" --rows=1 >"$TMP/out" || wrong "exit $?"
	# samples 498 = complete 498 + guessed 0 + ... + pending 0 + ...
	sed -n 's/^samples \([0-9]*\) = .* + pending \([0-9]*\) .*/\1 \2/p' "$TMP/out" >"$TMP/nr"
	read -r taken pending <"$TMP/nr" || wrong "no account in $(cat "$TMP/out")"
	echo "try $try: $taken samples, $pending pending"
	[ "$taken" -ge 20 ] && [ $((pending * 100)) -le "$taken" ] && good=$try && break
done
[ "$good" ] || wrong "no try has 20 samples, and at most 1 % of them pending"

# A command in a tick that is longer: one table has the whole run, which ends with it.
timeout 20 "$PROFTOP" -b -d 3600 --rows=1 -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' >"$TMP/out" 2>&1 ||
	wrong "whole run: exit $?"
grep -q '^proftop .* target gone$' "$TMP/out" && [ "$(grep -c '^samples [1-9]' "$TMP/out")" = 1 ] ||
	wrong "whole run: not one table: $(cat "$TMP/out")"
finish
