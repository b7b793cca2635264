# SPDX-License-Identifier: GPL-2.0-or-later
"""totals_views.py DIR: the shares on screens against perf report, as totals.sh left them."""
import os
import re
import sys

# perf and these screens round to 0.01 %, from 100 on to 0.1 %.
OFF = 0.011
# Totals also differ by stacks that perf has otherwise.
OTHER_STACKS = float(os.environ["OTHER_STACKS"])
COLS = 160


def read(name):
    return open(f"{sys.argv[1]}/{name}", encoding="utf-8", errors="replace").read().split("\n")


def near(what, ours, theirs, off=OFF):
    if abs(ours - theirs) <= (off if ours < 100 else max(off, 0.06)):
        return 0
    print(f"wrong: {what}: {ours} %, perf {theirs} %")
    return 1


def perf_shares(name):
    for line in read(name):
        fields = [f.strip() for f in line.split("|")]
        if not line.startswith("#") and len(fields) == 2 and fields[0].endswith("%"):
            yield fields[1], float(fields[0][:-1])


def compare_rows(screen, perf, find):
    """Each share of perf's against the row that @find makes a pattern for."""
    bad = compared = 0
    lines = read(screen)
    for name, theirs in perf_shares(perf):
        rows = [l for l in lines if re.search(find(name), l)]
        if len(rows) != 1:
            print(f"wrong: {screen}: {len(rows)} rows of {name}")
            bad += 1
            continue
        bad += near(f"{screen}: {name}", float(re.search(r"[0-9]+\.[0-9]+", rows[0]).group()), theirs)
        compared += 1
    print(f"{screen}: {compared} rows compared")
    return bad + (compared == 0)


def total_of(name):
    """Total % of a function, by perf report --children."""
    for line in read("perf"):
        fields = [f.strip() for f in line.split("|")]
        if len(fields) == 4 and re.sub(r"^\[.\] ", "", fields[3]) == name:
            return float(fields[0][:-1])
    sys.exit(f"wrong: perf has no {name}")


def compare_callers():
    row = [l for l in read("screen.callers") if l.startswith("▶")]
    if not row or " main " not in row[0]:
        print("wrong: callers: not of main:", *row)
        return 1
    return near("callers: main", float(re.search(r"[0-9]+\.[0-9]+", row[0]).group()), total_of("main"),
                OFF + OTHER_STACKS)


def compare_flame():
    """The description and width of the selected box: its share of the columns, to the cell."""
    lines = read("screen.flame")
    said = [re.search(r"total ([0-9.]+)%", l) for l in lines if l.startswith(" ▶ main ")]
    box = [l for l in lines if "▶[main]" in l]
    if not said or not said[0] or not box:
        print("wrong: flame: main is not selected", *lines, sep="\n")
        return 1
    start = box[0].index("▶[main]")
    end = box[0].find("▏", start)
    width = (len(box[0]) if end < 0 else end) - start
    theirs = total_of("main")
    bad = near("flame: main", float(said[0].group(1)), theirs, OFF + OTHER_STACKS)
    # At the right end blanks are not kept: then the box may be wider than it shows.
    if end >= 0 and abs(width - theirs * COLS / 100) > 1 + OTHER_STACKS * COLS / 100:
        print(f"wrong: flame: main is {width} cells of {COLS}, perf {theirs} %")
        bad += 1
    return bad


def main():
    bad = compare_rows("screen.processes", "perf.pid", lambda n: rf"\s{n.split(':')[0]}\s")
    bad += compare_rows("screen.modules", "perf.dso",
                        lambda n: rf"%.*\s{re.escape(n.replace('[kernel.kallsyms]', '[kernel]'))}\s")
    bad += compare_callers()
    bad += compare_flame()
    return min(1, bad)


sys.exit(main())
