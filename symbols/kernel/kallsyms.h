/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol list of the kernel, /proc/kallsyms: text symbols of the kernel,
 * its modules and BPF programs, sorted by address (proc(5)).
 *
 * A snapshot: modules are loaded and unloaded, so the list is read again when an
 * address is not covered. Any thread; immutable.
 */
#ifndef SYMBOLS_KERNEL_KALLSYMS_H
#define SYMBOLS_KERNEL_KALLSYMS_H

#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

#define KALLSYMS_TEXT_MAX    (256U << 20)
#define KALLSYMS_SYMBOLS_MAX (4U << 20)
#define KALLSYMS_NAME_MAX    1024U

struct kallsyms;

/* Borrowed from the table; texts are foreign bytes, not NUL-terminated. */
struct kallsyms_symbol {
	uint64_t start, size;
	const char *name;
	uint32_t name_size;
	const char *module; /* "[nf_tables]"; NULL for the kernel itself */
	uint32_t module_size;
};

/*
 * Parse a list. 0, -EACCES (all addresses hidden by kptr_restrict), -ENODATA (no
 * symbols), -ENOMEM, -E2BIG.
 */
int kallsyms_parse(struct kallsyms **out, const char *text, size_t size, struct err *e);
/* Read and parse the file @fd to its end. Also the errors of reading. */
int kallsyms_read(struct kallsyms **out, int fd, struct err *e);
/* Append a table as flat bytes. */
void kallsyms_put(const struct kallsyms *k, struct cage_reply *reply);
/* Make a table of a copy of foreign flat bytes, checked. 0, -EBADMSG or -ENOMEM. */
int kallsyms_adopt(struct kallsyms **out, const uint8_t *bytes, size_t size);
void kallsyms_free(struct kallsyms *k);

/* Find the symbol that covers @addr; false: none (a module may be new). */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out);
/* Return the start of the kernel code, _stext or _text; 0: not in the list. */
uint64_t kallsyms_begin(const struct kallsyms *k, bool stext);
uint32_t kallsyms_nr(const struct kallsyms *k);
size_t kallsyms_memory(const struct kallsyms *k);

#endif
