// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfmap: forms of lines, overlaps against a model that paints each address,
 * hostile text.
 * Live: reads a clock.
 */
#include "symbols/jit/perfmap.c"

#include "tests/prelude.h"

#include <errno.h>

#include "symbols/jit/internal.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "tests/symbols/sandbox/changed.h"

static struct perfmap *parse(const char *text)
{
	struct perfmap *map = NULL;

	assert_int_equal(perfmap_parse(&map, text, strlen(text)), 0);
	return map;
}

/* Assert the symbol that covers @addr; @name NULL: none. */
static void assert_at(const struct perfmap *map, uint64_t addr, const char *name, uint64_t start)
{
	struct perfmap_symbol s = { .name = NULL };
	bool found = perfmap_find(map, addr, &s);

	if (!assert_found(found, name, s.name, s.name_size))
		return;
	assert_int_equal(s.start, start);
	assert_true(addr - s.start < s.size);
}

TEST(test_lines)
{
	struct perfmap *map = parse("1000 10 LazyCompile:~foo /a b.js:1\n"
				    "0x2000 0x20 Ljava/lang/String;::hashCode\n"
				    "  ABCDEF0 1   spaced name  \r\n"
				    "ffffffffffffff00 ff last\n"
				    "\n");

	assert_int_equal(perfmap_nr(map), 4);
	assert_int_equal(map->nr_bad, 0);
	assert_at(map, 0xfff, NULL, 0);
	assert_at(map, 0x1000, "LazyCompile:~foo /a b.js:1", 0x1000);
	assert_at(map, 0x100f, "LazyCompile:~foo /a b.js:1", 0x1000);
	assert_at(map, 0x1010, NULL, 0);
	assert_at(map, 0x201f, "Ljava/lang/String;::hashCode", 0x2000);
	assert_at(map, 0xabcdef0, "spaced name", 0xabcdef0);
	assert_at(map, 0xabcdef1, NULL, 0);
	assert_at(map, 0xfffffffffffffffe, "last", 0xffffffffffffff00);
	assert_at(map, UINT64_MAX, NULL, 0);
	perfmap_free(map);
}

/* Each of these is passed over; the good line behind it is not. */
TEST(test_bad_lines)
{
	static const char *const bad[] = {
		"1000",
		"1000 10",
		"1000 10 ",
		"g000 10 x",
		"1000 1g x",
		"0x 10 x",
		"11112222333344445 10 x",
		"1000 11112222333344445 x",
		"ffffffffffffffff 2 wraps",
		"ffffffffffffffff 0 at_the_end",
		"-1000 10 x",
		"1000,10,x",
		" ",
		"\t\t\t",
		"1000 0x x",
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct perfmap *map;

		snprintf(text, sizeof(text), "%s\n5000 10 good\n", bad[i]);
		map = parse(text);
		if (perfmap_nr(map) != 1 || map->nr_bad != 1)
			fail_msg("'%s' was taken", bad[i]);
		assert_at(map, 0x5008, "good", 0x5000);
		perfmap_free(map);
	}
}

/* Without a size an entry is as long as there is nothing else, up to a limit. */
TEST(test_size_0)
{
	struct perfmap *map = parse("1000 0 first\n1100 0 second\n1180 0x40 sized\n"
				    "1190 0 label\n2000 0 twice\n2000 0 again\n"
				    "3000 0 old\n3000 80 new\n9000000 0 last\n");

	assert_int_equal(map->nr_bad, 0);
	assert_at(map, 0xfff, NULL, 0);
	assert_at(map, 0x10ff, "first", 0x1000);
	assert_at(map, 0x1100, "second", 0x1100);
	assert_at(map, 0x117f, "second", 0x1100);
	assert_at(map, 0x1190, "sized", 0x1180);
	assert_at(map, 0x11bf, "sized", 0x1180);
	assert_at(map, 0x11c0, NULL, 0);
	assert_at(map, 0x2fff, "again", 0x2000);
	assert_at(map, 0x307f, "new", 0x3000);
	assert_at(map, 0x3080, NULL, 0);
	assert_at(map, 0x9000fff, "last", 0x9000000);
	assert_at(map, 0x9001000, NULL, 0);
	perfmap_free(map);
	map = parse("1000 0 alone\n5000000 0 far\n");
	assert_at(map, 0x100fff, "alone", 0x1000);
	assert_at(map, 0x101000, NULL, 0);
	perfmap_free(map);
}

TEST(test_unfinished)
{
	struct perfmap *map = parse("1000 10 whole\n2000 10 ha");

	assert_int_equal(perfmap_nr(map), 1);
	assert_at(map, 0x2000, NULL, 0);
	perfmap_free(map);
	assert_int_equal(perfmap_parse(&map, "2000 10 ha", 10), -ENODATA);
	assert_int_equal(perfmap_parse(&map, "", 0), -ENODATA);
}

TEST(test_later_wins)
{
	/* Written over wholly, in part, in the middle; and an old one that shows on both sides. */
	struct perfmap *map = parse("1000 100 a\n1000 100 b\n"
				    "2000 100 left\n2080 100 right\n"
				    "3000 100 outer\n3040 10 inner\n"
				    "4000 10 same\n4000 20 same\n");

	assert_at(map, 0x1000, "b", 0x1000);
	assert_at(map, 0x10ff, "b", 0x1000);
	assert_at(map, 0x207f, "left", 0x2000);
	assert_at(map, 0x2080, "right", 0x2080);
	assert_at(map, 0x217f, "right", 0x2080);
	assert_at(map, 0x303f, "outer", 0x3000);
	assert_at(map, 0x3040, "inner", 0x3040);
	assert_at(map, 0x304f, "inner", 0x3040);
	assert_at(map, 0x3050, "outer", 0x3000);
	assert_at(map, 0x401f, "same", 0x4000);
	perfmap_free(map);
}

/* Random entries against an array of addresses painted in order. */
TEST(test_against_paint)
{
	enum { SPACE = 2000, ENTRIES = 300 };
	char text[ENTRIES * 32];
	unsigned int seed = 1;

	for (int round = 0; round < 50; round++) {
		int owner[SPACE];
		size_t size = 0;
		struct perfmap *map;

		memset(owner, -1, sizeof(owner));
		for (int i = 0; i < ENTRIES; i++) {
			unsigned int start = rand_r(&seed) % SPACE;
			unsigned int nr = 1 + rand_r(&seed) % (i % 7 ? 20 : 300);

			nr = MIN(nr, SPACE - start);
			size += sprintf(text + size, "%x %x f%d\n", start, nr, i);
			for (unsigned int j = start; j < start + nr; j++)
				owner[j] = i;
		}
		map = parse(text);
		for (int i = 0; i < SPACE; i++) {
			struct perfmap_symbol s;
			char name[16];
			bool found = perfmap_find(map, i, &s);

			assert_int_equal(found, owner[i] >= 0);
			if (!found)
				continue;
			snprintf(name, sizeof(name), "f%d", owner[i]);
			assert_int_equal(s.name_size, strlen(name));
			assert_memory_equal(s.name, name, s.name_size);
		}
		perfmap_free(map);
	}
}

TEST(test_long_name)
{
	char *text = malloc(1 << 20);
	struct perfmap_symbol s;
	struct perfmap *map;
	size_t size = 0;

	assert_non_null(text);
	size += sprintf(text, "1000 10 ");
	memset(text + size, 'n', 1 << 19);
	size += 1 << 19;
	text[size++] = '\n';
	assert_int_equal(perfmap_parse(&map, text, size), 0);
	assert_true(perfmap_find(map, 0x1000, &s));
	assert_int_equal(s.name_size, PERFMAP_NAME_MAX);
	perfmap_free(map);
	free(text);
	assert_int_equal(perfmap_parse(&map, "", (size_t)PERFMAP_SIZE_MAX + 1), -E2BIG);
}

/* A million entries, all over each other: seconds would be a sign of quadratic work. */
TEST(test_many)
{
	enum { NR = 1000000 };
	char *text = malloc(NR * 32UL);
	uint64_t start_ns;
	struct perfmap *map;
	size_t size = 0;

	assert_non_null(text);
	for (unsigned int i = 0; i < NR; i++)
		size += sprintf(text + size, "%x %x f\n", 0x1000 + (i * 7919U) % NR,
				5000 + i % 100);
	start_ns = time_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(perfmap_parse(&map, text, size), 0);
	assert_int_equal(perfmap_nr(map), NR);
	assert_true(time_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns < 20000000000ULL);
	perfmap_free(map);
	free(text);
}

/*
 * In the sandbox: a worker returns the same; changed answers are refused or harmless.
 */

static int serve_perfmap(struct sandbox_call *c)
{
	return serve_changed(&perfmap_reader, c);
}

/* A perf map with overlaps and bad lines. */
static size_t put_map(char *text, size_t max, uint32_t nr)
{
	uint32_t seed = nr;
	size_t size = 0;

	for (uint32_t i = 0; i < nr; i++)
		size += (size_t)snprintf(text + size, max - size, "%x %x name %u%s\n",
					 0x1000 + next_random(&seed) % 100000,
					 next_random(&seed) % 300, i, i % 50 ? "" : "\nbad line");
	return size;
}

static int parse_map(struct perfmap **map, const char *text, size_t size)
{
	int fd = sandbox_wrap(text, size), rc = perfmap_sandbox_parse(map, fd, size);

	close(fd);
	return rc;
}

/* Look every address up; @want: the same map, parsed here, or NULL: any that is inside. */
static void walk_map(const struct perfmap *map, const struct perfmap *want)
{
	for (uint64_t addr = 0; addr < 110000; addr += 7) {
		struct perfmap_symbol a, b;
		bool found = perfmap_find(map, addr, &a);
		volatile char sum = 0;

		if (want) {
			assert_int_equal(found, perfmap_find(want, addr, &b));
			assert_true(!found || (a.start == b.start && a.size == b.size &&
					       a.name_size == b.name_size &&
					       !memcmp(a.name, b.name, a.name_size)));
		}
		for (uint32_t i = 0; found && i < a.name_size; i++)
			sum = (char)(sum + a.name[i]);
	}
}

TEST(test_sandbox)
{
	static char text[200000];
	size_t size = put_map(text, sizeof(text), 3000);
	struct perfmap *map, *want;
	uint32_t nr_refused = 0;

	shared->mode = HONEST;
	assert_int_equal(perfmap_parse(&want, text, size), 0);
	assert_int_equal(parse_map(&map, text, size), 0);
	assert_int_equal(perfmap_nr(map), perfmap_nr(want));
	assert_int_equal(map->nr_bad, want->nr_bad);
	assert_true(map->nr_bad > 0);
	walk_map(map, want);
	perfmap_free(map);
	perfmap_free(want);
	assert_int_equal(parse_map(&map, "", 0), -ENODATA);
	size = put_map(text, sizeof(text), 40);
	shared->mode = CHANGED;
	for (shared->seed = 0; shared->seed < 2 * NR_ROUNDS; shared->seed++) {
		int rc = parse_map(&map, text, size);

		assert_true(!rc || rc == -EBADMSG);
		nr_refused += rc != 0;
		if (rc)
			continue;
		walk_map(map, NULL);
		perfmap_free(map);
	}
	assert_in_range(nr_refused, NR_ROUNDS, 2 * NR_ROUNDS);
	shared->mode = DIES;
	assert_int_equal(parse_map(&map, text, size), -EPIPE);
}

static int set_up(void **state)
{
	static struct sandbox_reader reader;
	static const struct sandbox_reader *const readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_PERFMAP] = &reader,
	};

	reader = wrap(&perfmap_reader, serve_perfmap);
	return start_changed(readers);
}

int main(void)
{
	return run_unit_tests(set_up, stop_changed);
}
