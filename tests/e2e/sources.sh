#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sources of names: each source with a program that has only that one, beside perf's answer.
# SOURCES=all: with the compilers and runtimes of other languages.
. "$(dirname "$0")/lib"
need_perf
need cc

export B
python3 "$HERE/sources.py"
bad=$?
[ "$bad" = 77 ] && exit 77
finish
