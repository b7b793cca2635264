// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find processes with anonymous code and neither a perf map nor a jitdump.
 *
 * Any one thread that may wait; a /tmp that hangs holds a helper only. Here it is enough that a map
 * exists; the loader checks its owner.
 */
#include "symbols/jit/jitcheck.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/base/helper.h"
#include "symbols/base/text.h"
#include "symbols/process/procfs.h"
#include "symbols/jit/runtime.h"

#define PROC_TEXT_MAX (64U << 10)
#define SEARCH_NS     500000000ULL /* a longer search hangs */
#define HANGING_MAX   4U	   /* then no other one is begun */

struct check {
	const char *root;
	struct helpers *helpers;
	unsigned int nr_hanging;
};

/* Return true if the file has a name of jitdumps: see jitdumps.c. */
static bool is_dump(const struct procfs_map *map)
{
	const char *name = map->path_size ? memrchr(map->path, '/', map->path_size) : NULL;
	size_t size = name ? (size_t)(map->path + map->path_size - name) : 0;

	return size > 5 && !memcmp(name, "/jit-", 5) && isdigit((unsigned char)name[5]);
}

/* Return true if there is code without a file, and no jitdump is mapped. */
static bool has_untold_code(const char *maps, size_t size)
{
	struct procfs_text text = { .at = maps, .end = maps + size };
	struct procfs_map map;
	bool code = false;

	while (procfs_next_map(&text, &map)) {
		if (!map.exec)
			continue;
		if (is_dump(&map))
			return false;
		code |= !map.path_size;
	}
	return code;
}

/* A job: search one perf map. It uses nothing but this. */
struct search {
	struct job job;
	char root[512], path[64];
	bool found;
};

static void run_search(struct job *job)
{
	struct search *s = (struct search *)job;
	struct foreign_want want = { .root = s->root, .path = s->path };
	struct foreign_file file;

	s->found = !foreign_open(&want, &file, NULL);
	if (s->found)
		close(file.fd);
}

static void drop_search(struct job *job)
{
	free(job);
}

/* Test for a perf map; one that cannot be seen in time is assumed. */
static bool has_map(struct check *c, int dir_fd, pid_t pid)
{
	struct search *s;
	uint64_t inner = (uint64_t)pid;
	char *status;
	size_t size;
	bool found;

	if (c->nr_hanging == HANGING_MAX ||
	    foreign_read_at(dir_fd, "status", PROC_TEXT_MAX, &status, &size))
		return true;
	procfs_status_inner(status, size, &inner);
	s = calloc(1, sizeof(*s));
	if (s) {
		s->job.run = run_search;
		s->job.drop = drop_search;
		snprintf(s->root, sizeof(s->root), "%s/proc/%d/root", c->root, pid);
		snprintf(s->path, sizeof(s->path), "/tmp/perf-%" PRIu64 ".map", inner);
	}
	free(status);
	if (!s)
		return true;
	if (helpers_call(c->helpers, &s->job, time_now_ns() + SEARCH_NS)) {
		c->nr_hanging++;
		return true;
	}
	found = s->found;
	free(s);
	return found;
}

static void name_program(int dir_fd, char *dst, size_t size)
{
	char *text;
	size_t nr;

	if (foreign_read_at(dir_fd, "comm", PROC_TEXT_MAX, &text, &nr)) {
		snprintf(dst, size, "?");
		return;
	}
	text_sanitise(dst, size, text, strcspn(text, "\n"));
	free(text);
}

static bool is_silent(struct check *c, int dir_fd, pid_t pid)
{
	size_t size;
	char *maps;
	bool code;

	if (foreign_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		return false;
	code = has_untold_code(maps, size);
	free(maps);
	return code && !has_map(c, dir_fd, pid);
}

uint32_t jitcheck_find(const char *root, struct jitcheck *out, uint32_t max)
{
	struct check c = { .root = root };
	char path[512];
	struct dirent *d;
	uint32_t nr = 0;
	DIR *proc;

	if (helpers_new(&c.helpers, -1))
		return 0;
	snprintf(path, sizeof(path), "%s/proc", root);
	proc = opendir(path);
	while (proc && (d = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)d->d_name[0])
				    ? (pid_t)strtol(d->d_name, NULL, 10)
				    : 0;
		int fd = pid > 0 ? openat(dirfd(proc), d->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC)
				 : -1;

		if (fd < 0)
			continue;
		if (is_silent(&c, fd, pid)) {
			if (nr < max) {
				out[nr] = (struct jitcheck){
					.pid = pid, .fix = runtime_fix_of(RUNTIME_NO_MAP, fd)
				};
				name_program(fd, out[nr].program, sizeof(out[nr].program));
			}
			nr++;
		}
		close(fd);
	}
	if (proc)
		closedir(proc);
	helpers_free(c.helpers, time_now_ns());
	return nr;
}
