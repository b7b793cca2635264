// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ELF files from their bytes: headers and segments, which parts are there, data symbols, debug
 * sections, the code that returns from signal handlers; for a worker of the sandbox, the parts that
 * it needs are read, watched and passed. Bounded; no libelf.
 *
 * Runs on: a helper. Every number of the file is hostile.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

#define SHSTR_SIZE_MAX	 (4U << 20)
#define DYNAMIC_SIZE_MAX (64ULL << 10)
#define NOTES_SIZE_MAX	 (64U << 10)
#define RELA_MAX	 (1U << 20)
#define RELA_PIECE	 512U
#define CHAIN_MAX	 4096U	     /* symbols of one hash */
#define PIECE		 (4UL << 20) /* bytes per read: the step of the progress */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

/* Add the range, as far as it is in a file of @size bytes. */
static void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size);

/* Read at most PIECE bytes, watched. */
static ssize_t read_some(const struct elffile *f, uint64_t offset, void *buf, size_t size)
{
	ssize_t nr = watch_begin(f->watch);

	assert(size);
	if (nr)
		return nr;
	nr = pread(f->fd, buf, MIN(size, PIECE), (off_t)offset);
	if (nr < 0)
		nr = -errno;
	watch_end(f->watch, nr > 0 ? (uint64_t)nr : 0);
	return nr;
}

/* Test whether all bytes from @start to before @end are there. */
static bool elfparts_has(const struct elfparts *p, uint64_t start, uint64_t end)
{
	uint32_t after = search_split(p->nr, i, p->list[i].start <= start);

	assert(p->nr <= ELFPARTS_MAX);
	return start >= end || (after && end <= p->list[after - 1].end);
}

int elffile_expect(const struct elffile *f, uint64_t offset, uint64_t size)
{
	assert(!f->there || f->missed);
	if (!f->there || offset > f->size || size > f->size - offset ||
	    elfparts_has(f->there, offset, offset + size))
		return 0;
	elfparts_add(f->missed, offset, offset + size, f->size);
	return -EAGAIN;
}

int elffile_read(const struct elffile *f, uint64_t offset, void *buf, size_t size)
{
	size_t done = 0;

	assert(buf || !size);
	if (offset > f->size || size > f->size - offset)
		return -ERANGE;
	if (elffile_expect(f, offset, size))
		return -EAGAIN;
	if (f->memory) {
		memcpy(buf, f->memory + offset, size);
		return 0;
	}
	while (done < size) {
		ssize_t nr = read_some(f, offset + done, (char *)buf + done, size - done);

		if (nr == -EINTR)
			continue;
		if (nr <= 0)
			return nr == -ECANCELED ? -ECANCELED : -EIO;
		done += (size_t)nr;
	}
	assert(done == size);
	return 0;
}

int elffile_read_alloc(const struct elffile *f, uint64_t offset, size_t size, void **out)
{
	char *bytes;
	int rc;

	assert(out);
	if (offset > f->size || size > f->size - offset)
		return -ERANGE;
	if (elffile_expect(f, offset, size))
		return -EAGAIN;
	bytes = alloc_to_fill(size + 1);
	if (!bytes)
		return -ENOMEM;
	rc = elffile_read(f, offset, bytes, size);
	if (rc) {
		free(bytes);
		return rc;
	}
	bytes[size] = '\0';
	*out = bytes;
	return 0;
}

/* Read the ELF header, widened. */
static int read_ehdr(struct elffile *f, Elf64_Ehdr *out)
{
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr small;

	if (elffile_read(f, 0, ident, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) ||
	    ident[EI_DATA] != NATIVE_DATA || ident[EI_VERSION] != EV_CURRENT)
		return -ENOEXEC;
	f->elf_class = ident[EI_CLASS];
	if (f->elf_class == ELFCLASS64)
		return elffile_read(f, 0, out, sizeof(*out)) ? -ENOEXEC : 0;
	if (f->elf_class != ELFCLASS32 || elffile_read(f, 0, &small, sizeof(small)))
		return -ENOEXEC;
	*out = (Elf64_Ehdr){
		.e_type = small.e_type,
		.e_machine = small.e_machine,
		.e_phoff = small.e_phoff,
		.e_shoff = small.e_shoff,
		.e_phentsize = small.e_phentsize,
		.e_phnum = small.e_phnum,
		.e_shentsize = small.e_shentsize,
		.e_shnum = small.e_shnum,
		.e_shstrndx = small.e_shstrndx,
	};
	return 0;
}

static Elf64_Shdr widen_shdr(const Elf32_Shdr *s)
{
	return (Elf64_Shdr){
		.sh_name = s->sh_name,
		.sh_type = s->sh_type,
		.sh_flags = s->sh_flags,
		.sh_addr = s->sh_addr,
		.sh_offset = s->sh_offset,
		.sh_size = s->sh_size,
		.sh_link = s->sh_link,
		.sh_info = s->sh_info,
		.sh_entsize = s->sh_entsize,
	};
}

static Elf64_Phdr widen_phdr(const Elf32_Phdr *p)
{
	return (Elf64_Phdr){
		.p_type = p->p_type,
		.p_flags = p->p_flags,
		.p_offset = p->p_offset,
		.p_vaddr = p->p_vaddr,
		.p_filesz = p->p_filesz,
		.p_memsz = p->p_memsz,
	};
}

/* Read @nr section headers, widened, into malloc'ed memory. */
static int read_shdrs(const struct elffile *f, uint64_t offset, uint32_t nr, Elf64_Shdr **out)
{
	Elf64_Shdr *shdrs;
	void *raw;
	int rc;

	if (f->elf_class == ELFCLASS64) {
		rc = elffile_read_alloc(f, offset, nr * sizeof(*shdrs), &raw);
		if (!rc)
			*out = raw;
		return rc;
	}
	rc = elffile_read_alloc(f, offset, nr * sizeof(Elf32_Shdr), &raw);
	if (rc)
		return rc;
	shdrs = calloc(nr, sizeof(*shdrs));
	for (uint32_t i = 0; shdrs && i < nr; i++)
		shdrs[i] = widen_shdr(&((const Elf32_Shdr *)raw)[i]);
	free(raw);
	*out = shdrs;
	return shdrs ? 0 : -ENOMEM;
}

/* Read the section headers; a file without usable ones is valid. */
static void read_sections(struct elffile *f, const Elf64_Ehdr *eh, Elf64_Shdr *first)
{
	size_t entry = f->elf_class == ELFCLASS64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint64_t nr = eh->e_shnum, names = eh->e_shstrndx;
	Elf64_Shdr *shdrs = NULL;
	void *shstr = NULL;

	assert(f->elf_class == ELFCLASS64 || f->elf_class == ELFCLASS32);
	if (!eh->e_shoff || eh->e_shentsize != entry || read_shdrs(f, eh->e_shoff, 1, &shdrs))
		return;
	*first = shdrs[0];
	free(shdrs);
	if (!nr)
		nr = first->sh_size;
	if (names == SHN_XINDEX)
		names = first->sh_link;
	if (!nr || nr > ELFFILE_SHDRS_MAX || read_shdrs(f, eh->e_shoff, (uint32_t)nr, &f->shdrs))
		return;
	f->nr_shdrs = (uint32_t)nr;
	if (names >= nr || f->shdrs[names].sh_type == SHT_NOBITS ||
	    f->shdrs[names].sh_size > SHSTR_SIZE_MAX)
		return;
	if (!elffile_read_alloc(f, f->shdrs[names].sh_offset, f->shdrs[names].sh_size, &shstr)) {
		f->shstr = shstr;
		f->shstr_size = f->shdrs[names].sh_size;
	}
}

/* Read the program headers; @first is section header 0, which may hold their number. */
static int read_segments(struct elffile *f, const Elf64_Ehdr *eh, const Elf64_Shdr *first,
			 struct err *e)
{
	size_t entry = f->elf_class == ELFCLASS64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	uint32_t nr = eh->e_phnum == PN_XNUM ? first->sh_info : eh->e_phnum;
	void *raw;
	int rc;

	if (!nr)
		return 0;
	if (nr > ELFFILE_PHDRS_MAX)
		return err_set(e, -E2BIG, "more than %u program headers", ELFFILE_PHDRS_MAX);
	if (eh->e_phentsize != entry)
		return err_set(e, -ENOEXEC, "program headers of unknown size");
	rc = elffile_read_alloc(f, eh->e_phoff, nr * entry, &raw);
	if (rc)
		return err_set(e, rc, "cannot read the program headers");
	f->nr_phdrs = nr;
	if (f->elf_class == ELFCLASS64) {
		f->phdrs = raw;
		return 0;
	}
	f->phdrs = calloc(nr, sizeof(*f->phdrs));
	for (uint32_t i = 0; f->phdrs && i < nr; i++)
		f->phdrs[i] = widen_phdr(&((const Elf32_Phdr *)raw)[i]);
	free(raw);
	return f->phdrs ? 0 : err_set(e, -ENOMEM, "out of memory");
}

size_t elffile_notes_build_id(const uint8_t *notes, size_t size, uint8_t *id, size_t max)
{
	Elf64_Nhdr note; /* the same in both classes */

	assert(max);
	for (size_t pos = 0; size - pos >= sizeof(note);) {
		uint64_t name = pos + sizeof(note), desc;

		memcpy(&note, notes + pos, sizeof(note));
		desc = name + (((uint64_t)note.n_namesz + 3) & ~3ULL);
		if (desc > size || note.n_descsz > size - desc)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
		    note.n_descsz <= max && !memcmp(notes + name, "GNU", 4)) {
			memcpy(id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		pos = desc + (((uint64_t)note.n_descsz + 3) & ~3ULL);
		if (pos > size)
			return 0;
	}
	return 0;
}

static bool read_notes(struct elffile *f, uint64_t offset, uint64_t size)
{
	void *notes;

	if (size > NOTES_SIZE_MAX || elffile_read_alloc(f, offset, size, &notes))
		return false;
	f->build_id_size =
		(uint8_t)elffile_notes_build_id(notes, size, f->build_id, sizeof(f->build_id));
	free(notes);
	return f->build_id_size;
}

/* Find the build-id: by segments, else (debug files may lack them) by sections. */
static void read_build_id(struct elffile *f)
{
	unsigned int tries = 64;

	for (uint32_t i = 0; i < f->nr_phdrs && tries; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type == PT_NOTE && tries-- && read_notes(f, p->p_offset, p->p_filesz))
			return;
	}
	for (uint32_t i = 0; i < f->nr_shdrs && tries; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];

		if (s->sh_type == SHT_NOTE && tries-- && read_notes(f, s->sh_offset, s->sh_size))
			return;
	}
}

static void make_sections(struct elffile *f);

/* Read the headers of @f. */
static int open_headers(struct elffile *f, struct err *e)
{
	Elf64_Shdr first = { 0 };
	Elf64_Ehdr eh;
	int rc = read_ehdr(f, &eh);

	if (rc)
		return err_set(e, rc, "not an ELF file of this machine");
	f->machine = eh.e_machine;
	read_sections(f, &eh, &first);
	rc = read_segments(f, &eh, &first, e);
	if (rc) {
		elffile_close(f);
		return rc;
	}
	read_build_id(f);
	make_sections(f);
	return 0;
}

int elffile_open(struct elffile *f, int fd, const void *memory, uint64_t size, struct err *e)
{
	assert(fd >= 0 || memory || !size);
	*f = (struct elffile){ .fd = fd, .memory = memory, .size = size };
	return open_headers(f, e);
}

/* Read the headers of @fd, of which some parts are there; @mapped: all its bytes, or NULL. */
static int elffile_open_parts(struct elffile *f, int fd, const void *mapped, uint64_t size,
			      const struct elfparts *there, struct elfparts *missed)
{
	assert(fd >= 0 && there && missed);
	*f = (struct elffile){
		.fd = fd, .memory = mapped, .size = size, .there = there, .missed = missed
	};
	return open_headers(f, NULL);
}

void elffile_close(struct elffile *f)
{
	free(f->phdrs);
	free(f->shdrs);
	free(f->shstr);
	*f = (struct elffile){ .fd = -1 };
}

const Elf64_Shdr *elffile_section(const struct elffile *f, const char *name)
{
	for (uint32_t i = 1; f->shstr && i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];

		if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL &&
		    s->sh_name < f->shstr_size && !strcmp(f->shstr + s->sh_name, name))
			return s;
	}
	return NULL;
}

const Elf64_Shdr *elffile_section_of_type(const struct elffile *f, uint32_t type)
{
	for (uint32_t i = 1; i < f->nr_shdrs; i++) {
		if (f->shdrs[i].sh_type == type)
			return &f->shdrs[i];
	}
	return NULL;
}

bool elffile_constants(const struct elffile *f, uint32_t nr, Elf64_Shdr *out)
{
	const Elf64_Shdr *s = elffile_section(f, ".rodata");
	uint32_t passed = 0;

	assert(out);
	if (s) {
		*out = *s;
		return !nr;
	}
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || p->p_flags & PF_W || passed++ < nr)
			continue;
		*out = (Elf64_Shdr){
			.sh_flags = p->p_flags & PF_X ? SHF_EXECINSTR : 0,
			.sh_addr = p->p_vaddr,
			.sh_offset = p->p_offset,
			.sh_size = p->p_filesz,
		};
		return true;
	}
	return false;
}

/* Return the number of symbols that a DT_GNU_HASH reaches, up to the end of its last chain; 0. */
static uint64_t count_by_hash(const struct elffile *f, uint64_t table)
{
	uint32_t head[4], last = 0, word = 0; /* chains, first symbol, words of the filter */
	uint64_t offset;
	void *chains;

	if (!elffile_read_at(f, table, head, sizeof(head)) || head[0] > ELFSYM_SYMBOLS_MAX)
		return 0;
	table += sizeof(head) + head[2] * sizeof(uint64_t);
	if (!elffile_offset(f, table, head[0] * sizeof(last), &offset) ||
	    elffile_read_alloc(f, offset, head[0] * sizeof(last), &chains))
		return 0;
	for (uint32_t i = 0; i < head[0]; i++)
		last = MAX(last, ((const uint32_t *)chains)[i]);
	free(chains);
	table += head[0] * sizeof(last);
	for (uint32_t i = 0; i < CHAIN_MAX && last >= head[1] && last < ELFSYM_SYMBOLS_MAX; i++) {
		if (!elffile_read_at(f, table + (last - head[1]) * sizeof(word), &word,
				     sizeof(word)))
			return 0;
		last++;
		if (word & 1)
			return last;
	}
	return 0;
}

/* Return the number of symbols that the dynamic section leads to; 0: none. */
static uint64_t count_symbols(const struct elffile *f, const struct elffile_dynamic *d)
{
	uint32_t head[2]; /* of DT_HASH: chains, symbols */

	if (d->hash)
		return count_by_hash(f, d->hash);
	return d->old_hash && elffile_read_at(f, d->old_hash, head, sizeof(head)) &&
			       head[1] <= ELFSYM_SYMBOLS_MAX
		       ? head[1]
		       : 0;
}

/* Return whether there are section headers: the bytes may be zeros. */
static bool has_sections(const struct elffile *f)
{
	for (uint32_t i = 0; i < f->nr_shdrs; i++)
		if (f->shdrs[i].sh_type != SHT_NULL)
			return true;
	return false;
}

/*
 * Without section headers (sstrip), make headers of the dynamic symbols and their names: the
 * loader of programs finds them by the dynamic section.
 */
static void make_sections(struct elffile *f)
{
	struct elffile_dynamic d;
	Elf64_Shdr symbols = { .sh_type = SHT_DYNSYM,
			       .sh_link = 2,
			       .sh_entsize = sizeof(Elf64_Sym) };
	Elf64_Shdr names = { .sh_type = SHT_STRTAB };

	if (has_sections(f))
		return;
	elffile_dynamic(f, &d);
	if (!d.symbols || !d.names)
		return;
	symbols.sh_addr = d.symbols;
	symbols.sh_size = count_symbols(f, &d) * sizeof(Elf64_Sym);
	names.sh_size = d.names_size;
	if (!symbols.sh_size ||
	    !elffile_offset(f, d.symbols, symbols.sh_size, &symbols.sh_offset) ||
	    !elffile_offset(f, d.names, d.names_size, &names.sh_offset))
		return;
	free(f->shdrs);
	f->shdrs = calloc(3, sizeof(*f->shdrs));
	if (!f->shdrs)
		return;
	f->shdrs[1] = symbols;
	f->shdrs[2] = names;
	f->nr_shdrs = 3;
}

void elffile_dynamic(const struct elffile *f, struct elffile_dynamic *out)
{
	Elf64_Dyn *entries;
	size_t size;

	*out = (struct elffile_dynamic){ 0 };
	for (uint32_t i = 0; i < f->nr_phdrs && f->elf_class == ELFCLASS64; i++) {
		if (f->phdrs[i].p_type != PT_DYNAMIC)
			continue;
		size = (size_t)MIN(f->phdrs[i].p_filesz, DYNAMIC_SIZE_MAX);
		if (elffile_read_alloc(f, f->phdrs[i].p_offset, size, (void **)&entries))
			return;
		for (size_t d = 0; d < size / sizeof(*entries) && entries[d].d_tag != DT_NULL;
		     d++) {
			out->needs_others |= entries[d].d_tag == DT_NEEDED;
			if (entries[d].d_tag == DT_RELA)
				out->rela = entries[d].d_un.d_ptr;
			if (entries[d].d_tag == DT_RELACOUNT)
				out->nr_relative = entries[d].d_un.d_val;
			if (entries[d].d_tag == DT_SYMTAB)
				out->symbols = entries[d].d_un.d_ptr;
			if (entries[d].d_tag == DT_STRTAB)
				out->names = entries[d].d_un.d_ptr;
			if (entries[d].d_tag == DT_STRSZ)
				out->names_size = entries[d].d_un.d_val;
			if (entries[d].d_tag == DT_GNU_HASH)
				out->hash = entries[d].d_un.d_ptr;
			if (entries[d].d_tag == DT_HASH)
				out->old_hash = entries[d].d_un.d_ptr;
		}
		free(entries);
		return;
	}
}

bool elffile_offset(const struct elffile *f, uint64_t address, uint64_t size, uint64_t *offset)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];
		uint64_t at = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || at > p->p_filesz ||
		    size > p->p_filesz - at)
			continue;
		*offset = p->p_offset + at;
		return true;
	}
	return false;
}

bool elffile_read_at(const struct elffile *f, uint64_t address, void *out, size_t size)
{
	uint64_t offset;

	assert(out && size);
	memset(out, 0, size);
	return elffile_offset(f, address, size, &offset) && !elffile_read(f, offset, out, size);
}

bool elffile_relative(const struct elffile *f, bool (*fn)(const Elf64_Rela *r, void *ctx),
		      void *ctx)
{
	struct elffile_dynamic dynamic;
	Elf64_Rela rela[RELA_PIECE];
	uint64_t nr, offset;

	assert(fn);
	elffile_dynamic(f, &dynamic);
	nr = MIN(dynamic.nr_relative, (uint64_t)RELA_MAX);
	/* All are missed in one call, not piece by piece. */
	if (nr && elffile_offset(f, dynamic.rela, nr * sizeof(rela[0]), &offset) &&
	    elffile_expect(f, offset, nr * sizeof(rela[0])))
		return false;
	for (uint64_t i = 0; i < nr; i += RELA_PIECE) {
		size_t piece = (size_t)MIN(nr - i, (uint64_t)RELA_PIECE);

		if (!elffile_read_at(f, dynamic.rela + i * sizeof(rela[0]), rela,
				     piece * sizeof(rela[0])))
			return false;
		for (size_t k = 0; k < piece; k++)
			if (!fn(&rela[k], ctx))
				return true;
	}
	return true;
}

struct relocated {
	uint64_t address, value;
	bool found;
};

static bool note_relocated(const Elf64_Rela *r, void *ctx)
{
	struct relocated *p = ctx;

	if (r->r_offset != p->address)
		return true;
	p->value = (uint64_t)r->r_addend;
	p->found = true;
	return false;
}

bool elffile_pointer(const struct elffile *f, uint64_t address, uint64_t *value)
{
	struct relocated r = { .address = address };

	if (elffile_relative(f, note_relocated, &r) && r.found) {
		*value = r.value;
		return true;
	}
	return elffile_read_at(f, address, value, sizeof(*value)) && *value;
}

/*
 * Parts of a file: a sorted list.
 */

/* Return the bytes from @start to before @end <= @size, the size of the file, and the ones around.
 */
static struct elfpart elfparts_round(uint64_t start, uint64_t end, uint64_t size)
{
	uint64_t more = ELFPARTS_ALIGNED - 1 - (end - 1) % ELFPARTS_ALIGNED;

	assert(start < end);
	assert(start <= size);
	return (struct elfpart){
		.start = start - start % ELFPARTS_ALIGNED,
		.end = more < size - MIN(end, size) ? end + more : size,
	};
}

static void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size)
{
	struct elfpart part = elfparts_round(start, end, size);
	uint32_t first, after;

	assert(p->nr <= ELFPARTS_MAX);
	if (start >= end)
		return;
	/* It takes in the parts from @first to before @after, which it touches. */
	first = search_split(p->nr, i, p->list[i].end < part.start);
	after = search_split(p->nr, i, p->list[i].start <= part.end);
	if (first < after) {
		part.start = MIN(part.start, p->list[first].start);
		part.end = MAX(part.end, p->list[after - 1].end);
	} else if (p->nr == ELFPARTS_MAX) {
		p->full = true;
		return;
	}
	memmove(&p->list[first + 1], &p->list[after], (p->nr - after) * sizeof(p->list[0]));
	p->nr = p->nr - after + first + 1;
	p->list[first] = part;
	assert(p->nr && p->nr <= ELFPARTS_MAX);
	assert(part.start < part.end);
}

/*
 * Search for {load the number of rt_sigreturn, system call}: at symbols that
 * name it, and in all code of a small object.
 *
 * Runs on: the loader. Invariant: at most CODE_SIZE_MAX bytes are read.
 */

#define ELFSIG_CODE_SIZE_MAX (1u << 20) /* libc of musl has 600 KiB, a vdso 8 KiB */
#define SIZE_MAX_SIG	     16u
#define FUNCTION_MAX	     64u

struct trampoline {
	uint16_t machine;
	uint8_t size;
	uint8_t code[SIZE_MAX_SIG];
};

static const struct trampoline trampolines[] = {
	/* mov $__NR_rt_sigreturn,%rax; syscall */
	{ EM_X86_64, 9, { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	/* mov x8,#__NR_rt_sigreturn; svc #0 */
	{ EM_AARCH64, 8, { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 } },
};

static bool found(struct image *image, uint64_t vaddr, const struct trampoline *t)
{
	image->sigreturn = vaddr;
	image->sigreturn_size = t->size;
	return true;
}

/*
 * Search all code of a libc or a vdso, which are small. Objects linked with others
 * use the handler return of their libc.
 */
static bool find_by_code(struct image *image, const struct elffile *f, const struct trampoline *t)
{
	struct elffile_dynamic dynamic;
	uint64_t total = 0;

	elffile_dynamic(f, &dynamic);
	if (dynamic.needs_others)
		return false;
	for (uint32_t i = 0; i < image->nr_segments; i++) {
		const struct image_segment *s = &image->segments[i];
		const uint8_t *at;
		void *bytes;

		if (!s->exec || s->file_size > ELFSIG_CODE_SIZE_MAX ||
		    (total += s->file_size) > ELFSIG_CODE_SIZE_MAX ||
		    elffile_read_alloc(f, s->offset, s->file_size, &bytes))
			continue;
		at = memmem(bytes, s->file_size, t->code, t->size);
		if (at)
			found(image, s->vaddr + (uint64_t)(at - (const uint8_t *)bytes), t);
		free(bytes);
		if (at)
			return true;
	}
	return false;
}

static bool names_it(const char *name)
{
	static const char *const names[] = {
		"__restore_rt",
		"__kernel_rt_sigreturn",
		"runtime.sigreturn__sigaction",
		"runtime.sigreturn",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (name[0] == names[i][0] && name[1] == names[i][1] && !strcmp(name, names[i]))
			return true;
	return false;
}

/*
 * Check the functions that a symbol names: the instructions and their padding must
 * be all of the function.
 */
static bool find_by_name(struct image *image, const struct elffile *f, const struct trampoline *t)
{
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		uint8_t code[SIZE_MAX_SIG];
		uint64_t offset;

		if (s->size <= FUNCTION_MAX && !s->stub && names_it(image->names + s->name) &&
		    image_offset(image, s->vaddr, &offset) &&
		    !elffile_read(f, offset, code, t->size) && !memcmp(code, t->code, t->size))
			return found(image, s->vaddr, t);
	}
	return false;
}

bool elfsig_find(struct image *image, const struct elffile *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(trampolines); i++)
		if (f->machine == trampolines[i].machine && f->elf_class == ELFCLASS64)
			return find_by_name(image, f, &trampolines[i]) ||
			       find_by_code(image, f, &trampolines[i]);
	return false;
}

/*
 * ELF files for a worker of the sandbox: the parts that it needs are read, watched and passed; the
 * worker's side; the messages.
 */

/* The lists of parts that are there follow, then the request of the reader. */
struct elf_sandbox_request {
	uint64_t size[ELF_SANDBOX_FILES];
	uint32_t nr_parts[ELF_SANDBOX_FILES];
	bool stable[ELF_SANDBOX_FILES]; /* may be mapped */
};

/*
 * Read the parts of files that a worker needs.
 */

/* Of a reading that is not told otherwise. A call may take twice its time on a busy machine. */
#define ELF_SANDBOX_MEMORY (256ULL << 20)

#define CALLS_MAX  24U		/* for one answer */
#define PART_PIECE (64UL << 10) /* bytes of one read */

/* A smaller file is copied as a whole, of another one that many bytes at both ends. */
#define WHOLE_SIZE (256UL << 10)

#define ENDS_SIZE (64UL << 10)

/* Files with fewer bytes to copy are read without regard to others: a few are read at a time. */
#define SMALL_SIZE (16ULL << 20)

/* Above twice --symbol-memory: tables that have a limit of their own. */
#define OTHERS_SIZE (256ULL << 20)

/* Bytes of large files that are being read, by all threads; relaxed: a limit, no order. */
static atomic_ullong all_reading;

/* Return the sum of all bytes. */
static uint64_t elfparts_sum(const struct elfparts *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->nr; i++)
		sum += p->list[i].end - p->list[i].start;
	return sum;
}

/* Test whether @size bytes at @offset can be read without waiting, by the first and the last. */
static bool is_cached(int fd, uint64_t offset, size_t size)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1 &&
	       preadv2(fd, &iov, 1, (off_t)(offset + size - 1), RWF_NOWAIT) == 1;
}

/* Read a piece of the file, to the same place of the copy. Return how many bytes, or -errno. */
static ssize_t read_piece(struct elf_sandbox *c, struct elf_sandbox_file *s, uint64_t offset,
			  size_t size)
{
	ssize_t nr;

	if (s->copy < 0 && is_cached(s->fd, offset, size))
		return (ssize_t)size;
	nr = pread(s->fd, c->buf, size, (off_t)offset);
	if (nr < 0)
		return errno == EINTR ? -EINTR : -EIO;
	if (s->copy >= 0 && pwrite(s->copy, c->buf, (size_t)nr, (off_t)offset) != nr)
		return -ENOMEM;
	return nr;
}

/* Read a part, watched. 0 or -errno. */
static int read_part(struct elf_sandbox *c, struct elf_sandbox_file *s, struct elfpart part)
{
	struct watch *w = c->watch;

	watch_expect(w, part.end - part.start);
	while (part.start < part.end) {
		ssize_t nr = watch_begin(w);

		if (nr)
			return (int)nr;
		nr = read_piece(c, s, part.start, MIN(part.end - part.start, PART_PIECE));
		watch_end(w, nr > 0 ? (uint64_t)nr : 0);
		if (nr == -EINTR)
			continue;
		/* The file has become shorter: the worker finds that, or zeros. */
		if (nr <= 0)
			return (int)nr;
		part.start += (uint64_t)nr;
	}
	return 0;
}

/*
 * Reserve memory for @size bytes more. -ENOSPC: they never fit; -EAGAIN: other files are read now.
 */
static int hold(struct elf_sandbox *c, uint64_t size)
{
	uint64_t max = c->memory_max, more, now;

	c->sum += size;
	if (!max || c->sum < SMALL_SIZE)
		return 0;
	if (c->sum > 2 * max + OTHERS_SIZE)
		return -ENOSPC;
	more = c->sum - c->held;
	now = atomic_fetch_add_explicit(&all_reading, more, memory_order_relaxed) + more;
	/* The memory that this file already has is no reason to wait. */
	if (now <= max || now == c->sum) {
		c->held = c->sum;
		return 0;
	}
	atomic_fetch_sub_explicit(&all_reading, more, memory_order_relaxed);
	return -EAGAIN;
}

/* Read the @nr parts at @list, of which the worker chose the numbers. */
static int read_parts(struct elf_sandbox *c, struct elf_sandbox_file *s, const struct elfpart *list,
		      uint32_t nr)
{
	uint64_t before = elfparts_sum(&s->there), sum = 0;
	int rc;

	/* An honest list is short, in order and without overlap: else a part is read again and
	 * again. */
	if (nr > ELFPARTS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < nr; i++) {
		if (list[i].start >= list[i].end || list[i].end > s->size ||
		    (i && list[i].start < list[i - 1].end))
			return -EBADMSG;
		elfparts_add(&s->there, list[i].start, list[i].end, s->size);
	}
	sum = elfparts_sum(&s->there) - before;
	if (nr && !sum)
		return -EBADMSG;
	rc = s->there.full ? -E2BIG : hold(c, sum);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = read_part(c, s, elfparts_round(list[i].start, list[i].end, s->size));
	return rc;
}

void elf_sandbox_close(struct elf_sandbox *c, int i)
{
	struct elf_sandbox_file *s = &c->files[i];

	assert(i >= 0 && i < ELF_SANDBOX_FILES);
	if (s->copy >= 0) {
		close(s->copy);
		if (s->sent >= 0)
			close(s->sent);
	}
	s->fd = s->copy = s->sent = -1;
}

/* Test for a file system that is a disk or memory: no program decides when it responds. */
static bool is_local(int fd, struct watch *w)
{
	static const long local[] = { EXT4_SUPER_MAGIC,	   XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
				      TMPFS_MAGIC,	   F2FS_SUPER_MAGIC, SQUASHFS_MAGIC,
				      EROFS_SUPER_MAGIC_V1 };
	struct statfs st;
	int rc = watch_begin(w);

	if (rc)
		return false;
	rc = fstatfs(fd, &st);
	watch_end(w, 0);
	if (rc)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (st.f_type == local[i])
			return true;
	return false;
}

/*
 * Test for a file that no one but root may change: its worker may map it, instead of copying all
 * that it reads. Should root make it shorter in the middle of a call, the worker ends.
 */
static bool is_stable(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Make an empty copy, of which the worker gets a descriptor that it can only read. */
static int make_copy(struct elf_sandbox_file *s)
{
	char path[64];

	s->copy = sandbox_file();
	if (s->copy < 0)
		return s->copy;
	if (ftruncate(s->copy, (off_t)s->size))
		return -ENOMEM;
	sandbox_fix_size(s->copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->copy);
	s->sent = open(path, O_RDONLY | O_CLOEXEC);
	return s->sent < 0 ? -errno : 0;
}

int elf_sandbox_open(struct elf_sandbox *c, int i, int fd, uint64_t size)
{
	struct elf_sandbox_file *s = &c->files[i];
	uint64_t part = size <= WHOLE_SIZE ? size : ENDS_SIZE;
	const struct elfpart ends[2] = { { 0, part }, { size - part, size } };
	int rc = 0;

	assert(i >= 0 && i < ELF_SANDBOX_FILES);
	assert(fd >= 0);
	if (!size)
		return -ENOEXEC;
	*s = (struct elf_sandbox_file){ .fd = fd, .size = size, .copy = -1, .sent = fd };
	if (c->copied || !is_local(fd, c->watch)) {
		s->sent = -1;
		rc = make_copy(s);
	}
	s->stable = s->copy < 0 && is_stable(fd);
	return rc ? rc : read_parts(c, s, ends, size <= WHOLE_SIZE ? 1 : 2);
}

/* Write the head and the lists of the request; return their size. */
static size_t make_request(struct elf_sandbox *c)
{
	struct elf_sandbox_request head = { .size = { 0 } };
	size_t at = sizeof(head);

	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		const struct elf_sandbox_file *s = &c->files[i];
		uint32_t nr = s->fd < 0 ? 0 : s->there.nr;

		head.size[i] = s->size;
		head.nr_parts[i] = nr;
		head.stable[i] = s->stable;
		memcpy(c->request + at, s->there.list, nr * sizeof(struct elfpart));
		at += nr * sizeof(struct elfpart);
	}
	memcpy(c->request, &head, sizeof(head));
	return at;
}

/* Read the parts that the worker misses. *@more: there are some. */
static int read_missed(struct elf_sandbox *c, const struct sandbox_answer *a, bool *more)
{
	struct elf_sandbox_answer head;
	const struct elfpart *list = (const void *)(a->bytes + sizeof(head));
	int rc = 0;

	if (a->size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, a->bytes, sizeof(head));
	*more = head.nr_missed[0] || head.nr_missed[1];
	if ((uint64_t)head.nr_missed[0] + head.nr_missed[1] >
	    (a->size - sizeof(head)) / sizeof(struct elfpart))
		return -EBADMSG;
	for (int i = 0; i < ELF_SANDBOX_FILES && !rc; i++) {
		uint32_t nr = head.nr_missed[i];

		if (nr && c->files[i].fd < 0)
			return -EBADMSG;
		rc = nr ? read_parts(c, &c->files[i], list, nr) : 0;
		list += nr;
	}
	return rc;
}

/*
 * Return the error for @rc, a number that the worker chose: -EAGAIN and -ERANGE have another
 * meaning here.
 */
static int known_error(int rc)
{
	static const int known[] = { -ENOEXEC, -ENOENT, -ESTALE, -E2BIG,  -ENOSPC, -ENOMEM,
				     -EFBIG,   -ETIME,	-EPIPE,	 -ENOSYS, -EINVAL, -EIO };

	if (rc == -ERANGE)
		return -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (rc == known[i])
			return rc;
	return -EBADMSG;
}

/* Call the reader once. The calls of a reading have one limit of number and time. */
static int call(struct elf_sandbox *c, const struct sandbox_reader *reader, const void *request,
		size_t size, struct sandbox_answer *out)
{
	const int fds[SANDBOX_FDS_MAX] = { c->files[0].sent, c->files[1].sent };
	size_t at = make_request(c);
	int rc;

	if (c->nr_calls >= CALLS_MAX || c->took_ns >= c->time_ns || size > sizeof(c->request) - at)
		return -EBADMSG;
	c->nr_calls++;
	memcpy(c->request + at, request, size);
	rc = sandbox_call(reader, c->request, at + size, fds, 0, c->time_ns - c->took_ns, out);
	/* One that was given up ends the reading. */
	c->took_ns = rc == -ETIME ? c->time_ns : c->took_ns + out->took_ns;
	c->reader = reader;
	c->generation = out->generation;
	return rc ? known_error(rc) : 0;
}

int elf_sandbox_refuse(struct elf_sandbox *c)
{
	sandbox_refuse(c->reader, c->generation);
	return -EBADMSG;
}

int elf_sandbox_ask(struct elf_sandbox *c, const struct sandbox_reader *reader, const void *request,
		    size_t size, struct sandbox_answer *out)
{
	bool more = true;

	assert(size <= SANDBOX_REQUEST_MAX);
	for (;;) {
		int rc = call(c, reader, request, size, out);

		if (rc)
			return rc;
		rc = read_missed(c, out, &more);
		if (!rc && !more)
			return 0;
		sandbox_answer_free(out);
		if (rc == -EBADMSG)
			elf_sandbox_refuse(c);
		if (rc)
			return rc;
	}
}

struct elf_sandbox *elf_sandbox_new(void)
{
	struct elf_sandbox *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->memory_max = ELF_SANDBOX_MEMORY;
	c->time_ns = ELF_SANDBOX_TIME_NS;
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		c->files[i].fd = c->files[i].copy = c->files[i].sent = -1;
	c->buf = malloc(PART_PIECE);
	if (c->buf)
		return c;
	free(c);
	return NULL;
}

void elf_sandbox_free(struct elf_sandbox *c)
{
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		elf_sandbox_close(c, i);
	atomic_fetch_sub_explicit(&all_reading, c->held, memory_order_relaxed);
	free(c->buf);
	free(c);
}

/*
 * Files in the sandbox.
 */

/* Take the lists of the request. False: invalid. */
static bool take_request(struct elf_sandbox_serve *v, const struct sandbox_call *c)
{
	struct elf_sandbox_request r;
	const uint8_t *at = (const uint8_t *)c->request + sizeof(r);
	size_t left;

	if (c->size < sizeof(r))
		return false;
	memcpy(&r, c->request, sizeof(r));
	left = c->size - sizeof(r);
	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		size_t size = r.nr_parts[i] * sizeof(struct elfpart);

		if (r.nr_parts[i] > ELFPARTS_MAX || size > left)
			return false;
		v->missed[i].nr = 0;
		v->missed[i].full = false;
		v->there[i].nr = r.nr_parts[i];
		v->size[i] = r.size[i];
		v->stable[i] = r.stable[i];
		memcpy(v->there[i].list, at, size);
		at += size;
		left -= size;
	}
	v->request = at;
	v->request_size = left;
	return true;
}

int elf_sandbox_serve_call(struct sandbox_call *c, void *request, size_t size,
			   elf_sandbox_serve_fn fn)
{
	struct elf_sandbox_serve *v = calloc(1, sizeof(*v));
	int rc = -EINVAL;

	assert(fn && size);
	if (!v)
		return -ENOMEM;
	if (take_request(v, c) && v->request_size == size && c->fds[0] >= 0) {
		memcpy(request, v->request, size);
		rc = fn(v, c, request);
	}
	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		elffile_close(&v->file[i]);
		if (v->mapped[i])
			munmap(v->mapped[i], v->size[i]);
	}
	free(v);
	return rc;
}

int elf_sandbox_serve_open(struct elf_sandbox_serve *v, const struct sandbox_call *c, int i)
{
	/* Without a worker, a file that becomes shorter would end the caller. */
	void *all = c->link && v->stable[i] && v->size[i]
			    ? mmap(NULL, v->size[i], PROT_READ, MAP_PRIVATE, c->fds[i], 0)
			    : MAP_FAILED;

	v->mapped[i] = all == MAP_FAILED ? NULL : all;
	return elffile_open_parts(&v->file[i], c->fds[i], v->mapped[i], v->size[i], &v->there[i],
				  &v->missed[i]);
}

bool elf_sandbox_serve_misses(const struct elf_sandbox_serve *v)
{
	return v->missed[0].nr || v->missed[1].nr;
}

int elf_sandbox_serve_begin(const struct elf_sandbox_serve *v, struct sandbox_call *c, int rc)
{
	struct elf_sandbox_answer a = { .nr_missed = { v->missed[0].nr, v->missed[1].nr } };

	if (!elf_sandbox_serve_misses(v) && rc)
		return rc;
	sandbox_put(&c->reply, &a, sizeof(a));
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		sandbox_put(&c->reply, v->missed[i].list, v->missed[i].nr * sizeof(struct elfpart));
	return v->missed[0].full || v->missed[1].full ? -E2BIG : 0;
}
