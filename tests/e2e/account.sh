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

# until_true COMMAND...: it succeeds, 60 s at most, or until proftop has ended.
until_true() {
	i=0
	until "$@" || ! kill -0 "$p" 2>/dev/null || [ $((i += 1)) -gt 600 ]; do sleep 0.1; done
}
# has_ticks FILE NR: it has so many.
has_ticks() { [ "$(wc -l <"$1")" -ge "$2" ]; }
# end_after FILE NR: end proftop after so many more ticks.
end_after() {
	until_true has_ticks "$1" $(($(wc -l <"$1") + $2))
	kill -INT "$p"
	wait "$p"
	rc=$?
}

start "$PROGRAMS/spin" 2
start "$PROGRAMS/recurse"

run -b -n 3 -d 0.5 -F 997 --rows=0 --format=ndjson
[ "$rc" = 0 ] || wrong "quiet: exit $rc: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" whole "$TMP/out" || bad=1

# The smallest ring, without a reader for a second: from the first tick on, the rings are open then. One tick
# is late, and the next one short: each has its own samples.
: >"$TMP/lost"
"$PROFTOP" -b -d 0.5 -F 4999 --ring 64K --rows=0 --format=ndjson >"$TMP/lost" 2>"$TMP/err" &
p=$!
pids="$pids $p"
until_true has_ticks "$TMP/lost" 1
kill -STOP "$p"
sleep 0.8
kill -CONT "$p"
end_after "$TMP/lost" 4
[ "$rc" = 130 ] || wrong "overflow: exit $rc: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" overflow "$TMP/lost" || bad=1

# The kernel's limit falls below the rate that runs: it throttles.
hz=4999
[ "${before%.*}" -ge "$hz" ] || hz=$before
: >"$TMP/throttled"
"$PROFTOP" -b -d 0.5 -F "$hz" -e cpu-clock --rows=10 --format=ndjson >"$TMP/throttled" 2>"$TMP/err" &
p=$!
pids="$pids $p"
until_true has_ticks "$TMP/throttled" 1
if echo 500 >"$limit" 2>/dev/null; then
	sleep 1.2
	until_true grep -q '"throttled":[1-9]' "$TMP/throttled"
	echo "$before" >"$limit"
	end_after "$TMP/throttled" 2
	[ "$rc" = 130 ] || wrong "throttle: exit $rc: $(cat "$TMP/err")"
	python3 "$HERE/ndjson.py" throttle "$TMP/throttled" || bad=1

	# Events that are opened again then are opened with the lower rate, not refused. They are open when the file is there.
	ticks='<tick><tick><tick><tick><tick><tick><tick><tick><tick><tick>'
	"$PROFTOP" -F "$hz" -e cpu-clock -d 0.5 --size 100x20 \
		--script ":screen $TMP/opened<Enter>$ticks:stack-size 4096<Enter><tick><tick><tick>" \
		>"$TMP/again" 2>&1 &
	p=$!
	pids="$pids $p"
	until_true test -e "$TMP/opened"
	echo 500 >"$limit"
	wait "$p" || wrong "opened again: exit $?"
	echo "$before" >"$limit"
	grep -q 'cpu-clock  *500 Hz' "$TMP/again" && grep -q '4096 bytes of user stack a sample' "$TMP/again" ||
		wrong "opened again with a lower limit: $(cat "$TMP/again")"
else
	echo "(the limit cannot be changed here: throttling not forced)"
	end_after "$TMP/throttled" 2
	python3 "$HERE/ndjson.py" check "$TMP/throttled" || bad=1
fi
finish
