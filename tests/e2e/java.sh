#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Java: methods by name, whole chains, compiled and interpreted; the same rows in a replay.
. "$(dirname "$0")/lib"
need_perf
need java javac
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"

javac -d "$TMP" "$HERE/../programs/Chain.java" || skip "not installed: a javac that works"
export B TMP
python3 "$HERE/java.py" || bad=1
finish
