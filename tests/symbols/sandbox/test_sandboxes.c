// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The readers in the sandbox: a worker returns the same as the reader itself; answers that were
 * changed at random are refused or harmless; what ends a worker costs one result only.
 * Live: waits for threads or processes and takes about a second of CPU time, or more.
 */
#include "symbols/code/code.c"

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
#include "symbols/image/internal.h"
#include "symbols/elf/elf.h"
#include "symbols/code/internal.h"
#include "tests/makers/elf.h"
#include "tests/makers/go.h"
#include "tests/symbols/imagewalk.h"
#include "tests/symbols/sandbox/changed.h"

#define STEP   (15ULL << 20)
#define NAP_NS 60000000ULL

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

static int serve_mode(const struct sandbox_reader *reader, struct sandbox_call *c)
{
	int rc;

	if (shared->mode == WRITES)
		shared->seed = pwrite(c->fds[0], "", 1, 0) < 0 ? (uint32_t)errno : 0;
	rc = serve_changed(reader, c);
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
		return serve_mode(&of, c);                                                         \
	}                                                                                          \
	static struct sandbox_reader name

static struct sandbox_reader images[IMAGE_READERS];

static int serve_image(struct sandbox_call *c)
{
	return serve_mode(&image_readers[0], c);
}

WRAPPED(elf, elffacts_reader);
WRAPPED(code, disasm_reader);

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
	/* The first reading took up to all of them. */
	c->nr_calls = 0;
	assert_int_equal(read_sparse(c, NAPS), -EBADMSG);
	assert_int_equal(shared->nr_calls, 24);
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

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_ELF] = &elf,
		[SANDBOX_DISASM] = &code,
	};

	for (int i = 0; i < IMAGE_READERS; i++) {
		images[i] = wrap(&image_readers[i], serve_image);
		readers[SANDBOX_IMAGE + i] = &images[i];
	}
	elf = wrap(&elffacts_reader, serve_elf);
	code = wrap(&disasm_reader, serve_code);
	return start_changed(readers);
}

int main(void)
{
	return run_unit_tests(set_up, stop_changed);
}
