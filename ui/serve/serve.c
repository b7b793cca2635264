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

#include "ui/serve/answers.h"

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
static bool is_foreign(const struct serve *sv, const struct visit *v)
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
	if (is_foreign(sv, v))
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
