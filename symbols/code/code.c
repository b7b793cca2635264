// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The instructions and lines of one function, on request: the job that reads them from file, vdso,
 * kernel or process; the result, immutable and reference-counted.
 *
 * Runs on: the loader, except for want and take.
 */
#include "symbols/code/internal.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

/*
 * Read one function: its bytes, the line of each part, and the text of these
 * lines. A job for a helper: it holds copies of all its input.
 *
 * Read one function.
 *
 * Runs on: a helper; code_read_new() on the loader. The file is opened again by its
 * identity, so the code read is the code sampled, or nothing.
 */

#define CODE_SIZE_MAX  (256u << 10)
#define CODE_FILES_MAX 64u

/* From here on the code is of this line. */
struct reading_row {
	uint64_t vaddr;
	uint32_t file, line; /* LISTING_NONE and 0: no line */
};

struct reading {
	struct job job;
	/* Input. */
	struct load_where where; /* where.identity.kind is the kind of the code's home */
	uint64_t offset;	 /* in its file or the vdso; the kernel: its address now */
	bool no_lines;
	char *kcore_path; /* owned */
	bool kcore_below; /* below where.root */
	uint16_t machine; /* e_machine; EM_NONE: this machine's */
	bool wide;
	struct script_want script;		  /* where.identity.kind is OBJECT_SCRIPT */
	uint64_t part_offsets[LISTING_PARTS_MAX]; /* in its file, of the listing's parts */
	/* Result, partly set before; the listing has no instructions yet. */
	struct listing *l;
	uint8_t *bytes; /* of the function, then of its parts */
	uint32_t nr_bytes;
	uint32_t part_bytes[LISTING_PARTS_MAX];
	struct reading_row *rows; /* in order of address */
	uint32_t nr_rows, max_rows;
	int64_t built_ns;	     /* last change of the file */
	char *raw[CODE_FILES_MAX];   /* of l->files, raw */
	char *paths[CODE_FILES_MAX]; /* with their folder */
};

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
	uint64_t size;

	r->nr_bytes = (uint32_t)MIN(r->l->size, (uint64_t)CODE_SIZE_MAX);
	size = r->nr_bytes;
	for (uint32_t i = 0; i < r->l->nr_parts; i++) {
		r->part_bytes[i] = (uint32_t)MIN(r->l->parts[i].size, (uint64_t)CODE_SIZE_MAX);
		size += r->part_bytes[i];
	}
	r->bytes = malloc(MAX(size, 1u));
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
	struct untrusted_file file;
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
static bool is_of_build(const struct reading *r, const struct untrusted_file *file)
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

/* Read the code of the function in the file, and that of its parts. */
static void read_code(struct reading *r, int fd)
{
	uint8_t *at = r->bytes + r->nr_bytes;

	for (uint32_t i = 0; i < r->l->nr_parts; i++) {
		ssize_t got = pread(fd, at, r->part_bytes[i], (off_t)r->part_offsets[i]);

		r->part_bytes[i] = got > 0 ? (uint32_t)got : 0;
		at += r->part_bytes[i];
	}
	cut(r, pread(fd, r->bytes, r->nr_bytes, (off_t)r->offset), "cannot read the file", NULL);
}

static void read_file(struct reading *r)
{
	struct untrusted_file file;
	int code = load_open(&r->where, &r->job.watch, &file);

	if (code) {
		refuse_file(r, code);
		return;
	}
	if (!is_of_build(r, &file))
		refuse_file(r, -ESTALE);
	else if (make_room(r))
		read_code(r, file.fd);
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
	got = kernel_sandbox_memory(root, r->kcore_path, r->offset, r->bytes, r->nr_bytes);
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

/* While reading: from @vaddr on the code is of @line of @file, below @dir (may be NULL). */
static void code_read_add_row(struct reading *r, uint64_t vaddr, const char *dir, const char *file,
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
	const char *words = dwarf_object_words(code);

	if (code == -ESTALE)
		return NOT_RUNNING;
	return words ? words
		     : "no debug information: install its -dbgsym package, or build with -g";
}

/* List the ranges of the function's code in order of address. Return their number. */
static uint32_t ranges_of(const struct listing *l, struct listing_part ranges[])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < l->nr_parts && l->parts[i].vaddr < l->vaddr; i++)
		ranges[nr++] = l->parts[i];
	ranges[nr++] = (struct listing_part){ l->vaddr, l->size };
	for (uint32_t i = nr - 1; i < l->nr_parts; i++)
		ranges[nr++] = l->parts[i];
	return nr;
}

/* Find the line of each part of the code. */
static void read_rows(struct reading *r)
{
	struct listing_part ranges[LISTING_PARTS_MAX + 1];
	struct dwarf_sandbox *file = NULL;
	int rc = dwarf_object_open(&r->where, false, NULL, &file);

	for (uint32_t i = 0, nr = ranges_of(r->l, ranges); i < nr && !rc; i++)
		rc = dwarf_sandbox_lines(file, ranges[i].vaddr, ranges[i].size, tell_line, r);
	dwarf_sandbox_close(file);
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
		listing_read_script(r->l, &r->script);
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

/* Create a job for the function of @l, taking over the reference. NULL when out of memory. */
static struct reading *code_read_new(struct listing *l)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job.run = run;
	r->job.drop = drop;
	r->l = l;
	return r;
}

#define READ_MAX_NS 15000000000ULL /* a job that takes longer hangs */

void code_init(struct code_desk *d, const struct image_cache *images, const struct symtab *symtab,
	       struct naming *naming, const struct lines *lines)
{
	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	d->wanted = SYMBOL_NONE;
	d->images = images;
	d->symtab = symtab;
	d->naming = naming;
	d->lines = lines;
	d->kcore_path = "/proc/kcore";
}

void code_fini(struct code_desk *d)
{
	if (d->reading)
		helper_job_leave(&d->reading->job);
	listing_put(d->done);
	pthread_mutex_destroy(&d->lock);
}

void code_want(struct code_desk *d, uint32_t symbol, const struct listing_instance *instance)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = symbol;
	d->instance = *instance;
	d->by_line = false;
	pthread_mutex_unlock(&d->lock);
}

void code_want_lines(struct code_desk *d, uint32_t symbol, const struct listing_lines *lines)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = symbol;
	d->instance = (struct listing_instance){ 0 };
	d->by_line = true;
	d->lines_wanted = *lines;
	pthread_mutex_unlock(&d->lock);
}

static bool same(const struct listing_instance *a, const struct listing_instance *b)
{
	return a->object == b->object && a->addr == b->addr;
}

struct listing *code_take(struct code_desk *d, uint32_t symbol)
{
	struct listing *l = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->done && d->done->symbol == symbol &&
	    (symbol != d->wanted || same(&d->done->instance, &d->instance)))
		l = listing_get(d->done);
	pthread_mutex_unlock(&d->lock);
	return l;
}

/* Publish the result; the previous one is released. */
static void publish(struct code_desk *d, struct listing *l)
{
	struct listing *old;

	pthread_mutex_lock(&d->lock);
	old = d->done;
	d->done = l;
	pthread_mutex_unlock(&d->lock);
	listing_put(old);
}

/* ---- names and lines for the code ---- */

/* Context of the look-ups of names. */
struct answer {
	struct code_desk *d;
	const struct object *object;
	const struct image *image; /* may be NULL */
};

static uint32_t name_of(void *ctx, uint64_t vaddr, char *buf, size_t size)
{
	const struct answer *a = ctx;
	struct naming_question q = { .object = a->object->id, .offset = vaddr, .now = true };
	bool in_file = a->object->identity.kind == OBJECT_FILE ||
		       a->object->identity.kind == OBJECT_VDSO;
	const struct symbol *s;
	struct naming_answer found;

	if (in_file && (!a->image || !image_offset(a->image, vaddr, &q.offset)))
		return LISTING_NONE;
	if (naming_find(a->d->naming, &q, &found) || (!found.by_name && !in_file))
		return LISTING_NONE;
	s = symtab_at(a->d->symtab, found.symbol);
	if (!s)
		return LISTING_NONE;
	if (vaddr <= found.start || s->made_up) /* before it: in a part of the function */
		snprintf(buf, size, "%s", s->name.str);
	else
		snprintf(buf, size, "%s+0x%llx", s->name.str,
			 (unsigned long long)(vaddr - found.start));
	return found.symbol;
}

/* Return the machine of code without a file: this one, as in the kernel's object. */
static uint16_t our_machine(void)
{
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	return vdso && vdso->e_ident[EI_CLASS] == ELFCLASS64 ? vdso->e_machine : EM_NONE;
}

static void disassemble(struct code_desk *d, struct reading *r)
{
	struct answer a = { .d = d, .object = objects_at(d->images->objects, r->where.object) };
	struct disasm_code c[LISTING_PARTS_MAX + 1];
	struct listing_part ranges[LISTING_PARTS_MAX + 1];
	uint32_t nr = ranges_of(r->l, ranges), part = 0;
	const uint8_t *at = r->bytes + r->nr_bytes;

	for (uint32_t i = 0; i < nr; i++) {
		bool whole = ranges[i].vaddr == r->l->vaddr;

		c[i] = (struct disasm_code){
			.bytes = whole ? r->bytes : at,
			.nr_bytes = whole ? r->nr_bytes : r->part_bytes[part],
			.vaddr = ranges[i].vaddr,
			.begin = r->l->vaddr,
			.machine = r->machine ? r->machine : our_machine(),
			.wide = r->wide,
			.name = name_of,
			.ctx = &a,
		};
		if (!whole)
			at += r->part_bytes[part++];
	}

	/* Acquire: pairs with the releases of the loader. */
	a.image = atomic_load_explicit(&a.object->image, memory_order_acquire);
	r->l->nr_bytes = r->nr_bytes;
	if (disasm(r->l, c, nr))
		r->l->why = "out of memory";
}

/* Set the line of each instruction. */
static void put_lines(struct reading *r)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < r->l->nr_insns; i++) {
		struct listing_insn *insn = &r->l->insns[i];

		while (row < r->nr_rows && r->rows[row].vaddr <= insn->vaddr)
			row++;
		if (!row)
			continue;
		insn->file = r->rows[row - 1].file;
		insn->line = r->rows[row - 1].line;
	}
}

/* The code was read: the rest is done here, with the names. */
static void finish(struct code_desk *d, struct reading *r)
{
	struct listing *l = r->l;

	if (r->nr_bytes && !l->why)
		disassemble(d, r);
	put_lines(r);
	r->l = NULL;
	publish(d, l);
	r->job.drop(&r->job);
}

/* ---- requests ---- */

static uint64_t extent_in_image(const struct image *image, uint64_t vaddr)
{
	const struct image_symbol *symbol = image_find(image, vaddr);
	struct ehframe_fde fde;

	if (symbol && symbol->vaddr <= vaddr && vaddr - symbol->vaddr < symbol->size)
		return symbol->vaddr + symbol->size - vaddr;
	return ehframe_find(&image->eh, vaddr, &fde) ? fde.start + fde.size - vaddr : 0;
}

/* Find the parts of the function in @image: parts right behind are joined. */
static void find_parts(struct reading *r, const struct image *image)
{
	struct listing *l = r->l;
	const struct image_symbol *function = image_find(image, l->vaddr), *s;

	for (uint32_t i = 0; function && i < image->nr_symbols; i++) {
		struct listing_part *last = l->nr_parts ? &l->parts[l->nr_parts - 1] : NULL;

		s = &image->symbols[i];
		if (!s->whole || image_whole(image, s) != function)
			continue;
		if (s->vaddr == l->vaddr + l->size)
			l->size += s->size;
		else if (last && s->vaddr == last->vaddr + last->size)
			last->size += s->size;
		else if (l->nr_parts < LISTING_PARTS_MAX &&
			 image_offset(image, s->vaddr, &r->part_offsets[l->nr_parts]))
			l->parts[l->nr_parts++] = (struct listing_part){ s->vaddr, s->size };
	}
}

/* Find kernel code made at run time: its extent, if it is still the sampled code. */
static uint64_t extent_made_at_run_time(const struct ksyms_symbol *told,
					const struct symbol *symbol, struct listing *l)
{
	if (told->gone)
		l->why = "its code was removed by the kernel";
	else if (keyhash_name(told->name, told->name_size) != symbol->variant)
		l->why = "another function is at its address now";
	return told->start + told->size - symbol->start;
}

static uint64_t extent_in_kernel(struct naming_kernel *n, const struct symbol *symbol,
				 struct listing *l)
{
	struct kallsyms_symbol k;

	if (n->ksyms && ksyms_find(n->ksyms, symbol->start, &n->ksym))
		return extent_made_at_run_time(&n->ksym, symbol, l);
	if (n->recorded.match != KERNEL_SAME) {
		l->why = recorded_kernel_reason(n->recorded.match);
		l->fix = "replay it on that machine";
	}
	return n->kallsyms && kallsyms_find(n->kallsyms,
					    recorded_kernel_now(&n->recorded, symbol->start), &k)
		       ? k.size
		       : 0;
}

/* Return the size of @symbol; 0: unknown. Its code may be gone: then @l has the reason. */
static uint64_t extent_of(struct code_desk *d, struct object *object, const struct image *image,
			  const struct symbol *symbol, struct listing *l)
{
	uint64_t vaddr = symbol->start;
	struct perfmap_symbol p;

	switch (object->identity.kind) {
	case OBJECT_KERNEL:
		return extent_in_kernel(&d->naming->kernel, symbol, l);
	case OBJECT_ANON:
		return perfmaps_find(&d->naming->jit.perfmaps, object, vaddr, &p)
			       ? 0
			       : p.start + p.size - vaddr;
	default:
		return image ? extent_in_image(image, vaddr) : 0;
	}
}

/* Return the reason why the code of @l is unreadable; NULL: it is readable. */
static const char *why_not(const struct listing *l, const struct symbol *symbol,
			   const struct object *object, const struct image *image, uint64_t *offset)
{
	bool in_file = object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO;

	if (l->why)
		return l->why;
	if (symbol->inlined)
		return "inlined: its code is part of its callers";
	if (in_file && !image)
		return "cannot load its object";
	if (object->identity.kind == OBJECT_UNKNOWN)
		return "the address of its code is unknown";
	if (!l->size)
		return "the end of its code is unknown";
	if (in_file && !image_offset(image, l->vaddr, offset))
		return "its code is not in the file";
	return NULL;
}

/* Return true while the object is being loaded, which is requested: it may be new, or evicted. */
static bool is_away(struct object *object, const struct image *image)
{
	/* Acquire: pairs with the releases of the loader. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	if (state == OBJECT_FAILED || (state == OBJECT_READY && (!image || !image->away)))
		return false;
	object_want(object);
	return true;
}

/* Add the lines of JIT code, one instruction after the other, from the jitdump. */
static void take_dumped_lines(struct code_desk *d, struct reading *r, struct object *object,
			      const struct symbol *symbol)
{
	const struct disasm_code c = { .bytes = r->bytes,
				       .nr_bytes = r->nr_bytes,
				       .vaddr = symbol->start,
				       .machine = r->machine,
				       .wide = r->wide };
	struct listing *l = listing_new(SYMBOL_NONE);

	if (!l || disasm(l, &c, 1)) {
		listing_put(l);
		return;
	}
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const char *file = NULL;
		uint32_t line = 0;

		if (jitdumps_code_line(&d->naming->jit.jitdumps, object, symbol->start,
				       symbol->variant, l->insns[i].vaddr, &file, &line))
			code_read_add_row(r, l->insns[i].vaddr, NULL, file, line);
	}
	listing_put(l);
}

/* A jitdump has the code as it was sampled, even if the process has ended. */
static void take_dumped(struct code_desk *d, struct reading *r, struct object *object,
			const struct symbol *symbol)
{
	int nr = jitdumps_code(&d->naming->jit.jitdumps, object, symbol->start, symbol->variant,
			       &r->bytes, CODE_SIZE_MAX, &r->l->size, &r->machine);

	if (nr <= 0) {
		if (!nr)
			free(r->bytes);
		r->bytes = NULL;
		return;
	}
	r->nr_bytes = (uint32_t)nr;
	r->wide = true;
	r->l->origin = "the jitdump of the process";
	if (!d->lines->off)
		take_dumped_lines(d, r, object, symbol);
}

/*
 * Set the object and start of the function @id in a process. Return the reason why not; NULL: set,
 * or it has its own.
 */
static const char *set_place(struct code_desk *d, uint32_t id, struct symbol *symbol,
			     const struct listing_instance *in)
{
	struct objects *objects = d->images->objects;
	const struct object *shared = objects_at(objects, symbol->object);
	struct object *object = objects_at(objects, in->object);
	const struct naming_question q = { .object = in->object, .offset = in->addr, .now = true };
	struct naming_answer found;

	if (!shared || shared->identity.kind != OBJECT_SCRIPT)
		return NULL;
	if (!object || object->identity.kind != OBJECT_ANON)
		return "without samples the address of its code is unknown";
	if (naming_find(d->naming, &q, &found) || found.symbol != id)
		return "another function is at its address now, or its process has ended";
	symbol->object = jitdumps_base(&d->naming->jit.jitdumps, object)->id;
	symbol->start = found.start;
	return NULL;
}

/* Start to read @of, or set the reason why not. */
static void begin(struct code_desk *d, uint32_t id, const struct symbol *of,
		  const struct listing_instance *instance)
{
	struct symbol placed = *of, *symbol = &placed;
	const char *why = set_place(d, id, symbol, instance);
	struct object *object = objects_at(d->images->objects, symbol->object);
	const struct image *image =
		object ? atomic_load_explicit(&object->image, memory_order_acquire) : NULL;
	struct listing *l = object && !is_away(object, image) ? listing_new(id) : NULL;
	struct reading *r;
	uint64_t offset = 0;

	if (!l)
		return;
	l->instance = *instance;
	l->vaddr = symbol->start;
	l->why = why;
	if (!why)
		l->size = extent_of(d, object, image, symbol, l);
	r = code_read_new(l);
	if (!r) {
		listing_put(l);
		return;
	}
	if (!why && object->identity.kind == OBJECT_ANON)
		take_dumped(d, r, object, symbol);
	l->why = why_not(l, symbol, object, image, &offset);
	if (l->why) {
		finish(d, r);
		return;
	}
	if (object->identity.kind == OBJECT_FILE)
		find_parts(r, image);
	load_where(&r->where, d->images->objects, object, d->images->no_proc, d->images->root);
	r->offset = object->identity.kind == OBJECT_KERNEL
			    ? recorded_kernel_now(&d->naming->kernel.recorded, l->vaddr)
			    : offset;
	r->no_lines = d->lines->off;
	r->kcore_path = strdup(d->kcore_path);
	r->kcore_below = d->kcore_below;
	if (!r->bytes) {
		r->machine = image ? image->machine : EM_NONE;
		r->wide = !r->machine || image->elf_class == ELFCLASS64;
	}
	if (helpers_start(d->images->helpers, &r->job)) {
		r->job.drop(&r->job); /* all helpers are busy: at the next round */
		return;
	}
	d->reading = r;
	d->began_ns = time_now_ns();
}

/* Set the path, name and first line of the function. */
static void fill_script(struct code_desk *d, const struct listing_lines *lines,
			const struct symbol *symbol, struct script_want *w)
{
	const struct code_text *t =
		d->naming->codes ? script_functions_at(d->naming->codes, lines->code) : NULL;

	w->pid = d->images->no_proc ? 0 : lines->pid;
	w->root = d->images->root;
	w->first = lines->first;
	w->last = lines->last;
	if (t) {
		snprintf(w->path, sizeof(w->path), "%.*s", (int)t->file_size, t->file);
		w->begin = t->first_line;
	} else {
		snprintf(w->path, sizeof(w->path), "%s", lines->file);
		w->java = true;
	}
	snprintf(w->name, sizeof(w->name), "%s", symbol->name.str);
}

/* Start to read the source of a function of a language. */
static void begin_script(struct code_desk *d, uint32_t id, const struct symbol *symbol,
			 const struct listing_lines *lines)
{
	struct listing *l = listing_new(id);
	struct reading *r = l ? code_read_new(l) : NULL;

	if (!r) {
		listing_put(l);
		return;
	}
	r->where.identity.kind = OBJECT_SCRIPT;
	fill_script(d, lines, symbol, &r->script);
	if (helpers_start(d->images->helpers, &r->job)) {
		r->job.drop(&r->job); /* all helpers are busy: at the next round */
		return;
	}
	d->reading = r;
	d->began_ns = time_now_ns();
}

static void give_up(struct code_desk *d, uint32_t symbol)
{
	struct listing *l = listing_new(symbol);

	if (!l)
		return;
	l->instance = d->reading->l->instance;
	l->why = "reading its code or source hangs: file system does not respond";
	publish(d, l);
}

/* A request. */
struct question {
	uint32_t symbol; /* SYMBOL_NONE: none, or answered */
	struct listing_instance instance;
	bool by_line; /* its source only, with @lines */
	struct listing_lines lines;
};

/* Check the running job: true once it is over, or abandoned. */
static bool end_reading(struct code_desk *d, const struct question *q)
{
	struct reading *r = d->reading;

	if (helper_job_done(&r->job)) {
		finish(d, r);
	} else if (q->symbol != r->l->symbol || !same(&q->instance, &r->l->instance)) {
		helper_job_leave(&r->job);
	} else if (time_now_ns() - d->began_ns > READ_MAX_NS) {
		give_up(d, q->symbol);
		helper_job_leave(&r->job);
	} else {
		return false;
	}
	d->reading = NULL;
	return true;
}

/* Test if the result has the wanted lines, or never will. */
static bool has_lines(const struct code_desk *d)
{
	const struct listing *l = d->done;
	uint32_t first = d->lines_wanted.first, last = d->lines_wanted.last;

	return !d->by_line || l->why || !l->script || l->size >= SCRIPT_LINES_MAX || !last ||
	       (first >= l->vaddr && last - l->vaddr < l->size) || l->asked_last >= last;
}

/* Return what is wanted and not read yet. */
static struct question open_question(struct code_desk *d)
{
	struct question q;

	pthread_mutex_lock(&d->lock);
	q = (struct question){ d->wanted, d->instance, d->by_line, d->lines_wanted };
	if (d->done && d->done->symbol == d->wanted && same(&d->done->instance, &d->instance) &&
	    has_lines(d))
		q.symbol = SYMBOL_NONE;
	pthread_mutex_unlock(&d->lock);
	return q;
}

void code_serve(struct code_desk *d)
{
	struct question q = open_question(d);
	const struct symbol *symbol;

	if (d->reading && !end_reading(d, &q))
		return;
	q = open_question(d);
	symbol = q.symbol != SYMBOL_NONE ? symtab_at(d->symtab, q.symbol) : NULL;
	if (symbol && q.by_line)
		begin_script(d, q.symbol, symbol, &q.lines);
	else if (symbol)
		begin(d, q.symbol, symbol, &q.instance);
}

bool code_busy(struct code_desk *d)
{
	return d->reading;
}
