#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Node.js: functions by name, whole chains, interpreted, compiled without and with optimisation.
# NODE=PATH: another one (with LD_LIBRARY_PATH in NODE_LIBRARIES). NODE_SECONDS=60: for 5,000 chains and more,
# which chain_truth.js proves right.
. "$(dirname "$0")/lib"
need_perf
NODE=${NODE:-node}
need "$NODE"
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
LD_LIBRARY_PATH=${NODE_LIBRARIES-} "$NODE" -e 'process.exit(/^(10\.2|11\.3)\./.test(process.versions.v8) ? 0 : 1)' ||
	skip "not installed: Node.js 18 or 20"

NODE_LIBRARIES=${NODE_LIBRARIES-}
export B TMP NODE NODE_LIBRARIES
python3 "$HERE/node.py" || bad=1

LD_LIBRARY_PATH=$NODE_LIBRARIES
export LD_LIBRARY_PATH
start "$NODE" ${NODE_OPTIONS_TRUTH-} "$HERE/../programs/chain_truth.js" $((${NODE_SECONDS:-1} + 90)) "$TMP/lines"
unset LD_LIBRARY_PATH
# Its functions are made.
i=0
until [ -s "$TMP/lines" ] || [ $((i = i + 1)) = 300 ]; do sleep 0.1; done
"$B/tests/tools/langtruth" "$last" - "${NODE_SECONDS:-1}" 1999 >"$TMP/chains"
kill "$last"
python3 "$HERE/node_truth.py" $((${NODE_SECONDS:-1} * 80)) "$TMP/lines" <"$TMP/chains" || bad=1

# A child that runs before its reader: its samples go on when the reader starts. The recording has its functions.
run_until 'ticks[-1]["lang"]["certain"] >= 50 and any(r["symbol"] == "Builtins_ArrayMap" for r in ticks[-1]["rows"])' \
	-d 0.5 -F 499 --frames=both --record "$TMP/node.data" -- \
	sh -c "LD_LIBRARY_PATH=$NODE_LIBRARIES \"$NODE\" \"$HERE/../programs/chain_work.js\" 90 & echo \$! >'$TMP/node.pid'; wait"
pids="$pids $(cat "$TMP/node.pid")"
tail -n 1 "$TMP/out" | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["lang"]["certain"] < 10)' ||
	wrong "a child of the command has no functions: $(tail -n 1 "$TMP/out" | grep -o "\"lang\":{[^}]*}" | tail -n 1)"
# Builtins have names in stripped files.
tail -n 1 "$TMP/out" | grep -q '"symbol":"Builtins_ArrayMap"' || wrong "builtins without names: $(tail -n 1 "$TMP/out" | cut -c 1-2000)"
[ "$rc" = 0 ] || wrong "--record: exit $rc: $(cat "$TMP/err")"
"$PROFTOP" --replay "$TMP/node.data" -b --format=ndjson >"$TMP/replay" || wrong "replay: exit $?"
tail -n 1 "$TMP/replay" | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["lang"]["certain"] < 10)' ||
	wrong "the replay has no functions: $(grep -o "\"lang\":{[^}]*}" "$TMP/replay" | tail -n 1)"
! grep -q 42949672 "$TMP/replay" || wrong "the replay has lines that are none: $(grep -o '"[^"]*:42949672[^"]*"' "$TMP/replay" | head -n 3)"
finish
