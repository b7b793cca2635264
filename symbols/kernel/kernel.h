/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols and code of the kernel, running or recorded.
 *
 * The caller owes: the right to read /proc/kallsyms, else addresses stay without names.
 *
 * The room does: names of kernel and modules, of BPF programs and trampolines over time, code of
 * the running kernel.
 *
 * Not for: unwinding the kernel: the chain is the kernel's own.
 */
#ifndef SYMBOLS_KERNEL_KERNEL_H
#define SYMBOLS_KERNEL_KERNEL_H

#include "symbols/base/base.h"
#include "symbols/base/text.h"

struct helpers;
struct kallsyms;
struct kallsyms_job;
struct ksyms;
struct sandbox_reader;

/*
 * The symbol list of the kernel, /proc/kallsyms: text symbols of the kernel,
 * its modules and BPF programs, sorted by address (proc(5)).
 *
 * A snapshot: modules are loaded and unloaded, so the list is read again when an
 * address is not covered. Any thread; immutable.
 */

/* Borrowed from the table; texts are foreign bytes, not NUL-terminated. */
struct kallsyms_symbol {
	uint64_t start, size;
	const char *name;
	uint32_t name_size;
	const char *module; /* "[nf_tables]"; NULL for the kernel itself */
	uint32_t module_size;
};

void kallsyms_free(struct kallsyms *k);
/* Find the symbol that covers @addr; false: none (a module may be new). */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out);
/* Return the start of the kernel code, _stext or _text; 0: not in the list. */
uint64_t kallsyms_begin(const struct kallsyms *k, bool stext);
uint32_t kallsyms_nr(const struct kallsyms *k);
/* Unmap the pages of a stored list, which look-ups map again. Return the bytes that are memory. */
size_t kallsyms_rest(const struct kallsyms *k);

/*
 * Kernel code made at run time, by KSYMBOL records (perf_event_open(2)): BPF
 * programs and trampolines, trampolines of ftrace, instructions that kprobes
 * moved. Its memory is reused: the latest record of an address is valid, also
 * after the end of the code.
 *
 * Threads: the side-band drain writes; the loader reads. A mutex.
 */

#define KSYMS_NAME_MAX 512U /* KSYM_NAME_LEN */

enum ksyms_type { KSYMS_UNKNOWN, KSYMS_BPF, KSYMS_OUT_OF_LINE };

struct ksyms_symbol {
	uint64_t start;
	uint32_t size;
	enum ksyms_type type;
	bool gone;
	size_t name_size;
	char name[KSYMS_NAME_MAX]; /* foreign bytes */
};

int ksyms_new(struct ksyms **out);
void ksyms_free(struct ksyms *k);
/* Side-band: add code. Invalid records, and records beyond the limits, are ignored. */
void ksyms_add(struct ksyms *k, uint64_t start, uint32_t size, enum ksyms_type type,
	       const char *name, size_t name_size);
void ksyms_remove(struct ksyms *k, uint64_t start, uint32_t size);
/* Copy the entry that covers @addr; false: none. */
bool ksyms_find(struct ksyms *k, uint64_t addr, struct ksyms_symbol *out);
/* Take the range in which names changed since the last call; false: none. */
bool ksyms_take_news(struct ksyms *k, uint64_t *start, uint64_t *end);

/*
 * The kernel of a recording: the running one, the same one at other addresses
 * (KASLR), or one of which nothing is known here.
 *
 * One thread: the loader.
 */

#define KERNEL_RELEASE_MAX 65U

/* The kernel as recorded. */
struct kernel_identity {
	char release[KERNEL_RELEASE_MAX]; /* as uname -r; "": unknown */
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0: unknown */
};

enum kernel_match {
	KERNEL_SAME,
	KERNEL_OTHER,
	KERNEL_UNKNOWN, /* neither release nor build-id was recorded */
};

struct recorded_kernel {
	enum kernel_match match;
	bool stext;	     /* @mark is the address of _stext, else of _text */
	uint64_t mark;	     /* 0: unknown */
	uint64_t start, end; /* its code, as recorded */
	uint64_t shift;	     /* recorded address - address now, in that range */
};

/*
 * Copy the build-id of the running kernel from @notes ("/sys/kernel/notes"); return
 * its size, 0: none.
 */
size_t recorded_kernel_build_id(const char *notes, uint8_t *id, size_t max);
/* Compare with the running kernel, by @notes ("/sys/kernel/notes"), else by uname(2). */
enum kernel_match recorded_kernel_match(const struct kernel_identity *was, const char *notes);
/* Return why a kernel other than the running one has no names; NULL for KERNEL_SAME. */
const char *recorded_kernel_reason(enum kernel_match match);
/* Return the present address of code recorded at @addr. */
uint64_t recorded_kernel_now(const struct recorded_kernel *k, uint64_t addr);
/* Return the recorded address of code now at @addr. */
uint64_t recorded_kernel_then(const struct recorded_kernel *k, uint64_t addr);

/*
 * The modules of a recorded kernel: address ranges with names, from MMAP records.
 *
 * One thread: the loader. Names and ranges are hostile.
 */

#define RECORDED_MODULE_NAME_MAX 64U

struct recorded_module {
	uint64_t start, end;
	char name[RECORDED_MODULE_NAME_MAX]; /* as lsmod in brackets: "[snd_hda_intel]" */
};

/* All zero is empty. */
struct recorded_modules {
	struct recorded_module *list; /* sorted by start */
	uint32_t nr, room;
};

/*
 * Add the module of @file, "/lib/modules/.../snd-hda-intel.ko.xz" or "[snd_hda_intel]", loaded in
 * [start, end). It replaces one with the same start. Other names are ignored.
 */
void recorded_modules_add(struct recorded_modules *m, const char *file, size_t size, uint64_t start,
			  uint64_t end);
/* Return the module at @addr, valid until the next addition; NULL: none. */
const struct recorded_module *recorded_modules_find(const struct recorded_modules *m,
						    uint64_t addr);
/* Return the name of @module as text that lives as long as @module. */
struct safe_text recorded_module_text(const struct recorded_module *module);
void recorded_modules_fini(struct recorded_modules *m);

/*
 * Read the symbol list of the kernel on a helper, ahead of its first use: the
 * kernel takes longer to write it than the replay of a short recording takes.
 *
 * Runs on: the loader; the reading on a helper.
 */

struct kallsyms_job_result {
	struct kallsyms *list;	    /* owned by the caller if rc is 0 */
	int rc;			    /* result of kernel_sandbox_list(); -ETIME: it hangs */
	uint64_t start_ns, cost_ns; /* begin; CPU time */
	bool core;		    /* only symbols of the kernel itself are in the list */
};

/*
 * Start to read @path below @root, as kernel_sandbox_list() if the kernel itself is enough.
 * NULL: no helper is free.
 */
struct kallsyms_job *kallsyms_job_start(const char *root, const char *path,
					struct helpers *helpers);
/* Wait for the end of @job; without a job (NULL) read @path on this thread; @core: as there. */
void kallsyms_job_take(struct kallsyms_job *job, const char *root, const char *path, bool core,
		       struct kallsyms_job_result *out);
/* Abandon @job, which may be NULL. */
void kallsyms_job_leave(struct kallsyms_job *job);

int kernel_sandbox_memory(const char *root, const char *path, uint64_t addr, void *buf,
			  uint32_t size);

extern const struct sandbox_reader kernel_reader;

#endif
