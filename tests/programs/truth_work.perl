# SPDX-License-Identifier: GPL-2.0-or-later
# Work for tests of frames: truth_work.perl KIND SECONDS.
use strict;
use warnings;
use List::Util qw(any first reduce);
use Time::HiRes qw(time);

sub leaf { return $_[0] + 1 }

sub small { return leaf($_[0]) * 2 }

sub middle {
	my ($n) = @_;
	return small($n) + leaf($n);
}

sub calls {
	for my $i (0 .. 299) {
		middle($i);
	}
}

sub fib {
	my ($n) = @_;
	return $n if $n < 2;
	return fib($n - 1) + fib($n - 2);
}

sub recursion { fib(12) }

package Thing {
	use overload
		'<=>' => \&compare,
		'+'   => sub { Thing->new(main::leaf($_[0]{x})) },
		'""'  => sub { main::small($_[0]{x}) };

	sub new {
		my ($class, $x) = @_;
		return bless { x => $x }, $class;
	}

	sub compare {
		my ($a, $b) = @_;
		return main::leaf($a->{x}) - main::leaf($b->{x});
	}

	our $AUTOLOAD;

	sub AUTOLOAD {
		my ($self) = @_;
		return main::small($self->{x});
	}

	sub DESTROY { main::leaf(1) }
}

package Tied {
	sub TIESCALAR { return bless [], shift }
	sub FETCH     { return main::small(1) }
	sub STORE     { main::leaf(1) }
}

sub by_number { leaf($a) <=> leaf($b) }

sub callbacks {
	my @sorted = sort by_number map { $_ * 7 % 30 } 0 .. 29;
	@sorted = sort { small($a) <=> small($b) } @sorted;
	my @kept = grep { middle($_) > 5 } @sorted;
	(my $text = 'aabbc' x 10) =~ s/([ab]+)/small(length $1)/ge;
	tie my $tied, 'Tied';
	$tied = $tied + 1;
	local $SIG{__WARN__} = sub { leaf(1) };
	warn "x";
}

sub methods {
	my @things = map { Thing->new($_ * 7 % 10) } 0 .. 9;
	my @sorted = sort { $a <=> $b } @things;
	for my $t (@things) {
		my $u = $t + $t;
		my $text = "$u";
		$t->missing;
	}
}

sub fail {
	my ($n) = @_;
	return fail($n - 1) if $n;
	die "n\n";
}

sub exceptions {
	for my $i (0 .. 9) {
		eval { fail($i); 1 } or small($i);
	}
}

sub churn {
	for my $i (0 .. 4) {
		no warnings 'redefine';
		eval "sub made_$i { my \$y = 0; for my \$k (0 .. 30) { \$y += small(\$k) } return \$y } made_$i($i)";
		my $made = eval 'sub { return leaf($_[0]) }';
		$made->($i);
		undef &{ $main::{"made_$i"} };
	}
}

# Code that C calls again and again: between two calls it has a context, and does not run.
sub by_sum { $a + $a * 3 <=> $b + $b * 3 }

sub blocks {
	my @sorted = sort { my $x = $a * 3; my $y = $b * 3; $x <=> $y } map { $_ * 7 % 30 } 0 .. 29;
	@sorted = sort by_sum @sorted;
	my $n = first { my $x = $_ * 3; $x > 60 } @sorted;
	$n += reduce { my $x = $a + $b; $x & 0xff } @sorted;
	$n += any { small($_) > 50 } @sorted;
	@sorted = sort { (reduce { $a + $b } $a, 1) <=> (reduce { $a + $b } $b, 1) } @sorted[0 .. 9];
}

sub patterns {
	my $n = 0;
	my $code = qr/b(?{ leaf($n) })/;
	'abc' x 5 =~ /(?:a(?{ $n = $n * 3 & 0xff; $n++ })$code.)*/;
}

# eval {} has a loop in code that C calls, and in no other.
sub caught {
	my ($x, $deep) = @_;
	my $r = eval {
		my $y = $x * 3;
		$y = eval { my $z = $y + 1; fail(2) if $z % 5 == 0; leaf($z) } // 0 if $deep;
		$y + 1;
	};
	return $r;
}

sub by_caught {
	return (eval { my $x = $a * 3; $x + 1 } // 0) <=> caught($b, 1);
}

sub catching {
	caught($_, 1) for 0 .. 9;
	my @sorted = sort by_caught map { $_ * 7 % 10 } 0 .. 9;
	@sorted = sort { eval { my $x = $a * 3; $x + 1 } <=> eval { leaf($b) } } @sorted;
	my $n = first { caught($_, $_ & 1) > 20 } @sorted;
	local $SIG{__WARN__} = sub { caught(3, 1) };
	warn "x";
	(my $text = 'aabbc' x 3) =~ s/([ab]+)/caught(length $1, 1)/ge;
}

sub closures {
	my @subs = map { my $n = $_; sub { return $n + leaf($n) } } 0 .. 9;
	$_->() for @subs;
	goto &calls;
}

sub work {
	my ($kind, $seconds) = @ARGV;
	my @work = qw(calls recursion callbacks methods exceptions blocks patterns catching churn closures);
	@work = ($kind) if $kind !~ /^(all|begin|threads)$/;
	$| = 1;
	print "ready\n";
	# Interpreters beside the one that is read: each thread has a copy.
	if ($kind eq 'threads') {
		require threads;
		threads->create(\&rounds, time() + $seconds, @work)->detach for 1 .. 2;
	}
	rounds(time() + $seconds, @work);
}

sub rounds {
	my ($end, @work) = @_;
	while (time() < $end) {
		for my $f (@work) {
			no strict 'refs';
			&$f();
		}
	}
}

# While the main program is compiled, no loop runs it.
BEGIN {
	work() if $ARGV[0] eq 'begin';
}
work();
