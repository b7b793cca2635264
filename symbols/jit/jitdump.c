// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The records of a jitdump, read through a window of the file.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"

#define MAGIC	       0x4a695444U
#define MAGIC_SWAPPED  0x4454694aU
#define ARCH_TIMESTAMP 1ULL
#define HEADER_SIZE    40U
#define PREFIX_SIZE    16U
#define WINDOW_SIZE    (256U << 10)
#define HEADER_MAX     4096U	   /* of the file: later versions may add fields */
#define DEBUG_SIZE_MAX WINDOW_SIZE /* a record of lines; longer ones are left out */
#define ELF_HEADER     0x40U
#define CLOCK_EVERY    256U

enum { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

/* CODE_LOAD after its prefix; the name and the code follow. */
struct load_fields {
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
};

struct move_fields {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct record {
	uint32_t id, size;
	uint64_t time_ns;
	uint64_t at;	/* of its first byte behind the prefix */
	uint32_t rest;	/* bytes behind the prefix */
	uint32_t there; /* of @nr_lines entries in the file */
};

int jitdump_init(struct jitdump *d)
{
	memset(d, 0, sizeof(*d));
	d->least_offset = UINT32_MAX;
	return jitcode_new(&d->code);
}

void jitdump_fini(struct jitdump *d)
{
	jitcode_free(d->code);
	free(d->lines);
	memset(d, 0, sizeof(*d));
}

/* Fill the window from @at on, as far as the file goes. */
static int fill(struct jitdump *d, const struct jitdump_file *file, uint64_t at)
{
	size_t want = (size_t)MIN(file->size - at, (uint64_t)WINDOW_SIZE);

	d->window_at = at;
	d->window_size = 0;
	if (file->fd < 0) {
		memcpy(d->window, file->bytes + at, want);
		d->window_size = want;
		return 0;
	}
	while (d->window_size < want) {
		ssize_t nr = pread(file->fd, d->window + d->window_size, want - d->window_size,
				   (off_t)(at + d->window_size));

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return -errno;
		if (!nr)
			break;
		d->window_size += (size_t)nr;
	}
	return 0;
}

/* Return @size bytes at @at, at most a window; NULL with *rc 0: the file ends before. */
static const uint8_t *look(struct jitdump *d, const struct jitdump_file *file, uint64_t at,
			   size_t size, int *rc)
{
	*rc = 0;
	if (size > WINDOW_SIZE || at > file->size || file->size - at < size)
		return NULL;
	if (at < d->window_at || at - d->window_at > d->window_size ||
	    d->window_size - (at - d->window_at) < size) {
		*rc = fill(d, file, at);
		if (*rc || d->window_size < size)
			return NULL;
	}
	return d->window + (at - d->window_at);
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Read the file's header. */
static int read_header(struct jitdump *d, const struct jitdump_file *file)
{
	int rc;
	const uint8_t *p = look(d, file, 0, HEADER_SIZE, &rc);

	if (!p)
		return rc ? rc : -EAGAIN;
	if (u32_at(p) == MAGIC_SWAPPED || (u32_at(p) == MAGIC && u32_at(p + 4) != 1))
		return -ENOTSUP;
	/* A file extended before it was written begins with zeros. */
	if (!u32_at(p))
		return -EAGAIN;
	if (u32_at(p) != MAGIC || u32_at(p + 8) < HEADER_SIZE || u32_at(p + 8) > HEADER_MAX)
		return -EBADMSG;
	if (u32_at(p + 8) > file->size)
		return -EAGAIN;
	d->machine = (uint16_t)u32_at(p + 12);
	d->has_times = !(u64_at(p + 32) & ARCH_TIMESTAMP);
	d->at = u32_at(p + 8);
	return 0;
}

static void forget_lines(struct jitdump *d)
{
	d->nr_lines = 0;
	d->lines_of = 0;
}

static int add_line(struct jitdump *d, const struct jitcode_line *line)
{
	if (!array_reserve(&d->lines, &d->max_lines, d->nr_lines + 1ull))
		return -ENOMEM;
	d->lines[d->nr_lines++] = *line;
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct jitcode_line *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Read one entry of lines at p; return its size, 0 when it is invalid. */
static size_t take_line(struct jitdump *d, const uint8_t *p, size_t left, uint64_t code, int *rc)
{
	static const char again[] = "\xff"; /* the name of the entry before */
	struct jitcode_line line;
	const char *name;
	size_t size;
	uint64_t addr;

	if (left < 17)
		return 0;
	addr = u64_at(p);
	name = (const char *)p + 16;
	size = strnlen(name, left - 16);
	if (size == left - 16 || addr < code || addr - code > JITCODE_SIZE_MAX)
		return 0;
	line.offset = (uint32_t)(addr - code);
	line.line = u32_at(p + 8);
	if (!strcmp(name, again))
		line.file = d->nr_lines ? d->lines[d->nr_lines - 1].file : UINT32_MAX;
	else
		line.file = jitcode_add_file(d->code, name, size);
	if (line.file != UINT32_MAX)
		*rc = add_line(d, &line);
	return 16 + size + 1;
}

/*
 * Read the lines of the function that is loaded next. V8 writes names of freed
 * memory: check each entry.
 */
static int read_lines(struct jitdump *d, const struct jitdump_file *file, const struct record *r)
{
	int rc;
	const uint8_t *p = r->rest <= DEBUG_SIZE_MAX ? look(d, file, r->at, r->rest, &rc) : NULL;
	uint64_t nr, code;
	size_t at = 16, size;

	forget_lines(d);
	if (!p || r->rest < 16)
		return 0;
	code = u64_at(p);
	nr = u64_at(p + 8);
	for (rc = 0; nr && !rc; nr--, at += size) {
		size = take_line(d, p + at, r->rest - at, code, &rc);
		if (!size)
			break;
	}
	if (rc || nr) { /* contradictory: use none of the lines */
		d->nr_bad += !rc;
		forget_lines(d);
		return rc;
	}
	if (!d->nr_lines)
		return 0;
	d->lines_of = code;
	qsort(d->lines, d->nr_lines, sizeof(*d->lines), compare_lines);
	d->least_offset = MIN(d->least_offset, d->lines[0].offset);
	return 0;
}

/* Get the fields and the name of a record, up to the code. NULL: damaged. */
static const uint8_t *take_named(struct jitdump *d, const struct jitdump_file *file,
				 const struct record *r, size_t fields, size_t *name_size)
{
	size_t size = MIN((size_t)r->there, fields + JITCODE_NAME_MAX * 8);
	int rc;
	const uint8_t *p = r->there > fields ? look(d, file, r->at, size, &rc) : NULL;

	if (!p)
		return NULL;
	*name_size = strnlen((const char *)p + fields, size - fields);
	return *name_size < size - fields ? p : NULL;
}

static int read_load(struct jitdump *d, const struct jitdump_file *file, const struct record *r)
{
	struct jitcode_load load = { .time_ns = d->has_times ? r->time_ns : 0 };
	const uint8_t *p = take_named(d, file, r, sizeof(struct load_fields), &load.name_size);
	struct load_fields f;
	int rc;

	if (!p)
		return -EINVAL;
	memcpy(&f, p, sizeof(f));
	if (f.size > r->rest - sizeof(f) - load.name_size - 1)
		return -EINVAL;
	load.start = f.addr;
	load.size = f.size;
	load.name = (const char *)p + sizeof(f);
	load.bytes_at = r->at + sizeof(f) + load.name_size + 1;
	if (d->nr_lines && d->lines_of == f.addr) {
		load.lines = d->lines;
		load.nr_lines = d->nr_lines;
	}
	rc = jitcode_add(d->code, &load);
	forget_lines(d);
	return rc;
}

/* Code was moved; it keeps its name, the instructions in the file do not move. */
static int read_move(struct jitdump *d, const struct jitdump_file *file, const struct record *r)
{
	struct jitcode_load load = { .time_ns = d->has_times ? r->time_ns : 0 };
	const struct jitcode_function *from;
	char name[JITCODE_NAME_MAX];
	struct move_fields f;
	const uint8_t *p;
	int rc;

	p = r->rest >= sizeof(f) ? look(d, file, r->at, sizeof(f), &rc) : NULL;
	if (!p)
		return -EINVAL;
	memcpy(&f, p, sizeof(f));
	from = jitcode_latest(d->code, f.from);
	if (!from || from->start != f.from)
		return -EINVAL;
	memcpy(name, jitcode_text(d->code, from->name), from->name_size);
	load.start = f.to;
	load.size = f.size;
	load.bytes_at = from->bytes_at;
	load.name = name;
	load.name_size = from->name_size;
	return jitcode_add(d->code, &load);
}

static int read_record(struct jitdump *d, const struct jitdump_file *file, const struct record *r)
{
	int rc = 0;

	switch (r->id) {
	case CODE_LOAD:
		rc = read_load(d, file, r);
		break;
	case CODE_MOVE:
		rc = read_move(d, file, r);
		break;
	case CODE_DEBUG_INFO:
		rc = read_lines(d, file, r);
		break;
	case CODE_CLOSE:
		d->ended = true;
		break;
	default: /* CODE_UNWINDING_INFO, and unknown types */
		break;
	}
	d->nr_bad += rc == -EINVAL;
	return rc == -EINVAL ? 0 : rc;
}

/* Read the record at d->at; false: it is incomplete, or *rc is the error. */
static bool next_record(struct jitdump *d, const struct jitdump_file *file, struct record *r,
			int *rc)
{
	const uint8_t *p = look(d, file, d->at, PREFIX_SIZE, rc);

	if (!p)
		return false;
	*r = (struct record){ u32_at(p), u32_at(p + 4), u64_at(p + 8), d->at + PREFIX_SIZE, 0, 0 };
	/* All zeros: reserved by the writer and not written yet. */
	if (!r->size && !r->id)
		return false;
	if (r->size < PREFIX_SIZE || r->size > JITDUMP_RECORD_MAX) {
		*rc = -EBADMSG;
		return false;
	}
	r->rest = r->size - PREFIX_SIZE;
	r->there = (uint32_t)MIN(file->size - r->at, r->rest);
	return r->there == r->rest;
}

/*
 * The end of the last record may be missing for long: V8 writes a page at a time.
 * Its code already runs, so it is used as soon as its name is there.
 */
static int take_early(struct jitdump *d, const struct jitdump_file *file, const struct record *r)
{
	int rc;

	if (r->id != CODE_LOAD || !r->there || d->early_at == d->at)
		return 0;
	rc = read_load(d, file, r);
	if (!rc)
		d->early_at = d->at;
	return rc == -EINVAL ? 0 : rc;
}

/* Read the complete records. */
static int read_records(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns,
			bool *more)
{
	uint64_t start_ns = time_now_ns();
	struct record r = { .size = 0 };
	uint32_t nr = 0;
	int rc = 0;

	while (!d->ended && next_record(d, file, &r, &rc)) {
		rc = d->early_at == d->at ? 0 : read_record(d, file, &r);
		r.there = 0;
		if (rc)
			break;
		d->at += r.size;
		if (max_ns && ++nr % CLOCK_EVERY == 0 && time_now_ns() - start_ns > max_ns) {
			*more = true;
			break;
		}
	}
	if (!rc && !*more && !d->ended)
		rc = take_early(d, file, &r);
	/*
	 * After damage the start of the next record is unknown; in a full table no record can be
	 * kept.
	 */
	if (rc == -EBADMSG || rc == -ENOSPC)
		d->ended = true;
	return rc == -ENOSPC ? 0 : rc;
}

int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns, bool *more)
{
	int rc = 0;

	*more = false;
	d->window = malloc(WINDOW_SIZE);
	d->window_size = 0;
	if (!d->window)
		return -ENOMEM;
	if (!d->at)
		rc = read_header(d, file);
	if (!rc)
		rc = read_records(d, file, max_ns, more);
	free(d->window);
	d->window = NULL;
	return rc;
}

const struct jitcode_line *jitdump_line(const struct jitdump *d, const struct jitcode_function *f,
					uint64_t addr)
{
	uint64_t shift = d->least_offset != UINT32_MAX && d->least_offset >= ELF_HEADER ? ELF_HEADER
											: 0;

	return f->nr_lines ? jitcode_line(d->code, f, addr + shift) : NULL;
}
