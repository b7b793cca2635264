// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Encode and decode records with frames of languages.
 *
 * Runs on: sampler threads and the writer of a recording; replay.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

#define MAGIC 0x6c706f7466727021ULL
/* perf 7.2 warns of each that has not the 8 and 64 bytes of an event_type behind its header. */
#define RECORD_MIN 80u

struct head {
	struct perf_event_header h;
	uint64_t magic;
	uint32_t kind, reserved;
};

/* Followed by name, file and, of Python and Ruby, line table. */
struct function {
	struct head head;
	uint32_t number, first_line, table_size;
	uint16_t name_size, file_size;
	uint8_t language, version, reserved[2];
	uint32_t position;
};

/* Followed by the entries; then, if there is a stack copy, by that. */
struct frames_lang_record {
	struct head head;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint8_t language, outcome, none, deep;
	uint16_t nr_native, nr;
};

/* Followed by its bytes. */
struct stack_copy_record {
	uint64_t sp, from;
	uint32_t size;
	uint8_t guessed, reserved;
	uint16_t rest; /* words of 8 bytes */
};

_Static_assert(sizeof(struct function) + 2 * SCRIPT_FUNCTIONS_TEXT_MAX +
			       SCRIPT_FUNCTIONS_TABLE_MAX + 8 <=
		       LANG_RECORD_MAX,
	       "a function fits");

_Static_assert(sizeof(struct frames_lang_record) + 8 * INTERLEAVE_FRAMES_MAX +
			       sizeof(struct stack_copy_record) <=
		       LANG_RECORD_MAX,
	       "frames fit");

_Static_assert(sizeof(struct function) % 8 == 0 && sizeof(struct frames_lang_record) % 8 == 0, "ali"
											       "gne"
											       "d");

static struct head head_of(enum lang_record_kind kind, size_t size)
{
	return (struct head){
		.h = { .type = LANG_RECORD_TYPE, .size = (uint16_t)size },
		.magic = MAGIC,
		.kind = kind,
	};
}

/* Java code is needed from its time on, which its table begins with; 0: another language. */
static uint64_t time_of_java(const uint8_t *bytes, size_t size)
{
	struct function f;
	uint64_t time_ns;
	size_t at;

	if (size < sizeof(f))
		return 0;
	memcpy(&f, bytes, sizeof(f));
	at = sizeof(f) + f.name_size + f.file_size;
	if (f.language != LANG_JAVA || size < at + sizeof(time_ns))
		return 0;
	memcpy(&time_ns, bytes + at, sizeof(time_ns));
	return time_ns;
}

enum lang_record_kind lang_record_kind(const uint8_t *bytes, size_t size, uint64_t *time_ns)
{
	struct head head;

	assert(time_ns && (bytes || !size));
	*time_ns = 0;
	if (size < sizeof(head))
		return LANG_RECORD_NONE;
	memcpy(&head, bytes, sizeof(head));
	if (head.h.type != LANG_RECORD_TYPE || head.magic != MAGIC ||
	    (head.kind != LANG_RECORD_FUNCTION && head.kind != LANG_RECORD_FRAMES))
		return LANG_RECORD_NONE;
	if (head.kind == LANG_RECORD_FUNCTION)
		*time_ns = time_of_java(bytes, size);
	else if (size >= sizeof(struct frames_lang_record))
		memcpy(time_ns, bytes + offsetof(struct frames_lang_record, time_ns),
		       sizeof(*time_ns));
	return (enum lang_record_kind)head.kind;
}

/* Frames of others have lines, not instructions. */
static bool has_table(uint8_t language)
{
	return language == LANG_PYTHON || language == LANG_RUBY || language == LANG_JAVA;
}

/* Write a record to @buf of LANG_RECORD_MAX bytes; return its size, 0: it does not fit. */
static size_t lang_record_put_function(uint8_t *buf, uint32_t number, const struct code_text *t)
{
	uint32_t table_size = has_table(t->language) ? t->table_size : 0;
	size_t size = sizeof(struct function) + t->name_size + t->file_size + table_size;
	size_t whole = MAX((size + 7) & ~(size_t)7, RECORD_MIN);
	struct function f = {
		.head = head_of(LANG_RECORD_FUNCTION, whole),
		.number = number,
		.first_line = t->first_line,
		.table_size = table_size,
		.name_size = t->name_size,
		.file_size = t->file_size,
		.language = t->language,
		.version = t->version,
		.position = t->position,
	};
	uint8_t *at;

	assert(t->language != LANG_NONE);
	if (whole > LANG_RECORD_MAX)
		return 0;
	at = mempcpy(buf, &f, sizeof(f));
	at = mempcpy(at, t->name, t->name_size);
	at = mempcpy(at, t->file, t->file_size);
	if (table_size)
		at = mempcpy(at, t->table, table_size);
	memset(at, 0, whole - size);
	return whole;
}

size_t lang_record_put_frames(uint8_t *buf, const struct lang_frames *l)
{
	size_t size = sizeof(struct frames_lang_record) + l->nr * sizeof(l->entries[0]);
	struct frames_lang_record f = {
		.head = head_of(LANG_RECORD_FRAMES, size),
		.time_ns = l->time_ns,
		.pid = l->pid,
		.tid = l->tid,
		.language = l->language,
		.outcome = l->outcome,
		.none = l->none,
		.deep = l->deep,
		.nr_native = l->nr_native,
		.nr = l->nr,
	};

	assert(buf && l);
	struct stack_copy_record copy = {
		.sp = l->other.sp,
		.from = l->other.from,
		.guessed = l->other.guessed,
	};
	uint8_t *at;

	if (l->nr > INTERLEAVE_FRAMES_MAX)
		return 0;
	if (l->other.size) {
		size += sizeof(copy);
		copy.size = (uint32_t)MIN(l->other.size, LANG_RECORD_MAX - size) & ~7U;
		copy.rest =
			(uint16_t)((copy.size - MIN(l->other.size - l->other.rest, copy.size)) / 8);
		size += copy.size;
	}
	f.head.h.size = (uint16_t)MAX(size, RECORD_MIN);
	memset(buf, 0, RECORD_MIN);
	at = mempcpy(mempcpy(buf, &f, sizeof(f)), l->entries, l->nr * sizeof(l->entries[0]));
	if (l->other.size)
		memcpy(mempcpy(at, &copy, sizeof(copy)), l->other.bytes, copy.size);
	return f.head.h.size;
}

void lang_record_each_function(const struct script_functions *codes,
			       struct lang_record_cursor *cursor,
			       void (*fn)(void *ctx, const void *record, size_t size), void *ctx)
{
	uint32_t nr = codes ? script_functions_nr(codes) : 0;
	uint8_t buf[LANG_RECORD_MAX];
	struct script_log_copy copy;
	size_t size;

	for (; cursor->nr < nr; cursor->nr++) {
		const struct code_text *text = script_functions_at(codes, cursor->nr);

		size = text && !text->compiled ? lang_record_put_function(buf, cursor->nr, text)
					       : 0;
		if (size)
			fn(ctx, buf, size);
	}
	/* These have no number: no frame of a sample is recorded with it. */
	while (codes && script_log_next(codes_log(codes), &cursor->logged, &copy)) {
		size = lang_record_put_function(buf, 0, &copy.text);
		if (size)
			fn(ctx, buf, size);
	}
}

int lang_record_function(const uint8_t *bytes, size_t size, uint32_t *number,
			 struct code_text *text)
{
	const char *texts = (const char *)bytes + sizeof(struct function);
	struct function f;

	assert(bytes || !size);
	if (size < sizeof(f))
		return -EINVAL;
	memcpy(&f, bytes, sizeof(f));
	size -= sizeof(f);
	if (f.language == LANG_NONE || (f.language >= LANG_NR && f.language != LANG_JAVA) ||
	    f.number >= SCRIPT_FUNCTIONS_MAX || !f.name_size || !f.file_size ||
	    f.name_size > SCRIPT_FUNCTIONS_TEXT_MAX || f.file_size > SCRIPT_FUNCTIONS_TEXT_MAX ||
	    f.table_size > SCRIPT_FUNCTIONS_TABLE_MAX ||
	    /* Instructions of others are lines: a table would be read as another language's. */
	    (f.table_size && !has_table(f.language)) ||
	    size < (size_t)f.name_size + f.file_size + f.table_size)
		return -EINVAL;
	*number = f.number;
	*text = (struct code_text){
		.language = f.language,
		.version = f.version,
		.name_size = f.name_size,
		.file_size = f.file_size,
		.first_line = f.first_line,
		.position = f.position,
		.table_size = f.table_size,
		.name = texts,
		.file = texts + f.name_size,
		.table = (const uint8_t *)texts + f.name_size + f.file_size,
	};
	return 0;
}

/* Read the stack copy, if there is one; without frames of a language there has to be. */
static int read_stack_copy(const uint8_t *bytes, size_t size, struct lang_frames *out)
{
	struct stack_copy_record copy = { .size = 0 };

	out->other = (struct unwind_interrupted){ 0 };
	if (size >= sizeof(copy))
		memcpy(&copy, bytes, sizeof(copy));
	if (!copy.size)
		return out->language == LANG_NONE ? -EINVAL : 0;
	if (copy.size % 8 || copy.size > size - sizeof(copy) || copy.rest > copy.size / 8)
		return -EINVAL;
	out->other = (struct unwind_interrupted){
		.sp = copy.sp,
		.bytes = bytes + sizeof(copy),
		.size = copy.size,
		.from = copy.from,
		.guessed = copy.guessed != 0,
		.rest = copy.rest * 8UL,
	};
	return 0;
}

int lang_record_frames(const uint8_t *bytes, size_t size, struct lang_frames *out)
{
	struct frames_lang_record f;

	if (size < sizeof(f))
		return -EINVAL;
	memcpy(&f, bytes, sizeof(f));
	if (f.language >= LANG_NR || f.outcome > LANG_OUTCOME_GUESSED || f.none >= LANG_OK ||
	    f.nr > INTERLEAVE_FRAMES_MAX || (size - sizeof(f)) / sizeof(out->entries[0]) < f.nr)
		return -EINVAL;
	out->time_ns = f.time_ns;
	out->pid = f.pid;
	out->tid = f.tid;
	out->language = f.language;
	out->outcome = f.outcome;
	out->none = f.none;
	out->deep = f.deep != 0;
	out->nr_native = f.nr_native;
	out->nr = f.nr;
	memcpy(out->entries, bytes + sizeof(f), f.nr * sizeof(out->entries[0]));
	size -= sizeof(f) + f.nr * sizeof(out->entries[0]);
	return read_stack_copy(bytes + sizeof(f) + f.nr * sizeof(out->entries[0]), size, out);
}
