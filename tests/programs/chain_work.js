// SPDX-License-Identifier: GPL-2.0-or-later
// tick, outer, toJSON, middle, leaf: one chain, from a timer, through JSON.stringify(), for a number of seconds.
"use strict";

function leaf(n) {
	let sum = 0;
	for (let i = 0; i < n; i++)
		sum = (sum * 31 + i) & 0xffffff;
	return sum;
}

function middle(n) {
	return [n].map((x) => leaf(x))[0];
}

class Outer {
	constructor(n) {
		this.n = n;
	}

	toJSON() {
		return middle(this.n);
	}
}

async function outer(n) {
	return JSON.stringify(new Outer(n));
}

const end = Date.now() + 1000 * Number(process.argv[2]);

setTimeout(function tick() {
	outer(2000000);
	if (Date.now() < end)
		setTimeout(tick, 0);
}, 0);
