# SPDX-License-Identifier: GPL-2.0-or-later
# Stacks of programs that know their call chains: none is wrong and shown as certain.
. ./guest.sh
[ -e /proc/sys/kernel/perf_event_paranoid ] || finish
event=cpu-clock
[ ! -d /sys/bus/event_source/devices/armv8_pmuv3 ] || event=cycles
{
	echo '#!/bin/sh'
	for mode in $MODES; do
		echo "/programs/truth_chain $mode $SECONDS_EACH"
	done
	echo "/programs/truth_throw $SECONDS_EACH"
} >/tmp/all
chmod +x /tmp/all
proftop -b -d 5 -F 499 -e $event --rows=1 --record /tmp/data -- /tmp/all >/tmp/out 2>/tmp/err ||
	wrong "truth: exit $?: $(cat /tmp/err)"
echo "@lab chains truth $MODES throw"
chains /tmp/data
echo "@lab end"
finish
