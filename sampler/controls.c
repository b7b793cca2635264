// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The request queue between the UI and the builder.
 *
 * Runs on: both.
 */
#include "sampler/controls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/wake.h"

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
			     c->kind == CONTROL_TRAP))
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

bool controls_are_busy(struct controls *q)
{
	bool busy;

	pthread_mutex_lock(&q->lock);
	busy = q->busy;
	pthread_mutex_unlock(&q->lock);
	return busy;
}
