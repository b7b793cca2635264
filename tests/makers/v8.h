/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap and stack of a made-up V8, 11.3 or another, in the memory of cpython.h: functions of
 * given names, and frames of them. For tests of the decoder.
 */
#ifndef TESTS_MAKERS_V8_H
#define TESTS_MAKERS_V8_H

#include <stdlib.h>

#include "tests/makers/cpython.h"
#include "symbols/base/base.h"
#include "symbols/script/script.h"

enum v8make_map {
	V8MAKE_FUNCTION,
	V8MAKE_SHARED,
	V8MAKE_SCOPE,
	V8MAKE_SCRIPT,
	V8MAKE_BYTECODES,
	V8MAKE_BYTES,
	V8MAKE_LATIN1,
	V8MAKE_UTF16,
	V8MAKE_CONS,
	V8MAKE_THIN,
	V8MAKE_CODE,
	V8MAKE_EXTERNAL,
	V8MAKE_OTHER,
	V8MAKE_WRAPPER,
	V8MAKE_MAPS,
};

struct v8make {
	struct pymake *m;
	uint64_t map[V8MAKE_MAPS];
	uint64_t top; /* frame pointer of the outermost frame that is not made yet */
	uint32_t nr_functions, nr_scripts, nr_handles;
};

/* The numbers of 11.3, as its file and the table of versions have them. */
static inline struct v8_layout v8make_layout(void)
{
	struct v8_layout l = { .number = {
				       [V8_FP_CONTEXT] = -8,	  [V8_FP_FUNCTION] = -16,
				       [V8_FP_BYTECODES] = -32,	  [V8_FP_OFFSET] = -40,
				       [V8_SMI_SHIFT] = 31,	  [V8_MAP_TYPE] = 12,
				       [V8_FUNCTION_SHARED] = 24, [V8_SHARED_NAME] = 16,
				       [V8_SHARED_SCRIPT] = 32,	  [V8_SHARED_TOKEN] = 44,
				       [V8_SHARED_FLAGS] = 48,	  [V8_SCRIPT_NAME] = 16,
				       [V8_SCRIPT_SOURCE] = 8,	  [V8_SCRIPT_ENDS] = 56,
				       [V8_BYTECODES_DATA] = 54,  [V8_LENGTH] = 8,
				       [V8_ARRAY_DATA] = 16,	  [V8_STRING_LENGTH] = 12,
				       [V8_STRING_CHARS] = 16,	  [V8_CONS_FIRST] = 16,
				       [V8_CONS_SECOND] = 24,	  [V8_THIN_ACTUAL] = 16,
				       [V8_SCOPE_LOCALS] = 2,	  [V8_SCOPE_FIRST] = 3,
				       [V8_KIND_BASELINE] = 11,	  [V8_TYPE_FUNCTION] = 2066,
				       [V8_TYPE_SHARED] = 262,	  [V8_TYPE_SCOPE] = 261,
				       [V8_TYPE_SCRIPT] = 167,	  [V8_TYPE_BYTECODES] = 191,
				       [V8_TYPE_BYTES] = 190,	  [V8_TYPE_CODE] = 245,
			       } };
	bool nearest;

	for (int i = 0; i < V8_NR; i++)
		if (!l.number[i])
			l.number[i] = -1;
	if (v8layout_complete(&l, 11U << 24 | 3U << 16, &nearest) || nearest)
		abort();
	return l;
}

/* The numbers of 14.6. */
static inline struct v8_layout v8make_layout_14(void)
{
	struct v8_layout l = v8make_layout();
	static const struct {
		enum v8_number number;
		int16_t value;
	} changed[] = {
		{ V8_FUNCTION_SHARED, 32 },
		{ V8_SHARED_NAME, 24 },
		{ V8_SHARED_SCRIPT, 40 },
		{ V8_SHARED_TOKEN, 52 },
		{ V8_SHARED_FLAGS, 56 },
		{ V8_BYTECODES_DATA, 64 },
		{ V8_CODE_FLAGS, 52 },
		{ V8_CODE_BYTES, 56 },
		{ V8_WRAPPER_SHARED, 8 },
		{ V8_SCOPE_FIRST, 5 },
		{ V8_TYPE_FUNCTION, 2066 },
		{ V8_TYPE_SHARED, 288 },
		{ V8_TYPE_SCOPE, 286 },
		{ V8_TYPE_SCRIPT, 166 },
		{ V8_TYPE_BYTECODES, 185 },
		{ V8_TYPE_BYTES, 218 },
		{ V8_TYPE_CODE, 186 },
		{ V8_TYPE_WRAPPER, 195 },
		{ V8_TYPE_TRUSTED_BYTES, 196 },
		{ V8_ROOT_HANDLES, 488 },
		/* From the table of versions. */
		{ V8_FUNCTION_CODE, -1 },
		{ V8_FUNCTION_HANDLE, -1 },
		{ V8_SHARED_DATA, -1 },
		{ V8_BYTECODES_POSITIONS, -1 },
		{ V8_CODE_DATA, -1 },
		{ V8_CODE_TABLE, -1 },
		{ V8_CODE_BEGIN, -1 },
		{ V8_CODE_INSIDE, -1 },
		{ V8_SCOPE_FLAGS, -1 },
		{ V8_SCOPE_POSITION, -1 },
		{ V8_DATA_INLINED, -1 },
		{ V8_DATA_LITERALS, -1 },
		{ V8_DATA_OPTIMISATION, -1 },
		{ V8_DATA_SHARED, -1 },
		{ V8_DATA_POSITIONS, -1 },
		{ V8_POSITION_BITS, -1 },
	};
	bool nearest;

	for (size_t i = 0; i < ARRAY_SIZE(changed); i++)
		l.number[changed[i].number] = changed[i].value;
	memset(l.sizes, 0, sizeof(l.sizes));
	if (v8layout_complete(&l, 14U << 24 | 6U << 16, &nearest) || nearest)
		abort();
	return l;
}

static inline const int16_t *v8make_numbers(const struct v8make *v)
{
	return v->m->process.v8.number;
}

static inline uint64_t v8make_smi(uint32_t value)
{
	return (uint64_t)value << 32;
}

/* An object of @size bytes; returns its address, a pointer to it is 1 more. */
static inline uint64_t v8make_object(struct v8make *v, enum v8make_map map, uint32_t size)
{
	uint64_t addr = pymake_take(v->m, size);

	pymake_u64(v->m, addr, v->map[map] + 1);
	return addr;
}

static inline void v8make_init_as(struct v8make *v, struct pymake *m, struct v8_layout layout)
{
	const int16_t *n = layout.number;
	const int16_t types[V8MAKE_MAPS] = {
		n[V8_TYPE_FUNCTION],
		n[V8_TYPE_SHARED],
		n[V8_TYPE_SCOPE],
		n[V8_TYPE_SCRIPT],
		n[V8_TYPE_BYTECODES],
		n[V8_TYPE_TRUSTED_BYTES] ? n[V8_TYPE_TRUSTED_BYTES] : n[V8_TYPE_BYTES],
		40,
		32,
		41,
		37,
		n[V8_TYPE_CODE],
		42,
		131,
		n[V8_TYPE_WRAPPER],
	};

	memset(m, 0, sizeof(*m));
	m->end = PYMAKE_BASE + 4096;
	m->process = (struct lang_process){ .kind = LANG_NODE, .v8 = layout };
	*v = (struct v8make){ .m = m, .top = PYMAKE_BASE + PYMAKE_SIZE - 256 };
	for (int i = 0; i < V8MAKE_MAPS; i++) {
		v->map[i] = pymake_take(m, 80);
		memcpy(pymake_at(m, v->map[i] + 12), &types[i], 2);
	}
}

static inline void v8make_init(struct v8make *v, struct pymake *m)
{
	v8make_init_as(v, m, v8make_layout());
}

static inline uint64_t v8make_string(struct v8make *v, const char *text)
{
	uint64_t addr = v8make_object(v, V8MAKE_LATIN1, 16 + (uint32_t)strlen(text));

	pymake_u32(v->m, addr + 12, (uint32_t)strlen(text));
	memcpy(pymake_at(v->m, addr + 16), text, strlen(text));
	return addr;
}

/* The string of @first and @second. */
static inline uint64_t v8make_cons(struct v8make *v, uint64_t first, uint64_t second)
{
	uint64_t addr = v8make_object(v, V8MAKE_CONS, 32);

	pymake_u32(v->m, addr + 12,
		   bytes_u32(pymake_at(v->m, first + 12)) +
			   bytes_u32(pymake_at(v->m, second + 12)));
	pymake_u64(v->m, addr + 16, first + 1);
	pymake_u64(v->m, addr + 24, second + 1);
	return addr;
}

/* The text of each script: lines of 10 characters. */
#define V8MAKE_LINE  10U
#define V8MAKE_LINES 40U

static inline uint64_t v8make_source(struct v8make *v)
{
	char text[V8MAKE_LINE * V8MAKE_LINES + 1];

	memset(text, 'x', sizeof(text));
	for (uint32_t i = V8MAKE_LINE; i < sizeof(text); i += V8MAKE_LINE)
		text[i - 1] = '\n';
	text[sizeof(text) - 1] = '\0';
	return v8make_string(v, text);
}

/* @name: an address of a string, 0: none. */
static inline uint64_t v8make_script(struct v8make *v, uint64_t name)
{
	uint64_t addr = v8make_object(v, V8MAKE_SCRIPT, 104);

	pymake_u64(v->m, addr + 8, v8make_source(v) + 1);
	pymake_u64(v->m, addr + 16, name ? name + 1 : v8make_object(v, V8MAKE_OTHER, 16) + 1);
	pymake_u64(v->m, addr + 64, v8make_smi(++v->nr_scripts));
	return addr;
}

/* A scope with @locals, named or with a name by assignment; the function is at @position. */
static inline uint64_t v8make_scope(struct v8make *v, uint32_t locals, uint64_t name,
				    uint64_t inferred, uint32_t position)
{
	const int16_t *n = v8make_numbers(v);
	uint64_t addr = v8make_object(v, V8MAKE_SCOPE, 128 + 16 * locals), at;

	pymake_u32(v->m, addr + (uint64_t)n[V8_SCOPE_FLAGS],
		   (name ? 3U << 12 : 0) | (inferred ? 1U << 14 : 0));
	pymake_u64(v->m, addr + 24, v8make_smi(locals));
	at = addr + 8 + 8 * (uint64_t)n[V8_SCOPE_FIRST] +
	     8ULL * (locals < 75 ? 2 * locals : 1 + locals);
	if (name) {
		pymake_u64(v->m, at, name + 1);
		pymake_u64(v->m, at + 8, v8make_smi(UINT32_MAX));
		at += 16;
	}
	if (inferred) {
		pymake_u64(v->m, at, inferred + 1);
		at += 8;
	}
	if (n[V8_SCOPE_POSITION]) {
		pymake_u64(v->m, at, addr + 1); /* the scope around it */
		at = addr + 8 + 8 * (uint64_t)n[V8_SCOPE_POSITION];
	}
	pymake_u64(v->m, at, v8make_smi(position));
	pymake_u64(v->m, at + 8, v8make_smi(position + 80));
	return addr;
}

/* A function of @script (0: a builtin), @name: of a scope or, of a builtin, a string. */
static inline uint64_t v8make_function(struct v8make *v, uint64_t script, uint64_t name)
{
	const int16_t *n = v8make_numbers(v);
	uint64_t shared = v8make_object(v, V8MAKE_SHARED, 72);
	uint64_t function = v8make_object(v, V8MAKE_FUNCTION, 64);

	pymake_u64(v->m, function + (uint64_t)n[V8_FUNCTION_SHARED], shared + 1);
	pymake_u64(v->m, shared + 8, v8make_smi(77));
	pymake_u64(v->m, shared + (uint64_t)n[V8_SHARED_NAME], name + 1);
	pymake_u64(v->m, shared + (uint64_t)n[V8_SHARED_SCRIPT],
		   (script ? script : v8make_object(v, V8MAKE_OTHER, 96)) + 1);
	pymake_u32(v->m, shared + (uint64_t)n[V8_SHARED_FLAGS] + 4,
		   script ? ++v->nr_functions : UINT32_MAX);
	return function;
}

static inline uint64_t v8make_bytes(struct v8make *v, const void *bytes, uint32_t size)
{
	uint64_t addr = v8make_object(v, V8MAKE_BYTES, 16 + size);

	pymake_u64(v->m, addr + 8, v8make_smi(size));
	memcpy(pymake_at(v->m, addr + 16), bytes, size);
	return addr;
}

/* Bytecodes with a table of positions of @size bytes. */
static inline uint64_t v8make_bytecodes(struct v8make *v, const void *table, uint32_t size)
{
	uint64_t positions = v8make_bytes(v, table, size);
	uint64_t addr = v8make_object(v, V8MAKE_BYTECODES, 72);

	pymake_u64(v->m, addr + 8, v8make_smi(64));
	pymake_u64(v->m, addr + (uint64_t)v8make_numbers(v)[V8_BYTECODES_POSITIONS], positions + 1);
	return addr;
}

/* A position as V8 encodes it, of the call that was inlined (-1: of none). */
static inline int64_t v8make_position(uint32_t position, int inlined)
{
	return (int64_t)(position + 1) << 1 | (int64_t)(inlined + 1) << 31;
}

/* A table of positions in the making. */
struct v8make_table {
	uint8_t bytes[512];
	uint32_t size;
	int64_t code, raw;
	int bits; /* V8_POSITION_BITS */
};

static inline void v8make_bits(struct v8make_table *t, uint64_t v)
{
	for (; v > 127; v >>= 7)
		t->bytes[t->size++] = (uint8_t)(v | 128);
	t->bytes[t->size++] = (uint8_t)v;
}

static inline void v8make_number(struct v8make_table *t, int64_t value)
{
	v8make_bits(t, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* An entry at byte @code; the first one of a table counts from -1. */
static inline void v8make_entry(struct v8make_table *t, int64_t code, int64_t raw, bool statement)
{
	int64_t delta = code - (t->size ? t->code : -1);

	if (t->bits)
		v8make_bits(t, (uint64_t)delta << t->bits | 2 | statement);
	else
		v8make_number(t, statement ? delta : -delta - 1);
	v8make_number(t, raw - t->raw);
	t->code = code;
	t->raw = raw;
}

/* The SharedFunctionInfo that @function has. */
static inline uint64_t v8make_shared(const struct v8make *v, uint64_t function)
{
	return bytes_u64(
		pymake_at(v->m, function + (uint64_t)v8make_numbers(v)[V8_FUNCTION_SHARED]));
}

/* Set element @number of the data for leaving optimised code. */
static inline void v8make_data(struct v8make *v, uint64_t data, enum v8_number number,
			       uint64_t value)
{
	pymake_u64(v->m, data + 16 + 8 * (uint64_t)v8make_numbers(v)[number], value);
}

/* The table of handles: of @handle the code at @code. */
#define V8MAKE_HANDLES (PYMAKE_BASE + 0x17000)

/* Compiled code of @function at 0x12340; @kind: of V8. */
static inline uint64_t v8make_compiled(struct v8make *v, uint64_t function, uint32_t kind,
				       uint64_t data, uint64_t table)
{
	const int16_t *n = v8make_numbers(v);
	uint64_t code = v8make_object(v, V8MAKE_CODE, 64), shared = v8make_shared(v, function);
	uint32_t handle = ++v->nr_handles << 8;

	if (n[V8_FUNCTION_CODE]) {
		pymake_u64(v->m, function + (uint64_t)n[V8_FUNCTION_CODE], code + 1);
	} else {
		pymake_u32(v->m, function + (uint64_t)n[V8_FUNCTION_HANDLE], handle);
		pymake_u64(v->m, V8MAKE_HANDLES + handle / 256 * 16 + 8, code << 16 | 3);
	}
	if (n[V8_TYPE_WRAPPER]) {
		uint64_t wrapper = v8make_object(v, V8MAKE_WRAPPER, 16);

		pymake_u64(v->m, wrapper + 8, shared);
		shared = wrapper + 1;
	}
	if (kind > (uint32_t)n[V8_KIND_BASELINE])
		v8make_data(v, data, V8_DATA_SHARED, shared);
	pymake_u64(v->m, code + (uint64_t)n[V8_CODE_DATA], data + 1);
	pymake_u64(v->m, code + (uint64_t)n[V8_CODE_TABLE], table + 1);
	pymake_u64(v->m, code + (uint64_t)n[V8_CODE_BEGIN], 0x12340);
	pymake_u32(v->m, code + (uint64_t)n[V8_CODE_FLAGS], 0x170 | kind);
	pymake_u32(v->m, code + (uint64_t)n[V8_CODE_BYTES], 0x80);
	return code;
}

/* Make a frame of 128 bytes inside (below) the last one; returns its frame pointer. */
static inline uint64_t v8make_frame(struct v8make *v, uint64_t function, uint64_t bytecodes,
				    uint32_t offset)
{
	uint64_t fp = v->top;

	pymake_u64(v->m, fp, fp + 128);
	pymake_u64(v->m, fp + 8, 0x7f0000123457ULL);
	pymake_u64(v->m, fp - 8, v->map[V8MAKE_OTHER] + 1);
	pymake_u64(v->m, fp - 16, function + 1);
	if (bytecodes) {
		pymake_u64(v->m, fp - 32, bytecodes + 1);
		pymake_u64(v->m, fp - 40,
			   v8make_smi(offset + (uint32_t)v8make_numbers(v)[V8_BYTECODES_DATA] - 1));
	}
	v->top -= 128;
	return fp;
}

#endif
