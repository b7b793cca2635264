// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options about the past, and traps.
 *
 * Runs on: the UI thread, before any other.
 */
#include <string.h>

#include "sampler/trap_rule.h"
#include "symbols/base/base.h"
#include "ui/cli/options_value.h"
#include "ui/text/number.h"

#define HISTORY_MAX_NS	   (7 * 86400 * 1000000000ULL)
#define HISTORY_MEMORY_MIN (1ULL << 20)
#define HISTORY_MEMORY_MAX (1ULL << 36)

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

int options_parse_history_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;

	if (number_size(arg, HISTORY_MEMORY_MAX, &size) || size < HISTORY_MEMORY_MIN)
		return REFUSE(p, EXIT_USAGE,
			      "--history-memory %s: invalid size\n"
			      "  must be 1M to 64G, as in '--history-memory 256M'",
			      arg);
	p->o->config.history_memory = size;
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
