#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# One boot of a Debian kernel in QEMU, with the short suites: `make lab LAB=quick`, see doc/LAB.md.
. "$(dirname "$0")/lib"
LAB_DIR=$HERE/../lab
need qemu-system-x86_64 cpio depmod readelf python3
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
timeout 60 "$LAB_DIR/fetch-kernel" amd64 '6\.1\..*-cloud-amd64' >/dev/null 2>"$TMP/err" ||
	skip "not installed: a Debian kernel for the lab: $(tail -n 1 "$TMP/err")"
"$LAB_DIR/run" quick >"$TMP/out" 2>&1 || bad=1
cat "$TMP/out"
finish
