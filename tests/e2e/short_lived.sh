#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --name samples processes that start later and end soon, and their children, and no others; a recording has them alone;
# without the right to whole CPUs it says what it misses.
. "$(dirname "$0")/lib"
need_perf

cp "$PROGRAMS/pieces" "$TMP/short-one"
cp "$PROGRAMS/pieces" "$TMP/a-name-of-more-than-15-bytes"
cp "$(command -v sh)" "$TMP/short-shell"
export PROFTOP TMP
python3 "$HERE/short_lived.py" || bad=1

# The kernel lets users with no rights see all CPUs below 1.
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ]; then
	cp "$PROFTOP" "$TMP/proftop"
	chmod 755 "$TMP" "$TMP/proftop"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$TMP/proftop" -b -n 1 -d 0.2 --name . >"$TMP/out" 2>&1
	grep -q 'misses processes that end within a second\|not permitted\|perf_event_paranoid' "$TMP/out" ||
		wrong "without rights: $(head -n 3 "$TMP/out")"
fi
finish
