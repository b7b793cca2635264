/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data that the builder passes to the UI: the newest profile, and one line of text.
 *
 * Threads: mailbox_take() by the UI, everything else by the builder.
 */
#ifndef SAMPLER_MAILBOX_H
#define SAMPLER_MAILBOX_H

#include <stdatomic.h>
#include <stdint.h>

struct err;
struct profile;
struct strip;

struct mailbox {
	_Atomic(struct profile *) profile; /* exchanged whole: release by builder, acquire by UI */
	int fd;				   /* eventfd: readable while a profile is in it */
	/* The same for the past: a range, and the heat strip. */
	_Atomic(struct profile *) past;
	_Atomic(struct strip *) strip;
	int past_fd;
	char status[256];      /* clean text; "": none yet */
	uint32_t status_seq;   /* counts up with each status */
	uint32_t status_taken; /* of the newest one that a profile has */
};

/* Open the eventfd. 0 or -errno with a sentence. */
int mailbox_open(struct mailbox *m, struct err *e);
/* Close it, and free a profile that was not taken. */
void mailbox_close(struct mailbox *m);
/* Put @p in; one that was not taken is freed. */
void mailbox_post(struct mailbox *m, struct profile *p);
/* Take the profile out; NULL: there is none. */
struct profile *mailbox_take(struct mailbox *m);
/* The same for a range of the past, and for the heat strip. */
void mailbox_post_past(struct mailbox *m, struct profile *p);
void mailbox_post_strip(struct mailbox *m, struct strip *s);
/* Take both out, each NULL if there is none. */
void mailbox_take_past(struct mailbox *m, struct profile **p, struct strip **s);
/* Set the status of the next profile, the answer to a request: the first line of the text, made
 * clean.
 */
void mailbox_say(struct mailbox *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add what was noticed at a tick, after "; " where no profile has the status yet. */
void mailbox_add(struct mailbox *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Copy the status to @text, of the size of @status; return its number. */
uint32_t mailbox_status(struct mailbox *m, char *text);

#endif
