#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# OpenSSL's SHA code finds its caller by a word below rsp, which no copy of a stack that begins at rsp has.
#
# Version: libssl3 3.0.20-1~deb12u2 (libcrypto.so.3), x86-64.
# Behaviour: PERF_SAMPLE_STACK_USER copies from the stack pointer upward, and profilers read no more. In the AVX2 code
# of SHA-1, SHA-256 and SHA-512 the caller's rsp was saved 8 bytes below the rsp of the rounds, and the table says so
# (rsp - 8, read, plus 8). That is correct for a debugger, which reads memory; but most instructions of these three
# functions have no caller in a sample, and rbp is a working register. CPUs with SHA instructions take the third alone.
# Seen (bytes of each function, bytes whose frame is found by a word below rsp):
#   6760 6342
#   5155 4755
#   5885 5372
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get libssl3=3.0.20-1~deb12u2
readelf --debug-dump=frames "$(find root -name libcrypto.so.3)" >frames 2>/dev/null
cat >below.py <<'P'
import re
for block in open("frames").read().split("\n\n"):
    head = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", block)
    if not head or "(rsp): -" not in block:
        continue
    begin, end = (int(h, 16) for h in head.groups())
    at, since, below = begin, None, 0
    for line in block.split("\n"):
        if "advance_loc" in line:
            at = int(line.split()[-1], 16)
        if "def_cfa" in line or "restore_state" in line:
            below += at - since if since is not None else 0
            since = at if "(rsp): -" in line else None
    print(end - begin, below)
P
python3 below.py | tee seen
printf '6760 6342\n5155 4755\n5885 5372\n' >want
cmp want seen
