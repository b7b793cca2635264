#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Known waits (tests/programs/wait_truth.c): seconds by kind of each thread, compared with its clocks.
. "$(dirname "$0")/lib"

need_perf
"$PROFTOP" --time=wait -d 10 --format=ndjson -- \
	"$PROGRAMS/wait_truth" 2 "$TMP/truth" "$TMP/synced" >"$TMP/out" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
python3 "$HERE/waits.py" "$TMP/out" "$TMP/truth" || wrong 'the times differ'
finish
