// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of languages and reasons; the life of descriptions.
 *
 * Runs on: any thread.
 */
#include "symbols/lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char lang_untried[] = "functions of scripts are guesses: this version of the interpreter, or "
			    "this kind of CPU, is untested";

const char *lang_name(enum lang_kind kind)
{
	static const char *const names[LANG_NR] = {
		"none", "python", "php", "ruby", "perl", "node"
	};

	if (kind == LANG_JAVA)
		return "java";
	return (unsigned int)kind < LANG_NR ? names[kind] : "?";
}

const char *lang_title(char buf[static LANG_TITLE_MAX], uint32_t packed)
{
	static const char *const titles[LANG_NR] = { "interpreter", "Python", "PHP",
						     "Ruby",	    "Perl",   "V8" };
	uint32_t kind = packed & 0xff;

	if (packed >> 16)
		snprintf(buf, LANG_TITLE_MAX, "%s %u.%u", titles[kind < LANG_NR ? kind : 0],
			 packed >> 24, packed >> 16 & 255);
	else
		snprintf(buf, LANG_TITLE_MAX, "%s", titles[kind < LANG_NR ? kind : 0]);
	return buf;
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
		[LANG_NONE_GC] = "gc_thread",		[LANG_NONE_COMPILER] = "compiler_thread",
		[LANG_NONE_VM] = "vm_thread",		[LANG_NONE_NEW_CODE] = "code_not_read",
	};

	return (unsigned int)why < LANG_NONE_NR ? names[why] : "?";
}

/* Names of HotSpot's own threads, as cut to 15 bytes (JDK source: os::set_native_thread_name()). */
enum lang_none lang_jvm_thread(const char *comm)
{
	static const struct {
		const char *begin;
		enum lang_none kind;
	} threads[] = {
		{ "GC Thread#", LANG_NONE_GC },
		{ "G1 ", LANG_NONE_GC },
		{ "ParGC Thread#", LANG_NONE_GC },
		{ "Shenandoah ", LANG_NONE_GC },
		{ "ZWorker", LANG_NONE_GC },
		{ "ZDriver", LANG_NONE_GC },
		{ "ZDirector", LANG_NONE_GC },
		{ "ZUncommitter", LANG_NONE_GC },
		{ "ZUnmapper", LANG_NONE_GC },
		{ "ZStat", LANG_NONE_GC },
		{ "XWorker", LANG_NONE_GC },
		{ "XDriver", LANG_NONE_GC },
		{ "RuntimeWorker#", LANG_NONE_GC },
		{ "StringDedupProc", LANG_NONE_GC },
		{ "C1 CompilerThre", LANG_NONE_COMPILER },
		{ "C2 CompilerThre", LANG_NONE_COMPILER },
		{ "JVMCI CompilerT", LANG_NONE_COMPILER },
		{ "Sweeper thread", LANG_NONE_COMPILER },
		{ "VM Thread", LANG_NONE_VM },
		{ "VM Periodic Tas", LANG_NONE_VM },
		{ "Service Thread", LANG_NONE_VM },
		{ "Monitor Deflati", LANG_NONE_VM },
		{ "Signal Dispatch", LANG_NONE_VM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		if (!strncmp(comm, threads[i].begin, strlen(threads[i].begin)))
			return threads[i].kind;
	return LANG_NONE_NO_FRAMES;
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
