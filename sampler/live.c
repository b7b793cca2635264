// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open events by a configuration; start and end sampler threads. Runs on: set-up, then the builder.
 */
#include "sampler/live.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/event/cores.h"
#include "sampler/event/task_list.h"
#include "unwind/unwind.h"

#define OPEN_TRIES 3

static int open_on(const struct sampler_config *c, const struct target *t, const int *cpus,
		   uint32_t nr_cpus, struct counters **out, struct err *e)
{
	const bool dwarf = c->call_graph == CALL_GRAPH_DWARF;
	struct core_types cores;
	const struct counters_config config = {
		.cpus = cpus,
		.nr_cpus = nr_cpus,
		.tids = t->tids,
		.nr_tids = t->nr_tids,
		.nr_named = t->nr_named,
		.no_inherit = t->kind == TARGET_TIDS,
		.may_be_empty = t->kind == TARGET_NAME,
		.cgroup = t->cgroup_fd >= 0,
		.cgroup_fd = t->cgroup_fd,
		/* Until its exec; afterwards a command is like other processes. */
		.enable_on_exec = t->kind == TARGET_COMMAND && t->release_fd >= 0,
		.events = c->events,
		.nr_events = c->nr_events,
		.hz = c->hz,
		.period = c->period,
		.stack_size = dwarf ? c->stack_size : 0,
		.regs_mask = dwarf ? unwind_regs_mask() : 0,
		.no_chain = c->call_graph == CALL_GRAPH_OFF,
		.ring_size = c->ring_size,
		.exclude_idle = true,
		.data_maps = c->record,
		.cores = &cores,
	};

	core_types_read(&cores, "");
	return counters_open(out, &config, c->sys ? c->sys : &counters_kernel, e);
}

static bool has_cpu(const int *cpus, int nr, int cpu)
{
	for (int i = 0; i < nr; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

/* Get the CPUs to sample: the list of @c, or all that are online. nr or -errno with a message. */
static int choose_cpus(const struct sampler_config *c, int **cpus, struct err *e)
{
	int *online = NULL, nr = task_list_online_cpus(&online, e), kept = 0, missing = -1;

	*cpus = online;
	if (nr < 0 || !c->cpus)
		return nr;
	*cpus = xcalloc(c->nr_cpus, sizeof(**cpus));
	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		if (!has_cpu(online, nr, c->cpus[i]))
			missing = c->cpus[i];
		else if (!has_cpu(*cpus, kept, c->cpus[i]))
			(*cpus)[kept++] = c->cpus[i];
	}
	free(online);
	if (missing < 0 || (c->skip_offline && kept))
		return kept;
	return err_set(e, -ENODEV,
		       "CPU %d is not online\n"
		       "  /sys/devices/system/cpu/online lists the online CPUs\n"
		       "  leave it out of -C",
		       missing);
}

int live_open_counters(const struct sampler_config *c, const struct target *t,
		       struct counters **out, struct err *e)
{
	int code = -ENODEV;

	/* A CPU may go offline after the list was read. */
	for (int i = 0; i < OPEN_TRIES && code == -ENODEV; i++) {
		int *cpus = NULL, nr = choose_cpus(c, &cpus, e);

		code = nr < 0 ? nr : open_on(c, t, cpus, (uint32_t)nr, out, e);
		free(cpus);
	}
	return code;
}

uint8_t *live_online(void)
{
	uint8_t *set = xcalloc(LIVE_CPUS_MAX, 1);
	int *cpus = NULL, nr = task_list_online_cpus(&cpus, NULL);

	for (int i = 0; i < nr; i++)
		if (cpus[i] < LIVE_CPUS_MAX)
			set[cpus[i]] = 1;
	free(cpus);
	return set;
}

/* Add the statistics of one thread. */
static void add_unwind_stats(struct unwind_stats *sum, const struct sampler_thread *t)
{
	struct unwind_stats st;

	sampler_thread_unwind_stats(t, &st);
	sum->nr_frames += st.nr_frames;
	sum->nr_row_hits += st.nr_row_hits;
	sum->nr_steps += st.nr_steps;
	sum->nr_guessed += st.nr_guessed;
	sum->nr_rows += st.nr_rows;
	sum->nr_rows_differ += st.nr_rows_differ;
	sum->nr_verified += st.nr_verified;
	sum->nr_verify_differ += st.nr_verify_differ;
}

int live_start_threads(struct live *l, struct err *e)
{
	uint32_t nr = counters_nr_cpus(l->counters);
	int code = 0;

	assert(!l->nr_threads);
	l->shared->counters = l->counters;
	l->shared->sideband = l->sideband;
	free(l->threads);
	l->threads = xcalloc(nr, sizeof(struct sampler_thread *));
	for (uint32_t i = 0; i < nr && !code; i++) {
		code = sampler_thread_start(&l->threads[i], l->shared, i, e);
		l->nr_threads += !code;
	}
	return code;
}

void live_finish_threads(struct live *l)
{
	langreaders_stop(&l->readers, l->counters, l->threads, l->nr_threads);
	for (uint32_t i = 0; i < l->nr_threads; i++)
		sampler_thread_finish(l->threads[i]);
}

void live_stop_threads(struct live *l)
{
	langreaders_stop(&l->readers, l->counters, l->threads, l->nr_threads);
	for (uint32_t i = 0; i < l->nr_threads; i++) {
		sampler_thread_finish(l->threads[i]);
		l->ended_ns += sampler_thread_cpu_ns(l->threads[i]);
		add_unwind_stats(&l->ended_unwind, l->threads[i]);
		sampler_thread_stop(l->threads[i]);
	}
	l->nr_threads = 0;
}

void live_unwind_stats(const struct live *l, struct unwind_stats *out)
{
	*out = l->ended_unwind;
	for (uint32_t i = 0; i < l->nr_threads; i++)
		add_unwind_stats(out, l->threads[i]);
}

uint64_t live_cpu_ns(const struct live *l)
{
	uint64_t ns = l->ended_ns;

	for (uint32_t i = 0; i < l->nr_threads; i++)
		ns += sampler_thread_cpu_ns(l->threads[i]);
	return ns;
}

void live_close(struct live *l)
{
	assert(!l->nr_threads);
	sideband_free(l->sideband);
	if (l->counters)
		counters_close(l->counters);
	free(l->online);
	free(l->threads);
	free(l->shared);
}
