// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The walk over .eh_frame: made sections with every kind of damage, and the
 * real ones of this machine against elfutils' reader.
 */
#include "symbols/elf/elf.h"

#include "tests/prelude.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include "symbols/base/base.h"

#define VADDR 0x10000ULL

struct section {
	uint8_t bytes[4096];
	size_t size;
};

static void put(struct section *s, uint64_t v, unsigned int size)
{
	memcpy(s->bytes + s->size, &v, size);
	s->size += size;
}

/* Patch the length of the record begun at @start. */
static void end_record(struct section *s, size_t start)
{
	uint32_t size;

	while ((s->size - start) % 8 != 4)
		put(s, 0, 1);
	size = (uint32_t)(s->size - start - 4);
	memcpy(s->bytes + start, &size, 4);
}

struct cie_args {
	uint8_t version, column, encoding;
	const char *letters;
};

static const struct cie_args plain = { 1, 16, 0x1b, "zR" };

static size_t put_cie(struct section *s, const struct cie_args *a)
{
	size_t start = s->size;

	put(s, 0, 4);
	put(s, 0, 4);
	put(s, a->version, 1);
	memcpy(s->bytes + s->size, a->letters, strlen(a->letters) + 1);
	s->size += strlen(a->letters) + 1;
	put(s, 1, 1);
	put(s, 0x78, 1);
	put(s, a->column, 1);
	if (a->letters[0] == 'z') {
		size_t length = s->size;

		put(s, 0, 1);
		for (const char *c = a->letters + 1; *c; c++) {
			if (*c == 'P') {
				put(s, 0x9b, 1);
				put(s, 0x1234, 4);
			} else if (*c == 'L') {
				put(s, 0x1b, 1);
			} else if (*c == 'R') {
				put(s, a->encoding, 1);
			}
		}
		s->bytes[length] = (uint8_t)(s->size - length - 1);
	}
	put(s, 0x0c, 1);
	put(s, 7, 1);
	put(s, 8, 1);
	end_record(s, start);
	return start;
}

/* An FDE with pc-relative sdata4 addresses. */
static size_t put_fde(struct section *s, size_t cie, uint64_t start, uint32_t size)
{
	size_t at = s->size;

	put(s, 0, 4);
	put(s, at + 4 - cie, 4);
	put(s, (uint32_t)(start - (VADDR + s->size)), 4);
	put(s, size, 4);
	put(s, 0, 1);
	end_record(s, at);
	return at;
}

static int init(struct ehframe *eh, const struct section *s)
{
	return ehframe_init(eh, s->bytes, s->size, VADDR, EM_X86_64);
}

/* Of the FDE that covers @vaddr; 0: none. */
static uint64_t start_at(const struct ehframe *eh, uint64_t vaddr)
{
	struct ehframe_fde fde;

	if (!ehframe_find(eh, vaddr, &fde))
		return 0;
	assert_true(fde.start <= vaddr && vaddr - fde.start < fde.size);
	return fde.start;
}

TEST(test_sorts_and_finds)
{
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &plain);
	struct ehframe eh;

	put_fde(&s, cie, 0x3000, 0x10);
	put_fde(&s, cie, 0x1000, 0x20);
	put_fde(&s, cie, 0x2000, 0x1000);
	put(&s, 0, 4);
	put_fde(&s, cie, 0x9000, 0x10); /* behind the terminator */
	assert_int_equal(init(&eh, &s), 0);
	assert_int_equal(eh.nr_fdes, 3);
	assert_int_equal(eh.nr_refused, 0);
	assert_true(!start_at(&eh, 0xfff) && !start_at(&eh, 0x1020) && !start_at(&eh, 0x3010));
	assert_int_equal(start_at(&eh, 0x1000), 0x1000);
	assert_int_equal(start_at(&eh, 0x101f), 0x1000);
	assert_int_equal(start_at(&eh, 0x2fff), 0x2000);
	assert_int_equal(start_at(&eh, 0x3000), 0x3000);
	assert_true(!start_at(&eh, 0) && !start_at(&eh, UINT64_MAX));
	ehframe_fini(&eh);
}

/* Each ends at the begin of the next one; of two that begin at one place the first in the section
 * is kept. */
TEST(test_overlaps)
{
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &plain);
	struct ehframe_fde fde;
	struct ehframe eh;

	put_fde(&s, cie, 0x1010, 0x100);
	put_fde(&s, cie, 0x1000, 0x20);
	put_fde(&s, cie, 0x1000, 0x30);
	put_fde(&s, cie, 0x1020, 0x10);
	assert_int_equal(init(&eh, &s), 0);
	assert_int_equal(eh.nr_fdes, 3);
	assert_int_equal(eh.nr_refused, 1);
	assert_true(ehframe_at(&eh, 0, &fde) && fde.start == 0x1000 && fde.size == 0x10);
	assert_int_equal(s.bytes[fde.offset + 12], 0x20);
	assert_true(ehframe_at(&eh, 1, &fde) && fde.start == 0x1010 && fde.size == 0x10);
	assert_true(ehframe_at(&eh, 2, &fde) && fde.start == 0x1020 && fde.size == 0x10);
	assert_int_equal(start_at(&eh, 0x1030), 0);
	ehframe_fini(&eh);
}

TEST(test_reads_record)
{
	static const struct cie_args signal = { 3, 16, 0x1b, "zPLRS" };
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &signal), fde = put_fde(&s, cie, 0x1000, 0x20);
	struct ehframe_record rec;
	struct ehframe eh;

	assert_int_equal(init(&eh, &s), 0);
	assert_int_equal(ehframe_read(&eh, (uint32_t)fde, &rec), 0);
	assert_true(rec.cie.signal);
	assert_true(rec.cie.sized);
	assert_int_equal(rec.cie.data_align, -8);
	assert_int_equal(rec.cie.code_align, 1);
	assert_int_equal(rec.cie.encoding, 0x1b);
	assert_int_equal(s.bytes[rec.cie.insns], 0x0c);
	assert_int_equal(rec.start, 0x1000);
	assert_int_equal(rec.insns, fde + 17);
	assert_int_equal(rec.insns_end, s.size);
	assert_int_equal(ehframe_read(&eh, (uint32_t)cie, &rec), -EBADMSG);
	assert_int_equal(ehframe_read(&eh, (uint32_t)s.size, &rec), -EBADMSG);
	ehframe_fini(&eh);
}

TEST(test_refuses_cies)
{
	static const struct cie_args bad[] = {
		{ 0, 16, 0x1b, "zR" },	{ 2, 16, 0x1b, "zR" },	      { 4, 16, 0x1b, "zR" },
		{ 1, 15, 0x1b, "zR" },	{ 1, 17, 0x1b, "zR" },	      { 3, 0x7f, 0x1b, "zR" },
		{ 1, 16, 0x1b, "eh" },	{ 1, 16, 0x1b, "R" },	      { 1, 16, 0x1b, "zRR" },
		{ 1, 16, 0x1b, "zRX" }, { 1, 16, 0x1b, "zRSPLBzzz" }, { 1, 16, 0x3b, "zR" },
		{ 1, 16, 0x9b, "zR" },	{ 1, 16, 0x1a, "zR" },	      { 1, 16, 0xff, "zR" },
		{ 1, 16, 0x50, "zR" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct section s = { .size = 0 };
		size_t cie = put_cie(&s, &plain), other = put_cie(&s, &bad[i]);
		struct ehframe eh;

		put_fde(&s, other, 0x1000, 0x20);
		put_fde(&s, cie, 0x2000, 0x20);
		assert_int_equal(init(&eh, &s), 0);
		assert_int_equal(eh.nr_fdes, 1);
		assert_int_equal(eh.nr_refused, 1);
		assert_true(!start_at(&eh, 0x1000) && start_at(&eh, 0x2000));
		ehframe_fini(&eh);
	}
}

TEST(test_refuses_fdes)
{
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &plain), fde;
	struct ehframe eh;

	put_fde(&s, cie, 0x1000, 0);	      /* empty */
	put_fde(&s, cie, 0x1000, 0x80000000); /* a negative size */
	put_fde(&s, cie - 4, 0x1000, 0x10);   /* before the section */
	fde = put_fde(&s, cie, 0x1000, 0x10);
	put_fde(&s, fde, 0x1100, 0x10); /* an FDE as CIE */
	fde = put_fde(&s, cie, 0x1200, 0x10);
	s.bytes[fde + 16] = 0x7f; /* augmentation beyond the record */
	fde = put_fde(&s, cie, 0x1300, 0x10);
	memset(s.bytes + fde + 8, 0, 4); /* discarded function */
	assert_int_equal(init(&eh, &s), 0);
	assert_int_equal(eh.nr_fdes, 1);
	assert_int_equal(eh.nr_refused, 6);
	ehframe_fini(&eh);
}

TEST(test_lengths)
{
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &plain);
	struct ehframe eh;

	put_fde(&s, cie, 0x1000, 0x10);
	put(&s, 0xffffffff, 4); /* a 64-bit record is stepped over */
	put(&s, 16, 8);
	put(&s, 1, 8);
	put(&s, 2, 8);
	put_fde(&s, cie, 0x2000, 0x10);
	put(&s, 0x7fffffff, 4); /* leaves the section: the walk ends */
	put(&s, 4, 4);
	assert_int_equal(init(&eh, &s), 0);
	assert_int_equal(eh.nr_fdes, 2);
	assert_int_equal(eh.nr_refused, 2);
	ehframe_fini(&eh);
}

TEST(test_nothing_readable)
{
	static const uint8_t end[4], junk[] = { 9, 0, 0, 0, 1, 2, 3 };
	struct ehframe eh;

	assert_int_equal(ehframe_init(&eh, end, 4, VADDR, EM_X86_64), 0);
	assert_int_equal(eh.nr_fdes, 0);
	assert_int_equal(start_at(&eh, 0), 0);
	ehframe_fini(&eh);
	assert_int_equal(ehframe_init(&eh, junk, sizeof(junk), VADDR, EM_X86_64), -EINVAL);
	ehframe_fini(&eh);
	assert_int_equal(ehframe_init(&eh, NULL, 0, VADDR, EM_X86_64), -EINVAL);
	ehframe_fini(&eh);
	assert_int_equal(ehframe_init(&eh, end, 4, VADDR, EM_386), 0);
	ehframe_fini(&eh);
	assert_int_equal(ehframe_init(&eh, end, 4, VADDR, EM_RISCV), -EINVAL);
	ehframe_fini(&eh);
}

/* Every cut of a good section: no crash (sanitizers), and just the FDEs that are whole. */
TEST(test_every_cut)
{
	struct section s = { .size = 0 };
	size_t cie = put_cie(&s, &plain), first = s.size;

	for (uint32_t i = 0; i < 20; i++)
		put_fde(&s, cie, 0x1000 + i * 0x20, 0x20);
	for (size_t size = 0; size <= s.size; size++) {
		uint8_t *copy = malloc(size + 1);
		struct ehframe eh;

		memcpy(copy, s.bytes, size);
		ehframe_init(&eh, copy, size, VADDR, EM_X86_64);
		assert_int_equal(eh.nr_fdes, (MAX(size, first) - first) / 20);
		ehframe_fini(&eh);
		free(copy);
	}
}

TEST(test_leb)
{
	static const uint8_t bytes[] = {
		0x7f, 0x80, 0x01, 0x7f, 0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01,
	};
	struct ehread r = { bytes, bytes + sizeof(bytes), false };

	assert_int_equal(ehread_uleb(&r), 127);
	assert_int_equal(ehread_uleb(&r), 128);
	assert_int_equal(ehread_sleb(&r), -1);
	assert_int_equal(ehread_sleb(&r), -128);
	assert_true(ehread_uleb(&r) == UINT64_MAX);
	assert_true(ehread_sleb(&r) == INT64_MIN);
	assert_false(r.bad);
	ehread_uleb(&r);
	assert_true(r.bad);
	r = (struct ehread){ bytes + 1, bytes + 2, false };
	ehread_uleb(&r);
	assert_true(r.bad);
	assert_int_equal(ehread_fixed(&r, 1), 0);
}

/* Count the records that elfutils finds in the section, and look each FDE up in our index. */
static uint32_t compare(const struct ehframe *eh, const GElf_Ehdr *ehdr, Elf_Data *data)
{
	uint32_t nr = 0;
	Dwarf_Off off = 0, next;
	Dwarf_CFI_Entry entry;

	while (dwarf_next_cfi(ehdr->e_ident, data, true, off, &next, &entry) == 0) {
		if (!dwarf_cfi_cie_p(&entry)) {
			struct ehframe_record rec;
			struct ehframe_fde fde;

			assert_int_equal(ehframe_read(eh, (uint32_t)off, &rec), 0);
			assert_true(ehframe_find(eh, rec.start, &fde));
			assert_int_equal(fde.offset, off);
			assert_ptr_equal(eh->bytes + rec.insns_end, entry.fde.end);
			nr++;
		}
		off = next;
	}
	return nr;
}

static void check_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf_Scn *scn = NULL;
	GElf_Ehdr ehdr;
	size_t strings;
	Elf *elf;

	if (fd < 0)
		return;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(gelf_getehdr(elf, &ehdr));
	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr shdr;
		Elf_Data *data;
		struct ehframe eh;

		gelf_getshdr(scn, &shdr);
		if (strcmp(elf_strptr(elf, strings, shdr.sh_name), ".eh_frame"))
			continue;
		data = elf_rawdata(scn, NULL);
		assert_int_equal(ehframe_init(&eh, data->d_buf, data->d_size, shdr.sh_addr,
					      ehdr.e_machine),
				 0);
		assert_int_equal(eh.nr_refused, 0);
		assert_int_equal(compare(&eh, &ehdr, data), eh.nr_fdes);
		print_message("%s: %u FDEs\n", path, eh.nr_fdes);
		ehframe_fini(&eh);
	}
	elf_end(elf);
	close(fd);
}

/* One CIE of .debug_frame. */
static size_t put_debug_cie(struct section *s, uint8_t version, uint8_t address_size)
{
	size_t start = s->size;

	put(s, 0, 4);
	put(s, UINT32_MAX, 4);
	put(s, version, 1);
	put(s, 0, 1);
	if (version == 4)
		put(s, address_size, 2);
	put(s, 1, 1);
	put(s, 0x78, 1);
	put(s, 16, 1);
	put(s, 0x08070c, 3); /* CFA = rsp + 8 */
	put(s, 0x0190, 2);
	end_record(s, start);
	return start;
}

static void put_debug_fde(struct section *s, size_t cie, uint64_t pc, uint64_t size)
{
	size_t start = s->size;

	put(s, 0, 4);
	put(s, cie, 4);
	put(s, pc, 8);
	put(s, size, 8);
	put(s, 0x100e, 2);
	end_record(s, start);
}

TEST(test_debug_frame)
{
	static const uint8_t versions[] = { 1, 3, 4 };
	struct section debug = { .size = 0 }, old = { .size = 0 };
	struct ehframe_record rec;
	struct ehframe eh;
	uint8_t *both;
	size_t size, cies[3];

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		cies[i] = put_debug_cie(&debug, versions[i], 8);
	for (size_t i = 0; i < 9; i++)
		put_debug_fde(&debug, cies[i % 3], 0x5000 + 0x100 * i, 0x80);
	put_debug_fde(&debug, put_debug_cie(&debug, 4, 4), 0x9000, 0x80); /* 32-bit addresses */
	put_debug_fde(&debug, put_debug_cie(&debug, 2, 8), 0x9100, 0x80); /* no such version */
	put_debug_fde(&debug, 3, 0x9200, 0x80);				  /* no CIE there */
	put_debug_fde(&debug, debug.size + 100, 0x9300, 0x80);
	put_fde(&old, put_cie(&old, &plain), 0x3000, 0x40);
	put(&old, 0, 4);
	put(&old, 0x5555, 8); /* behind the terminator: not to be read */
	assert_int_equal(debugframe_join(old.bytes, old.size, debug.bytes, debug.size, &both,
					 &size),
			 0);
	assert_int_equal(ehframe_init(&eh, both, size, VADDR, EM_X86_64), 0);
	assert_int_equal(eh.nr_fdes, 10);
	assert_int_equal(eh.nr_refused, 0);
	assert_int_equal(start_at(&eh, 0x3000), 0x3000);
	for (size_t i = 0; i < 9; i++) {
		struct ehframe_fde fde;

		assert_true(ehframe_find(&eh, 0x5000 + 0x100 * i + 0x7f, &fde));
		assert_int_equal(fde.start, 0x5000 + 0x100 * i);
		assert_int_equal(fde.size, 0x80);
		assert_int_equal(ehframe_read(&eh, fde.offset, &rec), 0);
		assert_int_equal(rec.cie.data_align, -8);
		assert_memory_equal(both + rec.cie.insns, "\x0c\x07\x08\x90\x01", 5);
		assert_memory_equal(both + rec.insns, "\x0e\x10", 2);
	}
	assert_int_equal(start_at(&eh, 0x9000), 0);
	ehframe_fini(&eh);
	free(both);
	assert_int_equal(debugframe_join(NULL, 0, debug.bytes, 4, &both, &size), -ENODATA);
	assert_int_equal(debugframe_join(NULL, 0, debug.bytes, debug.size, &both, &size), 0);
	assert_int_equal(ehframe_init(&eh, both, size, VADDR, EM_X86_64), 0);
	assert_int_equal(eh.nr_fdes, 9);
	ehframe_fini(&eh);
	free(both);
}

/* CIEs that take turns are copied again and again: there is an end to it. Also: each cut, each
 * byte. */
TEST(test_hostile_debug_frame)
{
	struct section s = { .size = 0 };
	size_t a = put_debug_cie(&s, 1, 8), b, size, start = s.size;
	struct ehframe eh;
	uint8_t *both;

	put(&s, 0, 4);
	put(&s, UINT32_MAX, 4);
	put(&s, 1, 2);
	put(&s, 0x107801, 3);
	for (int i = 0; i < 1200; i++)
		put(&s, 0, 1);
	end_record(&s, start);
	b = start;
	for (int i = 0; i < 60; i++)
		put_debug_fde(&s, i & 1 ? a : b, 0x5000 + 0x100U * (unsigned int)i, 0x80);
	for (size_t cut = 0; cut <= s.size; cut++) {
		uint8_t *copy = malloc(cut + 1); /* so that a sanitizer sees the end */

		memcpy(copy, s.bytes, cut);
		if (cut)
			copy[cut * 7 % cut] ^= (uint8_t)(1 << cut % 8);
		if (!debugframe_join(NULL, 0, copy, cut, &both, &size)) {
			assert_true(size <= 2 * cut + 4);
			if (!ehframe_init(&eh, both, size, VADDR, EM_X86_64))
				ehframe_fini(&eh);
			free(both);
		}
		free(copy);
	}
	assert_int_equal(debugframe_join(NULL, 0, s.bytes, s.size, &both, &size), 0);
	assert_true(size <= 2 * s.size + 4);
	free(both);
}

TEST(test_real_files)
{
	elf_version(EV_CURRENT);
	check_file("/proc/self/exe");
	check_file("/lib/x86_64-linux-gnu/libc.so.6");
	check_file("/lib/x86_64-linux-gnu/libstdc++.so.6");
	check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
