/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The problems since the start, each kind once, with its fix.
 * Runs on: the builder.
 *
 * Invariant: a kind has one entry, with an id that no other kind ever has; a full table drops new
 * kinds.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_H
#define SAMPLER_PROFILE_MESSAGES_H

#include "sampler/profile/profile.h"

/* With fewer samples a share says nothing. */
#define MESSAGES_TAKEN_MIN 50
#define MESSAGES_MAX	   64
/* A larger share of truncated stacks in the window is a warning, and fixed by --stack-size=auto. */
#define MESSAGES_TRUNCATED_MAX 0.02
#define MESSAGES_PARTS	       8

struct messages {
	struct profile_message items[MESSAGES_MAX];
	uint32_t nr, next_id;
	bool recorded;		      /* of a recording: nothing can be changed */
	bool goes_first;	      /* the sampler threads have a real-time priority */
	const char *remark;	      /* borrowed: a note of the caller; NULL: none */
	struct profile_message spare; /* used when the table is full */
	uint64_t now_ns, before_ns; /* session time of the profile in hand, and of the one before */
	/* The accounts of the last window, in parts; @part is the one being filled. */
	struct messages_part {
		uint64_t span_ns;
		struct profile_account account;
	} parts[MESSAGES_PARTS];
	unsigned int part;
	struct profile_account window; /* their sum */
	uint64_t ring_refused;	       /* a size that the kernel refused; 0: none */
	char banner[256];	       /* the last one noted */
	uint32_t nr_trapped;	       /* matches of traps that were noted */
};

/* Write a share as "2.8%"; "<0.1%" instead of none for a small one. Return @buf. */
const char *messages_share(char buf[static 16], double share);
/* Begin the profile @p: nothing is active. @now_ns: since the session's start. */
void messages_begin(struct messages *n, const struct profile *p, uint64_t now_ns,
		    uint64_t window_ns);
/*
 * Note @key now, @count more times; @fmt: the brief, and the detail until messages_detail(). Never
 * NULL; a full table gives a spare that is thrown away.
 */
struct profile_message *messages_note(struct messages *n, const char *key,
				      enum message_severity severity, uint64_t count,
				      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Take @key, or all that begin with it ("rate-"), as not noted now: the consequence of another. */
void messages_silence(struct messages *n, const char *key);
/* Remove @key from the list. */
void messages_remove(struct messages *n, const char *key);
/* Set the whole sentence of @e. */
void messages_detail(struct profile_message *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Return 1 if the state @key begins with this profile, 0 if it goes on: its count. */
uint64_t messages_begins(const struct messages *n, const char *key);
/* Set the fix of @e: its text, and the action of its key. */
void messages_fix(struct messages *n, struct profile_message *e, enum message_control control,
		  double value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Give @p a copy of all messages. */
void messages_copy(const struct messages *n, struct profile *p);
/* Begin the window again: older samples were taken in another way. */
void messages_restart(struct messages *n);
/*
 * Return the share of the window's stacks that are truncated and would be longer with larger
 * copies; -1: too few samples.
 */
double messages_truncated(const struct messages *n);

#endif
