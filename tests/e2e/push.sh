#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --push to a server that delivers, refuses, fails, hangs, resets and redirects: each sample is accounted for.
. "$(dirname "$0")/lib"
need_perf
need openssl
run --push http://127.0.0.1:1/x -n 1
grep -q 'built without' "$TMP/err" && skip "not installed: libcurl4-openssl-dev"

expect 2 "the path names no known service" --push http://127.0.0.1:1/x
expect 2 "must begin with http:// or https://" --push file:///etc/passwd
expect 2 "add --push URL" --push-label a=b -b -n 1
expect 2 "invalid label" --push http://127.0.0.1:1/ingest --push-label 'a=b{c'
expect 2 "must be 100ms to 1h" --push http://127.0.0.1:1/ingest --push-timeout 0
printf 'X-Scope-OrgID: team\nContent-Length: 3\n' >"$TMP/headers"
expect 2 "headers:2: invalid header" --push http://127.0.0.1:1/ingest --push-headers "$TMP/headers"

export B PROGRAMS TMP
python3 "$HERE/push.py" || bad=1
finish
