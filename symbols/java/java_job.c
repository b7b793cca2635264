// SPDX-License-Identifier: GPL-2.0-or-later
/* The job that reads one JVM. */
#include "symbols/java/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

/*
 * Read the code cache, the methods and the chains of one JVM.
 *
 * Runs on: a helper.
 */

/* Bytes of the chains of one job: 2 KiB for each, if all that may be requested are. */
#define HOTSPOT_JOB_CHAINS_MEMORY_MAX (8UL << 20)

static atomic_uint nr_left; /* relaxed: a number alone */

static atomic_ulong last_id; /* the same */

void hotspot_job_forget(struct hotspot_job *r)
{
	for (uint32_t i = 0; i < r->nr_methods; i++)
		free(r->methods[i].name);
	free(r->methods);
	r->methods = NULL;
	r->nr_methods = 0;
	free(r->pcs);
	r->pcs = NULL;
	r->nr_pcs = 0;
}

void hotspot_job_free_chains(struct hotspot_job_chain *chains, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free(chains[i].frames);
	free(chains);
}

void hotspot_job_drop(struct job *job)
{
	struct hotspot_job *r = (struct hotspot_job *)job;

	hotspot_job_forget(r);
	hotspot_job_free_chains(r->chains, r->nr_chains);
	free(r->frames);
	hotspot_close(&r->vm);
	if (r->remote.fd >= 0)
		close(r->remote.fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->left)
		atomic_fetch_sub_explicit(&nr_left, 1, memory_order_relaxed);
	free(r);
}

/* Abandon a job that runs: it is freed when it ends, if it does. */
void hotspot_job_leave(struct hotspot_job *r)
{
	/* Before it is abandoned: after that the helper may free it. */
	r->left = true;
	atomic_fetch_add_explicit(&nr_left, 1, memory_order_relaxed);
	helper_job_leave(&r->job);
}

unsigned int hotspot_job_nr_left(void)
{
	return atomic_load_explicit(&nr_left, memory_order_relaxed);
}

/* Copy @nr frames with their texts into one block; NULL: no memory, or the chains have enough. */
static struct hotspot_job_frame *copy_frames(struct hotspot_job *r,
					     const struct hotspot_frame *frames, int nr)
{
	size_t size = (size_t)nr * sizeof(struct hotspot_job_frame);
	struct hotspot_job_frame *out;
	char *text;

	for (int i = 0; i < nr; i++)
		size += strlen(frames[i].name) + strlen(frames[i].file) + 2;
	out = r->chains_memory + size <= HOTSPOT_JOB_CHAINS_MEMORY_MAX ? malloc(MAX(size, 1U))
								       : NULL;
	if (!out)
		return NULL;
	r->chains_memory += size;
	text = (char *)(out + nr);
	for (int i = 0; i < nr; i++) {
		out[i].line = frames[i].line;
		out[i].name = text;
		text = stpcpy(text, frames[i].name) + 1;
		out[i].file = text;
		text = stpcpy(text, frames[i].file) + 1;
	}
	return out;
}

int hotspot_job_begin_chains(struct hotspot_job *j)
{
	j->chains_memory = 0;
	if (!j->frames && j->nr_chains)
		j->frames = calloc(HOTSPOT_FRAMES_MAX, sizeof(*j->frames));
	return j->frames || !j->nr_chains ? 0 : -ENOMEM;
}

void hotspot_job_add_chain(struct hotspot_job *j, struct hotspot_job_chain *c, int nr, bool exact)
{
	free(c->frames);
	c->frames = nr > 0 ? copy_frames(j, j->frames, nr) : NULL;
	c->nr = c->frames ? (uint32_t)nr : 0;
	c->exact = exact;
}

static int read_chain(struct hotspot_job *j, uint32_t i)
{
	bool exact = false;
	int nr = hotspot_chain(&j->vm, &j->remote, j->chains[i].addr, j->frames, &exact);

	if (!j->remote.missed)
		hotspot_job_add_chain(j, &j->chains[i], nr, exact);
	return 0;
}

static int read_method(struct hotspot_job *j, uint32_t i)
{
	struct hotspot_method_name *m = &j->methods[i];
	char name[HOTSPOT_NAME_MAX];

	m->rc = hotspot_method(&j->vm, &j->remote, m->method, name, &m->code, &m->code_size);
	m->name = m->rc || j->remote.missed ? NULL : strdup(name);
	return 0;
}

/* Scan the code cache, or look up the addresses in the request. */
static int read_code(struct hotspot_job *r)
{
	uint64_t cpu_ns = time_thread_ns();
	int rc;

	if (!r->scan)
		return hotspot_look_up(&r->vm, &r->remote, r->pcs, r->nr_pcs);
	rc = hotspot_scan(&r->vm, &r->remote);
	r->scan_ns = time_thread_ns() - cpu_ns;
	return rc;
}

/* Read a name of code, a method, or a chain. */
static int read_item(void *of, uint32_t i)
{
	struct hotspot_job *j = of;

	if (i < j->vm.nr_blobs)
		return hotspot_name(&j->vm, &j->remote, i);
	i -= j->vm.nr_blobs;
	return i < j->nr_methods ? read_method(j, i) : read_chain(j, i - j->nr_methods);
}

/* Forget the chains of code that was replaced while they were read. */
static int drop_changed(struct hotspot_job *j)
{
	uint64_t *pcs = j->nr_chains ? malloc(j->nr_chains * sizeof(*pcs)) : NULL;
	bool *current = j->nr_chains ? calloc(j->nr_chains, sizeof(*current)) : NULL;
	uint32_t nr = 0;
	int rc = j->nr_chains && (!pcs || !current) ? -ENOMEM : 0;

	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr)
			pcs[nr++] = j->chains[i].addr;
	if (!rc)
		rc = hotspot_test_current(&j->vm, &j->remote, pcs, nr, current);
	nr = 0;
	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr && !current[nr++])
			hotspot_job_add_chain(j, &j->chains[i], 0, false);
	free(pcs);
	free(current);
	return rc;
}

int hotspot_job_read(struct hotspot_job *j, const struct hotspot_tables *t)
{
	const char *missing;
	int rc = j->open ? 0 : hotspot_open(&j->vm, &j->remote, t, &missing);

	j->open = !rc;
	if (!rc)
		rc = read_code(j);
	if (!rc)
		rc = hotspot_job_begin_chains(j);
	/* All together: the caller of a worker reads for all that wait. */
	if (!rc)
		rc = remote_for_each(&j->remote, j->vm.nr_blobs + j->nr_methods + j->nr_chains,
				     read_item, j);
	return rc ? rc : drop_changed(j);
}

struct hotspot_job *hotspot_job_new(pid_t pid, void (*run)(struct job *job))
{
	struct hotspot_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job = (struct job){ .run = run, .drop = hotspot_job_drop };
	r->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	r->remote = (struct remote){
		.pid = pid, .fd = -1, .nr_reads_max = HOTSPOT_READS_MAX, .watch = &r->job.watch
	};
	r->dir_fd = -1;
	return r;
}
