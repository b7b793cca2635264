# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge chains of chain_truth.js, as langtruth prints them: each function has one caller, named in its own name, which
calls it in one line (of the file that chain_truth.js wrote)."""
import collections
import re
import sys

NAME = re.compile(r"^[fga]\d+(_\w+)?$")


def wrong(chain):
    """Return which call of a chain, outermost first, is impossible, or None."""
    caller, inlined = None, False
    for name, _, star in chain:
        if not NAME.match(name):
            # The innermost names are of the runtime and of functions without a name.
            inlined |= star
            continue
        parent = name.rpartition("_")[0]
        # A promise continues its function; a root is called by a table, of several functions.
        if parent and "a" not in name.rpartition("_")[2] and not (name.startswith("a") and not caller):
            if caller is None and not inlined:
                return f"{name} has no caller"
            if caller is not None and parent != caller and not (inlined and is_below(name, caller)):
                return f"{caller} does not call {name}"
        caller, inlined = name, star
    return None


def is_below(name, caller):
    # "a1_1" calls the roots "f1" and others.
    return name.startswith(caller + "_") or (caller.startswith("a1") and name.startswith("f"))


class Lines:
    """The lines of functions, and of their calls."""

    def __init__(self, path):
        self.spans, self.calls = {}, {}
        self.counts = collections.Counter()
        for line in open(path, encoding="ascii"):
            first, second, third = line.split()
            if NAME.match(second):
                self.calls[first, second] = int(third)
            else:
                self.spans[first] = int(second), int(third)

    def wrong(self, chain):
        """Return which line of a chain is impossible, or None."""
        named = [(name, line) for name, line, _ in chain if NAME.match(name)]
        for i, (name, line) in enumerate(named):
            if name not in self.spans:
                continue
            call = self.calls.get((name, named[i + 1][0])) if i + 1 < len(named) else None
            kind = "callers" if call else "innermost"
            self.counts[kind] += 1
            self.counts[kind + " without a line"] += line is None
            first, last = (call, call) if call else self.spans[name]
            if line is not None and not first <= line <= last:
                return f"{name}: line {line} instead of {first} to {last}"
        return None


def parse(word):
    name, _, line = word.rstrip("*").partition(":")
    return name, int(line) if line else None, word.endswith("*")


def main():
    least, lines, share = int(sys.argv[1]), Lines(sys.argv[2]), float(sys.argv[3])
    counts, names, deep = collections.Counter(), set(), 0
    faults = []
    for line in sys.stdin:
        verdict, *words = line.split()
        counts[verdict] += 1
        if verdict not in ("certain", "guessed"):
            continue
        chain = [parse(word) for word in words]
        fault = wrong(chain) or lines.wrong(chain)
        counts[verdict + " wrong"] += fault is not None
        deep += len(chain) > 8
        names.update(name for name, _, _ in chain)
        if fault and verdict == "certain" and len(faults) < 5:
            faults.append(f"{fault}: {line.strip()}")
    print(f"{dict(counts)}, {len(names)} functions, {deep} deeper than 8; lines: {dict(lines.counts)}")
    for fault in faults:
        print("wrong:", fault)
    if counts["certain"] < least or len(names) < 50:
        print("wrong: too few samples")
        sys.exit(1)
    if counts["certain"] < share / 100 * (counts["certain"] + counts["guessed"] + counts["bad_chain"] + counts["not_read"]):
        print("wrong: too few are certain")
        sys.exit(1)
    if lines.counts["callers without a line"] > 0.02 * lines.counts["callers"]:
        print("wrong: too many callers without a line")
        sys.exit(1)
    sys.exit(bool(faults))


main()
