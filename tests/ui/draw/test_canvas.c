// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cells: clipping at every column, wide characters, differences.
 */
#include "ui/draw/term.c"

#include <locale.h>

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/internal.h"
#include "ui/text/text.h"

static const struct style plain = { 0, 0 };

static struct safe_text clean(const char *s)
{
	static char buf[4][256];
	static int n;

	n = (n + 1) % 4;
	return text_sanitise(buf[n], sizeof(buf[n]), s, strlen(s));
}

static void expect(const struct canvas *c, const char *want)
{
	char *got = canvas_dump(c);

	assert_string_equal(got, want);
	free(got);
}

/* Half of a wide character is never left over, whatever is drawn over it. */
static void check_wide(const struct canvas *c)
{
	for (unsigned int row = 0; row < c->rows; row++) {
		for (unsigned int col = 0; col < c->cols; col++) {
			const struct cell *cell = canvas_at(c, row, col);

			if (cell->width == 2)
				assert_true(col + 1 < c->cols &&
					    canvas_at(c, row, col + 1)->width == 0);
			if (cell->width == 0)
				assert_true(col > 0 && canvas_at(c, row, col - 1)->width == 2);
			assert_true((cell->width == 0) == (cell->text[0] == '\0'));
		}
	}
}

TEST(test_clip)
{
	struct canvas c;

	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 2, 6), 0);
	assert_int_equal(canvas_text(&c, 0, 2, 100, TEXT("abcdef"), plain), 4);
	assert_int_equal(canvas_text(&c, 1, 0, 2, TEXT("xyz"), plain), 2);
	expect(&c, "  abcd\nxy\n");
	/* Outside: nothing happens. */
	assert_int_equal(canvas_text(&c, 2, 0, 5, TEXT("no"), plain), 0);
	assert_int_equal(canvas_text(&c, 0, 6, 5, TEXT("no"), plain), 0);
	canvas_fill(&c, 9, 0, 5, TEXT("#"), plain);
	canvas_restyle(&c, 9, 0, 5, plain, false);
	canvas_right(&c, 1, 3, 3, TEXT("7"), plain);
	expect(&c, "  abcd\nxy   7\n");
	canvas_elide(&c, 1, 0, 4, TEXT("abcdef"), plain);
	expect(&c, "  abcd\nabc… 7\n");
	canvas_fini(&c);
}

TEST(test_wide)
{
	struct canvas c;

	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 1, 5), 0);
	assert_int_equal(canvas_text(&c, 0, 0, 5, clean("日本語"), plain), 4);
	expect(&c, "日本\n");
	check_wide(&c);
	/* Over the left half, over the right half, one wide over two. */
	canvas_text(&c, 0, 0, 1, TEXT("a"), plain);
	expect(&c, "a 本\n");
	canvas_text(&c, 0, 3, 1, TEXT("b"), plain);
	expect(&c, "a  b\n");
	canvas_text(&c, 0, 0, 4, clean("日本"), plain);
	canvas_text(&c, 0, 1, 2, clean("語"), plain);
	expect(&c, " 語\n");
	check_wide(&c);
	/* Where only one cell is left, a wide one is not drawn. */
	canvas_clear(&c);
	assert_int_equal(canvas_text(&c, 0, 4, 5, clean("語"), plain), 0);
	expect(&c, "\n");
	/* Marks are drawn with their base. */
	assert_int_equal(canvas_text(&c, 0, 0, 5, clean("e\xcc\x81x"), plain), 2);
	assert_string_equal(canvas_at(&c, 0, 0)->text, "e\xcc\x81");
	/* A vowel sign with a width has a cell; a mark after it is drawn with it. */
	assert_int_equal(clean("\u0915\u093e\u0902x").width, 3);
	assert_int_equal(canvas_text(&c, 0, 0, 5, clean("\u0915\u093e\u0902x"), plain), 3);
	assert_string_equal(canvas_at(&c, 0, 0)->text, "\u0915");
	assert_string_equal(canvas_at(&c, 0, 1)->text, "\u093e\u0902");
	assert_string_equal(canvas_at(&c, 0, 2)->text, "x");
	canvas_fini(&c);
	canvas_init(&c, true);
	assert_int_equal(canvas_resize(&c, 1, 6), 0);
	canvas_text(&c, 0, 0, 6, clean("é日xλ"), plain);
	expect(&c, "???x?\n");
	canvas_fini(&c);
}

/* Applying the runs of the difference to the old canvas gives the new one. */
TEST(test_diff)
{
	static const char *const texts[] = { "a", "bb", "語", "日本", " ", "é" };
	struct canvas a, b;
	unsigned int seed = 7;

	canvas_init(&a, false);
	canvas_init(&b, false);
	assert_int_equal(canvas_resize(&a, 5, 17), 0);
	assert_int_equal(canvas_resize(&b, 5, 17), 0);
	for (int round = 0; round < 3001; round++) {
		struct canvas_run run = { 0 };
		struct style style = { (uint8_t)(rand_r(&seed) % 3), (uint8_t)(rand_r(&seed) % 2) };
		unsigned int row = (unsigned int)rand_r(&seed) % 6,
			     col = (unsigned int)rand_r(&seed) % 18;

		canvas_text(&b, row, col, (unsigned int)rand_r(&seed) % 6,
			    clean(texts[rand_r(&seed) % 6]), style);
		if (round % 5)
			continue;
		check_wide(&b);
		while (canvas_diff(&a, &b, &run)) {
			assert_true(run.cols > 0 && run.col + run.cols <= b.cols);
			/* A run can be printed alone. */
			assert_true(canvas_at(&b, run.row, run.col)->width > 0);
			for (unsigned int i = 0; i < run.cols; i++)
				a.cells[run.row * a.cols + run.col + i] =
					b.cells[run.row * b.cols + run.col + i];
		}
		assert_memory_equal(a.cells, b.cells, 5 * 17 * sizeof(*a.cells));
	}
	assert_false(canvas_diff(&a, &b, &(struct canvas_run){ 0 }));
	canvas_fini(&a);
	canvas_fini(&b);
}

TEST(test_sizes)
{
	struct canvas c;

	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 0, 0), 0);
	assert_int_equal(c.rows, 1);
	assert_int_equal(canvas_resize(&c, 100000, 100000), 0);
	assert_int_equal(c.rows, CANVAS_MAX);
	assert_int_equal(c.cols, CANVAS_MAX);
	canvas_fini(&c);
}

TEST(test_names)
{
	static const struct {
		const char *name, *want;
	} names[] = {
		{ "main", "main" },
		{ "Engine<std::map<int, char>, 3>::crank<f(int)::{lambda(int)#1}>", "Engine<>::"
										    "crank<>" },
		{ "std::operator<< <char>", "std::operator<< <char>" },
		{ "X<int>::operator<", "X<>::operator<" },
		{ "X<int>::operator<=", "X<>::operator<=" },
		{ "X<A>::operator->", "X<>::operator->" },
		{ "f<(a->b)>::g", "f<>::g" },
		{ "run::<lambda(int)>::operator()", "run::<lambda(int)>::operator()" },
		{ "<a::B<u32> as c::D<u8>>::run", "<a::B<> as c::D<>>::run" },
		{ "core::ptr::drop_in_place::<Vec<u8>>", "core::ptr::drop_in_place::<>" },
		{ "core::fmt::<impl A for B<u8>>::fmt", "core::fmt::<impl A for B<>>::fmt" },
		{ "broken<int", "broken<int" },
	};
	char buf[TEXT_MAX], clean[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct safe_text name = text_format(clean, sizeof(clean), "%s", names[i].name);

		assert_string_equal(text_short_name(buf, name).str, names[i].want);
	}
}

TEST(test_format)
{
	char b[FORMAT_MAX];

	assert_string_equal(format_count(b, 0).str, "0");
	assert_string_equal(format_count(b, -5).str, "0");
	assert_string_equal(format_count(b, 0.0 / 0.0).str, "0");
	assert_string_equal(format_count(b, 999).str, "999");
	assert_string_equal(format_count(b, 1234567.4).str, "1,234,567");
	assert_true(format_count(b, 1e300).size < FORMAT_MAX);
	assert_string_equal(format_percent(b, 0.18424).str, "18.42");
	assert_string_equal(format_percent(b, 1).str, "100.0");
	assert_string_equal(format_percent(b, 0.999999).str, "100.0");
	assert_string_equal(format_percent(b, 0.99994).str, "99.99");
	assert_string_equal(format_share(b, 0.63).str, "63%");
	assert_string_equal(format_share(b, 0.9999).str, "99.9%");
	assert_string_equal(format_share(b, 1).str, "100%");
	assert_string_equal(format_share(b, 0).str, "0%");
	assert_string_equal(format_share(b, 0.00001).str, "0.1%");
	assert_string_equal(format_share(b, 0.002).str, "0.2%");
	assert_string_equal(format_share(b, 0.01).str, "1%");
	assert_string_equal(format_clock(b, 192 * 1000000000ull).str, "00:03:12");
	assert_string_equal(format_clock(b, 100 * 3600 * 1000000000ull).str, "4d 04:00");
	assert_true(format_clock(b, UINT64_MAX).size < FORMAT_MAX);
	assert_string_equal(format_span(b, 5 * 1000000000ull).str, "5s");
	assert_string_equal(format_span(b, 250 * 1000000ull).str, "250ms");
	assert_string_equal(format_span(b, 1500 * 1000000ull).str, "1.5s");
	assert_string_equal(format_span(b, 180 * 1000000000ull).str, "3m");
	assert_string_equal(format_span(b, 9 * 3600 * 1000000000ull).str, "9h");
	assert_string_equal(format_span(b, 150 * 60 * 1000000000ull).str, "2.5h");
	assert_string_equal(format_span(b, 1450 * 60 * 1000000000ull).str, "24h");
	assert_string_equal(format_span(b, 47 * 3600 * 1000000000ull).str, "47h");
	assert_string_equal(format_span(b, 72 * 3600 * 1000000000ull).str, "3d");
	assert_true(format_span(b, UINT64_MAX).size < FORMAT_MAX);
	assert_string_equal(format_age(b, 1500 * 1000000ull).str, "1.5s");
	assert_string_equal(format_age(b, 119 * 1000000000ull).str, "119s");
	assert_string_equal(format_age(b, 119600 * 1000000ull).str, "2m 0s");
	assert_string_equal(format_age(b, 320 * 1000000000ull).str, "5m 20s");
	assert_string_equal(format_age(b, 11120 * 1000000000ull).str, "3h 5m 20s");
	assert_true(format_age(b, UINT64_MAX).size < FORMAT_MAX);
	assert_string_equal(format_memory(b, 41 * 1024).str, "41 MB");
}

/* A picture: text placed and escaped, blocks as rectangles, the colours of the theme. */
TEST(test_picture)
{
	struct canvas c;
	char *dark, *light, want[32];

	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 3, 20), 0);
	canvas_text(&c, 0, 0, 20, TEXT("a<b>&c    far"), (struct style){ ROLE_USER, 0 });
	canvas_text(&c, 1, 0, 20, theme_glyphs(false)->bar[4], (struct style){ ROLE_BAR, 0 });
	canvas_text(&c, 2, 0, 20, TEXT("chosen"), (struct style){ ROLE_SELECTED, 0 });
	dark = canvas_svg(&c, THEME_DARK);
	light = canvas_svg(&c, THEME_LIGHT);
	assert_non_null(strstr(dark, ">a&lt;b&gt;&amp;c</text>"));
	assert_non_null(strstr(dark, "x=\"88.0\" y=\"21.0\" textLength=\"24.0\""));
	assert_non_null(strstr(dark, "x=\"8.0\" y=\"25.0\" width=\"4.0\" height=\"17.0\""));
	for (int i = 0; i < 2; i++) {
		enum theme theme = i ? THEME_LIGHT : THEME_DARK;
		struct theme_look user = theme_look(theme, false, ROLE_USER, 256);
		struct theme_look chosen = theme_look(theme, false, ROLE_SELECTED, 256);

		snprintf(want, sizeof(want), "fill=\"#%06x\"", theme_rgb(user.fg));
		assert_non_null(strstr(i ? light : dark, want));
		snprintf(want, sizeof(want), "fill=\"#%06x\"", theme_rgb(chosen.bg));
		assert_non_null(strstr(i ? light : dark, want));
	}
	assert_string_not_equal(dark, light);
	free(dark);
	free(light);
	canvas_fini(&c);
}

/* A cell with another width than the C library's is dots: curses would shift the row. */
TEST(test_widths_of_curses)
{
	struct cell wide = { .text = "\xe6\xbc\xa2", .width = 2 }, narrow = wide;
	struct cell mark = { .text = "e\xcc\x81", .width = 1 };

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	narrow.width = 1;
	assert_string_equal(cell_text(&wide), "\xe6\xbc\xa2");
	assert_string_equal(cell_text(&narrow), "\xc2\xb7");
	assert_string_equal(cell_text(&mark), "e\xcc\x81");
	wide.text[0] = '\xff';
	assert_string_equal(cell_text(&wide), "\xc2\xb7\xc2\xb7");
	setlocale(LC_CTYPE, "C");
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
