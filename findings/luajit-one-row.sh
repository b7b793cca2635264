#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# LuaJIT's interpreter has one unwind row for 16 KiB of assembler, wrong behind its own calls.
#
# Version: libluajit-5.1-2 2.1.0~beta3+git20220320+dfsg-4.1+deb12u1, x86-64, read with readelf and objdump.
# Behaviour: the whole interpreter is one FDE with the single row CFA = rsp + 80. Its helpers are reached by "call"
# from inside the same FDE: there rsp is 8 lower, and the word that the row takes for the return address is a
# slot of the interpreter. The tables exist and parse, so the stack looks unwound, and ends early.
# Seen:
#   0x8d70-0xcdb5 rows 1 CFA rsp+80 calls into itself 11
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1
f=$(find root -name 'libluajit-5.1.so.2.*' -type f)
readelf --debug-dump=frames-interp "$f" >fde 2>/dev/null
# The longest one.
range=$(sed -n 's/.* FDE .* pc=\([0-9a-f]*\)\.\.\([0-9a-f]*\)$/\1 \2/p' fde | while read -r a b; do
	echo $((0x$b - 0x$a)) "$a" "$b"
done | sort -n | tail -n 1 | cut -d ' ' -f 2,3)
from=0x$(echo "${range% *}" | sed 's/^0*//') to=0x$(echo "${range#* }" | sed 's/^0*//')
rows=$(awk -v pc="pc=${range% *}.." 'index($0, pc) { mine = 1; next } /^$/ { mine = 0 }
	mine && /^[0-9a-f]/ { n++; cfa = $2 } END { print "rows", n, "CFA", cfa }' fde)
calls=$(objdump -d --no-show-raw-insn "--start-address=$from" "--stop-address=$to" "$f" |
	sed -n 's/.*\tcall *\([0-9a-f][0-9a-f]*\) *<.*/\1/p' | while read -r x; do
	[ $((0x$x)) -lt $((from)) ] || [ $((0x$x)) -ge $((to)) ] || echo "$x"
done | wc -l)
seen="$from-$to $rows calls into itself $calls"
echo "$seen"
[ "$seen" = "0x8d70-0xcdb5 rows 1 CFA rsp+80 calls into itself 11" ]
