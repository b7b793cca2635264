/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A JVM made of C structs in the test's own process, which is read as a real one is.
 */
#ifndef TESTS_MAKERS_JVM_H
#define TESTS_MAKERS_JVM_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/java/internal.h"
#include "symbols/elf/internal.h"
#include "tests/makers/jvm_tables.h"
#include "symbols/base/base.h"
#include "symbols/process/process.h"

struct block {
	uint64_t length;
	bool used;
};

struct blob {
	const char *name;
	int size, complete, frame_size;
	char *begin, *end;
	struct method *method;
	int compile_id;
	signed char state;
	char *deopt;
	uint8_t *scopes;
	int pcs, dependencies, metadata; /* offsets from the blob */
	int level;
};

struct symbol {
	uint16_t length;
	char body[30];
};

struct klass {
	uint64_t first;
	struct symbol *name;
};

struct pool {
	uint32_t tags;
	uint16_t source_file;
	struct klass *holder;
	struct symbol *entries[4]; /* behind the struct, as HotSpot has them */
};

struct const_method {
	struct pool *pool;
	uint16_t code_size, name, flags;
	uint8_t codes[2000]; /* bytecodes, then the line table */
};

struct method {
	struct const_method *constant;
};

#define SEGMENT	    128
#define NR_SEGMENTS 64

static char memory[NR_SEGMENTS * SEGMENT] __attribute__((aligned(SEGMENT)));
static uint8_t segmap[NR_SEGMENTS];
static struct heap code_heap = {
	.memory = { memory, memory + sizeof(memory) },
	.segmap = { (char *)segmap, (char *)segmap + sizeof(segmap) },
	.log2 = 7,
};
static struct heap *heaps[] = { &code_heap };
static struct array heap_array = { 1, heaps };
static struct array *code_cache_heaps = &heap_array;
static struct symbol class_name = { 9, "pkg/Class" }, get = { 3, "get" }, put = { 3, "put" };
static struct klass klass = { .name = &class_name };
static struct symbol file_name = { 10, "Class.java" };
static struct pool pool = { 0, 3, &klass, { NULL, &get, &put, &file_name } };
static int vm_major = 17;
static uint64_t call_return = 0x1234;
static struct const_method const_get = { &pool, 12, 1, 0, { 0 } },
			   const_put = { &pool, 5, 2, 1, { 0 } };
static struct method method_get = { &const_get }, method_put = { &const_put };

struct flag {
	void *addr;
	const char *name;
	int origin;
};

static bool use_loops, use_other = true;
static struct flag flag_table[] = {
	{ &use_other, "UseCountedLoopSafepoint", 0 },
	{ &use_other, "UseCountedLoopSafepoints2", 0 },
	{ &use_loops, "UseCountedLoopSafepoints", 0 },
	{ NULL, NULL, 0 },
};
static struct flag *flags = flag_table;
static uint64_t nr_flags = ARRAY_SIZE(flag_table);

#define METHOD_MEMBERS                                                                             \
	MEMBER("Method", "_constMethod", method, constant),                                        \
		MEMBER("ConstMethod", "_constants", const_method, pool),                           \
		MEMBER("ConstMethod", "_code_size", const_method, code_size),                      \
		MEMBER("ConstMethod", "_name_index", const_method, name),                          \
		MEMBER("ConstantPool", "_pool_holder", pool, holder),                              \
		MEMBER("Klass", "_name", klass, name),                                             \
		MEMBER("Symbol", "_length", symbol, length),                                       \
		MEMBER("Symbol", "_body", symbol, body)
static struct VMStructEntry structs[] = {
	{ "CodeCache", "_heaps", "", 1, 0, &code_cache_heaps },
	{ "Unwanted", "_heaps", "", 0, 999999, NULL },
	CODE_HEAP_MEMBERS,
	MEMBER("CodeBlob", "_name", blob, name),
	MEMBER("CodeBlob", "_size", blob, size),
	MEMBER("CodeBlob", "_frame_complete_offset", blob, complete),
	MEMBER("CodeBlob", "_frame_size", blob, frame_size),
	MEMBER("CodeBlob", "_code_begin", blob, begin),
	MEMBER("CodeBlob", "_code_end", blob, end),
	MEMBER("CompiledMethod", "_method", blob, method),
	MEMBER("nmethod", "_compile_id", blob, compile_id),
	MEMBER("HeapBlock::Header", "_used", block, used),
	MEMBER("nmethod", "_state", blob, state),
	MEMBER("nmethod", "_comp_level", blob, level),
	{ "JVMFlag", "flags", "", 1, 0, &flags },
	{ "JVMFlag", "numFlags", "", 1, 0, &nr_flags },
	MEMBER("JVMFlag", "_name", flag, name),
	MEMBER("JVMFlag", "_addr", flag, addr),
	MEMBER("CompiledMethod", "_deopt_handler_begin", blob, deopt),
	{ "StubRoutines", "_call_stub_return_address", "", 1, 0, &call_return },
	MEMBER("CompiledMethod", "_scopes_data_begin", blob, scopes),
	MEMBER("nmethod", "_scopes_pcs_offset", blob, pcs),
	MEMBER("nmethod", "_dependencies_offset", blob, dependencies),
	MEMBER("nmethod", "_metadata_offset", blob, metadata),
	{ "Abstract_VM_Version", "_vm_major_version", "", 1, 0, &vm_major },
	MEMBER("ConstMethod", "_flags", const_method, flags),
	MEMBER("ConstantPool", "_source_file_name_index", pool, source_file),
	METHOD_MEMBERS,
	{ NULL, NULL, NULL, 0, 0, NULL },
};
static struct VMTypeEntry types[] = {
	{ "HeapBlock", 16 },
	{ "ConstMethod", offsetof(struct const_method, codes) },
	{ "ConstantPool", offsetof(struct pool, entries) },
	{ "JVMFlag", sizeof(struct flag) },
	{ NULL, 0 },
};

struct VMStructEntry *gHotSpotVMStructs = structs;
struct VMTypeEntry *gHotSpotVMTypes = types;

/* Put a blob at segment @i of @nr; its code is the last 64 bytes. */
static struct blob *put_blob(uint32_t i, uint32_t nr, const char *name, struct method *method,
			     int id)
{
	char *block = memory + i * SEGMENT;
	struct blob *b = (struct blob *)(block + 16);

	*(struct block *)block = (struct block){ nr, true };
	*b = (struct blob){ .name = name,
			    .size = (int)nr * SEGMENT - 16,
			    .complete = 8,
			    .frame_size = 4,
			    .begin = block + nr * SEGMENT - 64,
			    .end = block + nr * SEGMENT,
			    .method = method,
			    .compile_id = id };
	for (uint32_t k = 0; k < nr; k++)
		segmap[i + k] = (uint8_t)k;
	return b;
}

struct jvm {
	struct elffile elf;
	int fd;
	uint64_t bias;
	struct remote remote;
	struct jvm_read vm;
};

static void jvm_init(struct jvm *j)
{
	struct elfvar var = { .name = "gHotSpotVMStructs" };
	struct stat st;

	memset(j, 0, sizeof(*j));
	j->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(j->fd >= 0);
	assert_int_equal(fstat(j->fd, &st), 0);
	assert_int_equal(elffile_open(&j->elf, j->fd, NULL, (uint64_t)st.st_size, NULL), 0);
	assert_int_equal(elfvar_find(&j->elf, &var, 1), 1);
	assert_int_equal(var.size, 8);
	j->bias = (uint64_t)(uintptr_t)&gHotSpotVMStructs - var.vaddr;
	j->remote.pid = getpid();
	j->remote.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	memset(segmap, 0xff, sizeof(segmap));
	memset(memory, 0, sizeof(memory));
	code_heap.log2 = 7;
	code_heap.memory.high = memory + sizeof(memory);
	heap_array.len = 1;
	class_name.length = 9;
}

static void jvm_fini(struct jvm *j)
{
	jvm_read_close(&j->vm);
	elffile_close(&j->elf);
	close(j->remote.fd);
	close(j->fd);
}

/* An nmethod of get(), with put() inlined at one place. */
static struct blob *put_inlined(uint8_t *scopes, size_t size)
{
	static const uint8_t get_alone[] = { 0, 1, 1 + 7 }, put_in_get[] = { 1, 2, 1 + 4 };
	static const int32_t pcs[][4] = {
		{ -1, 0, 0, 0 }, { 16, 1, 0, 0 }, { 32, 8, 0, 0 }, { 1 << 20, 0, 0, 0 }
	};
	static uint64_t methods[2];
	struct blob *b = put_blob(2, 6, "nmethod", &method_get, 3);
	char *data = (char *)(b + 1);

	methods[0] = (uintptr_t)&method_get;
	methods[1] = (uintptr_t)&method_put;
	memset(scopes, 0, size);
	memcpy(scopes + 1, get_alone, sizeof(get_alone));
	memcpy(scopes + 8, put_in_get, sizeof(put_in_get));
	memcpy(data, pcs, sizeof(pcs));
	memcpy(data + sizeof(pcs), methods, sizeof(methods));
	b->scopes = scopes;
	b->pcs = (int)(data - (char *)b);
	b->dependencies = b->metadata = b->pcs + (int)sizeof(pcs);
	return b;
}

#endif
