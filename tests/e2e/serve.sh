#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --listen: profiles of the right process and length, many clients, clients that stall or leave, a port in use.
. "$(dirname "$0")/lib"
need_perf
"$PROFTOP" --listen x -b -n 1 2>&1 | grep -q 'built without' && skip "not installed: libmicrohttpd-dev"

# Of 10: 0 is a service without any right.
if command -v systemd-analyze >/dev/null; then
	sed 's|@PREFIX@|/usr|' "$HERE/../../doc/proftop.service" >"$TMP/proftop.service"
	systemd-analyze security --offline=true --threshold=40 "$TMP/proftop.service" >"$TMP/out" 2>&1 ||
		wrong "the unit is exposed: $(tail -n 1 "$TMP/out")"
fi
export B PROGRAMS
python3 "$HERE/serve.py" || bad=1
finish
