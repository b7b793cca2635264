#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Copy a program and spoil its .eh_frame: spoil.py FROM TO flips|dear

flips: one byte in twenty of the instructions is another; dear: they are all "remember, restore", which
costs libunwind most. The program runs as before: nothing in it reads them.
"""
import os, random, struct, sys


def section(elf, name):
    shoff, = struct.unpack_from("<Q", elf, 0x28)
    size, number, names = struct.unpack_from("<HHH", elf, 0x3a)
    heads = [struct.unpack_from("<IIQQQQ", elf, shoff + i * size) for i in range(number)]
    for h in heads:
        at = heads[names][4] + h[0]
        if elf[at:elf.index(b"\0", at)] == name:
            return h[4], h[5]
    sys.exit(f"{sys.argv[1]}: no {name.decode()}")


def main():
    path, to, how = sys.argv[1:]
    elf = bytearray(open(path, "rb").read())
    at, size = section(elf, b".eh_frame")
    end, rng, spoilt = at + size, random.Random(7), 0
    while at + 4 < end:
        length, cie = struct.unpack_from("<II", elf, at)
        if length and cie:
            # pointer to the CIE, start, range, size of the augmentation (0 or, rarely, of an LSDA's address)
            insns = range(at + 17 + elf[at + 16], at + 4 + length)
            for i in insns:
                if how == "dear":
                    elf[i] = 0x0a + (i - insns.start) % 2
                    spoilt += 1
                elif rng.random() < 0.05:
                    elf[i] = rng.randrange(256)
                    spoilt += 1
        at += 4 + length
    with open(to, "wb") as f:
        f.write(elf)
    os.chmod(to, 0o755)
    if spoilt < 20:
        sys.exit(f"{path}: only {spoilt} bytes spoilt")


main()
