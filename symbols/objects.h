/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load the images of objects that samples asked for.
 *
 * An object is opened where it was last seen mapped, and published with its
 * image (release) or with the reason why there is none. What failed because a
 * process or file was gone is tried again when it is seen elsewhere.
 *
 * One thread: the loader. objects_stats(): any thread.
 */
#ifndef SYMBOLS_OBJECTS_H
#define SYMBOLS_OBJECTS_H

#include "symbols/dso.h"
#include "symbols/foreign.h"

#define OBJECTS_RETRIES_MAX	1024U

/* A failed object that another sighting may still bring. */
struct objects_retry {
	uint32_t id;
	pid_t pid;			/* where it was tried last */
	unsigned int tries;
};

struct objects {
	struct dsos *dsos;
	const atomic_bool *stop;	/* set: publish nothing more, the tables may be gone */
	bool no_proc;			/* a recording: no process is asked, only files here */
	const char *root;		/* or below this folder (NULL: here); borrowed */
	uint32_t seen;			/* objects looked at */
	uint32_t *open;			/* ids of those without image that may yet be wanted */
	uint32_t nr_open, max_open;
	struct objects_retry retries[OBJECTS_RETRIES_MAX];
	uint32_t nr_retries;
	uint64_t retried_ns;
	atomic_ulong nr_images, nr_failed, memory;	/* written here, relaxed */
};

void objects_init(struct objects *o, struct dsos *dsos, const atomic_bool *stop);
void objects_fini(struct objects *o);

/*
 * Open the file of @dso (DSO_FILE) where it was seen; the caller closes
 * out->fd and frees *path (its name there, may be NULL). 0 or -errno. May hang.
 */
int objects_open(const struct objects *o, const struct dso *dso, struct foreign_file *out,
		 char **path);

/* Load one wanted object. False: none is wanted. */
bool objects_load_one(struct objects *o);
/* Once a second: try failed ones seen elsewhere since. The id of one that came, or 0. */
uint32_t objects_retry(struct objects *o, uint64_t now_ns);

#endif
