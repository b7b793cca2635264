#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of truth_chain and truth_throw against the real calls of these programs: stacks.py < `chains FILE`

Each of their functions has one caller, so the innermost one determines the whole chain. A sample is judged once
its program runs the mode (main and the function of the mode are known), and is one of
  exact      every function in its place, the root reached (or, if the rest is on another
             stack than the copied one, all of this one, and reported as truncated)
  short      true as far as it goes, and reported as truncated or broken
  guessed    not the true one, but marked as guessed
  kernel     sampled while the kernel set the registers for a handler: AArch64 pc first, lr last, x86-64 sp before
             pc; perf shows the same
  wrong      not the true one, and shown as certain: never
TRUTH_ROOT: the last function of stacks, if not _start. TRUTH_MACHINE: of the samples, as by uname -m.
Exits 1 unless at least 99.9 % (AArch64: 99 %) are exact, none is wrong, and (x86) at most 2 % of the exact ones of
exceptions are marked as guessed.
"""
import collections, os, re, sys

RUN = {
    "chain": ["run_chain"] + [f"chain_{i}" for i in range(24)],
    "pushes": ["run_pushes", "pushes_caller", "pushes"],
    "alloca": ["run_alloca", "with_alloca", "realigned", "spin_leaf"],
    "noreturn": ["run_noreturn", "calls_noreturn", "never_returns", "spin_leaf"],
    "plt": ["run_plt"],
    "exec": ["run_exec", "exec_work", "spin_leaf"],
    "fork": ["run_fork", "fork_work", "spin_leaf"],
    "jitfp": ["run_jit", "[anon]"],
    "jitleaf": ["run_jit", "[anon]"],
    "throw": [f"throw_{i}" for i in range(7)],
}
FOREIGN = ["main", "outer", "middle", "inner"]
FOREIGN_MODES = ("frames32", "go", "rust", "ruststatic")
HANDLER = ["on_signal", "handler_leaf", "spin_leaf"]
# Functions of libraries that these programs call, and functions made by the compiler.
LEAVES = ("clock_now", "time_left", "guard::~guard()")
# The caller of a handler; without a name in a stripped libc and by its number in the vDSO.
RESTORERS = ("__restore_rt", "__kernel_rt_sigreturn", "[unknown]")
# The function that a handler on another stack interrupted; on AArch64 also its caller, by the link register.
OTHER_STACK = (["interrupted"], ["spin_leaf"], ["time_left"], ["clock_now"], ["interrupted", "spin_leaf"],
               ["interrupted", "time_left"], ["time_left", "clock_now"])
SPLIT = re.compile(r"(\.(part|constprop|isra|cold|lto_priv)(\.\d+)?)+$")


def own_names():
    names = {"main", "run", "tail_1", "tail_2", "tail_3", "deep_rec", "interrupted", "run_deep", "run_tail",
             "run_signal", "run_altstack", "run_altinside", "run_signal_on", "run_dlopen", "lib_a", "lib_b",
             "callback_a", "callback_b", "run_pointers", *(f"pointers_{i}" for i in range(4)), "run_switch", "switch_work", "coro_main", "coro_work"}
    for chain in list(RUN.values()) + [HANDLER]:
        names.update(chain)
    return names


# Where stacks end; musl has no unwind tables, so there they end at the caller of main.
ROOT = os.environ.get("TRUTH_ROOT", "_start")
ROOT_STOP = "complete" if ROOT == "_start" else "no_unwind_tables"
OWN = own_names() | set(LEAVES)
AARCH64 = os.environ.get("TRUTH_MACHINE", os.uname().machine) == "aarch64"
EXACT = 0.99 if AARCH64 else 0.999
GUESSES_OF_THROW = 1 if AARCH64 else 0.02


def clean(name):
    name = SPLIT.sub("", name.split("@")[0])
    return name.split("(")[0] if name.startswith("throw_") else name


def prefix_of(chain):
    """Does a list of own functions, outermost first, run down @chain without a gap?"""
    def match(own):
        own = [f for f in own if f not in LEAVES]
        return own == chain[:len(own)] and len(own) > 0
    return match


def deep(own):
    own = [f for f in own if f not in LEAVES]
    n = own.count("deep_rec")
    return own in (["run_deep"] + ["deep_rec"] * n, ["run_deep"] + ["deep_rec"] * 60 + ["spin_leaf"]) and n <= 60


def tail(own):
    own = [f for f in own if f not in LEAVES]
    return own in (["run_tail"], ["run_tail", "tail_1"], ["run_tail", "tail_2"], ["run_tail", "tail_3"],
                   ["run_tail", "tail_3", "spin_leaf"])


def pointers(own):
    own = [f for f in own if f not in LEAVES]
    chain = ["run_pointers", "pointers_0"]
    return own in (chain[:1], chain, [*chain, "pointers_1"], [*chain, "pointers_2"], [*chain, "pointers_2", "pointers_3"])


def dlopen(own):
    own = [f for f in own if f not in LEAVES]
    return own in (["run_dlopen"], *(["run_dlopen", *c] for x in "ab" for c in (
        [f"lib_{x}"], [f"lib_{x}", f"callback_{x}"], [f"lib_{x}", f"callback_{x}", "spin_leaf"])))


def switch(own):
    own = [f for f in own if f not in LEAVES]
    return own in (["run_switch"], ["run_switch", "switch_work"], ["run_switch", "switch_work", "spin_leaf"],
                   ["coro_main"], ["coro_main", "coro_work"], ["coro_main", "coro_work", "spin_leaf"])


def signal(first):
    def match(own):
        if "on_signal" in own:
            at = own.index("on_signal")
            if not prefix_of(HANDLER)(own[at:]):
                return False
            own = own[:at]
        own = [f for f in own if f not in LEAVES]
        full = [first, "run_signal_on", "interrupted", "spin_leaf"]
        return any(own == [f for f in full[:k] if f != "run_signal_on" or "run_signal_on" in own]
                   for k in range(1, 5))
    return match


MATCH = {mode: prefix_of(chain) for mode, chain in RUN.items()}
MATCH.update(deep=deep, tail=tail, switch=switch, pointers=pointers, dlopen=dlopen, signal=signal("run_signal"),
             altstack=signal("run_altstack"), altinside=signal("run_altinside"))


def judge_foreign(mode, stop, names):
    """main, outer, middle, inner in a program of another language or width; the frames below main are free."""
    own = [f for f in (re.sub(r".*(\.|::)", "", n) for n in reversed(names)) if f in FOREIGN]
    if own in ([], ["main"]) or stop == "pending":
        return None
    own = own[max((i for i, f in enumerate(own) if f == "main"), default=0):]
    if own == FOREIGN[:len(own)]:
        # 32 bits and Go: by frame pointers, and said to be so.
        want = "guessed" if mode in ("frames32", "go") else "complete"
        return "exact" if stop == want else "wrong" if stop == "complete" else "short"
    return "guessed" if stop == "guessed" else "wrong"


def judge(mode, stop, frames):
    """frames: innermost first."""
    if mode in FOREIGN_MODES:
        return judge_foreign(mode, stop, frames)
    names = [clean(f) for f in frames]
    own = [f for f in reversed(names) if f in OWN]
    if not own or own == ["main"] or own == ["main", "run"]:
        return None			# loading, or on its way to the mode
    if stop == "pending":
        return None
    if AARCH64 and names[0] == "on_signal" and names[1:2] and names[1] not in RESTORERS:
        return "kernel"
    # The handler's frame, already on the stack, returns to the instruction that is still in pc.
    if not AARCH64 and names[1:2] and names[1] in RESTORERS and names[2:3] == names[:1] and names[0] in own:
        return "kernel"
    inside = mode == "switch" and own[0] == "coro_main"	# its root is the begin of the stack
    # (a name that only libc's debug file has)
    rooted = names[-1] == ROOT and "main" in own or inside and names[-1] in ("__start_context", "[unknown]")
    if rooted:
        own = own if inside else own[own.index("main") + 1:]
        if own and own[0] == "run":
            own = own[1:]
        if all(f in LEAVES for f in own):
            return None			# main itself reads the time
        if MATCH[mode](own):
            return "exact" if stop in ("complete", "guessed", ROOT_STOP) else "short"
    elif stop not in ("complete", "guessed"):
        if mode == "altstack" and stop.startswith("truncated") and names[0] in RESTORERS and \
                own in OTHER_STACK:
            return "exact"		# the handler has returned, its frame is not yet left
        if mode == "altstack" and "on_signal" in own and stop.startswith("truncated"):
            # One frame of the other stack is known by the registers that the kernel saved.
            at = own.index("on_signal")
            ok = prefix_of(HANDLER)(own[at:]) and own[:at] in ([], *OTHER_STACK)
            return "exact" if ok else "wrong"
        if tail_of_truth(mode, own) or prefix_of(HANDLER)(own):
            return "short"
    return "guessed" if stop == "guessed" else "wrong"


def tail_of_truth(mode, own):
    """Return whether a stack that ends early is the inner end of a true one."""
    outer = {"deep": [["run_deep"] + ["deep_rec"] * k for k in range(60)]}.get(mode)
    chains = outer or [[f for f in c] for c in ([RUN[mode]] if mode in RUN else [])]
    for chain in chains:
        for k in range(len(chain) + 1):
            if MATCH[mode](chain[:k] + own):
                return True
    return MATCH[mode](own)


def main():
    total, wrongs = collections.defaultdict(collections.Counter), collections.Counter()
    guesses = 0
    for line in sys.stdin:
        comm, _, stop, stack = line.rstrip("\n").split(" ", 3)
        mode = comm[2:] if comm.startswith("t_") else ""
        if mode not in MATCH and mode not in FOREIGN_MODES or not stack:
            continue
        verdict = judge(mode, stop, stack.split(";"))
        if verdict is None:
            continue
        total[mode][verdict] += 1
        guesses += mode == "throw" and verdict == "exact" and stop == "guessed"
        if verdict != "exact":
            wrongs[(mode, verdict, stop, stack)] += 1
    worst = sorted(wrongs.items(), key=lambda w: (w[0][1] != "wrong", -w[1]))
    for (mode, verdict, stop, stack), n in worst[:int(sys.argv[1]) if len(sys.argv) > 1 else 6]:
        print(f"  {mode} {verdict} ({stop}) {n}: {stack[:700]}")
    every = collections.Counter()
    for mode in sorted(total):
        every.update(total[mode])
        print(f"{mode:10}", ", ".join(f"{k} {v}" for k, v in total[mode].most_common()))
    n = sum(every.values())
    exact = every["exact"]
    missing = set(os.environ.get("MODES", " ".join(MATCH)).split()) - set(total)
    print(f"{n} samples: {100 * exact / max(n, 1):.3f} % exact;", ", ".join(f"{v} {k}" for k, v in every.items()))
    if missing:
        print("no samples of:", *sorted(missing))
    if guesses:
        print(f"throw: {guesses} of {total['throw']['exact']} exact ones are marked as guessed")
    ok = n > 1000 and exact >= EXACT * n and guesses <= GUESSES_OF_THROW * total["throw"]["exact"]
    return 0 if ok and not every["wrong"] and not missing else 1


sys.exit(main())
