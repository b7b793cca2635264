# SPDX-License-Identifier: GPL-2.0-or-later
# deep.perl DEPTH SECONDS: spin below so many calls.
no warnings 'recursion';

sub leaf {
	my $end = shift;
	my $n = 0;
	while (time < $end) { $n++ }
}

sub down {
	my ($n, $end) = @_;
	if ($n) { down($n - 1, $end) } else { leaf($end) }
}

down($ARGV[0], time + $ARGV[1]);
