#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print figures of the source, by room: size, functions, include knots, comments, text; of the whole: files, headers,
exports, circles of calls (from the objects below $B).

Usage: figures ROOM...
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

import csource
import dialect

WIDE = 100
LONG = 60
# Of tests/rooms: headers that other rooms may include; rooms whose doors it includes.
Room = collections.namedtuple("Room", "doors includes")
# Figures of the whole: the most that is allowed. They only fall.
BUDGET = {
    "files": 219,
    "headers": 60,
    "headers used by other folders": 39,
    "exported functions": 1689,
    "exported for one other file": 1006,
    "files in call circles": 0,
    "own headers, p90": 20,
    "own headers, max": 26,
    "s->replay": 5,
}
# The least that is wanted. It only rises.
FLOOR = {"asserts per 1000 lines": 5.0}


def knots(sources):
    """Return the sets of headers that include each other in a circle."""
    edges = {s.path: set() for s in sources if s.path.endswith(".h")}
    for path, s in ((s.path, s) for s in sources if s.path in edges):
        edges[path] |= {i for i in s.includes if i in edges}

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for header in edges[todo.pop()] - seen:
                seen.add(header)
                todo.append(header)
        return seen

    reached = {header: reach(header) for header in edges}
    return {frozenset(n for n in reached[h] if h in reached[n]) for h in edges if h in reached[h]}


def percentile(values, part):
    """Return the value below which @part of the sorted values are."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else 0


def is_text(string):
    """Return whether a string is a phrase that a user may read, not a key or a format."""
    return re.search(r"[A-Za-z]{2,}[,:;]? +[(']?[A-Za-z]{2,}", string) is not None


def asserts(sources):
    """Return the asserts of invariants for 1,000 lines."""
    return 1000 * sum(len(re.findall(r"\bassert\(", s.code)) for s in sources) \
        / max(1, sum(s.text.count("\n") for s in sources))


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
        "asserts per 1000 lines": asserts(sources),
        "strings of several words": len(strings),
        "dialect in strings": sum(dialect.count(strings).values()),
        "words of comment": words,
        "dialect per 10000 words": 1e4 * sum(uses.values()) / words,
    }
    return figures, {name: 1e4 * n / words for name, n in uses.items()}


def room_of(path):
    """Return the room of a file: its folder."""
    return str(pathlib.Path(path).parent)


def read_rooms():
    """Return {room: Room} of tests/rooms, in its order."""
    rooms = {}
    for line in pathlib.Path("tests/rooms").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, doors, includes = (part.split() for part in line.split(":"))
        rooms[name[0]] = Room({f"{name[0]}/{door}" for door in doors}, includes)
    return rooms


def circles(edges):
    """Return the sets of nodes that reach each other (Tarjan), larger than one."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def objects(sources):
    """Yield the path of each C file, and its object below $B."""
    build = pathlib.Path(os.environ.get("B", "build/release"))
    for path in (s.path for s in sources if s.path.endswith(".c")):
        yield path, build / (path[:-2] + ".o")


def not_built(sources):
    """Return why the objects are not those of the sources, so that exports and circles are not known; or None."""
    for path, obj in objects(sources):
        if not obj.exists() or obj.stat().st_mtime < pathlib.Path(path).stat().st_mtime:
            return f"{obj} is missing or older than {path}, exports and circles are not known: build first, or set B"
    return None


def calls(sources):
    """Return ({exported symbol: file}, {file: symbols of other files}) by nm(1) of the objects below $B."""
    paths = {str(obj): path for path, obj in objects(sources)}
    defined, needed = {}, {path: set() for path in paths.values()}
    out = subprocess.run(["nm", "-P", "-A", *paths], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        where, name, kind = line.split()[:3]
        path = paths[where.rstrip(":")]
        if kind == "U":
            needed[path].add(name)
        elif kind == "T":
            defined[name] = path
    return defined, needed


def house(sources):
    """Return the figures of the whole, and the circles of calls."""
    paths = {s.path for s in sources}
    includes = {s.path: [i for i in s.includes if i in paths] for s in sources}
    reach = []
    for path in paths:
        seen, todo = set(), [path]
        while todo:
            for header in includes[todo.pop()]:
                if header not in seen:
                    seen.add(header)
                    todo.append(header)
        if path.endswith(".c"):
            reach.append(len(seen))
    defined, needed = calls(sources)
    users = collections.Counter(name for names in needed.values() for name in names if name in defined)
    found = circles({path: {defined[n] for n in names if n in defined} for path, names in needed.items()})
    lines = sum(s.text.count("\n") for s in sources)
    return {
        "lines": lines,
        "files": len(paths),
        "headers": sum(path.endswith(".h") for path in paths),
        "headers used by other folders": len({i for s in sources for i in includes[s.path] if room_of(i) != room_of(s.path)}),
        "exported functions": len(defined),
        "exported per 1000 lines": 1000 * len(defined) / max(1, lines),
        "exported for one other file": sum(users[name] == 1 for name in defined),
        "exported for one other file, %": 100 * sum(users[name] == 1 for name in defined) / max(1, len(defined)),
        "exported for tests alone": sum(not users[name] for name in defined),
        "files in call circles": sum(map(len, found)),
        "own headers, median": percentile(reach, 0.5),
        "own headers, p90": percentile(reach, 0.9),
        "own headers, max": max(reach, default=0),
        "s->replay": sum(len(re.findall(r"\bs->replay\b", s.code)) for s in sources),
        "asserts per 1000 lines": asserts(sources),
    }, found


def over_budget(sources):
    """Yield a line for each figure of the whole above its budget, or below its floor; or why they are not known.

    Without a build that is said, and no fault: the rest is in the sources, and make check has built.
    """
    why = not_built(sources)
    if why:
        if (pathlib.Path(os.environ.get("B", "build/release")) / "proftop").exists():
            yield why
        else:
            print("layering: not built: exports, circles and budgets are not checked (make, then again)")
        return
    figures, found = house(sources)
    for name, most in BUDGET.items():
        if figures[name] > most:
            yield f"{name}: {show(figures[name])}, at most {most} (make figures)"
    for name, least in FLOOR.items():
        if figures[name] < least:
            yield f"{name}: {show(figures[name])}, at least {least} (make figures)"


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
    why = not_built(sources["all"])
    if why:
        sys.exit(why)
    whole, found = house(sources["all"])
    print(f"\n{'the whole':32}{'':40}{'all':>10}{'budget':>10}")
    for name, value in whole.items():
        print(f"{name:32}{'':40}{show(value):>10}{show((BUDGET | FLOOR)[name]) if name in BUDGET | FLOOR else '':>10}")
    for circle in found:
        print("call each other:", *sorted(circle))


if __name__ == "__main__":
    assert pathlib.Path("Makefile").exists(), "run in the top folder"
    main()
