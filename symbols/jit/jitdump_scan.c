// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader of jitdumps. It keeps nothing between two parts: lines of a function in the next part
 * are read again with it.
 *
 * Runs on: a worker of the cage.
 */
#include "symbols/jit/jitdump_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/bytes.h"
#include "symbols/jit/jit.h"

#define MAGIC	       0x4a695444U
#define MAGIC_SWAPPED  0x4454694aU
#define ARCH_TIMESTAMP 1ULL
#define HEADER_SIZE    40U
#define PREFIX_SIZE    16U
#define HEADER_MAX     4096U	    /* of the file: later versions may add fields */
#define DEBUG_SIZE_MAX (256U << 10) /* a record of lines; longer ones are left out */
#define MEMORY	       (256ULL << 20)

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
	uint32_t there; /* of @rest in the file */
};

/* Lines of the function that is loaded next. */
struct line {
	uint32_t offset, line, number;
	uint32_t file_size;
	const char *file; /* in the part */
};

struct scan {
	struct jitdump_state state;
	const uint8_t *part;
	uint64_t part_at, part_size, file_size;
	bool more; /* wanted bytes behind the part */
	struct line *lines;
	uint32_t nr_lines, max_lines;
	uint64_t lines_of; /* they are of the code at this address */
	uint64_t lines_at; /* position of their record */
	uint32_t nr_files;
	const char *last_file;
	uint32_t last_file_size;
	struct cage_reply *reply;
};

/* Return @size bytes at @at; NULL: the file ends before, or (*more) the part. */
static const uint8_t *look(struct scan *s, uint64_t at, size_t size)
{
	if (at > s->file_size || s->file_size - at < size)
		return NULL;
	if (at < s->part_at || at - s->part_at > s->part_size ||
	    s->part_size - (at - s->part_at) < size) {
		s->more = true;
		return NULL;
	}
	return s->part + (at - s->part_at);
}

/* Read the file's header. */
static int read_header(struct scan *s)
{
	const uint8_t *p = look(s, 0, HEADER_SIZE);

	if (!p)
		return -EAGAIN;
	if (bytes_u32(p) == MAGIC_SWAPPED || (bytes_u32(p) == MAGIC && bytes_u32(p + 4) != 1))
		return -ENOTSUP;
	/* A file extended before it was written begins with zeros. */
	if (!bytes_u32(p))
		return -EAGAIN;
	if (bytes_u32(p) != MAGIC || bytes_u32(p + 8) < HEADER_SIZE ||
	    bytes_u32(p + 8) > HEADER_MAX)
		return -EBADMSG;
	if (bytes_u32(p + 8) > s->file_size)
		return -EAGAIN;
	s->state.machine = (uint16_t)bytes_u32(p + 12);
	s->state.has_times = !(bytes_u64(p + 32) & ARCH_TIMESTAMP);
	s->state.at = bytes_u32(p + 8);
	return 0;
}

static void forget_lines(struct scan *s)
{
	s->nr_lines = 0;
	s->lines_of = 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return 0;
}

/* Read one entry of lines at p; return its size, 0 when it is invalid. */
static size_t take_line(struct scan *s, const uint8_t *p, size_t left, uint64_t code, int *rc)
{
	static const char again[] = "\xff"; /* the name of the entry before */
	struct line line = { .file = (const char *)p + 16 };
	size_t size;
	uint64_t addr;

	if (left < 17)
		return 0;
	addr = bytes_u64(p);
	size = strnlen(line.file, left - 16);
	if (size == left - 16 || addr < code || addr - code > JITCODE_SIZE_MAX)
		return 0;
	line.offset = (uint32_t)(addr - code);
	line.line = bytes_u32(p + 8);
	line.file_size = (uint32_t)MIN(size, (size_t)JITCODE_NAME_MAX);
	if (!strcmp(line.file, again)) {
		if (!s->nr_lines)
			return 16 + size + 1;
		line.file = s->lines[s->nr_lines - 1].file;
		line.file_size = s->lines[s->nr_lines - 1].file_size;
	}
	if (array_reserve(&s->lines, &s->max_lines, s->nr_lines + 1ULL))
		s->lines[s->nr_lines++] = line;
	else
		*rc = -ENOMEM;
	return 16 + size + 1;
}

/*
 * Read the lines of the function that is loaded next. V8 writes names of freed
 * memory: check each entry.
 */
static int read_lines(struct scan *s, const struct record *r)
{
	const uint8_t *p;
	uint64_t nr, code;
	size_t at = 16, size;
	int rc = 0;

	forget_lines(s);
	if (r->rest < 16 || r->rest > DEBUG_SIZE_MAX)
		return 0;
	p = look(s, r->at, r->rest);
	if (!p)
		return 0;
	code = bytes_u64(p);
	nr = bytes_u64(p + 8);
	for (; nr && !rc; nr--, at += size) {
		size = take_line(s, p + at, r->rest - at, code, &rc);
		if (!size)
			break;
	}
	if (rc || nr) { /* contradictory: use none of the lines */
		s->state.nr_bad += !rc;
		forget_lines(s);
		return rc;
	}
	s->lines_of = code;
	s->lines_at = r->at - PREFIX_SIZE;
	return 0;
}

/* Append events for files that are new, and number the lines. */
static void put_files(struct scan *s)
{
	for (uint32_t i = 0; i < s->nr_lines; i++) {
		struct line *l = &s->lines[i];
		const struct jitdump_event e = { .kind = JITDUMP_FILE, .text_size = l->file_size };

		if (!s->nr_files || s->last_file_size != l->file_size ||
		    memcmp(s->last_file, l->file, l->file_size) != 0) {
			cage_put(s->reply, &e, sizeof(e));
			cage_put(s->reply, l->file, l->file_size);
			s->last_file = l->file;
			s->last_file_size = l->file_size;
			s->nr_files++;
		}
		l->number = s->nr_files - 1;
	}
}

/* Append the lines, sorted. */
static void put_lines(struct scan *s)
{
	for (uint32_t i = 0; i < s->nr_lines; i++) {
		const struct line *l = &s->lines[i];
		const struct jitdump_event_line out = { l->offset, l->line, l->number };

		cage_put(s->reply, &out, sizeof(out));
	}
}

/* Get the fields and the name of a record, up to the code. NULL: damaged, or behind the part. */
static const uint8_t *take_named(struct scan *s, const struct record *r, size_t fields,
				 size_t *name_size)
{
	size_t size = MIN((size_t)r->there, fields + JITCODE_NAME_MAX * 8);
	const uint8_t *p = r->there > fields ? look(s, r->at, size) : NULL;

	if (!p)
		return NULL;
	*name_size = strnlen((const char *)p + fields, size - fields);
	return *name_size < size - fields ? p : NULL;
}

static int read_load(struct scan *s, const struct record *r)
{
	size_t name_size;
	const uint8_t *p = take_named(s, r, sizeof(struct load_fields), &name_size);
	struct jitdump_event e = { .kind = JITDUMP_LOAD };
	struct load_fields f;

	if (!p)
		return -EINVAL;
	memcpy(&f, p, sizeof(f));
	if (f.size > r->rest - sizeof(f) - name_size - 1)
		return -EINVAL;
	if (s->nr_lines && s->lines_of != f.addr)
		forget_lines(s);
	put_files(s);
	if (s->nr_lines) {
		qsort(s->lines, s->nr_lines, sizeof(*s->lines), compare_lines);
		s->state.least_offset = MIN(s->state.least_offset, s->lines[0].offset);
	}
	e.time_ns = s->state.has_times ? r->time_ns : 0;
	e.start = f.addr;
	e.size = f.size;
	e.from = r->at + sizeof(f) + name_size + 1;
	e.text_size = (uint32_t)MIN(name_size, (size_t)JITCODE_NAME_MAX);
	e.nr_lines = s->nr_lines;
	cage_put(s->reply, &e, sizeof(e));
	cage_put(s->reply, p + sizeof(f), e.text_size);
	put_lines(s);
	forget_lines(s);
	return 0;
}

/* Code was moved; it keeps its name, the instructions in the file do not move. */
static int read_move(struct scan *s, const struct record *r)
{
	const uint8_t *p;
	struct jitdump_event e = { .kind = JITDUMP_MOVE };
	struct move_fields f;

	p = r->rest >= sizeof(f) ? look(s, r->at, sizeof(f)) : NULL;
	if (!p)
		return -EINVAL;
	memcpy(&f, p, sizeof(f));
	e.time_ns = s->state.has_times ? r->time_ns : 0;
	e.start = f.to;
	e.size = f.size;
	e.from = f.from;
	cage_put(s->reply, &e, sizeof(e));
	return 0;
}

static int read_record(struct scan *s, const struct record *r)
{
	int rc = 0;

	switch (r->id) {
	case CODE_LOAD:
		rc = read_load(s, r);
		break;
	case CODE_MOVE:
		rc = read_move(s, r);
		break;
	case CODE_DEBUG_INFO:
		rc = read_lines(s, r);
		break;
	case CODE_CLOSE:
		s->state.ended = true;
		break;
	default: /* CODE_UNWINDING_INFO, and unknown types */
		break;
	}
	if (s->more)
		return 0;
	s->state.nr_bad += rc == -EINVAL;
	return rc == -EINVAL ? 0 : rc;
}

/* Read the record at state.at; false: it is incomplete, or *rc is the error. */
static bool next_record(struct scan *s, struct record *r, int *rc)
{
	const uint8_t *p = look(s, s->state.at, PREFIX_SIZE);

	r->there = 0;
	if (!p)
		return false;
	*r = (struct record){
		bytes_u32(p), bytes_u32(p + 4), bytes_u64(p + 8), s->state.at + PREFIX_SIZE, 0, 0,
	};
	/* All zeros: reserved by the writer and not written yet. */
	if (!r->size && !r->id)
		return false;
	if (r->size < PREFIX_SIZE || r->size > JITDUMP_RECORD_MAX) {
		*rc = -EBADMSG;
		return false;
	}
	r->rest = r->size - PREFIX_SIZE;
	r->there = (uint32_t)MIN(s->file_size - r->at, r->rest);
	return r->there == r->rest;
}

/*
 * The end of the last record may be missing for long: V8 writes a page at a time.
 * Its code already runs, so it is used as soon as its name is there.
 */
static void take_early(struct scan *s, const struct record *r)
{
	if (r->id != CODE_LOAD || !r->there || s->state.early_at == s->state.at)
		return;
	if (!read_load(s, r) && !s->more)
		s->state.early_at = s->state.at;
}

/* Read the complete records of the part. */
static int read_records(struct scan *s)
{
	struct record r = { .size = 0 };
	int rc = 0;

	while (!s->state.ended && next_record(s, &r, &rc)) {
		if (s->state.early_at != s->state.at)
			rc = read_record(s, &r);
		else
			forget_lines(s);
		r.there = 0;
		if (rc || s->more)
			break;
		s->state.at += r.size;
	}
	if (!rc && !s->more && !s->state.ended)
		take_early(s, &r);
	/* After damage the start of the next record is unknown. */
	s->state.ended |= rc == -EBADMSG;
	return rc;
}

/*
 * Go back to the record of lines of a function that is not read yet. Not if the part begins at
 * it: a record that is larger than a part is between them.
 */
static void keep_lines(struct scan *s)
{
	if (s->nr_lines && !s->state.ended && (!s->more || s->lines_at > s->part_at))
		s->state.at = s->lines_at;
}

static int serve(struct cage_call *c)
{
	struct jitdump_answer a = { .rc = 0 };
	struct jitdump_request r;
	struct scan s = { .reply = &c->reply };
	uint8_t *part;
	int rc;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	if (r.part_size > JITDUMP_PART_MAX)
		return -EINVAL;
	rc = cage_take(c, 0, r.part_size, &part);
	if (rc)
		return rc;
	s.state = r.state;
	s.part = part;
	s.part_at = r.state.at;
	s.part_size = r.part_size;
	s.file_size = r.file_size;
	cage_put(&c->reply, &a, sizeof(a));
	if (!s.state.at)
		a.rc = read_header(&s);
	if (!a.rc)
		a.rc = read_records(&s);
	keep_lines(&s);
	a.state = s.state;
	a.more = s.more;
	if (!c->reply.full)
		memcpy(c->reply.bytes, &a, sizeof(a));
	free(s.lines);
	free(part);
	return 0;
}

const struct cage_reader jitdump_reader = {
	.kind = CAGE_JITDUMP,
	.name = "proftop-jitdump",
	.serve = serve,
	.memory_max = MEMORY,
};
