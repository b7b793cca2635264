#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The rate got is the rate wanted, within 5 %, from 49 to 9973 Hz; or as much less as another clock gets.
. "$(dirname "$0")/lib"
need_perf

limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
start "$PROGRAMS/spin" "$(nproc)"
for hz in 49 999 4999 9973; do
	[ "${limit%.*}" -ge "$hz" ] || continue
	"$B/tests/tools/delivered" 4 >"$TMP/delivered" &
	pids="$pids $!"
	delivered=$!
	run -b -n 3 -d 1 -F "$hz" -e cpu-clock --format=ndjson
	[ "$rc" = 0 ] || wrong "$hz Hz: exit $rc: $(cat "$TMP/err")"
	wait "$delivered"
	python3 "$HERE/ndjson.py" rate "$TMP/out" "$hz" "$(cat "$TMP/delivered")" || bad=1
done
finish
