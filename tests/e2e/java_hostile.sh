#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that look like JVMs: wild tables, cycles, a million blobs of code. Bounded time and memory, and a program
# beside them keeps its names and samples.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
pids_of=
for kind in wild loop many; do
	mkdir "$TMP/$kind"
	cp "$PROGRAMS/fake_jvm" "$TMP/$kind/libjvm.so"
	start "$TMP/$kind/libjvm.so" "$kind" >"$TMP/$kind/ready"
	pids_of=$pids_of,$last
done
start "$PROGRAMS/spin" 1 >/dev/null
for kind in wild loop many; do
	i=0
	until grep -q ready "$TMP/$kind/ready" || [ $((i = i + 1)) = 300 ]; do sleep 0.1; done
done
run_until 'ticks[-1]["seq"] >= 3 and all(sum(r["self"] for r in t["rows"] if r["comm"] == "spin") > 0 for t in ticks[-1:])' \
	-d 0.5 -F 199 -p "${last}$pids_of" --format=ndjson
[ "$rc" = 0 ] || wrong "exit code $rc: $(head -3 "$TMP/err")"
python3 - "$TMP/out" <<'P' || bad=1
import json, sys
ticks = [json.loads(line) for line in open(sys.argv[1])]
bad = []
# A full machine may lose a few.
if sum(t["account"]["lost"] for t in ticks) > 0.05 * sum(t["account"]["taken"] for t in ticks):
    bad.append(f"samples are lost: {[t['account'] for t in ticks]}")
if not any(r["comm"] == "spin" and not r["symbol"].startswith("[") for r in ticks[-1]["rows"]):
    bad.append(f"the program beside has no names: {ticks[-1]['rows']}")
lang = ticks[-1]["lang"]
if lang["certain"] or lang["none"] != sum(lang["none_by"].values()) or not lang["none"]:
    bad.append(f"no JVM has frames of Java: {lang}")
if ticks[-1]["self"]["rss_kb"] > 200 << 10:
    bad.append(f"too much memory: {ticks[-1]['self']}")
if any(r.get("lang") for t in ticks for r in t["rows"]):
    bad.append("a row of Java")
print("\n".join(bad))
sys.exit(bool(bad))
P
finish
