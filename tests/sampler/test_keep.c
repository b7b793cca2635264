// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of --keep as keep_tick() writes them, read back: each stack has all its functions.
 * Live: waits for threads or processes.
 */
#include "sampler/keep.c"

#include "tests/prelude_rcu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/record/record.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/hot/hot.h"

#define FUNCTIONS 4096u

struct fixture {
	struct store st;
	struct keep *k;
	char dir[32];
	/* Of the segment that is read. */
	bool known[FUNCTIONS];
	uint32_t nr_stacks, nr_missing;
	char event[16];
	uint32_t nr_first, nr_second; /* slices of the event */
	int code;		      /* that ended it */
	struct err why;
};

static void open_fixture(struct fixture *f)
{
	const struct sampler_config config = { .hz = 99, .nr_events = 1, .window_ns = 5000000000 };
	struct keep_config keep = { f->dir, 64 << 20, 3600000000000ULL };
	struct err e;

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/test_keep.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	if (store_open(&f->st, &config, &e) || keep_open(&f->k, &keep, &e))
		fail_msg("%s", e.text);
	f->st.shared = aligned_alloc(CACHELINE, sizeof(*f->st.shared));
	memset(f->st.shared, 0, sizeof(*f->st.shared));
	store_publish(&f->st, f->st.shared, &config, 0, -1, 0);
}

static void close_fixture(struct fixture *f)
{
	struct sampler_thread_shared *shared = f->st.shared;
	char command[64];

	store_close(&f->st);
	free(shared);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
}

/* Count a sample of the stack of @places in a new slice. */
static void add_slice(struct fixture *f, const uint32_t *places, uint32_t nr)
{
	struct count *counts;
	uint32_t nr_counts, stack = stacks_intern(f->st.stacks, places, nr);

	assert_true(counts_add(f->st.counts, stack, 0, 0, 1, 0));
	assert_int_equal(counts_swap(f->st.counts, &counts, &nr_counts), 0);
	assert_int_equal(history_add(f->st.history, counts, nr_counts, 100000000), 0);
}

/* Return the size of all segments together. */
static uint64_t segment_bytes(const struct fixture *f)
{
	DIR *d = opendir(f->dir);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".keep") && !fstatat(dirfd(d), e->d_name, &st, 0))
			sum += (uint64_t)st.st_size;
	closedir(d);
	return sum;
}

/* Queue the slices that are new; @sets: their events, NULL: cpu-clock. */
static void queue_slices(struct fixture *f, const struct past_events *sets, uint32_t now)
{
	const struct assemble_input tables = { .stacks = f->st.stacks,
					       .places = f->st.places,
					       .symbols = f->st.symbols,
					       .maps = f->st.maps,
					       .objects = f->st.objects };
	const struct event clock = { .name = "cpu-clock" };
	const struct event *events = sets ? sets[now].events : &clock;
	const double hz[1] = { 99 };
	const struct keep_input in = {
		history_slices(f->st.history), &tables, events, hz, 1, sets, 0, UINT64_MAX
	};

	keep_tick(f->k, &in);
}

/* Keep the slices that are new. */
static void keep(struct fixture *f, const struct past_events *sets, uint32_t now)
{
	const uint64_t before = segment_bytes(f);

	/* While the writer is behind, a tick is left out: on a busy machine it may be for long. */
	for (int i = 0; i < 500; i++) {
		queue_slices(f, sets, now);
		usleep(10000);
		f->code = keep_check(f->k, &f->why);
		if (f->code || segment_bytes(f) > before)
			break;
	}
}

static void keep_slice(struct fixture *f, const uint32_t *places, uint32_t nr)
{
	add_slice(f, places, nr);
	keep(f, NULL, 0);
	assert_int_equal(f->code, 0);
}

static void t_on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct fixture *f = ctx;

	snprintf(f->event, sizeof(f->event), "%.*s", (int)events[0].name.size, events[0].name.str);
}

static void t_on_function(void *ctx, const struct keepfile_function *function)
{
	struct fixture *f = ctx;

	if (function->id < FUNCTIONS)
		f->known[function->id] = true;
}

static void t_on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	struct fixture *f = ctx;

	f->nr_stacks++;
	for (uint32_t i = 0; i < nr; i++)
		f->nr_missing += functions[i] < FUNCTIONS && !f->known[functions[i]];
}

static void t_on_interpreter(void *ctx, struct keepfile_text module)
{
}

static void t_on_task(void *ctx, const struct keepfile_task *t)
{
}

static void t_on_slice(void *ctx, const struct slice *slice)
{
	struct fixture *f = ctx;

	f->nr_first += !strcmp(f->event, "first");
	f->nr_second += !strcmp(f->event, "second");
}

/* Read all segments. */
static void read_segments(struct fixture *f)
{
	const struct keepfile_reader reader = { t_on_events, t_on_function,
						t_on_stack,  t_on_interpreter,
						t_on_task,   t_on_slice,
						f,	     NULL };
	char path[64], *bytes = malloc(1 << 20);
	struct dirent *e;
	DIR *d = opendir(f->dir);
	size_t size;
	FILE *in;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".keep"))
			continue;
		snprintf(path, sizeof(path), "%s/%.30s", f->dir, e->d_name);
		in = fopen(path, "r");
		assert_non_null(in);
		size = fread(bytes, 1, 1 << 20, in);
		fclose(in);
		assert_int_equal(keepfile_read((const uint8_t *)bytes, size, &reader),
				 (int64_t)size);
	}
	closedir(d);
	free(bytes);
}

/* A function that got its name while another one of its stack had none is known to later stacks. */
TEST(test_names_one_by_one)
{
	const struct symbols_kept kept = { "first", "m", 5, 1, 'u', false, false };
	struct fixture f;
	uint32_t places[2], of_symbol, other[2];

	open_fixture(&f);
	of_symbol = symbols_keep_function(f.st.symbols, f.st.places, f.st.objects, &kept);
	for (uint32_t i = 0; i < 2; i++)
		places[i] = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000 + i);
	other[0] = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x2000);
	other[1] = places[0];
	keep_slice(&f, places, 2);
	places_name(f.st.places, places[0],
		    atomic_load(&places_at(f.st.places, of_symbol)->symbol));
	keep_slice(&f, other, 2);
	keep_slice(&f, other, 1);
	keep_close(f.k);
	read_segments(&f);
	assert_true(f.nr_stacks >= 3);
	assert_int_equal(f.nr_missing, 0);
	close_fixture(&f);
}

/* A slice that is written after the events changed, as the disk was busy, is of its events. */
TEST(test_events_while_the_disk_is_behind)
{
	static const struct past_events sets[2] = {
		{ .events = { { .name = "first", .config = 1 } }, .nr = 1 },
		{ .events = { { .name = "second", .config = 2 } }, .nr = 1 },
	};
	struct fixture f;
	uint32_t place;

	open_fixture(&f);
	place = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000);
	add_slice(&f, &place, 1);
	keep(&f, sets, 0);
	add_slice(&f, &place, 1);
	history_set_events(f.st.history, 1);
	add_slice(&f, &place, 1);
	keep(&f, sets, 1);
	keep(&f, sets, 1);
	assert_int_equal(f.code, 0);
	keep_close(f.k);
	read_segments(&f);
	assert_int_equal(f.nr_first, 2);
	assert_int_equal(f.nr_second, 1);
	close_fixture(&f);
}

/* Open --keep on the folder of @f a second time. */
static int open_again(const struct fixture *f, struct keep **k, struct err *e)
{
	const struct keep_config config = { f->dir, 64 << 20, 3600000000000ULL };

	return keep_open(k, &config, e);
}

/* A session has the folder alone; users that can read it cannot take it. */
TEST(test_lock)
{
	struct fixture f;
	struct keep *k = NULL;
	struct err e;
	struct stat st;
	char path[64];
	int dir;

	open_fixture(&f);
	assert_int_equal(open_again(&f, &k, &e), -EBUSY);
	assert_non_null(strstr(e.text, "another proftop"));
	keep_close(f.k);
	dir = open(f.dir, O_RDONLY);
	assert_int_equal(flock(dir, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(open_again(&f, &k, &e), 0);
	keep_close(k);
	close(dir);
	snprintf(path, sizeof(path), "%s/lock", f.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* Made by others before. */
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(open_again(&f, &k, &e), -EBUSY);
	assert_non_null(strstr(e.text, "/lock: another user can open it"));
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(open_again(&f, &k, &e), -ELOOP);
	close_fixture(&f);
}

static void put_file(const struct fixture *f, const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static bool has_file(const struct fixture *f, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return !access(path, F_OK);
}

static uint32_t made_up; /* names of segments that a folder has beside its files */

/* In place of the C library's. */
struct dirent *readdir(DIR *dir)
{
	struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
	static struct dirent entry;

	if (!made_up)
		return real(dir);
	keep_dir_name(entry.d_name, 4 + made_up--);
	return &entry;
}

/* A number that is taken is left out; the last ones are refused, and so are too many. */
TEST(test_numbers)
{
	struct fixture f;
	struct keep *k;
	struct err e;
	uint32_t place, *numbers;
	int dir;

	open_fixture(&f);
	place = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000);
	put_file(&f, "00000001.keep");
	put_file(&f, "00000002.keep");
	keep_slice(&f, &place, 1);
	assert_true(has_file(&f, "00000003.keep"));
	keep_close(f.k);
	put_file(&f, "ffffffff.keep");
	assert_int_equal(open_again(&f, &k, &e), -EOVERFLOW);
	assert_non_null(strstr(e.text, "ffffffff.keep: there are no higher numbers\n  move its"));
	made_up = KEEP_SEGMENTS_MAX + 1;
	assert_int_equal(open_again(&f, &k, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 65536 files"));
	assert_int_equal(keep_dir_open(&dir, f.dir, &e), 0);
	made_up = KEEP_SEGMENTS_MAX + 1;
	assert_int_equal(keep_dir_list(dir, &numbers, &e), -E2BIG);
	assert_int_equal(made_up, 0);
	made_up = KEEP_SEGMENTS_MAX - 4;
	assert_int_equal(keep_dir_list(dir, &numbers, &e), KEEP_SEGMENTS_MAX);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[3], 5);
	free(numbers);
	close(dir);
	close_fixture(&f);
}

static bool unremovable;

/* In place of the C library's. */
int unlinkat(int fd, const char *name, int flags)
{
	if (unremovable && strstr(name, ".keep")) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, fd, name, flags);
}

/* With an old file that is still there the limit of the size would be broken: it is said. */
TEST(test_unremovable)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct fixture f;
	uint32_t place;
	char path[96];

	open_fixture(&f);
	place = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000);
	put_file(&f, "00000001.keep");
	snprintf(path, sizeof(path), "%s/00000001.keep", f.dir);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	unremovable = true;
	add_slice(&f, &place, 1);
	keep(&f, NULL, 0);
	unremovable = false;
	assert_int_equal(f.code, -EPERM);
	assert_string_equal(f.why.text, "cannot remove 00000001.keep: Operation not permitted");
	keep_close(f.k);
	close_fixture(&f);
}

/* A disk that is full at the last write: no tick can report it. */
TEST(end_reports)
{
	struct fixture f;
	struct rlimit old, low;
	uint32_t place;

	open_fixture(&f);
	place = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ 10, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	add_slice(&f, &place, 1);
	queue_slices(&f, NULL, 0);
	assert_int_equal(keep_finish(f.k, &f.why), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(f.why.text, "cannot write: File too large"));
	keep_close(f.k);
	close_fixture(&f);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
