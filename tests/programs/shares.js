// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of known shares: shares.js KIND SECONDS FILE; KIND: plain, async, wasm. See tests/runtimes.
"use strict";
const fs = require("fs");
const told = fs.openSync(process.argv[4], "w");
const spent = { alpha: 0, beta: 0, gamma: 0 };
// Of this thread, from Node.js 23.9 on: others help its collector, and run no function.
const usage = process.threadCpuUsage ?? process.cpuUsage;
const now = () => { const u = usage.call(process); return u.user + u.system; };
function never_called() { return 1; }
function inner(s, i) { return (s * 31 + i) & 0xffffff; }
function alpha() { let s = 0; for (let i = 0; i < 2000000; i++) s = inner(s, i); return s; }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function beta() { return fib(23); }
function gamma() {
	const a = [];
	for (let i = 0; i < 5000; i++) a.push(i * 7 % 1000);
	return a.sort((x, y) => x - y)[0];
}
function timed(name, f) { const begin = now(); f(); spent[name] += now() - begin; }
const end = Date.now() + 1000 * Number(process.argv[3]);
function tell() { fs.writeSync(told, JSON.stringify(spent) + "\n"); }
function work_round() {
	for (let i = 0; i < 5; i++) { timed("alpha", alpha); timed("beta", beta); timed("gamma", gamma); }
	tell();
	if (Date.now() < end) setImmediate(work_round);
}
async function task(name, f) { await null; timed(name, f); }
async function run_async() {
	while (Date.now() < end) {
		for (let i = 0; i < 5; i++) await Promise.all([task("alpha", alpha), task("beta", beta), task("gamma", gamma)]);
		tell();
		await new Promise((done) => setImmediate(done));
	}
}
// alpha (a loop), beta (calls fib), gamma (calls one without a name, which calls tick) of WebAssembly, and never_called.
const bytes = "AGFzbQEAAAABBgFgAX8BfwIKAQFlBHRpY2sAAAMHBgAAAAAAAAcnBAVhbHBoYQABBGJldGEAAwVnYW1tYQAEDG5ldmVyX2NhbGxlZAAGClUGHA" +
	"EBfwNAIAFBH2wgAGohASAAQQFrIgANAAsgAQscACAAQQJIBH8gAAUgAEEBaxACIABBAmsQAmoLCwYAIAAQAgsGACAAEAULBgAgABAACwQAQQEL" +
	"ABYEbmFtZQAHBnNoYXJlcwEGAQIDZmli";
function tick(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 3 + i) | 0; return s; }
function run_wasm() {
	const { alpha, beta, gamma } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(bytes, "base64")), { e: { tick } }).exports;
	(function round() {
		timed("alpha", () => alpha(2000000)); timed("beta", () => beta(24)); timed("gamma", () => gamma(1000000));
		tell();
		if (Date.now() < end) setImmediate(round);
	})();
}
if (process.argv[2] === "async") run_async(); else if (process.argv[2] === "wasm") run_wasm(); else work_round();
