// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find words for completion: see words.h.
 */
#include "ui/cli/words.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler.h"
#include "symbols/base/array.h"
#include "symbols/base/text.h"

#define ENTRIES_MAX 4096 /* in a directory; events */

void words_fini(struct words_list *w)
{
	for (uint32_t i = 0; i < w->nr; i++)
		free(w->list[i]);
	free(w->list);
	*w = (struct words_list){ NULL, 0, 0, NULL };
}

/* Add @text, unless sanitising changes it: such a word cannot be typed. */
static void add(struct words_list *w, const char *text)
{
	char clean[TEXT_MAX];
	size_t size = strlen(text);

	assert(w->nr <= w->capacity);
	if (!array_reserve(&w->list, &w->capacity, w->nr + 1ULL))
		return;
	if (size >= sizeof(clean) ||
	    strcmp(text_sanitise(clean, sizeof(clean), text, size).str, text))
		return;
	w->list[w->nr] = strdup(text);
	w->nr += w->list[w->nr] != NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct words_list *w)
{
	if (w->nr)
		qsort(w->list, w->nr, sizeof(*w->list), by_text);
}

void words_files(struct words_list *w, const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
	char folder[TEXT_MAX], path[TEXT_MAX + 260];
	unsigned int nr = 0;
	struct dirent *d;
	DIR *dir;

	words_fini(w);
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - word), word);
	dir = opendir(*folder ? folder : ".");
	while (dir && nr++ < ENTRIES_MAX && (d = readdir(dir))) {
		/* Hidden files only after a typed dot. */
		if (strncmp(d->d_name, name, strlen(name)) || (*d->d_name == '.' && *name != '.'))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", folder, d->d_name,
			 d->d_type == DT_DIR ? "/" : "");
		add(w, path);
	}
	if (dir)
		closedir(dir);
	sort(w);
}

void words_events(struct words_list *w, struct sampler *s)
{
	struct sampler_event_state *states = calloc(ENTRIES_MAX, sizeof(*states));
	uint32_t nr = states ? sampler_event_states(s, states, ENTRIES_MAX) : 0;

	words_fini(w);
	for (uint32_t i = 0; i < MIN(nr, (uint32_t)ENTRIES_MAX); i++)
		if (states[i].code >= 0)
			add(w, states[i].info->name);
	free(states);
	sort(w);
}
