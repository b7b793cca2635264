// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kallsyms: text made here for every rule, hostile text, and the list of the running kernel if it
 * is readable.
 * Live: some parts need root.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/kernel/kallsyms.c"

#include "tests/yardstick.h"
#include "symbols/sandbox/sandbox.h"
#include "tests/symbols/sandbox/changed.h"

static int parse_text(struct kallsyms **out, const void *text, size_t size, struct err *e)
{
	int fd = sandbox_wrap(text, size), rc;

	assert_true(fd >= 0);
	lseek(fd, 0, SEEK_SET);
	rc = kallsyms_read(out, fd, e);
	close(fd);
	return rc;
}

static struct kallsyms *parse(const char *text)
{
	struct kallsyms *k = NULL;
	struct err e = { "" };

	if (parse_text(&k, text, strlen(text), &e))
		fail_msg("%s", e.text);
	return k;
}

/* Assert the symbol that covers @addr; @name NULL: none. */
static void assert_at(const struct kallsyms *k, uint64_t addr, const char *name, const char *module)
{
	struct kallsyms_symbol s = { .name = NULL };
	bool found = kallsyms_find(k, addr, &s);

	if (!assert_found(found, name, s.name, s.name_size))
		return;
	if (!module) {
		assert_null(s.module);
		return;
	}
	assert_non_null(s.module);
	assert_true(s.module_size == strlen(module) && !memcmp(s.module, module, s.module_size));
}

TEST(test_kernel_and_modules)
{
	struct kallsyms *k = parse("ffffffff81000000 T _stext\n"
				   "ffffffff81000000 T startup_64\n"
				   "ffffffff81000100 t helper\n"
				   "ffffffff81000200 D a_table\n"
				   "ffffffff81000300 W weak_one\n"
				   "ffffffff81000400 T _etext\n"
				   "ffffffff81000500 t __do_sys_getppid\n"
				   "ffffffff81000500 T __ia32_sys_getppid\n"
				   "ffffffff81000500 T __x64_sys_getppid\n"
				   "ffffffffc0100000 t nft_eval\t[nf_tables]\n"
				   "ffffffffc0100080 t nft_init\t[nf_tables]\n"
				   "ffffffffc0200000 t other\t[other_mod]\n"
				   "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_egress\t[bpf]\n");

	assert_at(k, 0xffffffff81000000, "startup_64", NULL);
	assert_at(k, 0xffffffff810000ff, "startup_64", NULL);
	assert_at(k, 0xffffffff81000100, "helper", NULL);
	assert_at(k, 0xffffffff810001ff, "helper", NULL);
	assert_at(k, 0xffffffff81000250, NULL, NULL); /* data */
	assert_at(k, 0xffffffff81000300, "weak_one", NULL);
	assert_at(k, 0xffffffff81000500, "__x64_sys_getppid", NULL);
	assert_at(k, 0xffffffffc0100010, "nft_eval", "[nf_tables]");
	assert_at(k, 0xffffffffc0100fff, "nft_init", "[nf_tables]");
	assert_at(k, 0xffffffffc0102000, NULL, NULL); /* a module loaded later, maybe */
	assert_at(k, 0xffffffffc0200000, "other", "[other_mod]");
	assert_at(k, 0xffffffffc0300001, "bpf_prog_6deef7357e7b4530_egress", "[bpf]");
	assert_at(k, 0xffffffff80ffffff, NULL, NULL);
	assert_at(k, 0, NULL, NULL);
	assert_at(k, UINT64_MAX, NULL, NULL);
	kallsyms_free(k);
}

TEST(test_unsorted_and_odd_lines)
{
	struct kallsyms *k = parse("ffffffff81000200 T b\n"
				   "garbage\n"
				   "\n"
				   "ffffffff81000100 T a\n"
				   "ffffffff81000300\n"
				   "ffffffff81000300 T\n"
				   "ffffffff81000300 T \n"
				   "1ffffffff81000300 T seventeen_digits\n"
				   "ffffffff81000300 TT two_letters\n"
				   "ffffffff81000400 T c [not_closed\n"
				   "FFFFFFFF81000500 T upper_case_digits");

	assert_int_equal(kallsyms_nr(k), 4);
	assert_at(k, 0xffffffff81000180, "a", NULL);
	assert_at(k, 0xffffffff81000300, "b", NULL);
	assert_at(k, 0xffffffff81000400, "c [not_closed", NULL);
	assert_at(k, 0xffffffff81000500, "upper_case_digits", NULL);
	kallsyms_free(k);
}

TEST(test_hidden_and_empty)
{
	const char *hidden = "0000000000000000 T _text\n0000000000000000 t x\t[mod]\n";
	struct kallsyms *k = NULL;
	struct err e;

	assert_int_equal(parse_text(&k, hidden, strlen(hidden), &e), -EACCES);
	assert_string_equal(e.text, "kptr_restrict hides kernel addresses");
	assert_int_equal(parse_text(&k, "", 0, &e), -ENODATA);
	assert_int_equal(parse_text(&k, "nothing\n", 8, &e), -ENODATA);
	assert_int_equal(kernel_sandbox_list(&k, NULL, "/nonexistent/kallsyms", false, &e),
			 -ENOENT);
	assert_null(k);
}

/* Bytes of all kinds: nothing may be read outside, nothing loops. */
TEST(test_hostile_text)
{
	static const char seed_text[] = "ffffffff81000000 T start\nffffffffc0100000 t f\t[mod]\n";
	unsigned int seed = 3;

	for (int round = 0; round < 20000; round++) {
		size_t size = (size_t)rand_r(&seed) % sizeof(seed_text);
		char *text = malloc(size ? size : 1);
		struct kallsyms_symbol s;
		struct kallsyms *k;

		memcpy(text, seed_text, size);
		for (int i = 0; size && i < 3; i++)
			text[(size_t)rand_r(&seed) % size] = (char)rand_r(&seed);
		if (!parse_text(&k, text, size, NULL)) {
			kallsyms_find(k, 0xffffffff81000000, &s);
			kallsyms_find(k, (uint64_t)rand_r(&seed) << 33, &s);
			kallsyms_free(k);
		}
		free(text);
	}
}

/*
 * The same list with tabs for its first blanks. Lines of other forms are unchanged.
 */
static void make_unusual(char *text, size_t size)
{
	for (char *p = text, *end = text + size, *eol; p < end; p = eol + 1) {
		size_t digits = 0;

		eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end - 1;
		while (p + digits < eol && strchr("0123456789abcdef", p[digits]) && p[digits])
			digits++;
		if (digits == 16 && eol - p > 19 && p[16] == ' ' && p[18] == ' ')
			p[16] = p[18] = '\t';
	}
}

static void assert_equal_at(const struct kallsyms *a, const struct kallsyms *b, uint64_t addr)
{
	struct kallsyms_symbol x, y;
	bool found = kallsyms_find(a, addr, &x);

	assert_int_equal(kallsyms_find(b, addr, &y), found);
	if (!found)
		return;
	assert_int_equal(x.start, y.start);
	assert_int_equal(x.size, y.size);
	assert_int_equal(x.name_size, y.name_size);
	assert_memory_equal(x.name, y.name, x.name_size);
	assert_int_equal(x.module_size, y.module_size);
	assert_true(!x.module == !y.module);
	if (x.module)
		assert_memory_equal(x.module, y.module, x.module_size);
}

/* One line of each kind, at an address not far from the one before. */
static size_t print_line(char *to, uint64_t *addr, unsigned int *seed)
{
	static const char *const names[] = { "_text",	   "_stext", "__ia32_sys_a",
					     "__do_sys_a", "",	     "a]" };
	static const char *const tails[] = { "\t[mod]", "\t[other]", " [not_closed", "\xff",
					     "\t[bpf]" };
	unsigned int kind = (unsigned int)rand_r(seed) % 16;
	size_t name = (size_t)rand_r(seed) % 60 + 1, size;

	*addr += (uint64_t)(rand_r(seed) % 40) - (kind == 1 ? 200U : 0);
	*addr += kind == 2 ? 1ULL << 32 : 0;
	size = (size_t)sprintf(to, "%016llx %c ", (unsigned long long)*addr,
			       "TtWwDdbi"[rand_r(seed) % 8]);
	if (kind == 3)
		size += (size_t)sprintf(to + size, "%s",
					names[(size_t)rand_r(seed) % ARRAY_SIZE(names)]);
	else
		for (size_t i = 0; i < name; i++)
			to[size++] = (char)("_abcdefghi.0123$"[rand_r(seed) % 16]);
	if (kind == 4)
		size += (size_t)sprintf(to + size, "%s",
					tails[(size_t)rand_r(seed) % ARRAY_SIZE(tails)]);
	if (kind == 5)
		to[(size_t)rand_r(seed) % size] = (char)(rand_r(seed) % 255 + 1);
	to[size++] = '\n';
	return size;
}

/* Lists of many pieces; tabs for blanks change nothing. */
TEST(test_forms_of_lines)
{
	size_t nr = 6000, size = 0;
	char *text = malloc(nr * 128);
	uint64_t *addrs = calloc(nr, sizeof(*addrs)), addr = 0xffffff0081000000;
	struct kallsyms *a, *b;
	unsigned int seed = 11;

	for (size_t i = 0; i < nr; i++) {
		size += print_line(text + size, &addr, &seed);
		addrs[i] = addr;
	}
	size -= (size_t)rand_r(&seed) % 2; /* the last newline */
	assert_int_equal(parse_text(&a, text, size, NULL), 0);
	make_unusual(text, size);
	assert_int_equal(parse_text(&b, text, size, NULL), 0);
	assert_int_equal(kallsyms_nr(a), kallsyms_nr(b));
	assert_true(kallsyms_nr(a) > nr / 4);
	assert_int_equal(kallsyms_begin(a, false), kallsyms_begin(b, false));
	assert_int_equal(kallsyms_begin(a, true), kallsyms_begin(b, true));
	for (size_t i = 0; i < 40 * nr; i++)
		assert_equal_at(a, b, addrs[i % nr] - 20 + i / nr);
	kallsyms_free(a);
	kallsyms_free(b);
	free(addrs);
	free(text);
}

/* Each byte at each digit of an address: hex digits of both cases, nothing else. */
TEST(test_digits)
{
	for (int at = 0; at < 16; at++)
		for (int c = 1; c < 256; c++) {
			char text[64] = "89abcdef01234567 T name\n";
			struct kallsyms *k = NULL;
			bool digit = strchr("0123456789abcdefABCDEF", c);

			text[at] = (char)c;
			if (parse_text(&k, text, strlen(text), NULL))
				k = NULL;
			assert_int_equal(k && kallsyms_nr(k), digit);
			if (digit)
				assert_at(k, strtoull(text, NULL, 16), "name", NULL);
			kallsyms_free(k);
		}
}

/* A name longer than the limit is no name; many symbols at one address are quick. */
TEST(test_limits)
{
	size_t nr = 200000, size = 0;
	char *text = malloc(nr * 32 + KALLSYMS_NAME_MAX + 64);
	uint64_t start = yardstick_cpu_ns();
	struct kallsyms *k;

	size += (size_t)sprintf(text, "ffffffff81000000 T ");
	memset(text + size, 'a', KALLSYMS_NAME_MAX + 1);
	size += KALLSYMS_NAME_MAX + 1;
	text[size++] = '\n';
	for (size_t i = 0; i < nr; i++)
		size += (size_t)sprintf(text + size, "ffffffff81000010 t n%zu\n", i);
	assert_int_equal(parse_text(&k, text, size, NULL), 0);
	assert_int_equal(kallsyms_nr(k), 1);
	assert_at(k, 0xffffffff81000010, "n0", NULL);
	assert_at(k, 0xffffffff81000000, NULL, NULL);
	assert_true(yardstick_within(start, 1000));
	kallsyms_free(k);
	free(text);
}

TEST(test_this_kernel)
{
	struct kallsyms *k;
	char line[512], name[256], type;
	unsigned long long addr;
	unsigned int nr = 0;
	FILE *file;

	if (kernel_sandbox_list(&k, NULL, "/proc/kallsyms", false, NULL))
		skip_test("not permitted: /proc/kallsyms");
	assert_true(kallsyms_nr(k) > 1000);
	file = fopen("/proc/kallsyms", "r");
	while (file && fgets(line, sizeof(line), file)) {
		struct kallsyms_symbol s;

		if (sscanf(line, "%llx %c %255s", &addr, &type, name) != 3 ||
		    (type != 't' && type != 'T') || !addr || nr++ % 64)
			continue;
		assert_true(kallsyms_find(k, addr, &s));
		assert_true(s.start == addr);
	}
	fclose(file);
	kallsyms_free(k);
}

/* Find in the list at @path with each byte changed, or cut there. @fd: the kernel's list. */
static void damage(const char *path, int fd)
{
	uint8_t bytes[2048];
	int file = open(path, O_RDWR | O_CLOEXEC);
	ssize_t size = read(file, bytes, sizeof(bytes));
	struct kallsyms_symbol s;
	struct kallsyms *k;

	assert_in_range(size, 100, sizeof(bytes) - 1);
	for (ssize_t i = 0; i < 2 * size; i++) {
		uint8_t byte = (uint8_t)(bytes[i % size] ^ (1U << i % 8 | 0x80));

		if (i < size)
			assert_int_equal(pwrite(file, &byte, 1, i), 1);
		else
			assert_int_equal(ftruncate(file, i - size), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		if (!store_take(&k, fd)) {
			for (uint64_t at = 0; at < 0x500; at += 0x20)
				kallsyms_find(k, 0xffffffff99000000 + at, &s);
			kallsyms_free(k);
		}
		assert_int_equal(pwrite(file, bytes, (size_t)size, 0), size);
	}
	close(file);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

/*
 * A stored list: the same symbols as the kernel's, at its addresses now, though the kernel was
 * elsewhere when it was stored; none that others could have changed, or of another kernel.
 */
TEST(test_stored)
{
	char list[] = "/tmp/test_kallsyms.XXXXXX", parent[] = "/tmp/test_kallsyms.d.XXXXXX",
	     path[64];
	struct kallsyms *was = parse("0000000000000000 A fixed_percpu_data\n"
				     "ffffffff81000000 T _text\n"
				     "ffffffff81000000 T _stext\n"
				     "ffffffff81000040 T startup_64\n"
				     "ffffffff81000100 t helper\n"
				     "ffffffff81000200 D a_table\n"
				     "ffffffff81000400 T _etext\n"
				     "ffffffffc0100000 t nft_eval\t[nf_tables]\n");
	static const char now[] = "0000000000000000 A fixed_percpu_data\n"
				  "ffffffff99000000 T _text\n"
				  "ffffffff99000000 T _stext\n"
				  "ffffffff99000040 T startup_64\n";
	static const char other[] = "ffffffff99000000 T _text\nffffffff99000048 T startup_64\n";
	uint8_t id[20];
	struct kallsyms *k;
	int fd;

	if (geteuid() ||
	    recorded_kernel_build_id("/sys/kernel/notes", id, sizeof(id)) != sizeof(id))
		skip_test("needs root and the build-id of the kernel");
	fd = mkstemp(list);
	assert_true(fd >= 0 && mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/proftop/kernel", parent);
	store_parent = parent;
	assert_int_equal(write(fd, now, sizeof(now) - 1), sizeof(now) - 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(store_take(&k, fd), -ENOENT);
	store_put(was);
	assert_int_equal(store_take(&k, fd), 0);
	assert_at(k, 0xffffffff99000050, "startup_64", NULL);
	assert_at(k, 0xffffffff990001ff, "helper", NULL);
	assert_at(k, 0xffffffff99000250, NULL, NULL);
	assert_at(k, 0xffffffff81000050, NULL, NULL);
	assert_at(k, 0xffffffffc0100000, NULL, NULL);
	assert_int_equal(kallsyms_begin(k, true), 0xffffffff99000000);
	kallsyms_free(k);
	store_put(was); /* another process did the same */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(store_take(&k, fd), -ENOENT);
	assert_int_equal(chmod(path, 0644), 0);
	damage(path, fd);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, other, sizeof(other) - 1, 0), sizeof(other) - 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(store_take(&k, fd), -ENOENT);
	kallsyms_free(was);
	unlink(path);
	snprintf(path, sizeof(path), "%s/proftop", parent);
	rmdir(path);
	rmdir(parent);
	unlink(list);
	close(fd);
}

#define CORE_NR 4000

/* Write a kernel's list with its text at @base, more than is compared with a stored one. */
static size_t write_list(char *out, size_t size, uint64_t base)
{
	size_t at = (size_t)snprintf(out, size,
				     "0000000000001000 A fixed_percpu_data\n"
				     "%016" PRIx64 " T _text\n%016" PRIx64 " T _stext\n",
				     base, base);

	for (unsigned int i = 1; i < CORE_NR; i++)
		at += (size_t)snprintf(out + at, size - at, "%016" PRIx64 " t core_%u\n",
				       base + i * 64, i);
	return at;
}

/* Return whether this process has the page of @at. */
static bool is_mapped(const void *at)
{
	const size_t page = (uintptr_t)at / (size_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))), 8);
	close(fd);
	return entry >> 63;
}

/*
 * The whole list of the kernel has the symbols that are stored in their file, and others in memory:
 * modules, and the kernel's that were not stored.
 */
TEST(test_shared)
{
	static const char others[] = "ffffffff99100000 t another\n"
				     "ffffffffc0100000 t nft_eval\t[nf_tables]\n"
				     "ffffffffc0100080 t nft_init\t[nf_tables]\n"
				     "ffffffffc0000000 t bpf_prog_1\t[bpf]\n";
	char list[] = "/tmp/test_kallsyms.XXXXXX", parent[] = "/tmp/test_kallsyms.d.XXXXXX",
	     path[64];
	static char text[CORE_NR * 40];
	struct kallsyms *was, *k;
	uint8_t id[20];
	size_t size;
	uint32_t nr;
	int fd;

	if (geteuid() ||
	    recorded_kernel_build_id("/sys/kernel/notes", id, sizeof(id)) != sizeof(id))
		skip_test("needs root and the build-id of the kernel");
	fd = mkstemp(list);
	assert_true(fd >= 0 && mkdtemp(parent));
	store_parent = parent;
	write_list(text, sizeof(text), 0xffffffff81000000);
	was = parse(text);
	size = write_list(text, sizeof(text), 0xffffffff99000000);
	assert_true(size > STORE_HEAD_MAX);
	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(write(fd, others, sizeof(others) - 1), sizeof(others) - 1);
	for (int stored = 0; stored < 2; stored++) {
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(kallsyms_read(&k, fd, NULL), 0);
		nr = kallsyms_nr(k);
		if (stored)
			store_put(was);
		store_share(k, fd);
		assert_int_equal(k->core != NULL, stored);
		assert_int_equal(kallsyms_nr(k), nr);
		assert_at(k, 0xffffffff99000050, "core_1", NULL);
		assert_at(k, 0xffffffff99000000 + (CORE_NR - 1) * 64, "core_3999", NULL);
		assert_at(k, 0xffffffff99100010, "another", NULL);
		assert_at(k, 0xffffffffc0100010, "nft_eval", "[nf_tables]");
		assert_at(k, 0xffffffffc0100090, "nft_init", "[nf_tables]");
		assert_at(k, 0xffffffffc0000010, "bpf_prog_1", "[bpf]");
		assert_at(k, 0xffffffff81000050, NULL, NULL);
		assert_int_equal(kallsyms_begin(k, false), 0xffffffff99000000);
		assert_int_equal(k->nr, stored ? 5 : CORE_NR + 5);
		if (stored) {
			assert_true(is_mapped(k->core->stored));
			assert_true(kallsyms_rest(k) < sizeof(*k) + 512);
			assert_false(is_mapped(k->core->stored));
			assert_at(k, 0xffffffff99000050, "core_1", NULL);
		}
		kallsyms_free(k);
	}
	kallsyms_free(was);
	snprintf(path, sizeof(path), "%s/proftop/kernel", parent);
	unlink(path);
	snprintf(path, sizeof(path), "%s/proftop", parent);
	rmdir(path);
	rmdir(parent);
	unlink(list);
	close(fd);
}

/*
 * Copies in the sandbox.
 */

static int serve_kernel(struct sandbox_call *c)
{
	return serve_changed(&kernel_reader, c);
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
	int fd;

	write_copy(path, text, sizeof(text) - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(kallsyms_read(&want, fd, NULL), 0);
	close(fd);
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

static int set_up(void **state)
{
	static struct sandbox_reader reader;
	static const struct sandbox_reader *const readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_KERNEL] = &reader,
	};

	reader = wrap(&kernel_reader, serve_kernel);
	return start_changed(readers);
}

int main(void)
{
	return run_unit_tests(set_up, stop_changed);
}
