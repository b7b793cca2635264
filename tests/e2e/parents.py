# SPDX-License-Identifier: GPL-2.0-or-later
"""parents.py FOLDER: start proftop as timeout(1), shells and supervisors do, and check what they get of it."""
import ctypes
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

PROFTOP, TMP = os.environ["PROFTOP"], sys.argv[1]
PR_SET_PDEATHSIG = 1
# Seen by a parent if it is sent: all but SIGKILL and SIGSTOP, which would end the test.
SEEN = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
# Also signals that end a helper on the way.
DEATHS = [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, 0]
libc = ctypes.CDLL(None)
wrongs = []


def wrong(text):
    wrongs.append(text)
    print("wrong:", text)


def fresh(death=0, chld=signal.SIG_DFL):
    def set_up():
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.signal(signal.SIGCHLD, chld)
        libc.prctl(PR_SET_PDEATHSIG, int(death))
    return set_up


def on_terminal(command, set_up, keys=b"", after=b""):
    """Run a command in a terminal: send @keys when @after is in its output. Returns its exit status (128 + n: signal)."""
    master, slave = pty.openpty()
    p = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"},
                         preexec_fn=set_up)
    os.close(slave)
    out, end = b"", time.monotonic() + 40
    while p.poll() is None and time.monotonic() < end:
        if select.select([master], [], [], 0.1)[0]:
            try:
                out += os.read(master, 65536)
            except OSError:
                break
        if callable(keys) and after in out:
            keys(p.pid)
            keys = b""
        elif keys and after in out:
            os.write(master, keys)
            keys = b""
    try:
        rc = p.wait(10)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        rc = "hangs"
    os.close(master)
    return 128 - rc if isinstance(rc, int) and rc < 0 else rc


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]


def test_no_signal():
    """This process is the parent, and a second one is in its process group. Both keep what they get."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SEEN)
    ready, report = os.pipe(), os.pipe()
    witness = os.fork()
    if not witness:
        os.close(ready[1])
        os.read(ready[0], 1)
        os.write(report[1], repr(sorted(map(int, signal.sigpending() & SEEN))).encode())
        os._exit(0)
    runs = [["-b", "-n", "1", "-d", "0.2"], ["-b", "-n", "1", "-d", "0.2", "-p", str(os.getpid())],
            ["-b", "-n", "1", "-d", "0.2", "--format=ndjson", "--", "sleep", "100"], ["-b", "-n", "0", "--no-such"],
            ["--record", f"{TMP}/x.data", "-b", "-n", "1", "-d", "0.2", "--", "true"], ["--version"]]
    for death in DEATHS:
        for arguments in runs:
            subprocess.run([PROFTOP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=fresh(death), timeout=60)
            got = signal.sigpending() & SEEN
            if got:
                wrong(f"pdeathsig {int(death)}, {' '.join(arguments)}: the parent got {sorted(map(int, got))}")
                for sig in got:
                    signal.sigwait([sig])
        rc = on_terminal([PROFTOP], fresh(death), b"q", b"\033[")
        got = signal.sigpending() & SEEN
        if rc or got:
            wrong(f"pdeathsig {int(death)}, the screen: exit {rc}, the parent got {sorted(map(int, got))}")
    os.close(ready[1])
    seen = os.read(report[0], 100)
    os.waitpid(witness, 0)
    if seen != b"[]":
        wrong(f"a process of the same group got {seen.decode()}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SEEN)


def test_shells():
    for death in ("TERM", "KILL", "USR1", "INT"):
        rc = subprocess.call(["sh", "-c", f"setpriv --pdeathsig {death} '{PROFTOP}' -b -n 1 -d 0.2 -p $$ >/dev/null; true"])
        if rc:
            wrong(f"a shell that starts it with setpriv --pdeathsig {death}: {rc}")
    rc = subprocess.call(["timeout", "30", PROFTOP, "-b", "-n", "1", "-d", "0.2"], stdout=subprocess.DEVNULL)
    if rc:
        wrong(f"timeout: {rc}")


def test_parent_is_target():
    """A script profiles itself: by its PID, and by its name. Its first thread is the busy one."""
    with open("/proc/self/comm", "w") as f:
        f.write("a-busy-parent")
    for which in (["-p", str(os.getpid())], ["--name", "^a-busy-parent$"]):
        for _ in range(10):
            with subprocess.Popen([PROFTOP, "-b", "-n", "1", "-d", "0.5", "--format=ndjson", *which],
                                  stdout=subprocess.PIPE) as p:
                while p.poll() is None:
                    sum(range(20000))
                out = p.stdout.read()
            if json.loads(out)["account"]["taken"]:
                break
        else:
            wrong(f"{which[0]} of the parent: no sample")


def test_parent_dies():
    """With a parent-death signal all of it ends with its parent, the guarded one as well."""
    for screen in (False, True):
        parent = os.fork()
        if not parent:
            os.setsid()
            if screen:
                master, slave = pty.openpty()
                for fd in range(3):
                    os.dup2(slave, fd)
            else:
                os.dup2(os.open("/dev/null", os.O_RDWR), 1)
            os.environ["TERM"] = "xterm"
            p = subprocess.Popen([PROFTOP] + ([] if screen else ["-b"]), preexec_fn=fresh(signal.SIGTERM))
            with open(f"{TMP}/started", "w") as f:
                f.write(str(p.pid))
            while screen:
                os.read(master, 65536)
            signal.pause()
        wait_until(lambda: os.path.exists(f"{TMP}/started") and os.path.getsize(f"{TMP}/started"))
        with open(f"{TMP}/started") as f:
            pid = int(f.read())
        os.unlink(f"{TMP}/started")
        time.sleep(2)
        tree = [pid, *children(pid)]
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        if not wait_until(lambda: not any(os.path.exists(f"/proc/{p}/exe") and is_ours(p) for p in tree)):
            wrong(f"{'the screen' if screen else '-b'} goes on without the parent that wanted its end")


def is_ours(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return PROFTOP in f.read()
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_ignored_children():
    """A parent that ignores SIGCHLD hands that on: the guard sees the end of proftop all the same."""
    def kill(guard):
        for child in children(guard):
            os.kill(child, signal.SIGKILL)

    rc = on_terminal([PROFTOP], fresh(chld=signal.SIG_IGN), kill, b"\033[")
    if rc != 128 + signal.SIGKILL:
        wrong(f"SIGCHLD ignored, proftop killed: the guard {rc}")


for test in (test_no_signal, test_shells, test_parent_is_target, test_parent_dies, test_ignored_children):
    test()
sys.exit(bool(wrongs))
