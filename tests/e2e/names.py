# SPDX-License-Identifier: GPL-2.0-or-later
"""Code shared by the tests of names: programs with one hot function each, one session of
proftop over all of them, and perf's names for the samples of the same session.

A program is known by its comm, at most 15 bytes and unique.
"""
import atexit
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

B = os.path.abspath(os.environ["B"])
PROFTOP = os.path.join(B, "proftop")
PROGRAMS = os.path.join(B, "tests", "programs")
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs")
TMP = tempfile.mkdtemp()
wrongs = []
started = []


def cleanup():
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        pathlib.Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    shutil.rmtree(TMP, ignore_errors=True)


atexit.register(cleanup)


class Missing(Exception):
    """A requirement of a case is missing on this machine."""


def wrong(message):
    wrongs.append(message)
    print("wrong:", message)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"no {tool}")


def has_mount_namespace():
    """Return whether one can be made; a chroot refuses. Say so if not."""
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return True
    print("skipped: not permitted: a mount namespace")
    return False


def sh(*args, **more):
    """Run a tool of the test: it works, or the case cannot be had here."""
    need(args[0])
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode:
        raise Missing(f"{args[0]}: {(done.stderr or done.stdout).strip().splitlines()[:1]}")
    return done.stdout


def path(name):
    return os.path.join(TMP, name)


def hot(comm, *flags, cc="gcc", source="hot.c"):
    """Build tests/programs/hot.c with a hot function hot_COMM; its name is in .symtab only."""
    sh(cc, "-O2", "-fomit-frame-pointer", f"-DNAME=hot_{comm}", "-o", path(comm),
       os.path.join(SOURCES, source), *flags)
    return path(comm)


def start(*command, comm=None, **more):
    """Run it until the end of the test; @comm: as if it were called that."""
    if comm:
        link = path(comm)
        os.symlink(shutil.which(command[0]) or command[0], link)
        command = (link, *command[1:])
    # All of them run without end: this test and proftop come first.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=lambda: os.nice(19), **more)
    started.append(process)
    return process


def children(pid):
    """Return the children of unshare -f: on a loaded machine it forks after a time."""
    late = time.monotonic() + 20
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            pids = [int(word) for word in f.read().split()]
        if pids or time.monotonic() > late:
            return pids
        time.sleep(0.05)


def build_id(file):
    notes = sh("readelf", "-n", file)
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


class Session:
    """The names that proftop has for running processes, and perf for the same samples.

    A program is judged by its last tick after @seconds with SAMPLES of it and with all names; of one in @among, also
    with a row of that name. It ends once each of @comms had such a tick; on a loaded machine that may take ten times as
    long."""
    SAMPLES = 10

    def __init__(self, pids, comms, seconds=3, args=(), among=None):
        self.among = among or {}
        data = path("perf.data")
        self.data = data
        self.modules, self.judged = {}, {}
        with subprocess.Popen(
                [PROFTOP, "-b", "-d", "1", "-n", str(10 * seconds), "--rows=0", "--format=ndjson", "-F", "997",
                 "--record", data, "-p", ",".join(map(str, pids)), *args],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for nr, line in enumerate(process.stdout, 1):
                self.take(json.loads(line), comms, nr >= seconds)
                if len(self.judged) == len(set(comms)):
                    process.send_signal(signal.SIGINT)
                    break
            for _ in process.stdout:
                pass
            code, errors = process.wait(), process.stderr.read()
        if code not in (0, 128 + signal.SIGINT):
            sys.exit(f"proftop: exit {code}: {errors}")
        self.perf = collections.defaultdict(collections.Counter)
        if shutil.which("perf"):
            self.ask_perf(data)

    def ask_perf(self, data):
        # Nothing in the home of the user; no network.
        env = dict(os.environ, HOME=TMP, DEBUGINFOD_URLS="")
        text = subprocess.run(["perf", "script", "-f", "-i", data, "-G", "-F", "comm,ip,sym,dso"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                              errors="replace").stdout
        for line in text.splitlines():
            m = re.match(r"\s*(\S+)\s+([0-9a-f]+) (.*?) \((.*)\)$", line)
            if m:
                self.perf[m.group(1)][m.group(3)] += 1

    def take(self, tick, comms, late):
        self.tick = tick
        self.modules.update((m["name"], m) for m in tick["modules"])
        for comm in comms if late and not tick["names"]["waiting"] else ():
            rows = [r for r in tick["rows"] if r["comm"] == comm and r["self"]]
            seen = any(re.search(self.among.get(comm) or "", r["symbol"]) for r in rows)
            if seen and sum(r["self"] for r in rows) >= self.SAMPLES:
                self.judged[comm] = tick

    def rows(self, comm):
        """Return the rows of @comm with samples, the hottest first."""
        rows = [r for r in self.judged.get(comm, self.tick)["rows"] if r["comm"] == comm and r["self"]]
        return sorted(rows, key=lambda r: -r["self"])

    def perf_says(self, comm, among=None):
        """Its most frequent name of samples; @among: of the matching ones, if there is one."""
        names = self.perf[comm].most_common()
        for name, _ in names:
            if among and re.search(among, name):
                return name
        return names[0][0] if names else "-"

    def source_of(self, row):
        m = self.modules.get(row["module"])
        return m["source"] if m else row["module"]


def finish():
    sys.exit(1 if wrongs else 0)
