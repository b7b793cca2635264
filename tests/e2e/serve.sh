#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --listen: profiles of the right process and length, many clients, clients that stall or leave, a port in use.
. "$(dirname "$0")/lib"
need_perf
"$PROFTOP" --listen x -b -n 1 2>&1 | grep -q 'built without' && skip "not installed: libmicrohttpd-dev"

export B PROGRAMS
python3 "$HERE/serve.py" || bad=1
finish
