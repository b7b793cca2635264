/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interpreters of running processes, described in the background: kind,
 * version, layout of frames.
 *
 * Runs on: the loader; files and memory of others are read by its helpers.
 */
#ifndef SYMBOLS_INTERPRETERS_H
#define SYMBOLS_INTERPRETERS_H

#include "symbols/base/helper.h"
#include "symbols/object/image_cache.h"
#include "symbols/process/maps.h"

#define INTERPRETERS_JOBS 4U

struct describe;

struct interpreters {
	struct maps *maps; /* NULL: a recording, its processes are gone */
	struct objects *objects;
	struct helpers *helpers;
	struct interpreters_job {
		struct describe *describe; /* NULL: free */
		uint64_t since_ns;	   /* of its last start */
		uint32_t tries;
		struct object *object; /* with a reference */
	} jobs[INTERPRETERS_JOBS];
	int news_fd;	     /* eventfd that each new description wakes; -1: none */
	atomic_uint nr_news; /* relaxed: a description is published with its process */
};

/* Look at the processes that map objects which turned out to be interpreters. */
void interpreters_note(struct interpreters *in, struct image_cache *images);
/* Start jobs for new interpreters, publish finished descriptions. True: there is more to do. */
bool interpreters_work(struct interpreters *in, uint64_t now_ns);
/* Return whether a helper is reading one. */
bool interpreters_busy(const struct interpreters *in);
void interpreters_fini(struct interpreters *in);

#endif
