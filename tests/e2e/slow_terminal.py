# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal at 9,600 baud behind a pty: screens are skipped, and the end is shown soon after its key. One that answers
nothing has the first rows soon.

slow_terminal.py PROFTOP

The queue of the pty has room for a minute of output; the terminal answers status requests (DSR) as it reads them.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

BYTES_A_SECOND = 960
LINE_SECONDS = 20
# One screen of 80 x 24 and what the terminal had begun.
AT_MOST = 6
RESTORED = b"\033[?1049l"


def start(seconds):
    pid, fd = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm-256color"
        # It waits here until the size is set.
        sys.stdin.readline()
        os.execv(sys.argv[1], [sys.argv[1], "-d", seconds])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    os.write(fd, b"\n")
    return pid, fd


class Line:
    """Reads as slowly as the line sends."""

    def __init__(self, fd):
        self.fd, self.began, self.nr, self.tail, self.requests = fd, time.monotonic(), 0, b"", 0

    def step(self):
        """Return the bytes of the next 50 ms; None: the end."""
        time.sleep(0.05)
        most = int((time.monotonic() - self.began) * BYTES_A_SECOND) - self.nr
        if most <= 0 or not select.select([self.fd], [], [], 0)[0]:
            # A line has no credit for the time in which it was idle.
            self.nr += max(most, 0)
            return b""
        try:
            got = os.read(self.fd, most)
        except OSError:
            return None
        self.nr += len(got)
        self.tail += got
        while b"\033[5n" in self.tail:
            self.tail = self.tail.split(b"\033[5n", 1)[1]
            self.requests += 1
            os.write(self.fd, b"\033[0n")
        self.tail = self.tail[-8:]
        return got or None


def second_screen():
    """Return the seconds from the first screen to the second one, in a terminal that answers nothing."""
    pid, fd = start("1")
    seen, first, took = b"", None, None
    end = time.monotonic() + 20
    while took is None and time.monotonic() < end:
        if not select.select([fd], [], [], 0.1)[0]:
            continue
        seen += os.read(fd, 65536)
        if first is None and b"\033[5n" in seen:
            first = time.monotonic()
        if seen.count(b"\033[5n") > 1:
            took = time.monotonic() - first
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    return took if took is not None else 20


def main():
    bad = 0
    # It has the first rows before it has to answer. On a full machine they may be late once.
    took = sorted(second_screen() for _ in range(3))[1]
    if took > 1.5:
        print(f"wrong: a terminal without answers: {took:.1f} s without rows")
        bad = 1
    pid, fd = start("0.1")
    line = Line(fd)
    while time.monotonic() < line.began + LINE_SECONDS:
        if line.step() is None:
            print("wrong: slow terminal: proftop ended")
            return 1
    os.write(fd, b"\003")
    pressed, seen = time.monotonic(), b""
    while RESTORED not in seen and time.monotonic() < pressed + 120:
        got = line.step()
        if got is None:
            break
        seen = seen[-16:] + got
    took = time.monotonic() - pressed
    status = os.waitpid(pid, 0)[1]
    print(f"(slow terminal: {took:.1f} s from ^C to the end of the screen, {line.requests} screens arrived)")
    if RESTORED not in seen or took > AT_MOST:
        print(f"wrong: slow terminal: {took:.1f} s behind")
        bad = 1
    if os.waitstatus_to_exitcode(status) != 130:
        print(f"wrong: ^C on the screen: exit {os.waitstatus_to_exitcode(status)}")
        bad = 1
    return bad


sys.exit(main())
