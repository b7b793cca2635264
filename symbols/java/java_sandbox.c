// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The readings of JVMs by workers: the memory that they need, and their results.
 *
 * Runs on: a helper. A worker belongs to the reading in its slot, by a number that is never used
 * again.
 */
#include "symbols/jit/hotspot_cage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/foreign.h"
#include "symbols/cage/cage.h"
#include "symbols/jit/hotspot_blobs.h"
#include "symbols/java/java.h"

#define TIMEOUT_NS 10000000000ULL /* between two questions, or until the result */
#define INLINE_MAX (48U << 10)	  /* bytes of pieces in a request */

/* A worker: the reading that has it, by its number, and the last one that had it. */
struct slot {
	_Atomic uint64_t
		reading;       /* 0: free. Acquire to take it, release to leave it, else relaxed */
	_Atomic uint64_t last; /* relaxed; 0: it has not been used, or it was ended */
	_Atomic uint64_t job;  /* of the last reading; relaxed */
};

static struct slot slots[HOTSPOT_READERS];

static bool take_slot(struct slot *s, uint64_t number)
{
	uint64_t none = 0;

	return atomic_compare_exchange_strong_explicit(&s->reading, &none, number,
						       memory_order_acquire, memory_order_relaxed);
}

/* Choose a free worker: the one that @j had before, else the one that had no reading for longest.
 */
static struct slot *choose_slot(const struct hotspot_job *j)
{
	struct slot *best = NULL;
	uint64_t last, best_last = 0;

	for (uint32_t i = 0; i < HOTSPOT_READERS; i++) {
		struct slot *s = &slots[i];

		if (atomic_load_explicit(&s->reading, memory_order_relaxed))
			continue;
		if (atomic_load_explicit(&s->job, memory_order_relaxed) == j->id)
			return s;
		last = atomic_load_explicit(&s->last, memory_order_relaxed);
		if (!best || last < best_last) {
			best = s;
			best_last = last;
		}
	}
	return best;
}

/*
 * Take a free worker for @j. It reads one JVM, then it is replaced: one that was taken over must
 * not see the memory of another JVM.
 */
static const struct cage_reader *take_worker(struct hotspot_job *j)
{
	static _Atomic uint64_t next = 1;
	uint64_t number = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
	const struct cage_reader *reader;
	struct slot *s;

	do {
		s = choose_slot(j);
		if (!s)
			return NULL;
	} while (!take_slot(s, number));
	atomic_store_explicit(&j->worker, number, memory_order_relaxed);
	reader = &hotspot_readers[s - slots];
	if (atomic_exchange_explicit(&s->last, number, memory_order_relaxed) &&
	    atomic_load_explicit(&s->job, memory_order_relaxed) != j->id)
		cage_end(reader);
	atomic_store_explicit(&s->job, j->id, memory_order_relaxed);
	return reader;
}

void hotspot_cage_leave(struct hotspot_job *j)
{
	uint64_t number = atomic_exchange_explicit(&j->worker, 0, memory_order_relaxed);

	for (uint32_t i = 0; i < HOTSPOT_READERS && number; i++) {
		uint64_t mine = number;

		atomic_compare_exchange_strong_explicit(&slots[i].reading, &mine, 0,
							memory_order_release, memory_order_relaxed);
	}
}

void hotspot_cage_end(const struct hotspot_job *j)
{
	for (uint32_t i = 0; i < HOTSPOT_READERS; i++) {
		struct slot *s = &slots[i];

		if (atomic_load_explicit(&s->job, memory_order_relaxed) != j->id ||
		    !take_slot(s, UINT64_MAX))
			continue;
		/* Another job may have had it since. */
		if (atomic_load_explicit(&s->job, memory_order_relaxed) == j->id) {
			cage_end(&hotspot_readers[i]);
			atomic_store_explicit(&s->job, 0, memory_order_relaxed);
			atomic_store_explicit(&s->last, 0, memory_order_relaxed);
		}
		atomic_store_explicit(&s->reading, 0, memory_order_release);
	}
}

/* Mark the known blob that @addr is in. */
static void mark(const struct hotspot *h, uint64_t addr, uint8_t *marks)
{
	const struct hotspot_blob *b = hotspot_blobs_at(h, addr);

	if (b)
		marks[b - h->blobs] = 1;
}

/* Put the known blobs that the job needs: all for a scan, else the ones at its addresses. */
static uint32_t put_blobs(struct cage_reply *w, const struct hotspot_job *j)
{
	uint8_t *marks = calloc(MAX(j->vm.nr_blobs, 1U), 1);
	struct hotspot_wire_blob blob;
	uint32_t nr = 0;

	for (uint32_t i = 0; marks && i < j->nr_pcs; i++)
		mark(&j->vm, j->pcs[i], marks);
	for (uint32_t i = 0; marks && i < j->nr_chains; i++)
		mark(&j->vm, j->chains[i].addr, marks);
	for (uint32_t i = 0; marks && i < j->vm.nr_blobs; i++) {
		if (!j->scan && !marks[i])
			continue;
		blob = hotspot_wire_blob(&j->vm.blobs[i], HOTSPOT_WIRE_NONE);
		cage_put(w, &blob, sizeof(blob));
		nr++;
	}
	w->full |= !marks;
	free(marks);
	return nr;
}

/* Put the job into a file: its descriptor or -errno. *@size: its bytes. */
static int put_job(const struct hotspot_job *j, const struct hotspot_tables *t, uint64_t *size)
{
	struct hotspot_wire_job head = { .open = j->open,
					 .scan = j->scan,
					 .bias = t->bias,
					 .nr_pcs = j->nr_pcs,
					 .nr_methods = j->nr_methods,
					 .nr_chains = j->nr_chains };
	struct cage_reply w = { .bytes = NULL };
	int fd = -ENOMEM;

	for (uint32_t i = 0; i < VMSTRUCTS_VARIABLES; i++)
		head.addrs[i] = t->vars[i].vaddr;
	hotspot_wire_put_vm(&head.vm, &j->vm);
	memcpy(head.first, j->first, sizeof(head.first));
	head.nr_first = j->nr_first;
	cage_put(&w, &head, sizeof(head));
	head.nr_blobs = put_blobs(&w, j);
	cage_put(&w, j->pcs, j->nr_pcs * sizeof(*j->pcs));
	for (uint32_t i = 0; i < j->nr_methods; i++)
		cage_put(&w, &j->methods[i].method, sizeof(uint64_t));
	for (uint32_t i = 0; i < j->nr_chains; i++)
		cage_put(&w, &j->chains[i].addr, sizeof(uint64_t));
	if (!w.full) {
		memcpy(w.bytes, &head, sizeof(head));
		fd = cage_wrap(w.bytes, w.size);
	}
	*size = w.size;
	free(w.bytes);
	return fd;
}

/* Read the pieces of a question. 0 or -errno: give up. */
static int read_pieces(struct hotspot_job *j, const struct hotspot_wire_ask *ask,
		       const uint8_t *list, uint8_t *got, uint8_t *pieces)
{
	uint64_t addrs[REMOTE_PIECES_MAX];
	bool read[REMOTE_PIECES_MAX];
	int rc;

	memcpy(addrs, list, ask->nr * sizeof(*addrs));
	rc = remote_read_each(&j->remote, addrs, ask->nr, ask->size, pieces, read);
	for (uint32_t i = 0; i < ask->nr && !rc; i++)
		got[i] = read[i];
	return rc;
}

/* A call, from the job to its result. */
struct session {
	struct hotspot_job *j;
	const struct cage_reader *reader;
	struct cage_answer a;
	uint64_t cpu_ns; /* of the worker */
	uint8_t *pieces; /* of the answers to its questions, used again */
	uint32_t pieces_room;
};

static int call(struct session *s, const void *request, size_t size, int fd)
{
	const int fds[CAGE_FDS_MAX] = { fd, -1 };
	uint32_t generation = s->a.generation;
	int rc;

	cage_answer_free(&s->a);
	rc = cage_call(s->reader, request, size, fds, generation, TIMEOUT_NS, &s->a);
	s->cpu_ns += s->a.cpu_ns;
	/* The worker may still wait for the answer to its question. */
	if (rc && generation)
		cage_refuse(s->reader, generation);
	return rc;
}

/* Answer the question of the worker. */
static int answer(struct session *s)
{
	struct hotspot_wire_ask ask;
	uint8_t *bytes;
	size_t size;
	int rc, fd = -1;

	if (s->a.size < sizeof(ask))
		return -EBADMSG;
	memcpy(&ask, s->a.bytes, sizeof(ask));
	if (!ask.nr || ask.nr > REMOTE_PIECES_MAX || !ask.size ||
	    ask.size > HOTSPOT_WIRE_SIZE / ask.nr ||
	    s->a.size != sizeof(ask) + ask.nr * sizeof(uint64_t))
		return -EBADMSG;
	size = (size_t)ask.nr * ask.size;
	if (!array_reserve(&s->pieces, &s->pieces_room, ask.nr + size))
		return -ENOMEM;
	bytes = s->pieces;
	/* Else the worker gets our memory for pieces that are not read. */
	memset(bytes, 0, ask.nr + size);
	rc = read_pieces(s->j, &ask, s->a.bytes + sizeof(ask), bytes, bytes + ask.nr);
	if (!rc && size > INLINE_MAX) {
		fd = cage_wrap(bytes + ask.nr, size);
		size = 0;
		rc = fd < 0 ? fd : 0;
	}
	if (!rc)
		rc = call(s, bytes, ask.nr + size, fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The parts of a result. */
struct result {
	struct hotspot_wire_result head;
	const uint8_t *blobs, *methods, *chains, *frames;
	const char *texts;
};

/* Find the parts. 0, -EBADMSG, or the -errno in it. */
static int split(struct result *r, const struct hotspot_job *j, const struct cage_answer *a)
{
	struct hotspot_wire_result *h = &r->head;
	const uint8_t *at = a->bytes;
	uint64_t size = sizeof(*h);

	if (a->size < sizeof(*h))
		return -EBADMSG;
	memcpy(h, a->bytes + a->size - sizeof(*h), sizeof(*h));
	if (h->code)
		return h->code < 0 && h->code >= -4095 ? h->code : -EBADMSG;
	size += (uint64_t)h->nr_blobs * sizeof(struct hotspot_wire_blob) +
		(uint64_t)j->nr_methods * sizeof(struct hotspot_wire_method) +
		(uint64_t)j->nr_chains * sizeof(struct hotspot_wire_chain) +
		(uint64_t)h->nr_frames * sizeof(struct hotspot_wire_frame) + h->nr_texts;
	if (size != a->size || h->nr_blobs > HOTSPOT_BLOBS_MAX)
		return -EBADMSG;
	r->blobs = at;
	r->methods = at += h->nr_blobs * sizeof(struct hotspot_wire_blob);
	r->chains = at += j->nr_methods * sizeof(struct hotspot_wire_method);
	r->frames = at += j->nr_chains * sizeof(struct hotspot_wire_chain);
	r->texts = (const char *)(at + h->nr_frames * sizeof(struct hotspot_wire_frame));
	return 0;
}

/* Return the text at @at, of less than @max bytes; NULL: there is none. */
static const char *text_at(const struct result *r, uint32_t at, size_t max)
{
	size_t left = at < r->head.nr_texts ? r->head.nr_texts - at : 0;

	return left && memchr(r->texts + at, '\0', MIN(left, max)) ? r->texts + at : NULL;
}

/* Check one blob of a worker, behind the code that ends at @end. */
static int take_blob(const struct result *r, uint32_t i, uint64_t end, struct hotspot_blob *out)
{
	struct hotspot_wire_blob w;
	const char *name;

	memcpy(&w, r->blobs + i * sizeof(w), sizeof(w));
	*out = hotspot_wire_unblob(&w);
	if (w.start < end || !hotspot_blob_is_valid(out))
		return -EBADMSG;
	if (w.name == HOTSPOT_WIRE_NONE)
		return 0;
	name = text_at(r, w.name, HOTSPOT_NAME_MAX);
	if (!name)
		return -EBADMSG;
	out->name = strdup(name);
	out->name_size = out->name ? (uint16_t)strlen(name) : 0;
	return out->name ? 0 : -ENOMEM;
}

static int take_blobs(struct hotspot_job *j, const struct result *r)
{
	struct hotspot_blob *blobs = calloc(MAX(r->head.nr_blobs, 1U), sizeof(*blobs));
	size_t memory = 0;
	int rc = blobs ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->head.nr_blobs && !rc; i++) {
		rc = take_blob(r, i, i ? blobs[i - 1].end : 0, &blobs[i]);
		/* Texts may overlap: their copies may not take more than the code of a JVM. */
		memory += rc ? 0 : hotspot_blob_memory(&blobs[i]);
		if (memory > HOTSPOT_MEMORY_MAX)
			rc = -EBADMSG;
	}
	if (!rc)
		return hotspot_take(&j->vm, blobs, r->head.nr_blobs, j->scan);
	if (blobs)
		hotspot_blobs_free(blobs, r->head.nr_blobs);
	return rc;
}

static int take_methods(struct hotspot_job *j, const struct result *r)
{
	for (uint32_t i = 0; i < j->nr_methods; i++) {
		struct hotspot_method_name *m = &j->methods[i];
		struct hotspot_wire_method w;
		const char *name;

		memcpy(&w, r->methods + i * sizeof(w), sizeof(w));
		m->code = w.code;
		m->code_size = w.code_size;
		m->rc = w.code_rc;
		/* As in the JVM, where it has 16 bits. */
		if (w.code_size > UINT16_MAX)
			return -EBADMSG;
		if (w.name == HOTSPOT_WIRE_NONE)
			continue;
		name = text_at(r, w.name, HOTSPOT_NAME_MAX);
		if (!name)
			return -EBADMSG;
		m->name = strdup(name);
	}
	return 0;
}

/* Take the frame @at of the result. */
static int take_frame(const struct result *r, uint32_t at, struct hotspot_frame *out)
{
	struct hotspot_wire_frame w;
	const char *name, *file;

	memcpy(&w, r->frames + at * sizeof(w), sizeof(w));
	name = text_at(r, w.name, sizeof(out->name));
	file = text_at(r, w.file, sizeof(out->file));
	if (!name || !file)
		return -EBADMSG;
	out->line = w.line;
	strcpy(out->name, name);
	strcpy(out->file, file);
	return 0;
}

static int take_chains(struct hotspot_job *j, const struct result *r)
{
	uint32_t at = 0;
	int rc = 0;

	if (hotspot_job_begin_chains(j))
		return -ENOMEM;
	for (uint32_t i = 0; i < j->nr_chains && !rc; i++) {
		struct hotspot_wire_chain w;

		memcpy(&w, r->chains + i * sizeof(w), sizeof(w));
		if (w.nr > HOTSPOT_FRAMES_MAX || w.nr > r->head.nr_frames - at)
			return -EBADMSG;
		for (uint32_t k = 0; k < w.nr && !rc; k++)
			rc = take_frame(r, at + k, &j->frames[k]);
		at += w.nr;
		if (!rc)
			hotspot_job_add_chain(j, &j->chains[i], (int)w.nr, w.exact != 0);
	}
	return rc;
}

int hotspot_cage_take(struct hotspot_job *j, const struct cage_answer *a, uint64_t cpu_ns)
{
	struct result r = { .blobs = NULL };
	int rc = split(&r, j, a);

	j->worker_ns = cpu_ns;
	/* As a ratio: the worker may report any figures. */
	if (r.head.cpu_ns)
		j->scan_share = MIN(1.0, (double)r.head.scan_ns / (double)r.head.cpu_ns);
	if (!rc)
		rc = hotspot_wire_take_vm(&j->vm, &r.head.vm);
	if (!rc && j->scan) {
		memcpy(j->first, r.head.first, sizeof(j->first));
		j->nr_first = MIN(r.head.nr_first, HOTSPOT_FIRST_MAX);
	}
	if (!rc)
		rc = take_blobs(j, &r);
	if (!rc)
		rc = take_methods(j, &r);
	return rc ? rc : take_chains(j, &r);
}

int hotspot_cage_read(struct hotspot_job *j, const struct hotspot_tables *t)
{
	struct session s = { .j = j, .reader = take_worker(j) };
	uint64_t size;
	int fd, rc;

	if (!s.reader)
		return -EAGAIN;
	fd = put_job(j, t, &size);
	rc = fd < 0 ? fd : call(&s, &size, sizeof(size), fd);
	if (fd >= 0)
		close(fd);
	while (!rc && s.a.asks) {
		rc = answer(&s);
		/* The worker waits for an answer that is not sent. */
		if (rc && s.a.generation)
			cage_refuse(s.reader, s.a.generation);
	}
	if (!rc) {
		rc = hotspot_cage_take(j, &s.a, s.cpu_ns);
		if (rc == -EBADMSG)
			cage_refuse(s.reader, s.a.generation);
	}
	if (!rc)
		j->open = true;
	free(s.pieces);
	cage_answer_free(&s.a);
	hotspot_cage_leave(j);
	return rc;
}

/* Return whether the opened process is still the one with this pid. */
static int check_alive(const struct hotspot_job *r)
{
	char *text;
	size_t size;
	int rc = foreign_read_at(r->dir_fd, "stat", 4096, &text, &size);

	if (!rc)
		free(text);
	return rc;
}

/*
 * Open the process, once: its memory stays that of the JVM when it calls execve(2). A worker that
 * was taken over must not get that of a program with more rights.
 */
static int open_process(struct hotspot_job *r)
{
	if (r->dir_fd < 0)
		r->dir_fd = foreign_open_proc(r->remote.pid);
	if (r->dir_fd < 0)
		return r->dir_fd;
	if (r->remote.fd < 0)
		r->remote.fd = remote_open(r->dir_fd);
	return MIN(r->remote.fd, 0);
}

/* Find the JVM in the process, and read it. */
static int read_process(struct hotspot_job *r)
{
	struct hotspot_tables tables = { .bias = 0 };
	int rc;

	rc = open_process(r);
	if (rc)
		return rc;
	if (!r->open)
		rc = hotspot_find_tables(&tables, &r->remote);
	if (!rc)
		rc = cage_is_on() ? hotspot_cage_read(r, &tables) : hotspot_job_read(r, &tables);
	return rc ? rc : check_alive(r);
}

void hotspot_cage_run(struct job *job)
{
	struct hotspot_job *r = (struct hotspot_job *)job;
	bool scan_alone = r->open && !r->nr_pcs && !r->nr_methods && !r->nr_chains;
	uint64_t cpu_ns = time_thread_ns();

	r->remote.nr_reads = 0;
	r->scan_ns = r->worker_ns = 0;
	r->scan_share = 0;
	r->scan |= !r->open;
	r->rc = read_process(r);
	r->cost_ns = time_thread_ns() - cpu_ns + r->worker_ns;
	/* Messages and reads for the worker are part of the cost: the scan has its share. */
	if (r->scan && r->worker_ns)
		r->scan_ns = scan_alone ? r->cost_ns
					: (uint64_t)((double)r->cost_ns * r->scan_share);
}
