#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# One boot of a Debian kernel in QEMU, with the short suites: `make lab LAB=quick`, see doc/LAB.md.
. "$(dirname "$0")/lib"
LAB_DIR=$HERE/../lab
need qemu-system-x86_64 cpio depmod readelf python3
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
timeout 60 "$LAB_DIR/fetch-kernel" amd64 '6\.1\..*-cloud-amd64' >/dev/null 2>"$TMP/err" ||
	skip "not installed: a Debian kernel for the lab: $(tail -n 1 "$TMP/err")"
# Run a command; write to a file how many percent of one CPU it got.
with_share() {
	python3 -c '
import resource, subprocess, sys, time
begin = time.monotonic()
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as f:
    print(round(100 * (used.ru_utime + used.ru_stime) / (time.monotonic() - begin)), file=f)
sys.exit(code)' "$@"
}

# The step has 300 s, with the time to make the machine.
LAB_LIMIT=150 with_share "$TMP/share" "$LAB_DIR/run" quick >"$TMP/out" 2>&1 || bad=1
cat "$TMP/out"
share=$(cat "$TMP/share")
# A guest is busy from its start to its end.
grep -q 'the machine did not finish' "$TMP/out" && [ "$share" -lt 60 ] &&
	skip "not on this machine: a CPU for the guest, which got $share % of one"
finish
