# SPDX-License-Identifier: GPL-2.0-or-later
# CPUs that go offline and come back while proftop samples: each sum stays exact.
. ./guest.sh
start recurse 600
cpus=$(ls -d /sys/devices/system/cpu/cpu[1-9]* 2>/dev/null)
[ -n "$cpus" ] || { skip "hotplug: one CPU only"; finish; }
(
	# One after the other, then all but the first together.
	for round in 1 2; do
		for cpu in $cpus; do
			echo 0 >"$cpu/online"
			sleep 1
			echo 1 >"$cpu/online"
		done
		for cpu in $cpus; do echo 0 >"$cpu/online"; done
		sleep 2
		for cpu in $cpus; do echo 1 >"$cpu/online"; done
		sleep 1
	done
) &
loop=$!
ticks "hotplug" sums -n "${HOTPLUG_TICKS:-12}" -F 99 -e cpu-clock
wait $loop
ticks "after hotplug" allcpus -n 2 -F 99 -e cpu-clock
away=$(echo "$cpus" | tail -n 1)
# For a moment: the list of online CPUs is the same before and after it, as in a suspend.
for cpu in $cpus; do start recurse 600; done
(
	sleep 5
	echo 0 >"$away/online"
	echo 1 >"$away/online"
) &
loop=$!
ticks "hotplug for a moment" sampled -n 7 -F 99 -e cpu-clock
wait $loop
echo 0 >"$away/online"
refuses "CPU offline" "not online" -C "${away##*cpu}" -e cpu-clock
echo 1 >"$away/online"
finish
