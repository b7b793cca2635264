// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Debug information found, in the object or its debug file, checked, inflated and opened.
 *
 * Runs on: a helper.
 */
#include "symbols/dwarf/internal.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
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

void dwarf_inflate_prepare(void)
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
void dwarf_inflate_prepare(void)
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

#define DWZ_FOLDER "/.dwz/"

int dwarf_open_permitted(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -EINVAL;
	/* With file capabilities the caller is not trusted either. */
	return !st.st_uid || (st.st_uid == geteuid() && !getauxval(AT_SECURE)) ? 0 : -EPERM;
}

/* Open @path, if it has this build-id. Return a descriptor or -errno. */
static int open_dwz(const char *path, const struct elfdwarf_alt *alt)
{
	struct untrusted_want want = { .path = path, .size_max = ELFDWARF_SIZE_MAX };
	struct elffacts_input in = { .fd = -1 };
	struct untrusted_file file;
	struct elffacts facts;
	int rc = untrusted_open(&want, &file, NULL);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc)
		rc = facts.dwarf;
	if (!rc)
		rc = dwarf_open_permitted(file.fd);
	if (!rc && (facts.names.build_id_size != alt->id_size ||
		    memcmp(facts.names.build_id, alt->id, alt->id_size)))
		rc = -ENOENT;
	if (rc) {
		close(file.fd);
		return rc;
	}
	return file.fd;
}

/* Find the dwz file by build-id, else by its name where distributions keep them. */
static int find_dwz(const struct elfdwarf_alt *alt)
{
	char path[ELFDWARF_LINK_MAX + 64];
	const char *rest = strstr(alt->link, DWZ_FOLDER);
	int fd = -ENOENT;

	if (debugfile_path(alt->id, alt->id_size, path, sizeof(path)))
		fd = open_dwz(path, alt);
	if (fd >= 0 || !rest)
		return fd;
	while (strstr(rest + 1, DWZ_FOLDER))
		rest = strstr(rest + 1, DWZ_FOLDER);
	if (strstr(rest, "/../"))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s%s", DEBUGFILE_ROOT, rest);
	return open_dwz(path, alt);
}

int dwarf_open_find_alt(const struct elffacts *facts, int *fd)
{
	*fd = -1;
	if (facts->alt_rc)
		return facts->alt_rc == -ENOENT ? 0 : facts->alt_rc;
	*fd = find_dwz(&facts->alt);
	return *fd < 0 ? -ENOLINK : 0;
}

int dwarf_open_begin(struct dwarf_opened *out, int fd, bool lines)
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

void dwarf_open_end(struct dwarf_opened *d)
{
	dwarf_end(d->dw);
	elf_end(d->elf);
	free(d->image);
	*d = (struct dwarf_opened){ 0 };
}

const Elf_Data *dwarf_open_section(Dwarf *dw, const char *name)
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
 * Find the debug information of an object, in the object or in its debug file, and open it.
 *
 * Runs on: a helper.
 */

/* Replace the object by the file with its debug information, if that is another one. */
static int to_debug_file(const struct elffacts_input *in, const struct load_where *object,
			 struct untrusted_file *file, struct elffacts *facts, uint64_t *bias)
{
	const struct debugfile_where where = { DEBUGFILE_ROOT,	 object->seen.path,
					       object->seen.pid, object->root,
					       in->fd,		 in->watch };
	struct untrusted_file debug;
	struct elffacts found;
	int rc;

	*bias = 0;
	if (facts->dwarf != -ENODATA)
		return 0;
	rc = elffacts_open_debug(in, facts, &where, &debug, &found, bias);
	if (rc)
		return rc;
	close(file->fd);
	*file = debug;
	*facts = found;
	return 0;
}

int dwarf_object_open(const struct load_where *where, bool no_lines, struct dwarf_sandbox **out)
{
	struct elffacts_input in = { .fd = -1 };
	struct untrusted_file file;
	struct elffacts facts;
	uint64_t bias;
	int rc = load_open(where, NULL, &file);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc && !load_is_of_image(where, facts.names.build_id, facts.names.build_id_size))
		rc = -ESTALE;
	if (!rc)
		rc = to_debug_file(&in, where, &file, &facts, &bias);
	if (!rc)
		rc = dwarf_sandbox_open(out, &file, &facts, bias, no_lines);
	close(file.fd);
	return rc;
}

const char *dwarf_object_words(int code)
{
	switch (code) {
	case 0:
		return "with debug information";
	case -ENODATA:
	case -ENOENT:
	case -ESTALE:
		return NULL;
	case -ENOTSUP:
		return OBJECT_DEBUG_NOT_READ "inlined functions are in split files (.dwo)";
	case -ENOLINK:
		return OBJECT_DEBUG_NOT_READ "the file that it shares with others (dwz) is missing";
	case -EPERM:
		return OBJECT_DEBUG_NOT_READ "it is of another user";
	case -EFBIG:
		return OBJECT_DEBUG_NOT_READ "it is too large";
	case -ETIME:
		return OBJECT_DEBUG_NOT_READ "it takes too long";
	case -EPIPE:
	case -EBADMSG:
		return OBJECT_DEBUG_NOT_READ "it is damaged, or in an unknown format";
	default:
		return OBJECT_DEBUG_NOT_READ "its file cannot be read";
	}
}
