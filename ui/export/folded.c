// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folded stacks, as FlameGraph's stackcollapse-perf.pl writes them: suffixes _[k] kernel, _[j]
 * code of a JIT, _[i] inlined.
 */
#include <errno.h>

#include "ui/export/writers.h"

/* Add a name; the format has no quotes: separators are replaced. */
static void put_name(struct out *o, struct safe_text t, bool last)
{
	size_t from = 0, digits = t.size;

	/* A number behind a blank would be read as a second count, also "1.5". */
	while (digits &&
	       (t.str[digits - 1] == '.' || (unsigned char)(t.str[digits - 1] - '0') <= 9))
		digits--;
	for (size_t i = 0; i < t.size; i++) {
		bool blank = t.str[i] == ' ' &&
			     (!i || i + 1 == t.size || (last && i + 1 == digits));

		if (t.str[i] != ';' && !blank)
			continue;
		out_bytes(o, t.str + from, i - from);
		out_text(o, blank ? "_" : ":");
		from = i + 1;
	}
	out_bytes(o, t.str + from, t.size - from);
	if (!t.size)
		out_text(o, "?");
}

static void put_frame(struct out *o, const struct profile_function *fn, bool last)
{
	out_text(o, ";");
	put_name(o, fn->name, last);
	out_text(o, fn->kind == 'k'   ? "_[k]"
		    : fn->kind == 'j' ? "_[j]"
		    : fn->inlined     ? "_[i]"
				      : "");
}

int folded_write(struct out *o, const struct snapshot *s)
{
	double rest = 0;

	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		const struct profile_process *process = snapshot_process_of(s, stack->task);
		long long weight = snapshot_whole(stack->weight, &rest);

		if (!weight)
			continue;
		put_name(o, process ? process->comm : TEXT("?"), !stack->nr);
		for (uint32_t k = 0; k < stack->nr; k++)
			put_frame(o, snapshot_function(s, s->calls[stack->first + k]),
				  k + 1 == stack->nr);
		out_format(o, " %lld\n", weight);
		out_progress(o, i, s->nr_stacks);
	}
	return o->failed ? -ENOMEM : 0;
}
