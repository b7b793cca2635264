# SPDX-License-Identifier: GPL-2.0-or-later
"""Sample Chain.java compiled by C1 and C2, inlined and interpreted, and look for its whole chain of calls."""
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
TICKS = 12


def judge(profile):
    """Return the faults of one tick."""
    rows = {row["symbol"]: row for row in profile["rows"]}
    # Threads of the JVM itself (compiler, collector) also work.
    java = sum(row["self"] for row in profile["rows"] if row["comm"] == "java")
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


def sample(pid):
    """Sample until the JVM has compiled its code and a tick is right; else the faults of the last."""
    bad = ["no profile"]
    with subprocess.Popen([PROFTOP, "-b", "-n", str(TICKS), "-d", "1", "-F", "499", "-p", str(pid),
                           "--format=ndjson"], stdout=subprocess.PIPE) as proftop:
        for line in proftop.stdout:
            bad = judge(json.loads(line))
            if not bad:
                break
        proftop.terminate()
    return bad


def judge_off(pid):
    """--languages=none: no method by name."""
    out = subprocess.run([PROFTOP, "-b", "-n", "2", "-d", "0.5", "-F", "499", "-p", str(pid), "--languages=none",
                          "--format=ndjson"], stdout=subprocess.PIPE, check=True).stdout
    rows = json.loads(out.splitlines()[-1])["rows"]
    return [f"--languages=none: {row}" for row in rows if row.get("lang") or "Chain." in row["symbol"]]


def check(mode, options):
    with subprocess.Popen(["java", *options, "-cp", os.environ["TMP"], "Chain", "60"],
                          stdout=subprocess.PIPE) as java:
        try:
            java.stdout.readline()
            faults = sample(java.pid)
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
