// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recognise and describe interpreters.
 *
 * Runs on: a helper. A job uses nothing but its struct, so that a hanging one
 * (file system, userfaultfd) can be abandoned.
 */
#include "symbols/lang/describe.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/lang/describe_names.h"
#include "symbols/lang/describe_wire.h"
#include "symbols/object/elfcage.h"
#include "symbols/object/elfloop.h"
#include "symbols/image/image.h"

/* struct interpreter of 5.36 to 5.42, and of 5.44, with threads: what is read of them is the same.
 */
#define PERL_INTERP_SIZE    3768
#define PERL_INTERP_SIZE_44 3776

enum lang_kind describe_kind(const struct object *object)
{
	uint32_t loop = atomic_load_explicit(&object->loop, memory_order_relaxed);
	const char *symbol = elfloop_symbol((uint8_t)loop);
	enum lang_kind kind = describe_names_find(object->name.str);

	for (int i = LANG_PYTHON; i < LANG_NR && symbol && kind == LANG_NONE; i++)
		if (!strcmp(symbol, describe_names((enum lang_kind)i)->shown))
			kind = (enum lang_kind)i;
	return kind;
}

static bool read_memory(pid_t pid, uint64_t addr, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/*
 * Set the user, and whether it is in another pid namespace than ours: then it knows its threads by
 * other ids.
 */
static void read_status(pid_t pid, struct lang_process *p)
{
	char *text;
	size_t size;
	const char *line;

	p->user = UINT32_MAX;
	if (foreign_read_proc(pid, "status", 64 << 10, &text, &size))
		return;
	line = strstr(text, "\nUid:");
	if (line)
		p->user = (uint32_t)strtoul(line + 5, NULL, 10);
	line = strstr(text, "\nNSpid:");
	if (line) {
		char *end;

		/* "NSpid:\t4711\t12": more than one number. */
		strtol(line + 7, &end, 10);
		p->nested = *end == '\t';
	}
	free(text);
}

/* Set the reason by errno. */
static void set_unreadable(struct lang_process *p)
{
	p->refused = errno == EPERM || errno == EACCES;
	p->reason = p->refused ? "no permission to read its memory" : "its memory cannot be read";
}

/* Set CPython's version and layout, checked against the memory of the process. */
static void set_python_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			       pid_t pid)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS];
	const struct py_layout *layout;
	uint32_t version;

	if (!read_memory(pid, p->runtime, words, sizeof(words))) {
		set_unreadable(p);
		return;
	}
	if (d->version_at) {
		if (read_memory(pid, d->version_at + bias, &version, sizeof(version)) &&
		    (!d->version || version >> 16 == d->version >> 16))
			p->version = version;
		else
			p->reason = "it says another version than its file's name";
	}
	layout = pylayout_of(p->version);
	if (!layout) {
		p->reason = "not supported (3.8 to 3.15 are)";
		return;
	}
	p->py = *layout;
	if (layout->minor >= 13 && !p->reason)
		p->reason = pylayout_debug(&p->py, words);
}

/* Set Ruby's version: three numbers in its memory. */
static void set_ruby_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			     pid_t pid)
{
	uint32_t api[3] = { 0 };

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + bias, api, sizeof(api)))
		set_unreadable(p);
	else
		p->version = api[0] << 24 | (api[1] & 255) << 16;
	if (!p->reason && p->version != (3U << 24 | 1U << 16))
		p->reason = "not supported (3.1 is)";
	else if (!p->reason && (!d->runtime || !d->nr_eval))
		p->reason = "a build without the symbols of its VM";
}

/* Check Perl's layout: the size of its interpreter differs by version and options. */
static void set_perl_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			     pid_t pid)
{
	uint16_t size;

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + bias, &size, sizeof(size)))
		set_unreadable(p);
	else if (size != PERL_INTERP_SIZE && size != PERL_INTERP_SIZE_44)
		p->reason = "this version or build is not supported (5.36 to 5.44 with threads "
			    "are)";
}

/* V8's layout is that of its file. */
static void set_v8(struct lang_process *p, const struct describe_file *f)
{
	p->v8 = f->v8;
	p->version = f->v8_version;
	p->reason = v8layout_check(&f->v8);
	if (!p->reason && !f->blob_size)
		p->reason = "its builtins cannot be found";
	p->untried = !v8layout_tried((int32_t)(f->v8_version >> 24),
				     (int32_t)(f->v8_version >> 16 & 255));
	p->code_offset = f->blob_offset;
	p->code_size = f->blob_size;
}

/* PHP's layout is that of its version. */
static void set_php(struct lang_process *p, const struct describe_file *d)
{
	const struct describe_php *row = d->php ? describe_php(d->php - 1) : NULL;

	if (row)
		p->php = row->layout;
	else
		p->reason = "not supported (8.2 and 8.4 to 8.6 without threads are)";
}

static void set_version(struct lang_process *p, const struct describe_file *d, pid_t pid)
{
	p->version = d->version;
	if (p->kind == LANG_PYTHON)
		set_python_version(p, d, d->bias, pid);
	else if (p->kind == LANG_RUBY)
		set_ruby_version(p, d, d->bias, pid);
	else if (p->kind == LANG_PERL)
		set_perl_version(p, d, d->bias, pid);
	else if (p->kind == LANG_NODE)
		set_v8(p, d);
	else if (p->kind == LANG_PHP)
		set_php(p, d);
}

static void set_ranges(struct lang_range *out, const struct lang_range *in, uint32_t nr,
		       uint64_t bias)
{
	for (uint32_t i = 0; i < nr; i++)
		out[i] = (struct lang_range){ in[i].start + bias, in[i].end + bias };
}

static int describe_process(struct describe *job, const struct describe_file *d)
{
	struct lang_process *p;

	job->desc = calloc(1, sizeof(*job->desc));
	if (!job->desc)
		return -ENOMEM;
	atomic_init(&job->desc->refs, 1);
	p = &job->desc->info;
	p->kind = (enum lang_kind)d->kind;
	p->runtime = d->runtime + d->bias;
	p->code_type = d->code_type + d->bias;
	p->nr_eval = d->nr_eval;
	p->nr_main = d->nr_main;
	set_ranges(p->eval, d->eval, d->nr_eval, d->bias);
	set_ranges(p->main, d->main, d->nr_main, d->bias);
	read_status(job->where.pid, p);
	set_version(p, d, job->where.pid);
	p->untried |= d->machine != EM_X86_64;
	return 0;
}

static atomic_ullong last_serial; /* relaxed */

/* Check an answer and copy it to @out. False: invalid; the reader may have been taken over. */
static bool take_file(struct describe_file *out, const struct cage_answer *a, enum lang_kind kind)
{
	if (a->size != ELFCAGE_ANSWER + sizeof(*out))
		return false;
	memcpy(out, a->bytes + ELFCAGE_ANSWER, sizeof(*out));
	return out->kind == (uint32_t)kind && out->nr_eval <= LANG_EVAL_MAX &&
	       out->nr_main <= LANG_MAIN_MAX;
}

/* Have the file read in the cage. 0 or -errno. */
static int read_file(struct describe *d, const struct foreign_file *opened,
		     struct describe_file *out)
{
	const struct describe_where *w = &d->where;
	struct describe_request r = {
		.serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1,
		.start = w->start,
		.offset = w->offset,
		.kind = (uint32_t)w->kind,
	};
	struct elfcage *c = elfcage_new();
	struct cage_answer a;
	int rc = c ? 0 : -ENOMEM;

	/* Without a reader of the language: not published, whatever the worker says. */
	if (w->kind == LANG_NONE)
		rc = -ENOENT;
	memcpy(r.name, w->name, sizeof(r.name));
	if (!rc) {
		c->watch = &d->job.watch;
		rc = elfcage_open(c, 0, opened->fd, opened->size);
	}
	atomic_store_explicit(&d->asks, true, memory_order_relaxed);
	if (!rc)
		rc = elfcage_ask(c, &describe_reader, &r, sizeof(r), &a);
	atomic_store_explicit(&d->asks, false, memory_order_relaxed);
	if (!rc) {
		rc = take_file(out, &a, w->kind) ? 0 : elfcage_refuse(c);
		cage_answer_free(&a);
	}
	if (c)
		elfcage_free(c);
	return rc;
}

static int describe_run(struct describe *d)
{
	const struct describe_where *w = &d->where;
	const struct foreign_want want = {
		.pid = w->pid,
		.start = w->start,
		.end = w->end,
		.path = w->path,
		.maj = w->maj,
		.min = w->min,
		.ino = w->ino,
	};
	struct describe_file file;
	struct foreign_file opened;
	int rc = foreign_open(&want, &opened, NULL);

	if (rc)
		return rc;
	rc = read_file(d, &opened, &file);
	close(opened.fd);
	return rc ? rc : describe_process(d, &file);
}

static void run(struct job *job)
{
	struct describe *d = (struct describe *)job;

	d->rc = describe_run(d);
}

static void drop(struct job *job)
{
	struct describe *d = (struct describe *)job;

	lang_desc_put(d->desc);
	free(d->where.path);
	free(d);
}

struct describe *describe_new(const struct describe_where *where)
{
	struct describe *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->job.run = run;
	d->job.drop = drop;
	d->where = *where;
	return d;
}
