#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every sample the kernel took is in exactly one of the account's parts, each tick: at rest, when the
# reader is stopped until the rings overflow, and when the kernel throttles.
# Changes limits of the kernel.
. "$(dirname "$0")/lib"
need_perf

limit=/proc/sys/kernel/perf_event_max_sample_rate
before=$(cat "$limit")
restore() {
	[ "$(cat "$limit")" = "$before" ] || echo "$before" >"$limit"
	cleanup
}
trap restore EXIT

start "$PROGRAMS/spin" 2
start "$PROGRAMS/recurse"

run -b -n 3 -d 0.5 -F 997 --rows=0 --format=ndjson
[ "$rc" = 0 ] || wrong "quiet: exit $rc: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" check "$TMP/out" || bad=1

# The smallest ring, without a reader for a second.
"$PROFTOP" -b -n 7 -d 0.5 -F 4999 --ring 64K --rows=10 --format=ndjson >"$TMP/lost" 2>"$TMP/err" &
p=$!
pids="$pids $p"
sleep 1.2
kill -STOP "$p"
sleep 1
kill -CONT "$p"
wait "$p" || wrong "overflow: exit $?: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" overflow "$TMP/lost" || bad=1

# The kernel's limit falls below the rate that runs: it throttles.
hz=4999
[ "${before%.*}" -ge "$hz" ] || hz=$before
"$PROFTOP" -b -n 7 -d 0.5 -F "$hz" -e cpu-clock --rows=10 --format=ndjson >"$TMP/throttled" 2>"$TMP/err" &
p=$!
pids="$pids $p"
sleep 1
if echo 500 >"$limit" 2>/dev/null; then
	sleep 1.2
	echo "$before" >"$limit"
	wait "$p" || wrong "throttle: exit $?: $(cat "$TMP/err")"
	python3 "$HERE/ndjson.py" throttle "$TMP/throttled" || bad=1

	# Events that are opened again then are opened with the lower rate, not refused.
	"$PROFTOP" -F "$hz" -e cpu-clock -d 0.5 --size 100x20 \
		--script '<tick><tick><tick><tick><tick>:stack-size 4096<Enter><tick><tick><tick>' \
		>"$TMP/again" 2>&1 &
	p=$!
	pids="$pids $p"
	sleep 1
	echo 500 >"$limit"
	wait "$p" || wrong "opened again: exit $?"
	echo "$before" >"$limit"
	grep -q 'cpu-clock  *500 Hz' "$TMP/again" && grep -q '4096 bytes of user stack a sample' "$TMP/again" ||
		wrong "opened again with a lower limit: $(cat "$TMP/again")"
else
	echo "(the limit cannot be changed here: throttling not forced)"
	wait "$p"
	python3 "$HERE/ndjson.py" check "$TMP/throttled" || bad=1
fi
finish
