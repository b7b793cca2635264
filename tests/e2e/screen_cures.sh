#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What goes wrong is told on its line, and the cure that stands there helps. HOTPLUG=1: a CPU that goes, too.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/steer.py" cures || bad=1
if command -v setpriv >/dev/null; then
	python3 "$HERE/steer.py" mlock || bad=1
fi
[ -z "${HOTPLUG:-}" ] || python3 "$HERE/steer.py" hotplug || bad=1
finish
