#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --call-graph: by stack copies, by frame pointers, not at all; the stacks, certainty and cost of
# each.
. "$(dirname "$0")/lib"
need_perf

start "$PROGRAMS/frames"
target=$last
start "$PROGRAMS/spin" 1

for how in dwarf fp off; do
	run -b -n 4 -d 0.5 -F 4999 -e cpu-clock -g "$how" -p "$target" --format=ndjson
	[ "$rc" = 0 ] || wrong "$how: exit $rc: $(cat "$TMP/err")"
	cp "$TMP/out" "$TMP/$how"
done
python3 - "$TMP" <<'PY' || bad=1
import json, sys

bad = False
cost, taken = {}, {}

def wrong(text):
    global bad
    bad = True
    print("wrong: " + text)

for how in ("dwarf", "fp", "off"):
    ticks = [json.loads(line) for line in open(f"{sys.argv[1]}/{how}")]
    last = ticks[-1]
    a = last["account"]
    if last["call_graph"] != how:
        wrong(f"{how}: it says {last['call_graph']}")
    parts = sum(a[k] for k in ("complete", "guessed", "truncated", "broken", "pending", "dropped", "lost"))
    if not a["taken"] or parts != a["taken"]:
        wrong(f"{how}: taken {a['taken']}, the parts {parts}")
    total = {r["symbol"]: r["total_pct"] for r in last["rows"]}
    cost[how] = sum(t["self"]["samplers_pct"] * t["interval_ns"] for t in ticks)
    taken[how] = sum(t["account"]["taken"] for t in ticks)
    for caller in ("middle", "outer", "main"):
        share = total.get(caller, 0)
        if how == "off" and share > 5 or how != "off" and share < 90:
            wrong(f"{how}: {caller} {share}%")
    # Without stacks the interrupts of the kernel are not part of it.
    if total.get("inner", 0) < (50 if how == "off" else 90):
        wrong(f"{how}: inner {total.get('inner')}%")
    sure = a["complete"] / a["taken"] if a["taken"] else 0
    # A frame pointer's chain cannot be distinguished from data of the same form.
    if how == "fp" and sure > 0.1 or how != "fp" and sure < 0.9:
        wrong(f"{how}: {100 * sure:.0f}% complete")
print("CPU of the sampler threads, dwarf = 1: " + ", ".join(
    f"{k} {cost[k] / cost['dwarf']:.2f} for {taken[k]} samples" for k in cost))
# Wake-ups cost the same in all three, and are most where few samples are.
if cost["off"] > 1.5 * cost["dwarf"] * max(1, taken["off"] / taken["dwarf"]):
    wrong("off costs more than dwarf")
sys.exit(bad)
PY
# A recording says how its stacks were taken.
while read -r how said size; do
	run -n 1 -d 0.5 -F 999 -e cpu-clock -g "$how" -p "$target" --record "$TMP/data"
	[ "$rc" = 0 ] || wrong "--record -g $how: exit $rc: $(cat "$TMP/err")"
	run --replay "$TMP/data" --format=ndjson
	grep -q "\"call_graph\":\"$said\",\"stack_size\":$size," "$TMP/out" ||
		wrong "--replay of -g $how: $(grep -o '"call_graph":[^,]*,[^,]*' "$TMP/out")"
	[ "$said" != fp ] || grep -q 'stacks by frame pointers' "$TMP/out" || wrong "--replay of fp: $(cat "$TMP/out")"
done <<'END'
dwarf,8K dwarf 8192
fp fp 0
off off 0
END
finish
