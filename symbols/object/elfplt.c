// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find the stubs of an object and the functions they call.
 *
 * Runs on: a helper.
 */
#include "symbols/object/elfplt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/bytes.h"
#include "symbols/base/search.h"
#include "symbols/base/sort.h"

#define RELOCATIONS_MAX (2U << 20)
#define SLOTS_MAX	(256U << 10)
#define PLT_SIZE_MAX	(8U << 20)
#define SEARCHES_MAX	(32ULL << 20) /* symbols searched for indirect functions */
#define BATCH		1024U

/* A slot of the GOT, and the function it points to. */
struct slot {
	uint64_t vaddr;
	uint64_t target; /* of an indirect function: its resolver; else 0 */
	uint32_t name;	 /* offset in the names of the dynamic symbols */
};

struct plt {
	const struct elffile *f;
	struct slot *slots;
	uint32_t nr_slots, max_slots;
	uint32_t next; /* the slot after the one found last */
	struct elffile_dynamic dynamic;
	Elf64_Sym *dynsym;
	uint64_t nr_dynsym;
	uint64_t nr_searched;
};

/* Relocation types of GOT slots, per machine. */
static const struct machine {
	uint16_t machine;
	uint32_t jump_slot, glob_dat, irelative;
} machines[] = {
	{ EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE },
	{ EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE },
};

static int add_slot(struct plt *p, const struct machine *m, const Elf64_Rela *r)
{
	uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
	uint64_t sym = ELF64_R_SYM(r->r_info);
	struct slot slot = { .vaddr = r->r_offset };

	if (type == m->irelative)
		slot.target = (uint64_t)r->r_addend;
	else if ((type == m->jump_slot || type == m->glob_dat) && sym && sym < p->nr_dynsym)
		slot.name = p->dynsym[sym].st_name;
	else
		return 0;
	if (p->nr_slots >= SLOTS_MAX)
		return -E2BIG;
	if (!array_reserve(&p->slots, &p->max_slots, p->nr_slots + 1u))
		return -ENOMEM;
	p->slots[p->nr_slots++] = slot;
	return 0;
}

/*
 * Collect the slots that the relocations of section @s fill. Relative relocations
 * are skipped.
 */
static int read_relocations(struct plt *p, const struct machine *m, const Elf64_Shdr *s)
{
	uint64_t nr = s->sh_size / sizeof(Elf64_Rela);
	uint64_t first = s->sh_addr == p->dynamic.rela ? p->dynamic.nr_relative : 0;
	Elf64_Rela *batch;
	int rc;

	if (s->sh_entsize != sizeof(Elf64_Rela) || nr > RELOCATIONS_MAX)
		return -E2BIG;
	rc = first < nr ? elffile_expect(p->f, s->sh_offset + first * sizeof(*batch),
					 (nr - first) * sizeof(*batch))
			: 0;
	if (rc)
		return rc;
	batch = malloc(BATCH * sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	for (uint64_t i = first; i < nr && !rc; i += BATCH) {
		size_t here = MIN(nr - i, BATCH);

		rc = elffile_read(p->f, s->sh_offset + i * sizeof(*batch), batch,
				  here * sizeof(*batch));
		for (size_t j = 0; j < here && !rc; j++)
			rc = add_slot(p, m, &batch[j]);
	}
	free(batch);
	return rc;
}

static int read_dynsym(struct plt *p)
{
	const Elf64_Shdr *s = elffile_section_of_type(p->f, SHT_DYNSYM);
	void *bytes;
	int rc;

	if (!s || s->sh_entsize != sizeof(Elf64_Sym))
		return -ENOENT;
	if (s->sh_size / sizeof(Elf64_Sym) > RELOCATIONS_MAX)
		return -E2BIG;
	rc = elffile_read_alloc(p->f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	p->dynsym = bytes;
	p->nr_dynsym = s->sh_size / sizeof(Elf64_Sym);
	return 0;
}

/* Find the slot at @vaddr. Stubs are mostly in the order of their slots. */
static const struct slot *find_slot(struct plt *p, uint64_t vaddr)
{
	uint32_t lo;

	if (p->next < p->nr_slots && p->slots[p->next].vaddr == vaddr)
		return &p->slots[p->next++];
	lo = search_split(p->nr_slots, i, p->slots[i].vaddr < vaddr);
	p->next = lo + 1;
	return lo < p->nr_slots && p->slots[lo].vaddr == vaddr ? &p->slots[lo] : NULL;
}

/* Write the name of the indirect function with the resolver @target, found in @t. */
static size_t name_of_resolver(struct plt *p, const struct elfsym *t, uint64_t target, char *buf,
			       size_t max)
{
	for (uint32_t i = 0; i < t->nr && p->nr_searched < SEARCHES_MAX; i++, p->nr_searched++) {
		const char *name = t->names + t->symbols[i].name;

		if (t->symbols[i].vaddr == target)
			return (size_t)snprintf(buf, max, "%.*s@plt", (int)IMAGE_NAME_MAX, name);
	}
	return (size_t)snprintf(buf, max, "[resolved by 0x%llx]@plt", (unsigned long long)target);
}

/* Name the stub at @vaddr, which jumps through the slot at @got. */
static int add_stub(struct plt *p, struct elfsym *t, uint64_t vaddr, uint64_t size, uint64_t got)
{
	const struct slot *slot = find_slot(p, got);
	char name[IMAGE_STUB_MAX + 1];
	size_t name_size;

	if (!slot)
		return 0;
	if (!slot->target)
		return elfsym_add_stub(t, vaddr, size, slot->name);
	name_size = name_of_resolver(p, t, slot->target, name, sizeof(name));
	return elfsym_add_named(t, vaddr, size, name, MIN(name_size, sizeof(name) - 1));
}

/* x86-64: "jmp *disp(%rip)" somewhere in each entry. */
static int scan_x86_64(struct plt *p, struct elfsym *t, const Elf64_Shdr *s, const uint8_t *bytes)
{
	size_t entry = s->sh_entsize == 8 ? 8 : 16;
	int rc = 0;

	for (size_t at = 0; s->sh_size - at >= entry && !rc; at += entry) {
		for (size_t i = at; i + 6 <= at + entry; i++) {
			int32_t disp = (int32_t)bytes_u32(bytes + i + 2);

			if (bytes[i] != 0xff || bytes[i + 1] != 0x25)
				continue;
			rc = add_stub(p, t, s->sh_addr + at, entry,
				      s->sh_addr + i + 6 + (uint64_t)(int64_t)disp);
			break;
		}
	}
	return rc;
}

/* AArch64: "adrp x16, page; ldr x17, [x16, #offset]", maybe after "bti c". */
static int scan_aarch64(struct plt *p, struct elfsym *t, const Elf64_Shdr *s, const uint8_t *bytes)
{
	int rc = 0;

	for (size_t at = 0; s->sh_size - at >= 16 && !rc; at += 4) {
		uint32_t adrp = bytes_u32(bytes + at), ldr = bytes_u32(bytes + at + 4);
		uint64_t pc = s->sh_addr + at, page;
		bool bti = at >= 4 && bytes_u32(bytes + at - 4) == 0xd503245f;
		int64_t pages = (int64_t)(((uint64_t)adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3));

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		if (pages & 1LL << 20)
			pages -= 1LL << 21;
		page = (pc & ~0xfffULL) + ((uint64_t)pages << 12);
		rc = add_stub(p, t, bti ? pc - 4 : pc, bti ? 20 : 16,
			      page + ((ldr >> 10 & 0xfff) << 3));
	}
	return rc;
}

static int scan_section(struct plt *p, struct elfsym *t, const char *name)
{
	const Elf64_Shdr *s = elffile_section(p->f, name);
	void *bytes;
	int rc;

	if (!s || s->sh_size > PLT_SIZE_MAX || !(s->sh_flags & SHF_EXECINSTR))
		return 0;
	rc = elffile_read_alloc(p->f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	rc = p->f->machine == EM_X86_64 ? scan_x86_64(p, t, s, bytes)
					: scan_aarch64(p, t, s, bytes);
	free(bytes);
	return rc;
}

/* Collect slots, then name the stubs that use them. */
static int add_stubs(struct plt *p, struct elfsym *t, const struct machine *m)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	int rc = read_dynsym(p);

	elffile_dynamic(p->f, &p->dynamic);
	for (uint32_t i = 0; i < p->f->nr_shdrs && !rc; i++) {
		if (p->f->shdrs[i].sh_type == SHT_RELA)
			rc = read_relocations(p, m, &p->f->shdrs[i]);
	}
	if (rc)
		return rc;
	if (!p->nr_slots)
		return -ENOENT;
	rc = sort_by_number(p->slots, p->nr_slots, sizeof(*p->slots));
	for (size_t i = 0; i < ARRAY_SIZE(sections) && !rc; i++)
		rc = scan_section(p, t, sections[i]);
	return rc;
}

int elfplt_add(struct elfsym *t, const struct elffile *f)
{
	struct plt p = { .f = f };
	int rc = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(machines) && f->elf_class == ELFCLASS64; i++) {
		if (machines[i].machine == f->machine)
			rc = add_stubs(&p, t, &machines[i]);
	}
	free(p.slots);
	free(p.dynsym);
	return rc;
}
