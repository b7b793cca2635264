// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of states and reasons; freeing a profile. Runs on: any thread, that of the profile's owner.
 */
#include "sampler/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lang/lang.h"
#include "unwind/unwind.h"

const char *profile_broken_name(unsigned int reason)
{
	return reason < UNWIND_NR_STOPS ? unwind_stop_name((enum unwind_stop)reason) : "?";
}

const char *profile_drop_name(enum profile_drop reason)
{
	static const char *const names[DROP_NR] = {
		[DROP_STACKS_FULL] = "stack table full",
		[DROP_CELLS_FULL] = "count table full",
		[DROP_PLACES_FULL] = "place table full",
		[DROP_BAD_RECORD] = "record that makes no sense",
		[DROP_UNKNOWN_EVENT] = "sample of an unknown event",
		[DROP_EVENT_LIMIT] = "event beyond the limit of 8",
		[DROP_EVENT_GONE] = "event that is no longer sampled",
	};

	return (unsigned int)reason < DROP_NR ? names[reason] : "?";
}

const char *profile_lang_none_name(unsigned int reason)
{
	return lang_none_name((enum lang_none)reason);
}

const char *profile_language_name(char kind)
{
	if (kind == LANG_JAVA)
		return "java";
	for (int i = LANG_NONE + 1; i < LANG_NR; i++)
		if (lang_letter((enum lang_kind)i) == kind)
			return lang_name((enum lang_kind)i);
	return NULL;
}

const char *profile_language_prefix(const char *text, size_t *size)
{
	/* The name of the language, which --languages and NDJSON have by its interpreter. */
	*size = sizeof("javascript:") - 1;
	if (!strncmp(text, "javascript:", *size) && text[*size] != ':')
		return lang_name(LANG_NODE);
	for (int i = LANG_NONE + 1; i <= LANG_NR; i++) {
		char kind = i < LANG_NR ? lang_letter((enum lang_kind)i) : LANG_JAVA;
		const char *name = profile_language_name(kind);

		*size = strlen(name) + 1;
		/* "java::foo" is a name of C++. */
		if (!strncmp(text, name, *size - 1) && text[*size - 1] == ':' && text[*size] != ':')
			return name;
	}
	return NULL;
}

const char *profile_call_graph_name(enum call_graph mode)
{
	static const char *const names[CALL_GRAPH_NR] = {
		[CALL_GRAPH_DWARF] = "dwarf",
		[CALL_GRAPH_FP] = "fp",
		[CALL_GRAPH_OFF] = "off",
	};

	return (unsigned int)mode < CALL_GRAPH_NR ? names[mode] : "?";
}

const char *profile_frames_name(enum profile_frames frames)
{
	static const char *const names[FRAMES_NR] = {
		[FRAMES_LANGUAGE] = "language",
		[FRAMES_BOTH] = "both",
		[FRAMES_NATIVE] = "native",
	};

	return (unsigned int)frames < FRAMES_NR ? names[frames] : "?";
}

const char *profile_module_state_name(enum profile_module_state state)
{
	static const char *const names[] = {
		[PROFILE_MODULE_LOADING] = "loading", [PROFILE_MODULE_READY] = "ready",
		[PROFILE_MODULE_FAILED] = "failed",   [PROFILE_MODULE_ASIDE] = "aside",
		[PROFILE_MODULE_AWAY] = "away",	      [PROFILE_MODULE_KEPT] = "kept",
	};

	return (unsigned int)state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *profile_message_action(const struct profile_message *n)
{
	static const char *const words[] = {
		[MESSAGE_NONE] = "",
		[MESSAGE_RATE] = "lower the rate",
		[MESSAGE_STACK_SIZE] = "larger stack copies",
		[MESSAGE_RING_SIZE] = "larger rings",
		[MESSAGE_CALL_GRAPH] = "use frame pointers",
		[MESSAGE_RESET] = "count from zero",
		[MESSAGE_EVENTS] = "choose events",
		[MESSAGE_MODULES] = "show by module",
		[MESSAGE_CPUS] = "show by CPU",
	};

	if (n->control == MESSAGE_CALL_GRAPH && n->value == CALL_GRAPH_DWARF)
		return "use DWARF unwinding";
	return (unsigned int)n->control < ARRAY_SIZE(words) ? words[n->control] : "";
}

struct profile *profile_keep(struct profile *p)
{
	/* Relaxed: the caller is an owner already. */
	atomic_fetch_add_explicit(&p->nr_keepers, 1, memory_order_relaxed);
	return p;
}

uint32_t profile_access_pack(const struct access_kind *kind)
{
	return (uint32_t)kind->op | (uint32_t)kind->level << 8 | (uint32_t)kind->miss << 16 |
	       (uint32_t)kind->tlb_miss << 17;
}

struct access_kind profile_access_kind(uint32_t packed)
{
	return (struct access_kind){ .op = (enum access_op)(packed & 0xff),
				     .level = (enum access_level)(packed >> 8 & 0xff),
				     .miss = packed >> 16 & 1,
				     .tlb_miss = packed >> 17 & 1 };
}

void profile_free(struct profile *p)
{
	/* Acquire and release: all reads of the other owners happen before the free. */
	if (!p || atomic_fetch_sub_explicit(&p->nr_keepers, 1, memory_order_acq_rel))
		return;
	free(p->cpus);
	free(p->cpu_events);
	free(p->functions);
	free(p->processes);
	free(p->ancestors);
	free(p->tasks);
	free(p->stacks);
	free(p->stack_waits);
	free(p->stack_idle);
	free(p->frames);
	free(p->frame_lines);
	free(p->lines);
	free(p->files);
	free(p->counts);
	free(p->modules);
	free(p->branches);
	free(p->accesses);
	free(p->messages);
	if (p->annotate) {
		free(p->annotate->points);
		listing_put(p->annotate->listing);
		free(p->annotate);
	}
	text_arena_free(p->names);
	free(p->pool);
	free(p);
}
