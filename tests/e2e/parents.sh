#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The process that starts proftop is a stranger: it gets no signal, and it is a target as any other.
. "$(dirname "$0")/lib"
need_perf

export PROFTOP
timeout 300 python3 "$HERE/parents.py" "$TMP" || bad=1
finish
