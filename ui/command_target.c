// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Words of the command line that change who is sampled. The main thread.
 */
#include "ui/command_target.h"

#include <stdlib.h>
#include <string.h>

#include "ui/number.h"
#include "ui/users.h"

static const struct kind {
	const char *name, *value;	/* NULL: it takes none */
	enum sampler_target target;
} kinds[] = {
	{ "system", NULL, TARGET_SYSTEM },
	{ "pid", "processes, as in: pid 1234,5678", TARGET_PIDS },
	{ "tid", "threads, as in: tid 1234,5678", TARGET_TIDS },
	{ "user", "a user's name or number", TARGET_USER },
	{ "cgroup", "a path below the cgroup mount", TARGET_CGROUP },
	{ "name", "an expression, as in: name ^nginx$", TARGET_NAME },
	{ "command", NULL, TARGET_COMMAND },
};

static const struct kind *kind_of(const char *word, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == size && !strncmp(kinds[i].name, word, size))
			return &kinds[i];
	return NULL;
}

const char *command_target_word(const struct ui_state *st, unsigned int i, char *buf)
{
	return i < ARRAY_SIZE(kinds) ? kinds[i].name : NULL;
}

/* What is typed after the kind, into @spec; its pids are the caller's to free. False: it is none. */
static bool take_value(struct ui_state *st, struct sampler_target_spec *spec, pid_t **pids, const char *value)
{
	uint64_t uid;

	switch (spec->target) {
	case TARGET_PIDS:
	case TARGET_TIDS:
		if (number_pids(value, pids, &spec->nr_pids))
			return false;
		spec->pids = *pids;
		return true;
	case TARGET_USER:
		if (users_find(st->config->users, value, &spec->uid))
			return true;
		if (number_u64(value, strlen(value), 0, UINT32_MAX - 1, &uid))
			return false;
		spec->uid = (uid_t)uid;
		return true;
	case TARGET_CGROUP:
		spec->cgroup = value;
		return true;
	case TARGET_NAME:
		spec->name = value;
		return true;
	default:
		return true;
	}
}

/* On the CPUs that are sampled now. */
void command_target(struct ui_state *st, const char *arg)
{
	size_t size = strcspn(arg, " ");
	const struct kind *kind = kind_of(arg, size);
	const char *value = arg + size + strspn(arg + size, " ");
	struct sampler_target_spec spec = { .same_cpus = true };
	pid_t *pids = NULL;

	if (!kind) {
		ui_state_say(st, true, "target %s: system, pid, tid, user, cgroup, name or command", arg);
		return;
	}
	spec.target = kind->target;
	if (!kind->value && *value)
		ui_state_say(st, true, "target %s takes nothing after it", kind->name);
	else if (kind->value && (!*value || !take_value(st, &spec, &pids, value)))
		ui_state_say(st, true, "target %s needs %s", kind->name, kind->value);
	else
		sampler_set_target(st->sampler, &spec);
	free(pids);
}

void command_cpus(struct ui_state *st, const char *arg)
{
	int *cpus = NULL;
	uint32_t nr = 0;

	if (!strcmp(arg, "all"))
		sampler_set_cpus(st->sampler, NULL, 0);
	else if (number_cpus(arg, &cpus, &nr))
		ui_state_say(st, true, "cpus %s: not a list as 0-3,5, nor all", arg);
	else
		sampler_set_cpus(st->sampler, cpus, nr);
	free(cpus);
}
