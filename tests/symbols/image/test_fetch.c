// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fetch: a debug file from a server on this machine, one that has none, one
 * that never answers (cancel), and none named; the path of the cache; behind sudo all files
 * are of the caller.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

#define SECOND 1000000000ULL
#define NOBODY 65534u

static const uint8_t build_id[20] = {
	0xab, 0xcd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
};
#define HEX_ID "abcd0102030405060708090a0b0c0d0e0f101112"

struct fixture {
	struct objects *objects;
	struct object *object;
	struct helpers *helpers;
	struct fetch_desk desk;
	int event, socket;
	pid_t server;
	char cache[40], url[40], text[256];
};

/* Answers with a few bytes for the one file, else that there is none; @mute: never. */
static void serve(int fd, bool mute)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int c = accept(fd, NULL, NULL);
		char buf[2048] = "";

		if (c < 0 || read(c, buf, sizeof(buf) - 1) < 0)
			continue;
		if (mute)
			pause();
		if (strstr(buf, "GET /buildid/" HEX_ID "/debuginfo"))
			dprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: "
				   "close\r\n\r\nhello");
		else
			dprintf(c, "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: "
				   "close\r\n\r\n");
		close(c);
	}
}

static void start_server(struct fixture *f, bool mute)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);

	f->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->socket, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(f->socket, 8), 0);
	getsockname(f->socket, (struct sockaddr *)&a, &size);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", ntohs(a.sin_port));
	setenv("DEBUGINFOD_URLS", f->url, 1);
	f->server = fork();
	if (!f->server)
		serve(f->socket, mute);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct object_identity id = { .kind = OBJECT_FILE, .ino = 1, .build_id_size = 20 };

	memcpy(id.build_id, build_id, sizeof(build_id));
	assert_int_equal(objects_new(&f->objects), 0);
	f->object = objects_intern(f->objects, &id, "/lib/libx.so", 12, 1, 0, 1);
	f->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(helpers_new(&f->helpers, f->event), 0);
	fetch_init(&f->desk, f->objects);
	f->desk.helpers = f->helpers;
	strcpy(f->cache, "/tmp/test_fetch.XXXXXX");
	assert_non_null(mkdtemp(f->cache));
	setenv("DEBUGINFOD_CACHE_PATH", f->cache, 1);
	setenv("no_proxy", "127.0.0.1", 1);
	unsetenv("DEBUGINFOD_URLS");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[80];

	if (f->server > 0) {
		kill(f->server, SIGKILL);
		waitpid(f->server, NULL, 0);
		close(f->socket);
	}
	fetch_fini(&f->desk);
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 10 * SECOND), 0);
	close(f->event);
	objects_free(f->objects);
	snprintf(command, sizeof(command), "rm -rf %s", f->cache);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* Serve until a message with @words is there; return the object of the file. */
static uint32_t until(struct fixture *f, const char *words)
{
	uint64_t end = time_now_ns() + 20 * SECOND;
	struct pollfd p = { .fd = f->event, .events = POLLIN };
	uint32_t came = OBJECT_ID_UNKNOWN;
	uint64_t nr;

	while (time_now_ns() < end) {
		uint32_t id = fetch_serve(&f->desk, time_now_ns());

		came = id ? id : came;
		if (fetch_news(&f->desk, f->text, sizeof(f->text)) && strstr(f->text, words))
			return came;
		if (poll(&p, 1, 20) > 0 && read(f->event, &nr, sizeof(nr)) < 0)
			break;
	}
	fail_msg("no '%s', but '%s'", words, f->text);
	return 0;
}

static void need_library(void)
{
	if (!dlopen("libdebuginfod.so.1", RTLD_NOW)) {
		skip_test("not installed: libdebuginfod");
	}
}

TEST(test_no_server, setup, teardown)
{
	struct fixture *f = *state;

	fetch_ask(&f->desk, f->object->id);
	until(f, "set DEBUGINFOD_URLS");
	assert_false(fetch_busy(&f->desk));
	fetch_ask(&f->desk, OBJECT_ID_KERNEL);
	until(f, "not a file: [kernel]");
}

TEST(test_comes, setup, teardown)
{
	struct fixture *f = *state;
	char path[256], bytes[8] = "";
	FILE *file;

	need_library();
	start_server(f, false);
	fetch_ask(&f->desk, f->object->id);
	assert_int_equal(until(f, "fetched debug symbols for libx.so"), f->object->id);
	/* Where debugfile.c looks first. */
	assert_true(debugfile_cache_path(build_id, 20, 0, path, sizeof(path)));
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof(bytes) - 1, file), 5);
	assert_string_equal(bytes, "hello");
	fclose(file);
}

TEST(test_none, setup, teardown)
{
	struct fixture *f = *state;
	struct object_identity id = { .kind = OBJECT_FILE, .ino = 2, .build_id_size = 20 };
	struct object *other;

	need_library();
	start_server(f, false);
	memset(id.build_id, 7, 20);
	other = objects_intern(f->objects, &id, "/lib/liby.so", 12, 1, 0, 1);
	fetch_ask(&f->desk, other->id);
	assert_int_equal(until(f, "no server has debug symbols for liby.so"), OBJECT_ID_UNKNOWN);
	id = (struct object_identity){ .kind = OBJECT_FILE, .ino = 3 };
	other = objects_intern(f->objects, &id, "/lib/libz.so", 12, 1, 0, 1);
	fetch_ask(&f->desk, other->id);
	until(f, "libz.so has no build-id");
}

static void set_cache(const char *path, const char *home)
{
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	if (path)
		setenv("DEBUGINFOD_CACHE_PATH", path, 1);
	else
		unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* Without a folder for the cache no server is asked, which is not their fault. */
TEST(test_no_cache, setup, teardown)
{
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	struct fixture *f = *state;
	char path[80];

	need_library();
	start_server(f, false);
	snprintf(path, sizeof(path), "%s/no-such-home", f->cache);
	set_cache(NULL, path);
	fetch_ask(&f->desk, f->object->id);
	until(f, "/no-such-home/.cache/debuginfod_client: No such file or directory: set ");
	assert_memory_equal(f->text, "cannot fetch debug symbols: cannot make the cache /tmp/", 55);
	/* The one in the home is not used. */
	strcat(path, "/folder");
	set_cache(path, f->cache);
	fetch_ask(&f->desk, f->object->id);
	until(f, "/no-such-home/folder: No such file or directory: set ");
	/* It is made if it can be. */
	set_cache(NULL, f->cache);
	fetch_ask(&f->desk, f->object->id);
	assert_int_equal(until(f, "fetched debug symbols for libx.so"), f->object->id);
	set_cache(f->cache, home ? home : "");
	free(home);
}

TEST(test_cancel, setup, teardown)
{
	struct fixture *f = *state;
	char path[256];

	need_library();
	start_server(f, true);
	fetch_ask(&f->desk, f->object->id);
	until(f, "D cancels");
	assert_true(fetch_busy(&f->desk));
	fetch_ask(&f->desk, OBJECT_ID_VDSO);
	until(f, "still fetching");
	fetch_ask(&f->desk, f->object->id);
	assert_int_equal(until(f, "cancelled fetching"), OBJECT_ID_UNKNOWN);
	assert_false(fetch_busy(&f->desk));
	/* That is no answer: the next one sends a request again. */
	assert_true(debugfile_cache_path(build_id, 20, 0, path, sizeof(path)));
	assert_int_not_equal(access(path, F_OK), 0);
}

static unsigned int nr_ours, nr_theirs;

static int count_owner(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)type;
	(void)ftw;
	*(st->st_uid == NOBODY ? &nr_theirs : &nr_ours) += 1;
	return 0;
}

static void become_sudo(struct fixture *f)
{
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	invoker_init();
	assert_true(invoker_is_other());
	assert_int_equal(chown(f->cache, NOBODY, NOBODY), 0);
}

/* Fetch the file, and end the server. */
static void fetch_as_sudo(struct fixture *f, const char *words)
{
	become_sudo(f);
	start_server(f, false);
	fetch_ask(&f->desk, f->object->id);
	until(f, words);
	kill(f->server, SIGKILL);
	waitpid(f->server, NULL, 0);
	f->server = 0;
}

/* The cache is of the caller: a link in it makes no file in a folder of root. */
static void check_link(struct fixture *f)
{
	char folder[] = "/tmp/test_fetch.XXXXXX", to[64], from[64];

	assert_non_null(mkdtemp(folder));
	snprintf(to, sizeof(to), "%s/file", folder);
	snprintf(from, sizeof(from), "%s/cache_clean_interval_s", f->cache);
	assert_int_equal(symlink(to, from), 0);
	fetch_as_sudo(f, "cannot fetch debug symbols for libx.so: ");
	assert_int_not_equal(unlink(to), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void check_owner(struct fixture *f)
{
	fetch_as_sudo(f, "fetched debug symbols for libx.so");
	assert_int_equal(nftw(f->cache, count_owner, 8, FTW_PHYS), 0);
	assert_int_equal(nr_ours, 0);
	assert_true(nr_theirs >= 3);
}

/* In a child: the environment of sudo is that of a whole process. */
static void in_child(struct fixture *f, void (*check)(struct fixture *f))
{
	pid_t child;
	int status;

	need_library();
	if (geteuid())
		skip();
	child = fork();
	if (!child) {
		check(f);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(test_sudo_link, setup, teardown)
{
	in_child(*state, check_link);
}

TEST(test_sudo_owner, setup, teardown)
{
	in_child(*state, check_owner);
}

static void check_home(struct fixture *f)
{
	const char *set;

	become_sudo(f);
	invoker_set_cache();
	assert_string_equal(getenv("DEBUGINFOD_CACHE_PATH"), f->cache);
	unsetenv("DEBUGINFOD_CACHE_PATH");
	invoker_set_cache();
	set = getenv("DEBUGINFOD_CACHE_PATH");
	if (!invoker_home())
		return;
	assert_non_null(set);
	assert_memory_equal(set, invoker_home(), strlen(invoker_home()));
	assert_string_equal(set + strlen(invoker_home()), "/.cache/debuginfod_client");
	invoker_unset_cache();
	assert_null(getenv("DEBUGINFOD_CACHE_PATH"));
}

/* The default is in the home of the caller, and not for commands, which are of root. */
TEST(test_sudo_home, setup, teardown)
{
	in_child(*state, check_home);
}

TEST(test_cache_path)
{
	char path[80];

	setenv("DEBUGINFOD_CACHE_PATH", "/c", 1);
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "/home/x", 1);
	assert_true(debugfile_cache_path(build_id, 20, 0, path, sizeof(path)));
	assert_string_equal(path, "/c/" HEX_ID "/debuginfo");
	assert_true(debugfile_cache_path(build_id, 20, 1, path, sizeof(path)));
	assert_string_equal(path, "");
	assert_true(debugfile_cache_path(build_id, 2, 2, path, sizeof(path)));
	assert_string_equal(path, "/home/x/.cache/debuginfod_client/abcd/debuginfo");
	assert_true(debugfile_cache_path(build_id, 20, 2, path, sizeof(path)));
	assert_string_equal(path, ""); /* does not fit */
	assert_false(debugfile_cache_path(build_id, 20, 4, path, sizeof(path)));
	assert_false(debugfile_cache_path(build_id, 0, 0, path, sizeof(path)));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
