#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each set of capabilities: the samples, the message, the text and exit code of --check.
. "$(dirname "$0")/lib"
need_perf
need setpriv
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] || skip "not on this machine: kernel.perf_event_paranoid 2"

# A copy of the program that every user can read.
chmod 755 "$TMP"
cp "$PROFTOP" "$TMP/proftop" && chmod 755 "$TMP/proftop"
start "$PROGRAMS/spin" 1

# as NAME CAPS ARGS...: as an unprivileged user with just these capabilities.
as() {
	caps=$1
	shift
	case $caps in none) add= ;; *) add=",$(echo "$caps" | sed 's/[a-z_][a-z_]*/+&/g; s/ /,/g')" ;; esac
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set "-all$add" --inh-caps "-all$add" \
		--ambient-caps "-all$add" "$TMP/proftop" "$@" >"$TMP/out" 2>"$TMP/err"
	rc=$?
}

says() {
	grep -q -- "$1" "$TMP/out" "$TMP/err" || wrong "$caps: no '$1' in: $(cat "$TMP/out" "$TMP/err")"
}

as perfmon -b -n 1 -d 0.5 -e cpu-clock
[ "$rc" = 0 ] || wrong "perfmon: exit $rc"
says ' system '
grep -q 'not permitted' "$TMP/out" && wrong "perfmon: told of what it may do"
as perfmon --check
says '^ok *sampling *every process, user and kernel code'
says 'without the rest no other users'
[ "$rc" = 1 ] || [ "$rc" = 0 ] || wrong "perfmon: --check exits with $rc"

# Its own threads are no rows, also when they are there before the events.
as none -d 0.3 --size=100x30 --script='2^<tick>^<tick><tick>'
grep -q ' proftop  *[0-9.]' "$TMP/out" && wrong "none: proftop is a row of its own: $(cat "$TMP/out")"

as none -b -n 1 -d 0.5 -e cpu-clock -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
[ "$rc" = 0 ] || wrong "none: exit $rc: $(cat "$TMP/err")"
says 'user code only'
as none -b -n 1 -d 0.5 -e cpu-clock -p "$last"
[ "$rc" = 3 ] || wrong "none, a process of root: exit $rc"
says 'it belongs to root'
says 'least power first'
# Own waits by kind, with user stacks: sleeping threads are read from outside.
cp "$PROGRAMS/wait_truth" "$TMP/wait_truth" && chmod 755 "$TMP/wait_truth" && mkdir -m 777 "$TMP/waits"
as none --time=wait -b -n 1 -d 5 --rows=100 -- "$TMP/wait_truth" 1.5 "$TMP/waits/truth" "$TMP/waits/synced"
[ "$rc" = 0 ] || wrong "none, waits: exit $rc: $(cat "$TMP/err")"
for symbol in '\[lock\]' '\[sleep\]' '\[run queue\]' take_turn sleep_and_feed; do
	says " $symbol "
done
# The same by a key.
as none -e cpu-clock --size 100x30 --script '^<tick><tick>2<tick>' -- \
	"$TMP/wait_truth" 3 "$TMP/waits/truth" "$TMP/waits/synced"
[ "$rc" = 0 ] || wrong "none, ^: exit $rc: $(cat "$TMP/err")"
says 'WAIT/s'
says 'user code only'
grep -q 'cannot sample' "$TMP/out" && wrong "none, ^: $(cat "$TMP/out")"
as none --check
says '^degraded *sampling *your own processes, user code only'
says 'SETCAP=1'
[ "$rc" = 1 ] || wrong "none: --check exits with $rc"

# Each set, least power first: the permitted targets, and the default one.
table() {
	for caps in none perfmon "perfmon sys_ptrace" "perfmon sys_ptrace syslog ipc_lock sys_nice" root; do
		if [ "$caps" = root ]; then
			"$PROFTOP" --check >"$TMP/out"
			"$PROFTOP" -b -n 1 -d 0.2 -e cpu-clock >"$TMP/shown" 2>&1
		else
			as "$caps" -b -n 1 -d 0.2 -e cpu-clock
			cat "$TMP/err" "$TMP/out" >"$TMP/shown"
			as "$caps" --check
		fi
		printf '%s: %s; has %s; shows %s\n' "$caps" "$(sed -n 's/^[a-zA-Z]* *sampling *//p' "$TMP/out")" \
			"$(sed -n 's/^[a-z]* *capabilities *//p' "$TMP/out")" \
			"$(sed -n '1s/^proftop [^ ]* *[^ ]* *//p' "$TMP/shown")"
	done
}
table >"$TMP/table"
cat "$TMP/table"
grep -q '^none: .*user code only' "$TMP/table" || wrong "the table for none"
[ "$(grep -c 'every process, user and kernel code' "$TMP/table")" = 4 ] || wrong "the table for the others"

# Unused capabilities are given up, by every thread; a command that root starts has all of root's
# again. CAPS: PERFMON 38, BPF 39, CHECKPOINT_RESTORE 40; SYS_PTRACE 19, SYS_RAWIO 17, SYS_ADMIN 21,
# SYS_NICE 23, IPC_LOCK 14, KILL 5, DAC 1 2; SYSLOG 34
most=$(((1 << 38) | (1 << 39) | (1 << 40) | (1 << 34) | (1 << 23) | (1 << 21) | (1 << 19) | (1 << 17) | (1 << 14) | (1 << 5) | 6))
held() {
	sed -n "s/^Cap$2:[[:space:]]*//p" "/proc/$1/status"
}
# threads PID SET...: each of its threads has no more than that.
threads() {
	nr=0 powers=0
	for task in /proc/"$1"/task/*; do
		nr=$((nr + 1))
		for set in $2; do
			has=$(held "$1/task/${task##*/}" "$set" 2>/dev/null)
			[ -n "$has" ] || continue # it has ended
			has=$((0x$has))
			[ $((has & ~most)) = 0 ] || wrong "a thread has the capabilities $has of set $set"
			# Only threads that open events or read processes keep the powers for that.
			case ${task##*/}:$(cat "$task/comm" 2>/dev/null) in
			"$1":*) may=$((1 << 23 | 1 << 19 | 1 << 5 | 6)) ;;
			*:cpu*) may=$((1 << 23)) ;;
			# Files, as root.
			*:push | *:keep) may=6 ;;
			*) may=$most && powers=$((powers | has)) ;;
			esac
			[ $((has & ~may)) = 0 ] || wrong "thread $(cat "$task/comm") has the capabilities $has of set $set"
		done
	done
	[ "$nr" -ge 3 ] || wrong "only $nr threads"
	[ $((powers >> 38 & 1)) = 1 ] || wrong "no thread has CAP_PERFMON"
}
# ready FILE: the first tick was printed to it.
ready() {
	i=0
	while [ "$(grep -c . "$1")" -lt 2 ] && [ $((i += 1)) -lt 100 ]; do sleep 0.1; done
}
# await PID NAME SET WANT: its thread of that name has exactly these capabilities.
await() {
	i=0 has=
	while [ "$has" != "$4" ] && [ $((i += 1)) -lt 300 ]; do
		for task in /proc/"$1"/task/*; do
			[ "$(cat "$task/comm" 2>/dev/null)" != "$2" ] || has=$(held "$1/task/${task##*/}" "$3")
		done
		[ "$has" = "$4" ] || sleep 0.1
	done
	[ "$has" = "$4" ] || wrong "thread $2 of $1 has the capabilities '$has' of set $3, want $4"
}
mkdir "$TMP/keep"
push="--push http://127.0.0.1:1/ingest"
# It ends once it has tried for a while.
timeout -s KILL 3 "$PROFTOP" -b -n 1 -d 0.2 $push >"$TMP/out" 2>"$TMP/err"
grep -q libcurl "$TMP/err" && push=
start "$PROFTOP" -b -n 1000 -d 0.2 -e cpu-clock --keep "$TMP/keep" $push >"$TMP/system" 2>&1
ready "$TMP/system"
threads "$last" "Eff Prm"
await "$last" keep Prm 0000000000000006
[ -z "$push" ] || await "$last" push Prm 0000000000000006
# The recording of --baseline is read as by a replay.
mkfifo -m 644 "$TMP/baseline"
exec 7<>"$TMP/baseline"
start "$PROFTOP" -e cpu-clock --baseline "$TMP/baseline" --script '<tick>' >/dev/null 2>&1
await "$last" baseline Prm 0000000400020006
start "$PROFTOP" -b -n 100 -d 0.2 -e cpu-clock -- sleep 20 >"$TMP/command" 2>&1
ready "$TMP/command"
threads "$last" Eff
child=$(pgrep -P "$last" -x sleep)
[ -n "$child" ] && [ "$(held "$child" Eff)" = "$(held self Eff)" ] || wrong "the command '$child' has less than root"

[ -z "$child" ] || kill "$child"

# make install SETCAP=1 GROUP=: for the members of a group only.
if command -v setcap >/dev/null && getent group games >/dev/null; then
	cp "$PROFTOP" "$TMP/games" && chgrp games "$TMP/games" && chmod 750 "$TMP/games"
	caps=$(sed -n 's/^CAPS := //p' "$HERE/../../Makefile")
	if setcap "$caps=ep" "$TMP/games" 2>/dev/null; then
		# By a shell: setpriv itself still has root's power to run unreadable files.
		nobody="setpriv --reuid 65534 --regid 65534"
		$nobody --groups "$(getent group games | cut -d: -f3)" sh -c '"$0" -b -n 1 -d 0.3 -e cpu-clock' "$TMP/games" \
			>"$TMP/out" 2>"$TMP/err" || wrong "a member: $(cat "$TMP/err")"
		grep -q ' system ' "$TMP/out" || wrong "a member does not see the system: $(cat "$TMP/out")"
		# A replay parses the caller's files: without the power over other processes.
		mkfifo "$TMP/data"
		chmod 644 "$TMP/data"
		exec 8<>"$TMP/data"
		start $nobody --groups "$(getent group games | cut -d: -f3)" \
			sh -c 'exec "$0" --replay - -b <"$1"' "$TMP/games" "$TMP/data" >/dev/null 2>&1
		i=0
		until [ "$(held "$last" Prm)" = 0000000400000000 ]; do
			[ $((i += 1)) -lt 300 ] || { wrong "a replay holds $(held "$last" Prm)"; break; }
			sleep 0.1
		done
		# So does the session that reads the baseline, and neither of these has any.
		start $nobody --groups "$(getent group games | cut -d: -f3)" \
			sh -c 'exec "$0" -e cpu-clock --baseline "$1" --script "<tick>"' "$TMP/games" "$TMP/baseline" >/dev/null 2>&1
		await "$last" baseline Prm 0000000400000000
		# Nor is a folder of its environment used: settings, debug files (without capabilities: it is).
		mkdir -p "$TMP/xdg/proftop" && echo 'delay = 7' >"$TMP/xdg/proftop/config"
		$nobody --groups "$(getent group games | cut -d: -f3)" sh -c 'HOME=/nowhere XDG_CONFIG_DIRS="$1" "$0" --print-config' \
			"$TMP/games" "$TMP/xdg" >"$TMP/out" 2>&1
		grep -q '^delay = 1$' "$TMP/out" || wrong "settings of \$XDG_CONFIG_DIRS: $(grep delay "$TMP/out")"
		if command -v cc >/dev/null && command -v objcopy >/dev/null && command -v readelf >/dev/null; then
			cc -O2 -pthread -Wl,--build-id -o "$TMP/bare" "$HERE/../programs/spin.c"
			id=$(readelf -n "$TMP/bare" | sed -n 's/.*Build ID: //p')
			mkdir -p "$TMP/cache/$id" && objcopy --only-keep-debug "$TMP/bare" "$TMP/cache/$id/debuginfo"
			strip "$TMP/bare"
			start $nobody --clear-groups "$TMP/bare" 1
			bare=$last
			export DEBUGINFOD_CACHE_PATH="$TMP/cache"
			# The first samples may be of before the names.
			for seconds in 1 2 4 8; do
				as none -b -n 2 -d "$seconds" -e cpu-clock -p "$bare"
				! grep -q ' burn ' "$TMP/out" || break
			done
			says ' burn '
			$nobody --groups "$(getent group games | cut -d: -f3)" \
				sh -c '"$0" -b -n 2 -d "$2" -e cpu-clock -p "$1"' "$TMP/games" "$bare" "$seconds" >"$TMP/out" 2>&1
			grep -q ' bare' "$TMP/out" || wrong "no sample of the program: $(cat "$TMP/out")"
			grep -q ' burn ' "$TMP/out" && wrong "debug files of \$DEBUGINFOD_CACHE_PATH: $(cat "$TMP/out")"
			unset DEBUGINFOD_CACHE_PATH
		fi
		mkdir "$TMP/theirs" && chown 65534 "$TMP/theirs"
		start $nobody --groups "$(getent group games | cut -d: -f3)" sh -c 'exec "$0" -b -n 1000 -d 0.2 --keep "$@"' \
			"$TMP/games" "$TMP/theirs" $push >/dev/null 2>&1
		await "$last" keep Prm 0000000000000000
		[ -z "$push" ] || await "$last" push Prm 0000000000000000
		$nobody --clear-groups sh -c '"$0" --version' "$TMP/games" >/dev/null 2>&1 &&
			wrong "it runs for those outside of the group"
	fi
fi

libc=$(sed -n 's|.* \(/.*/libc[.-].*so.*\)|\1|p' /proc/self/maps | head -n 1)
as perfmon -b -n 1 -d 0.2 -e "uprobe:$libc:malloc"
[ "$rc" = 3 ] || wrong "a probe without CAP_SYS_ADMIN: exit $rc"
says 'CAP_SYS_ADMIN'
run -b -n 1 -d 0.2 -e "uprobe:$libc:malloc"
[ "$rc" = 0 ] || wrong "a probe of root: $(cat "$TMP/err")"

run --check
grep -q '^ok *sampling *every process' "$TMP/out" || wrong "root: $(cat "$TMP/out")"
finish
