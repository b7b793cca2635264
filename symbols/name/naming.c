// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Place -> symbol, one rule for each kind of object.
 *
 * Runs on: the loader.
 */
#include "symbols/name/naming.h"

#include <errno.h>
#include <string.h>

#include "symbols/kernel/kallsyms_job.h"
#include "symbols/lang/lang.h"
#include "symbols/name/wait_kind.h"

#define ANON_PAGE	      4096ULL
#define KALLSYMS_INTERVAL_NS  10000000000ULL
#define KALLSYMS_INTERVAL_MAX (64 * KALLSYMS_INTERVAL_NS)
#define KALLSYMS_TRANSIENT_NS 2000000000ULL

/*
 * A symbol as found, before it has an id. Most places are in functions with an
 * id: the text of the name is made for the others only.
 */
struct found {
	struct symtab_key key;
	struct symtab_text text; /* complete, or with a name from the fields below */
	const struct image *image;
	const struct image_symbol *symbol; /* one of the image's symbols; NULL: see below */
	struct safe_text head; /* a made-up name begins with this; .str NULL: not made up */
	const char *join;      /* and continues with this and the start; or NULL */
	bool by_name;
	bool plain; /* the name is as its author wrote it: not mangled */
};

void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop)
{
	memset(n, 0, sizeof(*n));
	n->objects = objects;
	n->symtab = symtab;
	n->kallsyms_path = "/proc/kallsyms";
	n->kallsyms_interval_ns = KALLSYMS_INTERVAL_NS;
	hotspots_init(&n->hotspots, objects);
	jitdumps_init(&n->jitdumps, objects, NULL, &n->jitreads, stop);
	perfmaps_init(&n->perfmaps, objects, &n->jitreads, stop);
}

void naming_fini(struct naming *n)
{
	kallsyms_job_leave(n->ahead);
	n->ahead = NULL;
	kallsyms_free(n->kallsyms);
	n->kallsyms = NULL;
	ksyms_free(n->ksyms);
	n->ksyms = NULL;
	recorded_modules_fini(&n->modules);
	hotspots_fini(&n->hotspots);
	jitdumps_fini(&n->jitdumps);
	perfmaps_fini(&n->perfmaps);
	demangler_fini(&n->demangler);
}

static void set_module(struct found *f, const char *module, size_t size)
{
	f->text.module = module;
	f->text.module_size = size;
}

static void set_name(struct found *f, const char *name, size_t size)
{
	f->text.name = name;
	f->text.name_size = size;
	f->by_name = true;
}

/* Make a name of a word, or with @join of a word and an address: "libfoo.so+0x1230". */
static void set_made_up(struct found *f, struct safe_text head, const char *join, uint64_t start)
{
	f->key.start = start;
	f->key.made_up = true;
	f->head = head;
	f->join = join;
}

/* Name code of a file or the vdso: by its symbol, else its FDE, else its address. */
static int find_in_image(const struct object *object, const struct naming_question *q,
			 struct found *f)
{
	/* Pairs with the release in objects.c. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	struct ehframe_fde fde;
	const struct image_symbol *s;
	uint64_t vaddr;

	f->text.kind = '?';
	set_module(f, object->name.str, object->name.size);
	if (!image || !image_vaddr(image, q->offset, &vaddr)) {
		set_made_up(f, object->name, "+0x", q->offset);
	} else if ((s = image_find(image, vaddr))) {
		f->key.start = s->vaddr;
		f->text.kind = object->identity.kind == OBJECT_VDSO ? 'v' : 'u';
		f->image = image;
		f->symbol = s;
		f->by_name = true;
	} else {
		set_made_up(f, object->name, "+0x",
			    ehframe_find(&image->eh, vaddr, &fde) ? fde.start : vaddr);
	}
	return 0;
}

/* Find the offset between the kernel's code now and in the recording. */
static void place_kernel(struct naming *n)
{
	struct recorded_kernel *k = &n->kernel;
	uint64_t now = n->kallsyms && k->mark ? kallsyms_begin(n->kallsyms, k->stext) : 0;

	k->shift = now ? k->mark - now : 0;
}

void naming_kernel_was(struct naming *n, const struct recorded_kernel *told)
{
	enum kernel_match match = n->kernel.match;

	n->kernel = *told;
	n->kernel.match = match;
	place_kernel(n);
}

void naming_expect_kernel(struct naming *n, struct helpers *helpers)
{
	if (!n->ahead && !n->kallsyms_ns && n->kernel.match == KERNEL_SAME)
		n->ahead = kallsyms_job_start(n->kallsyms_path, helpers);
}

/* Return the list as it is now, or as it was when it was read ahead. */
static int take_kallsyms(struct naming *n, struct kallsyms **out)
{
	struct kallsyms_job_result result;

	kallsyms_job_take(n->ahead, n->kallsyms_path, &result);
	n->ahead = NULL;
	n->kallsyms_ns = result.start_ns; /* symbols added in between may be missing */
	n->kallsyms_cost_ns = result.cost_ns;
	*out = result.list;
	return result.rc;
}

/* Read /proc/kallsyms again; keep the old list if the new one is unreadable. */
static void read_kallsyms(struct naming *n, struct object *kernel)
{
	uint32_t nr_before = n->kallsyms ? kallsyms_nr(n->kallsyms) : 0;
	struct kallsyms *k;
	int rc = take_kallsyms(n, &k);

	if (rc) {
		if (!n->kallsyms && rc == -EACCES)
			object_explain(kernel, "kernel addresses are hidden from this user",
				       "run proftop as root, or: "
				       "sysctl kernel.kptr_restrict=0 "
				       "kernel.perf_event_paranoid=1");
		else if (!n->kallsyms)
			object_explain(kernel, "cannot read kernel symbols",
				       "mount /proc; needs a kernel with CONFIG_KALLSYMS");
		return;
	}
	if (nr_before == kallsyms_nr(k))
		n->kallsyms_interval_ns = MIN(n->kallsyms_interval_ns * 2, KALLSYMS_INTERVAL_MAX);
	else
		n->kallsyms_interval_ns = KALLSYMS_INTERVAL_NS;
	kallsyms_free(n->kallsyms);
	n->kallsyms = k;
	place_kernel(n);
	atomic_store_explicit(&n->kallsyms_memory, kallsyms_memory(k), memory_order_relaxed);
	object_explain(kernel, NULL, NULL);
	object_credit(kernel, "kallsyms", kallsyms_nr(k));
}

/* Kernel code that is added and removed in reused memory: BPF programs and trampolines. */
static bool is_transient(const struct kallsyms_symbol *s)
{
	static const char *const makers[] = {
		"[bpf]",
		"[__builtin__ftrace]",
		"[__builtin__kprobes]",
	};

	for (size_t i = 0; s->module && i < ARRAY_SIZE(makers); i++) {
		if (s->module_size == strlen(makers[i]) &&
		    !memcmp(s->module, makers[i], s->module_size))
			return true;
	}
	return false;
}

/* Find the symbol of @addr, a sampled address, in the list. */
static bool find_in_list(const struct naming *n, uint64_t addr, struct kallsyms_symbol *out)
{
	if (!kallsyms_find(n->kallsyms, recorded_kernel_now(&n->kernel, addr), out))
		return false;
	out->start = recorded_kernel_then(&n->kernel, out->start);
	return true;
}

/* Find @addr; if it is missing a module may be new: read the list again, now or later. */
static int find_in_kallsyms(struct naming *n, struct object *kernel,
			    const struct naming_question *q, struct kallsyms_symbol *out)
{
	uint64_t interval_ns = n->kallsyms_interval_ns;
	int rc = -ENOENT;

	if (!n->kallsyms_ns)
		read_kallsyms(n, kernel);
	if (!n->kallsyms)
		return -ENOENT;
	if (find_in_list(n, q->offset, out)) {
		if (!is_transient(out))
			return 0;
		/* Older than the request, the list may have a program that was removed. */
		interval_ns = MAX(KALLSYMS_TRANSIENT_NS, n->kallsyms_cost_ns * 20);
		rc = 0;
	}
	if (n->kallsyms_ns >= q->since_ns)
		return rc; /* the list is newer than the request */
	if (time_now_ns() - n->kallsyms_ns < interval_ns)
		return q->now ? rc : -EAGAIN;
	read_kallsyms(n, kernel);
	return find_in_list(n, q->offset, out) ? 0 : -ENOENT;
}

/* Reported by the kernel: newer than the list, and kept after the code was removed. */
static void set_made_at_run_time(struct found *f, const struct ksyms_symbol *s)
{
	f->key.start = s->start;
	f->key.variant = hash_name(s->name, s->name_size);
	if (s->type == KSYMS_BPF)
		set_module(f, "[bpf]", sizeof("[bpf]") - 1);
	set_name(f, s->name, s->name_size);
}

/* Name recorded kernel code without symbols: by its module. */
static void set_by_module(const struct recorded_module *module, struct found *f)
{
	if (!module) {
		set_made_up(f, TEXT("[kernel]"), NULL, 0);
		return;
	}
	set_made_up(f, recorded_module_text(module), NULL, module->start);
	set_module(f, f->head.str, f->head.size);
}

/* Explain that the symbols of the recorded kernel are unknown. */
static void explain_recorded(const struct naming *n, struct object *kernel)
{
	object_explain(kernel, recorded_kernel_reason(n->kernel.match),
		       n->kernel.match == KERNEL_UNKNOWN ? "if on this one: --symfs=/; else give a "
							   "copy of its /proc/kallsyms "
							   "below --symfs"
							 : "replay it there, or give a copy of its "
							   "/proc/kallsyms below "
							   "--symfs");
}

/* Name kernel code. Without any list all kernel code is one row: addresses would be useless. */
static int find_in_kernel(struct naming *n, const struct naming_question *q, struct found *f)
{
	struct object *kernel = objects_at(n->objects, OBJECT_ID_KERNEL);
	const struct recorded_module *module = recorded_modules_find(&n->modules, q->offset);
	struct kallsyms_symbol s;
	int rc;

	f->text.kind = 'k';
	set_module(f, kernel->name.str, kernel->name.size);
	if (n->ksyms && ksyms_find(n->ksyms, q->offset, &n->ksym)) {
		set_made_at_run_time(f, &n->ksym);
		return 0;
	}
	if (n->kernel.match != KERNEL_SAME) {
		explain_recorded(n, kernel);
		set_by_module(module, f);
		return 0;
	}
	rc = find_in_kallsyms(n, kernel, q, &s);
	if (rc == -EAGAIN)
		return rc;
	if (module && n->kernel.shift) { /* after a restart the modules are at other addresses */
		set_by_module(module, f);
	} else if (!rc) {
		f->key.start = s.start;
		if (s.module)
			set_module(f, s.module, s.module_size);
		set_name(f, s.name, s.name_size);
	} else if (n->kallsyms) {
		set_made_up(f, TEXT("[kernel]"), " 0x", q->offset & ~(ANON_PAGE - 1));
	} else {
		set_made_up(f, TEXT("[kernel]"), NULL, 0);
	}
	return 0;
}

/* Name code by a name that its process reported through @source. */
static void set_jit(struct found *f, const char *source, uint64_t start, const char *name,
		    size_t size)
{
	f->key.start = start;
	f->key.variant = hash_name(name, size);
	set_module(f, source, strlen(source));
	set_name(f, name, size);
}

/* Name a Java method. Compiled twice, interpreted: it is one function without a single start. */
static void set_java(struct found *f, const struct hotspots_symbol *s)
{
	set_jit(f, "[java]", 0, s->name, s->name_size);
	f->text.kind = LANG_JAVA;
}

/*
 * Find the name that a process reported in a file. 0, -ENOENT, -EAGAIN while the
 * files are read, -ECANCELED.
 */
static int find_reported(struct naming *n, struct object *object, struct object *base,
			 const struct naming_question *q, struct found *f)
{
	struct jitdumps_symbol dumped;
	struct perfmap_symbol mapped;
	int in_dump, in_map = -ENOENT;

	in_dump = jitdumps_find(&n->jitdumps, object, q->offset, &dumped);
	/* A file may have hung: the tables may be freed. Pairs with the release in loader_stop().
	 */
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	if (in_dump)
		in_map = perfmaps_find(&n->perfmaps, base, q->offset, &mapped);
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	if (!in_dump)
		set_jit(f, "[jitdump]", dumped.start, dumped.name, dumped.name_size);
	else if ((in_dump == -EAGAIN || in_map == -EAGAIN) && !q->now)
		return -EAGAIN;
	else if (!in_map)
		set_jit(f, "[perf map]", mapped.start, mapped.name, mapped.name_size);
	else
		return -ENOENT;
	return 0;
}

/*
 * Name JIT code, heap, stack: by the code cache of a JVM, the process's jitdump
 * or perf map, else one symbol a page. All layers of its code are shown as one
 * object.
 */
static int find_in_anon(struct naming *n, struct object *object, const struct naming_question *q,
			struct found *f)
{
	struct object *base = jitdumps_base(&n->jitdumps, object);
	struct hotspots_symbol java;
	int rc = hotspots_find(&n->hotspots, object, q->offset, &java);

	f->key.object = base->id;
	f->text.kind = 'j';
	if (!rc) {
		set_java(f, &java);
		return 0;
	}
	if (rc == -EAGAIN && !q->now)
		return rc;
	if (object->identity.layer == HOTSPOTS_METHODS) {
		set_module(f, "[java]", sizeof("[java]") - 1);
		set_made_up(f, TEXT("[interpreter]"), NULL, 0);
		return 0;
	}
	rc = find_reported(n, object, base, q, f);
	if (rc == -ENOENT) {
		set_module(f, base->name.str, base->name.size);
		set_made_up(f, TEXT("[anon]"), " 0x", q->offset & ~(ANON_PAGE - 1));
		return 0;
	}
	return rc;
}

/* Mark a function with others inlined: their samples are among its own. */
static void set_inlined(struct naming *n, struct found *f, const struct code_text *t)
{
	static const char mark[] = " +inlined";
	size_t size = MIN((size_t)t->name_size, sizeof(n->marked) - sizeof(mark));

	memcpy(mempcpy(n->marked, t->name, size), mark, sizeof(mark));
	size += sizeof(mark) - 1;
	set_name(f, n->marked, size);
	f->key.variant = hash_name(n->marked, size);
}

/*
 * A function of a script: the same in all processes that have the same file, line and name. Its
 * module is the script.
 */
static int find_in_script(struct naming *n, const struct naming_question *q, struct found *f)
{
	const struct code_text *t = n->codes ? codes_at(n->codes, lang_place_code(q->offset))
					     : NULL;
	const struct object_identity identity = { .kind = OBJECT_SCRIPT };
	const struct object *script;

	if (!t) {
		f->text.kind = '?';
		set_made_up(f, TEXT("[script]"), NULL, 0);
		set_module(f, "[script]", 8);
		return 0;
	}
	script = objects_intern(n->objects, &identity, t->file, t->file_size, 0, 0, 0);
	f->key.object = script->id;
	f->key.start = t->position ? t->position : t->first_line;
	f->key.variant = hash_name(t->name, t->name_size);
	f->text.kind = lang_letter((enum lang_kind)t->language);
	f->plain = true;
	set_module(f, script->name.str, script->name.size);
	if (lang_place_instr(q->offset) == LANG_INLINED)
		set_inlined(n, f, t);
	else
		set_name(f, t->name, t->name_size);
	return 0;
}

/* The frame of a waiting task: its name is the kind of the wait. */
static int find_wait(const struct object *object, const struct naming_question *q, struct found *f)
{
	const char *name = wait_kind_name((enum wait_kind)MIN(q->offset, WAIT_OTHER));

	f->key.start = q->offset;
	f->text.kind = 'w';
	f->by_name = f->plain = true;
	set_module(f, object->name.str, object->name.size);
	set_name(f, name, strlen(name));
	return 0;
}

static int find_unknown(const struct object *object, struct found *f)
{
	f->text.kind = '?';
	set_module(f, object->name.str, object->name.size);
	set_made_up(f, TEXT("[unknown]"), NULL, 0);
	return 0;
}

/*
 * Return true if the object is loaded or failed; else request it: every sampled
 * place needs a name.
 */
static bool is_settled(struct object *object)
{
	/* Pairs with the releases in objects.c. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	object_want(object);
	return state >= OBJECT_READY;
}

static int find(struct naming *n, struct object *object, const struct naming_question *q,
		struct found *f)
{
	if (!is_settled(object))
		return -EAGAIN;
	switch (object->identity.kind) {
	case OBJECT_KERNEL:
		return find_in_kernel(n, q, f);
	case OBJECT_FILE:
	case OBJECT_VDSO:
		return find_in_image(object, q, f);
	case OBJECT_ANON:
		return find_in_anon(n, object, q, f);
	case OBJECT_SCRIPT:
		return find_in_script(n, q, f);
	case OBJECT_WAIT:
		return find_wait(object, q, f);
	default:
		return find_unknown(object, f);
	}
}

/* Put the name together, if that was postponed. */
static void complete(struct naming *n, struct found *f)
{
	char *at;

	if (f->symbol) {
		f->text.name = image_symbol_name(f->image, f->symbol, n->stub, &f->text.name_size);
	} else if (f->head.str) {
		at = mempcpy(n->raw, f->head.str, f->head.size);
		if (f->join)
			at = text_put_hex(stpcpy(at, f->join), f->key.start, 0);
		f->text.name = n->raw;
		f->text.name_size = (size_t)(at - n->raw);
	}
}

/* Give @f an id; a mangled name is demangled only here, once for each symbol. */
static uint32_t add(struct naming *n, struct found *f)
{
	const char *clean;
	size_t size;

	complete(n, f);
	size = f->by_name && !f->plain
		       ? demangler_get(&n->demangler, f->text.name, f->text.name_size, &clean)
		       : 0;
	if (size) {
		f->text.name = clean;
		f->text.name_size = size;
	}
	return symtab_add(n->symtab, &f->key, &f->text);
}

void naming_prepare(struct naming *n, const struct naming_question *q)
{
	const struct object *object = objects_at(n->objects, q->object);
	struct found f = { .key.object = q->object };

	if (!object || object->identity.kind != OBJECT_FILE)
		return;
	find_in_image(object, q, &f);
	if (!f.symbol || symtab_find(n->symtab, &f.key) != SYMBOL_NONE)
		return;
	complete(n, &f);
	demangler_want(&n->demangler, f.text.name, f.text.name_size);
}

void naming_ready(struct naming *n)
{
	demangler_run(&n->demangler);
}

int naming_find(struct naming *n, const struct naming_question *q, uint32_t *symbol, bool *by_name)
{
	struct object *object = objects_at(n->objects, q->object);
	struct found f = { .key.object = q->object };
	int rc;

	if (!object)
		return -EAGAIN;
	rc = find(n, object, q, &f);
	if (rc)
		return rc;
	*by_name = f.by_name;
	*symbol = symtab_find(n->symtab, &f.key);
	if (*symbol == SYMBOL_NONE)
		*symbol = add(n, &f);
	return *symbol == SYMBOL_NONE ? -ENOMEM : 0;
}
