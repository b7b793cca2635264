<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of known shares: shares.php KIND SECONDS FILE; KIND: plain. See tests/runtimes.
$spent = ['alpha' => 0, 'beta' => 0, 'gamma' => 0];
$told = fopen($argv[3], 'w');

function never_called() { return 1; }
function inner($s, $i) { return ($s * 31 + $i) & 0xffffff; }
function alpha() { for ($s = $i = 0; $i < 40000; $i++) $s = inner($s, $i); return $s; }
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function beta() { return fib(18); }
function gamma() {
	$a = [];
	for ($i = 0; $i < 4000; $i++) $a[] = $i * 7 % 1000;
	usort($a, fn($x, $y) => $x <=> $y);
}
function now() { $u = getrusage(); return 1e6 * ($u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec']) + $u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']; }
function timed($name) { global $spent; $begin = now(); $name(); $spent[$name] += now() - $begin; }
function work_round() {
	global $told, $spent;
	timed('alpha'); timed('beta'); timed('gamma');
	fwrite($told, json_encode($spent) . "\n");
}
for ($end = microtime(true) + $argv[2]; microtime(true) < $end;) work_round();
