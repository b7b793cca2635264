#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --listen: profiles of the right process and length, many clients, clients that stall or leave, a port in use.
. "$(dirname "$0")/lib"
need_perf
"$PROFTOP" --listen x -b -n 1 2>&1 | grep -q 'built without' && skip "not installed: libmicrohttpd-dev"

# Of 10: 0 is a service without any right. As it is, and as its comment says for pushed profiles to any server.
if command -v systemd-analyze >/dev/null; then
	sed 's|@PREFIX@|/usr|' "$HERE/../../doc/proftop.service" >"$TMP/proftop.service"
	push=$(sed -n 's/^#   \(ExecStart=.\)/\1/p' "$TMP/proftop.service")
	sed -e "s|^ExecStart=.*|$push|" -e 's/^IPAddressDeny=.*/IPAddressDeny=/' "$TMP/proftop.service" >"$TMP/pushing.service"
	grep -q '^ExecStart=/usr/bin/proftop .*--push' "$TMP/pushing.service" || wrong "the unit does not say how to push"
	for unit in proftop pushing; do
		systemd-analyze security --offline=true --threshold=40 "$TMP/$unit.service" >"$TMP/out" 2>&1 ||
			wrong "the unit $unit is exposed: $(tail -n 1 "$TMP/out")"
	done
fi
# On a screen as without one.
script -qec "$PROFTOP --listen abc" /dev/null </dev/null >"$TMP/out" 2>&1
[ $? = 2 ] || wrong "--listen abc on a screen: not exit 2: $(cat "$TMP/out")"
export B PROGRAMS
python3 "$HERE/serve.py" || bad=1
finish
