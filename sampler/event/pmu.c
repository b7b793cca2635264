// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PMUs as the kernel describes them, types of cores, and CPU vendors' event names by libpfm4.
 *
 * Any thread; no state. Invariant: a value that does not fit its format is refused, never cut.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"

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

	assert(size > 1);
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

/* Read the type of a PMU; false if there is none of that name. */
static bool pmu_type(const char *root, const char *pmu, uint32_t *type)
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
	if (size == 7 && !strncmp(name, "config3", 7))
		return &ev->config3;
	if (size == 7 && !strncmp(name, "config4", 7))
		return &ev->config4;
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

/* Refuse a term that the header of this build has no place for. */
static int check_header(const struct terms *t, const char *key)
{
#ifndef PERF_ATTR_SIZE_VER8
	if (t->ev->config3)
		return refuse_term(t, key,
				   "sets config3: proftop was built with headers before Linux 6.3");
#endif
#ifndef PERF_ATTR_SIZE_VER9
	if (t->ev->config4)
		return refuse_term(t, key,
				   "sets config4: proftop was built with headers before Linux 7.2");
#endif
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
		return check_header(t, term);
	}
	if (!read_entry(t, "format", term, format, sizeof(format)))
		return refuse_term(t, term, "is no term or event here");
	return spread(t->ev, format, value)
		       ? check_header(t, term)
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

/*
 * Names of the CPU's makers, by libpfm4: "pfm:RETIRED_INSTRUCTIONS:u:c=1", the
 * events that perf takes by --pfm-events.
 *
 * Any thread: the library is loaded and set up once, on first use, then only read. Invariant: its
 * encoding is not changed, so a name opens the same event as in perf.
 */

#define PREFIX "pfm:"

static const char *own_name(const char *text)
{
	return strncmp(text, PREFIX, strlen(PREFIX)) ? NULL : text + strlen(PREFIX);
}

/* Set the message for a missing library; @why and @how: reason and fix. */
static int no_library(const struct event *ev, const char *why, const char *how, struct err *e)
{
	return err_set(e, -EINVAL,
		       "event '%.120s': this proftop %s\n"
		       "  it knows the names that CPU makers give their events\n"
		       "  %s; or give the code, as in r1c0 or cpu/event=0xc0/",
		       ev->name, why, how);
}

#ifdef HAVE_PFM

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <pthread.h>

#define LIBRARY "libpfm.so.4"

struct libpfm_functions {
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_strerror) *strerror;
	__typeof__(pfm_get_os_event_encoding) *get_os_event_encoding;
	__typeof__(pfm_get_event_attr_info) *get_event_attr_info;
	__typeof__(pfm_get_event_info) *get_event_info;
	__typeof__(pfm_get_event_next) *get_event_next;
	__typeof__(pfm_get_pmu_info) *get_pmu_info;
};

static bool find_functions(struct libpfm_functions *pfm)
{
	static const struct library_function list[] = {
		{ "pfm_initialize", offsetof(struct libpfm_functions, initialize) },
		{ "pfm_strerror", offsetof(struct libpfm_functions, strerror) },
		{ "pfm_get_os_event_encoding",
		  offsetof(struct libpfm_functions, get_os_event_encoding) },
		{ "pfm_get_event_attr_info",
		  offsetof(struct libpfm_functions, get_event_attr_info) },
		{ "pfm_get_event_info", offsetof(struct libpfm_functions, get_event_info) },
		{ "pfm_get_event_next", offsetof(struct libpfm_functions, get_event_next) },
		{ "pfm_get_pmu_info", offsetof(struct libpfm_functions, get_pmu_info) },
	};

	return library_find(LIBRARY, pfm, list, ARRAY_SIZE(list));
}

static void set_up(void)
{
	struct libpfm_functions pfm;

	if (find_functions(&pfm))
		pfm.initialize();
}

/* The library keeps its tables in globals; filling them is the one thing it does not lock. */
static bool library(struct libpfm_functions *pfm)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up);
	return find_functions(pfm);
}

static void take_over(struct event *ev, const struct perf_event_attr *attr)
{
	ev->type = attr->type;
	ev->config = attr->config;
	ev->config1 = attr->config1;
	ev->config2 = attr->config2;
	ev->bp_type = attr->bp_type;
	ev->user = !attr->exclude_user;
	ev->kernel = !attr->exclude_kernel;
	ev->hv = !attr->exclude_hv;
	ev->host = !attr->exclude_host;
	ev->guest = !attr->exclude_guest;
	ev->precise = attr->precise_ip;
	if (attr->freq)
		ev->hz = (double)attr->sample_freq;
	else
		ev->period = attr->sample_period;
	if (attr->type == PERF_TYPE_TRACEPOINT && !attr->sample_freq)
		ev->period = 1;
}

static int encode(const struct libpfm_functions *pfm, struct event *ev, const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .exclude_guest = 1 };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int code =
		pfm->get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);

	if (code == PFM_SUCCESS)
		take_over(ev, &attr);
	return code;
}

static int refuse(const struct libpfm_functions *pfm, const struct event *ev, int code,
		  struct err *e)
{
	return err_set(e, -EINVAL,
		       "event '%.120s': libpfm4 says: %s\n"
		       "  as in pfm:RETIRED_INSTRUCTIONS, pfm:skl::INST_RETIRED:ANY_P:u:c=1\n"
		       "  'proftop --list-events' shows the events of this CPU",
		       ev->name, pfm->strerror(code));
}

/* Refuse an event that counts nothing: "k=0" alone leaves out user code as well. */
static int check_level(const struct event *ev, struct err *e)
{
	if (ev->user || ev->kernel || ev->hv)
		return 0;
	return err_set(e, -EINVAL,
		       "event '%.120s' counts nothing: its modifiers leave out all code\n"
		       "  as in pfm:RETIRED_INSTRUCTIONS:u, :k or :u:k\n"
		       "  'proftop --list-events' shows the events of this CPU",
		       ev->name);
}

/* Where modifiers in our own words begin, as the picker adds them: "pfm:NAME:upp". */
static char *own_modifiers(char *name)
{
	char *colon = strrchr(name, ':');

	return colon && colon > name && colon[-1] != ':' && colon[1] &&
			       strspn(colon + 1, "ukhHGpP") == strlen(colon + 1)
		       ? colon
		       : NULL;
}

bool libpfm_parse(struct event *ev, char *text, const char **modifiers, int *code, struct err *e)
{
	const char *name = own_name(text);
	struct libpfm_functions pfm;
	char *own;

	if (!name)
		return false;
	if (!library(&pfm)) {
		*code = no_library(ev, "does not find libpfm4", "install libpfm4", e);
		return true;
	}
	*code = encode(&pfm, ev, name);
	/* A letter alone may also be an attribute of the library: try it first. */
	own = *code == PFM_ERR_ATTR ? own_modifiers(text + strlen(PREFIX)) : NULL;
	if (own) {
		*own = '\0';
		*modifiers = own + 1;
		*code = encode(&pfm, ev, name);
	}
	*code = *code == PFM_SUCCESS ? check_level(ev, e) : refuse(&pfm, ev, *code, e);
	return true;
}

/* One row of the list. */
struct libpfm_row {
	const struct libpfm_functions *pfm;
	const char *pmu; /* NULL: the only one of a CPU, its names stand alone */
	const pfm_event_info_t *event;
	const pfm_event_attr_info_t *umask; /* may be NULL */
};

static void tell(const struct libpfm_row *r, libpfm_fn *fn, void *ctx)
{
	char name[EVENT_NAME_MAX], text[EVENT_TEXT_MAX];
	const char *more = r->umask && r->umask->desc ? r->umask->desc : NULL;
	int size = snprintf(name, sizeof(name), PREFIX "%s%s%s%s%s", r->pmu ? r->pmu : "",
			    r->pmu ? "::" : "", r->event->name, r->umask ? ":" : "",
			    r->umask ? r->umask->name : "");

	snprintf(text, sizeof(text), "%s%s%s", r->event->desc ? r->event->desc : "",
		 more ? ": " : "", more ? more : "");
	if (size < (int)sizeof(name))
		fn(ctx, name, text);
}

/* Call @fn for each unit mask of an event; once if it has none. */
static void each_umask(struct libpfm_row *r, libpfm_fn *fn, void *ctx)
{
	bool any = false;

	for (int i = 0; i < r->event->nattrs; i++) {
		pfm_event_attr_info_t umask = { .size = sizeof(umask) };

		if (r->pfm->get_event_attr_info(r->event->idx, i, PFM_OS_PERF_EVENT_EXT, &umask) !=
			    PFM_SUCCESS ||
		    umask.type != PFM_ATTR_UMASK)
			continue;
		any = true;
		r->umask = &umask;
		tell(r, fn, ctx);
	}
	r->umask = NULL;
	if (!any)
		tell(r, fn, ctx);
}

/* False: not in this machine, or already in the catalogue. */
static bool present(const struct libpfm_functions *pfm, int pmu, pfm_pmu_info_t *info)
{
	*info = (pfm_pmu_info_t){ .size = sizeof(*info) };
	return pmu != PFM_PMU_PERF_EVENT && pmu != PFM_PMU_PERF_EVENT_RAW &&
	       pfm->get_pmu_info((pfm_pmu_t)pmu, info) == PFM_SUCCESS && info->is_present;
}

void libpfm_each(const char *root, libpfm_fn *fn, void *ctx)
{
	struct libpfm_functions pfm;
	unsigned int cores = 0;
	pfm_pmu_info_t pmu;

	/* The library looks at this machine, never elsewhere. */
	if (root[0] || !library(&pfm))
		return;
	for (int i = 0; i < PFM_PMU_MAX; i++)
		cores += present(&pfm, i, &pmu) && pmu.type == PFM_PMU_TYPE_CORE;
	for (int i = 0; i < PFM_PMU_MAX; i++) {
		if (!present(&pfm, i, &pmu))
			continue;
		for (int idx = pmu.first_event; idx != -1; idx = pfm.get_event_next(idx)) {
			pfm_event_info_t info = { .size = sizeof(info) };
			bool alone = pmu.type == PFM_PMU_TYPE_CORE && cores == 1;
			struct libpfm_row row = { .pfm = &pfm,
						  .pmu = alone ? NULL : pmu.name,
						  .event = &info };

			if (pfm.get_event_info(idx, PFM_OS_PERF_EVENT_EXT, &info) == PFM_SUCCESS)
				each_umask(&row, fn, ctx);
		}
	}
}

#else

bool libpfm_parse(struct event *ev, char *text, const char **modifiers, int *code, struct err *e)
{
	if (!own_name(text))
		return false;
	*code = no_library(ev, "was built without libpfm4", "install libpfm4-dev and build again",
			   e);
	return true;
}

void libpfm_each(const char *root, libpfm_fn *fn, void *ctx)
{
}

#endif

/*
 * Types of cores, from /sys/bus/event_source/devices: a PMU of cores has a file "cpus", others
 * have "cpumask".
 *
 * Any thread; no state. Invariant: there are no types, or at least two.
 */

#define TYPE_SHIFT 32 /* PERF_PMU_TYPE_SHIFT */

/* Set the bits of "0-3,5" in @cpus. False: it is no list of CPUs. */
static bool set_cpus(uint64_t *cpus, const char *text)
{
	int *list, nr = task_list_cpus(text, &list);

	if (nr <= 0)
		return false;
	for (int i = 0; i < nr; i++)
		if (list[i] < CORE_CPUS_MAX)
			cpus[list[i] / 64] |= 1ULL << list[i] % 64;
	free(list);
	return true;
}

static void name_type(struct core_type *type, const char *pmu)
{
	static const char *const prefixes[] = { "cpu_", "armv8_", "armv9_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(pmu, prefixes[i], strlen(prefixes[i])) && pmu[strlen(prefixes[i])])
			pmu += strlen(prefixes[i]);
	snprintf(type->name, sizeof(type->name), "%.23s", pmu);
}

static bool read_type(struct core_type *type, const char *root, const char *pmu)
{
	char path[512], text[4096];

	*type = (struct core_type){ .pmu_type = 0 };
	snprintf(path, sizeof(path), "%s" PMU_DIR "/%.100s/cpus", root, pmu);
	if (!pmu_is_word(pmu) || !pmu_read_line(path, text, sizeof(text)) ||
	    !set_cpus(type->cpus, text))
		return false;
	name_type(type, pmu);
	return pmu_type(root, pmu, &type->pmu_type);
}

void core_types_read(struct core_types *t, const char *root)
{
	struct dirent **list;
	char path[512];
	int nr;

	t->nr = 0;
	snprintf(path, sizeof(path), "%s" PMU_DIR, root);
	nr = scandir(path, &list, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (t->nr < CORE_TYPES_MAX)
			t->nr += read_type(&t->types[t->nr], root, list[i]->d_name);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	t->nr = t->nr > 1 ? t->nr : 0;
	assert(t->nr <= CORE_TYPES_MAX);
}

static bool has_cpu(const struct core_type *type, int cpu)
{
	return cpu >= 0 && cpu < CORE_CPUS_MAX && type->cpus[cpu / 64] >> cpu % 64 & 1;
}

const struct core_type *core_types_of(const struct core_types *t, int cpu)
{
	assert(t->nr <= CORE_TYPES_MAX);
	for (uint32_t i = 0; i < t->nr; i++)
		if (has_cpu(&t->types[i], cpu))
			return &t->types[i];
	return NULL;
}

/* rNNN and "cpu_core/…/" may have the same type. */
static bool names_pmu(const struct event *ev)
{
	return ev->type >= PERF_TYPE_RAW && strchr(ev->name, '/');
}

bool core_types_has(const struct core_types *t, const struct event *ev, int cpu)
{
	assert(t->nr <= CORE_TYPES_MAX);
	for (uint32_t i = 0; i < t->nr && names_pmu(ev); i++)
		if (t->types[i].pmu_type == ev->type)
			return has_cpu(&t->types[i], cpu);
	return true;
}

void core_types_set(const struct core_types *t, const struct event *ev, int cpu, bool plain,
		    struct perf_event_attr *attr)
{
	const struct core_type *type = core_types_of(t, cpu);

	if (!type || names_pmu(ev))
		return;
	if (ev->type == PERF_TYPE_RAW)
		attr->type = type->pmu_type;
	else if ((ev->type == PERF_TYPE_HARDWARE || ev->type == PERF_TYPE_HW_CACHE) && !plain)
		attr->config |= (uint64_t)type->pmu_type << TYPE_SHIFT;
}
