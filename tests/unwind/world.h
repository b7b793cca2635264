/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that an unwinder needs, loaded on the caller's thread: objects, maps,
 * places, images. The caller is a registered urcu-qsbr thread.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/maps.c"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

struct world {
	struct objects *objects;
	struct places *places;
	struct maps *maps;
	struct symbols *symbols;
	const struct space *space;
	struct unwinder *row;  /* each sample verified by libunwind alone */
	struct unwinder *step; /* libunwind alone */
};

static inline void world_must(int rc)
{
	if (rc) {
		fprintf(stderr, "cannot set up: %s\n", strerror(-rc));
		abort();
	}
}

/* @nr_places: slots of the table. */
static inline void world_new_with(struct world *w, uint32_t nr_places)
{
	const struct unwind_config verified = { .verify_every = 1 }, steps = { .step_only = true };

	memset(w, 0, sizeof(*w));
	world_must(objects_new(&w->objects));
	world_must(places_new(&w->places, nr_places));
	world_must(maps_new(&w->maps, w->objects, 1u << 10));
	world_must(symbols_new(&w->symbols, w->places, w->objects, w->maps, NULL));
	world_must(unwind_new_with(&w->row, w->places, w->objects, &verified, NULL));
	world_must(unwind_new_with(&w->step, w->places, w->objects, &steps, NULL));
}

static inline void world_new(struct world *w)
{
	world_new_with(w, 1u << 20);
}

static inline void world_find(struct world *w, pid_t pid)
{
	struct maps_hit hit;

	maps_publish(w->maps, time_now_ns(), 0);
	maps_find(w->maps, maps_tasks(w->maps), pid, pid, time_now_ns(), &hit);
	w->space = hit.space;
	if (!w->space)
		abort();
}

/* Map file @ino at @start in the process @pid, which need not exist. Return its object. */
static inline struct object *world_map_file(struct world *w, uint64_t ino, pid_t pid,
					    uint64_t start, uint64_t size)
{
	static const char path[] = "/made/by/this/test";
	const struct maps_mmap ev = {
		.pid = pid,
		.tid = pid,
		.start = start,
		.size = size,
		.time_ns = time_now_ns(),
		.prot = PROT_READ | PROT_EXEC,
		.identity = { .kind = OBJECT_FILE, .maj = 77, .ino = ino, .ino_generation = 1 },
		.filename = path,
		.filename_size = sizeof(path) - 1,
	};
	const struct mapping *m;

	maps_on_mmap(w->maps, &ev);
	world_find(w, pid);
	m = space_find(w->space, start, time_now_ns());
	world_must(m ? 0 : -ESRCH);
	return m->object;
}

/* Map @image as the only file of the process. */
static inline const struct space *world_map(struct world *w, struct image *image, pid_t pid,
					    uint64_t start, uint64_t size)
{
	struct object *object;

	maps_on_comm(w->maps, pid, pid, "made", 4, true, time_now_ns());
	object = world_map_file(w, 1234567, pid, start, size);
	atomic_store_explicit(&object->image, image, memory_order_release);
	atomic_store_explicit(&object->state, OBJECT_READY, memory_order_relaxed);
	return w->space;
}

static inline void world_free(struct world *w)
{
	unwind_free(w->row);
	unwind_free(w->step);
	symbols_free(w->symbols);
	maps_free(w->maps);
	places_free(w->places);
	objects_free(w->objects);
}

/* An emulator shows the maps of the emulated program under this name only: report them by events.
 */
static inline void world_load_emulated(struct world *w)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct procfs_text text;
	struct procfs_map line;
	static char bytes[1 << 20];

	if (!f)
		return;
	text = (struct procfs_text){ .at = bytes,
				     .end = bytes + fread(bytes, 1, sizeof(bytes), f) };
	fclose(f);
	while (procfs_next_map(&text, &line)) {
		const struct maps_mmap ev = {
			.pid = getpid(),
			.tid = getpid(),
			.start = line.start,
			.size = line.end - line.start,
			.pgoff = line.offset,
			.time_ns = time_now_ns(),
			.prot = PROT_READ | PROT_EXEC,
			.identity = { .maj = line.maj, .min = line.min, .ino = line.ino },
			.filename = line.path,
			.filename_size = line.path_size,
		};

		if (line.exec)
			maps_on_mmap(w->maps, &ev);
	}
}

static inline void world_maps(struct world *w, pid_t pid)
{
	struct maps_hit hit;

	world_must(maps_load(w->maps, pid));
	maps_publish(w->maps, time_now_ns(), 0);
	maps_find(w->maps, maps_tasks(w->maps), pid, pid, time_now_ns(), &hit);
	if (pid == getpid() &&
	    !space_find(hit.space, (uint64_t)(uintptr_t)&maps_load, time_now_ns()))
		world_load_emulated(w);
}

/* Read the process's maps and load the images of all that it has mapped. */
static inline void world_load(struct world *w, pid_t pid)
{
	world_maps(w, pid);
	for (uint32_t id = OBJECT_ID_FIRST - 1; id < objects_nr(w->objects); id++)
		object_want(objects_at(w->objects, id));
	symbols_run(w->symbols);
	world_find(w, pid);
}

#endif
