// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Profiles over HTTP, by libmicrohttpd, loaded when needed: limits, requests parsed strictly,
 * answers, figures for Prometheus.
 *
 * A request for a profile is suspended while the sampler collects; the collector thread resumes it.
 * One at a time: others are refused.
 */
#include "ui/serve/serve.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/text/text.h"

#ifndef HAVE_MICROHTTPD
/* Without the library only tests call the pure part. */
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

/* Requests over HTTP, and the address to listen on. All text is hostile. Pure; any thread. */

#define REQUEST_SECONDS_MAX 300

enum request_kind {
	REQUEST_UNKNOWN,
	REQUEST_INDEX,
	REQUEST_PROFILE,
	REQUEST_METRICS,
	REQUEST_FLAME,
	REQUEST_HEALTH,
};

struct request {
	enum request_kind kind;
	unsigned int seconds;
	pid_t pid;	     /* 0: all processes */
	const char *invalid; /* name of an argument with an invalid value; NULL: none */
};

union request_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * Parse requests and addresses, strictly.
 */

#define REQUEST_SECONDS 30 /* as Go's net/http/pprof */

static const struct {
	const char *path;
	enum request_kind kind;
} paths[] = {
	{ "/", REQUEST_INDEX },
	{ "/debug/pprof", REQUEST_INDEX },
	{ "/debug/pprof/", REQUEST_INDEX },
	{ "/debug/pprof/profile", REQUEST_PROFILE },
	{ "/metrics", REQUEST_METRICS },
	{ "/flame", REQUEST_FLAME },
	{ "/healthz", REQUEST_HEALTH },
};

/* Set the kind by @path, and defaults. */
static void request_init(struct request *r, const char *path)
{
	*r = (struct request){ .seconds = REQUEST_SECONDS };
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!strcmp(path, paths[i].path))
			r->kind = paths[i].kind;
}

/* Take an argument of the query; @value NULL: none. Unknown ones are ignored, as by Go. */
static void request_argument(struct request *r, const char *name, const char *value)
{
	uint64_t n = 0;

	if (!value)
		value = "";
	if (!strcmp(name, "seconds")) {
		if (number_u64(value, strlen(value), 1, REQUEST_SECONDS_MAX, &n))
			r->invalid = "seconds";
		else
			r->seconds = (unsigned int)n;
	} else if (!strcmp(name, "pid")) {
		if (number_u64(value, strlen(value), 1, INT32_MAX, &n))
			r->invalid = "pid";
		else
			r->pid = (pid_t)n;
	}
}

static bool is_local_v4(uint32_t addr)
{
	return ntohl(addr) >> 24 == IN_LOOPBACKNET;
}

/* ::1, or an address of version 4 in version 6. */
static bool is_local_v6(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_LOOPBACK(addr) ||
	       (IN6_IS_ADDR_V4MAPPED(addr) && addr->s6_addr[12] == IN_LOOPBACKNET);
}

/* Return whether the value of the header Host is this machine's loopback address. */
static bool request_host_is_local(const char *host)
{
	size_t size = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest = host + size + (host[size] == ']');
	char name[INET6_ADDRSTRLEN + 1];
	struct in6_addr v6;
	struct in_addr v4;
	uint64_t port;

	if (size >= sizeof(name) ||
	    (*rest &&
	     (*rest != ':' || number_u64(rest + 1, strlen(rest + 1), 1, UINT16_MAX, &port))))
		return false;
	memcpy(name, host, size);
	name[size] = '\0';
	if (*host == '[')
		return host[size] && inet_pton(AF_INET6, name + 1, &v6) == 1 && is_local_v6(&v6);
	return !strcasecmp(name, "localhost") ||
	       (inet_pton(AF_INET, name, &v4) == 1 && is_local_v4(v4.s_addr));
}

static int refuse(const char *text, struct err *e)
{
	return err_set(e, -EINVAL,
		       "--listen %.80s: invalid address\n"
		       "  give a port, or address and port, as in 127.0.0.1:6060 or [::1]:6060",
		       text);
}

/*
 * Parse "6060", ":6060", "127.0.0.1:6060" or "[::1]:6060"; without an address it is loopback.
 * Return the size of the address, or -EINVAL with a message.
 */
static int request_parse_address(union request_address *a, const char *text, struct err *e)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t size = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
	uint64_t n;

	memset(a, 0, sizeof(*a));
	if (size >= sizeof(host) || number_u64(port, strlen(port), 1, UINT16_MAX, &n))
		return refuse(text, e);
	if (size) {
		memcpy(host, text, size);
		host[size] = '\0';
	}
	if (host[0] == '[' && size > 2 && host[size - 1] == ']') {
		host[size - 1] = '\0';
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons((uint16_t)n);
		return inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1 ? (int)sizeof(a->v6)
									    : refuse(text, e);
	}
	a->v4.sin_family = AF_INET;
	a->v4.sin_port = htons((uint16_t)n);
	return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 ? (int)sizeof(a->v4)
							      : refuse(text, e);
}

static bool request_address_is_local(const union request_address *a)
{
	return a->any.sa_family == AF_INET6 ? is_local_v6(&a->v6.sin6_addr)
					    : is_local_v4(a->v4.sin_addr.s_addr);
}

/*
 * The text formats of Prometheus and OpenMetrics.
 */

struct writing {
	struct out *o;
	bool open;
};

/* Begin a metric; the name of a counter ends with _total. */
static void begin(const struct writing *w, const char *name, bool counter, const char *help)
{
	/* OpenMetrics names the family of a counter without the suffix. */
	const char *suffix = counter && !w->open ? "_total" : "";

	out_format(w->o, "# HELP proftop_%s%s %s\n# TYPE proftop_%s%s %s\n", name, suffix, help,
		   name, suffix, counter ? "counter" : "gauge");
}

static void put_value(const struct writing *w, double value)
{
	out_text(w->o, " ");
	out_number(w->o, value, 6);
	out_text(w->o, "\n");
}

/* Add the value of a label, escaped. */
static void put_label(const struct writing *w, const char *name, struct safe_text value)
{
	out_format(w->o, "%s=\"", name);
	for (size_t i = 0; i < value.size; i++) {
		if (value.str[i] == '"' || value.str[i] == '\\')
			out_text(w->o, "\\");
		out_bytes(w->o, &value.str[i], 1);
	}
	out_text(w->o, "\"");
}

static void put_samples(const struct writing *w, const struct profile_account *a)
{
	const struct {
		const char *outcome;
		uint64_t nr;
	} all[] = {
		{ "complete", a->complete },   { "guessed", a->guessed },
		{ "truncated", a->truncated }, { "broken", a->broken },
		{ "pending", a->pending },     { "dropped", a->dropped },
		{ "lost", a->lost },
	};

	begin(w, "samples", true, "Samples taken since the start, by the outcome of their stack.");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		out_format(w->o, "proftop_samples_total{outcome=\"%s\"}", all[i].outcome);
		put_value(w, (double)all[i].nr);
	}
	begin(w, "own_samples", true, "Samples of proftop, not among the others.");
	out_text(w->o, "proftop_own_samples_total");
	put_value(w, (double)a->own);
	if (!a->filtered)
		return;
	begin(w, "filtered_samples", true, "Samples of processes that are not of the target.");
	out_text(w->o, "proftop_filtered_samples_total");
	put_value(w, (double)a->filtered);
}

static void put_cpus(const struct writing *w, const struct profile *p)
{
	begin(w, "lost_samples", true, "Samples lost by the kernel.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		out_format(w->o, "proftop_lost_samples_total{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, (double)p->cpus[i].lost_total);
	}
	begin(w, "throttled", true, "How often the kernel throttled sampling.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		out_format(w->o, "proftop_throttled_total{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, (double)p->cpus[i].throttled_total);
	}
	begin(w, "cpu_busy_ratio", false, "Busy part of a CPU in the last tick.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		if (isnan(p->cpus[i].busy))
			continue;
		out_format(w->o, "proftop_cpu_busy_ratio{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, p->cpus[i].busy);
	}
}

static void put_rate(const struct writing *w, const struct profile_event *ev, const char *kind,
		     double hz)
{
	char name[EVENT_NAME_MAX];

	if (isnan(hz))
		return;
	out_text(w->o, "proftop_rate_hertz{");
	put_label(w, "event", text_format(name, sizeof(name), "%s", ev->event.name));
	out_format(w->o, ",kind=\"%s\"}", kind);
	put_value(w, hz);
}

static void put_events(const struct writing *w, const struct profile *p)
{
	begin(w, "rate_hertz", false, "Samples per second on a busy CPU: wanted, and measured.");
	for (uint32_t i = 0; i < p->nr_events; i++) {
		put_rate(w, &p->events[i], "want", p->events[i].want_hz);
		put_rate(w, &p->events[i], "got", p->events[i].got_hz);
	}
}

static void put_gauge(const struct writing *w, const char *name, double value, const char *help)
{
	begin(w, name, false, help);
	out_format(w->o, "proftop_%s", name);
	put_value(w, value);
}

static void put_self(const struct writing *w, const struct profile *p, uint64_t requests,
		     uint64_t sending)
{
	/* Without large blocks, of which only some pages may be in use. */
	const struct mallinfo2 heap = mallinfo2();

	begin(w, "self_cpu_seconds", true, "CPU time of proftop.");
	out_text(w->o, "proftop_self_cpu_seconds_total");
	put_value(w, (double)time_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	begin(w, "http_requests", true, "Requests answered.");
	out_text(w->o, "proftop_http_requests_total");
	put_value(w, (double)requests);
	put_gauge(w, "http_sending_bytes", (double)sending, "Answers that are being sent.");
	put_gauge(w, "self_resident_bytes", (double)p->self.rss_kb * 1024, "Memory of proftop.");
	put_gauge(w, "heap_used_bytes", (double)heap.uordblks,
		  "Memory that proftop has allocated, without large tables.");
	put_gauge(w, "heap_free_bytes", (double)heap.fordblks,
		  "Memory that the allocator keeps for later.");
	put_gauge(w, "images_bytes", (double)p->images.memory,
		  "Symbols and unwind tables of files that are loaded.");
	put_gauge(w, "places", (double)p->nr_places, "Sampled code addresses.");
	put_gauge(w, "places_named", (double)p->nr_places_named, "Addresses that have a symbol.");
	put_gauge(w, "processes", (double)p->nr_processes, "Processes with samples in the window.");
	begin(w, "build_info", false, "The version.");
	out_text(w->o, "proftop_build_info{version=\"" PROFTOP_VERSION "\"} 1\n");
}

static void put_pushed_sum(const struct writing *w, const char *name, const struct pushed *p,
			   bool samples)
{
	const struct {
		const char *result;
		const struct pushed_sum *sum;
	} all[] = {
		{ "delivered", &p->delivered },
		{ pushed_drop_name(PUSHED_REFUSED), &p->dropped[PUSHED_REFUSED] },
		{ pushed_drop_name(PUSHED_TOO_LARGE), &p->dropped[PUSHED_TOO_LARGE] },
		{ pushed_drop_name(PUSHED_FULL), &p->dropped[PUSHED_FULL] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		out_format(w->o, "proftop_%s_total{result=\"%s\"}", name, all[i].result);
		put_value(w, (double)(samples ? all[i].sum->samples : all[i].sum->profiles));
	}
}

static void put_pushed(const struct writing *w, const struct pushed *p)
{
	begin(w, "push_profiles", true, "Pushed profiles, by their result.");
	put_pushed_sum(w, "push_profiles", p, false);
	begin(w, "push_samples", true, "Samples in pushed profiles, by their result.");
	put_pushed_sum(w, "push_samples", p, true);
	begin(w, "push_retries", true, "Attempts without success that are repeated.");
	out_text(w->o, "proftop_push_retries_total");
	put_value(w, (double)p->retries);
	put_gauge(w, "push_queued_profiles", (double)p->queued.profiles,
		  "Profiles that are not delivered yet.");
}

/*
 * @open: in the format of OpenMetrics 1.0; else Prometheus 0.0.4. @requests: answered so far.
 * @sending: bytes of answers.
 * @pushed: figures of --push; NULL: no push.
 */
static void metrics_write(struct out *o, const struct profile *p, bool open, uint64_t requests,
			  uint64_t sending, const struct pushed *pushed)
{
	const struct writing w = { o, open };

	put_samples(&w, &p->account_total);
	put_cpus(&w, p);
	put_events(&w, p);
	put_self(&w, p, requests, sending);
	if (pushed)
		put_pushed(&w, pushed);
	if (open)
		out_text(o, "# EOF\n");
}

#ifndef HAVE_MICROHTTPD

int serve_new(struct serve **out, const char *address, enum ui_config_time time, char *remark,
	      size_t remark_size, struct err *e)
{
	return err_set(e, -ENOTSUP,
		       "--listen: this proftop was built without libmicrohttpd\n"
		       "  install libmicrohttpd-dev and build again");
}

int serve_start(struct serve *sv, struct sampler *s, bool live, const char *host, struct err *e)
{
	return 0;
}

void serve_publish(struct serve *sv, struct profile *p, const struct pushed *pushed)
{
}

void serve_free(struct serve *sv)
{
}

#else

#include <microhttpd.h>

/*
 * The HTTP server, and its answers. Threads: functions on the thread of libmicrohttpd.
 *
 * Answers of the HTTP server. Runs on: the thread of libmicrohttpd.
 *
 * A client may read as slowly as it likes: the bytes of all answers have a limit.
 */

struct functions {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_create_response_from_buffer) *create_response;
	__typeof__(MHD_destroy_response) *destroy_response;
	__typeof__(MHD_add_response_header) *add_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_get_connection_values) *get_values;
	__typeof__(MHD_lookup_connection_value) *lookup_value;
	__typeof__(MHD_suspend_connection) *suspend;
	__typeof__(MHD_resume_connection) *resume;
	__typeof__(MHD_get_connection_info) *connection_info;
};

struct serve {
	struct functions mhd;
	struct MHD_Daemon *daemon;
	struct sampler *sampler;
	bool live, local; /* not a recording; on a loopback address */
	enum ui_config_time time;
	char host[65];
	int fd; /* listens; -1: the daemon has it */
	int wake;
	pthread_t collector;
	bool collects; /* the collector thread runs */
	atomic_bool stop;
	atomic_ullong nr_requests;

	pthread_mutex_t lock; /* of the members below */
	struct profile *latest;
	struct pushed pushed; /* of the tick of latest */
	bool pushes;
	struct visit *waiting; /* suspended until its profile is collected; NULL: none */
	/* The page of a profile, for all that request it. */
	struct MHD_Response *page;
	uint64_t page_seq;
	size_t page_size;

	/* The library's thread: */
	size_t sending; /* of all visits */
	bool left_out;	/* its CPU time is known to the sampler */
};

/* One request. */
struct visit {
	struct MHD_Connection *connection;
	struct request request;
	int fd; /* while it waits */
	bool waited;
	struct profile *profile; /* collected; NULL: the session has ended, or the client */
	size_t sending;		 /* bytes of the answer */
};

/* Bytes of answers that are being sent at a time. */
#define SENDING_MAX   ((size_t)64 << 20)
/* Bytes of one: names may be long, and of anyone. */
#define ANSWER_MAX    ((size_t)128 << 20)
/* Smaller answers are always sent: 64 of them take no more. */
#define SENDING_SMALL ((size_t)256 << 10)

static struct MHD_Response *response_of(const struct serve *sv, const void *bytes, size_t size,
					enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *r = sv->mhd.create_response(size, (void *)bytes, mode);

	if (!r)
		return NULL;
	sv->mhd.add_header(r, "Content-Type", type);
	sv->mhd.add_header(r, "X-Content-Type-Options", "nosniff");
	sv->mhd.add_header(r, "Cache-Control", "no-store");
	return r;
}

/* Queue @r, and count the request; NULL: no memory, the connection is closed. */
static enum MHD_Result queue(struct serve *sv, struct MHD_Connection *c, unsigned int status,
			     struct MHD_Response *r)
{
	atomic_fetch_add_explicit(&sv->nr_requests, 1, memory_order_relaxed);
	return r ? sv->mhd.queue_response(c, status, r) : MHD_NO;
}

/* The same, and drop our reference. */
static enum MHD_Result answer(struct serve *sv, struct MHD_Connection *c, unsigned int status,
			      struct MHD_Response *r)
{
	enum MHD_Result result = queue(sv, c, status, r);

	if (r)
		sv->mhd.destroy_response(r);
	return result;
}

static enum MHD_Result answers_text(struct serve *sv, struct MHD_Connection *c, unsigned int status,
				    const char *text)
{
	struct MHD_Response *r = response_of(sv, text, strlen(text), MHD_RESPMEM_PERSISTENT,
					     "text/plain; charset=utf-8");

	if (r && status != MHD_HTTP_OK)
		sv->mhd.add_header(r, "X-Go-Pprof", "1");
	if (r && status == MHD_HTTP_TOO_MANY_REQUESTS)
		sv->mhd.add_header(r, "Retry-After", "5");
	if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		sv->mhd.add_header(r, "Allow", "GET, HEAD");
	return answer(sv, c, status, r);
}

/* Count an answer of @size bytes; false: too much is being sent. */
static bool may_send(struct serve *sv, struct visit *v, size_t size)
{
	if (sv->sending && size > SENDING_SMALL &&
	    size > SENDING_MAX - MIN(sv->sending, SENDING_MAX))
		return false;
	v->sending = size;
	sv->sending += size;
	return true;
}

static enum MHD_Result answer_busy(struct serve *sv, struct visit *v)
{
	return answers_text(sv, v->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "other clients are slow to read their answers: try again\n");
}

/* Make an answer of the bytes of @o, which is taken over. NULL: too large, or no memory. */
static struct MHD_Response *response_from(const struct serve *sv, struct out *o, const char *type)
{
	char *fit = o->failed ? NULL : realloc(o->data, MAX(o->size, 1U));
	struct MHD_Response *r = NULL;

	if (fit) {
		o->data = fit;
		r = response_of(sv, fit, o->size, MHD_RESPMEM_MUST_FREE, type);
	}
	if (r)
		o->data = NULL;
	out_fini(o);
	return r;
}

/* Answer with the bytes of @o, which is taken over. */
static enum MHD_Result answer_bytes(struct serve *sv, struct visit *v, struct out *o,
				    const char *type, const char *disposition)
{
	struct MHD_Connection *c = v->connection;
	struct MHD_Response *r;

	if (!o->failed && !may_send(sv, v, o->size)) {
		out_fini(o);
		return answer_busy(sv, v);
	}
	r = response_from(sv, o, type);
	if (r && disposition)
		sv->mhd.add_header(r, "Content-Disposition", disposition);
	return answer(sv, c, MHD_HTTP_OK, r);
}

static struct profile *answers_latest(struct serve *sv)
{
	struct profile *p;

	pthread_mutex_lock(&sv->lock);
	p = sv->latest ? profile_keep(sv->latest) : NULL;
	pthread_mutex_unlock(&sv->lock);
	return p;
}

static enum MHD_Result answers_metrics(struct serve *sv, struct visit *v)
{
	struct MHD_Connection *c = v->connection;
	const char *accept = sv->mhd.lookup_value(c, MHD_HEADER_KIND, "Accept");
	bool open = accept && strstr(accept, "application/openmetrics-text");
	struct profile *p = answers_latest(sv);
	struct out o = { .failed = false };
	struct pushed pushed;
	bool pushes;

	if (!p)
		return answers_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
	pthread_mutex_lock(&sv->lock);
	pushed = sv->pushed;
	pushes = sv->pushes;
	pthread_mutex_unlock(&sv->lock);
	metrics_write(&o, p, open, atomic_load_explicit(&sv->nr_requests, memory_order_relaxed),
		      sv->sending, pushes ? &pushed : NULL);
	profile_free(p);
	return answer_bytes(sv, v, &o,
			    open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				 : "text/plain; version=0.0.4; charset=utf-8",
			    NULL);
}

/* Set the samples of a request. Return false if the process has none. */
static bool scope_of(const struct serve *sv, const struct profile *p, const struct request *r,
		     struct snapshot_scope *scope)
{
	export_scope_all(scope, export_event(p));
	export_scope_time(scope, p, sv->time);
	memcpy(scope->host, sv->host, sizeof(scope->host));
	for (uint32_t i = 0; r->pid && i < p->nr_processes; i++)
		if (p->processes[i].pid == r->pid)
			scope->filter.process = i;
	return !r->pid || scope->filter.process != UINT32_MAX;
}

static enum MHD_Result answers_profile(struct serve *sv, struct visit *v, const struct profile *p)
{
	struct MHD_Connection *c = v->connection;
	struct snapshot_scope scope;
	struct out o = { .max = ANSWER_MAX };
	struct err e;

	if (!scope_of(sv, p, &v->request, &scope))
		return answers_text(sv, c, MHD_HTTP_NOT_FOUND, "no samples of this pid\n");
	if (export_write(&o, p, &scope, EXPORT_PPROF, &e)) {
		out_fini(&o);
		return answers_text(sv, c, MHD_HTTP_INTERNAL_SERVER_ERROR,
				    "too large, or out of memory\n");
	}
	return answer_bytes(sv, v, &o, "application/octet-stream",
			    "attachment; filename=\"profile\"");
}

/* A client that is slow keeps the page of an old profile. */
static enum MHD_Result answer_page(struct serve *sv, struct visit *v)
{
	return may_send(sv, v, sv->page_size) ? queue(sv, v->connection, MHD_HTTP_OK, sv->page)
					      : answer_busy(sv, v);
}

static enum MHD_Result answers_flame(struct serve *sv, struct visit *v)
{
	const struct request *r = &v->request;
	struct MHD_Connection *c = v->connection;
	struct profile *p = answers_latest(sv);
	struct snapshot_scope scope;
	struct out o = { .max = ANSWER_MAX };
	struct err e;

	if (!p)
		return answers_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
	if (!r->pid && sv->page && sv->page_seq == p->seq) {
		profile_free(p);
		return answer_page(sv, v);
	}
	if (!scope_of(sv, p, r, &scope)) {
		profile_free(p);
		return answers_text(sv, c, MHD_HTTP_NOT_FOUND, "no samples of this pid\n");
	}
	if (export_write(&o, p, &scope, EXPORT_HTML, &e)) {
		out_fini(&o);
		profile_free(p);
		return answers_text(sv, c, MHD_HTTP_INTERNAL_SERVER_ERROR,
				    "too large, or out of memory\n");
	}
	/* A large page is not kept. */
	if (r->pid || o.size > SENDING_MAX) {
		profile_free(p);
		return answer_bytes(sv, v, &o, "text/html; charset=utf-8", NULL);
	}
	if (sv->page)
		sv->mhd.destroy_response(sv->page);
	sv->page_seq = p->seq;
	sv->page_size = o.size;
	sv->page = response_from(sv, &o, "text/html; charset=utf-8");
	profile_free(p);
	return answer_page(sv, v);
}

#define LIBRARY		"libmicrohttpd.so.12"
#define CONNECTIONS_MAX 64u
#define TIMEOUT_S	10u
#define LOOK_MS		500 /* between two looks whether a client that waits has left */
#define MEMORY_MAX	((size_t)32 << 10) /* of a connection: its headers */

static bool find_functions(struct functions *mhd)
{
	static const struct library_function list[] = {
		{ "MHD_start_daemon", offsetof(struct functions, start_daemon) },
		{ "MHD_stop_daemon", offsetof(struct functions, stop_daemon) },
		{ "MHD_create_response_from_buffer", offsetof(struct functions, create_response) },
		{ "MHD_destroy_response", offsetof(struct functions, destroy_response) },
		{ "MHD_add_response_header", offsetof(struct functions, add_header) },
		{ "MHD_queue_response", offsetof(struct functions, queue_response) },
		{ "MHD_get_connection_values", offsetof(struct functions, get_values) },
		{ "MHD_lookup_connection_value", offsetof(struct functions, lookup_value) },
		{ "MHD_suspend_connection", offsetof(struct functions, suspend) },
		{ "MHD_resume_connection", offsetof(struct functions, resume) },
		{ "MHD_get_connection_info", offsetof(struct functions, connection_info) },
	};

	return library_find(LIBRARY, mhd, list, ARRAY_SIZE(list));
}

/* Return a listening socket, or -errno with a message. */
static int listen_on(const union request_address *a, int size, const char *text, struct err *e)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (!bind(fd, &a->any, (socklen_t)size) && !listen(fd, (int)CONNECTIONS_MAX))
			return fd;
	}
	err_set(e, -errno, "cannot listen on %s: %s%s", text, strerror(errno),
		errno == EADDRINUSE ? "\n  give another port, as in --listen 127.0.0.1:6061" : "");
	on = -errno;
	if (fd >= 0)
		close(fd);
	return on;
}

int serve_new(struct serve **out, const char *address, enum ui_config_time time, char *remark,
	      size_t remark_size, struct err *e)
{
	union request_address a;
	struct serve *sv;
	int size = request_parse_address(&a, address, e), fd;

	remark[0] = '\0';
	if (size < 0)
		return size;
	fd = listen_on(&a, size, address, e);
	if (fd < 0)
		return fd;
	sv = calloc(1, sizeof(*sv));
	if (!sv || !find_functions(&sv->mhd)) {
		free(sv);
		close(fd);
		return err_set(e, -ENOTSUP,
			       "--listen needs " LIBRARY "\n  install the package libmicrohttpd12");
	}
	sv->fd = fd;
	sv->time = time;
	sv->wake = -1;
	sv->local = request_address_is_local(&a);
	pthread_mutex_init(&sv->lock, NULL);
	if (!sv->local)
		snprintf(remark, remark_size,
			 "listening on %s: profiles can be read over the network, without password",
			 address);
	*out = sv;
	return 0;
}

/* ---- requests: on the library's thread ---- */

/* Suspend the request until its profile is collected. */
static enum MHD_Result collect(struct serve *sv, struct visit *v)
{
	const union MHD_ConnectionInfo *info =
		sv->mhd.connection_info(v->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	bool busy;

	v->fd = info ? info->connect_fd : -1;
	pthread_mutex_lock(&sv->lock);
	/* Acquire: as in collector_main(). */
	busy = sv->waiting || atomic_load_explicit(&sv->stop, memory_order_acquire);
	if (!busy) {
		sv->waiting = v;
		v->waited = true;
		sv->mhd.suspend(v->connection);
		sampler_collect(sv->sampler, v->request.seconds * 1000000000ull);
		/* The collector looks whether it stays. */
		wake_send(sv->wake);
	}
	pthread_mutex_unlock(&sv->lock);
	if (busy)
		return answers_text(sv, v->connection, MHD_HTTP_TOO_MANY_REQUESTS,
				    "another profile is being collected: try again\n");
	return MHD_YES;
}

static const char index_page[] = "proftop " PROFTOP_VERSION "\n"
				 "/debug/pprof/profile?seconds=N  collect N seconds, for go tool "
				 "pprof; &pid=PID: one "
				 "process\n"
				 "/flame                          a page with the flame graph of "
				 "now; ?pid=PID\n"
				 "/metrics                        figures of proftop, for "
				 "Prometheus\n"
				 "/healthz                        ok\n";

static enum MHD_Result answer_kind(struct serve *sv, struct visit *v)
{
	struct MHD_Connection *c = v->connection;
	struct profile *p;
	enum MHD_Result result;

	switch (v->request.kind) {
	case REQUEST_INDEX:
		return answers_text(sv, c, MHD_HTTP_OK, index_page);
	case REQUEST_HEALTH:
		return answers_text(sv, c, MHD_HTTP_OK, "ok\n");
	case REQUEST_METRICS:
		return answers_metrics(sv, v);
	case REQUEST_FLAME:
		return answers_flame(sv, v);
	case REQUEST_PROFILE:
		if (sv->live)
			return collect(sv, v);
		/* A recording is collected already. */
		p = answers_latest(sv);
		result = p ? answers_profile(sv, v, p)
			   : answers_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
		profile_free(p);
		return result;
	default:
		return answers_text(sv, c, MHD_HTTP_NOT_FOUND, "unknown path: see /\n");
	}
}

static enum MHD_Result take_argument(void *request, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	request_argument(request, name, value);
	return MHD_YES;
}

/*
 * Report whether a page of another site caused the request, other than by a link: browsers say so.
 * It could not read the answer, but have many made.
 */
static bool is_untrusted(const struct serve *sv, const struct visit *v)
{
	const char *site = sv->mhd.lookup_value(v->connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
	const char *dest = sv->mhd.lookup_value(v->connection, MHD_HEADER_KIND, "Sec-Fetch-Dest");

	return site && strcmp(site, "same-origin") && strcmp(site, "none") &&
	       !(dest && !strcmp(dest, "document"));
}

/* Return the status that refuses a request, and why; 0: it is answered. */
static unsigned int refusal(const struct serve *sv, const struct visit *v, const char *method,
			    const char **why)
{
	const char *host = sv->mhd.lookup_value(v->connection, MHD_HEADER_KIND, "Host");
	const char *size = sv->mhd.lookup_value(v->connection, MHD_HEADER_KIND, "Content-Length");

	*why = "only GET and HEAD\n";
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	*why = "requests with a body are refused\n";
	if ((size && strcmp(size, "0")) ||
	    sv->mhd.lookup_value(v->connection, MHD_HEADER_KIND, "Transfer-Encoding"))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	/* Refuse a name of another site that was bound to this address. */
	*why = "the header Host is not a loopback address\n";
	if (sv->local && host && !request_host_is_local(host))
		return MHD_HTTP_FORBIDDEN;
	*why = "a page of another site made this request\n";
	if (is_untrusted(sv, v))
		return MHD_HTTP_FORBIDDEN;
	*why = "invalid value of seconds: must be 1 to 300\n";
	if (v->request.invalid && !strcmp(v->request.invalid, "seconds"))
		return MHD_HTTP_BAD_REQUEST;
	*why = "invalid pid\n";
	return v->request.invalid ? MHD_HTTP_BAD_REQUEST : 0;
}

/* Answer a request that waited; while the answer is sent, its profile is not needed. */
static enum MHD_Result answer_collected(struct serve *sv, struct visit *v)
{
	enum MHD_Result result = v->profile ? answers_profile(sv, v, v->profile)
					    : answers_text(sv, v->connection,
							   MHD_HTTP_SERVICE_UNAVAILABLE,
							   "the session has ended\n");

	profile_free(v->profile);
	v->profile = NULL;
	return result;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **state)
{
	struct serve *sv = cls;
	struct visit *v = *state;
	unsigned int status;
	const char *why;
	clockid_t clock;

	/* Requests do not lower the rate. */
	if (!sv->left_out && !pthread_getcpuclockid(pthread_self(), &clock))
		sampler_leave_out(sv->sampler, clock);
	sv->left_out = true;
	if (v && v->waited)
		return answer_collected(sv, v);
	if (v)
		return answer_kind(sv, v);
	*state = v = calloc(1, sizeof(*v));
	if (!v)
		return MHD_NO;
	v->connection = connection;
	request_init(&v->request, url);
	sv->mhd.get_values(connection, MHD_GET_ARGUMENT_KIND, take_argument, &v->request);
	status = refusal(sv, v, method, &why);
	return status ? answers_text(sv, connection, status, why) : MHD_YES;
}

static void completed(void *cls, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode code)
{
	struct serve *sv = cls;
	struct visit *v = *state;

	if (!v)
		return;
	pthread_mutex_lock(&sv->lock);
	if (sv->waiting == v)
		sv->waiting = NULL;
	pthread_mutex_unlock(&sv->lock);
	sv->sending -= v->sending;
	profile_free(v->profile);
	free(v);
	*state = NULL;
}

/* ---- the collector thread ---- */

/* Give the suspended request its profile; NULL: the session ends. */
static void resume(struct serve *sv, struct profile *p)
{
	struct visit *v;

	pthread_mutex_lock(&sv->lock);
	v = sv->waiting;
	sv->waiting = NULL;
	if (v) {
		v->profile = p;
		sv->mhd.resume(v->connection);
	}
	pthread_mutex_unlock(&sv->lock);
	if (!v)
		profile_free(p);
}

/* Report whether a client waits; one that has left does not keep others from their profiles. */
static bool look_at_client(struct serve *sv)
{
	struct visit *v;
	char c;

	pthread_mutex_lock(&sv->lock);
	v = sv->waiting;
	if (v && v->fd >= 0 && !recv(v->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT)) {
		sv->waiting = NULL;
		sv->mhd.resume(v->connection);
	}
	v = sv->waiting;
	pthread_mutex_unlock(&sv->lock);
	return v != NULL;
}

static void *collector_main(void *arg)
{
	struct serve *sv = arg;
	struct pollfd fds[] = {
		{ .fd = sampler_collected_fd(sv->sampler), .events = POLLIN },
		{ .fd = sv->wake, .events = POLLIN },
	};

	prctl(PR_SET_NAME, "collector");
	/* Acquire: pairs with serve_free(). */
	while (!atomic_load_explicit(&sv->stop, memory_order_acquire)) {
		struct profile *p;

		poll(fds, ARRAY_SIZE(fds), look_at_client(sv) ? LOOK_MS : -1);
		wake_clear(sv->wake);
		p = fds[0].revents ? sampler_take_collected(sv->sampler) : NULL;
		if (p)
			resume(sv, p);
	}
	resume(sv, NULL);
	return NULL;
}

int serve_start(struct serve *sv, struct sampler *s, bool live, const char *host, struct err *e)
{
	sigset_t all, old;
	int code;

	if (!sv)
		return 0;
	sv->sampler = s;
	sv->live = live;
	snprintf(sv->host, sizeof(sv->host), "%s", host);
	sv->wake = wake_new();
	code = sv->wake < 0 ? sv->wake : thread_start(&sv->collector, 0, collector_main, sv);
	if (code)
		return err_set(e, code, "--listen: cannot start a thread: %s", strerror(-code));
	sv->collects = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	sv->daemon = sv->mhd.start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME,
					  0, NULL, NULL, handle, sv, MHD_OPTION_LISTEN_SOCKET,
					  sv->fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
					  MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
					  MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_MAX,
					  MHD_OPTION_STRICT_FOR_CLIENT, 1,
					  MHD_OPTION_NOTIFY_COMPLETED, completed, sv,
					  MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!sv->daemon)
		return err_set(e, -EIO, "--listen: cannot start the HTTP server");
	sv->fd = -1;
	return 0;
}

void serve_publish(struct serve *sv, struct profile *p, const struct pushed *pushed)
{
	struct profile *before;

	if (!sv || !p)
		return;
	profile_keep(p);
	pthread_mutex_lock(&sv->lock);
	before = sv->latest;
	sv->latest = p;
	sv->pushes = pushed != NULL;
	if (pushed)
		sv->pushed = *pushed;
	pthread_mutex_unlock(&sv->lock);
	profile_free(before);
}

void serve_free(struct serve *sv)
{
	if (!sv)
		return;
	if (sv->collects) {
		/* Release: the thread sees all that was done before. */
		atomic_store_explicit(&sv->stop, true, memory_order_release);
		wake_send(sv->wake);
		pthread_join(sv->collector, NULL);
	}
	if (sv->daemon)
		sv->mhd.stop_daemon(sv->daemon);
	if (sv->page)
		sv->mhd.destroy_response(sv->page);
	if (sv->fd >= 0)
		close(sv->fd);
	if (sv->wake >= 0)
		close(sv->wake);
	profile_free(sv->latest);
	pthread_mutex_destroy(&sv->lock);
	free(sv);
}

#endif
