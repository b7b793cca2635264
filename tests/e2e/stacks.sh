#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that know their own true call chain, sampled live and recorded in the same run: chains are
# exact, and no wrong caller is shown as certain. TRUTH_MATRIX=1: with both compilers at all levels of
# optimization, static and not.
. "$(dirname "$0")/lib"
need_perf
need cc c++
SRC=$HERE/../programs
MODES='chain deep pushes tail alloca signal altstack altinside noreturn plt fork exec jitfp jitleaf dlopen'
SECONDS_EACH=${TRUTH_SECONDS:-0.7}

# build COMPILER C++ FLAGS...
build() {
	cc=$1 cxx=$2
	shift 2
	"$cc" "$@" -g -fomit-frame-pointer -fno-builtin -o "$TMP/chain" "$SRC/truth_chain.c" -ldl 2>"$TMP/log" &&
		"$cxx" "$@" -g -fomit-frame-pointer -o "$TMP/throw" "$SRC/truth_throw.cc" 2>"$TMP/log" || {
		wrong "cannot build with $cc $*: $(head -3 "$TMP/log")"
		return 1
	}
}

lib() {
	echo "__attribute__((noinline)) void lib_$1(void (*fn)(void)); void lib_$1(void (*fn)(void)) { $2 fn(); __asm__ volatile(\"\" ::: \"memory\"); }" |
		cc -x c -O1 -fomit-frame-pointer -shared -fPIC -o "$TMP/lib_$1.so" -
}

# All modes, one after the other, under one session.
watch() {
	{
		echo '#!/bin/sh'
		for mode in $MODES; do
			echo "'$TMP/chain' $mode $SECONDS_EACH '$TMP/lib_a.so' '$TMP/lib_b.so'"
		done
		echo "'$TMP/throw' $SECONDS_EACH"
	} >"$TMP/all"
	chmod +x "$TMP/all"
	"$PROFTOP" -b -d 1 -F "${TRUTH_HZ:-2000}" -e cpu-clock --rows=1 --record "$TMP/data" -- "$TMP/all" \
		>"$TMP/out" 2>"$TMP/err" || wrong "$* : exit $?: $(cat "$TMP/err")"
	echo "== $*"
	"$B/tests/tools/chains" "$TMP/data" | python3 "$HERE/stacks.py" || bad=1
}

lib a ''
lib b 'volatile char more[100]; more[7] = 1;'
if [ -z "${TRUTH_MATRIX:-}" ]; then
	build cc c++ -O2 && watch cc -O2
else
	for level in 0 1 2 3; do
		build cc c++ -O$level && watch cc -O$level
		if command -v clang++ >/dev/null; then
			build clang clang++ -O$level && watch clang -O$level
		fi
	done
	build cc c++ -O2 -no-pie && watch cc -O2 -no-pie
	build cc c++ -O2 -fno-plt -Wl,-z,now && watch cc -O2 -fno-plt
	build cc c++ -O2 -fno-asynchronous-unwind-tables && watch cc -O2, with .debug_frame only
fi
finish
