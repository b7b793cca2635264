/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files: headers, symbols, unwind tables, debug files, from bounded bytes.
 *
 * The caller owes: bytes that do not change during a call (a copy or a checked mapping); a worker
 * of the sandbox for foreign bytes.
 *
 * The room does: finds its parts, within limits, in the order of the ELF and LSB specifications;
 * never trusts an offset.
 *
 * Not for: lines and inlined functions (symbols/dwarf), names of places (symbols/name), running the
 * instructions of unwind tables (unwind).
 */
#ifndef SYMBOLS_ELF_ELF_H
#define SYMBOLS_ELF_ELF_H

#include <endian.h>
#include <elf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

struct ehframe;
struct ehframe_cies;
struct ehhdr;
struct untrusted_file;
struct watch;

/*
 * Read the bytes of .eh_frame and .debug_frame: numbers, blocks, records.
 *
 * Every read is checked; after the first failure all later reads return 0.
 * Pure; any thread. Functions that sampler threads call at each new place are
 * inline.
 */

/* The bytes still to read. */
struct ehread {
	const uint8_t *pos, *end;
	bool bad;
};

/* Read @size bytes; NULL (bad): too few. */
static inline const uint8_t *ehread_block(struct ehread *r, uint64_t size)
{
	const uint8_t *p = r->pos;

	if (r->bad || size > (uint64_t)(r->end - r->pos)) {
		r->bad = true;
		return NULL;
	}
	r->pos += size;
	return p;
}

/* Read @size (1, 2, 4 or 8) bytes, zero-extended. */
static inline uint64_t ehread_fixed(struct ehread *r, unsigned int size)
{
	const uint8_t *p = ehread_block(r, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size); /* all supported machines are little-endian */
	return v;
}

uint64_t ehread_long_uleb(struct ehread *r);
int64_t ehread_long_sleb(struct ehread *r);

/* Test for a LEB128 of one byte, as nearly all are. */
static inline bool ehread_is_short(const struct ehread *r)
{
	return !r->bad && r->pos < r->end && !(*r->pos & 0x80);
}

/* Read a ULEB128; more than 64 bits is bad. */
static inline uint64_t ehread_uleb(struct ehread *r)
{
	return ehread_is_short(r) ? *r->pos++ : ehread_long_uleb(r);
}

static inline int64_t ehread_sleb(struct ehread *r)
{
	return ehread_is_short(r) ? (int64_t)((uint64_t)*r->pos++ << 57) >> 57
				  : ehread_long_sleb(r);
}

/*
 * The structure of .eh_frame: a copy of its bytes and a sorted index of its
 * FDEs (LSB Core 5.0, 10.6 "Exception Frames"; DWARF 5, 6.4).
 *
 * The index is the table of .eh_frame_hdr when that ascends and has one entry per FDE; else one
 * bounded walk over the records builds it. Either way only the FDE itself is trusted, when it is
 * looked up: an FDE that
 * is not acceptable (lengths, CIE pointers, versions, unknown augmentation,
 * return column, address encodings) is ignored. The effect of the instructions
 * is checked later, by unwind/cfi.
 *
 * Pure: bytes in, index out. Runs on: the loader.
 */

#define EHFRAME_FDES_MAX (1U << 22)

struct ehframe_fde {
	uint64_t start;	 /* vaddr of the first instruction covered */
	uint32_t size;	 /* bytes covered; at most up to the start of the next FDE */
	uint32_t offset; /* of the FDE record in the section */
};

/*
 * Index by a walk. @machine: e_machine; @bytes is borrowed. 0, -ENOMEM, or -EINVAL:
 * nothing could be read. After an error there is nothing to free.
 */
int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine);
/*
 * Index by the @entries of the table of .eh_frame_hdr: changed, and owned by @eh
 * after 0. -EBADMSG: the table cannot be used.
 */
int ehframe_init_hdr(struct ehframe *eh, const uint8_t *bytes, size_t size, uint16_t machine,
		     const struct ehhdr *h, uint64_t *entries);
void ehframe_fini(struct ehframe *eh);
/*
 * Read the CIEs at @offsets (foreign), of an index that was made by another process: all of @eh is
 * set but cies. 0 or -ENOMEM.
 */
int ehframe_meet(struct ehframe *eh, const uint32_t *offsets, uint32_t nr);
/* Find the FDE that covers @vaddr; false: none. Any thread. */
bool ehframe_find(const struct ehframe *eh, uint64_t vaddr, struct ehframe_fde *out);
/*
 * Read FDE number @i < nr_fdes, by start; false: the index is wrong about it. Any
 * thread.
 */
bool ehframe_at(const struct ehframe *eh, uint32_t i, struct ehframe_fde *out);

struct ehframe_cie {
	uint32_t offset;	   /* of the record in the section */
	uint32_t insns, insns_end; /* initial instructions: offsets in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t encoding;   /* of addresses in its FDEs: DW_EH_PE_* */
	uint8_t nr_letters; /* of the augmentation string */
	bool sized;	    /* 'z': FDEs also have augmentation data */
	bool signal;	    /* 'S' */
};

struct ehframe_record {
	struct ehframe_cie cie;
	uint64_t start; /* vaddr of the first instruction covered */
	uint32_t size;
	uint32_t insns, insns_end; /* instructions: offsets in the section */
};

/*
 * Read the FDE at @offset with its CIE, checked as in the walk. 0 or -EBADMSG. Any
 * thread; no allocation.
 */
int ehframe_read(const struct ehframe *eh, uint32_t offset, struct ehframe_record *out);
/* Read an address in @encoding; bad for encodings that the walk refuses. */
uint64_t ehframe_read_address(const struct ehframe *eh, struct ehread *r, uint8_t encoding);

/*
 * Open the file with this build-id: in the cache of the invoking user with the rights of that user;
 * behind sudo then in that of root. Only a file that belongs to that user or to root. 0 or -ENOENT;
 * the caller closes out->fd.
 */
int buildidcache_open(const uint8_t *build_id, size_t size, struct untrusted_file *out);

/*
 * Translate .debug_frame into .eh_frame, so that one reader serves both.
 *
 * Pure: bytes in, bytes out. Runs on: the loader. Every byte is hostile.
 */

/*
 * Append the records of a .debug_frame (DWARF 5, 6.4.1; versions 1, 3 and 4, 32-bit
 * format) to the records of @eh up to its terminator (@eh_size may be 0), as one section for
 * ehframe_init(), in malloc'ed memory. Unknown records are left out. 0, -ENODATA (nothing added, no
 * memory returned) or -ENOMEM.
 */
int debugframe_join(const uint8_t *eh, size_t eh_size, const uint8_t *debug, size_t debug_size,
		    uint8_t **out, size_t *out_size);

/*
 * .eh_frame_hdr: the address of .eh_frame, and a sorted table of its FDEs
 * (LSB Core 5.0, 10.6.2 "The .eh_frame_hdr section").
 *
 * Only the order of the table is checked here; each entry is compared with its
 * FDE when it is looked up (ehframe). Pure: bytes in, index out. Runs on: the
 * loader.
 */

#define EHHDR_SIZE 12u /* bytes before the table, in the layout supported */

struct ehhdr {
	uint64_t vaddr;	   /* of the section's first byte */
	uint64_t eh_frame; /* vaddr of .eh_frame */
	uint32_t nr;	   /* entries, after EHHDR_SIZE bytes; 0: no table in this layout */
};

/*
 * Parse the header. @bytes: the first @size of the @all bytes of a section at
 * @vaddr. False: no address of .eh_frame.
 */
bool ehhdr_parse(struct ehhdr *h, const uint8_t *bytes, size_t size, uint64_t all, uint64_t vaddr);

#define ELFPARTS_MAX 1024U /* of one file */

struct elfpart { /* bytes of the file, from multiples of ELFPARTS_ALIGNED */
	uint64_t start, end;
};

/* Ascending, with gaps between them. All zero: none. */
struct elfparts {
	struct elfpart list[ELFPARTS_MAX];
	uint32_t nr;
	bool full; /* some are not in it */
};

/*
 * Decompress. 0 (the caller frees *out), -EFBIG beyond XZ_OUTPUT_MAX, -EBADMSG,
 * -ENOMEM, -EOPNOTSUPP.
 */
int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size);

/* The messages between elf.c and its workers. Both have the same program. */

#define ELF_SANDBOX_FILES 2

/* The missed parts follow, else the answer of the reader. */
struct elf_sandbox_answer {
	_Alignas(16) uint32_t nr_missed[ELF_SANDBOX_FILES];
};

#define ELF_SANDBOX_ANSWER sizeof(struct elf_sandbox_answer)

/*
 * The headers of an ELF file, read strictly, and a bounded reader of its bytes
 * (System V gABI, chapters 4 and 5; elf(5)).
 *
 * Not libelf: elf_begin() allocates one descriptor for each section that the
 * file claims to have, gigabytes for a sparse file. Here every count is checked
 * before memory is allocated. 32-bit headers are widened. Only a
 * worker of the sandbox maps files. Any thread; slow.
 */

#define ELFFILE_PHDRS_MAX 4096U

struct elffile {
	int fd;		       /* -1: memory alone */
	const uint8_t *memory; /* or the mapped file; NULL: it is read */
	uint64_t size;
	struct watch *watch; /* borrowed; watches every read; may be NULL */
	const char *path;    /* borrowed, a hint for debug files; NULL: unknown */
	/* Borrowed: the parts of the file that are there, and the missed ones; NULL: all are
	 * there. */
	const struct elfparts *there;
	struct elfparts *missed;
	uint8_t elf_class;
	uint16_t machine;
	Elf64_Phdr *phdrs;
	uint32_t nr_phdrs;
	Elf64_Shdr *shdrs; /* none when absent or unusable */
	uint32_t nr_shdrs;
	char *shstr; /* section names; NUL-terminated as a whole; may be NULL */
	size_t shstr_size;
	uint8_t build_id[20];
	uint8_t build_id_size;
};

/*
 * Read the headers of @fd, or of @memory when @fd is -1 (both borrowed). 0, -ENOEXEC
 * (not ELF, or another byte order), -E2BIG, -EIO, -ENOMEM with a message. After an
 * error there is nothing to close.
 */
int elffile_open(struct elffile *f, int fd, const void *memory, uint64_t size, struct err *e);
void elffile_close(struct elffile *f);
/*
 * Read exactly @size bytes. -ERANGE beyond the end, -EIO when the file shrank,
 * -ECANCELED, -EAGAIN: they are not there yet.
 */
int elffile_read(const struct elffile *f, uint64_t offset, void *buf, size_t size);
/* Test for bytes that are going to be read in pieces. 0, or -EAGAIN: they are not there yet. */
int elffile_expect(const struct elffile *f, uint64_t offset, uint64_t size);

/* Test whether bytes were missed: a result is not used then. */
static inline bool elffile_waits(const struct elffile *f)
{
	return f->missed && f->missed->nr;
}

/* Return bytes of a mapped file as they are there; NULL: read them. */
static inline const uint8_t *elffile_mapped(const struct elffile *f, uint64_t offset, uint64_t size)
{
	return f->fd >= 0 && f->memory && offset <= f->size && size <= f->size - offset &&
			       !elffile_expect(f, offset, size)
		       ? f->memory + offset
		       : NULL;
}

/* Read into malloc'ed memory of @size + 1 bytes, the last one NUL. */
int elffile_read_alloc(const struct elffile *f, uint64_t offset, size_t size, void **out);

/* Return bytes of the file; free *@copy after use. NULL: they cannot be read. */
static inline const uint8_t *elffile_bytes(const struct elffile *f, uint64_t offset, size_t size,
					   void **copy)
{
	const uint8_t *mapped = elffile_mapped(f, offset, size);

	*copy = NULL;
	return mapped || elffile_read_alloc(f, offset, size, copy) ? mapped : *copy;
}

/*
 * Copy the GNU build-id among the notes, at most @max bytes, to @id; return its
 * size, 0: none.
 */
size_t elffile_notes_build_id(const uint8_t *notes, size_t size, uint8_t *id, size_t max);
/* Get the file offset of @size bytes at @address; false: they are not in the file. */
bool elffile_offset(const struct elffile *f, uint64_t address, uint64_t size, uint64_t *offset);
/* Read bytes at @address; zeros and false if they are not there. */
bool elffile_read_at(const struct elffile *f, uint64_t address, void *out, size_t size);
/* Find the first section with this name or type and with bytes in the file; NULL: none. */
const Elf64_Shdr *elffile_section(const struct elffile *f, const char *name);
const Elf64_Shdr *elffile_section_of_type(const struct elffile *f, uint32_t type);
/*
 * Get part @nr of the constants, address, offset and size: .rodata; in a file without such a
 * section all segments that are not written. False: there are no more.
 */
bool elffile_constants(const struct elffile *f, uint32_t nr, Elf64_Shdr *out);

/*
 * The separate debug file of a stripped object (GDB manual, "Debugging
 * Information in Separate Files"): by build-id below /usr/lib/debug/.build-id or
 * in the cache of debuginfod, else by the name in .gnu_debuglink, of which only
 * the basename is used, below /usr/lib/debug, with its CRC checked. Only our own
 * root is searched, never that of a process, nor the directory of the object.
 *
 * Runs on: a helper.
 */

#define DEBUGFILE_CRC_NS   20000000000ULL
#define DEBUGFILE_LINK_MAX 512U

/* The names that an object gives its debug file. */
struct debugfile_names {
	uint8_t build_id[20];
	uint8_t build_id_size;
	char link[DEBUGFILE_LINK_MAX]; /* empty: none */
	uint32_t crc;
};

void debugfile_names(struct debugfile_names *n, const struct elffile *object);
/* Test a name of a link: no folder, not hidden. */
static inline bool debugfile_link_ok(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* The place of an object, and of files that belong to it. */
struct debugfile_where {
	const char *folder; /* of installed debug files: DEBUGFILE_ROOT */
	const char *path;   /* of the object; or NULL */
	pid_t pid;	    /* it is below the root of this process; 0: below ours */
	const char *root;   /* with pid 0: as in untrusted_want */
	int fd;		    /* of the object: its owner may have put a debug file beside it */
	struct watch *watch;
};

/*
 * Open place @i where the debug file may be: by build-id first, then by link. *by_link is set. 0,
 * -ENOENT: not there, -ERANGE: there are no more places, or -errno. The caller closes out->fd.
 */
int debugfile_try(const struct debugfile_names *n, unsigned int i,
		  const struct debugfile_where *where, struct untrusted_file *out, bool *by_link);

/* Whether a debug file is the one of the object. */
enum debugfile_match { DEBUGFILE_OTHER, DEBUGFILE_CRC_DECIDES, DEBUGFILE_SAME };

/* Compare machine and build-id. *@bias: what the addresses of the debug file lack. */
enum debugfile_match debugfile_match(const struct elffile *object, const struct elffile *debug,
				     bool by_link, uint64_t *bias);

#define DEBUGFILE_CRC_MAX (1ULL << 30) /* of a larger file callers do not compute it */

/*
 * Compute the CRC-32 of .gnu_debuglink of a file of @size bytes, or take the one that a call before
 * has computed. 0; -EAGAIN while another file is read; -ETIME, -ECANCELED or another error.
 * @time_ns: DEBUGFILE_CRC_NS. A longer one is ended, and its file is not used; one that hangs does
 * not hold up others for more.
 */
int debugfile_crc(int fd, uint64_t size, struct watch *watch, uint64_t time_ns, uint32_t *crc);
/* Write the path for a build-id into @buf; false if the build-id is too short. */
bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size);

/* Folders in which libdebuginfod may have its cache. */
#define DEBUGFILE_CACHES 4U

/* Write the path of folder @nr. Return its length; 0: its variable is not set. */
int debugfile_cache_folder(unsigned int nr, char *buf, size_t size);
/*
 * Write the path of candidate @nr where libdebuginfod caches the debug file of a
 * build-id, from the environment. False: no such candidate.
 */
bool debugfile_cache_path(const uint8_t *build_id, size_t size, unsigned int nr, char *buf,
			  size_t buf_size);

#define DEBUGFILE_ROOT "/usr/lib/debug"

#define EHFRAME_CIES_MAX 64U /* kept; a power of two */

struct ehframe {
	uint64_t vaddr;	      /* of the section's first byte */
	const uint8_t *bytes; /* NULL when there is none; owned by the image */
	size_t size;
	/* The first @in_file bytes are those of the file from @file_at on; borrowed: @bytes are in
	 * the mapped file. */
	uint64_t file_at, in_file;
	bool borrowed;
	uint64_t *fdes; /* ascending, as ehhdr_index() makes them; owned by this struct */
	uint32_t nr_fdes;
	struct ehframe_cies *cies; /* some of its CIEs; owned by this struct */
	uint32_t nr_refused;	   /* records that the walk left out */
	uint16_t machine;	   /* e_machine */
	/* Offset of the first record that is derived from code, and of the first that is a guess;
	 * 0: none is. */
	uint32_t derived, guessed;
};

/* Return the start of FDE number @i < nr_fdes, as the index has it. */
static inline uint64_t ehframe_start(const struct ehframe *eh, uint32_t i)
{
	/* No table reaches further than 2 GiB either way: ehhdr_base(). */
	return eh->vaddr - (1ULL << 31) + (eh->fdes[i] >> 32);
}

/* Write the offsets of the CIEs that were met. Return how many. */
uint32_t ehframe_cies(const struct ehframe *eh, uint32_t offsets[EHFRAME_CIES_MAX]);

/*
 * Read ELF files in the sandbox: their bytes here, their meaning in a worker.
 *
 * A read may hang, and a worker that waits for a file would hold up all others. So the worker reads
 * parts that this thread has read before: from the page cache, of a file system that is a disk or
 * memory, else from a copy. It begins with both ends of a file and names the parts that it misses;
 * this thread reads them, and calls again. Most files take one call or two.
 *
 * Runs on: a helper. The worker cannot write to a descriptor that it gets.
 */

/* A file, and its parts that the worker may read. */
struct elf_sandbox_file {
	int fd; /* borrowed; -1: none */
	uint64_t size;
	int copy; /* a memfd; -1: the worker reads the file itself */
	int sent; /* its descriptor, read-only */
	bool stable;
	struct elfparts there;
};

struct elf_sandbox {
	struct watch *watch; /* progress; may be NULL */
	uint64_t memory_max; /* of all large files that are read at a time; ELF_SANDBOX_MEMORY */
	uint64_t time_ns;    /* of all calls; ELF_SANDBOX_TIME_NS */
	bool copied;	     /* the worker gets a copy, as of any file system that may hang */
	/* Private: */
	struct elf_sandbox_file files[ELF_SANDBOX_FILES];
	uint64_t sum, held;		     /* bytes that were read; of these counted for all */
	uint64_t took_ns;		     /* of time_ns */
	const struct sandbox_reader *reader; /* of the last answer, with its generation */
	uint32_t generation;
	uint8_t *buf;
	unsigned int nr_calls;
	uint8_t request[SANDBOX_REQUEST_MAX];
};

/* Make a reading of files, none of which is open, with the limits above. NULL: no memory. */
struct elf_sandbox *elf_sandbox_new(void);
void elf_sandbox_free(struct elf_sandbox *c);
/* Begin with both ends of file @i. 0, -ENOEXEC: it is empty, or -errno. */
int elf_sandbox_open(struct elf_sandbox *c, int i, int fd, uint64_t size);
void elf_sandbox_close(struct elf_sandbox *c, int i);
/*
 * Call @reader with @request until it misses no part of the files. Its answer is behind
 * ELF_SANDBOX_ANSWER bytes of @out, which the caller frees. 0; -EAGAIN while other large files are
 * read; -ENOEXEC, -ENOENT, -ESTALE, -E2BIG, -ENOSPC or -ENOMEM of the reader; -EBADMSG: other
 * errors, or an invalid answer; other errors of sandbox_call(), or -errno.
 */
int elf_sandbox_ask(struct elf_sandbox *c, const struct sandbox_reader *reader, const void *request,
		    size_t size, struct sandbox_answer *out);
/* Refuse the last answer, which is invalid: its worker ends. Returns -EBADMSG. */
int elf_sandbox_refuse(struct elf_sandbox *c);

/*
 * The sections with DWARF in an ELF file, before libdw may see it: their sizes, and the file with
 * common parts made by dwz.
 *
 * Pure; hostile files.
 */

/* Of the debug sections that are read; of the compressed ones, which need memory. */
#define ELFDWARF_SIZE_MAX     (1ULL << 30)
#define ELFDWARF_INFLATED_MAX (512ULL << 20)
#define ELFDWARF_LINK_MAX     1024U
#define ELFDWARF_OLD_HEAD     12U /* bytes before the data of a section .zdebug_* */

/* Return the size that the head of a section .zdebug_* has. */
static inline uint64_t elfdwarf_old_size(const uint8_t head[ELFDWARF_OLD_HEAD])
{
	uint64_t size;

	memcpy(&size, head + 4, sizeof(size));
	return be64toh(size);
}

/* The dwz file that a file refers to. */
struct elfdwarf_alt {
	char link[ELFDWARF_LINK_MAX + 1];
	uint8_t id[20];
	uint8_t id_size;
};

struct elfvar {
	const char *name;
	uint64_t vaddr, size; /* out; vaddr 0: not found */
};

/*
 * The worker's side of elf.c: files of which some parts are there.
 *
 * Runs in the worker, or in the thread of the call.
 */

/* The files of a call. */
struct elf_sandbox_serve {
	struct elfparts there[ELF_SANDBOX_FILES], missed[ELF_SANDBOX_FILES];
	struct elffile file[ELF_SANDBOX_FILES];
	uint64_t size[ELF_SANDBOX_FILES];
	void *mapped[ELF_SANDBOX_FILES]; /* NULL: not mapped */
	bool stable[ELF_SANDBOX_FILES];
	const uint8_t *request; /* of the reader */
	size_t request_size;
};

typedef int (*elf_sandbox_serve_fn)(struct elf_sandbox_serve *v, struct sandbox_call *c,
				    const void *request);

/*
 * Serve a call by @fn: it opens files and puts the answer. @request: room for the request, of @size
 * bytes. The files are closed afterwards. As @fn, or -EINVAL: another size, or no file.
 */
int elf_sandbox_serve_call(struct sandbox_call *c, void *request, size_t size,
			   elf_sandbox_serve_fn fn);
/* Open file @i; as elffile_open(). */
int elf_sandbox_serve_open(struct elf_sandbox_serve *v, const struct sandbox_call *c, int i);
/* Test whether parts were missed: then the result is not used. */
bool elf_sandbox_serve_misses(const struct elf_sandbox_serve *v);
/*
 * Begin the answer, with the missed parts. @rc: of the reader, which counts if nothing was missed;
 * then its answer follows. Returns the result of the call.
 */
int elf_sandbox_serve_begin(const struct elf_sandbox_serve *v, struct sandbox_call *c, int rc);

/*
 * The parts of an object file in memory: load segments, unwind tables, symbols.
 *
 * Built by image_read.c, then immutable. Everything in an image is bounded and
 * checked; the bytes of eh_frame are still hostile (see unwind/cfi).
 */

#define IMAGE_NESTED_MAX 63U   /* symbols inside a symbol that a look-up skips */
#define IMAGE_NAME_MAX	 4096U /* bytes of one name; longer names are cut */
#define IMAGE_STUB_MAX	 (IMAGE_NAME_MAX + 4)
/* Values of image->trouble. */
#define IMAGE_TOO_MANY_SYMBOLS	  "too many symbols: not read"
#define IMAGE_TOO_LARGE		  "symbols are larger than --symbol-memory: not read"
#define IMAGE_DEBUGDATA_TOO_LARGE ".gnu_debugdata is too large"

struct image_segment { /* PT_LOAD */
	uint64_t offset, vaddr, file_size, mem_size;
	bool exec;
};

/* Bits of a rank: of a symbol table, where names vary; with a size there. */
#define IMAGE_RANK_TABLE (1U << 4)
#define IMAGE_RANK_BOUND (3U << 8) /* seen by other files: weak, global */
#define IMAGE_RANK_SIZE	 (1U << 10)
#define IMAGE_RANK_FUNC	 (1U << 11) /* above all ranks of mere labels */

struct image_symbol { /* sorted by vaddr, then by preference; one per address */
	uint64_t vaddr;
	uint32_t size;	/* up to the next symbol when the table has 0; see image_find() */
	uint32_t whole; /* of a part of a function: index + 1 of the function; 0: it is whole */
	uint32_t name;	/* offset in names; NUL-terminated there */
	uint16_t rank;	/* among symbols of one address; see rank_of() */
	uint8_t back;	/* number of symbols before this one that may cover its start */
	bool stub;	/* of a PLT: named after the function it calls, and "@plt" */
};

/* Pages that are mapped for an image. */
struct image_pages {
	void *at; /* NULL: none */
	size_t size;
};

/* Names that are as in the file: @size bytes from @at on are at @file_at there. */
struct image_strings {
	uint64_t at, size, file_at;
};

/*
 * Code without unwind tables that is too large to be derived as a whole: it is by parts, the sites,
 * that samples are in. @cut: there are parts that are not derived.
 */
#define IMAGE_SITES 16384U

struct image_sites {
	uint64_t base;	 /* vaddr of the first one */
	uint32_t visits; /* the work that was done */
	uint32_t named;	 /* functions with a name and derived rows; of an image of rows alone */
	uint8_t shift;	 /* a site has 1 << shift bytes */
	bool cut;
};

struct image {
	uint16_t machine;  /* e_machine */
	uint8_t elf_class; /* ELFCLASS64 or ELFCLASS32 */
	struct image_segment *segments;
	uint32_t nr_segments;
	struct ehframe eh; /* eh.bytes owned by the image */
	struct image_symbol *symbols;
	uint32_t nr_symbols;
	uint8_t sigreturn_size; /* 0: unknown */
	uint64_t sigreturn;	/* vaddr of the code that returns from a signal handler */
	uint64_t main_to;	/* the function that main() does no more than jump to; 0: it does */
	uint64_t main_end;	/* behind that jump */
	char *names;		/* foreign bytes */
	size_t names_size;
	/*
	 * Source of the names, static text, in the order tried: ".symtab", "debug
	 * file" (by build-id), "debug link", ".gnu_debugdata", ".gopclntab" (Go);
	 * ".dynsym" and PLT stubs are added to each; "none".
	 */
	const char *source;
	const char *trouble; /* why a source was not used; static text, mostly NULL */
	uint8_t loop;	     /* of an interpreter: elfloop_find(); 0: none */
	uint32_t nr_tabled, nr_derived, nr_bare; /* functions by how their callers are found */
	char dialect;  /* how names are encoded that look like C's: dialect_of(); 0: as C */
	bool complete; /* the symbols include all functions, not only exported ones */
	bool thunks;   /* code returns or jumps by thunks; their tables are mended */
	bool away;     /* a stub: loaded again on request */
	struct image_sites sites;
	uint64_t *done; /* a bit for each site with rows; owned; NULL: the code is not cut */
	/*
	 * Of large code: an image of rows alone, of other sites; owned. It is added while this one
	 * is in use: release by the loader, acquire by readers.
	 */
	_Atomic(struct image *) more;
	uint32_t serial; /* unique: a cache for one image is not used for another */
	uint8_t build_id[20];
	uint8_t build_id_size;
	/* Mapped pages, which have all arrays but the CIEs of eh; NULL: each is allocated. */
	void *block;
	size_t block_size;
	/* Pages of the file, with bytes of ours behind them; all zero: they are in the block. */
	struct image_pages frames, name_pages; /* of eh; of the names, which are the whole file */
	size_t names_in_file;		       /* bytes of the names that are pages of the file */
	struct image_strings strings[2];       /* in the names; in the making */
	uint32_t nr_strings;
};

/* Return the site of an address; IMAGE_SITES: none. */
static inline unsigned int image_site(const struct image *image, uint64_t vaddr)
{
	uint64_t site = (vaddr - image->sites.base) >> image->sites.shift;

	return image->sites.cut && site < IMAGE_SITES ? (unsigned int)site : IMAGE_SITES;
}

/* Return the image that has the rows of a site; NULL: none has. */
static inline const struct image *image_of_site(const struct image *image, unsigned int site)
{
	while (image && !(image->done && image->done[site / 64] >> site % 64 & 1))
		image = atomic_load_explicit(&image->more, memory_order_acquire);
	return image;
}

/* Return the image that has the rows of an address: @image, or of large code one of its others. */
static inline const struct image *image_rows(const struct image *image, uint64_t vaddr)
{
	unsigned int site = image_site(image, vaddr);
	const struct image *has = site < IMAGE_SITES ? image_of_site(image, site) : NULL;

	return has ? has : image;
}

/* Which sites of large code to derive, and how many instructions to look at in the whole. */
struct derive_choice {
	uint64_t sites[IMAGE_SITES / 64];
	uint32_t visits_max;
	bool alone; /* leave the other rows out */
};

/*
 * Add records to image->eh for the code that has none, derived from its instructions, when its
 * symbols are there. @choice: of large code; NULL: its first part. 0, also when parts of @f are
 * missed; -ENOMEM.
 */
int derive_image(struct image *image, const struct elffile *f, const struct derive_choice *choice);

/* A part of a function that was made at run time, and the frame that its code has there. */
struct derive_frame {
	uint32_t start, size; /* bytes from the begin of the function */
	int32_t cfa;	      /* from the stack pointer, or the frame pointer */
	int32_t ra, fp;	      /* their slots, from the CFA; 0: in their registers */
	uint8_t by_fp;	      /* 0, 1: the CFA is from the frame pointer */
};

/*
 * Find the frames of the function with @size @bytes at @vaddr, code of @machine: at most @max, in
 * order, no guess. Return how many there are.
 */
uint32_t derive_function(uint16_t machine, uint64_t vaddr, const uint8_t *bytes, size_t size,
			 struct derive_frame *out, uint32_t max);

/* Code in a file: @bias is its address less its place there. */
struct derive_file {
	int fd;
	uint16_t machine; /* e_machine */
	uint64_t bias;
};

#define TAIL_CALLS_MAX 5U

/*
 * Follow the direct call before the return address @next: out[0] is the function that it calls; if
 * that does no more than lead on to another one (its stack as it was, at last a jump), out[1] is
 * that, and so on. Return how many there are; 0: no direct call.
 */
uint32_t derive_tail_calls(const struct derive_file *f, uint64_t next,
			   uint64_t out[static TAIL_CALLS_MAX]);

/* Make the stub of @image, with its load segments. NULL when out of memory. */
struct image *image_stub(const struct image *image);
/* Return the bytes of an image. */
size_t image_memory(const struct image *image);
void image_free(struct image *image);
/* Find the segment with @vaddr in its file-backed part, executable ones first; NULL: none. */
const struct image_segment *image_segment_at(const struct image *image, uint64_t vaddr);
/* Convert a file offset to a vaddr by its segment; false: in none. */
bool image_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr);
/* Convert a vaddr to a file offset; false: in no file-backed part of a segment. */
bool image_offset(const struct image *image, uint64_t vaddr, uint64_t *offset);
/* Find the symbol that covers @vaddr, of a function or of a part of one; NULL: none. */
const struct image_symbol *image_find(const struct image *image, uint64_t vaddr);
/* Return the function that @s is a part of, or @s. */
static inline const struct image_symbol *image_whole(const struct image *image,
						     const struct image_symbol *s)
{
	return s && s->whole ? &image->symbols[s->whole - 1] : s;
}
/*
 * Return the name, *@size foreign bytes: borrowed from the image, or for a stub
 * written to @buf.
 */
const char *image_symbol_name(const struct image *image, const struct image_symbol *s,
			      char buf[IMAGE_STUB_MAX], size_t *size);
bool image_symbol_is(const struct image *image, const struct image_symbol *s, const char *name);

#define ELFFACTS_NAME_MAX 64U

struct elffacts {
	struct debugfile_names names; /* with the build-id of the file */
	struct elfdwarf_alt alt;
	int32_t dwarf;	     /* elfdwarf_size() */
	int32_t alt_rc;	     /* elfdwarf_alt() */
	uint64_t dwarf_size; /* of all debug sections */
	uint64_t vaddr;	     /* of the byte at the offset that was given */
	uint32_t has_vaddr;
};

/*
 * Facts about an ELF file, read in the sandbox: build-id, addresses of some symbols, debug
 * information, and the debug file that it has elsewhere.
 *
 * Runs on: a helper; may hang. Numbers are foreign; texts end, and build-ids have a valid size.
 */

/* A file, and the questions about it. */
struct elffacts_input {
	int fd;
	uint64_t size;
	uint64_t offset;     /* of the byte for vaddr */
	struct elfvar *vars; /* out: elfvar_find() */
	uint32_t nr_vars;    /* ELFFACTS_VARS_MAX at most */
	struct watch *watch; /* progress; may be NULL */
};

/* Read the facts. 0, -ENOEXEC, or another error as of elf_sandbox_ask(). */
int elffacts_read(struct elffacts *out, const struct elffacts_input *in);
/*
 * Find the variable that is @at bytes behind the first byte of the file in memory: its name,
 * foreign text with a NUL, and the distance of its begin. 0, -ENOENT: none, or as elffacts_read().
 */
int elffacts_variable(int fd, uint64_t size, uint64_t at, char name[static ELFFACTS_NAME_MAX],
		      uint64_t *begin);
/*
 * Open the debug file of an object with @facts, and read its
 * facts; add *bias to its addresses to get the ones of the object. 0 (the caller closes
 * file->fd), or -ENOENT.
 */
int elffacts_open_debug(const struct elffacts_input *object, const struct elffacts *facts,
			const struct debugfile_where *where, struct untrusted_file *file,
			struct elffacts *out, uint64_t *bias);
/* Collect the facts that need no request. */
void elffacts_collect(struct elffacts *out, const struct elffile *f);

/* The reader, for the sandbox. */
extern const struct sandbox_reader elffacts_reader;

/*
 * The code of an object that returns from signal handlers: the signal frame of the
 * kernel is at sp there. In glibc this code has unwind tables on x86-64; in the
 * arm64 vdso, in musl and in Go it has none, and is recognised by its instructions.
 *
 * Any thread; slow. Every byte is hostile.
 */

/* Find the code in @f (segments and symbols: @image); false: none. */
bool elfsig_find(struct image *image, const struct elffile *f);

/*
 * The symbol tables of an ELF file -> one sorted array of functions.
 *
 * Collect any number of tables, then finish once. Any thread; slow. Pure except
 * for reading the file.
 */

#define ELFSYM_SYMBOLS_MAX (8U << 20)
#define ELFSYM_NAMES_MAX   (512U << 20)

struct elfsym {
	struct image_symbol *symbols;
	uint32_t nr, max;
	char *names;
	size_t names_size, names_max;
	uint32_t dynstr; /* offset of the names of the dynamic symbols */
	size_t dynstr_size;
	uint64_t nr_bytes_scanned; /* of names: a limit for tables with overlapping names */
	uint32_t *sources;	   /* the number of symbols before each file of the source */
	uint32_t nr_sources, max_sources;
	bool in_go; /* the next local symbols are of Go's linker */
};

void elfsym_fini(struct elfsym *t);
/* Expect the table of @type and its names. 0, or -EAGAIN: they are not there yet. */
int elfsym_expect(const struct elffile *f, uint32_t type);
/*
 * Add the functions of the table of @type (SHT_SYMTAB or SHT_DYNSYM), @bias added to
 * each address. 0, -ENOENT without such a table, -E2BIG, -ERANGE, -EIO, -ENOMEM;
 * symbols collected before are kept.
 */
int elfsym_add(struct elfsym *t, const struct elffile *f, uint32_t type, uint64_t bias);
/*
 * Sort, keep the best symbol of each address, set missing sizes, find the functions that others are
 * parts of. The executable sections (or segments) of @f bound them.
 */
int elfsym_finish(struct elfsym *t, const struct elffile *f);

/*
 * The function table that Go programs keep for their tracebacks, .gopclntab: present even in
 * stripped programs. The layout is that of Go 1.18 and later (go/src/internal/abi, debug/gosym).
 *
 * Pure except for reading the file; any thread; slow.
 */

/* Add the functions of @f to @t. 0, -ENOENT (no known table), or -errno. */
int elfgo_add(struct elfsym *t, const struct elffile *f);
/*
 * Write the depths of the stack as a .debug_frame (malloc'ed): exact unwind tables of all
 * functions that do not change the stack. x86-64. 0, -ENOENT (no known table), or -errno.
 */
int elfgo_frames(const struct elffile *f, uint8_t **out, size_t *size);

/*
 * The loops of interpreters: which symbols show one, and the cold part of its function, which
 * stripped files have without a name.
 *
 * Hostile files; any thread; slow.
 */

/* Of a program of Go: no loop, but found in the same way. */
#define ELFLOOP_GO "runtime.mallocgc"

/* Texts by which an interpreter without symbols is known: all of them are needed. */
#define ELFLOOP_TEXTS 2

/*
 * Return the number of the interpreter that has a function of @t, or if none has, that the program
 * @f without symbols is, by its texts (NULL: it is not read); 0: none.
 */
uint8_t elfloop_find(const struct elfsym *t, const struct elffile *f);
/*
 * Return the function of interpreter @loop; NULL: there is none of this number. *@text, if @text is
 * not NULL: its texts, or NULLs.
 */
const char *elfloop_symbol(uint8_t loop, const char *const **text);
/*
 * Add the cold parts of the loops among the functions of @t, as "FUNCTION.cold". @eh: of the file.
 * 0 or -ENOMEM.
 */
int elfloop_add_parts(struct elfsym *t, const struct elffile *f, const struct ehframe *eh);

/*
 * Names that code tells: main() and _start() of a stripped program, and PLT stubs, through which
 * calls leave an object: "foo@plt".
 *
 * A stub is recognised by its code, not by its position: it jumps through a
 * slot of the GOT, and the relocation of that slot names the function (x86-64
 * psABI, 5.2; AArch64 ELF ABI). So all layouts (.plt, .plt.sec, .plt.got,
 * with or without endbr64 or bti) are the same.
 *
 * Any thread; slow. Every byte is hostile.
 */

/*
 * Add main() and the stubs of @f to @t, which is not finished yet. @eh: of the file. 0, -ENOENT (no
 * stubs), or -errno.
 */
int elfcode_add(struct elfsym *t, const struct elffile *f, const struct ehframe *eh);

/*
 * The builtins of V8 in a file: one range of code, a table of their places in it, and a table of
 * their names. A stripped file has no symbols of them, but exports the functions that return the
 * addresses of these tables. x86-64.
 *
 * Any thread; slow. Every byte is hostile.
 */

/* Addresses of functions; 0: missing. */
struct elfv8_symbols {
	uint64_t code, code_size, data, data_size, name;
	uint64_t version; /* V8::GetVersion(), which is always exported */
	/* Of the blob itself: from 13.6 on the functions are not exported. */
	uint64_t blob_code, blob_code_size, blob_data, blob_data_size;
};

struct elfv8_blob {
	uint64_t code, code_size; /* addresses in the file */
	uint64_t data, data_size;
};

/* Note a symbol if it is one of these. */
void elfv8_symbol(struct elfv8_symbols *s, const char *name, uint64_t address);
/* Find the builtins. False: not found. */
bool elfv8_blob(struct elfv8_blob *out, const struct elfv8_symbols *s, const struct elffile *f);
/* The same without symbols, by their form: reads most of the file. */
bool elfv8_find(struct elfv8_blob *out, const struct elffile *f);
/* Add the builtins to @t, which has the exported functions. 0 (also: none), or -errno. */
int elfv8_add(struct elfsym *t, const struct elffile *f);

#endif
