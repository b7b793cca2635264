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
#include "ui/cli/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SIZE (64u << 10)
/* The longest piece but a line's: a sample's head without its texts, an address. */
#define PIECE_MAX  160u
#define COMM_WIDTH 16
#define COMM_MAX   128u
/* Digits of a number. */
#define NUMBER_MAX 20u
/* Lines of up to this size, as most are, are copied as if they were of it: in a few instructions.
 */
#define LINE_USUAL 128u

/* A frame as a line: there are millions of them, of a few thousand frames. */
struct line {
	size_t at;	  /* in texts */
	uint32_t size;	  /* 0: not made yet */
	bool has_address; /* else it goes in front: the frame is met at many */
};

/* How the sample before began, up to its microseconds: most begin alike. */
struct head {
	size_t comm_size;
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t seconds;
	size_t size; /* 0: there was none */
	char text[COMM_MAX + PIECE_MAX];
};

struct script {
	FILE *out;
	struct head head;
	struct line *lines; /* by frame id */
	uint32_t nr_lines;
	char *texts;
	size_t texts_size, texts_room;
	size_t used;
	char page[PAGE_SIZE];
};

/* As "%*u" does, or filled up with @fill; no wider than NUMBER_MAX. Returns its end. */
static char *put_number(char *at, uint64_t value, unsigned int width, char fill)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[2 * NUMBER_MAX];
	unsigned int first = NUMBER_MAX;

	memset(digits, fill, sizeof(digits));
	for (; value >= 10; value /= 100) {
		first -= 2;
		memcpy(digits + first, pairs + 2 * (value % 100), 2);
	}
	if (value || first == NUMBER_MAX)
		digits[--first] = (char)('0' + value);
	first = MIN(first, NUMBER_MAX - width);
	/* Always as many, which is no call: what follows the number is written over. */
	memcpy(at, digits + first, NUMBER_MAX);
	return at + NUMBER_MAX - first;
}

static char *put_text(char *at, const char *p, size_t size)
{
	memcpy(at, p, size);
	return at + size;
}

/* Errors stay in the file: asked for once a sample. */
static void flush(struct script *s)
{
	fwrite_unlocked(s->page, 1, s->used, s->out);
	s->used = 0;
}

/* Room for @size bytes, at most a page. */
static char *reserve(struct script *s, size_t size)
{
	if (s->used + size > PAGE_SIZE)
		flush(s);
	return s->page + s->used;
}

/* Put what does not fit into the page. */
static void put_more(struct script *s, const char *p, size_t size)
{
	flush(s);
	for (; size > sizeof(s->page); p += sizeof(s->page), size -= sizeof(s->page))
		fwrite_unlocked(p, 1, sizeof(s->page), s->out);
	put_text(s->page, p, size);
	s->used = size;
}

static inline void put(struct script *s, const char *p, size_t size)
{
	if (size > sizeof(s->page) - s->used) {
		put_more(s, p, size);
		return;
	}
	memcpy(s->page + s->used, p, size);
	s->used += size;
}

/* Make the line of frame @id, its first look. */
static void make_line(struct script *s, struct line *line, const struct sampler_frame *f)
{
	size_t size = PIECE_MAX + f->name.size + f->module.size + LINE_USUAL;
	char *start, *at;

	if (s->texts_room - s->texts_size < size) {
		s->texts_room = 2 * s->texts_room + size;
		s->texts = xrealloc_array(s->texts, s->texts_room, 1);
	}
	start = at = s->texts + s->texts_size;
	line->has_address = f->file_offset != UINT64_MAX;
	if (line->has_address) {
		*at++ = '\t';
		at = text_put_hex(at, f->file_offset, 16);
	}
	*at++ = ' ';
	at = put_text(at, f->name.str, f->name.size);
	if (f->offset != UINT64_MAX) {
		at = put_text(at, "+0x", 3);
		at = text_put_hex(at, f->offset, 0);
	}
	at = put_text(at, " (", 2);
	at = put_text(at, f->module.str, f->module.size);
	at = put_text(at, ")\n", 2);
	line->at = s->texts_size;
	line->size = (uint32_t)(at - start);
	s->texts_size += line->size;
}

static __attribute__((noinline)) void add_line(struct script *s, const struct sampler_frame *known,
					       uint32_t id)
{
	if (id >= s->nr_lines) {
		uint32_t nr = MAX(2 * s->nr_lines, (id | 1023) + 1);

		s->lines = xrealloc_array(s->lines, nr, sizeof(*s->lines));
		memset(s->lines + s->nr_lines, 0, (nr - s->nr_lines) * sizeof(*s->lines));
		s->nr_lines = nr;
	}
	make_line(s, &s->lines[id], &known[id]);
}

static void put_line(struct script *s, const struct line *line)
{
	const char *text = s->texts + line->at;

	if (line->size > LINE_USUAL) {
		put(s, text, line->size);
		return;
	}
	memcpy(reserve(s, LINE_USUAL), text, LINE_USUAL);
	s->used += line->size;
}

static void put_frame(struct script *s, const struct sampler_sample *sample, uint32_t i)
{
	uint32_t id = sample->frames[i];
	const struct line *line;

	if (id >= s->nr_lines || !s->lines[id].size)
		add_line(s, sample->known, id);
	line = &s->lines[id];
	if (!line->has_address) {
		char *start = reserve(s, PIECE_MAX), *at = start;

		*at++ = '\t';
		s->used += (size_t)(text_put_hex(at, sample->ips[i], 16) - start);
	}
	put_line(s, line);
}

static char *put_id(char *at, pid_t id)
{
	if (id < 0)
		*at++ = '-';
	return put_number(at, (uint64_t)llabs(id), 0, ' ');
}

/* "%-16s %d/%d [%03u] %5u." */
static void make_head(struct head *h, const struct sampler_sample *sample, uint64_t seconds)
{
	char *at;

	h->comm_size = MIN(sample->comm.size, COMM_MAX);
	h->pid = sample->pid;
	h->tid = sample->tid;
	h->cpu = sample->cpu;
	h->seconds = seconds;
	at = put_text(h->text, sample->comm.str, h->comm_size);
	for (size_t i = h->comm_size; i < COMM_WIDTH; i++)
		*at++ = ' ';
	*at++ = ' ';
	at = put_id(at, h->pid);
	*at++ = '/';
	at = put_id(at, h->tid);
	at = put_text(at, " [", 2);
	at = put_number(at, h->cpu, 3, '0');
	at = put_text(at, "] ", 2);
	at = put_number(at, seconds, 5, ' ');
	*at++ = '.';
	h->size = (size_t)(at - h->text);
}

/* The head, then "%06u: %10u %s: \n". */
static void put_head(struct script *s, const struct sampler_sample *sample)
{
	struct head *h = &s->head;
	uint64_t seconds = sample->time_ns / 1000000000;
	char *start, *at;

	if (!h->size || h->seconds != seconds || h->cpu != sample->cpu || h->tid != sample->tid ||
	    h->pid != sample->pid || h->comm_size != MIN(sample->comm.size, COMM_MAX) ||
	    memcmp(h->text, sample->comm.str, h->comm_size))
		make_head(h, sample, seconds);
	put(s, h->text, h->size);
	start = at = reserve(s, PIECE_MAX);
	at = put_number(at, sample->time_ns / 1000 % 1000000, 6, '0');
	at = put_text(at, ": ", 2);
	at = put_number(at, sample->period, 10, ' ');
	*at++ = ' ';
	s->used += (size_t)(at - start);
	put(s, sample->event, strlen(sample->event));
	put(s, ": \n", 3);
}

static int print_sample(void *arg, const struct sampler_sample *sample)
{
	struct script *s = arg;

	put_head(s, sample);
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		put_frame(s, sample, i);
	put(s, "\n", 1);
	return ferror_unlocked(s->out) ? -errno : 0;
}

int batch_script(struct sampler *sampler, FILE *out, struct err *e)
{
	struct script *s = xcalloc(1, sizeof(*s));
	int code;

	s->out = out;
	code = sampler_each(sampler, print_sample, s, e);
	flush(s);
	if (fflush(out) && !code)
		code = -errno;
	free(s->lines);
	free(s->texts);
	free(s);
	return code == -EPIPE ? 0 : code;
}
