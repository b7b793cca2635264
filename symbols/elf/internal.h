/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/elf/, and by tests; no other room includes it. */
#ifndef SYMBOLS_ELF_INTERNAL_H
#define SYMBOLS_ELF_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

struct ehhdr;
struct elffile;
struct elfpart;
struct elfparts;
struct elfsym;
struct elfvar;

/* Return the base of all starts: no table reaches further than 2 GiB either way. */
static inline uint64_t ehhdr_base(uint64_t eh_frame)
{
	return eh_frame - (1ULL << 31);
}

/*
 * The parts of a file that a reader in the sandbox has. A helper, which may hang, copies them; the
 * reader goes as far as it can, notes the missed ones, and is called again with them.
 *
 * Pure; one thread.
 */

#define ELFPARTS_ALIGNED (16U << 10)

/*
 * xz streams -> bytes, under limits (the .gnu_debugdata section of stripped
 * objects). Built without liblzma: always -EOPNOTSUPP.
 *
 * Pure; any thread. Hostile input: 50 kB can expand to gigabytes.
 */

#define XZ_OUTPUT_MAX (64UL << 20)

#define ELFFILE_SHDRS_MAX 65536U

/* Some values of the dynamic section; all zero where there is none. */
struct elffile_dynamic {
	bool needs_others;	       /* linked with other objects */
	uint64_t rela;		       /* vaddr of its relocations */
	uint64_t nr_relative;	       /* number of relative relocations, which are first */
	uint64_t symbols, names, hash; /* vaddrs; hash: DT_GNU_HASH */
	uint64_t old_hash;	       /* DT_HASH */
	uint64_t names_size;
};

void elffile_dynamic(const struct elffile *f, struct elffile_dynamic *out);
/*
 * Call @fn for each relative relocation until it returns false. False: some are not in the file, or
 * not there yet.
 */
bool elffile_relative(const struct elffile *f, bool (*fn)(const Elf64_Rela *r, void *ctx),
		      void *ctx);
/* Get the pointer at @address: as it is relocated, or as it is in the file. False: none. */
bool elffile_pointer(const struct elffile *f, uint64_t address, uint64_t *value);

#define ELF_SANDBOX_TIME_NS 10000000000ULL

/*
 * Addresses of data symbols of an ELF file by name (System V gABI, chapter 4):
 * the tables that language runtimes export.
 *
 * Any thread; slow. Bounded as the symbols of an image (elf.h).
 */

/*
 * Look up @nr symbols of any type but undefined ones, in .dynsym, then in
 * .symtab. How many were found, or -errno.
 */
int elfvar_find(const struct elffile *f, struct elfvar *vars, uint32_t nr);

/* Add one function that is in no table; copies the name. 0, -E2BIG, -ENOMEM. */
int elfsym_add_named(struct elfsym *t, uint64_t vaddr, uint64_t size, const char *name,
		     size_t name_size);

/*
 * Call frame information of code that has none, derived from its instructions.
 *
 * From the start of a function the CFA is followed through pushes, additions, copies of the stack
 * pointer in registers and in slots; where branches join, the facts of both are kept.
 *
 * Pure: bytes in, rows out. Every byte is hostile: time and memory are bounded.
 */

#define DERIVE_REGS  32
#define DERIVE_SLOTS 20
#define DERIVE_SAVED 12 /* callee-saved registers that rows have, at most */

/*
 * A fact about a 64-bit word. The kind is in the upper four bits, below it a signed number.
 */
enum derive_kind {
	DERIVE_UNKNOWN,
	DERIVE_CFA,	 /* the CFA + number */
	DERIVE_AREA,	 /* a stack area at an unknown distance from the CFA, + number */
	DERIVE_ENTRY,	 /* the value of a register at the entry of the function */
	DERIVE_NUMBER,	 /* this number: mostly an address */
	DERIVE_NUMBERS,	 /* one of several numbers */
	DERIVE_OFFSET,	 /* an entry of the table of signed 32-bit offsets at that address */
	DERIVE_TARGET,	 /* such an offset, added to an address: derive_target() */
	DERIVE_SHORT,	 /* an entry of the table of unsigned 16-bit offsets at that address */
	DERIVE_BY_SHORT, /* such an offset, added to an address */
	DERIVE_ADDRESS,	 /* an entry of the table of addresses there */
	DERIVE_LOADED,	 /* a word of other memory */
	DERIVE_DISTANCE	 /* from the begin of the area to the CFA + number */
};

struct derive_slot {
	uint64_t at, value;
};

/* The facts before an instruction. */
struct derive_state {
	uint64_t reg[DERIVE_REGS]; /* by the number in instructions */
	struct derive_slot slot[DERIVE_SLOTS];
	uint32_t nr_slots;
	uint8_t word;	  /* bytes of an address */
	bool is_root;	  /* no function called this one */
	uint32_t changes; /* counted: no row changes without one */
	uint64_t origin;  /* of the code: facts about two addresses are relative to it */
};

/* Executable bytes. */
struct derive_code {
	const uint8_t *bytes;
	uint64_t vaddr;
	size_t size;
};

enum derive_flow {
	DERIVE_ON,
	DERIVE_BRANCH,	/* to target, or on */
	DERIVE_JUMP,	/* to target */
	DERIVE_JUMP_TO, /* to an address that it computes, @value */
	DERIVE_CALL,	/* of target */
	DERIVE_CALL_TO, /* of one that it computes */
	DERIVE_RETURN,
	DERIVE_STOP, /* never goes on */
	DERIVE_BAD,  /* no instruction */
};

/* A call that is part of a thunk inside a function (gcc -mindirect-branch=thunk-inline). */
enum derive_thunk {
	DERIVE_NO_THUNK,
	DERIVE_THUNK_RETURN, /* a jump to a return of the function */
	DERIVE_THUNK_JUMP,   /* a jump that leaves for an address in a register */
	DERIVE_THUNK_CALL,   /* a branch to such a jump, which returns */
};

struct derive_insn {
	uint8_t size;
	uint8_t flow; /* enum derive_flow */
	bool padding;
	bool marks_start; /* endbr64, bti c */
	uint8_t thunk;	  /* enum derive_thunk: pushes a word on the way to the target */
	uint8_t base;	  /* of the address of its operand in memory: a register, from 1; 0: none */
	uint64_t target;  /* of a jump or call; else an address that it computes, or 0 */
	uint64_t value;	  /* DERIVE_JUMP_TO: a fact about the address */
	uint64_t table;	  /* of offsets that it reads, or 0 */
};

/* Facts about a CPU. */
struct derive_cpu {
	uint16_t machine; /* e_machine */
	uint8_t word;	  /* bytes of an address */
	/* Step over the instruction at @pc of @code; @s is changed by it if not NULL. */
	void (*step)(const struct derive_code *code, uint64_t pc, struct derive_state *s,
		     struct derive_insn *out);
	uint8_t sp, fp, nr, align; /* numbers of registers; how many; of instructions */
	uint8_t link;		   /* has the return address at the entry; DERIVE_ON_STACK: none */
	int8_t sp_at_entry;	   /* from the CFA */
	uint8_t sp_dwarf, ra_dwarf;
	uint8_t nr_saved, saved[DERIVE_SAVED], saved_dwarf[DERIVE_SAVED];
	const uint8_t *dwarf; /* of all registers; NULL: the same numbers */
	const uint32_t *pads; /* bits of the bytes that padding may begin with; NULL: all */
};

#define DERIVE_ON_STACK 0xff

/* The return address, as a fact at the entry: in the first word of the stack, or a register. */
#define RETURN_ADDRESS derive_value(DERIVE_ENTRY, 32)

extern const struct derive_cpu derive_x86, derive_i386, derive_arm64;

enum derive_cfa {
	DERIVE_NO_CFA,
	DERIVE_BY_REG,	    /* register + off */
	DERIVE_BY_WORD,	    /* the word at register + off, + word_off */
	DERIVE_BY_SUM,	    /* sp + register + word_off */
	DERIVE_BY_SUM_WORD, /* sp + the word at sp + off, + word_off */
	DERIVE_END,	    /* no caller */
};

enum derive_where { DERIVE_SAME, DERIVE_AT_CFA, DERIVE_AT_SP, DERIVE_LOST };

struct derive_row {
	uint8_t cfa, reg; /* enum derive_cfa; DWARF number */
	int32_t off, word_off;
	struct {
		uint8_t where; /* enum derive_where */
		int32_t off;
	} saved[DERIVE_SAVED];
};

struct derive_stub {
	uint64_t vaddr, to;
};

struct derive_input {
	const struct derive_cpu *cpu;
	struct derive_code code; /* code without tables */
	uint64_t visits_max;	 /* instructions: then no more pieces */
	const uint64_t *starts;	 /* of functions, ascending */
	size_t nr_starts;
	const uint64_t *maybe; /* addresses that other code or data has, ascending */
	size_t nr_maybe;
	const uint64_t *marks; /* addresses of data that code has, ascending */
	size_t nr_marks;
	const uint64_t *endless; /* functions outside that never return, ascending */
	size_t nr_endless;
	const struct derive_stub *stubs; /* that lead to functions of the same file, ascending */
	uint32_t nr_stubs;
	const struct derive_code *data, *text; /* with tables of jumps */
	size_t nr_data, nr_text;
	uint64_t entry; /* of the program: it has no caller; 0: none */
	/*
	 * Code that was made at run time, which may be entered otherwise than by a call: without a
	 * proof of that, no row of a function is certain.
	 */
	bool made;
};

struct derive_sink {
	/* [@start, @end) has @row; ascending; guessed: where a jump leads is not known. */
	void (*row)(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		    bool guessed);
	void *ctx;
};

/* Derive rows for the code of @in. Return instructions visited, the cost. */
uint64_t derive_rows(const struct derive_input *in, const struct derive_sink *sink);

/* The state: shared by both CPUs. */
static inline enum derive_kind derive_kind(uint64_t v)
{
	return (enum derive_kind)(v >> 60);
}

static inline int64_t derive_number(uint64_t v)
{
	return (int64_t)(v << 4) >> 4;
}

static inline uint64_t derive_value(enum derive_kind kind, int64_t n)
{
	return (uint64_t)kind << 60 | ((uint64_t)n & ((1ULL << 60) - 1));
}

/* Return true if @v is an address in the frame. */
static inline bool derive_in_frame(uint64_t v)
{
	return derive_kind(v) == DERIVE_CFA || derive_kind(v) == DERIVE_AREA;
}

/* Return the fact about the word at @at. */
static inline uint64_t derive_load(const struct derive_state *s, uint64_t at)
{
	for (uint32_t i = 0; derive_in_frame(at) && i < s->nr_slots; i++)
		if (s->slot[i].at == at)
			return s->slot[i].value;
	return 0;
}

/* Return @v + @n. */
static inline uint64_t derive_add(uint64_t v, int64_t n)
{
	enum derive_kind kind = derive_kind(v);

	if (kind != DERIVE_CFA && kind != DERIVE_AREA && kind != DERIVE_NUMBER)
		return 0;
	return derive_value(kind, (int64_t)((uint64_t)derive_number(v) + (uint64_t)n));
}

/* Return the sum of @base and @offset, an entry of a table; 0: that is none, or too far away. */
static inline uint64_t derive_target(const struct derive_state *s, uint64_t offset, uint64_t base)
{
	const bool is_short = derive_kind(offset) == DERIVE_SHORT;
	int64_t table = (int64_t)((uint64_t)derive_number(offset) - s->origin);
	int64_t to = (int64_t)((uint64_t)derive_number(base) - s->origin);

	if ((!is_short && derive_kind(offset) != DERIVE_OFFSET) ||
	    derive_kind(base) != DERIVE_NUMBER || table != (int32_t)table ||
	    to != (int64_t)((uint64_t)to << 36) >> 36)
		return 0;
	return derive_value(is_short ? DERIVE_BY_SHORT : DERIVE_TARGET,
			    (int64_t)((uint64_t)to << 32 | (uint32_t)table));
}

/* Note the fact @value about @size bytes at @at, which is stored there; 0: none. */
static inline void derive_put(struct derive_state *s, uint64_t at, uint32_t size, uint64_t value)
{
	uint32_t nr = 0;

	/* Other memory: no function overwrites registers that it has saved. */
	if (!derive_in_frame(at))
		return;
	for (uint32_t i = 0; i < s->nr_slots; i++) {
		int64_t after = derive_number(s->slot[i].at) - derive_number(at);

		if (derive_kind(s->slot[i].at) != derive_kind(at) || after <= -s->word ||
		    after >= (int64_t)size)
			s->slot[nr++] = s->slot[i];
	}
	s->changes += nr != s->nr_slots || value;
	s->nr_slots = nr;
	if (size == s->word && value && nr < DERIVE_SLOTS)
		s->slot[s->nr_slots++] = (struct derive_slot){ at, value };
}

/* Forget the words more than @keep bytes below the stack pointer @sp. */
static inline void derive_forget_below(struct derive_state *s, uint8_t sp, int64_t keep)
{
	uint64_t top = s->reg[sp];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (derive_kind(s->slot[i].at) != derive_kind(top) ||
		    derive_number(s->slot[i].at) >= derive_number(top) - keep)
			s->slot[nr++] = s->slot[i];
	s->changes += nr != s->nr_slots;
	s->nr_slots = nr;
}

/* Return true if @v is about the area. */
static inline bool derive_in_area(uint64_t v)
{
	return derive_kind(v) == DERIVE_AREA || derive_kind(v) == DERIVE_DISTANCE;
}

/* Forget the area: the stack pointer is somewhere else now. */
static inline void derive_forget_area(struct derive_state *s)
{
	uint32_t nr = 0;

	for (unsigned int r = 0; r < DERIVE_REGS; r++)
		if (derive_in_area(s->reg[r]))
			s->reg[r] = 0;
	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (!derive_in_area(s->slot[i].at) && !derive_in_area(s->slot[i].value))
			s->slot[nr++] = s->slot[i];
	s->nr_slots = nr;
}

/* Set the stack pointer @sp; @keep bytes below it keep their contents. */
static inline void derive_set_sp(struct derive_state *s, uint8_t sp, int64_t keep, uint64_t value)
{
	if (!derive_in_frame(value)) {
		derive_forget_area(s);
		value = derive_value(DERIVE_AREA, 0);
	}
	/* Words that were popped are free: behind a tail call others have their place. */
	if (derive_kind(value) != derive_kind(s->reg[sp]) ||
	    derive_number(value) > derive_number(s->reg[sp]))
		keep = 0;
	s->reg[sp] = value;
	s->changes++;
	derive_forget_below(s, sp, keep);
}

/* Return true if rows may depend on @v. */
static inline bool derive_makes_rows(uint64_t v)
{
	return derive_in_frame(v) || derive_kind(v) == DERIVE_ENTRY ||
	       derive_kind(v) == DERIVE_DISTANCE;
}

/* Set a register but the stack pointer. */
static inline void derive_set(struct derive_state *s, uint8_t reg, uint64_t value)
{
	s->changes += derive_makes_rows(s->reg[reg]) || derive_makes_rows(value);
	s->reg[reg] = value;
}

#endif
