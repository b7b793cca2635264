// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code of JITs over time, in layers; layouts of its frames; runtimes of processes, their problems
 * and the fix of each; bounded jobs that read their files.
 *
 * Runs on: the loader; look-ups on sampler threads.
 */
#include "symbols/jit/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"

struct codemap *codemap_new(uint32_t nr_codes, uint32_t nr_methods, uint32_t nr_calls)
{
	size_t codes = nr_codes * sizeof(struct codemap_code);
	size_t methods = nr_methods * sizeof(struct codemap_method);
	struct codemap *m = calloc(1, sizeof(*m) + codes + methods + nr_calls * sizeof(uint64_t));

	if (!m)
		return NULL;
	m->nr_codes = nr_codes;
	m->nr_methods = nr_methods;
	m->nr_calls = nr_calls;
	m->methods = (const void *)((char *)m->codes + codes);
	m->calls = (const void *)((char *)m->codes + codes + methods);
	return m;
}

const struct codemap *codemap_publish(struct object *object, const struct codemap *map)
{
	/* Release: the table is complete. Pairs with the acquire in the unwinder's walk. */
	return atomic_exchange_explicit(&object->codemap, map, memory_order_acq_rel);
}

static void free_map(struct reclaim *head)
{
	reclaim_grace_over();
	free(caa_container_of(head, struct codemap, rcu));
}

void codemap_reclaim(const struct codemap *map)
{
	if (map)
		reclaim_later(&((struct codemap *)(uintptr_t)map)->rcu, free_map);
}

const struct codemap_code *codemap_find(const struct codemap *map, uint64_t pc)
{
	uint32_t low = search_split(map->nr_codes, i, map->codes[i].start <= pc);

	assert(map->nr_codes < UINT32_MAX);
	return low && pc - map->codes[low - 1].start < map->codes[low - 1].size
		       ? &map->codes[low - 1]
		       : NULL;
}

const struct codemap_method *codemap_method(const struct codemap *map, uint64_t method)
{
	uint32_t low = search_split(map->nr_methods, i, map->methods[i].method < method);

	return low < map->nr_methods && map->methods[low].method == method ? &map->methods[low]
									   : NULL;
}

bool codemap_describes(const struct codemap *map, uint64_t pc)
{
	uint32_t low = search_split(map->nr_calls, i, map->calls[i] < pc);

	return low < map->nr_calls && map->calls[low] == pc;
}

/*
 * Functions by (layer, address): a list of sorted leaves.
 *
 * A JIT may write a million functions in any order of address, one batch after
 * the other: an insertion must not move all.
 *
 * Runs on: the loader.
 */

#define JITCODE_FUNCTIONS_MAX (1U << 20)
#define JITCODE_NAMES_MAX     (64UL << 20) /* bytes of names and of files */
#define JITCODE_LINES_MAX     (4U << 20)
#define LEAF_MAX	      128U

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
	assert(name || !size);
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

	assert(id < c->nr);
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

	assert(i < c->nr_leaves);
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

	assert(id < c->nr);
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

	assert(id < c->nr);
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

	assert(id < c->nr);
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

	assert(addr >= f->start);
	return lo ? &lines[lo - 1] : NULL;
}

const struct jitcode_function *jitcode_next_over(struct jitcode *c)
{
	assert(c->next_over <= c->nr_over);
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

/*
 * Find processes with anonymous code and neither a perf map nor a jitdump.
 *
 * Any one thread that may wait; a /tmp that hangs holds a helper only. Here it is enough that a map
 * exists; the loader checks its owner.
 */

#define PROC_TEXT_MAX (64U << 10)
#define SEARCH_NS     500000000ULL /* a longer search hangs */
#define HANGING_MAX   4U	   /* then no other one is begun */

struct check {
	const char *root;
	struct helpers *helpers;
	unsigned int nr_hanging;
};

/* Return true if the file has a name of jitdumps: see jit.h. */
static bool is_dump(const struct procfs_map *map)
{
	const char *name = map->path_size ? memrchr(map->path, '/', map->path_size) : NULL;
	size_t size = name ? (size_t)(map->path + map->path_size - name) : 0;

	return size > 5 && !memcmp(name, "/jit-", 5) && isdigit((unsigned char)name[5]);
}

/* Return true if there is code without a file, and no jitdump is mapped. */
static bool has_untold_code(const char *maps, size_t size)
{
	struct procfs_text text = { .at = maps, .end = maps + size };
	struct procfs_map map;
	bool code = false;

	while (procfs_next_map(&text, &map)) {
		if (!map.exec)
			continue;
		if (is_dump(&map))
			return false;
		code |= !map.path_size;
	}
	return code;
}

/* A job: search one perf map. It uses nothing but this. */
struct search {
	struct job job;
	char root[512], path[64];
	bool found;
};

static void run_search(struct job *job)
{
	struct search *s = (struct search *)job;
	struct untrusted_want want = { .root = s->root, .path = s->path };
	struct untrusted_file file;

	s->found = !untrusted_open(&want, &file, NULL);
	if (s->found)
		close(file.fd);
}

static void drop_search(struct job *job)
{
	free(job);
}

/* Test for a perf map; one that cannot be seen in time is assumed. */
static bool has_map(struct check *c, int dir_fd, pid_t pid)
{
	struct search *s;
	uint64_t inner = (uint64_t)pid;
	char *status;
	size_t size;
	bool found;

	if (c->nr_hanging == HANGING_MAX ||
	    untrusted_read_at(dir_fd, "status", PROC_TEXT_MAX, &status, &size))
		return true;
	procfs_status_inner(status, size, &inner);
	s = calloc(1, sizeof(*s));
	if (s) {
		s->job.run = run_search;
		s->job.drop = drop_search;
		snprintf(s->root, sizeof(s->root), "%s/proc/%d/root", c->root, pid);
		snprintf(s->path, sizeof(s->path), "/tmp/perf-%" PRIu64 ".map", inner);
	}
	free(status);
	if (!s)
		return true;
	if (helpers_call(c->helpers, &s->job, time_now_ns() + SEARCH_NS)) {
		c->nr_hanging++;
		return true;
	}
	found = s->found;
	free(s);
	return found;
}

static void name_program(int dir_fd, char *dst, size_t size)
{
	char *text;
	size_t nr;

	if (untrusted_read_at(dir_fd, "comm", PROC_TEXT_MAX, &text, &nr)) {
		snprintf(dst, size, "?");
		return;
	}
	text_sanitise(dst, size, text, strcspn(text, "\n"));
	free(text);
}

static bool is_silent(struct check *c, int dir_fd, pid_t pid)
{
	size_t size;
	char *maps;
	bool code;

	if (untrusted_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		return false;
	code = has_untold_code(maps, size);
	free(maps);
	return code && !has_map(c, dir_fd, pid);
}

uint32_t jitcheck_find(const char *root, struct jitcheck *out, uint32_t max)
{
	struct check c = { .root = root };
	char path[512];
	struct dirent *d;
	uint32_t nr = 0;
	DIR *proc;

	assert(out && max);
	if (helpers_new(&c.helpers, -1))
		return 0;
	snprintf(path, sizeof(path), "%s/proc", root);
	proc = opendir(path);
	while (proc && (d = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)d->d_name[0])
				    ? (pid_t)strtol(d->d_name, NULL, 10)
				    : 0;
		int fd = pid > 0 ? openat(dirfd(proc), d->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC)
				 : -1;

		if (fd < 0)
			continue;
		if (is_silent(&c, fd, pid)) {
			if (nr < max) {
				out[nr] = (struct jitcheck){
					.pid = pid, .fix = runtime_fix_of(RUNTIME_NO_MAP, fd)
				};
				name_program(fd, out[nr].program, sizeof(out[nr].program));
			}
			nr++;
		}
		close(fd);
	}
	if (proc)
		closedir(proc);
	helpers_free(c.helpers, time_now_ns());
	return nr;
}

/*
 * Parts of files for readers in the sandbox.
 *
 * Runs on: a helper.
 */

#define PIECE (256U << 10)

/* Read one piece. Return its size, 0 at the end, or -errno. */
static ssize_t read_piece(int file, uint64_t at, uint8_t *piece, size_t max, struct watch *watch)
{
	ssize_t nr = watch_begin(watch);

	if (nr)
		return nr;
	do {
		nr = pread(file, piece, max, (off_t)at);
	} while (nr < 0 && errno == EINTR);
	nr = nr < 0 ? -errno : nr;
	watch_end(watch, (uint64_t)MAX(nr, 0));
	return nr;
}

int jitcopy(int file, uint64_t at, size_t max, struct watch *watch, size_t *size)
{
	uint8_t *piece = malloc(PIECE);
	int fd = piece ? sandbox_file() : -1;
	ssize_t nr = fd < 0 ? -ENOMEM : 1;

	assert(file >= 0);
	*size = 0;
	while (nr > 0 && *size < max) {
		nr = read_piece(file, at + *size, piece, MIN(max - *size, (size_t)PIECE), watch);
		if (nr <= 0)
			break;
		*size += (size_t)nr;
		if (fd_write_all(fd, piece, (size_t)nr))
			nr = -ENOMEM;
	}
	free(piece);
	if (fd >= 0)
		sandbox_fix_size(fd);
	if (nr < 0 && fd >= 0) {
		close(fd);
		fd = -1;
	}
	return nr < 0 ? (int)nr : fd;
}

/*
 * Language runtimes, their problems, and the fixes.
 *
 * Any thread.
 */

#define NOT_READ(language) "proftop does not read functions of " language

struct runtime {
	const char *program; /* the program's name, without its version; with '-' a prefix */
	const char *library; /* or part of a mapped path; NULL: nothing typical */
	bool host; /* generates no code: code without a file is that of a library, if one does */
	const char *fix[RUNTIME_NR_PROBLEMS]; /* NULL: that of all others */
};

static const struct runtime runtimes[] = {
	{ "node",
	  "/libnode.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: node --perf-basic-prof" } },
	{ "deno",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: deno run "
			       "--v8-flags=--perf-basic-prof,--interpreted-frames-native-stack",
	    [RUNTIME_NO_CFI] = "none: Deno is built without unwind tables" } },
	{ "bun",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment BUN_JSC_useJITDump=1",
	    [RUNTIME_NO_CFI] = "none: Bun is built without unwind tables" } },
	{ "electron",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof" } },
	{ "chrome",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof --no-sandbox" } },
	{ "chromium",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof --no-sandbox" } },
	{ "java",
	  "/libjvm.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with -XX:+PreserveFramePointer, then: jcmd PID "
			       "Compiler.perfmap (JDK 17)",
	    [RUNTIME_CUT] = "without G1: java -XX:+UseCountedLoopSafepoints; with G1 none: the "
			    "innermost method of a loop may be its caller" } },
	{ "dotnet",
	  "/libcoreclr.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment DOTNET_PerfMapEnabled=1 "
			       "(before .NET 6: COMPlus_PerfMapEnabled=1)" } },
	{ "mono",
	  "/libmonosgen",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: mono --jitmap; it writes the last names when it "
			       "ends, for --replay of a recording" } },
	{ "luajit",
	  "luajit",
	  false,
	  { [RUNTIME_NO_MAP] = "build LuaJIT with XCFLAGS=-DLUAJIT_USE_PERFTOOLS: it then writes a "
			       "perf map; or start it with: luajit -joff" } },
	{ "pypy",
	  "/libpypy",
	  false,
	  { [RUNTIME_NO_MAP] = "none: PyPy writes no perf map",
	    [RUNTIME_SCRIPTS] = NOT_READ("PyPy") } },
	{ "beam.smp",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment ERL_FLAGS=\"+JPperf true\"" } },
	{ "julia",
	  "/libjulia",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment ENABLE_JITPROFILING=1" } },
	{ "qemu-",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: qemu -perfmap (8.0 or later): addresses of guest "
			       "code instead of names; it writes the last ones when it ends, for "
			       "--replay of a recording" } },
	{ "wasmtime",
	  "/libwasmtime",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: wasmtime --profile=perfmap" } },
	{ "postgres",
	  "/llvmjit.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start the session with: PGOPTIONS='-c "
			       "jit_profiling_support=on'" } },
	{ "guile",
	  "/libguile-",
	  false,
	  { [RUNTIME_NO_MAP] = "none: Guile writes no perf map; GUILE_JIT_THRESHOLD=-1 switches "
			       "its "
			       "JIT off",
	    [RUNTIME_SCRIPTS] = NOT_READ("Scheme") } },
	{ "scheme", NULL, false, { [RUNTIME_NO_MAP] = "none: Chez Scheme writes no perf map" } },
	{ "racket", NULL, false, { [RUNTIME_NO_MAP] = "none: Racket writes no perf map" } },
	{ "sbcl",
	  "/sbcl.core",
	  false,
	  { [RUNTIME_NO_MAP] = "none: SBCL writes no perf map; Lisp code of the program can",
	    [RUNTIME_SCRIPTS] = NOT_READ("Lisp in a core file") } },
	/* Interpreters. */
	{ "tclsh", "/libtcl", false, { [RUNTIME_SCRIPTS] = NOT_READ("Tcl") } },
	{ "R", "/libR.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("R") } },
	{ "octave-cli", "/liboctinterp.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Octave") } },
	{ "bash", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "dash", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "zsh", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "ksh", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "gawk", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("awk") } },
	{ "mawk", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("awk") } },
	{ "bc", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("bc") } },
	{ "gforth", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("Forth") } },
	{ "swipl", "/libswipl.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Prolog") } },
	{ "ocamlrun", "/libcamlrun", false, { [RUNTIME_SCRIPTS] = NOT_READ("OCaml bytecode") } },
	{ "ecl", "/libecl.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Lisp bytecode") } },
	{ NULL, "/plpgsql.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("PL/pgSQL") } },
	{ NULL, "/ngx_http_js_module", false, { [RUNTIME_SCRIPTS] = NOT_READ("njs") } },
	/* Libraries with code in assembler, and a C library without tables. */
	{ NULL, "/ld-musl-", false, { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL, "/libc.musl-", false, { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL,
	  "-linux-musl/libc.so",
	  false,
	  { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL,
	  "/libgmp.so",
	  false,
	  { [RUNTIME_NO_CFI] = "none: its assembler code has no unwind tables" } },
	{ NULL,
	  "openblas",
	  false,
	  { [RUNTIME_NO_CFI] = "none: its assembler code has no unwind tables" } },
	/* Interpreters that load any library: last. */
	{ "python",
	  "/libpython3",
	  true,
	  { [RUNTIME_NO_MAP] = "none of Python's: a library generated it (as Numba or LuaJIT) and "
			       "wrote no perf map" } },
	{ "php", "/libphp", true, { [RUNTIME_NO_MAP] = "set opcache.jit_debug=0x10" } },
	{ "ruby",
	  "/libruby",
	  true,
	  { [RUNTIME_NO_MAP] = "start it with: ruby --yjit --yjit-perf=map (3.3 or later)" } },
	{ "perl",
	  "/libperl.so",
	  true,
	  { [RUNTIME_NO_MAP] = "none of Perl's: a library generated it and wrote no perf map" } },
};

static const char *const others[RUNTIME_NR_PROBLEMS] = {
	[RUNTIME_NO_MAP] = "have its JIT write a perf map (/tmp/perf-PID.map)",
	[RUNTIME_NO_CFI] = "C and C++: build it with -fasynchronous-unwind-tables; assembler needs "
			   ".cfi lines; others: none",
	[RUNTIME_CUT] = "none: native frames without unwind tables are in between, or the stack is "
			"truncated; see the messages on stacks",
	[RUNTIME_UNALIGNED] = "none: native frames are exact; report it if it lasts",
	[RUNTIME_UNTRIED] = "none: native frames are exact",
	[RUNTIME_LATE] = "a real-time priority for the readers: cap_sys_nice (make install "
			 "SETCAP=1), or a lower rate (-F)",
	[RUNTIME_LATE_FIRST] = "a lower rate (-F): the CPUs are busy with other readers",
};

/* Return whether @name is the program @of, with a version or a suffix at most: "lua5.4". */
static bool is_program(const char *name, const char *of)
{
	size_t size = strlen(of);

	if (strncmp(name, of, size) != 0)
		return false;
	return of[size - 1] == '-' || !isalpha((unsigned char)name[size]);
}

static const struct runtime *find_program(const char *path, bool host)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i].program && runtimes[i].host == host &&
		    is_program(name, runtimes[i].program))
			return &runtimes[i];
	return NULL;
}

/* Find a library in @text that has a fix of @problem. */
static const struct runtime *find_library(enum runtime_problem problem, const char *text,
					  size_t size, bool host)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		const struct runtime *r = &runtimes[i];

		if (r->library && r->fix[problem] && r->host == host &&
		    memmem(text, size, r->library, strlen(r->library)))
			return r;
	}
	return NULL;
}

const char *runtime_fix(enum runtime_problem problem, const char *exe, const char *maps,
			size_t maps_size)
{
	const struct runtime *r = find_program(exe, false);

	assert((unsigned int)problem < ARRAY_SIZE(others));
	if (!r || !r->fix[problem])
		r = find_library(problem, maps, maps_size, false);
	if (!r)
		r = find_program(exe, true);
	if (!r || !r->fix[problem])
		r = find_library(problem, maps, maps_size, true);
	return r && r->fix[problem] ? r->fix[problem] : others[problem];
}

const char *runtime_fix_in(enum runtime_problem problem, const char *path)
{
	return runtime_fix(problem, path, path, strlen(path));
}

const char *runtime_fix_of(enum runtime_problem problem, int dir_fd)
{
	char exe[PATH_MAX], *maps = NULL;
	ssize_t nr = readlinkat(dir_fd, "exe", exe, sizeof(exe) - 1);
	const char *fix;
	size_t size = 0;

	exe[MAX(nr, 0)] = '\0';
	if (untrusted_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		maps = NULL;
	fix = runtime_fix(problem, exe, maps ? maps : "", maps ? size : 0);
	free(maps);
	return fix;
}

/*
 * Bounded jobs for the files of JIT compilers. Runs on: the loader.
 */

#define JITREADS_UNTRUSTED_MAX 4U /* of sources that any user can make */
#define JITREADS_HANG_NS       500000000ULL

#define END_CHECK_NS 10000000000ULL

/* Return the inode of a mount namespace; 0: unknown. */
static uint64_t namespace_of(const char *link)
{
	char text[64];
	ssize_t nr = readlink(link, text, sizeof(text) - 1);

	if (nr < 5)
		return 0;
	text[nr] = '\0';
	return strtoull(text + 5, NULL, 10); /* "mnt:[4026531840]" */
}

void jitreads_namespace(struct jitread *read, pid_t pid)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/ns/mnt", pid);
	read->source = namespace_of(link);
	read->untrusted = read->source != namespace_of("/proc/self/ns/mnt");
}

void jitreads_device(struct jitread *read, uint32_t maj, uint32_t min)
{
	read->source = 1ULL << 63 | (uint64_t)maj << 32 | min;
	read->untrusted = !maj; /* no disk: FUSE, NFS, tmpfs */
}

bool jitread_hangs(const struct jitread *read, uint64_t now_ns)
{
	return !helper_job_done(&read->job) &&
	       watch_blocked_ns(&read->job.watch, now_ns) > JITREADS_HANG_NS;
}

bool jitreads_has_room(const struct jitreads *r)
{
	uint64_t now_ns = time_now_ns();
	unsigned int nr_hanging = 0;

	assert(r->nr <= ARRAY_SIZE(r->running));
	for (unsigned int i = 0; i < r->nr; i++)
		nr_hanging += jitread_hangs(r->running[i], now_ns);
	return r->nr - nr_hanging < JITREADS_ACTIVE_MAX && r->nr < ARRAY_SIZE(r->running);
}

/* Test whether the source of @read answers, as far as is known: 0, -ETIME. */
static int admit(const struct jitreads *r, const struct jitread *read, uint64_t now_ns)
{
	unsigned int nr_hanging = 0, nr_untrusted = 0;

	for (unsigned int i = 0; i < r->nr; i++) {
		if (!jitread_hangs(r->running[i], now_ns))
			continue;
		if (r->running[i]->source == read->source)
			return -ETIME;
		nr_hanging++;
		nr_untrusted += r->running[i]->untrusted;
	}
	return nr_hanging >= JITREADS_HANGING_MAX ||
			       (read->untrusted && nr_untrusted >= JITREADS_UNTRUSTED_MAX)
		       ? -ETIME
		       : 0;
}

int jitreads_start(struct jitreads *r, struct jitread *read)
{
	int rc = jitreads_has_room(r) ? admit(r, read, time_now_ns()) : -EAGAIN;

	assert(read->job.run);
	if (rc)
		return rc;
	if (!r->helpers) {
		read->job.run(&read->job);
		atomic_store_explicit(&read->job.state, JOB_DONE, memory_order_relaxed);
		return 0;
	}
	rc = helpers_start(r->helpers, &read->job);
	if (rc)
		return rc;
	assert(r->nr < ARRAY_SIZE(r->running));
	r->running[r->nr++] = read;
	return 0;
}

static void forget(struct jitreads *r, const struct jitread *read)
{
	for (unsigned int i = 0; i < r->nr; i++) {
		if (r->running[i] == read) {
			r->running[i] = r->running[--r->nr];
			return;
		}
	}
}

bool jitreads_ended(struct jitreads *r, const struct jitread *read)
{
	if (!helper_job_done(&read->job))
		return false;
	forget(r, read);
	return true;
}

void jitreads_leave(struct jitreads *r, struct jitread *read)
{
	forget(r, read);
	helper_job_leave(&read->job);
}

uint32_t jitreads_user_of(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid > 0 && !stat(path, &st) ? st.st_uid : UINT32_MAX;
}

uint32_t jitreads_user_with(struct objects *objects, const struct object *object)
{
	struct object_sighting seen;

	objects_sighting(objects, object, &seen);
	free(seen.path);
	return jitreads_user_of(seen.pid);
}

uint32_t jitreads_victim(const struct jitreads_candidate *candidates, uint32_t nr, uint32_t uid)
{
	uint32_t oldest = UINT32_MAX, nr_user = 0;

	assert(candidates || !nr);
	for (uint32_t i = 0; i < nr; i++)
		nr_user += candidates[i].uid == uid;
	for (uint32_t i = 0; i < nr; i++) {
		if (candidates[i].pinned || (nr_user >= nr / 2 && candidates[i].uid != uid))
			continue;
		if (oldest == UINT32_MAX || candidates[i].used < candidates[oldest].used)
			oldest = i;
	}
	assert(oldest == UINT32_MAX || oldest < nr);
	return oldest;
}

bool jitreads_expired(struct jitreads_end *e, pid_t pid, uint64_t now_ns, uint64_t keep_ns)
{
	if (pid > 0 && now_ns >= e->check_ns) {
		e->check_ns = now_ns + END_CHECK_NS;
		/* Another process with this pid keeps the code a little longer. */
		if (!kill(pid, 0) || errno != ESRCH)
			e->since_ns = 0;
		else if (!e->since_ns)
			e->since_ns = now_ns;
	}
	return e->since_ns && now_ns - e->since_ns >= keep_ns;
}
