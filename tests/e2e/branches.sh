#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recordings of hardware: callers by LBR, taken branches, accesses to memory, as perf script has them.
. "$(dirname "$0")/lib"

make=$(dirname "$0")/branches.py
recording() { python3 "$make" make "$1" "$PROFTOP" "$TMP/$1.data" "$2" || wrong "$1: not made"; }
ours() {
	"$PROFTOP" --replay "$TMP/$1.data" --format=perf-script --fields="$2" >"$TMP/ours" ||
		wrong "$1: exit $?"
}
same() { # recording, how it is made, fields
	recording "$1" "$2"
	ours "$1" "$3"
	command -v perf >/dev/null || return
	perf script --no-inline -F comm,tid,time,event,ip,sym,symoff,"$3" -i "$TMP/$1.data" >"$TMP/perf" \
		2>/dev/null
	python3 "$make" compare "$TMP/perf" "$TMP/ours" >"$TMP/same" 2>&1 ||
		wrong "$1: not as perf script: $(cat "$TMP/same")"
	[ "$(cat "$TMP/same")" = "$4" ] || wrong "$1: compared $(cat "$TMP/same"), not $4"
}

# samples, frames, branches, figures
access=addr,data_src,weight,phys_addr,data_page_size,code_page_size
same lbr '' brstacksym '200 1293 993 0'
same branches '' brstacksym '100 100 761 0'
same memory '' $access '60 60 0 360'
same memory struct $access '60 60 0 360'

# Counters behind the branches (Linux 6.8), and a sample without branches and without their index.
ours branches brstack
cp "$TMP/ours" "$TMP/plain"
for how in counters bare; do
	recording branches $how
	ours branches brstack
	cmp -s "$TMP/plain" "$TMP/ours" || wrong "$how: other branches"
done

# Rows: 90 samples of 8 loops, two of them mispredicted; loads by level with their latency.
rows() { "$PROFTOP" --replay "$TMP/$1.data" --format=ndjson | python3 -c "
import json, sys
$2" >"$TMP/rows" || wrong "$1: no rows"; }
rows branches 'for b in json.loads(sys.stdin.readline())["branches"]:
	print(b["from_offset"], b.get("to_offset"), b["count"], b["mispredicted"], b["predicted"], b["cycles"])'
[ "$(cat "$TMP/rows")" = '20 4 720 180 540 5040
12 0 40 0 40 120
12 None 1 0 0 0' ] || wrong "branches: $(cat "$TMP/rows")"
rows memory 'rows = json.loads(sys.stdin.readline())["memory"]
print(*sorted((r["level"], r["op"], r["count"], r["latency"]) for r in rows if r["symbol"] == rows[0]["symbol"]))'
[ "$(cat "$TMP/rows")" = "('L1', 'load', 10, 40) ('L3', 'load', 10, 400) ('RAM', 'load', 10, 2500)" ] ||
	wrong "memory: $(cat "$TMP/rows")"
# perf record requests the fields of an access also where there is none.
recording memory none
rows memory 'print(json.loads(sys.stdin.readline()).get("memory"))'
[ "$(cat "$TMP/rows")" = None ] || wrong "samples that are no accesses: $(cat "$TMP/rows")"
recording memory ""
"$PROFTOP" --replay "$TMP/branches.data" --script % --size 80x12 >"$TMP/screen"
grep -q '^▶  94.61 .* 25.00 ' "$TMP/screen" || wrong "branches on the screen: $(cat "$TMP/screen")"
"$PROFTOP" --replay "$TMP/memory.data" --script @ --size 80x12 >"$TMP/screen"
grep -q '^▶  16.67 .* 250 load  *RAM ' "$TMP/screen" || wrong "memory on the screen: $(cat "$TMP/screen")"

"$PROFTOP" --replay "$TMP/lbr.data" --format=perf-script --fields=brstack,no >"$TMP/ours" 2>&1 &&
	wrong "an unknown field is accepted"
grep -q "unknown field 'no'" "$TMP/ours" || wrong "says $(cat "$TMP/ours")"
finish
