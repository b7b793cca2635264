#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Exports of the committed recording: every format has the numbers of the screen, for all samples, a process, a filter.
. "$(dirname "$0")/lib"
need python3
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64, as the recording"

shop=$HERE/../data/shop
gunzip -c "$shop/shop.data.gz" >"$TMP/shop.data"
replay() { "$PROFTOP" --replay "$TMP/shop.data" --symfs "$shop/root" "$@" || wrong "$*: exit $?"; }
formats="pb.gz speedscope.json firefox.json folded svg html json txt otlp.pb"

for f in $formats; do
	replay --export "$TMP/all.$f" >"$TMP/out"
	[ -s "$TMP/out" ] && wrong "--export alone prints something"
done
replay -b --format=ndjson --rows=0 >"$TMP/all.ndjson"
python3 "$HERE/export.py" "$TMP/all" "$TMP/all.ndjson" || bad=1

# The same of the shown process, and of a filter, by keys.
keys=
for f in $formats; do
	keys="$keys:export $TMP/part.$f<Enter>"
done
replay --script "2/indexer<Enter><Enter>$keys" >/dev/null
python3 "$HERE/export.py" "$TMP/part" "$TMP/part.json" || bad=1
replay --export "$TMP/found.folded" --filter parse_object
replay --export - --export-format folded | grep -F 'parse_object' | cmp -s - "$TMP/found.folded" ||
	wrong "--filter parse_object: other stacks than those with the function"
replay --size=200x24 --script ':export /nowhere/x.svg<Enter>' | grep -q '/nowhere/x.svg: No such file' ||
	wrong ":export: no message for a missing directory"
ln -s "$TMP/target" "$TMP/link.svg"
replay --size=200x24 --script ":export $TMP/link.svg<Enter>" | grep -q 'not a regular file' || wrong ":export follows a symbolic link"
[ -e "$TMP/target" ] && wrong ":export wrote through a symbolic link"

# The time of --time, as on the screen.
checkout=$HERE/../data/checkout
gunzip -c "$checkout/checkout.data.gz" >"$TMP/checkout.data"
for time in cpu wait all; do
	set -- --replay "$TMP/checkout.data" --symfs "$checkout/root" --time=$time
	"$PROFTOP" "$@" --export "$TMP/$time.folded" || wrong "--time=$time --export: exit $?"
	"$PROFTOP" "$@" --script ":export! $TMP/screen.folded<Enter>" >/dev/null
	cmp -s "$TMP/screen.folded" "$TMP/$time.folded" || wrong "--time=$time: --export and :export differ"
done

# refused CODE ARGUMENTS...: with that exit status and a sentence.
refused() {
	code=$1
	shift
	"$PROFTOP" "$@" >"$TMP/out" 2>&1
	[ $? = "$code" ] && [ -s "$TMP/out" ] || wrong "proftop $*: not refused with $code: $(cat "$TMP/out")"
}
refused 2 --replay "$TMP/shop.data" --export "$TMP/x.xyz"
refused 2 --replay "$TMP/shop.data" --export "$TMP/x" --export-format xyz
refused 2 --replay "$TMP/shop.data" --export-format svg
refused 1 --replay "$TMP/shop.data" --export "$TMP/none/x.svg"
# Beside a baseline: of itself, nothing has changed; a format without changes, and an event that it has not.
for f in svg html folded; do
	replay --baseline "$TMP/shop.data" --export "$TMP/same.$f"
done
grep -q ', against shop.data</title>' "$TMP/same.svg" && ! grep -Eq 'class="[ml][123]"' "$TMP/same.svg" || wrong "--baseline: .svg"
grep -q '"change":\[0,0' "$TMP/same.html" || wrong "--baseline: .html"
awk '{ if ($(NF - 1) != $NF) exit 1 } END { exit !NR }' "$TMP/same.folded" || wrong "--baseline: .folded"
replay --baseline "$TMP/shop.data" --script ":export! $TMP/screen.folded<Enter>" >/dev/null
cmp -s "$TMP/screen.folded" "$TMP/same.folded" || wrong "--baseline: --export and :export differ"
refused 2 --replay "$TMP/shop.data" --baseline "$TMP/shop.data" --export "$TMP/x.pb.gz"
refused 1 --replay "$TMP/checkout.data" --time=wait --baseline "$TMP/shop.data" --export "$TMP/x.svg"
grep -q 'cannot compare: shop.data has no event waits' "$TMP/out" || wrong "--baseline without the event: $(cat "$TMP/out")"
ls "$TMP" | grep -E '\.(svg|html|gz)\.[0-9a-f]{8}$' && wrong "a temporary file is left"

# Each tick replaces the file of the one before.
if [ "$(id -u)" = 0 ] && python3 "$HERE/perf_allowed.py"; then
	# Sixty functions, inlined ones, a recursive one, those of a JIT, the kernel, two processes, waits: shares of the 50
	# hottest, by CPU time, waiting time and both.
	"$PROFTOP" -b -F 4999 --time=all --stack-size=2048 --record="$TMP/sixty.data" -- "$PROGRAMS/sixty" 500 >"$TMP/out" 2>&1 ||
		wrong "sixty: exit $?: $(cat "$TMP/out")"
	maps=$(sed -n 's/^map //p' "$TMP/out")
	trap 'rm -f $maps; cleanup' EXIT
	"$PROFTOP" --replay "$TMP/sixty.data" --time=all -b --format=ndjson --rows=0 >"$TMP/sixty.ndjson"
	for time in cpu wait all; do
		case $time in
		cpu) event="cpu-clock" ;;
		wait) event="waits" ;;
		all) event="cpu-clock + waits" ;;
		esac
		keys=
		for f in $formats; do
			keys="$keys:export! $TMP/$time.$f<Enter>"
		done
		"$PROFTOP" --replay "$TMP/sixty.data" --time=$time --script "2$keys" >/dev/null || wrong "sixty: exports: exit $?"
		python3 "$HERE/export.py" "$TMP/$time" "$TMP/sixty.ndjson" 50 "$event" || bad=1
	done
	for mark in i j k; do
		grep -q "_\[$mark\]" "$TMP/cpu.folded" || wrong "sixty: no frame of kind $mark"
	done
	for mark in _parent_ _child_; do
		grep -q "^sixty;.*;compiled$mark\[j\]" "$TMP/cpu.folded" || wrong "sixty: no frame compiled$mark"
	done
	[ "$(grep -o '"pid":"[0-9]*"' "$TMP/cpu.firefox.json" | sort -u | wc -l)" = 2 ] || wrong "sixty: not two processes"
	grep -q ';\[child\] [0-9]*$' "$TMP/wait.folded" || wrong "sixty: the wait for the child is no frame"
	grep -q '\[child\]' "$TMP/cpu.folded" && wrong "sixty: a wait in the CPU time"
	gunzip -c "$TMP/all.pb.gz" | grep -q wall || wrong "sixty: both times are not named wall"

	# Waits are time.
	"$PROFTOP" -b -n 1 -d 0.3 -e waits --format=ndjson --rows=0 --export "$TMP/waits.pb.gz" >"$TMP/waits.ndjson"
	python3 "$HERE/export.py" "$TMP/waits" "$TMP/waits.ndjson" || bad=1
	gunzip -c "$TMP/waits.pb.gz" | grep -q off_cpu || wrong "waits: not off_cpu"

	start "$PROGRAMS/spin"
	"$PROFTOP" -b -n 8 -d 0.3 -p "$last" --export "$TMP/live.folded" >"$TMP/out" || wrong "live: exit $?"
	grep -q '^spin;.*burn' "$TMP/live.folded" || wrong "live: no burn() in $(cat "$TMP/live.folded")"
	[ "$(grep -c '^proftop' "$TMP/out")" = 8 ] || wrong "live: not eight ticks printed"
fi
finish
