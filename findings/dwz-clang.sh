#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# dwz refuses every program that clang builds with -g: DWARF 5 as clang writes it is not known to it.
#
# Version: dwz 0.15-1, clang-14 1:14.0.6-12; linked with the machine's ld.
# Behaviour: gcc's DWARF 5 is compressed, clang's ends with an error at .debug_addr, and the file stays as it was;
# with -gdwarf-4 it works. So in one distribution packages built by gcc have debug files that lean on a
# second one (.gnu_debugaltlink) and those built by clang have not.
# Seen:
#   -gdwarf-5 1 Unknown debugging section .debug_addr
#   -gdwarf-4 0
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get dwz=0.15-1 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 libllvm14=1:14.0.6-12 libz3-4 libedit2
cat >a.c <<'C'
struct point { int x, y; long z; };
static int sum(struct point *p) { return p->x + p->y; }
int twice(struct point *p) { return 2 * sum(p); }
C
lib=$PWD/root/usr/lib
export LD_LIBRARY_PATH="$lib/llvm-14/lib:$lib/x86_64-linux-gnu"
for v in 5 4; do
	"$lib/llvm-14/bin/clang" -O1 -fPIC "-gdwarf-$v" -c a.c -o a.o
	ld -shared a.o -o a.so
	rc=0
	said=$(root/usr/bin/dwz a.so 2>&1) || rc=$?
	echo "-gdwarf-$v $rc${said:+ ${said##*: }}"
done | tee seen
printf -- '-gdwarf-5 1 Unknown debugging section .debug_addr\n-gdwarf-4 0\n' >want
cmp want seen
