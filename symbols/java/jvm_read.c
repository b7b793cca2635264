// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One JVM by the tables of structures that it exports: its code cache, names of its methods, its
 * options, inlined methods.
 *
 * Runs on: a helper.
 */
#include "symbols/java/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"

/*
 * The table of the code of one JVM. Runs on: a helper; a worker; a replay.
 */

#define JVM_READ_CODE_MAX    (256U << 20) /* bytes of a blob */
#define JVM_READ_FRAME_WORDS (1U << 16)	  /* of a frame: fewer */
#define HEAP_HEAD	     16U	  /* bytes that the allocator adds to a name */

void jvm_read_blobs_free(struct jvm_read_blob *blobs, uint32_t nr)
{
	assert(blobs || !nr);
	for (uint32_t i = 0; i < nr; i++)
		free(blobs[i].name);
	free(blobs);
}

void jvm_read_close(struct jvm_read *h)
{
	jvm_read_blobs_free(h->blobs, h->nr_blobs);
	memset(h, 0, sizeof(*h));
}

void jvm_read_forget_code(struct jvm_read *h)
{
	jvm_read_blobs_free(h->blobs, h->nr_blobs);
	h->blobs = NULL;
	h->nr_blobs = h->nr_new = h->nr_retired = 0;
	h->memory = 0;
}

size_t jvm_read_blob_memory(const struct jvm_read_blob *b)
{
	return sizeof(*b) + (b->name ? b->name_size + 1 + HEAP_HEAD : 0);
}

/* Return the known blob that begins at @start; NULL: none. */
static struct jvm_read_blob *jvm_read_blobs_known(const struct jvm_read *h, uint64_t start)
{
	uint32_t low = search_split(h->nr_blobs, i, h->blobs[i].start < start);

	return low < h->nr_blobs && h->blobs[low].start == start ? &h->blobs[low] : NULL;
}

const struct jvm_read_blob *jvm_read_blobs_at(const struct jvm_read *h, uint64_t pc)
{
	uint32_t after = search_split(h->nr_blobs, i, h->blobs[i].start <= pc);

	return after && pc < h->blobs[after - 1].end ? &h->blobs[after - 1] : NULL;
}

/* Return whether two blobs at one address are the same code. */
static bool jvm_read_blobs_same(const struct jvm_read_blob *a, const struct jvm_read_blob *b)
{
	return a->end == b->end && a->blob == b->blob && a->method == b->method &&
	       a->compile_id == b->compile_id && a->kind == b->kind;
}

bool jvm_read_blob_is_valid(const struct jvm_read_blob *b)
{
	return b->start > b->blob && b->end > b->start && b->end - b->start <= JVM_READ_CODE_MAX &&
	       b->frame_words < JVM_READ_FRAME_WORDS && b->kind <= JVM_READ_INTERPRETER;
}

void jvm_read_blobs_count(struct jvm_read *h, uint32_t nr_new)
{
	h->nr_new = nr_new;
	h->nr_retired = 0;
	h->memory = 0;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		h->nr_retired += h->blobs[i].retired;
		h->memory += jvm_read_blob_memory(&h->blobs[i]);
	}
}

/*
 * Put @nr found blobs, sorted, into the table; known ones that they overlap are freed. The table
 * then owns their names. 0 or -ENOMEM.
 */
static int jvm_read_blobs_merge(struct jvm_read *h, const struct jvm_read_blob *found,
				uint32_t nr_found)
{
	uint32_t nr = 0, next = 0;
	struct jvm_read_blob *blobs = calloc((size_t)h->nr_blobs + nr_found + 1, sizeof(*blobs));

	if (!blobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		struct jvm_read_blob *b = &h->blobs[i];

		while (next < nr_found && found[next].end <= b->start)
			blobs[nr++] = found[next++];
		b->fresh = false;
		if (next < nr_found && found[next].start < b->end)
			free(b->name);
		else
			blobs[nr++] = *b;
	}
	while (next < nr_found)
		blobs[nr++] = found[next++];
	free(h->blobs);
	h->blobs = blobs;
	h->nr_blobs = nr;
	return 0;
}

/* Take the name of the same code in @h; returns whether @b is new. */
static bool take_name(struct jvm_read *h, struct jvm_read_blob *b)
{
	struct jvm_read_blob *known = jvm_read_blobs_known(h, b->start);

	if (!known || !known->name || !jvm_read_blobs_same(known, b))
		return true;
	free(b->name);
	b->name = known->name;
	b->name_size = known->name_size;
	known->name = NULL;
	return false;
}

int jvm_read_take(struct jvm_read *h, struct jvm_read_blob *blobs, uint32_t nr, bool all)
{
	size_t memory = all ? 0 : h->memory;
	uint32_t nr_new = 0;
	int rc = 0;

	for (uint32_t i = 0; i < nr; i++) {
		blobs[i].fresh = take_name(h, &blobs[i]);
		nr_new += blobs[i].fresh;
		memory += all || blobs[i].fresh ? jvm_read_blob_memory(&blobs[i]) : 0;
	}
	if (memory > JVM_READ_MEMORY_MAX || nr + (all ? 0 : h->nr_blobs) > JVM_READ_BLOBS_MAX)
		rc = -E2BIG;
	if (!rc && !all)
		rc = jvm_read_blobs_merge(h, blobs, nr);
	if (rc) {
		jvm_read_blobs_free(blobs, nr);
		return rc;
	}
	if (all) {
		jvm_read_blobs_free(h->blobs, h->nr_blobs);
		h->blobs = blobs;
		h->nr_blobs = nr;
	} else {
		free(blobs);
	}
	jvm_read_blobs_count(h, nr_new);
	return 0;
}

/*
 * Version and options of a running JVM (JDK source: jvmFlag.hpp).
 *
 * Runs on: a helper. Every number is foreign.
 */

#define FLAGS_MAX 8192U
#define SIZE_MAX_ 256U
#define NAME_SIZE 25U /* of "UseCountedLoopSafepoints" with its NUL */

/* Find the entry of the table @entries with the name @name; returns its number, or @nr. */
static uint64_t find(struct remote *r, const uint64_t *names, uint64_t nr, const char *name)
{
	uint8_t *texts = calloc(nr, NAME_SIZE);
	bool *got = calloc(nr, sizeof(*got));
	uint64_t at = nr;

	if (texts && got && !remote_read_each(r, names, (uint32_t)nr, NAME_SIZE, texts, got))
		for (at = 0; at < nr; at++)
			if (got[at] && !memcmp(texts + at * NAME_SIZE, name, NAME_SIZE))
				break;
	free(texts);
	free(got);
	return at;
}

/* Read the value of the flag @name in the table @bytes of @nr entries. */
static bool read_flag(const struct vmstructs *v, struct remote *r, const uint8_t *bytes,
		      uint64_t nr, const char *name, uint8_t *value)
{
	uint64_t *names = calloc(nr, sizeof(*names)), at, addr;
	bool found = false;

	for (uint64_t i = 0; names && i < nr; i++)
		memcpy(&names[i], bytes + i * v->flag_size + v->flag_name, sizeof(*names));
	at = names ? find(r, names, nr, name) : nr;
	if (at < nr) {
		memcpy(&addr, bytes + at * v->flag_size + v->flag_addr, sizeof(addr));
		found = !remote_read(r, addr, value, 1);
	}
	free(names);
	return found;
}

/*
 * Return whether the loops of optimised code have safepoints, and so descriptions of the methods
 * inlined in them: the option UseCountedLoopSafepoints, which depends on the collector. False also
 * if reading fails.
 */
static bool jvm_read_polls_loops(const struct vmstructs *v, struct remote *r)
{
	uint64_t table, nr;
	uint8_t *bytes, value = 0;

	if (v->flags == UINT64_MAX || v->nr_flags == UINT64_MAX || v->flag_name == UINT64_MAX ||
	    v->flag_addr == UINT64_MAX || v->flag_size == UINT64_MAX || v->flag_size > SIZE_MAX_ ||
	    v->flag_name + 8 > v->flag_size || v->flag_addr + 8 > v->flag_size ||
	    remote_read_u64(r, v->flags, &table) || remote_read_u64(r, v->nr_flags, &nr) || !nr ||
	    nr > FLAGS_MAX)
		return false;
	bytes = malloc(nr * v->flag_size);
	if (!bytes || remote_read(r, table, bytes, nr * v->flag_size) ||
	    !read_flag(v, r, bytes, nr, "UseCountedLoopSafepoints", &value))
		value = 0;
	free(bytes);
	return value;
}

/* Of 11, 17, 21 and 25 to 28 frames were compared: make truth-java. */
#define TRIED_OLD  11
#define TRIED_FROM 17

/* Return whether this version of Java was never compared with the truth: frames are guesses. */
static bool jvm_read_is_untried(const struct vmstructs *v, struct remote *r)
{
	uint32_t major;

	/* A later version may rename what tells that a frame is deoptimised: not tried then. */
	return v->vm_major == UINT64_MAX || remote_read_u32(r, v->vm_major, &major) ||
	       (major < TRIED_FROM && major != TRIED_OLD) ||
	       (v->deopt_handler == UINT64_MAX && v->deopt_offset == UINT64_MAX);
}

/*
 * Read gHotSpotVMStructs and gHotSpotVMTypes. Runs on: a helper.
 */

/* Bytes of a block with the head of its blob: all members that are read are inside. */
#define VMSTRUCTS_BLOB 512U

#define ENTRIES_MAX 8192U
#define STRIDE_MAX  256U
#define OFFSET_MAX  400U /* of a member, and sizes: within the bytes that are read of a blob */
#define NAME_MAX_   80U	 /* no name that is wanted is longer */

enum variable {
	STRUCTS,
	STRUCTS_TYPE,
	STRUCTS_FIELD,
	STRUCTS_TEXT,
	STRUCTS_STATIC,
	STRUCTS_OFFSET,
	STRUCTS_ADDRESS,
	STRUCTS_STRIDE,
	TYPES,
	TYPES_NAME,
	TYPES_SIZE,
	TYPES_STRIDE,
	NR_VARIABLES,
};

static const char *const variable_names[NR_VARIABLES] = {
	[STRUCTS] = "gHotSpotVMStructs",
	[STRUCTS_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[STRUCTS_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[STRUCTS_TEXT] = "gHotSpotVMStructEntryTypeStringOffset",
	[STRUCTS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[STRUCTS_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[STRUCTS_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[STRUCTS_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[TYPES] = "gHotSpotVMTypes",
	[TYPES_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[TYPES_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[TYPES_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

/* A field by the names it has had; a type without a field name is wanted for its size. */
struct wanted {
	const char *type, *field;
	size_t at; /* in struct vmstructs */
	bool optional;
	size_t size_at; /* of the integer's size; 0: has one size in all versions */
};

#define FIELD(t, f, m)                                                                             \
	{                                                                                          \
		.type = t, .field = f, .at = offsetof(struct vmstructs, m)                         \
	}
#define OPTIONAL(t, f, m)                                                                          \
	{                                                                                          \
		t, f, offsetof(struct vmstructs, m), true, 0                                       \
	}
#define SIZED(t, f, m, s)                                                                          \
	{                                                                                          \
		t, f, offsetof(struct vmstructs, m), true, offsetof(struct vmstructs, s)           \
	}

static const struct wanted fields[] = {
	FIELD("CodeCache", "_heaps", heaps),
	FIELD("GrowableArrayBase", "_len", array_len),
	FIELD("GenericGrowableArray", "_len", array_len), /* JDK 11 */
	FIELD("GrowableArray<int>", "_data", array_data),
	FIELD("CodeHeap", "_memory", heap_memory),
	FIELD("CodeHeap", "_segmap", heap_segmap),
	FIELD("CodeHeap", "_log2_segment_size", heap_log2),
	FIELD("VirtualSpace", "_low", space_low),
	FIELD("VirtualSpace", "_high", space_high),
	FIELD("CodeBlob", "_name", blob_name),
	FIELD("CodeBlob", "_size", blob_size),
	SIZED("CodeBlob", "_frame_complete_offset", blob_complete, complete_size),
	FIELD("CodeBlob", "_frame_size", blob_frame_size),
	OPTIONAL("CodeBlob", "_code_begin", blob_begin),
	OPTIONAL("CodeBlob", "_code_end", blob_end),
	OPTIONAL("CodeBlob", "_code_offset", code_offset),
	OPTIONAL("CodeBlob", "_data_offset", data_offset),
	FIELD("CompiledMethod", "_method", nmethod_method),
	FIELD("nmethod", "_method", nmethod_method), /* JDK 23 */
	FIELD("nmethod", "_compile_id", nmethod_compile_id),
	FIELD("Method", "_constMethod", method_const),
	FIELD("ConstMethod", "_constants", const_pool),
	FIELD("ConstMethod", "_code_size", const_code_size),
	FIELD("ConstMethod", "_name_index", const_name),
	FIELD("ConstantPool", "_pool_holder", pool_holder),
	FIELD("Klass", "_name", klass_name),
	FIELD("Symbol", "_length", symbol_length),
	FIELD("Symbol", "_body", symbol_body),
	OPTIONAL("Abstract_VM_Version", "_vm_major_version", vm_major),
	OPTIONAL("CompiledMethod", "_scopes_data_begin", scopes_data),
	OPTIONAL("nmethod", "_scopes_pcs_offset", scopes_pcs),
	OPTIONAL("nmethod", "_dependencies_offset", dependencies),
	OPTIONAL("nmethod", "_immutable_data", immutable_data),
	OPTIONAL("nmethod", "_scopes_data_offset", scopes_data_offset),
	SIZED("nmethod", "_metadata_offset", metadata, metadata_size),
	OPTIONAL("CodeBlob", "_mutable_data", mutable_data),
	OPTIONAL("CodeBlob", "_relocation_size", relocation_size),
	OPTIONAL("ConstMethod", "_flags", const_flags),
	OPTIONAL("ConstMethod", "_flags._flags", const_flags), /* JDK 21 */
	OPTIONAL("ConstantPool", "_source_file_name_index", source_file),
	OPTIONAL("HeapBlock::Header", "_used", block_used),
	OPTIONAL("nmethod", "_state", nmethod_state),
	OPTIONAL("CompiledMethod", "_deopt_handler_begin", deopt_handler),
	OPTIONAL("nmethod", "_deopt_handler_offset", deopt_offset),
	OPTIONAL("nmethod", "_deopt_handler_entry_offset", deopt_offset), /* JDK 26 */
	OPTIONAL("StubRoutines", "_call_stub_return_address", call_return),
	OPTIONAL("nmethod", "_comp_level", nmethod_level),
	OPTIONAL("JVMFlag", "flags", flags),
	OPTIONAL("JVMFlag", "numFlags", nr_flags),
	OPTIONAL("JVMFlag", "_name", flag_name),
	OPTIONAL("JVMFlag", "_addr", flag_addr),
	OPTIONAL("JVMFlag", NULL, flag_size),
	FIELD("HeapBlock", NULL, block_size),
	FIELD("ConstMethod", NULL, const_method_size),
	FIELD("ConstantPool", NULL, pool_size),
};

static uint64_t *member(struct vmstructs *v, const struct wanted *w)
{
	return (uint64_t *)((char *)v + w->at);
}

static int read_name(struct remote *r, const uint8_t *entry, uint64_t at, char *name)
{
	uint64_t pointer;
	ssize_t size;

	memcpy(&pointer, entry + at, sizeof(pointer));
	name[0] = '\0';
	if (!pointer)
		return 0;
	size = remote_read_string(r, pointer, name, NAME_MAX_);
	return size < 0 ? (int)size : 0;
}

/* Read the size of an integer from its type; UINT64_MAX: another type. */
static int read_size(struct remote *r, const uint8_t *entry, uint64_t at, uint64_t *size)
{
	static const char *const types[] = { "u2", "int16_t", "uint16_t", "int", "u4" };
	char type[NAME_MAX_];
	int rc = read_name(r, entry, at, type);

	*size = UINT64_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(types) && !rc; i++)
		if (!strcmp(type, types[i]))
			*size = i < 3 ? 2 : 4;
	return rc;
}

/* Take one entry of gHotSpotVMStructs. */
static int take_field(struct vmstructs *v, struct remote *r, const uint64_t *at,
		      const uint8_t *entry, const char *type)
{
	char field[NAME_MAX_];
	uint64_t value;
	uint32_t is_static;
	int rc = 0;

	field[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(fields) && !rc; i++) {
		if (!fields[i].field || strcmp(fields[i].type, type))
			continue;
		if (!field[0])
			rc = read_name(r, entry, at[STRUCTS_FIELD], field);
		if (rc || strcmp(fields[i].field, field))
			continue;
		memcpy(&is_static, entry + at[STRUCTS_STATIC], sizeof(is_static));
		memcpy(&value, entry + (is_static ? at[STRUCTS_ADDRESS] : at[STRUCTS_OFFSET]),
		       sizeof(value));
		*member(v, &fields[i]) = value;
		if (fields[i].size_at)
			rc = read_size(r, entry, at[STRUCTS_TEXT],
				       (uint64_t *)((char *)v + fields[i].size_at));
	}
	return rc;
}

/* Take one entry of gHotSpotVMTypes. */
static void take_size(struct vmstructs *v, const uint64_t *at, const uint8_t *entry,
		      const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!fields[i].field && !strcmp(fields[i].type, type))
			memcpy(member(v, &fields[i]), entry + at[TYPES_SIZE], sizeof(uint64_t));
	}
}

/* Walk one of the two tables up to the entry without a type name. */
static int walk(struct vmstructs *v, struct remote *r, const uint64_t *at, bool types)
{
	uint64_t table = at[types ? TYPES : STRUCTS];
	uint64_t stride = at[types ? TYPES_STRIDE : STRUCTS_STRIDE];
	uint8_t entry[STRIDE_MAX];
	char type[NAME_MAX_];
	int rc;

	for (uint32_t i = 0; i < ENTRIES_MAX; i++, table += stride) {
		rc = remote_read(r, table, entry, stride);
		if (!rc)
			rc = read_name(r, entry, at[types ? TYPES_NAME : STRUCTS_TYPE], type);
		if (rc)
			return rc;
		if (!type[0])
			return 0;
		if (types)
			take_size(v, at, entry, type);
		else
			rc = take_field(v, r, at, entry, type);
		if (rc)
			return rc;
	}
	return -EBADMSG;
}

/* Read the variables that describe the tables; all members must be inside of an entry. */
static int read_variables(struct remote *r, const struct elfvar *vars, uint64_t bias, uint64_t *at)
{
	int rc;

	for (uint32_t i = 0; i < NR_VARIABLES; i++) {
		if (!vars[i].vaddr)
			return -ENOENT;
		rc = remote_read_u64(r, bias + vars[i].vaddr, &at[i]);
		if (rc)
			return rc;
	}
	for (uint32_t i = 0; i < NR_VARIABLES; i++) {
		bool types = i > TYPES;
		uint64_t stride = at[types ? TYPES_STRIDE : STRUCTS_STRIDE];

		if (i == STRUCTS || i == TYPES)
			continue;
		if (stride < 8 || stride > STRIDE_MAX)
			return -EBADMSG;
		if (i != STRUCTS_STRIDE && i != TYPES_STRIDE && at[i] > stride - 8)
			return -EBADMSG;
	}
	return 0;
}

/* Refuse a member that is missing, or beyond any structure. */
static int check(struct vmstructs *v, const struct wanted *w, const char **missing)
{
	uint64_t value = *member(v, w);
	bool address = member(v, w) == &v->heaps || member(v, w) == &v->vm_major ||
		       member(v, w) == &v->call_return || member(v, w) == &v->flags ||
		       member(v, w) == &v->nr_flags;

	if (value == UINT64_MAX) {
		*missing = w->field ? w->field : w->type;
		return w->optional ? 0 : -ENODATA;
	}
	if (member(v, w) == &v->block_size && value > VMSTRUCTS_BLOB - OFFSET_MAX - sizeof(value))
		return -EBADMSG;
	return value <= OFFSET_MAX || address ? 0 : -EBADMSG;
}

/* Refuse blobs without code. */
static int check_blobs(const struct vmstructs *v, const char **missing)
{
	bool pointers = v->blob_begin != UINT64_MAX && v->blob_end != UINT64_MAX;
	bool offsets = v->code_offset != UINT64_MAX && v->data_offset != UINT64_MAX;

	*missing = pointers || offsets ? *missing : "_code_begin";
	return pointers || offsets ? 0 : -ENODATA;
}

void vmstructs_want(struct elfvar vars[static VMSTRUCTS_VARIABLES])
{
	_Static_assert(NR_VARIABLES == VMSTRUCTS_VARIABLES, "the number of names");

	for (uint32_t i = 0; i < NR_VARIABLES; i++)
		vars[i] = (struct elfvar){ .name = variable_names[i] };
}

/*
 * Read the tables of a JVM with libjvm.so mapped with @bias (address - vaddr). 0, -ENOENT (no such
 * tables), -ENODATA (a field is missing: *missing is its name), -EBADMSG (tables make no sense),
 * -errno of reading.
 */
static int vmstructs_read(struct vmstructs *v, struct remote *r,
			  const struct elfvar vars[static VMSTRUCTS_VARIABLES], uint64_t bias,
			  const char **missing)
{
	uint64_t at[NR_VARIABLES];
	int rc;

	memset(v, 0xff, sizeof(*v));
	rc = read_variables(r, vars, bias, at);
	if (!rc)
		rc = walk(v, r, at, false);
	if (!rc)
		rc = walk(v, r, at, true);
	for (size_t i = 0; i < ARRAY_SIZE(fields) && !rc; i++)
		rc = check(v, &fields[i], missing);
	return rc ? rc : check_blobs(v, missing);
}

#define SEGMENTS_MAX	(32U << 20)
#define LEVEL_OPTIMISED 4 /* compilerDefinitions.hpp, all versions */
#define LIBJVM		"/libjvm.so"

static bool is_libjvm(const struct procfs_map *map)
{
	size_t size = sizeof(LIBJVM) - 1;

	return map->path_size > size && !memcmp(map->path + map->path_size - size, LIBJVM, size);
}

/* Find the tables in the libjvm.so of @map. */
static int find_variables(struct jvm_read_tables *t, struct remote *r, const struct procfs_map *map)
{
	char path[4096];
	size_t size = procfs_unescape(path, sizeof(path) - 1, map->path, map->path_size);
	struct untrusted_want want = {
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
	struct untrusted_file file;
	struct elffacts facts;
	int rc;

	path[size] = '\0';
	rc = untrusted_open(&want, &file, NULL);
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

int jvm_read_find_tables(struct jvm_read_tables *t, struct remote *r)
{
	struct procfs_text text;
	struct procfs_map map;
	size_t size;
	char *maps;
	int rc = untrusted_read_proc(r->pid, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size);

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

/*
 * Read the tables: the code cache can be read then. 0; -ENODATA: a field is missing (*missing);
 * other -errno.
 */
static int jvm_read_open(struct jvm_read *h, struct remote *r, const struct jvm_read_tables *t,
			 const char **missing)
{
	int rc;

	memset(h, 0, sizeof(*h));
	rc = vmstructs_read(&h->vm, r, t->vars, t->bias, missing);
	h->polls = !rc && jvm_read_polls_loops(&h->vm, r);
	h->untried = !rc && jvm_read_is_untried(&h->vm, r);
	return rc;
}

static int read_heap(const struct vmstructs *v, struct remote *r, uint64_t heap,
		     struct jvm_read_heap *out)
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
static int read_heaps(struct jvm_read *h, struct remote *r)
{
	uint64_t array, data, heap;
	uint32_t nr = 0;
	int rc = remote_read_u64(r, h->vm.heaps, &array);

	h->nr_heaps = 0;
	if (!rc)
		rc = remote_read_u32(r, array + h->vm.array_len, &nr);
	if (!rc)
		rc = remote_read_u64(r, array + h->vm.array_data, &data);
	if (!rc && nr > JVM_READ_HEAPS_MAX)
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
	const struct jvm_read *h;
	struct remote *r;
	struct jvm_read_blob *blobs;
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
static void decode_code(const struct vmstructs *v, const uint8_t *bytes, struct jvm_read_blob *b)
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
static bool is_blind(const struct jvm_read *h, const uint8_t *bytes)
{
	return !h->polls &&
	       (h->vm.nmethod_level == UINT64_MAX || bytes[h->vm.nmethod_level] == LEVEL_OPTIMISED);
}

/* Decode the head of the blob in @bytes; false: not a blob with code. */
static bool decode_blob(struct scan *s, const uint8_t *bytes, struct jvm_read_blob *b)
{
	const struct vmstructs *v = &s->h->vm;
	uint32_t words;
	bool compiled;

	decode_code(v, bytes, b);
	if (b->start <= b->blob || b->end <= b->start || b->end - b->start > JVM_READ_CODE_MAX ||
	    read_kind(s, bytes_u64(bytes + v->blob_name)))
		return false;
	words = bytes_u32(bytes + v->blob_frame_size);
	b->frame_words = words < JVM_READ_FRAME_WORDS ? words : 0;
	b->complete = take_complete(v, bytes);
	b->inlines = !strcmp(s->name, "nmethod");
	b->blind = b->inlines && is_blind(s->h, bytes);
	compiled = b->inlines || !strcmp(s->name, "native nmethod");
	if (compiled) {
		b->kind = JVM_READ_COMPILED;
		b->method = bytes_u64(bytes + v->nmethod_method);
		b->compile_id = bytes_u32(bytes + v->nmethod_compile_id);
		/* Below 0: being installed; 0: in use (nmethod.hpp, all versions). */
		b->retired = v->nmethod_state != UINT64_MAX && (int8_t)bytes[v->nmethod_state] > 0;
		if (v->deopt_handler != UINT64_MAX)
			b->deopt = bytes_u64(bytes + v->deopt_handler);
		else if (v->deopt_offset != UINT64_MAX)
			b->deopt = b->blob + bytes_u32(bytes + v->deopt_offset);
	} else {
		b->kind = !strcmp(s->name, "Interpreter") ? JVM_READ_INTERPRETER : JVM_READ_STUB;
	}
	return true;
}

/* Give @b a copy of @name; NULL if out of memory. */
static void set_name(struct jvm_read_blob *b, const char *name)
{
	b->name = strdup(name);
	b->name_size = b->name ? (uint16_t)strlen(name) : 0;
}

static int add_blob(struct scan *s, const struct jvm_read_blob *b)
{
	struct jvm_read_blob *known = jvm_read_blobs_known(s->h, b->start), *added;

	if (s->nr == JVM_READ_BLOBS_MAX)
		return -E2BIG;
	if (!array_reserve(&s->blobs, &s->max, s->nr + 1ULL))
		return -ENOMEM;
	added = &s->blobs[s->nr++];
	*added = *b;
	if (known && known->name && jvm_read_blobs_same(known, b)) {
		added->exits = known->exits;
		added->name = strdup(known->name);
		added->name_size = known->name_size;
	} else {
		added->fresh = true;
		s->nr_new++;
		if (b->kind != JVM_READ_COMPILED)
			set_name(added, s->name);
	}
	s->memory += jvm_read_blob_memory(added);
	return s->memory <= JVM_READ_MEMORY_MAX ? 0 : -E2BIG;
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
		struct jvm_read_blob b = { .blob = blocks[i] + v->block_size };
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
	return nr <= JVM_READ_BLOBS_MAX ? 0 : -E2BIG;
}

static int scan_heap(struct scan *s, const struct jvm_read_heap *heap)
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
	const struct jvm_read_blob *x = a, *y = b;

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

static struct scan *scan_new(struct jvm_read *h, struct remote *r)
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

/*
 * Read the code cache again. Names of known blobs are kept; new methods get theirs by
 * jvm_read_name(). 0, -E2BIG or -errno.
 */
static int jvm_read_scan(struct jvm_read *h, struct remote *r)
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
		jvm_read_blobs_free(s->blobs, s->nr);
		scan_free(s);
		return rc;
	}
	settle(s);
	jvm_read_blobs_free(h->blobs, h->nr_blobs);
	h->blobs = s->blobs;
	h->nr_blobs = s->nr;
	jvm_read_blobs_count(h, s->nr_new);
	scan_free(s);
	return 0;
}

/* ---- single blobs ---- */

#define WINDOW	 4096U /* bytes of the map read at once */
#define HOPS_MAX 4096U

/* Find the start of the block at @pc in @heap. 0, -ENOENT: free, or no block; -errno. */
static int find_block(const struct jvm_read_heap *heap, struct remote *r, uint64_t pc,
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

static const struct jvm_read_heap *heap_at(const struct jvm_read *h, uint64_t pc)
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
	const struct jvm_read_heap *heap = heap_at(s->h, l->pcs[i]);
	uint64_t block;
	int rc = heap ? find_block(heap, s->r, l->pcs[i], &block) : -ENOENT;

	if (rc == -ENOENT || s->r->missed)
		return 0;
	for (uint32_t k = 0; k < s->nr && !rc; k++)
		if (s->blobs[k].blob == block + s->h->vm.block_size)
			return 0;
	return rc ? rc : scan_blocks(s, &block, 1);
}

/*
 * Read the code at each of @nr addresses, without a scan: code that was made since. It takes the
 * place of code that was there. 0 or -errno.
 */
static int jvm_read_look_up(struct jvm_read *h, struct remote *r, const uint64_t *pcs, uint32_t nr)
{
	struct scan *s = scan_new(h, r);
	int rc;

	if (!s)
		return -ENOMEM;
	rc = nr ? read_heaps(h, r) : 0;
	if (!rc)
		rc = remote_for_each(r, nr, look_up_one, &(struct look_up){ s, pcs });
	settle(s);
	if (!rc && (h->nr_blobs + s->nr > JVM_READ_BLOBS_MAX ||
		    h->memory + s->memory > JVM_READ_MEMORY_MAX))
		rc = -E2BIG;
	if (!rc)
		rc = jvm_read_blobs_merge(h, s->blobs, s->nr);
	if (rc)
		jvm_read_blobs_free(s->blobs, s->nr);
	else
		free(s->blobs);
	if (!rc)
		jvm_read_blobs_count(h, s->nr_new);
	scan_free(s);
	return rc;
}

/* Return whether the head in @bytes, read again, is of the code @b. */
static bool is_same_code(const struct vmstructs *v, const uint8_t *bytes,
			 const struct jvm_read_blob *b)
{
	return bytes_u64(bytes + v->nmethod_method) == b->method &&
	       bytes_u32(bytes + v->nmethod_compile_id) == b->compile_id;
}

/*
 * Test at each of @nr addresses whether the code there is unchanged: else chains that were read
 * before are invalid. 0 or -errno.
 */
static int jvm_read_test_current(const struct jvm_read *h, struct remote *r, const uint64_t *pcs,
				 uint32_t nr, bool *current)
{
	const struct jvm_read_blob *blobs[REMOTE_PIECES_MAX];
	uint64_t addrs[REMOTE_PIECES_MAX];
	struct head *heads = nr ? malloc(MIN(nr, REMOTE_PIECES_MAX) * sizeof(*heads)) : NULL;
	int rc = nr && !heads ? -ENOMEM : 0;

	for (uint32_t done = 0, part; done < nr && !rc; done += part) {
		part = MIN(nr - done, REMOTE_PIECES_MAX);
		for (uint32_t i = 0; i < part; i++) {
			blobs[i] = jvm_read_blobs_at(h, pcs[done + i]);
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

/*
 * Names of the methods of a JVM. Runs on: a helper.
 */

#define SYMBOL_MAX (JVM_READ_NAME_MAX / 2 - 2)

/* Code that is searched for its exits, and bytes behind the "pop" in which a poll may be. */
#define EXIT_CODE_MAX (16U << 10)
#define EXIT_POLL     16U

/* Read a Symbol: its text with '/' as '.', NUL added. The length or -errno. */
static int read_symbol(const struct vmstructs *v, struct remote *r, uint64_t symbol, char *text)
{
	uint16_t length;
	int rc = remote_read_u16(r, symbol + v->symbol_length, &length);

	if (rc)
		return rc;
	length = (uint16_t)MIN(length, SYMBOL_MAX);
	rc = remote_read(r, symbol + v->symbol_body, text, length);
	if (rc)
		return rc;
	for (uint16_t i = 0; i < length; i++)
		text[i] = (char)(text[i] == '/' ? '.' : text[i]);
	text[length] = '\0';
	return length ? length : -EBADMSG;
}

/* Copy the text of the Symbol that constant @index of @pool is. Its length or -errno. */
static int jvm_read_constant(const struct jvm_read *h, struct remote *r, uint64_t pool,
			     uint16_t index, char *text, size_t size)
{
	char whole[SYMBOL_MAX + 1];
	uint64_t symbol;
	int rc = remote_read_u64(r, pool + h->vm.pool_size + 8ULL * index, &symbol);

	if (!rc)
		rc = read_symbol(&h->vm, r, symbol & ~1ULL, whole);
	if (rc < 0)
		return rc;
	return snprintf(text, size, "%s", whole);
}

/* Read the name of the class with the constants @pool. Its length or -errno. */
static int read_class(const struct vmstructs *v, struct remote *r, uint64_t pool, char *text)
{
	uint64_t holder, symbol;
	int rc = remote_read_u64(r, pool + v->pool_holder, &holder);

	if (!rc)
		rc = remote_read_u64(r, holder + v->klass_name, &symbol);
	return rc ? rc : read_symbol(v, r, symbol, text);
}

/*
 * The name of the Method at @method as "Class.name" in @name, and where its
 * bytecodes are. 0, -EBADMSG (makes no sense), -errno.
 */
static int jvm_read_method(const struct jvm_read *h, struct remote *r, uint64_t method,
			   char name[static JVM_READ_NAME_MAX], uint64_t *code, uint32_t *code_size)
{
	const struct vmstructs *v = &h->vm;
	char klass_text[SYMBOL_MAX + 1], method_text[SYMBOL_MAX + 1];
	uint64_t constant, pool;
	bool missed = false;
	uint16_t index, size;
	int rc;

	if (!method || method % 8)
		return -EBADMSG;
	rc = remote_read_u64(r, method + v->method_const, &constant);
	if (!rc)
		rc = remote_read_u64(r, constant + v->const_pool, &pool);
	if (!rc)
		rc = remote_read_u16(r, constant + v->const_name, &index);
	if (!rc)
		rc = remote_read_u16(r, constant + v->const_code_size, &size);
	if (rc)
		return rc;
	rc = read_class(v, r, pool, klass_text);
	if (rc < 0 && !r->missed)
		return rc;
	remote_begin_part(r, &missed);
	rc = jvm_read_constant(h, r, pool, index, method_text, sizeof(method_text));
	if (remote_end_parts(r, missed))
		return -EAGAIN;
	if (rc < 0)
		return rc;
	snprintf(name, JVM_READ_NAME_MAX, "%s.%s", klass_text, method_text);
	*code = constant + v->const_method_size;
	*code_size = size;
	return 0;
}

/* Add an offset to the four of @exits. False: there are more. */
static bool add_exit(uint64_t *exits, uint64_t at)
{
	if (*exits >> 48 || !at || at > UINT16_MAX)
		return false;
	*exits = *exits << 16 | at;
	return true;
}

/*
 * Return the offsets from which a frame of @words words is removed: behind "add $size,%rsp", at
 * "pop %rbp", and at the code that a poll before the return jumps to, if a safepoint is wanted
 * ("ja"). 0: none, or more than four. A number that looks like these makes a guess of a frame.
 */
static uint64_t find_exits(const uint8_t *code, uint32_t size, uint32_t words)
{
	const uint32_t add = 8 * (words - 2);
	uint64_t exits = 0;

	for (uint32_t i = 0; i + 8 + EXIT_POLL + 6 <= size; i++) {
		const uint8_t *at = code + i;
		uint32_t length = at[1] == 0x83 ? 4 : 7;

		if (at[0] != 0x48 || at[2] != 0xc4 || at[length] != 0x5d ||
		    (at[1] == 0x83 ? at[3] != add : at[1] != 0x81 || bytes_u32(at + 3) != add))
			continue;
		if (!add_exit(&exits, i + length))
			return 0;
		for (uint32_t k = length + 1; k < length + EXIT_POLL; k++)
			if (at[k] == 0x0f && at[k + 1] == 0x87 &&
			    !add_exit(&exits, i + k + 6 + (uint64_t)(int32_t)bytes_u32(at + k + 2)))
				return 0;
	}
	return exits;
}

/* Read the code of @b for its exits, which are unknown if that fails. */
static void read_exits(struct remote *r, struct jvm_read_blob *b)
{
	uint64_t size = b->end - b->start;
	uint8_t *code = b->frame_words > 2 && size <= EXIT_CODE_MAX ? malloc(size) : NULL;

	if (code && !remote_read(r, b->start, code, size))
		b->exits = find_exits(code, (uint32_t)size, b->frame_words);
	free(code);
}

/*
 * Read the name of blob @i, if it is the code of a method that a scan or a look-up has found; if
 * the reading fails, the name remains NULL. 0, or -E2BIG: too much for one JVM.
 */
static int jvm_read_name(struct jvm_read *h, struct remote *r, uint32_t i)
{
	struct jvm_read_blob *b = &h->blobs[i];
	char name[JVM_READ_NAME_MAX];
	uint64_t code;
	uint32_t code_size;

	assert(i < h->nr_blobs);
	if (b->name || !b->fresh || b->kind != JVM_READ_COMPILED ||
	    jvm_read_method(h, r, b->method, name, &code, &code_size))
		return 0;
	read_exits(r, b);
	if (r->missed)
		return 0;
	h->memory -= jvm_read_blob_memory(b);
	set_name(b, name);
	h->memory += jvm_read_blob_memory(b);
	return h->memory <= JVM_READ_MEMORY_MAX ? 0 : -E2BIG;
}

/*
 * Lines and inlined methods of compiled Java code: PcDescs, scopes, line
 * tables (JDK source: pcDesc.hpp, debugInfoRec.cpp, compressedStream.hpp).
 *
 * Runs on: a helper. Every number is foreign.
 */

#define PCDESC_SIZE	16U
#define PCDESCS_MAX	(1U << 16)
#define SCOPE_BYTES	32U /* of one scope, as far as it is read: three numbers */
#define LINES_BYTES_MAX 65536U
#define LINES_STEP	256U
#define METADATA_MAX	65536U
#define NEW_UNSIGNED5	19 /* JDK: numbers leave out the byte 0 from then on */
#define HAS_LINES	1U /* ConstMethod::_flags */
#define ESCAPE		0xff

/* Bytes of a compressed stream in memory. */
struct stream {
	const uint8_t *bytes;
	size_t size, at;
	bool new_format;
};

/* Read one UNSIGNED5 number; beyond the end all bytes are 0. */
static uint32_t take_number(struct stream *s)
{
	uint32_t least = s->new_format ? 1 : 0, most = s->new_format ? 191 : 192, sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte = s->at < s->size ? s->bytes[s->at] : 0;

		s->at++;
		sum += (byte - least) << (6 * i);
		if (byte < most + least)
			break;
	}
	return sum;
}

static int32_t take_signed(struct stream *s)
{
	uint32_t value = take_number(s);

	return (int32_t)(value >> 1) ^ -(int32_t)(value & 1);
}

/* A walk along a compressed line table: pairs of an instruction and its line, as differences. */
struct line_walk {
	struct stream s;
	int64_t bci, line; /* sums of foreign numbers */
	int64_t found;	   /* line of the last pair up to the instruction */
};

/* Walk to @bci. True: that is the line; false: the table goes on behind the bytes. */
static bool walk_lines(struct line_walk *w, int32_t bci)
{
	while (w->s.at < w->s.size) {
		struct line_walk next = *w;
		uint8_t byte = next.s.bytes[next.s.at++];

		if (!byte)
			return true;
		if (byte == ESCAPE) {
			next.bci += take_signed(&next.s);
			next.line += take_signed(&next.s);
		} else {
			next.bci += byte >> 3;
			next.line += byte & 7;
		}
		if (next.s.at > next.s.size)
			return false;
		if (next.bci > bci)
			return true;
		next.found = next.line;
		*w = next;
	}
	return false;
}

static bool is_new(const struct jvm_read *h, struct remote *r)
{
	uint32_t major = 0;

	return h->vm.vm_major != UINT64_MAX && !remote_read_u32(r, h->vm.vm_major, &major) &&
	       major >= NEW_UNSIGNED5;
}

/* Read the line table behind the @size bytecodes at @code, and find @bci in it. */
static uint32_t find_line(const struct jvm_read *h, struct remote *r, uint64_t code, uint32_t size,
			  int32_t bci)
{
	uint64_t constant = code - h->vm.const_method_size;
	struct line_walk w = { .s.new_format = is_new(h, r) };
	uint8_t *bytes = NULL;
	uint32_t room = 0;
	bool end = false;
	uint16_t flags;

	if (h->vm.const_flags != UINT64_MAX &&
	    !remote_read_u16(r, constant + h->vm.const_flags, &flags) && flags & HAS_LINES) {
		/* Its length is not stored; the byte 0 at its end may be in a number as well. */
		while (!end && w.s.size < LINES_BYTES_MAX &&
		       array_reserve(&bytes, &room, w.s.size + LINES_STEP) &&
		       !remote_read(r, code + size + w.s.size, bytes + w.s.size, LINES_STEP)) {
			w.s.bytes = bytes;
			w.s.size += LINES_STEP;
			end = walk_lines(&w, bci);
		}
	}
	free(bytes);
	return end && w.found > 0 ? (uint32_t)w.found : 0;
}

/* Read the name of the source file of the method with the bytecodes at @code. */
static void find_file(const struct jvm_read *h, struct remote *r, uint64_t code,
		      struct jvm_read_frame *f)
{
	const struct vmstructs *v = &h->vm;
	uint64_t pool;
	uint16_t index;

	if (v->source_file != UINT64_MAX &&
	    !remote_read_u64(r, code - v->const_method_size + v->const_pool, &pool) &&
	    !remote_read_u16(r, pool + v->source_file, &index) && index)
		jvm_read_constant(h, r, pool, index, f->file, sizeof(f->file));
}

/* Name the method of @f, its file and line. */
static int name_frame(const struct jvm_read *h, struct remote *r, struct jvm_read_frame *f)
{
	bool missed = false;
	uint64_t code;
	uint32_t size;
	int rc = jvm_read_method(h, r, f->method, f->name, &code, &size);

	f->line = 0;
	f->file[0] = '\0';
	if (rc)
		return rc;
	if (f->bci >= 0 && (uint32_t)f->bci < size)
		f->line = find_line(h, r, code, size, f->bci);
	remote_begin_part(r, &missed);
	find_file(h, r, code, f);
	remote_end_parts(r, missed);
	return 0;
}

/* Name the methods of all frames. */
static int name_frames(const struct jvm_read *h, struct remote *r, struct jvm_read_frame *frames,
		       uint32_t nr)
{
	bool missed = false;
	int rc = 0;

	for (uint32_t i = 0; i < nr && (!rc || missed); i++) {
		rc = name_frame(h, r, &frames[i]);
		remote_begin_part(r, &missed);
	}
	remote_end_parts(r, missed);
	return rc;
}

/* Addresses of the descriptions of compiled code. */
struct scopes {
	uint64_t pcs, pcs_size; /* PcDescs */
	uint64_t data;		/* what they describe */
	uint64_t metadata;	/* pointers to the methods */
};

/* Read the offsets of the PcDescs from @at and @end on. */
static int find_pcs(struct remote *r, uint64_t base, uint64_t at, uint64_t end, struct scopes *s)
{
	uint32_t first, last;
	int rc = remote_read_u32(r, at, &first);

	if (!rc)
		rc = remote_read_u32(r, end, &last);
	if (rc)
		return rc;
	if (last < first || last > (64U << 20))
		return -EBADMSG;
	s->pcs = base + first;
	s->pcs_size = MIN(last - first, PCDESCS_MAX * PCDESC_SIZE);
	return 0;
}

/* JDK 11 to 22: in the nmethod. From JDK 23 on: in memory to which it points. */
static int find_scopes_data(const struct vmstructs *v, const struct jvm_read_blob *b,
			    struct remote *r, struct scopes *s)
{
	uint64_t base;
	uint32_t offset;
	int rc;

	if (v->scopes_data != UINT64_MAX) {
		rc = remote_read_u64(r, b->blob + v->scopes_data, &s->data);
		return rc ? rc
			  : find_pcs(r, b->blob, b->blob + v->scopes_pcs, b->blob + v->dependencies,
				     s);
	}
	rc = remote_read_u64(r, b->blob + v->immutable_data, &base);
	if (!rc)
		rc = remote_read_u32(r, b->blob + v->scopes_data_offset, &offset);
	if (rc)
		return rc;
	s->data = base + offset;
	return find_pcs(r, base, b->blob + v->scopes_pcs, b->blob + v->scopes_data_offset, s);
}

/*
 * To JDK 22: in the nmethod. JDK 23, 24: in its data. From JDK 25 on: in memory to which it points,
 * behind the relocations.
 */
static int find_metadata(const struct vmstructs *v, const struct jvm_read_blob *b, struct remote *r,
			 struct scopes *s)
{
	uint32_t offset, data = 0;
	uint16_t narrow;
	int rc;

	if (v->mutable_data != UINT64_MAX) {
		rc = remote_read_u64(r, b->blob + v->mutable_data, &s->metadata);
		if (!rc)
			rc = remote_read_u32(r, b->blob + v->relocation_size, &offset);
		s->metadata += rc ? 0 : offset;
		return rc;
	}
	if (v->metadata_size == 4) {
		rc = remote_read_u32(r, b->blob + v->metadata, &offset);
	} else {
		rc = remote_read_u16(r, b->blob + v->metadata, &narrow);
		offset = narrow;
		if (!rc)
			rc = remote_read_u32(r, b->blob + v->data_offset, &data);
	}
	s->metadata = rc ? 0 : b->blob + data + offset;
	return rc;
}

/* Return whether the JVM has all symbols of one way to find the descriptions. */
static bool has_scopes(const struct vmstructs *v)
{
	bool inside = v->scopes_data != UINT64_MAX && v->dependencies != UINT64_MAX;
	bool apart = v->immutable_data != UINT64_MAX && v->scopes_data_offset != UINT64_MAX;
	bool mutable = v->mutable_data != UINT64_MAX && v->relocation_size != UINT64_MAX;
	bool narrow = v->metadata_size == 2 && v->data_offset != UINT64_MAX;

	return v->scopes_pcs != UINT64_MAX && (inside || apart) &&
	       (mutable || v->metadata_size == 4 || narrow);
}

static int find_scopes(const struct vmstructs *v, const struct jvm_read_blob *b, struct remote *r,
		       struct scopes *s)
{
	int rc = find_scopes_data(v, b, r, s);

	return rc ? rc : find_metadata(v, b, r, s);
}

/*
 * The scope of the instruction at @pc: where its description begins. A PcDesc is at the end of the
 * instructions that it describes: a return address, one above @pc, has a PcDesc; other
 * instructions belong to the next one, as in the JVM's own pc_desc_near(), or if that has no scope,
 * to the call before. 0: none.
 */
static int find_scope(const struct scopes *s, const struct jvm_read_blob *b, struct remote *r,
		      uint64_t pc, uint32_t *scope, bool *exact)
{
	int32_t offset = (int32_t)(pc - b->start);
	uint8_t *bytes = malloc(MAX(s->pcs_size, 1U));
	int rc;

	*scope = 0;
	*exact = false;
	if (!bytes)
		return -ENOMEM;
	rc = remote_read(r, s->pcs, bytes, s->pcs_size);
	/* Sorted by pc; the first and the last one are sentinels. */
	for (uint64_t at = 0; !rc && at + PCDESC_SIZE <= s->pcs_size; at += PCDESC_SIZE) {
		int32_t number[2];

		memcpy(number, bytes + at, sizeof(number));
		if (number[0] >= offset && number[1] > 0) {
			*scope = (uint32_t)number[1];
			*exact = number[0] == offset + 1;
		}
		if (number[0] > offset)
			break;
	}
	free(bytes);
	return rc;
}

static int read_method(const struct scopes *s, struct remote *r, uint32_t index, uint64_t *method)
{
	if (!index || index > METADATA_MAX)
		return -EBADMSG;
	return remote_read_u64(r, s->metadata + 8ULL * (index - 1), method);
}

/* Read the methods inlined at @scope, innermost first. *@nr: their number; 0 or -errno. */
static int read_scopes(const struct jvm_read *h, struct remote *r, const struct scopes *scopes,
		       uint32_t scope, struct jvm_read_frame *frames, uint32_t *nr)
{
	int rc = 0;

	while (scope && *nr < JVM_READ_FRAMES_MAX) {
		uint8_t bytes[SCOPE_BYTES];
		struct stream s = { .bytes = bytes,
				    .size = sizeof(bytes),
				    .new_format = is_new(h, r) };
		uint32_t sender, index;

		rc = remote_read(r, scopes->data + scope, bytes, sizeof(bytes));
		if (rc)
			break;
		sender = take_number(&s);
		index = take_number(&s);
		frames[*nr].bci = (int32_t)take_number(&s) - 1;
		rc = read_method(scopes, r, index, &frames[*nr].method);
		if (rc)
			break;
		++*nr;
		/* Callers are described before: this ends. */
		scope = sender < scope ? sender : 0;
	}
	return rc;
}

/*
 * Find the methods inlined at @pc, an address in compiled code, innermost
 * first, the compiled method last. How many; 0: not known; -errno of reading.
 * *@exact: the code describes the call at look-up pc @pc; else they are of the
 * next description, which may be of other methods.
 */
static int jvm_read_chain(const struct jvm_read *h, struct remote *r, uint64_t pc,
			  struct jvm_read_frame frames[static JVM_READ_FRAMES_MAX], bool *exact)
{
	const struct jvm_read_blob *b = jvm_read_blobs_at(h, pc);
	struct scopes scopes;
	uint32_t scope, nr = 0;
	int rc;

	*exact = false;
	if (!b || b->kind != JVM_READ_COMPILED || !has_scopes(&h->vm))
		return 0;
	rc = find_scopes(&h->vm, b, r, &scopes);
	if (!rc)
		rc = find_scope(&scopes, b, r, pc, &scope, exact);
	if (!rc)
		rc = read_scopes(h, r, &scopes, scope, frames, &nr);
	if (!rc)
		rc = name_frames(h, r, frames, nr);
	/* The last one must be the method itself, or the chain is of something else. */
	return rc || !nr || frames[nr - 1].method != b->method ? rc : (int)nr;
}

/*
 * The job that reads the code cache, the methods and the chains of one JVM.
 *
 * Runs on: a helper.
 */

/* Bytes of the chains of one job: 2 KiB for each, if all that may be requested are. */
#define JVM_READ_JOB_CHAINS_MEMORY_MAX (8UL << 20)

static atomic_uint nr_left; /* relaxed: a number alone */

static atomic_ulong last_id; /* the same */

void jvm_read_job_forget(struct jvm_read_job *r)
{
	for (uint32_t i = 0; i < r->nr_methods; i++)
		free(r->methods[i].name);
	free(r->methods);
	r->methods = NULL;
	r->nr_methods = 0;
	free(r->pcs);
	r->pcs = NULL;
	r->nr_pcs = 0;
}

void jvm_read_job_free_chains(struct jvm_read_job_chain *chains, uint32_t nr)
{
	assert(chains || !nr);
	for (uint32_t i = 0; i < nr; i++)
		free(chains[i].frames);
	free(chains);
}

void jvm_read_job_drop(struct job *job)
{
	struct jvm_read_job *r = (struct jvm_read_job *)job;

	jvm_read_job_forget(r);
	jvm_read_job_free_chains(r->chains, r->nr_chains);
	free(r->frames);
	jvm_read_close(&r->vm);
	if (r->remote.fd >= 0)
		close(r->remote.fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->left)
		atomic_fetch_sub_explicit(&nr_left, 1, memory_order_relaxed);
	free(r);
}

/* Abandon a job that runs: it is freed when it ends, if it does. */
void jvm_read_job_leave(struct jvm_read_job *r)
{
	/* Before it is abandoned: after that the helper may free it. */
	r->left = true;
	atomic_fetch_add_explicit(&nr_left, 1, memory_order_relaxed);
	helper_job_leave(&r->job);
}

unsigned int jvm_read_job_nr_left(void)
{
	return atomic_load_explicit(&nr_left, memory_order_relaxed);
}

/* Copy @nr frames with their texts into one block; NULL: no memory, or the chains have enough. */
static struct jvm_read_job_frame *copy_frames(struct jvm_read_job *r,
					      const struct jvm_read_frame *frames, int nr)
{
	size_t size = (size_t)nr * sizeof(struct jvm_read_job_frame);
	struct jvm_read_job_frame *out;
	char *text;

	for (int i = 0; i < nr; i++)
		size += strlen(frames[i].name) + strlen(frames[i].file) + 2;
	out = r->inlines_memory + size <= JVM_READ_JOB_CHAINS_MEMORY_MAX ? malloc(MAX(size, 1U))
									 : NULL;
	if (!out)
		return NULL;
	r->inlines_memory += size;
	text = (char *)(out + nr);
	for (int i = 0; i < nr; i++) {
		out[i].line = frames[i].line;
		out[i].name = text;
		text = stpcpy(text, frames[i].name) + 1;
		out[i].file = text;
		text = stpcpy(text, frames[i].file) + 1;
	}
	return out;
}

int jvm_read_job_begin_chains(struct jvm_read_job *j)
{
	j->inlines_memory = 0;
	if (!j->frames && j->nr_chains)
		j->frames = calloc(JVM_READ_FRAMES_MAX, sizeof(*j->frames));
	return j->frames || !j->nr_chains ? 0 : -ENOMEM;
}

void jvm_read_job_add_chain(struct jvm_read_job *j, struct jvm_read_job_chain *c, int nr,
			    bool exact)
{
	free(c->frames);
	c->frames = nr > 0 ? copy_frames(j, j->frames, nr) : NULL;
	c->nr = c->frames ? (uint32_t)nr : 0;
	c->exact = exact;
}

static int read_chain(struct jvm_read_job *j, uint32_t i)
{
	bool exact = false;
	int nr = jvm_read_chain(&j->vm, &j->remote, j->chains[i].addr, j->frames, &exact);

	assert(i < j->nr_chains);
	if (!j->remote.missed)
		jvm_read_job_add_chain(j, &j->chains[i], nr, exact);
	return 0;
}

static int read_method_of_job(struct jvm_read_job *j, uint32_t i)
{
	struct jvm_read_method_name *m = &j->methods[i];
	char name[JVM_READ_NAME_MAX];

	assert(i < j->nr_methods);
	m->rc = jvm_read_method(&j->vm, &j->remote, m->method, name, &m->code, &m->code_size);
	m->name = m->rc || j->remote.missed ? NULL : strdup(name);
	return 0;
}

/* Scan the code cache, or look up the addresses in the request. */
static int read_code(struct jvm_read_job *r)
{
	uint64_t cpu_ns = time_thread_ns();
	int rc;

	if (!r->scan)
		return jvm_read_look_up(&r->vm, &r->remote, r->pcs, r->nr_pcs);
	rc = jvm_read_scan(&r->vm, &r->remote);
	r->scan_ns = time_thread_ns() - cpu_ns;
	return rc;
}

/* Read a name of code, a method, or a chain. */
static int read_item(void *of, uint32_t i)
{
	struct jvm_read_job *j = of;

	if (i < j->vm.nr_blobs)
		return jvm_read_name(&j->vm, &j->remote, i);
	i -= j->vm.nr_blobs;
	return i < j->nr_methods ? read_method_of_job(j, i) : read_chain(j, i - j->nr_methods);
}

/* Forget the chains of code that was replaced while they were read. */
static int drop_changed(struct jvm_read_job *j)
{
	uint64_t *pcs = j->nr_chains ? malloc(j->nr_chains * sizeof(*pcs)) : NULL;
	bool *current = j->nr_chains ? calloc(j->nr_chains, sizeof(*current)) : NULL;
	uint32_t nr = 0;
	int rc = j->nr_chains && (!pcs || !current) ? -ENOMEM : 0;

	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr)
			pcs[nr++] = j->chains[i].addr;
	if (!rc)
		rc = jvm_read_test_current(&j->vm, &j->remote, pcs, nr, current);
	nr = 0;
	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr && !current[nr++])
			jvm_read_job_add_chain(j, &j->chains[i], 0, false);
	free(pcs);
	free(current);
	return rc;
}

int jvm_read_job_read(struct jvm_read_job *j, const struct jvm_read_tables *t)
{
	const char *missing;
	int rc = j->open ? 0 : jvm_read_open(&j->vm, &j->remote, t, &missing);

	j->open = !rc;
	if (!rc)
		rc = read_code(j);
	if (!rc)
		rc = jvm_read_job_begin_chains(j);
	/* All together: the caller of a worker reads for all that wait. */
	if (!rc)
		rc = remote_for_each(&j->remote, j->vm.nr_blobs + j->nr_methods + j->nr_chains,
				     read_item, j);
	return rc ? rc : drop_changed(j);
}

struct jvm_read_job *jvm_read_job_new(pid_t pid, void (*run)(struct job *job))
{
	struct jvm_read_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job = (struct job){ .run = run, .drop = jvm_read_job_drop };
	r->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	r->remote = (struct remote){
		.pid = pid, .fd = -1, .nr_reads_max = JVM_READ_READS_MAX, .watch = &r->job.watch
	};
	r->dir_fd = -1;
	return r;
}
