#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Exit codes and ends: lists, signals, targets that exit, a reader that leaves, rights that are missing.
. "$(dirname "$0")/lib"
need_perf

expect 0 '' --help
grep -q -- '--list-events' "$TMP/out" || wrong "--help"
expect 0 '' --version
grep -qE '^proftop [0-9]+\.[0-9]+' "$TMP/out" || wrong "--version: $(cat "$TMP/out")"
expect 0 '' --list-columns
grep -q '^total ' "$TMP/out" || wrong "--list-columns: $(cat "$TMP/out")"
expect 0 '' --list-keys
grep -q 'F1 ? h' "$TMP/out" || wrong "--list-keys"
expect 0 '' --list-events
grep -q 'cpu-clock' "$TMP/out" || wrong "--list-events"
grep -qE 'cpu-clock.*not here' "$TMP/out" && wrong "--list-events: cpu-clock is not here"

# Ticks are counted, and are as long as they were wanted: no longer than the run, and not all late.
expect 0 '' -b -n 3 -d 0.3
[ "$(grep -c '^proftop ' "$TMP/out")" = 3 ] || wrong "-n 3: $(grep -c '^proftop ' "$TMP/out") ticks"
grep -q "$(printf '\033')" "$TMP/out" && wrong "an escape in text"
for try in 1 2 3 4 5; do
	begin=$(date +%s%N)
	expect 0 '' -n 2 -d 0.5 --format=ndjson --rows=3
	python3 - "$TMP/out" $(($(date +%s%N) - begin)) <<'PY'
import json, sys
ticks = [json.loads(l) for l in open(sys.argv[1])]
took = sum(t["interval_ns"] for t in ticks)
ok = len(ticks) == 2 and all(len(t["rows"]) <= 3 for t in ticks) and 0.8e9 < took < int(sys.argv[2]) + 0.1e9
# A busy machine ends a tick late.
sys.exit(2 if ok and took >= 5e9 else not ok)
PY
	late=$?
	[ "$late" = 2 ] || break
done
[ "$late" = 0 ] || wrong "length of ticks, rows: $(cut -c 1-300 "$TMP/out")"

# With --script the command ends at a closed pipe, as under a shell.
expect 0 '' --script '<tick>' -d 0.3 -- sh -c "grep SigIgn /proc/self/status >'$TMP/ignored'; sleep 1"
ignored=$(sed -n 's/SigIgn:\t//p' "$TMP/ignored")
[ $((0x$ignored & 0x1000)) = 0 ] || wrong "--script: the command ignores SIGPIPE: $ignored"

# Signals: the output is whole, and the exit code names the signal. The caller may ignore some of
# them, which a shell cannot undo.
fresh='import os, signal, sys
for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE: signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])'
python3 - "$PROFTOP" "$TMP" <<'PY' || bad=1
import os, signal, subprocess, sys, time
def fresh():
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(s, signal.SIG_DFL)
started = []
for name in ("INT", "TERM", "HUP"):
    with open(f"{sys.argv[2]}/{name}", "wb") as out:
        started.append((name, subprocess.Popen([sys.argv[1], "-b", "-d", "0.2", "--format=ndjson"], stdout=out,
                                               preexec_fn=fresh)))
end = time.monotonic() + 60
while any(not os.path.getsize(f"{sys.argv[2]}/{name}") for name, _ in started) and time.monotonic() < end:
    time.sleep(0.05)
bad = 0
for name, process in started:
    number = getattr(signal, "SIG" + name)
    process.send_signal(number)
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        code = "none"
    if code != 128 + number:
        print(f"wrong: SIG{name}: exit {code}")
        bad = 1
sys.exit(bad)
PY
python3 "$HERE/ndjson.py" check "$TMP/INT" "$TMP/TERM" "$TMP/HUP" || bad=1

# A reader that leaves ends it quietly, also between two ticks.
for reader in 'head -n 1' 'head -c 10' true; do
	{ timeout 60 "$PROFTOP" -b -d 0.3 2>"$TMP/err"; echo $? >"$TMP/rc"; } | $reader >/dev/null
	[ "$(cat "$TMP/rc")" = 0 ] || wrong "| $reader: exit $(cat "$TMP/rc")"
	[ -s "$TMP/err" ] && wrong "| $reader: $(cat "$TMP/err")"
done

# Saved settings apply where no option is given.
mkdir -p "$TMP/config/proftop"
printf '%s\n' 'frequency = 49' 'window = total' 'time = all' 'error-bars = yes' 'sort-functions = module' \
	>"$TMP/config/proftop/config"
while IFS='|' read -r wanted option; do
	XDG_CONFIG_HOME="$TMP/config" "$PROFTOP" $option --print-config >"$TMP/out" 2>"$TMP/err"
	got=$(for name in window frequency time error-bars sort-functions; do
		sed -n "s/^$name = //p" "$TMP/out"
	done | tr '\n' ' ')
	[ "$got" = "$wanted " ] || wrong "saved settings, $option: $got: $(cat "$TMP/err")"
done <<'END'
total 49 all yes module|
total 77 all yes module|-F 77
last 9 49 all yes module|--window=9
total 49 wait yes module|--time=wait
total 49 all yes comm|--sort=comm
total 49 cpu yes module|-e page-faults
END

# Lists also: each word is written after the reader has exited.
for list in --help --list-keys --print-config; do
	{ sleep 0.2; python3 -c "$fresh" "$PROFTOP" $list 2>"$TMP/err"; echo $? >"$TMP/rc"; } | true
	[ "$(cat "$TMP/rc")" = 0 ] || wrong "$list | true: exit $(cat "$TMP/rc"): $(cat "$TMP/err")"
done

# A target that exits ends batch after its last tick.
start "$PROGRAMS/recurse" 60 >/dev/null
target=$last
: >"$TMP/out"
# In the background: end the target when a tick is printed, 50 s at most.
end_target() {
	i=0
	until [ -s "$TMP/out" ] || [ $((i += 1)) -gt 500 ]; do sleep 0.1; done
	kill "$target"
}
start end_target
run -b -d 0.3 -p "$target" --format=ndjson
[ "$rc" = 0 ] || wrong "target exits: $rc: $(cat "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q '"target_gone":true' || wrong "target exits: not told"

# -p: with the children that run already.
start sh -c "'$PROGRAMS/recurse' 60 >/dev/null; :"
until child=$(cat "/proc/$last/task/$last/children") && [ -n "$child" ]; do sleep 0.02; done
pids="$pids $child"
run_until 'any(r["symbol"] == "leaf_a" for r in ticks[-1]["rows"])' -d 0.3 -p "$last"
grep -q '"symbol":"leaf_a"' "$TMP/out" || wrong "-p: a child that ran before was not sampled: $(cat "$TMP/err")"
kill $child

# A command: sampled from its exec on, its children too; batch ends when it ends.
run -b -d 0.4 --rows=0 --format=ndjson -- sh -c "$PROGRAMS/recurse 1.5 >/dev/null; exit 7"
[ "$rc" = 0 ] || wrong "command: exit $rc: $(cat "$TMP/err")"
grep -q '"symbol":"leaf_a"' "$TMP/out" || wrong "command: its child was not sampled"
python3 "$HERE/ndjson.py" check "$TMP/out" || bad=1
# In the tree it is the root: above it are proftop and the shells that started it.
run --size 110x24 --script '<tick>2<F5><tick><tick>' -d 0.3 -- sh -c "'$PROGRAMS/recurse' 10 >/dev/null; :"
sed -n '/PROCESS TREE/{n;p;}' "$TMP/out" | grep -q ' sh  ' || wrong "the root of the tree: $(cat "$TMP/out" "$TMP/err")"
# A command that still runs is ended; from the screen also.
for how in -n1 "--script=<tick>q"; do
	run -d 0.2 "$how" -- sh -c "echo \$\$ >'$TMP/pid'; exec sleep 60"
	# It ends before its 60 s.
	i=0
	while kill -0 "$(cat "$TMP/pid")" 2>/dev/null && [ $((i += 1)) -lt 200 ]; do sleep 0.1; done
	[ "$i" -lt 200 ] || wrong "$how: the command still runs"
done
# Also in the middle of a long tick.
run -b -n 1 -d 60 --format=ndjson -- sh -c "$PROGRAMS/recurse 0.5 >/dev/null"
[ "$rc" = 0 ] || wrong "end of a command before the end of the tick: exit $rc: $(cat "$TMP/err")"
grep -q '"symbol":"leaf_a"' "$TMP/out" || wrong "end of a command before the end of the tick: no samples"
timeout 10 python3 -c "$fresh" "$PROFTOP" -b -d 0.2 -- sh -c 'kill -PIPE $$; echo survived' >"$TMP/out" 2>"$TMP/err"
grep -q survived "$TMP/out" "$TMP/err" && wrong "the command got our signal mask"

# Without rights: exit 3 and three lines that name a way.
if command -v setpriv >/dev/null && cp "$PROFTOP" "$TMP/proftop" && chmod 755 "$TMP" "$TMP/proftop"; then
	setpriv --reuid=65534 --regid=65534 --clear-groups "$TMP/proftop" -b -n 1 -d 0.2 -p 1 >"$TMP/out" 2>"$TMP/err"
	rc=$?
	[ "$rc" = 3 ] || wrong "foreign process without rights: exit $rc: $(cat "$TMP/err")"
	[ "$(wc -l <"$TMP/err")" -le 3 ] || wrong "more than three lines: $(cat "$TMP/err")"
	if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$TMP/proftop" -b -n 2 -d 0.3 --format=ndjson -- \
			sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' >"$TMP/out" 2>"$TMP/err" ||
			wrong "own command without rights: exit $?: $(cat "$TMP/err")"
		python3 "$HERE/ndjson.py" check "$TMP/out" || bad=1
	fi
fi
finish
