/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where profiles are pushed, with which labels, and the URL and body of a request to
 * Pyroscope (POST /ingest), Parca (POST /profiles/writeraw) or an OpenTelemetry collector
 * (POST /v1development/profiles). Pure; any thread.
 */
#ifndef UI_PUSH_ENDPOINT_H
#define UI_PUSH_ENDPOINT_H

#include "symbols/base/base.h"
#include "ui/export/export.h"

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

#endif
