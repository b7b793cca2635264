// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One slot for a profile, an eventfd that announces it, and one status text.
 *
 * Runs on: the builder and the UI.
 */
#include "sampler/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "symbols/base/wake.h"

int mailbox_open(struct mailbox *m, struct err *e)
{
	m->fd = wake_new();
	m->past_fd = m->fd < 0 ? m->fd : wake_new();
	return m->past_fd < 0 ? err_set(e, m->past_fd, "eventfd: %s", strerror(-m->past_fd)) : 0;
}

void mailbox_close(struct mailbox *m)
{
	profile_free(atomic_exchange_explicit(&m->profile, NULL, memory_order_acquire));
	profile_free(atomic_exchange_explicit(&m->past, NULL, memory_order_acquire));
	free(atomic_exchange_explicit(&m->strip, NULL, memory_order_acquire));
	if (m->fd >= 0)
		close(m->fd);
	if (m->past_fd >= 0)
		close(m->past_fd);
	m->fd = m->past_fd = -1;
}

void mailbox_post(struct mailbox *m, struct profile *p)
{
	assert(p);
	/* Release: the profile is complete. Pairs with mailbox_take(). */
	profile_free(atomic_exchange_explicit(&m->profile, p, memory_order_acq_rel));
	wake_send(m->fd);
}

struct profile *mailbox_take(struct mailbox *m)
{
	if (!wake_clear(m->fd))
		return NULL;
	/* Acquire: pairs with mailbox_post(), the profile is complete. */
	return atomic_exchange_explicit(&m->profile, NULL, memory_order_acquire);
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

void mailbox_say(struct mailbox *m, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	text_sanitise(m->status, sizeof(m->status), text, strlen(text));
	m->status_seq++;
}
