/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modules of a recorded kernel: address ranges with names, from MMAP records.
 *
 * One thread: the loader. Names and ranges are hostile.
 */
#ifndef SYMBOLS_KERNEL_RECORDED_MODULES_H
#define SYMBOLS_KERNEL_RECORDED_MODULES_H

#include "symbols/base/base.h"
#include "symbols/base/text.h"

#define RECORDED_MODULES_MAX	 4096U
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

#endif
