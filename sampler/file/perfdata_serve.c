// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scan a recording, and send what was found since the last call.
 *
 * Runs in the worker, or in the thread of the call. A worker has one recording, for all its life.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata_scan.h"
#include "sampler/file/perfdata_wire.h"

/* The recordings that are open, by reader. */
static struct perfdata_scan *scans[PERFDATA_READERS];

static void close_scan(uint32_t slot)
{
	if (!scans[slot])
		return;
	perfdata_scan_fini(scans[slot]);
	free(scans[slot]);
	scans[slot] = NULL;
}

static struct perfdata_scan *new_scan(uint32_t slot)
{
	close_scan(slot);
	scans[slot] = xcalloc(1, sizeof(*scans[slot]));
	perfdata_scan_init(scans[slot]);
	return scans[slot];
}

static int put_found(struct cage_reply *reply, struct perfdata_scan *s)
{
	struct perfdata_answer a = { .nr_refs = s->nr_refs, .found = s->found };
	const uint8_t *inflated;
	size_t size;

	inflated = perfdata_scan_inflated(s, &size);
	a.inflated = size;
	cage_put(reply, inflated, size);
	cage_put(reply, s->refs, s->nr_refs * sizeof(*s->refs));
	cage_put(reply, &a, sizeof(a));
	perfdata_scan_clear(s);
	return 0;
}

static void put_event(struct cage_reply *reply, const struct perfdata_events *t, uint32_t i)
{
	struct perfdata_fact_event ev = {
		.attr = t->attrs[i],
		.nr_samples = t->events[i].nr_samples,
		.group = t->events[i].event.group,
	};

	memcpy(ev.name, t->events[i].event.name, sizeof(ev.name));
	cage_put(reply, &ev, sizeof(ev));
}

static int put_facts(struct cage_reply *reply, const struct perfdata_events *t)
{
	struct perfdata_facts f = {
		.nr_events = t->nr,
		.nr_ids = t->nr_ids,
		.nr_build_ids = t->build_ids.nr,
		.names_size = (uint32_t)t->build_ids.names_size,
		.kernel = t->kernel,
	};

	memcpy(f.machine, t->machine, sizeof(f.machine));
	memcpy(f.host, t->host, sizeof(f.host));
	cage_put(reply, &f, sizeof(f));
	for (uint32_t i = 0; i < t->nr; i++)
		put_event(reply, t, i);
	cage_put(reply, t->ids, t->nr_ids * sizeof(*t->ids));
	cage_put(reply, t->build_ids.ids, t->build_ids.nr * sizeof(*t->build_ids.ids));
	cage_put(reply, t->build_ids.names, t->build_ids.names_size);
	return 0;
}

/* Keep the file of the call, and read its header. */
static int open_file(struct cage_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = new_scan(r->slot);

	if (c->fds[0] < 0)
		return -EINVAL;
	s->bytes.fd = c->fds[0];
	s->bytes.size = r->size;
	/* To read ahead is up to the caller. */
	s->bytes.ahead = r->size;
	c->fds[0] = -1;
	s->stopped = r->stopped;
	return perfdata_scan_open(s);
}

static int serve_scan(struct cage_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = scans[r->slot];
	int code;

	switch (r->call) {
	case PERFDATA_OPEN:
		return open_file(c, r);
	case PERFDATA_CLOSE:
		close_scan(r->slot);
		return 0;
	case PERFDATA_FACTS:
		return s ? put_facts(&c->reply, &s->events) : -EINVAL;
	case PERFDATA_FEED:
		s = s ? s : new_scan(r->slot);
		s->fixed = r->fixed;
		code = perfdata_scan_feed(s, (const uint8_t *)c->request + sizeof(*r),
					  c->size - sizeof(*r));
		break;
	case PERFDATA_MORE:
		code = s ? perfdata_scan_more(s) : -EINVAL;
		break;
	default:
		code = -EINVAL;
	}
	return code ? code : put_found(&c->reply, s);
}

static int serve(struct cage_call *c)
{
	struct perfdata_request r;

	if (c->size < sizeof(r))
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	return r.slot < PERFDATA_READERS ? serve_scan(c, &r) : -EINVAL;
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = CAGE_RECORDING + (nr), .name = "proftop-record", .serve = serve,           \
		.memory_max = 4ULL << 30, .reply_max = 1UL << 30, .stateful = true,                \
	}

const struct cage_reader perfdata_readers[PERFDATA_READERS] = { READER(0), READER(1), READER(2),
								READER(3) };
