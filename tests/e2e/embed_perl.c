// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A C program with a Perl in it, as mod_perl or PL/Perl: embed_perl FILE SECONDS calls outer() of
 * FILE, without perl_run().
 */
#include <EXTERN.h>
#include <perl.h>

#include <stdlib.h>
#include <time.h>

static void xs_init(pTHX)
{
}

int main(int argc, char **argv, char **env)
{
	char *args[] = { "", argv[1], NULL };
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 1);
	PerlInterpreter *my_perl;

	PERL_SYS_INIT3(&argc, &argv, &env);
	my_perl = perl_alloc();
	perl_construct(my_perl);
	if (perl_parse(my_perl, xs_init, 2, args, NULL))
		return 1;
	while (time(NULL) < end) {
		dSP;

		PUSHMARK(SP);
		call_pv("outer", G_DISCARD | G_NOARGS);
	}
	perl_destruct(my_perl);
	perl_free(my_perl);
	PERL_SYS_TERM();
	return 0;
}
