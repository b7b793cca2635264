#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A file system that hangs (FUSE): in open, in read, in statfs; slowly. Samples, screens and the names of others go on;
# its objects are set aside, and get their names once it answers.
. "$(dirname "$0")/lib"
need_perf
need objcopy tmux setsid
export B
[ -c /dev/fuse ] || skip "not on this machine: /dev/fuse"

# The symbols must be in pages that are not cached when the program runs.
head -c 16000000 /dev/zero >"$TMP/pad"
objcopy --add-section .pad="$TMP/pad" "$PROGRAMS/spin" "$TMP/padded" || skip "not installed: an objcopy that can add a section"
cp "$PROGRAMS/spin" "$TMP/honest"
mkdir "$TMP/fs"
mkfifo "$TMP/words"
exec 9<>"$TMP/words"
"$PROGRAMS/hangfs" "$TMP/fs" "$TMP/padded" 24 <"$TMP/words" >"$TMP/ready" &
hangfs=$!
pids="$pids $hangfs"
i=0
until grep -q ready "$TMP/ready" 2>/dev/null; do
	kill -0 "$hangfs" 2>/dev/null || skip "not permitted: mount of FUSE"
	[ $((i = i + 1)) -lt 300 ] || { wrong "hangfs is not ready"; finish; }
	sleep 0.1
done
start "$TMP/honest"
honest=$last
sleep 0.3

# until_words FILE RE: wait until it is in FILE, 60 s at most.
until_words() {
	i=0
	until grep -qE "$2" "$1" 2>/dev/null; do
		[ $((i = i + 1)) -lt 600 ] || { wrong "$mode: no '$2' in: $(cut -c1-160 "$1" | head -40)"; return; }
		sleep 0.1
	done
}

# Each time another file, with only its running pages in the kernel's cache.
n=0
run_next() {
	file=f$n
	n=$((n + 1))
	start "$TMP/fs/$file"
	# It runs: 50 ms of CPU time.
	i=0
	until [ "$(awk '{ sub(/.*\) /, ""); print $12 }' "/proc/$last/stat")" -ge 5 ] || [ $((i = i + 1)) = 600 ]; do sleep 0.05; done
}

for mode in open read statfs; do
	run_next
	echo "$mode" >&9
	python3 "$HERE/hang.py" "$file" || bad=1
	echo ok >&9
	kill -KILL "$last" 2>/dev/null
done

# Keys are answered as fast as if nothing hung: no thread between a key and its screen reads a file.
keys() {
	setsid -w python3 "$HERE/keytimes.py" "$PROFTOP" -d 0.5 "$@"
}
for mode in open read trickle; do
	kill -KILL "$last" 2>/dev/null
	run_next
	echo "$mode" >&9
	# Also of one process: the start reads the process that hangs.
	# Beside it one of a process that does not hang, as the measure of this machine.
	keys -p "$honest" >"$TMP/calm" &
	measure=$!
	# Also a folder that does not open, while one completes a file name.
	[ "$mode" = open ] && KEYS_FIRST=$(printf ':screen %s/\t\033\033' "$TMP/fs") || KEYS_FIRST=
	export KEYS_FIRST
	ms=$(keys $([ "$mode" = read ] && echo "-p $last"))
	wait "$measure"
	calm=$(cat "$TMP/calm")
	echo ok >&9
	echo "keys: $calm ms, while it hangs ($mode) ${ms:-nothing} ms"
	[ "${ms:-9999}" -lt 100 ] || [ "${ms:-9999}" -le $((4 * calm)) ] || wrong "$mode: keys take ${ms:-for ever}"
done
kill -KILL "$last" 2>/dev/null

# It hangs, then answers: the names appear, also for the old counts.
mode=late
run_next
echo open >&9
"$PROFTOP" -b -d 0.5 --rows=20 >"$TMP/out" &
p=$!
pids="$pids $p"
until_words "$TMP/out" "$file\\+0x[0-9a-f]+ .* $file "
until_words "$TMP/out" 'burn .* honest '
echo ok >&9
until_words "$TMP/out" "burn .* $file "
kill -INT "$p"
wait "$p"

mode=trickle
kill -KILL "$last" 2>/dev/null
run_next
echo trickle >&9
rm -f "$TMP/out"
"$PROFTOP" -b -d 0.5 --rows=20 >"$TMP/out" &
p=$!
pids="$pids $p"
until_words "$TMP/out" 'burn .* honest '
until_words "$TMP/out" "burn .* $file "
kill -INT "$p"
wait "$p"
echo ok >&9
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
umount -l "$TMP/fs" 2>/dev/null
finish
