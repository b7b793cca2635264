#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The native stack of a CHICKEN program is its history, not its call chain.
#
# Version: chicken-bin, libchicken11, libchicken-dev 5.3.0-1; compiled with the machine's cc.
# Behaviour: CHICKEN compiles Scheme to C functions that never return: the C stack is the nursery of its garbage
# collector, thrown away by longjmp when it is full. Every frame has right unwind tables and the chain from leaf
# to main is complete, but for a loop of two procedures in tail position, which has a depth of one, it holds
# hundreds of frames of calls that are over; then it is short again.
# Seen (depth by backtrace(3) at each 10th of 20,000 tail calls; the figures differ by compiler):
#   depth grows from 11 to 5613 and falls 9 times
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get chicken-bin=5.3.0-1 libchicken11=5.3.0-1 libchicken-dev=5.3.0-1
cat >loop.scm <<'S'
(import (chicken foreign))
(foreign-declare "#include <execinfo.h>\nstatic void *frames[100000];")
(define depth (foreign-lambda* int () "C_return(backtrace(frames, 100000));"))
(define least 100000)
(define most 0)
(define last 0)
(define falls 0)
(define (look)
  (let ((d (depth)))
    (if (< d last) (set! falls (+ falls 1)))
    (if (< d least) (set! least d))
    (if (> d most) (set! most d))
    (set! last d)))
(define (ping n) (if (= 0 (modulo n 10)) (look)) (if (> n 0) (pong (- n 1)) n))
(define (pong n) (if (> n 0) (ping (- n 1)) n))
(ping 20000)
(print least " " most " " falls)
S
CHICKEN_REPOSITORY_PATH=$(dirname "$(find "$PWD/root" -name types.db)")
lib=$(dirname "$(find "$PWD/root" -name libchicken.so.11)")
export CHICKEN_REPOSITORY_PATH LD_LIBRARY_PATH="$lib"
root/usr/bin/chicken loop.scm -output-file loop.c
cc -w -O1 -fwrapv -fno-strict-aliasing -DHAVE_CHICKEN_CONFIG_H -Iroot/usr/include/chicken loop.c -o loop \
	"$lib/libchicken.so.11" -lm
./loop >seen
read -r least most falls <seen
echo "depth grows from $least to $most and falls $falls times"
[ "$least" -lt 100 ] && [ "$most" -gt 500 ] && [ "$falls" -ge 2 ]
