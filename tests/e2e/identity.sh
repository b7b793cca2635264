#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Objects that differ from the file at their path, in real namespaces: the right name or a reason,
# never a wrong name.
. "$(dirname "$0")/lib"
need_perf
need cc unshare

export B
python3 "$HERE/identity.py"
bad=$?
[ "$bad" = 77 ] && exit 77
finish
