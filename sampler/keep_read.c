// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kept segments into the tables. Each is read twice: first the stacks, functions and tasks, of
 * which later records are better, then the slices.
 */
#include "sampler/keep_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/file/keepfile.h"
#include "sampler/file/perfdata_refuse.h"
#include "sampler/keep_dir.h"
#include "sampler/profile/assemble_input.h"
#include "symbols/base/keyhash.h"
#include "symbols/base/text.h"
#include "unwind/unwind.h"

#define IDS_MAX	 (1u << 22)	    /* of stacks, functions and places in one segment */
#define COMMS	 (1u << 16)	    /* names of processes, by pid */
#define PIECE	 ((size_t)4 << 20)  /* bytes that are read at a time */
#define HEAD_MAX ((size_t)64 << 10) /* of a segment, with its events */
#define SUM_MAX	 (1ULL << 50)	    /* samples of all slices, the lost ones included */
#define NO_EVENT 255

/* Ids of the segment -> ids of the tables + 1; 0: unknown. */
struct ids {
	uint32_t *list;
	uint32_t nr;
};

struct keep_read {
	int dir;
	uint32_t *numbers;
	int nr;
	char names[EVENTS_MAX][EVENT_NAME_MAX]; /* as in the files */
	uint32_t nr_events;
	bool waits;    /* one of them is the waits */
	uint64_t size; /* of all segments */
	/* Relaxed: only shown. */
	_Atomic uint64_t done;

	/* While it runs. */
	const uint8_t *bytes; /* of the segment */
	uint64_t before;      /* bytes of the segments before it */
	struct store *st;
	struct keep_read_result *result;
	const atomic_bool *stopped; /* by another thread */
	struct ids stacks, symbols, places, tasks;
	uint64_t weight;       /* of the slices, SLICE_WEIGHT_MAX at most */
	uint64_t comms[COMMS]; /* hash of pid and name */
	uint64_t now_ns;       /* of the side-band, counts up */
	uint8_t slots[EVENTS_MAX];
	double hz[EVENTS_MAX]; /* of the slices that follow, by slot of the session */
	uint32_t list[KEEPFILE_DEPTH_MAX];
	int code;
};

static bool set_id(struct ids *ids, uint32_t id, uint32_t value)
{
	if (id >= IDS_MAX)
		return false;
	if (id >= ids->nr) {
		uint32_t nr = MIN(id + id / 2 + 1024, IDS_MAX);
		uint32_t *larger = realloc(ids->list, nr * sizeof(*larger));

		if (!larger)
			return false;
		memset(larger + ids->nr, 0, (nr - ids->nr) * sizeof(*larger));
		ids->list = larger;
		ids->nr = nr;
	}
	ids->list[id] = value + 1;
	return true;
}

/* Return the id + 1; 0: unknown. */
static uint32_t get_id(const struct ids *ids, uint32_t id)
{
	return id < ids->nr ? ids->list[id] : 0;
}

static void forget(struct ids *ids)
{
	if (ids->nr)
		memset(ids->list, 0, ids->nr * sizeof(*ids->list));
}

/* Report whether reading ends here: its result is set. */
static bool is_stopped(void *ctx)
{
	struct keep_read *k = ctx;

	/* Relaxed: the owner waits for the thread. */
	if (!k->code && k->stopped && atomic_load_explicit(k->stopped, memory_order_relaxed))
		k->code = -ECANCELED;
	return k->code != 0;
}

/* ---- records ---- */

/* Find the slots of the segment's events among the events of the session. */
static void on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct keep_read *k = ctx;

	memset(k->slots, NO_EVENT, sizeof(k->slots));
	memset(k->hz, 0, sizeof(k->hz));
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < k->nr_events; j++)
			if (strlen(k->names[j]) == events[i].name.size &&
			    !memcmp(k->names[j], events[i].name.str, events[i].name.size)) {
				k->slots[i] = (uint8_t)j;
				k->hz[j] = events[i].hz;
			}
}

static void on_function(void *ctx, const struct keepfile_function *f)
{
	struct keep_read *k = ctx;
	const struct symbols_kept kept = { f->name.str, f->module.str, f->name.size, f->module.size,
					   f->kind,	f->inlined,    f->made_up };
	uint32_t place = f->kind == 'w'
				 ? symbols_keep_wait(k->st->symbols, k->st->places,
						     wait_kind_named(kept.name, kept.name_size))
				 : symbols_keep_function(k->st->symbols, k->st->places,
							 k->st->objects, &kept);
	bool of_place = f->id & ASSEMBLE_PLACE;

	if (place != PLACE_NONE)
		set_id(of_place ? &k->places : &k->symbols, f->id & ~ASSEMBLE_PLACE, place);
}

static void on_interpreter(void *ctx, struct keepfile_text module)
{
	struct keep_read *k = ctx;

	symbols_keep_interpreter(k->st->objects, module.str, module.size);
}

static void on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	struct keep_read *k = ctx;
	uint32_t filled = 0, stack;

	for (uint32_t i = 0; i < nr && filled < STACKS_PLACES_MAX; i++) {
		const struct ids *ids = functions[i] & ASSEMBLE_PLACE ? &k->places : &k->symbols;
		uint32_t place = get_id(ids, functions[i] & ~ASSEMBLE_PLACE);

		if (place)
			k->list[filled++] = place - 1;
	}
	if (!filled)
		return;
	stack = stacks_intern(k->st->stacks, k->list, filled);
	if (stack == STACK_NONE) {
		/* False is also little space: for this stack it may be enough. */
		stacks_grow(k->st->stacks);
		stack = stacks_intern(k->st->stacks, k->list, filled);
	}
	if (stack != STACK_NONE)
		set_id(&k->stacks, id, stack);
}

/* Begin the process again if its name is another one. */
static void name_process(struct keep_read *k, pid_t pid, struct keepfile_text comm)
{
	uint64_t hash = keyhash_name(comm.str, comm.size) ^ hash_u64((uint64_t)pid);
	uint64_t *slot = &k->comms[(uint32_t)pid % COMMS];

	if (*slot == hash)
		return;
	*slot = hash;
	maps_on_comm(k->st->maps, pid, pid, comm.str, comm.size, true, ++k->now_ns);
}

static void on_task(void *ctx, const struct keepfile_task *t)
{
	struct keep_read *k = ctx;
	pid_t pid = (pid_t)t->pid, tid = (pid_t)t->tid;
	struct maps_hit hit;

	name_process(k, pid, t->process_comm.size ? t->process_comm : t->comm);
	if (tid != pid)
		maps_on_comm(k->st->maps, pid, tid, t->comm.str, t->comm.size, false, ++k->now_ns);
	maps_publish(k->st->maps, ++k->now_ns, UINT64_MAX);
	if (t->uid != UINT32_MAX)
		maps_set_user(k->st->maps, pid, (uid_t)t->uid, k->now_ns);
	maps_find(k->st->maps, maps_tasks(k->st->maps), pid, tid, k->now_ns, &hit);
	set_id(&k->tasks, t->id, hit.task);
}

/* Translate the counts of a slice. Return how many there are. */
static uint32_t translate(struct keep_read *k, const struct slice *slice, struct count *out)
{
	struct slice_reader r;
	struct count c;
	uint32_t nr = 0;

	for (slice_read_begin(&r, slice); nr < slice->nr && slice_read(&r, &c);) {
		uint32_t stack = c.stack == STACK_NONE ? 0 : get_id(&k->stacks, c.stack);
		uint32_t task = get_id(&k->tasks, c.task);
		bool cpu = c.event == PROFILE_CPU || c.event == PROFILE_CPU_REST;
		uint8_t event = cpu		       ? (uint8_t)c.event
				: c.event < EVENTS_MAX ? k->slots[c.event]
						       : NO_EVENT;

		if (event == NO_EVENT) {
			k->result->other_events += c.count;
			continue;
		}
		k->result->samples += c.count;
		if (task == TASK_UNKNOWN + 1 && c.task != TASK_UNKNOWN)
			k->result->nameless += c.count;
		out[nr++] = (struct count){ stack ? stack - 1 : STACK_NONE,
					    task ? task - 1 : TASK_UNKNOWN,
					    event,
					    c.count,
					    c.weight,
					    0 };
	}
	return nr;
}

static uint64_t weight_of(const struct slice *slice)
{
	struct slice_reader r;
	uint64_t weight = 0;
	struct count c;

	for (slice_read_begin(&r, slice); slice_read(&r, &c);)
		weight += c.weight;
	return weight;
}

/* Report whether @slice can be added: sums of more samples or weight would overflow somewhere. */
static bool fits(const struct keep_read *k, const struct slice *slice)
{
	const struct keep_read_result *r = k->result;

	return weight_of(slice) <= SLICE_WEIGHT_MAX - k->weight &&
	       slice->count + slice->lost + slice->throttled <=
		       SUM_MAX - r->samples - r->other_events - r->back - r->lost - r->throttled;
}

static void on_slice(void *ctx, const struct slice *slice)
{
	struct keep_read *k = ctx;
	struct keep_read_result *r = k->result;
	struct count *counts;
	uint32_t nr;

	atomic_store_explicit(&k->done, k->before + (uint64_t)(slice->bytes - k->bytes),
			      memory_order_relaxed);
	if (k->code)
		return;
	if (!fits(k, slice)) {
		r->nr_damaged++;
		return;
	}
	/* A clock that was set back: the time is in the history already. */
	if (slice->end_ns <= r->last_ns) {
		r->back += slice->count;
		return;
	}
	k->weight += weight_of(slice);
	counts = malloc(MAX(slice->nr, 1u) * sizeof(*counts));
	if (!counts) {
		k->code = -ENOMEM;
		return;
	}
	nr = translate(k, slice, counts);
	if (!r->last_ns) {
		r->first_ns = r->last_ns = slice->begin_ns;
		history_begin(k->st->history, slice->begin_ns);
	} else if (slice->begin_ns > r->last_ns) {
		/* proftop did not run. */
		k->code = history_add(k->st->history, NULL, 0, slice->begin_ns - r->last_ns);
		r->last_ns = slice->begin_ns;
	}
	history_set_rates(k->st->history, k->hz, k->nr_events);
	if (!k->code)
		k->code = history_add(k->st->history, counts, nr, slice->end_ns - r->last_ns);
	else
		free(counts);
	history_note(k->st->history, slice->marks, slice->lost, slice->throttled);
	r->last_ns = slice->end_ns;
	r->lost += slice->lost;
	r->throttled += slice->throttled;
}

static void no_function(void *ctx, const struct keepfile_function *f)
{
}

static void no_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
}

static void no_interpreter(void *ctx, struct keepfile_text module)
{
}

static void no_task(void *ctx, const struct keepfile_task *t)
{
}

static void no_slice(void *ctx, const struct slice *slice)
{
}

/* ---- segments ---- */

/* Read a file, or its first @max bytes. NULL: not readable, or too large; malloc'ed. */
static uint8_t *read_segment(struct keep_read *k, int i, size_t max, size_t *size)
{
	char name[KEEP_DIR_NAME];
	uint8_t *bytes = NULL;
	struct stat st;
	size_t got = 0, wanted = 0;
	int fd;

	keep_dir_name(name, k->numbers[i]);
	fd = openat(k->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size <= KEEP_SEGMENT_MAX) {
		wanted = MIN((size_t)st.st_size, max);
		bytes = malloc(wanted);
	}
	/* A disk may need longer for a segment than a user waits. */
	while (bytes && got < wanted && !is_stopped(k)) {
		ssize_t n = read(fd, bytes + got, MIN(wanted - got, PIECE));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	close(fd);
	*size = got;
	return bytes;
}

static void run_segment(struct keep_read *k, const uint8_t *bytes, size_t size)
{
	const struct keepfile_reader first = { on_events, on_function, on_stack, on_interpreter,
					       on_task,	  no_slice,    k,	 is_stopped };
	const struct keepfile_reader second = { on_events, no_function, no_stack, no_interpreter,
						no_task,   on_slice,	k,	  is_stopped };
	int64_t read;

	k->bytes = bytes;
	read = keepfile_read(bytes, size, &first);
	k->result->nr_damaged += read != (int64_t)size;
	if (read > 0)
		keepfile_read(bytes, (size_t)read, &second);
	k->before += size;
	forget(&k->stacks);
	forget(&k->symbols);
	forget(&k->places);
	forget(&k->tasks);
}

/* Name the frames of all kinds of waits: the kind is found in the other frames of a stack. */
static int begin_waits(struct store *st)
{
	int code = st->waits ? 0 : store_open_waits(st, 0, -1);

	for (unsigned int kind = WAIT_NO + 1; kind < WAIT_NR && !code; kind++)
		symbols_keep_wait(st->symbols, st->places, (enum wait_kind)kind);
	return code;
}

int keep_read_run(struct keep_read *k, struct store *st, const atomic_bool *stopped,
		  struct keep_read_result *out)
{
	*out = (struct keep_read_result){ .samples = 0 };
	k->st = st;
	k->result = out;
	k->stopped = stopped;
	k->code = k->waits ? begin_waits(st) : 0;
	k->before = k->weight = 0;
	history_stop_by(st->history, stopped);
	for (int i = 0; i < k->nr && !is_stopped(k); i++) {
		size_t size;
		uint8_t *bytes = read_segment(k, i, KEEP_SEGMENT_MAX, &size);

		/* Between segments: the ids of the tables may change. */
		store_keep_room(st);
		if (bytes)
			run_segment(k, bytes, size);
		else
			out->nr_damaged++;
		free(bytes);
	}
	history_stop_by(st->history, NULL);
	return k->code;
}

uint32_t keep_read_permille(const struct keep_read *k)
{
	uint64_t done = atomic_load_explicit(&k->done, memory_order_relaxed);

	return k->size ? (uint32_t)MIN(1000 * done / k->size, 1000) : 0;
}

/* Add the sizes of all segments. */
static uint64_t folder_size(const struct keep_read *k)
{
	uint64_t sum = 0;

	for (int i = 0; i < k->nr; i++) {
		char name[KEEP_DIR_NAME];
		struct stat st;

		keep_dir_name(name, k->numbers[i]);
		if (!fstatat(k->dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    (uint64_t)st.st_size <= KEEP_SEGMENT_MAX)
			sum += (uint64_t)st.st_size;
	}
	return sum;
}

/* Take the events of a segment for the session. */
static void take_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct sampler_config *config = ctx;

	for (uint32_t i = 0; i < nr; i++) {
		struct event *ev = &config->events[i];
		char name[EVENT_NAME_MAX];
		size_t size = MIN(events[i].name.size, sizeof(name) - 1);

		memcpy(name, events[i].name.str, size);
		name[size] = '\0';
		*ev = (struct event){ .user = true, .kernel = true };
		if (strcmp(name, EVENT_WAITS) || event_parse(ev, EVENT_WAITS, NULL))
			text_sanitise(ev->name, sizeof(ev->name), name, size);
		ev->clock = events[i].clock;
		ev->hz = events[i].hz;
	}
	config->nr_events = nr;
}

/* Take the events of the newest segment that has any. */
static void find_events(struct keep_read *k, struct sampler_config *config)
{
	const struct keepfile_reader reader = { take_events, no_function, no_stack, no_interpreter,
						no_task,     no_slice,	  config,   NULL };

	config->nr_events = 0;
	config->hz = 0;
	config->period = 1;
	for (int i = k->nr; i-- > 0 && !config->nr_events;) {
		size_t size;
		uint8_t *bytes = read_segment(k, i, HEAD_MAX, &size);

		if (bytes)
			keepfile_read(bytes, size, &reader);
		free(bytes);
	}
	k->nr_events = config->nr_events;
	for (uint32_t i = 0; i < k->nr_events; i++) {
		memcpy(k->names[i], config->events[i].name, sizeof(k->names[i]));
		k->waits |= config->events[i].wait;
	}
}

/* Return the error for a folder without a segment. */
static int refuse_folder(const char *path, struct err *e)
{
	char data[PATH_MAX];

	if (snprintf(data, sizeof(data), "%s/data", path) < (int)sizeof(data) &&
	    !access(data, F_OK))
		return perfdata_refuse_folder(e, path);
	return err_set(e, -ENODATA,
		       "%.300s: no kept samples\n"
		       "  a folder for --open is written with --keep",
		       path);
}

static int refuse_list(const char *path, int code, const struct err *why, struct err *e)
{
	return err_set(e, code,
		       "%.300s: %.200s\n"
		       "  a folder for --open is written with --keep",
		       path, why->text);
}

int keep_read_open(struct keep_read **out, struct sampler_config *config, struct err *e)
{
	struct keep_read *k = xcalloc(1, sizeof(*k));
	struct err why;
	int code = keep_dir_open(&k->dir, config->replay, e);

	if (!code) {
		k->nr = keep_dir_list(k->dir, &k->numbers, &why);
		if (k->nr < 0)
			code = refuse_list(config->replay, k->nr, &why, e);
		k->nr = MAX(k->nr, 0);
	}
	if (!code) {
		k->size = folder_size(k);
		find_events(k, config);
		if (!config->nr_events)
			code = refuse_folder(config->replay, e);
	}
	if (code) {
		keep_read_close(k);
		return code;
	}
	*out = k;
	return 0;
}

void keep_read_close(struct keep_read *k)
{
	if (!k)
		return;
	if (k->dir >= 0)
		close(k->dir);
	free(k->numbers);
	free(k->stacks.list);
	free(k->symbols.list);
	free(k->places.list);
	free(k->tasks.list);
	free(k);
}
