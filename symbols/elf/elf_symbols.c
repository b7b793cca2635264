// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symbols of code in ELF files: .symtab and .dynsym, PLT stubs, Go's function table, V8's builtins,
 * loops of interpreters.
 *
 * From gcc 16 on nearly all of CPython's loop is in it, and it has a symbol in .symtab only. It has
 * an FDE, which begins at the target of a jump out of the function, in the middle of a frame: the
 * CFA of its first row is that of the function at the jump, and not that of a function's begin.
 *
 * Runs on: a helper.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/elf/elf.h"

#define FUNCTION_MAX (1U << 20)
#define REMEMBER_MAX 8U

static const char *const symbols[] = {
	"_PyEval_EvalFrameDefault", "execute_ex",     "ruby_run_node", "Perl_runops_standard",
	"_ZN4node5StartEiPPc",	    "luaJIT_setmode", "lua_newstate",  "enif_alloc",
	"Rf_initEmbeddedR",	    ELFLOOP_GO,
};

/* Return the number of the interpreter that the function is of; 0: none. */
static uint8_t loop_of(const struct elfsym *t, const struct image_symbol *s)
{
	const char *name = t->names + s->name;

	/* Of a stub it is the name of a function elsewhere. */
	for (size_t i = 0; i < ARRAY_SIZE(symbols) && !s->stub; i++)
		if (name[0] == symbols[i][0] && !strcmp(name, symbols[i]))
			return (uint8_t)(i + 1);
	return 0;
}

/*
 * Texts of the same interpreters: one that hardly another program has, and one of the loop, as
 * programs that know interpreters have the first. NULL: their functions always have names.
 */
static const char *const texts[ARRAY_SIZE(symbols)][ELFLOOP_TEXTS] = {
	{ "Fatal Python error: ", "__build_class__" },
	{ "zend_mm_heap corrupted", "Cannot redeclare" },
	{ NULL },
	{ "panic: restartop in perl_run", "Can't locate object method" },
	{ NULL },
	{ "LuaJIT 2.", "attempt to compare %s with %s" },
	{ "$LuaVersion: Lua 5.", "attempt to compare %s with %s" },
};

/* Constants of a program that are looked through. */
#define TEXTS_MAX (16U << 20)

/* Return whether the file is a program: it has a loader, or needs no other object. */
static bool is_program(const struct elffile *f)
{
	struct elffile_dynamic dynamic;

	for (uint32_t i = 0; i < f->nr_phdrs; i++)
		if (f->phdrs[i].p_type == PT_INTERP)
			return true;
	elffile_dynamic(f, &dynamic);
	return f->nr_phdrs && !dynamic.needs_others;
}

const char *elfloop_symbol(uint8_t loop, const char *const **text)
{
	if (!loop || loop > ARRAY_SIZE(symbols))
		return NULL;
	if (text)
		*text = texts[loop - 1];
	return symbols[loop - 1];
}

/* Return a bit for each interpreter of which the constants have that text. */
static uint32_t search_texts(const struct elffile *f, uint32_t nr)
{
	uint32_t found = 0;
	Elf64_Shdr s;

	for (uint32_t i = 0; elffile_constants(f, i, &s); i++) {
		const uint8_t *bytes;
		void *copy;

		if (s.sh_size > TEXTS_MAX ||
		    !(bytes = elffile_bytes(f, s.sh_offset, s.sh_size, &copy)))
			continue;
		for (uint32_t k = 0; k < ARRAY_SIZE(texts); k++)
			if (texts[k][nr] &&
			    memmem(bytes, s.sh_size, texts[k][nr], strlen(texts[k][nr])))
				found |= 1U << k;
		free(copy);
	}
	return found;
}

/* Return the number of the interpreter that a program is, by its texts; 0: none. */
static uint8_t search_text(const struct elffile *f)
{
	uint32_t found = 0;

	if (f->elf_class == ELFCLASS64 && is_program(f))
		found = search_texts(f, 0);
	for (uint32_t nr = 1; found && nr < ELFLOOP_TEXTS; nr++)
		found &= search_texts(f, nr);
	return (uint8_t)__builtin_ffs((int)found);
}

uint8_t elfloop_find(const struct elfsym *t, const struct elffile *f)
{
	uint8_t loop = 0;

	/*
	 * The first one of the table: LuaJIT has the functions of Lua too, and a program of Go may
	 * have an interpreter as well, which has more to show.
	 */
	for (uint32_t i = 0; i < t->nr; i++) {
		uint8_t found = loop_of(t, &t->symbols[i]);

		loop = found && (!loop || found < loop) ? found : loop;
	}
	return loop || !f ? loop : search_text(f);
}

/* A row of an FDE, as far as the CFA: a register and an offset. */
struct cfa {
	uint64_t reg, offset;
	bool is_unknown;
};

/* The rows up to an address. */
struct rows {
	struct ehread r;
	uint64_t loc, until;
	struct cfa now, kept[REMEMBER_MAX];
	uint32_t nr_kept, code_align;
	int32_t data_align;
};

/* Run an instruction with its operand in its low bits, or that does not concern the CFA. */
static void run_other(struct rows *s, uint8_t op)
{
	static const uint8_t operands[] = {
		[0x05] = 2, [0x06] = 1, [0x07] = 1, [0x08] = 1, [0x09] = 2,
		[0x11] = 2, [0x14] = 2, [0x15] = 2, [0x2e] = 1, [0x2f] = 2,
	};

	if (op >> 6 == 2) /* DW_CFA_offset */
		ehread_uleb(&s->r);
	else if (op >> 6 == 1) /* DW_CFA_advance_loc */
		s->loc += (uint64_t)(op & 63) * s->code_align;
	else if (op == 0x10 || op == 0x16) { /* expressions */
		ehread_uleb(&s->r);
		ehread_block(&s->r, ehread_uleb(&s->r));
	} else if (op < ARRAY_SIZE(operands) && operands[op]) {
		for (uint8_t i = 0; i < operands[op]; i++)
			ehread_uleb(&s->r);
	} else if (op && op >> 6 != 3 && op != 0x2d) {
		s->r.bad = true;
	}
}

static void run_one(struct rows *s)
{
	uint8_t op = (uint8_t)ehread_fixed(&s->r, 1);

	if (op >= 0x02 && op <= 0x04) { /* DW_CFA_advance_loc1, 2, 4 */
		s->loc += ehread_fixed(&s->r, 1U << (op - 0x02)) * s->code_align;
	} else if (op == 0x0a && s->nr_kept < REMEMBER_MAX) {
		s->kept[s->nr_kept++] = s->now;
	} else if (op == 0x0b && s->nr_kept) {
		s->now = s->kept[--s->nr_kept];
	} else if (op == 0x0c || op == 0x12) { /* DW_CFA_def_cfa, _sf */
		s->now.reg = ehread_uleb(&s->r);
		s->now.offset = op == 0x0c ? ehread_uleb(&s->r)
					   : (uint64_t)(ehread_sleb(&s->r) * s->data_align);
		s->now.is_unknown = false;
	} else if (op == 0x0d) {
		s->now.reg = ehread_uleb(&s->r);
	} else if (op == 0x0e) {
		s->now.offset = ehread_uleb(&s->r);
	} else if (op == 0x0f) { /* DW_CFA_def_cfa_expression */
		ehread_block(&s->r, ehread_uleb(&s->r));
		s->now.is_unknown = true;
	} else {
		run_other(s, op);
	}
}

/* Run the instructions from @from to @to of the section. */
static void run(struct rows *s, const struct ehframe *eh, uint32_t from, uint32_t to)
{
	s->r = (struct ehread){ eh->bytes + from, eh->bytes + to, false };
	while (!s->r.bad && s->r.pos < s->r.end) {
		struct cfa before = s->now;

		run_one(s);
		if (s->loc <= s->until)
			continue;
		s->now = before;
		return;
	}
}

/* Get the CFA at @vaddr, and at the begin of a function. False: it is not known. */
static bool find_cfa(const struct ehframe *eh, const struct ehframe_fde *fde, uint64_t vaddr,
		     struct cfa *at, struct cfa *first)
{
	struct ehframe_record rec;
	struct rows s = { .until = vaddr };

	if (ehframe_read(eh, fde->offset, &rec))
		return false;
	s.loc = rec.start;
	s.code_align = rec.cie.code_align;
	s.data_align = rec.cie.data_align;
	run(&s, eh, rec.cie.insns, rec.cie.insns_end);
	*first = s.now;
	if (!s.r.bad)
		run(&s, eh, rec.insns, rec.insns_end);
	*at = s.now;
	return !s.r.bad && !s.now.is_unknown;
}

static bool same(const struct cfa *a, const struct cfa *b)
{
	return a->reg == b->reg && a->offset == b->offset;
}

/* Return whether @target is the begin of a cold part, reached by a jump at @from of @fde. */
static bool is_part(const struct ehframe *eh, const struct ehframe_fde *fde, uint64_t from,
		    uint64_t target, struct ehframe_fde *part)
{
	struct cfa here, there, first;

	return target - fde->start >= fde->size && ehframe_find(eh, target, part) &&
	       part->start == target && find_cfa(eh, fde, from, &here, &first) &&
	       !same(&here, &first) && find_cfa(eh, part, target, &there, &first) &&
	       same(&here, &there);
}

/* Get the target of a jump at @code, of which @left bytes are there, at @vaddr. False: none. */
static bool read_jump(uint16_t machine, const uint8_t *code, size_t left, uint64_t vaddr,
		      uint64_t *target)
{
	uint32_t word;
	int32_t by;

	if (machine == EM_X86_64) {
		uint32_t size = code[0] == 0xe9 ? 1 : 2;

		/* jmp, jcc: the rest of what looks like one has no FDE at its target. */
		if (left < size + 4U ||
		    (size == 2 && (code[0] != 0x0f || (code[1] & 0xf0) != 0x80)))
			return false;
		memcpy(&by, code + size, 4);
		*target = vaddr + size + 4 + (uint64_t)(int64_t)by;
		return true;
	}
	if (machine != EM_AARCH64 || left < 4 || vaddr & 3)
		return false;
	memcpy(&word, code, 4);
	if ((word & 0xfc000000) == 0x14000000) /* b */
		by = (int32_t)(word << 6) >> 4;
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		by = (int32_t)(word << 8) >> 11; /* b.cond, cbz, cbnz */
	else
		return false;
	*target = vaddr + (uint64_t)(int64_t)(by & ~3);
	return true;
}

/* Find the cold part of the function of @fde by its code. */
static bool find_part(const struct elffile *f, const struct ehframe *eh,
		      const struct ehframe_fde *fde, struct ehframe_fde *part)
{
	uint64_t offset, target;
	void *code;
	bool found = false;

	if (fde->size > FUNCTION_MAX || !elffile_offset(f, fde->start, fde->size, &offset) ||
	    elffile_read_alloc(f, offset, fde->size, &code))
		return false;
	for (uint32_t at = 0; at < fde->size && !found; at++)
		found = read_jump(f->machine, (const uint8_t *)code + at, fde->size - at,
				  fde->start + at, &target) &&
			is_part(eh, fde, fde->start + at, target, part);
	free(code);
	return found;
}

/* Return whether the cold part of @name is there by a symbol. */
static bool has_part(const struct elfsym *t, const char *name)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; i < t->nr; i++) {
		const char *other = t->names + t->symbols[i].name;

		if (!strncmp(other, name, size) && !strncmp(other + size, ".cold", 5))
			return true;
	}
	return false;
}

int elfloop_add_parts(struct elfsym *t, const struct elffile *f, const struct ehframe *eh)
{
	int rc = 0;

	if (f->elf_class != ELFCLASS64)
		return 0;
	for (uint32_t i = 0, nr = t->nr; i < nr && !rc; i++) {
		uint8_t loop = loop_of(t, &t->symbols[i]);
		struct ehframe_fde fde, part;
		char name[64];

		if (!loop || loop == ARRAY_SIZE(symbols) || has_part(t, symbols[loop - 1]) ||
		    !ehframe_find(eh, t->symbols[i].vaddr, &fde) ||
		    fde.start != t->symbols[i].vaddr || !find_part(f, eh, &fde, &part))
			continue;
		rc = elfsym_add_named(t, part.start, part.size, name,
				      (size_t)snprintf(name, sizeof(name), "%s.cold",
						       symbols[loop - 1]));
	}
	return rc;
}

/*
 * Symbol tables -> functions sorted by address.
 *
 * Tables have a hundred thousand symbols, few of which are ever shown: names
 * are read only where two symbols have one address.
 *
 * Runs on: a helper. Every number of the file is hostile.
 */

/* The lowest four bits are from rank_by_name(). */
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
	free(t->sources);
	*t = (struct elfsym){ 0 };
}

/* A symbol has 32 bits for the size of its code. */
static uint32_t clamp(uint64_t size)
{
	return (uint32_t)MIN(size, UINT32_MAX);
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

	return bind_rank[ELF64_ST_BIND(sym->st_info)] | IMAGE_RANK_TABLE |
	       (sym->st_size ? IMAGE_RANK_SIZE : 0) |
	       (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE ? IMAGE_RANK_FUNC : 0);
}

/* Note that the next symbols are of the source @file: without memory they are of one. */
static void begin_source(struct elfsym *t, const char *file)
{
	t->in_go = !strcmp(file, "go.go");
	if (array_reserve(&t->sources, &t->max_sources, t->nr_sources + 1ull))
		t->sources[t->nr_sources++] = t->nr;
}

/* Add @sym if it is a function with a name; memory is reserved. */
static void add_symbol(struct elfsym *t, const struct elffile *f, const Elf64_Sym *sym, size_t base,
		       uint64_t bias)
{
	const char *name = sym->st_name < t->names_size - base ? t->names + base + sym->st_name
							       : "";
	bool go = t->in_go && ELF64_ST_BIND(sym->st_info) == STB_LOCAL;

	if (ELF64_ST_TYPE(sym->st_info) == STT_FILE)
		begin_source(t, name);
	if (!is_code(f, sym) || !name[0] || is_mark(name))
		return;
	assert(t->nr < t->max);
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = sym->st_value + bias,
		.size = clamp(sym->st_size),
		.name = (uint32_t)(base + sym->st_name),
		.rank = rank_of(sym) & ~(go ? IMAGE_RANK_TABLE : 0),
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
	assert(t->nr <= ELFSYM_SYMBOLS_MAX);
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
	begin_source(t, "");
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

	assert(name || !name_size);
	name_size = MIN(name_size, (size_t)IMAGE_NAME_MAX);
	rc = reserve(t, 1);
	if (!rc)
		rc = reserve_names(t, name_size + 1);
	if (rc)
		return rc;
	t->symbols[t->nr++] = (struct image_symbol){
		.vaddr = vaddr,
		.size = clamp(size),
		.name = (uint32_t)t->names_size,
		.rank = IMAGE_RANK_FUNC,
	};
	memcpy(t->names + t->names_size, name, name_size);
	t->names_size += name_size;
	t->names[t->names_size++] = '\0';
	return 0;
}

/*
 * Add a stub that calls @function, an offset in the names of the dynamic symbols;
 * ignored without a name.
 */
static int elfsym_add_stub(struct elfsym *t, uint64_t vaddr, uint64_t size, uint32_t function)
{
	int rc = 0;

	if (function >= t->dynstr_size || !t->names[t->dynstr + function])
		return 0;
	rc = reserve(t, 1);
	if (!rc)
		t->symbols[t->nr++] = (struct image_symbol){
			.vaddr = vaddr,
			.size = clamp(size),
			.name = (uint32_t)(t->dynstr + function),
			.rank = IMAGE_RANK_FUNC,
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

	if (!(s->rank & IMAGE_RANK_TABLE))
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

/* Return the best of the symbols at the address of symbol @i; set @i to the next address. */
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

		if (!end || (!(s.rank & IMAGE_RANK_FUNC) && s.vaddr < covered))
			continue;
		if (last && !last->size)
			last->size = clamp(MIN(last_end, s.vaddr) - last->vaddr);
		s.size = clamp(MIN(s.size, end - s.vaddr));
		if (s.rank & IMAGE_RANK_FUNC)
			covered = MAX(covered, s.vaddr + s.size);
		nested = s.vaddr < reach ? nested + 1 : 0;
		s.back = (uint8_t)MIN(nested, IMAGE_NESTED_MAX);
		reach = MAX(reach, s.vaddr + s.size);
		assert(kept < i);
		t->symbols[kept++] = s;
		last_end = end;
	}
	if (kept && !t->symbols[kept - 1].size)
		t->symbols[kept - 1].size = clamp(last_end - t->symbols[kept - 1].vaddr);
	t->nr = kept;
}

/*
 * Parts of functions: code that a function jumps to and that has a symbol, "f.cold" of gcc,
 * "f.cold.0" and "f.warm" of BOLT, "f.__part.1", "f.cold" and "f.eh" of clang's sections of basic
 * blocks. A clone is no part: code calls "f.isra.0", "f.part.0" and "f.constprop.0", which may have
 * parts.
 *
 * The function is the one of that name in the same file of the source, else the one that all files
 * see: many files may have a static function of that name, and a part is local.
 */

/* The name of a function that has parts. */
struct part_base {
	uint32_t name, size;
	uint32_t local, source; /* the last local one, and its file; PART_NONE */
	uint32_t global;	/* PART_NONE: none */
	bool many;		/* local ones */
};

/* A symbol with such a name, or of a part; in the order of the table. */
struct part_mention {
	uint32_t symbol, base, source;
	uint32_t whole; /* of a part, a symbol; PART_NONE */
	bool is_part;
};

/* A part found, by addresses. */
struct part_link {
	uint64_t part, whole;
	uint32_t name; /* of the part */
};

struct parts {
	struct elfsym *t;
	struct hashset set; /* of bases */
	struct part_base *bases;
	struct part_mention *list;
	struct part_link *links;
	uint32_t nr_bases, max_bases, nr, max, nr_links, max_links;
};

#define PART_NONE UINT32_MAX

/* Return the size of @name without the suffix of a part; 0: it has none. */
static size_t without_suffix(const char *name, size_t size)
{
	static const struct {
		const char *text;
		bool plain, numbered;
	} suffixes[] = {
		{ ".cold", true, true },
		{ ".warm", true, true },
		{ ".__part", false, true },
		{ ".eh", true, false },
	};
	size_t end = size;
	bool numbered;

	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	numbered = end && end < size && name[end - 1] == '.';
	end = numbered ? end - 1 : size;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t n = strlen(suffixes[i].text);

		if ((numbered ? suffixes[i].numbered : suffixes[i].plain) && end > n &&
		    !memcmp(name + end - n, suffixes[i].text, n))
			return end - n;
	}
	return 0;
}

/* Return the size of the name of the function that @s is a part of, 0: of none; set that of @s. */
static size_t size_of_base(struct elfsym *t, const struct image_symbol *s, size_t *size)
{
	size_t base = 0, end;

	/* Go has no parts: its main.cold is a function beside C's main. */
	*size = s->stub || !(s->rank & IMAGE_RANK_TABLE) ? 0 : size_of_name(t, s);
	for (end = *size; (end = without_suffix(t->names + s->name, end));)
		base = end;
	return base;
}

static uint32_t find_base(const struct parts *p, const char *name, size_t size, uint64_t hash)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&p->set, hash, &at)) != HASHSET_NONE)
		if (p->bases[id].size == size &&
		    !memcmp(p->t->names + p->bases[id].name, name, size))
			return id;
	return PART_NONE;
}

/* Note the names of functions that have parts. 0 or -ENOMEM. */
static int find_bases(struct parts *p)
{
	for (uint32_t i = 0; i < p->t->nr; i++) {
		const struct image_symbol *s = &p->t->symbols[i];
		const char *name = p->t->names + s->name;
		size_t whole, size = size_of_base(p->t, s, &whole);
		uint64_t hash = size ? keyhash_name(name, size) : 0;

		if (!size || find_base(p, name, size, hash) != PART_NONE)
			continue;
		if (!array_reserve(&p->bases, &p->max_bases, p->nr_bases + 1ull) ||
		    hashset_reserve(&p->set, 1))
			return -ENOMEM;
		p->bases[p->nr_bases] = (struct part_base){ s->name,   (uint32_t)size, PART_NONE,
							    PART_NONE, PART_NONE,      false };
		hashset_add(&p->set, hash, p->nr_bases++);
	}
	return 0;
}

/* Collect the parts and all functions that they may be of. 0 or -ENOMEM. */
static int find_mentions(struct parts *p)
{
	uint32_t source = 0;

	for (uint32_t i = 0; i < p->t->nr; i++) {
		const struct image_symbol *s = &p->t->symbols[i];
		const char *name = p->t->names + s->name;
		size_t size, base = size_of_base(p->t, s, &size);
		uint32_t id;

		while (source < p->t->nr_sources && p->t->sources[source] <= i)
			source++;
		size = base ? base : size;
		id = size ? find_base(p, name, size, keyhash_name(name, size)) : PART_NONE;
		if (id == PART_NONE)
			continue;
		if (!array_reserve(&p->list, &p->max, p->nr + 1ull))
			return -ENOMEM;
		p->list[p->nr++] = (struct part_mention){ i, id, source, PART_NONE, base };
	}
	return 0;
}

/* Note function @m under its name. */
static void note_function(struct parts *p, const struct part_mention *m)
{
	struct part_base *b = &p->bases[m->base];

	if (p->t->symbols[m->symbol].rank & IMAGE_RANK_BOUND) {
		b->global = m->symbol;
		return;
	}
	b->many |= b->local != PART_NONE && b->local != m->symbol;
	b->local = m->symbol;
	b->source = m->source;
}

/* Find the function of each part: before it in the table, then behind it. */
static void find_wholes(struct parts *p)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		struct part_mention *m = &p->list[i];

		if (!m->is_part)
			note_function(p, m);
		else if (p->bases[m->base].source == m->source)
			m->whole = p->bases[m->base].local;
	}
	for (uint32_t i = p->nr; i-- > 0;) {
		struct part_mention *m = &p->list[i];
		const struct part_base *b = &p->bases[m->base];

		if (!m->is_part)
			note_function(p, m);
		else if (m->whole != PART_NONE)
			continue;
		else if (b->source == m->source)
			m->whole = b->local;
		else if (b->global != PART_NONE || !b->many)
			m->whole = b->global != PART_NONE ? b->global : b->local;
	}
}

/* Keep the parts found by address: the symbols are sorted next. 0 or -ENOMEM. */
static int link_parts(struct parts *p)
{
	const struct image_symbol *s = p->t->symbols;

	for (uint32_t i = 0; i < p->nr; i++) {
		const struct part_mention *m = &p->list[i];

		if (m->whole == PART_NONE)
			continue;
		if (!array_reserve(&p->links, &p->max_links, p->nr_links + 1ull))
			return -ENOMEM;
		p->links[p->nr_links++] = (struct part_link){ s[m->symbol].vaddr, s[m->whole].vaddr,
							      s[m->symbol].name };
	}
	return 0;
}

static int find_parts(struct parts *p)
{
	int rc = find_bases(p);

	if (!rc && p->nr_bases)
		rc = find_mentions(p);
	find_wholes(p);
	return rc ? rc : link_parts(p);
}

/* Return the symbol that begins at @vaddr; t->nr: none. */
static uint32_t index_of(const struct elfsym *t, uint64_t vaddr)
{
	uint32_t i = search_split(t->nr, k, t->symbols[k].vaddr < vaddr);

	return i < t->nr && t->symbols[i].vaddr == vaddr ? i : t->nr;
}

/* Set the functions of the parts that were kept. */
static void set_wholes(const struct parts *p)
{
	struct elfsym *t = p->t;

	for (uint32_t i = 0; i < p->nr_links; i++) {
		const struct part_link *l = &p->links[i];
		uint32_t part = index_of(t, l->part), whole = index_of(t, l->whole);

		if (part < t->nr && whole < t->nr && part != whole &&
		    t->symbols[part].name == l->name)
			t->symbols[part].whole = whole + 1;
	}
}

static void parts_fini(struct parts *p)
{
	hashset_fini(&p->set);
	free(p->bases);
	free(p->list);
	free(p->links);
}

/* Free unused memory. */
static void shrink(struct elfsym *t)
{
	struct image_symbol *fit = reallocarray(t->symbols, MAX(t->nr, 1U), sizeof(*fit));
	char *names = t->names_size ? realloc(t->names, t->names_size) : NULL;

	free(t->sources);
	t->sources = NULL;
	t->nr_sources = t->max_sources = 0;
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
	struct parts parts = { .t = t };
	int rc = code_ranges(f, &ranges, &nr_ranges);

	if (rc)
		return rc;
	rc = find_parts(&parts);
	if (!rc)
		rc = sort_by_number(t->symbols, t->nr, sizeof(*t->symbols));
	if (!rc) {
		keep_best(t, ranges, nr_ranges);
		set_wholes(&parts);
	}
	parts_fini(&parts);
	free(ranges);
	shrink(t);
	return rc;
}

/*
 * Find the stubs of an object and the functions they call.
 *
 * Runs on: a helper.
 */

#define RELOCATIONS_MAX (2U << 20)
#define SLOTS_MAX	(256U << 10)
#define PLT_SIZE_MAX	(8U << 20)
#define SEARCHES_MAX	(32ULL << 20) /* symbols searched for indirect functions */
#define ELFPLT_BATCH	1024U

/* A slot of the GOT, and the function it points to. */
struct elfplt_slot {
	uint64_t vaddr;
	uint64_t target; /* of an indirect function: its resolver; else 0 */
	uint32_t name;	 /* offset in the names of the dynamic symbols */
};

struct plt {
	const struct elffile *f;
	struct elfplt_slot *slots;
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
	struct elfplt_slot slot = { .vaddr = r->r_offset };

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
	batch = malloc(ELFPLT_BATCH * sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	for (uint64_t i = first; i < nr && !rc; i += ELFPLT_BATCH) {
		size_t here = MIN(nr - i, ELFPLT_BATCH);

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
static const struct elfplt_slot *find_slot(struct plt *p, uint64_t vaddr)
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
	const struct elfplt_slot *slot = find_slot(p, got);
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

/*
 * Find main() in a stripped program: the code at its entry passes the address on as the first
 * argument of a call, or of a function that it calls or jumps to (musl).
 *
 * Runs on: a helper.
 */

#define ENTRY_CODE  64 /* bytes that are read of a function on the way */
#define ENTRY_CALLS 2
#define ENTRY_JUMPS 2 /* instructions before the jump of a wrapper (AArch64: crt1.o) */

struct entry {
	const struct elffile *f;
	const struct derive_cpu *cpu;
	uint8_t arg; /* the register of the first argument */
	uint8_t bytes[ENTRY_CODE];
	struct derive_code code;
	struct derive_state state;
	struct derive_insn insn;
};

static bool go_to(struct entry *n, uint64_t vaddr)
{
	n->code = (struct derive_code){ n->bytes, vaddr, sizeof(n->bytes) };
	n->state.origin = vaddr;
	return vaddr && elffile_read_at(n->f, vaddr, n->bytes, sizeof(n->bytes));
}

/* Return the slot of the GOT that the first argument is read from at @at (AArch64), or 0. */
static uint64_t slot_of_arg(const struct entry *n, uint64_t at)
{
	uint64_t page = n->state.reg[n->arg];
	uint32_t word = bytes_u32(n->bytes + (at - n->code.vaddr));

	if (n->f->machine != EM_AARCH64 || derive_kind(page) != DERIVE_NUMBER ||
	    (word & 0xffc003ff) != 0xf9400000) /* ldr x0, [x0, #] */
		return 0;
	return (uint64_t)derive_number(page) + (word >> 10 & 0xfff) * 8;
}

/*
 * Run to the first instruction that does not only lead on to the next one. Return the fact about
 * the first argument before it: calls end it.
 */
static uint64_t run_entry(struct entry *n)
{
	uint64_t at = n->code.vaddr, arg = 0;

	n->insn = (struct derive_insn){ .flow = DERIVE_ON };
	while (n->insn.flow == DERIVE_ON && at + 4 <= n->code.vaddr + n->code.size) {
		uint64_t slot = slot_of_arg(n, at), value;

		arg = n->state.reg[n->arg];
		n->cpu->step(&n->code, at, &n->state, &n->insn);
		if (slot && elffile_pointer(n->f, slot, &value))
			n->state.reg[n->arg] = derive_value(DERIVE_NUMBER, (int64_t)value);
		at += n->insn.size;
	}
	return arg;
}

/* Return the target if the code at @vaddr only jumps on (a wrapper of main()); else @vaddr. */
static uint64_t behind_wrapper(struct entry *n, uint64_t vaddr)
{
	uint64_t at = vaddr;

	if (!go_to(n, vaddr))
		return vaddr;
	for (int i = 0; i < ENTRY_JUMPS && at - vaddr < ENTRY_CODE / 2; i++) {
		n->cpu->step(&n->code, at, &n->state, &n->insn);
		if (n->insn.flow == DERIVE_JUMP)
			return n->insn.target;
		if (n->insn.flow != DERIVE_ON)
			break;
		at += n->insn.size;
	}
	return vaddr;
}

/* Return the address that the code at @start passes on as main(), or 0. */
static uint64_t main_of(struct entry *n, uint64_t start)
{
	for (int i = 0; i < ENTRY_CALLS && go_to(n, start); i++) {
		uint64_t arg = run_entry(n);
		uint8_t flow = n->insn.flow;

		if (flow != DERIVE_CALL && flow != DERIVE_CALL_TO && flow != DERIVE_JUMP &&
		    flow != DERIVE_JUMP_TO)
			return 0;
		if (derive_kind(arg) == DERIVE_NUMBER)
			return (uint64_t)derive_number(arg);
		start = flow == DERIVE_CALL || flow == DERIVE_JUMP ? n->insn.target : 0;
	}
	return 0;
}

/* Add @name at @vaddr, unless another name is there, or no FDE begins there. */
static bool add_start(struct elfsym *t, const struct ehframe *eh, uint64_t vaddr, const char *name)
{
	struct ehframe_fde fde;

	if (!vaddr || !ehframe_find(eh, vaddr, &fde) || fde.start != vaddr)
		return false;
	for (uint32_t i = 0; i < t->nr; i++)
		if (t->symbols[i].vaddr == vaddr)
			return true;
	return !elfsym_add_named(t, vaddr, fde.size, name, strlen(name));
}

static void add_main(struct elfsym *t, const struct elffile *f, const struct ehframe *eh)
{
	struct entry n = { .f = f, .cpu = &derive_x86, .arg = 7 }; /* rdi */
	uint64_t start, found;

	if (f->machine == EM_AARCH64) {
		n.cpu = &derive_arm64;
		n.arg = 0;
	}
	n.state.word = n.cpu->word;
	n.state.reg[n.cpu->sp] = derive_value(DERIVE_CFA, n.cpu->sp_at_entry);
	if (!eh->nr_fdes || elffile_read(f, offsetof(Elf64_Ehdr, e_entry), &start, sizeof(start)))
		return;
	found = main_of(&n, start);
	if (add_start(t, eh, found, "main") ||
	    (found && add_start(t, eh, behind_wrapper(&n, found), "main")))
		add_start(t, eh, start, "_start");
}

int elfcode_add(struct elfsym *t, const struct elffile *f, const struct ehframe *eh)
{
	struct plt p = { .f = f };
	int rc = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(machines) && f->elf_class == ELFCLASS64; i++) {
		if (machines[i].machine != f->machine)
			continue;
		rc = add_stubs(&p, t, &machines[i]);
		add_main(t, f, eh);
	}
	free(p.slots);
	free(p.dynsym);
	return rc;
}

/*
 * Find the builtins by short functions that return the addresses of the tables.
 *
 * Runs on: a helper.
 */

#define BLOB_MAX (64U << 20)

/* Code is aligned to this, with a gap behind each builtin. */
#define CODE_ALIGN 64U

#define GAP_MAX 128U

/* Builtins; the head of the table of places, and an entry: offset, size, and others. */
#define BUILTINS_MIN 256U

#define BUILTINS_MAX 8192U
#define PLACES_HEAD  24U
#define ENTRY_MIN    8U
#define ENTRY_MAX    48U

/* An entry of the table of names: name, kind, and data. */
#define NAME_ENTRY 24U

#define NAME_MAX 128U
/* The code of all begins at a page; between them is int3. */
#define CODE_PAGE     4096U
#define FILLER	      0xcc
#define CONSTANTS_MAX (256U << 20)
#define PREFIX	      "Builtins_"

/* The functions that elfv8_symbol() wants are smaller. */
#define ELFV8_FUNCTION_MAX 64U

void elfv8_symbol(struct elfv8_symbols *s, const char *name, uint64_t address)
{
	static const char prefix[] = "_ZN2v88internal", blob[] = "v8_Default_embedded_blob_";
	static const struct {
		const char *name;
		size_t at;
	} blobs[] = {
		{ "code_", offsetof(struct elfv8_symbols, blob_code) },
		{ "code_size_", offsetof(struct elfv8_symbols, blob_code_size) },
		{ "data_", offsetof(struct elfv8_symbols, blob_data) },
		{ "data_size_", offsetof(struct elfv8_symbols, blob_data_size) },
	};
	static const struct {
		const char *name; /* behind the prefix */
		size_t at;
	} functions[] = {
		{ "23DefaultEmbeddedBlobCodeEv", offsetof(struct elfv8_symbols, code) },
		{ "27DefaultEmbeddedBlobCodeSizeEv", offsetof(struct elfv8_symbols, code_size) },
		{ "23DefaultEmbeddedBlobDataEv", offsetof(struct elfv8_symbols, data) },
		{ "27DefaultEmbeddedBlobDataSizeEv", offsetof(struct elfv8_symbols, data_size) },
		{ "8Builtins4nameENS0_7BuiltinE", offsetof(struct elfv8_symbols, name) },
	};

	if (!strncmp(name, blob, sizeof(blob) - 1)) {
		for (size_t i = 0; i < ARRAY_SIZE(blobs); i++)
			if (!strcmp(name + sizeof(blob) - 1, blobs[i].name))
				memcpy((char *)s + blobs[i].at, &address, sizeof(address));
		return;
	}
	if (!strcmp(name, "_ZN2v82V810GetVersionEv"))
		s->version = address;
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(name + sizeof(prefix) - 1, functions[i].name))
			memcpy((char *)s + functions[i].at, &address, sizeof(address));
}

/*
 * Get the value that the function at @address returns: an address that is loaded into rax, the
 * pointer or the number there. @size: of a number; 0: an address.
 */
static bool returned(const struct elffile *f, uint64_t address, size_t size, uint64_t *value)
{
	uint8_t code[12];
	int32_t word;

	*value = 0;
	if (!address || !elffile_read_at(f, address, code, sizeof(code)))
		return false;
	memcpy(&word, code + 1, sizeof(word));
	if (code[0] == 0xb8 && code[5] == 0xc3) { /* mov $word,%eax */
		*value = (uint32_t)word;
		return true;
	}
	memcpy(&word, code + 2, sizeof(word));
	if (size && code[0] == 0x8b && code[1] == 0x05) /* mov word(%rip),%eax */
		return elffile_read_at(f, address + 6 + (uint64_t)(int64_t)word, value, size);
	memcpy(&word, code + 3, sizeof(word));
	address += 7 + (uint64_t)(int64_t)word;
	if (!memcmp(code, "\x48\x8b\x05", 3)) /* mov word(%rip),%rax */
		return elffile_pointer(f, address, value);
	if (memcmp(code, "\x48\x8d\x05", 3) != 0) /* lea word(%rip),%rax */
		return false;
	if (size && !memcmp(code + 7, "\x8b\x00", 2)) /* mov (%rax),%eax */
		return elffile_read_at(f, address, value, size);
	if (!memcmp(code + 7, "\x48\x8b\x00", 3)) /* mov (%rax),%rax */
		return elffile_pointer(f, address, value);
	*value = address;
	return code[7] == 0xc3;
}

/* Take the symbols of the blob itself. */
static bool read_blob(struct elfv8_blob *out, const struct elfv8_symbols *s,
		      const struct elffile *f)
{
	uint32_t size[2];

	if (!s->blob_code || !s->blob_data ||
	    !elffile_read_at(f, s->blob_code_size, &size[0], sizeof(size[0])) ||
	    !elffile_read_at(f, s->blob_data_size, &size[1], sizeof(size[1])))
		return false;
	*out = (struct elfv8_blob){ s->blob_code, size[0], s->blob_data, size[1] };
	return true;
}

bool elfv8_blob(struct elfv8_blob *out, const struct elfv8_symbols *s, const struct elffile *f)
{
	if (f->machine != EM_X86_64)
		return false;
	if (!read_blob(out, s, f) &&
	    !(returned(f, s->code, 0, &out->code) &&
	      returned(f, s->code_size, 4, &out->code_size) &&
	      returned(f, s->data, 0, &out->data) && returned(f, s->data_size, 4, &out->data_size)))
		return false;
	return out->code_size && out->code_size <= BLOB_MAX && out->data_size <= BLOB_MAX;
}

/* ---- a stripped file that exports none of them ---- */

struct builtin {
	uint32_t offset, size;
};

/*
 * Read the table of places with entries of @entry bytes: they are in order, without large gaps, up
 * to the end of the code. Returns how many; 0: it has other entries.
 */
static uint32_t read_places(const uint8_t *data, const struct elfv8_blob *b, uint32_t entry,
			    struct builtin *out)
{
	uint64_t end = 0;
	uint32_t nr = 0;

	for (uint64_t at = PLACES_HEAD; at + entry <= b->data_size && nr < BUILTINS_MAX;
	     at += entry) {
		struct builtin p = { bytes_u32(data + at), bytes_u32(data + at + 4) };

		if (p.offset < end || p.offset - end > GAP_MAX || p.offset % CODE_ALIGN ||
		    !p.size || p.size > b->code_size - MIN((uint64_t)p.offset, b->code_size))
			break;
		end = (uint64_t)p.offset + p.size;
		out[nr++] = p;
	}
	return nr >= BUILTINS_MIN && (b->code_size == BLOB_MAX || b->code_size - end <= GAP_MAX)
		       ? nr
		       : 0;
}

/* Find the table of places in the constants of @s. Returns how many; 0: not found. */
static uint32_t search_places(const uint8_t *bytes, const Elf64_Shdr *s, struct elfv8_blob *b,
			      struct builtin *out)
{
	uint32_t nr = 0;

	for (uint64_t at = 0; at + BUILTINS_MIN * ENTRY_MIN < s->sh_size && !nr; at += 8) {
		const uint8_t *data = bytes + at;

		/* The first one begins the code. */
		if (bytes_u32(data + PLACES_HEAD) || !bytes_u32(data + PLACES_HEAD + 4))
			continue;
		b->data = s->sh_addr + at;
		b->data_size = s->sh_size - at;
		for (uint32_t entry = ENTRY_MIN; !nr && entry <= ENTRY_MAX; entry += 4) {
			nr = read_places(data, b, entry, out);
			if (nr)
				b->data_size = PLACES_HEAD + (uint64_t)nr * entry;
		}
	}
	if (nr)
		b->code_size = out[nr - 1].offset + out[nr - 1].size;
	return nr;
}

/* The same in all constants, which are large: Node.js has the data of libicu in them. */
static uint32_t find_places(const struct elffile *f, struct elfv8_blob *b, struct builtin *out)
{
	uint32_t nr = 0;
	Elf64_Shdr s;

	for (uint32_t i = 0; !nr && elffile_constants(f, i, &s); i++) {
		const uint8_t *bytes;
		void *copy;

		if (s.sh_size > CONSTANTS_MAX ||
		    !(bytes = elffile_bytes(f, s.sh_offset, s.sh_size, &copy)))
			continue;
		nr = search_places(bytes, &s, b, out);
		free(copy);
	}
	return nr;
}

/* Return whether the builtins may begin at @code: each gap behind one is filled. */
static bool is_filled(const struct elffile *f, uint64_t code, const struct builtin *places,
		      uint32_t nr)
{
	uint8_t gap[GAP_MAX];

	for (uint32_t i = 0; i + 1 < nr; i++) {
		uint64_t end = (uint64_t)places[i].offset + places[i].size;
		size_t size = places[i + 1].offset - end;

		if (size && !elffile_read_at(f, code + end, gap, size))
			return false;
		for (size_t k = 0; k < size; k++)
			if (gap[k] != FILLER)
				return false;
	}
	return true;
}

/* Find the code of the builtins in @segment. */
static bool find_code(const struct elffile *f, const Elf64_Phdr *segment, struct elfv8_blob *b,
		      const struct builtin *places, uint32_t nr)
{
	const uint64_t end = segment->p_vaddr + segment->p_filesz, offset = segment->p_offset;
	uint64_t at = (segment->p_vaddr + CODE_PAGE - 1) & ~(uint64_t)(CODE_PAGE - 1);

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || offset > f->size ||
	    segment->p_filesz > f->size - offset || end < segment->p_vaddr ||
	    at < segment->p_vaddr || elffile_expect(f, offset, segment->p_filesz))
		return false;
	for (; at < end && b->code_size <= end - at; at += CODE_PAGE) {
		b->code = at;
		if (is_filled(f, at, places, nr))
			return true;
	}
	return false;
}

bool elfv8_find(struct elfv8_blob *out, const struct elffile *f)
{
	struct builtin *places = calloc(BUILTINS_MAX, sizeof(*places));
	uint32_t nr = 0;
	bool found = false;

	*out = (struct elfv8_blob){ .code_size = BLOB_MAX };
	if (places && f->machine == EM_X86_64)
		nr = find_places(f, out, places);
	/* All are missed in one call. */
	for (uint32_t i = 0; !found && i < f->nr_phdrs && (nr || elffile_waits(f)); i++)
		found = find_code(f, &f->phdrs[i], out, places, nr);
	free(places);
	return found && nr;
}

/* ---- names ---- */

/* Get the table of names: the address that the function loads. */
static bool find_names(const struct elffile *f, uint64_t function, uint64_t *table)
{
	uint8_t code[32];
	int32_t word;

	if (!function || !elffile_read_at(f, function, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 8 <= sizeof(code); i++) {
		if (code[i] != 0x48)
			continue;
		if (code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5) { /* lea word(%rip),%reg */
			memcpy(&word, code + i + 3, sizeof(word));
			*table = function + i + 7 + (uint64_t)(int64_t)word;
			return true;
		}
		/* mov word(,%reg,8),%reg */
		if (code[i + 1] == 0x8b && (code[i + 2] & 0xc7) == 4 &&
		    (code[i + 3] & 0xc7) == 0xc5) {
			memcpy(&word, code + i + 4, sizeof(word));
			*table = (uint64_t)(int64_t)word;
			return true;
		}
	}
	return false;
}

/* The pointers of the table of names, while they are read. */
struct pointers {
	uint64_t table, size;
	uint64_t *out;
};

static bool put_pointer(const Elf64_Rela *r, void *ctx)
{
	const struct pointers *p = ctx;
	uint64_t at = r->r_offset - p->table;

	if (at < p->size && at % NAME_ENTRY == 0)
		p->out[at / NAME_ENTRY] = (uint64_t)r->r_addend;
	return true;
}

/* Read the pointers of @nr entries of the table of names, as they are relocated. */
static bool read_pointers(const struct elffile *f, uint64_t table, uint32_t nr, uint64_t *out)
{
	struct pointers p = { table, (uint64_t)nr * NAME_ENTRY, out };

	for (uint32_t i = 0; i < nr; i++, table += NAME_ENTRY)
		if (!elffile_read_at(f, table, &out[i], sizeof(out[i])) && !elffile_waits(f))
			return false;
	return elffile_relative(f, put_pointer, &p);
}

/* Read the name of a builtin: letters, digits and '_'. Returns its length; 0: it is none. */
static size_t read_name(const struct elffile *f, uint64_t address, char *out)
{
	size_t size;

	if (!elffile_read_at(f, address, out, NAME_MAX))
		return 0;
	size = strnlen(out, NAME_MAX);
	if (size == NAME_MAX)
		return 0;
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)out[i]) && out[i] != '_')
			return 0;
	return size;
}

/* Add the builtins with a pointer to a name, if all of these are names; else none. */
static int add_builtins(struct elfsym *t, const struct elffile *f, const struct elfv8_blob *b,
			const struct builtin *places, uint32_t nr, const uint64_t *names)
{
	char name[sizeof(PREFIX) + NAME_MAX] = PREFIX;
	const size_t prefix = sizeof(PREFIX) - 1;
	int rc = 0;

	/* All are missed in one call, not piece by piece. */
	for (uint32_t i = 0; i < nr; i++)
		if (names[i] && !read_name(f, names[i], name + prefix) && !elffile_waits(f))
			return 0;
	for (uint32_t i = 0; i < nr && !rc && !elffile_waits(f); i++)
		if (names[i])
			rc = elfsym_add_named(t, b->code + places[i].offset, places[i].size, name,
					      prefix + read_name(f, names[i], name + prefix));
	return rc;
}

/* ---- names in a file that exports nothing that leads to them ---- */

#define RUNS_MAX 16U

/* Runs of pointers into read-only data, one in each entry of a table of names. */
struct runs {
	uint64_t start, size; /* of the data */
	struct {
		uint64_t last;
		uint32_t nr, run;
	} at[NAME_ENTRY / 8]; /* by the remainder of the address */
	uint32_t nr;
	uint64_t end[RUNS_MAX]; /* the last entry of each long one */
};

static bool follow_run(const Elf64_Rela *r, void *ctx)
{
	struct runs *c = ctx;
	uint32_t i = r->r_offset / 8 % ARRAY_SIZE(c->at);

	if ((uint64_t)r->r_addend - c->start >= c->size)
		return true;
	c->at[i].nr = r->r_offset == c->at[i].last + NAME_ENTRY ? c->at[i].nr + 1 : 1;
	c->at[i].last = r->r_offset;
	if (c->at[i].nr == BUILTINS_MIN)
		c->at[i].run = c->nr++;
	if (c->at[i].nr >= BUILTINS_MIN && c->at[i].run < RUNS_MAX)
		c->end[c->at[i].run] = r->r_offset;
	return true;
}

/*
 * Read the names of @nr builtins from the table, which ends with a long run: of the interpreter's
 * code. Builtins in C++ have none in the file: their entries are set as the program starts.
 */
static bool search_names(const struct elffile *f, uint32_t nr, uint64_t *names)
{
	struct runs c = { .start = UINT64_MAX };
	uint64_t end = 0;
	char name[NAME_MAX];
	Elf64_Shdr s;

	/* Tables of functions are long runs as well. */
	for (uint32_t i = 0; elffile_constants(f, i, &s); i++) {
		if (s.sh_flags & SHF_EXECINSTR)
			continue;
		c.start = MIN(c.start, s.sh_addr);
		end = MAX(end, s.sh_addr + s.sh_size);
	}
	c.size = MAX(end, c.start) - c.start;

	if (!elffile_relative(f, follow_run, &c))
		return false;
	for (uint32_t i = 0; i < MIN(c.nr, RUNS_MAX); i++) {
		uint32_t named = 0;

		if (!read_pointers(f, c.end[i] - (uint64_t)(nr - 1) * NAME_ENTRY, nr, names))
			continue;
		for (uint32_t k = 0; k < nr; k++)
			named += names[k] && read_name(f, names[k], name);
		if (elffile_waits(f) || (names[0] && named > nr / 2))
			return true;
	}
	return false;
}

static void find_functions(const struct elfsym *t, struct elfv8_symbols *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < t->nr; i++)
		if (t->symbols[i].size <= ELFV8_FUNCTION_MAX)
			elfv8_symbol(s, t->names + t->symbols[i].name, t->symbols[i].vaddr);
}

int elfv8_add(struct elfsym *t, const struct elffile *f)
{
	struct builtin *places = NULL;
	uint64_t *names = NULL, table;
	struct elfv8_symbols s;
	struct elfv8_blob b;
	uint32_t nr = 0;
	void *data;
	int rc = 0;

	find_functions(t, &s);
	if (!(s.code ? elfv8_blob(&b, &s, f) && find_names(f, s.name, &table)
		     : s.version && elfv8_find(&b, f)) ||
	    !elffile_offset(f, b.data, b.data_size, &b.data) ||
	    elffile_read_alloc(f, b.data, b.data_size, &data))
		return 0;
	places = calloc(BUILTINS_MAX, sizeof(*places));
	names = calloc(BUILTINS_MAX, sizeof(*names));
	for (uint32_t entry = ENTRY_MIN; places && names && !nr && entry <= ENTRY_MAX; entry += 4)
		nr = read_places(data, &b, entry, places);
	if (nr && (s.code ? read_pointers(f, table, nr, names) : search_names(f, nr, names)))
		rc = add_builtins(t, f, &b, places, nr, names);
	free(places);
	free(names);
	free(data);
	return rc;
}
