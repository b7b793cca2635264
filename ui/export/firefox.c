// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The processed profile format of the Firefox profiler, version 60: newer readers upgrade it.
 *
 * A profile has sums, no times of single samples: the stacks of a thread follow each other, each
 * as long as its weight.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

enum category { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_JIT, CATEGORY_LANGUAGE };

/* Strings 0 to nr_functions - 1 are the functions' names, then the modules', then the files'. */
struct tables {
	const struct snapshot *s;
	struct dense nodes; /* (parent + 1, frame) -> node of the stack table */
	uint32_t *stacks;   /* by stack, its node; DENSE_NONE: no frames */
};

static enum category category_of(const struct profile_function *fn)
{
	if (fn->kernel || fn->kind == 'k')
		return CATEGORY_KERNEL;
	if (fn->kind == 'j')
		return CATEGORY_JIT;
	if (profile_language_name(fn->kind))
		return CATEGORY_LANGUAGE;
	return fn->kind == 'u' ? CATEGORY_USER : CATEGORY_OTHER;
}

/* Make the tree of all stacks; parents are before their children. */
static int make_nodes(struct tables *t)
{
	const struct snapshot *s = t->s;

	t->stacks = calloc(s->nr_stacks + 1ULL, sizeof(*t->stacks));
	if (!t->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		uint32_t node = DENSE_NONE;
		bool is_new;

		for (uint32_t k = 0; k < stack->nr; k++) {
			node = dense_add(&t->nodes,
					 (uint64_t)(node + 1) << 32 | s->calls[stack->first + k],
					 &is_new);
			if (node == DENSE_NONE)
				return -ENOMEM;
		}
		t->stacks[i] = node;
	}
	return 0;
}

/* Add a column: a value of each of @nr entries. */
#define COLUMN(o, name, nr, ...)                                                                   \
	do {                                                                                       \
		out_format(o, ",\"%s\":[", name);                                                  \
		for (uint32_t i = 0; i < (nr); i++) {                                              \
			if (i)                                                                     \
				out_text(o, ",");                                                  \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		out_text(o, "]");                                                                  \
	} while (0)

static void put_meta(struct out *o, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	uint64_t start = p->time_ns - MIN(p->time_ns, p->window_ns);
	char title[512];

	out_format(o,
		   "{\"meta\":{\"preprocessedProfileVersion\":60,\"version\":24,\"interval\":%.6f,"
		   "\"startTime\":%llu,\"processType\":0,\"stackwalk\":1,\"debug\":false,"
		   "\"symbolicated\":true,\"product\":",
		   s->event->want_hz > 0 ? 1000 / s->event->want_hz : 1,
		   (unsigned long long)(start / 1000000));
	json_put(o, facts_title(s, title));
	out_text(o, ",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		    "\"threadCPUDelta\":\"ns\"},\"extensions\":{\"length\":0,\"baseURL\":[],"
		    "\"id\":[],\"name\":[]},\"oscpu\":\"Linux\",\"usesOnlyOneStackType\":true,"
		    "\"sourceCodeIsNotOnSearchfox\":true,\"appBuildID\":\"" PROFTOP_VERSION "\","
		    "\"categories\":["
		    "{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
		    "{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
		    "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
		    "{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]},"
		    "{\"name\":\"Script\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}],"
		    "\"markerSchema\":[]},\n\"libs\":[");
	for (uint32_t i = 0; i < p->nr_modules; i++) {
		struct safe_text name = snapshot_module(s, i);
		struct safe_text path = s->has_module[i] ? p->modules[i].path : TEXT("");

		out_text(o, i ? ",\n{\"arch\":\"\",\"name\":" : "{\"arch\":\"\",\"name\":");
		json_put(o, name);
		out_text(o, ",\"path\":");
		json_put(o, path);
		out_text(o, ",\"debugName\":");
		json_put(o, name);
		out_text(o, ",\"debugPath\":");
		json_put(o, path);
		out_text(o, ",\"breakpadId\":\"\",\"codeId\":null}");
	}
	out_text(o, "],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\n\"shared\":{");
}

static void put_strings(struct out *o, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	const struct safe_text none = TEXT("?");
	uint32_t at = 0;

	out_text(o, "\"stringArray\":[");
	for (uint32_t i = 0; i < p->nr_functions; i++, at++) {
		out_text(o, at ? "," : "");
		json_put(o, snapshot_name(s, i).size ? snapshot_name(s, i) : none);
	}
	for (uint32_t i = 0; i < p->nr_modules; i++, at++) {
		out_text(o, at ? "," : "");
		json_put(o, snapshot_module(s, i));
	}
	for (uint32_t i = 0; i < p->nr_files; i++, at++) {
		out_text(o, at ? "," : "");
		json_put(o, snapshot_file(s, i));
	}
	out_text(o, "]");
}

/* Return the inline depth of calls in a frame: 0, or how deep it is in its real function. */
static unsigned int depth_of(const struct snapshot *s, uint32_t frame)
{
	return snapshot_function(s, frame)->inlined;
}

static void put_number_or_null(struct out *o, uint32_t number)
{
	if (number)
		out_format(o, "%u", number);
	else
		out_text(o, "null");
}

static void put_frames(struct out *o, const struct tables *t)
{
	const struct snapshot *s = t->s;
	uint32_t number, nr = s->nr_frames;

	out_format(o, ",\n\"stackTable\":{\"length\":%u", t->nodes.nr);
	COLUMN(o, "frame", t->nodes.nr, out_format(o, "%u", (uint32_t)t->nodes.keys[i]));
	COLUMN(o, "prefix", t->nodes.nr,
	       if (t->nodes.keys[i] >> 32)
		       out_format(o, "%u", (uint32_t)(t->nodes.keys[i] >> 32) - 1);
	       else out_text(o, "null"));
	out_format(o, "},\n\"frameTable\":{\"length\":%u", nr);
	COLUMN(o, "address", nr, out_text(o, "-1"));
	COLUMN(o, "inlineDepth", nr, out_format(o, "%u", depth_of(s, i)));
	COLUMN(o, "category", nr, out_format(o, "%d", category_of(snapshot_function(s, i))));
	COLUMN(o, "subcategory", nr, out_text(o, "0"));
	COLUMN(o, "func", nr, out_format(o, "%u", s->frames[i].function));
	COLUMN(o, "nativeSymbol", nr, out_text(o, "null"));
	COLUMN(o, "innerWindowID", nr, out_text(o, "0"));
	COLUMN(o, "line", nr, snapshot_line(s, s->frames[i].line, &number);
	       put_number_or_null(o, number));
	COLUMN(o, "column", nr, out_text(o, "null"));
	out_text(o, "}");
}

/* Return the file of a function, as an index; UINT32_MAX: unknown. */
static uint32_t file_of(const struct snapshot *s, uint32_t function)
{
	const struct profile *p = s->profile;
	uint32_t line = s->lines[function];

	assert(function < s->profile->nr_functions);
	return line < p->nr_lines && p->lines[line].file < p->nr_files ? p->lines[line].file
								       : UINT32_MAX;
}

static void put_functions(struct out *o, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	uint32_t nr = p->nr_functions;

	out_format(o, ",\n\"funcTable\":{\"length\":%u", nr);
	COLUMN(o, "name", nr, out_format(o, "%u", i));
	COLUMN(o, "isJS", nr, out_text(o, "false"));
	COLUMN(o, "relevantForJS", nr, out_text(o, "false"));
	COLUMN(o, "resource", nr,
	       out_format(o, "%d",
			  p->functions[i].module_index < p->nr_modules
				  ? (int)p->functions[i].module_index
				  : -1));
	COLUMN(o, "source", nr, if (file_of(s, i) < p->nr_files) out_format(o, "%u", file_of(s, i));
	       else out_text(o, "null"));
	COLUMN(o, "lineNumber", nr, out_text(o, "null"));
	COLUMN(o, "columnNumber", nr, out_text(o, "null"));
	out_format(o, "},\n\"resourceTable\":{\"length\":%u", p->nr_modules);
	COLUMN(o, "lib", p->nr_modules, out_format(o, "%u", i));
	COLUMN(o, "name", p->nr_modules, out_format(o, "%u", nr + i));
	COLUMN(o, "host", p->nr_modules, out_text(o, "null"));
	COLUMN(o, "type", p->nr_modules, out_text(o, "1"));
	out_text(o, "},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],"
		    "\"name\":[],\"functionSize\":[]}");
	out_format(o, ",\n\"sources\":{\"length\":%u", p->nr_files);
	COLUMN(o, "id", p->nr_files, out_text(o, "null"));
	COLUMN(o, "filename", p->nr_files, out_format(o, "%u", nr + p->nr_modules + i));
	out_text(o, "}}");
}

/* Return the weight as the samples' unit: ms, or the number of events. */
static double scaled(const struct snapshot *s, double weight)
{
	return s->nanoseconds ? weight / 1e6 : weight;
}

/* Add the stacks [first, first + nr) of one task. */
static void put_thread(struct out *o, const struct tables *t, uint32_t first, uint32_t nr)
{
	const struct snapshot *s = t->s;
	uint32_t task = s->stacks[first].task;
	const struct profile_task *thread = &s->profile->tasks[task];
	const struct profile_process *process = snapshot_process_of(s, task);
	double time = 0;

	assert(nr && first + nr <= s->nr_stacks);
	out_text(o, "{\"processType\":\"default\",\"processName\":");
	json_put(o, process ? profile_process_name(process) : TEXT("?"));
	out_text(o, ",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
		    "\"unregisterTime\":null,\"pausedRanges\":[],\"name\":");
	json_put(o, thread->comm);
	out_format(o, ",\"isMainThread\":%s,\"pid\":\"%d\",\"tid\":%d,\"samples\":{\"length\":%u",
		   process && process->pid == thread->tid ? "true" : "false",
		   process ? (int)process->pid : 0, (int)thread->tid, nr);
	COLUMN(o, "stack", nr,
	       if (t->stacks[first + i] != DENSE_NONE) out_format(o, "%u", t->stacks[first + i]);
	       else out_text(o, "null"));
	COLUMN(o, "time", nr, out_number(o, time, 6);
	       time += scaled(s, s->stacks[first + i].weight));
	COLUMN(o, "weight", nr, out_number(o, scaled(s, s->stacks[first + i].weight), 6));
	out_format(o,
		   ",\"weightType\":\"%s\"},\"markers\":{\"length\":0,\"name\":[],\"startTime\":[],"
		   "\"endTime\":[],\"phase\":[],\"category\":[],\"data\":[]}}",
		   s->nanoseconds ? "tracing-ms" : "samples");
}

static void put_threads(struct out *o, const struct tables *t)
{
	const struct snapshot *s = t->s;

	out_text(o, ",\n\"threads\":[");
	for (uint32_t i = 0, nr; i < s->nr_stacks; i += nr) {
		for (nr = 1; i + nr < s->nr_stacks; nr++)
			if (s->stacks[i + nr].task != s->stacks[i].task)
				break;
		out_text(o, i ? ",\n" : "\n");
		put_thread(o, t, i, nr);
		out_progress(o, i, s->nr_stacks);
	}
	out_text(o, "]}\n");
}

int firefox_write(struct out *o, const struct snapshot *s)
{
	struct tables t = { .s = s };
	int code = make_nodes(&t);

	if (!code) {
		put_meta(o, s);
		put_strings(o, s);
		put_frames(o, &t);
		put_functions(o, s);
		put_threads(o, &t);
	}
	dense_fini(&t.nodes);
	free(t.stacks);
	return code || o->failed ? -ENOMEM : 0;
}
