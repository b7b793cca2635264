/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of code, the names and the chains of a JVM that a worker has returned. */
#ifndef TESTS_JVM_SANE_H
#define TESTS_JVM_SANE_H

#include <string.h>

#include "symbols/java/internal.h"
#include "symbols/elf/elf.h"

/* Return whether they are within the limits that the rest of proftop relies on. */
static inline bool jvm_is_sane(const struct jvm_read_job *j)
{
	size_t sum = 0;
	bool sane = j->vm.nr_heaps <= JVM_READ_HEAPS_MAX && j->nr_first <= JVM_READ_FIRST_MAX;

	for (uint32_t i = 0; i < j->vm.nr_blobs && sane; i++) {
		const struct jvm_read_blob *b = &j->vm.blobs[i];

		sane = jvm_read_blob_is_valid(b) && (!i || b->start >= b[-1].end) &&
		       (!b->name || strlen(b->name) == b->name_size);
		sum += jvm_read_blob_memory(b);
	}
	for (uint32_t i = 0; i < j->nr_methods && sane; i++)
		sane = !j->methods[i].name || strlen(j->methods[i].name) < JVM_READ_NAME_MAX;
	for (uint32_t i = 0; i < j->nr_chains && sane; i++) {
		const struct jvm_read_job_chain *c = &j->chains[i];

		sane = c->nr <= JVM_READ_FRAMES_MAX;
		for (uint32_t k = 0; k < c->nr && sane; k++)
			sane = strlen(c->frames[k].name) < JVM_READ_NAME_MAX &&
			       strlen(c->frames[k].file) < sizeof(j->frames->file);
	}
	return sane && sum == j->vm.memory;
}

#endif
