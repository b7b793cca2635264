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
 * Standard error has a line on samples that are missing.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli/script_fields.h"

#define BUFFER_SIZE (64u << 10)
#define COMM_MAX    128

/* A frame as text: a recording has millions of frames, but few different ones. */
struct line {
	char *text;	  /* NULL: not made yet */
	bool has_address; /* else the address differs from sample to sample, and goes in front */
	size_t size;
};

/* Parts that many samples in a row share. Compared by memcmp(). */
struct head_key {
	char comm[COMM_MAX];
	const char *event;
	uint64_t second, period; /* second: UINT64_MAX: not recorded */
	pid_t pid, tid;
	uint32_t cpu, zero;
};

/* The same as text: before and after the microseconds. NULL: not made yet. */
struct head {
	struct head_key key;
	char *before, *after;
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

static void free_head(struct head *h)
{
	free(h->before);
	free(h->after);
	*h = (struct head){ 0 };
}

static int make_head(struct head *h, const struct head_key *k)
{
	bool has_time = k->second != UINT64_MAX;
	char cpu[16] = "", second[24] = "";

	free_head(h);
	h->key = *k;
	if (k->cpu != UINT32_MAX)
		snprintf(cpu, sizeof(cpu), "[%03u] ", k->cpu);
	if (has_time)
		snprintf(second, sizeof(second), "%5" PRIu64 ".", k->second);
	if (asprintf(&h->before, "%-16.*s %d/%d %s%s", COMM_MAX, k->comm, k->pid, k->tid, cpu,
		     second) < 0)
		h->before = NULL;
	if (asprintf(&h->after, "%s%10" PRIu64 " %s: ", has_time ? ": " : "", k->period, k->event) <
	    0)
		h->after = NULL;
	return h->before && h->after ? 0 : -ENOMEM;
}

static int put_head(struct script *script, const struct sampler_sample *s)
{
	struct head *h = &script->head;
	struct head_key key = {
		.event = s->event,
		.second = s->time_ns ? s->time_ns / 1000000000 : UINT64_MAX,
		.period = s->period,
		.pid = s->pid,
		.tid = s->tid,
		.cpu = s->cpu,
	};
	uint32_t us = (uint32_t)(s->time_ns / 1000 % 1000000);
	char digits[7] = "";

	memcpy(key.comm, s->comm.str, MIN(s->comm.size, COMM_MAX));
	if ((!h->before || memcmp(&h->key, &key, sizeof(key))) && make_head(h, &key))
		return -ENOMEM;
	for (size_t i = s->time_ns ? 6 : 0; i-- > 0; us /= 10)
		digits[i] = (char)('0' + us % 10);
	fputs_unlocked(h->before, script->out);
	fputs_unlocked(digits, script->out);
	fputs_unlocked(h->after, script->out);
	return 0;
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

	if (script->fields & SCRIPT_FIELDS_BRSTACK)
		put_branches(script, s, false);
	if (script->fields & SCRIPT_FIELDS_BRSTACKSYM)
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

/* Report samples that are not in the output. */
static void print_missing(const struct sampler *sampler)
{
	struct sampler_missing m;

	sampler_missing(sampler, &m);
	if (m.note[0])
		fprintf(stderr, "proftop: %s\n", m.note);
	if (m.nr_dropped)
		fprintf(stderr, "proftop: %" PRIu64 " samples dropped: %s\n", m.nr_dropped,
			profile_drop_name(DROP_BAD_RECORD));
	if (m.nr_lost)
		fprintf(stderr, "proftop: %" PRIu64 " samples lost when it was recorded\n",
			m.nr_lost);
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
	if (code == -EPIPE)
		return 0;
	if (!code)
		print_missing(sampler);
	if (code < 0 && !e->text[0])
		err_set(e, code,
			"cannot write the samples: %s\n"
			"  the output may be incomplete",
			strerror(-code));
	return code;
}
