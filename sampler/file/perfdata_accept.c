// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The answers of perfdata_serve.c.
 */
#include "sampler/file/perfdata_accept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata_private.h"
#include "sampler/file/perfdata_wire.h"
#include "sampler/file/perfdata_zstd.h"
#include "symbols/base/text.h"
#include "symbols/cage/cage.h"

#define RECORD_MIN sizeof(struct perf_event_header)
#define CHUNKS_MAX (1U << 20)
#define REFS_MAX   (PERFDATA_MEMORY_MAX / sizeof(struct perfdata_ref))

/* Find the totals at the end of an answer, and check the sizes of the other parts. */
static int read_tail(const uint8_t *answer, size_t size, struct perfdata_answer *a)
{
	size_t left = size - sizeof(*a);

	if (size < sizeof(*a))
		return -EBADMSG;
	memcpy(a, answer + left, sizeof(*a));
	if (a->inflated > left || (left - a->inflated) % sizeof(struct perfdata_ref) ||
	    (left - a->inflated) / sizeof(struct perfdata_ref) != a->nr_refs)
		return -EBADMSG;
	return 0;
}

int perfdata_accept_found(const uint8_t *answer, size_t size, struct perfdata_found *found)
{
	struct perfdata_answer a;

	if (read_tail(answer, size, &a))
		return -EBADMSG;
	*found = a.found;
	return 0;
}

/* Check the totals, which never fall. Times are limited, texts are made clean. */
static int check_found(const struct perfdata *pd, struct perfdata_found *f)
{
	const struct perfdata_found *was = &pd->found;
	char note[PERFDATA_NOTE_MAX];

	if (f->walked > pd->bytes.size || f->walked < was->walked || f->nr_bad > pd->bytes.size)
		return -EBADMSG;
	memcpy(note, f->note, sizeof(note));
	text_sanitise(f->note, sizeof(f->note), note, strnlen(note, sizeof(note)));
	f->first_sample_ns = MIN(f->first_sample_ns, PERFDATA_TIME_MAX);
	f->last_sample_ns = MIN(MAX(f->last_sample_ns, f->first_sample_ns), PERFDATA_TIME_MAX);
	f->max_ns = MAX(MIN(f->max_ns, PERFDATA_TIME_MAX), was->max_ns);
	f->flush_ns = MAX(MIN(f->flush_ns, PERFDATA_TIME_MAX), was->flush_ns);
	return 0;
}

/* The bytes that the next record of an answer may be in: of the file, and decompressed ones. */
struct span {
	uint64_t from, to;
};

/* Test whether a record is behind the one before in the same bytes. */
static bool is_valid(const struct perfdata *pd, const struct perfdata_ref *ref,
		     const struct span spans[2])
{
	const struct span *s = &spans[ref->inflated == 1];

	return ref->inflated <= 1 && ref->event < pd->events.nr && ref->size >= RECORD_MIN &&
	       ref->at >= s->from && ref->at <= s->to && ref->size <= s->to - ref->at;
}

/* Keep decompressed bytes, without the rest of their answer. */
static void add_chunk(struct perfdata *pd, struct perfdata_chunk *chunk)
{
	uint8_t *bytes = realloc(chunk->bytes, chunk->size);

	chunk->bytes = bytes ? bytes : chunk->bytes;
	if (pd->nr_chunks == pd->room_chunks) {
		pd->room_chunks = MAX(2 * pd->room_chunks, 16U);
		pd->chunks = xrealloc_array(pd->chunks, pd->room_chunks, sizeof(*pd->chunks));
	}
	pd->chunks[pd->nr_chunks++] = *chunk;
	pd->inflated += chunk->size;
	pd->kept += chunk->size;
}

static int add_refs(struct perfdata *pd, const uint8_t *bytes, uint64_t nr, uint64_t walked,
		    const struct perfdata_chunk *chunk)
{
	/* Bytes that a stream has dropped are before them. */
	struct span spans[2] = { { pd->found.walked, walked },
				 { chunk->at, chunk->at + chunk->size } };

	if (nr > (pd->bytes.size + pd->inflated + chunk->size) / RECORD_MIN - pd->nr_refs)
		return -EBADMSG;
	if (nr > REFS_MAX - pd->nr_refs)
		return -EFBIG;
	if (nr > pd->room_refs - pd->nr_refs) {
		pd->room_refs = MIN(MAX(2 * pd->room_refs, pd->nr_refs + nr), REFS_MAX);
		pd->refs = xrealloc_array(pd->refs, pd->room_refs, sizeof(*pd->refs));
	}
	for (uint64_t i = 0; i < nr; i++) {
		struct perfdata_ref *ref = &pd->refs[pd->nr_refs];

		memcpy(ref, bytes + i * sizeof(*ref), sizeof(*ref));
		if (!is_valid(pd, ref, spans))
			return -EBADMSG;
		spans[ref->inflated].from = ref->at + ref->size;
		ref->time_ns = MIN(ref->time_ns, PERFDATA_TIME_MAX);
		pd->nr_refs++;
	}
	return 0;
}

/* Check the size of more decompressed bytes by the limits of the reader. */
static int check_inflated(const struct perfdata *pd, uint64_t size)
{
	if (size > perfdata_zstd_limit(pd->bytes.size) - pd->inflated)
		return -EBADMSG;
	/* Of a file it stops there itself. */
	return size > PERFDATA_ZSTD_MAX - pd->kept || pd->nr_chunks == CHUNKS_MAX ? -EFBIG : 0;
}

int perfdata_accept_answer(struct perfdata *pd, struct cage_answer *answer)
{
	struct perfdata_chunk chunk = { .at = pd->inflated, .bytes = answer->bytes };
	const uint64_t nr_before = pd->nr_refs;
	struct perfdata_answer a;
	int code = read_tail(answer->bytes, answer->size, &a);

	if (!code)
		code = check_found(pd, &a.found);
	if (!code)
		code = check_inflated(pd, a.inflated);
	chunk.size = a.inflated;
	if (!code)
		code = add_refs(pd, chunk.bytes + chunk.size, a.nr_refs, a.found.walked, &chunk);
	if (code) {
		pd->nr_refs = nr_before;
		return code;
	}
	if (chunk.size) {
		add_chunk(pd, &chunk);
		answer->bytes = NULL;
	}
	pd->found = a.found;
	return 0;
}

/* Take @size bytes of the facts. NULL: they are not there. */
static const uint8_t *take(const uint8_t **at, size_t *left, uint64_t size)
{
	const uint8_t *bytes = *at;

	if (size > *left)
		return NULL;
	*at += size;
	*left -= size;
	return bytes;
}

static int take_event(struct perfdata_events *t, const uint8_t *bytes)
{
	struct perfdata_fact_event ev;
	uint32_t index;

	memcpy(&ev, bytes, sizeof(ev));
	/* A group is named by its first event. */
	if (ev.group > PERFDATA_EVENTS_MAX ||
	    perfdata_events_add(t, (const uint8_t *)&ev.attr, sizeof(ev.attr), &index))
		return -EBADMSG;
	perfdata_events_name(&t->events[index], ev.name, sizeof(ev.name));
	t->events[index].event.group = ev.group;
	t->events[index].nr_samples = ev.nr_samples;
	return 0;
}

static int take_ids(struct perfdata_events *t, const uint8_t *bytes, uint32_t nr)
{
	t->ids = xrealloc_array(NULL, nr + 1UL, sizeof(*t->ids));
	memcpy(t->ids, bytes, nr * sizeof(*t->ids));
	for (uint32_t i = 0; i < nr; i++)
		if (t->ids[i].event >= t->nr)
			return -EBADMSG;
	t->nr_ids = nr;
	perfdata_events_sort(t);
	return 0;
}

static int take_build_ids(struct perfdata_build_ids *t, const struct perfdata_facts *f,
			  const uint8_t *ids, const uint8_t *names)
{
	t->ids = xrealloc_array(NULL, f->nr_build_ids + 1UL, sizeof(*t->ids));
	memcpy(t->ids, ids, f->nr_build_ids * sizeof(*t->ids));
	t->names = xrealloc_array(NULL, f->names_size + 1UL, 1);
	memcpy(t->names, names, f->names_size);
	t->names_size = f->names_size;
	for (uint32_t i = 0; i < f->nr_build_ids; i++) {
		const struct perfdata_build_id *id = &t->ids[i];

		if (id->size > sizeof(id->id) || id->name > t->names_size ||
		    id->name_size > t->names_size - id->name)
			return -EBADMSG;
	}
	t->nr = f->nr_build_ids;
	return 0;
}

/* Fill the empty @t. */
static int take_facts(struct perfdata_events *t, const uint8_t *at, size_t left)
{
	struct perfdata_facts f;
	const uint8_t *bytes = take(&at, &left, sizeof(f)), *ids, *build_ids, *names;
	int code = 0;

	if (!bytes)
		return -EBADMSG;
	memcpy(&f, bytes, sizeof(f));
	if (f.nr_events > PERFDATA_EVENTS_MAX || f.nr_ids > PERFDATA_IDS_MAX ||
	    f.nr_build_ids > PERFDATA_BUILD_IDS_MAX || f.names_size > PERFDATA_NAMES_MAX ||
	    !memchr(f.machine, 0, sizeof(f.machine)) || !memchr(f.host, 0, sizeof(f.host)) ||
	    !memchr(f.kernel.release, 0, sizeof(f.kernel.release)) ||
	    f.kernel.build_id_size > sizeof(f.kernel.build_id))
		return -EBADMSG;
	for (uint32_t i = 0; i < f.nr_events && !code; i++) {
		bytes = take(&at, &left, sizeof(struct perfdata_fact_event));
		code = bytes ? take_event(t, bytes) : -EBADMSG;
	}
	ids = take(&at, &left, f.nr_ids * sizeof(struct perfdata_id));
	build_ids = take(&at, &left, f.nr_build_ids * sizeof(struct perfdata_build_id));
	names = take(&at, &left, f.names_size);
	if (code || !ids || !build_ids || !names || left)
		return -EBADMSG;
	memcpy(t->machine, f.machine, sizeof(t->machine));
	memcpy(t->host, f.host, sizeof(t->host));
	t->kernel = f.kernel;
	code = take_ids(t, ids, f.nr_ids);
	return code ? code : take_build_ids(&t->build_ids, &f, build_ids, names);
}

int perfdata_accept_facts(struct perfdata *pd, const uint8_t *facts, size_t size)
{
	struct perfdata_events t = { .nr = 0 };
	int code = take_facts(&t, facts, size);

	/* The events of records that are here stay. */
	if (!code && t.nr < pd->events.nr)
		code = -EBADMSG;
	perfdata_events_fini(code ? &t : &pd->events);
	if (!code)
		pd->events = t;
	return code;
}
