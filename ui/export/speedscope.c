// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file format of speedscope (https://www.speedscope.app/file-format-schema.json), and strings
 * of JSON.
 *
 * The first profile has all processes, each below a frame with its name; then one per process, the
 * heaviest first. Samples are summed, so that their order has no meaning.
 */
#include "ui/export/internal.h"

#include <errno.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/text/text.h"

#define PROCESSES_MAX 100

/* A frame of the file is a function, or (from nr_functions on) a process. */
static void put_frames(struct out *o, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	char buf[TEXT_MAX];

	for (uint32_t i = 0; i < p->nr_functions; i++) {
		uint32_t number;
		struct safe_text file = snapshot_source(s, i, &number);

		out_text(o, i ? ",\n{\"name\":" : "{\"name\":");
		json_put(o, snapshot_name(s, i));
		out_text(o, ",\"file\":");
		json_put(o, file.size ? file : snapshot_module_of(s, i));
		if (file.size && number)
			out_format(o, ",\"line\":%u", number);
		out_text(o, "}");
	}
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		out_text(o, p->nr_functions + i ? ",\n{\"name\":" : "{\"name\":");
		json_put(o, s->has_process[i]
				    ? format_process(buf, sizeof(buf), snapshot_comm(s, i),
						     p->processes[i].pid)
				    : TEXT(""));
		out_text(o, "}");
	}
}

/* Add the samples of @from, and their weights. @process: below a frame of their process. */
static void put_samples(struct out *o, const struct snapshot *s,
			const struct snapshot_process *from, bool process)
{
	double sum = 0;

	out_text(o, ",\"samples\":[");
	for (uint32_t i = from->first; i < from->first + from->nr; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];

		out_text(o, i > from->first ? ",[" : "[");
		if (process)
			out_format(o, "%u%s",
				   s->profile->nr_functions +
					   s->profile->tasks[stack->task].process,
				   stack->nr ? "," : "");
		for (uint32_t k = 0; k < stack->nr; k++)
			out_format(o, k ? ",%u" : "%u",
				   s->frames[s->calls[stack->first + k]].function);
		out_text(o, "]");
	}
	out_text(o, "],\"weights\":[");
	for (uint32_t i = from->first; i < from->first + from->nr; i++) {
		out_text(o, i > from->first ? "," : "");
		out_number(o, s->stacks[i].weight, 3);
		sum += s->stacks[i].weight;
	}
	out_text(o, "],\"startValue\":0,\"endValue\":");
	out_number(o, sum, 3);
}

static void put_profile(struct out *o, const struct snapshot *s, struct safe_text name,
			const struct snapshot_process *from, bool process)
{
	out_text(o, "{\"type\":\"sampled\",\"name\":");
	json_put(o, name);
	out_format(o, ",\"unit\":\"%s\"", s->nanoseconds ? "nanoseconds" : "none");
	put_samples(o, s, from, process);
	out_text(o, "}");
}

int speedscope_write(struct out *o, const struct snapshot *s)
{
	const struct snapshot_process all = { 0, 0, s->nr_stacks, s->weight };
	char buf[TEXT_MAX];

	out_text(o, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		    "\"exporter\":\"proftop@" PROFTOP_VERSION "\",\"name\":");
	json_put(o, facts_title(s, buf));
	out_text(o, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
	put_frames(o, s);
	out_text(o, "]},\"profiles\":[\n");
	put_profile(o, s, TEXT("all processes"), &all, true);
	for (uint32_t i = 0; i < MIN(s->nr_processes, PROCESSES_MAX); i++) {
		const struct profile_process *p = &s->profile->processes[s->processes[i].process];

		out_text(o, ",\n");
		put_profile(o, s, format_process(buf, sizeof(buf), p->comm, p->pid),
			    &s->processes[i], false);
		out_progress(o, i, s->nr_processes);
	}
	out_text(o, "]}\n");
	return o->failed ? -ENOMEM : 0;
}
