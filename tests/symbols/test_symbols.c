// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbols: places of this very process named by the loader's work, on this
 * thread and in the background; objects that cannot be had.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "tests/symbols/with_symbols.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"

static uint32_t place_of(struct fixture *f, uint64_t addr)
{
	uint64_t offset = 0;
	struct object *object = object_at(f, addr, &offset);

	assert_non_null(object);
	return places_intern(f->places, object->id, offset);
}

/* The name given to @place; NULL while it has none. */
static const struct symbol *symbol_of(struct fixture *f, uint32_t place)
{
	const struct place *p = places_at(f->places, place);

	assert_non_null(p);
	return symbols_at(f->symbols, atomic_load_explicit(&p->symbol, memory_order_acquire));
}

__attribute__((noinline)) static int named_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2;
}

TEST(test_own_function, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t addr = (uint64_t)(uintptr_t)&named_function;
	uint32_t start = place_of(f, addr), inside = place_of(f, addr + 1);
	struct symbols_stats stats;
	const struct symbol *s;

	assert_int_not_equal(start, inside);
	assert_null(symbol_of(f, start));
	symbols_run(f->symbols);
	s = symbol_of(f, start);
	assert_non_null(s);
	assert_string_equal(s->name.str, "named_function");
	assert_string_equal(s->module.str, program_invocation_short_name);
	assert_int_equal(s->kind, 'u');
	assert_ptr_equal(symbol_of(f, inside), s);   /* two places, one function */
	assert_int_equal(symbols_nr(f->symbols), 2); /* no function has the id 0 */
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_images, 1);
	assert_int_equal(stats.nr_named, 2);
	assert_int_equal(stats.nr_unnamed, 0);
	assert_int_equal(stats.nr_waiting, 0);
	assert_int_equal(stats.nr_seen, places_nr(f->places));
	assert_true(stats.memory > 1000);
	assert_int_equal(named_function(2), 4);
	assert_null(symbols_at(f->symbols, SYMBOL_NONE));
}

#define WAITING 10000U

/* More places than are tried in a pass wait for one image: all get their names, in several. */
TEST(test_many_waiting, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t first = place_of(f, (uint64_t)(uintptr_t)&named_function);
	const struct place *p = places_at(f->places, first);
	uint64_t offset = p->offset;
	struct symbols_stats stats;

	/* Bytes before and after it, each one once. */
	for (uint32_t i = 1; i < WAITING; i++)
		places_intern(f->places, p->object, offset + i / 2 - i % 2 * i);
	symbols_run(f->symbols);
	for (uint32_t id = first; id < first + WAITING; id++)
		assert_non_null(symbol_of(f, id));
	assert_string_equal(symbol_of(f, first)->name.str, "named_function");
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_named + stats.nr_unnamed, WAITING);
	assert_int_equal(stats.nr_waiting, 0);
	assert_true(stats.nr_named > WAITING / 2);
}

/* Objects by turns, while memory holds one of them only: they are evicted and loaded again, names
 * are right. */
TEST(test_names_while_images_leave, setup, teardown)
{
	struct fixture *f = *state;
	const struct {
		uint64_t addr;
		const char *name;
	} of[] = {
		{ (uint64_t)(uintptr_t)&test_names_while_images_leave, "test_names_while_images_"
								       "leave" },
		{ (uint64_t)(uintptr_t)&strfry, "strfry" },
		{ (uint64_t)(uintptr_t)&_cmocka_run_group_tests, "_cmocka_run_group_tests" },
	};
	size_t largest = 0;
	uint32_t clock = object_clock(time_now_ns());
	struct symbols_stats stats;
	uint64_t offset;

	for (uint32_t round = 0; round < 30; round++) {
		uint32_t i = round % ARRAY_SIZE(of), place;
		struct object *object = object_at(f, of[i].addr, &offset);
		const struct symbol *s;

		if (round == ARRAY_SIZE(of))
			symbols_configure(f->symbols,
					  &(struct symbols_config){ .memory_max = largest + 1 });
		object_touch(object, clock += 100);
		object_want(object);
		place = place_of(f, of[i].addr + round / ARRAY_SIZE(of));
		symbols_run(f->symbols);
		s = symbol_of(f, place);
		assert_non_null(s);
		assert_string_equal(s->name.str, of[i].name);
		assert_string_equal(s->module.str, object->name.str);
		largest = MAX(largest, atomic_load(&object->memory));
	}
	symbols_stats(f->symbols, &stats);
	assert_true(stats.nr_evicted >= 10);
	assert_true(stats.image_memory <= largest + 1);
}

extern const char test_symbols_spot[];
enum { LINE_OF_SPOT = __LINE__ + 4, LINE_OF_CALL = __LINE__ + 9 };

static inline __attribute__((always_inline)) int inlined_function(int x)
{
	__asm__ volatile(".globl test_symbols_spot\ntest_symbols_spot: nop" : "+r"(x));
	return x + 1;
}
__attribute__((noinline, noclone)) static int caller_of_inlined(int x)
{
	return inlined_function(x) * 5;
}

/* Place by place the names of the source; one symbol for an inlined function wherever it is. */
TEST(test_source, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t spot = (uint64_t)(uintptr_t)test_symbols_spot;
	uint32_t place = place_of(f, spot), start, nr = 0;
	const struct symbol_frame *frames;
	const struct symbol *s;
	struct symbols_stats stats;

	assert_int_equal(caller_of_inlined(1), 10);
	start = place_of(f, (uint64_t)(uintptr_t)&caller_of_inlined);
	assert_null(symbols_source(f->symbols, place, &nr));
	symbols_run(f->symbols);
	assert_string_equal(symbol_of(f, place)->name.str, "caller_of_inlined");
	frames = symbols_source(f->symbols, place, &nr);
	assert_int_equal(nr, 2);
	s = symbols_at(f->symbols, frames[0].symbol);
	assert_non_null(s);
	assert_string_equal(s->name.str, "inlined_function");
	assert_true(s->inlined && s->kind == 'u' && !s->made_up);
	assert_string_equal(s->module.str, program_invocation_short_name);
	assert_int_equal(frames[0].line, LINE_OF_SPOT);
	assert_int_equal(frames[1].symbol, SYMBOL_NONE);
	assert_int_equal(frames[1].line, LINE_OF_CALL);
	assert_non_null(strstr(symbols_file(f->symbols, frames[1].file).str, "test_symbols.c"));
	assert_string_equal(symbols_file(f->symbols, SYMBOL_NO_FILE).str, "");
	assert_true(frames[1].file < symbols_nr_files(f->symbols));
	frames = symbols_source(f->symbols, start, &nr);
	assert_true(nr >= 1 && frames[nr - 1].symbol == SYMBOL_NONE);
	assert_null(symbols_source(f->symbols, 1U << 30, &nr));
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_lines, place == start ? 1 : 2);
	assert_int_equal(stats.nr_lines_waiting, 0);
}

extern const char test_symbols_after[], test_symbols_after_stub[], test_symbols_after_own[];

#if defined(__x86_64__)
/* clang-format off */
__asm__(".pushsection .text\n"
	".type leads_on, @function\nleads_on: endbr64\n mov %esi, %edi\n jmp leads_to_stub\n"
	".size leads_on, . - leads_on\n"
	".type leads_to_stub, @function\nleads_to_stub: jmp getppid@PLT\n"
	".size leads_to_stub, . - leads_to_stub\n"
	".type goes_round, @function\ngoes_round: jmp 1f\n 1: ret\n"
	".size goes_round, . - goes_round\n"
	".type calls_through, @function\ncalls_through: sub $8, %rsp\n call leads_on\n"
	"test_symbols_after: call getppid@PLT\n"
	"test_symbols_after_stub: call goes_round\n"
	"test_symbols_after_own: add $8, %rsp\n ret\n"
	".size calls_through, . - calls_through\n.popsection");
/* clang-format on */

/*
 * Two functions that only jump to the next one are callers too; a stub of the PLT and a
 * function that jumps in itself are none.
 */
TEST(test_tail_calls, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t place = place_of(f, (uint64_t)(uintptr_t)test_symbols_after - 1), nr = 0;
	uint32_t stub = place_of(f, (uint64_t)(uintptr_t)test_symbols_after_stub - 1);
	uint32_t own = place_of(f, (uint64_t)(uintptr_t)test_symbols_after_own - 1);
	const struct symbol_frame *frames;

	symbols_run(f->symbols);
	assert_string_equal(symbol_of(f, place)->name.str, "calls_through");
	frames = symbols_source(f->symbols, place, &nr);
	assert_int_equal(nr, 3);
	assert_string_equal(symbols_at(f->symbols, frames[0].symbol)->name.str, "leads_to_stub");
	assert_string_equal(symbols_at(f->symbols, frames[1].symbol)->name.str, "leads_on");
	assert_int_equal(frames[0].file, SYMBOL_TAIL_CALL);
	assert_int_equal(frames[1].file, SYMBOL_TAIL_CALL);
	assert_int_equal(frames[2].symbol, SYMBOL_NONE);
	/* Sampled itself, it has the same symbol, and its callers begin behind it. */
	assert_int_equal(symbol_frames_begin(frames, nr, SYMBOL_NONE), 0);
	assert_int_equal(symbol_frames_begin(frames, nr, frames[0].symbol), 1);
	assert_int_equal(symbol_frames_begin(frames, nr, frames[1].symbol), 2);
	symbols_source(f->symbols, stub, &nr);
	assert_true(nr <= 1);
	symbols_source(f->symbols, own, &nr);
	assert_true(nr <= 1);
}
#endif

/* A place waits while its lines are looked up: --stacks prints them then. */
TEST(test_waits_for_lines, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t place = place_of(f, (uint64_t)(uintptr_t)test_symbols_spot), nr = 0;
	struct symbols_stats stats;
	struct err e;

	assert_int_equal(symbols_start(f->symbols, &e), 0);
	do
		symbols_stats(f->symbols, &stats);
	while (!stats.nr_named || stats.nr_waiting || stats.nr_lines_waiting);
	symbols_source(f->symbols, place, &nr);
	symbols_stop(f->symbols);
	assert_int_equal(nr, 2);
}

TEST(test_no_inline, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t place = place_of(f, (uint64_t)(uintptr_t)test_symbols_spot), nr;

	symbols_configure(f->symbols, &(struct symbols_config){ .no_inline = true });
	symbols_run(f->symbols);
	assert_string_equal(symbol_of(f, place)->name.str, "caller_of_inlined");
	assert_null(symbols_source(f->symbols, place, &nr));
}

TEST(test_libc_and_vdso, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	void *function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	uint32_t libc = place_of(f, (uint64_t)(uintptr_t)function), clock = PLACE_NONE;
	const struct image *image;

	assert_non_null(function);
	symbols_run(f->symbols);
	assert_non_null(strstr(symbol_of(f, libc)->name.str, "gnu_get_libc_version"));
	assert_memory_equal(symbol_of(f, libc)->module.str, "libc", 4);
	if (!vdso)
		skip_test("not on this machine: a vDSO");
	/* The offset of a function is not known beforehand: try them all. */
	assert_int_equal(place_of(f, vdso) != PLACE_NONE, 1);
	symbols_run(f->symbols);
	image = atomic_load(&objects_at(f->objects, OBJECT_ID_VDSO)->image);
	assert_non_null(image);
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];

		if (strstr(image->names + s->name, "clock_gettime"))
			clock = places_intern(f->places, OBJECT_ID_VDSO, s->vaddr + 1);
	}
	assert_int_not_equal(clock, PLACE_NONE);
	symbols_run(f->symbols);
	assert_non_null(strstr(symbol_of(f, clock)->name.str, "clock_gettime"));
	assert_string_equal(symbol_of(f, clock)->module.str, "[vdso]");
	assert_int_equal(symbol_of(f, clock)->kind, 'v');
}

TEST(test_kernel, setup, teardown)
{
	struct fixture *f = *state;
	unsigned long long addr = 0;
	char line[512], name[256] = "", type;
	FILE *file = fopen("/proc/kallsyms", "r");
	uint32_t inside, outside;

	while (file && fgets(line, sizeof(line), file) && strcmp(name, "schedule"))
		if (sscanf(line, "%llx %c %255s", &addr, &type, name) != 3)
			break;
	if (file)
		fclose(file);
	inside = places_intern(f->places, OBJECT_ID_KERNEL, addr ? addr + 1 : 0x1000);
	outside = places_intern(f->places, OBJECT_ID_KERNEL, 0xfffffffffffff123);
	symbols_run(f->symbols);
	if (!addr || strcmp(name, "schedule")) { /* hidden: one row for all */
		assert_string_equal(symbol_of(f, inside)->name.str, "[kernel]");
		assert_ptr_equal(symbol_of(f, inside), symbol_of(f, outside));
		assert_non_null(atomic_load(&objects_at(f->objects, OBJECT_ID_KERNEL)->reason));
		return;
	}
	assert_string_equal(symbol_of(f, inside)->name.str, "schedule");
	assert_string_equal(symbol_of(f, inside)->module.str, "[kernel]");
	assert_int_equal(symbol_of(f, inside)->kind, 'k');
	assert_true(symbol_of(f, inside)->start == addr);
	assert_string_equal(symbol_of(f, outside)->name.str, "[kernel] 0xfffffffffffff000");
}

TEST(test_anonymous_and_unknown, setup, teardown)
{
	struct fixture *f = *state;
	struct object_identity id = { .kind = OBJECT_ANON, .owner = 1 };
	struct object *anon = objects_intern(f->objects, &id, "//anon", 6, 1, 0, 0);
	uint32_t a = places_intern(f->places, anon->id, 0x7f0000001010);
	uint32_t b = places_intern(f->places, anon->id, 0x7f0000001ff0);
	uint32_t c = places_intern(f->places, anon->id, 0x7f0000002000);
	uint32_t u = places_intern(f->places, OBJECT_ID_UNKNOWN, 0x10);
	uint32_t v = places_intern(f->places, OBJECT_ID_UNKNOWN, 0x20);

	symbols_run(f->symbols);
	assert_string_equal(symbol_of(f, a)->name.str, "[anon] 0x7f0000001000");
	assert_string_equal(symbol_of(f, a)->module.str, "[anon]");
	assert_int_equal(symbol_of(f, a)->kind, 'j');
	assert_ptr_equal(symbol_of(f, a), symbol_of(f, b));
	assert_ptr_not_equal(symbol_of(f, a), symbol_of(f, c));
	assert_string_equal(symbol_of(f, u)->name.str, "[unknown]");
	assert_int_equal(symbol_of(f, u)->kind, '?');
	assert_ptr_equal(symbol_of(f, u), symbol_of(f, v));
}

static void write_map(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

/* Run until @place is called @name: a map is read again after a second, or later on a busy machine.
 */
static void run_until_named(struct fixture *f, uint32_t place, const char *name)
{
	for (int i = 0; i < 100 && strcmp(symbol_of(f, place)->name.str, name) != 0; i++) {
		usleep(100000);
		symbols_run(f->symbols);
	}
}

/* JIT code of this process: named late, kept when the map grows, renamed when its code changes. */
TEST(test_perf_map, setup, teardown)
{
	struct fixture *f = *state;
	struct object_identity id = { .kind = OBJECT_ANON, .owner = 77 };
	struct object *anon = objects_intern(f->objects, &id, "//anon", 6, getpid(), 0, 0);
	uint32_t a = places_intern(f->places, anon->id, 0x5008), b, c;
	const struct symbol *page, *one;
	struct symbols_stats stats;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	symbols_run(f->symbols);
	page = symbol_of(f, a);
	assert_true(page->made_up);
	write_map(path, "5000 10 one\n5010 10 two\n");
	run_until_named(f, a, "one");
	one = symbol_of(f, a);
	assert_string_equal(one->name.str, "one");
	assert_string_equal(one->module.str, "[perf map]");
	assert_int_equal(one->kind, 'j');
	assert_false(one->made_up);
	symbols_stats(f->symbols, &stats);
	assert_true(stats.nr_named == 1 && stats.nr_unnamed == 0);

	b = places_intern(f->places, anon->id, 0x5018);
	c = places_intern(f->places, anon->id, 0x6000);
	symbols_run(f->symbols);
	assert_string_equal(symbol_of(f, b)->name.str, "two");
	/* Something is missing, so the map is read again. */
	write_map(path, "5000 10 one\n5010 10 two\n5010 10 again\n6000 1 three\n");
	run_until_named(f, c, "three");
	assert_ptr_equal(symbol_of(f, a), one);
	assert_string_equal(symbol_of(f, b)->name.str, "again");
	assert_string_equal(symbol_of(f, c)->name.str, "three");
	symbols_stats(f->symbols, &stats);
	assert_true(stats.nr_named == 3 && stats.nr_unnamed == 0);
	unlink(path);
}

/* A process that waits to be killed, and does not outlive a failed test for long. */
static pid_t sleeping_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	sleep(60);
	_exit(0);
}

/* Processes with functions of the same names at different addresses have one row for each. */
TEST(test_perf_maps_of_many, setup, teardown)
{
	enum { PROCESSES = 10 };
	struct fixture *f = *state;
	uint32_t first[2] = { 0 }, nr = 0;

	for (unsigned int i = 0; i < PROCESSES; i++) {
		const struct object_identity id = { .kind = OBJECT_ANON, .owner = 100 + i };
		uint64_t at = 0x5000 + 0x1000ull * i;
		pid_t pid = sleeping_child();
		struct object *anon = objects_intern(f->objects, &id, "//anon", 6, pid, 0, 0);
		uint32_t a = places_intern(f->places, anon->id, at + 8);
		uint32_t b = places_intern(f->places, anon->id, at + 0x18);
		char path[64], text[128];

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
		snprintf(text, sizeof(text), "%" PRIx64 " 10 one\n%" PRIx64 " 10 two\n", at,
			 at + 0x10);
		write_map(path, text);
		symbols_run(f->symbols);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		unlink(path);
		assert_string_equal(symbol_of(f, a)->name.str, "one");
		assert_string_equal(symbol_of(f, b)->name.str, "two");
		if (!i) {
			first[0] = atomic_load(&places_at(f->places, a)->symbol);
			first[1] = atomic_load(&places_at(f->places, b)->symbol);
			nr = symbols_nr(f->symbols);
		}
		assert_int_equal(atomic_load(&places_at(f->places, a)->symbol), first[0]);
		assert_int_equal(atomic_load(&places_at(f->places, b)->symbol), first[1]);
		assert_int_equal(symbols_nr(f->symbols), nr);
	}
}

/* Any user can make a name with the hash of another name: it is another function. */
TEST(test_same_hash)
{
	const struct symtab_key key = { .object = 7, .variant = 42 };
	const struct symtab_text one = { "one", "[perf map]", 3, 10, 'j', false };
	const struct symtab_text two = { "two", "[perf map]", 3, 10, 'j', false };
	const struct symtab_text java = { "one", "[java]", 3, 6, 'J', false };
	struct symtab *t;
	uint32_t id;

	assert_int_equal(symtab_new(&t), 0);
	id = symtab_add(t, &key, &one);
	assert_int_equal(symtab_find_named(t, &key, &one), id);
	assert_int_equal(symtab_find_named(t, &key, &two), SYMBOL_NONE);
	assert_int_equal(symtab_find_named(t, &key, &java), SYMBOL_NONE);
	assert_int_not_equal(symtab_add(t, &key, &two), id);
	assert_int_equal(symtab_find_named(t, &key, &one), id);
	symtab_free(t);
}

/* See @path as an object, as its inode is now. */
static struct object *see_file(struct fixture *f, const char *path, pid_t pid)
{
	struct object_identity id = { .kind = OBJECT_FILE };
	struct stat st;

	if (!stat(path, &st)) {
		id.maj = major(st.st_dev);
		id.min = minor(st.st_dev);
		id.ino = st.st_ino;
	}
	return objects_intern(f->objects, &id, path, strlen(path), pid, 0, 0);
}

static void temporary(char *path)
{
	strcpy(path, "/tmp/test_symbols.XXXXXX");
	assert_non_null(mkdtemp(path));
}

/* A copy of this program without section headers: names are from its FDEs. */
TEST(test_stripped_program, setup, teardown)
{
	struct fixture *f = *state;
	char dir[32], path[64], expected[64];
	uint64_t addr = (uint64_t)(uintptr_t)&named_function, offset;
	uint32_t place, other;
	struct object *object;
	struct stat st;
	uint8_t *bytes;
	int fd = open("/proc/self/exe", O_RDONLY);

	temporary(dir);
	snprintf(path, sizeof(path), "%s/stripped", dir);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
	assert_int_equal(write(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	free(bytes);
	object_at(f, addr, &offset);
	object = see_file(f, path, 0);
	place = places_intern(f->places, object->id, offset);
	other = places_intern(f->places, object->id, offset + 1);
	symbols_run(f->symbols);
	assert_int_equal(atomic_load(&object->state), OBJECT_READY);
	assert_string_equal(atomic_load(&object->reason), "stripped: no symbols");
	snprintf(expected, sizeof(expected), "stripped+0x%" PRIx64, symbol_of(f, place)->start);
	assert_string_equal(symbol_of(f, place)->name.str, expected);
	assert_int_equal(symbol_of(f, place)->kind, '?');
	assert_ptr_equal(symbol_of(f, place), symbol_of(f, other));
	unlink(path);
	rmdir(dir);
}

/*
 * The file of a recording was replaced, by one of other contents: its code
 * has addresses, and the look-up of its lines ends. (It was tried without end.)
 */
TEST(test_replaced_file, setup, teardown)
{
	struct fixture *f = *state;
	char dir[32], path[64], other[64];
	struct object *object;
	struct symbols_stats stats;
	uint64_t offset;
	uint32_t place;

	temporary(dir);
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	object_at(f, (uint64_t)(uintptr_t)&named_function, &offset);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_EXCL, 0600)), 0);
	object = see_file(f, path, 0);
	assert_int_equal(close(open(other, O_CREAT | O_WRONLY | O_EXCL, 0600)), 0);
	assert_int_equal(rename(other, path), 0);
	symbols_recorded(f->symbols, NULL);
	place = places_intern(f->places, object->id, offset);
	alarm(60); /* a hang fails, on a slow machine also */
	symbols_run(f->symbols);
	alarm(0);
	assert_string_equal(atomic_load(&object->reason), OBJECT_REPLACED);
	assert_int_equal(symbol_of(f, place)->kind, '?');
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_lines_waiting, 0);
	unlink(path);
	rmdir(dir);
}

static void assert_fails(struct fixture *f, const char *path, const char *reason)
{
	struct object *object = see_file(f, path, 0);
	uint32_t place = places_intern(f->places, object->id, 0x1234);
	char expected[64];

	symbols_run(f->symbols);
	assert_int_equal(atomic_load(&object->state), OBJECT_FAILED);
	assert_string_equal(atomic_load(&object->reason), reason);
	assert_null(atomic_load(&object->image));
	/* Code in a file of another format may be made at run time: one row for a page. */
	snprintf(expected, sizeof(expected), "%s+%s", strrchr(path, '/') + 1,
		 strcmp(reason, "not an ELF file") ? "0x1234" : "0x1000");
	assert_string_equal(symbol_of(f, place)->name.str, expected);
}

TEST(test_objects_that_cannot_be_had, setup, teardown)
{
	struct fixture *f = *state;
	char dir[32], fifo[64], text[64], dll[64];
	struct symbols_stats stats;
	int fd;

	temporary(dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(text, sizeof(text), "%s/text", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(text, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	close(fd);
	assert_fails(f, fifo, "not a regular file");
	assert_fails(f, text, "not an ELF file");
	assert_null(atomic_load(&see_file(f, text, 0)->fix));
	/* Code of .NET that was compiled before: it alone has a fix. */
	snprintf(dll, sizeof(dll), "%s/x.dll", dir);
	fd = open(dll, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "MZ", 2), 2);
	close(fd);
	assert_fails(f, dll, "not an ELF file");
	assert_non_null(strstr(atomic_load(&see_file(f, dll, 0)->fix), "DOTNET_ReadyToRun=0"));
	unlink(dll);
	assert_fails(f, "/nonexistent/lib.so", "file is gone, or in another mount namespace");
	assert_fails(f, "/dev/null", "not a regular file");
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_failed, 5);
	assert_int_equal(stats.nr_images, 0);
	assert_int_equal(stats.nr_unnamed, 5);
	unlink(fifo);
	unlink(text);
	rmdir(dir);
}

/* Seen in a process that is gone, then in ours: it is loaded, and old places get their names. */
TEST(test_failed_object_seen_again, setup, teardown)
{
	struct fixture *f = *state;
	struct object_identity id = { .kind = OBJECT_FILE, .build_id = { 1 } };
	uint64_t addr = (uint64_t)(uintptr_t)&named_function, offset;
	struct object *own = object_at(f, addr, &offset), *object;
	struct object_sighting seen;
	struct symbols_stats stats;
	uint32_t place;

	objects_sighting(f->objects, own, &seen);
	id.maj = own->identity.maj;
	id.min = own->identity.min;
	id.ino = own->identity.ino;
	object = objects_intern(f->objects, &id, "/nonexistent/x", 14, 0x7ffffff0, 0, 0);
	assert_ptr_equal(object, own);
	place = places_intern(f->places, object->id, offset);
	symbols_run(f->symbols);
	assert_int_equal(atomic_load(&object->state), OBJECT_FAILED);
	assert_int_equal(symbol_of(f, place)->kind, '?');
	usleep(1100000);
	symbols_run(f->symbols); /* nothing new: unchanged */
	assert_int_equal(atomic_load(&object->state), OBJECT_FAILED);
	objects_intern(f->objects, &id, seen.path, strlen(seen.path), getpid(), seen.start,
		       seen.end);
	free(seen.path);
	usleep(1100000);
	symbols_run(f->symbols);
	assert_int_equal(atomic_load(&object->state), OBJECT_READY);
	assert_string_equal(symbol_of(f, place)->name.str, "named_function");
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_failed, 0);
	assert_int_equal(stats.nr_named, 1);
	assert_int_equal(stats.nr_unnamed, 0);
}

#define NR_WRITTEN 20000U

/* A sampler thread's part: places of libc and unknown memory, a wake now and then. */
static void *write_places(void *arg)
{
	struct fixture *f = arg;
	void *function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	uint64_t offset;
	uint32_t libc = object_at(f, (uint64_t)(uintptr_t)function, &offset)->id;

	rcu_register_thread();
	for (uint32_t i = 0; i < NR_WRITTEN; i++) {
		uint32_t object = i % 3 == 0   ? OBJECT_ID_UNKNOWN
				  : i % 3 == 1 ? OBJECT_ID_KERNEL
					       : libc;
		uint64_t start = object == OBJECT_ID_KERNEL ? 0xffffffff81000000 : offset;

		if (places_intern(f->places, object, start + i) == PLACE_NONE)
			break;
		if (i % 1024 == 0) {
			symbols_wake(f->symbols);
			places_grow(f->places);
		}
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

TEST(test_background, setup, teardown)
{
	struct fixture *f = *state;
	struct symbols_stats stats;
	uint64_t end = time_now_ns() + 20000000000ULL;
	uint32_t nr;
	pthread_t writer;
	struct err e;

	assert_int_equal(symbols_start(f->symbols, &e), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_places, f), 0);
	pthread_join(writer, NULL);
	nr = places_nr(f->places);
	assert_true(nr > 10000);
	do {
		usleep(5000);
		symbols_stats(f->symbols, &stats);
	} while (stats.nr_named + stats.nr_unnamed < nr && time_now_ns() < end);
	assert_int_equal(stats.nr_named + stats.nr_unnamed, nr);
	assert_int_equal(stats.nr_waiting, 0);
	for (uint32_t i = 0; i < nr; i++) {
		const struct symbol *s = symbol_of(f, i);

		assert_non_null(s);
		assert_true(s->name.size > 0 && s->module.size > 0);
		assert_int_equal(s->object, places_at(f->places, i)->object);
	}
	symbols_stop(f->symbols);
}

/* Stopping is quick, also right after the start and twice: in one of ten tries on a loaded machine.
 */
TEST(test_stop, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t best = UINT64_MAX;
	struct err e;

	for (int i = 0; i < 10 && best > 100000000; i++) {
		uint64_t start = time_now_ns();

		assert_int_equal(symbols_start(f->symbols, &e), 0);
		symbols_stop(f->symbols);
		symbols_stop(f->symbols);
		best = MIN(best, time_now_ns() - start);
	}
	assert_in_range(best, 0, 1000000000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
