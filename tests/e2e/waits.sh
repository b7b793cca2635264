#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Known waits (tests/programs/wait_truth.c): seconds by kind of each thread, compared with its clocks,
# live and from recordings; of a committed recording, compared with perf script.
. "$(dirname "$0")/lib"

if [ "$(uname -m)" = x86_64 ]; then
	python3 "$HERE/waits_replay.py" "$PROFTOP" "$TMP" || wrong 'the waits of the committed recording differ'
fi

need_perf
mkdir "$TMP/keep"
"$PROFTOP" --time=all -d 10 --ring 4M --format=ndjson --rows=0 --keep "$TMP/keep" --record "$TMP/data" -- \
	"$PROGRAMS/wait_truth" 1.5 "$TMP/truth" "$TMP/synced" >"$TMP/out" 2>"$TMP/live" || wrong "exit $?: $(cat "$TMP/live")"
"$PROFTOP" --open "$TMP/keep" -b --rows=0 --format=ndjson >"$TMP/opened" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/waits.py" --kept "$TMP/out" "$TMP/opened" || wrong 'kept waits differ'
python3 "$HERE/waits.py" "$TMP/out" "$TMP/truth" || wrong 'the times differ'
# On a busy machine records may be lost, which is reported.
grep -q 'samples were lost' "$TMP/live" && lost=1 || lost=

# The recording has the same times. Names that were not read yet make another kind of a wait.
"$PROFTOP" --replay "$TMP/data" --time=all --format=ndjson >"$TMP/again" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
[ "$lost" ] || python3 "$HERE/waits.py" "$TMP/again" "$TMP/truth" || wrong 'the times of the recording differ'
[ "$lost" ] || python3 "$HERE/waits.py" --same "$TMP/out" "$TMP/again" || wrong 'live and replay differ'

# Waiting threads of Python have its functions: their memory is read when they fall asleep.
if "$PROFTOP" --check 2>/dev/null | grep -qi 'python'; then
	python3 "$HERE/waits_python.py" &
	pids="$pids $!"
	"$PROFTOP" --time=wait -b -n 4 -d 0.5 --format=ndjson -p $! >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
	python3 "$HERE/waits.py" --named "$TMP/out" || wrong 'waits of Python without its functions'
fi

# Waits go on after exec in a second thread, which then has the id of the first one; replayed also.
"$PROFTOP" --time=all -b -n 3 --format=ndjson --record "$TMP/data" -- "$PROGRAMS/thread_exec" 9 >"$TMP/out" 2>"$TMP/err" ||
	wrong "exit $?: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/data" -b --time=all --format=ndjson >"$TMP/again" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/waits.py" --last "$TMP/out" 0.8 || wrong 'no waits after exec of a thread'
python3 "$HERE/waits.py" --last "$TMP/again" 1.8 || wrong 'no waits after exec of a thread in the recording'

# A program that slept before the start has its stack, marked as found asleep.
sleep 1000 &
asleep=$!
pids="$pids $asleep"
until grep -q sleep "/proc/$asleep/wchan"; do sleep 0.01; done
python3 "$HERE/until.py" 'any("nanosleep" in r["symbol"] for r in ticks[-1]["rows"] if r["event"] == "waits")' \
	"$PROFTOP" --time=wait -d 0.2 -p "$asleep" >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q nanosleep || wrong 'no function of a task that slept before the start'
tail -n 1 "$TMP/out" | grep -qF '"symbol":"[found asleep]"' || wrong 'not marked as found asleep'

command -v perf >/dev/null || { echo "skipped: not installed: perf"; finish; }
# One of perf.
perf record -q -e cpu-clock,context-switches/period=1/ --switch-events --call-graph dwarf -o "$TMP/perf.data" -- \
	"$PROGRAMS/wait_truth" 0.6 "$TMP/truth" "$TMP/synced" 2>"$TMP/err" || wrong "perf record: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/perf.data" --time=wait --format=ndjson >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/waits.py" "$TMP/out" "$TMP/truth" || wrong "the times of perf's recording differ"

# One without switches.
perf record -q -e cpu-clock -o "$TMP/perf.data" -- true 2>"$TMP/err" || wrong "perf record: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/perf.data" --time=wait -b >"$TMP/out" 2>"$TMP/err" && wrong 'waits without switches'
grep -q 'no records of switches' "$TMP/err" || wrong "$(cat "$TMP/err")"
finish
