// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All sampled JVMs: when each is read again, the job that reads it, inlined methods on request,
 * limits of their memory.
 */
#include "symbols/java/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/script/script.h"

#define JVM_TABLE_INTERVAL_NS 100000000ULL /* at least between two scans */

/*
 * Methods inlined at sampled addresses: requests for a job, and their results.
 *
 * Runs on: the loader.
 */

#define INLINES_MAX 4096U

/* Return whether @layer is the newest at @addr: only chains of the newest code can be read. */
static bool jvm_table_is_latest(const struct jvm_table_entry *e, uint32_t layer, uint64_t addr)
{
	const struct jitcode_function *f = jitcode_latest(e->code, addr);

	return f && f->layer == layer;
}

/* Note that the newest code at look-up pc @pc describes the call there. */
static void jvm_table_take_call(struct jvm_table_entry *e, uint64_t pc)
{
	const struct jitcode_function *f = jitcode_latest(e->code, pc);
	uint32_t at = search_split(e->nr_calls, i, e->calls[i].pc < pc);

	assert(e->nr_calls <= JVM_TABLE_CALLS_MAX);
	if (!f)
		return;
	if (at == e->nr_calls || e->calls[at].pc != pc) {
		if (e->nr_calls == JVM_TABLE_CALLS_MAX ||
		    !array_reserve(&e->calls, &e->max_calls, e->nr_calls + 1ull))
			return;
		memmove(e->calls + at + 1, e->calls + at, (e->nr_calls - at) * sizeof(*e->calls));
		e->nr_calls++;
	}
	e->calls[at] = (struct jvm_table_call){ pc, f->serial };
	e->new_calls = true;
}

/* Copy the calls of code that is still there; returns their number. */
static uint32_t jvm_table_put_calls(const struct jvm_table_entry *e, const struct jvm_read *vm,
				    uint64_t *calls)
{
	uint32_t nr = 0, blob = 0;

	for (uint32_t i = 0; i < e->nr_calls; i++) {
		const struct jvm_table_call *c = &e->calls[i];

		while (blob < vm->nr_blobs && vm->blobs[blob].end <= c->pc)
			blob++;
		if (blob < vm->nr_blobs && vm->blobs[blob].start <= c->pc &&
		    vm->blobs[blob].compile_id == c->compile_id)
			calls[nr++] = c->pc;
	}
	return nr;
}

/* Keep the chains that @r has read, to be returned, except of replaced code. */
static void jvm_table_keep_chains(struct jvm_table_entry *e, struct jvm_read_job *r)
{
	for (uint32_t i = 0; i < r->nr_chains; i++) {
		struct jvm_read_job_chain *c = &r->chains[i];

		if (jvm_table_is_latest(e, c->layer, c->addr)) {
			if (c->nr && c->exact)
				jvm_table_take_call(e, c->addr);
			continue;
		}
		free(c->frames);
		c->frames = NULL;
		c->nr = 0;
	}
	if (e->nr_found) { /* the loader is late: a new request follows when its places are named
			      again */
		jvm_read_job_free_chains(r->chains, r->nr_chains);
	} else {
		free(e->found);
		e->found = r->chains;
		e->nr_found = r->nr_chains;
		e->found_memory = r->inlines_memory + r->nr_chains * sizeof(*r->chains);
	}
	r->chains = NULL;
	r->nr_chains = 0;
}

/* Find the JVM with the memory @object; NULL: none. */
static struct jvm_table_entry *jvm_table_find_entry(const struct jvm_table *h,
						    const struct object *object)
{
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		const struct object *base = objects_at(h->objects, h->entries[i]->object);

		if (base->identity.owner == object->identity.owner)
			return h->entries[i];
	}
	return NULL;
}

static void jvm_table_find_recorded(struct jvm_table_entry *e, uint32_t layer, uint64_t addr,
				    uint32_t place);

void jvm_table_want_chain(struct jvm_table *h, const struct object *object, uint64_t addr,
			  uint32_t place)
{
	struct jvm_table_entry *e = h->maps && h->helpers ? jvm_table_find_entry(h, object) : NULL;

	if (e && h->recorded)
		jvm_table_find_recorded(e, object->identity.layer, addr, place);
	if (!e || h->recorded || !e->reading || object->identity.layer == JVM_TABLE_METHODS ||
	    e->nr_chains >= INLINES_MAX || !jvm_table_is_latest(e, object->identity.layer, addr))
		return;
	if (!array_reserve(&e->chains, &e->max_chains, e->nr_chains + 1ull))
		return;
	e->chains[e->nr_chains++] = (struct jvm_read_job_chain){ .addr = addr,
								 .place = place,
								 .layer = object->identity.layer };
}

bool jvm_table_take_chain(struct jvm_table *h, struct jvm_table_chain *out)
{
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct jvm_table_entry *e = h->entries[i];

		while (e->nr_found) {
			struct jvm_read_job_chain *r = &e->found[--e->nr_found];

			if (!r->nr)
				continue;
			if (h->result)
				free(h->result->frames);
			else
				h->result = calloc(1, sizeof(*h->result));
			if (!h->result) {
				free(r->frames);
				continue;
			}
			*h->result = *r;
			*out = (struct jvm_table_chain){ r->place, r->addr, e->object, r->frames,
							 r->nr };
			return true;
		}
	}
	return false;
}

/*
 * Bytes that JVMs take, and the limits of one user and of all.
 *
 * Runs on: the loader; a replay.
 */

/* Return the bytes of @e: without the code that a job has read since it began. */
static size_t memory_of(struct jvm_table_entry *e)
{
	if (!e->reading)
		e->code_memory = 0;
	else if (!e->runs)
		e->code_memory = e->reading->vm.memory;
	return sizeof(*e) + e->code_memory + jitcode_memory(e->code) + jitcode_memory(e->methods) +
	       (e->map ? codemap_memory(e->map) : 0) + e->nr_ranges * sizeof(*e->ranges) +
	       e->max_calls * sizeof(*e->calls) + (e->nr_found ? e->found_memory : 0) +
	       e->max_recorded * sizeof(*e->recorded) + e->recorded_size +
	       e->max_methods * sizeof(*e->reading->methods) + e->methods_size;
}

/* Count the bytes of @e in the sum of all. */
static void jvm_table_count(struct jvm_table *h, struct jvm_table_entry *e)
{
	size_t memory = memory_of(e);

	atomic_fetch_add_explicit(&h->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
}

/* Take @e, which leaves, out of that sum. */
static void jvm_table_discount(struct jvm_table *h, struct jvm_table_entry *e)
{
	atomic_fetch_sub_explicit(&h->memory, e->memory, memory_order_relaxed);
	e->memory = 0;
}

/* Return the bytes of the processes of @uid. */
static size_t memory_of_user(const struct jvm_table *h, uint32_t uid)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < h->nr_entries; i++)
		if (h->entries[i]->uid == uid)
			sum += h->entries[i]->memory;
	return sum;
}

/* Return 0 if @e may take @more bytes; -ENOSPC: all JVMs, or the ones of its user, are full. */
static int jvm_table_admit(struct jvm_table *h, struct jvm_table_entry *e, size_t more)
{
	jvm_table_count(h, e);
	if (atomic_load_explicit(&h->memory, memory_order_relaxed) + more > JVM_TABLE_MEMORY_MAX)
		return -ENOSPC;
	if (!h->recorded && memory_of_user(h, e->uid) + more > JVM_TABLE_USER_MEMORY)
		return -ENOSPC;
	return 0;
}

/* Add a function to @code of @e; -E2BIG, -ENOSPC: there is no memory for it. */
static int jvm_table_add_code(struct jvm_table *h, struct jvm_table_entry *e, struct jitcode *code,
			      const struct jitcode_load *load)
{
	size_t more = jitcode_growth(code, load->name_size);
	size_t names = jitcode_memory(e->code) + jitcode_memory(e->methods);
	int rc = more ? jvm_table_admit(h, e, more) : 0;

	if (more && names + more > JVM_TABLE_NAMES_MEMORY)
		rc = -E2BIG;
	if (rc)
		e->refused = rc;
	return rc ? rc : jitcode_add(code, load);
}

/*
 * When a JVM is read again: a hostile one makes each reading as expensive, or as slow, as it can.
 *
 * Runs on: the loader.
 */

#define COST_FACTOR 100U	  /* a scan takes at most a hundredth of a CPU */
#define NEW_FACTOR  25U		  /* but more while the JVM compiles: unknown code has no callers */
#define COST_MAX_NS 1000000000ULL /* but the names of much new code are read once */
#define WANT_FACTOR 10U		  /* in any case, and of look-ups: at most a tenth of a CPU */
#define FEW	    32U /* addresses: most of a look-up's cost does not depend on their number */
#define FEW_FACTOR  40U /* so after few of them the next ones wait for more */
#define JOBS_MAX    JVM_READ_READERS /* of the helpers, most are for files */
#define JOBS_USER   6U

/* Set when @e, whose reading has ended, is read again. */
static void jvm_table_rest(struct jvm_table_entry *e, uint64_t now_ns)
{
	const struct jvm_read_job *r = e->reading;
	uint32_t nr = r->nr_pcs + r->nr_methods + r->nr_chains;
	uint64_t look_up_ns =
		(r->cost_ns - r->scan_ns) * (nr && nr < FEW ? FEW_FACTOR : WANT_FACTOR);
	uint64_t scan_ns = r->scan_ns * (r->vm.nr_new ? NEW_FACTOR : COST_FACTOR);
	/* A reading that hangs needs no CPU time, but its helper: half of the time at most. */
	uint64_t took_ns = now_ns - e->began_ns;

	scan_ns = MIN(scan_ns, MAX(COST_MAX_NS, r->scan_ns * WANT_FACTOR));
	/* No rest after it was opened: all of its samples wait for names. */
	e->due_ns = now_ns + (r->rc || e->scanned_ns ? MAX(look_up_ns, took_ns) : 0);
	if (r->scan)
		e->scan_due_ns = now_ns + MAX(JVM_TABLE_INTERVAL_NS, MAX(scan_ns, took_ns));
}

/* Return whether @e may be read now, beside the readings that run. */
static bool jvm_table_has_turn(const struct jvm_table *h, const struct jvm_table_entry *e)
{
	uint32_t nr = jvm_read_job_nr_left(), nr_user = 0;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		nr += h->entries[i]->runs;
		nr_user += h->entries[i]->runs && h->entries[i]->uid == e->uid;
	}
	/* In a pass, the place of one that has ended goes to the ones behind it. */
	return nr < JOBS_MAX && nr_user < JOBS_USER;
}

/*
 * Follow the code caches of JVMs.
 *
 * Runs on: the loader; a jvm_read_job on a helper. Invariant: a job in progress
 * owns its struct jvm_read_job, the entry has no pointer into it but the job.
 */

#define HANG_NS	   2000000000ULL  /* a read that takes longer is left */
#define JOB_NS	   60000000000ULL /* all reads of a job: on a busy machine it waits for a CPU */
#define RETRY_NS   1000000000ULL
#define FULL_NS	   10000000000ULL /* while JVMs take all memory that they may */
#define KEEP_NS	   60000000000ULL /* code of one that has ended: its places have names by then */
#define TRIES_MAX  5U		  /* for libjvm.so, which the launcher loads late */
#define WANTED_MAX 1024U	  /* methods read by one job */
#define PCS_MAX	   256U

void jvm_table_init(struct jvm_table *h, struct objects *objects)
{
	memset(h, 0, sizeof(*h));
	h->objects = objects;
	h->keep_ns = KEEP_NS;
}

static void end_reading(struct jvm_table_entry *e)
{
	if (!e->reading)
		return;
	if (e->runs) {
		jvm_read_sandbox_leave(e->reading);
		jvm_read_job_leave(e->reading);
	} else {
		jvm_read_sandbox_end(e->reading);
		jvm_read_job_drop(&e->reading->job);
	}
	e->reading = NULL;
	e->runs = false;
}

static void publish(struct jvm_table *h, struct jvm_table_entry *e, const struct codemap *map)
{
	codemap_publish(objects_at(h->objects, e->object), map);
	for (uint32_t i = 1; i < JITCODE_LAYERS; i++)
		if (e->layers[i])
			codemap_publish(e->layers[i], map);
	codemap_reclaim(e->map);
	e->map = map;
}

static void free_entry(struct jvm_table *h, struct jvm_table_entry *e)
{
	jvm_table_discount(h, e);
	end_reading(e);
	if (h->log)
		script_log_forget(h->log,
				  (uint32_t)objects_at(h->objects, e->object)->identity.owner);
	publish(h, e, NULL);
	jitcode_free(e->code);
	jitcode_free(e->methods);
	free(e->ranges);
	free(e->queue);
	free(e->pcs);
	free(e->chains);
	free(e->calls);
	jvm_read_job_free_chains(e->found, e->nr_found);
	jvm_read_job_free_chains(e->recorded, e->nr_recorded);
	free(e);
}

void jvm_table_fini(struct jvm_table *h)
{
	for (uint32_t i = 0; i < h->nr_entries; i++)
		free_entry(h, h->entries[i]);
	free(h->entries);
	jvm_read_job_free_chains(h->result, h->result ? 1 : 0);
	memset(h, 0, sizeof(*h));
}

/* The object of the same process's memory in @layer. */
static struct object *layer_object(struct jvm_table *h, const struct object *object, uint32_t layer)
{
	struct object_identity identity = object->identity;
	struct object_sighting seen;
	struct object *found;

	identity.layer = layer;
	objects_sighting(h->objects, object, &seen);
	found = objects_intern(h->objects, &identity, "//anon", 6, seen.pid, seen.start, seen.end);
	free(seen.path);
	return found->identity.kind == OBJECT_ANON ? found : NULL;
}

/*
 * Evict the least recently sampled process that has ended or is no JVM. @uid: one of that user;
 * UINT32_MAX: of any. False: there is none.
 */
static bool evict_entry(struct jvm_table *h, uint32_t uid)
{
	uint32_t oldest = h->nr_entries, oldest_used = UINT32_MAX;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		const struct object *base = objects_at(h->objects, h->entries[i]->object);
		uint32_t used = atomic_load_explicit(&base->used, memory_order_relaxed);

		if (h->entries[i]->reading || used >= oldest_used ||
		    (uid != UINT32_MAX && h->entries[i]->uid != uid))
			continue;
		oldest = i;
		oldest_used = used;
	}
	if (oldest == h->nr_entries)
		return false;
	free_entry(h, h->entries[oldest]);
	h->entries[oldest] = h->entries[--h->nr_entries];
	return true;
}

/* Make room for a process of @uid: in the table, and in the part of that user. */
static bool make_room(struct jvm_table *h, uint32_t uid)
{
	uint32_t nr = 0;

	if (h->recorded)
		return h->nr_entries < JVM_TABLE_MAX;
	for (uint32_t i = 0; i < h->nr_entries; i++)
		nr += h->entries[i]->uid == uid;
	if (nr >= JITREADS_USER(JVM_TABLE_MAX))
		return evict_entry(h, uid);
	return h->nr_entries < JVM_TABLE_MAX || evict_entry(h, UINT32_MAX);
}

static struct jvm_table_entry *jvm_table_add_entry(struct jvm_table *h, const struct object *object)
{
	const struct object *base = layer_object(h, object, 0);
	struct jvm_table_entry **entries, *e;
	struct object_sighting seen;
	uint32_t uid = base && !h->recorded ? jitreads_user_with(h->objects, base) : UINT32_MAX;

	if (!base || !make_room(h, uid))
		return NULL;
	entries = reallocarray(h->entries, h->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	h->entries = entries;
	e = calloc(1, sizeof(*e));
	if (!e || jitcode_new(&e->code) || jitcode_new(&e->methods)) {
		if (e)
			jitcode_free(e->code);
		free(e);
		return NULL;
	}
	objects_sighting(h->objects, base, &seen);
	free(seen.path);
	e->object = base->id;
	e->methods_object = OBJECT_ID_UNKNOWN;
	e->pid = seen.pid;
	e->uid = uid;
	e->reading = jvm_read_job_new(seen.pid, jvm_read_sandbox_run);
	h->entries[h->nr_entries++] = e;
	return e;
}

/* Move the requests of @e into the job. */
static void take_requests(struct jvm_table_entry *e, struct jvm_read_job *r)
{
	uint32_t nr = MIN(e->nr_queue, WANTED_MAX);

	r->pcs = e->pcs;
	r->nr_pcs = e->nr_pcs;
	e->pcs = NULL;
	e->nr_pcs = e->max_pcs = 0;
	r->methods = nr ? calloc(nr, sizeof(*r->methods)) : NULL;
	r->nr_methods = r->methods ? nr : 0;
	for (uint32_t i = 0; i < r->nr_methods; i++)
		r->methods[i].method = e->queue[i];
	r->chains = e->chains;
	r->nr_chains = e->nr_chains;
	e->chains = NULL;
	e->nr_chains = e->max_chains = 0;
}

static void start_reading(struct jvm_table *h, struct jvm_table_entry *e, uint64_t now_ns)
{
	struct jvm_read_job *r = e->reading;
	/* A scan that is due earlier does not wait for look-ups, nor they for it. */
	bool wants = e->due_ns <= now_ns && (e->nr_queue || e->nr_pcs || e->nr_chains);

	if (!r || e->runs || (e->scan_due_ns > now_ns && !wants) || !jvm_table_has_turn(h, e))
		return;
	r->scan = e->scan_due_ns <= now_ns;
	if (wants)
		take_requests(e, r);
	if (helpers_start(h->helpers, &r->job)) {
		if (wants) {
			e->chains = r->chains;
			e->nr_chains = e->max_chains = r->nr_chains;
		}
		r->chains = NULL;
		r->nr_chains = 0;
		jvm_read_job_forget(r);
		e->due_ns = e->scan_due_ns = now_ns + JVM_TABLE_INTERVAL_NS;
		return;
	}
	e->nr_queue -= r->nr_methods;
	if (e->nr_queue)
		memmove(e->queue, e->queue + r->nr_methods, e->nr_queue * sizeof(*e->queue));
	e->runs = true;
	e->began_ns = now_ns;
}

/* Set the reason for missing names and its fix, for Modules. */
static void explain(struct object *object, int rc)
{
	static const struct object_reason words[] = {
		{ -EPERM, "no permission to read the JVM's code cache",
		  "run proftop as root or with cap_sys_ptrace" },
		{ -EACCES, "no permission to read the JVM's code cache",
		  "run proftop as root or with cap_sys_ptrace" },
		{ -ENODATA, "this version of the JVM is not known", "use a perf map or jitdump" },
		{ -EBADMSG, "the JVM's code cache makes no sense", "use a perf map or jitdump" },
		{ -ETIME, "reading the JVM's memory hangs", NULL },
		{ -E2BIG, "the JVM has too much code: some has no names", NULL },
		{ -ENOSPC, "code of JVMs takes too much memory", "profile fewer processes" },
	};

	object_explain_code(object, rc, words, ARRAY_SIZE(words));
}

/* Take the compiled code that is new. */
static void take_blobs(struct jvm_table *h, struct jvm_table_entry *e, const struct jvm_read *vm,
		       uint64_t time_ns)
{
	for (uint32_t i = 0; i < vm->nr_blobs; i++) {
		const struct jvm_read_blob *b = &vm->blobs[i];
		struct jitcode_load load = {
			.start = b->start,
			.size = b->end - b->start,
			.time_ns = time_ns,
			.serial = b->compile_id,
			.name = b->name,
			.name_size = b->name_size,
		};

		if (b->fresh && b->name && !jvm_table_add_code(h, e, e->code, &load))
			e->news = true;
	}
}

/* Report code that took the place of other code to the maps. */
static void report_layers(struct jvm_table *h, struct jvm_table_entry *e)
{
	const struct object *base = objects_at(h->objects, e->object);
	const struct jitcode_function *f;
	bool any = false;

	while ((f = jitcode_next_over(e->code))) {
		if (!e->layers[f->layer]) {
			e->layers[f->layer] = layer_object(h, base, f->layer);
			if (e->layers[f->layer])
				codemap_publish(e->layers[f->layer], e->map);
		}
		maps_on_code(h->maps, base, f->layer, f->start, f->start + f->size, f->time_ns);
		any = true;
	}
	if (any)
		maps_settle(h->maps);
}

static int by_method(const void *a, const void *b)
{
	const struct codemap_method *x = a, *y = b;

	return COMPARE(x->method, y->method);
}

/* Take the names of interpreted methods. True: there are new ones. */
static bool take_methods(struct jvm_table *h, struct jvm_table_entry *e,
			 const struct jvm_read_job *r, uint64_t time_ns)
{
	struct codemap_method *ranges;
	uint32_t before = e->nr_ranges;

	ranges = reallocarray(e->ranges, e->nr_ranges + r->nr_methods + 1, sizeof(*ranges));
	if (!ranges)
		return false;
	e->ranges = ranges;
	for (uint32_t i = 0; i < r->nr_methods; i++) {
		const struct jvm_read_method_name *m = &r->methods[i];
		struct jitcode_load load = {
			.start = m->method,
			.size = 1,
			.time_ns = time_ns,
			.name = m->name ? m->name : "[interpreter]",
		};

		load.name_size = strlen(load.name);
		if (jvm_table_add_code(h, e, e->methods, &load) || !m->name)
			continue;
		ranges[e->nr_ranges++] =
			(struct codemap_method){ m->method, m->code, m->code_size };
		e->news = true;
	}
	qsort(ranges, e->nr_ranges, sizeof(*ranges), by_method);
	return e->nr_ranges != before;
}

static enum codemap_kind kind_of(const struct jvm_read_blob *b)
{
	if (b->kind == JVM_READ_INTERPRETER)
		return CODEMAP_INTERPRETER;
	return b->frame_words ? CODEMAP_FIXED : CODEMAP_OTHER;
}

/* Build the unwinder's table again. */
static void publish_map(struct jvm_table *h, struct jvm_table_entry *e, const struct jvm_read *vm)
{
	struct codemap *map = codemap_new(vm->nr_blobs, e->nr_ranges, e->nr_calls);
	const struct object *methods;

	if (!map)
		return;
	if (e->methods_object == OBJECT_ID_UNKNOWN) {
		methods = layer_object(h, objects_at(h->objects, e->object), JVM_TABLE_METHODS);
		e->methods_object = methods ? methods->id : OBJECT_ID_UNKNOWN;
	}
	map->methods_object = e->methods_object;
	for (uint32_t i = 0; i < vm->nr_blobs; i++) {
		const struct jvm_read_blob *b = &vm->blobs[i];

		map->codes[i] = (struct codemap_code){
			.start = b->start,
			.size = (uint32_t)(b->end - b->start),
			.complete = b->complete,
			.frame_words = b->frame_words,
			.kind = kind_of(b),
			.retired = b->retired,
			.java = b->kind != JVM_READ_STUB,
			.inlines = b->inlines,
			.blind = b->blind,
			.deopt = b->deopt,
			.exits = b->exits,
		};
	}
	map->nr_retired = vm->nr_retired;
	map->call_return = vm->call_return;
	map->untried = vm->untried;
	if (e->nr_ranges)
		memcpy((void *)(uintptr_t)map->methods, e->ranges,
		       e->nr_ranges * sizeof(*e->ranges));
	map->nr_calls = jvm_table_put_calls(e, vm, (uint64_t *)(uintptr_t)map->calls);
	e->new_calls = false;
	publish(h, e, map);
}

/* Take the code and the methods of the reading that are new at @time_ns. */
static void jvm_table_take_code(struct jvm_table *h, struct jvm_table_entry *e, uint64_t time_ns)
{
	struct object *base = objects_at(h->objects, e->object);
	struct jvm_read_job *r = e->reading;
	uint32_t before = e->map ? e->map->nr_codes : 0;
	bool methods;

	take_blobs(h, e, &r->vm, time_ns);
	methods = take_methods(h, e, r, time_ns);
	report_layers(h, e);
	if (methods || e->new_calls || r->vm.nr_new || r->vm.nr_blobs != before ||
	    (e->map && r->vm.nr_retired != e->map->nr_retired))
		publish_map(h, e, &r->vm);
	object_credit(base, "JVM", jitcode_nr(e->code));
	if (e->refused)
		explain(base, e->refused);
	else if (r->vm.untried)
		object_explain(base, "frames of Java are guesses: this version is untested",
			       "none: native frames are exact");
	else
		object_explain(base, NULL, NULL);
}

static void jvm_table_keep_code(const struct jvm_table_keeper *k, const struct jvm_read_blob *b);

static void jvm_table_keep_method(const struct jvm_table_keeper *k, uint64_t method,
				  const char *name, uint64_t bytecodes, uint32_t size);

static void jvm_table_keep_chain(const struct jvm_table_keeper *k,
				 const struct jvm_read_job_chain *chain);

/* Keep the results of a reading for a recording. */
static void keep_reading(const struct jvm_table *h, const struct jvm_table_entry *e,
			 uint64_t now_ns)
{
	const struct object *base = objects_at(h->objects, e->object);
	const struct jvm_read_job *r = e->reading;
	const struct jvm_read *vm = &r->vm;
	const struct jvm_table_keeper k = {
		.log = vm->nr_blobs ? h->log : NULL,
		.process = base->identity.owner,
		.time_ns = now_ns,
		.memory = vm->nr_blobs ? vm->blobs[0].start : 0,
		.call_return = vm->call_return,
		.untried = vm->untried,
		.pid = (uint32_t)r->remote.pid,
	};

	for (uint32_t i = 0; i < vm->nr_blobs; i++)
		if (vm->blobs[i].fresh || (vm->blobs[i].retired && r->scan))
			jvm_table_keep_code(&k, &vm->blobs[i]);
	for (uint32_t i = 0; i < r->nr_methods; i++)
		if (r->methods[i].name)
			jvm_table_keep_method(&k, r->methods[i].method, r->methods[i].name,
					      r->methods[i].code, r->methods[i].code_size);
	for (uint32_t i = 0; i < r->nr_chains; i++)
		if (r->chains[i].nr &&
		    jvm_table_is_latest(e, r->chains[i].layer, r->chains[i].addr))
			jvm_table_keep_chain(&k, &r->chains[i]);
}

/* Free the code of @e, which is beyond the limit of memory: it is read again later. */
static void wait_for_memory(struct jvm_table_entry *e, uint64_t now_ns)
{
	jvm_read_forget_code(&e->reading->vm);
	e->due_ns = e->scan_due_ns = MAX(e->due_ns, now_ns + FULL_NS);
	e->tries = MAX(e->tries, 1U); /* no sample waits for it */
}

/* Take over the result of a finished reading. */
static void take_reading(struct jvm_table *h, struct jvm_table_entry *e, uint64_t now_ns)
{
	struct object *base = objects_at(h->objects, e->object);
	struct jvm_read_job *r = e->reading;

	e->runs = false;
	if (!r->rc)
		r->rc = jvm_table_admit(h, e, r->vm.nr_blobs * sizeof(struct codemap_code));
	jvm_table_rest(e, now_ns);
	if (r->rc) {
		jvm_table_keep_chains(e, r);
		jvm_read_job_forget(r);
		explain(base, r->rc);
		e->due_ns = MAX(e->due_ns, now_ns + RETRY_NS);
		e->scan_due_ns = e->due_ns = MAX(e->due_ns, e->scan_due_ns);
		if (r->rc == -ENOSPC)
			wait_for_memory(e, now_ns);
		/* A JVM may still be starting: try again a few times. */
		else if (r->rc != -EAGAIN && ++e->tries >= TRIES_MAX)
			end_reading(e);
		jvm_table_count(h, e);
		return;
	}
	e->tries = 0;
	jvm_table_take_code(h, e, e->scanned_ns ? e->scanned_ns : now_ns);
	if (r->scan)
		e->scanned_ns = e->began_ns;
	keep_reading(h, e, now_ns);
	jvm_table_keep_chains(e, r);
	jvm_read_job_forget(r);
	jvm_table_count(h, e);
}

/* Put @method into the queue of methods to read, once. */
static void want_method(struct jvm_table_entry *e, uint64_t method)
{
	uint64_t *queue;

	for (uint32_t i = 0; i < e->nr_queue; i++)
		if (e->queue[i] == method)
			return;
	if (e->nr_queue == WANTED_MAX || jitcode_nr(e->methods) >= JVM_TABLE_METHODS_MAX)
		return;
	queue = reallocarray(e->queue, e->nr_queue + 1, sizeof(*queue));
	if (!queue)
		return;
	e->queue = queue;
	queue[e->nr_queue++] = method;
}

/* Have the code at @pc read, once. */
static void want_code(struct jvm_table_entry *e, uint64_t pc)
{
	for (uint32_t i = 0; i < e->nr_pcs; i++)
		if (e->pcs[i] == pc)
			return;
	if (e->nr_pcs < PCS_MAX && array_reserve(&e->pcs, &e->max_pcs, e->nr_pcs + 1ull))
		e->pcs[e->nr_pcs++] = pc;
}

int jvm_table_find(struct jvm_table *h, struct object *object, uint64_t addr,
		   struct jvm_table_symbol *out)
{
	bool methods = object->identity.layer == JVM_TABLE_METHODS;
	const struct jitcode_function *f;
	struct jvm_table_entry *e;
	struct jitcode *code;

	if (h->off || !h->maps || !h->helpers)
		return -ENOENT;
	e = jvm_table_find_entry(h, object);
	if (!e && !h->recorded)
		e = jvm_table_add_entry(h, object);
	if (!e)
		return -ENOENT;
	code = methods ? e->methods : e->code;
	f = jitcode_find(code, methods ? 0 : object->identity.layer, addr);
	if (f) {
		out->start = f->start;
		out->name = jitcode_text(code, f->name);
		out->name_size = f->name_size;
		return 0;
	}
	if (!e->reading || h->recorded)
		return -ENOENT;
	e->wanted = true;
	if (methods)
		want_method(e, addr);
	else if (e->map)
		want_code(e, addr);
	/* Not known yet: the first reading decides whether it is Java. */
	return methods || (!e->map && !e->tries) ? -EAGAIN : -ENOENT;
}

/* Return whether code of the process is still sampled. Otherwise its cache is not read. */
static bool is_active(const struct jvm_table *h, const struct jvm_table_entry *e, uint64_t now_ns)
{
	const struct object *base = objects_at(h->objects, e->object);
	uint32_t used = atomic_load_explicit(&base->used, memory_order_relaxed);

	return e->nr_queue || e->nr_pcs || e->nr_chains || e->wanted ||
	       used + 2 >= object_clock(now_ns);
}

/* Close /proc/PID of a process that has ended, and free the copies of its JVM. */
static void end_if_gone(struct jvm_table *h, struct jvm_table_entry *e, uint64_t now_ns)
{
	if (!e->reading || e->reading->dir_fd < 0 || now_ns < e->check_ns)
		return;
	e->check_ns = now_ns + RETRY_NS;
	if (faccessat(e->reading->dir_fd, "stat", F_OK, 0)) {
		end_reading(e);
		jvm_table_count(h, e);
	}
}

static bool hangs(const struct jvm_table_entry *e, uint64_t now_ns)
{
	return watch_blocked_ns(&e->reading->job.watch, now_ns) > HANG_NS ||
	       now_ns - e->began_ns > JOB_NS;
}

/* Free the code of processes that ended long ago. */
static void drop_expired(struct jvm_table *h, uint64_t now_ns)
{
	for (uint32_t i = 0; i < h->nr_entries && !h->recorded;) {
		struct jvm_table_entry *e = h->entries[i];

		if (e->runs || !jitreads_expired(&e->end, e->pid, now_ns, h->keep_ns)) {
			i++;
			continue;
		}
		free_entry(h, e);
		h->entries[i] = h->entries[--h->nr_entries];
	}
}

uint32_t jvm_table_refresh(struct jvm_table *h, uint64_t now_ns)
{
	uint32_t object = OBJECT_ID_UNKNOWN;

	drop_expired(h, now_ns);
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct jvm_table_entry *e = h->entries[i];

		if (e->runs && helper_job_done(&e->reading->job)) {
			take_reading(h, e, now_ns);
		} else if (e->runs && hangs(e, now_ns)) {
			explain(objects_at(h->objects, e->object), -ETIME);
			end_reading(e);
			jvm_table_count(h, e);
		} else if (!e->runs && !h->recorded && is_active(h, e, now_ns)) {
			start_reading(h, e, now_ns);
		} else if (!e->runs && !h->recorded) {
			end_if_gone(h, e, now_ns);
		}
		if (object == OBJECT_ID_UNKNOWN && e->news && e->wanted) {
			e->news = e->wanted = false;
			object = e->object;
		}
	}
	return object;
}

/*
 * Code of JVMs kept for recordings, and taken from them.
 */

#define NO_FILE "-" /* a recorded function has a file */

/* A frame of a chain; the texts follow. */
struct kept_frame {
	uint32_t line;
	uint16_t name_size, file_size;
};

static void keep(const struct jvm_table_keeper *k, const struct code_key *key, const char *name,
		 const void *table, size_t size)
{
	const struct code_text text = {
		.language = LANG_JAVA,
		.name_size = (uint16_t)MIN(strlen(name), SCRIPT_FUNCTIONS_TEXT_MAX),
		.file_size = sizeof(NO_FILE) - 1,
		.table_size = (uint32_t)size,
		.name = name,
		.file = NO_FILE,
		.table = table,
	};

	if (*name)
		script_log_add(k->log, key, &text);
}

static struct jvm_table_kept begin(const struct jvm_table_keeper *k, enum jvm_table_kept_kind kind)
{
	return (struct jvm_table_kept){
		.time_ns = k->time_ns,
		.memory = k->memory,
		.pid = k->pid,
		.kind = kind,
		.call_return = k->call_return,
	};
}

static struct code_key key_of(const struct jvm_table_keeper *k, const struct jvm_table_kept *kept,
			      uint64_t stamp)
{
	return (struct code_key){ .process = (uint32_t)k->process,
				  .address = kept->start,
				  .stamp = stamp << 2 | kept->kind };
}

static void jvm_table_keep_code(const struct jvm_table_keeper *k, const struct jvm_read_blob *b)
{
	struct jvm_table_kept kept = begin(k, JVM_TABLE_KEPT_CODE);
	struct code_key key;

	if (!k->log || !b->name)
		return;
	kept.memory = kept.start = b->start;
	kept.end = b->end;
	kept.deopt = b->deopt;
	kept.bytecodes = b->exits;
	kept.compile_id = b->compile_id;
	kept.frame_words = b->frame_words;
	kept.complete = b->complete;
	kept.code_kind = b->kind;
	kept.flags = (b->retired ? JVM_TABLE_KEPT_RETIRED : 0) |
		     (b->inlines ? JVM_TABLE_KEPT_INLINES : 0) |
		     (b->blind ? JVM_TABLE_KEPT_BLIND : 0) |
		     (k->untried ? JVM_TABLE_KEPT_UNTRIED : 0);
	key = key_of(k, &kept,
		     hash_u64(b->compile_id ^ b->method << 8 ^ b->end << 1 ^ (uint64_t)b->retired));
	keep(k, &key, b->name, &kept, sizeof(kept));
}

static void jvm_table_keep_method(const struct jvm_table_keeper *k, uint64_t method,
				  const char *name, uint64_t bytecodes, uint32_t size)
{
	struct jvm_table_kept kept = begin(k, JVM_TABLE_KEPT_METHOD);
	struct code_key key;

	if (!k->log)
		return;
	kept.start = method;
	kept.bytecodes = bytecodes;
	kept.bytecodes_size = size;
	key = key_of(k, &kept, 0);
	keep(k, &key, name, &kept, sizeof(kept));
}

static void jvm_table_keep_chain(const struct jvm_table_keeper *k,
				 const struct jvm_read_job_chain *chain)
{
	const struct jvm_read_job_frame *frames = chain->frames;
	const uint32_t nr = chain->nr;
	struct jvm_table_kept kept = begin(k, JVM_TABLE_KEPT_CHAIN);
	uint8_t table[SCRIPT_FUNCTIONS_TABLE_MAX], *at = table + sizeof(kept);
	struct code_key key;

	assert(nr <= JVM_READ_FRAMES_MAX);
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
	kept.flags = chain->exact ? JVM_TABLE_KEPT_EXACT : 0;
	kept.nr = nr;
	memcpy(table, &kept, sizeof(kept));
	key = key_of(k, &kept, chain->layer);
	keep(k, &key, nr ? frames[nr - 1].name : "", table, (size_t)(at - table));
}

static bool is_code(const struct jvm_table_kept *k)
{
	return k->start < k->end && k->code_kind <= JVM_READ_INTERPRETER && k->memory == k->start &&
	       k->end - k->start <= JITCODE_SIZE_MAX && k->frame_words < 65536;
}

bool jvm_table_kept(const struct code_text *text, struct jvm_table_kept *out)
{
	if (text->table_size < sizeof(*out))
		return false;
	memcpy(out, text->table, sizeof(*out));
	switch (out->kind) {
	case JVM_TABLE_KEPT_CODE:
		return is_code(out);
	case JVM_TABLE_KEPT_METHOD:
		return out->start && out->start % 8 == 0 && out->bytecodes_size <= UINT16_MAX;
	case JVM_TABLE_KEPT_CHAIN:
		return out->nr && out->nr <= JVM_READ_FRAMES_MAX && out->layer < JITCODE_LAYERS;
	default:
		return false;
	}
}

/* Return the bytes of the frames of a chain. */
static size_t jvm_table_kept_size(const struct code_text *text, const struct jvm_table_kept *kept)
{
	return kept->nr * (sizeof(struct jvm_read_job_frame) + 2) + text->table_size;
}

/* The frames of a chain, in one block for free(); NULL: they make no sense. */
static struct jvm_read_job_frame *jvm_table_kept_frames(const struct code_text *text,
							const struct jvm_table_kept *kept)
{
	struct jvm_read_job_frame *frames = malloc(jvm_table_kept_size(text, kept));
	const uint8_t *at = text->table + sizeof(*kept), *end = text->table + text->table_size;
	char *to = (char *)(frames + kept->nr);

	assert(kept->kind == JVM_TABLE_KEPT_CHAIN && kept->nr <= JVM_READ_FRAMES_MAX);
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
		frames[i] = (struct jvm_read_job_frame){ .name = to, .line = f.line };
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
 * replays, before the loader starts. Records are foreign bytes: jvm_table_kept() checks them.
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
#define RECORDED_CHAINS_MAX (1U << 20)

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
static bool is_full(const struct jvm_table *h)
{
	return atomic_load_explicit(&h->memory, memory_order_relaxed) >= JVM_TABLE_MEMORY_MAX;
}

/* Insert code, and drop the code that it replaces. */
static void take_blob(struct jvm_table *h, struct jvm_table_entry *e,
		      const struct jvm_table_kept *k, const char *name, size_t size)
{
	struct jvm_read *vm = &e->reading->vm;
	struct jvm_read_blob *b;
	uint32_t at, end;

	at = search_split(vm->nr_blobs, i, vm->blobs[i].end <= k->start);
	if (vm->nr_blobs >= JVM_READ_BLOBS_MAX || vm->memory >= JVM_READ_MEMORY_MAX || is_full(h) ||
	    !spend(&e->spent_inserting, e->nr_taken, (vm->nr_blobs - at) / MOVED_BLOBS) ||
	    !array_reserve(&vm->blobs, &e->max_blobs, vm->nr_blobs + 1ull)) {
		e->left_out = true;
		return;
	}
	end = search_split(vm->nr_blobs, i, vm->blobs[i].start < k->end);
	for (uint32_t i = at; i < end; i++) {
		vm->memory -= jvm_read_blob_memory(&vm->blobs[i]);
		free(vm->blobs[i].name);
	}
	b = &vm->blobs[at];
	memmove(b + 1, vm->blobs + end, (vm->nr_blobs - end) * sizeof(*b));
	vm->nr_blobs = vm->nr_blobs - (end - at) + 1;
	*b = (struct jvm_read_blob){
		.start = k->start,
		.end = k->end,
		.compile_id = k->compile_id,
		.frame_words = k->frame_words,
		.complete = k->complete,
		.kind = (enum jvm_read_kind)k->code_kind,
		.fresh = true,
		.retired = k->flags & JVM_TABLE_KEPT_RETIRED,
		.inlines = k->flags & JVM_TABLE_KEPT_INLINES,
		.blind = k->flags & JVM_TABLE_KEPT_BLIND,
		.deopt = k->deopt,
		.exits = k->bytecodes,
		.name_size = (uint16_t)strnlen(name, size),
		.name = strndup(name, size),
	};
	vm->memory += jvm_read_blob_memory(b);
}

static void take_method(struct jvm_table *h, struct jvm_table_entry *e,
			const struct jvm_table_kept *k, const char *name, size_t size)
{
	struct jvm_read_job *r = e->reading;

	/* The list ends with each settling. */
	if (jitcode_nr(e->methods) + r->nr_methods >= JVM_TABLE_METHODS_MAX || is_full(h) ||
	    !array_reserve(&r->methods, &e->max_methods, r->nr_methods + 1ull)) {
		e->left_out = true;
		return;
	}
	r->methods[r->nr_methods++] = (struct jvm_read_method_name){
		.method = k->start,
		.code = k->bytecodes,
		.code_size = k->bytecodes_size,
		.name = strndup(name, size),
	};
	e->methods_size += size + 1;
}

static void take_chain(struct jvm_table *h, struct jvm_table_entry *e,
		       const struct jvm_table_kept *k, const struct code_text *text)
{
	struct jvm_read_job_frame *frames;
	uint64_t size = jvm_table_kept_size(text, k);

	if (e->nr_recorded == RECORDED_CHAINS_MAX || is_full(h) ||
	    size > CHAIN_SIZE_MAX - e->recorded_size ||
	    !array_reserve(&e->recorded, &e->max_recorded, e->nr_recorded + 1ull)) {
		e->left_out = true;
		return;
	}
	frames = jvm_table_kept_frames(text, k);
	e->recorded_size += frames ? size : 0;
	if (frames)
		e->recorded[e->nr_recorded++] =
			(struct jvm_read_job_chain){ .addr = k->start,
						     .layer = k->layer,
						     .nr = k->nr,
						     .exact = k->flags & JVM_TABLE_KEPT_EXACT,
						     .frames = frames };
}

void jvm_table_replay(struct jvm_table *h, const struct object *memory,
		      const struct code_text *text, const struct jvm_table_kept *k)
{
	struct jvm_table_entry *e = jvm_table_find_entry(h, memory);

	if (!e && !h->off && h->recorded)
		e = jvm_table_add_entry(h, memory);
	if (!e || !e->reading)
		return;
	e->pending = true;
	e->nr_taken++;
	e->reading->vm.call_return = k->call_return;
	switch (k->kind) {
	case JVM_TABLE_KEPT_CODE:
		e->reading->vm.untried = k->flags & JVM_TABLE_KEPT_UNTRIED;
		take_blob(h, e, k, text->name, text->name_size);
		break;
	case JVM_TABLE_KEPT_METHOD:
		take_method(h, e, k, text->name, text->name_size);
		break;
	default:
		take_chain(h, e, k, text);
	}
	/* There may be many JVMs with one record each. */
	jvm_table_count(h, e);
}

static int by_place(const void *a, const void *b)
{
	const struct jvm_read_job_chain *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return COMPARE(x->addr, y->addr);
}

/* Take the new records of one JVM. */
static void settle(struct jvm_table *h, struct jvm_table_entry *e, uint64_t time_ns)
{
	struct jvm_read *vm = &e->reading->vm;

	vm->nr_new = vm->nr_retired = 0;
	for (uint32_t k = 0; k < vm->nr_blobs; k++) {
		vm->nr_new += vm->blobs[k].fresh;
		vm->nr_retired += vm->blobs[k].retired;
	}
	/* Of code that was read before them. */
	for (uint32_t k = e->nr_settled; k < e->nr_recorded; k++)
		if (e->recorded[k].exact)
			jvm_table_take_call(e, e->recorded[k].addr);
	e->nr_settled = e->nr_recorded;
	jvm_table_take_code(h, e, time_ns);
	jvm_read_job_forget(e->reading);
	e->max_methods = 0;
	e->methods_size = 0;
	for (uint32_t k = 0; k < vm->nr_blobs; k++)
		vm->blobs[k].fresh = false;
	jvm_table_count(h, e);
	if (e->left_out)
		object_explain(objects_at(h->objects, e->object),
			       "the recording has too much code: some is left out", NULL);
}

/* Return the blobs that settling visits, and others that cost as much. */
static uint64_t cost_of(const struct jvm_table_entry *e)
{
	/* Ranges are sorted again. */
	return e->reading->vm.nr_blobs + e->nr_calls + 8ULL * e->nr_ranges;
}

bool jvm_table_settle(struct jvm_table *h, uint64_t time_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct jvm_table_entry *e = h->entries[i];

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
static void sort_recorded(struct jvm_table_entry *e)
{
	if (e->nr_sorted != e->nr_settled)
		qsort(e->recorded, e->nr_settled, sizeof(*e->recorded), by_place);
	e->nr_sorted = e->nr_settled;
}

/* Put the recorded chain of @place at @addr, if there is one, among the found ones. */
static void jvm_table_find_recorded(struct jvm_table_entry *e, uint32_t layer, uint64_t addr,
				    uint32_t place)
{
	const struct jvm_read_job_chain key = { .addr = addr, .layer = layer };
	struct jvm_read_job_chain *found;

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
