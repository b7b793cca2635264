// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One function, instruction by instruction: lines without gaps from any
 * bytes, samples at their instructions, and the keys of the view.
 */
#include "symbols/code/code.c"

#include "tests/ui/golden.h"

#include <elf.h>

#include "ui/internal.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/state/state.h"

/* push rbp; mov rsp,rbp; 4: add $1,eax; cmp $9,eax; jne 4; call 2011; pop rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x83, 0xc0, 0x01, 0x83, 0xf8, 0x09,
				0x75, 0xf8, 0xe8, 0x00, 0x10, 0x00, 0x00, 0x5d, 0xc3 };

/* The call goes to this address. */
static uint32_t name_at(void *ctx, uint64_t vaddr, char *buf, size_t size)
{
	if (vaddr != 0x2011)
		return LISTING_NONE;
	snprintf(buf, size, "json::next_token");
	return 77;
}

static const char source[] = "1\n2\n3\nvoid parse(int n)\n{\n\twhile (n++ != 9)\n\t\t;\n"
			     "\t/* the rest */\n\tnext_token();\n}\n";

/* The lines of the instructions, as a compiler might write them. */
static void t_add_lines(struct listing *l)
{
	static const uint32_t lines[] = { 5, 5, 6, 6, 6, 9, 10, 10 };
	struct source_want want = { .path = "/src/json/parser.cc", .first = 5, .last = 10 };

	l->files = calloc(1, sizeof(*l->files));
	l->nr_files = 1;
	l->files[0].path = listing_add_text(l, want.path, strlen(want.path));
	source_parse(l, &l->files[0], &want, source, sizeof(source) - 1);
	for (uint32_t i = 0; i < l->nr_insns && i < ARRAY_SIZE(lines); i++) {
		l->insns[i].file = 0;
		l->insns[i].line = lines[i];
	}
}

static struct listing *listing_of(uint32_t function, bool bytes, bool lines)
{
	const struct disasm_code c = { .bytes = code,
				       .nr_bytes = sizeof(code),
				       .vaddr = 0x1000,
				       .machine = EM_X86_64,
				       .wide = true,
				       .name = name_at };
	struct listing *l = listing_new(function);

	l->vaddr = 0x1000;
	l->size = sizeof(code);
	if (!bytes) {
		l->why = "the file cannot be read";
		l->fix = "let it be readable";
		return l;
	}
	l->nr_bytes = sizeof(code);
	assert_int_equal(disasm(l, &c, 1), 0);
	if (lines)
		t_add_lines(l);
	else
		l->no_source = "no debug information";
	return l;
}

static struct profile_annotate *annotate_new(uint32_t function, bool bytes, bool lines)
{
	static const struct {
		uint64_t at;
		uint32_t event;
		double count;
		uint32_t task;
	} points[] = { { 4, 0, 30, 900 },
		       { 7, 0, 20, 900 },
		       { 7, 0, 40, 901 },
		       { 10, 0, 10, 901 },
		       { 4, 1, 500, 900 } };
	struct profile_annotate *a = calloc(1, sizeof(*a));

	a->function = function;
	a->points = calloc(ARRAY_SIZE(points), sizeof(*a->points));
	a->nr_points = ARRAY_SIZE(points);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		a->points[i] = (struct profile_point){ .vaddr = 0x1000 + points[i].at,
						       .event = points[i].event,
						       .count = points[i].count,
						       .weight = points[i].count,
						       .task = points[i].task,
						       .total = points[i].count };
	a->listing = listing_of(function, bytes, lines);
	return a;
}

static struct profile *profile_of_function(uint32_t function, bool bytes, bool lines)
{
	struct profile *p = fake_profile(2, NULL);

	p->annotate = annotate_new(function, bytes, lines);
	return p;
}

static struct profile *profile_with(bool bytes)
{
	return profile_of_function(12, bytes, false);
}

static double share_at(const struct bench *b, uint32_t offset)
{
	const struct list *list = &b->st.lists[VIEW_ANNOTATE];

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].id == offset)
			return list->rows[i].self;
	return -1;
}

TEST(test_view)
{
	struct list *list;
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].selected, 12);
	press(&b, 'a');
	assert_int_equal(b.sampler.annotate, 12);
	model_take(&b.st, profile_with(true));
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
	/* It does not move with a tick. */
	model_take(&b.st, profile_with(true));
	assert_int_equal(list->selected, 7);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_int_equal(b.sampler.annotate, UINT32_MAX);
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].selected, 12);
	bench_fini(&b);
}

#ifdef HAVE_CAPSTONE
TEST(test_jump)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	model_take(&b.st, profile_with(true));
	golden(&b, "annotate-80x24");
	press(&b, K_TAB);
	press(&b, K_TAB);
	assert_int_equal(b.st.lists[VIEW_ANNOTATE].selected, 10);
	press(&b, K_ENTER);
	assert_int_equal(b.st.lists[VIEW_ANNOTATE].selected, 4);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "not a jump"));
	/* Instructions have one order; by share the hottest is at the top. */
	press(&b, 'I');
	assert_false(b.st.lists[VIEW_ANNOTATE].inverted);
	assert_non_null(strstr(look(&b), "cannot be reversed"));
	press(&b, 'P');
	press(&b, 'I');
	assert_true(b.st.lists[VIEW_ANNOTATE].inverted);
	bench_fini(&b);
	bench_init(&b, 40, 8, true);
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	model_take(&b.st, profile_with(true));
	golden(&b, "annotate-40x8-ascii");
	bench_fini(&b);
}
#endif

/* An inlined function: the function it is part of, and its share of the samples. */
TEST(test_inlined)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	for (int i = 0; i < 2; i++) {
		struct profile *p = profile_with(true);

		p->annotate->code_of = 13;
		strcpy(p->annotate->inside, "json::next_token");
		p->annotate->inside_share = 0.77;
		model_take(&b.st, p);
		if (i)
			break;
		press(&b, 'j');
		press(&b, 'a');
	}
	assert_non_null(strstr(look(&b), "its part of json::next_token, where 77% of its samples "
					 "are"));
	assert_int_equal((int)(share_at(&b, 4) * 1000 + 0.5), 300);
	bench_fini(&b);
}

/* Esc clears filter and search, then leaves. */
TEST(test_escape)
{
	const struct list *list;
	struct bench b;
	uint32_t nr;

	bench_init(&b, 80, 24, false);
	list = &b.st.lists[VIEW_ANNOTATE];
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	model_take(&b.st, profile_with(true));
	nr = list->nr;
	assert_true(nr > 0);
	press(&b, '\\');
	type(&b, "nowhere");
	press(&b, K_ENTER);
	assert_int_equal(list->nr, 0);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_ANNOTATE);
	assert_int_equal(list->nr, nr);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

/* Keys of functions are about the annotated one; the delay of the settings is not the mode. */
TEST(test_function_keys)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	press(&b, K_F(2));
	type(&b, "delay");
	press(&b, K_ENTER);
	assert_int_equal(b.st.prompt.kind, PROMPT_DELAY);
	press(&b, K_ESC);
	assert_int_equal(b.st.annotate.mode, ANNOTATE_BOTH);
	press(&b, 'b');
	assert_int_equal(b.st.view, VIEW_CALLERS);
	assert_int_equal(b.st.folds->centres[b.st.folds->nr_centres - 1], 12);
	/* From there the same function, and back to its callers. */
	press(&b, 'a');
	assert_int_equal(b.st.annotate.function, 12);
	press(&b, 'b');
	assert_int_equal(b.st.view, VIEW_CALLERS);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	press(&b, 'a');
	press(&b, 'v');
	assert_int_equal(b.st.view, VIEW_FLAME);
	assert_non_null(strstr(look(&b), "zoom "));
	bench_fini(&b);
}

/* Inside a process only its samples count, and the title and the foot say so. */
TEST(test_drilled)
{
	struct bench b;

	for (int known = 0; known < 2; known++) {
		bench_init(&b, 100, 24, false);
		model_take(&b.st, profile_with(known));
		navigate_into_process(&b.st, b.st.shown->processes[0].id);
		press(&b, 'j');
		view_annotate_open(&b.st, 12, "f");
		model_take(&b.st, profile_with(known));
		assert_int_equal((int)b.st.lists[VIEW_ANNOTATE].count, 50);
		assert_non_null(strstr(look(&b), b.st.scope.process_name));
		if (known) {
			assert_int_equal((int)(share_at(&b, 4) * 1000 + 0.5), 600);
			assert_non_null(strstr(look(&b), "50 here, of "));
			assert_null(strstr(look(&b), "all processes"));
		}
		bench_fini(&b);
	}
}

/* The foot names the user that is shown. */
TEST(test_of_user)
{
	struct bench b;

	bench_init(&b, 100, 24, false);
	model_take(&b.st, profile_with(true));
	press(&b, 'j');
	press(&b, 'a');
	assert_non_null(strstr(look(&b), "100 here, of all processes"));
	b.st.scope.by_user = true;
	b.st.scope.uid = 4711;
	folds_forget(b.st.folds);
	table_rebuild(&b.st, VIEW_ANNOTATE);
	assert_non_null(strstr(look(&b), "0 here, of user 4711;"));
	bench_fini(&b);
}

/* Without a disassembler there are bytes, and the way to instructions. */
TEST(test_no_disassembler)
{
	struct profile *p = profile_with(true);
	struct bench b;

	p->annotate->listing->fix = "install libcapstone";
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	press(&b, 'j');
	press(&b, 'a');
	assert_non_null(strstr(look(&b), "install libcapstone"));
	bench_fini(&b);
}

/* Without code the reason is shown, and nothing breaks. */
TEST(test_no_code)
{
	static const uint32_t keys[] = { K_TAB, K_BACKTAB, K_ENTER, 'P', 'n', 'G', 'a', 'd' };
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, profile_with(false));
	press(&b, 'j');
	press(&b, 'a');
	assert_non_null(strstr(look(&b), "the file cannot be read"));
	golden(&b, "annotate-no-code-80x24");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		press(&b, keys[i]);
		look(&b);
	}
	/* A profile of another function, and one of none. */
	b.st.annotate.function = 13;
	table_rebuild(&b.st, VIEW_ANNOTATE);
	assert_non_null(strstr(look(&b), "being read"));
	model_take(&b.st, fake_profile(2, NULL));
	look(&b);
	bench_fini(&b);
}

/* A function of a script, or with @why none of its lines. */
static struct profile *profile_of_script(const char *why)
{
	static const char text[] = "def total(self):\n    for x in self:\n        add(x)\n";
	const struct source_want want = { .first = 1, .last = 3 };
	struct profile *p = fake_profile(2, NULL);
	struct profile_annotate *a = calloc(1, sizeof(*a));
	struct listing *l = listing_new(12);

	a->function = 12;
	a->listing = l;
	a->points = calloc(2, sizeof(*a->points));
	a->nr_points = 2;
	a->points[0] = (struct profile_point){ 2, 0, 10, 10, 900, 25 };
	a->points[1] = (struct profile_point){ 3, 0, 0, 0, 900, 75 };
	l->script = true;
	l->size = UINT32_MAX;
	l->why = why;
	l->fix = why ? "do this" : NULL;
	if (!why) {
		l->files = calloc(1, sizeof(*l->files));
		l->nr_files = 1;
		l->files[0].path = listing_add_text(l, "/srv/shop.py", 12);
		l->files[0].newer = true;
		source_parse(l, &l->files[0], &want, text, sizeof(text) - 1);
		for (uint32_t i = 0; i < 3; i++) {
			struct listing_insn *insn = listing_add_insn(l, i + 1, 1);

			insn->file = 0;
			insn->line = i + 1;
		}
		l->vaddr = 1;
		l->size = 3;
	}
	p->annotate = a;
	return p;
}

/* Lines with self and total shares; no instructions in any mode. */
TEST(test_script)
{
	struct bench b;

	bench_init(&b, 100, 24, true);
	model_take(&b.st, profile_of_script(NULL));
	press(&b, 'j');
	press(&b, 'a');
	model_take(&b.st, profile_of_script(NULL));
	golden(&b, "annotate-script-100x24-ascii");
	assert_non_null(strstr(look(&b), "changed since its process started"));
	press(&b, 's');
	assert_non_null(strstr(look(&b), "no instructions (O: editor)"));
	assert_non_null(strstr(look(&b), "for x in self"));
	press(&b, K_RIGHT);
	assert_null(strstr(look(&b), "for x in self"));
	assert_non_null(strstr(look(&b), "x in self"));
	press(&b, K_LEFT);
	assert_non_null(strstr(look(&b), "for x in self"));
	press(&b, K_TAB);
	assert_int_equal((uint32_t)b.st.lists[VIEW_ANNOTATE].selected, 3);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "no instructions (O: editor)"));
	/* Unreadable: the samples by line, the reason and the fix. */
	model_take(&b.st, profile_of_script("no permission to read the file"));
	assert_non_null(strstr(look(&b), "no permission to read the file"));
	assert_non_null(strstr(look(&b), "do this"));
	if (!strstr(look(&b), "10.00   25.00"))
		fail_msg("%s", look(&b));
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
