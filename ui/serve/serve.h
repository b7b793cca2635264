/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles over HTTP: --listen.
 *
 * The caller owes: all calls from the main thread; NULL is valid where there is no server.
 *
 * The room does: answers requests of profiles and figures within limits, one collection at a time;
 * requests change nothing else.
 *
 * Not for: access control beyond addresses: see the man page.
 *
 * All calls are from the main thread; NULL is valid where "no server" is. Two threads answer: one
 * of the library, and one that waits for collected profiles.
 */
#ifndef UI_SERVE_SERVE_H
#define UI_SERVE_SERVE_H

#include "symbols/base/base.h"
#include "ui/cli/cli.h"

struct sampler;
struct serve;

/*
 * Bind @address, "127.0.0.1:6060". 0 or -errno with a message. @time: of the samples in pages and
 * profiles. *remark: a warning, or "".
 */
int serve_new(struct serve **out, const char *address, enum ui_config_time time, char *remark,
	      size_t remark_size, struct err *e);
/* Answer requests, from @s; @host: for exports, clean. 0 or -errno with a message. */
int serve_start(struct serve *sv, struct sampler *s, bool live, const char *host, struct err *e);
/*
 * Show this profile from now on; it gets an owner more. @pushed: figures of --push, copied; NULL:
 * no push.
 */
void serve_publish(struct serve *sv, struct profile *p, const struct pushed *pushed);
/* End all connections; before sampler_free(). */
void serve_free(struct serve *sv);

#endif
