# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge the output of suites in a guest (guest.sh): judge.py GUEST < OUTPUT

Prints a line for each check and, last, "P passed, F failed, S skipped". Exits 1 if one failed or there was none.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

MACHINE = "aarch64" if sys.argv[1].startswith("arm64") else "x86_64"
HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "..", "e2e")


def contract(lines):
    """Return what `ndjson.py check` has against the ticks."""
    with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as f:
        f.write("".join(line + "\n" for line in lines))
        f.flush()
        run = subprocess.run([sys.executable, os.path.join(E2E, "ndjson.py"), "check", f.name],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return run.stdout.strip().replace(f.name, "ticks") if run.returncode else ""


def taken(ticks, _):
    nr = sum(tick["account"]["taken"] for tick in ticks)
    return "" if nr else "no samples"


def sums(_ticks, _):
    return ""  # the contract is all


def event(ticks, name):
    names = {e["name"] for tick in ticks for e in tick["events"]}
    return taken(ticks, None) or ("" if name in names else f"sampled {names}, not {name}")


def group(ticks, names):
    """Each member of a group has counted."""
    for name in names.split(","):
        if not any(e.get("count") for tick in ticks for e in tick["events"] if e["name"] == name):
            return f"{name} has not counted: {ticks[-1]['events']}"
    return taken(ticks, None)


def throttled(ticks, _):
    """The kernel stopped the event until its next timer interrupt: reported, on the CPU where it happened."""
    nr = sum(cpu["throttled"] for tick in ticks for cpu in tick["cpus"])
    print(f"    throttled {nr} times")
    return taken(ticks, None) or ("" if nr else "no throttling is reported")


def recurse(ticks, _):
    """Once names are read, main holds all samples, the three leaves nearly all: in one tick, the last if in none. A slow
    guest has few samples in a tick, and two of them may be of the begin of a program, or of the kernel."""
    for tick in ticks:
        rows = {row["symbol"]: row for row in tick["rows"]}
        main = rows.get("main", {"total_pct": 0})["total_pct"]
        leaves = sum(rows.get(f"leaf_{x}", {"self_pct": 0})["self_pct"] for x in "abc")
        others = (100 - main) / 100 * tick["account"]["taken"]
        if (main >= 90 or main > 50 and others < 2.5) and leaves > 40:
            return ""
    active = {n["key"]: n["text"] for n in ticks[-1]["notices"] if n["active"]}
    top = [(row["symbol"], row["module"], row["self"], row["total"]) for row in ticks[-1]["rows"][:6]]
    return f"main holds {main} %, the leaves {leaves} %; {ticks[-1]['account']}; {active}; {top}"


def module(ticks, name):
    """A module has rows, and they have names."""
    rows = [row for tick in ticks for row in tick["rows"] if row["module"] == f"[{name}]"]
    if not rows:
        return f"no row of [{name}]: {collections.Counter(r['module'] for t in ticks for r in t['rows'])}"
    named = sum(row["self"] for row in rows if row["kind"] != "?")
    whole = sum(row["self"] for row in rows)
    return "" if named >= 0.9 * whole else f"{whole - named} of {whole} samples without a name"


def only(ticks, name):
    """All user code is of the program."""
    modules = collections.Counter()
    for tick in ticks:
        for row in tick["rows"]:
            modules[row["module"]] += row["self"]
    strange = {m: n for m, n in modules.items() if m and m[0] != "[" and m != name and not m.startswith(("lib", "ld-"))}
    if strange or not modules[name]:
        return f"modules: {modules}"
    return ""


def outside(ticks, _):
    """Processes outside the PID namespace: all are counted, under no name of another one."""
    account = ticks[-1]["account"]
    names = {row["comm"] for row in ticks[-1]["rows"]}
    if not account["broken_by"].get("outside"):
        return f"no sample is outside: {account}"
    return "" if names <= {"[outside]", "proftop", "[unknown]"} else f"names {names}"


def allcpus(ticks, _):
    away = [c["cpu"] for c in ticks[-1]["cpus"] if not c["online"]]
    return f"still offline: {away}" if away else ""


def sampled(ticks, _):
    """Every CPU of a busy machine has samples in the last tick."""
    without = [c["cpu"] for c in ticks[-1]["cpus"] if not c["samples"]]
    return f"no sample of CPU {without}, busy: {[c['busy'] for c in ticks[-1]['cpus']]}" if without else ""


def counted(ticks, expected):
    """The counter of instructions over all ticks: the known number, within 5 %."""
    nr = sum(e.get("count", 0) for tick in ticks for e in tick["events"] if e["name"].startswith("instructions"))
    return "" if abs(nr / float(expected) - 1) < 0.05 else f"counted {nr}, not {expected}"


def ipc(ticks, tolerance):
    """IPC of the three loops: as of the tick's counters; their instructions: 4 to 8 to 16."""
    tick, wrong = ticks[-1], []
    whole = tick["metrics"].get("insn_per_cycle", 0)
    rows = {row["symbol"]: row["metrics"].get("insn_per_cycle", 0) for row in tick["rows"] if "metrics" in row}
    shares = {row["symbol"]: row["self_pct"] for row in tick["rows"] if row["event"].startswith("instructions")}
    for name, part in ("loop_4", 4), ("loop_8", 8), ("loop_16", 16):
        # QEMU counts 4 cycles of 1 ns for each instruction (-icount shift=2).
        print(f"    {name}: IPC {rows.get(name)}, {shares.get(name)} % of the instructions; tick {whole}")
        if abs(rows.get(name, 0) / 0.25 - 1) > float(tolerance):
            wrong.append(f"{name}: IPC {rows.get(name)}, not 0.25")
        if abs(shares.get(name, 0) / (100 * part / 28) - 1) > 2 * float(tolerance):
            wrong.append(f"{name}: {shares.get(name)} % of the instructions, not {100 * part / 28:.1f}")
    if abs(whole / 0.25 - 1) > 0.05:
        wrong.append(f"tick: IPC {whole}, not 0.25")
    return "; ".join(wrong)


def many_cpus(_words, lines):
    """Threads, descriptors and memory by CPU, sums exact: "cpus NR FDS THREADS RSS-KIB", then ticks."""
    nr, fds, threads, rss = (int(word) for word in _words)
    ticks = [line for line in lines if line.startswith("{")]
    print(f"    {nr} CPUs: {fds} descriptors, {threads} threads, {rss} KiB")
    if len(json.loads(ticks[-1])["cpus"]) != nr:
        return f"not {nr} CPUs in the tick"
    if fds > 40 + 6 * nr or threads > 20 + nr or rss > 40960 + 3072 * nr:
        return "more than 40 + 6 descriptors, 20 + 1 threads, 40 + 3 MiB a CPU"
    return contract(ticks)


def starved(ticks, _):
    """A machine too slow for the rate: at last all is read and named; until then one line says so."""
    last = ticks[-1]
    if last["account"]["pending"] > 0.1 * last["account"]["taken"]:
        return f"{last['account']['pending']} of {last['account']['taken']} samples pending at last"
    # A tick of few samples may have none of them.
    if not any(row["symbol"] == "main" and row["total_pct"] > 30 for tick in ticks[-5:] for row in tick["rows"]):
        return "main is not named in the last five ticks"
    lines = 0
    for tick in ticks:
        active = {n["key"] for n in tick["notices"] if n["active"]}
        also = {key for key in active if key in ("lag", "pending", "own-cpu", "ring-full") or key.startswith("rate-")}
        if "starved" in active and also:
            return f"starved, and also {also}"
        lines += "starved" in active
    rates = [round(tick["events"][0]["want_hz"]) for tick in ticks]
    print(f"    starved in {lines} of {len(ticks)} ticks; rates {rates}")
    return ""


def deferred(ticks, _):
    """Samples without their chain, of all but those of other stacks: at most one in a thousand."""
    nr = sum(tick["account"]["guessed"] for tick in ticks)
    cut = sum(tick["account"]["truncated"] for tick in ticks)
    print(f"    {nr} with a chain, {cut} without")
    return "" if nr > 100 and 1000 * cut <= nr else f"{nr} with a chain, {cut} without"


JUDGES = {f.__name__: f for f in (taken, sums, event, group, throttled, recurse, module, only, outside, allcpus,
                                    sampled, counted, ipc, starved, deferred)}


def judge_ticks(words, lines):
    judge, _, argument = words[-1].partition(":")
    lines = [line for line in lines if line.startswith("{")]
    if not lines:
        return "no ticks"
    try:
        ticks = [json.loads(line) for line in lines]
    except ValueError as error:
        return f"not JSON: {error}"
    return contract(lines) or JUDGES[judge](ticks, argument)


def judge_chains(words, lines):
    """Chains of the truth programs, judged by stacks.py."""
    run = subprocess.run([sys.executable, os.path.join(E2E, "stacks.py")], input="".join(f"{l}\n" for l in lines),
                         env=dict(os.environ, MODES=" ".join(words[1:]), TRUTH_MACHINE=MACHINE), text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print("    " + run.stdout.strip().replace("\n", "\n    "))
    return "see above" if run.returncode else ""


def judge_shares(_words, lines):
    """Shares of the leaves in one recording, by perf report and by proftop --replay: within one point."""
    perf = {line.split()[1]: float(line.split()[2]) for line in lines if line.startswith("perf ")}
    ticks = [json.loads(line) for line in lines if line.startswith("{")]
    shares = collections.Counter()
    for row in ticks[-1]["rows"] if ticks else []:
        shares[row["symbol"]] += row["self_pct"]
    if len(perf) != 3 or not shares:
        return f"perf: {perf}, proftop: {len(shares)} rows"
    off = {name: (perf[name], round(shares[name], 2)) for name in perf if abs(perf[name] - shares[name]) > 1}
    return f"perf, proftop: {off}" if off else ""


def judge_alike(_words, lines):
    """Chains of the same system calls in two sessions, "HOW TASK TIME CHAIN": where both were open, 99.9 % are alike."""
    calls, same, other = collections.defaultdict(list), 0, 0
    for how, task, time, chain in (line.split() for line in lines):
        calls[task, how].append((float(time), chain))
    for task in {task for task, _ in calls}:
        fp, defer = (calls[task, how] for how in ("fp", "defer"))
        begin, end = max(fp[0][0], defer[0][0]), min(fp[-1][0], defer[-1][0])
        a, b = ([chain for time, chain in of if begin - .01 < time < end + .01] for of in (fp, defer))
        shift = max(range(-60, 61), key=lambda s: sum(x == y for x, y in zip(a[60:560], b[60 + s:560 + s])))
        # Without the ends, where one session alone may have calls. A loss would make all behind it unlike.
        pairs = list(zip(a[60:-60], b[60 + shift:]))
        same += sum(x == y for x, y in pairs)
        other += sum(x != y for x, y in pairs)
    print(f"    {same} chains are alike, {other} are not")
    return "" if same > 500 and 1000 * other <= same else f"{same} chains are alike, {other} are not"


SECTIONS = {"ticks": judge_ticks, "chains": judge_chains, "shares": judge_shares, "cpus": many_cpus,
            "alike": judge_alike}


def read(lines):
    """Yield (what, words, lines of the section) for each check of the output."""
    section, inside = None, []
    for line in lines:
        line = line.rstrip("\r\n")
        mark = line.split() if line.startswith("@lab ") else []
        if section and mark[1:2] == ["end"]:
            yield (*section, inside)
            section, inside = None, []
        elif section:
            inside.append(line)
        elif mark and mark[1] in SECTIONS:
            section = mark[1], mark[2:]
        elif mark:
            yield mark[1], mark[2:], []
        else:
            print("   ", line)
    if section:
        yield "wrong", section[1] + ["(the guest stopped here)"], []


def main():
    guest, count = sys.argv[1], collections.Counter()
    for what, words, lines in read(sys.stdin):
        name = " ".join(words)
        if what in SECTIONS:
            why = SECTIONS[what](words, lines)
            name = {"ticks": " ".join(words[:-1]), "chains": " ".join(words[:1]),
                    "cpus": f"sums, threads, descriptors, memory of {words[0]} CPUs"}.get(what, name)
            what = "wrong" if why else "ok"
            name += f": {why}" if why else ""
        count[what] += 1
        print({"ok": "  ok      ", "wrong": "  FAILED  ", "skip": "  skipped "}[what] + f"{guest}: {name}", flush=True)
    print(f"{count['ok']} passed, {count['wrong']} failed, {count['skip']} skipped")
    sys.exit(bool(count["wrong"]) or not count["ok"])


main()
