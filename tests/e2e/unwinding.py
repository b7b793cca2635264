#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of live samples for unwinding.sh, on the requested number of samples, however long that takes.

unwinding.py copies PID LARGE   a stack that changes, and one that needs larger copies than the default
unwinding.py verified           each sample also by libunwind
unwinding.py hostile FILE       the chains of honest and of spoilt programs
"""
import collections, json, os, subprocess, sys, time

PROFTOP = os.path.join(os.path.abspath(os.environ["B"]), "proftop")
PATIENCE = 20
wrongs = 0


def wrong(text):
    global wrongs
    wrongs += 1
    print("wrong:", text)


def until(reached, *options):
    """The ticks of a session, up to the first that @reached accepts; all ticks if none."""
    ticks, end = [], time.monotonic() + PATIENCE
    with subprocess.Popen([PROFTOP, "-b", "-d", "0.2", "-F", "1999", "-e", "cpu-clock", "--format=ndjson", *options],
                          stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            ticks.append(json.loads(line))
            if reached(ticks) or time.monotonic() > end:
                break
        p.terminate()
    return ticks


def copies(pid, large):
    def warned(ticks):
        return any(n["key"] == "truncated" and n["severity"] == "warn" and "2048" in n["fix"]
                   for n in ticks[-1]["notices"])

    def whole(ticks):
        a = ticks[-1]["account"]
        return ticks[-1]["stack_size"] > 40 << 10 and a["taken"] >= 20 and a["complete"] >= 0.9 * a["taken"]

    ticks = until(warned, "--stack-size=1024", "-p", pid)
    if not warned(ticks):
        wrong(f"stack copies of 1024 bytes: {ticks[-1]['notices']}")
    ticks = until(whole, "--stack-size=auto", "-p", large)
    sizes = [t["stack_size"] for t in ticks]
    steps = sorted(set(sizes))
    print("--stack-size=auto:", *steps)
    told = [t["message"] for t in ticks if "of the stacks were truncated" in t["message"]]
    if not told or len(told) > len(steps) - 1:
        wrong(f"--stack-size=auto made {len(steps) - 1} steps and told {told}")
    if not whole(ticks) or sizes != sorted(sizes) or any(b > 2 * a for a, b in zip(steps, steps[1:])):
        wrong(f"--stack-size=auto went {sizes}; at last {ticks[-1]['account']}")


def verified():
    def done(ticks):
        return ticks[-1]["unwind"]["verified"]

    ticks = until(lambda t: done(t) >= 1000, "--verify=1")
    differ = ticks[-1]["unwind"]["verify_differ"]
    print(f"--verify=1: {done(ticks)} samples, {differ} differ")
    if done(ticks) < 1000 or differ:
        wrong(f"{differ} of {done(ticks)} samples differ from libunwind")


def hostile(path):
    stops = collections.defaultdict(collections.Counter)
    with open(path, encoding="utf-8") as f:
        for line in f:
            comm, _, stop, _ = line.split(" ", 3)
            stops[comm][stop] += 1
    for comm in ("t_chain", "t_deep", "t_tail"):
        print(comm, dict(stops[comm].most_common(5)))
    n = sum(stops["t_chain"].values())
    if n < 50 or stops["t_chain"]["complete"] < 0.95 * n:
        wrong(f"beside hostile tables {stops['t_chain']['complete']} of {n} honest stacks are complete")
    if not stops["t_deep"] or stops["t_tail"]["complete"]:
        wrong("the tables are not as hostile as they should be")


globals()[sys.argv[1]](*sys.argv[2:])
sys.exit(1 if wrongs else 0)
