#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --stacks: the whole stacks of threads that block in known chains of functions, below ones that need all
# registers; of a Python program with its functions; the threads notice nothing; errors.
. "$(dirname "$0")/lib"

"$PROGRAMS/blocked" 200 >"$TMP/blocked" &
pid=$!
pids="$pids $pid"
until grep -q ready "$TMP/blocked"; do sleep 0.05; done
"$PROFTOP" --stacks "$pid" >"$TMP/text" 2>"$TMP/err"
[ $? = 3 ] && [ "$(id -u)" != 0 ] && skip "not permitted: $(cat "$TMP/err")"
# Without CPU time a thread does not stop soon enough, and is called cut, or a screen is late: try again.
again() {
	tries=0
	until "$@" >"$TMP/tried" 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 6 ] || { cat "$TMP/tried"; return 1; }
	done
	cat "$TMP/tried"
}
chains() {
	for i in 1 2 3; do
		"$PROFTOP" --stacks "$pid" --format=ndjson >"$TMP/out$i" 2>"$TMP/err"
		code=$?
		[ $code = 0 ] || { echo "exit $code: $(cat "$TMP/err")"; return 1; }
	done
	python3 "$HERE/task_stacks.py" chains "$TMP/out1" "$TMP/out2" "$TMP/out3"
}
again chains || wrong 'not the stacks of the program'
"$PROFTOP" --stacks "$pid" --no-stop --format=ndjson >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/task_stacks.py" cut "$TMP/out" || wrong 'a thread was stopped, or its stack is not cut'
"$PROFTOP" --stacks "$pid" >"$TMP/text" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
grep -q "^Thread [0-9]* holder (asleep" "$TMP/text" || wrong 'no line for a thread'
grep -q "^#[0-9]* *hold_mutex  blocked" "$TMP/text" || wrong 'no line for a frame'
# On the screen: the mutex by its variable, its owner by name with the function of the program.
"$PROFTOP" --time=all -p "$pid" -d 0.5 --size 80x24 --script '<tick><tick><tick>$<tick><tick>' >"$TMP/text" 2>"$TMP/err" ||
	wrong "exit $?: $(cat "$TMP/err")"
for what in 'mutex blocked_mutex (blocked)' 'held by holder' 'hold_mutex' 'waits: mutex'; do
	grep -q "$what" "$TMP/text" || wrong "no '$what' on the screen: $(cat "$TMP/text")"
done
# The same of a process: it is asked for first.
box() {
	"$PROFTOP" -p "$pid" -d 0.5 --size 80x24 --script '<tick><tick><^W><Down><Enter><tick><tick><tick>' >"$TMP/text" 2>"$TMP/err" &&
		grep -q 'Stacks of the threads now' "$TMP/text" && grep -q 'usleep' "$TMP/text"
}
again box || wrong "no box with stacks: $(cat "$TMP/text" "$TMP/err")"
kill "$pid"
wait "$pid"
grep -q '^disturbed 0$' "$TMP/blocked" || wrong "calls of the program were disturbed: $(cat "$TMP/blocked")"

cat >"$TMP/server.py" <<'EOF'
import queue, socket, threading
def take(q):
    return q.get()
def accept_one(s):
    return s.accept()
def serve():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    print("ready", flush=True)
    accept_one(s)
threading.Thread(target=take, args=(queue.Queue(),), daemon=True).start()
serve()
EOF
if [ -x /usr/bin/python3 ]; then
	/usr/bin/python3 "$TMP/server.py" >"$TMP/server" &
	pid=$!
	pids="$pids $pid"
	until grep -q ready "$TMP/server"; do sleep 0.05; done
	sleep 0.2
	"$PROFTOP" --stacks "$pid" --format=ndjson >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
	python3 "$HERE/task_stacks.py" python "$TMP/out" || wrong 'not the functions of a Python program'
	kill "$pid"
fi

# Of threads that run and sleep in turns: the state is that of the moment of the stack.
LASTS=20 THREADS=8 WORK=300 SLEEP=1000 "$PROGRAMS/pieces" >/dev/null &
pid=$!
pids="$pids $pid"
for i in 1 2; do "$PROFTOP" --stacks "$pid" --no-stop; done >"$TMP/text" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
! grep -q "(asleep.*it runs" "$TMP/text" || wrong 'a thread that sleeps and runs'
! grep -A 1 "(running)" "$TMP/text" | grep -q '^#' || wrong 'the stack of a sleep is that of a running thread'
kill "$pid"

# Of a program that a debugger has: without a stop. As without a stack, it is not an error.
sleep 1000 &
pid=$!
pids="$pids $pid"
kill -STOP "$pid"
until grep -q '^State:.T' "/proc/$pid/status"; do sleep 0.01; done
"$PROFTOP" --stacks "$pid" >"$TMP/text" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
grep -q "(stopped" "$TMP/text" || wrong 'the state of a stopped program'
grep -q '^State:.T' "/proc/$pid/status" || wrong 'a stopped program runs'
kill -KILL "$pid"

refused() {
	code=$1 words=$2
	shift 2
	"$PROFTOP" "$@" >"$TMP/text" 2>"$TMP/err"
	got=$?
	[ "$got" = "$code" ] || wrong "$*: exit $got, not $code: $(cat "$TMP/err")"
	grep -q "$words" "$TMP/err" || wrong "$*: no '$words' in $(cat "$TMP/err")"
}
refused 4 'no process' --stacks 4194304
refused 2 'invalid process id' --stacks x
refused 2 'is a target' --stacks 1 -p 1
refused 2 'needs --stacks' --no-stop
python3 -c 'import os, time
pid = os.fork()
if not pid: os._exit(0)
print(pid, flush=True)
time.sleep(1000)' >"$TMP/zombie" &
pids="$pids $!"
until [ -s "$TMP/zombie" ]; do sleep 0.05; done
until grep -q '^State:.Z' "/proc/$(cat "$TMP/zombie")/status"; do sleep 0.01; done
refused 4 'zombie' --stacks "$(cat "$TMP/zombie")"
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1; then
	cp "$PROFTOP" "$TMP/proftop" && chmod 755 "$TMP" "$TMP/proftop"
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$TMP/proftop" --stacks $$ >"$TMP/text" 2>"$TMP/err"
	[ $? = 3 ] || wrong "another user's process: $(cat "$TMP/err")"
	grep -q 'not permitted' "$TMP/err" || wrong "no reason: $(cat "$TMP/err")"
fi
finish
