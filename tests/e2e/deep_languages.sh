#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Of a stack with more frames of a language than there is room for, the innermost ones are shown, and the outermost ones, and
# it is counted as too deep, live and in the replay: no C function beyond them is called their caller.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: the layouts are known for x86-64 only"

# deep LANGUAGE COMMAND...
deep() {
	language=$1 outermost=$2
	shift 2
	start "$@" 90 >/dev/null
	rm -f "$TMP/out.data"
	run_until 'sum(t["account"]["broken_by"].get("too_deep", 0) for t in ticks) >= 100' \
		-d 0.5 -F 499 -e cpu-clock -p "$last" --languages="$language" --rows=0 --record "$TMP/out.data"
	kill "$last"
	[ "$rc" = 0 ] || wrong "$language: exit $rc: $(tail -3 "$TMP/err") $(tail -n 1 "$TMP/out" | cut -c 1-2000)"
	# On a busy machine the last tick may be short of samples.
	python3 -c '
import json, sys
print(json.dumps(max(map(json.loads, sys.stdin), key=lambda t: t["account"]["broken_by"].get("too_deep", 0))))' \
		<"$TMP/out" >"$TMP/live"
	"$PROFTOP" --replay "$TMP/out.data" -b --format=ndjson --rows=0 >"$TMP/replay" || wrong "$language: replay: exit $?"
	for of in live replay; do
		python3 -c '
import json, sys
tick = json.loads(open(sys.argv[1]).readline())
deep = tick["account"]["broken_by"].get("too_deep", 0)
rows = {r["symbol"].rpartition(":")[2]: r["total"] for r in tick["rows"]}
beyond = {n: t for n, t in rows.items() if n in ("_start", "main")}
first = tick["account"]["taken"] - deep  # before the interpreter was known
# Some samples are between two calls of leaf().
bad = [n for n in ("leaf", "down", *sys.argv[2:]) if rows.get(n, 0) < 0.9 * deep]
if bad or deep < 20 or any(t > first for t in beyond.values()):
    sys.exit("%d too deep of %s; %s" % (deep, tick["account"], rows))' "$TMP/$of" $outermost 2>"$TMP/why" ||
			wrong "$language, $of: $(tail -n 3 "$TMP/why" | cut -c 1-2000)"
	done
}

deep python "<module>" python3 "$HERE/../programs/deep.py" 800
# More frames than are looked at one by one.
deep python "<module>" python3 "$HERE/../programs/deep.py" 5000
if php -r 'exit(PHP_VERSION_ID < 80200 || PHP_ZTS);' 2>/dev/null; then
	cat >"$TMP/deep.php" <<'END'
<?php
function leaf($end) { for ($n = 0; microtime(true) < $end; $n++); }
function down($n, $end) { if ($n) down($n - 1, $end); else leaf($end); }
down((int)$argv[1], microtime(true) + (int)$argv[2]);
END
	deep php "{main}" php "$TMP/deep.php" 800
	deep php "{main}" php "$TMP/deep.php" 8000
else
	echo "skipped: not installed: PHP 8.2 or later without threads"
fi
# More contexts than are read.
if perl -e 'use Config; exit !($^V =~ /^v5\.36\./ && $Config{useithreads})' 2>/dev/null; then
	deep perl "{main}" perl "$HERE/../programs/deep.perl" 3000
else
	echo "skipped: not installed: Perl 5.36 with threads"
fi
finish
