#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Node.js: functions by name, whole chains, interpreted, compiled without and with optimisation.
# NODE=PATH: another one (with LD_LIBRARY_PATH in NODE_LIBRARIES).
. "$(dirname "$0")/lib"
need_perf
NODE=${NODE:-node}
need "$NODE"
[ "$(uname -m)" = x86_64 ] || skip "not on this machine: x86-64"
LD_LIBRARY_PATH=${NODE_LIBRARIES-} "$NODE" -e 'process.exit(/^(10\.2|11\.3)\./.test(process.versions.v8) ? 0 : 1)' ||
	skip "not installed: Node.js 18 or 20"

NODE_LIBRARIES=${NODE_LIBRARIES-}
export B TMP NODE NODE_LIBRARIES
python3 "$HERE/node.py" || bad=1
finish
