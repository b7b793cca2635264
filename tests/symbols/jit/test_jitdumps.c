// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jitdumps: dumps of real child processes, found through their mapping, trusted
 * or refused, that grow; code at one address over time, in the maps; recordings.
 * Live: waits for threads or processes.
 */
#include "symbols/jit/jitdump.c"

#include "tests/prelude_rcu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/name/name.h"
#include "tests/sleeper.h"
#include "tests/makers/jitdump.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"

#define SECOND 1000000000ULL
#define CODE   0x7f0000000000ULL

static struct jitmake made;

struct fixture {
	struct objects *objects;
	struct maps *maps;
	struct jitdumps dumps;
	struct jitreads reads;
	atomic_bool stop;
	pid_t child;
	struct object *memory;
	char folder[32], path[64];
	struct stat st;
};

/* Report to the maps that @pid maps the file @path, or anonymous memory. */
static void tell_mmap(struct fixture *f, pid_t pid, const char *path, uint64_t start,
		      uint64_t time_ns)
{
	struct maps_mmap ev = {
		.pid = pid,
		.tid = pid,
		.start = start,
		.size = 1 << 20,
		.time_ns = time_ns,
		.prot = PROT_READ | PROT_EXEC,
		.filename = path,
		.filename_size = strlen(path) + 1,
	};

	if (*path == '/' && path[1] != '/') {
		ev.identity.maj = major(f->st.st_dev);
		ev.identity.min = minor(f->st.st_dev);
		ev.identity.ino = f->st.st_ino;
		ev.size = 4096;
	}
	maps_on_mmap(f->maps, &ev);
}

/* The object of the memory at @addr at @time_ns. */
static struct object *object_at(struct fixture *f, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m;
	struct maps_hit hit;
	struct object *object;

	maps_find(f->maps, maps_tasks(f->maps), f->child, f->child, time_ns, &hit);
	m = space_find(hit.space, addr, time_ns);
	object = m ? m->object : NULL;
	return object;
}

static void write_file(const struct fixture *f, int flags)
{
	int fd = open(f->path, O_CREAT | O_WRONLY | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, made.bytes, made.size), made.size);
	close(fd);
	made.size = 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(objects_new(&f->objects), 0);
	assert_int_equal(maps_new(&f->maps, f->objects, 1024), 0);
	jitdumps_init(&f->dumps, f->objects, f->maps, &f->reads, &f->stop);
	f->child = sleeper(0);
	strcpy(f->folder, "/tmp/test_jitdumps.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/jit-%d.dump", f->folder, f->child);
	made.size = 0;
	write_file(f, 0);
	stat(f->path, &f->st);
	/* Of a process with a recorded begin. */
	maps_on_comm(f->maps, f->child, f->child, "jit", 4, true, 1);
	tell_mmap(f, f->child, "//anon", CODE, 2);
	tell_mmap(f, f->child, f->path, 0x10000, 3);
	maps_publish(f->maps, 3, UINT64_MAX);
	f->memory = object_at(f, CODE, 10);
	assert_non_null(f->memory);
	assert_int_equal(f->memory->identity.kind, OBJECT_ANON);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end_sleeper(f->child);
	unlink(f->path);
	rmdir(f->folder);
	jitdumps_fini(&f->dumps);
	maps_free(f->maps);
	objects_free(f->objects);
	free(f);
	return 0;
}

static void assert_at(struct fixture *f, struct object *object, uint64_t addr, const char *name)
{
	struct jitdumps_symbol s;
	bool found = !jitdumps_find(&f->dumps, object, addr, &s);

	assert_int_equal(found, name != NULL);
	if (name)
		assert_string_equal(s.name, name);
}

static void assert_why(const struct object *object, const char *reason)
{
	const char *why = atomic_load(&object->reason);

	if (!reason)
		assert_null(why);
	else if (!why || strcmp(why, reason))
		fail_msg("'%s', not '%s'", reason, why ? why : "(nothing)");
}

TEST(test_grows, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t now = time_now_ns();

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE + 63, "one");
	assert_at(f, f->memory, CODE + 64, NULL);
	assert_string_equal(atomic_load(&f->memory->source), "jitdump");
	/* It has nothing new, then it has. */
	assert_int_equal(jitdumps_refresh(&f->dumps, now + SECOND), OBJECT_ID_UNKNOWN);
	assert_why(f->memory, "code missing in its jitdump");
	jit_load(&made, "two", CODE + 64, 64, 200);
	write_file(f, O_APPEND);
	assert_int_equal(jitdumps_refresh(&f->dumps, now + 2 * SECOND), f->memory->id);
	assert_at(f, f->memory, CODE + 64, "two");
	assert_true(atomic_load(&f->dumps.memory) > 0);
	/* The program has written a block of its buffer, which ends in front of a name. */
	assert_at(f, f->memory, CODE + 128, NULL);
	jit_load(&made, "three", CODE + 128, 64, 300);
	made.size = 24;
	write_file(f, O_APPEND);
	jitdumps_refresh(&f->dumps, now + 4 * SECOND);
	assert_at(f, f->memory, CODE + 128, NULL);
	jitdumps_refresh(&f->dumps, now + 6 * SECOND);
	assert_why(f->memory, "the end of its jitdump is not written yet");
	assert_string_equal(atomic_load(&f->memory->fix), JIT_LAST_BLOCK);
}

/* The address is used again at 300: earlier samples keep their name. */
TEST(test_layers, setup, teardown)
{
	struct fixture *f = *state;
	struct object *later;

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	jit_load(&made, "two", CODE + 32, 64, 300);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, "one");
	assert_ptr_equal(object_at(f, CODE + 32, 299), f->memory);
	later = object_at(f, CODE + 32, 300);
	assert_ptr_not_equal(later, f->memory);
	assert_ptr_equal(jitdumps_base(&f->dumps, later), f->memory);
	assert_ptr_equal(object_at(f, CODE + 31, 1000), f->memory);
	assert_ptr_equal(object_at(f, CODE + 96, 1000), f->memory);
	assert_at(f, f->memory, CODE + 40, "one");
	assert_at(f, later, CODE + 40, "two");
	/*
	 * Protection changed (mprotect is reported as a mapping), and the memory read from /proc.
	 */
	tell_mmap(f, f->child, "//anon", CODE, 400);
	maps_publish(f->maps, 400, UINT64_MAX);
	assert_ptr_equal(object_at(f, CODE + 32, 500), later);
	assert_ptr_equal(object_at(f, CODE, 500), f->memory);
	/* A file mapped there is another matter. */
	tell_mmap(f, f->child, f->path, CODE, 600);
	maps_publish(f->maps, 600, UINT64_MAX);
	assert_int_equal(object_at(f, CODE + 32, 700)->identity.kind, OBJECT_FILE);
}

/* Load @size bytes of @code. */
static void load_code(const char *name, uint64_t addr, const char *code, uint32_t size,
		      uint64_t time_ns)
{
	jit_load(&made, name, addr, size, time_ns);
	memcpy(made.bytes + made.size - size, code, size);
}

/* Return the derived frame at @addr; NULL: there is none. */
static const struct codemap_code *frame_at(const struct object *object, uint64_t addr)
{
	const struct codemap *map = atomic_load(&object->codemap);
	const struct codemap_code *code = map && map->derived ? codemap_find(map, addr) : NULL;

	return code && code->kind == CODEMAP_DERIVED ? code : NULL;
}

/* Frames are derived from the code of functions with samples, in each layer. */
TEST(test_frames, setup, teardown)
{
	/* push %rbp; sub $16,%rsp; call *%rsi; add $16,%rsp; pop %rbp; ret */
	static const char small[] = "\x55\x48\x83\xec\x10\xff\xd6\x48\x83\xc4\x10\x5d\xc3";
	static const char large[] = "\x55\x48\x83\xec\x20\xff\xd6\x48\x83\xc4\x20\x5d\xc3";
	/* It has no return: push %rbp; jmp. */
	static const char endless[] = "\x55\xeb\xfe";
	struct fixture *f = *state;
	struct object *later;
	const struct codemap *map;

	jit_header(&made, 0);
	load_code("one", CODE, small, 13, 100);
	load_code("endless", CODE + 64, endless, 3, 150);
	load_code("two", CODE, large, 13, 300);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE + 7, "one");
	assert_null(frame_at(f->memory, CODE + 7)); /* not wanted */
	later = object_at(f, CODE, 300);
	atomic_store(&f->memory->codemap_wanted, true);
	assert_at(f, f->memory, CODE + 7, "one");
	assert_non_null(frame_at(f->memory, CODE + 7));
	assert_int_equal(frame_at(f->memory, CODE + 7)->derived.cfa, 32);
	assert_int_equal(frame_at(f->memory, CODE + 7)->derived.ra, -8);
	assert_int_equal(frame_at(f->memory, CODE + 7)->derived.fp, -16);
	assert_int_equal(frame_at(f->memory, CODE)->derived.fp, 0);
	/* The same again has no new map. */
	map = atomic_load(&f->memory->codemap);
	assert_at(f, f->memory, CODE + 6, "one");
	assert_ptr_equal(atomic_load(&f->memory->codemap), map);
	/* Code without a proof is known, as a guess; after a while it is published. */
	assert_at(f, f->memory, CODE + 65, "endless");
	jitdumps_refresh(&f->dumps, time_now_ns() + SECOND);
	assert_null(frame_at(f->memory, CODE + 65));
	assert_non_null(codemap_find(atomic_load(&f->memory->codemap), CODE + 65));
	assert_non_null(frame_at(f->memory, CODE + 7));
	/* Code that took its place has other frames. */
	assert_at(f, later, CODE + 7, "two");
	assert_null(frame_at(later, CODE + 7));
	atomic_store(&later->codemap_wanted, true);
	assert_at(f, later, CODE + 7, "two");
	assert_int_equal(frame_at(later, CODE + 7)->derived.cfa, 48);
	assert_int_equal(frame_at(f->memory, CODE + 7)->derived.cfa, 32);
}

/* The map of a JVM is not replaced, nor is there room in the last layer, which forgets code. */
TEST(test_frames_of_others, setup, teardown)
{
	struct fixture *f = *state;
	struct codemap *map = codemap_new(0, 0, 0);

	jit_header(&made, 0);
	load_code("one", CODE, "\xc3", 1, 100);
	load_code("two", CODE + 64, "\xc3", 1, 100);
	write_file(f, O_APPEND);
	atomic_store(&f->memory->codemap_wanted, true);
	assert_at(f, f->memory, CODE, "one");
	assert_non_null(frame_at(f->memory, CODE));
	codemap_reclaim(codemap_publish(f->memory, map));
	assert_at(f, f->memory, CODE + 64, "two");
	jitdumps_refresh(&f->dumps, time_now_ns() + SECOND);
	assert_ptr_equal(atomic_load(&f->memory->codemap), map);
	assert_at(f, f->memory, CODE, "one");
	assert_ptr_equal(atomic_load(&f->memory->codemap), map);
	codemap_publish(f->memory, NULL);
	codemap_reclaim(map);
}

/* An answer of a worker is foreign: frames outside the function, or in disorder, are left out. */
TEST(test_wrong_frames)
{
	const struct derive_frame answer[] = {
		{ .start = 0, .size = 4, .cfa = 8, .ra = -8 },
		{ .start = 2, .size = 4, .cfa = 8, .ra = -8 }, /* over the one before */
		{ .start = 8, .size = 0, .cfa = 8, .ra = -8 },
		{ .start = 8, .size = 4, .cfa = 1 << 20, .ra = -8 },
		{ .start = 8, .size = 4, .cfa = 9, .ra = -8 },
		{ .start = 12, .size = UINT32_MAX, .cfa = 8, .ra = -8 },
		{ .start = 12, .size = 4, .cfa = 16, .ra = -8, .by_fp = 1 },
		{ .start = 64, .size = 4, .cfa = 8, .ra = -8 }, /* behind it */
	};
	const struct sandbox_answer a = { .bytes = (uint8_t *)(uintptr_t)answer,
					  .size = sizeof(answer) + 5 };
	struct jitdump_frames x = { .nr = 0 };

	insert_frames(&x, &(struct jitcode_function){ .start = CODE + 64, .size = 64 }, &a);
	insert_frames(&x, &(struct jitcode_function){ .start = CODE, .size = 64 }, &a);
	assert_int_equal(x.nr, 4);
	for (uint32_t i = 0; i < x.nr; i++) {
		assert_int_equal(x.codes[i].start, CODE + 64 * (i / 2) + 12 * (i % 2));
		assert_int_equal(x.codes[i].derived.cfa, 8 + 8 * (i % 2));
		assert_int_equal(x.codes[i].derived.by_fp, i % 2);
	}
	free(x.codes);
}

TEST(test_lines_and_code, setup, teardown)
{
	const struct jit_line lines[] = { { CODE + 4, 3, "/src/a.js" },
					  { CODE + 16, 4, "/src/a.js" } };
	struct fixture *f = *state;
	uint8_t *bytes;
	const char *file;
	uint32_t line;
	uint64_t size;
	uint16_t machine;

	jit_header(&made, 0);
	jit_lines(&made, CODE, lines, 2);
	jit_load(&made, "one", CODE, 64, 100);
	jit_load(&made, "two", CODE, 64, 200);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, "one");
	assert_true(jitdumps_line(&f->dumps, f->memory, CODE + 17, &file, &line));
	assert_string_equal(file, "/src/a.js");
	assert_int_equal(line, 4);
	assert_false(jitdumps_line(&f->dumps, f->memory, CODE + 3, &file, &line));
	/* By name, not by the code now at the address. */
	assert_int_equal(jitdumps_code(&f->dumps, f->memory, CODE, keyhash_name("one", 3), &bytes,
				       16, &size, &machine),
			 16);
	assert_int_equal(size, 64);
	assert_int_equal(machine, EM_X86_64);
	assert_int_equal(bytes[1], 'o' + 1);
	free(bytes);
	assert_int_equal(jitdumps_code(&f->dumps, f->memory, CODE, keyhash_name("two", 3), &bytes,
				       64, &size, &machine),
			 64);
	assert_int_equal(bytes[0], 't');
	free(bytes);
	assert_int_equal(jitdumps_code(&f->dumps, f->memory, CODE, 1, &bytes, 64, &size, &machine),
			 -ENOENT);
}

/* The file of a process that has ended is read to its end, kept for a while, and closed. */
TEST(test_ended_process, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t now = time_now_ns(), size;
	uint16_t machine;
	uint8_t *bytes;

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, "one");
	jitdumps_refresh(&f->dumps, now + SECOND);
	assert_int_equal(f->dumps.nr_open, 1);
	jit_load(&made, "last", CODE + 64, 64, 200);
	write_file(f, O_APPEND);
	end_sleeper(f->child);
	jitdumps_refresh(&f->dumps, now + 20 * SECOND);
	assert_at(f, f->memory, CODE + 64, "last");
	assert_int_equal(jitdumps_code(&f->dumps, f->memory, CODE, keyhash_name("one", 3), &bytes,
				       64, &size, &machine),
			 64);
	free(bytes);
	jitdumps_refresh(&f->dumps, now + 79 * SECOND);
	assert_int_equal(f->dumps.nr_open, 1);
	jitdumps_refresh(&f->dumps, now + 81 * SECOND);
	assert_int_equal(f->dumps.nr_open, 0);
	/* The names are known for ten minutes. */
	jitdumps_refresh(&f->dumps, now + 600 * SECOND);
	assert_at(f, f->memory, CODE, "one");
	assert_at(f, f->memory, CODE + 64, "last");
	assert_at(f, f->memory, CODE + 128, NULL);
	assert_int_equal(jitdumps_code(&f->dumps, f->memory, CODE, keyhash_name("one", 3), &bytes,
				       64, &size, &machine),
			 -ENOENT);
	assert_int_equal(f->dumps.nr_open, 0);
	assert_true(atomic_load(&f->dumps.memory) > 0);
	jitdumps_refresh(&f->dumps, now + 621 * SECOND);
	assert_int_equal(f->dumps.nr_entries, 0);
	assert_int_equal(atomic_load(&f->dumps.memory), 0);
	assert_at(f, f->memory, CODE, NULL);
	jitdumps_refresh(&f->dumps, now + 1300 * SECOND);
	assert_int_equal(f->dumps.nr_entries, 1);
	jitdumps_refresh(&f->dumps, now + 1901 * SECOND);
	assert_int_equal(f->dumps.nr_entries, 0);
}

/* Map @nr files with the names of jitdumps in @pid, or each in a process that has ended. */
static void map_many(struct fixture *f, pid_t pid, unsigned int nr, uint64_t first_ino)
{
	struct stat st = f->st;
	char path[64];

	for (unsigned int i = 0; i < nr; i++) {
		f->st.st_ino = first_ino + i;
		snprintf(path, sizeof(path), "/tmp/jit-%u.dump", i);
		tell_mmap(f, pid ? pid : (pid_t)(0x70000000 + i), path, 0x10000, 3 + i);
	}
	maps_publish(f->maps, 3 + nr, UINT64_MAX);
	f->st = st;
	jitdumps_refresh(&f->dumps, time_now_ns());
}

/* Names that runtimes give their files, and some that only t_look so: the pid is the last number.
 */
TEST(test_file_names, setup, teardown)
{
	static const struct {
		const char *before, *after; /* the pid */
		bool taken;
	} names[] = {
		{ "", ".dump", true },
		{ "99-", ".dump", true },
		{ "99-", "-9D83Xy", true },
		{ "99-", "-000000", true },
		{ "", "-99.dump", false },
		{ "99-", "-9D83Xyz", false },
		{ "99-", "-9D83X", false },
		{ "99-", "-", false },
		{ "99-", "", false },
		{ "", "", false },
		{ "-", ".dump", false },
		{ "99-98-", ".dump", false },
		{ "99-", "-9D83Xy.dump", false },
		{ "x", ".dump", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct fixture *f = *state;

		unlink(f->path);
		snprintf(f->path, sizeof(f->path), "%s/jit-%s%d%s", f->folder, names[i].before,
			 f->child, names[i].after);
		jit_header(&made, 0);
		jit_load(&made, "one", CODE, 64, 100);
		write_file(f, 0);
		stat(f->path, &f->st);
		maps_on_comm(f->maps, f->child, f->child, "jit", 4, true, 100 * i + 10);
		tell_mmap(f, f->child, "//anon", CODE, 100 * i + 11);
		tell_mmap(f, f->child, f->path, 0x10000, 100 * i + 12);
		maps_publish(f->maps, 100 * i + 12, UINT64_MAX);
		f->memory = object_at(f, CODE, 100 * i + 13);
		print_message("%s\n", f->path);
		assert_at(f, f->memory, CODE, names[i].taken ? "one" : NULL);
	}
}

/* Files that only have such names do not hide a jitdump: of one process, of ended ones. */
TEST(test_many_files, setup, teardown)
{
	struct fixture *f = *state;
	pid_t first = f->child, other = sleeper(0);

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	map_many(f, other, 5000, 1ULL << 40);
	assert_in_range(f->dumps.nr_files, 2, 100);
	map_many(f, 0, 10000, 1ULL << 41);
	assert_in_range(f->dumps.nr_files, 2, 4096);
	assert_at(f, f->memory, CODE, "one");
	/* The real one, after the others. */
	unlink(f->path);
	f->child = other;
	snprintf(f->path, sizeof(f->path), "%s/jit-%d.dump", f->folder, other);
	jit_header(&made, 0);
	jit_load(&made, "two", CODE, 64, 100);
	write_file(f, 0);
	stat(f->path, &f->st);
	maps_on_comm(f->maps, other, other, "jit", 4, true, 20000);
	tell_mmap(f, other, "//anon", CODE, 20001);
	tell_mmap(f, other, f->path, 0x10000, 20002);
	maps_publish(f->maps, 20003, UINT64_MAX);
	assert_at(f, object_at(f, CODE, 20004), CODE, "two");
	end_sleeper(first);
}

/* A table full of processes has room for one more; one with a jitdump does not leave. */
TEST(test_many_processes, setup, teardown)
{
	struct fixture *f = *state;
	struct jitdumps_symbol s;

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, "one");
	for (uint32_t i = 0; i < JITDUMPS_MAX + 10; i++) {
		const struct object_identity id = { .kind = OBJECT_ANON, .owner = 1ULL << 40 | i };
		struct object *o =
			objects_intern(f->objects, &id, "//anon", 6, (pid_t)(0x70000000 + i), 0, 0);

		/* It is searched: not refused. */
		atomic_store(&o->used, 100 + i);
		jitdumps_find(&f->dumps, o, CODE, &s);
		assert_true(o->id < f->dumps.nr_by_object && f->dumps.by_object[o->id]);
	}
	assert_int_equal(f->dumps.nr_entries, JITDUMPS_MAX);
	assert_at(f, f->memory, CODE, "one");
}

/* One user takes three quarters of the open files and of the memory. */
TEST(test_user)
{
	static struct jitdumps_entry all[JITDUMPS_OPEN_MAX];
	struct jitdumps_entry *entries[JITDUMPS_OPEN_MAX];
	struct jitdumps j = { .entries = entries };

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(all); i++) {
		entries[i] = &all[i];
		all[i].uid = i == ARRAY_SIZE(all) - 1 ? 1001 : 1000;
	}
	j.nr_entries = ARRAY_SIZE(all);
	for (uint32_t i = 0; jitdumps_may_open(&j, &all[i]); i++) {
		all[i].held = true;
		j.nr_open++;
	}
	assert_int_equal(j.nr_open, JITDUMPS_OPEN_MAX / 4 * 3);
	assert_true(jitdumps_may_open(&j, entries[ARRAY_SIZE(all) - 1]));
	for (uint32_t i = 0; !jitdumps_is_full(&j, &all[i]); i++) {
		all[i].memory = 16 << 20;
		j.memory += all[i].memory;
	}
	assert_int_equal(j.memory, JITDUMPS_MEMORY_MAX / 4 * 3);
	assert_false(jitdumps_is_full(&j, entries[ARRAY_SIZE(all) - 1]));
	j.memory = JITDUMPS_MEMORY_MAX;
	assert_true(jitdumps_is_full(&j, entries[ARRAY_SIZE(all) - 1]));
	j.nr_open = JITDUMPS_OPEN_MAX;
	assert_false(jitdumps_may_open(&j, entries[ARRAY_SIZE(all) - 1]));
}

/* Not of this process, by name or by mapping. */
TEST(test_not_mine, setup, teardown)
{
	struct fixture *f = *state;
	pid_t other = sleeper(0);
	struct object *memory;

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	/* A mapping by another process takes nothing away, and gives it nothing. */
	maps_on_comm(f->maps, other, other, "other", 6, true, 1);
	tell_mmap(f, other, "//anon", CODE, 2);
	assert_at(f, f->memory, CODE, "one");
	tell_mmap(f, other, f->path, 0x10000, 3);
	maps_publish(f->maps, 3, UINT64_MAX);
	memory = objects_at(f->objects, objects_nr(f->objects) - 1);
	assert_int_equal(memory->identity.kind, OBJECT_ANON);
	assert_at(f, memory, CODE, NULL);
	end_sleeper(other);
}

TEST(test_refused, setup, teardown)
{
	struct fixture *f = *state;
	char second[80];

	if (geteuid())
		skip_test("not permitted: root only");
	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	assert_int_equal(chown(f->path, 12345, 0), 0);
	assert_at(f, f->memory, CODE, NULL);
	assert_why(f->memory, "its jitdump belongs to another user");
	assert_int_equal(chown(f->path, 0, 0), 0);
	snprintf(second, sizeof(second), "%s/second", f->folder);
	assert_int_equal(link(f->path, second), 0);
	jitdumps_fini(&f->dumps);
	jitdumps_init(&f->dumps, f->objects, f->maps, &f->reads, &f->stop);
	assert_at(f, f->memory, CODE, NULL);
	assert_why(f->memory, "its jitdump has no name, or more than one");
	unlink(second);
}

TEST(test_damaged, setup, teardown)
{
	struct fixture *f = *state;

	made.size = 0;
	jit_put(&made, "not at all what it should be, and long enough to see that", 57);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, NULL);
	assert_why(f->memory, "its jitdump is damaged");
}

/* Begun again by a process that got the same pid, or by the same one. */
TEST(test_begun_anew, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t now = time_now_ns();

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	assert_at(f, f->memory, CODE, "one");
	assert_at(f, f->memory, CODE + 100, NULL);
	jit_header(&made, 0);
	jit_load(&made, "1", CODE + 100, 4, 100);
	write_file(f, O_TRUNC);
	assert_int_equal(jitdumps_refresh(&f->dumps, now + 2 * SECOND), f->memory->id);
	assert_at(f, f->memory, CODE + 100, "1");
	assert_at(f, f->memory, CODE, NULL);
}

/* A recording: the jitdump is read immediately, each of its records applies from its time. */
TEST(test_recording, setup, teardown)
{
	struct fixture *f = *state;
	struct object *later;

	maps_no_proc(f->maps);
	f->dumps.no_proc = true;
	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	for (uint64_t i = 0; i < 2000; i++) { /* more than a space remembers */
		char name[16];

		snprintf(name, sizeof(name), "x%llu", (unsigned long long)i);
		jit_load(&made, name, CODE + (i % 40) * 64, 4, 1000 + i);
		if (made.size > sizeof(made.bytes) - 200)
			write_file(f, O_APPEND);
	}
	write_file(f, O_APPEND);
	jitdumps_refresh(&f->dumps, 0);
	maps_publish(f->maps, 100, UINT64_MAX);
	assert_ptr_equal(object_at(f, CODE, 999), f->memory);
	assert_at(f, f->memory, CODE, "one");
	assert_false(maps_due(f->maps, 999));
	assert_true(maps_due(f->maps, 1000));
	maps_publish(f->maps, 1000, UINT64_MAX);
	assert_false(maps_due(f->maps, 1039));
	later = object_at(f, CODE, 1000);
	assert_ptr_not_equal(later, f->memory);
	assert_at(f, later, CODE, "x0");
	maps_publish(f->maps, 1500, UINT64_MAX);
	assert_at(f, object_at(f, CODE + 64, 1500), CODE + 64, "x481");
}

TEST(test_other_clock, setup, teardown)
{
	struct fixture *f = *state;

	maps_no_proc(f->maps);
	f->dumps.no_proc = f->dumps.other_clock = true;
	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	jit_load(&made, "two", CODE, 64, 300);
	write_file(f, O_APPEND);
	jitdumps_refresh(&f->dumps, 0);
	maps_publish(f->maps, 1000, UINT64_MAX);
	assert_ptr_equal(object_at(f, CODE, 1000), f->memory);
	assert_at(f, f->memory, CODE, "one");
}

TEST(test_stopping, setup, teardown)
{
	struct fixture *f = *state;

	jit_header(&made, 0);
	jit_load(&made, "one", CODE, 64, 100);
	write_file(f, O_APPEND);
	atomic_store(&f->stop, true);
	assert_at(f, f->memory, CODE, NULL);
	assert_int_equal(jitdumps_refresh(&f->dumps, time_now_ns() + SECOND), OBJECT_ID_UNKNOWN);
}

/* A thread that looks at one number of a descriptor, as a program that is started would get it. */
struct looking {
	int fd;
	atomic_bool stop, seen, inherited;
};

static void *t_look(void *arg)
{
	struct looking *l = arg;

	while (!l->stop) {
		int flags = fcntl(l->fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			l->inherited = true;
		if (flags >= 0)
			l->seen = true;
	}
	return NULL;
}

/* While code is read, which may hang, no program that is started gets the descriptor. */
TEST(test_not_inherited)
{
	const uint64_t end_ns = time_now_ns() + 20 * SECOND;
	const uint32_t size = 1U << 20;
	const struct jitcode_function function = { .bytes_at = 0, .size = size };
	struct looking l = { .fd = -1 };
	int fd = memfd_create("code", MFD_CLOEXEC);
	pthread_t thread;

	assert_int_equal(ftruncate(fd, size), 0);
	l.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the next one */
	close(l.fd);
	assert_int_equal(pthread_create(&thread, NULL, t_look, &l), 0);
	while (!l.seen && time_now_ns() < end_ns) {
		uint8_t *bytes;

		assert_int_equal(jitdump_job_code(NULL, fd, &function, size, &bytes), size);
		free(bytes);
	}
	l.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(l.seen);
	assert_false(l.inherited);
	close(fd);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
