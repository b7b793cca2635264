# SPDX-License-Identifier: GPL-2.0-or-later
# Instructions per cycle of loops with a known number of instructions; only where instructions count (ICOUNT=1).
. ./guest.sh
perf stat -e instructions:u,cycles:u ipc_truth 20 >/tmp/known 2>/tmp/stat || { skip "IPC: $(cat /tmp/stat)"; finish; }
grep -qE '^ *[0-9,.]+ +instructions' /tmp/stat || { skip "IPC: instructions do not count here"; finish; }
awk '/instructions/ { gsub(",", "", $1); i = $1 } /cycles/ { gsub(",", "", $1); c = $1 } END { print "perf stat:", i, "instructions,", c, "cycles" }' /tmp/stat
ticks "instructions counted" counted:560000000 -n 99 -d 1 -F 499 -e '{instructions:u,cycles:u}' -- ipc_truth 20
start ipc_truth 100000000
ticks "IPC of a group that is read" ipc:0.05 -n 1 -d 10 -F 999 -e '{cycles:u,instructions:u}:S' -p "$last"
ticks "IPC of a group" ipc:0.15 -n 1 -d 10 -F 999 -e '{cycles:u,instructions:u}' -p "$last"
finish
