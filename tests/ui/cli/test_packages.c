// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The package of a file by dpkg's lists; lists that are not trusted are not read.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "ui/cli/cli.h"

static char dir[] = "/tmp/packages-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static char archive[PACKAGES_ARCHIVE_MAX];

/* Wait for the thread's answer. */
static enum packages_result find(struct packages *p, const char *path,
				 char name[static PACKAGES_NAME_MAX])
{
	enum packages_result found;

	while ((found = packages_find(p, path, name, archive)) == PACKAGES_PENDING)
		usleep(1000);
	return found;
}

TEST(test_find)
{
	static const struct {
		const char *path, *package;
	} cases[] = {
		{ "/usr/bin/gzip", "gzip-dbgsym" },
		{ "/bin/gzip", "gzip-dbgsym" },	       /* the list has /usr */
		{ "/usr/lib/libc.so.6", "libc6-dbg" }, /* the list has not */
		{ "/usr/lib/libfirst.so", "first1.0-dbgsym" },
		{ "/usr/lib/libfirst.so.1", "" },
		{ "/usr/bin/gzi", "" },
		{ "/etc/last", "first1.0-dbgsym" },
		{ "/evil", "" },
		{ "/linked", "" },
		{ "gzip", "" },
		{ "/usr/bin\n/usr/bin/gzip", "" },
	};
	char name[PACKAGES_NAME_MAX], path[256], target[256];
	struct packages *p = packages_new(dir, "/nowhere");

	assert_non_null(p);
	put("gzip.list", "/.\n/usr\n/usr/bin\n/usr/bin/gzip\n/usr/bin/gzip.1\n");
	put("libc6:amd64.list", "/.\n/lib/libc.so.6\n");
	put("first1.0:amd64.list", "/usr/lib/libfirst.so\n/etc/last\n");
	put("Evil name.list", "/evil\n");
	put("gzip.md5sums", "/evil\n");
	snprintf(path, sizeof(path), "%s/linked.list", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	put("target", "/linked\n");
	assert_int_equal(symlink(target, path), 0);
	snprintf(path, sizeof(path), "%s/fifo.list", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			enum packages_result found = find(p, cases[i].path, name);

			assert_string_equal(name, cases[i].package);
			assert_int_equal(found, *name ? PACKAGES_FOUND : PACKAGES_NONE);
		}
	}
	packages_free(p);
}

/* The archive of debug symbols is named if it is not enabled, from the archives that are. */
TEST(test_archive)
{
	static const struct {
		const char *list, *paragraphs, *line;
	} cases[] = {
		{ "# comment\ndeb http://x.org/debian/ bookworm main\n", "",
		  "deb http://x.org/debian-debug bookworm-debug main" },
		{ "deb-src http://x.org/debian bookworm main\n"
		  "deb [arch=amd64 signed-by=/k/a.gpg] https://x.org/debian trixie main contrib\n",
		  "", "deb [signed-by=/k/a.gpg] https://x.org/debian-debug trixie-debug main" },
		{ "",
		  "Types: deb\nURIs: http://x.org/debian\nSuites: trixie-updates trixie\n"
		  "Components: main\nSigned-By: /k/b.gpg\n\n"
		  "Types: deb\nURIs: http://x.org/debian-security\nSuites: trixie-security\n",
		  "deb [signed-by=/k/b.gpg] http://x.org/debian-debug trixie-debug main" },
		/* Enabled. */
		{ "deb http://x.org/debian bookworm main\n"
		  "deb http://x.org/debian-debug bookworm-debug main\n",
		  "", "" },
		{ "deb http://x.org/debian bookworm main\n",
		  "Types: deb\nURIs: http://y.org/debian-debug/\nSuites: bookworm-debug\n", "" },
		{ "deb http://x.org/debian bookworm main\n",
		  "Types: deb\nEnabled: no\nURIs: http://y.org/debian-debug/\n"
		  "Suites: bookworm-debug\n",
		  "deb http://x.org/debian-debug bookworm-debug main" },
		/* Another distribution, a password, text for a shell, nothing, nonsense. */
		{ "deb http://x.org/ubuntu noble main\n", "", "" },
		{ "deb http://me:secret@x.org/debian bookworm main\n", "", "" },
		{ "deb http://x.org/';reboot;'/debian bookworm main\n", "", "" },
		{ "", "", "" },
		{ "deb\ndeb [\ndeb ]\ndeb [] \ndebx a b\n", "URIs\n:\nTypes:\n\n\nSuites: -debug",
		  "" },
	};
	char name[PACKAGES_NAME_MAX], path[256];

	snprintf(path, sizeof(path), "%s/sources.list.d", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put("gzip.list", "/usr/bin/gzip\n");
	put("libc6:amd64.list", "/.\n/lib/libc.so.6\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packages *p = packages_new(dir, dir);

		put("sources.list", cases[i].list);
		put("sources.list.d/debian.sources", cases[i].paragraphs);
		assert_int_equal(find(p, "/usr/bin/gzip", name), PACKAGES_FOUND);
		assert_string_equal(archive, cases[i].line);
		/* It is in the main archive. */
		assert_int_equal(find(p, "/lib/libc.so.6", name), PACKAGES_FOUND);
		assert_string_equal(archive, "");
		packages_free(p);
	}
}

/* More answers than are kept; a free while the thread runs; a folder that is not there. */
TEST(test_many)
{
	struct packages *p = packages_new(dir, "/nowhere");
	char name[PACKAGES_NAME_MAX], path[64];

	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "/none/%d", i);
		assert_int_equal(find(p, path, name), PACKAGES_NONE);
	}
	assert_int_equal(find(p, "/usr/bin/gzip", name), PACKAGES_FOUND);
	packages_find(p, "/another", name, archive);
	packages_free(p);
	p = packages_new("/nowhere", "/nowhere");
	assert_int_equal(find(p, "/usr/bin/gzip", name), PACKAGES_NONE);
	packages_free(p);
	packages_free(NULL);
	assert_int_equal(packages_find(NULL, "/usr/bin/gzip", name, archive), PACKAGES_NONE);
}

static int begin(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	static const char *const names[] = {
		"gzip.list",	       "libc6:amd64.list",
		"first1.0:amd64.list", "Evil name.list",
		"gzip.md5sums",	       "target",
		"linked.list",	       "fifo.list",
		"sources.list",	       "sources.list.d/debian.sources"
	};
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/sources.list.d", dir);
	rmdir(path);
	return rmdir(dir);
}

int main(void)
{
	return run_unit_tests(begin, end);
}
