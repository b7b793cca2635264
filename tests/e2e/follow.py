# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings that are read while they are written; see follow.sh."""
import collections
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from screen import PROFTOP, Terminal, rings_of

PROGRAMS, TMP = os.environ["PROGRAMS"], os.environ["TMP"]
PARTS = ["taken", "complete", "guessed", "truncated", "broken", "pending", "dropped", "lost"]
RECORD = ["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-o", "-", "sleep"]
bad = []


def wrong(condition, message):
    if condition:
        bad.append(message)


def sums(ticks):
    """Return the account and the samples by function of all ticks."""
    account = {p: sum(t["account"][p] for t in ticks) for p in PARTS}
    rows = collections.Counter()
    for t in ticks:
        for r in t["rows"]:
            rows[r["symbol"], r["module"]] += r["self"]
    return account, rows


def parts(account):
    """Return the account with all outcomes of a stack as one: the first samples may come before their maps."""
    stacks = sum(account[p] for p in ("complete", "guessed", "truncated", "broken", "pending"))
    return {"stacks": stacks, **{p: account[p] for p in ("taken", "dropped", "lost")}}


def replay(data, extra, pieces):
    """Feed @data in pieces; return the ticks and standard error."""
    p = subprocess.Popen([PROFTOP, "--replay", "-", "-b", "--format=ndjson", "--rows=0", "--no-inline", *extra],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    got = []
    readers = [threading.Thread(target=lambda f=f: got.append((f, f.read()))) for f in (p.stdout, p.stderr)]
    for r in readers:
        r.start()
    try:
        for piece in pieces(data):
            p.stdin.write(piece)
            p.stdin.flush()
        p.stdin.close()
    except BrokenPipeError:
        pass
    try:
        code = p.wait(100)
    except subprocess.TimeoutExpired:
        p.kill()
        sys.exit(f"wrong: {len(data)} bytes: it does not end")
    for r in readers:
        r.join()
    out = dict(got)
    return code, [json.loads(line) for line in out[p.stdout].splitlines()], out[p.stderr].decode()


def whole(data):
    yield data


def chopped(data):
    """Pieces of 1 byte to 60 KB, with a pause of more than a tick in each fifth."""
    at, rng = 16, random.Random(len(data))
    # The header alone, as perf writes it.
    yield data[:at]
    time.sleep(0.1)
    while at < len(data):
        size = rng.choice([1, 7, 100, 5000, 20000, 60000])
        yield data[at:at + size]
        if 5 * at // len(data) != 5 * (at + size) // len(data):
            time.sleep(0.25)
        at += size


def check_same(data):
    code, (once,), _ = replay(data, [], whole)
    code, ticks, err = replay(data, ["-d", "0.2"], chopped)
    # A tick that a busy machine skips is in the total.
    account = ticks[-1]["account_total"]
    wrong(code or len(ticks) < 3, f"{len(ticks)} ticks, exit {code}: {err}")
    wrong(parts(account) != parts(once["account"]) or account["pending"] > 0.02 * account["taken"],
          f"account {account}, of the whole {once['account']}")
    if [tick["seq"] for tick in ticks] == list(range(ticks[0]["seq"], ticks[0]["seq"] + len(ticks))):
        wrong(any(account[p] != nr for p, nr in sums(ticks)[0].items()), "account_total")
    wanted = sums([once])[1]
    # Names may come late on a busy machine; ticks without waiting ones have functions of the whole. Except code of JITs:
    # perf maps of other programs come and go between the two.
    named = sums([tick for tick in ticks if not tick["names"]["waiting"]])[1]
    other = sum(nr for function, nr in named.items()
                if function not in wanted and "+0x" not in function[0] and function[1] != "[anon]")
    wrong(other > 0.02 * once["account"]["taken"],
          f"{other} samples in other functions than in the whole: {[f for f in named if f not in wanted][:5]}")
    # Only part of the recording: as much as is there, and why it ends.
    code, ticks, err = replay(data[:len(data) * 2 // 3 - 3], ["-d", "0.2"], whole)
    wrong(code or not ticks or "cut short" not in json.dumps(ticks[-1]) or
          not 0 < sums(ticks)[0]["taken"] < once["account"]["taken"], f"cut short: {code} {err}")
    for junk in (b"PERFILE2", b"PERFILE2" + b"\xff" * 5000):
        code, ticks, err = replay(junk, ["-d", "0.2"], whole)
        wrong(code != 1 or not err.startswith("proftop: "), f"junk: {code} {err}")
    # Events, but no samples yet.
    code, ticks, err = replay(data[:300], ["-d", "0.2"], whole)
    wrong(code not in (0, 1), f"no samples: {code} {err}")
    damaged = bytearray(data)
    for at in range(3000, len(data), 997):
        damaged[at] ^= 0x55
    code, ticks, err = replay(bytes(damaged), ["-d", "0.2"], chopped)
    wrong(code not in (0, 1), f"damaged: {code} {err}")


def check_live():
    """The screen has rows while the writer runs, other ones later, and the end is said."""
    # The writer ends once the rows have changed.
    over = os.path.join(TMP, "over")
    command = f"{' '.join(RECORD[:-1])} sh -c 'until [ -e {over} ]; do sleep 0.1; done' 2>/dev/null | {PROFTOP} --replay -"
    t = Terminal(f"sh -c {shlex.quote(command)}", 100, 30)
    try:
        first = t.wait_for("burn", 20)
        seconds = time.monotonic() - t.started
        wrong(not first or "ENDED" in first, f"no rows while the writer runs: {first}")
        wrong(first and not re.search(rf"recording of {re.escape(socket.gethostname())}, [\d.]+ s late", first),
              f"neither host nor delay: {first}")
        counts = set()
        while len(counts) < 2 and time.monotonic() < t.started + 60:
            counts |= set(re.findall(r"([\d,]+) samples", t.screen()))
            time.sleep(0.05)
        with open(over, "w", encoding="ascii"):
            pass
        screen = t.wait_for("ENDED", 20)
        wrong(len(counts) < 2, f"the rows do not change: {counts}")
        # The message follows the state.
        screen = t.wait_for("the recording has ended", 10) or screen
        wrong(not screen or "the recording has ended" not in screen, f"no message at the end: {screen}")
    finally:
        t.close()
    print(f"rows after {seconds:.1f} s, {len(counts)} counts")


def cpu_time(pid):
    """Return the seconds of CPU time of a process (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def interrupt(process, pid, seconds):
    """Interrupt @process once @pid has used so much CPU time more while it samples."""
    late = time.monotonic() + 60
    while not rings_of(process.pid) and process.poll() is None and time.monotonic() < late:
        time.sleep(0.02)
    end = cpu_time(pid) + seconds
    while cpu_time(pid) < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)


def check_record():
    """--record -: perf and --replay - have all samples; another file in place of the recorded one is noticed."""
    # perf keeps copies of programs in ~/.debug, in which the recorded file would be found.
    os.environ["HOME"] = TMP
    program = os.path.join(TMP, "gone")
    shutil.copy(os.path.join(PROGRAMS, "spin"), program)
    with subprocess.Popen([program]) as spin:
        with subprocess.Popen([PROFTOP, "--record=-", "-d", "0.2", "-F", "999", "-e", "cpu-clock", "-p", str(spin.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            threading.Thread(target=interrupt, args=(recorder, spin.pid, 1.2)).start()
            data, err = recorder.communicate(timeout=100)
        spin.kill()
    said = re.search(r"(\d+) samples", err.decode())
    wrong(recorder.returncode not in (0, 128 + signal.SIGINT) or not said or int(said[1]) < 20,
          f"--record -: {recorder.returncode} {err}")
    nr = int(said[1]) if said else 0
    script = subprocess.run(["perf", "script", "-i", "-", "--no-inline", "-F", "comm,ip,sym"], input=data,
                            capture_output=True, check=False)
    theirs = len(re.findall(rb"^gone", script.stdout, re.M))
    wrong(theirs != nr or b"burn" not in script.stdout, f"perf script has {theirs} of {nr} samples: {script.stderr}")
    for size in (len(data), 20000):
        pieces = [data[at:at + size] for at in range(0, len(data), size)]
        code, ticks, err = replay(data, ["-d", "0.2"], lambda _, pieces=pieces: pieces)
        account, rows = ticks[-1]["account_total"], sums(ticks)[1]
        wrong(code or account["taken"] != nr, f"--replay - has {account} of {nr} samples: {err}")
        wrong(not any(name == "burn" for name, _ in rows), f"--replay -: no burn in {rows}")
        wrong(f"recording of {socket.gethostname()}" not in ticks[-1]["target"], ticks[-1]["target"])
    shutil.copy(os.path.join(PROGRAMS, "recurse"), program + ".new")
    os.rename(program + ".new", program)
    code, ticks, err = replay(data, ["-d", "0.2"], whole)
    wrong("differs from the recorded file" not in json.dumps(ticks[-1]), f"another file: {code} {sums(ticks)[1]}")
    # A reader that leaves early is no failure.
    with subprocess.Popen([PROFTOP, "--record=-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as left:
        left.stdout.read(1000)
        left.stdout.close()
        err = left.stderr.read()
        wrong(left.wait(20) or err, f"a reader that leaves: {left.returncode} {err}")


def check_tracepoint():
    """--record - with a tracepoint: perf reads the formats, and has each sample."""
    with subprocess.Popen([PROFTOP, "--record=-", "-F", "999", "-e", "sched:sched_process_fork", "--", "sh", "-c",
                           "for i in 1 2 3 4 5; do /bin/true; done"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as recorder:
        data, err = recorder.communicate(timeout=100)
    said = re.search(r"(\d+) samples", err.decode())
    wrong(recorder.returncode or not said or not int(said[1]), f"--record - of forks: {recorder.returncode} {err}")
    script = subprocess.run(["perf", "script", "-i", "-", "--no-inline", "-F", "comm,event"], input=data,
                            capture_output=True, check=False)
    theirs = script.stdout.count(b"sched:sched_process_fork:")
    wrong(said and theirs != int(said[1]), f"perf script has {theirs} of {said[1]} forks: {script.stderr}")


def main():
    spin = subprocess.Popen([os.path.join(PROGRAMS, "spin")])
    try:
        data = subprocess.run([*RECORD, "0.7"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        check_same(data)
        check_live()
        check_record()
        # Tracepoints need the rights of root.
        if os.geteuid() == 0:
            check_tracepoint()
    finally:
        spin.kill()
    print(f"{len(data)} bytes")
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
