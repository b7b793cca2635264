// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Configurations: copies of targets, rates of events, rules of --trap parsed.
 *
 * Runs on: any thread.
 */
#include "sampler/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"
#include "symbols/script/script.h"

#define SAMPLER_HZ_DEFAULT 999.0
#define SAMPLER_HZ_CPUS	   64 /* of more CPUs each has a lower rate: the sum stays */

static void *copy_array(const void *p, size_t nr, size_t size)
{
	void *copy = p && nr ? xcalloc(nr, size) : NULL;

	if (copy)
		memcpy(copy, p, nr * size);
	return copy;
}

static char *copy_text(const char *text)
{
	return text ? xstrndup(text, strlen(text)) : NULL;
}

struct sampler_target_spec *config_copy_spec(const struct sampler_target_spec *spec)
{
	struct sampler_target_spec *copy = xcalloc(1, sizeof(*copy));

	*copy = *spec;
	copy->pids = copy_array(spec->pids, spec->nr_pids, sizeof(*spec->pids));
	copy->cpus = copy_array(spec->cpus, spec->nr_cpus, sizeof(*spec->cpus));
	copy->user = copy_text(spec->user);
	copy->cgroup = copy_text(spec->cgroup);
	copy->name = copy_text(spec->name);
	return copy;
}

void config_free_spec(struct sampler_target_spec *spec)
{
	if (!spec)
		return;
	free((void *)(uintptr_t)spec->pids);
	free((void *)(uintptr_t)spec->cpus);
	free((void *)(uintptr_t)spec->user);
	free((void *)(uintptr_t)spec->cgroup);
	free((void *)(uintptr_t)spec->name);
	free(spec);
}

struct sampler_target_spec *config_get_spec(const struct sampler_config *c)
{
	return config_copy_spec(&(struct sampler_target_spec){
		.target = c->target,
		.pids = c->pids,
		.nr_pids = c->nr_pids,
		.uid = c->uid,
		.user = c->user,
		.cgroup = c->cgroup,
		.name = c->name,
		.cpus = c->cpus,
		.nr_cpus = c->nr_cpus,
	});
}

void config_set_spec(struct sampler_config *c, const struct sampler_target_spec *spec)
{
	c->target = spec->target;
	c->pids = spec->pids;
	c->nr_pids = spec->nr_pids;
	c->uid = spec->uid;
	c->user = spec->user;
	c->cgroup = spec->cgroup;
	c->name = spec->name;
	c->cpus = spec->cpus;
	c->nr_cpus = spec->nr_cpus;
}

void config_set_spec_cpus(struct sampler_target_spec *spec, const int *cpus, uint32_t nr)
{
	free((void *)(uintptr_t)spec->cpus);
	spec->cpus = copy_array(cpus, nr, sizeof(*cpus));
	spec->nr_cpus = nr;
}

int config_latency_slot(const struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (!c->events[i].wait && !c->events[i].counted)
			return (int)i;
	return -1;
}

int config_wait_slot(const struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].wait)
			return (int)i;
	return -1;
}

double config_default_hz(uint32_t nr_cpus)
{
	unsigned int hz = (unsigned int)SAMPLER_HZ_DEFAULT;

	if (nr_cpus > SAMPLER_HZ_CPUS)
		hz = MAX(hz * SAMPLER_HZ_CPUS / nr_cpus, 20u);
	return hz - !(hz % 2);
}

bool config_user_only(struct event *events, uint32_t nr)
{
	bool any = false;

	for (uint32_t i = 0; i < nr; i++) {
		if (events[i].kernel && !events[i].user)
			return false;
		any |= events[i].kernel;
	}
	for (uint32_t i = 0; i < nr; i++)
		events[i].kernel = events[i].hv = false;
	return any;
}

double config_hz(const struct sampler_config *c, const struct event *ev)
{
	if (ev->period || ev->counted)
		return 0;
	if (ev->hz > 0)
		return ev->hz;
	return c->period ? 0 : c->hz;
}

uint32_t config_language(const char *name)
{
	uint32_t bits = 0;

	/* LuaJIT is Lua as well. */
	for (int i = LANG_NONE + 1; i < LANG_NR; i++)
		if (!strcmp(lang_name((enum lang_kind)i), name))
			bits |= lang_bit((enum lang_kind)i);
	return bits || strcmp(name, "java") ? bits : CONFIG_JAVA;
}

/*
 * Parse the rule of a trap. Pure.
 */

static const struct subject {
	const char *word;
	enum trap_subject subject;
	enum { NAME_NO, NAME_YES, NAME_MAYBE } name;
} subjects[] = {
	{ "cpu", TRAP_CPU, NAME_MAYBE },   { "self", TRAP_SELF, NAME_YES },
	{ "total", TRAP_TOTAL, NAME_YES }, { "new", TRAP_NEW, NAME_YES },
	{ "lost", TRAP_LOST, NAME_NO },	   { "wait", TRAP_WAIT, NAME_MAYBE },
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* Parse "cpu", "cpu:NAME", "self:NAME" ...; a name ends before the operator or " for ". */
static const char *parse_subject(struct trap_rule *r, const char *text)
{
	size_t word = strcspn(text, ": \t<>");
	const char *end = text + word;

	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
		const struct subject *s = &subjects[i];

		if (strlen(s->word) != word || memcmp(s->word, text, word))
			continue;
		r->subject = s->subject;
		if (*end != ':')
			return s->name == NAME_YES ? NULL : end;
		if (s->name == NAME_NO)
			return NULL;
		text = end + 1;
		/* C++ names have < and > in them: an operator is between blanks. */
		for (end = text; *end; end++)
			if (!strncmp(end, " > ", 3) || !strncmp(end, " < ", 3) ||
			    !strncmp(end, " for ", 5))
				break;
		if (end == text || (size_t)(end - text) >= sizeof(r->name))
			return NULL;
		memcpy(r->name, text, (size_t)(end - text));
		return end;
	}
	return NULL;
}

/* Parse "> 50" or "< 5.5%". NULL: it is something else. */
static const char *parse_percent(struct trap_rule *r, const char *s)
{
	char *end;

	r->below = *s == '<';
	s = skip_blanks(s + 1);
	if (*s < '0' || *s > '9')
		return NULL;
	r->percent = strtod(s, &end);
	return r->percent <= 1e6 ? end + (*end == '%') : NULL;
}

int trap_rule_parse(struct trap_rule *out, const char *text, struct err *e)
{
	struct trap_rule r = { .percent = 0 };
	const char *s = strlen(text) < sizeof(r.text) ? parse_subject(&r, skip_blanks(text)) : NULL;

	s = s ? skip_blanks(s) : NULL;
	if (s && (*s == '>' || *s == '<'))
		s = parse_percent(&r, s);
	s = s ? skip_blanks(s) : NULL;
	if (s && !strncmp(s, "for ", 4)) {
		s = skip_blanks(s + 4);
		if (time_parse(s, strcspn(s, " \t"), &r.for_ns))
			s = NULL;
		else
			s = skip_blanks(s + strcspn(s, " \t"));
	}
	if (!s || *s)
		return err_set(e, -EINVAL,
			       "invalid rule '%.100s'\n"
			       "  SUBJECT [> PERCENT] [for TIME], as in 'total:parse > 50 for 1s'\n"
			       "  SUBJECT: cpu, cpu:COMM, self:FUNCTION, total:FUNCTION, "
			       "new:FUNCTION, wait, wait:COMM, lost",
			       text);
	memcpy(r.text, text, strlen(text));
	*out = r;
	return 0;
}
