// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texts of /proc, as written by the kernel, and invalid ones.
 * Live: reads memory of processes.
 */
#include "symbols/process/internal.h"

#include "tests/prelude.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/image/image.h"

static uint64_t nr_bad;

/* Parse all lines of @text; the last good one is in @m. Returns how many were good. */
static int parse(const char *text, struct procfs_map *m)
{
	/* A separate block, so that a sanitizer sees every byte read too far. */
	size_t size = strlen(text);
	char *copy = malloc(size + 1);
	struct procfs_text t = { .at = copy, .end = copy + size };
	int nr = 0;

	memcpy(copy, text, size);
	copy = realloc(copy, size ? size : 1);
	t.at = copy;
	t.end = copy + size;
	while (procfs_next_map(&t, m)) {
		nr++;
		if (m->path_size) /* keep it readable after free() */
			m->path = text + (m->path - copy);
	}
	nr_bad = t.nr_bad;
	free(copy);
	return nr;
}

TEST(test_lines)
{
	struct procfs_map m;

	assert_int_equal(parse("7fda251bf000-7fda25315000 r-xp 00026000 fe:00 332835       "
			       "              /usr/lib/x86_64-linux-gnu/libc.so.6\n",
			       &m),
			 1);
	assert_int_equal(m.start, 0x7fda251bf000);
	assert_int_equal(m.end, 0x7fda25315000);
	assert_int_equal(m.offset, 0x26000);
	assert_int_equal(m.maj, 0xfe);
	assert_int_equal(m.min, 0);
	assert_int_equal(m.ino, 332835);
	assert_true(m.exec);
	assert_int_equal(m.path_size, 35);
	assert_memory_equal(m.path, "/usr/lib/x86_64-linux-gnu/libc.so.6", 35);

	assert_int_equal(parse("1000-2000 rw-p 00000000 00:00 0 \n", &m), 1);
	assert_int_equal(m.path_size, 0);
	assert_false(m.exec);
	assert_int_equal(parse("1000-2000 rw-p 00000000 00:00 0\n", &m), 1);
	assert_int_equal(m.path_size, 0);
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0"
			       "                  [vsyscall]\n",
			       &m),
			 1);
	assert_int_equal(m.end, 0xffffffffff601000);
	assert_memory_equal(m.path, "[vsyscall]", 10);
	/* Spaces belong to the path, escapes are unchanged. */
	assert_int_equal(parse("1-2 --xs 0 0:0 7 /a b (deleted)\\012x \n", &m), 1);
	assert_int_equal(m.path_size, 20);
	assert_memory_equal(m.path, "/a b (deleted)\\012x ", 20);
}

TEST(test_hostile)
{
	static const char *const bad[] = {
		"\n",
		" \n",
		"-\n",
		"1\n",
		"1-\n",
		"1-2\n",
		"1-2 \n",
		"1-2 r-xp\n",
		"1-2 r-xp \n",
		"1-2 r-xp 0\n",
		"1-2 r-xp 0 \n",
		"1-2 r-xp 0 0\n",
		"1-2 r-xp 0 0:\n",
		"1-2 r-xp 0 0:0\n",
		"1-2 r-xp 0 0:0 \n",
		"1-2 r-xp 0 0:0 x\n",
		"1-2 r-x 0 0:0 0\n",
		"2-1 r-xp 0 0:0 0\n",
		"1-1 r-xp 0 0:0 0\n",
		"1 -2 r-xp 0 0:0 0\n",
		"g-2 r-xp 0 0:0 0\n",
		"1-2 r-xp 0 100000000:0 0\n",
		"1-2 r-xp 0 0:100000000 0\n",
		"1-10000000000000000 r-xp 0 0:0 0\n",
		"1-2 r-xp 0 0:0 99999999999999999999\n",
		"1-2 r-xp 0 0:0 0/x\n",
		"1-2 r-xp 0 0:0 a\n",
	};
	struct procfs_map m;
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i], &m) || nr_bad != 1)
			fail_msg("accepted: %s", bad[i]);
		/* A bad line costs only itself. */
		snprintf(text, sizeof(text), "1-2 r-xp 0 0:0 0\n%s3-4 r-xp 0 0:0 0\n", bad[i]);
		assert_int_equal(parse(text, &m), 2);
		assert_int_equal(m.start, 3);
		/* Cut anywhere, it is no line. */
		snprintf(text, sizeof(text), "%s", bad[i]);
		text[strlen(text) - 1] = '\0';
		assert_int_equal(parse(text, &m), 0);
	}
	assert_int_equal(parse("", &m), 0);
	assert_int_equal(parse("1-2 r-xp 0 0:0 12", &m), 0); /* may go on with "345\n" */
}

/* Every cut of a real text gives the lines before the cut. */
TEST(test_own)
{
	struct procfs_map m;
	int nr, lines = 0;
	char *text;
	size_t size;

	assert_int_equal(untrusted_read_proc(getpid(), "maps", PROCFS_MAPS_SIZE_MAX, &text, &size),
			 0);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	nr = parse(text, &m);
	assert_int_equal(nr, lines);
	assert_int_equal(nr_bad, 0);
	text[MIN(size, 2000)] = '\0';
	for (size_t cut = strlen(text); cut--;) {
		text[cut] = '\0';
		nr = 0;
		for (size_t i = 0; i < cut; i++)
			nr += text[i] == '\n';
		assert_int_equal(parse(text, &m), nr);
	}
	free(text);
}

TEST(test_unescape)
{
	char buf[32];

	assert_int_equal(procfs_unescape(buf, sizeof(buf), "/a\\012b", 7), 4);
	assert_memory_equal(buf, "/a\nb", 4);
	assert_int_equal(procfs_unescape(buf, sizeof(buf), "\\01", 3), 3);
	assert_int_equal(procfs_unescape(buf, sizeof(buf), "\\089", 4), 4);
	assert_int_equal(procfs_unescape(buf, sizeof(buf), "\\777", 4), 4);
	assert_int_equal(procfs_unescape(buf, sizeof(buf), "\\134x", 5), 2);
	assert_memory_equal(buf, "\\x", 2);
	assert_int_equal(procfs_unescape(buf, 3, "abcdef", 6), 3);
	assert_int_equal(procfs_unescape(buf, 0, "abc", 3), 0);
}

TEST(test_kind)
{
	const uint64_t start = 0x7ffff7fc1000, low = 0xf7fc1000;
	static const struct {
		const char *name;
		enum object_kind kind;
	} names[] = {
		{ "/usr/bin/x", OBJECT_FILE },
		{ "/a (deleted)", OBJECT_FILE },
		{ "(unreachable)/x", OBJECT_FILE },
		{ "/dev/shm/x", OBJECT_FILE },
		{ "/memfdx", OBJECT_FILE },
		{ "", OBJECT_ANON },
		{ "[vdso]", OBJECT_VDSO },
		{ "[vdso]x", OBJECT_ANON },
		{ "[vsyscall]", OBJECT_UNKNOWN },
		{ "[heap]", OBJECT_ANON },
		{ "[stack]", OBJECT_ANON },
		{ "[anon:dalvik]", OBJECT_ANON },
		{ "[uprobes]", OBJECT_UNKNOWN },
		{ "//anon", OBJECT_ANON },
		{ "[uprobes-trampoline]", OBJECT_UNKNOWN },
		{ "anon_inode:[bpf]", OBJECT_ANON },
		{ "/memfd:jit (deleted)", OBJECT_ANON },
		{ "/dev/zero", OBJECT_ANON },
		{ "/SYSV00000000 (deleted)", OBJECT_ANON },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (procfs_kind(names[i].name, strlen(names[i].name), start, false) !=
		    names[i].kind)
			fail_msg("%s", names[i].name);
	/* A program in memory, against a JIT's. */
	assert_int_equal(procfs_kind("/memfd:program (deleted)", 24, start, true), OBJECT_FILE);
	assert_int_equal(procfs_kind("/dev/zero", 9, start, true), OBJECT_ANON);
	/* Of 32 bits: not the code of ours. */
	assert_int_equal(procfs_kind("[vdso]", 6, low, false), OBJECT_FILE);
	assert_int_equal(procfs_kind("/a", 2, low, false), OBJECT_FILE);
}

TEST(test_status)
{
	static const char text[] = "Name:\tUid:\t7\nUmask:\t0022\nState:\tS "
				   "(sleeping)\nUid:\t1000\t1001\t1000\t1000\n"
				   "Kthread:\t1\nBig:\t99999999999999999999\nLast:\t5";
	uint64_t v = 1;

	assert_true(procfs_status_number(text, sizeof(text) - 1, "Uid", &v));
	assert_int_equal(v, 1000);
	assert_true(procfs_status_number(text, sizeof(text) - 1, "Kthread", &v));
	assert_int_equal(v, 1);
	assert_false(procfs_status_number(text, sizeof(text) - 1, "Big", &v));
	assert_false(procfs_status_number(text, sizeof(text) - 1, "Last", &v)); /* cut off */
	assert_false(procfs_status_number(text, sizeof(text) - 1, "Ui", &v));
	assert_false(procfs_status_number("Uid:\t", 5, "Uid", &v));
	assert_false(procfs_status_number("Uid:", 4, "Uid", &v));
	assert_false(procfs_status_number("", 0, "Uid", &v));
	assert_int_equal(procfs_status_state(text, sizeof(text) - 1), 'S');
	assert_int_equal(procfs_status_state("State:\tR", 8), 'R');
	assert_int_equal(procfs_status_state("State:\t", 7), 0);
	assert_int_equal(procfs_status_state("Name:\tx\nUid:\t1\n", 15), 0);
}

TEST(status_inner)
{
	static const char nested[] = "Name:\tx\nNSpid:\t4711\t120\t5\nThreads:\t1\n";
	static const char cut[] = "NSpid:\t4711\t12";
	uint64_t pid = 1;

	assert_int_equal(procfs_status_inner(nested, sizeof(nested) - 1, &pid), 3);
	assert_int_equal(pid, 5);
	assert_int_equal(procfs_status_inner("NSpid:\t7\n", 9, &pid), 1);
	assert_int_equal(pid, 7);
	assert_int_equal(procfs_status_inner("Name:\tNSpid:\t9\n", 15, &pid), 0);
	assert_int_equal(procfs_status_inner(cut, sizeof(cut) - 1, &pid), 0);
	assert_int_equal(procfs_status_inner("", 0, &pid), 0);
	assert_int_equal(pid, 7);
}

TEST(test_stat)
{
	static const char plain[] = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0";
	static const char lie[] = "9 (a) S 0 0 0 0 -1 2097152 0\n) R 1 9 9 0 -1 4194304 5 0";
	uint64_t flags;

	assert_true(procfs_stat_flags(plain, sizeof(plain) - 1, &flags));
	assert_int_equal(flags, 2129984);
	assert_true(flags & PROCFS_PF_KTHREAD);
	assert_true(procfs_stat_flags(lie, sizeof(lie) - 1, &flags));
	assert_int_equal(flags, 4194304);
	for (size_t cut = 0; cut < 35; cut++)
		assert_false(procfs_stat_flags(plain, cut, &flags) && flags != 2129984);
	assert_false(procfs_stat_flags("9 (x", 4, &flags));
	assert_false(procfs_stat_flags("", 0, &flags));
}

#define TEXT_SIZE (1024U << 10)
#define COPY	  (128U << 10)

/* A copy of text in anonymous memory has the names of the text; other memory has not. */
TEST(test_copies)
{
	const struct object_identity identity = { .kind = OBJECT_FILE, .maj = 8, .ino = 77 };
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t *text =
		mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *copy =
		mmap(NULL, COPY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *other =
		mmap(NULL, COPY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct objects *objects;
	struct mapping maps[4];
	uint32_t random = 1;

	assert_int_equal(objects_new(&objects), 0);
	for (uint32_t i = 0; i < TEXT_SIZE; i++)
		text[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	memcpy(copy, text + 0x43000, COPY);
	/* It begins alike. */
	memcpy(other, text + 0x43000, COPY);
	other[COPY / 2] ^= 1;
	maps[0] = (struct mapping){ (uintptr_t)copy, (uintptr_t)copy + COPY, .exec = true };
	maps[1] = (struct mapping){ (uintptr_t)text, (uintptr_t)text + TEXT_SIZE, 0x5000,
				    .exec = true };
	maps[1].object = objects_intern(objects, &identity, "/x/node", 7, getpid(), 0, TEXT_SIZE);
	maps[2] = (struct mapping){ (uintptr_t)other, (uintptr_t)other + COPY, .exec = true };
	maps[3] = maps[0];
	maps[3].writable = true; /* code that is made there */
	procfs_find_copies(objects, dir, getpid(), maps, 4, (struct procfs_text){ .at = NULL });
	assert_ptr_equal(maps[0].object, maps[1].object);
	assert_int_equal(maps[0].offset, 0x5000 + 0x43000);
	assert_null(maps[2].object);
	assert_null(maps[3].object);
	objects_free(objects);
	munmap(text, TEXT_SIZE);
	munmap(copy, COPY);
	munmap(other, COPY);
	close(dir);
}

/*
 * Text that a program moved, by the program headers: lines of lld, with the text a page earlier
 * in the file than in memory; a file over the text; and all of the first segment, with the headers.
 */
TEST(test_find_moved)
{
	static const struct {
		const char *lines[4]; /* of a page each, from the image on */
		bool first_runs;      /* the first segment is code */
		uint64_t offset;      /* that it has in the file; 1: it is not of the file */
	} cases[] = {
		{ { "r--p 0 01:00 7 /x", "r-xp 0 00:00 0 ", "r--p 1000 01:00 7 /x" }, .offset = 0 },
		{ { "r--p 0 01:00 7 /x", "r-xp 0 01:00 8 /memfd:t" }, .offset = 0 },
		{ { "r--p 0 01:00 7 /x", "r--p 1000 01:00 7 /x", "r-xp 0 00:00 0 " }, .offset = 1 },
		{ { "r-xp 0 00:00 0 ", "r-xp 0 01:00 7 /x" }, .first_runs = true, .offset = 1 },
		{ { "r-xp 0 00:00 0 ", "r--p 1000 01:00 7 /x" }, .first_runs = true, .offset = 0 },
		{ { "r-xp 0 01:00 8 /memfd:t", "r--p 1000 01:00 7 /x" },
		  .first_runs = true,
		  .offset = 0 },
		{ { "r-xp 0 00:00 0 ", "r--p 800 01:00 7 /x" }, .first_runs = true, .offset = 1 },
		{ { "r-xp 0 00:00 0 ", "", "r--p 1000 01:00 7 /x" },
		  .first_runs = true,
		  .offset = 1 },
	};
	int dir = open("/proc/self", O_PATH | O_DIRECTORY);
	uint8_t *image =
		mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	Elf64_Ehdr h = { .e_ident = ELFMAG "\2", .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3 };
	struct objects *objects;

	assert_int_equal(objects_new(&objects), 0);
	h.e_phoff = sizeof(h);
	memcpy(image, &h, sizeof(h));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const Elf64_Phdr p[] = {
			{ PT_LOAD, cases[i].first_runs ? PF_X : PF_R, 0, 0, 0, 0x900, 0x900, 4096 },
			{ PT_LOAD, cases[i].first_runs ? PF_R : PF_X,
			  cases[i].first_runs ? 0x1900 : 0x900, 0x1900, 0x1900, 0x600, 0x600,
			  4096 },
			{ PT_LOAD, PF_R, 0x1100, 0x3100, 0x3100, 0x100, 0x100, 4096 },
		};
		struct mapping m = { .exec = true };
		char text[512];
		int size = 0;

		memcpy(image + sizeof(h), p, sizeof(p));
		for (uintptr_t at = (uintptr_t)image, k = 0; k < 4 && cases[i].lines[k];
		     k++, at += 4096) {
			if (strstr(cases[i].lines[k], "r-xp") && !m.end)
				m = (struct mapping){ at, at + 4096, 1, .exec = true };
			if (*cases[i].lines[k])
				size += snprintf(text + size, sizeof(text) - (size_t)size,
						 "%lx-%lx %s\n", at, at + 4096, cases[i].lines[k]);
		}
		procfs_find_copies(objects, dir, getpid(), &m, 1,
				   (struct procfs_text){ .at = text, .end = text + size });
		assert_int_equal(m.offset, cases[i].offset);
		assert_true(!m.object == (cases[i].offset == 1));
		if (m.object)
			assert_int_equal(m.object->identity.ino, 7);
	}
	objects_free(objects);
	munmap(image, 4 * 4096);
	close(dir);
}

/* Code of the test, read as that of a process: x86-64, then AArch64. */
static uint8_t code[4096] __attribute__((aligned(4096)));

static enum call_verdict ask(uint16_t machine, size_t address, size_t function, pid_t pid)
{
	static uint64_t key;
	const struct call_question q = {
		.key = hash_u64(++key) | 8,
		.address = (uintptr_t)code + address,
		.function = function ? (uintptr_t)code + function : 0,
		.pid = pid,
		.machine = machine,
	};

	assert_int_equal(call_verdict(q.key), CALL_UNKNOWN);
	assert_true(call_ask(&q));
	assert_false(call_ask(&q)); /* it waits */
	assert_int_equal(calls_serve(), 1);
	assert_int_equal(calls_serve(), 0);
	return call_verdict(q.key);
}

static void put_call(size_t at, uint8_t op, size_t to)
{
	int32_t rel = (int32_t)(to - (at + 5));

	code[at] = op;
	memcpy(code + at + 1, &rel, 4);
}

static uint64_t ask_thunk(size_t at)
{
	static uint64_t key = 1ULL << 50;
	const struct call_question q = {
		.key = hash_u64(++key) | 8,
		.address = (uintptr_t)code + at,
		.pid = getpid(),
		.machine = EM_X86_64,
		.kind = CALL_THUNK,
	};
	uint64_t words = 0;

	assert_true(call_ask(&q));
	assert_int_equal(calls_serve(), 1);
	return call_site(q.key, &words) == CALL_REACHES ? words : 0;
}

/* Thunks of gcc, clang and the kernel, and code that only has their parts. */
TEST(test_thunks)
{
	static const struct {
		uint8_t bytes[8];
		unsigned int ret, words[2];
	} ends[] = {
		{ { 0x48, 0x8d, 0x64, 0x24, 8, 0xc3 }, 5, { 1, 0 } }, /* lea 8(%rsp),%rsp */
		{ { 0x48, 0x83, 0xc4, 8, 0xc3 }, 4, { 1, 0 } },	      /* add $8,%rsp */
		{ { 0x48, 0x89, 0x1c, 0x24, 0xc3 }, 4, { 1, 1 } },    /* mov %rbx,(%rsp) */
		{ { 0x4c, 0x89, 0x1c, 0x24, 0xc3 }, 4, { 1, 1 } },    /* mov %r11,(%rsp) */
		{ { 0x48, 0x89, 0x5c, 0x24, 0xc3 }, 0, { 0 } },	      /* mov %rbx,-61(%rsp) */
		{ { 0x48, 0x83, 0xc4, 16, 0xc3 }, 0, { 0 } },
		{ { 0x48, 0x83, 0xc4, 8, 0x90, 0xc3 }, 0, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		for (size_t gap = 7; gap <= 28; gap += 7) {
			size_t end = 0x105 + gap, some = ends[i].ret && gap < 28;

			memset(code, 0x90, sizeof(code));
			put_call(0x100, 0xe8, end);
			memcpy(code + end, ends[i].bytes, sizeof(ends[i].bytes));
			assert_int_equal(ask_thunk(0x100), some);
			assert_int_equal(ask_thunk(end),
					 some ? CALL_THUNK_WORDS + ends[i].words[0] : 0);
			assert_int_equal(ask_thunk(end + ends[i].ret),
					 some ? CALL_THUNK_WORDS + ends[i].words[1] : 0);
			assert_int_equal(ask_thunk(0x101), 0);
			assert_int_equal(ask_thunk(end + 6), 0);
			/* A call of something else. */
			put_call(0x100, 0xe8, end + 1);
			assert_int_equal(ask_thunk(end), 0);
		}
	}
}

TEST(test_calls)
{
	static const struct {
		uint8_t bytes[8], size;
		bool is_call;
	} some[] = {
		{ { 0xff, 0xd0 }, 2, true },		       /* call *%rax */
		{ { 0x41, 0xff, 0xd3 }, 3, true },	       /* call *%r11 */
		{ { 0xff, 0x50, 0x18 }, 3, true },	       /* call *0x18(%rax) */
		{ { 0xff, 0x14, 0xc8 }, 3, true },	       /* call *(%rax,%rcx,8) */
		{ { 0xff, 0x54, 0x24, 8 }, 4, true },	       /* call *8(%rsp) */
		{ { 0xff, 0x90, 0, 1, 0, 0 }, 6, true },       /* call *0x100(%rax) */
		{ { 0xff, 0x94, 0x24, 0, 1, 0, 0 }, 7, true }, /* call *0x100(%rsp) */
		{ { 0xff, 0x14, 0xc5, 0, 0, 4, 0 }, 7, true }, /* call *table(,%rax,8) */
		{ { 0xff, 0xe0 }, 2, false },		       /* jmp *%rax */
		{ { 0x48, 0x89, 0xe5 }, 3, false },	       /* mov %rsp,%rbp */
		{ { 0xe9, 0, 0, 0, 0 }, 5, false },	       /* jmp */
		{ { 0xff, 0x90, 0, 1 }, 4, false },	       /* the begin of one */
	};
	uint64_t pointer = (uintptr_t)code + 0x800;
	int32_t rel = 0xf00 - 0x306;

	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		memset(code, 0x90, sizeof(code));
		memcpy(code + 0x100 - some[i].size, some[i].bytes, some[i].size);
		assert_int_equal(ask(EM_X86_64, 0x100, 0x800, getpid()),
				 some[i].is_call ? CALL_SOME : CALL_NONE);
	}
	memset(code, 0x90, sizeof(code));
	put_call(0x100, 0xe8, 0x800);
	assert_int_equal(ask(EM_X86_64, 0x105, 0x800, getpid()), CALL_REACHES);
	assert_int_equal(ask(EM_X86_64, 0x105, 0x801, getpid()), CALL_SOME);
	assert_int_equal(ask(EM_X86_64, 0x105, 0, getpid()), CALL_SOME);
	assert_int_equal(ask(EM_X86_64, 0x104, 0x800, getpid()), CALL_NONE);
	/* By a thunk, a jump to a PLT stub: endbr64, jmp *slot. */
	put_call(0x100, 0xe8, 0x200);
	put_call(0x200, 0xe9, 0x300 - 4);
	memcpy(code + 0x2fc, (uint8_t[]){ 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6);
	rel = 0xf00 - 0x306;
	memcpy(code + 0x302, &rel, 4);
	memcpy(code + 0xf00, &pointer, 8);
	assert_int_equal(ask(EM_X86_64, 0x105, 0x800, getpid()), CALL_REACHES);
	assert_int_equal(ask(EM_X86_64, 0x105, 0x900, getpid()), CALL_SOME);
	/* call *slot(%rip) */
	memcpy(code + 0x400, (uint8_t[]){ 0xff, 0x15 }, 2);
	rel = 0xf00 - 0x406;
	memcpy(code + 0x402, &rel, 4);
	assert_int_equal(ask(EM_X86_64, 0x406, 0x800, getpid()), CALL_REACHES);
	/* A circle of jumps ends. */
	put_call(0x200, 0xe9, 0x200);
	assert_int_equal(ask(EM_X86_64, 0x105, 0x800, getpid()), CALL_SOME);
}

TEST(test_calls_arm64)
{
	const uint32_t bl = 0x94000000 | 0x200 / 4, b = 0x17ffffc0, blr = 0xd63f0020,
		       blraaz = 0xd63f081f, ret = 0xd65f03c0;
	/* adrp x16, the page after; ldr x17, [x16, #8]; add; br x17 */
	const uint32_t stub[] = { 0xd503245f, 0xb0000010, 0xf9400611, 0x91002210 };

	memset(code, 0, sizeof(code));
	memcpy(code + 0x100, &bl, 4);
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x300, getpid()), CALL_REACHES);
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x304, getpid()), CALL_SOME);
	memcpy(code + 0x300, &b, 4); /* to 0x200 */
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x200, getpid()), CALL_REACHES);
	memcpy(code + 0x300, stub, sizeof(stub));
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x200, getpid()), CALL_SOME);
	memcpy(code + 0x100, &blr, 4);
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x300, getpid()), CALL_SOME);
	memcpy(code + 0x100, &blraaz, 4);
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x300, getpid()), CALL_SOME);
	memcpy(code + 0x100, &ret, 4);
	assert_int_equal(ask(EM_AARCH64, 0x104, 0x300, getpid()), CALL_NONE);
}

/* Memory that is not there, and a process that has ended, which another one may answer for. */
TEST(test_calls_unread)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(ask(EM_X86_64, 0x105, 0, pid), CALL_UNKNOWN);
	assert_int_equal(ask(EM_X86_64, (size_t)4096 - (uintptr_t)code, 0, getpid()),
			 CALL_UNREADABLE);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
