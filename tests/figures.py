#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print figures of the source, by room: size, functions, include knots, comments, text.

Usage: figures ROOM...
"""
import collections
import pathlib
import re
import sys

import csource
import dialect

WIDE = 100
LONG = 60


def knots(sources):
    """Return the sets of modules (path without .c, .h) that include each other in a circle."""
    edges = collections.defaultdict(set)
    modules = {s.path.rsplit(".", 1)[0] for s in sources}
    for s in sources:
        module = s.path.rsplit(".", 1)[0]
        edges[module] |= {i.rsplit(".", 1)[0] for i in s.includes} & modules - {module}

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for module in edges[todo.pop()] - seen:
                seen.add(module)
                todo.append(module)
        return seen

    reached = {module: reach(module) for module in modules}
    return {frozenset(n for n in reached[m] if m in reached[n]) for m in modules
            if m in reached[m]}


def percentile(values, part):
    """Return the value below which @part of the sorted values are."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else 0


def is_text(string):
    """Return whether a string is a phrase that a user may read, not a key or a format."""
    return re.search(r"[A-Za-z]{2,}[,:;]? +[(']?[A-Za-z]{2,}", string) is not None


def measure(sources):
    """Return the figures of some files, in the order of their lines in the table."""
    functions = [f for s in sources for f in s.functions]
    lengths = [f.lines for f in functions]
    circles = knots(sources)
    comments = [c.text for s in sources for c in s.comments]
    words = max(1, sum(map(csource.words, comments)))
    strings = [t.text for s in sources for t in s.strings if is_text(t.text)]
    lines = sum(s.text.count("\n") for s in sources)
    uses = dialect.count(comments)
    figures = {
        "lines": lines,
        "functions": len(functions),
        "function lines, median": percentile(lengths, 0.5),
        "function lines, p90": percentile(lengths, 0.9),
        "function lines, max": max(lengths, default=0),
        f"functions over {LONG} lines": sum(n > LONG for n in lengths),
        "modules": len({s.path.rsplit(".", 1)[0] for s in sources}),
        "modules in include knots": sum(map(len, circles)),
        "largest knot": max(map(len, circles), default=0),
        "functions with a comment, %": 100 * sum(f.comment for f in functions) / max(1, len(functions)),
        f"lines over {WIDE} columns": sum(len(line.expandtabs(8)) > WIDE
                                          for s in sources for line in s.text.splitlines()),
        "asserts per 1000 lines": 1000 * sum(len(re.findall(r"\bassert\(", s.code)) for s in sources)
                                  / max(1, lines),
        "strings of several words": len(strings),
        "dialect in strings": sum(dialect.count(strings).values()),
        "words of comment": words,
        "dialect per 10000 words": 1e4 * sum(uses.values()) / words,
    }
    return figures, {name: 1e4 * n / words for name, n in uses.items()}


def show(value):
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def main():
    rooms = sys.argv[1:]
    sources = {room: csource.sources(room) for room in rooms}
    sources["all"] = [s for room in rooms for s in sources[room]]
    measured = {room: measure(some) for room, some in sources.items()}
    print(f"{'':32}" + "".join(f"{room:>10}" for room in measured))
    for part, title in ((0, None), (1, "\nper 10000 words of comment")):
        if title:
            print(f"{title:33}" + "".join(f"{room:>10}" for room in measured) + f"{'budget':>10}")
        for name in measured["all"][part]:
            budget = f"{dialect.PATTERNS[name][0]:10}" if part else ""
            print(f"{name:32}" + "".join(f"{show(m[part][name]):>10}" for m in measured.values()) + budget)


if __name__ == "__main__":
    assert pathlib.Path("Makefile").exists(), "run in the top folder"
    main()
