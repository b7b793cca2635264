# SPDX-License-Identifier: GPL-2.0-or-later
# Chains at the return to user space (-g defer, Linux 6.19): every sample has one, and two sessions that sample the same
# system calls, one along frame pointers at the sample, have the same chains.
. ./guest.sh
case $(uname -r) in
[1-5].* | 6.[0-9].* | 6.1[0-8].*) refuses "no deferred chains" "no deferred call chains" -g defer; finish ;;
esac
start frame_chain 600
one=$last
start frame_chain 600
ticks "deferred chains" deferred -n 3 -F 499 -g defer -p "$one,$last"
ticks "deferred chains of the system" deferred -n 2 -F 499 -g defer
# session HOW: the samples of each system call.
session() {
	proftop -b -n 1 -d 5 -g "$1" -e raw_syscalls:sys_enter -c 1 -p "$one,$last" --rows=0 --record "/tmp/$1.data" >/dev/null 2>&1
}
session fp &
session defer
wait $!
echo "@lab alike chains of the same calls"
for how in fp defer; do
	proftop --replay "/tmp/$how.data" --format=perf-script 2>/dev/null | awk -v how=$how '
		function put() { if (task != "") print how, task, time, ips }
		/raw_syscalls/ { put(); split($2, p, "/"); task = p[2]; time = $4; sub(":", "", time); ips = ""; next }
		NF { ips = ips ";" substr($1, length($1) - 3) }
		END { put() }'
done
echo "@lab end"
finish
