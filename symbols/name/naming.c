// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a place to its symbol, by the kind of its object: files, code of JITs, the kernel.
 *
 * Runs on: the loader.
 */
#include "symbols/name/name.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/naming.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"

/*
 * The symbol found for a place, before it has an id. Runs on: the loader.
 */

/* Unnamed code in memory is named by its page. */
#define NAMING_PAGE 4096ULL

static void naming_found_name(struct naming_found *f, const char *name, size_t size);

void naming_share(struct naming_found *f, uint32_t object, const char *name, size_t size)
{
	assert(name || !size);
	f->key.object = object;
	f->key.variant = keyhash_name(name, size);
	f->shared = true;
	naming_found_name(f, name, size);
}

uint32_t naming_shared_object(struct objects *objects, const char *source)
{
	/* No file has this device. */
	const struct object_identity identity = { .kind = OBJECT_SCRIPT,
						  .ino = keyhash_name(source, strlen(source)),
						  .maj = UINT32_MAX };

	return objects_intern(objects, &identity, source, strlen(source), 0, 0, 0)->id;
}

void naming_found_module(struct naming_found *f, const char *module, size_t size)
{
	assert(module || !size);
	f->text.module = module;
	f->text.module_size = size;
}

static void naming_found_name(struct naming_found *f, const char *name, size_t size)
{
	f->text.name = name;
	f->text.name_size = size;
	f->by_name = true;
}

/* Make a name of a word, or with @join of a word and an address: "libfoo.so+0x1230". */
static void naming_found_made_up(struct naming_found *f, struct safe_text head, const char *join,
				 uint64_t start)
{
	f->key.start = start;
	f->key.made_up = true;
	f->head = head;
	f->join = join;
}

/*
 * Names as JITs report them, without how their code was made: a function that is compiled again,
 * better, is one function. Foreign text.
 */

#define REPORTED_MAX sizeof(((struct naming_jit *)NULL)->reported)

/*
 * Erlang marks the names in its perf map by how it writes them: "$lists:map/2", and
 * "lists:map/2-CodeInfoPrologue" for the first instructions. Cut the name to that of the function.
 */
static void cut_erlang(const char **name, const char **end)
{
	static const char prologue[] = "-CodeInfoPrologue";
	const size_t n = sizeof(prologue) - 1;
	const char *last = *end, *digit;

	if ((size_t)(last - *name) > n && !memcmp(last - n, prologue, n))
		last -= n;
	for (digit = last; digit > *name && isdigit((unsigned char)digit[-1]); digit--)
		;
	if (digit == last || digit - *name < 4 || digit[-1] != '/' ||
	    !memchr(*name, ':', (size_t)(digit - *name)))
		return;
	*end = last;
	*name += **name == '$';
}

/*
 * Return the size of the mark of the tier at @at in a name of V8, "JS:*f x.js:1:2": '~' is
 * interpreted, '^', '+' and '*' are compiled, with a "'" for one closure; 0: none.
 */
static size_t tier_of_v8(const char *name, const char *at, const char *end)
{
	static const char *const kinds[] = { "JS:", "LazyCompile:", "Function:", "Script:",
					     "Eval:" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((size_t)(at - name) == strlen(kinds[i]) &&
		    !memcmp(name, kinds[i], strlen(kinds[i])) && at < end && memchr("~^+*", *at, 4))
			return at + 1 < end && at[1] == '\'' ? 2 : 1;
	return 0;
}

/*
 * Find the method in a name of .NET, "void [Module] Space.Class`1[Argument]::Method(int32)[Tier]":
 * the class begins at *@class, its end is *@sep, the arguments begin at *@end. False: none.
 */
static bool find_managed(const char *name, const char *end, const char **class, const char **sep,
			 const char **arguments)
{
	const char *at = name, *close = NULL;

	/* The module is the first word in brackets. */
	while ((at = memmem(at, (size_t)(end - at), " [", 2))) {
		close = memchr(at, ']', (size_t)(end - at));
		if (!close || (end - close > 1 && close[1] == ' '))
			break;
		at++;
	}
	if (!at || !close || end - close < 2 || memchr(at + 1, ' ', (size_t)(close - at - 1)))
		return false;
	*class = close + 2;
	*sep = memmem(*class, (size_t)(end - *class), "::", 2);
	*arguments = *sep ? memchr(*sep, '(', (size_t)(end - *sep)) : NULL;
	return *arguments && *sep > *class && *arguments > *sep + 2;
}

/* Write the class [@at, @end) of .NET as in C#, "List<System.Int32>" for "List`1[System.Int32]". */
static char *put_class(char *out, const char *at, const char *end)
{
	for (; at < end; at++) {
		bool array = at + 1 < end && *at == '[' && memchr("],*", at[1], 3);

		if (array) {
			for (; at + 1 < end && *at != ']'; at++)
				*out++ = *at;
			*out++ = *at;
		} else if (*at == '`') {
			while (at + 1 < end && isdigit((unsigned char)at[1]))
				at++;
		} else {
			*out++ = *at == '[' ? '<' : *at == ']' ? '>' : *at == '+' ? '.' : *at;
		}
	}
	return out;
}

/*
 * Write a reported name, of at most REPORTED_MAX bytes, without the mark of its tier; one of .NET
 * as "Space.Class<Argument>.Method". Return its size: never larger.
 */
static size_t put_reported(char out[static REPORTED_MAX], const char *name, size_t size)
{
	const char *end = name + MIN(size, (size_t)REPORTED_MAX), *class, *sep, *arguments;
	const char *colon = memchr(name, ':', (size_t)(end - name));
	size_t tier = colon ? tier_of_v8(name, colon + 1, end) : 0;
	char *at = out;

	if (find_managed(name, end, &class, &sep, &arguments)) {
		at = put_class(at, class, sep);
		*at++ = '.';
		at = mempcpy(at, sep + 2, (size_t)(arguments - sep - 2));
	} else if (tier) {
		at = mempcpy(at, name, (size_t)(colon + 1 - name));
		at = mempcpy(at, colon + 1 + tier, (size_t)(end - colon - 1) - tier);
	} else {
		cut_erlang(&name, &end);
		at = mempcpy(at, name, (size_t)(end - name));
	}
	return (size_t)(at - out);
}

/*
 * Place in anonymous memory -> symbol, from the files and the memory of its process.
 *
 * Runs on: the loader.
 */

/* @stop: set while the tables may be freed. */
static void naming_jit_init(struct naming_jit *n, struct objects *objects, const atomic_bool *stop)
{
	n->objects = objects;
	jvm_table_init(&n->hotspots, objects);
	jitdumps_init(&n->jitdumps, objects, NULL, &n->reads, stop);
	perfmaps_init(&n->perfmaps, objects, &n->reads, stop);
}

void naming_jit_fini(struct naming_jit *n)
{
	jvm_table_fini(&n->hotspots);
	jitdumps_fini(&n->jitdumps);
	perfmaps_fini(&n->perfmaps);
}

/* Name code by a name that its process reported through @source; as a module it is @module. */
static void set_jit(const struct naming_jit *n, struct naming_found *f, const char *module,
		    const char *source, const char *name, size_t size)
{
	const uint32_t id = naming_shared_object(n->objects, module);
	struct object *object = objects_at(n->objects, id);

	if (object)
		object_credit(object, source,
			      atomic_load_explicit(&object->nr_symbols, memory_order_relaxed));
	naming_share(f, id, name, size);
	naming_found_module(f, module, strlen(module));
}

/* Name a Java method. Compiled twice, interpreted: it is one function without a single start. */
static void set_java(const struct naming_jit *n, struct naming_found *f,
		     const struct jvm_table_symbol *s)
{
	set_jit(n, f, "[java]", "JVM", s->name, s->name_size);
	f->text.kind = LANG_JAVA;
	f->plain = true;
}

/* Name code by a name in a file of @source: "jitdump", "perf map". */
static void set_reported(struct naming_jit *n, struct naming_found *f, const char *source,
			 const char *name, size_t size)
{
	size = put_reported(n->reported, name, size);
	set_jit(n, f, *source == 'j' ? "[jitdump]" : "[perf map]", source, n->reported, size);
}

/*
 * Find the name that a process reported in a file. 0, -ENOENT, -EAGAIN while the
 * files are read, -ECANCELED.
 */
static int find_reported(struct naming_jit *n, struct object *object, struct object *base,
			 const struct naming_question *q, struct naming_found *f)
{
	struct jitdumps_symbol dumped;
	struct perfmap_symbol mapped = { .start = 0 };
	int in_dump, in_map = -ENOENT;

	in_dump = jitdumps_find(&n->jitdumps, object, q->offset, &dumped);
	/* A file may have hung: the tables may be freed. Pairs with the release in symbols_stop().
	 */
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	if (in_dump)
		in_map = perfmaps_find(&n->perfmaps, base, q->offset, &mapped);
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	f->start = in_dump ? mapped.start : dumped.start;
	if (!in_dump)
		set_reported(n, f, "jitdump", dumped.name, dumped.name_size);
	else if ((in_dump == -EAGAIN || in_map == -EAGAIN) && !q->now)
		return -EAGAIN;
	else if (!in_map)
		set_reported(n, f, "perf map", mapped.name, mapped.name_size);
	else
		return -ENOENT;
	return 0;
}

/*
 * Find the symbol of @q, a place in @object, which is anonymous: by a source, else one symbol a
 * page. All layers of its code are shown as one object. 0; -EAGAIN while a source is read;
 * -ECANCELED when stopping.
 */
static int naming_jit_find(struct naming_jit *n, struct object *object,
			   const struct naming_question *q, struct naming_found *f)
{
	struct object *base = jitdumps_base(&n->jitdumps, object);
	struct jvm_table_symbol java;
	int rc = jvm_table_find(&n->hotspots, object, q->offset, &java);

	f->key.object = base->id;
	f->text.kind = 'j';
	if (!rc) {
		set_java(n, f, &java);
		return 0;
	}
	if (rc == -EAGAIN && !q->now)
		return rc;
	if (object->identity.layer == JVM_TABLE_METHODS) {
		naming_found_module(f, "[java]", sizeof("[java]") - 1);
		naming_found_made_up(f, TEXT("[interpreter]"), NULL, 0);
		return 0;
	}
	rc = find_reported(n, object, base, q, f);
	if (rc == -ENOENT) {
		naming_found_module(f, base->name.str, base->name.size);
		naming_found_made_up(f, TEXT("[anon]"), " 0x", q->offset & ~(NAMING_PAGE - 1));
		return 0;
	}
	return rc;
}

/*
 * Place in the kernel -> symbol.
 *
 * Runs on: the loader.
 */

#define INTERVAL_NS	 10000000000ULL
#define INTERVAL_MAX	 (64 * INTERVAL_NS)
#define TRANSIENT_NS	 2000000000ULL
#define REST_NS		 4000000000ULL /* pages of the list are unmapped so often */
#define MODULES_SIZE_MAX (1U << 20)

static void naming_kernel_init(struct naming_kernel *n)
{
	n->path = "/proc/kallsyms";
	n->modules_path = "/proc/modules";
	n->interval_ns = INTERVAL_NS;
}

static void naming_kernel_fini(struct naming_kernel *n)
{
	kallsyms_job_leave(n->ahead);
	n->ahead = NULL;
	kallsyms_free(n->kallsyms);
	n->kallsyms = NULL;
	ksyms_free(n->ksyms);
	n->ksyms = NULL;
	recorded_modules_fini(&n->modules);
}

/* Find the offset between the kernel's code now and in the recording. */
static void place_kernel(struct naming_kernel *n)
{
	struct recorded_kernel *k = &n->recorded;
	uint64_t now = n->kallsyms && k->mark ? kallsyms_begin(n->kallsyms, k->stext) : 0;

	k->shift = now ? k->mark - now : 0;
}

void naming_kernel_was(struct naming_kernel *n, const struct recorded_kernel *recorded)
{
	enum kernel_match match = n->recorded.match;

	n->recorded = *recorded;
	n->recorded.match = match;
	place_kernel(n);
}

void naming_kernel_expect(struct naming_kernel *n, struct helpers *helpers)
{
	if (!n->ahead && !n->read_ns && n->recorded.match == KERNEL_SAME)
		n->ahead = kallsyms_job_start(n->root, n->path, helpers);
}

/* Return a hash of the names and addresses of the loaded modules; 0: unknown, or there are none. */
static uint64_t hash_modules(const struct naming_kernel *n)
{
	int fd = open(n->modules_path, O_RDONLY | O_CLOEXEC);
	uint64_t sum = 0;
	char *text, *line, *rest;
	size_t size;

	if (fd < 0)
		return 0;
	if (untrusted_read(fd, MODULES_SIZE_MAX, &text, &size))
		text = NULL;
	close(fd);
	for (line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long address;
		char name[64];

		/* Not the number of users, which changes all the time. */
		if (sscanf(line, "%63s %*s %*s %*s %*s %llx", name, &address) == 2)
			sum += keyhash_number(keyhash_name(name, strlen(name)) ^ address);
	}
	free(text);
	return sum;
}

/* Return whether other modules are loaded than in the list. */
static bool has_other_modules(struct naming_kernel *n)
{
	uint64_t now_ns = time_now_ns();

	if (now_ns - n->look_ns >= TRANSIENT_NS) {
		n->look_ns = now_ns;
		n->has_changed = hash_modules(n) != n->loaded;
	}
	return n->has_changed;
}

bool naming_kernel_take_news(struct naming_kernel *n)
{
	uint64_t now_ns = time_now_ns();
	bool news = n->has_news;

	n->has_news = false;
	if (n->kallsyms && now_ns - n->rest_ns >= REST_NS) {
		n->rest_ns = now_ns;
		kallsyms_rest(n->kallsyms);
	}
	return news;
}

/* Return the list as it is now, or as it was when it was read ahead. */
static int take_kallsyms(struct naming_kernel *n, struct kallsyms **out)
{
	struct kallsyms_job_result result;

	kallsyms_job_take(n->ahead, n->root, n->path, !n->read_ns, &result);
	n->ahead = NULL;
	n->core = result.core;
	n->read_ns = result.start_ns; /* symbols added in between may be missing */
	n->cost_ns = result.cost_ns;
	*out = result.list;
	return result.rc;
}

/* Read /proc/kallsyms again; keep the old list if the new one is unreadable. */
static void read_kallsyms(struct naming_kernel *n, struct object *kernel)
{
	uint32_t nr_before = n->kallsyms ? kallsyms_nr(n->kallsyms) : 0;
	/* Before the list: a module that is loaded in between is new at the next look. */
	uint64_t loaded = hash_modules(n);
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
	n->has_news |= nr_before && loaded != n->loaded;
	n->loaded = loaded;
	n->has_changed = false;
	if (nr_before == kallsyms_nr(k))
		n->interval_ns = MIN(n->interval_ns * 2, INTERVAL_MAX);
	else
		n->interval_ns = INTERVAL_NS;
	kallsyms_free(n->kallsyms);
	n->kallsyms = k;
	place_kernel(n);
	atomic_store_explicit(&n->memory, kallsyms_rest(k), memory_order_relaxed);
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
static bool find_in_list(const struct naming_kernel *n, uint64_t addr, struct kallsyms_symbol *out)
{
	if (!kallsyms_find(n->kallsyms, recorded_kernel_now(&n->recorded, addr), out))
		return false;
	out->start = recorded_kernel_then(&n->recorded, out->start);
	return true;
}

/* Find @addr; if it is missing a module may be new: read the list again, now or later. */
static int find_in_kallsyms(struct naming_kernel *n, struct object *kernel,
			    const struct naming_question *q, struct kallsyms_symbol *out)
{
	const uint64_t soon_ns = MAX(TRANSIENT_NS, n->cost_ns * 20);
	uint64_t interval_ns = n->interval_ns;
	int rc = -ENOENT;

	if (!n->read_ns)
		read_kallsyms(n, kernel);
	if (!n->kallsyms)
		return -ENOENT;
	if (n->core && !find_in_list(n, q->offset, out))
		read_kallsyms(n, kernel);
	if (find_in_list(n, q->offset, out)) {
		if (!out->module)
			return 0;
		rc = 0;
	}
	if (n->read_ns >= q->since_ns)
		return rc; /* the list is newer than the request */
	/* Older than that, it may have a program or a module that was removed. */
	if (!rc && !is_transient(out) && !has_other_modules(n))
		return 0;
	if (!rc || has_other_modules(n))
		interval_ns = soon_ns;
	if (time_now_ns() - n->read_ns < interval_ns)
		return q->now ? rc : -EAGAIN;
	read_kallsyms(n, kernel);
	return find_in_list(n, q->offset, out) ? 0 : -ENOENT;
}

/* Reported by the kernel: newer than the list, and kept after the code was removed. */
static void set_made_at_run_time(struct naming_found *f, const struct ksyms_symbol *s)
{
	f->key.start = s->start;
	f->key.variant = keyhash_name(s->name, s->name_size);
	if (s->type == KSYMS_BPF)
		naming_found_module(f, "[bpf]", sizeof("[bpf]") - 1);
	naming_found_name(f, s->name, s->name_size);
}

/* Name recorded kernel code without symbols: by its module. */
static void set_by_module(const struct recorded_module *module, struct naming_found *f)
{
	if (!module) {
		naming_found_made_up(f, TEXT("[kernel]"), NULL, 0);
		return;
	}
	naming_found_made_up(f, recorded_module_text(module), NULL, module->start);
	naming_found_module(f, f->head.str, f->head.size);
}

/* Explain that the symbols of the recorded kernel are unknown. */
static void explain_recorded(const struct naming_kernel *n, struct object *kernel)
{
	object_explain(kernel, recorded_kernel_reason(n->recorded.match),
		       n->recorded.match == KERNEL_UNKNOWN ? "if on this one: --symfs=/; else give "
							     "a "
							     "copy of its /proc/kallsyms "
							     "below --symfs"
							   : "replay it there, or give a copy of "
							     "its "
							     "/proc/kallsyms below "
							     "--symfs");
}

/*
 * Find the symbol of @q. Without any list all kernel code is one row: addresses would be useless.
 * 0; -EAGAIN while a newer list may have it. @kernel: gets the reason of missing symbols.
 */
static int naming_kernel_find(struct naming_kernel *n, struct object *kernel,
			      const struct naming_question *q, struct naming_found *f)
{
	const struct recorded_module *module = recorded_modules_find(&n->modules, q->offset);
	struct kallsyms_symbol s;
	int rc;

	f->text.kind = 'k';
	naming_found_module(f, kernel->name.str, kernel->name.size);
	if (n->ksyms && ksyms_find(n->ksyms, q->offset, &n->ksym)) {
		set_made_at_run_time(f, &n->ksym);
		return 0;
	}
	if (n->recorded.match != KERNEL_SAME) {
		explain_recorded(n, kernel);
		set_by_module(module, f);
		return 0;
	}
	rc = find_in_kallsyms(n, kernel, q, &s);
	if (rc == -EAGAIN)
		return rc;
	if (module && n->recorded.shift) { /* after a restart the modules are at other addresses */
		set_by_module(module, f);
	} else if (!rc) {
		f->key.start = s.start;
		/* Another module may be at its address later. */
		if (s.module) {
			f->key.variant = keyhash_name(s.name, s.name_size);
			naming_found_module(f, s.module, s.module_size);
		}
		naming_found_name(f, s.name, s.name_size);
	} else if (n->kallsyms) {
		naming_found_made_up(f, TEXT("[kernel]"), " 0x", q->offset & ~(NAMING_PAGE - 1));
	} else {
		naming_found_made_up(f, TEXT("[kernel]"), NULL, 0);
	}
	return 0;
}

void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop)
{
	memset(n, 0, sizeof(*n));
	n->objects = objects;
	n->symtab = symtab;
	naming_kernel_init(&n->kernel);
	naming_jit_init(&n->jit, objects, stop);
}

void naming_fini(struct naming *n)
{
	naming_kernel_fini(&n->kernel);
	naming_jit_fini(&n->jit);
	demangler_fini(&n->demangler);
}

/*
 * Return the symbol of the function at @vaddr. A signal handler returns to the start of its
 * restorer, no code has called it: the look-up pc is the byte before.
 */
static const struct image_symbol *symbol_at(const struct image *image, uint64_t vaddr,
					    bool *restorer)
{
	*restorer = image->sigreturn_size && vaddr + 1 - image->sigreturn <= image->sigreturn_size;
	return image_whole(image, image_find(image, *restorer ? image->sigreturn : vaddr));
}

/*
 * Name code of a file or the vdso: by its symbol, else its FDE, else its address; where a runtime
 * maps its code from a file of its own, by page, as code of a JIT.
 */
static int find_in_image(const struct object *object, const struct naming_question *q,
			 struct naming_found *f)
{
	/* Pairs with the release in image_cache.c. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	struct ehframe_fde fde;
	const struct image_symbol *s;
	uint64_t vaddr;
	bool restorer;

	f->text.kind = '?';
	naming_found_module(f, object->name.str, object->name.size);
	if (!image && atomic_load_explicit(&object->no_elf, memory_order_relaxed)) {
		naming_found_made_up(f, object->name, "+0x", q->offset & ~(NAMING_PAGE - 1));
	} else if (!image || !image_vaddr(image, q->offset, &vaddr)) {
		naming_found_made_up(f, object->name, "+0x", q->offset);
	} else if ((s = symbol_at(image, vaddr, &restorer))) {
		f->key.start = s->vaddr;
		f->text.kind = object->identity.kind == OBJECT_VDSO ? 'v' : 'u';
		f->image = image;
		f->symbol = s;
		f->by_name = true;
	} else if (restorer) {
		f->key.start = image->sigreturn;
		f->text.kind = 'u';
		naming_found_name(f, "__restore_rt", strlen("__restore_rt"));
	} else {
		naming_found_made_up(f, object->name, "+0x",
				     ehframe_find(&image_rows(image, vaddr)->eh, vaddr, &fde)
					     ? fde.start
					     : vaddr);
	}
	return 0;
}

/* Mark a function with inlined ones: their samples count as its samples. */
static void set_inlined(struct naming *n, struct naming_found *f, const struct code_text *t)
{
	static const char mark[] = " +inlined";
	size_t size = MIN((size_t)t->name_size, sizeof(n->marked) - sizeof(mark));

	memcpy(mempcpy(n->marked, t->name, size), mark, sizeof(mark));
	size += sizeof(mark) - 1;
	naming_share(f, f->key.object, n->marked, size);
}

/*
 * A function of a script: the same in all processes that have the same file, line and name. Its
 * module is the script; without a text (CODE_UNNAMED) the object of all scripts.
 */
static int find_in_script(struct naming *n, struct object *object, const struct naming_question *q,
			  struct naming_found *f)
{
	const struct code_text *t =
		n->codes ? script_functions_at(n->codes, lang_place_code(q->offset)) : NULL;
	const struct object_identity identity = { .kind = OBJECT_SCRIPT };
	const struct object *script;

	if (!t) {
		if (n->codes)
			object_explain(object, "too many functions of interpreters",
				       "restart proftop if it lasts");
		f->text.kind = '?';
		naming_found_made_up(f, TEXT("[script]"), NULL, 0);
		naming_found_module(f, "[script]", 8);
		return 0;
	}
	script = objects_intern(n->objects, &identity, t->file, t->file_size, 0, 0, 0);
	f->key.object = script->id;
	f->key.start = t->position ? t->position : t->first_line;
	f->text.kind = lang_letter((enum lang_kind)t->language);
	f->plain = true;
	naming_found_module(f, script->name.str, script->name.size);
	if (lang_place_instr(q->offset) == LANG_INLINED)
		set_inlined(n, f, t);
	else
		naming_share(f, script->id, t->name, t->name_size);
	return 0;
}

/* The frame of a waiting task: its name is the kind of the wait. */
static int find_wait(const struct object *object, const struct naming_question *q,
		     struct naming_found *f)
{
	uint64_t kind = q->offset >= WAIT_FOUND ? MIN(q->offset, WAIT_CUT)
						: MIN(q->offset, WAIT_OTHER);
	const char *name = wait_kind_name((enum wait_kind)kind);

	f->key.start = q->offset;
	f->text.kind = 'w';
	f->by_name = f->plain = true;
	naming_found_module(f, object->name.str, object->name.size);
	naming_found_name(f, name, strlen(name));
	return 0;
}

static int find_unknown(const struct object *object, struct naming_found *f)
{
	f->text.kind = '?';
	naming_found_module(f, object->name.str, object->name.size);
	naming_found_made_up(f, TEXT("[unknown]"), NULL, 0);
	return 0;
}

/*
 * Return true if the object is loaded or failed; else request it: every sampled
 * place needs a name.
 */
static bool is_settled(struct object *object)
{
	/* Pairs with the releases in image_cache.c. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	object_want(object);
	return state >= OBJECT_READY;
}

static int find(struct naming *n, struct object *object, const struct naming_question *q,
		struct naming_found *f)
{
	if (!is_settled(object))
		return -EAGAIN;
	switch (object->identity.kind) {
	case OBJECT_KERNEL:
		return naming_kernel_find(&n->kernel, object, q, f);
	case OBJECT_FILE:
	case OBJECT_VDSO:
		return find_in_image(object, q, f);
	case OBJECT_ANON:
		return naming_jit_find(&n->jit, object, q, f);
	case OBJECT_SCRIPT:
		return find_in_script(n, object, q, f);
	case OBJECT_WAIT:
		return find_wait(object, q, f);
	default:
		return find_unknown(object, f);
	}
}

/* Put the name together, if that was postponed. */
static void complete(struct naming *n, struct naming_found *f)
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

/* Complete the texts of @f. */
static void finish(struct naming *n, struct naming_found *f)
{
	const char *clean;
	size_t size;

	complete(n, f);
	size = f->by_name && !f->plain
		       ? demangler_get(&n->demangler, f->symbol ? f->image->dialect : 0,
				       f->text.name, f->text.name_size, &clean)
		       : 0;
	if (size) {
		f->text.name = clean;
		f->text.name_size = size;
	}
}

/* Return the id of @f. Its texts, and with them a mangled name, are made where they are needed. */
static uint32_t symbol_of(struct naming *n, struct naming_found *f)
{
	uint32_t id = f->shared ? SYMBOL_NONE : symtab_find(n->symtab, &f->key);

	if (id != SYMBOL_NONE)
		return id;
	finish(n, f);
	if (f->shared)
		id = symtab_find_named(n->symtab, &f->key, &f->text);
	if (id != SYMBOL_NONE)
		return id;
	id = symtab_add(n->symtab, &f->key, &f->text);
	if (f->shared && id != SYMBOL_NONE)
		atomic_fetch_add_explicit(&objects_at(n->objects, f->key.object)->nr_symbols, 1,
					  memory_order_relaxed);
	return id;
}

void naming_prepare(struct naming *n, const struct naming_question *q)
{
	const struct object *object = objects_at(n->objects, q->object);
	struct naming_found f = { .key.object = q->object };

	if (!object || object->identity.kind != OBJECT_FILE)
		return;
	find_in_image(object, q, &f);
	if (!f.symbol || symtab_find(n->symtab, &f.key) != SYMBOL_NONE)
		return;
	complete(n, &f);
	demangler_want(&n->demangler, f.image->dialect, f.text.name, f.text.name_size);
}

void naming_ready(struct naming *n)
{
	demangler_run(&n->demangler);
}

int naming_find(struct naming *n, const struct naming_question *q, struct naming_answer *out)
{
	struct object *object = objects_at(n->objects, q->object);
	struct naming_found f = { .key.object = q->object };
	int rc;

	if (!object)
		return -EAGAIN;
	rc = find(n, object, q, &f);
	if (rc)
		return rc;
	*out = (struct naming_answer){ .symbol = symbol_of(n, &f),
				       .by_name = f.by_name,
				       .start = f.shared ? f.start : f.key.start };
	return out->symbol == SYMBOL_NONE ? -ENOMEM : 0;
}
