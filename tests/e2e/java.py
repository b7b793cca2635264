# SPDX-License-Identifier: GPL-2.0-or-later
"""Sample Chain.java compiled by C1 and C2, inlined and interpreted, and look for its whole chain of calls."""
import collections
import json
import os
import subprocess
import sys

PROFTOP = os.path.join(os.path.abspath(os.environ["B"]), "proftop")
MODES = {
    "interpreted": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1", "-XX:CompileCommand=quiet",
           "-XX:CompileCommand=dontinline,Chain.*"],
    "inlined": [],
    "C2": ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain.*"],
}
CHAIN = ["Chain.main", "Chain.outer", "Chain.middle", "Chain.leaf"]
LEAST = 95  # percent of the samples of its thread
TICKS = 45
# Of the last ticks, as a busy machine has few samples in each: a JVM that got a hundredth of a CPU was judged by ten.
TOGETHER = (1, 2, 4, 8, 16, 32)


def of_java(lang):
    """Return the samples of threads that run Java."""
    own = sum(lang["none_by"].get(key, 0) for key in ("gc_thread", "compiler_thread", "vm_thread"))
    return lang["certain"] + lang["guessed"] + lang["none"] - own


def merge(ticks):
    """Return the rows of several ticks as those of one."""
    rows = {}
    for row in (row for tick in ticks for row in tick["rows"]):
        same = rows.setdefault((row["symbol"], row["comm"], row["module"]), dict(row, self=0, total=0))
        same["self"] += row["self"]
        same["total"] += row["total"]
    return {"rows": list(rows.values()), "java": sum(of_java(tick["lang"]) for tick in ticks)}


def judge_ledger(ticks, collects):
    """The samples of the JVM add up, by true reasons."""
    bad, why = [], collections.Counter()
    for lang in (tick["lang"] for tick in ticks):
        why.update(lang["none_by"])
        if lang["none"] != sum(lang["none_by"].values()):
            bad.append(f"the reasons do not add up: {lang}")
    if collects and not why["gc_thread"]:
        bad.append(f"no samples of the collector: {why}")
    return bad


def judge(profile):
    """Return the faults of one tick."""
    rows = {row["symbol"]: row for row in profile["rows"]}
    java = profile["java"]
    bad = []
    for name in CHAIN:
        got = rows.get(name, {"total": 0})["total"]
        if 100 * got < LEAST * java:
            bad.append(f"{name} is in {got} of {java} samples")
    leaf = rows.get("Chain.leaf", {"self": 0, "module": ""})
    if 100 * leaf["self"] < 80 * java or (leaf["module"], leaf.get("lang")) != ("[java]", "java"):
        bad.append(f"Chain.leaf itself has {leaf['self']} of {java} samples")
    if java < 30:
        bad.append(f"{java} samples only")
    return bad


def judge_replay(file, tick):
    """The recording has at least the rows of that tick."""
    out = subprocess.run([PROFTOP, "--replay", file, "-b", "--rows=0", "--format=ndjson"], stdout=subprocess.PIPE,
                         check=True).stdout
    rows = {row["symbol"]: row for row in json.loads(out.splitlines()[-1])["rows"] if row.get("lang") == "java"}
    bad = []
    for row in tick["rows"]:
        if row["symbol"] in CHAIN and rows.get(row["symbol"], {"total": 0})["total"] < row["total"]:
            bad.append(f"{row['symbol']} is in {row['total']} samples of a tick, in the replay: {rows.get(row['symbol'])}")
    return bad


def sample(pid, collects):
    """Sample until the JVM has compiled its code and a tick is right; else the faults of the last."""
    bad, right, ticks = ["no profile"], [], []
    file = os.path.join(os.environ["TMP"], "java.data")
    with subprocess.Popen([PROFTOP, "-b", "-n", str(TICKS), "-d", "1", "-F", "499", "-p", str(pid),
                           "--record", file, "--format=ndjson"], stdout=subprocess.PIPE) as proftop:
        for line in proftop.stdout:
            ticks = ticks[-TOGETHER[-1] + 1:] + [json.loads(line)]
            ledger = judge_ledger(ticks, collects)
            right = [part for part in (merge(ticks[-nr:]) for nr in TOGETHER) if not ledger + judge(part)]
            bad = ledger + judge(merge(ticks))
            if right:
                break
        # As many samples again: a replay does not name the first ones, which were taken before their code was read.
        more = 0
        for line in proftop.stdout if right else ():
            more += of_java(json.loads(line)["lang"])
            if more >= right[0]["java"]:
                break
        proftop.terminate()
    return judge_replay(file, right[0]) if right else bad


def judge_off(pid):
    """--languages=none: no method by name."""
    out = subprocess.run([PROFTOP, "-b", "-n", "2", "-d", "0.5", "-F", "499", "-p", str(pid), "--languages=none",
                          "--format=ndjson"], stdout=subprocess.PIPE, check=True).stdout
    rows = json.loads(out.splitlines()[-1])["rows"]
    return [f"--languages=none: {row}" for row in rows if row.get("lang") or "Chain." in row["symbol"]]


def check(mode, options):
    collects = ["gc"] if mode == "C1" else []
    # With the others, loops have no safepoints: code inlined into one has no description that names it.
    collector = "-XX:+UseParallelGC" if collects else "-XX:+UseG1GC"
    with subprocess.Popen(["java", *options, collector, "-cp", os.environ["TMP"], "Chain", "120", *collects],
                          stdout=subprocess.PIPE) as java:
        try:
            java.stdout.readline()
            faults = sample(java.pid, collects)
            if mode == next(iter(MODES)):
                faults += judge_off(java.pid)
            return [f"{mode}: {fault}" for fault in faults]
        finally:
            java.kill()


def main():
    bad = [line for mode, options in MODES.items() for line in check(mode, options)]
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
