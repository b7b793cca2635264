#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each set of capabilities: what is shown, which sentence is printed, what --check says and exits with.
. "$(dirname "$0")/lib"
need_perf
need setpriv
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] || skip "kernel.perf_event_paranoid is not 2"

# The program where anybody can read it.
chmod 755 "$TMP"
cp "$PROFTOP" "$TMP/proftop" && chmod 755 "$TMP/proftop"
start "$PROGRAMS/spin" 1

# as NAME CAPS ARGS...: as nobody with just these capabilities.
as() {
	caps=$1
	shift
	case $caps in none) add= ;; *) add=",$(echo "$caps" | sed 's/[a-z_]*/+&/g')" ;; esac
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set "-all$add" --inh-caps "-all$add" \
		--ambient-caps "-all$add" "$TMP/proftop" "$@" >"$TMP/out" 2>"$TMP/err"
	rc=$?
}

says() {
	grep -q -- "$1" "$TMP/out" "$TMP/err" || wrong "$caps: no '$1' in: $(cat "$TMP/out" "$TMP/err")"
}

as perfmon -b -n 1 -d 0.5 -e cpu-clock
[ "$rc" = 0 ] || wrong "perfmon: exit $rc"
says ' system '
grep -q 'not permitted' "$TMP/out" && wrong "perfmon: told of what it may do"
as perfmon --check
says '^ok *sampling *every process, user and kernel code'
says 'without the rest no other users'
[ "$rc" = 1 ] || [ "$rc" = 0 ] || wrong "perfmon: --check exits with $rc"

as none -b -n 1 -d 0.5 -e cpu-clock -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
[ "$rc" = 0 ] || wrong "none: exit $rc: $(cat "$TMP/err")"
says 'user code only'
as none -b -n 1 -d 0.5 -e cpu-clock -p "$last"
[ "$rc" = 3 ] || wrong "none, a process of root: exit $rc"
says 'perf_event_paranoid'
says 'least power first'
as none --check
says '^degraded *sampling *your own processes, user code only'
says 'SETCAP=1'
[ "$rc" = 1 ] || wrong "none: --check exits with $rc"

run --check
grep -q '^ok *sampling *every process' "$TMP/out" || wrong "root: $(cat "$TMP/out")"
finish
