// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All events of a session, from open to close.
 *
 * Runs on: set-up, then the builder; look-ups by id from any. Invariant: a counters_open() that
 * fails undoes everything. Changes while it runs are in counters_live.c.
 */
#include "sampler/event/counters.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/event/counters_private.h"
#include "sampler/event/limits.h"

#define SIDE_RING_MIN (16u << 10)

/* A data ring holds so much of a full rate: the reader may be kept waiting on a busy machine. */
#define RING_SECONDS 0.15

/* Close the rings, and the leaders that own them. */
static void close_rings(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		ring_close(&cpu->data);
		ring_close(&cpu->side);
		slot_close_fd(&c->env, &cpu->data_fd);
		slot_close_fd(&c->env, &cpu->side_fd);
	}
}

/*
 * The two owners of rings on one CPU. They are events of this process: they need no permission, and
 * they do not hang up. Side-band events of a whole CPU own their ring themselves.
 */
static int open_leaders(struct counters *c, struct counters_cpu *cpu)
{
	struct perf_event_attr attr;

	c->env.refusal.event[0] = '\0';
	attr_leader(&attr, c->side_size / 8);
	if (!c->env.attr.tasks)
		attr_side(&attr, false, c->side_size);
	attr.mmap_data = !c->env.attr.tasks && c->env.attr.data_maps;
	cpu->side_fd = slot_perf_open(&c->env, &attr, c->env.attr.tasks ? getpid() : -1, cpu->cpu);
	if (cpu->side_fd < 0)
		return cpu->side_fd;
	attr_leader(&attr, c->ring_size / 4);
	cpu->data_fd = slot_perf_open(&c->env, &attr, getpid(), cpu->cpu);
	return cpu->data_fd < 0 ? cpu->data_fd : 0;
}

/* Open all rings with one size, or none. *@mapping: it was mmap that failed. */
static int open_rings(struct counters *c, bool *mapping)
{
	const struct counters_sys *sys = &c->env.sys;
	int code = 0;

	*mapping = false;
	for (uint32_t i = 0; i < c->env.nr_cpus && !code; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		code = open_leaders(c, cpu);
		if (code)
			break;
		*mapping = true;
		code = sys->ring_open(sys->ctx, &cpu->side, cpu->side_fd, c->side_size);
		if (!code)
			code = sys->ring_open(sys->ctx, &cpu->data, cpu->data_fd, c->ring_size);
		*mapping = code;
	}
	if (code)
		close_rings(c);
	return code;
}

static size_t power_of_two(size_t size)
{
	size_t p = (size_t)sysconf(_SC_PAGESIZE);

	while (p < size && p << 1)
		p <<= 1;
	return p;
}

/*
 * One size for all CPUs: more for one would be less for another. The
 * leaders are opened again for each size, as it sets their watermark.
 */
static int size_rings(struct counters *c, size_t min, struct err *e)
{
	bool mapping;
	int code;

	for (;;) {
		code = open_rings(c, &mapping);
		if (!code)
			return 0;
		if (!mapping)
			return limits_explain_open(e, code, &c->env.refusal);
		if (code != -EPERM && code != -ENOMEM)
			break;
		if (c->ring_size / 2 >= min)
			c->ring_size /= 2;
		else if (c->side_size / 2 >= SIDE_RING_MIN)
			c->side_size /= 2;
		else
			break;
	}
	return limits_explain_ring(e, code, c->ring_size + c->side_size, c->env.nr_cpus);
}

/* At least two samples, so that one can be written while one is read. */
static int choose_ring_size(struct counters *c, const struct counters_config *config, struct err *e)
{
	size_t sample = attr_sample_max(&c->env.attr);
	size_t min = power_of_two(2 * sample);

	c->side_size = limits_side_ring();
	if (!config->ring_size) {
		size_t want = (size_t)((double)sample * config->hz * RING_SECONDS);

		c->ring_wanted = MAX(limits_wanted_ring(config->nr_cpus, want), min);
		c->ring_size = MAX(limits_data_ring(config->nr_cpus, c->side_size, want), min);
		return size_rings(c, min, e);
	}
	if (config->ring_size < sample)
		return err_set(e, -EINVAL,
			       "a ring of %zu bytes cannot hold one sample of up to %zu bytes\n"
			       "  a sample carries %u bytes of stack, registers and the call "
			       "chain\n"
			       "  --ring %zu or more, or a smaller --stack-size",
			       config->ring_size, sample, config->stack_size, power_of_two(sample));
	c->ring_size = c->ring_wanted = power_of_two(config->ring_size);
	return size_rings(c, MIN(min, c->ring_size), e);
}

int counters_id_value(struct counters *c, const struct slot *slot, uint32_t at)
{
	if (!slot->event.read)
		return (int)at;
	/* Known once the first of them is open; the same for all. */
	c->read_layout.read_format = slot->attr.read_format;
	atomic_store_explicit(&c->any_read, true, memory_order_relaxed);
	return (int)at | ID_READ;
}

/* Append the ids of @slot; room was made. */
static size_t put_ids(const struct slot *s, uint32_t nr_cpus, uint64_t *ids, int *values, size_t at,
		      int value)
{
	for (size_t i = 0; i < (size_t)s->nr_tasks * nr_cpus; i++) {
		if (s->fds[i].fd < 0)
			continue;
		ids[at] = s->fds[i].id;
		values[at++] = value;
		if (s->fds[i].wake_fd < 0)
			continue;
		ids[at] = s->fds[i].wake_id;
		values[at++] = value;
	}
	return at;
}

/*
 * Return the software event that other sessions may also have, if this one has just one. The kernel
 * (seen on 6.18) fills in a sample once for all events that the same fault or switch hits, so ours
 * may carry the id of another's. Timers are not shared, and hardware events have an interrupt each.
 */
static int find_shared_slot(const struct counters *c)
{
	int found = -1;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		const struct event *ev = &c->slots[i].event;

		if (ev->hardware || ev->clock)
			continue;
		if (ev->counted)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i | (ev->read ? ID_READ : 0);
	}
	return found;
}

bool counters_has_waking(const struct counters *c)
{
	return c->waking.nr_tasks > 0;
}

static int find_wait_slot(const struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].event.wait)
			return (int)i;
	return -1;
}

int counters_wait_slot(const struct counters *c)
{
	return atomic_load_explicit(&c->wait_slot, memory_order_relaxed);
}

void counters_fill_ids(struct counters *c, const struct slot *gone, uint32_t nr_gone)
{
	size_t nr = 0, at = 0;
	uint64_t *ids;
	int *slots;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr += 2 * (size_t)c->slots[i].nr_tasks * c->env.nr_cpus;
	for (uint32_t i = 0; i < nr_gone; i++)
		nr += 2 * (size_t)gone[i].nr_tasks * c->env.nr_cpus;
	nr += 2 * (size_t)c->waking.nr_tasks * c->env.nr_cpus;
	ids = xcalloc(nr, sizeof(*ids));
	slots = xcalloc(nr, sizeof(*slots));
	for (uint32_t i = 0; i < nr_gone; i++)
		at = put_ids(&gone[i], c->env.nr_cpus, ids, slots, at,
			     gone[i].event.read ? ID_GONE_READ : ID_GONE);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		at = put_ids(&c->slots[i], c->env.nr_cpus, ids, slots, at,
			     counters_id_value(c, &c->slots[i], i));
	at = put_ids(&c->waking, c->env.nr_cpus, ids, slots, at, ID_WAKING);
	idmap_replace(&c->ids, ids, slots, at);
	atomic_store_explicit(&c->shared_slot, find_shared_slot(c), memory_order_relaxed);
	atomic_store_explicit(&c->wait_slot, find_wait_slot(c), memory_order_relaxed);
	free(ids);
	free(slots);
}

/* The fds that the session takes, for the sentence when there are too few. */
static uint32_t fds_wanted(const struct counters *c, uint32_t nr_events, uint32_t nr_tids)
{
	uint32_t per_cpu = 2 + (c->env.attr.tasks ? nr_tids * (nr_events + 1) : nr_events);

	return per_cpu * c->env.nr_cpus;
}

static int check_config(const struct counters_config *config, struct err *e)
{
	if (!config->nr_events || config->nr_events > EVENTS_MAX)
		return err_set(e, -EINVAL,
			       "invalid number of events: %u, must be 1 to %d\n  they are sampled "
			       "at the same time\n  choose fewer with -e",
			       config->nr_events, EVENTS_MAX);
	if (config->stack_size % 8 || config->stack_size > 65528)
		return err_set(e, -EINVAL,
			       "invalid stack size: %u bytes\n"
			       "  must be a multiple of 8 up to 65528\n  --stack-size 16384 is the "
			       "default",
			       config->stack_size);
	if (!config->nr_cpus || (config->tids && !config->nr_tids && !config->may_be_empty))
		return err_set(e, -EINVAL,
			       "there is nothing to sample\n"
			       "  no CPU, or no task\n  choose others");
	for (uint32_t i = 0; i < config->nr_events; i++) {
		int code = config->events[i].hz > 0 ? limits_check_rate(config->events[i].hz, e)
						    : 0;

		if (code)
			return code;
	}
	return config->period ? 0 : limits_check_rate(config->hz, e);
}

static struct counters *counters_new(const struct counters_config *config,
				     const struct counters_sys *sys)
{
	struct counters *c = xcalloc(1, sizeof(*c));

	c->cpus = xcalloc(config->nr_cpus, sizeof(*c->cpus));
	for (uint32_t i = 0; i < config->nr_cpus; i++)
		c->cpus[i] = (struct counters_cpu){ .cpu = config->cpus[i],
						    .data_fd = -1,
						    .side_fd = -1 };
	if (config->cores)
		c->cores = *config->cores;
	c->env = (struct slot_env){
		.cores = &c->cores,
		.ids = &c->ids,
		.sys = *sys,
		.cpus = c->cpus,
		.nr_cpus = config->nr_cpus,
		.may_be_empty = config->may_be_empty,
		.nr_named = config->nr_named,
		.cgroup_fd = config->cgroup ? config->cgroup_fd : -1,
		.group_fd = -1,
		.attr = {
			.tasks = config->tids,
			.no_inherit = config->no_inherit,
			.enable_on_exec = config->enable_on_exec,
			.exclude_idle = config->exclude_idle,
			.data_maps = config->data_maps,
			.stack_size = config->stack_size,
			.regs_mask = config->regs_mask,
			.no_chain = config->no_chain,
			.period = config->period,
		},
	};
	c->layout = (struct record_layout){ .sample_type = attr_sample_type(&c->env.attr),
					    .id_all = true };
	if (config->stack_size)
		c->layout.regs_mask = config->regs_mask;
	c->waking_layout =
		(struct record_layout){ .sample_type = ATTR_WAKING_TYPE, .id_all = true };
	c->read_layout = c->layout;
	c->read_layout.sample_type |= PERF_SAMPLE_READ;
	atomic_init(&c->any_read, false);
	c->side_layout = (struct record_layout){ .sample_type = ATTR_SIDE_TYPE, .id_all = true };
	c->run = config->enable_on_exec ? RUN_AT_EXEC : RUN_OFF;
	idmap_init(&c->ids);
	atomic_init(&c->shared_slot, -1);
	atomic_init(&c->wait_slot, -1);
	atomic_init(&c->any_waking, false);
	return c;
}

const struct slot *counters_leader(const struct event *events, const struct slot *slots,
				   uint32_t at)
{
	uint32_t first = event_group_first(events, at);

	return first == at ? NULL : &slots[first];
}

int counters_open_switches(struct counters *c)
{
	uint32_t opened;

	if (find_wait_slot(c) < 0 || c->switches.nr_tasks || c->env.attr.tasks)
		return 0;
	slot_init_switches(&c->switches);
	return slot_open(&c->switches, &c->env, NULL, NULL, 0, &opened);
}

void counters_open_waking(struct counters *c)
{
	struct event ev;
	uint32_t refused;

	if (find_wait_slot(c) < 0 || c->waking.nr_tasks || !c->env.sys.waking ||
	    c->env.sys.waking(&ev))
		return;
	slot_init_waking(&c->waking, &c->env, &ev);
	/* Without the right to it a wait ends with the switch in. */
	if (slot_open(&c->waking, &c->env, NULL, NULL, 0, &refused) || !c->waking.nr_tasks)
		return;
	atomic_store_explicit(&c->any_waking, true, memory_order_relaxed);
	/* It has no task that could enable it. */
	if (c->run == RUN_AT_EXEC)
		slot_enable(&c->waking, &c->env, 0, true);
}

void counters_close_waits(struct counters *c)
{
	if (find_wait_slot(c) >= 0)
		return;
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
}

/*
 * Close what was opened on a task before it began to hang in an exec, or after: it gets all its
 * events together, so that its children inherit all of them or none.
 */
static void leave_busy(struct counters *c)
{
	for (pid_t tid = 0; counters_busy(c, tid, &tid, 1);)
		for (uint32_t i = 0; i <= c->nr_slots; i++)
			slot_leave(counters_slot(c, i), &c->env, tid);
}

/* Side-band first: no sample may precede the records of its process. */
static int open_events(struct counters *c, const struct counters_config *config, struct err *e)
{
	uint32_t refused;
	int code = 0;

	if (c->env.attr.tasks) {
		slot_init_side(&c->side, &c->env, c->side_size);
		code = slot_open(&c->side, &c->env, NULL, config->tids, config->nr_tids, &refused);
	}
	for (uint32_t i = 0; i < config->nr_events && !code; i++) {
		slot_init(&c->slots[i], &c->env, &config->events[i], config->hz);
		code = slot_open(&c->slots[i], &c->env,
				 counters_leader(config->events, c->slots, i), config->tids,
				 config->nr_tids, &refused);
		c->nr_slots += !code;
		c->nr_refused = MAX(c->nr_refused, refused);
	}
	code = code ? code : counters_open_switches(c);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	leave_busy(c);
	counters_open_waking(c);
	counters_fill_ids(c, NULL, 0);
	return 0;
}

int counters_open(struct counters **out, const struct counters_config *config,
		  const struct counters_sys *sys, struct err *e)
{
	struct counters *c;
	int code = check_config(config, e);

	if (code)
		return code;
	limits_raise_files();
	c = counters_new(config, sys);
	c->env.refusal.nr_wanted = fds_wanted(c, config->nr_events, config->nr_tids);
	code = choose_ring_size(c, config, e);
	if (!code)
		code = open_events(c, config, e);
	if (code) {
		counters_close(c);
		return code;
	}
	c->env.nr_named = 0; /* they may exit */
	*out = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_close(&c->slots[i], &c->env);
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
	slot_close(&c->side, &c->env);
	close_rings(c);
	idmap_fini(&c->ids);
	free(c->cpus);
	free(c->wake);
	free(c);
}

void counters_unmap(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		ring_close(&c->cpus[i].data);
}

uint32_t counters_nr_cpus(const struct counters *c)
{
	return c->env.nr_cpus;
}

struct counters_cpu *counters_cpu(struct counters *c, uint32_t index)
{
	return &c->cpus[index];
}

const struct record_layout *counters_layout(const struct counters *c)
{
	return &c->layout;
}

const struct record_layout *counters_side_layout(const struct counters *c)
{
	return &c->side_layout;
}

size_t counters_ring_size(const struct counters *c)
{
	return c->ring_size;
}

size_t counters_ring_wanted(const struct counters *c)
{
	return c->ring_wanted;
}

const char *counters_core_type(const struct counters *c, uint32_t cpu_index)
{
	const struct core_type *type;

	assert(cpu_index < c->env.nr_cpus);
	type = core_types_of(&c->cores, c->cpus[cpu_index].cpu);
	return type ? type->name : "";
}

bool counters_has_lost(const struct counters *c)
{
	return !c->env.no_lost;
}

uint32_t counters_nr_fds(const struct counters *c)
{
	return c->env.nr_fds;
}

uint32_t counters_nr_refused(const struct counters *c)
{
	uint32_t nr_busy = c->side.nr_busy;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr_busy = MAX(nr_busy, c->slots[i].nr_busy);
	return c->nr_refused + nr_busy;
}

pid_t counters_refused(const struct counters *c, int *code)
{
	pid_t tid = c->env.refused;

	*code = c->env.refused_code;
	if (c->nr_refused)
		return tid;
	*code = -EINTR;
	return counters_busy(c, 0, &tid, 1) ? tid : 0;
}

/* Ids are unique in the whole system: one table serves all CPUs. */
static int value_of(const struct counters *c, uint64_t id)
{
	int value = idmap_find(&c->ids, id);

	/* Only our events write to our rings. */
	return value != IDMAP_UNKNOWN ? value
				      : atomic_load_explicit(&c->shared_slot, memory_order_relaxed);
}

int counters_event_of(const struct counters *c, uint32_t cpu_index, uint64_t id)
{
	int value = value_of(c, id);

	if (value == ID_WAKING)
		return COUNTERS_WAKING;
	if (value == ID_GONE || value == ID_GONE_READ)
		return COUNTERS_GONE;
	return value < 0 ? -1 : value & ~ID_READ;
}

const struct record_layout *counters_layout_of(const struct counters *c,
					       const struct perf_event_header *h)
{
	uint64_t id;
	int value;

	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(id) ||
	    !(atomic_load_explicit(&c->any_read, memory_order_relaxed) ||
	      atomic_load_explicit(&c->any_waking, memory_order_relaxed)))
		return &c->layout;
	memcpy(&id, h + 1, sizeof(id));
	value = value_of(c, id);
	if (value == ID_WAKING)
		return &c->waking_layout;
	return value == ID_GONE_READ || (value >= 0 && value & ID_READ) ? &c->read_layout
									: &c->layout;
}

int counters_read(struct counters *c, uint32_t cpu_index, uint32_t event, struct counters_value *v)
{
	if (event >= c->nr_slots || cpu_index >= c->env.nr_cpus)
		return -EINVAL;
	return slot_read(&c->slots[event], &c->env, cpu_index, v);
}

bool counters_has_ended(struct counters *c, uint32_t cpu_index)
{
	struct counters_cpu *cpu = &c->cpus[cpu_index];
	uint64_t got[2] = { 0 }, was_ns = cpu->side_ns; /* a count, and the time */

	if (c->env.attr.tasks ||
	    c->env.sys.read(c->env.sys.ctx, cpu->side_fd, got, sizeof(got)) != sizeof(got))
		return false;
	cpu->side_ns = got[1];
	if (cpu->ended || !was_ns || was_ns != got[1])
		return false;
	cpu->ended = true;
	return true;
}

int counters_enable(struct counters *c, bool on)
{
	int code = 0;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		int rc = slot_enable(&c->slots[i], &c->env, 0, on && !c->slots[i].off);

		code = code ? code : rc;
	}
	slot_enable(&c->waking, &c->env, 0, on);
	slot_enable(&c->switches, &c->env, 0, on);
	c->run = on ? RUN_ON : RUN_OFF;
	return code;
}
