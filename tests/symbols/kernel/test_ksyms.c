// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ksyms: code that is loaded, unloaded and replaced, against a model of addresses; invalid records;
 * the names that naming makes.
 */
#include "symbols/kernel/kernel.c"

#include "tests/prelude.h"

#include <unistd.h>

#include "symbols/name/name.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/java/java.h"
#include "symbols/name/naming.h"

static uint32_t ksyms_nr(struct ksyms *k)
{
	uint32_t nr;

	pthread_mutex_lock(&k->lock);
	nr = k->nr;
	pthread_mutex_unlock(&k->lock);
	return nr;
}

#define SPACE 2000U
#define CODE  0xffffffffc0000000ULL

/* Of each address the last record counts. */
TEST(test_model)
{
	static int painted[SPACE];
	struct ksyms_symbol s;
	struct ksyms *k;
	char name[16];

	memset(painted, 0, sizeof(painted));
	assert_int_equal(ksyms_new(&k), 0);
	srand(2);
	for (int i = 1; i < 1500; i++) {
		uint32_t size = 1 + (uint32_t)rand() % 30,
			 start = (uint32_t)rand() % (SPACE - size);

		snprintf(name, sizeof(name), "p%d", i);
		/* Partly replaced code is gone as a whole. */
		for (uint32_t at = start; at < start + size; at++)
			for (uint32_t j = 0; painted[at] && j < SPACE; j++)
				if (painted[j] == painted[at] && j != at)
					painted[j] = 0;
		for (uint32_t at = start; at < start + size; at++)
			painted[at] = i;
		ksyms_add(k, CODE + start, size, KSYMS_BPF, name, strlen(name));
	}
	for (uint32_t at = 0; at < SPACE; at++) {
		bool found = ksyms_find(k, CODE + at, &s);

		assert_int_equal(found, painted[at] != 0);
		snprintf(name, sizeof(name), "p%d", painted[at]);
		if (found)
			assert_string_equal(s.name, name);
	}
	ksyms_free(k);
}

TEST(test_news)
{
	uint64_t start, end;
	struct ksyms_symbol s;
	struct ksyms *k;

	assert_int_equal(ksyms_new(&k), 0);
	assert_false(ksyms_take_news(k, &start, &end));
	ksyms_add(k, CODE + 64, 64, KSYMS_BPF, "one", 3);
	ksyms_add(k, CODE + 1024, 64, KSYMS_OUT_OF_LINE, "two", 3);
	assert_true(ksyms_take_news(k, &start, &end));
	assert_int_equal(start, CODE + 64);
	assert_int_equal(end, CODE + 1088);
	assert_false(ksyms_take_news(k, &start, &end));
	/* Unloaded code keeps its name: its samples are still shown. */
	ksyms_remove(k, CODE + 64, 64);
	assert_true(ksyms_find(k, CODE + 64, &s));
	assert_true(s.gone);
	ksyms_remove(k, CODE + 1024, 32);
	assert_true(ksyms_find(k, CODE + 1024, &s));
	assert_false(s.gone);
	ksyms_free(k);
}

TEST(test_refused)
{
	char longer[2 * KSYMS_NAME_MAX];
	struct ksyms_symbol s;
	struct ksyms *k;

	assert_int_equal(ksyms_new(&k), 0);
	ksyms_add(k, CODE, 0, KSYMS_BPF, "x", 1);
	ksyms_add(k, CODE, KSYMS_SIZE_MAX + 1, KSYMS_BPF, "x", 1);
	ksyms_add(k, UINT64_MAX - 4, 16, KSYMS_BPF, "x", 1);
	ksyms_add(k, CODE, 16, KSYMS_BPF, "", 0);
	assert_int_equal(ksyms_nr(k), 0);
	memset(longer, 'y', sizeof(longer));
	ksyms_add(k, CODE, 16, KSYMS_BPF, longer, sizeof(longer));
	assert_true(ksyms_find(k, CODE, &s));
	assert_int_equal(s.name_size, KSYMS_NAME_MAX - 1);
	for (uint64_t i = 0; i < KSYMS_MAX + 100ULL; i++)
		ksyms_add(k, CODE + 16 * i, 16, KSYMS_BPF, "x", 1);
	assert_int_equal(ksyms_nr(k), KSYMS_MAX);
	ksyms_free(k);
}

static const struct symbol *t_name_of(struct naming *n, struct symtab *t, uint64_t addr)
{
	const struct naming_question q = { .object = OBJECT_ID_KERNEL,
					   .offset = addr,
					   .now = true };
	struct naming_answer a;

	assert_int_equal(naming_find(n, &q, &a), 0);
	return symtab_at(t, a.symbol);
}

/* Recorded names are better than listed ones, and two programs of one address are two rows. */
TEST(test_naming)
{
	const char list[] = "ffffffffc0000000 t listed [bpf]\n";
	char path[] = "/tmp/test_ksyms.XXXXXX";
	int fd = mkstemp(path);
	const struct symbol *one, *two;
	struct naming n;
	struct objects *objects;
	struct symtab *t;
	atomic_bool stop = false;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, sizeof(list) - 1), sizeof(list) - 1);
	close(fd);
	assert_int_equal(objects_new(&objects), 0);
	assert_int_equal(symtab_new(&t), 0);
	naming_init(&n, objects, t, &stop);
	assert_int_equal(ksyms_new(&n.kernel.ksyms), 0);
	n.kernel.path = path;
	atomic_store(&objects_at(objects, OBJECT_ID_KERNEL)->state, OBJECT_READY);
	assert_string_equal(t_name_of(&n, t, CODE + 8)->name.str, "listed");
	ksyms_add(n.kernel.ksyms, CODE, 64, KSYMS_BPF, "bpf_prog_1_one", 14);
	one = t_name_of(&n, t, CODE + 8);
	assert_string_equal(one->name.str, "bpf_prog_1_one");
	assert_string_equal(one->module.str, "[bpf]");
	assert_int_equal(one->kind, 'k');
	ksyms_add(n.kernel.ksyms, CODE, 64, KSYMS_OUT_OF_LINE, "trampoline", 10);
	two = t_name_of(&n, t, CODE + 8);
	assert_string_equal(two->name.str, "trampoline");
	assert_string_equal(two->module.str, "[kernel]");
	assert_ptr_not_equal(one, two);
	naming_fini(&n);
	symtab_free(t);
	objects_free(objects);
	unlink(path);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
