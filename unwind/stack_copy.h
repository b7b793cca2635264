/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of a user stack that the kernel copied into a sample, from sp upwards. Any thread: the
 * bytes are borrowed from the sample. */
#ifndef UNWIND_STACK_COPY_H
#define UNWIND_STACK_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct stack_copy {
	uint64_t sp; /* address of the first byte */
	const uint8_t *bytes;
	uint64_t size; /* valid bytes */
	bool full;     /* the stack may continue beyond them */
};

/* The usual limit of a stack (RLIMIT_STACK). */
#define STACK_COPY_GAP_MAX (8u << 20)

/*
 * Return true if @addr may be in the same stack behind a gap: the kernel copies no page that was
 * never used. A thread of Ruby has 1 MiB of such pages below its first functions.
 */
static inline bool stack_copy_gap(const struct stack_copy *d, uint64_t addr)
{
	uint64_t end = d->sp + d->size;

	return !d->full && d->size && !(end & 4095) && addr - end < STACK_COPY_GAP_MAX;
}

/* Read the word at @addr; false outside the copy. */
static inline bool stack_copy_read(const struct stack_copy *d, uint64_t addr, uint64_t *value)
{
	uint64_t at = addr - d->sp;

	if (d->size < sizeof(*value) || at > d->size - sizeof(*value))
		return false;
	memcpy(value, d->bytes + at, sizeof(*value));
	return true;
}

static inline bool stack_copy_read32(const struct stack_copy *d, uint64_t addr, uint64_t *value)
{
	uint64_t at = addr - d->sp;
	uint32_t word;

	if (d->size < sizeof(word) || at > d->size - sizeof(word))
		return false;
	memcpy(&word, d->bytes + at, sizeof(word));
	*value = word;
	return true;
}

#endif
