/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pickers: a list over the screen that narrows as one types. An entry that
 * cannot be used stays visible, with the reason.
 */
#ifndef UI_DIALOG_H
#define UI_DIALOG_H

#include "sampler/event/event.h"
#include "ui/keys.h"
#include "ui/prompt.h"

struct ui_state;
struct canvas;
struct dialog;

struct dialog_entry {
	char name[EVENT_NAME_MAX]; /* what typing is compared with; clean text */
	char detail[128];	   /* the same */
	uint64_t value;		   /* of the picker */
	bool heading;		   /* cannot be selected */
	bool used;		   /* in use now */
	bool first;		   /* the cursor begins here, not at what is in use */
	bool refused;
};

/* One kind of picker. */
struct dialog_ops {
	const char *title;
	const char *hint; /* beside the empty input line */
	const char *foot; /* NULL: none */
	/* A line above it that changes; NULL: none. */
	void (*status)(const struct ui_state *st, char *buf, size_t size);
	/* Keys of its own, while nothing is typed; true: taken. */
	bool (*key)(struct ui_state *st, uint32_t code);
	bool can_add; /* Tab */
	/* Fill st->dialog.entries anew; called at opening and with each profile. */
	void (*fill)(struct ui_state *st);
	/* Enter on an entry, or on what was typed when nothing matches (entry NULL); true: close.
	 */
	bool (*use)(struct ui_state *st, const struct dialog_entry *entry, bool add);
};
extern const struct dialog_ops dialog_events, dialog_frequency, dialog_processes, dialog_sort;

/* What events that are picked by name count: the event picker's. */
struct dialog_levels {
	bool user, kernel;
	uint8_t precise;
};

struct dialog {
	const struct dialog_ops *ops; /* NULL: closed */
	bool typing;		      /* where keys act: from / on they are text */
	struct dialog_levels levels;
	struct line line;
	struct dialog_entry *entries;
	uint32_t nr, capacity;
	uint32_t *shown; /* indices of entries that match */
	uint32_t nr_shown;
	uint32_t cursor, top, page; /* in shown */
};

void dialog_open(struct ui_state *st, const struct dialog_ops *ops);
void dialog_close(struct ui_state *st);
/* Entries anew; the cursor stays on its entry. */
void dialog_refresh(struct ui_state *st);
void dialog_key(struct ui_state *st, const struct key *key);
/* The mouse: the entry in line @at of those shown. */
void dialog_click(struct ui_state *st, uint32_t at);
void dialog_draw(struct ui_state *st, struct canvas *c);
/* For fill(): a new entry, zeroed; NULL when memory is out. */
struct dialog_entry *dialog_add(struct dialog *d);

#endif
