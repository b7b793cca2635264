#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# gcc describes a stack by r11, a register that no call preserves, while it probes a large frame.
#
# Version: cpp-12 12.2.0-14+deb12u1 (cc1), x86-64, -O2 -fstack-clash-protection.
# Behaviour: packages of several distributions are built with that option. In the probe loop of a frame of
# several pages the CFA is r11 + offset: an unwinder that keeps rsp, rbp and the preserved registers, because
# compilers name no others, loses all callers of samples in the loop, which touches each page for the first time
# and is where page faults are taken.
# Seen:
#   .cfi_def_cfa 11, 98312
#   .cfi_def_cfa_register 7
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get cpp-12=12.2.0-14+deb12u1 libisl23 libmpc3 libmpfr6 libgmp10
cat >big.c <<'C'
void use(char *);
void big(void)
{
	char page[100000];
	use(page);
}
C
export LD_LIBRARY_PATH="$PWD/root/usr/lib/x86_64-linux-gnu"
"$(find root -name cc1)" -quiet -O2 -fstack-clash-protection big.c -o big.s
sed -n 's/^[ \t]*\(\.cfi_def_cfa[^_].*\|\.cfi_def_cfa_register.*\)/\1/p' big.s | tee seen
printf '.cfi_def_cfa 11, 98312\n.cfi_def_cfa_register 7\n' >want
cmp want seen
