// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code of JVMs kept for recordings, and taken from them.
 *
 * Runs on: the loader; replay.
 */
#include "symbols/java/internal.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"

#define NO_FILE "-" /* a recorded function has a file */

/* A frame of a chain; the texts follow. */
struct kept_frame {
	uint32_t line;
	uint16_t name_size, file_size;
};

static void keep(const struct hotspots_keeper *k, const struct code_key *key, const char *name,
		 const void *table, size_t size)
{
	const struct code_text text = {
		.language = LANG_JAVA,
		.name_size = (uint16_t)MIN(strlen(name), CODES_TEXT_MAX),
		.file_size = sizeof(NO_FILE) - 1,
		.table_size = (uint32_t)size,
		.name = name,
		.file = NO_FILE,
		.table = table,
	};

	if (*name)
		code_log_add(k->log, key, &text);
}

static struct hotspots_kept begin(const struct hotspots_keeper *k, enum hotspots_kept_kind kind)
{
	return (struct hotspots_kept){
		.time_ns = k->time_ns,
		.memory = k->memory,
		.pid = k->pid,
		.kind = kind,
		.call_return = k->call_return,
	};
}

static struct code_key key_of(const struct hotspots_keeper *k, const struct hotspots_kept *kept,
			      uint64_t stamp)
{
	return (struct code_key){ .process = (uint32_t)k->process,
				  .address = kept->start,
				  .stamp = stamp << 2 | kept->kind };
}

void hotspots_keep_code(const struct hotspots_keeper *k, const struct hotspot_blob *b)
{
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_CODE);
	struct code_key key;

	if (!k->log || !b->name)
		return;
	kept.memory = kept.start = b->start;
	kept.end = b->end;
	kept.deopt = b->deopt;
	kept.compile_id = b->compile_id;
	kept.frame_words = b->frame_words;
	kept.complete = b->complete;
	kept.code_kind = b->kind;
	kept.flags = (b->retired ? HOTSPOTS_KEPT_RETIRED : 0) |
		     (b->inlines ? HOTSPOTS_KEPT_INLINES : 0) |
		     (b->blind ? HOTSPOTS_KEPT_BLIND : 0) |
		     (k->untried ? HOTSPOTS_KEPT_UNTRIED : 0);
	key = key_of(k, &kept,
		     hash_u64(b->compile_id ^ b->method << 8 ^ b->end << 1 ^ (uint64_t)b->retired));
	keep(k, &key, b->name, &kept, sizeof(kept));
}

void hotspots_keep_method(const struct hotspots_keeper *k, uint64_t method, const char *name,
			  uint64_t bytecodes, uint32_t size)
{
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_METHOD);
	struct code_key key;

	if (!k->log)
		return;
	kept.start = method;
	kept.bytecodes = bytecodes;
	kept.bytecodes_size = size;
	key = key_of(k, &kept, 0);
	keep(k, &key, name, &kept, sizeof(kept));
}

void hotspots_keep_chain(const struct hotspots_keeper *k, const struct hotspot_job_chain *chain)
{
	const struct hotspot_job_frame *frames = chain->frames;
	const uint32_t nr = chain->nr;
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_CHAIN);
	uint8_t table[CODES_TABLE_MAX], *at = table + sizeof(kept);
	struct code_key key;

	if (!k->log)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		struct kept_frame f = { .line = frames[i].line };
		size_t name = strlen(frames[i].name), file = strlen(frames[i].file);

		if (sizeof(f) + name + file > (size_t)(table + sizeof(table) - at))
			return;
		f.name_size = (uint16_t)name;
		f.file_size = (uint16_t)file;
		at = mempcpy(at, &f, sizeof(f));
		at = mempcpy(at, frames[i].name, name);
		at = mempcpy(at, frames[i].file, file);
	}
	kept.start = chain->addr;
	kept.layer = chain->layer;
	kept.flags = chain->exact ? HOTSPOTS_KEPT_EXACT : 0;
	kept.nr = nr;
	memcpy(table, &kept, sizeof(kept));
	key = key_of(k, &kept, chain->layer);
	keep(k, &key, nr ? frames[nr - 1].name : "", table, (size_t)(at - table));
}

static bool is_code(const struct hotspots_kept *k)
{
	return k->start < k->end && k->code_kind <= HOTSPOT_INTERPRETER && k->memory == k->start &&
	       k->end - k->start <= JITCODE_SIZE_MAX && k->frame_words < 65536;
}

bool hotspots_kept(const struct code_text *text, struct hotspots_kept *out)
{
	if (text->table_size < sizeof(*out))
		return false;
	memcpy(out, text->table, sizeof(*out));
	switch (out->kind) {
	case HOTSPOTS_KEPT_CODE:
		return is_code(out);
	case HOTSPOTS_KEPT_METHOD:
		return out->start && out->start % 8 == 0 && out->bytecodes_size <= UINT16_MAX;
	case HOTSPOTS_KEPT_CHAIN:
		return out->nr && out->nr <= HOTSPOT_FRAMES_MAX && out->layer < JITCODE_LAYERS;
	default:
		return false;
	}
}

/* Return the bytes of the frames of a chain. */
static size_t hotspots_kept_size(const struct code_text *text, const struct hotspots_kept *kept)
{
	return kept->nr * (sizeof(struct hotspot_job_frame) + 2) + text->table_size;
}

struct hotspot_job_frame *hotspots_kept_frames(const struct code_text *text,
					       const struct hotspots_kept *kept)
{
	struct hotspot_job_frame *frames = malloc(hotspots_kept_size(text, kept));
	const uint8_t *at = text->table + sizeof(*kept), *end = text->table + text->table_size;
	char *to = (char *)(frames + kept->nr);

	for (uint32_t i = 0; frames && i < kept->nr; i++) {
		struct kept_frame f = { .line = 0 };
		bool fits = (size_t)(end - at) >= sizeof(f);

		if (fits) {
			memcpy(&f, at, sizeof(f));
			at += sizeof(f);
			fits = (size_t)(end - at) >= (size_t)f.name_size + f.file_size;
		}
		if (!fits) {
			free(frames);
			return NULL;
		}
		frames[i] = (struct hotspot_job_frame){ .name = to, .line = f.line };
		to = mempcpy(to, at, f.name_size);
		*to++ = '\0';
		frames[i].file = to;
		to = mempcpy(to, at + f.name_size, f.file_size);
		*to++ = '\0';
		at += f.name_size + f.file_size;
	}
	return frames;
}

/*
 * JVMs of a recording: its records in place of readings. Runs on: the thread that
 * replays, before the loader starts. Records are foreign bytes: hotspots_kept() checks them.
 */

/*
 * A hostile recording may have a sample behind each record, and code at falling addresses: work
 * would be quadratic. So work on a JVM has a budget, in visits of blobs: CREDIT_BEGIN at first,
 * which real JVMs seldom use up, and CREDIT_RECORD more for each record.
 */
#define CREDIT_BEGIN (32LL << 20)

#define CREDIT_RECORD 2048
#define MOVED_BLOBS   4U /* moving these costs as much as a visit of one */

/* Chains that are kept of one JVM, and their bytes. */
#define CHAINS_MAX (1U << 20)

#define CHAIN_SIZE_MAX (256ULL << 20)

/* Spend @cost of the budget after @records. False: too little is left. */
static bool spend(int64_t *spent, uint64_t records, uint64_t cost)
{
	if (*spent + (int64_t)cost > CREDIT_BEGIN + (int64_t)records * CREDIT_RECORD)
		return false;
	*spent += (int64_t)cost;
	return true;
}

/* Return whether the code of all JVMs together takes too much memory. */
static bool is_full(const struct hotspots *h)
{
	return atomic_load_explicit(&h->memory, memory_order_relaxed) >= HOTSPOTS_MEMORY_MAX;
}

/* Insert code, and drop the code that it replaces. */
static void take_blob(struct hotspots *h, struct hotspots_entry *e, const struct hotspots_kept *k,
		      const char *name, size_t size)
{
	struct hotspot *vm = &e->reading->vm;
	struct hotspot_blob *b;
	uint32_t at, end;

	at = search_split(vm->nr_blobs, i, vm->blobs[i].end <= k->start);
	if (vm->nr_blobs >= HOTSPOT_BLOBS_MAX || vm->memory >= HOTSPOT_MEMORY_MAX || is_full(h) ||
	    !spend(&e->spent_inserting, e->nr_taken, (vm->nr_blobs - at) / MOVED_BLOBS) ||
	    !array_reserve(&vm->blobs, &e->max_blobs, vm->nr_blobs + 1ull)) {
		e->left_out = true;
		return;
	}
	end = search_split(vm->nr_blobs, i, vm->blobs[i].start < k->end);
	for (uint32_t i = at; i < end; i++) {
		vm->memory -= hotspot_blob_memory(&vm->blobs[i]);
		free(vm->blobs[i].name);
	}
	b = &vm->blobs[at];
	memmove(b + 1, vm->blobs + end, (vm->nr_blobs - end) * sizeof(*b));
	vm->nr_blobs = vm->nr_blobs - (end - at) + 1;
	*b = (struct hotspot_blob){
		.start = k->start,
		.end = k->end,
		.compile_id = k->compile_id,
		.frame_words = k->frame_words,
		.complete = k->complete,
		.kind = (enum hotspot_kind)k->code_kind,
		.fresh = true,
		.retired = k->flags & HOTSPOTS_KEPT_RETIRED,
		.inlines = k->flags & HOTSPOTS_KEPT_INLINES,
		.blind = k->flags & HOTSPOTS_KEPT_BLIND,
		.deopt = k->deopt,
		.name_size = (uint16_t)strnlen(name, size),
		.name = strndup(name, size),
	};
	vm->memory += hotspot_blob_memory(b);
}

static void take_method(struct hotspots *h, struct hotspots_entry *e, const struct hotspots_kept *k,
			const char *name, size_t size)
{
	struct hotspot_job *r = e->reading;

	/* The list ends with each settling. */
	if (jitcode_nr(e->methods) + r->nr_methods >= HOTSPOTS_METHODS_MAX || is_full(h) ||
	    !array_reserve(&r->methods, &e->max_methods, r->nr_methods + 1ull)) {
		e->left_out = true;
		return;
	}
	r->methods[r->nr_methods++] = (struct hotspot_method_name){
		.method = k->start,
		.code = k->bytecodes,
		.code_size = k->bytecodes_size,
		.name = strndup(name, size),
	};
	e->methods_size += size + 1;
}

static void take_chain(struct hotspots *h, struct hotspots_entry *e, const struct hotspots_kept *k,
		       const struct code_text *text)
{
	struct hotspot_job_frame *frames;
	uint64_t size = hotspots_kept_size(text, k);

	if (e->nr_recorded == CHAINS_MAX || is_full(h) ||
	    size > CHAIN_SIZE_MAX - e->recorded_size ||
	    !array_reserve(&e->recorded, &e->max_recorded, e->nr_recorded + 1ull)) {
		e->left_out = true;
		return;
	}
	frames = hotspots_kept_frames(text, k);
	e->recorded_size += frames ? size : 0;
	if (frames)
		e->recorded[e->nr_recorded++] =
			(struct hotspot_job_chain){ .addr = k->start,
						    .layer = k->layer,
						    .nr = k->nr,
						    .exact = k->flags & HOTSPOTS_KEPT_EXACT,
						    .frames = frames };
}

void hotspots_replay(struct hotspots *h, const struct object *memory, const struct code_text *text,
		     const struct hotspots_kept *k)
{
	struct hotspots_entry *e = hotspots_find_entry(h, memory);

	if (!e && !h->off && h->recorded)
		e = hotspots_add_entry(h, memory);
	if (!e || !e->reading)
		return;
	e->pending = true;
	e->nr_taken++;
	e->reading->vm.call_return = k->call_return;
	switch (k->kind) {
	case HOTSPOTS_KEPT_CODE:
		e->reading->vm.untried = k->flags & HOTSPOTS_KEPT_UNTRIED;
		take_blob(h, e, k, text->name, text->name_size);
		break;
	case HOTSPOTS_KEPT_METHOD:
		take_method(h, e, k, text->name, text->name_size);
		break;
	default:
		take_chain(h, e, k, text);
	}
	/* There may be many JVMs with one record each. */
	hotspots_count(h, e);
}

static int by_place(const void *a, const void *b)
{
	const struct hotspot_job_chain *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return COMPARE(x->addr, y->addr);
}

/* Take the new records of one JVM. */
static void settle(struct hotspots *h, struct hotspots_entry *e, uint64_t time_ns)
{
	struct hotspot *vm = &e->reading->vm;

	vm->nr_new = vm->nr_retired = 0;
	for (uint32_t k = 0; k < vm->nr_blobs; k++) {
		vm->nr_new += vm->blobs[k].fresh;
		vm->nr_retired += vm->blobs[k].retired;
	}
	/* Of code that was read before them. */
	for (uint32_t k = e->nr_settled; k < e->nr_recorded; k++)
		if (e->recorded[k].exact)
			hotspots_take_call(e, e->recorded[k].addr);
	e->nr_settled = e->nr_recorded;
	hotspots_take_code(h, e, time_ns);
	hotspot_job_forget(e->reading);
	e->max_methods = 0;
	e->methods_size = 0;
	for (uint32_t k = 0; k < vm->nr_blobs; k++)
		vm->blobs[k].fresh = false;
	hotspots_count(h, e);
	if (e->left_out)
		object_explain(objects_at(h->objects, e->object),
			       "the recording has too much code: some is left out", NULL);
}

/* Return the blobs that settling visits, and others that cost as much. */
static uint64_t cost_of(const struct hotspots_entry *e)
{
	/* Ranges are sorted again. */
	return e->reading->vm.nr_blobs + e->nr_calls + 8ULL * e->nr_ranges;
}

bool hotspots_settle(struct hotspots *h, uint64_t time_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct hotspots_entry *e = h->entries[i];

		/* Over budget: it is settled together with later records. */
		if (!e->pending || !e->reading ||
		    !spend(&e->spent_settling, e->nr_taken, cost_of(e)))
			continue;
		e->pending = false;
		changed = true;
		settle(h, e, time_ns);
	}
	return changed;
}

/* Sort the chains, once for all that were settled since. */
static void sort_recorded(struct hotspots_entry *e)
{
	if (e->nr_sorted != e->nr_settled)
		qsort(e->recorded, e->nr_settled, sizeof(*e->recorded), by_place);
	e->nr_sorted = e->nr_settled;
}

void hotspots_find_recorded(struct hotspots_entry *e, uint32_t layer, uint64_t addr, uint32_t place)
{
	const struct hotspot_job_chain key = { .addr = addr, .layer = layer };
	struct hotspot_job_chain *found;

	sort_recorded(e);
	found = e->nr_sorted ? bsearch(&key, e->recorded, e->nr_sorted, sizeof(key), by_place)
			     : NULL;
	if (!found || !found->frames ||
	    !array_reserve(&e->found, &e->max_found, e->nr_found + 1ull))
		return;
	found->place = place;
	e->found[e->nr_found++] = *found;
	found->frames = NULL; /* a place requests its chain once */
}
