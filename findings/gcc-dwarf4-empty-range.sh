#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In DWARF 4 of gcc, an inlined function at the begin of a file can have a list of ranges that ends before it begins.
#
# Version: gcc-12 12.2.0-14+deb12u1 (cc1 of cpp-12), binutils 2.40-2, x86-64, -O2 -gdwarf-4.
# Behaviour: the ranges of an inlined function begin with an empty one, where its first statement has no code. Ranges are
# offsets from the begin of the text, so in the first function of a file the empty one is a pair of zeros, which is the
# end of a list in DWARF 4: all its code belongs to the caller for readers of debug information, with the line of the
# inlined function. With -gdwarf-5, where a list ends by a code of its own, it is right.
# Seen (functions at offset 16: -gdwarf-4, -gdwarf-5):
#   one
#   put one
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get cpp-12=12.2.0-14+deb12u1 libisl23 libmpc3 libmpfr6 libgmp10 binutils-x86-64-linux-gnu=2.40-2 \
	libbinutils=2.40-2 libctf0=2.40-2 libgprofng0=2.40-2 libjansson4
cat >sum.c <<'C'
extern volatile unsigned long sum;
static inline __attribute__((always_inline)) void put(int n)
{
	for (int i = 0; i < n; i++)
		sum += i * sum;
}
__attribute__((noinline)) void one(void)
{
	put(6);
	sum++;
}
C
export LD_LIBRARY_PATH="$PWD/root/usr/lib/x86_64-linux-gnu"
bin=root/usr/bin/x86_64-linux-gnu
for v in 4 5; do
	"$(find root -name cc1)" -quiet -O2 -gdwarf-$v sum.c -o sum.s
	$bin-as -o sum.o sum.s
	$bin-addr2line -i -f -e sum.o 0x10 | sed -n 'p;n' | paste -s -d ' '
done | tee seen
printf 'one\nput one\n' >want
cmp want seen
