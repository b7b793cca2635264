// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print completion for shells, made from the table of options.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/completion.h"

#include <argp.h>
#include <ctype.h>
#include <string.h>

#include "ui/cli/options.h"

/* Values of options; lists from proftop are computed when completing. */
static const struct {
	const char *option, *words;
} values[] = {
	{ "event", "$(proftop --list-events 2>/dev/null | sed -n 's/^  \\([^ ]*\\).*/\\1/p')" },
	{ "sort", "$(proftop --list-columns 2>/dev/null | sed 's/ .*//')" },
	{ "color", "auto always never" },
	{ "theme", "auto dark light color-blind mono" },
	{ "format", "text ndjson perf-script" },
	{ "fields", "brstack brstacksym addr weight data_src phys_addr data_page_size "
		    "code_page_size" },
	{ "unwinder", "row step" },
	{ "frames", "language both native" },
	{ "languages", "java python php ruby perl node all none" },
	{ "completion", "bash zsh fish" },
	{ "user", "$(cut -d: -f1 /etc/passwd)" },
	{ "pid", "$(ps -eo pid= 2>/dev/null)" },
};

static const char *words_of(const char *option)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (!strcmp(values[i].option, option))
			return values[i].words;
	return NULL;
}

static bool takes_file(const struct argp_option *o)
{
	return o->arg && !strcmp(o->arg, "FILE");
}

static bool has_letter(const struct argp_option *o)
{
	return o->key > 0 && o->key < 128 && isalnum(o->key);
}

static void print_bash(FILE *out)
{
	fputs("_proftop()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tif [ \"$cur\" = = ]; then cur=; fi\n"
	      "\tif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	      "\tcase $prev in\n",
	      out);
	for (const struct argp_option *o = options_table(); o->name || o->doc; o++) {
		const char *words = o->name ? words_of(o->name) : NULL;

		if (!o->name || !o->arg)
			continue;
		fprintf(out, "\t--%s", o->name);
		if (has_letter(o))
			fprintf(out, "|-%c", o->key);
		if (takes_file(o))
			fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", out);
		else
			fprintf(out, ") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n",
				words ? words : "");
	}
	fputs("\tesac\n\tCOMPREPLY=($(compgen -W \"", out);
	for (const struct argp_option *o = options_table(); o->name || o->doc; o++)
		if (o->name)
			fprintf(out, "--%s ", o->name);
	fputs("\" -- \"$cur\"))\n}\ncomplete -F _proftop proftop\n", out);
}

/* Print text for single quotes, without zsh's special characters. */
static void print_quoted(FILE *out, const char *text)
{
	for (; *text; text++)
		if (!strchr("'[]:\\", *text))
			fputc(*text, out);
}

static void print_zsh(FILE *out)
{
	fputs("#compdef proftop\n_arguments", out);
	for (const struct argp_option *o = options_table(); o->name || o->doc; o++) {
		const char *words = o->name ? words_of(o->name) : NULL;

		if (!o->name)
			continue;
		fprintf(out, " \\\n  '--%s%s[", o->name, o->arg ? "=" : "");
		print_quoted(out, o->doc);
		fputc(']', out);
		if (takes_file(o))
			fputs(":file:_files", out);
		else if (words && *words != '$')
			fprintf(out, ":%s:(%s)", o->arg, words);
		else if (o->arg)
			fprintf(out, ":%s:", o->arg);
		fputc('\'', out);
	}
	fputs(" \\\n  '*::command:_normal'\n", out);
}

static void print_fish(FILE *out)
{
	for (const struct argp_option *o = options_table(); o->name || o->doc; o++) {
		const char *words = o->name ? words_of(o->name) : NULL;

		if (!o->name)
			continue;
		fprintf(out, "complete -c proftop -l %s", o->name);
		if (has_letter(o))
			fprintf(out, " -s %c", o->key);
		if (takes_file(o))
			fputs(" -r", out);
		else if (o->arg)
			fputs(" -x", out);
		if (words && *words != '$')
			fprintf(out, " -a '%s'", words);
		fputs(" -d '", out);
		print_quoted(out, o->doc);
		fputs("'\n", out);
	}
}

void completion_print(FILE *out, const char *shell)
{
	if (!strcmp(shell, "bash"))
		print_bash(out);
	else if (!strcmp(shell, "zsh"))
		print_zsh(out);
	else
		print_fish(out);
}
