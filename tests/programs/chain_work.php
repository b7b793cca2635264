<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// main, outer, middle, leaf: one chain, for a number of seconds.

class Leaf
{
	private int $sum = 0;

	public function leaf(int $n): int
	{
		for ($i = 0; $i < $n; $i++)
			$this->sum = ($this->sum * 31 + $i) & 0xffffff;
		return $this->sum;
	}
}

function middle(Leaf $leaf, int $n): int
{
	return $leaf->leaf($n);
}

// Its callback is run by a loop of its own.
function outer(Leaf $leaf, int $n): int
{
	return array_sum(array_map(fn ($x) => middle($leaf, $n), [1, 2]));
}

function main(float $seconds): void
{
	$leaf = new Leaf();
	$end = microtime(true) + $seconds;
	while (microtime(true) < $end)
		outer($leaf, 100000);
}

main((float)$argv[1]);
