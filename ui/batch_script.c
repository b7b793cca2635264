// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The samples of a recording one by one, in the layout of perf script(1), so
 * that the two can be compared line by line:
 *
 *   comm pid/tid [cpu] seconds: period event:
 *   <tab>address function+0xoffset (object)      innermost frame first
 *   <empty line>
 *
 * The address of code in a file is its offset there, as perf prints it (5.16
 * and newer); elsewhere it is the address in memory.
 *
 * Runs on: the main thread.
 */
#include "ui/batch.h"

#include <errno.h>
#include <inttypes.h>

/* As "%*x" does, but ten times faster: there are millions of these lines. Returns its end. */
static char *put_hex(char *at, uint64_t value, int width)
{
	int digits = value ? (67 - __builtin_clzll(value)) / 4 : 1;

	for (; width > digits; width--)
		*at++ = ' ';
	for (int i = digits - 1; i >= 0; i--, value >>= 4)
		at[i] = "0123456789abcdef"[value & 15];
	return at + digits;
}

static void put(FILE *out, const char *p, size_t size)
{
	fwrite_unlocked(p, 1, size, out);
}

/* Errors stay in @out: asked for once a sample. */
static void print_frame(FILE *out, const struct sampler_frame *f)
{
	uint64_t address = f->file_offset != UINT64_MAX ? f->file_offset : f->ip;
	char text[32] = "\t", *end = put_hex(text + 1, address, 16);

	*end++ = ' ';
	put(out, text, (size_t)(end - text));
	put(out, f->name.str, f->name.size);
	if (f->offset != UINT64_MAX) {
		put(out, "+0x", 3);
		put(out, text, (size_t)(put_hex(text, f->offset, 0) - text));
	}
	put(out, " (", 2);
	put(out, f->module.str, f->module.size);
	put(out, ")\n", 2);
}

static int print_sample(void *arg, const struct sampler_sample *s)
{
	FILE *out = arg;
	int code = fprintf(out, "%-16s %d/%d [%03" PRIu32 "] %5" PRIu64 ".%06" PRIu64, s->comm.str,
			   (int)s->pid, (int)s->tid, s->cpu, s->time_ns / 1000000000,
			   s->time_ns / 1000 % 1000000);

	if (code >= 0)
		code = fprintf(out, ": %10" PRIu64 " %s: \n", s->period, s->event);

	for (uint32_t i = 0; i < s->nr_frames && code >= 0; i++)
		print_frame(out, &s->frames[i]);
	if (code >= 0)
		code = fputc('\n', out);
	return code < 0 || ferror_unlocked(out) ? -errno : 0;
}

int batch_script(struct sampler *s, FILE *out, struct err *e)
{
	int code = sampler_each(s, print_sample, out, e);

	if (fflush(out) && !code)
		code = -errno;
	return code == -EPIPE ? 0 : code;
}
