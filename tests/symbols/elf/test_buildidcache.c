// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf's cache of files by build-id: which files of it are opened.
 * Live: reads a clock.
 */
#include "symbols/elf/elf_facts.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"

#define SIZE 20

static char home[] = "/tmp/proftop-cache-XXXXXX", path[512], folder[512];
static uint8_t id[SIZE];

static void copy_program(const char *to)
{
	char command[1200];

	snprintf(command, sizeof(command), "mkdir -p '%s' && cp /proc/%d/exe '%s'", folder,
		 (int)getpid(), to);
	assert_int_equal(system(command), 0);
}

/* The result of a look-up; a file that was opened is this program. */
static int look_up(void)
{
	struct untrusted_file file;
	int code = buildidcache_open(id, SIZE, &file);
	char magic[4];

	if (code)
		return code;
	assert_int_equal(pread(file.fd, magic, sizeof(magic), 0), sizeof(magic));
	assert_memory_equal(magic, "\177ELF", sizeof(magic));
	assert_int_equal(close(file.fd), 0);
	return 0;
}

TEST(test_open)
{
	char other[600];

	assert_int_equal(look_up(), -ENOENT);
	copy_program(path);
	assert_int_equal(look_up(), 0);
	/* perf makes hard links of programs. */
	snprintf(other, sizeof(other), "%s/link", home);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(look_up(), 0);
	/* Of another build-id: the name is no proof. */
	id[SIZE - 1] ^= 1;
	assert_int_equal(look_up(), -ENOENT);
	id[SIZE - 1] ^= 1;
	/* Of another user. */
	if (!geteuid()) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(look_up(), -ENOENT);
		assert_int_equal(chown(path, 0, 0), 0);
		assert_int_equal(look_up(), 0);
	}
	/* A FIFO neither blocks nor is read. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(60);
	assert_int_equal(look_up(), -ENOENT);
	alarm(0);
	assert_int_equal(unlink(path), 0);
}

/* Look up as a process that user @uid started by sudo. */
static int look_up_behind_sudo(const char *uid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("SUDO_UID", uid, 1);
		setenv("SUDO_GID", uid, 1);
		invoker_init();
		assert_true(invoker_is_other());
		_exit(-look_up());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Behind sudo the cache of the caller has files of the caller. */
TEST(test_behind_sudo)
{
	if (geteuid())
		skip();
	assert_int_equal(chmod(home, 0755), 0);
	copy_program(path);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(look_up_behind_sudo("12345"), 0);
	assert_int_equal(look_up_behind_sudo("12346"), -ENOENT);
	assert_int_equal(look_up(), -ENOENT);
	assert_int_equal(unlink(path), 0);
}

/* Folders are links since Linux 4.9; before, the link is that of the file. */
TEST(test_layouts)
{
	char link[512], target[600];

	copy_program(path);
	snprintf(target, sizeof(target), "%s/usr", home);
	assert_int_equal(rename(folder, target), 0);
	assert_int_equal(symlink("../../../usr", folder), 0);
	assert_int_equal(look_up(), 0);
	assert_int_equal(unlink(folder), 0);
	assert_true(buildidcache_path(home, id, SIZE, true, link, sizeof(link)));
	assert_int_equal(symlink("../../../usr/elf", link), 0);
	assert_int_equal(look_up(), 0);
	assert_int_equal(unlink(link), 0);
	assert_false(buildidcache_path("relative", id, SIZE, false, link, sizeof(link)));
	assert_false(buildidcache_path(home, id, 1, false, link, sizeof(link)));
	assert_false(buildidcache_path(home, id, SIZE, false, link, 40));
}

int main(void)
{
	char command[600];
	struct elffile elf;
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), failed;

	if (fd < 0 || fstat(fd, &st) || elffile_open(&elf, fd, NULL, (uint64_t)st.st_size, NULL))
		return 1;
	memcpy(id, elf.build_id, MIN(elf.build_id_size, SIZE));
	elffile_close(&elf);
	close(fd);
	if (!mkdtemp(home) || setenv("HOME", home, 1))
		return 1;
	buildidcache_path(home, id, SIZE, false, path, sizeof(path));
	snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(path) - strlen("/elf")), path);
	failed = run_unit_tests(NULL, NULL);
	snprintf(command, sizeof(command), "rm -r '%s'", home);
	return system(command) || failed;
}
