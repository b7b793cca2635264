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

static int print_frame(FILE *out, const struct sampler_frame *f)
{
	uint64_t address = f->file_offset != UINT64_MAX ? f->file_offset : f->ip;
	int code = fprintf(out, "\t%16" PRIx64 " %s", address, f->name.str);

	if (code >= 0 && f->offset != UINT64_MAX)
		code = fprintf(out, "+0x%" PRIx64, f->offset);
	return code < 0 ? code : fprintf(out, " (%s)\n", f->module.str);
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
		code = print_frame(out, &s->frames[i]);
	if (code >= 0)
		code = fputc('\n', out);
	return code < 0 ? -errno : 0;
}

int batch_script(struct sampler *s, FILE *out, struct err *e)
{
	int code = sampler_each(s, print_sample, out, e);

	if (fflush(out) && !code)
		code = -errno;
	return code == -EPIPE ? 0 : code;
}
