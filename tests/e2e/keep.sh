#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --keep is killed at random moments: --open shows the true share each time. (make keep-kill: more often.)
. "$(dirname "$0")/lib"
need_perf

B=$B "$HERE/../keep_kill" 2 >"$TMP/out" 2>&1 || wrong "$(cat "$TMP/out")"

# The size of the folder, at each tick.
mkdir "$TMP/small"
"$B/tests/tools/nightsize" "$TMP/small" 7200 99 2000000 >"$TMP/out" || wrong "--keep-size=2000000: $(cat "$TMP/out")"

# until_kept BYTES: wait until more than that is kept, 60 s at most.
kept() { cat "$TMP/keep/"*.keep 2>/dev/null | wc -c; }
until_kept() {
	i=0
	until [ "$(kept)" -gt "$1" ] || [ $((i += 1)) -gt 600 ]; do sleep 0.1; done
}

# One session for a folder; a folder without segments, and none at all.
mkdir "$TMP/keep" "$TMP/empty"
start "$PROGRAMS/spin" 1
spin=$last
start "$PROFTOP" -b -n 0 -d 1 --keep "$TMP/keep" -p "$spin" >/dev/null
until_kept 0
"$PROFTOP" -b -n 1 --keep "$TMP/keep" -p "$spin" >/dev/null 2>"$TMP/err" && wrong "two sessions in one folder"
grep -q 'another proftop' "$TMP/err" || wrong "$(cat "$TMP/err")"
until_kept "$(kept)"
kill -KILL "$last"
"$PROFTOP" --open "$TMP/keep" -b --format=ndjson >"$TMP/out" 2>"$TMP/err" || wrong "--open: $(cat "$TMP/err")"
python3 -c 'import json, sys; t = json.load(sys.stdin); r = t["account"]["taken"] * 1e9 / t["interval_ns"]; sys.exit(t["account"]["outcomes"] or not 10 < r < 2e5)' \
	<"$TMP/out" || wrong "the rate of kept samples: $(cut -c1-300 "$TMP/out")"
"$PROFTOP" --open "$TMP/keep" --script 2 --size 100x12 >"$TMP/screen" 2>&1
grep -Eq " $spin +$(id -un) " "$TMP/screen" || wrong "the user of a kept process: $(cat "$TMP/screen")"
grep -q 'REPLAY  all ' "$TMP/screen" || wrong "the range: $(head -1 "$TMP/screen")"
grep -q 'Stacks - *$' "$TMP/screen" || wrong "outcomes of stacks that are not kept: $(cat "$TMP/screen")"
"$PROFTOP" --open "$TMP/keep" --baseline "$TMP/keep" --script '<tick>' --size 100x12 >"$TMP/screen" 2>&1
grep -q 'against keep (B)' "$TMP/screen" || wrong "a folder as baseline: $(cat "$TMP/screen")"
grep -Eq 'new!|gone ' "$TMP/screen" && wrong "a folder differs from itself: $(cat "$TMP/screen")"
expect 1 'cannot open' --open "$TMP/keep" --baseline "$TMP/nothing" --script '<tick>'
expect 1 'no waiting time was kept' --open "$TMP/keep" --time=wait -b
"$PROFTOP" --open "$TMP/empty" -b >/dev/null 2>"$TMP/err" && wrong "an empty folder is shown"
grep -q 'no kept samples' "$TMP/err" || wrong "$(cat "$TMP/err")"
# A session with ticks of a minute has kept the seconds until its end.
mkdir "$TMP/long"
start "$PROFTOP" -b -n 0 -d 60 --keep "$TMP/long" -p "$spin" >/dev/null
i=0
until [ -s "$TMP/long/00000001.keep" ] || [ $((i += 1)) -gt 300 ]; do sleep 0.1; done
kill -INT "$last"
wait "$last"
taken=$("$PROFTOP" --open "$TMP/long" -b --format=ndjson | sed 's/.*"taken":\([0-9]*\).*/\1/')
[ "${taken:-0}" -gt 0 ] || wrong "of a tick of a minute $taken samples are kept"
# A disk that is full is an error, also if it is so at the end.
mkdir "$TMP/full"
if unshare -m true 2>"$TMP/null"; then
	unshare -m sh -c "mount -t tmpfs -o size=64k none '$TMP/full' &&
		{ head -c 65536 /dev/zero >'$TMP/full/fill'; exec '$PROFTOP' -b -n 2 -d 1 --keep '$TMP/full' -p $spin; }" \
		>/dev/null 2>"$TMP/err" && wrong 'a full disk: exit 0'
	grep -q 'keep has ended: cannot write: No space left' "$TMP/err" || wrong "a full disk: $(cat "$TMP/err")"
fi
# What is left out is said.
printf damaged >"$TMP/long/00000009.keep"
"$PROFTOP" --open "$TMP/long" -b | grep -q 'damaged or cut short: 1' || wrong 'a damaged segment is not reported'
mkdir "$TMP/threads" && : >"$TMP/threads/data"
expect 1 'perf record --threads writes one' -b --replay "$TMP/threads"
"$PROFTOP" --open "$TMP/nothing" -b >/dev/null 2>"$TMP/err" && wrong "no folder is shown"
grep -q 'no such folder' "$TMP/err" || wrong "$(cat "$TMP/err")"
finish
