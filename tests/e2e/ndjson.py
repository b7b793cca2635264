# SPDX-License-Identifier: GPL-2.0-or-later
"""Read ticks of `proftop -b --format=ndjson` and check the contract of each.

ndjson.py check FILE...      the contract: fields, types, sums
ndjson.py truth FILE         main and the three leaves of tests/programs/recurse
ndjson.py rate FILE HZ       got rate within 5 %, from the second tick on
ndjson.py overflow FILE      the kernel lost samples, and the CPUs say so
ndjson.py throttle FILE      at least one CPU was throttled, the sums hold
"""
import json
import sys

PARTS = ("complete", "guessed", "truncated", "broken", "pending", "dropped", "lost")
ROW = {"symbol": str, "module": str, "kind": str, "comm": str, "self": int, "total": int,
       "self_pct": (int, float), "total_pct": (int, float)}


def fail(message):
    print("wrong:", message)
    sys.exit(1)


def read(path):
    ticks = []
    with open(path, encoding="utf-8", errors="strict") as f:
        for number, line in enumerate(f, 1):
            if any(ord(c) < 32 for c in line.rstrip("\n")):
                fail(f"{path}:{number}: a control character")
            ticks.append(json.loads(line))
    if not ticks:
        fail(f"{path}: no ticks")
    return ticks


def check_account(account, where):
    total = sum(account[p] for p in PARTS)
    if account["taken"] != total:
        fail(f"{where}: taken {account['taken']} != {total}: {account}")
    for whole in ("broken", "dropped"):
        by = account.get(whole + "_by")
        if by is not None and sum(by.values()) != account[whole]:
            fail(f"{where}: {whole} {account[whole]} != {by}")


def check_rows(tick, where):
    for row in tick["rows"]:
        for key, kind in ROW.items():
            if not isinstance(row[key], kind) or isinstance(row[key], bool):
                fail(f"{where}: {key} of {row}")
        if row["kind"] not in "ukjvyhrlanJRw?":
            fail(f"{where}: kind of {row}")
        if not 0 <= row["self"] <= row["total"] or not 0 <= row["self_pct"] <= row["total_pct"] <= 100.01:
            fail(f"{where}: shares of {row}")
    for event in tick["events"]:
        shares = [r["self_pct"] for r in tick["rows"] if r["event"] == event["name"]]
        share = sum(shares)
        # Each is rounded to a thousandth.
        if share > 100.01 + 0.0005 * len(shares):
            fail(f"{where}: self shares of {event['name']} add up to {share}")


def check(ticks, path):
    for i, tick in enumerate(ticks):
        where = f"{path}, tick {i + 1}"
        if tick["schema"] != 1 or tick["tool"] != "proftop":
            fail(f"{where}: {tick['schema']} {tick['tool']}")
        account = tick["account"]
        check_account(account, where)
        check_rows(tick, where)
        lost = sum(c["lost"] for c in tick["cpus"])
        if lost != account["lost"]:
            fail(f"{where}: {lost} lost on the CPUs, {account['lost']} in the account")
        for c in tick["cpus"]:
            if not 0 <= (c["busy"] or 0) <= 1 or min(c["samples"], c["lost"], c["throttled"]) < 0:
                fail(f"{where}: {c}")
        if i and tick["seq"] <= ticks[i - 1]["seq"]:
            fail(f"{where}: seq {tick['seq']}")
        if tick["interval_ns"] <= 0:
            fail(f"{where}: interval_ns {tick['interval_ns']}")
    check_account(ticks[-1]["account_total"], f"{path}, total")
    # No tick was skipped: then the ticks add up to the total.
    if [t["seq"] for t in ticks] == list(range(ticks[0]["seq"], ticks[0]["seq"] + len(ticks))) \
            and ticks[0]["seq"] <= 1:
        for part in ("taken",) + PARTS:
            total = sum(t["account"][part] for t in ticks)
            if total != ticks[-1]["account_total"][part]:
                fail(f"{path}: {part}: ticks add up to {total}, total says {ticks[-1]['account_total'][part]}")


def self_counts(ticks):
    """Self samples by symbol over all ticks, and all samples that rows can show."""
    counts, everything = {}, 0
    for tick in ticks:
        for row in tick["rows"]:
            counts[row["symbol"]] = counts.get(row["symbol"], 0) + row["self"]
            everything += row["self"]
    return counts, everything


def truth(ticks, path):
    """After the ticks in which the objects are still being read: main is all there is."""
    first = next((i for i, tick in enumerate(ticks) if i and not tick["account"]["pending"]), len(ticks))
    if first > len(ticks) // 2:
        fail(f"{path}: {first} of {len(ticks)} ticks have pending samples: {[t['account'] for t in ticks]}")
    for i, tick in enumerate(ticks[first:], first + 1):
        mains = [r["total_pct"] for r in tick["rows"] if r["symbol"] == "main"]
        share = max(mains, default=0)
        # On a busy machine one sample is more than that.
        if share < 99.5 and (100 - share) / 100 * tick["account"]["taken"] > 1.5:
            fail(f"{path}, tick {i}: main has {share} % of the samples, not 99.5: {tick['account']}")
    counts, everything = self_counts(ticks[first:])
    for leaf in ("leaf_a", "leaf_b", "leaf_c"):
        print(leaf, round(100 * counts.get(leaf, 0) / max(everything, 1), 2), everything)


def delivered_in(steps, begin, end):
    """Return the share of the samples due from @begin to @end that another clock got, see tools/delivered.c."""
    within = [(taken, due) for before, (at, taken, due) in zip(steps, steps[1:]) if before[0] < end and at > begin]
    due = sum(d for _, d in within)
    return min(sum(t for t, _ in within) / due, 1) if due else 1


def rate(ticks, path, hz, log):
    with open(log, encoding="ascii") as f:
        steps = [tuple(map(float, line.split())) for line in f if line.count(" ") == 2 and line.endswith("\n")]
    rates = 0
    shares = []
    for i, tick in enumerate(ticks[1:], 2):
        got, end, begin = tick["events"][0]["got_hz"], tick["time_ns"], tick["time_ns"] - tick["interval_ns"]
        # A step is a tenth of a second: the end of the tick is somewhere in one.
        shares.append(min(delivered_in(steps, begin + shift, end + shift) for shift in (-1e8, 0, 1e8)))
        # A tick with few samples has none, as on a full machine.
        rates += got is not None
        # Two clocks of a machine that does not deliver are not late together.
        least = (0.95 if shares[-1] > 0.95 else 0.85) * shares[-1] * hz
        if got is not None and not least < got < 1.05 * hz:
            fail(f"{path}, tick {i}: wanted {hz} Hz, got {got}; another clock got {shares[-1]} of its samples")
    if not rates and min(shares, default=1) > 0.5:
        fail(f"{path}: no tick has a rate")


def whole(ticks, path):
    """All rows of a tick add up to its account, but for pending samples, which may have no frame yet."""
    for i, tick in enumerate(ticks):
        account, counted = tick["account"], sum(r["self"] for r in tick["rows"])
        most = account["taken"] - account["lost"] - account["dropped"]
        if not most - account["pending"] <= counted <= most:
            fail(f"{path}, tick {i} of {tick['interval_ns'] / 1e9:.3f} s: {counted} samples in rows: {account}")


def overflow(ticks, path):
    whole(ticks, path)
    lost = [t["account"]["lost"] for t in ticks]
    if not sum(lost):
        fail(f"{path}: nothing was lost: {lost}")
    print("lost", lost)


def throttle(ticks, path):
    times = [sum(c["throttled"] for c in t["cpus"]) for t in ticks]
    if not sum(times):
        fail(f"{path}: nothing was throttled: {times}")
    print("throttled", times)


def main():
    action, paths = sys.argv[1], sys.argv[2:]
    if action == "rate":
        return rate(read(paths[0]), paths[0], float(paths[1]), paths[2])
    for path in paths:
        ticks = read(path)
        check(ticks, path)
        if action != "check":
            globals()[action](ticks, path)


main()
