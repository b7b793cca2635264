// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sanitiser against every byte, every code point, and every cut.
 */
#include "symbols/base/base.h"
#include "symbols/base/text.h"

#include "tests/prelude.h"

#include <locale.h>
#include <wchar.h>

#define DOT  "\xc2\xb7"
#define DOTS "\xe2\x80\xa6"

static void check(const char *src, size_t size, const char *want, unsigned int width)
{
	char buf[TEXT_MAX + 1];
	struct safe_text t = text_sanitise(buf, sizeof(buf), src, size);

	assert_string_equal(t.str, want);
	assert_int_equal(t.size, strlen(want));
	assert_int_equal(t.width, width);
}

#define CHECK(src, want, width) check("" src, sizeof(src) - 1, want, width)

TEST(test_known)
{
	CHECK("", "", 0);
	CHECK("bash", "bash", 4);
	CHECK("\033[31mX\n)\033[5m", DOT "[31mX" DOT ")" DOT "[5m", 12);
	CHECK("a\0b", "a" DOT "b", 3);
	CHECK("\x7f\xc2\x80\xc2\x9f", DOT DOT DOT, 3);		   /* DEL, C1 */
	CHECK("a\xe2\x80\xaez", "a" DOT "z", 3);		   /* U+202E */
	CHECK("\xe2\x81\xa6\xe2\x81\xa9", DOT DOT, 2);		   /* U+2066, U+2069 */
	CHECK("\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", DOT DOT DOT, 3); /* ZWSP, BOM, SHY */
	CHECK("\xe2\x80\xa8\xe2\x80\xa9", DOT DOT, 2);		   /* U+2028, U+2029 */
	CHECK("\xee\x80\x80\xf4\x8f\xbf\xbf", DOT DOT, 2);	   /* private, non-character */
	CHECK("\xef\xb8\x8f"
	      "x",
	      DOT "x", 2);						  /* variation selector */
	CHECK("\xf0\x9f\x87\xa9", DOT, 1);				  /* half a flag */
	CHECK("\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4); /* wide */
	CHECK("\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c", 2); /* letters, right to left */
}

/* Every byte at every place of plain text, and plain text around the limit. */
TEST(test_plain)
{
	char text[TEXT_MAX + 3], want[32];

	for (size_t at = 0; at < 19; at++) {
		for (int byte = 0; byte < 256; byte++) {
			bool shown = byte >= 0x20 && byte < 0x7f;

			strcpy(text, "~ 0123456789abcde ~");
			memcpy(want, text, at);
			strcpy(want + at, shown ? (char[2]){ (char)byte } : DOT);
			strcat(want, text + at + 1);
			text[at] = (char)byte;
			check(text, 19, want, 19);
		}
	}
	memset(text, 'x', sizeof(text));
	for (size_t size = TEXT_MAX - 2; size <= TEXT_MAX + 2; size++) {
		char buf[TEXT_MAX + 1];
		struct safe_text t = text_sanitise(buf, sizeof(buf), text, size);

		assert_int_equal(t.size, MIN(size, (size_t)TEXT_MAX));
		assert_true(size > TEXT_MAX
				    ? t.width == TEXT_MAX - 2 && !strcmp(t.str + t.size - 3, DOTS)
				    : t.width == size);
	}
}

TEST(test_invalid_utf8)
{
	CHECK("\xff\xfe"
	      "a",
	      DOT DOT "a", 3);
	CHECK("\xc0\xaf", DOT DOT, 2);		       /* overlong */
	CHECK("\xed\xa0\x80", DOT DOT DOT, 3);	       /* surrogate */
	CHECK("\xf4\x90\x80\x80", DOT DOT DOT DOT, 4); /* beyond U+10FFFF */
	CHECK("a\xe6\x97", "a" DOT DOT, 3);	       /* ends inside */
	CHECK("\xe6"
	      "a",
	      DOT "a", 2);
}

TEST(test_marks)
{
#define ACUTE "\xcc\x81"
	CHECK("e" ACUTE, "e" ACUTE, 1);
	CHECK("e" ACUTE ACUTE, "e" ACUTE ACUTE, 1);
	CHECK("e" ACUTE ACUTE ACUTE, "e" ACUTE ACUTE DOT, 2);
	CHECK("e" ACUTE ACUTE ACUTE ACUTE, "e" ACUTE ACUTE DOT ACUTE, 2);
	CHECK(ACUTE "e", DOT "e", 2);					  /* nothing to stand on */
	CHECK("\xe0\xa4\x95\xe0\xa4\xbf", "\xe0\xa4\x95\xe0\xa4\xbf", 2); /* a mark with a cell */
}

/* Widths that changed with Unicode 16 are not shown on any system. */
TEST(test_changed_widths)
{
	CHECK("\xe2\x98\xb0", DOT, 1);		  /* U+2630 */
	CHECK("\xe2\x9a\x8f", DOT, 1);		  /* U+268F */
	CHECK("\xf0\x9d\x8c\x80x", DOT "x", 2);	  /* U+1D300 */
	CHECK("\xf0\x9d\x8d\xb6x", DOT "x", 2);	  /* U+1D376 */
	CHECK("\xe2\x98\xaf", "\xe2\x98\xaf", 1); /* U+262F: as before */
}

/* Encode @cp whatever it is; returns the size. */
static size_t encode(uint32_t cp, char *out)
{
	if (cp < 0x80)
		return out[0] = (char)cp, 1;
	if (cp < 0x800)
		return out[0] = (char)(0xc0 | cp >> 6), out[1] = (char)(0x80 | (cp & 63)), 2;
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 63));
		out[2] = (char)(0x80 | (cp & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 63));
	out[2] = (char)(0x80 | (cp >> 6 & 63));
	out[3] = (char)(0x80 | (cp & 63));
	return 4;
}

static bool forbidden(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || cp == 0x61c ||
	       (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || (cp >= 0xd800 && cp <= 0xf8ff) || cp == 0xfeff ||
	       (cp >= 0xfe00 && cp <= 0xfe0f) || (cp & 0xfffe) == 0xfffe || cp >= 0xe0000;
}

/* Characters with a width in the C library of Unicode 17 (glibc 2.43): one with more is newer. */
#define KNOWN_OF_17 165767

static unsigned int nr_known(void)
{
	unsigned int nr = 0;

	for (wchar_t wc = 0xa0; wc < 0xe0000; wc++)
		nr += (wc < 0xd800 || wc >= 0xe000) && wcwidth(wc) >= 0;
	return nr;
}

/*
 * All code points: the forbidden are replaced, the rest have the width that the C library knows, of
 * whatever age both are. A newer one than the table may differ: cell_text() stands between.
 */
TEST(test_all_code_points)
{
	bool compare = setlocale(LC_CTYPE, "C.UTF-8") && nr_known() <= KNOWN_OF_17;
	unsigned int nr_kept = 0;

	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char src[8] = "x", buf[32], again[32];
		size_t n = 1 + encode(cp, src + 1);
		struct safe_text t = text_sanitise(buf, sizeof(buf), src, n);
		bool kept = t.size == n && !memcmp(t.str, src, n);
		struct safe_text t2 = text_sanitise(again, sizeof(again), t.str, t.size);

		assert_int_equal(t2.size, t.size);
		assert_int_equal(t2.width, t.width);
		assert_memory_equal(t2.str, t.str, t.size);
		assert_false(kept && forbidden(cp));
		if (!kept)
			assert_int_equal((t.size - 1) % 2, 0);
		nr_kept += kept;
		/* -1: newer than this C library. */
		if (kept && compare && wcwidth((wchar_t)cp) >= 0 &&
		    t.width != 1 + wcwidth((wchar_t)cp))
			fail_msg("U+%04X: %u cells, the terminal takes %d", cp, t.width - 1u,
				 wcwidth((wchar_t)cp));
	}
	assert_true(nr_kept > 130000);
}

TEST(test_cut)
{
	char src[3 * TEXT_MAX], buf[TEXT_MAX + 64];
	struct safe_text t;

	memset(src, 'a', sizeof(src));
	t = text_sanitise(buf, sizeof(buf), src, TEXT_MAX);
	assert_int_equal(t.size, TEXT_MAX);
	t = text_sanitise(buf, sizeof(buf), src, TEXT_MAX + 1);
	assert_int_equal(t.size, TEXT_MAX);
	assert_string_equal(t.str + TEXT_MAX - 3, DOTS);
	assert_int_equal(t.width, TEXT_MAX - 2);

	assert_string_equal(text_sanitise(buf, 6, "abcde", 5).str, "abcde");
	assert_string_equal(text_sanitise(buf, 6, "abcdef", 6).str, "ab" DOTS);
	assert_string_equal(text_sanitise(buf, 4, "abcdef", 6).str, DOTS);
	assert_string_equal(text_sanitise(buf, 3, "abcdef", 6).str, "");
	assert_string_equal(text_sanitise(buf, 1, "abcdef", 6).str, "");
	assert_int_equal(text_sanitise(buf, 0, "abcdef", 6).size, 0);
	/* Neither a code point nor a grapheme is torn. */
	assert_string_equal(text_sanitise(buf, 8, "a\xe6\x97\xa5\xe6\x97\xa5", 7).str, "a\xe6\x97"
										       "\xa5\xe6"
										       "\x97\xa5");
	assert_string_equal(text_sanitise(buf, 7, "a\xe6\x97\xa5\xe6\x97\xa5", 7).str, "a" DOTS);
	assert_string_equal(text_sanitise(buf, 8, "ae" ACUTE ACUTE "xxx", 9).str, "a" DOTS);
}

TEST(test_format)
{
	char buf[TEXT_MAX + 64], big[8192];
	struct safe_text t = text_format(buf, sizeof(buf), "%s (%d)", "\033[2J%s%n", 42);

	assert_string_equal(t.str, DOT "[2J%s%n (42)");
	/* Zero-width bytes shrink when refused: the cut must be seen nevertheless. */
	for (size_t i = 0; i < sizeof(big) - 3; i += 3)
		memcpy(big + i, "\xe2\x80\x8b", 4);
	t = text_format(buf, sizeof(buf), "%s", big);
	assert_true(t.size <= TEXT_MAX && t.size > TEXT_MAX - 4);
	assert_string_equal(t.str + t.size - 3, DOTS);
}

TEST(test_clip)
{
	char buf[64];
	struct safe_text t = text_sanitise(buf, sizeof(buf),
					   "a\xe6\x97\xa5"
					   "e" ACUTE "z",
					   8);
	unsigned int width;

	assert_int_equal(t.width, 5);
	assert_int_equal(text_clip(t, 0, &width), 0);
	assert_int_equal(width, 0);
	assert_int_equal(text_clip(t, 1, &width), 1);
	assert_int_equal(text_clip(t, 2, &width), 1); /* half of a wide cell is not drawn */
	assert_int_equal(width, 1);
	assert_int_equal(text_clip(t, 3, &width), 4);
	assert_int_equal(width, 3);
	assert_int_equal(text_clip(t, 4, &width), 7); /* the accent goes with its base */
	assert_int_equal(width, 4);
	assert_int_equal(text_clip(t, 5, &width), 8);
	assert_int_equal(text_clip(t, 500, NULL), 8);
	assert_string_equal(text_skip(t, 0).str, t.str);
	assert_string_equal(text_skip(t, 1).str, t.str + 1);
	assert_string_equal(text_skip(t, 2).str, t.str + 4); /* nor half of it */
	assert_int_equal(text_skip(t, 2).width, 2);
	assert_int_equal(text_skip(t, 4).size, 1);
	assert_int_equal(text_skip(t, 500).size, 0);
}

TEST(test_arena)
{
	struct text_arena *arena = text_arena_new();
	struct safe_text kept[4000];
	char name[64];

	assert_int_equal(text_arena_size(arena), 0);
	for (int i = 0; i < 4000; i++) {
		snprintf(name, sizeof(name), "function_%d\n%*d", i, i % 40, i);
		kept[i] = text_arena_add(arena, name, strlen(name));
	}
	for (int i = 0; i < 4000; i++) {
		char want[80];

		snprintf(want, sizeof(want), "function_%d" DOT "%*d", i, i % 40, i);
		assert_string_equal(kept[i].str, want);
		assert_int_equal(kept[i].size, strlen(want));
	}
	assert_true(text_arena_size(arena) > 4000 * 12);
	text_arena_free(arena);
	text_arena_free(NULL);
	assert_string_equal(text_arena_add(NULL, "x", 1).str, "?");
}

/* Random texts: the result is stable and takes the promised cells. */
TEST(test_random)
{
	uint64_t seed = 1;

	for (int round = 0; round < 200000; round++) {
		unsigned char src[48];
		char buf[40], again[40];
		struct safe_text t, t2;
		unsigned int width;

		for (size_t i = 0; i < sizeof(src); i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			src[i] = (unsigned char)(seed >> 56);
			if (round & 1 && i & 1) /* make valid sequences likely */
				src[i] = 0x80 | (src[i] & 0x3f);
		}
		t = text_sanitise(buf, 1 + (size_t)round % sizeof(buf), src, seed >> 33 & 31);
		t2 = text_sanitise(again, sizeof(again), t.str, t.size);
		assert_string_equal(t.str, t2.str);
		assert_int_equal(t.width, t2.width);
		assert_int_equal(text_clip(t, 1000, &width), t.size);
		assert_int_equal(width, t.width);
	}
}

/* Suggestions: few letters off, or the beginning of a word. */
TEST(test_like)
{
	static const char *const names[] = { "cycles", "cpu-clock", "cache-misses", "save-screen",
					     "freq" };
	static const struct {
		const char *text, *found, *begins;
	} cases[] = {
		{ "cyclesss", "cycles", "cycles" },
		{ "cpuclock", "cpu-clock", NULL },
		{ "save", NULL, "save-screen" },
		{ "frequency", NULL, "freq" },
		{ "q", NULL, NULL },
		{ "", NULL, NULL },
		{ "instructions", NULL, NULL },
	};
	char longest[TEXT_LIKE_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct text_like like = { .text = cases[i].text };

		for (size_t n = 0; n < ARRAY_SIZE(names); n++)
			text_like(&like, names[n]);
		assert_string_equal(like.found ? like.found : "",
				    cases[i].found ? cases[i].found : "");
		assert_string_equal(like.begins ? like.begins : "",
				    cases[i].begins ? cases[i].begins : "");
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	text_like(&(struct text_like){ .text = longest }, longest);
	text_like(&(struct text_like){ .text = "x" }, longest);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
