// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find the cold part of the function that is the loop of an interpreter.
 *
 * From gcc 16 on nearly all of CPython's loop is in it, and it has a symbol in .symtab only. It has
 * an FDE, which begins at the target of a jump out of the function, in the middle of a frame: the
 * CFA of its first row is that of the function at the jump, and not that of a function's begin.
 *
 * Runs on: a helper.
 */
#include "symbols/object/elfloop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_MAX (1U << 20)
#define REMEMBER_MAX 8U

static const char *const symbols[] = {
	"_PyEval_EvalFrameDefault", "execute_ex",	   "ruby_run_node",
	"Perl_runops_standard",	    "_ZN4node5StartEiPPc",
};

/* Return the number of the interpreter that the function is of; 0: none. */
static uint8_t loop_of(const struct elfsym *t, const struct image_symbol *s)
{
	const char *name = t->names + s->name;

	/* Of a stub it is the name of a function elsewhere. */
	for (size_t i = 0; i < ARRAY_SIZE(symbols) && !s->stub; i++)
		if (name[0] == symbols[i][0] && !strcmp(name, symbols[i]))
			return (uint8_t)(i + 1);
	return 0;
}

const char *elfloop_symbol(uint8_t loop)
{
	return loop && loop <= ARRAY_SIZE(symbols) ? symbols[loop - 1] : NULL;
}

uint8_t elfloop_find(const struct elfsym *t)
{
	uint8_t loop = 0;

	for (uint32_t i = 0; i < t->nr && !loop; i++)
		loop = loop_of(t, &t->symbols[i]);
	return loop;
}

/* A row of an FDE, as far as the CFA: a register and an offset. */
struct cfa {
	uint64_t reg, offset;
	bool is_unknown;
};

/* The rows up to an address. */
struct rows {
	struct ehread r;
	uint64_t loc, until;
	struct cfa now, kept[REMEMBER_MAX];
	uint32_t nr_kept, code_align;
	int32_t data_align;
};

/* Run an instruction with its operand in its low bits, or that does not concern the CFA. */
static void run_other(struct rows *s, uint8_t op)
{
	static const uint8_t operands[] = {
		[0x05] = 2, [0x06] = 1, [0x07] = 1, [0x08] = 1, [0x09] = 2,
		[0x11] = 2, [0x14] = 2, [0x15] = 2, [0x2e] = 1, [0x2f] = 2,
	};

	if (op >> 6 == 2) /* DW_CFA_offset */
		ehread_uleb(&s->r);
	else if (op >> 6 == 1) /* DW_CFA_advance_loc */
		s->loc += (uint64_t)(op & 63) * s->code_align;
	else if (op == 0x10 || op == 0x16) { /* expressions */
		ehread_uleb(&s->r);
		ehread_block(&s->r, ehread_uleb(&s->r));
	} else if (op < ARRAY_SIZE(operands) && operands[op]) {
		for (uint8_t i = 0; i < operands[op]; i++)
			ehread_uleb(&s->r);
	} else if (op && op >> 6 != 3 && op != 0x2d) {
		s->r.bad = true;
	}
}

static void run_one(struct rows *s)
{
	uint8_t op = (uint8_t)ehread_fixed(&s->r, 1);

	if (op >= 0x02 && op <= 0x04) { /* DW_CFA_advance_loc1, 2, 4 */
		s->loc += ehread_fixed(&s->r, 1U << (op - 0x02)) * s->code_align;
	} else if (op == 0x0a && s->nr_kept < REMEMBER_MAX) {
		s->kept[s->nr_kept++] = s->now;
	} else if (op == 0x0b && s->nr_kept) {
		s->now = s->kept[--s->nr_kept];
	} else if (op == 0x0c || op == 0x12) { /* DW_CFA_def_cfa, _sf */
		s->now.reg = ehread_uleb(&s->r);
		s->now.offset = op == 0x0c ? ehread_uleb(&s->r)
					   : (uint64_t)(ehread_sleb(&s->r) * s->data_align);
		s->now.is_unknown = false;
	} else if (op == 0x0d) {
		s->now.reg = ehread_uleb(&s->r);
	} else if (op == 0x0e) {
		s->now.offset = ehread_uleb(&s->r);
	} else if (op == 0x0f) { /* DW_CFA_def_cfa_expression */
		ehread_block(&s->r, ehread_uleb(&s->r));
		s->now.is_unknown = true;
	} else {
		run_other(s, op);
	}
}

/* Run the instructions from @from to @to of the section. */
static void run(struct rows *s, const struct ehframe *eh, uint32_t from, uint32_t to)
{
	s->r = (struct ehread){ eh->bytes + from, eh->bytes + to, false };
	while (!s->r.bad && s->r.pos < s->r.end) {
		struct cfa before = s->now;

		run_one(s);
		if (s->loc <= s->until)
			continue;
		s->now = before;
		return;
	}
}

/* Get the CFA at @vaddr, and at the begin of a function. False: it is not known. */
static bool find_cfa(const struct ehframe *eh, const struct ehframe_fde *fde, uint64_t vaddr,
		     struct cfa *at, struct cfa *first)
{
	struct ehframe_record rec;
	struct rows s = { .until = vaddr };

	if (ehframe_read(eh, fde->offset, &rec))
		return false;
	s.loc = rec.start;
	s.code_align = rec.cie.code_align;
	s.data_align = rec.cie.data_align;
	run(&s, eh, rec.cie.insns, rec.cie.insns_end);
	*first = s.now;
	if (!s.r.bad)
		run(&s, eh, rec.insns, rec.insns_end);
	*at = s.now;
	return !s.r.bad && !s.now.is_unknown;
}

static bool same(const struct cfa *a, const struct cfa *b)
{
	return a->reg == b->reg && a->offset == b->offset;
}

/* Return whether @target is the begin of a cold part, reached by a jump at @from of @fde. */
static bool is_part(const struct ehframe *eh, const struct ehframe_fde *fde, uint64_t from,
		    uint64_t target, struct ehframe_fde *part)
{
	struct cfa here, there, first;

	return target - fde->start >= fde->size && ehframe_find(eh, target, part) &&
	       part->start == target && find_cfa(eh, fde, from, &here, &first) &&
	       !same(&here, &first) && find_cfa(eh, part, target, &there, &first) &&
	       same(&here, &there);
}

/* Get the target of a jump at @code, of which @left bytes are there, at @vaddr. False: none. */
static bool read_jump(uint16_t machine, const uint8_t *code, size_t left, uint64_t vaddr,
		      uint64_t *target)
{
	uint32_t word;
	int32_t by;

	if (machine == EM_X86_64) {
		uint32_t size = code[0] == 0xe9 ? 1 : 2;

		/* jmp, jcc: the rest of what looks like one has no FDE at its target. */
		if (left < size + 4U ||
		    (size == 2 && (code[0] != 0x0f || (code[1] & 0xf0) != 0x80)))
			return false;
		memcpy(&by, code + size, 4);
		*target = vaddr + size + 4 + (uint64_t)(int64_t)by;
		return true;
	}
	if (machine != EM_AARCH64 || left < 4 || vaddr & 3)
		return false;
	memcpy(&word, code, 4);
	if ((word & 0xfc000000) == 0x14000000) /* b */
		by = (int32_t)(word << 6) >> 4;
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		by = (int32_t)(word << 8) >> 11; /* b.cond, cbz, cbnz */
	else
		return false;
	*target = vaddr + (uint64_t)(int64_t)(by & ~3);
	return true;
}

/* Find the cold part of the function of @fde by its code. */
static bool find_part(const struct elffile *f, const struct ehframe *eh,
		      const struct ehframe_fde *fde, struct ehframe_fde *part)
{
	uint64_t offset, target;
	void *code;
	bool found = false;

	if (fde->size > FUNCTION_MAX || !elffile_offset(f, fde->start, fde->size, &offset) ||
	    elffile_read_alloc(f, offset, fde->size, &code))
		return false;
	for (uint32_t at = 0; at < fde->size && !found; at++)
		found = read_jump(f->machine, (const uint8_t *)code + at, fde->size - at,
				  fde->start + at, &target) &&
			is_part(eh, fde, fde->start + at, target, part);
	free(code);
	return found;
}

/* Return whether the cold part of @name is there by a symbol. */
static bool has_part(const struct elfsym *t, const char *name)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; i < t->nr; i++) {
		const char *other = t->names + t->symbols[i].name;

		if (!strncmp(other, name, size) && !strncmp(other + size, ".cold", 5))
			return true;
	}
	return false;
}

int elfloop_add_parts(struct elfsym *t, const struct elffile *f, const struct ehframe *eh)
{
	int rc = 0;

	if (f->elf_class != ELFCLASS64)
		return 0;
	for (uint32_t i = 0, nr = t->nr; i < nr && !rc; i++) {
		uint8_t loop = loop_of(t, &t->symbols[i]);
		struct ehframe_fde fde, part;
		char name[64];

		if (!loop || has_part(t, elfloop_symbol(loop)) ||
		    !ehframe_find(eh, t->symbols[i].vaddr, &fde) ||
		    fde.start != t->symbols[i].vaddr || !find_part(f, eh, &fde, &part))
			continue;
		rc = elfsym_add_named(t, part.start, part.size, name,
				      (size_t)snprintf(name, sizeof(name), "%s.cold",
						       elfloop_symbol(loop)));
	}
	return rc;
}
