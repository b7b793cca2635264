// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dso: what makes two sightings one object, stable addresses, and readers
 * beside a writer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dso.h"

static struct dso *see(struct dsos *d, const struct dso_identity *id, const char *path, pid_t pid)
{
	return dsos_intern(d, id, path, strlen(path), pid, 0x1000, 0x2000);
}

static struct dso_identity file(uint64_t ino, uint64_t generation)
{
	return (struct dso_identity){
		.kind = DSO_FILE, .maj = 8, .min = 1, .ino = ino, .ino_generation = generation,
	};
}

static void test_fixed_ids(void **state)
{
	struct dso_identity kernel = { .kind = DSO_KERNEL }, vdso = { .kind = DSO_VDSO };
	struct dso_identity unknown = { .kind = DSO_UNKNOWN };
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	assert_int_equal(dsos_nr(d), DSO_ID_FIRST);
	assert_ptr_equal(see(d, &kernel, "[kernel.kallsyms]_text", 1), dsos_at(d, DSO_ID_KERNEL));
	assert_ptr_equal(see(d, &vdso, "[vdso]", 1), dsos_at(d, DSO_ID_VDSO));
	assert_ptr_equal(see(d, &unknown, "x", 1), dsos_at(d, DSO_ID_UNKNOWN));
	assert_int_equal(dsos_nr(d), DSO_ID_FIRST);
	assert_string_equal(dsos_at(d, DSO_ID_KERNEL)->name.str, "[kernel]");
	assert_string_equal(dsos_at(d, DSO_ID_VDSO)->name.str, "[vdso]");
	assert_string_equal(dsos_at(d, DSO_ID_UNKNOWN)->name.str, "[unknown]");
	assert_null(dsos_at(d, DSO_ID_FIRST));
	assert_null(dsos_at(d, UINT32_MAX));
	dsos_free(d);
}

static void test_inode_not_path(void **state)
{
	struct dso_identity a = file(100, 1), b = file(101, 1), c = file(100, 1);
	struct dso *x, *y;
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	c.min = 2;
	x = see(d, &a, "/usr/lib/libfoo.so", 10);
	assert_ptr_equal(see(d, &a, "/mnt/other/libfoo.so", 11), x);
	y = see(d, &b, "/usr/lib/libfoo.so", 10);
	assert_ptr_not_equal(y, x);
	assert_ptr_not_equal(see(d, &c, "/usr/lib/libfoo.so", 10), x);
	assert_int_equal(dsos_nr(d), DSO_ID_FIRST + 3);
	assert_string_equal(x->name.str, "libfoo.so");
	assert_string_equal(x->path.str, "/usr/lib/libfoo.so");
	assert_int_equal(atomic_load(&x->state), DSO_NEW);
	dsos_free(d);
}

/* An unknown generation equals any; a known one does not equal another. */
static void test_generations(void **state)
{
	struct dso_identity any = file(100, 0), first = file(100, 5), second = file(100, 6);
	struct dso *x, *y;
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	x = see(d, &any, "/a", 1);
	assert_ptr_equal(see(d, &first, "/a", 1), x);	/* learns that it is generation 5 */
	y = see(d, &second, "/a", 1);
	assert_ptr_not_equal(y, x);
	assert_ptr_equal(see(d, &first, "/a", 1), x);
	assert_ptr_equal(see(d, &any, "/a", 1), y);	/* the newest is what /proc shows now */
	dsos_free(d);
}

static void test_build_id_and_path(void **state)
{
	struct dso_identity a = { .kind = DSO_FILE, .build_id = { 1, 2 }, .build_id_size = 2 };
	struct dso_identity b = { .kind = DSO_FILE, .build_id = { 1, 3 }, .build_id_size = 2 };
	struct dso_identity none = { .kind = DSO_FILE }, ino = file(7, 0);
	struct dso *x, *y;
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	x = see(d, &a, "/a", 1);
	assert_ptr_equal(see(d, &a, "/b", 1), x);
	assert_ptr_not_equal(see(d, &b, "/a", 1), x);
	y = see(d, &none, "/a", 1);
	assert_ptr_not_equal(y, x);
	assert_ptr_equal(see(d, &none, "/a", 2), y);
	assert_ptr_not_equal(see(d, &none, "/ab", 2), y);
	ino.build_id_size = 200;	/* more than there is: cut, not read */
	assert_ptr_equal(see(d, &ino, "/c", 1), see(d, &ino, "/c", 1));
	dsos_free(d);
}

static void test_anonymous_by_owner(void **state)
{
	struct dso_identity a = { .kind = DSO_ANON, .owner = 1 }, b = { .kind = DSO_ANON, .owner = 2 };
	struct dso *x;
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	x = see(d, &a, "//anon", 1);
	assert_ptr_equal(see(d, &a, "[heap]", 1), x);
	assert_ptr_not_equal(see(d, &b, "//anon", 2), x);
	assert_string_equal(x->name.str, "[anon]");
	assert_int_equal(atomic_load(&x->state), DSO_FAILED);
	assert_false(dso_want(x));
	dsos_free(d);
}

static void test_sightings_and_names(void **state)
{
	static const char long_path[8192] = "/";
	struct dso_identity a = file(1, 0), b = file(2, 0), c = file(3, 0), e = file(4, 0);
	struct dso_sighting seen;
	struct dso *x;
	struct dsos *d;

	assert_int_equal(dsos_new(&d), 0);
	x = see(d, &a, "/x/one", 5);
	dsos_intern(d, &a, "/proc/7/root/x/one", 18, 7, 0x5000, 0x6000);
	dsos_sighting(d, x, &seen);
	assert_int_equal(seen.pid, 7);
	assert_true(seen.start == 0x5000 && seen.end == 0x6000);
	assert_string_equal(seen.path, "/proc/7/root/x/one");
	free(seen.path);
	/* Not NUL-terminated, hostile, empty, absent. */
	x = dsos_intern(d, &b, "/y/evil\x1b[2Jname", 11, 1, 0, 0);
	assert_string_equal(x->name.str, "evil\u00b7[2J");
	assert_string_equal(dsos_intern(d, &c, NULL, 0, 1, 0, 0)->name.str, "[unnamed]");
	assert_string_equal(dsos_intern(d, &e, long_path, sizeof(long_path), 1, 0, 0)->name.str,
			    "/");
	dsos_free(d);
}

static void test_want_once(void **state)
{
	struct dso_identity a = file(1, 0);
	struct dsos *d;
	struct dso *x;

	assert_int_equal(dsos_new(&d), 0);
	x = see(d, &a, "/a", 1);
	assert_true(dso_want(x));
	assert_false(dso_want(x));
	assert_int_equal(atomic_load(&x->state), DSO_WANTED);
	dsos_free(d);
}

#define NR_OBJECTS 20000U

/* A reader: every object that it may know of is whole and stays where it is. */
static void *read_all(void *arg)
{
	struct dsos *d = arg;
	uint32_t nr = 0;

	while (nr < NR_OBJECTS + DSO_ID_FIRST) {
		nr = dsos_nr(d);
		for (uint32_t id = nr > 50 ? nr - 50 : 0; id < nr; id++) {
			const struct dso *dso = dsos_at(d, id);

			if (!dso || dso->id != id || !dso->name.size ||
			    (id >= DSO_ID_FIRST && dso->identity.ino != id))
				return "an object that is not whole";
		}
	}
	return NULL;
}

static void test_readers_beside_a_writer(void **state)
{
	pthread_t readers[3];
	struct dsos *d;
	struct dso *first;

	assert_int_equal(dsos_new(&d), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, d), 0);
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		struct dso_identity id = file(DSO_ID_FIRST + i, 1);

		assert_int_equal(see(d, &id, "/lib/x", 1)->id, DSO_ID_FIRST + i);
	}
	for (size_t i = 0; i < 3; i++) {
		void *problem;

		pthread_join(readers[i], &problem);
		assert_null(problem);
	}
	first = dsos_at(d, DSO_ID_FIRST);
	for (uint32_t i = 0; i < NR_OBJECTS; i++) {
		struct dso_identity id = file(DSO_ID_FIRST + i, 0);

		assert_ptr_equal(see(d, &id, "/lib/x", 1), dsos_at(d, DSO_ID_FIRST + i));
	}
	assert_ptr_equal(first, dsos_at(d, DSO_ID_FIRST));
	dsos_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed_ids),
		cmocka_unit_test(test_inode_not_path),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_build_id_and_path),
		cmocka_unit_test(test_anonymous_by_owner),
		cmocka_unit_test(test_sightings_and_names),
		cmocka_unit_test(test_want_once),
		cmocka_unit_test(test_readers_beside_a_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
