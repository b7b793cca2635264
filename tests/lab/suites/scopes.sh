# SPDX-License-Identifier: GPL-2.0-or-later
# Cgroups of both versions; namespaces of PIDs and of time, with the target inside, and with proftop inside.
. ./guest.sh
cp /programs/recurse /tmp/inside
start recurse 600
start /tmp/inside 600
inside=$last

# rows NAME JUDGE PREFIX ARGS...: as ticks(), with proftop behind the command PREFIX.
rows() {
	name=$1 judge=$2 prefix=$3
	shift 3
	echo "@lab ticks $name $judge"
	$prefix proftop -b -d "${TICK:-2}" -n 4 -F 99 -e cpu-clock --format=ndjson --rows=40 "$@" 2>/tmp/err
	rc=$?
	echo "@lab end"
	[ $rc = 0 ] || wrong "$name: exit $rc: $(head -n 3 /tmp/err)"
}

mkdir /sys/fs/cgroup/scope && echo $inside >/sys/fs/cgroup/scope/cgroup.procs
rows "cgroup v2" only:inside "" -G scope
# The controller may be taken from version 2.
if mkdir -p /tmp/v1 && mount -t cgroup -o perf_event none /tmp/v1; then
	mkdir /tmp/v1/scope && echo $inside >/tmp/v1/scope/cgroup.procs
	rows "cgroup v1" only:inside "" -G scope
	rmdir /tmp/v1/scope 2>/dev/null
	umount /tmp/v1
else
	skip "cgroup v1: this kernel has none"
fi

unshare -p -f --mount-proc /tmp/inside 600 >/dev/null 2>&1 &
pids="$pids $!"
sleep 2
other=$(pidof inside | tr ' ' '\n' | grep -vx $inside | head -n 1)
pids="$pids $other"
rows "target in a PID namespace" only:inside "" -p "$other"
rows "in a PID namespace" outside "unshare -p -f --mount-proc"

for seconds in 90000 -2; do
	time_scope $seconds true
	case $? in
	0) rows "in a time namespace, $seconds s" recurse "time_scope $seconds" -p "$inside" ;;
	*) skip "time namespace: not on this kernel" ;;
	esac
done
finish
