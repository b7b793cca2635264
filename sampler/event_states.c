// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The list of events for the picker, filled in the background.
 *
 * Runs on: the builder and the UI.
 */
#include "sampler/event_states.h"

#include <stdlib.h>
#include <string.h>

struct event_table {
	struct event_list list;
	atomic_int *codes; /* relaxed: each is independent */
};

static struct event_table *new_table(void)
{
	struct event_table *t = xcalloc(1, sizeof(*t));

	event_list_init(&t->list, "");
	t->codes = xcalloc(t->list.nr, sizeof(*t->codes));
	for (uint32_t i = 0; i < t->list.nr; i++)
		atomic_init(&t->codes[i], 1);
	return t;
}

void event_states_probe(struct event_states *es, pid_t pid, int cpu, bool kernel)
{
	struct event_table *t;
	bool tracepoint = false;
	struct event ev;
	int code = 0;

	if (atomic_load_explicit(&es->table, memory_order_relaxed))
		return;
	t = new_table();
	/* Release: pairs with event_states_get(). */
	atomic_store_explicit(&es->table, t, memory_order_release);
	for (uint32_t i = 0; i < t->list.nr; i++) {
		const struct event_info *info = &t->list.infos[i];

		/* Opening a tracepoint waits for all CPUs: the first one answers for all. */
		if (!tracepoint || strcmp(info->group, EVENT_GROUP_TRACEPOINTS)) {
			code = event_parse(&ev, info->name, NULL);
			tracepoint = !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
			if (!code) {
				ev.kernel &= kernel;
				code = event_probe(&ev, pid, pid < 0 ? cpu : -1);
			}
		}
		atomic_store_explicit(&t->codes[i], code, memory_order_relaxed);
	}
}

static uint32_t fixed_states(struct sampler_event_state *out, uint32_t max)
{
	const struct event_info *info = event_catalogue();
	uint32_t nr = 0;

	for (; info[nr].name; nr++)
		if (nr < max)
			out[nr] = (struct sampler_event_state){ &info[nr], 1 };
	return nr;
}

uint32_t event_states_get(struct event_states *es, struct sampler_event_state *out, uint32_t max,
			  bool *probed)
{
	/* Acquire: pairs with event_states_probe(), the list is complete. */
	const struct event_table *t = atomic_load_explicit(&es->table, memory_order_acquire);

	*probed = t;
	if (!t)
		return fixed_states(out, max);
	for (uint32_t i = 0; i < MIN(max, t->list.nr); i++)
		out[i] = (struct sampler_event_state){
			.info = &t->list.infos[i],
			.code = atomic_load_explicit(&t->codes[i], memory_order_relaxed),
		};
	return t->list.nr;
}

void event_states_free(struct event_states *es)
{
	struct event_table *t = atomic_exchange_explicit(&es->table, NULL, memory_order_acquire);

	if (!t)
		return;
	event_list_fini(&t->list);
	free(t->codes);
	free(t);
}
