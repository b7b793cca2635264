// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * OpenTelemetry's profiles.proto, v1development of release 1.11
 * (https://github.com/open-telemetry/opentelemetry-proto): experimental, the format still changes.
 *
 * ProfilesData, which has the layout of a request to a collector. All is in one resource, but for
 * services that name themselves (OTEP 4719), which have one each; process and thread are attributes
 * of samples. There are two profiles of the same samples: their number, and their weight. Each
 * table has the zero value as entry 0, and no two equal entries: functions of two objects with one
 * name and file are one, and so are their locations in objects of one path and build id.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

/* Fields of the messages. */
enum { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY };

enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES };

enum { RESOURCE_ATTRIBUTE = 1 };

enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILE };

enum { SCOPE_NAME = 1, SCOPE_VERSION };

enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };

enum { VALUE_STRING = 1, VALUE_INT = 3 };

enum {
	TABLE_MAPPING = 1,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK
};

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_TIME,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_ATTRIBUTES = 11
};

enum { TYPE_TYPE = 1, TYPE_UNIT };

enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_VALUES = 4 };

enum { MAPPING_FILENAME = 4, MAPPING_ATTRIBUTES };

enum { LOCATION_MAPPING = 1, LOCATION_LINE = 3, LOCATION_ATTRIBUTES };

enum { LINE_FUNCTION = 1, LINE_LINE };

enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

enum { STACK_LOCATIONS = 1 };

enum { LINK_TRACE = 1, LINK_SPAN };

enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE };

/* Services with a resource; the samples of others have their names as attributes. */
#define SERVICES_MAX 64

/* Samples of one stack in one task: their number, and their weight. */
struct otlp_sums {
	double values[2];
};

/* The facts, with their keys. */
struct said {
	struct fact facts[FACTS_MAX];
	struct otlp_key {
		char buf[32];
		struct safe_text text;
	} keys[FACTS_MAX];
	uint32_t nr;
};

struct writing {
	const struct snapshot *s;
	struct said *said;
	struct out dictionary;	/* without its strings */
	struct out part, inner; /* messages inside of others */
	struct out indices;	/* packed: of attributes */
	struct out calls;	/* packed: of the locations of a stack */
	struct strings strings;
	struct strings values;	 /* of attributes; for their numbers only */
	struct dense mappings;	 /* (path, attribute) -> index - 1 */
	struct dense functions;	 /* (name, file) -> index - 1 */
	struct dense attributes; /* (key, value) -> index - 1 */
	struct locations locations;
	uint32_t *location_of; /* by number of a location: its index */
	struct dense heads;    /* (mapping, type) -> head - 1 */
	struct dense lines;    /* (function, line) -> line - 1 */
	struct dense bodies;   /* (body, line) -> body - 1: innermost first */
	struct dense places;   /* (head, body) -> index of a location - 1 */
	struct dense chains;   /* (chain, location) -> chain - 1: stacks, leaf first */
	struct dense stacks;   /* chain -> index - 1 */
	struct dense samples;  /* (stack, task) -> index in sums */
	struct otlp_sums *sums;
	uint32_t services[SERVICES_MAX]; /* a process of each */
	uint32_t nr_services;
	bool failed;
};

/* Note a failed look-up. Return the index of @n: entry 0 is the zero value. */
static uint64_t index_of(struct writing *w, uint32_t n)
{
	w->failed |= n == DENSE_NONE;
	return n + 1ull;
}

/* Return the index of a pair. */
static uint32_t pair_of(struct writing *w, struct dense *d, uint64_t a, uint64_t b, bool *is_new)
{
	return (uint32_t)index_of(w, dense_add(d, a << 32 | b, is_new));
}

/* Add a number that a reader takes for 0 if it is left out. */
static void put_number(struct out *o, int field, uint64_t v)
{
	if (v)
		proto_number(o, field, v);
}

/* Move packed numbers into a field of @o. */
static void put_packed(struct out *o, int field, struct out *numbers)
{
	if (numbers->size || numbers->failed)
		proto_message(o, field, numbers);
}

/* ---- attributes ---- */

static void put_attribute(struct writing *w, uint64_t key)
{
	proto_number(&w->part, ATTRIBUTE_KEY, key);
	proto_message(&w->part, ATTRIBUTE_VALUE, &w->inner);
	proto_message(&w->dictionary, TABLE_ATTRIBUTE, &w->part);
}

/* Return the index of a text as an attribute; w->part and w->inner must be empty. */
static uint32_t text_of(struct writing *w, struct safe_text name, struct safe_text value)
{
	uint64_t key = strings_add(&w->strings, name);
	bool is_new;
	uint32_t at = pair_of(w, &w->attributes, key, strings_add(&w->values, value), &is_new);

	if (is_new) {
		proto_bytes(&w->inner, VALUE_STRING, value.str, value.size);
		put_attribute(w, key);
	}
	return at;
}

/* Add a text to w->indices. */
static void add_text(struct writing *w, struct safe_text name, struct safe_text value)
{
	proto_varint(&w->indices, text_of(w, name, value));
}

static void add_number(struct writing *w, struct safe_text name, pid_t value)
{
	uint64_t key = strings_add(&w->strings, name);
	bool is_new;
	uint32_t at = pair_of(w, &w->attributes, key, (uint32_t)value, &is_new);

	if (is_new) {
		proto_number(&w->inner, VALUE_INT, (uint64_t)(int64_t)value);
		put_attribute(w, key);
	}
	proto_varint(&w->indices, at);
}

/* ---- services ---- */

static bool is_same_service(const struct profile_process *a, const struct profile_process *b)
{
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		if (a->service[i].size != b->service[i].size ||
		    (a->service[i].size &&
		     memcmp(a->service[i].str, b->service[i].str, a->service[i].size) != 0))
			return false;
	return true;
}

/* Return the number of the service of a process, from 1 on; 0: it has none, or no resource. */
static uint32_t service_of(const struct writing *w, const struct profile_process *process)
{
	for (uint32_t i = 0; process && process->service[SERVICE_NAME].size && i < w->nr_services;
	     i++)
		if (is_same_service(&w->s->profile->processes[w->services[i]], process))
			return i + 1;
	return 0;
}

static struct safe_text key_of(unsigned int fact)
{
	const char *key = service_key(fact);

	return (struct safe_text){ key, (uint16_t)strlen(key), 0 };
}

/* Find the services of the samples. */
static void find_services(struct writing *w)
{
	const struct profile *p = w->s->profile;

	for (uint32_t i = 0; i < p->nr_processes && w->nr_services < SERVICES_MAX; i++)
		if (w->s->has_process[i] && p->processes[i].service[SERVICE_NAME].size &&
		    !service_of(w, &p->processes[i]))
			w->services[w->nr_services++] = i;
}

/* Add the process and the thread of a sample. */
static void add_task(struct writing *w, uint32_t task)
{
	const struct profile_process *process = snapshot_process_of(w->s, task);
	const struct profile_task *t = &w->s->profile->tasks[task];

	assert(task < w->s->profile->nr_tasks);
	if (process) {
		const char *colon = process->container.size ? strchr(process->container.str, ':')
							    : NULL;
		struct safe_text id = process->container;

		add_number(w, TEXT("process.pid"), process->pid);
		add_text(w, TEXT("process.executable.name"), process->comm);
		if (colon) {
			id.str = colon + 1;
			id.size = (uint16_t)strlen(id.str);
		}
		if (id.size)
			add_text(w, TEXT("container.id"), id);
		for (unsigned int i = 0; i < SERVICE_NR && !service_of(w, process); i++)
			if (process->service[i].size)
				add_text(w, key_of(i), process->service[i]);
	}
	add_number(w, TEXT("thread.id"), t->tid);
	add_text(w, TEXT("thread.name"), t->comm);
}

/* Return the type of a frame in the words of the semantic conventions; "": there is none. */
static struct safe_text frame_type(const struct profile_function *fn)
{
	const char *language = profile_language_name(fn->kind);

	if (fn->kernel || fn->kind == 'k')
		return TEXT("kernel");
	if (!language)
		return fn->kind == 'u' || fn->kind == 'v' ? TEXT("native") : TEXT("");
	if (!strcmp(language, "python"))
		return TEXT("cpython");
	if (!strcmp(language, "java"))
		return TEXT("jvm");
	if (!strcmp(language, "node"))
		return TEXT("v8js");
	if (!strcmp(language, "erlang"))
		return TEXT("beam");
	return (struct safe_text){ language, (uint16_t)strlen(language), 0 };
}

/* ---- tables ---- */

static void put_zero_values(struct writing *w)
{
	static const uint8_t zeros[16];

	for (int table = TABLE_MAPPING; table <= TABLE_STACK; table++) {
		if (table == TABLE_STRING)
			continue;
		if (table == TABLE_LINK) {
			proto_bytes(&w->part, LINK_TRACE, zeros, 16);
			proto_bytes(&w->part, LINK_SPAN, zeros, 8);
		}
		proto_message(&w->dictionary, table, &w->part);
	}
}

/* Return the index of a module in the table of mappings; w->part must be empty. */
static uint32_t mapping_of(struct writing *w, uint32_t module)
{
	const struct profile_module *m = &w->s->profile->modules[module];
	uint64_t name = strings_add(&w->strings, m->path.size ? m->path : m->name), id = 0;
	bool is_new;
	uint32_t at;

	assert(module < w->s->profile->nr_modules);
	if (m->build_id.size)
		id = text_of(w, TEXT("process.executable.build_id.gnu"), m->build_id);
	if (!name && !id)
		return 0;
	at = pair_of(w, &w->mappings, name, id, &is_new);
	if (!is_new)
		return at;
	put_number(&w->part, MAPPING_FILENAME, name);
	if (id)
		proto_varint(&w->indices, id);
	put_packed(&w->part, MAPPING_ATTRIBUTES, &w->indices);
	proto_message(&w->dictionary, TABLE_MAPPING, &w->part);
	return at;
}

/* Return the index of a function in its table; w->inner must be empty. */
static uint32_t function_of(struct writing *w, uint32_t function)
{
	const struct profile_function *fn = &w->s->profile->functions[function];
	uint64_t name = strings_add(&w->strings, fn->name.size ? fn->name : TEXT("?")), file;
	bool is_new;
	uint32_t line, at;

	assert(function < w->s->profile->nr_functions);
	file = strings_add(&w->strings, snapshot_line(w->s, w->s->lines[function], &line));
	at = pair_of(w, &w->functions, name, file, &is_new);
	if (!is_new)
		return at;
	proto_number(&w->inner, FUNCTION_NAME, name);
	proto_number(&w->inner, FUNCTION_SYSTEM_NAME, name);
	put_number(&w->inner, FUNCTION_FILE, file);
	proto_message(&w->dictionary, TABLE_FUNCTION, &w->inner);
	return at;
}

/* Return the index of a location: the frames calls[@last] (innermost) down to calls[@first]. */
static uint32_t location_of(struct writing *w, uint32_t first, uint32_t last)
{
	const struct snapshot *s = w->s;
	const struct profile_function *fn = snapshot_function(s, s->calls[first]);
	struct safe_text type = frame_type(fn);
	uint32_t mapping = 0, id = 0, head, body = 0, at;
	bool is_new;

	assert(first <= last && last < s->nr_calls);
	if (fn->module_index < s->profile->nr_modules)
		mapping = mapping_of(w, fn->module_index);
	if (type.size)
		id = text_of(w, TEXT("profile.frame.type"), type);
	head = pair_of(w, &w->heads, mapping, id, &is_new);
	put_number(&w->part, LOCATION_MAPPING, mapping);
	for (uint32_t i = last + 1; i-- > first;) {
		const struct snapshot_frame *f = &s->frames[s->calls[i]];
		uint32_t function = function_of(w, f->function), line;

		snapshot_line(s, f->line, &line);
		body = pair_of(w, &w->bodies, body, pair_of(w, &w->lines, function, line, &is_new),
			       &is_new);
		put_number(&w->inner, LINE_FUNCTION, function);
		put_number(&w->inner, LINE_LINE, line);
		proto_message(&w->part, LOCATION_LINE, &w->inner);
	}
	if (id)
		proto_varint(&w->indices, id);
	put_packed(&w->part, LOCATION_ATTRIBUTES, &w->indices);
	at = pair_of(w, &w->places, head, body, &is_new);
	if (is_new)
		proto_message(&w->dictionary, TABLE_LOCATION, &w->part);
	w->part.size = 0;
	return at;
}

/* ---- samples ---- */

/* Return the index of a stack in its table; 0: no frames. */
static uint32_t stack_of(struct writing *w, const struct snapshot_stack *stack)
{
	uint32_t chain = 0, n;
	bool is_new;

	for (uint32_t at = stack->first + stack->nr; at-- > stack->first;) {
		uint32_t last = at;

		n = locations_add(&w->locations, w->s, stack->first, &at, &is_new);
		w->failed |= n == DENSE_NONE;
		if (w->failed)
			return 0;
		if (is_new)
			w->location_of[n] = location_of(w, at, last);
		proto_varint(&w->calls, w->location_of[n]);
		chain = pair_of(w, &w->chains, chain, w->location_of[n], &is_new);
	}
	if (!stack->nr)
		return 0;
	n = dense_add(&w->stacks, chain, &is_new);
	if (is_new) {
		put_packed(&w->part, STACK_LOCATIONS, &w->calls);
		proto_message(&w->dictionary, TABLE_STACK, &w->part);
	}
	w->calls.size = 0;
	return (uint32_t)index_of(w, n);
}

/* Add up the samples by stack and task, and add the stacks to their table. */
static void add_samples(struct writing *w)
{
	const struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->nr_stacks && !w->failed; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		uint64_t key = (uint64_t)stack_of(w, stack) << 32 | stack->task;
		bool is_new;
		uint32_t n = dense_add(&w->samples, key, &is_new);

		w->failed |= n == DENSE_NONE;
		if (w->failed)
			return;
		w->sums[n].values[0] += stack->count;
		w->sums[n].values[1] += stack->weight;
	}
}

static void put_value_type(struct writing *w, struct out *o, int field, struct safe_text type,
			   struct safe_text unit)
{
	put_number(&w->inner, TYPE_TYPE, strings_add(&w->strings, type));
	put_number(&w->inner, TYPE_UNIT, strings_add(&w->strings, unit));
	proto_message(o, field, &w->inner);
}

/* Add the samples of @service with their value @value to @profile. */
static void put_samples(struct writing *w, struct out *profile, uint32_t value, uint32_t service)
{
	double rest = 0;

	for (uint32_t i = 0; i < w->samples.nr; i++) {
		uint64_t key = w->samples.keys[i];

		if (service_of(w, snapshot_process_of(w->s, (uint32_t)key)) != service)
			continue;
		add_task(w, (uint32_t)key);
		put_number(&w->part, SAMPLE_STACK, key >> 32);
		put_packed(&w->part, SAMPLE_ATTRIBUTES, &w->indices);
		proto_varint(&w->inner, (uint64_t)snapshot_whole(w->sums[i].values[value], &rest));
		proto_message(&w->part, SAMPLE_VALUES, &w->inner);
		proto_message(profile, PROFILE_SAMPLE, &w->part);
	}
}

/* Add the facts as attributes: "proftop.lost". */
static void put_facts(struct writing *w, struct out *profile)
{
	const struct said *said = w->said;

	for (uint32_t i = 0; i < said->nr; i++)
		add_text(w, said->keys[i].text,
			 (struct safe_text){ said->facts[i].text,
					     (uint16_t)strlen(said->facts[i].text), 0 });
	put_packed(profile, PROFILE_ATTRIBUTES, &w->indices);
}

/* Add the profile of one value of the samples of @service; the facts are of all, and said once. */
static void put_profile(struct writing *w, struct out *scope, uint32_t value, uint32_t service)
{
	const struct profile *p = w->s->profile;
	double period = snapshot_period(w->s);
	struct out profile = { .failed = false };

	put_value_type(w, &profile, PROFILE_SAMPLE_TYPE, value ? w->s->type : TEXT("samples"),
		       value ? w->s->unit : TEXT("count"));
	put_samples(w, &profile, value, service);
	proto_fixed64(&profile, PROFILE_TIME, p->time_ns - MIN(p->time_ns, p->window_ns));
	put_number(&profile, PROFILE_DURATION, p->window_ns);
	if (period > 0) {
		put_value_type(w, &profile, PROFILE_PERIOD_TYPE, w->s->type, w->s->unit);
		proto_number(&profile, PROFILE_PERIOD, (uint64_t)snapshot_period_whole(w->s));
	}
	if (!service)
		put_facts(w, &profile);
	proto_message(scope, SCOPE_PROFILES_PROFILE, &profile);
	out_fini(&profile);
}

static void put_resource_attribute(struct writing *w, const char *name, const char *value)
{
	struct out pair = { .failed = false };

	proto_bytes(&w->inner, VALUE_STRING, value, strlen(value));
	proto_bytes(&pair, KEY_VALUE_KEY, name, strlen(name));
	proto_message(&pair, KEY_VALUE_VALUE, &w->inner);
	proto_message(&w->part, RESOURCE_ATTRIBUTE, &pair);
	out_fini(&pair);
}

/* Return the text that a service has for the attribute @name; "": none. */
static const char *said_by(const struct profile_process *service, const char *name)
{
	for (unsigned int i = 0; service && i < SERVICE_NR; i++)
		if (service->service[i].size && !strcmp(name, service_key(i)))
			return service->service[i].str;
	return "";
}

/*
 * Add the host, the labels and a service; a label replaces the host of that name, a text of the
 * service a label.
 */
static void put_resource(struct writing *w, struct out *profiles, uint32_t service)
{
	const struct snapshot_scope *scope = &w->s->scope;
	const struct profile_process *process =
		service ? &w->s->profile->processes[w->services[service - 1]] : NULL;
	bool host = scope->host[0];

	for (uint32_t i = 0; i < scope->nr_labels; i++) {
		if (!said_by(process, scope->labels[i].name)[0])
			put_resource_attribute(w, scope->labels[i].name, scope->labels[i].value);
		host &= strcmp(scope->labels[i].name, "host.name") != 0;
	}
	if (host)
		put_resource_attribute(w, "host.name", scope->host);
	for (unsigned int i = 0; process && i < SERVICE_NR; i++)
		if (process->service[i].size)
			put_resource_attribute(w, service_key(i), process->service[i].str);
	proto_message(profiles, RESOURCE_PROFILES_RESOURCE, &w->part);
}

/* Add the profiles of a service; 0: of all that have none. */
static void put_service(struct writing *w, struct out *o, uint32_t service)
{
	struct out profiles = { .failed = false }, scope = profiles;

	proto_bytes(&w->part, SCOPE_NAME, "proftop", strlen("proftop"));
	proto_bytes(&w->part, SCOPE_VERSION, PROFTOP_VERSION, strlen(PROFTOP_VERSION));
	proto_message(&scope, SCOPE_PROFILES_SCOPE, &w->part);
	for (uint32_t value = 0; value < ARRAY_SIZE(w->sums->values); value++)
		put_profile(w, &scope, value, service);
	put_resource(w, &profiles, service);
	proto_message(&profiles, RESOURCE_PROFILES_SCOPE_PROFILES, &scope);
	proto_message(o, DATA_RESOURCE_PROFILES, &profiles);
	out_fini(&profiles);
	out_fini(&scope);
}

static void put_all(struct writing *w, struct out *o)
{
	put_zero_values(w);
	add_samples(w);
	find_services(w);
	for (uint32_t service = 0; service <= w->nr_services; service++)
		put_service(w, o, service);
	out_bytes(&w->dictionary, w->strings.out.data, w->strings.out.size);
	proto_message(o, DATA_DICTIONARY, &w->dictionary);
}

static void make_facts(struct said *said, const struct snapshot *s)
{
	said->nr = facts_make(s, said->facts);
	for (uint32_t i = 0; i < said->nr; i++) {
		struct otlp_key *key = &said->keys[i];

		key->text =
			text_format(key->buf, sizeof(key->buf), "proftop.%s", said->facts[i].name);
		for (char *at = key->buf; *at; at++)
			if (*at == ' ')
				*at = '_';
	}
}

static void release(struct writing *w)
{
	out_fini(&w->dictionary);
	out_fini(&w->part);
	out_fini(&w->inner);
	out_fini(&w->indices);
	out_fini(&w->calls);
	strings_fini(&w->strings);
	strings_fini(&w->values);
	locations_fini(&w->locations);
	dense_fini(&w->mappings);
	dense_fini(&w->functions);
	dense_fini(&w->attributes);
	dense_fini(&w->heads);
	dense_fini(&w->lines);
	dense_fini(&w->bodies);
	dense_fini(&w->places);
	dense_fini(&w->chains);
	dense_fini(&w->stacks);
	dense_fini(&w->samples);
	free(w->location_of);
	free(w->sums);
	free(w->said);
}

int otlp_write(struct out *o, const struct snapshot *s)
{
	struct writing w = { .s = s };

	w.location_of = calloc(s->nr_calls + 1ULL, sizeof(*w.location_of));
	w.sums = calloc(s->nr_stacks + 1ULL, sizeof(*w.sums));
	w.said = calloc(1, sizeof(*w.said));
	strings_init(&w.strings, TABLE_STRING);
	strings_init(&w.values, 0);
	if (w.location_of && w.sums && w.said) {
		make_facts(w.said, s);
		put_all(&w, o);
	} else {
		w.failed = true;
	}
	w.failed |= o->failed || w.strings.out.failed || w.values.out.failed;
	release(&w);
	return w.failed ? -ENOMEM : 0;
}
