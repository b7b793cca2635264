# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the waits of all ticks of an NDJSON output with the clocks of wait_truth, or with a replay.

Usage: waits.py NDJSON TRUTH
       waits.py --same NDJSON REPLAYED
       waits.py --functions NDJSON TRUTH
       waits.py --sum NDJSON TRUTH
       waits.py --kept NDJSON OPENED
       waits.py --last NDJSON SECONDS
"""
import json
import sys

KINDS = ("cpu", "runq", "lock", "cond", "poll", "sleep", "pipe", "disk", "fault", "child", "kthread", "other")
LONGEST = 0.03  # of one wait
FULL = 0.9  # pressure on the CPUs: there records may be lost, which is reported; times are not judged then
FUNCTIONS = {"lock": "take_turn", "pipe": "read_message", "cond": "wait_for_work", "disk": "sync_file"}
# The CPU clock of a thread counts its switches, which end with their record: perf's records of a switch are 2 to 11 us
# later than its sched:sched_switch, see sched_beside.
SWITCH = 12e-6
SAME = 0.02  # live and replayed: no switch ends the last tick
SHARE, LEAST = 0.02, 0.06  # 2 %, or 60 ms of 2 s: a sleep ends with a time in the run queue


def near(bad, name, got, want, less=0, more=0):
    """Compare two times; @less and @more: the clocks are unsure by so much."""
    error = max(SHARE * want, LEAST)
    if not want - error - less <= got <= want + error + more:
        bad.append(f"{name} {got:.3f} s, by its clocks {want:.3f} s, unsure by -{less:.3f} +{more:.3f} s")


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def sums_of(ticks, bad):
    """Return the seconds by thread and kind."""
    threads = {}
    for tick in ticks:
        w = tick.get("waits")
        if not w:
            continue
        if w["switched"] != w["with_stack"] + w["without_stack"]:
            bad.append(f"account: {w['switched']} switches")
        if w["lost"] and tick.get("pressure", {}).get("cpu", 1) < FULL:
            bad.append(f"{w['lost']} switches lost")
        for process in w["processes"]:
            for t in process["threads"]:
                sums = threads.setdefault(t["tid"], {})
                for k in KINDS:
                    sums[k] = sums.get(k, 0) + t.get(k, 0)
    return threads


def same():
    """Running, run-queue and waiting time of each thread are the same."""
    bad = []
    live, again = (sums_of(read(path), bad) for path in sys.argv[2:])
    for tid, times in live.items():
        other = again.get(tid, {})
        for what, kinds in (("cpu", ("cpu",)), ("runq", ("runq",)), ("waits", KINDS[2:])):
            a, b = (sum(t.get(k, 0) for k in kinds) for t in (times, other))
            if abs(b - a) > max(SHARE * a, SAME):
                bad.append(f"{tid}: {what} {a:.3f} s live, {b:.3f} s replayed")
    if len(live) < 10:
        bad.append(f"{len(live)} threads")
    return bad


def functions():
    """The waits below the function of each kind: its clocks, and the sleeps that are not in them."""
    bad, wanted, unsure, queue = [], {}, {}, {}
    ticks = read(sys.argv[2])
    threads = sums_of(ticks, bad)
    with open(sys.argv[3], encoding="utf-8") as f:
        truth = [line.split() for line in f]
    for tid, kind, *clocks in truth:
        if kind not in FUNCTIONS:
            continue
        wait, _, _, life, *_ = (int(x) / 1e9 for x in clocks)
        t = threads.get(int(tid), {})
        wanted[kind] = wanted.get(kind, 0) + wait + (t.get("sleep", 0) if kind in ("lock", "disk") else 0)
        unsure[kind] = unsure.get(kind, 0) + life
        queue[kind] = queue.get(kind, 0) + t.get("runq", 0)
    for kind, function in FUNCTIONS.items():
        got = sum(r["wait_s"] for tick in ticks for r in tick["rows"]
                  if r["event"] == "waits" and r["symbol"] == function)
        near(bad, function, got, wanted[kind], queue[kind], queue[kind] + unsure[kind])
    return bad


def whole():
    """The columns of all threads add up to the lives of the threads, within 0.5 %."""
    bad = []
    got = sum(sum(t.values()) for t in sums_of(read(sys.argv[2]), bad).values())
    with open(sys.argv[3], encoding="utf-8") as f:
        truth = [[int(x) / 1e9 for x in line.split()[2:]] for line in f]
    # The main thread waits for them to end.
    threads, longest, unsure = len(truth) + 1, max(t[1] for t in truth), sum(t[3] for t in truth)
    want = sum(t[1] for t in truth) + longest
    print(f"columns {got:.3f} s, {threads} threads {want:.3f} s, begin and end unsure by {unsure:.3f} s")
    if not want * 0.995 < got < want * 1.005 + unsure:
        bad.append("the columns do not add up")
    return bad


def compare():
    ticks, bad = read(sys.argv[1]), []
    threads, waking, bare = sums_of(ticks, bad), True, 0
    named = not any(tick["names"]["waiting"] for tick in ticks)
    for tick in ticks:
        w = tick.get("waits")
        if not w:
            continue
        waking = waking and w["waking"]
        bare += w["without_stack"]
    with open(sys.argv[2], encoding="utf-8") as f:
        truth = [line.split() for line in f]
    for tid, kind, *clocks in truth:
        t = threads.get(int(tid), {})
        wait, wall, cpu, unsure, asked = (int(x) / 1e9 for x in clocks[:5])
        # A CPU clock is without the time that the hypervisor takes; between two switches it counts as running.
        stolen = int(clocks[6]) / 1e9
        near(bad, f"{kind} {tid}: all", sum(t.get(k, 0) for k in KINDS), wall, more=unsure)
        near(bad, f"{kind} {tid}: cpu", t.get("cpu", 0), cpu, int(clocks[5]) * SWITCH, stolen)
        # The time in the run queue after a wake-up is no sleep; a timer may be late on a CPU that was taken.
        if asked and waking:
            near(bad, f"{kind} {tid}: asked", t.get(kind, 0), asked, more=stolen)
        if kind == "runq":
            near(bad, f"{kind} {tid}: wait", t.get(kind, 0), wait, stolen, unsure)
            continue
        # A thread may lose its CPU between its wait and the look at its clock. Before its libraries are
        # read, a condition variable is a futex as a lock is; before the kernel is, waits are of no kind.
        early = t.get("lock", 0) if kind == "cond" else 0
        # Waits before the program was read count as others of their thread.
        late = (0 if named else t.get("other", 0)) + min(bare, len(truth)) * LONGEST
        near(bad, f"{kind} {tid}: wait", t.get(kind, 0) + early, wait, t.get("runq", 0) + late + stolen,
             t.get("runq", 0) + unsure)
    if len(truth) < 10:
        bad.append(f"{len(truth)} threads")
    return bad


def unnamed():
    """Most waits have frames of their language, once its readers run."""
    with open(sys.argv[2], encoding="utf-8") as f:
        lang = [json.loads(line)["lang"] for line in f][2:]
    named, none = (sum(sum(tick[k] for k in keys) for tick in lang) for keys in (("certain", "guessed"), ("none",)))
    # On a full machine a reader gets its CPU after the thread is awake again.
    late = sum(tick["none_by"].get("not_read", 0) for tick in lang)
    good = named > 3 * (none - late) and named > late and named > 20
    return [] if good else [f"{named} waits with functions, {none} without: {lang}"]


def kinds_of(path):
    """Return the share of each kind in the waits."""
    seconds = {}
    for tick in read(path):
        for r in tick["rows"]:
            if r["event"] == "waits" and r["module"] == "[wait]":
                seconds[r["symbol"]] = seconds.get(r["symbol"], 0) + r.get("wait_s", 0)
    return {kind: s / (sum(seconds.values()) or 1) for kind, s in seconds.items()}


def kept():
    """Waits that were kept are of the same kinds."""
    live, opened = (kinds_of(path) for path in sys.argv[2:])
    return [f"{kind}: {live.get(kind, 0):.3f} of the waits live, {opened.get(kind, 0):.3f} as kept"
            for kind in {*live, *opened} if abs(live.get(kind, 0) - opened.get(kind, 0)) > 0.05]


def last():
    """The last tick has so many seconds of waits of all kinds together."""
    bad = []
    seconds = sum(sum(t.values()) - t["cpu"] for t in sums_of(read(sys.argv[2])[-1:], bad).values())
    return bad if seconds >= float(sys.argv[3]) else bad + [f"{seconds:.3f} of {sys.argv[3]} s in the last tick"]


def lost(path):
    return sum(tick["waits"]["lost"] for tick in read(path) if tick.get("waits"))


def main():
    what = {"--same": same, "--named": unnamed, "--functions": functions, "--sum": whole, "--kept": kept,
            "--last": last}
    bad = what.get(sys.argv[1], compare)()
    nr = max(lost(path) for path in sys.argv[1:] if path.endswith(("/out", "/again")))
    if nr and not any("lost" in line for line in bad):
        print(f"not judged on a full machine: {nr} switches lost")
        bad = []
    for line in bad:
        print(line)
    sys.exit(bool(bad))


main()
