# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge a program that runs a known chain of calls: LANGUAGE LEAF CALLER..., of the ticks of a profile on stdin.

The first tick has the start of the program and of its reader in it; a program that hardly runs needs several others.
"""
import collections
import json
import sys

LEAST = 95  # percent of the program's samples that were read
UNREAD = 30  # percent at most, of samples before a reader ran on their CPU
FEWEST = 30  # samples in the tick
INTERNAL = "[internal]"


def summed(ticks):
    """Return the sum of the ticks: the samples by what a reader made of them, and the rows; a row's place is the last."""
    lang, rows = {"none_by": collections.Counter()}, {}
    for tick in ticks:
        for key in "certain", "guessed", "none":
            lang[key] = lang.get(key, 0) + tick["lang"][key]
        lang["none_by"].update(tick["lang"]["none_by"])
        for row in tick["rows"]:
            key = row["symbol"], row.get("lang")
            before = rows.get(key, {"self": 0, "total": 0})
            rows[key] = {**row, "self": before["self"] + row["self"], "total": before["total"] + row["total"]}
    return {"lang": lang, "rows": list(rows.values())}


def judge(tick, language, names):
    """Return the faults of the sum."""
    lang = tick["lang"]
    rows = {row["symbol"]: row for row in tick["rows"] if row.get("lang") == language}
    samples = lang["certain"] + lang["guessed"] + lang["none"]
    bad = []
    if lang["none"] != sum(lang["none_by"].values()):
        bad.append(f"the reasons do not add up: {lang}")
    unread = lang["none_by"].get("not_read", 0)
    if unread > UNREAD / 100 * samples:
        bad.append(f"too few are read: {lang}")
    samples -= unread
    if samples < FEWEST:
        bad.append(f"{samples} samples only")
    if any(row.get("lang") != language for row in tick["rows"]):
        bad.append(f"the filter {language}: shows other rows")
    if lang["certain"] < LEAST / 100 * samples:
        bad.append(f"too few are certain: {lang}")
    for name in names:
        # "name@LINES": its line, of the call or the hottest one.
        name, _, lines = name.partition("@")
        row = rows.get(name)
        if not row or row["total"] < LEAST / 100 * samples:
            bad.append(f"{name} is in {row['total'] if row else 0} of {samples} samples")
        elif not row["module"].startswith("chain_work.") and row["module"] != INTERNAL:
            bad.append(f"{name} is of {row['module']}")
        elif row["module"] != INTERNAL and name != "<main>" and not (row.get("file", "").startswith("/") and row.get("line", 0) > 0):
            bad.append(f"{name} has no file and line: {row}")
        elif lines and row["line"] not in range(*map(int, lines.split("-"))):
            bad.append(f"{name} is at line {row['line']}, not of {lines}")
    names = [name.partition("@")[0] for name in names]
    for name in set(rows) - set(names):
        if rows[name]["total"] > (100 - LEAST) / 100 * samples:
            bad.append(f"{name} is no part of the chain: {rows[name]}")
    if rows.get(names[0], {"self": 0})["self"] < 0.5 * samples:
        bad.append(f"{names[0]} itself has too few samples: {rows.get(names[0])}")
    return bad


def main():
    language, names = sys.argv[1], sys.argv[2:]
    ticks = [json.loads(line) for line in sys.stdin]
    faults = judge(summed(ticks[1:]), language, names)
    for fault in faults:
        print(f"wrong: {language}: {fault}")
    if faults:
        for tick in ticks:
            print("a tick:", tick["lang"], [(row["symbol"], row["module"], row["self"], row["total"]) for row in tick["rows"][:12]])
    sys.exit(bool(faults))


main()
