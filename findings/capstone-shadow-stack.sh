#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# capstone 4 reads the shadow stack's "incsspq" as a fence, "rdpid" as "rdseed", and stops at "rdsspq".
#
# Version: libcapstone4 4.0.2-5 through python3-capstone 4.0.2-5, x86-64.
# Behaviour: "incsspq" and "rdsspq" are in libgcc's unwinder, that is, in every C++ program. The first and "rdpid"
# come back as other, valid instructions of the same length, so that an annotated listing looks right; at "rdsspq"
# the disassembly ends, as at data. "endbr64", of the same extension, is known.
# Seen:
#   f30f1efa endbr64
#   f3480faee8 lfence
#   f30fc7f8 rdseed eax
#   f3480f1ec8 -
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	apt-get -qq -o APT::Sandbox::User=root download "$@"
	for d in *.deb; do dpkg-deb -x "$d" root; done
}
export LC_ALL=C

get libcapstone4=4.0.2-5 python3-capstone=4.0.2-5
cat >d.py <<'P'
import capstone
md = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
for code in ("f30f1efa", "f3480faee8", "f30fc7f8", "f3480f1ec8"):
    print(code, " ".join(" ".join((i.mnemonic, i.op_str)).strip() for i in md.disasm(bytes.fromhex(code), 0)) or "-")
P
lib=$(dirname "$(find "$PWD/root" -name libcapstone.so.4)")
LD_LIBRARY_PATH=$lib PYTHONPATH=$PWD/root/usr/lib/python3/dist-packages python3 d.py | tee seen
cat >want <<'W'
f30f1efa endbr64
f3480faee8 lfence
f30fc7f8 rdseed eax
f3480f1ec8 -
W
cmp want seen
