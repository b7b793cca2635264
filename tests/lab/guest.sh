# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the suites, in the guest. Output is read by judge.py: lines that begin with "@lab", and ticks.
PATH=$PATH:/programs
pids=
last=0

# Interrupts take long in an emulated machine: the kernel would lower its limit of the rate.
sysctl -qw kernel.perf_cpu_time_max_percent=0

# low_limit, no_limit: of the samples a second, above which the kernel throttles. It can be set only while the kernel
# would lower it itself.
low_limit() {
	sysctl -qw kernel.perf_cpu_time_max_percent=99 kernel.perf_event_max_sample_rate=1000
}

no_limit() {
	sysctl -qw kernel.perf_event_max_sample_rate=100000 kernel.perf_cpu_time_max_percent=0
}

ok() {
	echo "@lab ok $*"
}

wrong() {
	echo "@lab wrong $*"
}

skip() {
	echo "@lab skip $*"
}

# start COMMAND...: in the background, until the suite ends.
start() {
	"$@" >/dev/null 2>&1 &
	last=$!
	pids="$pids $last"
}

# ticks NAME JUDGE ARGS...: sample with proftop, TICK seconds a tick; judge.py checks the ticks by the contract and by JUDGE.
# UNTIL: end at the first tick that matches; a slow machine may need many.
ticks() {
	echo "@lab ticks $1 $2"
	name=$1
	shift 2
	if [ -n "${UNTIL:-}" ]; then
		proftop -b -d "${TICK:-2}" --format=ndjson --rows=40 "$@" 2>/tmp/err | sed "/$UNTIL/q"
	else
		proftop -b -d "${TICK:-2}" --format=ndjson --rows=40 "$@" 2>/tmp/err
	fi
	rc=$?
	echo "@lab end"
	[ $rc = 0 ] || wrong "$name: exit $rc: $(head -n 3 /tmp/err)"
}

# refuses NAME WORDS ARGS...: proftop fails, and its message has these words.
refuses() {
	name=$1 words=$2
	shift 2
	if proftop -b -n 1 "$@" >/dev/null 2>/tmp/err; then
		wrong "$name: was not refused"
	elif grep -qF -e "$words" /tmp/err; then
		ok "$name"
	else
		wrong "$name: no '$words' in: $(cat /tmp/err)"
	fi
}

finish() {
	kill $pids 2>/dev/null
	exit 0
}
