#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""storms.py [COPIES [KIND...]]: the cost of proftop beside programs that rename threads, fork, execute, start threads,
map code, run programs without a name, have 20,000 mappings, map a file and start a child, and move between cgroups, as
fast as they can. They and a program that computes are in a cgroup, and proftop samples that, so that other work does
not count.
At most 10 % of one CPU each (the median of the ticks), no lost samples, memory level. Of renames also the cost when all
processes are sampled, three pairs with and without them. Needs root."""
import json
import os
import statistics
import subprocess
import sys
import time

B = os.path.abspath(os.environ.get("B", "build/release"))
KINDS = ["none", "rename", "fork", "exec", "thread", "mmap", "memfd", "maps", "children", "cgroup"]
SECONDS = 8


def cgroup():
    """Make a cgroup of the perf_event hierarchy, or of the unified one."""
    mounts = [line.split() for line in open("/proc/mounts", encoding="utf-8")]
    roots = [m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3].split(",")]
    roots += [m[1] for m in mounts if m[2] == "cgroup2"]
    group = f"{roots[0]}/proftop-storms-{os.getpid()}"
    os.mkdir(group)
    return group


def measure(kind, copies, group, everything=False):
    def join():
        with open(f"{group}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write("0")

    def start(*args):
        return subprocess.Popen(args, stdout=subprocess.PIPE, preexec_fn=join, text=True)

    spin = start(f"{B}/tests/programs/spin", str(SECONDS + 2))
    storms = [start(f"{B}/tests/programs/tempest", kind, str(SECONDS), group)
              for _ in range(copies if kind != "none" else 0)]
    time.sleep(0.3)
    out = subprocess.run([f"{B}/proftop", "-b", f"-n{SECONDS - 2}", "-F", "499", "--rows=5", "--format=ndjson"] +
                         ([] if everything else ["-G", "/" + os.path.basename(group)]),
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    rate = sum(int(s.communicate()[0] or 0) for s in storms) / SECONDS
    spin.kill()
    spin.wait()
    ticks = [json.loads(line) for line in out.splitlines()][1:]
    own = statistics.median(t["self"]["cpu_pct"] for t in ticks)
    samplers = statistics.median(t["self"]["samplers_pct"] for t in ticks)
    sums = {k: sum(t["account"].get(k, 0) for t in ticks)
            for k in ("taken", "lost", "pending", "dropped", "names_dropped")}
    rss = [t["self"]["rss_kb"] >> 10 for t in ticks]
    if everything:
        kind += ", all"
    print(f"{kind:11} {rate:9.0f}/s  own {own:5.1f} %  sampler threads {samplers:5.1f} %  "
          f"memory {rss[0]} to {rss[-1]} MiB  {sums}", flush=True)
    return own, sums["lost"]


def held(kind, copies, group):
    own, lost = measure(kind, copies, group)
    return own <= 10 and not lost


def held_by_all(kind, copies, group):
    """Sampling all processes: what the storm adds to the cost of the other work of the machine."""
    pairs = [[measure(k, copies, group, True)[0] for k in ("none", kind)] for _ in range(3)]
    added = statistics.median(storm - none for none, storm in pairs)
    print(f"{kind}, all processes: {added:+.1f} % of one CPU", flush=True)
    return added <= 10


def main():
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    group = cgroup()
    try:
        good = [held(kind, copies, group) for kind in sys.argv[2:] or KINDS]
        good += [held_by_all("rename", copies, group)] if not sys.argv[2:] else []
    finally:
        time.sleep(0.1)
        os.rmdir(group)
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
