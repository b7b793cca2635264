// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All events of this machine: the catalogue, then the kernel's, then libpfm4's for this CPU.
 *
 * Any thread but the UI's (thousands of names are read); no state.
 */
#include "sampler/event/event.h"

#include <stdlib.h>
#include <string.h>

#include "sampler/event/event_parse.h"

static void add(struct event_list *l, const struct event_info *info)
{
	/* One more than there are: the last one is empty. */
	if ((l->nr & (l->nr + 1)) == 0)
		l->infos = xrealloc_array(l->infos, 2 * ((size_t)l->nr + 1), sizeof(*l->infos));
	l->infos[l->nr++] = *info;
	l->infos[l->nr] = (struct event_info){ 0 };
}

static const char *keep(struct event_list *l, const char *text)
{
	if ((l->nr_texts & (l->nr_texts + 1)) == 0)
		l->texts =
			xrealloc_array(l->texts, 2 * ((size_t)l->nr_texts + 1), sizeof(*l->texts));
	l->texts[l->nr_texts] = xstrndup(text, strlen(text));
	return l->texts[l->nr_texts++];
}

static void add_pmu_event(void *ctx, const char *name, const char *pmu)
{
	struct event_list *l = ctx;

	add(l,
	    &(struct event_info){ keep(l, name), NULL, "PMU", "an event that the kernel names" });
}

static void add_libpfm_event(void *ctx, const char *name, const char *description)
{
	struct event_list *l = ctx;
	const char *kept = keep(l, name);

	add(l, &(struct event_info){ kept, NULL, "libpfm4", keep(l, description) });
}

static void add_tracepoint(void *ctx, const char *name)
{
	struct event_list *l = ctx;

	add(l, &(struct event_info){ keep(l, name), NULL, EVENT_GROUP_TRACEPOINTS,
				     strcmp(name, EVENT_FUNCTION) != 0 ? ""
								       : "calls of kernel "
									 "functions; needs -g fp "
									 "or -g off" });
}

static int by_name(const void *a, const void *b)
{
	const struct event_info *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void event_list_init(struct event_list *l, const char *root)
{
	const struct event_info *info = event_catalogue();
	uint32_t first;

	*l = (struct event_list){ 0 };
	for (; info->name; info++)
		add(l, info);
	pmu_each(root, add_pmu_event, l);
	libpfm_each(root, add_libpfm_event, l);
	first = l->nr;
	tracepoint_each(root, add_tracepoint, l);
	qsort(&l->infos[first], l->nr - first, sizeof(*l->infos), by_name);
}

void event_list_fini(struct event_list *l)
{
	for (uint32_t i = 0; i < l->nr_texts; i++)
		free(l->texts[i]);
	free(l->texts);
	free(l->infos);
	*l = (struct event_list){ 0 };
}
