/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols, and everything they need, for tests of this very process. */
#ifndef TESTS_SYMBOLS_WITH_SYMBOLS_H
#define TESTS_SYMBOLS_WITH_SYMBOLS_H

#include <inttypes.h>
#include <unistd.h>

#include "symbols/symbols.h"
#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"

struct fixture {
	struct places *places;
	struct objects *objects;
	struct maps *maps;
	struct symbols *symbols;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e;

	assert_int_equal(places_new(&f->places, 1 << 20), 0);
	assert_int_equal(objects_new(&f->objects), 0);
	assert_int_equal(maps_new(&f->maps, f->objects, 1000), 0);
	assert_int_equal(symbols_new(&f->symbols, f->places, f->objects, f->maps, &e), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbols_free(f->symbols);
	maps_free(f->maps);
	objects_free(f->objects);
	places_free(f->places);
	free(f);
	return 0;
}

/* The mapping of this process that holds @addr: its object and @addr's file offset in it. */
__attribute__((unused)) static struct object *object_at(struct fixture *f, uint64_t addr,
							uint64_t *offset)
{
	struct object_identity id = { .kind = OBJECT_FILE };
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end, pgoff;
	struct object *object = NULL;
	char line[4096 + 128], path[4096];

	while (!object && fgets(line, sizeof(line), maps)) {
		path[0] = '\0';
		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %4095[^\n]",
			   &start, &end, &pgoff, &id.maj, &id.min, &id.ino, path) < 6 ||
		    addr < start || addr >= end)
			continue;
		if (strstr(path, "[vdso]"))
			id.kind = OBJECT_VDSO;
		*offset = addr - start + pgoff;
		object = objects_intern(f->objects, &id, path, strlen(path), getpid(), start, end);
	}
	fclose(maps);
	return object;
}

#endif
