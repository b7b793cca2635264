// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The opener against files that lie: FIFOs, devices, symlinks out of a root,
 * sparse giants, files replaced under a mapping.
 * Live: some parts need root.
 */
#include "symbols/base/base.h"
#include "symbols/base/file.h"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

static const char *at(const char *name)
{
	static char path[4][256];
	static int next;
	char *p = path[next++ & 3];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static struct untrusted_want want_ino(pid_t pid, const char *path, const char *of)
{
	struct untrusted_want want = { .pid = pid, .path = path };
	struct stat st;

	assert_int_equal(stat(of, &st), 0);
	want.maj = major(st.st_dev);
	want.min = minor(st.st_dev);
	want.ino = st.st_ino;
	return want;
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/test_foreign.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

/* Expect refusal with @code, and no open descriptor. */
static void refuse(const struct untrusted_want *want, int code)
{
	struct untrusted_file f;
	struct err e = { "" };
	int before = dup(0);

	close(before);
	assert_int_equal(untrusted_open(want, &f, &e), code);
	assert_int_equal(f.fd, -1);
	assert_true(strlen(e.text) > 10);
	assert_null(strchr(e.text, '\033'));
	assert_int_equal(dup(0), before);
	close(before);
}

static void expect(const struct untrusted_want *want, const char *text, bool same)
{
	struct untrusted_file f;
	struct err e = { "" };
	char buf[64] = "";

	if (untrusted_open(want, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(read(f.fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	assert_int_equal(f.size, strlen(text));
	assert_int_equal(f.same, same);
	assert_true(f.ino > 0 && f.mtime_ns > 0);
	assert_int_equal(fcntl(f.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(f.fd, "x", 1), -1);
	close(f.fd);
}

/* A file that has the inode number of another one, which was deleted. */
TEST(test_generation)
{
	const char *path = at("generation");
	const pid_t pids[] = { 0, getpid() };

	write_file(path, "hello");
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		struct untrusted_want want = want_ino(pids[i], path, path);
		struct untrusted_file f;

		assert_int_equal(untrusted_open(&want, &f, NULL), 0);
		close(f.fd);
		if (!f.generation)
			skip_test("not on this machine: /tmp without generations of inodes");
		want.generation = f.generation;
		expect(&want, "hello", true);
		want.generation++;
		refuse(&want, -ESTALE);
	}
}

TEST(test_plain)
{
	const char *path = at("plain");
	struct untrusted_want want = { .path = path };

	write_file(path, "hello");
	expect(&want, "hello", false);
	want = want_ino(getpid(), path, path);
	expect(&want, "hello", true);
	want.size_max = 5;
	expect(&want, "hello", true);
	want.size_max = 4;
	refuse(&want, -EFBIG);
	want.size_max = 0;
	want.ino += 1 << 30; /* free */
	refuse(&want, -ESTALE);
	want = (struct untrusted_want){ .path = "plain" }; /* relative */
	refuse(&want, -ENOENT);
	want.path = at("nothing\033[2J");
	refuse(&want, -ENOENT);
	want.path = NULL;
	refuse(&want, -ENOENT);
}

/* A FIFO without a writer would block a naive open for ever. */
TEST(test_not_regular)
{
	struct untrusted_want want = { .path = at("fifo") };

	assert_int_equal(mkfifo(want.path, 0644), 0);
	alarm(60);
	refuse(&want, -EINVAL);
	alarm(0);
	want.path = "/dev/zero";
	refuse(&want, -EINVAL);
	want.path = dir;
	refuse(&want, -EINVAL);
	want.path = "/proc/kallsyms";
	refuse(&want, -EINVAL);
	want.path = "/sys/kernel/notes";
	if (!access(want.path, F_OK))
		refuse(&want, -EINVAL);
	/* No magic link is followed. */
	want.path = "/proc/self/exe";
	refuse(&want, -ELOOP);
}

TEST(test_sparse)
{
	struct untrusted_want want = { .path = at("sparse") };
	int fd = open(want.path, O_WRONLY | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	close(fd);
	refuse(&want, -EFBIG);
}

TEST(test_deleted_suffix)
{
	char lie[256];
	struct untrusted_want want;

	write_file(at("lib.so"), "code");
	snprintf(lie, sizeof(lie), "%s (deleted)", at("lib.so"));
	want = want_ino(0, lie, at("lib.so"));
	expect(&want, "code", true); /* renamed away and back: the inode proves it */
	want.ino += 1 << 30;	     /* free */
	refuse(&want, -ESTALE);	     /* the bare name leads to another file */
	want.ino = 0;
	refuse(&want, -ENOENT); /* nothing proves it */
	write_file(lie, "really named so");
	expect(&want, "really named so", false);
	want = want_ino(0, lie, lie);
	expect(&want, "really named so", true);
}

/* A child that maps @path executable, then says so; killed by end_child(). */
static pid_t mapping_child(const char *path, const char *root, uint64_t *start)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		int fd;
		void *p;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nothing behind */
		if (root && (chroot(root) || chdir("/")))
			_exit(1);
		fd = open(path, O_RDONLY);
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED || write(fds[1], &p, sizeof(p)) != sizeof(p))
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], start, sizeof(*start)), sizeof(*start));
	close(fds[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool map_files_work(pid_t pid, uint64_t start)
{
	char link[96], target[256];

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)start + 4096);
	return readlink(link, target, sizeof(target)) > 0 && !access(link, R_OK);
}

TEST(test_replaced)
{
	const char *path = at("mapped.so");
	struct untrusted_want want;
	uint64_t start;
	pid_t pid;

	write_file(path, "old");
	want = want_ino(0, path, path);
	pid = mapping_child(path, NULL, &start);
	want.pid = pid;
	expect(&want, "old", true);
	/* A FIFO, then another file in its place: only map_files still knows the old one. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	refuse(&want, -ESTALE);
	assert_int_equal(unlink(path), 0);
	write_file(at("new"), "new");
	assert_int_equal(rename(at("new"), path), 0);
	refuse(&want, -ESTALE);
	if (map_files_work(pid, start)) {
		want.start = start;
		want.end = start + 4096;
		expect(&want, "old", true);
		want.path = NULL;
		expect(&want, "old", true);
		/* Unmapped since: no such link; the path is another file. */
		want.path = path;
		want.end += 4096;
		refuse(&want, -ESTALE);
		/* Remapped since: the link leads to another inode. */
		want.end -= 4096;
		want.ino += 1 << 30; /* free */
		refuse(&want, -ESTALE);
	}
	end_child(pid);
}

TEST(test_mapped_device)
{
	struct untrusted_want want = { .path = "/dev/zero" };
	uint64_t start;

	want.pid = mapping_child("/dev/zero", NULL, &start);
	want.start = start;
	want.end = start + 4096;
	refuse(&want, -EINVAL);
	end_child(want.pid);
}

/* faults.md P1: a symlink of a container must not lead to the host's file. */
TEST(test_root)
{
	struct untrusted_want want = { .path = "/lib/x.so" };
	uint64_t start;
	char out[256];

	if (geteuid())
		skip_test("not permitted: root only");
	write_file(at("secret"), "host");
	assert_int_equal(mkdir(at("root"), 0755), 0);
	assert_int_equal(mkdir(at("root/lib"), 0755), 0);
	write_file(at("root/lib/own"), "container");
	assert_int_equal(symlink(at("secret"), at("root/lib/x.so")), 0);
	assert_int_equal(symlink("../../../../../../lib/own", at("root/lib/up.so")), 0);
	want.pid = mapping_child("/lib/own", at("root"), &start);
	refuse(&want, -ENOENT);
	want.path = "/lib/up.so"; /* ".." stops at its root */
	expect(&want, "container", false);
	want.path = "/lib/own";
	expect(&want, "container", false);
	/* A folder that leads out, and one that leads round and round. */
	assert_int_equal(symlink("/", at("root/all")), 0);
	assert_int_equal(symlink("/proc/1/root", at("root/magic")), 0);
	assert_int_equal(symlink("round", at("root/round")), 0);
	want.path = "/all/all/all/lib/own";
	expect(&want, "container", false);
	snprintf(out, sizeof(out), "/all%s", at("secret"));
	want.path = out;
	refuse(&want, -ENOENT);
	want.path = "/magic/etc/hostname";
	refuse(&want, -ENOENT);
	want.path = "/round/own";
	refuse(&want, -ELOOP);
	/* Even when the host's inode is requested by name, only the host's path may give it. */
	want = want_ino(want.pid, "/lib/x.so", at("secret"));
	refuse(&want, -ENOENT);
	end_child(want.pid);
}

TEST(test_gone)
{
	struct untrusted_want want;
	char *text;
	size_t size;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	write_file(at("kept"), "kept");
	want = want_ino(pid, at("kept"), at("kept"));
	expect(&want, "kept", true); /* proven by its inode */
	want.ino = 0;
	refuse(&want, -ENOENT); /* not proven */
	assert_int_equal(untrusted_read_proc(pid, "maps", 100, &text, &size), -ESRCH);
	assert_int_equal(untrusted_open_proc(pid), -ESRCH);
	assert_int_equal(untrusted_open_proc(0), -ESRCH);
}

TEST(test_read_proc)
{
	char *text;
	size_t size;

	assert_int_equal(untrusted_read_proc(getpid(), "status", 1 << 20, &text, &size), 0);
	assert_int_equal(strlen(text), size);
	assert_non_null(strstr(text, "Uid:"));
	free(text);
	assert_int_equal(untrusted_read_proc(getpid(), "maps", 1 << 24, &text, &size), 0);
	assert_non_null(strstr(text, "libc"));
	assert_int_equal(text[size - 1], '\n');
	free(text);
	assert_int_equal(untrusted_read_proc(getpid(), "maps", 10, &text, &size), 0);
	assert_int_equal(size, 10);
	free(text);
	assert_int_equal(untrusted_read_proc(getpid(), "none", 10, &text, &size), -ESRCH);
}

int main(void)
{
	return run_unit_tests(setup, teardown);
}
