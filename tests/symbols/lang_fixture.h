/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fixture of tests that read a made-up interpreter. The includer has defined struct fixture
 * with the members m, reader, sample and chain.
 */
#ifndef TESTS_SYMBOLS_LANG_FIXTURE_H
#define TESTS_SYMBOLS_LANG_FIXTURE_H

/* Make a fixture with a reader of its memory, which is empty. */
static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->reader = calloc(1, sizeof(*f->reader));
	assert_true(pymake_reader(f->reader, &f->m));
	return f;
}

/* Give the sample the stack at offset @at of the memory. */
static void put_stack(struct fixture *f, uint32_t at, uint32_t size)
{
	f->sample.sp = PYMAKE_BASE + at;
	f->sample.stack = f->m.bytes + at;
	f->sample.stack_size = size;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	script_functions_free(f->reader->codes);
	free(f->reader);
	free(f);
	return 0;
}

/* Read the chain of the sample; find its thread first where that is needed. */
static enum lang_status chain(struct fixture *f)
{
	if (!lang_chain(f->reader, &f->m.process, &f->sample, &f->chain)) {
		lang_chain_find_thread(f->reader, &f->m.process, &f->sample);
		lang_chain(f->reader, &f->m.process, &f->sample, &f->chain);
	}
	return f->chain.none;
}

#endif
