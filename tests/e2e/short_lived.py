# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of 30 ms, one after the other, beside proftop --name: their samples are those of their CPU time; see
short_lived.sh."""
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
for message in bad:
    print(f"wrong: {message}")
sys.exit(bool(bad))
