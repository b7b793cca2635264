// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Profiles over HTTP, by libmicrohttpd, which is loaded when it is needed.
 *
 * A request for a profile is suspended while the sampler collects; the collector thread resumes
 * it. One at a time: others are refused.
 */
#include "ui/serve/serve.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "symbols/base/library.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "ui/export/export.h"
#include "ui/serve/metrics.h"
#include "ui/serve/request.h"

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

#define LIBRARY		"libmicrohttpd.so.12"
#define CONNECTIONS_MAX 64u
#define TIMEOUT_S	10u
#define MEMORY_MAX	((size_t)32 << 10) /* of a connection: its headers */
/* Bytes of answers that are being sent: a client may read as slowly as it likes. */
#define SENDING_MAX	((size_t)64 << 20)
/* Smaller answers are always sent: 64 of them take no more. */
#define SENDING_SMALL	((size_t)256 << 10)

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

	size_t sending; /* the library's thread: of all visits */
};

/* One request. */
struct visit {
	struct MHD_Connection *connection;
	struct request request;
	bool waited;
	struct profile *profile; /* collected; NULL: the session has ended */
	size_t sending;		 /* bytes of the answer */
};

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

/* ---- answers: on the library's thread ---- */

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

/* Answer with a static sentence; go tool pprof prints it. */
static enum MHD_Result answer_text(struct serve *sv, struct MHD_Connection *c, unsigned int status,
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
	return answer_text(sv, v->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			   "other clients are slow to read their answers: try again\n");
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
	r = o->failed
		    ? NULL
		    : response_of(sv, o->data ? o->data : "", o->size, MHD_RESPMEM_MUST_COPY, type);
	out_fini(o);
	if (r && disposition)
		sv->mhd.add_header(r, "Content-Disposition", disposition);
	return answer(sv, c, MHD_HTTP_OK, r);
}

/* Return the newest profile with an owner more; NULL: none yet. */
static struct profile *latest(struct serve *sv)
{
	struct profile *p;

	pthread_mutex_lock(&sv->lock);
	p = sv->latest ? profile_keep(sv->latest) : NULL;
	pthread_mutex_unlock(&sv->lock);
	return p;
}

static enum MHD_Result answer_metrics(struct serve *sv, struct visit *v)
{
	struct MHD_Connection *c = v->connection;
	const char *accept = sv->mhd.lookup_value(c, MHD_HEADER_KIND, "Accept");
	bool open = accept && strstr(accept, "application/openmetrics-text");
	struct profile *p = latest(sv);
	struct out o = { .failed = false };
	struct pushed pushed;
	bool pushes;

	if (!p)
		return answer_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
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

static enum MHD_Result answer_profile(struct serve *sv, struct visit *v, const struct profile *p)
{
	struct MHD_Connection *c = v->connection;
	struct snapshot_scope scope;
	struct out o = { .failed = false };
	struct err e;

	if (!scope_of(sv, p, &v->request, &scope))
		return answer_text(sv, c, MHD_HTTP_NOT_FOUND, "no samples of this pid\n");
	if (export_write(&o, p, &scope, EXPORT_PPROF, &e)) {
		out_fini(&o);
		return answer_text(sv, c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
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

/* Answer with the page of the newest profile; it is made once for each profile. */
static enum MHD_Result answer_flame(struct serve *sv, struct visit *v)
{
	const struct request *r = &v->request;
	struct MHD_Connection *c = v->connection;
	struct profile *p = latest(sv);
	struct snapshot_scope scope;
	struct out o = { .failed = false };
	struct err e;

	if (!p)
		return answer_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
	if (!r->pid && sv->page && sv->page_seq == p->seq) {
		profile_free(p);
		return answer_page(sv, v);
	}
	if (!scope_of(sv, p, r, &scope) || export_write(&o, p, &scope, EXPORT_HTML, &e)) {
		out_fini(&o);
		profile_free(p);
		return answer_text(sv, c, MHD_HTTP_NOT_FOUND, "no samples of this pid\n");
	}
	if (r->pid) {
		profile_free(p);
		return answer_bytes(sv, v, &o, "text/html; charset=utf-8", NULL);
	}
	if (sv->page)
		sv->mhd.destroy_response(sv->page);
	sv->page =
		response_of(sv, o.data, o.size, MHD_RESPMEM_MUST_COPY, "text/html; charset=utf-8");
	sv->page_seq = p->seq;
	sv->page_size = o.size;
	out_fini(&o);
	profile_free(p);
	return answer_page(sv, v);
}

/* Suspend the request until its profile is collected. */
static enum MHD_Result collect(struct serve *sv, struct visit *v)
{
	bool busy;

	pthread_mutex_lock(&sv->lock);
	/* Acquire: as in collector_main(). */
	busy = sv->waiting || atomic_load_explicit(&sv->stop, memory_order_acquire);
	if (!busy) {
		sv->waiting = v;
		v->waited = true;
		sv->mhd.suspend(v->connection);
		sampler_collect(sv->sampler, v->request.seconds * 1000000000ull);
	}
	pthread_mutex_unlock(&sv->lock);
	if (busy)
		return answer_text(sv, v->connection, MHD_HTTP_TOO_MANY_REQUESTS,
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
		return answer_text(sv, c, MHD_HTTP_OK, index_page);
	case REQUEST_HEALTH:
		return answer_text(sv, c, MHD_HTTP_OK, "ok\n");
	case REQUEST_METRICS:
		return answer_metrics(sv, v);
	case REQUEST_FLAME:
		return answer_flame(sv, v);
	case REQUEST_PROFILE:
		if (sv->live)
			return collect(sv, v);
		/* A recording is collected already. */
		p = latest(sv);
		result = p ? answer_profile(sv, v, p)
			   : answer_text(sv, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no profile yet\n");
		profile_free(p);
		return result;
	default:
		return answer_text(sv, c, MHD_HTTP_NOT_FOUND, "unknown path: see /\n");
	}
}

static enum MHD_Result take_argument(void *request, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	request_argument(request, name, value);
	return MHD_YES;
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
	/* Refuse the pages of other sites, also of a name that was bound to this address. */
	*why = "the header Host is not a loopback address\n";
	if (sv->local && host && !request_host_is_local(host))
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
	enum MHD_Result result = v->profile ? answer_profile(sv, v, v->profile)
					    : answer_text(sv, v->connection,
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
	return status ? answer_text(sv, connection, status, why) : MHD_YES;
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

		poll(fds, ARRAY_SIZE(fds), -1);
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
