#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clang 14 accepts -fasynchronous-unwind-tables for AArch64 and writes none for epilogues.
#
# Version: clang-14 1:14.0.6-12 and clang-19 1:19.1.7-3~deb12u1, --target=aarch64-linux-gnu -O2.
# Behaviour: after "ldp x29, x30, [sp], #48" the CFA is still described by x29, which is the caller's by then, so
# that at "ret" the row finds the caller's own return address: the caller is missing. clang 19, for the same source
# and options, describes each step. On x86-64 clang 14 does too.
# Seen (directives between the last branch of the function and its ret):
#   clang-14 aarch64 0
#   clang-19 aarch64 7
#   clang-14 x86_64 3
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 libllvm14=1:14.0.6-12 clang-19=1:19.1.7-3~deb12u1 \
	libclang-cpp19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 libz3-4 libedit2
cat >work.c <<'C'
int use(int);
int work(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += use(i);
	return s;
}
C
lib=$PWD/root/usr/lib
export LD_LIBRARY_PATH="$lib/llvm-14/lib:$lib/llvm-19/lib:$lib/x86_64-linux-gnu"
for c in "14 aarch64" "19 aarch64" "14 x86_64"; do
	v=${c% *} m=${c#* }
	"$lib/llvm-$v/bin/clang" "--target=$m-linux-gnu" -O2 -fasynchronous-unwind-tables -S work.c -o work.s
	awk -v c="clang-$v $m" '/^[ \t]+(b|b\.[a-z]+|j[a-z]+)[ \t]/ { n = 0 } /^[ \t]+\.cfi_/ { n++ }
		/^[ \t]+retq?$/ { print c, n }' work.s
done | tee seen
printf 'clang-14 aarch64 0\nclang-19 aarch64 7\nclang-14 x86_64 3\n' >want
cmp want seen
