// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compressed debug sections → an ELF file in memory: header, section headers, names, sections.
 *
 * Locations of variables and macros are left out, a sixth of the bytes: libdw would inflate them.
 */
#include "symbols/source/dwarf_inflate.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "symbols/base/base.h"
#include "symbols/base/library.h"

#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>

#define LIBRARY "libdeflate.so.0"

static struct functions {
	__typeof__(libdeflate_alloc_decompressor) *alloc;
	__typeof__(libdeflate_free_decompressor) *free;
	__typeof__(libdeflate_zlib_decompress) *inflate;
} lib;
static bool loaded;

void dwarf_inflate_prepare(void)
{
	static const struct library_function list[] = {
		{ "libdeflate_alloc_decompressor", offsetof(struct functions, alloc) },
		{ "libdeflate_free_decompressor", offsetof(struct functions, free) },
		{ "libdeflate_zlib_decompress", offsetof(struct functions, inflate) },
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

/* Inflate into exactly @size bytes. */
static bool inflate_into(uint8_t *to, size_t size, const uint8_t *from, size_t from_size)
{
	uLongf got = size;

	return inflate_fast(to, size, from, from_size) ||
	       (uncompress(to, &got, from, from_size) == Z_OK && got == size);
}

static const char names[][20] = {
	".shstrtab",	   ".debug_line",    ".debug_info", ".debug_types",
	".debug_abbrev",   ".debug_aranges", ".debug_str",  ".debug_line_str",
	".debug_rnglists", ".debug_ranges",  ".debug_addr", ".debug_str_offsets",
};

#define NR_NAMES ARRAY_SIZE(names)
#define LINES	 1U /* the section that only lines need */

/* A section of the new file; as it is in the old one. */
struct section {
	const uint8_t *bytes; /* NULL: none */
	size_t size, true_size;
	bool packed;
};

struct head {
	Elf64_Ehdr file;
	Elf64_Shdr sections[NR_NAMES + 1];
	char names[NR_NAMES][sizeof(names[0])];
};

/* Get section @scn, whose header is @shdr. 0 or -errno. */
static int get_section(Elf_Scn *scn, const GElf_Shdr *shdr, struct section *out)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t skip = sizeof(Elf64_Chdr);
	GElf_Chdr packed;

	if (!data || !data->d_buf || shdr->sh_type == SHT_NOBITS)
		return 0;
	*out = (struct section){ data->d_buf, data->d_size, data->d_size, false };
	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return 0;
	if (!gelf_getchdr(scn, &packed) || packed.ch_type != ELFCOMPRESS_ZLIB ||
	    data->d_size < skip)
		return -ENOENT;
	*out = (struct section){ out->bytes + skip, out->size - skip, packed.ch_size, true };
	return 0;
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
			int rc = 0;

			if (!list[i].bytes && !strcmp(name, names[i]))
				rc = get_section(scn, &shdr, &list[i]);
			else
				continue;
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
		if (s->packed && !inflate_into(image + at, s->true_size, s->bytes, s->size))
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

int dwarf_inflate(Elf *elf, bool lines, size_t max, uint8_t **out, size_t *size)
{
	const unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
									       : ELFDATA2MSB;
	struct section list[NR_NAMES] = { { NULL } };
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
