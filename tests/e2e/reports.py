# SPDX-License-Identifier: GPL-2.0-or-later
"""Run each mode of tests/programs/reports.c under one session and compare it with the program's own clock."""
import os
import re
import subprocess
import sys
import time

PROGRAM = os.path.join(os.environ["PROGRAMS"], "reports")
TMP = os.environ["TMP"]
WANTED = 150
# Samples are taken before the files of their frames are read: on a busy machine 2 to 4 % of a session of 3 s.
READ = 0.95
# Mode: the callers that each sample in the program's own functions has, outermost first.
CHAINS = {
    "leader": ["works", "work"],
    "nested": ["main", "nested", "interrupted", "on_outer", "on_inner", "work"],
    "fault": ["main", "fault", "touches", "on_inner", "work"],
    "detached": ["works_a_little", "work"],
    "clone": ["cloned", "works", "work"],
    "wrapped": ["starts", "works", "work"],
    "sleepers": ["main", "sleepers", "work"],
    "bigframe": ["main", "bigframe", "work"],
    # The process and not the thread names it, or none are found.
    "named": ["works_by_name", "work"],
    # Its call is in the cold part of divide().
    "divided": ["main", "divided", "divide", "work"],
}
LEAVES = {"hot", "warm"}
# Mode: functions of libc, and their callers.
CALLERS = {
    "reading": (r"(__)?read\b", ["main", "reading", "reads"]),
    "locking": (r"(_*pthread_mutex_lock|_*lll_lock_wait)\b", ["locks"]),
}
# Mode: what names its generated code, and nothing else does.
CODE = ("reuse", "inside", "many")
ENTRY = ["main", "entry", "entry_outer", "entry_middle", "entry_leaf"]


def samples(path):
    """Yield the comm and the functions, outermost first, of each sample of 1 ms."""
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, ns = line.rstrip("\n").rpartition(" ")
            comm, *names = [re.sub(r"_\[[a-z]\]$", "", name) for name in stack.split(";")]
            for _ in range(int(ns) // 1000000):
                yield comm, names


def subsequence(chain, names):
    rest = iter(names)
    return all(name in rest for name in chain)


def judge_time(mode, stacks):
    """Shares within four standard deviations and 1 %."""
    inside = [s for s in stacks if LEAVES & set(s)]
    hot = sum("hot" in s for s in inside) / len(inside)
    with open(os.path.join(TMP, mode + ".truth"), encoding="ascii") as f:
        truth = float(f.read())
    whole = sum(subsequence(CHAINS[mode], s) for s in inside)
    print(f"{mode}: hot {100 * hot:.1f} %, by its own clock {100 * truth:.1f}; callers in {whole} of {len(inside)}")
    return abs(hot - truth) < 4 * (truth * (1 - truth) / len(inside)) ** 0.5 + 0.01 and whole >= READ * len(inside) and \
        not any("sleeps" in s for s in stacks if mode == "sleepers" and LEAVES & set(s))


def judge_code(mode, stacks):
    new, old = (sum(name in s for s in stacks) for name in ("new_block", "old_block"))
    print(f"{mode}: new_block {new}, old_block {old} of {len(stacks)}")
    # Some places are still being looked up when the session ends.
    return new >= 0.5 * len(stacks) and not old


def judge_callers(mode, stacks):
    pattern, callers = CALLERS[mode]
    inside = [s for s in stacks if any(re.match(pattern, name) for name in s)]
    whole = sum(subsequence(callers, s) for s in inside)
    print(f"{mode}: callers in {whole} of {len(inside)}, of {len(stacks)}")
    return 4 * len(inside) >= len(stacks) and whole >= READ * len(inside)


def judge_entry(stacks):
    """At the first instruction of a function there is its caller, but for the first ones, whose file is not read."""
    inside = [[n for n in s if n in ENTRY] for s in stacks if "entry_outer" in s]
    wrong = [s for s in inside if s != ENTRY[:len(s)]]
    print(f"entry: {len(wrong)} of {len(inside)} without a caller {wrong[:1]}")
    return len(inside) >= READ * len(stacks) and len(wrong) <= 0.02 * len(inside)


def main():
    modes = [*CHAINS, *CODE, *CALLERS, "entry"]
    running = []
    for mode in modes:
        link = os.path.join(TMP, mode)
        os.symlink(PROGRAM, link)
        running.append(subprocess.Popen([link, mode, link + ".truth"]))
    seen = {mode: [] for mode in modes}
    try:
        time.sleep(1)
        pids = ",".join(str(p.pid) for p in running)
        late = time.monotonic() + 100
        while min(map(len, seen.values())) < WANTED and time.monotonic() < late:
            folded = os.path.join(TMP, "folded")
            subprocess.run([os.environ["PROFTOP"], "-b", "-n", "1", "-d", "3", "-e", "cpu-clock", "-F", "1000", "-p", pids,
                            "--export=" + folded, "--export-format=folded"],
                           stdout=subprocess.DEVNULL, timeout=60, check=True)
            for comm, names in samples(folded):
                if comm in seen:
                    seen[comm].append(names)
    finally:
        for process in running:
            process.kill()
            process.wait()
            subprocess.run(["rm", "-f", f"/tmp/perf-{process.pid}.map"], check=False)
    bad = [f"{mode}: {len(stacks)} samples" for mode, stacks in seen.items() if len(stacks) < WANTED]
    for mode, stacks in seen.items():
        right = bool(stacks) and (judge_code(mode, stacks) if mode in CODE else judge_callers(mode, stacks) if mode in CALLERS
                                  else judge_entry(stacks) if mode == "entry" else judge_time(mode, stacks))
        if not right:
            bad.append(mode)
    for what in bad:
        print("wrong:", what)
    return bool(bad)


sys.exit(main())
