/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Name places in the kernel: KSYMBOL records, else /proc/kallsyms; a recorded kernel by its list.
 *
 * One thread: the loader; only memory is read by any.
 */
#ifndef SYMBOLS_NAME_NAMING_KERNEL_H
#define SYMBOLS_NAME_NAMING_KERNEL_H

#include "symbols/kernel/kallsyms.h"
#include "symbols/kernel/ksyms.h"
#include "symbols/kernel/kernel.h"
#include "symbols/kernel/recorded_modules.h"
#include "symbols/name/naming_found.h"

struct helpers;
struct kallsyms_job;

struct naming_kernel {
	const char *root, *path;	 /* of the list; @root NULL: of this machine */
	const char *modules_path;	 /* of the loaded modules */
	struct kallsyms *kallsyms;	 /* NULL: not read yet, or unreadable */
	struct recorded_kernel recorded; /* the kernel of these addresses */
	struct recorded_modules modules;
	struct ksyms *ksyms;	    /* NULL: no source */
	struct kallsyms_job *ahead; /* reading it for the first time; NULL: not reading */
	uint64_t read_ns;	    /* time of the last read; 0: never */
	uint64_t cost_ns;	    /* duration of the last read */
	uint64_t interval_ns; /* not read again before; doubles while a read finds nothing new */
	uint64_t loaded;      /* hash of the modules that are loaded, as the list has them */
	uint64_t look_ns;     /* time of the last look at them */
	bool has_changed;     /* they are others now */
	bool has_news;	      /* names of modules may be others */
	atomic_ulong memory;  /* bytes of the list */
	struct ksyms_symbol ksym;
};

void naming_kernel_init(struct naming_kernel *n);
void naming_kernel_fini(struct naming_kernel *n);

/*
 * Start to read the kernel's symbols by a helper, ahead of the first request. The
 * helpers must outlive it.
 */
void naming_kernel_expect(struct naming_kernel *n, struct helpers *helpers);

/* A recording: the addresses of its kernel's code, and one known symbol. */
void naming_kernel_was(struct naming_kernel *n, const struct recorded_kernel *recorded);

/* Return, once, whether modules were loaded or removed, so that names in them may be wrong. */
bool naming_kernel_take_news(struct naming_kernel *n);

/*
 * Find the symbol of @q. Without any list all kernel code is one row: addresses would be useless.
 * 0; -EAGAIN while a newer list may have it. @kernel: gets the reason of missing symbols.
 */
int naming_kernel_find(struct naming_kernel *n, struct object *kernel,
		       const struct naming_question *q, struct naming_found *f);

#endif
