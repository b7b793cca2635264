#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows derived from instructions, against the unwind tables of this machine's libraries, which the
# derivation does not get; at each instruction. `make truth-tableless` does it for more files.
# Then frames of 40 KiB that are never touched, which end the kernel's copies of a stack: its rest
# is read, and each stack that is called complete is one that the program has.
B=${B:-build/release}
. "$(dirname "$0")/lib"
dir=$(dirname "$(ldd "$B/proftop" | awk '/libm\.so/ {print $3}')")

files=
for lib in libm.so.6 libgcc_s.so.1; do
	[ -e "$dir/$lib" ] && files="$files $dir/$lib"
done
[ -n "$files" ] || skip "not on this machine: libm.so.6"
# shellcheck disable=SC2086
"$B/tests/tools/derivetruth" $files || exit 1

[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || finish
need_perf
"$PROGRAMS/deep_frame" 2 >"$TMP/truth" &
program=$!
pids="$pids $program"
sleep 0.1
run -b -n 1 -d 1 -F 499 -e cpu-clock -p "$program" --rows=0 --format=ndjson --export="$TMP/folded" --export-format=folded
[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
wait "$program"
python3 - "$TMP" <<'END' || bad=1
import json, re, sys

folder = sys.argv[1]
a = json.loads(open(folder + "/out").readline())["account"]
print({k: a[k] for k in ("taken", "complete", "guessed", "truncated", "broken")})
words = open(folder + "/truth").read().split()
truth = {k: int(ns) / sum(map(int, words[1::2])) for k, ns in zip(words[::2], words[1::2])}
known = re.compile(r"deep_frame;(_start;([^;]*libc[^;]*;)*main|[^;]*clone3?[^;]*;start_thread);work(;down){6};"
                   r"(six|three|one);deep_frame(;[^;]*_\[k\])*$")
weight, wrong = dict.fromkeys(truth, 0), 0
for line in open(folder + "/folded"):
    stack, _, count = line.rstrip().rpartition(" ")
    if ";deep_frame" not in stack or not re.match("deep_frame;([^;]*clone|_start)", stack):
        continue
    is_known = known.match(stack)
    if is_known:
        weight[is_known[4]] += int(count)
    else:
        print("no stack of the program:", line, end="")
        wrong += 1
total = sum(weight.values())
# Three points, or four standard errors. The first samples, until the reader runs, are truncated.
for k, share in truth.items():
    most = max(0.03, 4 * (share * (1 - share) / max(a["taken"], 1)) ** 0.5)
    print(f"{k}: {weight[k] / max(total, 1):.3f} of {share:.3f}")
    wrong += abs(weight[k] / max(total, 1) - share) > most
sys.exit(bool(wrong or not total or a["complete"] + a["guessed"] < 0.85 * a["taken"] - 10))
END
finish
