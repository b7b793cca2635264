// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A line being typed: code points in, code points out. Any thread.
 */
#include "ui/state/line.h"

#include <assert.h>
#include <string.h>

#include <utf8proc.h>

#include "symbols/base/text.h"
#include "ui/key/key.h"

void line_set(struct line *l, const char *text)
{
	char clean[LINE_SIZE];
	struct safe_text t = text_sanitise(clean, sizeof(clean), text, strlen(text));

	memcpy(l->text, t.str, t.size + 1u);
	l->size = l->at = t.size;
}

/* Return the bytes of the code point before or after the cursor. */
static size_t before(const struct line *l)
{
	size_t n = 0;

	while (n < l->at && (l->text[l->at - ++n] & 0xc0) == 0x80)
		;
	return n;
}

static size_t after(const struct line *l)
{
	size_t n = l->at < l->size;

	while (l->at + n < l->size && (l->text[l->at + n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void erase(struct line *l, size_t from, size_t n)
{
	memmove(l->text + from, l->text + from + n, l->size - from - n + 1);
	l->size -= n;
	l->at = from;
}

static bool insert(struct line *l, uint32_t code)
{
	char bytes[8], clean[16];
	utf8proc_ssize_t n =
		utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)bytes);
	struct safe_text t;

	if (n <= 0)
		return false;
	t = text_sanitise(clean, sizeof(clean), bytes, (size_t)n);
	/* Refuse bytes that are not clean text. */
	if (t.size != (size_t)n || memcmp(t.str, bytes, (size_t)n))
		return false;
	l->full = l->size + (size_t)n > (l->max ? l->max : sizeof(l->text) - 1);
	if (l->full)
		return false;
	memmove(l->text + l->at + n, l->text + l->at, l->size - l->at + 1);
	memcpy(l->text + l->at, bytes, (size_t)n);
	l->at += (size_t)n;
	l->size += (size_t)n;
	return true;
}

static void erase_word(struct line *l)
{
	size_t from = l->at;

	while (from && l->text[from - 1] == ' ')
		from--;
	while (from && l->text[from - 1] != ' ')
		from--;
	erase(l, from, l->at - from);
}

bool line_key(struct line *l, uint32_t code, bool *changed)
{
	size_t size = l->size;

	*changed = l->full = false;
	switch (code) {
	case K_LEFT:
		l->at -= before(l);
		return true;
	case K_RIGHT:
		l->at += after(l);
		return true;
	case K_BACKSPACE:
		erase(l, l->at - before(l), before(l));
		break;
	case K_DELETE:
		erase(l, l->at, after(l));
		break;
	case K_CTRL('u'):
		erase(l, 0, l->at);
		break;
	case K_CTRL('w'):
		erase_word(l);
		break;
	default:
		if (code < 32 || code >= 0x110000)
			return false;
		*changed = insert(l, code);
		return true;
	}
	*changed = size != l->size;
	assert(l->at <= l->size && l->size < sizeof(l->text) && !l->text[l->size]);
	return true;
}
