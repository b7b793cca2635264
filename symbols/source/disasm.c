// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes → instructions as text.
 *
 * Runs on: the loader. No state between calls; the disassembler is loaded by the
 * first one.
 */
#include "symbols/source/disasm.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/library.h"

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

#define BYTES_A_LINE  8u
#define LINE_MAX_TEXT 512
#define NAMES_MAX     4096u /* look-ups for one function */

__attribute__((format(printf, 3, 4))) static int
set_text(struct listing *l, struct listing_insn *insn, const char *fmt, ...)
{
	char text[LINE_MAX_TEXT], clean[LINE_MAX_TEXT];
	struct safe_text is;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	is = text_sanitise(clean, sizeof(clean), text, strlen(text));
	insn->text = listing_add_text(l, is.str, is.size);
	return insn->text ? 0 : -ENOMEM;
}

/* Show the bytes themselves. */
static int add_bytes(struct listing *l, const struct disasm_code *c, uint32_t at, uint8_t size)
{
	struct listing_insn *insn = listing_add_insn(l, c->vaddr + at, size);
	char text[8 + 5 * BYTES_A_LINE + 1];
	int n;

	if (!insn)
		return -ENOMEM;
	n = snprintf(text, sizeof(text), ".byte  ");
	for (uint32_t i = 0; i < size && i < BYTES_A_LINE; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " 0x%02x", c->bytes[at + i]);
	return set_text(l, insn, "%s", text);
}

#ifdef HAVE_CAPSTONE
#define SONAME_OF(major) "libcapstone.so." #major
#define SONAME(major)	 SONAME_OF(major)

struct functions {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_insn_group) *insn_group;
};

static bool find_functions(struct functions *cs)
{
	static const struct library_function list[] = {
		{ "cs_open", offsetof(struct functions, open) },
		{ "cs_close", offsetof(struct functions, close) },
		{ "cs_option", offsetof(struct functions, option) },
		{ "cs_malloc", offsetof(struct functions, malloc) },
		{ "cs_free", offsetof(struct functions, free) },
		{ "cs_disasm_iter", offsetof(struct functions, disasm_iter) },
		{ "cs_insn_group", offsetof(struct functions, insn_group) },
	};

	return library_find(SONAME(CS_API_MAJOR), cs, list, ARRAY_SIZE(list));
}

struct work {
	struct functions cs;
	struct listing *l;
	const struct disasm_code *c;
	csh handle;
	uint32_t nr_names;
};

/* Return the target of a direct jump or call; 0: unknown. */
static uint64_t target_of(const cs_insn *insn)
{
	const char *hex = insn->op_str[0] == '#' ? insn->op_str + 1 : insn->op_str;
	const char *comma = strrchr(hex, ' ');
	char *end;
	uint64_t target;

	/* "0x401136", "#0x401136"; the last operand, for cbz and similar. */
	if (comma)
		hex = comma + 1 + (comma[1] == '#');
	if (strncmp(hex, "0x", 2))
		return 0;
	target = strtoull(hex, &end, 16);
	return *end ? 0 : target;
}

/* Write the text of a jump to @target, outside of this function. */
static int set_callee(struct work *w, struct listing_insn *out, const cs_insn *insn,
		      uint64_t target)
{
	char name[LINE_MAX_TEXT / 2];

	if (w->c->name && w->nr_names++ < NAMES_MAX)
		out->callee = w->c->name(w->c->ctx, target, name, sizeof(name));
	if (out->callee == LISTING_NONE)
		return set_text(w->l, out, "%-7s %s", insn->mnemonic, insn->op_str);
	return set_text(w->l, out, "%-7s %s", insn->mnemonic, name);
}

static int add_insn(struct work *w, const cs_insn *insn)
{
	const struct disasm_code *c = w->c;
	struct listing_insn *out = listing_add_insn(w->l, insn->address, (uint8_t)insn->size);
	uint64_t target;

	if (!out)
		return -ENOMEM;
	out->jump = w->cs.insn_group(w->handle, insn, CS_GRP_JUMP);
	out->call = w->cs.insn_group(w->handle, insn, CS_GRP_CALL);
	target = out->jump || out->call ? target_of(insn) : 0;
	if (target && target - c->vaddr >= c->nr_bytes)
		return set_callee(w, out, insn, target);
	if (target) {
		/*
		 * For now the offset from the start; becomes an instruction index when all are
		 * known.
		 */
		out->target = (uint32_t)(target - c->vaddr);
		return set_text(w->l, out, "%-7s +0x%x", insn->mnemonic, out->target);
	}
	return set_text(w->l, out, insn->op_str[0] ? "%-7s %s" : "%s", insn->mnemonic,
			insn->op_str);
}

static int open_machine(struct work *w)
{
	const struct disasm_code *c = w->c;
	cs_err rc = CS_ERR_ARCH;

	if (!find_functions(&w->cs))
		return -ENOTSUP;
	if (c->wide && c->machine == EM_X86_64)
		rc = w->cs.open(CS_ARCH_X86, CS_MODE_64, &w->handle);
	else if (c->wide && c->machine == EM_AARCH64)
		rc = w->cs.open(CS_ARCH_ARM64, CS_MODE_ARM, &w->handle);
	if (rc)
		return -ENOTSUP;
	w->cs.option(w->handle, CS_OPT_DETAIL, CS_OPT_ON);
	/* The form of perf annotate and objdump. */
	if (c->machine == EM_X86_64)
		w->cs.option(w->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	return 0;
}

/* Disassemble everything; -ENOTSUP if there is no disassembler for the CPU. */
static int decode(struct listing *l, const struct disasm_code *c)
{
	struct work w = { .l = l, .c = c };
	const uint8_t *code = c->bytes;
	uint64_t vaddr = c->vaddr;
	size_t left = c->nr_bytes;
	cs_insn *insn;
	int rc = open_machine(&w);

	if (rc)
		return rc;
	insn = w.cs.malloc(w.handle);
	while (insn && left && !rc) {
		uint32_t at = c->nr_bytes - (uint32_t)left;
		uint8_t unit = c->machine == EM_AARCH64 ? (uint8_t)MIN(left, 4u) : 1;

		if (w.cs.disasm_iter(w.handle, &code, &left, &vaddr, insn)) {
			rc = add_insn(&w, insn);
			continue;
		}
		rc = add_bytes(l, c, at, unit);
		code += unit;
		vaddr += unit;
		left -= unit;
	}
	rc = insn ? rc : -ENOMEM;
	if (insn)
		w.cs.free(insn, 1);
	w.cs.close(&w.handle);
	return rc;
}
#else
static int decode(struct listing *l, const struct disasm_code *c)
{
	return -ENOTSUP;
}
#endif

/* Show bytes, without a disassembler. */
static int dump(struct listing *l, const struct disasm_code *c)
{
	int rc = 0;

	for (uint32_t at = 0; at < c->nr_bytes && !rc; at += BYTES_A_LINE)
		rc = add_bytes(l, c, at, (uint8_t)MIN(c->nr_bytes - at, BYTES_A_LINE));
	return rc;
}

/* Convert offsets of jumps to instructions; a target in the middle of one: none. */
static void find_targets(struct listing *l, uint64_t vaddr)
{
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		struct listing_insn *insn = &l->insns[i];
		uint64_t to = vaddr + insn->target;

		if (insn->target == LISTING_NONE)
			continue;
		insn->target = listing_at(l, to);
		if (insn->target != LISTING_NONE && l->insns[insn->target].vaddr != to)
			insn->target = LISTING_NONE;
	}
}

int disasm(struct listing *l, const struct disasm_code *c)
{
	int rc = decode(l, c);

	if (rc == -ENOTSUP)
		rc = dump(l, c);
	find_targets(l, c->vaddr);
	return rc;
}
