# SPDX-License-Identifier: GPL-2.0-or-later
"""Print the waits of a recording as perf script reads them: thread, function, seconds off the CPU.

Usage: times.py RECORDING ROOT. The function is the innermost one of the program; "preempted": runnable.
"""
import re
import subprocess
import sys

HEAD = re.compile(r"(\S+)\s+(\d+)\s+([\d.]+): (PERF_RECORD_SWITCH (IN|OUT)( +preempt)?|context-switches)?")
FRAME = re.compile(r"\s+([0-9a-f]+) (\S+)$")


def main():
    lines = subprocess.run(["perf", "script", "-i", sys.argv[1], "--symfs", sys.argv[2], "--show-switch-events",
                            "-F", "comm,tid,time,event,ip,sym"], capture_output=True, text=True, check=True).stdout
    sums, function, off, sampled, now = {}, {}, {}, None, 0.0
    for line in lines.splitlines():
        frame, head = FRAME.match(line), HEAD.match(line)
        if frame and sampled and len(frame[1]) < 16:
            function[sampled] = frame[2]
        if not head:
            continue
        tid, now, sampled = int(head[2]), float(head[3]), None
        if head[4] == "context-switches":
            sampled = tid
        elif head[5] == "OUT":
            off[tid] = now, "preempted" if head[6] else function.get(tid, "?")
        elif head[5] == "IN" and tid in off:
            since, name = off.pop(tid)
            sums[tid, name] = sums.get((tid, name), 0) + now - since
    for tid, (since, name) in off.items():
        sums[tid, name] = sums.get((tid, name), 0) + now - since
    for (tid, name), seconds in sorted(sums.items()):
        print(tid, name, f"{seconds:.6f}")


main()
