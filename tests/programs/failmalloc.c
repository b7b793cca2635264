/* SPDX-License-Identifier: GPL-2.0-or-later BUILD: -shared -fPIC -fno-builtin */
/*
 * A library to preload: allocation number FAIL_AT fails, of those that the program and libc
 * request; with FAIL_EVERY also each FAIL_EVERYth one after it. FAIL_COUNT=FILE: the number of
 * allocations is written there at the end. Not those of other libraries: some abort by design.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static struct range {
	uintptr_t start, end;
} ranges[2]; /* the program, libc */
static atomic_ulong count;
static unsigned long fail_at, fail_every;

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range *r = !*info->dlpi_name			? &ranges[0]
			  : strstr(info->dlpi_name, "/libc.so") ? &ranges[1]
								: NULL;

	(void)size;
	(void)arg;
	for (int i = 0; r && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			r->start = info->dlpi_addr + p->p_vaddr;
			r->end = r->start + p->p_memsz;
		}
	}
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *every = getenv("FAIL_EVERY");

	fail_every = every ? strtoul(every, NULL, 10) : 0;
	fail_at = at ? strtoul(at, NULL, 10) : 0;
	dl_iterate_phdr(add_object, NULL);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAIL_COUNT");
	char text[32];
	int fd = path ? open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600) : -1;

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)snprintf(text, sizeof(text), "%lu\n", count)) < 0)
		_exit(99);
	close(fd);
}

static bool fails(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	unsigned long nr;

	if (!ranges[0].end || !((at >= ranges[0].start && at < ranges[0].end) ||
				(at >= ranges[1].start && at < ranges[1].end)))
		return false;
	nr = atomic_fetch_add(&count, 1) + 1;
	if (!fail_at || nr < fail_at ||
	    (nr > fail_at && (!fail_every || (nr - fail_at) % fail_every)))
		return false;
	errno = ENOMEM;
	return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
	return fails(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return fails(CALLER) ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *p, size_t size)
{
	return fails(CALLER) ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t nr, size_t size)
{
	size_t all;

	if (fails(CALLER) || __builtin_mul_overflow(nr, size, &all))
		return NULL;
	return __libc_realloc(p, all);
}

void *aligned_alloc(size_t align, size_t size)
{
	return fails(CALLER) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	void *p = fails(CALLER) ? NULL : __libc_memalign(align, size);

	if (p)
		*out = p;
	return p ? 0 : ENOMEM;
}
