// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * derivetruth FILE...: derive unwind rows of ELF files as if they had no tables, and compare them
 * with their tables, at each instruction of each function. Prints instructions, the part with a
 * row, and how many rows are wrong; fails above one in a thousand. Not counted as wrong: functions
 * with a table that their code contradicts (an instruction moves the stack pointer, and the CFA of
 * the table does not follow), and the entry of a program, which the kernel starts.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/elf/internal.h"
#include "tests/unwind/row_at.h"

struct truth {
	const struct arch_ops *arch;
	const struct image *with, *without;
	unsigned long nr, has, guessed, wrong, wrong_guessed, shown, bad_tables, entry_places;
	uint64_t last;	/* function with a wrong row */
	uint64_t entry; /* of the program */
	const struct derive_cpu *cpu;
	struct derive_code code;
	bool bad_table; /* of the last function that was looked at */
	uint64_t looked_at;
};

static bool same(const struct cfi_row *a, const struct cfi_row *b)
{
	if (a->kind != b->kind)
		return a->kind == CFI_COMPLEX; /* not to be compared */
	if (a->kind != CFI_ROW)
		return true;
	/* sp and fp may both lead to the CFA: compared are the places of the caller's registers. */
	/* A register may be in its place and in its slot, of which a table mentions one. */
	return (a->cfa_is_fp != b->cfa_is_fp ||
		(a->cfa_is_word == b->cfa_is_word && a->cfa_is_above == b->cfa_is_above &&
		 a->cfa_off + a->above == b->cfa_off + b->above)) &&
	       (a->ra_where != b->ra_where || a->ra_where == CFI_SAME || a->ra_off == b->ra_off) &&
	       (a->fp_where != b->fp_where || a->fp_where == CFI_SAME || a->fp_off == b->fp_off);
}

/* Return whether the stack pointer moves otherwise in the code of @fde than in its table. */
static bool table_is_bad(struct truth *t, const struct ehframe_fde *fde)
{
	const struct ehframe *eh = &t->with->eh;
	struct derive_insn in;

	for (uint64_t pc = fde->start; pc < fde->start + fde->size; pc += MAX(in.size, 1)) {
		struct derive_state s = { .word = t->cpu->word };
		struct cfi_row row, next;
		int64_t moved;

		if (cfi_row_at(t->arch, eh, fde->offset, pc, &row))
			return false;
		s.reg[t->cpu->sp] = derive_value(DERIVE_CFA, -(int64_t)row.cfa_off);
		t->cpu->step(&t->code, pc, &s, &in);
		moved = -derive_number(s.reg[t->cpu->sp]);
		if (in.flow == DERIVE_ON && row.kind == CFI_ROW && !row.cfa_is_fp &&
		    !row.cfa_is_word && derive_kind(s.reg[t->cpu->sp]) == DERIVE_CFA &&
		    moved != row.cfa_off && pc + in.size < fde->start + fde->size &&
		    !cfi_row_at(t->arch, eh, fde->offset, pc + in.size, &next) &&
		    next.kind == CFI_ROW && !next.cfa_is_fp && !next.cfa_is_word &&
		    next.cfa_off != moved)
			return true;
	}
	return false;
}

/* Return whether a row that differs is no mistake of the derivation. */
static bool is_explained(struct truth *t, const struct ehframe_fde *fde)
{
	if (t->looked_at != fde->start) {
		t->looked_at = fde->start;
		t->bad_table = table_is_bad(t, fde);
	}
	t->bad_tables += t->bad_table;
	t->entry_places += !t->bad_table && fde->start == t->entry;
	return t->bad_table || fde->start == t->entry;
}

static void compare_at(struct truth *t, const struct ehframe_fde *fde, uint64_t pc)
{
	struct cfi_row want, got;
	struct ehframe_fde derived;
	bool guessed;

	if (cfi_row_at(t->arch, &t->with->eh, fde->offset, pc, &want) || want.kind == CFI_COMPLEX)
		return;
	t->nr++;
	if (!ehframe_find(&t->without->eh, pc, &derived) ||
	    cfi_row_at(t->arch, &t->without->eh, derived.offset, pc, &got))
		return;
	guessed = t->without->eh.guessed && derived.offset >= t->without->eh.guessed;
	t->has++;
	t->guessed += guessed;
	if (got.kind == CFI_COMPLEX || same(&want, &got) || (!guessed && is_explained(t, fde)))
		return;
	t->wrong += !guessed;
	t->wrong_guessed += guessed;
	if (!guessed && t->last != fde->start && (t->last = fde->start) != 0 && t->shown++ < 8)
		printf("  %#lx in %#lx: %s%+d ra %d fp %d%+d, derived %s%+d ra %d fp %d%+d (kind "
		       "%d %d)\n",
		       (unsigned long)pc, (unsigned long)fde->start, want.cfa_is_fp ? "fp" : "sp",
		       want.cfa_off, want.ra_off, want.fp_where, want.fp_off,
		       got.cfa_is_fp ? "fp" : "sp", got.cfa_off, got.ra_off, got.fp_where,
		       got.fp_off, want.kind, got.kind);
}

/* Read the segment with most of the code. */
static bool read_text(const struct image *image, const struct elffile *f, struct derive_code *out)
{
	const struct image_segment *text = NULL;
	void *bytes;

	for (uint32_t i = 0; i < image->nr_segments; i++)
		if (image->segments[i].exec &&
		    (!text || image->segments[i].file_size > text->file_size))
			text = &image->segments[i];
	if (!text || elffile_read_alloc(f, text->offset, text->file_size, &bytes))
		return false;
	*out = (struct derive_code){ bytes, text->vaddr, text->file_size };
	return true;
}

static int compare(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *with, *without;
	struct elffile f;
	struct truth t = { 0 };
	struct stat st;
	struct err e = { "" };
	uint64_t step;

	if (fd < 0 || fstat(fd, &st) || image_read_fd(&with, fd, (uint64_t)st.st_size, &e) ||
	    image_read_fd(&without, fd, (uint64_t)st.st_size, &e) ||
	    elffile_open(&f, fd, NULL, (uint64_t)st.st_size, &e)) {
		printf("%s: cannot be read: %s\n", path, e.text);
		return 1;
	}
	without->eh = (struct ehframe){ .bytes = NULL };
	t.arch = with->machine == EM_386 ? &arch_i386 : arch_of(with->machine);
	if (!t.arch || derive_image(without, &f, NULL)) {
		printf("%s: no rows\n", path);
		return 1;
	}
	t.with = with;
	t.cpu = with->machine == EM_AARCH64  ? &derive_arm64
		: with->machine == EM_X86_64 ? &derive_x86
					     : &derive_i386;
	if (!read_text(with, &f, &t.code) ||
	    elffile_read(&f, offsetof(Elf64_Ehdr, e_entry), &t.entry, t.cpu->word))
		return 1;
	step = with->machine == EM_AARCH64 ? 4 : 1;
	t.without = without;
	for (uint32_t i = 0; i < with->eh.nr_fdes; i++) {
		struct ehframe_fde fde;

		if (!ehframe_at(&with->eh, i, &fde) ||
		    (with->eh.derived && fde.offset >= with->eh.derived))
			continue;
		for (uint64_t pc = fde.start; pc < fde.start + fde.size; pc += step)
			compare_at(&t, &fde, pc);
	}
	printf("%s: %lu places, %.1f %% with a row (%.1f %% guessed), %lu wrong (%.3f %%), of "
	       "guessed "
	       "%lu; wrong tables: %lu, entry: %lu\n",
	       path, t.nr, 100.0 * (double)t.has / (double)MAX(t.nr, 1UL),
	       100.0 * (double)t.guessed / (double)MAX(t.nr, 1UL), t.wrong,
	       100.0 * (double)t.wrong / (double)MAX(t.nr, 1UL), t.wrong_guessed, t.bad_tables,
	       t.entry_places);
	close(fd);
	return t.wrong * 1000 > t.nr || t.has * 10 < t.nr * 5;
}

int main(int argc, char **argv)
{
	int bad = argc < 2;

	for (int i = 1; i < argc; i++)
		bad |= compare(argv[i]);
	return bad;
}
