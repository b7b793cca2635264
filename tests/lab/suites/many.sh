# SPDX-License-Identifier: GPL-2.0-or-later
# Many CPUs: time to the first rows beside perf top's, threads, descriptors and memory per CPU, the header at 80x24.
. ./guest.sh
nr=$(grep -c '^processor' /proc/cpuinfo)
start recurse 6000
start recurse 6000

seconds() {
	cut -d' ' -f1 /proc/uptime
}

# since T: seconds from T to now.
since() {
	awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "%.1f", b - a }'
}

# until_rows PATTERN FILE COMMAND...: seconds from the start of the command to a line like PATTERN in its FILE.
until_rows() {
	pattern=$1 file=$2
	shift 2
	begin=$(seconds)
	"$@" >"$file" 2>/tmp/err &
	program=$!
	until grep -qE "$pattern" "$file"; do
		kill -0 $program 2>/dev/null || break
		[ "$(since "$begin" | cut -d. -f1)" -lt "${ROWS_LIMIT:-300}" ] || break
		sleep 0.2
	done
	time=$(since "$begin")
	grep -qE "$pattern" "$file" || time="more than $time"
	kill $program 2>/dev/null
	wait $program 2>/dev/null
}

# The display of perf top waits for keys, so its input must stay open and empty.
mkfifo /tmp/keys
sleep 6000 >/tmp/keys &
keys=$!
perf_top() {
	exec perf top --stdio -F 49 -d 1 </tmp/keys
}
until_rows '^ +[0-9.]+% ' /tmp/perf.out perf_top
theirs=$time
kill $keys 2>/dev/null
until_rows '"symbol":"leaf_' /tmp/first proftop -b -d 0.2 -F 49 -e cpu-clock --format=ndjson
case $time in
more*) wrong "no rows of recurse after $time s; perf top $theirs s: $(head -n 3 /tmp/err)" ;;
*) ok "first rows, $nr CPUs: proftop $time s, perf top $theirs s" ;;
esac

proftop -b -n 12 -d 1 -F 49 -e cpu-clock --format=ndjson >/tmp/ticks 2>/tmp/err &
top=$!
until [ -s /tmp/ticks ] && [ "$(wc -l </tmp/ticks)" -ge 3 ] || ! kill -0 $top 2>/dev/null; do sleep 1; done
echo "@lab cpus $nr $(ls /proc/$top/fd | wc -l) $(ls /proc/$top/task | wc -l) $(awk '/VmRSS/ { print $2 }' /proc/$top/status)"
wait $top
cat /tmp/ticks
echo "@lab end"

proftop -F 49 -e cpu-clock --size=80x24 --script='<tick> <tick> <tick>' >/tmp/screen 2>/tmp/err || wrong "screen: $(cat /tmp/err)"
cat /tmp/screen
if [ "$(wc -l </tmp/screen)" = 24 ] && grep -q ' recurse ' /tmp/screen; then ok "screen of 80x24"; else wrong "screen of 80x24"; fi
finish
