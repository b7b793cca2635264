#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A program that looks like Python and hangs who reads its memory (userfaultfd): its reader is left behind with a
# message, no sample is lost, another Python beside it keeps its names, and the session ends in time.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: the layout of Python is known for x86-64 only"
cp "$PROGRAMS/fake_python" "$TMP/python3.11"
start "$TMP/python3.11" >"$TMP/ready"
fake=$last
sleep 0.5
grep -q ready "$TMP/ready" || skip "userfaultfd(2) is not allowed here"
start python3 "$HERE/../programs/python_work.py" rec 60 >/dev/null
before=$(date +%s)
run -b -n 5 -d 1 -p "$fake,$last" --languages=python --format=ndjson
after=$(date +%s)
[ "$rc" = 0 ] || wrong "exit code $rc: $(head -3 "$TMP/err")"
[ $((after - before)) -le 12 ] || wrong "it took $((after - before)) s"
python3 - "$TMP/out" <<'P' || bad=1
import json, sys
ticks = [json.loads(line) for line in open(sys.argv[1])]
bad = []
if not any("hangs" in t["message"] for t in ticks):
    bad.append(f"no message that a read hangs: {[t['message'] for t in ticks]}")
last = ticks[-1]
if last["account"]["lost"] or last["account"]["taken"] < 100:
    bad.append(f"samples are missing: {last['account']}")
rows = {(r["symbol"], r["comm"]): r["self"] for r in last["rows"]}
if not any(symbol == "fib" for symbol, _ in rows):
    bad.append("the other Python has no names")
if not any(symbol == "_PyEval_EvalFrameDefault" and comm == "python3.11" for symbol, comm in rows):
    bad.append("the program that hangs its reader has no samples")
print("\n".join(bad))
sys.exit(bool(bad))
P
finish
