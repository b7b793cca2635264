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
# It also ends: a session that waits for the hanging reader is stopped after 100 s.
run_until '(any("hangs" in t["message"] for t in ticks) and taken >= 100 and
	any(r["symbol"] == "fib" for r in ticks[-1]["rows"]) and
	any(r["symbol"] == "_PyEval_EvalFrameDefault" and r["comm"] == "python3.11" for r in ticks[-1]["rows"]))' \
	-d 1 -p "$fake,$last" --languages=python --rows=0
[ "$rc" = 0 ] || wrong "exit code $rc: $(head -3 "$TMP/err") $(tail -n 1 "$TMP/out" | cut -c 1-3000)"
tail -n 1 "$TMP/out" | grep -q '"account_total":{[^}]*"lost":0,' || wrong "samples are lost: $(tail -n 1 "$TMP/out" | grep -o '"account_total":{[^}]*}')"
finish
