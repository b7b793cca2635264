// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open the file of one object and build its image.
 *
 * Runs on: a helper; load_new() and the life of the job on the loader.
 */
#include "symbols/object/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/object/buildidcache.h"
#include "symbols/object/image_read.h"

void load_where(struct load_where *w, struct objects *objects, const struct object *object,
		bool no_proc, const char *root)
{
	/* Acquire: pairs with the release of a finished image; the loader alone replaces it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);

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

int load_open(const struct load_where *w, struct watch *watch, struct foreign_file *out)
{
	const struct object_identity *id = &w->identity;
	struct foreign_want want = {
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
	rc = foreign_open(&want, out, NULL);
	/* Another file, perhaps with the same contents: compare the build-id. */
	if (rc == -ESTALE && id->build_id_size && w->seen.pid <= 0) {
		want.ino = 0;
		rc = foreign_open(&want, out, NULL);
	}
	watch_end(watch, 0);
	return rc;
}

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
static bool has_changed(const struct foreign_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) || (uint64_t)st.st_size != file->size ||
	       (int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != file->mtime_ns;
}

static int load_file(struct load *l)
{
	struct image_input in = {
		.path = l->where.seen.path,
		.no_debug_files = l->no_debug_files,
		.memory_max = l->memory_max,
		.watch = &l->job.watch,
	};
	struct foreign_file file;
	int rc = load_open(&l->where, in.watch, &file);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	l->generation = file.generation;
	rc = image_read(&l->image, &in, NULL);
	if (has_changed(&file))
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

struct load *load_new(struct objects *objects, const struct object *object, bool no_proc,
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
