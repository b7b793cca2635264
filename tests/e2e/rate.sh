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
	"$B/tests/tools/delivered" log "$hz" >"$TMP/delivered" &
	pids="$pids $!"
	delivered=$!
	run -b -n 3 -d 1 -F "$hz" -e cpu-clock --format=ndjson
	[ "$rc" = 0 ] || wrong "$hz Hz: exit $rc: $(cat "$TMP/err")"
	kill "$delivered"
	python3 "$HERE/ndjson.py" rate "$TMP/out" "$hz" "$TMP/delivered" || bad=1
done

# Nothing is new: a sampler thread wakes ten times a second, not twenty.
switches() {
	grep -h -A60 '^Name:.cpu0$' /proc/"$1"/task/*/status | sed -n 's/^voluntary_ctxt_switches:.//p'
}
start "$PROFTOP" -b -d 1 -F 199 -e cpu-clock -p "$spin" >"$TMP/calm"
calm=$last
until [ "$(grep -c '^proftop' "$TMP/calm")" -gt 1 ] || [ ! -e "/proc/$calm/comm" ]; do sleep 0.1; done
# The look that is nearest: one may come late. A thread that is woken too often is so each time.
best=
for _ in 1 2 3 4 5; do
	before=$(switches "$calm")
	read -r from _ </proc/uptime
	sleep 2
	after=$(switches "$calm")
	read -r to _ </proc/uptime
	a_second=$(echo "$before $after $from $to" | awk '{ print int(($2 - $1) / ($4 - $3) + 0.5) }')
	best="$best $a_second"
	[ "$a_second" -ge 3 ] && [ "$a_second" -lt 15 ] && break
done
[ "$a_second" -ge 3 ] && [ "$a_second" -lt 15 ] || wrong "a calm sampler thread: $best wake-ups a second, not 10"
finish
