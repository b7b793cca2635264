// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Build the image of an object: segments, the bytes of .eh_frame, symbols.
 *
 * Runs in the cage. Missing or damaged parts beyond the headers give a smaller
 * image, not an error: segments alone still give names by address.
 */
#include "symbols/object/image_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/debugframe.h"
#include "symbols/object/elfgo.h"
#include "symbols/object/elfloop.h"
#include "symbols/object/elfplt.h"
#include "symbols/object/elfsig.h"
#include "symbols/object/elfsym.h"
#include "symbols/object/elfv8.h"
#include "symbols/object/xz.h"

#define EH_FRAME_SIZE_MAX  (64ULL << 20)
#define DEBUGDATA_SIZE_MAX (64ULL << 20)

/* Tables are not compared with --symbol-memory below this. */
#define SMALL_SIZE (16ULL << 20)
/* Relocations of fewer bytes are read with all others; the first ones of most are not needed. */
#define RELOCATIONS_SMALL (64ULL << 10)

/* The position of .eh_frame in the file. */
struct eh_place {
	uint64_t vaddr, offset, size;
	bool to_segment_end; /* its end is unknown */
	struct ehhdr hdr;    /* its table; nr 0: not used */
	uint64_t table;	     /* file offset of the table */
};

/* Copy the valid load segments. */
static int read_segments(struct image *image, const struct elffile *f)
{
	image->segments = calloc(MAX(f->nr_phdrs, 1U), sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || p->p_filesz > UINT64_MAX - p->p_offset ||
		    p->p_memsz > UINT64_MAX - p->p_vaddr || p->p_filesz > p->p_memsz)
			continue;
		image->segments[image->nr_segments++] = (struct image_segment){
			.offset = p->p_offset,
			.vaddr = p->p_vaddr,
			.file_size = p->p_filesz,
			.mem_size = p->p_memsz,
			.exec = p->p_flags & PF_X,
		};
	}
	return image->nr_segments ? 0 : -ENOEXEC;
}

/* Follow PT_GNU_EH_FRAME to the address of .eh_frame. */
static bool header_says(const struct image *image, const struct elffile *f, struct eh_place *eh)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];
		uint8_t hdr[EHHDR_SIZE];
		size_t size = MIN(p->p_filesz, sizeof(hdr));
		uint64_t offset;

		if (p->p_type != PT_GNU_EH_FRAME)
			continue;
		if (!image_offset(image, p->p_vaddr, &offset) ||
		    elffile_read(f, offset, hdr, size) ||
		    !ehhdr_parse(&eh->hdr, hdr, size, p->p_filesz, p->p_vaddr))
			return false;
		eh->vaddr = eh->hdr.eh_frame;
		eh->table = offset + EHHDR_SIZE;
		return true;
	}
	return false;
}

/*
 * Find .eh_frame: by program header, with the end of the section if that agrees;
 * else by section.
 */
static bool find_eh_frame(const struct image *image, const struct elffile *f, struct eh_place *eh)
{
	const Elf64_Shdr *section = elffile_section(f, ".eh_frame");
	const struct image_segment *segment;

	if (!header_says(image, f, eh)) {
		if (!section || !(section->sh_flags & SHF_ALLOC))
			return false;
		eh->vaddr = section->sh_addr;
	}
	segment = image_segment_at(image, eh->vaddr);
	if (!segment)
		return false;
	eh->offset = segment->offset + (eh->vaddr - segment->vaddr);
	eh->size = segment->file_size - (eh->vaddr - segment->vaddr);
	eh->to_segment_end = true;
	if (section && section->sh_addr == eh->vaddr && section->sh_offset == eh->offset &&
	    section->sh_size <= eh->size) {
		eh->size = section->sh_size;
		eh->to_segment_end = false;
	}
	if (eh->offset >= f->size)
		return false;
	eh->size = MIN(MIN(eh->size, f->size - eh->offset), EH_FRAME_SIZE_MAX);
	return eh->size > 0;
}

/* Return the end of the records: the terminator, or the first impossible length. */
static size_t records_end(const uint8_t *bytes, size_t size)
{
	size_t pos = 0;

	while (size - pos >= 4) {
		uint32_t length;
		uint64_t wide;

		memcpy(&length, bytes + pos, 4);
		if (!length)
			return pos + 4;
		wide = length;
		if (length == UINT32_MAX) {
			if (size - pos < 12)
				return pos;
			memcpy(&wide, bytes + pos + 4, 8);
			pos += 8;
		}
		if (wide > size - pos - 4)
			return pos;
		pos += 4 + wide;
	}
	return pos;
}

/* Return an address outside the object, for tables that are not in memory. */
static uint64_t free_vaddr(const struct image *image)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < image->nr_segments; i++)
		end = MAX(end, image->segments[i].vaddr + image->segments[i].mem_size);
	return (end + 4095) & ~4095ULL;
}

/* Append .debug_frame, which code built without .eh_frame may have for debuggers. */
static int add_debug_frame(const struct image *image, const struct elffile *f, struct eh_place *eh,
			   void **bytes)
{
	const Elf64_Shdr *section = elffile_section(f, ".debug_frame");
	uint8_t *both, *go;
	void *debug;
	size_t size, debug_size;
	int rc;

	/* Of Go the table for its tracebacks is in all programs; its .debug_frame may be packed. */
	if (!elfgo_frames(f, &go, &debug_size)) {
		debug = go;
	} else if (section && !(section->sh_flags & SHF_COMPRESSED) &&
		   section->sh_size <= EH_FRAME_SIZE_MAX &&
		   !elffile_read_alloc(f, section->sh_offset, section->sh_size, &debug)) {
		debug_size = section->sh_size;
	} else {
		return 0;
	}
	rc = debugframe_join(*bytes, *bytes ? eh->size : 0, debug, debug_size, &both, &size);
	free(debug);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	if (!*bytes)
		eh->vaddr = free_vaddr(image);
	free(*bytes);
	*bytes = both;
	eh->size = size;
	eh->hdr.nr = 0; /* the table does not have the records added */
	return 0;
}

/* An image in the making. */
struct collect {
	struct image *image;
	const struct image_parts *in;
	struct elfsym t;
};

/* Test whether a table of @size bytes fits into --symbol-memory. */
static bool fits(const struct image_parts *in, uint64_t size)
{
	return !in->memory_max || size < SMALL_SIZE || size <= in->memory_max;
}

/* Copy the bytes of .eh_frame; NULL: none. */
static int copy_eh_frame(struct collect *c, const struct elffile *f, struct eh_place *eh,
			 void **bytes)
{
	void *fit;
	int rc;

	*bytes = NULL;
	if (!find_eh_frame(c->image, f, eh))
		return 0;
	if (!fits(c->in, eh->size))
		return 0;
	rc = elffile_read_alloc(f, eh->offset, eh->size, bytes);
	if (rc) {
		*bytes = NULL;
		return rc == -ENOMEM ? rc : 0;
	}
	if (eh->to_segment_end) {
		eh->size = records_end(*bytes, eh->size);
		fit = realloc(*bytes, eh->size + 1);
		*bytes = fit ? fit : *bytes;
	}
	return 0;
}

/* Index @bytes by the table in the file. */
static int index_by_table(struct image *image, const struct elffile *f, const struct eh_place *eh,
			  const void *bytes)
{
	void *entries;
	int rc;

	if (!eh->hdr.nr || eh->hdr.nr > EHFRAME_FDES_MAX)
		return -EBADMSG;
	if (elffile_read_alloc(f, eh->table, eh->hdr.nr * sizeof(uint64_t), &entries))
		return -EBADMSG;
	rc = ehframe_init_hdr(&image->eh, bytes, eh->size, image->machine, &eh->hdr, entries);
	if (rc)
		free(entries);
	return rc;
}

/* Copy the unwind tables; an object without them is valid. */
static int read_eh_frame(struct collect *c, const struct elffile *f)
{
	struct image *image = c->image;
	struct eh_place eh = { 0 };
	void *bytes;
	int rc = copy_eh_frame(c, f, &eh, &bytes);

	if (!rc)
		rc = add_debug_frame(image, f, &eh, &bytes);
	if (rc || !bytes) {
		free(bytes);
		return rc;
	}
	rc = index_by_table(image, f, &eh, bytes);
	if (rc == -EBADMSG)
		rc = ehframe_init(&image->eh, bytes, eh.size, eh.vaddr, image->machine);
	if (rc) {
		image->eh = (struct ehframe){ 0 };
		free(bytes);
	}
	return rc == -ENOMEM ? rc : 0;
}

/* Return the bytes to read for the tables of @type. */
static uint64_t table_size(const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type);
	uint64_t names = s && s->sh_link < f->nr_shdrs ? f->shdrs[s->sh_link].sh_size : 0;

	return s ? MIN(s->sh_size, f->size) + MIN(names, f->size) : 0;
}

/* Add the functions of one table; one that is too large is left out. */
static void add_table(struct collect *c, const struct elffile *f, uint32_t type, uint64_t bias)
{
	int rc = fits(c->in, table_size(f, type)) ? elfsym_add(&c->t, f, type, bias) : -ENOSPC;

	if (rc == -E2BIG)
		c->image->trouble = IMAGE_TOO_MANY_SYMBOLS;
	if (rc == -ENOSPC)
		c->image->trouble = IMAGE_TOO_LARGE;
}

/* Add the functions of .gnu_debugdata, a compressed ELF file of symbols only. */
static void add_debugdata(struct image *image, struct elfsym *t, const struct elffile *f)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debugdata");
	void *packed, *bytes;
	struct elffile inner;
	size_t size;
	int rc;

	if (!s || s->sh_size > DEBUGDATA_SIZE_MAX ||
	    elffile_read_alloc(f, s->sh_offset, s->sh_size, &packed))
		return;
	rc = xz_decode(packed, s->sh_size, &bytes, &size);
	free(packed);
	if (rc == -EFBIG)
		image->trouble = IMAGE_DEBUGDATA_TOO_LARGE;
	if (rc)
		return;
	if (!elffile_open(&inner, -1, bytes, size, NULL)) {
		elfsym_add(t, &inner, SHT_SYMTAB, 0);
		elffile_close(&inner);
	}
	free(bytes);
}

/*
 * Add all functions from the first source that has them: .symtab, the debug file,
 * .gnu_debugdata, .gopclntab. A damaged table gives the symbols before the damage. Return the
 * source; NULL if none has them.
 */
static const char *add_all_functions(struct collect *c, const struct elffile *f)
{
	add_table(c, f, SHT_SYMTAB, 0);
	if (c->t.nr)
		return ".symtab";
	if (c->in->debug)
		add_table(c, c->in->debug, SHT_SYMTAB, c->in->debug_bias);
	if (c->t.nr)
		return c->in->by_link ? "debug link" : "debug file";
	add_debugdata(c->image, &c->t, f);
	if (c->t.nr)
		return ".gnu_debugdata";
	elfgo_add(&c->t, f);
	return c->t.nr ? ".gopclntab" : NULL;
}

/* End symbols without a size at the end of their FDE. */
static void bound_by_fdes(struct elfsym *t, const struct image *image)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		struct image_symbol *s = &t->symbols[i];
		struct ehframe_fde fde;

		if (!s->size && ehframe_find(&image->eh, s->vaddr, &fde))
			s->size = fde.start + fde.size - s->vaddr;
	}
}

/* Collect symbols: all functions if a source has them, exported functions, stubs. */
static int collect_symbols(struct collect *c, const struct elffile *f)
{
	struct image *image = c->image;
	int rc;

	image->source = add_all_functions(c, f);
	image->complete = image->source;
	add_table(c, f, SHT_DYNSYM, 0);
	if (!image->source)
		image->source = c->t.nr ? ".dynsym" : "none";
	if (!image->complete)
		elfv8_add(&c->t, f);
	elfplt_add(&c->t, f);
	image->loop = elfloop_find(&c->t);
	rc = image->loop && image->eh.nr_fdes ? elfloop_add_parts(&c->t, f, &image->eh) : 0;
	bound_by_fdes(&c->t, image);
	return rc ? rc : elfsym_finish(&c->t, f);
}

/* Read the symbols of the image. */
static int read_symbols(struct collect *c, const struct elffile *f)
{
	struct image *image = c->image;
	int rc = collect_symbols(c, f);

	if (rc) {
		elfsym_fini(&c->t);
		return rc;
	}
	image->symbols = c->t.symbols;
	image->nr_symbols = c->t.nr;
	image->names = c->t.names;
	image->names_size = c->t.names_size;
	return 0;
}

/* Expect the symbols of @f, unless they are too large. */
static void expect_table(const struct image_parts *in, const struct elffile *f, uint32_t type)
{
	if (fits(in, table_size(f, type)))
		elfsym_expect(f, type);
}

/*
 * Expect all that is read of most files: a file that is not there as a whole then comes in
 * few steps, and nothing is made twice of its parts.
 */
static void expect_parts(const struct image_parts *in, const struct elffile *f)
{
	static const char *const sections[] = { ".eh_frame",	  ".eh_frame_hdr",  ".debug_frame",
						".gnu_debugdata", ".gnu_debuglink", ".plt",
						".plt.sec",	  ".plt.got",	    ".iplt",
						".gopclntab",	  ".go.module",	    ".dynamic" };

	expect_table(in, f, SHT_SYMTAB);
	expect_table(in, f, SHT_DYNSYM);
	if (in->debug)
		expect_table(in, in->debug, SHT_SYMTAB);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		const Elf64_Shdr *s = elffile_section(f, sections[i]);

		if (s && s->sh_size <= EH_FRAME_SIZE_MAX)
			elffile_expect(f, s->sh_offset, s->sh_size);
	}
	for (uint32_t i = 0; i < f->nr_shdrs; i++)
		if (f->shdrs[i].sh_type == SHT_RELA && f->shdrs[i].sh_size <= RELOCATIONS_SMALL)
			elffile_expect(f, f->shdrs[i].sh_offset, f->shdrs[i].sh_size);
}

/* Make the image. */
static int make(struct image *image, const struct image_parts *in)
{
	struct collect c = { .image = image, .in = in };
	const struct elffile *f = in->file;
	int rc;

	image->machine = f->machine;
	image->elf_class = f->elf_class;
	memcpy(image->build_id, f->build_id, sizeof(image->build_id));
	image->build_id_size = f->build_id_size;
	rc = read_segments(image, f);
	if (!rc && f->elf_class == ELFCLASS64)
		rc = read_eh_frame(&c, f);
	return rc ? rc : read_symbols(&c, f);
}

int image_build(struct image **out, const struct image_parts *parts)
{
	struct image *image;
	int rc;

	*out = NULL;
	if (parts->file->there)
		expect_parts(parts, parts->file);
	if (elffile_waits(parts->file) || (parts->debug && elffile_waits(parts->debug)))
		return 0;
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	rc = make(image, parts);
	if (rc) {
		image_free(image);
		return rc;
	}
	*out = image;
	return 0;
}

static int explain(int rc, struct err *e)
{
	return err_set(e, rc,
		       rc == -ENOEXEC ? "ELF file without loadable segments"
				      : "cannot read the ELF file");
}

int image_read_memory(struct image **out, const void *bytes, size_t size, struct err *e)
{
	struct elffile f;
	int rc = elffile_open(&f, -1, bytes, size, e);

	if (rc)
		return rc;
	rc = image_build(out, &(struct image_parts){ .file = &f });
	if (!rc)
		elfsig_find(*out, &f);
	elffile_close(&f);
	return rc ? explain(rc, e) : 0;
}
