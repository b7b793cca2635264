# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the requests of perf and proftop to the kernel for the same name: both under strace.

Names that can be opened go many into one run; when such a run does not show each of them, and for all others, one
name a run.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

PROFTOP, ALL = sys.argv[1], sys.argv[2]
FIELDS = ("type", "config", "bp_type", "bp_addr", "bp_len", "config2", "exclude_user", "exclude_kernel",
          "exclude_hv", "exclude_host", "exclude_guest", "precise_ip")
CALL = re.compile(r"perf_event_open\(\{(.*)\}, (-?\d+), (-?\d+), -1, (\S+)\) = (-?\d+)(?: (E\w+))?")
SPELLED = ["r1a8", "cycles:u", "cycles:k", "instructions:uk", "cpu-clock:u", "cpu-clock:k", "page-faults:u", "cs:k",
           "L1-dcache-load-misses:u", "msr/tsc/", "msr/event=0/", "mem:0x1000", "mem:0x1000/8:w", "mem:0x1000:x:u",
           "mem:0x1000/4:rw:k", "sched:sched_switch:u", "cpu-clock/period=1000000/", "cpu-clock/freq=99/u"]
ALIASES = ("cpu-cycles", "branch-instructions", "idle-cycles-frontend", "idle-cycles-backend", "cs", "faults",
           "migrations")
# How many of them one run takes: proftop's limit; few enough for perf to have files for.
OURS_MAX, THEIRS_MAX = 8, 64
SAMPLE = 16


class Call:
    def __init__(self, match):
        attr = dict(re.findall(r"(\w+)=(-?\w+)", match.group(1)))
        self.attr = {k: int(v, 0) for k, v in attr.items() if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", v)}
        self.cpu, self.errno = int(match.group(3)), match.group(6) or ""

    def samples(self, perf):
        return self.attr.get("sample_type", 0) & 1 and (not perf or self.attr.get("enable_on_exec"))


def whole(log):
    """The lines of a log of strace -f, with the parts of interrupted lines put together."""
    begun = {}
    for line in log:
        pid, _, text = line.rstrip("\n").partition(" ")
        resumed = re.search(r"<\.\.\. \w+ resumed>", text)
        if text.endswith("<unfinished ...>"):
            begun[pid] = text.removesuffix(" <unfinished ...>")
        elif resumed:
            yield begun.pop(pid, "") + text[resumed.end():]
        else:
            yield text


def run(names, perf):
    """The calls for samples in their order, and the messages."""
    events = [w for n in names for w in ("-e", n)]
    command = (["perf", "record", "-o", "/dev/null", *events, "true"] if perf else
               [PROFTOP, "-b", "-n", "2", "-d", "0.1", "--rows", "1", *events])
    with tempfile.NamedTemporaryFile("r") as log:
        said = subprocess.run(["strace", "-X", "raw", "-v", "-s", "256", "-f", "-o", log.name, "-e",
                               "trace=perf_event_open", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, text=True).stderr
        calls = [Call(m) for m in map(CALL.search, whole(log)) if m]
    return [c for c in calls if c.samples(perf)], said


def one(name, perf):
    """The attr first requested, if it was opened in the end, reduced or not, and the messages."""
    calls, said = run([name], perf)
    if not calls:
        return None, "no call", said
    first = calls[0].attr
    same = [c.errno for c in calls if (c.attr["type"], c.attr["config"]) == (first["type"], first["config"])]
    return first, "" if "" in same else calls[0].errno, said


def many(names, perf):
    """The attrs of names that all can be opened, as one CPU has them; else of halves, down to one by one."""
    calls, _ = run(names, perf) if len(names) > 1 else ([], "")
    cpu = min((c.cpu for c in calls), default=0)
    attrs = [c.attr for c in calls if c.cpu == cpu and not c.errno]
    if len(attrs) == len(names) and not any(c.errno for c in calls):
        return {n: (a, "", "") for n, a in zip(names, attrs)}
    if len(names) < 4:
        return {n: one(n, perf) for n in names}
    half = len(names) // 2
    return many(names[:half], perf) | many(names[half:], perf)


def ask(names, usable, perf, size):
    found = {}
    together = [n for n in names if n in usable]
    for i in range(0, len(together), size):
        found.update(many(together[i:i + size], perf))
    found.update((n, one(n, perf)) for n in names if n not in usable)
    return found


def compare(name, theirs, ours):
    (perf, perf_errno, _), (mine, our_errno, said) = theirs, ours
    if perf is None or mine is None:
        return f"{name}: perf {perf and 'asks'} {perf_errno}, proftop {mine and 'asks'} {our_errno}"
    fields = [f for f in FIELDS if perf.get(f, 0) != mine.get(f, 0)]
    # With k alone perf takes guests in, perf 7 always; their addresses are no places of ours.
    if "exclude_guest" in fields and mine.get("exclude_guest"):
        fields.remove("exclude_guest")
    if perf.get("type") == 2 or "/period=" in name:
        fields += ["sample_period"] if perf.get("sample_period") != mine.get("sample_period") else []
    if fields:
        return f"{name}: " + ", ".join(f"{f}: perf {perf.get(f)} proftop {mine.get(f)}" for f in fields)
    if perf_errno != our_errno:
        return f"{name}: perf {perf_errno or 'opens'}, proftop {our_errno or 'opens'}"
    # The default has fallbacks; the message of every other failure names the event, and the fix.
    if our_errno and (name not in said or len(said.splitlines()) != 3):
        return f"{name}: {our_errno} is reported as: {said}"
    return ""


def names_of_perf():
    out = subprocess.run(["perf", "list", "--no-desc"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         env=dict(os.environ, PAGER="cat")).stdout
    for line in out.splitlines():
        # Descriptions of metrics, which --no-desc leaves in, are no names: "[Uops of port 0 ([SNB+] ALU;]".
        m = re.match(r"\s+([^\s\[].*?)\s+\[(.*)\]\s*$", line)
        # perf 7 lists records of ftrace too; the kernel opens none of them but ftrace:function.
        if m and m.group(1).startswith("ftrace:"):
            continue
        if m and not re.search("Tool event|SDT|descriptor", m.group(2)) and "<" not in m.group(1):
            for name in m.group(1).split(" OR "):
                yield name.strip(), m.group(2)


began = time.monotonic()
listed = [json.loads(line) for line in
          subprocess.run([PROFTOP, "--list-events", "--format=ndjson"], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
known = {o["name"] for o in listed}
theirs = list(names_of_perf())
wrong = [f"{n}: perf lists it, proftop does not" for n, _ in theirs if n not in known and n not in ALIASES]
# Its samples must not have user stacks at all: EINVAL where perf, on a task, gets EPERM.
points = [n for n, kind in theirs if "Tracepoint" in kind and n != "ftrace:function"]
fixed = [n for n, kind in theirs if "Tracepoint" not in kind]
fixed += [o["name"] for o in listed if o["group"] in ("hardware", "cache") and o["name"] not in fixed]
# Refused to all: its samples would make it happen.
refused = [n for n in points if n == "irq_vectors:irq_work_exit"]
absent = [o["name"] for o in listed if not o["usable"] and o["name"] in fixed]
fixed = [n for n in fixed if n not in absent] + absent[::1 if ALL else max(1, len(absent) // SAMPLE)]
tried = list(dict.fromkeys(fixed + SPELLED + points[::1 if ALL else max(1, len(points) // SAMPLE)] + refused))
# A guess, to have them in one run: a wrong one only costs time.
usable = {o["name"] for o in listed if o["usable"]} | {"cs", "faults", "migrations"}
usable -= set(refused)
usable |= {n for n in SPELLED if n.startswith(("mem:", "sched:")) or re.split("[:/]", n)[0] in usable}
perf, ours = ask(tried, usable, True, THEIRS_MAX), ask(tried, usable, False, OURS_MAX)
wrong += filter(None, (compare(n, perf[n], ours[n]) for n in tried))
for line in wrong:
    print(line)
print(f"{len(tried)} names compared, {len(wrong)} differ, {len(theirs)} listed by perf, "
      f"{time.monotonic() - began:.0f} s")
sys.exit(1 if wrong or len(theirs) < 10 else 0)
