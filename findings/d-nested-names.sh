#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A nested function of D that gdc has inlined is "parse" and nothing else; ldc writes whose it is.
#
# Version: gdc-12 12.2.0-14+deb12u1, ldc 1:1.30.0-1+b1 (LLVM 14), x86-64, -O1 -g.
# Behaviour: where a nested function or a lambda is inlined, no symbol is left of it. Its entry of .debug_info has
# DW_AT_linkage_name with ldc, so that demanglers print s.main.parse; with gdc it has DW_AT_name alone, although
# gdc gives the function around it one. Two programs' or two functions' "parse" are one name then, unless a reader
# puts the names of the entries around it together.
# Seen:
#   gdc D main _Dmain
#   gdc __lambda2 -
#   gdc parse -
#   ldc D main _Dmain
#   ldc __lambda2 _D1s4mainFZ9__lambda2MFNbNiiZi
#   ldc parse _D1s4mainFZ5parseMFNbNiiZi
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get gdc-12=12.2.0-14+deb12u1 libgphobos-12-dev=12.2.0-14+deb12u1 ldc=1:1.30.0-1+b1 libphobos2-ldc-shared-dev=1:1.30.0-1+b1 \
	libphobos2-ldc-shared100=1:1.30.0-1+b1 libllvm14=1:14.0.6-12
cat >s.d <<'D'
module s;
__gshared int sum;
void main() {
    int parse(int n) { foreach (i; 0 .. n) sum += i * n; return sum; }
    auto twice = (int n) { foreach (i; 0 .. n) sum ^= i; return parse(n); };
    foreach (i; 0 .. 100) { parse(i); twice(i); }
}
D
gcc=$PWD/root/usr/lib/gcc/x86_64-linux-gnu/12
"$gcc/d21" -quiet -O1 -g -I "$gcc/include/d" s.d -o gdc.s && as gdc.s -o gdc.o
ldc=$(find "$PWD/root/usr/lib/ldc" -type d -path '*include/d' | head -1)
LD_LIBRARY_PATH=$PWD/root/usr/lib/x86_64-linux-gnu root/usr/bin/ldc2 -conf= -I"$ldc" -O1 -g -c s.d -of=ldc.o
for c in gdc ldc; do
	readelf --debug-dump=info $c.o | sed 's/^ *<[0-9a-f]*> *//; s/(indirect string, offset: [^)]*): //' | awk -v c=$c '
		function show() { if (name == "D main" || name == "parse" || name == "__lambda2") print c, name, link ? link : "-" }
		/Abbrev Number/ { if (is) show(); is = /DW_TAG_subprogram/; name = link = "" }
		is && /DW_AT_name/ { sub(/.*: */, ""); sub(/ *$/, ""); name = $0 }
		is && /DW_AT_linkage_name/ { sub(/.*: */, ""); sub(/ *$/, ""); link = $0 }
		END { if (is) show() }'
done | sort -u | tee seen
cat >want <<'W'
gdc D main _Dmain
gdc __lambda2 -
gdc parse -
ldc D main _Dmain
ldc __lambda2 _D1s4mainFZ9__lambda2MFNbNiiZi
ldc parse _D1s4mainFZ5parseMFNbNiiZi
W
cmp want seen
