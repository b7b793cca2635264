// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfmaps: maps of real child processes, trusted or refused, that grow, are late, or of an ended
 * process; a process in another PID namespace (root only).
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/jit/internal.h"
#include "tests/sleeper.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"

#define SECOND 1000000000ULL

struct fixture {
	struct objects *objects;
	struct perfmaps maps;
	struct jitreads reads;
	atomic_bool stop;
	pid_t child;
	struct object *object;
	char path[64], other[64];
};

static struct object *memory_of(struct fixture *f, pid_t pid)
{
	const struct object_identity id = { .kind = OBJECT_ANON, .owner = (uint64_t)pid };

	return objects_intern(f->objects, &id, "//anon", 6, pid, 0, 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(objects_new(&f->objects), 0);
	perfmaps_init(&f->maps, f->objects, &f->reads, &f->stop);
	f->child = sleeper(0);
	f->object = memory_of(f, f->child);
	snprintf(f->path, sizeof(f->path), "/tmp/perf-%d.map", f->child);
	snprintf(f->other, sizeof(f->other), "/tmp/perf-%d.map.other", f->child);
	unlink(f->path);
	unlink(f->other);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end_sleeper(f->child);
	unlink(f->path);
	unlink(f->other);
	perfmaps_fini(&f->maps);
	objects_free(f->objects);
	free(f);
	return 0;
}

static void append(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Assert the symbol that covers @addr; @name NULL: none. */
static void assert_at(struct fixture *f, uint64_t addr, const char *name)
{
	struct perfmap_symbol s;
	bool found = !perfmaps_find(&f->maps, f->object, addr, &s);

	assert_int_equal(found, name != NULL);
	if (name)
		assert_true(s.name_size == strlen(name) && !memcmp(s.name, name, s.name_size));
}

static void assert_why(const struct object *object, const char *reason)
{
	const char *why = atomic_load(&object->reason);

	if (!reason)
		assert_null(why);
	else if (!why || strcmp(why, reason))
		fail_msg("'%s', not '%s'", reason, why ? why : "(nothing)");
}

TEST(test_found, setup, teardown)
{
	struct fixture *f = *state;

	append(f->path, "1000 10 one\n2000 10 two\n");
	assert_at(f, 0x1008, "one");
	assert_at(f, 0x2000, "two");
	assert_why(f->object, NULL);
	assert_string_equal(atomic_load(&f->object->source), "perf map");
	assert_int_equal(atomic_load(&f->object->nr_symbols), 2);
	assert_true(atomic_load(&f->maps.memory) > 0);
	/* Nothing is missing: it is not looked at again. */
	append(f->path, "3000 10 three\n");
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 100 * SECOND),
			 OBJECT_ID_UNKNOWN);
	assert_at(f, 0x3000, NULL);
	assert_why(f->object, "code missing in its perf map");
	/* Not within the second, then once. */
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns()), OBJECT_ID_UNKNOWN);
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 2 * SECOND), f->object->id);
	assert_at(f, 0x3000, "three");
	assert_at(f, 0x1000, "one");
	assert_why(f->object, NULL);
}

TEST(test_comes_late, setup, teardown)
{
	struct fixture *f = *state;

	assert_at(f, 0x1000, NULL);
	assert_why(f->object, "JIT code without a perf map");
	assert_non_null(atomic_load(&f->object->fix));
	assert_null(atomic_load(&f->object->source));
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 2 * SECOND), OBJECT_ID_UNKNOWN);
	append(f->path, "1000 10 one\n");
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 20 * SECOND), f->object->id);
	assert_at(f, 0x1000, "one");
	assert_why(f->object, NULL);
	assert_null(atomic_load(&f->object->fix));
}

/* A user who can write to /tmp could name another's code, or have any file read. */
TEST(test_refused, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t now = time_now_ns();

	append(f->other, "1000 10 evil\n");
	assert_int_equal(symlink(f->other, f->path), 0);
	assert_at(f, 0x1000, NULL);
	assert_why(f->object, "its perf map is not a regular file");
	unlink(f->path);
	assert_int_equal(link(f->other, f->path), 0);
	assert_int_equal(perfmaps_refresh(&f->maps, now += 100 * SECOND), OBJECT_ID_UNKNOWN);
	assert_why(f->object, "its perf map is a hard link");
	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(perfmaps_refresh(&f->maps, now += 100 * SECOND), OBJECT_ID_UNKNOWN);
	assert_why(f->object, "its perf map is not a regular file");
	unlink(f->path);
	append(f->path, "no entry here\n");
	assert_int_equal(perfmaps_refresh(&f->maps, now += 100 * SECOND), OBJECT_ID_UNKNOWN);
	assert_why(f->object, "its perf map has no entry yet");
	assert_string_equal(atomic_load(&f->object->fix), JIT_LAST_BLOCK);
	assert_int_equal(truncate(f->path, 10LL << 30), 0);
	assert_int_equal(perfmaps_refresh(&f->maps, now += 100 * SECOND), OBJECT_ID_UNKNOWN);
	assert_why(f->object, "its perf map is too large");
	assert_at(f, 0x1000, NULL);
}

/* Pids are used again, files in /tmp remain: an older map is another process's. */
TEST(test_older_than_process, setup, teardown)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - 60 }, { .tv_sec = time(NULL) - 60 } };
	struct fixture *f = *state;

	append(f->path, "1000 10 evil\n");
	assert_int_equal(utimensat(AT_FDCWD, f->path, times, 0), 0);
	assert_at(f, 0x1000, NULL);
	assert_why(f->object, "its perf map is older than the process");
	append(f->path, "2000 10 good\n");
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 100 * SECOND), f->object->id);
	assert_at(f, 0x2000, "good");
}

static bool has_uid(pid_t pid, unsigned int uid)
{
	char path[64], line[256];
	unsigned int real = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "Uid: %u", &real) != 1)
		;
	fclose(file);
	return real == uid;
}

TEST(test_owner, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];
	pid_t pid;

	if (geteuid())
		skip_test("not permitted: root only");
	append(f->path, "1000 10 evil\n");
	assert_int_equal(chown(f->path, 12345, 12345), 0);
	assert_at(f, 0x1000, NULL);
	assert_why(f->object, "its perf map belongs to another user");
	/* A process of that user: the map may be theirs or root's, not a third one's. */
	pid = sleeper(12345);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	append(path, "1000 10 mine\n");
	assert_int_equal(chown(path, 23456, 23456), 0);
	while (!has_uid(pid, 12345)) /* until it has changed its user */
		usleep(1000);
	f->object = memory_of(f, pid);
	assert_at(f, 0x1000, NULL);
	assert_why(f->object, "its perf map belongs to another user");
	assert_int_equal(chown(path, 12345, 12345), 0);
	/* One process a call. */
	perfmaps_refresh(&f->maps, time_now_ns() + 100 * SECOND);
	perfmaps_refresh(&f->maps, time_now_ns() + 100 * SECOND);
	assert_at(f, 0x1000, "mine");
	end_sleeper(pid);
	unlink(path);
}

TEST(test_process_ends, setup, teardown)
{
	struct fixture *f = *state;
	struct object *gone;

	append(f->path, "1000 10 one\n");
	assert_at(f, 0x1000, "one");
	assert_at(f, 0x2000, NULL);
	end_sleeper(f->child);
	append(f->path, "2000 10 two\n");
	/* Its pid may be reused: known symbols remain, no new ones are read. */
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 100 * SECOND),
			 OBJECT_ID_UNKNOWN);
	assert_at(f, 0x1000, "one");
	assert_at(f, 0x2000, NULL);
	assert_why(f->object, "process ended before its perf map was read");
	assert_int_equal(perfmaps_refresh(&f->maps, time_now_ns() + 699 * SECOND),
			 OBJECT_ID_UNKNOWN);
	assert_at(f, 0x1000, "one");
	assert_true(atomic_load(&f->maps.memory) > 0);
	/* Ten minutes later its map is freed. */
	perfmaps_refresh(&f->maps, time_now_ns() + 701 * SECOND);
	assert_int_equal(f->maps.nr_entries, 0);
	assert_int_equal(atomic_load(&f->maps.memory), 0);
	assert_at(f, 0x1000, NULL);
	gone = memory_of(f, 0x7ffffff0);
	f->object = gone;
	assert_at(f, 0x1000, NULL);
	assert_why(gone, "process ended before its perf map was read");
	assert_int_equal(perfmaps_refresh(&f->maps, UINT64_MAX - 1), OBJECT_ID_UNKNOWN);
	assert_int_equal(f->maps.nr_entries, 2);
	f->child = sleeper(0);
}

/* A child of a new PID namespace is 1 in there, and its map is perf-1.map. */
TEST(test_pid_namespace, setup, teardown)
{
	struct fixture *f = *state;
	pid_t outer;

	if (geteuid())
		skip_test("not permitted: root only");
	if (access("/tmp/perf-1.map", F_OK) == 0)
		skip_test("not on this machine: a /tmp without perf-1.map");
	outer = fork();
	if (!outer) {
		pid_t inner;

		if (unshare(CLONE_NEWPID))
			_exit(77);
		inner = sleeper(0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(f->path, sizeof(f->path), "%d", inner);
		append(f->other, f->path);
		append(f->other, "\n");
		waitpid(inner, NULL, 0);
		_exit(0);
	}
	for (int i = 0; i < 1000 && access(f->other, F_OK); i++) {
		int status;

		usleep(1000);
		if (waitpid(outer, &status, WNOHANG) == outer)
			skip_test("not permitted: a PID namespace");
	}
	usleep(20000);
	{
		FILE *file = fopen(f->other, "r");
		int inner = 0;

		assert_non_null(file);
		assert_int_equal(fscanf(file, "%d", &inner), 1);
		fclose(file);
		append("/tmp/perf-1.map", "1000 10 inner_name\n");
		snprintf(f->path, sizeof(f->path), "/tmp/perf-%d.map", inner);
		append(f->path, "1000 10 of_another\n");
		f->object = memory_of(f, inner);
		assert_at(f, 0x1000, "inner_name");
		unlink("/tmp/perf-1.map");
		kill(inner, SIGKILL);
	}
	waitpid(outer, NULL, 0);
}

/* A recording's pids mean nothing here: the file alone counts, ours or root's. */
TEST(test_recording, setup, teardown)
{
	struct fixture *f = *state;

	f->maps.no_proc = true;
	append(f->path, "1000 10 one\n");
	end_sleeper(f->child);
	assert_at(f, 0x1000, "one");
	f->child = sleeper(0);
}

TEST(test_many, setup, teardown)
{
	struct fixture *f = *state;
	struct perfmap_symbol s;

	for (unsigned int i = 0; i < PERFMAPS_MAX + 10; i++)
		assert_true(
			perfmaps_find(&f->maps, memory_of(f, (pid_t)(0x70000000 + i)), 0x1000, &s));
	assert_int_equal(f->maps.nr_entries, PERFMAPS_MAX);
	/* A table full of processes has room for one of another user, which is sampled. */
	append(f->path, "1000 10 one\n");
	atomic_store(&f->object->used, 1000);
	assert_at(f, 0x1000, "one");
	for (unsigned int i = 0; i < PERFMAPS_MAX; i++)
		perfmaps_find(&f->maps, memory_of(f, (pid_t)(0x71000000 + i)), 0x1000, &s);
	assert_int_equal(f->maps.nr_entries, PERFMAPS_MAX);
	assert_at(f, 0x1000, "one");
}

#define LARGE 1500000 /* entries: 48 bytes each, and a byte of name */

/* Write a large map of process @pid, as its user @uid. */
static void write_large(const char *path, uid_t uid)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (unsigned int i = 0; i < LARGE; i++)
		fprintf(file, "%x 1 f\n", 0x1000 + i * 2);
	assert_int_equal(fclose(file), 0);
	if (uid)
		assert_int_equal(chown(path, uid, uid), 0);
}

/* Read a large map of a new process of @uid, and return its memory; it ends with the test. */
static struct object *read_large(struct fixture *f, uid_t uid, pid_t *pid)
{
	char path[64];

	*pid = sleeper(uid);
	while (!has_uid(*pid, uid ? uid : getuid()))
		usleep(1000);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", *pid);
	unlink(path);
	write_large(path, uid);
	f->object = memory_of(f, *pid);
	assert_at(f, 0x10, NULL);
	unlink(path);
	return f->object;
}

/* One user may take three quarters of the bytes: the maps of others are read nevertheless. */
TEST(test_memory_of_user, setup, teardown)
{
	const size_t share = JITREADS_USER(PERFMAPS_MEMORY_MAX);
	struct fixture *f = *state;
	pid_t pids[4] = { 0 };

	for (int i = 0; i < 3; i++) {
		read_large(f, 0, &pids[i]);
		assert_at(f, 0x1000, i < 2 ? "f" : NULL);
	}
	assert_why(f->object, "perf maps take too much memory");
	print_message("%lu of %zu bytes\n", atomic_load(&f->maps.memory), share);
	/* The third one is refused because of its user: there is memory for it. */
	assert_in_range(atomic_load(&f->maps.memory), share / 3 * 2, share);
	assert_in_range(atomic_load(&f->maps.memory) / 2 * 3, share + 1, PERFMAPS_MEMORY_MAX);
	if (!geteuid()) {
		read_large(f, 12345, &pids[3]);
		assert_at(f, 0x1000, "f");
		assert_in_range(atomic_load(&f->maps.memory), share + 1, PERFMAPS_MEMORY_MAX);
		end_sleeper(pids[3]);
	}
	for (int i = 0; i < 3; i++)
		end_sleeper(pids[i]);
	if (geteuid())
		skip_test("not permitted: root only");
}

/* Half of a table is for other users than the one with the most processes. */
TEST(test_oldest)
{
	struct jitreads_candidate candidates[8];

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		candidates[i] = (struct jitreads_candidate){ .uid = i < 5 ? 1000 : 1001 + i,
							     .used = 8 - i };
	assert_int_equal(jitreads_victim(candidates, 8, 7), 7);
	assert_int_equal(jitreads_victim(candidates, 8, 1000), 4);
	candidates[4].pinned = true;
	assert_int_equal(jitreads_victim(candidates, 8, 1000), 3);
	for (uint32_t i = 0; i < 8; i++)
		candidates[i].pinned = true;
	assert_int_equal(jitreads_victim(candidates, 8, 7), UINT32_MAX);
	assert_int_equal(jitreads_user_of(getpid()), geteuid());
}

TEST(test_stopping, setup, teardown)
{
	struct fixture *f = *state;

	append(f->path, "1000 10 one\n");
	atomic_store(&f->stop, true);
	assert_at(f, 0x1000, NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
