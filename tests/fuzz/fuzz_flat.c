// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as an image out of the sandbox: refused, or no look-up leaves them. The bytes end where a
 * page without access begins. FUZZ: symbols
 */
#include "symbols/image/image_read.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/symbols/imagewalk.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/elf/elf.h"

#define ROOM (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile uint64_t sum;
	static uint8_t *room;
	static int file;
	struct sandbox_answer a = { .size = size, .mapped = true };
	struct image *image;

	if (!room) {
		room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		if (room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE))
			abort();
		/* With the bytes of frames that an image leaves out. */
		file = sandbox_file();
		if (file < 0 || pwrite(file, data, MIN(size, ROOM), ROOM / 2) < 0)
			abort();
	}
	if (size > ROOM || ftruncate(file, ROOM))
		return 0;
	/* Not a page: munmap(2) refuses it. */
	a.bytes = room + ROOM - ((size + 15) & ~15UL);
	memcpy(a.bytes, data, size);
	if (image_flat_take(&image, &a, 0, file, ROOM))
		return 0;
	/* Which file is mapped is not for the worker to say, nor how much. */
	if (image->names_in_file && image->names_in_file != ROOM)
		abort();
	sum = sum + image_walk(image);
	image_free(image);
	return 0;
}
