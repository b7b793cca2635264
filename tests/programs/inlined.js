// SPDX-License-Identifier: GPL-2.0-or-later
// Functions that V8 inlines: innermost() has no code that runs, but in that of outer().
function innermost(x) { return (x * 7) % 13; }
function middle(x) { return innermost(x) + innermost(x + 1); }
function outer(n) { let t = 0; for (let i = 0; i < n; i++) t += middle(i) % 5; return t; }
const end = Date.now() + 1000 * Number(process.argv[2]);
while (Date.now() < end) outer(1000000);
