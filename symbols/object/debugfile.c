// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find and open the separate debug file of an object.
 *
 * Runs on: a helper. A file of the right name with another build-id is ignored.
 */
#include "symbols/object/debugfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/object/fetch.h"
#include "symbols/base/foreign.h"

#define DEBUG_ROOT     DEBUGFILE_ROOT "/.build-id/"
#define DEBUG_SIZE_MAX (8ULL << 30)
#define LINK_SIZE_MAX  512U
#define PATH_SIZE_MAX  4096U

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

static bool same_build_id(const struct elffile *object, const struct elffile *debug)
{
	return debug->build_id_size == object->build_id_size &&
	       !memcmp(debug->build_id, object->build_id, object->build_id_size);
}

/* Return the difference of addresses that prelinking made. */
static uint64_t bias_of(const struct elffile *object, const struct elffile *debug)
{
	const Elf64_Phdr *a = first_load(object), *b = first_load(debug);

	return a && b ? a->p_vaddr - b->p_vaddr : 0;
}

/*
 * Open @path in our root as an ELF file. @ours: only if it belongs to us or to root.
 * @watch: that of the object.
 */
static int open_elf(const char *path, uint64_t size_max, bool ours, struct watch *watch,
		    struct elffile *out)
{
	const struct foreign_want want = {
		.path = path,
		.size_max = size_max,
		.owned = ours,
		.uid = geteuid(),
	};
	struct foreign_file file;
	int rc = watch_begin(watch);

	if (rc)
		return rc;
	rc = foreign_open(&want, &file, NULL);
	watch_end(watch, 0);
	if (rc)
		return rc;
	rc = elffile_open_watched(out, file.fd, file.size, watch, NULL);
	if (rc)
		close(file.fd);
	return rc;
}

/* Check that @debug belongs to @object; else close it. */
static int belongs(const struct elffile *object, struct elffile *debug, uint64_t *bias)
{
	if (!same_build_id(object, debug) || debug->machine != object->machine) {
		debugfile_close(debug);
		return -ENOENT;
	}
	*bias = bias_of(object, debug);
	return 0;
}

/* Open the file in the cache of debuginfod. */
static int open_cached(const struct elffile *object, struct elffile *debug, uint64_t *bias)
{
	char path[PATH_SIZE_MAX];

	for (unsigned int i = 0;
	     fetch_cache_path(object->build_id, object->build_id_size, i, path, sizeof(path));
	     i++) {
		if (*path && !open_elf(path, DEBUG_SIZE_MAX, true, object->watch, debug) &&
		    !belongs(object, debug, bias))
			return 0;
	}
	return -ENOENT;
}

int debugfile_open(const struct elffile *object, struct elffile *debug, uint64_t *bias)
{
	char path[sizeof(DEBUG_ROOT) + 2 * sizeof(object->build_id) + sizeof("/.debug")];
	int rc;

	if (!debugfile_path(object->build_id, object->build_id_size, path, sizeof(path)))
		return -ENOENT;
	rc = open_elf(path, DEBUG_SIZE_MAX, false, object->watch, debug);
	return rc ? open_cached(object, debug, bias) : belongs(object, debug, bias);
}

/*
 * Compute the CRC-32 of .gnu_debuglink (reversed polynomial 0xedb88320), eight bits
 * at a time.
 */
static int file_crc(const struct elffile *f, uint32_t *out)
{
	static const size_t room = 1U << 20;
	uint32_t table[256], crc = ~0U;
	uint8_t *buf = malloc(room);
	int rc = buf ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320U : 0);
	}
	for (uint64_t at = 0; at < f->size && !rc; at += room) {
		size_t here = MIN(f->size - at, room);

		rc = elffile_read(f, at, buf, here);
		for (size_t i = 0; i < here && !rc; i++)
			crc = table[(crc ^ buf[i]) & 0xff] ^ crc >> 8;
	}
	free(buf);
	*out = ~crc;
	return rc;
}

/* Read .gnu_debuglink: a basename and the CRC of that file. */
static bool read_link(const struct elffile *f, char name[LINK_SIZE_MAX], uint32_t *crc)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debuglink");
	size_t size;

	if (!s || s->sh_size < 8 || s->sh_size > LINK_SIZE_MAX ||
	    elffile_read(f, s->sh_offset, name, s->sh_size))
		return false;
	size = strnlen(name, s->sh_size - 4);
	if (!size || size == s->sh_size - 4 || memchr(name, '/', size) || name[0] == '.')
		return false;
	memcpy(crc, name + s->sh_size - 4, sizeof(*crc));
	return true;
}

/* Open @path if it is the file of the link of @object. */
static int open_linked(const struct elffile *object, const char *path, uint32_t crc,
		       struct elffile *debug)
{
	int rc = open_elf(path, DEBUGFILE_CRC_MAX, false, object->watch, debug);
	uint32_t is;

	if (rc)
		return rc;
	if (debug->machine != object->machine)
		rc = -ENOENT;
	else if (object->build_id_size && debug->build_id_size)
		rc = same_build_id(object, debug) ? 0 : -ENOENT;
	else if (!(rc = file_crc(debug, &is)))
		rc = is == crc ? 0 : -ENOENT;
	if (rc)
		debugfile_close(debug);
	return rc;
}

int debugfile_open_link(const struct elffile *object, const char *root, struct elffile *debug,
			uint64_t *bias)
{
	char name[LINK_SIZE_MAX], path[PATH_SIZE_MAX];
	const char *slash = object->path ? strrchr(object->path, '/') : NULL;
	uint32_t crc;
	int rc = -ENOENT, size;

	if (!read_link(object, name, &crc))
		return -ENOENT;
	/* The directory of the object below @root, unless it has ".." in it. */
	if (slash && object->path[0] == '/' && !strstr(object->path, "/../")) {
		size = snprintf(path, sizeof(path), "%s%.*s/%s", root, (int)(slash - object->path),
				object->path, name);
		if (size > 0 && (size_t)size < sizeof(path))
			rc = open_linked(object, path, crc, debug);
	}
	if (rc) {
		size = snprintf(path, sizeof(path), "%s/%s", root, name);
		if (size > 0 && (size_t)size < sizeof(path))
			rc = open_linked(object, path, crc, debug);
	}
	if (!rc)
		*bias = bias_of(object, debug);
	return rc;
}

void debugfile_close(struct elffile *debug)
{
	close(debug->fd);
	elffile_close(debug);
}
