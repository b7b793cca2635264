# SPDX-License-Identifier: GPL-2.0-or-later
# main, outer, middle, leaf: one chain, for a number of seconds.
use strict;
use warnings;
use Time::HiRes qw(time);

package Leaf;

sub leaf {
	my ($n) = @_;
	my $sum = 0;
	for (my $i = 0; $i < $n; $i++) {
		$sum = ($sum * 31 + $i) & 0xffffff;
	}
	return $sum;
}

package main;

sub middle {
	return Leaf::leaf(@_);
}

sub outer {
	my $work = sub { return middle(@_) };
	return $work->(@_);
}

sub main {
	my ($seconds) = @_;
	my $end = time() + $seconds;
	while (time() < $end) {
		outer(100_000);
	}
}

main($ARGV[0]);
