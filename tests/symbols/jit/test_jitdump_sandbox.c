// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jitdump: its reader in the sandbox: changed answers are refused or harmless, a worker that dies
 * or goes on byte by byte costs a few calls. Live: waits for processes.
 */
#include "symbols/jit/jitdump.c"

#include "tests/prelude.h"
#include "tests/makers/jitdump.h"
#include "tests/symbols/sandbox/changed.h"

static struct sandbox_reader reader;

/* Answer a request for a part of a jitdump: one byte was read. */
static void answer_one_byte(struct sandbox_call *c)
{
	struct jitdump_request r;
	struct jitdump_answer a = { .more = 1 };

	memcpy(&r, c->request, sizeof(r));
	a.state = r.state;
	a.state.at++;
	c->reply.size = 0;
	sandbox_put(&c->reply, &a, sizeof(a));
}

static int serve_jitdump(struct sandbox_call *c)
{
	int rc = serve_changed(&jitdump_reader, c);

	if (!rc && shared->mode == SLOW)
		answer_one_byte(c);
	return rc;
}

static void make_dump(struct jitmake *j)
{
	static const char *const files[] = { "a.js", "b.js", "b.js" };
	char name[32];

	jit_header(j, 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct jit_line lines[3];

		for (uint32_t k = 0; k < ARRAY_SIZE(lines); k++)
			lines[k] =
				(struct jit_line){ 0x1000 + 64 * i + 4 * k, i + k + 1, files[k] };
		snprintf(name, sizeof(name), "f%u", i);
		jit_lines(j, 0x1000 + 64 * i, lines, 3);
		jit_load(j, name, 0x1000 + 64 * i, 64, i);
	}
	jit_move(j, 0x1000, 0x9000, 64, 200);
}

static int read_dump(struct jitdump *d, const struct jitmake *j)
{
	const struct jitdump_file file = { .fd = -1, .bytes = j->bytes, .size = j->size };
	bool more;

	assert_int_equal(jitdump_init(d), 0);
	return jitdump_read(d, &file, 0, &more);
}

TEST(test_jitdump)
{
	static struct jitmake j;
	const struct jitcode_function *f;
	struct jitdump d;

	make_dump(&j);
	shared->mode = HONEST;
	assert_int_equal(read_dump(&d, &j), 0);
	assert_int_equal(jitcode_nr(d.code), 101);
	f = jitcode_find(d.code, 0, 0x1000 + 64 * 50 + 9);
	assert_string_equal(jitcode_text(d.code, f->name), "f50");
	assert_int_equal(jitdump_line(&d, f, 0x1000 + 64 * 50 + 9)->line, 53);
	assert_string_equal(jitcode_text(d.code, jitcode_find(d.code, 0, 0x9000)->name), "f0");
	jitdump_fini(&d);
	shared->mode = CHANGED;
	for (shared->seed = 0; shared->seed < 2 * NR_ROUNDS; shared->seed++) {
		int rc = read_dump(&d, &j);

		assert_true(rc <= 0);
		for (uint64_t addr = 0x1000; addr < 0x1000 + 64 * 100; addr += 5) {
			f = jitcode_latest(d.code, addr);
			if (f)
				jitdump_line(&d, f, addr);
		}
		jitdump_fini(&d);
	}
	shared->mode = DIES;
	assert_int_equal(read_dump(&d, &j), -EPIPE);
	assert_true(d.state.ended); /* not read again */
	jitdump_fini(&d);
}

/* A worker that goes on byte by byte does not get a call for each. */
TEST(test_jitdump_steps)
{
	static struct jitmake j;
	struct jitdump d;
	uint32_t calls = shared->nr_calls;

	make_dump(&j);
	assert_true(j.size > 10000);
	shared->mode = SLOW;
	assert_int_equal(read_dump(&d, &j), -EBADMSG);
	assert_true(d.state.ended);
	assert_in_range(shared->nr_calls - calls, 1, 20);
	jitdump_fini(&d);
}

/* A file that needs most calls: each large record is after lines, to which the reader goes back. */
TEST(test_jitdump_large)
{
	enum { NR = 40, LARGE = JITDUMP_PART_MAX };
	const struct jit_line line = { 0x1000, 1, "a.js" };
	const uint32_t unwinding[2] = { 4, LARGE };
	uint8_t *bytes = calloc(NR + 1, LARGE);
	struct jitdump_file file = { .fd = -1, .bytes = bytes };
	uint32_t calls = shared->nr_calls;
	static struct jitmake j;
	struct jitdump d;
	bool more;

	for (uint32_t i = 0; i < NR; i++) {
		char name[16];

		j.size = 0;
		snprintf(name, sizeof(name), "f%u", i);
		if (!i)
			jit_header(&j, 0);
		jit_load(&j, name, 0x2000 + 64 * i, 64, i);
		jit_lines(&j, 0x1000, &line, 1);
		memcpy(bytes + file.size, j.bytes, j.size);
		memcpy(bytes + file.size + j.size, unwinding, sizeof(unwinding));
		file.size += j.size + LARGE;
	}
	shared->mode = HONEST;
	assert_int_equal(jitdump_init(&d), 0);
	assert_int_equal(jitdump_read(&d, &file, 0, &more), 0);
	assert_false(more);
	assert_int_equal(jitcode_nr(d.code), NR);
	assert_in_range(shared->nr_calls - calls, 2 * NR - 2, 3 * NR);
	jitdump_fini(&d);
	free(bytes);
}

static int set_up(void **state)
{
	static const struct sandbox_reader *const readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_JITDUMP] = &reader,
	};

	reader = wrap(&jitdump_reader, serve_jitdump);
	return start_changed(readers);
}

int main(void)
{
	return run_unit_tests(set_up, stop_changed);
}
