#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Chez Scheme's calls leave the native stack as it is, at any depth.
#
# Version: chezscheme 9.5.8+dfsg-1, x86-64.
# Behaviour: Scheme frames lie in segments on the heap, addressed by a register of their own. The native stack
# pointer is the same in a call 0 deep and in one 1,000,000 deep that is not a tail call: a copy of the native
# stack, or a walk by frame pointers, has the C start code and not one Scheme caller.
# Seen (difference of rsp, as getcontext(3) reports it, between the two):
#   0 bytes for 1000000 calls
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get chezscheme=9.5.8+dfsg-1
cat >deep.ss <<'S'
(load-shared-object "libc.so.6")
(define context (foreign-alloc 4096))
(define save (foreign-procedure "getcontext" (uptr) int))
(define (sp) (save context) (foreign-ref 'uptr context 160))
(define at 0)
(define (deep n) (if (= n 0) (begin (set! at (sp)) 0) (+ 1 (deep (- n 1)))))
(deep 0)
(define first at)
(define calls (deep 1000000))
(display (- first at))
(display " bytes for ")
(display calls)
(display " calls\n")
S
boot=$(dirname "$(find "$PWD/root" -name petite.boot)")
seen=$(root/usr/bin/chezscheme -b "$boot/petite.boot" -b "$boot/scheme.boot" --script deep.ss)
echo "$seen"
[ "$seen" = "0 bytes for 1000000 calls" ]
