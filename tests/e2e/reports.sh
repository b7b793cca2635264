#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What people reported of other profilers (doc/REPORTS.md): programs that divide their time themselves, all in one session.
. "$(dirname "$0")/lib"
need_perf
export PROFTOP PROGRAMS TMP
python3 "$HERE/reports.py" || bad=1
finish
