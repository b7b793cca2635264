/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small ELF files made in memory, section by section.
 */
#ifndef TESTS_MAKERS_ELF_H
#define TESTS_MAKERS_ELF_H

#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ELFMAKE_MAX	 (1U << 20)
#define ELFMAKE_SECTIONS 32

struct elfmake {
	uint8_t *bytes;
	size_t size;
	Elf64_Shdr shdrs[ELFMAKE_SECTIONS];
	unsigned int nr;
	char names[1024];
	size_t names_size;
};

/* A file of one executable segment: @size bytes at @vaddr, file offset 0x1000. */
static inline void elfmake_init(struct elfmake *m, uint16_t machine, uint64_t vaddr, uint64_t size)
{
	Elf64_Ehdr *eh;
	Elf64_Phdr *ph;

	memset(m, 0, sizeof(*m));
	m->bytes = calloc(1, ELFMAKE_MAX);
	assert(m->bytes);
	eh = (Elf64_Ehdr *)m->bytes;
	ph = (Elf64_Phdr *)(m->bytes + sizeof(*eh));
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = machine;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = 1;
	eh->e_shentsize = sizeof(Elf64_Shdr);
	*ph = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = 0x1000,
		.p_vaddr = vaddr,
		.p_filesz = size,
		.p_memsz = size,
	};
	m->size = 0x1000 + size;
	m->nr = 1;
	m->names_size = 1;
}

/* Add a section; @offset 0: at the end of the file. Returns its index. */
static inline unsigned int elfmake_section(struct elfmake *m, const char *name, Elf64_Shdr shdr,
					   const void *data)
{
	shdr.sh_name = (uint32_t)m->names_size;
	strcpy(m->names + m->names_size, name);
	m->names_size += strlen(name) + 1;
	if (!shdr.sh_offset) {
		m->size = (m->size + 15) & ~15UL;
		shdr.sh_offset = m->size;
		m->size += shdr.sh_size;
	}
	assert(m->nr < ELFMAKE_SECTIONS - 1 && m->size < ELFMAKE_MAX / 2);
	if (data)
		memcpy(m->bytes + shdr.sh_offset, data, shdr.sh_size);
	m->shdrs[m->nr] = shdr;
	return m->nr++;
}

/* Code at @vaddr of the segment that begins at @base. */
static inline unsigned int elfmake_code(struct elfmake *m, const char *name, uint64_t base,
					uint64_t vaddr, uint64_t size, uint64_t entsize,
					const void *data)
{
	return elfmake_section(m, name,
			       (Elf64_Shdr){
				       .sh_type = SHT_PROGBITS,
				       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				       .sh_addr = vaddr,
				       .sh_offset = 0x1000 + (vaddr - base),
				       .sh_size = size,
				       .sh_entsize = entsize,
			       },
			       data);
}

/* A symbol table of @type and its strings. */
static inline unsigned int elfmake_symbols(struct elfmake *m, uint32_t type, const Elf64_Sym *syms,
					   size_t nr, const char *strings, size_t strings_size)
{
	bool dynamic = type == SHT_DYNSYM;
	unsigned int str =
		elfmake_section(m, dynamic ? ".dynstr" : ".strtab",
				(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_size = strings_size },
				strings);

	return elfmake_section(m, dynamic ? ".dynsym" : ".symtab",
			       (Elf64_Shdr){ .sh_type = type,
					     .sh_link = str,
					     .sh_size = nr * sizeof(*syms),
					     .sh_entsize = sizeof(*syms) },
			       syms);
}

/* Write the headers; m->bytes and m->size are the file then. */
static inline void elfmake_finish(struct elfmake *m)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m->bytes;
	unsigned int names =
		elfmake_section(m, ".shstrtab",
				(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_size = sizeof(m->names) },
				m->names);

	memcpy(m->bytes + m->shdrs[names].sh_offset, m->names, sizeof(m->names));
	m->size = (m->size + 15) & ~15UL;
	eh->e_shoff = m->size;
	eh->e_shnum = (uint16_t)m->nr;
	eh->e_shstrndx = (uint16_t)names;
	memcpy(m->bytes + m->size, m->shdrs, m->nr * sizeof(m->shdrs[0]));
	m->size += m->nr * sizeof(m->shdrs[0]);
}

static inline void elfmake_fini(struct elfmake *m)
{
	free(m->bytes);
}

#endif
