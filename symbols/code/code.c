// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The instructions and lines of one function.
 *
 * Runs on: the loader, except for want and take.
 */
#include "symbols/source/code.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "symbols/base/keyhash.h"
#include "symbols/source/code_read.h"
#include "symbols/source/disasm.h"
#include "symbols/source/script.h"
#include "symbols/object/image.h"

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
	if (vaddr == found.start || s->made_up)
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
	const struct disasm_code c = {
		.bytes = r->bytes,
		.nr_bytes = r->nr_bytes,
		.vaddr = r->l->vaddr,
		.machine = r->machine ? r->machine : our_machine(),
		.wide = r->wide,
		.name = name_of,
		.ctx = &a,
	};

	/* Acquire: pairs with the releases of the loader. */
	a.image = atomic_load_explicit(&a.object->image, memory_order_acquire);
	r->l->nr_bytes = r->nr_bytes;
	if (disasm(r->l, &c))
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

	if (!l || disasm(l, &c)) {
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
	const struct code_text *t = d->naming->codes ? codes_at(d->naming->codes, lines->code)
						     : NULL;

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
