// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A jitdump, part by part: copied, read in the cage, its events added.
 *
 * Runs on: a helper.
 */
#include "symbols/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/cage/cage.h"
#include "symbols/jit/jitcopy.h"

#define ELF_HEADER 0x40U
#define TIMEOUT_NS 4000000000ULL
#define MORE_FIRST 16U /* calls before is_slow() counts */

/* An answer as it is read: everything in it is foreign. */
struct answer {
	const uint8_t *at, *end;
	uint32_t *files; /* by number, of jitcode_add_file() */
	uint32_t nr_files, max_files;
	struct jitcode_line *lines;
	uint32_t max_lines;
};

int jitdump_init(struct jitdump *d)
{
	memset(d, 0, sizeof(*d));
	d->state.least_offset = UINT32_MAX;
	return jitcode_new(&d->code);
}

void jitdump_fini(struct jitdump *d)
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
static int add_answer(struct jitdump *d, const struct cage_answer *from,
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
	int fds[CAGE_FDS_MAX] = { -1, -1 };
	struct cage_answer a;
	int rc;

	*more = false;
	r.part_size = size;
	if (file->fd < 0) {
		fds[0] = cage_wrap(file->bytes + d->state.at, size);
	} else {
		fds[0] = jitcopy(file->fd, d->state.at, size, file->watch, &size);
		/* It became shorter. */
		if (size < r.part_size)
			r.file_size = d->state.at + size;
		r.part_size = size;
	}
	if (fds[0] < 0)
		return fds[0];
	rc = cage_call(&jitdump_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, &a);
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

int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns, bool *more)
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

const struct jitcode_line *jitdump_line(const struct jitdump *d, const struct jitcode_function *f,
					uint64_t addr)
{
	uint64_t shift = d->state.least_offset != UINT32_MAX && d->state.least_offset >= ELF_HEADER
				 ? ELF_HEADER
				 : 0;

	return f->nr_lines ? jitcode_line(d->code, f, addr + shift) : NULL;
}
