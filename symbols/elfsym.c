// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symbol tables -> functions sorted by address.
 *
 * While collecting, name_size also carries the symbol's rank in its upper
 * bits, so that sorting needs no second array; elfsym_finish() takes it off.
 *
 * Runs on: a helper. Every number of the file is hostile.
 */
#include "symbols/elfsym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sort.h"

#define RANK_SHIFT	16
#define RANK_FUNC	(1U << 11)	/* above: whatever the table says of a mere label */
#define BATCH		2048U
#define TIE_BYTES	64
#define SCAN_MAX	(2ULL << 30)

struct range {
	uint64_t start, end;
};

void elfsym_fini(struct elfsym *t)
{
	free(t->symbols);
	free(t->names);
	*t = (struct elfsym){ 0 };
}

/* Make room for @nr more symbols. */
static int reserve(struct elfsym *t, uint64_t nr)
{
	struct image_symbol *symbols;
	uint64_t max = MAX((uint64_t)t->nr + nr, MIN((uint64_t)t->max * 2, ELFSYM_SYMBOLS_MAX));

	if (t->nr + nr <= t->max)
		return 0;
	if (t->nr + nr > ELFSYM_SYMBOLS_MAX)
		return -E2BIG;
	symbols = reallocarray(t->symbols, max, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	t->symbols = symbols;
	t->max = (uint32_t)max;
	return 0;
}

/* Make room for @size more bytes of names. */
static int reserve_names(struct elfsym *t, size_t size)
{
	size_t max = MAX(t->names_size + size, t->names_max + t->names_max / 4);
	char *names;

	if (t->names_size + size <= t->names_max)
		return 0;
	if (size > ELFSYM_NAMES_MAX - t->names_size)
		return -E2BIG;
	names = realloc(t->names, max);
	if (!names)
		return -ENOMEM;
	t->names = names;
	t->names_max = max;
	return 0;
}

/* Append the string table of @symtab to the names; *base is where it starts there. */
static int add_names(struct elfsym *t, const struct elffile *f, const Elf64_Shdr *symtab,
		     size_t *base)
{
	const Elf64_Shdr *s;
	int rc;

	if (symtab->sh_link >= f->nr_shdrs)
		return -ERANGE;
	s = &f->shdrs[symtab->sh_link];
	if (s->sh_type != SHT_STRTAB || s->sh_offset > f->size ||
	    s->sh_size > f->size - s->sh_offset)
		return -ERANGE;
	if (s->sh_size > ELFSYM_NAMES_MAX - 1)
		return -E2BIG;
	rc = reserve_names(t, s->sh_size + 1);
	if (!rc)
		rc = elffile_read(f, s->sh_offset, t->names + t->names_size, s->sh_size);
	if (rc)
		return rc;
	*base = t->names_size;
	t->names_size += s->sh_size;
	t->names[t->names_size++] = '\0';
	return 0;
}

/* Marks between code and data ($x, $a, $d, $t) and the assembler's own labels are no functions. */
static bool is_mark(const char *name)
{
	if (name[0] == '$')
		return name[1] && strchr("axdt", name[1]) && (!name[2] || name[2] == '.');
	return name[0] == '.' && name[1] == 'L';
}

/* Could this be code? Sections decide where the table names one we know. */
static bool is_code(const struct elffile *f, const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	if (!sym->st_value || sym->st_shndx == SHN_UNDEF ||
	    (sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX))
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && sym->st_shndx < f->nr_shdrs &&
	       f->shdrs[sym->st_shndx].sh_flags & SHF_EXECINSTR;
}

/* Of names for one address the one with the highest rank is shown; the order is perf's. */
static uint32_t rank_of(const Elf64_Sym *sym, const char *name)
{
	static const uint32_t bind_rank[16] = {
		[STB_WEAK] = 1U << 8, [STB_GLOBAL] = 2U << 8, [STB_GNU_UNIQUE] = 2U << 8,
	};
	uint32_t rank = bind_rank[ELF64_ST_BIND(sym->st_info)];

	rank |= 15U - MIN(strspn(name, "_"), 15UL);
	if (sym->st_size)
		rank |= 1U << 10;
	if (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE)
		rank |= RANK_FUNC;
	return rank;
}

/* Keep @sym if it is a function with a name. */
static int add_symbol(struct elfsym *t, const struct elffile *f, const Elf64_Sym *sym, size_t base,
		      uint64_t bias)
{
	const char *name;
	size_t size;

	if (!is_code(f, sym) || sym->st_name >= t->names_size - base)
		return 0;
	name = t->names + base + sym->st_name;
	size = strnlen(name, MIN(ELFSYM_NAME_MAX, t->names_size - base - sym->st_name));
	t->nr_bytes_scanned += size;
	if (t->nr_bytes_scanned > SCAN_MAX)
		return -E2BIG;
	if (!size || is_mark(name))
		return 0;
	if (reserve(t, 1))
		return -ENOMEM;
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = sym->st_value + bias, .size = sym->st_size,
		.name = (uint32_t)(base + sym->st_name),
		.name_size = (uint32_t)size | rank_of(sym, name) << RANK_SHIFT,
	};
	return 0;
}

static Elf64_Sym widen_sym(const Elf32_Sym *s)
{
	return (Elf64_Sym){
		.st_name = s->st_name, .st_info = s->st_info, .st_other = s->st_other,
		.st_shndx = s->st_shndx, .st_value = s->st_value, .st_size = s->st_size,
	};
}

int elfsym_add(struct elfsym *t, const struct elffile *f, uint32_t type, uint64_t bias)
{
	union {
		Elf64_Sym wide[BATCH];
		Elf32_Sym small[BATCH];
	} *batch = NULL;
	bool wide = f->elf_class == ELFCLASS64;
	size_t entry = wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const Elf64_Shdr *s = elffile_section_of_type(f, type);
	size_t base = 0;
	uint64_t nr;
	int rc;

	if (!s || s->sh_entsize != entry)
		return -ENOENT;
	nr = s->sh_size / entry;
	if (nr > ELFSYM_SYMBOLS_MAX)
		return -E2BIG;
	rc = add_names(t, f, s, &base);
	if (!rc && !(batch = malloc(sizeof(*batch))))
		rc = -ENOMEM;
	for (uint64_t i = 0; i < nr && !rc; i += BATCH) {
		size_t here = MIN(nr - i, BATCH);

		rc = elffile_read(f, s->sh_offset + i * entry, batch, here * entry);
		for (size_t j = 0; j < here && !rc; j++) {
			Elf64_Sym sym = wide ? batch->wide[j] : widen_sym(&batch->small[j]);

			rc = add_symbol(t, f, &sym, base, bias);
		}
	}
	free(batch);
	return rc;
}

int elfsym_add_named(struct elfsym *t, uint64_t vaddr, uint64_t size, const char *name,
		     size_t name_size)
{
	int rc;

	name_size = MIN(name_size, (size_t)ELFSYM_NAME_MAX);
	rc = reserve(t, 1);
	if (!rc)
		rc = reserve_names(t, name_size + 1);
	if (rc)
		return rc;
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = vaddr, .size = size, .name = (uint32_t)t->names_size,
		.name_size = (uint32_t)name_size | RANK_FUNC << RANK_SHIFT,
	};
	memcpy(t->names + t->names_size, name, name_size);
	t->names_size += name_size;
	t->names[t->names_size++] = '\0';
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Where code may be: the executable sections, else the executable segments; sorted. */
static int code_ranges(const struct elffile *f, struct range **out, uint32_t *nr)
{
	struct range *r = calloc((size_t)f->nr_shdrs + f->nr_phdrs + 1, sizeof(*r));
	const uint64_t exec = SHF_ALLOC | SHF_EXECINSTR;
	uint32_t n = 0;

	if (!r)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];

		if ((s->sh_flags & exec) == exec && s->sh_size &&
		    s->sh_size <= UINT64_MAX - s->sh_addr)
			r[n++] = (struct range){ s->sh_addr, s->sh_addr + s->sh_size };
	}
	for (uint32_t i = 0, sections = n; i < f->nr_phdrs && !sections; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_memsz &&
		    p->p_memsz <= UINT64_MAX - p->p_vaddr)
			r[n++] = (struct range){ p->p_vaddr, p->p_vaddr + p->p_memsz };
	}
	qsort(r, n, sizeof(*r), compare_ranges);
	*out = r;
	*nr = n;
	return 0;
}

/* The end of the code range that holds @vaddr; 0 when none does. */
static uint64_t range_end(const struct range *r, uint32_t nr, uint64_t vaddr)
{
	uint32_t lo = 0, hi = nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < r[lo - 1].end ? r[lo - 1].end : 0;
}

/* Of symbols at one address the best first. @arg: the names, to break the last ties. */
static int compare_symbols(const void *a, const void *b, void *arg)
{
	const struct image_symbol *x = a, *y = b;
	const char *names = arg;
	int order;

	if (x->name_size != y->name_size)	/* rank, then the longer name */
		return x->name_size > y->name_size ? -1 : 1;
	/* A few bytes: millions of long equal names must not make sorting slow. */
	order = strncmp(names + x->name, names + y->name, TIE_BYTES);
	if (order)
		return order;
	return (x->name > y->name) - (x->name < y->name);
}

/* By address, then those of one address. */
static int sort_symbols(struct elfsym *t)
{
	struct image_symbol *s = t->symbols;
	int rc = sort_records(s, t->nr, sizeof(*s), offsetof(struct image_symbol, vaddr));

	for (uint32_t i = 0, end; i < t->nr && !rc; i = end) {
		for (end = i + 1; end < t->nr && s[end].vaddr == s[i].vaddr; end++)
			;
		if (end - i > 1)
			qsort_r(s + i, end - i, sizeof(*s), compare_symbols, t->names);
	}
	return rc;
}

/* Drop all but the first of an address, what lies outside code, and labels inside functions. */
static void drop_symbols(struct elfsym *t, const struct range *ranges, uint32_t nr_ranges)
{
	uint64_t last = 0, covered = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->nr; i++) {
		struct image_symbol *s = &t->symbols[i];
		uint64_t end = range_end(ranges, nr_ranges, s->vaddr);
		bool func = s->name_size >> RANK_SHIFT & RANK_FUNC;

		if (!end || (kept && s->vaddr == last) || (!func && s->vaddr < covered))
			continue;
		last = s->vaddr;
		s->size = MIN(s->size, end - s->vaddr);
		s->name_size &= (1U << RANK_SHIFT) - 1;
		if (func)
			covered = MAX(covered, s->vaddr + s->size);
		t->symbols[kept++] = *s;
	}
	t->nr = kept;
}

/* Give back what collecting took too much of. */
static void shrink(struct elfsym *t)
{
	struct image_symbol *fit = reallocarray(t->symbols, MAX(t->nr, 1U), sizeof(*fit));
	char *names = t->names_size ? realloc(t->names, t->names_size) : NULL;

	if (fit) {
		t->symbols = fit;
		t->max = t->nr;
	}
	if (names) {
		t->names = names;
		t->names_max = t->names_size;
	}
}

int elfsym_finish(struct elfsym *t, const struct elffile *f)
{
	struct range *ranges;
	uint32_t nr_ranges;
	int rc = code_ranges(f, &ranges, &nr_ranges);

	if (rc)
		return rc;
	rc = sort_symbols(t);
	if (!rc)
		drop_symbols(t, ranges, nr_ranges);
	for (uint32_t i = 0; i < t->nr && !rc; i++) {
		struct image_symbol *s = &t->symbols[i];
		uint64_t end;

		if (s->size)
			continue;
		end = range_end(ranges, nr_ranges, s->vaddr);
		if (i + 1 < t->nr)
			end = MIN(end, s[1].vaddr);
		s->size = end - s->vaddr;
	}
	free(ranges);
	shrink(t);
	return rc;
}
