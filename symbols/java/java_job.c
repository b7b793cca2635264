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
#define JVM_READ_JOB_CHAINS_MEMORY_MAX (8UL << 20)

static atomic_uint nr_left; /* relaxed: a number alone */

static atomic_ulong last_id; /* the same */

void jvm_read_job_forget(struct jvm_read_job *r)
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

void jvm_read_job_free_chains(struct jvm_read_job_chain *chains, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free(chains[i].frames);
	free(chains);
}

void jvm_read_job_drop(struct job *job)
{
	struct jvm_read_job *r = (struct jvm_read_job *)job;

	jvm_read_job_forget(r);
	jvm_read_job_free_chains(r->chains, r->nr_chains);
	free(r->frames);
	jvm_read_close(&r->vm);
	if (r->remote.fd >= 0)
		close(r->remote.fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->left)
		atomic_fetch_sub_explicit(&nr_left, 1, memory_order_relaxed);
	free(r);
}

/* Abandon a job that runs: it is freed when it ends, if it does. */
void jvm_read_job_leave(struct jvm_read_job *r)
{
	/* Before it is abandoned: after that the helper may free it. */
	r->left = true;
	atomic_fetch_add_explicit(&nr_left, 1, memory_order_relaxed);
	helper_job_leave(&r->job);
}

unsigned int jvm_read_job_nr_left(void)
{
	return atomic_load_explicit(&nr_left, memory_order_relaxed);
}

/* Copy @nr frames with their texts into one block; NULL: no memory, or the chains have enough. */
static struct jvm_read_job_frame *copy_frames(struct jvm_read_job *r,
					      const struct jvm_read_frame *frames, int nr)
{
	size_t size = (size_t)nr * sizeof(struct jvm_read_job_frame);
	struct jvm_read_job_frame *out;
	char *text;

	for (int i = 0; i < nr; i++)
		size += strlen(frames[i].name) + strlen(frames[i].file) + 2;
	out = r->inlines_memory + size <= JVM_READ_JOB_CHAINS_MEMORY_MAX ? malloc(MAX(size, 1U))
									 : NULL;
	if (!out)
		return NULL;
	r->inlines_memory += size;
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

int jvm_read_job_begin_chains(struct jvm_read_job *j)
{
	j->inlines_memory = 0;
	if (!j->frames && j->nr_chains)
		j->frames = calloc(JVM_READ_FRAMES_MAX, sizeof(*j->frames));
	return j->frames || !j->nr_chains ? 0 : -ENOMEM;
}

void jvm_read_job_add_chain(struct jvm_read_job *j, struct jvm_read_job_chain *c, int nr,
			    bool exact)
{
	free(c->frames);
	c->frames = nr > 0 ? copy_frames(j, j->frames, nr) : NULL;
	c->nr = c->frames ? (uint32_t)nr : 0;
	c->exact = exact;
}

static int read_chain(struct jvm_read_job *j, uint32_t i)
{
	bool exact = false;
	int nr = jvm_read_chain(&j->vm, &j->remote, j->chains[i].addr, j->frames, &exact);

	if (!j->remote.missed)
		jvm_read_job_add_chain(j, &j->chains[i], nr, exact);
	return 0;
}

static int read_method(struct jvm_read_job *j, uint32_t i)
{
	struct jvm_read_method_name *m = &j->methods[i];
	char name[JVM_READ_NAME_MAX];

	m->rc = jvm_read_method(&j->vm, &j->remote, m->method, name, &m->code, &m->code_size);
	m->name = m->rc || j->remote.missed ? NULL : strdup(name);
	return 0;
}

/* Scan the code cache, or look up the addresses in the request. */
static int read_code(struct jvm_read_job *r)
{
	uint64_t cpu_ns = time_thread_ns();
	int rc;

	if (!r->scan)
		return jvm_read_look_up(&r->vm, &r->remote, r->pcs, r->nr_pcs);
	rc = jvm_read_scan(&r->vm, &r->remote);
	r->scan_ns = time_thread_ns() - cpu_ns;
	return rc;
}

/* Read a name of code, a method, or a chain. */
static int read_item(void *of, uint32_t i)
{
	struct jvm_read_job *j = of;

	if (i < j->vm.nr_blobs)
		return jvm_read_name(&j->vm, &j->remote, i);
	i -= j->vm.nr_blobs;
	return i < j->nr_methods ? read_method(j, i) : read_chain(j, i - j->nr_methods);
}

/* Forget the chains of code that was replaced while they were read. */
static int drop_changed(struct jvm_read_job *j)
{
	uint64_t *pcs = j->nr_chains ? malloc(j->nr_chains * sizeof(*pcs)) : NULL;
	bool *current = j->nr_chains ? calloc(j->nr_chains, sizeof(*current)) : NULL;
	uint32_t nr = 0;
	int rc = j->nr_chains && (!pcs || !current) ? -ENOMEM : 0;

	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr)
			pcs[nr++] = j->chains[i].addr;
	if (!rc)
		rc = jvm_read_test_current(&j->vm, &j->remote, pcs, nr, current);
	nr = 0;
	for (uint32_t i = 0; i < j->nr_chains && !rc; i++)
		if (j->chains[i].nr && !current[nr++])
			jvm_read_job_add_chain(j, &j->chains[i], 0, false);
	free(pcs);
	free(current);
	return rc;
}

int jvm_read_job_read(struct jvm_read_job *j, const struct jvm_read_tables *t)
{
	const char *missing;
	int rc = j->open ? 0 : jvm_read_open(&j->vm, &j->remote, t, &missing);

	j->open = !rc;
	if (!rc)
		rc = read_code(j);
	if (!rc)
		rc = jvm_read_job_begin_chains(j);
	/* All together: the caller of a worker reads for all that wait. */
	if (!rc)
		rc = remote_for_each(&j->remote, j->vm.nr_blobs + j->nr_methods + j->nr_chains,
				     read_item, j);
	return rc ? rc : drop_changed(j);
}

struct jvm_read_job *jvm_read_job_new(pid_t pid, void (*run)(struct job *job))
{
	struct jvm_read_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job = (struct job){ .run = run, .drop = jvm_read_job_drop };
	r->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	r->remote = (struct remote){
		.pid = pid, .fd = -1, .nr_reads_max = JVM_READ_READS_MAX, .watch = &r->job.watch
	};
	r->dir_fd = -1;
	return r;
}
