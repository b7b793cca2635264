# SPDX-License-Identifier: GPL-2.0-or-later
# Functions of known shares: shares.perl KIND SECONDS FILE; KIND: plain. See tests/runtimes.
use strict;
use warnings;
use Time::HiRes qw(clock time);

my %spent = (alpha => 0, beta => 0, gamma => 0);
open(my $told, '>', $ARGV[2]) or die;
$told->autoflush(1);

sub never_called { return 1 }
sub inner { my ($s, $i) = @_; return ($s * 31 + $i) & 0xffffff }
sub alpha { my $s = 0; $s = inner($s, $_) for 0 .. 15000; return $s }
sub fib { my ($n) = @_; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
sub beta { return fib(15) }
sub by_key { return $a <=> $b }
sub gamma { my @l = sort by_key map { $_ * 7 % 1000 } 0 .. 5000; return $l[0] }
sub timed { my ($name, $f) = @_; my $begin = clock(); $f->(); $spent{$name} += clock() - $begin }
sub work_round {
	timed('alpha', \&alpha);
	timed('beta', \&beta);
	timed('gamma', \&gamma);
	printf $told qq({"alpha": %d, "beta": %d, "gamma": %d}\n), map { 1e6 * $spent{$_} } qw(alpha beta gamma);
}
my $end = time() + $ARGV[1];
work_round() while time() < $end;
