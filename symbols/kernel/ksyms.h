/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel code made at run time, by KSYMBOL records (perf_event_open(2)): BPF
 * programs and trampolines, trampolines of ftrace, instructions that kprobes
 * moved. Its memory is reused: the latest record of an address is valid, also
 * after the end of the code.
 *
 * Threads: the side-band drain writes; the loader reads. A mutex.
 */
#ifndef SYMBOLS_KERNEL_KSYMS_H
#define SYMBOLS_KERNEL_KSYMS_H

#include "symbols/base/base.h"

#define KSYMS_MAX      65536U
#define KSYMS_NAME_MAX 512U	   /* KSYM_NAME_LEN */
#define KSYMS_SIZE_MAX (16U << 20) /* bytes of one entry */

struct ksyms;

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
uint32_t ksyms_nr(struct ksyms *k);

#endif
