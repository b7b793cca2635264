// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * invoker: behind sudo, files are made with the caller's rights, by one thread only, and everything
 * is restored. For root only.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/invoker.h"

#define NOBODY 65534u

/* A folder that all may write to, and one of root in it. */
static char open_dir[] = "/tmp/test_invoker.XXXXXX", root_dir[64];

static int try_create(const char *dir)
{
	char path[96];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	unlink(path);
	return (int)st.st_uid;
}

static pthread_barrier_t changed;

static void *other_thread(void *arg)
{
	pthread_barrier_wait(&changed);
	assert_int_equal(try_create(root_dir), 0);
	return NULL;
}

static void check_begin_end(void)
{
	struct invoker_saved saved;
	pthread_t thread;
	int sig = 0;

	prctl(PR_SET_PDEATHSIG, SIGUSR2);
	pthread_barrier_init(&changed, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	invoker_begin(&saved);
	assert_int_equal(try_create(root_dir), -EACCES);
	assert_int_equal(try_create(open_dir), NOBODY);
	pthread_barrier_wait(&changed);
	pthread_join(thread, NULL);
	invoker_end(&saved);
	assert_int_equal(try_create(root_dir), 0);
	prctl(PR_GET_PDEATHSIG, &sig);
	assert_int_equal(sig, SIGUSR2);
}

static void check_become(void)
{
	uid_t r, e, s;

	assert_true(invoker_become());
	assert_int_equal(getresuid(&r, &e, &s), 0);
	assert_true(r == NOBODY && e == NOBODY && s == NOBODY);
	assert_int_equal(setuid(0), -1);
	assert_int_equal(try_create(root_dir), -EACCES);
	assert_int_equal(try_create(open_dir), NOBODY);
}

/* In a child: the environment of sudo is that of a whole process. */
static void in_child(void (*check)(void), const char *uid, bool other)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("SUDO_UID", uid, 1);
		setenv("SUDO_GID", uid, 1);
		invoker_init();
		assert_int_equal(invoker_is_other(), other);
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void root_only(void)
{
	if (geteuid())
		skip();
}

TEST(test_begin_end)
{
	root_only();
	in_child(check_begin_end, "65534", true);
}

TEST(test_become)
{
	root_only();
	in_child(check_become, "65534", true);
}

static void check_root(void)
{
	struct invoker_saved saved;

	invoker_begin(&saved);
	assert_int_equal(try_create(root_dir), 0);
	invoker_end(&saved);
	assert_true(invoker_become());
	assert_int_equal(try_create(root_dir), 0);
	assert_null(invoker_name());
}

/* Root itself, and words that are no user. */
TEST(test_root)
{
	static const char *const ids[] = {
		"0", "", "-1", "1x", "4294967295", "99999999999999999999"
	};

	root_only();
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		in_child(check_root, ids[i], false);
}

static int set_up(void **state)
{
	umask(022);
	assert_non_null(mkdtemp(open_dir));
	assert_int_equal(chmod(open_dir, 0777), 0);
	snprintf(root_dir, sizeof(root_dir), "%s/root", open_dir);
	assert_int_equal(mkdir(root_dir, 0755), 0);
	return 0;
}

static int tear_down(void **state)
{
	rmdir(root_dir);
	rmdir(open_dir);
	return 0;
}

int main(void)
{
	return run_unit_tests(set_up, tear_down);
}
