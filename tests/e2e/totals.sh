#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Self and total % of every function, of rows, of the call tree, of callers and of the flame graph, and
# the shares of processes and modules, against perf report on the same recordings: equal but for rounding.
. "$(dirname "$0")/lib"
need_perf
need perf

perf record -q -F 499 -e cpu-clock --call-graph dwarf,16384 -o "$TMP/perf.data" -- "$PROGRAMS/recurse" 2 \
	>/dev/null 2>"$TMP/err" || skip "perf record: $(cat "$TMP/err")"
# Symbols alone: functions of one name in two objects are one row there and two here, so compare
# modules also.
perf report -i "$TMP/perf.data" --children --no-inline --stdio -g none -t '|' \
	-F overhead_children,overhead,dso,symbol --percent-limit 0 2>/dev/null >"$TMP/perf"
run --no-inline --replay "$TMP/perf.data" -b --rows=0 --format=ndjson
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
mv "$TMP/out" "$TMP/rows"
run --no-inline --replay "$TMP/perf.data" --script='3*' --size=160x900
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
# perf unwinds a sample in some thousand otherwise, or not at all: totals may differ by these samples.
"$HERE/../compare-stacks" "$PROFTOP" "$TMP/perf.data" 0 >"$TMP/stacks"
tail -n 1 "$TMP/stacks"
OTHER_STACKS=$(python3 - "$TMP/stacks" <<'PY'
import re, sys
line = [l for l in open(sys.argv[1]) if l.rstrip().endswith("samples")][-1]
total = int(re.search(r"of (\d+) samples", line).group(1))
same = int(re.search(r"same (\d+)", line).group(1))
print(100 * (total - same) / total)
sys.exit(total - same > max(3, total / 200))
PY
) || wrong "too many stacks differ: $OTHER_STACKS %"
export OTHER_STACKS
python3 "$HERE/totals.py" "$TMP/perf" "$TMP/rows" "$TMP/out" || bad=1
# The other views: one screen each.
screen() { # NAME RECORDING KEYS
	run --no-inline --replay "$2" --script="$3" --size=160x60
	[ "$rc" = 0 ] || wrong "$1: exit $rc: $(cat "$TMP/err")"
	mv "$TMP/out" "$TMP/screen.$1"
}
shares() { # RECORDING SORT
	perf report -i "$1" --no-children --no-inline --stdio -g none -t '|' --sort "$2" --percent-limit 0 2>/dev/null
}
gunzip -c "$HERE/../data/shop/shop.data.gz" >"$TMP/shop.data"
screen processes "$TMP/shop.data" 2
screen modules "$TMP/perf.data" 6
screen callers "$TMP/perf.data" '/^main$<Enter>b'
# A stack that ends early has a box of main of its own, which may be too narrow for its name.
for next in '' n nn nnn; do
	screen flame "$TMP/perf.data" "4/^main\$<Enter>$next"
	! grep -q '▶\[main\]' "$TMP/screen.flame" || break
done
shares "$TMP/shop.data" pid >"$TMP/perf.pid"
# A filter of system calls (seccomp) is code of the kernel without a name: perf has it in [unknown].
nameless=$(shares "$TMP/perf.data" dso,sym | awk -F'|' '/\[unknown\]/ && /\[k\]/ { sum += $1 } END { print sum + 0 }')
shares "$TMP/perf.data" dso | awk -F'|' -v OFS='|' -v nameless="$nameless" '
	/\[unknown\]/ { $1 -= nameless; if ($1 < 0.005) next; $1 = $1 "%" }
	/\[kernel.kallsyms\]/ { $1 += nameless; $1 = $1 "%" }
	{ print }' >"$TMP/perf.dso"
python3 "$HERE/totals_views.py" "$TMP" || bad=1
finish
