#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows without a name show the reason and the fix.
. "$(dirname "$0")/lib"
need_perf
need cc strip setpriv unshare

export B
python3 "$HERE/why.py" || bad=1
finish
