/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/push/, and by tests; no other room includes it. */
#ifndef UI_PUSH_INTERNAL_H
#define UI_PUSH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols/base/base.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/push/push.h"

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
 * Parse "https://host[:port][/path]/ingest", ".../profiles/writeraw" or
 * ".../v1development/profiles": http and https only, no user, query or fragment. 0 or -EINVAL with
 * a message.
 */
int endpoint_parse(struct endpoint *to, const char *url, struct err *e);
/*
 * Add "name=value"; a later one replaces an earlier one. 0 or -EINVAL with a message. For
 * OpenTelemetry service_name and host become service.name and host.name.
 */
int endpoint_add_label(struct endpoint *to, const char *text, struct err *e);
/* Add a label unless there is one of that name; invalid bytes of @value become '_'. */
void endpoint_default_label(struct endpoint *to, const char *name, const char *value);
/* Append the URL of a request, with the times of the profile, in seconds since 1970. */
void endpoint_put_url(struct out *o, const struct endpoint *to, uint64_t from_s, uint64_t until_s);
/*
 * Append the body for a profile in the format of the service. @metric: the name of its values,
 * "process_cpu". Without memory o->failed is set.
 */
void endpoint_put_body(struct out *o, const struct endpoint *to, const char *metric,
		       const struct out *profile);
/* Return the format of the profile in the body. */
enum export_format endpoint_format(const struct endpoint *to);
/* Return the media type of the body; *@encoding: its compression, or NULL. */
const char *endpoint_type(const struct endpoint *to, const char **encoding);

/*
 * The file of --push-headers: lines "Name: value", for credentials and tenants. Empty lines and
 * lines that begin with '#' are skipped.
 *
 * Any thread; no state.
 */

#define HEADERS_LINE_MAX 4096

/* Return whether @line is a header that a user may add. */
bool headers_valid(const char *line);
/*
 * Read @path with the rights of the invoking user and call @add for each header, until it fails.
 * 0 or -errno with a message, which never has a header in it: it may be a secret.
 */
int headers_read(const char *path, int (*add)(void *ctx, const char *line), void *ctx,
		 struct err *e);

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

/* Return the meaning of the status of an answer; 0: there was no answer. */
enum outbox_result outbox_judge(long status);
/* Queue @r, which is taken over; makes space for it. */
void outbox_add(struct outbox *o, struct outbox_request *r);
/* Take the oldest request for an attempt; NULL: none. It still counts as queued. */
struct outbox_request *outbox_take(struct outbox *o);
/*
 * End an attempt: @r is freed, or queued again as the oldest with a pause of at least
 * @retry_after_s, 0: not requested; @random spreads the attempts of many senders.
 */
void outbox_settle(struct outbox *o, struct outbox_request *r, enum outbox_result result,
		   uint64_t retry_after_s, uint64_t random);
/* Drop all requests: the session has ended. Also the one of an attempt whose thread is left. */
void outbox_end(struct outbox *o);
void outbox_request_free(struct outbox_request *r);

#endif
