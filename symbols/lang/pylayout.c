// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Offsets by minor version.
 *
 * Runs on: any thread.
 */
#include "symbols/lang/pylayout.h"

#include <assert.h>
#include <string.h>

/* Of 3.8 to 3.10 but for one field: frame objects in the heap, one C frame each. */
#define OLD(minor_, lasti, unit)                                                                   \
	{                                                                                          \
		.minor = minor_, .frame_size = 112, .interpreters = 32, .interp_next = 0,          \
		.interp_threads = 8, .ts_next = 8, .ts_current = 24, .ts_thread_id = 176,          \
		.frame_code = 32, .frame_previous = 24, .frame_instr = lasti,                      \
		.one_frame_each = true, .instr_unit = unit, .code_first_line = 40,                 \
		.code_consts = 56, .code_filename = 104, .code_name = 112, .code_table = 120,      \
		.code_instructions = 48, .str_ascii = 48, .str_other = 72,                         \
	}

/* Of 3.12 on but for some. */
#define NEW(minor_, interp_, threads_, current_, instructions_)                                    \
	.minor = minor_, .frame_size = 72, .interpreters = interp_, .interp_next = 0,              \
	.interp_threads = threads_, .ts_next = 8, .ts_current = current_, .ts_top = 240,           \
	.frame_code = 0, .frame_previous = 8, .frame_globals = 24, .frame_instr = 56,              \
	.frame_owner = 70, .code_first_line = 68, .code_consts = 24, .code_filename = 112,         \
	.code_name = 120, .code_qualname = 128, .code_table = 136,                                 \
	.code_instructions = instructions_, .code_version = 92, .code_nlocals = 72,                \
	.code_stacksize = 64, .str_ascii = 40, .str_other = 56

static const struct py_layout layouts[] = {
	OLD(8, 104, 1),
	OLD(9, 104, 1),
	OLD(10, 96, 2),
	{
		.minor = 11,
		.frame_size = 72,
		.interpreters = 40,
		.interp_next = 0,
		.interp_threads = 16,
		.ts_next = 8,
		.ts_current = 56,
		.ts_thread_id = 152,
		.ts_native_id = 160,
		.ts_top = 304,
		.cframe_size = 24,
		.cframe_current = 8,
		.cframe_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_globals = 8,
		.frame_instr = 56,
		.frame_is_entry = 68,
		.frame_owner = 69,
		.code_first_line = 72,
		.code_consts = 24,
		.code_filename = 112,
		.code_name = 120,
		.code_qualname = 128,
		.code_table = 136,
		.code_instructions = 184,
		.code_nlocals = 76,
		.code_stacksize = 68,
		.str_ascii = 48,
		.str_other = 72,
	},
	{
		NEW(12, 40, 72, 56, 192),
		.ts_thread_id = 136,
		.ts_native_id = 144,
		.cframe_size = 16,
		.cframe_current = 0,
		.cframe_previous = 8,
	},
	{ NEW(13, 632, 7344, 72, 200), .ts_thread_id = 152, .ts_native_id = 160 },
	{ NEW(14, 632, 7344, 72, 200), .ts_thread_id = 152, .ts_native_id = 160, .tagged = true },
	{ NEW(15, 936, 7336, 72, 208), .ts_thread_id = 176, .ts_native_id = 184, .tagged = true },
};

const struct py_layout *pylayout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (version >> 16 == (0x300U | layouts[i].minor))
			return &layouts[i];
	return NULL;
}

/*
 * Where a number is among the words of 3.13 and of each later minor version, in the order of
 * Include/internal/pycore_debug_offsets.h: no patch level has changed that.
 */
#define FIRST_MINOR 13U
#define NR_MINORS   3U
struct word {
	uint8_t at[NR_MINORS];
	uint8_t size; /* of the field: 1 or 2 bytes */
	size_t field;
};

#define FIELD(a, b, c, name)                                                                       \
	{                                                                                          \
		{ a, b, c }, sizeof(((struct py_layout *)0)->name),                                \
			offsetof(struct py_layout, name)                                           \
	}

static const struct word fields[] = {
	FIELD(5, 5, 5, interpreters),
	FIELD(8, 8, 8, interp_next),
	FIELD(9, 9, 9, interp_threads),
	FIELD(21, 24, 24, ts_next),
	FIELD(23, 26, 26, ts_current),
	FIELD(24, 27, 30, ts_thread_id),
	FIELD(25, 28, 31, ts_native_id),
	FIELD(26, 29, 32, ts_top), /* datastack_chunk, which datastack_top is behind */
	FIELD(29, 32, 40, frame_previous),
	FIELD(30, 33, 41, frame_code),
	FIELD(31, 34, 42, frame_instr),
	FIELD(32, 35, 43, frame_size), /* localsplus */
	FIELD(33, 36, 44, frame_owner),
	FIELD(35, 40, 48, code_filename),
	FIELD(36, 41, 49, code_name),
	FIELD(37, 42, 50, code_qualname),
	FIELD(38, 43, 51, code_table),
	FIELD(39, 44, 52, code_first_line),
	FIELD(43, 48, 56, code_instructions),
};

/* A frame is read up to its last field. */
static bool is_sane(const struct py_layout *l)
{
	return l->frame_owner < l->frame_size && l->frame_previous + 8U <= l->frame_size &&
	       l->frame_code + 8U <= l->frame_size && l->frame_instr + 8U <= l->frame_size &&
	       l->frame_globals + 8U <= l->frame_size;
}

const char *pylayout_debug(struct py_layout *layout, const uint64_t words[PY_DEBUG_OFFSETS_WORDS])
{
	uint32_t column = layout->minor - FIRST_MINOR;

	assert(column < NR_MINORS);
	if (memcmp(words, "xdebugpy", 8) != 0)
		return "no _Py_DebugOffsets in _PyRuntime";
	if (words[1] >> 16 != (0x300U | layout->minor))
		return "_Py_DebugOffsets of another version";
	if (words[2])
		return "free-threaded build: not supported";
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t value = words[fields[i].at[column]];
		uint16_t wide = (uint16_t)value;
		uint8_t narrow = (uint8_t)value;

		if (value >> (8 * fields[i].size))
			return "impossible offsets in _Py_DebugOffsets";
		if (fields[i].size == 1)
			memcpy((char *)layout + fields[i].field, &narrow, 1);
		else
			memcpy((char *)layout + fields[i].field, &wide, 2);
	}
	layout->ts_top = (uint16_t)(layout->ts_top + 8);
	return is_sane(layout) ? NULL : "impossible offsets in _Py_DebugOffsets";
}
