#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every control there is, by its key or its command, while it runs; one process alone, and back.
. "$(dirname "$0")/lib"
need_perf
need tmux stty

export B
python3 "$HERE/steer.py" walk && python3 "$HERE/steer.py" drill || bad=1
finish
