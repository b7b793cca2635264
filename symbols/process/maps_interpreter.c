// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that are interpreters: queued when their files are mapped, described
 * by the loader, published with the process.
 *
 * Runs on: the holder of the lock of the maps.
 */
#include "symbols/process/maps.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/lang/describe.h"
#include "symbols/process/maps_state.h"

#define INTERPRETERS_MAX 65536u

/* Queue it for the loader. Without memory its code has no names. */
static void want(struct maps *m, const struct process *p, const struct mapping *mapping)
{
	if (m->nr_interpreters == INTERPRETERS_MAX ||
	    !array_reserve(&m->interpreters, &m->room_interpreters, m->nr_interpreters + 1ull))
		return;
	object_get(mapping->object);
	m->interpreters[m->nr_interpreters++] =
		(struct maps_interpreter){ p->pid, p->id, *mapping };
}

/* A JVM is known by its file: its code cache is read by hotspots.h. */
static void note_jvm(struct process *p)
{
	struct lang_desc *desc;

	if (p->interpreters[0].object || atomic_load_explicit(&p->lang, memory_order_relaxed))
		return;
	desc = calloc(1, sizeof(*desc));
	if (!desc)
		return;
	atomic_init(&desc->refs, 1);
	desc->info.kind = LANG_JAVA;
	/* As in maps_describe(). */
	atomic_store_explicit(&p->lang, desc, memory_order_release);
}

void maps_note_interpreter(struct maps *m, struct process *p, const struct mapping *mapping)
{
	if (mapping->object && mapping->object->identity.kind == OBJECT_FILE &&
	    !strcmp(mapping->object->name.str, "libjvm.so"))
		note_jvm(p);
	if (m->no_proc || !mapping->object || mapping->object->identity.kind != OBJECT_FILE ||
	    describe_kind(mapping->object) == LANG_NONE)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->interpreters); i++) {
		if (p->interpreters[i].object == mapping->object)
			return;
		if (p->interpreters[i].object)
			continue;
		object_get(mapping->object);
		p->interpreters[i] = *mapping;
		want(m, p, mapping);
		return;
	}
}

void maps_note_object(struct maps *m, const struct object *object)
{
	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++) {
		struct process *p =
			atomic_load_explicit(&m->procs.processes[i], memory_order_relaxed);

		for (; p; p = atomic_load_explicit(&p->next, memory_order_relaxed)) {
			const struct mapping *mapping = space_find_object(
				atomic_load_explicit(&p->space, memory_order_relaxed), object);

			if (mapping && !p->doomed.is_doomed)
				maps_note_interpreter(m, p, mapping);
		}
	}
	pthread_mutex_unlock(&m->lock);
}

void maps_inherit_interpreter(struct maps *m, struct process *child, struct process *parent)
{
	struct lang_desc *desc = atomic_load_explicit(&parent->lang, memory_order_relaxed);

	memcpy(child->interpreters, parent->interpreters, sizeof(child->interpreters));
	atomic_store_explicit(&child->lang, lang_desc_get(desc), memory_order_relaxed);
	for (size_t i = 0; i < ARRAY_SIZE(child->interpreters); i++) {
		if (!child->interpreters[i].object)
			continue;
		object_get(child->interpreters[i].object);
		if (!desc || desc->info.reason)
			want(m, child, &child->interpreters[i]);
	}
}

bool maps_is_undescribed(struct maps *m, pid_t pid)
{
	const struct process *p;
	bool is;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, UINT64_MAX);
	is = p && p->interpreters[0].object &&
	     !atomic_load_explicit(&p->lang, memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	return is;
}

bool maps_next_interpreter(struct maps *m, struct maps_interpreter *out)
{
	bool any;

	pthread_mutex_lock(&m->lock);
	any = m->nr_interpreters;
	if (any)
		*out = m->interpreters[--m->nr_interpreters];
	pthread_mutex_unlock(&m->lock);
	return any;
}

/* Return whether @desc is the better one: one that can be read replaces one that cannot. */
static bool is_better(const struct process *p, const struct lang_desc *desc)
{
	const struct lang_desc *before = atomic_load_explicit(&p->lang, memory_order_relaxed);

	return !before || (before->info.reason && !desc->info.reason && !p->unread);
}

void maps_describe(struct maps *m, pid_t pid, uint32_t process, struct lang_desc *desc)
{
	struct process *p;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, UINT64_MAX);
	/* Else: ended, replaced, or described by its other file. */
	if (p && p->id == process && is_better(p, desc)) {
		/* Readers may use the one before. */
		p->unread = atomic_load_explicit(&p->lang, memory_order_relaxed);
		/* Publishes the description; pairs with maps_find(). */
		atomic_store_explicit(&p->lang, desc, memory_order_release);
		desc = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	lang_desc_put(desc);
}
