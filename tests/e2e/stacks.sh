#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs with a known call chain, sampled live and recorded in the same run: chains are exact, and
# no wrong caller is shown as certain. TRUTH_MATRIX=levels: with both compilers at all levels of
# optimization; layouts: by all linkers, static and not, with and without tables; options: with
# options that change calls, returns and frames; 1: all.
. "$(dirname "$0")/lib"
need_perf
need cc c++
SRC=$HERE/../programs
EVERY='chain deep pushes tail alloca signal altstack altinside noreturn plt pointers switch fork exec jitfp jitleaf dlopen'
MODES=$EVERY
SECONDS_EACH=${TRUTH_SECONDS:-0.7}

# link COMPILER C++ FLAGS...
link() {
	cc=$1 cxx=$2
	shift 2
	"$cc" "$@" -g -fomit-frame-pointer -fno-builtin -o "$TMP/chain" "$SRC/truth_chain.c" -ldl 2>"$TMP/log" &&
		"$cxx" "$@" -g -fomit-frame-pointer -o "$TMP/throw" "$SRC/truth_throw.cc" 2>"$TMP/log"
}

build() {
	link "$@" && return
	wrong "cannot build with $*: $(head -3 "$TMP/log")"
	return 1
}

lib() {
	echo "__attribute__((noinline)) void lib_$1(void (*fn)(void)); void lib_$1(void (*fn)(void)) { $2 fn(); __asm__ volatile(\"\" ::: \"memory\"); }" |
		cc -x c -O1 -fomit-frame-pointer -shared -fPIC -o "$TMP/lib_$1.so" -
}

modes_of_chain() {
	echo '#!/bin/sh'
	for mode in $MODES; do
		echo "'$TMP/chain' $mode $SECONDS_EACH '$TMP/lib_a.so' '$TMP/lib_b.so'"
	done
}

# All modes, one after the other, under one session.
watch() {
	modes_of_chain >"$TMP/all"
	echo "'$TMP/throw' $SECONDS_EACH" >>"$TMP/all"
	sample_all "$MODES throw" "$*"
}

# sample_all MODES WHAT: run $TMP/all under one session and judge its recording
sample_all() {
	chmod +x "$TMP/all"
	"$PROFTOP" -b -d 1 -F "${TRUTH_HZ:-2000}" -e cpu-clock --rows=1 --record "$TMP/data" -- "$TMP/all" \
		>"$TMP/out" 2>"$TMP/err" || wrong "$2: exit $?: $(cat "$TMP/err")"
	echo "== $2"
	"$B/tests/tools/chains" "$TMP/data" | MODES="$1" python3 "$HERE/stacks.py" || bad=1
}

# try FLAGS...: with cc, and no complaint where this machine cannot link so
try() {
	if link cc c++ -O2 "$@"; then
		watch cc -O2 "$*"
	else
		echo "== cc -O2 $*: not here: $(head -1 "$TMP/log")"
	fi
}

# foreign MODE TOOL COMMAND...: build $TMP/t_MODE, and run it with the others; no complaint if it
# cannot be built
foreign() {
	mode=$1 tool=$2
	shift 2
	if command -v "$tool" >/dev/null && (cd "$TMP" && "$@" >"$TMP/log" 2>&1); then
		echo "'$TMP/t_$mode' 2" >>"$TMP/all"
		MODES="$MODES $mode"
	else
		echo "== $mode: not here: $(head -1 "$TMP/log")"
	fi
}

# main, outer, middle, inner: in other languages and with 32 bits.
languages() {
	cat >"$TMP/t.go" <<'GO'
package main

import "time"

var sink uint64

//go:noinline
func inner(n int) {
	for i := 0; i < n; i++ {
		sink = sink*6364136223846793005 + 1442695040888963407
	}
}

//go:noinline
func middle(n int) { inner(n); sink++ }

//go:noinline
func outer(n int) { middle(n); sink++ }

func main() {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		outer(100000)
	}
}
GO
	cat >"$TMP/t.rs" <<'RUST'
use std::hint::black_box;
#[inline(never)]
fn inner(n: u64) -> u64 { (0..n).fold(n, |x, _| black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1))) }
#[inline(never)]
fn middle(n: u64) -> u64 { inner(n) ^ black_box(1) }
#[inline(never)]
fn outer(n: u64) -> u64 { middle(n) ^ black_box(2) }
fn main() {
    let begin = std::time::Instant::now();
    while begin.elapsed().as_secs() < 2 { black_box(outer(100000)); }
}
RUST
	MODES=
	echo '#!/bin/sh' >"$TMP/all"
	foreign frames32 cc cc -m32 -O1 -fno-omit-frame-pointer -o t_frames32 "$SRC/frames.c"
	foreign go go env GO111MODULE=off GOFLAGS= go build -o t_go t.go
	foreign rust rustc rustc -C opt-level=2 -o t_rust t.rs
	foreign ruststatic rustc rustc -C opt-level=2 -C target-feature=+crt-static -o t_ruststatic t.rs
	[ -z "$MODES" ] || sample_all "$MODES" "other languages"
}

# Without unwind tables in its C library: as far as main.
musl() {
	MODES='chain deep pushes tail alloca signal altinside noreturn pointers exec fork jitfp jitleaf'
	if ! command -v musl-gcc >/dev/null; then
		echo "== musl: not here"
		return
	fi
	musl-gcc -O2 -g -fomit-frame-pointer -fno-builtin -static -o "$TMP/chain" "$SRC/truth_chain.c" || wrong "musl"
	modes_of_chain >"$TMP/all"
	export TRUTH_ROOT=libc_start_main_stage2
	sample_all "$MODES" "musl, static"
	unset TRUTH_ROOT
}

lib a ''
lib b 'volatile char more[100]; more[7] = 1;'
matrix=${TRUTH_MATRIX:-short}
case $matrix in short)
	build cc c++ -O2 && watch cc -O2 ;;
esac
case $matrix in 1 | levels)
	for level in 0 1 2 3; do
		build cc c++ -O$level && watch cc -O$level
		if command -v clang++ >/dev/null; then
			build clang clang++ -O$level && watch clang -O$level
		fi
	done
	build cc c++ -O2 -fno-plt -Wl,-z,now && watch cc -O2 -fno-plt
	build cc c++ -O2 -fno-asynchronous-unwind-tables && watch cc -O2, with .debug_frame only ;;
esac
case $matrix in 1 | layouts)
	try -no-pie
	try -no-pie -Wl,-Ttext-segment=0x10000000
	try -Wl,-z,separate-code
	try -Wl,-z,noseparate-code
	try -Wl,--no-eh-frame-hdr
	try -Wl,-z,now,-z,relro,--hash-style=gnu,--gc-sections -ffunction-sections
	try -fuse-ld=lld
	try -fuse-ld=lld -Wl,--no-rosegment
	try -fuse-ld=lld -Wl,-z,separate-loadable-segments
	try -fuse-ld=mold
	try -fuse-ld=gold
	MODES=$(echo "$EVERY" | sed 's/ dlopen//')
	try -static
	try -static-pie
	try -static -Wl,--no-eh-frame-hdr
	musl
	languages ;;
esac
case $matrix in 1 | options)
	for option in -mfunction-return=thunk -mfunction-return=thunk-inline -mindirect-branch=thunk \
		'-mindirect-branch=thunk-inline -mfunction-return=thunk-inline' \
		-fcf-protection -mtls-dialect=gnu2 -fstack-clash-protection -fzero-call-used-regs=all \
		-mshstk -fstack-protector-all -fno-omit-frame-pointer \
		-fpatchable-function-entry=5 -flto -mpreferred-stack-boundary=3 -mharden-sls=all; do
		# shellcheck disable=SC2086
		try $option
	done
	if command -v clang++ >/dev/null; then
		for option in -mretpoline -fcf-protection -fsanitize=safe-stack; do
			build clang clang++ -O2 $option && watch clang -O2 $option
		done
	fi ;;
esac
finish
