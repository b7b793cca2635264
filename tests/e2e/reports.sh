#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What people reported of other profilers (doc/REPORTS.md): programs that divide their time themselves, all in one session.
. "$(dirname "$0")/lib"
need_perf
export PROFTOP PROGRAMS TMP
python3 "$HERE/reports.py" || bad=1

# Without a symbol a function has its name in DWARF: of all, and behind a symbol without a size.
need objcopy cc
cc -O1 -g -fno-omit-frame-pointer -o "$TMP/whole" "$HERE/../programs/frames.c" || wrong "cc"
objcopy --strip-symbol=inner --strip-symbol=middle --strip-symbol=sink "$TMP/whole" "$TMP/some"
strip --strip-all --keep-section='.debug_*' "$TMP/whole" -o "$TMP/none"
for program in some none; do
	run_until 'sum(r["self"] for t in ticks for r in t["rows"] if r["symbol"] == "inner") >= 200' \
		-b --format=ndjson -d 0.5 -F 499 --rows=0 -- "$TMP/$program" 60
	[ "$rc" = 0 ] || wrong "$program: $(tail -n 1 "$TMP/out" | cut -c 1-2000)"
	grep -q '"symbol":"middle"' "$TMP/out" || wrong "$program: no middle: $(tail -n 1 "$TMP/out" | cut -c 1-2000)"
done
finish
