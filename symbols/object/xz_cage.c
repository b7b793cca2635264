// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compressed bytes to a worker, in a memfd, and back.
 *
 * Runs on: a helper; serve() in the worker.
 */
#include "symbols/object/xz_cage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cage/cage.h"
#include "symbols/object/xz.h"

#define TIMEOUT_NS 8000000000ULL

int xz_cage_decode(const void *in, size_t in_size, void **out, size_t *out_size)
{
	int fds[CAGE_FDS_MAX] = { cage_wrap(in, in_size), -1 };
	uint64_t size = in_size;
	struct cage_answer a;
	int rc;

	if (fds[0] < 0)
		return fds[0];
	rc = cage_call(&xz_cage_reader, &size, sizeof(size), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (rc)
		return rc;
	*out = a.bytes;
	*out_size = a.size;
	return 0;
}

static int serve(struct cage_call *c)
{
	uint64_t size;
	uint8_t *in;
	void *out;
	int rc;

	if (c->size != sizeof(size) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&size, c->request, sizeof(size));
	if (size > XZ_MEMORY_MAX)
		return -EFBIG;
	rc = cage_take(c, 0, size, &in);
	if (rc)
		return rc;
	rc = xz_decode(in, size, &out, &c->reply.size);
	free(in);
	if (rc)
		return rc;
	free(c->reply.bytes); /* the buffer of the calls before */
	c->reply.bytes = out;
	c->reply.max = c->reply.size;
	return 0;
}

_Static_assert(XZ_OUTPUT_MAX <= CAGE_REPLY_MAX, "the output fits into a reply");

const struct cage_reader xz_cage_reader = {
	.kind = CAGE_XZ,
	.name = "proftop-xz",
	.serve = serve,
	.memory_max = 4ULL * XZ_MEMORY_MAX,
};
