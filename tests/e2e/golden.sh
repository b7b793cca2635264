#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Golden screens of every view, from a recording in the tree: by --script, and the same in a real terminal.
# `tests/e2e/golden.sh update` writes them.
. "$(dirname "$0")/lib"
need python3 tmux
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64, as the recording"

export B
python3 "$HERE/golden.py" "$@" || bad=1
finish
