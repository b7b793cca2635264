// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Images of objects: requested, loaded by jobs, evicted above the limit of memory, retried; file
 * systems that do not respond are skipped for a while.
 *
 * Runs on: the loader, which reads no file.
 */
#include "symbols/image/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

/*
 * Lists of objects and retries.
 *
 * Runs on: the loader.
 */

/* Append @id; false when out of memory. */
static bool image_cache_ids_add(struct image_cache_ids *ids, uint32_t id)
{
	if (!array_reserve(&ids->list, &ids->max, ids->nr + 1ull))
		return false;
	ids->list[ids->nr++] = id;
	return true;
}

/* Retry @id at @due_ns (0: only when seen in another process than @pid). */
static void image_cache_retry_at(struct image_cache *o, uint32_t id, pid_t pid, unsigned int tries,
				 uint64_t due_ns)
{
	if (!array_reserve(&o->retries, &o->max_retries, o->nr_retries + 1ull))
		return;
	o->retries[o->nr_retries++] = (struct image_cache_retry){ id, pid, tries, due_ns };
}

/*
 * Eviction: images take no more memory than image_cache.memory_max, and leave after ten minutes
 * without a sample, or sooner while there are many, so that the memory of ended programs is
 * returned. Images without a sample for
 * longest are freed first; stubs with the load segments replace them.
 *
 * One thread: the loader.
 *
 * Eviction of images.
 *
 * Runs on: the loader. Readers keep an image until their next quiescent state.
 */

/* An image with a sample this recently (units of object_clock) is in use. */
#define IN_USE 3U

/*
 * Shortest and longest pause after an eviction in use, doubled each time: else
 * images would be loaded and evicted without end.
 */
#define REST_MIN_NS 10000000000ULL

#define REST_MAX_NS 300000000000ULL

/* As long as the default --history, in units of object_clock. */
#define IDLE 559U

#define IDLE_CHECK_NS 60000000000ULL

/*
 * While images take more than image_cache.memory_idle, one leaves earlier: without a sample for
 * LOAD_SHARE times as long as its load took, within these limits (units of object_clock), so that
 * loads cost about one percent of a CPU.
 */
#define SPARE_IDLE_MIN 15U

#define SPARE_IDLE_MAX 60U

#define LOAD_SHARE 100U

#define SPARE_CHECK_NS 4000000000ULL

/* So many leave at a check at most: each looks at all. */
#define SPARE_MAX 32U

struct leaving {
	struct reclaim rcu;
	struct image *image;
};

static void free_leaving(struct reclaim *head)
{
	struct leaving *l = (struct leaving *)((char *)head - offsetof(struct leaving, rcu));

	reclaim_grace_over();
	image_free(l->image);
	free(l);
}

/* Free @image, which was published, when no reader can hold it. */
static void image_evict_reclaim(struct image *image)
{
	struct leaving *l = malloc(sizeof(*l));

	if (!l)
		return; /* leaked: better than freed under a reader */
	l->image = image;
	reclaim_later(&l->rcu, free_leaving);
}

/* Test whether @image fits into the memory, perhaps after others have left. */
static bool image_evict_fits(const struct image_cache *o, const struct image *image)
{
	return image_memory(image) <= o->memory_max;
}

/* Return how long @object must have been without a sample to leave before the memory is full. */
static uint32_t spare_idle(const struct object *object)
{
	return MIN(MAX(object_clock(LOAD_SHARE * object->load_ns), SPARE_IDLE_MIN), SPARE_IDLE_MAX);
}

/*
 * Return the index of the image without a sample for longest, or the end; @spare: of the images
 * that leave before the memory is full.
 */
static uint32_t choose(struct image_cache *o, bool spare)
{
	uint32_t best = o->ready.nr, oldest = 0;

	for (uint32_t i = 0; i < o->ready.nr; i++) {
		const struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		o->newest = MAX(o->newest, used);
		if (spare && used + spare_idle(object) >= o->newest)
			continue;
		if (best == o->ready.nr || used < oldest) {
			best = i;
			oldest = used;
		}
	}
	return best;
}

/* Replace the image by a stub. False: out of memory. */
static bool evict(struct image_cache *o, struct object *object)
{
	struct image *image = (struct image *)(uintptr_t)atomic_load_explicit(&object->image,
									      memory_order_relaxed);
	size_t memory = image_memory(image);
	struct image *stub = image_stub(image);

	assert(!image->away);
	if (!stub)
		return false;
	/* Release: the stub; pairs with the acquire of readers of object->image. */
	atomic_store_explicit(&object->image, stub, memory_order_release);
	atomic_fetch_sub_explicit(&o->memory, memory, memory_order_relaxed);
	atomic_fetch_sub_explicit(&o->nr_images, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&o->nr_evicted, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&object->nr_evicted, 1, memory_order_relaxed);
	atomic_store_explicit(&object->memory, 0, memory_order_relaxed);
	image_evict_reclaim(image);
	return true;
}

/* An image in use was evicted: pause it; its stacks are guessed until then. */
static void rest(struct image_cache *o, struct object *object, uint64_t now_ns)
{
	uint32_t nr = atomic_load_explicit(&object->nr_evicted, memory_order_relaxed);
	uint64_t rest_ns = MIN(REST_MIN_NS << MIN(nr - 1, 5U), REST_MAX_NS);

	object_explain(object, "evicted: --symbol-memory is full",
		       "raise the limit, as in --symbol-memory=2G");
	atomic_fetch_add_explicit(&o->nr_failed, 1, memory_order_relaxed);
	/* Release: the reason; pairs with the acquire of readers. */
	atomic_store_explicit(&object->state, OBJECT_ASIDE, memory_order_release);
	image_cache_retry_at(o, object->id, 0, 0, now_ns + rest_ns);
}

/* The next sample requests an evicted object as a new one. */
static void reopen(struct object *object)
{
	/* Release: the stub. */
	atomic_store_explicit(&object->state, OBJECT_NEW, memory_order_release);
}

/* Give the whole pages of a file back, of @size bytes from the begin of @pages on. */
static void give_back(const struct image_pages *pages, uint64_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	/* Behind them are bytes of ours, which would be lost. */
	if (pages->at && size >= page)
		madvise(pages->at, size & ~(page - 1), MADV_DONTNEED);
}

/*
 * Unmap the pages of files that an image has: a name is read once, and the kernel maps sixteen
 * pages for each that is read. The ones in use come back from its cache.
 */
static void give_image_back(const struct image *image)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	give_back(&image->name_pages, image->names_in_file);
	give_back(&image->frames, image->eh.file_at % page + image->eh.in_file);
}

/*
 * Once a minute: evict the images without a sample in the ten minutes before the latest one, and
 * return free memory to the system. Not for a recording.
 */
static void image_evict_idle(struct image_cache *o, uint64_t now_ns)
{
	if (o->no_proc || now_ns - o->idle_ns < IDLE_CHECK_NS)
		return;
	o->idle_ns = now_ns;
	/*
	 * Tables come and go, of images, counts and processes: their pages stay resident, unless
	 * they are at the end of the heap.
	 */
	malloc_trim(0);
	choose(o, false); /* for o->newest */
	for (uint32_t i = 0; i < o->ready.nr;) {
		struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		if (used + IDLE >= o->newest) {
			/* The loader alone replaces it. */
			give_image_back(atomic_load_explicit(&object->image, memory_order_relaxed));
			i++;
			continue;
		}
		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		reopen(object);
	}
}

/* Evict images that are worth less than their memory. Not for a recording: its end is near. */
static void image_evict_spare(struct image_cache *o, uint64_t now_ns)
{
	uint32_t i;

	if (o->no_proc || now_ns - o->spare_ns < SPARE_CHECK_NS)
		return;
	o->spare_ns = now_ns;
	for (uint32_t n = 0; n < SPARE_MAX; n++) {
		if (atomic_load_explicit(&o->memory, memory_order_relaxed) <= o->memory_idle)
			return;
		i = choose(o, true);
		if (i == o->ready.nr || !evict(o, objects_at(o->objects, o->ready.list[i])))
			return;
		reopen(objects_at(o->objects, o->ready.list[i]));
		o->ready.list[i] = o->ready.list[--o->ready.nr];
	}
}

/* Evict images until the rest fits. */
static void image_evict_make_room(struct image_cache *o, uint64_t now_ns)
{
	uint32_t i;

	while (atomic_load_explicit(&o->memory, memory_order_relaxed) > o->memory_max &&
	       (i = choose(o, false)) < o->ready.nr) {
		struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		if (used + IN_USE > o->newest) {
			rest(o, object, now_ns);
			continue;
		}
		reopen(object);
	}
}

void image_evict_reload(struct image_cache *o, uint32_t id, uint64_t now_ns)
{
	struct object *object = objects_at(o->objects, id);

	assert(id != OBJECT_ID_UNKNOWN);
	for (uint32_t i = 0; i < o->ready.nr; i++) {
		if (o->ready.list[i] != id)
			continue;
		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		atomic_fetch_sub_explicit(&o->nr_evicted, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&object->nr_evicted, 1, memory_order_relaxed);
		object_explain(object, "loading its debug symbols", NULL);
		atomic_fetch_add_explicit(&o->nr_failed, 1, memory_order_relaxed);
		/* As an object set aside: places with names by address are named again. */
		atomic_store_explicit(&object->state, OBJECT_ASIDE, memory_order_release);
		image_cache_retry_at(o, id, 0, 0, now_ns);
		o->retried_ns = 0;
		return;
	}
}

/*
 * Open the file of one object and build its image.
 *
 * Runs on: a helper; load_new() and the life of the job on the loader.
 */

void load_where(struct load_where *w, struct objects *objects, const struct object *object,
		bool no_proc, const char *root)
{
	/* Acquire: pairs with the release of a finished image; the loader alone replaces it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);

	assert(object->id != OBJECT_ID_UNKNOWN);
	w->identity = object->identity;
	w->build_id_size = image ? image->build_id_size : 0;
	if (image)
		memcpy(w->build_id, image->build_id, sizeof(w->build_id));
	w->object = object->id;
	objects_sighting(objects, object, &w->seen);
	w->root = root ? strdup(root) : NULL;
	w->recorded = no_proc;
	if (no_proc)
		w->seen.pid = 0;
}

void load_where_fini(struct load_where *w)
{
	free(w->seen.path);
	free(w->root);
	w->seen.path = w->root = NULL;
}

bool load_is_of_image(const struct load_where *w, const uint8_t *build_id, size_t size)
{
	return !w->build_id_size ||
	       (size == w->build_id_size && !memcmp(build_id, w->build_id, size));
}

int load_open(const struct load_where *w, struct watch *watch, struct untrusted_file *out)
{
	const struct object_identity *id = &w->identity;
	struct untrusted_want want = {
		.pid = w->seen.pid,
		.start = w->seen.start,
		.end = w->seen.end,
		.path = w->seen.path && *w->seen.path ? w->seen.path : NULL,
		.root = w->root,
		.maj = id->maj,
		.min = id->min,
		.ino = id->ino,
		.generation = w->seen.generation,
	};
	int rc = watch_begin(watch);

	if (rc)
		return rc;
	/* As perf: the file of the recording, then the one with its name. */
	if (w->recorded && !w->root && id->build_id_size &&
	    !buildidcache_open(id->build_id, id->build_id_size, out)) {
		watch_end(watch, 0);
		return 0;
	}
	rc = untrusted_open(&want, out, NULL);
	/* Another file, perhaps with the same contents: compare the build-id. */
	if (rc == -ESTALE && id->build_id_size && w->seen.pid <= 0) {
		want.ino = 0;
		rc = untrusted_open(&want, out, NULL);
	}
	watch_end(watch, 0);
	return rc;
}

#define VDSO_MAX (64u << 10)

/* Copy the vdso from our memory: all processes have the same. */
static int load_vdso(struct image **out)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char line[512];
	int rc = -ENOENT;

	if (!maps)
		return -errno;
	while (rc == -ENOENT && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[vdso]") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			rc = image_read_memory(out, (const void *)(uintptr_t)start, end - start,
					       NULL);
	}
	fclose(maps);
	return rc;
}

/* Make an empty image: kallsyms has the names of the kernel. */
static int load_kernel(struct image **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->source = "kallsyms";
	return 0;
}

/*
 * Test for another build-id than that of the mapping, or none. After the bytes of a build-id are
 * zeros; old recordings do not have its size.
 */
static bool is_other(const struct object_identity *id, const struct image *image)
{
	return id->build_id_size &&
	       memcmp(id->build_id, image->build_id, sizeof(id->build_id)) != 0;
}

/*
 * Test whether the file has changed since it was opened: parts of the image may not
 * match then.
 */
static bool has_changed(const struct untrusted_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) || (uint64_t)st.st_size != file->size ||
	       (int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != file->mtime_ns;
}

/* The vdso of 32-bit processes is in their memory only: copy that into a file. */
static int open_vdso(const struct object_sighting *seen, struct untrusted_file *file)
{
	uint64_t size = seen->end - seen->start;
	struct iovec ours, theirs = { (void *)(uintptr_t)seen->start, size };
	void *bytes = size && size <= VDSO_MAX ? malloc(size) : NULL;
	int rc = 0;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	ours = (struct iovec){ bytes, size };
	if (!bytes)
		return -EFBIG;
	if (process_vm_readv(seen->pid, &ours, 1, &theirs, 1, 0) != (ssize_t)size)
		rc = -EIO;
	else
		file->fd = memfd_create("vdso", MFD_CLOEXEC);
	if (!rc && (file->fd < 0 || write(file->fd, bytes, size) != (ssize_t)size))
		rc = -EIO;
	free(bytes);
	file->size = size;
	if (rc && file->fd >= 0)
		close(file->fd);
	return rc;
}

static int load_file(struct load *l)
{
	struct image_input in = {
		.path = l->where.seen.path,
		.pid = l->where.seen.pid,
		.root = l->where.root,
		.no_debug_files = l->no_debug_files,
		.memory_max = l->memory_max,
		.watch = &l->job.watch,
	};
	bool vdso = !l->no_vdso && in.path && !strcmp(in.path, "[vdso]");
	struct untrusted_file file;
	int rc = vdso ? open_vdso(&l->where.seen, &file) : load_open(&l->where, in.watch, &file);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	l->generation = file.generation;
	rc = image_read(&l->image, &in, NULL);
	if (!vdso && has_changed(&file))
		rc = -EBUSY;
	else if (!rc && is_other(&l->where.identity, l->image))
		rc = -ESTALE;
	close(file.fd);
	if (rc) {
		image_free(l->image);
		l->image = NULL;
	}
	return rc;
}

static void run(struct job *job)
{
	struct load *l = (struct load *)job;

	switch (l->where.identity.kind) {
	case OBJECT_KERNEL:
		l->rc = load_kernel(&l->image);
		break;
	case OBJECT_VDSO:
		l->rc = l->no_vdso ? -EXDEV : load_vdso(&l->image);
		break;
	case OBJECT_FILE:
		l->rc = load_file(l);
		break;
	default:
		l->rc = -EINVAL;
	}
}

static void drop(struct job *job)
{
	struct load *l = (struct load *)job;

	image_free(l->image);
	load_where_fini(&l->where);
	free(l);
}

/* Make a job; NULL when out of memory. Freed by job.drop(). */
static struct load *load_new(struct objects *objects, const struct object *object, bool no_proc,
			     const char *root)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->job.run = run;
	l->job.drop = drop;
	load_where(&l->where, objects, object, no_proc, root);
	return l;
}

/*
 * File systems that do not answer. Runs on: the loader.
 */

#define BACKOFF_SLOW_EACH   2U /* on one device */
#define BACKOFF_REST_MAX_NS 300000000000ULL

/* Find the device, or add it; NULL for 0:0, or when the table is full. */
static struct device *find(struct backoff *d, uint32_t maj, uint32_t min, bool add)
{
	struct device *free_one = NULL;

	if (!maj && !min)
		return NULL;
	for (unsigned int i = 0; i < d->nr; i++) {
		struct device *dev = &d->list[i];

		if (dev->maj == maj && dev->min == min)
			return dev;
		if (!dev->nr_slow && !dev->until_ns)
			free_one = dev;
	}
	if (!add)
		return NULL;
	if (d->nr < BACKOFF_MAX)
		free_one = &d->list[d->nr++];
	if (free_one)
		*free_one = (struct device){ .maj = maj, .min = min };
	return free_one;
}

/*
 * Test for a device with an entry that others cannot take. Real disks have a major number; half of
 * the entries are for them and for devices that answered before: the hanging mounts of one
 * user take entries only from such mounts.
 */
static bool is_trusted(const struct device *dev, uint32_t maj)
{
	return maj || (dev && dev->answered);
}

/*
 * Return 0 if a file of the device may be read now, else the time of the next try. 0:0 is the
 * unknown device.
 */
static uint64_t backoff_rest(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	const struct device *dev = find(d, maj, min, false);

	if (d->nr_slow >= BACKOFF_SLOW_MAX ||
	    (d->nr_slow >= BACKOFF_SLOW_MAX / 2 && !is_trusted(dev, maj)))
		return now_ns + BACKOFF_REST_MIN_NS;
	if (!dev)
		return 0;
	if (dev->until_ns > now_ns)
		return dev->until_ns;
	return dev->nr_slow >= BACKOFF_SLOW_EACH ? now_ns + MAX(dev->rest_ns, BACKOFF_REST_MIN_NS)
						 : 0;
}

/* Count a read that hangs; backoff_ended() or backoff_cancelled() with @slow report its end. */
static void backoff_hang(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	struct device *dev = find(d, maj, min, true);

	d->nr_slow++;
	if (!dev)
		return;
	dev->nr_slow++;
	dev->rest_ns = MIN(MAX(dev->rest_ns * 2, BACKOFF_REST_MIN_NS), BACKOFF_REST_MAX_NS);
	dev->until_ns = now_ns + dev->rest_ns;
}

/*
 * Count a read that ended, with or without error; @slow: it was counted as hanging.
 * True: the pause is over.
 */
static bool backoff_ended(struct backoff *d, uint32_t maj, uint32_t min, bool slow)
{
	struct device *dev = find(d, maj, min, true);
	bool rested = dev && dev->until_ns;

	if (slow && d->nr_slow)
		d->nr_slow--;
	if (!dev)
		return false;
	if (slow && dev->nr_slow)
		dev->nr_slow--;
	dev->answered = true;
	dev->rest_ns = dev->until_ns = 0;
	return rested;
}

/* Count a hanging read that was cancelled: the pause is unchanged. */
static void backoff_cancelled(struct backoff *d, uint32_t maj, uint32_t min)
{
	struct device *dev = find(d, maj, min, false);

	if (d->nr_slow)
		d->nr_slow--;
	if (dev && dev->nr_slow)
		dev->nr_slow--;
}

/* Without --symbol-memory: 3 % of the memory of the machine, within these limits. */
#define IMAGE_CACHE_MEMORY_MIN (64UL << 20)

#define IMAGE_CACHE_MEMORY_MAX (512UL << 20)

#define IMAGE_CACHE_MEMORY_IDLE (48UL << 20)

/* Loads at the same time: more than CPUs, since on a busy machine each waits for a CPU. */
#define ACTIVE_MAX 8U

#define RETRY_TRIES_MAX	  8U
#define RETRY_INTERVAL_NS 1000000000ULL
#define RETRY_SOON_NS	  2000000000ULL

/* Objects without an image that are checked each second: of all, and of the ones to retry. */
#define CHECKS_MAX 8192U

/* Requested objects among which the next one is chosen. */
#define CHOICE_MAX 4096U

/* Requested objects that are taken up in one call: other work waits. */
#define TAKE_MAX 256U

#define BLOCKED_NS    500000000ULL   /* a longer read hangs */
#define WAITED_NS     5000000000ULL  /* longer reads in sum are too slow */
#define SLOW_SPEED    (4ULL << 20)   /* bytes per second that a disk delivers at least */
#define QUEUE_NS      200000000ULL   /* large files wait for another one */
#define GIVE_UP_NS    60000000000ULL /* a slow load is cancelled */
#define GONE	      "file is gone, or in another mount namespace"
#define LOCAL_DISK    "copy it to a local disk"
#define QUEUED	      "large: waits until other large files are read"
#define BARRED	      "ended its reader: not read"
#define NOT_ANSWERING "its file system does not respond: will retry"

static void fini_ids(struct image_cache_ids *ids)
{
	free(ids->list);
	*ids = (struct image_cache_ids){ 0 };
}

static size_t default_memory_max(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return MIN(MAX(all / 100 * 3, IMAGE_CACHE_MEMORY_MIN), IMAGE_CACHE_MEMORY_MAX);
}

void image_cache_init(struct image_cache *o, struct objects *objects, struct helpers *helpers)
{
	memset(o, 0, sizeof(*o));
	o->objects = objects;
	o->helpers = helpers;
	o->memory_max = default_memory_max();
	o->memory_idle = IMAGE_CACHE_MEMORY_IDLE;
}

void image_cache_fini(struct image_cache *o)
{
	for (unsigned int i = 0; i < o->nr_loads; i++)
		helper_job_leave(&o->loads[i]->job);
	o->nr_loads = 0;
	fini_ids(&o->open);
	fini_ids(&o->ready);
	fini_ids(&o->late);
	fini_ids(&o->loops);
	fini_ids(&o->failed);
	free(o->retries);
	o->retries = NULL;
}

/* Explain a file of a recording that is not here; false: @code has another reason. */
static bool explain_recorded(const struct image_cache *o, struct object *object, int code)
{
	if (!o->no_proc)
		return false;
	if (code == -ESTALE)
		object_explain(object, OBJECT_REPLACED, "pass the recorded files with --symfs");
	else if (code != -ENOENT && code != -ENOTDIR)
		return false;
	else if (o->root)
		object_explain(object, "no such file below --symfs",
			       "copy it there from the recorded machine");
	else
		object_explain(object, "no such file on this machine",
			       "copy the recorded machine's files, and pass them with --symfs");
	return true;
}

/* Explain an errno of opening or reading @object. */
static void explain(const struct image_cache *o, struct object *object, int code)
{
	static const struct object_reason words[] = {
		{ -EPERM, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -EACCES, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -ENOENT, GONE, "run proftop as root while it is mapped" },
		{ -ENOTDIR, GONE, "run proftop as root while it is mapped" },
		{ -ESRCH, "process has ended", "start proftop before it, or run it longer" },
		{ -ESTALE, "replaced on disk", "restart the program, or run proftop as root" },
		{ -EBUSY, "changed while it was read", NULL },
		{ -EINVAL, "not a regular file", NULL },
		{ -EXDEV, "not of the running kernel", "replay on the recorded machine" },
		{ -ENOEXEC, "not an ELF file", NULL },
		{ -E2BIG, "too large", NULL },
		{ -EFBIG, "too large", NULL },
		{ -ENOSPC, "larger than --symbol-memory",
		  "raise the limit, as in --symbol-memory=2G" },
		{ -ENOMEM, "out of memory", NULL },
		{ -ECANCELED, "too slow to read: gave up", LOCAL_DISK },
		{ -EPIPE, BARRED, NULL },
		{ -ETIME, BARRED, NULL },
		{ -EBADMSG, BARRED, NULL },
		{ -ENOSYS, "its reader does not start", "see foreign files in proftop --check" },
		{ -EIO, "cannot be read", NULL },
		{ -ERANGE, "cannot be read", NULL },
	};

	atomic_store_explicit(&object->no_elf, code == -ENOEXEC, memory_order_relaxed);
	if (!explain_recorded(o, object, code) &&
	    !object_explain_code(object, code, words, ARRAY_SIZE(words)))
		object_explain(object, "cannot be opened", NULL);
}

/* Explain the names of an image, or their absence. */
static void explain_image(struct object *object, const struct image *image)
{
	static const char *const package = "install its debug symbols (-dbgsym), or build with -g";

	object_credit(object, image->source, image->nr_symbols);
	atomic_store_explicit(&object->nr_tabled, image->nr_tabled, memory_order_relaxed);
	atomic_store_explicit(&object->nr_derived, image->nr_derived, memory_order_relaxed);
	atomic_store_explicit(&object->nr_bare, image->nr_bare, memory_order_relaxed);
	if (object->identity.kind == OBJECT_KERNEL)
		object_explain(object, NULL, NULL); /* naming.c explains it */
	else if (!image->complete && image->trouble)
		object_explain(object, image->trouble, package);
	else if (!image->nr_symbols)
		object_explain(object, "stripped: no symbols", package);
	else if (!image->complete)
		object_explain(object, "stripped: only exported functions have names", package);
	else
		object_explain(object, NULL, NULL);
}

/* Test whether another process that maps the file would help. */
static bool may_come(int code)
{
	return code == -ESRCH || code == -ENOENT || code == -ENOTDIR || code == -EACCES ||
	       code == -EPERM || code == -ESTALE;
}

static void count(atomic_ulong *figure, long by)
{
	atomic_fetch_add_explicit(figure, (unsigned long)by, memory_order_relaxed);
}

static bool has_failed(unsigned int state)
{
	return state >= OBJECT_FAILED;
}

/*
 * Leave @object without an image for now. The reason is stored before the state
 * (release).
 */
static void fail(struct image_cache *o, struct object *object, enum object_state state)
{
	unsigned int before =
		(unsigned int)atomic_load_explicit(&object->state, memory_order_relaxed);

	if (!has_failed(before))
		count(&o->nr_failed, 1);
	atomic_store_explicit(&object->state, (int)state, memory_order_release);
}

/* Note that @object is an interpreter, as its image shows. */
static void note_loop(struct image_cache *o, struct object *object, uint8_t loop)
{
	if (!loop || atomic_load_explicit(&object->loop, memory_order_relaxed) == loop)
		return;
	atomic_store_explicit(&object->loop, loop, memory_order_relaxed);
	image_cache_ids_add(&o->loops, object->id);
}

/* Publish @image, which belongs to @object now. */
static void publish(struct image_cache *o, struct object *object, struct image *image)
{
	struct image *stub = (struct image *)(uintptr_t)atomic_load_explicit(&object->image,
									     memory_order_relaxed);

	image->serial = ++o->serial;
	/* Loading counts as a use, else the image would be the first to leave. */
	object_touch(object,
		     MAX(atomic_load_explicit(&object->used, memory_order_relaxed), o->newest));
	count(&o->nr_images, 1);
	count(&o->memory, (long)image_memory(image));
	atomic_store_explicit(&object->memory, image_memory(image), memory_order_relaxed);
	atomic_store_explicit(&object->nr_waiting, 0, memory_order_relaxed);
	explain_image(object, image);
	if (object->identity.kind == OBJECT_FILE)
		note_loop(o, object, image->loop);
	/* Release: the image; pairs with the acquire of readers of object->image. */
	atomic_store_explicit(&object->image, image, memory_order_release);
	/* Release: the image is there when the state is READY. */
	atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
	if (stub)
		image_evict_reclaim(stub);
	if (object->identity.kind == OBJECT_FILE)
		image_cache_ids_add(&o->ready, object->id);
}

static void set_aside(struct image_cache *o, struct object *object, const char *reason,
		      const char *fix, unsigned int tries, uint64_t due_ns)
{
	object_explain(object, reason, fix);
	fail(o, object, OBJECT_ASIDE);
	image_cache_retry_at(o, object->id, 0, tries, due_ns);
}

/*
 * Test whether @object, which failed, leaves: any user can map files that are no programs, by the
 * hundred for each sample, and no sample is in most of them.
 */
static bool failed_leaves(struct image_cache *o, struct object *object)
{
	/* Else it is requested, or loaded. */
	if (!has_failed((unsigned int)atomic_load_explicit(&object->state, memory_order_relaxed)) ||
	    !objects_drop_wanted(o->objects, object))
		return false;
	count(&o->nr_failed, -1);
	return true;
}

/* Test the next CHECKS_MAX objects of @ids, from *@next on, and remove the ones that leave. */
static void sweep(struct image_cache *o, struct image_cache_ids *ids, uint32_t *next,
		  bool (*leaves)(struct image_cache *o, struct object *object))
{
	for (uint32_t n = MIN(ids->nr, CHECKS_MAX); n; n--) {
		uint32_t i = *next < ids->nr ? *next : 0;

		*next = i + 1;
		if (leaves(o, objects_at(o->objects, ids->list[i]))) {
			ids->list[i] = ids->list[--ids->nr];
			*next = i;
		}
	}
}

/* Explain why a load failed, and retry if that may help. */
static void give_up(struct image_cache *o, const struct load *l, struct object *object, int rc,
		    uint64_t now_ns)
{
	bool soon = rc == -EBUSY || rc == -ECANCELED;

	explain(o, object, rc);
	fail(o, object, OBJECT_FAILED);
	if (l->tries < RETRY_TRIES_MAX && (soon || may_come(rc)))
		image_cache_retry_at(o, object->id, l->where.seen.pid, l->tries + 1,
				     soon ? now_ns + (RETRY_SOON_NS << l->tries) : 0);
	else
		image_cache_ids_add(&o->failed, object->id);
}

/* End the pause of all objects on this device. */
static void end_rest(struct image_cache *o, uint32_t maj, uint32_t min)
{
	for (uint32_t i = 0; i < o->nr_retries; i++) {
		const struct object *object = objects_at(o->objects, o->retries[i].id);

		if (o->retries[i].due_ns && object->identity.maj == maj &&
		    object->identity.min == min)
			o->retries[i].due_ns = 1;
	}
	o->retried_ns = 0;
}

/* Publish the result of a load, or its failure. */
static void finish(struct image_cache *o, struct load *l, uint64_t now_ns)
{
	struct object *object = objects_at(o->objects, l->where.object);
	bool cancelled = atomic_load_explicit(&l->job.watch.cancel, memory_order_relaxed);
	/* The device of a debug file that hung is unknown; that of a large file is not slow. */
	bool other = l->stale || (l->slow && !l->slow_device);
	uint32_t maj = other ? 0 : l->where.identity.maj, min = other ? 0 : l->where.identity.min;
	int rc = cancelled ? -ECANCELED : l->rc;

	o->nr_slow -= l->slow;
	if (cancelled)
		backoff_cancelled(&o->devices, maj, min);
	else if (backoff_ended(&o->devices, maj, min, l->slow))
		end_rest(o, maj, min);
	if (!rc && !image_evict_fits(o, l->image))
		rc = -ENOSPC;
	/* Its inode number belongs to a newer file by now, which the next process has mapped. */
	if (!rc && !l->stale && !objects_note_generation(o->objects, object, l->generation))
		rc = -ESTALE;
	if (l->stale && !cancelled)
		o->debug_rest_ns = o->debug_until_ns = 0;
	if (rc == -EAGAIN && !l->stale)
		set_aside(o, object, QUEUED, NULL, l->tries, now_ns + QUEUE_NS);
	else if (rc && !l->stale)
		give_up(o, l, object, rc, now_ns);
	if (!rc && !l->stale) {
		if (has_failed((unsigned int)atomic_load_explicit(&object->state,
								  memory_order_relaxed))) {
			count(&o->nr_failed, -1);
			image_cache_ids_add(&o->late, object->id);
		}
		object->load_ns = now_ns - l->began_ns;
		publish(o, object, l->image);
		l->image = NULL;
	}
	l->job.drop(&l->job);
}

/* Finish the loads that ended. True: there was one. */
static bool finish_all(struct image_cache *o, uint64_t now_ns)
{
	bool any = false;

	for (unsigned int i = 0; i < o->nr_loads;) {
		struct load *l = o->loads[i];

		if (!helper_job_done(&l->job)) {
			/* The object of a stale load may have left. */
			if (!l->stale)
				atomic_store_explicit(
					&objects_at(o->objects, l->where.object)->permille,
					watch_permille(&l->job.watch), memory_order_relaxed);
			i++;
			continue;
		}
		o->loads[i] = o->loads[--o->nr_loads];
		finish(o, l, now_ns);
		any = true;
	}
	return any;
}

/* A debug file hangs: load the object again without debug files. */
static void without_debug_file(struct image_cache *o, struct load *l, uint64_t now_ns)
{
	o->debug_rest_ns = MIN(MAX(o->debug_rest_ns * 2, BACKOFF_REST_MIN_NS), BACKOFF_REST_MAX_NS);
	o->debug_until_ns = now_ns + o->debug_rest_ns;
	l->stale = true;
	image_cache_retry_at(o, l->where.object, 0, l->tries, now_ns);
	o->retried_ns = 0;
}

/* Test whether the reads of a file take long in sum: their number is that of the file's author. */
static bool is_long(const struct watch *w)
{
	return atomic_load_explicit(&w->waited_ns, memory_order_relaxed) >= WAITED_NS;
}

/* Test whether the device is slow, not only the file large. */
static bool is_device_slow(const struct load *l, uint64_t now_ns)
{
	const struct watch *w = &l->job.watch;
	uint64_t done = atomic_load_explicit(&w->done, memory_order_relaxed);

	return watch_blocked_ns(w, now_ns) >= BLOCKED_NS ||
	       done / (WAITED_NS / 1000000000) < SLOW_SPEED;
}

/* Find loads that hang, so that other objects do not wait for them. */
static void check_slow(struct image_cache *o, uint64_t now_ns)
{
	for (unsigned int i = 0; i < o->nr_loads; i++) {
		struct load *l = o->loads[i];
		struct watch *w = &l->job.watch;
		const struct object_identity *id = &l->where.identity;

		if (l->slow && now_ns - l->began_ns > GIVE_UP_NS)
			atomic_store_explicit(&w->cancel, true, memory_order_relaxed);
		if (l->slow || (watch_blocked_ns(w, now_ns) < BLOCKED_NS && !is_long(w)))
			continue;
		l->slow = true;
		l->slow_device = is_device_slow(l, now_ns);
		o->nr_slow++;
		if (atomic_load_explicit(&w->aside, memory_order_relaxed)) {
			backoff_hang(&o->devices, 0, 0, now_ns);
			without_debug_file(o, l, now_ns);
			continue;
		}
		backoff_hang(&o->devices, l->slow_device ? id->maj : 0,
			     l->slow_device ? id->min : 0, now_ns);
		object_explain(objects_at(o->objects, l->where.object),
			       l->slow_device ? NOT_ANSWERING : "large: takes long to read",
			       LOCAL_DISK);
		fail(o, objects_at(o->objects, l->where.object), OBJECT_ASIDE);
	}
}

/* Add the requested objects to the open ones. */
static void collect(struct image_cache *o)
{
	uint32_t id;

	while ((id = objects_take_wanted(o->objects)) != OBJECT_ID_UNKNOWN)
		if (!objects_drop_wanted(o->objects, objects_at(o->objects, id)) &&
		    !image_cache_ids_add(&o->open, id))
			/* Out of memory: for the next request. Relaxed: nothing else changed. */
			atomic_store_explicit(&objects_at(o->objects, id)->state, OBJECT_NEW,
					      memory_order_relaxed);
}

/* Give @object to a helper. False: none is free. */
static bool start(struct image_cache *o, struct object *object, unsigned int tries, uint64_t now_ns)
{
	struct load *l;

	if (o->nr_loads == IMAGE_CACHE_LOADS_MAX)
		return false;
	l = load_new(o->objects, object, o->no_proc, o->root);
	if (l)
		l->no_vdso = o->no_vdso;
	if (!l)
		return false;
	l->no_debug_files = o->debug_until_ns > now_ns;
	l->memory_max = o->memory_max;
	l->began_ns = now_ns;
	l->tries = tries;
	if (helpers_start(o->helpers, &l->job)) {
		l->job.drop(&l->job);
		return false;
	}
	atomic_store_explicit(&object->permille, 0, memory_order_relaxed);
	assert(o->nr_loads < IMAGE_CACHE_LOADS_MAX);
	o->loads[o->nr_loads++] = l;
	return true;
}

/*
 * Return the index in @o->open of the requested object that most samples wait for, or the end. Of
 * many, each load looks at the next CHOICE_MAX only.
 */
static uint32_t image_cache_choose(struct image_cache *o)
{
	uint32_t best = o->open.nr, most = 0;

	for (uint32_t n = MIN(o->open.nr, CHOICE_MAX); n; n--) {
		uint32_t i = o->next_open < o->open.nr ? o->next_open : 0;
		struct object *object = objects_at(o->objects, o->open.list[i]);
		uint32_t nr = atomic_load_explicit(&object->nr_waiting, memory_order_relaxed);

		o->next_open = i + 1;
		if (atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_WANTED ||
		    (best < o->open.nr && nr <= most))
			continue;
		best = i;
		most = nr;
	}
	return best;
}

static bool has_room(const struct image_cache *o)
{
	return o->nr_loads - o->nr_slow < ACTIVE_MAX && o->nr_loads < IMAGE_CACHE_LOADS_MAX;
}

/*
 * Start the load of a requested object; set it aside if its device does not answer, or drop it if
 * it was mapped for a moment only. False: no helper is free.
 */
static bool take_up(struct image_cache *o, struct object *object, uint64_t now_ns)
{
	uint64_t due_ns;

	if (objects_drop_wanted(o->objects, object))
		return true;
	due_ns = backoff_rest(&o->devices, object->identity.maj, object->identity.min, now_ns);
	if (!due_ns)
		return start(o, object, 0, now_ns);
	set_aside(o, object, NOT_ANSWERING, LOCAL_DISK, 0, due_ns);
	return true;
}

/*
 * Test whether a requested object leaves, as no process maps it any more: any user can request such
 * by the hundred thousand, and each choice among them would look at thousands.
 */
static bool wanted_leaves(struct image_cache *o, struct object *object)
{
	return objects_drop_wanted(o->objects, object);
}

/* Take up requested objects while helpers are free. */
static bool start_wanted(struct image_cache *o, uint64_t now_ns)
{
	bool any = false;
	uint32_t i;

	sweep(o, &o->open, &o->next_gone, wanted_leaves);
	for (unsigned int n = 0; n < TAKE_MAX && has_room(o); n++) {
		i = image_cache_choose(o);
		if (i == o->open.nr)
			break;
		if (!take_up(o, objects_at(o->objects, o->open.list[i]), now_ns))
			break;
		o->open.list[i] = o->open.list[--o->open.nr];
		any = true;
	}
	return any;
}

/*
 * Test whether to retry @r now. *due_ns: the time to try instead, if its device does
 * not answer.
 */
static bool is_due(struct image_cache *o, const struct image_cache_retry *r, uint64_t now_ns,
		   uint64_t *due_ns)
{
	const struct object *object = objects_at(o->objects, r->id);
	struct object_sighting seen;

	*due_ns = 0;
	if (!r->due_ns || now_ns < r->due_ns) {
		if (!r->pid)
			return false;
		objects_sighting(o->objects, object, &seen);
		free(seen.path);
		if (seen.pid == r->pid)
			return false;
	}
	*due_ns = backoff_rest(&o->devices, object->identity.maj, object->identity.min, now_ns);
	return !*due_ns;
}

/* Start the retries that are due, of CHECKS_MAX, and drop the ones that no process maps. */
static void start_retries(struct image_cache *o, uint64_t now_ns)
{
	for (uint32_t n = MIN(o->nr_retries, CHECKS_MAX); n && has_room(o); n--) {
		uint32_t i = o->next_retry < o->nr_retries ? o->next_retry : 0;
		struct image_cache_retry *r = &o->retries[i];
		struct object *object = objects_at(o->objects, r->id);
		uint64_t due_ns;

		o->next_retry = i + 1;
		if (!failed_leaves(o, object)) {
			if (!is_due(o, r, now_ns, &due_ns)) {
				r->due_ns = due_ns ? due_ns : r->due_ns;
				continue;
			}
			if (!start(o, object, r->tries, now_ns))
				return;
		}
		*r = o->retries[--o->nr_retries];
		o->next_retry = i;
	}
	if (!has_room(o))
		o->retried_ns = 0; /* continue as soon as there is one */
}

bool image_cache_work(struct image_cache *o, uint64_t now_ns)
{
	bool any = finish_all(o, now_ns);

	check_slow(o, now_ns);
	image_evict_make_room(o, now_ns);
	image_evict_idle(o, now_ns);
	image_evict_spare(o, now_ns);
	collect(o);
	any |= start_wanted(o, now_ns);
	if (now_ns - o->dropped_ns >= RETRY_INTERVAL_NS) {
		o->dropped_ns = now_ns;
		sweep(o, &o->failed, &o->next_failed, failed_leaves);
	}
	if (now_ns - o->retried_ns >= RETRY_INTERVAL_NS) {
		o->retried_ns = now_ns;
		start_retries(o, now_ns);
	}
	return any;
}

bool image_cache_busy(const struct image_cache *o)
{
	assert(o->nr_slow <= o->nr_loads);
	return o->nr_loads > o->nr_slow;
}

static uint32_t take(struct image_cache_ids *ids)
{
	return ids->nr ? ids->list[--ids->nr] : OBJECT_ID_UNKNOWN;
}

uint32_t image_cache_take_late(struct image_cache *o)
{
	return take(&o->late);
}

uint32_t image_cache_take_loop(struct image_cache *o)
{
	return take(&o->loops);
}
