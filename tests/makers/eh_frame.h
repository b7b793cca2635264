/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make .eh_frame sections by hand: one CIE ("zR", or "zRS"), FDEs behind it.
 * Also .eh_frame of a real file, through libelf.
 */
#ifndef TESTS_MAKERS_EH_FRAME_H
#define TESTS_MAKERS_EH_FRAME_H

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/elf/elf.h"

#define EH_VADDR 0x100000ULL

struct eh_section {
	uint8_t bytes[1 << 17];
	size_t size;
};

static inline void eh_put(struct eh_section *s, uint64_t v, unsigned int size)
{
	memcpy(s->bytes + s->size, &v, size);
	s->size += size;
}

static inline void eh_end(struct eh_section *s, size_t start)
{
	uint32_t size;

	while ((s->size - start) % 8 != 4)
		eh_put(s, 0, 1);
	size = (uint32_t)(s->size - start - 4);
	memcpy(s->bytes + start, &size, 4);
}

/* A CIE for x86-64 with the given initial instructions. */
static inline uint32_t eh_cie(struct eh_section *s, bool signal, const void *insns, size_t size)
{
	size_t start = s->size;

	eh_put(s, 0, 8);
	eh_put(s, 1, 1);
	eh_put(s, 'z' | 'R' << 8 | (signal ? 'S' << 16 : 0), signal ? 4 : 3);
	eh_put(s, 1, 1);
	eh_put(s, 0x78, 1);
	eh_put(s, 16, 1);
	eh_put(s, 1, 1);
	eh_put(s, 0x1b, 1);
	memcpy(s->bytes + s->size, insns, size);
	s->size += size;
	eh_end(s, start);
	return (uint32_t)start;
}

static inline uint32_t eh_fde(struct eh_section *s, uint32_t cie, uint64_t start, uint32_t range,
			      const void *insns, size_t size)
{
	size_t at = s->size;

	eh_put(s, 0, 4);
	eh_put(s, at + 4 - cie, 4);
	eh_put(s, (uint32_t)(start - (EH_VADDR + s->size)), 4);
	eh_put(s, range, 4);
	eh_put(s, 0, 1);
	memcpy(s->bytes + s->size, insns, size);
	s->size += size;
	eh_end(s, at);
	return (uint32_t)at;
}

/* The initial rules of gcc: CFA = rsp + 8, return address at CFA - 8. */
static const uint8_t eh_usual[] = { 0x0c, 7, 8, 0x90, 1 };

/* An ELF file with its .eh_frame; elf is NULL if there is none. */
struct eh_file {
	int fd;
	Elf *elf;
	struct ehframe eh;
};

static inline void eh_close(struct eh_file *f)
{
	ehframe_fini(&f->eh);
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	f->elf = NULL;
}

static inline bool eh_open(struct eh_file *f, const char *path)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr ehdr;
	size_t strings;

	memset(f, 0, sizeof(*f));
	elf_version(EV_CURRENT);
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	f->elf = f->fd < 0 ? NULL : elf_begin(f->fd, ELF_C_READ, NULL);
	if (f->elf && gelf_getehdr(f->elf, &ehdr) && !elf_getshdrstrndx(f->elf, &strings)) {
		while ((scn = elf_nextscn(f->elf, scn)) != NULL) {
			GElf_Shdr shdr;
			const char *name;
			Elf_Data *data;

			if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
				continue;
			name = elf_strptr(f->elf, strings, shdr.sh_name);
			data = name && !strcmp(name, ".eh_frame") ? elf_rawdata(scn, NULL) : NULL;
			if (data && data->d_buf &&
			    !ehframe_init(&f->eh, data->d_buf, data->d_size, shdr.sh_addr,
					  ehdr.e_machine))
				return true;
		}
	}
	eh_close(f);
	return false;
}

#endif
