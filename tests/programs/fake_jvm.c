// SPDX-License-Identifier: GPL-2.0-or-later
/* BUILD: -rdynamic */
/*
 * A fake JVM, under the file name libjvm.so, that runs code in anonymous memory. KIND:
 * wild: a table of structures without end, with names and offsets that make no sense;
 * loop: a code cache with one cycle of pointers as array, heaps and blobs;
 * many: a code cache with 1,000,000 blobs.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../makers/jvm_tables.h"

#define BLOBS	1000000UL
#define SEGMENT 64UL

struct block {
	uint64_t used; /* the header of a block */
	struct {
		const char *name;
		char *begin, *end;
		int complete, frame_size;
		void *method;
		int compile_id;
	} blob;
};

static struct heap heap;
static struct heap *heaps[8];
static struct array array = { 1, heaps };
static struct array *code_cache = &array;

static struct VMStructEntry structs[] = {
	{ "CodeCache", "_heaps", "", 1, 0, &code_cache },
	CODE_HEAP_MEMBERS,
	{ "CodeBlob", "_name", "", 0, 0, NULL },
	{ "CodeBlob", "_size", "", 0, 24, NULL },
	{ "CodeBlob", "_code_begin", "", 0, 8, NULL },
	{ "CodeBlob", "_code_end", "", 0, 16, NULL },
	{ "CodeBlob", "_frame_complete_offset", "int", 0, 24, NULL },
	{ "CodeBlob", "_frame_size", "int", 0, 28, NULL },
	{ "nmethod", "_method", "", 0, 32, NULL },
	{ "nmethod", "_compile_id", "int", 0, 40, NULL },
	{ "Method", "_constMethod", "", 0, 0, NULL },
	{ "ConstMethod", "_constants", "", 0, 0, NULL },
	{ "ConstMethod", "_code_size", "", 0, 8, NULL },
	{ "ConstMethod", "_name_index", "", 0, 10, NULL },
	{ "ConstantPool", "_pool_holder", "", 0, 0, NULL },
	{ "Klass", "_name", "", 0, 0, NULL },
	{ "Symbol", "_length", "", 0, 0, NULL },
	{ "Symbol", "_body", "", 0, 2, NULL },
	{ NULL, NULL, NULL, 0, 0, NULL },
};
static struct VMTypeEntry types[] = {
	{ "HeapBlock", 8 }, { "ConstMethod", 16 }, { "ConstantPool", 8 }, { NULL, 0 }
};

void *gHotSpotVMStructs = structs;
void *gHotSpotVMTypes = types;
static char *map(size_t size, int prot)
{
	char *at = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void make_many(void)
{
	static char klass[64];
	size_t size = BLOBS * SEGMENT;
	char *cache = map(size, PROT_READ | PROT_WRITE), *segmap = map(BLOBS, PROT_READ);

	if (!cache || !segmap)
		return;
	heaps[0] = &heap;
	heap = (struct heap){ { cache, cache + size }, { segmap, segmap + BLOBS }, 6 };
	for (size_t i = 0; i < BLOBS; i++) {
		struct block *b = (struct block *)(cache + i * SEGMENT);
		char *blob = (char *)&b->blob;

		b->used = 1;
		b->blob.name = "nmethod";
		b->blob.begin = blob + 44;
		b->blob.end = blob + 52;
		b->blob.frame_size = 4;
		b->blob.method = klass;
		b->blob.compile_id = (int)i;
	}
}

static void make_loop(void)
{
	static void *cycle[64];

	for (size_t i = 0; i < 64; i++)
		cycle[i] = cycle;
	for (size_t i = 0; i < 8; i++)
		heaps[i] = (struct heap *)cycle;
	array.len = 8;
}

static void make_wild(void)
{
	size_t size = 64UL << 20;
	struct VMStructEntry *table = (struct VMStructEntry *)map(size, PROT_READ | PROT_WRITE);
	static char endless[4096];

	memset(endless, 'x', sizeof(endless));
	for (size_t i = 0; table && i < size / sizeof(*table); i++)
		table[i] = (struct VMStructEntry){
			i % 2 ? "CodeCache" : endless, i % 3 ? "_heaps" : endless,	endless, 1,
			i * 0x9e3779b97f4a7c15,	       (void *)(i * 0x9e3779b97f4a7c15)
		};
	gHotSpotVMStructs = table;
}

int main(int argc, char **argv)
{
	/* mov ecx, 10000000; loop: dec ecx; jnz loop; ret */
	static const uint8_t code[] = { 0xb9, 0x80, 0x96, 0x98, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	void *run = map(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	time_t end = time(NULL) + 300;

	if (!run || argc < 2)
		return 77;
	if (!strcmp(argv[1], "many"))
		make_many();
	else if (!strcmp(argv[1], "loop"))
		make_loop();
	else
		make_wild();
	memcpy(run, code, sizeof(code));
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		((void (*)(void))run)();
	return 0;
}
