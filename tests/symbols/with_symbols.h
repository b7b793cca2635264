/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols, and everything they need, for tests of this very process. */
#ifndef TESTS_SYMBOLS_WITH_SYMBOLS_H
#define TESTS_SYMBOLS_WITH_SYMBOLS_H

#include "symbols/symbols.h"
#include "tests/prelude.h"

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

#endif
