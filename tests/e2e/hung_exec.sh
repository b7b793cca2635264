#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that hangs in an exec (its file system does not answer a flush), and with it each reader of its stat, wchan
# and maps: ticks come, other tasks that sleep have the functions of their wait, it is refused as a target, and a
# recording reports that it has no mappings of it.
# Changes limits of the kernel: readers of all processes hang as long, those of other tests as well.
. "$(dirname "$0")/lib"
need_perf
# A sanitizer looks for leaks with all threads stopped; one that hangs in the kernel does not stop.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
[ -c /dev/fuse ] || skip "not on this machine: /dev/fuse"

mkdir "$TMP/fs"
mkfifo "$TMP/words"
exec 9<>"$TMP/words"
echo x >"$TMP/file"
"$PROGRAMS/hangfs" "$TMP/fs" "$TMP/file" 1 <"$TMP/words" >"$TMP/ready" &
fs=$!
pids=$fs
trap 'kill -KILL "$fs" 2>/dev/null; umount -l "$TMP/fs" 2>/dev/null; cleanup' EXIT
until grep -q ready "$TMP/ready"; do
	[ -e "/proc/$fs/exe" ] || skip "not permitted: a FUSE mount"
	sleep 0.01
done
start sleep 1000
sleeper=$last
until grep -q sleep "/proc/$sleeper/wchan"; do sleep 0.01; done
echo flush >&9
start python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("opened", flush=True)
os.execv("/bin/true", ["true"])' "$TMP/fs/f0" >"$TMP/opened"
hung=$last
until grep -q opened "$TMP/opened" || [ ! -e "/proc/$hung/comm" ]; do sleep 0.01; done
while timeout 1 cat "/proc/$hung/syscall" >/dev/null 2>&1; do sleep 0.01; done
[ -e "/proc/$hung/comm" ] || wrong 'the process did not hang in its exec'

began=$(date +%s)
run_until 'len(ticks) > 4 and any("nanosleep" in r["symbol"] and r["comm"] == "sleep" for r in ticks[-1]["rows"] if r["event"] == "waits")' \
	--time=all -d 0.2 --rows=0
[ "$rc" = 0 ] || wrong "exit $rc: $(head -n 3 "$TMP/err")"
tail -n 1 "$TMP/out" | grep -q nanosleep || wrong 'no functions of the wait of a task beside one that hangs in an exec'
run_until 'len(ticks) > 1' -d 0.2 --name=sleep --time=wait
[ "$rc" = 0 ] || wrong "--name: exit $rc: $(head -n 3 "$TMP/err")"
expect 0 'no symbols: reading mappings hangs' -b -d 0.2 -n 2 -p "$sleeper" --record "$TMP/data"
expect 1 "cannot sample pid $hung: it hangs in an exec" -b -d 0.2 -n 1 -p "$hung"
echo "$(($(date +%s) - began)) s"
finish
