# SPDX-License-Identifier: GPL-2.0-or-later
"""Every view of the committed recordings, drawn by --script and in a real terminal, against committed screens.

golden.py            compare
golden.py update     write tests/golden/replay/: look at the difference before it is committed
"""
import concurrent.futures
import difflib
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time

from screen import PROFTOP, Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
DATA = os.path.join(TESTS, "data")
GOLDEN = os.path.join(TESTS, "golden", "replay")
SIZES = ["40x8", "80x24", "100x30", "200x60"]
CHARSETS = ["utf-8", "ascii"]
VIEWS = {
    "functions": "1",
    "processes": "2",
    "threads": "2<Enter>",
    "tree": "3*",
    "tree-bottom-up": "3I*",
    "flame": "4",
    "flame-down": "4I",
    "cpus": "5",
    "modules": "6",
    "messages": "7",
    "callers": "/parse_object<Enter>b",
    "annotate": "/checksum<Enter>a<tick>",
    "grid": "`<tick><Up><Left><tick>",
    "help": "?",
    "command": ":th",
}
# Of the recording of waits, in fewer sizes: all sizes are drawn by tests/ui/test_times.c.
WAIT_SIZES = [("80x24", "ascii"), ("100x30", "utf-8")]
WAIT_VIEWS = {
    "wait-functions": ["--time=wait", "1"],
    "wait-processes": ["--time=wait", "2"],
    "wait-threads": ["--time=wait", "2H"],
    "wait-tree": ["--time=wait", "3*"],
    "wait-flame": ["--time=wait", "4"],
    "wait-callers": ["--time=wait", "/transfer<Enter>b"],
    "wait-menu": ["--time=wait", "/Mutex::lock<Enter>m"],
    "all-functions": ["--time=all", "1"],
    "all-idle-shown": ["--time=all", "1\""],
    "all-processes": ["--time=all", "2"],
    "all-flame": ["--time=all", "4"],
}


def options_of(view):
    """The recording of a view, and the options it is shown with."""
    name, options = ("checkout", WAIT_VIEWS[view][:-1]) if view in WAIT_VIEWS else ("shop", [])
    return ["--replay", f"{name}.data", "--symfs", os.path.join(DATA, name, "root"), *options]


def keys_of(view):
    return WAIT_VIEWS[view][-1] if view in WAIT_VIEWS else VIEWS[view]


def sizes_of(view):
    if view == "grid":
        # With two slices in a cell a terminal of 256 colours has other characters.
        return [("80x24", "ascii"), ("200x60", "utf-8")]
    return WAIT_SIZES if view in WAIT_VIEWS else [(size, charset) for charset in CHARSETS for size in SIZES]


def command(view, charset, extra=()):
    ascii_only = ["--ascii"] if charset == "ascii" else []
    return [PROFTOP, *options_of(view), *ascii_only, *extra]


def trim(text):
    """The visible text: no blanks at the ends, no empty lines below."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")


def scripted(folder, view, size, charset):
    done = subprocess.run(command(view, charset, ["--size", size, "--script", keys_of(view)]), cwd=folder, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"wrong: --script {keys_of(view)} at {size}: exit {done.returncode}: {done.stderr}")
    return trim(done.stdout)


def in_terminal(folder, view, size, charset, golden):
    """The same in tmux; wait for the golden screen, return the last screen."""
    cols, rows = size.split("x")
    line = " ".join(f"'{word}'" for word in command(view, charset))
    terminal = Terminal(f"sh -c \"cd {folder} && exec {line}\"", int(cols), int(rows))
    screen = ""
    try:
        terminal.wait_for("REPLAY|recording", 60)
        # Without the heat strip: its columns depend on the time of the replay.
        terminal.press("|")
        terminal.press("|")
        for key in re.findall("<[A-Za-z-]+>|.", keys_of(view)):
            if key == "<tick>" and view == "grid":
                terminal.wait_for(" 0 ms", 20)
            elif key != "<tick>":
                terminal.press(key.strip("<>") if len(key) > 1 else key)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            screen = trim(terminal.screen())
            if screen == golden:
                break
            time.sleep(0.05)
    finally:
        terminal.close()
    return screen


def path_of(view):
    return os.path.join(GOLDEN, view + ".txt")


def heading(size, charset):
    return f"=== {size} {charset}"


def read_golden(view):
    """{(size, charset): screen}"""
    screens = {}
    with open(path_of(view), encoding="utf-8") as f:
        parts = re.split(r"^=== (\S+) (\S+)\n", f.read(), flags=re.M)[1:]
    for size, charset, text in zip(parts[::3], parts[1::3], parts[2::3]):
        screens[(size, charset)] = trim(text)
    return screens


def update(folder):
    os.makedirs(GOLDEN, exist_ok=True)
    for view in [*VIEWS, *WAIT_VIEWS]:
        with open(path_of(view), "w", encoding="utf-8") as f:
            for size, charset in sizes_of(view):
                f.write(f"{heading(size, charset)}\n{scripted(folder, view, size, charset)}\n")


def check(folder, view, size, charset, golden):
    """None, or how it differs."""
    for where, draw in ("--script", scripted), ("a terminal", lambda *args: in_terminal(*args, golden)):
        screen = draw(folder, view, size, charset)
        if screen != golden:
            diff = difflib.unified_diff(golden.splitlines(), screen.splitlines(), "golden", where, lineterm="")
            return f"wrong: {view} {size} {charset}, by {where}:\n" + "\n".join(diff)
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("shop", "checkout"):
            with gzip.open(os.path.join(DATA, name, f"{name}.data.gz")) as packed, \
                    open(os.path.join(folder, f"{name}.data"), "wb") as f:
                f.write(packed.read())
            os.chmod(os.path.join(folder, f"{name}.data"), 0o600)
        if sys.argv[1:] == ["update"]:
            update(folder)
            return 0
        jobs, faults = [], []
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for view in [*VIEWS, *WAIT_VIEWS]:
                for (size, charset), golden in read_golden(view).items():
                    jobs.append(pool.submit(check, folder, view, size, charset, golden))
        faults = [job.result() for job in jobs if job.result()]
        print("\n".join(faults))
        print(f"{len(jobs) - len(faults)} screens as they should be, {len(faults)} not")
        return 1 if faults or len(jobs) != sum(len(sizes_of(view)) for view in [*VIEWS, *WAIT_VIEWS]) else 0


if __name__ == "__main__":
    sys.exit(main())
