// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of keys: complete, without doubles, and in step with the handlers.
 */
#include "ui/actions.c"

#include "tests/ui/fake.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/text/text.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

/* Return whether @action has a handler outside of the views. For the test of the key table. */
static bool actions_handles(enum action action)
{
	return actions[action].run || actions[action].dialog || actions[action].prompt ||
	       actions[action].rewinds || shows_view(action);
}

static const enum key_context contexts[] = { CTX_LIST, CTX_HELP, CTX_PICKER, CTX_PROMPT };

/* Every key of a binding that holds in @context. */
static const uint32_t *codes_in(const struct key_binding *b, enum key_context context)
{
	static const uint32_t none[KEYS_MAX];

	return b->contexts & context ? b->codes : b->typing & context ? b->typing_codes : none;
}

TEST(test_no_doubles)
{
	for (size_t c = 0; c < ARRAY_SIZE(contexts); c++) {
		uint32_t seen[256];
		size_t nr = 0;

		for (const struct key_binding *b = key_table(); b->action; b++) {
			const uint32_t *codes = codes_in(b, contexts[c]);

			for (int i = 0; i < KEYS_MAX && codes[i]; i++) {
				char name[8];

				for (size_t j = 0; j < nr; j++)
					if (seen[j] == codes[i])
						fail_msg("%s is bound twice, the second time to %s",
							 key_name_of(name, codes[i]), b->name);
				seen[nr++] = codes[i];
				assert_int_equal(key_find(contexts[c], codes[i]), b->action);
			}
		}
		assert_true(nr > 3);
	}
}

TEST(test_complete)
{
	int nr = 0;

	for (const struct key_binding *b = key_table(); b->action; b++, nr++) {
		assert_true(b->name[0] && b->help[0]);
		assert_true(b->contexts || b->typing);
		assert_true(!b->contexts == !b->codes[0]);
		assert_true(!b->typing == !b->typing_codes[0]);
		/* The bar has room for one word. */
		assert_true(strlen(b->label) <= 8);
		if (b->contexts)
			assert_true(actions_handles(b->action));
		for (const struct key_binding *o = key_table(); o != b; o++)
			assert_string_not_equal(o->name, b->name);
	}
	assert_int_equal(nr, ACT_NR - 1);
}

/* Printable characters must reach the line, not an action. */
TEST(test_typing)
{
	for (uint32_t code = 32; code < 127; code++) {
		assert_int_equal(key_find(CTX_PICKER, code), ACT_NONE);
		assert_int_equal(key_find(CTX_PROMPT, code), ACT_NONE);
	}
	assert_int_equal(key_find(CTX_LIST, K_NONE), ACT_NONE);
}

/* The keys that users of top, htop, less and perf know (the contract). */
TEST(test_contract)
{
	static const struct {
		uint32_t code;
		enum action action;
	} want[] = {
		{ 'j', ACT_LINE_DOWN },	 { 'k', ACT_LINE_UP },	      { 'q', ACT_BACK },
		{ 'Q', ACT_QUIT },	 { K_CTRL('c'), ACT_QUIT },   { '/', ACT_SEARCH },
		{ '\\', ACT_FILTER },	 { '&', ACT_FILTER },	      { ' ', ACT_FREEZE },
		{ 'e', ACT_PICK_EVENT }, { 'f', ACT_PICK_FREQUENCY }, { 'S', ACT_SAMPLING },
		{ 'z', ACT_WINDOW },	 { 'r', ACT_RESET },	      { '[', ACT_SLOWER },
		{ ']', ACT_FASTER },	 { K_F(10), ACT_QUIT },	      { '?', ACT_HELP },
		{ 'L', ACT_LIMIT },	 { '5', ACT_VIEW_CPUS },      { '!', ACT_VIEW_MESSAGES },
		{ ':', ACT_COMMAND },	 { K_F(9), ACT_EXPORT },      { 'd', ACT_MODULE_ONLY },
		{ '3', ACT_VIEW_TREE },	 { '4', ACT_VIEW_FLAME },     { 't', ACT_TREE },
		{ 'b', ACT_CALLERS },	 { 'v', ACT_FLAME_HERE },     { '+', ACT_UNFOLD },
		{ 'm', ACT_MENU },	 { 'O', ACT_EDITOR },	      { 'a', ACT_ANNOTATE },
		{ 'D', ACT_FETCH },	 { '$', ACT_LOCK },	      { K_CTRL('w'), ACT_STACKS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(key_find(CTX_LIST, want[i].code), want[i].action);
	/* No key changes another process; views that are not there have none. */
	for (const char *p = "90"; *p; p++)
		assert_int_equal(key_find(CTX_LIST, (uint32_t)*p), ACT_NONE);
}

TEST(test_names)
{
	char b[64], name[8];

	assert_string_equal(key_name_of(name, K_F(10)), "F10");
	assert_string_equal(key_name_of(name, K_CTRL('l')), "^L");
	assert_string_equal(key_name_of(name, 'x'), "x");
	for (const struct key_binding *k = key_table(); k->action; k++)
		if (k->action == ACT_FILTER)
			assert_string_equal(key_names_of(b, sizeof(b), k), "F4 \\ &");
	assert_true(strlen(key_names_of(b, 5, key_table())) < 5);
}

TEST(test_line)
{
	struct line l = { 0 };
	bool changed;

	for (const char *p = "one two"; *p; p++)
		assert_true(line_key(&l, (uint32_t)*p, &changed) && changed);
	line_key(&l, K_CTRL('w'), &changed);
	assert_string_equal(l.text, "one ");
	line_key(&l, 0x65e5, &changed);
	assert_string_equal(l.text, "one 日");
	line_key(&l, K_LEFT, &changed);
	line_key(&l, 'x', &changed);
	assert_string_equal(l.text, "one x日");
	line_key(&l, K_DELETE, &changed);
	line_key(&l, K_BACKSPACE, &changed);
	assert_string_equal(l.text, "one ");
	/* Neither controls nor bidi marks get in; a full line does not grow. */
	line_key(&l, 0x202e, &changed);
	assert_false(changed);
	assert_false(line_key(&l, 7, &changed));
	for (int i = 0; i < 500; i++)
		line_key(&l, 0x65e5, &changed);
	assert_true(l.size < sizeof(l.text) && strlen(l.text) == l.size);
	line_key(&l, K_CTRL('u'), &changed);
	assert_int_equal(l.size, 0);
	line_key(&l, K_BACKSPACE, &changed);
	assert_false(changed);
}

static bool matches(const char *pattern, const char *text)
{
	struct match m;
	bool found;

	match_init(&m);
	match_set(&m, pattern);
	found = match_finds(&m, (struct safe_text){ text, (uint16_t)strlen(text), 0 }) != m.negate;
	match_fini(&m);
	return found;
}

/* Names as the views show them, of Rust, Go, C++ and D. */
TEST(test_match_names)
{
	static const char *const names[] = {
		"<shop::Index<&str, f64>>::insert",
		"<[u64; 4] as shop::Size>::size",
		"<shop::Index<&str, f64>>::find::<shop::main::{closure#0}>",
		"shop::generic::<u32, 3>",
		"<*const u8 as core::fmt::Pointer>::fmt",
		"main.(*Tree[go.shape.int]).Insert",
		"run()::{lambda(int*)#1}::operator()",
		"operator+=<std::pair<int*, char> >",
		"x.main.__lambda3",
		"m.f!().g",
		"std::array<char [4], 2>::at",
	};
	struct match m;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char pattern[128];

		snprintf(pattern, sizeof(pattern), "!%s", names[i]);
		if (!matches(names[i], names[i]) || matches(pattern, names[i]))
			fail_msg("%s", names[i]);
		assert_false(matches(names[i], "main"));
		assert_true(matches(pattern, "main"));
	}
	match_init(&m);
	match_set(&m, names[2]);
	assert_false(m.bad);
	match_fini(&m);
	assert_true(matches("^a{2}{lambda", "aa{lambda()#1}"));
	/* Without their template arguments, as rows have them. */
	assert_true(matches("<shop::Index<>>::in", names[0]));
	assert_true(matches("^<shop::Index<>>::insert$", names[0]));
	assert_false(matches("Index<>::insert", names[0]));
}

TEST(test_match)
{
	struct match m;

	assert_true(matches("parse", "json::Parser"));
	assert_false(matches("Parse", "json::parser"));
	assert_true(matches("!malloc", "free"));
	assert_false(matches("!malloc", "malloc"));
	assert_true(matches("^mem(cpy|set)$", "memset"));
	assert_false(matches("^mem(cpy|set)$", "memset2"));
	assert_true(matches("foo(", "call foo(int)"));
	assert_true(matches("", "anything"));
	match_init(&m);
	match_set(&m, "[");
	assert_true(m.bad && !m.is_regex);
	match_set(&m, "foo(");
	assert_non_null(strstr(m.why, "("));
	/* Counts that would take gigabytes or forever are text. */
	match_set(&m, "((a{200}){200}){200}");
	assert_true(m.bad);
	match_set(&m, "(.*)\\1\\1");
	assert_true(m.bad);
	match_set(&m, "!");
	assert_false(match_active(&m));
	match_fini(&m);
}

/* "python:" in front: functions of that language only, each language of the program. */
TEST(test_match_language)
{
	const struct profile_function python = { .name = TEXT("Cart.total"),
						 .module = TEXT("shop.py"),
						 .kind = 'y' },
				      native = { .name = TEXT("python: total"),
						 .module = TEXT("libpython"),
						 .kind = 'u' },
				      java = { .name = TEXT("Cart.total"),
					       .module = TEXT("[java]"),
					       .kind = 'J' };
	struct match m;

	match_init(&m);
	match_set(&m, "python:");
	assert_true(match_active(&m));
	assert_true(match_finds_name(&m, &python) && match_finds_function(&m, &python));
	assert_false(match_finds_name(&m, &native) || match_finds_function(&m, &native));
	assert_false(match_finds_function(&m, &java));
	/* No function: the name of a thread, say. */
	assert_false(match_finds(&m, TEXT("python: worker")));
	match_set(&m, "!python:^Cart");
	assert_true(m.negate && m.is_regex && match_finds_name(&m, &python));
	match_set(&m, "python:shop");
	assert_true(match_finds_function(&m, &python) && !match_finds_name(&m, &python));
	match_set(&m, "python:Leaf");
	assert_false(match_finds_function(&m, &python));
	match_set(&m, "java:total");
	assert_true(match_finds_name(&m, &java) && !match_finds_name(&m, &python));
	for (const char *letter = "yhrlnJ"; *letter; letter++) {
		const struct profile_function f = { .name = TEXT("f"), .kind = *letter };
		char text[32];

		assert_non_null(profile_language_name(*letter));
		snprintf(text, sizeof(text), "%s:", profile_language_name(*letter));
		match_set(&m, text);
		assert_true(match_finds_name(&m, &f) && !match_finds_name(&m, &native));
		assert_int_not_equal(theme_kind(*letter), ROLE_UNKNOWN);
	}
	match_set(&m, "javascript:total");
	assert_string_equal(m.language, "node");
	/* Of C++, and of no language. */
	match_set(&m, "javascript::");
	assert_null(m.language);
	match_set(&m, "java::");
	assert_null(m.language);
	match_set(&m, "cobol:");
	assert_null(m.language);
	match_fini(&m);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
