#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Two copies of a program with a known profile: main is in (nearly) every stack, and the shares of
# the three leaves equal perf record's in the same run.
. "$(dirname "$0")/lib"
need_perf

start "$PROGRAMS/recurse" 30 >/dev/null
a=$last
start "$PROGRAMS/recurse" 30 >/dev/null
b=$last
sleep 0.3
perf=
if command -v perf >/dev/null && perf record -q -F 999 -e cpu-clock -p "$a,$b" -o "$TMP/first.data" -- sleep 0.1 2>/dev/null; then
	perf record -q -F 999 -e cpu-clock -p "$a,$b" -o "$TMP/perf.data" -- sleep 6 >/dev/null 2>&1 &
	perf=$!
fi
run -b -n 6 -d 1 -F 999 -e cpu-clock -p "$a,$b" --rows=0 --format=ndjson
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" truth "$TMP/out" >"$TMP/shares" || bad=1
cat "$TMP/shares"
if [ -z "$perf" ]; then
	echo "(perf is absent: shares not compared)"
	finish
fi
wait "$perf"
perf report -i "$TMP/perf.data" --no-children --stdio -F overhead,symbol 2>/dev/null |
	sed -n 's/^ *\([0-9.]*\)% *\[\.\] \(leaf_[abc]\).*/\2 \1/p' >"$TMP/perf"
# Both sampled nearly the same seconds: two points, or four standard errors of the difference.
while read -r leaf share nr; do
	theirs=$(awk -v l="$leaf" '$1 == l { print $2 }' "$TMP/perf")
	echo "$leaf: proftop $share %, perf ${theirs:-none} %"
	awk -v a="$share" -v b="${theirs:-0}" -v nr="$nr" 'BEGIN {
		d = a - b; most = 4 * sqrt(2 * a * (100 - a) / nr); if (most < 2) most = 2
		exit !(d <= most && d >= -most) }' ||
		wrong "$leaf: proftop $share %, perf ${theirs:-none} %"
done <"$TMP/shares"
[ "$(grep -c leaf_ "$TMP/shares")" = 3 ] || wrong "not three leaves"
finish
