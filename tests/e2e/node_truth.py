# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge chains of chain_truth.js, as langtruth prints them: each function has one caller, named in its own name."""
import collections
import re
import sys

NAME = re.compile(r"^[fga]\d+(_\w+)?$")


def wrong(chain):
    """Return which call of a chain, outermost first, is impossible, or None."""
    caller, inlined = None, False
    for name in chain:
        star = name.endswith("*")
        name = name.rstrip("*")
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


def main():
    least = int(sys.argv[1])
    counts, names, deep = collections.Counter(), set(), 0
    faults = []
    for line in sys.stdin:
        verdict, *chain = line.split()
        counts[verdict] += 1
        if verdict not in ("certain", "guessed"):
            continue
        fault = wrong(chain)
        counts[verdict + " wrong"] += fault is not None
        deep += len(chain) > 8
        names.update(chain)
        if fault and verdict == "certain" and len(faults) < 5:
            faults.append(f"{fault}: {' '.join(chain)}")
    print(f"{dict(counts)}, {len(names)} functions, {deep} deeper than 8")
    for fault in faults:
        print("wrong:", fault)
    if counts["certain"] < least or len(names) < 50:
        print("wrong: too few samples")
        sys.exit(1)
    sys.exit(bool(faults))


main()
