# SPDX-License-Identifier: GPL-2.0-or-later
"""Steer the sampling while it runs, in a terminal (tmux), and check the screen.

steer.py walk        every control there is, by its key or its command
steer.py drill       one process alone, at a higher rate, and back: the table loses nothing
steer.py fixes       lost, throttled: reported on its line, over after its fix
steer.py mlock       little memory to lock, and another profiler that has it
steer.py hotplug     a CPU that goes offline and online again (only when HOTPLUG is set: other programs need it)
B, the build folder, is in the environment.
"""
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from screen import LIMIT, PATIENCE, PROFTOP, ROW, Terminal, end, limited, rings_of, spin, stall, wrong, wrongs

GAP = r"; nothing was sampled for [0-9]+ ms"


def command(t, text):
    t.press(":")
    t.tmux("send-keys", "-l", "--", text)
    t.press("Enter")


def picker(t, text, key="Enter"):
    """Type into the event picker, press a key there, and leave it."""
    t.press("e")
    t.expect("F7 Event", "event picker")
    t.tmux("send-keys", "-l", "--", text)
    t.press(key)
    if key != "Enter":
        t.press("Esc")


def own_name():
    """Return the name of this user; without one its number."""
    try:
        return re.escape(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return str(os.getuid())


def walk_targets(t, pid):
    for text, pattern in ((f"target pid {pid}", f"sampling pid {pid}{GAP}"),
                          (f"target tid {pid}", f"sampling thread {pid}{GAP}"),
                          ("target name ^spin$", r"sampling name \^spin\$" + GAP),
                          ("target cgroup /", f"sampling cgroup /{GAP}|no cgroups with perf events are mounted"),
                          (f"target user {os.getuid()}", f"sampling user {own_name()}{GAP}"),
                          ("cpus 0", rf"sampling user {own_name()} on CPU 0{GAP}"),
                          ("target system", f"sampling system on CPU 0{GAP}"),
                          ("cpus all", f"sampling system{GAP}"),
                          ("target pid 4194303", "no process with pid 4194303"),
                          ("target moon", "unknown target .moon.: system, pid")):
        command(t, text)
        t.expect(pattern, f":{text}")


def walk_events(t):
    command(t, "event cpu-clock,page-faults")
    t.expect("sampling cpu-clock, page-faults", ":event")
    picker(t, "task-clock", "Tab")
    t.expect("1 of 3", "added")
    t.press("e")
    t.expect("(?i)sampled now", "event picker")
    t.press("2")
    t.expect("page-faults is off", "turned off")
    t.press("2")
    t.expect("page-faults is sampled", "turned on")
    t.press("Esc")
    picker(t, "task-clock", "Tab")
    t.expect("1 of 2", "taken out")
    t.press("e")
    t.press("^K")
    t.expect(r"\[x\] user .*\[ \] kernel", "levels")
    t.press("^T")
    t.expect("precise 1", "precise")
    for _ in range(3):
        t.press("^T")
    t.tmux("send-keys", "-l", "--", "cpu-clock")
    t.press("Enter")
    t.expect("Event cpu-clock:u", "user code alone")


def walk_sizes(t):
    for keys, pattern in (("]", r"Freq 1,?[ ]?997 Hz"), ("[", "Freq 997 Hz"), (":hz 499", "Freq 499 Hz"),
                          # A size of the user's ends the automatic steps.
                          (":stack-size 24K", r"24576 bytes of user stack a sample" + GAP),
                          ("}", r"49152 bytes of user stack a sample" + GAP),
                          ("{", r"24576 bytes of user stack a sample" + GAP),
                          (")", r"rings of [0-9]+ KiB per CPU" + GAP), (":ring 256K", "rings of 256 KiB per CPU"),
                          ("C", r"frame pointers \(fp\)"), ("C", r"no stacks \(off\)"), ("C", r"DWARF unwinding"),
                          (":call-graph fp", r"frame pointers \(fp\)"), ("S", "STOPPED"), ("S", "LIVE")):
        if keys[0] == ":":
            command(t, keys[1:])
        else:
            t.press(keys)
        t.expect(pattern, keys)


def test_walk():
    busy = spin("2")
    t = Terminal(f"{PROFTOP} -d 0.3 -F 997 -e cpu-clock --max-overhead=100", 140, 40)
    t.need_rows()
    walk_targets(t, busy.pid)
    walk_sizes(t)
    walk_events(t)
    t.press("1")
    t.expect(ROW, "rows after all that")
    t.close()
    end(busy)


def test_drill():
    # Deep stacks of other programs would make all stack copies larger.
    busy, other = spin("2"), spin("1")
    t = Terminal(f"{PROFTOP} -d 0.4 -F 499 -e cpu-clock --name '^spin$'", 140, 40)
    t.need_rows()
    command(t, f"pid {busy.pid}")
    t.expect(rf"spin\[{busy.pid}\]", "drilled in")
    t.press("x")
    t.expect(f"sampling pid {busy.pid}{GAP}", "sampled alone")
    t.expect(r"Freq 1,?[ ]?996 Hz", "at four times the rate")
    if not ROW.search(t.screen()):
        wrong("the table was lost with the focus", t.screen())
    t.press("5")
    t.expect("stack copies of (32768|65528) bytes", "larger copies")
    t.press("1")
    t.press("Esc")
    t.expect(rf"sampling name \^spin\${GAP}", "as before")
    t.expect("Freq 499 Hz", "the rate of before")
    t.press("5")
    t.expect("copies of 16384 bytes", "the stack copies of before")
    t.press("1")
    t.press("Esc")
    t.expect(r"(?m)^ proftop \S+ +name ", "out of the process")
    if not ROW.search(t.screen()):
        wrong("the table was lost on the way back", t.screen())
    t.close()
    end(busy)
    end(other)


def take_fix(t, line, answer, what):
    """Select the row of Messages that matches, and press Enter; the sampler reports its action."""
    t.press("7")
    t.expect(r"MESSAGE", f"{what}: messages")
    t.press("/")
    t.tmux("send-keys", "-l", "--", line)
    t.press("Enter")
    t.expect(f"(?m)^ ?What +.*{line}", f"{what}: selected")
    t.press("Enter")
    t.expect(answer, f"{what}: fixed")
    t.press("Esc")


def fix_lost():
    t = Terminal(f"{PROFTOP} -d 0.4 -F 4999 -e cpu-clock --ring 64K --stack-size=16K", 140, 40)
    t.need_rows()
    stall(t, 0.7)
    take_fix(t, "samples lost on CPU", "rings of 128 KiB per CPU" + GAP, "lost")
    t.close()


def fix_throttled(last):
    t = Terminal(f"{PROFTOP} -d 0.4 -F 3999 -e cpu-clock", 140, 40)
    t.need_rows()
    with limited(LIMIT, 1500) as is_limited:
        if is_limited:
            t.expect(rf"(?i)throttled.*cpu{last} [1-9]", f"throttling of CPU {last}")
            take_fix(t, "throttled on CPU", "cpu-clock: 750 Hz", "throttled")
            t.press("1")
            t.expect(r"Throttled 0", "no longer throttled")
    t.close()


def nobody(caps, *command):
    """As a user with just these capabilities, and little memory to lock."""
    return ["prlimit", "--memlock=262144", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
            "--bounding-set", f"-all,{caps}", "--inh-caps", f"-all,{caps}", "--ambient-caps", f"-all,{caps}",
            *command]


def second_profiler(program):
    """One of the same user, that takes nearly all of the memory it may lock."""
    perf = shutil.which("perf")
    command = [perf, "record", "-q", "-a", "-e", "cpu-clock", "-F", "99", "-m", "64", "-o", "/dev/null"] \
        if perf else [program, "-b", "-n", "1000", "-F", "99", "-e", "cpu-clock", "--ring", "256K"]
    beside = subprocess.Popen(nobody("+perfmon", *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Until it has locked the memory of all its rings.
    late = time.monotonic() + PATIENCE
    while rings_of(beside.pid) < os.cpu_count() and beside.poll() is None and time.monotonic() < late:
        time.sleep(0.05)
    return beside


def test_mlock():
    """Locked memory: the limit is no obstacle to changes, is reported, and is over when it is raised or free
    again."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(PROFTOP, folder)
        beside = second_profiler(program)
        # Stack copies of one size: beside deep stacks they grow, and the rings with them, before a key is pressed.
        t = Terminal(shlex.join(nobody("+perfmon", "env", f"XDG_CONFIG_HOME={folder}", program, "-d", "0.4",
                                       "-e", "cpu-clock", "--stack-size=16K")), 160, 40)
        t.need_rows()
        t.press("7")
        t.expect(r"rings of [0-9]+ KiB per CPU instead of [0-9]+", "another takes the memory")
        end(beside)
        take_fix(t, "locked memory", r"rings of [0-9]+ KiB per CPU.*" + GAP, "the other has ended")
        command(t, "ring 4M")
        held = t.expect(r"rings of 4096 KiB per CPU: locked memory allows ([0-9]+) KiB" + GAP, "all there is")
        kib = re.search(r"locked memory allows ([0-9]+) KiB", held or "")
        t.press("}")
        t.expect("(32768|65528) bytes of user stack a sample: locked memory allows "
                 f"{kib.group(1) if kib else None} KiB" + GAP, "larger stack copies while the rings are all there is")
        with limited("/proc/sys/kernel/perf_event_mlock_kb", 16384) as is_limited:
            if is_limited:
                take_fix(t, "locked memory", "rings of [0-9]+ KiB per CPU" + GAP, "the limit was raised")
        t.close()


def test_fixes():
    last = os.cpu_count() - 1
    busy = spin("1")
    os.sched_setaffinity(busy.pid, {last})
    fix_lost()
    fix_throttled(last)
    end(busy)


def set_online(path, value):
    with open(path, "w", encoding="ascii") as f:
        f.write(value)


def test_hotplug():
    last = os.cpu_count() - 1
    path = f"/sys/devices/system/cpu/cpu{last}/online"
    busy = spin(str(last + 1))
    try:
        t = Terminal(f"{PROFTOP} -d 0.4 -e cpu-clock", 140, 40)
        t.need_rows()
        set_online(path, "0")
        t.expect(f"CPU {last} is offline", "offline")
        t.press("5")
        t.expect("offline", "offline in the list of CPUs")
        t.press("7")
        t.expect(f"offline: CPU {last}; nothing is sampled there", "offline in the messages")
        beside = Terminal(f"{PROFTOP} -d 0.4 -e cpu-clock", 140, 40)
        beside.need_rows()
        # One CPU of a list is offline: a change opens the others.
        t.close()
        set_online(path, "1")
        t = Terminal(f"{PROFTOP} -d 0.4 -e cpu-clock -C 0,{last}", 140, 40)
        t.need_rows()
        set_online(path, "0")
        t.expect(f"CPU {last} is offline", "offline in the list of -C")
        command(t, "stack-size 4096")
        t.expect(f"4096 bytes of user stack a sample{GAP}", "a change beside a CPU that is offline")
        set_online(path, "1")
        for terminal in (t, beside):
            terminal.expect(f"CPU {last} is back{GAP}", "back")
            terminal.press("5")
            terminal.expect(rf"(?m)^.? +!?{last} .*\b[1-9][0-9]*\b", "sampled again")
            terminal.close()
        # Too short to be seen in the list of online CPUs, as in a suspend.
        t = Terminal(f"{PROFTOP} -d 0.4 -e cpu-clock", 140, 40)
        t.need_rows()
        time.sleep(2.5)
        set_online(path, "0")
        set_online(path, "1")
        t.expect(f"CPU {last} is back{GAP}", "back after a moment")
        t.press("5")
        t.expect(rf"(?m)^.? +!?{last} .*\b[1-9][0-9]*\b", "sampled again after a moment")
        t.close()
    finally:
        set_online(path, "1")
    end(busy)


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    sys.exit(1 if wrongs else 0)
