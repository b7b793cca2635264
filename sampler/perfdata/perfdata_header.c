// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: the header of file mode and of pipe mode. -EINVAL: damaged, or no recording;
 * perfdata_refuse.c words the message.
 */
#include "sampler/file/perfdata_header.h"

#include "symbols/base/bytes.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

/* An attribute grows by a few fields with each kernel. */
#define ATTR_SIZE_MAX 4096

/* One attribute, followed by the section of its ids. */
static int read_attr(struct perfdata_bytes *b, struct perfdata_events *events, uint64_t at,
		     uint64_t size)
{
	const uint8_t *entry = perfdata_bytes_at(b, at, size), *ids;
	struct perfdata_section s;
	uint32_t event;
	int code = entry ? perfdata_events_add(events, entry, size - sizeof(s), &event) : -EINVAL;

	if (code)
		return code;
	memcpy(&s, entry + size - sizeof(s), sizeof(s));
	if (!perfdata_events_room(events, s.size))
		return -EINVAL;
	ids = perfdata_bytes_at(b, s.offset, s.size);
	if (!ids)
		return -EINVAL;
	perfdata_events_add_ids(events, ids, s.size, event);
	return 0;
}

static int read_attrs(struct perfdata_bytes *b, struct perfdata_events *events,
		      const struct perfdata_header *h)
{
	uint64_t size = h->attr_size;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct perfdata_section) || size > ATTR_SIZE_MAX)
		return -EINVAL;
	for (uint64_t at = 0; at + size <= h->attrs.size; at += size) {
		int code = read_attr(b, events, h->attrs.offset + at, size);

		if (code)
			return code;
	}
	return events->nr ? 0 : -EINVAL;
}

/*
 * Find the events in front of the records: proftop --record writes them there at the start, and at
 * the end again, missing from a file cut short. The ids of the first event follow
 * the header.
 */
static void find_first_attrs(struct perfdata_bytes *b, struct perfdata_header *h)
{
	const uint64_t size = h->attr_size;
	uint64_t at = h->data.offset;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct perfdata_section) || size > ATTR_SIZE_MAX ||
	    h->attrs.offset < at || h->attrs.offset + h->attrs.size <= b->size)
		return;
	while (at >= sizeof(*h) + size) {
		struct perfdata_section ids;
		const uint8_t *entry = perfdata_bytes_at(b, at -= size, size);

		if (!entry || bytes_u32(entry + 4) != size - sizeof(ids))
			return;
		memcpy(&ids, entry + size - sizeof(ids), sizeof(ids));
		if (ids.offset == sizeof(*h)) {
			h->attrs = (struct perfdata_section){ at, h->data.offset - at };
			return;
		}
	}
}

/* EVENT_DESC: u32 nr, u32 attr_size, { attr, u32 nr_ids, u32 len, name[len], ids[] }. */
static void read_event_desc(struct perfdata_bytes *b, struct perfdata_events *events,
			    const struct perfdata_section *s)
{
	const uint8_t *p = s->size < 8 ? NULL : perfdata_bytes_at(b, s->offset, 8);
	uint32_t nr, attr_size, nr_ids, size;
	uint64_t at = s->offset + 8;

	if (!p)
		return;
	nr = bytes_u32(p);
	attr_size = bytes_u32(p + 4);
	for (uint32_t i = 0; i < nr && i < events->nr; i++) {
		p = perfdata_bytes_at(b, at + attr_size, 8);
		if (!p)
			return;
		nr_ids = bytes_u32(p);
		size = bytes_u32(p + 4);
		at += (uint64_t)attr_size + 8;
		p = perfdata_bytes_at(b, at, MIN(size, EVENT_NAME_MAX - 1u));
		if (!p)
			return;
		perfdata_events_name(&events->events[i], p, size);
		at += size + 8ULL * nr_ids;
	}
}

/* GROUP_DESC: u32 nr, { u32 len, name[len], u32 leader, u32 members }. */
static void read_group_desc(struct perfdata_bytes *b, struct perfdata_events *events,
			    const struct perfdata_section *s)
{
	const uint8_t *p = s->size < 4 ? NULL : perfdata_bytes_at(b, s->offset, 4);
	uint32_t nr = p ? bytes_u32(p) : 0;
	uint64_t at = s->offset + 4;

	/* Each group has an event. */
	for (uint32_t i = 0; i < nr && i < events->nr; i++) {
		uint32_t first, members;

		p = perfdata_bytes_at(b, at, 4);
		at += p ? 4ULL + bytes_u32(p) : 0;
		p = p ? perfdata_bytes_at(b, at, 8) : NULL;
		if (!p)
			return;
		at += 8;
		first = bytes_u32(p);
		members = bytes_u32(p + 4);
		for (uint32_t k = first; k < events->nr && k - first < members; k++)
			events->events[k].event.group = first + 1;
	}
}

/* ARCH, OSRELEASE: u32 len, text[len]; into @out of @max bytes. */
static void read_text(struct perfdata_bytes *b, const struct perfdata_section *s, char *out,
		      size_t max)
{
	const uint8_t *p = s->size < 4 ? NULL : perfdata_bytes_at(b, s->offset, 4);
	size_t size = p ? MIN(bytes_u32(p), max - 1) : 0;

	p = p ? perfdata_bytes_at(b, s->offset + 4, size) : NULL;
	if (p)
		memcpy(out, p, strnlen((const char *)p, size));
}

/* BUILD_ID: one record after the other. */
static void read_build_ids(struct perfdata_bytes *b, struct perfdata_events *events,
			   const struct perfdata_section *s)
{
	struct perf_event_header h;
	const uint8_t *p;

	for (uint64_t at = 0; at < s->size; at += h.size) {
		p = perfdata_bytes_at(b, s->offset + at, sizeof(h));
		if (!p)
			return;
		memcpy(&h, p, sizeof(h));
		p = perfdata_bytes_at(b, s->offset + at, h.size);
		if (!p || !perfdata_build_ids_add(&events->build_ids, &events->kernel, p, h.size))
			return;
	}
}

/* Read one feature at @s: a section of a file, or the body of a pipe's record. */
static void read_feature(struct perfdata_bytes *b, struct perfdata_events *events, uint64_t feature,
			 const struct perfdata_section *s)
{
	switch (feature) {
	case PERFDATA_EVENT_DESC:
		read_event_desc(b, events, s);
		break;
	case PERFDATA_ARCH:
		read_text(b, s, events->machine, sizeof(events->machine));
		break;
	case PERFDATA_HOSTNAME:
		read_text(b, s, events->host, sizeof(events->host));
		break;
	case PERFDATA_OSRELEASE:
		read_text(b, s, events->kernel.release, sizeof(events->kernel.release));
		break;
	case PERFDATA_BUILD_ID:
		read_build_ids(b, events, s);
		break;
	case PERFDATA_GROUP_DESC:
		read_group_desc(b, events, s);
		break;
	}
}

/*
 * The sections of the features are behind the data, one for each bit set, in order. Return whether
 * all are there.
 */
static bool read_features(struct perfdata_bytes *b, struct perfdata_events *events,
			  const struct perfdata_header *h)
{
	uint64_t at = h->data.offset + h->data.size;
	bool whole = true;

	for (unsigned int bit = 0; bit < PERFDATA_FEATURE_WORDS * 64; bit++) {
		struct perfdata_section s;
		const uint8_t *p;

		if (!(h->features[bit / 64] >> (bit % 64) & 1))
			continue;
		p = perfdata_bytes_at(b, at, sizeof(s));
		if (!p)
			return false;
		memcpy(&s, p, sizeof(s));
		whole &= s.offset <= b->size && s.size <= b->size - s.offset;
		read_feature(b, events, bit, &s);
		at += sizeof(s);
	}
	return whole;
}

static int read_file(struct perfdata_bytes *b, struct perfdata_events *events,
		     struct perfdata_extent *extent)
{
	const uint8_t *p = perfdata_bytes_at(b, 0, sizeof(struct perfdata_header));
	struct perfdata_section *data = &extent->data;
	struct perfdata_header h;
	int code;

	if (!p)
		return -EINVAL;
	memcpy(&h, p, sizeof(h));
	find_first_attrs(b, &h);
	code = h.size < sizeof(h) ? -EINVAL : read_attrs(b, events, &h);
	if (code)
		return code;
	perfdata_events_sort(events);
	*data = h.data;
	if (data->offset > b->size)
		return -EINVAL;
	extent->unfinished = !data->size;
	if (extent->unfinished || data->size > b->size - data->offset)
		data->size = b->size - data->offset;
	else
		extent->cut = !read_features(b, events, &h);
	extent->missing = extent->unfinished ? 0 : h.data.size - data->size;
	return 0;
}

int perfdata_header_read(struct perfdata_bytes *b, struct perfdata_events *events,
			 struct perfdata_extent *extent)
{
	const uint8_t *p = perfdata_bytes_at(b, 0, PERFDATA_PIPE_HEADER);
	uint64_t size;

	*extent = (struct perfdata_extent){ .missing = 0 };
	if (!p || memcmp(p, PERFDATA_MAGIC, 8))
		return -EINVAL;
	memcpy(&size, p + 8, sizeof(size));
	if (size != PERFDATA_PIPE_HEADER)
		return read_file(b, events, extent);
	extent->data =
		(struct perfdata_section){ PERFDATA_PIPE_HEADER, b->size - PERFDATA_PIPE_HEADER };
	return 0;
}

int perfdata_header_attr(struct perfdata_events *events, const uint8_t *at, size_t size, bool late,
			 bool fixed)
{
	const size_t body = sizeof(struct perf_event_header);
	/* Ours is continued in another record after this number of ids, and when events are added.
	 */
	bool found = late || fixed || events->last_ids == PERFDATA_STREAM_IDS;
	uint32_t attr_size, event;
	int code;

	if (size < body + PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	attr_size = bytes_u32(at + body + 4);
	if (attr_size < PERF_ATTR_SIZE_VER0 || attr_size > size - body)
		return -EINVAL;
	code = found ? perfdata_events_find(events, at + body, attr_size, &event) : -ENOENT;
	if (code && fixed)
		return 0;
	if (code)
		code = perfdata_events_add(events, at + body, attr_size, &event);
	if (code)
		return code;
	size -= body + attr_size;
	if (!perfdata_events_room(events, size))
		return -EINVAL;
	events->last_ids = size / 8;
	perfdata_events_add_ids(events, at + body + attr_size, size, event);
	perfdata_events_sort(events);
	return 0;
}

void perfdata_header_piped_feature(struct perfdata_events *events, const uint8_t *at, size_t size)
{
	const size_t body = sizeof(struct perf_event_header) + 8;
	const struct perfdata_section s = { 0, size - MIN(size, body) };
	struct perfdata_bytes bytes;
	uint64_t bit;

	if (size < body)
		return;
	memcpy(&bit, at + sizeof(struct perf_event_header), sizeof(bit));
	perfdata_bytes_borrow(&bytes, at + body, s.size);
	read_feature(&bytes, events, bit, &s);
}

void perfdata_header_update(struct perfdata_events *events, const uint8_t *at, size_t size)
{
	const size_t body = sizeof(struct perf_event_header), name = body + 16;
	uint64_t update[2];

	if (size <= name)
		return;
	memcpy(update, at + body, sizeof(update));
	if (update[0] == PERFDATA_UPDATE_NAME)
		perfdata_events_rename(events, update[1], (const char *)at + name, size - name);
}
