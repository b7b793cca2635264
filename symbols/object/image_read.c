// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Build the image of an object: segments, the bytes of .eh_frame, symbols.
 *
 * Runs on: a helper. Missing or damaged parts beyond the headers give a smaller
 * image, not an error: segments alone still give names by address.
 */
#include "symbols/object/image_read.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/debugfile.h"
#include "symbols/object/debugframe.h"
#include "symbols/object/elffile.h"
#include "symbols/object/elfgo_cage.h"
#include "symbols/object/elfplt.h"
#include "symbols/object/elfsig.h"
#include "symbols/object/elfsym.h"
#include "symbols/object/elfv8.h"
#include "symbols/object/xz_cage.h"

#define EH_FRAME_SIZE_MAX  (64ULL << 20)
#define DEBUGDATA_SIZE_MAX (64ULL << 20)

/* A file with smaller tables is read without regard to others: a few are read at a time. */
#define SMALL_SIZE (16ULL << 20)

/* Bytes of the large tables that are being read, by all threads; relaxed: a limit, no order. */
static atomic_ullong reading;

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
	if (!elfgo_cage_frames(f, &go, &debug_size)) {
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
	const struct image_input *in; /* NULL: no debug files, no limit */
	struct elfsym t;
	uint64_t held; /* bytes reserved */
};

/* Reserve memory for @size bytes. -ENOSPC: they never fit; -EAGAIN: other files are read now. */
static int hold(struct collect *c, uint64_t size)
{
	uint64_t max = c->in ? c->in->memory_max : 0, now;

	if (!max || size < SMALL_SIZE)
		return 0;
	if (size > max)
		return -ENOSPC;
	now = atomic_fetch_add_explicit(&reading, size, memory_order_relaxed) + size;
	/* The memory that this file already has is no reason to wait. */
	if (now <= max || now == c->held + size) {
		c->held += size;
		return 0;
	}
	atomic_fetch_sub_explicit(&reading, size, memory_order_relaxed);
	return -EAGAIN;
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
	rc = hold(c, eh->size);
	if (rc)
		return rc == -EAGAIN ? rc : 0;
	watch_expect(f->watch, eh->size);
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
	watch_expect(f->watch, eh->hdr.nr * sizeof(uint64_t));
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

/* Add the functions of one table; one that is too large is left out. 0 or -EAGAIN. */
static int add_table(struct collect *c, const struct elffile *f, uint32_t type, uint64_t bias)
{
	uint64_t size = table_size(f, type);
	int rc = hold(c, size);

	if (rc == -EAGAIN)
		return rc;
	if (!rc) {
		watch_expect(f->watch, size);
		rc = elfsym_add(&c->t, f, type, bias);
	}
	if (rc == -E2BIG)
		c->image->trouble = "too many symbols: not read";
	if (rc == -ENOSPC)
		c->image->trouble = "symbols are larger than --symbol-memory: not read";
	return 0;
}

/* Add the functions of a debug file opened with result @rc. 0 or -EAGAIN. */
static int add_debug_file(struct collect *c, int rc, struct elffile *debug, uint64_t bias)
{
	if (rc)
		return 0;
	rc = add_table(c, debug, SHT_SYMTAB, bias);
	debugfile_close(debug);
	return rc;
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
	rc = xz_cage_decode(packed, s->sh_size, &bytes, &size);
	free(packed);
	if (rc == -EFBIG)
		image->trouble = ".gnu_debugdata is too large";
	if (rc)
		return;
	if (!elffile_open(&inner, -1, bytes, size, NULL)) {
		elfsym_add(t, &inner, SHT_SYMTAB, 0);
		elffile_close(&inner);
	}
	free(bytes);
}

/* Add the functions of the debug file: by build-id, else by link. 0 or -EAGAIN. */
static int add_debug_files(struct collect *c, const struct elffile *f, const char **source)
{
	struct elffile debug;
	uint64_t bias = 0;
	int rc;

	watch_aside(f->watch, true);
	*source = "debug file";
	rc = add_debug_file(c, debugfile_open(f, &debug, &bias), &debug, bias);
	if (!rc && !c->t.nr) {
		*source = "debug link";
		rc = debugfile_open_link(f, DEBUGFILE_ROOT, &debug, &bias);
		rc = add_debug_file(c, rc, &debug, bias);
	}
	watch_aside(f->watch, false);
	return rc;
}

/*
 * Add all functions from the first source that has them: .symtab, the debug file (by
 * build-id, then by link), .gnu_debugdata, .gopclntab. A damaged table gives the
 * symbols before the damage. *source: NULL if none has them. 0 or -EAGAIN.
 */
static int add_all_functions(struct collect *c, const struct elffile *f, const char **source)
{
	int rc;

	*source = ".symtab";
	rc = add_table(c, f, SHT_SYMTAB, 0);
	if (!rc && !c->t.nr && c->in && !c->in->no_debug_files)
		rc = add_debug_files(c, f, source);
	if (rc || c->t.nr)
		return rc;
	*source = ".gnu_debugdata";
	add_debugdata(c->image, &c->t, f);
	if (c->t.nr)
		return 0;
	*source = ".gopclntab";
	elfgo_cage_add(&c->t, f);
	if (!c->t.nr)
		*source = NULL;
	return 0;
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
	int rc = add_all_functions(c, f, &image->source);

	if (rc)
		return rc;
	image->complete = image->source;
	rc = add_table(c, f, SHT_DYNSYM, 0);
	if (rc)
		return rc;
	if (!image->source)
		image->source = c->t.nr ? ".dynsym" : "none";
	if (!image->complete)
		elfv8_add(&c->t, f);
	elfplt_add(&c->t, f);
	bound_by_fdes(&c->t, image);
	return elfsym_finish(&c->t, f);
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

static int build(struct image **out, const struct elffile *f, const struct image_input *in,
		 struct err *e)
{
	struct image *image = calloc(1, sizeof(*image));
	struct collect c = { .image = image, .in = in };
	int rc = -ENOMEM;

	if (!image)
		goto fail;
	image->machine = f->machine;
	image->elf_class = f->elf_class;
	memcpy(image->build_id, f->build_id, sizeof(image->build_id));
	image->build_id_size = f->build_id_size;
	rc = read_segments(image, f);
	if (!rc && f->elf_class == ELFCLASS64)
		rc = read_eh_frame(&c, f);
	if (!rc)
		rc = read_symbols(&c, f);
	atomic_fetch_sub_explicit(&reading, c.held, memory_order_relaxed);
	if (rc)
		goto fail;
	elfsig_find(image, f);
	*out = image;
	return 0;
fail:
	image_free(image);
	return err_set(e, rc,
		       rc == -ENOEXEC ? "ELF file without loadable segments"
				      : "cannot read the ELF file");
}

int image_read(struct image **out, const struct image_input *in, struct err *e)
{
	struct elffile f;
	int rc = elffile_open_watched(&f, in->fd, in->size, in->watch, e);

	if (rc)
		return rc;
	f.path = in->path;
	rc = build(out, &f, in, e);
	elffile_close(&f);
	return rc;
}

int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e)
{
	const struct image_input in = { .fd = fd, .size = file_size };

	return image_read(out, &in, e);
}

int image_read_memory(struct image **out, const void *bytes, size_t size, struct err *e)
{
	struct elffile f;
	int rc = elffile_open(&f, -1, bytes, size, e);

	if (rc)
		return rc;
	rc = build(out, &f, NULL, e);
	elffile_close(&f);
	return rc;
}
