// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libunwind's accessors, and the gate in front of them.
 *
 * Runs on the sampler thread that owns the struct step. Invariant: libunwind
 * reads nothing but the stack copy of this sample and the .eh_frame of the object
 * of this frame, after the gate has accepted the FDE.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>

#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/base/base.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"

/*
 * The budget of a sample, in memory reads of libunwind (about 6 ns each): enough
 * for the longest FDEs of compilers (20 KiB of instructions; 450 remembered
 * states), and the worst sample takes less than 1 ms. Rows learned before the
 * budget was used up are kept, so the next sample gets further. A reading of proftop itself is not
 * begun if the whole FDE costs more than is left.
 */
#define STEP_BUDGET_READS 65536u

/*
 * What one process, and all together, may read in a second on one CPU, about 4 and 15 % of its
 * time; a sample beyond that has STEP_BUDGET_LEAST. Tables that are expensive on purpose take no
 * more time from the sampler thread. Callers found by rows are free.
 */
#define STEP_PROCESS_READS (4u << 20)

#define STEP_ALL_READS	   (16u << 20)
#define STEP_BUDGET_LEAST  1024u
#define STEP_COST_NEW	   128u /* a rule that is not in libunwind's cache */
#define STEP_COST_REMEMBER 120u /* libunwind changes the signal mask four times */

/* Exported by libunwind, declared in none of its headers. */
#define search_table UNW_OBJ(dwarf_search_unwind_table)

extern int search_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
			int need_unwind_info, void *arg);

#define CANONICAL	   (1ULL << 62)
#define VADDR_BITS	   38
#define VADDR_MAX	   (1ULL << VADDR_BITS)
#define OBJECT_MAX	   (1ULL << (61 - VADDR_BITS))
#define TABLE_ADDR	   (CANONICAL | 1ULL << 61) /* address of the one-entry search table */
#define SPENDERS	   256			    /* a power of two */
#define GATE_SLOTS	   4096			    /* a power of two */
#define NR_REMEMBERS_CHEAP 16			    /* in an FDE: not worth counting up to the pc */
#define NEGATES_MAX	   64	/* in an FDE; compilers make two for each return */
#define CACHE_SIZE	   1024 /* a larger cache does not help: libunwind hashes into 256 */

enum verdict { GATE_UNKNOWN, GATE_OPEN, GATE_OPEN_SIGNAL, GATE_NO_LIBUNWIND, GATE_SHUT };

struct gate_slot {
	struct cfi_rewrite rewrite;
	struct cfi_rule rule; /* most recent one */
	uint16_t nr_remembers;
	uint8_t nr_negates;
	uint8_t verdict;
};

/* What a process has read in a second. */
struct read_budget {
	uint64_t second;
	uint32_t pid, nr_reads;
};

struct step {
	const struct arch_ops *arch;
	unw_addr_space_t as;	     /* caches rules; NULL: of another CPU */
	unw_addr_space_t as_once;    /* does not: for places that get a row */
	const struct step_input *in; /* of the current frame */
	const struct arch_frame *frame;
	uint64_t ip;		  /* value of the ip register */
	uint64_t base;		  /* canonical address of the object's vaddr 0 */
	uint64_t eh_at, eh_words; /* of its .eh_frame, and the number of addresses with a whole word
				     in it */
	uint64_t table;		  /* the word at TABLE_ADDR */
	uint64_t oob;		  /* the last address read outside the stack copy */
	bool oob_seen, missing;	  /* why a read failed */
	bool finding;		  /* libunwind is searching the FDE */
	bool parsed;		  /* it has read the object's bytes: the rule was not cached */
	uint32_t nr_remembers;	  /* of the current FDE */
	enum cfi_doubt doubt;
	uint8_t nr_negates;	       /* in the current FDE: */
	bool negates_found;	       /* their offsets are known */
	uint32_t negates[NEGATES_MAX]; /* offsets in the section */
	uint32_t budget, begun;	       /* reads left in this sample; at its begin */
	struct read_budget *spender;   /* its process; NULL: no allowance */
	struct read_budget spenders[SPENDERS];
	uint64_t second; /* of sample time, with this number of reads: */
	uint32_t nr_reads;
	uint64_t gate_key[GATE_SLOTS]; /* image_key() << 32 | offset of the FDE */
	struct gate_slot gate[GATE_SLOTS];
};

/*
 * Key for verdicts and rules: an object that was evicted and loaded again may
 * have other bytes, which the gate has not seen. An image that was never
 * published has no serial, but is never evicted.
 */
static uint32_t image_key(const struct step_input *in)
{
	return in->image->serial ? in->image->serial : in->object->id;
}

static uint64_t canonical_base(const struct step_input *in)
{
	return CANONICAL | (uint64_t)image_key(in) << VADDR_BITS;
}

/* Read a word that is partly outside the section: zeros for the bytes outside. */
static uint64_t read_eh(const struct ehframe *eh, uint64_t vaddr)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < sizeof(value); i++) {
		uint64_t at = vaddr + i - eh->vaddr;

		if (at < eh->size)
			value |= (uint64_t)eh->bytes[at] << (8 * i);
	}
	return value;
}

static void charge(struct step *s, uint32_t cost)
{
	s->budget -= MIN(s->budget, cost);
}

/*
 * libunwind 1.6 fails at DW_CFA_AARCH64_negate_ra_state. It only says that return
 * addresses are signed, and signatures are removed anyway: let libunwind read
 * no-ops.
 */
static void blank_negates(struct step *s, uint64_t at, uint64_t *word)
{
	uint32_t cost;

	if (!s->negates_found) {
		s->nr_negates = (uint8_t)cfi_negates(s->arch, &s->in->image->eh, s->in->fde->offset,
						     s->negates, NEGATES_MAX, &cost);
		charge(s, cost / 2);
	}
	s->negates_found = true;
	for (unsigned int i = 0; i < s->nr_negates; i++)
		if (s->negates[i] - at < sizeof(*word))
			*word &= ~(0xffULL << (s->negates[i] - at) * 8);
}

/*
 * Read a word of an object's .eh_frame or of the search table. While it searches
 * the FDE, libunwind also follows pointers out of the section (personality,
 * LSDA), and fails if it cannot; the values are not used: zeros.
 */
static bool read_canonical(struct step *s, uint64_t addr, uint64_t *value)
{
	const struct ehframe *eh = &s->in->image->eh;
	uint64_t vaddr = addr - s->base, at = vaddr - eh->vaddr;

	*value = 0;
	if (addr == TABLE_ADDR) {
		*value = s->table;
		return s->finding;
	}
	/* On AArch64 it checks whether this is a signal trampoline: it never is. */
	if (vaddr == s->in->vaddr && !s->finding)
		return true;
	if (at < s->eh_words)
		memcpy(value, eh->bytes + at, sizeof(*value));
	else if (at + (sizeof(*value) - 1) >= eh->size + (sizeof(*value) - 1))
		return s->finding;
	else
		*value = read_eh(eh, vaddr);
	if (s->nr_negates)
		blank_negates(s, at, value);
	return true;
}

/* Read a word that is not in the object's .eh_frame, or differs from the file. */
static __attribute__((noinline)) int access_other(struct step *s, uint64_t addr, unw_word_t *value)
{
	uint64_t word;

	if (addr >> 62 == 1 && read_canonical(s, addr, &word)) {
		s->parsed = true;
		*value = word;
		return 0;
	}
	if (!stack_copy_read(s->in->copy, addr, &word)) {
		s->oob = addr;
		s->oob_seen = true;
		return -UNW_EINVAL;
	}
	*value = word;
	return 0;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct step *s = arg;

	if (write)
		return 0;
	if (!s->budget)
		return -UNW_EUNSPEC;
	s->budget--;
	if (addr - s->eh_at >= s->eh_words || addr == s->base + s->in->vaddr || s->nr_negates)
		return access_other(s, addr, value);
	memcpy(value, s->in->image->eh.bytes + (addr - s->eh_at), sizeof(*value));
	s->parsed = true;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	struct step *s = arg;

	if (write)
		return 0;
	if (reg == s->arch->pc) {
		*value = s->ip;
		return 0;
	}
	if (reg < 0 || reg >= s->arch->nr_regs || !arch_has(s->frame, (unsigned int)reg)) {
		s->missing = true;
		return -UNW_EBADREG;
	}
	*value = s->frame->reg[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *arg)
{
	return -UNW_EBADREG;
}

/* Return the FDE that was found and accepted: a table of one entry leads to it. */
static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
			  void *arg)
{
	struct step *s = arg;
	const struct step_input *in = s->in;
	const struct ehframe *eh = &in->image->eh;
	uint64_t record = eh->vaddr + in->fde->offset;
	struct ehframe_record rec;
	unw_dyn_info_t di;
	int rc;

	if (ip != s->base + in->vaddr || ehframe_read(eh, in->fde->offset, &rec))
		return -UNW_ENOINFO;
	memset(&di, 0, sizeof(di));
	di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	di.start_ip = s->base + rec.start;
	di.end_ip = di.start_ip + rec.size;
	di.u.rti.segbase = s->base + record;
	di.u.rti.table_data = TABLE_ADDR;
	di.u.rti.table_len = 1;
	/* Addresses that are not relative are vaddrs: libunwind adds load_offset. */
	if (!(rec.cie.encoding & 0x70))
		di.load_offset = s->base;
	/* start relative to the record, and the record itself */
	s->table = (uint32_t)(rec.start - record);
	s->finding = true;
	rc = search_table(as, ip, &di, pi, need, arg);
	s->finding = false;
	return rc;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t addr, char *name, size_t size,
			 unw_word_t *offset, void *arg)
{
	return -UNW_ENOINFO;
}

int step_new(struct step **out, const struct arch_ops *arch, struct err *e)
{
	static const unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	/* libunwind 1.8 copies three functions more than the headers of 1.6 have: none. */
	struct {
		unw_accessors_t known;
		void *none[8];
	} copy = { .known = accessors };
	struct step *s = xcalloc(1, sizeof(*s));

	s->arch = arch;
	*out = s;
	if (arch != arch_native())
		return 0;
	s->as = unw_create_addr_space(&copy.known, 0);
	s->as_once = unw_create_addr_space(&copy.known, 0);
	if (!s->as || !s->as_once) {
		step_free(s);
		*out = NULL;
		return err_set(e, -ENOMEM, "cannot create libunwind address space: out of memory");
	}
	/* GLOBAL means per address space, and this one belongs to one thread. */
	unw_set_caching_policy(s->as, UNW_CACHE_GLOBAL);
	unw_set_cache_size(s->as, CACHE_SIZE, 0);
	unw_set_caching_policy(s->as_once, UNW_CACHE_NONE);
	return 0;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	if (s->as)
		unw_destroy_addr_space(s->as);
	if (s->as_once)
		unw_destroy_addr_space(s->as_once);
	free(s);
}

void step_begin(struct step *s)
{
	s->budget = s->begun = STEP_BUDGET_READS;
	s->spender = NULL;
}

/* Return the spender of @pid in this second; another pid with the same hash is evicted. */
static struct read_budget *read_budget_of(struct step *s, uint32_t pid, uint64_t time_ns)
{
	struct read_budget *p = &s->spenders[hash_u64(pid) & (SPENDERS - 1)];
	uint64_t second = time_ns / 1000000000;

	if (s->second != second) {
		s->second = second;
		s->nr_reads = 0;
	}
	if (p->pid != pid || p->second != second)
		*p = (struct read_budget){ .pid = pid, .second = second };
	return p;
}

void step_begin_of(struct step *s, uint32_t pid, uint64_t time_ns)
{
	struct read_budget *p = read_budget_of(s, pid, time_ns);
	uint32_t left = STEP_PROCESS_READS - MIN(p->nr_reads, STEP_PROCESS_READS);

	assert(!s->spender);
	left = MIN(left, STEP_ALL_READS - MIN(s->nr_reads, STEP_ALL_READS));
	s->budget = s->begun = MAX(MIN(left, STEP_BUDGET_READS), STEP_BUDGET_LEAST);
	s->spender = p;
	assert(s->budget == s->begun && s->budget >= STEP_BUDGET_LEAST);
}

void step_end(struct step *s)
{
	uint32_t nr = s->begun - s->budget;

	assert(s->budget <= s->begun);
	if (!s->spender)
		return;
	s->spender->nr_reads += nr;
	s->nr_reads += nr;
	s->spender = NULL;
}

bool step_spend(struct step *s, uint32_t cost)
{
	bool left = cost <= s->budget;

	assert(s->budget <= s->begun);
	charge(s, cost);
	return left;
}

/* Return true if libunwind can read this FDE: its addresses fit into canonical ones. */
static bool reaches(const struct step *s, const struct step_input *in)
{
	const struct ehframe *eh = &in->image->eh;
	int64_t away = (int64_t)(in->fde->start - (eh->vaddr + in->fde->offset));

	return s->as && image_key(in) < OBJECT_MAX && in->fde->start + in->fde->size < VADDR_MAX &&
	       eh->vaddr + eh->size < VADDR_MAX && away > INT32_MIN &&
	       away < INT32_MAX - (int64_t)in->fde->size;
}

/* Return true if the budget covers a reading of the whole FDE. */
static bool affords(const struct step *s, const struct step_input *in)
{
	return s->budget && cfi_size(&in->image->eh, in->fde->offset) / 2 <= s->budget;
}

static enum verdict judge(struct step *s, const struct step_input *in, struct gate_slot *slot)
{
	struct cfi_fde info;
	enum cfi_reason reason = cfi_check(s->arch, &in->image->eh, in->fde->offset, NULL, &info);

	charge(s, info.cost / 2);
	slot->rewrite = info.rewrite;
	slot->nr_remembers = (uint16_t)MIN(info.nr_remembers, UINT16_MAX);
	slot->nr_negates = (uint8_t)MIN(info.nr_negates, UINT8_MAX);
	if (reason != CFI_OK)
		return GATE_SHUT;
	if (!reaches(s, in))
		return GATE_NO_LIBUNWIND;
	if (!info.libunwind || info.nr_negates > NEGATES_MAX)
		return GATE_SHUT;
	return info.signal ? GATE_OPEN_SIGNAL : GATE_OPEN;
}

/* Get the slot of the FDE of @in; an FDE with the same hash is evicted. */
static struct gate_slot *slot_of(struct step *s, const struct step_input *in)
{
	uint64_t key = (uint64_t)image_key(in) << 32 | in->fde->offset;
	size_t at = hash_u64(key) & (GATE_SLOTS - 1);

	if (s->gate_key[at] != key) {
		s->gate_key[at] = key;
		s->gate[at] = (struct gate_slot){ 0 };
	}
	return &s->gate[at];
}

enum step_result step_gate(struct step *s, const struct step_input *in, bool *signal)
{
	struct gate_slot *slot = slot_of(s, in);

	assert(in->vaddr >= in->fde->start);
	if (slot->verdict == GATE_UNKNOWN) {
		if (!affords(s, in))
			return STEP_BUDGET;
		slot->verdict = (uint8_t)judge(s, in, slot);
	}
	s->nr_remembers = slot->nr_remembers;
	s->nr_negates = slot->nr_negates;
	s->negates_found = false;
	s->doubt = cfi_doubt(&slot->rewrite, in->vaddr);
	*signal = slot->verdict == GATE_OPEN_SIGNAL;
	if (slot->verdict == GATE_NO_LIBUNWIND)
		return STEP_NO_LIBUNWIND;
	return slot->verdict == GATE_SHUT ? STEP_REFUSED : STEP_CALLER;
}

enum cfi_doubt step_doubt(const struct step *s)
{
	return s->doubt;
}

enum step_result step_rule(struct step *s, const struct step_input *in,
			   const struct cfi_rule **rule)
{
	struct cfi_rule *last = &slot_of(s, in)->rule;
	enum cfi_reason reason = CFI_OK;
	uint32_t cost;

	assert(in->vaddr >= in->fde->start);
	if (!cfi_covers(last, in->vaddr)) {
		if (!affords(s, in))
			return STEP_BUDGET;
		reason = cfi_rule_at(s->arch, &in->image->eh, in->fde->offset, in->vaddr, last,
				     &cost);
		charge(s, cost / 2);
	}
	if (reason != CFI_OK)
		return STEP_REFUSED;
	*rule = last;
	return STEP_CALLER;
}

static enum step_result why_failed(const struct step *s)
{
	if (!s->budget)
		return STEP_BUDGET;
	if (s->oob_seen)
		return step_outside(s->in->copy, s->oob);
	return s->missing ? STEP_NEED_REGS : STEP_FAILED;
}

/* Read the caller's registers out of the cursor. */
static void read_back(struct step *s, unw_cursor_t *cursor, const struct arch_frame *from,
		      struct arch_frame *to)
{
	to->valid = 0;
	for (unsigned int reg = 0; reg < s->arch->nr_regs; reg++) {
		bool is_pc = reg == s->arch->pc;
		unw_word_t value;

		/* The call that made this frame has overwritten the caller's link register. */
		if (reg == s->arch->ra && s->arch->ra_in_register)
			continue;
		s->oob_seen = false;
		/* libunwind 1.6 takes the return address column for the pc on AArch64. */
		if (unw_get_reg(cursor, is_pc ? UNW_REG_IP : (unw_regnum_t)reg, &value) == 0)
			arch_set(to, reg, value);
		else if (s->oob_seen && s->oob < s->in->copy->sp && s->in->first &&
			 arch_has(from, reg))
			/*
			 * An epilogue has popped it: its slot is below sp, its value is in the
			 * register.
			 */
			arch_set(to, reg, from->reg[reg]);
	}
}

/*
 * libunwind also reports the end when a slot has the address 0: accept only the
 * CFI's end, and a return address of 0 (on AArch64, where libunwind also stops at
 * it).
 */
static enum step_result end_of(struct step *s, const struct step_input *in, unw_cursor_t *cursor)
{
	const struct cfi_rule *rule;
	const struct cfi_row *row;
	unw_word_t cfa;
	uint64_t pc;
	enum step_result result = step_rule(s, in, &rule);

	if (result != STEP_CALLER)
		return result == STEP_BUDGET ? STEP_BUDGET : STEP_FAILED;
	row = &rule->row;
	if (row->kind == CFI_END || row->kind == CFI_SWITCH)
		return STEP_ROOT;
	if (row->kind == CFI_ROW && row->ra_where == CFI_AT_CFA &&
	    unw_get_reg(cursor, (unw_regnum_t)s->arch->sp, &cfa) == 0 &&
	    stack_copy_read(in->copy, cfa + row->above + (uint64_t)(int64_t)row->ra_off, &pc) &&
	    !(pc & ~s->arch->ra_clear))
		return STEP_ROOT;
	return STEP_FAILED;
}

/* Estimate libunwind's cost besides its reads, if it has to read an FDE with @nr states. */
static uint32_t cost_of(uint32_t nr)
{
	return nr * STEP_COST_REMEMBER + STEP_COST_NEW;
}

/* The same of this FDE, up to the pc. Counting them costs budget. */
static uint32_t cost_to_pc(struct step *s, const struct step_input *in)
{
	uint32_t nr = s->nr_remembers, cost;

	if (nr > NR_REMEMBERS_CHEAP) {
		nr = cfi_remembers(s->arch, &in->image->eh, in->fde->offset, in->vaddr, &cost);
		charge(s, cost / 2);
	}
	return cost_of(nr);
}

/* Correct the caller's sp, which may be above the CFA that libunwind takes. False: over budget. */
static bool raise_sp(struct step *s, const struct step_input *in, struct arch_frame *f)
{
	const struct cfi_rule *rule;
	enum step_result result = step_rule(s, in, &rule);

	if (result == STEP_CALLER && rule->row.kind == CFI_ROW)
		f->reg[s->arch->sp] += rule->row.above;
	return result != STEP_BUDGET;
}

enum step_result step_frame(struct step *s, const struct step_input *in, struct arch_frame *f)
{
	const struct ehframe *eh = &in->image->eh;
	struct arch_frame caller;
	unw_cursor_t cursor;
	int rc;

	assert(in->vaddr - in->fde->start < in->fde->size);
	/* Not counted if there is enough for all: most rules are in libunwind's cache. */
	if (cost_of(s->nr_remembers) > s->budget &&
	    (!affords(s, in) || cost_to_pc(s, in) > s->budget))
		return STEP_BUDGET;
	s->in = in;
	s->frame = f;
	s->base = canonical_base(in);
	s->eh_at = s->base + eh->vaddr;
	s->eh_words = eh->size - MIN(eh->size, sizeof(uint64_t) - 1);
	s->oob_seen = s->missing = s->parsed = false;
	s->ip = s->base + in->vaddr;
	if (unw_init_remote(&cursor, in->once ? s->as_once : s->as, s) < 0)
		return why_failed(s);
	s->ip = s->base + in->pc_vaddr;
	rc = unw_step(&cursor);
	if (s->parsed)
		charge(s, cost_to_pc(s, in));
	/* On AArch64 it goes on with the link register where one of its reads failed. */
	if (rc < 0 || s->oob_seen || s->missing)
		return why_failed(s);
	if (rc == 0)
		return end_of(s, in, &cursor);
	read_back(s, &cursor, f, &caller);
	if (!arch_has(&caller, s->arch->pc) || !arch_has(&caller, s->arch->sp))
		return STEP_FAILED;
	if (s->arch->ra_in_register && !raise_sp(s, in, &caller))
		return STEP_BUDGET;
	*f = caller;
	f->reg[s->arch->pc] &= ~s->arch->ra_clear;
	return f->reg[s->arch->pc] ? STEP_CALLER : STEP_ROOT;
}
