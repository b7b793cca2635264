# SPDX-License-Identifier: GPL-2.0-or-later
# An ordinary user, at each level of kernel.perf_event_paranoid.
. ./guest.sh
as_user() {
	su user -s /bin/sh -c "$*"
}
as_user "recurse 600" >/dev/null 2>&1 &
pids="$pids $!"
sleep 1
recurse=$(pidof recurse)
for level in 3 2 1; do
	sysctl -qw kernel.perf_event_paranoid=$level
	if [ $level = 3 ] && [ "$(uname -r | grep -c -- -amd64)" = 0 ] && ! grep -q 3 /proc/sys/kernel/perf_event_paranoid; then
		skip "paranoid 3: this kernel has no such level"
		continue
	fi
	as_user "proftop -b -n 1 -d 2 -F 99 -p ${recurse%% *} --rows=5" >/tmp/out 2>/tmp/err
	rc=$?
	if [ $level = 3 ]; then
		if [ $rc = 3 ] && grep -q 'perf_event_paranoid' /tmp/err; then ok "paranoid 3 is refused"; else
			wrong "paranoid 3: exit $rc: $(cat /tmp/err)"; fi
	elif [ $rc = 0 ] && grep -q 'recurse' /tmp/out; then
		ok "paranoid $level: own processes"
	else
		wrong "paranoid $level: exit $rc: $(cat /tmp/err /tmp/out | head -n 12)"
	fi
done
sysctl -qw kernel.perf_event_paranoid=2
sysctl -qw kernel.kptr_restrict=2
ticks "kptr_restrict 2" sums -n 2 -F 99 -e cpu-clock
finish
