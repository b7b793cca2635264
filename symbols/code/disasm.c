// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes → instructions as text: bytes to a worker, instructions back, checked.
 *
 * Runs on: the loader. No state between calls.
 */
#include "symbols/source/disasm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cage/cage.h"
#include "symbols/source/disasm_serve.h"
#include "symbols/source/disasm_wire.h"

#define BYTES_A_LINE  8u
#define LINE_MAX_TEXT 512
#define NAMES_MAX     4096u /* look-ups for one function */
#define TIMEOUT_NS    3000000000ULL

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

/* The state while the instructions of a worker are added. */
struct work {
	struct listing *l;
	const struct disasm_code *c;
	uint32_t nr_names;
};

/* One instruction, checked: its texts are in the reply. */
struct decoded {
	struct disasm_insn is;
	const char *mnemonic, *operands;
};

/* Write the text of a jump to a target outside of this function. */
static int set_callee(struct work *w, struct listing_insn *out, const struct decoded *d)
{
	char name[LINE_MAX_TEXT / 2];

	if (w->c->name && w->nr_names++ < NAMES_MAX)
		out->callee = w->c->name(w->c->ctx, d->is.target, name, sizeof(name));
	if (out->callee == LISTING_NONE)
		return set_text(w->l, out, "%-7.*s %.*s", d->is.mnemonic_size, d->mnemonic,
				d->is.operands_size, d->operands);
	return set_text(w->l, out, "%-7.*s %s", d->is.mnemonic_size, d->mnemonic, name);
}

static int add_insn(struct work *w, uint32_t at, const struct decoded *d)
{
	const struct disasm_code *c = w->c;
	uint64_t to = d->is.target - c->vaddr;
	struct listing_insn *out;

	if (!d->is.mnemonic_size)
		return add_bytes(w->l, c, at, d->is.size);
	out = listing_add_insn(w->l, c->vaddr + at, d->is.size);
	if (!out)
		return -ENOMEM;
	out->jump = d->is.jump;
	out->call = d->is.call;
	if (d->is.target && to >= c->nr_bytes)
		return set_callee(w, out, d);
	if (d->is.target) {
		/*
		 * For now the offset from the start; becomes an instruction index when all are
		 * known.
		 */
		out->target = (uint32_t)to;
		return set_text(w->l, out, "%-7.*s +0x%x", d->is.mnemonic_size, d->mnemonic,
				out->target);
	}
	return set_text(w->l, out, d->is.operands_size ? "%-7.*s %.*s" : "%.*s%.*s",
			d->is.mnemonic_size, d->mnemonic, d->is.operands_size, d->operands);
}

/* Take the next instruction of a reply. Return false at the end of the reply. */
static bool take_insn(const struct cage_answer *a, size_t *at, struct decoded *out)
{
	const char *text = (const char *)a->bytes + *at + sizeof(out->is);

	if (a->size - *at < sizeof(out->is))
		return false;
	memcpy(&out->is, a->bytes + *at, sizeof(out->is));
	*at += sizeof(out->is);
	if (a->size - *at < (size_t)out->is.mnemonic_size + out->is.operands_size)
		return false;
	out->mnemonic = text;
	out->operands = text + out->is.mnemonic_size;
	*at += (size_t)out->is.mnemonic_size + out->is.operands_size;
	return true;
}

/* Test that a reply covers all bytes of the code, without gaps, and has nothing more. */
static bool is_whole(const struct cage_answer *a, uint32_t nr_bytes)
{
	struct decoded d;
	uint32_t done = 0;
	size_t at = 0;

	while (done < nr_bytes && take_insn(a, &at, &d) && d.is.size &&
	       d.is.size <= nr_bytes - done)
		done += d.is.size;
	return done == nr_bytes && at == a->size;
}

/* Disassemble everything in the cage. -ENOMEM; other errors: there are no instructions. */
static int decode(struct listing *l, const struct disasm_code *c)
{
	const struct disasm_request r = {
		.vaddr = c->vaddr, .nr_bytes = c->nr_bytes, .machine = c->machine, .wide = c->wide
	};
	int fds[CAGE_FDS_MAX] = { cage_wrap(c->bytes, c->nr_bytes), -1 };
	struct work w = { .l = l, .c = c };
	struct cage_answer a;
	struct decoded d;
	size_t at = 0;
	int rc;

	if (fds[0] < 0)
		return fds[0];
	rc = cage_call(&disasm_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (rc)
		return rc;
	if (!is_whole(&a, c->nr_bytes))
		rc = -EBADMSG;
	for (uint32_t done = 0; !rc && done < c->nr_bytes; done += d.is.size) {
		rc = take_insn(&a, &at, &d) ? add_insn(&w, done, &d) : -EBADMSG;
	}
	cage_answer_free(&a);
	return rc;
}

/* Add lines of bytes. */
static int put_bytes(struct listing *l, const struct disasm_code *c)
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

	if (rc && rc != -ENOMEM)
		rc = put_bytes(l, c);
	find_targets(l, c->vaddr);
	return rc;
}
