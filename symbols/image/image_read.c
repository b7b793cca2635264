// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An image from the parts of a file, in the sandbox; as one piece of bytes, checked when it comes
 * out; the messages.
 *
 * Runs in the sandbox. Missing or damaged parts beyond the headers give a smaller image, not an
 * error: segments alone still give names by address.
 */
#include "symbols/image/internal.h"

#include <assert.h>
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"

/*
 * An image as one piece of bytes without pointers, as it comes out of the sandbox: a head, then
 * segments, symbols, FDEs, names and the bytes of .eh_frame, each aligned.
 *
 * The bytes are foreign: all that look-ups rely on is checked when they are taken.
 *
 * Write an image as bytes, and take it back.
 *
 * Any thread. Names and .eh_frame are hostile in any image: they are checked where they are read.
 */

#define ALIGNMENT 16U

_Static_assert(OBJECT_SITES == IMAGE_SITES, "a number for each site");

/* A smaller .eh_frame is copied: to map it takes as long, and pages. */
#define MAPPED_MIN (32U << 10)

struct flat {
	uint64_t sigreturn, main_to, main_end, eh_vaddr, eh_size, names_size;
	uint64_t names_in_file;	    /* the names follow its bytes; 0: all are here */
	uint64_t eh_at, eh_in_file; /* the first bytes of .eh_frame, if they are there */
	uint32_t nr_segments, nr_symbols, nr_fdes, nr_refused, nr_cies, derived, guessed;
	uint32_t nr_tabled, nr_derived, nr_bare;
	uint32_t cies[EHFRAME_CIES_MAX]; /* offsets */
	uint32_t source, trouble;	 /* numbers of texts */
	uint16_t machine;
	uint8_t elf_class, sigreturn_size, complete, build_id_size, loop, thunks;
	char dialect;
	uint8_t build_id[20];
	struct image_sites sites;
};

/* Where the arrays are, from the begin of the head. */
struct places {
	uint64_t segments, symbols, fdes, names, eh, end;
};

/* The texts of images; the first one is none. */
static const char *const texts[] = {
	NULL,
	".symtab",
	"debug file",
	"debug link",
	".gnu_debugdata",
	".gopclntab",
	".dynsym",
	"none",
	IMAGE_TOO_MANY_SYMBOLS,
	IMAGE_TOO_LARGE,
	IMAGE_DEBUGDATA_TOO_LARGE,
};

static uint32_t number_of(const char *text)
{
	for (uint32_t i = 1; text && i < ARRAY_SIZE(texts); i++)
		if (!strcmp(texts[i], text))
			return i;
	return 0;
}

static uint64_t align(uint64_t at)
{
	return (at + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static struct places places_of(const struct flat *f)
{
	struct places p;

	p.segments = align(sizeof(*f));
	p.symbols = align(p.segments + f->nr_segments * sizeof(struct image_segment));
	p.fdes = align(p.symbols + f->nr_symbols * sizeof(struct image_symbol));
	p.names = align(p.fdes + f->nr_fdes * sizeof(uint64_t));
	p.eh = align(p.names + f->names_size);
	p.end = p.eh + f->eh_size - f->eh_in_file;
	return p;
}

/* Append @size bytes at @at bytes after @base. */
static void put_at(struct sandbox_reply *reply, size_t base, uint64_t at, const void *bytes,
		   size_t size)
{
	static const uint8_t zeros[ALIGNMENT];
	size_t here = reply->written + reply->size;

	sandbox_put(reply, zeros, (size_t)(base + at - here) % ALIGNMENT);
	sandbox_put(reply, bytes, size);
}

/*
 * Append @image; the reply before it is a multiple of 16 bytes. @may_map: the caller maps the file
 * for the bytes of .eh_frame.
 */
static void image_flat_put(struct sandbox_reply *reply, const struct image *image, bool may_map)
{
	const struct ehframe *eh = &image->eh;
	bool maps = may_map && eh->in_file >= MAPPED_MIN;
	struct flat f = {
		.sigreturn = image->sigreturn,
		.main_to = image->main_to,
		.main_end = image->main_end,
		.thunks = image->thunks,
		.sites = image->sites,
		.eh_vaddr = eh->vaddr,
		.eh_size = eh->size,
		.eh_at = maps ? eh->file_at : 0,
		.eh_in_file = maps ? eh->in_file : 0,
		.names_size = image->names_size - image->names_in_file,
		.names_in_file = image->names_in_file,
		.nr_segments = image->nr_segments,
		.nr_symbols = image->nr_symbols,
		.nr_fdes = image->eh.nr_fdes,
		.nr_refused = image->eh.nr_refused,
		.nr_tabled = image->nr_tabled,
		.nr_derived = image->nr_derived,
		.nr_bare = image->nr_bare,
		.derived = image->eh.derived,
		.guessed = image->eh.guessed,
		.source = number_of(image->source),
		.trouble = number_of(image->trouble),
		.machine = image->machine,
		.elf_class = image->elf_class,
		.sigreturn_size = image->sigreturn_size,
		.complete = image->complete,
		.loop = image->loop,
		.dialect = image->dialect,
		.build_id_size = image->build_id_size,
	};
	struct places p = places_of(&f);
	size_t base = reply->written + reply->size;

	f.nr_cies = ehframe_cies(&image->eh, f.cies);
	memcpy(f.build_id, image->build_id, sizeof(f.build_id));
	put_at(reply, base, 0, &f, sizeof(f));
	put_at(reply, base, p.segments, image->segments,
	       image->nr_segments * sizeof(*image->segments));
	put_at(reply, base, p.symbols, image->symbols, image->nr_symbols * sizeof(*image->symbols));
	put_at(reply, base, p.fdes, image->eh.fdes, image->eh.nr_fdes * sizeof(*image->eh.fdes));
	put_at(reply, base, p.names, image->names, f.names_size);
	put_at(reply, base, p.eh, eh->bytes + f.eh_in_file, eh->size - f.eh_in_file);
}

static bool sites_ok(const struct image_sites *sites)
{
	/* A bool has two values. */
	return ((const uint8_t *)sites)[offsetof(struct image_sites, cut)] <= 1 &&
	       sites->shift < 64;
}

/* Test the numbers of the head. @file_size: of a file that may be mapped; 0: it may not. */
static bool head_ok(const struct flat *f, uint64_t file_size)
{
	return f->nr_segments && f->nr_segments <= ELFFILE_PHDRS_MAX &&
	       f->nr_symbols <= 2 * ELFSYM_SYMBOLS_MAX && f->nr_fdes <= EHFRAME_FDES_MAX &&
	       f->nr_cies <= EHFRAME_CIES_MAX && f->names_size <= 2UL * ELFSYM_NAMES_MAX &&
	       (!f->names_in_file || f->names_in_file == file_size) && f->eh_size <= UINT32_MAX &&
	       (f->eh_size || !f->nr_fdes) && f->eh_in_file <= f->eh_size &&
	       f->eh_in_file <= file_size && f->eh_at <= file_size - f->eh_in_file &&
	       f->build_id_size <= sizeof(f->build_id) && f->source &&
	       f->source < ARRAY_SIZE(texts) && f->trouble < ARRAY_SIZE(texts) &&
	       f->complete <= 1 && sites_ok(&f->sites) &&
	       (!f->eh_size ||
		(f->elf_class == ELFCLASS64 &&
		 (f->machine == EM_X86_64 || f->machine == EM_AARCH64)) ||
		(f->elf_class == ELFCLASS32 && f->machine == EM_386));
}

static bool segments_ok(const uint8_t *bytes, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct image_segment *s = (const void *)(bytes + i * sizeof(*s));

		/* A bool has two values. */
		if (bytes[i * sizeof(*s) + offsetof(struct image_segment, exec)] > 1 ||
		    s->file_size > s->mem_size || s->file_size > UINT64_MAX - s->offset ||
		    s->mem_size > UINT64_MAX - s->vaddr)
			return false;
	}
	return true;
}

static bool symbols_ok(const uint8_t *bytes, uint32_t nr, uint64_t names_size)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct image_symbol *s = (const void *)(bytes + i * sizeof(*s));

		if (bytes[i * sizeof(*s) + offsetof(struct image_symbol, stub)] > 1 ||
		    s->name >= names_size || s->back > MIN(i, IMAGE_NESTED_MAX) || s->whole > nr ||
		    (i && s->vaddr <= before) || s->size > UINT64_MAX - s->vaddr)
			return false;
		before = s->vaddr;
	}
	return true;
}

static bool fdes_ok(const uint64_t *fdes, uint32_t nr, uint64_t eh_size)
{
	for (uint32_t i = 0; i < nr; i++)
		if ((uint32_t)fdes[i] >= eh_size || (i && fdes[i] >> 32 < fdes[i - 1] >> 32))
			return false;
	return true;
}

static bool is_valid(const struct flat *f, const uint8_t *bytes, size_t size, uint64_t file_size)
{
	struct places p;

	if (!head_ok(f, file_size))
		return false;
	p = places_of(f);
	return p.end == size && (!f->names_size || !bytes[p.names + f->names_size - 1]) &&
	       segments_ok(bytes + p.segments, f->nr_segments) &&
	       symbols_ok(bytes + p.symbols, f->nr_symbols, f->names_in_file + f->names_size) &&
	       fdes_ok((const void *)(bytes + p.fdes), f->nr_fdes, f->eh_size);
}

/* Copy small answers to pages of their own, which go back to the kernel whole. */
static int to_pages(struct sandbox_answer *a)
{
	void *pages;

	if (a->mapped || !a->size)
		return 0;
	pages = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	memcpy(pages, a->bytes, a->size);
	free(a->bytes);
	a->bytes = pages;
	a->mapped = true;
	return 0;
}

/*
 * A page of a mapped file that is not in the file any more, since it became shorter, is zeros from
 * now on: the records of its image end there.
 */
static void on_bus_error(int signal_nr, siginfo_t *info, void *context)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *at = (void *)((uintptr_t)info->si_addr & ~(page - 1));

	(void)context;
	/* Another error, as of the memory itself: the instruction runs again, and ends the process.
	 */
	if (info->si_code != BUS_ADRERR ||
	    mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(signal_nr, SIG_DFL);
}

/*
 * Map @size bytes of the file @fd from @from on, and append @nr_more bytes: return the first one.
 * NULL: out of memory, or the file is shorter.
 */
static void *map_part(struct image_pages *pages, int fd, uint64_t from, uint64_t size,
		      const uint8_t *more, uint64_t nr_more)
{
	const struct sigaction act = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = from % page;
	uint64_t end = before + size, whole = end & ~(page - 1);
	uint8_t *at;

	sigaction(SIGBUS, &act, NULL);
	/* A byte more: the last name ends, whatever is in the file. */
	at = mmap(NULL, end + nr_more + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return NULL;
	*pages = (struct image_pages){ at, end + nr_more + 1 };
	if (whole && mmap(at, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
			  (off_t)(from - before)) == MAP_FAILED)
		return NULL;
	if (pread(fd, at + whole, end - whole, (off_t)(from - before + whole)) !=
	    (ssize_t)(end - whole))
		return NULL;
	memcpy(at + end, more, nr_more);
	return at + before;
}

/* Map the parts that the image has left in the file @fd, in front of the bytes at @p. False: as
 * map_part().
 */
static bool map_parts(struct image *image, const struct flat *f, const struct places *p, int fd,
		      const uint8_t *bytes)
{
	if (f->names_in_file) {
		image->names = map_part(&image->name_pages, fd, 0, f->names_in_file,
					bytes + p->names, f->names_size);
		image->names_in_file = f->names_in_file;
	}
	if (f->eh_in_file) {
		image->eh.bytes = map_part(&image->frames, fd, f->eh_at, f->eh_in_file,
					   bytes + p->eh, f->eh_size - f->eh_in_file);
		image->eh.file_at = f->eh_at;
		image->eh.in_file = f->eh_in_file;
	}
	return (!f->names_in_file || image->names) && (!f->eh_in_file || image->eh.bytes);
}

/* Point the image at its bytes. 0, -ENOMEM, or -EIO: bytes of the file are not there. */
static int point(struct image *image, const struct flat *f, int fd, uint8_t *bytes)
{
	struct places p = places_of(f);
	bool ok;

	image->machine = f->machine;
	image->elf_class = f->elf_class;
	image->sigreturn = f->sigreturn;
	image->main_to = f->main_to;
	image->main_end = f->main_end;
	image->sigreturn_size = f->sigreturn_size;
	image->source = texts[f->source];
	image->trouble = texts[f->trouble];
	image->complete = f->complete;
	image->loop = f->loop;
	image->thunks = f->thunks;
	image->sites = f->sites;
	image->dialect = f->dialect;
	memcpy(image->build_id, f->build_id, sizeof(image->build_id));
	image->build_id_size = f->build_id_size;
	image->segments = (struct image_segment *)(void *)(bytes + p.segments);
	image->nr_segments = f->nr_segments;
	image->symbols = (struct image_symbol *)(void *)(bytes + p.symbols);
	image->nr_symbols = f->nr_symbols;
	image->nr_tabled = f->nr_tabled;
	image->nr_derived = f->nr_derived;
	image->nr_bare = f->nr_bare;
	image->names = (char *)bytes + p.names;
	image->names_size = f->names_in_file + f->names_size;
	image->eh.bytes = bytes + p.eh;
	ok = map_parts(image, f, &p, fd, bytes);
	if (!f->eh_size)
		image->eh.bytes = NULL;
	if (!ok || !f->eh_size)
		return ok ? 0 : -EIO;
	image->eh.machine = f->machine;
	image->eh.vaddr = f->eh_vaddr;
	image->eh.size = f->eh_size;
	image->eh.fdes = (uint64_t *)(void *)(bytes + p.fdes);
	image->eh.nr_fdes = f->nr_fdes;
	image->eh.nr_refused = f->nr_refused;
	image->eh.derived = f->derived;
	image->eh.guessed = f->guessed;
	return ehframe_meet(&image->eh, f->cies, f->nr_cies);
}

/*
 * Make an image of the bytes from @at on, which it owns: *@a is empty then. The caller frees *@a
 * after an error. @fd: of the file, of which parts are mapped if @file_size is not 0. 0, -EBADMSG,
 * -ENOMEM or -EIO.
 */
static int image_flat_take(struct image **out, struct sandbox_answer *a, size_t at, int fd,
			   uint64_t file_size)
{
	struct image *image;
	struct flat f;
	int rc;

	if (a->size < at || a->size - at < sizeof(f) || at % ALIGNMENT)
		return -EBADMSG;
	memcpy(&f, a->bytes + at, sizeof(f));
	if (!is_valid(&f, a->bytes + at, a->size - at, file_size))
		return -EBADMSG;
	rc = to_pages(a);
	image = rc ? NULL : calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->block = a->bytes;
	image->block_size = a->size;
	rc = point(image, &f, fd, a->bytes + at);
	*a = (struct sandbox_answer){ 0 };
	if (rc) {
		image_free(image);
		return rc;
	}
	*out = image;
	return 0;
}

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
	bool borrowed;	     /* its bytes are in a mapped file */
	bool joined;	     /* with others */
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
	} else if (section && f->elf_class == ELFCLASS64 && !(section->sh_flags & SHF_COMPRESSED) &&
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
	if (!eh->borrowed)
		free(*bytes);
	eh->borrowed = false;
	eh->joined = true;
	*bytes = both;
	eh->size = size;
	eh->hdr.nr = 0; /* the table does not have the records added */
	return 0;
}

/* An image in the making. */
struct image_read_collect {
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
static int copy_eh_frame(struct image_read_collect *c, const struct elffile *f, struct eh_place *eh,
			 void **bytes)
{
	void *fit;
	int rc;

	*bytes = NULL;
	if (!find_eh_frame(c->image, f, eh))
		return 0;
	if (!fits(c->in, eh->size))
		return 0;
	*bytes = (void *)(uintptr_t)elffile_mapped(f, eh->offset, eh->size);
	eh->borrowed = *bytes;
	rc = *bytes ? 0 : elffile_read_alloc(f, eh->offset, eh->size, bytes);
	if (rc) {
		*bytes = NULL;
		return rc == -ENOMEM ? rc : 0;
	}
	if (eh->to_segment_end) {
		eh->size = records_end(*bytes, eh->size);
		fit = eh->borrowed ? NULL : realloc(*bytes, eh->size + 1);
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

/* Note which bytes of the index @to are as in the file. */
static void note_file(struct ehframe *to, const struct eh_place *eh)
{
	to->borrowed = eh->borrowed;
	to->file_at = eh->offset;
	to->in_file = eh->joined ? 0 : eh->size;
}

/* Copy the unwind tables; an object without them is valid. */
static int read_eh_frame(struct image_read_collect *c, const struct elffile *f)
{
	struct image *image = c->image;
	struct eh_place eh = { 0 };
	void *bytes;
	int rc = copy_eh_frame(c, f, &eh, &bytes);

	if (!rc)
		rc = add_debug_frame(image, f, &eh, &bytes);
	if (!rc && bytes) {
		rc = index_by_table(image, f, &eh, bytes);
		if (rc == -EBADMSG)
			rc = ehframe_init(&image->eh, bytes, eh.size, eh.vaddr, image->machine);
		if (rc)
			image->eh = (struct ehframe){ 0 };
		else
			note_file(&image->eh, &eh);
	}
	if (!image->eh.bytes && !eh.borrowed)
		free(bytes);
	return rc == -ENOMEM ? rc : 0;
}

/* Return the bytes to read for the tables of @type. */
static uint64_t table_size(const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type);
	uint64_t names = s && s->sh_link < f->nr_shdrs ? f->shdrs[s->sh_link].sh_size : 0;

	return s ? MIN(s->sh_size, f->size) + MIN(names, f->size) : 0;
}

/* Note that the names from @at on are as in the file, if it may be mapped. */
static void note_names(struct image_read_collect *c, const struct elffile *f, uint32_t type,
		       uint64_t at)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type), *names;
	struct image *image = c->image;

	if (f != c->in->file || !c->in->may_map || c->t.names_size == at ||
	    image->nr_strings == ARRAY_SIZE(image->strings))
		return;
	names = &f->shdrs[s->sh_link];
	if (names->sh_size)
		image->strings[image->nr_strings++] =
			(struct image_strings){ at, names->sh_size, names->sh_offset };
}

/* Add the functions of one table; one that is too large is left out. */
static void add_table(struct image_read_collect *c, const struct elffile *f, uint32_t type,
		      uint64_t bias)
{
	uint64_t at = c->t.names_size;
	int rc = fits(c->in, table_size(f, type)) ? elfsym_add(&c->t, f, type, bias) : -ENOSPC;

	note_names(c, f, type, at);
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
static const char *add_all_functions(struct image_read_collect *c, const struct elffile *f)
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
			s->size = (uint32_t)MIN(fde.start + fde.size - s->vaddr, UINT32_MAX);
	}
}

/*
 * Return the letter of a compiler with names that could be of C, as demangler_want() has it. It
 * shows by a function that it makes. 0: none.
 */
static char dialect_of(const struct elfsym *t)
{
	static const struct {
		const char *function;
		char dialect;
	} marks[] = { { "hs_main", 'h' }, { "adainit", 'a' }, { "NimMain", 'n' } };

	for (uint32_t i = 0; i < t->nr; i++) {
		const char *name = t->names + t->symbols[i].name;

		for (size_t k = 0; k < ARRAY_SIZE(marks) && !t->symbols[i].stub; k++)
			if (name[0] == marks[k].function[0] && !strcmp(name, marks[k].function))
				return marks[k].dialect;
		/* GnuCOBOL: "PROGRAM__ID_module_init". */
		if (isupper((unsigned char)name[0]) && strstr(name, "_module_init"))
			return 'c';
	}
	return 0;
}

/* Collect symbols: all functions if a source has them, exported functions, stubs. */
static int collect_symbols(struct image_read_collect *c, const struct elffile *f)
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
	elfcode_add(&c->t, f, &image->eh);
	image->loop = elfloop_find(&c->t, image->complete || c->in->recorded ? NULL : f);
	image->dialect = dialect_of(&c->t);
	rc = image->loop && image->eh.nr_fdes ? elfloop_add_parts(&c->t, f, &image->eh) : 0;
	bound_by_fdes(&c->t, image);
	return rc ? rc : elfsym_finish(&c->t, f);
}

/* Make @name, an offset in the names, one in the file if it is there. */
static bool is_in_file(const struct image *image, uint32_t *name)
{
	for (uint32_t i = 0; i < image->nr_strings; i++) {
		const struct image_strings *s = &image->strings[i];

		if (*name - s->at < s->size) {
			*name = (uint32_t)(*name - s->at + s->file_at);
			return true;
		}
	}
	return false;
}

/*
 * Move the names in use together: a string table has the names of variables as well, and both
 * symbol tables most functions. Linear: a name that begins within another one is not copied again.
 * Names in a file that is mapped stay there, in front of all others: @file_size, or 0. False: out
 * of memory, nothing has changed.
 */
static bool drop_unused_names(struct image *image, uint64_t file_size)
{
	size_t nr_words = image->names_size / 64 + 1, end = 0, size = 0;
	uint64_t *starts = calloc(nr_words, sizeof(*starts));
	uint32_t *before = calloc(nr_words, sizeof(*before));
	uint32_t *to = calloc(image->nr_symbols + 1ull, sizeof(*to)), nr = 0, name;
	bool ok = starts && before && to;

	for (uint32_t i = 0; ok && i < image->nr_symbols; i++) {
		name = image->symbols[i].name;
		if (!is_in_file(image, &name))
			starts[name / 64] |= 1ULL << name % 64;
	}
	for (size_t w = 0; ok && w < nr_words; w++) {
		before[w] = nr;
		for (uint64_t bits = starts[w]; bits; bits &= bits - 1) {
			size_t at = w * 64 + (size_t)__builtin_ctzll(bits), length;

			if (at >= end) {
				length = strlen(image->names + at) + 1;
				memmove(image->names + size, image->names + at, length);
				end = at + length;
				size += length;
			}
			to[nr++] = (uint32_t)(file_size + size - (end - at));
		}
	}
	for (uint32_t i = 0; ok && i < image->nr_symbols; i++) {
		uint32_t *n = &image->symbols[i].name;

		if (!is_in_file(image, n))
			*n = to[before[*n / 64] +
				(uint32_t)__builtin_popcountll(starts[*n / 64] &
							       ((1ULL << *n % 64) - 1))];
	}
	if (ok)
		image->names_size = size;
	free(starts);
	free(before);
	free(to);
	return ok;
}

/* Read the symbols of the image. */
static int read_symbols(struct image_read_collect *c, const struct elffile *f)
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
	/* Else names_in_file() does it, when all look-ups are done. */
	if (!image->nr_strings)
		drop_unused_names(image, 0);
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
	struct image_read_collect c = { .image = image, .in = in };
	const struct elffile *f = in->file;
	int rc;

	image->machine = f->machine;
	image->elf_class = f->elf_class;
	memcpy(image->build_id, f->build_id, sizeof(image->build_id));
	image->build_id_size = f->build_id_size;
	rc = read_segments(image, f);
	if (!rc && (f->elf_class == ELFCLASS64 || f->machine == EM_386))
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

	assert(out && (bytes || !size));
	if (rc)
		return rc;
	rc = image_build(out, &(struct image_parts){ .file = &f });
	if (!rc)
		elfsig_find(*out, &f);
	elffile_close(&f);
	return rc ? explain(rc, e) : 0;
}

/*
 * The messages between image_read() and its worker. Both have the same program.
 */

enum image_file { IMAGE_OBJECT, IMAGE_DEBUG };

/* The image follows (struct image_flat). */
struct image_answer {
	_Alignas(16) uint32_t match;  /* enum debugfile_match; another file: no image follows */
	struct debugfile_names names; /* of the object */
};

_Static_assert(sizeof(struct image_answer) % 16 == 0, "the image is aligned");

/*
 * Build an image from the parts of its file that are there, and name the missed ones.
 *
 * Runs in the worker, or in the thread of the call.
 */

/* An image that waits for the code of its signal return, which its symbols have shown. */
struct kept {
	struct image *image;
	uint64_t serial;
};

/* Atomic for the calling threads of programs without a sandbox; relaxed would do in a worker. */
static _Atomic(struct kept *) kept;

/*
 * Take the kept image if it is the one of @serial; else it is freed. @f is its file, which was
 * mapped elsewhere before.
 */
static struct image *take_kept(uint64_t serial, const struct elffile *f)
{
	struct kept *k = atomic_exchange(&kept, NULL);
	struct image *image = k && k->serial == serial ? k->image : NULL;

	if (image && image->eh.borrowed)
		image->eh.bytes = elffile_mapped(f, image->eh.file_at, image->eh.size);
	if (image && image->eh.nr_fdes && !image->eh.bytes)
		image = NULL;
	if (k && !image)
		image_free(k->image);
	free(k);
	return image;
}

/* Keep @image, or free it. */
static void keep(struct image *image, uint64_t serial)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k) {
		image_free(image);
		return;
	}
	*k = (struct kept){ image, serial };
	k = atomic_exchange(&kept, k);
	if (k)
		image_free(k->image);
	free(k);
}

/* Build the image of the open files, but for the signal return. */
static int build(struct elf_sandbox_serve *v, const struct image_request *r, bool debug,
		 struct image_answer *a, struct image **image)
{
	struct image_parts parts = {
		.file = &v->file[IMAGE_OBJECT],
		.by_link = r->by_link,
		.memory_max = r->memory_max,
		/* Offsets in it have 32 bits, with the other names behind it. */
		.may_map = r->may_map && v->file[IMAGE_OBJECT].size <= INT32_MAX,
		.recorded = r->recorded,
	};

	debugfile_names(&a->names, parts.file);
	if (debug)
		a->match = debugfile_match(parts.file, &v->file[IMAGE_DEBUG], r->by_link,
					   &parts.debug_bias);
	if (a->match == DEBUGFILE_CRC_DECIDES && r->same_crc)
		a->match = DEBUGFILE_SAME;
	if (a->match == DEBUGFILE_SAME)
		parts.debug = &v->file[IMAGE_DEBUG];
	/* For another debug file there is an image already. */
	if (debug && !parts.debug)
		return 0;
	*image = take_kept(r->serial, parts.file);
	return *image ? 0 : image_build(image, &parts);
}

/* Return whether the rows of @vaddr are of this image, not of another one of the same file. */
static bool is_chosen(const struct image *image, const struct derive_choice *choice, uint64_t vaddr)
{
	unsigned int site = image_site(image, vaddr);

	return site == IMAGE_SITES || choice->sites[site / 64] >> site % 64 & 1;
}

/*
 * Count the functions with unwind tables and with derived rows, which a stripped file has too, and
 * the named ones with neither. Entries and symbols are in order.
 */
static void count_tables(struct image *image, const struct derive_choice *choice)
{
	const struct ehframe *eh = &image->eh;
	struct ehframe_fde fde = { .size = 0 };
	uint32_t i = 0, read = 0;

	for (uint32_t k = 0; k < image->nr_symbols; k++) {
		uint64_t vaddr = image->symbols[k].vaddr;

		while (i < eh->nr_fdes && ehframe_start(eh, i) <= vaddr)
			i++;
		if (read != i && !ehframe_at(eh, i - 1, &fde))
			fde.size = 0;
		read = i;
		image->nr_bare += !image->symbols[k].stub && vaddr - fde.start >= fde.size;
		image->sites.named += !image->symbols[k].stub && vaddr - fde.start < fde.size &&
				      is_chosen(image, choice, vaddr);
	}
	for (i = 0; i < eh->nr_fdes; i++) {
		uint32_t offset = (uint32_t)eh->fdes[i];

		if (eh->derived && offset >= eh->derived)
			image->nr_derived += is_chosen(image, choice, ehframe_start(eh, i));
		else
			image->nr_tabled++;
	}
}

/* Leave the names to the file of @size bytes, which is mapped. The image is of no use here then. */
static void names_in_file(struct image *image, uint64_t size)
{
	if (!image->nr_strings || !drop_unused_names(image, size))
		return;
	/* The last name ends before the end. */
	image->names[image->names_size++] = 0;
	image->names_in_file = size;
	image->names_size += size;
}

/* Find the signal return and derive tables, or keep the image until its code is there. */
static void finish(struct elf_sandbox_serve *v, const struct image_request *r, struct image **image)
{
	struct derive_choice choice = { .visits_max = r->visits_max, .alone = r->alone };

	if (elf_sandbox_serve_misses(v) || !*image)
		return;
	elfsig_find(*image, &v->file[IMAGE_OBJECT]);
	memcpy(choice.sites, r->sites, sizeof(choice.sites));
	derive_image(*image, &v->file[IMAGE_OBJECT], r->chooses ? &choice : NULL);
	if (elf_sandbox_serve_misses(v)) {
		keep(*image, r->serial);
		*image = NULL;
		return;
	}
	count_tables(*image, &choice);
	if (r->alone)
		(*image)->nr_symbols = (*image)->nr_strings = (*image)->names_size = 0;
	names_in_file(*image, v->file[IMAGE_OBJECT].size);
}

static int serve_files(struct elf_sandbox_serve *v, struct sandbox_call *c, const void *request)
{
	const struct image_request *r = request;
	struct image *image = NULL;
	struct image_answer a = { .match = DEBUGFILE_OTHER };
	int rc = elf_sandbox_serve_open(v, c, IMAGE_OBJECT);
	bool debug;

	/* Go on without a debug file that cannot be opened. */
	debug = !rc && c->fds[IMAGE_DEBUG] >= 0 && !elf_sandbox_serve_open(v, c, IMAGE_DEBUG);
	if (!rc)
		rc = build(v, r, debug, &a, &image);
	if (!rc)
		finish(v, r, &image);
	rc = elf_sandbox_serve_begin(v, c, rc);
	if (!rc && !elf_sandbox_serve_misses(v)) {
		sandbox_put(&c->reply, &a, sizeof(a));
		if (image)
			image_flat_put(&c->reply, image, r->may_map);
	}
	image_free(image);
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct image_request r;

	return elf_sandbox_serve_call(c, &r, sizeof(r), serve_files);
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = SANDBOX_IMAGE + (nr), .name = "proftop-image", .serve = serve,             \
		.memory_max = 8ULL << 30, .reply_max = 2UL << 30, .map_reply = true,               \
	}

const struct sandbox_reader image_readers[IMAGE_READERS] = { READER(0), READER(1), READER(2),
							     READER(3) };

/*
 * The file of an object: where it is, and how it is opened.
 *
 * Runs on: a helper.
 */

void load_where_fini(struct load_where *w)
{
	free(w->seen.path);
	free(w->root);
	w->seen.path = w->root = NULL;
}

bool load_is_of_image(const struct load_where *w, const uint8_t *build_id, size_t size)
{
	return !w->build_id_size ||
	       (size == w->build_id_size && !memcmp(build_id, w->build_id, size));
}

int load_open(const struct load_where *w, struct watch *watch, struct untrusted_file *out)
{
	const struct object_identity *id = &w->identity;
	struct untrusted_want want = {
		.pid = w->seen.pid,
		.start = w->seen.start,
		.end = w->seen.end,
		.path = w->seen.path && *w->seen.path ? w->seen.path : NULL,
		.root = w->root,
		.maj = id->maj,
		.min = id->min,
		.ino = id->ino,
		.generation = w->seen.generation,
	};
	int rc = watch_begin(watch);

	if (rc)
		return rc;
	/* As perf: the file of the recording, then the one with its name. */
	if (w->recorded && !w->root && id->build_id_size &&
	    !buildidcache_open(id->build_id, id->build_id_size, out)) {
		watch_end(watch, 0);
		return 0;
	}
	rc = untrusted_open(&want, out, NULL);
	/* Another file, perhaps with the same contents: compare the build-id. */
	if (rc == -ESTALE && id->build_id_size && w->seen.pid <= 0) {
		want.ino = 0;
		rc = untrusted_open(&want, out, NULL);
	}
	watch_end(watch, 0);
	return rc;
}

/*
 * Read an image: the bytes of the file by elf.c, their meaning in the sandbox.
 *
 * Runs on: a helper.
 */

static atomic_ullong last_serial; /* relaxed */

struct image_sandbox_reading {
	const struct image_input *in;
	struct elf_sandbox *files;
	bool by_link, same_crc;
	int mapped_fd;	      /* the file, if it may be mapped here; else -1 */
	uint64_t mapped_size; /* 0: it may not */
	struct image_answer answer;
};

/* Check the head of an answer. */
static int take_head(struct image_sandbox_reading *r, const struct sandbox_answer *a)
{
	struct image_answer *head = &r->answer;
	struct debugfile_names *n = &head->names;

	if (a->size < ELF_SANDBOX_ANSWER + sizeof(*head))
		return -EBADMSG;
	memcpy(head, a->bytes + ELF_SANDBOX_ANSWER, sizeof(*head));
	if (n->build_id_size > sizeof(n->build_id) || !memchr(n->link, 0, sizeof(n->link)) ||
	    (n->link[0] && !debugfile_link_ok(n->link)))
		return -EBADMSG;
	return 0;
}

/* Call the worker. 0 (the caller frees the answer), or -errno. */
static int ask(struct image_sandbox_reading *r, struct sandbox_answer *a)
{
	struct image_request request = {
		.serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1,
		.memory_max = r->in->memory_max,
		.by_link = r->by_link,
		.same_crc = r->same_crc,
		.may_map = r->mapped_size != 0,
		.recorded = r->in->recorded,
		.chooses = r->in->choice != NULL,
		.alone = r->in->choice && r->in->choice->alone,
	};
	const struct sandbox_reader *reader =
		&image_readers[sandbox_idle(SANDBOX_IMAGE, SANDBOX_IMAGE_LAST) - SANDBOX_IMAGE];
	int rc;

	if (r->in->choice) {
		request.visits_max = r->in->choice->visits_max;
		memcpy(request.sites, r->in->choice->sites, sizeof(request.sites));
	}
	rc = elf_sandbox_ask(r->files, reader, &request, sizeof(request), a);
	if (rc)
		return rc;
	if (!take_head(r, a))
		return 0;
	sandbox_answer_free(a);
	return elf_sandbox_refuse(r->files);
}

/* Take the image of an answer, which is freed. */
static int take_image(struct image_sandbox_reading *r, struct sandbox_answer *a, struct image **out)
{
	int rc = image_flat_take(out, a, ELF_SANDBOX_ANSWER + sizeof(struct image_answer),
				 r->mapped_fd, r->mapped_size);

	sandbox_answer_free(a);
	return rc == -EBADMSG ? elf_sandbox_refuse(r->files) : rc;
}

static bool is_from_debug_file(const struct image *image)
{
	return !strcmp(image->source, "debug file") || !strcmp(image->source, "debug link");
}

/* Without a build-id the CRC decides: if it is the one of the link, call again. */
static int compare_crc(struct image_sandbox_reading *r, int fd, uint64_t size,
		       struct sandbox_answer *a)
{
	uint32_t crc;
	int rc = size > DEBUGFILE_CRC_MAX
			 ? -EFBIG
			 : debugfile_crc(fd, size, r->in->watch, DEBUGFILE_CRC_NS, &crc);

	if (rc == -EAGAIN)
		return rc;
	if (rc || crc != r->answer.names.crc)
		return 0;
	sandbox_answer_free(a);
	r->same_crc = true;
	return ask(r, a);
}

/* Read the image again with the debug file @fd. NULL: of another object, or without functions. */
static int read_with(struct image_sandbox_reading *r, int fd, uint64_t size, struct image **out)
{
	struct sandbox_answer a = { 0 };
	int rc = elf_sandbox_open(r->files, IMAGE_DEBUG, fd, size);

	r->same_crc = false;
	if (!rc)
		rc = ask(r, &a);
	if (!rc && r->answer.match == DEBUGFILE_CRC_DECIDES)
		rc = compare_crc(r, fd, size, &a);
	if (!rc && r->answer.match == DEBUGFILE_SAME)
		rc = take_image(r, &a, out);
	sandbox_answer_free(&a);
	elf_sandbox_close(r->files, IMAGE_DEBUG);
	if (!rc && *out && !is_from_debug_file(*out)) {
		image_free(*out);
		*out = NULL;
	}
	return rc;
}

/*
 * Replace @image by one with the functions of its debug file: by build-id, else by link. 0, or
 * -EAGAIN; after other errors the image is as before.
 */
static int add_debug_file(struct image_sandbox_reading *r, struct image **image)
{
	const struct debugfile_names names = r->answer.names;
	const struct debugfile_where where = { DEBUGFILE_ROOT, r->in->path, r->in->pid,
					       r->in->root,    r->in->fd,   r->in->watch };
	struct image *better = NULL;
	struct untrusted_file file;
	int rc = 0;

	watch_aside(r->in->watch, true);
	for (unsigned int i = 0; rc != -ERANGE && rc != -EAGAIN && !better; i++) {
		rc = debugfile_try(&names, i, &where, &file, &r->by_link);
		if (rc)
			continue;
		rc = read_with(r, file.fd, file.size, &better);
		close(file.fd);
	}
	watch_aside(r->in->watch, false);
	if (better) {
		image_free(*image);
		*image = better;
	}
	return rc == -EAGAIN ? rc : 0;
}

/* Get mount, device, inode and owner of a file; false: unknown. */
static bool mount_of(int fd, struct statx *out)
{
	return !statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO | STATX_UID, out) &&
	       out->stx_mask & STATX_MNT_ID;
}

static bool is_same_device(const struct statx *a, const struct statx *b)
{
	return a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

/* Open the file of @fd by the mount of @folder, which is of the same file system. -1: no right. */
static int open_there(int fd, int folder)
{
	struct file_handle *handle = malloc(sizeof(*handle) + MAX_HANDLE_SZ);
	int found = -1, mount;

	if (!handle)
		return -1;
	handle->handle_bytes = MAX_HANDLE_SZ;
	if (!name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH))
		found = open_by_handle_at(folder, handle, O_RDONLY | O_CLOEXEC);
	free(handle);
	return found;
}

/*
 * Return a descriptor of the file of @fd by the mount of the root folder: another mount could not
 * be unmounted while its file is mapped. A process in a mount namespace, or with a bind mount, has
 * files of the same file system by another one. -1: it is not on that file system, or may not be
 * opened so. The caller closes it.
 */
static int open_on_root(int fd)
{
	int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = -1;
	struct statx root, file, there;

	if (folder < 0)
		return -1;
	if (mount_of(folder, &root) && mount_of(fd, &file) && is_same_device(&root, &file))
		found = root.stx_mnt_id == file.stx_mnt_id ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
							   : open_there(fd, folder);
	close(folder);
	if (found < 0 || (mount_of(found, &there) && there.stx_mnt_id == root.stx_mnt_id &&
			  is_same_device(&there, &root) && there.stx_ino == file.stx_ino &&
			  !there.stx_uid)) /* an id-mapped mount may show another owner */
		return found;
	close(found);
	return -1;
}

static int read_image(struct image_sandbox_reading *r, struct image **image)
{
	struct sandbox_answer a = { 0 };
	const struct elf_sandbox_file *file = &r->files->files[IMAGE_OBJECT];
	int rc = elf_sandbox_open(r->files, IMAGE_OBJECT, r->in->fd, r->in->size);

	if (!rc && file->stable)
		r->mapped_fd = open_on_root(r->in->fd);
	if (r->mapped_fd >= 0)
		r->mapped_size = r->in->size;
	if (!rc)
		rc = ask(r, &a);
	if (!rc)
		rc = take_image(r, &a, image);
	if (!rc && !r->in->no_debug_files && strcmp((*image)->source, ".symtab") != 0)
		rc = add_debug_file(r, image);
	return rc;
}

/* Note the sites that were derived. */
static void note_sites(struct image *image, const struct derive_choice *choice)
{
	if (choice && image->sites.cut)
		image->done = malloc(sizeof(choice->sites));
	image->sites.cut = image->done;
	if (image->done)
		memcpy(image->done, choice->sites, sizeof(choice->sites));
}

int image_read(struct image **out, const struct image_input *in, struct err *e)
{
	struct image_sandbox_reading r = { .in = in, .files = elf_sandbox_new(), .mapped_fd = -1 };
	struct image *image = NULL;
	int rc = -ENOMEM;

	if (r.files) {
		r.files->watch = in->watch;
		r.files->memory_max = in->memory_max;
		r.files->copied = in->copied;
		rc = read_image(&r, &image);
		elf_sandbox_free(r.files);
	}
	if (r.mapped_fd >= 0)
		close(r.mapped_fd);
	if (rc) {
		image_free(image);
		return err_set(e, rc, "cannot read the ELF file");
	}
	note_sites(image, in->choice);
	*out = image;
	return 0;
}

int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e)
{
	const struct image_input in = { .fd = fd, .size = file_size };

	return image_read(out, &in, e);
}
