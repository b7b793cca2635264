# SPDX-License-Identifier: GPL-2.0-or-later
"""Random addresses in libraries of this system and in programs built with -g: each inlined
function and each file:line against eu-addr2line -i -f, each symbol against nm.

LINES=N: N addresses of each file of at least 50 (1000 of a few). Prints the figures.
"""
import bisect
import collections
import glob
import os
import random
import re
import subprocess
import sys

import names
from names import Missing, hot, path, sh

NR = int(os.environ.get("LINES", "0"))
RESOLVE = os.path.join(names.B, "tests", "tools", "resolve")
counts = collections.Counter()


def ask(command, addresses):
    done = subprocess.run(command, input="".join(f"{a:#x}\n" for a in addresses), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False, errors="replace")
    return done.stdout.splitlines()


def ours(file, addresses):
    """For each address [(name, place)], innermost first."""
    answers, frames = [], []
    for line in ask([RESOLVE, file], addresses):
        if "\t" in line:
            frames.append(tuple(line.split("\t")))
            continue
        answers.append(None if line == "late" else frames)
        frames = []
    return answers


def theirs(file, addresses):
    answers = []
    # -a prints each address before its frames.
    for line in ask(["eu-addr2line", "-a", "-i", "-f", "-e", file], addresses):
        if re.fullmatch("0x[0-9a-f]{6,}", line):
            answers.append([])
        else:
            answers[-1].append(line)
    return [[(re.sub(r" inlined at .*", "", name), where) for name, where in zip(a[::2], a[1::2])]
            for a in answers]


def second(file, address):
    """The same by addr2line of binutils: run if the first two differ."""
    lines = ask(["addr2line", "-i", "-f", "-e", file], [address])
    return list(zip(lines[::2], lines[1::2]))


def line_of(where):
    """(basename, line); None: not known."""
    m = re.match(r"(.*?):(\d+)(:\d+)?(?: \(.*)?$", where.strip())
    return (os.path.basename(m.group(1)), int(m.group(2))) if m and int(m.group(2)) else None


class Nm:
    """Functions as nm has them: of the object, and of its debug file."""

    def __init__(self, file):
        self.at = collections.defaultdict(set)
        self.end = {}
        tables = [["nm", "-S", "--defined-only", file], ["nm", "-D", "-S", "--defined-only", file]]
        number = re.search("Build ID: ([0-9a-f]+)", subprocess.run(
            ["readelf", "-n", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout)
        if number:
            number = number.group(1)
            tables.append(["nm", "-S", f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug"])
        for table in tables:
            for line in ask(table, []):
                m = re.match(r"([0-9a-f]+)(?: ([0-9a-f]+))? [TtWwiVvuU] (\S+)", line)
                if m:
                    start, size = int(m.group(1), 16), int(m.group(2) or "0", 16)
                    self.at[start].add(re.sub("@.*", "", m.group(3)))
                    self.end[start] = max(self.end.get(start, 0), start + size)
        self.starts = sorted(self.at)

    def right(self, name, address):
        """Is @name one of a function that covers @address; or is there none, and no name?"""
        i = bisect.bisect_right(self.starts, address)
        for start in reversed(self.starts[max(i - 32, 0):i]):
            if self.end[start] > address or self.end[start] == start:
                if name == "??" and self.end[start] == start:
                    return True		# a label
                if re.sub("@.*", "", name) in self.at[start]:
                    return True
                if self.end[start] > address and name == "??":
                    return False
        return name == "??"


def text_of(file):
    for line in ask(["readelf", "-SW", file], []):
        m = re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", line)
        if m:
            return int(m.group(1), 16), int(m.group(2), 16)
    return None


def compare(file, address, is_so, want):
    counts["addresses"] += 1
    if is_so is None:
        counts["took too long"] += 1
        return
    if want[0][0] == "??":    # between functions: its frames are of the address before
        want = want[:1]
    if not any(line_of(w) for _, w in want) and len(is_so) == 1 and not line_of(is_so[0][1]):
        return
    counts["with lines"] += 1
    counts["inlined"] += len(is_so) > 1
    counts["frames"] += len(is_so)
    if not same(is_so, want):
        third = second(file, address)
        counts["like addr2line, not eu-addr2line"] += 1
        if not same(is_so, third):
            names.wrong(f"{file} {address:#x}: {is_so}, not {want}, {third}")


def same(is_so, want):
    """The same lines, and the same inlined functions but for the scopes around their names?"""
    return [line_of(where) for _, where in is_so] == [line_of(where) for _, where in want] and all(
        name == should or name.endswith("::" + should) for (name, _), (should, _) in zip(is_so[:-1], want[:-1]))


def check(file, nr):
    text = text_of(file)
    if not text or not text[1]:
        return
    nm = Nm(file)
    addresses = [text[0] + random.randrange(text[1]) for _ in range(nr)]
    mine, eu = ours(file, addresses), theirs(file, addresses)
    if len(mine) != nr or len(eu) != nr:
        names.wrong(f"{file}: {len(mine)} and {len(eu)} answers to {nr} questions")
        return
    counts["files"] += 1
    for address, is_so, want in zip(addresses, mine, eu):
        compare(file, address, is_so, want)
        if is_so and not is_so[-1][0].endswith("@plt"):
            counts["symbols"] += is_so[-1][0] != "??"
            if not nm.right(is_so[-1][0], address):
                names.wrong(f"{file} {address:#x}: symbol {is_so[-1][0]}, not as nm has it")


LAMBDAS = """#include <cstdint>
#define INLINE inline __attribute__((always_inline))
namespace deep {
namespace { INLINE uint64_t quiet(uint64_t x) { for (int i = 0; i < 100; i++) x = x * 7 + 1; return x; } }
struct Box {
  template <typename F> INLINE uint64_t each(F f) { uint64_t s = 0; for (int i = 0; i < 999; i++) s = f(s); return s; }
};
}
__attribute__((noinline)) uint64_t run_it(uint64_t y) {
  deep::Box b;
  return b.each([y](uint64_t s) { for (int i = 0; i < 100; i++) s = s * y + 3; return s + deep::quiet(s); });
}
volatile uint64_t sink;
int main() { for (;;) sink = run_it(sink); }
"""
WANT = {"deep::(anonymous namespace)::quiet", "run_it::{lambda}::operator()",
        "deep::Box::each<run_it(uint64_t)::<lambda(uint64_t)> >"}


def programs():
    """Of our own, with -g; (file, how it is built)."""
    with open(path("lambda.cc"), "w", encoding="ascii") as f:
        f.write(LAMBDAS)
    sh("g++", "-O2", "-g", "-o", path("lambda"), path("lambda.cc"))
    text = text_of(path("lambda"))
    every = [f[0] for a in ours(path("lambda"), range(text[0], sum(text))) for f in a]
    for name in WANT - set(every):
        names.wrong(f"no inlined {name} among {sorted(set(every))}")
    built = [path("lambda"), hot("plain", "-g", "-DINLINED"), hot("types", "-g", "-DINLINED", "-gdwarf-4", "-fdebug-types-section"),
             hot("packed", "-g", "-DINLINED", "-gz")]
    # Of split DWARF the lines are here, the inlined functions elsewhere.
    split = hot("split", "-g", "-gsplit-dwarf")
    if not any(":" in place and "??" not in place for a in ours(split, range(*[text_of(split)[0], sum(text_of(split))]))
               for _, place in a):
        names.wrong("no lines with split DWARF")
    if not NR:
        return built
    for cc in "gcc", "clang":
        for level in "-O1", "-O3":
            try:
                built.append(hot(f"{cc}{level}", "-g", "-DINLINED", f"-DNAME=hot{level[2]}", level, cc=cc))
            except Missing:
                counts["not built"] += 1
    return built + [names.PROFTOP] + [f for f in glob.glob(os.path.join(names.B, "tests", "symbols", "**", "test_*"), recursive=True) if "." not in os.path.basename(f)][:12]


def libraries():
    found = glob.glob("/usr/lib/*-linux-gnu/*.so*") + glob.glob("/usr/lib/*-linux-gnu/*/*.so*")
    real = sorted({os.path.realpath(f) for f in found if os.path.isfile(f)})
    # Files with a debug file first: they have lines.
    def has_debug(file):
        m = re.search("Build ID: ([0-9a-f]+)", "".join(ask(["readelf", "-n", file], [])))
        return bool(m) and os.path.exists(f"/usr/lib/debug/.build-id/{m.group(1)[:2]}/{m.group(1)[2:]}.debug")
    random.shuffle(real)
    if not NR:
        return [f for f in real if "/libc.so" in f] + real[:2]
    return sorted(real[:200], key=lambda f: not has_debug(f))[:40] + [f for f in real if re.search("/lib(c|m|stdc[+]+|LLVM)[.-]", f)]


def main():
    if subprocess.run(["sh", "-c", "command -v eu-addr2line nm readelf"], stdout=subprocess.DEVNULL, check=False).returncode:
        print("not installed: eu-addr2line, nm or readelf")
        sys.exit(77)
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print(f"SEED={seed}")
    for file in programs() + libraries():
        check(file, NR or 1000)
    print(", ".join(f"{nr} {what}" for what, nr in counts.items()), f"; {len(names.wrongs)} wrong")
    if not counts["inlined"] or not counts["symbols"]:
        names.wrong("nothing was compared")
    names.finish()


main()
