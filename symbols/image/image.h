/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images: the loaded parts of an object (segments, unwind tables, symbols), and the objects.
 *
 * The caller owes: references to objects it keeps; the thread of requests is the loader, readers
 * are urcu-qsbr readers.
 *
 * The room does: reads an image once in the sandbox, by identity (device, inode, generation or
 * build-id), answers look-ups without a lock, evicts images unused for long; fetches debug files on
 * request.
 *
 * Not for: reading debug information (symbols/dwarf).
 */
#ifndef SYMBOLS_IMAGE_IMAGE_H
#define SYMBOLS_IMAGE_IMAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/sandbox/sandbox.h"

struct codemap;
struct elffile;
struct fetch;
struct helpers;
struct image;
struct objects;
struct untrusted_file;
struct watch;

#define BACKOFF_MAX 64U

struct device {
	uint32_t maj, min;
	unsigned int nr_slow;	    /* reads that hang now */
	bool answered;		    /* a read has succeeded */
	uint64_t rest_ns, until_ns; /* length and end of the pause; 0: none */
};

struct backoff {
	struct device list[BACKOFF_MAX];
	unsigned int nr, nr_slow;
};

/*
 * Build the image of an object from its file: by pread, since a file can become shorter at any
 * time. Only the bytes of .eh_frame, most of an image, are pages of the file, if it is one that
 * root alone may change, of the file system of the root folder.
 *
 * image_read() reads the bytes in this thread, and has them parsed in the sandbox, by
 * image_build().
 */

#define IMAGE_READERS (SANDBOX_IMAGE_LAST - SANDBOX_IMAGE + 1)

/* Build an image from a descriptor alone. */
int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e);

/* The files that an image is built from. */
struct image_parts {
	const struct elffile *file;
	const struct elffile *debug; /* NULL: none, or unknown yet */
	uint64_t debug_bias;	     /* to add to the addresses of the debug file */
	bool by_link;		     /* how the debug file was found */
	uint64_t memory_max;	     /* a table above this is not read; 0: no limit */
	bool may_map;		     /* names may stay in the file */
	bool recorded;		     /* no interpreter is looked for by its texts */
};

/* Build an image. 0, -ENOEXEC or -ENOMEM. If files were not there as a whole, see elffile_waits().
 */
int image_build(struct image **out, const struct image_parts *parts);

/* The readers, for the sandbox: all are the same. */
extern const struct sandbox_reader image_readers[IMAGE_READERS];

/*
 * One object that holds code: its identity, and its image once loaded.
 *
 * An object is identified by device, inode and generation (or build-id), never by
 * path. Ids are dense. A sampled object lives as long as the table; one that never was
 * leaves with its last mapping, and its id is given to another (objects_hold()). A helper of the
 * loader builds the image from a file descriptor; it is published (release), and immutable. It may
 * leave when memory is short: an urcu-qsbr reader keeps the image until its next quiescent state,
 * and a stub with the load segments (image->away) replaces it until the object is requested again.
 */

enum { OBJECT_ID_UNKNOWN, OBJECT_ID_KERNEL, OBJECT_ID_VDSO, OBJECT_ID_FIRST };

enum object_state {
	OBJECT_NEW,
	OBJECT_WANTED, /* requested by a sample */
	OBJECT_READY,  /* has an image */
	OBJECT_FAILED, /* no image; reason in object->reason */
	OBJECT_ASIDE,  /* as FAILED, but tried again: the file hangs, or memory is short */
};

/* A reason: the file is not the one of the recording. */
#define OBJECT_REPLACED "replaced since the recording"

/* Of object->debug, where debug information is there and not read. */
#define OBJECT_DEBUG_NOT_READ "debug information not read: "

/* The sites of large code: ones with samples are derived. See struct image_sites. */
#define OBJECT_SITES 16384U

struct object_sites {
	/* Written by sampler threads, read by the loader; relaxed: frames in each without rows. */
	atomic_uint nr[OBJECT_SITES];
	atomic_bool closed; /* written by the loader, relaxed: no more are derived */
	/* Of the loader: */
	bool loads;	 /* a load runs */
	uint32_t rounds; /* loads for more */
	uint32_t visits; /* the work that they have cost */
	uint64_t due_ns; /* no load before */
};

struct object {
	uint32_t id;
	/*
	 * Written by sampler threads, read by the loader; relaxed: for the order of
	 * eviction only.
	 */
	atomic_uint used;	/* object_clock() of the latest sample */
	atomic_uint nr_waiting; /* samples that waited for the image */
	atomic_uint *wanted;	/* list of requested objects, of the table: the id of the first */
	uint32_t next_wanted;	/* in the list; 0: the last */
	struct object_identity identity;
	struct safe_text path; /* as first seen */
	struct safe_text name; /* shown in lists: basename, [kernel], [vdso], [anon] */
	_Atomic(const struct image *) image; /* NULL until READY, then always an image or a stub */
	/*
	 * OBJECT_ANON: layout of the frames of its code (jit.h); release by the
	 * loader.
	 */
	_Atomic(const struct codemap *) codemap;
	atomic_bool codemap_wanted; /* set by sampler threads, relaxed: callers are guesses */
	atomic_int state;	    /* enum object_state */
	/* Shown to the user; static texts, may be NULL; written by the loader, relaxed. */
	_Atomic(const char *) reason; /* why there is no image or no names */
	_Atomic(const char *) fix;    /* how to get names */
	_Atomic(const char *) source; /* source of the names */
	/* Whether lines and inlined functions are read; NULL: it has no debug information. */
	_Atomic(const char *) debug;
	atomic_uint nr_symbols; /* functions with a name */
	/* Of these of a file: with unwind tables, with derived rows, with neither. */
	atomic_uint nr_tabled, nr_derived, nr_bare;
	atomic_uint permille;	    /* part loaded in thousandths, while WANTED */
	atomic_uint nr_evicted;	    /* number of evictions */
	struct object_sites *sites; /* of large code; written before the image, by the loader */
	uint64_t load_ns;	    /* how long the last load took; of the loader */
	atomic_ulong memory;	    /* bytes of the image */
	atomic_uint loop;   /* image->loop, once it was loaded; written by the loader, relaxed */
	atomic_bool no_elf; /* written by the loader, relaxed: a file of code that is no ELF */
	atomic_bool interpreter; /* written by the loader, relaxed: it runs code of a language */
	/* Static texts; written by the loader, relaxed: why functions of that have no names, or
	 * NULL. */
	_Atomic(const char *) language_reason, language_fix;
	atomic_uint language_version; /* as lang_packed_version() */
};

/* Return the time in units of about a second, for object->used; never 0. */
static inline uint32_t object_clock(uint64_t time_ns)
{
	return MAX((uint32_t)(time_ns >> 30), 1U);
}

/* Any thread: record a sample in the object; at most one write a second. */
static inline void object_touch(struct object *object, uint32_t clock)
{
	if (atomic_load_explicit(&object->used, memory_order_relaxed) != clock)
		atomic_store_explicit(&object->used, clock, memory_order_relaxed);
}

/* The reason why an object has no names, by the error of its reader; @fix NULL: none is known. */
struct object_reason {
	int code;
	const char *reason, *fix;
};

/* Loader: set the reason why @object has no names, and the fix. */
static inline void object_explain(struct object *object, const char *reason, const char *fix)
{
	atomic_store_explicit(&object->reason, reason, memory_order_relaxed);
	atomic_store_explicit(&object->fix, fix, memory_order_relaxed);
}

/* Loader: set the reason of @code from a table. Return false if the table has none. */
static inline bool object_explain_code(struct object *object, int code,
				       const struct object_reason *reasons, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (reasons[i].code == code) {
			object_explain(object, reasons[i].reason, reasons[i].fix);
			return true;
		}
	}
	return false;
}

/* Loader: set the source of the names of @object, and their number. */
static inline void object_credit(struct object *object, const char *source, uint32_t nr_symbols)
{
	atomic_store_explicit(&object->source, source, memory_order_relaxed);
	atomic_store_explicit(&object->nr_symbols, nr_symbols, memory_order_relaxed);
}

int objects_new(struct objects **out);
void objects_free(struct objects *d);
/*
 * Find or add an object, which lives as long as the table from now on. Takes a mutex: side-band
 * drain and loader only. @path is foreign bytes; @pid, @start, @end are its last mapping (how the
 * loader opens it; a newer sighting replaces an older one). Never NULL: when out of memory, the
 * unknown object.
 */
struct object *objects_intern(struct objects *d, const struct object_identity *identity,
			      const char *path, size_t path_size, pid_t pid, uint64_t start,
			      uint64_t end);
/*
 * As objects_intern(), for a mapping: with a reference. Any user can map new files as fast as it
 * likes; an object that no sample was in, and that has no reference any more, leaves.
 */
struct object *objects_hold(struct objects *d, const struct object_identity *identity,
			    const char *path, size_t path_size, pid_t pid, uint64_t start,
			    uint64_t end);
/* Take another reference; the caller has one. Any thread. */
void object_get(struct object *object);
/* Return whether a mapping has @object, or had lately. Any thread. */
bool object_is_mapped(const struct object *object);
/*
 * Drop a reference; @object may be NULL. Any thread. The last one of a mapping that readers may
 * have seen: after a grace period.
 */
void object_put(struct object *object);
/*
 * List all objects, and those that are added from now on. objects_next_new() returns them in order,
 * each with a reference; NULL: no more for now.
 */
void objects_list_new(struct objects *d);
struct object *objects_next_new(struct objects *d);
/* Return how many objects were ever added. Any thread. */
uint64_t objects_nr_added(const struct objects *d);
/* Return object @id; NULL: not given out. Any thread, lock-free. */
struct object *objects_at(const struct objects *d, uint32_t id);
/* Return the number of ids given out; those of objects that left are among them. */
uint32_t objects_nr(const struct objects *d);

/* Any thread, lock-free: request the image. True for the first request: wake the loader. */
static inline bool object_want(struct object *object)
{
	int state = OBJECT_NEW;
	unsigned int first;

	if (atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_NEW ||
	    !atomic_compare_exchange_strong_explicit(&object->state, &state, OBJECT_WANTED,
						     memory_order_relaxed, memory_order_relaxed))
		return false;
	first = atomic_load_explicit(object->wanted, memory_order_relaxed);
	do
		object->next_wanted = first;
	/* Release: the link; pairs with objects_take_wanted(). */
	while (!atomic_compare_exchange_weak_explicit(object->wanted, &first, object->id,
						      memory_order_release, memory_order_relaxed));
	return true;
}

/*
 * Hot thread: count a stack that ends here because the image is not loaded. Objects
 * with many are loaded first.
 */
static inline void object_wait(struct object *object)
{
	atomic_fetch_add_explicit(&object->nr_waiting, 1, memory_order_relaxed);
}

/*
 * Any thread, lock-free: a frame is in this site of large code, which has no rows yet. True for the
 * first one: wake the loader.
 */
static inline bool object_want_site(const struct object *object, unsigned int site)
{
	return !atomic_fetch_add_explicit(&object->sites->nr[site], 1, memory_order_relaxed);
}

/* Any thread, lock-free: return whether rows of more sites are still derived. */
static inline bool object_has_sites(const struct object *object)
{
	return object->sites && !atomic_load_explicit(&object->sites->closed, memory_order_relaxed);
}

/* Return a copy of the last sighting, for the loader to find the file (the caller frees path). */
struct object_sighting {
	pid_t pid;
	uint64_t start, end;
	uint64_t generation; /* of the inode; 0: unknown */
	char *path;
};

void objects_sighting(struct objects *d, const struct object *object, struct object_sighting *out);

/*
 * Debug files from debuginfod servers (debuginfod(8)): the only use of the
 * network, and only when the user requests the file of one object.
 *
 * libdebuginfod is loaded at the first request and runs on a helper thread; it
 * puts the file into its cache, where debugfile.c always looks.
 *
 * Threads: fetch_ask() and fetch_news() any; fetch_serve() the loader.
 */

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

/*
 * Load the image of one object: a job for a helper thread.
 *
 * The job has copies of all that it needs, so a job that hangs can be abandoned.
 */

/* The path of an object's file, and how to recognise the file. */
struct load_where {
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
	char *root;		     /* as in untrusted_want; owned */
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
int load_open(const struct load_where *w, struct watch *watch, struct untrusted_file *out);
/*
 * Test whether a file has the build-id of the image: one that was written in place has the same
 * inode.
 */
bool load_is_of_image(const struct load_where *w, const uint8_t *build_id, size_t size);

struct load {
	struct job job;
	struct load_where where;
	bool no_vdso;			   /* of another kernel */
	bool no_debug_files;		   /* debug files hang: skip them */
	uint64_t memory_max;		   /* as in image_input */
	uint64_t sites[OBJECT_SITES / 64]; /* as in struct derive_choice, and */
	uint32_t visits_max;
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
	uint32_t more;	  /* the image that gets the rows of more sites, by its serial; 0: none */
};

/*
 * Of image_cache.c: which objects have an image, may get one, or are retried.
 *
 * One thread: the loader. The figures: any thread.
 */

#define IMAGE_CACHE_LOADS_MAX 20U /* at the same time, including hanging ones */

/* An object without an image that may still get one. */
struct image_cache_retry {
	uint32_t id;
	pid_t pid; /* the process tried last: another one is another try */
	unsigned int tries;
	uint64_t due_ns; /* time of another try; 0: none */
};

struct image_cache_ids {
	uint32_t *list;
	uint32_t nr, max;
};

struct image_cache {
	struct objects *objects;
	struct helpers *helpers;
	bool no_proc;		       /* a recording: files here only, no process */
	bool no_vdso;		       /* a recording of another kernel */
	const char *root;	       /* files are below this directory (NULL: here); borrowed */
	struct image_cache_ids open;   /* requested, not started */
	uint32_t next_open, next_gone; /* indices in it of the next to load, and to drop */
	struct image_cache_ids ready;  /* with an image that may leave */
	struct image_cache_ids late;   /* loaded after places in them got names by address */
	struct image_cache_ids loops;  /* that turned out to be interpreters */
	struct image_cache_ids failed; /* not retried */
	struct image_cache_ids large;  /* with code that is derived by sites */
	uint64_t dropped_ns;	       /* time of the last look at it */
	uint32_t next_failed;	       /* index in it of the next to look at */
	struct load *loads[IMAGE_CACHE_LOADS_MAX];
	unsigned int nr_loads, nr_slow;
	struct image_cache_retry *retries;
	uint32_t nr_retries, max_retries, next_retry;
	uint64_t retried_ns;
	struct backoff devices;
	uint64_t debug_rest_ns, debug_until_ns; /* separate debug files hang: not read until then */
	uint32_t serial;
	size_t memory_max;
	uint32_t newest;    /* object->used of the latest use, in the time of samples */
	size_t memory_idle; /* above this, images without a sample for a short while leave too */
	uint64_t idle_ns, spare_ns; /* times of the last image_evict_idle() and _spare() */
	atomic_ulong nr_images, nr_failed, memory, nr_evicted; /* written by the loader, relaxed */
};

/*
 * Load the images of requested objects, and keep them in memory up to a limit.
 *
 * Objects that samples requested are given to helpers, the object that most
 * samples wait for first, and published with an image (release) or with the
 * reason why there is none. A read that hangs is set aside with its device
 * (image_cache.c); its object is late or retried. A failure because the process or
 * the file is gone is retried when the object is seen elsewhere. When images take
 * too much memory, the ones longest without a sample are evicted.
 *
 * One thread: the loader. The figures: any thread.
 */

void image_cache_init(struct image_cache *o, struct objects *objects, struct helpers *helpers);
/* Loads that still run are abandoned. */
void image_cache_fini(struct image_cache *o);
/* Finish loads, find hanging ones, start requested ones. True: one has finished. */
bool image_cache_work(struct image_cache *o, uint64_t now_ns);
/* Test for loads in progress that are not late. */
bool image_cache_busy(const struct image_cache *o);
/*
 * Return an object that was loaded late: its places can be named again. OBJECT_ID_UNKNOWN: none.
 */
uint32_t image_cache_take_late(struct image_cache *o);
/* Return an object that is an interpreter, as its image showed. OBJECT_ID_UNKNOWN: none. */
uint32_t image_cache_take_loop(struct image_cache *o);

/* Load object @id again: its file has more to read than before. */
void image_evict_reload(struct image_cache *o, uint32_t id, uint64_t now_ns);

#endif
