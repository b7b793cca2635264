// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * disasm and listing: instructions without gaps from any bytes, jumps inside the function, names of
 * called functions; references.
 */
#include "symbols/code/code.c"

#include "tests/prelude.h"

#include <elf.h>

#include "symbols/code/internal.h"

/* Whatever the bytes are, instructions follow each other and cover all of them. */
TEST(test_any_bytes)
{
	static const uint16_t machines[] = { EM_NONE, EM_X86_64, EM_AARCH64 };
	struct disasm_code c = { .vaddr = 0x400000, .wide = true };
	uint8_t bytes[200];

	srand(3);
	c.bytes = bytes;
	for (int round = 0; round < 600; round++) {
		struct listing *l = listing_new(1);
		uint64_t at = c.vaddr;

		c.machine = machines[round % 3];
		c.nr_bytes = (uint32_t)(rand() % (int)sizeof(bytes)) + 1;
		for (uint32_t i = 0; i < c.nr_bytes; i++)
			bytes[i] = (uint8_t)rand();
		assert_int_equal(disasm(l, &c, 1), 0);
		assert_true(l->nr_insns > 0);
		for (uint32_t i = 0; i < l->nr_insns; i++) {
			const struct listing_insn *insn = &l->insns[i];

			assert_int_equal(insn->vaddr, at);
			assert_true(insn->size > 0);
			assert_int_equal(listing_at(l, at), i);
			assert_int_equal(listing_at(l, at + insn->size - 1u), i);
			at += insn->size;
			assert_true(insn->text);
			for (const char *t = listing_text(l, insn->text); *t; t++)
				assert_true(*t >= ' ' && *t <= '~');
			assert_true(insn->target == LISTING_NONE || insn->target < l->nr_insns);
			assert_int_equal(insn->callee, LISTING_NONE);
			assert_int_equal(insn->file, LISTING_NONE);
		}
		assert_int_equal(at, c.vaddr + c.nr_bytes);
		assert_int_equal(listing_at(l, at), LISTING_NONE);
		assert_int_equal(listing_at(l, c.vaddr - 1), LISTING_NONE);
		listing_put(l);
	}
}

#ifdef HAVE_CAPSTONE
static uint32_t name_at(void *ctx, uint64_t vaddr, char *buf, size_t size)
{
	*(uint64_t *)ctx = vaddr;
	if (vaddr != 0x2000)
		return LISTING_NONE;
	/* A name is foreign text: the output must be clean. */
	snprintf(buf, size, "evil\033[31m");
	return 5;
}

TEST(test_goes_where)
{
	/* 0: jne 0; 2: call 2000; 7: jmp 1234; c: jmp into the call; e: call *rax */
	static const uint8_t code[] = { 0x75, 0xfe, 0xe8, 0xf9, 0x0f, 0x00, 0x00, 0xe9,
					0x28, 0x02, 0x00, 0x00, 0xeb, 0xf7, 0xff, 0xd0 };
	uint64_t asked = 0;
	struct disasm_code c = { .bytes = code,
				 .nr_bytes = sizeof(code),
				 .vaddr = 0x1000,
				 .machine = EM_X86_64,
				 .wide = true,
				 .name = name_at,
				 .ctx = &asked };
	struct listing *l = listing_new(1);

	assert_int_equal(disasm(l, &c, 1), 0);
	assert_int_equal(l->nr_insns, 5);
	assert_int_equal(l->insns[0].target, 0);
	assert_true(l->insns[0].jump && !l->insns[0].call);
	assert_int_equal(l->insns[1].callee, 5);
	assert_true(l->insns[1].call);
	assert_int_equal(l->insns[1].target, LISTING_NONE);
	assert_non_null(strstr(listing_text(l, l->insns[1].text), "evil"));
	assert_null(strchr(listing_text(l, l->insns[1].text), '\033'));
	assert_int_equal(l->insns[2].callee, LISTING_NONE);
	assert_non_null(strstr(listing_text(l, l->insns[2].text), "0x1234"));
	assert_int_equal(asked, 0x1234);
	/* Into the middle of an instruction: nowhere. */
	assert_int_equal(l->insns[3].target, LISTING_NONE);
	assert_true(l->insns[4].call && l->insns[4].callee == LISTING_NONE);
	listing_put(l);
}
#endif

TEST(test_references)
{
	struct listing *l = listing_new(9);

	assert_ptr_equal(listing_get(l), l);
	assert_int_equal(atomic_load(&l->refs), 2);
	listing_put(l);
	assert_int_equal(l->symbol, 9);
	assert_string_equal(listing_text(l, 0), "");
	assert_string_equal(listing_text(l, 12345), "");
	listing_put(l);
	listing_put(NULL);
	assert_null(listing_get(NULL));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
