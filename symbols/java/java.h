/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between hotspot_cage.h and its reader in the cage (hotspot_serve.c). Both are of one
 * build, so structs are sent as they are in memory.
 *
 * The first request is a size (u64) and a file: struct hotspot_wire_job, blobs, and addresses (u64)
 * of code, methods and chains. A question: struct hotspot_wire_ask and addresses (u64). Its answer,
 * the next request: a byte for each piece (1: it was read), and all pieces, there or in a file. The
 * result: blobs, methods, chains, frames, and texts, each with a NUL, all only if there is no
 * error; then struct hotspot_wire_result.
 */
#ifndef SYMBOLS_JIT_HOTSPOT_WIRE_H
#define SYMBOLS_JIT_HOTSPOT_WIRE_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/jit/hotspot_job.h"

#define HOTSPOT_WIRE_NONE UINT32_MAX  /* in the place of a text */
#define HOTSPOT_WIRE_SIZE (32U << 20) /* bytes of one question */
#define HOTSPOT_WANTS_MAX 4096U	      /* addresses of a kind in a job */
#define HOTSPOT_WIRE_JOB_MAX                                                                       \
	(sizeof(struct hotspot_wire_job) + HOTSPOT_BLOBS_MAX * sizeof(struct hotspot_wire_blob) +  \
	 24ULL * HOTSPOT_WANTS_MAX)

/* The state of a JVM: of struct hotspot all but the blobs. */
struct hotspot_wire_vm {
	struct vmstructs vm;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	uint64_t call_return;
	uint32_t nr_heaps;
	uint8_t polls, untried;
	uint8_t pad[2];
};

struct hotspot_wire_job {
	uint64_t addrs[VMSTRUCTS_VARIABLES], bias; /* where its tables are, unless @open */
	struct hotspot_wire_vm vm;
	uint32_t open, scan;
	uint32_t nr_blobs, nr_pcs, nr_methods, nr_chains;
	uint64_t first[HOTSPOT_FIRST_MAX];
	uint32_t nr_first, pad;
};

struct hotspot_wire_blob {
	uint64_t start, end, blob, method, deopt;
	uint32_t compile_id, frame_words, complete;
	uint32_t name; /* offset in the texts; HOTSPOT_WIRE_NONE: none */
	uint16_t name_size;
	uint8_t kind, named, retired, inlines, blind;
	uint8_t pad[1];
};

struct hotspot_wire_ask {
	uint32_t nr, size; /* pieces; bytes of each */
};

struct hotspot_wire_result {
	int32_t code;				/* 0 or -errno, of hotspot_job_read() */
	uint32_t nr_blobs, nr_frames, nr_texts; /* nr_texts: bytes */
	uint64_t cpu_ns, scan_ns;		/* CPU time of the worker: of all, of the scan */
	uint64_t first[HOTSPOT_FIRST_MAX];
	uint32_t nr_first, pad;
	struct hotspot_wire_vm vm;
};

struct hotspot_wire_method {
	uint64_t code;
	uint32_t code_size, name;
	int32_t code_rc;
	uint32_t pad;
};

struct hotspot_wire_chain {
	uint32_t nr, exact; /* frames */
};

struct hotspot_wire_frame {
	uint32_t line, name, file;
};

static inline void hotspot_wire_put_vm(struct hotspot_wire_vm *out, const struct hotspot *h)
{
	*out = (struct hotspot_wire_vm){ .vm = h->vm,
					 .call_return = h->call_return,
					 .nr_heaps = h->nr_heaps,
					 .polls = h->polls,
					 .untried = h->untried };
	memcpy(out->heaps, h->heaps, sizeof(out->heaps));
}

static inline struct hotspot_wire_blob hotspot_wire_blob(const struct hotspot_blob *b,
							 uint32_t name)
{
	return (struct hotspot_wire_blob){
		.start = b->start,
		.end = b->end,
		.blob = b->blob,
		.method = b->method,
		.deopt = b->deopt,
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
static inline struct hotspot_blob hotspot_wire_unblob(const struct hotspot_wire_blob *w)
{
	return (struct hotspot_blob){
		.start = w->start,
		.end = w->end,
		.blob = w->blob,
		.method = w->method,
		.deopt = w->deopt,
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
static inline int hotspot_wire_take_vm(struct hotspot *h, const struct hotspot_wire_vm *in)
{
	if (in->nr_heaps > HOTSPOT_HEAPS_MAX)
		return -EBADMSG;
	h->vm = in->vm;
	memcpy(h->heaps, in->heaps, sizeof(h->heaps));
	h->call_return = in->call_return;
	h->nr_heaps = in->nr_heaps;
	h->polls = in->polls != 0;
	h->untried = in->untried != 0;
	return 0;
}

#endif
