# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU % of proftop beside /proc/PID/stat of the same interval, which is known by the time of each look.

cpu.py PROFTOP PID,PID... OPTION...      each process
cpu.py --children PROFTOP PROGRAM US     a program with children of US microseconds: the sum
"""
import json
import os
import subprocess
import sys
import threading
import time

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
SECONDS = 4


def cpu_ms(pid, children):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return sum(int(f) for f in fields[11:15 if children else 13]) * TICK_MS


class Looks(threading.Thread):
    """Looks at the CPU time of processes, with the time before and after each one."""

    def __init__(self, pids, children=False):
        super().__init__(daemon=True)
        self.pids, self.children, self.looks, self.ends = pids, children, {p: [] for p in pids}, False
        self.start()

    def run(self):
        while not self.ends:
            for pid in self.pids:
                before = time.time_ns()
                ms = cpu_ms(pid, self.children)
                self.looks[pid].append((before, time.time_ns(), ms))
            time.sleep(0.02)

    def at(self, pid, ns):
        """The least and the most CPU time of a process at a time."""
        looks = self.looks[pid]
        return (max((ms for before, after, ms in looks if after <= ns), default=looks[0][2]),
                min((ms for before, after, ms in looks if before >= ns), default=looks[-1][2]))


def check(name, pct, looks, pid, tick, loose):
    end, begin = tick["time_ns"], tick["time_ns"] - tick["interval_ns"]
    (a, b), (c, d) = looks.at(pid, begin), looks.at(pid, end)
    ms = tick["interval_ns"] / 1e6
    # Times are whole clock ticks.
    least, most = max(c - b - 2 * TICK_MS, 0) * 100 / ms, (d - a + 2 * TICK_MS) * 100 / ms
    far = max(0.03 * (least + most) / 2, 0.2) * loose
    print(f"{name}: {pct:.2f}, by /proc {least:.2f} to {most:.2f}", file=sys.stderr)
    return least - far <= pct <= most + far


def run(proftop, options, looks, judge, first=None):
    """Judge the ticks after the first one; one of them has to be right: machines stall. @first judges that one."""
    tick = subprocess.Popen([proftop, "-b", "-n", "4", "-d", str(SECONDS / 2), "--format=ndjson", "--rows=0", *options],
                            stdout=subprocess.PIPE, text=True)
    ticks = [json.loads(line) for line in tick.stdout]
    time.sleep(0.1)
    looks.ends = True
    looks.join()
    if tick.wait() or len(ticks) != 4:
        sys.exit(f"exit {tick.returncode}, {len(ticks)} ticks")
    if not any([judge(t) for t in ticks[1:]]) or (first and not first(ticks[0])):
        sys.exit(1)


def processes(proftop, pids, *options):
    pids = [int(p) for p in pids.split(",")]
    looks = Looks(pids)

    def judge(tick):
        pct = {p["pid"]: p["pct"] for p in tick["cpu"]["processes"]}
        return all([check(f"pid {p}", pct.get(p, 0), looks, p, tick, 1) for p in pids])

    run(proftop, options, looks, judge)


def children(proftop, program, work):
    env = dict(os.environ, FORK="1", WORK=work, SLEEP=work, LASTS="600")
    parent = subprocess.Popen([program], env=env)
    looks = Looks([parent.pid], children=True)
    try:
        run(proftop, ["-p", str(parent.pid)], looks,
            lambda tick: check("all", tick["cpu"]["pct"], looks, parent.pid, tick, 1),
            # "-n 1" has no other. Without the time of events it was less than half, or none.
            lambda tick: check("first", tick.get("cpu", {"pct": 0})["pct"], looks, parent.pid, tick, 8))
    finally:
        parent.kill()


if sys.argv[1] == "--children":
    children(*sys.argv[2:])
else:
    processes(*sys.argv[1:])
