#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --record keeps the functions of scripts: --replay has the same rows and the same account of interpreters; perf reads
# the file as if they were not there.
. "$(dirname "$0")/lib"
need_perf
need perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: the layout of Python is known for x86-64 only"
data=$TMP/out.data

start python3 "$HERE/../programs/python_work.py" all 90 >/dev/null
sleep 0.5
# The first samples, of before the interpreter was known, have to be few of all; perf takes long for more than 3000.
run_until 'len(ticks) >= 4 and taken >= 500 and (taken >= 3000 or
	sum(t["lang"]["certain"] + t["lang"]["guessed"] for t in ticks) >= 0.85 * taken)' \
	-d 0.5 -F 499 -e cpu-clock -p "$last" --record "$data" --rows=0
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
kill "$last"
cp "$TMP/out" "$TMP/live"
for frames in language native; do
	"$PROFTOP" --replay "$data" -b --format=ndjson --rows=0 --frames=$frames >"$TMP/$frames" || wrong "replay: exit $?"
done
python3 - "$TMP" <<'PYTHON' || bad=1
import json
import sys


def read(name):
    return [json.loads(line) for line in open(f"{sys.argv[1]}/{name}", encoding="utf-8")]


def lang_rows(tick):
    return {r["symbol"]: r for r in tick["rows"] if r.get("lang") == "python" and r["module"] == "python_work.py"}


live = read("live")
whole, native = read("language")[-1], read("native")[-1]
bad = []
shown = whole["lang"]
got = {key: sum(tick["lang"][key] for tick in live) for key in ("certain", "guessed", "none")}
# One that was recorded before its file was read is certain live, when it was, and a guess in the replay: at the begin. One
# that waited while the process was described has no frames live, and is of no interpreter yet in the replay: there as well,
# and more of them on a busy machine.
later = {key: sum(tick["lang"][key] for tick in live[len(live) // 2:]) for key in ("certain", "none")}
for key, nr in {"named": got["certain"] + got["guessed"], "guessed": got["guessed"], **later}.items():
    if (shown["certain"] + shown["guessed"] if key == "named" else shown[key]) < nr:
        bad.append(f"{key}: {nr} live, in the recording {shown}")
if sum(shown["none_by"].values()) != shown["none"]:
    bad.append(f"the reasons do not add up: {shown}")
if shown["certain"] + shown["guessed"] < 100:
    bad.append(f"too few samples to judge: {shown}")
rows = lang_rows(whole)
for name, row in lang_rows(live[-1]).items():
    if row["total"] >= 20 and (name not in rows or rows[name]["total"] < row["total"]):
        bad.append(f"{name}: {row['total']} live in the last tick, in the replay {rows.get(name)}")
if len(rows) < 5 or not rows.get("main", {"file": ""})["file"].endswith("/python_work.py"):
    bad.append(f"rows of the script: {sorted(rows)}")
if rows.get("main", {"total_pct": 0})["total_pct"] < 80:
    bad.append(f"main: {rows.get('main')}")
loops = [r["total"] for r in whole["rows"] if r["symbol"] == "_PyEval_EvalFrameDefault"]
# The first samples are from before the interpreter was known.
if loops and loops[0] > shown["none"] + 0.1 * sum(got.values()):
    bad.append(f"{loops[0]} samples with the loop of the interpreter, {shown['none']} without functions")
# Of a program whose interpreter is a library: its own code is in sight live and in the replay.
starts = {r["module"]: r["total"] for r in whole["rows"] if r["symbol"] == "_start"}
for row in live[-1]["rows"]:
    if row["symbol"] == "_start" and row["total"] >= 20 and starts.get(row["module"], 0) < row["total"]:
        bad.append(f"_start of {row['module']}: {row['total']} live in the last tick, in the replay {starts}")
if lang_rows(native) or not any(r["symbol"] == "_PyEval_EvalFrameDefault" for r in native["rows"]):
    bad.append(f"--frames=native: {sorted(lang_rows(native))}")
print("\n".join("wrong: " + line for line in bad))
sys.exit(bool(bad))
PYTHON
for command in "script -F ip,sym" "report --stdio"; do
	# shellcheck disable=SC2086
	perf ${command%% *} -i "$data" ${command#* } >"$TMP/perf.out" 2>"$TMP/perf.err" || wrong "perf $command: exit $?"
	sed -i '/^Warning:$/d; /lost .* chunks\|^Check IO\/CPU overload/d; /^$/d' "$TMP/perf.err"
	[ ! -s "$TMP/perf.err" ] || wrong "perf $command: $(head -n 3 "$TMP/perf.err")"
done
grep -q 'of event' "$TMP/perf.out" || wrong "perf report has no samples"
finish
