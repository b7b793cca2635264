/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of the moments before and after a match of a trap, within a number and a size.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_SAVING_H
#define SAMPLER_SAVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

/* From the configuration; @dir NULL: matches are not saved. */
struct saving_config {
	const char *dir;
	uint32_t max_files;
	uint64_t max_bytes;
	size_t memory; /* of the records before a match */
};

struct saving {
	uint32_t nr;	/* files of this session */
	uint64_t bytes; /* in them */
};

/* Request a file of the records until @end_ns and 2 s more. Write a sentence to @text. */
void saving_begin(const struct saving *s, const struct saving_config *config, struct recorder *r,
		  uint64_t end_ns, char *text, size_t size);
/* Get the result of a request, once. True: a sentence is in @text. */
bool saving_check(struct saving *s, struct recorder *r, char *text, size_t size);

#endif
