# SPDX-License-Identifier: GPL-2.0-or-later
# A hardware PMU: events, modifiers, raw codes, groups, more events than counters, and the shares of perf.
. ./guest.sh
[ -d /sys/bus/event_source/devices/armv8_pmuv3 ] || [ -d /sys/bus/event_source/devices/cpu ] ||
	{ skip "no PMU on this machine"; finish; }
start recurse 600
recurse=$last
for event in cycles cycles:u cycles:k r11 armv8_pmuv3/event=0x11/; do
	ticks "$event" taken -n 2 -F 199 -e "$event"
done
ticks "default event" event:cycles -n 2 -F 199
ticks "more events than counters" sums -n 3 -F 99 -e "cycles,r8,r10,r11,r12,r14,r1b,cycles:u"
# QEMU counts instructions with icount only: see ipc.sh.
ticks "group" group:cycles,r11 -n 3 -F 199 -e '{cycles,r11}' -p "$recurse"
low_limit
ticks "throttled by the kernel" throttled -n 3 -c 20000 -e cycles -p "$recurse"
no_limit
# The same recording by both.
perf record -q -e cycles:u -F 199 --call-graph dwarf,16384 -p "$recurse" -o /tmp/perf.data -- sleep 5 2>/tmp/err
echo "@lab shares perf and proftop"
perf report -i /tmp/perf.data --no-children --stdio -g none -F overhead,symbol 2>/dev/null |
	sed -n 's/^ *\([0-9.]*\)% *\[\.\] \(leaf_[abc]\).*/perf \2 \1/p'
proftop --replay /tmp/perf.data -b --rows=0 --format=ndjson
echo "@lab end"
finish
