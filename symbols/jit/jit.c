// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions by (layer, address): a list of sorted leaves.
 *
 * A JIT may write a million functions in any order of address, one batch after
 * the other: an insertion must not move all.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"

#define LEAF_MAX 128U

struct leaf { /* ids, sorted by layer, then start; never empty */
	uint32_t nr;
	uint32_t ids[LEAF_MAX];
};

struct jitcode {
	struct jitcode_function *functions;
	uint32_t nr, max;
	struct leaf **leaves;
	uint32_t nr_leaves, max_leaves;
	uint32_t nr_layers;
	uint32_t *over; /* ids for jitcode_next_over() */
	uint32_t nr_over, max_over, next_over;
	struct jitcode_line *lines;
	uint32_t nr_lines, max_lines;
	char *texts;
	size_t texts_size, texts_max;
	uint32_t last_file; /* most lines follow one of the same file; UINT32_MAX: none */
};

/* A position in the leaves. */
struct spot {
	uint32_t leaf, index;
};

int jitcode_new(struct jitcode **out)
{
	struct jitcode *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->last_file = UINT32_MAX;
	*out = c;
	return 0;
}

void jitcode_free(struct jitcode *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr_leaves; i++)
		free(c->leaves[i]);
	free(c->leaves);
	free(c->functions);
	free(c->over);
	free(c->lines);
	free(c->texts);
	free(c);
}

static int add_text(struct jitcode *c, const char *text, size_t size, uint32_t *at)
{
	size_t need = c->texts_size + size + 1;

	if (need > JITCODE_NAMES_MAX)
		return -ENOSPC;
	if (need > c->texts_max) {
		size_t max = MAX(need, c->texts_max * 2);
		char *texts = realloc(c->texts, max);

		if (!texts)
			return -ENOMEM;
		c->texts = texts;
		c->texts_max = max;
	}
	*at = (uint32_t)c->texts_size;
	memcpy(c->texts + c->texts_size, text, size);
	c->texts[c->texts_size + size] = '\0';
	c->texts_size = need;
	return 0;
}

const char *jitcode_text(const struct jitcode *c, uint32_t at)
{
	return at < c->texts_size ? c->texts + at : "";
}

uint32_t jitcode_add_file(struct jitcode *c, const char *name, size_t size)
{
	size = strnlen(name, MIN(size, (size_t)JITCODE_NAME_MAX));
	if (c->last_file != UINT32_MAX && strlen(c->texts + c->last_file) == size &&
	    !memcmp(c->texts + c->last_file, name, size))
		return c->last_file;
	if (add_text(c, name, size, &c->last_file))
		c->last_file = UINT32_MAX;
	return c->last_file;
}

/* Return true if function @id is at or before (layer, addr). */
static bool is_before(const struct jitcode *c, uint32_t id, uint32_t layer, uint64_t addr)
{
	const struct jitcode_function *f = &c->functions[id];

	return f->layer != layer ? f->layer < layer : f->start <= addr;
}

/* Return the position after the last function that begins at or before (layer, addr). */
static struct spot spot_after(const struct jitcode *c, uint32_t layer, uint64_t addr)
{
	uint32_t lo =
		search_split(c->nr_leaves, i, is_before(c, c->leaves[i]->ids[0], layer, addr));
	const struct leaf *leaf = lo ? c->leaves[lo - 1] : NULL;

	if (!leaf)
		return (struct spot){ 0, 0 };
	return (struct spot){ lo - 1,
			      search_split(leaf->nr, i, is_before(c, leaf->ids[i], layer, addr)) };
}

/*
 * Find the last function of @layer that begins before @end and ends after @start;
 * UINT32_MAX: none.
 */
static uint32_t overlap(const struct jitcode *c, uint32_t layer, uint64_t start, uint64_t end)
{
	struct spot spot = spot_after(c, layer, end - 1);
	const struct jitcode_function *f;
	uint32_t id;

	if (!spot.index)
		return UINT32_MAX;
	id = c->leaves[spot.leaf]->ids[spot.index - 1];
	f = &c->functions[id];
	return f->layer == layer && f->start + f->size > start ? id : UINT32_MAX;
}

/* Insert a leaf after leaf @i, and move the upper half of leaf @i into it. */
static int split(struct jitcode *c, uint32_t i)
{
	struct leaf *left = c->leaves[i], *right;
	int rc = array_reserve(&c->leaves, &c->max_leaves, c->nr_leaves + 1ULL) ? 0 : -ENOMEM;

	if (rc)
		return rc;
	right = malloc(sizeof(*right));
	if (!right)
		return -ENOMEM;
	left->nr = LEAF_MAX / 2;
	right->nr = LEAF_MAX - left->nr;
	memcpy(right->ids, left->ids + left->nr, right->nr * sizeof(right->ids[0]));
	memmove(&c->leaves[i + 2], &c->leaves[i + 1], (c->nr_leaves - i - 1) * sizeof(*c->leaves));
	c->leaves[i + 1] = right;
	c->nr_leaves++;
	return 0;
}

/* Insert function @id at its position. */
static int insert(struct jitcode *c, uint32_t id)
{
	const struct jitcode_function *f = &c->functions[id];
	struct spot spot = spot_after(c, f->layer, f->start);
	struct leaf *leaf;
	int rc;

	if (!c->nr_leaves) {
		rc = array_reserve(&c->leaves, &c->max_leaves, 1) ? 0 : -ENOMEM;
		if (rc)
			return rc;
		c->leaves[0] = calloc(1, sizeof(**c->leaves));
		if (!c->leaves[0])
			return -ENOMEM;
		c->nr_leaves = 1;
	}
	if (c->leaves[spot.leaf]->nr == LEAF_MAX) {
		rc = split(c, spot.leaf);
		if (rc)
			return rc;
		spot = spot_after(c, f->layer, f->start);
	}
	leaf = c->leaves[spot.leaf];
	memmove(&leaf->ids[spot.index + 1], &leaf->ids[spot.index],
		(leaf->nr - spot.index) * sizeof(leaf->ids[0]));
	leaf->ids[spot.index] = id;
	leaf->nr++;
	return 0;
}

static void take_out(struct jitcode *c, uint32_t id)
{
	const struct jitcode_function *f = &c->functions[id];
	struct spot spot = spot_after(c, f->layer, f->start);
	struct leaf *leaf = c->leaves[spot.leaf];

	spot.index--;
	leaf->nr--;
	memmove(&leaf->ids[spot.index], &leaf->ids[spot.index + 1],
		(leaf->nr - spot.index) * sizeof(leaf->ids[0]));
	if (leaf->nr)
		return;
	free(leaf);
	c->nr_leaves--;
	memmove(&c->leaves[spot.leaf], &c->leaves[spot.leaf + 1],
		(c->nr_leaves - spot.leaf) * sizeof(*c->leaves));
}

/*
 * Return the layer above all that [start, end) overlaps; *below: the function on
 * top now, UINT32_MAX: none.
 */
static uint32_t layer_above(const struct jitcode *c, uint64_t start, uint64_t end, uint32_t *below)
{
	for (uint32_t layer = c->nr_layers; layer-- > 0;) {
		*below = overlap(c, layer, start, end);
		if (*below != UINT32_MAX)
			return layer + 1;
	}
	*below = UINT32_MAX;
	return 0;
}

static bool is_same(const struct jitcode *c, uint32_t id, const struct jitcode_load *load)
{
	const struct jitcode_function *f = &c->functions[id];

	return f->start == load->start && f->size == load->size && f->serial == load->serial &&
	       f->name_size == load->name_size &&
	       !memcmp(c->texts + f->name, load->name, load->name_size);
}

static int add_lines(struct jitcode *c, struct jitcode_function *f, const struct jitcode_load *load)
{
	int rc = 0;

	if (!load->nr_lines)
		return 0;
	/* A function without space for its lines is kept: the name is worth more. */
	if (load->nr_lines > JITCODE_LINES_MAX - c->nr_lines)
		return 0;
	rc = array_reserve(&c->lines, &c->max_lines, (uint64_t)c->nr_lines + load->nr_lines)
		     ? 0
		     : -ENOMEM;
	if (rc)
		return rc;
	memcpy(c->lines + c->nr_lines, load->lines, load->nr_lines * sizeof(*c->lines));
	f->first_line = c->nr_lines;
	f->nr_lines = load->nr_lines;
	c->nr_lines += load->nr_lines;
	return 0;
}

static int add_over(struct jitcode *c, uint32_t id)
{
	int rc = array_reserve(&c->over, &c->max_over, c->nr_over + 1ULL) ? 0 : -ENOMEM;

	if (!rc)
		c->over[c->nr_over++] = id;
	return rc;
}

/* Append a function to the list, not yet to the leaves. */
static int append(struct jitcode *c, const struct jitcode_load *load, uint32_t layer)
{
	struct jitcode_function f = {
		.start = load->start,
		.size = (uint32_t)load->size,
		.layer = layer,
		.time_ns = load->time_ns,
		.bytes_at = load->bytes_at,
		.serial = load->serial,
		.name_size = (uint32_t)load->name_size,
	};
	int rc = c->nr < JITCODE_FUNCTIONS_MAX ? 0 : -ENOSPC;

	if (!rc)
		rc = array_reserve(&c->functions, &c->max, c->nr + 1ULL) ? 0 : -ENOMEM;
	if (!rc)
		rc = add_text(c, load->name, load->name_size, &f.name);
	if (!rc)
		rc = add_lines(c, &f, load);
	if (!rc)
		c->functions[c->nr++] = f;
	return rc;
}

int jitcode_add(struct jitcode *c, const struct jitcode_load *given)
{
	struct jitcode_load load = *given;
	uint32_t layer, below, id;
	uint64_t end;
	int rc;

	load.name_size = strnlen(load.name, MIN(load.name_size, (size_t)JITCODE_NAME_MAX));
	if (!load.size || load.size > JITCODE_SIZE_MAX || !load.name_size ||
	    __builtin_add_overflow(load.start, load.size, &end))
		return -EINVAL;
	layer = layer_above(c, load.start, end, &below);
	if (below != UINT32_MAX && is_same(c, below, &load)) {
		c->functions[below].bytes_at = load.bytes_at;
		/* The memory may have been freed and reused in between. */
		return c->functions[below].layer ? add_over(c, below) : 0;
	}
	if (layer == JITCODE_LAYERS) {
		layer--;
		while ((below = overlap(c, layer, load.start, end)) != UINT32_MAX)
			take_out(c, below);
	}
	rc = append(c, &load, layer);
	if (rc)
		return rc;
	id = c->nr - 1;
	rc = insert(c, id);
	if (rc) {
		c->nr--;
		return rc;
	}
	c->nr_layers = MAX(c->nr_layers, layer + 1);
	return layer ? add_over(c, id) : 0;
}

const struct jitcode_function *jitcode_find(const struct jitcode *c, uint32_t layer, uint64_t addr)
{
	uint32_t id = addr < UINT64_MAX ? overlap(c, layer, addr, addr + 1) : UINT32_MAX;

	return id == UINT32_MAX ? NULL : &c->functions[id];
}

const struct jitcode_function *jitcode_latest(const struct jitcode *c, uint64_t addr)
{
	const struct jitcode_function *f = NULL;

	for (uint32_t layer = c->nr_layers; !f && layer-- > 0;)
		f = jitcode_find(c, layer, addr);
	return f;
}

const struct jitcode_line *jitcode_line(const struct jitcode *c, const struct jitcode_function *f,
					uint64_t addr)
{
	const struct jitcode_line *lines = f->nr_lines ? c->lines + f->first_line : NULL;
	uint32_t lo = search_split(f->nr_lines, i, lines[i].offset <= addr - f->start);

	return lo ? &lines[lo - 1] : NULL;
}

const struct jitcode_function *jitcode_next_over(struct jitcode *c)
{
	if (c->next_over == c->nr_over) {
		c->next_over = c->nr_over = 0;
		return NULL;
	}
	return &c->functions[c->over[c->next_over++]];
}

uint32_t jitcode_nr(const struct jitcode *c)
{
	return c->nr;
}

size_t jitcode_memory(const struct jitcode *c)
{
	return sizeof(*c) + c->max * sizeof(*c->functions) + c->nr_leaves * sizeof(struct leaf) +
	       c->max_leaves * sizeof(*c->leaves) + c->max_over * sizeof(*c->over) +
	       c->max_lines * sizeof(*c->lines) + c->texts_max;
}

size_t jitcode_growth(const struct jitcode *c, size_t name_size)
{
	size_t texts = c->texts_size + name_size + 1;
	size_t grows = c->nr == c->max ? c->max * sizeof(*c->functions) : 0;

	return grows + (texts > c->texts_max ? MAX(texts, c->texts_max * 2) - c->texts_max : 0);
}
