// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Commands that change the target. Runs on: the main thread.
 */
#include "ui/command_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli/value.h"
#include "ui/text/users.h"

static const struct kind {
	const char *name, *value; /* NULL: no argument */
	enum sampler_target target;
} kinds[] = {
	{ "system", NULL, TARGET_SYSTEM },
	{ "pid", "processes, as in: pid 1234,5678", TARGET_PIDS },
	{ "tid", "threads, as in: tid 1234,5678", TARGET_TIDS },
	{ "user", "a user name or number", TARGET_USER },
	{ "cgroup", "a path below the cgroup mount", TARGET_CGROUP },
	{ "name", "a regex, as in: name ^nginx$", TARGET_NAME },
	{ "command", NULL, TARGET_COMMAND },
};

static const struct kind *kind_of(const char *word, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == size && !strncmp(kinds[i].name, word, size))
			return &kinds[i];
	return NULL;
}

/* Return the @i-th value of that kind with samples; "": it is not a word; NULL: no more. */
static const char *value_word(const struct ui_state *st, enum sampler_target target, unsigned int i,
			      char *buf)
{
	const struct profile *p = st->shown;

	if (!p || i >= (target == TARGET_TIDS ? p->nr_tasks : p->nr_processes))
		return NULL;
	switch (target) {
	case TARGET_PIDS:
		snprintf(buf, COMMAND_WORD_MAX, "%d", (int)p->processes[i].pid);
		return buf;
	case TARGET_TIDS:
		snprintf(buf, COMMAND_WORD_MAX, "%d", (int)p->tasks[i].tid);
		return buf;
	case TARGET_USER:
		return users_name(st->config->users, p->processes[i].uid, buf, COMMAND_WORD_MAX)
			.str;
	case TARGET_CGROUP:
		return p->processes[i].cgroup.size ? p->processes[i].cgroup.str : "";
	case TARGET_NAME:
		return p->processes[i].comm.str;
	default:
		return NULL;
	}
}

const char *command_target_word(const struct ui_state *st, const char *before, unsigned int i,
				char *buf)
{
	size_t size = strcspn(before, " ");
	const struct kind *kind = kind_of(before, size);

	if (before[size])
		return kind && kind->value ? value_word(st, kind->target, i, buf) : NULL;
	if (i >= ARRAY_SIZE(kinds))
		return NULL;
	snprintf(buf, COMMAND_WORD_MAX, "%s%s", kinds[i].name, kinds[i].value ? " " : "");
	return buf;
}

static int take_user(const struct ui_state *st, const char *value, uid_t *uid, struct err *e)
{
	if (value_is_uid(value))
		return value_uid("target user", value, uid, e);
	return users_find(st->config->users, value, uid)
		       ? 0
		       : err_set(e, -ENOENT, "target user %.100s: unknown user", value);
}

/* Parse the argument into @spec; the caller frees its pids. 0 or -errno with a sentence. */
static int take_value(const struct ui_state *st, struct sampler_target_spec *spec, pid_t **pids,
		      const char *value, struct err *e)
{
	int code = 0;

	switch (spec->target) {
	case TARGET_PIDS:
	case TARGET_TIDS:
		code = value_pids(spec->target == TARGET_PIDS ? "target pid" : "target tid", value,
				  pids, &spec->nr_pids, e);
		spec->pids = *pids;
		return code;
	case TARGET_USER:
		return take_user(st, value, &spec->uid, e);
	case TARGET_CGROUP:
		spec->cgroup = value;
		return 0;
	case TARGET_NAME:
		spec->name = value;
		return value_process_name("target name", value, e);
	default:
		return 0;
	}
}

/* Keep the sampled CPUs. */
void command_target(struct ui_state *st, const char *arg)
{
	size_t size = strcspn(arg, " ");
	const struct kind *kind = kind_of(arg, size);
	const char *value = arg + size + strspn(arg + size, " ");
	struct sampler_target_spec spec = { .same_cpus = true };
	pid_t *pids = NULL;
	struct err e;

	if (!kind) {
		ui_state_say(st, true,
			     "unknown target '%s': system, pid, tid, user, cgroup, name or command",
			     arg);
		return;
	}
	spec.target = kind->target;
	if (!kind->value && *value)
		ui_state_say(st, true, "target %s takes no argument", kind->name);
	else if (kind->value && !*value)
		ui_state_say(st, true, "target %s needs %s", kind->name, kind->value);
	else if (take_value(st, &spec, &pids, value, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_target(st->sampler, &spec);
	free(pids);
}

void command_cpus(struct ui_state *st, const char *arg)
{
	int *cpus = NULL;
	uint32_t nr = 0;
	struct err e;

	if (!strcmp(arg, "all"))
		sampler_set_cpus(st->sampler, NULL, 0);
	else if (value_cpus("cpus", arg, &cpus, &nr, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_cpus(st->sampler, cpus, nr);
	free(cpus);
}
