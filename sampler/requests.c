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
	return m->past_fd < 0 ? err_set(e, m->past_fd, "cannot start sampling: eventfd: %s",
					strerror(-m->past_fd))
			      : 0;
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

/* Write the first line of the text, made clean, to the status from its byte @at on. */
static void write_status(struct mailbox *m, size_t at, const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
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
