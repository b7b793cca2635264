#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A trap reports a burst, and saves a recording of the moments before and after it, for perf also.
. "$(dirname "$0")/lib"
need_perf

# The first burst is after 9 s: that is time to start, and two seconds before it.
start "$PROGRAMS/burst" 9000
mkdir "$TMP/saved"
"$PROFTOP" -b -d 1 --rows 1 --trap 'total:burst > 50 for 100ms' --trap 'new:nowhere' \
	--save-dir "$TMP/saved" --save-files 1 -p "$last" >"$TMP/out" &
p=$!
pids="$pids $p"
i=0
until grep -q 'saving to' "$TMP/out" || [ $((i = i + 1)) = 600 ]; do sleep 0.1; done
# The moments after it.
sleep 1.5
kill -INT "$p"
wait "$p"
rc=$?
[ "$rc" = 130 ] || wrong "exit $rc"
# Its time is that of the match: at most a minute before the one in the name of the file.
sed -nE 's/^! trap: total:burst > 50 for 100ms: [0-9.]+% at (..):(..):(..); saving to .*-(..)(..)(..)\.data.*/\1 \2 \3 \4 \5 \6/p' "$TMP/out" |
	awk '{ late = ($4 * 3600 + $5 * 60 + $6 - $1 * 3600 - $2 * 60 - $3 + 86400) % 86400; good = late <= 60 } END { exit !good }' ||
	wrong "no match with its time in $(cat "$TMP/out")"
grep -q nowhere "$TMP/out" && wrong "a function that is not there matched"
[ "$(ls "$TMP/saved" | wc -l)" -eq 1 ] || wrong "files: $(ls "$TMP/saved")"
file=$(echo "$TMP"/saved/*.data)

# Most of it is burst's, or the kernel's below burst where the CPU is lent, and there are two seconds before it.
"$PROFTOP" --replay "$file" -b --rows 0 >"$TMP/replayed" || wrong "--replay: exit $?"
awk '/ u burst / { share = $2 } END { exit !(share > 50) }' "$TMP/replayed" || wrong "not most: $(cat "$TMP/replayed")"
"$PROFTOP" --replay "$file" --format=perf-script | awk '
	/^[^ \t].*:/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) t = $i + 0; if (!first) first = t }
	/ burst/ && /^[ \t]/ && !found { found = t }
	END { printf "%.2f s before the burst\n", found - first; exit found - first >= 2 ? 0 : 1 }' ||
	wrong "too little before the burst"
if command -v perf >/dev/null; then
	perf report -i "$file" --stdio --children -g none -F overhead_children,symbol 2>/dev/null >"$TMP/report"
	awk '$NF == "burst" { share = $1 + 0 } END { exit !(share > 50) }' "$TMP/report" ||
		wrong "perf report: $(grep -v '^#' "$TMP/report" | head -5)"
fi

# The same rule in the recording: at the time of the burst, without a file.
"$PROFTOP" --replay "$file" -b --rows 1 --trap 'total:burst > 50 for 100ms' --trap 'new:nowhere' >"$TMP/out" 2>&1 ||
	wrong "--replay --trap: exit $?"
grep -Eq 'trap: total:burst > 50 for 100ms: [0-9.]+% at \+([2-9]|[1-9][0-9]+)\.[0-9] s' "$TMP/out" ||
	wrong "no match in the recording: $(cat "$TMP/out")"
# One that matches later in the same second: each is said once, as the CPU is never idle.
start "$PROGRAMS/spin" 1
"$PROFTOP" -b -d 2 -n 1 --rows 1 -e cpu-clock --trap 'cpu > 0' --trap 'cpu > 0 for 300ms' >"$TMP/out" || wrong "two traps: exit $?"
[ "$(grep -o 'cpu > 0: ' "$TMP/out" | wc -l)" = 1 ] && grep -q 'trap: cpu > 0 for 300ms: ' "$TMP/out" ||
	wrong "two traps in a tick: $(head -20 "$TMP/out")"
# The list of messages has it, until the traps are removed.
"$PROFTOP" --replay "$file" --trap 'total:burst > 50 for 100ms' --size 120x30 --script '7' >"$TMP/out"
grep -Eq 'trap at \+[0-9.]+ s: total:burst > 50 for 100ms: [0-9.]+%' "$TMP/out" ||
	wrong "no match in the messages: $(cat "$TMP/out")"
"$PROFTOP" --replay "$file" --trap 'total:burst > 50 for 100ms' --size 120x30 --script '7:trap off<Enter><tick>' >"$TMP/out"
grep -q 'trap at' "$TMP/out" && wrong "a match without traps: $(cat "$TMP/out")"
"$PROFTOP" --replay "$file" --trap 'lost > 7' --size 120x30 --script ':trap<Enter><tick>' >"$TMP/out"
grep -q "1 trap (':trap off' removes all): lost > 7" "$TMP/out" || wrong ":trap lists no rule: $(cat "$TMP/out")"
expect 2 "--save-dir and a recording exclude each other" --replay "$file" --trap lost --save-dir "$TMP"

# Beside two busy loops per CPU, samples are read late and in bursts: no slice has more than all CPUs, and a sample of each.
i=0
while [ $((i += 1)) -le $((2 * $(nproc))) ]; do start "$PROGRAMS/spin" 1; done
"$PROFTOP" -b -d 1 -n 8 -F 999 --rows 1 --trap 'cpu > 105' >"$TMP/out" || wrong "beside busy loops: exit $?"
grep 'trap: cpu > 105' "$TMP/out" >"$TMP/found" && wrong "slices above 100 %: $(head -3 "$TMP/found")"
finish
