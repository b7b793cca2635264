#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# CPU % equals that of /proc/PID/stat for programs that run in short pieces: of processes, of the system, with
# threads; and of all children that a command had.
. "$(dirname "$0")/lib"
need_perf

start env LASTS=600 "$PROGRAMS/pieces"
one=$last
start env LASTS=600 WORK=50 SLEEP=1000 "$PROGRAMS/pieces"
few=$last
start env LASTS=600 THREADS=4 WORK=100 SLEEP=900 "$PROGRAMS/pieces"
threads=$last

# compare WHAT OPTION...
compare() {
	what=$1
	shift
	python3 "$HERE/cpu.py" "$PROFTOP" "$one,$few,$threads" "$@" 2>"$TMP/err" || wrong "$what: $(cat "$TMP/err")"
}
# At so low a rate, shares by samples are off by a third.
compare 'processes' -F 49 -p "$one,$few,$threads"
compare 'the system' -F 49 -e cpu-clock

kill "$few" "$threads"
# Short children, by the time of their parent and of its children. Events see two thirds of 60 us.
python3 "$HERE/cpu.py" --children "$PROFTOP" "$PROGRAMS/pieces" 60 2>"$TMP/err" ||
	wrong "children of 60 us: $(cat "$TMP/err")"

# A recording has no clocks.
"$PROFTOP" -b -n 1 -d 1 --record "$TMP/data" -p "$one" --rows=0 >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/data" -b --format=ndjson --rows=0 >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
grep -q '"cpu":{' "$TMP/out" && wrong 'CPU time by clocks in a recording'
finish
