// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers for texts, by their hashes.
 */
#include "ui/export/strings.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/keyhash.h"
#include "ui/export/wire.h"

void strings_init(struct strings *s, int field)
{
	*s = (struct strings){ .field = field };
	strings_add(s, TEXT(""));
}

void strings_fini(struct strings *s)
{
	out_fini(&s->out);
	dense_fini(&s->hashes);
	free(s->texts);
}

/* Return the number of @t, or DENSE_NONE. */
static uint32_t find(struct strings *s, struct safe_text t, bool *is_new)
{
	uint64_t key = t.size ? keyhash_name(t.str, t.size) : 0;
	uint32_t n;

	/* Another text may have the same hash. */
	for (;; key++) {
		n = dense_add(&s->hashes, key, is_new);
		if (*is_new || n == DENSE_NONE ||
		    (s->texts[n].size == t.size &&
		     (!t.size || !memcmp(s->texts[n].str, t.str, t.size))))
			return n;
	}
}

/* Make space for text @n. */
static bool reserve(struct strings *s, uint32_t n)
{
	uint32_t nr = s->nr_texts * 2 + 64;
	struct safe_text *texts;

	if (n < s->nr_texts)
		return true;
	texts = reallocarray(s->texts, nr, sizeof(*texts));
	if (!texts)
		return false;
	s->texts = texts;
	s->nr_texts = nr;
	return true;
}

uint64_t strings_add(struct strings *s, struct safe_text t)
{
	bool is_new;
	uint32_t n = s->out.failed ? DENSE_NONE : find(s, t, &is_new);

	if (n == DENSE_NONE || (is_new && !reserve(s, n))) {
		s->out.failed = true;
		return 0;
	}
	if (!is_new)
		return n;
	s->texts[n] = t;
	wire_bytes(&s->out, s->field, t.str, t.size);
	return n;
}
