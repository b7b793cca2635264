/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording from bytes in memory. For one test program each. */
#ifndef TESTS_SAMPLER_PERFDATA_FROM_MEMORY_H
#define TESTS_SAMPLER_PERFDATA_FROM_MEMORY_H

#include "sampler/perfdata/perfdata.c"

/* As perfdata_open_step(), of a copy of @bytes. */
static int perfdata_from_memory(struct perfdata **out, const void *bytes, size_t size,
				struct err *e)
{
	struct perfdata *pd = new_perfdata();

	if (e)
		e->text[0] = '\0';
	return finish(out, pd, "recording", perfdata_bytes_copy(&pd->bytes, bytes, size), e);
}

#endif
