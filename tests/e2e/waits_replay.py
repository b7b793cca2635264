# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the replayed waits of tests/data/checkout with those that perf script reads there (times.txt).

Usage: waits_replay.py PROFTOP FOLDER. Once with the kernel's build-id as recorded, once with another one: then the
kernel's functions, and the kinds of the waits with them, are from root/proc/kallsyms.
"""
import gzip
import json
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "checkout")
KINDS = {"Mutex::lock": "lock", "bank::transfer": "pipe", "bank::run": "pipe", "bank::clear_payment": "sleep",
         "checkout::accept_orders": "poll", "checkout::write_journal": "disk", "preempted": "runq"}
WAITS = ("runq", "lock", "cond", "poll", "sleep", "pipe", "disk", "fault", "child", "other")
CALLEES = {"bank::run": "bank::clear_payment"}
NEAR = 0.002  # seconds; times have three decimals


def replay(proftop, path):
    done = subprocess.run([proftop, "--replay", path, "--symfs", os.path.join(DATA, "root"), "--time=all",
                           "--rows=1000", "--format=ndjson"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(ticks, truth):
    bad, kinds, functions, got = [], {}, {}, {}
    for tid, function, seconds in truth:
        key = int(tid), KINDS[function]
        kinds[key] = kinds.get(key, 0) + float(seconds)
        functions[function] = functions.get(function, 0) + float(seconds)
    for tick in ticks:
        for process in tick["waits"]["processes"]:
            columns, threads = (sum(t.get(k, 0) for t in ts for k in ("cpu", *WAITS))
                                for ts in ([process], process["threads"]))
            if abs(columns - threads) > NEAR * len(process["threads"]):
                bad.append(f"{process['comm']}: columns {columns:.3f} s, of its threads {threads:.3f} s")
            for thread in process["threads"]:
                for kind in WAITS:
                    key = thread["tid"], kind
                    got[key] = got.get(key, 0) + thread.get(kind, 0)
    for key in sorted(kinds.keys() | got.keys()):
        if abs(kinds.get(key, 0) - got.get(key, 0)) > NEAR:
            bad.append(f"{key}: {got.get(key, 0):.3f} s, by perf {kinds.get(key, 0):.3f} s")
    for function, seconds in functions.items():
        sums = sum(r["wait_s"] for tick in ticks for r in tick["rows"]
                   if r["event"] == "waits" and r["symbol"] == function)
        seconds += functions.get(CALLEES.get(function), 0)
        if function != "preempted" and abs(sums - seconds) > NEAR:
            bad.append(f"{function}: {sums:.3f} s, by perf {seconds:.3f} s")
    return bad


def main():
    with open(os.path.join(DATA, "times.txt"), encoding="utf-8") as f:
        kernel, *truth = (line.split() for line in f)
    with gzip.open(os.path.join(DATA, "checkout.data.gz")) as f:
        data = f.read()
    build_id = bytes.fromhex(kernel[0])
    if data.count(build_id) != 1:
        sys.exit("times.txt is of another recording")
    bad = []
    for name, content in (("as recorded", data), ("of another kernel", data.replace(build_id, bytes(len(build_id))))):
        path = os.path.join(sys.argv[2], "checkout.data")
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, 0o600)
        bad += [f"{name}: {line}" for line in check(replay(sys.argv[1], path), truth)]
    print("\n".join(bad))
    sys.exit(bool(bad))


main()
