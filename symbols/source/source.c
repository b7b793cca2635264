// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines of a source file. Runs on: a helper.
 */
#include "symbols/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/base/text.h"

#define LINE_BYTES_MAX 480u
#define TAB_COLS       8u

/* Tabs become blanks; longer lines are cut. */
static uint32_t add_line(struct listing *l, const char *text, size_t size)
{
	char wide[LINE_BYTES_MAX], clean[LINE_BYTES_MAX * 2];
	size_t n = 0;
	struct safe_text is;

	if (size && text[size - 1] == '\r')
		size--;
	for (size_t i = 0; i < size && n < sizeof(wide); i++) {
		if (text[i] != '\t') {
			wide[n++] = text[i];
			continue;
		}
		do
			wide[n++] = ' ';
		while (n % TAB_COLS && n < sizeof(wide));
	}
	is = text_sanitise(clean, sizeof(clean), wide, n);
	return listing_add_text(l, is.str, is.size);
}

void source_parse(struct listing *l, struct listing_file *file, const struct source_want *want,
		  const char *text, size_t size)
{
	uint32_t room = SOURCE_LINES_MAX - MIN(SOURCE_LINES_MAX, l->nr_lines), line = 1;
	uint32_t nr = want->last >= want->first ? MIN(want->last - want->first + 1, room) : 0;
	uint32_t *lines = reallocarray(l->lines, l->nr_lines + nr + 1, sizeof(*lines));
	const char *at = text, *end = text + size;

	if (!lines) {
		file->why = "out of memory";
		return;
	}
	l->lines = lines;
	file->first = want->first;
	file->lines = l->nr_lines;
	for (; at < end && file->nr_lines < nr; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		if (line >= want->first) {
			l->lines[l->nr_lines++] = add_line(l, at, (size_t)(stop - at));
			file->nr_lines++;
		}
		at = stop + 1;
	}
	if (!file->nr_lines)
		file->why = room ? "has fewer lines: another version" : "too many lines";
}

static int open_source(const struct source_want *want, struct foreign_file *out)
{
	struct foreign_want f = {
		.path = want->path,
		.pid = want->pid,
		.root = want->root,
		.size_max = SOURCE_SIZE_MAX,
	};
	int rc = foreign_open(&f, out, NULL);

	if (!rc || (!want->pid && !want->root))
		return rc;
	f.pid = 0;
	f.root = NULL;
	return foreign_open(&f, out, NULL);
}

static const char *reason(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return "not found";
	case -EACCES:
	case -EPERM:
		return "not permitted";
	case -EFBIG:
		return "too large";
	default:
		return "unreadable";
	}
}

void source_read(struct listing *l, struct listing_file *file, const struct source_want *want)
{
	struct foreign_file f;
	size_t size;
	char *text;
	int rc;

	if (getauxval(AT_SECURE)) {
		file->why = "not read while proftop has extra capabilities";
		return;
	}
	if (want->path[0] != '/') {
		file->why = "its folder is unknown";
		return;
	}
	rc = open_source(want, &f);
	if (rc) {
		file->why = reason(rc);
		return;
	}
	rc = foreign_read(f.fd, SOURCE_SIZE_MAX, &text, &size);
	close(f.fd);
	if (rc) {
		file->why = reason(rc);
		return;
	}
	file->newer = want->built_ns && f.mtime_ns > want->built_ns;
	source_parse(l, file, want, text, size);
	free(text);
}
