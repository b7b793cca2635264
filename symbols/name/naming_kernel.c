// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Place in the kernel -> symbol.
 *
 * Runs on: the loader.
 */
#include "symbols/name/naming_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/base/keyhash.h"
#include "symbols/kernel/kallsyms_job.h"

#define INTERVAL_NS	 10000000000ULL
#define INTERVAL_MAX	 (64 * INTERVAL_NS)
#define TRANSIENT_NS	 2000000000ULL
#define MODULES_SIZE_MAX (1U << 20)

void naming_kernel_init(struct naming_kernel *n)
{
	n->path = "/proc/kallsyms";
	n->modules_path = "/proc/modules";
	n->interval_ns = INTERVAL_NS;
}

void naming_kernel_fini(struct naming_kernel *n)
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
	if (foreign_read(fd, MODULES_SIZE_MAX, &text, &size))
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
	bool news = n->has_news;

	n->has_news = false;
	return news;
}

/* Return the list as it is now, or as it was when it was read ahead. */
static int take_kallsyms(struct naming_kernel *n, struct kallsyms **out)
{
	struct kallsyms_job_result result;

	kallsyms_job_take(n->ahead, n->root, n->path, &result);
	n->ahead = NULL;
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
	atomic_store_explicit(&n->memory, kallsyms_memory(k), memory_order_relaxed);
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

int naming_kernel_find(struct naming_kernel *n, struct object *kernel,
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
