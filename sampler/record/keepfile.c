// SPDX-License-Identifier: GPL-2.0-or-later
/* The records of kept segments, written and read. Pure. */
#include "sampler/record/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "symbols/base/base.h"

#define KEEPFILE_RECORD_MAX ((size_t)1 << 20) /* bytes of one record */
#define KEEPFILE_TEXT_MAX   4096
#define HEAD		    9 /* of a record: size, checksum, type */
#define VARINT_MAX	    10
#define COUNTS_MAX	    (1u << 20)

static const char magic[16] = "proftop keep 1\n";

enum { EVENTS = 1, FUNCTION, STACK, TASK, SLICE, INTERPRETER };

/* CRC-32 (polynomial 0xedb88320), four bits at a time. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

static void put32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- writing ---- */

void keepfile_fini(struct keepfile_out *out)
{
	free(out->bytes);
	*out = (struct keepfile_out){ .bytes = NULL };
}

static void put_bytes(struct keepfile_out *out, const void *bytes, size_t size)
{
	if (out->size + size > out->capacity) {
		size_t capacity = 2 * out->capacity + size + 4096;
		uint8_t *larger = out->failed ? NULL : realloc(out->bytes, capacity);

		out->failed |= !larger;
		if (!larger)
			return;
		out->bytes = larger;
		out->capacity = capacity;
	}
	if (size)
		memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

static void put(struct keepfile_out *out, uint64_t v)
{
	uint8_t buf[VARINT_MAX];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		buf[n++] = (uint8_t)(v | 0x80);
	buf[n++] = (uint8_t)v;
	put_bytes(out, buf, n);
}

static void put_text(struct keepfile_out *out, struct keepfile_text text)
{
	size_t size = MIN(text.size, (size_t)KEEPFILE_TEXT_MAX);

	put(out, size);
	put_bytes(out, text.str, size);
}

static void begin(struct keepfile_out *out, uint8_t type)
{
	uint8_t head[HEAD] = { [HEAD - 1] = type };

	out->begin = out->size;
	put_bytes(out, head, sizeof(head));
}

/* Complete the head of a record; one that is too large is left out. Return whether it is there. */
static bool end(struct keepfile_out *out)
{
	size_t size = out->size - out->begin - HEAD;

	if (out->failed)
		return false;
	if (size > KEEPFILE_RECORD_MAX) {
		out->size = out->begin;
		return false;
	}
	put32(out->bytes + out->begin, (uint32_t)size);
	put32(out->bytes + out->begin + 4, checksum(out->bytes + out->begin + 8, size + 1));
	return true;
}

void keepfile_header(struct keepfile_out *out)
{
	put_bytes(out, magic, sizeof(magic));
}

void keepfile_put_events(struct keepfile_out *out, const struct keepfile_event *events, uint32_t nr)
{
	assert(events || !nr);
	begin(out, EVENTS);
	put(out, nr);
	for (uint32_t i = 0; i < nr; i++) {
		put_text(out, events[i].name);
		put(out, (uint64_t)(events[i].hz * 1000 + 0.5));
		put(out, events[i].clock);
	}
	end(out);
}

void keepfile_put_function(struct keepfile_out *out, const struct keepfile_function *f)
{
	begin(out, FUNCTION);
	put(out, f->id);
	put(out, (uint8_t)f->kind);
	put(out, (f->inlined ? 1u : 0u) | (f->made_up ? 2u : 0u));
	put_text(out, f->name);
	put_text(out, f->module);
	end(out);
}

void keepfile_put_interpreter(struct keepfile_out *out, struct keepfile_text module)
{
	begin(out, INTERPRETER);
	put_text(out, module);
	end(out);
}

void keepfile_put_stack(struct keepfile_out *out, uint32_t id, const uint32_t *functions,
			uint32_t nr)
{
	assert(functions || !nr);
	nr = MIN(nr, (uint32_t)KEEPFILE_DEPTH_MAX);
	begin(out, STACK);
	put(out, id);
	put(out, nr);
	for (uint32_t i = 0; i < nr; i++)
		put(out, functions[i]);
	end(out);
}

void keepfile_put_task(struct keepfile_out *out, const struct keepfile_task *t)
{
	begin(out, TASK);
	put(out, t->id);
	put(out, t->pid);
	put(out, t->tid);
	put_text(out, t->comm);
	put_text(out, t->process_comm);
	put(out, t->uid + 1); /* 0: unknown */
	end(out);
}

bool keepfile_put_slice(struct keepfile_out *out, const struct slice *slice)
{
	assert(slice->begin_ns <= slice->end_ns);
	begin(out, SLICE);
	put(out, slice->begin_ns);
	put(out, slice->end_ns - slice->begin_ns);
	put(out, slice->lost);
	put(out, slice->throttled);
	put(out, slice->marks);
	put_bytes(out, slice->bytes, slice->size);
	return end(out);
}

void keepfile_put_raw(struct keepfile_out *out, uint8_t type, const void *bytes, size_t size)
{
	begin(out, type);
	put_bytes(out, bytes, size);
	end(out);
}

/* ---- reading ---- */

/* The payload of one record. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; c->at < c->end && shift < 64; shift += 7) {
		v |= (uint64_t)(*c->at & 0x7f) << shift;
		if (!(*c->at++ & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static uint64_t get_max(struct cursor *c, uint64_t max)
{
	uint64_t v = get(c);

	c->bad |= v > max;
	return c->bad ? 0 : v;
}

static struct keepfile_text get_text(struct cursor *c)
{
	size_t size = get_max(c, KEEPFILE_TEXT_MAX);
	struct keepfile_text text = { (const char *)c->at, size };

	if (c->bad || size > (size_t)(c->end - c->at)) {
		c->bad = true;
		return (struct keepfile_text){ "", 0 };
	}
	c->at += size;
	return text;
}

static bool is_whole(const struct cursor *c)
{
	return !c->bad && c->at == c->end;
}

static bool read_events(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_event events[EVENTS_MAX];
	uint32_t nr = (uint32_t)get_max(c, EVENTS_MAX);

	for (uint32_t i = 0; i < nr; i++) {
		events[i].name = get_text(c);
		events[i].hz = (double)get_max(c, 1000000000000) / 1000;
		events[i].clock = get_max(c, 1);
	}
	if (!is_whole(c) || !nr)
		return false;
	r->events(r->ctx, events, nr);
	return true;
}

static bool read_function(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_function f = { .id = (uint32_t)get_max(c, UINT32_MAX) };
	uint64_t flags;

	f.kind = (char)get_max(c, 126);
	flags = get_max(c, 3);
	f.inlined = flags & 1;
	f.made_up = flags & 2;
	f.name = get_text(c);
	f.module = get_text(c);
	if (!is_whole(c) || f.kind < 32)
		return false;
	r->function(r->ctx, &f);
	return true;
}

static bool read_interpreter(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_text module = get_text(c);

	if (!is_whole(c))
		return false;
	r->interpreter(r->ctx, module);
	return true;
}

static bool read_stack(struct cursor *c, const struct keepfile_reader *r)
{
	uint32_t functions[KEEPFILE_DEPTH_MAX];
	uint32_t id = (uint32_t)get_max(c, STACK_NONE - 1);
	uint32_t nr = (uint32_t)get_max(c, KEEPFILE_DEPTH_MAX);

	for (uint32_t i = 0; i < nr && !c->bad; i++)
		functions[i] = (uint32_t)get_max(c, UINT32_MAX);
	if (!is_whole(c))
		return false;
	r->stack(r->ctx, id, functions, nr);
	return true;
}

static bool read_task(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_task t = { .id = (uint32_t)get_max(c, COUNTS_TASKS_MAX - 1) };

	t.pid = (uint32_t)get_max(c, INT32_MAX);
	t.tid = (uint32_t)get_max(c, INT32_MAX);
	t.comm = get_text(c);
	t.process_comm = get_text(c);
	/* Older files have no users. */
	t.uid = c->at < c->end ? (uint32_t)(get_max(c, UINT32_MAX) - 1) : UINT32_MAX;
	if (!is_whole(c))
		return false;
	r->task(r->ctx, &t);
	return true;
}

static bool read_slice(struct cursor *c, const struct keepfile_reader *r)
{
	struct slice s = { .begin_ns = get_max(c, UINT64_MAX / 4) };
	int64_t nr;

	s.end_ns = s.begin_ns + get_max(c, UINT64_MAX / 4);
	s.lost = get_max(c, SLICE_COUNT_MAX);
	s.throttled = get_max(c, SLICE_COUNT_MAX);
	s.marks = (uint16_t)get_max(c, UINT16_MAX);
	s.size = (uint32_t)(c->end - c->at);
	s.bytes = (uint8_t *)(uintptr_t)c->at;
	nr = c->bad ? -EINVAL : slice_check(s.bytes, s.size, COUNTS_MAX, &s.count);
	if (nr < 0 || s.end_ns <= s.begin_ns)
		return false;
	s.nr = (uint32_t)nr;
	r->slice(r->ctx, &s);
	return true;
}

static bool read_record(uint8_t type, struct cursor *c, const struct keepfile_reader *r)
{
	switch (type) {
	case EVENTS:
		return read_events(c, r);
	case FUNCTION:
		return read_function(c, r);
	case INTERPRETER:
		return read_interpreter(c, r);
	case STACK:
		return read_stack(c, r);
	case TASK:
		return read_task(c, r);
	case SLICE:
		return read_slice(c, r);
	default:
		return false;
	}
}

int64_t keepfile_read(const uint8_t *bytes, size_t size, const struct keepfile_reader *reader)
{
	size_t at = sizeof(magic);

	if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)))
		return -EINVAL;
	while (size - at >= HEAD && !(reader->stopped && reader->stopped(reader->ctx))) {
		uint32_t length = get32(bytes + at);
		struct cursor c = { bytes + at + HEAD, NULL, false };

		if (length > KEEPFILE_RECORD_MAX || length > size - at - HEAD ||
		    get32(bytes + at + 4) != checksum(bytes + at + 8, length + 1ULL))
			break;
		c.end = c.at + length;
		if (!read_record(bytes[at + 8], &c, reader))
			break;
		at += HEAD + length;
	}
	return (int64_t)at;
}
