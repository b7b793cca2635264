// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of kept slices, written.
 *
 * Threads: the builder packs, a thread with the rights of the invoking user writes. A segment has
 * the ids of the tables; other tables or events begin another segment.
 */
#include "sampler/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sampler/file/keepfile.h"
#include "sampler/keep_dir.h"
#include "sampler/past.h"
#include "symbols/base/invoker.h"
#include "symbols/base/thread.h"

#define SEGMENTS     16			/* of the size */
#define QUEUED_MAX   ((size_t)64 << 20) /* bytes that wait for a slow disk */
#define UNNAMED_MAX  4096
#define NUMBER_TRIES 4

/* Bits by id: written to the segment. */
struct bits {
	uint8_t *list;
	uint32_t nr;
};

struct keep {
	struct keep_config config;
	int dir, lock_fd;

	/* The builder's. */
	struct keepfile_out out;
	uint64_t segment_bytes, segment_begin_ns, last_ns;
	uint32_t stacks; /* serial of the table that the ids of the segment are of */
	struct event events[EVENTS_MAX];
	double hz[EVENTS_MAX]; /* as last written */
	uint32_t nr_events;
	struct bits tasks, wrote, functions, places, interpreters;
	uint32_t unnamed[UNNAMED_MAX]; /* stacks with a place without a name yet */
	uint32_t nr_unnamed;
	uint64_t missing; /* samples */
	bool failed;	  /* reported */

	pthread_t thread;
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct keepfile_out queued;
	bool rotate, stop;
	int error;
	struct err why; /* if @error */

	/* The thread's. */
	int segment;
	uint32_t number;
};

/* Test and set a bit. Without memory: set already. */
static bool was_set(struct bits *b, uint32_t id)
{
	uint32_t byte = id / 8;

	if (byte >= b->nr) {
		uint32_t nr = byte + byte / 2 + 64;
		uint8_t *larger = realloc(b->list, nr);

		if (!larger)
			return true;
		memset(larger + b->nr, 0, nr - b->nr);
		b->list = larger;
		b->nr = nr;
	}
	if (b->list[byte] & 1u << id % 8)
		return true;
	b->list[byte] |= (uint8_t)(1u << id % 8);
	return false;
}

static void clear_bits(struct bits *b)
{
	free(b->list);
	*b = (struct bits){ .list = NULL };
}

/* ---- packing ---- */

static struct keepfile_text text_of(struct safe_text t)
{
	return (struct keepfile_text){ t.str, t.size };
}

static void put_symbol(struct keep *k, const struct symbols *symbols, uint32_t id)
{
	const struct symbol *s = symbols_at(symbols, id);

	if (s && !was_set(&k->functions, id))
		keepfile_put_function(&k->out,
				      &(struct keepfile_function){ .id = id,
								   .kind = s->kind,
								   .inlined = s->inlined,
								   .made_up = s->made_up,
								   .name = text_of(s->name),
								   .module = text_of(s->module) });
}

/* Add the frame of a wait: the name of the place, which is less of its kind, is not enough. */
static void put_wait(struct keep *k, uint32_t id, const struct place *place)
{
	const char *name = wait_kind_name((enum wait_kind)place->offset);

	if (!was_set(&k->functions, id))
		keepfile_put_function(&k->out,
				      &(struct keepfile_function){ .id = id,
								   .kind = 'w',
								   .name = { name, strlen(name) },
								   .module = { "[wait]", 6 } });
}

/* Add a place without a name as a function: "libfoo.so+0x1234". */
static void put_place(struct keep *k, const struct assemble_input *in, uint32_t id,
		      const struct place *place)
{
	const struct object *object = objects_at(in->objects, place ? place->object : 0);
	struct keepfile_text module = object ? text_of(object->name)
					     : (struct keepfile_text){ "?", 1 };
	char name[64];
	int size;

	if (was_set(&k->places, id))
		return;
	size = snprintf(name, sizeof(name), "%.30s+0x%llx", module.str,
			place ? (unsigned long long)place->offset : 0ULL);
	keepfile_put_function(&k->out, &(struct keepfile_function){ .id = ASSEMBLE_PLACE | id,
								    .kind = '?',
								    .made_up = true,
								    .name = { name, (size_t)size },
								    .module = module });
}

/* Note the object of an interpreter, which may be described after its functions were written. */
static void put_interpreter(struct keep *k, const struct assemble_input *in,
			    const struct place *place)
{
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;

	if (object && atomic_load_explicit(&object->interpreter, memory_order_relaxed) &&
	    !was_set(&k->interpreters, object->id))
		keepfile_put_interpreter(&k->out, text_of(object->name));
}

/* Add the functions at a place to @list, innermost first. False: it has no name yet. */
static bool add_functions(struct keep *k, const struct assemble_input *in, uint32_t id,
			  uint32_t *list, uint32_t *nr)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol = SYMBOL_NONE, nr_frames = 0;

	put_interpreter(k, in, place);
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	if (place)
		symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (symbol == SYMBOL_NONE) {
		put_place(k, in, id, place);
		if (*nr < KEEPFILE_DEPTH_MAX)
			list[(*nr)++] = ASSEMBLE_PLACE | id;
		return false;
	}
	if (place->object == in->wait)
		put_wait(k, symbol, place);
	frames = symbols_source(in->symbols, id, &nr_frames);
	for (uint32_t i = 0; frames && i < nr_frames && *nr < KEEPFILE_DEPTH_MAX; i++) {
		uint32_t inlined = frames[i].symbol;

		if (inlined == SYMBOL_NONE)
			continue;
		put_symbol(k, in->symbols, inlined);
		list[(*nr)++] = inlined;
	}
	put_symbol(k, in->symbols, symbol);
	if (*nr < KEEPFILE_DEPTH_MAX)
		list[(*nr)++] = symbol;
	return true;
}

/* Add a stack. False: some of its places have no name yet. */
static bool put_stack(struct keep *k, const struct assemble_input *in, uint32_t id)
{
	uint32_t list[KEEPFILE_DEPTH_MAX], nr = 0, nr_places = 0;
	const uint32_t *places = stacks_at(in->stacks, id, &nr_places);
	bool named = true;

	for (uint32_t i = 0; places && i < nr_places; i++)
		named &= add_functions(k, in, places[i], list, &nr);
	keepfile_put_stack(&k->out, id, list, nr);
	return named;
}

static void put_task(struct keep *k, const struct assemble_input *in, uint32_t id)
{
	const struct task *t = maps_task(in->maps, id);

	if (t && t->pid >= 0 && t->tid >= 0)
		keepfile_put_task(&k->out,
				  &(struct keepfile_task){
					  id, (uint32_t)t->pid, (uint32_t)t->tid, text_of(t->comm),
					  text_of(t->process_comm), (uint32_t)t->uid });
}

/* Add a slice, and everything that it is the first to refer to. */
static void put_slice(struct keep *k, const struct keep_input *in, const struct slice *slice)
{
	struct slice real = *slice;
	struct slice_reader r;
	struct count c;

	for (slice_read_begin(&r, slice); slice_read(&r, &c);) {
		if (!was_set(&k->tasks, c.task))
			put_task(k, in->tables, c.task);
		if (c.stack == STACK_NONE || was_set(&k->wrote, c.stack))
			continue;
		if (!put_stack(k, in->tables, c.stack) && k->nr_unnamed < UNNAMED_MAX)
			k->unnamed[k->nr_unnamed++] = c.stack;
	}
	real.begin_ns += in->real_ns;
	real.end_ns += in->real_ns;
	if (!keepfile_put_slice(&k->out, &real))
		k->missing += slice->count;
}

/* Report whether all places of a stack have a name. */
static bool is_named(const struct assemble_input *in, uint32_t id)
{
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, id, &nr);

	for (uint32_t i = 0; places && i < nr; i++) {
		const struct place *place = places_at(in->places, places[i]);

		/* Relaxed: only whether there is one. */
		if (!place ||
		    atomic_load_explicit(&place->symbol, memory_order_relaxed) == SYMBOL_NONE)
			return false;
	}
	return true;
}

/* Write the stacks again of which all names are known now. */
static void put_named(struct keep *k, const struct assemble_input *in)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < k->nr_unnamed; i++) {
		if (is_named(in, k->unnamed[i]))
			put_stack(k, in, k->unnamed[i]);
		else
			k->unnamed[kept++] = k->unnamed[i];
	}
	k->nr_unnamed = kept;
}

/* Add the events with their rates, of the slices that follow. */
static void put_events(struct keep *k, const struct keep_input *in)
{
	struct keepfile_event events[EVENTS_MAX];

	memmove(k->hz, in->hz, in->nr_events * sizeof(k->hz[0])); /* maybe the same */
	for (uint32_t i = 0; i < in->nr_events; i++)
		events[i] =
			(struct keepfile_event){ { in->events[i].name, strlen(in->events[i].name) },
						 in->hz[i],
						 in->events[i].clock };
	keepfile_put_events(&k->out, events, in->nr_events);
}

/* Return the size at which the next segment begins: a larger one could not be read again. */
static uint64_t segment_size(const struct keep *k)
{
	return MIN(k->config.size / SEGMENTS, KEEP_SEGMENT_MAX / 2);
}

/* Return whether the segment has its part of the size, or a sixteenth of the time. */
static bool is_full(const struct keep *k, const struct keep_input *in)
{
	uint64_t end_ns = slices_at(in->slices, slices_nr(in->slices) - 1)->end_ns;

	return k->segment_bytes > segment_size(k) ||
	       end_ns - k->segment_begin_ns > k->config.time_ns / SEGMENTS;
}

static void begin_segment(struct keep *k, const struct keep_input *in)
{
	clear_bits(&k->tasks);
	clear_bits(&k->wrote);
	clear_bits(&k->functions);
	clear_bits(&k->places);
	clear_bits(&k->interpreters);
	k->nr_unnamed = 0;
	k->segment_bytes = 0;
	k->segment_begin_ns = slices_at(in->slices, slices_nr(in->slices) - 1)->end_ns;
	k->stacks = stacks_serial(in->tables->stacks);
	k->nr_events = in->nr_events;
	memcpy(k->events, in->events, in->nr_events * sizeof(k->events[0]));
	keepfile_header(&k->out);
	put_events(k, in);
}

/* Hand the packed records to the thread. */
static void queue(struct keep *k, bool rotate)
{
	struct keepfile_out *q = &k->queued;

	pthread_mutex_lock(&k->lock);
	if (k->out.failed) {
		k->error = err_set(&k->why, -ENOMEM, "%s", strerror(ENOMEM));
		keepfile_fini(&k->out);
	} else {
		*q = k->out;
		k->out = (struct keepfile_out){ .bytes = NULL };
		k->rotate |= rotate;
	}
	pthread_cond_signal(&k->changed);
	pthread_mutex_unlock(&k->lock);
}

/* Return whether the thread is still writing the records before. */
static bool is_behind(struct keep *k)
{
	bool behind;

	pthread_mutex_lock(&k->lock);
	behind = k->queued.bytes != NULL;
	pthread_mutex_unlock(&k->lock);
	return behind;
}

/* Find the first slice that is not written. */
static uint32_t first_new(const struct keep *k, const struct slices *slices)
{
	return slices_find(slices, k->last_ns);
}

/*
 * Return the input with the events of set @set: these were replaced while the disk was behind.
 * Their rates are the ones that were written last.
 */
static struct keep_input input_before(const struct keep *k, const struct keep_input *in,
				      uint16_t set)
{
	struct keep_input before = *in;

	before.events = in->sets[set].events;
	before.nr_events = in->sets[set].nr;
	before.hz = k->hz;
	return before;
}

/* Pack the slices from @first on, up to one of other events. Return whether in a new segment. */
static bool pack(struct keep *k, const struct keep_input *in, uint32_t first)
{
	uint32_t nr = slices_nr(in->slices);
	bool rotate = k->stacks != stacks_serial(in->tables->stacks) ||
		      !event_same_list(k->events, k->nr_events, in->events, in->nr_events) ||
		      is_full(k, in);

	if (rotate)
		begin_segment(k, in);
	put_named(k, in->tables);
	for (uint32_t i = first; i < nr && k->out.size < QUEUED_MAX; i++) {
		const struct slice *slice = slices_at(in->slices, i);

		if (slice->events != slices_at(in->slices, first)->events ||
		    slice->end_ns > in->settled_ns)
			break;
		if (slice->marks & SLICE_RATE &&
		    memcmp(k->hz, in->hz, in->nr_events * sizeof(k->hz[0])))
			put_events(k, in);
		put_slice(k, in, slice);
		k->last_ns = slice->end_ns;
	}
	return rotate;
}

/* Queue the slices that are new. */
static void put_new(struct keep *k, const struct keep_input *in)
{
	uint32_t nr = slices_nr(in->slices), first;
	struct keep_input before;
	uint16_t set;
	bool rotate;

	first = first_new(k, in->slices);
	set = slices_at(in->slices, MIN(first, nr - 1))->events;
	if (in->sets && set != slices_at(in->slices, nr - 1)->events) {
		before = input_before(k, in, set);
		in = &before;
	}
	rotate = pack(k, in, first);
	k->segment_bytes += k->out.size;
	queue(k, rotate);
}

void keep_tick(struct keep *k, const struct keep_input *in)
{
	if (!k)
		return;
	/* The history keeps slices until the disk is ready again. */
	if (slices_nr(in->slices) && !is_behind(k))
		put_new(k, in);
	k->missing += slices_keep(in->slices, k->failed ? UINT64_MAX : k->last_ns);
}

uint64_t keep_missing(const struct keep *k)
{
	return k ? k->missing : 0;
}

int keep_check(struct keep *k, struct err *e)
{
	int code;

	if (!k || k->failed)
		return 0;
	pthread_mutex_lock(&k->lock);
	code = k->error;
	*e = k->why;
	pthread_mutex_unlock(&k->lock);
	k->failed = code != 0;
	return code;
}

/* ---- the thread ---- */

/* Create the next segment. Another file may have got its number since they were listed. */
static int create_segment(struct keep *k, struct err *e)
{
	static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
	char name[KEEP_DIR_NAME];
	int code;

	for (int i = 0; i < NUMBER_TRIES; i++) {
		if (k->number == UINT32_MAX)
			return err_set(e, -EOVERFLOW, "no number is left for a file");
		keep_dir_name(name, ++k->number);
		k->segment = openat(k->dir, name, flags, 0600);
		if (k->segment >= 0)
			return 0;
		if (errno != EEXIST)
			break;
		code = keep_dir_last(k->dir, &k->number, e);
		if (code)
			return code;
	}
	return err_set(e, -errno, "cannot create %s: %s", name, strerror(errno));
}

/* Open the next segment, which grows by @tick bytes beyond its part, and remove the oldest ones. 0
 * or -errno. */
static int next_segment(struct keep *k, uint64_t tick, struct err *e)
{
	uint64_t needed = segment_size(k) + tick;
	int code;

	if (k->segment >= 0)
		close(k->segment);
	k->segment = -1;
	code = keep_dir_shrink(k->dir, k->config.size - MIN(needed, k->config.size),
			       k->config.time_ns - k->config.time_ns / SEGMENTS, e);
	return code ? code : create_segment(k, e);
}

static int write_queued(struct keep *k, const struct keepfile_out *q, bool rotate, struct err *e)
{
	int code = rotate ? next_segment(k, q->size, e) : 0;

	if (code)
		return code;
	code = fd_write_all(k->segment, q->bytes, q->size);
	return code ? err_set(e, code, "cannot write: %s", strerror(-code)) : 0;
}

static void *keep_main(void *arg)
{
	struct keep *k = arg;

	prctl(PR_SET_NAME, "keep");
	invoker_stay();
	pthread_mutex_lock(&k->lock);
	while (!k->stop || k->queued.bytes) {
		struct keepfile_out q = k->queued;
		bool rotate = k->rotate;
		int code = k->error;
		struct err why = k->why;

		if (!q.bytes) {
			pthread_cond_wait(&k->changed, &k->lock);
			continue;
		}
		k->rotate = false;
		pthread_mutex_unlock(&k->lock);
		/* After a failure nothing is written any more: a segment has no gaps. */
		if (!code)
			code = write_queued(k, &q, rotate, &why);
		pthread_mutex_lock(&k->lock);
		k->error = code;
		k->why = why;
		keepfile_fini(&k->queued);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

/* Number the segments from the last one in the folder on. */
static int begin_numbers(struct keep *k, struct err *e)
{
	struct err why;
	int code = keep_dir_last(k->dir, &k->number, &why);

	return code ? err_set(e, code,
			      "--keep=%.300s: %.200s\n"
			      "  move its files away, or give another folder",
			      k->config.dir, why.text)
		    : 0;
}

/* Open the folder and start the thread, both with the rights of the invoking user. */
static int open_folder(struct keep *k, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = keep_dir_open(&k->dir, k->config.dir, e);
	if (!code)
		code = keep_dir_lock(&k->lock_fd, k->dir, k->config.dir, e);
	if (!code)
		code = begin_numbers(k, e);
	if (!code && thread_start(&k->thread, 0, keep_main, k))
		code = err_set(e, -EAGAIN, "cannot start a thread for --keep");
	invoker_end(&saved);
	return code;
}

int keep_open(struct keep **out, const struct keep_config *config, struct err *e)
{
	struct keep *k;
	int code;

	*out = NULL;
	if (!config->dir)
		return 0;
	k = xcalloc(1, sizeof(*k));
	k->config = *config;
	k->dir = k->lock_fd = k->segment = -1;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->changed, NULL);
	code = open_folder(k, e);
	if (code) {
		if (k->lock_fd >= 0)
			close(k->lock_fd);
		if (k->dir >= 0)
			close(k->dir);
		free(k);
		return code;
	}
	*out = k;
	return 0;
}

int keep_finish(struct keep *k, struct err *e)
{
	if (!k)
		return 0;
	if (!k->stop) {
		pthread_mutex_lock(&k->lock);
		k->stop = true;
		pthread_cond_signal(&k->changed);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
	}
	*e = k->why;
	return k->error;
}

void keep_close(struct keep *k)
{
	struct err e;

	if (!k)
		return;
	keep_finish(k, &e);
	if (k->segment >= 0)
		close(k->segment);
	close(k->lock_fd);
	close(k->dir);
	clear_bits(&k->tasks);
	clear_bits(&k->wrote);
	clear_bits(&k->functions);
	clear_bits(&k->places);
	clear_bits(&k->interpreters);
	keepfile_fini(&k->out);
	keepfile_fini(&k->queued);
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->changed);
	free(k);
}
