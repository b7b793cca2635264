// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf's cache of files by build-id. Runs on: helpers.
 */
#include "symbols/object/buildidcache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/invoker.h"
#include "symbols/object/elffacts.h"

#define PATH_SIZE_MAX 4096U

bool buildidcache_path(const char *home, const uint8_t *build_id, size_t size, bool old, char *buf,
		       size_t buf_size)
{
	int at = home && home[0] == '/' && size >= 2
			 ? snprintf(buf, buf_size, "%s/.debug/.build-id/", home)
			 : -1;

	if (at < 0 || (size_t)at + 2 * size + sizeof("//elf") > buf_size)
		return false;
	for (size_t i = 0; i < size; i++)
		at += sprintf(buf + at, i == 1 ? "/%02x" : "%02x", build_id[i]);
	if (!old)
		strcpy(buf + at, "/elf");
	return true;
}

/* The name is no proof: test for the build-id in the file. */
static bool has_build_id(const struct foreign_file *file, const uint8_t *build_id, size_t size)
{
	const struct elffacts_input in = { .fd = file->fd, .size = file->size };
	struct elffacts facts;
	const struct debugfile_names *is = &facts.names;

	/* Old recordings have 20 bytes, whatever the size. */
	return !elffacts_read(&facts, &in) && is->build_id_size && is->build_id_size <= size &&
	       !memcmp(is->build_id, build_id, is->build_id_size);
}

/* Open the file in the cache below @home, which @uid or root made. */
static int open_below(const char *home, uid_t uid, const uint8_t *build_id, size_t size,
		      struct foreign_file *out)
{
	char path[PATH_SIZE_MAX];

	for (int old = 0; old < 2; old++) {
		const struct foreign_want want = {
			.path = path, .owned = true, .linked = true, .uid = uid
		};

		if (!buildidcache_path(home, build_id, size, old, path, sizeof(path)) ||
		    foreign_open(&want, out, NULL))
			continue;
		if (has_build_id(out, build_id, size))
			return 0;
		close(out->fd);
	}
	return -ENOENT;
}

int buildidcache_open(const uint8_t *build_id, size_t size, struct foreign_file *out)
{
	const char *home = getenv("HOME"), *own = invoker_home() ? invoker_home() : home;
	struct invoker_saved saved;
	int code = invoker_begin(&saved, NULL);

	if (!code) {
		code = open_below(own, invoker_uid(), build_id, size, out);
		invoker_end(&saved);
	}
	/* "sudo perf record" has the cache of root. */
	if (code && invoker_is_other() && !invoker_is_unprivileged())
		code = open_below(home, 0, build_id, size, out);
	return code;
}
