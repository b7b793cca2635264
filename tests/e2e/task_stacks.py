# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the output of --stacks --format=ndjson against the chains of tests/programs/blocked.c and of a Python program.

Usage: task_stacks.py chains FILE... | cut FILE | python FILE
"""
import json
import sys

CALLS = ("nap", "read", "poll", "epoll", "mutex", "cond", "accept", "spin", "handler")
MOST_MS = 5.0


def read(path):
    with open(path, encoding="utf-8") as f:
        return {t["comm"] or t["goroutine"]: t for t in map(json.loads, f)}


def names(thread):
    return [f["symbol"] for f in thread["frames"] if f["module"] != "[kernel]"]


def has_chain(thread, chain):
    """The functions of @chain are on the stack, innermost first, one after another."""
    have = [n for n in names(thread) if n in chain]
    return have == list(chain)


def chains():
    bad, runs = [], [read(path) for path in sys.argv[2:]]
    for call in CALLS:
        threads = [run.get(call) for run in runs]
        if None in threads:
            bad.append(f"no thread {call}")
            continue
        for t in threads:
            if t["stack"] != "complete":
                bad.append(f"{call}: {t['stack']}: {t['why']}")
            if not has_chain(t, (f"inner_{call}", f"middle_{call}", f"outer_{call}")):
                bad.append(f"{call}: {names(t)}")
        # A machine without a free CPU may hold the tracer up: not each time.
        if min(t["stopped_ms"] for t in threads) > MOST_MS:
            bad.append(f"{call}: stopped for {[t['stopped_ms'] for t in threads]} ms")
    for run in runs:
        if not has_chain(run["holder"], ("hold_mutex", "hold")) or run["holder"]["stack"] != "complete":
            bad.append(f"holder: {names(run['holder'])}")
        if [comm for comm, t in run.items() if "LWLock" in t.get("waits_for", "")] != ["cond"]:
            bad.append(f"waits for a lock: {run['cond']}")
        if [t["goroutine"] for t in run.values() if "goroutine" in t] != [1]:
            bad.append(f"goroutines: {list(run)}")
        elif not has_chain(run[1], ("inner_go", "middle_go", "outer_go")) or run[1]["stack"] != "complete":
            bad.append(f"goroutine 1: {run[1]['stack']}, {names(run[1])}")
    print("longest stop", max(t["stopped_ms"] for run in runs for t in run.values()), "ms")
    return bad


def cut():
    threads = read(sys.argv[2])
    bad = [f"{name} was stopped" for name, t in threads.items() if t["stopped_ms"]]
    if threads["read"]["stack"] != "cut" or "inner_read" not in names(threads["read"]):
        bad.append(f"read: {threads['read']}")
    return bad


def python():
    with open(sys.argv[2], encoding="utf-8") as f:
        threads = [names(json.loads(line)) for line in f]
    bad = []
    for chain in (["accept_one", "serve", "<module>"], ["Queue.get", "take", "Thread.run"]):
        if not any([n for n in t if n in chain] == chain for t in threads):
            bad.append(f"no {chain} in {threads}")
    return bad


def main():
    bad = {"chains": chains, "cut": cut, "python": python}[sys.argv[1]]()
    for line in bad:
        print(line)
    sys.exit(bool(bad))


main()
