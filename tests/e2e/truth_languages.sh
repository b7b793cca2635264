#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PHP, Ruby, Perl: each chain that is called certain is the one that the interpreter itself has at that very sample.
# LANGUAGES="php ruby" tries these only, KINDS="calls fibers" these kinds of work; SECONDS_EACH=1. GATE=1, RIGHTS=none: see
# judge_truth in lib; "make truth-languages" tries both.
. "$(dirname "$0")/lib"
need_perf
need cc
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: layouts of interpreters are known for x86-64 only"
SECONDS_EACH=${SECONDS_EACH:-1}
missing=

flags() {
	case $1 in
	php) php-config8.2 --includes ;;
	ruby) ruby -rrbconfig -e 'puts "-I#{RbConfig::CONFIG["rubyhdrdir"]} -I#{RbConfig::CONFIG["rubyarchhdrdir"]}"' ;;
	perl) perl -MExtUtils::Embed -e ccopts ;;
	esac 2>/dev/null
}

# truth LANGUAGE KIND
truth() {
	truncate -s 100M "$TMP/truth"
	start env LD_PRELOAD="$TMP/truth_$1.so" TRUTH_FILE="$TMP/truth" "$1" "$HERE/../programs/truth_work.$1" "$2" $((SECONDS_EACH + 120)) >"$TMP/ready" 2>/dev/null
	i=0
	until grep -q ready "$TMP/ready" || [ $((i = i + 1)) = 600 ]; do sleep 0.1; done
	share=$(least 95 85)
	# One of its three threads has the interpreter that is read.
	[ "$1 $2" != "perl threads" ] || share=$(least 25 20)
	judge_truth "$last" "$TMP/truth" "$SECONDS_EACH" "$1 $2" "$share"
	kill "$last" 2>/dev/null
	rm -f "$TMP/truth"
}

for language in ${LANGUAGES:-php ruby perl}; do
	command -v "$language" >/dev/null || { missing="$missing $language"; continue; }
	# shellcheck disable=SC2046
	cc -w -O2 -DNDEBUG -D_GNU_SOURCE -fPIC -shared -I"$HERE/../.." $(flags "$language") -o "$TMP/truth_$language.so" \
		"$HERE/truth_$language.c" 2>"$TMP/built" || { missing="$missing $language's-headers"; continue; }
	kinds=all
	[ "$language" != perl ] || kinds="all begin"
	[ "$language" = php ] || [ "${GATE:-0}" = 0 ] || kinds="$kinds threads"
	for kind in ${KINDS:-$kinds}; do
		truth "$language" "$kind"
	done
done
[ -z "$missing" ] || echo "skipped: not installed:$missing"
finish
