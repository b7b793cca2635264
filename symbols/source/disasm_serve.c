// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes of code → instructions, by capstone.
 *
 * Runs in the worker of the cage, or in the thread of the call. The library is loaded before the
 * cage is locked; no other state between calls.
 */
#include "symbols/source/disasm_serve.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/library.h"
#include "symbols/source/disasm_wire.h"

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>

#define SONAME_OF(major) "libcapstone.so." #major
#define SONAME(major)	 SONAME_OF(major)

static struct functions {
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
		{ "cs_open", offsetof(struct functions, open) },
		{ "cs_close", offsetof(struct functions, close) },
		{ "cs_option", offsetof(struct functions, option) },
		{ "cs_malloc", offsetof(struct functions, malloc) },
		{ "cs_free", offsetof(struct functions, free) },
		{ "cs_disasm_iter", offsetof(struct functions, disasm_iter) },
		{ "cs_insn_group", offsetof(struct functions, insn_group) },
	};

	if (!loaded)
		loaded = library_find(SONAME(CS_API_MAJOR), &cs, list, ARRAY_SIZE(list));
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

static void put_insn(struct cage_reply *reply, csh handle, const cs_insn *insn)
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
	cage_put(reply, &out, sizeof(out));
	cage_put(reply, insn->mnemonic, out.mnemonic_size);
	cage_put(reply, insn->op_str, out.operands_size);
}

static int open_machine(csh *handle, const struct disasm_request *r)
{
	cs_err rc = CS_ERR_ARCH;

	load();
	if (!loaded)
		return -ENOTSUP;
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

static int decode(struct cage_reply *reply, const struct disasm_request *r, const uint8_t *code)
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
		cage_put(reply, &none, sizeof(none));
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

static int decode(struct cage_reply *reply, const struct disasm_request *r, const uint8_t *code)
{
	return -ENOTSUP;
}
#endif

static int serve(struct cage_call *c)
{
	struct disasm_request r;
	uint8_t *code;
	int rc;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	rc = cage_take(c, 0, r.nr_bytes, &code);
	if (rc)
		return rc;
	rc = decode(&c->reply, &r, code);
	free(code);
	return rc;
}

const struct cage_reader disasm_reader = {
	.kind = CAGE_DISASM,
	.name = "proftop-disasm",
	.prepare = load,
	.serve = serve,
	.memory_max = 512ULL << 20,
};
