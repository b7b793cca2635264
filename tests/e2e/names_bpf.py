# SPDX-License-Identifier: GPL-2.0-or-later
"""Load a BPF program called hot_bpf, and have the kernel run it until killed."""
import ctypes
import os
import platform
import struct
import sys

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LOAD, TEST_RUN, SOCKET_FILTER = 5, 10, 1
syscall = ctypes.CDLL(None, use_errno=True).syscall


def instruction(code, regs=0, off=0, imm=0):
    return struct.pack("<BBhi", code, regs, off, imm)


# r0 = 0; r1 = 500; do r1 -= 1, r0 += 3 while r1; return r0
program = instruction(0xb7, 0) + instruction(0xb7, 1, 0, 500) + instruction(0x17, 1, 0, 1) + \
    instruction(0x07, 0, 0, 3) + instruction(0x55, 1, -3, 0) + instruction(0x95)
code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
attr = struct.pack("<IIQQIIQII16s", SOCKET_FILTER, len(program) // 8, ctypes.addressof(code),
                   ctypes.addressof(licence), 0, 0, 0, 0, 0, b"hot_bpf")
buf = ctypes.create_string_buffer(attr.ljust(128, b"\0"))
fd = syscall(BPF, LOAD, buf, 128)
if fd < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
packet = ctypes.create_string_buffer(64)
run = struct.pack("<IIIIQQIIIIQQII", fd, 0, 64, 0, ctypes.addressof(packet), 0, 1000000, 0, 0, 0, 0, 0, 0, 0)
while True:
    buf = ctypes.create_string_buffer(run.ljust(128, b"\0"))
    if syscall(BPF, TEST_RUN, buf, 80) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
