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
# LeakSanitizer would wait for the hanging thread.
asan_options=${ASAN_OPTIONS:-}
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
run_until '(any("hangs" in t["message"] for t in ticks) and taken >= 100 and
	any(r["symbol"] == "fib" for r in ticks[-1]["rows"]) and
	any(r["symbol"] == "_PyEval_EvalFrameDefault" and r["comm"] == "python3.11" for r in ticks[-1]["rows"]))' \
	-d 1 -p "$fake,$last" --languages=python --rows=0
[ "$rc" = 0 ] || wrong "exit code $rc: $(head -3 "$TMP/err") $(tail -n 1 "$TMP/out" | cut -c 1-3000)"
tail -n 1 "$TMP/out" | grep -q '"account_total":{[^}]*"lost":0,' || wrong "samples are lost: $(tail -n 1 "$TMP/out" | grep -o '"account_total":{[^}]*}')"

export ASAN_OPTIONS="$asan_options"

# The reader frees itself when the read returns: each one that runs has a poll descriptor, and no other is left.
kill "$fake" "$last"
begin_fake() {
	: >"$TMP/ready"
	start "$TMP/python3.11" >"$TMP/ready"
	until grep -q ready "$TMP/ready"; do sleep 0.1; done
	fake=$last
	start python3 "$HERE/../programs/python_work.py" rec 60 >/dev/null
	work=$last
}
live() {
	start "$PROFTOP" -b -d 0.2 -p "$fake,$work" --languages=python --rows=0 --format=ndjson "$@" >"$TMP/live" 2>&1
}
begin_fake
live
readers() { cat "/proc/$last/task/"*/comm 2>/dev/null | grep -c '^read[0-9]'; }
left() { [ "$(ls -l "/proc/$last/fd" | grep -c eventpoll)" -gt "$(readers)" ]; }
# within COMMAND...: it succeeds within 20 s.
within() {
	tries=0
	until "$@"; do
		[ $((tries += 1)) -le 200 ] || return 1
		sleep 0.1
	done
}
fewer() { [ "$(readers)" -lt "$hanging" ]; }
closed() { ! left; }
within grep -q hangs "$TMP/live" || wrong "no reader hangs: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
hanging=$(readers)
kill -9 "$fake"
within fewer || wrong "a reader of a process that has ended goes on: $hanging"
within closed || wrong "descriptors of a reader are left: $(readers) readers, $(ls -l "/proc/$last/fd" | grep -c eventpoll) descriptors"
# end_live: it ends within 20 s, and in builds with AddressSanitizer nothing has leaked.
end_live() {
	gone() { [ ! -e "/proc/$last/exe" ]; }
	within gone || wrong "proftop has not ended"
	wait "$last"
	rc=$?
	[ "$rc" = "$1" ] || wrong "exit code $rc, want $1: $(grep -v '^{' "$TMP/live" | head -n 20)"
}
kill -INT "$last"
end_live 130

# A session may end while its reader hangs: the last of the two frees the tables.
begin_fake
live -n 10
within grep -q hangs "$TMP/live" || wrong "no reader hangs: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
all_ticks() { [ "$(grep -c '^{' "$TMP/live")" = 10 ]; }
within all_ticks || wrong "$(grep -c '^{' "$TMP/live") ticks, want 10"
sleep 1
kill -9 "$fake"
end_live 0
finish
