// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit-PID.dump: its records in the sandbox, one that is read while it grows, all that are found,
 * checked and followed, with limits for each user.
 *
 * Runs on: a helper.
 */
#include "symbols/jit/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"

/*
 * The reader of jitdumps. It keeps nothing between two parts: lines of a function in the next part
 * are read again with it.
 *
 * Runs on: a worker of the sandbox.
 */

enum jitdump_event_kind { JITDUMP_FILE, JITDUMP_LOAD, JITDUMP_MOVE };

struct jitdump_event {
	uint32_t kind;
	uint32_t text_size; /* of the name of the file or function; follows */
	uint64_t time_ns, start, size;
	uint64_t from; /* load: position of the code; move: its address before */
	uint32_t nr_lines, unused;
};

struct jitdump_event_line {
	uint32_t offset, line;
	uint32_t file; /* number of the file event in this answer */
};

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

struct jitdump_scan_record {
	uint32_t id, size;
	uint64_t time_ns;
	uint64_t at;	/* of its first byte behind the prefix */
	uint32_t rest;	/* bytes behind the prefix */
	uint32_t there; /* of @rest in the file */
};

/* Lines of the function that is loaded next. */
struct jitdump_scan_line {
	uint32_t offset, line, number;
	uint32_t file_size;
	const char *file; /* in the part */
};

struct scan {
	struct jitdump_state state;
	const uint8_t *part;
	uint64_t part_at, part_size, file_size;
	bool more; /* wanted bytes behind the part */
	struct jitdump_scan_line *lines;
	uint32_t nr_lines, max_lines;
	uint64_t lines_of; /* they are of the code at this address */
	uint64_t lines_at; /* position of their record */
	uint32_t nr_files;
	const char *last_file;
	uint32_t last_file_size;
	struct sandbox_reply *reply;
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
	const struct jitdump_scan_line *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return 0;
}

/* Read one entry of lines at p; return its size, 0 when it is invalid. */
static size_t take_line(struct scan *s, const uint8_t *p, size_t left, uint64_t code, int *rc)
{
	static const char again[] = "\xff"; /* the name of the entry before */
	struct jitdump_scan_line line = { .file = (const char *)p + 16 };
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
static int read_lines(struct scan *s, const struct jitdump_scan_record *r)
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
		struct jitdump_scan_line *l = &s->lines[i];
		const struct jitdump_event e = { .kind = JITDUMP_FILE, .text_size = l->file_size };

		if (!s->nr_files || s->last_file_size != l->file_size ||
		    memcmp(s->last_file, l->file, l->file_size) != 0) {
			sandbox_put(s->reply, &e, sizeof(e));
			sandbox_put(s->reply, l->file, l->file_size);
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
		const struct jitdump_scan_line *l = &s->lines[i];
		const struct jitdump_event_line out = { l->offset, l->line, l->number };

		sandbox_put(s->reply, &out, sizeof(out));
	}
}

/* Get the fields and the name of a record, up to the code. NULL: damaged, or behind the part. */
static const uint8_t *take_named(struct scan *s, const struct jitdump_scan_record *r, size_t fields,
				 size_t *name_size)
{
	size_t size = MIN((size_t)r->there, fields + JITCODE_NAME_MAX * 8);
	const uint8_t *p = r->there > fields ? look(s, r->at, size) : NULL;

	if (!p)
		return NULL;
	*name_size = strnlen((const char *)p + fields, size - fields);
	return *name_size < size - fields ? p : NULL;
}

static int read_load(struct scan *s, const struct jitdump_scan_record *r)
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
	sandbox_put(s->reply, &e, sizeof(e));
	sandbox_put(s->reply, p + sizeof(f), e.text_size);
	put_lines(s);
	forget_lines(s);
	return 0;
}

/* Code was moved; it keeps its name, the instructions in the file do not move. */
static int read_move(struct scan *s, const struct jitdump_scan_record *r)
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
	sandbox_put(s->reply, &e, sizeof(e));
	return 0;
}

static int read_record(struct scan *s, const struct jitdump_scan_record *r)
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
static bool next_record(struct scan *s, struct jitdump_scan_record *r, int *rc)
{
	const uint8_t *p = look(s, s->state.at, PREFIX_SIZE);

	r->there = 0;
	if (!p)
		return false;
	*r = (struct jitdump_scan_record){
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
static void take_early(struct scan *s, const struct jitdump_scan_record *r)
{
	if (r->id != CODE_LOAD || !r->there || s->state.early_at == s->state.at)
		return;
	if (!read_load(s, r) && !s->more)
		s->state.early_at = s->state.at;
}

/* Read the complete records of the part. */
static int read_records(struct scan *s)
{
	struct jitdump_scan_record r = { .size = 0 };
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

#define FRAMES_CODE_MAX (64U << 10) /* bytes of a function of which frames are derived */
#define FRAMES_EACH	1024U	    /* of one function */

/* Derive the frames of one function: the descriptor of the call has its code. */
struct frames_request {
	uint64_t vaddr;
	uint32_t size;
	uint16_t machine, unused;
};

/* The answer: frames as derive_function() has them. */
static int serve_frames(struct sandbox_call *c)
{
	struct derive_frame *out;
	struct frames_request r;
	uint8_t *bytes;
	int rc;

	memcpy(&r, c->request, sizeof(r));
	if (r.size > FRAMES_CODE_MAX)
		return -EINVAL;
	rc = sandbox_take(c, 0, r.size, &bytes);
	if (rc)
		return rc;
	out = calloc(FRAMES_EACH, sizeof(*out));
	if (out)
		sandbox_put(&c->reply, out,
			    derive_function(r.machine, r.vaddr, bytes, r.size, out, FRAMES_EACH) *
				    sizeof(*out));
	free(out);
	free(bytes);
	return out ? 0 : -ENOMEM;
}

static int serve(struct sandbox_call *c)
{
	struct jitdump_answer a = { .rc = 0 };
	struct jitdump_request r;
	struct scan s = { .reply = &c->reply };
	uint8_t *part;
	int rc;

	static_assert(sizeof(struct frames_request) != sizeof(r), "two kinds of requests");
	if (c->size == sizeof(struct frames_request) && c->fds[0] >= 0)
		return serve_frames(c);
	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	if (r.part_size > JITDUMP_PART_MAX)
		return -EINVAL;
	rc = sandbox_take(c, 0, r.part_size, &part);
	if (rc)
		return rc;
	s.state = r.state;
	s.part = part;
	s.part_at = r.state.at;
	s.part_size = r.part_size;
	s.file_size = r.file_size;
	sandbox_put(&c->reply, &a, sizeof(a));
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

const struct sandbox_reader jitdump_reader = {
	.kind = SANDBOX_JITDUMP,
	.name = "proftop-jitdump",
	.serve = serve,
	.memory_max = MEMORY,
};

/*
 * jit-PID.dump: written by a JIT compiler about its code, record after record
 * (Linux, tools/perf/Documentation/jitdump-specification.txt).
 *
 * Hostile: the user of the process writes it during reading. Reading continues at
 * the last position; an incomplete record waits. Only the positions of the instructions in the file
 * are kept.
 *
 * A part of the file after the other is copied and read in the sandbox; here its
 * events are checked and added.
 *
 * One thread.
 */

/* Source of the bytes: a descriptor, or memory. */
struct jitdump_file {
	int fd; /* -1: memory */
	const uint8_t *bytes;
	uint64_t size;
	struct watch *watch; /* of the reads; may be NULL */
};

#define JITDUMP_FILE_MAX (16ULL << 30)
#define ELF_HEADER	 0x40U
#define TIMEOUT_NS	 4000000000ULL
#define MORE_FIRST	 16U /* calls before is_slow() counts */

/* An answer as it is read: everything in it is foreign. */
struct answer {
	const uint8_t *at, *end;
	uint32_t *files; /* by number, of jitcode_add_file() */
	uint32_t nr_files, max_files;
	struct jitcode_line *lines;
	uint32_t max_lines;
};

static int jitdump_init(struct jitdump *d)
{
	memset(d, 0, sizeof(*d));
	d->state.least_offset = UINT32_MAX;
	return jitcode_new(&d->code);
}

static void jitdump_fini(struct jitdump *d)
{
	jitcode_free(d->code);
	memset(d, 0, sizeof(*d));
}

/* Take @size bytes of the answer; NULL: it is shorter. */
static const uint8_t *take(struct answer *a, uint64_t size)
{
	const uint8_t *at = a->at;

	if (size > (size_t)(a->end - a->at))
		return NULL;
	a->at += size;
	return at;
}

static int add_file(struct jitdump *d, struct answer *a, const char *name, size_t size)
{
	if (!array_reserve(&a->files, &a->max_files, a->nr_files + 1ULL))
		return -ENOMEM;
	a->files[a->nr_files++] = jitcode_add_file(d->code, name, size);
	return 0;
}

/* Take @nr lines; *kept: without lines of files that did not fit. 0, -EBADMSG, -ENOMEM. */
static int take_lines(struct answer *a, uint32_t nr, uint32_t *kept)
{
	const uint8_t *at = take(a, (uint64_t)nr * sizeof(struct jitdump_event_line));
	uint32_t last = 0;

	*kept = 0;
	if (!at)
		return -EBADMSG;
	if (!array_reserve(&a->lines, &a->max_lines, nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++, at += sizeof(struct jitdump_event_line)) {
		struct jitdump_event_line l;

		memcpy(&l, at, sizeof(l));
		if (l.file >= a->nr_files || l.offset < last)
			return -EBADMSG;
		last = l.offset;
		if (a->files[l.file] != UINT32_MAX)
			a->lines[(*kept)++] =
				(struct jitcode_line){ l.offset, l.line, a->files[l.file] };
	}
	return 0;
}

/* Add code; impossible code is left out. */
static int add_code(struct jitdump *d, const struct jitcode_load *load)
{
	int rc = jitcode_add(d->code, load);

	d->state.nr_bad += rc == -EINVAL;
	return rc == -EINVAL ? 0 : rc;
}

static int on_load(struct jitdump *d, struct answer *a, const struct jitdump_event *e,
		   const char *name)
{
	struct jitcode_load load = {
		.start = e->start,
		.size = e->size,
		.time_ns = e->time_ns,
		.bytes_at = e->from,
		.name = name,
		.name_size = e->text_size,
	};
	int rc = take_lines(a, e->nr_lines, &load.nr_lines);

	load.lines = a->lines;
	return rc ? rc : add_code(d, &load);
}

static int on_move(struct jitdump *d, const struct jitdump_event *e)
{
	const struct jitcode_function *from = jitcode_latest(d->code, e->from);
	struct jitcode_load load = { .start = e->start, .size = e->size, .time_ns = e->time_ns };
	char name[JITCODE_NAME_MAX];

	if (!from || from->start != e->from) {
		d->state.nr_bad++;
		return 0;
	}
	memcpy(name, jitcode_text(d->code, from->name), from->name_size);
	load.bytes_at = from->bytes_at;
	load.name = name;
	load.name_size = from->name_size;
	return add_code(d, &load);
}

/* Add the next event. 0, -EBADMSG: invalid; -ENOSPC: the table is full; -ENOMEM. */
static int add_event(struct jitdump *d, struct answer *a)
{
	const uint8_t *at = take(a, sizeof(struct jitdump_event)), *text;
	struct jitdump_event e;

	if (!at)
		return -EBADMSG;
	memcpy(&e, at, sizeof(e));
	text = take(a, e.text_size);
	if (!text || e.text_size > JITCODE_NAME_MAX)
		return -EBADMSG;
	switch (e.kind) {
	case JITDUMP_FILE:
		return add_file(d, a, (const char *)text, e.text_size);
	case JITDUMP_LOAD:
		return on_load(d, a, &e, (const char *)text);
	case JITDUMP_MOVE:
		return on_move(d, &e);
	default:
		return -EBADMSG;
	}
}

/* Check the position of the reader: it may not go on for ever. */
static bool is_valid(const struct jitdump_answer *head, const struct jitdump_request *r)
{
	static const int codes[] = { 0, -EAGAIN, -EBADMSG, -ENOTSUP, -ENOMEM };
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		known |= head->rc == codes[i];
	return known && head->state.at >= r->state.at && head->state.at <= r->file_size &&
	       (!head->more || head->state.at > r->state.at);
}

/*
 * Return whether a worker goes on in too small steps. The reader leaves the last 256 KiB of a part
 * at most, or goes back once for the lines of a function: three calls for each MiB.
 */
static bool is_slow(const struct jitdump *d)
{
	return d->nr_more > MORE_FIRST + d->state.at / (JITDUMP_PART_MAX / 4);
}

/* Add the events of an answer to @r. *more: there are further parts. */
static int add_answer(struct jitdump *d, const struct sandbox_answer *from,
		      const struct jitdump_request *r, bool *more)
{
	struct answer a = { .at = from->bytes, .end = from->bytes + from->size };
	const uint8_t *at = take(&a, sizeof(struct jitdump_answer));
	struct jitdump_answer head;
	int rc = 0;

	/* Fields, since a foreign bool may be neither true nor false. */
	if (!at || (at[offsetof(struct jitdump_answer, state.has_times)] |
		    at[offsetof(struct jitdump_answer, state.ended)]) > 1)
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	if (!is_valid(&head, r))
		return -EBADMSG;
	d->state = head.state;
	*more = head.more && !head.rc && !head.state.ended;
	d->nr_more += *more;
	if (is_slow(d))
		return -EBADMSG;
	while (!rc && a.at < a.end)
		rc = add_event(d, &a);
	free(a.files);
	free(a.lines);
	return rc ? rc : head.rc;
}

/* Read the part at the current position. *more: there are further parts. */
static int read_part(struct jitdump *d, const struct jitdump_file *file, bool *more)
{
	struct jitdump_request r = { .state = d->state, .file_size = file->size };
	size_t size =
		(size_t)MIN(file->size - MIN(d->state.at, file->size), (uint64_t)JITDUMP_PART_MAX);
	int fds[SANDBOX_FDS_MAX] = { -1, -1 };
	struct sandbox_answer a;
	int rc;

	*more = false;
	r.part_size = size;
	if (file->fd < 0) {
		fds[0] = sandbox_wrap(file->bytes + d->state.at, size);
	} else {
		fds[0] = jitcopy(file->fd, d->state.at, size, file->watch, &size);
		/* It became shorter. */
		if (size < r.part_size)
			r.file_size = d->state.at + size;
		r.part_size = size;
	}
	if (fds[0] < 0)
		return fds[0];
	rc = sandbox_call(&jitdump_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (!rc) {
		rc = add_answer(d, &a, &r, more);
		free(a.bytes);
	}
	/* In a full table no record can be kept. */
	d->state.ended |= rc == -ENOSPC || rc == -EBADMSG || rc == -EPIPE || rc == -ETIME ||
			  rc == -ENOSYS;
	return rc == -ENOSPC ? 0 : rc;
}

/*
 * Read new records of @file, for at most @max_ns (0: all); *more: some are left.
 * 0, -EAGAIN (the header is not written yet), -EBADMSG (no jitdump), -ENOTSUP (of
 * another byte order or version), -EIO, -ENOMEM, -ECANCELED; or an error of sandbox_call(): then it
 * is not read again (state.ended).
 */
static int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns,
			bool *more)
{
	uint64_t start_ns = time_now_ns();
	int rc;

	do {
		rc = read_part(d, file, more);
		if (rc || d->state.ended)
			*more = false;
	} while (*more && (!max_ns || time_now_ns() - start_ns <= max_ns));
	return rc;
}

/*
 * Find the source line of @addr in @f. V8's addresses include the ELF header that
 * perf would add.
 */
static const struct jitcode_line *jitdump_line(const struct jitdump *d,
					       const struct jitcode_function *f, uint64_t addr)
{
	uint64_t shift = d->state.least_offset != UINT32_MAX && d->state.least_offset >= ELF_HEADER
				 ? ELF_HEADER
				 : 0;

	return f->nr_lines ? jitcode_line(d->code, f, addr + shift) : NULL;
}

/*
 * Open and read one jitdump.
 *
 * Runs on: a helper, or the loader of a replay.
 */

#define SLICE_NS     50000000ULL  /* of reading one jitdump before the next one */
#define CODE_WAIT_NS 300000000ULL /* for the instructions of one function */

/* Free the list of candidates. */
static void jitdump_job_forget(struct jitdump_job *r)
{
	for (uint32_t i = 0; i < r->nr_candidates; i++)
		free(r->candidates[i].seen.path);
	free(r->candidates);
	r->candidates = NULL;
	r->nr_candidates = 0;
}

static void close_dump(struct jitdump_job *r)
{
	if (r->fd < 0 && !r->closed)
		return;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	r->closed = false;
	jitdump_fini(&r->dump);
	r->size = 0;
}

/* Free a job that does not run; as the job's drop(). */
static void jitdump_job_drop(struct job *job)
{
	struct jitdump_job *r = (struct jitdump_job *)job;

	close_dump(r);
	jitdump_job_forget(r);
	free(r->root);
	free(r);
}

/* Open @c as the jitdump of the process with owner @o, if it belongs to it. */
static int open_file(const struct jitdump_job *r, const struct jitdump_candidate *c,
		     const struct code_owner *o, int *fd)
{
	struct untrusted_want want = {
		.pid = r->no_proc ? 0 : r->pid,
		.root = r->root,
		.size_max = JITDUMP_FILE_MAX,
		.maj = c->identity.maj,
		.min = c->identity.min,
		.ino = c->identity.ino,
		.path = c->seen.path && *c->seen.path ? c->seen.path : NULL,
		.owned = true,
		.uid = o->uid,
	};
	struct untrusted_file opened;
	int rc;

	if (c->seen.pid == r->pid && !r->no_proc) {
		want.start = c->seen.start;
		want.end = c->seen.end;
	}
	/* A recording may have the pids of a container, which mean nothing here. */
	if (!r->no_proc && c->file.inner_pid != o->inner_pid)
		return -ENOENT;
	rc = untrusted_open(&want, &opened, NULL);
	if (!rc)
		*fd = opened.fd;
	return rc;
}

/* Search the jitdump of the process. 0, -ENOENT, -errno. */
static int open_dump(struct jitdump_job *r)
{
	struct code_owner o;
	int rc = 0, found = -ENOENT;

	code_owner_ours(r->pid, &o);
	if (!r->no_proc)
		rc = code_owner_ask(r->pid, &o);
	if (rc)
		return rc;
	r->process_start = o.start;
	for (uint32_t i = 0; i < r->nr_candidates && found == -ENOENT; i++)
		found = open_file(r, &r->candidates[i], &o, &r->fd);
	code_owner_done(&o);
	if (found)
		return found;
	rc = jitdump_init(&r->dump);
	if (rc)
		close_dump(r);
	return rc;
}

/* Get the size of the open jitdump. */
static int size_of(struct jitdump_job *r, uint64_t *size)
{
	int rc = watch_begin(&r->read.job.watch);
	struct stat st;

	if (rc)
		return rc;
	rc = fstat(r->fd, &st) ? -errno : 0;
	watch_end(&r->read.job.watch, 0);
	if (!rc)
		*size = (uint64_t)MAX(st.st_size, 0);
	return rc;
}

/* Read the new records of the open jitdump. */
static int read_on(struct jitdump_job *r)
{
	struct jitdump_file file = { .fd = r->fd, .watch = &r->read.job.watch };
	uint32_t before = jitcode_nr(r->dump.code);
	int rc = size_of(r, &file.size);

	if (rc)
		return rc;
	if (file.size < r->dump.state.at) { /* started again */
		jitdump_fini(&r->dump);
		if (jitdump_init(&r->dump)) {
			close(r->fd);
			r->fd = -1;
			return -ENOMEM;
		}
		before = 0;
		r->size = 0;
	}
	if (file.size == r->size || r->dump.state.ended)
		return 0;
	if (!r->full)
		rc = jitdump_read(&r->dump, &file, r->no_proc ? 0 : SLICE_NS, &r->more);
	r->size = r->more ? r->dump.state.at : file.size;
	r->news = jitcode_nr(r->dump.code) != before;
	return rc;
}

/* Return whether the process with the jitdump has ended. */
static bool has_ended(const struct jitdump_job *r)
{
	struct code_owner o;
	int rc = code_owner_ask(r->pid, &o);
	bool other;

	if (rc)
		return rc == -ENOENT || rc == -ESRCH;
	other = o.start != r->process_start;
	code_owner_done(&o);
	return other;
}

/* Close the file, which may hang. */
static void close_file(struct jitdump_job *r)
{
	close(r->fd);
	r->fd = -1;
	r->closed = true;
}

static void run(struct job *job)
{
	struct jitdump_job *r = (struct jitdump_job *)job;
	uint64_t start_ns = time_now_ns();

	r->news = r->more = r->gone = false;
	if (r->closes) {
		close_file(r);
		return;
	}
	r->rc = watch_begin(&job->watch);
	if (r->rc)
		return;
	if (r->fd < 0)
		r->rc = open_dump(r);
	watch_end(&job->watch, 0);
	if (!r->rc)
		r->rc = read_on(r);
	if (r->asks && r->fd >= 0 && !r->more)
		r->gone = has_ended(r);
	r->cost_ns = time_now_ns() - start_ns;
}

/* Make a job for the process @pid; @root is copied (NULL: none). NULL: no memory. */
static struct jitdump_job *jitdump_job_new(pid_t pid, bool no_proc, const char *root)
{
	struct jitdump_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->read.job.run = run;
	r->read.job.drop = jitdump_job_drop;
	r->pid = pid;
	r->no_proc = no_proc;
	r->root = root ? strdup(root) : NULL;
	r->fd = -1;
	return r;
}

/* A job: read instructions of one function. */
struct code_reading {
	struct job job;
	int fd; /* owned */
	uint64_t at;
	uint8_t *bytes; /* owned */
	uint32_t want, got;
	struct frames_request request; /* size 0: the code alone */
	struct sandbox_answer frames;  /* owned */
};

static void run_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	while (c->got < c->want) {
		ssize_t nr =
			pread(c->fd, c->bytes + c->got, c->want - c->got, (off_t)(c->at + c->got));

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		c->got += (uint32_t)nr;
	}
	if (c->request.size && c->got == c->request.size) {
		const int fds[SANDBOX_FDS_MAX] = { sandbox_wrap(c->bytes, c->got), -1 };

		if (fds[0] >= 0 && sandbox_call(&jitdump_reader, &c->request, sizeof(c->request),
						fds, 0, TIMEOUT_NS, &c->frames))
			memset(&c->frames, 0, sizeof(c->frames));
		if (fds[0] >= 0)
			close(fds[0]);
	}
}

static void drop_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	close(c->fd);
	free(c->bytes);
	free(c->frames.bytes);
	free(c);
}

/*
 * Make and do a job for @want bytes of @f from the jitdump @fd, within 300 ms. @request: for its
 * frames; may be NULL. 0, then the caller drops *@out; or -errno.
 */
static int do_code(struct helpers *helpers, int fd, const struct jitcode_function *f, uint32_t want,
		   const struct frames_request *request, struct code_reading **out)
{
	struct code_reading *c = calloc(1, sizeof(*c));
	int rc;

	assert(fd >= 0);
	if (!c)
		return -ENOMEM;
	c->job.run = run_code;
	c->job.drop = drop_code;
	c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	c->bytes = malloc(MAX(want, 1U));
	c->at = f->bytes_at;
	c->want = c->bytes ? want : 0;
	if (request)
		c->request = *request;
	rc = helpers_call(helpers, &c->job, time_now_ns() + CODE_WAIT_NS);
	if (!rc)
		*out = c;
	return rc;
}

/*
 * Read @want bytes of @f from the jitdump @fd, within 300 ms, into *@bytes (malloc'ed). Return
 * their number, or -errno.
 */
static int jitdump_job_code(struct helpers *helpers, int fd, const struct jitcode_function *f,
			    uint32_t want, uint8_t **bytes)
{
	struct code_reading *c;
	int rc = do_code(helpers, fd, f, want, NULL, &c);

	if (rc)
		return rc;
	rc = c->bytes ? (int)c->got : -ENOMEM;
	*bytes = c->bytes;
	c->bytes = NULL;
	drop_code(&c->job);
	return rc;
}

/*
 * Find, trust and follow the jitdumps of processes.
 *
 * Runs on: the loader; the files are read by helpers.
 */

#define FILES_MAX     4096U
#define FILES_EACH    16U /* of one process: older ones are forgotten */
#define POLL_NS	      25000000ULL
#define COST_FACTOR   10ULL	     /* reading takes at most a tenth of the time */
#define RETRY_NS      1000000000ULL  /* while its device does not answer */
#define SETTLE_NS     300000000ULL   /* a listing waits for a job */
#define TELL_NS	      1000000000ULL  /* at least between two reports of better names */
#define ASK_NS	      10000000000ULL /* whether a process has ended */
#define FRAMES_MAX    8192U	     /* of one layer of a memory */
#define FRAMES_FAILED 8U	     /* functions without an answer: then no more of this process */
#define FRAMES_DUE_NS 50000000ULL    /* frames wait to be published together */
#define KEEP_NS	      60000000000ULL /* the file of an ended one, for its instructions */

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   struct jitreads *reads, const atomic_bool *stop)
{
	memset(j, 0, sizeof(*j));
	j->objects = objects;
	j->maps = maps;
	j->reads = reads;
	j->stop = stop;
	objects_list_new(objects);
}

/* Free the frames of @e. */
static void drop_frames(struct jitdumps_entry *e)
{
	for (uint32_t i = 0; i < e->nr_frames; i++) {
		struct jitdump_frames *x = &e->frames[i];

		/* A JVM may have put its map there. */
		if (x->map &&
		    atomic_load_explicit(&x->object->codemap, memory_order_relaxed) == x->map) {
			codemap_publish(x->object, NULL);
			codemap_reclaim(x->map);
		}
		object_put(x->object);
		free(x->codes);
	}
	free(e->frames);
	e->frames = NULL;
	e->nr_frames = 0;
}

void jitdumps_fini(struct jitdumps *j)
{
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		struct jitdumps_entry *e = j->entries[i];

		if (e->runs)
			jitreads_leave(j->reads, &e->r->read);
		else
			jitdump_job_drop(&e->r->read.job);
		drop_frames(e);
		free(e);
	}
	free(j->entries);
	for (uint32_t i = 0; i < j->nr_files; i++)
		object_put(objects_at(j->objects, j->files[i].object));
	free(j->files);
	free(j->by_object);
	memset(j, 0, sizeof(*j));
}

static size_t frames_memory(const struct jitdumps_entry *e)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < e->nr_frames; i++)
		sum += 2UL * e->frames[i].room * sizeof(*e->frames[i].codes);
	return sum;
}

/* Publish the frames of @x that were added. */
static void publish_frames(struct jitdump_frames *x)
{
	struct codemap *map = codemap_new(x->nr, 0, 0);

	assert(x->published <= x->nr);
	x->due_ns = 0;
	if (!map)
		return;
	memcpy(map->codes, x->codes, x->nr * sizeof(*x->codes));
	map->derived = true;
	if (atomic_load_explicit(&x->object->codemap, memory_order_relaxed) != x->map) {
		free(map); /* that of a JVM is there: it has taken care of the one before */
		x->map = NULL;
		x->closed = true;
		return;
	}
	codemap_publish(x->object, map);
	codemap_reclaim(x->map);
	x->map = map;
	x->published = x->nr;
}

/* Return the frames of @object, a layer of the memory of @e; NULL: there are none, nor will be. */
static struct jitdump_frames *frames_of(struct jitdumps_entry *e, struct object *object)
{
	struct jitdump_frames *x;
	uint32_t i = 0;

	while (i < e->nr_frames && e->frames[i].object != object)
		i++;
	if (i < e->nr_frames)
		return e->frames[i].closed ? NULL : &e->frames[i];
	/* The last layer forgets code that was replaced; a JVM describes such code. */
	if (object->identity.layer + 1U >= JITCODE_LAYERS ||
	    atomic_load_explicit(&object->codemap, memory_order_relaxed))
		return NULL;
	x = realloc(e->frames, (e->nr_frames + 1UL) * sizeof(*x));
	if (!x)
		return NULL;
	e->frames = x;
	x = &x[e->nr_frames++];
	*x = (struct jitdump_frames){ .object = object };
	object_get(object);
	return x;
}

/* Set @c to the frame @d of @f; false: it is impossible, or its numbers do not fit. */
static bool set_code(struct codemap_code *c, const struct derive_frame *d,
		     const struct jitcode_function *f, uint32_t from)
{
	const int32_t numbers[] = { d->cfa, d->ra, d->fp };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i] % 4 || numbers[i] != (int16_t)numbers[i])
			return false;
	if (d->start < from || d->start >= f->size || !d->size || d->size > f->size - d->start)
		return false;
	*c = (struct codemap_code){ .start = f->start + d->start,
				    .size = d->size,
				    .kind = CODEMAP_DERIVED,
				    .derived = { (int16_t)d->cfa, (int16_t)d->ra, (int16_t)d->fp,
						 d->by_fp == 1 } };
	return true;
}

/* Add the frames of @f that a worker has found, or a code of the other kind if there are none. */
static void insert_frames(struct jitdump_frames *x, const struct jitcode_function *f,
			  const struct sandbox_answer *a)
{
	const uint32_t nr = (uint32_t)MIN(a->size / sizeof(struct derive_frame), FRAMES_EACH);
	uint32_t at = search_split(x->nr, i, x->codes[i].start < f->start), from = 0, put = 0;
	const uint32_t behind = x->nr - at;
	struct codemap_code *codes;

	if (!array_reserve(&x->codes, &x->room, x->nr + nr + 1u))
		return;
	assert(at <= x->nr && x->nr < x->room);
	codes = x->codes + at;
	memmove(codes + nr + 1, codes, behind * sizeof(*codes));
	for (uint32_t i = 0; i < nr; i++) {
		struct derive_frame d;

		memcpy(&d, a->bytes + i * sizeof(d), sizeof(d));
		if (!set_code(&codes[put], &d, f, from))
			continue;
		from = d.start + d.size;
		put++;
	}
	if (!put)
		codes[put++] = (struct codemap_code){ .start = f->start,
						      .size = f->size,
						      .kind = CODEMAP_OTHER };
	assert(put <= nr + 1);
	memmove(codes + put, codes + nr + 1, behind * sizeof(*codes));
	x->nr += put;
}

/*
 * Derive the frames of @f once samples of its callers are guesses, and publish them: a few
 * functions at a time, or all after a while.
 */
static void add_frames(struct jitdumps *j, struct jitdumps_entry *e, struct object *object,
		       const struct jitcode_function *f)
{
	const struct frames_request request = { f->start, f->size, e->r->dump.state.machine, 0 };
	struct jitdump_frames *x;
	struct code_reading *c;
	uint32_t at;

	if (j->no_proc || !e->held || !f->size || f->size > FRAMES_CODE_MAX ||
	    e->nr_failed >= FRAMES_FAILED ||
	    !atomic_load_explicit(&object->codemap_wanted, memory_order_relaxed))
		return;
	x = frames_of(e, object);
	if (!x || x->nr >= FRAMES_MAX)
		return;
	at = search_split(x->nr, i, x->codes[i].start < f->start);
	if (at < x->nr && x->codes[at].start < f->start + f->size)
		return;
	if (do_code(j->reads->helpers, e->r->fd, f, f->size, &request, &c)) {
		e->nr_failed++;
		return;
	}
	insert_frames(x, f, &c->frames);
	drop_code(&c->job);
	if (x->nr - x->published > x->published / 8)
		publish_frames(x);
	else if (!x->due_ns)
		x->due_ns = time_now_ns() + FRAMES_DUE_NS;
}

/* Publish frames that have waited. */
static void publish_due(struct jitdumps *j, uint64_t now_ns)
{
	for (uint32_t i = 0; i < j->nr_entries; i++)
		for (uint32_t k = 0; k < j->entries[i]->nr_frames; k++) {
			struct jitdump_frames *x = &j->entries[i]->frames[k];

			if (x->due_ns && x->due_ns <= now_ns)
				publish_frames(x);
		}
}

static bool is_stopping(const struct jitdumps *j)
{
	/* Pairs with the release in symbols_stop(). */
	return atomic_load_explicit(j->stop, memory_order_acquire);
}

/* Return true at the end of the name of a file that is mapped. */
static bool is_end_of_name(const char *p)
{
	return !*p || *p == ' '; /* " (deleted)" */
}

/*
 * Return true if @path is named jit-PID.dump, or as JavaScriptCore does: jit-TID-PID.dump, without
 * a folder of its own jit-TID-PID-XXXXXX.
 */
static bool is_dump(const char *path, uint64_t *pid)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *end;

	if (strncmp(name, "jit-", 4) || name[4] < '0' || name[4] > '9')
		return false;
	*pid = strtoull(name + 4, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
		*pid = strtoull(end + 1, &end, 10);
		if (*end == '-' && strcspn(end + 1, " ") == 6)
			return is_end_of_name(end + 7);
	}
	return !strncmp(end, ".dump", 5) && is_end_of_name(end + 5);
}

/* Test whether the process that mapped a file may still run. */
static bool has_owner(const struct jitdump_name *file)
{
	return file->first_pid <= 0 || !kill(file->first_pid, 0) || errno != ESRCH;
}

/* The list is full: forget the files of processes that have ended; if few, the oldest quarter. */
static void make_room(struct jitdumps *j)
{
	uint32_t kept = 0, skip;

	for (uint32_t i = 0; i < j->nr_files; i++) {
		if (j->no_proc || has_owner(&j->files[i]))
			j->files[kept++] = j->files[i];
		else
			object_put(objects_at(j->objects, j->files[i].object));
	}
	skip = kept > FILES_MAX / 4 * 3 ? kept - FILES_MAX / 4 * 3 : 0;
	for (uint32_t i = 0; i < skip; i++)
		object_put(objects_at(j->objects, j->files[i].object));
	memmove(j->files, j->files + skip, (kept - skip) * sizeof(*j->files));
	j->nr_files = kept - skip;
}

/* Forget the oldest of FILES_EACH files of @pid: any user can map many with such names. */
static void make_room_of(struct jitdumps *j, pid_t pid)
{
	uint32_t nr = 0, oldest = 0;

	for (uint32_t i = j->nr_files; i-- > 0;) {
		if (j->files[i].first_pid == pid) {
			oldest = i;
			nr++;
		}
	}
	if (nr < FILES_EACH)
		return;
	object_put(objects_at(j->objects, j->files[oldest].object));
	j->nr_files--;
	memmove(j->files + oldest, j->files + oldest + 1,
		(j->nr_files - oldest) * sizeof(*j->files));
}

/* List @object if it is a jitdump by its name. */
static void jitdumps_add_file(struct jitdumps *j, struct object *object)
{
	struct jitdump_name *files, file = { .object = object->id };
	struct object_sighting seen;
	bool dump;

	objects_sighting(j->objects, object, &seen);
	dump = seen.path && is_dump(seen.path, &file.inner_pid);
	free(seen.path);
	if (!dump)
		return;
	file.first_pid = seen.pid;
	if (!j->no_proc)
		make_room_of(j, seen.pid);
	if (j->nr_files == FILES_MAX)
		make_room(j);
	files = reallocarray(j->files, j->nr_files + 1, sizeof(*files));
	if (!files)
		return;
	j->files = files;
	object_get(object);
	files[j->nr_files++] = file;
	j->nr_found++;
}

static struct jitdumps_entry *entry_at(const struct jitdumps *j, uint32_t object)
{
	return object < j->nr_by_object && j->by_object[object]
		       ? j->entries[j->by_object[object] - 1]
		       : NULL;
}

static struct jitdumps_entry *new_entry(const struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry *e = calloc(1, sizeof(*e));
	struct object_sighting seen;

	if (!e)
		return NULL;
	objects_sighting(j->objects, object, &seen);
	free(seen.path);
	e->r = jitdump_job_new(seen.pid, j->no_proc, j->root);
	if (!e->r) {
		free(e);
		return NULL;
	}
	e->object = object->id;
	e->uid = j->no_proc ? UINT32_MAX : jitreads_user_of(seen.pid);
	return e;
}

static bool jitdumps_evict(struct jitdumps *j, uint32_t uid);

/* Make an entry for the memory @object; NULL when there are too many. */
static struct jitdumps_entry *add_entry(struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry **entries, *e;

	if ((j->nr_entries == JITDUMPS_MAX &&
	     (j->no_proc || !jitdumps_evict(j, jitreads_user_with(j->objects, object)))) ||
	    !array_reserve_zeroed(&j->by_object, &j->nr_by_object, object->id + 1ULL))
		return NULL;
	entries = reallocarray(j->entries, j->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	j->entries = entries;
	e = new_entry(j, object);
	if (!e)
		return NULL;
	j->entries[j->nr_entries++] = e;
	j->by_object[object->id] = j->nr_entries;
	return e;
}

/* Look at the new objects: jitdumps, and in a recording all memory. */
static void collect(struct jitdumps *j)
{
	struct object *object;

	while ((object = objects_next_new(j->objects))) {
		bool memory = object->identity.kind == OBJECT_ANON && !object->identity.layer;

		/* An entry keeps the id. */
		if (memory && j->no_proc && add_entry(j, object))
			continue;
		if (object->identity.kind == OBJECT_FILE)
			jitdumps_add_file(j, object);
		object_put(object);
	}
}

struct object *jitdumps_base(struct jitdumps *j, struct object *object)
{
	struct object_identity identity = object->identity;
	struct object_sighting seen;
	struct object *base;

	if (!identity.layer)
		return object;
	identity.layer = 0;
	objects_sighting(j->objects, object, &seen);
	base = objects_intern(j->objects, &identity, seen.path, seen.path ? strlen(seen.path) : 0,
			      seen.pid, seen.start, seen.end);
	free(seen.path);
	return base;
}

/* Report to the maps the code that replaced other code. */
static void tell_layers(struct jitdumps *j, struct jitdumps_entry *e)
{
	const struct object *base = objects_at(j->objects, e->object);
	bool timed = e->r->dump.state.has_times && !j->other_clock;
	const struct jitcode_function *f;
	bool any = false;

	while ((f = jitcode_next_over(e->r->dump.code))) {
		/* A recording without times has no order: the first name is kept. */
		if (!j->maps || (!timed && j->no_proc))
			continue;
		maps_on_code(j->maps, base, f->layer, f->start, f->start + f->size,
			     timed ? f->time_ns : time_now_ns());
		any = true;
	}
	if (any)
		maps_settle(j->maps);
}

/* Set the state of the names of @object. */
static void explain(struct object *object, const struct jitdumps_entry *e, int code)
{
	static const struct object_reason words[] = {
		{ -EPERM, "its jitdump belongs to another user",
		  "the process's user or root must own jit-PID.dump" },
		{ -EMLINK, "its jitdump has no name, or more than one", NULL },
		{ -EINVAL, "its jitdump is not a regular file", NULL },
		{ -EFBIG, "its jitdump is too large", NULL },
		{ -ENOTSUP, "its jitdump has another byte order or version", NULL },
		{ -EBADMSG, "its jitdump is damaged", NULL },
		{ -EPIPE, "its jitdump ended its reader: not read", NULL },
		{ -ETIME, "its jitdump ended its reader: not read", NULL },
		{ -ESTALE, "its jitdump was replaced", "restart the program" },
		{ -EACCES, "no permission to read its jitdump",
		  "run proftop as root or with cap_sys_ptrace" },
	};

	if (e->opened && jitcode_nr(e->r->dump.code))
		object_credit(object, "jitdump", jitcode_nr(e->r->dump.code));
	object_explain_code(object, code, words, ARRAY_SIZE(words));
	if (code || !e->opened)
		return;
	if (e->wanted && !e->r->dump.state.ended && e->r->dump.state.at < e->r->size)
		object_explain(object, "the end of its jitdump is not written yet", JIT_LAST_BLOCK);
	else
		object_explain(object, e->wanted ? "code missing in its jitdump" : NULL, NULL);
}

/* Copy file @i into the list of the job, if the process may own it. */
static void add_candidate(const struct jitdumps *j, struct jitdump_job *r, uint32_t i)
{
	const struct jitdump_name *file = &j->files[i];
	const struct object *object = objects_at(j->objects, file->object);
	struct jitdump_candidate *list, c = { .file = *file, .identity = object->identity };

	assert(i < j->nr_files);
	objects_sighting(j->objects, object, &c.seen);
	list = c.seen.pid == r->pid || file->first_pid == r->pid
		       ? reallocarray(r->candidates, r->nr_candidates + 1, sizeof(*list))
		       : NULL;
	if (!list) {
		free(c.seen.path);
		return;
	}
	r->candidates = list;
	list[r->nr_candidates++] = c;
}

/* Return whether @e may open its jitdump: all processes, and its user, have a limit. */
static bool jitdumps_may_open(const struct jitdumps *j, const struct jitdumps_entry *e)
{
	uint32_t nr = 0;

	assert(j->nr_open <= JITDUMPS_OPEN_MAX);
	if (j->no_proc || j->nr_open < JITREADS_USER(JITDUMPS_OPEN_MAX))
		return j->nr_open < JITDUMPS_OPEN_MAX;
	for (uint32_t i = 0; i < j->nr_entries; i++)
		nr += j->entries[i]->held && j->entries[i]->uid == e->uid;
	return j->nr_open < JITDUMPS_OPEN_MAX && nr < JITREADS_USER(JITDUMPS_OPEN_MAX);
}

/* List the files that may be the jitdump of @e. False: there are none. */
static bool find_candidates(const struct jitdumps *j, struct jitdumps_entry *e)
{
	struct jitdump_job *r = e->r;

	jitdump_job_forget(r);
	e->nr_found = j->nr_found;
	if (!jitdumps_may_open(j, e))
		return false;
	/* The newest first: older ones may be of an earlier process with this pid. */
	for (uint32_t i = j->nr_files; i-- > 0;)
		add_candidate(j, r, i);
	if (r->nr_candidates)
		jitreads_device(&r->read, r->candidates[0].identity.maj,
				r->candidates[0].identity.min);
	return r->nr_candidates;
}

/* Report that the file system of @e hangs. */
static void set_aside(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (!e->looked || e->wanted)
		object_explain(objects_at(j->objects, e->object), JITREADS_NO_REPLY, NULL);
	e->looked = true;
}

/* Take the result of the finished job of @e. */
static void jitdumps_take(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	struct jitdump_job *r = e->r;
	bool held = r->fd >= 0, opened = held || r->closed;
	size_t memory = (opened ? jitcode_memory(r->dump.code) : 0) + frames_memory(e);

	e->runs = false;
	e->looked = true;
	j->nr_open += held;
	j->nr_open -= e->held;
	e->held = held;
	e->opened = opened;
	if (opened)
		tell_layers(j, e);
	e->news |= r->news;
	atomic_fetch_add_explicit(&j->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
	e->due_ns = time_now_ns() + MAX(POLL_NS, r->cost_ns * COST_FACTOR);
	if (r->gone) {
		e->gone_ns = now_ns;
		e->due_ns = now_ns + KEEP_NS;
	}
	if (r->rc != -EAGAIN && r->rc != -ENOENT)
		explain(objects_at(j->objects, e->object), e, r->rc);
}

/* Return whether the jitdumps of all, or of the user of @e, have the memory that they may take. */
static bool jitdumps_is_full(const struct jitdumps *j, const struct jitdumps_entry *e)
{
	size_t memory = atomic_load_explicit(&j->memory, memory_order_relaxed), sum = 0;

	if (j->no_proc || memory < JITREADS_USER(JITDUMPS_MEMORY_MAX))
		return memory >= JITDUMPS_MEMORY_MAX;
	for (uint32_t i = 0; i < j->nr_entries; i++)
		sum += j->entries[i]->uid == e->uid ? j->entries[i]->memory : 0;
	return memory >= JITDUMPS_MEMORY_MAX || sum >= JITREADS_USER(JITDUMPS_MEMORY_MAX);
}

/* Start to search the jitdump of @e, or to continue reading it. */
static void start(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	int rc;

	if (!jitreads_has_room(j->reads))
		return;
	if (!e->opened && !find_candidates(j, e)) {
		e->looked = true;
		e->due_ns = now_ns + POLL_NS;
		return;
	}
	e->r->full = jitdumps_is_full(j, e);
	e->r->asks = !j->no_proc && e->held && now_ns >= e->ask_ns;
	e->r->closes = e->gone_ns;
	if (e->r->asks)
		e->ask_ns = now_ns + ASK_NS;
	rc = jitreads_start(j->reads, &e->r->read);
	e->runs = !rc;
	if (rc == -ETIME) {
		set_aside(j, e);
		e->due_ns = now_ns + RETRY_NS;
	}
}

/* Go on with the jitdump of @e. */
static void jitdumps_look(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	if (!e->runs && (j->no_proc || e->due_ns <= now_ns) && e->held == e->opened)
		start(j, e, now_ns);
	if (!e->runs || is_stopping(j))
		return;
	if (jitreads_ended(j->reads, &e->r->read))
		jitdumps_take(j, e, now_ns);
	else if (jitread_hangs(&e->r->read, now_ns))
		set_aside(j, e);
}

/* Return the entry of the memory that @object is a layer of, added and searched if new. */
static struct jitdumps_entry *entry_of(struct jitdumps *j, struct object *object)
{
	struct object *base = jitdumps_base(j, object);
	struct jitdumps_entry *e = entry_at(j, base->id);

	if (e)
		return e;
	collect(j);
	e = entry_at(j, base->id);
	if (!e)
		e = add_entry(j, base);
	if (e)
		jitdumps_look(j, e, time_now_ns());
	return e;
}

/* Test whether the jitdump of @e can be used now. */
static bool is_readable(const struct jitdumps_entry *e)
{
	return e && e->opened && !e->runs;
}

static const struct jitcode_function *function_at(const struct jitdumps *j,
						  const struct jitdumps_entry *e,
						  const struct object *object, uint64_t addr)
{
	if (is_stopping(j) || !is_readable(e))
		return NULL;
	return jitcode_find(e->r->dump.code, object->identity.layer, addr);
}

/* Test whether a look-up should be repeated: the jitdump is being read, and does not hang. */
static bool is_being_read(const struct jitdumps_entry *e)
{
	return !e->looked || (e->runs && !jitread_hangs(&e->r->read, time_now_ns()));
}

int jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		  struct jitdumps_symbol *out)
{
	struct jitdumps_entry *e = entry_of(j, object);
	const struct jitcode_function *f = function_at(j, e, object, addr);

	if (!f) {
		if (!e || is_stopping(j))
			return -ENOENT;
		if (is_being_read(e))
			return -EAGAIN;
		if (!e->wanted)
			e->news = false; /* a look-up has just failed */
		e->wanted = true;
		return -ENOENT;
	}
	add_frames(j, e, object, f);
	*out = (struct jitdumps_symbol){
		.start = f->start,
		.size = f->size,
		.name_size = f->name_size,
		.name = jitcode_text(e->r->dump.code, f->name),
	};
	return 0;
}

bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line)
{
	/* Not searched again: places of processes that ended long ago move with their names. */
	const struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f = function_at(j, e, object, addr);
	const struct jitcode_line *found = f ? jitdump_line(&e->r->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->r->dump.code, found->file);
	*line = found->line;
	return true;
}

/* Find the function with @variant at @start, of any layer. */
static const struct jitcode_function *function_named(const struct jitdumps_entry *e, uint64_t start,
						     uint64_t variant)
{
	for (uint32_t layer = JITCODE_LAYERS; layer-- > 0;) {
		const struct jitcode_function *f = jitcode_find(e->r->dump.code, layer, start);

		if (f && f->start == start &&
		    keyhash_name(jitcode_text(e->r->dump.code, f->name), f->name_size) == variant)
			return f;
	}
	return NULL;
}

bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f = is_readable(e) ? function_named(e, start, variant)
							  : NULL;
	const struct jitcode_line *found = f ? jitdump_line(&e->r->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->r->dump.code, found->file);
	*line = found->line;
	return true;
}

/* Wait a little for the job of @e: a listing needs its result now. */
static void settle(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (e && e->runs && j->reads->helpers &&
	    helpers_wait(j->reads->helpers, &e->r->read.job, time_now_ns() + SETTLE_NS))
		jitdumps_look(j, e, time_now_ns());
}

int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f;

	settle(j, e);
	f = is_readable(e) && e->held ? function_named(e, start, variant) : NULL;
	if (!f)
		return -ENOENT;
	*size = f->size;
	*machine = e->r->dump.state.machine;
	return jitdump_job_code(j->reads->helpers, e->r->fd, f, MIN(f->size, max), bytes);
}

/* Return true if it is time to report new names of @e. */
static bool has_told(struct jitdumps_entry *e, uint64_t now_ns, bool at_once)
{
	if (!e->news || !e->wanted || (e->tell_ns > now_ns && !at_once))
		return false;
	e->news = e->wanted = false; /* until the next look-up fails */
	e->tell_ns = now_ns + TELL_NS;
	return true;
}

/* Free entry @i, which does not run. */
static void jitdumps_remove(struct jitdumps *j, uint32_t i)
{
	struct jitdumps_entry *e = j->entries[i];

	assert(i < j->nr_entries);
	atomic_fetch_sub_explicit(&j->memory, e->memory, memory_order_relaxed);
	j->nr_open -= e->held;
	j->entries[i] = j->entries[--j->nr_entries];
	j->by_object[j->entries[i]->object] = i + 1;
	j->by_object[e->object] = 0;
	jitdump_job_drop(&e->r->read.job);
	drop_frames(e);
	free(e);
}

/* Free the code of processes that ended long ago. */
static void drop_expired(struct jitdumps *j, uint64_t now_ns)
{
	for (uint32_t i = 0; i < j->nr_entries && !j->no_proc;) {
		struct jitdumps_entry *e = j->entries[i];

		if (e->runs || !jitreads_expired(&e->end, e->r->pid, now_ns, JITREADS_KEEP_NS)) {
			i++;
			continue;
		}
		jitdumps_remove(j, i);
	}
}

uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns)
{
	assert(j->nr_open <= j->nr_entries);
	collect(j);
	drop_expired(j, now_ns);
	publish_due(j, now_ns);
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		uint32_t at = (j->next + i) % j->nr_entries;
		struct jitdumps_entry *e = j->entries[at];

		if (!e->opened && !e->runs && e->looked && e->nr_found == j->nr_found)
			continue;
		jitdumps_look(j, e, now_ns);
		if (is_stopping(j))
			return OBJECT_ID_UNKNOWN;
		if (has_told(e, now_ns, j->no_proc)) {
			j->next = at + 1;
			return e->object;
		}
	}
	return OBJECT_ID_UNKNOWN;
}

/*
 * Limits of the processes with JIT code: of all, and of one user.
 *
 * Runs on: the loader.
 */

/* Make room for a process of @uid. False: there is none. */
static bool jitdumps_evict(struct jitdumps *j, uint32_t uid)
{
	struct jitreads_candidate *candidates = calloc(j->nr_entries, sizeof(*candidates));
	uint32_t oldest;

	for (uint32_t i = 0; candidates && i < j->nr_entries; i++) {
		const struct jitdumps_entry *e = j->entries[i];
		const struct object *object = objects_at(j->objects, e->object);

		/* Code of a jitdump is in layers: it does not leave. */
		candidates[i] = (struct jitreads_candidate){
			e->uid, atomic_load_explicit(&object->used, memory_order_relaxed),
			e->runs || e->opened
		};
	}
	oldest = candidates ? jitreads_victim(candidates, j->nr_entries, uid) : UINT32_MAX;
	free(candidates);
	if (oldest != UINT32_MAX)
		jitdumps_remove(j, oldest);
	return oldest != UINT32_MAX;
}
