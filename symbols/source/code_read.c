// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read one function.
 *
 * Runs on: a helper; code_read_new() on the loader. The file is opened again by its
 * identity, so the code read is the code sampled, or nothing.
 */
#include "symbols/source/code_read.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/source/dwarf_object.h"
#include "symbols/elf/elf.h"
#include "symbols/base/foreign.h"
#include "symbols/kernel/kernel_cage.h"
#include "symbols/source/source.h"

#define FILE_SPAN_MAX 4096u /* lines of one file */
#define ROWS_MAX      (1u << 20)
#define NOT_RUNNING   "the file on disk is not the running one"

static void refuse(struct reading *r, const char *why, const char *fix)
{
	r->l->why = why;
	r->l->fix = fix;
}

/* Allocate the code as far as it is shown; false without memory. */
static bool make_room(struct reading *r)
{
	r->nr_bytes = (uint32_t)MIN(r->l->size, (uint64_t)CODE_SIZE_MAX);
	r->bytes = malloc(MAX(r->nr_bytes, 1u));
	if (!r->bytes)
		refuse(r, "out of memory", NULL);
	return r->bytes;
}

/* Keep only the bytes read; none: set the reason. */
static void cut(struct reading *r, ssize_t got, const char *why, const char *fix)
{
	r->nr_bytes = got > 0 ? (uint32_t)got : 0;
	if (!r->nr_bytes)
		refuse(r, why, fix);
}

static void refuse_file(struct reading *r, int code)
{
	if (code == -ESTALE)
		refuse(r, NOT_RUNNING,
		       "restart the program, or run proftop as root: it reads the mapped file");
	else if (code == -ENOENT || code == -ENOTDIR || code == -ESRCH)
		refuse(r, "the file is gone", "run proftop as root: it reads the mapped file");
	else if (code == -EACCES || code == -EPERM)
		refuse(r, "no permission to read the file", "run proftop as root or as its owner");
	else
		refuse(r, "cannot read the file", NULL);
}

/* Return true if the path still leads to the mapped file. */
static bool is_replaced(const struct load_where *where)
{
	struct load_where named = *where;
	struct foreign_file file;
	int code;

	if (!where->seen.pid || !where->identity.ino || !where->seen.path)
		return false;
	named.seen.start = named.seen.end = 0;
	code = load_open(&named, NULL, &file);
	if (!code)
		close(file.fd);
	return code == -ESTALE || code == -ENOENT || code == -ENOTDIR;
}

/*
 * A recording may have no inode: then the build-id identifies the file. One that was written in
 * place has another than the image.
 */
static bool is_of_build(const struct reading *r, const struct foreign_file *file)
{
	const struct object_identity *id = &r->where.identity;
	const struct elffacts_input in = { .fd = file->fd, .size = file->size };
	struct elffacts facts;
	const struct debugfile_names *is = &facts.names;

	if (!id->build_id_size && !r->where.build_id_size)
		return true;
	if (elffacts_read(&facts, &in) ||
	    !load_is_of_image(&r->where, is->build_id, is->build_id_size))
		return false;
	return !id->build_id_size || !is->build_id_size ||
	       (is->build_id_size == id->build_id_size &&
		!memcmp(is->build_id, id->build_id, id->build_id_size));
}

static void read_file(struct reading *r)
{
	struct foreign_file file;
	int code = load_open(&r->where, &r->job.watch, &file);

	if (code) {
		refuse_file(r, code);
		return;
	}
	if (!is_of_build(r, &file))
		refuse_file(r, -ESTALE);
	else if (make_room(r))
		cut(r, pread(file.fd, r->bytes, r->nr_bytes, (off_t)r->offset),
		    "cannot read the file", NULL);
	close(file.fd);
	r->built_ns = file.mtime_ns;
	if (is_replaced(&r->where))
		r->l->origin = "running code from /proc/PID/map_files: the file on disk was "
			       "replaced or removed";
}

/* This process's vdso is the same for all. */
static void read_vdso(struct reading *r)
{
	const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	if (!base)
		refuse(r, "no vdso on this machine", NULL);
	else if (make_room(r))
		memcpy(r->bytes, base + r->offset, r->nr_bytes);
	r->l->origin = "proftop's own vdso: the same code in all processes";
}

static void refuse_kernel(struct reading *r, int code)
{
	if (code == -ENOENT)
		refuse(r, "cannot read kernel code: no /proc/kcore",
		       "needs a kernel with CONFIG_PROC_KCORE");
	else if (code == -EACCES || code == -EPERM)
		refuse(r, "no permission to read kernel code",
		       "run proftop as root; not available while the kernel is locked down");
	else if (code == -EFAULT)
		refuse(r, "no kernel code at its address now", NULL);
	else
		refuse(r, "cannot read /proc/kcore", NULL);
}

/* Read running kernel code, with everything that the kernel has patched. */
static void read_kernel(struct reading *r)
{
	const char *root = r->kcore_below ? r->where.root : NULL;
	int got;

	if (!r->kcore_path || (r->kcore_below && !root) || !make_room(r))
		return;
	got = kernel_cage_memory(root, r->kcore_path, r->offset, r->bytes, r->nr_bytes);
	cut(r, got, NULL, NULL);
	if (got <= 0)
		refuse_kernel(r, got);
	r->l->origin = "/proc/kcore: current kernel memory";
}

/* Read code made at run time: only in the memory of its process. */
static void read_process(struct reading *r)
{
	struct iovec ours, theirs = { (void *)(uintptr_t)r->l->vaddr, 0 };
	ssize_t got;

	if (!r->where.seen.pid) {
		refuse(r, "a recording does not contain JIT code", NULL);
		return;
	}
	if (!make_room(r))
		return;
	ours = (struct iovec){ r->bytes, r->nr_bytes };
	theirs.iov_len = r->nr_bytes;
	got = process_vm_readv(r->where.seen.pid, &ours, 1, &theirs, 1, 0);
	if (got < 0 && errno == EPERM)
		cut(r, got, "no permission to read the memory of the process",
		    "run proftop as root or with cap_sys_ptrace");
	else if (got < 0 && errno == ESRCH)
		cut(r, got, "the process has ended", NULL);
	else
		cut(r, got, "no code at its address now", NULL);
	r->l->origin = "current memory of the process";
}

/* Return the index of a reported file, added if new. */
static uint32_t file_of(struct reading *r, const char *dir, const char *file)
{
	struct listing *l = r->l;
	char path[PATH_MAX], clean[TEXT_MAX];
	struct safe_text is;

	for (uint32_t i = 0; i < l->nr_files; i++)
		if (!strcmp(r->raw[i], file))
			return i;
	if (!l->files)
		l->files = calloc(CODE_FILES_MAX, sizeof(*l->files));
	if (!l->files || l->nr_files == CODE_FILES_MAX)
		return LISTING_NONE;
	dwarf_path(path, sizeof(path), dir, file);
	r->raw[l->nr_files] = strdup(file);
	r->paths[l->nr_files] = strdup(path);
	if (!r->raw[l->nr_files] || !r->paths[l->nr_files])
		return LISTING_NONE;
	is = text_sanitise(clean, sizeof(clean), path, strlen(path));
	l->files[l->nr_files].path = listing_add_text(l, is.str, is.size);
	return l->nr_files++;
}

void code_read_add_row(struct reading *r, uint64_t vaddr, const char *dir, const char *file,
		       uint32_t line)
{
	struct reading_row row = { .vaddr = vaddr, .file = LISTING_NONE };

	if (r->nr_rows >= ROWS_MAX || !array_reserve(&r->rows, &r->max_rows, r->nr_rows + 1ull))
		return;
	if (file && line)
		row.file = file_of(r, dir, file);
	if (row.file != LISTING_NONE)
		row.line = line;
	r->rows[r->nr_rows++] = row;
}

static void tell_line(void *ctx, uint64_t vaddr, const struct dwarf_frame *told)
{
	code_read_add_row(ctx, vaddr, told->dir, told->file, told->line);
}

/* Read the reported lines of file @i. */
static void read_source(struct reading *r, uint32_t i)
{
	struct source_want want = {
		.path = r->paths[i],
		.pid = r->where.seen.pid,
		.root = r->where.root,
		.first = UINT32_MAX,
		.built_ns = r->built_ns,
	};

	for (uint32_t n = 0; n < r->nr_rows; n++) {
		const struct reading_row *row = &r->rows[n];

		if (row->file != i || !row->line)
			continue;
		want.first = MIN(want.first, row->line);
		want.last = MAX(want.last, row->line);
	}
	want.last = (uint32_t)MIN(want.last, want.first + (uint64_t)FILE_SPAN_MAX - 1);
	if (want.first <= want.last)
		source_read(r->l, &r->l->files[i], &want);
}

static const char *why_no_lines(int code)
{
	switch (code) {
	case -ENODATA:
	case -ENOENT:
		return "no debug information: install its -dbgsym package, or build with -g";
	case -ESTALE:
		return NOT_RUNNING;
	case -EPERM:
		return "debug information is read only from files of root and yourself";
	case -EFBIG:
		return "debug information is too large";
	case -ETIME:
		return "debug information takes too long to read";
	case -EPIPE:
	case -EBADMSG:
		return "debug information is damaged";
	default:
		return "cannot read debug information";
	}
}

/* Find the line of each part of the code. */
static void read_rows(struct reading *r)
{
	struct dwarf_cage *file = NULL;
	int rc = dwarf_object_open(&r->where, false, &file);

	if (!rc)
		rc = dwarf_cage_lines(file, r->l->vaddr, r->l->size, tell_line, r);
	dwarf_cage_close(file);
	if (rc)
		r->l->no_source = why_no_lines(rc);
	else if (!r->l->nr_files)
		r->l->no_source = "no lines in the debug information";
}

static void read_lines(struct reading *r)
{
	struct listing *l = r->l;
	enum object_kind kind = r->where.identity.kind;

	if (kind == OBJECT_KERNEL || kind == OBJECT_VDSO)
		l->no_source = "lines of kernel code are not supported";
	else if (kind != OBJECT_FILE && !r->nr_rows)
		l->no_source = "JIT code has lines only with a jitdump";
	else if (r->no_lines)
		l->no_source = "debug information is not read (--no-inline)";
	else if (kind == OBJECT_FILE)
		read_rows(r);
	for (uint32_t i = 0;
	     i < l->nr_files && !atomic_load_explicit(&r->job.watch.cancel, memory_order_relaxed);
	     i++)
		read_source(r, i);
}

static void run(struct job *job)
{
	struct reading *r = (struct reading *)job;

	switch (r->bytes ? OBJECT_UNKNOWN : r->where.identity.kind) {
	case OBJECT_UNKNOWN: /* present already */
		break;
	case OBJECT_FILE:
		read_file(r);
		break;
	case OBJECT_VDSO:
		read_vdso(r);
		break;
	case OBJECT_KERNEL:
		read_kernel(r);
		break;
	case OBJECT_SCRIPT:
		script_read(r->l, &r->script);
		break;
	default:
		read_process(r);
	}
	if (r->nr_bytes && !r->l->why)
		read_lines(r);
}

static void drop(struct job *job)
{
	struct reading *r = (struct reading *)job;

	for (uint32_t i = 0; i < CODE_FILES_MAX; i++) {
		free(r->raw[i]);
		free(r->paths[i]);
	}
	load_where_fini(&r->where);
	free(r->kcore_path);
	listing_put(r->l);
	free(r->bytes);
	free(r->rows);
	free(r);
}

struct reading *code_read_new(struct listing *l)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job.run = run;
	r->job.drop = drop;
	r->l = l;
	return r;
}
