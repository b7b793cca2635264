// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print the samples of a recording one by one, in the layout of
 * perf script(1), so that the two can be compared line by line:
 *
 *   comm pid/tid [cpu] seconds: period event:
 *   <tab>address function+0xoffset (object)      innermost frame first
 *   <empty line>
 *
 * The address of code in a file is its file offset, as perf 5.16 and newer
 * print it; elsewhere it is the address in memory.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BUFFER_SIZE (64u << 10)
#define COMM_MAX    128

static void put(FILE *out, const char *start, const char *end)
{
	fwrite_unlocked(start, 1, (size_t)(end - start), out);
}

static void put_text(FILE *out, struct safe_text text)
{
	fwrite_unlocked(text.str, 1, text.size, out);
}

/* Print the line of a frame. There are millions of them: no fprintf() here. */
static void put_frame(FILE *out, const struct sampler_frame *f, uint64_t ip)
{
	char piece[32], *at = piece;

	*at++ = '\t';
	at = text_put_hex(at, f->file_offset != UINT64_MAX ? f->file_offset : ip, 16);
	*at++ = ' ';
	put(out, piece, at);
	put_text(out, f->name);
	at = piece;
	if (f->offset != UINT64_MAX)
		at = text_put_hex(mempcpy(at, "+0x", 3), f->offset, 0);
	at = mempcpy(at, " (", 2);
	put(out, piece, at);
	put_text(out, f->module);
	putc_unlocked(')', out);
	putc_unlocked('\n', out);
}

static int print_sample(void *arg, const struct sampler_sample *s)
{
	FILE *out = arg;

	fprintf(out, "%-16.*s %d/%d [%03u] %5" PRIu64 ".%06u: %10" PRIu64 " %s: \n",
		(int)MIN(s->comm.size, COMM_MAX), s->comm.str, s->pid, s->tid, s->cpu,
		s->time_ns / 1000000000, (unsigned int)(s->time_ns / 1000 % 1000000), s->period,
		s->event);
	for (uint32_t i = 0; i < s->nr_frames; i++)
		put_frame(out, &s->known[s->frames[i]], s->ips[i]);
	putc_unlocked('\n', out);
	return ferror_unlocked(out) ? -errno : 0;
}

int batch_script(struct sampler *sampler, FILE *out, struct err *e)
{
	int code;

	setvbuf(out, NULL, _IOFBF, BUFFER_SIZE);
	code = sampler_each(sampler, print_sample, out, e);

	if (fflush(out) && !code)
		code = -errno;
	return code == -EPIPE ? 0 : code;
}
