// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * invoker: behind sudo, files are made with the caller's rights, by one thread only, and everything
 * is restored. For root only.
 * Live: some parts need root.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"

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
	assert_int_equal(invoker_begin(&saved, NULL), 0);
	assert_int_equal(try_create(root_dir), -EACCES);
	assert_int_equal(try_create(open_dir), NOBODY);
	pthread_barrier_wait(&changed);
	pthread_join(thread, NULL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
#endif
	invoker_end(&saved);
	assert_int_equal(try_create(root_dir), 0);
	prctl(PR_GET_PDEATHSIG, &sig);
	assert_int_equal(sig, SIGUSR2);
}

/* Without the power to change the user nothing is changed, and the caller gets a message. */
static void check_refused(void)
{
	static const unsigned int needed[] = { CAP_SETUID, CAP_SETGID };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3], less[ARRAY_SIZE(all)];
	int nr_groups = getgroups(0, NULL);
	struct invoker_saved saved;
	struct err e;

	assert_int_equal(syscall(SYS_capget, &header, all), 0);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		memcpy(less, all, sizeof(less));
		less[0].effective &= ~(1u << needed[i]);
		assert_int_equal(syscall(SYS_capset, &header, less), 0);
		e.text[0] = '\0';
		assert_int_equal(invoker_begin(&saved, &e), -EPERM);
		assert_non_null(strstr(e.text, "invoking user 65534"));
		assert_int_equal(invoker_begin(&saved, NULL), -EPERM);
		assert_int_equal(try_create(root_dir), 0);
		assert_int_equal(getgroups(0, NULL), nr_groups);
		assert_int_equal(syscall(SYS_capset, &header, all), 0);
	}
}

/* With the rights of the user, no capability is left to get others. */
static void check_stay(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	struct invoker_saved saved;

	assert_int_equal(invoker_begin(&saved, NULL), 0);
	invoker_stay();
	assert_int_equal(syscall(SYS_capget, &header, caps), 0);
	assert_int_equal(caps[0].permitted | caps[1].permitted, 0);
	assert_int_equal(try_create(root_dir), -EACCES);
	assert_int_equal(try_create(open_dir), NOBODY);
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

TEST(test_refused)
{
	root_only();
	in_child(check_refused, "65534", true);
}

TEST(test_stay)
{
	root_only();
	in_child(check_stay, "65534", true);
}

TEST(test_become)
{
	root_only();
	in_child(check_become, "65534", true);
}

static void check_root(void)
{
	struct invoker_saved saved;

	assert_int_equal(invoker_begin(&saved, NULL), 0);
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
