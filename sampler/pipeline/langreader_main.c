// SPDX-License-Identifier: GPL-2.0-or-later
/* A reader as a process: its ring, its share, then its loop. Runs on: that process. */
#include "sampler/pipeline/langreader_main.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/pipeline/langreader_loop.h"
#include "symbols/cage/cage_memory.h"

#define MEMORY_MAX (512ULL << 20) /* the functions that it knows, and scripts */

/* Map the ring of @fd to read. */
static bool map_ring(struct ring *r, int fd, uint64_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + size, PROT_READ, MAP_SHARED, fd, 0);

	*r = (struct ring){ .size = size };
	if (map == MAP_FAILED)
		return false;
	r->page = map;
	r->data = (uint8_t *)map + page;
	return true;
}

void langreader_process(const void *bytes, size_t size, const int fds[CAGE_MEMORY_FDS])
{
	struct langreader_loop *loop;
	struct langreader_start start;
	struct reader_share *share;
	struct ring ring;

	_Static_assert(sizeof(start) <= CAGE_MEMORY_START, "it is sent");
	if (size != sizeof(start))
		return;
	memcpy(&start, bytes, sizeof(start));
	if (!map_ring(&ring, fds[LANGREADER_DATA], start.ring_size))
		return;
	share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED,
		     fds[LANGREADER_SHARE], 0);
	if (share == MAP_FAILED ||
	    langreader_loop_new(&loop, &start, share, &ring, fds[LANGREADER_DATA],
				fds[LANGREADER_KICK], -1))
		return;
	langreader_loop_go_first(loop);
	if (!cage_memory_lock(MEMORY_MAX))
		langreader_loop_run(loop);
}
