/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of one function: instructions, jumps, source.
 *
 * The caller owes: a request at a time; the result is immutable and reference-counted.
 *
 * The room does: reads bytes from file, vdso, kernel or process, disassembles in the sandbox, finds
 * source files within the rights of the user.
 *
 * Not for: counting samples (sampler/annotate.c).
 */
#ifndef SYMBOLS_CODE_CODE_H
#define SYMBOLS_CODE_CODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base/base.h"

struct lines;
struct naming;
struct reading;
struct sandbox_reader;
struct symtab;

extern const struct sandbox_reader disasm_reader;

/*
 * One function to show: its instructions as text, their jumps and calls, and the
 * source lines that they were made of.
 *
 * Made by the loader, then immutable and shared: each user holds a reference. All
 * texts are sanitised. Any thread.
 */

#define LISTING_NONE UINT32_MAX

struct listing_insn {
	uint64_t vaddr;
	uint32_t text;	 /* offset in texts */
	uint32_t target; /* index of the instruction that it may jump to; LISTING_NONE */
	uint32_t callee; /* symbol that it goes to, outside of this function; LISTING_NONE */
	uint32_t file;	 /* index in files; LISTING_NONE: unknown source */
	uint32_t line;	 /* 0: no line */
	uint8_t size;	 /* bytes */
	bool jump, call;
};

/* A source file, with the lines that the function covers. */
struct listing_file {
	uint32_t path;	   /* offset in texts */
	uint32_t first;	   /* number of the first line here */
	uint32_t lines;	   /* its index in lines */
	uint32_t nr_lines; /* 0: see why */
	const char *why;   /* static: the reason for no text; NULL */
	bool newer;	   /* changed since the program was built; of a script: since its start */
};

/* A function of a language to read: its source instead of instructions. */
struct listing_lines {
	uint32_t code;	      /* id in the table of codes; LISTING_NONE: Java */
	pid_t pid;	      /* a process that runs it; 0: unknown */
	uint32_t first, last; /* sampled lines */
	char file[256];	      /* Java: its file, without a folder */
};

/*
 * Code of a function that many processes have: a sampled address in one of them. @object 0: the
 * function has its own place.
 */
struct listing_instance {
	uint32_t object;
	uint64_t addr;
};

#define LISTING_PARTS_MAX 16U

/* A range of code. */
struct listing_part {
	uint64_t vaddr, size;
};

struct listing {
	atomic_uint refs; /* acquire and release in listing_put() */
	uint32_t symbol;
	struct listing_instance instance;
	uint32_t asked_last;  /* of a script: the last sampled line when it was read */
	bool script;	      /* of lines: one entry of insns per line, its number as address */
	uint64_t vaddr, size; /* in its object; @size 0: unknown */
	/* Its code elsewhere, in order of address. */
	struct listing_part parts[LISTING_PARTS_MAX];
	uint32_t nr_parts;
	/* In order of address, without gaps in a part; none: see why. */
	struct listing_insn *insns;
	uint32_t nr_insns, max_insns;
	uint32_t nr_bytes; /* bytes here; less than @size if that is long */
	struct listing_file *files;
	uint32_t nr_files;
	uint32_t *lines; /* offsets in texts */
	uint32_t nr_lines;
	char *texts; /* NUL-terminated each; the first is "" */
	uint32_t texts_size, texts_max;
	/* To show; static, may be NULL. */
	const char *why;       /* the reason for no instructions */
	const char *fix;       /* how to get them, also where bytes are instead of them */
	const char *origin;    /* origin of the code, unless it is the file */
	const char *no_source; /* the reason for no lines */
};

/* NULL is fine. */
void listing_put(struct listing *l);
/* Return the instruction at @vaddr; LISTING_NONE outside. */
uint32_t listing_at(const struct listing *l, uint64_t vaddr);

/* Return whether the function has code at @vaddr. */
static inline bool listing_covers(const struct listing *l, uint64_t vaddr)
{
	bool covers = vaddr - l->vaddr < l->size;

	for (uint32_t i = 0; i < l->nr_parts; i++)
		covers |= vaddr - l->parts[i].vaddr < l->parts[i].size;
	return covers;
}

static inline const char *listing_text(const struct listing *l, uint32_t text)
{
	return text < l->texts_size ? l->texts + text : "";
}

/*
 * The instructions and lines of one function, read on request, never kept with
 * the image.
 *
 * One request at a time; a new one replaces the older ones. A helper reads
 * (code.c), the loader adds names.
 */

struct code_desk {
	pthread_mutex_t lock; /* process reader and loader; held for a few words only */
	uint32_t wanted;
	struct listing_instance instance; /* of it */
	bool by_line;			  /* with lines_wanted */
	struct listing_lines lines_wanted;
	struct listing *done; /* a reference; NULL: none yet */
	/* Used by the loader. */
	struct reading *reading; /* running; or NULL */
	uint64_t began_ns;
	const struct image_cache *images;
	const struct symtab *symtab;
	struct naming *naming;
	const struct lines *lines;
	const char *kcore_path;
	bool kcore_below; /* it is below the root of the recorded machine */
};

/* All borrowed. */
void code_init(struct code_desk *d, const struct image_cache *images, const struct symtab *symtab,
	       struct naming *naming, const struct lines *lines);
/* Free. A running job is left to its helper. */
void code_fini(struct code_desk *d);
/* Any thread: request the code of @symbol, in @instance if many processes have it. */
void code_want(struct code_desk *d, uint32_t symbol, const struct listing_instance *instance);
/* The same for a function of a language. */
void code_want_lines(struct code_desk *d, uint32_t symbol, const struct listing_lines *lines);
/* Any thread: return the code, the caller's reference; NULL: not yet. */
struct listing *code_take(struct code_desk *d, uint32_t symbol);
/* Loader: take the result, start a wanted job. Never waits. */
void code_serve(struct code_desk *d);
/* Return true if code is wanted and not read yet. */
bool code_busy(struct code_desk *d);

#endif
