#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong and hostile input: an exit code and a message each time, never an escape.
. "$(dirname "$0")/lib"
need_perf
need tmux

expect 2 no-such-event -b -n 1 -e no-such-event
expect 2 '<foo>: unknown key' --script 'j<foo>j' -d 0.2
expect 2 '<size 0x1>: unknown key' --script '<size 0x1>' -d 0.2
expect 0 '' --script '/a<b<>, <>j<Down><lt><^D><click 3,10><size 90x20><Esc>' -d 0.2
expect 2 '--intervals does not apply to batch' -b -n 1 --intervals
expect 2 'at least' -b -n 1 -c 0
expect 2 '1 to ' -b -n 1 -F 0
expect 2 perf_event_max_sample_rate -b -n 1 -F 10000000
expect 2 --help --no-such-option
expect 2 "'--'" -b -n 1 true
expect 4 999999 -b -n 1 -p 999999
expect 4 'unknown user' -b -n 1 -u no-such-user-here
expect 4 /no/such/command -b -n 1 -- /no/such/command
expect 4 /etc/passwd -b -n 1 -- /etc/passwd
expect 2 '' -b -n 1 -C 0-
run -b -n 1 -C 4000
[ "$rc" != 0 ] && [ -s "$TMP/err" ] || wrong "-C 4000: exit $rc: $(cat "$TMP/err")"

# Standard descriptors that are closed: nothing of ours may land on them.
"$PROFTOP" -b -n 1 -d 0.2 >&- 2>"$TMP/err"
[ $? = 1 ] && grep -q 'standard output' "$TMP/err" || wrong "stdout closed: $(cat "$TMP/err")"
"$PROFTOP" --help >&- 2>"$TMP/err"
[ $? = 1 ] && grep -q 'standard output' "$TMP/err" || wrong "--help >&-: $(cat "$TMP/err")"
"$PROFTOP" -b -n 1 -d 0.2 <&- >"$TMP/out" 2>"$TMP/err" || wrong "stdin closed in batch: $(cat "$TMP/err")"
grep -q SELF% "$TMP/out" || wrong "stdin closed in batch: no rows"
"$PROFTOP" -b -n 1 -d 0.2 2>&- >"$TMP/out" || wrong "stderr closed in batch"
grep -q SELF% "$TMP/out" || wrong "stderr closed in batch: no rows"
"$PROFTOP" -b -n 1 -d 0.2 >/dev/full 2>"$TMP/err"
[ $? = 1 ] && grep -q 'No space left' "$TMP/err" || wrong "/dev/full: $(cat "$TMP/err")"
# Of a busy program: an idle machine has no sample in 0.2 s, or none in the first half of the file.
start "$PROGRAMS/spin" 1
expect 0 '' -n 1 -d 0.2 -p "$last" --record "$TMP/recorded"
kill "$last"
# Batch output because of the pipe: no changes either.
expect 2 'batch output' --replay "$TMP/recorded" --baseline "$TMP/recorded"
for what in "--replay $TMP/recorded --format=perf-script" --print-config --help; do
	# shellcheck disable=SC2086
	"$PROFTOP" $what >/dev/full 2>"$TMP/err"
	[ $? = 1 ] && grep -q 'No space left' "$TMP/err" || wrong "$what >/dev/full: $(cat "$TMP/err")"
done
# A recording that is cut short is printed up to its end, and the missing part is reported.
run --replay "$TMP/recorded" --format=perf-script
[ "$rc" = 0 ] && ! grep -q 'cut short\|dropped' "$TMP/err" || wrong "perf-script: exit $rc: $(cat "$TMP/err")"
head -c $(($(stat -c %s "$TMP/recorded") / 2)) "$TMP/recorded" >"$TMP/cut"
run --replay "$TMP/cut" --format=perf-script
[ "$rc" = 0 ] && [ -s "$TMP/out" ] && grep -q '^proftop: .*cut short' "$TMP/err" ||
	wrong "perf-script of a part: exit $rc: $(cat "$TMP/err")"

# The screen reports missing features. tmux is the terminal; the messages go to a file.
T="tmux -L proftop-badinput-$$ -f /dev/null"
in_terminal() {
	rm -f "$TMP/said"
	$T new-session -d -x 80 -y 24 "$1 2>$TMP/err; echo \$? >$TMP/rc; mv $TMP/rc $TMP/said"
	for _ in $(seq 300); do
		[ -f "$TMP/said" ] && break
		sleep 0.1
	done
	rc=$(cat "$TMP/said" 2>/dev/null || echo none)
	$T kill-server 2>/dev/null
}
in_terminal "TERM=dumb $PROFTOP"
[ "$rc" = 1 ] && grep -q dumb "$TMP/err" || wrong "TERM=dumb: exit $rc: $(cat "$TMP/err")"
in_terminal "env -u TERM $PROFTOP"
[ "$rc" = 1 ] && grep -q TERM "$TMP/err" || wrong "TERM unset: exit $rc: $(cat "$TMP/err")"
in_terminal "TERM=no-such-terminal $PROFTOP"
[ "$rc" = 1 ] && grep -q no-such-terminal "$TMP/err" || wrong "unknown TERM: exit $rc: $(cat "$TMP/err")"
in_terminal "$PROFTOP <&-"
[ "$rc" = 1 ] && grep -q 'standard input' "$TMP/err" || wrong "stdin closed: exit $rc: $(cat "$TMP/err")"
in_terminal "$PROFTOP </dev/null"
[ "$rc" = 1 ] && grep -q 'standard input' "$TMP/err" || wrong "stdin no terminal: exit $rc: $(cat "$TMP/err")"

# Two sessions do not disturb each other.
"$PROFTOP" -b -n 2 -d 0.5 --format=ndjson >"$TMP/one" 2>"$TMP/err1" &
one=$!
"$PROFTOP" -b -n 2 -d 0.5 --format=ndjson >"$TMP/two" 2>"$TMP/err2" &
two=$!
wait "$one" || wrong "two at once: $(cat "$TMP/err1")"
wait "$two" || wrong "two at once: $(cat "$TMP/err2")"
python3 "$HERE/ndjson.py" check "$TMP/one" "$TMP/two" || bad=1

# Names with escapes, newlines, bidi controls: none of them in any sink.
start "$PROGRAMS/hostile_name" aaaaaaaaaaaaaaaa
hostile=$last
for format in text ndjson; do
	run -b -n 2 -d 0.5 -p "$hostile" --rows=0 --format="$format"
	[ "$rc" = 0 ] || wrong "hostile, $format: exit $rc: $(cat "$TMP/err")"
	grep -q 2J "$TMP/out" || wrong "hostile, $format: the name is not there: $(cat -v "$TMP/out")"
	python3 - "$TMP/out" <<'PY' || wrong "hostile, $format: $(cat -v "$TMP/out")"
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode("utf-8", "strict")
refused = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
sys.exit(bool(refused))
PY
done
run -b -n 1 -d 0.2 -- "$(printf '/no/\033[2Jsuch')"
grep -q "$(printf '\033')" "$TMP/err" && wrong "an escape in a sentence: $(cat -v "$TMP/err")"
finish
