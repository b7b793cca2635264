// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jitcheck: a fake /proc of processes with generated code, with and without a perf map or a
 * jitdump.
 */
#include "symbols/jit/jit.h"

#include "tests/prelude.h"

#include <unistd.h>

#include "tests/fake_root.h"
#include "symbols/base/base.h"

#define PLAIN "00400000-00500000 r-xp 00000000 08:01 7 /usr/bin/node\n"
#define DATA  "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
#define CODE  "7f0000200000-7f0000300000 rwxp 00000000 00:00 0 \n"
#define VDSO  "7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0 [vdso]\n"
#define DUMP  "7f0000400000-7f0000401000 r-xp 00000000 08:01 9 /home/u/.debug/jit/jit-5.dump\n"

static char root[] = "/tmp/proftop-jitcheck-XXXXXX";

static void put(int pid, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fake_put(root, path, text);
}

static void process(int pid, const char *maps)
{
	char exe[256];

	put(pid, "maps", maps);
	put(pid, "comm", "node\n");
	put(pid, "status", "Name:\tnode\nNSpid:\t5\t12\nThreads:\t1\n");
	snprintf(exe, sizeof(exe), "%s/proc/%d/exe", root, pid);
	unlink(exe);
	assert_int_equal(symlink("/usr/bin/node", exe), 0);
}

TEST(test_find)
{
	struct jitcheck found[2] = { { 0 } };

	process(5, PLAIN DATA CODE VDSO);
	assert_int_equal(jitcheck_find(root, found, 2), 1);
	assert_int_equal(found[0].pid, 5);
	assert_string_equal(found[0].program, "node");
	assert_non_null(strstr(found[0].fix, "--perf-basic-prof"));
	/* Only by its pid in its namespace, below its root. */
	put(5, "root/tmp/perf-5.map", "");
	assert_int_equal(jitcheck_find(root, found, 2), 1);
	put(5, "root/tmp/perf-12.map", "");
	assert_int_equal(jitcheck_find(root, found, 2), 0);
}

TEST(test_others)
{
	struct jitcheck found[1];

	process(6, PLAIN DATA VDSO);
	process(7, PLAIN DATA CODE VDSO DUMP);
	process(8, "");
	process(9, "no maps at all\n");
	put(10, "comm", "gone\n");
	assert_int_equal(jitcheck_find(root, found, 1), 0);
	process(11, CODE);
	process(12, CODE);
	assert_int_equal(jitcheck_find(root, found, 1), 2);
	assert_int_equal(jitcheck_find("/nowhere", found, 1), 0);
}

/* A process names itself; in --check that is text for the terminal of root. */
TEST(test_hostile_name)
{
	struct jitcheck found[3];
	uint32_t nr;

	process(13, CODE);
	put(13, "comm", "a\033[2J\007\x9b\n");
	nr = jitcheck_find(root, found, 3);
	for (uint32_t i = 0; i < MIN(nr, 3); i++)
		if (found[i].pid == 13)
			assert_string_equal(found[i].program, "a\u00b7[2J\u00b7\u00b7");
	assert_int_equal(nr, 3);
}

static int make(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int clean(void **state)
{
	return fake_remove(root);
}

int main(void)
{
	return run_unit_tests(make, clean);
}
