// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of the CPU's makers, by libpfm4: "pfm:RETIRED_INSTRUCTIONS:u:c=1", the
 * events that perf takes by --pfm-events.
 *
 * Any thread: the library is loaded and set up once, on first use, then only read. Invariant: its
 * encoding is not changed, so a name opens the same event as in perf.
 */
#include "sampler/event/event_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/library.h"

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

struct functions {
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_strerror) *strerror;
	__typeof__(pfm_get_os_event_encoding) *get_os_event_encoding;
	__typeof__(pfm_get_event_attr_info) *get_event_attr_info;
	__typeof__(pfm_get_event_info) *get_event_info;
	__typeof__(pfm_get_event_next) *get_event_next;
	__typeof__(pfm_get_pmu_info) *get_pmu_info;
};

static bool find_functions(struct functions *pfm)
{
	static const struct library_function list[] = {
		{ "pfm_initialize", offsetof(struct functions, initialize) },
		{ "pfm_strerror", offsetof(struct functions, strerror) },
		{ "pfm_get_os_event_encoding", offsetof(struct functions, get_os_event_encoding) },
		{ "pfm_get_event_attr_info", offsetof(struct functions, get_event_attr_info) },
		{ "pfm_get_event_info", offsetof(struct functions, get_event_info) },
		{ "pfm_get_event_next", offsetof(struct functions, get_event_next) },
		{ "pfm_get_pmu_info", offsetof(struct functions, get_pmu_info) },
	};

	return library_find(LIBRARY, pfm, list, ARRAY_SIZE(list));
}

static void set_up(void)
{
	struct functions pfm;

	if (find_functions(&pfm))
		pfm.initialize();
}

/* The library keeps its tables in globals; filling them is the one thing it does not lock. */
static bool library(struct functions *pfm)
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

static int encode(const struct functions *pfm, struct event *ev, const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .exclude_guest = 1 };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int code =
		pfm->get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);

	if (code == PFM_SUCCESS)
		take_over(ev, &attr);
	return code;
}

static int refuse(const struct functions *pfm, const struct event *ev, int code, struct err *e)
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
	struct functions pfm;
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
struct row {
	const struct functions *pfm;
	const char *pmu; /* NULL: the only one of a CPU, its names stand alone */
	const pfm_event_info_t *event;
	const pfm_event_attr_info_t *umask; /* may be NULL */
};

static void tell(const struct row *r, libpfm_fn *fn, void *ctx)
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
static void each_umask(struct row *r, libpfm_fn *fn, void *ctx)
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
static bool present(const struct functions *pfm, int pmu, pfm_pmu_info_t *info)
{
	*info = (pfm_pmu_info_t){ .size = sizeof(*info) };
	return pmu != PFM_PMU_PERF_EVENT && pmu != PFM_PMU_PERF_EVENT_RAW &&
	       pfm->get_pmu_info((pfm_pmu_t)pmu, info) == PFM_SUCCESS && info->is_present;
}

void libpfm_each(const char *root, libpfm_fn *fn, void *ctx)
{
	struct functions pfm;
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
			struct row row = { .pfm = &pfm,
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
