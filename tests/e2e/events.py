# SPDX-License-Identifier: GPL-2.0-or-later
"""What perf and proftop ask the kernel for by the same name, compared: both under strace."""
import json
import os
import re
import subprocess
import sys

PROFTOP, ALL = sys.argv[1], sys.argv[2]
FIELDS = ("type", "config", "bp_type", "bp_addr", "bp_len", "config2", "exclude_user", "exclude_kernel",
          "exclude_hv", "exclude_host", "exclude_guest", "precise_ip")
CALL = re.compile(r"perf_event_open\(\{(.*)\}, (-?\d+), (-?\d+), -1, (\S+)\) = (-?\d+)(?: (E\w+))?")
SPELLED = ["r1a8", "cycles:u", "cycles:k", "instructions:uk", "cpu-clock:u", "cpu-clock:k", "page-faults:u", "cs:k",
           "L1-dcache-load-misses:u", "msr/tsc/", "msr/event=0/", "mem:0x1000", "mem:0x1000/8:w", "mem:0x1000:x:u",
           "mem:0x1000/4:rw:k", "sched:sched_switch:u", "cpu-clock/period=1000000/", "cpu-clock/freq=99/u"]
WORDS = {"cpu-clock/period=1000000/": "sample_period", "sched:sched_switch": "sample_period"}


def calls(command):
    out = subprocess.run(["strace", "-X", "raw", "-v", "-s", "256", "-f", "-e", "trace=perf_event_open", *command],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60,
                         text=True).stderr
    for m in CALL.finditer(out):
        attr = dict(re.findall(r"(\w+)=(-?\w+)", m.group(1)))
        yield {k: int(v, 0) for k, v in attr.items() if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", v)}, m.group(6) or ""


def own_first(command, wanted):
    """The attr first asked for, and if it was opened in the end, with less or as it was."""
    found = [(a, e) for a, e in calls(command) if wanted(a)]
    if not found:
        return None, "no call"
    first, errno = found[0]
    same = [e for a, e in found if (a["type"], a["config"]) == (first["type"], first["config"])]
    return first, "" if "" in same else errno


def of_perf(name):
    return own_first(["perf", "record", "-o", "/dev/null", "-e", name, "true"],
                     lambda a: a.get("enable_on_exec") and a.get("sample_type", 0) & 1)


def of_proftop(name):
    return own_first([PROFTOP, "-b", "-n", "1", "-d", "0.1", "--rows", "1", "-e", name],
                     lambda a: a.get("sample_type", 0) & 1)


def compare(name):
    (perf, perf_errno), (ours, our_errno) = of_perf(name), of_proftop(name)
    if perf is None or ours is None:
        return f"{name}: perf {perf and 'asks'} {perf_errno}, proftop {ours and 'asks'} {our_errno}"
    fields = [f for f in FIELDS if perf.get(f, 0) != ours.get(f, 0)]
    # With k alone perf takes guests in; their addresses are no places of ours.
    if "exclude_guest" in fields and re.search(r":k$", name):
        fields.remove("exclude_guest")
    if name in WORDS and perf.get(WORDS[name]) != ours.get(WORDS[name]):
        fields.append(WORDS[name])
    if fields:
        return f"{name}: " + ", ".join(f"{f}: perf {perf.get(f)} proftop {ours.get(f)}" for f in fields)
    return "" if perf_errno == our_errno else f"{name}: perf {perf_errno or 'opens'}, proftop {our_errno or 'opens'}"


def names_of_perf():
    out = subprocess.run(["perf", "list", "--no-desc"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         env=dict(os.environ, PAGER="cat")).stdout
    for line in out.splitlines():
        m = re.match(r"\s+(\S.*?)\s+\[(.*)\]\s*$", line)
        if m and "Tool event" not in m.group(2) and "SDT" not in m.group(2) and "descriptor" not in m.group(2) and "<" not in m.group(1):
            for name in m.group(1).split(" OR "):
                yield name.strip(), m.group(2)


listed = [json.loads(line) for line in
          subprocess.run([PROFTOP, "--list-events", "--format=ndjson"], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
known = {o["name"] for o in listed} | {"cs", "faults", "migrations"}
theirs = list(names_of_perf())
missing = [n for n, _ in theirs if n not in known and n not in ("cpu-cycles", "branch-instructions",
           "idle-cycles-frontend", "idle-cycles-backend")]
wrong = [f"{n}: perf lists it, proftop does not" for n in missing]
points = [n for n, kind in theirs if "Tracepoint" in kind]
fixed = [n for n, kind in theirs if "Tracepoint" not in kind]
fixed += [o["name"] for o in listed if o["group"] in ("hardware", "cache") and o["name"] not in fixed]
step = 1 if ALL else max(1, len(points) // 6)
# Its samples must not have user stacks at all: EINVAL where perf, on a task, gets EPERM.
points = [n for n in points if n != "ftrace:function"]
tried = fixed + SPELLED + points[::step]
wrong += filter(None, map(compare, tried))
for line in wrong:
    print(line)
print(f"{len(tried)} names compared, {len(theirs)} listed by perf")
sys.exit(1 if wrong or len(theirs) < 10 else 0)
