// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The URL of --push, its labels and its file of headers, parsed strictly: libcurl gets plain URLs
 * only.
 */
#include "ui/push/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/export/export.h"
#include "ui/text/text.h"

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

int endpoint_parse(struct endpoint *to, const char *url, struct err *e)
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

int endpoint_add_label(struct endpoint *to, const char *text, struct err *e)
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

void endpoint_default_label(struct endpoint *to, const char *name, const char *value)
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

void endpoint_put_url(struct out *o, const struct endpoint *to, uint64_t from_s, uint64_t until_s)
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

void endpoint_put_body(struct out *o, const struct endpoint *to, const char *metric,
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

enum export_format endpoint_format(const struct endpoint *to)
{
	return to->kind == ENDPOINT_OTLP ? EXPORT_OTLP : EXPORT_PPROF;
}

const char *endpoint_type(const struct endpoint *to, const char **encoding)
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

bool headers_valid(const char *line)
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

int headers_read(const char *path, int (*add)(void *ctx, const char *line), void *ctx,
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
