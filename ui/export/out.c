// SPDX-License-Identifier: GPL-2.0-or-later
/* The bytes of an export: a growing buffer with progress, strings of JSON, fields of
 * protobuf messages, gzip, facts about the export.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

/*
 * A growing buffer, and numbers in the C locale.
 */

void out_fini(struct out *o)
{
	free(o->data);
	*o = (struct out){ .permille = o->permille, .max = o->max };
}

/* Make space for @size more bytes. */
static bool reserve(struct out *o, size_t size)
{
	size_t capacity = o->capacity ? o->capacity : 4096;
	char *data;

	if (o->failed || o->size + size > (o->max ? o->max : OUT_MAX)) {
		o->failed = true;
		return false;
	}
	if (o->size + size <= o->capacity)
		return true;
	while (capacity < o->size + size)
		capacity *= 2;
	data = realloc(o->data, capacity);
	if (!data) {
		o->failed = true;
		return false;
	}
	o->data = data;
	o->capacity = capacity;
	return true;
}

void out_bytes(struct out *o, const void *bytes, size_t size)
{
	assert(bytes || !size);
	if (!size || !reserve(o, size))
		return;
	memcpy(o->data + o->size, bytes, size);
	o->size += size;
}

void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

void out_format(struct out *o, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n < 0 || n >= (int)sizeof(text))
		o->failed = true;
	else
		out_bytes(o, text, (size_t)n);
}

void out_number(struct out *o, double value, int digits)
{
	if (!isfinite(value))
		value = 0;
	if (value == floor(value) && fabs(value) < 9e15)
		out_format(o, "%lld", (long long)value);
	else
		out_format(o, "%.*f", digits, value);
}

void out_progress(struct out *o, uint64_t done, uint64_t all)
{
	if (o->permille && all)
		atomic_store_explicit(o->permille, (unsigned int)(MIN(done, all) * 1000 / all),
				      memory_order_relaxed);
}

/*
 * Strings of JSON.
 */

void json_put(struct out *o, struct safe_text t)
{
	size_t from = 0;

	out_text(o, "\"");
	for (size_t i = 0; i < t.size; i++) {
		unsigned char c = (unsigned char)t.str[i];

		/* '<' would end a script element as "</script>", or begin a comment in it. */
		if (c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&')
			continue;
		out_bytes(o, t.str + from, i - from);
		out_format(o, "\\u%04x", c);
		from = i + 1;
	}
	out_bytes(o, t.str + from, t.size - from);
	out_text(o, "\"");
}

/*
 * Facts about an export.
 */

struct facts_list {
	struct fact *facts;
	uint32_t nr;
};

static void add(struct facts_list *l, const char *name, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct facts_list *l, const char *name, bool bad, const char *fmt, ...)
{
	struct fact *f = &l->facts[l->nr];
	char text[sizeof(f->text)];
	va_list args;

	if (l->nr >= FACTS_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	f->name = name;
	f->bad = bad;
	text_format(f->text, sizeof(f->text), "%s", text);
	l->nr++;
}

static void add_origin(struct facts_list *l, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	time_t seconds = (time_t)(p->time_ns / 1000000000U);
	struct tm tm = { 0 };
	char when[32] = "unknown";

	if (p->time_ns && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add(l, "made by", false, "proftop %s", PROFTOP_VERSION);
	add(l, "time", false, "%s", when);
	if (s->scope.host[0])
		add(l, "host", false, "%s", s->scope.host);
	add(l, "target", false, "%s%s%s", p->target, s->scope.title[0] ? ", " : "", s->scope.title);
	if (s->scope.only[0])
		add(l, "only", false, "%s", s->scope.only);
	add(l, "span", false, "%s%s%.1f s", s->scope.range, s->scope.range[0] ? ", " : "",
	    (double)p->window_ns / 1e9);
}

static void add_event(struct facts_list *l, const struct snapshot *s)
{
	const struct profile_event *ev = s->event;

	add(l, "event", ev->error[0], "%s%s%s", s->shown_event.str, ev->error[0] ? ": " : "",
	    ev->error);
	if (ev->want_hz > 0 && !isnan(ev->got_hz))
		add(l, "rate", false, "wanted %.0f Hz, got %.1f Hz per busy CPU", ev->want_hz,
		    ev->got_hz);
	else if (ev->want_hz > 0)
		add(l, "rate", false, "wanted %.0f Hz", ev->want_hz);
	if (s->scope.find[0])
		add(l, "filter", false, "%s: %.0f of %.0f samples", s->scope.find, s->count,
		    s->all_count);
	if (s->scope.filter.hide_kernel || s->scope.filter.hide_user)
		add(l, "hidden", false, "%s functions",
		    !s->scope.filter.hide_user	  ? "kernel"
		    : s->scope.filter.hide_kernel ? "kernel and user"
						  : "user");
	add(l, "samples", false, "%.0f shown", s->count);
}

/* Add the account since the start: an export may be longer than a tick. */
static void add_account(struct facts_list *l, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	const struct profile_account *a = &p->account_total;
	uint64_t throttled = p->throttled;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled += p->cpus[i].throttled_total;
	add(l, "taken", false, "%" PRIu64 " since the start", a->taken);
	if (!a->no_outcomes)
		add(l, "complete", false, "%" PRIu64, a->complete);
	add(l, "guessed", a->guessed, "%" PRIu64, a->guessed);
	add(l, "truncated", a->truncated, "%" PRIu64, a->truncated);
	add(l, "broken", a->broken, "%" PRIu64, a->broken);
	add(l, "pending", a->pending, "%" PRIu64, a->pending);
	add(l, "dropped", a->dropped, "%" PRIu64, a->dropped);
	add(l, "lost", a->lost, "%" PRIu64, a->lost);
	add(l, "throttled", throttled, "%" PRIu64 " times", throttled);
	add(l, "own", false, "%" PRIu64 " samples of proftop, not in the account", a->own);
	if (a->filtered)
		add(l, "filtered", false,
		    "%" PRIu64 " samples of processes that are not of the target, not in the "
		    "account",
		    a->filtered);
	if (p->banner[0])
		add(l, "note", true, "%s", p->banner);
}

uint32_t facts_make(const struct snapshot *s, struct fact facts[static FACTS_MAX])
{
	struct facts_list l = { facts, 0 };

	add_origin(&l, s);
	add_event(&l, s);
	add_account(&l, s);
	return l.nr;
}

struct safe_text facts_title(const struct snapshot *s, char buf[static 512])
{
	const struct snapshot_scope *scope = &s->scope;

	return text_format(buf, 512, "%s%s%s, %s, %.1f s%s%s", scope->host,
			   scope->host[0] ? ": " : "",
			   scope->title[0] ? scope->title : s->profile->target, s->shown_event.str,
			   (double)s->profile->window_ns / 1e9, scope->baseline ? ", against " : "",
			   scope->baseline ? scope->against : "");
}

/*
 * Fields of protobuf messages.
 */

/* Types of fields. */
enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES };

void proto_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	out_bytes(o, bytes, n);
}

static void put_key(struct out *o, int field, unsigned int type)
{
	proto_varint(o, (uint64_t)field << 3 | type);
}

void proto_number(struct out *o, int field, uint64_t v)
{
	put_key(o, field, WIRE_VARINT);
	proto_varint(o, v);
}

void proto_fixed64(struct out *o, int field, uint64_t v)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	put_key(o, field, WIRE_FIXED64);
	out_bytes(o, bytes, sizeof(bytes));
}

void proto_bytes(struct out *o, int field, const void *bytes, size_t size)
{
	put_key(o, field, WIRE_BYTES);
	proto_varint(o, size);
	out_bytes(o, bytes, size);
}

void proto_message(struct out *o, int field, struct out *part)
{
	o->failed |= part->failed;
	proto_bytes(o, field, part->data, part->size);
	part->size = 0;
}

/*
 * gzip by zlib.
 */

int gzip_write(struct out *to, const struct out *from)
{
	z_stream z = { 0 };
	uint8_t piece[64 << 10];
	int code = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
				MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);

	if (code != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)from->data;
	z.avail_in = (uInt)from->size;
	do {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		code = deflate(&z, Z_FINISH);
		out_bytes(to, piece, sizeof(piece) - z.avail_out);
		out_progress(to, from->size - z.avail_in, from->size);
	} while (code == Z_OK);
	deflateEnd(&z);
	return code == Z_STREAM_END && !to->failed ? 0 : -ENOMEM;
}
