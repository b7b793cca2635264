/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables that HotSpot exports and its code cache, for made-up JVMs: the includer defines
 * gHotSpotVMStructs and gHotSpotVMTypes.
 */
#ifndef TESTS_MAKERS_JVM_TABLES_H
#define TESTS_MAKERS_JVM_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct VMStructEntry {
	const char *type, *field, *type_string;
	int32_t is_static;
	uint64_t offset;
	void *address;
};
struct VMTypeEntry {
	const char *type;
	uint64_t size;
};

struct space {
	char *low, *high;
};

struct heap {
	struct space memory, segmap;
	int log2;
};

struct array {
	int len;
	struct heap **data;
};

#define MEMBER(t, f, s, m)                                                                         \
	{                                                                                          \
		t, f, "int", 0, offsetof(struct s, m), NULL                                        \
	}
/* How the code cache is found. */
#define CODE_HEAP_MEMBERS                                                                          \
	MEMBER("GrowableArrayBase", "_len", array, len),                                           \
		MEMBER("GrowableArray<int>", "_data", array, data),                                \
		MEMBER("CodeHeap", "_memory", heap, memory),                                       \
		MEMBER("CodeHeap", "_segmap", heap, segmap),                                       \
		MEMBER("CodeHeap", "_log2_segment_size", heap, log2),                              \
		MEMBER("VirtualSpace", "_low", space, low),                                        \
		MEMBER("VirtualSpace", "_high", space, high)

uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct VMStructEntry, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct VMStructEntry, field);
uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct VMStructEntry, type_string);
uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct VMStructEntry, is_static);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct VMStructEntry, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct VMStructEntry, address);
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct VMStructEntry);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct VMTypeEntry, type);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct VMTypeEntry, size);
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct VMTypeEntry);

#endif
