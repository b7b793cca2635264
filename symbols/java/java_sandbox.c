// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A JVM in the sandbox: its memory for the worker, the worker's side, the answer and the messages.
 *
 * The first request is a size (u64) and a file: struct jvm_read_wire_job, blobs, and addresses
 * (u64) of code, methods and chains. A question: struct jvm_read_wire_ask and addresses (u64). Its
 * answer, the next request: a byte for each piece (1: it was read), and all pieces, there or in a
 * file. The result: blobs, methods, chains, frames, and texts, each with a NUL, all only if there
 * is no error; then struct jvm_read_wire_result.
 */
#include "symbols/java/internal.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"

#define JVM_READ_WIRE_NONE UINT32_MAX /* in the place of a text */
#define JVM_READ_WIRE_JOB_MAX                                                                      \
	(sizeof(struct jvm_read_wire_job) +                                                        \
	 JVM_READ_BLOBS_MAX * sizeof(struct jvm_read_wire_blob) + 24ULL * JVM_READ_WANTS_MAX)

struct jvm_read_wire_job {
	uint64_t addrs[VMSTRUCTS_VARIABLES], bias; /* where its tables are, unless @open */
	struct jvm_read_wire_vm vm;
	uint32_t open, scan;
	uint32_t nr_blobs, nr_pcs, nr_methods, nr_chains;
	uint64_t first[JVM_READ_FIRST_MAX];
	uint32_t nr_first, pad;
};

struct jvm_read_wire_blob {
	uint64_t start, end, blob, method, deopt, exits;
	uint32_t compile_id, frame_words, complete;
	uint32_t name; /* offset in the texts; JVM_READ_WIRE_NONE: none */
	uint16_t name_size;
	uint8_t kind, named, retired, inlines, blind;
	uint8_t pad[1];
};

struct jvm_read_wire_method {
	uint64_t code;
	uint32_t code_size, name;
	int32_t code_rc;
	uint32_t pad;
};

struct jvm_read_wire_chain {
	uint32_t nr, exact; /* frames */
};

struct jvm_read_wire_frame {
	uint32_t line, name, file;
};

static inline void jvm_read_wire_put_vm(struct jvm_read_wire_vm *out, const struct jvm_read *h)
{
	*out = (struct jvm_read_wire_vm){ .vm = h->vm,
					  .call_return = h->call_return,
					  .nr_heaps = h->nr_heaps,
					  .polls = h->polls,
					  .untried = h->untried };
	memcpy(out->heaps, h->heaps, sizeof(out->heaps));
}

static inline struct jvm_read_wire_blob jvm_read_wire_blob(const struct jvm_read_blob *b,
							   uint32_t name)
{
	return (struct jvm_read_wire_blob){
		.start = b->start,
		.end = b->end,
		.blob = b->blob,
		.method = b->method,
		.deopt = b->deopt,
		.exits = b->exits,
		.compile_id = b->compile_id,
		.frame_words = b->frame_words,
		.complete = b->complete,
		.name = name,
		.name_size = b->name_size,
		.kind = (uint8_t)b->kind,
		.named = b->name != NULL,
		.retired = b->retired,
		.inlines = b->inlines,
		.blind = b->blind,
	};
}

/* Return the blob without its name. */
static inline struct jvm_read_blob jvm_read_wire_unblob(const struct jvm_read_wire_blob *w)
{
	return (struct jvm_read_blob){
		.start = w->start,
		.end = w->end,
		.blob = w->blob,
		.method = w->method,
		.deopt = w->deopt,
		.exits = w->exits,
		.compile_id = w->compile_id,
		.frame_words = w->frame_words,
		.complete = w->complete,
		.kind = w->kind,
		.retired = w->retired != 0,
		.inlines = w->inlines != 0,
		.blind = w->blind != 0,
	};
}

/* Set the state of @h from a message. -EBADMSG: too many heaps. */
static inline int jvm_read_wire_take_vm(struct jvm_read *h, const struct jvm_read_wire_vm *in)
{
	if (in->nr_heaps > JVM_READ_HEAPS_MAX)
		return -EBADMSG;
	h->vm = in->vm;
	memcpy(h->heaps, in->heaps, sizeof(h->heaps));
	h->call_return = in->call_return;
	h->nr_heaps = in->nr_heaps;
	h->polls = in->polls != 0;
	h->untried = in->untried != 0;
	return 0;
}

/*
 * The readings of JVMs by workers: the memory that they need, and their results.
 *
 * Runs on: a helper. A worker belongs to the reading in its slot, by a number that is never used
 * again.
 */

#define TIMEOUT_NS 10000000000ULL /* between two questions, or until the result */
#define INLINE_MAX (48U << 10)	  /* bytes of pieces in a request */

/* A worker: the reading that has it, by its number, and the last one that had it. */
struct jvm_read_sandbox_slot {
	_Atomic uint64_t
		reading;       /* 0: free. Acquire to take it, release to leave it, else relaxed */
	_Atomic uint64_t last; /* relaxed; 0: it has not been used, or it was ended */
	_Atomic uint64_t job;  /* of the last reading; relaxed */
};

static struct jvm_read_sandbox_slot slots[JVM_READ_READERS];

static bool take_slot(struct jvm_read_sandbox_slot *s, uint64_t number)
{
	uint64_t none = 0;

	return atomic_compare_exchange_strong_explicit(&s->reading, &none, number,
						       memory_order_acquire, memory_order_relaxed);
}

/* Choose a free worker: the one that @j had before, else the one that had no reading for longest.
 */
static struct jvm_read_sandbox_slot *choose_slot(const struct jvm_read_job *j)
{
	struct jvm_read_sandbox_slot *best = NULL;
	uint64_t last, best_last = 0;

	for (uint32_t i = 0; i < JVM_READ_READERS; i++) {
		struct jvm_read_sandbox_slot *s = &slots[i];

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
static const struct sandbox_reader *take_worker(struct jvm_read_job *j)
{
	static _Atomic uint64_t next = 1;
	uint64_t number = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
	const struct sandbox_reader *reader;
	struct jvm_read_sandbox_slot *s;

	do {
		s = choose_slot(j);
		if (!s)
			return NULL;
	} while (!take_slot(s, number));
	atomic_store_explicit(&j->worker, number, memory_order_relaxed);
	reader = &jvm_read_readers[s - slots];
	if (atomic_exchange_explicit(&s->last, number, memory_order_relaxed) &&
	    atomic_load_explicit(&s->job, memory_order_relaxed) != j->id)
		sandbox_end(reader);
	atomic_store_explicit(&s->job, j->id, memory_order_relaxed);
	return reader;
}

void jvm_read_sandbox_leave(struct jvm_read_job *j)
{
	uint64_t number = atomic_exchange_explicit(&j->worker, 0, memory_order_relaxed);

	for (uint32_t i = 0; i < JVM_READ_READERS && number; i++) {
		uint64_t mine = number;

		atomic_compare_exchange_strong_explicit(&slots[i].reading, &mine, 0,
							memory_order_release, memory_order_relaxed);
	}
}

void jvm_read_sandbox_end(const struct jvm_read_job *j)
{
	for (uint32_t i = 0; i < JVM_READ_READERS; i++) {
		struct jvm_read_sandbox_slot *s = &slots[i];

		if (atomic_load_explicit(&s->job, memory_order_relaxed) != j->id ||
		    !take_slot(s, UINT64_MAX))
			continue;
		/* Another job may have had it since. */
		if (atomic_load_explicit(&s->job, memory_order_relaxed) == j->id) {
			sandbox_end(&jvm_read_readers[i]);
			atomic_store_explicit(&s->job, 0, memory_order_relaxed);
			atomic_store_explicit(&s->last, 0, memory_order_relaxed);
		}
		atomic_store_explicit(&s->reading, 0, memory_order_release);
	}
}

/* Mark the known blob that @addr is in. */
static void mark(const struct jvm_read *h, uint64_t addr, uint8_t *marks)
{
	const struct jvm_read_blob *b = jvm_read_blobs_at(h, addr);

	if (b)
		marks[b - h->blobs] = 1;
}

/* Put the known blobs that the job needs: all for a scan, else the ones at its addresses. */
static uint32_t put_blobs(struct sandbox_reply *w, const struct jvm_read_job *j)
{
	uint8_t *marks = calloc(MAX(j->vm.nr_blobs, 1U), 1);
	struct jvm_read_wire_blob blob;
	uint32_t nr = 0;

	for (uint32_t i = 0; marks && i < j->nr_pcs; i++)
		mark(&j->vm, j->pcs[i], marks);
	for (uint32_t i = 0; marks && i < j->nr_chains; i++)
		mark(&j->vm, j->chains[i].addr, marks);
	for (uint32_t i = 0; marks && i < j->vm.nr_blobs; i++) {
		if (!j->scan && !marks[i])
			continue;
		blob = jvm_read_wire_blob(&j->vm.blobs[i], JVM_READ_WIRE_NONE);
		sandbox_put(w, &blob, sizeof(blob));
		nr++;
	}
	w->full |= !marks;
	free(marks);
	return nr;
}

/* Put the job into a file: its descriptor or -errno. *@size: its bytes. */
static int put_job(const struct jvm_read_job *j, const struct jvm_read_tables *t, uint64_t *size)
{
	struct jvm_read_wire_job head = { .open = j->open,
					  .scan = j->scan,
					  .bias = t->bias,
					  .nr_pcs = j->nr_pcs,
					  .nr_methods = j->nr_methods,
					  .nr_chains = j->nr_chains };
	struct sandbox_reply w = { .bytes = NULL };
	int fd = -ENOMEM;

	for (uint32_t i = 0; i < VMSTRUCTS_VARIABLES; i++)
		head.addrs[i] = t->vars[i].vaddr;
	jvm_read_wire_put_vm(&head.vm, &j->vm);
	memcpy(head.first, j->first, sizeof(head.first));
	head.nr_first = j->nr_first;
	sandbox_put(&w, &head, sizeof(head));
	head.nr_blobs = put_blobs(&w, j);
	sandbox_put(&w, j->pcs, j->nr_pcs * sizeof(*j->pcs));
	for (uint32_t i = 0; i < j->nr_methods; i++)
		sandbox_put(&w, &j->methods[i].method, sizeof(uint64_t));
	for (uint32_t i = 0; i < j->nr_chains; i++)
		sandbox_put(&w, &j->chains[i].addr, sizeof(uint64_t));
	if (!w.full) {
		memcpy(w.bytes, &head, sizeof(head));
		fd = sandbox_wrap(w.bytes, w.size);
	}
	*size = w.size;
	free(w.bytes);
	return fd;
}

/* Read the pieces of a question. 0 or -errno: give up. */
static int read_pieces(struct jvm_read_job *j, const struct jvm_read_wire_ask *ask,
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
	struct jvm_read_job *j;
	const struct sandbox_reader *reader;
	struct sandbox_answer a;
	uint64_t cpu_ns; /* of the worker */
	uint8_t *pieces; /* of the answers to its questions, used again */
	uint32_t pieces_room;
};

static int call(struct session *s, const void *request, size_t size, int fd)
{
	const int fds[SANDBOX_FDS_MAX] = { fd, -1 };
	uint32_t generation = s->a.generation;
	int rc;

	sandbox_answer_free(&s->a);
	rc = sandbox_call(s->reader, request, size, fds, generation, TIMEOUT_NS, &s->a);
	s->cpu_ns += s->a.cpu_ns;
	/* The worker may still wait for the answer to its question. */
	if (rc && generation)
		sandbox_refuse(s->reader, generation);
	return rc;
}

/* Answer the question of the worker. */
static int answer(struct session *s)
{
	struct jvm_read_wire_ask ask;
	uint8_t *bytes;
	size_t size;
	int rc, fd = -1;

	if (s->a.size < sizeof(ask))
		return -EBADMSG;
	memcpy(&ask, s->a.bytes, sizeof(ask));
	if (!ask.nr || ask.nr > REMOTE_PIECES_MAX || !ask.size ||
	    ask.size > JVM_READ_WIRE_SIZE / ask.nr ||
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
		fd = sandbox_wrap(bytes + ask.nr, size);
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
	struct jvm_read_wire_result head;
	const uint8_t *blobs, *methods, *chains, *frames;
	const char *texts;
};

/* Find the parts. 0, -EBADMSG, or the -errno in it. */
static int split(struct result *r, const struct jvm_read_job *j, const struct sandbox_answer *a)
{
	struct jvm_read_wire_result *h = &r->head;
	const uint8_t *at = a->bytes;
	uint64_t size = sizeof(*h);

	if (a->size < sizeof(*h))
		return -EBADMSG;
	memcpy(h, a->bytes + a->size - sizeof(*h), sizeof(*h));
	if (h->code)
		return h->code < 0 && h->code >= -4095 ? h->code : -EBADMSG;
	size += (uint64_t)h->nr_blobs * sizeof(struct jvm_read_wire_blob) +
		(uint64_t)j->nr_methods * sizeof(struct jvm_read_wire_method) +
		(uint64_t)j->nr_chains * sizeof(struct jvm_read_wire_chain) +
		(uint64_t)h->nr_frames * sizeof(struct jvm_read_wire_frame) + h->nr_texts;
	if (size != a->size || h->nr_blobs > JVM_READ_BLOBS_MAX)
		return -EBADMSG;
	r->blobs = at;
	r->methods = at += h->nr_blobs * sizeof(struct jvm_read_wire_blob);
	r->chains = at += j->nr_methods * sizeof(struct jvm_read_wire_method);
	r->frames = at += j->nr_chains * sizeof(struct jvm_read_wire_chain);
	r->texts = (const char *)(at + h->nr_frames * sizeof(struct jvm_read_wire_frame));
	return 0;
}

/* Return the text at @at, of less than @max bytes; NULL: there is none. */
static const char *text_at(const struct result *r, uint32_t at, size_t max)
{
	size_t left = at < r->head.nr_texts ? r->head.nr_texts - at : 0;

	return left && memchr(r->texts + at, '\0', MIN(left, max)) ? r->texts + at : NULL;
}

/* Check one blob of a worker, behind the code that ends at @end. */
static int take_blob(const struct result *r, uint32_t i, uint64_t end, struct jvm_read_blob *out)
{
	struct jvm_read_wire_blob w;
	const char *name;

	memcpy(&w, r->blobs + i * sizeof(w), sizeof(w));
	*out = jvm_read_wire_unblob(&w);
	if (w.start < end || !jvm_read_blob_is_valid(out))
		return -EBADMSG;
	if (w.name == JVM_READ_WIRE_NONE)
		return 0;
	name = text_at(r, w.name, JVM_READ_NAME_MAX);
	if (!name)
		return -EBADMSG;
	out->name = strdup(name);
	out->name_size = out->name ? (uint16_t)strlen(name) : 0;
	return out->name ? 0 : -ENOMEM;
}

static int take_blobs(struct jvm_read_job *j, const struct result *r)
{
	struct jvm_read_blob *blobs = calloc(MAX(r->head.nr_blobs, 1U), sizeof(*blobs));
	size_t memory = 0;
	int rc = blobs ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->head.nr_blobs && !rc; i++) {
		rc = take_blob(r, i, i ? blobs[i - 1].end : 0, &blobs[i]);
		/* Texts may overlap: their copies may not take more than the code of a JVM. */
		memory += rc ? 0 : jvm_read_blob_memory(&blobs[i]);
		if (memory > JVM_READ_MEMORY_MAX)
			rc = -EBADMSG;
	}
	if (!rc)
		return jvm_read_take(&j->vm, blobs, r->head.nr_blobs, j->scan);
	if (blobs)
		jvm_read_blobs_free(blobs, r->head.nr_blobs);
	return rc;
}

static int take_methods(struct jvm_read_job *j, const struct result *r)
{
	for (uint32_t i = 0; i < j->nr_methods; i++) {
		struct jvm_read_method_name *m = &j->methods[i];
		struct jvm_read_wire_method w;
		const char *name;

		memcpy(&w, r->methods + i * sizeof(w), sizeof(w));
		m->code = w.code;
		m->code_size = w.code_size;
		m->rc = w.code_rc;
		/* As in the JVM, where it has 16 bits. */
		if (w.code_size > UINT16_MAX)
			return -EBADMSG;
		if (w.name == JVM_READ_WIRE_NONE)
			continue;
		name = text_at(r, w.name, JVM_READ_NAME_MAX);
		if (!name)
			return -EBADMSG;
		m->name = strdup(name);
	}
	return 0;
}

/* Take the frame @at of the result. */
static int take_frame(const struct result *r, uint32_t at, struct jvm_read_frame *out)
{
	struct jvm_read_wire_frame w;
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

static int take_chains(struct jvm_read_job *j, const struct result *r)
{
	uint32_t at = 0;
	int rc = 0;

	if (jvm_read_job_begin_chains(j))
		return -ENOMEM;
	for (uint32_t i = 0; i < j->nr_chains && !rc; i++) {
		struct jvm_read_wire_chain w;

		memcpy(&w, r->chains + i * sizeof(w), sizeof(w));
		if (w.nr > JVM_READ_FRAMES_MAX || w.nr > r->head.nr_frames - at)
			return -EBADMSG;
		for (uint32_t k = 0; k < w.nr && !rc; k++)
			rc = take_frame(r, at + k, &j->frames[k]);
		at += w.nr;
		if (!rc)
			jvm_read_job_add_chain(j, &j->chains[i], (int)w.nr, w.exact != 0);
	}
	return rc;
}

/*
 * Take the result of a worker, foreign bytes, into the job; it took @cpu_ns. 0, -errno in it, or
 * -EBADMSG. Only for jvm_read_sandbox_read() and its tests.
 */
static int jvm_read_sandbox_take(struct jvm_read_job *j, const struct sandbox_answer *a,
				 uint64_t cpu_ns)
{
	struct result r = { .blobs = NULL };
	int rc = split(&r, j, a);

	j->worker_ns = cpu_ns;
	/* As a ratio: the worker may report any figures. */
	if (r.head.cpu_ns)
		j->scan_share = MIN(1.0, (double)r.head.scan_ns / (double)r.head.cpu_ns);
	if (!rc)
		rc = jvm_read_wire_take_vm(&j->vm, &r.head.vm);
	if (!rc && j->scan) {
		memcpy(j->first, r.head.first, sizeof(j->first));
		j->nr_first = MIN(r.head.nr_first, JVM_READ_FIRST_MAX);
	}
	if (!rc)
		rc = take_blobs(j, &r);
	if (!rc)
		rc = take_methods(j, &r);
	return rc ? rc : take_chains(j, &r);
}

/*
 * Do jvm_read_job_read() in a worker. 0 or its -errno; -EAGAIN: all workers are busy; -EPIPE,
 * -ETIME, -EBADMSG, -ESTALE: the worker ended, was too slow, or its answer makes no sense.
 */
static int jvm_read_sandbox_read(struct jvm_read_job *j, const struct jvm_read_tables *t)
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
			sandbox_refuse(s.reader, s.a.generation);
	}
	if (!rc) {
		rc = jvm_read_sandbox_take(j, &s.a, s.cpu_ns);
		if (rc == -EBADMSG)
			sandbox_refuse(s.reader, s.a.generation);
	}
	if (!rc)
		j->open = true;
	free(s.pieces);
	sandbox_answer_free(&s.a);
	jvm_read_sandbox_leave(j);
	return rc;
}

/* Return whether the opened process is still the one with this pid. */
static int check_alive(const struct jvm_read_job *r)
{
	char *text;
	size_t size;
	int rc = untrusted_read_at(r->dir_fd, "stat", 4096, &text, &size);

	if (!rc)
		free(text);
	return rc;
}

/*
 * Open the process, once: its memory stays that of the JVM when it calls execve(2). A worker that
 * was taken over must not get that of a program with more rights.
 */
static int open_process(struct jvm_read_job *r)
{
	if (r->dir_fd < 0)
		r->dir_fd = untrusted_open_proc(r->remote.pid);
	if (r->dir_fd < 0)
		return r->dir_fd;
	if (r->remote.fd < 0)
		r->remote.fd = remote_open(r->dir_fd);
	return MIN(r->remote.fd, 0);
}

/* Find the JVM in the process, and read it. */
static int read_process(struct jvm_read_job *r)
{
	struct jvm_read_tables tables = { .bias = 0 };
	int rc;

	rc = open_process(r);
	if (rc)
		return rc;
	if (!r->open)
		rc = jvm_read_find_tables(&tables, &r->remote);
	if (!rc)
		rc = sandbox_is_on() ? jvm_read_sandbox_read(r, &tables)
				     : jvm_read_job_read(r, &tables);
	return rc ? rc : check_alive(r);
}

void jvm_read_sandbox_run(struct job *job)
{
	struct jvm_read_job *r = (struct jvm_read_job *)job;
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

/*
 * Read one JVM without the right to: the caller reads its memory.
 *
 * A question costs two context switches. So whole pages are read, many by one question, and
 * kept until the end of the reading; heads of blobs and whole tables are not kept.
 *
 * Runs in the worker.
 */

#define PAGE	   4096U
#define LARGE	   (64U << 10) /* more bytes than this are not kept */
#define PAGES_MAX  8192U
#define AHEAD	   64U /* pages, aligned: the tables that open a JVM and their texts are near */
#define HEAP_PIECE (4U << 20)

struct page {
	uint64_t addr;
	bool got;
	uint8_t bytes[PAGE];
};

/* A reading. */
struct jvm_read_serve_session {
	struct jvm_read_job job;
	struct jvm_read_tables tables;
	struct sandbox_call *call;
	struct page **pages;
	uint32_t nr_pages, max_pages;
	struct hashset index;		      /* of the pages, by address */
	uint64_t deferred[REMOTE_PIECES_MAX]; /* pages, to be fetched together */
	uint32_t nr_deferred;
	uint64_t first[JVM_READ_FIRST_MAX]; /* pages to fetch first, as the last reading needed them
					     */
	uint32_t nr_first;
	struct sandbox_reply texts; /* of the result */
};

static struct jvm_read_serve_session *session_of(const struct remote *r)
{
	return (struct jvm_read_serve_session *)(uintptr_t)((const char *)r -
							    offsetof(struct jvm_read_serve_session,
								     job.remote));
}

/* Take the @size bytes behind @at in the request, or in its file. */
static int take_bytes(const struct sandbox_call *c, size_t at, uint8_t *buf, size_t size)
{
	if (c->fds[0] >= 0)
		return pread(c->fds[0], buf, size, 0) == (ssize_t)size ? 0 : -EIO;
	if (c->size != at + size)
		return -EBADMSG;
	memcpy(buf, (const char *)c->request + at, size);
	return 0;
}

/* Get @nr pieces of @size bytes from the caller. 0 or -errno: give up. */
static int ask(struct jvm_read_serve_session *s, const uint64_t *addrs, uint32_t nr, size_t size,
	       uint8_t *buf, bool *got)
{
	const struct jvm_read_wire_ask head = { nr, (uint32_t)size };
	struct sandbox_call *c = s->call;
	int rc;

	if (size > JVM_READ_WIRE_SIZE / nr)
		return -E2BIG;
	sandbox_put(&c->reply, &head, sizeof(head));
	sandbox_put(&c->reply, addrs, nr * sizeof(*addrs));
	rc = sandbox_ask(c);
	if (rc)
		return rc;
	if (c->size < nr)
		return -EBADMSG;
	for (uint32_t i = 0; i < nr; i++)
		got[i] = ((const uint8_t *)c->request)[i];
	return take_bytes(c, nr, buf, nr * size);
}

static void forget_pages(struct jvm_read_serve_session *s)
{
	for (uint32_t i = 0; i < s->nr_pages; i++)
		free(s->pages[i]);
	s->nr_pages = 0;
	hashset_clear(&s->index);
}

/* Forget all pages if @nr more are too many. */
static void make_room(struct jvm_read_serve_session *s, uint64_t nr)
{
	if (s->nr_pages + nr > PAGES_MAX)
		forget_pages(s);
}

/* Return the page at @addr; NULL: it has to be read. */
static const struct page *page_at(const struct jvm_read_serve_session *s, uint64_t addr)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&s->index, hash_u64(addr), &at)) != HASHSET_NONE)
		if (s->pages[i]->addr == addr)
			return s->pages[i];
	return NULL;
}

static int keep_page(struct jvm_read_serve_session *s, uint64_t addr, const uint8_t *bytes,
		     bool got)
{
	struct page *p;

	if (page_at(s, addr))
		return 0;
	if (!array_reserve(&s->pages, &s->max_pages, s->nr_pages + 1ULL) ||
	    hashset_reserve(&s->index, 1))
		return -ENOMEM;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->addr = addr;
	p->got = got;
	memcpy(p->bytes, bytes, PAGE);
	hashset_add(&s->index, hash_u64(addr), s->nr_pages);
	s->pages[s->nr_pages++] = p;
	return 0;
}

/* Get pages and keep them. 0 or -errno: give up. */
static int fetch_pages(struct jvm_read_serve_session *s, const uint64_t *addrs, uint32_t nr)
{
	bool got[REMOTE_PIECES_MAX];
	uint8_t *bytes = malloc((size_t)nr * PAGE);
	int rc;

	if (!bytes)
		return -ENOMEM;
	rc = ask(s, addrs, nr, PAGE, bytes, got);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = keep_page(s, addrs[i], bytes + (size_t)i * PAGE, got[i]);
	free(bytes);
	return rc;
}

static int fetch_deferred(struct remote *r)
{
	struct jvm_read_serve_session *s = session_of(r);
	uint32_t nr = s->nr_deferred;

	s->nr_deferred = 0;
	make_room(s, nr);
	return nr ? fetch_pages(s, s->deferred, nr) : 0;
}

/* Defer the read of the page at @addr; with a full list, until a later round. */
static void defer_page(struct jvm_read_serve_session *s, uint64_t addr)
{
	bool known = s->nr_deferred == ARRAY_SIZE(s->deferred);

	for (uint32_t i = 0; i < s->nr_deferred && !known; i++)
		known = s->deferred[i] == addr;
	if (!known)
		s->deferred[s->nr_deferred++] = addr;
	s->job.remote.missed = true;
}

/* Note that the next reading begins with the page at @addr. */
static void add_first(struct jvm_read_job *j, uint64_t addr)
{
	for (uint32_t i = 0; i < j->nr_first; i++)
		if (j->first[i] == addr)
			return;
	if (j->nr_first < JVM_READ_FIRST_MAX)
		j->first[j->nr_first++] = addr;
}

/* Get the pages of @size bytes at @addr. 0; -EAGAIN: deferred; other -errno: give up. */
static int have_pages(struct jvm_read_serve_session *s, uint64_t addr, size_t size)
{
	uint64_t wanted[LARGE / PAGE + 2 * AHEAD + 1];
	uint64_t align = s->job.open ? PAGE : AHEAD * PAGE;
	uint64_t at = addr - addr % align, end = addr + size + (align - 1);
	bool may_defer = s->job.remote.may_defer;
	uint32_t nr = 0;

	end -= end % align;
	make_room(s, (end - at) / PAGE);
	for (; at < end; at += PAGE) {
		/* The heaps, in nearly all cases. */
		if (!may_defer && s->job.open)
			add_first(&s->job, at);
		if (page_at(s, at))
			continue;
		if (may_defer)
			defer_page(s, at);
		else
			wanted[nr++] = at;
	}
	if (s->job.remote.missed)
		return -EAGAIN;
	return nr ? fetch_pages(s, wanted, nr) : 0;
}

static int read_bytes(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	struct jvm_read_serve_session *s = session_of(r);
	const struct page *p;
	uint8_t *out = buf;
	bool got;
	int rc;

	if (size > LARGE) {
		rc = ask(s, &addr, 1, size, buf, &got);
		return rc || got ? rc : -EFAULT;
	}
	rc = have_pages(s, addr, size);
	for (size_t part; size && !rc; out += part, addr += part, size -= part) {
		part = MIN(size, PAGE - addr % PAGE);
		p = page_at(s, addr - addr % PAGE);
		if (!p || !p->got)
			return -EFAULT;
		memcpy(out, p->bytes + addr % PAGE, part);
	}
	return rc;
}

static int read_each(const struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got)
{
	struct jvm_read_serve_session *s = session_of(r);
	int rc = 0;

	/* The tables that open a JVM are in few pages, which are needed anyway. */
	for (uint32_t i = 0; i < nr && !s->job.open; i++) {
		rc = read_bytes(r, addrs[i], buf + i * size, size);
		got[i] = !rc;
		if (rc && rc != -EFAULT)
			return rc;
	}
	for (uint32_t i = 0, part; i < nr && s->job.open && !rc; i += part) {
		part = MIN(nr - i, REMOTE_PIECES_MAX);
		rc = ask(s, addrs + i, part, size, buf + i * size, got + i);
	}
	return s->job.open ? rc : 0;
}

/* Make the blobs that the caller knows: one with a name is not read again. */
static int jvm_read_serve_take_blobs(struct jvm_read *h, const struct jvm_read_wire_blob *in,
				     uint32_t nr)
{
	h->blobs = calloc(MAX(nr, 1U), sizeof(*h->blobs));
	if (!h->blobs)
		return -ENOMEM;
	for (; h->nr_blobs < nr; h->nr_blobs++, in++) {
		struct jvm_read_blob *b = &h->blobs[h->nr_blobs];

		*b = jvm_read_wire_unblob(in);
		if (in->named) {
			b->name = calloc(1, 1);
			b->name_size = in->name_size;
		}
	}
	jvm_read_blobs_count(h, 0);
	return 0;
}

/* Take the lists of the job, at @at. */
static int take_lists(struct jvm_read_job *j, const struct jvm_read_wire_job *w, const uint8_t *at)
{
	uint64_t addr;

	j->pcs = malloc(MAX(w->nr_pcs, 1U) * sizeof(*j->pcs));
	j->methods = calloc(MAX(w->nr_methods, 1U), sizeof(*j->methods));
	j->chains = calloc(MAX(w->nr_chains, 1U), sizeof(*j->chains));
	if (!j->pcs || !j->methods || !j->chains)
		return -ENOMEM;
	j->nr_pcs = w->nr_pcs;
	memcpy(j->pcs, at, w->nr_pcs * sizeof(*j->pcs));
	at += w->nr_pcs * sizeof(*j->pcs);
	for (; j->nr_methods < w->nr_methods; at += sizeof(addr)) {
		memcpy(&addr, at, sizeof(addr));
		j->methods[j->nr_methods++].method = addr;
	}
	for (; j->nr_chains < w->nr_chains; at += sizeof(addr)) {
		memcpy(&addr, at, sizeof(addr));
		j->chains[j->nr_chains++].addr = addr;
	}
	return 0;
}

/* Make the job of the @size bytes of the request's file. */
static int take_job(struct jvm_read_serve_session *s, const uint8_t *bytes, size_t size)
{
	struct jvm_read_job *j = &s->job;
	struct jvm_read_wire_job w;
	size_t blobs;
	int rc;

	if (size < sizeof(w))
		return -EBADMSG;
	memcpy(&w, bytes, sizeof(w));
	if (w.nr_blobs > JVM_READ_BLOBS_MAX ||
	    MAX(w.nr_pcs, MAX(w.nr_methods, w.nr_chains)) > JVM_READ_WANTS_MAX)
		return -EBADMSG;
	blobs = w.nr_blobs * sizeof(struct jvm_read_wire_blob);
	if (size != sizeof(w) + blobs + 8ULL * (w.nr_pcs + w.nr_methods + w.nr_chains))
		return -EBADMSG;
	j->open = w.open;
	j->scan = w.scan;
	vmstructs_want(s->tables.vars);
	for (uint32_t i = 0; i < VMSTRUCTS_VARIABLES; i++)
		s->tables.vars[i].vaddr = w.addrs[i];
	s->tables.bias = w.bias;
	memcpy(s->first, w.first, sizeof(s->first));
	s->nr_first = MIN(w.nr_first, JVM_READ_FIRST_MAX);
	rc = jvm_read_wire_take_vm(&j->vm, &w.vm);
	if (!rc)
		rc = jvm_read_serve_take_blobs(&j->vm, (const void *)(bytes + sizeof(w)),
					       w.nr_blobs);
	return rc ? rc : take_lists(j, &w, bytes + sizeof(w) + blobs);
}

/* Append a text to the ones of the result; its offset. */
static uint32_t put_text(struct jvm_read_serve_session *s, const char *text)
{
	return text ? (uint32_t)sandbox_put(&s->texts, text, strlen(text) + 1) : JVM_READ_WIRE_NONE;
}

static void jvm_read_serve_put_blobs(struct jvm_read_serve_session *s)
{
	const struct jvm_read *h = &s->job.vm;

	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		const struct jvm_read_blob *b = &h->blobs[i];
		const struct jvm_read_wire_blob w =
			jvm_read_wire_blob(b, b->fresh ? put_text(s, b->name) : JVM_READ_WIRE_NONE);

		sandbox_put(&s->call->reply, &w, sizeof(w));
	}
}

static void put_methods(struct jvm_read_serve_session *s)
{
	for (uint32_t i = 0; i < s->job.nr_methods; i++) {
		const struct jvm_read_method_name *m = &s->job.methods[i];
		const struct jvm_read_wire_method w = { .code = m->code,
							.code_size = m->code_size,
							.name = put_text(s, m->name),
							.code_rc = m->rc };

		sandbox_put(&s->call->reply, &w, sizeof(w));
	}
}

static void put_chains(struct jvm_read_serve_session *s)
{
	struct sandbox_reply *reply = &s->call->reply;

	for (uint32_t i = 0; i < s->job.nr_chains; i++) {
		const struct jvm_read_job_chain *c = &s->job.chains[i];
		const struct jvm_read_wire_chain w = { c->nr, c->exact };

		sandbox_put(reply, &w, sizeof(w));
	}
	for (uint32_t i = 0; i < s->job.nr_chains; i++) {
		const struct jvm_read_job_chain *c = &s->job.chains[i];

		for (uint32_t k = 0; k < c->nr; k++) {
			const struct jvm_read_wire_frame w = { c->frames[k].line,
							       put_text(s, c->frames[k].name),
							       put_text(s, c->frames[k].file) };

			sandbox_put(reply, &w, sizeof(w));
		}
	}
}

/* Put the lists of the result. */
static void put_lists(struct jvm_read_serve_session *s, struct jvm_read_wire_result *w)
{
	jvm_read_serve_put_blobs(s);
	put_methods(s);
	put_chains(s);
	sandbox_put(&s->call->reply, s->texts.bytes, s->texts.size);
	s->call->reply.full |= s->texts.full;
	w->nr_blobs = s->job.vm.nr_blobs;
	w->nr_texts = (uint32_t)s->texts.size;
	for (uint32_t i = 0; i < s->job.nr_chains; i++)
		w->nr_frames += s->job.chains[i].nr;
}

/* Put the result: its head is last, when the sizes are known. */
static void put_result(struct jvm_read_serve_session *s, int code, uint64_t cpu_ns)
{
	struct jvm_read_wire_result w = { .code = code };

	if (!code)
		put_lists(s, &w);
	memcpy(w.first, s->job.first, sizeof(w.first));
	w.nr_first = s->job.nr_first;
	w.scan_ns = s->job.scan_ns;
	jvm_read_wire_put_vm(&w.vm, &s->job.vm);
	w.cpu_ns = time_thread_ns() - cpu_ns;
	sandbox_put(&s->call->reply, &w, sizeof(w));
}

static void jvm_read_serve_session_free(struct jvm_read_serve_session *s)
{
	forget_pages(s);
	free(s->pages);
	hashset_fini(&s->index);
	free(s->texts.bytes);
	jvm_read_job_forget(&s->job);
	jvm_read_job_free_chains(s->job.chains, s->job.nr_chains);
	free(s->job.frames);
	jvm_read_close(&s->job.vm);
	free(s);
}

static int serve(struct sandbox_call *c)
{
	struct jvm_read_serve_session *s = calloc(1, sizeof(*s));
	uint64_t size = 0, cpu_ns = time_thread_ns();
	uint8_t *bytes;
	int rc = -EINVAL;

	/* Kept from one reading to the next: new pages would cost more than the reading. */
	mallopt(M_MMAP_THRESHOLD, HEAP_PIECE);
	mallopt(M_TRIM_THRESHOLD, HEAP_PIECE);
	if (!s)
		return -ENOMEM;
	s->call = c;
	s->job.remote = (struct remote){ .read = read_bytes,
					 .read_each = read_each,
					 .fetch = fetch_deferred,
					 .nr_reads_max = JVM_READ_READS_MAX };
	if (c->size == sizeof(size) && c->fds[0] >= 0) {
		memcpy(&size, c->request, sizeof(size));
		rc = size <= JVM_READ_WIRE_JOB_MAX ? sandbox_take(c, 0, size, &bytes) : -E2BIG;
	}
	if (!rc) {
		rc = take_job(s, bytes, size);
		free(bytes);
	}
	if (!rc && s->nr_first && (s->job.scan || s->job.nr_pcs))
		rc = fetch_pages(s, s->first, s->nr_first);
	if (!rc)
		put_result(s, jvm_read_job_read(&s->job, &s->tables), cpu_ns);
	jvm_read_serve_session_free(s);
	return rc;
}

#define READER(n)                                                                                  \
	{                                                                                          \
		.kind = (enum sandbox_kind)(SANDBOX_HOTSPOT + (n)), .name = "proftop-jvm",         \
		.serve = serve, .memory_max = 1ULL << 30, .asks = true,                            \
	}

const struct sandbox_reader jvm_read_readers[JVM_READ_READERS] = {
	READER(0), READER(1), READER(2), READER(3), READER(4), READER(5), READER(6), READER(7),
};
