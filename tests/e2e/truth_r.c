// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of R by its contexts; no header has their structure: the first members, as the sources
 * of 4.2 to 4.6 declare them, with the jmp_buf of this machine. See tests/lang_truth_trap.h.
 *
 * R is started by a shell, which has none of its symbols.
 */
#include "tests/lang_truth_trap.h"

#include <setjmp.h>

struct node;

struct context {
	struct context *next;
	int flag;
	sigjmp_buf jump;
	int top, depth;
	struct node *arguments, *function, *parent, *call;
};

#define FUNCTION 4

enum { SYMBOL = 1, CLOSURE = 3, CALL = 6 };

extern __attribute__((weak)) struct context *R_GlobalContext;
__attribute__((weak)) int TYPEOF(struct node *);
__attribute__((weak)) struct node *CAR(struct node *), *CADR(struct node *), *CADDR(struct node *),
	*PRINTNAME(struct node *);
__attribute__((weak)) int Rf_length(struct node *);
__attribute__((weak)) const char *R_CHAR(struct node *);

/* Append the name of a symbol; 0: it is none. */
static size_t put_symbol(char *out, size_t used, struct node *symbol)
{
	const char *text;

	if (TYPEOF(symbol) != SYMBOL)
		return 0;
	text = R_CHAR(PRINTNAME(symbol));
	memcpy(out + used, text, strlen(text));
	return used + strlen(text);
}

static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	(void)context;
	for (struct context *c = R_GlobalContext; c; c = c->next) {
		struct node *called;
		char name[TRUTH_TEXT_MAX];
		size_t size = 0;

		if (!(c->flag & FUNCTION) || TYPEOF(c->function) != CLOSURE)
			continue;
		called = CAR(c->call);
		if (TYPEOF(called) == SYMBOL) {
			size = put_symbol(name, 0, called);
		} else if (TYPEOF(called) == CALL && Rf_length(called) == 3) {
			size = put_symbol(name, 0, CADR(called));
			size = size ? put_symbol(name, size, CAR(called)) : 0;
			size = size ? put_symbol(name, size, CADDR(called)) : 0;
		}
		if (size)
			truth_put(e, 0, NULL, 0, name, size, "?", 1, -1);
		else
			truth_put(e, 0, NULL, 0, "<anonymous>", 11, "?", 1, -1);
	}
}
