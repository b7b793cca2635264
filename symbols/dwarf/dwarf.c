// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined functions of one object, by libdw: sections inflated, an index of units, split
 * files, the walk down to an address; the files that a worker has open, and its answers.
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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/base/base.h"
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

/* Load libdeflate, which takes two fifths of the time of zlib, which libdw uses: the worker cannot
 * open it. */
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

static const char section_names[][20] = {
	".shstrtab",	   ".debug_line",    ".debug_info", ".debug_types",
	".debug_abbrev",   ".debug_aranges", ".debug_str",  ".debug_line_str",
	".debug_rnglists", ".debug_ranges",  ".debug_addr", ".debug_str_offsets",
};

/* ELFCOMPRESS_ZSTD, newer than some elf.h. */
#define COMPRESSED_BY_ZSTD 2U

#define NR_NAMES ARRAY_SIZE(section_names)

/* Some of them, in this order. */
enum {
	LINES = 1,
	INFO = 2,
	ABBREV = 4,
	STR = 6,
	RNGLISTS = 8,
	RANGES = 9,
	ADDR = 10,
	OFFSETS = 11
};

/* A section of the new file; as it is in the old one. */
struct section {
	const uint8_t *bytes; /* NULL: none */
	size_t size, true_size;
	enum packing packed;
	bool mapped;	 /* not copied: pages of a file, from @offset on */
	uint64_t offset; /* in that file */
};

struct head {
	Elf64_Ehdr file;
	Elf64_Shdr sections[NR_NAMES + 1];
	char names[NR_NAMES][sizeof(section_names[0])];
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

/* Get section @scn with its header @shdr; @old: .zdebug_*. 0 or -errno. */
static int get_section(Elf_Scn *scn, const GElf_Shdr *shdr, bool old, struct section *out)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t skip = old ? ELFDWARF_OLD_HEAD : sizeof(Elf64_Chdr);

	if (!data || !data->d_buf || shdr->sh_type == SHT_NOBITS)
		return 0;
	*out = (struct section){ .bytes = data->d_buf, .size = data->d_size };
	out->true_size = out->size;
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

/* Find the sections that are used, from name @first on; *sum: of their bytes, at most @max.
 * -ENOENT: none is compressed. */
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

			if (list[i].bytes || !*name || !is_section(name, section_names[i], &old))
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

/* Map @s of @fd behind @at of the image. Return the place in the image; 0: it is impossible. */
static size_t map_section(const struct section *s, uint8_t *image, size_t at, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = s->offset % page;

	at = (at + page - 1) / page * page;
	return mmap(image + at, before + s->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		    (off_t)(s->offset - before)) == MAP_FAILED
		       ? 0
		       : at + before;
}

/*
 * Write the sections behind the head, and their headers. @fd: of the mapped ones, which take two
 * pages more. 0, -EBADMSG or -ENOMEM.
 */
static int put_sections(const struct section list[NR_NAMES], uint8_t *image, int fd)
{
	struct head *head = (struct head *)image;
	size_t at = sizeof(*head);

	for (size_t i = 1; i < NR_NAMES; i++) {
		const struct section *s = &list[i];

		if (s->mapped && !(at = map_section(s, image, at, fd)))
			return -ENOMEM;
		head->sections[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)(i * sizeof(section_names[0])),
			.sh_type = s->bytes || s->mapped ? SHT_PROGBITS : SHT_NULL,
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
		if (s->mapped) /* the rest of its last page is not writable */
			at += (size_t)sysconf(_SC_PAGESIZE) - 1 -
			      (at - 1) % (size_t)sysconf(_SC_PAGESIZE);
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
	memcpy(head->names, section_names, sizeof(section_names));
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
	rc = put_sections(list, image, -1);
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
	uint8_t *image;	 /* read by @elf, if sections were compressed; else NULL */
	size_t mapped;	 /* bytes of @image, if it was mapped */
	size_t inflated; /* if it was not */
};

static size_t inflated; /* bytes of all files */

static void dwarf_open_end(struct dwarf_opened *d)
{
	dwarf_end(d->dw);
	elf_end(d->elf);
	if (d->mapped)
		munmap(d->image, d->mapped);
	else
		free(d->image);
	inflated -= d->inflated;
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
		inflated += out->inflated = size;
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

#define DEPTH_MAX      64U
#define DWARF_QUERY_NS 200000000ULL  /* CPU time of one request */
#define DWARF_OPEN_NS  2000000000ULL /* CPU time of the index of units */
#define UNITS_MAX      (1U << 20)
#define RANGES_MAX     (4U << 20)
#define LINE_SIZE_MAX  (4U << 20)   /* of one unit's line program: a byte can be a row */
#define LINES_SUM_MAX  (256U << 10) /* of the units read since libdw opened the file */
#define HEAP_MAX       (8U << 20)   /* of libdw */
#define ROWS_MAX       (8U << 20)   /* copied lines of all files */
#define LARGE_FILE     (1U << 20)
#define LOOK_BACK      16U	   /* ranges that a look-up steps over */
#define SPLITS_MAX     128U	   /* split units that are open at a time */
#define SPLITS_SUM_MAX (64U << 20) /* bytes of them */

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

/* Where the functions of a unit are: beside its lines, or in a split file. */
enum split_state { SPLIT_NONE, SPLIT_WANTED, SPLIT_READ, SPLIT_MISSING };

/* A split unit as libdw has it open. */
struct split {
	struct dwarf_opened opened;
	struct dwarf_scopes *scopes;
	Dwarf_Off die;
	uint64_t used; /* dwarf->nr_uses of the last look-up */
};

struct unit {
	Dwarf_Off die;
	enum split_state state;
	struct split split;		 /* SPLIT_READ */
	uint64_t addr_base, ranges_base; /* of a skeleton: its part of sections of the main file */
	struct ranges functions;
	struct abstract *abstracts; /* hashes known: sorted by them */
	uint32_t nr_abstracts, max_abstracts;
	bool indexed, hashed;
	uint32_t lines;		 /* bytes of its line program; 0: none, or too large */
	struct dwarf_rows *rows; /* NULL: not read */
	uint32_t opened;	 /* dwarf->nr_opened when libdw read it */
};

struct dwarf {
	struct dwarf_opened main, alt;
	int fd, alt_fd;
	bool no_lines;
	bool damaged;	    /* lines or names */
	bool split;	    /* some units have their functions in split files */
	uint32_t wanted;    /* after -EINPROGRESS: the unit of which the split file is wanted */
	uint32_t nr_splits; /* open ones */
	size_t splits_sum;  /* their bytes */
	uint64_t nr_uses;
	struct elffile package; /* of split units; if @package_index */
	uint8_t *package_index;
	size_t package_index_size;
	uint32_t nr_opened; /* libdw never frees lines: after LINES_SUM_MAX it opens again */
	uint32_t lines_sum;
	uint64_t bias;
	struct unit *units;
	uint32_t nr_units, max_units;
	struct ranges ranges;
	struct dwarf_scopes *scopes, *paths;
	size_t rows_size;
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

/* Return the bytes of the line program of @die, 0: too large, @damaged. @lines: the section. */
static uint32_t size_of_lines(Dwarf_Die *die, const Elf_Data *lines, bool *damaged)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	uint64_t size = 0;
	const uint8_t *at;
	bool wide;

	if (!lines || !lines->d_buf || !dwarf_attr(die, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &offset))
		return 0;
	if (lines->d_size < 14 || offset > lines->d_size - 14) {
		*damaged = true;
		return 0;
	}
	at = (const uint8_t *)lines->d_buf + offset;
	memcpy(&size, at, 4);
	wide = size == 0xffffffff;
	if (wide)
		memcpy(&size, at + 4, 8);
	*damaged |= size > lines->d_size - offset || at[wide ? 12 : 4] > 5 || at[wide ? 13 : 5];
	return size <= LINE_SIZE_MAX ? (uint32_t)MAX(size, 1U) : 0;
}

/* Return the number that an attribute is; 0: it is none, or NULL. */
static uint64_t value_of(Dwarf_Attribute *attr)
{
	Dwarf_Word value;

	return attr && !dwarf_formudata(attr, &value) ? value : 0;
}

static uint64_t number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;

	return value_of(dwarf_attr(die, attribute, &attr));
}

static int add_unit(struct dwarf *d, Dwarf_Die *die, const Elf_Data *lines)
{
	if (!is_unit(die))
		return 0;
	if (d->nr_units >= UNITS_MAX)
		return -EFBIG;
	if (!array_reserve(&d->units, &d->max_units, d->nr_units + 1ull))
		return -ENOMEM;
	d->units[d->nr_units] = (struct unit){
		.die = dwarf_dieoffset(die),
		.lines = size_of_lines(die, lines, &d->damaged),
	};
	if (dwarf_hasattr(die, DW_AT_dwo_name) || dwarf_hasattr(die, DW_AT_GNU_dwo_name)) {
		struct unit *u = &d->units[d->nr_units];

		d->split = true;
		u->state = SPLIT_WANTED;
		u->addr_base = number_of(die, DW_AT_addr_base);
		if (!u->addr_base)
			u->addr_base = number_of(die, DW_AT_GNU_addr_base);
		u->ranges_base = number_of(die, DW_AT_GNU_ranges_base);
	}
	return add_die_ranges(d, &d->ranges, die, d->nr_units++);
}

/* Index the units by address. */
static int index_units(struct dwarf *d)
{
	const Elf_Data *lines = d->no_lines ? NULL : dwarf_open_section(d->main.dw, ".debug_line");
	int rc = 0, end = 0, invalid = 0;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	d->deadline_ns = time_thread_ns() + DWARF_OPEN_NS;
	/* The subdie is not read: libdw would open split files by their names. */
	while (!rc && !(end = dwarf_get_units(d->main.dw, cu, &cu, NULL, NULL, &die, NULL))) {
		invalid |= !dwarf_tag(&die);
		rc = add_unit(d, &die, lines);
		if (!rc && dwarf_is_late(d))
			rc = -ETIME;
	}
	if (d->ranges.nr)
		qsort(d->ranges.list, d->ranges.nr, sizeof(*d->ranges.list), compare_ranges);
	return rc ? rc : d->ranges.nr ? 0 : invalid || end < 0 ? -EBADMSG : -ENODATA;
}

/* Have libdw open the files. 0 or -errno. */
static int begin(struct dwarf *d)
{
	int rc;

	d->nr_opened++;
	d->lines_sum = 0;
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
	d->nr_opened++;
	d->lines_sum = 0;
	if (d->main.dw && !d->alt.dw == !d->alt.elf) {
		if (d->alt.dw)
			dwarf_setalt(d->main.dw, d->alt.dw);
		return true;
	}
	dwarf_end(d->main.dw);
	dwarf_end(d->alt.dw);
	d->main.dw = d->alt.dw = NULL;
	return false;
}

/* Free the copied lines. */
static void forget_rows(struct dwarf *d)
{
	for (uint32_t i = 0; d->rows_size && i < d->nr_units; i++) {
		free(d->units[i].rows);
		d->units[i].rows = NULL;
	}
	dwarf_scopes_free(d->paths);
	d->paths = NULL;
	d->rows_size = 0;
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

/* Free all that is known of the functions of @u; the split file is wanted again. */
static void end_functions(struct dwarf *d, struct unit *u)
{
	free(u->functions.list);
	free(u->abstracts);
	u->functions = (struct ranges){ 0 };
	u->abstracts = NULL;
	u->nr_abstracts = u->max_abstracts = 0;
	u->indexed = u->hashed = false;
	if (u->state != SPLIT_READ)
		return;
	d->nr_splits--;
	d->splits_sum -= u->split.opened.mapped;
	dwarf_scopes_free(u->split.scopes);
	dwarf_open_end(&u->split.opened);
	u->state = SPLIT_WANTED;
}

static void dwarf_close(struct dwarf *d)
{
	if (!d)
		return;
	forget_rows(d);
	for (uint32_t i = 0; i < d->nr_units; i++)
		end_functions(d, &d->units[i]);
	if (d->package_index) {
		close(d->package.fd);
		elffile_close(&d->package);
		free(d->package_index);
	}
	free(d->units);
	free(d->ranges.list);
	end(d);
	free(d);
}

/*
 * Open the DWARF of @f, with the dwz file @alt_fd (-1: none); the caller keeps both descriptors,
 * open. @bias is added to its addresses to get the object's; @no_lines: chains have functions only.
 * 0, -ENODATA (no DWARF), -ETIME, -EBADMSG, -ENOMEM.
 */
static int dwarf_open_fds(struct dwarf **out, const struct elffile *f, uint64_t bias, int alt_fd,
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

/*
 * Split DWARF (DWARF 5, 3.1.2 and 7.3.2; GNU's form in DWARF 4): a skeleton unit has the lines, and
 * names a file (.dwo) with the functions, which may be in a package of such files (.dwp, 7.3.5).
 *
 * libdw opens these files by the names, which a worker cannot; packages only since 0.191. So
 * a unit is copied into an ELF file in memory, as a unit that is not split: sections without
 * ".dwo", and the addresses and ranges of its skeleton. The bytes of its number (dwo_id) are used
 * for DW_AT_low_pc, which only the skeleton has: no offset in the unit changes.
 */

#define SPLIT_MAPPED_MIN (64U << 10) /* bytes of strings that are not copied */
#define SPLIT_INDEX_MAX	 (256U << 20)

/* A part of a section; of a .dwo it is the section. */
struct split_part {
	uint64_t offset, size;
};

/* The unit that is read. */
struct split_unit {
	uint64_t id, low_pc; /* of the skeleton */
	uint16_t version;    /* of both */
	size_t die, end;     /* offsets in .debug_info.dwo */
	size_t table_at;     /* of the offset of its abbreviations */
	uint64_t table;	     /* that offset */
	bool wide;	     /* it has 8 bytes */
	size_t code_size;    /* bytes of the first abbreviation code, at @die */
	size_t attributes;   /* of this abbreviation: offset in .debug_abbrev.dwo */
	size_t table_end;
	size_t id_at, name_at, name_size; /* version 4: the number; its name in the abbreviation */
};

/* Return the file of libdw that has the functions of @u. */
static Dwarf *functions_of(const struct dwarf *d, const struct unit *u)
{
	return u->state == SPLIT_READ ? u->split.opened.dw : d->main.dw;
}

/* Find the next section "NAME.dwo" of @f, from number *@i on; *@old: as GNU tools compress it. */
static const Elf64_Shdr *split_section(const struct elffile *f, const char *name, uint32_t *i,
				       bool *old)
{
	const size_t size = strlen(name);

	for (; f->shstr && *i < f->nr_shdrs; ++*i) {
		const Elf64_Shdr *s = &f->shdrs[*i];
		const char *is = f->shstr + s->sh_name;

		if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL ||
		    s->sh_name >= f->shstr_size)
			continue;
		*old = !strncmp(is, ".z", 2);
		is += *old;
		if (!strncmp(is + 1, name + 1, size - 1) && !strcmp(is + size, ".dwo"))
			return &f->shdrs[(*i)++];
	}
	return NULL;
}

/* Inflate all of a section into malloc'ed memory. */
static int split_inflate(const struct elffile *f, const Elf64_Shdr *s, bool old, void **out,
			 uint64_t *size)
{
	size_t skip = old ? ELFDWARF_OLD_HEAD : sizeof(Elf64_Chdr);
	enum packing how = BY_ZLIB;
	Elf64_Chdr head;
	void *from;
	int rc;

	if (s->sh_size < skip || s->sh_size > ELFDWARF_INFLATED_MAX)
		return -EBADMSG;
	rc = elffile_read_alloc(f, s->sh_offset, s->sh_size, &from);
	if (rc)
		return rc;
	memcpy(&head, from, MIN(skip, sizeof(head)));
	*size = old ? elfdwarf_old_size(from) : head.ch_size;
	if (!old && head.ch_type == COMPRESSED_BY_ZSTD)
		how = BY_ZSTD;
	rc = *size > ELFDWARF_INFLATED_MAX ? -EFBIG : 0;
	*out = rc ? NULL : malloc(*size + 1);
	if (!rc && !*out)
		rc = -ENOMEM;
	if (!rc && !inflate_into(how, *out, *size, (uint8_t *)from + skip, s->sh_size - skip)) {
		free(*out);
		rc = -EBADMSG;
	}
	free(from);
	return rc;
}

/* Load @part of a section into malloc'ed memory; strings may be mapped later. */
static int split_load(const struct elffile *f, const Elf64_Shdr *s, bool old, bool strings,
		      const struct split_part *part, struct section *out)
{
	bool packed = old || s->sh_flags & SHF_COMPRESSED;
	uint64_t all = s->sh_size, size;
	void *bytes = NULL;
	int rc = packed ? split_inflate(f, s, old, &bytes, &all) : 0;

	if (rc)
		return rc;
	size = part->offset <= all ? MIN(part->size, all - part->offset) : 0;
	if (packed) {
		memmove(bytes, (uint8_t *)bytes + (size ? part->offset : 0), size);
	} else if (strings && size >= SPLIT_MAPPED_MIN && s->sh_offset < f->size &&
		   size <= f->size - s->sh_offset) {
		*out = (struct section){ .size = size, .true_size = size, .mapped = true };
		out->offset = s->sh_offset + part->offset;
		return 0;
	} else if (size > ELFDWARF_INFLATED_MAX) {
		return -EFBIG;
	} else {
		rc = elffile_read_alloc(f, s->sh_offset + part->offset, size, &bytes);
	}
	if (!rc)
		*out = (struct section){ bytes, size, size, PLAIN, false, 0 };
	return rc;
}

/* Read the head of the unit at r->pos; false: it is not one that may be split. */
static bool read_head(struct ehread *r, const uint8_t *info, struct split_unit *u, uint64_t *id)
{
	uint64_t length = ehread_fixed(r, 4), type = DW_UT_split_compile, address = 0;
	struct ehread in = *r;

	u->wide = length == 0xffffffff;
	if (u->wide)
		length = ehread_fixed(r, 8);
	in = *r;
	ehread_block(r, length);
	if (r->bad)
		return false;
	in.end = r->pos;
	u->end = (size_t)(r->pos - info);
	if (ehread_fixed(&in, 2) != u->version)
		return false;
	if (u->version == 5) {
		type = ehread_fixed(&in, 1);
		address = ehread_fixed(&in, 1);
	}
	u->table_at = (size_t)(in.pos - info);
	u->table = ehread_fixed(&in, u->wide ? 8 : 4);
	if (u->version == 5)
		*id = ehread_fixed(&in, 8);
	else
		address = ehread_fixed(&in, 1);
	u->die = (size_t)(in.pos - info);
	return !in.bad && type == DW_UT_split_compile && address == 8;
}

/* Read an attribute of an abbreviation; false: the last one. */
static bool read_attribute(struct ehread *r, uint64_t *name, uint64_t *form)
{
	*name = ehread_uleb(r);
	*form = ehread_uleb(r);
	if (*form == DW_FORM_implicit_const)
		ehread_sleb(r);
	return !r->bad && (*name || *form);
}

/* Find the abbreviation of the first DIE of @u, and the end of its table. */
static bool find_abbreviation(const struct section *info, const struct section *abbrev,
			      struct split_unit *u)
{
	struct ehread code = { info->bytes + u->die, info->bytes + u->end, false };
	struct ehread r = { abbrev->bytes + u->table, abbrev->bytes + abbrev->size, false };
	uint64_t want = ehread_uleb(&code), is, name, form;

	if (!abbrev->bytes || u->table > abbrev->size || !want)
		return false;
	u->code_size = (size_t)(code.pos - (info->bytes + u->die));
	u->attributes = 0;
	while ((is = ehread_uleb(&r)) && !r.bad) {
		ehread_uleb(&r);
		ehread_fixed(&r, 1);
		if (is == want && !u->attributes)
			u->attributes = (size_t)(r.pos - abbrev->bytes);
		while (read_attribute(&r, &name, &form))
			;
	}
	u->table_end = (size_t)(r.pos - abbrev->bytes);
	return !r.bad && !code.bad && u->attributes;
}

/* Skip the value of an attribute of a first DIE; false: the form is unknown. */
static bool skip_value(struct ehread *r, uint64_t form, bool wide)
{
	switch (form) {
	case DW_FORM_flag_present:
		return true;
	case DW_FORM_data1:
	case DW_FORM_flag:
		return ehread_block(r, 1);
	case DW_FORM_data2:
		return ehread_block(r, 2);
	case DW_FORM_data4:
		return ehread_block(r, 4);
	case DW_FORM_data8:
	case DW_FORM_addr:
		return ehread_block(r, 8);
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
		return ehread_block(r, wide ? 8 : 4);
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_GNU_str_index:
	case DW_FORM_GNU_addr_index:
		ehread_uleb(r);
		return !r->bad;
	case DW_FORM_string:
		while (ehread_fixed(r, 1))
			;
		return !r->bad;
	default:
		return false;
	}
}

/* Find the number of a unit of version 4, an attribute; false: it has another one. */
static bool find_number(const struct section *info, const struct section *abbrev,
			struct split_unit *u)
{
	struct ehread value = { info->bytes + u->die + u->code_size, info->bytes + u->end, false };
	struct ehread r = { abbrev->bytes + u->attributes, abbrev->bytes + u->table_end, false };
	uint64_t name, form, id;
	const uint8_t *at;

	do {
		struct ehread before = r;

		if (!read_attribute(&r, &name, &form))
			return false;
		u->name_at = (size_t)(before.pos - abbrev->bytes);
		ehread_uleb(&before);
		u->name_size = (size_t)(before.pos - abbrev->bytes) - u->name_at;
		at = value.pos;
		if (!skip_value(&value, form, u->wide))
			return false;
	} while (name != DW_AT_GNU_dwo_id);
	u->id_at = (size_t)(at - info->bytes);
	memcpy(&id, at, MIN(sizeof(id), (size_t)(value.pos - at)));
	return form == DW_FORM_data8 && id == u->id;
}

/* Find the unit with the number of the skeleton in a section. */
static bool find_unit(const struct section *info, const struct section *abbrev,
		      struct split_unit *u)
{
	struct ehread r = { info->bytes, info->bytes + info->size, false };

	while (!r.bad && r.pos < r.end) {
		uint64_t id = u->id;

		if (read_head(&r, info->bytes, u, &id) && id == u->id &&
		    find_abbreviation(info, abbrev, u) &&
		    (u->version == 5 || find_number(info, abbrev, u)))
			return true;
	}
	return false;
}

/*
 * Make a unit that is not split of @u: its abbreviations are copied behind the others, with
 * DW_AT_low_pc; its value has the place of the number. Both sections are malloc'ed.
 */
static int change_unit(const struct section *info, struct section *abbrev,
		       const struct split_unit *u)
{
	size_t table = u->table_end - u->table, first = u->attributes - u->table, added = 0;
	uint8_t *bytes = malloc(abbrev->size + table + 2), *unit = (uint8_t *)info->bytes;
	uint8_t *copy = bytes + abbrev->size;

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, abbrev->bytes, abbrev->size);
	memcpy(copy, abbrev->bytes + u->table, table);
	if (u->version == 5) {
		memmove(copy + first + 2, copy + first, table - first);
		copy[first] = DW_AT_low_pc;
		copy[first + 1] = DW_FORM_addr;
		added = 2;
		/* The head has no number, the first DIE begins 8 bytes before: an address more. */
		unit[u->table_at - 2] = DW_UT_compile;
		memmove(unit + u->die - 8, unit + u->die, u->code_size);
		memcpy(unit + u->die - 8 + u->code_size, &u->low_pc, 8);
	} else {
		uint8_t *name = copy + (u->name_at - u->table);

		for (size_t i = 0; i < u->name_size; i++)
			name[i] = (i ? 0 : DW_AT_low_pc) | (i + 1 < u->name_size ? 0x80 : 0);
		name[u->name_size] = DW_FORM_addr;
		memcpy(unit + u->id_at, &u->low_pc, 8);
	}
	memcpy(unit + u->table_at, &abbrev->size, u->wide ? 8 : 4);
	free((void *)abbrev->bytes);
	*abbrev = (struct section){ .bytes = bytes, .size = abbrev->size + table + added };
	abbrev->true_size = abbrev->size;
	return 0;
}

/* Load the section with the unit, which is changed. -ESRCH: it is in none. */
static int load_unit(const struct elffile *f, const struct split_part *part,
		     struct section list[NR_NAMES], struct split_unit *u)
{
	const Elf64_Shdr *s;
	uint32_t i = 1;
	bool old;

	/* Types may have sections of that name. */
	while ((s = split_section(f, section_names[INFO], &i, &old))) {
		int rc = split_load(f, s, old, false, part, &list[INFO]);

		if (rc)
			return rc;
		if (find_unit(&list[INFO], &list[ABBREV], u))
			return change_unit(&list[INFO], &list[ABBREV], u);
		free((void *)list[INFO].bytes);
		list[INFO] = (struct section){ .bytes = NULL };
	}
	return -ESRCH;
}

/* Take the part of a skeleton from a section of the main file: up to the one of the next unit. */
static void take_part(const struct dwarf *d, struct section *out, unsigned int name, uint64_t base)
{
	const Elf_Data *data = dwarf_open_section(d->main.dw, section_names[name]);
	uint64_t end = data ? data->d_size : 0;

	assert(name < ARRAY_SIZE(section_names));
	for (uint32_t i = 0; i < d->nr_units; i++) {
		uint64_t is = name == ADDR ? d->units[i].addr_base : d->units[i].ranges_base;

		if (is > base && is < end)
			end = is;
	}
	if (data && data->d_buf && base < end) {
		out->bytes = (const uint8_t *)data->d_buf + base;
		out->size = out->true_size = end - base;
	}
}

/* Have libdw open the sections as a file in memory. */
static int open_sections(struct dwarf_opened *out, const struct section list[NR_NAMES], int fd)
{
	GElf_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_REL,
		.e_machine = EM_X86_64, /* any: there are no relocations */
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
	};
	size_t size = sizeof(struct head) + 3 * (size_t)sysconf(_SC_PAGESIZE);
	int rc;

	for (size_t i = 1; i < NR_NAMES; i++)
		size += list[i].true_size;
	*out = (struct dwarf_opened){ .mapped = size };
	out->image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out->image == MAP_FAILED) {
		*out = (struct dwarf_opened){ 0 };
		return -ENOMEM;
	}
	put_head(&ehdr, (struct head *)out->image);
	rc = put_sections(list, out->image, fd);
	if (!rc)
		out->elf = elf_memory((char *)out->image, size);
	if (out->elf)
		out->dw = dwarf_begin_elf(out->elf, DWARF_C_READ, NULL);
	if (!rc && !out->dw)
		rc = -EBADMSG;
	if (rc)
		dwarf_open_end(out);
	return rc;
}

/* Close the split units that were not used for longest, until another one may be open. */
static void bound_splits(struct dwarf *d)
{
	while (d->nr_splits >= SPLITS_MAX || (d->nr_splits && d->splits_sum > SPLITS_SUM_MAX)) {
		struct unit *oldest = NULL;

		for (uint32_t i = 0; i < d->nr_units; i++) {
			struct unit *u = &d->units[i];

			if (u->state == SPLIT_READ &&
			    (!oldest || u->split.used < oldest->split.used))
				oldest = u;
		}
		end_functions(d, oldest);
	}
}

/* Get the facts about the skeleton @u. */
static int get_skeleton(const struct dwarf *d, const struct unit *u, struct split_unit *out)
{
	Dwarf_Addr low = 0;
	Dwarf_Die root;

	*out = (struct split_unit){ 0 };
	if (!dwarf_offdie(d->main.dw, u->die, &root) ||
	    dwarf_cu_info(root.cu, &out->version, NULL, NULL, NULL, &out->id, NULL, NULL) ||
	    (out->version != 4 && out->version != 5))
		return -EBADMSG;
	if (!dwarf_lowpc(&root, &low))
		out->low_pc = low;
	return 0;
}

/* Read the functions of @u from the @parts of a file. */
static int read_split(struct dwarf *d, struct unit *u, const struct elffile *f,
		      const struct split_part parts[NR_NAMES])
{
	static const uint8_t others[] = { LINES, ABBREV, STR, RNGLISTS, OFFSETS };
	struct section list[NR_NAMES] = { 0 };
	struct split_unit split;
	int rc = f->elf_class == ELFCLASS64 ? get_skeleton(d, u, &split) : -EBADMSG;

	for (size_t k = 0; !rc && k < ARRAY_SIZE(others); k++) {
		unsigned int name = others[k];
		uint32_t i = 1;
		bool old;
		const Elf64_Shdr *s = split_section(f, section_names[name], &i, &old);

		if (s && parts[name].size)
			rc = split_load(f, s, old, name == STR, &parts[name], &list[name]);
		if (!rc && name == LINES && list[name].size > LINE_SIZE_MAX)
			list[name].true_size = list[name].size = 0;
	}
	if (!rc)
		rc = load_unit(f, &parts[INFO], list, &split);
	take_part(d, &list[ADDR], ADDR, u->addr_base);
	take_part(d, &list[RANGES], RANGES, u->ranges_base);
	bound_splits(d);
	if (!rc)
		rc = open_sections(&u->split.opened, list, f->fd);
	list[ADDR].bytes = list[RANGES].bytes = NULL;
	for (size_t i = 0; i < NR_NAMES; i++)
		free((void *)list[i].bytes);
	if (rc)
		return rc;
	end_functions(d, u);
	u->state = SPLIT_READ;
	u->split.die = split.die - (split.version == 5 ? 8 : 0);
	d->nr_splits++;
	d->splits_sum += u->split.opened.mapped;
	return 0;
}

/*
 * Read the functions of @unit, which dwarf_chain() wants, from a split file; -1: there is none, the
 * unit has lines only then. 0, -ESRCH (another unit), -EBADMSG, -EFBIG or -ENOMEM.
 */
static int dwarf_split(struct dwarf *d, uint32_t unit, int fd, uint64_t size)
{
	struct split_part parts[NR_NAMES];
	struct elffile f;
	struct unit *u;
	int rc;

	if (unit >= d->nr_units || d->units[unit].state != SPLIT_WANTED)
		return -EINVAL;
	u = &d->units[unit];
	rc = fd < 0 ? -ENOENT : elffile_open(&f, fd, NULL, size, NULL);
	if (!rc) {
		for (size_t i = 0; i < NR_NAMES; i++)
			parts[i] = (struct split_part){ 0, UINT64_MAX };
		rc = read_split(d, u, &f, parts);
		elffile_close(&f);
	}
	/* A file that is sent and not usable: the client sends none then. */
	if (fd < 0)
		u->state = SPLIT_MISSING;
	return fd < 0 ? 0 : rc;
}

/* Open a package; then *@fd is taken over. */
static int open_package(struct dwarf *d, int *fd, uint64_t size)
{
	const Elf64_Shdr *s;
	void *index;
	int rc;

	if (*fd < 0 || d->package_index)
		return -EINVAL;
	rc = elffile_open(&d->package, *fd, NULL, size, NULL);
	if (rc)
		return rc;
	s = elffile_section(&d->package, ".debug_cu_index");
	rc = !s || s->sh_flags & SHF_COMPRESSED || s->sh_size > SPLIT_INDEX_MAX ? -EBADMSG : 0;
	if (!rc)
		rc = elffile_read_alloc(&d->package, s->sh_offset, s->sh_size, &index);
	if (rc) {
		elffile_close(&d->package);
		return rc;
	}
	d->package_index = index;
	d->package_index_size = s->sh_size;
	*fd = -1;
	return 0;
}

/* Return number @i of 32 bits of the index of the package; 0: outside. */
static uint32_t index_number(const struct dwarf *d, uint64_t i)
{
	uint32_t v = 0;

	if (i < d->package_index_size / 4)
		memcpy(&v, d->package_index + i * 4, 4);
	return v;
}

/* Find the row of a unit in the index, a hash table (DWARF 5, 7.3.5.3); 0: none. */
static uint32_t index_row(const struct dwarf *d, uint64_t id)
{
	uint64_t slots = index_number(d, 3), mask = slots - 1, step = (id >> 32 & mask) | 1;
	uint64_t at = id & mask;

	if (!slots || slots & mask || slots > d->package_index_size / 12)
		return 0;
	for (uint64_t i = 0; i < slots; i++, at = (at + step) & mask) {
		uint64_t is = index_number(d, 4 + 2 * at) | (uint64_t)index_number(d, 5 + 2 * at)
								    << 32;
		uint32_t row = index_number(d, 4 + 2 * slots + at);

		if (!row || is == id)
			return row;
	}
	return 0;
}

/* Read the functions of @u from the package. -ENOENT: not in it. */
static int read_from_package(struct dwarf *d, struct unit *u)
{
	static const uint8_t columns[] = {
		[1] = INFO, [3] = ABBREV, [4] = LINES, [6] = OFFSETS, [8] = RNGLISTS
	};
	uint64_t nr = index_number(d, 1), units = index_number(d, 2), slots = index_number(d, 3);
	uint64_t at = 4 + 3 * slots; /* the columns; then offsets by row, then sizes */
	struct split_part parts[NR_NAMES] = { [STR] = { 0, UINT64_MAX } };
	struct split_unit split;
	uint32_t row;

	if (get_skeleton(d, u, &split))
		return -EBADMSG;
	row = index_row(d, split.id);
	if (!row || row > units || nr > 16)
		return -ENOENT;
	for (uint64_t i = 0; i < nr; i++) {
		uint32_t column = index_number(d, at + i);

		if (column < ARRAY_SIZE(columns) && columns[column])
			parts[columns[column]] = (struct split_part){
				index_number(d, at + nr * row + i),
				index_number(d, at + nr * (units + row) + i),
			};
	}
	return read_split(d, u, &d->package, parts);
}

/* Have the functions of @u ready. False: its split file is wanted. */
static bool use_split(struct dwarf *d, struct unit *u)
{
	if (u->state == SPLIT_WANTED && (!d->package_index || read_from_package(d, u))) {
		d->wanted = (uint32_t)(u - d->units);
		return false;
	}
	u->split.used = d->nr_uses++;
	return true;
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

static const char *name_of(struct dwarf *d, struct unit *u, Dwarf_Die *die)
{
	struct dwarf_scopes **scopes = u->state == SPLIT_READ ? &u->split.scopes : &d->scopes;
	const char *name = dwarf_scopes_name(scopes, die, d->deadline_ns, &d->damaged);

	return name && *name ? name : "[inlined]";
}

/* The same of the declaration that @die refers to. */
static uint64_t declared_number(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;

	return value_of(dwarf_attr_integrate(die, attribute, &attr));
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

		if (dwarf_offdie(functions_of(d, u), u->abstracts[i].die, &die) &&
		    !dwarf_linkage_name(&die))
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

/* Return file @number of the functions of @u, of which the lines are read; NULL: none. */
static const char *file_at(struct dwarf *d, const struct unit *u, uint64_t number)
{
	Dwarf_Files *files = NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Off next;
	size_t nr = 0;

	/* A split file may have a table of its own, of files only. */
	if (u->state != SPLIT_READ ||
	    !dwarf_open_section(functions_of(d, u), section_names[LINES]) ||
	    dwarf_next_lines(functions_of(d, u), 0, &next, &cu, &files, &nr, NULL, NULL))
		return dwarf_rows_file(u->rows, number);
	return number < nr ? dwarf_filesrc(files, number, NULL, NULL) : NULL;
}

/* Return the file of the declaration @die; NULL: none, or it costs too much to read. */
static const char *declared_file(struct dwarf *d, const struct unit *u, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word number;
	Dwarf_Die unit;

	/* Of this unit: its lines are bounded. */
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) ||
	    !dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_dieoffset(&unit) != (u->state == SPLIT_READ ? u->split.die : u->die) ||
	    dwarf_formudata(&attr, &number) || !number)
		return NULL;
	return file_at(d, u, number);
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

	/* clang names functions of one file so as well: two files may have the same name. */
	if (dwarf_linkage_name(die) && dwarf_hasattr_integrate(die, DW_AT_external))
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

/* Get the file and line of the call of @inlined. */
static void put_call(struct dwarf *d, const struct unit *u, Dwarf_Die *inlined,
		     struct dwarf_frame *out)
{
	out->line = (uint32_t)number_of(inlined, DW_AT_call_line);
	out->file = file_at(d, u, number_of(inlined, DW_AT_call_file));
}

static void put_line(const struct dwarf_rows *r, uint64_t addr, struct dwarf_frame *out)
{
	const struct dwarf_row *row = r->nr ? &r->list[dwarf_rows_before(r, addr)] : NULL;

	if (!row || row->at > addr || row->file == DWARF_ROW_END)
		return;
	out->line = row->line;
	out->file = dwarf_rows_file(r, row->file);
}

/* Return the first line of @function: of its declaration, else of its entry, as Go has it. */
static uint32_t first_line(const struct unit *u, Dwarf_Die *function, bool lines)
{
	uint32_t declared = (uint32_t)declared_number(function, DW_AT_decl_line);
	struct dwarf_frame entry = { .line = 0 };
	Dwarf_Addr at;

	if (!declared && lines && !dwarf_entrypc(function, &at))
		put_line(u->rows, at, &entry);
	return declared ? declared : entry.line;
}

/*
 * Find the function at @addr of @u and its inlined ones, outermost first: *nr; false: none is
 * known. *late: it takes too long.
 */
static bool find_functions(struct dwarf *d, struct unit *u, uint64_t addr, Dwarf_Die *function,
			   Dwarf_Die inlined[DWARF_FRAMES_MAX], uint32_t *nr, bool *late)
{
	Dwarf *dw = functions_of(d, u);
	const struct range *range;
	Dwarf_Die root;

	*nr = 0;
	*late = false;
	if (!dwarf_offdie(dw, u->state == SPLIT_READ ? u->split.die : u->die, &root))
		return false;
	if (!u->indexed && index_functions(d, u, &root) == -ETIME) {
		*late = true;
		return false;
	}
	range = ranges_find(&u->functions, addr);
	if (!range || !dwarf_offdie(dw, range->what, function))
		return false;
	*nr = find_inlined(d, *function, addr, inlined);
	return true;
}

/* Copy the lines of @u at its first look-up. Return whether it has some; overwrites *unit. */
static bool read_rows(struct dwarf *d, struct unit *u, Dwarf_Die *unit)
{
	if (!u->rows && d->rows_size > ROWS_MAX)
		forget_rows(d);
	if (!u->rows && bound_lines(d, u) && dwarf_offdie(d->main.dw, u->die, unit)) {
		u->rows = dwarf_rows_read(&d->paths, unit);
		d->rows_size += u->rows ? u->rows->size : 0;
	}
	return u->rows;
}

/* Get the chain at @place of the object, innermost first, the function itself last. Return its
 * length, 0: unknown, -ETIME, -EINPROGRESS: a split file is wanted (DWARF_WIRE_SPLIT). */
static int dwarf_chain(struct dwarf *d, uint64_t place, struct dwarf_frame out[DWARF_FRAMES_MAX])
{
	const uint64_t addr = (place & ~DWARF_NAMELESS) - d->bias;
	const struct range *range = ranges_find(&d->ranges, addr);
	Dwarf_Die inlined[DWARF_FRAMES_MAX], function, root;
	struct unit *u = range ? &d->units[range->what] : NULL;
	bool lines = u && read_rows(d, u, &root), late, found;
	uint32_t nr;

	if (!u || !dwarf_offdie(d->main.dw, u->die, &root))
		return 0;
	if (!use_split(d, u))
		return -EINPROGRESS;
	d->deadline_ns = time_thread_ns() + DWARF_QUERY_NS;
	found = find_functions(d, u, addr, &function, inlined, &nr, &late);
	if (late)
		return -ETIME;
	memset(out, 0, (nr + 1) * sizeof(*out));
	for (uint32_t i = 0; i < nr; i++) { /* inside out */
		out[i].name = name_of(d, u, &inlined[nr - 1 - i]);
		if (lines)
			put_call(d, u, &inlined[nr - 1 - i], &out[i + 1]);
	}
	if (lines)
		put_line(u->rows, addr, &out[0]);
	out[nr].dir = dir_of(&root);
	for (uint32_t i = 0; i < nr; i++) {
		out[i].dir = out[nr].dir;
		out[i].identity = identity_of(d, u, &inlined[nr - 1 - i], lines, &out[i]);
		out[i].start = (uint32_t)declared_number(&inlined[nr - 1 - i], DW_AT_decl_line);
	}
	if (found)
		out[nr].start = first_line(u, &function, lines);
	if (found && place & DWARF_NAMELESS && !dwarf_entrypc(&function, &out[nr].identity)) {
		out[nr].identity += d->bias;
		out[nr].name = name_of(d, u, &function);
	}
	if (time_thread_ns() > d->deadline_ns)
		return -ETIME;
	return (int)nr + 1;
}

static int dwarf_lines(struct dwarf *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn, void *ctx)
{
	uint64_t addr = vaddr - d->bias;
	const struct range *range = ranges_find(&d->ranges, addr);
	struct unit *u = range ? &d->units[range->what] : NULL;
	struct dwarf_frame frame = { .name = NULL };
	const struct dwarf_rows *r;
	Dwarf_Die root;

	if (!u || !read_rows(d, u, &root) || !dwarf_offdie(d->main.dw, u->die, &root))
		return 0;
	r = u->rows;
	frame.dir = dir_of(&root);
	for (uint32_t i = dwarf_rows_before(r, addr); i < r->nr && r->list[i].at < addr + size;
	     i++) {
		frame.line = r->list[i].line;
		frame.file = frame.line ? dwarf_rows_file(r, r->list[i].file) : NULL;
		fn(ctx, r->list[i].at + d->bias, &frame);
	}
	return 0;
}

/* ---- the worker: files that are open, and answers ---- */

#define OPEN_FILES_MAX 24U
#define SLICE_NS       5000000ULL
#define MEMORY	       (2ULL << 30)

struct open_file {
	struct dwarf *dwarf; /* NULL: free */
	uint64_t used;	     /* number of its last request */
	struct elffile file;
	int alt_fd;
};

static struct open_file files[OPEN_FILES_MAX];

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

	while (opened.handle < OPEN_FILES_MAX && files[opened.handle].dwarf)
		opened.handle++;
	if (opened.handle == OPEN_FILES_MAX || c->fds[0] < 0 || r->alt != (c->fds[1] >= 0))
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
	opened.split = f->dwarf->split;
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
static int finish(struct sandbox_call *c, struct dwarf_wire_head head,
		  struct sandbox_reply *lengths, struct sandbox_reply *frames, struct texts *t)
{
	head.texts_size = (uint32_t)t->bytes.size;
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

/* Name the split file that is wanted. */
static void put_wanted(struct dwarf *d, struct dwarf_wire_head *head, struct texts *t)
{
	Dwarf_Attribute attr;
	Dwarf_Die root;

	if (!dwarf_offdie(d->main.dw, d->units[d->wanted].die, &root))
		return;
	memset(t->last, 0, sizeof(t->last));
	head->wanted = d->wanted + 1;
	head->wanted_dir = put_text(t, 2, dir_of(&root));
	if (!dwarf_attr(&root, DW_AT_dwo_name, &attr))
		dwarf_attr(&root, DW_AT_GNU_dwo_name, &attr);
	head->wanted_name = put_text(t, 1, dwarf_formstring(&attr));
}

static int serve_chains(struct sandbox_call *c, struct dwarf *d, const struct dwarf_wire_request *r)
{
	struct sandbox_reply lengths = { 0 }, frames = { 0 };
	uint64_t end_ns = time_now_ns() + SLICE_NS;
	struct dwarf_wire_head head = { .nr = 0 };
	struct texts texts = { 0 };

	while (head.nr < r->nr && (!head.nr || time_now_ns() < end_ns)) {
		struct dwarf_frame chain[DWARF_FRAMES_MAX];
		int32_t nr = dwarf_chain(d, r->vaddrs[head.nr], chain);

		if (nr == -EINPROGRESS) {
			put_wanted(d, &head, &texts);
			break;
		}
		head.nr++;
		head.damaged = d->damaged;
		sandbox_put(&lengths, &nr, sizeof(nr));
		for (int32_t i = 0; i < nr; i++)
			put_frame(&frames, &texts, &chain[i]);
		/* The next chain may free the texts: do not compare with them. */
		memset(texts.last, 0, sizeof(texts.last));
	}
	return finish(c, head, &lengths, &frames, &texts);
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

	finish(c, (struct dwarf_wire_head){ .nr = rows.nr }, &none, &rows.frames, &rows.texts);
	return rc;
}

/* Return the file with copied lines, else the one whose lines libdw has, used longest ago. */
static struct open_file *oldest_read(bool copied, size_t *copies)
{
	struct open_file *oldest = NULL;

	*copies = 0;
	for (struct open_file *f = files; f < files + OPEN_FILES_MAX; f++) {
		*copies += f->dwarf ? f->dwarf->rows_size : 0;
		if (f->dwarf && (copied ? f->dwarf->rows_size : f->dwarf->lines_sum) &&
		    (!oldest || f->used < oldest->used))
			oldest = f;
	}
	return oldest;
}

/* Free copied lines while they are too many, and what libdw keeps while the heap is too large. */
static void bound_heap(void)
{
	struct open_file *oldest;
	size_t copies;

	while ((oldest = oldest_read(true, &copies)) && copies > ROWS_MAX)
		forget_rows(oldest->dwarf);
	for (struct mallinfo2 heap = mallinfo2();
	     (oldest = oldest_read(false, &copies)) &&
	     heap.uordblks + heap.hblkhd - inflated - copies > HEAP_MAX;
	     heap = mallinfo2()) {
		forget(oldest->dwarf);
		malloc_trim(0);
	}
}

/* Unmap the pages of a large file: few are read again soon. Inflated sections are memory. */
static void give_pages_back(const struct dwarf_opened *d)
{
	size_t size = 0;
	char *at = d->image ? NULL : elf_rawfile(d->elf, &size);

	/* One that could not be mapped is behind the head of a block. */
	if (size > LARGE_FILE && !((uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE)))
		madvise(at, size, MADV_DONTNEED);
}

/* A look-up in an open file. */
static int look_up(struct sandbox_call *c, struct open_file *f, const struct dwarf_wire_request *r)
{
	static const struct open_file *last = files;
	static uint64_t nr_requests;
	uint32_t lines_sum = f->dwarf->lines_sum;
	int rc = r->kind == DWARF_WIRE_CHAINS ? serve_chains(c, f->dwarf, r)
					      : serve_lines(c, f->dwarf, r);

	f->used = ++nr_requests;
	if (f != last && last->dwarf)
		give_pages_back(&last->dwarf->main);
	last = f;
	if (f->dwarf->lines_sum != lines_sum)
		bound_heap();
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
	f = r.handle < OPEN_FILES_MAX ? &files[r.handle] : NULL;
	if (!f || !f->dwarf || r.nr > DWARF_SANDBOX_PLACES)
		return -EINVAL;
	switch (r.kind) {
	case DWARF_WIRE_CLOSE:
		close_file(f);
		return 0;
	case DWARF_WIRE_CHAINS:
	case DWARF_WIRE_LINES:
		return look_up(c, f, &r);
	case DWARF_WIRE_SPLIT:
		return dwarf_split(f->dwarf, r.unit, c->fds[0], r.size);
	case DWARF_WIRE_PACKAGE:
		return open_package(f->dwarf, &c->fds[0], r.size);
	default:
		return -EINVAL;
	}
}

#define SHARED .prepare = dwarf_inflate_prepare, .serve = serve, .memory_max = MEMORY

const struct sandbox_reader dwarf_sandbox_reader = { SANDBOX_DWARF, "proftop-dwarf", SHARED };
const struct sandbox_reader dwarf_sandbox_others = { SANDBOX_DWARF_OTHERS, "proftop-dwarf-o",
						     SHARED };
