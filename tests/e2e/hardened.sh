#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The program is built as doc/SECURITY.md says: relocations are read-only, stacks and copies are checked.
. "$(dirname "$0")/lib"
need readelf
case $B in *san-* | *debug*) skip "not on this machine: a release build" ;; esac

dynamic=$(readelf -dW "$PROFTOP")
# Libraries that are linked in may have them, too.
symbols=$(readelf -W --syms "$B/symbols.a")
headers=$(readelf -lW "$PROFTOP")
has() {
	printf '%s\n' "$1" | grep -Eq -- "$2" || wrong "no $2: $3"
}
has "$dynamic" 'FLAGS.*NOW' 'all relocations before the start'
has "$headers" 'GNU_RELRO' 'relocations are read-only'
has "$headers" 'GNU_STACK .* RW ' 'no code on the stack'
has "$headers" '^Elf file type is DYN' 'its own addresses are random'
has "$symbols" '__stack_chk_fail' 'stack protector'
has "$symbols" '__(memcpy|read|snprintf|pread64)_chk' '_FORTIFY_SOURCE'
finish
