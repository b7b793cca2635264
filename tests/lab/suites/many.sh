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

# Rows of perf top: its display waits for keys, so its input must stay open and empty.
begin=$(seconds)
mkfifo /tmp/keys
sleep 6000 >/tmp/keys &
keys=$!
perf top --stdio -F 49 -d 1 </tmp/keys >/tmp/perf.out 2>/tmp/err &
perf=$!
until grep -qE '^ +[0-9.]+% ' /tmp/perf.out; do
	kill -0 $perf 2>/dev/null || break
	[ "$(since "$begin" | cut -d. -f1)" -lt "${PERF_LIMIT:-300}" ] || break
	sleep 0.2
done
theirs=$(since "$begin")
kill $perf $keys 2>/dev/null
wait $perf 2>/dev/null
grep -qE '^ +[0-9.]+% ' /tmp/perf.out || theirs="more than $theirs"

begin=$(seconds)
proftop -b -n 1 -d 0.2 -F 49 -e cpu-clock --format=ndjson >/tmp/first 2>/tmp/err || wrong "first rows: $(head -n 3 /tmp/err)"
ours=$(since "$begin")
grep -q '"symbol":"leaf_' /tmp/first && ok "first rows, $nr CPUs: proftop $ours s, perf top $theirs s" ||
	wrong "no rows of recurse in the first tick ($ours s; perf top $theirs s)"

proftop -b -n 12 -d 1 -F 49 -e cpu-clock --format=ndjson >/tmp/ticks 2>/tmp/err &
top=$!
until [ "$(wc -l </tmp/ticks)" -ge 3 ] || ! kill -0 $top 2>/dev/null; do sleep 1; done
echo "@lab cpus $nr $(ls /proc/$top/fd | wc -l) $(ls /proc/$top/task | wc -l) $(awk '/VmRSS/ { print $2 }' /proc/$top/status)"
wait $top
cat /tmp/ticks
echo "@lab end"

proftop -F 49 -e cpu-clock --size=80x24 --script='<tick> <tick> <tick>' >/tmp/screen 2>/tmp/err || wrong "screen: $(cat /tmp/err)"
cat /tmp/screen
if [ "$(wc -l </tmp/screen)" = 24 ] && grep -q ' recurse ' /tmp/screen; then ok "screen of 80x24"; else wrong "screen of 80x24"; fi
finish
