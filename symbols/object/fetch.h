/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug files from debuginfod servers (debuginfod(8)): the only use of the
 * network, and only when a person asked for one object's file.
 *
 * libdebuginfod does it, loaded when it is first needed, on a helper thread;
 * it puts the file into its cache, where debugfile.c looks always.
 *
 * Threads: fetch_ask() and fetch_news() any; fetch_serve() the loader.
 */
#ifndef SYMBOLS_OBJECT_FETCH_H
#define SYMBOLS_OBJECT_FETCH_H

#include <pthread.h>

#include "symbols/object/object.h"
#include "symbols/base/helper.h"

struct fetch;

struct fetch_desk {
	pthread_mutex_t lock; /* held for copies only */
	uint32_t wanted;      /* object; OBJECT_ID_UNKNOWN: none */
	bool news;
	char text[256]; /* what is to be told */
	struct objects *objects;
	struct helpers *helpers;
	struct fetch *job; /* loader: under way; NULL: none */
	uint64_t tell_ns;  /* loader: not told how far it is before */
};

void fetch_init(struct fetch_desk *d, struct objects *objects);
void fetch_fini(struct fetch_desk *d);

/* Have the debug file of object @object fetched; the same once more, while it is: cancel. */
void fetch_ask(struct fetch_desk *d, uint32_t object);
/* A new sentence about it; false: nothing new. */
bool fetch_news(struct fetch_desk *d, char *buf, size_t size);
/* Loader: begin, look how far it is. The object whose file came, or OBJECT_ID_UNKNOWN. */
uint32_t fetch_serve(struct fetch_desk *d, uint64_t now_ns);
/* Loader: something is under way. */
bool fetch_busy(const struct fetch_desk *d);

/*
 * Where libdebuginfod keeps the debug file of a build-id: candidate @nr of
 * its cache folders, from the environment. False: there is no such candidate.
 */
bool fetch_cache_path(const uint8_t *build_id, size_t size, unsigned int nr, char *buf,
		      size_t buf_size);

#endif
