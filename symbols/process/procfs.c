// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parsers of the texts of /proc/PID.
 *
 * Forward only: every number is bounded by its line, every line by the text, so
 * no input takes more than one pass.
 *
 * Runs on: any thread (the loader).
 */
#include "symbols/process/procfs.h"

#include <string.h>
#include <unistd.h>

#include "symbols/base/fields.h"

/* Parse a number of @base (10 or 16) that ends in @stop; moves *@at after it. */
static bool number(const char **at, const char *end, int base, char stop, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;
	int digit;

	for (; p < end && (digit = fields_digit(*p)) >= 0 && digit < base; p++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	if (p == *at || p == end || *p != stop)
		return false;
	*at = p + 1;
	*value = v;
	return true;
}

/* Parse "start-end rwxp offset maj:min ino    path", see proc(5); @end is the newline. */
static bool parse_map(const char *at, const char *end, struct procfs_map *m)
{
	uint64_t maj, min;

	if (!number(&at, end, 16, '-', &m->start) || !number(&at, end, 16, ' ', &m->end))
		return false;
	if (end - at < 5 || at[4] != ' ')
		return false;
	m->exec = at[2] == 'x';
	m->is_private = at[3] == 'p';
	at += 5;
	if (!number(&at, end, 16, ' ', &m->offset) || !number(&at, end, 16, ':', &maj) ||
	    !number(&at, end, 16, ' ', &min))
		return false;
	/* Without a path the line ends after the inode, or after a space. */
	if (!number(&at, end, 10, ' ', &m->ino) && !number(&at, end + 1, 10, '\n', &m->ino))
		return false;
	if (m->start >= m->end || maj > UINT32_MAX || min > UINT32_MAX)
		return false;
	m->maj = (uint32_t)maj;
	m->min = (uint32_t)min;
	while (at < end && *at == ' ')
		at++;
	m->path = at;
	m->path_size = at < end ? (size_t)(end - at) : 0;
	return true;
}

bool procfs_next_map(struct procfs_text *text, struct procfs_map *out)
{
	while (text->at < text->end) {
		const char *line = text->at;
		const char *newline = memchr(line, '\n', (size_t)(text->end - line));

		if (!newline) { /* the text ends inside a line */
			text->at = text->end;
			return false;
		}
		text->at = newline + 1;
		if (parse_map(line, newline, out))
			return true;
		text->nr_bad++;
	}
	return false;
}

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

size_t procfs_unescape(char *dst, size_t dst_size, const char *src, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size && n < dst_size; i++) {
		if (src[i] == '\\' && size - i >= 4 && is_octal(src + i + 1)) {
			dst[n++] = (char)((src[i + 1] - '0') << 6 | (src[i + 2] - '0') << 3 |
					  (src[i + 3] - '0'));
			i += 3;
		} else {
			dst[n++] = src[i];
		}
	}
	return n;
}

static bool begins(const char *path, size_t size, const char *prefix)
{
	size_t n = strlen(prefix);

	return size >= n && !memcmp(path, prefix, n);
}

static bool equals(const char *path, size_t size, const char *name)
{
	return size == strlen(name) && !memcmp(path, name, size);
}

enum object_kind procfs_kind(const char *path, size_t size, uint64_t start, bool is_private)
{
	/* Memory without a file that could be ELF; used for JIT code. */
	static const char *const anon[] = {
		"//anon", "anon_inode:", "/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage",
	};

	if (!size)
		return OBJECT_ANON;
	if (equals(path, size, "[vdso]"))
		return start >> 32 ? OBJECT_VDSO : OBJECT_FILE;
	if (equals(path, size, "[vsyscall]"))
		return OBJECT_UNKNOWN;
	if (path[0] == '[') /* [heap], [stack], [anon:…], [uprobes]: a path has a slash */
		return OBJECT_ANON;
	if (is_private && begins(path, size, "/memfd:"))
		return OBJECT_FILE;
	for (size_t i = 0; i < ARRAY_SIZE(anon); i++)
		if (begins(path, size, anon[i]))
			return OBJECT_ANON;
	return OBJECT_FILE;
}

/* Find the value of "Name:\tvalue", up to *@value_end, which is @end without a newline; NULL:
 * absent. */
static const char *find_status(const char *text, const char *end, const char *name,
			       const char **value_end)
{
	size_t name_size = strlen(name);

	/* "Name:" is first and escaped by the kernel, so it cannot forge another line. */
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		size_t line_size = (size_t)(line_end - text);

		if (line_size >= name_size + 2 && begins(text, line_size, name) &&
		    text[name_size] == ':' && text[name_size + 1] == '\t') {
			*value_end = line_end;
			return text + name_size + 2;
		}
		text = newline ? newline + 1 : end;
	}
	return NULL;
}

bool procfs_status_number(const char *text, size_t size, const char *name, uint64_t *value)
{
	const char *line_end, *at = find_status(text, text + size, name, &line_end);

	return at && line_end < text + size &&
	       (number(&at, line_end, 10, '\t', value) ||
		number(&at, line_end + 1, 10, '\n', value));
}

unsigned int procfs_status_inner(const char *text, size_t size, uint64_t *pid)
{
	const char *line_end, *at = find_status(text, text + size, "NSpid", &line_end);
	unsigned int nr = 0;

	while (at && line_end < text + size &&
	       (number(&at, line_end, 10, '\t', pid) || number(&at, line_end + 1, 10, '\n', pid)))
		nr++;
	return nr;
}

char procfs_status_state(const char *text, size_t size)
{
	const char *line_end, *at = find_status(text, text + size, "State", &line_end);

	return at && at < line_end ? *at : '\0';
}

bool procfs_stat_field(const char *text, size_t size, int nr, uint64_t *value)
{
	/*
	 * The name in brackets may have brackets, spaces and newlines: the last
	 * bracket closes it.
	 */
	const char *at = size ? memrchr(text, ')', size) : NULL;
	const char *end = text + size;
	int spaces = 0;

	if (!at)
		return false;
	while (at < end && spaces < nr - 2)
		spaces += *at++ == ' ';
	return spaces == nr - 2 && number(&at, end, 10, ' ', value);
}

int64_t procfs_start_ns(uint64_t ticks)
{
	const int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);

	if (!ticks)
		return 0;
	return (int64_t)(time_clock_ns(CLOCK_REALTIME) - time_clock_ns(CLOCK_BOOTTIME)) +
	       (int64_t)MIN(ticks, (uint64_t)(INT64_MAX / 4 / tick_ns)) * tick_ns;
}

bool procfs_stat_flags(const char *text, size_t size, uint64_t *flags)
{
	return procfs_stat_field(text, size, 9, flags);
}
