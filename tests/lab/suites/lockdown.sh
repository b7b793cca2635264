# SPDX-License-Identifier: GPL-2.0-or-later
# A kernel in lockdown: the reason is named.
. ./guest.sh
grep -q '\[confidentiality\]' /sys/kernel/security/lockdown 2>/dev/null || { skip "lockdown: not on this kernel"; finish; }
refuses "kprobe in lockdown" "lockdown" -e kprobe:vfs_read
if proftop --check 2>&1 | grep -qi lockdown; then ok "--check names lockdown"; else wrong "--check: no word of lockdown"; fi
start recurse 600
ticks "sampling in lockdown" sums -n 2 -F 99 -e cpu-clock
finish
