// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers of the HTTP server. Runs on: the thread of libmicrohttpd.
 *
 * A client may read as slowly as it likes: the bytes of all answers have a limit.
 */
#ifdef HAVE_MICROHTTPD

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "ui/export/export.h"
#include "ui/serve/metrics.h"
#include "ui/serve/answers.h"

/* Bytes of answers that are being sent at a time. */
#define SENDING_MAX ((size_t)64 << 20)
/* Bytes of one: names may be long, and of anyone. */
#define ANSWER_MAX ((size_t)128 << 20)
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

enum MHD_Result answers_text(struct serve *sv, struct MHD_Connection *c, unsigned int status,
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

struct profile *answers_latest(struct serve *sv)
{
	struct profile *p;

	pthread_mutex_lock(&sv->lock);
	p = sv->latest ? profile_keep(sv->latest) : NULL;
	pthread_mutex_unlock(&sv->lock);
	return p;
}

enum MHD_Result answers_metrics(struct serve *sv, struct visit *v)
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

enum MHD_Result answers_profile(struct serve *sv, struct visit *v, const struct profile *p)
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

enum MHD_Result answers_flame(struct serve *sv, struct visit *v)
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

#endif
