// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: header, events, records sorted by time.
 *
 * One bounded walk finds the records and their times; a stable sort by time
 * replaces perf's rounds. Offsets and sizes of the file are checked once, in
 * bytes_at(); everything else goes through it.
 */
#include "sampler/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/perfdata_zstd.h"

#define MAGIC "PERFILE2"
#define EVENTS_IN_FILE_MAX 256
#define IDS_MAX (1u << 20)
/* Of the feature bits in the header, those read here. */
#define FEATURE_EVENT_DESC 12
#define FEATURE_WORDS 4

/* Records that perf itself writes (tools/perf/util/event.h); never from a kernel. */
enum {
	USER_FIRST = 64,
	USER_HEADER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_AUXTRACE = 71,
	USER_COMPRESSED = 81,
};

struct section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[FEATURE_WORDS];
};

struct id_entry {
	uint64_t id;
	uint32_t event;
};

struct record_ref {
	uint64_t time_ns;
	const uint8_t *at;
	uint32_t event;
};

struct perfdata {
	uint8_t *bytes;
	size_t size;
	struct perfdata_event events[EVENTS_IN_FILE_MAX];
	uint32_t nr_events;
	struct id_entry *ids;		/* sorted by id once all are known */
	uint32_t nr_ids;
	struct record_ref *refs;
	uint64_t nr_refs, room_refs;
	uint64_t nr_bad;
	uint64_t last_time_ns;
	uint64_t first_sample_ns, last_sample_ns;
	struct perfdata_zstd *zstd;	/* NULL until a compressed record was met */
};

static uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* @size bytes at @offset of the file, or NULL if they are not all there. */
static const uint8_t *bytes_at(const struct perfdata *pd, uint64_t offset, uint64_t size)
{
	if (offset > pd->size || size > pd->size - offset)
		return NULL;
	return pd->bytes + offset;
}

/* A name for an event whose name the file does not tell. */
static void name_event(struct perfdata_event *ev, const struct perf_event_attr *attr)
{
	const struct event_info *info = event_catalogue();
	struct event known;

	for (; info->name; info++) {
		if (event_parse(&known, info->name, NULL) || known.type != attr->type ||
		    known.config != attr->config)
			continue;
		snprintf(ev->event.name, sizeof(ev->event.name), "%s", info->name);
		return;
	}
	snprintf(ev->event.name, sizeof(ev->event.name), "%u:%#llx", attr->type,
		 (unsigned long long)attr->config);
}

static int add_event(struct perfdata *pd, const uint8_t *bytes, size_t size, uint32_t *index)
{
	struct perf_event_attr attr = { 0 };
	struct perfdata_event *ev;

	if (pd->nr_events == EVENTS_IN_FILE_MAX || size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	memcpy(&attr, bytes, MIN(size, sizeof(attr)));
	*index = pd->nr_events++;
	ev = &pd->events[*index];
	ev->layout = (struct record_layout){
		.sample_type = attr.sample_type,
		.regs_mask = attr.sample_type & PERF_SAMPLE_REGS_USER ? attr.sample_regs_user : 0,
		.id_all = attr.sample_id_all,
	};
	ev->event.type = attr.type;
	ev->event.config = attr.config;
	ev->event.user = !attr.exclude_user;
	ev->event.kernel = !attr.exclude_kernel;
	ev->event.hardware = attr.type != PERF_TYPE_SOFTWARE;
	ev->event.clock = attr.type == PERF_TYPE_SOFTWARE && attr.config <= PERF_COUNT_SW_TASK_CLOCK;
	ev->dummy = attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
	ev->hz = attr.freq ? (double)attr.sample_freq : 0;
	ev->period = attr.freq ? 0 : attr.sample_period;
	name_event(ev, &attr);
	return 0;
}

static int add_ids(struct perfdata *pd, const uint8_t *bytes, uint64_t size, uint32_t event)
{
	uint64_t nr = size / 8;

	if (nr > IDS_MAX - pd->nr_ids)
		return -EINVAL;
	pd->ids = xrealloc_array(pd->ids, pd->nr_ids + nr, sizeof(*pd->ids));
	for (uint64_t i = 0; i < nr; i++)
		pd->ids[pd->nr_ids++] = (struct id_entry){ load_u64(bytes + 8 * i), event };
	return 0;
}

/* File mode: each entry is an attribute followed by the section of its ids. */
static int read_attrs(struct perfdata *pd, const struct file_header *h)
{
	uint64_t size = h->attr_size;

	if (size < PERF_ATTR_SIZE_VER0 + 16 || size > 4096)
		return -EINVAL;
	for (uint64_t at = 0; at + size <= h->attrs.size; at += size) {
		const uint8_t *entry = bytes_at(pd, h->attrs.offset + at, size), *ids;
		struct section s;
		uint32_t event;

		if (!entry || add_event(pd, entry, size - 16, &event))
			return -EINVAL;
		memcpy(&s, entry + size - 16, sizeof(s));
		ids = bytes_at(pd, s.offset, s.size);
		if (!ids || add_ids(pd, ids, s.size, event))
			return -EINVAL;
	}
	return pd->nr_events ? 0 : -EINVAL;
}

/* EVENT_DESC: u32 nr, u32 attr_size, { attr, u32 nr_ids, u32 len, name[len], ids[] }. */
static void read_event_desc(struct perfdata *pd, const struct section *s)
{
	uint64_t at = s->offset + 8;
	const uint8_t *p = bytes_at(pd, s->offset, 8);
	uint32_t nr, attr_size;

	if (!p || s->size < 8)
		return;
	nr = load_u32(p);
	attr_size = load_u32(p + 4);
	for (uint32_t i = 0; i < nr && i < pd->nr_events; i++) {
		uint32_t nr_ids, size;

		p = bytes_at(pd, at, (uint64_t)attr_size + 8);
		if (!p)
			return;
		nr_ids = load_u32(p + attr_size);
		size = load_u32(p + attr_size + 4);
		at += (uint64_t)attr_size + 8;
		p = bytes_at(pd, at, size);
		if (!p)
			return;
		snprintf(pd->events[i].event.name, sizeof(pd->events[i].event.name), "%.*s",
			 (int)strnlen((const char *)p, MIN(size, EVENT_NAME_MAX - 1)), p);
		at += size + 8ULL * nr_ids;
	}
}

/* The sections of the features lie behind the data, one for each bit set, in order. */
static void read_features(struct perfdata *pd, const struct file_header *h)
{
	uint64_t at = h->data.offset + h->data.size;

	for (unsigned int bit = 0; bit < FEATURE_WORDS * 64; bit++) {
		struct section s;
		const uint8_t *p;

		if (!(h->features[bit / 64] >> (bit % 64) & 1))
			continue;
		p = bytes_at(pd, at, sizeof(s));
		if (!p)
			return;
		memcpy(&s, p, sizeof(s));
		if (bit == FEATURE_EVENT_DESC)
			read_event_desc(pd, &s);
		at += sizeof(s);
	}
}

/* Where the time stands in a sample, in bytes from the header's end; 0: nowhere. */
static size_t sample_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(!!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
			    !!(type & PERF_SAMPLE_TID));
}

/* Where it stands in the id block of other records, in bytes from the record's end. */
static size_t other_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(1 + !!(type & PERF_SAMPLE_ID) + !!(type & PERF_SAMPLE_STREAM_ID) +
			    !!(type & PERF_SAMPLE_CPU) + !!(type & PERF_SAMPLE_IDENTIFIER));
}

static int compare_ids(const void *a, const void *b)
{
	const struct id_entry *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static void sort_ids(struct perfdata *pd)
{
	if (pd->nr_ids)
		qsort(pd->ids, pd->nr_ids, sizeof(*pd->ids), compare_ids);
}

int perfdata_event_of(const struct perfdata *pd, uint64_t id)
{
	const struct id_entry key = { .id = id }, *found;

	if (!pd->nr_ids || pd->nr_events == 1)
		return 0;
	found = bsearch(&key, pd->ids, pd->nr_ids, sizeof(key), compare_ids);
	return found ? (int)found->event : -1;
}

/* Which event a record belongs to: by its identifier where there is one. */
static uint32_t event_of_record(const struct perfdata *pd, const uint8_t *at, uint32_t type,
				size_t size)
{
	uint64_t id;
	int event;

	if (pd->nr_events <= 1 || !(pd->events[0].layout.sample_type & PERF_SAMPLE_IDENTIFIER) ||
	    size < sizeof(struct perf_event_header) + 8)
		return 0;
	id = load_u64(type == PERF_RECORD_SAMPLE ? at + sizeof(struct perf_event_header) : at + size - 8);
	event = perfdata_event_of(pd, id);
	return event < 0 ? 0 : (uint32_t)event;
}

/* The record's time; records without one keep their place behind the one before. */
static uint64_t time_of(const struct perfdata *pd, const struct record_layout *layout,
			const uint8_t *at, uint32_t type, size_t size)
{
	size_t offset, body = sizeof(struct perf_event_header);

	if (type == PERF_RECORD_SAMPLE) {
		offset = sample_time_offset(layout->sample_type);
		if (offset <= size && size - offset >= body + 8)
			return load_u64(at + body + offset);
	} else if (layout->id_all) {
		offset = other_time_offset(layout->sample_type);
		if (offset <= size - body)
			return load_u64(at + size - offset);
	}
	return pd->last_time_ns;
}

static void add_record(struct perfdata *pd, const uint8_t *at, const struct perf_event_header *h)
{
	uint32_t event = event_of_record(pd, at, h->type, h->size);
	struct record_ref ref = { .at = at, .event = event };

	ref.time_ns = time_of(pd, &pd->events[event].layout, at, h->type, h->size);
	pd->last_time_ns = ref.time_ns;
	if (h->type == PERF_RECORD_SAMPLE) {
		if (!pd->first_sample_ns || ref.time_ns < pd->first_sample_ns)
			pd->first_sample_ns = ref.time_ns;
		pd->last_sample_ns = MAX(pd->last_sample_ns, ref.time_ns);
	}
	if (pd->nr_refs == pd->room_refs) {
		pd->room_refs = pd->room_refs ? 2 * pd->room_refs : 1024;
		pd->refs = xrealloc_array(pd->refs, pd->room_refs, sizeof(*pd->refs));
	}
	pd->refs[pd->nr_refs++] = ref;
}

static uint64_t walk(struct perfdata *pd, const uint8_t *bytes, uint64_t size, struct err *e,
		     int *code);

/* Pipe mode: the attribute and the ids of one event. */
static int header_attr(struct perfdata *pd, const uint8_t *at, size_t size)
{
	const size_t body = sizeof(struct perf_event_header);
	uint32_t attr_size, event;

	if (size < body + PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	attr_size = load_u32(at + body + 4);
	if (attr_size < PERF_ATTR_SIZE_VER0 || attr_size > size - body)
		return -EINVAL;
	if (add_event(pd, at + body, attr_size, &event))
		return -EINVAL;
	if (add_ids(pd, at + body + attr_size, size - body - attr_size, event))
		return -EINVAL;
	sort_ids(pd);
	return 0;
}

/* One of perf's own records. *@extra: bytes behind it that belong to it. */
static int user_record(struct perfdata *pd, const uint8_t *at, const struct perf_event_header *h,
		       uint64_t *extra, struct err *e)
{
	const size_t body = sizeof(*h);
	const uint8_t *out;
	size_t out_size;
	int code = 0;

	switch (h->type) {
	case USER_HEADER_ATTR:
		return header_attr(pd, at, h->size);
	case USER_TRACING_DATA:
		*extra = h->size >= body + 4 ? (load_u32(at + body) + 7ULL) & ~7ULL : 0;
		return 0;
	case USER_AUXTRACE:
		*extra = h->size >= body + 8 ? load_u64(at + body) : 0;
		return 0;
	case USER_COMPRESSED:
		code = perfdata_zstd_add(&pd->zstd, at + body, h->size - body, &out, &out_size, e);
		if (!code)
			perfdata_zstd_keep(pd->zstd, walk(pd, out, out_size, e, &code));
		return code;
	default:
		return 0;
	}
}

/*
 * Note every record in @bytes. Returns how many bytes were whole records; a
 * record cut at the end is left (compressed data goes on in the next block).
 */
static uint64_t walk(struct perfdata *pd, const uint8_t *bytes, uint64_t size, struct err *e,
		     int *code)
{
	uint64_t at = 0;

	while (!*code && size - at >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		uint64_t extra = 0;

		memcpy(&h, bytes + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > size - at)
			break;
		if (h.type >= USER_FIRST)
			*code = user_record(pd, bytes + at, &h, &extra, e);
		else if (pd->nr_events)
			add_record(pd, bytes + at, &h);
		at += h.size;
		if (extra > size - at)
			break;
		at += extra;
	}
	return at;
}

static int compare_refs(const void *a, const void *b)
{
	const struct record_ref *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
	return (x->at > y->at) - (x->at < y->at);
}

static int not_perf_data(struct err *e)
{
	return err_set(e, -EINVAL, "not a perf.data file, or one that is cut short\n"
		       "  its header, events or records do not fit together\n"
		       "  record anew with perf record or proftop --record");
}

static int parse_file(struct perfdata *pd, struct section *data)
{
	struct file_header h;

	memcpy(&h, pd->bytes, sizeof(h));
	if (h.size < sizeof(h) || read_attrs(pd, &h))
		return -EINVAL;
	sort_ids(pd);
	*data = h.data;
	/* A recording that was killed has size 0: then the data go to the end. */
	if (!data->size && data->offset <= pd->size)
		data->size = pd->size - data->offset;
	else
		read_features(pd, &h);
	return bytes_at(pd, data->offset, data->size) ? 0 : -EINVAL;
}

/* pd->bytes are there: find events and records. */
static int parse(struct perfdata *pd, struct err *e)
{
	struct section data = { .offset = 16 };
	uint64_t header_size, done;
	int code = 0;

	if (pd->size < 16 || memcmp(pd->bytes, MAGIC, 8))
		return not_perf_data(e);
	header_size = load_u64(pd->bytes + 8);
	if (header_size == 16)
		data.size = pd->size - 16;	/* pipe mode */
	else if (pd->size < sizeof(struct file_header) || parse_file(pd, &data))
		return not_perf_data(e);
	done = walk(pd, pd->bytes + data.offset, data.size, e, &code);
	if (code)
		return e && e->text[0] ? code : not_perf_data(e);
	pd->nr_bad += data.size - done;
	if (!pd->nr_events)
		return not_perf_data(e);
	if (pd->nr_refs)
		qsort(pd->refs, pd->nr_refs, sizeof(*pd->refs), compare_refs);
	return 0;
}

/* Read a whole file or pipe; *@bytes is malloc'ed. */
static int read_all(int fd, uint8_t **bytes, size_t *size, struct err *e)
{
	size_t room = 1 << 20, used = 0;
	uint8_t *buf = xcalloc(1, room);
	ssize_t got;

	while ((got = read(fd, buf + used, room - used)) > 0) {
		used += (size_t)got;
		if (used > PERFDATA_SIZE_MAX) {
			free(buf);
			return err_set(e, -EFBIG, "the file is larger than %llu GiB",
				       PERFDATA_SIZE_MAX >> 30);
		}
		if (used == room)
			buf = xrealloc_array(buf, room *= 2, 1);
	}
	if (got < 0) {
		free(buf);
		return err_set(e, -errno, "cannot read: %s", strerror(errno));
	}
	*bytes = buf;
	*size = used;
	return 0;
}

int perfdata_open(struct perfdata **out, const char *path, struct err *e)
{
	struct perfdata *pd = xcalloc(1, sizeof(*pd));
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO), code;

	if (e)
		e->text[0] = '\0';
	if (fd < 0) {
		code = -errno;
		free(pd);
		return err_set(e, code, "cannot open %s: %s", path, strerror(-code));
	}
	code = read_all(fd, &pd->bytes, &pd->size, e);
	close(fd);
	if (!code)
		code = parse(pd, e);
	if (code) {
		perfdata_close(pd);
		return code;
	}
	*out = pd;
	return 0;
}

int perfdata_from_memory(struct perfdata **out, const void *bytes, size_t size, struct err *e)
{
	struct perfdata *pd = xcalloc(1, sizeof(*pd));
	int code;

	if (e)
		e->text[0] = '\0';
	pd->bytes = xcalloc(1, size);
	memcpy(pd->bytes, bytes, size);
	pd->size = size;
	code = parse(pd, e);
	if (code) {
		perfdata_close(pd);
		return code;
	}
	*out = pd;
	return 0;
}

void perfdata_close(struct perfdata *pd)
{
	if (!pd)
		return;
	perfdata_zstd_free(pd->zstd);
	free(pd->refs);
	free(pd->ids);
	free(pd->bytes);
	free(pd);
}

uint32_t perfdata_nr_events(const struct perfdata *pd)
{
	return pd->nr_events;
}

const struct perfdata_event *perfdata_event(const struct perfdata *pd, uint32_t index)
{
	return index < pd->nr_events ? &pd->events[index] : NULL;
}

uint64_t perfdata_nr_records(const struct perfdata *pd)
{
	return pd->nr_refs;
}

uint64_t perfdata_nr_bad(const struct perfdata *pd)
{
	return pd->nr_bad;
}

const uint8_t *perfdata_record(const struct perfdata *pd, uint64_t index, size_t *size,
			       const struct record_layout **layout)
{
	const struct record_ref *ref = &pd->refs[index];
	struct perf_event_header h;

	memcpy(&h, ref->at, sizeof(h));
	*size = h.size;
	*layout = &pd->events[ref->event].layout;
	return ref->at;
}

void perfdata_span(const struct perfdata *pd, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = pd->first_sample_ns;
	*last_ns = pd->last_sample_ns;
}
