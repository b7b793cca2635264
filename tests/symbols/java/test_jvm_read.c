// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vmstructs, hotspot, remote, elfvar: a JVM made of C structs in this very
 * process, read with process_vm_readv(2) as a real one is.
 */
#include "symbols/java/jvm_read.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/script/script.h"
#include "symbols/elf/internal.h"
#include "tests/makers/jvm.h"
#include "symbols/base/base.h"
#include "symbols/process/process.h"

/* A blob as of JDK 25: offsets, and descriptions in memory of their own. */
struct blob25 {
	uint8_t *mutable_data;
	const char *name;
	int size, relocation_size, code, data, frame_size;
	int16_t complete;
	struct method *method;
	uint8_t *immutable_data;
	int deopt, pcs, scopes, compile_id;
};

#define SHORT(t, f, s, m)                                                                          \
	{                                                                                          \
		t, f, "int16_t", 0, offsetof(struct s, m), NULL                                    \
	}
static struct VMStructEntry structs25[] = {
	{ "CodeCache", "_heaps", "", 1, 0, &code_cache_heaps },
	CODE_HEAP_MEMBERS,
	MEMBER("CodeBlob", "_name", blob25, name),
	MEMBER("CodeBlob", "_size", blob25, size),
	SHORT("CodeBlob", "_frame_complete_offset", blob25, complete),
	MEMBER("CodeBlob", "_frame_size", blob25, frame_size),
	MEMBER("CodeBlob", "_code_offset", blob25, code),
	MEMBER("CodeBlob", "_data_offset", blob25, data),
	MEMBER("CodeBlob", "_mutable_data", blob25, mutable_data),
	MEMBER("CodeBlob", "_relocation_size", blob25, relocation_size),
	MEMBER("nmethod", "_method", blob25, method),
	MEMBER("nmethod", "_compile_id", blob25, compile_id),
	MEMBER("nmethod", "_deopt_handler_offset", blob25, deopt),
	MEMBER("nmethod", "_immutable_data", blob25, immutable_data),
	MEMBER("nmethod", "_scopes_pcs_offset", blob25, pcs),
	MEMBER("nmethod", "_scopes_data_offset", blob25, scopes),
	{ "Abstract_VM_Version", "_vm_major_version", "", 1, 0, &vm_major },
	MEMBER("ConstMethod", "_flags._flags", const_method, flags),
	METHOD_MEMBERS,
	{ NULL, NULL, NULL, 0, 0, NULL },
};
static int read_tables(struct jvm *j, const char **missing)
{
	struct elfvar vars[VMSTRUCTS_VARIABLES];

	vmstructs_want(vars);
	elfvar_find(&j->elf, vars, VMSTRUCTS_VARIABLES);
	return vmstructs_read(&j->vm.vm, &j->remote, vars, j->bias, missing);
}

static int name_one(void *of, uint32_t i)
{
	struct jvm *j = of;

	return jvm_read_name(&j->vm, &j->remote, i);
}

/* Read the code cache, and names of methods. */
static int scan(struct jvm *j)
{
	int rc = jvm_read_scan(&j->vm, &j->remote);

	return rc ? rc : remote_for_each(&j->remote, j->vm.nr_blobs, name_one, j);
}

static int look_up(struct jvm *j, const uint64_t *pcs, uint32_t nr)
{
	int rc = jvm_read_look_up(&j->vm, &j->remote, pcs, nr);

	return rc ? rc : remote_for_each(&j->remote, j->vm.nr_blobs, name_one, j);
}

TEST(test_tables)
{
	const char *missing = NULL;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	assert_int_equal(j.vm.vm.heaps, (uintptr_t)&code_cache_heaps);
	assert_int_equal(j.vm.vm.blob_begin, offsetof(struct blob, begin));
	assert_int_equal(j.vm.vm.block_size, 16);
	/* A field of another version: named, not guessed. */
	structs[7].field = "_lowest";
	assert_int_equal(read_tables(&j, &missing), -ENODATA);
	assert_string_equal(missing, "_low");
	structs[7].field = "_low";
	/* Offsets beyond any structure, strides that make no sense. */
	structs[9].offset = 100000;
	assert_int_equal(read_tables(&j, &missing), -EBADMSG);
	structs[9].offset = offsetof(struct blob, name);
	gHotSpotVMStructEntryArrayStride = 1 << 20;
	assert_int_equal(read_tables(&j, &missing), -EBADMSG);
	gHotSpotVMStructEntryArrayStride = sizeof(struct VMStructEntry);
	gHotSpotVMTypeEntrySizeOffset = 12;
	assert_int_equal(read_tables(&j, &missing), -EBADMSG);
	gHotSpotVMTypeEntrySizeOffset = offsetof(struct VMTypeEntry, size);
	/* Only the stride itself may be as large as an entry: others would be read behind it. */
	gHotSpotVMStructEntryArrayStride = 256;
	gHotSpotVMStructEntryTypeNameOffset = 256;
	assert_int_equal(read_tables(&j, &missing), -EBADMSG);
	gHotSpotVMStructEntryArrayStride = sizeof(struct VMStructEntry);
	gHotSpotVMStructEntryTypeNameOffset = offsetof(struct VMStructEntry, type);
	/* A head of blocks with which members of blobs would be behind the bytes that are read. */
	types[0].size = 112;
	assert_int_equal(read_tables(&j, &missing), -EBADMSG);
	types[0].size = 16;
	/* A table without end. */
	gHotSpotVMStructs = (void *)16;
	assert_int_equal(read_tables(&j, &missing), -EFAULT);
	gHotSpotVMStructs = structs;
	jvm_fini(&j);
}

/* Where compiled code removes its frame: of JDK 17, by the optimiser, with a poll; of JDK 11. */
TEST(test_exits)
{
	static const uint8_t add[] = { 0x48, 0x83, 0xc4, 0x10, 0x5d }; /* $0x10,%rsp; pop */
	static const uint8_t poll[] = { 0x49, 0x3b, 0xa7, 0x38, 0x03, 0, 0,
					0x0f, 0x87, 0x40, 0,	0,    0, 0xc3 };
	static const uint8_t large[] = { 0x48, 0x81, 0xc4, 0x10, 1, 0, 0, 0x5d, 0xc3 };
	uint8_t code[256];

	(void)state;
	memset(code, 0x90, sizeof(code));
	assert_int_equal(find_exits(code, sizeof(code), 4), 0);
	memcpy(code + 32, add, sizeof(add));
	assert_int_equal(find_exits(code, sizeof(code), 4), 36);
	/* Of another frame. */
	assert_int_equal(find_exits(code, sizeof(code), 5), 0);
	memcpy(code + 37, poll, sizeof(poll));
	assert_int_equal(find_exits(code, sizeof(code), 4), 36 << 16 | (37 + 13 + 0x40));
	memcpy(code + 100, add, sizeof(add));
	assert_int_equal(find_exits(code, sizeof(code), 4), 36ULL << 32 | 114 << 16 | 104);
	/* More than there is room for. */
	memcpy(code + 130, add, sizeof(add));
	memcpy(code + 150, add, sizeof(add));
	assert_int_equal(find_exits(code, sizeof(code), 4), 0);
	memcpy(code + 60, large, sizeof(large));
	assert_int_equal(find_exits(code, sizeof(code), 2 + 0x110 / 8), 67);
	/* Nothing is read behind the code. */
	for (uint32_t size = 0; size < 69; size++)
		assert_int_equal(find_exits(code, size, 2 + 0x110 / 8), 0);
	/* A jump to before the code, or far behind it. */
	code[37 + 12] = 0xff;
	assert_int_equal(find_exits(code, 64, 4), 0);
}

TEST(test_scan)
{
	const char *missing;
	struct blob *b;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	put_blob(8, 2, "Interpreter", NULL, 0);
	put_blob(2, 3, "nmethod", &method_get, 7);
	b = put_blob(20, 1, "StubRoutines (1)", NULL, 0);
	b->frame_size = 0;
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 3);
	assert_int_equal(j.vm.nr_new, 3);
	assert_string_equal(j.vm.blobs[0].name, "pkg.Class.get");
	assert_int_equal(j.vm.blobs[0].kind, JVM_READ_COMPILED);
	assert_int_equal(j.vm.blobs[0].start, (uintptr_t)memory + 5 * SEGMENT - 64);
	assert_int_equal(j.vm.blobs[0].frame_words, 4);
	assert_int_equal(j.vm.blobs[1].kind, JVM_READ_INTERPRETER);
	assert_string_equal(j.vm.blobs[2].name, "StubRoutines (1)");
	/* Nothing changed: nothing is new. */
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_new, 0);
	assert_false(j.vm.blobs[0].fresh);
	/* Other code at the same place has another method or compile id. */
	put_blob(2, 3, "nmethod", &method_put, 8);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_new, 1);
	assert_true(j.vm.blobs[0].fresh);
	assert_string_equal(j.vm.blobs[0].name, "pkg.Class.put");
	put_blob(2, 3, "nmethod", &method_put, 9);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_new, 1);
	/* Retired code is the same code. */
	b = put_blob(2, 3, "nmethod", &method_put, 9);
	b->state = 1;
	b->deopt = b->begin + 24;
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_new, 0);
	assert_int_equal(j.vm.nr_retired, 1);
	assert_true(j.vm.blobs[0].retired);
	assert_int_equal(j.vm.blobs[0].deopt, j.vm.blobs[0].start + 24);
	assert_int_equal(j.vm.call_return, call_return);
	/* A free block keeps its old bytes, also where new code begins inside. */
	((struct block *)(memory + 2 * SEGMENT))->used = false;
	put_blob(4, 1, "nmethod", &method_get, 10);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 3);
	assert_int_equal(j.vm.blobs[0].compile_id, 10);
	/* Freed. */
	memset(segmap + 2, 0xff, 3);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 2);
	jvm_fini(&j);
}

/* Code at an address, made after the scan: read without another one. */
TEST(test_look_up)
{
	const char *missing;
	uint64_t pcs[4];
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	put_blob(2, 3, "nmethod", &method_get, 7);
	put_blob(8, 2, "Interpreter", NULL, 0);
	assert_int_equal(scan(&j), 0);
	/* One in a gap, by two of its addresses; free memory; outside. */
	put_blob(6, 2, "nmethod", &method_put, 8);
	pcs[0] = (uintptr_t)memory + 7 * SEGMENT + 100;
	pcs[1] = (uintptr_t)memory + 30 * SEGMENT;
	pcs[2] = 4096;
	pcs[3] = (uintptr_t)memory + 6 * SEGMENT;
	j.remote.nr_reads = 0;
	assert_int_equal(look_up(&j, pcs, ARRAY_SIZE(pcs)), 0);
	assert_in_range(j.remote.nr_reads, 1, 40);
	assert_int_equal(j.vm.nr_blobs, 3);
	assert_string_equal(j.vm.blobs[1].name, "pkg.Class.put");
	assert_true(j.vm.blobs[1].fresh);
	assert_false(j.vm.blobs[0].fresh);
	/* Known now; and nothing is wanted. */
	assert_int_equal(look_up(&j, pcs, 1), 0);
	assert_int_equal(j.vm.nr_new, 0);
	assert_false(j.vm.blobs[1].fresh);
	assert_int_equal(look_up(&j, NULL, 0), 0);
	assert_int_equal(j.vm.nr_blobs, 3);
	/* Behind all, and over two that are gone. */
	put_blob(40, 1, "nmethod", &method_get, 9);
	put_blob(2, 6, "nmethod", &method_get, 10);
	((struct blob *)(memory + 2 * SEGMENT + 16))->begin = memory + 3 * SEGMENT;
	pcs[0] = (uintptr_t)memory + 41 * SEGMENT - 1;
	pcs[1] = (uintptr_t)memory + 4 * SEGMENT;
	assert_int_equal(look_up(&j, pcs, 2), 0);
	assert_int_equal(j.vm.nr_new, 2);
	assert_int_equal(j.vm.nr_blobs, 3);
	assert_int_equal(j.vm.blobs[0].compile_id, 10);
	assert_int_equal(j.vm.blobs[1].kind, JVM_READ_INTERPRETER);
	assert_int_equal(j.vm.blobs[2].compile_id, 9);
	/* A map that leads out of itself. */
	segmap[0] = 1;
	pcs[0] = (uintptr_t)memory;
	assert_int_equal(look_up(&j, pcs, 1), 0);
	assert_int_equal(j.vm.nr_new, 0);
	jvm_fini(&j);
}

/* Optimised code has no descriptions in its loops, unless the JVM says so. */
TEST(test_blind)
{
	const char *missing;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	put_blob(2, 3, "nmethod", &method_get, 7)->level = 4;
	put_blob(8, 2, "nmethod", &method_put, 8)->level = 3;
	put_blob(20, 2, "native nmethod", &method_put, 9)->level = 4;
	assert_int_equal(scan(&j), 0);
	assert_true(j.vm.blobs[0].blind);
	assert_false(j.vm.blobs[1].blind);
	assert_false(j.vm.blobs[2].blind);
	j.vm.polls = true;
	assert_int_equal(scan(&j), 0);
	assert_false(j.vm.blobs[0].blind);
	/* The version. */
	assert_false(jvm_read_is_untried(&j.vm.vm, &j.remote));
	vm_major = 11;
	assert_false(jvm_read_is_untried(&j.vm.vm, &j.remote));
	vm_major = 16;
	assert_true(jvm_read_is_untried(&j.vm.vm, &j.remote));
	vm_major = 27;
	assert_false(jvm_read_is_untried(&j.vm.vm, &j.remote));
	/* One that renames a field that each frame needs. */
	j.vm.vm.deopt_handler = UINT64_MAX;
	assert_true(jvm_read_is_untried(&j.vm.vm, &j.remote));
	vm_major = 17;
	/* The option. */
	use_loops = false;
	assert_false(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	use_loops = true;
	assert_true(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	/* Not in the table; a wild number; entries too small for their members. */
	flag_table[2].name = "UseLoops";
	assert_false(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	flag_table[2].name = "UseCountedLoopSafepoints";
	nr_flags = UINT64_MAX / 2;
	assert_false(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	nr_flags = ARRAY_SIZE(flag_table);
	j.vm.vm.flag_size = 12;
	assert_false(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	j.vm.vm.flag_size = sizeof(struct flag);
	flags = (void *)16;
	assert_false(jvm_read_polls_loops(&j.vm.vm, &j.remote));
	flags = flag_table;
	jvm_fini(&j);
}

TEST(test_method)
{
	char name[JVM_READ_NAME_MAX];
	const char *missing;
	uint32_t size;
	uint64_t code;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	assert_int_equal(jvm_read_method(&j.vm, &j.remote, (uintptr_t)&method_get, name, &code,
					 &size),
			 0);
	assert_string_equal(name, "pkg.Class.get");
	assert_int_equal(code, (uintptr_t)const_get.codes);
	assert_int_equal(size, 12);
	assert_int_equal(jvm_read_method(&j.vm, &j.remote, 0, name, &code, &size), -EBADMSG);
	assert_int_equal(jvm_read_method(&j.vm, &j.remote, (uintptr_t)&method_get + 1, name, &code,
					 &size),
			 -EBADMSG);
	assert_int_equal(jvm_read_method(&j.vm, &j.remote, 4096, name, &code, &size), -EFAULT);
	class_name.length = 0;
	assert_int_equal(jvm_read_method(&j.vm, &j.remote, (uintptr_t)&method_get, name, &code,
					 &size),
			 -EBADMSG);
	/* A symbol longer than any name is cut. */
	class_name.length = 65535;
	jvm_read_method(&j.vm, &j.remote, (uintptr_t)&method_get, name, &code, &size);
	assert_true(strlen(name) < sizeof(name));
	jvm_fini(&j);
}

/* Numbers of a hostile process cost an error, never memory or time without bound. */
TEST(test_hostile)
{
	const char *missing;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	heap_array.len = 1 << 30;
	assert_int_equal(scan(&j), -EBADMSG);
	heap_array.len = 1;
	code_heap.log2 = 63;
	assert_int_equal(scan(&j), -EBADMSG);
	code_heap.log2 = 7;
	code_heap.memory.high = (char *)((uintptr_t)memory - 1);
	assert_int_equal(scan(&j), -EBADMSG);
	code_heap.memory.high = (char *)((uintptr_t)memory + (1ULL << 46));
	assert_int_equal(scan(&j), -EBADMSG);
	code_heap.memory.high = memory + sizeof(memory);
	/* Blocks everywhere, without blobs in them; one with code before it, one that overlaps.
	 */
	memset(segmap, 0, sizeof(segmap));
	memset(memory, 0, sizeof(memory));
	for (uint32_t i = 0; i < NR_SEGMENTS; i++)
		((struct block *)(memory + i * SEGMENT))->used = true;
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 0);
	put_blob(4, 1, "nmethod", NULL, 1)->begin = memory;
	put_blob(6, 1, "nmethod", (void *)3, 1);
	put_blob(7, 1, "Interpreter", NULL, 0)->begin -= SEGMENT - 8;
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 1);
	assert_null(j.vm.blobs[0].name);
	/* The number of reads is bounded. */
	j.remote.nr_reads_max = j.remote.nr_reads + 3;
	assert_int_equal(scan(&j), -E2BIG);
	assert_int_equal(j.vm.nr_blobs, 1);
	jvm_fini(&j);
}

#define MANY 65536U

/* Bytes have a limit, not only numbers: a process may have long names. */
TEST(test_memory)
{
	static struct {
		uint16_t length;
		char body[254];
	} name = { .length = 254 };
	char *blocks = aligned_alloc(SEGMENT, MANY * SEGMENT);
	uint8_t *starts = calloc(MANY, 1);
	const struct heap before = code_heap;
	const char *missing;
	struct jvm j;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	memset(name.body, 'x', sizeof(name.body));
	klass.name = pool.entries[1] = (struct symbol *)&name;
	for (uint32_t i = 0; i < MANY; i++) {
		char *block = memcpy(blocks + (size_t)i * SEGMENT, memory, SEGMENT);

		*(struct block *)block = (struct block){ 1, true };
		*(struct blob *)(block + 16) = (struct blob){ .name = "nmethod",
							      .frame_size = 4,
							      .begin = block + SEGMENT - 8,
							      .end = block + SEGMENT,
							      .method = &method_get };
	}
	code_heap.memory = (struct space){ blocks, blocks + MANY / 2 * SEGMENT };
	code_heap.segmap = (struct space){ (char *)starts, (char *)starts + MANY };
	j.remote.nr_reads_max = UINT32_MAX;
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, MANY / 2);
	assert_in_range(j.vm.memory, MANY / 2 * 500, JVM_READ_MEMORY_MAX);
	code_heap.memory.high = blocks + MANY * SEGMENT;
	assert_int_equal(scan(&j), -E2BIG);
	/* Also one at a time, as code is sampled. */
	j.vm.memory = JVM_READ_MEMORY_MAX;
	assert_int_equal(look_up(&j, &(uint64_t){ (uintptr_t)blocks + MANY * SEGMENT - 4 }, 1),
			 -E2BIG);
	code_heap = before;
	klass.name = &class_name;
	pool.entries[1] = &get;
	jvm_fini(&j);
	free(blocks);
	free(starts);
}

TEST(test_chain)
{
	/* Lines of put(): bci 0 is line 40, bci 3 is line 42, bci 4 (escaped) is line 1042. */
	static struct jvm_read_frame frames[JVM_READ_FRAMES_MAX];
	bool exact;
	uint8_t scopes[64], *table = const_put.codes + const_put.code_size;
	const char *missing;
	struct blob *b;
	bool current[2];
	struct jvm j;

	memcpy(table, (uint8_t[]){ 0xff, 0, 80, 3 << 3 | 2, 0xff, 2, 0xc0 + 16, 28, 0 }, 9);
	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	b = put_inlined(scopes, sizeof(scopes));
	assert_int_equal(scan(&j), 0);
	/* A call that returns to a PcDesc belongs to it, and the instruction there to the next one.
	 */
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 16, frames, &exact),
			 2);
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 15, frames, &exact),
			 1);
	assert_string_equal(frames[0].name, "pkg.Class.get");
	assert_string_equal(frames[0].file, "Class.java");
	assert_int_equal(frames[0].bci, 7);
	assert_int_equal(frames[0].line, 0); /* without a table */
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 17, frames, &exact),
			 2);
	assert_string_equal(frames[0].name, "pkg.Class.put");
	assert_int_equal(frames[0].bci, 4);
	assert_int_equal(frames[0].line, 1042);
	assert_string_equal(frames[1].name, "pkg.Class.get");
	/* Exact are described calls, not the instructions before them. */
	assert_false(exact);
	jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 31, frames, &exact);
	assert_true(exact);
	jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 15, frames, &exact);
	assert_true(exact);
	jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 16, frames, &exact);
	assert_false(exact);
	/* Other code is there by now. */
	assert_int_equal(jvm_read_test_current(&j.vm, &j.remote,
					       (uint64_t[]){ (uintptr_t)b->begin + 17, 4096 }, 2,
					       current),
			 0);
	assert_true(current[0]);
	assert_false(current[1]);
	b->compile_id++;
	assert_int_equal(jvm_read_test_current(&j.vm, &j.remote,
					       (uint64_t[]){ (uintptr_t)b->begin + 17 }, 1,
					       current),
			 0);
	assert_false(current[0]);
	b->compile_id--;
	/* Behind all calls: the sentinel; right behind the last one: that. */
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 40, frames, &exact),
			 0);
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 32, frames, &exact),
			 2);
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, 4096, frames, &exact), 0);
	/* A cycle of scopes ends; a chain of another method is refused. */
	scopes[8] = 8;
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 20, frames, &exact),
			 0);
	scopes[8] = 1;
	scopes[9] = 0;
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 20, frames, &exact),
			 -EBADMSG);
	b->dependencies = -5;
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 20, frames, &exact),
			 -EBADMSG);
	/* Numbers of newer JVMs leave out 0. */
	vm_major = 21;
	b = put_inlined(scopes, sizeof(scopes));
	for (size_t i = 0; i < sizeof(scopes); i++)
		scopes[i]++;
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 15, frames, &exact),
			 1);
	assert_int_equal(frames[0].bci, 7);
	vm_major = 17;
	jvm_fini(&j);
}

/*
 * A line table that is read in parts: one number has a byte 0 in JVMs up to 18, and pairs of
 * numbers are on the border of two parts.
 */
TEST(test_long_lines)
{
	static struct jvm_read_frame frames[JVM_READ_FRAMES_MAX];
	uint8_t scopes[64], *at = const_put.codes + 1000;
	const uint16_t code_size = const_put.code_size;
	const char *missing;
	struct blob *b;
	struct jvm j;
	bool exact;

	jvm_init(&j);
	assert_int_equal(read_tables(&j, &missing), 0);
	b = put_inlined(scopes, sizeof(scopes));
	const_put.code_size = 1000;
	/* bci 0 is line 40, each one after it is 3 lines further. */
	memcpy(at, (uint8_t[]){ 0xff, 0, 80 }, 3);
	at += 3;
	for (uint32_t bci = 1; bci < 180; bci++, at += 3)
		memcpy(at, (uint8_t[]){ 0xff, 2, 6 }, 3);
	*at = 0;
	assert_int_equal(scan(&j), 0);
	for (uint8_t bci = 0; bci < 190; bci++) {
		scopes[10] = bci + 1;
		assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b->begin + 17, frames,
						&exact),
				 2);
		assert_int_equal(frames[0].bci, bci);
		assert_int_equal(frames[0].line, 40 + 3 * MIN(bci, 179));
	}
	const_put.code_size = code_size;
	jvm_fini(&j);
}

/* An nmethod of get(), with put() inlined at one place, in the layout of JDK 25. */
static struct blob25 *put_inlined25(uint8_t *immutable, uint64_t *mutable)
{
	static const uint8_t put_in_get[] = { 1 + 1, 2 + 1, 5 + 1 }, get_alone[] = { 1, 2, 9 };
	static const int32_t pcs[][4] = { { -1, 0, 0, 0 }, { 32, 8, 0, 0 }, { 1 << 20, 0, 0, 0 } };
	struct blob25 *b = (struct blob25 *)(memory + 2 * SEGMENT + 16);

	*(struct block *)(memory + 2 * SEGMENT) = (struct block){ 3, true };
	memcpy(immutable + 16, pcs, sizeof(pcs));
	memcpy(immutable + 16 + sizeof(pcs) + 1, get_alone, sizeof(get_alone));
	memcpy(immutable + 16 + sizeof(pcs) + 8, put_in_get, sizeof(put_in_get));
	mutable[1] = (uintptr_t)&method_get;
	mutable[2] = (uintptr_t)&method_put;
	*b = (struct blob25){ .mutable_data = (uint8_t *)mutable,
			      .name = "nmethod",
			      .size = 3 * SEGMENT - 16,
			      .relocation_size = 8,
			      .code = 200,
			      .data = 300,
			      .frame_size = 4,
			      .complete = -1,
			      .method = &method_get,
			      .immutable_data = immutable,
			      .deopt = 280,
			      .pcs = 16,
			      .scopes = 16 + (int)sizeof(pcs),
			      .compile_id = 9 };
	for (uint8_t k = 0; k < 3; k++)
		segmap[2 + k] = k;
	return b;
}

static struct VMStructEntry *field25(const char *name)
{
	struct VMStructEntry *e = structs25;

	while (strcmp(e->field, name) != 0)
		e++;
	return e;
}

TEST(test_jdk25)
{
	static struct jvm_read_frame frames[JVM_READ_FRAMES_MAX];
	bool exact;
	static uint64_t mutable[3];
	static uint8_t immutable[256];
	const char *missing = NULL;
	struct blob25 *b;
	struct jvm j;

	jvm_init(&j);
	vm_major = 25;
	gHotSpotVMStructs = structs25;
	assert_int_equal(read_tables(&j, &missing), 0);
	b = put_inlined25(immutable, mutable);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.nr_blobs, 1);
	assert_string_equal(j.vm.blobs[0].name, "pkg.Class.get");
	assert_int_equal(j.vm.blobs[0].start, (uintptr_t)b + 200);
	assert_int_equal(j.vm.blobs[0].end, (uintptr_t)b + 300);
	assert_int_equal(j.vm.blobs[0].deopt, (uintptr_t)b + 280);
	assert_int_equal(j.vm.blobs[0].complete, UINT32_MAX);
	assert_int_equal(jvm_read_chain(&j.vm, &j.remote, (uintptr_t)b + 200 + 20, frames, &exact),
			 2);
	assert_string_equal(frames[0].name, "pkg.Class.put");
	assert_int_equal(frames[0].bci, 4);
	assert_string_equal(frames[1].name, "pkg.Class.get");
	assert_int_equal(frames[1].bci, 7);
	/* JDK 26. */
	field25("_deopt_handler_offset")->field = "_deopt_handler_entry_offset";
	assert_int_equal(read_tables(&j, &missing), 0);
	assert_int_equal(scan(&j), 0);
	assert_int_equal(j.vm.blobs[0].deopt, (uintptr_t)b + 280);
	field25("_deopt_handler_entry_offset")->field = "_deopt_handler_offset";
	/* Where code begins is in neither way. */
	structs25[12].field = "_code_start";
	assert_int_equal(read_tables(&j, &missing), -ENODATA);
	assert_string_equal(missing, "_code_begin");
	structs25[12].field = "_code_offset";
	gHotSpotVMStructs = structs;
	vm_major = 17;
	jvm_fini(&j);
}

TEST(test_no_jvm)
{
	struct remote remote = { .pid = getpid() };
	struct jvm_read_tables tables;

	assert_int_equal(jvm_read_find_tables(&tables, &remote), -ENOENT);
}

/* A string that ends at the last byte before memory that is not there. */
TEST(test_strings)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct remote remote = { .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) };
	char text[64];

	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page + 4096, 4096), 0);
	memcpy(page + 4096 - 5, "last", 5);
	assert_int_equal(remote_read_string(&remote, (uintptr_t)page + 4096 - 5, text,
					    sizeof(text)),
			 4);
	assert_string_equal(text, "last");
	page[4095] = 'x';
	assert_int_equal(remote_read_string(&remote, (uintptr_t)page + 4096 - 5, text,
					    sizeof(text)),
			 -EFAULT);
	assert_int_equal(remote_read_string(&remote, (uintptr_t)page + 4096 - 5, text, 4), 3);
	assert_string_equal(text, "las");
	close(remote.fd);
	munmap(page, 4096);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
