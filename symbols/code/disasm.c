// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes → instructions as text: the call, the worker's side (the only user of the disassembler),
 * the messages.
 *
 * Runs on: the loader. No state between calls.
 */
#include "symbols/code/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/sandbox/sandbox.h"

#define INSTEAD "bytes instead of instructions: "

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>

#define NAME_OF(begin, major) begin #major
#define NAME(begin, major)    NAME_OF(begin, major)
#define SONAME		      NAME("libcapstone.so.", CS_API_MAJOR)
#define INSTALL		      NAME(INSTEAD "install libcapstone", CS_API_MAJOR)
#else
#define INSTALL INSTEAD "build it with libcapstone-dev"
#endif

/*
 * Messages between a caller and the worker. The bytes of the code are in a memfd.
 */

struct disasm_request {
	uint64_t vaddr;
	uint32_t nr_bytes;
	uint16_t machine; /* e_machine */
	uint16_t wide;	  /* 64 bits */
};

/* One instruction; its mnemonic and its operands follow, without NUL. */
struct disasm_insn {
	uint64_t target; /* of a direct jump or call; 0: unknown */
	uint8_t size;	 /* bytes of code */
	uint8_t mnemonic_size;
	uint8_t operands_size; /* both 0: no instruction */
	uint8_t jump : 1, call : 1;
	uint32_t reserved;
};

#define BYTES_A_LINE	 8u
#define LINE_MAX_TEXT	 512
#define DISASM_NAMES_MAX 4096u /* look-ups for one function */
#define TIMEOUT_NS	 3000000000ULL

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

	assert(at + size <= c->nr_bytes);
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

	if (w->c->name && w->nr_names++ < DISASM_NAMES_MAX)
		out->callee = w->c->name(w->c->ctx, d->is.target, name, sizeof(name));
	if (out->callee == LISTING_NONE)
		return set_text(w->l, out, "%-7.*s %.*s", d->is.mnemonic_size, d->mnemonic,
				d->is.operands_size, d->operands);
	return set_text(w->l, out, "%-7.*s %s", d->is.mnemonic_size, d->mnemonic, name);
}

static uint64_t begin_of(const struct disasm_code *c)
{
	return c->begin ? c->begin : c->vaddr;
}

static int add_insn(struct work *w, uint32_t at, const struct decoded *d)
{
	const struct disasm_code *c = w->c;
	uint64_t to = d->is.target - begin_of(c);
	struct listing_insn *out;

	if (!d->is.mnemonic_size)
		return add_bytes(w->l, c, at, d->is.size);
	out = listing_add_insn(w->l, c->vaddr + at, d->is.size);
	if (!out)
		return -ENOMEM;
	out->jump = d->is.jump;
	out->call = d->is.call;
	if (d->is.target && d->is.target - c->vaddr >= c->nr_bytes &&
	    !listing_covers(w->l, d->is.target))
		return set_callee(w, out, d);
	if (d->is.target) {
		/*
		 * For now the offset from the start; becomes an instruction index when all are
		 * known.
		 */
		out->target = (uint32_t)to;
		return set_text(w->l, out, "%-7.*s %c0x%" PRIx64, d->is.mnemonic_size, d->mnemonic,
				(int64_t)to < 0 ? '-' : '+', (int64_t)to < 0 ? -to : to);
	}
	return set_text(w->l, out, d->is.operands_size ? "%-7.*s %.*s" : "%.*s%.*s",
			d->is.mnemonic_size, d->mnemonic, d->is.operands_size, d->operands);
}

/* Take the next instruction of a reply. Return false at the end of the reply. */
static bool take_insn(const struct sandbox_answer *a, size_t *at, struct decoded *out)
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
static bool is_whole(const struct sandbox_answer *a, uint32_t nr_bytes)
{
	struct decoded d;
	uint32_t done = 0;
	size_t at = 0;

	while (done < nr_bytes && take_insn(a, &at, &d) && d.is.size &&
	       d.is.size <= nr_bytes - done)
		done += d.is.size;
	return done == nr_bytes && at == a->size;
}

/* Disassemble everything in the sandbox. -ENOMEM; other errors: there are no instructions. */
static int decode(struct listing *l, const struct disasm_code *c)
{
	const struct disasm_request r = {
		.vaddr = c->vaddr, .nr_bytes = c->nr_bytes, .machine = c->machine, .wide = c->wide
	};
	int fds[SANDBOX_FDS_MAX] = { sandbox_wrap(c->bytes, c->nr_bytes), -1 };
	struct work w = { .l = l, .c = c };
	struct sandbox_answer a;
	struct decoded d;
	size_t at = 0;
	int rc;

	if (fds[0] < 0)
		return fds[0];
	rc = sandbox_call(&disasm_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (rc)
		return rc;
	if (!is_whole(&a, c->nr_bytes))
		rc = -EBADMSG;
	for (uint32_t done = 0; !rc && done < c->nr_bytes; done += d.is.size) {
		rc = take_insn(&a, &at, &d) ? add_insn(&w, done, &d) : -EBADMSG;
	}
	sandbox_answer_free(&a);
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
static void find_targets(struct listing *l, uint64_t begin)
{
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		struct listing_insn *insn = &l->insns[i];
		uint64_t to = begin + (uint64_t)(int64_t)(int32_t)insn->target;

		if (insn->target == LISTING_NONE)
			continue;
		insn->target = listing_at(l, to);
		if (insn->target != LISTING_NONE && l->insns[insn->target].vaddr != to)
			insn->target = LISTING_NONE;
	}
}

int disasm(struct listing *l, const struct disasm_code *c, uint32_t nr)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		uint32_t nr_before = l->nr_insns;

		rc = decode(l, &c[i]);
		if (rc == -ENOPKG)
			l->fix = INSTALL;
		if (rc && rc != -ENOMEM) {
			l->nr_insns = nr_before;
			rc = put_bytes(l, &c[i]);
		}
	}
	if (nr)
		find_targets(l, begin_of(c));
	return rc;
}

/*
 * The worker's side: the only file that uses the disassembler.
 *
 * Bytes of code → instructions, by capstone.
 *
 * Runs in the worker of the sandbox, or in the thread of the call. The library is loaded before the
 * sandbox is locked; no other state between calls.
 */

#ifdef HAVE_CAPSTONE
static struct disasm_serve_functions {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_insn_group) *insn_group;
} cs;
static bool loaded;

static void load(void)
{
	static const struct library_function list[] = {
		{ "cs_open", offsetof(struct disasm_serve_functions, open) },
		{ "cs_close", offsetof(struct disasm_serve_functions, close) },
		{ "cs_option", offsetof(struct disasm_serve_functions, option) },
		{ "cs_malloc", offsetof(struct disasm_serve_functions, malloc) },
		{ "cs_free", offsetof(struct disasm_serve_functions, free) },
		{ "cs_disasm_iter", offsetof(struct disasm_serve_functions, disasm_iter) },
		{ "cs_insn_group", offsetof(struct disasm_serve_functions, insn_group) },
	};

	if (!loaded)
		loaded = library_find(SONAME, &cs, list, ARRAY_SIZE(list));
}

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

static void put_insn(struct sandbox_reply *reply, csh handle, const cs_insn *insn)
{
	struct disasm_insn out = {
		.size = (uint8_t)insn->size,
		.mnemonic_size = (uint8_t)strnlen(insn->mnemonic, sizeof(insn->mnemonic)),
		.operands_size = (uint8_t)strnlen(insn->op_str, sizeof(insn->op_str)),
		.jump = cs.insn_group(handle, insn, CS_GRP_JUMP),
		.call = cs.insn_group(handle, insn, CS_GRP_CALL),
	};

	if (out.jump || out.call)
		out.target = target_of(insn);
	sandbox_put(reply, &out, sizeof(out));
	sandbox_put(reply, insn->mnemonic, out.mnemonic_size);
	sandbox_put(reply, insn->op_str, out.operands_size);
}

static int open_machine(csh *handle, const struct disasm_request *r)
{
	cs_err rc = CS_ERR_ARCH;

	load();
	if (!loaded)
		return -ENOPKG;
	if (r->wide && r->machine == EM_X86_64)
		rc = cs.open(CS_ARCH_X86, CS_MODE_64, handle);
	else if (r->wide && r->machine == EM_AARCH64)
		rc = cs.open(CS_ARCH_ARM64, CS_MODE_ARM, handle);
	if (rc)
		return -ENOTSUP;
	cs.option(*handle, CS_OPT_DETAIL, CS_OPT_ON);
	/* The form of perf annotate and objdump. */
	if (r->machine == EM_X86_64)
		cs.option(*handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	return 0;
}

static int disasm_serve_decode(struct sandbox_reply *reply, const struct disasm_request *r,
			       const uint8_t *code)
{
	uint8_t unit = r->machine == EM_AARCH64 ? 4 : 1;
	uint64_t vaddr = r->vaddr;
	size_t left = r->nr_bytes;
	cs_insn *insn;
	csh handle;
	int rc = open_machine(&handle, r);

	if (rc)
		return rc;
	insn = cs.malloc(handle);
	while (insn && left && !reply->full) {
		struct disasm_insn none = { .size = (uint8_t)MIN(left, unit) };

		if (cs.disasm_iter(handle, &code, &left, &vaddr, insn)) {
			put_insn(reply, handle, insn);
			continue;
		}
		sandbox_put(reply, &none, sizeof(none));
		code += none.size;
		vaddr += none.size;
		left -= none.size;
	}
	rc = insn ? 0 : -ENOMEM;
	if (insn)
		cs.free(insn, 1);
	cs.close(&handle);
	return rc;
}
#else
static void load(void)
{
}

static int disasm_serve_decode(struct sandbox_reply *reply, const struct disasm_request *r,
			       const uint8_t *code)
{
	return -ENOPKG;
}
#endif

static int serve(struct sandbox_call *c)
{
	struct disasm_request r;
	uint8_t *code;
	int rc;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	rc = sandbox_take(c, 0, r.nr_bytes, &code);
	if (rc)
		return rc;
	rc = disasm_serve_decode(&c->reply, &r, code);
	free(code);
	return rc;
}

const struct sandbox_reader disasm_reader = {
	.kind = SANDBOX_DISASM,
	.name = "proftop-disasm",
	.prepare = load,
	.serve = serve,
	.memory_max = 512ULL << 20,
};
