// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines below the rows of a view. Runs on: the main thread.
 */
#include "ui/view/foot.h"

#include <string.h>

#define LABEL_COLS 10u

static void draw(struct foot *f, struct safe_text label, struct safe_text value)
{
	unsigned int at = f->row + f->used;

	if (!f->c || f->used >= f->rows)
		return;
	canvas_text(f->c, at, 1, LABEL_COLS, label, (struct style){ ROLE_DIM, 0 });
	if (f->cols > LABEL_COLS + 2)
		canvas_elide(f->c, at, 1 + LABEL_COLS, f->cols - LABEL_COLS - 2, value,
			     (struct style){ ROLE_NORMAL, 0 });
}

void foot_line(struct foot *f, struct safe_text label, struct safe_text value)
{
	draw(f, label, value);
	f->used++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t foot_line_bytes(const char *text, unsigned int cols)
{
	size_t size = strlen(text), cut = MIN(size, (size_t)cols);

	if (cut == size)
		return size;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && text[i + 1] == ' ')
			return i;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && !(is_digit(text[i - 1]) && is_digit(text[i + 1])))
			return i;
	/* Not within a code point. */
	while (cut > 1 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return MAX(cut, (size_t)1);
}

void foot_text(struct foot *f, struct safe_text label, const char *text)
{
	unsigned int cols = f->cols > LABEL_COLS + 12 ? f->cols - LABEL_COLS - 2 : 10;
	char buf[512];

	do {
		size_t n = foot_line_bytes(text, cols);

		foot_line(f, label, text_sanitise(buf, sizeof(buf), text, n));
		label = TEXT("");
		text += n;
		text += strspn(text, " ");
	} while (*text);
}
