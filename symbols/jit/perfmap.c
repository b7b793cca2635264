// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse a perf map and resolve overlapping entries.
 *
 * Runs on: a worker of the cage; find on the loader. A sweep over the starts of the entries, with a
 * heap of the open ones, cuts them into spans of one entry each.
 */
#include "symbols/jit/perfmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/fields.h"
#include "symbols/base/search.h"

struct entry { /* in order of the text: a later one has a higher index */
	uint64_t start, end;
	uint32_t name; /* offset in names */
	uint32_t name_size;
};

struct span { /* sorted; disjoint */
	uint64_t start, end;
	uint32_t entry, unused;
};

/* The table of a map in one piece: this, the entries, the spans, the names. */
struct flat {
	uint32_t nr_entries, nr_spans, nr_bad, unused;
	uint64_t names_size;
};

_Static_assert(sizeof(struct entry) == 24 && sizeof(struct span) == 24 && sizeof(struct flat) == 24,
	       "see PERFMAP_FLAT_MAX");

struct perfmap {
	struct cage_answer flat; /* has entries, spans and names; empty: each has its memory */
	struct entry *entries;
	uint32_t nr_entries, max_entries;
	struct span *spans;
	uint32_t nr_spans;
	char *names;
	size_t names_size;
	uint32_t nr_bad;
};

/*
 * Read a hex number, with or without 0x, and the blanks after it; NULL: none, or
 * more than 64 bits.
 */
static const char *read_hex(const char *p, const char *end, uint64_t *out)
{
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	p = fields_hex(p, end, out);
	if (!p || p == end || !fields_is_blank(*p))
		return NULL;
	return fields_skip_blanks(p, end);
}

static int reserve(struct perfmap *map)
{
	if (map->nr_entries >= PERFMAP_ENTRIES_MAX)
		return -E2BIG;
	return array_reserve(&map->entries, &map->max_entries, map->nr_entries + 1ULL) ? 0
										       : -ENOMEM;
}

/* Parse the line [p, end). map->names has space: it is as large as all input. */
static int add_line(struct perfmap *map, const char *p, const char *end)
{
	struct entry e;
	uint64_t size;
	int rc;

	while (end > p && (end[-1] == '\r' || fields_is_blank(end[-1])))
		end--;
	p = read_hex(fields_skip_blanks(p, end), end, &e.start);
	p = p ? read_hex(p, end, &size) : NULL;
	if (!p || p == end || !size || __builtin_add_overflow(e.start, size, &e.end)) {
		map->nr_bad++;
		return 0;
	}
	rc = reserve(map);
	if (rc)
		return rc;
	e.name = (uint32_t)map->names_size;
	e.name_size = (uint32_t)MIN((size_t)(end - p), (size_t)PERFMAP_NAME_MAX);
	memcpy(map->names + map->names_size, p, e.name_size);
	map->names_size += e.name_size;
	map->entries[map->nr_entries++] = e;
	return 0;
}

/* Parse all complete lines of @text. */
static int parse_lines(struct perfmap *map, const char *text, size_t size)
{
	const char *end = text + size;
	const char *eol;
	int rc = 0;

	for (const char *p = text; !rc && p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			break;
		if (eol > p)
			rc = add_line(map, p, eol);
	}
	/* A map that is too long still names the first part. */
	if (rc && rc != -E2BIG)
		return rc;
	return map->nr_entries ? 0 : -ENODATA;
}

/* State of the sweep. */
struct sweep {
	const struct entry *entries;
	uint32_t *order; /* entries by start */
	uint32_t *heap;	 /* open entries; the latest on top */
	uint32_t nr_heap;
};

static int compare_starts(const void *a, const void *b, void *arg)
{
	const struct entry *entries = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (entries[i].start != entries[j].start)
		return entries[i].start < entries[j].start ? -1 : 1;
	return COMPARE(i, j);
}

static void heap_push(struct sweep *s, uint32_t entry)
{
	uint32_t i = s->nr_heap++;

	for (; i && s->heap[(i - 1) / 2] < entry; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = entry;
}

static void heap_pop(struct sweep *s)
{
	uint32_t last = s->heap[--s->nr_heap], i = 0, child;

	while ((child = 2 * i + 1) < s->nr_heap) {
		if (child + 1 < s->nr_heap && s->heap[child + 1] > s->heap[child])
			child++;
		if (s->heap[child] < last)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
}

/* Add [start, end) of @entry; extend the last span if it has the same entry. */
static void add_span(struct perfmap *map, uint64_t start, uint64_t end, uint32_t entry)
{
	struct span *last = map->nr_spans ? &map->spans[map->nr_spans - 1] : NULL;

	if (last && last->entry == entry && last->end == start)
		last->end = end;
	else
		map->spans[map->nr_spans++] = (struct span){ start, end, entry, 0 };
}

/* Each start and each end begins at most one span, so twice the entries are enough. */
static void run_sweep(struct perfmap *map, struct sweep *s)
{
	const struct entry *entries = map->entries;
	uint32_t next = 0;
	uint64_t at = 0, to;

	for (;;) {
		while (s->nr_heap && entries[s->heap[0]].end <= at)
			heap_pop(s);
		if (!s->nr_heap) {
			if (next == map->nr_entries)
				return;
			at = entries[s->order[next]].start;
		} else {
			to = entries[s->heap[0]].end;
			if (next < map->nr_entries)
				to = MIN(to, entries[s->order[next]].start);
			add_span(map, at, to, s->heap[0]);
			at = to;
		}
		while (next < map->nr_entries && entries[s->order[next]].start <= at)
			heap_push(s, s->order[next++]);
	}
}

/* Cut the entries into spans. */
static int make_spans(struct perfmap *map)
{
	struct sweep s = { .entries = map->entries };
	struct span *fit;
	int rc = -ENOMEM;

	s.order = calloc(map->nr_entries, sizeof(*s.order));
	s.heap = calloc(map->nr_entries, sizeof(*s.heap));
	map->spans = calloc(map->nr_entries * 2ULL, sizeof(*map->spans));
	if (s.order && s.heap && map->spans) {
		for (uint32_t i = 0; i < map->nr_entries; i++)
			s.order[i] = i;
		qsort_r(s.order, map->nr_entries, sizeof(*s.order), compare_starts, map->entries);
		run_sweep(map, &s);
		fit = reallocarray(map->spans, map->nr_spans, sizeof(*fit));
		map->spans = fit ? fit : map->spans;
		rc = 0;
	}
	free(s.order);
	free(s.heap);
	return rc;
}

/* Free the memory that parsing did not use. */
static void shrink(struct perfmap *map)
{
	void *entries = reallocarray(map->entries, map->nr_entries, sizeof(*map->entries));
	char *names = realloc(map->names, MAX(map->names_size, 1UL));

	map->entries = entries ? entries : map->entries;
	map->names = names ? names : map->names;
	map->max_entries = map->nr_entries;
}

int perfmap_parse(struct perfmap **out, const char *text, size_t size)
{
	struct perfmap *map;
	int rc = -ENOMEM;

	if (size > PERFMAP_SIZE_MAX)
		return -E2BIG;
	map = calloc(1, sizeof(*map));
	if (map)
		map->names = malloc(size + 1);
	if (map && map->names)
		rc = parse_lines(map, text, size);
	if (!rc)
		rc = make_spans(map);
	if (rc) {
		perfmap_free(map);
		return rc;
	}
	shrink(map);
	*out = map;
	return 0;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	if (!map->flat.bytes) {
		free(map->entries);
		free(map->spans);
		free(map->names);
	}
	cage_answer_free(&map->flat);
	free(map);
}

void perfmap_put(const struct perfmap *map, struct cage_reply *reply)
{
	const struct flat flat = {
		.nr_entries = map->nr_entries,
		.nr_spans = map->nr_spans,
		.nr_bad = map->nr_bad,
		.names_size = map->names_size,
	};

	cage_put(reply, &flat, sizeof(flat));
	cage_put(reply, map->entries, map->nr_entries * sizeof(*map->entries));
	cage_put(reply, map->spans, map->nr_spans * sizeof(*map->spans));
	cage_put(reply, map->names, map->names_size);
}

/* Test the entries and spans of a foreign table. */
static bool is_valid(const struct perfmap *map)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < map->nr_entries; i++) {
		const struct entry *e = &map->entries[i];

		if (e->start >= e->end || e->name_size > PERFMAP_NAME_MAX ||
		    e->name > map->names_size || e->name_size > map->names_size - e->name)
			return false;
	}
	for (uint32_t i = 0; i < map->nr_spans; i++) {
		const struct span *s = &map->spans[i];

		if (s->start < last || s->start >= s->end || s->entry >= map->nr_entries ||
		    s->start < map->entries[s->entry].start || s->end > map->entries[s->entry].end)
			return false;
		last = s->end;
	}
	return true;
}

int perfmap_adopt(struct perfmap **out, const struct cage_answer *answer)
{
	uint8_t *bytes = answer->bytes;
	size_t size = answer->size;
	struct perfmap *map;
	struct flat flat;
	uint64_t tables;

	if (size < sizeof(flat))
		return -EBADMSG;
	memcpy(&flat, bytes, sizeof(flat));
	tables = sizeof(flat) + (uint64_t)flat.nr_entries * sizeof(struct entry) +
		 (uint64_t)flat.nr_spans * sizeof(struct span);
	if (flat.names_size > PERFMAP_SIZE_MAX || tables > size || flat.names_size != size - tables)
		return -EBADMSG;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->nr_entries = map->max_entries = flat.nr_entries;
	map->nr_spans = flat.nr_spans;
	map->nr_bad = flat.nr_bad;
	map->names_size = flat.names_size;
	map->entries = (struct entry *)(void *)(bytes + sizeof(flat));
	map->spans = (struct span *)(void *)(map->entries + map->nr_entries);
	map->names = (char *)(map->spans + map->nr_spans);
	if (!is_valid(map)) {
		free(map);
		return -EBADMSG;
	}
	map->flat = *answer;
	*out = map;
	return 0;
}

bool perfmap_find(const struct perfmap *map, uint64_t addr, struct perfmap_symbol *out)
{
	const struct entry *e;
	uint32_t lo = search_split(map->nr_spans, i, map->spans[i].start <= addr);

	if (!lo || addr >= map->spans[lo - 1].end)
		return false;
	e = &map->entries[map->spans[lo - 1].entry];
	*out = (struct perfmap_symbol){
		.start = e->start,
		.size = e->end - e->start,
		.name = map->names + e->name,
		.name_size = e->name_size,
	};
	return true;
}

uint32_t perfmap_nr(const struct perfmap *map)
{
	return map->nr_entries;
}

uint32_t perfmap_nr_bad(const struct perfmap *map)
{
	return map->nr_bad;
}

size_t perfmap_memory(const struct perfmap *map)
{
	return sizeof(*map) + map->max_entries * sizeof(*map->entries) +
	       map->nr_spans * sizeof(*map->spans) + map->names_size;
}
