#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# One symbol has two readable names, by the demangler that a profiler happens to use.
#
# Version: binutils-x86-64-linux-gnu 2.40-2 (c++filt) and llvm-14 1:14.0.6-12 (llvm-cxxfilt).
# Behaviour: lambdas and the parts that a compiler splits off are written differently, so that rows of two tools,
# or a profile and its baseline, do not match by name, and a filter for "[clone" finds nothing.
# Seen:
#   foo() [clone .cold]
#   main::{lambda()#1}::operator()() const [clone .constprop.0]
#   foo() (.cold)
#   main::'lambda'()::operator()() const (.constprop.0)
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get binutils-x86-64-linux-gnu=2.40-2 libbinutils=2.40-2 llvm-14=1:14.0.6-12 libllvm14=1:14.0.6-12 libz3-4 libedit2
lib=$PWD/root/usr/lib
export LD_LIBRARY_PATH="$lib/llvm-14/lib:$lib/x86_64-linux-gnu"
for f in "root/usr/bin/x86_64-linux-gnu-c++filt" "$lib/llvm-14/bin/llvm-cxxfilt"; do
	printf '_Z3foov.cold\n_ZZ4mainENKUlvE_clEv.constprop.0\n' | "$f"
done | tee seen
cat >want <<'W'
foo() [clone .cold]
main::{lambda()#1}::operator()() const [clone .constprop.0]
foo() (.cold)
main::'lambda'()::operator()() const (.constprop.0)
W
cmp want seen
