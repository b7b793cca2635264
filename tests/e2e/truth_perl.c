// SPDX-License-Identifier: GPL-2.0-or-later
/* Perl's contexts of subs, by its headers. See tests/lang_truth_trap.h. */
#define PERL_NO_GET_CONTEXT
#include <EXTERN.h>
#include <perl.h>

#include "tests/lang_truth_trap.h"

static void put_sub(pTHX_ struct truth_entry *e, CV *cv, const COP *cop)
{
	const char *file = CvFILE(cv) ? CvFILE(cv) : "";
	HEK *hek = CvNAMED(cv) ? CvNAME_HEK(cv) : GvNAME_HEK(CvGV(cv));
	HV *stash = CvNAMED(cv) ? CvSTASH(cv) : GvSTASH(CvGV(cv));
	const char *scope = stash ? HvNAME(stash) : NULL;

	truth_put(e, 0, scope, scope ? strlen(scope) : 0, HEK_KEY(hek), (size_t)HEK_LEN(hek), file,
		  strlen(file), (int)CopLINE(cop));
}

/*
 * Return whether the only context of @si is of code that C calls again and again, as sort() does,
 * and does not run at present: a loop that has ended leaves no op. *unsure: before its first call,
 * or about to begin or end.
 */
static bool is_idle(pTHX_ const PERL_SI *si, uintptr_t pc, int *unsure)
{
	const PERL_CONTEXT *c = &si->si_cxstack[0];

	if (si != PL_curstackinfo || si->si_cxix < 0 ||
	    (si->si_type != PERLSI_SORT && si->si_type != PERLSI_MULTICALL))
		return false;
	for (I32 i = si->si_cxix; i > 0; i--)
		if (CxTYPE(&si->si_cxstack[i]) == CXt_SUB)
			return false;
	if (!PL_op) {
		/* The loop of an eval {} ends before that of the code. */
		*unsure |= pc - (uintptr_t)Perl_runops_standard < 128 || !PL_top_env->je_mustcatch;
		return true;
	}
	if (si->si_type == PERLSI_MULTICALL)
		*unsure |= PL_op->op_type == OP_ENTERSUB || PL_op->op_type == OP_MATCH ||
			   PL_op->op_type == OP_SUBST;
	*unsure |= PL_op == PL_sortcop ||
		   (CxTYPE(c) == CXt_SUB && c->blk_sub.cv && PL_op == CvSTART(c->blk_sub.cv));
	return PL_op->op_type == OP_SORT;
}

static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	PerlInterpreter *my_perl = PERL_GET_THX;
	const COP *cop;

	if (!my_perl)
		return;
	cop = PL_curcop;
	for (const PERL_SI *si = PL_curstackinfo; si; si = si->si_prev)
		for (I32 i = si->si_cxix; i >= 0; i--) {
			const PERL_CONTEXT *c = &si->si_cxstack[i];

			if (CxTYPE(c) != CXt_SUB || !c->blk_sub.cv || c->cx_type & CXp_SUB_RE_FAKE)
				continue;
			if (!is_idle(aTHX_ si, e->pc, &e->cut))
				put_sub(aTHX_ e, c->blk_sub.cv, cop);
			cop = c->blk_oldcop;
		}
	/* The main program runs in the first interpreter: subs of other threads are called from C.
	 */
	if (my_perl == PL_curinterp)
		truth_put(e, 0, NULL, 0, "{main}", 6, CopFILE(cop), strlen(CopFILE(cop)),
			  (int)CopLINE(cop));
}
