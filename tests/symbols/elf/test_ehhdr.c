// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * .eh_frame_hdr: made tables with every kind of damage, and the installed ones, with the same
 * answers as our walk.
 * Live: takes about a second of CPU time, or more.
 */
#include "symbols/elf/eh_frame.c"

#include "tests/prelude.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>

#include "symbols/base/base.h"
#include "tests/makers/eh_frame.h"
#include "symbols/elf/elf.h"

#define HDR_VADDR 0xf0000ULL
#define CODE_AT	  0x1000ULL
#define NR	  100u

/* An .eh_frame of two CIEs and NR FDEs of 0x10 bytes each, begun in no order, and its table. */
struct made {
	struct eh_section section;
	uint8_t head[EHHDR_SIZE];
	uint64_t entries[NR + 8];
	uint32_t nr;
	uint32_t offset[NR]; /* of the FDE of CODE_AT + 0x10 * i */
};

static uint64_t made_entry(uint64_t start, uint64_t fde)
{
	return (uint32_t)(start - HDR_VADDR) | (uint64_t)(uint32_t)(EH_VADDR + fde - HDR_VADDR)
						       << 32;
}

static void make(struct made *m)
{
	uint32_t pointer = (uint32_t)(EH_VADDR - HDR_VADDR - 4), cie[2];

	m->section.size = 0;
	m->nr = NR;
	cie[0] = eh_cie(&m->section, false, eh_usual, sizeof(eh_usual));
	cie[1] = eh_cie(&m->section, true, eh_usual, sizeof(eh_usual));
	for (uint32_t n = 0; n < NR; n++) {
		uint32_t i = n * 37 % NR;

		m->offset[i] = eh_fde(&m->section, cie[n & 1], CODE_AT + 0x10 * i, 0x10, NULL, 0);
		m->entries[i] = made_entry(CODE_AT + 0x10 * i, m->offset[i]);
	}
	eh_put(&m->section, 0, 4);
	memcpy(m->head, "\x01\x1b\x03\x3b", 4);
	memcpy(m->head + 4, &pointer, 4);
	memcpy(m->head + 8, &m->nr, 4);
}

/* Index @m by its table, which has @bytes bytes. */
static int init_of(struct ehframe *eh, const struct made *m, size_t bytes)
{
	uint64_t *entries = xcalloc(NR + 8, sizeof(*entries));
	struct ehhdr h;
	int rc;

	memcpy(entries, m->entries, sizeof(m->entries));
	assert_true(ehhdr_parse(&h, m->head, sizeof(m->head), bytes, HDR_VADDR));
	rc = ehframe_init_hdr(eh, m->section.bytes, m->section.size, EM_X86_64, &h, entries);
	if (rc)
		free(entries);
	return rc;
}

static int init(struct ehframe *eh, const struct made *m)
{
	return init_of(eh, m, EHHDR_SIZE + m->nr * sizeof(*m->entries));
}

static void assert_refused(const struct made *m)
{
	struct ehframe eh;

	assert_int_equal(init(&eh, m), -EBADMSG);
}

static bool finds(const struct ehframe *eh, uint64_t vaddr)
{
	struct ehframe_fde fde;

	return ehframe_find(eh, vaddr, &fde);
}

TEST(test_sound)
{
	struct ehframe_record rec;
	struct ehframe_fde fde;
	struct ehframe eh;
	struct made m;

	make(&m);
	assert_int_equal(init(&eh, &m), 0);
	assert_true(eh.nr_fdes == NR && eh.vaddr == EH_VADDR);
	for (uint32_t i = 0; i < NR * 0x10; i++) {
		assert_true(ehframe_find(&eh, CODE_AT + i, &fde));
		assert_true(fde.start == CODE_AT + i / 0x10 * 0x10 && fde.size == 0x10);
		assert_int_equal(fde.offset, m.offset[i / 0x10]);
		assert_int_equal(ehframe_read(&eh, fde.offset, &rec), 0);
	}
	assert_false(finds(&eh, CODE_AT - 1) || finds(&eh, CODE_AT + 0x10 * NR));
	assert_false(finds(&eh, 0) || finds(&eh, UINT64_MAX) || finds(&eh, CODE_AT + (1ULL << 32)));
	ehframe_fini(&eh);
}

/* A table of an unknown form leaves the pointer to .eh_frame valid. */
TEST(test_other_layouts)
{
	static const uint8_t other[][4] = {
		{ 1, 0x1b, 0x03, 0x3c }, { 1, 0x1b, 0x03, 0x1b }, { 1, 0x1b, 0x03, 0xff },
		{ 1, 0x1b, 0x0b, 0x3b }, { 1, 0x1b, 0xff, 0x3b }, { 1, 0x1b, 0x04, 0x3b },
	};
	struct ehhdr h;
	struct made m;

	make(&m);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		memcpy(m.head, other[i], 4);
		assert_true(ehhdr_parse(&h, m.head, EHHDR_SIZE, UINT32_MAX, HDR_VADDR));
		assert_true(h.eh_frame == EH_VADDR && !h.nr);
		assert_refused(&m);
	}
	make(&m);
	for (size_t size = 0; size < EHHDR_SIZE; size++) {
		assert_true(ehhdr_parse(&h, m.head, size, size, HDR_VADDR) == (size >= 8));
		assert_int_equal(h.nr, 0);
	}
	m.head[0] = 2;
	assert_false(ehhdr_parse(&h, m.head, EHHDR_SIZE, UINT32_MAX, HDR_VADDR));
}

TEST(test_counts)
{
	const uint32_t counts[] = { 0, 1, NR - 1, NR + 1, NR + 8, INT32_MAX, UINT32_MAX };
	struct ehframe eh;
	struct made m;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		make(&m);
		for (uint32_t n = 0; n < 8; n++) /* the entries behind it are in order also */
			m.entries[NR + n] = made_entry(CODE_AT + 0x10 * (NR + n), m.offset[0]);
		memcpy(m.head + 8, &counts[i], 4);
		assert_int_equal(init_of(&eh, &m, EHHDR_SIZE + sizeof(m.entries)), -EBADMSG);
	}
	make(&m); /* the right number, but the section ends before */
	assert_int_equal(init_of(&eh, &m, EHHDR_SIZE + NR * 8 - 1), -EBADMSG);
	/* An FDE that is left out: its function would have none. */
	eh_fde(&m.section, 0, CODE_AT + 0x10 * NR, 0x10, NULL, 0);
	assert_int_equal(init(&eh, &m), 0);
	ehframe_fini(&eh); /* behind the terminator it is no FDE */
	make(&m);
	m.section.size -= 4;
	eh_fde(&m.section, 0, CODE_AT + 0x10 * NR, 0x10, NULL, 0);
	assert_refused(&m);
}

TEST(test_order)
{
	uint64_t first;
	struct made m;

	make(&m);
	first = m.entries[50];
	m.entries[50] = m.entries[51];
	assert_refused(&m); /* two of one start */
	m.entries[51] = first;
	assert_refused(&m);
	make(&m); /* ascending as unsigned numbers only */
	m.entries[NR - 1] = (uint64_t)m.offset[0] << 32 | 0x7fffffff;
	m.entries[NR - 2] = (uint64_t)m.offset[0] << 32 | 0x80000000;
	assert_refused(&m);
}

TEST(test_offsets)
{
	struct ehframe eh;
	struct made m;

	make(&m);
	m.entries[7] = made_entry(CODE_AT + 0x70, m.section.size);
	assert_refused(&m);
	m.entries[7] = made_entry(CODE_AT + 0x70, (uint64_t)-4);
	assert_refused(&m);
	/* Inside the section, but no FDE, or that of another function: as if it were not there. */
	for (uint32_t offset = 0; offset < m.section.size; offset++) {
		m.entries[7] = made_entry(CODE_AT + 0x70, offset);
		assert_int_equal(init(&eh, &m), 0);
		assert_true(finds(&eh, CODE_AT + 0x75) == (offset == m.offset[7]));
		assert_true(finds(&eh, CODE_AT + 0x6f) && finds(&eh, CODE_AT + 0x80));
		ehframe_fini(&eh);
	}
}

TEST(test_starts_and_sizes)
{
	struct ehframe_fde fde;
	struct ehframe eh;
	struct made m;
	uint32_t size = 0x1000;

	make(&m);
	m.entries[7]++; /* not where its FDE says */
	assert_int_equal(init(&eh, &m), 0);
	assert_false(finds(&eh, CODE_AT + 0x75) || ehframe_at(&eh, 7, &fde));
	ehframe_fini(&eh);
	make(&m); /* an FDE ends at the begin of the next one */
	memcpy(m.section.bytes + m.offset[7] + 12, &size, 4);
	assert_int_equal(init(&eh, &m), 0);
	assert_true(ehframe_find(&eh, CODE_AT + 0x7f, &fde) && fde.size == 0x10);
	assert_true(ehframe_find(&eh, CODE_AT + 0x80, &fde) && fde.start == CODE_AT + 0x80);
	ehframe_fini(&eh);
}

/* The wrong .eh_frame: each FDE is elsewhere. */
TEST(test_wrong_pointer)
{
	uint32_t pointer = (uint32_t)(EH_VADDR + 0x40000 - HDR_VADDR - 4);
	struct made m;

	make(&m);
	memcpy(m.head + 4, &pointer, 4);
	assert_refused(&m);
}

/* More than 2 GiB from .eh_frame: the table cannot be made an index, the walk leaves it out. */
TEST(test_far)
{
	uint64_t entry = 0x7ffff000ULL << 32 | 0x80000000;
	struct ehhdr h = { .vaddr = EH_VADDR - 0x7ffff000, .eh_frame = EH_VADDR, .nr = 1 };
	struct eh_section s = { .size = 0 };
	uint32_t cie;
	struct ehframe eh;

	assert_false(ehhdr_index(&h, &entry, 64));
	entry = 0x7ffff000ULL << 32 | 0xfffff001; /* as far as it goes */
	assert_true(ehhdr_index(&h, &entry, 64));
	assert_true(entry == 1ULL << 32);
	cie = eh_cie(&s, false, eh_usual, sizeof(eh_usual));
	eh_fde(&s, cie, EH_VADDR + INT32_MAX, 0x100, NULL, 0);
	eh_fde(&s, cie, EH_VADDR + INT32_MAX + 1ULL, 0x100, NULL, 0);
	assert_int_equal(ehframe_init(&eh, s.bytes, s.size, EH_VADDR, EM_X86_64), 0);
	assert_true(eh.nr_fdes == 1 && eh.nr_refused == 1);
	assert_true(finds(&eh, EH_VADDR + INT32_MAX));
	assert_false(finds(&eh, EH_VADDR + INT32_MAX + 1ULL));
	ehframe_fini(&eh);
}

/* Records in a number that the lengths do not determine. */
TEST(test_records)
{
	static const uint32_t lengths[] = { 1, 3, 0x7fffffff, 0xffffffff };
	struct made m;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		make(&m);
		memcpy(m.section.bytes + m.offset[7], &lengths[i], 4);
		assert_refused(&m);
	}
	for (size_t size = 0; size < m.section.size - 4; size++) {
		make(&m);
		m.section.size = size;
		assert_refused(&m);
	}
}

struct tally {
	uint64_t files, fdes, overlaps, asked, refused;
};

static uint64_t random_next(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15ULL;
	return hash_u64(*seed);
}

/* Is @vaddr covered by the same FDE in both? */
static void compare_at(const struct ehframe *table, const struct ehframe *own, uint64_t vaddr,
		       struct tally *t)
{
	struct ehframe_fde a = { .size = 0 }, b = { .size = 0 };
	bool found = ehframe_find(own, vaddr, &b);

	if (ehframe_find(table, vaddr, &a) != found || (found && memcmp(&a, &b, sizeof(a)) != 0))
		fail_msg("%#" PRIx64 ": %#" PRIx64 " %u, not %#" PRIx64 " %u", vaddr, a.start,
			 a.size, b.start, b.size);
	t->asked++;
}

static void compare(const struct ehframe *table, const struct ehframe *own, struct tally *t)
{
	struct ehframe_fde fde, last;
	struct ehframe_record rec;
	uint64_t seed = own->nr_fdes;

	assert_int_equal(table->nr_fdes, own->nr_fdes);
	for (uint32_t i = 0; i < own->nr_fdes; i++) {
		assert_true(ehframe_at(own, i, &fde));
		assert_int_equal(ehframe_read(own, fde.offset, &rec), 0);
		t->overlaps += rec.size != fde.size;
		compare_at(table, own, fde.start, t);
		compare_at(table, own, fde.start + fde.size - 1, t);
		compare_at(table, own, fde.start + fde.size, t);
		compare_at(table, own, fde.start - 1, t);
	}
	if (!own->nr_fdes || !ehframe_at(own, 0, &fde) || !ehframe_at(own, own->nr_fdes - 1, &last))
		return;
	for (uint32_t i = 0; i < 1000; i++)
		compare_at(table, own,
			   fde.start + random_next(&seed) % (last.start - fde.start + 0x1000), t);
	t->fdes += own->nr_fdes;
}

/* The table that the file @f has, if it is one that we read. */
static uint64_t *read_table(const struct eh_file *f, struct ehhdr *h)
{
	GElf_Phdr p;
	size_t nr = 0;

	elf_getphdrnum(f->elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		uint8_t head[EHHDR_SIZE];
		uint64_t *entries;
		ssize_t size;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_GNU_EH_FRAME ||
		    pread(f->fd, head, sizeof(head), (off_t)p.p_offset) != sizeof(head) ||
		    !ehhdr_parse(h, head, sizeof(head), p.p_filesz, p.p_vaddr) || !h->nr)
			continue;
		entries = xcalloc(h->nr, sizeof(*entries));
		size = (ssize_t)(h->nr * sizeof(*entries));
		if (pread(f->fd, entries, (size_t)size, (off_t)(p.p_offset + EHHDR_SIZE)) == size)
			return entries;
		free(entries);
	}
	return NULL;
}

static void compare_file(const char *path, struct tally *t)
{
	uint64_t *entries;
	struct ehframe eh;
	struct eh_file f;
	struct ehhdr h;

	if (!eh_open(&f, path))
		return;
	entries = read_table(&f, &h);
	if (!entries) {
		eh_close(&f);
		return;
	}
	if (ehframe_init_hdr(&eh, f.eh.bytes, f.eh.size, f.eh.machine, &h, entries)) {
		print_message("%s: its table is not used\n", path);
		t->refused++;
		free(entries);
	} else {
		compare(&eh, &f.eh, t);
		t->files++;
		ehframe_fini(&eh);
	}
	eh_close(&f);
}

#define FDES_A_RUN 400000u /* unless CFI_ALL is set */

static struct tally system_wide;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (type == FTW_F && S_ISREG(st->st_mode) && st->st_size > 4096)
		compare_file(path, &system_wide);
	return system_wide.fdes > FDES_A_RUN && !getenv("CFI_ALL");
}

/* Installed files: tables are used, and agree with the walk. */
TEST(test_system)
{
	struct tally *t = &system_wide;

	compare_file("/proc/self/exe", t);
	if (!nftw("/usr/bin", visit, 16, FTW_PHYS))
		nftw("/usr/lib", visit, 16, FTW_PHYS);
	print_message("%" PRIu64 " files, %" PRIu64 " FDEs (%" PRIu64 " overlap), %" PRIu64
		      " look-ups; %" PRIu64 " tables not used\n",
		      t->files, t->fdes, t->overlaps, t->asked, t->refused);
	assert_true(t->files > 0 && t->refused <= t->files / 20);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
