// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * script: the lines of functions of languages, from texts and from files of this process; files
 * that cannot be read have a reason, and changed ones are marked.
 */
#include "symbols/code/code.c"

#include "tests/prelude.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"

static const char python[] = "import os\n"		      /* 1 */
			     "@cached(\n"		      /* 2 */
			     "    size=3)\n"		      /* 3 */
			     "def total(self,\n"	      /* 4 */
			     "          rate):\n"	      /* 5 */
			     "    # sum\n"		      /* 6 */
			     "# not indented, still inside\n" /* 7 */
			     "    for x in self:\n"	      /* 8 */
			     "        yield x\n"	      /* 9 */
			     "\n"			      /* 10 */
			     "# of the next one\n"	      /* 11 */
			     "def other(): return 1\n"	      /* 12 */
			     "x = 1\n";			      /* 13 */

static const char php[] = "<?php\n"			  /* 1 */
			  "function middle(int $n)\n"	  /* 2 */
			  "{\n"				  /* 3 */
			  "\tif ($n) {\n"		  /* 4 */
			  "\t\treturn;\n"		  /* 5 */
			  "\t}\n"			  /* 6 */
			  "}\n"				  /* 7 */
			  "function next() { return; }\n" /* 8 */
			  "echo 1;\n";			  /* 9 */

static const char ruby[] = "class Cart\n"	  /* 1 */
			   "  def total\n"	  /* 2 */
			   "    @x.each do |x|\n" /* 3 */
			   "      endless x\n"	  /* 4 */
			   "    end\n"		  /* 5 */
			   "  end\n"		  /* 6 */
			   "end\n";		  /* 7 */

static const char java[] = "class Shop {\n"			  /* 1 */
			   "    long total() {\n"		  /* 2 */
			   "        int n = 1;\n"		  /* 3 */
			   "        return subtotal(n);\n"	  /* 4 */
			   "    }\n"				  /* 5 */
			   "    long subtotal(int n) {\n"	  /* 6 */
			   "        if (n == 0 && total() > 1)\n" /* 7 */
			   "            total();\n"		  /* 8 */
			   "        return n;\n"		  /* 9 */
			   "    }\n"				  /* 10 */
			   "}\n";				  /* 11 */

static void expect_block(const char *text, uint32_t begin, uint32_t last)
{
	struct script_span span = script_block(text, strlen(text), begin);

	if (span.first != begin || span.last != last)
		fail_msg("line %u: %u to %u", begin, span.first, span.last);
}

TEST(test_blocks)
{
	expect_block(python, 2, 9); /* with its decorator */
	expect_block(python, 4, 9);
	expect_block(python, 12, 12);
	expect_block(python, 8, 9);
	expect_block(php, 2, 7);
	expect_block(php, 8, 8);
	expect_block(ruby, 1, 7);
	expect_block(ruby, 2, 6);
	expect_block(java, 6, 10);
	/* Beyond the end. */
	expect_block(python, 99, 99);
	expect_block("", 1, 1);
	expect_block("def x():\n    pass", 1, 2);
}

TEST(test_begin)
{
	static const char perl[] = "sub leaf_more {\n}\nsub leaf\n{\n\treturn 1;\n}\n";

	assert_int_equal(script_begin(java, strlen(java), "total", 4), 2);
	assert_int_equal(script_begin(java, strlen(java), "subtotal", 9), 6);
	/* A call is no definition. */
	assert_int_equal(script_begin(java, strlen(java), "total", 9), 2);
	assert_int_equal(script_begin(java, strlen(java), "none", 9), 0);
	assert_int_equal(script_begin(java, strlen(java), "", 9), 0);
	assert_int_equal(script_begin(perl, strlen(perl), "leaf", 5), 3);
}

/* Any bytes: the lines are in order and within the bounds. */
TEST(test_hostile)
{
	static const char alphabet[] = " \t\r\n{}()end;#@/defx\0\xff";
	uint64_t random = 1;
	char text[400];

	for (int round = 0; round < 20000; round++) {
		size_t size = (random = hash_u64(random)) % sizeof(text);
		uint32_t begin = 1 + (uint32_t)(random >> 32) % 40;
		struct script_span span;

		for (size_t i = 0; i < size; i++)
			text[i] = alphabet[(random = hash_u64(random)) % sizeof(alphabet)];
		span = script_block(text, size, begin);
		assert_int_equal(span.first, begin);
		assert_in_range(span.last, begin, begin + SCRIPT_LINES_MAX);
		assert_in_range(script_begin(text, size, "x", begin), 0, begin);
	}
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	fclose(f);
}

static struct listing *read_one(const struct script_want *want)
{
	struct listing *l = listing_new(1);

	assert_non_null(l);
	listing_read_script(l, want);
	assert_true(l->script);
	return l;
}

/* The line at address @line. */
static const char *text_of(const struct listing *l, uint32_t line)
{
	uint32_t at = listing_at(l, line);

	assert_int_not_equal(at, LISTING_NONE);
	assert_int_equal(l->insns[at].line, line);
	return listing_text(l, l->lines[l->files[0].lines + line - l->files[0].first]);
}

TEST(test_read)
{
	char dir[] = "/tmp/proftop-script-XXXXXX";
	struct script_want want = { .pid = getpid(), .begin = 4, .first = 8, .last = 9 };
	const struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	struct listing *l;

	assert_non_null(mkdtemp(dir));
	snprintf(want.path, sizeof(want.path), "%s/shop.py", dir);
	put(want.path, python);
	l = read_one(&want);
	assert_null(l->why);
	assert_int_equal(l->vaddr, 4);
	assert_int_equal(l->nr_insns, 6);
	assert_string_equal(text_of(l, 8), "    for x in self:");
	assert_string_equal(listing_text(l, l->files[0].path), want.path);
	/* Written after this process began. */
	assert_true(l->files[0].newer);
	listing_put(l);
	assert_int_equal(utimensat(AT_FDCWD, want.path, old, 0), 0);
	l = read_one(&want);
	assert_false(l->files[0].newer);
	listing_put(l);
	/* A sampled line outside of the block is shown also. */
	want.last = 12;
	l = read_one(&want);
	assert_string_equal(text_of(l, 12), "def other(): return 1");
	listing_put(l);
	/* Code outside of functions: the whole file. */
	want.begin = want.first = 1;
	l = read_one(&want);
	assert_int_equal(l->nr_insns, 13);
	listing_put(l);
	/* Relative: from the current directory. */
	assert_int_equal(chdir(dir), 0);
	want = (struct script_want){ .pid = getpid(), .path = "shop.py", .begin = 12 };
	l = read_one(&want);
	assert_int_equal(l->nr_insns, 1);
	listing_put(l);
	assert_int_equal(mkdir("src", 0700), 0);
	assert_int_equal(mkdir("src/shop", 0700), 0);
	put("src/shop/Shop.java", java);
	want = (struct script_want){ .pid = getpid(), .path = "Shop.java", .java = true };
	snprintf(want.name, sizeof(want.name), "shop.Shop.subtotal");
	want.first = want.last = 9;
	l = read_one(&want);
	assert_null(l->why);
	assert_int_equal(l->vaddr, 6);
	assert_int_equal(l->nr_insns, 5);
	listing_put(l);
	assert_int_equal(unlink("src/shop/Shop.java") | rmdir("src/shop") | rmdir("src"), 0);
	assert_int_equal(unlink("shop.py"), 0);
	assert_int_equal(chdir("/") | rmdir(dir), 0);
}

static void expect_refusal(const struct script_want *want, const char *why, const char *fix)
{
	struct listing *l = read_one(want);

	if (!l->why || !strstr(l->why, why) || !fix != !l->fix || (fix && !strstr(l->fix, fix)))
		fail_msg("%s: '%s' fix '%s'", want->path, l->why, l->fix);
	assert_int_equal(l->nr_insns, 0);
	listing_put(l);
}

TEST(test_refusals)
{
	char dir[] = "/tmp/proftop-script-XXXXXX";
	struct script_want want = { .pid = getpid(), .path = "<string>" };

	expect_refusal(&want, "no file", NULL);
	snprintf(want.path, sizeof(want.path), "[internal]");
	expect_refusal(&want, "no file", NULL);
	assert_non_null(mkdtemp(dir));
	snprintf(want.path, sizeof(want.path), "%s/gone.py", dir);
	expect_refusal(&want, "no such file", "root of the process");
	want.pid = 0;
	expect_refusal(&want, "no such file", "--symfs");
	want.pid = getpid();
	snprintf(want.path, sizeof(want.path), "relative.py");
	expect_refusal(&want, "no such file", "root of the process");
	/* A device, a pipe: never waited for. */
	snprintf(want.path, sizeof(want.path), "%s/pipe.py", dir);
	assert_int_equal(mkfifo(want.path, 0600), 0);
	expect_refusal(&want, "cannot read", NULL);
	unlink(want.path);
	snprintf(want.path, sizeof(want.path), "%s/short.py", dir);
	put(want.path, "one line\n");
	want.begin = want.first = want.last = 7;
	expect_refusal(&want, "fewer lines", NULL);
	unlink(want.path);
	rmdir(dir);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
