#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --script: the same keys give the same screen of a recording; annotate equals perf annotate.
. "$(dirname "$0")/lib"

data=$TMP/recurse.data
"$PROFTOP" --record "$data" -F 499 --stack-size 4K -b -n 1 -d 30 -- "$PROGRAMS/recurse" 1 \
	>/dev/null 2>"$TMP/err" || skip "cannot record: $(cat "$TMP/err")"

for keys in 1 2 3 4 5 6 7 H 'a<tick>' '/leaf_b<Enter>a<tick>P' ':modules<Enter>' '<size 40x8>jj' '?'; do
	"$PROFTOP" --replay "$data" --script "$keys" --size 100x30 >"$TMP/a" 2>"$TMP/err" ||
		wrong "--script $keys: exit $?: $(cat "$TMP/err")"
	"$PROFTOP" --replay "$data" --script "$keys" --size 100x30 >"$TMP/b"
	cmp -s "$TMP/a" "$TMP/b" || wrong "--script $keys: two runs, two screens"
	[ -s "$TMP/a" ] || wrong "--script $keys: an empty screen"
done
[ "$("$PROFTOP" --replay "$data" --script 1 --size 100x30 | wc -l)" = 30 ] || wrong "not 30 lines"

"$PROFTOP" --replay "$data" --size 100x30 --script ":screen $TMP/file<Enter>:q<Enter>" >"$TMP/out" ||
	wrong ":q: exit $?"
[ -s "$TMP/out" ] && wrong ":q prints a screen"
"$PROFTOP" --replay "$data" --size 100x30 --script 1 | cmp -s - "$TMP/file" ||
	wrong ":screen writes something else than what is shown"

# Samples as text are written in large pieces: each message of a socket is one write.
python3 - "$PROFTOP" --replay "$data" --format=perf-script >"$TMP/out" <<'END' || wrong "small writes: $(cat "$TMP/out")"
import socket, subprocess, sys
reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
with subprocess.Popen(sys.argv[1:], stdout=writer) as done:
    writer.close()
    sizes = list(map(len, iter(lambda: reader.recv(1 << 20), b"")))
print(sizes)
sys.exit(done.returncode or max(sizes) < 32768 or len(sizes) > sum(sizes) // 32768 + 2)
END

# No profile follows an ended recording: ticks end, and keys have their answer. (On a full machine one of three tries.)
for try in 1 2 3; do
	begin=$(date +%s)
	"$PROFTOP" --replay "$data" --script '<tick><tick><tick>' --size 100x30 >"$TMP/ticks" || wrong "a tick fails"
	took=$(($(date +%s) - begin))
	[ "$took" -ge 9 ] || break
done
[ "$took" -lt 9 ] || wrong "ticks of an ended recording: $took s"

"$PROFTOP" --replay "$data" --script 1 --size 1x >/dev/null 2>&1
[ $? = 2 ] || wrong "--size 1x is taken"

# Of a function that is only ever inlined: its part of the function with its largest share.
"$PROFTOP" --record "$TMP/inlined.data" -F 499 -e cpu-clock:u --stack-size 4K -b -n 1 -d 30 -- \
	"$PROGRAMS/inlined" 2 >/dev/null 2>"$TMP/err" || skip "cannot record: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/inlined.data" --size 120x40 --script '/^mix$<Enter>a<tick>' >"$TMP/out"
grep -q 'Inlined *its part of first, where [6-9][0-9]% of its samples are' \
	"$TMP/out" || wrong "an inlined function is not shown in the one it is part of: $(cat "$TMP/out")"
grep -q '^▶.*[0-9][0-9]\.[0-9].* +0x' "$TMP/out" || wrong "no hottest instruction: $(cat "$TMP/out")"

command -v perf >/dev/null || { echo "no perf: annotate is not compared"; finish; }

# ours FILE FUNCTION: "address share" of each instruction with samples.
# (A search also finds modules: no function that is named as its program.)
ours() {
	"$PROFTOP" --replay "$1" --size 140x999 --script "/^$2\$<Enter>a<tick>" |
		awk '{ sub("▶", " ") } $1 ~ /^[0-9]+\.[0-9]+$/ {
			for (i = 2; i <= NF; i++) if ($i ~ /^\+0x/) { print $(i - 1), $1; break } }' | sort
}

# same FUNCTION: of $TMP/perf and $TMP/ours, two figures of at most two decimals each.
same() {
	join -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$TMP/perf" "$TMP/ours" |
		awk -v f="$1" '{ d = $2 - $3 } d > 0.06 || d < -0.06 {
			print f " " $1 ": perf " $2 ", proftop " $3 }' >"$TMP/diff"
	[ -s "$TMP/diff" ] && wrong "$(cat "$TMP/diff")"
	nr=$((nr + 1))
}

nr=0
for f in leaf_a leaf_b leaf_c sort_keys leaf msort_with_tmp.part.0; do
	perf annotate -i "$data" --stdio -s "$f" 2>/dev/null |
		awk '/^ +[0-9.]+ +: / && $1 > 0 { sub(":", "", $3); print $3, $1 }' | sort >"$TMP/perf"
	[ -s "$TMP/perf" ] || continue
	ours "$data" "$f" >"$TMP/ours"
	same "$f"
done
[ "$nr" -ge 3 ] || wrong "only $nr functions compared with perf annotate"
echo "$nr functions as in perf annotate"

# perf annotates kernel code only with a kernel image or /proc/kcore at hand; its samples' addresses it always has.
data=$TMP/kernel.data
perf record -q -F 1999 -e cpu-clock:k -o "$data" -- dd if=/dev/zero of=/dev/null bs=4k count=300000 \
	>/dev/null 2>&1 || { echo "perf cannot record the kernel here"; finish; }
perf script -i "$data" -F ip,sym 2>/dev/null | grep -v unknown >"$TMP/ips"
nr=0
# Addresses with a single name: of several names each tool prefers another.
awk '{ of[$3]++; at[$1]++; where[$3] = $1 } END { for (f in of) if (of[f] == 1 && at[where[f]] == 1) print f }' \
	/proc/kallsyms >"$TMP/single"
for f in $(awk '{ print $2 }' "$TMP/ips" | grep -Fx -f "$TMP/single" | sort | uniq -c | sort -rn |
	awk 'NR <= 4 { print $2 }'); do
	awk -v f="$f" '$2 == f { n[$1]++; all++ } END { for (a in n) printf "%s %.2f\n", a, 100 * n[a] / all }' \
		"$TMP/ips" | sort >"$TMP/perf"
	ours "$data" "$f" >"$TMP/ours"
	same "$f"
done
[ "$nr" -ge 1 ] || ! [ -s "$TMP/ips" ] || wrong "no function of the kernel compared"
echo "$nr functions of the kernel as in perf script"
finish
