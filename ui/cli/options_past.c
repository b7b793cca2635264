// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options about the past: --history, --keep, --open, --save-*, --trap. (--time is in
 * options_value.c.)
 *
 * Runs on: the main thread, before any other.
 */
#include <string.h>
#include <sys/stat.h>

#include "sampler/trap_rule.h"
#include "symbols/base/base.h"
#include "ui/cli/cli.h"
#include "ui/text/number.h"

#define HISTORY_MAX_NS (7 * 86400 * 1000000000ULL)
#define MEMORY_MIN     (1ULL << 20)
#define MEMORY_MAX     (1ULL << 40)

int options_parse_history(struct options_parse *p, const char *arg)
{
	if (time_parse(arg, strlen(arg), &p->o->config.history_ns) ||
	    p->o->config.history_ns > HISTORY_MAX_NS)
		return REFUSE(p, EXIT_USAGE,
			      "--history %s: invalid time\n"
			      "  must be 0 to 168h, as in '--history 30m'",
			      arg);
	return 0;
}

/* Parse a size of at least 1M. */
static int parse_memory(struct options_parse *p, const char *option, const char *arg, uint64_t *out)
{
	uint64_t size;

	if (number_size(arg, MEMORY_MAX, &size) || size < MEMORY_MIN)
		return REFUSE(p, EXIT_USAGE,
			      "%s %s: invalid size\n"
			      "  must be 1M to 1024G, as in '%s 256M'",
			      option, arg, option);
	*out = size;
	return 0;
}

int options_parse_history_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;
	int code = parse_memory(p, "--history-memory", arg, &size);

	if (!code)
		p->o->config.history_memory = size;
	return code;
}

int options_parse_trap_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;
	int code = parse_memory(p, "--trap-memory", arg, &size);

	if (!code)
		p->o->config.saving.memory = size;
	return code;
}

int options_parse_save_size(struct options_parse *p, const char *arg)
{
	return parse_memory(p, "--save-size", arg, &p->o->config.saving.max_bytes);
}

bool options_is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int check_folder(struct options_parse *p, const char *option, const char *arg)
{
	if (!options_is_folder(arg))
		return REFUSE(p, EXIT_USAGE,
			      "%s %s: no such folder\n"
			      "  create it first",
			      option, arg);
	return 0;
}

int options_parse_save_dir(struct options_parse *p, const char *arg)
{
	p->o->config.saving.dir = arg;
	return check_folder(p, "--save-dir", arg);
}

int options_parse_keep(struct options_parse *p, const char *arg)
{
	p->o->config.keep.dir = arg;
	return check_folder(p, "--keep", arg);
}

int options_parse_keep_size(struct options_parse *p, const char *arg)
{
	return parse_memory(p, "--keep-size", arg, &p->o->config.keep.size);
}

int options_parse_keep_time(struct options_parse *p, const char *arg)
{
	if (time_parse(arg, strlen(arg), &p->o->config.keep.time_ns))
		return REFUSE(p, EXIT_USAGE,
			      "--keep-time %s: invalid time\n"
			      "  as in '--keep-time 24h'",
			      arg);
	return 0;
}

int options_take_replay(struct options_parse *p, const char *arg)
{
	if (p->o->config.replay)
		return REFUSE(p, EXIT_USAGE,
			      "cannot show two recordings: %.60s and %.60s\n"
			      "  --baseline FILE compares with another one",
			      p->o->config.replay, arg);
	p->o->config.replay = arg;
	return 0;
}

int options_parse_open(struct options_parse *p, const char *arg)
{
	int code = options_take_replay(p, arg);

	return code ? code : check_folder(p, "--open", arg);
}

int options_parse_save_files(struct options_parse *p, const char *arg)
{
	uint64_t nr;

	if (number_u64(arg, strlen(arg), 1, 1000000, &nr))
		return REFUSE(p, EXIT_USAGE,
			      "--save-files %s: invalid number\n"
			      "  must be 1 to 1000000",
			      arg);
	p->o->config.saving.max_files = (uint32_t)nr;
	return 0;
}

int options_parse_trap(struct options_parse *p, const char *arg)
{
	struct options *o = p->o;
	struct trap_rule rule;

	if (o->config.nr_traps == TRAP_RULES_MAX)
		return REFUSE(p, EXIT_USAGE,
			      "--trap: too many rules\n"
			      "  at most %d",
			      TRAP_RULES_MAX);
	if (trap_rule_parse(&rule, arg, p->e)) {
		p->code = EXIT_USAGE;
		return EINVAL;
	}
	o->traps = xrealloc_array(o->traps, o->config.nr_traps + 1, sizeof(*o->traps));
	o->traps[o->config.nr_traps++] = rule;
	o->config.traps = o->traps;
	return 0;
}
