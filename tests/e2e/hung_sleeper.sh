#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that slept before the start and hang a reader of their stacks (userfaultfd): another process that sleeps has
# its stack nevertheless; after many of them none has, with a message, and the session ends in time.
. "$(dirname "$0")/lib"
need_perf
# A sanitizer looks for leaks with all threads stopped; one that hangs in the kernel does not stop.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

begin() {
	: >"$TMP/ready"
	start "$PROGRAMS/hung_sleeper" "$1" >"$TMP/ready"
	hung=$last
	tries=0
	until grep -q ready "$TMP/ready"; do
		[ -e "/proc/$hung/exe" ] && [ $((tries += 1)) -le 200 ] || skip "userfaultfd(2) is not allowed here"
		sleep 0.1
	done
}

begin 3
start sleep 1000
until grep -q sleep "/proc/$last/wchan"; do sleep 0.01; done
run_until 'any("nanosleep" in r["symbol"] and r["comm"] == "sleep" for r in ticks[-1]["rows"] if r["event"] == "waits")' \
	--time=wait -d 0.5 --rows=0 -p "$hung,$last"
[ "$rc" = 0 ] || wrong "exit $rc: $(head -n 3 "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q nanosleep || wrong 'no function of a task beside one that hangs its reader'
sleeper=$last

# The reads end: these processes have their stacks also.
serve() {
	sleep 4
	kill -USR1 "$hung"
}
start serve
run_until 'any(r["symbol"] == "sleep_here" for r in ticks[-1]["rows"] if r["event"] == "waits")' \
	--time=wait -d 0.5 --rows=0 -p "$hung,$sleeper"
[ "$rc" = 0 ] || wrong "exit $rc: $(head -n 3 "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q sleep_here || wrong 'no function of a task that no longer hangs its reader'
kill "$hung" "$sleeper"

begin 14
run_until 'any("sleeping tasks hangs" in m["text"] for t in ticks for m in t["notices"])' \
	--time=wait -d 1 --rows=0 -p "$hung"
[ "$rc" = 0 ] || wrong "exit $rc: $(head -n 3 "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q 'sleeping tasks hangs' || wrong 'no message about sleeping tasks that hang'
finish
