// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The list of messages, and the accounts of the last window.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/messages.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct profile_message *entry_of(struct messages *n, const char *key)
{
	struct profile_message *e;

	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return &n->items[i];
	if (n->nr == MESSAGES_MAX)
		return NULL;
	e = &n->items[n->nr];
	*e = (struct profile_message){ .id = n->next_id++, .first_ns = n->now_ns };
	n->nr++;
	snprintf(e->key, sizeof(e->key), "%s", key);
	return e;
}

static void clean(char *dst, size_t size, const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	text_sanitise(dst, size, text, strlen(text));
}

const char *messages_share(char buf[static 16], double share)
{
	if (share > 0 && share < 0.0005)
		snprintf(buf, 16, "<0.1%%");
	else
		snprintf(buf, 16, "%.1f%%", 100 * share);
	return buf;
}

struct profile_message *messages_note(struct messages *n, const char *key,
				      enum message_severity severity, uint64_t count,
				      const char *fmt, ...)
{
	struct profile_message *e = entry_of(n, key);
	va_list ap;

	assert(strlen(key) < sizeof(e->key));
	e = e ? e : &n->spare;
	va_start(ap, fmt);
	clean(e->brief, sizeof(e->brief), fmt, ap);
	va_end(ap);
	memset(e->detail, 0, sizeof(e->detail));
	memcpy(e->detail, e->brief, sizeof(e->brief));
	e->severity = severity;
	e->count += count;
	e->last_ns = n->now_ns;
	e->active = true;
	e->control = MESSAGE_NONE;
	e->keys = 0;
	e->module = 0;
	e->fix[0] = '\0';
	return e;
}

void messages_silence(struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strncmp(n->items[i].key, key, strlen(key)))
			n->items[i].active = false;
}

void messages_remove(struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++) {
		if (strcmp(n->items[i].key, key) != 0)
			continue;
		n->nr--;
		memmove(&n->items[i], &n->items[i + 1], (n->nr - i) * sizeof(n->items[0]));
		return;
	}
}

void messages_detail(struct profile_message *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->detail, sizeof(e->detail), fmt, ap);
	va_end(ap);
}

uint64_t messages_begins(const struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return n->items[i].last_ns != n->before_ns;
	return 1;
}

void messages_fix(struct messages *n, struct profile_message *e, enum message_control control,
		  double value, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->fix, sizeof(e->fix), fmt, ap);
	va_end(ap);
	e->control = n->recorded && control != MESSAGE_MODULES && control != MESSAGE_CPUS
			     ? MESSAGE_NONE
			     : control;
	e->value = value;
}

static void add(struct profile_account *sum, const struct profile_account *a)
{
	sum->taken += a->taken;
	sum->truncated += a->truncated;
	sum->gaps += a->gaps;
	sum->broken += a->broken;
	sum->guessed += a->guessed;
	sum->pending += a->pending;
}

/* Add a tick to the sums of the last window, exact to an eighth of the window. */
static void slide(struct messages *n, const struct profile *p, uint64_t window_ns)
{
	uint64_t span_ns = 0;

	if (n->parts[n->part].span_ns + p->interval_ns / 2 > window_ns / MESSAGES_PARTS) {
		n->part = (n->part + 1) % MESSAGES_PARTS;
		n->parts[n->part] = (struct messages_part){ 0 };
	}
	n->parts[n->part].span_ns += p->interval_ns;
	add(&n->parts[n->part].account, &p->account);
	n->window = (struct profile_account){ 0 };
	for (unsigned int i = 0; i < MESSAGES_PARTS && span_ns < window_ns; i++) {
		const struct messages_part *part =
			&n->parts[(n->part + MESSAGES_PARTS - i) % MESSAGES_PARTS];

		add(&n->window, &part->account);
		span_ns += part->span_ns;
	}
}

void messages_restart(struct messages *n)
{
	memset(n->parts, 0, sizeof(n->parts));
	n->window = (struct profile_account){ 0 };
}

double messages_truncated(const struct messages *n)
{
	return n->window.taken < MESSAGES_TAKEN_MIN
		       ? -1
		       : (double)(n->window.truncated - n->window.gaps) / (double)n->window.taken;
}

void messages_begin(struct messages *n, const struct profile *p, uint64_t now_ns,
		    uint64_t window_ns)
{
	n->before_ns = n->now_ns;
	n->now_ns = now_ns;
	for (uint32_t i = 0; i < n->nr; i++)
		n->items[i].active = false;
	slide(n, p, window_ns);
}

void messages_copy(const struct messages *n, struct profile *p)
{
	assert(n->nr <= MESSAGES_MAX);
	p->nr_messages = n->nr;
	p->messages = xcalloc(n->nr, sizeof(*p->messages));
	memcpy(p->messages, n->items, n->nr * sizeof(*p->messages));
}
