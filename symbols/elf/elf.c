// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ELF files from their bytes: headers and segments, which parts are there, data symbols, debug
 * sections, the code that returns from signal handlers. Bounded; no libelf.
 *
 * Runs on: a helper. Every number of the file is hostile.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

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

int elffile_open_parts(struct elffile *f, int fd, const void *mapped, uint64_t size,
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

	if (f->nr_shdrs)
		return;
	elffile_dynamic(f, &d);
	if (!d.symbols || !d.names || !d.hash)
		return;
	symbols.sh_addr = d.symbols;
	symbols.sh_size = count_by_hash(f, d.hash) * sizeof(Elf64_Sym);
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

struct elfpart elfparts_round(uint64_t start, uint64_t end, uint64_t size)
{
	uint64_t more = ELFPARTS_ALIGNED - 1 - (end - 1) % ELFPARTS_ALIGNED;

	assert(start < end);
	assert(start <= size);
	return (struct elfpart){
		.start = start - start % ELFPARTS_ALIGNED,
		.end = more < size - MIN(end, size) ? end + more : size,
	};
}

void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size)
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
