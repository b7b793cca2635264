// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open and read one jitdump.
 *
 * Runs on: a helper, or the loader of a replay.
 */
#include "symbols/jit/jitdump_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/code_owner.h"

#define SLICE_NS     50000000ULL  /* of reading one jitdump before the next one */
#define CODE_WAIT_NS 300000000ULL /* for the instructions of one function */

void jitdump_job_forget(struct jitdump_job *r)
{
	for (uint32_t i = 0; i < r->nr_candidates; i++)
		free(r->candidates[i].seen.path);
	free(r->candidates);
	r->candidates = NULL;
	r->nr_candidates = 0;
}

static void close_dump(struct jitdump_job *r)
{
	if (r->fd < 0 && !r->closed)
		return;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	r->closed = false;
	jitdump_fini(&r->dump);
	r->size = 0;
}

void jitdump_job_drop(struct job *job)
{
	struct jitdump_job *r = (struct jitdump_job *)job;

	close_dump(r);
	jitdump_job_forget(r);
	free(r->root);
	free(r);
}

/* Open @c as the jitdump of the process with owner @o, if it belongs to it. */
static int open_file(const struct jitdump_job *r, const struct jitdump_candidate *c,
		     const struct code_owner *o, int *fd)
{
	struct foreign_want want = {
		.pid = r->no_proc ? 0 : r->pid,
		.root = r->root,
		.size_max = JITDUMP_FILE_MAX,
		.maj = c->identity.maj,
		.min = c->identity.min,
		.ino = c->identity.ino,
		.path = c->seen.path && *c->seen.path ? c->seen.path : NULL,
		.owned = true,
		.uid = o->uid,
	};
	struct foreign_file opened;
	int rc;

	if (c->seen.pid == r->pid && !r->no_proc) {
		want.start = c->seen.start;
		want.end = c->seen.end;
	}
	/* A recording may have the pids of a container, which mean nothing here. */
	if (!r->no_proc && c->file.inner_pid != o->inner_pid)
		return -ENOENT;
	rc = foreign_open(&want, &opened, NULL);
	if (!rc)
		*fd = opened.fd;
	return rc;
}

/* Search the jitdump of the process. 0, -ENOENT, -errno. */
static int open_dump(struct jitdump_job *r)
{
	struct code_owner o;
	int rc = 0, found = -ENOENT;

	code_owner_ours(r->pid, &o);
	if (!r->no_proc)
		rc = code_owner_ask(r->pid, &o);
	if (rc)
		return rc;
	r->process_start = o.start;
	for (uint32_t i = 0; i < r->nr_candidates && found == -ENOENT; i++)
		found = open_file(r, &r->candidates[i], &o, &r->fd);
	code_owner_done(&o);
	if (found)
		return found;
	rc = jitdump_init(&r->dump);
	if (rc)
		close_dump(r);
	return rc;
}

/* Get the size of the open jitdump. */
static int size_of(struct jitdump_job *r, uint64_t *size)
{
	int rc = watch_begin(&r->read.job.watch);
	struct stat st;

	if (rc)
		return rc;
	rc = fstat(r->fd, &st) ? -errno : 0;
	watch_end(&r->read.job.watch, 0);
	if (!rc)
		*size = (uint64_t)MAX(st.st_size, 0);
	return rc;
}

/* Read the new records of the open jitdump. */
static int read_on(struct jitdump_job *r)
{
	struct jitdump_file file = { .fd = r->fd, .watch = &r->read.job.watch };
	uint32_t before = jitcode_nr(r->dump.code);
	int rc = size_of(r, &file.size);

	if (rc)
		return rc;
	if (file.size < r->dump.state.at) { /* started again */
		jitdump_fini(&r->dump);
		if (jitdump_init(&r->dump)) {
			close(r->fd);
			r->fd = -1;
			return -ENOMEM;
		}
		before = 0;
		r->size = 0;
	}
	if (file.size == r->size || r->dump.state.ended)
		return 0;
	if (!r->full)
		rc = jitdump_read(&r->dump, &file, r->no_proc ? 0 : SLICE_NS, &r->more);
	r->size = r->more ? r->dump.state.at : file.size;
	r->news = jitcode_nr(r->dump.code) != before;
	return rc;
}

/* Return whether the process with the jitdump has ended. */
static bool has_ended(const struct jitdump_job *r)
{
	struct code_owner o;
	int rc = code_owner_ask(r->pid, &o);
	bool other;

	if (rc)
		return rc == -ENOENT || rc == -ESRCH;
	other = o.start != r->process_start;
	code_owner_done(&o);
	return other;
}

/* Close the file, which may hang. */
static void close_file(struct jitdump_job *r)
{
	close(r->fd);
	r->fd = -1;
	r->closed = true;
}

static void run(struct job *job)
{
	struct jitdump_job *r = (struct jitdump_job *)job;
	uint64_t start_ns = time_now_ns();

	r->news = r->more = r->gone = false;
	if (r->closes) {
		close_file(r);
		return;
	}
	r->rc = watch_begin(&job->watch);
	if (r->rc)
		return;
	if (r->fd < 0)
		r->rc = open_dump(r);
	watch_end(&job->watch, 0);
	if (!r->rc)
		r->rc = read_on(r);
	if (r->asks && r->fd >= 0 && !r->more)
		r->gone = has_ended(r);
	r->cost_ns = time_now_ns() - start_ns;
}

struct jitdump_job *jitdump_job_new(pid_t pid, bool no_proc, const char *root)
{
	struct jitdump_job *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->read.job.run = run;
	r->read.job.drop = jitdump_job_drop;
	r->pid = pid;
	r->no_proc = no_proc;
	r->root = root ? strdup(root) : NULL;
	r->fd = -1;
	return r;
}

/* A job: read instructions of one function. */
struct code_reading {
	struct job job;
	int fd; /* owned */
	uint64_t at;
	uint8_t *bytes; /* owned */
	uint32_t want, got;
};

static void run_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	while (c->got < c->want) {
		ssize_t nr =
			pread(c->fd, c->bytes + c->got, c->want - c->got, (off_t)(c->at + c->got));

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		c->got += (uint32_t)nr;
	}
}

static void drop_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	close(c->fd);
	free(c->bytes);
	free(c);
}

int jitdump_job_code(struct helpers *helpers, int fd, const struct jitcode_function *f,
		     uint32_t want, uint8_t **bytes)
{
	struct code_reading *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->job.run = run_code;
	c->job.drop = drop_code;
	c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	c->bytes = malloc(MAX(want, 1U));
	c->at = f->bytes_at;
	c->want = c->bytes ? want : 0;
	rc = helpers_call(helpers, &c->job, time_now_ns() + CODE_WAIT_NS);
	if (rc)
		return rc;
	rc = c->bytes ? (int)c->got : -ENOMEM;
	*bytes = c->bytes;
	c->bytes = NULL;
	drop_code(&c->job);
	return rc;
}
