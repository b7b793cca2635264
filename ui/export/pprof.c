// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pprof's profile.proto (https://github.com/google/pprof): fields of protobuf, compressed.
 *
 * A location is an instruction: its function with the functions that are inlined there, each with
 * its line. Its address is as linked, that of a caller inside of the call; so are the ranges of
 * mappings, one for each segment with code. Process and thread are labels, not frames.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

/* Fields of the messages. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE
};

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };

enum { LABEL_KEY = 1, LABEL_STR };

enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILENAME,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINES
};

enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };

enum { LINE_FUNCTION = 1, LINE_LINE };

enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_FIRST };

enum { VALUE_TYPE = 1, VALUE_UNIT };

struct writing {
	const struct snapshot *s;
	struct out out;	  /* the message, not compressed */
	struct out part;  /* a submessage; */
	struct out inner; /* one inside it */
	struct strings strings;
	struct locations locations;	 /* numbers: id - 1 */
	uint32_t *mappings, nr_mappings; /* by module, the id of its first one */
};

static void put_value_type(struct writing *w, int field, struct safe_text type,
			   struct safe_text unit)
{
	proto_number(&w->part, VALUE_TYPE, strings_add(&w->strings, type));
	proto_number(&w->part, VALUE_UNIT, strings_add(&w->strings, unit));
	proto_message(&w->out, field, &w->part);
}

/* Add a mapping of a module; @code NULL: without a range. */
static void put_mapping(struct writing *w, const struct profile_module *m,
			const struct profile_code *code)
{
	proto_number(&w->part, MAPPING_ID, ++w->nr_mappings);
	if (code) {
		proto_number(&w->part, MAPPING_START, code->start);
		proto_number(&w->part, MAPPING_LIMIT, code->end);
		proto_number(&w->part, MAPPING_OFFSET, code->offset);
	}
	proto_number(&w->part, MAPPING_FILENAME,
		     strings_add(&w->strings, m->path.size ? m->path : m->name));
	proto_number(&w->part, MAPPING_BUILD_ID, strings_add(&w->strings, m->build_id));
	/* Readers then do not look for symbols of files that they do not have. */
	for (int field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
		proto_number(&w->part, field, 1);
	proto_message(&w->out, PROFILE_MAPPING, &w->part);
}

/* Add the mappings of module @i. */
static void put_module(struct writing *w, uint32_t i)
{
	const struct profile_module *m = &w->s->profile->modules[i];

	assert(i < w->s->profile->nr_modules && m->nr_code <= PROFILE_CODE_MAX);
	w->mappings[i] = w->nr_mappings + 1;
	if (!m->nr_code)
		put_mapping(w, m, NULL);
	for (uint32_t k = 0; k < m->nr_code; k++)
		put_mapping(w, m, &m->code[k]);
}

/* Return the id of the mapping of an address; the first one of its module if none has it. */
static uint64_t mapping_of(const struct writing *w, uint32_t module, uint64_t address)
{
	const struct profile_module *m = &w->s->profile->modules[module];

	for (uint32_t k = 0; k < m->nr_code; k++)
		if (address >= m->code[k].start && address < m->code[k].end)
			return w->mappings[module] + k;
	return w->mappings[module];
}

static bool is_named(const struct profile_module *m, struct safe_text name)
{
	return name.size && m->name.size == name.size && !memcmp(m->name.str, name.str, name.size);
}

/* Return whether it is a file with a program, by its name: not [kernel], [vdso] or a library. */
static bool is_program(const struct profile_module *m)
{
	return m->name.size && m->name.str[0] != '[' && !strstr(m->name.str, ".so");
}

/* Find the program that is on most stacks; UINT32_MAX: none is. */
static uint32_t most_common(const struct snapshot *s)
{
	const struct profile *p = s->profile;
	uint32_t best = UINT32_MAX;
	double most = 0;

	for (uint32_t i = 0; i < s->nr_rows; i++) {
		uint32_t m = p->functions[s->rows[i].function].module_index;

		if (m >= p->nr_modules || !s->has_module[m] || s->rows[i].total <= most ||
		    !is_program(&p->modules[m]))
			continue;
		most = s->rows[i].total;
		best = m;
	}
	return best;
}

/*
 * Find the program of the hottest process that has one: by the name of its file, else by the name
 * of the process, else by the stacks. UINT32_MAX: no program is in the profile.
 */
static uint32_t main_module(const struct snapshot *s)
{
	const struct profile *p = s->profile;

	for (uint32_t k = 0; k < s->nr_processes; k++) {
		const struct profile_process *process = &p->processes[s->processes[k].process];
		struct safe_text name = process->program.size ? process->program : process->comm;

		for (uint32_t i = 0; i < p->nr_modules; i++)
			if (s->has_module[i] && is_named(&p->modules[i], name))
				return i;
	}
	return most_common(s);
}

/* The first mapping is the main program for readers. */
static void put_mappings(struct writing *w)
{
	uint32_t first = main_module(w->s);

	if (first != UINT32_MAX)
		put_module(w, first);
	for (uint32_t i = 0; i < w->s->profile->nr_modules; i++)
		if (w->s->has_module[i] && i != first)
			put_module(w, i);
}

static void put_functions(struct writing *w)
{
	const struct profile *p = w->s->profile;

	for (uint32_t i = 0; i < p->nr_functions; i++) {
		struct safe_text text = snapshot_name(w->s, i);
		uint32_t number;
		uint64_t name;

		if (!w->s->has_function[i])
			continue;
		/* No system name: pprof would decode it, "<u64>::lt" to "::lt" of all types. */
		name = strings_add(&w->strings, text.size ? text : TEXT("?"));
		proto_number(&w->part, FUNCTION_ID, i + 1);
		proto_number(&w->part, FUNCTION_NAME, name);
		proto_number(&w->part, FUNCTION_FILE,
			     strings_add(&w->strings, snapshot_source(w->s, i, &number)));
		proto_number(&w->part, FUNCTION_FIRST, p->functions[i].first_line);
		proto_message(&w->out, PROFILE_FUNCTION, &w->part);
	}
}

/* Add a location: the frames calls[@last] (innermost) down to calls[@first]. */
static void put_location(struct writing *w, uint64_t id, uint32_t first, uint32_t last)
{
	const struct snapshot *s = w->s;
	const struct profile_function *fn = snapshot_function(s, s->calls[first]);
	uint32_t at = s->frames[s->calls[first]].line;
	uint64_t address = at < s->profile->nr_lines ? s->profile->lines[at].address : 0;

	assert(first <= last && last < s->nr_calls);
	/* A function of which only the begin is known: one that led on to the next, by a jump. */
	address = address ? address : fn->start;
	proto_number(&w->part, LOCATION_ID, id);
	if (fn->module_index < s->profile->nr_modules)
		proto_number(&w->part, LOCATION_MAPPING, mapping_of(w, fn->module_index, address));
	proto_number(&w->part, LOCATION_ADDRESS, address);
	for (uint32_t i = last + 1; i-- > first;) {
		const struct snapshot_frame *f = &s->frames[s->calls[i]];
		uint32_t number;

		snapshot_line(s, f->line, &number);
		proto_number(&w->inner, LINE_FUNCTION, f->function + 1ull);
		proto_number(&w->inner, LINE_LINE, number);
		proto_message(&w->part, LOCATION_LINE, &w->inner);
	}
	proto_message(&w->out, PROFILE_LOCATION, &w->part);
}

/* Return the id of the location with the innermost frame calls[*@at]; set *@at to its last. */
static uint64_t location_of(struct writing *w, uint32_t first, uint32_t *at)
{
	uint32_t last = *at, n;
	bool is_new;

	n = locations_add(&w->locations, w->s, first, at, &is_new);
	if (n == DENSE_NONE)
		w->out.failed = true;
	else if (is_new)
		put_location(w, n + 1ull, *at, last);
	return n + 1ull;
}

static void put_label(struct writing *w, struct safe_text key, struct safe_text value)
{
	proto_number(&w->inner, LABEL_KEY, strings_add(&w->strings, key));
	proto_number(&w->inner, LABEL_STR, strings_add(&w->strings, value));
	proto_message(&w->part, SAMPLE_LABEL, &w->inner);
}

/*
 * Add process and thread as text: readers drop a number without a unit if it is 0. The texts of
 * numbers are in @buf until the end.
 */
static void put_labels(struct writing *w, uint32_t task, char (*buf)[16])
{
	const struct profile_process *process = snapshot_process_of(w->s, task);
	const struct profile_task *t = &w->s->profile->tasks[task];

	assert(task < w->s->profile->nr_tasks);
	if (process) {
		put_label(w, TEXT("comm"), process->comm);
		put_label(w, TEXT("pid"), text_format(buf[0], 16, "%d", (int)process->pid));
		if (process->container.size)
			put_label(w, TEXT("container"), process->container);
		for (unsigned int i = 0; i < SERVICE_NR; i++)
			if (process->service[i].size)
				put_label(w, profile_service_label(i), process->service[i]);
	}
	put_label(w, TEXT("thread"), t->comm);
	put_label(w, TEXT("tid"), text_format(buf[1], 16, "%d", (int)t->tid));
}

/* Add the samples, with the locations that are new. @numbers: two texts for each task. */
static void put_samples(struct writing *w, char (*numbers)[16])
{
	const struct snapshot *s = w->s;
	double rests[2] = { 0 };

	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		struct out ids = { .failed = false }, sample = { .failed = false };
		int64_t count = snapshot_whole(stack->count, &rests[0]);
		int64_t weight = snapshot_whole(stack->weight, &rests[1]);

		if (!count && !weight)
			continue;

		for (uint32_t at = stack->first + stack->nr; at-- > stack->first;)
			proto_varint(&ids, location_of(w, stack->first, &at));
		proto_bytes(&sample, SAMPLE_LOCATION, ids.data, ids.size);
		ids.size = 0;
		proto_varint(&ids, (uint64_t)count);
		proto_varint(&ids, (uint64_t)weight);
		proto_bytes(&sample, SAMPLE_VALUE, ids.data, ids.size);
		put_labels(w, stack->task, &numbers[2 * stack->task]);
		out_bytes(&sample, w->part.data, w->part.size);
		w->part.size = 0;
		sample.failed |= ids.failed || w->part.failed;
		proto_message(&w->out, PROFILE_SAMPLE, &sample);
		out_fini(&ids);
		out_fini(&sample);
	}
}

/* Add comments: the facts. @facts are borrowed until the end. */
static void put_comments(struct writing *w, struct fact *facts)
{
	uint32_t nr = facts_make(w->s, facts);
	char line[400];

	for (uint32_t i = 0; i < nr; i++) {
		text_format(line, sizeof(line), "%s: %s", facts[i].name, facts[i].text);
		proto_number(&w->out, PROFILE_COMMENT,
			     strings_add(&w->strings,
					 text_format(facts[i].text, sizeof(facts[i].text), "%s",
						     line)));
	}
}

/* Add the period; 1 if it varies. */
static void put_period(struct writing *w)
{
	put_value_type(w, PROFILE_PERIOD_TYPE, w->s->type, w->s->unit);
	proto_number(&w->out, PROFILE_PERIOD, (uint64_t)snapshot_period_whole(w->s));
}

static void put_all(struct writing *w, struct fact *facts, char (*numbers)[16])
{
	const struct profile *p = w->s->profile;

	put_value_type(w, PROFILE_SAMPLE_TYPE, TEXT("samples"), TEXT("count"));
	put_value_type(w, PROFILE_SAMPLE_TYPE, w->s->type, w->s->unit);
	put_mappings(w);
	put_functions(w);
	put_samples(w, numbers);
	proto_number(&w->out, PROFILE_TIME, p->time_ns - MIN(p->time_ns, p->window_ns));
	proto_number(&w->out, PROFILE_DURATION, p->window_ns);
	put_period(w);
	put_comments(w, facts);
	proto_number(&w->out, PROFILE_DEFAULT_TYPE, strings_add(&w->strings, w->s->type));
	out_bytes(&w->out, w->strings.out.data, w->strings.out.size);
}

int pprof_write(struct out *o, const struct snapshot *s)
{
	struct writing w = { .s = s };
	char(*numbers)[16] = calloc(s->profile->nr_tasks + 1ULL, 2 * sizeof(*numbers));
	struct fact *facts = calloc(FACTS_MAX, sizeof(*facts));
	int code = -ENOMEM;

	w.mappings = calloc(s->profile->nr_modules + 1ULL, sizeof(*w.mappings));
	strings_init(&w.strings, PROFILE_STRING);
	if (numbers && facts && w.mappings) {
		put_all(&w, facts, numbers);
		if (!w.out.failed && !w.part.failed && !w.inner.failed && !w.strings.out.failed)
			code = gzip_write(o, &w.out);
	}
	out_fini(&w.out);
	out_fini(&w.part);
	out_fini(&w.inner);
	strings_fini(&w.strings);
	locations_fini(&w.locations);
	free(w.mappings);
	free(numbers);
	free(facts);
	return code;
}
