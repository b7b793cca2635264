# SPDX-License-Identifier: GPL-2.0-or-later
"""keytimes.py COMMAND...: how long the screen of proftop takes to answer a key.

Runs it in a separate terminal, types $KEYS_FIRST, changes the view 20 times, each after the answer to the one before; prints the
median of the milliseconds: where a key waits for a file, all after it do.
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

PRESSES, PATIENCE = 20, 5.0


def answer(fd, seconds):
    """Wait until something is drawn; how long that took, or None."""
    begin = time.monotonic()
    if not select.select([fd], [], [], seconds)[0]:
        return None
    os.read(fd, 65536)
    return time.monotonic() - begin


def calm_down(fd):
    """Read until the output pauses: the next output is an answer."""
    while answer(fd, 0.03) is not None:
        pass


def main():
    pid, fd = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.argv[1], sys.argv[1:])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    times = []
    try:
        # Its start is not measured.
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            answer(fd, 0.1)
        os.write(fd, os.environ.get("KEYS_FIRST", "").encode())
        for i in range(PRESSES):
            calm_down(fd)
            os.write(fd, b"21"[i % 2:i % 2 + 1])
            took = answer(fd, PATIENCE)
            times.append(PATIENCE if took is None else took)
        os.write(fd, b"q")
    except OSError as e:
        sys.exit(f"it ended: {e}")
    finally:
        time.sleep(0.2)
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(pid, sig)
            except OSError:
                pass
            time.sleep(0.2)
        os.waitpid(pid, 0)
    print(round(sorted(times)[PRESSES // 2] * 1000))


main()
