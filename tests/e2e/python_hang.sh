#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A program that looks like Python and hangs who reads its memory (userfaultfd): its reader is killed, or left
# behind if it is a thread, with a message, samples go on, another Python beside it keeps its names, and the session
# ends in time.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: the layout of Python is known for x86-64 only"
cp "$PROGRAMS/fake_python" "$TMP/python3.11"
# begin_fake: start it and another Python; fails if it has ended, or is not ready after 30 s.
begin_fake() {
	: >"$TMP/ready"
	start $as "$TMP/python3.11" >"$TMP/ready"
	fake=$last
	tries=0
	until grep -q ready "$TMP/ready"; do
		kill -0 "$fake" 2>/dev/null && [ $((tries += 1)) -le 300 ] || return 1
		sleep 0.1
	done
	start $as python3 "$HERE/../programs/python_work.py" rec 600 >/dev/null
	work=$last
}
as=
if ! begin_fake; then
	kill -0 "$fake" 2>/dev/null || skip "not permitted: userfaultfd(2)"
	wrong "no fake Python after 30 s"
	finish
fi
# It also ends: a session that waits for the hanging reader is stopped after 100 s.
# LeakSanitizer would wait for the hanging thread.
asan_options=${ASAN_OPTIONS:-}
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
run_until '(any("hangs" in t["message"] for t in ticks) and taken >= 100 and
	any(r["symbol"] == "fib" for r in ticks[-1]["rows"]) and
	any(r["symbol"] == "_PyEval_EvalFrameDefault" and r["comm"] == "python3.11" for r in ticks[-1]["rows"]))' \
	-d 1 -p "$fake,$work" --languages=python --rows=0
[ "$rc" = 0 ] || wrong "exit code $rc: $(head -3 "$TMP/err") $(tail -n 1 "$TMP/out" | cut -c 1-3000)"
# The reader of the rings does not wait for it; a full machine may lose a few.
tail -n 1 "$TMP/out" | python3 -c 'import json, sys
total = json.loads(sys.stdin.read())["account_total"]
sys.exit(total["lost"] > 0.05 * total["taken"])' || wrong "samples are lost: $(tail -n 1 "$TMP/out" | grep -o '"account_total":{[^}]*}')"

export ASAN_OPTIONS="$asan_options"

kill "$fake" "$work"
live() {
	start $as "$PROFTOP" -b -d 0.2 -p "$fake,$work" --languages=python --rows=0 --format=ndjson "$@" >"$TMP/live" 2>&1
}
# within COMMAND...: it succeeds within 20 s.
within() {
	tries=0
	until "$@"; do
		[ $((tries += 1)) -le 200 ] || return 1
		sleep 0.1
	done
}
# end_live: it ends within 20 s, and in builds with AddressSanitizer nothing has leaked.
end_live() {
	gone() { [ ! -e "/proc/$last/exe" ]; }
	within gone || wrong "proftop has not ended"
	wait "$last"
	rc=$?
	[ "$rc" = "$1" ] || wrong "exit code $rc, want $1: $(grep -v '^{' "$TMP/live" | head -n 20)"
}

# A process: none that hangs is left, and none at the end.
begin_fake
live
within grep -q hangs "$TMP/live" || wrong "no reader hangs: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
server=$(pgrep -P "$last" -x proftop-readers)
[ -n "$server" ] || wrong "readers are no processes"
# One that hangs is replaced.
has_reader() { [ -n "$(pgrep -P "$server")" ]; }
within has_reader || wrong "no reader runs"
readers=$(pgrep -P "$server")
# The process is read no more: readers are not replaced again and again, but one may start on another CPU.
sleep 0.5
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	pgrep -P "$server" >>"$TMP/readers"
	sleep 0.1
done
[ "$(sort -u "$TMP/readers" | wc -l)" -le $((2 * $(nproc))) ] || wrong "readers hang on: $(sort -u "$TMP/readers" | tr '\n' ' ')"
within has_reader || wrong "no reader runs after it"
readers=$(pgrep -P "$server")
for reader in $readers; do
	# It waits for samples, or reads; not in handle_userfault().
	awake() { ! grep -q userfault "/proc/$reader/wchan" 2>/dev/null; }
	within awake || wrong "reader $reader hangs, and is not killed"
done
kill -INT "$last"
end_live 130
for reader in $server $readers; do
	gone_too() { [ ! -e "/proc/$reader/exe" ]; }
	within gone_too || wrong "process $reader is left behind"
done

# Readers that are killed again and again are not started for ever; the session goes on.
live
as_server() { server=$(pgrep -P "$last" -x proftop-readers); [ -n "$server" ]; }
kill_all() {
	for reader in $(pgrep -P "$server"); do kill -9 "$reader"; done
	grep -q "readers of interpreters hang or are killed" "$TMP/live"
}
within as_server && within has_reader || wrong "no reader runs"
within kill_all || wrong "no message about readers that are killed: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
# One may have started on another CPU since then, and one a minute is.
none_starts() { kill_all; sleep 1; ! has_reader; }
within none_starts || wrong "there are readers after it"
kill -INT "$last"
end_live 130

# Without their server there is a message.
live
within as_server && within has_reader || wrong "no reader runs"
kill -9 "$server"
within grep -q "cannot start a reader of interpreters: .*functions are not shown" "$TMP/live" || wrong "no message without the server: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
kill -INT "$last"
end_live 130
kill "$fake" "$work"

# A thread, of a user without rights: it frees itself when the read returns. Each one that runs has a poll descriptor,
# and no other is left.
as="setpriv --reuid=65534 --regid=65534 --clear-groups"
chmod 755 "$TMP" "$TMP/python3.11"
readers() { cat "/proc/$last/task/"*/comm 2>/dev/null | grep -c '^read[0-9]'; }
left() { [ "$(ls -l "/proc/$last/fd" | grep -c eventpoll)" -gt "$(readers)" ]; }
fewer() { [ "$(readers)" -lt "$hanging" ]; }
closed() { ! left; }
if command -v setpriv >/dev/null && begin_fake && live && within grep -q hangs "$TMP/live"; then
	hanging=$(readers)
	kill -9 "$fake"
	within fewer || wrong "a reader of a process that has ended goes on: $hanging"
	within closed || wrong "descriptors of a reader are left: $(readers) readers, $(ls -l "/proc/$last/fd" | grep -c eventpoll) descriptors"
	kill -INT "$last"
	end_live 130
else
	echo "not tried: a reader of a user without rights: $(head -n 1 "$TMP/live" | cut -c 1-200)"
	kill "$last" 2>/dev/null
fi

# A session may end while its reader hangs.
as=
begin_fake
live -n 10
within grep -q hangs "$TMP/live" || wrong "no reader hangs: $(tail -n 1 "$TMP/live" | cut -c 1-300)"
all_ticks() { [ "$(grep -c '^{' "$TMP/live")" = 10 ]; }
within all_ticks || wrong "$(grep -c '^{' "$TMP/live") ticks, want 10"
sleep 1
kill -9 "$fake"
end_live 0
finish
