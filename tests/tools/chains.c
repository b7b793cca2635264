// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains FILE: the user stacks of a recording, a sample a line:
 *   COMM TID STOP function;function;...        innermost first
 * STOP is why the stack ends, with '_' for blanks; "guessed" if a frame is a guess.
 */
#include <stdio.h>
#include <string.h>

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"

static void put_word(const char *s)
{
	for (; *s; s++)
		putchar(*s == ' ' || *s == ';' ? '_' : *s);
}

static int print(void *ctx, const struct sampler_sample *s)
{
	put_word(s->comm.str);
	printf(" %d ", (int)s->tid);
	put_word(s->stop);
	putchar(' ');
	for (uint32_t i = s->nr_kernel; i < s->nr_frames; i++) {
		const struct sampler_frame *f = &s->known[s->frames[i]];

		if (i > s->nr_kernel)
			putchar(';');
		put_word(f->file_offset == UINT64_MAX ? "[anon]" : f->name.str);
	}
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	struct sampler_config config = { .stack_size = SAMPLER_STACK_SIZE_DEFAULT,
					 .tick_ns = 1000000000 };
	struct sampler *s;
	struct err e = { .text = "" };
	int rc;

	if (argc != 2)
		return 2;
	config.replay = argv[1];
	rc = sampler_new(&s, &config, &e);
	if (!rc) {
		rc = sampler_each(s, print, NULL, &e);
		sampler_free(s);
	}
	if (rc)
		fprintf(stderr, "chains: %s\n", e.text);
	return rc != 0;
}
