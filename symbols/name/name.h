/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place to a name.
 *
 * The caller owes: places of the tables, images that are loaded.
 *
 * The room does: (object, file offset) → place id, lock-free; symbols by id; demangled names; the
 * kind of a wait.
 *
 * Not for: lines and inlined functions (symbols/dwarf).
 */
#ifndef SYMBOLS_NAME_NAME_H
#define SYMBOLS_NAME_NAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/process/process.h"

struct helpers;
struct kallsyms;
struct kallsyms_job;
struct ksyms;
struct objects;
struct places;
struct sandbox_reader;
struct script_functions;
struct symtab;

/*
 * Demangle names under limits.
 *
 * A mangled name is hostile: 200 bytes of back references can expand to gigabytes
 * of output, and some cost time without any output. Here the output stops at the
 * size of the buffer (the demangler is left in the middle), and names with a
 * structure that could explode before that are refused.
 *
 * Any thread; no state, no heap. Needs up to DEMANGLE_STACK bytes of stack.
 */

#define DEMANGLE_NAME_MAX 4096U /* longer mangled names are refused */
#define DEMANGLE_STACK	  (8U << 20)

/*
 * Demangled names from the sandbox: many in one call, and a memo of them.
 *
 * Names that are wanted soon are collected with demangler_want(), so that one call to the worker
 * is enough for a thousand of them. A name that ends the worker is shown raw, the others of its
 * call are not. After many lost workers in a short time all names are raw.
 *
 * One thread for each struct; a call may wait for the worker.
 */

/* All zero is an empty memo. */
struct demangler_name {
	uint32_t raw, raw_size; /* in the texts */
	uint32_t clean, clean_size;
};

struct demangler {
	struct hashset set; /* of names by keyhash_name() of the raw one */
	struct demangler_name *names;
	uint32_t nr, max;
	uint32_t nr_done; /* names from here on have no answer yet */
	char *texts;
	uint32_t texts_size, texts_max;
	uint32_t nr_lost; /* workers lost lately */
	uint64_t lost_ns; /* time of that count */
};

void demangler_fini(struct demangler *d);
/*
 * Add @name to the next call, if it may be mangled and is not in the memo. @dialect: of its image:
 * 'h' Haskell (GHC), 'a' Ada, 'n' Nim, 'c' COBOL: their names could be of C; else 0.
 */
void demangler_want(struct demangler *d, char dialect, const char *name, size_t size);
/* Demangle all wanted names. */
void demangler_run(struct demangler *d);
/*
 * Return the size of the demangled name and set *out to it (valid until the next call), or
 * return 0: show it raw.
 */
size_t demangler_get(struct demangler *d, char dialect, const char *name, size_t size,
		     const char **out);

/* The worker: a sequence of names in, the same number of names out. */
extern const struct sandbox_reader demangler_reader;

/*
 * Places: (object, offset) -> dense u32, the unit in which code is counted.
 *
 * The offset is the *file* offset of the instruction for a file (so a place needs
 * no ELF reading and is the same in every process), the address for the kernel
 * and for anonymous (JIT) memory, and the offset from its start for the vdso. For
 * frames other than the innermost it is the offset of the return address minus
 * one: the look-up pc, inside the call.
 *
 * A place has a symbol, SYMBOL_NONE until the loader has named it: late names
 * improve old counts. Insert-only, lock-free; see table.h for threads.
 */

#define PLACE_NONE  UINT32_MAX
#define SYMBOL_NONE UINT32_MAX

struct place {
	uint64_t offset;
	uint32_t object;    /* object->id */
	atomic_uint symbol; /* symbol id or SYMBOL_NONE; release by the loader */
};

int places_new(struct places **out, uint32_t max_places);
void places_free(struct places *p);
/*
 * Before the first place, if places_crowded() is called before each sample: a table that grows as
 * it fills remains in the CPU's cache.
 */
int places_begin_small(struct places *p);
/* Any thread, lock-free. PLACE_NONE when the table is full. */
uint32_t places_intern(struct places *p, uint32_t object, uint64_t offset);
/* Borrowed; NULL while entry @id is still under construction. */
const struct place *places_at(const struct places *p, uint32_t id);
uint32_t places_nr(const struct places *p);
/* One thread at a time: the loader; of a new generation the builder before. */
void places_name(struct places *p, uint32_t id, uint32_t symbol);
/* Builder, once a tick: add chunks ahead of the writers. */
int places_grow(struct places *p);
/* Any thread: return true if places_grow() is needed before a sample with the deepest stack. */
bool places_crowded(const struct places *p);
/* Builder: return the number that all ids are below until places_grow(). */
uint32_t places_room(const struct places *p);
/* Return the number of this table; no other one has it, or 0. */
uint32_t places_serial(const struct places *p);

/*
 * The kind of a wait, from the names of the functions on its stack.
 *
 * Pure; any thread. A kind is also the file offset of a place in the object [wait], with a symbol
 * that is its name: the innermost frame of a waiting stack.
 */

/* A wait in poll or for a condition variable is idle from this age on: it is for work. */
#define WAIT_LONG_NS 100000000ULL

/* Return the name of the frame: "[lock]". */
const char *wait_kind_name(enum wait_kind kind);
/* Return the kind with this name; WAIT_OTHER: none has it. */
enum wait_kind wait_kind_named(const char *name, size_t size);
/* Return the key of the kind for programs: "lock". */
const char *wait_kind_key(enum wait_kind kind);

/* The meaning of a function on the stack of a waiting task. */
struct wait_hint {
	uint8_t kind;	    /* enum wait_kind; WAIT_NO: nothing */
	bool scheduler;	    /* a function of the scheduler itself: left out of stacks */
	bool kthread;	    /* outermost function of kernel threads */
	const char *holder; /* of a lock that the program makes: a sentence about its holder;
			       static; NULL */
};

/* Return the hint of a kernel function, or of a function of a program (@kernel false). */
struct wait_hint wait_hint(const char *name, size_t size, bool kernel);
/*
 * Return the kind of a wait in a system call of a CPU (e_machine: EM_X86_64, EM_AARCH64); WAIT_NO:
 * it may wait for anything.
 */
enum wait_kind wait_kind_of_call(long number, uint16_t machine);

/* A stack that is looked at, from the innermost frame outwards. All zero: not begun. */
struct wait_look {
	enum wait_kind kind; /* so far; WAIT_NO: not known */
	bool program;	     /* a function of the program had a meaning */
};

void wait_look_at(struct wait_look *look, struct wait_hint hint, bool kernel);

/* A named function, and the functions that the source has at a place. */

/* kind: u user, k kernel, j JIT, v vdso, ? no name, J Java, or of a language (lang_letter()). */
struct symbol {
	struct safe_text name;	 /* demangled, as lists show it */
	struct safe_text module; /* basename, [kernel], [nf_tables], [vdso], [anon] */
	uint32_t object;	 /* of a JIT's function: naming_shared_object() */
	uint64_t start;		 /* vaddr (files), address (kernel, anon); of a JIT's function 0 */
	uint64_t variant; /* hash of the name where several functions have one start; mostly 0 */
	char kind;
	bool made_up;	  /* the name is only an address: the object has the reason */
	bool inlined;	  /* has no code; start is 0 */
	atomic_uint line; /* its first line in the source; relaxed, by the loader; 0: not known */
};

/*
 * One of the functions that the source has at a place: the compiler made one
 * piece of code of all of them. First, without a line: functions that the call there led through,
 * each with a jump as its last instruction, so that none has a frame.
 */
struct symbol_frame {
	uint32_t symbol; /* SYMBOL_NONE: the symbol of the place, always the last */
	uint32_t file;	 /* id of a file, SYMBOL_NO_FILE or SYMBOL_TAIL_CALL */
	uint32_t line;	 /* 0: unknown */
};

#define SYMBOL_NO_FILE	 UINT32_MAX
#define SYMBOL_TAIL_CALL (UINT32_MAX - 1) /* the function has led on to the next one */

/* Return the first of @frames that is a caller of function @inner, which may be in a tail call. */
static inline uint32_t symbol_frames_begin(const struct symbol_frame *frames, uint32_t nr,
					   uint32_t inner)
{
	for (uint32_t i = 0; i < nr && frames[i].file == SYMBOL_TAIL_CALL; i++)
		if (frames[i].symbol == inner)
			return i + 1;
	return 0;
}

/*
 * The named functions, by ids that are for good. Those that nothing refers to may be dropped; their
 * ids are not given out again.
 *
 * One writer (the loader); readers by id from any thread, lock-free: inside an RCU read-side
 * section where functions are dropped.
 */

int symtab_new(struct symtab **out);
void symtab_free(struct symtab *t);

/*
 * Identity of a function: its object and start, and its name if code changes in
 * place or has no start. Made-up names are separate. Functions of scripts and JITs are
 * in no process's object: many processes have them.
 */
struct symtab_key {
	uint32_t object;
	uint64_t start;
	uint64_t variant; /* keyhash_name() of the name; 0: the start is enough */
	bool made_up;
};

struct symtab_text {
	const char *name, *module;
	size_t name_size, module_size;
	char kind;
	bool inlined;
};

/* Writer. Return the id of @key, or SYMBOL_NONE. */
uint32_t symtab_find(const struct symtab *t, const struct symtab_key *key);
/*
 * The same of a function that many processes have: kind and texts are compared too, for names of
 * several users may have one hash.
 */
uint32_t symtab_find_named(const struct symtab *t, const struct symtab_key *key,
			   const struct symtab_text *text);
/*
 * Writer. Add @key, which must be new; texts are foreign bytes and are copied,
 * sanitised. SYMBOL_NONE when the table is full or out of memory.
 */
uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text);
/* Writer. Set the first line of function @id. */
void symtab_set_line(struct symtab *t, uint32_t id, uint32_t line);
/*
 * Writer. Drop the functions without a bit in @live, which has one for each id below symtab_nr();
 * their memory is freed after a grace period. 0; -ENOMEM: all are kept.
 */
int symtab_keep(struct symtab *t, const uint64_t *live);
/* Any thread. NULL: not known, or dropped. */
const struct symbol *symtab_at(const struct symtab *t, uint32_t id);
/* Any thread. Return the number of ids given out. */
uint32_t symtab_nr(const struct symtab *t);
/* Writer. */
size_t symtab_memory(const struct symtab *t);

#endif
