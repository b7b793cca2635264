/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests over HTTP, and the address to listen on. All text is hostile. Pure; any thread.
 */
#ifndef UI_SERVE_REQUEST_H
#define UI_SERVE_REQUEST_H

#include <netinet/in.h>
#include <sys/types.h>

#include "symbols/base/base.h"

#define REQUEST_SECONDS	    30 /* as Go's net/http/pprof */
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
