# SPDX-License-Identifier: GPL-2.0-or-later
"""proftop on a pseudo-terminal that answers, or not, when its background is queried."""
import gzip
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import fcntl
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHOP = os.path.join(os.path.dirname(HERE), "data", "shop", "shop.data.gz")
TERMINALS = os.path.join(os.path.dirname(HERE), "data", "terminals.ti")
PROFTOP = os.path.join(os.path.abspath(os.environ["B"]), "proftop")
QUERY = b"\x1b]11;?"
# The selected row, with 256 colours: theme.c.
SELECTED = {"dark": b"48;5;25m", "light": b"48;5;153m"}


class Terminal:
    def __init__(self, folder, env):
        self.output = b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": folder, **env})
            os.execv(PROFTOP, [PROFTOP, "--replay", "shop.data"])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read_until(self, wanted, seconds=20):
        """Read until all of @wanted are in the output; False at the end of the time."""
        end = time.monotonic() + seconds
        while not all(text in self.output for text in wanted):
            if time.monotonic() > end:
                return False
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.output += os.read(self.fd, 65536)
                except OSError:
                    return False
        return True

    def write(self, *pieces):
        for piece in pieces:
            os.write(self.fd, piece)
            time.sleep(0.005)

    def close(self):
        try:
            self.output = b""
            os.write(self.fd, b"Q")
            self.read_until([b"\x1b[?1049l"], 5)
            os.close(self.fd)
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def case(folder, name, theme, answer=(), env=None, selected=None):
    terminal = Terminal(folder, env or {})
    wrong = []
    if not terminal.read_until([QUERY]):
        wrong.append("the background was not queried")
    if answer:
        terminal.write(*answer)
    # Functions: no byte of the answer was a key ("1;rgb:" would open views, reset, start a command).
    if not terminal.read_until([selected or SELECTED[theme], b"[1:Functions]"]):
        wrong.append(f"no {theme} colours")
    for text in (b"counts reset", b"no such key", b"[4:Flame]"):
        if text in terminal.output:
            wrong.append(f"{text} on the screen")
    if terminal.close():
        wrong.append("does not end well")
    print(f"{name}: {'; '.join(wrong) or 'ok'}")
    return not wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        with gzip.open(SHOP) as packed, open(os.path.join(folder, "shop.data"), "wb") as plain:
            plain.write(packed.read())
        subprocess.run(["tic", "-x", "-o", folder, TERMINALS], check=True)
        white = b"\x1b]11;rgb:ffff/ffff/eeee"
        return all([
            case(folder, "no answer", "dark"),
            case(folder, "white", "light", [white + b"\x1b\\"]),
            case(folder, "white, ended by BEL", "light", [white + b"\a"]),
            case(folder, "two digits", "light", [b"\x1b]11;rgb:fd/f6/e3\a"]),
            case(folder, "in pieces", "light", [white[:1], white[1:9], white[9:], b"\x1b", b"\\"]),
            case(folder, "black", "dark", [b"\x1b]11;rgb:0000/0000/0000\x1b\\"], {"COLORFGBG": "0;15"}),
            case(folder, "COLORFGBG", "light", [], {"COLORFGBG": "0;default;15"}),
            # The same colours as red, green and blue.
            case(folder, "24 bits", "dark", [], {"TERM": "xterm-direct", "TERMINFO": folder}, b"48:2::0:95:175m"),
            case(folder, "24 bits, white", "light", [white + b"\a"], {"TERM": "xterm-direct", "TERMINFO": folder},
                 b"48:2::175:215:255m"),
            case(folder, "nonsense", "dark", [b"\x1b]11;" + b"x" * 30 + b"\a"]),
        ])


sys.exit(not main())
