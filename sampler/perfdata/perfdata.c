// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording: records in time order, access to its bytes, the calls to its reader in the sandbox,
 * answers checked before use, messages that refuse a file.
 *
 * The places of its records come from there, in the order of the file. Here they are sorted by
 * time, and each record is read when its turn has come.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"

/*
 * Merge runs that are in order: they replace perf's rounds.
 */

/* Return the first of refs[from..to) that is later than @time_ns; they are in order. */
static uint64_t perfdata_order_later(const struct perfdata_ref *refs, uint64_t from, uint64_t to,
				     uint64_t time_ns)
{
	while (from < to) {
		uint64_t mid = from + (to - from) / 2;

		if (refs[mid].time_ns > time_ns)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

/* Merge refs[from..mid) and refs[mid..to), each in order: only the overlap is moved. */
static void merge(struct perfdata_ref *refs, uint64_t from, uint64_t mid, uint64_t to,
		  struct perfdata_ref *spare)
{
	const struct perfdata_ref *left = spare, *end;

	assert(from < mid && mid < to);
	from = perfdata_order_later(refs, from, mid, refs[mid].time_ns);
	end = spare + (mid - from);
	memcpy(spare, refs + from, (mid - from) * sizeof(*refs));
	while (left < end)
		refs[from++] = mid < to && refs[mid].time_ns < left->time_ns ? refs[mid++]
									     : *left++;
}

static int compare(const void *a, const void *b)
{
	const struct perfdata_ref *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->inflated != y->inflated ? COMPARE(x->inflated, y->inflated)
					  : COMPARE(x->at, y->at);
}

/*
 * Sort the records by time, and as they were found. They are in runs, one for
 * each CPU in each of perf's rounds; neighbours are merged until one run is left. In place if there
 * is no memory.
 */
static void perfdata_order_sort(struct perfdata_ref *refs, uint64_t nr)
{
	uint64_t nr_runs = 0, *starts = calloc(nr + 1, sizeof(*starts));
	struct perfdata_ref *spare = malloc((nr + 1) * sizeof(*spare));

	assert(refs || !nr);
	for (uint64_t i = 0; i < nr && starts; i++)
		if (!i || refs[i].time_ns < refs[i - 1].time_ns)
			starts[nr_runs++] = i;
	for (; nr_runs > 1 && spare; nr_runs = (nr_runs + 1) / 2) {
		for (uint64_t i = 0; i < nr_runs; i += 2) {
			if (i + 1 < nr_runs)
				merge(refs, starts[i], starts[i + 1],
				      i + 2 < nr_runs ? starts[i + 2] : nr, spare);
			starts[i / 2] = starts[i];
		}
	}
	if (nr_runs > 1 || !starts)
		qsort(refs, nr, sizeof(*refs), compare);
	free(starts);
	free(spare);
}

/* Refuse a file with a message: perfdata_read.c finds the reason. Any thread; pure. */

static const struct kind {
	const char *magic;
	size_t size;
	const char *reason, *fix;
} kinds[] = {
	{ "PERFFILE", 8, "written by perf before Linux 3.0",
	  "'perf script -i FILE' of any version reads it" },
	{ "2ELIFREP", 8, "recorded on a machine of the other byte order",
	  "'perf report -i FILE' reads it" },
	{ "\x1f\x8b", 2, "compressed by gzip", "'gzip -dc FILE | proftop --replay -'" },
	{ "\x28\xb5\x2f\xfd", 4, "compressed by zstd", "'zstd -dc FILE | proftop --replay -'" },
	{ "\xfd"
	  "7zXZ",
	  5, "compressed by xz", "'xz -dc FILE | proftop --replay -'" },
	{ "BZh", 3, "compressed by bzip2", "'bzip2 -dc FILE | proftop --replay -'" },
};

static const struct kind *find_kind(const uint8_t *head, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (size >= kinds[i].size && !memcmp(head, kinds[i].magic, kinds[i].size))
			return &kinds[i];
	return NULL;
}

/* Return why reading ended, for a code of its reader. */
static const char *perfdata_reason(int code)
{
	switch (code) {
	case -ENOSYS:
		return "the reader of foreign files does not start; see 'proftop --check'";
	case -EMFILE:
		return "too many recordings are opened at a time";
	case -ETIME:
		return "reading it took too long";
	case -ECANCELED:
		return "interrupted";
	case -EFBIG:
		return "its records need more than 8 GiB of memory";
	case -EPIPE:
	case -ESTALE:
	case -EBADMSG:
		return "its reader failed: a damaged file, or out of memory";
	default:
		return strerror(-code);
	}
}

/*
 * Set @e by the first @size bytes of the file, and return @code: -EINVAL, not a perf.data file or
 * one with a damaged header; -E2BIG, too many events; -ENOTSUP, built without libzstd; or another
 * one of its reader. @path: as the user gave it.
 */
static int perfdata_refuse(struct err *e, int code, const char *path, const uint8_t *head,
			   size_t size)
{
	const struct kind *kind = find_kind(head, size);

	if (code == -ENOTSUP)
		return err_set(e, code,
			       "cannot replay %.300s: compressed, and this proftop was built "
			       "without libzstd\n"
			       "  build with libzstd-dev installed, or record without -z",
			       path);
	if (code == -EFBIG)
		return err_set(e, code,
			       "cannot replay %.300s: %s\n"
			       "  record in parts, or for less time",
			       path, perfdata_reason(code));
	if (code != -E2BIG && code != -EINVAL)
		return err_set(e, code, "cannot replay %.300s: %s", path, perfdata_reason(code));
	if (code == -E2BIG)
		return err_set(e, code,
			       "cannot replay %.300s: it has more than %d events\n"
			       "  record fewer events, or look at it with perf report",
			       path, PERFDATA_EVENTS_MAX);
	if (kind)
		return err_set(e, code, "cannot replay %.300s: %s\n  %s", path, kind->reason,
			       kind->fix);
	if (!size)
		return err_set(e, code,
			       "cannot replay %.300s: empty file\n"
			       "  record again with perf record or proftop --record",
			       path);
	if (size < 8 || memcmp(head, "PERFILE2", 8))
		return err_set(e, code,
			       "cannot replay %.300s: not a perf.data file\n"
			       "  perf record and proftop --record write such files",
			       path);
	return err_set(e, code,
		       "cannot replay %.300s: its header is damaged or cut short\n"
		       "  record again with perf record or proftop --record",
		       path);
}

/*
 * Check the answers of the sandbox (perfdata_read.c), and keep them.
 *
 * The reader may have been taken over by the recording: each number that look-ups or loops rely on
 * is checked here. Texts are foreign, as in the file. One thread.
 */

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

/* Read the totals of an answer. 0 or -EBADMSG. */
static int perfdata_accept_found(const uint8_t *answer, size_t size, struct perfdata_found *found)
{
	struct perfdata_answer a;

	assert(answer || !size);
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
struct perfdata_accept_span {
	uint64_t from, to;
};

/* Test whether a record is behind the one before in the same bytes. */
static bool is_valid(const struct perfdata *pd, const struct perfdata_ref *ref,
		     const struct perfdata_accept_span spans[2])
{
	const struct perfdata_accept_span *s = &spans[ref->inflated == 1];

	return ref->inflated <= 1 && ref->event < pd->events.nr && ref->size >= RECORD_MIN &&
	       ref->at >= s->from && ref->at <= s->to && ref->size <= s->to - ref->at;
}

/* Keep decompressed bytes, without the rest of their answer. */
static void add_chunk(struct perfdata *pd, struct perfdata_chunk *chunk)
{
	uint8_t *bytes = realloc(chunk->bytes, chunk->size);

	assert(pd->nr_chunks <= pd->room_chunks && chunk->at == pd->inflated);
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
	struct perfdata_accept_span spans[2] = { { pd->found.walked, walked },
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

/*
 * Add records and decompressed bytes, and take the totals. The events are there. The bytes of
 * @answer are taken over if some are kept. 0, -EBADMSG, or -EFBIG: too many are in memory.
 */
static int perfdata_accept_answer(struct perfdata *pd, struct sandbox_answer *answer)
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

/* Replace the events and facts. 0 or -EBADMSG. */
static int perfdata_accept_facts(struct perfdata *pd, const uint8_t *facts, size_t size)
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

/* Bytes of a FEED. */
#define PERFDATA_FEED_MAX (SANDBOX_REQUEST_MAX - sizeof(struct perfdata_request))

/*
 * Call the reader of a recording, in the sandbox; check and keep its findings. Private to
 * perfdata.c.
 *
 * One thread; it may wait.
 *
 * The calls to the sandbox (perfdata_read.c).
 */

/* Of a call, which reads some MiB of the file. */
#define TIMEOUT_NS 30000000000ULL

/* Between two looks whether the reading goes on. */
#define STEP_NS 100000000ULL

/*
 * Limit of the facts, which are sent again with each part that has new ones: bytes in all, and more
 * for each byte of the recording.
 */
#define FACTS_SIZE_MAX (1ULL << 30)

#define FACTS_FACTOR 64

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
	pd->cancelled |= pd->step && pd->step(0) == FILE_READING_CANCEL;
	return pd->cancelled;
}

/* Send a request, with @size bytes behind it. 0 (the caller frees the answer) or -errno. */
static int call(struct perfdata *pd, struct perfdata_request *request, const uint8_t *bytes,
		size_t size, int fd, struct sandbox_answer *a)
{
	uint8_t buf[SANDBOX_REQUEST_MAX];
	const struct sandbox_wait wait = { TIMEOUT_NS, is_stopped, pd };
	const int fds[SANDBOX_FDS_MAX] = { fd, -1 };
	int code;

	/* The calls for a large file may be short, and many. */
	if (time_now_ns() >= pd->step_ns && is_stopped(pd))
		return -ECANCELED;
	request->slot = (uint32_t)pd->slot;
	memcpy(buf, request, sizeof(*request));
	if (size)
		memcpy(buf + sizeof(*request), bytes, size);
	code = sandbox_call_until(&perfdata_readers[pd->slot], buf, sizeof(*request) + size, fds,
				  pd->generation, &wait, a);
	if (!code)
		pd->generation = a->generation;
	return code;
}

/* Have the facts of @version. */
static int have_facts(struct perfdata *pd, uint32_t version)
{
	struct perfdata_request request = { .call = PERFDATA_FACTS };
	struct sandbox_answer a;
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
		sandbox_answer_free(&a);
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
	struct sandbox_answer a;
	int code = call(pd, request, bytes, size, -1, &a);

	if (code)
		return code;
	code = perfdata_accept_found(a.bytes, a.size, &found);
	if (!code)
		code = have_facts(pd, found.version);
	if (!code)
		code = perfdata_accept_answer(pd, &a);
	sandbox_answer_free(&a);
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

/* Find everything in pd->bytes, a file or what was read from a pipe. 0 or -errno. */
static int perfdata_call_all(struct perfdata *pd)
{
	struct perfdata_request request = {
		.call = PERFDATA_OPEN,
		.size = pd->bytes.size,
		.stopped = pd->bytes.stopped,
	};
	struct sandbox_answer a;
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
	sandbox_answer_free(&a);
	code = find_more(pd, false);
	/* The samples of each event are counted now. */
	pd->version = 0;
	return code ? code : have_facts(pd, pd->found.version);
}

/*
 * Find the records in @size more bytes of a stream; 0: it has ended. @fixed: its events are in use.
 * 0 or -errno.
 */
static int perfdata_call_feed(struct perfdata *pd, const uint8_t *bytes, size_t size, bool fixed)
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

/* End the reader. */
static void perfdata_call_end(struct perfdata *pd)
{
	struct perfdata_request request = { .call = PERFDATA_CLOSE };
	struct sandbox_answer a;

	if (pd->slot < 0)
		return;
	pd->step = NULL;
	pd->stopped = NULL;
	pd->cancelled = false;
	/* Without a sandbox it is in this thread. A worker may not answer: sandbox_end() ends it.
	 */
	if (!sandbox_is_on() && !call(pd, &request, NULL, 0, -1, &a))
		sandbox_answer_free(&a);
	sandbox_end(&perfdata_readers[pd->slot]);
	atomic_store_explicit(&in_use[pd->slot], false, memory_order_relaxed);
	pd->slot = -1;
	pd->generation = 0;
}

static bool same_file(const struct object_identity *a, const struct object_identity *b)
{
	if (a->build_id_size || b->build_id_size)
		return a->build_id_size == b->build_id_size &&
		       !memcmp(a->build_id, b->build_id, a->build_id_size);
	return a->ino && a->ino == b->ino && a->maj == b->maj && a->min == b->min;
}

/*
 * The file of @m is on both sides of executable memory, at the addresses of one mapping: the
 * program moved its text there, before perf listed the mappings. @m has that part then.
 */
static void add_text(struct perfdata_text *t, struct record_mmap *m)
{
	const struct record_mmap seen = *m;
	const bool exec = m->prot & PROT_EXEC, next = t->pid == m->pid && t->end == m->start;
	const uint64_t size = m->start - t->memory;

	if (exec && perfdata_is_memory(m->filename, m->filename_size)) {
		t->memory = t->memory && next ? t->memory : m->start;
		t->pid = next ? m->pid : 0;
		t->end = m->start + m->size;
		return;
	}
	if (next && t->memory && t->base == m->start - m->pgoff &&
	    same_file(&t->identity, &m->identity)) {
		m->start -= size;
		m->pgoff -= size;
		m->size = exec ? m->size + size : size;
		m->prot |= PROT_EXEC;
	}
	*t = (struct perfdata_text){ .pid = seen.pid,
				     .end = seen.start + seen.size,
				     .base = seen.start - seen.pgoff,
				     .identity = seen.identity };
}

void perfdata_identify(struct perfdata *pd, struct record_mmap *m)
{
	size_t size = strnlen(m->filename, m->filename_size);

	if (!m->identity.build_id_size)
		perfdata_build_ids_find(&pd->events.build_ids, m->filename, size, &m->identity);
	add_text(&pd->text, m);
}

int perfdata_event_of(const struct perfdata *pd, uint64_t id)
{
	return perfdata_events_of(&pd->events, id);
}

/* Find events and records; pd->bytes are there. */
static int parse(struct perfdata *pd, const char *path, struct err *e)
{
	int code = perfdata_call_all(pd);

	perfdata_call_end(pd);
	code = !code && !pd->events.nr ? -EINVAL : code;
	if (code) {
		/* A file system that does not respond may be why it was given up. */
		uint64_t size = code == -ECANCELED ? 0 : MIN(pd->bytes.size, 8U);
		const uint8_t *head = perfdata_bytes_at(&pd->bytes, 0, size);

		return perfdata_refuse(e, code, path, head, head ? size : 0);
	}
	perfdata_order_sort(pd->refs, pd->nr_refs);
	return 0;
}

static struct perfdata *new_perfdata(void)
{
	struct perfdata *pd = xcalloc(1, sizeof(*pd));

	pd->bytes = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	pd->slot = -1;
	pd->first_at = UINT64_MAX;
	return pd;
}

/* Finish @pd; @code: of opening its bytes. */
static int finish(struct perfdata **out, struct perfdata *pd, const char *path, int code,
		  struct err *e)
{
	if (!code)
		code = parse(pd, path, e);
	if (code) {
		perfdata_close(pd);
		return code;
	}
	pd->step = NULL;
	*out = pd;
	return 0;
}

/* Read a pipe that is no stream: its first bytes were read already. */
static int finish_whole(struct perfdata **out, struct perfdata *pd, const char *path,
			file_reading_fn step, int code, struct err *e)
{
	struct perfdata *whole = new_perfdata();

	whole->bytes = pd->bytes;
	whole->step = step;
	pd->bytes = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	perfdata_close(pd);
	if (code)
		err_set(e, code, "cannot read %.300s: interrupted", path);
	else
		code = perfdata_bytes_finish(&whole->bytes, path, step, e);
	return finish(out, whole, path, code, e);
}

int perfdata_open_step(struct perfdata **out, const char *path, file_reading_fn step, struct err *e)
{
	/* Else a FIFO without a writer hangs here. */
	int flags = O_RDONLY | O_CLOEXEC | (step ? O_NONBLOCK : 0);
	int fd = strcmp(path, "-") ? open(path, flags) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	struct perfdata *pd;

	if (e)
		e->text[0] = '\0';
	if (fd < 0)
		return err_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
	pd = new_perfdata();
	pd->step = step;
	return finish(out, pd, path, perfdata_bytes_open(&pd->bytes, fd, path, step, e), e);
}

/* Note why reading a pipe ends, unless that is known. */
static void stop_reading(struct perfdata *pd, int code)
{
	if (!pd->found.stop)
		snprintf(pd->found.note, sizeof(pd->found.note), "reading stopped: %s",
			 perfdata_reason(code));
	pd->found.stop = true;
}

/* Note the first place in the bytes of a pipe, from ref @from on: bytes before it may be freed. */
static void note_first(struct perfdata *pd, uint64_t from)
{
	for (uint64_t i = from; i < pd->nr_refs; i++)
		if (!pd->refs[i].inflated)
			pd->first_at = MIN(pd->first_at, pd->refs[i].at);
}

/* Read the available bytes of a pipe, and find their records. False: this was the end. */
static bool read_more(struct perfdata *pd)
{
	/* All bytes, while another way of reading may be chosen. */
	uint64_t keep = pd->streaming ? MIN(pd->found.walked, pd->first_at) : 0;
	const uint64_t nr_before = pd->nr_refs;
	int64_t got;
	int code;

	got = perfdata_bytes_more(&pd->bytes, keep);
	code = got < 0 ? (int)got : 0;
	if (got > 0)
		code = perfdata_call_feed(pd,
					  perfdata_bytes_at(&pd->bytes,
							    pd->bytes.size - (uint64_t)got,
							    (uint64_t)got),
					  (size_t)got, pd->streaming);
	note_first(pd, nr_before);
	if (code)
		stop_reading(pd, code);
	return got > 0 && !pd->found.stop;
}

/* Read the first records of a pipe. 1: so far; 0: it is to be read as a whole; -ECANCELED. */
static int begin_stream(struct perfdata *pd, file_reading_fn step)
{
	while (!pd->found.begun || !pd->events.nr) {
		int code = perfdata_bytes_wait(&pd->bytes, step);

		if (code <= 0)
			return code;
		if (!read_more(pd) || pd->found.kind == PERFDATA_KIND_WHOLE)
			return pd->cancelled ? -ECANCELED : 0;
	}
	return 1;
}

int perfdata_open_stream(struct perfdata **out, const char *path, file_reading_fn step,
			 struct err *e)
{
	int fd = strcmp(path, "-") ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), code;
	struct perfdata *pd;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISFIFO(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return perfdata_open_step(out, path, step, e);
	}
	if (e)
		e->text[0] = '\0';
	pd = new_perfdata();
	pd->step = step;
	perfdata_bytes_begin(&pd->bytes, fd);
	code = begin_stream(pd, step);
	if (code == 1) {
		pd->step = NULL;
		pd->streaming = true;
		*out = pd;
		return 0;
	}
	return finish_whole(out, pd, path, step, code, e);
}

void perfdata_close(struct perfdata *pd)
{
	if (!pd)
		return;
	assert(pd->nr_ready <= pd->nr_refs || !pd->streaming);
	perfdata_call_end(pd);
	perfdata_events_fini(&pd->events);
	perfdata_bytes_close(&pd->bytes);
	for (uint32_t i = 0; i < pd->nr_chunks; i++)
		free(pd->chunks[i].bytes);
	free(pd->chunks);
	free(pd->refs);
	free(pd);
}

struct perfdata_info perfdata_info(const struct perfdata *pd)
{
	return (struct perfdata_info){
		.machine = pd->events.machine,
		.host = pd->events.host,
		.kernel = &pd->events.kernel,
		.found = &pd->found,
		.date_ns = pd->bytes.date_ns,
		.nr_records = pd->streaming ? pd->nr_ready : pd->nr_refs,
		.nr_events = pd->events.nr,
		.nr_ids = pd->events.nr_ids,
		.stream_fd = pd->streaming ? pd->bytes.pipe : -1,
	};
}

const struct perfdata_event *perfdata_event(const struct perfdata *pd, uint32_t index)
{
	assert(index < pd->events.nr);
	return index < pd->events.nr ? &pd->events.events[index] : NULL;
}

void perfdata_stop_by(struct perfdata *pd, const atomic_bool *stopped)
{
	pd->stopped = stopped;
}

bool perfdata_more(struct perfdata *pd, bool idle)
{
	bool more = idle || read_more(pd);

	assert(pd->streaming);
	if (!more) {
		int code = pd->found.stop ? 0 : perfdata_call_feed(pd, NULL, 0, true);

		if (code)
			stop_reading(pd, code);
		perfdata_call_end(pd);
		close(pd->bytes.pipe);
		pd->bytes.pipe = -1;
	}
	pd->nr_ready = 0;
	/* Before the end of the next round nothing is ready. */
	if (!idle && more && pd->found.flush_ns == pd->sorted_ns)
		return true;
	pd->sorted_ns = pd->found.flush_ns;
	perfdata_order_sort(pd->refs, pd->nr_refs);
	pd->nr_ready = idle || !more
			       ? pd->nr_refs
			       : perfdata_order_later(pd->refs, 0, pd->nr_refs, pd->found.flush_ns);
	return more;
}

/* Free decompressed bytes that no record is in any more. */
static void drop_chunks(struct perfdata *pd)
{
	uint64_t keep = UINT64_MAX;
	uint32_t nr = 0;

	if (!pd->nr_chunks)
		return;
	for (uint64_t i = 0; i < pd->nr_refs; i++)
		if (pd->refs[i].inflated)
			keep = MIN(keep, pd->refs[i].at);
	for (; nr < pd->nr_chunks && pd->chunks[nr].at + pd->chunks[nr].size <= keep; nr++) {
		pd->kept -= pd->chunks[nr].size;
		free(pd->chunks[nr].bytes);
	}
	pd->nr_chunks -= nr;
	memmove(pd->chunks, pd->chunks + nr, pd->nr_chunks * sizeof(*pd->chunks));
}

void perfdata_drop(struct perfdata *pd)
{
	uint64_t nr = pd->nr_ready;

	assert(nr <= pd->nr_refs);
	if (!nr)
		return;
	memmove(pd->refs, pd->refs + nr, (pd->nr_refs - nr) * sizeof(*pd->refs));
	pd->nr_refs -= nr;
	pd->nr_ready = 0;
	pd->first_at = UINT64_MAX;
	note_first(pd, 0);
	drop_chunks(pd);
}

/* Return the bytes of a record that was decompressed: of the last chunk that begins before it. */
static const uint8_t *inflated_at(const struct perfdata *pd, const struct perfdata_ref *ref)
{
	uint32_t next = search_split(pd->nr_chunks, i, pd->chunks[i].at <= ref->at);
	const struct perfdata_chunk *c = next ? &pd->chunks[next - 1] : NULL;

	if (!c || ref->at - c->at > c->size || ref->size > c->size - (ref->at - c->at))
		return NULL;
	return c->bytes + (ref->at - c->at);
}

const uint8_t *perfdata_record(struct perfdata *pd, uint64_t index, size_t *size,
			       const struct record_layout **layout)
{
	const struct perfdata_ref *ref = &pd->refs[index];

	assert(index < pd->nr_refs && ref->event < pd->events.nr);
	*size = ref->size;
	*layout = &pd->events.events[ref->event].layout;
	if (ref->inflated)
		return inflated_at(pd, ref);
	return perfdata_bytes_at(&pd->bytes, ref->at, ref->size);
}

/* A part of a record is read only if it has fewer bytes by this number. */
#define PART_SAVED 1024u

/* Records that follow so soon are read with the end of the one before. */
#define BEHIND_MAX 4096u

/*
 * Return the bytes to read behind @ref, which ends at @end: up to @begin of each record that is
 * next both in time and in the file. Records of other CPUs are elsewhere.
 */
static uint64_t behind(const struct perfdata *pd, const struct perfdata_ref *ref, uint64_t end,
		       size_t begin)
{
	const struct perfdata_ref *last = pd->refs + pd->nr_refs;
	uint64_t to = end;

	while (++ref < last && !ref->inflated && ref->at >= to && ref->at - end <= BEHIND_MAX)
		to = ref->at + MIN(begin, ref->size);
	return to - end;
}

/*
 * Make a record of the first @begin bytes of one and of those after its stack copy, which has its
 * size at @at.
 */
static const uint8_t *shorten(struct perfdata *pd, const struct perfdata_ref *ref,
			      const uint8_t *bytes, size_t begin, size_t at, size_t *size)
{
	uint64_t stack_size, part = begin - at - sizeof(part), end, left, more;
	struct perf_event_header header;

	memcpy(&stack_size, bytes + at, sizeof(stack_size));
	if (stack_size > ref->size - begin + part || stack_size <= part || !part)
		return NULL;
	end = at + sizeof(stack_size) + stack_size;
	left = ref->size - end;
	*size = begin + left;
	memcpy(pd->part, bytes, begin);
	memcpy(&header, pd->part, sizeof(header));
	header.size = (uint16_t)*size;
	memcpy(pd->part, &header, sizeof(header));
	memcpy(pd->part + at, &part, sizeof(part));
	end += ref->at;
	more = behind(pd, ref, end + left, begin);
	bytes = perfdata_bytes_at(&pd->bytes, end, MIN(left + more, pd->bytes.size - end));
	if (!bytes)
		return NULL;
	memcpy(pd->part + begin, bytes, left);
	return pd->part;
}

const uint8_t *perfdata_record_part(struct perfdata *pd, uint64_t index, size_t begin, size_t *size,
				    const struct record_layout **layout, bool *is_part)
{
	const struct perfdata_ref *ref = &pd->refs[index];
	const uint8_t *bytes = NULL;
	size_t at;

	assert(index < pd->nr_refs && ref->event < pd->events.nr);
	*layout = &pd->events.events[ref->event].layout;
	begin &= ~(sizeof(uint64_t) - 1);
	if (!ref->inflated && pd->bytes.fd >= 0 && begin + PART_SAVED < ref->size)
		bytes = perfdata_bytes_at(&pd->bytes, ref->at, begin);
	at = bytes ? record_stack_at(*layout, bytes, begin) : 0;
	bytes = at ? shorten(pd, ref, bytes, begin, at, size) : NULL;
	*is_part = bytes != NULL;
	return bytes ? bytes : perfdata_record(pd, index, size, layout);
}
