// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open wanted objects, build their images, publish them.
 *
 * Runs on: the loader. Any read here may hang on a foreign file system; after
 * one, nothing borrowed is touched before @stop was looked at.
 */
#include "symbols/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/foreign.h"
#include "symbols/image.h"

#define RETRY_TRIES_MAX		8U
#define RETRY_INTERVAL_NS	1000000000ULL

void objects_init(struct objects *o, struct dsos *dsos, const atomic_bool *stop)
{
	memset(o, 0, sizeof(*o));
	o->dsos = dsos;
	o->stop = stop;
}

void objects_fini(struct objects *o)
{
	free(o->open);
	o->open = NULL;
}

/* Say what an errno of opening or reading means for @dso. */
static void explain(struct dso *dso, int code)
{
	static const struct {
		int code;
		const char *reason, *cure;
	} words[] = {
		{ -EPERM, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -EACCES, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -ENOENT, "file is gone",
		  "root (map_files) still reads a deleted file while it is mapped" },
		{ -ENOTDIR, "file is gone",
		  "root (map_files) still reads a deleted file while it is mapped" },
		{ -ESRCH, "process is gone", "start proftop before it, or let it run longer" },
		{ -ESTALE, "replaced on disk", "restart the program, or run proftop as root" },
		{ -EINVAL, "not a regular file", NULL },
		{ -ENOEXEC, "not an ELF file", NULL },
		{ -E2BIG, "too large", NULL },
		{ -EFBIG, "too large", NULL },
		{ -ENOMEM, "out of memory", NULL },
		{ -EIO, "cannot be read", NULL },
		{ -ERANGE, "cannot be read", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].code == code) {
			dso_explain(dso, words[i].reason, words[i].cure);
			return;
		}
	}
	dso_explain(dso, "cannot be opened", NULL);
}

/* Say what names an image has, or what is missing. */
static void explain_image(struct dso *dso, const struct image *image)
{
	static const char *const package = "install its debug symbols (-dbgsym), or build with -g";

	dso_credit(dso, image->source, image->nr_symbols);
	if (dso->identity.kind == DSO_KERNEL)
		dso_explain(dso, NULL, NULL);	/* naming.c knows */
	else if (!image->complete && image->trouble)
		dso_explain(dso, image->trouble, package);
	else if (!image->nr_symbols)
		dso_explain(dso, "stripped: no symbols", package);
	else if (!image->complete)
		dso_explain(dso, "stripped: only exported functions have names", package);
	else
		dso_explain(dso, NULL, NULL);
}

/* Would another process's sight of the file help? */
static bool may_come(int code)
{
	return code == -ESRCH || code == -ENOENT || code == -ENOTDIR || code == -EACCES ||
	       code == -EPERM || code == -ESTALE;
}

static size_t image_memory(const struct image *image)
{
	return sizeof(*image) + image->nr_segments * sizeof(*image->segments) +
	       image->eh.size + image->eh.nr_fdes * sizeof(*image->eh.fdes) +
	       (size_t)image->nr_symbols * sizeof(*image->symbols) + image->names_size;
}

/* Our own vdso serves all processes: copy it from our memory. */
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
			rc = image_from_memory(out, (const void *)(uintptr_t)start, end - start,
					       NULL);
	}
	fclose(maps);
	return rc;
}

/* The kernel's names are kept apart (kallsyms); its image is an empty one. */
static int load_kernel(struct image **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->source = "kallsyms";
	return 0;
}

static int open_seen(const struct objects *o, const struct dso *dso,
		     const struct dso_sighting *seen, struct foreign_file *out)
{
	const struct dso_identity *id = &dso->identity;
	struct foreign_want want = {
		.pid = seen->pid, .start = seen->start, .end = seen->end,
		.path = seen->path && *seen->path ? seen->path : NULL, .root = o->root,
		.maj = id->maj, .min = id->min, .ino = id->ino,
	};

	return foreign_open(&want, out, NULL);
}

int objects_open(const struct objects *o, const struct dso *dso, struct foreign_file *out,
		 char **path)
{
	struct dso_sighting seen;
	int rc;

	dsos_sighting(o->dsos, dso, &seen);
	if (o->no_proc)
		seen.pid = 0;
	rc = open_seen(o, dso, &seen, out);
	*path = seen.path;
	return rc;
}

/* Open the file where it was seen and build its image. */
static int load_file(const struct objects *o, const struct dso *dso,
		     const struct dso_sighting *seen, struct image **out)
{
	const struct dso_identity *id = &dso->identity;
	struct foreign_file file;
	int rc = open_seen(o, dso, seen, &file);

	if (rc)
		return rc;
	rc = image_from_file(out, file.fd, file.size, seen->path, NULL);
	close(file.fd);
	if (!rc && id->build_id_size && (*out)->build_id_size &&
	    (id->build_id_size != (*out)->build_id_size ||
	     memcmp(id->build_id, (*out)->build_id, id->build_id_size))) {
		image_free(*out);
		rc = -ESTALE;
	}
	return rc;
}

static int load(const struct objects *o, const struct dso *dso, const struct dso_sighting *seen,
		struct image **out)
{
	switch (dso->identity.kind) {
	case DSO_KERNEL:
		return load_kernel(out);
	case DSO_VDSO:
		return load_vdso(out);
	case DSO_FILE:
		return load_file(o, dso, seen, out);
	default:
		return -EINVAL;
	}
}

static void publish(struct objects *o, struct dso *dso, const struct image *image)
{
	atomic_fetch_add_explicit(&o->nr_images, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&o->memory, image_memory(image), memory_order_relaxed);
	explain_image(dso, image);
	/* Publishes the image's memory; pairs with the acquire of whoever uses dso->image. */
	atomic_store_explicit(&dso->image, image, memory_order_release);
	/* And the state after it: READY (acquire) means that there is an image. */
	atomic_store_explicit(&dso->state, DSO_READY, memory_order_release);
}

/* Load @dso and publish it or the reason why not. 0, -errno, -ECANCELED while stopping. */
static int load_and_publish(struct objects *o, struct dso *dso, pid_t *pid)
{
	struct dso_sighting seen;
	struct image *image = NULL;
	int rc;

	dsos_sighting(o->dsos, dso, &seen);
	*pid = seen.pid;
	if (o->no_proc)
		seen.pid = 0;
	rc = load(o, dso, &seen, &image);
	free(seen.path);
	if (atomic_load_explicit(o->stop, memory_order_acquire)) {
		if (!rc)
			image_free(image);
		return -ECANCELED;
	}
	if (!rc) {
		publish(o, dso, image);
		return 0;
	}
	explain(dso, rc);
	/* After the reason: FAILED (acquire) means that it stands. */
	atomic_store_explicit(&dso->state, DSO_FAILED, memory_order_release);
	return rc;
}

/* Take up the objects that came since. */
static void collect(struct objects *o)
{
	uint32_t nr = dsos_nr(o->dsos);

	for (; o->seen < nr; o->seen++) {
		struct dso *dso = dsos_at(o->dsos, o->seen);

		if (atomic_load_explicit(&dso->state, memory_order_relaxed) > DSO_WANTED)
			continue;
		if (o->nr_open == o->max_open) {
			uint32_t max = o->max_open ? o->max_open * 2 : 256;
			uint32_t *open = reallocarray(o->open, max, sizeof(*open));

			if (!open)
				return;		/* it is tried again at the next call */
			o->open = open;
			o->max_open = max;
		}
		o->open[o->nr_open++] = o->seen;
	}
}

bool objects_load_one(struct objects *o)
{
	collect(o);
	for (uint32_t i = 0; i < o->nr_open; i++) {
		struct dso *dso = dsos_at(o->dsos, o->open[i]);
		pid_t pid;
		int rc;

		if (atomic_load_explicit(&dso->state, memory_order_relaxed) != DSO_WANTED)
			continue;
		o->open[i] = o->open[--o->nr_open];
		rc = load_and_publish(o, dso, &pid);
		if (rc == -ECANCELED)
			return false;
		if (rc)
			atomic_fetch_add_explicit(&o->nr_failed, 1, memory_order_relaxed);
		if (rc && may_come(rc) && o->nr_retries < OBJECTS_RETRIES_MAX)
			o->retries[o->nr_retries++] = (struct objects_retry){ dso->id, pid, 1 };
		return true;
	}
	return false;
}

/* Try @r again if the object was seen in another process since. 0 when it came. */
static int retry_one(struct objects *o, struct objects_retry *r)
{
	struct dso *dso = dsos_at(o->dsos, r->id);
	struct dso_sighting seen;

	dsos_sighting(o->dsos, dso, &seen);
	free(seen.path);
	if (seen.pid == r->pid)
		return -EAGAIN;
	r->tries++;
	return load_and_publish(o, dso, &r->pid);
}

uint32_t objects_retry(struct objects *o, uint64_t now_ns)
{
	if (now_ns - o->retried_ns < RETRY_INTERVAL_NS)
		return DSO_ID_UNKNOWN;
	for (uint32_t i = 0; i < o->nr_retries;) {
		struct objects_retry *r = &o->retries[i];
		uint32_t id = r->id;
		int rc = retry_one(o, r);

		if (rc == -ECANCELED)
			return DSO_ID_UNKNOWN;
		if (rc && (rc == -EAGAIN || (may_come(rc) && r->tries < RETRY_TRIES_MAX))) {
			i++;
			continue;
		}
		o->retries[i] = o->retries[--o->nr_retries];
		if (!rc) {
			atomic_fetch_sub_explicit(&o->nr_failed, 1, memory_order_relaxed);
			return id;	/* the rest at the next call */
		}
	}
	o->retried_ns = now_ns;
	return DSO_ID_UNKNOWN;
}
