/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A case: the memory of a thread of a real runtime that a reader of frames reads, and the functions
 * that it finds there, in a file. The tool of this name makes it; test_cases needs no runtime.
 *
 * Lines of a name and values: facts of the interpreter's file (addresses in the process),
 * registers, expected frames, innermost first; then "memory ADDRESS SIZE" with its bytes; at
 * the end "zero ADDRESS SIZE": the other bytes there.
 */
#ifndef TESTS_LANGCASE_H
#define TESTS_LANGCASE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "symbols/base/base.h"
#include "symbols/script/internal.h"

#define LANGCASE_STACK	(8U << 10)
#define LANGCASE_BLOCKS 4096U
#define LANGCASE_TEXT	(64U << 10)
#define LANGCASE_ROUNDS 4 /* samples: the first ones find the thread and read new functions */

struct langcase_block {
	uint64_t addr;
	uint32_t size, at; /* in bytes */
};

struct langcase {
	struct detect_file file; /* bias 0 */
	bool program;
	struct lang_sample sample;
	uint8_t stack[LANGCASE_STACK];
	struct langcase_block blocks[LANGCASE_BLOCKS];
	uint32_t nr_blocks;
	uint8_t *bytes;
	char frames[LANGCASE_TEXT]; /* a line for each: name, tab, file, colon, line */
	/* In use. */
	struct lang_process process;
	struct lang_reader reader;
	struct lang_chain chain;
};

/* The names of numbers in a case. */
static inline void langcase_number(struct langcase *c, const char *name, uint64_t value)
{
	const struct {
		const char *name;
		uint64_t *value;
	} wide[] = {
		{ "runtime", &c->file.runtime },
		{ "code_type", &c->file.code_type },
		{ "version_at", &c->file.version_at },
		{ "code_offset", &c->file.blob_offset },
		{ "code_size", &c->file.blob_size },
		{ "pc", &c->sample.pc },
		{ "sp", &c->sample.sp },
		{ "fp", &c->sample.fp },
		{ "rdi", &c->sample.rdi },
		{ "r9", &c->sample.r9 },
		{ "r13", &c->sample.r13 },
		{ "r15", &c->sample.r15 },
		{ "loop0", &c->sample.loop[0] },
		{ "loop1", &c->sample.loop[1] },
		{ "stack", &c->sample.stack_size },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
		if (!strcmp(name, wide[i].name))
			*wide[i].value = value;
	if (!strcmp(name, "version"))
		c->file.version = (uint32_t)value;
	if (!strcmp(name, "v8"))
		c->file.v8_version = (uint32_t)value;
	if (!strcmp(name, "machine"))
		c->file.machine = (uint32_t)value;
	if (!strcmp(name, "kind"))
		c->file.kind = (uint32_t)value;
	if (!strcmp(name, "program"))
		c->program = value;
	if (!strcmp(name, "tid"))
		c->sample.tid = (pid_t)value;
	if (!strcmp(name, "is_main"))
		c->sample.is_main = value;
}

/* Describe the process by the facts of the file and its memory, as detect.c does. */
static inline void langcase_describe(struct langcase *c, pid_t pid)
{
	const struct detect_file *d = &c->file;
	struct lang_process *p = &c->process;

	memset(p, 0, sizeof(*p));
	p->kind = (enum lang_kind)d->kind;
	p->runtime = d->runtime;
	p->code_type = d->code_type;
	p->version = d->version;
	p->program = c->program;
	p->nr_eval = d->nr_eval;
	p->nr_main = d->nr_main;
	memcpy(p->eval, d->eval, sizeof(p->eval));
	memcpy(p->main, d->main, sizeof(p->main));
	languages[p->kind]->detect(p, d, pid);
}

/* Pieces of the memory of process *@ctx. */
static inline int langcase_read(void *ctx, const struct lang_piece *pieces, uint32_t nr,
				uint8_t *bytes)
{
	const pid_t *pid = ctx;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct iovec local = { bytes + pieces[i].at, pieces[i].size };
		struct iovec remote = { (void *)(uintptr_t)pieces[i].addr, pieces[i].size };

		if (process_vm_readv(*pid, &local, 1, &remote, 1, 0) != (ssize_t)pieces[i].size)
			break;
	}
	return (int)i;
}

static inline uint32_t langcase_line(const struct code_text *t, uint32_t instr)
{
	if (instr == LANG_NO_INSTR)
		return 0;
	if (t->language == LANG_PYTHON)
		return pyline_of(t->version, t->table, t->table_size, t->first_line, instr);
	return t->language == LANG_RUBY ? rubyline_of(t->table, t->table_size, instr) : instr;
}

/* Read the chain as a reader does and write its frames to @out. */
static inline enum lang_status langcase_chain(struct langcase *c, pid_t *pid,
					      char out[static LANGCASE_TEXT])
{
	struct lang_reader *r = &c->reader;
	size_t used = 0;

	r->codes = script_functions_new();
	if (!r->codes)
		return LANG_NO_ROOM;
	r->memory.read = langcase_read;
	r->memory.ctx = pid;
	c->sample.process = 1;
	c->sample.stack = c->stack;
	for (int i = 0; i < LANGCASE_ROUNDS; i++) {
		c->sample.time_ns += 1000000000;
		if (!lang_chain(r, &c->process, &c->sample, &c->chain))
			lang_chain_find_thread(r, &c->process, &c->sample);
	}
	out[0] = 0;
	for (uint32_t i = 0; c->chain.none == LANG_OK && i < c->chain.nr; i++) {
		const struct code_text *t = script_functions_at(r->codes, c->chain.frames[i].code);
		const char *file = t->file_size ? t->file : "";

		for (uint32_t k = 0; k < t->file_size; k++)
			file = t->file[k] == '/' ? t->file + k + 1 : file;
		used += (size_t)snprintf(out + used, LANGCASE_TEXT - used, "%.*s\t%.*s:%u\n",
					 t->name_size, t->name,
					 (int)(t->file_size - (size_t)(file - t->file)), file,
					 langcase_line(t, c->chain.frames[i].instr));
		if (used >= LANGCASE_TEXT)
			return LANG_NO_ROOM;
	}
	script_functions_free(r->codes);
	return c->chain.none;
}

#endif
