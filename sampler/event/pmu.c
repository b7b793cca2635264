// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PMUs as the kernel describes them below /sys/bus/event_source/devices: a
 * type, a format for each term ("config:0-7,32-35"), named events.
 *
 * Any thread; no state. Invariant: a value that does not fit its format is
 * refused, never cut.
 */
#include "sampler/event/event_parse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PMU_DIR	  "/sys/bus/event_source/devices"
#define TERM_MAX  96
#define TERMS_MAX 512
#define ALIAS_MAX 4 /* named events that lead to named events */
#define LIST_HINT "  'proftop --list-events' shows all events"

/* The terms of one event while they are parsed. */
struct terms {
	const char *root, *pmu; /* pmu NULL: terms of any event only */
	struct event *ev;
	struct err *e;
	unsigned int depth;
};

bool pmu_read_line(const char *path, char *dst, size_t size)
{
	return pmu_read_line_at(AT_FDCWD, path, dst, size);
}

bool pmu_read_line_at(int dir, const char *path, char *dst, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t nr;

	if (fd < 0)
		return false;
	nr = read(fd, dst, size - 1);
	close(fd);
	if (nr <= 0)
		return false;
	dst[nr] = '\0';
	dst[strcspn(dst, "\n")] = '\0';
	return true;
}

bool pmu_is_word(const char *text)
{
	size_t size = strlen(text);

	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
			return false;
	return size && size < TERM_MAX && text[0] != '.';
}

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end;
}

bool pmu_type(const char *root, const char *pmu, uint32_t *type)
{
	char path[512], line[32];
	uint64_t value;

	if (!pmu_is_word(pmu))
		return false;
	snprintf(path, sizeof(path), "%s" PMU_DIR "/%s/type", root, pmu);
	if (!pmu_read_line(path, line, sizeof(line)) || !parse_number(line, &value) ||
	    value > UINT32_MAX)
		return false;
	*type = (uint32_t)value;
	return true;
}

/* Read "events/tsc" or "format/event" of the PMU. */
static bool read_entry(const struct terms *t, const char *dir, const char *name, char *dst,
		       size_t size)
{
	char path[512];

	if (!t->pmu || !pmu_is_word(name))
		return false;
	snprintf(path, sizeof(path), "%s" PMU_DIR "/%s/%s/%s", t->root, t->pmu, dir, name);
	return pmu_read_line(path, dst, size);
}

static uint64_t *config_field(struct event *ev, const char *name, size_t size)
{
	if (size == 6 && !strncmp(name, "config", 6))
		return &ev->config;
	if (size == 7 && !strncmp(name, "config1", 7))
		return &ev->config1;
	if (size == 7 && !strncmp(name, "config2", 7))
		return &ev->config2;
	return NULL;
}

/* The next "3" or "0-7" of a format; false at its end or if it is none. */
static bool next_bits(const char **text, unsigned int *first, unsigned int *last)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*first = *last = (unsigned int)strtoul(*text, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		*last = (unsigned int)strtoul(end + 1, &end, 10);
	*text = end + (*end == ',');
	return *first <= *last && *last < 64;
}

/* Lay @value out over the bits of @format, lowest first. False: it does not fit, or no format. */
static bool spread(struct event *ev, const char *format, uint64_t value)
{
	size_t size = strcspn(format, ":");
	uint64_t *field = config_field(ev, format, size);
	unsigned int first, last;

	if (!field || format[size] != ':')
		return false;
	format += size + 1;
	while (next_bits(&format, &first, &last)) {
		unsigned int width = last - first + 1;
		uint64_t mask = width == 64 ? UINT64_MAX : (1ULL << width) - 1;

		*field = (*field & ~(mask << first)) | (value & mask) << first;
		value = width == 64 ? 0 : value >> width;
	}
	return !value;
}

static int refuse_term(const struct terms *t, const char *key, const char *why)
{
	return err_set(t->e, -EINVAL,
		       "event '%.100s': '%s' %s\n"
		       "  the terms of a PMU are in " PMU_DIR "/%s/format, its events in "
		       "events\n" LIST_HINT,
		       t->ev->name, key, why, t->pmu ? t->pmu : "PMU");
}

/* Terms that every event takes. -ENOENT: it is none of them. */
static int common_term(const struct terms *t, const char *key, const char *text, bool is_number,
		       uint64_t value)
{
	struct event *ev = t->ev;

	if (!strcmp(key, "name")) {
		if (!pmu_is_word(text) || strlen(text) >= sizeof(ev->label))
			return refuse_term(t, key, "takes a word of up to 31 letters");
		memcpy(ev->label, text, strlen(text) + 1);
		return 0;
	}
	if (strcmp(key, "period") && strcmp(key, "freq"))
		return -ENOENT;
	if (!is_number || !value || value > 1ULL << 48)
		return refuse_term(t, key, "takes a number from 1");
	if (key[0] == 'p') {
		ev->period = value;
		ev->hz = 0;
	} else {
		ev->hz = (double)value;
		ev->period = 0;
	}
	return 0;
}

static int add_terms(struct terms *t, const char *text);

/* A word alone: an event of the PMU, else a bit. */
static int named_event(struct terms *t, const char *key)
{
	char line[TERMS_MAX];
	int code;

	if (!read_entry(t, "events", key, line, sizeof(line)))
		return -ENOENT;
	if (t->depth == ALIAS_MAX)
		return refuse_term(t, key, "leads to itself");
	t->depth++;
	code = add_terms(t, line);
	t->depth--;
	return code;
}

static int add_term(struct terms *t, char *term)
{
	char *text = strchr(term, '='), format[TERM_MAX];
	uint64_t value = 1, *field;
	bool is_number;
	int code;

	if (!text) {
		code = named_event(t, term);
		if (code != -ENOENT)
			return code;
	} else {
		*text++ = '\0';
	}
	is_number = text && parse_number(text, &value);
	code = common_term(t, term, text ? text : "", is_number, value);
	if (code != -ENOENT)
		return code;
	if (text && !is_number)
		return refuse_term(t, term,
				   *text == '?' ? "must be given a value"
						: "takes a number, as in 10 or 0x3c");
	field = t->pmu ? config_field(t->ev, term, strlen(term)) : NULL;
	if (field) {
		*field = value;
		return 0;
	}
	if (!read_entry(t, "format", term, format, sizeof(format)))
		return refuse_term(t, term, "is no term or event here");
	return spread(t->ev, format, value)
		       ? 0
		       : refuse_term(t, term, "does not take so large a value");
}

/* One by one; the value of a later term wins, as "event=0x3c,umask=?" of a name needs. */
static int add_terms(struct terms *t, const char *text)
{
	while (*text) {
		size_t size = strcspn(text, ",");
		char term[TERM_MAX];
		int code;

		if (!size || size >= sizeof(term))
			return refuse_term(t, "", "is an empty term, or too long a one");
		memcpy(term, text, size);
		term[size] = '\0';
		text += size + (text[size] == ',');
		code = add_term(t, term);
		if (code)
			return code;
	}
	return 0;
}

int pmu_parse(const char *root, struct event *ev, const char *pmu, const char *terms, struct err *e)
{
	struct terms t = { .root = root, .pmu = pmu, .ev = ev, .e = e };

	if (!pmu_type(root, pmu, &ev->type))
		return err_set(e, -EINVAL,
			       "event '%.100s': this machine has no PMU '%.60s'\n"
			       "  its PMUs are in " PMU_DIR "\n" LIST_HINT,
			       ev->name, pmu);
	return add_terms(&t, terms);
}

int pmu_parse_terms(struct event *ev, const char *terms, struct err *e)
{
	struct terms t = { .root = "", .ev = ev, .e = e };

	return add_terms(&t, terms);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int plain_entry(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	/* tsc.scale and tsc.unit describe the unit of a count: they are no events. */
	return d->d_name[0] != '.' &&
	       !(dot && (!strcmp(dot, ".scale") || !strcmp(dot, ".unit") ||
			 !strcmp(dot, ".per-pkg") || !strcmp(dot, ".snapshot")));
}

static void each_of_pmu(const char *root, const char *pmu,
			void (*fn)(void *ctx, const char *name, const char *pmu), void *ctx)
{
	char path[512], name[EVENT_NAME_MAX];
	struct dirent **list;
	int nr;

	snprintf(path, sizeof(path), "%s" PMU_DIR "/%.100s/events", root, pmu);
	nr = scandir(path, &list, plain_entry, by_name);
	for (int i = 0; i < nr; i++) {
		if (pmu_is_word(list[i]->d_name)) {
			snprintf(name, sizeof(name), "%.100s/%.100s/", pmu, list[i]->d_name);
			fn(ctx, name, pmu);
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

void pmu_each(const char *root, void (*fn)(void *ctx, const char *name, const char *pmu), void *ctx)
{
	struct dirent **list;
	char path[512];
	int nr;

	snprintf(path, sizeof(path), "%s" PMU_DIR, root);
	nr = scandir(path, &list, plain_entry, by_name);
	for (int i = 0; i < nr; i++) {
		if (pmu_is_word(list[i]->d_name))
			each_of_pmu(root, list[i]->d_name, fn, ctx);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

/* Return whether the PMU has event @name. */
static bool has_event(const char *root, const char *pmu, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s" PMU_DIR "/%.100s/events/%s", root, pmu, name);
	return !access(path, F_OK);
}

/*
 * The counters of Intel's slots start with the leader, which takes no samples then: cycles do. Arm
 * has a slot for each operation, and for each stall.
 */
static bool topdown_of(const char *root, const char *pmu, char *dst, size_t size)
{
	if (has_event(root, pmu, "slots") && has_event(root, pmu, "topdown-retiring"))
		snprintf(dst, size,
			 "{%s/slots/,cycles,%s/topdown-retiring/,%s/topdown-bad-spec/,"
			 "%s/topdown-fe-bound/,%s/topdown-be-bound/}:S",
			 pmu, pmu, pmu, pmu, pmu);
	else if (has_event(root, pmu, "stall_slot") && has_event(root, pmu, "op_retired"))
		snprintf(dst, size,
			 "{cycles,%s/op_retired/,%s/op_spec/,%s/stall_slot/,"
			 "%s/stall_slot_frontend/,%s/stall_slot_backend/}:S",
			 pmu, pmu, pmu, pmu, pmu);
	else
		return false;
	return true;
}

bool pmu_topdown(const char *root, char *dst, size_t size)
{
	struct dirent **list;
	bool found = false;
	char path[512];
	int nr;

	snprintf(path, sizeof(path), "%s" PMU_DIR, root);
	nr = scandir(path, &list, plain_entry, by_name);
	for (int i = 0; i < nr; i++) {
		const char *pmu = list[i]->d_name;

		if (!found && strlen(pmu) < TERM_MAX && pmu_is_word(pmu))
			found = topdown_of(root, pmu, dst, size);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	return found;
}
