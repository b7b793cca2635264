# SPDX-License-Identifier: GPL-2.0-or-later
"""totals.py PERF ROWS TREE: perf report's shares against proftop's rows and its call tree."""
import json
import os
import re
import sys

# perf rounds to 0.01 % of all samples, the tree to 0.1 %; totals also differ by stacks that perf has otherwise.
ROWS_OFF = 0.011
OTHER_STACKS = float(os.environ["OTHER_STACKS"])
TREE_OFF = 0.06 + OTHER_STACKS
MUST = ["_start", "main", "recurse", "leaf", "leaf_a", "leaf_b", "leaf_c", "sort_keys"]


def read_perf(path):
    shares = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        fields = [f.strip() for f in line.split("|")]
        if line.startswith("#") or len(fields) != 4 or not fields[0].endswith("%"):
            continue
        name = re.sub(r"^\[.\] ", "", fields[3])
        shares.setdefault(name, []).append((float(fields[1][:-1]), float(fields[0][:-1])))
    return shares


def compare_rows(perf, tick):
    bad, compared = 0, set()
    for row in tick["rows"]:
        theirs = perf.get(row["symbol"])
        if not theirs or len(theirs) != 1 or \
           sum(r["symbol"] == row["symbol"] for r in tick["rows"]) != 1:
            continue
        compared.add(row["symbol"])
        for what, ours, want, off in (("self", row["self_pct"], theirs[0][0], ROWS_OFF),
                                      ("total", row["total_pct"], theirs[0][1], ROWS_OFF + OTHER_STACKS)):
            if abs(ours - want) > off:
                print(f"wrong: {row['symbol']}: {what} {ours} %, perf {want} %")
                bad += 1
    # ld.so has a _start as well: with a sample in both they are not compared.
    missing = [name for name in MUST if name not in compared and len(perf.get(name, ())) < 2]
    if missing:
        print("wrong: not in both:", *missing)
        bad += 1
    print(f"{len(compared)} functions compared, {bad} differ")
    return bad


def compare_tree(perf, path):
    """The topmost node of a function above all its other nodes has its whole total."""
    bad = 0
    lines = open(path, encoding="utf-8").read().split("\n")
    for name in ("_start", "main", "recurse"):
        found = [l for l in lines if re.search(rf"[▾▸] {name}(\s|$)", l)]
        if not found:
            print(f"wrong: no {name} in the tree")
            bad += 1
            continue
        ours = float(re.search(r"[0-9]+\.[0-9]", found[0]).group())
        if abs(ours - perf[name][0][1]) > TREE_OFF:
            print(f"wrong: {name}: {ours} % in the tree, perf {perf[name][0][1]} %")
            bad += 1
    return bad


def main():
    perf = read_perf(sys.argv[1])
    tick = json.loads(open(sys.argv[2], encoding="utf-8").readline())
    return min(1, compare_rows(perf, tick) + compare_tree(perf, sys.argv[3]))


sys.exit(main())
