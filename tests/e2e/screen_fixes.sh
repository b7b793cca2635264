#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each fault is reported on its line, and the fix shown there helps. HOTPLUG=1: also with a CPU that goes offline.
# Changes limits of the kernel.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/steer.py" fixes || bad=1
if command -v setpriv >/dev/null; then
	python3 "$HERE/steer.py" mlock || bad=1
fi
[ -z "${HOTPLUG:-}" ] || python3 "$HERE/steer.py" hotplug || bad=1
finish
