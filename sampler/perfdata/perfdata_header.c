// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The header of file mode and of pipe mode: events, ids, build-ids. -EINVAL: damaged, or no
 * recording.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"

/*
 * { header, i32 pid, u8 id[20], u8 size, u8[3], name[] }: a table sorted by name.
 *
 * One thread, that of the replay. Invariant: ids[].name and name_size lie in
 * names; both are limited, however large the file is.
 */

/* Return whether the object is the kernel, not a module. */
static bool is_kernel(const char *name, size_t size)
{
	static const char kallsyms[] = "[kernel.kallsyms]", file[] = "vmlinux";
	const char *slash = memrchr(name, '/', size);

	if (size >= sizeof(kallsyms) - 1 && !memcmp(name, kallsyms, sizeof(kallsyms) - 1))
		return true;
	size -= slash ? (size_t)(slash + 1 - name) : 0;
	return size >= sizeof(file) - 1 &&
	       !memcmp(slash ? slash + 1 : name, file, sizeof(file) - 1);
}

static void add(struct perfdata_build_ids *t, const char *name, size_t size, const uint8_t *id,
		uint8_t id_size)
{
	struct perfdata_build_id *entry;

	if (t->nr == PERFDATA_BUILD_IDS_MAX || size > PERFDATA_NAMES_MAX - t->names_size)
		return;
	if (t->nr == t->room) {
		t->room = MAX(2 * t->room, 64u);
		t->ids = xrealloc_array(t->ids, t->room, sizeof(*t->ids));
	}
	if (t->names_room - t->names_size < size) {
		t->names_room = 2 * t->names_room + size;
		t->names = xrealloc_array(t->names, t->names_room, 1);
	}
	entry = &t->ids[t->nr++];
	*entry = (struct perfdata_build_id){
		(uint32_t)t->names_size, (uint32_t)size, { 0 }, id_size
	};
	memcpy(entry->id, id, id_size);
	memcpy(t->names + t->names_size, name, size);
	t->names_size += size;
	t->sorted = false;
}

bool perfdata_build_ids_add(struct perfdata_build_ids *t, struct kernel_identity *kernel,
			    const uint8_t *record, size_t size)
{
	const size_t id_at = offsetof(struct perfdata_build_id_record, id);
	struct perfdata_build_id_record r;
	const char *name = (const char *)record + sizeof(r);
	uint8_t id_size = sizeof(r.id);
	size_t name_size;

	if (size < sizeof(r))
		return false;
	memcpy(&r, record, sizeof(r));
	name_size = strnlen(name, size - sizeof(r));
	/* Before perf 5.10 there was no size: SHA-1 it was, or something shorter and zeros. */
	if (r.h.misc & PERFDATA_MISC_BUILD_ID_SIZE)
		id_size = MIN(r.size, id_size);
	if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
		if (name_size && id_size)
			add(t, name, name_size, record + id_at, id_size);
	} else if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
		   is_kernel(name, name_size)) {
		kernel->build_id_size = id_size;
		memcpy(kernel->build_id, r.id, id_size);
	}
	return true;
}

static int compare_names(const char *a, size_t a_size, const char *b, size_t b_size)
{
	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	return memcmp(a, b, a_size);
}

static int compare(const void *a, const void *b, void *names)
{
	const struct perfdata_build_id *x = a, *y = b;
	const char *text = names;

	return compare_names(text + x->name, x->name_size, text + y->name, y->name_size);
}

/* Of a name with several build-ids none is kept, unless all are the same. */
static void sort(struct perfdata_build_ids *t)
{
	uint32_t kept = 0;

	t->sorted = true;
	if (!t->nr)
		return;
	qsort_r(t->ids, t->nr, sizeof(*t->ids), compare, t->names);
	for (uint32_t i = 1; i < t->nr; i++) {
		struct perfdata_build_id *last = &t->ids[kept];

		if (compare(last, &t->ids[i], t->names))
			t->ids[++kept] = t->ids[i];
		else if (memcmp(last->id, t->ids[i].id, sizeof(last->id)))
			last->size = 0;
	}
	t->nr = kept + 1;
}

bool perfdata_build_ids_find(struct perfdata_build_ids *t, const char *name, size_t size,
			     struct object_identity *id)
{
	uint32_t lo = 0, hi;

	assert(name || !size);
	if (!t->sorted)
		sort(t);
	for (hi = t->nr; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct perfdata_build_id *e = &t->ids[mid];
		int order = compare_names(t->names + e->name, e->name_size, name, size);

		if (!order) {
			if (!e->size)
				return false;
			memcpy(id->build_id, e->id, sizeof(id->build_id));
			id->build_id_size = e->size;
			return true;
		}
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static void perfdata_build_ids_fini(struct perfdata_build_ids *t)
{
	free(t->ids);
	free(t->names);
	*t = (struct perfdata_build_ids){ 0 };
}

/*
 * perf_event_attr of a file -> how its records are decoded and counted.
 */

/* Name an event that has no name in the file. */
static void name_event(struct perfdata_event *ev, const struct perf_event_attr *attr)
{
	const struct event known = { .type = attr->type, .config = attr->config };
	const struct event_info *info = event_info(&known);

	if (info)
		snprintf(ev->event.name, sizeof(ev->event.name), "%s", info->name);
	else
		snprintf(ev->event.name, sizeof(ev->event.name), "%u:%#llx", attr->type,
			 (unsigned long long)attr->config);
}

/* Make room for one more event. */
static void make_room(struct perfdata_events *t)
{
	if (t->nr < t->room)
		return;
	t->room = MAX(2 * t->room, 4U);
	t->events = xrealloc_array(t->events, t->room, sizeof(*t->events));
	t->attrs = xrealloc_array(t->attrs, t->room, sizeof(*t->attrs));
	t->hashes = xrealloc_array(t->hashes, t->room, sizeof(*t->hashes));
}

int perfdata_events_add(struct perfdata_events *t, const uint8_t *bytes, size_t size,
			uint32_t *index)
{
	struct perf_event_attr attr = { 0 };
	struct perfdata_event *ev;

	assert(t->nr <= PERFDATA_EVENTS_MAX);
	if (size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (t->nr == PERFDATA_EVENTS_MAX)
		return -E2BIG;
	memcpy(&attr, bytes, MIN(size, sizeof(attr)));
	make_room(t);
	*index = t->nr++;
	t->attrs[*index] = attr;
	t->hashes[*index] = keyhash_name((const char *)bytes, size);
	ev = &t->events[*index];
	*ev = (struct perfdata_event){ .nr_samples = 0 };
	ev->layout = (struct record_layout){
		.sample_type = attr.sample_type,
		.regs_mask = attr.sample_type & PERF_SAMPLE_REGS_USER ? attr.sample_regs_user : 0,
		.branch_type = attr.branch_sample_type,
		.intr_mask = attr.sample_type & PERF_SAMPLE_REGS_INTR ? attr.sample_regs_intr : 0,
		.read_format = attr.read_format,
		.id_all = attr.sample_id_all,
	};
	ev->event.type = attr.type;
	ev->event.config = attr.config;
	ev->event.user = !attr.exclude_user;
	ev->event.kernel = !attr.exclude_kernel;
	ev->event.read = attr.sample_type & PERF_SAMPLE_READ &&
			 attr.read_format & PERF_FORMAT_GROUP;
	ev->event.hardware = attr.type != PERF_TYPE_SOFTWARE;
	ev->event.clock = attr.type == PERF_TYPE_SOFTWARE &&
			  attr.config <= PERF_COUNT_SW_TASK_CLOCK;
	ev->stack_size = attr.sample_type & PERF_SAMPLE_STACK_USER ? attr.sample_stack_user : 0;
	ev->user_chain = attr.sample_type & PERF_SAMPLE_CALLCHAIN && !attr.exclude_callchain_user;
	ev->switches = attr.context_switch;
	/* Since Linux 6.13; older ones refuse such an event. */
	ev->by_task = attr.inherit && attr.sample_type & PERF_SAMPLE_READ &&
		      attr.sample_type & PERF_SAMPLE_TID;
	ev->monotonic = attr.use_clockid && attr.clockid == CLOCK_MONOTONIC;
	ev->dummy = attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
	ev->hz = attr.freq ? (double)attr.sample_freq : 0;
	ev->period = attr.freq ? 0 : attr.sample_period;
	name_event(ev, &attr);
	return 0;
}

/* Find the event of this attribute. 0 or -ENOENT. */
static int perfdata_events_find(const struct perfdata_events *t, const uint8_t *bytes, size_t size,
				uint32_t *index)
{
	uint64_t hash = keyhash_name((const char *)bytes, size);

	for (*index = 0; *index < t->nr; ++*index)
		if (t->hashes[*index] == hash)
			return 0;
	return -ENOENT;
}

/* Return whether the @size bytes of an event's ids fit. */
static bool perfdata_events_room(const struct perfdata_events *t, uint64_t size)
{
	return size / 8 <= PERFDATA_IDS_MAX - t->nr_ids;
}

static void perfdata_events_add_ids(struct perfdata_events *t, const uint8_t *bytes, uint64_t size,
				    uint32_t event)
{
	uint32_t nr = (uint32_t)(size / 8);

	t->ids = xrealloc_array(t->ids, t->nr_ids + nr, sizeof(*t->ids));
	for (uint32_t i = 0; i < nr; i++) {
		struct perfdata_id *id = &t->ids[t->nr_ids++];

		id->event = event;
		memcpy(&id->id, bytes + 8 * (size_t)i, sizeof(id->id));
	}
}

static int compare_ids(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	return COMPARE(x->id, y->id);
}

void perfdata_events_sort(struct perfdata_events *t)
{
	if (t->nr_ids)
		qsort(t->ids, t->nr_ids, sizeof(*t->ids), compare_ids);
}

int perfdata_events_of(const struct perfdata_events *t, uint64_t id)
{
	const struct perfdata_id key = { .id = id }, *found;

	assert(t->ids || !t->nr_ids);
	if (!t->nr_ids || t->nr == 1)
		return 0;
	found = bsearch(&key, t->ids, t->nr_ids, sizeof(key), compare_ids);
	return found ? (int)found->event : -1;
}

void perfdata_events_name(struct perfdata_event *ev, const void *name, size_t size)
{
	text_sanitise(ev->event.name, EVENT_NAME_MAX, name,
		      strnlen(name, MIN(size, EVENT_NAME_MAX - 1u)));
}

/* Set the name of the event with that id. */
static void perfdata_events_rename(struct perfdata_events *t, uint64_t id, const char *name,
				   size_t size)
{
	int event = perfdata_events_of(t, id);

	if (event >= 0 && (uint32_t)event < t->nr)
		perfdata_events_name(&t->events[event], name, size);
}

void perfdata_events_fini(struct perfdata_events *t)
{
	perfdata_build_ids_fini(&t->build_ids);
	free(t->ids);
	free(t->events);
	free(t->attrs);
	free(t->hashes);
	*t = (struct perfdata_events){ .nr = 0 };
}

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
