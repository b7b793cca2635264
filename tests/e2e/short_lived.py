# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of 30 ms, one after the other, beside proftop --name, and threads and children of 1 ms beside -p: their samples
are those of their CPU time; see short_lived.sh."""
import json
import os
import subprocess
import sys
import threading
import time

PROFTOP, TMP = os.environ["PROFTOP"], os.environ["TMP"]
HZ = 499
ENV = dict(os.environ, WORK="30000", SLEEP="0", PIECES="1")
bad = []


class Loop(threading.Thread):
    """Runs a program again and again; notes when each one ended, and its CPU time with its children."""

    def __init__(self, argv):
        super().__init__(daemon=True)
        self.argv, self.runs, self.ends = argv, [], False
        self.start()

    def run(self):
        while not self.ends:
            pid = os.posix_spawn(self.argv[0], self.argv, ENV)
            usage = os.wait4(pid, 0)[2]
            self.runs.append((time.time_ns(), usage.ru_utime + usage.ru_stime))


def sample(name, *options):
    out = subprocess.run([PROFTOP, "-b", "-n", "1", "-d", "4", "-e", "cpu-clock", "-F", str(HZ), "--name", name,
                          "--format=ndjson", "--rows=0", *options], stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def cpu_seconds(pid):
    """Return the CPU time of a process, of its threads and of the children that it waited for."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def check_tasks(name, fork, work, user=None):
    """Threads or children of a millisecond: with a timer for each of them hardly one would expire."""
    env = dict(ENV, FORK=fork, WORK=work)
    with subprocess.Popen([f"{TMP}/short-one"], env=env, user=user) as process:
        time.sleep(0.2)
        begin, before = time.monotonic(), cpu_seconds(process.pid)
        target = ["-u", str(user)] if user else ["-p", str(process.pid)]
        out = subprocess.run([PROFTOP, "-b", "-n", "1", "-d", "3", "-e", "cpu-clock", "-F", str(HZ), *target, "--format=ndjson",
                              "--rows=0"], stdout=subprocess.PIPE, text=True, check=True).stdout
        share = (cpu_seconds(process.pid) - before) / (time.monotonic() - begin)
        process.kill()
    tick = json.loads(out.splitlines()[-1])
    taken, wanted = tick["account"]["taken"], share * tick["interval_ns"] / 1e9 * HZ
    known = sum(p["pct"] for p in tick["cpu"]["processes"]) + tick["cpu"].get("other_processes", {}).get("pct", 0)
    print(f"{name}: {taken} samples of {wanted:.0f}, {tick['cpu']['pct']:.0f} % of a CPU, {known:.0f} known", file=sys.stderr)
    # Of the tick alone, which may have had less of a busy machine than the time around it.
    clock = known / 100 * tick["interval_ns"] / 1e9 * HZ
    if not 0.5 * min(wanted, clock) <= taken <= 1.5 * max(wanted, clock) + 20:
        bad.append(f"{name}: {taken} samples, wanted {wanted:.0f}, by its clock {clock:.0f}")
    if tick["cpu"]["pct"] > 1.5 * known + 10:
        bad.append(f"{name}: {tick['cpu']['pct']} % of a CPU, {known} of them of processes")


def check(name, *argv, options=()):
    loop = Loop([f"{TMP}/{argv[0]}", *argv[1:]])
    time.sleep(0.1)
    tick = sample(name, *options)
    loop.ends = True
    loop.join()
    begin, end = tick["time_ns"] - tick["interval_ns"], tick["time_ns"]
    ran = sum(seconds for ended, seconds in loop.runs if begin <= ended <= end)
    # A host that is busy takes timers from its guests.
    taken, wanted = tick["account"]["taken"], ran * HZ
    least = ran * min(tick["events"][0].get("got_hz") or HZ, HZ)
    others = [p for p in tick.get("cpu", {}).get("processes", []) if p["comm"] not in (argv[0][:15], "short-one")]
    print(f"{name}: {taken} samples of {wanted:.0f}, {tick['account'].get('filtered', 0)} of others", file=sys.stderr)
    if not 0.7 * least <= taken <= 1.3 * wanted + 20:
        bad.append(f"{name}: {taken} samples, wanted {wanted:.0f}")
    # One that ended before it was known by name is [unknown].
    if any(p["comm"] != "[unknown]" or p["pct"] > 0.1 * tick["cpu"]["pct"] for p in others):
        bad.append(f"{name}: samples of {others}")


check("^short-one$", "short-one")
check("longer|more-than-15", "a-name-of-more-than-15-bytes")
# The children of a process with the name.
check("short-shell", "short-shell", "-c", f"{TMP}/short-one; {TMP}/short-one")
# A recording has no samples of other processes.
check("^short-one$", "short-one", options=("--record", f"{TMP}/data"))
replay = subprocess.run([PROFTOP, "--replay", f"{TMP}/data", "-b", "--format=ndjson", "--rows=0"], stdout=subprocess.PIPE,
                        text=True, check=True).stdout
rows = json.loads(replay.splitlines()[-1])["rows"]
others = {r.get("comm") for r in rows} - {"short-one"}
if not rows or others:
    bad.append(f"the recording has {len(rows)} functions, and samples of {others}")
# Other processes whose children end.
other = Loop(["/bin/sh", "-c", f"{TMP}/a-name-of-more-than-15-bytes"])
check_tasks("threads of 1 ms", "2", "1000")
check_tasks("children of 1 ms", "1", "1000")
if os.getuid() == 0:
    os.chmod(TMP, 0o755)
    check_tasks("threads of 1 ms of a user", "2", "1000", 4294000)
other.ends = True
other.join()
for message in bad:
    print(f"wrong: {message}")
sys.exit(bool(bad))
