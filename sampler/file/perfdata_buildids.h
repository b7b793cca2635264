/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The build-ids of a recording's objects, by their names, from its header (or, in pipe mode, its
 * records): most mappings have none.
 *
 * One thread. Every byte of the file is hostile.
 */
#ifndef SAMPLER_FILE_PERFDATA_BUILDIDS_H
#define SAMPLER_FILE_PERFDATA_BUILDIDS_H

#include "symbols/base/base.h"
#include "symbols/kernel/kernel.h"

/* More are left out: objects; bytes of their names. */
#define PERFDATA_BUILD_IDS_MAX (1u << 18)
#define PERFDATA_NAMES_MAX     (64u << 20)

struct object_identity;

/* Zero-initialised is empty. */
struct perfdata_build_ids {
	struct perfdata_build_id {
		uint32_t name, name_size; /* in names */
		uint8_t id[20];
		uint8_t size;
	} * ids;
	uint32_t nr, room;
	char *names;
	size_t names_size, names_room;
	bool sorted;
};

/* Add the build-id of a record of @size bytes: of a file, or of the kernel. False: not valid.
 */
bool perfdata_build_ids_add(struct perfdata_build_ids *t, struct kernel_identity *kernel,
			    const uint8_t *record, size_t size);
/*
 * Set @id to the build-id of the object of that name. False, @id unchanged: it has none, or two
 * (the file was replaced while it was recorded).
 */
bool perfdata_build_ids_find(struct perfdata_build_ids *t, const char *name, size_t size,
			     struct object_identity *id);
void perfdata_build_ids_fini(struct perfdata_build_ids *t);

#endif
