// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the code cache and the methods of a made-up JVM: blobs are sorted and apart,
 * names and chains keep their bounds. FUZZ: symbols
 */
#include "symbols/java/jvm_read.c"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/process/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE	 0x8000U
#define HEAP	 0x400U	 /* struct of the heap */
#define SEGMAP	 0x800U	 /* of 64 segments */
#define CODE	 0x1000U /* the segments, of 128 bytes */
#define SEGMENTS 64U
#define METHOD	 0x4000U
#define TEXTS	 0x5000U

static uint8_t memory[SIZE] __attribute__((aligned(4096)));

static uint64_t address(uint32_t at)
{
	return (uint64_t)(uintptr_t)memory + at;
}

static void put(uint32_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/* The JVM's memory and no other: results do not depend on ours. */
static int read_made(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	uint64_t at = addr - address(0);

	if (at > SIZE || size > SIZE - at)
		return -EFAULT;
	memcpy(buf, memory + at, size);
	return 0;
}

/* Offsets of a JVM, as vmstructs_read() admits them. */
static struct vmstructs layout(bool jdk25)
{
	struct vmstructs v;

	memset(&v, 0xff, sizeof(v)); /* not there */
	v.heaps = address(0);
	v.array_len = 0;
	v.array_data = 8;
	v.heap_memory = 0;
	v.heap_segmap = 16;
	v.heap_log2 = 32;
	v.space_low = 0;
	v.space_high = 8;
	v.blob_name = 0;
	v.blob_size = 8;
	v.blob_complete = 12;
	v.complete_size = jdk25 ? 2 : 4;
	v.blob_frame_size = 16;
	v.nmethod_method = 40;
	v.nmethod_compile_id = 48;
	v.method_const = 0;
	v.const_pool = 0;
	v.const_code_size = 8;
	v.const_name = 10;
	v.pool_holder = 8;
	v.klass_name = 8;
	v.symbol_length = 0;
	v.symbol_body = 2;
	v.vm_major = address(64);
	v.call_return = address(72);
	v.scopes_pcs = 64;
	v.const_flags = 12;
	v.source_file = 4;
	v.block_used = 8;
	v.nmethod_state = 52;
	v.block_size = 16;
	v.const_method_size = 16;
	v.pool_size = 16;
	if (jdk25) {
		v.code_offset = 24;
		v.data_offset = 28;
		v.deopt_offset = 76;
		v.immutable_data = 56;
		v.scopes_data_offset = 68;
		v.mutable_data = 80;
		v.relocation_size = 72;
	} else {
		v.blob_begin = 24;
		v.blob_end = 32;
		v.deopt_handler = 80;
		v.scopes_data = 56;
		v.dependencies = 68;
		v.metadata = 72;
		v.metadata_size = 4;
	}
	return v;
}

/* The part of a blob that differs: descriptions are 260 bytes behind it. */
static void make_blob(uint32_t blob, bool jdk25)
{
	if (jdk25) {
		put(blob + 24, 100ULL | 228ULL << 32);
		put(blob + 56, address(blob));
		put(blob + 64, 260ULL | 340ULL << 32);
		put(blob + 72, 8);
		put(blob + 80, address(blob + 352));
	} else {
		put(blob + 24, address(blob + 100));
		put(blob + 32, address(blob + 228));
		put(blob + 56, address(blob + 340));
		put(blob + 64, 260ULL | 340ULL << 32);
		put(blob + 72, 360);
	}
}

/* PcDescs and a scope: of the method itself, up to the end of its code. */
static void make_scopes(uint32_t blob, bool jdk25)
{
	static const int32_t pcs[][4] = { { -1, 0, 0, 0 }, { 100, 1, 0, 0 }, { 1 << 20, 0, 0, 0 } };

	memcpy(memory + blob + 260, pcs, sizeof(pcs));
	memcpy(memory + blob + 341, jdk25 ? "\1\2\6" : "\0\1\5", 3);
	put(blob + 360, address(METHOD));
}

/* One heap with a compiled method, which begins at segment 2. */
static void make(bool jdk25)
{
	uint32_t blob = CODE + 2 * 128 + 16, constant = METHOD + 64, pool = METHOD + 512;

	memset(memory, 0, sizeof(memory));
	put(0, address(16));
	put(16, 1);
	put(24, address(40));
	put(40, address(HEAP));
	put(64, jdk25 ? 25 : 17);
	put(HEAP, address(CODE));
	put(HEAP + 8, address(CODE + SEGMENTS * 128));
	put(HEAP + 16, address(SEGMAP));
	put(HEAP + 24, address(SEGMAP + SEGMENTS));
	put(HEAP + 32, 7);
	memset(memory + SEGMAP, 0xff, SEGMENTS);
	for (uint8_t i = 0; i < 4; i++)
		memory[SEGMAP + 2 + i] = i;
	put(blob, address(TEXTS));
	memcpy(memory + TEXTS, "nmethod", 8);
	put(blob + 8, 4 * 128 - 16);
	put(blob + 16, 4);
	put(blob + 40, address(METHOD));
	put(blob + 48, 7);
	make_blob(blob, jdk25);
	make_scopes(blob, jdk25);
	memory[CODE + 2 * 128 + 8] = 1;
	put(METHOD, address(constant));
	put(constant, address(pool));
	put(constant + 8, 40 | 1 << 16);
	put(pool + 8, address(TEXTS + 64));
	put(pool + 24, address(TEXTS + 128));
	put(TEXTS + 72, address(TEXTS + 96));
	memcpy(memory + TEXTS + 96, "\3\0a/B", 5);
	memcpy(memory + TEXTS + 128, "\3\0get", 5);
}

/* Each 11 bytes: 2 of an offset, 1 of how, 8 to write there: a value, or a pointer into it. */
static void lay_over(const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11) {
		uint32_t at = (data[0] | (uint32_t)data[1] << 8) % (SIZE - 8);
		uint64_t value;

		memcpy(&value, data + 3, 8);
		if (data[2] & 1)
			value = address((uint32_t)(value % SIZE));
		memcpy(memory + at, &value, data[2] & 2 ? 2 : 8);
	}
}

static void t_check_blobs(const struct jvm_read *h)
{
	if (h->nr_blobs > JVM_READ_BLOBS_MAX)
		abort();
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		const struct jvm_read_blob *b = &h->blobs[i];

		if (b->start >= b->end || (i && b->start < b[-1].end) ||
		    (b->name && strlen(b->name) >= JVM_READ_NAME_MAX))
			abort();
	}
}

static void name_all(struct jvm_read *h, struct remote *r)
{
	for (uint32_t i = 0; i < h->nr_blobs; i++)
		jvm_read_name(h, r, i);
}

/* Look up code all over the heap, in an order that the input chooses. */
static void look_up(struct jvm_read *h, struct remote *r, uint8_t from)
{
	uint64_t pcs[8];

	for (uint32_t i = 0; i < ARRAY_SIZE(pcs); i++)
		pcs[i] = address(CODE + ((from + 37 * i) % SEGMENTS) * 128 + from % 128);
	jvm_read_look_up(h, r, pcs, ARRAY_SIZE(pcs));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct jvm_read_frame frames[JVM_READ_FRAMES_MAX];
	struct remote remote = { .read = read_made };
	bool exact, jdk25 = size && data[size - 1] & 1;
	struct jvm_read h = { .vm = layout(jdk25) };
	char name[JVM_READ_NAME_MAX];
	uint64_t code;
	uint32_t code_size;

	make(jdk25);
	for (int round = 0; round < 2; round++) {
		jvm_read_scan(&h, &remote);
		name_all(&h, &remote);
		/* Before anything is laid over it, the JVM is read in full. */
		if (!round &&
		    (h.nr_blobs != 1 || !h.blobs[0].name ||
		     jvm_read_chain(&h, &remote, h.blobs[0].start + 50, frames, &exact) != 1))
			abort();
		t_check_blobs(&h);
		look_up(&h, &remote, size ? data[0] : 0);
		name_all(&h, &remote);
		t_check_blobs(&h);
		for (uint32_t i = 0; i < MIN(h.nr_blobs, 4); i++) {
			uint64_t pc = h.blobs[i].start + (size ? data[0] : 0);
			int nr = jvm_read_chain(&h, &remote, pc, frames, &exact);

			if (nr > (int)JVM_READ_FRAMES_MAX)
				abort();
			for (int k = 0; k < nr; k++)
				if (strlen(frames[k].name) >= JVM_READ_NAME_MAX ||
				    strlen(frames[k].file) >= sizeof(frames[k].file))
					abort();
		}
		if (!jvm_read_method(&h, &remote, address(METHOD), name, &code, &code_size) &&
		    strlen(name) >= JVM_READ_NAME_MAX)
			abort();
		lay_over(data, size);
	}
	jvm_read_close(&h);
	return 0;
}
