# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python that call an extension in C, which calls the C library and the kernel (a picture of README.md)."""
import resource
import sys
import time


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def watch(limit, times):
    return sum(memory() > limit for _ in range(times))


def main():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        watch(1 << 20, 10000)


main()
