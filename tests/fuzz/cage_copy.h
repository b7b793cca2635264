/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a call of the sandbox, in this process, without a memfd: to make one, write, read
 * and free it took a third of an input. The reader gets a block of their size, as from the memfd,
 * which tests/symbols tests. For targets that are linked with --wrap (Makefile).
 */
#ifndef TESTS_FUZZ_SANDBOX_COPY_H
#define TESTS_FUZZ_SANDBOX_COPY_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sandbox/sandbox.h"

int __wrap_sandbox_wrap(const void *bytes, size_t size);
int __wrap_sandbox_take(const struct sandbox_call *c, unsigned int i, size_t size, uint8_t **out);

/* Of the last call: each has one descriptor. */
static uint8_t sandbox_copy[4 << 20];
static size_t sandbox_copy_size;

int __wrap_sandbox_wrap(const void *bytes, size_t size)
{
	static int any = -1;

	if (any < 0)
		any = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (size > sizeof(sandbox_copy))
		return -ENOMEM;
	sandbox_copy_size = size;
	if (size)
		memcpy(sandbox_copy, bytes, size);
	/* The caller closes it. */
	return fcntl(any, F_DUPFD_CLOEXEC, 3);
}

int __wrap_sandbox_take(const struct sandbox_call *c, unsigned int i, size_t size, uint8_t **out)
{
	if (i || c->fds[0] < 0)
		abort();
	if (size > sandbox_copy_size)
		return -EIO;
	*out = malloc(size + 1);
	if (!*out)
		return -ENOMEM;
	memcpy(*out, sandbox_copy, size);
	(*out)[size] = '\0';
	return 0;
}

#endif
