#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Some hundred processes that sleep, some that work, many threads, and a fork storm beside: the
# working ones are shown under their names, the account holds, and neither the start, nor memory,
# nor descriptors grow with the crowd.
. "$(dirname "$0")/lib"
need_perf
need setsid

# Separate sessions, as in a terminal: the kernel shares the CPUs among sessions first.
SLEEPERS=${SLEEPERS:-500} ACTIVE=${ACTIVE:-30} THREADS=${THREADS:-300}

# The best of three: CPU time of the program from its start to its end after one tick, in ms.
start_ms() {
	python3 - "$PROFTOP" <<'END'
import resource, subprocess, sys
def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)
times = []
for _ in range(3):
    before = cpu_ms()
    subprocess.run([sys.argv[1], "-b", "-n", "1", "-d", "0.1", "--rows=10"], check=True, stdout=subprocess.DEVNULL)
    times.append(cpu_ms() - before)
print(round(min(times)))
END
}

alone=$(start_ms)
start setsid "$PROGRAMS/crowd" "$SLEEPERS" 0 >"$TMP/sleepers"
i=0
until grep -q ready "$TMP/sleepers"; do
	kill -0 "$last" 2>/dev/null && [ $((i = i + 1)) -lt 300 ] || skip "not on this machine: $SLEEPERS processes"
	sleep 0.1
done
crowded=$(start_ms)
echo "CPU time from start to the end of the first tick: alone $alone ms, beside $SLEEPERS sleepers $crowded ms"
# Reading all of them would take several times as long.
[ "$crowded" -le $((2 * alone + 200)) ] || wrong "the start takes longer among sleepers: $alone, then $crowded ms"

start setsid "$PROGRAMS/crowd" 0 "$ACTIVE" "$THREADS" >"$TMP/active"
i=0
until grep -q ready "$TMP/active"; do
	kill -0 "$last" 2>/dev/null && [ $((i = i + 1)) -lt 300 ] || skip "not on this machine: $((ACTIVE * THREADS)) threads"
	sleep 0.1
done
start setsid "$PROGRAMS/storm" 60 >/dev/null
"$PROFTOP" -b -n 6 -d 0.5 --rows=0 --format=ndjson >"$TMP/out" 2>"$TMP/err" &
p=$!
pids="$pids $p"
fds=0
while [ -e "/proc/$p/exe" ]; do
	# shellcheck disable=SC2012 # numbers only
	n=$(ls "/proc/$p/fd" 2>/dev/null | wc -l)
	[ "$n" -le "$fds" ] || fds=$n
	sleep 0.2
done
wait "$p" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/ndjson.py" check "$TMP/out" || bad=1
python3 - "$TMP/out" <<'END' || bad=1
import json, sys
ticks = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
comms = {r["comm"] for t in ticks for r in t["rows"]}
def kind(k):
    return sum(c.startswith(k) for c in comms)
print(f"comms: active {kind('crowd-a')}, with threads {kind('crowd-m')}, storm {kind('storm')}, "
      f"sleepers {kind('crowd-s')}; rss {max(t['self']['rss_kb'] for t in ticks) >> 10} MiB")
last = [r for t in ticks[-3:] for r in t["rows"] if r["comm"].startswith("crowd-") and r["kind"] == "u"]
named = sum(r["self"] for r in last if r["symbol"] == "short_work")
# A process whose first thread was not seen yet has the name of another one, until it is read.
crowd = sum(r["self"] for t in ticks[-3:] for r in t["rows"] if r["comm"].startswith("crowd-"))
threads = sum(r["self"] for t in ticks[-3:] for r in t["rows"] if r["comm"].startswith("crowd-t"))
if not kind("crowd-a") or not kind("crowd-m") or not kind("storm") or kind("crowd-s"):
    sys.exit("wrong: not the processes that work: " + " ".join(sorted(comms)))
if threads > 2 + 0.02 * crowd:
    sys.exit(f"wrong: {threads} of {crowd} samples of the last ticks have the name of a thread")
if 2 * named < sum(r["self"] for r in last) or not named:
    sys.exit(f"wrong: only {named} of {sum(r['self'] for r in last)} samples of the crowd have their name")
if any("task_table_full" in t["account"] for t in ticks):
    sys.exit("wrong: more tasks than there is room for")
if max(t["self"]["rss_kb"] for t in ticks) > 150 << 10:
    sys.exit("wrong: more than 150 MiB")
END
echo "descriptors: $fds"
[ "$fds" -le $((96 + 8 * $(nproc))) ] || wrong "$fds descriptors"
finish
