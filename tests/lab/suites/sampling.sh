# SPDX-License-Identifier: GPL-2.0-or-later
# Events of all kinds open, count and add up; a program with a known profile has it.
. ./guest.sh
start recurse 600
recurse=$last
start dd if=/dev/zero of=/dev/null bs=64k

for event in cpu-clock task-clock context-switches page-faults; do
	ticks "$event" sums -n 2 -F 99 -e "$event"
done
ticks "two events" sums -n 2 -F 99 -e cpu-clock,page-faults
UNTIL='"pending":0,.*"symbol":"leaf_c"'
ticks "names and shares" recurse -n 30 -F 99 -e cpu-clock -p "$recurse"
UNTIL=
for event in sched:sched_switch raw_syscalls:sys_enter kprobe:vfs_read kretprobe:vfs_read; do
	ticks "$event" taken -n 2 -c 100 -e "$event"
done
low_limit
ticks "throttled by the kernel" throttled -n 3 -c 100000 -e cpu-clock -p "$recurse"
no_limit
ticks "uprobe" taken -n 2 -c 100000 -e uprobe:/programs/recurse:leaf_a -p "$recurse"
refuses "kprobe of an unknown function" "no_such_function" -e kprobe:no_such_function
finish
