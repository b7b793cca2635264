#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that renames itself 10,000 times a second, or maps new files as fast as it can, costs no other process samples.
. "$(dirname "$0")/lib"
need_perf

# survives NAME PROGRAM ARGS...: of the samples taken beside the program at most a fifth is lost.
survives() {
	name=$1
	shift
	start "$@" >/dev/null
	run -b -n 4 -d 1 -F 499 --rows=5 --format=ndjson
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
survives inodes "$PROGRAMS/inodes" "$TMP" 30
finish
