// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symbol tables -> functions sorted by address.
 *
 * Tables have a hundred thousand symbols, few of which are ever shown: names
 * are read only where two symbols have one address.
 *
 * Runs on: a helper. Every number of the file is hostile.
 */
#include "symbols/object/elfsym.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/sort.h"

/* The lowest four bits are from rank_by_name(). */
#define RANK_TABLE    (1U << 4) /* in a symbol table, where names vary */
#define RANK_SIZE     (1U << 10)
#define RANK_FUNC     (1U << 11) /* above all ranks of mere labels */
#define NAME_RANK_MAX 15U
#define BATCH	      2048U
#define TIE_BYTES     64
#define SCAN_MAX      (2ULL << 30)

struct range {
	uint64_t start, end;
};

void elfsym_fini(struct elfsym *t)
{
	free(t->symbols);
	free(t->names);
	*t = (struct elfsym){ 0 };
}

/* Reserve @nr more symbols. */
static int reserve(struct elfsym *t, uint64_t nr)
{
	if (t->nr + nr > ELFSYM_SYMBOLS_MAX)
		return -E2BIG;
	return array_reserve(&t->symbols, &t->max, t->nr + nr) ? 0 : -ENOMEM;
}

/* Reserve @size more bytes of names. */
static int reserve_names(struct elfsym *t, size_t size)
{
	size_t max = MAX(t->names_size + size, t->names_max + t->names_max / 4);
	char *names;

	if (t->names_size + size <= t->names_max)
		return 0;
	if (size > ELFSYM_NAMES_MAX - t->names_size)
		return -E2BIG;
	names = t->names ? realloc(t->names, max) : alloc_to_fill(max);
	if (!names)
		return -ENOMEM;
	t->names = names;
	t->names_max = max;
	return 0;
}

/* Reserve the first @size bytes, with the names of all tables of @f: large ones are not moved. */
static int reserve_first(struct elfsym *t, const struct elffile *f, size_t size)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < f->nr_shdrs && all <= ELFSYM_NAMES_MAX; i++)
		if (f->shdrs[i].sh_type == SHT_STRTAB)
			all += MIN(f->shdrs[i].sh_size, f->size) + 1;
	if (all > size && all <= ELFSYM_NAMES_MAX && !reserve_names(t, all))
		return 0;
	return reserve_names(t, size);
}

/* Append the string table of @symtab to the names; *base is its offset there. */
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
	rc = t->names ? reserve_names(t, s->sh_size + 1) : reserve_first(t, f, s->sh_size + 1);
	if (!rc)
		rc = elffile_read(f, s->sh_offset, t->names + t->names_size, s->sh_size);
	if (rc)
		return rc;
	*base = t->names_size;
	t->names_size += s->sh_size;
	t->names[t->names_size++] = '\0';
	return 0;
}

/*
 * Test for marks between code and data ($x, $a, $d, $t) and local labels of the
 * assembler.
 */
static bool is_mark(const char *name)
{
	if (name[0] == '$')
		return name[1] && strchr("axdt", name[1]) && (!name[2] || name[2] == '.');
	return name[0] == '.' && name[1] == 'L';
}

/*
 * Test whether the symbol may be code: by its section, if that is known.
 */
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

/*
 * Rank names of one address, in the order of perf: the highest rank is shown.
 * rank_by_name() adds the rank of the name itself.
 */
static uint16_t rank_of(const Elf64_Sym *sym)
{
	static const uint16_t bind_rank[16] = {
		[STB_WEAK] = 1U << 8,
		[STB_GLOBAL] = 2U << 8,
		[STB_GNU_UNIQUE] = 2U << 8,
	};

	return bind_rank[ELF64_ST_BIND(sym->st_info)] | RANK_TABLE |
	       (sym->st_size ? RANK_SIZE : 0) |
	       (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE ? RANK_FUNC : 0);
}

/* Add @sym if it is a function with a name; memory is reserved. */
static void add_symbol(struct elfsym *t, const struct elffile *f, const Elf64_Sym *sym, size_t base,
		       uint64_t bias)
{
	const char *name;

	if (!is_code(f, sym) || sym->st_name >= t->names_size - base)
		return;
	name = t->names + base + sym->st_name;
	if (!name[0] || is_mark(name))
		return;
	assert(t->nr < t->max);
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = sym->st_value + bias,
		.size = sym->st_size,
		.name = (uint32_t)(base + sym->st_name),
		.rank = rank_of(sym),
	};
}

static Elf64_Sym widen_sym(const Elf32_Sym *s)
{
	return (Elf64_Sym){
		.st_name = s->st_name,
		.st_info = s->st_info,
		.st_other = s->st_other,
		.st_shndx = s->st_shndx,
		.st_value = s->st_value,
		.st_size = s->st_size,
	};
}

int elfsym_expect(const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type), *names;
	int rc;

	/* Larger ones are not read. */
	if (!s || s->sh_link >= f->nr_shdrs || s->sh_size / sizeof(Elf64_Sym) > ELFSYM_SYMBOLS_MAX)
		return 0;
	names = &f->shdrs[s->sh_link];
	if (names->sh_size > ELFSYM_NAMES_MAX - 1)
		return 0;
	rc = elffile_expect(f, s->sh_offset, s->sh_size);
	return elffile_expect(f, names->sh_offset, names->sh_size) ? -EAGAIN : rc;
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
	rc = elfsym_expect(f, type);
	if (!rc)
		rc = add_names(t, f, s, &base);
	if (!rc && type == SHT_DYNSYM) {
		t->dynstr = (uint32_t)base;
		t->dynstr_size = t->names_size - base;
	}
	if (!rc && !(batch = malloc(sizeof(*batch))))
		rc = -ENOMEM;
	for (uint64_t i = 0; i < nr && !rc; i += BATCH) {
		size_t here = MIN(nr - i, BATCH);

		rc = reserve(t, here);
		if (!rc)
			rc = elffile_read(f, s->sh_offset + i * entry, batch, here * entry);
		for (size_t j = 0; j < here && !rc; j++) {
			Elf64_Sym sym = wide ? batch->wide[j] : widen_sym(&batch->small[j]);

			add_symbol(t, f, &sym, base, bias);
		}
	}
	free(batch);
	return rc;
}

int elfsym_add_named(struct elfsym *t, uint64_t vaddr, uint64_t size, const char *name,
		     size_t name_size)
{
	int rc;

	name_size = MIN(name_size, (size_t)IMAGE_NAME_MAX);
	rc = reserve(t, 1);
	if (!rc)
		rc = reserve_names(t, name_size + 1);
	if (rc)
		return rc;
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = vaddr,
		.size = size,
		.name = (uint32_t)t->names_size,
		.rank = RANK_FUNC,
	};
	memcpy(t->names + t->names_size, name, name_size);
	t->names_size += name_size;
	t->names[t->names_size++] = '\0';
	return 0;
}

int elfsym_add_stub(struct elfsym *t, uint64_t vaddr, uint64_t size, uint32_t function)
{
	int rc = 0;

	if (function >= t->dynstr_size || !t->names[t->dynstr + function])
		return 0;
	rc = reserve(t, 1);
	if (!rc)
		t->symbols[t->nr++] = (struct image_symbol){
			.vaddr = vaddr,
			.size = size,
			.name = (uint32_t)(t->dynstr + function),
			.rank = RANK_FUNC,
			.stub = true,
		};
	return rc;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Collect the executable sections, else the executable segments; sorted. */
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

/*
 * Return the end of the code range with @vaddr; 0: none. *@at is the last range
 * reached: addresses are passed in order.
 */
static uint64_t range_end(const struct range *r, uint32_t nr, uint32_t *at, uint64_t vaddr)
{
	while (*at + 1 < nr && r[*at + 1].start <= vaddr)
		++*at;
	return nr && r[*at].start <= vaddr && vaddr < r[*at].end ? r[*at].end : 0;
}

/* Return the rank of the name of @s: fewer leading underscores are better. */
static uint32_t rank_by_name(const struct elfsym *t, const struct image_symbol *s)
{
	const char *name = t->names + s->name;
	uint32_t underscores = 0;

	if (!(s->rank & RANK_TABLE))
		return s->rank;
	while (underscores < NAME_RANK_MAX && name[underscores] == '_')
		underscores++;
	return s->rank | (NAME_RANK_MAX - underscores);
}

/*
 * Return the size of a name; 0 after too many bytes, since the names of a table may
 * overlap.
 */
static size_t size_of_name(struct elfsym *t, const struct image_symbol *s)
{
	size_t size;

	if (t->nr_bytes_scanned > SCAN_MAX)
		return 0;
	size = strnlen(t->names + s->name, MIN(IMAGE_NAME_MAX, t->names_size - s->name));
	t->nr_bytes_scanned += size;
	return size;
}

/* Test whether @s is a better name than @best at the same address. */
static bool is_better(struct elfsym *t, const struct image_symbol *s,
		      const struct image_symbol *best)
{
	uint32_t rank = rank_by_name(t, s), best_rank = rank_by_name(t, best);
	size_t size, best_size;
	int order;

	if (rank != best_rank)
		return rank > best_rank;
	size = size_of_name(t, s);
	best_size = size_of_name(t, best);
	if (size != best_size)
		return size > best_size;
	order = strncmp(t->names + s->name, t->names + best->name, TIE_BYTES);
	return order ? order < 0 : s->name < best->name;
}

/*
 * Return the best of the symbols at the address of symbol @i, and set @i to the next
 * address.
 */
static struct image_symbol take_best(struct elfsym *t, uint32_t *i)
{
	const struct image_symbol *s = t->symbols + *i, *best = s, *end = t->symbols + t->nr;

	for (s++; s < end && s->vaddr == best->vaddr; s++)
		if (is_better(t, s, best))
			best = s;
	*i = (uint32_t)(s - t->symbols);
	return *best;
}

/*
 * Keep the best symbol of each address, but none outside code and no labels inside
 * functions. Symbols without a size end at the next one, or at the end of their
 * code.
 */
static void keep_best(struct elfsym *t, const struct range *ranges, uint32_t nr_ranges)
{
	uint64_t covered = 0, last_end = 0, reach = 0;
	uint32_t kept = 0, range = 0, nested = 0;

	for (uint32_t i = 0; i < t->nr;) {
		struct image_symbol s = take_best(t, &i),
				    *last = kept ? &t->symbols[kept - 1] : NULL;
		uint64_t end = range_end(ranges, nr_ranges, &range, s.vaddr);

		if (!end || (!(s.rank & RANK_FUNC) && s.vaddr < covered))
			continue;
		if (last && !last->size)
			last->size = MIN(last_end, s.vaddr) - last->vaddr;
		s.size = MIN(s.size, end - s.vaddr);
		if (s.rank & RANK_FUNC)
			covered = MAX(covered, s.vaddr + s.size);
		nested = s.vaddr < reach ? nested + 1 : 0;
		s.back = (uint8_t)MIN(nested, IMAGE_NESTED_MAX);
		reach = MAX(reach, s.vaddr + s.size);
		assert(kept < i);
		t->symbols[kept++] = s;
		last_end = end;
	}
	if (kept && !t->symbols[kept - 1].size)
		t->symbols[kept - 1].size = last_end - t->symbols[kept - 1].vaddr;
	t->nr = kept;
}

/* Free unused memory. */
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
	rc = sort_by_number(t->symbols, t->nr, sizeof(*t->symbols));
	if (!rc)
		keep_best(t, ranges, nr_ranges);
	free(ranges);
	shrink(t);
	return rc;
}
