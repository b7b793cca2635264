# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit 0 if perf_event_open(2) lets us count cpu-clock of all processes on CPU 0."""
import ctypes
import os
import platform
import struct
import sys

number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
if number is None:
    sys.exit(1)
# type PERF_TYPE_SOFTWARE, size of the first version, config PERF_COUNT_SW_CPU_CLOCK
attr = struct.pack("IIQ", 1, 64, 0).ljust(64, b"\0")
fd = ctypes.CDLL(None, use_errno=True).syscall(
    ctypes.c_long(number), ctypes.create_string_buffer(attr, 64), ctypes.c_int(-1), ctypes.c_int(0),
    ctypes.c_int(-1), ctypes.c_ulong(0))
if fd >= 0:
    os.close(fd)
sys.exit(0 if fd >= 0 else 1)
