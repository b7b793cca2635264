# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects that differ from the file at their path: deleted, replaced while they run, in memory only,
below overlayfs, in another mount namespace; a perf map in another PID namespace, one that an
earlier process left. The right name or a reason, never a wrong name; beside perf's answer.
"""
import ctypes
import os
import re
import shutil
import sys
import time

import names
from names import Missing, children, hot, need, path, sh, start

cases = []
MAPS = []


def case(what, want, wrong_name, reason=None):
    """@want: pattern of the name; without it @reason: the required reason. @wrong_name: never."""
    def add(fn):
        cases.append((fn.__name__, what, want, wrong_name, reason, fn))
        return fn
    return add


def impostor(comm):
    """Another program to lie at the path of @comm: as long, with another name at each address."""
    os.rename(hot(comm, f"-DNAME=wrong_{comm}"), path(comm + ".other"))
    return path(comm + ".other")


def running(comm):
    """A program of that name that has begun."""
    process = start(hot(comm))
    time.sleep(0.1)
    return process


@case("deleted", "hot_deleted", "wrong")
def deleted():
    process = running("deleted")
    os.unlink(path("deleted"))
    return process


@case("replaced while it runs", "hot_replaced", "wrong_replaced")
def replaced():
    other = impostor("replaced")
    process = running("replaced")
    os.rename(other, path("replaced"))
    return process


@case("deleted, another at its path", "hot_reborn", "wrong_reborn")
def reborn():
    other = impostor("reborn")
    process = running("reborn")
    os.unlink(path("reborn"))
    shutil.copy(other, path("reborn"))
    return process


@case("memfd", "hot_memory", "wrong")
def memory():
    fd = os.memfd_create("a program", 0)
    with open(hot("memory"), "rb") as f:
        os.write(fd, f.read())
    process = start(f"/proc/self/fd/{fd}", pass_fds=(fd,))
    process.comm = str(fd)  # its first name
    return process


def in_namespace(comm, flags, script):
    """Run @script as root of a new namespace; the program is its last."""
    need("unshare")
    process = start("unshare", *flags, "sh", "-ec", script)
    process.below = "-f" in flags
    return process


@case("overlayfs, lower file", "hot_lower", "wrong")
def lower():
    os.makedirs(path("low"))
    for part in ("up", "work", "merged"):
        os.makedirs(path(part))
    os.rename(hot("lower"), path("low/lower"))
    # A tmpfs always has the features that overlayfs needs of its folders.
    return in_namespace("lower", ["-m"], f"cd {names.TMP}; mkdir o; mount -t tmpfs none o; mkdir o/up o/work; "
                        "mount -t overlay -o lowerdir=low,upperdir=o/up,workdir=o/work none merged; exec merged/lower")


@case("overlayfs, copied up", "hot_upper", "wrong")
def upper():
    os.makedirs(path("low2"))
    os.makedirs(path("merged2"))
    os.rename(hot("upper"), path("low2/upper"))
    return in_namespace("upper", ["-m"], f"cd {names.TMP}; mkdir o2; mount -t tmpfs none o2; mkdir o2/up o2/work; "
                        "mount -t overlay -o lowerdir=low2,upperdir=o2/up,workdir=o2/work none merged2; "
                        "touch merged2/upper; exec merged2/upper")


@case("mount namespace, other file here", "hot_mountns", "wrong_mountns")
def mountns():
    other = impostor("mountns")
    os.makedirs(path("inside"))
    os.makedirs(path("there"))
    os.rename(hot("mountns"), path("inside/mountns"))
    # Its /tmp/.../there/mountns is not ours.
    os.rename(other, path("there/mountns"))
    return in_namespace("mountns", ["-m"], f"mount --bind {path('inside')} {path('there')}; exec {path('there/mountns')}")


@case("mount namespace, no file here", "hot_hidden", "wrong")
def hidden():
    os.rename(hot("hidden"), path("hidden.file"))
    return in_namespace("hidden", ["-m"], f"cd {names.TMP}; mkdir t; mount -t tmpfs none t; cp hidden.file t/hidden; exec t/hidden")


@case("PID namespace with its perf map", "jit_inside", "jit_outside")
def pidns():
    shutil.copy(f"{names.PROGRAMS}/jitmap", path("pidns"))
    process = in_namespace("pidns", ["-m", "-p", "-f", "--kill-child", "--mount-proc"],
                           f"mkdir {path('tmp')}; cp {path('pidns')} {path('tmp')}; mount --bind {path('tmp')} /tmp; "
                           "exec /tmp/pidns jit_inside")
    # The files of the process's number out here, and of its real number out here.
    write_map(1, "jit_outside")
    for pid in children(process.pid):
        write_map(pid, "jit_outside")
    return process


@case("perf map of an earlier process", None, "jit_stale", "its perf map is older than the process")
def stale():
    process = start(f"{names.PROGRAMS}/jitmap", comm="stale")
    time.sleep(0.1)
    os.utime(write_map(process.pid, "jit_stale"), (1e9, 1e9))
    return process


@case("perf map of another user", None, "jit_foreign", "its perf map belongs to another user")
def foreign():
    process = start(f"{names.PROGRAMS}/jitmap", comm="foreign")
    time.sleep(0.1)
    os.chown(write_map(process.pid, "jit_foreign"), 65534, -1)
    return process


def write_map(pid, name):
    """A map that covers all there is."""
    file = f"/tmp/perf-{pid}.map"
    if not os.path.exists(file):
        MAPS.append(file)
        with open(file, "w", encoding="ascii") as f:
            f.write(f"1000 7ffffffff000 {name}\n")
    return file


def judge(session, what, comm, want, wrong_name, reason):
    rows = [r for r in session.rows(comm) if r["kind"] != "k"]
    perf = session.perf_says(comm)
    if not rows:
        return names.wrong(f"{what}: no samples of {comm}")
    bad = [r["symbol"] for r in rows if re.search(wrong_name, r["symbol"])]
    why = "" if want else rows[0].get("reason", "")
    right = not bad and (re.fullmatch(want, rows[0]["symbol"]) if want else reason in why)
    print(f"{what:<34} {(rows[0]['symbol'] + (': ' + why if why else '')):<66} perf: {perf}")
    if not right:
        names.wrong(f"{what}: {bad or rows[0]['symbol']} ({why}), not {want or reason}")


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None):
        print("not permitted: a mount namespace:", os.strerror(ctypes.get_errno()))
        sys.exit(77)
    running, pids = {}, []
    for comm, what, _, _, _, fn in cases:
        try:
            running[comm] = fn()
        except Missing as e:
            print(f"{what:<34} not here: {e}")
    time.sleep(0.5)
    for comm, process in list(running.items()):
        if process.poll() is None:
            pids += children(process.pid) if getattr(process, "below", False) else [process.pid]
        else:
            names.wrong(f"{comm} has ended with {process.returncode}")
    comms = [getattr(process, "comm", comm) for comm, process in running.items()]
    session = names.Session(pids, comms, seconds=3)
    for comm, what, want, wrong_name, reason, _ in cases:
        if comm in running:
            judge(session, what, getattr(running[comm], "comm", comm), want, wrong_name, reason)
    for file in MAPS:
        os.unlink(file)
    names.finish()


main()
