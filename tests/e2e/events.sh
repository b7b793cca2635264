#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every event that perf list has opens with perf's own attr, or fails with the same errno. ALL=1:
# also every tracepoint (minutes).
. "$(dirname "$0")/lib"
need_perf
need perf strace

# perf mounts tracefs where it is not mounted, and leaves it so.
apart=
! unshare -m true 2>/dev/null || apart='unshare -m'
$apart python3 "$HERE/events.py" "$PROFTOP" "${ALL:-}" || bad=1
finish
