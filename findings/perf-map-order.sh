#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# perf lets the older of two overlapping rows of a perf map win, but JIT compilers append the newer ones.
#
# Version: linux-perf 6.1.176-1; the JIT is a C program compiled with the machine's cc.
# Behaviour: code memory is used again, so that a map that is only appended to holds a dead function and the living
# one at the same address. perf names the samples by the row that comes first in the file, whether the two have the
# same range or the new one lies inside of the old.
# Seen (name of the hottest symbol, for rows in the order old, new):
#   same range: old
#   inside: old
#   inside, new row first: new
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get linux-perf=6.1.176-1
cat >jit.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static const unsigned char spin[] = {0xb9, 0, 0xe1, 0xf5, 5, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned at, size;
	char path[64], name[16];
	memcpy(page + 0x100, spin, sizeof(spin));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	for (int i = 1; i < argc && sscanf(argv[i], "%x,%x,%15s", &at, &size, name) == 3; i++)
		fprintf(map, "%lx %x %s\n", (unsigned long)page + at, size, name);
	fclose(map);
	printf("%s\n", path);
	for (int i = 0; i < 8; i++)
		((void (*)(void))(page + 0x100))();
	return 0;
}
C
cc -O1 jit.c -o jit
perf=$PWD/root/usr/bin/perf
top() {
	map=$("$perf" record -q -e cpu-clock:u -o data -- ./jit "$@")
	"$perf" report -i data --stdio --sort sym 2>/dev/null | sed -n 's/^ .*\[\.\] \([a-z]*\).*/\1/p' | head -n 1
	rm -f "$map"
}
{
	echo "same range: $(top 100,20,old 100,20,new)"
	echo "inside: $(top 0,1000,old 100,20,new)"
	echo "inside, new row first: $(top 100,20,new 0,1000,old)"
} | tee seen
printf 'same range: old\ninside: old\ninside, new row first: new\n' >want
cmp want seen
