#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Functions that V8 inlined have their names, also where the reader of their CPU has not seen the functions of a Python on
# another one: each reader counts functions by itself.
. "$(dirname "$0")/lib"
need_perf
need node
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
node -e 'process.exit(/^(10\.2|11\.3)\./.test(process.versions.v8) ? 0 : 1)' || skip "not installed: Node.js 18 or 20"
cpus=$(taskset -pc $$ | sed 's/.*: //')
first=${cpus%%[-,]*} second=${cpus##*[-,]}
[ "$first" != "$second" ] || skip "needs two CPUs"
# The functions of Python are known before Node starts.
run_until '(sum(r["self"] for t in ticks for r in t["rows"] if r.get("module") == "inlined.js") >= 200 and
	any(r["symbol"] == "fib" for t in ticks for r in t["rows"]))' -d 1 -F 499 --rows=0 -- \
	sh -c "taskset -c $second python3 \"$HERE/../programs/python_work.py\" rec 90 >/dev/null &
		echo \$! >\"$TMP/python.pid\"; sleep 2
		exec taskset -c $first node \"$HERE/../programs/inlined.js\" 90"
pids="$pids $(cat "$TMP/python.pid")"
[ "$rc" = 0 ] || wrong "exit code $rc: $(tail -3 "$TMP/err") $(tail -n 1 "$TMP/out" | cut -c 1-3000)"
# The program runs nothing else, once Node has started: after the first tick with its functions.
python3 -c '
import json, sys
ticks = [[r for r in json.loads(line)["rows"] if r.get("lang") == "node"] for line in open(sys.argv[1])]
begin = next((i for i, rows in enumerate(ticks) if any(r["module"] == "inlined.js" for r in rows)), len(ticks))
rows = [r for tick in ticks[begin + 1:] or ticks[begin:] for r in tick]
of = lambda name: sum(r["self"] for r in rows if name in (r["symbol"], r["module"]))
sys.exit(of("innermost") < 20 or of("inlined.js") < 0.9 * sum(r["self"] for r in rows))' "$TMP/out" ||
	wrong "names of other functions: $(tail -n 1 "$TMP/out" | cut -c 1-3000)"
finish
