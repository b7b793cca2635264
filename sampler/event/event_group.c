// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists of events, and groups: events that the kernel has on the CPU together
 * or not at all, in perf's syntax ("{cycles,instructions}:u").
 *
 * Any thread; no state. Invariant: the members of a group stand side by side,
 * its leader first, and a group has at least two.
 */
#include "sampler/event/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/event/event_parse.h"

#define TOPDOWN "topdown"

/* In "mem:0x10/4:w" and "uprobe:/bin/sh:main" a slash opens nothing. */
static bool is_probe(const char *text)
{
	static const char *const prefixes[] = { "mem:", "uprobe:", "uretprobe:" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool event_list_reads_file(const char *text)
{
	return strstr(text, "uprobe:") || strstr(text, "uretprobe:");
}

/* How long the event at @text is: up to a comma or brace that is not between slashes. */
static size_t one_size(const char *text)
{
	bool slash = false, probe = is_probe(text);
	size_t n = 0;

	while (text[n] && (slash || !strchr(",}", text[n])))
		slash ^= text[n++] == '/' && !probe;
	return n;
}

static int parse_one(const char *root, struct event *events, uint32_t *nr, uint32_t max,
		     const char *text, size_t size, struct err *e)
{
	char name[EVENT_NAME_MAX];

	if (size >= sizeof(name))
		return err_set(e, -EINVAL,
			       "event name too long (%zu characters)\n"
			       "  the limit is %d\n"
			       "  'proftop --list-events' shows all events",
			       size, EVENT_NAME_MAX - 1);
	if (*nr == max)
		return err_set(e, -EINVAL,
			       "too many events: the limit is %u\n"
			       "  they are sampled at the same time\n"
			       "  give fewer (-e); 'e' changes them while proftop runs",
			       max);
	memcpy(name, text, size);
	name[size] = '\0';
	return event_parse_at(root, &events[(*nr)++], name, e);
}

static int refuse_group(const char *text, const char *why, struct err *e)
{
	return err_set(e, -EINVAL,
		       "group '%.120s': %s\n"
		       "  as in {cycles,instructions} or {cycles,cache-misses}:S\n"
		       "  'proftop --list-events' shows all events",
		       text, why);
}

/* Add the modifiers to the name: the event without them is another. */
static void name_modifiers(struct event *ev, const char *modifiers)
{
	const char *colon = strrchr(ev->name, ':');
	bool has = colon && colon[1] && strspn(colon + 1, "ukhHGpP") == strlen(colon + 1);
	size_t size = strlen(ev->name);

	snprintf(ev->name + size, sizeof(ev->name) - size, "%s%s", has ? "" : ":", modifiers);
}

/* Parse the modifiers behind the closing brace, for all members, and S. */
static int parse_tail(struct event *events, uint32_t nr, const char *text, size_t size, bool *read,
		      struct err *e)
{
	char modifiers[32];
	size_t kept = 0;

	*read = false;
	if (!size)
		return 0;
	if (text[0] != ':' || size >= sizeof(modifiers))
		return refuse_group(text, "only modifiers may follow the brace, after a colon", e);
	for (size_t i = 1; i < size; i++) {
		if (text[i] == 'S')
			*read = true;
		else
			modifiers[kept++] = text[i];
	}
	modifiers[kept] = '\0';
	for (uint32_t i = 0; i < nr && kept; i++) {
		int code = event_add_modifiers(&events[i], modifiers, e);

		if (code)
			return code;
		name_modifiers(&events[i], modifiers);
	}
	return 0;
}

/* "{a,b}:u" at @text, its size in *@size. */
static int parse_group(const char *root, struct event *events, uint32_t *nr, uint32_t max,
		       const char *text, size_t *size, struct err *e)
{
	uint32_t first = *nr;
	const char *s = text + 1;
	bool read;
	int code;

	for (;; s++) {
		size_t n = one_size(s);

		code = parse_one(root, events, nr, max, s, n, e);
		if (code)
			return code;
		s += n;
		if (!*s)
			return refuse_group(text, "the closing brace is missing", e);
		if (*s == '}')
			break;
	}
	s++;
	code = parse_tail(&events[first], *nr - first, s, strcspn(s, ","), &read, e);
	for (uint32_t i = first; i < *nr && !code; i++) {
		events[i].group = first + 1;
		events[i].read = read;
	}
	*size = (size_t)(s - text) + strcspn(s, ",");
	return code;
}

/* "topdown": the events of the top-down method that this machine has, as a group. */
static int parse_topdown(const char *root, struct event *events, uint32_t *nr, uint32_t max,
			 struct err *e)
{
	char group[1024];
	size_t size;

	if (!pmu_topdown(root, group, sizeof(group)))
		return err_set(e, -EINVAL,
			       "event 'topdown': no PMU of this machine has its events\n"
			       "  slots and topdown-retiring (Intel, from Ice Lake), or stall_slot "
			       "and "
			       "op_retired (Arm)\n"
			       "  'proftop --list-events' shows all events");
	return parse_group(root, events, nr, max, group, &size, e);
}

static bool is_topdown(const char *text, size_t size)
{
	return size == strlen(TOPDOWN) && !strncmp(text, TOPDOWN, size);
}

int event_parse_list_at(const char *root, struct event *events, uint32_t *nr, uint32_t max,
			const char *text, struct err *e)
{
	const char *s = text;

	for (;; s++) {
		size_t size = s[0] == '{' ? 0 : one_size(s);
		int code = s[0] == '{'		 ? parse_group(root, events, nr, max, s, &size, e)
			   : is_topdown(s, size) ? parse_topdown(root, events, nr, max, e)
						 : parse_one(root, events, nr, max, s, size, e);

		if (code)
			return code;
		s += size;
		if (*s == '}')
			return refuse_group(text, "a closing brace, but none that opens", e);
		if (!*s)
			break;
	}
	event_groups_tidy(events, *nr);
	return 0;
}

int event_parse_list(struct event *events, uint32_t *nr, uint32_t max, const char *text,
		     struct err *e)
{
	return event_parse_list_at("", events, nr, max, text, e);
}

uint32_t event_group_first(const struct event *events, uint32_t at)
{
	while (at && events[at].group && events[at - 1].group == events[at].group)
		at--;
	return at;
}

uint32_t event_group_nr(const struct event *events, uint32_t nr, uint32_t first)
{
	uint32_t n = 1;

	while (events[first].group && first + n < nr &&
	       events[first + n].group == events[first].group)
		n++;
	return n;
}

/* "cpu_core/slots/": as a leader it takes no samples, or its metrics are refused. */
static bool is_slots(const struct event *ev)
{
	const char *slash = strchr(ev->name, '/');

	return slash && !strncmp(slash, "/slots/", 7);
}

static bool is_of_topdown(const struct event *ev)
{
	const char *slash = strchr(ev->name, '/');

	return is_slots(ev) || (slash && !strncmp(slash, "/topdown-", 9));
}

/* Return the member of a group that is read which takes the samples: the leader if it can. */
static uint32_t sampling_member(const struct event *events, uint32_t first, uint32_t n)
{
	uint32_t at = first;

	while (is_slots(&events[first]) && at < first + n && is_of_topdown(&events[at]))
		at++;
	return at;
}

void event_groups_tidy(struct event *events, uint32_t nr)
{
	for (uint32_t first = 0, n; first < nr; first += n) {
		uint32_t sampling;

		n = event_group_nr(events, nr, first);
		sampling = sampling_member(events, first, n);
		for (uint32_t i = first; i < first + n; i++) {
			events[i].group = n > 1 ? first + 1 : 0;
			events[i].read &= n > 1;
			events[i].counted = events[i].read && i != sampling;
		}
	}
}
