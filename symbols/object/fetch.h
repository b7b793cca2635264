/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug files from debuginfod servers (debuginfod(8)): the only use of the
 * network, and only when the user requests the file of one object.
 *
 * libdebuginfod is loaded at the first request and runs on a helper thread; it
 * puts the file into its cache, where debugfile.c always looks.
 *
 * Threads: fetch_ask() and fetch_news() any; fetch_serve() the loader.
 */
#ifndef SYMBOLS_OBJECT_FETCH_H
#define SYMBOLS_OBJECT_FETCH_H

#include <pthread.h>

#include "symbols/image/image.h"
#include "symbols/base/helper.h"

struct fetch;

struct fetch_desk {
	pthread_mutex_t lock; /* held for copies only */
	uint32_t wanted;      /* object; OBJECT_ID_UNKNOWN: none */
	bool news;
	char text[256]; /* the message to show */
	struct objects *objects;
	struct helpers *helpers;
	struct fetch *job; /* loader: in transfer; NULL: none */
	uint64_t tell_ns;  /* loader: time of the next progress message */
};

void fetch_init(struct fetch_desk *d, struct objects *objects);
void fetch_fini(struct fetch_desk *d);

/* Request the debug file of @object; requested again during the transfer: cancel. */
void fetch_ask(struct fetch_desk *d, uint32_t object);
/* Copy a new message; false: none. */
bool fetch_news(struct fetch_desk *d, char *buf, size_t size);
/*
 * Loader: start transfers and check progress. Returns the object of an arrived file, or
 * OBJECT_ID_UNKNOWN.
 */
uint32_t fetch_serve(struct fetch_desk *d, uint64_t now_ns);
/* Loader: test for a transfer in progress. */
bool fetch_busy(const struct fetch_desk *d);

#endif
