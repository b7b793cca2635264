// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print the samples of a recording one by one, in the layout of
 * perf script(1), so that the two can be compared line by line:
 *
 *   comm pid/tid [cpu] seconds: period event:      cpu, seconds: if recorded
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
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (64u << 10)
#define COMM_MAX    128

/* A frame as text: a recording has millions of frames, but few different ones. */
struct line {
	char *text;	  /* NULL: not made yet */
	bool has_address; /* else the address differs from sample to sample, and goes in front */
	size_t size;
};

struct script {
	FILE *out;
	struct line *lines; /* by frame id */
	uint32_t nr_lines;
};

static int make_line(struct line *line, const struct sampler_frame *f)
{
	char address[24] = "", offset[24] = "";
	int size;

	line->has_address = f->file_offset != UINT64_MAX;
	if (line->has_address)
		snprintf(address, sizeof(address), "\t%16" PRIx64, f->file_offset);
	if (f->offset != UINT64_MAX)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, f->offset);
	size = asprintf(&line->text, "%s %.*s%s (%.*s)\n", address, (int)f->name.size, f->name.str,
			offset, (int)f->module.size, f->module.str);
	if (size < 0) {
		line->text = NULL;
		return -ENOMEM;
	}
	line->size = (size_t)size;
	return 0;
}

static void grow_lines(struct script *s, uint32_t id)
{
	uint32_t nr = MAX(2 * s->nr_lines, id + 1024);

	s->lines = xrealloc_array(s->lines, nr, sizeof(*s->lines));
	memset(s->lines + s->nr_lines, 0, (nr - s->nr_lines) * sizeof(*s->lines));
	s->nr_lines = nr;
}

static int put_frame(struct script *s, const struct sampler_sample *sample, uint32_t i)
{
	uint32_t id = sample->frames[i];
	char address[17] = "\t";
	struct line *line;

	if (id >= s->nr_lines)
		grow_lines(s, id);
	line = &s->lines[id];
	if (!line->text && make_line(line, &sample->known[id]))
		return -ENOMEM;
	if (!line->has_address) {
		text_put_hex(address + 1, sample->ips[i], 16);
		fwrite_unlocked(address, 1, sizeof(address), s->out);
	}
	fwrite_unlocked(line->text, 1, line->size, s->out);
	return 0;
}

static int print_sample(void *arg, const struct sampler_sample *s)
{
	struct script *script = arg;
	FILE *out = script->out;

	fprintf(out, "%-16.*s %d/%d ", (int)MIN(s->comm.size, COMM_MAX), s->comm.str, s->pid,
		s->tid);
	if (s->cpu != UINT32_MAX)
		fprintf(out, "[%03u] ", s->cpu);
	if (s->time_ns)
		fprintf(out, "%5" PRIu64 ".%06u: ", s->time_ns / 1000000000,
			(unsigned int)(s->time_ns / 1000 % 1000000));
	fprintf(out, "%10" PRIu64 " %s: \n", s->period, s->event);
	for (uint32_t i = 0; i < s->nr_frames; i++)
		if (put_frame(script, s, i))
			return -ENOMEM;
	putc_unlocked('\n', out);
	return ferror_unlocked(out) ? -errno : 0;
}

int batch_script(struct sampler *sampler, FILE *out, struct err *e)
{
	struct script script = { .out = out };
	int code;

	setvbuf(out, NULL, _IOFBF, BUFFER_SIZE);
	code = sampler_each(sampler, print_sample, &script, e);
	if (fflush(out) && !code)
		code = -errno;
	for (uint32_t i = 0; i < script.nr_lines; i++)
		free(script.lines[i].text);
	free(script.lines);
	return code == -EPIPE ? 0 : code;
}
