// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read the code cache of a JVM. Runs on: a helper.
 */
#include "symbols/jit/hotspot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/bytes.h"
#include "symbols/base/foreign.h"
#include "symbols/jit/hotspot_blobs.h"
#include "symbols/object/elffacts.h"
#include "symbols/process/procfs.h"

#define SEGMENTS_MAX	(32U << 20)
#define LEVEL_OPTIMISED 4 /* compilerDefinitions.hpp, all versions */
#define LIBJVM		"/libjvm.so"

static bool is_libjvm(const struct procfs_map *map)
{
	size_t size = sizeof(LIBJVM) - 1;

	return map->path_size > size && !memcmp(map->path + map->path_size - size, LIBJVM, size);
}

/* Find the tables in the libjvm.so of @map. */
static int find_variables(struct hotspot_tables *t, struct remote *r, const struct procfs_map *map)
{
	char path[4096];
	size_t size = procfs_unescape(path, sizeof(path) - 1, map->path, map->path_size);
	struct foreign_want want = {
		.pid = r->pid,
		.start = map->start,
		.end = map->end,
		.path = path,
		.maj = map->maj,
		.min = map->min,
		.ino = map->ino,
	};
	struct elffacts_input in = {
		.offset = map->offset,
		.vars = t->vars,
		.nr_vars = VMSTRUCTS_VARIABLES,
		.watch = r->watch,
	};
	struct foreign_file file;
	struct elffacts facts;
	int rc;

	path[size] = '\0';
	rc = foreign_open(&want, &file, NULL);
	if (rc)
		return rc;
	vmstructs_want(t->vars);
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	close(file.fd);
	if (rc || !facts.has_vaddr)
		return rc ? rc : -ENOEXEC;
	t->bias = map->start - facts.vaddr;
	return 0;
}

int hotspot_find_tables(struct hotspot_tables *t, struct remote *r)
{
	struct procfs_text text;
	struct procfs_map map;
	size_t size;
	char *maps;
	int rc = foreign_read_proc(r->pid, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size);

	if (rc)
		return rc;
	text = (struct procfs_text){ .at = maps, .end = maps + size };
	rc = -ENOENT;
	while (procfs_next_map(&text, &map)) {
		if (map.offset || !is_libjvm(&map))
			continue;
		rc = find_variables(t, r, &map);
		break;
	}
	free(maps);
	return rc;
}

int hotspot_open(struct hotspot *h, struct remote *r, const struct hotspot_tables *t,
		 const char **missing)
{
	int rc;

	memset(h, 0, sizeof(*h));
	rc = vmstructs_read(&h->vm, r, t->vars, t->bias, missing);
	h->polls = !rc && hotspot_polls_loops(&h->vm, r);
	h->untried = !rc && hotspot_is_untried(&h->vm, r);
	return rc;
}

static int read_heap(const struct vmstructs *v, struct remote *r, uint64_t heap,
		     struct hotspot_heap *out)
{
	uint64_t high;
	int rc = remote_read_u64(r, heap + v->heap_memory + v->space_low, &out->low);

	if (!rc)
		rc = remote_read_u64(r, heap + v->heap_memory + v->space_high, &high);
	if (!rc)
		rc = remote_read_u64(r, heap + v->heap_segmap + v->space_low, &out->segments);
	if (!rc)
		rc = remote_read_u32(r, heap + v->heap_log2, &out->log2);
	if (rc)
		return rc;
	if (out->log2 < 4 || out->log2 > 16 || high < out->low)
		return -EBADMSG;
	out->nr_segments = (high - out->low) >> out->log2;
	return out->nr_segments <= SEGMENTS_MAX ? 0 : -EBADMSG;
}

/* Read where the parts of the code cache are now: they grow. */
static int read_heaps(struct hotspot *h, struct remote *r)
{
	uint64_t array, data, heap;
	uint32_t nr = 0;
	int rc = remote_read_u64(r, h->vm.heaps, &array);

	h->nr_heaps = 0;
	if (!rc)
		rc = remote_read_u32(r, array + h->vm.array_len, &nr);
	if (!rc)
		rc = remote_read_u64(r, array + h->vm.array_data, &data);
	if (!rc && nr > HOTSPOT_HEAPS_MAX)
		rc = -EBADMSG;
	for (uint32_t i = 0; i < nr && !rc; i++) {
		rc = remote_read_u64(r, data + 8ULL * i, &heap);
		if (!rc)
			rc = read_heap(&h->vm, r, heap, &h->heaps[i]);
		h->nr_heaps += !rc;
	}
	return rc;
}

struct head {
	uint8_t bytes[VMSTRUCTS_BLOB];
};

/* A scan in the making. */
struct scan {
	const struct hotspot *h;
	struct remote *r;
	struct hotspot_blob *blobs;
	uint32_t nr, max;
	uint32_t nr_new;
	size_t memory;
	/* The last name read: most blobs have the same one. */
	uint64_t name_at;
	char name[64];
	struct head *heads; /* scratch */
	uint32_t max_heads;
};

/* Read the blob's name, which gives its kind. */
static int read_kind(struct scan *s, uint64_t at)
{
	ssize_t size;

	if (at == s->name_at)
		return 0;
	s->name_at = 0;
	size = remote_read_string(s->r, at, s->name, sizeof(s->name));
	if (size < 0)
		return (int)size;
	s->name_at = at;
	return 0;
}

/* Decode the range of the code of the blob in @bytes. */
static void decode_code(const struct vmstructs *v, const uint8_t *bytes, struct hotspot_blob *b)
{
	if (v->blob_begin != UINT64_MAX) {
		b->start = bytes_u64(bytes + v->blob_begin);
		b->end = bytes_u64(bytes + v->blob_end);
	} else {
		b->start = b->blob + bytes_u32(bytes + v->code_offset);
		b->end = b->blob + bytes_u32(bytes + v->data_offset);
	}
}

/* Decode the offset from which the frame is complete; -1: it never is. */
static uint32_t take_complete(const struct vmstructs *v, const uint8_t *bytes)
{
	int16_t narrow;

	if (v->complete_size == 4)
		return bytes_u32(bytes + v->blob_complete);
	if (v->complete_size != 2)
		return UINT32_MAX;
	memcpy(&narrow, bytes + v->blob_complete, sizeof(narrow));
	return (uint32_t)narrow;
}

/* Return whether loops in the method with @bytes have no descriptions: of the optimiser alone. */
static bool is_blind(const struct hotspot *h, const uint8_t *bytes)
{
	return !h->polls &&
	       (h->vm.nmethod_level == UINT64_MAX || bytes[h->vm.nmethod_level] == LEVEL_OPTIMISED);
}

/* Decode the head of the blob in @bytes; false: not a blob with code. */
static bool decode_blob(struct scan *s, const uint8_t *bytes, struct hotspot_blob *b)
{
	const struct vmstructs *v = &s->h->vm;
	uint32_t words;
	bool compiled;

	decode_code(v, bytes, b);
	if (b->start <= b->blob || b->end <= b->start || b->end - b->start > HOTSPOT_CODE_MAX ||
	    read_kind(s, bytes_u64(bytes + v->blob_name)))
		return false;
	words = bytes_u32(bytes + v->blob_frame_size);
	b->frame_words = words < HOTSPOT_FRAME_WORDS ? words : 0;
	b->complete = take_complete(v, bytes);
	b->inlines = !strcmp(s->name, "nmethod");
	b->blind = b->inlines && is_blind(s->h, bytes);
	compiled = b->inlines || !strcmp(s->name, "native nmethod");
	if (compiled) {
		b->kind = HOTSPOT_COMPILED;
		b->method = bytes_u64(bytes + v->nmethod_method);
		b->compile_id = bytes_u32(bytes + v->nmethod_compile_id);
		/* Below 0: being installed; 0: in use (nmethod.hpp, all versions). */
		b->retired = v->nmethod_state != UINT64_MAX && (int8_t)bytes[v->nmethod_state] > 0;
		if (v->deopt_handler != UINT64_MAX)
			b->deopt = bytes_u64(bytes + v->deopt_handler);
		else if (v->deopt_offset != UINT64_MAX)
			b->deopt = b->blob + bytes_u32(bytes + v->deopt_offset);
	} else {
		b->kind = !strcmp(s->name, "Interpreter") ? HOTSPOT_INTERPRETER : HOTSPOT_STUB;
	}
	return true;
}

/* Give @b a copy of @name; NULL if out of memory. */
static void set_name(struct hotspot_blob *b, const char *name)
{
	b->name = strdup(name);
	b->name_size = b->name ? (uint16_t)strlen(name) : 0;
}

static int add_blob(struct scan *s, const struct hotspot_blob *b)
{
	struct hotspot_blob *known = hotspot_blobs_known(s->h, b->start), *added;

	if (s->nr == HOTSPOT_BLOBS_MAX)
		return -E2BIG;
	if (!array_reserve(&s->blobs, &s->max, s->nr + 1ULL))
		return -ENOMEM;
	added = &s->blobs[s->nr++];
	*added = *b;
	if (known && known->name && hotspot_blobs_same(known, b)) {
		added->name = strdup(known->name);
		added->name_size = known->name_size;
	} else {
		added->fresh = true;
		s->nr_new++;
		if (b->kind != HOTSPOT_COMPILED)
			set_name(added, s->name);
	}
	s->memory += hotspot_blob_memory(added);
	return s->memory <= HOTSPOT_MEMORY_MAX ? 0 : -E2BIG;
}

/* Read the heads: many of them in few calls; a single one so that it can be deferred. */
static int read_heads(struct scan *s, const uint64_t *blocks, uint32_t nr, bool *got)
{
	int rc;

	if (nr != 1)
		return remote_read_each(s->r, blocks, nr, VMSTRUCTS_BLOB, (uint8_t *)s->heads, got);
	rc = remote_read(s->r, blocks[0], s->heads, VMSTRUCTS_BLOB);
	*got = !rc;
	return rc == -EFAULT || s->r->missed ? 0 : rc;
}

/*
 * Read the heads of @blocks. Pass over code that is being made, and over free blocks: they keep the
 * bytes of their old code, also where new code begins inside.
 */
static int scan_blocks(struct scan *s, const uint64_t *blocks, uint32_t nr)
{
	const struct vmstructs *v = &s->h->vm;
	bool got[REMOTE_PIECES_MAX];
	int rc = -ENOMEM;

	if (array_reserve(&s->heads, &s->max_heads, nr))
		rc = read_heads(s, blocks, nr, got);
	for (uint32_t i = 0; i < nr && !rc; i++) {
		struct hotspot_blob b = { .blob = blocks[i] + v->block_size };
		const uint8_t *head = s->heads[i].bytes;

		if (!got[i] || (v->block_used != UINT64_MAX && !head[v->block_used]))
			continue;
		if (decode_blob(s, head + v->block_size, &b))
			rc = add_blob(s, &b);
	}
	return rc;
}

/* Is there memory for all blocks? 0 begins one. So a hostile table costs no reads. */
static int check_number(const struct scan *s, const uint8_t *segments, uint64_t nr_segments)
{
	uint64_t nr = s->nr;

	for (uint64_t i = 0; i < nr_segments; i++)
		nr += !segments[i];
	return nr <= HOTSPOT_BLOBS_MAX ? 0 : -E2BIG;
}

static int scan_heap(struct scan *s, const struct hotspot_heap *heap)
{
	uint64_t blocks[REMOTE_PIECES_MAX];
	uint32_t nr = 0;
	uint8_t *segments = malloc(MAX(heap->nr_segments, 1U));
	int rc;

	if (!segments)
		return -ENOMEM;
	rc = remote_read(s->r, heap->segments, segments, heap->nr_segments);
	if (!rc)
		rc = check_number(s, segments, heap->nr_segments);
	/* 0 begins a block, other numbers lead back to it. */
	for (uint64_t i = 0; i < heap->nr_segments && !rc; i++) {
		if (segments[i])
			continue;
		blocks[nr++] = heap->low + (i << heap->log2);
		if (nr < ARRAY_SIZE(blocks))
			continue;
		rc = scan_blocks(s, blocks, nr);
		nr = 0;
	}
	if (!rc)
		rc = scan_blocks(s, blocks, nr);
	free(segments);
	return rc;
}

static int by_start(const void *a, const void *b)
{
	const struct hotspot_blob *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Sort, and drop blobs that overlap the one before: the table changed while it was read. */
static void settle(struct scan *s)
{
	uint32_t kept = 0;

	if (s->nr)
		qsort(s->blobs, s->nr, sizeof(*s->blobs), by_start);
	for (uint32_t i = 0; i < s->nr; i++) {
		if (kept && s->blobs[i].start < s->blobs[kept - 1].end)
			free(s->blobs[i].name);
		else
			s->blobs[kept++] = s->blobs[i];
	}
	s->nr = kept;
}

static struct scan *scan_new(struct hotspot *h, struct remote *r)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (s) {
		s->h = h;
		s->r = r;
	}
	return s;
}

static void scan_free(struct scan *s)
{
	free(s->heads);
	free(s);
}

int hotspot_scan(struct hotspot *h, struct remote *r)
{
	struct scan *s = scan_new(h, r);
	int rc;

	if (!s)
		return -ENOMEM;
	rc = read_heaps(h, r);
	for (uint32_t i = 0; i < h->nr_heaps && !rc; i++)
		rc = scan_heap(s, &h->heaps[i]);
	if (!rc && h->vm.call_return != UINT64_MAX)
		rc = remote_read_u64(r, h->vm.call_return, &h->call_return);
	if (rc) {
		hotspot_blobs_free(s->blobs, s->nr);
		scan_free(s);
		return rc;
	}
	settle(s);
	hotspot_blobs_free(h->blobs, h->nr_blobs);
	h->blobs = s->blobs;
	h->nr_blobs = s->nr;
	hotspot_blobs_count(h, s->nr_new);
	scan_free(s);
	return 0;
}

/* ---- single blobs ---- */

#define WINDOW	 4096U /* bytes of the map read at once */
#define HOPS_MAX 4096U

/* Find the start of the block at @pc in @heap. 0, -ENOENT: free, or no block; -errno. */
static int find_block(const struct hotspot_heap *heap, struct remote *r, uint64_t pc,
		      uint64_t *block)
{
	uint64_t at = (pc - heap->low) >> heap->log2, first = at + 1;
	uint8_t window[WINDOW];
	int rc;

	for (unsigned int hops = 0; hops < HOPS_MAX; hops++) {
		uint8_t back;

		if (at < first) {
			first = at - MIN(at, WINDOW - 1);
			rc = remote_read(r, heap->segments + first, window, at - first + 1);
			if (rc)
				return rc;
		}
		back = window[at - first];
		if (!back) {
			*block = heap->low + (at << heap->log2);
			return 0;
		}
		if (back == UINT8_MAX || back > at)
			return -ENOENT;
		at -= back;
	}
	return -ENOENT;
}

static const struct hotspot_heap *heap_at(const struct hotspot *h, uint64_t pc)
{
	for (uint32_t i = 0; i < h->nr_heaps; i++)
		if (pc - h->heaps[i].low < h->heaps[i].nr_segments << h->heaps[i].log2)
			return &h->heaps[i];
	return NULL;
}

/* Addresses that are looked up. */
struct look_up {
	struct scan *s;
	const uint64_t *pcs;
};

/* Read the blob at address @i, once. */
static int look_up_one(void *of, uint32_t i)
{
	const struct look_up *l = of;
	struct scan *s = l->s;
	const struct hotspot_heap *heap = heap_at(s->h, l->pcs[i]);
	uint64_t block;
	int rc = heap ? find_block(heap, s->r, l->pcs[i], &block) : -ENOENT;

	if (rc == -ENOENT || s->r->missed)
		return 0;
	for (uint32_t k = 0; k < s->nr && !rc; k++)
		if (s->blobs[k].blob == block + s->h->vm.block_size)
			return 0;
	return rc ? rc : scan_blocks(s, &block, 1);
}

int hotspot_look_up(struct hotspot *h, struct remote *r, const uint64_t *pcs, uint32_t nr)
{
	struct scan *s = scan_new(h, r);
	int rc;

	if (!s)
		return -ENOMEM;
	rc = nr ? read_heaps(h, r) : 0;
	if (!rc)
		rc = remote_for_each(r, nr, look_up_one, &(struct look_up){ s, pcs });
	settle(s);
	if (!rc &&
	    (h->nr_blobs + s->nr > HOTSPOT_BLOBS_MAX || h->memory + s->memory > HOTSPOT_MEMORY_MAX))
		rc = -E2BIG;
	if (!rc)
		rc = hotspot_blobs_merge(h, s->blobs, s->nr);
	if (rc)
		hotspot_blobs_free(s->blobs, s->nr);
	else
		free(s->blobs);
	if (!rc)
		hotspot_blobs_count(h, s->nr_new);
	scan_free(s);
	return rc;
}

int hotspot_name(struct hotspot *h, struct remote *r, uint32_t i)
{
	struct hotspot_blob *b = &h->blobs[i];
	char name[HOTSPOT_NAME_MAX];
	uint64_t code;
	uint32_t code_size;

	if (b->name || !b->fresh || b->kind != HOTSPOT_COMPILED ||
	    hotspot_method(h, r, b->method, name, &code, &code_size))
		return 0;
	h->memory -= hotspot_blob_memory(b);
	set_name(b, name);
	h->memory += hotspot_blob_memory(b);
	return h->memory <= HOTSPOT_MEMORY_MAX ? 0 : -E2BIG;
}

/* Return whether the head in @bytes, read again, is of the code @b. */
static bool is_same_code(const struct vmstructs *v, const uint8_t *bytes,
			 const struct hotspot_blob *b)
{
	return bytes_u64(bytes + v->nmethod_method) == b->method &&
	       bytes_u32(bytes + v->nmethod_compile_id) == b->compile_id;
}

int hotspot_test_current(const struct hotspot *h, struct remote *r, const uint64_t *pcs,
			 uint32_t nr, bool *current)
{
	const struct hotspot_blob *blobs[REMOTE_PIECES_MAX];
	uint64_t addrs[REMOTE_PIECES_MAX];
	struct head *heads = nr ? malloc(MIN(nr, REMOTE_PIECES_MAX) * sizeof(*heads)) : NULL;
	int rc = nr && !heads ? -ENOMEM : 0;

	for (uint32_t done = 0, part; done < nr && !rc; done += part) {
		part = MIN(nr - done, REMOTE_PIECES_MAX);
		for (uint32_t i = 0; i < part; i++) {
			blobs[i] = hotspot_blobs_at(h, pcs[done + i]);
			addrs[i] = blobs[i] ? blobs[i]->blob : 0;
		}
		rc = remote_read_each(r, addrs, part, sizeof(*heads), (uint8_t *)heads,
				      current + done);
		for (uint32_t i = 0; i < part && !rc; i++)
			current[done + i] = current[done + i] && blobs[i] &&
					    is_same_code(&h->vm, heads[i].bytes, blobs[i]);
	}
	free(heads);
	return rc;
}
