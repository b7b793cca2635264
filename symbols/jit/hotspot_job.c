// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read the code cache, the methods and the chains of one JVM.
 *
 * Runs on: a helper.
 */
#include "symbols/jit/hotspot_job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"

#define READS_MAX 4000000U
/* Bytes of the chains of one job: 2 KiB for each, if all that may be requested are. */
#define CHAINS_MEMORY_MAX (8UL << 20)

static atomic_uint nr_left; /* relaxed: a number alone */

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
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->left)
		atomic_fetch_sub_explicit(&nr_left, 1, memory_order_relaxed);
	free(r);
}

void hotspot_job_leave(struct hotspot_job *r)
{
	/* Before it is left: then the helper may free it. */
	r->left = true;
	atomic_fetch_add_explicit(&nr_left, 1, memory_order_relaxed);
	helper_job_leave(&r->job);
}

unsigned int hotspot_job_nr_left(void)
{
	return atomic_load_explicit(&nr_left, memory_order_relaxed);
}

static int open_process(struct hotspot_job *r)
{
	int rc;

	if (r->open)
		return 0;
	if (r->dir_fd < 0)
		r->dir_fd = foreign_open_proc(r->remote.pid);
	if (r->dir_fd < 0)
		return r->dir_fd;
	rc = hotspot_open(&r->vm, &r->remote, &r->missing);
	r->open = !rc;
	return rc;
}

/* Return whether the opened process is still the one with this pid. */
static int check_alive(const struct hotspot_job *r)
{
	char *text;
	size_t size;
	int rc = foreign_read_at(r->dir_fd, "stat", 4096, &text, &size);

	if (!rc)
		free(text);
	return rc;
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
	out = r->chains_memory + size <= CHAINS_MEMORY_MAX ? malloc(MAX(size, 1U)) : NULL;
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

static void read_chains(struct hotspot_job *r)
{
	r->chains_memory = 0;
	if (!r->frames && r->nr_chains)
		r->frames = calloc(HOTSPOT_FRAMES_MAX, sizeof(*r->frames));
	for (uint32_t i = 0; r->frames && i < r->nr_chains; i++) {
		struct hotspot_job_chain *c = &r->chains[i];
		int nr = hotspot_chain(&r->vm, &r->remote, c->addr, r->frames, &c->exact);

		c->frames = nr > 0 ? copy_frames(r, r->frames, nr) : NULL;
		c->nr = c->frames ? (uint32_t)nr : 0;
	}
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

static void read_cache(struct job *job)
{
	struct hotspot_job *r = (struct hotspot_job *)job;
	uint64_t cpu_ns = time_thread_ns();
	char name[HOTSPOT_NAME_MAX];

	r->remote.nr_reads = 0;
	r->scan_ns = 0;
	r->scan |= !r->open;
	r->rc = open_process(r);
	if (!r->rc)
		r->rc = read_code(r);
	for (uint32_t i = 0; i < r->nr_methods && !r->rc; i++) {
		struct hotspot_method_name *m = &r->methods[i];

		m->rc = hotspot_method(&r->vm, &r->remote, m->method, name, &m->code,
				       &m->code_size);
		m->name = m->rc ? NULL : strdup(name);
	}
	if (!r->rc)
		read_chains(r);
	if (!r->rc)
		r->rc = check_alive(r);
	r->cost_ns = time_thread_ns() - cpu_ns;
}

struct hotspot_job *hotspot_job_new(pid_t pid)
{
	struct hotspot_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job = (struct job){ .run = read_cache, .drop = hotspot_job_drop };
	r->remote =
		(struct remote){ .pid = pid, .nr_reads_max = READS_MAX, .watch = &r->job.watch };
	r->dir_fd = -1;
	return r;
}
