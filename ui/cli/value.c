// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of settings: the check and the error of each, for all places where they can be given.
 */
#include "ui/cli/internal.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/draw/draw.h"
#include "ui/text/text.h"

#define NS_PER_S 1000000000.0

int value_hz(const char *name, const char *text, double max_hz, double *hz, struct err *e)
{
	double max = max_hz > 0 ? max_hz : NUMBER_HZ_MAX, any;

	if (!number_double(text, 1, max, hz))
		return 0;
	if (max_hz > 0 && !number_double(text, max, 1e15, &any))
		return err_set(e, -EINVAL,
			       "%s %s: above the kernel's limit of %.0f Hz\n"
			       "  kernel.perf_event_max_sample_rate is %.0f\n"
			       "  use a lower rate, or 'sudo sysctl "
			       "kernel.perf_event_max_sample_rate=N'",
			       name, text, max, max);
	return err_set(e, -EINVAL,
		       "%s %s: invalid frequency\n"
		       "  must be 1 to %.0f samples per second",
		       name, text, max);
}

static int seconds(const char *name, const char *text, double min, double max, uint64_t *ns,
		   struct err *e)
{
	double value;

	if (number_double(text, min, max, &value))
		return err_set(e, -EINVAL,
			       "%s %s: invalid time\n"
			       "  must be %g to %g seconds, as in '%s 2'",
			       name, text, min, max, name);
	*ns = (uint64_t)(value * NS_PER_S + 0.5);
	return 0;
}

int value_delay(const char *name, const char *text, uint64_t *ns, struct err *e)
{
	return seconds(name, text, NUMBER_DELAY_MIN, NUMBER_DELAY_MAX, ns, e);
}

int value_window(const char *name, const char *text, uint64_t *ns, struct err *e)
{
	return seconds(name, text, 1, NUMBER_WINDOW_MAX, ns, e);
}

int value_limit(const char *name, const char *text, double *pct, struct err *e)
{
	if (!number_double(text, 0, 100, pct))
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid percentage\n"
		       "  must be 0 to 100",
		       name, text);
}

int value_ring(const char *name, const char *text, uint64_t *size, struct err *e)
{
	uint64_t value;

	/* The pages of a ring are a power of two: perf_event_open(2), MMAP layout. */
	if (number_size(text, SAMPLER_RING_SIZE_MAX, &value) || value < SAMPLER_RING_SIZE_MIN ||
	    (value & (value - 1)))
		return err_set(e, -EINVAL,
			       "%s %s: invalid ring buffer size\n"
			       "  must be a power of two from %uK to %uM, as in '%s 1M'",
			       name, text, SAMPLER_RING_SIZE_MIN >> 10, SAMPLER_RING_SIZE_MAX >> 20,
			       name);
	*size = value;
	return 0;
}

int value_stack_size(const char *name, const char *text, uint32_t *size, bool *is_auto,
		     struct err *e)
{
	bool auto_size = !strcmp(text, "auto");
	uint64_t value = SAMPLER_STACK_SIZE_AUTO;

	if (!auto_size && (number_size(text, SAMPLER_STACK_SIZE_MAX, &value) || value % 8))
		return err_set(e, -EINVAL,
			       "%s %s: invalid size of stack copies\n"
			       "  must be a multiple of 8 up to %u, auto, or 0 for no stacks",
			       name, text, SAMPLER_STACK_SIZE_MAX);
	*is_auto = auto_size;
	*size = (uint32_t)value;
	return 0;
}

int value_call_graph(const char *name, const char *text, enum call_graph *mode, const char **size,
		     struct err *e)
{
	size_t n = strcspn(text, ",");

	for (int i = 0; i < CALL_GRAPH_NR; i++) {
		const char *word = profile_call_graph_name((enum call_graph)i);

		if (strlen(word) != n || strncmp(text, word, n) ||
		    (text[n] && i != CALL_GRAPH_DWARF))
			continue;
		*mode = (enum call_graph)i;
		*size = text[n] ? text + n + 1 : NULL;
		return 0;
	}
	return err_set(e, -EINVAL,
		       "%s %s: must be dwarf, dwarf,SIZE, fp or off\n"
		       "  as in 'fp', or 'dwarf,32K' for deep stacks",
		       name, text);
}

/* Return enum profile_frames, or -EINVAL. */
static int frames_of(const char *text)
{
	for (int i = 0; i < FRAMES_NR; i++)
		if (!strcmp(text, profile_frames_name((enum profile_frames)i)))
			return i;
	return -EINVAL;
}

int value_frames(const char *name, const char *text, enum profile_frames *frames, struct err *e)
{
	int value = frames_of(text);

	if (value < 0)
		return err_set(e, -EINVAL,
			       "%s %.40s: unknown kind\n"
			       "  must be language, both or native",
			       name, text);
	*frames = (enum profile_frames)value;
	return 0;
}

int value_theme(const char *name, const char *text, int *theme, struct err *e)
{
	int value = theme_parse(text);

	if (value < 0)
		return err_set(e, -EINVAL,
			       "%s %s: unknown theme\n"
			       "  must be auto, dark, light, color-blind or mono",
			       name, text);
	*theme = value;
	return 0;
}

int value_cpus(const char *name, const char *text, int **cpus, uint32_t *nr, struct err *e)
{
	if (!number_cpus(text, cpus, nr))
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid list of CPUs\n"
		       "  give numbers and ranges from 0 to %d, as in '%s 0-3,5'",
		       name, text, NUMBER_CPUS_MAX - 1, name);
}

int value_pids(const char *name, const char *text, pid_t **pids, uint32_t *nr, struct err *e)
{
	int code = number_pids(text, pids, nr);

	if (code == -E2BIG)
		return err_set(e, -EINVAL,
			       "%s: more than %d process ids\n"
			       "  use -u USER, or sample the whole system",
			       name, NUMBER_PIDS_MAX);
	if (!code)
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid list of process ids\n"
		       "  give numbers separated by commas, as in '%s 1234,5678'",
		       name, text, name);
}

bool value_is_uid(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

int value_uid(const char *name, const char *text, uid_t *uid, struct err *e)
{
	uint64_t value;

	if (number_u64(text, strlen(text), 0, UINT32_MAX - 1, &value))
		return err_set(e, -EINVAL,
			       "%s %s: invalid user id\n"
			       "  must be 0 to %u",
			       name, text, UINT32_MAX - 1);
	*uid = (uid_t)value;
	return 0;
}

int value_process_name(const char *name, const char *text, struct err *e)
{
	regex_t re;

	if (!*text || regcomp(&re, text, REG_EXTENDED | REG_NOSUB))
		return err_set(e, -EINVAL,
			       "%s %s: invalid regular expression\n"
			       "  give an extended one, as in %s '^nginx$'",
			       name, text, name);
	regfree(&re);
	return 0;
}
