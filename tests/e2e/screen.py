# SPDX-License-Identifier: GPL-2.0-or-later
"""Drive the screen of proftop in a terminal (tmux) and check the text.

screen.py keys       every key of --list-keys at three sizes: it lives, and shows something
screen.py effects    keys that must be seen to work; resizing; job control; ways to quit
screen.py startup    first rows on an idle and on a busy machine, in at most 500 ms
screen.py rates      [ and ]: the got rate follows within two ticks
screen.py trouble    lost and throttled are shown, on their CPU
screen.py copies PID stacks larger than the copies: reported, and fixed by one key
screen.py terminal   after every kind of end the terminal is as before
B, the build folder, is in the environment.
"""
import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROFTOP = os.path.join(os.path.abspath(os.environ["B"]), "proftop")
PROGRAMS = os.path.join(os.path.abspath(os.environ["B"]), "tests", "programs")
ROW = re.compile(r"^.? *[0-9]+\.[0-9].* [ukjvy?] ?\S", re.M)
TMUX_KEYS = {"PgUp": "PPage", "PgDn": "NPage", "Esc": "Escape", "Bksp": "BSpace", "S-Tab": "BTab",
             "Up": "Up", "Down": "Down", "Left": "Left", "Right": "Right", "Home": "Home",
             "End": "End", "Enter": "Enter", "Tab": "Tab", "Space": "Space"}
LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"
wrongs = []
lock = threading.Lock()


def wrong(message, screen=""):
    with lock:
        wrongs.append(message)
        print("wrong:", message)
        if screen:
            print("\n".join("    |" + line for line in screen.splitlines() if line.strip()))


@contextlib.contextmanager
def limited(path, value):
    """A limit of the kernel, set for as long as this lasts; false: it cannot be set here."""
    with open(path, encoding="ascii") as f:
        before = f.read().strip()
    done = False
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(str(value))
        done = True
    except OSError as e:
        print(f"({path} cannot be changed here: {e})")
    try:
        yield done
    finally:
        if done:
            with open(path, "w", encoding="ascii") as f:
                f.write(before)


# Seconds to wait for a screen: it is far sooner, but for a loaded machine.
PATIENCE = 45  # seconds: at a load of 20 the first rows took eight


class Terminal:
    """One tmux server with one window; its programs end with it."""
    number = 0

    def __init__(self, command, cols=100, rows=30):
        with lock:
            Terminal.number += 1
            self.socket = f"proftop-e2e-{os.getpid()}-{Terminal.number}"
        env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR")}
        self.started = time.monotonic()
        # Where 'P' writes.
        folder = os.environ.get("TMUX_TMPDIR", tempfile.gettempdir())
        subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", "new-session", "-d", "-c", folder, "-x",
                        str(cols), "-y", str(rows), f"exec {command}", ";", "set", "-g", "remain-on-exit", "on", ";",
                        "set", "-g", "escape-time", "0"], env=env, check=True)

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-L", self.socket, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace", check=False)
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def ask(self, name):
        return self.tmux("display-message", "-p", "#{" + name + "}").strip()

    def dead(self):
        return self.ask("pane_dead") != "0"

    def press(self, key):
        """A key by the name that --list-keys gives it."""
        if key in TMUX_KEYS:
            self.tmux("send-keys", TMUX_KEYS[key])
        elif len(key) > 1 and key[0] == "^":
            self.tmux("send-keys", "C-" + key[1].lower())
        elif re.fullmatch("F[0-9]+", key):
            self.tmux("send-keys", key)
        else:
            self.tmux("send-keys", "-l", "--", key)

    def wait_for(self, pattern, seconds=PATIENCE, step=0.03):
        """The screen once it matches, or None."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            if time.monotonic() > end:
                return None
            time.sleep(step)

    def expect(self, pattern, what, seconds=PATIENCE):
        screen = self.wait_for(pattern, seconds)
        if screen is None:
            wrong(f"{what}: no /{getattr(pattern, 'pattern', pattern)}/ on the screen", self.screen())
        return screen

    def need_rows(self):
        """Without these nothing that follows means anything."""
        if self.expect(ROW, "rows") is None:
            self.close()
            sys.exit(1)

    def close(self):
        self.tmux("kill-server")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def worker_of(pid, seconds=PATIENCE):
    """The process behind the guard: the last of the line of children."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        below = [c for c in children(pid)
                 if os.readlink(f"/proc/{c}/exe") == os.path.realpath(PROFTOP)]
        if below:
            return below[0]
        time.sleep(0.02)
    return pid


def rings_of(pid):
    """Return how many rings of perf events a process and its children have mapped."""
    nr = 0
    try:
        for p in [pid, *children(pid)]:
            with open(f"/proc/{p}/maps", encoding="utf-8", errors="replace") as f:
                nr += f.read().count("anon_inode:[perf_event]")
    except OSError:  # one has ended
        pass
    return nr


def stall(t, seconds):
    """proftop does not get to read its rings for so long."""
    worker = worker_of(int(t.ask("pane_pid")))
    os.kill(worker, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(worker, signal.SIGCONT)


def list_keys():
    """Return (keys, help) of each line of --list-keys: keys, action, help."""
    text = subprocess.run([PROFTOP, "--list-keys"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [re.match(r"  (\S+(?: \S+)*) {2,}[\w-]+ {2,}(.*)", line) for line in text.splitlines()]
    return [(m.group(1).split(), m.group(2)) for m in lines if m]


def spin(*args):
    process = subprocess.Popen([os.path.join(PROGRAMS, "spin"), *args])
    atexit.register(end, process)
    return process


def end(process):
    if process.poll() is None:
        process.kill()
        process.wait()


# Keys with special effects: they end it, stop it, or exist only while typing.
QUITS = {"Q", "F10", "^C", "q"}
TOGGLES = {"S", "K", "U", "#", "V", "F"}
TYPING = {"accept the input or selection", "add or remove this event", "close without accepting"}


def press_all(cols, rows):
    t = Terminal(f"{PROFTOP} -d 0.5", cols, rows)
    if t.wait_for(ROW) is None:
        wrong(f"{cols}x{rows}: no rows", t.screen())
    for keys, what in list_keys():
        for key in keys:
            if key in QUITS and key != "q" or key == "^Z":
                continue
            if what in TYPING:
                t.press("F7")
            elif key == "q":
                t.press("?")
            t.press(key)
            time.sleep(0.06)
            screen = t.screen()
            if t.dead():
                wrong(f"{cols}x{rows}: dead after '{key}' ({what})", screen)
                t.close()
                return
            if len([line for line in screen.splitlines() if line.strip()]) < 3:
                wrong(f"{cols}x{rows}: an empty screen after '{key}' ({what})", screen)
            if key in TOGGLES:
                t.press(key)
            t.press("Esc")
            time.sleep(0.05)
    t.press("1")
    t.expect(r"SELF%", f"{cols}x{rows}: functions after all keys")
    t.close()


def test_keys():
    threads = [threading.Thread(target=press_all, args=size) for size in ((80, 24), (40, 8), (160, 50))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def filter_rows(t, text):
    """Wait for rows that all have @text: at first it is there as typed, and the rows are those without the filter."""
    late = time.monotonic() + PATIENCE
    while True:
        screen = t.screen()
        rows = [line for line in screen.splitlines() if ROW.match(line)]
        if rows and all(text in row for row in rows):
            return
        if time.monotonic() > late:
            wrong(f"filter: no rows, or some without '{text}'", screen)
            return
        time.sleep(0.03)


def effects_of_keys(t):
    for key, pattern, what in (
            ("Space", "FROZEN", "freeze"), ("Space", "LIVE", "unfreeze"),
            ("S", "STOPPED", "stop sampling"), ("S", "LIVE", "start sampling"),
            ("z", "LIVE  decay", "window: decay"), ("z", "LIVE  total", "window: total"),
            ("z", "LIVE  last", "window: seconds"),
            ("?", "no key kills", "help"), ("Esc", "SELF%", "leave help"),
            ("2", r"PID", "processes"), ("1", "SELF%", "functions"),
            ("e", "cpu-clock", "event picker"), ("Esc", "SELF%", "leave picker"),
            ("f", "997|999", "frequency picker"), ("Esc", "SELF%", "leave picker")):
        t.press(key)
        t.expect(pattern, what)
        time.sleep(0.05)
    t.press("\\")
    time.sleep(0.1)
    t.tmux("send-keys", "-l", "burn")
    t.press("Enter")
    filter_rows(t, "burn")
    t.press("Esc")
    time.sleep(0.2)
    t.press("2")
    t.expect("spin", "processes: spin")


def sequences(t):
    """Keys and reports of another terminal are no keys: no rate, no view changes."""
    for text in ("\x1b[<64;10;2M", "\x1b[1;7P", "\x1b[200~", "\x1b[M !!", "\x1bO2", "\x1b[[S", "\x1b[?7;2c"):
        t.tmux("send-keys", "-l", "--", text)
        time.sleep(0.05)
    time.sleep(0.4)
    screen = t.screen()
    if not re.search(r"cpu-clock.* 999 Hz", screen) or "[1:Functions]" not in screen:
        wrong("sequences were taken as keys", screen)


def may_go_first():
    """Whether this user may take a real-time priority, and did not choose a nice value."""
    chrt = ["chrt", "-r", "1", "true"]
    return not os.getpriority(os.PRIO_PROCESS, 0) and subprocess.run(chrt, stderr=subprocess.DEVNULL, check=False).returncode == 0


def priority(t):
    """A key is answered on a busy machine as well: the screen's thread goes first, where the user may and has not chosen."""
    if may_go_first() and os.sched_getscheduler(worker_of(int(t.ask("pane_pid")))) != os.SCHED_RR | os.SCHED_RESET_ON_FORK:
        wrong("the screen has no real-time priority")


def test_effects():
    busy = spin("2")
    t = Terminal(f"{PROFTOP} -d 0.3", 100, 30)
    t.need_rows()
    priority(t)
    sequences(t)
    effects_of_keys(t)
    for cols, rows, pattern in ((30, 5, "needs 40x8"), (200, 60, "spin"), (40, 8, r"\S"), (100, 30, "spin")):
        t.tmux("resize-window", "-x", str(cols), "-y", str(rows))
        t.expect(pattern, f"resized to {cols}x{rows}")
    t.close()
    for key in sorted(QUITS):
        t = Terminal(f"sh -c '{PROFTOP} -d 0.3; echo quit with $?; exec sleep 60'", 80, 24)
        t.need_rows()
        t.press(key)
        t.expect(r"(?m)^quit with %d$" % (130 if key == "^C" else 0), f"'{key}'")
        t.close()
    job_control()
    end(busy)


def job_control():
    t = Terminal("env -u ENV PS1='ready> ' sh -i", 80, 24)
    t.expect("ready>", "a shell")
    t.tmux("send-keys", f"{PROFTOP} -d 0.3", "Enter")
    t.need_rows()
    t.press("^Z")
    t.expect("ready>", "suspended")
    if t.ask("alternate_on") != "0":
        wrong("suspended: the alternate screen is still on", t.screen())
    t.tmux("send-keys", "fg", "Enter")
    t.expect(ROW, "after fg")
    t.press("Q")
    t.expect("ready>", "quit after fg")
    t.close()


def test_pipe():
    """A recording from a pipe that stays open: keys are from the terminal, ^C shows it, q quits."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        subprocess.run(f"{PROFTOP} -b -n 1 -d 0.3 -e cpu-clock --record {data}", shell=True, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for key in ("^C", "q"):
            t = Terminal(f"sh -c 'trap : INT; (cat {data}; sleep 60) | {PROFTOP} --replay -'")
            t.expect(r"reading [0-9.]+ MB +\^C: show it now +q: quit", "an open pipe")
            t.press(key)
            if key == "^C":
                t.expect("REPLAY|ENDED", "^C while a pipe is read")
                t.press("q")
            for _ in range(100):
                if t.dead() or not t.wait_for("reading|REPLAY", 0):
                    break
                time.sleep(0.1)
            else:
                wrong(f"{key}, then q: the screen stays", t.screen())
            t.close()


def time_to(command, pattern):
    """Return the ms until @command has drawn @pattern."""
    t = Terminal(command, 100, 30)
    screen = t.wait_for(pattern, step=0.005)
    ms = (time.monotonic() - t.started) * 1000
    if screen is None:
        wrong("no rows at all", t.screen())
    t.close()
    return ms


# ms that the small program takes on a calm machine.
CALM = 250


def test_startup():
    """The best of three. The terminal's own start is in it, and the delay of a machine that runs other tests: that of a
    program that sleeps as long as the first tick and then starts some processes is taken off."""
    test_pipe()
    small = "sh -c 'sleep 0.2; for i in 1 2 3 4 5; do ls >/dev/null; done; echo ready; exec sleep 60'"
    for state, args in (("idle", None), ("busy", (str(os.cpu_count()),))):
        busy = spin(*args) if args else None
        times = sorted((time_to(PROFTOP, ROW), time_to(small, "ready")) for _ in range(3))
        delay = max(0, max(other for _, other in times) - CALM)
        if busy:
            end(busy)
        print(f"first rows, {state}: " + ", ".join(f"{ms:.0f} ms" for ms, _ in times) + "; a small program: "
              + ", ".join(f"{ms:.0f} ms" for _, ms in times))
        if times[0][0] > 500 + 2 * delay:
            wrong(f"first rows, {state}: {times[0][0]:.0f} ms, {delay:.0f} ms of delay")


def number(text):
    """"4 999", "4,999", "10.0k", "10k" as a number."""
    m = re.match(r"([0-9][0-9 ,.]*)([kM]?)", text)
    return float(m.group(1).replace(" ", "").replace(",", "")) * {"": 1, "k": 1e3, "M": 1e6}[m.group(2)]


def read_rate(t):
    """Return the wanted rate and the one of a tick that has samples enough: on a full machine not each has."""
    for _ in range(20):
        m = re.search(r"Freq ([0-9][0-9 ,.kM]*?)(?: of [0-9 ,.kM]+)? Hz, got ([0-9][0-9 ,.kM]*)", t.screen())
        if m:
            return number(m.group(1)), number(m.group(2))
        t.wait_for(r"Freq [0-9][0-9 ,.kMof]* Hz, got [0-9]")
    return None, None


def look_at_rate(t):
    """Return the share of samples that the kernel delivered in a second, the wanted rate, and the one of a tick after."""
    # Two ticks of the new rate alone.
    with subprocess.Popen([os.path.join(os.environ["B"], "tests", "tools", "delivered"), "1"],
                          stdout=subprocess.PIPE, text=True) as clock:
        time.sleep(1.3)
        delivered = float(clock.stdout.read())
    t.wait_for(r"Freq [0-9][0-9 ,.kMof]* Hz, got [0-9]")
    return delivered, *read_rate(t)


def test_rates():
    with tempfile.TemporaryDirectory() as folder:
        # Processes of one name share a row.
        name = f"spin-{os.getpid()}"
        os.symlink(os.path.join(PROGRAMS, "spin"), os.path.join(folder, name))
        busy = subprocess.Popen([os.path.join(folder, name), str(os.cpu_count())])
        atexit.register(end, busy)
        follow_rates(busy, name)


def answer_times(t, nr=12):
    """Seconds from a key to its answer on the screen, the median."""
    times = []
    for i in range(nr):
        begun = time.monotonic()
        t.press("?" if i % 2 == 0 else "Esc")
        if t.wait_for("MOVE AND FIND" if i % 2 == 0 else ROW, step=0.005) is None:
            wrong("no answer to a key", t.screen())
            return 0
        times.append(time.monotonic() - begun)
    return sorted(times)[nr // 2]


def ask_rate(t, hz, answer):
    t.press("f")
    t.press(str(hz))
    t.press("Enter")
    if t.wait_for(answer) is None:
        wrong(f"{hz} Hz: no answer", t.screen())


def carry_rate():
    """A rate that this machine may not carry leaves it time for the screen."""
    t = Terminal(f"{PROFTOP} -F 997 -e cpu-clock", 140, 40)
    t.need_rows()
    # Other work of the machine comes and goes: one of three looks has to be right.
    for _ in range(3):
        before = answer_times(t)
        ask_rate(t, 50000, r"Freq 50[ ,]000 Hz requested|in steps|rate raised")
        after = answer_times(t)
        print(f"f 50000: a key takes {1000 * after:.0f} ms, at the rate before {1000 * before:.0f} ms")
        if after <= max(0.25, 4 * before):
            break
        ask_rate(t, 997, r"Freq 997 Hz")
    else:
        wrong(f"50000 Hz: a key takes {1000 * after:.0f} ms instead of {1000 * before:.0f}")
    t.close()


def follow_rates(busy, name):
    t = Terminal(f"{PROFTOP} -d 0.5 --window=1 -F 199 -e cpu-clock", 140, 40)
    t.need_rows()
    before, at_once = 199, 0
    for key, times in (("]", 3), ("[", 2)):
        for _ in range(times):
            t.press(key)
            t.wait_for(r"Freq [0-9][0-9 ,.kMof]* Hz, got [0-9]")
            # A tick is not the second of its clock: one look has to be right. A wrong rate never comes right.
            for look in range(5):
                delivered, want, got = look_at_rate(t)
                if want is None:
                    break
                moved = want > before if key == "]" else want < before
                follows = 0.95 * delivered * want < got < 1.05 * want
                if moved and follows:
                    at_once += look == 0
                    break
            if want is None:
                wrong("no rate on the screen", t.screen())
                break
            if not moved:
                wrong(f"'{key}': from {before} to {want} Hz", t.screen())
            if not follows:
                wrong(f"'{key}': wanted {want}, got {got} Hz, {delivered:.2f} delivered", t.screen())
            print(f"{key}  wanted {want:.0f} Hz  got {got:.0f} Hz  in look {look + 1}")
            before = want
        check_cpu_time(t, busy.pid, name)
    if not at_once:
        wrong("no rate followed within two ticks")
    t.close()
    with open(LIMIT, encoding="ascii") as limit:
        if int(limit.read()) >= 50000:
            carry_rate()
    end(busy)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_cpu_time(t, pid, name):
    """Samples are worth the time between two of them, at whatever rate: no process has more time than there is."""
    begin, had = time.monotonic(), cpu_seconds(pid)
    t.press("2")
    # On a full machine it may be below the last line.
    t.press("\\")
    t.tmux("send-keys", "-l", f"^{name}$")
    t.press("Enter")
    line = t.expect(rf"(?m)^.*\b{pid}\b.*$", "the process that is busy")
    title = re.search(r"(?m)^.*CPU%.*PID.*$", line or "")
    row = re.search(rf"(?m)^.*\b{pid}\b.*$", line or "")
    used = re.search(r"([0-9.]+)\W*$", row.group(0)[:title.group(0).index("CPU%") + 4]) if title and row else None
    # Of the second before; on a full machine it has little.
    has = 100 * (cpu_seconds(pid) - had) / (time.monotonic() - begin)
    if not used or not min(5, 0.2 * has) < float(used.group(1)) < 105 * os.cpu_count():
        wrong(f"{os.cpu_count()} CPUs, and a process with {has:.1f} % has {used.group(1) if used else None} %", t.screen())
    t.press("Esc")
    t.press("1")
    t.expect("SYMBOL", "functions")


def test_trouble():
    last = os.cpu_count() - 1
    busy = spin("1")
    os.sched_setaffinity(busy.pid, {last})
    t = Terminal(f"{PROFTOP} -d 0.5 -F 4999 -e cpu-clock --ring 64K", 140, 40)
    t.need_rows()
    stall(t, 1)
    t.expect(rf"(?i)lost.*cpu{last} [1-9]", f"lost samples of CPU {last}")
    t.close()
    t = Terminal(f"{PROFTOP} -d 0.5 -F 4999 -e cpu-clock", 140, 40)
    t.need_rows()
    with limited(LIMIT, 500) as is_limited:
        if is_limited:
            t.expect(rf"(?i)throttled.*cpu{last} [1-9]", f"throttling of CPU {last}")
    t.close()
    end(busy)


def test_copies():
    t = Terminal(f"{PROFTOP} -d 0.3 -F 999 -e cpu-clock --stack-size 1024 --verify=1 -p {sys.argv[2]}", 160, 40)
    t.need_rows()
    t.expect(r"of stacks truncated", "a warning")
    key = next(keys[0] for keys, text in list_keys() if text.startswith("apply the fix"))
    t.press(key)
    t.expect(r"2048 bytes of user stack", "stack copies of twice the size")
    t.press("5")
    t.expect(r"verified [0-9]", "how many samples were verified")
    t.close()


def terminal_state(t, where):
    """The state that a killed program would leave behind."""
    path = os.path.join(tempfile.gettempdir(), f"proftop-e2e-{os.getpid()}-stty")
    t.tmux("send-keys", f"stty -a >{path}; echo written-{where}", "Enter")
    t.wait_for(rf"(?m)^written-{where}")
    try:
        with open(path, encoding="ascii") as f:
            modes = f.read()
        os.unlink(path)
    except OSError:
        modes = "none"
    names = ("alternate_on", "cursor_flag", "keypad_flag", "keypad_cursor_flag", "mouse_any_flag",
             "mouse_sgr_flag", "mouse_button_flag", "insert_flag", "wrap_flag")
    return [modes] + [f"{n}={t.ask(n)}" for n in names]


def kill_and_compare(name, sig, of_guard):
    t = Terminal("env -u ENV PS1='ready> ' sh -i", 100, 30)
    t.expect("ready>", "a shell")
    before = terminal_state(t, "before")
    t.tmux("send-keys", f"{PROFTOP} -d 0.3", "Enter")
    t.need_rows()
    shell = int(t.ask("pane_pid"))
    guard = children(shell)[0]
    worker = worker_of(guard)
    if worker == guard:
        wrong(f"{name}: there is no guard")
        t.close()
        return
    os.kill(guard if of_guard else worker, sig)
    gone = time.monotonic() + PATIENCE
    while any(os.path.exists(f"/proc/{p}") for p in (guard, worker)) and time.monotonic() < gone:
        time.sleep(0.02)
    if any(os.path.exists(f"/proc/{p}") for p in (guard, worker)):
        wrong(f"{name}: a process is left over")
    # A shell may have printed its prompt before the screen was restored, after its job was killed.
    time.sleep(0.1)
    t.press("Enter")
    t.expect(r"ready> *\n*\Z", f"{name}: back in the shell")
    after = terminal_state(t, "after")
    if before != after:
        wrong(f"{name}: the terminal was {[b for b, a in zip(before, after) if a != b]}, "
              f"is {[a for b, a in zip(before, after) if a != b]}", t.screen())
    t.close()


def has_terminfo(name):
    return subprocess.run(["infocmp", name], capture_output=True, check=False).returncode == 0


def show_in(name):
    """Terminfo has no size for some terminals: the size is that of the tty."""
    t = Terminal(f"env TERM={name} {PROFTOP} -d 0.3", 100, 30)
    if t.expect(r"(?m)^ *proftop ", f"TERM={name}: a screen"):
        width = max(len(line) for line in t.screen().splitlines())
        if width <= 80:
            wrong(f"TERM={name}: {width} columns of 100 are used", t.screen())
    t.press("q")
    t.close()


def test_terminal():
    for name in ("linux", "vt100", "screen"):
        if has_terminfo(name):
            show_in(name)
    for name, sig, of_guard in (("SIGSEGV", signal.SIGSEGV, False), ("SIGKILL", signal.SIGKILL, False),
                                ("SIGABRT", signal.SIGABRT, False), ("SIGTERM", signal.SIGTERM, False),
                                ("SIGKILL of the guard", signal.SIGKILL, True),
                                ("SIGTERM of the guard", signal.SIGTERM, True)):
        kill_and_compare(name, sig, of_guard)


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    sys.exit(1 if wrongs else 0)
