// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8 (Node.js): candidates for frames of JavaScript in the stack copy, their functions, compiled
 * code with the functions inlined in it, tables of lines, offsets that its file has for debuggers.
 *
 * Runs on: a reader. The type of each object is checked. A function is known again by its address,
 * its number in its script and the number of the script, which a new one never gets: so texts are
 * read once although memory is reused.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

/* Functions without frames may be added to w->script_functions_of: they are inlined in others. */
#define V8_INLINED_A_SAMPLE 64U

/* Types of functions: plain ones, and constructors of built-in and other classes. */
#define FUNCTION_TYPES 20

/* Find the SharedFunctionInfo of each candidate. */
static void find_shared(struct lang_reader *r, const struct lang_process *p)
{
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(&r->memory, w->v8.piece[i]);
		uint64_t shared = f ? bytes_u64(f + p->v8.number[V8_FUNCTION_SHARED]) : 0;

		if (!v8objects_is_tagged(shared))
			continue;
		w->address[nr] = shared - 1;
		w->v8.piece[nr] = w->v8.piece[i];
		w->v8.pc[nr] = w->v8.pc[i];
		w->v8.bytecodes[nr] = w->v8.bytecodes[i];
		w->v8.bytecodes_piece[nr] = w->v8.bytecodes_piece[i];
		w->boundary[nr] = w->boundary[i];
		w->instr[nr] = w->instr[i];
		nr++;
	}
	w->nr = nr;
}

static bool is_function(const struct lang_process *p, int type)
{
	int first = p->v8.number[V8_TYPE_FUNCTION];

	return type >= first && type < first + FUNCTION_TYPES;
}

/* Leave out codes without frames. */
static void keep_codes(struct lang_work *w)
{
	uint16_t to[LANG_FRAMES_MAX] = { 0 };
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++)
		to[w->code[i]] = 1;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		if (!to[i])
			continue;
		w->script_functions_of[nr] = w->script_functions_of[i];
		memcpy(w->v8.compiled[nr], w->v8.compiled[i], sizeof(w->v8.compiled[i]));
		memcpy(w->v8.data[nr], w->v8.data[i], sizeof(w->v8.data[i]));
		w->v8.entry[nr] = w->v8.entry[i];
		w->v8.script_of[nr] = w->v8.script_of[i];
		to[i] = (uint16_t)nr++;
	}
	w->nr_codes = nr;
	for (uint32_t i = 0; i < w->nr; i++)
		w->code[i] = to[w->code[i]];
}

/* Keep the candidates with a function and a SharedFunctionInfo by their types. */
static void keep_functions(struct lang_reader *r, const struct lang_process *p,
			   const struct v8_types *t)
{
	const struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		bool bytecodes = v8objects_type(m, t, w->v8.bytecodes_piece[i]) ==
				 p->v8.number[V8_TYPE_BYTECODES];

		if (!is_function(p, v8objects_type(m, t, w->v8.piece[i])) ||
		    v8objects_type(m, t, w->script_functions_of[w->code[i]].header) !=
			    p->v8.number[V8_TYPE_SHARED])
			continue;
		w->boundary[nr] = w->boundary[i];
		w->code[nr] = w->code[i];
		w->v8.pc[nr] = w->v8.pc[i];
		w->instr[nr] = bytecodes ? w->instr[i] : LANG_NO_INSTR;
		w->v8.bytecodes[nr] = bytecodes ? w->v8.bytecodes[i] : 0;
		nr++;
	}
	w->nr = nr;
	keep_codes(w);
}

/* Queue the heads of functions from @first on: their SharedFunctionInfo. */
static void v8code_want_headers(struct lang_reader *r, const struct lang_process *p, uint32_t first)
{
	uint32_t size = (uint32_t)p->v8.number[V8_SHARED_FLAGS] + 8;

	for (uint32_t i = first; i < r->work.nr_codes; i++)
		r->work.script_functions_of[i].header =
			lang_memory_want(&r->memory, r->work.script_functions_of[i].address, size);
}

static void v8compiled_want(struct lang_reader *r, const struct lang_process *p);
static void v8compiled_want_data(struct lang_reader *r, struct v8_types *t,
				 const struct lang_process *p);

/* Read functions and scripts of the frames, and check types; false: no call is left. */
static bool read_shared(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			struct v8_types *types)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	find_shared(r, p);
	functions_number(r, process);
	for (uint32_t i = 0; i < w->nr; i++) {
		v8objects_want_type(m, p, types, w->v8.piece[i]);
		v8objects_want_type(m, p, types, w->v8.bytecodes_piece[i]);
	}
	v8code_want_headers(r, p, 0);
	v8compiled_want(r, p);
	if (!lang_memory_fetch(m))
		return false;
	w->v8.nr_scripts = 0;
	v8script_want(r, p, types, 0);
	v8compiled_want_data(r, types, p);
	if (!lang_memory_fetch(m))
		return false;
	keep_functions(r, p, types);
	for (uint32_t i = 0; i < w->v8.nr_scripts; i++)
		v8objects_want_type(m, p, types, w->v8.scripts[i].head);
	functions_index(w);
	return true;
}

/*
 * The identity of a function: its number in its script, and the script's.
 * Of a builtin: name and number.
 */
static uint64_t v8code_identity(const struct lang_reader *r, const struct lang_process *p,
				uint32_t code)
{
	const struct lang_code_at *c = &r->work.script_functions_of[code];
	const int16_t *n = p->v8.number;
	const uint8_t *f = lang_memory_piece(&r->memory, c->header);
	const uint8_t *script = lang_memory_piece(&r->memory, c->hash);
	uint64_t s;

	assert(code < r->work.nr_codes);
	s = hash_u64(bytes_u64(f + n[V8_SHARED_FLAGS])); /* and the number behind it */
	if (bytes_u64(f + n[V8_SHARED_FLAGS]) >> 63 || !script) {
		s = hash_u64(s ^ bytes_u64(f + n[V8_SHARED_NAME]));
		return hash_u64(s ^ bytes_u64(f + n[V8_SHARED_DATA]));
	}
	s = hash_u64(s ^ bytes_u64(f + n[V8_SHARED_SCRIPT]));
	return hash_u64(s ^ bytes_u64(script + n[V8_SCRIPT_ENDS] + 8));
}

/* A function is another one with a table of lines, and with its script's text. */
static void set_stamps(struct lang_reader *r, const struct lang_process *p)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		uint64_t known = (v8code_bytecodes(w, i) ? 1 : 0) |
				 (v8script_is_whole(w, i) ? 2 : 0);

		w->functions[i] = (struct lang_function){ .table = -1 };
		w->script_functions_of[i].stamp = hash_u64(v8code_identity(r, p, i) ^ known);
	}
}

/* Set the line of each interpreted frame from the byte in its bytecodes. */
static void set_frame_lines(struct lang_reader *r)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct code_text *t =
			script_functions_at(r->codes, w->script_functions_of[w->code[i]].id);
		uint64_t at = w->instr[i];
		struct v8_entry e;

		w->instr[i] = LANG_NO_INSTR;
		if (t && at < LANG_NO_INSTR &&
		    v8table_find(t->table, t->table_size, (uint32_t)at, &e) && e.line)
			w->instr[i] = e.line;
	}
}

static bool v8compiled_find(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			    struct v8_types *t);
static void v8compiled_add(struct lang_reader *r, const struct lang_process *p,
			   const struct v8_types *t);

/* Note whether an untried version is proven, and return whether it is proven to be another one. */
static bool is_refuted(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	const struct lang_proof *proof = v8names_proof(r, process);

	r->work.proven = proof->right >= LANG_PROOF_MIN &&
			 proof->wrong <= proof->right / LANG_PROOF_SHARE;
	return p->untried && proof->wrong >= LANG_PROOF_MIN && proof->wrong > proof->right;
}

static enum lang_status v8code_find(struct lang_reader *r, const struct lang_process *p,
				    uint32_t process)
{
	struct v8_types types = { 0 };
	struct lang_work *w = &r->work;
	uint32_t fresh[V8_NEW_MAX], nr = 0;
	enum lang_status none;

	if (!read_shared(r, p, process, &types))
		return LANG_BAD_CHAIN;
	if (!w->nr)
		return LANG_NO_FRAMES;
	if (!v8compiled_find(r, p, process, &types) || !v8script_read(r, p, process, &types))
		return LANG_BAD_CHAIN;
	set_stamps(r, p);
	if (functions_find(r, process)) {
		for (uint32_t i = 0; i < w->nr_codes && nr < V8_NEW_MAX; i++)
			if (w->script_functions_of[i].id == CODE_NONE)
				fresh[nr++] = i;
		if (!v8names_read(r, p, process, fresh, nr, &types))
			return LANG_BAD_CHAIN;
	}
	if (is_refuted(r, p, process))
		return LANG_VERSION;
	none = functions_add(r, p, process, NULL);
	if (none != LANG_OK)
		return none;
	v8compiled_add(r, p, &types);
	set_frame_lines(r);
	return none;
}

/*
 * V8's layout of frames and objects: numbers that its build stores in the file
 * as symbols v8dbg_* for debuggers of core files (gen-postmortem-metadata.py).
 *
 * All are bounded here: a decoder may use them as they are. Pure.
 *
 * Names and limits of V8's numbers. Runs on: any thread.
 */

/* Bytes of a function, and of code. */
#define V8_FUNCTION_SIZE 56
#define V8_CODE_SIZE	 64

/* Of the flags of code. */
#define V8_CODE_KIND 15U

/* The last index in the data of optimised code. */
#define V8_DATA_MAX 8

/* An entry of the table of handles: where to begin, and the code, above 16 other bits. */
#define V8_HANDLE_SHIFT	 8
#define V8_HANDLE_ENTRY	 16
#define V8_HANDLE_CODE	 8
#define V8_HANDLE_OTHERS 16

#define PREFIX "v8dbg_"
/* The largest offset in an object, and the largest type of an instance. */
#define OFFSET_MAX 160
/* The largest in the head of an object that is read before its type is known. */
#define HEAD_MAX     (V8_HEAD - 8)
#define FUNCTION_MAX (V8_FUNCTION_SIZE - 8)
#define CODE_MAX     (V8_CODE_SIZE - 8)
#define TYPE_MAX     4096
#define ROOT_MAX     INT16_MAX
/* The largest in a module of WebAssembly, and in the manager of these. */
#define WASM_MAX 2048

/*
 * Names behind the prefix, the first one in the file counts: a class and a field, with any type
 * behind them, or an exact one. NULL: V8 has no symbol for it.
 */
static const struct {
	const char *name, *other, *third;
	int16_t min, max;
} numbers[V8_NR] = {
	[V8_FP_CONTEXT] = { "off_fp_context", NULL, NULL, -64, -8 },
	[V8_FP_FUNCTION] = { "off_fp_function", NULL, NULL, -64, -8 },
	[V8_FP_BYTECODES] = { "off_fp_bytecode_array", NULL, NULL, -64, -8 },
	[V8_FP_OFFSET] = { "off_fp_bytecode_offset", NULL, NULL, -64, -8 },
	[V8_SMI_SHIFT] = { "SmiShiftSize", NULL, NULL, 31, 31 },
	[V8_MAP_TYPE] = { "class_Map__instance_type__", NULL, NULL, 8, OFFSET_MAX },
	[V8_FUNCTION_SHARED] = { "class_JSFunction__shared__", NULL, NULL, 8, FUNCTION_MAX },
	[V8_FUNCTION_CODE] = { "class_JSFunction__code__", NULL, NULL, 0, FUNCTION_MAX },
	[V8_FUNCTION_HANDLE] = { "class_JSFunction__dispatch_handle__", NULL, NULL, 0,
				 FUNCTION_MAX },
	[V8_SHARED_DATA] = { "class_SharedFunctionInfo__function_data__",
			     "class_SharedFunctionInfo__trusted_function_data__", NULL, 8,
			     OFFSET_MAX },
	[V8_SHARED_NAME] = { "class_SharedFunctionInfo__name_or_scope_info__", NULL, NULL, 8,
			     OFFSET_MAX },
	[V8_SHARED_SCRIPT] = { "class_SharedFunctionInfo__script__",
			       "class_SharedFunctionInfo__raw_script__",
			       "class_SharedFunctionInfo__script_or_debug_info__", 8, OFFSET_MAX },
	[V8_SHARED_TOKEN] = { "class_SharedFunctionInfo__raw_function_token_offset__", NULL, NULL,
			      8, OFFSET_MAX },
	[V8_SHARED_FLAGS] = { "class_SharedFunctionInfo__flags__", NULL, NULL, 8, OFFSET_MAX },
	[V8_SCRIPT_NAME] = { "class_Script__name__", NULL, NULL, 8, OFFSET_MAX },
	[V8_SCRIPT_SOURCE] = { "class_Script__source__", NULL, NULL, 8, OFFSET_MAX },
	[V8_SCRIPT_ENDS] = { "class_Script__line_ends__", NULL, NULL, 8, OFFSET_MAX },
	[V8_BYTECODES_POSITIONS] = { "class_BytecodeArray__source_position_table__", NULL, NULL, 8,
				     HEAD_MAX + 8 },
	[V8_BYTECODES_DATA] = { "class_BytecodeArray__data__", NULL, NULL, 8, OFFSET_MAX },
	[V8_CODE_DATA] = { "class_Code__deoptimization_data__", NULL, NULL, 8, CODE_MAX },
	[V8_CODE_TABLE] = { "class_Code__source_position_table__", NULL, NULL, 8, CODE_MAX },
	[V8_CODE_FLAGS] = { "class_Code__flags__", NULL, NULL, 8, CODE_MAX },
	[V8_CODE_BEGIN] = { "class_Code__instruction_start__Address", NULL, NULL, 0, CODE_MAX },
	[V8_CODE_INSIDE] = { "class_Code__instruction_start__uintptr_t", NULL, NULL, 0,
			     OFFSET_MAX },
	[V8_CODE_BYTES] = { "class_Code__instruction_size__", NULL, NULL, 8, CODE_MAX },
	[V8_WRAPPER_SHARED] = { "class_SharedFunctionInfoWrapper__shared_info__", NULL, NULL, 0,
				HEAD_MAX },
	[V8_LENGTH] = { "class_FixedArrayBase__length__", NULL, NULL, 8, OFFSET_MAX },
	[V8_ARRAY_DATA] = { "class_FixedArray__data__", NULL, NULL, 8, OFFSET_MAX },
	[V8_STRING_LENGTH] = { "class_String__length__", NULL, NULL, 8, HEAD_MAX },
	[V8_STRING_CHARS] = { "class_SeqOneByteString__chars__", NULL, NULL, 8, OFFSET_MAX },
	[V8_CONS_FIRST] = { "class_ConsString__first__", NULL, NULL, 8, HEAD_MAX },
	[V8_CONS_SECOND] = { "class_ConsString__second__", NULL, NULL, 8, HEAD_MAX },
	[V8_THIN_ACTUAL] = { "class_ThinString__actual__", NULL, NULL, 8, HEAD_MAX },
	[V8_SCOPE_FLAGS] = { NULL, NULL, NULL, 8, 12 },
	[V8_SCOPE_LOCALS] = { "scopeinfo_idx_ncontextlocals", NULL, NULL, 1, HEAD_MAX / 8 - 1 },
	[V8_SCOPE_POSITION] = { NULL, NULL, NULL, 0, 3 },
	[V8_SCOPE_FIRST] = { "scopeinfo_idx_first_vars", NULL, NULL, 1, 8 },
	[V8_DATA_INLINED] = { "DeoptimizationDataInlinedFunctionCountIndex", NULL, NULL, 0,
			      V8_DATA_MAX },
	[V8_DATA_LITERALS] = { "DeoptimizationDataLiteralArrayIndex", NULL, NULL, 0, V8_DATA_MAX },
	[V8_DATA_OPTIMISATION] = { "DeoptimizationDataOptimizationIdIndex", NULL, NULL, 0,
				   V8_DATA_MAX },
	[V8_DATA_SHARED] = { "DeoptimizationDataWrappedSharedFunctionInfoIndex",
			     "DeoptimizationDataSharedFunctionInfoIndex", NULL, 0, V8_DATA_MAX },
	[V8_DATA_POSITIONS] = { "DeoptimizationDataInliningPositionsIndex", NULL, NULL, 0,
				V8_DATA_MAX },
	[V8_POSITION_BITS] = { NULL, NULL, NULL, 0, 8 },
	[V8_KIND_BASELINE] = { "CodeKindBaseline", NULL, NULL, 1, V8_CODE_KIND - 2 },
	[V8_TYPE_FUNCTION] = { "type_JSFunction__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_SHARED] = { "type_SharedFunctionInfo__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_SCOPE] = { "type_ScopeInfo__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_SCRIPT] = { "type_Script__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_BYTECODES] = { "type_BytecodeArray__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_BYTES] = { "type_ByteArray__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_TRUSTED_BYTES] = { "type_TrustedByteArray__", NULL, NULL, 0, TYPE_MAX },
	[V8_TYPE_CODE] = { "type_Code__", NULL, NULL, 128, TYPE_MAX },
	[V8_TYPE_WRAPPER] = { "type_SharedFunctionInfoWrapper__", NULL, NULL, 0, TYPE_MAX },
	[V8_WASM_MODULES] = { NULL, NULL, NULL, 0, WASM_MAX },
	[V8_WASM_CODES] = { NULL, NULL, NULL, 0, WASM_MAX },
	[V8_WASM_BYTES] = { NULL, NULL, NULL, 0, WASM_MAX },
	[V8_WASM_SIZE] = { NULL, NULL, NULL, 0, V8_WASM_CODE - 4 },
	[V8_WASM_INDEX] = { NULL, NULL, NULL, 0, V8_WASM_CODE - 4 },
	[V8_ROOT_HANDLES] = { NULL, NULL, NULL, 0, ROOT_MAX },
};

/*
 * The numbers that are in no symbol: a row for each version, with the sizes of its bytecodes, two
 * digits for each.
 */
#define VERSION_NUMBERS 23

struct version {
	uint8_t major, minor;
	int16_t number[VERSION_NUMBERS]; /* as rows[] has them */
	const char *sizes;
};

/* The numbers of a row. */
static const uint8_t rows[VERSION_NUMBERS] = {
	V8_FUNCTION_CODE,  V8_FUNCTION_HANDLE, V8_SHARED_DATA,	     V8_BYTECODES_POSITIONS,
	V8_CODE_DATA,	   V8_CODE_TABLE,      V8_CODE_FLAGS,	     V8_CODE_BEGIN,
	V8_CODE_INSIDE,	   V8_CODE_BYTES,      V8_SCOPE_FLAGS,	     V8_SCOPE_POSITION,
	V8_DATA_INLINED,   V8_DATA_LITERALS,   V8_DATA_OPTIMISATION, V8_DATA_SHARED,
	V8_DATA_POSITIONS, V8_POSITION_BITS,   V8_WASM_MODULES,	     V8_WASM_CODES,
	V8_WASM_BYTES,	   V8_WASM_SIZE,       V8_WASM_INDEX,
};

static const struct version versions[] = {
#include "symbols/script/v8_versions.inc"
};

/* Whether @name is the one of a number: of a class, a field and any type, or this one exactly. */
static bool is_name(const char *name, const char *wanted)
{
	size_t size = wanted ? strlen(wanted) : 0;

	return size && !strncmp(name, wanted, size) && (!name[size] || wanted[size - 1] == '_');
}

enum v8_number v8layout_number(const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return V8_NR;
	name += strlen(PREFIX);
	for (int i = 0; i < V8_NR; i++)
		if (is_name(name, numbers[i].name) || is_name(name, numbers[i].other) ||
		    is_name(name, numbers[i].third))
			return (enum v8_number)i;
	return V8_NR;
}

/* Return whether all numbers are within their limits, and all fields before the last one that is
 * read. */
static bool is_usable(const struct v8_layout *l)
{
	const int16_t *n = l->number;

	for (int i = 0; i < V8_NR; i++)
		if (n[i] < numbers[i].min || n[i] > numbers[i].max)
			return false;
	return n[V8_SHARED_DATA] <= n[V8_SHARED_FLAGS] && n[V8_SHARED_NAME] <= n[V8_SHARED_FLAGS] &&
	       n[V8_SHARED_SCRIPT] <= n[V8_SHARED_FLAGS] &&
	       n[V8_SHARED_TOKEN] <= n[V8_SHARED_FLAGS] && n[V8_SCRIPT_NAME] <= n[V8_SCRIPT_ENDS] &&
	       n[V8_SCRIPT_SOURCE] <= n[V8_SCRIPT_ENDS];
}

/* The row of @version, or else of the next lower one, or the lowest. */
static const struct version *find_version(uint32_t version, bool *nearest)
{
	const struct version *found = versions;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (((uint32_t)versions[i].major << 8 | versions[i].minor) <= version >> 16)
			found = &versions[i];
	*nearest = ((uint32_t)found->major << 8 | found->minor) != version >> 16;
	return found;
}

const char *v8layout_complete(struct v8_layout *l, uint32_t version, bool *nearest)
{
	const struct version *v = find_version(version, nearest);
	bool is_sized = l->sizes[0];

	for (uint32_t i = 0; !is_sized && v->sizes[2 * i]; i++)
		l->sizes[i] = (uint8_t)((v->sizes[2 * i] - '0') | (v->sizes[2 * i + 1] - '0') << 4);
	for (int i = 0; i < VERSION_NUMBERS; i++)
		if (l->number[rows[i]] == -1)
			l->number[rows[i]] = v->number[i];
	/* Nor has this version such a field. */
	for (int i = 0; i < V8_NR; i++)
		if (l->number[i] == -1 && !numbers[i].min)
			l->number[i] = 0;
	return is_usable(l) ? NULL : "its layout is not known";
}

/*
 * Numbers and builtins of V8, from its file.
 *
 * Runs on: a helper.
 */

/* Bytes of the builtins in which the ones are that call functions. */
#define CALLS_MAX (256U << 10)

static void v8_symbol(struct v8_symbols *s, const char *name, uint64_t address, uint64_t size)
{
	enum v8_number number = v8layout_number(name);
	static const struct {
		const char *name;
		size_t at;
	} others[] = {
		{ "_ZN2v88internal7Version6major_E", offsetof(struct v8_symbols, major) },
		{ "_ZN2v88internal7Version6minor_E", offsetof(struct v8_symbols, minor) },
		{ "_ZN2v88internal4wasm18GetWasmCodeManagerEv", offsetof(struct v8_symbols, wasm) },
		{ "_ZN2v816WasmModuleObject18FromCompiledModuleEPNS_7IsolateERKNS_"
		  "18CompiledWasmModuleE",
		  offsetof(struct v8_symbols, wasm_import) },
	};

	elfv8_symbol(&s->builtins, name, address);
	if (!strcmp(name, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE")) {
		s->sizes = address;
		s->sizes_size = size;
	}
	if (number != V8_NR)
		s->number[number] = address;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i].name))
			memcpy((char *)s + others[i].at, &address, sizeof(address));
}

/* Return whether @address is in memory that the file leaves zero. */
static bool is_zero(const struct elffile *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr >= p->p_filesz && address - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Get a number of the file: -1 where there is none. */
static int32_t number_at(const struct elffile *f, uint64_t address)
{
	int32_t value;

	if (!address)
		return -1;
	if (elffile_read_at(f, address, &value, sizeof(value)))
		return value;
	return is_zero(f, address) ? 0 : -1;
}

/*
 * Set the sizes of bytecodes: three tables of bytes, of each bytecode without a prefix, and with
 * the prefixes that make operands two and four bytes. None, if that is not so.
 */
static void set_sizes(uint8_t *out, const struct elffile *f, uint64_t address, uint64_t size)
{
	uint8_t table[3 * V8_BYTECODES], sizes[V8_BYTECODES] = { 0 };
	size_t nr = size / 3;

	if (!address || size % 3 || nr > V8_BYTECODES || !elffile_read_at(f, address, table, size))
		return;
	for (size_t i = 0; i < nr; i++) {
		unsigned int one = table[i], operands = table[nr + i] - one;

		if (!one || one > 15 || operands > one || table[2 * nr + i] != one + 3 * operands)
			return;
		sizes[i] = (uint8_t)(one | operands << 4);
	}
	memcpy(out, sizes, sizeof(sizes));
}

/*
 * Find where builtins that call functions load the address of the table of handles from, by the
 * root register: behind that they take the number from a handle. 0: they have none.
 */
static int16_t root_handles(const struct elffile *f, const struct detect_file *d)
{
	/* mov X(%r13),%r10; mov %r15,%rbx; shr $8,%ebx */
	static const uint8_t load[] = { 0x4d, 0x8b, 0x95 },
			     take[] = { 0x49, 0x8b, 0xdf, 0xc1, 0xeb, 8 };
	uint64_t size = MIN(d->blob_size, (uint64_t)CALLS_MAX);
	void *code;
	int32_t at = 0;

	if (elffile_read_alloc(f, d->blob_offset, size, &code))
		return 0;
	for (uint64_t i = 0; i + 13 <= size && !at; i++) {
		const uint8_t *c = (const uint8_t *)code + i;

		if (!memcmp(c, load, sizeof(load)) && !memcmp(c + 7, take, sizeof(take)))
			memcpy(&at, c + 3, sizeof(at));
	}
	free(code);
	return (int16_t)(at > 0 && at <= INT16_MAX ? at : 0);
}

/*
 * The variable that a short function returns the value of; @more: that and a number. 0: it is
 * another one.
 */
static uint64_t returned_variable(const struct elffile *f, uint64_t function, bool more)
{
	/* mov X(%rip),%rax; behind mov $N,%eax: add X(%rip),%rax */
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 }, add[] = { 0x48, 0x03, 0x05 };
	uint8_t code[24];
	int32_t at;

	if (!function || !elffile_read_at(f, function, code, sizeof(code)))
		return 0;
	for (uint32_t i = 0; i + 14 <= sizeof(code); i++) {
		const uint8_t *next = code + i + 7;
		/* add $N,%rax; ret */
		bool sum = !memcmp(next, "\x48\x05", 2) && next[6] == 0xc3;

		if ((memcmp(code + i, load, sizeof(load)) != 0 || sum != more) &&
		    (memcmp(code + i, add, sizeof(add)) != 0 || !more))
			continue;
		memcpy(&at, code + i + 3, sizeof(at));
		return function + i + 7 + (uint64_t)(int64_t)at;
	}
	return 0;
}

/*
 * The variable with WebAssembly's state, in a stripped file, which exports no accessor: from V8
 * 13.6 on the manager of its code begins it, and the first function that the import of a module
 * calls returns the engine, which is behind it.
 */
static uint64_t imported_variable(const struct elffile *f, uint64_t function)
{
	uint64_t found = 0;
	uint8_t code[64];
	int32_t to;

	if (!function || !elffile_read_at(f, function, code, sizeof(code)))
		return 0;
	for (uint32_t i = 0; i + 5 <= sizeof(code) && !found; i++) {
		if (code[i] != 0xe8) /* call */
			continue;
		memcpy(&to, code + i + 1, sizeof(to));
		found = returned_variable(f, function + i + 5 + (uint64_t)(int64_t)to, true);
	}
	return found;
}

static void v8_file(struct detect_file *out, const struct v8_symbols *s, const struct elffile *f)
{
	int32_t major = number_at(f, s->major), minor = number_at(f, s->minor);
	struct elfv8_blob blob;

	for (int i = 0; i < V8_NR; i++) {
		int32_t value = number_at(f, s->number[i]);

		out->v8.number[i] = (int16_t)(value < INT16_MIN || value > INT16_MAX ? -1 : value);
	}
	out->v8.number[V8_ROOT_HANDLES] = 0;
	out->code_type = s->wasm ? returned_variable(f, s->wasm, false)
				 : imported_variable(f, s->wasm_import);
	out->version_at = s->major;
	set_sizes(out->v8.sizes, f, s->sizes, s->sizes_size);
	out->v8_version = (uint32_t)major << 24 | ((uint32_t)minor & 255) << 16;
	if ((elfv8_blob(&blob, &s->builtins, f) ||
	     (s->number[V8_FP_FUNCTION] && elfv8_find(&blob, f))) &&
	    elffile_offset(f, blob.code, blob.code_size, &out->blob_offset))
		out->blob_size = blob.code_size;
	if (out->blob_size)
		out->v8.number[V8_ROOT_HANDLES] = root_handles(f, out);
}

/*
 * V8 (Node.js): which functions of JavaScript the stack copy may have frames of.
 *
 * Runs on: a reader. Each frame of JavaScript has its function and context
 * at fixed places below its frame pointer, whether it is interpreted or compiled.
 * Words of the stack that look like such a frame are candidates; v8_names.c keeps the ones
 * with a true function, by their frame pointers. The unwinder finds
 * the frames, so that a candidate too many does no harm.
 */

/* Candidates; two pieces each in the first call. */
#define FRAMES_MAX 400U

/* The frame of a caller is at most this far away. */
#define FRAME_MAX (1ULL << 20)

/* Bytes of a stack below a frame in which the frame that it called is. */
#define PC_BELOW 4096U

/* Bytes of code that are read before and behind the pc. */
#define CODE_BEFORE 32U

#define CODE_BEHIND 64U

/* The longest code between the end of a frame and the return of its function, and before its frame.
 */
#define EPILOGUE_MAX 28U

/* Below the return address of a function that has left its frame: its frame pointer and its
 * function. */
#define LEFT_WORDS 24U

/* Code of the interpreter: for each bytecode, without prefixes; the longest one's bytes. */
#define HANDLERS 256U

#define HANDLER_MAX 4096U

/* Bytecodes that are read: one, and the bytes before. */
#define BYTECODES_BEFORE 8U
/* The table of handles is made of whole pages. */
#define HANDLES_ALIGN 4096U

static uint64_t word_at(const struct lang_sample *s, uint64_t at)
{
	return bytes_u64(s->stack + at);
}

/* Return whether @value may be a pointer to an object of V8. */
static bool is_tagged(uint64_t value)
{
	return lang_memory_is_pointer(value - 1);
}

/* Set candidate @i to the frame with frame pointer @fp (0: none) if there is a function. */
static void set_candidate(struct lang_reader *r, uint32_t i, uint64_t fp, uint64_t function)
{
	struct lang_work *w = &r->work;

	w->v8.function[i] = function - 1;
	w->v8.piece[i] = is_tagged(function)
				 ? lang_memory_want(&r->memory, function - 1, V8_FUNCTION_SIZE)
				 : -1;
	w->v8.bytecodes[i] = 0;
	w->v8.bytecodes_piece[i] = -1;
	w->v8.pc[i] = 0;
	w->boundary[i] = fp;
	w->instr[i] = LANG_NO_INSTR;
}

/* An interpreted frame has its bytecodes and the position in them. */
static void add_bytecodes(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, uint64_t at)
{
	const int16_t *n = p->v8.number;
	struct lang_work *w = &r->work;
	uint64_t bytecodes = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_BYTECODES]);
	uint64_t offset = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_OFFSET]);
	uint64_t first = (uint64_t)n[V8_BYTECODES_DATA] - 1;

	if (!is_tagged(bytecodes) || offset << 32 || offset >> 32 < first)
		return;
	w->v8.bytecodes[w->nr - 1] = bytecodes - 1;
	w->v8.bytecodes_piece[w->nr - 1] = lang_memory_want(&r->memory, bytecodes - 1, 8);
	w->instr[w->nr - 1] = (offset >> 32) - first;
}

/*
 * The pc of the frame at byte @at of the stack: the return address of the last frame below that has
 * it as its caller's.
 */
static uint64_t pc_of(const struct lang_sample *s, uint64_t at)
{
	uint64_t end = at > PC_BELOW ? at - PC_BELOW : 0;

	if (s->sp + at == s->fp)
		return s->pc;
	for (uint64_t i = at; i >= end + 16; i -= 8)
		if (word_at(s, i - 16) == s->sp + at)
			return word_at(s, i - 8) - 1;
	return 0;
}

static void find_candidates(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s)
{
	const int16_t *n = p->v8.number;
	int below = MIN(MIN(n[V8_FP_CONTEXT], n[V8_FP_FUNCTION]),
			MIN(n[V8_FP_BYTECODES], n[V8_FP_OFFSET]));
	uint64_t first = (uint64_t)-MIN(n[V8_FP_CONTEXT], n[V8_FP_FUNCTION]);

	for (uint64_t at = first; at + 16 <= s->stack_size; at += 8) {
		uint64_t fp = s->sp + at, saved = word_at(s, at), context, function;

		if (saved <= fp || saved - fp > FRAME_MAX || saved & 7)
			continue;
		context = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_CONTEXT]);
		function = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_FUNCTION]);
		if (!is_tagged(context) || !is_tagged(function))
			continue;
		if (r->work.nr == FRAMES_MAX)
			return;
		set_candidate(r, r->work.nr++, fp, function);
		r->work.v8.pc[r->work.nr - 1] = pc_of(s, at);
		if (at >= (uint64_t)-below)
			add_bytecodes(r, p, s, at);
	}
}

static bool contains(const uint8_t *code, uint32_t size, const char *bytes, uint32_t nr)
{
	return size >= nr && memmem(code, size, bytes, nr);
}

/* An instruction of V8's code, with a '.' for each byte of any value; of what comes after the pc.
 */
struct v8_form {
	const char *bytes;
	uint8_t size;
};

/* Return the size of the first of @nr instructions that is at @code; 0: none is. */
static uint32_t match(const struct v8_form *forms, size_t nr, const uint8_t *code)
{
	for (size_t i = 0; i < nr; i++) {
		uint32_t k = 0;

		while (k < forms[i].size &&
		       (forms[i].bytes[k] == '.' || (uint8_t)forms[i].bytes[k] == code[k]))
			k++;
		if (k == forms[i].size)
			return k;
	}
	return 0;
}

/*
 * Return whether the frame is still to be made: the code goes straight on to that. V8 first looks
 * if the code was given up (10.2 to 12.4; later it has nothing before).
 */
static bool is_entry(const uint8_t *pc)
{
	static const struct v8_form before[] = {
		{ "\x48\x8b\x59.", 4 }, /* mov (%rcx),%rbx */
		{ "\xf6\x43..", 4 },	/* testb $,(%rbx) */
		{ "\x0f\x85....", 6 },	/* jne */
	};
	uint32_t at = 0, size;

	while (at + 6 < EPILOGUE_MAX && (size = match(before, ARRAY_SIZE(before), pc + at)) != 0)
		at += size;
	return !memcmp(pc + at, "\x55\x48\x8b\xec", 4) || !memcmp(pc + at, "\x55\x48\x89\xe5", 4);
}

/*
 * Return where the pc is behind the end of a frame, @end: 1: before the return, its address is on
 * top of the stack; 0: behind it, in other code; -1: not known, or arguments are being removed.
 */
static int find_return(const uint8_t *end, const uint8_t *pc)
{
	static const struct v8_form until[] = {
		{ "\x48\x83\xf9.", 4 },		   /* cmp $,%rcx: the number of arguments */
		{ "\x7f\x03", 2 },		   /* jg */
		{ "\x49\x83\xf8.", 4 },		   /* cmp $,%r8 (Maglev) */
		{ "\x0f\x8f\x03\x00\x00\x00", 6 }, /* jg */
	};
	static const struct v8_form ret[] = { { "\xc3", 1 }, { "\xc2..", 3 } };
	/* pop %r10; lea (%rsp,%rcx,8),%rsp; push %r10; ret, and the same by %r9 and %r8 */
	static const struct v8_form more[] = { { "\x41\x5a\x48\x8d\x24\xcc\x41\x52\xc3", 9 },
					       { "\x41\x59\x4a\x8d\x24\xc4\x41\x51\xc3", 9 } };
	uint32_t at = 0, size;
	bool several;

	while (at < EPILOGUE_MAX / 2 && (size = match(until, ARRAY_SIZE(until), end + at)) != 0)
		at += size;
	several = at != 0;
	size = match(ret, ARRAY_SIZE(ret), end + at);
	if (!size)
		return -1;
	if (pc < end + at + size)
		return 1;
	at += size;
	size = several ? match(more, ARRAY_SIZE(more), end + at) : 0;
	if (pc >= end + at + size)
		return 0;
	return pc == end + at ? 1 : -1;
}

/*
 * Find out whether the frame at the frame pointer is the function's: not if it is still to be made,
 * or has been left (*@left). @code: around the pc.
 */
static enum lang_top top_of(const uint8_t *code, bool *left)
{
	const uint8_t *pc = code + CODE_BEFORE;

	*left = false;
	/* push %rbp; mov %rsp,%rbp (V8's encoding, and the assembler's); between them */
	if (is_entry(pc) ||
	    (pc[-1] == 0x55 && (!memcmp(pc, "\x48\x8b\xec", 3) || !memcmp(pc, "\x48\x89\xe5", 3))))
		return LANG_TOP_FRAMELESS;
	if (contains(pc, CODE_BEHIND, "\x55\x48\x8b\xec", 4) ||
	    contains(pc, CODE_BEHIND, "\x55\x48\x89\xe5", 4))
		return LANG_TOP_UNKNOWN;
	/* mov %rbp,%rsp; pop %rbp */
	for (const uint8_t *at = pc - EPILOGUE_MAX; at + 4 <= pc; at++) {
		int where = memcmp(at, "\x48\x8b\xe5\x5d", 4) ? 0 : find_return(at + 4, pc);

		*left = where > 0;
		if (where)
			return where > 0 ? LANG_TOP_FRAMELESS : LANG_TOP_UNKNOWN;
	}
	return LANG_TOP_BODY;
}

/* The frame pointer of the innermost function: code of the interpreter may have a frame of itself.
 */
static uint64_t innermost_fp(const struct lang_sample *s)
{
	uint64_t at = s->fp - s->sp;

	if (at < 8 || at > s->stack_size - 8 || s->stack_size < 16)
		return s->fp;
	/* Instead of a context it has a number, its kind. */
	return word_at(s, at - 8) & 1 ? s->fp : word_at(s, at);
}

/*
 * The innermost function is interpreted: its frame has the byte of its last call, a register that
 * of the bytecode in hand. That is true if the pc is in the code for this bytecode; else the line
 * is not known.
 */
static int want_bytecode(struct lang_memory *m, const struct lang_process *p,
			 const struct lang_sample *s, int *handlers)
{
	uint64_t first = (uint64_t)p->v8.number[V8_BYTECODES_DATA] - 1, bytecodes;
	uint64_t at = innermost_fp(s) - s->sp + (uint64_t)(int64_t)p->v8.number[V8_FP_BYTECODES];

	*handlers = -1;
	if (s->stack_size < 8 || at > s->stack_size - 8 || s->r9 < first ||
	    s->r9 > first + LANG_PIECE_MAX || !lang_memory_is_pointer(s->r15))
		return -1;
	bytecodes = word_at(s, at);
	if (!is_tagged(bytecodes))
		return -1;
	*handlers = lang_memory_want(m, s->r15, HANDLERS * 8);
	return lang_memory_want(m, bytecodes + s->r9 + 1 - BYTECODES_BEFORE, BYTECODES_BEFORE);
}

/*
 * Find the bytecode that the pc is in the code for: the last one of @codes, or the one before, if
 * its code has gone on to the next. Returns by how many bytes; -1: it is another one.
 */
static int find_bytecode(const uint8_t *handlers, const uint8_t *codes, const uint8_t *sizes,
			 uint64_t pc)
{
	const uint8_t *last = codes + BYTECODES_BEFORE - 1;
	uint64_t best = 0;

	for (uint32_t i = 0; i < HANDLERS; i++) {
		uint64_t at = bytes_u64(handlers + (size_t)8 * i);

		if (at <= pc && at > best)
			best = at;
	}
	if (pc - best >= HANDLER_MAX)
		return -1;
	if (best == bytes_u64(handlers + (size_t)8 * *last))
		return 0;
	for (uint32_t i = 1; i < BYTECODES_BEFORE; i++)
		if (best == bytes_u64(handlers + (size_t)8 * last[-(int)i]) &&
		    v8table_bytecode_size(sizes, last - i, i) == i)
			return (int)i;
	return -1;
}

/* Set the byte of the innermost frame, if it is interpreted. */
static void set_innermost(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, int handlers, int bytecode)
{
	const uint8_t *table = lang_memory_piece(&r->memory, handlers);
	const uint8_t *codes = lang_memory_piece(&r->memory, bytecode);
	uint64_t first = (uint64_t)p->v8.number[V8_BYTECODES_DATA] - 1;
	struct lang_work *w = &r->work;
	uint64_t fp = innermost_fp(s);
	int back = table && codes ? find_bytecode(table, codes, p->v8.sizes, s->pc) : -1;

	for (uint32_t i = 0; i < w->nr; i++) {
		if (w->boundary[i] == fp && w->v8.bytecodes[i])
			w->instr[i] = back < 0 ? LANG_NO_INSTR : s->r9 - first - (uint64_t)back;
	}
}

/*
 * Queue the address of the table of handles, which the root register is near: code of JavaScript
 * has that register, other code has any value in it.
 */
static int want_handles(struct lang_memory *m, const struct lang_process *p,
			const struct lang_sample *s)
{
	int16_t at = p->v8.number[V8_ROOT_HANDLES];

	return at && lang_memory_is_pointer(s->r13) ? lang_memory_want(m, s->r13 + (uint64_t)at, 8)
						    : -1;
}

/* The address of that table: of this sample, or of the last one of this thread that has it. */
static uint64_t find_handles(const struct lang_memory *m, struct lang_thread *t, int root)
{
	const uint8_t *bytes = lang_memory_piece(m, root);
	uint64_t handles = bytes ? bytes_u64(bytes) : 0;

	if (handles && !(handles % HANDLES_ALIGN) && lang_memory_is_pointer(handles))
		t->state = handles;
	return t->state;
}

static enum lang_status v8chain_read(struct lang_reader *r, const struct lang_process *p,
				     const struct lang_sample *s, struct lang_thread *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	int code = lang_memory_want(m, s->pc - CODE_BEFORE, CODE_BEFORE + CODE_BEHIND);
	int handlers, bytecode = want_bytecode(m, p, s, &handlers), root = want_handles(m, p, s);
	const uint8_t *bytes, *function;
	bool left = false;
	int below;

	w->broken = false;
	w->settled = true;
	/* At the entry of a function its frame is not made yet: it is in a register. */
	set_candidate(r, w->nr++, 0, s->rdi);
	find_candidates(r, p, s);
	if (!lang_memory_fetch(m))
		return LANG_REFUSED;
	bytes = lang_memory_piece(m, code);
	if (bytes)
		w->v8.top = top_of(bytes, &left);
	/* A frame that was left is still below the stack: else nothing may be mapped there. */
	if (left) {
		below = lang_memory_want(m, s->sp - LEFT_WORDS, 8);
		if (!lang_memory_fetch(m))
			return LANG_REFUSED;
		function = lang_memory_piece(m, below);
		if (function)
			set_candidate(r, 0, 0, bytes_u64(function));
		if (function && !lang_memory_fetch(m))
			return LANG_REFUSED;
	}
	set_innermost(r, p, s, handlers, bytecode);
	w->v8.handles = find_handles(m, t, root);
	v8wasm_read(r, p, s);
	return w->nr > 1 || w->v8.piece[0] >= 0 ? LANG_OK : LANG_NO_FRAMES;
}

/*
 * V8: compiled code of functions, baseline and optimised, and its tables of lines.
 *
 * Runs on: a reader. Code is known again by its address, its function, and the number of
 * its optimisation, which is never given twice: a table is read and made once.
 */

/* Elements of the data for leaving optimised code. */
#define DATA_ELEMENTS 16

/* A call that was inlined: position, index of the function in the literals (-1: itself). */
#define CALL_SIZE 16

#define CALL_FUNCTION 8
#define ARRAY_HEAD    16

/* How far code is searched: pages before a pc, and pointers to objects. */
#define SEARCH_PAGES 8U
#define SEARCH_MAX   64U
#define SEARCH_PAUSE 63U /* samples */
#define CODE_ALIGN   64U

/* Compiled code as its object describes it. */
struct code {
	uint64_t start, data, table;
	uint32_t size;
	bool baseline, optimised;
};

static bool parse_code(const struct lang_memory *m, const struct lang_process *p,
		       const struct v8_types *t, int piece, struct code *out)
{
	const uint8_t *head = v8objects_whole(m, piece, V8_CODE_SIZE);
	const int16_t *n = p->v8.number;
	uint32_t kind;

	if (!head || v8objects_type(m, t, piece) != p->v8.number[V8_TYPE_CODE])
		return false;
	kind = (bytes_u32(head + n[V8_CODE_FLAGS]) & V8_CODE_KIND) - (uint32_t)n[V8_KIND_BASELINE];
	out->baseline = kind == 0;
	out->optimised = kind == 1 || kind == 2;
	out->data = bytes_u64(head + n[V8_CODE_DATA]);
	out->table = bytes_u64(head + n[V8_CODE_TABLE]);
	out->start = n[V8_CODE_BEGIN] ? bytes_u64(head + n[V8_CODE_BEGIN])
				      : m->pieces[piece].addr + (uint64_t)n[V8_CODE_INSIDE];
	out->size = bytes_u32(head + n[V8_CODE_BYTES]);
	return out->baseline || out->optimised;
}

/* Queue the entry of a function in the table of handles, which has its code. */
static void want_entry(struct lang_reader *r, const struct lang_process *p, const uint8_t *function,
		       int *piece)
{
	uint64_t handle = bytes_u32(function + p->v8.number[V8_FUNCTION_HANDLE]);

	*piece = -1;
	if (r->work.v8.handles)
		*piece = lang_memory_want(&r->memory,
					  r->work.v8.handles +
						  (handle >> V8_HANDLE_SHIFT) * V8_HANDLE_ENTRY,
					  V8_HANDLE_ENTRY);
}

/* Queue the heads of the functions' compiled code, and then of their data. */
static void v8compiled_want(struct lang_reader *r, const struct lang_process *p)
{
	const int16_t *n = p->v8.number;
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->v8.entry[i] = -1;
	memset(w->v8.compiled, -1, w->nr_codes * sizeof(w->v8.compiled[0]));
	memset(w->v8.data, -1, w->nr_codes * sizeof(w->v8.data[0]));
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(m, w->v8.piece[i]);
		int *piece = &w->v8.compiled[w->code[i]][0];

		if (*piece >= 0 || w->v8.entry[w->code[i]] >= 0 || !f)
			continue;
		if (n[V8_FUNCTION_CODE])
			v8objects_want_head(m, bytes_u64(f + n[V8_FUNCTION_CODE]), V8_CODE_SIZE,
					    piece);
		else if (n[V8_FUNCTION_HANDLE])
			want_entry(r, p, f, &w->v8.entry[w->code[i]]);
	}
}

/* The bytes of the data of optimised code that are read. */
static uint32_t data_size(const struct lang_process *p)
{
	return DATA_ELEMENTS + 8 * ((uint32_t)p->v8.number[V8_DATA_POSITIONS] + 1);
}

/* Queue the type and the data of a function's code, if its head was read. */
static void want_data(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
		      uint32_t code, uint32_t which)
{
	struct lang_v8_work *v = &r->work.v8;
	const uint8_t *head = lang_memory_piece(&r->memory, v->compiled[code][which]);

	v8objects_want_type(&r->memory, p, t, v->compiled[code][which]);
	if (head)
		v8objects_want_head(&r->memory, bytes_u64(head + p->v8.number[V8_CODE_DATA]),
				    data_size(p), &v->data[code][which]);
}

static void v8compiled_want_data(struct lang_reader *r, struct v8_types *t,
				 const struct lang_process *p)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *entry = lang_memory_piece(m, w->v8.entry[i]);
		const uint8_t *f = lang_memory_piece(m, w->script_functions_of[i].header);
		uint64_t baseline = f ? bytes_u64(f + p->v8.number[V8_SHARED_DATA]) : 0;

		want_data(r, p, t, i, 0);
		/* The lowest bit of the pointer has another use there. */
		if (entry)
			v8objects_want_head(m,
					    bytes_u64(entry + V8_HANDLE_CODE) >> V8_HANDLE_OTHERS |
						    1,
					    V8_CODE_SIZE, &w->v8.compiled[i][0]);
		/* The function has optimised code by now, this frame may have baseline code. */
		v8objects_want_head(m, baseline, V8_CODE_SIZE, &w->v8.compiled[i][1]);
	}
}

static uint64_t element(const uint8_t *data, int16_t index)
{
	return bytes_u64(data + DATA_ELEMENTS + (size_t)8 * (size_t)index);
}

/* Set the address and the table of compiled code; returns if the table is new. */
static bool set_code(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     const struct v8_types *t, uint32_t code, uint32_t which)
{
	struct lang_work *w = &r->work;
	struct lang_compiled *c = &w->v8.compiled_of[code][which];
	int piece = w->v8.compiled[code][which];
	const uint8_t *data = v8objects_whole(&r->memory, w->v8.data[code][which], data_size(p));
	struct code_key key = { .process = process };
	struct code about;
	uint64_t stamp;

	assert(which < LANG_COMPILED);
	*c = (struct lang_compiled){ .code = CODE_NONE };
	if (!parse_code(&r->memory, p, t, piece, &about) || (which == 1 && !about.baseline))
		return false;
	c->start = about.start;
	c->size = about.size;
	c->inlined = about.optimised && !(data && !element(data, p->v8.number[V8_DATA_INLINED]));
	if (!about.baseline && !data)
		return false;
	stamp = v8code_identity(r, p, code) ^ about.start;
	stamp = hash_u64(stamp ^
			 (about.baseline ? 1 : element(data, p->v8.number[V8_DATA_OPTIMISATION])));
	key.address = r->memory.pieces[piece].addr;
	key.stamp = hash_u64(stamp ^ about.size);
	c->code = script_functions_find(r->codes, &key);
	if (c->code != CODE_NONE || w->v8.nr_new == LANG_V8_NEW)
		return false;
	w->v8.news[w->v8.nr_new] = (struct lang_v8_new){
		.code = code, .which = (uint8_t)which, .baseline = about.baseline, .key = key
	};
	return true;
}

/* Queue the elements of the array with its head in @piece, at most @max. */
static void want_array(struct lang_memory *m, int *piece, uint32_t unit, uint32_t max, int *out)
{
	const uint8_t *head = lang_memory_piece(m, *piece);
	uint64_t length = head ? bytes_u64(head + 8) : 0;

	*out = -1;
	if (!head || !v8objects_is_smi(length) || length >> 32 > max)
		return;
	length = (length >> 32) * unit;
	if (length)
		*out = lang_memory_want(m, m->pieces[*piece].addr + ARRAY_HEAD, (uint32_t)length);
}

/* Queue the heads of the objects of new code. */
static void want_heads(struct lang_reader *r, const struct lang_process *p, struct lang_v8_new *n)
{
	struct lang_work *w = &r->work;
	struct lang_memory *m = &r->memory;
	const uint8_t *code = lang_memory_piece(m, w->v8.compiled[n->code][n->which]);
	const uint8_t *data = lang_memory_piece(m, w->v8.data[n->code][n->which]);
	uint64_t nr;

	n->literals = n->calls = n->bytecodes = n->wrapper = -1;
	n->calls_bytes = n->code_bytes = n->positions = n->positions_bytes = -1;
	v8objects_want_head(m, bytes_u64(code + p->v8.number[V8_CODE_TABLE]), ARRAY_HEAD,
			    &n->table);
	if (n->baseline) {
		v8objects_want_head(m, bytes_u64(code + p->v8.number[V8_CODE_DATA]),
				    V8_BYTECODES_HEAD, &n->bytecodes);
		return;
	}
	if (p->v8.number[V8_TYPE_WRAPPER])
		v8objects_want_head(m, element(data, p->v8.number[V8_DATA_SHARED]), V8_HEAD,
				    &n->wrapper);
	nr = element(data, p->v8.number[V8_DATA_INLINED]);
	n->nr_functions = v8objects_is_smi(nr) ? (uint32_t)(nr >> 32) : UINT32_MAX;
	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return;
	v8objects_want_head(m, element(data, p->v8.number[V8_DATA_LITERALS]),
			    ARRAY_HEAD + 8 * n->nr_functions, &n->literals);
	v8objects_want_head(m, element(data, p->v8.number[V8_DATA_POSITIONS]), ARRAY_HEAD,
			    &n->calls);
}

/* Return whether new code is of its function: its data has that, in some versions in a wrapper. */
static bool is_own(const struct lang_reader *r, const struct lang_process *p,
		   const struct v8_types *t, const struct lang_v8_new *n)
{
	const struct lang_work *w = &r->work;
	const uint8_t *data = lang_memory_piece(&r->memory, w->v8.data[n->code][n->which]);
	const uint8_t *wrapper = lang_memory_piece(&r->memory, n->wrapper);
	int type = p->v8.number[V8_TYPE_WRAPPER];
	uint64_t shared = data ? element(data, p->v8.number[V8_DATA_SHARED]) : 0;

	if (n->baseline)
		return true;
	if (type && (!wrapper || v8objects_type(&r->memory, t, n->wrapper) != type))
		return false;
	if (type)
		shared = bytes_u64(wrapper + p->v8.number[V8_WRAPPER_SHARED]);
	return shared == w->script_functions_of[n->code].address + 1;
}

/* Queue tables and bytecodes. */
static void want_tables(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
			struct lang_v8_new *n)
{
	struct lang_memory *m = &r->memory;
	const uint8_t *bytecodes = lang_memory_piece(m, n->bytecodes);
	uint64_t length;

	v8objects_want_type(m, p, t, n->table);
	v8objects_want_type(m, p, t, n->calls);
	v8objects_want_type(m, p, t, n->wrapper);
	v8objects_want_type(m, p, t, n->bytecodes);
	want_array(m, &n->table, 1, LANG_PIECE_MAX, &n->table_bytes);
	want_array(m, &n->calls, 1, V8_INLINED_MAX * CALL_SIZE, &n->calls_bytes);
	if (!bytecodes)
		return;
	length = bytes_u64(bytecodes + 8);
	v8objects_want_head(m, bytes_u64(bytecodes + p->v8.number[V8_BYTECODES_POSITIONS]),
			    ARRAY_HEAD, &n->positions);
	if (v8objects_is_smi(length) && length && length >> 32 <= LANG_PIECE_MAX)
		n->code_bytes = lang_memory_want(m,
						 m->pieces[n->bytecodes].addr +
							 (uint64_t)p->v8.number[V8_BYTECODES_DATA],
						 (uint32_t)(length >> 32));
}

/*
 * Number the functions that are inlined in new code; false: not in this sample: they are too many,
 * or cannot be read.
 */
static bool number_inlined(struct lang_reader *r, uint32_t process, struct lang_v8_new *n)
{
	struct lang_work *w = &r->work;
	const uint8_t *literals;

	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return true;
	literals = v8objects_whole(&r->memory, n->literals, ARRAY_HEAD + 8 * n->nr_functions);
	if (!literals || w->nr_codes + n->nr_functions > LANG_FRAMES_MAX)
		return false;
	for (uint32_t i = 0; i < n->nr_functions; i++) {
		/* A weak pointer has bit 1 set. */
		uint64_t shared = element(literals, (int16_t)i) & ~2ULL;

		if (!v8objects_is_tagged(shared))
			return false;
		n->function[i] = (uint16_t)functions_code(r, process, shared - 1);
	}
	return true;
}

/* Read the tables of new code; drop code with too many functions inlined. */
static bool read_new(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     struct v8_types *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	struct lang_v8_new *n = w->v8.news;
	uint32_t first = w->nr_codes, nr = 0;

	for (uint32_t i = 0; i < w->v8.nr_new; i++)
		want_heads(r, p, &n[i]);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_new; i++)
		want_tables(r, p, t, &n[i]);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_new; i++) {
		v8objects_want_type(m, p, t, n[i].positions);
		want_array(m, &n[i].positions, 1, LANG_PIECE_MAX, &n[i].positions_bytes);
		if (w->nr_codes - first < V8_INLINED_A_SAMPLE && is_own(r, p, t, &n[i]) &&
		    number_inlined(r, process, &n[i]))
			n[nr++] = n[i];
	}
	w->v8.nr_new = nr;
	v8code_want_headers(r, p, first);
	if (!lang_memory_fetch(m))
		return false;
	v8script_want(r, p, t, first);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_scripts; i++)
		v8objects_want_type(m, p, t, w->v8.scripts[i].head);
	for (uint32_t i = first; i < w->nr_codes; i++)
		if (v8objects_type(m, t, w->script_functions_of[i].header) !=
		    p->v8.number[V8_TYPE_SHARED])
			nr = UINT32_MAX;
	/* These are no functions: leave them all out. */
	if (nr == UINT32_MAX) {
		w->v8.nr_new = 0;
		w->nr_codes = first;
	}
	return lang_memory_fetch(m);
}

/* Find the object of code among @nr: it says that the code begins behind it, and has @pc in it. */
static bool find_object(const struct lang_memory *m, const struct lang_process *p, int first,
			uint32_t nr, const uint64_t *begin, uint64_t pc, struct lang_v8_site *out)
{
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *head = lang_memory_piece(m, first + (int)i);
		uint64_t start = head ? bytes_u64(head + p->v8.number[V8_CODE_BEGIN]) : 0;
		uint32_t size = head ? bytes_u32(head + p->v8.number[V8_CODE_BYTES]) : 0;

		if (start != begin[i] || pc - start >= size)
			continue;
		out->start = start;
		out->size = size;
		out->object = m->pieces[first + (int)i].addr;
		return true;
	}
	return false;
}

/*
 * Search the code at @pc: a pointer to its object is in front of its first byte, which is at the
 * beginning of a line.
 */
static void search_code(struct lang_memory *m, const struct lang_process *p, uint64_t pc,
			struct lang_v8_site *out)
{
	static const uint8_t places[] = { 8, 24 }; /* in V8 11.3; from 11.8 on */
	uint64_t begin[SEARCH_MAX];
	int page[SEARCH_PAGES], first;
	uint32_t nr = 0;

	*out = (struct lang_v8_site){ .start = pc - pc % CODE_ALIGN, .size = CODE_ALIGN };
	for (uint32_t i = 0; i < SEARCH_PAGES; i++)
		page[i] = lang_memory_want_once(m, (pc & ~4095ULL) - 4096ULL * i, 4096);
	if (!lang_memory_fetch(m))
		return;
	first = (int)m->nr;
	for (uint64_t at = out->start; nr + 2 <= SEARCH_MAX; at -= CODE_ALIGN) {
		for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
			uint64_t from = at - places[k];
			uint64_t back = (pc & ~4095ULL) - (from & ~4095ULL);
			const uint8_t *bytes = back / 4096 < SEARCH_PAGES
						       ? lang_memory_piece(m, page[back / 4096])
						       : NULL;
			uint64_t object = bytes ? bytes_u64(bytes + from % 4096) : 0;

			if (!bytes)
				goto end;
			if (v8objects_is_tagged(object) &&
			    lang_memory_queue(m, object - 1, V8_CODE_SIZE, PIECE_ONCE) >= 0)
				begin[nr++] = at;
		}
	}
end:
	if (lang_memory_fetch(m))
		find_object(m, p, first, nr, begin, pc, out);
}

/* The code at @pc, as it was found before; NULL: it was not searched. */
static const struct lang_v8_site *site_at(const struct lang_reader *r, uint32_t process,
					  uint64_t pc)
{
	for (uint32_t i = 0; i < LANG_V8_SITES; i++)
		if (r->v8_sites[i].process == process &&
		    pc - r->v8_sites[i].start < r->v8_sites[i].size)
			return &r->v8_sites[i];
	return NULL;
}

/*
 * Search the code at @pc, and keep the answer. Most other code is V8's builtins, with a new
 * place at nearly each sample: each search in vain doubles the number of samples until the next
 * one.
 */
static const struct lang_v8_site *search_site(struct lang_reader *r, const struct lang_process *p,
					      uint32_t process, uint64_t pc)
{
	struct lang_v8_site *site = &r->v8_sites[r->next_v8_site % LANG_V8_SITES];

	if (r->v8_wait && --r->v8_wait)
		return NULL;
	r->next_v8_site++;
	search_code(&r->memory, p, pc, site);
	site->process = process;
	r->v8_pause = site->object ? 0 : MIN(2 * r->v8_pause + 1, SEARCH_PAUSE);
	r->v8_wait = r->v8_pause;
	return site;
}

/*
 * Find the code that frames run which is not their function's: one more at a sample. False: no call
 * is left.
 */
static bool find_others(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			struct v8_types *t)
{
	struct lang_v8_work *v = &r->work.v8;
	struct lang_memory *m = &r->memory;
	bool any = false, searched = false;

	for (uint32_t i = 0; i < r->work.nr && p->v8.number[V8_CODE_BEGIN]; i++) {
		const uint32_t code = r->work.code[i];
		const struct lang_compiled *c = v->compiled_of[code];
		const struct lang_v8_site *site;
		uint64_t pc = v->pc[i];

		if (!pc || v->compiled[code][2] >= 0 || pc - c[0].start < c[0].size ||
		    pc - c[1].start < c[1].size)
			continue;
		site = site_at(r, process, pc);
		if (!site && !searched && m->calls < LANG_CALLS_MAX / 2) {
			searched = true;
			site = search_site(r, p, process, pc);
		}
		if (site && site->object) {
			v->compiled[code][2] = lang_memory_want(m, site->object, V8_CODE_SIZE);
			any = true;
		}
	}
	if (!any)
		return true;
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < r->work.nr_codes; i++)
		if (v->compiled[i][2] >= 0)
			want_data(r, p, t, i, 2);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < r->work.nr_codes; i++)
		if (v->compiled[i][2] >= 0)
			v->nr_new += set_code(r, p, process, t, i, 2);
	return true;
}

/*
 * Set where compiled code is, and which is known; queue the tables of the rest, and number
 * the functions inlined in it. False: no call is left.
 */
static bool v8compiled_find(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			    struct v8_types *t)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		v8objects_want_type(&r->memory, p, t, w->v8.compiled[i][1]);
		if (w->v8.data[i][0] < 0)
			want_data(r, p, t, i, 0);
	}
	if (!lang_memory_fetch(&r->memory))
		return false;
	w->v8.nr_new = 0;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		w->v8.nr_new += set_code(r, p, process, t, i, 0);
		w->v8.nr_new += set_code(r, p, process, t, i, 1);
		w->v8.compiled_of[i][2] = (struct lang_compiled){ .code = CODE_NONE };
	}
	if (!find_others(r, p, process, t))
		return false;
	return !w->v8.nr_new || read_new(r, p, process, t);
}

/* ---- tables ---- */

/* The bytes of a table, if its head in @piece is of an array of bytes. */
static const uint8_t *bytes_of(const struct lang_memory *m, const struct lang_process *p,
			       const struct v8_types *t, int piece, int bytes, uint32_t *size)
{
	const uint8_t *b = lang_memory_piece(m, bytes);

	*size = b ? m->pieces[bytes].size : 0;
	return v8objects_is_bytes(m, p, t, piece) ? b : NULL;
}

/* The function, as an index of script_functions_of, that call @i is of; its own: not inlined. */
static uint32_t function_of(const struct lang_v8_new *n, const uint16_t *functions, uint32_t nr,
			    uint32_t i)
{
	return i < nr ? functions[i] : n->code;
}

/* Get the calls that were inlined, and the function of each; UINT32_MAX: they are not valid. */
static uint32_t get_calls(const struct lang_reader *r, const struct lang_process *p,
			  const struct v8_types *t, const struct lang_v8_new *n,
			  struct v8_inlined *out, uint16_t *functions)
{
	const struct lang_work *w = &r->work;
	uint32_t size, nr, position;
	const uint8_t *calls = bytes_of(&r->memory, p, t, n->calls, n->calls_bytes, &size);

	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return n->nr_functions ? UINT32_MAX : 0;
	nr = calls ? size / CALL_SIZE : UINT32_MAX;
	for (uint32_t i = 0; calls && i < nr; i++, calls += CALL_SIZE) {
		uint32_t f = bytes_u32(calls + CALL_FUNCTION);

		if (f != UINT32_MAX && f >= n->nr_functions)
			return UINT32_MAX;
		functions[i] = f == UINT32_MAX ? (uint16_t)n->code : n->function[f];
		v8table_position((int64_t)bytes_u64(calls), &position, &out[i].outer);
		/* An outer call has a lower number. */
		if (out[i].outer != V8_NOT_INLINED && out[i].outer >= i)
			return UINT32_MAX;
		out[i].code = w->script_functions_of[functions[i]].id;
		out[i].line =
			v8script_line(w, function_of(n, functions, i, out[i].outer), position);
	}
	return nr;
}

/* Lines of optimised code. */
static void add_optimised(struct lang_reader *r, const struct lang_process *p,
			  const struct v8_types *t, const struct lang_v8_new *n,
			  struct v8_table *table)
{
	struct v8_inlined calls[V8_INLINED_MAX];
	uint16_t functions[V8_INLINED_MAX];
	uint32_t nr = get_calls(r, p, t, n, calls, functions), size;
	const uint8_t *bytes = bytes_of(&r->memory, p, t, n->table, n->table_bytes, &size);
	struct v8_positions at;

	if (nr > V8_INLINED_MAX || !bytes || !v8table_begin(table, calls, nr))
		return;
	v8table_positions(&at, bytes, size, p->v8.number[V8_POSITION_BITS]);
	while (v8table_next_position(&at)) {
		uint32_t i = at.inlined < nr ? at.inlined : V8_NOT_INLINED;
		const struct v8_entry e = {
			.at = (uint32_t)MAX(at.code, 0),
			.line = v8script_line(&r->work, function_of(n, functions, nr, i),
					      at.position),
			.inlined = i,
		};

		if (!v8table_add(table, &e))
			return;
	}
}

/* Lines of baseline code: by its bytecodes. */
static void add_baseline(struct lang_reader *r, const struct lang_process *p,
			 const struct v8_types *t, const struct lang_v8_new *n,
			 struct v8_table *table)
{
	const struct lang_memory *m = &r->memory;
	uint32_t map_size, size, line = 0;
	const uint8_t *map = bytes_of(m, p, t, n->table, n->table_bytes, &map_size);
	const uint8_t *positions = bytes_of(m, p, t, n->positions, n->positions_bytes, &size);
	const uint8_t *bytecodes = lang_memory_piece(m, n->code_bytes);
	struct v8_positions at;
	struct v8_baseline b;
	bool more;

	if (!map || !positions || !bytecodes ||
	    v8objects_type(m, t, n->bytecodes) != p->v8.number[V8_TYPE_BYTECODES] ||
	    !v8table_baseline(&b, p->v8.sizes, map, map_size, bytecodes,
			      m->pieces[n->code_bytes].size))
		return;
	v8table_positions(&at, positions, size, p->v8.number[V8_POSITION_BITS]);
	more = v8table_next_position(&at);
	while (v8table_next_bytecode(&b)) {
		for (; more && at.code <= b.bytecode; more = v8table_next_position(&at))
			line = v8script_line(&r->work, n->code, at.position);
		if (!v8table_add(table, &(struct v8_entry){ b.pc, line, V8_NOT_INLINED }))
			return;
	}
	if (!v8table_fits(&b))
		v8table_begin(table, NULL, 0);
}

/* Return whether the texts of all scripts of the code are read. */
static bool is_whole(const struct lang_work *w, const struct lang_v8_new *n)
{
	for (uint32_t i = 0; !n->baseline && n->literals >= 0 && i < n->nr_functions; i++)
		if (!v8script_is_whole(w, n->function[i]))
			return false;
	return v8script_is_whole(w, n->code);
}

/* Make the tables of new compiled code; all functions have ids. */
static void v8compiled_add(struct lang_reader *r, const struct lang_process *p,
			   const struct v8_types *t)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->v8.nr_new; i++) {
		const struct lang_v8_new *n = &w->v8.news[i];
		const struct code_text *function =
			script_functions_at(r->codes, w->script_functions_of[n->code].id);
		struct v8_table table = { .bytes = w->v8.table, .room = sizeof(w->v8.table) };
		struct code_text text;

		if (!function || !is_whole(w, n) || !v8table_begin(&table, NULL, 0))
			continue;
		if (n->baseline)
			add_baseline(r, p, t, n, &table);
		else
			add_optimised(r, p, t, n, &table);
		text = *function;
		text.compiled = true;
		text.table = table.bytes;
		text.table_size = table.size;
		w->v8.compiled_of[n->code][n->which].code =
			script_functions_add(r->codes, &n->key, &text);
	}
}

/* ---- its files and processes ---- */

static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	v8_symbol(&search->symbols, name, s->st_value, s->st_size);
}

/* Debian's program "node" has none: they are in libnode.so. */
static int on_file(struct detect_search *search, const struct elffile *f)
{
	v8_file(search->out, &search->symbols, f);
	return search->symbols.number[V8_FP_FUNCTION] ? 1 : -ENOENT;
}

/* Return whether V8's version is at this address of a process. */
static bool has_version(pid_t pid, uint64_t at, uint32_t version)
{
	uint32_t major;

	return lang_memory_copy(pid, at, &major, sizeof(major)) && major == version >> 24;
}

/*
 * Find the variable with WebAssembly's manager. V8 may have mapped its builtins a second time, near
 * its heap, and that mapping may be the one that was found: then the file begins elsewhere.
 */
static uint64_t find_manager(const struct detect_file *f, pid_t pid)
{
	uint64_t start, offset, at = 0;
	char name[32], line[512];
	FILE *maps = NULL;

	if (!f->code_type || !f->version_at)
		return 0;
	if (has_version(pid, f->bias + f->version_at, f->v8_version))
		return f->bias + f->code_type;
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	while (maps && !at && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &start, &offset) == 2 && !offset &&
		    strstr(line, "libnode") &&
		    has_version(pid, start + f->version_at, f->v8_version))
			at = start + f->code_type;
	if (maps)
		fclose(maps);
	return at;
}

/* V8's layout is that of its file. */
static bool detect(struct lang_process *p, const struct detect_file *f, pid_t pid)
{
	p->v8 = f->v8;
	p->version = f->v8_version;
	p->code_type = find_manager(f, pid);
	p->reason = v8layout_complete(&p->v8, f->v8_version, &p->untried);
	if (!p->reason && !f->blob_size)
		p->reason = "its builtins cannot be found";
	p->code_offset = f->blob_offset;
	p->code_size = f->blob_size;
	return false;
}

const struct language language_node = {
	.name = "node",
	.title = "V8",
	.versions = "Node.js 18 to 26: functions, inlined ones, and lines",
	.letter = 'n',
	.program = "node",
	.library = "libnode",
	.shown = "_ZN4node5StartEiPPc",
	.on_symbol = on_symbol,
	.on_file = on_file,
	.detect = detect,
	.stack = v8chain_read,
	.functions = v8code_find,
	.fix = "node --perf-basic-prof writes the names",
};
