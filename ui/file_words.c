// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files that complete a command: see file_words.h.
 */
#include "ui/file_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ui/actions_tools.h"
#include "ui/cli/file_work.h"

struct words_work {
	struct file_work work; /* first: the two are cast */
	struct ui_state *st;
	const void *of;
	char word[LINE_SIZE];
	struct words_list found;
};

static int run(struct file_work *work, struct err *e)
{
	struct words_work *w = (struct words_work *)work;

	words_files(&w->found, w->word);
	return 0;
}

static int finish(struct file_work *work, struct err *e)
{
	struct words_work *w = (struct words_work *)work;
	struct ui_state *st = w->st;

	words_fini(&st->words);
	st->words = w->found;
	st->words.of = w->of;
	w->found = (struct words_list){ NULL, 0, 0, NULL };
	return 0;
}

static void free_work(struct file_work *work)
{
	struct words_work *w = (struct words_work *)work;

	words_fini(&w->found);
	free(w);
}

bool file_words_gather(struct ui_state *st, const void *of, const char *word)
{
	struct words_work *w = calloc(1, sizeof(*w));
	struct err e;
	int code;

	words_fini(&st->words);
	if (w) {
		w->work = (struct file_work){
			.run = run,
			.finish = finish,
			.free = free_work,
			.doing = "reading the folder",
		};
		w->st = st;
		w->of = of;
		snprintf(w->word, sizeof(w->word), "%s", word);
	}
	code = file_worker_start(st->folders, w ? &w->work : NULL, time_now_ns(), &e);
	if (code == -EBUSY) {
		/* What comes is of another line. */
		st->prompt.tabbed[0] = '\0';
		ui_state_say(st, false, "the last folder is still being read");
	} else if (code < 0) {
		ui_state_say_error(st, &e);
	}
	if (!code && file_worker_wait(st->folders))
		actions_file_result(st, st->folders);
	return false;
}
