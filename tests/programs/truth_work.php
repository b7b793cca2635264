<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// Work for tests of frames: truth_work.php KIND SECONDS.

function leaf(int $n): int
{
	return $n + 1;
}

function small(int $n): int
{
	return leaf($n) * 2;
}

function middle(int $n): int
{
	return small($n) + leaf($n);
}

function calls(): void
{
	for ($i = 0; $i < 300; $i++)
		middle($i);
}

function fib(int $n): int
{
	return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function recursion(): void
{
	fib(14);
}

function numbers(int $n): Generator
{
	for ($i = 0; $i < $n; $i++)
		yield leaf($i);
}

function outer_numbers(int $n): Generator
{
	yield from numbers($n);
}

function generators(): void
{
	foreach (outer_numbers(100) as $x)
		small($x);
}

function in_fiber(int $n): int
{
	for ($i = 0; $i < $n; $i++)
		Fiber::suspend(small($i));
	return fib(5);
}

function fibers(): void
{
	$fiber = new Fiber('in_fiber');
	$fiber->start(20);
	while (!$fiber->isTerminated()) {
		leaf(1);
		$fiber->resume();
	}
}

function by_key(array $a, array $b): int
{
	return leaf($a[0]) <=> leaf($b[0]);
}

class Thing implements Countable
{
	public function __construct(private int $x)
	{
	}

	public function __get(string $name): int
	{
		return small($this->x);
	}

	public function __destruct()
	{
		leaf($this->x);
	}

	public function count(): int
	{
		return leaf($this->x);
	}

	public static function make(int $x): Thing
	{
		return new self($x);
	}
}

function callbacks(): void
{
	$rows = [];
	for ($i = 0; $i < 30; $i++)
		$rows[] = [$i * 7 % 30];
	usort($rows, 'by_key');
	preg_replace_callback('/[ab]+/', fn ($m) => small(strlen($m[0])) . 'x', str_repeat('aabbc', 10));
	array_map(fn ($x) => middle($x), range(1, 20));
	array_filter(range(1, 20), 'small');
	call_user_func_array('middle', [1]);
}

function methods(): void
{
	for ($i = 0; $i < 30; $i++) {
		$t = Thing::make($i);
		$t->missing;
		count($t);
	}
}

function fail(int $n): int
{
	if ($n)
		return fail($n - 1);
	throw new RuntimeException('n');
}

function exceptions(): void
{
	for ($i = 0; $i < 10; $i++) {
		try {
			fail($i);
		} catch (RuntimeException $e) {
			small($i);
		} finally {
			leaf($i);
		}
	}
}

function churn(): void
{
	for ($i = 0; $i < 10; $i++) {
		$made = eval("return function (\$x) { \$y = \$x;\nfor (\$i = 0; \$i < 30; \$i++) \$y += small(\$i);\nreturn \$y; };");
		$made($i);
		eval("if (!function_exists('made_$i')) { function made_$i(\$x) { return small(\$x); } } made_$i($i);");
	}
}

$kind = $argv[1];
$work = ['calls', 'recursion', 'generators', 'fibers', 'callbacks', 'methods', 'exceptions', 'churn'];
if ($kind != 'all')
	$work = [$kind];
echo "ready\n";
$end = microtime(true) + (float)$argv[2];
while (microtime(true) < $end)
	foreach ($work as $f)
		$f();
