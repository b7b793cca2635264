// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Between UI and builder: requests in one direction; profiles, also of the next seconds, messages
 * and the states of events in the other.
 *
 * Runs on: both.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"

int controls_open(struct controls *q, struct err *e)
{
	pthread_mutex_init(&q->lock, NULL);
	q->busy = true;
	q->fd = wake_new();
	return q->fd < 0 ? err_set(e, q->fd, "cannot start sampling: eventfd: %s", strerror(-q->fd))
			 : 0;
}

void controls_close(struct controls *q)
{
	for (uint32_t i = 0; i < q->nr; i++)
		controls_free(&q->items[i]);
	q->nr = 0;
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	pthread_mutex_destroy(&q->lock);
}

void controls_free(const struct control *c)
{
	if (c->kind == CONTROL_TARGET || c->kind == CONTROL_CPUS)
		config_free_spec(c->spec);
	if (c->kind == CONTROL_STRIP)
		free(c->strip);
	if (c->kind == CONTROL_TRAP)
		free(c->rule);
	if (c->kind == CONTROL_RECORD)
		free(c->path);
}

void controls_wake(struct controls *q)
{
	wake_send(q->fd);
}

/* Return the index of the queued request that @c replaces; q->nr: there is none. */
static uint32_t find_replaced(const struct controls *q, const struct control *c)
{
	uint32_t i = 0;

	while (i < q->nr && (q->items[i].kind != c->kind || q->items[i].event != c->event ||
			     c->kind == CONTROL_TRAP || c->kind == CONTROL_RECORD))
		i++;
	return i;
}

void controls_send(struct controls *q, const struct control *c)
{
	uint32_t i;

	assert(c->kind < CONTROL_NR);
	pthread_mutex_lock(&q->lock);
	q->busy = true;
	i = find_replaced(q, c);
	if (i < q->nr) {
		controls_free(&q->items[i]);
		q->nr--;
		memmove(&q->items[i], &q->items[i + 1], (q->nr - i) * sizeof(q->items[0]));
	}
	if (q->nr < CONTROLS_MAX)
		q->items[q->nr++] = *c;
	else
		controls_free(c);
	pthread_mutex_unlock(&q->lock);
	controls_wake(q);
}

uint32_t controls_take(struct controls *q, struct control items[static CONTROLS_MAX])
{
	uint32_t nr;

	wake_clear(q->fd);
	pthread_mutex_lock(&q->lock);
	nr = q->nr;
	memcpy(items, q->items, nr * sizeof(items[0]));
	q->nr = 0;
	pthread_mutex_unlock(&q->lock);
	return nr;
}

void controls_settle(struct controls *q)
{
	pthread_mutex_lock(&q->lock);
	q->busy = q->nr > 0;
	pthread_mutex_unlock(&q->lock);
}

/*
 * One slot for a profile, an eventfd that announces it, and one status text.
 *
 * Runs on: the builder and the UI.
 */

void mailbox_post(struct mailbox *m, struct profile *p)
{
	assert(p);
	/* Release: the profile is complete. Pairs with mailbox_take(). */
	profile_free(atomic_exchange_explicit(&m->profile, p, memory_order_acq_rel));
	wake_send(m->fd);
}

void mailbox_post_past(struct mailbox *m, struct profile *p)
{
	/* Release: as in mailbox_post(); pairs with mailbox_take_past(). */
	profile_free(atomic_exchange_explicit(&m->past, p, memory_order_acq_rel));
	wake_send(m->past_fd);
}

void mailbox_post_strip(struct mailbox *m, struct strip *s)
{
	/* Release: as in mailbox_post(); pairs with mailbox_take_past(). */
	free(atomic_exchange_explicit(&m->strip, s, memory_order_acq_rel));
	wake_send(m->past_fd);
}

void mailbox_take_past(struct mailbox *m, struct profile **p, struct strip **s)
{
	*p = NULL;
	*s = NULL;
	if (!wake_clear(m->past_fd))
		return;
	/* Acquire: profile and strip are complete. */
	*p = atomic_exchange_explicit(&m->past, NULL, memory_order_acquire);
	*s = atomic_exchange_explicit(&m->strip, NULL, memory_order_acquire);
}

/* Write the first line of the text, made clean, to the status from its byte @at on. */
__attribute__((format(printf, 3, 0))) static void write_status(struct mailbox *m, size_t at,
							       const char *fmt, va_list ap)
{
	char text[1024], *line;

	vsnprintf(text, sizeof(text), fmt, ap);
	/* An error has up to three lines. */
	while ((line = strstr(text, "\n  "))) {
		memmove(line + 2, line + 3, strlen(line + 3) + 1);
		memcpy(line, "; ", 2);
	}
	text[strcspn(text, "\n")] = '\0';
	text_sanitise(m->status + at, sizeof(m->status) - at, text, strlen(text));
	m->status_seq++;
}

void mailbox_say(struct mailbox *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_status(m, 0, fmt, ap);
	va_end(ap);
}

void mailbox_add(struct mailbox *m, const char *fmt, ...)
{
	size_t at = m->status_seq != m->status_taken ? strlen(m->status) : 0;
	va_list ap;

	if (at + sizeof("; ") > sizeof(m->status))
		return;
	if (at) {
		memcpy(m->status + at, "; ", sizeof("; "));
		at += strlen("; ");
	}
	va_start(ap, fmt);
	write_status(m, at, fmt, ap);
	va_end(ap);
}

uint32_t mailbox_status(struct mailbox *m, char *text)
{
	memcpy(text, m->status, sizeof(m->status));
	m->status_taken = m->status_seq;
	return m->status_seq;
}

void mailbox_add_banner(struct sampler *s, const char *text)
{
	char before[sizeof(s->banner)];

	memcpy(before, s->banner, sizeof(before));
	snprintf(s->banner, sizeof(s->banner), "%s%s%.150s", text, before[0] ? "; " : "", before);
}

/*
 * A profile of the next seconds, beside the ticks.
 */

/*
 * The list of events for the picker, filled in the background.
 *
 * Runs on: the builder and the UI.
 */

struct event_table {
	struct event_list list;
	atomic_int *codes; /* relaxed: each is independent */
};

static struct event_table *new_table(void)
{
	struct event_table *t = xcalloc(1, sizeof(*t));

	event_list_init(&t->list, "");
	t->codes = xcalloc(t->list.nr, sizeof(*t->codes));
	for (uint32_t i = 0; i < t->list.nr; i++)
		atomic_init(&t->codes[i], 1);
	return t;
}

void event_states_probe(struct event_states *es, pid_t pid, int cpu, bool kernel)
{
	struct event_table *t;
	bool tracepoint = false;
	struct event ev;
	int code = 0;

	if (atomic_load_explicit(&es->table, memory_order_relaxed))
		return;
	t = new_table();
	/* Release: pairs with event_states_get(). */
	atomic_store_explicit(&es->table, t, memory_order_release);
	for (uint32_t i = 0; i < t->list.nr; i++) {
		const struct event_info *info = &t->list.infos[i];

		/* Opening a tracepoint waits for all CPUs: the first one answers for all. */
		if (!tracepoint || strcmp(info->group, EVENT_GROUP_TRACEPOINTS)) {
			code = event_parse(&ev, info->name, NULL);
			tracepoint = !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
			if (!code) {
				ev.kernel &= kernel;
				code = event_probe(&ev, pid, pid < 0 ? cpu : -1);
			}
		}
		atomic_store_explicit(&t->codes[i], code, memory_order_relaxed);
	}
}

static uint32_t fixed_states(struct sampler_event_state *out, uint32_t max)
{
	const struct event_info *info = event_catalogue();
	uint32_t nr = 0;

	for (; info[nr].name; nr++)
		if (nr < max)
			out[nr] = (struct sampler_event_state){ &info[nr], 1 };
	return nr;
}

uint32_t event_states_get(struct event_states *es, struct sampler_event_state *out, uint32_t max,
			  bool *probed)
{
	assert(out || !max);
	/* Acquire: pairs with event_states_probe(), the list is complete. */
	const struct event_table *t = atomic_load_explicit(&es->table, memory_order_acquire);

	*probed = t;
	if (!t)
		return fixed_states(out, max);
	for (uint32_t i = 0; i < MIN(max, t->list.nr); i++)
		out[i] = (struct sampler_event_state){
			.info = &t->list.infos[i],
			.code = atomic_load_explicit(&t->codes[i], memory_order_relaxed),
		};
	return t->list.nr;
}

void event_states_free(struct event_states *es)
{
	struct event_table *t = atomic_exchange_explicit(&es->table, NULL, memory_order_acquire);

	if (!t)
		return;
	event_list_fini(&t->list);
	free(t->codes);
	free(t);
}
