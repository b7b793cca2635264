#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The /tmp of a container does not answer (FUSE), and a process there runs code of a JIT: the names of all others appear, also
# those of another JIT, --check ends, and the names of the first appear when its /tmp answers again.
. "$(dirname "$0")/lib"
need_perf
need unshare mount
[ -c /dev/fuse ] || skip "not on this machine: /dev/fuse"
mkdir "$TMP/fs"
mkfifo "$TMP/words"
exec 9<>"$TMP/words"
"$PROGRAMS/hangfs" "$TMP/fs" "$PROGRAMS/spin" 2 <"$TMP/words" >"$TMP/ready" &
hangfs=$!
pids="$pids $hangfs"
i=0
until grep -q ready "$TMP/ready" 2>/dev/null; do
	kill -0 "$hangfs" 2>/dev/null || skip "not permitted: mount of FUSE"
	[ $((i = i + 1)) -lt 300 ] || { wrong "hangfs is not ready"; finish; }
	sleep 0.1
done
for i in 1 2 3; do
	start unshare -m sh -c "mount --bind '$TMP/fs' /tmp && exec '$PROGRAMS/jitmap'"
done
sleep 0.3
echo lookup >&9
start "$PROGRAMS/jitmap" named_by_its_map
"$PROFTOP" -b -d 0.5 --rows=40 >"$TMP/out" 2>"$TMP/err" &
p=$!
pids="$pids $p"
# New after the hang: the loader must still serve it.
sleep 2
cp "$PROGRAMS/spin" "$TMP/honest"
start "$TMP/honest"

# until_words FILE RE: wait until it is in FILE, 20 s at most.
until_words() {
	i=0
	until grep -qE "$2" "$1" 2>/dev/null; do
		[ $((i = i + 1)) -lt 200 ] || { wrong "no '$2' in: $(tail -30 "$1" | cut -c1-120)"; return; }
		sleep 0.1
	done
}
until_words "$TMP/out" 'burn .* honest '
until_words "$TMP/out" 'named_by_its_map '
# Its end waits for the kernel, its answer does not.
"$PROFTOP" --check >"$TMP/check" 2>&1 &
check=$!
until_words "$TMP/check" 'CPU time'
[ -s "$TMP/check" ] || wrong "--check hangs"
echo ok >&9
wait "$check"
kill -INT "$p"
wait "$p" || [ $? = 130 ] || wrong "proftop: $(cat "$TMP/err")"
exec 9>&-
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
wait
umount -l "$TMP/fs" 2>/dev/null
finish
