// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find data symbols by name. Runs on: a helper.
 */
#include "symbols/object/elfvar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/elfsym.h"

/* One symbol table with its names, both in memory. */
struct table {
	Elf64_Sym *symbols;
	uint64_t nr;
	char *names; /* NUL-terminated as a whole */
	uint64_t names_size;
};

static int table_read(struct table *t, const struct elffile *f, const Elf64_Shdr *section)
{
	const Elf64_Shdr *strings;
	void *bytes;
	int rc;

	if (section->sh_link >= f->nr_shdrs || f->elf_class != ELFCLASS64)
		return -ENOEXEC;
	strings = &f->shdrs[section->sh_link];
	if (section->sh_size / sizeof(Elf64_Sym) > ELFSYM_SYMBOLS_MAX ||
	    strings->sh_size > ELFSYM_NAMES_MAX)
		return -E2BIG;
	/* Both are missed at once. */
	if (elffile_expect(f, section->sh_offset, section->sh_size) |
	    elffile_expect(f, strings->sh_offset, strings->sh_size))
		return -EAGAIN;
	rc = elffile_read_alloc(f, section->sh_offset, section->sh_size, &bytes);
	if (rc)
		return rc;
	t->symbols = bytes;
	t->nr = section->sh_size / sizeof(Elf64_Sym);
	rc = elffile_read_alloc(f, strings->sh_offset, strings->sh_size, &bytes);
	if (rc) {
		free(t->symbols);
		return rc;
	}
	t->names = bytes;
	t->names_size = strings->sh_size;
	return 0;
}

static void match(const struct table *t, const Elf64_Sym *s, struct elfvar *vars, uint32_t nr)
{
	if (s->st_shndx == SHN_UNDEF || s->st_name >= t->names_size)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		if (vars[i].vaddr || strcmp(t->names + s->st_name, vars[i].name))
			continue;
		vars[i].vaddr = s->st_value;
		vars[i].size = s->st_size;
	}
}

int elfvar_find(const struct elffile *f, struct elfvar *vars, uint32_t nr)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	int found = 0, rc = 0;

	for (uint32_t i = 0; i < nr; i++)
		vars[i].vaddr = vars[i].size = 0;
	for (size_t k = 0; k < ARRAY_SIZE(types) && found < (int)nr; k++) {
		const Elf64_Shdr *section = elffile_section_of_type(f, types[k]);
		struct table t;

		if (!section)
			continue;
		rc = table_read(&t, f, section);
		if (rc == -EAGAIN)
			break;
		if (rc)
			continue;
		for (uint64_t i = 0; i < t.nr; i++)
			match(&t, &t.symbols[i], vars, nr);
		free(t.symbols);
		free(t.names);
		found = 0;
		for (uint32_t i = 0; i < nr; i++)
			found += vars[i].vaddr != 0;
	}
	return found ? found : rc;
}

/* Find the smallest variable of a table around @vaddr; NULL: none. */
static const Elf64_Sym *find_at(const struct table *t, uint64_t vaddr)
{
	const Elf64_Sym *best = NULL;

	for (uint64_t i = 0; i < t->nr; i++) {
		const Elf64_Sym *s = &t->symbols[i];

		if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_OBJECT ||
		    s->st_name >= t->names_size || !t->names[s->st_name] || vaddr < s->st_value ||
		    vaddr - s->st_value >= s->st_size || (best && s->st_size >= best->st_size))
			continue;
		best = s;
	}
	return best;
}

bool elfvar_at(const struct elffile *f, uint64_t vaddr, char *name, size_t size, uint64_t *begin)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	const Elf64_Sym *found = NULL;

	for (size_t k = 0; k < ARRAY_SIZE(types) && !found; k++) {
		const Elf64_Shdr *section = elffile_section_of_type(f, types[k]);
		struct table t;

		if (!section || table_read(&t, f, section))
			continue;
		found = find_at(&t, vaddr);
		if (found) {
			*begin = found->st_value;
			strncpy(name, t.names + found->st_name, size - 1);
			name[size - 1] = '\0';
		}
		free(t.symbols);
		free(t.names);
	}
	return found;
}

bool elfvar_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || offset < p->p_offset ||
		    offset - p->p_offset >= p->p_filesz)
			continue;
		*vaddr = p->p_vaddr + (offset - p->p_offset);
		return true;
	}
	return false;
}
