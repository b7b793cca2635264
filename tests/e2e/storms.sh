#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that renames itself 10,000 times a second, or maps new files as fast as it can, costs no other process samples;
# renames and execs as fast as it can cost little CPU time, and memory does not grow with new files.
. "$(dirname "$0")/lib"
need_perf

# survives NAME PROGRAM ARGS...: of the samples taken beside the program at most a fifth is lost.
survives() {
	name=$1
	shift
	start "$@" >/dev/null
	run -b -n 4 -d "${delay:-0.7}" -F 499 --rows=5 --format=ndjson ${only:+-p "$last"}
	kill "$last"
	[ "$rc" = 0 ] || wrong "$name: exit $rc: $(cat "$TMP/err")"
	python3 - "$TMP/out" <<'END' || wrong "$name: samples were lost"
import json, sys
taken = lost = 0
for line in open(sys.argv[1]):
    account = json.loads(line).get("account")
    if account:
        taken += account["taken"]
        lost += account["lost"]
print(f"taken {taken}, lost {lost}")
sys.exit(not taken or lost > taken / 5)
END
}

survives renames "$PROGRAMS/renames" 30 10000
grep -q '"names_dropped": *[1-9]' "$TMP/out" || wrong "renames: no names_dropped in the account"

# As fast as it can, two million a second where nothing else runs: the sampler threads take at most 30 % of one CPU.
start "$PROGRAMS/renames" 30 >/dev/null
run -b -n 6 -d 0.5 -F 499 --rows=5 --format=ndjson
[ "$rc" = 0 ] || wrong "fast renames: exit $rc: $(cat "$TMP/err")"
python3 - "$TMP/out" <<'END' || wrong "fast renames: too much CPU time"
import json, statistics, sys
ticks = [json.loads(line) for line in open(sys.argv[1])]
used = [tick["self"]["samplers_pct"] for tick in ticks if "account" in tick][1:]
dropped = sum(tick["account"].get("names_dropped", 0) for tick in ticks if "account" in tick)
print(f"sampler threads {used} %, {dropped} names dropped")
sys.exit(not dropped or statistics.median(used) > 30)
END
kill "$last"

# Each program is another process of one PID.
start "$PROGRAMS/execs" 30 >/dev/null
run -b -n 6 -d 0.5 -F 499 --rows=5 --format=ndjson
[ "$rc" = 0 ] || wrong "execs: exit $rc: $(cat "$TMP/err")"
python3 - "$TMP/out" <<'END' || wrong "execs: too much CPU time, or samples were lost"
import json, statistics, sys
ticks = [tick for tick in map(json.loads, open(sys.argv[1])) if "account" in tick]
used = [tick["self"]["samplers_pct"] for tick in ticks][2:]
count = lambda name: sum(tick["account"].get(name, 0) for tick in ticks)
taken, lost, dropped = count("taken"), count("lost"), count("programs_dropped")
print(f"sampler threads {used} %, {dropped} programs dropped, taken {taken}, lost {lost}")
sys.exit(not dropped or statistics.median(used) > 10 or lost > taken / 5)
END
kill "$last"

# Of a process that has had many mappings, which proftop keeps: it sees no munmap.
start "$PROGRAMS/tempest" children 30 >/dev/null
run -b -n 6 -d 0.5 -F 499 --rows=5 --format=ndjson
[ "$rc" = 0 ] || wrong "children: exit $rc: $(cat "$TMP/err")"
python3 - "$TMP/out" <<'END' || wrong "children: too much CPU time or memory, or samples were lost"
import json, statistics, sys
ticks = [tick for tick in map(json.loads, open(sys.argv[1])) if "account" in tick]
used = [tick["self"]["samplers_pct"] for tick in ticks][2:]
rss = [tick["self"]["rss_kb"] >> 10 for tick in ticks]
taken, lost = (sum(tick["account"].get(name, 0) for tick in ticks) for name in ("taken", "lost"))
print(f"sampler threads {used} %, memory {rss} MiB, taken {taken}, lost {lost}")
# Memory tells a table that each child has of its own: CPU time depends on how fast memory is.
sys.exit(statistics.median(used) > 60 or lost > taken / 5 or rss[-1] > rss[0] + 300)
END
kill "$last"

delay=1 only=yes
survives inodes "$PROGRAMS/inodes" "$TMP" 30
# Each is a new object, and leaves with its mapping. Files of other programs do not count.
python3 - "$TMP/out" <<'END' || wrong "inodes: memory grows with the number of files"
import json, sys
rss = [tick["self"]["rss_kb"] for tick in map(json.loads, open(sys.argv[1])) if "self" in tick]
print(f"memory {[kb >> 10 for kb in rss]} MiB")
# In the first tick the files of other programs are still read.
sys.exit(len(rss) < 4 or rss[-1] > rss[1] + 12288)
END
finish
