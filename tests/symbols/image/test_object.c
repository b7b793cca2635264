// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * object: when two sightings are one object, stable addresses, and readers beside a writer.
 * Live: takes about a second of CPU time, or more.
 */
#include "symbols/image/image_cache.c"

#include "tests/prelude.h"

#include <pthread.h>

#include "symbols/image/internal.h"
#include "tests/unhash.h"
#include "symbols/base/base.h"

static struct object *sight(struct objects *d, const struct object_identity *id, const char *path,
			    pid_t pid)
{
	return objects_intern(d, id, path, strlen(path), pid, 0x1000, 0x2000);
}

static struct object_identity file(uint64_t ino, uint64_t generation)
{
	return (struct object_identity){
		.kind = OBJECT_FILE,
		.maj = 8,
		.min = 1,
		.ino = ino,
		.ino_generation = generation,
	};
}

TEST(test_fixed_ids)
{
	struct object_identity kernel = { .kind = OBJECT_KERNEL }, vdso = { .kind = OBJECT_VDSO };
	struct object_identity unknown = { .kind = OBJECT_UNKNOWN };
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST);
	assert_ptr_equal(sight(d, &kernel, "[kernel.kallsyms]_text", 1),
			 objects_at(d, OBJECT_ID_KERNEL));
	assert_ptr_equal(sight(d, &vdso, "[vdso]", 1), objects_at(d, OBJECT_ID_VDSO));
	assert_ptr_equal(sight(d, &unknown, "x", 1), objects_at(d, OBJECT_ID_UNKNOWN));
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST);
	assert_string_equal(objects_at(d, OBJECT_ID_KERNEL)->name.str, "[kernel]");
	assert_string_equal(objects_at(d, OBJECT_ID_VDSO)->name.str, "[vdso]");
	assert_string_equal(objects_at(d, OBJECT_ID_UNKNOWN)->name.str, "[unknown]");
	assert_null(objects_at(d, OBJECT_ID_FIRST));
	assert_null(objects_at(d, UINT32_MAX));
	objects_free(d);
}

TEST(test_inode_not_path)
{
	struct object_identity a = file(100, 1), b = file(101, 1), c = file(100, 1);
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	c.min = 2;
	x = sight(d, &a, "/usr/lib/libfoo.so", 10);
	assert_ptr_equal(sight(d, &a, "/mnt/other/libfoo.so", 11), x);
	y = sight(d, &b, "/usr/lib/libfoo.so", 10);
	assert_ptr_not_equal(y, x);
	assert_ptr_not_equal(sight(d, &c, "/usr/lib/libfoo.so", 10), x);
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 3);
	assert_string_equal(x->name.str, "libfoo.so");
	assert_string_equal(x->path.str, "/usr/lib/libfoo.so");
	assert_int_equal(atomic_load(&x->state), OBJECT_NEW);
	objects_free(d);
}

/* An unknown generation equals any; a known one does not equal another. */
TEST(test_generations)
{
	struct object_identity any = file(100, 0), first = file(100, 5), second = file(100, 6);
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &any, "/a", 1);
	assert_ptr_equal(sight(d, &first, "/a", 1), x); /* learns that it is generation 5 */
	y = sight(d, &second, "/a", 1);
	assert_ptr_not_equal(y, x);
	assert_ptr_equal(sight(d, &first, "/a", 1), x);
	assert_ptr_equal(sight(d, &any, "/a", 1), y); /* the newest is the one in /proc now */
	objects_free(d);
}

/* Read from /proc, then from the file: a file that has its inode number later is another object. */
TEST(test_generation_of_file)
{
	struct object_identity any = file(100, 0), first = file(100, 5), second = file(100, 6);
	struct object_sighting seen;
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &any, "/a", 1);
	assert_true(objects_note_generation(d, x, 0));
	assert_true(objects_note_generation(d, x, 5));
	objects_sighting(d, x, &seen);
	assert_int_equal(seen.generation, 5);
	free(seen.path);
	y = sight(d, &second, "/a", 1);
	assert_ptr_not_equal(y, x);
	assert_ptr_equal(sight(d, &first, "/a", 1), x);
	assert_ptr_equal(sight(d, &any, "/a", 1), y);
	/* Another file was read. */
	assert_false(objects_note_generation(d, y, 5));
	assert_true(objects_note_generation(d, y, 6));
	objects_free(d);
}

#define NR_GENERATIONS 2000u

/* CPU time of NR_GENERATIONS sightings of one inode, each of another generation. */
static uint64_t generations_ns(struct objects *d, uint64_t first)
{
	uint64_t begin_ns = time_thread_ns();

	for (uint64_t i = first; i < first + NR_GENERATIONS; i++) {
		struct object_identity id = file(100, i);

		sight(d, &id, "/a", 1);
	}
	return time_thread_ns() - begin_ns;
}

/*
 * A file system that gives the same inode number to each new file: the last cost no more than the
 * first. The cheapest of the last tries counts, as others use the machine as well.
 */
TEST(test_many_generations)
{
	struct object_identity any = file(100, 0), early = file(100, 7);
	uint64_t first_ns, ns, last_ns = UINT64_MAX;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	first_ns = generations_ns(d, 1);
	for (uint64_t i = 1; i < 100; i++) {
		ns = generations_ns(d, 1 + i * NR_GENERATIONS);
		if (i >= 90)
			last_ns = MIN(last_ns, ns);
	}
	if (last_ns > 5 * first_ns + 20000000)
		fail_msg("%u generations took %u us at first, at the end %u us", NR_GENERATIONS,
			 (unsigned int)(first_ns / 1000), (unsigned int)(last_ns / 1000));
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 100 * NR_GENERATIONS);
	assert_int_equal(sight(d, &early, "/a", 1)->id, OBJECT_ID_FIRST + 6);
	assert_int_equal(sight(d, &any, "/a", 1)->id, OBJECT_ID_FIRST + 100 * NR_GENERATIONS - 1);
	objects_free(d);
}

#define CHOSEN 10000U
#define GOLDEN 0x9e3779b97f4a7c15ULL

/* Add scripts, and return the CPU time: @chosen such that their paths have one hash without a key.
 */
static uint64_t add_scripts(bool chosen)
{
	const struct object_identity id = { .kind = OBJECT_SCRIPT };
	uint64_t start_ns = time_thread_ns();
	char path[UNHASH_SIZE + 1];
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	for (uint32_t i = 0; i < CHOSEN; i++) {
		if (!chosen)
			snprintf(path, sizeof(path), "script_%09u", i);
		else if (!unhash_name(path, "s_", i, hash_u64(GOLDEN + OBJECT_SCRIPT), 16))
			continue;
		sight(d, &id, path, 1);
	}
	assert_in_range(objects_nr(d), CHOSEN / 2, CHOSEN + OBJECT_ID_FIRST);
	objects_free(d);
	return time_thread_ns() - start_ns;
}

/* The same by the generations of one inode, which a file system in user space chooses. */
static uint64_t add_generations(bool chosen)
{
	uint64_t start_ns = time_thread_ns(), before = hash_u64(GOLDEN + OBJECT_FILE);
	struct objects *d;

	before = hash_u64(hash_u64(before ^ 100) ^ (8ULL << 32 | 1));
	assert_int_equal(objects_new(&d), 0);
	for (uint32_t i = 1; i <= CHOSEN; i++) {
		struct object_identity id = file(100, chosen ? unhash_number(before, i) : i);

		sight(d, &id, "/a", 1);
	}
	assert_int_equal(objects_nr(d), CHOSEN + OBJECT_ID_FIRST);
	objects_free(d);
	return time_thread_ns() - start_ns;
}

/* A process that chooses its files makes no look-up slow: all threads wait for the table. */
TEST(test_chosen_hashes)
{
	unhash_compare("scripts", add_scripts);
	unhash_compare("generations", add_generations);
}

/* Files with paths of 4,000 bytes: the paths take no more than 64 MiB, the rest keep a name. */
TEST(test_long_paths)
{
	static char path[4001];
	struct object_sighting seen;
	struct objects *d;
	size_t sum = 0;

	assert_int_equal(objects_new(&d), 0);
	memset(path, 'x', 4000);
	path[0] = path[3900] = '/';
	for (uint64_t i = 1; i <= 20000; i++) {
		struct object_identity id = file(i, 1);
		struct object *object = sight(d, &id, path, 1);

		assert_ptr_equal(sight(d, &id, path, 2), object);
		assert_int_equal(object->name.size, i * 4000 < 64 << 20 ? 99 : 64);
		objects_sighting(d, object, &seen);
		assert_int_equal(seen.pid, 2);
		sum += strlen(seen.path);
		free(seen.path);
	}
	assert_in_range(sum, 60 << 20, 66 << 20);
	objects_free(d);
}

TEST(test_build_id_and_path)
{
	struct object_identity a = { .kind = OBJECT_FILE,
				     .build_id = { 1, 2 },
				     .build_id_size = 2 };
	struct object_identity b = { .kind = OBJECT_FILE,
				     .build_id = { 1, 3 },
				     .build_id_size = 2 };
	struct object_identity none = { .kind = OBJECT_FILE }, ino = file(7, 0);
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &a, "/a", 1);
	assert_ptr_equal(sight(d, &a, "/b", 1), x);
	assert_ptr_not_equal(sight(d, &b, "/a", 1), x);
	y = sight(d, &none, "/a", 1);
	assert_ptr_not_equal(y, x);
	assert_ptr_equal(sight(d, &none, "/a", 2), y);
	assert_ptr_not_equal(sight(d, &none, "/ab", 2), y);
	ino.build_id_size = 200; /* more than there is: cut, not read */
	assert_ptr_equal(sight(d, &ino, "/c", 1), sight(d, &ino, "/c", 1));
	objects_free(d);
}

TEST(test_anonymous_by_owner)
{
	struct object_identity a = { .kind = OBJECT_ANON, .owner = 1 },
			       b = { .kind = OBJECT_ANON, .owner = 2 };
	struct object *x;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &a, "//anon", 1);
	assert_ptr_equal(sight(d, &a, "[heap]", 1), x);
	assert_ptr_not_equal(sight(d, &b, "//anon", 2), x);
	assert_string_equal(x->name.str, "[anon]");
	assert_int_equal(atomic_load(&x->state), OBJECT_FAILED);
	assert_false(object_want(x));
	objects_free(d);
}

TEST(test_sightings_and_names)
{
	static const char long_path[8192] = "/";
	struct object_identity a = file(1, 0), b = file(2, 0), c = file(3, 0), e = file(4, 0);
	struct object_sighting seen;
	struct object *x;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &a, "/x/one", 5);
	objects_intern(d, &a, "/proc/7/root/x/one", 18, 7, 0x5000, 0x6000);
	objects_sighting(d, x, &seen);
	assert_int_equal(seen.pid, 7);
	assert_true(seen.start == 0x5000 && seen.end == 0x6000);
	assert_string_equal(seen.path, "/proc/7/root/x/one");
	free(seen.path);
	/* Not NUL-terminated, hostile, empty, absent. */
	x = objects_intern(d, &b, "/y/evil\x1b[2Jname", 11, 1, 0, 0);
	assert_string_equal(x->name.str, "evil\u00b7[2J");
	assert_string_equal(objects_intern(d, &c, NULL, 0, 1, 0, 0)->name.str, "[unnamed]");
	assert_string_equal(objects_intern(d, &e, long_path, sizeof(long_path), 1, 0, 0)->name.str,
			    "/");
	objects_free(d);
}

TEST(test_want_once)
{
	struct object_identity a = file(1, 0);
	struct objects *d;
	struct object *x;

	assert_int_equal(objects_new(&d), 0);
	x = sight(d, &a, "/a", 1);
	assert_true(object_want(x));
	assert_false(object_want(x));
	assert_int_equal(atomic_load(&x->state), OBJECT_WANTED);
	assert_int_equal(objects_take_wanted(d), x->id);
	assert_int_equal(objects_take_wanted(d), OBJECT_ID_UNKNOWN);
	/* It was read, and evicted. */
	atomic_store(&x->state, OBJECT_NEW);
	assert_true(object_want(x));
	assert_int_equal(objects_take_wanted(d), x->id);
	objects_free(d);
}

#define NR_OBJECTS 20000U

/* A reader: every object that it may know of is whole and does not move. */
static void *read_all(void *arg)
{
	struct objects *d = arg;
	uint32_t nr = 0;

	while (nr < NR_OBJECTS + OBJECT_ID_FIRST) {
		nr = objects_nr(d);
		for (uint32_t id = nr > 50 ? nr - 50 : 0; id < nr; id++) {
			const struct object *object = objects_at(d, id);

			if (!object || object->id != id || !object->name.size ||
			    (id >= OBJECT_ID_FIRST && object->identity.ino != id))
				return "an object that is not whole";
		}
	}
	return NULL;
}

TEST(test_readers_beside_a_writer)
{
	pthread_t readers[3];
	struct objects *d;
	struct object *first;

	assert_int_equal(objects_new(&d), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, d), 0);
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		struct object_identity id = file(OBJECT_ID_FIRST + i, 1);

		assert_int_equal(sight(d, &id, "/lib/x", 1)->id, OBJECT_ID_FIRST + i);
	}
	for (size_t i = 0; i < 3; i++) {
		void *problem;

		pthread_join(readers[i], &problem);
		assert_null(problem);
	}
	first = objects_at(d, OBJECT_ID_FIRST);
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		struct object_identity id = file(OBJECT_ID_FIRST + i, 0);

		assert_ptr_equal(sight(d, &id, "/lib/x", 1), objects_at(d, OBJECT_ID_FIRST + i));
	}
	assert_ptr_equal(first, objects_at(d, OBJECT_ID_FIRST));
	objects_free(d);
}

static atomic_bool wanted[NR_OBJECTS + OBJECT_ID_FIRST];

static void *want_all(void *arg)
{
	struct objects *d = arg;

	for (uint32_t id = OBJECT_ID_FIRST; id < NR_OBJECTS; id++)
		if (id % 2 && object_want(objects_at(d, id)) && atomic_exchange(&wanted[id], true))
			return "requested twice";
	return NULL;
}

/* Threads request every other object: each is taken once, the others never. */
TEST(test_requests_beside_the_loader)
{
	pthread_t threads[3];
	uint32_t id, nr = 0, rounds = 0;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		struct object_identity identity = file(OBJECT_ID_FIRST + i, 1);

		sight(d, &identity, "/lib/x", 1);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, want_all, d), 0);
	while (nr < (NR_OBJECTS - OBJECT_ID_FIRST) / 2 && rounds++ < 1000000000) {
		id = objects_take_wanted(d);
		if (id == OBJECT_ID_UNKNOWN)
			continue;
		assert_int_equal(id % 2, 1);
		assert_int_equal(atomic_exchange(&objects_at(d, id)->state, OBJECT_READY),
				 OBJECT_WANTED);
		nr++;
	}
	for (size_t i = 0; i < 3; i++) {
		void *problem;

		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
	while (objects_take_wanted(d) != OBJECT_ID_UNKNOWN)
		nr++;
	assert_int_equal(nr, (NR_OBJECTS - OBJECT_ID_FIRST + 1) / 2);
	objects_free(d);
}

static struct object *hold(struct objects *d, const struct object_identity *id)
{
	return objects_hold(d, id, "/tmp/x", 6, 1, 0x1000, 0x2000);
}

/* Also with the latest time of a recording (PERFDATA_TIME_MAX) a sampled object is kept. */
TEST(test_sampled_at_any_time)
{
	static const uint64_t times[] = { 0, 1, 1ULL << 30, UINT64_MAX / 4, UINT64_MAX };
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct object_identity id = file(i + 1, 0);
		struct object *object = hold(d, &id);

		assert_int_not_equal(object_clock(times[i]), 0);
		object_touch(object, object_clock(times[i]));
		object_put(object);
		assert_int_equal(object->id, OBJECT_ID_FIRST + i);
		assert_string_equal(object->name.str, "x");
	}
	objects_free(d);
}

/* Without a reference an object leaves, unless a sample was in it; then its id is another's. */
TEST(test_leaves)
{
	struct object_identity a = file(1, 5), b = file(2, 6), c = file(3, 0);
	struct object *x, *y, *z;
	struct objects *d;
	uint32_t id;

	assert_int_equal(objects_new(&d), 0);
	x = hold(d, &a);
	y = hold(d, &b);
	id = x->id;
	assert_ptr_equal(hold(d, &a), x);
	object_put(x);
	assert_ptr_equal(hold(d, &a), x);
	object_put(x);
	object_get(x);
	object_put(x);
	/* The last one. */
	object_put(x);
	z = hold(d, &c);
	assert_int_equal(z->id, id);
	assert_int_equal(z->identity.ino, 3);
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 2);
	assert_int_equal(objects_nr_added(d), OBJECT_ID_FIRST + 3);
	/* The file of before is a new one; neither hash finds the object that left. */
	assert_ptr_not_equal(hold(d, &a), z);
	object_touch(y, 1);
	object_put(y);
	assert_ptr_equal(hold(d, &b), y);
	object_put(y);
	assert_true(object_want(z));
	object_put(z);
	assert_ptr_equal(hold(d, &c), z);
	/* Its image was evicted: a stub is left. */
	atomic_store(&z->state, OBJECT_NEW);
	atomic_store(&z->image, (const struct image *)z);
	object_put(z);
	assert_ptr_equal(hold(d, &c), z);
	assert_ptr_equal(atomic_load(&z->image), z);
	atomic_store(&z->image, NULL);
	objects_free(d);
}

/* One that is found for good is kept, as are the objects that each table has. */
TEST(test_kept)
{
	struct object_identity a = file(1, 0), kernel = { .kind = OBJECT_KERNEL };
	struct object_identity memory = { .kind = OBJECT_ANON, .owner = 7 };
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = hold(d, &a);
	assert_ptr_equal(sight(d, &a, "/tmp/x", 1), x);
	object_put(x);
	assert_ptr_equal(hold(d, &a), x);
	object_put(hold(d, &kernel));
	object_put(NULL);
	assert_string_equal(objects_at(d, OBJECT_ID_KERNEL)->name.str, "[kernel]");
	y = hold(d, &memory);
	object_put(y);
	assert_int_equal(hold(d, &memory)->id, y->id);
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 2);
	objects_free(d);
}

/* Requested with the other mappings of a sampled process, and unmapped before it was read. */
TEST(test_drop_wanted)
{
	struct object_identity a = file(1, 0), b = file(2, 0), c = file(3, 0);
	struct object *x, *y, *z;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = hold(d, &a);
	y = hold(d, &b);
	z = hold(d, &c);
	assert_true(object_want(x) && object_want(y) && object_want(z));
	while (objects_take_wanted(d) != OBJECT_ID_UNKNOWN)
		;
	object_put(y);
	object_touch(z, 1);
	object_put(z);
	assert_false(objects_drop_wanted(d, x));
	assert_true(objects_drop_wanted(d, y));
	assert_false(objects_drop_wanted(d, y));
	assert_false(objects_drop_wanted(d, z));
	assert_ptr_equal(hold(d, &c), z);
	assert_ptr_equal(hold(d, &b), y);
	assert_int_equal(atomic_load(&y->state), OBJECT_NEW);
	objects_free(d);
}

/* A storm of new files, each mapped for a moment, needs one entry. */
TEST(test_storm)
{
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	for (uint64_t i = 1; i < 1200000; i++) {
		struct object_identity id = file(i % 1000 + 1, i);

		object_put(hold(d, &id));
	}
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 1);
	objects_free(d);
}

/* All objects are listed once, and do not leave before they were taken out. */
TEST(test_list)
{
	struct object_identity a = file(1, 0), b = file(2, 0);
	struct object *x, *y;
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	x = hold(d, &a);
	assert_null(objects_next_new(d));
	objects_list_new(d);
	y = hold(d, &b);
	object_put(x);
	object_put(y);
	assert_ptr_equal(objects_next_new(d), x);
	assert_ptr_equal(objects_next_new(d), y);
	assert_null(objects_next_new(d));
	assert_ptr_equal(hold(d, &a), x);
	object_put(x);
	object_put(x);
	object_put(y);
	hold(d, &a);
	hold(d, &b);
	assert_int_equal(objects_nr(d), OBJECT_ID_FIRST + 2);
	objects_free(d);
}

#define NR_FILES 300u

/* Hold and drop files at random, several at a time. */
static void *hold_some(void *arg)
{
	struct objects *d = arg;
	struct object *held[8] = { NULL };
	uint64_t random = (uintptr_t)&held;

	for (uint32_t i = 0; i < 200000; i++) {
		struct object_identity id;
		uint32_t at = i % ARRAY_SIZE(held);

		object_put(held[at]);
		random = hash_u64(random + i);
		id = file(random % NR_FILES + 1, 0);
		held[at] = hold(d, &id);
		if (held[at]->identity.ino != id.ino)
			return "another file";
	}
	for (uint32_t at = 0; at < ARRAY_SIZE(held); at++)
		object_put(held[at]);
	return NULL;
}

TEST(test_leaves_beside_others)
{
	pthread_t threads[4];
	struct objects *d;

	assert_int_equal(objects_new(&d), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hold_some, d), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		void *problem;

		pthread_join(threads[i], &problem);
		if (problem)
			fail_msg("%s", (const char *)problem);
	}
	assert_in_range(objects_nr(d), OBJECT_ID_FIRST + 1, OBJECT_ID_FIRST + 8 * 4);
	objects_free(d);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
