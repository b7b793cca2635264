/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A picker: entries over the screen that narrow while one types. Runs on: the main thread.
 */
#ifndef UI_STATE_PICKER_H
#define UI_STATE_PICKER_H

#include "sampler/event/event.h"
#include "ui/state/line.h"

struct ui_state;
struct dialog;

struct dialog_entry {
	char name[EVENT_NAME_MAX]; /* typed text is compared with it; clean text */
	char detail[128];	   /* the same */
	uint64_t value;		   /* of the picker */
	bool heading;		   /* cannot be selected */
	bool used;		   /* in use now */
	bool first;		   /* the cursor starts here, not at the entry in use */
	bool refused;
};

/* One kind of picker. */
struct dialog_ops {
	const char *title;
	const char *hint; /* beside the empty input line */
	const char *foot; /* NULL: none */
	/* Write a line above @foot that changes; NULL: none. */
	void (*status)(const struct ui_state *st, char *buf, size_t size);
	/* Handle a key while nothing is typed. Return false if it is not for the picker. */
	bool (*key)(struct ui_state *st, uint32_t code);
	bool can_add; /* Tab */
	/* Fill st->dialog.entries; called at opening and with each profile. */
	void (*fill)(struct ui_state *st);
	/* Use an entry, or (NULL) the typed text if none matches. Return true to close. */
	bool (*use)(struct ui_state *st, const struct dialog_entry *entry, bool add);
};
/* The levels of the next picked event, in the event picker. */
struct dialog_levels {
	bool user, kernel;
	uint8_t precise;
};

struct dialog {
	const struct dialog_ops *ops; /* NULL: closed */
	void *data;		      /* of the picker; NULL: none */
	void (*drop)(void *data);
	bool typing; /* in the menu: keys are text after / */
	struct dialog_levels levels;
	struct line line;
	struct dialog_entry *entries;
	uint32_t nr, capacity;
	uint32_t *shown; /* indices of entries that match */
	uint32_t nr_shown;
	uint32_t cursor, top, page; /* in shown */
};

#endif
