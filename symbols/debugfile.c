// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find and open the separate debug file that belongs to an object.
 *
 * Runs on: the loader. A file with the right name but another build-id is none.
 */
#include "symbols/debugfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/foreign.h"

#define DEBUG_ROOT	"/usr/lib/debug/.build-id/"
#define DEBUG_SIZE_MAX	(8ULL << 30)

bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size)
{
	static const char hex[] = "0123456789abcdef";
	size_t pos = sizeof(DEBUG_ROOT) - 1;

	if (size < 2 || buf_size < pos + 2 * size + sizeof("/.debug"))
		return false;
	memcpy(buf, DEBUG_ROOT, pos);
	for (size_t i = 0; i < size; i++) {
		buf[pos++] = hex[build_id[i] >> 4];
		buf[pos++] = hex[build_id[i] & 15];
		if (i == 0)
			buf[pos++] = '/';
	}
	memcpy(buf + pos, ".debug", sizeof(".debug"));
	return true;
}

static const Elf64_Phdr *first_load(const struct elffile *f)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		if (f->phdrs[i].p_type == PT_LOAD)
			return &f->phdrs[i];
	}
	return NULL;
}

/* Does @debug belong to @object? Then *bias corrects what prelinking moved. */
static bool belongs(const struct elffile *object, const struct elffile *debug, uint64_t *bias)
{
	const Elf64_Phdr *a = first_load(object), *b = first_load(debug);

	if (debug->build_id_size != object->build_id_size || debug->machine != object->machine ||
	    memcmp(debug->build_id, object->build_id, object->build_id_size))
		return false;
	*bias = a && b ? a->p_vaddr - b->p_vaddr : 0;
	return true;
}

int debugfile_open(const struct elffile *object, struct elffile *debug, uint64_t *bias)
{
	char path[sizeof(DEBUG_ROOT) + 2 * sizeof(object->build_id) + sizeof("/.debug")];
	struct foreign_want want = { .path = path, .size_max = DEBUG_SIZE_MAX };
	struct foreign_file file;
	int rc;

	if (!debugfile_path(object->build_id, object->build_id_size, path, sizeof(path)))
		return -ENOENT;
	rc = foreign_open(&want, &file, NULL);
	if (rc)
		return rc;
	rc = elffile_open(debug, file.fd, NULL, file.size, NULL);
	if (rc) {
		close(file.fd);
		return rc;
	}
	if (!belongs(object, debug, bias)) {
		debugfile_close(debug);
		return -ENOENT;
	}
	return 0;
}

void debugfile_close(struct elffile *debug)
{
	close(debug->fd);
	elffile_close(debug);
}
