/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of sampled JVMs, for tests: entries that look as if they had been read. */
#ifndef TESTS_MAKERS_JVM_TABLE_H
#define TESTS_MAKERS_JVM_TABLE_H

#include <unistd.h>

#include "symbols/java/internal.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"

static inline void open_table(struct jvm_table *h)
{
	struct objects *objects;

	assert_int_equal(objects_new(&objects), 0);
	jvm_table_init(h, objects);
	assert_int_equal(maps_new(&h->maps, objects, 64), 0);
}

static inline void close_table(struct jvm_table *h)
{
	struct objects *objects = h->objects;
	struct maps *maps = h->maps;

	jvm_table_fini(h);
	maps_free(maps);
	objects_free(objects);
}

/* Add a process of @uid, with code that was just read. */
static inline struct jvm_table_entry *add_read(struct jvm_table *h, uint64_t owner, uint32_t uid)
{
	const struct object_identity id = { .kind = OBJECT_ANON, .owner = owner };
	struct object *o = objects_intern(h->objects, &id, "//anon", 6, getpid(), 4096, 8192);
	struct jvm_table_entry *e = jvm_table_add_entry(h, o);

	assert_non_null(e);
	e->uid = uid;
	e->runs = true;
	e->scanned_ns = 1;
	atomic_store(&e->reading->job.state, JOB_DONE);
	return e;
}

static inline const char *reason_of(const struct jvm_table *h, const struct jvm_table_entry *e)
{
	const char *reason = atomic_load(&objects_at(h->objects, e->object)->reason);

	return reason ? reason : "";
}

/* Fill the code of @e with @nr new methods that have names of @size bytes. */
static inline void make_code(struct jvm_table_entry *e, uint32_t nr, uint32_t size,
			     uint32_t version)
{
	struct jvm_read *vm = &e->reading->vm;

	jvm_read_forget_code(vm);
	vm->blobs = calloc(nr, sizeof(*vm->blobs));
	vm->nr_blobs = nr;
	for (uint32_t i = 0; i < nr; i++) {
		struct jvm_read_blob *b = &vm->blobs[i];

		*b = (struct jvm_read_blob){ .start = (1ULL << 30) + i * 4096,
					     .end = (1ULL << 30) + i * 4096 + 2048,
					     .compile_id = version * nr + i,
					     .kind = JVM_READ_COMPILED,
					     .fresh = true,
					     .name = malloc(size + 1),
					     .name_size = (uint16_t)size };
		memset(b->name, 'x', size);
		b->name[size] = '\0';
		b->name[snprintf(b->name, size, "%u", i)] = 'x';
		vm->memory += jvm_read_blob_memory(b);
	}
}

#endif
