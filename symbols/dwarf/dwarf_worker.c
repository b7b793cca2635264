// SPDX-License-Identifier: GPL-2.0-or-later
/* The worker's side of DWARF in the sandbox: files that are open, and answers. Runs on: the worker;
 * without a sandbox, the calling thread (one at a time). */
#include "symbols/dwarf/internal.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

#define FILES_MAX 24U
#define SLICE_NS  5000000ULL
#define MEMORY	  (2ULL << 30)

struct open_file {
	struct dwarf *dwarf; /* NULL: free */
	struct elffile file;
	int alt_fd;
};

static struct open_file files[FILES_MAX];

/* Texts of an answer in the making: each is there once, if it is the last one of its kind. */
struct texts {
	struct sandbox_reply bytes;
	const char *last[3];
	uint32_t at[3];
};

static void close_file(struct open_file *f)
{
	dwarf_close(f->dwarf);
	if (f->file.fd >= 0)
		close(f->file.fd);
	if (f->alt_fd >= 0)
		close(f->alt_fd);
	elffile_close(&f->file);
	f->dwarf = NULL;
	/* Megabytes in small pieces: without this the process keeps them. */
	malloc_trim(0);
}

static int serve_open(struct sandbox_call *c, const struct dwarf_wire_request *r)
{
	struct dwarf_wire_opened opened = { .handle = 0 };
	struct open_file *f = files;
	int rc;

	while (opened.handle < FILES_MAX && files[opened.handle].dwarf)
		opened.handle++;
	if (opened.handle == FILES_MAX || c->fds[0] < 0 || r->alt != (c->fds[1] >= 0))
		return -ENFILE;
	f += opened.handle;
	rc = elffile_open(&f->file, c->fds[0], NULL, r->size, NULL);
	if (rc)
		return rc;
	rc = dwarf_open_fds(&f->dwarf, &f->file, r->bias, c->fds[1], r->no_lines);
	if (rc) {
		elffile_close(&f->file);
		f->dwarf = NULL;
		return rc;
	}
	opened.split = dwarf_is_split(f->dwarf);
	f->alt_fd = c->fds[1];
	c->fds[0] = c->fds[1] = -1;
	sandbox_put(&c->reply, &opened, sizeof(opened));
	return 0;
}

static uint32_t put_text(struct texts *t, unsigned int kind, const char *text)
{
	if (!text)
		return DWARF_WIRE_NONE;
	if (t->last[kind] != text)
		t->at[kind] = (uint32_t)sandbox_put(&t->bytes, text, strlen(text) + 1);
	t->last[kind] = text;
	return t->at[kind];
}

static void put_frame(struct sandbox_reply *to, struct texts *t, const struct dwarf_frame *f)
{
	const struct dwarf_wire_frame w = {
		.name = put_text(t, 0, f->name),
		.file = put_text(t, 1, f->file),
		.dir = put_text(t, 2, f->dir),
		.line = f->line,
		.start = f->start,
		.identity = { (uint32_t)f->identity, (uint32_t)(f->identity >> 32) },
	};

	sandbox_put(to, &w, sizeof(w));
}

/* Join head, @lengths, @frames and texts to the reply, and free them. */
static int finish(struct sandbox_call *c, uint32_t nr, struct sandbox_reply *lengths,
		  struct sandbox_reply *frames, struct texts *t)
{
	const struct dwarf_wire_head head = { .nr = nr, .texts_size = (uint32_t)t->bytes.size };

	sandbox_put(&c->reply, &head, sizeof(head));
	sandbox_put(&c->reply, lengths->bytes, lengths->size);
	sandbox_put(&c->reply, frames->bytes, frames->size);
	sandbox_put(&c->reply, t->bytes.bytes, t->bytes.size);
	c->reply.full |= lengths->full || frames->full || t->bytes.full;
	free(lengths->bytes);
	free(frames->bytes);
	free(t->bytes.bytes);
	return 0;
}

static int serve_chains(struct sandbox_call *c, struct dwarf *d, const struct dwarf_wire_request *r)
{
	struct sandbox_reply lengths = { 0 }, frames = { 0 };
	uint64_t end_ns = time_now_ns() + SLICE_NS;
	struct texts texts = { 0 };
	uint32_t done = 0;

	while (done < r->nr && (!done || time_now_ns() < end_ns)) {
		struct dwarf_frame chain[DWARF_FRAMES_MAX];
		int32_t nr = dwarf_chain(d, r->vaddrs[done++], chain);

		sandbox_put(&lengths, &nr, sizeof(nr));
		for (int32_t i = 0; i < nr; i++)
			put_frame(&frames, &texts, &chain[i]);
		/* The next chain may free the texts: do not compare with them. */
		memset(texts.last, 0, sizeof(texts.last));
	}
	return finish(c, done, &lengths, &frames, &texts);
}

struct rows {
	struct sandbox_reply frames;
	struct texts texts;
	uint32_t nr;
};

static void put_row(void *ctx, uint64_t vaddr, const struct dwarf_frame *at)
{
	struct rows *r = ctx;

	if (r->nr == DWARF_SANDBOX_ROWS)
		return;
	r->nr++;
	sandbox_put(&r->frames, &vaddr, sizeof(vaddr));
	put_frame(&r->frames, &r->texts, at);
}

static int serve_lines(struct sandbox_call *c, struct dwarf *d, const struct dwarf_wire_request *r)
{
	struct sandbox_reply none = { 0 };
	struct rows rows = { .nr = 0 };
	int rc = dwarf_lines(d, r->vaddrs[0], r->size, put_row, &rows);

	finish(c, rows.nr, &none, &rows.frames, &rows.texts);
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct dwarf_wire_request r;
	struct dwarf *d;

	if (c->size != sizeof(r))
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	if (r.kind == DWARF_WIRE_OPEN)
		return serve_open(c, &r);
	d = r.handle < FILES_MAX ? files[r.handle].dwarf : NULL;
	if (!d || r.nr > DWARF_SANDBOX_PLACES)
		return -EINVAL;
	switch (r.kind) {
	case DWARF_WIRE_CLOSE:
		close_file(&files[r.handle]);
		return 0;
	case DWARF_WIRE_CHAINS:
		return serve_chains(c, d, &r);
	case DWARF_WIRE_LINES:
		return serve_lines(c, d, &r);
	default:
		return -EINVAL;
	}
}

const struct sandbox_reader dwarf_sandbox_reader = {
	.kind = SANDBOX_DWARF,
	.name = "proftop-dwarf",
	.prepare = dwarf_inflate_prepare,
	.serve = serve,
	.memory_max = MEMORY,
};

const struct sandbox_reader dwarf_sandbox_others = {
	.kind = SANDBOX_DWARF_OTHERS,
	.name = "proftop-dwarf-o",
	.prepare = dwarf_inflate_prepare,
	.serve = serve,
	.memory_max = MEMORY,
};
