# SPDX-License-Identifier: GPL-2.0-or-later
"""Let the n-th system call of proftop fail, and look at how proftop goes on or ends.

usage: failcalls.py PROFTOP FAILCALL FOLDER POINTS [PART...]

Of each kind of call and each error POINTS calls fail, spread over all those of a run, half of them among the first. Parts:
live (start and one tick), record, check, replay, screen (start, controls by keys, stop, on a terminal). In each run proftop
ends in time, not by a signal; with status 0 and its output, or with 1, 3 or 4 and a message; the terminal is as before;
no process is left. POINTS=0: a few calls of each part, for make check.
"""
import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import time

from killmatrix import Terminal, alive, below, send

SECONDS = 100
# Calls that fail together, and their errors. Not those whose failure ends libc itself: close, futex, and munmap of the
# stack of a thread; brk reports no error, but the old end.
FAULTS = [("openat,openat2,open", ("EMFILE", "EIO", "EINTR", "ENOMEM")), ("mmap,mremap", ("ENOMEM",)),
          ("read,pread64", ("EIO", "EINTR")), ("write", ("EIO", "EINTR", "ENOSPC")),
          ("ioctl", ("EINTR", "EIO", "ENOMEM")), ("perf_event_open", ("EMFILE", "ENOMEM", "EINTR", "EBUSY")),
          ("socketpair,pipe2,eventfd2,signalfd4,dup2,memfd_create", ("EMFILE", "ENOMEM")), ("clone,clone3", ("EAGAIN", "ENOMEM")),
          ("poll,ppoll,rt_sigtimedwait,wait4", ("EINTR",)), ("poll,ppoll", ("ENOMEM",)), ("sendmsg,recvmsg", ("EINTR", "ENOMEM")),
          ("newfstatat,fstat,statx,fstatfs,readlink,readlinkat", ("EIO", "ENOMEM")), ("getdents64,lseek,ftruncate", ("EIO", "EINTR")),
          ("process_vm_readv", ("ESRCH", "ENOMEM")), ("fcntl,prlimit64,prctl,capget,capset", ("EPERM", "EINVAL")),
          ("sched_setscheduler,setpriority,pidfd_open,pidfd_send_signal,kill", ("EPERM", "EMFILE")),
          ("unshare,chroot,chdir,close_range,getrandom", ("EPERM", "ENOSYS")), ("mprotect,madvise", ("ENOMEM",))]
# For make check: the call, and each so many after it.
FEW = [(FAULTS[0][0], "EMFILE", "live", 10, 13), ("mmap,mremap", "ENOMEM", "live", 10, 9), ("read,pread64", "EINTR", "live", 3, 5),
       ("ioctl", "EINTR", "live", 2, 3), ("perf_event_open", "EMFILE", "live", 3, 0), ("eventfd2,socketpair", "EMFILE", "live", 2, 0),
       ("clone,clone3", "EAGAIN", "live", 2, 0), ("kill,setpriority", "EPERM", "check", 1, 1),
       ("write", "EINTR", "screen", 4, 5), ("poll,ppoll", "EINTR", "screen", 1, 3), (FAULTS[0][0], "EMFILE", "screen", 10, 13)]
KEYS = [b"+", b"2", b"3", b"-", b"4", b"6", b"p"]


def arguments(part, folder, target):
    live = ["-d", "0.1", "-F", "199", "-p", str(target)]
    return {"live": ["-b", "-n", "1"] + live, "check": ["--check"], "replay": ["-b", "--replay", f"{folder}/base.data"],
            "record": ["-b", "-n", "2", "--record", f"{folder}/{os.getpid()}.data"] + live, "screen": live}[part]


def judge(part, code, out, err):
    """Return what is wrong with an end, or None."""
    if code not in (0, 1, 3, 4, 127, 130) or code == 127 and "shared librar" not in err:
        return f"exit {code}: {err[-300:]}"
    if code and not (err + out).strip():
        return f"exit {code} without a message"
    if not code and part in ("live", "replay", "record") and "samples " not in out:
        return "exit 0 without output"
    return None


def batch(part, command, env):
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env,
                             start_new_session=True)
    try:
        out, err = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        left = below(child.pid)
        for pid in reversed(left):
            send(pid, 9)
        child.communicate()
        return f"does not end: {left}"
    return judge(part, child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def screen(command, env):
    os.environ.update(env)
    t = Terminal(command)
    try:
        t.run(0.15, lambda: not alive(t.guard))
        for key in KEYS:
            os.write(t.master, key)
            t.run(0.03, lambda: not alive(t.guard))
        end = time.monotonic() + SECONDS
        while alive(t.guard) and time.monotonic() < end:
            os.write(t.master, b"\x1b\x1bq")
            t.run(0.5, lambda: not alive(t.guard))
            # isatty() failed: its output is not a screen, and ends by a signal.
            if b"\nsamples " in t.output and b"\x1b[?1049h" not in t.output:
                for pid in below(t.guard):
                    send(pid, signal.SIGINT)
        if alive(t.guard):
            tree = below(t.guard)
            for pid in tree:
                send(pid, 9)
            return f"does not end: {tree}"
        fault = t.wrong()
        after = t.output.rsplit(b"\x1b[?1049l", 1)[-1].decode(errors="replace")
        # A terminal that returns EIO is gone; the bytes that restore it may be those that failed.
        if fault and not ("write" in command[1] and command[2] != "EINTR" and "mode" not in fault):
            return f"the terminal: {fault}"
        return judge("screen", t.status(), "", after)
    finally:
        t.close()


def once(proftop, failcall, folder, target, fault):
    calls, error, part, at, every = fault
    command = [failcall, calls, error, str(at), str(every), proftop] + arguments(part, folder, target)
    log = f"{folder}/{os.getpid()}.log"
    env = dict(os.environ, FAIL_LOG=log)
    wrong = screen(command, env) if part == "screen" else batch(part, command, env)
    with open(log, encoding="utf-8") as f:
        failed = f.readline().strip()
    if not failed and fault in FEW:
        wrong = wrong or "no call failed"
    return wrong and f"{part}, {calls} {error}, call {at}, every {every}: {wrong}; failed: {failed}"


def count(proftop, failcall, folder, target, calls, part):
    """Return how many of these calls a run has in which none fails."""
    path = f"{folder}/{os.getpid()}.count"
    env = dict(os.environ, FAIL_COUNT=path)
    command = [failcall, calls, "EIO", "0", "0", proftop] + arguments(part, folder, target)
    wrong = screen(command, env) if part == "screen" else batch(part, command, env)
    if wrong and part != "check":
        sys.exit(f"{part} without a failure: {wrong}")
    with open(path, encoding="utf-8") as f:
        return int(f.read())


def spread(nr, points):
    """Return (number, every): half of the points among the first calls, half over all; some fail again and again."""
    early = range(1, min(nr, points // 2) + 1)
    late = {1 + i * nr // (points - points // 2) for i in range(points - points // 2)} - set(early)
    return [(at, 0) for at in early] + [(at, 0) for at in sorted(late) if at <= nr] + [(max(1, nr // 5), 7), (1, 3)]


def choose(points, parts, counted):
    if not points:
        return FEW
    return [(calls, error, part, at, every) for part in parts for calls, errors in FAULTS for nr in [counted(calls, part)]
            for error in errors if nr for at, every in spread(nr, points)]


def main():
    proftop, failcall, folder, points = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    parts = sys.argv[5:] or ["live", "record", "check", "replay", "screen"]
    spin = subprocess.Popen([os.path.dirname(failcall) + "/recurse", "36000"], stdout=subprocess.DEVNULL)
    try:
        if "replay" in parts and points:
            subprocess.run([proftop, "-b", "-n", "2", "-d", "0.3", "-p", str(spin.pid), "--record", f"{folder}/base.data"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        common = (proftop, failcall, folder, spin.pid)
        chosen = choose(points, parts, lambda calls, part: count(*common, calls, part))
        random.Random(1).shuffle(chosen)
        nr_bad = 0
        with concurrent.futures.ProcessPoolExecutor(int(os.environ.get("JOBS", "3"))) as pool:
            for wrong in pool.map(once, *[[x] * len(chosen) for x in common], chosen):
                nr_bad += wrong is not None
                if wrong:
                    print("wrong:", wrong, flush=True)
    finally:
        spin.kill()
        spin.wait()
    print(f"{len(chosen)} failing calls, {nr_bad} wrong")
    return nr_bad > 0


if __name__ == "__main__":
    sys.exit(main())
