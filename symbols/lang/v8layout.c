// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names and limits of V8's numbers. Runs on: any thread.
 */
#include "symbols/lang/v8layout.h"

#include <stddef.h>
#include <string.h>

#define PREFIX "v8dbg_"
/* The largest offset in an object, and the largest type of an instance. */
#define OFFSET_MAX 160
/* The largest in the head of an object that is read before its type is known. */
#define HEAD_MAX (V8_HEAD - 8)
#define TYPE_MAX 4096

static const struct {
	const char *name; /* behind the prefix */
	int16_t min, max;
} numbers[V8_NR] = {
	[V8_FP_CONTEXT] = { "off_fp_context", -64, -8 },
	[V8_FP_FUNCTION] = { "off_fp_function", -64, -8 },
	[V8_FP_BYTECODES] = { "off_fp_bytecode_array", -64, -8 },
	[V8_FP_OFFSET] = { "off_fp_bytecode_offset", -64, -8 },
	[V8_SMI_SHIFT] = { "SmiShiftSize", 31, 31 },
	[V8_MAP_TYPE] = { "class_Map__instance_type__uint16_t", 8, OFFSET_MAX },
	[V8_FUNCTION_SHARED] = { "class_JSFunction__shared__SharedFunctionInfo", 8, HEAD_MAX },
	[V8_SHARED_DATA] = { "class_SharedFunctionInfo__function_data__Object", 8, OFFSET_MAX },
	[V8_SHARED_NAME] = { "class_SharedFunctionInfo__name_or_scope_info__Object", 8,
			     OFFSET_MAX },
	[V8_SHARED_SCRIPT] = { "class_SharedFunctionInfo__script_or_debug_info__HeapObject", 8,
			       OFFSET_MAX },
	[V8_SHARED_TOKEN] = { "class_SharedFunctionInfo__raw_function_token_offset__int16_t", 8,
			      OFFSET_MAX },
	[V8_SHARED_FLAGS] = { "class_SharedFunctionInfo__flags__int", 8, OFFSET_MAX },
	[V8_SCRIPT_NAME] = { "class_Script__name__Object", 8, OFFSET_MAX },
	[V8_SCRIPT_SOURCE] = { "class_Script__source__Object", 8, OFFSET_MAX },
	[V8_SCRIPT_ENDS] = { "class_Script__line_ends__Object", 8, OFFSET_MAX },
	[V8_BYTECODES_DATA] = { "class_BytecodeArray__data__uintptr_t", 8, OFFSET_MAX },
	[V8_LENGTH] = { "class_FixedArrayBase__length__SMI", 8, OFFSET_MAX },
	[V8_ARRAY_DATA] = { "class_FixedArray__data__uintptr_t", 8, OFFSET_MAX },
	[V8_STRING_LENGTH] = { "class_String__length__int32_t", 8, HEAD_MAX },
	[V8_STRING_CHARS] = { "class_SeqOneByteString__chars__char", 8, OFFSET_MAX },
	[V8_CONS_FIRST] = { "class_ConsString__first__String", 8, HEAD_MAX },
	[V8_CONS_SECOND] = { "class_ConsString__second__String", 8, HEAD_MAX },
	[V8_THIN_ACTUAL] = { "class_ThinString__actual__String", 8, HEAD_MAX },
	[V8_SCOPE_LOCALS] = { "scopeinfo_idx_ncontextlocals", 1, HEAD_MAX / 8 - 1 },
	[V8_SCOPE_FIRST] = { "scopeinfo_idx_first_vars", 1, 8 },
	[V8_TYPE_FUNCTION] = { "type_JSFunction__JS_FUNCTION_TYPE", 128, TYPE_MAX },
	[V8_TYPE_SHARED] = { "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 128, TYPE_MAX },
	[V8_TYPE_SCOPE] = { "type_ScopeInfo__SCOPE_INFO_TYPE", 128, TYPE_MAX },
	[V8_TYPE_SCRIPT] = { "type_Script__SCRIPT_TYPE", 128, TYPE_MAX },
	[V8_TYPE_BYTECODES] = { "type_BytecodeArray__BYTECODE_ARRAY_TYPE", 128, TYPE_MAX },
	[V8_TYPE_BYTES] = { "type_ByteArray__BYTE_ARRAY_TYPE", 128, TYPE_MAX },
	[V8_TYPE_CODE] = { "type_Code__CODE_TYPE", 128, TYPE_MAX },
};

enum v8_number v8layout_number(const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return V8_NR;
	for (int i = 0; i < V8_NR; i++)
		if (!strcmp(name + strlen(PREFIX), numbers[i].name))
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

const char *v8layout_check(const struct v8_layout *l)
{
	return is_usable(l) ? NULL : "not supported (10.2 and 11.3 are)";
}

bool v8layout_tried(int32_t major, int32_t minor)
{
	return (major == 10 && minor == 2) || (major == 11 && minor == 3);
}
