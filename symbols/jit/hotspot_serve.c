// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read one JVM without the right to: the caller reads its memory.
 *
 * A question costs two switches of processes. So pages are read with their neighbours, and kept
 * until the end of the reading; heads of blobs and whole tables are not kept.
 *
 * Runs in the worker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/jit/hotspot_blobs.h"
#include "symbols/jit/hotspot_cage.h"
#include "symbols/jit/hotspot_wire.h"

#define PAGE	   4096U
#define PAGES	   2U /* of a block */
#define BLOCK	   (PAGES * PAGE)
#define LARGE	   (64U << 10) /* more bytes than this are not kept */
#define BLOCKS_MAX 8192U
#define NR_SLOTS   (2 * BLOCKS_MAX)
#define LATE_MAX   (REMOTE_PIECES_MAX / PAGES) /* blocks of one question */

struct block {
	uint64_t addr;
	uint8_t *bytes; /* NULL: the slot is free */
	bool got[PAGES];
};

/* A reading. */
struct session {
	struct hotspot_job job;
	struct hotspot_tables tables;
	struct cage_call *call;
	struct block slots[NR_SLOTS];
	uint32_t nr_blocks;
	uint64_t late[LATE_MAX]; /* blocks of reads that were put off */
	uint32_t nr_late;
	uint64_t first[HOTSPOT_FIRST_MAX]; /* of the last reading */
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

/* Get @nr pieces of @size bytes. 0 or -errno: the reading is over. */
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

static int read_each(const struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got)
{
	int rc = 0;

	for (uint32_t i = 0, part; i < nr && !rc; i += part) {
		part = MIN(nr - i, REMOTE_PIECES_MAX);
		rc = ask(session_of(r), addrs + i, part, size, buf + i * size, got + i);
	}
	return rc;
}

static void forget_blocks(struct session *s)
{
	for (uint32_t i = 0; i < NR_SLOTS; i++)
		free(s->slots[i].bytes);
	memset(s->slots, 0, sizeof(s->slots));
	s->nr_blocks = 0;
}

/* Return the slot of the block at @addr, free or not. */
static struct block *slot_of(struct session *s, uint64_t addr)
{
	uint32_t at = (uint32_t)hash_u64(addr);

	while (s->slots[at % NR_SLOTS].bytes && s->slots[at % NR_SLOTS].addr != addr)
		at++;
	return &s->slots[at % NR_SLOTS];
}

/* Keep a block. */
static int keep_block(struct session *s, uint64_t addr, const uint8_t *bytes, const bool *got)
{
	struct block *b = slot_of(s, addr);

	if (b->bytes)
		return 0;
	b->bytes = malloc(BLOCK);
	if (!b->bytes)
		return -ENOMEM;
	b->addr = addr;
	memcpy(b->bytes, bytes, BLOCK);
	memcpy(b->got, got, sizeof(b->got));
	s->nr_blocks++;
	return 0;
}

/* Get blocks and keep them. 0 or -errno: the reading is over. */
static int fetch_blocks(struct session *s, const uint64_t *blocks, uint32_t nr)
{
	uint64_t addrs[REMOTE_PIECES_MAX];
	bool got[REMOTE_PIECES_MAX];
	uint8_t *bytes = malloc((size_t)nr * BLOCK);
	int rc;

	if (!bytes)
		return -ENOMEM;
	if (s->nr_blocks + nr > BLOCKS_MAX)
		forget_blocks(s);
	for (uint32_t i = 0; i < nr * PAGES; i++)
		addrs[i] = blocks[i / PAGES] + (uint64_t)(i % PAGES) * PAGE;
	rc = ask(s, addrs, nr * PAGES, PAGE, bytes, got);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = keep_block(s, blocks[i], bytes + (size_t)i * BLOCK, got + i * PAGES);
	free(bytes);
	return rc;
}

static int fetch_late(struct remote *r)
{
	struct session *s = session_of(r);
	uint32_t nr = s->nr_late;

	s->nr_late = 0;
	return nr ? fetch_blocks(s, s->late, nr) : 0;
}

/* Put off a read of the block at @addr: when there are enough it waits for another round. */
static void put_off(struct session *s, uint64_t addr)
{
	bool known = s->nr_late == LATE_MAX;

	for (uint32_t i = 0; i < s->nr_late && !known; i++)
		known = s->late[i] == addr;
	if (!known)
		s->late[s->nr_late++] = addr;
	s->job.remote.missed = true;
}

static bool has_first(const struct hotspot_job *j, uint64_t addr)
{
	for (uint32_t i = 0; i < j->nr_first; i++)
		if (j->first[i] == addr)
			return true;
	return false;
}

/* Have the block at @addr. 0 or -errno: the reading is over. */
static int have_block(struct session *s, uint64_t addr, const struct block **out)
{
	struct hotspot_job *j = &s->job;
	int rc = 0;

	/* The heaps, in nearly all cases: the next reading begins with the same blocks. */
	if (!j->remote.may_put_off && j->open && j->nr_first < HOTSPOT_FIRST_MAX &&
	    !has_first(j, addr))
		j->first[j->nr_first++] = addr;
	if (!slot_of(s, addr)->bytes)
		rc = fetch_blocks(s, &addr, 1);
	*out = slot_of(s, addr);
	return rc;
}

static int read_bytes(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	struct session *s = session_of(r);
	const struct block *b;
	uint8_t *out = buf;
	bool got;
	int rc;

	if (size > LARGE) {
		rc = ask(s, &addr, 1, size, buf, &got);
		return rc || got ? rc : -EFAULT;
	}
	/* All blocks are put off, not only the first one. */
	for (uint64_t at = addr - addr % BLOCK; at < addr + size && r->may_put_off; at += BLOCK)
		if (!slot_of(s, at)->bytes)
			put_off(s, at);
	if (s->job.remote.missed)
		return -EAGAIN;
	while (size) {
		size_t at = addr % BLOCK, part = MIN(size, PAGE - at % PAGE);

		rc = have_block(s, addr - at, &b);
		if (rc)
			return rc;
		if (!b->got[at / PAGE])
			return -EFAULT;
		memcpy(out, b->bytes + at, part);
		out += part;
		addr += part;
		size -= part;
	}
	return 0;
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
	forget_blocks(s);
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

	if (!s)
		return -ENOMEM;
	s->call = c;
	s->job.remote = (struct remote){ .read = read_bytes,
					 .read_each = read_each,
					 .fetch = fetch_late,
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
		rc = fetch_blocks(s, s->first, s->nr_first);
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
