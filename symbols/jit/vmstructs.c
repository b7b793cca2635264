// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read gHotSpotVMStructs and gHotSpotVMTypes. Runs on: a helper.
 */
#include "symbols/jit/vmstructs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/elfvar.h"

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
static const struct wanted wanted[] = {
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
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && !rc; i++) {
		if (!wanted[i].field || strcmp(wanted[i].type, type))
			continue;
		if (!field[0])
			rc = read_name(r, entry, at[STRUCTS_FIELD], field);
		if (rc || strcmp(wanted[i].field, field))
			continue;
		memcpy(&is_static, entry + at[STRUCTS_STATIC], sizeof(is_static));
		memcpy(&value, entry + (is_static ? at[STRUCTS_ADDRESS] : at[STRUCTS_OFFSET]),
		       sizeof(value));
		*member(v, &wanted[i]) = value;
		if (wanted[i].size_at)
			rc = read_size(r, entry, at[STRUCTS_TEXT],
				       (uint64_t *)((char *)v + wanted[i].size_at));
	}
	return rc;
}

/* Take one entry of gHotSpotVMTypes. */
static void take_size(struct vmstructs *v, const uint64_t *at, const uint8_t *entry,
		      const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (!wanted[i].field && !strcmp(wanted[i].type, type))
			memcpy(member(v, &wanted[i]), entry + at[TYPES_SIZE], sizeof(uint64_t));
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

int vmstructs_read(struct vmstructs *v, struct remote *r,
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
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && !rc; i++)
		rc = check(v, &wanted[i], missing);
	return rc ? rc : check_blobs(v, missing);
}
