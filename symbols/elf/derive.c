// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Follow the code of functions without unwind tables and make rows of the facts.
 *
 * Any thread. Invariant: a state at the begin of a block only ever loses facts, so the passes
 * over a piece of code end; a budget of instructions bounds them further.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/table.h"

#define PIECE_MAX	(512u << 10) /* bytes analysed together */
#define PASSES_MAX	64	     /* over a piece: each new jump table needs another one */
#define ROUNDS_MAX	3	     /* in search of functions */
#define VISITS_BYTE	48	     /* instructions visited for each byte of a piece */
#define SEARCHES_BYTE	16	     /* of them in search of returns, besides */
#define JUMPS_MAX	1024	     /* of a piece, to where no table is known */
#define RETURN_INSNS	48	     /* looked at for a return, on one way */
#define SEARCH_INSNS	256 /* looked at in search of the returns of a function, on one way */
#define SEARCH_BRANCHES 32
#define SEARCH_DEPTH	4
#define CASE_INSNS	64   /* looked at for the end of a case */
#define CASE_BYTES	4096 /* to the code before it */
#define LOOP_INSNS	4096 /* looked at for the jump back of a loop */
#define TABLE_MAX	1024 /* entries of a table of jumps */
#define ROWS_SEEN	256
#define WORDS(size)	(((size) + 63) / 64) /* of bits */

static bool is_number(uint64_t v)
{
	return derive_kind(v) == DERIVE_NUMBER || derive_kind(v) == DERIVE_NUMBERS;
}

static uint64_t join_values(uint64_t a, uint64_t b)
{
	if (a == b)
		return a;
	return is_number(a) && is_number(b) ? derive_value(DERIVE_NUMBERS, 0) : 0;
}

static bool same_slot(const struct derive_slot *a, const struct derive_slot *b)
{
	return a->at == b->at && a->value == b->value;
}

/* Keep in @to the facts that are also in @from. Return whether it has lost something. */
static bool join(struct derive_state *to, const struct derive_state *from)
{
	/* Mostly all are equal. */
	unsigned int r = memcmp(to->reg, from->reg, sizeof(to->reg)) ? 0 : DERIVE_REGS;
	bool changed = false;
	uint32_t nr = 0;

	for (; r < DERIVE_REGS; r++) {
		uint64_t common = join_values(to->reg[r], from->reg[r]);

		changed |= to->reg[r] != common;
		to->reg[r] = common;
	}
	for (uint32_t i = 0; i < to->nr_slots; i++)
		if ((i < from->nr_slots && same_slot(&from->slot[i], &to->slot[i])) ||
		    derive_load(from, to->slot[i].at) == to->slot[i].value)
			to->slot[nr++] = to->slot[i];
	changed |= nr != to->nr_slots;
	to->nr_slots = nr;
	changed |= to->is_root && !from->is_root;
	to->is_root &= from->is_root;
	return changed;
}

static uint8_t dwarf_of(const struct derive_cpu *cpu, unsigned int reg)
{
	assert(reg < DERIVE_REGS);
	return cpu->dwarf ? cpu->dwarf[reg] : (uint8_t)reg;
}

enum {
	LEADER = 1,	/* a block begins */
	INSN = 2,	/* an instruction that was discovered begins */
	COVERED = 4,	/* a byte of one */
	START = 8,	/* a function begins */
	NUMBERED = 16,	/* its row is known */
	DOUBTED = 32,	/* a byte of one that is reached by a guess only */
	REACHED = 64,	/* perhaps by a jump to where no table is known */
	LABEL = 512,	/* code computes its address */
	PADDED = 1024,	/* no jump leads to it behind the padding of a call */
	OPEN = 2048,	/* a jump to an address that something may have is before it */
	IN_LINE = 4096, /* an instruction begins, if the function has nothing else in between */
	VISITED = 8192, /* a byte of one that is reached, not by a guess */
	TABLED = 16384, /* a byte of a function, up to the last place to which its tables lead */
};

/* A jump to where no table is known. */
struct jump {
	uint32_t off;
	struct derive_state state;
};

/* Whether functions return that calls lead to. */
struct asked {
	struct hashset ids; /* by the hash of the address */
	uint64_t *v;	    /* address, depth, answer */
	uint32_t nr, room;
};

struct piece {
	const struct derive_input *in;
	const struct derive_cpu *cpu;
	const struct derive_sink *sink;
	struct derive_code code; /* of the piece alone */
	uint16_t *flags;	 /* of each byte */
	uint32_t *state_at;	 /* place of the facts before it, from 1 */
	uint32_t *row_at;	 /* number of the row, from 1 */
	uint64_t *facts;	 /* packed states */
	uint32_t nr_facts, room_facts;
	uint32_t nr_sure;    /* facts of the states that do not depend on guesses */
	uint32_t start, end; /* of the function that was looked for last */
	uint64_t *queued;    /* a bit for each byte: a block to visit begins */
	uint32_t next;	     /* word of it: the ones before are 0 */
	uint32_t *work;	     /* offsets of blocks to discover */
	uint32_t nr_work, room_work;
	struct derive_row *rows;
	uint32_t nr_rows, room_rows;
	uint32_t rows_seen[ROWS_SEEN]; /* numbers, by their hash */
	uint64_t visits, visits_max;
	bool again;  /* a new block begins inside a visited one */
	bool stale;  /* states are wrong: a function begins in code that they depend on */
	bool guess;  /* blocks found now are guessed */
	bool failed; /* out of memory, or over budget */
	struct jump *jumps;
	uint32_t nr_jumps, room_jumps;
	uint32_t asked_start, asked_end; /* the function that join_jumps() was called for last */
	bool asked_result;
	struct derive_state asked_state;
	struct asked asked; /* kept for the next piece */
	uint64_t searches;  /* instructions visited in search of returns */
	bool out_of_searches;
};

static void begin_state(const struct piece *p, struct derive_state *s)
{
	const struct derive_cpu *cpu = p->cpu;

	memset(s, 0, sizeof(*s));
	s->origin = p->code.vaddr;
	for (unsigned int r = 0; r < cpu->nr; r++)
		s->reg[r] = derive_value(DERIVE_ENTRY, (int64_t)r);
	s->reg[cpu->sp] = derive_value(DERIVE_CFA, cpu->sp_at_entry);
	s->word = cpu->word;
	if (cpu->link != DERIVE_ON_STACK)
		return;
	s->slot[0] = (struct derive_slot){ derive_value(DERIVE_CFA, -cpu->word), RETURN_ADDRESS };
	s->nr_slots = 1;
}

/* A state in words: there are tens of thousands in a piece of code, most with few facts. */
enum {
	PACKED_REGS,  /* bits of the registers with a fact; above, of the ones as at the entry */
	PACKED_SLOTS, /* their number; above, is_root */
	PACKED_VALUES /* of the registers, then the slots */
};

#define PACKED_MAX (PACKED_VALUES + DERIVE_REGS + 2 * DERIVE_SLOTS)

/* Return the words that @s takes at @out. */
static uint32_t pack(const struct derive_state *s, uint64_t *out)
{
	uint32_t nr = PACKED_VALUES;

	assert(s->nr_slots <= DERIVE_SLOTS);
	out[PACKED_REGS] = 0;
	out[PACKED_SLOTS] = s->nr_slots | (uint64_t)s->is_root << 32;
	for (unsigned int r = 0; r < DERIVE_REGS; r++) {
		if (s->reg[r] == derive_value(DERIVE_ENTRY, (int64_t)r))
			out[PACKED_REGS] |= 1ULL << (32 + r);
		else if (s->reg[r])
			out[PACKED_REGS] |= 1ULL << r;
		if (out[PACKED_REGS] >> r & 1)
			out[nr++] = s->reg[r];
	}
	memcpy(out + nr, s->slot, s->nr_slots * sizeof(*s->slot));
	return nr + s->nr_slots * 2;
}

/* Get the state before @off. */
static void unpack(const struct piece *p, uint32_t off, struct derive_state *s)
{
	const uint64_t *from = p->facts + (p->state_at[off] - 1);
	uint64_t regs = from[PACKED_REGS];

	assert(p->state_at[off]);
	s->word = p->cpu->word;
	s->origin = p->code.vaddr;
	s->changes = 0;
	s->nr_slots = (uint32_t)from[PACKED_SLOTS];
	s->is_root = from[PACKED_SLOTS] >> 32;
	from += PACKED_VALUES;
	for (unsigned int r = 0; r < DERIVE_REGS; r++) {
		bool entry = regs >> (32 + r) & 1;

		s->reg[r] = entry ? derive_value(DERIVE_ENTRY, (int64_t)r) : 0;
		if (regs >> r & 1)
			s->reg[r] = *from++;
	}
	memcpy(s->slot, from, s->nr_slots * sizeof(*s->slot));
}

static uint64_t at(const struct piece *p, uint32_t off)
{
	return p->code.vaddr + off;
}

static bool inside(const struct piece *p, uint64_t pc)
{
	return pc - p->code.vaddr < p->code.size && !((pc - p->code.vaddr) % p->cpu->align);
}

static bool spend(struct piece *p)
{
	p->failed |= p->visits >= p->visits_max;
	p->visits += !p->failed;
	return !p->failed;
}

static void push_work(struct piece *p, uint32_t off)
{
	if (!array_reserve(&p->work, &p->room_work, p->nr_work + 1u))
		p->failed = true;
	else
		p->work[p->nr_work++] = off;
}

/* Note that a block begins at @off. */
static bool lead(struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	if (p->flags[off] & LEADER)
		return false;
	p->again |= p->flags[off] & (VISITED | DOUBTED);
	p->flags[off] |= LEADER;
	return true;
}

static void cover(struct piece *p, uint32_t off, uint8_t size)
{
	assert(off + size <= p->code.size);
	p->flags[off] |= INSN;
	for (uint32_t i = off; i < off + size; i++)
		p->flags[i] |= COVERED;
}

/* Note that the instruction at @off is reached. */
static void reach(struct piece *p, uint32_t off, uint8_t size)
{
	assert(off + size <= p->code.size);
	for (uint32_t i = off; i < off + size; i++)
		if (!(p->flags[i] & VISITED))
			p->flags[i] |= p->guess ? DOUBTED : VISITED;
}

/* Return whether states depend on the code at @off. */
static bool is_used(const struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	return p->flags[off] & (VISITED | DOUBTED | TABLED);
}

/* Note that a function begins at @off. */
static void begin_function(struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	p->stale |= !(p->flags[off] & START) && is_used(p, off);
	p->flags[off] |= START;
	p->end = 0;
}

static size_t first_at(const uint64_t *v, size_t nr, uint64_t vaddr)
{
	size_t lo = 0;

	while (nr) {
		size_t half = nr / 2;

		if (v[lo + half] < vaddr) {
			lo += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return lo;
}

static bool has(const uint64_t *v, size_t nr, uint64_t vaddr)
{
	size_t i = first_at(v, nr, vaddr);

	return i < nr && v[i] == vaddr;
}

/* A search for a way to the return of a function. */
struct search {
	const struct derive_code *code;
	uint64_t todo[SEARCH_BRANCHES], seen[SEARCH_BRANCHES];
	uint32_t nr_todo, nr_seen;
};

#define ASKED_BITS 4 /* of an entry: depth, answer */

/* Return the entry of the function at @pc; NULL: none. */
static uint64_t *asked_at(const struct asked *a, uint64_t pc)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&a->ids, hash_u64(pc), &at)) != HASHSET_NONE)
		if (a->v[id] >> ASKED_BITS == pc)
			return &a->v[id];
	return NULL;
}

/* Keep that the function at @pc never returns, or that it may: found @depth calls deep. */
static void keep_answer(struct asked *a, uint64_t pc, int depth, bool never)
{
	uint64_t *entry = asked_at(a, pc);

	if (!entry) {
		if (hashset_reserve(&a->ids, 1) || !array_reserve(&a->v, &a->room, a->nr + 1u))
			return;
		entry = &a->v[a->nr];
		hashset_add(&a->ids, hash_u64(pc), a->nr++);
	}
	*entry = pc << ASKED_BITS | (uint64_t)depth << 1 | never;
}

/* Get the answer for @pc into *@never, if it was looked for at least as well. */
static bool was_asked(const struct asked *a, uint64_t pc, int depth, bool *never)
{
	const uint64_t *entry = asked_at(a, pc);

	*never = entry && *entry & 1;
	return entry && (*never || (int)(*entry >> 1 & 7) <= depth);
}

/* Return the code at @pc; NULL: none, or an address too high for an entry. */
static const struct derive_code *text_at(const struct piece *p, uint64_t pc)
{
	if (pc >> (64 - ASKED_BITS))
		return NULL;
	if (pc - p->in->code.vaddr < p->in->code.size)
		return &p->in->code;
	for (size_t i = 0; i < p->in->nr_text; i++)
		if (pc - p->in->text[i].vaddr < p->in->text[i].size)
			return &p->in->text[i];
	return NULL;
}

static bool never_returns(struct piece *p, uint64_t pc, int depth);

/* Note another way. False: there are too many. */
static bool search_also(struct search *s, uint64_t pc)
{
	for (uint32_t k = 0; k < s->nr_seen; k++)
		if (s->seen[k] == pc)
			return true;
	if (s->nr_seen == SEARCH_BRANCHES)
		return false;
	s->seen[s->nr_seen++] = pc;
	s->todo[s->nr_todo++] = pc;
	return true;
}

static bool may_search(struct piece *p)
{
	bool may = p->searches < p->code.size * (uint64_t)SEARCHES_BYTE + 4096;

	p->searches += may;
	p->out_of_searches |= !may;
	return may;
}

/* Return whether one way never returns; not if it is too long, or leads to other code. */
static bool way_ends(struct piece *p, struct search *s, uint64_t pc, int depth)
{
	for (int nr = 0; nr < SEARCH_INSNS; nr++) {
		struct derive_insn i;

		if (pc - s->code->vaddr >= s->code->size || pc % p->cpu->align || !may_search(p))
			return false;
		p->cpu->step(s->code, pc, NULL, &i);
		switch (i.flow) {
		case DERIVE_STOP:
			return true;
		case DERIVE_RETURN:
		case DERIVE_JUMP_TO:
		case DERIVE_BAD:
			return false;
		case DERIVE_CALL:
			if (i.target != pc + i.size && never_returns(p, i.target, depth + 1))
				return true;
			break;
		case DERIVE_JUMP:
			return search_also(s, i.target);
		case DERIVE_BRANCH:
			if (i.thunk != DERIVE_THUNK_CALL && !search_also(s, i.target))
				return false;
		}
		pc += i.size;
	}
	return false;
}

/* Return the function that the stub at @pc leads to; @pc: it is none, or leads to another file. */
static uint64_t behind_stub(const struct derive_input *in, uint64_t pc)
{
	uint32_t n = search_split(in->nr_stubs, i, in->stubs[i].vaddr < pc);

	return n < in->nr_stubs && in->stubs[n].vaddr == pc ? in->stubs[n].to : pc;
}

/* Return whether the function at @pc never returns, as abort() and its like. */
static bool never_returns(struct piece *p, uint64_t pc, int depth)
{
	struct search s = { .nr_todo = 0 };
	bool never;

	pc = behind_stub(p->in, pc);
	s.code = text_at(p, pc);
	if (has(p->in->endless, p->in->nr_endless, pc))
		return true;
	if (!s.code || depth > SEARCH_DEPTH)
		return false;
	if (was_asked(&p->asked, pc, depth, &never))
		return never;
	never = search_also(&s, pc);
	while (s.nr_todo && never)
		never = way_ends(p, &s, s.todo[--s.nr_todo], depth);
	/* The next piece may search further. */
	if (never || !p->out_of_searches)
		keep_answer(&p->asked, pc, depth, never);
	return never;
}

static bool returns(struct piece *p, uint64_t pc)
{
	return !never_returns(p, pc, 0);
}

static bool is_padding(const struct piece *p, uint32_t off, uint8_t *size)
{
	struct derive_insn i;

	assert(off < p->code.size);
	if (p->cpu->align == 1 && !p->code.bytes[off]) {
		*size = 1;
		return true;
	}
	if (p->cpu->pads && !(p->cpu->pads[p->code.bytes[off] / 32] >> p->code.bytes[off] % 32 & 1))
		return false;
	p->cpu->step(&p->code, at(p, off), NULL, &i);
	*size = i.size;
	return i.flow != DERIVE_BAD && i.padding;
}

/* Return the address of 16 bytes behind the padding at @off; @off: none. */
static uint32_t behind_padding(const struct piece *p, uint32_t off)
{
	uint32_t to = off;
	uint8_t size;

	while (to < p->code.size && to - off < 16 && is_padding(p, to, &size))
		to += MAX(size, 1);
	return to < p->code.size && at(p, to) % 16 == 0 ? to : off;
}

/* Return whether a jump in the code from @off on leads back there, as in a loop. */
static bool is_loop(struct piece *p, uint32_t off)
{
	uint64_t pc = at(p, off);
	struct derive_insn i;

	for (int nr = 0; nr < LOOP_INSNS && inside(p, pc) && spend(p); nr++, pc += i.size) {
		p->cpu->step(&p->code, pc, NULL, &i);
		if ((i.flow == DERIVE_BRANCH || i.flow == DERIVE_JUMP) && i.target == at(p, off))
			return true;
		if (i.flow == DERIVE_BAD)
			break;
	}
	return false;
}

/*
 * Return whether the call before @off does not return: is_endless() knows only some that do not.
 * Compilers align a place of a function behind a call for the begin of a loop or of another
 * block that jumps lead to. Without any it is another function. Code made at run time is one
 * function, where .NET puts a nop between a call and the end of the frame.
 */
static bool ends_at_padding(struct piece *p, uint32_t off)
{
	uint32_t to = behind_padding(p, off);

	if (to == off || p->flags[to] & LEADER || (p->in->made && to == off + 1))
		return false;
	if (!(p->flags[to] & PADDED) && is_loop(p, to)) {
		lead(p, to);
		return false;
	}
	p->flags[to] |= PADDED;
	return true;
}

/* Return whether @i calls a function. */
static bool is_call(const struct derive_insn *i)
{
	return i->flow == DERIVE_CALL || i->flow == DERIVE_CALL_TO || i->thunk == DERIVE_THUNK_CALL;
}

/* Return whether the code behind @i, at @off, is reached from it. */
/* Return whether a frame begins at @off. */
static bool begins_frame(const struct piece *p, uint32_t off)
{
	struct derive_state s;
	struct derive_insn i;
	uint64_t sp;

	begin_state(p, &s);
	sp = s.reg[p->cpu->sp];
	p->cpu->step(&p->code, at(p, off), &s, &i);
	return i.flow == DERIVE_ON && s.reg[p->cpu->sp] != sp;
}

/* Return whether there is padding at @off, and then another function with a frame. */
static bool ends_at_frame(struct piece *p, uint32_t off)
{
	uint32_t to = behind_padding(p, off);

	return to != off && begins_frame(p, to) && ends_at_padding(p, off);
}

static bool goes_on(struct piece *p, uint32_t off, const struct derive_insn *i)
{
	uint32_t next = off + i->size;

	if (i->flow == DERIVE_CALL && i->target != at(p, next) && !returns(p, i->target))
		return false;
	/* A function that begins behind a call is not reached by it. */
	if (is_call(i))
		return next >= p->code.size ||
		       (!(p->flags[next] & START) && !ends_at_padding(p, next));
	/* Of a branch that is always taken, the other way leads into another function. */
	if (i->flow == DERIVE_BRANCH && next < p->code.size)
		return !ends_at_frame(p, next);
	return i->flow == DERIVE_ON || i->flow == DERIVE_BRANCH;
}

/* Return true if @off is known to be code, while guesses are made. */
static bool is_known(const struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	return p->guess && p->flags[off] & VISITED;
}

/* Note where @i leads to, if a block begins there. */
static void discover_target(struct piece *p, uint32_t off, const struct derive_insn *i)
{
	uint32_t to = (uint32_t)(i->target - p->code.vaddr);

	if (i->flow == DERIVE_ON && i->target && inside(p, i->target))
		p->flags[to] |= LABEL;
	if ((i->flow != DERIVE_BRANCH && i->flow != DERIVE_JUMP && i->flow != DERIVE_CALL) ||
	    !inside(p, i->target) || is_known(p, to))
		return;
	if (i->flow != DERIVE_CALL)
		lead(p, to);
	else if (to != off + i->size) {
		lead(p, to);
		begin_function(p, to);
	}
	if (!(p->flags[to] & INSN))
		push_work(p, to);
}

/* Return whether data may have the address that @i jumps to: it comes from memory. */
static bool is_open(const struct derive_insn *i)
{
	enum derive_kind kind = derive_kind(i->value);

	return i->flow == DERIVE_JUMP_TO && (kind == DERIVE_ADDRESS || kind == DERIVE_LOADED);
}

/* Discover the code from @off on as far as it goes on. @s: numbers that ways before it had. */
static void discover_way(struct piece *p, uint32_t off, struct derive_state *s)
{
	while (off < p->code.size && !(p->flags[off] & INSN) && spend(p)) {
		struct derive_insn i;

		p->cpu->step(&p->code, at(p, off), s, &i);
		if (i.flow == DERIVE_BAD)
			break;
		cover(p, off, i.size);
		discover_target(p, off, &i);
		off += i.size;
		if (is_open(&i) && off < p->code.size)
			p->flags[off] |= OPEN;
		if (!goes_on(p, off - i.size, &i))
			break;
	}
}

/* Find the blocks that are reached from @off by direct jumps, and functions called. */
static void discover(struct piece *p, uint32_t off)
{
	struct derive_state s = { .word = p->cpu->word, .origin = p->code.vaddr };
	uint32_t begin = p->nr_work;

	assert(off < p->code.size);
	push_work(p, off);
	while (p->nr_work > begin && !p->failed)
		discover_way(p, p->work[--p->nr_work], &s);
	p->nr_work = MIN(p->nr_work, begin);
}

static void queue(struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	p->queued[off / 64] |= 1ULL << off % 64;
	p->next = MIN(p->next, off / 64);
}

/* The state @s leads to @off. */
static void enter(struct piece *p, uint32_t off, const struct derive_state *s)
{
	struct derive_state to;

	/* Certain facts do not depend on guesses. */
	if (is_known(p, off))
		return;
	if (lead(p, off) || !(p->flags[off] & INSN))
		discover(p, off);
	if (p->state_at[off]) {
		unpack(p, off, &to);
		if (!join(&to, s))
			return;
		/* Fewer facts have room where more were. */
		pack(&to, p->facts + (p->state_at[off] - 1));
	} else if (array_reserve(&p->facts, &p->room_facts, p->nr_facts + PACKED_MAX)) {
		p->state_at[off] = p->nr_facts + 1;
		p->nr_facts += pack(s, p->facts + p->nr_facts);
	} else {
		p->failed = true;
		return;
	}
	queue(p, off);
}

static bool read_from(const struct derive_code *d, size_t nr, uint64_t vaddr, void *out,
		      size_t size)
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t off = vaddr - d[i].vaddr;

		if (off < d[i].size && size <= d[i].size - off) {
			memcpy(out, d[i].bytes + off, size);
			return true;
		}
	}
	return false;
}

static bool read_data(const struct piece *p, uint64_t vaddr, void *out, size_t size)
{
	return read_from(&p->code, 1, vaddr, out, size) ||
	       read_from(p->in->data, p->in->nr_data, vaddr, out, size) ||
	       read_from(p->in->text, MIN(p->in->nr_text, 8u), vaddr, out, size);
}

/* Find the function with @off. */
static void find_function(struct piece *p, uint32_t off)
{
	assert(off < p->code.size);
	if (off >= p->start && off < p->end)
		return;
	p->start = off;
	while (p->start && !(p->flags[p->start] & START))
		p->start--;
	p->end = off + 1;
	while (p->end < p->code.size && !(p->flags[p->end] & START))
		p->end++;
}

/* Note the instructions from @off to @end. */
static void mark_line(struct piece *p, uint32_t off, uint32_t end)
{
	struct derive_insn i;

	for (; off < end && !(p->flags[off] & IN_LINE) && spend(p); off += MAX(i.size, 1)) {
		p->flags[off] |= IN_LINE;
		p->cpu->step(&p->code, at(p, off), NULL, &i);
	}
}

#define COLD_INSNS 32

/*
 * Return whether the code at @off is a rarely executed part of the function in [@lo, @hi), which
 * compilers put elsewhere: it jumps back there, or calls a function that never returns.
 */
static bool is_cold_part(struct piece *p, uint32_t off, uint64_t lo, uint64_t hi)
{
	struct derive_insn i;

	for (int nr = 0; nr < COLD_INSNS && off < p->code.size && spend(p); nr++, off += i.size) {
		p->cpu->step(&p->code, at(p, off), NULL, &i);
		if ((i.flow == DERIVE_JUMP || i.flow == DERIVE_BRANCH) && i.target >= lo &&
		    i.target < hi)
			return true;
		if (i.flow == DERIVE_CALL && !returns(p, i.target))
			return true;
		if (i.flow != DERIVE_ON && i.flow != DERIVE_BRANCH && i.flow != DERIVE_CALL)
			return false;
	}
	return false;
}

/* Note that a table of the function at @start leads to places up to @last. */
static void mark_tabled(struct piece *p, uint32_t start, uint32_t last)
{
	assert(last < p->code.size);
	for (uint32_t k = last; k > start && !(p->flags[k] & TABLED); k--)
		p->flags[k] |= TABLED;
}

/* Entries of 16 bits before the ones that are used, as the least index is not 0. */
#define SHORTS_BEFORE 3

/* Follow a jump by a table. False: it is none. */
static bool follow_table(struct piece *p, uint32_t off, uint64_t value,
			 const struct derive_state *s)
{
	enum derive_kind kind = derive_kind(value);
	uint64_t table = (uint64_t)derive_number(value), base = 0, lo, hi, max;
	uint8_t size = kind == DERIVE_ADDRESS ? p->cpu->word : kind == DERIVE_TARGET ? 4 : 2;
	uint32_t nr = 0, last = 0;
	bool any = false;

	if (kind != DERIVE_TARGET && kind != DERIVE_ADDRESS && kind != DERIVE_BY_SHORT)
		return false;
	if (kind != DERIVE_ADDRESS) {
		base = p->code.vaddr + (uint64_t)((int64_t)table >> 32);
		table = p->code.vaddr + (uint64_t)(int64_t)(int32_t)table;
	}
	/* It ends where something else begins. */
	max = first_at(p->in->marks, p->in->nr_marks, table + 1);
	max = max < p->in->nr_marks ? (p->in->marks[max] - table) / size : TABLE_MAX;
	max += size == 2 ? SHORTS_BEFORE : 0;
	find_function(p, off);
	lo = at(p, p->start);
	hi = at(p, p->end);
	if (size == 2)
		mark_line(p, (uint32_t)(lo - p->code.vaddr), (uint32_t)(hi - p->code.vaddr));
	if (size == 2)
		mark_line(p, off, (uint32_t)(hi - p->code.vaddr));
	for (; nr < TABLE_MAX && nr < max; nr++) {
		uint64_t to = 0;

		if (!read_data(p, table + (uint64_t)nr * size, &to, size))
			break;
		to = base + (size == 4 ? (uint64_t)(int64_t)(int32_t)to : to);
		if (!inside(p, to) ||
		    ((to < lo || to >= hi) &&
		     (size == 2 || !is_cold_part(p, (uint32_t)(to - p->code.vaddr), lo, hi))) ||
		    (size == 2 && !(p->flags[to - p->code.vaddr] & IN_LINE))) {
			if (size == 2 && nr < SHORTS_BEFORE && !any)
				continue;
			break;
		}
		any = true;
		last = to < hi ? MAX(last, (uint32_t)(to - p->code.vaddr)) : last;
		enter(p, (uint32_t)(to - p->code.vaddr), s);
	}
	mark_tabled(p, (uint32_t)(lo - p->code.vaddr), last);
	return any;
}

/* Follow a jump to an address that the function has computed. False: it is none. */
static bool follow_label(struct piece *p, uint32_t off, uint64_t value,
			 const struct derive_state *s)
{
	uint64_t to = (uint64_t)derive_number(value);
	uint32_t start, last = 0;
	bool found = false;

	if (derive_kind(value) == DERIVE_NUMBER && inside(p, to)) {
		enter(p, (uint32_t)(to - p->code.vaddr), s);
		return true;
	}
	if (derive_kind(value) != DERIVE_NUMBERS)
		return false;
	find_function(p, off);
	start = p->start;
	for (uint32_t k = start, end = p->end; k < end; k++) {
		if (!(p->flags[k] & LABEL))
			continue;
		enter(p, k, s);
		last = k;
		found = true;
	}
	mark_tabled(p, start, last);
	return found;
}

static void add_jump(struct piece *p, uint32_t off, const struct derive_state *s)
{
	for (uint32_t k = 0; k < p->nr_jumps; k++)
		if (p->jumps[k].off == off) {
			p->jumps[k].state = *s;
			return;
		}
	if (p->nr_jumps < JUMPS_MAX && array_reserve(&p->jumps, &p->room_jumps, p->nr_jumps + 1u))
		p->jumps[p->nr_jumps++] = (struct jump){ off, *s };
}

static void enter_target(struct piece *p, const struct derive_insn *i, const struct derive_state *s)
{
	struct derive_state to;

	if (i->thunk) {
		to = *s;
		to.reg[p->cpu->sp] = derive_add(s->reg[p->cpu->sp], -(int64_t)p->cpu->word);
		s = &to;
	}
	enter(p, (uint32_t)(i->target - p->code.vaddr), s);
}

/* Follow the jump that @i, at @off, is. */
static void follow(struct piece *p, uint32_t off, const struct derive_insn *i,
		   const struct derive_state *s)
{
	if ((i->flow == DERIVE_BRANCH || i->flow == DERIVE_JUMP) && inside(p, i->target))
		enter_target(p, i, s);
	if (i->flow == DERIVE_JUMP_TO && !follow_table(p, off, i->value, s) &&
	    !follow_label(p, off, i->value, s))
		add_jump(p, off, s);
}

#define KEEP_INSNS 512

/* Return whether the function at @start leaves @reg alone; it has no calls and one end. */
static bool keeps(struct piece *p, uint64_t start, unsigned int reg)
{
	uint64_t pc = start, far = start;
	struct derive_state entry;
	struct derive_insn i;

	begin_state(p, &entry);
	for (int nr = 0; nr < KEEP_INSNS && inside(p, pc) && spend(p); nr++, pc += i.size) {
		struct derive_state s = entry;

		p->cpu->step(&p->code, pc, &s, &i);
		if (s.reg[reg] != entry.reg[reg])
			return false;
		if (i.flow == DERIVE_RETURN && pc >= far)
			return true;
		if (i.flow == DERIVE_BRANCH && i.target >= start)
			far = MAX(far, i.target);
		else if (i.flow != DERIVE_ON && i.flow != DERIVE_RETURN)
			return false;
	}
	return false;
}

/*
 * Step over a call. Functions of assembler keep a copy of the stack pointer from before they
 * aligned it in a register that the function called may lose, but does not.
 */
static void step_call(struct piece *p, const uint64_t *before, struct derive_state *s,
		      const struct derive_insn *i)
{
	for (uint8_t r = 0; r < p->cpu->nr; r++)
		if (derive_kind(before[r]) == DERIVE_CFA && s->reg[r] != before[r] &&
		    keeps(p, i->target, r))
			derive_set(s, r, before[r]);
}

/*
 * Step over an instruction. Code that clears the frame pointer without having saved it has no
 * caller: the first function of a thread, in clone(). On x86-64 helpers of assembler do so as well.
 */
static void step_on(struct piece *p, uint32_t off, struct derive_state *s, struct derive_insn *i)
{
	uint64_t was = derive_value(DERIVE_ENTRY, p->cpu->fp);
	bool had = p->cpu->link != DERIVE_ON_STACK && s->reg[p->cpu->fp] == was;
	bool aligned = derive_kind(s->reg[p->cpu->sp]) == DERIVE_AREA;
	uint64_t before[DERIVE_REGS];

	if (aligned)
		memcpy(before, s->reg, sizeof(before));
	p->cpu->step(&p->code, at(p, off), s, i);
	if (aligned && i->flow == DERIVE_CALL)
		step_call(p, before, s, i);
	had &= s->reg[p->cpu->fp] == derive_value(DERIVE_NUMBER, 0);
	for (unsigned int r = 0; had && r < p->cpu->nr; r++)
		had = s->reg[r] != was;
	for (uint32_t k = 0; had && k < s->nr_slots; k++)
		had = s->slot[k].value != was;
	s->changes += had && !s->is_root;
	s->is_root |= had;
}

#define ROOT_INSNS 4

/* Return whether the first instructions of a block show that it has no caller. */
static bool begins_root(struct piece *p, uint32_t off, const struct derive_state *s)
{
	struct derive_state now = *s;

	for (int nr = 0; nr < ROOT_INSNS && off < p->code.size && !now.is_root; nr++) {
		struct derive_insn i;

		step_on(p, off, &now, &i);
		if (i.flow != DERIVE_ON)
			break;
		off += i.size;
	}
	return now.is_root;
}

static bool is_return(const struct piece *p, uint64_t pc)
{
	struct derive_insn i;

	if (!inside(p, pc))
		return false;
	p->cpu->step(&p->code, pc, NULL, &i);
	return i.flow == DERIVE_RETURN;
}

/*
 * Return whether the way from @off with the state @s leads to a return that @s is wrong for.
 * @within: not by a place behind a call where another function may begin.
 */
static bool returns_unbalanced(struct piece *p, uint32_t off, const struct derive_state *s,
			       bool within)
{
	struct derive_state now = *s;
	struct derive_insn i;
	bool called = false;

	for (int nr = 0; nr < RETURN_INSNS && off < p->code.size && spend(p); nr++) {
		uint64_t sp = now.reg[p->cpu->sp];

		p->cpu->step(&p->code, at(p, off), &now, &i);
		if (within && called && (i.padding || at(p, off) % 16 == 0))
			return false;
		called = is_call(&i);
		if (i.thunk == DERIVE_THUNK_JUMP)
			return false;
		if (i.flow == DERIVE_RETURN || i.thunk == DERIVE_THUNK_RETURN ||
		    (i.flow == DERIVE_BRANCH && is_return(p, i.target)))
			return derive_kind(sp) == DERIVE_CFA &&
			       derive_number(sp) != p->cpu->sp_at_entry;
		if (i.flow == DERIVE_JUMP && inside(p, i.target))
			off = (uint32_t)(i.target - p->code.vaddr);
		else if (i.flow != DERIVE_ON && i.flow != DERIVE_BRANCH && !called)
			return false;
		else
			off += i.size;
	}
	return false;
}

/* Return whether a register has the return address of a caller that is on the stack. */
static bool has_read_return(const struct piece *p, const struct derive_state *s)
{
	for (unsigned int r = 0; p->cpu->link == DERIVE_ON_STACK && r < p->cpu->nr; r++)
		if (s->reg[r] == RETURN_ADDRESS)
			return true;
	return false;
}

/* Return whether a jump from the code at @start to @to leads back into the code before it. */
static bool leads_back(const struct piece *p, uint32_t start, uint32_t to)
{
	assert(to < p->code.size);
	return to < start && start - to < CASE_BYTES && at(p, to) % 16 && !(p->flags[to] & START);
}

static bool is_saved(const struct piece *p, unsigned int reg)
{
	const struct derive_cpu *cpu = p->cpu;

	for (unsigned int k = 0; k < cpu->nr_saved; k++)
		if (cpu->saved[k] == reg)
			return reg != cpu->link;
	return false;
}

/* Return whether @i reads or writes where a register points that functions only save at first. */
static bool uses_saved(const struct piece *p, const struct derive_insn *i,
		       const struct derive_state *before)
{
	unsigned int reg = i->base - 1U;

	return i->base && is_saved(p, reg) && before->reg[reg] == derive_value(DERIVE_ENTRY, reg);
}

/* Return whether a jump to @value goes on where a register led before: no tail call of an argument.
 */
static bool leads_on(const struct piece *p, uint64_t value, bool used_memory)
{
	if (derive_kind(value) != DERIVE_ENTRY)
		return false;
	return used_memory || is_saved(p, (unsigned int)derive_number(value));
}

/*
 * Return whether code at @off has a frame, as the cases of an interpreter do: it reads the word
 * that has the return address at the begin of a function, uses registers that belong to the caller
 * there, jumps back, or on to where a register led before it.
 */
static bool is_case(struct piece *p, uint32_t off)
{
	uint32_t start = off;
	bool used_memory = false;
	struct derive_state now;
	struct derive_insn i;

	begin_state(p, &now);
	for (int nr = 0; nr < CASE_INSNS && off < p->code.size && spend(p); nr++) {
		struct derive_state before = now;

		p->cpu->step(&p->code, at(p, off), &now, &i);
		if (i.flow != DERIVE_BAD &&
		    (has_read_return(p, &now) || uses_saved(p, &i, &before)))
			return true;
		if (i.flow == DERIVE_JUMP_TO)
			return leads_on(p, i.value, used_memory);
		used_memory |= i.base != 0;
		if (i.flow == DERIVE_JUMP && inside(p, i.target))
			off = (uint32_t)(i.target - p->code.vaddr);
		else if (i.flow == DERIVE_ON || i.flow == DERIVE_BRANCH)
			off += i.size;
		else
			return false;
		if (i.flow == DERIVE_JUMP && leads_back(p, start, off))
			return true;
	}
	return false;
}

/* Return whether code at @off goes on otherwise than a function that begins there does. */
static bool is_inner(struct piece *p, uint32_t off)
{
	struct derive_state entry;

	begin_state(p, &entry);
	return returns_unbalanced(p, off, &entry, false) || is_case(p, off);
}

#define LINK_INSNS 12

/*
 * Return whether the code behind a call, at @off with the state @s, saves its address from the link
 * register: only a function that begins there does.
 */
static bool saves_link(struct piece *p, uint32_t off, const struct derive_state *s)
{
	struct derive_state now = *s;
	struct derive_insn i = { .flow = DERIVE_ON };

	if (p->cpu->link == DERIVE_ON_STACK)
		return false;
	derive_set(&now, p->cpu->link, RETURN_ADDRESS);
	for (int nr = 0; nr < LINK_INSNS && off < p->code.size && spend(p); nr++) {
		p->cpu->step(&p->code, at(p, off), &now, &i);
		for (uint32_t k = 0; k < now.nr_slots; k++)
			if (now.slot[k].value == RETURN_ADDRESS)
				return true;
		if (i.flow != DERIVE_ON && i.flow != DERIVE_BRANCH)
			return false;
		off += i.size;
	}
	return false;
}

/*
 * The call before @off may not return: is_endless() knows only some. Then another function begins
 * there, perhaps behind padding, which saves its return address, or returns with the stack pointer
 * of its begin.
 */
static bool begins_behind_call(struct piece *p, uint32_t off, const struct derive_state *s)
{
	uint32_t to = behind_padding(p, off);
	struct derive_state entry;

	if (to >= p->code.size || p->flags[to] & START || s->is_root ||
	    (!saves_link(p, to, s) &&
	     (to == off || is_inner(p, to) || !returns_unbalanced(p, to, s, true))))
		return false;
	lead(p, to);
	begin_function(p, to);
	begin_state(p, &entry);
	if (is_used(p, to))
		p->again = true;
	else
		enter(p, to, &entry);
	return true;
}

static void visit(struct piece *p, uint32_t off)
{
	bool padding = false;
	struct derive_state s;
	uint32_t first = off;

	assert(off < p->code.size);
	unpack(p, off, &s);
	while (off < p->code.size && spend(p)) {
		struct derive_insn i;

		if (off != first && p->flags[off] & LEADER) {
			/* No function goes on into the next one through padding. */
			if (!padding || !(p->flags[off] & START))
				enter(p, off, &s);
			return;
		}
		step_on(p, off, &s, &i);
		if (i.flow != DERIVE_BAD)
			reach(p, off, i.size);
		follow(p, off, &i, &s);
		if (is_call(&i) && begins_behind_call(p, off + i.size, &s))
			return;
		if (!goes_on(p, off, &i))
			return;
		padding = i.padding;
		off += i.size;
	}
}

/* Visit the lowest block first: states have mostly met then where branches join. */
static void run(struct piece *p)
{
	while (p->next < WORDS(p->code.size) && !p->failed) {
		uint64_t word = p->queued[p->next];

		if (word) {
			p->queued[p->next] &= word - 1;
			visit(p, p->next * 64 + (uint32_t)__builtin_ctzll(word));
		} else {
			p->next++;
		}
	}
}

/* Get the facts on which all unknown jumps of the function with @off agree; NULL: none. */
static const struct derive_state *join_jumps(struct piece *p, uint32_t off)
{
	if (off < p->asked_start || off >= p->asked_end) {
		find_function(p, off);
		p->asked_start = p->start;
		p->asked_end = p->end;
		p->asked_result = false;
		for (uint32_t k = 0; k < p->nr_jumps; k++) {
			const struct jump *j = &p->jumps[k];

			if (j->off < p->asked_start || j->off >= p->asked_end)
				continue;
			if (p->asked_result)
				join(&p->asked_state, &j->state);
			else
				p->asked_state = j->state;
			p->asked_result = true;
		}
	}
	return p->asked_result ? &p->asked_state : NULL;
}

static void enter_starts(struct piece *p)
{
	struct derive_state entry, root;
	const struct derive_state *jump;

	begin_state(p, &entry);
	root = entry;
	root.is_root = true;
	for (uint32_t off = 0; off < p->code.size && !p->failed; off++) {
		if (is_known(p, off))
			continue;
		if (p->flags[off] & START)
			enter(p, off, at(p, off) == p->in->entry ? &root : &entry);
		else if (p->flags[off] & REACHED && (jump = join_jumps(p, off)) != NULL)
			enter(p, off, jump);
	}
}

static void mark_starts(struct piece *p)
{
	const struct derive_input *in = p->in;

	for (size_t i = first_at(in->starts, in->nr_starts, p->code.vaddr);
	     i < in->nr_starts && in->starts[i] - p->code.vaddr < p->code.size; i++)
		if (inside(p, in->starts[i]))
			p->flags[in->starts[i] - p->code.vaddr] |= START | LEADER;
	for (uint32_t off = 0; off < p->code.size && !p->failed; off++)
		if (p->flags[off] & START)
			discover(p, off);
}

/* Forget the states of this phase. */
static void reset(struct piece *p)
{
	for (uint32_t off = 0; off < p->code.size; off++) {
		p->flags[off] &= (uint16_t) ~(p->guess ? DOUBTED : VISITED | TABLED);
		if (!is_known(p, off))
			p->state_at[off] = 0;
	}
	memset(p->queued, 0, WORDS(p->code.size) * sizeof(*p->queued));
	p->next = 0;
	if (!p->guess)
		p->nr_sure = p->nr_jumps = 0;
	p->nr_facts = p->nr_sure;
	p->nr_work = 0;
	p->again = p->stale = false;
}

/*
 * Repeat from the starts until no block begins inside another one. @go_on: keep the states that are
 * there, unless they are stale.
 */
static void settle(struct piece *p, bool go_on)
{
	for (int pass = 0; pass < PASSES_MAX && !p->failed; pass++) {
		if (pass || !go_on || p->again || p->stale)
			reset(p);
		p->asked_end = 0;
		enter_starts(p);
		run(p);
		if (!p->again)
			return;
	}
	p->failed = true;
}

/*
 * Forget the code that was discovered by a jump that leads nowhere now, and which jumps may lead to
 * addresses: the facts before the ones that were visited are known.
 */
static void uncover(struct piece *p)
{
	for (uint32_t off = 0; off < p->code.size; off++) {
		if (p->flags[off] & COVERED && !(p->flags[off] & VISITED))
			p->flags[off] &= (uint16_t) ~(COVERED | INSN | LEADER);
		p->flags[off] &= (uint16_t)~OPEN;
	}
}

/*
 * Return whether something shows that a function begins at @off, behind the end of other code if
 * @ended. Labels of a jump to a computed address, as of one before it (@open), look like it.
 */
static bool is_shown(struct piece *p, uint32_t off, const struct derive_insn *i, bool ended,
		     bool open)
{
	const uint64_t entry = derive_value(DERIVE_CFA, p->cpu->sp_at_entry);
	const struct derive_state *jump = off && ended ? join_jumps(p, off) : NULL;
	bool address = ended && has(p->in->maybe, p->in->nr_maybe, at(p, off));

	assert(off < p->code.size);
	/* An address for the end of a stack: the last function of a fiber returns to it. */
	if (p->flags[off] & LABEL && !returns(p, at(p, off)) && !is_case(p, off))
		return true;
	/* Without a frame the jump is a tail call. */
	if (open || (jump && jump->reg[p->cpu->sp] != entry))
		return false;
	return (i->marks_start || address) && !is_inner(p, off);
}

/* Return whether code begins at @off, as a guess, behind the end of other code if @ended. */
static bool is_likely(struct piece *p, uint32_t off, bool ended)
{
	assert(off < p->code.size);
	if (!ended)
		return false;
	if (off && join_jumps(p, off)) {
		p->flags[off] |= REACHED;
		return true;
	}
	if (at(p, off) % 16 || is_inner(p, off))
		return false;
	begin_function(p, off);
	return true;
}

static bool begins(struct piece *p, uint32_t off, const struct derive_insn *i, bool sure,
		   bool ended, bool open)
{
	assert(off < p->code.size);
	if (!sure)
		return is_likely(p, off, ended);
	if (!is_shown(p, off, i, ended, open))
		return false;
	begin_function(p, off);
	return true;
}

/* Return false if begins() is false at @off, whatever instruction is there. */
static bool may_begin(const struct piece *p, uint32_t off, bool sure, bool ended)
{
	assert(off < p->code.size);
	return ended ||
	       (sure && (p->cpu->align > 1 || p->flags[off] & LABEL || at(p, off) % 16 == 0));
}

/*
 * Look for functions in code that no function reaches: at marks of starts, at addresses that
 * something has, else at aligned addresses. Return whether one was found. @sure: only marked ones.
 */
static bool find_more(struct piece *p, bool sure)
{
	bool found = false, ended = true, open = false; /* ended: no code goes on into here */

	for (uint32_t off = 0; off < p->code.size && !p->failed;) {
		struct derive_insn i;
		uint8_t size;

		if (p->flags[off] & COVERED) {
			off++;
			ended = true;
			open = off < p->code.size && p->flags[off] & OPEN;
			continue;
		}
		if (is_padding(p, off, &size)) {
			off += MAX(size, 1);
			/* Of a function that is not known, or inside it. */
			ended |= !sure || at(p, off) % 16 == 0;
			continue;
		}
		if (!may_begin(p, off, sure, ended)) {
			off += p->cpu->align;
			ended = !sure && at(p, off) % 16 == 0;
			continue;
		}
		spend(p);
		p->cpu->step(&p->code, at(p, off), NULL, &i);
		ended |= sure && at(p, off) % 16 == 0 && is_return(p, at(p, off) - p->cpu->align);
		if (i.flow != DERIVE_BAD && off % p->cpu->align == 0 &&
		    begins(p, off, &i, sure, ended, open)) {
			lead(p, off);
			discover(p, off);
			found = true;
			continue;
		}
		/*
		 * The next aligned address, or the end of unreadable bytes. This code may go on
		 * into it.
		 */
		off += p->cpu->align;
		ended = !sure && at(p, off) % 16 == 0;
	}
	return found;
}

/* Return whether the return address is in its slot; from a register it is saved as others are. */
static bool has_return_address(const struct derive_cpu *cpu, const struct derive_state *s)
{
	uint64_t link;

	if (cpu->link == DERIVE_ON_STACK)
		return derive_load(s, derive_value(DERIVE_CFA, -cpu->word)) == RETURN_ADDRESS;
	link = derive_value(DERIVE_ENTRY, cpu->link);
	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (s->slot[i].value == link)
			return true;
	return s->reg[cpu->link] == link;
}

/* Make the row of a function that knows how far its area is from the CFA. */
static void row_by_distance(const struct derive_cpu *cpu, const struct derive_state *s,
			    struct derive_row *row)
{
	int64_t sp = derive_number(s->reg[cpu->sp]), from = 0;

	for (uint32_t i = 0; !row->cfa && i < s->nr_slots; i++) {
		const struct derive_slot *slot = &s->slot[i];

		if (derive_kind(slot->value) != DERIVE_DISTANCE ||
		    derive_kind(slot->at) != DERIVE_AREA || derive_number(slot->at) < sp)
			continue;
		row->cfa = DERIVE_BY_SUM_WORD;
		row->reg = dwarf_of(cpu, cpu->sp);
		row->off = (int32_t)(derive_number(slot->at) - sp);
		from = derive_number(slot->value);
	}
	for (unsigned int r = 0; !row->cfa && r < cpu->nr; r++) {
		if (derive_kind(s->reg[r]) != DERIVE_DISTANCE)
			continue;
		row->cfa = DERIVE_BY_SUM;
		row->reg = dwarf_of(cpu, r);
		from = derive_number(s->reg[r]);
	}
	row->word_off = (int32_t)(-sp - from);
}

/* Make the row of state @s. */
static void row_of(const struct piece *p, const struct derive_state *s, struct derive_row *row)
{
	const struct derive_cpu *cpu = p->cpu;
	uint64_t sp = s->reg[cpu->sp], fp = s->reg[cpu->fp];

	memset(row, 0, sizeof(*row));
	if (s->is_root) {
		row->cfa = DERIVE_END;
		return;
	}
	if (!has_return_address(cpu, s) ||
	    (derive_kind(sp) == DERIVE_CFA && derive_number(sp) > cpu->sp_at_entry))
		return;
	if (derive_kind(sp) == DERIVE_CFA) {
		row->cfa = DERIVE_BY_REG;
		row->reg = dwarf_of(cpu, cpu->sp);
		row->off = (int32_t)-derive_number(sp);
	} else if (derive_kind(fp) == DERIVE_CFA) {
		row->cfa = DERIVE_BY_REG;
		row->reg = dwarf_of(cpu, cpu->fp);
		row->off = (int32_t)-derive_number(fp);
	}
	for (uint32_t i = 0; !row->cfa && i < s->nr_slots; i++) {
		const struct derive_slot *slot = &s->slot[i];

		if (derive_kind(slot->value) != DERIVE_CFA ||
		    derive_kind(slot->at) != DERIVE_AREA ||
		    derive_number(slot->at) < derive_number(sp))
			continue;
		row->cfa = DERIVE_BY_WORD;
		row->reg = dwarf_of(cpu, cpu->sp);
		row->off = (int32_t)(derive_number(slot->at) - derive_number(sp));
		row->word_off = (int32_t)-derive_number(slot->value);
	}
	for (unsigned int r = 0; !row->cfa && r < cpu->nr; r++) {
		if (derive_kind(s->reg[r]) != DERIVE_CFA)
			continue;
		row->cfa = DERIVE_BY_REG;
		row->reg = dwarf_of(cpu, r);
		row->off = (int32_t)-derive_number(s->reg[r]);
	}
	if (!row->cfa && derive_kind(sp) == DERIVE_AREA)
		row_by_distance(cpu, s, row);
}

/* Add the places of the saved registers. */
static void add_saved(const struct piece *p, const struct derive_state *s, struct derive_row *row)
{
	uint64_t sp = s->reg[p->cpu->sp];

	for (unsigned int k = 0; k < p->cpu->nr_saved; k++) {
		uint8_t r = p->cpu->saved[k];
		uint64_t value = derive_value(DERIVE_ENTRY, r);

		/* The slot first: a jump that was not followed may come here without the register.
		 */
		row->saved[k].where = s->reg[r] == value ? DERIVE_SAME : DERIVE_LOST;
		for (uint32_t i = 0; i < s->nr_slots; i++) {
			uint64_t slot = s->slot[i].at;

			if (s->slot[i].value != value || (derive_kind(slot) == derive_kind(sp) &&
							  derive_number(slot) < derive_number(sp)))
				continue;
			if (derive_kind(slot) == DERIVE_CFA) {
				row->saved[k].where = DERIVE_AT_CFA;
				row->saved[k].off = (int32_t)derive_number(slot);
				break;
			}
			if (derive_kind(sp) == DERIVE_AREA) {
				row->saved[k].where = DERIVE_AT_SP;
				row->saved[k].off =
					(int32_t)(derive_number(slot) - derive_number(sp));
			}
		}
	}
}

/* Return the place that shows whether a row was seen. */
static uint32_t *row_seen(struct piece *p, const struct derive_row *row)
{
	uint32_t words[sizeof(*row) / sizeof(uint32_t)];
	uint64_t sum = 0;

	memcpy(words, row, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		sum = sum * 31 + words[i];
	return &p->rows_seen[hash_u64(sum) % ARRAY_SIZE(p->rows_seen)];
}

/* Return the number of the row of @s, from 1; mostly of an equal one before, if there is one. */
static uint32_t number_of(struct piece *p, const struct derive_state *s)
{
	struct derive_row row;
	uint32_t *seen;

	row_of(p, s, &row);
	if (row.cfa != DERIVE_NO_CFA && row.cfa != DERIVE_END)
		add_saved(p, s, &row);
	for (unsigned int k = 0; k < p->cpu->nr_saved; k++)
		if (p->cpu->saved[k] == p->cpu->link && row.saved[k].where == DERIVE_LOST)
			memset(&row, 0, sizeof(row));
	seen = row_seen(p, &row);
	if (*seen && !memcmp(&p->rows[*seen - 1], &row, sizeof(row)))
		return *seen;
	if (!array_reserve(&p->rows, &p->room_rows, p->nr_rows + 1u)) {
		p->failed = true;
		return 0;
	}
	p->rows[p->nr_rows++] = row;
	*seen = p->nr_rows;
	return p->nr_rows;
}

/* Number the rows of the block at @off. */
static void number_block(struct piece *p, uint32_t off)
{
	struct derive_state s;
	uint32_t first = off, number = 0, changes = 0;

	assert(off < p->code.size);
	unpack(p, off, &s);
	s.is_root |= begins_root(p, off, &s);
	while (off < p->code.size && !p->failed) {
		struct derive_insn i;

		if (off != first && p->flags[off] & LEADER)
			return;
		if (!number || s.changes != changes)
			number = number_of(p, &s);
		changes = s.changes;
		step_on(p, off, &s, &i);
		if (i.flow == DERIVE_BAD)
			return;
		for (uint32_t k = off; k < off + i.size; k++)
			p->row_at[k] = number;
		p->flags[off] |= NUMBERED;
		off += i.size;
		if (!goes_on(p, off - i.size, &i))
			return;
	}
}

static bool same_row(const struct piece *p, uint32_t a, uint32_t b)
{
	assert(a < p->code.size && b < p->code.size);
	return a == b ||
	       (p->row_at[a] && p->row_at[b] &&
		!memcmp(&p->rows[p->row_at[a] - 1], &p->rows[p->row_at[b] - 1], sizeof(*p->rows)));
}

/* Return the kind of slot that the row at @off has for the saved register @reg. */
static enum derive_where where_saved(const struct piece *p, uint32_t off, uint8_t reg)
{
	for (unsigned int k = 0; p->row_at[off] && k < p->cpu->nr_saved; k++)
		if (p->cpu->saved[k] == reg)
			return p->rows[p->row_at[off] - 1].saved[k].where;
	return DERIVE_LOST;
}

/* Return whether the stack and the frame pointer are at @off as at the entry of the function. */
static bool is_balanced(const struct piece *p, uint32_t off)
{
	const struct derive_cpu *cpu = p->cpu;
	const struct derive_row *row = p->row_at[off] ? &p->rows[p->row_at[off] - 1] : NULL;

	return row && row->cfa == DERIVE_BY_REG && row->reg == cpu->sp_dwarf &&
	       row->off == -cpu->sp_at_entry && where_saved(p, off, cpu->fp) == DERIVE_SAME &&
	       (cpu->link == DERIVE_ON_STACK || where_saved(p, off, cpu->link) == DERIVE_SAME);
}

/* Return whether the row at @off is certain, and the same as the one at @from. */
static bool is_settled(const struct piece *p, uint32_t from, uint32_t off)
{
	return off < p->code.size && (p->flags[off] & (NUMBERED | DOUBTED)) == NUMBERED &&
	       same_row(p, from, off);
}

/*
 * Return whether the row of the instruction at @off, a guess since only a table of jumps leads to
 * it, is shown to be right by what follows: it goes on to code with the same certain frame, or to a
 * return with the stack pointer of the entry. The stack pointer is the same in each way to a place.
 */
static bool leads_right(const struct piece *p, uint32_t off)
{
	struct derive_insn i;
	uint32_t next;

	assert(off < p->code.size);
	p->cpu->step(&p->code, at(p, off), NULL, &i);
	next = off + i.size;
	if (i.flow == DERIVE_RETURN)
		return is_balanced(p, off);
	if ((i.flow == DERIVE_JUMP || i.flow == DERIVE_BRANCH) && inside(p, i.target) &&
	    is_settled(p, off, (uint32_t)(i.target - p->code.vaddr)))
		return true;
	if (next >= p->code.size || p->flags[next] & START || i.flow == DERIVE_JUMP ||
	    i.flow == DERIVE_JUMP_TO || i.flow == DERIVE_STOP || i.flow == DERIVE_BAD)
		return false;
	if (p->flags[next] & LEADER)
		return is_settled(p, off, next);
	return (p->flags[next] & (NUMBERED | DOUBTED)) == NUMBERED;
}

/* Make rows certain that are guesses, and right by what follows. */
static void settle_doubted(struct piece *p)
{
	bool more = true;

	for (int round = 0; round < ROUNDS_MAX && more; round++) {
		more = false;
		for (uint32_t off = (uint32_t)p->code.size; off-- > 0;) {
			uint32_t end = off + 1;

			if ((p->flags[off] & (NUMBERED | DOUBTED)) != (NUMBERED | DOUBTED) ||
			    !p->row_at[off] || !leads_right(p, off))
				continue;
			while (end < p->code.size && p->row_at[end] == p->row_at[off] &&
			       p->flags[end] & DOUBTED && !(p->flags[end] & NUMBERED))
				end++;
			for (uint32_t i = off; i < end; i++)
				p->flags[i] &= (uint16_t)~DOUBTED;
			more = true;
		}
	}
}

/*
 * Return whether the code in [@off, @end), from the begin of a function on, shows that a call has
 * entered it: it returns with the stack pointer and frame pointer of its begin, and never with
 * others; or it leaves with them for another function, and had saved the frame pointer before.
 */
static bool is_called(const struct piece *p, uint32_t off, uint32_t end)
{
	bool balanced = false, saved = false, leaves = false;

	assert(off < end && end <= p->code.size);
	for (; off < end; off++) {
		struct derive_insn i;

		if ((p->flags[off] & (NUMBERED | DOUBTED)) != NUMBERED)
			continue;
		p->cpu->step(&p->code, at(p, off), NULL, &i);
		saved |= where_saved(p, off, p->cpu->fp) == DERIVE_AT_CFA;
		if (i.flow == DERIVE_JUMP_TO || (i.flow == DERIVE_JUMP && !inside(p, i.target)))
			leaves |= is_balanced(p, off);
		if (i.flow != DERIVE_RETURN)
			continue;
		if (!is_balanced(p, off))
			return false;
		balanced = true;
	}
	return balanced || (leaves && saved);
}

/*
 * Make all rows of a function guesses of which nothing shows that a call enters it: it goes on in
 * the frame of other code, as functions of .NET do that replace a running one, or is no function.
 */
static void doubt_uncalled(struct piece *p)
{
	settle_doubted(p);
	for (uint32_t off = 0, end; off < p->code.size; off = end) {
		end = off + 1;
		while (end < p->code.size && !(p->flags[end] & START))
			end++;
		for (uint32_t i = is_called(p, off, end) ? end : off; i < end; i++)
			p->flags[i] |= DOUBTED;
	}
}

static void emit(struct piece *p)
{
	uint32_t off = 0;

	for (uint32_t i = 0; i < p->code.size && !p->failed; i++)
		if (p->state_at[i])
			number_block(p, i);
	if (p->in->made && !p->failed)
		doubt_uncalled(p);
	while (off < p->code.size && !p->failed) {
		uint32_t begin = off;
		bool doubted = p->flags[off] & DOUBTED;

		do
			off++;
		while (off < p->code.size &&
		       (p->row_at[off] == p->row_at[begin] || same_row(p, off, begin)) &&
		       !(p->flags[off] & DOUBTED) == !doubted && !(p->flags[off] & START));
		if (p->row_at[begin] && p->rows[p->row_at[begin] - 1].cfa)
			p->sink->row(p->sink->ctx, at(p, begin), at(p, off),
				     &p->rows[p->row_at[begin] - 1], doubted);
	}
}

static void derive_piece(struct piece *p)
{
	bool more = true;

	mark_starts(p);
	/* A table of jumps ends at the next function, which may be found later. */
	for (int round = 0; round < ROUNDS_MAX && more && !p->failed; round++) {
		settle(p, round);
		uncover(p);
		more = !p->failed && find_more(p, true);
	}
	if (more && !p->failed)
		settle(p, true);
	p->nr_sure = p->nr_facts;
	p->guess = true;
	if (!p->failed && find_more(p, false))
		settle(p, false);
	if (!p->failed)
		emit(p);
}

/* Derive the rows of [@start, @start + @size) with the memory of the pieces before. */
static uint64_t run_piece(struct piece *p, uint64_t start, size_t size, uint64_t left)
{
	const struct piece memory = *p;

	*p = (struct piece){
		.in = memory.in,
		.cpu = memory.cpu,
		.sink = memory.sink,
		.code = { p->in->code.bytes + (start - p->in->code.vaddr), start, size },
		.visits_max = MIN((uint64_t)size * VISITS_BYTE + 4096, left),
		.flags = memory.flags,
		.queued = memory.queued,
		.state_at = memory.state_at,
		.row_at = memory.row_at,
		.facts = memory.facts,
		.room_facts = memory.room_facts,
		.work = memory.work,
		.room_work = memory.room_work,
		.rows = memory.rows,
		.room_rows = memory.room_rows,
		.jumps = memory.jumps,
		.room_jumps = memory.room_jumps,
		.asked = memory.asked,
	};
	memset(p->flags, 0, size * sizeof(*p->flags));
	memset(p->state_at, 0, size * sizeof(*p->state_at));
	memset(p->row_at, 0, size * sizeof(*p->row_at));
	derive_piece(p);
	return p->visits + p->searches / 4; /* without states, they cost less */
}

/* Return the end of the piece from @start on: at a function, if one begins before it is too long.
 */
static uint64_t end_of_piece(const struct derive_input *in, uint64_t start)
{
	uint64_t end = in->code.vaddr + in->code.size;
	size_t i;

	if (end - start <= PIECE_MAX)
		return end;
	i = first_at(in->starts, in->nr_starts, start + PIECE_MAX);
	return i && in->starts[i - 1] > start ? in->starts[i - 1] : start + PIECE_MAX;
}

uint64_t derive_rows(const struct derive_input *in, const struct derive_sink *sink)
{
	uint64_t visits = 0, start = in->code.vaddr, end = start + in->code.size;
	size_t most = MIN(in->code.size, (size_t)PIECE_MAX);
	struct piece p = { .in = in, .cpu = in->cpu, .sink = sink };

	assert(end >= start);
	assert(in->starts || !in->nr_starts);
	p.flags = malloc(most * sizeof(*p.flags));
	p.queued = malloc(WORDS(most) * sizeof(*p.queued));
	p.state_at = malloc(most * sizeof(*p.state_at));
	p.row_at = malloc(most * sizeof(*p.row_at));
	while (p.flags && p.queued && p.state_at && p.row_at && start < end &&
	       visits < in->visits_max) {
		uint64_t limit = end_of_piece(in, start);

		visits += run_piece(&p, start, limit - start, in->visits_max - visits);
		start = limit;
	}
	free(p.flags);
	free(p.queued);
	free(p.state_at);
	free(p.row_at);
	free(p.facts);
	free(p.work);
	free(p.rows);
	free(p.jumps);
	hashset_fini(&p.asked.ids);
	free(p.asked.v);
	return visits;
}
