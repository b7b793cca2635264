// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined functions of one object, by libdw: sections inflated, an index of units, the
 * walk down to an address, qualified names; the files that a worker has open, and its answers.
 *
 * Runs on: the worker; without a sandbox, the calling thread (one at a time).
 */
#include "symbols/dwarf/internal.h"

#include <assert.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

/*
 * Compressed debug sections → an ELF file in memory: header, section headers, names, sections.
 *
 * Locations of variables and macros are left out, a sixth of the bytes: libdw would inflate them.
 */

#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>

#define LIBRARY "libdeflate.so.0"

static struct dwarf_inflate_functions {
	__typeof__(libdeflate_alloc_decompressor) *alloc;
	__typeof__(libdeflate_free_decompressor) *free;
	__typeof__(libdeflate_zlib_decompress) *inflate;
} lib;
static bool loaded;

/*
 * Load libdeflate, which takes two fifths of the time of zlib, which libdw uses: the worker cannot
 * open it.
 */
static void dwarf_inflate_prepare(void)
{
	static const struct library_function list[] = {
		{ "libdeflate_alloc_decompressor",
		  offsetof(struct dwarf_inflate_functions, alloc) },
		{ "libdeflate_free_decompressor", offsetof(struct dwarf_inflate_functions, free) },
		{ "libdeflate_zlib_decompress", offsetof(struct dwarf_inflate_functions, inflate) },
	};

	if (!loaded)
		loaded = library_find(LIBRARY, &lib, list, ARRAY_SIZE(list));
}

/* Inflate into exactly @size bytes with libdeflate; false: not installed, or damaged. */
static bool inflate_fast(uint8_t *to, size_t size, const uint8_t *from, size_t from_size)
{
	struct libdeflate_decompressor *d = loaded ? lib.alloc() : NULL;
	bool ok = d && !lib.inflate(d, from, from_size, to, size, NULL);

	if (d)
		lib.free(d);
	return ok;
}
#else
static void dwarf_inflate_prepare(void)
{
}

static bool inflate_fast(uint8_t *to, size_t size, const uint8_t *from, size_t from_size)
{
	return false;
}
#endif

/* How a section is compressed. */
enum packing { PLAIN, BY_ZLIB, BY_ZSTD };

/* Inflate into exactly @size bytes. */
static bool inflate_into(enum packing how, uint8_t *to, size_t size, const uint8_t *from,
			 size_t from_size)
{
	uLongf got = size;

	assert(to && from);
#ifdef HAVE_ZSTD
	if (how == BY_ZSTD)
		return ZSTD_decompress(to, size, from, from_size) == size;
#endif
	return inflate_fast(to, size, from, from_size) ||
	       (uncompress(to, &got, from, from_size) == Z_OK && got == size);
}

static const char names[][20] = {
	".shstrtab",	   ".debug_line",    ".debug_info", ".debug_types",
	".debug_abbrev",   ".debug_aranges", ".debug_str",  ".debug_line_str",
	".debug_rnglists", ".debug_ranges",  ".debug_addr", ".debug_str_offsets",
};

/* ELFCOMPRESS_ZSTD, newer than some elf.h. */
#define COMPRESSED_BY_ZSTD 2U

#define NR_NAMES ARRAY_SIZE(names)
#define LINES	 1U /* the section that only lines need */

/* A section of the new file; as it is in the old one. */
struct section {
	const uint8_t *bytes; /* NULL: none */
	size_t size, true_size;
	enum packing packed;
};

struct head {
	Elf64_Ehdr file;
	Elf64_Shdr sections[NR_NAMES + 1];
	char names[NR_NAMES][sizeof(names[0])];
};

/* Return the way that the compressed @scn has to be inflated; PLAIN: none here. */
static enum packing packing_of(Elf_Scn *scn, size_t *true_size)
{
	GElf_Chdr packed;

	if (!gelf_getchdr(scn, &packed))
		return PLAIN;
	*true_size = packed.ch_size;
#ifdef HAVE_ZSTD
	if (packed.ch_type == COMPRESSED_BY_ZSTD)
		return BY_ZSTD;
#endif
	return packed.ch_type == ELFCOMPRESS_ZLIB ? BY_ZLIB : PLAIN;
}

/* Get section @scn, whose header is @shdr; @old: .zdebug_*. 0 or -errno. */
static int get_section(Elf_Scn *scn, const GElf_Shdr *shdr, bool old, struct section *out)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t skip = old ? ELFDWARF_OLD_HEAD : sizeof(Elf64_Chdr);

	if (!data || !data->d_buf || shdr->sh_type == SHT_NOBITS)
		return 0;
	*out = (struct section){ data->d_buf, data->d_size, data->d_size, PLAIN };
	if (!old && !(shdr->sh_flags & SHF_COMPRESSED))
		return 0;
	if (data->d_size < skip)
		return -ENOENT;
	out->packed = old ? BY_ZLIB : packing_of(scn, &out->true_size);
	if (old)
		out->true_size = elfdwarf_old_size(out->bytes);
	out->bytes += skip;
	out->size -= skip;
	return out->packed ? 0 : -ENOENT;
}

/* Return whether @name is the section @want; *old: as GNU tools named it when it is compressed. */
static bool is_section(const char *name, const char *want, bool *old)
{
	*old = !strncmp(name, ".z", 2);
	return !strcmp(name + 1 + *old, want + 1);
}

/*
 * Find the sections that are used, from name @first on; *sum: of their bytes, at most @max.
 * -ENOENT: none is compressed.
 */
static int find_sections(Elf *elf, size_t first, struct section list[NR_NAMES], size_t max,
			 size_t *sum)
{
	bool any = false;
	size_t strings;

	*sum = 0;
	if (elf_getshdrstrndx(elf, &strings))
		return -ENOENT;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name)
							    : NULL;

		for (size_t i = first; name && i < NR_NAMES; i++) {
			bool old;
			int rc;

			if (list[i].bytes || !*name || !is_section(name, names[i], &old))
				continue;
			rc = get_section(scn, &shdr, old, &list[i]);
			if (rc)
				return rc;
			if (list[i].true_size > max - *sum)
				return -EFBIG;
			*sum += list[i].true_size;
			any |= list[i].packed;
		}
	}
	return any ? 0 : -ENOENT;
}

/* Write the sections behind the head, and their headers. 0 or -EBADMSG. */
static int put_sections(const struct section list[NR_NAMES], uint8_t *image)
{
	struct head *head = (struct head *)image;
	size_t at = sizeof(*head);

	for (size_t i = 1; i < NR_NAMES; i++) {
		const struct section *s = &list[i];

		head->sections[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)(i * sizeof(names[0])),
			.sh_type = s->bytes ? SHT_PROGBITS : SHT_NULL,
			.sh_offset = at,
			.sh_size = s->true_size,
			.sh_addralign = 1,
		};
		if (s->packed &&
		    !inflate_into(s->packed, image + at, s->true_size, s->bytes, s->size))
			return -EBADMSG;
		if (s->bytes && !s->packed)
			memcpy(image + at, s->bytes, s->size);
		at += s->true_size;
	}
	return 0;
}

/* Write the head for a file like @of. */
static void put_head(const GElf_Ehdr *of, struct head *head)
{
	*head = (struct head){ .file = *of };
	head->file.e_phoff = head->file.e_phnum = 0;
	head->file.e_shoff = offsetof(struct head, sections);
	head->file.e_shentsize = sizeof(head->sections[0]);
	head->file.e_shnum = NR_NAMES + 1;
	head->file.e_shstrndx = 1;
	head->sections[1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct head, names),
		.sh_size = sizeof(head->names),
		.sh_addralign = 1,
	};
	memcpy(head->names, names, sizeof(names));
}

/*
 * Make an ELF file in memory that has the debug sections of @elf that are used, inflated, at most
 * @max bytes; .debug_line only with @lines. *out is malloc'ed. 0; -ENOENT: nothing to inflate, or
 * in another way; -EBADMSG, -EFBIG or -ENOMEM.
 */
static int dwarf_inflate(Elf *elf, bool lines, size_t max, uint8_t **out, size_t *size)
{
	const unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
									       : ELFDATA2MSB;
	struct section list[NR_NAMES] = { 0 };
	GElf_Ehdr ehdr;
	uint8_t *image;
	size_t sum;
	int rc;

	if (gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &ehdr) ||
	    ehdr.e_ident[EI_DATA] != native)
		return -ENOENT;
	rc = find_sections(elf, lines ? LINES : LINES + 1, list, max, &sum);
	if (rc)
		return rc;
	image = malloc(sizeof(struct head) + sum);
	if (!image)
		return -ENOMEM;
	put_head(&ehdr, (struct head *)image);
	rc = put_sections(list, image);
	if (rc) {
		free(image);
		return rc;
	}
	*out = image;
	*size = sizeof(struct head) + sum;
	return 0;
}

/* A file as libdw has it open. */
struct dwarf_opened {
	Dwarf *dw; /* NULL: closed */
	Elf *elf;
	uint8_t *image; /* read by @elf, if sections were compressed; else NULL */
};

static void dwarf_open_end(struct dwarf_opened *d)
{
	dwarf_end(d->dw);
	elf_end(d->elf);
	free(d->image);
	*d = (struct dwarf_opened){ 0 };
}

/*
 * Open a file with libdw; @lines: they are used. 0 or -EBADMSG. dwarf_open_end(): an alternate file
 * after the main one.
 */
static int dwarf_open_begin(struct dwarf_opened *out, int fd, bool lines)
{
	size_t size;
	int rc;

	*out = (struct dwarf_opened){ 0 };
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

/* Return the bytes of a section as libdw has them, decompressed; NULL when there are none. */
static const Elf_Data *dwarf_open_section(Dwarf *dw, const char *name)
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

/*
 * Names of functions without a linkage name in DWARF (lambdas, members, functions
 * of one file): with the namespaces, classes and functions around them,
 * "deep::Box::each", "run::{lambda}::operator()".
 *
 * One thread: the owner of the dwarf.
 *
 * The path from a unit down to a function, for the names along it.
 *
 * A DIE does not know its parent. All DIEs below one are between it and its next
 * sibling, so the path is found by offsets, without walking all of the unit.
 * Results are kept by DIE: functions are looked up many times.
 *
 * Runs on: a helper of the loader.
 */

#define DWARF_SCOPE_NAME_MAX  1024U /* bytes of one; the rest is cut */
#define BUCKETS		      1024U
#define DWARF_SCOPE_NAMES_MAX 65536U
#define DEPTH_MAX	      64U
#define HOPS_MAX	      16U
#define CLOCK_EVERY	      64U

struct known {
	struct known *next;
	const void *die; /* address of its bytes: unique */
	char name[];
};

struct dwarf_scopes {
	struct known *buckets[BUCKETS];
	uint32_t nr;
	uint64_t deadline_ns;
	uint32_t nr_steps;
};

static int dwarf_scopes_new(struct dwarf_scopes **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void dwarf_scopes_free(struct dwarf_scopes *s)
{
	for (uint32_t i = 0; s && i < BUCKETS; i++) {
		for (struct known *k = s->buckets[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(s);
}

static bool is_late(struct dwarf_scopes *s)
{
	return s->nr_steps++ % CLOCK_EVERY == 0 && time_thread_ns() > s->deadline_ns;
}

/* Return true if scopes of this unit are written with "::". */
static bool has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
	case 0x2b: /* C++17, C++20: newer than some dwarf.h */
	case 0x2e:
		return true;
	default:
		/* The units that dwz made have no language. */
		return dwarf_tag(unit) == DW_TAG_partial_unit;
	}
}

/* Go from an inlined function to its declaration in the source. */
static void to_declaration(Dwarf_Die *die)
{
	static const unsigned int links[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Attribute attr;
	Dwarf_Die next;

	for (uint32_t hops = 0; hops < HOPS_MAX; hops++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(links) &&
		       (!dwarf_attr(die, links[i], &attr) || !dwarf_formref_die(&attr, &next)))
			i++;
		if (i == ARRAY_SIZE(links))
			return;
		*die = next;
	}
}

/* Find the child of @die with offset @to; false when there is none. */
static bool step_down(struct dwarf_scopes *s, Dwarf_Die *die, Dwarf_Off to)
{
	Dwarf_Die child, next;

	if (dwarf_child(die, &child))
		return false;
	while (dwarf_dieoffset(&child) <= to) {
		*die = child;
		if (is_late(s))
			return false;
		if (dwarf_siblingof(&child, &next) || dwarf_dieoffset(&next) > to)
			return true;
		child = next;
	}
	return false;
}

/* Return the name of a scope around @own; NULL: not shown in names. */
static const char *scope_name(Dwarf_Die *die, const char *own)
{
	const char *name = dwarf_diename(die);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return name ? name : strcmp(own, "operator()") ? "{unnamed type}" : "{lambda}";
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

/* Write the names on the path to @die, then its name. */
static void compose(struct dwarf_scopes *s, Dwarf_Die *die, const char *own, char *buf, size_t size)
{
	const Dwarf_Off to = dwarf_dieoffset(die);
	Dwarf_Die at;
	size_t used = 0;

	if (dwarf_diecu(die, &at, NULL, NULL) && has_scopes(&at)) {
		for (uint32_t depth = 0; depth < DEPTH_MAX && step_down(s, &at, to); depth++) {
			const char *name = dwarf_dieoffset(&at) == to ? NULL : scope_name(&at, own);

			if (dwarf_dieoffset(&at) == to)
				break;
			if (name && used < size)
				used += (size_t)snprintf(buf + used, size - used, "%s::", name);
		}
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", own);
}

/*
 * Return the name of the function @die, an inlined one's or its origin's, as in
 * the source; NULL when it has none. At most until @deadline_ns of this thread's
 * CPU time, then without its scopes. Valid as long as @s.
 */
static const char *dwarf_scopes_name(struct dwarf_scopes *s, Dwarf_Die *die, uint64_t deadline_ns)
{
	char buf[DWARF_SCOPE_NAME_MAX];
	Dwarf_Die declaration = *die;
	struct known **bucket, *k;
	const char *own;

	to_declaration(&declaration);
	bucket = &s->buckets[hash_u64((uintptr_t)declaration.addr) % BUCKETS];
	for (k = *bucket; k; k = k->next) {
		if (k->die == declaration.addr)
			return k->name;
	}
	/* The inlined one's name has its template arguments; a declaration may lack them. */
	own = dwarf_diename(die);
	if (!own || !*own || s->nr == DWARF_SCOPE_NAMES_MAX)
		return own;
	s->deadline_ns = deadline_ns;
	compose(s, &declaration, own, buf, sizeof(buf));
	k = malloc(sizeof(*k) + strlen(buf) + 1);
	if (!k)
		return own;
	k->die = declaration.addr;
	strcpy(k->name, buf);
	k->next = *bucket;
	*bucket = k;
	s->nr++;
	return k->name;
}

#define DWARF_QUERY_NS 200000000ULL  /* CPU time of one request */
#define DWARF_OPEN_NS  2000000000ULL /* CPU time of the index of units */
#define UNITS_MAX      (1U << 20)
#define RANGES_MAX     (4U << 20)
#define LINE_SIZE_MAX  (4U << 20) /* of one unit's line program: a byte can be a row */
#define LINES_SUM_MAX  (8U << 20) /* of the units read since libdw opened the file */
/* Of the files that are not in use: some 16 bytes of memory each. */
#define LINES_IDLE_MAX (4U << 20)
#define LOOK_BACK      16U /* ranges that a look-up steps over */

struct range {
	uint64_t start, end;
	uint64_t what; /* unit: its index; function: offset of its DIE */
};

struct ranges {
	struct range *list;
	uint32_t nr, max;
};

/* A function that is inlined somewhere, and has no linkage name. */
struct abstract {
	uint64_t hash; /* of its name and place in the source; 0: not known yet */
	Dwarf_Off die;
};

struct unit {
	Dwarf_Off die;
	struct ranges functions;
	struct abstract *abstracts; /* hashes known: sorted by them */
	uint32_t nr_abstracts, max_abstracts;
	bool indexed, hashed;
	uint32_t lines;	 /* bytes of its line program; 0: none, or too large */
	uint32_t opened; /* dwarf->nr_opened when libdw read it */
};

struct dwarf {
	struct dwarf_opened main, alt;
	int fd, alt_fd;
	bool no_lines;
	bool split;	    /* some units have their functions in files that are not read */
	uint32_t nr_opened; /* libdw never frees lines: after LINES_SUM_MAX it opens the file again
			     */
	uint32_t lines_sum;
	uint64_t bias;
	struct unit *units;
	uint32_t nr_units, max_units;
	struct ranges ranges;
	struct dwarf_scopes *scopes;
	uint64_t deadline_ns; /* of this thread's CPU time */
	uint32_t nr_dies;     /* used; the clock is read now and then */
};

static bool dwarf_is_late(struct dwarf *d)
{
	return d->nr_dies++ % 64 == 0 && time_thread_ns() > d->deadline_ns;
}

static int ranges_add(struct ranges *r, uint64_t start, uint64_t end, uint64_t what)
{
	assert(r->nr <= r->max);
	if (start >= end)
		return 0;
	if (r->nr >= RANGES_MAX)
		return -EFBIG;
	if (!array_reserve(&r->list, &r->max, r->nr + 1ull))
		return -ENOMEM;
	r->list[r->nr++] = (struct range){ start, end, what };
	return 0;
}

/* Of ranges, the later start is last, then the smaller one. */
static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end);
}

/* Return the innermost range with @addr, or NULL. */
static const struct range *ranges_find(const struct ranges *r, uint64_t addr)
{
	uint32_t lo = search_split(r->nr, i, r->list[i].start <= addr);

	for (uint32_t i = lo; i > 0 && lo - i < LOOK_BACK; i--) {
		if (addr < r->list[i - 1].end)
			return &r->list[i - 1];
	}
	return NULL;
}

/* Add all ranges of @die. */
static int add_die_ranges(struct dwarf *d, struct ranges *r, Dwarf_Die *die, uint64_t what)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		/* 0: left out by the linker. */
		int rc = start ? ranges_add(r, start, end, what) : 0;

		if (rc)
			return rc;
		if (dwarf_is_late(d))
			return -ETIME;
	}
	return 0;
}

/* A unit with its functions in a separate file (split DWARF) still has its lines here. */
static bool is_unit(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_compile_unit || dwarf_tag(die) == DW_TAG_skeleton_unit;
}

/* Return the bytes of the line program of @die, 0 if too large. @lines: the section. */
static uint32_t size_of_lines(Dwarf_Die *die, const Elf_Data *lines)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	uint64_t size = 0;
	const uint8_t *at;

	if (!lines || !lines->d_buf || !dwarf_attr(die, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &offset) || lines->d_size < 12 || offset > lines->d_size - 12)
		return 0;
	at = (const uint8_t *)lines->d_buf + offset;
	memcpy(&size, at, 4);
	if (size == 0xffffffff)
		memcpy(&size, at + 4, 8);
	return size <= LINE_SIZE_MAX ? (uint32_t)MAX(size, 1U) : 0;
}

static int add_unit(struct dwarf *d, Dwarf_Die *die, const Elf_Data *lines)
{
	if (!is_unit(die))
		return 0;
	if (d->nr_units >= UNITS_MAX)
		return -EFBIG;
	if (!array_reserve(&d->units, &d->max_units, d->nr_units + 1ull))
		return -ENOMEM;
	d->split |= dwarf_hasattr(die, DW_AT_dwo_name) || dwarf_hasattr(die, DW_AT_GNU_dwo_name);
	d->units[d->nr_units] = (struct unit){
		.die = dwarf_dieoffset(die),
		.lines = size_of_lines(die, lines),
	};
	return add_die_ranges(d, &d->ranges, die, d->nr_units++);
}

/* Index the units by address. */
static int index_units(struct dwarf *d)
{
	const Elf_Data *lines = d->no_lines ? NULL : dwarf_open_section(d->main.dw, ".debug_line");
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int rc = 0;

	d->deadline_ns = time_thread_ns() + DWARF_OPEN_NS;
	/* The subdie is not read: that would open split files. */
	while (!rc && !dwarf_get_units(d->main.dw, cu, &cu, NULL, NULL, &die, NULL)) {
		rc = add_unit(d, &die, lines);
		if (!rc && dwarf_is_late(d))
			rc = -ETIME;
	}
	if (d->ranges.nr)
		qsort(d->ranges.list, d->ranges.nr, sizeof(*d->ranges.list), compare_ranges);
	return rc ? rc : d->ranges.nr ? 0 : -ENODATA;
}

static int begin_scopes(struct dwarf *d)
{
	d->nr_opened++;
	d->lines_sum = 0;
	return dwarf_scopes_new(&d->scopes);
}

/* Have libdw open the files. 0 or -errno. */
static int begin(struct dwarf *d)
{
	int rc = begin_scopes(d);

	if (rc)
		return rc;
	rc = dwarf_open_begin(&d->main, d->fd, !d->no_lines);
	if (rc || d->alt_fd < 0)
		return rc;
	rc = dwarf_open_begin(&d->alt, d->alt_fd, !d->no_lines);
	if (!rc)
		dwarf_setalt(d->main.dw, d->alt.dw);
	return rc;
}

/* Free all that libdw has. */
static void end(struct dwarf *d)
{
	dwarf_scopes_free(d->scopes);
	dwarf_open_end(&d->main);
	dwarf_open_end(&d->alt);
	d->scopes = NULL;
}

/* Free what libdw read of the files; sections stay inflated. False: look-ups find nothing. */
static bool forget(struct dwarf *d)
{
	dwarf_scopes_free(d->scopes);
	d->scopes = NULL;
	dwarf_end(d->main.dw);
	dwarf_end(d->alt.dw);
	d->main.dw = dwarf_begin_elf(d->main.elf, DWARF_C_READ, NULL);
	d->alt.dw = d->alt.elf ? dwarf_begin_elf(d->alt.elf, DWARF_C_READ, NULL) : NULL;
	if (!begin_scopes(d) && d->main.dw && !d->alt.dw == !d->alt.elf) {
		if (d->alt.dw)
			dwarf_setalt(d->main.dw, d->alt.dw);
		return true;
	}
	dwarf_end(d->main.dw);
	dwarf_end(d->alt.dw);
	d->main.dw = d->alt.dw = NULL;
	return false;
}

/* Before a look-up in @u: bound the lines that libdw keeps. False: there are none to read. */
static bool bound_lines(struct dwarf *d, struct unit *u)
{
	if (u->opened == d->nr_opened || !u->lines)
		return u->lines;
	if (d->lines_sum && d->lines_sum + u->lines > LINES_SUM_MAX && !forget(d))
		return false;
	d->lines_sum += u->lines;
	u->opened = d->nr_opened;
	return true;
}

int dwarf_open_fds(struct dwarf **out, const struct elffile *f, uint64_t bias, int alt_fd,
		   bool no_lines)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	int rc;

	assert(f->fd >= 0);
	if (!d)
		return -ENOMEM;
	d->fd = f->fd;
	d->alt_fd = alt_fd;
	d->no_lines = no_lines;
	d->bias = bias;
	rc = begin(d);
	if (!rc)
		rc = index_units(d);
	if (rc) {
		dwarf_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void dwarf_close(struct dwarf *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->nr_units; i++) {
		free(d->units[i].functions.list);
		free(d->units[i].abstracts);
	}
	free(d->units);
	free(d->ranges.list);
	end(d);
	free(d);
}

/* Return whether functions of some units are in split files (.dwo), which are not read. */
static bool dwarf_is_split(const struct dwarf *d)
{
	return d->split;
}

/* Return true if functions may be inside of such a DIE. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

/* Note @die of @u, if inlined functions refer to it. 0 or -ENOMEM. */
static int note_abstract(struct unit *u, Dwarf_Die *die)
{
	if (!dwarf_hasattr(die, DW_AT_inline))
		return 0;
	if (!array_reserve(&u->abstracts, &u->max_abstracts, u->nr_abstracts + 1ull))
		return -ENOMEM;
	u->abstracts[u->nr_abstracts++] = (struct abstract){ .die = dwarf_dieoffset(die) };
	return 0;
}

/* Index the functions below @root, with an explicit stack of limited depth. */
static int index_functions(struct dwarf *d, struct unit *u, Dwarf_Die *root)
{
	Dwarf_Die stack[DEPTH_MAX];
	uint32_t depth = 0;
	int rc = 0, more = dwarf_child(root, &stack[0]);

	while (!rc) {
		Dwarf_Die *die = &stack[depth];

		if (dwarf_is_late(d)) {
			rc = -ETIME;
			break;
		}
		if (more) { /* no further sibling: up */
			if (!depth)
				break;
			more = dwarf_siblingof(&stack[depth - 1], &stack[depth - 1]);
			depth--;
			continue;
		}
		if (dwarf_tag(die) == DW_TAG_subprogram) {
			rc = add_die_ranges(d, &u->functions, die, dwarf_dieoffset(die));
			rc = rc ? rc : note_abstract(u, die);
		}
		if (depth + 1 < DEPTH_MAX && may_hold_functions(dwarf_tag(die)) &&
		    !dwarf_child(die, &stack[depth + 1]))
			depth++;
		else
			more = dwarf_siblingof(die, die);
	}
	if (u->functions.nr)
		qsort(u->functions.list, u->functions.nr, sizeof(*u->functions.list),
		      compare_ranges);
	/* A walk that ran out of time is not tried again. */
	u->indexed = true;
	return rc;
}

/* Step into the child of @die that covers @addr; false when there is none. */
static bool descend(struct dwarf *d, Dwarf_Die *die, uint64_t addr)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&child, addr) == 1) {
			*die = child;
			return true;
		}
	} while (!dwarf_is_late(d) && !dwarf_siblingof(&child, &child));
	return false;
}

/* Find the inlined functions at @addr of the function @die, outermost first. */
static uint32_t find_inlined(struct dwarf *d, Dwarf_Die die, uint64_t addr,
			     Dwarf_Die out[DWARF_FRAMES_MAX])
{
	uint32_t nr = 0;

	for (uint32_t depth = 0; depth < DEPTH_MAX && nr < DWARF_FRAMES_MAX - 1; depth++) {
		if (!descend(d, &die, addr))
			break;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			out[nr++] = die;
	}
	return nr;
}

/* Return the linkage name, which is unique; NULL: there is none. */
static const char *linkage_name(Dwarf_Die *die)
{
	static const unsigned int linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attr;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(linkage); i++) {
		/* Follows abstract origins, at most sixteen. */
		if (dwarf_attr_integrate(die, linkage[i], &attr) &&
		    (name = dwarf_formstring(&attr)) && *name)
			return name;
	}
	return NULL;
}

static const char *name_of(struct dwarf *d, Dwarf_Die *die)
{
	const char *name = linkage_name(die);

	if (!name)
		name = dwarf_scopes_name(d->scopes, die, d->deadline_ns);
	return name && *name ? name : "[inlined]";
}

static uint64_t number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return value;
}

/* The same of the declaration that @die refers to. */
static uint64_t declared_number(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return value;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3ULL;
	return hash;
}

/* Hash a path as if "." and ".." were not in it: units have different ways to one header. */
static uint64_t hash_path(uint64_t hash, const char *path)
{
	const char *parts[64];
	size_t sizes[64], nr = 0;

	for (size_t size; *path; path += size + (path[size] == '/')) {
		size = strcspn(path, "/");
		if (!size || (size == 1 && path[0] == '.'))
			continue;
		if (size == 2 && !memcmp(path, "..", 2) && nr) {
			nr--;
		} else if (nr < ARRAY_SIZE(parts)) {
			parts[nr] = path;
			sizes[nr++] = size;
		}
	}
	for (size_t i = 0; i < nr; i++)
		hash = hash_bytes(hash_bytes(hash, "/", 1), parts[i], sizes[i]);
	return hash;
}

/* Hash the name of the function @die, and its place in the source by numbers. */
static uint64_t hash_declaration(Dwarf_Die *die)
{
	static const unsigned int numbers[] = { DW_AT_decl_file, DW_AT_decl_line,
						DW_AT_decl_column };
	const char *name = dwarf_diename(die);
	uint64_t hash = hash_bytes(1, name ? name : "", name ? strlen(name) : 0);

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		hash = hash_u64(hash + declared_number(die, numbers[i]));
	return hash ? hash : 1;
}

static int compare_abstracts(const void *a, const void *b)
{
	const struct abstract *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

static void hash_abstracts(struct dwarf *d, struct unit *u)
{
	for (uint32_t i = 0; i < u->nr_abstracts && !dwarf_is_late(d); i++) {
		Dwarf_Die die;

		if (dwarf_offdie(d->main.dw, u->abstracts[i].die, &die) && !linkage_name(&die))
			u->abstracts[i].hash = hash_declaration(&die);
	}
	if (u->nr_abstracts)
		qsort(u->abstracts, u->nr_abstracts, sizeof(*u->abstracts), compare_abstracts);
	u->hashed = true;
}

/*
 * Return the offset of the function @origin if another one of @u has its name and place: methods of
 * two classes where DWARF has lines only, templates for two lambdas. Else 0.
 */
static Dwarf_Off twin_of(struct dwarf *d, struct unit *u, Dwarf_Die *origin)
{
	uint64_t hash = hash_declaration(origin);
	uint32_t at;

	if (!u->hashed)
		hash_abstracts(d, u);
	at = search_split(u->nr_abstracts, i, u->abstracts[i].hash < hash);
	return at + 1 < u->nr_abstracts && u->abstracts[at + 1].hash == hash
		       ? dwarf_dieoffset(origin)
		       : 0;
}

/* Return the file of the declaration @die; NULL: none, or it costs too much to read. */
static const char *declared_file(struct dwarf *d, const struct unit *u, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die unit;

	/* Of this unit: its lines are bounded. */
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) ||
	    !dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_dieoffset(&unit) != u->die)
		return NULL;
	return dwarf_decl_file(die);
}

/*
 * Return the identity of the function @die, inlined in @u, beside its name: a hash of the place of
 * its declaration; without that the file @at of its code. 0: its name is enough.
 */
static uint64_t identity_of(struct dwarf *d, struct unit *u, Dwarf_Die *die, bool lines,
			    const struct dwarf_frame *at)
{
	const char *file = lines ? declared_file(d, u, die) : NULL;
	char path[TEXT_MAX];
	Dwarf_Attribute attr;
	Dwarf_Die origin = *die;
	uint64_t hash;

	if (linkage_name(die))
		return 0;
	if (dwarf_attr(die, DW_AT_abstract_origin, &attr))
		dwarf_formref_die(&attr, &origin);
	hash = hash_u64(declared_number(die, DW_AT_decl_line));
	hash = hash_u64(hash + declared_number(die, DW_AT_decl_column));
	hash += twin_of(d, u, &origin);
	if (!file)
		file = at->file;
	if (file) {
		dwarf_path(path, sizeof(path), at->dir, file);
		hash = hash_path(hash, path);
	}
	return hash ? hash : 1;
}

/* Return the folder that @unit was compiled in; NULL: unknown. */
static const char *dir_of(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;

	return dwarf_attr(unit, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
}

void dwarf_path(char *buf, size_t size, const char *dir, const char *file)
{
	bool below = file[0] != '/' && dir && *dir;

	snprintf(buf, size, "%s%s%s", below ? dir : "", below ? "/" : "", file);
}

/* Get the file and line of the call of @inlined. */
static void put_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct dwarf_frame *out)
{
	uint64_t file = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t nr;

	out->line = (uint32_t)number_of(inlined, DW_AT_call_line);
	if (!dwarf_getsrcfiles(unit, &files, &nr) && file < nr)
		out->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void put_line(Dwarf_Die *unit, uint64_t addr, struct dwarf_frame *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	int nr = 0;

	if (!line || dwarf_lineno(line, &nr))
		return;
	out->line = (uint32_t)MAX(nr, 0);
	out->file = dwarf_linesrc(line, NULL, NULL);
}

/* Return the first line of @function: of its declaration, else of its entry, as Go has it. */
static uint32_t first_line(Dwarf_Die *unit, Dwarf_Die *function, bool lines)
{
	uint32_t declared = (uint32_t)declared_number(function, DW_AT_decl_line);
	struct dwarf_frame entry = { .line = 0 };
	Dwarf_Addr at;

	if (!declared && lines && !dwarf_entrypc(function, &at))
		put_line(unit, at, &entry);
	return declared ? declared : entry.line;
}

int dwarf_chain(struct dwarf *d, uint64_t vaddr, struct dwarf_frame out[DWARF_FRAMES_MAX])
{
	const struct range *range = ranges_find(&d->ranges, vaddr - d->bias);
	Dwarf_Die inlined[DWARF_FRAMES_MAX], function, root;
	struct unit *u = range ? &d->units[range->what] : NULL;
	uint64_t addr = vaddr - d->bias;
	bool lines = u && bound_lines(d, u);
	uint32_t nr = 0;

	if (!u || !dwarf_offdie(d->main.dw, u->die, &root))
		return 0;
	d->deadline_ns = time_thread_ns() + DWARF_QUERY_NS;
	if (!u->indexed && index_functions(d, u, &root) == -ETIME)
		return -ETIME;
	range = ranges_find(&u->functions, addr);
	if (range && !dwarf_offdie(d->main.dw, range->what, &function))
		range = NULL;
	if (range)
		nr = find_inlined(d, function, addr, inlined);
	memset(out, 0, (nr + 1) * sizeof(*out));
	for (uint32_t i = 0; i < nr; i++) { /* inside out */
		out[i].name = name_of(d, &inlined[nr - 1 - i]);
		if (lines)
			put_call(&root, &inlined[nr - 1 - i], &out[i + 1]);
	}
	if (lines)
		put_line(&root, addr, &out[0]);
	for (uint32_t i = 0; i <= nr; i++)
		out[i].dir = dir_of(&root);
	for (uint32_t i = 0; i < nr; i++) {
		out[i].identity = identity_of(d, u, &inlined[nr - 1 - i], lines, &out[i]);
		out[i].start = (uint32_t)declared_number(&inlined[nr - 1 - i], DW_AT_decl_line);
	}
	if (range)
		out[nr].start = first_line(&root, &function, lines);
	if (time_thread_ns() > d->deadline_ns)
		return -ETIME;
	return (int)nr + 1;
}

/* Return the last row at or before @addr. */
static size_t first_row(Dwarf_Lines *rows, size_t nr, uint64_t addr)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		Dwarf_Addr at = 0;

		dwarf_lineaddr(dwarf_onesrcline(rows, middle), &at);
		if (at <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

static int dwarf_lines(struct dwarf *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn, void *ctx)
{
	uint64_t addr = vaddr - d->bias;
	const struct range *range = ranges_find(&d->ranges, addr);
	struct unit *u = range ? &d->units[range->what] : NULL;
	struct dwarf_frame frame = { .name = NULL };
	Dwarf_Lines *rows;
	Dwarf_Die root;
	size_t nr;

	d->deadline_ns = time_thread_ns() + DWARF_QUERY_NS;
	if (!u || !bound_lines(d, u) || !dwarf_offdie(d->main.dw, u->die, &root) ||
	    dwarf_getsrclines(&root, &rows, &nr))
		return 0;
	frame.dir = dir_of(&root);
	for (size_t i = first_row(rows, nr, addr); i < nr; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i);
		Dwarf_Addr at = 0;
		bool end = false;
		int line = 0;

		if (dwarf_lineaddr(row, &at) || at >= addr + size)
			break;
		dwarf_lineendsequence(row, &end);
		dwarf_lineno(row, &line);
		frame.line = end ? 0 : (uint32_t)MAX(line, 0);
		frame.file = frame.line ? dwarf_linesrc(row, NULL, NULL) : NULL;
		fn(ctx, at + d->bias, &frame);
		if (dwarf_is_late(d))
			return -ETIME;
	}
	return 0;
}

/*
 * The worker's side: files that are open, and answers.
 */

#define FILES_MAX 24U
#define SLICE_NS  5000000ULL
#define MEMORY	  (2ULL << 30)

struct open_file {
	struct dwarf *dwarf; /* NULL: free */
	uint64_t used;	     /* number of its last request */
	struct elffile file;
	int alt_fd;
};

static struct open_file files[FILES_MAX];

/* Texts of an answer in the making: each is there once, if it is the last one of its kind. */
struct texts {
	struct sandbox_reply bytes;
	const char *last[3];
	uint32_t at[3];
};

static void close_file(struct open_file *f)
{
	assert(f->dwarf);
	dwarf_close(f->dwarf);
	if (f->file.fd >= 0)
		close(f->file.fd);
	if (f->alt_fd >= 0)
		close(f->alt_fd);
	elffile_close(&f->file);
	f->dwarf = NULL;
	/* Megabytes in small pieces: without this the process keeps them. */
	malloc_trim(0);
}

static int serve_open(struct sandbox_call *c, const struct dwarf_wire_request *r)
{
	struct dwarf_wire_opened opened = { .handle = 0 };
	struct open_file *f = files;
	int rc;

	while (opened.handle < FILES_MAX && files[opened.handle].dwarf)
		opened.handle++;
	if (opened.handle == FILES_MAX || c->fds[0] < 0 || r->alt != (c->fds[1] >= 0))
		return -ENFILE;
	f += opened.handle;
	rc = elffile_open(&f->file, c->fds[0], NULL, r->size, NULL);
	if (rc)
		return rc;
	rc = dwarf_open_fds(&f->dwarf, &f->file, r->bias, c->fds[1], r->no_lines);
	if (rc) {
		elffile_close(&f->file);
		f->dwarf = NULL;
		return rc;
	}
	opened.split = dwarf_is_split(f->dwarf);
	f->alt_fd = c->fds[1];
	c->fds[0] = c->fds[1] = -1;
	sandbox_put(&c->reply, &opened, sizeof(opened));
	return 0;
}

static uint32_t put_text(struct texts *t, unsigned int kind, const char *text)
{
	assert(kind < 3);
	if (!text)
		return DWARF_WIRE_NONE;
	if (t->last[kind] != text)
		t->at[kind] = (uint32_t)sandbox_put(&t->bytes, text, strlen(text) + 1);
	t->last[kind] = text;
	return t->at[kind];
}

static void put_frame(struct sandbox_reply *to, struct texts *t, const struct dwarf_frame *f)
{
	const struct dwarf_wire_frame w = {
		.name = put_text(t, 0, f->name),
		.file = put_text(t, 1, f->file),
		.dir = put_text(t, 2, f->dir),
		.line = f->line,
		.start = f->start,
		.identity = { (uint32_t)f->identity, (uint32_t)(f->identity >> 32) },
	};

	sandbox_put(to, &w, sizeof(w));
}

/* Join head, @lengths, @frames and texts to the reply, and free them. */
static int finish(struct sandbox_call *c, uint32_t nr, struct sandbox_reply *lengths,
		  struct sandbox_reply *frames, struct texts *t)
{
	const struct dwarf_wire_head head = { .nr = nr, .texts_size = (uint32_t)t->bytes.size };

	sandbox_put(&c->reply, &head, sizeof(head));
	sandbox_put(&c->reply, lengths->bytes, lengths->size);
	sandbox_put(&c->reply, frames->bytes, frames->size);
	sandbox_put(&c->reply, t->bytes.bytes, t->bytes.size);
	c->reply.full |= lengths->full || frames->full || t->bytes.full;
	free(lengths->bytes);
	free(frames->bytes);
	free(t->bytes.bytes);
	return 0;
}

static int serve_chains(struct sandbox_call *c, struct dwarf *d, const struct dwarf_wire_request *r)
{
	struct sandbox_reply lengths = { 0 }, frames = { 0 };
	uint64_t end_ns = time_now_ns() + SLICE_NS;
	struct texts texts = { 0 };
	uint32_t done = 0;

	while (done < r->nr && (!done || time_now_ns() < end_ns)) {
		struct dwarf_frame chain[DWARF_FRAMES_MAX];
		int32_t nr = dwarf_chain(d, r->vaddrs[done++], chain);

		sandbox_put(&lengths, &nr, sizeof(nr));
		for (int32_t i = 0; i < nr; i++)
			put_frame(&frames, &texts, &chain[i]);
		/* The next chain may free the texts: do not compare with them. */
		memset(texts.last, 0, sizeof(texts.last));
	}
	return finish(c, done, &lengths, &frames, &texts);
}

struct rows {
	struct sandbox_reply frames;
	struct texts texts;
	uint32_t nr;
};

static void put_row(void *ctx, uint64_t vaddr, const struct dwarf_frame *at)
{
	struct rows *r = ctx;

	if (r->nr == DWARF_SANDBOX_ROWS)
		return;
	r->nr++;
	sandbox_put(&r->frames, &vaddr, sizeof(vaddr));
	put_frame(&r->frames, &r->texts, at);
}

static int serve_lines(struct sandbox_call *c, struct dwarf *d, const struct dwarf_wire_request *r)
{
	struct sandbox_reply none = { 0 };
	struct rows rows = { .nr = 0 };
	int rc = dwarf_lines(d, r->vaddrs[0], r->size, put_row, &rows);

	finish(c, rows.nr, &none, &rows.frames, &rows.texts);
	return rc;
}

/* Free what libdw keeps of other files than @used while it is too much, the oldest first. */
static void bound_read(const struct open_file *used)
{
	struct open_file *oldest;
	uint32_t sum, nr = 0;

	do {
		oldest = NULL;
		sum = 0;
		for (struct open_file *f = files; f < files + FILES_MAX; f++) {
			if (!f->dwarf || f == used || !f->dwarf->lines_sum)
				continue;
			sum += f->dwarf->lines_sum;
			if (!oldest || f->used < oldest->used)
				oldest = f;
		}
		if (sum > LINES_IDLE_MAX) {
			forget(oldest->dwarf);
			nr++;
		}
	} while (sum > LINES_IDLE_MAX);
	if (nr)
		malloc_trim(0);
}

/* A look-up in an open file. */
static int look_up(struct sandbox_call *c, struct open_file *f, const struct dwarf_wire_request *r)
{
	static uint64_t nr_requests;
	int rc = r->kind == DWARF_WIRE_CHAINS ? serve_chains(c, f->dwarf, r)
					      : serve_lines(c, f->dwarf, r);

	f->used = ++nr_requests;
	bound_read(f);
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct dwarf_wire_request r;
	struct open_file *f;

	if (c->size != sizeof(r))
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	if (r.kind == DWARF_WIRE_OPEN)
		return serve_open(c, &r);
	f = r.handle < FILES_MAX ? &files[r.handle] : NULL;
	if (!f || !f->dwarf || r.nr > DWARF_SANDBOX_PLACES)
		return -EINVAL;
	switch (r.kind) {
	case DWARF_WIRE_CLOSE:
		close_file(f);
		return 0;
	case DWARF_WIRE_CHAINS:
	case DWARF_WIRE_LINES:
		return look_up(c, f, &r);
	default:
		return -EINVAL;
	}
}

const struct sandbox_reader dwarf_sandbox_reader = {
	.kind = SANDBOX_DWARF,
	.name = "proftop-dwarf",
	.prepare = dwarf_inflate_prepare,
	.serve = serve,
	.memory_max = MEMORY,
};

const struct sandbox_reader dwarf_sandbox_others = {
	.kind = SANDBOX_DWARF_OTHERS,
	.name = "proftop-dwarf-o",
	.prepare = dwarf_inflate_prepare,
	.serve = serve,
	.memory_max = MEMORY,
};
