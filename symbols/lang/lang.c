// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of languages and reasons; the life of descriptions.
 *
 * Runs on: any thread.
 */
#include "symbols/lang/lang.h"

#include <stdlib.h>

const char lang_untried[] = "functions of scripts are guesses: this version of the interpreter, or "
			    "this kind of CPU, is untested";

const char *lang_name(enum lang_kind kind)
{
	static const char *const names[LANG_NR] = {
		"none", "python", "php", "ruby", "perl", "node"
	};

	return (unsigned int)kind < LANG_NR ? names[kind] : "?";
}

char lang_letter(enum lang_kind kind)
{
	static const char letters[LANG_NR] = { '?', 'y', 'h', 'r', 'l', 'n' };

	return (unsigned int)kind < LANG_NR ? letters[kind] : '?';
}

const char *lang_none_name(enum lang_none why)
{
	static const char *const names[LANG_NONE_NR] = {
		[LANG_NONE_NO_READER] = "not_read",	[LANG_NONE_VERSION] = "unknown_version",
		[LANG_NONE_REFUSED] = "memory_refused", [LANG_NONE_NO_THREAD] = "unknown_thread",
		[LANG_NONE_NO_FRAMES] = "no_frames",	[LANG_NONE_BAD_CHAIN] = "bad_chain",
		[LANG_NONE_MISMATCH] = "mismatch",	[LANG_NONE_NO_ROOM] = "no_room",
	};

	return (unsigned int)why < LANG_NONE_NR ? names[why] : "?";
}

struct lang_desc *lang_desc_get(struct lang_desc *d)
{
	if (d)
		atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void lang_desc_put(struct lang_desc *d)
{
	/* Acquire and release: all uses precede the free. */
	if (d && atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1)
		free(d);
}
