// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A growing buffer, and numbers in the C locale.
 */
#include "ui/export/out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

void out_fini(struct out *o)
{
	free(o->data);
	*o = (struct out){ .permille = o->permille, .max = o->max };
}

/* Make space for @size more bytes. */
static bool reserve(struct out *o, size_t size)
{
	size_t capacity = o->capacity ? o->capacity : 4096;
	char *data;

	if (o->failed || o->size + size > (o->max ? o->max : OUT_MAX)) {
		o->failed = true;
		return false;
	}
	if (o->size + size <= o->capacity)
		return true;
	while (capacity < o->size + size)
		capacity *= 2;
	data = realloc(o->data, capacity);
	if (!data) {
		o->failed = true;
		return false;
	}
	o->data = data;
	o->capacity = capacity;
	return true;
}

void out_bytes(struct out *o, const void *bytes, size_t size)
{
	if (!size || !reserve(o, size))
		return;
	memcpy(o->data + o->size, bytes, size);
	o->size += size;
}

void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

void out_format(struct out *o, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n < 0 || n >= (int)sizeof(text))
		o->failed = true;
	else
		out_bytes(o, text, (size_t)n);
}

void out_number(struct out *o, double value, int digits)
{
	if (!isfinite(value))
		value = 0;
	if (value == floor(value) && fabs(value) < 9e15)
		out_format(o, "%lld", (long long)value);
	else
		out_format(o, "%.*f", digits, value);
}

void out_progress(struct out *o, uint64_t done, uint64_t all)
{
	if (o->permille && all)
		atomic_store_explicit(o->permille, (unsigned int)(MIN(done, all) * 1000 / all),
				      memory_order_relaxed);
}
