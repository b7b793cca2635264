#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows derived from instructions, against the unwind tables of this machine's libraries, which the
# derivation does not get; at each instruction. `make truth-tableless` does it for more files.
# Then frames of 40 KiB that are never touched, which end the kernel's copies of a stack: its rest
# is read, and each stack that is called complete is one that the program has; also of a thread that
# works on another stack than its own, as OCaml 5 does.
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

# And at the instructions that programs execute, of which single steps know the frame.
if [ "$(uname -m)" = x86_64 ]; then
	"$B/tests/tools/steptruth" -n 20000 -s 50 "$PROGRAMS/small_asm" | tee "$TMP/steps" || wrong "single steps of small_asm"
	grep -q 'small_asm: [0-9]\{4,\} without tables, 100.00 %.* 0 wrong' "$TMP/steps" || wrong "rows of small_asm"
	STEPS=20000 WORDS="gmp musl" "$HERE/../truth_steps" || wrong "rows of libraries"
fi

[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || finish
need_perf
# A busy machine starves the reader, which ends stacks early: never wrong, and all again.
judge=1
for try in 1 2 3 4 5 6 7 8; do
	"$PROGRAMS/deep_frame" 2 >"$TMP/truth.$try" &
	program=$!
	pids="$pids $program"
	sleep 0.1
	run -b -n 1 -d 1 -F 499 -e cpu-clock -p "$program" --rows=0 --format=ndjson --export="$TMP/folded.$try" --export-format=folded
	[ "$rc" = 0 ] || wrong "exit $rc: $(cat "$TMP/err")"
	mv "$TMP/out" "$TMP/out.$try"
	wait "$program"
	python3 - "$TMP" "$try" <<'END'
import json, re, sys

folder, tries = sys.argv[1], int(sys.argv[2])
known = re.compile(r"deep_frame;(_start;([^;]*libc[^;]*;)*main(;runs(_\[i\])?)?|[^;]*clone3?[^;]*;start_thread(;work_elsewhere(_\[i\])?(;on_heap)?)?);"
                   r"work(_\[i\])?(;down){6};"
                   r"(?P<leaf>six|three|one);deep_frame(;[^;]*_\[k\])*$")
weight, truth, wrong, all_taken, few = {}, {}, 0, 0, True
for i in range(1, tries + 1):
    a = json.loads(open(f"{folder}/out.{i}").readline())["account"]
    all_taken += a["taken"]
    few &= a["taken"] < 30 or a["complete"] + a["guessed"] < 0.85 * a["taken"] - 10
    words = open(f"{folder}/truth.{i}").read().split()
    ns = dict(zip(words[::2], map(int, words[1::2])))
    seen = dict.fromkeys(ns, 0)
    for line in open(f"{folder}/folded.{i}"):
        stack, _, count = line.rstrip().rpartition(" ")
        if ";deep_frame" not in stack or not re.match("deep_frame;([^;]*clone|_start)", stack):
            continue
        is_known = known.match(stack)
        if is_known:
            seen[is_known["leaf"]] += int(count) * 499 / 1e9
        else:
            print("no stack of the program:", line, end="")
            wrong += 1
    for k in ns:
        weight[k] = weight.get(k, 0) + seen[k]
        # What the runs have together, each with the samples that it got.
        truth[k] = truth.get(k, 0) + sum(seen.values()) * ns[k] / sum(ns.values())
print({k: a[k] for k in ("taken", "complete", "guessed", "truncated", "broken")})
total = sum(weight.values())
# Three points, or four standard errors. The first samples, until the reader runs, are truncated.
for k in truth:
    share = truth[k] / max(total, 1)
    most = max(0.03, 4 * (share * (1 - share) / max(total, 1)) ** 0.5)
    print(f"{k}: {weight[k] / max(total, 1):.3f} of {share:.3f}")
    wrong += abs(weight[k] / max(total, 1) - share) > most
sys.exit(1 if wrong else 2 if few or all_taken < 100 else 0)
END
	judge=$?
	[ "$judge" = 2 ] || break
done
[ "$judge" = 0 ] || wrong "after $try runs: $judge"

# A recording has what was read: it is replayed without the process.
start "$PROGRAMS/deep_frame" 60
run -b -n 1 -d 0.5 -F 499 -e cpu-clock -p "$last" --rows=0 --format=ndjson --record="$TMP/recording"
kill "$last"
mv "$TMP/out" "$TMP/live"
run -b --replay="$TMP/recording" --rows=0 --format=ndjson
python3 - "$TMP/out" "$TMP/live" <<'END' || wrong "replay: $(head -c 400 "$TMP/err")"
import json, sys

accounts = [[json.loads(l)["account"] for l in open(f)] for f in sys.argv[1:]]
good, live = (sum(a["complete"] + a["guessed"] for a in ticks) for ticks in accounts)
print(f"replay: {good} complete or guessed, live {live}")
sys.exit(good < 0.8 * live - 3)
END

# Little code without tables is derived as well, and its module says so.
start "$PROGRAMS/small_asm"
run -b -n 4 -d 0.5 -F 499 -e cpu-clock -p "$last" --rows=0 --format=ndjson
python3 -c 'import json, sys
def good(tick):
    a, modules = tick["account"], {m["name"]: m for m in tick["modules"]}
    small = modules.get("small_asm", {"tabled": 0})
    return (2 * a["broken"] <= a["taken"] and 2 <= small["tabled"] <= 8 and small["derived"] and
            modules["libc.so.6"]["tabled"] >= 1000)
sys.exit(not any(good(json.loads(line)) for line in sys.stdin))' <"$TMP/out" || wrong "small_asm: $(tail -n 1 "$TMP/out" | head -c 400)"
finish
