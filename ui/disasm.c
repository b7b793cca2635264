// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Instructions as text. The main thread.
 *
 * The bytes are foreign: the disassembler gets them with their length, and
 * what it says is cut to printable ASCII. What it cannot read is shown as
 * bytes, one at a time, so that lines have no gaps.
 */
#include "ui/disasm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

#define BYTES_A_LINE 8u
#define LINE_MAX_TEXT 192

static struct disasm_line *line_new(struct disasm *d, uint64_t vaddr, uint8_t size)
{
	if (d->nr == d->capacity) {
		uint32_t capacity = d->capacity ? d->capacity * 2 : 256;
		void *lines = reallocarray(d->lines, capacity, sizeof(*d->lines));

		if (!lines)
			return NULL;
		d->lines = lines;
		d->capacity = capacity;
	}
	d->lines[d->nr] = (struct disasm_line){ .vaddr = vaddr, .size = size, .target = DISASM_NONE };
	return &d->lines[d->nr++];
}

__attribute__((format(printf, 3, 4))) static int set_text(struct disasm *d,
							  struct disasm_line *line,
							  const char *fmt, ...)
{
	char text[LINE_MAX_TEXT];
	size_t size;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		*p = *p == '\t' ? ' ' : *p >= ' ' && *p <= '~' ? *p : '?';
	size = strlen(text) + 1;
	if (d->texts_size + size > d->texts_capacity) {
		size_t capacity = d->texts_capacity * 2 + 4096;
		char *texts = realloc(d->texts, capacity);

		if (!texts)
			return -ENOMEM;
		d->texts = texts;
		d->texts_capacity = capacity;
	}
	memcpy(d->texts + d->texts_size, text, size);
	line->text = (uint32_t)d->texts_size;
	d->texts_size += size;
	return 0;
}

/* Bytes as they are. */
static int add_bytes(struct disasm *d, const struct profile_annotate *a, uint32_t at, uint8_t size)
{
	struct disasm_line *line = line_new(d, a->vaddr + at, size);
	char text[8 + 5 * BYTES_A_LINE + 1];
	int n;

	if (!line)
		return -ENOMEM;
	n = snprintf(text, sizeof(text), ".byte  ");
	for (uint32_t i = 0; i < size && i < BYTES_A_LINE; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " 0x%02x", a->code[at + i]);
	return set_text(d, line, "%s", text);
}

#ifdef HAVE_CAPSTONE
/* Where a direct jump or call goes; 0: nowhere that is known. */
static uint64_t target_of(const cs_insn *insn)
{
	const char *hex = insn->op_str[0] == '#' ? insn->op_str + 1 : insn->op_str;
	const char *comma = strrchr(hex, ' ');
	char *end;
	uint64_t target;

	/* "0x401136", "#0x401136"; the last operand of cbz and its like. */
	if (comma)
		hex = comma + 1 + (comma[1] == '#');
	if (strncmp(hex, "0x", 2))
		return 0;
	target = strtoull(hex, &end, 16);
	return *end ? 0 : target;
}

static int add_insn(struct disasm *d, csh handle, const cs_insn *insn)
{
	struct disasm_line *line = line_new(d, insn->address, (uint8_t)insn->size);
	uint64_t target;

	if (!line)
		return -ENOMEM;
	line->jump = cs_insn_group(handle, insn, CS_GRP_JUMP);
	line->call = cs_insn_group(handle, insn, CS_GRP_CALL);
	target = line->jump ? target_of(insn) : 0;
	/* For now the offset from the start; made a line when all lines are there. */
	if (target >= d->vaddr && target - d->vaddr < d->nr_code)
		line->target = (uint32_t)(target - d->vaddr);
	if (line->target != DISASM_NONE)
		return set_text(d, line, "%-7s +0x%x", insn->mnemonic, line->target);
	return set_text(d, line, insn->op_str[0] ? "%-7s %s" : "%s", insn->mnemonic, insn->op_str);
}

static int open_machine(enum profile_machine machine, csh *handle)
{
	if (machine == PROFILE_MACHINE_X86_64)
		return cs_open(CS_ARCH_X86, CS_MODE_64, handle) ? -ENOTSUP : 0;
	if (machine == PROFILE_MACHINE_AARCH64)
		return cs_open(CS_ARCH_ARM64, CS_MODE_ARM, handle) ? -ENOTSUP : 0;
	return -ENOTSUP;
}

/* All instructions; -ENOTSUP where there is no disassembler for them. */
static int decode(struct disasm *d, const struct profile_annotate *a)
{
	const uint8_t *code = a->code;
	uint64_t vaddr = a->vaddr;
	size_t left = a->nr_code;
	cs_insn *insn;
	csh handle;
	int rc = open_machine(a->machine, &handle);

	if (rc)
		return rc;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	/* As perf annotate and objdump print it. */
	if (a->machine == PROFILE_MACHINE_X86_64)
		cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	insn = cs_malloc(handle);
	while (insn && left && !rc) {
		uint32_t at = a->nr_code - (uint32_t)left;
		uint8_t unit = a->machine == PROFILE_MACHINE_AARCH64 ? (uint8_t)MIN(left, 4u) : 1;

		if (cs_disasm_iter(handle, &code, &left, &vaddr, insn)) {
			rc = add_insn(d, handle, insn);
			continue;
		}
		rc = add_bytes(d, a, at, unit);
		code += unit;
		vaddr += unit;
		left -= unit;
	}
	rc = insn ? rc : -ENOMEM;
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return rc;
}
#else
static int decode(struct disasm *d, const struct profile_annotate *a)
{
	return -ENOTSUP;
}
#endif

static int dump(struct disasm *d, const struct profile_annotate *a)
{
	int rc = 0;

	for (uint32_t at = 0; at < a->nr_code && !rc; at += BYTES_A_LINE)
		rc = add_bytes(d, a, at, (uint8_t)MIN(a->nr_code - at, BYTES_A_LINE));
	return rc;
}

uint32_t disasm_at(const struct disasm *d, uint64_t vaddr)
{
	uint32_t low = 0, high = d->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->lines[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && vaddr - d->lines[low - 1].vaddr < d->lines[low - 1].size ? low - 1 :
										 DISASM_NONE;
}

/* Offsets of jumps -> lines; into the middle of an instruction: none. */
static void find_targets(struct disasm *d)
{
	for (uint32_t i = 0; i < d->nr; i++) {
		uint32_t line;

		if (d->lines[i].target == DISASM_NONE)
			continue;
		line = disasm_at(d, d->vaddr + d->lines[i].target);
		if (line != DISASM_NONE && d->lines[line].vaddr != d->vaddr + d->lines[i].target)
			line = DISASM_NONE;
		d->lines[i].target = line;
	}
}

/* FNV-1a: is it the same code as before? */
static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
	uint64_t hash = 14695981039346656037ull;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 1099511628211ull;
	return hash;
}

int disasm_update(struct disasm *d, const struct profile_annotate *a)
{
	uint64_t hash = hash_of(a->code, a->code ? a->nr_code : 0);
	int rc;

	if (d->vaddr == a->vaddr && d->nr_code == a->nr_code && d->hash == hash && d->nr)
		return 0;
	d->nr = 0;
	d->texts_size = 0;
	d->vaddr = a->vaddr;
	d->nr_code = a->code ? a->nr_code : 0;
	d->hash = hash;
	if (!d->nr_code)
		return 0;
	rc = decode(d, a);
	if (rc == -ENOTSUP) {
		d->nr = 0;
		rc = dump(d, a);
	}
	if (rc)
		d->nr = 0;
	find_targets(d);
	return rc;
}

void disasm_fini(struct disasm *d)
{
	free(d->lines);
	free(d->texts);
	*d = (struct disasm){ .nr = 0 };
}
