#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write recordings of hardware that this machine may lack, byte by byte: calls by LBR, taken
branches, accesses to memory. The code in them is an ELF file's.

branches.py make lbr|branches|memory ELF FILE [counters|bare|struct]
branches.py compare FILE PERF OURS: the output of perf script and ours has the same samples, names
of frames, branches and accesses; prints their number
"""
import re
import struct
import subprocess
import sys

CALLCHAIN, ADDR, WEIGHT, DATA_SRC = 1 << 5, 1 << 3, 1 << 14, 1 << 15
BRANCHES, PHYS, DATA_PAGE, CODE_PAGE, WEIGHTS = 1 << 11, 1 << 19, 1 << 22, 1 << 23, 1 << 24
RAW, READ, INTR, CGROUP, TXN = 1 << 10, 1 << 4, 1 << 18, 1 << 21, 1 << 17
BASE = (1 << 16) | 1 | 2 | 4 | (1 << 7) | (1 << 8)  # IDENTIFIER IP TID TIME CPU PERIOD
HW_INDEX, COUNTERS, CALL_STACK = 1 << 17, 1 << 19, 1 << 11
PC_KERNEL, PC_USER = -128 & (1 << 64) - 1, -512 & (1 << 64) - 1
AT = 0x7f0000000000
PID = 4242


def functions(elf):
    """Return (address, size, name) of functions, and the segment with code."""
    out = []
    for line in subprocess.run(["nm", "-S", "--defined-only", elf], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT" and int(parts[1], 16) >= 32 and ".cold" not in parts[3]:
            out.append((int(parts[0], 16), int(parts[1], 16), parts[3]))
    for line in subprocess.run(["readelf", "-lW", elf], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        parts = line.split()
        if parts[:1] == ["LOAD"] and "E" in parts[6:-1]:
            segment = [int(p, 16) for p in parts[1:5]]
    return sorted(out), segment


class Recording:
    """One event, one process with one mapping."""

    def __init__(self, elf, sample_type, branch_type=0):
        self.functions, (self.offset, self.vaddr, _, self.size) = functions(elf)
        self.type, self.branch_type = sample_type, branch_type
        self.data = b""
        self.time = 1000
        self.comm(b"hardware")
        self.map(elf.encode())

    def record(self, kind, body, misc=0):
        self.data += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def tail(self):
        """sample_id_all: TID, TIME, CPU, IDENTIFIER."""
        return struct.pack("<IIQIIQ", PID, PID, self.time, 0, 0, 7)

    def comm(self, name):
        self.record(3, struct.pack("<II16s", PID, PID, name) + self.tail())

    def map(self, path):
        path += b"\0" * (8 - len(path) % 8)
        size = (self.size + 0xfff) & ~0xfff
        self.record(10, struct.pack("<IIQQQIIQQII", PID, PID, AT, size, self.offset & ~0xfff,
                                    0, 0, 0, 0, 5, 2) + path + self.tail(), 2)

    def ip(self, function, offset):
        """The address of an offset into a function."""
        return AT + self.functions[function][0] + offset - (self.vaddr & ~0xfff)

    def sample(self, ip, fields, misc=2):
        self.time += 1000
        head = struct.pack("<QQIIQ", 7, ip, PID, PID, self.time)
        head += fields.get("addr", b"")
        head += struct.pack("<IIQ", 1, 0, 1000)
        self.record(9, head + fields.get("rest", b""), misc)

    def write(self, path):
        attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000, self.type, 0, 1 << 18)
        attr += struct.pack("<IIQQQQIiQIIQ", 0, 0, 0, 0, self.branch_type, 0, 0, 0,
                            3 if self.type & INTR else 0, 0, 0, 0)
        attr = attr.ljust(128, b"\0")
        ids_at = 104 + len(attr) + 16
        with open(path, "wb") as out:
            out.write(b"PERFILE2" + struct.pack("<QQ", 104, len(attr) + 16))
            out.write(struct.pack("<QQQQQQ", 104, len(attr) + 16, ids_at + 8, len(self.data), 0, 0))
            out.write(b"\0" * 32 + attr + struct.pack("<QQQ", ids_at, 8, 7) + self.data)


def branch_stack(branches, branch_type, bare=False):
    out = struct.pack("<Q", len(branches))
    if branch_type & HW_INDEX and not bare:
        out += struct.pack("<Q", 5)
    for b in branches:
        out += struct.pack("<QQQ", *b)
    if branch_type & COUNTERS:
        out += struct.pack("<Q", 3) * len(branches)
    return out


def chain(ips):
    return struct.pack(f"<{len(ips) + 1}Q", len(ips), *ips)


def lbr(elf, _):
    branch_type = 1 | CALL_STACK | 1 << 14 | 1 << 15 | HW_INDEX
    rec = Recording(elf, BASE | CALLCHAIN | BRANCHES, branch_type)
    nr = len(rec.functions)
    for i in range(200):
        depth = 1 + i % 9
        inner = i * 7 % nr
        calls = [(rec.ip((inner + k + 1) % nr, 9 + k), rec.ip((inner + k) % nr, 0), 0)
                 for k in range(depth)]
        ip = rec.ip(inner, 16)
        if i % 4 == 3:  # in the kernel
            kernel = 0xffffffff81000000 + i
            ips = [PC_KERNEL, kernel, kernel + 64, PC_USER, ip, rec.ip((inner + 3) % nr, 20)]
            rec.sample(kernel, {"rest": chain(ips) + branch_stack(calls, branch_type)}, 1)
        else:
            ips = [PC_USER, ip, rec.ip((inner + 5) % nr, 20)]
            rec.sample(ip, {"rest": chain(ips) + branch_stack(calls, branch_type)})
    return rec


def taken(elf, how):
    branch_type = 1 | 1 << 3 | HW_INDEX | (COUNTERS if how == "counters" else 0)
    rec = Recording(elf, BASE | CALLCHAIN | BRANCHES, branch_type)
    for i in range(100):
        # a hot loop in function 1, mispredicted one time in four; a call now and then
        branches = [(rec.ip(1, 20), rec.ip(1, 4), (1 if k % 4 == 0 else 2) | 7 << 4)
                    for k in range(8)]
        if i % 2:
            branches.append((rec.ip(1, 12), rec.ip(2, 0), 2 | 3 << 4))
        if i == 50:
            branches.append((rec.ip(3, 12), 0xffffffff81000000, 0))
        if i % 10 == 9:
            branches = []
        rest = branch_stack(branches, branch_type, bare=how == "bare" and not branches)
        rec.sample(rec.ip(1, 4), {"rest": chain([PC_USER, rec.ip(1, 4)]) + rest})
    return rec


def memory(elf, how):
    kind = BASE | CALLCHAIN | ADDR | DATA_SRC | PHYS | DATA_PAGE | CODE_PAGE | INTR | CGROUP | TXN
    rec = Recording(elf, kind | (WEIGHTS if how == "struct" else WEIGHT))
    # {op load | level | snoop none | lock none | tlb hit L1}: L1 hit, L3 hit, local RAM
    levels = [(1 << 3 | 1 << 1, 4), (1 << 6 | 1 << 1, 40), (1 << 7 | 1 << 1, 250)]
    for i in range(60):
        level, latency = levels[(i % 6) // 2 if i % 6 < 5 else 2]
        source = 2 | level << 5 | 2 << 19 | (2 | 8) << 26
        if how == "none":
            source = 0x1e05080021  # of cpu-clock, Linux 6.18: nothing is available
        weight = latency if how != "struct" else latency | 9 << 32
        ip = rec.ip(1 + i % 2, 8)
        rest = chain([PC_USER, ip])
        rest += struct.pack("<QQQQQQ", weight, source, 0, 1, 1, 2)  # REGS_INTR: ABI, two
        rest += struct.pack("<QQQQ", 0x100000 + i, 1, 4096, 2 << 20)
        rec.sample(ip, {"addr": struct.pack("<Q", 0x7ffc00000000 + 64 * i), "rest": rest})
    return rec


def of_whole(line):
    """Parts of functions are symbols of their own for perf: as we have them, without the offset in the part."""
    return re.sub(r"([\w.]+?)\.cold(\.\d+)?(\+0x[0-9a-f]+)?(?=[/\s]|$)", r"\1", line)


def tokens(line):
    """The branches in a line, without what perf 6.2 adds about their type."""
    return ["/".join(t.split("/")[:6]) for t in of_whole(line).replace("[kernel]", "[unknown]").split()
            if t.count("/") >= 5]


def samples(path):
    """Per sample: names of frames, branches, and the other fields that are numbers."""
    out = []
    for line in open(path, encoding="utf-8"):
        if " cpu-clock" in line:
            out.append([[], [], []])
            # perf adds the words of data_src, from the first | to BLK and N/A
            rest = line.split(" cpu-clock", 1)[1].split("|")
            out[-1][2] += rest[0].split()[1:] + (rest[-1].split()[2:] if rest[1:] else [])
        elif line.startswith("\t"):
            name = line.split()[1]
            # perf begins with the function that was called last, we with the sample
            out[-1][0].append(of_whole(name).split("+")[0].replace("[kernel]", "[unknown]"))
        elif "/" in line:
            out[-1][1] += tokens(line)
        elif line.strip():
            out[-1][2] += line.split()
    return out


def without_innermost(sample):
    """perf 7 prints the kernel's address again in place of the innermost user function of a chain by LBR."""
    names, *rest = sample
    return [names[:2] + names[3:], *rest] if names[:2] == ["[unknown]"] * 2 else sample


def compare(perf, ours):
    perf, ours = samples(perf), samples(ours)
    if len(perf) != len(ours):
        sys.exit(f"perf has {len(perf)} samples, proftop {len(ours)}")
    again = any(s[0][:3] == ["[unknown]"] * 3 for s in perf)
    for i, (a, b) in enumerate(zip(perf, ours)):
        if a != b and not (again and without_innermost(a) == without_innermost(b)):
            sys.exit(f"sample {i}:\nperf    {a}\nproftop {b}")
    print(len(ours), sum(len(s[0]) for s in ours), sum(len(s[1]) for s in ours),
          sum(len(s[2]) for s in ours))


def main():
    if sys.argv[1] == "compare":
        compare(*sys.argv[2:4])
        return
    what, elf, path = sys.argv[2:5]
    how = sys.argv[5] if len(sys.argv) > 5 else ""
    {"lbr": lbr, "branches": taken, "memory": memory}[what](elf, how).write(path)


if __name__ == "__main__":
    main()
