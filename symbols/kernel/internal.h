/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/kernel/, and by tests; no other room includes it. */
#ifndef SYMBOLS_KERNEL_INTERNAL_H
#define SYMBOLS_KERNEL_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/kernel/kernel.h"
#include "symbols/sandbox/sandbox.h"

struct kallsyms;
struct ksyms;

#define KALLSYMS_NAME_MAX 1024U

/*
 * Parse a list. 0, -EACCES (all addresses hidden by kptr_restrict), -ENODATA (no
 * symbols), -ENOMEM, -E2BIG.
 */
int kallsyms_parse(struct kallsyms **out, const char *text, size_t size, struct err *e);

/*
 * The memory of the running kernel, /proc/kcore: an ELF core file with segments at the addresses of
 * the kernel since boot (proc(5), "/proc/kcore"). It includes modules, BPF programs and code
 * patched at run time.
 *
 * Runs on: a helper; for copies in the sandbox (kallsyms.c).
 */

#define KSYMS_MAX      65536U
#define KSYMS_SIZE_MAX (16U << 20) /* bytes of one entry */

/*
 * Copies of /proc/kallsyms and /proc/kcore, which have a recording or --symfs, read in the sandbox.
 * The files of this kernel are not foreign: they are read in the calling thread.
 *
 * Any thread that may wait: one call runs at a time.
 */

/*
 * As kallsyms_read() and kcore_read(), of any file; also the errors of untrusted_open() and
 * sandbox_call(). @root: @path is below that folder, which links do not leave; NULL: of this
 * machine.
 * @core: the kernel itself is enough, if its list is stored.
 */
int kernel_sandbox_list(struct kallsyms **out, const char *root, const char *path, bool core,
			struct err *e);

#endif
