#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Python: functions by name between native frames; each chain that is called certain is the one that the program itself
# had at that very sample. PYTHONS="/path/python3.8 ..." tries others than the one of PATH; SECONDS_EACH=2. GATE=1,
# RIGHTS=none: see judge_truth in lib; "make truth-languages" tries both.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: the layout of Python is known for x86-64 only"
WORK=$HERE/../programs/python_work.py
SECONDS_EACH=${SECONDS_EACH:-2}
certain_all=0
certain=0

# names PYTHON: a session as users have it.
names() {
	start "$1" "$WORK" all 90 >/dev/null
	sleep 0.5
	rm -rf "$TMP/keep" && mkdir "$TMP/keep"
	run_until 'len(ticks) >= 3 and {"fib", "leaf", "main"} <= {r["symbol"] for r in ticks[-1]["rows"]}' \
		-d 1 -p "$last" --languages=python --rows=0 --keep="$TMP/keep"
	kill "$last"
	tail -n 1 "$TMP/out" | python3 -c '
import json, sys
tick = json.loads(sys.stdin.read())
# The interpreter has a main as well.
of_script = lambda r: r["module"] == "python_work.py"
lang, rows = tick["lang"], {r["symbol"]: r for r in sorted(tick["rows"], key=of_script)}
bad = []
if lang["none"] != sum(lang["none_by"].values()):
    bad.append(f"the reasons do not add up: {lang}")
if lang["certain"] + lang["guessed"] < 0.9 * (lang["certain"] + lang["guessed"] + lang["none"]):
    bad.append(f"too few samples with frames: {lang}")
for name in "fib", "leaf", "main":
    row = rows.get(name)
    if not row or row["module"] != "python_work.py" or row.get("lang") != "python":
        bad.append(f"no row of {name}: {row}")
if rows.get("main", {}).get("total_pct", 0) < 80:
    bad.append(f"main has too few: {rows.get(chr(109) + chr(97) + chr(105) + chr(110))}")
print("\n".join(bad))
sys.exit(bool(bad))' || bad=1
	# What is kept counts the interpreter's work for the functions also.
	"$PROFTOP" --open="$TMP/keep" -b --rows=0 --format=ndjson | python3 -c '
import json, sys
rows = json.loads(sys.stdin.readline())["rows"]
own = sum(r["self_pct"] for r in rows if r.get("lang") == "python")
sys.exit(f"kept functions have {own} % of their own" if own < 50 else 0)' || bad=1
	"$PROFTOP" --open="$TMP/keep" --script '<tick>/fib<Enter>a<tick><tick>' --size 100x20 >"$TMP/screen" 2>&1
	grep -q 'names were kept, no lines' "$TMP/screen" || wrong "lines of a kept function: $(cat "$TMP/screen")"
}

# forked PYTHON: a process forked by C code, of which Python has not noted the thread's id.
forked() {
	cat >"$TMP/forked.py" <<'END'
import ctypes
import os

libc = ctypes.PyDLL(None)
child = libc.fork()
if child:
    print(child, flush=True)
    os.waitpid(child, 0)
libc.prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


def forked_leaf():
    return sum(range(1000))


while not child:
    forked_leaf()
END
	start "$1" "$TMP/forked.py" >"$TMP/child"
	i=0
	until [ -s "$TMP/child" ] || [ $((i = i + 1)) = 100 ]; do sleep 0.1; done
	run_until 'len(ticks) >= 3' -d 1 -p "$(cat "$TMP/child")" --languages=python --rows=0
	kill "$last"
	tail -n 1 "$TMP/out" | grep -q '"symbol":"forked_leaf"' || wrong "no row of a forked process: $(tail -n 1 "$TMP/out")"
}

# brief PYTHON: threads with a few samples each have frames at the first one.
brief() {
	cat >"$TMP/brief.py" <<'END'
import threading
import time


def brief():
    end = time.thread_time() + 0.04
    while time.thread_time() < end:
        pass


while True:
    thread = threading.Thread(target=brief)
    thread.start()
    thread.join()
END
	start "$1" "$TMP/brief.py"
	run_until 'taken >= 200' -d 1 -F 97 -p "$last" --languages=python --rows=0
	kill "$last"
	python3 -c '
import json, sys
lang = [json.loads(line)["lang"] for line in sys.stdin][1:]
unknown = sum(l["none_by"].get("unknown_thread", 0) for l in lang)
nr = sum(l["certain"] + l["guessed"] + l["none"] for l in lang)
print(f"brief threads: {unknown} of {nr} samples are of unknown ones")
sys.exit(nr < 50 or unknown > nr / 10)' <"$TMP/out" || wrong "brief threads have no frames"
}

# truth PYTHON KIND: adds the certain samples up.
truth() {
	include=$("$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
	[ -f "$include/internal/pycore_interp.h" ] || { echo "skipped: not installed: headers of $1"; return; }
	cc -w -O2 -DNDEBUG -fPIC -shared -I"$HERE/../.." -I"$include" -I"$include/internal" -o "$TMP/truth.so" \
		"$HERE/python_truth.c" || { wrong "the truth for $1 does not build"; return; }
	truncate -s 100M "$TMP/truth"
	start "$1" "$WORK" "$2" $((SECONDS_EACH + 120)) "$TMP/truth.so" "$TMP/truth" >"$TMP/ready"
	i=0
	until grep -q ready "$TMP/ready" || [ $((i = i + 1)) = 600 ]; do sleep 0.1; done
	share=$(least 95 85)
	[ "$2" = gen ] && share=$(least 70 60)
	judge_truth "$last" "$TMP/truth" "$SECONDS_EACH" "$1 $2" "$share"
	kill "$last" 2>/dev/null
	rm -f "$TMP/truth"
	certain_all=$((certain_all + certain))
}

for python in ${PYTHONS:-$(command -v python3)}; do
	names "$python"
	forked "$python"
	brief "$python"
	for kind in all threads gen; do
		truth "$python" $kind
	done
	if "$python" -c "import greenlet" 2>/dev/null; then
		truth "$python" greenlets
	else
		echo "skipped: not installed: greenlet of $python"
	fi
done
[ $bad = 1 ] || [ $certain_all = 0 ] || [ $certain_all -ge 5000 ] || wrong "only $certain_all certain samples: too few to judge"
finish
