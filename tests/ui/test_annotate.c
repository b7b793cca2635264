// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One function, instruction by instruction: lines without gaps from any
 * bytes, samples where they belong, and the keys of the view.
 */
#include "golden.h"

#include "ui/disasm.h"
#include "ui/view_annotate.h"

/* push rbp; mov rsp,rbp; 4: add $1,eax; cmp $9,eax; jne 4; call +0; pop rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x83, 0xc0, 0x01, 0x83, 0xf8, 0x09, 0x75,
				0xf8, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x5d, 0xc3 };

static struct profile_annotate *annotate_new(uint32_t function, bool bytes)
{
	static const struct {
		uint64_t at;
		uint32_t event;
		double count;
	} points[] = { { 4, 0, 30 }, { 7, 0, 60 }, { 10, 0, 10 }, { 4, 1, 500 } };
	struct profile_annotate *a = calloc(1, sizeof(*a));

	a->function = function;
	a->vaddr = 0x1000;
	a->size = sizeof(code);
	a->machine = PROFILE_MACHINE_X86_64;
	a->points = calloc(ARRAY_SIZE(points), sizeof(*a->points));
	a->nr_points = ARRAY_SIZE(points);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		a->points[i] = (struct profile_point){ 0x1000 + points[i].at, points[i].event,
						       points[i].count, points[i].count };
	if (!bytes) {
		a->why = "the file cannot be read";
		return a;
	}
	a->code = malloc(sizeof(code));
	memcpy(a->code, code, sizeof(code));
	a->nr_code = sizeof(code);
	return a;
}

static struct profile *profile_with(bool bytes)
{
	struct profile *p = fake_profile(2, NULL);

	p->annotate = annotate_new(12, bytes);
	return p;
}

/* Whatever the bytes are, lines follow each other and cover all of them. */
static void test_any_bytes(void **state)
{
	struct profile_annotate a = { .vaddr = 0x400000 };
	struct disasm d = { .nr = 0 };
	uint8_t bytes[200];

	srand(3);
	a.code = bytes;
	for (int round = 0; round < 600; round++) {
		uint64_t at = a.vaddr;

		a.machine = (enum profile_machine)(round % 3);
		a.nr_code = (uint32_t)(rand() % (int)sizeof(bytes)) + 1;
		for (uint32_t i = 0; i < a.nr_code; i++)
			bytes[i] = (uint8_t)rand();
		assert_int_equal(disasm_update(&d, &a), 0);
		assert_true(d.nr > 0);
		for (uint32_t i = 0; i < d.nr; i++) {
			assert_int_equal(d.lines[i].vaddr, at);
			assert_true(d.lines[i].size > 0);
			assert_int_equal(disasm_at(&d, at), i);
			assert_int_equal(disasm_at(&d, at + d.lines[i].size - 1u), i);
			at += d.lines[i].size;
			for (const char *c = disasm_text(&d, &d.lines[i]); *c; c++)
				assert_true(*c >= ' ' && *c <= '~');
			if (d.lines[i].target != DISASM_NONE)
				assert_true(d.lines[i].target < d.nr);
		}
		assert_int_equal(at, a.vaddr + a.nr_code);
		assert_int_equal(disasm_at(&d, at), DISASM_NONE);
		assert_int_equal(disasm_at(&d, a.vaddr - 1), DISASM_NONE);
	}
	disasm_fini(&d);
}

static double share_at(const struct bench *b, uint32_t offset)
{
	const struct list *list = &b->st.lists[VIEW_ANNOTATE];

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].id == offset)
			return list->rows[i].self;
	return -1;
}

static void test_view(void **state)
{
	struct list *list;
	struct bench b;

	bench_init(&b, 80, 24, false);
	ui_state_take(&b.st, profile_with(true));
	press(&b, 'j');
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].selected, 12);
	press(&b, 'a');
	assert_int_equal(b.sampler.annotate, 12);
	ui_state_take(&b.st, profile_with(true));
	list = &b.st.lists[VIEW_ANNOTATE];
	assert_true(share_at(&b, 7) > 0.599 && share_at(&b, 7) < 0.601);
	assert_true(share_at(&b, 4) > 0.299 && share_at(&b, 4) < 0.301);
	assert_true(list->count == 100);
	/* The first look is at the hottest; Tab goes on to colder ones, and round. */
	assert_int_equal(list->selected, 7);
	press(&b, K_TAB);
	assert_int_equal(list->selected, 4);
	press(&b, K_TAB);
	assert_int_equal(list->selected, 10);
	press(&b, K_BACKTAB);
	assert_int_equal(list->selected, 4);
	press(&b, K_TAB);
	press(&b, K_TAB);
	assert_int_equal(list->selected, 7);
	/* It stays there when a tick comes. */
	ui_state_take(&b.st, profile_with(true));
	assert_int_equal(list->selected, 7);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_int_equal(b.sampler.annotate, UINT32_MAX);
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].selected, 12);
	bench_fini(&b);
}

#ifdef HAVE_CAPSTONE
static void test_jump(void **state)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	ui_state_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	ui_state_take(&b.st, profile_with(true));
	golden(&b, "annotate-80x24");
	press(&b, K_TAB);
	press(&b, K_TAB);
	assert_int_equal(b.st.lists[VIEW_ANNOTATE].selected, 10);
	press(&b, K_ENTER);
	assert_int_equal(b.st.lists[VIEW_ANNOTATE].selected, 4);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "no jump"));
	bench_fini(&b);
	bench_init(&b, 40, 8, true);
	ui_state_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	ui_state_take(&b.st, profile_with(true));
	golden(&b, "annotate-40x8-ascii");
	bench_fini(&b);
}
#endif

/* Without code the reason stands there, and nothing breaks. */
static void test_no_code(void **state)
{
	static const uint32_t keys[] = { K_TAB, K_BACKTAB, K_ENTER, 'P', 'n', 'G', 'a', 'd' };
	struct bench b;

	bench_init(&b, 80, 24, false);
	ui_state_take(&b.st, profile_with(false));
	press(&b, 'j');
	press(&b, 'a');
	assert_non_null(strstr(look(&b), "the file cannot be read"));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		press(&b, keys[i]);
		look(&b);
	}
	/* A profile of another function, and one of none. */
	b.st.annotate.function = 13;
	list_rebuild(&b.st, VIEW_ANNOTATE);
	assert_non_null(strstr(look(&b), "being read"));
	ui_state_take(&b.st, fake_profile(2, NULL));
	look(&b);
	bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_view),
#ifdef HAVE_CAPSTONE
		cmocka_unit_test(test_jump),
#endif
		cmocka_unit_test(test_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
