#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Opening a recording when its reader does not answer: ^C and TERM end it.
. "$(dirname "$0")/lib"
need python3

# 100 MB of records of a type that is not known.
python3 - "$TMP/data" <<'EOF'
import struct, sys

attr = struct.pack("<IIQQQQQ", 1, 136, 0, 1000000, 0x10107, 0, 1 << 18).ljust(136, b"\0") + bytes(16)
records = struct.pack("<IHH", 30, 0, 8) * 131072
with open(sys.argv[1], "wb") as f:
    f.write((b"PERFILE2" + struct.pack("<7Q", 104, 152, 104, 152, 256, 100 << 20, 0)).ljust(104, b"\0") + attr)
    for _ in range(100):
        f.write(records)
EOF

# reader_of PID: the worker of its sandbox that reads recordings.
reader_of() {
	for server in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		for worker in $(cat /proc/"$server"/task/*/children 2>/dev/null); do
			! grep -q proftop-record "/proc/$worker/comm" 2>/dev/null || echo "$worker"
		done
	done
}

# begin: a session whose reader is stopped; fails if it has ended before that.
begin() {
	# A shell has its jobs ignore SIGINT.
	start env --default-signal=INT "$PROFTOP" -b --replay "$TMP/data" >"$TMP/out" 2>"$TMP/err"
	pid=$last
	i=0
	until worker=$(reader_of $pid) && [ "$worker" ]; do
		kill -0 $pid 2>/dev/null || return 1
		[ $((i = i + 1)) -lt 3000 ] || { wrong "no reader"; finish; }
		sleep 0.01
	done
	kill -STOP "$worker" 2>/dev/null
	sleep 0.3
	kill -0 $pid 2>/dev/null
}

for sig in 2 15; do
	tries=0
	until begin; do
		[ $((tries += 1)) -lt 10 ] || skip "not permitted: to see the reader"
	done
	before=$(date +%s)
	kill -$sig $pid
	wait $pid
	rc=$?
	took=$(($(date +%s) - before))
	[ $rc = $((128 + sig)) ] || wrong "signal $sig: exit $rc: $(cat "$TMP/err")"
	[ $took -lt 10 ] || wrong "signal $sig: ended after $took s"
done
finish
