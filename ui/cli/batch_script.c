// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print the samples of a recording one by one, in the layout of
 * perf script(1), so that the two can be compared line by line:
 *
 *   comm pid/tid [cpu] seconds: period event:      cpu, seconds: if recorded
 *   <tab>address function+0xoffset (object)      innermost frame first
 *   <branches>                                   with brstack or brstacksym
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
#include <linux/perf_event.h>
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

/* What most samples in a row have in common, as text; made again when a field changes. */
struct head {
	char comm[COMM_MAX];
	size_t comm_size;
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t second, period;
	const char *event;
	char *before, *after; /* the microseconds; NULL: not made yet */
	size_t before_size, after_size;
};

struct script {
	FILE *out;
	struct head head;
	uint64_t fields;
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

/* UINT64_MAX: the time was not recorded. */
static uint64_t second_of(const struct sampler_sample *s)
{
	return s->time_ns ? s->time_ns / 1000000000 : UINT64_MAX;
}

static bool head_fits(const struct head *h, const struct sampler_sample *s)
{
	return h->before && h->pid == s->pid && h->tid == s->tid && h->cpu == s->cpu &&
	       h->second == second_of(s) && h->period == s->period && h->event == s->event &&
	       h->comm_size == MIN(s->comm.size, COMM_MAX) &&
	       !memcmp(h->comm, s->comm.str, h->comm_size);
}

static void free_head(struct head *h)
{
	free(h->before);
	free(h->after);
	*h = (struct head){ 0 };
}

static int make_head(struct head *h, const struct sampler_sample *s)
{
	char cpu[16] = "", second[24] = "";
	int before, after;

	free_head(h);
	h->pid = s->pid;
	h->tid = s->tid;
	h->cpu = s->cpu;
	h->second = second_of(s);
	h->period = s->period;
	h->event = s->event;
	h->comm_size = MIN(s->comm.size, COMM_MAX);
	memcpy(h->comm, s->comm.str, h->comm_size);
	if (s->cpu != UINT32_MAX)
		snprintf(cpu, sizeof(cpu), "[%03u] ", s->cpu);
	if (s->time_ns)
		snprintf(second, sizeof(second), "%5" PRIu64 ".", h->second);
	before = asprintf(&h->before, "%-16.*s %d/%d %s%s", (int)h->comm_size, h->comm, s->pid,
			  s->tid, cpu, second);
	if (before < 0)
		h->before = NULL;
	after = asprintf(&h->after, "%s%10" PRIu64 " %s: ", s->time_ns ? ": " : "", s->period,
			 s->event);
	if (after < 0)
		h->after = NULL;
	if (before < 0 || after < 0)
		return -ENOMEM;
	h->before_size = (size_t)before;
	h->after_size = (size_t)after;
	return 0;
}

static int put_head(struct script *script, const struct sampler_sample *s)
{
	struct head *h = &script->head;
	uint32_t us = (uint32_t)(s->time_ns / 1000 % 1000000);
	char digits[6];

	if (!head_fits(h, s) && make_head(h, s))
		return -ENOMEM;
	fwrite_unlocked(h->before, 1, h->before_size, script->out);
	for (size_t i = sizeof(digits); i-- > 0; us /= 10)
		digits[i] = (char)('0' + us % 10);
	if (s->time_ns)
		fwrite_unlocked(digits, 1, sizeof(digits), script->out);
	fwrite_unlocked(h->after, 1, h->after_size, script->out);
	return 0;
}

/* Bits of fields that are no PERF_SAMPLE_*. */
#define BRSTACK	   (1ULL << 62)
#define BRSTACKSYM (1ULL << 63)

uint64_t batch_script_fields(const char *list, const char **bad)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} known[] = {
		{ "brstack", BRSTACK },
		{ "brstacksym", BRSTACKSYM },
		{ "addr", PERF_SAMPLE_ADDR },
		{ "data_src", PERF_SAMPLE_DATA_SRC },
		{ "weight", PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT },
		{ "phys_addr", PERF_SAMPLE_PHYS_ADDR },
		{ "data_page_size", PERF_SAMPLE_DATA_PAGE_SIZE },
		{ "code_page_size", PERF_SAMPLE_CODE_PAGE_SIZE },
	};
	uint64_t fields = 0;

	for (*bad = list;; *bad += strcspn(*bad, ",") + 1) {
		size_t size = strcspn(*bad, ","), i = 0;

		while (i < ARRAY_SIZE(known) &&
		       (strlen(known[i].name) != size || strncmp(known[i].name, *bad, size)))
			i++;
		if (i == ARRAY_SIZE(known))
			return 0;
		fields |= known[i].bits;
		if (!(*bad)[size])
			return fields;
	}
}

/* Print the fields before the frames. */
static void put_access(const struct script *script, const struct record_memory *m)
{
	uint64_t fields = script->fields & m->fields;

	if (fields & PERF_SAMPLE_ADDR)
		fprintf(script->out, "%16" PRIx64 " ", m->addr);
	if (fields & PERF_SAMPLE_DATA_SRC)
		fprintf(script->out, "%16" PRIx64 " ", m->data_src);
	if (fields & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		fprintf(script->out, "%16" PRIu64 " ", m->weight);
}

/* Print one end of a branch: its address, or its symbol. */
static void put_end(const struct script *script, const struct sampler_sample *s, uint32_t frame,
		    uint64_t ip, bool symbol)
{
	const struct sampler_frame *f = &s->known[frame];

	if (!symbol)
		fprintf(script->out, "0x%" PRIx64, ip);
	else if (f->offset != UINT64_MAX)
		fprintf(script->out, "%.*s+0x%" PRIx64, (int)f->name.size, f->name.str, f->offset);
	else
		fprintf(script->out, "%.*s", (int)f->name.size, f->name.str);
}

/* Print " from/to/P/-/-/cycles/ " for each branch: M is mispredicted, X in a transaction, A abort.
 */
static void put_branches(const struct script *script, const struct sampler_sample *s, bool symbol)
{
	for (uint32_t i = 0; i < s->nr_branches; i++) {
		const struct sampler_branch *b = &s->branches[i];

		putc_unlocked(' ', script->out);
		put_end(script, s, b->from, b->branch.from, symbol);
		putc_unlocked('/', script->out);
		put_end(script, s, b->to, b->branch.to, symbol);
		fprintf(script->out, "/%c/%c/%c/%u/ ",
			b->branch.mispredicted ? 'M'
			: b->branch.predicted  ? 'P'
					       : '-',
			b->branch.in_tx ? 'X' : '-', b->branch.abort ? 'A' : '-', b->branch.cycles);
	}
	if (s->nr_branches)
		putc_unlocked('\n', script->out);
}

static void put_page_size(const struct script *script, uint64_t size)
{
	static const char units[] = " KMGTPE";
	int unit = 0;

	for (; size >= 1024 && !(size % 1024); size /= 1024)
		unit++;
	fprintf(script->out, unit ? " %" PRIu64 "%c" : " %" PRIu64, size, units[unit]);
}

/* Print the fields behind the frames. */
static void put_rest(const struct script *script, const struct sampler_sample *s)
{
	uint64_t fields = script->fields & s->memory->fields;

	if (script->fields & BRSTACK)
		put_branches(script, s, false);
	if (script->fields & BRSTACKSYM)
		put_branches(script, s, true);
	if (fields & PERF_SAMPLE_PHYS_ADDR)
		fprintf(script->out, "%16" PRIx64, s->memory->phys_addr);
	if (fields & PERF_SAMPLE_DATA_PAGE_SIZE)
		put_page_size(script, s->memory->page_size);
	if (fields & PERF_SAMPLE_CODE_PAGE_SIZE)
		put_page_size(script, s->memory->code_page_size);
	if (fields &
	    (PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE))
		putc_unlocked('\n', script->out);
}

static int print_sample(void *arg, const struct sampler_sample *s)
{
	struct script *script = arg;

	if (put_head(script, s))
		return -ENOMEM;
	put_access(script, s->memory);
	putc_unlocked('\n', script->out);
	for (uint32_t i = 0; i < s->nr_frames; i++)
		if (put_frame(script, s, i))
			return -ENOMEM;
	put_rest(script, s);
	putc_unlocked('\n', script->out);
	return ferror_unlocked(script->out) ? -errno : 0;
}

int batch_script(struct sampler *sampler, FILE *out, uint64_t fields, struct err *e)
{
	struct script script = { .out = out, .fields = fields };
	int code;

	setvbuf(out, NULL, _IOFBF, BUFFER_SIZE);
	code = sampler_each(sampler, print_sample, &script, e);
	if (fflush(out) && !code)
		code = -errno;
	for (uint32_t i = 0; i < script.nr_lines; i++)
		free(script.lines[i].text);
	free(script.lines);
	free_head(&script.head);
	return code == -EPIPE ? 0 : code;
}
