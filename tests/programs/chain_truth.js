// SPDX-License-Identifier: GPL-2.0-or-later
// Functions that have one caller each, whose name is the beginning of theirs: "f1_2" calls "f1_2_1". Called by each
// other, by builtins, by C++, from generators, after exceptions, from code that is made and freed, from timers and
// promises ("a": may have no caller). A second argument is a file for the lines of all functions "f".
"use strict";

const DEPTH = 4, WIDTH = 3;
const keep = [];
let number = 0;

const ways = [
	"%(n)",
	"[n].map((x) => %(x))[0]",
	"[n, 1].sort((x, y) => %(x))[0]",
	"JSON.stringify({ toJSON() { return %(n); } })",
	"'ab'.replace(/a/, () => %(n))",
	"[...(function* () { yield %(n); })()][0]",
	"Reflect.apply(%, null, [n])",
	"new (class { constructor() { this.x = %(n); } })().x",
	"thrown(() => %(n))",
	"[n].forEach(%)",
	"new %(n).x",
];

function thrown(f) {
	try {
		f();
		throw new Error("x");
	} catch (e) {
		return e.message.length;
	}
}

// The text of a function and of all that it calls; each is made in its caller's scope.
function text(name, depth) {
	const calls = [];
	let inner = "";

	for (let i = 1; depth && i <= WIDTH; i++) {
		const callee = `${name}_${i}`;

		inner += text(callee, depth - 1);
		calls.push(`sum += Number(${ways[number++ % ways.length].replaceAll("%", callee)}) | 0;`);
	}
	return `function ${name}(n) {
		let sum = 0;
		for (let i = 0; i < ${depth ? 3 : 40}; i++) sum = (sum * 31 + i + n) & 0xffff;
		keep[sum & 63] = { sum, text: "x" + sum };
		${calls.join("\n")}
		return sum;
	}
	${inner}`;
}

// Of each function: its first and last line, and the line of each call, as they are in the text.
const lines = [];
function find(source) {
	const open = [];

	source.split("\n").forEach((line, i) => {
		const begin = /^\s*function (\w+)\(n\)/.exec(line);

		if (begin)
			open.push([begin[1], i + 1]);
		if (/return sum/.test(line)) {
			const [name, first] = open.pop();
			lines.push(`${name} ${first} ${i + 2}`);
		}
		const call = /^\s*sum \+= .*?\b([fg]\d+(?:_\d+)+)\b/.exec(line);
		if (call)
			lines.push(`${call[1].replace(/_\d+$/, "")} ${call[1]} ${i + 1}`);
	});
}

const roots = [];
for (let i = 1; i <= 6; i++) {
	const made = new Function("keep", "thrown", `${text(`f${i}`, DEPTH)}; return f${i};`);

	find(made.toString());
	roots.push(made(keep, thrown));
}
if (process.argv[3])
	require("fs").writeFileSync(process.argv[3], lines.join("\n") + "\n");

// Made, called some times, and dropped: memory of functions is used again.
let made = 0;
function make() {
	const f = new Function("keep", "thrown", `${text(`g${++made}`, 2)}; return g${made};`)(keep, thrown);

	for (let i = 0; i < 3; i++)
		f(i);
}

async function a1(n) {
	await null;
	return a1_1(n) + await a1_a(n);
}

function a1_1(n) {
	return [n].map(roots[n % roots.length])[0];
}

async function a1_a(n) {
	for (let i = 0; i < 20; i++)
		n = (n * 31 + i) & 0xffff;
	await null;
	for (let i = 0; i < 2000; i++)
		n = (n * 31 + i) & 0xffff;
	return n;
}

const end = Date.now() + 1000 * Number(process.argv[2]);
let turn = 0;

async function tick() {
	roots[turn++ % roots.length](turn);
	make();
	await a1(turn);
	if (Date.now() < end)
		setTimeout(tick, turn % 50 ? 0 : 1);
}

tick();
