// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The code of an ELF file that has no unwind tables, or wrong ones -> records of .eh_frame.
 *
 * Runs on: the sandbox.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/elf/elf.h"

#define TAIL_CODE   64 /* bytes of a function that only leads on to another one */
#define TAIL_INSNS  16
#define GAP_MIN	    16u		  /* bytes between functions: less is padding */
#define GAP_CODE    64u		  /* more is code */
#define TOTAL_MIN   208u	  /* bytes of code: crtbegin.o has less */
#define SWEEP_MIN   1024u	  /* bytes without tables that are worth a look at all other code */
#define SWEEP_MAX   (64ULL << 20) /* bytes of that */
#define CODE_MAX    (16ULL << 20) /* bytes without tables: the first ones */
#define DATA_MAX    (8ULL << 20)
#define VISITS_MAX  (8ULL << 20) /* instructions: two seconds for 12 MiB of C++ */
#define RECORDS_MAX (24u << 20)
#define RECORD_MAX  16384u /* bytes of one */

struct range {
	uint64_t start, end;
};

struct list {
	uint64_t *v;
	uint32_t nr, room;
};

/* Records of .eh_frame: a CIE, then FDEs. */
struct records {
	uint8_t *bytes;
	uint32_t size, room;
	struct list index; /* start of the code << 32 | offset, as in struct ehframe */
};

struct derive_elf {
	const struct derive_cpu *cpu;
	struct image *image;
	const struct elffile *f;
	struct range *gaps;
	uint32_t nr_gaps, room_gaps;
	const struct derive_choice *choice;
	uint64_t total;	 /* bytes in gaps: at most CODE_MAX, without a choice */
	bool cut;	 /* there are more */
	uint64_t entry;	 /* of the program */
	uint64_t visits; /* instructions looked at for starts and wrong tables */
	uint32_t wrong;	 /* tables left out */
	bool mapped;	 /* code and data are borrowed from the mapped file */
	struct list starts, maybe, endless, marks;
	struct derive_stub *stubs;
	uint32_t nr_stubs, room_stubs;
	struct derive_code *code; /* executable segments */
	uint32_t nr_code;
	struct derive_code *data;
	uint32_t nr_data;
	struct records sure, guessed;
	struct records *to; /* they have the open record */
	uint32_t open;	    /* its offset; 0: none */
	uint64_t begin, end, loc;
	struct derive_row last;
	bool failed;
};

static void add(struct list *l, uint64_t v)
{
	if (array_reserve(&l->v, &l->room, l->nr + 1u))
		l->v[l->nr++] = v;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

static void sort(struct list *l)
{
	uint32_t nr = 0;

	if (l->nr)
		qsort(l->v, l->nr, sizeof(*l->v), by_value);
	for (uint32_t i = 0; i < l->nr; i++)
		if (!i || l->v[i] != l->v[i - 1])
			l->v[nr++] = l->v[i];
	l->nr = nr;
}

static void add_gap(struct derive_elf *d, uint64_t start, uint64_t end)
{
	start = (start + d->cpu->align - 1) & ~(d->cpu->align - 1ULL);
	if (!d->choice && end > start && end - start > CODE_MAX - d->total) {
		end = start + (CODE_MAX - d->total);
		d->cut = true;
	}
	if (end <= start || end - start < GAP_MIN)
		return;
	if (!array_reserve(&d->gaps, &d->room_gaps, d->nr_gaps + 1u))
		return;
	d->gaps[d->nr_gaps++] = (struct range){ start, end };
	if (end - start >= GAP_CODE)
		d->total += end - start;
}

/* Find the gaps between FDEs in [@start, @end). None reaches over the start of the next one. */
static void find_gaps(struct derive_elf *d, uint64_t start, uint64_t end)
{
	const struct ehframe *eh = &d->image->eh;
	/* A start below 0 of a damaged table is in order, and a large number. */
	uint32_t after = search_split(eh->nr_fdes, i, (int64_t)(ehframe_start(eh, i) - start) <= 0);
	uint64_t at = start;

	for (uint32_t i = after ? after - 1 : 0;
	     i < eh->nr_fdes && (int64_t)(ehframe_start(eh, i) - end) < 0; i++) {
		struct ehframe_fde fde;

		if (!ehframe_at(eh, i, &fde) || fde.start + fde.size <= start)
			continue;
		add_gap(d, at, fde.start);
		at = MAX(at, fde.start + fde.size);
	}
	add_gap(d, at, end);
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Put the gaps in order, without overlaps: a damaged file may have a part twice. */
static void order_gaps(struct derive_elf *d)
{
	uint64_t done = 0;
	uint32_t nr = 0;

	if (d->nr_gaps)
		qsort(d->gaps, d->nr_gaps, sizeof(*d->gaps), by_start);
	for (uint32_t i = 0; i < d->nr_gaps; i++) {
		struct range gap = { MAX(d->gaps[i].start, done), d->gaps[i].end };

		if (gap.start < gap.end)
			d->gaps[nr++] = gap;
		done = MAX(done, gap.end);
	}
	d->nr_gaps = nr;
}

/* Executable parts: by section, else by segment. */
static void find_code(struct derive_elf *d)
{
	const struct elffile *f = d->f;
	bool sections = false;

	for (uint32_t i = 0; i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];

		if (s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_EXECINSTR) ||
		    !(s->sh_flags & SHF_ALLOC))
			continue;
		sections = true;
		find_gaps(d, s->sh_addr, s->sh_addr + s->sh_size);
	}
	for (uint32_t i = 0; !sections && i < d->image->nr_segments; i++) {
		const struct image_segment *s = &d->image->segments[i];

		if (s->exec)
			find_gaps(d, s->vaddr, s->vaddr + s->file_size);
	}
	order_gaps(d);
}

#define SITE_SHIFT 12	       /* 4 KiB */
#define SITE_NEAR  (16u << 10) /* bytes to the end of a function that a site ends in */
#define SITE_MORE  4096u       /* bytes before a site, where no symbol is near */

/* Divide the code into sites. */
static void divide(struct derive_elf *d)
{
	struct image_sites *sites = &d->image->sites;
	uint64_t start = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < d->nr_gaps; i++) {
		start = MIN(start, d->gaps[i].start);
		end = MAX(end, d->gaps[i].end);
	}
	sites->base = start;
	sites->shift = SITE_SHIFT;
	while (sites->shift < 63 && (end - start) >> sites->shift >= IMAGE_SITES)
		sites->shift++;
	sites->cut = true;
}

/* Return the symbol that is next to @vaddr, before it or behind it; 0: it is far. */
static uint64_t near_symbol(const struct image *image, uint64_t vaddr, bool behind)
{
	uint32_t i = search_split(image->nr_symbols, k, image->symbols[k].vaddr < vaddr + !behind);
	uint64_t at;

	if (behind ? i == image->nr_symbols : !i)
		return 0;
	at = image->symbols[behind ? i : i - 1].vaddr;
	return (behind ? at - vaddr : vaddr - at) < SITE_NEAR ? at : 0;
}

/* Keep of a gap the sites that were chosen, with the whole functions at their ends. */
static void keep_sites(struct derive_elf *d, const struct range *gap)
{
	const struct image_sites *sites = &d->image->sites;
	const uint64_t size = 1ULL << sites->shift;
	uint64_t done = gap->start;

	for (uint64_t n = (gap->start - sites->base) >> sites->shift;
	     n <= (gap->end - 1 - sites->base) >> sites->shift; n++) {
		uint64_t start = sites->base + n * size, end = start + size;
		uint64_t first = near_symbol(d->image, start, false);
		uint64_t last = near_symbol(d->image, end, true);

		if (!(d->choice->sites[n / 64] >> n % 64 & 1))
			continue;
		start = MAX(first ? first : start - MIN(start, SITE_MORE), done);
		end = MIN(last ? last : end, gap->end);
		if (start < end)
			add_gap(d, start, end);
		done = MAX(done, end);
	}
}

/* Of code that is too large as a whole: take the sites that were chosen. */
static void choose_sites(struct derive_elf *d)
{
	struct range *gaps = d->gaps;
	uint32_t nr = d->nr_gaps;

	divide(d);
	d->gaps = NULL;
	d->nr_gaps = d->room_gaps = 0;
	d->total = 0;
	d->cut = true;
	for (uint32_t i = 0; i < nr; i++)
		keep_sites(d, &gaps[i]);
	free(gaps);
}

static bool in_gap(const struct derive_elf *d, uint64_t vaddr)
{
	uint32_t lo = 0, hi = d->nr_gaps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->gaps[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->nr_gaps && d->gaps[lo].start <= vaddr;
}

/* Read [@vaddr, @end), in one segment. */
static bool load(struct derive_elf *d, uint64_t vaddr, uint64_t end, struct derive_code *out)
{
	const uint8_t *mapped;
	uint64_t offset;
	void *bytes;

	if (!image_offset(d->image, vaddr, &offset))
		return false;
	mapped = elffile_mapped(d->f, offset, end - vaddr);
	if (!mapped && elffile_read_alloc(d->f, offset, end - vaddr, &bytes))
		return false;
	*out = (struct derive_code){ mapped ? mapped : bytes, vaddr, end - vaddr };
	d->mapped |= mapped != NULL;
	return true;
}

static bool may_sweep(const struct derive_elf *d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->image->nr_segments; i++)
		sum += d->image->segments[i].exec ? d->image->segments[i].file_size : 0;
	return d->total >= SWEEP_MIN && sum <= SWEEP_MAX && !d->cut;
}

static void load_code(struct derive_elf *d)
{
	const struct image *image = d->image;
	bool all = d->cpu->word == 4 || may_sweep(d);
	uint32_t nr = all ? image->nr_segments : d->nr_gaps;

	d->code = calloc(nr + 1, sizeof(*d->code));
	for (uint32_t i = 0; d->code && i < nr; i++) {
		const struct image_segment *s = all ? &image->segments[i] : NULL;
		uint64_t from = s ? s->vaddr : d->gaps[i].start;
		uint64_t end = s ? s->vaddr + s->file_size : d->gaps[i].end;

		if ((!s || s->exec) && load(d, from, end, &d->code[d->nr_code]))
			d->nr_code++;
	}
}

/* Tables of jumps are in the code and in constants. */
static void load_data(struct derive_elf *d)
{
	const struct image *image = d->image;

	d->data = calloc(image->nr_segments + 1, sizeof(*d->data));
	for (uint32_t i = 0; d->data && i < image->nr_segments; i++) {
		const struct image_segment *s = &image->segments[i];

		if (!s->exec && s->file_size < DATA_MAX &&
		    load(d, s->vaddr, s->vaddr + s->file_size, &d->data[d->nr_data]))
			d->nr_data++;
	}
}

static const struct derive_code *code_at(const struct derive_elf *d, uint64_t vaddr)
{
	uint32_t lo = 0, hi = d->nr_code;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->code[mid].vaddr + d->code[mid].size <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->nr_code && d->code[lo].vaddr <= vaddr ? &d->code[lo] : NULL;
}

#define FUNCTION_MAX (64u << 10) /* bytes of one that is compared with its table */
#define REMEMBER_MAX 8
#define NO_OFFSET    INT32_MIN /* the CFA is not by the stack pointer */

struct code_byte {
	int32_t cfa; /* its offset from the stack pointer before an instruction here */
	bool target; /* a jump leads here */
};

/* The CFA by the stack pointer, in the table of a function. */
struct cfa_run {
	struct ehread r;
	uint8_t sp, ra;
	int32_t now, remembered[REMEMBER_MAX];
	uint32_t depth;
	uint64_t advance; /* bytes of code behind which @now is true */
};

static void set_cfa(struct cfa_run *run, uint64_t reg, int64_t off)
{
	bool fits = reg == run->sp && off >= 0 && off < FUNCTION_MAX;

	run->now = fits ? (int32_t)off : NO_OFFSET;
}

/* Run an instruction about a rule. False: it is not known here. */
static bool run_rule(struct cfa_run *run, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x05: /* DW_CFA_offset_extended, register, offset_extended_sf */
	case 0x09:
	case 0x11:
		ehread_uleb(&run->r);
		ehread_uleb(&run->r);
		return true;
	case 0x06: /* restore_extended, same_value, GNU_args_size */
	case 0x08:
	case 0x2e:
		ehread_uleb(&run->r);
		return true;
	case 0x07: /* undefined: the first function of a stack has no return address */
		return ehread_uleb(&run->r) != run->ra;
	case 0x0c: /* def_cfa */
		reg = ehread_uleb(&run->r);
		set_cfa(run, reg, (int64_t)ehread_uleb(&run->r));
		return true;
	case 0x0d: /* def_cfa_register: its offset is that of the one before */
		if (ehread_uleb(&run->r) == run->sp)
			return false;
		run->now = NO_OFFSET;
		return true;
	case 0x0e: /* def_cfa_offset */
		reg = ehread_uleb(&run->r);
		if (run->now != NO_OFFSET)
			set_cfa(run, run->sp, (int64_t)reg);
		return true;
	case 0x10: /* expression, val_expression */
	case 0x16:
		ehread_uleb(&run->r);
		ehread_block(&run->r, ehread_uleb(&run->r));
		return true;
	case 0x0f: /* def_cfa_expression */
		ehread_block(&run->r, ehread_uleb(&run->r));
		run->now = NO_OFFSET;
		return true;
	}
	return false;
}

/* Run an instruction of a table. False: it is not known here. */
static bool run_cfa(struct cfa_run *run)
{
	uint8_t op = (uint8_t)ehread_fixed(&run->r, 1);

	run->advance = 0;
	switch (op >> 6) {
	case 1:
		run->advance = op & 63;
		return true;
	case 2:
		ehread_uleb(&run->r);
		return true;
	case 3:
		return true;
	}
	switch (op) {
	case 0x00:
		return true;
	case 0x02:
	case 0x03:
	case 0x04:
		run->advance = ehread_fixed(&run->r, 1u << (op - 2));
		return true;
	case 0x0a:
		if (run->depth == REMEMBER_MAX)
			return false;
		run->remembered[run->depth++] = run->now;
		return true;
	case 0x0b:
		if (!run->depth)
			return false;
		run->now = run->remembered[--run->depth];
		return true;
	}
	return run_rule(run, op);
}

/*
 * Get the offset of the CFA from the stack pointer at each byte of a function, and behind it, as
 * its table has it. False: not known.
 */
static bool read_offsets(const struct derive_elf *d, const struct ehframe_fde *fde,
			 struct code_byte *at)
{
	const struct ehframe *eh = &d->image->eh;
	struct ehframe_record rec;
	struct cfa_run run = { .sp = d->cpu->sp_dwarf, .ra = d->cpu->ra_dwarf, .now = NO_OFFSET };
	uint64_t loc = 0;

	if (ehframe_read(eh, fde->offset, &rec) || rec.cie.signal || rec.cie.code_align != 1)
		return false;
	run.r = (struct ehread){ eh->bytes + rec.cie.insns, eh->bytes + rec.cie.insns_end, false };
	while (run.r.pos < run.r.end && !run.r.bad)
		if (!run_cfa(&run))
			return false;
	run.r = (struct ehread){ eh->bytes + rec.insns, eh->bytes + rec.insns_end, run.r.bad };
	while (run.r.pos < run.r.end && !run.r.bad) {
		int32_t before = run.now;

		if (!run_cfa(&run) || run.advance > fde->size - loc)
			return false;
		for (; run.advance; run.advance--)
			at[loc++].cfa = before;
	}
	for (; loc < fde->size; loc++)
		at[loc].cfa = run.now;
	at[loc].cfa = NO_OFFSET;
	return !run.r.bad;
}

/* Return the distance that the direct jump @in leads to in the function; its size: none. */
static uint64_t jumps_to(const struct ehframe_fde *fde, const struct derive_insn *in)
{
	bool jumps = in->flow == DERIVE_BRANCH || in->flow == DERIVE_JUMP;

	return jumps ? MIN(in->target - fde->start, (uint64_t)fde->size) : fde->size;
}

static void mark_targets(struct derive_elf *d, const struct derive_code *code,
			 const struct ehframe_fde *fde, struct code_byte *at)
{
	struct derive_insn in;

	for (uint64_t off = 0; off < fde->size; off += MAX(in.size, 1)) {
		d->cpu->step(code, fde->start + off, NULL, &in);
		d->visits++;
		at[jumps_to(fde, &in)].target = true;
	}
}

/* Return whether the code of a function moves the stack pointer otherwise than its table says. */
static bool contradicts(struct derive_elf *d, const struct derive_code *code,
			const struct ehframe_fde *fde, const struct code_byte *at)
{
	const struct derive_cpu *cpu = d->cpu;
	bool reached = true;
	struct derive_insn in;

	for (uint64_t off = 0; off < fde->size; off += in.size) {
		struct derive_state s = { .word = cpu->word };
		int32_t now = at[off].cfa, there, next;
		int64_t moved;

		s.reg[cpu->sp] = derive_value(DERIVE_CFA, -(int64_t)now);
		cpu->step(code, fde->start + off, &s, &in);
		moved = -derive_number(s.reg[cpu->sp]);
		if (in.flow == DERIVE_BAD)
			return false;
		reached |= at[off].target;
		there = at[jumps_to(fde, &in)].cfa;
		next = at[MIN(off + in.size, (uint64_t)fde->size)].cfa;
		if (reached && now != NO_OFFSET && there != NO_OFFSET && there != now)
			return true;
		/* Behind a call that does not return there may be other code. */
		reached &= in.flow == DERIVE_ON || in.flow == DERIVE_BRANCH;
		/* Where none moves, a table may count words that were pushed before the function.
		 */
		if (reached && now != NO_OFFSET && next != NO_OFFSET &&
		    derive_kind(s.reg[cpu->sp]) == DERIVE_CFA && moved != now && moved != next)
			return true;
	}
	return false;
}

/*
 * Leave out the tables that the code contradicts: glibc's assembler for i386 pushes registers of
 * which they say nothing, or behind a jump they go on as if it were none.
 */
static void drop_wrong(struct derive_elf *d)
{
	struct ehframe *eh = &d->image->eh;
	struct code_byte *at = malloc(FUNCTION_MAX * sizeof(*at));
	uint32_t nr = 0;

	for (uint32_t i = 0; at && i < eh->nr_fdes; i++) {
		struct ehframe_fde fde;
		const struct derive_code *code;
		bool known = ehframe_at(eh, i, &fde) && fde.size < FUNCTION_MAX &&
			     d->visits < VISITS_MAX;

		code = known ? code_at(d, fde.start) : NULL;
		if (code && fde.start + fde.size - code->vaddr <= code->size) {
			memset(at, 0, (fde.size + 1) * sizeof(*at));
			mark_targets(d, code, &fde, at);
			known = read_offsets(d, &fde, at);
			if (known && contradicts(d, code, &fde, at)) {
				add(&d->starts, fde.start);
				d->wrong++;
				continue;
			}
		}
		eh->fdes[nr++] = eh->fdes[i];
	}
	if (at)
		eh->nr_fdes = nr;
	free(at);
}

static void put(struct derive_elf *d, uint64_t v, unsigned int size)
{
	struct records *r = d->to;

	if (!array_reserve(&r->bytes, &r->room, r->size + 8ull)) {
		d->failed = true;
		return;
	}
	for (unsigned int i = 0; i < size; i++)
		r->bytes[r->size++] = (uint8_t)(v >> (8 * i));
}

static void put_uleb(struct derive_elf *d, uint64_t v)
{
	do {
		put(d, (v & 0x7f) | (v > 0x7f ? 0x80 : 0), 1);
		v >>= 7;
	} while (v);
}

static void put_sleb(struct derive_elf *d, int64_t v)
{
	while (v < -64 || v > 63) {
		put(d, ((uint64_t)v & 0x7f) | 0x80, 1);
		v >>= 7;
	}
	put(d, (uint64_t)v & 0x7f, 1);
}

/* Write the length of the record at @from. */
static void end_record(struct derive_elf *d, uint32_t from)
{
	uint32_t size = d->to->size - from - 4;

	if (!d->failed)
		memcpy(d->to->bytes + from, &size, 4);
}

static void put_advance(struct derive_elf *d, uint64_t to)
{
	uint64_t delta = to - d->loc;

	if (delta && delta < 64)
		put(d, 0x40 | delta, 1);
	else if (delta && delta < 256)
		put(d, 0x02 | delta << 8, 2);
	else if (delta)
		put(d, 0x04 | delta << 8, 5);
	d->loc = to;
}

#define THUNK_NEAR 27		 /* bytes from a call in a thunk to its end, at most */
#define PROBES	   4		 /* parts of a file in which thunks are looked for */
#define PROBE_CODE (2u << 10)	 /* bytes of one */
#define THUNKS_MAX (64ULL << 20) /* bytes of code of a file that has some */

/*
 * Return whether the call of a thunk leads from @p to @at: code behind which the processor waits
 * while it does not know the target (gcc -mfunction-return=thunk, -mindirect-branch=thunk).
 */
static bool is_thunk(const uint8_t *p, const uint8_t *at, unsigned int word)
{
	if (p[0] != 0xe8 || (int32_t)bytes_u32(p + 1) != at - (p + 5))
		return false;
	if (word == 4) /* lea 4(%esp),%esp; ret; or mov %REG,(%esp); ret */
		return !memcmp(at, "\x8d\x64\x24\x04\xc3", 5) ||
		       (at[0] == 0x89 && (at[1] & 0xc7) == 4 && at[2] == 0x24 && at[3] == 0xc3);
	return !memcmp(at, "\x48\x8d\x64\x24\x08\xc3", 6) || /* lea 8(%rsp),%rsp; ret */
	       ((at[0] & 0xfb) == 0x48 && at[1] == 0x89 && (at[2] & 0xc7) == 4 && at[3] == 0x24 &&
		at[4] == 0xc3); /* mov %REG,(%rsp); ret */
}

/* Return the distance from the call at @i to the end of its thunk, which @size bytes have; 0. */
static unsigned int thunk_end(const struct derive_code *code, unsigned int word, uint64_t i)
{
	const uint8_t *p = code->bytes + i;

	return code->size - i >= 5 && p[0] == 0xe8 && p[1] <= THUNK_NEAR &&
			       code->size - i >= 5u + p[1] + 6 && is_thunk(p, p + 5 + p[1], word)
		       ? 5u + p[1]
		       : 0;
}

static bool has_thunk(const struct derive_code *code, unsigned int word)
{
	for (uint64_t i = 0; i < code->size; i++)
		if (thunk_end(code, word, i))
			return true;
	return false;
}

/*
 * Return the words on the stack at the begin of the thunk at @i: a call by one inside a function is
 * a call of that thunk, from behind it (jmp 2f; 1: the thunk; 2: call 1b).
 */
static unsigned int words_before(const struct derive_code *code, uint64_t i)
{
	const uint8_t *p = code->bytes + i;
	uint64_t from;

	if (i < 2 || p[-2] != 0xeb || p[-1] > INT8_MAX)
		return 0;
	from = i + p[-1];
	return code->size > from && code->size - from >= 5 && code->bytes[from] == 0xe8 &&
	       (int64_t)(int32_t)bytes_u32(code->bytes + from + 1) == -(int64_t)(p[-1] + 5);
}

static unsigned int end_size(unsigned int word)
{
	return word == 8 ? 5 : 4;
}

#define WORDS_BITS 2 /* a place is an address << WORDS_BITS | words on the stack from there on */

/* Find the places in a function from which on thunks have words on the stack, or no longer. */
static void find_places(const struct derive_code *code, unsigned int word,
			const struct ehframe_fde *fde, struct list *places)
{
	uint64_t at = fde->start - code->vaddr, end;
	struct derive_code part = *code;

	places->nr = 0;
	if (at >= code->size || fde->size > code->size - at)
		return;
	end = at + fde->size;
	part.size = end;
	for (; at < end; at++) {
		unsigned int size = thunk_end(&part, word, at), words;

		if (!size)
			continue;
		words = words_before(&part, at);
		if (words)
			add(places, (code->vaddr + at) << WORDS_BITS | words);
		/* At its end lea, or mov and ret: 4 bytes, and one with 64 bits. */
		add(places, (code->vaddr + at + 5) << WORDS_BITS | (words + 1));
		add(places, (code->vaddr + at + size + end_size(word)) << WORDS_BITS);
		at += size + 3;
	}
}

/* A table that is written again. */
struct mended {
	struct cfa_run run;
	const struct list *places;
	uint32_t next; /* place */
	/* Words from the CFA to the saved frame pointer, at most 127; 0: it is not saved. */
	uint8_t fp, remembered[REMEMBER_MAX];
	bool inside; /* a thunk */
};

/* DWARF's number of the frame pointer. */
static uint8_t fp_dwarf(const struct derive_elf *d)
{
	return d->cpu->word == 8 ? 6 : 5;
}

/* Write the state at places before @to. */
static void put_places(struct derive_elf *d, struct mended *m, uint64_t to)
{
	for (; m->next < m->places->nr && m->places->v[m->next] >> WORDS_BITS < to; m->next++) {
		uint64_t place = m->places->v[m->next];
		uint64_t words = place & ((1u << WORDS_BITS) - 1);

		if (m->run.now == NO_OFFSET)
			continue;
		put_advance(d, place >> WORDS_BITS);
		put(d, 0x0e, 1); /* DW_CFA_def_cfa_offset */
		put_uleb(d, (uint64_t)m->run.now + words * (uint64_t)d->cpu->word);
		m->inside = words;
		if (m->fp * (int32_t)d->cpu->word <= m->run.now)
			continue;
		/* No longer on the stack: its place has a word. */
		if (words)
			put(d, 0x08 | (uint64_t)fp_dwarf(d) << 8, 2); /* DW_CFA_same_value */
		else
			put(d, 0x80u | fp_dwarf(d) | (uint64_t)m->fp << 8, 2); /* DW_CFA_offset */
	}
}

/* Follow the rule of the frame pointer over an instruction of a table. */
static void follow_fp(struct mended *m, uint8_t fp, const uint8_t *op)
{
	if (op[0] == (0x80 | fp))
		m->fp = op[1] & 0x7f;
	else if (op[0] == (0xc0 | fp)) /* DW_CFA_restore */
		m->fp = 0;
	else if (op[0] == 0x0a)
		m->remembered[m->run.depth - 1] = m->fp;
	else if (op[0] == 0x0b)
		m->fp = m->remembered[m->run.depth];
}

/*
 * Write the instructions of @rec with the words at @places. gcc's say at the end of a thunk inside
 * a function that the CFA is two words away, and take nothing back.
 */
static bool put_mended(struct derive_elf *d, const struct ehframe_record *rec,
		       const struct list *places)
{
	const uint8_t *bytes = d->image->eh.bytes;
	struct mended m = { .places = places };
	struct ehread *r = &m.run.r;
	uint64_t loc = rec->start;

	m.run.sp = d->cpu->sp_dwarf;
	m.run.ra = d->cpu->ra_dwarf;
	m.run.now = NO_OFFSET;
	*r = (struct ehread){ bytes + rec->cie.insns, bytes + rec->cie.insns_end, false };
	while (r->pos < r->end)
		if (!run_cfa(&m.run) || r->bad)
			return false;
	*r = (struct ehread){ bytes + rec->insns, bytes + rec->insns_end, false };
	d->loc = loc;
	while (r->pos < r->end) {
		const uint8_t *op = r->pos;
		int32_t before = m.run.now;

		if (!run_cfa(&m.run) || r->bad)
			return false;
		put_places(d, &m, loc + m.run.advance);
		loc += m.run.advance;
		if (op[0] == 0x0e && op[1] == 2 * d->cpu->word && m.next < places->nr &&
		    places->v[m.next] == (loc + end_size(d->cpu->word)) << WORDS_BITS) {
			m.run.now = before;
			continue;
		}
		if (m.run.advance)
			continue;
		if (m.inside && *op)
			return false;
		follow_fp(&m, fp_dwarf(d), op);
		put_advance(d, loc);
		for (; op < r->pos; op++)
			put(d, *op, 1);
	}
	put_places(d, &m, rec->start + rec->size);
	return !d->failed;
}

/* Write the FDE at @offset again, as at @to in the section. False: the table stays as it is. */
static bool put_record(struct derive_elf *d, uint32_t offset, uint32_t to,
		       const struct list *places)
{
	const struct ehframe *eh = &d->image->eh;
	const uint32_t moved = to - offset, from = d->to->size;
	struct ehframe_record rec;
	uint32_t back;
	int32_t start;

	if (ehframe_read(eh, offset, &rec) || rec.cie.code_align != 1 || rec.cie.signal ||
	    rec.cie.encoding != 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */ ||
	    bytes_u32(eh->bytes + offset) == UINT32_MAX)
		return false;
	back = bytes_u32(eh->bytes + offset + 4) + moved;
	start = (int32_t)(bytes_u32(eh->bytes + offset + 8) - moved);
	if (back < moved || eh->vaddr + to + 8 + (uint64_t)(int64_t)start != rec.start)
		return false;
	put(d, 0, 4);
	put(d, back, 4);
	put(d, (uint32_t)start, 4);
	for (uint32_t i = offset + 12; i < rec.insns; i++)
		put(d, eh->bytes[i], 1);
	if (!put_mended(d, &rec, places))
		return false;
	end_record(d, from);
	return !d->failed;
}

/* Put the mended records behind those of the file. */
static void join_mended(struct derive_elf *d, const struct records *mended)
{
	struct ehframe *eh = &d->image->eh;
	uint8_t *bytes = malloc(eh->size + mended->size);

	if (!bytes)
		return;
	memcpy(bytes, eh->bytes, eh->size);
	memcpy(bytes + eh->size, mended->bytes, mended->size);
	for (uint32_t i = 0; i < mended->index.nr; i++) {
		uint64_t *fde = &eh->fdes[mended->index.v[i] >> 32];

		*fde = (*fde & ~(uint64_t)UINT32_MAX) |
		       (uint32_t)(eh->size + (uint32_t)mended->index.v[i]);
	}
	if (!eh->borrowed)
		free((void *)(uintptr_t)eh->bytes);
	eh->borrowed = false;
	eh->in_file = 0;
	eh->bytes = bytes;
	eh->size += mended->size;
}

/* Mend the tables of functions with thunks inside. */
static void mend_thunks(struct derive_elf *d, const struct derive_code *code)
{
	struct ehframe *eh = &d->image->eh;
	struct list places = { NULL, 0, 0 };
	struct records mended = { .size = 0 };

	d->to = &mended;
	for (uint32_t i = 0; i < eh->nr_fdes && !d->failed; i++) {
		uint32_t from = mended.size;
		struct ehframe_fde fde;

		if (mended.size > RECORDS_MAX || eh->size + mended.size > UINT32_MAX - RECORD_MAX)
			break;
		if (!ehframe_at(eh, i, &fde))
			continue;
		find_places(code, d->cpu->word, &fde, &places);
		if (places.nr && put_record(d, fde.offset, (uint32_t)eh->size + from, &places))
			add(&mended.index, (uint64_t)i << 32 | from);
		else
			mended.size = from;
	}
	if (mended.index.nr && !d->failed)
		join_mended(d, &mended);
	d->failed = false;
	free(places.v);
	free(mended.bytes);
	free(mended.index.v);
}

/* Mend the tables of a file with thunks. Return whether a part that was looked at has some. */
static bool mend_all_thunks(struct derive_elf *d)
{
	const Elf64_Shdr *text = elffile_section(d->f, ".text");
	struct derive_code code = { NULL, 0, 0 };
	bool found = false;
	void *copy;

	if (!text || text->sh_size > THUNKS_MAX)
		return false;
	for (uint64_t i = 0; i < PROBES && !found; i++) {
		uint64_t size = MIN(text->sh_size, PROBE_CODE);
		uint64_t at = (text->sh_size - size) / PROBES * i;

		copy = NULL;
		code = (struct derive_code){ NULL, text->sh_addr + at, size };
		code.bytes = elffile_bytes(d->f, text->sh_offset + at, size, &copy);
		found = code.bytes && has_thunk(&code, d->cpu->word);
		free(copy);
	}
	if (!found)
		return false;
	copy = NULL;
	code = (struct derive_code){ NULL, text->sh_addr, text->sh_size };
	code.bytes = elffile_bytes(d->f, text->sh_offset, code.size, &copy);
	if (code.bytes && d->image->eh.bytes)
		mend_thunks(d, &code);
	free(copy);
	return true;
}

/*
 * Note the addresses that the code in [@pc, @end) calls and computes; @sure: an instruction begins
 * at @pc. Without tables it is followed in a line, so that some tables of jumps may not be there.
 */
static void sweep(struct derive_elf *d, uint64_t pc, uint64_t end, bool sure)
{
	const struct derive_code *code = code_at(d, pc);
	struct derive_state s = { .word = d->cpu->word };

	while (code && pc < end && d->visits++ < VISITS_MAX) {
		struct derive_insn in;

		d->cpu->step(code, pc, sure ? NULL : &s, &in);
		if (in.table)
			add(&d->marks, in.table);
		if (in.flow == DERIVE_BAD && sure)
			break;
		pc += MAX(in.size, 1);
		if (!in.target)
			continue;
		if (!in_gap(d, in.target)) {
			if (in.flow == DERIVE_ON && !sure)
				add(&d->marks, in.target);
		} else if (in.flow == DERIVE_ON && sure) {
			add(&d->maybe, in.target);
		} else if (sure) {
			add(&d->starts, in.target);
		}
	}
}

static void sweep_all(struct derive_elf *d)
{
	const struct ehframe *eh = &d->image->eh;

	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		struct ehframe_fde fde;

		if (ehframe_at(eh, i, &fde))
			sweep(d, fde.start, fde.start + fde.size, true);
	}
	for (uint32_t i = 0; i < d->nr_gaps; i++)
		sweep(d, d->gaps[i].start, d->gaps[i].end, false);
}

static bool add_relative(const Elf64_Rela *r, void *ctx)
{
	struct derive_elf *d = ctx;

	if (in_gap(d, (uint64_t)r->r_addend))
		add(&d->maybe, (uint64_t)r->r_addend);
	return true;
}

/* Functions of libraries that never return, as their headers say. */
/* clang-format off */
static const char *const endless[] = {
	"abort", "exit", "_exit", "_Exit", "__stack_chk_fail", "__assert_fail", "__chk_fail",
	"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "pthread_exit", "__fortify_fail",
	"_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_throw_bad_array_new_length",
	"__cxa_bad_cast", "_ZSt9terminatev", "__libc_fatal", "err", "errx",
	"g_assertion_message", "g_assertion_message_expr", "rb_raise", "rb_exc_raise", "rb_bug",
	"rb_error_arity", "rb_memerror", "Perl_croak", "Perl_croak_nocontext",
	"Perl_croak_xs_usage", "Perl_croak_no_modify", "zend_error_noreturn", "_zend_bailout",
	"_Py_FatalErrorFunc", "Py_Exit", "caml_failwith", "caml_invalid_argument",
	"caml_raise_out_of_memory", "_gfortran_os_error_at", "_gfortran_runtime_error_at",
	"_d_arraybounds", "_d_arraybounds_index", "_d_arraybounds_slice", "_d_assert",
	"_d_assert_msg", "_d_throw_exception",
};
/* clang-format on */

static bool is_endless(const char *name)
{
	/* std::__throw_length_error() and its like, of libstdc++ */
	if (!strncmp(name, "_ZSt", 4) && strstr(name, "__throw_"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(endless); i++) {
		size_t n = strlen(endless[i]);

		if (!strncmp(name, endless[i], n) && (!name[n] || !strcmp(name + n, "@plt")))
			return true;
	}
	return false;
}

/*
 * Return whether a symbol is of a part of a function that jumps lead to, as "f.cold" of gcc and
 * "f.cold.1" of LLVM: it begins with the frame of the rest.
 */
static bool is_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (!cold[5] || cold[5] == '.');
}

/* Return whether @s may be a place in a function of assembler, which jumps to it or goes on there.
 */
static bool is_label(const struct image_symbol *s)
{
	return (s->rank & (IMAGE_RANK_TABLE | IMAGE_RANK_BOUND | IMAGE_RANK_FUNC)) ==
	       IMAGE_RANK_TABLE;
}

struct stub_name {
	const char *name; /* of the function that it leads to */
	uint64_t vaddr;
};

static int by_name(const void *a, const void *b)
{
	const struct stub_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct derive_stub *x = a, *y = b;

	return COMPARE(x->vaddr, y->vaddr);
}

/* Find the stubs that lead to functions of the same file, which others may replace. */
static void find_stubs(struct derive_elf *d)
{
	const struct image *image = d->image;
	struct stub_name *names = NULL;
	uint32_t nr = 0, room = 0;

	for (uint32_t i = 0; i < image->nr_symbols; i++)
		if (image->symbols[i].stub && array_reserve(&names, &room, nr + 1u))
			names[nr++] = (struct stub_name){ image->names + image->symbols[i].name,
							  image->symbols[i].vaddr };
	if (nr)
		qsort(names, nr, sizeof(*names), by_name);
	for (uint32_t i = 0; nr && i < image->nr_symbols; i++) {
		struct stub_name key = { .name = image->names + image->symbols[i].name };
		const struct stub_name *s = bsearch(&key, names, nr, sizeof(*names), by_name);

		if (s && !image->symbols[i].stub &&
		    array_reserve(&d->stubs, &d->room_stubs, d->nr_stubs + 1u))
			d->stubs[d->nr_stubs++] =
				(struct derive_stub){ s->vaddr, image->symbols[i].vaddr };
	}
	if (d->nr_stubs)
		qsort(d->stubs, d->nr_stubs, sizeof(*d->stubs), by_vaddr);
	free(names);
}

static void find_starts(struct derive_elf *d)
{
	struct image *image = d->image;

	for (uint32_t i = 0; i < image->nr_symbols; i++)
		if (is_endless(image->names + image->symbols[i].name))
			add(&d->endless, image->symbols[i].vaddr);
	for (uint32_t i = 0; i < image->nr_symbols; i++)
		if (in_gap(d, image->symbols[i].vaddr) &&
		    !is_part(image->names + image->symbols[i].name))
			add(is_label(&image->symbols[i]) ? &d->maybe : &d->starts,
			    image->symbols[i].vaddr);
	if (d->total >= SWEEP_MIN)
		sweep_all(d);
	if (d->total >= SWEEP_MIN && d->cpu->word == 8)
		elffile_relative(d->f, add_relative, d);
}

static void put_cie(struct derive_elf *d, struct records *to)
{
	d->to = to;
	put(d, 0, 8);
	put(d, 1, 2); /* version, no augmentation */
	put_uleb(d, 1);
	put_sleb(d, -d->cpu->word);
	put(d, d->cpu->ra_dwarf, 1);
	put(d, 0x0c, 1); /* DW_CFA_def_cfa */
	put_uleb(d, d->cpu->sp_dwarf);
	put_uleb(d, (uint64_t)-d->cpu->sp_at_entry);
	if (d->cpu->link == DERIVE_ON_STACK) {
		put(d, 0x80u | d->cpu->ra_dwarf, 1); /* DW_CFA_offset */
		put_uleb(d, 1);
	}
	end_record(d, 0);
}

static void close_record(struct derive_elf *d)
{
	uint64_t size = d->end - d->begin;

	if (!d->open)
		return;
	if (!d->failed)
		memcpy(d->to->bytes + d->open + 16, &size, 8);
	end_record(d, d->open);
	d->open = 0;
}

static void open_record(struct derive_elf *d, uint64_t start)
{
	d->open = d->to->size;
	d->begin = d->loc = start;
	add(&d->to->index, (start - ehhdr_base(d->image->eh.vaddr)) << 32 | d->open);
	put(d, 0, 4);
	put(d, d->open + 4, 4); /* back to the CIE, which is first */
	put(d, start, 8);
	put(d, 0, 8);
	memset(&d->last, 0, sizeof(d->last));
	d->last.cfa = DERIVE_BY_REG;
	d->last.reg = d->cpu->sp_dwarf;
	d->last.off = -d->cpu->sp_at_entry;
}

static void put_cfa_expression(struct derive_elf *d, const struct derive_row *row)
{
	uint32_t from;

	put(d, 0x0f, 1); /* DW_CFA_def_cfa_expression */
	from = d->to->size;
	put(d, 0, 1);
	put(d, 0x70u + row->reg, 1); /* DW_OP_breg0 and others */
	put_sleb(d, row->off);
	if (row->cfa != DERIVE_BY_SUM)
		put(d, 0x06, 1); /* DW_OP_deref */
	if (row->cfa == DERIVE_BY_WORD) {
		put(d, 0x23, 1); /* DW_OP_plus_uconst */
		put_uleb(d, (uint64_t)(int64_t)row->word_off);
	} else {
		put(d, 0x70u + d->cpu->sp_dwarf, 1);
		put_sleb(d, row->word_off);
		put(d, 0x22, 1); /* DW_OP_plus */
	}
	if (!d->failed)
		d->to->bytes[from] = (uint8_t)(d->to->size - from - 1);
}

static void put_cfa(struct derive_elf *d, const struct derive_row *row)
{
	const struct derive_row *last = &d->last;

	if (row->cfa == last->cfa && row->reg == last->reg && row->off == last->off &&
	    row->word_off == last->word_off)
		return;
	if (row->cfa == DERIVE_END) {
		put(d, 0x07, 1); /* DW_CFA_undefined */
		put_uleb(d, d->cpu->ra_dwarf);
	} else if (row->cfa != DERIVE_BY_REG) {
		put_cfa_expression(d, row);
	} else if (row->cfa == last->cfa && row->reg == last->reg && row->off >= 0) {
		put(d, 0x0e, 1); /* DW_CFA_def_cfa_offset */
		put_uleb(d, (uint64_t)row->off);
	} else if (row->off >= 0) {
		put(d, 0x0c, 1);
		put_uleb(d, row->reg);
		put_uleb(d, (uint64_t)row->off);
	} else {
		put(d, 0x12, 1); /* DW_CFA_def_cfa_sf */
		put_uleb(d, row->reg);
		put_sleb(d, row->off / -d->cpu->word);
	}
}

static void put_saved(struct derive_elf *d, const struct derive_row *row)
{
	for (unsigned int i = 0; i < d->cpu->nr_saved; i++) {
		uint8_t reg = d->cpu->saved_dwarf[i];
		int32_t off = row->saved[i].off;
		uint32_t from;

		if (!memcmp(&row->saved[i], &d->last.saved[i], sizeof(row->saved[i])))
			continue;
		switch (row->saved[i].where) {
		case DERIVE_SAME:
			put(d, 0x08, 1); /* DW_CFA_same_value */
			put_uleb(d, reg);
			continue;
		case DERIVE_AT_CFA:
			if (off % d->cpu->word)
				break;
			if (off <= 0) {
				put(d, 0x80u | reg, 1);
				put_uleb(d, (uint64_t)(off / -d->cpu->word));
			} else {
				put(d, 0x11, 1); /* DW_CFA_offset_extended_sf */
				put_uleb(d, reg);
				put_sleb(d, off / -d->cpu->word);
			}
			continue;
		case DERIVE_AT_SP:
			put(d, 0x10, 1); /* DW_CFA_expression */
			put_uleb(d, reg);
			from = d->to->size;
			put(d, 0, 1);
			put(d, 0x70u + d->cpu->sp_dwarf, 1);
			put_sleb(d, off);
			if (!d->failed)
				d->to->bytes[from] = (uint8_t)(d->to->size - from - 1);
			continue;
		}
		put(d, 0x07, 1);
		put_uleb(d, reg);
	}
}

/* Append a row to the open record, or begin another one. */
static void add_row(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		    bool guessed)
{
	struct derive_elf *d = ctx;
	struct records *to = guessed ? &d->guessed : &d->sure;

	if (d->sure.size + d->guessed.size > RECORDS_MAX || d->failed)
		return;
	if (!d->open || start != d->end || to != d->to || row->cfa == DERIVE_END ||
	    d->last.cfa == DERIVE_END || d->to->size - d->open > RECORD_MAX) {
		close_record(d);
		d->to = to;
		open_record(d, start);
	}
	put_advance(d, start);
	put_cfa(d, row);
	if (row->cfa != DERIVE_END)
		put_saved(d, row);
	d->last = *row;
	d->end = end;
}

static void derive_gaps(struct derive_elf *d)
{
	struct derive_sink sink = { add_row, d };
	uint64_t most = d->image->sites.cut ? d->choice->visits_max : VISITS_MAX;
	uint64_t left = most, visits;

	for (uint32_t i = 0; i < d->nr_gaps && left; i++) {
		const struct range *g = &d->gaps[i];
		const struct derive_code *code = code_at(d, g->start);
		uint64_t size = g->end - g->start;
		struct derive_input in = {
			.cpu = d->cpu,
			.visits_max = left,
			.entry = d->entry,
			.starts = d->starts.v,
			.nr_starts = d->starts.nr,
			.maybe = d->maybe.v,
			.nr_maybe = d->maybe.nr,
			.marks = d->marks.v,
			.nr_marks = d->marks.nr,
			.endless = d->endless.v,
			.nr_endless = d->endless.nr,
			.stubs = d->stubs,
			.nr_stubs = d->nr_stubs,
			.data = d->data,
			.nr_data = d->nr_data,
			.text = d->code,
			.nr_text = d->nr_code,
		};

		if (!code || size > code->size - (g->start - code->vaddr))
			continue;
		in.code = (struct derive_code){ code->bytes + (g->start - code->vaddr), g->start,
						(size_t)size };
		visits = derive_rows(&in, &sink);
		left -= MIN(left, visits);
		close_record(d);
	}
	d->image->sites.visits = (uint32_t)(most - left);
}

static uint64_t end_of_image(const struct image *image)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < image->nr_segments; i++)
		end = MAX(end, image->segments[i].vaddr + image->segments[i].mem_size);
	return (end + 4095) & ~4095ULL;
}

/* Put the records behind the ones of the file. */
static int join_records(struct derive_elf *d)
{
	struct ehframe *eh = &d->image->eh;
	struct list *a = &d->sure.index, *b = &d->guessed.index;
	/* Not at 0, which says that there are none. */
	uint32_t base = MAX((uint32_t)eh->size, 8u), i = 0, k = 0, nr = 0;
	uint8_t *bytes = malloc(base + d->sure.size + d->guessed.size);
	uint64_t *fdes = malloc((eh->nr_fdes + a->nr + b->nr) * sizeof(*fdes));

	for (uint32_t n = 0; n < a->nr; n++)
		a->v[n] += base;
	for (uint32_t n = 0; n < b->nr; n++)
		add(a, b->v[n] + base + d->sure.size);
	sort(a);
	if (!bytes || !fdes) {
		free(bytes);
		free(fdes);
		return -ENOMEM;
	}
	memset(bytes, 0, 8);
	if (eh->size)
		memcpy(bytes, eh->bytes, eh->size);
	memcpy(bytes + base, d->sure.bytes, d->sure.size);
	memcpy(bytes + base + d->sure.size, d->guessed.bytes, d->guessed.size);
	while (i < eh->nr_fdes || k < a->nr) {
		bool first = k == a->nr || (i < eh->nr_fdes && eh->fdes[i] < a->v[k]);

		fdes[nr++] = first ? eh->fdes[i++] : a->v[k++];
	}
	if (!eh->borrowed)
		free((void *)(uintptr_t)eh->bytes);
	free(eh->fdes);
	eh->borrowed = false;
	eh->bytes = bytes;
	eh->fdes = fdes;
	eh->nr_fdes = nr;
	eh->derived = base;
	eh->guessed = base + d->sure.size;
	eh->size = base + d->sure.size + d->guessed.size;
	return 0;
}

static void free_all(struct derive_elf *d)
{
	struct list *lists[] = { &d->starts,  &d->maybe,      &d->marks,
				 &d->endless, &d->sure.index, &d->guessed.index };

	for (uint32_t i = 0; !d->mapped && i < d->nr_code; i++)
		free((void *)(uintptr_t)d->code[i].bytes);
	for (uint32_t i = 0; !d->mapped && i < d->nr_data; i++)
		free((void *)(uintptr_t)d->data[i].bytes);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		free(lists[i]->v);
	free(d->stubs);
	free(d->gaps);
	free(d->code);
	free(d->data);
	free(d->sure.bytes);
	free(d->guessed.bytes);
}

static void leave_tables(struct ehframe *eh)
{
	if (!eh->borrowed)
		free((void *)(uintptr_t)eh->bytes);
	ehframe_fini(eh);
	eh->bytes = NULL;
	eh->size = eh->in_file = 0;
	eh->borrowed = false;
}

static int derive_all(struct derive_elf *d)
{
	struct ehframe *eh = &d->image->eh;

	find_starts(d);
	find_stubs(d);
	sort(&d->starts);
	sort(&d->maybe);
	sort(&d->endless);
	sort(&d->marks);
	if (!eh->bytes) {
		eh->vaddr = end_of_image(d->image);
		eh->machine = d->image->machine;
	}
	put_cie(d, &d->guessed);
	put_cie(d, &d->sure);
	derive_gaps(d);
	if (d->choice && d->choice->alone)
		leave_tables(eh);
	return (d->sure.index.nr || d->guessed.index.nr) && !d->failed ? join_records(d) : 0;
}

struct frames {
	const struct derive_cpu *cpu;
	struct derive_frame *out;
	uint64_t vaddr;
	uint32_t nr, max;
};

/* Set *@off to the slot of the caller's @reg, 0: it is in the register. False: not known. */
static bool find_slot(const struct derive_cpu *cpu, const struct derive_row *row, uint8_t reg,
		      int32_t *off)
{
	for (unsigned int k = 0; k < cpu->nr_saved; k++)
		if (cpu->saved[k] == reg) {
			*off = row->saved[k].where == DERIVE_AT_CFA ? row->saved[k].off : 0;
			return row->saved[k].where == DERIVE_SAME ||
			       row->saved[k].where == DERIVE_AT_CFA;
		}
	return false;
}

static void take_frame(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		       bool guessed)
{
	struct frames *f = ctx;
	const struct derive_cpu *cpu = f->cpu;
	const uint8_t fp = cpu->dwarf ? cpu->dwarf[cpu->fp] : cpu->fp;
	struct derive_frame frame = {
		.start = (uint32_t)(start - f->vaddr),
		.size = (uint32_t)(end - start),
		.cfa = row->off,
		.ra = cpu->sp_at_entry,
		.by_fp = row->reg == fp,
	};

	if (guessed || f->nr == f->max || row->cfa != DERIVE_BY_REG ||
	    (row->reg != fp && row->reg != cpu->sp_dwarf) ||
	    !find_slot(cpu, row, cpu->fp, &frame.fp) ||
	    (cpu->link != DERIVE_ON_STACK && !find_slot(cpu, row, cpu->link, &frame.ra)))
		return;
	f->out[f->nr++] = frame;
}

uint32_t derive_function(uint16_t machine, uint64_t vaddr, const uint8_t *bytes, size_t size,
			 struct derive_frame *out, uint32_t max)
{
	struct frames f = { .out = out, .vaddr = vaddr, .max = max };
	struct derive_input in = {
		.code = { bytes, vaddr, size },
		.visits_max = VISITS_MAX,
		.starts = &vaddr,
		.nr_starts = 1,
		.text = &in.code,
		.nr_text = 1,
		.made = true,
	};

	if (machine == EM_X86_64)
		f.cpu = &derive_x86;
	else if (machine == EM_AARCH64 && vaddr % 4 == 0)
		f.cpu = &derive_arm64;
	if (!f.cpu || size > UINT32_MAX || vaddr + size < vaddr)
		return 0;
	in.cpu = f.cpu;
	assert(bytes || !size);
	derive_rows(&in, &(struct derive_sink){ take_frame, &f });
	return f.nr;
}

static bool read_code(const struct derive_file *f, uint64_t vaddr, uint8_t *buf, size_t size,
		      struct derive_code *out)
{
	ssize_t nr = pread(f->fd, buf, size, (off_t)(vaddr - f->bias));

	*out = (struct derive_code){ buf, vaddr, (size_t)MAX(nr, 0) };
	return nr > 0;
}

/* Return where the function at the begin of @code leads on to, and *@end of that jump; 0: it does
 * more. */
static uint64_t leads_to(const struct derive_code *code, const struct derive_cpu *cpu,
			 uint64_t *end)
{
	const uint64_t sp = derive_value(DERIVE_CFA, cpu->sp_at_entry);
	struct derive_state s = { .word = cpu->word };
	struct derive_insn in = { .flow = DERIVE_ON };

	*end = code->vaddr;
	s.reg[cpu->sp] = sp;
	if (cpu->link != DERIVE_ON_STACK)
		s.reg[cpu->link] = RETURN_ADDRESS;
	for (unsigned int i = 0; i < TAIL_INSNS && in.flow == DERIVE_ON; i++) {
		cpu->step(code, *end, &s, &in);
		*end += in.size;
	}
	if (in.flow != DERIVE_JUMP || s.reg[cpu->sp] != sp ||
	    (cpu->link != DERIVE_ON_STACK && s.reg[cpu->link] != RETURN_ADDRESS))
		return 0;
	return in.target;
}

uint32_t derive_tail_calls(const struct derive_file *f, uint64_t next,
			   uint64_t out[static TAIL_CALLS_MAX])
{
	static const struct derive_cpu *const cpus[] = { &derive_x86, &derive_i386, &derive_arm64 };
	const uint8_t size = f->machine == EM_AARCH64 ? 4 : 5; /* of a direct call */
	const struct derive_cpu *cpu = NULL;
	struct derive_insn in;
	struct derive_code code;
	uint8_t bytes[5];
	uint32_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		cpu = cpus[i]->machine == f->machine ? cpus[i] : cpu;
	if (!cpu || !read_code(f, next - size, bytes, size, &code))
		return 0;
	cpu->step(&code, next - size, NULL, &in);
	if (in.flow != DERIVE_CALL || in.size != size)
		return 0;
	for (uint64_t to = in.target, end; to && nr < TAIL_CALLS_MAX;) {
		uint8_t body[TAIL_CODE];

		out[nr++] = to;
		to = read_code(f, to, body, sizeof(body), &code) ? leads_to(&code, cpu, &end) : 0;
	}
	return nr;
}

/*
 * Find out whether main() does no more than lead on to another function: it has no frame then, but
 * its caller is known. The code at the entry has its address in rdi, the first argument.
 */
static void find_main(struct derive_elf *d)
{
	struct image *image = d->image;
	const struct image_symbol *s = NULL;
	uint8_t bytes[TAIL_CODE];
	struct derive_code code = { bytes, 0, sizeof(bytes) };
	uint64_t end;

	if (d->cpu != &derive_x86 || !elffile_read_at(d->f, d->entry, bytes, sizeof(bytes)))
		return;
	for (uint32_t i = 0; i + 7 <= sizeof(bytes) && !code.vaddr; i++) {
		uint64_t value = (uint64_t)(int64_t)(int32_t)bytes_u32(bytes + i + 3);

		if (!memcmp(bytes + i, "\x48\x8d\x3d", 3)) /* lea (%rip),%rdi */
			code.vaddr = d->entry + i + 7 + value;
		else if (!memcmp(bytes + i, "\x48\xc7\xc7", 3)) /* mov $,%rdi */
			code.vaddr = value;
	}
	s = code.vaddr ? image_find(image, code.vaddr) : NULL;
	if (!s || s->vaddr != code.vaddr || !image_symbol_is(image, s, "main") ||
	    !elffile_read_at(d->f, code.vaddr, bytes, sizeof(bytes)))
		return;
	image->main_to = leads_to(&code, d->cpu, &end);
	image->main_end = end;
}

int derive_image(struct image *image, const struct elffile *f, const struct derive_choice *choice)
{
	struct derive_elf d = { .image = image, .f = f, .choice = choice };
	bool narrow = f->machine == EM_386 && f->elf_class == ELFCLASS32;
	int rc = 0;

	assert(image->nr_segments || !image->segments);
	if (narrow)
		d.cpu = &derive_i386;
	else if (f->machine == EM_X86_64 && f->elf_class == ELFCLASS64)
		d.cpu = &derive_x86;
	else if (f->machine == EM_AARCH64 && f->elf_class == ELFCLASS64)
		d.cpu = &derive_arm64;
	if (!d.cpu || image->eh.derived ||
	    elffile_read(f, offsetof(Elf64_Ehdr, e_entry), &d.entry, d.cpu->word))
		return 0;
	find_main(&d);
	add(&d.starts, d.entry);
	if (narrow) {
		load_code(&d);
		load_data(&d);
	}
	if (d.cpu != &derive_arm64 && !(choice && choice->alone))
		image->thunks = mend_all_thunks(&d);
	if (narrow && !elffile_waits(f))
		drop_wrong(&d);
	find_code(&d);
	if (choice && (choice->alone || d.total > CODE_MAX))
		choose_sites(&d);
	if (d.wrong || d.total >= TOTAL_MIN) {
		if (!narrow)
			load_code(&d);
		if (!narrow && d.total >= SWEEP_MIN)
			load_data(&d);
		if (!elffile_waits(f))
			rc = derive_all(&d);
	}
	if (choice && choice->alone && !image->eh.derived && !elffile_waits(f))
		leave_tables(&image->eh);
	free_all(&d);
	return rc;
}
