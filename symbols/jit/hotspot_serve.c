// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read one JVM without the right to: the caller reads its memory.
 *
 * A question costs two context switches. So whole pages are read, many by one question, and
 * kept until the end of the reading; heads of blobs and whole tables are not kept.
 *
 * Runs in the worker.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/hashset.h"
#include "symbols/jit/hotspot_blobs.h"
#include "symbols/jit/hotspot_cage.h"
#include "symbols/java/java.h"

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
struct session {
	struct hotspot_job job;
	struct hotspot_tables tables;
	struct cage_call *call;
	struct page **pages;
	uint32_t nr_pages, max_pages;
	struct hashset index;		      /* of the pages, by address */
	uint64_t deferred[REMOTE_PIECES_MAX]; /* pages, to be fetched together */
	uint32_t nr_deferred;
	uint64_t first[HOTSPOT_FIRST_MAX]; /* pages to fetch first, as the last reading needed them
					    */
	uint32_t nr_first;
	struct cage_reply texts; /* of the result */
};

static struct session *session_of(const struct remote *r)
{
	return (struct session *)(uintptr_t)((const char *)r -
					     offsetof(struct session, job.remote));
}

/* Take the @size bytes behind @at in the request, or in its file. */
static int take_bytes(const struct cage_call *c, size_t at, uint8_t *buf, size_t size)
{
	if (c->fds[0] >= 0)
		return pread(c->fds[0], buf, size, 0) == (ssize_t)size ? 0 : -EIO;
	if (c->size != at + size)
		return -EBADMSG;
	memcpy(buf, (const char *)c->request + at, size);
	return 0;
}

/* Get @nr pieces of @size bytes from the caller. 0 or -errno: give up. */
static int ask(struct session *s, const uint64_t *addrs, uint32_t nr, size_t size, uint8_t *buf,
	       bool *got)
{
	const struct hotspot_wire_ask head = { nr, (uint32_t)size };
	struct cage_call *c = s->call;
	int rc;

	if (size > HOTSPOT_WIRE_SIZE / nr)
		return -E2BIG;
	cage_put(&c->reply, &head, sizeof(head));
	cage_put(&c->reply, addrs, nr * sizeof(*addrs));
	rc = cage_ask(c);
	if (rc)
		return rc;
	if (c->size < nr)
		return -EBADMSG;
	for (uint32_t i = 0; i < nr; i++)
		got[i] = ((const uint8_t *)c->request)[i];
	return take_bytes(c, nr, buf, nr * size);
}

static void forget_pages(struct session *s)
{
	for (uint32_t i = 0; i < s->nr_pages; i++)
		free(s->pages[i]);
	s->nr_pages = 0;
	hashset_clear(&s->index);
}

/* Forget all pages if @nr more are too many. */
static void make_room(struct session *s, uint64_t nr)
{
	if (s->nr_pages + nr > PAGES_MAX)
		forget_pages(s);
}

/* Return the page at @addr; NULL: it has to be read. */
static const struct page *page_at(const struct session *s, uint64_t addr)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&s->index, hash_u64(addr), &at)) != HASHSET_NONE)
		if (s->pages[i]->addr == addr)
			return s->pages[i];
	return NULL;
}

static int keep_page(struct session *s, uint64_t addr, const uint8_t *bytes, bool got)
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
static int fetch_pages(struct session *s, const uint64_t *addrs, uint32_t nr)
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
	struct session *s = session_of(r);
	uint32_t nr = s->nr_deferred;

	s->nr_deferred = 0;
	make_room(s, nr);
	return nr ? fetch_pages(s, s->deferred, nr) : 0;
}

/* Defer the read of the page at @addr; with a full list, until a later round. */
static void defer_page(struct session *s, uint64_t addr)
{
	bool known = s->nr_deferred == ARRAY_SIZE(s->deferred);

	for (uint32_t i = 0; i < s->nr_deferred && !known; i++)
		known = s->deferred[i] == addr;
	if (!known)
		s->deferred[s->nr_deferred++] = addr;
	s->job.remote.missed = true;
}

/* Note that the next reading begins with the page at @addr. */
static void add_first(struct hotspot_job *j, uint64_t addr)
{
	for (uint32_t i = 0; i < j->nr_first; i++)
		if (j->first[i] == addr)
			return;
	if (j->nr_first < HOTSPOT_FIRST_MAX)
		j->first[j->nr_first++] = addr;
}

/* Get the pages of @size bytes at @addr. 0; -EAGAIN: deferred; other -errno: give up. */
static int have_pages(struct session *s, uint64_t addr, size_t size)
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
	struct session *s = session_of(r);
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
	struct session *s = session_of(r);
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
static int take_blobs(struct hotspot *h, const struct hotspot_wire_blob *in, uint32_t nr)
{
	h->blobs = calloc(MAX(nr, 1U), sizeof(*h->blobs));
	if (!h->blobs)
		return -ENOMEM;
	for (; h->nr_blobs < nr; h->nr_blobs++, in++) {
		struct hotspot_blob *b = &h->blobs[h->nr_blobs];

		*b = hotspot_wire_unblob(in);
		if (in->named) {
			b->name = calloc(1, 1);
			b->name_size = in->name_size;
		}
	}
	hotspot_blobs_count(h, 0);
	return 0;
}

/* Take the lists of the job, at @at. */
static int take_lists(struct hotspot_job *j, const struct hotspot_wire_job *w, const uint8_t *at)
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
static int take_job(struct session *s, const uint8_t *bytes, size_t size)
{
	struct hotspot_job *j = &s->job;
	struct hotspot_wire_job w;
	size_t blobs;
	int rc;

	if (size < sizeof(w))
		return -EBADMSG;
	memcpy(&w, bytes, sizeof(w));
	if (w.nr_blobs > HOTSPOT_BLOBS_MAX ||
	    MAX(w.nr_pcs, MAX(w.nr_methods, w.nr_chains)) > HOTSPOT_WANTS_MAX)
		return -EBADMSG;
	blobs = w.nr_blobs * sizeof(struct hotspot_wire_blob);
	if (size != sizeof(w) + blobs + 8ULL * (w.nr_pcs + w.nr_methods + w.nr_chains))
		return -EBADMSG;
	j->open = w.open;
	j->scan = w.scan;
	vmstructs_want(s->tables.vars);
	for (uint32_t i = 0; i < VMSTRUCTS_VARIABLES; i++)
		s->tables.vars[i].vaddr = w.addrs[i];
	s->tables.bias = w.bias;
	memcpy(s->first, w.first, sizeof(s->first));
	s->nr_first = MIN(w.nr_first, HOTSPOT_FIRST_MAX);
	rc = hotspot_wire_take_vm(&j->vm, &w.vm);
	if (!rc)
		rc = take_blobs(&j->vm, (const void *)(bytes + sizeof(w)), w.nr_blobs);
	return rc ? rc : take_lists(j, &w, bytes + sizeof(w) + blobs);
}

/* Append a text to the ones of the result; its offset. */
static uint32_t put_text(struct session *s, const char *text)
{
	return text ? (uint32_t)cage_put(&s->texts, text, strlen(text) + 1) : HOTSPOT_WIRE_NONE;
}

static void put_blobs(struct session *s)
{
	const struct hotspot *h = &s->job.vm;

	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		const struct hotspot_blob *b = &h->blobs[i];
		const struct hotspot_wire_blob w =
			hotspot_wire_blob(b, b->fresh ? put_text(s, b->name) : HOTSPOT_WIRE_NONE);

		cage_put(&s->call->reply, &w, sizeof(w));
	}
}

static void put_methods(struct session *s)
{
	for (uint32_t i = 0; i < s->job.nr_methods; i++) {
		const struct hotspot_method_name *m = &s->job.methods[i];
		const struct hotspot_wire_method w = { .code = m->code,
						       .code_size = m->code_size,
						       .name = put_text(s, m->name),
						       .code_rc = m->rc };

		cage_put(&s->call->reply, &w, sizeof(w));
	}
}

static void put_chains(struct session *s)
{
	struct cage_reply *reply = &s->call->reply;

	for (uint32_t i = 0; i < s->job.nr_chains; i++) {
		const struct hotspot_job_chain *c = &s->job.chains[i];
		const struct hotspot_wire_chain w = { c->nr, c->exact };

		cage_put(reply, &w, sizeof(w));
	}
	for (uint32_t i = 0; i < s->job.nr_chains; i++) {
		const struct hotspot_job_chain *c = &s->job.chains[i];

		for (uint32_t k = 0; k < c->nr; k++) {
			const struct hotspot_wire_frame w = { c->frames[k].line,
							      put_text(s, c->frames[k].name),
							      put_text(s, c->frames[k].file) };

			cage_put(reply, &w, sizeof(w));
		}
	}
}

/* Put the lists of the result. */
static void put_lists(struct session *s, struct hotspot_wire_result *w)
{
	put_blobs(s);
	put_methods(s);
	put_chains(s);
	cage_put(&s->call->reply, s->texts.bytes, s->texts.size);
	s->call->reply.full |= s->texts.full;
	w->nr_blobs = s->job.vm.nr_blobs;
	w->nr_texts = (uint32_t)s->texts.size;
	for (uint32_t i = 0; i < s->job.nr_chains; i++)
		w->nr_frames += s->job.chains[i].nr;
}

/* Put the result: its head is last, when the sizes are known. */
static void put_result(struct session *s, int code, uint64_t cpu_ns)
{
	struct hotspot_wire_result w = { .code = code };

	if (!code)
		put_lists(s, &w);
	memcpy(w.first, s->job.first, sizeof(w.first));
	w.nr_first = s->job.nr_first;
	w.scan_ns = s->job.scan_ns;
	hotspot_wire_put_vm(&w.vm, &s->job.vm);
	w.cpu_ns = time_thread_ns() - cpu_ns;
	cage_put(&s->call->reply, &w, sizeof(w));
}

static void session_free(struct session *s)
{
	forget_pages(s);
	free(s->pages);
	hashset_fini(&s->index);
	free(s->texts.bytes);
	hotspot_job_forget(&s->job);
	hotspot_job_free_chains(s->job.chains, s->job.nr_chains);
	free(s->job.frames);
	hotspot_close(&s->job.vm);
	free(s);
}

static int serve(struct cage_call *c)
{
	struct session *s = calloc(1, sizeof(*s));
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
					 .nr_reads_max = HOTSPOT_READS_MAX };
	if (c->size == sizeof(size) && c->fds[0] >= 0) {
		memcpy(&size, c->request, sizeof(size));
		rc = size <= HOTSPOT_WIRE_JOB_MAX ? cage_take(c, 0, size, &bytes) : -E2BIG;
	}
	if (!rc) {
		rc = take_job(s, bytes, size);
		free(bytes);
	}
	if (!rc && s->nr_first && (s->job.scan || s->job.nr_pcs))
		rc = fetch_pages(s, s->first, s->nr_first);
	if (!rc)
		put_result(s, hotspot_job_read(&s->job, &s->tables), cpu_ns);
	session_free(s);
	return rc;
}

#define READER(n)                                                                                  \
	{                                                                                          \
		.kind = (enum cage_kind)(CAGE_HOTSPOT + (n)), .name = "proftop-jvm",               \
		.serve = serve, .memory_max = 1ULL << 30, .asks = true,                            \
	}

const struct cage_reader hotspot_readers[HOTSPOT_READERS] = {
	READER(0), READER(1), READER(2), READER(3), READER(4), READER(5), READER(6), READER(7),
};
