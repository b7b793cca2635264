#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# An allocation fails, each time another one: of a replay, a live run and a start. proftop ends with a sentence, or goes on
# without what it could not have; it never ends by a signal. POINTS=N: N failures in each of the three.
. "$(dirname "$0")/lib"
need_perf
library=$PROGRAMS/failmalloc
points=${POINTS:-12}
LD_PRELOAD=$library "$PROFTOP" --version >/dev/null 2>&1 || skip "not on this machine: a library preloaded into this build"
start "$PROGRAMS/recurse" 60 >/dev/null
"$PROFTOP" -b -n 2 -d 0.3 -p "$last" --record "$TMP/data" >/dev/null 2>&1 || skip "not permitted: a recording"

# fails NAME AT EVERY ARGS: a sentence, or success, and no signal.
fails() {
	name=$1 at=$2 every=$3
	shift 3
	FAIL_AT=$at FAIL_EVERY=$every LD_PRELOAD=$library timeout -k 1 20 "$PROFTOP" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
	rc=$?
	if [ "$rc" -ge 124 ]; then
		wrong "$name, allocation $at, every $every: exit $rc: $(tail -2 "$TMP/err")"
	elif [ "$rc" != 0 ] && ! grep -q . "$TMP/err" "$TMP/out"; then
		wrong "$name, allocation $at, every $every: exit $rc without a word"
	fi
}

# spread NAME ARGS: the failures are spread over all allocations of a run.
spread() {
	name=$1
	shift
	FAIL_COUNT=$TMP/count LD_PRELOAD=$library "$PROFTOP" "$@" >/dev/null 2>&1 </dev/null || [ "$name" = check ] || wrong "$name: fails without a failure"
	nr=$(cat "$TMP/count" 2>/dev/null || echo 0)
	[ "$nr" -gt "$points" ] || { wrong "$name: $nr allocations counted"; return; }
	i=0
	while [ $((i += 1)) -le "$points" ]; do
		# Half of them among the first: later ones are mostly alike.
		fails "$name" "$i" 0 "$@"
		fails "$name" $((points + i * (nr - points) / points)) 0 "$@"
		fails "$name" "$i" 7 "$@"
	done
	echo "$name: $((3 * points)) failures, of $nr allocations"
}

spread replay --replay "$TMP/data" -b
points=$(((points + 5) / 6))
spread live -b -n 1 -d 0.1
spread check --check
# An address space with room for a part of the tables: the first that fails is among the large ones.
for mib in 50 54 58 62; do
	(ulimit -v $((mib * 1024)) && exec "$PROFTOP" -b -n 1 -d 0.1) >"$TMP/out" 2>"$TMP/err" </dev/null
	rc=$?
	[ "$rc" -lt 124 ] || wrong "address space of $mib MiB: exit $rc: $(tail -2 "$TMP/err")"
	[ "$rc" = 0 ] || grep -q . "$TMP/err" || wrong "address space of $mib MiB: exit $rc without a word"
done
finish
