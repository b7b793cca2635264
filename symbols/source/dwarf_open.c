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

#define DWZ_FOLDER "/.dwz/"

int dwarf_open_permitted(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -EINVAL;
	/* With file capabilities the caller is not trusted either. */
	return !st.st_uid || (st.st_uid == geteuid() && !getauxval(AT_SECURE)) ? 0 : -EPERM;
}

/* Open @path, if it has this build-id. Return a descriptor or -errno. */
static int open_dwz(const char *path, const struct elfdwarf_alt *alt)
{
	struct foreign_want want = { .path = path, .size_max = ELFDWARF_SIZE_MAX };
	struct elffacts_input in = { .fd = -1 };
	struct foreign_file file;
	struct elffacts facts;
	int rc = foreign_open(&want, &file, NULL);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc)
		rc = facts.dwarf;
	if (!rc)
		rc = dwarf_open_permitted(file.fd);
	if (!rc && (facts.names.build_id_size != alt->id_size ||
		    memcmp(facts.names.build_id, alt->id, alt->id_size)))
		rc = -ENOENT;
	if (rc) {
		close(file.fd);
		return rc;
	}
	return file.fd;
}

/* Find the dwz file by build-id, else by its name where distributions keep them. */
static int find_dwz(const struct elfdwarf_alt *alt)
{
	char path[ELFDWARF_LINK_MAX + 64];
	const char *rest = strstr(alt->link, DWZ_FOLDER);
	int fd = -ENOENT;

	if (debugfile_path(alt->id, alt->id_size, path, sizeof(path)))
		fd = open_dwz(path, alt);
	if (fd >= 0 || !rest)
		return fd;
	while (strstr(rest + 1, DWZ_FOLDER))
		rest = strstr(rest + 1, DWZ_FOLDER);
	if (strstr(rest, "/../"))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s%s", DEBUGFILE_ROOT, rest);
	return open_dwz(path, alt);
}

int dwarf_open_find_alt(const struct elffacts *facts, int *fd)
{
	*fd = -1;
	if (facts->alt_rc)
		return facts->alt_rc == -ENOENT ? 0 : facts->alt_rc;
	*fd = find_dwz(&facts->alt);
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
	rc = dwarf_inflate(out->elf, lines, ELFDWARF_SIZE_MAX, &out->image, &size);
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
	size_t strings;

	if (!elf || elf_getshdrstrndx(elf, &strings))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr shdr;
		const char *is;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_flags & SHF_COMPRESSED)
			continue;
		is = elf_strptr(elf, strings, shdr.sh_name);
		if (is && !strcmp(is, name))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}
