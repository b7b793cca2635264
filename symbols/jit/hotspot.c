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
#include "symbols/base/search.h"
#include "symbols/object/elffacts.h"
#include "symbols/process/procfs.h"

#define SEGMENTS_MAX	(32U << 20)
#define CODE_SIZE_MAX	(256U << 20)
#define FRAME_WORDS_MAX (1U << 16)
#define LEVEL_OPTIMISED 4 /* compilerDefinitions.hpp, all versions */
#define LIBJVM		"/libjvm.so"
#define HEAP_HEAD	16U /* bytes that the allocator adds to a name */

static bool is_libjvm(const struct procfs_map *map)
{
	size_t size = sizeof(LIBJVM) - 1;

	return map->path_size > size && !memcmp(map->path + map->path_size - size, LIBJVM, size);
}

/* Open the libjvm.so that @map is of and read the tables of this process. */
static int open_libjvm(struct hotspot *h, struct remote *r, const struct procfs_map *map,
		       const char **missing)
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
	struct elfvar vars[VMSTRUCTS_VARIABLES];
	struct elffacts_input in = {
		.offset = map->offset,
		.vars = vars,
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
	vmstructs_want(vars);
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	close(file.fd);
	if (rc || !facts.has_vaddr)
		return rc ? rc : -ENOEXEC;
	return vmstructs_read(&h->vm, r, vars, map->start - facts.vaddr, missing);
}

int hotspot_open(struct hotspot *h, struct remote *r, const char **missing)
{
	struct procfs_text text;
	struct procfs_map map;
	size_t size;
	char *maps;
	int rc = foreign_read_proc(r->pid, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size);

	memset(h, 0, sizeof(*h));
	if (rc)
		return rc;
	text = (struct procfs_text){ .at = maps, .end = maps + size };
	rc = -ENOENT;
	while (procfs_next_map(&text, &map)) {
		if (map.offset || !is_libjvm(&map))
			continue;
		rc = open_libjvm(h, r, &map, missing);
		h->polls = !rc && hotspot_polls_loops(&h->vm, r);
		h->untried = !rc && hotspot_is_untried(&h->vm, r);
		break;
	}
	free(maps);
	return rc;
}

static void free_blobs(struct hotspot_blob *blobs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free(blobs[i].name);
	free(blobs);
}

void hotspot_close(struct hotspot *h)
{
	free_blobs(h->blobs, h->nr_blobs);
	memset(h, 0, sizeof(*h));
}

void hotspot_forget_code(struct hotspot *h)
{
	free_blobs(h->blobs, h->nr_blobs);
	h->blobs = NULL;
	h->nr_blobs = h->nr_new = h->nr_retired = 0;
	h->memory = 0;
}

size_t hotspot_blob_memory(const struct hotspot_blob *b)
{
	return sizeof(*b) + (b->name ? b->name_size + 1 + HEAP_HEAD : 0);
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

/* The blob of the last scan at the same address; NULL: none. */
static struct hotspot_blob *known_blob(const struct hotspot *h, uint64_t start)
{
	uint32_t low = search_split(h->nr_blobs, i, h->blobs[i].start < start);

	return low < h->nr_blobs && h->blobs[low].start == start ? &h->blobs[low] : NULL;
}

static bool same_blob(const struct hotspot_blob *a, const struct hotspot_blob *b)
{
	return a->end == b->end && a->blob == b->blob && a->method == b->method &&
	       a->compile_id == b->compile_id && a->kind == b->kind;
}

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
	if (b->start <= b->blob || b->end <= b->start || b->end - b->start > CODE_SIZE_MAX ||
	    read_kind(s, bytes_u64(bytes + v->blob_name)))
		return false;
	words = bytes_u32(bytes + v->blob_frame_size);
	b->frame_words = words < FRAME_WORDS_MAX ? words : 0;
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

/* Return the name of @b, allocated, and its size; NULL: unreadable. */
static char *name_blob(struct scan *s, const struct hotspot_blob *b, uint16_t *size)
{
	char name[HOTSPOT_NAME_MAX];
	uint64_t code;
	uint32_t code_size;

	if (b->kind != HOTSPOT_COMPILED)
		snprintf(name, sizeof(name), "%s", s->name);
	else if (hotspot_method(s->h, s->r, b->method, name, &code, &code_size))
		return NULL;
	*size = (uint16_t)strlen(name);
	return strdup(name);
}

static int add_blob(struct scan *s, const struct hotspot_blob *b)
{
	struct hotspot_blob *known = known_blob(s->h, b->start);

	if (s->nr == HOTSPOT_BLOBS_MAX)
		return -E2BIG;
	if (!array_reserve(&s->blobs, &s->max, s->nr + 1ULL))
		return -ENOMEM;
	s->blobs[s->nr] = *b;
	if (known && known->name && same_blob(known, b)) {
		s->blobs[s->nr].name = strdup(known->name);
		s->blobs[s->nr].name_size = known->name_size;
	} else {
		s->blobs[s->nr].name = name_blob(s, b, &s->blobs[s->nr].name_size);
		s->blobs[s->nr].fresh = true;
		s->nr_new++;
	}
	b = &s->blobs[s->nr++];
	s->memory += hotspot_blob_memory(b);
	return s->memory <= HOTSPOT_MEMORY_MAX ? 0 : -E2BIG;
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
		rc = remote_read_each(s->r, blocks, nr, VMSTRUCTS_BLOB, (uint8_t *)s->heads, got);
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

static void count_blobs(struct hotspot *h, uint32_t nr_new)
{
	h->nr_new = nr_new;
	h->nr_retired = 0;
	h->memory = 0;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		h->nr_retired += h->blobs[i].retired;
		h->memory += hotspot_blob_memory(&h->blobs[i]);
	}
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
		free_blobs(s->blobs, s->nr);
		scan_free(s);
		return rc;
	}
	settle(s);
	free_blobs(h->blobs, h->nr_blobs);
	h->blobs = s->blobs;
	h->nr_blobs = s->nr;
	count_blobs(h, s->nr_new);
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

/* Read the blobs at @pcs into @s. */
static int look_up_each(struct scan *s, const uint64_t *pcs, uint32_t nr)
{
	uint64_t block, last = 0;
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		const struct hotspot_heap *heap = heap_at(s->h, pcs[i]);
		int found = heap ? find_block(heap, s->r, pcs[i], &block) : -ENOENT;

		if (found == -ENOENT || (!found && block == last))
			continue;
		rc = found ? found : scan_blocks(s, &block, 1);
		last = block;
	}
	return rc;
}

/* Put the sorted blobs of @s among those of @h; old ones below them are freed. */
static int merge_blobs(struct hotspot *h, struct scan *s)
{
	uint32_t nr = 0, next = 0;
	struct hotspot_blob *blobs = calloc((size_t)h->nr_blobs + s->nr + 1, sizeof(*blobs));

	if (!blobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		struct hotspot_blob *b = &h->blobs[i];

		while (next < s->nr && s->blobs[next].end <= b->start)
			blobs[nr++] = s->blobs[next++];
		b->fresh = false;
		if (next < s->nr && s->blobs[next].start < b->end)
			free(b->name);
		else
			blobs[nr++] = *b;
	}
	while (next < s->nr)
		blobs[nr++] = s->blobs[next++];
	free(h->blobs);
	h->blobs = blobs;
	h->nr_blobs = nr;
	return 0;
}

int hotspot_look_up(struct hotspot *h, struct remote *r, const uint64_t *pcs, uint32_t nr)
{
	struct scan *s = scan_new(h, r);
	int rc;

	if (!s)
		return -ENOMEM;
	rc = nr ? read_heaps(h, r) : 0;
	if (!rc)
		rc = look_up_each(s, pcs, nr);
	settle(s);
	if (!rc &&
	    (h->nr_blobs + s->nr > HOTSPOT_BLOBS_MAX || h->memory + s->memory > HOTSPOT_MEMORY_MAX))
		rc = -E2BIG;
	if (!rc)
		rc = merge_blobs(h, s);
	if (rc)
		free_blobs(s->blobs, s->nr);
	else
		free(s->blobs);
	if (!rc)
		count_blobs(h, s->nr_new);
	scan_free(s);
	return rc;
}

bool hotspot_is_current(const struct hotspot *h, struct remote *r, const struct hotspot_blob *b)
{
	uint64_t method;
	uint32_t compile_id;

	return !remote_read_u64(r, b->blob + h->vm.nmethod_method, &method) &&
	       !remote_read_u32(r, b->blob + h->vm.nmethod_compile_id, &compile_id) &&
	       method == b->method && compile_id == b->compile_id;
}
