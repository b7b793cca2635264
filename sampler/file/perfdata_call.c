// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The calls to perfdata_serve.c.
 */
#include "sampler/file/perfdata_call.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "sampler/file/perfdata_accept.h"
#include "sampler/file/perfdata_private.h"
#include "sampler/file/perfdata_wire.h"
#include "symbols/cage/cage.h"

/* Of a call, which reads some MiB of the file. */
#define TIMEOUT_NS 30000000000ULL

/* Between two looks whether the reading goes on. */
#define STEP_NS 100000000ULL

/*
 * Limit of the facts, which are sent again with each part that has new ones: bytes in all, and more
 * for each byte of the recording.
 */
#define FACTS_SIZE_MAX (1ULL << 30)
#define FACTS_FACTOR   64

/* Readers in use, by slot. Relaxed: a reader is used by one thread at a time. */
static atomic_bool in_use[PERFDATA_READERS];

/* Reserve a reader. 0 or -EMFILE. */
static int have_reader(struct perfdata *pd)
{
	for (unsigned int i = 0; pd->slot < 0 && i < PERFDATA_READERS; i++)
		if (!atomic_exchange_explicit(&in_use[i], true, memory_order_relaxed))
			pd->slot = (int)i;
	return pd->slot < 0 ? -EMFILE : 0;
}

/* Report whether the reading ends here. */
static bool is_stopped(void *ctx)
{
	struct perfdata *pd = ctx;

	pd->step_ns = time_now_ns() + STEP_NS;
	/* Relaxed: the owner waits for the thread. */
	pd->cancelled |= pd->stopped && atomic_load_explicit(pd->stopped, memory_order_relaxed);
	pd->cancelled |= pd->step && pd->step(0) == SAMPLER_READING_CANCEL;
	return pd->cancelled;
}

/* Send a request, with @size bytes behind it. 0 (the caller frees the answer) or -errno. */
static int call(struct perfdata *pd, struct perfdata_request *request, const uint8_t *bytes,
		size_t size, int fd, struct cage_answer *a)
{
	uint8_t buf[CAGE_REQUEST_MAX];
	const struct cage_wait wait = { TIMEOUT_NS, is_stopped, pd };
	const int fds[CAGE_FDS_MAX] = { fd, -1 };
	int code;

	/* The calls for a large file may be short, and many. */
	if (time_now_ns() >= pd->step_ns && is_stopped(pd))
		return -ECANCELED;
	request->slot = (uint32_t)pd->slot;
	memcpy(buf, request, sizeof(*request));
	if (size)
		memcpy(buf + sizeof(*request), bytes, size);
	code = cage_call_until(&perfdata_readers[pd->slot], buf, sizeof(*request) + size, fds,
			       pd->generation, &wait, a);
	if (!code)
		pd->generation = a->generation;
	return code;
}

/* Have the facts of @version. */
static int have_facts(struct perfdata *pd, uint32_t version)
{
	struct perfdata_request request = { .call = PERFDATA_FACTS };
	struct cage_answer a;
	int code;

	if (version == pd->version)
		return 0;
	if (version < pd->version ||
	    pd->facts_size / FACTS_FACTOR > FACTS_SIZE_MAX / FACTS_FACTOR + pd->bytes.size)
		return -EBADMSG;
	code = call(pd, &request, NULL, 0, -1, &a);
	if (!code) {
		pd->facts_size += a.size;
		code = perfdata_accept_facts(pd, a.bytes, a.size);
		cage_answer_free(&a);
	}
	if (!code)
		pd->version = version;
	return code;
}

/* Send a request for records, and take them. */
static int find(struct perfdata *pd, struct perfdata_request *request, const uint8_t *bytes,
		size_t size)
{
	struct perfdata_found found;
	struct cage_answer a;
	int code = call(pd, request, bytes, size, -1, &a);

	if (code)
		return code;
	code = perfdata_accept_found(a.bytes, a.size, &found);
	if (!code)
		code = have_facts(pd, found.version);
	if (!code)
		code = perfdata_accept_answer(pd, &a);
	cage_answer_free(&a);
	return code;
}

/* Bytes and records that were found. */
struct progress {
	uint64_t walked, inflated, nr_refs;
};

static struct progress progress_of(const struct perfdata *pd)
{
	return (struct progress){ pd->found.walked, pd->inflated, pd->nr_refs };
}

/* Test whether all of a part was found since @was: else a reader could answer nearly for ever. */
static bool is_part(const struct perfdata *pd, const struct progress *was)
{
	return pd->found.walked - was->walked >= PERFDATA_PART_SIZE ||
	       pd->inflated - was->inflated >= PERFDATA_PART_INFLATED ||
	       pd->nr_refs - was->nr_refs >= PERFDATA_PART_REFS;
}

/* Find the rest. */
static int find_more(struct perfdata *pd, bool fixed)
{
	struct perfdata_request request = { .call = PERFDATA_MORE, .fixed = fixed };
	int code = 0;

	while (!code && !pd->found.done) {
		const struct progress before = progress_of(pd);

		perfdata_bytes_ahead(&pd->bytes, pd->found.walked);
		code = find(pd, &request, NULL, 0);
		if (!code && !pd->found.done && !is_part(pd, &before))
			code = -EBADMSG;
	}
	return code;
}

int perfdata_call_all(struct perfdata *pd)
{
	struct perfdata_request request = {
		.call = PERFDATA_OPEN,
		.size = pd->bytes.size,
		.stopped = pd->bytes.stopped,
	};
	struct cage_answer a;
	int code = have_reader(pd), fd;

	if (code)
		return code;
	fd = perfdata_bytes_share(&pd->bytes);
	if (fd < 0)
		return fd;
	perfdata_bytes_ahead(&pd->bytes, 0);
	code = call(pd, &request, NULL, 0, fd, &a);
	close(fd);
	if (code)
		return code;
	cage_answer_free(&a);
	code = find_more(pd, false);
	/* The samples of each event are counted now. */
	pd->version = 0;
	return code ? code : have_facts(pd, pd->found.version);
}

int perfdata_call_feed(struct perfdata *pd, const uint8_t *bytes, size_t size, bool fixed)
{
	struct perfdata_request request = { .call = PERFDATA_FEED, .fixed = fixed };
	int code = have_reader(pd);

	do {
		size_t some = MIN(size, PERFDATA_FEED_MAX);

		if (!code)
			code = find(pd, &request, bytes, some);
		if (!code && pd->found.kind == PERFDATA_KIND_STREAM && !pd->found.stop)
			code = find_more(pd, fixed);
		bytes = size ? bytes + some : bytes;
		size -= some;
	} while (!code && size && pd->found.kind != PERFDATA_KIND_WHOLE);
	return code;
}

void perfdata_call_end(struct perfdata *pd)
{
	struct perfdata_request request = { .call = PERFDATA_CLOSE };
	struct cage_answer a;

	if (pd->slot < 0)
		return;
	pd->step = NULL;
	pd->stopped = NULL;
	pd->cancelled = false;
	/* Without a cage it is in this thread. A worker may not answer: cage_end() ends it. */
	if (!cage_is_on() && !call(pd, &request, NULL, 0, -1, &a))
		cage_answer_free(&a);
	cage_end(&perfdata_readers[pd->slot]);
	atomic_store_explicit(&in_use[pd->slot], false, memory_order_relaxed);
	pd->slot = -1;
	pd->generation = 0;
}
