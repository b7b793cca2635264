#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Node.js: functions by name, whole chains, interpreted, compiled without and with optimisation. NODES="/path/node ...":
# others than the one of PATH; NODE_SECONDS=60: for 5,000 chains and more, which chain_truth.js proves right. GATE=1:
# wrong if fewer are certain, or less than 90 % of the chains.
. "$(dirname "$0")/lib"
need_perf
[ -n "${NODES-}" ] || need node
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
export B TMP NODE

# truth NODE: the chains of a program that has many functions with one caller each.
truth() {
	rm -f "$TMP/lines"
	start "$1" ${NODE_OPTIONS_TRUTH-} "$HERE/../programs/chain_truth.js" $((${NODE_SECONDS:-1} + 90)) "$TMP/lines"
	# Its functions are made.
	i=0
	until [ -s "$TMP/lines" ] || [ $((i = i + 1)) = 300 ]; do sleep 0.1; done
	"$B/tests/tools/langtruth" "$last" - "${NODE_SECONDS:-1}" 1999 >"$TMP/chains"
	kill "$last"
	least=$((${NODE_SECONDS:-1} * 80)) share=0
	[ "${GATE:-0}" = 0 ] || least=5000 share=90
	python3 "$HERE/node_truth.py" "$least" "$TMP/lines" "$share" <"$TMP/chains" || bad=1
}

# child NODE: a child that runs before its reader. Its samples go on when the reader starts, and the recording has its
# functions.
child() {
	# sid's libnode has neither symbols nor the functions that lead to their names.
	lib=$(ldd "$(readlink -f "$1")" | awk '/libnode/ { print $3 }')
	builtin=Builtins_ArrayMap
	[ -z "$lib" ] || nm -D "$lib" | grep -q DefaultEmbeddedBlobCode || builtin=leaf
	run_until 'ticks[-1]["lang"]["certain"] >= 50 and any(r["symbol"] == "'$builtin'" for r in ticks[-1]["rows"])' \
		-d 0.5 -F 499 --frames=both --record "$TMP/node.data" -- \
		sh -c "\"$1\" \"$HERE/../programs/chain_work.js\" 90 & echo \$! >'$TMP/node.pid'; wait"
	pids="$pids $(cat "$TMP/node.pid")"
	tail -n 1 "$TMP/out" | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["lang"]["certain"] < 10)' ||
		wrong "a child of the command has no functions: $(tail -n 1 "$TMP/out" | grep -o "\"lang\":{[^}]*}" | tail -n 1)"
	# Builtins have names in stripped files.
	tail -n 1 "$TMP/out" | grep -q "\"symbol\":\"$builtin\"" ||
		wrong "builtins without names: $(tail -n 1 "$TMP/out" | cut -c 1-2000)"
	[ "$rc" = 0 ] || wrong "--record: exit $rc: $(cat "$TMP/err")"
	kill "$(cat "$TMP/node.pid")" 2>/dev/null
	"$PROFTOP" --replay "$TMP/node.data" -b --format=ndjson >"$TMP/replay" || wrong "replay: exit $?"
	tail -n 1 "$TMP/replay" | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["lang"]["certain"] < 10)' ||
		wrong "the replay has no functions: $(grep -o "\"lang\":{[^}]*}" "$TMP/replay" | tail -n 1)"
	! grep -q 42949672 "$TMP/replay" ||
		wrong "the replay has lines that are none: $(grep -o '"[^"]*:42949672[^"]*"' "$TMP/replay" | head -n 3)"
}

for NODE in ${NODES:-$(command -v node)}; do
	[ -z "${NODES-}" ] || "$NODE" -p '"Node.js " + process.version + ", V8 " + process.versions.v8'
	python3 "$HERE/node.py" || bad=1
	truth "$NODE"
	child "$NODE"
done
finish
