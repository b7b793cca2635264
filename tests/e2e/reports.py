# SPDX-License-Identifier: GPL-2.0-or-later
"""Run each mode of tests/programs/reports.c under one session and compare it with the program's own clock."""
import os
import re
import shutil
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
    # Two threads of libgomp.
    "team": ["works", "work"],
    # Address sanitizer and frame pointers; a handler of a signal in another one.
    "asan": ["main", "nested", "interrupted", "on_outer", "on_inner", "work"],
    # A native thread beside Python, in a PID namespace.
    "python": ["works", "work"],
    # An inner procedure, called through a pointer.
    "fortran": ["main", "around_", "shares::calls", "inner.0", "shares::spin"],
}
# Mode: how the program is made of the same source, by the first compiler that can.
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "reports.c")
BUILDS = {
    "team": [["cc", "-O2", "-fopenmp", SOURCE]],
    "asan": [[cc, "-O1", "-w", "-fsanitize=address", "-fno-omit-frame-pointer", SOURCE] for cc in ("clang", "gcc")],
    "python": [["cc", "-O2", "-w", "-shared", "-fPIC", SOURCE]],
    "fortran": [["gfortran", "-O1", "-J", TMP, "-x", "f95", "-"]],
}
PYTHON = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.pthread_create(ctypes.byref(ctypes.c_ulong()), None, library.works, None)
def python_hot():
    while True:
        sum(range(1000))
python_hot()
"""
FORTRAN = """
module shares
  abstract interface
    subroutine part()
    end subroutine
  end interface
contains
  subroutine calls(run)
    procedure(part) :: run
    do
      call run
    end do
  end subroutine
  subroutine spin(turns)
    integer, intent(in) :: turns
    integer, volatile :: i
    do i = 1, turns
    end do
  end subroutine
end module
subroutine hot() bind(c)
  use shares
  call spin(2800000)
end subroutine
subroutine warm() bind(c)
  use shares
  call spin(1200000)
end subroutine
subroutine around
  use shares
  real :: from, mid, to, first, second
  character(len=200) :: path
  first = 0
  second = 0
  call get_command_argument(2, path)
  call calls(inner)
contains
  subroutine inner
    interface
      subroutine hot() bind(c)
      end subroutine
      subroutine warm() bind(c)
      end subroutine
    end interface
    call cpu_time(from)
    call hot
    call cpu_time(mid)
    call warm
    call cpu_time(to)
    first = first + mid - from
    second = second + to - mid
    open(10, file=path)
    write(10, *) first / (first + second)
    close(10)
  end subroutine
end subroutine
program main
  call around
end program
"""
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
    hot = sum("hot" in s for s in inside) / max(1, len(inside))
    with open(os.path.join(TMP, mode + ".truth"), encoding="ascii") as f:
        truth = float(f.read() or "nan")  # it may be written just now
    whole = sum(subsequence(CHAINS[mode], s) for s in inside)
    print(f"{mode}: hot {100 * hot:.1f} %, by its own clock {100 * truth:.1f}; callers in {whole} of {len(inside)}")
    if mode == "python":
        rest = [s for s in stacks if not LEAVES & set(s) and "works" not in s]
        named = sum("python_hot" in s for s in rest)
        print(f"python: {named} of {len(rest)} samples of Python's thread are in its function")
        whole = min(whole, len(inside) * named / max(1, len(rest)))
    return inside and abs(hot - truth) < 4 * (truth * (1 - truth) / len(inside)) ** 0.5 + 0.01 and whole >= READ * len(inside) and \
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


def build(mode, path):
    """Return false if no compiler can."""
    for command in BUILDS.get(mode, []):
        if shutil.which(command[0]) and not subprocess.run([*command, "-o", path], input=FORTRAN, text=True, check=False,
                                                           stderr=subprocess.DEVNULL, timeout=100).returncode:
            return True
    return False


def start(mode):
    """Start the program of a mode, named like it, with the file for its clock as argument or standard input."""
    link = os.path.join(TMP, mode)
    argv = [link, mode, link + ".truth"]
    if mode == "python":
        argv = ["unshare", "--pid", "--fork", "--kill-child", link, "-c", PYTHON, link + ".so"]
        os.symlink(sys.executable, link)
    elif mode not in BUILDS:
        os.symlink(PROGRAM, link)
    with open(link + ".truth", "w+b") as truth:
        # The reader of their files is one of many on two CPUs; Python reads many files before its function runs.
        return subprocess.Popen(["nice", "-n", "0" if mode == "python" else "10", *argv], stdin=truth)


def wait_for_clocks(modes, late):
    """Until each program has told its clock, and is in the functions that are judged."""
    clocks = [os.path.join(TMP, mode + ".truth") for mode in modes if mode in CHAINS]
    while time.monotonic() < late and not all(map(os.path.getsize, clocks)):
        time.sleep(0.1)


def pid_of(mode, process):
    if mode != "python":
        return str(process.pid)
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
        return f.read().split()[0]


def ticks(pids, late):
    """Yield the samples of each tick of one session: in the first ones not all files of the frames are read."""
    folded = os.path.join(TMP, "folded")
    proftop = subprocess.Popen([os.environ["PROFTOP"], "-b", "-d", "3", "-e", "cpu-clock", "-F", "1000", "-p", pids,
                                "--export=" + folded, "--export-format=folded"], stdout=subprocess.DEVNULL)
    try:
        last = None
        while time.monotonic() < late and proftop.poll() is None:
            time.sleep(0.1)
            now = os.stat(folded).st_mtime_ns if os.path.exists(folded) else None
            if now != last:
                last = now
                yield samples(folded)
    finally:
        proftop.terminate()
        proftop.wait()


def judge(mode, stacks):
    if mode in CODE:
        return judge_code(mode, stacks)
    if mode in CALLERS:
        return judge_callers(mode, stacks)
    return judge_entry(stacks) if mode == "entry" else judge_time(mode, stacks)


def main():
    modes = [*CHAINS, *CODE, *CALLERS, "entry"]
    for mode in BUILDS:
        if not build(mode, os.path.join(TMP, mode + ".so" * (mode == "python"))):
            print(f"not tried, no compiler for it: {mode}")
            modes.remove(mode)
    running = [start(mode) for mode in modes]
    bad, late, tries = modes, time.monotonic() + 100, 3
    seen = {mode: [] for mode in modes}
    try:
        wait_for_clocks(modes, late)
        pids = ",".join(map(pid_of, modes, running))
        for tick in ticks(pids, late):
            for comm, names in tick:
                if comm in seen:
                    seen[comm].append(names)
            if min(map(len, seen.values())) < WANTED:
                continue
            bad = [mode for mode, stacks in seen.items() if not judge(mode, stacks)]
            if not bad:
                break
            print("wrong:", *bad)
            # Files that are read late on a busy machine; a fault that is seen now and then is one.
            tries -= 1
            if not tries:
                break
            seen = {mode: [] for mode in modes}
    finally:
        for process in running:
            process.kill()
            process.wait()
            subprocess.run(["rm", "-f", f"/tmp/perf-{process.pid}.map"], check=False)
    return bool(bad)


sys.exit(main())
