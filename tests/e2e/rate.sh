#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The rate got is the rate wanted, within 5 %, from 49 to 9973 Hz; or as much less as another clock gets.
. "$(dirname "$0")/lib"
need_perf

limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
start "$PROGRAMS/spin" "$(nproc)"
spin=$last
for hz in 49 999 4999 9973; do
	[ "${limit%.*}" -ge "$hz" ] || continue
	"$B/tests/tools/delivered" 4 "$hz" >"$TMP/delivered" &
	pids="$pids $!"
	delivered=$!
	run -b -n 3 -d 1 -F "$hz" -e cpu-clock --format=ndjson
	[ "$rc" = 0 ] || wrong "$hz Hz: exit $rc: $(cat "$TMP/err")"
	wait "$delivered"
	python3 "$HERE/ndjson.py" rate "$TMP/out" "$hz" "$(cat "$TMP/delivered")" || bad=1
done

# Nothing is new: a sampler thread wakes ten times a second, not twenty.
switches() {
	grep -h -A60 '^Name:.cpu0$' /proc/"$1"/task/*/status | sed -n 's/^voluntary_ctxt_switches:.//p'
}
"$PROFTOP" -b -n 7 -d 1 -F 199 -e cpu-clock -p "$spin" >/dev/null 2>&1 &
calm=$!
pids="$pids $calm"
sleep 4
before=$(switches "$calm")
sleep 2
woken=$(($(switches "$calm") - before))
[ "$woken" -ge 5 ] && [ "$woken" -lt 30 ] || wrong "a calm sampler thread: $woken wake-ups in 2 s, not 20"
finish
