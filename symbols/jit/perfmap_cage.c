// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text of a perf map to a worker, its table back.
 *
 * Runs on: a helper; serve() in the worker.
 */
#include "symbols/jit/perfmap_cage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/cage/cage.h"

#define TIMEOUT_NS 15000000000ULL /* 64 MiB of text on a busy machine */
#define MEMORY	   (1536ULL << 20)

int perfmap_cage_parse(struct perfmap **out, int fd, size_t size)
{
	const int fds[CAGE_FDS_MAX] = { fd, -1 };
	uint64_t request = size;
	struct cage_answer a;
	int rc = cage_call(&perfmap_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);

	if (rc)
		return rc;
	rc = perfmap_adopt(out, &a);
	if (rc)
		cage_answer_free(&a);
	return rc;
}

static int serve(struct cage_call *c)
{
	struct perfmap *map;
	uint64_t size;
	void *text = NULL;
	int rc;

	if (c->size != sizeof(size) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&size, c->request, sizeof(size));
	if (size > PERFMAP_SIZE_MAX)
		return -E2BIG;
	if (size) /* a copy: it cannot become shorter */
		text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, c->fds[0], 0);
	if (text == MAP_FAILED)
		return -ENOMEM;
	rc = perfmap_parse(&map, text, size);
	if (size)
		munmap(text, size);
	if (rc)
		return rc;
	perfmap_put(map, &c->reply);
	perfmap_free(map);
	return 0;
}

const struct cage_reader perfmap_reader = {
	.kind = CAGE_PERFMAP,
	.name = "proftop-perfmap",
	.serve = serve,
	.memory_max = MEMORY,
	.reply_max = PERFMAP_FLAT_MAX,
	.map_reply = true,
};
