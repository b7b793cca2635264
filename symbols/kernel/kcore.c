// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes of the running kernel. Runs on: a helper, or in the cage.
 *
 * elffile.c cannot read this file: its size is that of the address space, and it
 * has no sections.
 */
#include "symbols/kernel/kcore.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"

#define PHDRS_MAX 4096u

/* Read @size bytes, or fewer at the end; -errno. */
static int read_at(int fd, uint64_t offset, void *buf, uint32_t size)
{
	uint32_t got = 0;

	if (offset > (uint64_t)INT64_MAX - size)
		return -EFAULT;
	while (got < size) {
		ssize_t n = pread(fd, (char *)buf + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !got)
			return -errno;
		if (n <= 0)
			break;
		got += (uint32_t)n;
	}
	return (int)got;
}

static int read_header(int fd, Elf64_Ehdr *h)
{
	int n = read_at(fd, 0, h, sizeof(*h));

	if (n < 0)
		return n;
	if (n < (int)sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) ||
	    h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_CORE ||
	    h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > PHDRS_MAX)
		return -ENOEXEC;
	return 0;
}

int kcore_read(int fd, uint64_t addr, void *buf, uint32_t size)
{
	Elf64_Ehdr h;
	int rc = read_header(fd, &h);

	for (uint32_t i = 0; !rc && i < h.e_phnum; i++) {
		Elf64_Phdr p;

		if (h.e_phoff > INT64_MAX / 2)
			return -ENOEXEC;
		if (read_at(fd, h.e_phoff + i * sizeof(p), &p, sizeof(p)) < (int)sizeof(p))
			return -ENOEXEC;
		if (p.p_type != PT_LOAD || addr < p.p_vaddr || addr - p.p_vaddr >= p.p_filesz)
			continue;
		if (p.p_offset > INT64_MAX || addr - p.p_vaddr > INT64_MAX - p.p_offset)
			return -ENOEXEC;
		size = (uint32_t)MIN(size, p.p_filesz - (addr - p.p_vaddr));
		rc = read_at(fd, p.p_offset + (addr - p.p_vaddr), buf, size);
		return rc ? rc : -EIO;
	}
	return rc ? rc : -EFAULT;
}
