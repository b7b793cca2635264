// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jitdump: each kind of record, a file that grows byte by byte, lines as V8 writes them, damaged
 * records.
 */
#include "symbols/jit/jitdump.c"

#include "tests/prelude.h"

#include <errno.h>
#include <unistd.h>

#include "symbols/jit/internal.h"
#include "tests/makers/jitdump.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

static struct jitmake made;

static int read_upto(struct jitdump *d, size_t size)
{
	const struct jitdump_file file = { .fd = -1, .bytes = made.bytes, .size = size };
	bool more;
	int rc = jitdump_read(d, &file, 0, &more);

	assert_false(more);
	return rc;
}

static int read_all(struct jitdump *d)
{
	assert_int_equal(jitdump_init(d), 0);
	return read_upto(d, made.size);
}

static void assert_at(const struct jitdump *d, uint32_t layer, uint64_t addr, const char *name)
{
	const struct jitcode_function *f = jitcode_find(d->code, layer, addr);

	if (!name) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	assert_string_equal(jitcode_text(d->code, f->name), name);
}

TEST(test_records)
{
	const struct jitcode_function *f;
	struct jitdump d;

	jit_header(&made, 0);
	jit_load(&made, "alpha", 0x1000, 32, 10);
	jit_prefix(&made, 4, 8, 11); /* unwinding info */
	jit_put(&made, "12345678", 8);
	jit_load(&made, "beta", 0x1010, 16, 20);
	jit_move(&made, 0x1010, 0x2000, 16, 30);
	jit_prefix(&made, 77, 0, 31); /* not known yet */
	jit_load(&made, "gamma", 0x3000, 8, 40);
	jit_prefix(&made, 3, 0, 50);
	jit_load(&made, "after the end", 0x4000, 8, 60);
	assert_int_equal(read_all(&d), 0);
	assert_int_equal(d.state.machine, EM_X86_64);
	assert_true(d.state.has_times && d.state.ended);
	assert_int_equal(d.state.nr_bad, 0);
	assert_at(&d, 0, 0x1000, "alpha");
	assert_at(&d, 0, 0x101f, "alpha");
	assert_at(&d, 1, 0x101f, "beta");
	assert_at(&d, 1, 0x100f, NULL);
	assert_at(&d, 0, 0x200f, "beta");
	assert_at(&d, 0, 0x3000, "gamma");
	assert_at(&d, 0, 0x4000, NULL);
	f = jitcode_next_over(d.code);
	assert_int_equal(f->time_ns, 20);
	assert_int_equal(made.bytes[f->bytes_at], 'b');
	assert_null(jitcode_next_over(d.code));
	f = jitcode_find(d.code, 0, 0x2000);
	assert_int_equal(made.bytes[f->bytes_at + 3], 'b' + 3);
	assert_int_equal(f->time_ns, 30);
	jitdump_fini(&d);
}

/* Of each record's beginning the name is enough; the rest arrives later, and is no second function.
 */
TEST(test_grows)
{
	struct jitdump d;
	size_t named[3];

	jit_header(&made, 0);
	jit_load(&made, "one", 0x1000, 100, 1);
	named[0] = made.size - 100;
	jit_load(&made, "two", 0x2000, 100, 2);
	named[1] = made.size - 100;
	jit_load(&made, "three", 0x1000, 100, 3);
	named[2] = made.size - 100;
	assert_int_equal(jitdump_init(&d), 0);
	for (size_t size = 0; size <= made.size; size++) {
		assert_int_equal(read_upto(&d, size), size < 40 ? -EAGAIN : 0);
		assert_int_equal(jitcode_nr(d.code),
				 (size >= named[0]) + (size >= named[1]) + (size >= named[2]));
	}
	assert_int_equal(d.state.nr_bad, 0);
	assert_int_equal(d.state.at, made.size);
	assert_at(&d, 1, 0x1000, "three");
	jitdump_fini(&d);
}

/* Room that was made and not filled: zeros. */
TEST(test_zeros)
{
	static const uint8_t zeros[4096];
	struct jitdump d;
	size_t size;

	made.size = 0;
	jit_put(&made, zeros, sizeof(zeros));
	assert_int_equal(jitdump_init(&d), 0);
	assert_int_equal(read_upto(&d, made.size), -EAGAIN);
	jit_header(&made, 0);
	jit_load(&made, "one", 0x1000, 100, 1);
	size = made.size;
	jit_put(&made, zeros, sizeof(zeros));
	assert_int_equal(read_upto(&d, made.size), 0);
	assert_int_equal(jitcode_nr(d.code), 1);
	made.size = size;
	jit_load(&made, "two", 0x2000, 100, 1);
	assert_int_equal(read_upto(&d, made.size), 0);
	assert_at(&d, 0, 0x2000, "two");
	jitdump_fini(&d);
}

static void assert_line(const struct jitdump *d, uint64_t addr, const char *file, uint32_t line)
{
	const struct jitcode_function *f = jitcode_find(d->code, 0, addr);
	const struct jitcode_line *l = jitdump_line(d, f, addr);

	if (!file) {
		assert_null(l);
		return;
	}
	assert_non_null(l);
	assert_int_equal(l->line, line);
	assert_string_equal(jitcode_text(d->code, l->file), file);
}

TEST(test_lines)
{
	const struct jit_line lines[] = {
		{ 0x1004, 3, "a.js" },
		{ 0x1010, 5, "\xff" },
		{ 0x1008, 4, "b.js" },
	};
	struct jitdump d;

	jit_header(&made, 0);
	jit_lines(&made, 0x1000, lines, 3);
	jit_load(&made, "alpha", 0x1000, 32, 1);
	jit_load(&made, "without", 0x2000, 32, 1);
	jit_lines(&made, 0x9000, lines, 3); /* of other code: all before it */
	jit_lines(&made, 0x5000, lines, 0);
	jit_load(&made, "wrong", 0x3000, 32, 1);
	assert_int_equal(read_all(&d), 0);
	assert_line(&d, 0x1003, NULL, 0);
	assert_line(&d, 0x1004, "a.js", 3);
	assert_line(&d, 0x1008, "b.js", 4);
	assert_line(&d, 0x101f, "a.js", 5);
	assert_line(&d, 0x2000, NULL, 0);
	assert_line(&d, 0x3004, NULL, 0);
	assert_int_equal(d.state.nr_bad, 1);
	jitdump_fini(&d);
}

/* V8 adds the size of the ELF header that "perf inject" puts before the code. */
TEST(test_lines_of_v8)
{
	const struct jit_line lines[] = { { 0x1040, 3, "a.js" }, { 0x1050, 4, "a.js" } };
	struct jitdump d;

	jit_header(&made, 0);
	jit_lines(&made, 0x1000, lines, 2);
	jit_load(&made, "alpha", 0x1000, 0x60, 1);
	assert_int_equal(read_all(&d), 0);
	assert_line(&d, 0x1000, "a.js", 3);
	assert_line(&d, 0x100f, "a.js", 3);
	assert_line(&d, 0x1010, "a.js", 4);
	jitdump_fini(&d);
}

static void set_u32(size_t at, uint32_t value)
{
	memcpy(made.bytes + at, &value, 4);
}

TEST(test_headers)
{
	static const struct {
		size_t at;
		uint32_t value;
		int code;
	} bad[] = {
		{ 0, 0x464c457f, -EBADMSG }, { 0, 0x4454694a, -ENOTSUP }, { 4, 2, -ENOTSUP },
		{ 8, 39, -EBADMSG },	     { 8, 1U << 20, -EBADMSG },
	};
	struct jitdump d;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		jit_header(&made, 0);
		set_u32(bad[i].at, bad[i].value);
		assert_int_equal(read_all(&d), bad[i].code);
		jitdump_fini(&d);
	}
	jit_header(&made, 1); /* times of the CPU's own counter */
	jit_load(&made, "alpha", 0x1000, 32, 12345);
	assert_int_equal(read_all(&d), 0);
	assert_false(d.state.has_times);
	assert_int_equal(jitcode_find(d.code, 0, 0x1000)->time_ns, 0);
	jitdump_fini(&d);
}

/* After an impossible size all records are ignored; before it, none. */
TEST(test_damaged)
{
	static const uint32_t sizes[] = { 1, 8, 15, JITDUMP_RECORD_MAX + 1, UINT32_MAX };
	struct jitdump d;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t at;

		jit_header(&made, 0);
		jit_load(&made, "good", 0x1000, 32, 1);
		at = made.size;
		jit_load(&made, "bad", 0x2000, 32, 1);
		set_u32(at + 4, sizes[i]);
		assert_int_equal(read_all(&d), -EBADMSG);
		assert_true(d.state.ended);
		assert_int_equal(jitcode_nr(d.code), 1);
		jitdump_fini(&d);
	}
}

/* Records with invalid content: left out, one by one. */
TEST(test_bad_records)
{
	const uint64_t huge = 1ULL << 60;
	struct jitdump d;
	size_t at;

	jit_header(&made, 0);
	at = made.size;
	jit_load(&made, "larger than its record", 0x1000, 32, 1);
	memcpy(made.bytes + at + 16 + 8 + 16, &huge, 8);
	at = made.size;
	jit_load(&made, "no end of the name", 0x2000, 0, 1);
	made.bytes[made.size - 1] = 'x';
	jit_prefix(&made, 0, 0, 1);
	jit_prefix(&made, 1, 0, 1);
	jit_prefix(&made, 2, 0, 1);
	jit_move(&made, 0x7777, 0x8888, 10, 1); /* of code never loaded */
	jit_load(&made, "good", 0x3000, 32, 1);
	assert_int_equal(read_all(&d), 0);
	assert_int_equal(jitcode_nr(d.code), 1);
	assert_int_equal(d.state.nr_bad, 5);
	assert_at(&d, 0, 0x3000, "good");
	jitdump_fini(&d);
}

/* Through a descriptor, over more than one window, and not at the end of a record. */
TEST(test_file)
{
	FILE *f = tmpfile();
	struct jitdump_file file;
	struct jitdump d;
	uint32_t nr = 0;
	bool more = true;
	char name[32];

	assert_non_null(f);
	jit_header(&made, 0);
	for (uint64_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%llu", (unsigned long long)i);
		jit_load(&made, name, 0x1000 + 1000 * i, 300, i);
		assert_int_equal(fwrite(made.bytes, 1, made.size, f), made.size);
		made.size = 0;
	}
	fflush(f);
	file = (struct jitdump_file){ .fd = fileno(f), .size = (uint64_t)ftell(f) };
	assert_int_equal(jitdump_init(&d), 0);
	for (; more && nr < 100; nr++)
		assert_int_equal(jitdump_read(&d, &file, 1, &more), 0);
	assert_true(nr > 1 && nr < 100); /* a little at a time, and the end is found */
	assert_int_equal(jitcode_nr(d.code), 3000);
	assert_at(&d, 0, 0x1000 + 2999 * 1000, "f2999");
	/* The file ends before the promised size. */
	file.size += 1000;
	assert_int_equal(jitdump_read(&d, &file, 0, &more), 0);
	jitdump_fini(&d);
	fclose(f);
}

static void flush(FILE *f)
{
	assert_int_equal(fwrite(made.bytes, 1, made.size, f), made.size);
	made.size = 0;
}

/* A record with a prefix and @size bytes that are a hole in the file. */
static void put_hole(FILE *f, uint32_t id, uint32_t size)
{
	jit_prefix(&made, id, size, 0);
	flush(f);
	assert_int_equal(fseek(f, size, SEEK_CUR), 0);
}

/*
 * Parts end anywhere: between lines and their function, in code that is larger than a part. Lines
 * in front of a record that is larger than a part are lost, nothing else.
 */
TEST(test_parts)
{
	FILE *f = tmpfile();
	const uint32_t big = 3 * JITDUMP_PART_MAX, nr = 9000;
	uint32_t ids[2] = { 4711, 4711 };
	uint64_t fields[4] = { 0xa000000, 0xa000000, big - 44, 1 };
	struct jitdump_file file;
	struct jit_line line = { .file = "far.js" };
	const struct jitcode_line *found;
	struct jitdump d;
	char name[32];
	bool more;

	assert_non_null(f);
	jit_header(&made, 0);
	for (uint32_t i = 0; i < nr; i++) {
		line = (struct jit_line){ 0x1000 + 1000ULL * i, i + 1, i % 3 ? "a.js" : "b.js" };
		snprintf(name, sizeof(name), "f%u", i);
		jit_lines(&made, line.addr, &line, 1);
		jit_load(&made, name, line.addr, 300 + i % 7, i);
		flush(f);
	}
	line = (struct jit_line){ 0x9000000, 7, "lost.js" };
	jit_lines(&made, line.addr, &line, 1);
	put_hole(f, 4, big);
	jit_load(&made, "behind", 0x9000000, 8, 1);
	/* Code of three parts. */
	jit_prefix(&made, 0, big, 1);
	jit_put(&made, ids, sizeof(ids));
	jit_put(&made, fields, sizeof(fields));
	jit_put(&made, "big", 4);
	flush(f);
	assert_int_equal(fseek(f, big - 44, SEEK_CUR), 0);
	jit_load(&made, "last", 0xb000000 + big, 8, 1);
	flush(f);
	fflush(f);
	file = (struct jitdump_file){ .fd = fileno(f), .size = (uint64_t)ftell(f) };
	assert_int_equal(jitdump_init(&d), 0);
	assert_int_equal(jitdump_read(&d, &file, 0, &more), 0);
	assert_false(more);
	assert_int_equal(d.state.at, file.size);
	assert_int_equal(d.state.nr_bad, 0);
	assert_int_equal(jitcode_nr(d.code), nr + 3);
	for (uint32_t i = 0; i < nr; i++) {
		const struct jitcode_function *fn = jitcode_find(d.code, 0, 0x1000 + 1000ULL * i);

		assert_non_null(fn);
		found = jitdump_line(&d, fn, fn->start);
		assert_non_null(found);
		assert_int_equal(found->line, i + 1);
		assert_string_equal(jitcode_text(d.code, found->file), i % 3 ? "a.js" : "b.js");
	}
	assert_at(&d, 0, 0x9000000, "behind");
	assert_at(&d, 0, 0xa000000 + big / 2, "big");
	assert_at(&d, 0, 0xb000000 + big, "last");
	jitdump_fini(&d);
	fclose(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
