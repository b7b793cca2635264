#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PHP, Ruby, Perl, Lua, R: each chain that is called certain is the one that the interpreter itself has at that very sample.
# Erlang: each is possible in a program of functions with one caller each.
# LANGUAGES="php ruby=ruby3.4" tries these only, by these commands, KINDS="calls fibers" these kinds of work; SECONDS_EACH=1.
# ROOT=DIR: the interpreters, their headers and cc of another system below it (debootstrap). HEADERS="-I..." and RUN="ruby -I..."
# are for one that is not installed. GATE=1, RIGHTS=none: see judge_truth in lib; "make truth-languages" tries both.
. "$(dirname "$0")/lib"
need_perf
need cc
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: layouts of interpreters are known for x86-64 only"
SECONDS_EACH=${SECONDS_EACH:-1}
ROOT=${ROOT:-}
missing=

# in_root COMMAND...: run it there; exec keeps its process.
in_root() {
	if [ -n "$ROOT" ]; then chroot "$ROOT" "$@"; else "$@"; fi
}

# flags LANGUAGE COMMAND
flags() {
	[ -z "${HEADERS:-}" ] || { echo "$HEADERS"; return; }
	case $1 in
	php) in_root "php-config${2#php}" --includes || in_root php-config --includes ;;
	ruby) in_root "$2" -rrbconfig -e 'puts "-I#{RbConfig::CONFIG["rubyhdrdir"]} -I#{RbConfig::CONFIG["rubyarchhdrdir"]}"' ;;
	lua)
		case $2 in
		# Where its state has the frame.
		luajit) echo "-I/usr/include/luajit-2.1 -DLUAJIT_FRAME_AT=32" ;;
		*) echo "-I/usr/include/$2" ;;
		esac ;;
	perl) in_root "$2" -MExtUtils::Embed -e ccopts ;;
	r) ;;
	esac 2>/dev/null
}

# truth LANGUAGE KIND COMMAND
truth() {
	truncate -s 100M "$ROOT$inside/truth"
	run=$3
	# Code that its JIT made is guessed.
	[ "$3" != luajit ] || run="luajit -joff"
	# R has a folder that it leaves when it is killed.
	[ "$1" != r ] || run="env TMPDIR=$inside $run"
	# shellcheck disable=SC2086
	start ${ROOT:+chroot "$ROOT"} env LD_PRELOAD="$inside/truth_$1.so" TRUTH_FILE="$inside/truth" ${RUN:-$run} \
		"$inside/truth_work.$1" "$2" $((SECONDS_EACH + 120)) >"$TMP/ready" 2>/dev/null
	i=0
	until grep -q ready "$TMP/ready" || [ $((i = i + 1)) = 600 ]; do sleep 0.1; done
	share=$(least 95 85)
	# While a call is made or ends the innermost function of LuaJIT is not known.
	[ "$3" != luajit ] || share=$(least 75 65)
	judge_truth "$last" "$ROOT$inside/truth" "$SECONDS_EACH" "$3 $2" "$share"
	kill "$last" 2>/dev/null
	rm -f "$ROOT$inside/truth"
}

# chains COMMAND: of chain_truth.erl
chains() {
	cp "$HERE/../programs/chain_truth.erl" "$ROOT$inside"
	start ${ROOT:+chroot "$ROOT"} "$1" "$inside/chain_truth.erl" $((SECONDS_EACH + 120)) >"$TMP/ready" 2>/dev/null
	i=0
	until grep -q ready "$TMP/ready" || [ $((i = i + 1)) = 600 ]; do sleep 0.1; done
	least=20 share=0
	[ "${GATE:-0}" = 0 ] || least=5000 share=$(least 75 60)
	# shellcheck disable=SC2086
	timeout $((SECONDS_EACH + 100)) ${RIGHTS:+setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice} \
		"$B/tests/tools/langtruth" "$last" - "$SECONDS_EACH" 1999 >"$TMP/chains"
	python3 - "$TMP/chains" "$least" "$share" <<'END' || wrong "$1"
import collections, re, sys

counts, faults = collections.Counter(), []
for line in open(sys.argv[1]):
    verdict, *words = line.split()
    counts[verdict] += 1
    # Long stacks lack their outer frames. Of a fun or a list comprehension the function that has it: "-m_b_l/1-lc$^0/1-0-".
    names = [m[1] for m in (re.search(r":-?(m(?:_\w+)?)/", w) for w in words) if m]
    fault = [b for a, b in zip([None] + names, names)
             if b != a and (b != "m" and len(words) < 500 if a is None else a != b.rpartition("_")[0])]
    counts["certain wrong"] += verdict == "certain" and bool(fault)
    if fault and verdict == "certain":
        faults.append(f"{fault[0]}: {line.strip()[-800:]}")
print(dict(counts), *faults[:4], sep="\n")
judged = sum(counts[k] for k in ("certain", "guessed", "bad_chain", "not_read"))
sys.exit(bool(faults) or counts["certain"] < max(int(sys.argv[2]), float(sys.argv[3]) / 100 * judged))
END
	kill "$last" 2>/dev/null
}

if [ -n "$ROOT" ]; then
	real=$(mktemp -d "$ROOT/tmp/truth.XXXXXX")
	inside=${real#"$ROOT"}
	trap 'rm -rf "$real"; cleanup' EXIT
else
	inside=$TMP
fi
mkdir -p "$ROOT$inside/tests"
cp "$HERE/../lang_truth.h" "$HERE/../lang_truth_trap.h" "$ROOT$inside/tests"
for entry in ${LANGUAGES:-php ruby perl lua=lua5.4 lua=luajit r=Rscript erlang=escript}; do
	language=${entry%%=*}
	command=${entry#*=}
	in_root sh -c "command -v $command" >/dev/null || [ -n "${RUN:-}" ] || { missing="$missing $command"; continue; }
	[ "$language" != erlang ] || { chains "$command"; continue; }
	cp "$HERE/truth_$language.c" "$HERE/../programs/truth_work.$language" "$ROOT$inside"
	# shellcheck disable=SC2046
	in_root cc -w -O2 -DNDEBUG -D_GNU_SOURCE -fPIC -shared -I"$inside" $(flags "$language" "$command") \
		-o "$inside/truth_$language.so" "$inside/truth_$language.c" 2>"$TMP/built" ||
		{ missing="$missing $command's-headers"; continue; }
	kinds=all
	[ "$language" != perl ] || kinds="all begin"
	[ "$language" != r ] || kinds="all interpreted"
	[ "$language" = php ] || [ "$language" = lua ] || [ "$language" = r ] || [ "${GATE:-0}" = 0 ] || kinds="$kinds threads"
	for kind in ${KINDS:-$kinds}; do
		truth "$language" "$kind" "$command"
	done
done
[ -z "$missing" ] || echo "skipped: not installed:$missing"
finish
