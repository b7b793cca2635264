# SPDX-License-Identifier: GPL-2.0-or-later
"""Kill the processes and threads of proftop at random times on a terminal, and look at what is left.

usage: killmatrix.py PROFTOP FOLDER TIMES [SEED]

Each time the guard, proftop, one of its threads, the server of the sandbox, its worker, the server of the readers of
interpreters or one of these readers gets KILL, SEGV, STOP, TERM or HUP. Then the terminal is as before (mode,
screen, cursor, mouse), no process is left, and a recording can be replayed.
"""
import concurrent.futures
import fcntl
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import termios
import time

VICTIMS = ("guard", "main", "thread", "server", "worker", "readers", "reader")
SERVERS = {"server": "proftop-sandbox", "readers": "proftop-readers"}
# An interpreter, which has readers.
SPIN = "while True: sum(range(1000))"
SIGNALS = ("KILL", "SEGV", "STOP", "TERM", "HUP")
END_SECONDS = 20


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def send(pid, number):
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(pid):
    try:
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as f:
                found += [int(x) for x in f.read().split()]
        return found
    except OSError:
        return []


def below(pid):
    found = [pid]
    for child in children(pid):
        found += below(child)
    return found


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def threads(pid):
    """Name, state and place in the kernel of each thread, also of a process whose first thread has ended."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8", errors="replace") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            with open(f"/proc/{pid}/task/{task}/wchan", encoding="utf-8") as f:
                found.append(f"{name} {rest.split()[0]} {f.read()}")
    except OSError:
        pass
    return found


class Terminal:
    """A terminal with a session leader that starts proftop as its foreground job, as a shell does."""

    def __init__(self, args):
        self.master, self.slave = pty.openpty()
        self.output = b""
        self.before = termios.tcgetattr(self.slave)
        self.hold, hold = os.pipe()
        ready, self.ready = os.pipe()
        self.leader = os.fork()
        if not self.leader:
            self.lead(args, hold)
        os.close(hold)
        os.close(self.ready)
        self.guard = int(os.read(ready, 32))
        os.close(ready)

    def lead(self, args, hold):
        os.close(self.hold)
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            os.tcsetpgrp(self.slave, os.getpid())
            for s in (signal.SIGTTOU, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(s, signal.SIG_DFL)
            for fd in range(3):
                os.dup2(self.slave, fd)
            os.closerange(3, 64)
            os.environ["TERM"] = "xterm"
            os.execv(args[0], args)
        os.write(self.ready, str(job).encode())
        os.close(self.ready)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                break
            time.sleep(0.2)
            os.killpg(job, signal.SIGCONT)
        os.tcsetpgrp(self.slave, os.getpgrp())
        os.write(hold, b"%d" % os.waitstatus_to_exitcode(status))
        time.sleep(60)
        os._exit(0)

    def run(self, seconds, until=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            if select.select([self.master], [], [], 0.02)[0]:
                self.output += os.read(self.master, 65536)
        return until()

    def status(self):
        """Return the exit status of the job, which has ended; below 0: its signal."""
        return int(os.read(self.hold, 32))

    def wrong(self):
        """Return what is wrong with the terminal, or None."""
        # The kernel may still be passing on what was written last: until nothing comes, not for a time.
        late = time.monotonic() + END_SECONDS
        while select.select([self.master], [], [], 0.2)[0] and time.monotonic() < late:
            self.output += os.read(self.master, 65536)
        if termios.tcgetattr(self.slave)[:6] != self.before[:6]:
            return "its mode is not as before"
        for on, off in ((rb"\?1049h", rb"\?1049l"), (rb"\?25l", rb"\?25h"), (rb"\?1000h", rb"\?1000l")):
            last = {name: max((m.start() for m in re.finditer(rb"\x1b\[" + name, self.output)), default=-1)
                    for name in (on, off)}
            if last[on] > last[off]:
                return f"after {on} there is no {off}"
        return None

    def close(self):
        os.kill(self.leader, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        for fd in (self.master, self.slave, self.hold):
            os.close(fd)


def pick(rng, victim, tree, guard):
    """Return the process or thread to kill; None if there is none at that time."""
    main = next((p for p in children(guard) if comm(p) == "proftop"), None)
    if victim == "guard":
        return guard
    if not main or victim == "main":
        return main
    if victim == "thread":
        try:
            return int(rng.choice(os.listdir(f"/proc/{main}/task")))
        except (OSError, IndexError):
            return None
    if victim in SERVERS:
        return next((p for p in tree if comm(p) == SERVERS[victim]), None)
    if victim == "reader":
        found = [p for p in tree if re.fullmatch(r"read\d+", comm(p))]
    else:
        found = [p for p in tree if comm(p).startswith("proftop-") and comm(p) not in SERVERS.values()]
    return rng.choice(found) if found else None


def once(number, seed, proftop, folder):
    rng = random.Random(seed * 100000 + number)
    # The pairs one after another, at random times.
    victim, name = VICTIMS[number % len(VICTIMS)], SIGNALS[number // len(VICTIMS) % len(SIGNALS)]
    about = f"{number}: {name} to {victim}"
    record = f"{folder}/{number}.data" if rng.random() < 0.3 else None
    t = Terminal([proftop, "-d", "0.2", "-F", "199"] + ([f"--record={record}"] if record else []))
    try:
        t.run(rng.random() * 1.2)
        tree = below(t.guard)
        target = pick(rng, victim, tree, t.guard)
        tree = set(tree + below(t.guard))
        if target and alive(target):
            send(target, getattr(signal, "SIG" + name))
        t.run(0.3)
        tree |= set(below(t.guard)) if alive(t.guard) else set()
        if name == "STOP" and target and alive(target):
            send(target, signal.SIGCONT)
        # It goes on without its sandbox: end it as a user does.
        if alive(t.guard):
            send(t.guard, signal.SIGTERM)
        if not t.run(END_SECONDS, lambda: not any(alive(p) for p in tree)):
            left = [(p, threads(p)) for p in tree if threads(p)]
            for p, _ in left:
                send(p, signal.SIGKILL)
            return f"{about}: left: {left}, load {os.getloadavg()[0]}"
        fault = t.wrong()
        if fault:
            return f"{about}: the terminal: {fault}"
    finally:
        t.close()
    if record and os.path.exists(record):
        size = os.path.getsize(record)
        replay = subprocess.run([proftop, "--replay", record, "-b"], capture_output=True, timeout=90, check=False)
        os.unlink(record)
        if replay.returncode and size > 8192:
            return f"{about}: --replay of {size} bytes: {replay.stderr.decode(errors='replace')}"
    return None


def main():
    proftop, folder, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(10000)
    print(f"seed {seed}, {times} times")
    nr_bad = nr_done = 0
    spin = subprocess.Popen(["nice", sys.executable, "-c", SPIN])
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        for wrong in pool.map(once, range(times), [seed] * times, [proftop] * times, [folder] * times):
            nr_done += 1
            if wrong:
                nr_bad += 1
                print("wrong:", wrong, flush=True)
            if nr_done % 100 == 0:
                print(f"{nr_done} done, {nr_bad} wrong", flush=True)
    spin.kill()
    spin.wait()
    print(f"{nr_done} times, {nr_bad} wrong")
    return nr_bad > 0


if __name__ == "__main__":
    sys.exit(main())
