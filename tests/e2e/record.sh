#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# perf and --replay read the output of --record: the same number of samples, the same stacks, the
# lost ones reported; also when it is killed, or the disk is full.
. "$(dirname "$0")/lib"
need_perf
need perf

data=$TMP/out.data
rows="--rows=1 --format=ndjson"

# field NAME: of the account, summed over the ticks on standard input.
field() {
	python3 -c 'import json, sys
print(sum(json.loads(line)["account"][sys.argv[1]] for line in sys.stdin))' "$1"
}

# How many samples proftop said it had recorded.
said() {
	sed -n 's/^proftop: .*: \([0-9]*\) samples, .*/\1/p' "$TMP/err"
}

replayed() {
	"$PROFTOP" --replay "$data" -b $rows | field "$1"
}

# until_size FILE BYTES: wait until the file has grown so far, a minute at most.
until_size() {
	for _ in $(seq 600); do
		[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -lt "$2" ] || return 0
		sleep 0.1
	done
}

# more FILE NR: wait until it has so many more lines, a minute at most or until proftop has ended.
more() {
	all=$(($(wc -l <"$1") + $2)) i=0
	until [ "$(wc -l <"$1")" -ge "$all" ] || ! kill -0 "$p" 2>/dev/null || [ $((i += 1)) -gt 600 ]; do sleep 0.1; done
}

quietly() {
	"$@" >"$TMP/out" 2>"$TMP/perf.err" || wrong "$*: exit $?"
	# A busy machine loses samples, or a file system with an object is gone, and perf says so; everything else is a
	# fault of the file.
	sed -i '/^Warning:$/d; /^dso cache fstat failed/d; /lost .* chunks\|^Processed .* samples and lost\|^Check IO\/CPU overload/d; /^$/d' "$TMP/perf.err"
	[ ! -s "$TMP/perf.err" ] || wrong "$*: $(head -n 3 "$TMP/perf.err")"
}

# A program that is there already, 2 s.
cp "$PROGRAMS/recurse" "$TMP/recurse"
start "$TMP/recurse" 60 >/dev/null
recurse=$last
sleep 0.3
run -b -n 4 -d 0.5 -F 999 -e cpu-clock -p "$recurse" --record "$data" $rows
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
nr=$(said)
ticks=$(field taken <"$TMP/out")
[ "${nr:-0}" -ge 50 ] || wrong "only ${nr:-no} samples: $(cat "$TMP/err")"
[ "${nr:-0}" -ge "$ticks" ] || wrong "$nr samples recorded, but $ticks were shown"
[ "$(stat -c %a "$data")" = 600 ] || wrong "mode $(stat -c %a "$data")"
quietly perf script --no-inline -i "$data" -F comm,tid,time,ip,sym
theirs=$(grep -c '^[^[:space:]]' "$TMP/out")
[ "$theirs" = "$nr" ] || wrong "perf script has $theirs samples, proftop recorded $nr"
[ "$(replayed taken)" = "$nr" ] || wrong "the replay has $(replayed taken) samples, proftop recorded $nr"

# A recording has no idle time: how busy the CPUs and the system were is not known, and not 0.
"$PROFTOP" --replay "$data" -b --rows=0 | grep -q '^cpus .* recorded  own cost' || wrong "busy CPUs of a recording"
"$PROFTOP" --replay "$data" -b --rows=0 --format=ndjson >"$TMP/out"
grep -q '"busy":null' "$TMP/out" && grep -q '"pressure":{"cpu":null' "$TMP/out" || wrong "busy in NDJSON: $(cat "$TMP/out")"
"$HERE/../compare-stacks" "$PROFTOP" "$data" >"$TMP/stacks" || wrong "stacks: $(cat "$TMP/stacks")"
tail -n 1 "$TMP/stacks"
quietly perf report --no-inline -i "$data" --stdio --no-children -g none
grep -q 'leaf_a' "$TMP/out" || wrong "perf report knows no leaf_a"
quietly perf report -i "$data" --header-only
grep -q "cmdline : .*--record" "$TMP/out" || wrong "no command line in the header"
quietly perf buildid-list -i "$data"
grep -q '^[0-9a-f]\{40\} .*/recurse$' "$TMP/out" || wrong "no build-id of recurse: $(cat "$TMP/out")"

# From the screen, in the middle: of the time between the two commands alone.
timeout 60 "$PROFTOP" -d 0.5 -F 499 -e cpu-clock -p "$recurse" \
	--script "<tick><tick>:record $TMP/screen.data<Enter><tick><tick><tick>:record<Enter><tick>" >"$TMP/screens" 2>"$TMP/err" ||
	wrong "screen: exit $?: $(cat "$TMP/err")"
quietly perf script --no-inline -i "$TMP/screen.data" -F comm,tid,time,ip,sym
theirs=$(grep -c '^[^[:space:]]' "$TMP/out")
[ "$theirs" -ge 10 ] || wrong "screen: $theirs samples: $(cat "$TMP/screens")"
grep -q leaf_a "$TMP/out" || wrong "screen: no leaf_a"
data=$TMP/screen.data
[ "$(replayed taken)" = "$theirs" ] || wrong "screen: the replay has $(replayed taken) samples, perf script $theirs"
data=$TMP/out.data
# Quit while it is written: it is complete as well, and reported.
timeout 60 "$PROFTOP" -d 0.5 -F 499 -e cpu-clock -p "$recurse" \
	--script "<tick>:record $TMP/screen.data<Enter><tick><tick>" >"$TMP/screens" 2>"$TMP/err"
quietly perf script --no-inline -i "$TMP/screen.data" -F tid
[ "$(grep -c . "$TMP/out")" = "$(said)" ] || wrong "screen, quit: $(cat "$TMP/err")"
# With records in memory: these first.
mkdir "$TMP/saved"
timeout 60 "$PROFTOP" -d 0.5 -F 499 -e cpu-clock -p "$recurse" --save-dir "$TMP/saved" --trap 'cpu > 100000' \
	--script "<tick><tick><tick><tick>:record $TMP/screen.data<Enter><tick>:record<Enter><tick>" >"$TMP/screens" 2>"$TMP/err"
quietly perf script --no-inline -i "$TMP/screen.data" -F time
awk '{ sub(":", "", $1); if (!n++ || $1 < a) a = $1; if ($1 > b) b = $1 } END { exit !(n && b - a > 1.2) }' "$TMP/out" ||
	wrong "screen: no past: $(head -n 1 "$TMP/out") to $(tail -n 1 "$TMP/out")"
# A file that is something else stays.
echo mine >"$TMP/mine"
timeout 60 "$PROFTOP" -d 0.5 -p "$recurse" --size 160x24 \
	--script "<tick>:record $TMP/mine<Enter><tick><tick>" >"$TMP/screens" 2>"$TMP/err"
grep -q 'exists and is not a recording' "$TMP/screens" || wrong "screen: $(cat "$TMP/screens")"
[ "$(cat "$TMP/mine")" = mine ] || wrong "screen: another file is replaced"

# Another program took its place: no names rather than wrong ones. The same again, as another file: names.
kill "$recurse"
wait "$recurse" 2>/dev/null
cp "$PROGRAMS/spin" "$TMP/recurse"
"$PROFTOP" --replay "$data" -b >"$TMP/out"
grep -q 'recurse differs from the recorded file' "$TMP/out" || wrong "replaced: $(head "$TMP/out")"
grep -q 'recurse+0x' "$TMP/out" || wrong "replaced: no addresses: $(head "$TMP/out")"
cp "$PROGRAMS/recurse" "$TMP/again" && mv "$TMP/again" "$TMP/recurse"
"$PROFTOP" --replay "$data" -b >"$TMP/out"
grep -q leaf_a "$TMP/out" || wrong "the same again: $(head "$TMP/out")"
! grep -q 'replaced since' "$TMP/out" || wrong "the same again: still replaced"

# All processes, the kernel, a new command; the older recording is kept.
# Each page fault is a sample: a rate may skip all those of a short program.
"$PROFTOP" -b -d 0.5 -F 999 -e cpu-clock,page-faults/period=1/ --rows=0 --record "$data" -- \
	sh -c 'for i in 1 2; do ls -lR /usr/include >/dev/null; done' >"$TMP/out" 2>"$TMP/err" ||
	wrong "command: exit $?: $(cat "$TMP/err")"
[ -f "$data.old" ] || wrong "the older recording is gone"
nr=$(said)
quietly perf script --no-inline -i "$data" -F comm,tid,time,event,ip,sym
theirs=$(grep -c '^[^[:space:]]' "$TMP/out")
[ "$theirs" = "$nr" ] || wrong "command: perf script has $theirs samples, proftop recorded $nr"
grep -q '^ls .*page-faults' "$TMP/out" || wrong "command: no page faults of ls"
grep -q 'asm_exc_page_fault\|handle_mm_fault' "$TMP/out" || echo "(no kernel symbols here)"

# The smallest ring, without a reader for a while after the first tick: the kernel's losses are in the file.
start "$PROGRAMS/spin" 2
: >"$TMP/lost"
"$PROFTOP" -b -d 0.5 -F 4999 -e cpu-clock --ring 64K --record "$data" $rows >"$TMP/lost" 2>"$TMP/err" &
p=$!
pids="$pids $p"
more "$TMP/lost" 1
kill -STOP "$p"
sleep 0.7
kill -CONT "$p"
more "$TMP/lost" 3
kill -INT "$p"
wait "$p"
rc=$?
[ "$rc" = 130 ] || wrong "overflow: exit $rc: $(cat "$TMP/err")"
lost=$(field lost <"$TMP/lost")
[ "$lost" -gt 0 ] || wrong "nothing was lost"
[ "$(replayed lost)" -ge "$lost" ] || wrong "the replay lost $(replayed lost), proftop $lost"
perf report --stats -i "$data" >"$TMP/stats" 2>&1
grep -q "LOST events: *[1-9]" "$TMP/stats" || wrong "perf finds no LOST record: $(head -n 12 "$TMP/stats")"

# Tracepoints: perf reads no file that has one without its format.
if [ "$(id -u)" = 0 ]; then
	timeout 60 "$PROFTOP" -b -n 1 -d 0.5 -F 99 -e cpu-clock -e sched:sched_process_fork -e sched:sched_process_fork:k \
		-e syscalls:sys_enter_openat --record "$data" $rows >"$TMP/live" 2>"$TMP/err" &
	timeout=$!
	pids="$pids $timeout"
	own=$(cat "/proc/$timeout/task/$timeout/children" 2>/dev/null)
	until [ -n "$own" ] || ! kill -0 $timeout 2>/dev/null; do
		sleep 0.05
		own=$(cat "/proc/$timeout/task/$timeout/children" 2>/dev/null)
	done
	wait "$timeout" || wrong "tracepoints: exit $?: $(cat "$TMP/err")"
	# Its own samples are shown nowhere: neither live nor in the replay.
	[ "$(field own <"$TMP/live")" -gt 0 ] || wrong "tracepoints: proftop opens no file"
	quietly perf script --no-inline -i "$data" -F pid
	! grep -qx " *${own% } *" "$TMP/out" || wrong "tracepoints: own samples of ${own% } are in the recording"
	quietly perf script --no-inline -i "$data" -F event,ip
	theirs=$(grep -c '^[^[:space:]].*:\|^ *cpu-clock' "$TMP/out")
	[ "$theirs" -ge 1 ] || wrong "tracepoints: perf script has no samples"
	quietly perf evlist -i "$data"
	grep -q '^sched:sched_process_fork$' "$TMP/out" || wrong "tracepoints: $(cat "$TMP/out")"
fi

# Neither CPU nor time in it: perf prints none, and the date is the recording's.
if perf record -q --no-inherit --per-thread -e cpu-clock -c 2000000 -o "$TMP/bare.data" -- "$PROGRAMS/truth_chain" chain 1 2>/dev/null; then
	touch -d 2020-02-03T04:05:06Z "$TMP/bare.data"
	"$PROFTOP" --replay "$TMP/bare.data" -b --format=perf-script >"$TMP/out"
	grep -q '^t[a-z_]*chain *[0-9]*/[0-9]*  *2000000 cpu-clock: $' "$TMP/out" || wrong "no CPU, no time, fixed period: $(head -n 1 "$TMP/out")"
	"$PROFTOP" --replay "$TMP/bare.data" -b | grep -q '^proftop [^ ]*  2020-02-03T04:05:06Z' || wrong "date: $("$PROFTOP" --replay "$TMP/bare.data" -b | head -n 1)"
fi

# A program that was replaced since is in perf's cache.
cp "$PROGRAMS/truth_chain" "$TMP/program"
mkdir "$TMP/home"
hottest() { HOME=$1 "$PROFTOP" --replay "$TMP/cached.data" -b --rows=1 --format=ndjson | sed 's/.*"rows":\[{"symbol":"\([^"]*\)".*/\1/'; }
if HOME=$TMP/home perf record -q -e cpu-clock:u -o "$TMP/cached.data" -- "$TMP/program" chain 1 >/dev/null 2>&1; then
	name=$(hottest "$TMP")
	cp "$PROGRAMS/spin" "$TMP/other" && mv "$TMP/other" "$TMP/program"
	[ "$(hottest "$TMP/home")" = "$name" ] || wrong "perf's cache: $(hottest "$TMP/home"), not $name"
	[ "$(hottest "$TMP")" != "$name" ] || wrong "$name without the cache"
fi

# Killed: the written part can be read. (The recording before is large already.)
rm -f "$data"
"$PROFTOP" -b -F 999 -e cpu-clock --record "$data" $rows >/dev/null 2>&1 &
p=$!
pids="$pids $p"
until_size "$data" 8000000
kill -KILL "$p"
wait "$p" 2>/dev/null
[ "$(replayed taken)" -gt 50 ] || wrong "killed: only $(replayed taken) samples"

# The file may not grow: a sentence, exit 1, and a file that can be read.
(ulimit -f 20000 && "$PROFTOP" -b -n 3 -d 0.5 -F 999 -e cpu-clock --record "$data" $rows >/dev/null 2>"$TMP/err")
rc=$?
[ "$rc" = 1 ] || wrong "disk full: exit $rc"
grep -q 'not complete: File too large' "$TMP/err" || wrong "disk full: $(cat "$TMP/err")"
quietly perf script --no-inline -i "$data" -F ip
[ -s "$TMP/out" ] || wrong "disk full: no samples"

expect 1 "not a regular file" -b -n 1 --record /dev/null
expect 2 "--record and --replay exclude each other" --replay "$data" --record "$TMP/again"
[ -c /dev/null ] || wrong "/dev/null is gone"
finish
