#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Guile's compiled files are shared objects whose symbols are relative to their section.
#
# Version: guile-3.0-libs 3.0.8-2, read with readelf of binutils 2.40.
# Behaviour: a .go file is ELF of type DYN for machine "None". In a DYN file the value of a symbol is a
# virtual address; here it is an offset in .rtl-text, while the DWARF of the same file has addresses. A
# reader that takes both alike is wrong by sh_addr of that section (0xe8), a little more than one function.
# Seen, for primitive-eval of ice-9/eval.go:
#   type DYN machine None section 0xe8 symbol 0x48 DWARF 0x130
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get guile-3.0-libs=3.0.8-2
f=$(find root -path '*/ice-9/eval.go')
readelf -W -h -S -s --debug-dump=info "$f" >all 2>/dev/null
seen=$(awk '
	/^  Type:/ { type = $2 }
	/^  Machine:/ { machine = $2 }
	/ \.rtl-text +PROGBITS/ { sub(/.*PROGBITS +/, ""); section = $1 }
	/FUNC .* primitive-eval$/ { symbol = $2 }
	/DW_AT_name .*: primitive-eval$/ { mine = 1 }
	mine && /DW_AT_low_pc/ { dwarf = $NF; mine = 0 }
	END { sub(/^0+/, "0x", section); sub(/^0+/, "0x", symbol)
	      print "type", type, "machine", machine, "section", section, "symbol", symbol, "DWARF", dwarf }' all)
echo "$seen"
[ "$seen" = "type DYN machine None section 0xe8 symbol 0x48 DWARF 0x130" ]
