// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Without a screen: rows of a tick, the loop, fields of --fields, output for perf's scripts.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

/* The keys are part of the NDJSON contract; they follow enum unwind_stop. */
static const char *const broken_keys[PROFILE_NR_BROKEN] = {
	NULL,	    NULL,      NULL,	      "too_deep",  NULL,
	"no_map",   "no_cfi",  "cfi_refused", "bad_frame", "budget",
	"bad_regs", "outside", NULL,	      NULL,	   "return_probe",
};

const char *batch_broken_key(uint32_t stop)
{
	return stop < PROFILE_NR_BROKEN ? broken_keys[stop] : NULL;
}

/* Test the filter as on the screen: name or module matches; with '!' neither. */
static bool passes(const struct batch_config *config, const struct match *m,
		   const struct profile *p, const struct profile_function *fn)
{
	if (config->one_module && (fn->module_index >= p->nr_modules ||
				   p->modules[fn->module_index].id != config->module))
		return false;
	if (!match_active(m))
		return true;
	return m->negate != match_finds_function(m, fn);
}

/* Order numbers, largest first. */
static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b);
}

/* Order rows that are equal in the sort column. */
static int compare_rest(const struct batch_row *a, const struct batch_row *b)
{
	int c = compare_numbers(a->self_pct, b->self_pct);

	if (!c)
		c = compare_numbers(a->total_pct, b->total_pct);
	if (!c)
		c = strcmp(a->function->name.str, b->function->name.str);
	if (!c)
		c = strcmp(a->function->module.str, b->function->module.str);
	return c ? c : COMPARE(a->function->id, b->function->id);
}

static int compare_rows(const void *va, const void *vb, void *sort)
{
	const struct batch_row *a = va, *b = vb;
	int c = 0;

	switch (*(const enum ui_config_sort *)sort) {
	case CONFIG_SORT_TOTAL:
		c = compare_numbers(a->total_pct, b->total_pct);
		break;
	case CONFIG_SORT_SYMBOL:
		c = strcmp(a->function->name.str, b->function->name.str);
		break;
	case CONFIG_SORT_MODULE:
		c = strcmp(a->function->module.str, b->function->module.str);
		break;
	case CONFIG_SORT_COMM:
		c = strcmp(a->comm.str, b->comm.str);
		break;
	default:
		break;
	}
	return c ? c : compare_rest(a, b);
}

static void swap_rows(struct batch_row *a, struct batch_row *b)
{
	struct batch_row c = *a;

	*a = *b;
	*b = c;
}

/* Sift the row at @at down in a heap with the worst row on top. */
static void sink(struct batch_row *rows, uint32_t nr, uint32_t at, enum ui_config_sort *sort)
{
	assert(at < nr);
	for (uint32_t below; (below = 2 * at + 1) < nr; at = below) {
		if (below + 1 < nr && compare_rows(&rows[below + 1], &rows[below], sort) > 0)
			below++;
		if (compare_rows(&rows[below], &rows[at], sort) <= 0)
			return;
		swap_rows(&rows[below], &rows[at]);
	}
}

/* Sort the best @nr of @all rows to the front: usually few rows of many are shown. */
static void sort_rows(struct batch_row *rows, uint32_t all, uint32_t nr, enum ui_config_sort sort)
{
	assert(nr <= all);
	if (nr && nr < all)
		for (uint32_t at = nr / 2; at-- > 0;)
			sink(rows, nr, at, &sort);
	for (uint32_t i = nr; nr && i < all; i++) {
		if (compare_rows(&rows[i], &rows[0], &sort) > 0)
			continue;
		swap_rows(&rows[i], &rows[0]);
		sink(rows, nr, 0, &sort);
	}
	qsort_r(rows, nr, sizeof(*rows), compare_rows, &sort);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void row_init(struct batch_row *row, const struct profile *p, const struct fold_row *from,
		     const struct fold_functions *all, const uint32_t *lines, const double *ratios)
{
	bool weighted = all->weight > 0;
	uint32_t process = from->task < p->nr_tasks ? p->tasks[from->task].process
						    : p->nr_processes;

	row->function = &p->functions[from->function];
	row->comm = process < p->nr_processes ? p->processes[process].comm : TEXT("?");
	row->line = lines[from->function] < p->nr_lines ? &p->lines[lines[from->function]] : NULL;
	row->self = from->self;
	row->total = from->total;
	row->self_pct = weighted ? percent(from->self_weight, all->weight)
				 : percent(from->self, all->count);
	row->total_pct = weighted ? percent(from->total_weight, all->weight)
				  : percent(from->total, all->count);
	for (uint32_t i = 0; i < RATIOS_MAX; i++)
		row->ratios[i] = ratios ? ratios[from->function * RATIOS_MAX + i] : NAN;
}

static const struct fold_filter all_samples = { .process = UINT32_MAX, .task = UINT32_MAX };

static int table_init(struct batch_table *table, const struct profile *p, uint32_t event,
		      const struct batch_config *config, const struct match *filter,
		      const double *ratios)
{
	struct fold_filter what = config->scope ? *config->scope : all_samples;
	struct fold_functions all;
	uint32_t nr = 0, *lines;
	int code;

	table->latency = config->latency && p->latency == event + 1;
	if (!what.hide_idle)
		what.hide_idle = PROFILE_IDLE_KTHREAD;
	if (what.also && event != what.event)
		what.also = 0;
	table->with_waits = what.also;
	what.event = table->latency ? PROFILE_LATENCY : event;
	code = fold_functions(p, &what, &all);
	if (code)
		return code;
	table->rows = calloc(all.nr_rows ? all.nr_rows : 1, sizeof(*table->rows));
	lines = calloc(p->nr_functions + 1ULL, sizeof(*lines));
	if (!table->rows || !lines || fold_all_lines(p, &what, lines)) {
		free(lines);
		free(table->rows);
		fold_functions_fini(&all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < all.nr_rows; i++)
		if (passes(config, filter, p, &p->functions[all.rows[i].function]))
			row_init(&table->rows[nr++], p, &all.rows[i], &all, lines, ratios);
	free(lines);
	assert(nr <= all.nr_rows);
	table->event = event;
	table->count = all.count;
	table->seconds = all.weight / 1e9;
	table->nr_matching = nr;
	table->nr_rows = config->rows ? MIN(nr, config->rows) : nr;
	sort_rows(table->rows, nr, table->nr_rows, config->sort);
	fold_functions_fini(&all);
	return 0;
}

static void tick_fini(struct batch_tick *tick)
{
	for (uint32_t i = 0; i < tick->nr_tables; i++)
		free(tick->tables[i].rows);
	tick->nr_tables = 0;
}

/* Make the rows of a profile. Return 0 or -ENOMEM. Free with tick_fini(). */
static int tick_init(struct batch_tick *tick, const struct profile *p,
		     const struct batch_config *config)
{
	double *ratios = NULL;
	struct match filter;
	int code = 0;

	memset(tick, 0, sizeof(*tick));
	tick->profile = p;
	tick->pushed = config->pushed;
	tick->ascii = config->ascii;
	tick->only = config->only;
	tick->range = config->range;
	tick->nr_ratios = ratios_find(p->events, p->nr_events, tick->ratios);
	if (tick->nr_ratios)
		ratios = calloc((p->nr_functions + 1ULL) * RATIOS_MAX, sizeof(*ratios));
	if (ratios)
		ratios_fold(p, config->scope ? config->scope : &all_samples, tick->ratios,
			    tick->nr_ratios, ratios);
	match_init(&filter);
	if (config->filter)
		match_set(&filter, config->filter);
	for (uint32_t i = 0; i < MIN(p->nr_events, EVENTS_MAX) && !code; i++) {
		code = table_init(&tick->tables[i], p, i, config, &filter, ratios);
		if (!code)
			tick->nr_tables++;
	}
	match_fini(&filter);
	free(ratios);
	if (code)
		tick_fini(tick);
	return code;
}

/* Return the columns of the terminal that @out is; 0: it is none, or does not know. */
static unsigned int terminal_cols(FILE *out)
{
	struct winsize size = { 0 };

	return ioctl(fileno(out), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

int batch_print(FILE *out, const struct profile *p, const struct batch_config *config)
{
	struct batch_tick tick;
	int code = tick_init(&tick, p, config);

	if (code)
		return code;
	tick.cols = terminal_cols(out);
	code = config->sink(out, &tick);
	/* Flush whole ticks, so that a reader of a pipe gets each without delay. */
	if (fflush(out) && !code)
		code = -errno;
	tick_fini(&tick);
	return code;
}

/*
 * Run the batch loop: wait for a profile, a signal, or a closed pipe; print;
 * count.
 *
 * Runs on: the main thread.
 */

static void read_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void batch_block_signals(void)
{
	sigset_t set;

	read_signals(&set);
	/* Blocked, not ignored: a write to a closed pipe then fails with EPIPE. */
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

struct progress {
	uint64_t nr_printed;
	uint32_t status_seq; /* of the last printed status */
};

/* Print the next profile. Return 1: it was the last tick; 0; -errno. */
static int print_waiting(struct sampler *s, FILE *out, const struct batch_config *config,
			 struct progress *done, struct err *e)
{
	struct profile *p = sampler_take(s);
	bool gone;
	int code;

	if (!p)
		return 0;
	gone = p->target_gone;
	if (p->status_seq == done->status_seq)
		p->status[0] = '\0';
	done->status_seq = p->status_seq;
	code = config->each ? config->each(config, p, e) : 0;
	if (!code && config->sink)
		code = batch_print(out, p, config);
	profile_free(p);
	if (code)
		return code;
	done->nr_printed++;
	return gone || done->nr_printed == config->nr_ticks;
}

static int loop(struct sampler *s, FILE *out, const struct batch_config *config, int signal_fd,
		struct err *e)
{
	/* Poll the output for errors only: the reader may exit between two ticks. */
	struct pollfd fds[] = {
		{ .fd = sampler_fd(s), .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = fileno(out) },
	};
	struct progress done = { 0 };

	for (;;) {
		struct signalfd_siginfo info;
		int code;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents && read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
			/* A tick may have ended in the same moment. */
			code = print_waiting(s, out, config, &done, e);
			return code < 0 ? code : (int)info.ssi_signo;
		}
		if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL))
			return -EPIPE;
		if (!fds[0].revents)
			continue;
		code = print_waiting(s, out, config, &done, e);
		if (code)
			return MIN(code, 0);
	}
}

int batch_run(struct sampler *s, FILE *out, const struct batch_config *config, struct err *e)
{
	sigset_t set;
	int fd, code;

	read_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(e, -errno, "signalfd: %s", strerror(errno));
	code = loop(s, out, config, fd, e);
	close(fd);
	if (code == -EPIPE)
		return 0;
	if (code < 0 && !e->text[0])
		err_set(e, code,
			"cannot write the profile: %s\n"
			"  the output may be incomplete",
			strerror(-code));
	return code;
}

/*
 * The additional fields of --format=perf-script, by the names of perf script -F.
 *
 * Any thread; no state.
 *
 * The list of --fields.
 */

/* Beside PERF_SAMPLE_*: branches by address; by symbol. */
#define SCRIPT_FIELDS_BRSTACK (1ULL << 62)

#define SCRIPT_FIELDS_BRSTACKSYM (1ULL << 63)

uint64_t batch_fields_parse(const char *list, const char **bad)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} known[] = {
		{ "brstack", SCRIPT_FIELDS_BRSTACK },
		{ "brstacksym", SCRIPT_FIELDS_BRSTACKSYM },
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

#define BUFFER_SIZE (64u << 10)
#define COMM_MAX    128

/* A frame as text: a recording has millions of frames, but few different ones. */
struct batch_script_line {
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
	struct batch_script_line *lines; /* by frame id */
	uint32_t nr_lines;
};

static int make_line(struct batch_script_line *line, const struct sampler_frame *f)
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
	struct batch_script_line *line;

	assert(i < sample->nr_frames);
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
	/* The stream has it until the end of the program. Without one, libc takes no size. */
	static char buffer[BUFFER_SIZE];
	struct script script = { .out = out, .fields = fields };
	int code;

	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
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
