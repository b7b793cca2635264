# SPDX-License-Identifier: GPL-2.0-or-later
"""deep.py DEPTH SECONDS: spin below so many calls."""
import sys
import time


def leaf(end):
    while time.time() < end:
        pass


def down(n, end):
    if n:
        down(n - 1, end)
    else:
        leaf(end)


sys.setrecursionlimit(10000)
down(int(sys.argv[1]), time.time() + int(sys.argv[2]))
