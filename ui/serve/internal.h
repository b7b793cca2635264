/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/serve/, and by tests; no other room includes it. */
#ifndef UI_SERVE_INTERNAL_H
#define UI_SERVE_INTERNAL_H

#include <netinet/in.h>
#include <sys/types.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/serve/serve.h"

struct sockaddr;
struct sockaddr_in6;
struct sockaddr_in;

/* Figures of a session for Prometheus: never one per function. Pure; any thread. */

/*
 * @open: in the format of OpenMetrics 1.0; else Prometheus 0.0.4. @requests: answered so far.
 * @sending: bytes of answers.
 * @pushed: figures of --push; NULL: no push.
 */
void metrics_write(struct out *o, const struct profile *p, bool open, uint64_t requests,
		   uint64_t sending, const struct pushed *pushed);

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

/* Set the kind by @path, and defaults. */
void request_init(struct request *r, const char *path);
/* Take an argument of the query; @value NULL: none. Unknown ones are ignored, as by Go. */
void request_argument(struct request *r, const char *name, const char *value);
/* Return whether the value of the header Host is this machine's loopback address. */
bool request_host_is_local(const char *host);

union request_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * Parse "6060", ":6060", "127.0.0.1:6060" or "[::1]:6060"; without an address it is loopback.
 * Return the size of the address, or -EINVAL with a message.
 */
int request_parse_address(union request_address *a, const char *text, struct err *e);
bool request_address_is_local(const union request_address *a);

#endif
