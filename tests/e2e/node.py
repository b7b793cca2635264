# SPDX-License-Identifier: GPL-2.0-or-later
"""Sample chain_work.js as V8 runs it in four ways, all at once, and look for its whole chain of calls."""
import json
import os
import shutil
import subprocess
import sys
import time

PROFTOP = os.path.join(os.path.abspath(os.environ["B"]), "proftop")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/chain_work.js")
MODES = {
    "interpreted": ["--no-opt", "--no-sparkplug"],
    "baseline": ["--no-opt", "--always-sparkplug"],
    "optimised": ["--no-turbo-inlining"],
}
CHAIN = ["leaf", "(anonymous)", "middle", "toJSON", "outer", "tick"]
# Without a script: of V8 itself; in the runtime's own scripts.
OTHERS = ["map", "listOnTimeout", "processTimers"]
LEAST = 90  # percent of the samples of a process: the rest are its timers
CERTAIN = 95
FEWEST = 30


def judge(profile, mode):
    """Return the faults of one process in a tick."""
    rows = {row["symbol"]: row for row in profile["rows"] if row["module"] == f"{mode}.js"}
    samples = rows.get(CHAIN[-1], {"total": 0})["total"]
    bad = []
    if samples < FEWEST:
        return [f"{samples} samples only"]
    for name in CHAIN:
        got = rows.get(name, {"total": 0})["total"]
        if 100 * got < LEAST * samples:
            bad.append(f"{name} is in {got} of {samples} samples")
    # The interpreter's code counts for the function that it runs.
    if rows.get("leaf", {"self": 0})["self"] < 0.7 * samples:
        bad.append(f"leaf itself has too few of {samples} samples: {rows.get('leaf')}")
    return bad


def judge_all(profile):
    lang = profile["lang"]
    rows = {row["symbol"]: row for row in profile["rows"] if row.get("lang") == "node"}
    read = lang["certain"] + lang["guessed"]
    bad = [f"{mode}: {fault}" for mode in MODES for fault in judge(profile, mode)]
    if lang["none"] != sum(lang["none_by"].values()):
        bad.append(f"the reasons do not add up: {lang}")
    if 100 * lang["certain"] < CERTAIN * read:
        bad.append(f"too few are certain: {lang}")
    for name in OTHERS:
        if 100 * rows.get(name, {"total": 0})["total"] < LEAST * read:
            bad.append(f"{name} is in too few of {read} samples: {rows.get(name)}")
    return bad


def start(mode, options):
    script = os.path.join(os.environ["TMP"], f"{mode}.js")
    shutil.copy(PROGRAM, script)
    return subprocess.Popen([os.environ["NODE"], *options, script, "120"])


def main():
    nodes = [start(mode, options) for mode, options in MODES.items()]
    bad = ["no profile"]
    time.sleep(0.3)
    # Up to 90 ticks: on a busy machine few of them have enough samples of each.
    with subprocess.Popen([PROFTOP, "-b", "-n", "90", "-d", "1", "-F", "1999", "--format=ndjson", "-p",
                           ",".join(str(node.pid) for node in nodes)], stdout=subprocess.PIPE) as proftop:
        for line in proftop.stdout:
            bad = judge_all(json.loads(line))
            if not bad:
                break
        proftop.terminate()
    for node in nodes:
        node.kill()
        node.wait()
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
