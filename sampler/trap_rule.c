// SPDX-License-Identifier: GPL-2.0-or-later
/* Parse the rule of a trap. Pure. */
#include "sampler/trap_rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct subject {
	const char *word;
	enum trap_subject subject;
	enum { NAME_NO, NAME_YES, NAME_MAYBE } name;
} subjects[] = {
	{ "cpu", TRAP_CPU, NAME_MAYBE },   { "self", TRAP_SELF, NAME_YES },
	{ "total", TRAP_TOTAL, NAME_YES }, { "new", TRAP_NEW, NAME_YES },
	{ "lost", TRAP_LOST, NAME_NO },	   { "wait", TRAP_WAIT, NAME_MAYBE },
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* Parse "cpu", "cpu:NAME", "self:NAME" ...; a name ends before the operator or " for ". */
static const char *parse_subject(struct trap_rule *r, const char *text)
{
	size_t word = strcspn(text, ": \t<>");
	const char *end = text + word;

	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
		const struct subject *s = &subjects[i];

		if (strlen(s->word) != word || memcmp(s->word, text, word))
			continue;
		r->subject = s->subject;
		if (*end != ':')
			return s->name == NAME_YES ? NULL : end;
		if (s->name == NAME_NO)
			return NULL;
		text = end + 1;
		/* C++ names have < and > in them: an operator is between blanks. */
		for (end = text; *end; end++)
			if (!strncmp(end, " > ", 3) || !strncmp(end, " < ", 3) ||
			    !strncmp(end, " for ", 5))
				break;
		if (end == text || (size_t)(end - text) >= sizeof(r->name))
			return NULL;
		memcpy(r->name, text, (size_t)(end - text));
		return end;
	}
	return NULL;
}

/* Parse "> 50" or "< 5.5%". NULL: it is something else. */
static const char *parse_percent(struct trap_rule *r, const char *s)
{
	char *end;

	r->below = *s == '<';
	s = skip_blanks(s + 1);
	if (*s < '0' || *s > '9')
		return NULL;
	r->percent = strtod(s, &end);
	return r->percent <= 1e6 ? end + (*end == '%') : NULL;
}

int trap_rule_parse(struct trap_rule *out, const char *text, struct err *e)
{
	struct trap_rule r = { .percent = 0 };
	const char *s = strlen(text) < sizeof(r.text) ? parse_subject(&r, skip_blanks(text)) : NULL;

	s = s ? skip_blanks(s) : NULL;
	if (s && (*s == '>' || *s == '<'))
		s = parse_percent(&r, s);
	s = s ? skip_blanks(s) : NULL;
	if (s && !strncmp(s, "for ", 4)) {
		s = skip_blanks(s + 4);
		if (time_parse(s, strcspn(s, " \t"), &r.for_ns))
			s = NULL;
		else
			s = skip_blanks(s + strcspn(s, " \t"));
	}
	if (!s || *s)
		return err_set(e, -EINVAL,
			       "invalid rule '%.100s'\n"
			       "  SUBJECT [> PERCENT] [for TIME], as in 'total:parse > 50 for 1s'\n"
			       "  SUBJECT: cpu, cpu:COMM, self:FUNCTION, total:FUNCTION, "
			       "new:FUNCTION, wait, wait:COMM, lost",
			       text);
	memcpy(r.text, text, strlen(text));
	*out = r;
	return 0;
}
