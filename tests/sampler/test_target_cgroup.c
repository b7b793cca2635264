// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target_cgroup: the folder of a cgroup below fake mounts of both versions;
 * and the sentence about one that perf events cannot be bound to.
 */
#include "sampler/event/event.h"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/fake_root.h"
#include "symbols/base/base.h"

static char root[] = "/tmp/proftop-cgroup-XXXXXX";

static const char mounts_v1[] = "proc /proc proc rw 0 0\n"
				"tmpfs %1$s/cg tmpfs rw 0 0\n"
				"cgroup2 %1$s/cg/unified cgroup2 rw 0 0\n"
				"cgroup %1$s/cg/cpu cgroup rw,cpu,cpuacct 0 0\n"
				"cgroup %1$s/cg/perf_event cgroup rw,perf_event 0 0\n";
static const char mounts_v2[] = "cgroup %1$s/cg/cpu cgroup rw,cpu,cpuacct 0 0\n"
				"cgroup2 %1$s/cg/unified cgroup2 rw 0 0\n"
				"cgroup2 %1$s/jail/unified cgroup2 rw 0 0\n";

#define USERS "/cg/unified/user.slice/user-1001.slice/user@1001.service"

static const char *mounted_over = "none"; /* a folder with another file system */

/* In place of the C library's: folders of the fake mounts are cgroups. */
int fstatfs(int fd, struct statfs *fs)
{
	char link[64], path[1024];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	memset(fs, 0, sizeof(*fs));
	fs->f_type = strstr(path, mounted_over) ? TMPFS_MAGIC
		     : strstr(path, "/unified") ? CGROUP2_SUPER_MAGIC
						: CGROUP_SUPER_MAGIC;
	return 0;
}

static int make_tree(void **state)
{
	if (!mkdtemp(root))
		return -1;
	fake_put(root, "/cg/unified/cgroup.controllers", "");
	fake_put(root, "/cg/unified/shop.slice/web/cgroup.type", "domain\n");
	fake_put(root, "/cg/unified/system.slice/docker-3fa1c2d4e5f60718293a4b5c.scope/cgroup.type",
		 "domain\n");
	fake_put(root, "/cg/unified/system.slice/docker-3fa1c2ffffff0718293a4b5c.scope/cgroup.type",
		 "domain\n");
	fake_put(root, "/cg/unified/system.slice/nginx.service/cgroup.type", "domain\n");
	fake_put(root, USERS "/nginx.service/cgroup.type", "domain\n");
	fake_put(root, USERS "/docker-3fa1c2d4e5f60718293a4b5c.scope/cgroup.type", "domain\n");
	fake_put(root, USERS "/editor.service/cgroup.type", "domain\n");
	/* That hierarchy once more. */
	fake_put(root, "/jail/unified/shop.slice/web/cgroup.type", "domain\n");
	fake_put(root, "/cg/cpu/release_agent", "");
	fake_put(root, "/cg/cpu/batch/tasks", "");
	fake_put(root, "/cg/perf_event/release_agent", "");
	fake_put(root, "/cg/perf_event/shop/tasks", "");
	return 0;
}

static int remove_tree(void **state)
{
	return fake_remove(root);
}

/* Under @mounts, @name (%s: the root) is opened, or refused with @says. */
static void expect(const char *mounts, const char *name, bool whole, const char *says)
{
	char text[1024], path[256], full[256];
	struct err e = { "" };
	bool got = !whole;
	int fd;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), mounts, root);
	snprintf(full, sizeof(full), name, root);
#pragma GCC diagnostic pop
	fake_put(root, "/mounts", text);
	snprintf(path, sizeof(path), "%s/mounts", root);
	fd = task_list_open_cgroup(path, full, &got, &e);
	if (!says && (fd < 0 || got != whole))
		fail_msg("%s: %d, whole %d: %s", name, fd, got, e.text);
	if (says && (fd != -ESRCH || !strstr(e.text, says)))
		fail_msg("%s: %d, %s; not '%s'", name, fd, e.text, says);
	if (fd >= 0)
		close(fd);
}

TEST(test_found)
{
	expect(mounts_v2, "/", true, NULL);
	expect(mounts_v2, "shop.slice/web", false, NULL);
	expect(mounts_v2, "/shop.slice/web", false, NULL);
	expect(mounts_v2, "%s/cg/unified/shop.slice/web", false, NULL);
	expect(mounts_v2, "%s/cg/unified", true, NULL);
	expect(mounts_v2, "%s/jail/unified/shop.slice/web", false, NULL);
	expect(mounts_v1, "/", true, NULL);
	expect(mounts_v1, "/shop", false, NULL);
	expect(mounts_v1, "%s/cg/perf_event/shop", false, NULL);
}

/* A container by the id that docker ps shows, a unit by its name. */
TEST(test_by_name)
{
	expect(mounts_v2, "3fa1c2d4e5f6", false, NULL);
	expect(mounts_v2, "3fa1c2d", false, NULL);
	expect(mounts_v2, "nginx.service", false, NULL);
	expect(mounts_v2, "user@1001.service", true, NULL); /* without cgroup.type */
	/* Users give such names too: theirs count if there are no others. */
	expect(mounts_v2, "editor.service", false, NULL);
	expect(mounts_v2, "3fa1c2", false, "'3fa1c2' is not one cgroup but 2");
	expect(mounts_v2, "3fa1c", false, "no cgroup '3fa1c'");
	expect(mounts_v2, "e5f607", false, "no cgroup 'e5f607'");
	expect(mounts_v2, "nginx", false, "no cgroup 'nginx'");
}

TEST(test_refused)
{
	expect(mounts_v2, "/shop", false, "no cgroup '/shop': No such file");
	expect(mounts_v2, "/shop", false, "the line '0::' of /proc/PID/cgroup");
	/* A folder, but no cgroup. */
	expect(mounts_v2, "/tmp", false, "no cgroup '/tmp'");
	expect(mounts_v2, "%s/cg/unifiedly", false, "no cgroup");
	/* There is one of that name, elsewhere. */
	expect(mounts_v1, "/shop.slice/web", false, "/cg/unified, and perf events are of ");
	expect(mounts_v1, "%s/cg/unified/shop.slice/web", false,
	       "/cg/unified, and perf events are of ");
	expect(mounts_v1, "/batch", false, "the line 'perf_event' of /proc/PID/cgroup");
	expect(mounts_v2, "/batch", false, "/cg/cpu, and perf events are of ");
	expect(mounts_v2, "/batch", false, "give a path below /tmp/proftop-cgroup");
	expect("proc /proc proc rw 0 0\n", "/", false, "no cgroups with perf events are mounted");
}

/*
 * Of the path of a user's mount nothing is another mount: a line was cut after 255 bytes, and the
 * type read behind them.
 */
TEST(test_hostile_mount)
{
	char path[300], mounts[1024];
	int n = snprintf(path, sizeof(path), "/home/");

	for (; n + (int)strlen(root) < 255; n++)
		path[n] = n % 100 ? 'x' : '/';
	snprintf(path + n, sizeof(path) - (size_t)n, "/home/shop");
	fake_put(root, path, "");
	unlink(path);
	path[n] = '\0';
	snprintf(mounts, sizeof(mounts), "fuse %%1$s%scgroup2 fuse rw 0 0\n%s", path, mounts_v2);
	expect(mounts, "home", false, "/cg/unified");
	expect(mounts, "/", true, NULL);
	expect(mounts, "shop.slice/web", false, NULL);
	/* Blanks are no ends of a path. */
	fake_put(root, "/two words/unified/shop/cgroup.type", "domain\n");
	snprintf(mounts, sizeof(mounts), "cgroup2 %%1$s/two\\040words/unified cgroup2 rw 0 0\n");
	expect(mounts, "shop", false, NULL);
}

/* A folder of another file system is no cgroup. */
TEST(test_mounted_over)
{
	mounted_over = "/shop.slice/web";
	expect(mounts_v2, "shop.slice/web", false, "no cgroup 'shop.slice/web'");
	expect(mounts_v2, "%s/cg/unified/shop.slice/web", false, "no cgroup");
	expect(mounts_v2, "shop.slice", true, NULL); /* without cgroup.type */
	mounted_over = "/nginx.service";
	expect(mounts_v2, "nginx.service", false, "no cgroup 'nginx.service'");
	mounted_over = "none";
}

/* A name that does not fit is not cut to that of another cgroup. */
TEST(test_long_name)
{
	char mounts[1024], path[64], name[1200];
	struct err e = { "" };
	bool whole;
	size_t nr;
	int fd;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(mounts, sizeof(mounts), mounts_v2, root);
#pragma GCC diagnostic pop
	fake_put(root, "/mounts", mounts);
	snprintf(path, sizeof(path), "%s/mounts", root);
	/* "web" would end at the limit of 1023 bytes. */
	nr = 1023 - strlen(root) - strlen("/cg/unified/shop.slice/web");
	memset(name, '/', nr);
	strcpy(name + nr, "shop.slice/web");
	fd = task_list_open_cgroup(path, name, &whole, &e);
	assert_true(fd >= 0);
	close(fd);
	strcpy(name + nr, "shop.slice/web/nothing");
	assert_int_equal(task_list_open_cgroup(path, name, &whole, &e), -ESRCH);
	assert_non_null(strstr(e.text, "File name too long"));
}

int main(void)
{
	return run_unit_tests(make_tree, remove_tree);
}
