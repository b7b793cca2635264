/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load the image of one object: a job for a helper thread.
 *
 * The job has copies of all that it needs, so a job that hangs can be abandoned.
 */
#ifndef SYMBOLS_OBJECT_LOAD_H
#define SYMBOLS_OBJECT_LOAD_H

#include "symbols/image/image.h"
#include "symbols/base/foreign.h"
#include "symbols/base/helper.h"
#include "symbols/object/image.h"

/* The path of an object's file, and how to recognise the file. */
struct load_where {
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
	char *root;		     /* as in foreign_want; owned */
	bool recorded;		     /* of a recording: perf's cache has it perhaps */
	uint32_t object;
	uint8_t build_id[20]; /* of the image; size 0: it has none, or is not loaded */
	uint8_t build_id_size;
};

/*
 * Copy the identity and sighting of @object; on the loader. @no_proc: only files here or below
 * @root, no process.
 */
void load_where(struct load_where *w, struct objects *objects, const struct object *object,
		bool no_proc, const char *root);
void load_where_fini(struct load_where *w);
/*
 * Open the file (OBJECT_FILE). 0 or -errno; the caller closes out->fd. May hang:
 * helpers only.
 */
int load_open(const struct load_where *w, struct watch *watch, struct foreign_file *out);

/*
 * Test whether a file has the build-id of the image: one that was written in place has the same
 * inode.
 */
bool load_is_of_image(const struct load_where *w, const uint8_t *build_id, size_t size);

struct load {
	struct job job;
	struct load_where where;
	bool no_vdso;	     /* of another kernel */
	bool no_debug_files; /* debug files hang: skip them */
	uint64_t memory_max; /* as in image_input */
	/* Results: */
	int rc;
	struct image *image; /* owned by the taker; NULL when rc is not 0 */
	uint64_t generation; /* of the file's inode; 0: unknown */
	/* The owner's; not used by the job: */
	uint64_t began_ns;
	unsigned int tries;
	bool slow;	  /* not waited for */
	bool slow_device; /* the device is slow, not only the file large */
	bool stale;	  /* replaced by another try */
};

/* Make a job; NULL when out of memory. Freed by job.drop(). */
struct load *load_new(struct objects *objects, const struct object *object, bool no_proc,
		      const char *root);

#endif
