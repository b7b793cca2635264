// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line. Runs on: the main thread.
 *
 * Commands with an argument have a table (command_table.c); all others are
 * the actions of the key table: every key has a name. A name in both is the
 * action if it has no argument.
 */
#include "ui/command.h"

#include <stdio.h>
#include <string.h>

#include "ui/actions.h"
#include "ui/command_table.h"

/* Return the @i-th command name; NULL: no more. */
static const char *name_at(unsigned int i)
{
	const struct key_binding *b = key_table();
	unsigned int nr = 0;

	for (; command_table[nr].name; nr++)
		if (nr == i)
			return command_table[nr].name;
	for (; b->action; b++)
		if (b->contexts && !command_find(b->name) && i-- == nr)
			return b->name;
	return NULL;
}

static enum action action_of(const char *name)
{
	for (const struct key_binding *b = key_table(); b->action; b++)
		if (b->contexts && !strcmp(b->name, name))
			return b->action;
	/* As in editors and pagers. */
	return !strcmp(name, "q") ? ACT_QUIT : ACT_NONE;
}

/* Copy the first word into @name. Return the rest. */
static const char *split(const char *text, char *name, size_t size)
{
	size_t n;

	text += strspn(text, " ");
	n = strcspn(text, " ");
	snprintf(name, size, "%.*s", (int)n, text);
	text += n;
	return text + strspn(text, " ");
}

/* Report an unknown command, and the one probably meant. */
static void say_unknown(struct ui_state *st, const char *name)
{
	struct text_like like = { .text = name };
	const char *other, *meant;

	for (unsigned int i = 0; (other = name_at(i)); i++)
		text_like(&like, other);
	/* Long names are often typed in part. */
	meant = like.begins ? like.begins : like.found;
	if (meant)
		ui_state_say(st, true, "unknown command '%.100s'; did you mean %s?", name, meant);
	else
		ui_state_say(st, true, "unknown command '%.100s' (Tab completes)", name);
}

void command_run(struct ui_state *st, const char *text)
{
	char name[LINE_SIZE], arg[LINE_SIZE];
	const struct command *command;
	enum action action;
	size_t n;

	snprintf(arg, sizeof(arg), "%s", split(text, name, sizeof(name)));
	for (n = strlen(arg); n && arg[n - 1] == ' '; n--)
		arg[n - 1] = '\0';
	if (!name[0])
		return;
	command = command_find(name);
	action = action_of(name);
	if (command && (arg[0] || command->alone))
		command->run(st, arg);
	else if (command && !action)
		ui_state_say(st, true, "%s needs an argument: %s", name, command->argument);
	else if (action && arg[0])
		ui_state_say(st, true, "%s takes no argument", name);
	else if (action)
		actions_do(st, action, K_ENTER);
	else
		say_unknown(st, name);
}

/* ---- completion ---- */

/* Return whether the command's name is incomplete. */
static bool in_name(const char *text)
{
	text += strspn(text, " ");
	return !text[strcspn(text, " ")];
}

/* Find the command in @text, and the start of its last word. NULL: none, or no word yet. */
static const struct command *command_at(const char *text, const char **word)
{
	char name[LINE_SIZE];
	const struct command *command;

	*word = text + strspn(text, " ");
	if (in_name(text))
		return NULL;
	*word = split(text, name, sizeof(name));
	command = command_find(name);
	for (const char *p = *word; command && command->breaks && *p; p++)
		if (strchr(command->breaks, *p))
			*word = p + 1;
	return command;
}

/* Return the @i-th candidate for the last word of @text, and the start of that word. */
static const char *candidate(const struct ui_state *st, const char *text, unsigned int i,
			     const char **word, char buf[static COMMAND_WORD_MAX])
{
	const struct command *command = command_at(text, word);
	char before[LINE_SIZE];
	const char *rest;

	if (in_name(text))
		return name_at(i);
	if (!command || !command->word || (command->gather && st->words.of != command))
		return NULL;
	rest = split(text, before, sizeof(before));
	snprintf(before, sizeof(before), "%.*s", (int)(*word - rest), rest);
	return command->word(st, before, i, buf);
}

static bool begins(const char *candidate, const char *word)
{
	return !strncmp(candidate, word, strlen(word));
}

void command_gather(struct ui_state *st, const char *text)
{
	const char *word;
	const struct command *command = command_at(text, &word);

	if (!command || !command->gather)
		return;
	if (command->gather(st, command, word))
		st->words.of = command;
}

const char *command_hint(const char *text)
{
	const char *word;
	const struct command *command = command_at(text, &word);

	if (in_name(text))
		command = command_find(word);
	return command && (in_name(text) || !*word) ? command->argument : NULL;
}

bool command_complete(const struct ui_state *st, const char *text, char *out, size_t size)
{
	char buf[COMMAND_WORD_MAX], first[LINE_SIZE] = "";
	const char *word, *name;
	size_t common = 0;
	bool several = false, any = false;

	for (unsigned int i = 0; (name = candidate(st, text, i, &word, buf)); i++) {
		size_t n = 0;

		if (!*name || !begins(name, word))
			continue;
		if (!any) {
			snprintf(first, sizeof(first), "%s", name);
			common = strlen(first);
			any = true;
			continue;
		}
		several |= strcmp(first, name) != 0;
		while (n < common && first[n] == name[n])
			n++;
		common = n;
	}
	/* A word that is cut is another word. */
	if (!any || (size_t)(word - text) + common + 2 > size)
		return false;
	snprintf(out, size, "%.*s%.*s%s", (int)(word - text), text, (int)common, first,
		 !several && in_name(text) && command_find(first) ? " " : "");
	return true;
}

/* Return whether @name is in @list. Several processes have one cgroup. */
static bool is_listed(const char *list, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = list; size && (p = strstr(p, name)); p += size)
		if ((p == list || p[-1] == ' ') && (p[size] == ' ' || !p[size]))
			return true;
	return false;
}

unsigned int command_candidates(const struct ui_state *st, const char *text, char *out, size_t size)
{
	const char *word, *name;
	char buf[COMMAND_WORD_MAX];
	unsigned int nr = 0;
	size_t at = 0;

	*out = '\0';
	for (unsigned int i = 0; (name = candidate(st, text, i, &word, buf)); i++) {
		/* The word itself says nothing; some have no name. */
		if (!*name || !begins(name, word) || !strcmp(name, word) || is_listed(out, name))
			continue;
		if (at + strlen(name) + 2 < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", nr ? " " : "", name);
		nr++;
	}
	return nr;
}
