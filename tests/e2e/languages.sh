#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PHP, Ruby, Perl: the functions of a known chain of calls, by name and line.
# LANGUAGES="php" tries these only.
. "$(dirname "$0")/lib"
need_perf
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: layouts of interpreters are known for x86-64 only"
WORK=$HERE/../programs
tried=0
missing=

# chain LANGUAGE LEAF NAMES... : of the program that runs, whose innermost function is LEAF.
chain() {
	run_until 'sum(t["lang"]["certain"] for t in ticks[1:]) >= 100 or len(ticks) >= 40' -d 1 -F 999 -p "$last" --languages="$1" --filter="$1:"
	kill "$last"
	python3 "$HERE/languages.py" "$@" <"$TMP/out" || bad=1
	tried=$((tried + 1))
}

# embedded: subs that C code calls; the main program does not run, so it is in no stack.
embedded() {
	# Without libperl-dev, whose link is missing then: the library itself.
	if ! cc -w -O2 $(perl -MExtUtils::Embed -e ccopts 2>/dev/null) -o "$TMP/embed_perl" "$HERE/embed_perl.c" \
		-l:"$(perl -MConfig -e 'print $Config{libperl}')" 2>/dev/null; then
		missing="$missing libperl-dev"
		return
	fi
	cat >"$TMP/chain_work.embedded" <<'END'
sub leaf { my $s = 0; $s = ($s * 31 + $_) % 65536 for 1 .. 20000; $s }
sub middle { my @sorted = sort { by_value() } 1 .. 8; scalar @sorted }
sub by_value { leaf(); $a <=> $b }
sub outer { middle() }
1;
END
	start "$TMP/embed_perl" "$TMP/chain_work.embedded" 90
	sleep 0.5
	chain perl main::leaf main::by_value main::middle main::outer
}

for language in ${LANGUAGES:-php ruby perl}; do
	command -v "$language" >/dev/null || { missing="$missing $language"; continue; }
	case $language in
	php) php -v | grep -q '^PHP 8\.[2456]\..*NTS' || { missing="$missing php"; continue; } ;;
	ruby) ruby -v | grep -q '^ruby 3\.1\.' || { missing="$missing ruby3.1"; continue; } ;;
	perl) perl -MConfig -e 'exit !($] > 5.035 && $] < 5.045 && $Config{usethreads})' || { missing="$missing perl"; continue; } ;;
	esac
	start "$language" "$WORK/chain_work.$language" 90
	sleep 0.5
	case $language in
	php)
		# The name of a closure has its function and line since 8.4.
		closure=$(php -r 'echo PHP_VERSION_ID < 80400 ? "{closure}" : "{closure:outer():25}";')
		chain php Leaf::leaf middle "$closure" array_map outer main '{main}'
		;;
	ruby) chain ruby leaf@6-9 middle@14-15 'block in outer@19-20' outer@19-20 main@24-25 '<main>@27-28' ;;
	perl)
		chain perl Leaf::leaf main::middle main::__ANON__ main::outer main::main '{main}'
		embedded
		;;
	esac
done
[ -z "$missing" ] || echo "skipped: not installed:$missing"
[ $tried != 0 ] || skip "not installed:$missing"
finish
