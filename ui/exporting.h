/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Uses of each tick without a screen: --export, --listen, --push. Runs on: the main thread.
 */
#ifndef UI_EXPORTING_H
#define UI_EXPORTING_H

#include "ui/cli/batch.h"
#include "ui/cli/options.h"
#include "ui/export/export.h"
#include "ui/push/push.h"
#include "ui/serve/serve.h"

struct exporting {
	struct serve *serve; /* --listen; NULL: none */
	struct push *push;   /* --push; NULL: none */
	struct pushed pushed;
	enum export_format format;
	enum ui_config_time time;
	const char *path; /* --export; NULL: none */
	char host[65];	  /* "": a recording, maybe of another machine */
};

/* Get the name of this machine, clean. */
const char *exporting_host(char host[static 65]);
/* Bind the address of --listen; a warning is added to the remark. 0 or -errno with a message. */
int exporting_listen(struct serve **sv, struct options *o, struct err *e);
/* Find the format of --export. Return EXIT_DONE or EXIT_USAGE with a message. */
int exporting_init(struct exporting *x, const struct options *o, struct err *e);
/*
 * Bind the address of --listen and start the thread of --push. Warnings are added to the remark.
 * 0 or -errno with a message.
 */
int exporting_open(struct exporting *x, struct options *o, struct err *e);
/*
 * Use a tick: push it, publish it; write its export to standard output, or replace the file. As
 * batch_config.each; its context is @x.
 */
int exporting_tick(const struct batch_config *config, struct profile *p, struct err *e);
/* Free server and thread; queued profiles are delivered, within limits. */
void exporting_close(struct exporting *x);
/* The same, with the sums of --push in @note ("": none). Return false if profiles were dropped. */
bool exporting_finish(struct exporting *x, struct err *note);

#endif
