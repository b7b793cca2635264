// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pprof's profile.proto (https://github.com/google/pprof), with gzip.
 *
 * A location is a function with the functions that are inlined there, each with its line. It has
 * no address: counts are kept by function. Process and thread are labels, not frames.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "ui/export/dense.h"
#include "ui/export/facts.h"
#include "ui/export/writers.h"

/* Fields of the messages. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR };
enum {
	MAPPING_ID = 1,
	MAPPING_FILENAME = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum { VALUE_TYPE = 1, VALUE_UNIT };

struct writing {
	const struct snapshot *s;
	struct out out;	    /* the message, not compressed */
	struct out part;    /* a submessage; */
	struct out inner;   /* one inside it */
	struct out strings; /* the table */
	struct dense hashes;
	struct safe_text *texts; /* by number in the table */
	uint32_t nr_texts;
	struct dense chains;	/* (chain + 1, frame) -> chain: the frames of a location */
	struct dense locations; /* chain -> id - 1 */
};

static void put_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	out_bytes(o, bytes, n);
}

static void put_number(struct out *o, int field, uint64_t v)
{
	put_varint(o, (uint64_t)field << 3);
	put_varint(o, v);
}

static void put_bytes(struct out *o, int field, const void *bytes, size_t size)
{
	put_varint(o, (uint64_t)field << 3 | 2);
	put_varint(o, size);
	out_bytes(o, bytes, size);
}

/* Add @part as a submessage, and empty it. */
static void put_message(struct out *o, int field, struct out *part)
{
	o->failed |= part->failed;
	put_bytes(o, field, part->data ? part->data : "", part->size);
	part->size = 0;
}

/* Add a text to the table. Return its number; it is borrowed. */
static uint64_t string_of(struct writing *w, struct safe_text t)
{
	uint64_t key = t.size ? hash_name(t.str, t.size) : 0;
	struct safe_text *texts;
	uint32_t n;
	bool is_new;

	/* Another text may have the same hash. */
	for (;; key++) {
		n = dense_add(&w->hashes, key, &is_new);
		if (is_new || n == DENSE_NONE ||
		    (w->texts[n].size == t.size && !memcmp(w->texts[n].str, t.str, t.size)))
			break;
	}
	if (n == DENSE_NONE) {
		w->out.failed = true;
		return 0;
	}
	if (!is_new)
		return n;
	if (n >= w->nr_texts) {
		texts = reallocarray(w->texts, w->nr_texts * 2 + 64, sizeof(*texts));
		if (!texts) {
			w->out.failed = true;
			return 0;
		}
		w->texts = texts;
		w->nr_texts = w->nr_texts * 2 + 64;
	}
	w->texts[n] = t;
	put_bytes(&w->strings, PROFILE_STRING, t.str, t.size);
	return n;
}

static void put_value_type(struct writing *w, int field, struct safe_text type,
			   struct safe_text unit)
{
	put_number(&w->part, VALUE_TYPE, string_of(w, type));
	put_number(&w->part, VALUE_UNIT, string_of(w, unit));
	put_message(&w->out, field, &w->part);
}

static void put_mappings(struct writing *w)
{
	const struct profile *p = w->s->profile;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *m = &p->modules[i];

		put_number(&w->part, MAPPING_ID, i + 1);
		put_number(&w->part, MAPPING_FILENAME,
			   string_of(w, m->path.size ? m->path : m->name));
		/* Readers then do not look for symbols of files that they do not have. */
		for (int field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
			put_number(&w->part, field, 1);
		put_message(&w->out, PROFILE_MAPPING, &w->part);
	}
}

static void put_functions(struct writing *w)
{
	const struct profile *p = w->s->profile;

	for (uint32_t i = 0; i < p->nr_functions; i++) {
		const struct profile_function *fn = &p->functions[i];
		uint64_t name = string_of(w, fn->name.size ? fn->name : TEXT("?"));
		uint32_t number;

		put_number(&w->part, FUNCTION_ID, i + 1);
		put_number(&w->part, FUNCTION_NAME, name);
		put_number(&w->part, FUNCTION_SYSTEM_NAME, name);
		put_number(&w->part, FUNCTION_FILE,
			   string_of(w, snapshot_line(w->s, w->s->lines[i], &number)));
		put_message(&w->out, PROFILE_FUNCTION, &w->part);
	}
}

/* Add a location: the frames calls[@last] (innermost) down to calls[@first]. */
static void put_location(struct writing *w, uint64_t id, uint32_t first, uint32_t last)
{
	const struct snapshot *s = w->s;
	const struct profile_function *fn = snapshot_function(s, s->calls[first]);

	put_number(&w->part, LOCATION_ID, id);
	if (fn->module_index < s->profile->nr_modules)
		put_number(&w->part, LOCATION_MAPPING, fn->module_index + 1ull);
	for (uint32_t i = last + 1; i-- > first;) {
		const struct snapshot_frame *f = &s->frames[s->calls[i]];
		uint32_t number;

		snapshot_line(s, f->line, &number);
		put_number(&w->inner, LINE_FUNCTION, f->function + 1ull);
		put_number(&w->inner, LINE_LINE, number);
		put_message(&w->part, LOCATION_LINE, &w->inner);
	}
	put_message(&w->out, PROFILE_LOCATION, &w->part);
}

/* Return the id of the location whose innermost frame is calls[*@at]; set *@at to its last. */
static uint64_t location_of(struct writing *w, uint32_t first, uint32_t *at)
{
	const struct snapshot *s = w->s;
	uint32_t last = *at, chain = 0, n;
	bool is_new;

	for (uint32_t i = last;; i--) {
		n = dense_add(&w->chains, (uint64_t)chain << 32 | s->calls[i], &is_new);
		chain = n + 1;
		*at = i;
		if (i == first || n == DENSE_NONE || !snapshot_function(s, s->calls[i])->inlined)
			break;
	}
	n = n == DENSE_NONE ? n : dense_add(&w->locations, chain, &is_new);
	if (n == DENSE_NONE)
		w->out.failed = true;
	else if (is_new)
		put_location(w, n + 1ull, *at, last);
	return n + 1ull;
}

static void put_label(struct writing *w, struct safe_text key, struct safe_text value)
{
	put_number(&w->inner, LABEL_KEY, string_of(w, key));
	put_number(&w->inner, LABEL_STR, string_of(w, value));
	put_message(&w->part, SAMPLE_LABEL, &w->inner);
}

/*
 * Add process and thread as text: readers drop a number without a unit if it is 0. The texts of
 * numbers are in @buf until the end.
 */
static void put_labels(struct writing *w, uint32_t task, char (*buf)[16])
{
	const struct profile_process *process = snapshot_process_of(w->s, task);
	const struct profile_task *t = &w->s->profile->tasks[task];

	if (process) {
		put_label(w, TEXT("comm"), process->comm);
		put_label(w, TEXT("pid"), text_format(buf[0], 16, "%d", (int)process->pid));
		if (process->container.size)
			put_label(w, TEXT("container"), process->container);
	}
	put_label(w, TEXT("thread"), t->comm);
	put_label(w, TEXT("tid"), text_format(buf[1], 16, "%d", (int)t->tid));
}

/* Add the samples, with the locations that are new. @numbers: two texts for each task. */
static void put_samples(struct writing *w, char (*numbers)[16])
{
	const struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		struct out ids = { .failed = false }, sample = { .failed = false };

		for (uint32_t at = stack->first + stack->nr; at-- > stack->first;)
			put_varint(&ids, location_of(w, stack->first, &at));
		put_bytes(&sample, SAMPLE_LOCATION, ids.data ? ids.data : "", ids.size);
		ids.size = 0;
		put_varint(&ids, (uint64_t)snapshot_whole(stack->count));
		put_varint(&ids, (uint64_t)snapshot_whole(stack->weight));
		put_bytes(&sample, SAMPLE_VALUE, ids.data ? ids.data : "", ids.size);
		put_labels(w, stack->task, &numbers[2 * stack->task]);
		out_bytes(&sample, w->part.data, w->part.size);
		w->part.size = 0;
		sample.failed |= ids.failed || w->part.failed;
		put_message(&w->out, PROFILE_SAMPLE, &sample);
		out_fini(&ids);
		out_fini(&sample);
	}
}

/* Add comments: the facts. @facts are borrowed until the end. */
static void put_comments(struct writing *w, struct fact *facts)
{
	uint32_t nr = facts_make(w->s, facts);
	char line[400];

	for (uint32_t i = 0; i < nr; i++) {
		text_format(line, sizeof(line), "%s: %s", facts[i].name, facts[i].text);
		put_number(&w->out, PROFILE_COMMENT,
			   string_of(w, text_format(facts[i].text, sizeof(facts[i].text), "%s",
						    line)));
	}
}

/* Add the period: of a clock in nanoseconds; else 1 event, if the period varies. */
static void put_period(struct writing *w)
{
	const struct profile_event *ev = &w->s->profile->events[w->s->scope.filter.event];
	double period = (double)ev->event.period;

	if (w->s->nanoseconds && ev->want_hz > 0)
		period = 1e9 / ev->want_hz;
	put_value_type(w, PROFILE_PERIOD_TYPE, w->s->type, w->s->unit);
	put_number(&w->out, PROFILE_PERIOD, (uint64_t)snapshot_whole(period));
}

static int compress_all(struct out *to, const struct out *from)
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

static void put_all(struct writing *w, struct fact *facts, char (*numbers)[16])
{
	const struct profile *p = w->s->profile;

	/* The first string is empty. */
	string_of(w, TEXT(""));
	put_value_type(w, PROFILE_SAMPLE_TYPE, TEXT("samples"), TEXT("count"));
	put_value_type(w, PROFILE_SAMPLE_TYPE, w->s->type, w->s->unit);
	put_mappings(w);
	put_functions(w);
	put_samples(w, numbers);
	put_number(&w->out, PROFILE_TIME, p->time_ns - MIN(p->time_ns, p->window_ns));
	put_number(&w->out, PROFILE_DURATION, p->window_ns);
	put_period(w);
	put_comments(w, facts);
	put_number(&w->out, PROFILE_DEFAULT_TYPE, string_of(w, w->s->type));
	out_bytes(&w->out, w->strings.data, w->strings.size);
}

int pprof_write(struct out *o, const struct snapshot *s)
{
	struct writing w = { .s = s };
	char(*numbers)[16] = calloc(s->profile->nr_tasks + 1ULL, 2 * sizeof(*numbers));
	struct fact *facts = calloc(FACTS_MAX, sizeof(*facts));
	int code = -ENOMEM;

	if (numbers && facts) {
		put_all(&w, facts, numbers);
		if (!w.out.failed && !w.part.failed && !w.inner.failed && !w.strings.failed)
			code = compress_all(o, &w.out);
	}
	out_fini(&w.out);
	out_fini(&w.part);
	out_fini(&w.inner);
	out_fini(&w.strings);
	dense_fini(&w.hashes);
	dense_fini(&w.chains);
	dense_fini(&w.locations);
	free(w.texts);
	free(numbers);
	free(facts);
	return code;
}
