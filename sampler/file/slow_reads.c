// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job for each file; one that hangs is left, and its thread is lost until the read ends.
 */
#include "sampler/file/slow_reads.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/helper.h"

/* A read that takes longer hangs; less after some that did. */
#define HANG_NS	   500000000ULL
#define HALVES_MAX 4U
#define END_NS	   50000000ULL

struct slow_job {
	struct job job;
	slow_reads_fn read;
	char *path, *text;
	size_t max, size;
};

struct slow_reads {
	slow_reads_fn read;
	struct helpers *helpers;
	unsigned int nr_hung;
};

static void run(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;

	j->text = j->read(j->path, j->max, &j->size);
}

static void drop(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;

	free(j->path);
	free(j->text);
	free(j);
}

struct slow_reads *slow_reads_new(slow_reads_fn read)
{
	struct slow_reads *r = calloc(1, sizeof(*r));

	if (r && helpers_new(&r->helpers, -1)) {
		free(r);
		return NULL;
	}
	if (r)
		r->read = read;
	return r;
}

char *slow_reads_file(struct slow_reads *r, const char *path, size_t max, size_t *size)
{
	struct slow_job *j = calloc(1, sizeof(*j));
	uint64_t wait_ns = HANG_NS >> MIN(r->nr_hung, HALVES_MAX);
	char *text;
	int code;

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop;
	j->read = r->read;
	j->max = max;
	j->path = strdup(path);
	if (!j->path) {
		drop(&j->job);
		return NULL;
	}
	/* Without another helper it fails immediately, and is freed. */
	code = helpers_call(r->helpers, &j->job, time_now_ns() + wait_ns);
	if (code) {
		r->nr_hung += code == -ETIME;
		return NULL;
	}
	text = j->text;
	*size = j->size;
	j->text = NULL;
	drop(&j->job);
	return text;
}

void slow_reads_free(struct slow_reads *r)
{
	if (!r)
		return;
	helpers_free(r->helpers, time_now_ns() + END_NS);
	free(r);
}
