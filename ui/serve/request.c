// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse requests and addresses, strictly.
 */
#include "ui/serve/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ui/text/number.h"

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

void request_init(struct request *r, const char *path)
{
	*r = (struct request){ .seconds = REQUEST_SECONDS };
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!strcmp(path, paths[i].path))
			r->kind = paths[i].kind;
}

void request_argument(struct request *r, const char *name, const char *value)
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

bool request_host_is_local(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	uint64_t port;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i]);

		if (strncasecmp(host, names[i], size))
			continue;
		if (!host[size] ||
		    (host[size] == ':' &&
		     !number_u64(host + size + 1, strlen(host + size + 1), 1, UINT16_MAX, &port)))
			return true;
	}
	return false;
}

static int refuse(const char *text, struct err *e)
{
	return err_set(e, -EINVAL,
		       "--listen %.80s: invalid address\n"
		       "  give a port, or address and port, as in 127.0.0.1:6060 or [::1]:6060",
		       text);
}

int request_parse_address(union request_address *a, const char *text, struct err *e)
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

bool request_address_is_local(const union request_address *a)
{
	if (a->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
	return ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
