// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The readers in the sandbox: a worker returns the same as the reader itself; answers that were
 * changed at random are refused or harmless; what ends a worker costs one result only.
 * Live: waits for threads or processes and takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/jit/internal.h"
#include "symbols/kernel/internal.h"
#include "symbols/name/internal.h"
#include "symbols/image/internal.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/code/internal.h"
#include "tests/makers/elf.h"
#include "tests/makers/go.h"
#include "tests/symbols/imagewalk.h"
#include "tests/makers/jitdump.h"

#define NR_ROUNDS 300U
#define NR_NAMES  3000U
#define STEP	  (15ULL << 20)
#define NAP_NS	  60000000ULL

/* How the workers behave: shared with them. */
enum mode { HONEST, CHANGED, DIES, SLOW, GREEDY, STEPS, NAPS, DENIES, WRITES, REPEATS, LONG };
static struct shared {
	enum mode mode;
	uint32_t seed;
	uint32_t nr_calls;
} * shared;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Change the honest reply as a worker that was taken over may: bytes, its end, its size. */
static void change(struct sandbox_reply *r)
{
	uint32_t seed = shared->seed, nr = 1 + next_random(&seed) % 4;
	uint8_t more[64];

	for (uint32_t i = 0; i < nr && r->size; i++)
		r->bytes[next_random(&seed) % r->size] = (uint8_t)next_random(&seed);
	if (next_random(&seed) % 4 == 0)
		r->size = r->size ? next_random(&seed) % r->size : 0;
	if (next_random(&seed) % 4 == 0) {
		memset(more, (int)next_random(&seed), sizeof(more));
		sandbox_put(r, more, next_random(&seed) % sizeof(more));
	}
}

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

/* Miss a part of the object that is there, or beyond its end; or the next one of a sparse file. */
static void miss_more(struct sandbox_call *c)
{
	struct elf_sandbox_answer a = { .nr_missed = { 1, 0 } };
	struct elfpart part = { 0, shared->seed ? UINT64_MAX : 1 };

	if (shared->mode != GREEDY) {
		part.start = shared->nr_calls * STEP;
		part.end = part.start + (shared->mode == NAPS ? 1 : STEP);
	}
	c->reply.size = 0;
	sandbox_put(&c->reply, &a, sizeof(a));
	sandbox_put(&c->reply, &part, sizeof(part));
}

/* Miss one part twice, or more parts than a list has. */
static void miss_many(struct sandbox_call *c)
{
	struct elf_sandbox_answer a = { .nr_missed = { shared->mode == LONG ? ELFPARTS_MAX + 1 : 2,
						       0 } };

	c->reply.size = 0;
	sandbox_put(&c->reply, &a, sizeof(a));
	for (uint64_t i = 0; i < a.nr_missed[0]; i++) {
		uint64_t start = STEP + (shared->mode == LONG ? i * 4096 : 0);
		struct elfpart part = { start, start + 4096 };

		sandbox_put(&c->reply, &part, sizeof(part));
	}
}

static void nap(void)
{
	for (uint64_t end_ns = time_now_ns() + NAP_NS; time_now_ns() < end_ns;)
		;
}

static int serve(const struct sandbox_reader *reader, struct sandbox_call *c)
{
	int rc;

	shared->nr_calls++;
	if (shared->mode == WRITES)
		shared->seed = pwrite(c->fds[0], "", 1, 0) < 0 ? (uint32_t)errno : 0;
	/* The mangled name of kill::it() ends the worker of names. */
	if (shared->mode == DIES &&
	    (reader->kind != SANDBOX_NAMES || memmem(c->request, c->size, "_ZN4kill", 8)))
		__builtin_trap();
	rc = reader->serve(c);
	if (!rc && shared->mode == CHANGED)
		change(&c->reply);
	if (!rc && shared->mode == SLOW)
		answer_one_byte(c);
	if (shared->mode == NAPS)
		nap();
	if ((!rc && shared->mode == GREEDY) || shared->mode == STEPS || shared->mode == NAPS) {
		miss_more(c);
		return 0;
	}
	if (shared->mode == REPEATS || shared->mode == LONG) {
		miss_many(c);
		return 0;
	}
	return shared->mode == DENIES ? -(int)shared->seed : rc;
}

#define WRAPPED(name, of)                                                                          \
	static int serve_##name(struct sandbox_call *c)                                            \
	{                                                                                          \
		return serve(&of, c);                                                              \
	}                                                                                          \
	static struct sandbox_reader name

WRAPPED(names, demangler_reader);
static struct sandbox_reader images[IMAGE_READERS];

static int serve_image(struct sandbox_call *c)
{
	return serve(&image_readers[0], c);
}

WRAPPED(elf, elffacts_reader);
WRAPPED(perfmap, perfmap_reader);
WRAPPED(jitdump, jitdump_reader);
WRAPPED(code, disasm_reader);
WRAPPED(kernel, kernel_reader);

/* Another name for each number. */
static size_t put_name(char *buf, size_t size, uint32_t i)
{
	if (i % 7 == 3)
		return (size_t)snprintf(buf, size, "_RNvCskwGfYPst2Cb_3foo%u%s", 8 + i % 2,
					i % 2 ? "abcdefghi" : "abcdefgh");
	if (i % 7 == 5)
		return (size_t)snprintf(buf, size, "plain_%u", i);
	return (size_t)snprintf(buf, size, "_ZN3foo%zu%s%uEv",
				strlen("bar_") + (i < 10     ? 1
						  : i < 100  ? 2
						  : i < 1000 ? 3
							     : 4),
				"bar_", i);
}

static bool is_right(struct demangler *d, const char *name, size_t size)
{
	char want[TEXT_MAX + 64];
	const char *is = NULL;
	size_t nr = demangle(name, size, want, sizeof(want));

	return demangler_get(d, 0, name, size, &is) == nr && (!nr || !memcmp(is, want, nr));
}

TEST(test_names)
{
	struct demangler d = { .nr = 0 };
	uint32_t calls;
	char name[64];

	shared->mode = HONEST;
	for (uint32_t i = 0; i < NR_NAMES; i++)
		demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
	calls = shared->nr_calls;
	demangler_run(&d);
	assert_in_range(shared->nr_calls - calls, 1, 4); /* 64 KiB of names a call */
	for (uint32_t i = 0; i < NR_NAMES; i++)
		assert_true(is_right(&d, name, put_name(name, sizeof(name), i)));
	assert_in_range(shared->nr_calls - calls, 1, 4);
	/* Not asked before; of the longest kind; cut. */
	memset(name, 0, sizeof(name));
	assert_true(is_right(&d, "_ZN1a1bEv", 9));
	assert_true(is_right(&d, "_Z", 2));
	assert_true(is_right(&d, "", 0));
	demangler_fini(&d);
}

/* The memo is bounded, and names are right after it was forgotten. */
TEST(test_many_names)
{
	struct demangler d = { .nr = 0 };
	char name[4000];

	shared->mode = HONEST;
	for (uint32_t i = 0; i < 4000; i++) {
		size_t size = (size_t)snprintf(name, sizeof(name), "_ZN3foo3000%.*u%sEv", 2990, i,
					       "abcdefghij");

		assert_true(is_right(&d, name, size));
		assert_true(d.texts_size < 12U << 20);
	}
	demangler_fini(&d);
}

TEST(test_changed_names)
{
	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		struct demangler d = { .nr = 0 };
		char name[64];

		shared->mode = CHANGED;
		shared->seed = round;
		for (uint32_t i = 0; i < 20; i++)
			demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
		demangler_run(&d);
		for (uint32_t i = 0; i < 20; i++) {
			const char *is;
			size_t nr =
				demangler_get(&d, 0, name, put_name(name, sizeof(name), i), &is);

			assert_true(nr < TEXT_MAX + 64);
			assert_true(!nr || (is >= d.texts && is + nr <= d.texts + d.texts_size));
		}
		demangler_fini(&d);
	}
}

/* One name of many ends the worker: that one is raw, the others are not. */
TEST(test_deadly_name)
{
	static const char deadly[] = "_ZN4kill2itEv";
	struct demangler d = { .nr = 0 };
	const char *is;
	char name[64];

	shared->mode = DIES;
	for (uint32_t i = 0; i < 500; i++) {
		demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
		if (i == 123)
			demangler_want(&d, 0, deadly, sizeof(deadly) - 1);
	}
	demangler_run(&d);
	for (uint32_t i = 0; i < 500; i++)
		assert_true(is_right(&d, name, put_name(name, sizeof(name), i)));
	assert_int_equal(demangler_get(&d, 0, deadly, sizeof(deadly) - 1, &is), 0);
	/* Thousands of them do not keep the loader busy: at the limit names are raw. */
	for (uint32_t i = 0; i < NR_NAMES; i++)
		demangler_want(&d, 0, name,
			       (size_t)snprintf(name, sizeof(name), "_ZN4kill4i%03uEv", i % 1000));
	demangler_run(&d);
	assert_in_range(d.nr_lost, 1, 70);
	demangler_fini(&d);
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

TEST(test_perfmap)
{
	static char text[200000];
	size_t size = put_map(text, sizeof(text), 3000);
	struct perfmap *map, *want;
	uint32_t nr_refused = 0;

	shared->mode = HONEST;
	assert_int_equal(perfmap_parse(&want, text, size), 0);
	assert_int_equal(parse_map(&map, text, size), 0);
	assert_int_equal(perfmap_nr(map), perfmap_nr(want));
	assert_int_equal(perfmap_nr_bad(map), perfmap_nr_bad(want));
	assert_true(perfmap_nr_bad(map) > 0);
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

/* Instructions of @code without gaps; their texts are clean. */
static void check_listing(const struct listing *l, const struct disasm_code *c)
{
	uint64_t at = c->vaddr;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];

		assert_int_equal(insn->vaddr, at);
		assert_true(insn->size > 0);
		assert_true(insn->target == LISTING_NONE || insn->target < l->nr_insns);
		for (const char *t = listing_text(l, insn->text); *t; t++)
			assert_true((uint8_t)*t >= 0x20 && *t != 0x7f);
		at += insn->size;
	}
	assert_int_equal(at, c->vaddr + c->nr_bytes);
}

static struct listing *listing_of(const struct disasm_code *c)
{
	struct listing *l = listing_new(1);

	assert_int_equal(disasm(l, c, 1), 0);
	check_listing(l, c);
	return l;
}

/* A worker that dies leaves lines of bytes. */
TEST(test_code)
{
	/* push %rbx; jne +0; call 0x1106; bytes that are no instruction; ret */
	static const uint8_t bytes[] = "\x53\x75\xfd\xe8\xfe\0\0\0\x06\x06\xc3";
	const struct disasm_code c = { .bytes = bytes,
				       .nr_bytes = sizeof(bytes) - 1,
				       .vaddr = 0x1000,
				       .machine = EM_X86_64,
				       .wide = true };
	struct listing *l;

	shared->mode = HONEST;
	l = listing_of(&c);
#ifdef HAVE_CAPSTONE
	assert_int_equal(l->nr_insns, 6);
	assert_string_equal(listing_text(l, l->insns[0].text), "pushq   %rbx");
	assert_string_equal(listing_text(l, l->insns[1].text), "jne     +0x0");
	assert_int_equal(l->insns[1].target, 0);
	assert_string_equal(listing_text(l, l->insns[2].text), "callq   0x1106");
	assert_string_equal(listing_text(l, l->insns[3].text), ".byte   0x06");
#endif
	listing_put(l);
	shared->mode = CHANGED;
	for (shared->seed = 0; shared->seed < 2 * NR_ROUNDS; shared->seed++)
		listing_put(listing_of(&c));
	shared->mode = DIES;
	l = listing_of(&c);
	assert_int_equal(l->nr_insns, 2);
	assert_string_equal(listing_text(l, l->insns[1].text), ".byte   0x06 0x06 0xc3");
	listing_put(l);
}

/* A small program with a table of Go, as a file. */
static int make_program(uint64_t *size)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	uint8_t table[GO_SIZE];
	struct elfmake m;

	make_go(table, 0x1100);
	elfmake_init(&m, EM_X86_64, 0x1000, 0x1000);
	elfmake_code(&m, ".text", 0x1000, 0x1100, 0xf00, 0, NULL);
	elfmake_section(&m, ".gopclntab",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = sizeof(table) }, table);
	elfmake_finish(&m);
	*size = m.size;
	assert_int_equal(write(fd, m.bytes, m.size), m.size);
	elfmake_fini(&m);
	return fd;
}

/* Read @fd with answers that were changed: refused, or harmless. Return how many were taken. */
static uint32_t read_changed(int fd, uint64_t size)
{
	uint32_t nr = 0;

	shared->mode = CHANGED;
	for (shared->seed = 1; shared->seed < NR_ROUNDS; shared->seed++) {
		struct image *image;

		if (image_read_fd(&image, fd, size, NULL))
			continue;
		image_walk(image);
		image_free(image);
		nr++;
	}
	return nr;
}

TEST(test_image)
{
	static const char *const want[] = { "main.main", "main.leaf" };
	int fds[2] = { -1, open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	uint64_t sizes[2];
	struct image *image;
	struct stat st;

	assert_false(fstat(fds[1], &st));
	sizes[1] = (uint64_t)st.st_size;
	fds[0] = make_program(&sizes[0]);
	for (int i = 0; i < 2; i++) {
		shared->mode = HONEST;
		assert_int_equal(image_read_fd(&image, fds[i], sizes[i], NULL), 0);
		assert_string_equal(image->source, i ? ".symtab" : ".gopclntab");
		assert_true(image->nr_symbols == 2 || i);
		for (uint32_t k = 0; !i && k < 2; k++)
			assert_string_equal(image->names + image->symbols[k].name, want[k]);
		image_walk(image);
		image_free(image);
		print_message("%u of %u changed answers taken\n", read_changed(fds[i], sizes[i]),
			      NR_ROUNDS - 1);
		shared->mode = DIES;
		assert_int_equal(image_read_fd(&image, fds[i], sizes[i], NULL), -EPIPE);
	}
	/* One that always misses something gets no call after call, and no other memory. */
	shared->mode = GREEDY;
	for (shared->seed = 0; shared->seed < 2; shared->seed++)
		assert_int_equal(image_read_fd(&image, fds[1], sizes[1], NULL), -EBADMSG);
	/* A copy cannot be written to by the worker. */
	shared->mode = WRITES;
	shared->seed = 0;
	assert_int_equal(image_read(&image,
				    &(struct image_input){
					    .fd = fds[1], .size = sizes[1], .copied = true },
				    NULL),
			 0);
	assert_int_equal(shared->seed, EBADF);
	image_free(image);
	close(fds[0]);
	close(fds[1]);
}

/* Write a copy of a file of /proc. The caller removes it. */
/* Read a sparse file in the sandbox. @c: NULL, or with other limits; it can be used again. */
static int read_sparse(struct elf_sandbox *c, enum mode mode)
{
	const struct image_request r = { .serial = 1 };
	struct elf_sandbox *own = c ? NULL : elf_sandbox_new();
	struct sandbox_answer a;
	int fd = memfd_create("sparse", MFD_CLOEXEC), rc;

	c = c ? c : own;
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	shared->mode = mode;
	shared->nr_calls = 0;
	c->copied = true;
	assert_int_equal(elf_sandbox_open(c, 0, fd, 1 << 30), 0);
	rc = elf_sandbox_ask(c, &image_readers[0], &r, sizeof(r), &a);
	close(fd);
	elf_sandbox_close(c, 0);
	if (own)
		elf_sandbox_free(own);
	return rc;
}

/* A reading has one limit of calls, of time and of memory, whatever its worker says. */
TEST(test_limits)
{
	struct elf_sandbox *c = elf_sandbox_new();
	int rc;

	/* Small steps are counted. */
	c->memory_max = 1;
	assert_int_equal(read_sparse(c, STEPS), -ENOSPC);
	assert_in_range(shared->nr_calls, 17, 18);
	elf_sandbox_free(c);
	c = elf_sandbox_new();
	c->time_ns = 4 * NAP_NS;
	rc = read_sparse(c, NAPS);
	/* Over behind a call, or in one. */
	assert_true(rc == -EBADMSG || rc == -ETIME);
	/* On a busy machine a part of the time counts. */
	assert_in_range(shared->nr_calls, 1, 4 * SANDBOX_WAITS);
	/* The next file of a reading that is over gets no call. */
	read_sparse(c, NAPS);
	assert_int_equal(shared->nr_calls, 0);
	c->time_ns = UINT64_MAX / 2;
	c->took_ns = 0;
	assert_int_equal(read_sparse(c, NAPS), -EBADMSG);
	assert_in_range(shared->nr_calls, 10, 24);
	read_sparse(c, NAPS);
	assert_int_equal(shared->nr_calls, 0);
	elf_sandbox_free(c);
	/* Each part of a list is read once, and it is no longer than one of an honest worker. */
	for (enum mode mode = REPEATS; mode <= LONG; mode++) {
		assert_int_equal(read_sparse(NULL, mode), -EBADMSG);
		assert_int_equal(shared->nr_calls, 1);
	}
	/* Not the result of the helper, which would be tried again for ever. */
	shared->seed = EAGAIN;
	assert_int_equal(read_sparse(NULL, DENIES), -EBADMSG);
	/* A file that cannot be read has not ended its reader. */
	shared->seed = EIO;
	assert_int_equal(read_sparse(NULL, DENIES), -EIO);
	shared->seed = ERANGE;
	assert_int_equal(read_sparse(NULL, DENIES), -EIO);
	shared->mode = HONEST;
}

static void write_copy(char path[32], const void *bytes, size_t size)
{
	int fd;

	strcpy(path, "/tmp/proftop-kernel.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static void walk_list(const struct kallsyms *k, const struct kallsyms *want)
{
	for (uint64_t addr = 0xffffffff81000000; addr < 0xffffffff81000400; addr += 3) {
		struct kallsyms_symbol a, b;
		bool found = kallsyms_find(k, addr, &a);
		volatile char sum = 0;

		if (want) {
			assert_int_equal(found, kallsyms_find(want, addr, &b));
			assert_true(!found || (a.start == b.start && a.size == b.size &&
					       a.name_size == b.name_size &&
					       !memcmp(a.name, b.name, a.name_size) &&
					       a.module_size == b.module_size));
		}
		for (uint32_t i = 0; found && i < a.name_size; i++)
			sum = (char)(sum + a.name[i]);
		for (uint32_t i = 0; found && a.module && i < a.module_size; i++)
			sum = (char)(sum + a.module[i]);
	}
}

TEST(test_kernel_list)
{
	static const char text[] = "ffffffff81000000 T _text\nffffffff81000010 t one\n"
				   "ffffffff81000100 t two\t[mod]\nffffffff81000080 D data\n"
				   "ffffffff81000200 W three\t[mod]\nbad line\n";
	struct kallsyms *k, *want;
	uint32_t nr_refused = 0;
	char path[32];

	write_copy(path, text, sizeof(text) - 1);
	assert_int_equal(kallsyms_parse(&want, text, sizeof(text) - 1, NULL), 0);
	shared->mode = HONEST;
	assert_int_equal(kernel_sandbox_list(&k, NULL, path, false, NULL), 0);
	assert_int_equal(kallsyms_nr(k), kallsyms_nr(want));
	assert_int_equal(kallsyms_begin(k, false), 0xffffffff81000000);
	walk_list(k, want);
	kallsyms_free(k);
	kallsyms_free(want);
	shared->mode = CHANGED;
	for (shared->seed = 0; shared->seed < 2 * NR_ROUNDS; shared->seed++) {
		int rc = kernel_sandbox_list(&k, NULL, path, false, NULL);

		assert_true(!rc || rc == -EBADMSG);
		nr_refused += rc != 0;
		if (rc)
			continue;
		walk_list(k, NULL);
		kallsyms_free(k);
	}
	assert_in_range(nr_refused, NR_ROUNDS / 2, 2 * NR_ROUNDS);
	shared->mode = DIES;
	assert_int_equal(kernel_sandbox_list(&k, NULL, path, false, NULL), -EPIPE);
	unlink(path);
	/* The kernel's own list needs no worker; a folder or a FIFO is no list. */
	assert_int_not_equal(kernel_sandbox_list(&k, NULL, "/tmp", false, NULL), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(kernel_sandbox_list(&k, NULL, path, false, NULL), -EINVAL);
	unlink(path);
	if (!kernel_sandbox_list(&k, NULL, "/proc/kallsyms", false, NULL))
		kallsyms_free(k);
}

static atomic_bool fifo_opened;

static void *open_fifo(void *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	fifo_opened = true;
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* A FIFO in the place of a list is not opened: a writer that waits for a reader goes on waiting. */
static void check_fifo(const char *root, const char *path)
{
	struct kallsyms *k;
	pthread_t writer;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	fifo_opened = false;
	assert_int_equal(pthread_create(&writer, NULL, open_fifo, (void *)path), 0);
	usleep(50000);
	assert_int_equal(kernel_sandbox_list(&k, root, "/proc/kallsyms", false, NULL), -EINVAL);
	usleep(50000);
	assert_false(fifo_opened);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(pthread_join(writer, NULL), 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* Files below a folder: links do not leave it, and only a regular file is opened. */
TEST(test_kernel_below)
{
	static const char text[] = "ffffffff81000000 T _text\nffffffff81000010 t one\n";
	const uint64_t base = 0xffffffff81000000;
	char root[] = "/tmp/proftop-root.XXXXXX", proc[64], list[80], core[80], copy[32], buf[8];
	const char *const outside[] = { copy, "/proc/version", "/dev/null",
					"../../../../../dev/null" };
	struct kallsyms *k;

	assert_non_null(mkdtemp(root));
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(list, sizeof(list), "%s/kallsyms", proc);
	snprintf(core, sizeof(core), "%s/kcore", proc);
	assert_int_equal(mkdir(proc, 0700), 0);
	write_copy(copy, text, sizeof(text) - 1);
	shared->mode = HONEST;
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		assert_int_equal(symlink(outside[i], list), 0);
		assert_int_equal(symlink(outside[i], core), 0);
		assert_int_equal(kernel_sandbox_list(&k, root, "/proc/kallsyms", false, NULL),
				 -ENOENT);
		assert_int_equal(kernel_sandbox_memory(root, "/proc/kcore", base, buf, 8), -ENOENT);
		assert_int_equal(unlink(list), 0);
		assert_int_equal(unlink(core), 0);
	}
	check_fifo(root, list);
	if (!mknod(list, S_IFCHR | 0600, makedev(1, 3))) {
		assert_int_equal(kernel_sandbox_list(&k, root, "/proc/kallsyms", false, NULL),
				 -EINVAL);
		assert_int_equal(unlink(list), 0);
	}
	assert_int_equal(rename(copy, list), 0);
	assert_int_equal(kernel_sandbox_list(&k, root, "/proc/kallsyms", false, NULL), 0);
	assert_int_equal(kallsyms_nr(k), 2);
	kallsyms_free(k);
	assert_int_equal(unlink(list), 0);
	assert_int_equal(rmdir(proc), 0);
	assert_int_equal(rmdir(root), 0);
}

/* A copy of kcore with one segment, read in pieces of a call. */
TEST(test_kernel_memory)
{
	enum { SIZE = 150000 };
	const uint64_t base = 0xffffffff81000000;
	Elf64_Phdr p = { .p_type = PT_LOAD, .p_vaddr = base, .p_filesz = SIZE, .p_offset = 4096 };
	Elf64_Ehdr h = {
		.e_type = ET_CORE, .e_phnum = 1, .e_phoff = sizeof(h), .e_phentsize = sizeof(p)
	};
	uint8_t *file = calloc(1, 4096 + SIZE), *got = malloc(SIZE + 1);
	char path[32];

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), &p, sizeof(p));
	for (uint32_t i = 0; i < SIZE; i++)
		file[4096 + i] = (uint8_t)(i * 7 + i / 999);
	write_copy(path, file, 4096 + SIZE);
	shared->mode = HONEST;
	assert_int_equal(kernel_sandbox_memory(NULL, path, base, got, SIZE + 1), SIZE);
	assert_memory_equal(got, file + 4096, SIZE);
	assert_int_equal(kernel_sandbox_memory(NULL, path, base - 1, got, 8), -EFAULT);
	shared->mode = CHANGED;
	for (shared->seed = 0; shared->seed < 50; shared->seed++)
		assert_true(kernel_sandbox_memory(NULL, path, base, got, 100) <= 100);
	shared->mode = DIES;
	assert_int_equal(kernel_sandbox_memory(NULL, path, base, got, 8), -EPIPE);
	unlink(path);
	free(file);
	free(got);
}

/* The time of one call with a new worker is printed: the start takes a few milliseconds at most. */
TEST(test_start_time)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		struct demangler d = { .nr = 0 };
		uint64_t start_ns;
		const char *is;

		shared->mode = DIES;
		demangler_get(&d, 0, "_ZN4kill2itEv", 13, &is);
		shared->mode = HONEST;
		start_ns = time_now_ns();
		assert_int_equal(demangler_get(&d, 0, "_ZN1a1bEv", 9, &is), 4);
		best_ns = MIN(best_ns, time_now_ns() - start_ns);
		demangler_fini(&d);
	}
	print_message("a worker starts and answers in %llu us\n",
		      (unsigned long long)best_ns / 1000);
}

/* Facts of this program: as they are; changed ones are refused, or texts end and sizes fit. */
TEST(test_facts)
{
	struct elfvar vars[2] = { { .name = "shared" }, { .name = "no_such_symbol" } };
	struct elffacts_input in = { .vars = vars, .nr_vars = ARRAY_SIZE(vars) };
	struct elffacts facts, want;
	uint32_t nr_refused = 0;
	struct elffile f;
	struct stat st;

	in.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(in.fd, &st), 0);
	in.size = (uint64_t)st.st_size;
	assert_int_equal(elffile_open(&f, in.fd, NULL, in.size, NULL), 0);
	elffacts_collect(&want, &f);
	shared->mode = HONEST;
	assert_int_equal(elffacts_read(&facts, &in), 0);
	assert_true(vars[0].vaddr && vars[0].size == sizeof(shared) && !vars[1].vaddr);
	assert_true(facts.names.build_id_size >= 8);
	assert_memory_equal(&facts.names, &want.names, sizeof(want.names));
	assert_int_equal(facts.dwarf, want.dwarf);
	assert_true(facts.dwarf_size == want.dwarf_size && want.dwarf_size > 0);
	assert_true(facts.has_vaddr);
	shared->mode = CHANGED;
	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		shared->seed = round;
		if (elffacts_read(&facts, &in)) {
			nr_refused++;
			continue;
		}
		assert_true(facts.names.build_id_size <= 20 && facts.alt.id_size <= 20);
		assert_true(strlen(facts.names.link) < sizeof(facts.names.link));
		assert_true(strlen(facts.alt.link) < sizeof(facts.alt.link));
	}
	assert_in_range(nr_refused, NR_ROUNDS / 4, NR_ROUNDS - 10);
	shared->mode = DIES;
	assert_int_equal(elffacts_read(&facts, &in), -EPIPE);
	shared->mode = HONEST;
	elffile_close(&f);
	close(in.fd);
}

static struct sandbox_reader wrap(const struct sandbox_reader *of,
				  int (*fn)(struct sandbox_call *c))
{
	struct sandbox_reader r = *of;

	r.serve = fn;
	return r;
}

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_NAMES] = &names,     [SANDBOX_ELF] = &elf,
		[SANDBOX_PERFMAP] = &perfmap, [SANDBOX_JITDUMP] = &jitdump,
		[SANDBOX_DISASM] = &code,     [SANDBOX_KERNEL] = &kernel,
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	names = wrap(&demangler_reader, serve_names);
	for (int i = 0; i < IMAGE_READERS; i++) {
		images[i] = wrap(&image_readers[i], serve_image);
		readers[SANDBOX_IMAGE + i] = &images[i];
	}
	elf = wrap(&elffacts_reader, serve_elf);
	perfmap = wrap(&perfmap_reader, serve_perfmap);
	jitdump = wrap(&jitdump_reader, serve_jitdump);
	code = wrap(&disasm_reader, serve_code);
	kernel = wrap(&kernel_reader, serve_kernel);
	return shared == MAP_FAILED ? -1 : sandbox_start(readers);
}

static int tear_down(void **state)
{
	sandbox_stop();
	return 0;
}

int main(void)
{
	return run_unit_tests(set_up, tear_down);
}
