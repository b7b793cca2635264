/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One object's file -> its image: a job for a helper thread.
 *
 * The job holds copies of all that it needs (where the object was seen, who it
 * is), so that one that hangs hurts nobody.
 */
#ifndef SYMBOLS_OBJECT_LOAD_H
#define SYMBOLS_OBJECT_LOAD_H

#include "symbols/object/object.h"
#include "symbols/base/foreign.h"
#include "symbols/base/helper.h"
#include "symbols/object/image.h"

/* Where an object is, and how to know that it is the right one. */
struct load_where {
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
	char *root;		     /* as in foreign_want; owned */
	uint32_t object;
};

/* Copy of what is known of @object; @no_proc: no process is asked, only files here or below @root.
 */
void load_where(struct load_where *w, struct objects *objects, const struct object *object,
		bool no_proc, const char *root);
void load_where_fini(struct load_where *w);
/* Open the file (OBJECT_FILE). 0 or -errno; the caller closes out->fd. May hang: helpers only. */
int load_open(const struct load_where *w, struct watch *watch, struct foreign_file *out);

struct load {
	struct job job;
	struct load_where where;
	bool no_vdso;	     /* it is of another kernel than ours */
	bool no_debug_files; /* do without: they hang */
	/* Once it is done: */
	int rc;
	struct image *image; /* to be taken; NULL when rc is not 0 */
	/* The owner's, not looked at by the job: */
	uint64_t began_ns;
	unsigned int state_before; /* enum object_state */
	unsigned int tries;
	bool slow;  /* nobody waits for it any more */
	bool stale; /* another try has taken its place */
};

/* NULL when memory is out. Ended by job.drop(). */
struct load *load_new(struct objects *objects, const struct object *object, bool no_proc,
		      const char *root);

#endif
