// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sizes and the link of debug sections.
 */
#include "symbols/object/elfdwarf.h"

#include <errno.h>
#include <string.h>

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

int elfdwarf_size(const struct elffile *f, uint64_t *size)
{
	bool info = false;

	*size = 0;
	for (uint32_t i = 1; f->shstr && i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];
		const char *name = s->sh_name < f->shstr_size ? f->shstr + s->sh_name : "";
		uint64_t here;

		if (!strncmp(name, ".zdebug_", 8))
			return -EFBIG; /* old format; its sizes are unknown */
		if (strncmp(name, ".debug_", 7) || s->sh_type == SHT_NOBITS)
			continue;
		if (!true_size(f, s, &here) || here > ELFDWARF_SIZE_MAX - *size)
			return -EFBIG;
		*size += here;
		info |= !strcmp(name, ".debug_info");
	}
	return info ? 0 : -ENODATA;
}

int elfdwarf_alt(const struct elffile *f, struct elfdwarf_alt *alt)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debugaltlink");
	char link[ELFDWARF_LINK_MAX + 1] = "";
	size_t size;

	*alt = (struct elfdwarf_alt){ .id_size = 0 };
	if (!s)
		return -ENOENT;
	if (s->sh_size > ELFDWARF_LINK_MAX || elffile_read(f, s->sh_offset, link, s->sh_size))
		return -EBADMSG;
	size = strlen(link) + 1;
	if (size + 2 > s->sh_size || s->sh_size - size > sizeof(alt->id))
		return -EBADMSG;
	memcpy(alt->link, link, size);
	alt->id_size = (uint8_t)(s->sh_size - size);
	memcpy(alt->id, link + size, alt->id_size);
	return 0;
}
