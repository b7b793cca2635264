// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs that describe interpreters, some at a time.
 *
 * Runs on: the loader.
 */
#include "symbols/interpreters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols/base/wake.h"
#include "symbols/lang/describe.h"

/* One that takes longer hangs: it is left behind. Calls of its worker have limits of their own. */
#define DESCRIBE_NS 2000000000ULL
#define WORKER_NS   60000000000ULL
/* Large files are read one after another. */
#define AGAIN_NS  200000000ULL
#define TRIES_MAX 50U

/* Lend the description of @want out. False: no helper is free. */
static bool start(struct interpreters *in, struct interpreters_job *job,
		  const struct maps_interpreter *want, uint64_t now_ns)
{
	const struct object *object = want->mapping.object;
	struct describe_where where = {
		.pid = want->pid,
		.process = want->process,
		.start = want->mapping.start,
		.end = want->mapping.end,
		.offset = want->mapping.offset,
		.maj = object->identity.maj,
		.min = object->identity.min,
		.ino = object->identity.ino,
	};
	struct object_sighting seen;

	/* Not the name of the last sighting: any process can map the file by another one. */
	where.kind = describe_kind(object);
	snprintf(where.name, sizeof(where.name), "%s", object->name.str);
	objects_sighting(in->objects, object, &seen);
	where.path = seen.path;
	job->describe = seen.path ? describe_new(&where) : NULL;
	if (!job->describe) {
		free(seen.path);
		object_put(want->mapping.object);
		return true;
	}
	job->since_ns = now_ns;
	job->tries = 0;
	job->object = want->mapping.object;
	if (!in->helpers)
		job->describe->job.run(&job->describe->job);
	else if (helpers_start(in->helpers, &job->describe->job)) {
		job->describe->job.drop(&job->describe->job);
		job->describe = NULL;
		object_put(want->mapping.object);
		return false;
	}
	return true;
}

/* Return how to have names of functions that are not read. */
static const char *other_fix(const struct lang_process *p)
{
	if (p->kind == LANG_NODE)
		return "node --perf-basic-prof writes the names";
	/* It writes a perf map since 3.12. */
	if (p->kind == LANG_PYTHON && p->version >= 0x030c0000)
		return "python -X perf writes the names";
	return "none: proftop --check lists the versions that are read";
}

/* Note why functions of the language have no names, or guessed ones. */
static void explain(struct object *object, const struct lang_process *p)
{
	const char *untried = p->untried ? lang_untried : NULL;
	const char *fix = !p->reason   ? untried ? "none: native frames are exact" : NULL
			  : p->refused ? "sudo proftop, or cap_sys_ptrace (make install SETCAP=1)"
				       : other_fix(p);

	atomic_store_explicit(&object->language_version, lang_packed_version(p->kind, p->version),
			      memory_order_relaxed);
	atomic_store_explicit(&object->language_fix, fix, memory_order_relaxed);
	atomic_store_explicit(&object->language_reason, p->reason ? p->reason : untried,
			      memory_order_relaxed);
}

/* Publish a finished description. */
static void take(struct interpreters *in, struct interpreters_job *job)
{
	struct describe *d = job->describe;

	if (!d->rc && d->desc) {
		atomic_store_explicit(&job->object->interpreter, true, memory_order_relaxed);
		explain(job->object, &d->desc->info);
		maps_describe(in->maps, d->where.pid, d->where.process, d->desc);
		d->desc = NULL;
		atomic_fetch_add_explicit(&in->nr_news, 1, memory_order_relaxed);
		if (in->news_fd >= 0)
			wake_send(in->news_fd);
	}
	d->job.drop(&d->job);
	job->describe = NULL;
	object_put(job->object);
}

static bool hangs(const struct interpreters_job *job, uint64_t now_ns)
{
	struct describe *d = job->describe;

	if (watch_blocked_ns(&d->job.watch, now_ns) > DESCRIBE_NS)
		return true;
	return now_ns - job->since_ns >
	       (atomic_load_explicit(&d->asks, memory_order_relaxed) ? WORKER_NS : DESCRIBE_NS);
}

/* Start a finished job again that could not have memory yet. True: it runs, or is due later. */
static bool again(struct interpreters *in, struct interpreters_job *job, uint64_t now_ns)
{
	struct describe *d = job->describe;

	if (d->rc != -EAGAIN || !in->helpers || job->tries == TRIES_MAX)
		return false;
	if (now_ns - job->since_ns < AGAIN_NS || helpers_start(in->helpers, &d->job))
		return true;
	job->tries++;
	job->since_ns = now_ns;
	return true;
}

/* Leave a job behind that hangs. */
static void leave(struct interpreters_job *job)
{
	helper_job_leave(&job->describe->job);
	job->describe = NULL;
	object_put(job->object);
}

void interpreters_note(struct interpreters *in, struct image_cache *images)
{
	uint32_t id;

	while ((id = image_cache_take_loop(images)) != OBJECT_ID_UNKNOWN)
		if (in->maps)
			maps_note_object(in->maps, objects_at(in->objects, id));
}

bool interpreters_work(struct interpreters *in, uint64_t now_ns)
{
	struct maps_interpreter want;
	bool more = false;

	if (!in->maps)
		return false;
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++) {
		struct interpreters_job *job = &in->jobs[i];

		if (job->describe && (!in->helpers || helper_job_done(&job->describe->job))) {
			if (again(in, job, now_ns))
				continue;
			take(in, job);
			more = true;
		} else if (job->describe && hangs(job, now_ns)) {
			leave(job);
		}
		if (!job->describe && maps_next_interpreter(in->maps, &want))
			more |= start(in, job, &want, now_ns);
	}
	return more;
}

bool interpreters_busy(const struct interpreters *in)
{
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++)
		if (in->jobs[i].describe)
			return true;
	return false;
}

void interpreters_fini(struct interpreters *in)
{
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++)
		if (in->jobs[i].describe)
			leave(&in->jobs[i]);
}
