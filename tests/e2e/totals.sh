#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Self and total % of every function, of rows and of the call tree, against perf report --children on
# the same recording: equal but for rounding.
. "$(dirname "$0")/lib"
need_perf
need perf

perf record -q -F 499 -e cpu-clock --call-graph dwarf,16384 -o "$TMP/perf.data" -- "$PROGRAMS/recurse" 2 \
	>/dev/null 2>"$TMP/err" || skip "perf record: $(cat "$TMP/err")"
# Symbols alone: functions of one name in two objects are one row there and two here, so modules, too.
perf report -i "$TMP/perf.data" --children --no-inline --stdio -g none -t '|' \
	-F overhead_children,overhead,dso,symbol --percent-limit 0 2>/dev/null >"$TMP/perf"
run --no-inline --replay "$TMP/perf.data" -b --rows=0 --format=ndjson
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
mv "$TMP/out" "$TMP/rows"
run --no-inline --replay "$TMP/perf.data" --script='3*' --size=160x900
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
python3 "$HERE/totals.py" "$TMP/perf" "$TMP/rows" "$TMP/out" || bad=1
finish
