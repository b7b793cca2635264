// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate before libdw.
 *
 * Runs on: a helper.
 */
#include "symbols/source/dwarf_open.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/object/debugfile.h"
#include "symbols/base/foreign.h"
#include "symbols/source/dwarf_inflate.h"

#define ALTLINK_MAX 1024U
#define DWZ_FOLDER  "/.dwz/"

/* Get the size of section @s after decompression; false if unknown. */
static bool true_size(const struct elffile *f, const Elf64_Shdr *s, uint64_t *size)
{
	Elf64_Chdr wide;
	Elf32_Chdr small;

	*size = s->sh_size;
	if (!(s->sh_flags & SHF_COMPRESSED))
		return true;
	if (f->elf_class == ELFCLASS64) {
		if (s->sh_size < sizeof(wide) || elffile_read(f, s->sh_offset, &wide, sizeof(wide)))
			return false;
		*size = wide.ch_size;
		return true;
	}
	if (s->sh_size < sizeof(small) || elffile_read(f, s->sh_offset, &small, sizeof(small)))
		return false;
	*size = small.ch_size;
	return true;
}

int dwarf_open_check(const struct elffile *f, uint64_t *size)
{
	struct stat st;
	bool info = false;

	if (f->fd < 0 || fstat(f->fd, &st))
		return -EINVAL;
	*size = 0;
	for (uint32_t i = 1; f->shstr && i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];
		const char *name = s->sh_name < f->shstr_size ? f->shstr + s->sh_name : "";
		uint64_t here;

		if (!strncmp(name, ".zdebug_", 8))
			return -EFBIG; /* old format; its sizes are unknown */
		if (strncmp(name, ".debug_", 7) || s->sh_type == SHT_NOBITS)
			continue;
		if (!true_size(f, s, &here) || here > DWARF_SIZE_MAX - *size)
			return -EFBIG;
		*size += here;
		info |= !strcmp(name, ".debug_info");
	}
	if (!info)
		return -ENODATA;
	/* With file capabilities the caller is not trusted either. */
	return !st.st_uid || (st.st_uid == geteuid() && !getauxval(AT_SECURE)) ? 0 : -EPERM;
}

/* Open @path, if it has this build-id. Return a descriptor or -errno. */
static int open_dwz(const char *path, const uint8_t *build_id, size_t size)
{
	struct foreign_want want = { .path = path, .size_max = DWARF_SIZE_MAX };
	struct foreign_file file;
	struct elffile f;
	uint64_t bytes;
	int rc = foreign_open(&want, &file, NULL);

	if (rc)
		return rc;
	rc = elffile_open(&f, file.fd, NULL, file.size, NULL);
	if (!rc) {
		rc = dwarf_open_check(&f, &bytes);
		if (!rc && (f.build_id_size != size || memcmp(f.build_id, build_id, size)))
			rc = -ENOENT;
		elffile_close(&f);
	}
	if (rc) {
		close(file.fd);
		return rc;
	}
	return file.fd;
}

/* Find the dwz file by build-id, else by its name where distributions keep them. */
static int find_dwz(const char *name, const uint8_t *build_id, size_t size)
{
	char path[ALTLINK_MAX + 64];
	const char *rest = strstr(name, DWZ_FOLDER);
	int fd = -ENOENT;

	if (debugfile_path(build_id, size, path, sizeof(path)))
		fd = open_dwz(path, build_id, size);
	if (fd >= 0 || !rest)
		return fd;
	while (strstr(rest + 1, DWZ_FOLDER))
		rest = strstr(rest + 1, DWZ_FOLDER);
	if (strstr(rest, "/../"))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s%s", DEBUGFILE_ROOT, rest);
	return open_dwz(path, build_id, size);
}

int dwarf_open_find_alt(const struct elffile *f, int *fd)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debugaltlink");
	char link[ALTLINK_MAX + 1] = "";
	size_t size;

	*fd = -1;
	if (!s)
		return 0;
	if (s->sh_size > ALTLINK_MAX || elffile_read(f, s->sh_offset, link, s->sh_size))
		return -EBADMSG;
	size = strlen(link) + 1;
	if (size + 2 > s->sh_size || s->sh_size - size > sizeof(f->build_id))
		return -EBADMSG;
	*fd = find_dwz(link, (const uint8_t *)link + size, s->sh_size - size);
	return *fd < 0 ? -ENOENT : 0;
}

int dwarf_open_begin(struct dwarf_opened *out, int fd, bool lines)
{
	size_t size;
	int rc;

	*out = (struct dwarf_opened){ NULL };
	elf_version(EV_CURRENT);
	out->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!out->elf)
		return -EBADMSG;
	rc = dwarf_inflate(out->elf, lines, DWARF_SIZE_MAX, &out->image, &size);
	if (!rc) {
		elf_end(out->elf);
		out->elf = elf_memory((char *)out->image, size);
	}
	if (!rc || rc == -ENOENT)
		out->dw = dwarf_begin_elf(out->elf, DWARF_C_READ, NULL);
	if (out->dw)
		return 0;
	dwarf_open_end(out);
	return -EBADMSG;
}

void dwarf_open_end(struct dwarf_opened *d)
{
	dwarf_end(d->dw);
	elf_end(d->elf);
	free(d->image);
	*d = (struct dwarf_opened){ NULL };
}

const Elf_Data *dwarf_open_section(Dwarf *dw, const char *name)
{
	Elf *elf = dwarf_getelf(dw);
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr shdr;
		const char *is;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_flags & SHF_COMPRESSED)
			continue;
		is = elf_strptr(elf, names, shdr.sh_name);
		if (is && !strcmp(is, name))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}
