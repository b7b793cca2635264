// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Raw records in memory, in blocks as they were written.
 *
 * Runs on: the writer of the recorder.
 */
#include "sampler/file/blackbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_write.h"
#include "sampler/file/synth.h"

struct block {
	struct block *next; /* newer */
	size_t size;
	uint8_t data[];
};

/* Blocks in order of time. */
struct queue {
	struct block *first, *last;
	size_t used, max;
};

struct blackbox {
	struct queue samples, side_band;
};

int blackbox_new(struct blackbox **out, size_t memory)
{
	struct blackbox *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->side_band.max = memory / 4;
	s->samples.max = memory - memory / 4;
	*out = s;
	return 0;
}

static void drop_first(struct queue *q)
{
	struct block *b = q->first;

	q->used -= sizeof(*b) + b->size;
	q->first = b->next;
	if (!q->first)
		q->last = NULL;
	free(b);
}

void blackbox_free(struct blackbox *s)
{
	if (!s)
		return;
	while (s->samples.first)
		drop_first(&s->samples);
	while (s->side_band.first)
		drop_first(&s->side_band);
	free(s);
}

int blackbox_add(struct blackbox *s, bool side_band, const struct iovec *pieces, int nr)
{
	struct queue *q = side_band ? &s->side_band : &s->samples;
	struct block *b;
	size_t size = 0;

	for (int i = 0; i < nr; i++)
		size += pieces[i].iov_len;
	if (!size)
		return 0;
	/* It does not fit: the others stay. */
	if (sizeof(*b) + size > q->max)
		return -ENOMEM;
	while (q->first && q->used + sizeof(*b) + size > q->max)
		drop_first(q);
	b = malloc(sizeof(*b) + size);
	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->size = 0;
	for (int i = 0; i < nr; i++) {
		memcpy(b->data + b->size, pieces[i].iov_base, pieces[i].iov_len);
		b->size += pieces[i].iov_len;
	}
	if (q->last)
		q->last->next = b;
	else
		q->first = b;
	q->last = b;
	q->used += sizeof(*b) + size;
	return 0;
}

static void append_record(void *ctx, const void *record, size_t size)
{
	const struct iovec piece = { (void *)(uintptr_t)record, size };

	/* Its first failure is the result of perfdata_finish(). */
	if (perfdata_append(ctx, &piece, 1))
		return;
}

static void append_queue(struct perfdata_writer *file, const struct queue *q)
{
	for (const struct block *b = q->first; b; b = b->next)
		append_record(file, b->data, b->size);
}

int blackbox_write(const struct blackbox *s, const char *path, const char *root,
		   struct slow_reads *reads, const struct codes *codes,
		   const struct perfdata_attrs *attrs, uint64_t *bytes, struct err *e)
{
	struct perfdata_writer *file;
	struct synth synth = { .root = root, .fn = append_record, .reads = reads };
	struct lang_record_cursor functions = { 0 };
	int code = perfdata_create(&file, path, e);

	if (code)
		return code;
	synth.ctx = file;
	code = perfdata_begin(file, attrs);
	if (!code) {
		synth_kernel(&synth);
		synth_processes(&synth);
		lang_record_each_function(codes, &functions, append_record, file);
		append_queue(file, &s->side_band);
		append_queue(file, &s->samples);
		code = perfdata_finish(file, attrs);
	}
	*bytes = perfdata_written(file);
	perfdata_writer_close(file);
	if (!code)
		return 0;
	perfdata_remove(path);
	return err_set(e, code, "cannot save %.400s: %s", path, strerror(-code));
}
