// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread of --push, by libcurl, loaded when needed, and its bounded queue with account and
 * pauses.
 *
 * Only http and https, no redirects, certificates are checked. The thread has the rights of the
 * invoking user.
 */
#include "ui/push/push.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/text/text.h"

#ifndef HAVE_CURL
/* Without the library only tests call the pure part. */
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

/*
 * Where profiles are pushed, with which labels, and the URL and body of a request to
 * Pyroscope (POST /ingest), Parca (POST /profiles/writeraw) or an OpenTelemetry collector
 * (POST /v1development/profiles). Pure; any thread.
 */

#define ENDPOINT_URL_MAX    512
#define ENDPOINT_LABELS_MAX 16
#define ENDPOINT_LABEL_MAX  128 /* of a name, and of a value */

enum endpoint_kind { ENDPOINT_PYROSCOPE, ENDPOINT_PARCA, ENDPOINT_OTLP };

struct endpoint_label {
	char name[ENDPOINT_LABEL_MAX], value[ENDPOINT_LABEL_MAX];
};

struct endpoint {
	enum endpoint_kind kind;
	char url[ENDPOINT_URL_MAX];
	bool encrypted, local; /* https; a loopback address */
	struct endpoint_label labels[ENDPOINT_LABELS_MAX];
	uint32_t nr_labels;
};

/*
 * The file of --push-headers: lines "Name: value", for credentials and tenants. Empty lines and
 * lines that begin with '#' are skipped.
 *
 * Any thread; no state.
 */

#define HEADERS_LINE_MAX 4096

/*
 * Requests that are not delivered yet: a bounded queue, the account, and when to try again. The
 * oldest request goes first; a full queue drops it. Pure; one thread at a time.
 */

#define OUTBOX_REQUESTS_MAX 256
#define OUTBOX_BYTES_MAX    ((size_t)64 << 20)
/* Between two attempts: doubled each time, up to the second. */
#define OUTBOX_PAUSE_MIN_MS 250u
#define OUTBOX_PAUSE_MAX_MS 60000u

struct outbox_request {
	struct outbox_request *next;
	char *url, *body; /* owned */
	size_t size;	  /* of the body */
	uint64_t samples;
};

struct outbox {
	struct outbox_request *first, *last;
	unsigned int nr;
	size_t bytes;
	unsigned int pause_ms; /* before the next attempt; 0: the last one succeeded */
	struct pushed pushed;
};

/* The result of an attempt. */
enum outbox_result { OUTBOX_DELIVERED, OUTBOX_RETRY, OUTBOX_REFUSED, OUTBOX_TOO_LARGE };

/*
 * The URL of --push, its labels and its file of headers, parsed strictly: libcurl gets plain URLs
 * only.
 */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	"0123456789"
#define HOST	LETTERS DIGITS "-."
#define HOST_V6 "0123456789abcdefABCDEF:."
#define PATH	LETTERS DIGITS "/-._~!$&'()*+,;=:@"
#define NAME	LETTERS DIGITS "_"

/* Have a meaning in a series of Pyroscope: app{name=value,...}. */
#define SERIES "{}=,\""

/* Ends of paths, and their service. */
static const struct {
	const char *end;
	enum endpoint_kind kind;
} kinds[] = {
	{ "/ingest", ENDPOINT_PYROSCOPE },
	{ "/profiles/writeraw", ENDPOINT_PARCA },
	{ "/v1development/profiles", ENDPOINT_OTLP },
};

static int refuse(const char *why, struct err *e)
{
	return err_set(e, -EINVAL,
		       "--push: invalid URL: %s\n"
		       "  as in http://HOST:4040/ingest (Pyroscope), "
		       "http://HOST:7070/profiles/writeraw (Parca)\n"
		       "  or http://HOST:4318/v1development/profiles (OpenTelemetry, experimental)",
		       why);
}

/* Skip the host at @at; NULL: invalid. */
static const char *skip_host(const char *at)
{
	size_t size;

	if (*at == '[') {
		size = strspn(at + 1, HOST_V6);
		return size && at[size + 1] == ']' ? at + size + 2 : NULL;
	}
	size = strspn(at, HOST);
	return size && *at != '-' && *at != '.' ? at + size : NULL;
}

static bool is_local(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i]);

		if (!strncmp(host, names[i], size) && (host[size] == ':' || host[size] == '/'))
			return true;
	}
	return false;
}

/* Find the kind by the end of the path. */
static bool find_kind(struct endpoint *to, const char *path)
{
	size_t size = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].end);

		if (size < n || strcmp(path + size - n, kinds[i].end))
			continue;
		to->kind = kinds[i].kind;
		return true;
	}
	return false;
}

/*
 * Parse "https://host[:port][/path]/ingest", ".../profiles/writeraw" or
 * ".../v1development/profiles": http and https only, no user, query or fragment. 0 or -EINVAL with
 * a message.
 */
static int endpoint_parse(struct endpoint *to, const char *url, struct err *e)
{
	const char *host, *at;
	uint64_t port;

	*to = (struct endpoint){ .nr_labels = 0 };
	if (strlen(url) >= sizeof(to->url))
		return refuse("too long", e);
	to->encrypted = !strncmp(url, "https://", 8);
	if (!to->encrypted && strncmp(url, "http://", 7))
		return refuse("must begin with http:// or https://", e);
	host = url + (to->encrypted ? 8 : 7);
	if (memchr(host, '@', strcspn(host, "/")))
		return refuse("must not have a user or password: use --push-headers", e);
	at = skip_host(host);
	if (!at)
		return refuse("invalid host", e);
	if (*at == ':') {
		size_t size = strcspn(at + 1, "/");

		if (number_u64(at + 1, size, 1, UINT16_MAX, &port))
			return refuse("invalid port", e);
		at += 1 + size;
	}
	if (*at && *at != '/')
		return refuse("invalid host", e);
	if (at[strspn(at, PATH)])
		return refuse("invalid character in the path", e);
	if (!find_kind(to, at))
		return refuse("the path names no known service", e);
	to->local = is_local(host);
	snprintf(to->url, sizeof(to->url), "%s", url);
	return 0;
}

static struct endpoint_label *find_label(struct endpoint *to, const char *name)
{
	for (uint32_t i = 0; i < to->nr_labels; i++)
		if (!strcmp(to->labels[i].name, name))
			return &to->labels[i];
	return NULL;
}

/* Return whether this is a byte of a value. Both services split at some. */
static bool is_value_byte(char c)
{
	return (unsigned char)c >= ' ' && c != 0x7f && (unsigned char)c < 0x80 &&
	       !strchr(SERIES, c);
}

static bool is_label(const struct endpoint *to, const char *name, size_t size, const char *value)
{
	/* Names of attributes have parts: "deployment.environment". */
	size_t good = strspn(name, to->kind == ENDPOINT_OTLP ? NAME "." : NAME);

	if (!size || size >= ENDPOINT_LABEL_MAX || good != size || strchr(DIGITS ".", *name) ||
	    !strncmp(name, "__", 2))
		return false;
	for (const char *at = value; *at; at++)
		if (!is_value_byte(*at))
			return false;
	return *value && strlen(value) < ENDPOINT_LABEL_MAX;
}

/* Return the name of a label in the words of the service. */
static const char *label_name(const struct endpoint *to, const char *name)
{
	if (to->kind == ENDPOINT_OTLP && !strcmp(name, "service_name"))
		return "service.name";
	return to->kind == ENDPOINT_OTLP && !strcmp(name, "host") ? "host.name" : name;
}

/*
 * Add "name=value"; a later one replaces an earlier one. 0 or -EINVAL with a message. For
 * OpenTelemetry service_name and host become service.name and host.name.
 */
static int endpoint_add_label(struct endpoint *to, const char *text, struct err *e)
{
	size_t size = strcspn(text, "=");
	const char *value = text[size] ? text + size + 1 : "";
	char given[ENDPOINT_LABEL_MAX];
	const char *name;
	struct endpoint_label *label;

	if (!is_label(to, text, size, value))
		return err_set(e, -EINVAL,
			       "--push-label %.80s: invalid label\n"
			       "  as in region=eu-1: ASCII, the value without { } = , and quotes",
			       text);
	snprintf(given, sizeof(given), "%.*s", (int)size, text);
	name = label_name(to, given);
	label = find_label(to, name);
	if (!label && to->nr_labels == ENDPOINT_LABELS_MAX)
		return err_set(e, -EINVAL, "--push-label: more than %d labels",
			       ENDPOINT_LABELS_MAX);
	if (!label)
		label = &to->labels[to->nr_labels++];
	snprintf(label->name, sizeof(label->name), "%s", name);
	snprintf(label->value, sizeof(label->value), "%s", value);
	return 0;
}

/* Add a label unless there is one of that name; invalid bytes of @value become '_'. */
static void endpoint_default_label(struct endpoint *to, const char *name, const char *value)
{
	char text[2 * ENDPOINT_LABEL_MAX], *at;

	if (!*value || find_label(to, label_name(to, name)) || to->nr_labels == ENDPOINT_LABELS_MAX)
		return;
	snprintf(text, sizeof(text), "%s=%.*s", name, ENDPOINT_LABEL_MAX - 1, value);
	for (at = text + strlen(name) + 1; *at; at++)
		if (!is_value_byte(*at))
			*at = '_';
	endpoint_add_label(to, text, NULL);
}

/* Append text as part of a query, percent-encoded. */
static void put_escaped(struct out *o, const char *text)
{
	for (; *text; text++)
		if (strchr(LETTERS DIGITS "-._~", *text))
			out_bytes(o, text, 1);
		else
			out_format(o, "%%%02X", (unsigned char)*text);
}

/* Append a series of Pyroscope: the name of the service, and the other labels. */
static void put_series(struct out *o, const struct endpoint *to)
{
	const char *before = "{";

	for (uint32_t i = 0; i < to->nr_labels; i++)
		if (!strcmp(to->labels[i].name, "service_name"))
			put_escaped(o, to->labels[i].value);
	for (uint32_t i = 0; i < to->nr_labels; i++) {
		if (!strcmp(to->labels[i].name, "service_name"))
			continue;
		put_escaped(o, before);
		put_escaped(o, to->labels[i].name);
		put_escaped(o, "=");
		put_escaped(o, to->labels[i].value);
		before = ",";
	}
	if (*before == ',')
		put_escaped(o, "}");
}

/* Append the URL of a request, with the times of the profile, in seconds since 1970. */
static void endpoint_put_url(struct out *o, const struct endpoint *to, uint64_t from_s,
			     uint64_t until_s)
{
	out_text(o, to->url);
	if (to->kind != ENDPOINT_PYROSCOPE)
		return;
	out_text(o, "?name=");
	put_series(o, to);
	out_format(o, "&from=%llu&until=%llu&format=pprof&spyName=proftop",
		   (unsigned long long)from_s, (unsigned long long)until_s);
}

static void put_base64(struct out *o, const struct out *from)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"
				     "9+/";

	for (size_t i = 0; i < from->size; i += 3) {
		size_t left = MIN(from->size - i, 3);
		uint8_t b[3] = { 0 };
		char text[4];

		memcpy(b, from->data + i, left);
		text[0] = digits[b[0] >> 2];
		text[1] = digits[(b[0] & 3) << 4 | b[1] >> 4];
		text[2] = left > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=';
		text[3] = left > 2 ? digits[b[2] & 63] : '=';
		out_bytes(o, text, sizeof(text));
	}
}

static void put_json_label(struct out *o, const char *name, const char *value, const char *end)
{
	char clean[2 * ENDPOINT_LABEL_MAX];

	out_text(o, "{\"name\":");
	json_put(o, text_format(clean, sizeof(clean), "%s", name));
	out_text(o, ",\"value\":");
	json_put(o, text_format(clean, sizeof(clean), "%s", value));
	out_format(o, "}%s", end);
}

/* Append a request to Parca. */
static void put_parca(struct out *o, const struct endpoint *to, const char *metric,
		      const struct out *pprof)
{
	out_text(o, "{\"series\":[{\"labels\":{\"labels\":[");
	put_json_label(o, "__name__", metric, to->nr_labels ? "," : "");
	for (uint32_t i = 0; i < to->nr_labels; i++)
		put_json_label(o, to->labels[i].name, to->labels[i].value,
			       i + 1 < to->nr_labels ? "," : "");
	out_text(o, "]},\"samples\":[{\"rawProfile\":\"");
	put_base64(o, pprof);
	out_text(o, "\"}]}],\"normalized\":false}");
}

/*
 * Append the body for a profile in the format of the service. @metric: the name of its values,
 * "process_cpu". Without memory o->failed is set.
 */
static void endpoint_put_body(struct out *o, const struct endpoint *to, const char *metric,
			      const struct out *profile)
{
	switch (to->kind) {
	case ENDPOINT_PYROSCOPE:
		out_bytes(o, profile->data, profile->size);
		break;
	case ENDPOINT_PARCA:
		put_parca(o, to, metric, profile);
		break;
	case ENDPOINT_OTLP:
		/* An export has the layout of a request. */
		o->failed |= gzip_write(o, profile) != 0;
		break;
	}
}

/* Return the format of the profile in the body. */
static enum export_format endpoint_format(const struct endpoint *to)
{
	return to->kind == ENDPOINT_OTLP ? EXPORT_OTLP : EXPORT_PPROF;
}

/* Return the media type of the body; *@encoding: its compression, or NULL. */
static const char *endpoint_type(const struct endpoint *to, const char **encoding)
{
	*encoding = to->kind == ENDPOINT_OTLP ? "gzip" : NULL;
	if (to->kind == ENDPOINT_OTLP)
		return "application/x-protobuf";
	return to->kind == ENDPOINT_PARCA ? "application/json" : "application/octet-stream";
}

/*
 * Read headers from a file: the command line of a process is readable by all users.
 */

#define HEADERS_MAX 16
#define NAME_BYTES  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

/* Return whether @line is a header that a user may add. */
static bool headers_valid(const char *line)
{
	/* Made by libcurl, or with an effect on the connection. */
	static const char *const ours[] = { "content-length", "content-type", "transfer-encoding",
					    "expect",	      "connection",   "upgrade" };
	size_t size = strspn(line, NAME_BYTES);

	if (!size || line[size] != ':')
		return false;
	for (const char *at = line + size; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
			return false;
	/* "Name:" alone would remove a header of libcurl. */
	if (!line[size + 1 + strspn(line + size + 1, " \t")])
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == size && !strncasecmp(line, ours[i], size))
			return false;
	return true;
}

/* Open the file with the rights of the invoking user. NULL and errno. */
static FILE *open_file(const char *path)
{
	struct invoker_saved saved;
	struct stat st;
	int fd, code = invoker_begin(&saved, NULL);

	if (code) {
		errno = -code;
		return NULL;
	}
	/* Not blocking: it may be a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	invoker_end(&saved);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	return fd >= 0 ? fdopen(fd, "r") : NULL;
}

static int headers_refuse(struct err *e, const char *path, unsigned int number, const char *why)
{
	return err_set(e, -EINVAL,
		       "--push-headers: %s:%u: %s\n"
		       "  one header per line, as in X-Scope-OrgID: team",
		       path, number, why);
}

/*
 * Read @path with the rights of the invoking user and call @add for each header, until it fails.
 * 0 or -errno with a message, which never has a header in it: it may be a secret.
 */
static int headers_read(const char *path, int (*add)(void *ctx, const char *line), void *ctx,
			struct err *e)
{
	FILE *f = open_file(path);
	unsigned int nr = 0, number = 0;
	char line[HEADERS_LINE_MAX];
	int code = 0;

	if (!f)
		return err_set(e, -errno, "--push-headers: cannot read %s: %s", path,
			       errno == EINVAL ? "not a regular file" : strerror(errno));
	while (!code && fgets(line, sizeof(line), f)) {
		size_t size = strcspn(line, "\n");
		bool whole = line[size] == '\n' || feof(f);

		number++;
		line[size] = '\0';
		if (size && line[size - 1] == '\r')
			line[size - 1] = '\0';
		if (whole && (!line[0] || line[0] == '#'))
			continue;
		if (!whole || !headers_valid(line))
			code = headers_refuse(e, path, number, "invalid header");
		else if (++nr > HEADERS_MAX)
			code = headers_refuse(e, path, number, "more than 16 headers");
		else if (add(ctx, line))
			code = err_set(e, -ENOMEM, "--push: out of memory");
	}
	if (!code && ferror(f))
		code = err_set(e, -EIO, "--push-headers: cannot read %s", path);
	fclose(f);
	explicit_bzero(line, sizeof(line));
	return code;
}

/*
 * A bounded queue of requests, with an account that is complete.
 */

static void move(struct pushed_sum *from, struct pushed_sum *to, const struct outbox_request *r)
{
	if (from) {
		assert(from->profiles && from->samples >= r->samples);
		from->profiles--;
		from->samples -= r->samples;
	}
	to->profiles++;
	to->samples += r->samples;
}

static void outbox_request_free(struct outbox_request *r)
{
	if (!r)
		return;
	free(r->url);
	free(r->body);
	free(r);
}

/* Return the meaning of the status of an answer; 0: there was no answer. */
static enum outbox_result outbox_judge(long status)
{
	if (status >= 200 && status < 300)
		return OUTBOX_DELIVERED;
	if (status == 413)
		return OUTBOX_TOO_LARGE;
	/* The server did not answer, is busy or has failed: the next attempt may succeed. */
	if (status < 200 || status == 408 || status == 429 || status >= 500)
		return OUTBOX_RETRY;
	return OUTBOX_REFUSED;
}

/* Take the oldest request for an attempt; NULL: none. It still counts as queued. */
static struct outbox_request *outbox_take(struct outbox *o)
{
	struct outbox_request *r = o->first;

	if (!r)
		return NULL;
	o->first = r->next;
	if (!o->first)
		o->last = NULL;
	r->next = NULL;
	o->nr--;
	o->bytes -= r->size;
	return r;
}

static void drop(struct outbox *o, struct outbox_request *r, enum pushed_drop why)
{
	assert((unsigned int)why < PUSHED_DROP_NR);
	move(&o->pushed.queued, &o->pushed.dropped[why], r);
	outbox_request_free(r);
}

static bool is_full(const struct outbox *o, const struct outbox_request *add)
{
	return o->nr >= OUTBOX_REQUESTS_MAX || o->bytes + add->size > OUTBOX_BYTES_MAX;
}

/* Queue @r, which is taken over; makes space for it. */
static void outbox_add(struct outbox *o, struct outbox_request *r)
{
	move(NULL, &o->pushed.taken, r);
	move(NULL, &o->pushed.queued, r);
	if (r->size > OUTBOX_BYTES_MAX) {
		drop(o, r, PUSHED_TOO_LARGE);
		return;
	}
	while (is_full(o, r))
		drop(o, outbox_take(o), PUSHED_FULL);
	r->next = NULL;
	if (o->last)
		o->last->next = r;
	else
		o->first = r;
	o->last = r;
	o->nr++;
	o->bytes += r->size;
}

static void set_pause(struct outbox *o, uint64_t retry_after_s, uint64_t random)
{
	uint64_t ms = o->pause_ms ? 2ull * o->pause_ms : OUTBOX_PAUSE_MIN_MS;

	/* Up to a quarter more, or all senders of a fleet would return together. */
	ms += ms * (random % 256) / 1024;
	ms = MAX(ms, MIN(retry_after_s, OUTBOX_PAUSE_MAX_MS / 1000) * 1000);
	o->pause_ms = (unsigned int)MIN(ms, OUTBOX_PAUSE_MAX_MS);
}

/* Queue @r again as the oldest, or drop it if newer ones filled the queue. */
static void put_back(struct outbox *o, struct outbox_request *r)
{
	o->pushed.retries++;
	if (is_full(o, r)) {
		drop(o, r, PUSHED_FULL);
		return;
	}
	r->next = o->first;
	o->first = r;
	if (!o->last)
		o->last = r;
	o->nr++;
	o->bytes += r->size;
}

/*
 * End an attempt: @r is freed, or queued again as the oldest with a pause of at least
 * @retry_after_s, 0: not requested; @random spreads the attempts of many senders.
 */
static void outbox_settle(struct outbox *o, struct outbox_request *r, enum outbox_result result,
			  uint64_t retry_after_s, uint64_t random)
{
	if (result == OUTBOX_RETRY) {
		set_pause(o, retry_after_s, random);
		put_back(o, r);
		return;
	}
	o->pause_ms = 0;
	if (result == OUTBOX_DELIVERED) {
		move(&o->pushed.queued, &o->pushed.delivered, r);
		outbox_request_free(r);
	} else {
		drop(o, r, result == OUTBOX_TOO_LARGE ? PUSHED_TOO_LARGE : PUSHED_REFUSED);
	}
}

/* Drop all requests: the session has ended. Also the one of an attempt whose thread is left. */
static void outbox_end(struct outbox *o)
{
	struct outbox_request *r;

	while ((r = outbox_take(o)))
		drop(o, r, PUSHED_ENDED);
	o->pushed.dropped[PUSHED_ENDED].profiles += o->pushed.queued.profiles;
	o->pushed.dropped[PUSHED_ENDED].samples += o->pushed.queued.samples;
	o->pushed.queued = (struct pushed_sum){ 0 };
}

/* ---- the thread of requests ---- */

#ifndef HAVE_CURL

int push_new(struct push **out, const struct push_config *config, char *remark, size_t remark_size,
	     struct err *e)
{
	return err_set(e, -ENOTSUP,
		       "--push: this proftop was built without libcurl\n"
		       "  install libcurl4-openssl-dev and build again");
}

void push_tick(struct push *push, struct profile *p, struct pushed *figures)
{
}

void push_free(struct push *push, struct pushed *last)
{
}

#else

#include <curl/curl.h>

#define CONNECT_MS 5000
#define LAST_NS	   (5 * 1000000000ull) /* for the queue at the end, at most */
#define ANSWER_MAX 200
#define MESSAGE_ID 1000 /* above the sampler's */

struct functions {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *init;
	__typeof__(curl_easy_setopt) *setopt;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_getinfo) *getinfo;
	__typeof__(curl_easy_strerror) *strerror;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_slist_append) *append;
	__typeof__(curl_slist_free_all) *free_all;
};

struct push {
	struct functions curl;
	struct endpoint endpoint;
	CURL *handle; /* of the thread, as the next two */
	struct curl_slist *headers;
	char answer[ANSWER_MAX];
	size_t answer_size;
	char host[65];
	uint64_t timeout_ns;
	pthread_t thread;

	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct outbox outbox;
	bool stop;
	_Atomic uint64_t give_up_ns; /* end of all attempts; UINT64_MAX: the session goes on */

	struct profile_message message; /* of the main thread, as the next */
	uint64_t noted_drops;
};

static bool find_functions(struct functions *curl)
{
	/* Of the same interface: with OpenSSL, with GnuTLS. */
	static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	static const struct library_function list[] = {
		{ "curl_global_init", offsetof(struct functions, global_init) },
		{ "curl_easy_init", offsetof(struct functions, init) },
		{ "curl_easy_setopt", offsetof(struct functions, setopt) },
		{ "curl_easy_perform", offsetof(struct functions, perform) },
		{ "curl_easy_getinfo", offsetof(struct functions, getinfo) },
		{ "curl_easy_strerror", offsetof(struct functions, strerror) },
		{ "curl_easy_cleanup", offsetof(struct functions, cleanup) },
		{ "curl_slist_append", offsetof(struct functions, append) },
		{ "curl_slist_free_all", offsetof(struct functions, free_all) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (library_find(libraries[i], curl, list, ARRAY_SIZE(list)))
			return true;
	return false;
}

/* ---- the thread ---- */

/* Keep the start of an answer, for the message. */
static size_t take_answer(char *bytes, size_t one, size_t size, void *ctx)
{
	struct push *push = ctx;
	size_t n = MIN(size, sizeof(push->answer) - 1 - push->answer_size);

	memcpy(push->answer + push->answer_size, bytes, n);
	push->answer_size += n;
	return size;
}

static bool is_over(const struct push *push)
{
	/* Relaxed: the time is all there is to see. */
	return time_now_ns() > atomic_load_explicit(&push->give_up_ns, memory_order_relaxed);
}

/* Called about once a second during an attempt. Return nonzero to end it. */
static int check_end(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	return is_over(ctx);
}

/* Describe a failed attempt: the status and the first line of the answer, or why there is none. */
static void detect(struct push *push, CURLcode code, long status)
{
	/* The end of the session: the earlier failure is the reason. */
	if (code == CURLE_ABORTED_BY_CALLBACK && push->outbox.pushed.error[0])
		return;
	push->answer[strcspn(push->answer, "\r\n")] = '\0';
	if (code)
		text_format(push->outbox.pushed.error, sizeof(push->outbox.pushed.error), "%s",
			    push->curl.strerror(code));
	else
		text_format(push->outbox.pushed.error, sizeof(push->outbox.pushed.error),
			    "status %ld%s%s%s", status,
			    status >= 300 && status < 400 ? ", redirects are not followed" : "",
			    push->answer[0] ? ": " : "", push->answer);
}

/* Send one request. Return its status, 0: no answer. */
static long attempt(struct push *push, const struct outbox_request *r, CURLcode *code,
		    uint64_t *retry_after_s)
{
	const struct functions *curl = &push->curl;
	curl_off_t after = 0;
	long status = 0;

	push->answer_size = 0;
	memset(push->answer, 0, sizeof(push->answer));
	curl->setopt(push->handle, CURLOPT_URL, r->url);
	curl->setopt(push->handle, CURLOPT_POSTFIELDS, r->body);
	curl->setopt(push->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
	*code = curl->perform(push->handle);
	curl->getinfo(push->handle, CURLINFO_RESPONSE_CODE, &status);
	/* The server has decided; the rest of its answer may never come. */
	if (*code && status < 200)
		return 0;
	*code = CURLE_OK;
	curl->getinfo(push->handle, CURLINFO_RETRY_AFTER, &after);
	*retry_after_s = after > 0 ? (uint64_t)after : 0;
	return status;
}

/* Wait until a request is due. Return it, or NULL: the end. */
static struct outbox_request *wait_for_request(struct push *push)
{
	uint64_t due_ns = time_now_ns() + push->outbox.pause_ms * 1000000ull;
	bool stopped = push->stop;

	for (;;) {
		uint64_t now = time_now_ns();
		struct timespec until;

		/* The end of the session ends a pause, and then waits no longer than it must. */
		if (push->stop && (!push->outbox.first || is_over(push)))
			return NULL;
		if (push->outbox.first && (now >= due_ns || push->stop != stopped))
			return outbox_take(&push->outbox);
		if (!push->outbox.first) {
			pthread_cond_wait(&push->changed, &push->lock);
			continue;
		}
		due_ns = MIN(due_ns, atomic_load_explicit(&push->give_up_ns, memory_order_relaxed));
		until = time_deadline(due_ns);
		pthread_cond_timedwait(&push->changed, &push->lock, &until);
	}
}

static void *push_main(void *arg)
{
	struct push *push = arg;
	struct outbox_request *r;

	prctl(PR_SET_NAME, "push");
	invoker_stay();
	pthread_mutex_lock(&push->lock);
	while ((r = wait_for_request(push))) {
		uint64_t retry_after_s = 0;
		enum outbox_result result;
		CURLcode code;
		long status;

		pthread_mutex_unlock(&push->lock);
		status = attempt(push, r, &code, &retry_after_s);
		pthread_mutex_lock(&push->lock);
		result = outbox_judge(status);
		if (result == OUTBOX_DELIVERED)
			push->outbox.pushed.error[0] = '\0';
		else
			detect(push, code, status);
		outbox_settle(&push->outbox, r, result, retry_after_s, hash_u64(time_now_ns()));
	}
	pthread_mutex_unlock(&push->lock);
	return NULL;
}

/* ---- set-up and end ---- */

/* Set the options of all requests. Return false if libcurl lacks something. */
static bool set_up(struct push *push, const struct push_config *config)
{
	const struct functions *curl = &push->curl;
	long ms = (long)(config->timeout_ns / 1000000);
	CURL *h = push->handle;
	CURLcode code = 0;

#if LIBCURL_VERSION_NUM >= 0x075500
	code |= curl->setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	code |= curl->setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	code |= curl->setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl->setopt(h, CURLOPT_NOSIGNAL, 1L);
	code |= curl->setopt(h, CURLOPT_POST, 1L);
	code |= curl->setopt(h, CURLOPT_USERAGENT, "proftop/" PROFTOP_VERSION);
	code |= curl->setopt(h, CURLOPT_HTTPHEADER, push->headers);
	code |= curl->setopt(h, CURLOPT_CONNECTTIMEOUT_MS, MIN(ms, CONNECT_MS));
	code |= curl->setopt(h, CURLOPT_TIMEOUT_MS, ms);
	code |= curl->setopt(h, CURLOPT_WRITEFUNCTION, take_answer);
	code |= curl->setopt(h, CURLOPT_WRITEDATA, push);
	code |= curl->setopt(h, CURLOPT_XFERINFOFUNCTION, check_end);
	code |= curl->setopt(h, CURLOPT_XFERINFODATA, push);
	code |= curl->setopt(h, CURLOPT_NOPROGRESS, 0L);
	/* Else profiles of a server of this machine, and its token, would go to http_proxy. */
	if (push->endpoint.local)
		code |= curl->setopt(h, CURLOPT_PROXY, "");
	if (config->authority)
		code |= curl->setopt(h, CURLOPT_CAINFO, config->authority);
	return code == CURLE_OK;
}

static int add_header(void *ctx, const char *line)
{
	struct push *push = ctx;
	struct curl_slist *list = push->curl.append(push->headers, line);

	if (list)
		push->headers = list;
	return list ? 0 : -ENOMEM;
}

/* Add the headers: the type, the user's; without the wait for "100 Continue". */
static int make_headers(struct push *push, const struct push_config *config, struct err *e)
{
	char type[64], encoded[64] = "Content-Encoding:"; /* none */
	const char *encoding;

	snprintf(type, sizeof(type), "Content-Type: %s", endpoint_type(&push->endpoint, &encoding));
	if (encoding)
		snprintf(encoded, sizeof(encoded), "Content-Encoding: %s", encoding);
	/* The version of the layout; without it, 1 is assumed (opentelemetry-proto#857). */
	if (push->endpoint.kind == ENDPOINT_OTLP && add_header(push, "OTLP-Profiles-Development-"
								     "Version: 1"))
		return err_set(e, -ENOMEM, "--push: out of memory");
	if (add_header(push, type) || add_header(push, encoded) || add_header(push, "Expect:"))
		return err_set(e, -ENOMEM, "--push: out of memory");
	return config->headers ? headers_read(config->headers, add_header, push, e) : 0;
}

static int add_labels(struct push *push, const struct push_config *config, struct err *e)
{
	int code = 0;

	for (uint32_t i = 0; i < config->nr_labels && !code; i++)
		code = endpoint_add_label(&push->endpoint, config->labels[i], e);
	endpoint_default_label(&push->endpoint, "service_name", "proftop");
	endpoint_default_label(&push->endpoint, "host", config->host);
	return code;
}

static void release(struct push *push)
{
	if (push->handle)
		push->curl.cleanup(push->handle);
	if (push->headers)
		push->curl.free_all(push->headers);
	outbox_end(&push->outbox);
	pthread_cond_destroy(&push->changed);
	pthread_mutex_destroy(&push->lock);
	free(push);
}

/* Start the thread, with the rights of the invoking user. */
static int start_thread(struct push *push, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = thread_start(&push->thread, 0, push_main, push);
	invoker_end(&saved);
	return code ? err_set(e, code, "--push: cannot start a thread: %s", strerror(-code)) : 0;
}

static int start(struct push *push, const struct push_config *config, struct err *e)
{
	int code = add_labels(push, config, e);

	if (code)
		return code;
	/* libcurl would make this file with the rights of proftop. */
	unsetenv("SSLKEYLOGFILE");
	if (!find_functions(&push->curl) || push->curl.global_init(CURL_GLOBAL_DEFAULT))
		return err_set(e, -ENOTSUP, "--push needs libcurl\n  install the package libcurl4");
	push->handle = push->curl.init();
	if (!push->handle)
		return err_set(e, -ENOMEM, "--push: out of memory");
	code = make_headers(push, config, e);
	if (code)
		return code;
	if (!set_up(push, config))
		return err_set(e, -ENOTSUP, "--push: this libcurl is too old");
	return start_thread(push, e);
}

int push_new(struct push **out, const struct push_config *config, char *remark, size_t remark_size,
	     struct err *e)
{
	struct push *push = calloc(1, sizeof(*push));
	pthread_condattr_t monotonic;
	int code;

	remark[0] = '\0';
	if (!push)
		return err_set(e, -ENOMEM, "--push: out of memory");
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&push->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&push->lock, NULL);
	push->give_up_ns = UINT64_MAX;
	push->timeout_ns = config->timeout_ns;
	snprintf(push->host, sizeof(push->host), "%s", config->host);
	code = endpoint_parse(&push->endpoint, config->url, e);
	if (!code)
		code = start(push, config, e);
	if (code) {
		release(push);
		return code;
	}
	if (!push->endpoint.encrypted && !push->endpoint.local)
		snprintf(remark, remark_size, "--push: profiles are sent without encryption");
	*out = push;
	return 0;
}

/* Copy the figures. */
static void push_figures(struct push *push, struct pushed *out)
{
	pthread_mutex_lock(&push->lock);
	*out = push->outbox.pushed;
	pthread_mutex_unlock(&push->lock);
}

void push_free(struct push *push, struct pushed *last)
{
	uint64_t give_up_ns;

	if (!push)
		return;
	give_up_ns = time_now_ns() + MIN(push->timeout_ns, LAST_NS);
	pthread_mutex_lock(&push->lock);
	push->stop = true;
	atomic_store_explicit(&push->give_up_ns, give_up_ns, memory_order_relaxed);
	pthread_cond_signal(&push->changed);
	pthread_mutex_unlock(&push->lock);
	/* An attempt notices it within a second; a look-up of a name may take longer. */
	if (!thread_join_until(push->thread, give_up_ns + LAST_NS / 2)) {
		pthread_mutex_lock(&push->lock);
		outbox_end(&push->outbox);
		*last = push->outbox.pushed;
		pthread_mutex_unlock(&push->lock);
		return;
	}
	outbox_end(&push->outbox);
	*last = push->outbox.pushed;
	release(push);
}

/* ---- each tick ---- */

/* Name the metric of an event in the words of such services. */
static void name_metric(char *name, size_t size, const struct event *event)
{
	snprintf(name, size, "%s",
		 event->wait	? "off_cpu"
		 : event->clock ? "process_cpu"
				: event->name);
	for (char *at = name; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9' && at > name)))
			*at = '_';
}

/* Make the request for one event. NULL: no memory, or too large for an export. */
static struct outbox_request *make_request(const struct push *push, const struct profile *p,
					   uint32_t event)
{
	struct outbox_request *r = calloc(1, sizeof(*r));
	struct out profile = { .failed = false }, url = profile, body = profile;
	const struct endpoint *to = &push->endpoint;
	struct snapshot_label labels[ENDPOINT_LABELS_MAX];
	struct snapshot_scope scope;
	char metric[EVENT_NAME_MAX];

	assert(event < p->nr_events);
	export_scope_all(&scope, event);
	memcpy(scope.host, push->host, sizeof(scope.host));
	for (uint32_t i = 0; i < to->nr_labels; i++)
		labels[i] = (struct snapshot_label){ to->labels[i].name, to->labels[i].value };
	scope.labels = labels;
	scope.nr_labels = to->nr_labels;
	name_metric(metric, sizeof(metric), &p->events[event].event);
	if (r && !export_write(&profile, p, &scope, endpoint_format(to), NULL)) {
		endpoint_put_url(&url, to,
				 (p->time_ns - MIN(p->time_ns, p->window_ns)) / 1000000000,
				 p->time_ns / 1000000000 + 1);
		out_bytes(&url, "", 1);
		endpoint_put_body(&body, to, metric, &profile);
	}
	out_fini(&profile);
	if (!r || url.failed || body.failed || !body.size) {
		out_fini(&url);
		out_fini(&body);
		free(r);
		return NULL;
	}
	*r = (struct outbox_request){ NULL, url.data, body.data, body.size, 0 };
	return r;
}

/* Return the samples of an event. */
static uint64_t samples_of(const struct profile *p, uint32_t event)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (p->counts[i].event == event)
			sum += p->counts[i].count;
	return (uint64_t)llround(sum);
}

/* Add a profile that could not be made to the account. */
static void count_unmade(struct push *push, uint64_t samples)
{
	struct pushed *all = &push->outbox.pushed;

	all->taken.profiles++;
	all->taken.samples += samples;
	all->dropped[PUSHED_TOO_LARGE].profiles++;
	all->dropped[PUSHED_TOO_LARGE].samples += samples;
}

static void queue_event(struct push *push, const struct profile *p, uint32_t event)
{
	uint64_t samples = samples_of(p, event);
	struct outbox_request *r = samples ? make_request(push, p, event) : NULL;

	if (!samples)
		return;
	pthread_mutex_lock(&push->lock);
	if (r) {
		r->samples = samples;
		outbox_add(&push->outbox, r);
	} else {
		count_unmade(push, samples);
	}
	pthread_cond_signal(&push->changed);
	pthread_mutex_unlock(&push->lock);
}

/* Add the message to @p if there was ever a reason for it. */
static void add_message(struct push *push, struct profile *p, const struct pushed *now)
{
	struct profile_message *n = &push->message, *all;
	uint64_t drops = pushed_dropped(now).profiles;

	if (now->error[0] || drops != push->noted_drops) {
		if (!n->id)
			*n = (struct profile_message){ .id = MESSAGE_ID,
						       .key = "push",
						       .severity = MESSAGE_WARN,
						       .first_ns = p->running_ns };
		n->last_ns = p->running_ns;
		n->count = MAX(drops, 1);
		snprintf(n->brief, sizeof(n->brief), "%llu profiles not delivered",
			 (unsigned long long)drops);
		snprintf(n->detail, sizeof(n->detail),
			 "push: %llu profiles dropped, %llu queued: %s", (unsigned long long)drops,
			 (unsigned long long)now->queued.profiles,
			 now->error[0] ? now->error : "delivered again");
		snprintf(n->fix, sizeof(n->fix), "check the server and the URL of --push");
	}
	n->active = now->error[0] || drops != push->noted_drops;
	push->noted_drops = drops;
	if (!n->id)
		return;
	all = reallocarray(p->messages, p->nr_messages + 1ull, sizeof(*all));
	if (!all)
		return;
	p->messages = all;
	all[p->nr_messages++] = *n;
}

void push_tick(struct push *push, struct profile *p, struct pushed *figures)
{
	if (!push)
		return;
	push_figures(push, figures);
	add_message(push, p, figures);
	for (uint32_t i = 0; i < p->nr_events; i++)
		queue_event(push, p, i);
	push_figures(push, figures);
}

#endif
