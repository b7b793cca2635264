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

bool request_host_is_local(const char *host)
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
	return a->any.sa_family == AF_INET6 ? is_local_v6(&a->v6.sin6_addr)
					    : is_local_v4(a->v4.sin_addr.s_addr);
}
