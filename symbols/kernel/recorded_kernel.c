// SPDX-License-Identifier: GPL-2.0-or-later
/* Compare the kernel of a recording with the running one. Runs on: the loader. */
#include "symbols/kernel/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "symbols/elf/elf.h"

size_t recorded_kernel_build_id(const char *path, uint8_t *id, size_t max)
{
	uint8_t notes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, notes, sizeof(notes));

	if (fd >= 0)
		close(fd);
	return size > 0 ? elffile_notes_build_id(notes, (size_t)size, id, max) : 0;
}

enum kernel_match recorded_kernel_match(const struct kernel_identity *was, const char *notes)
{
	uint8_t id[sizeof(was->build_id)];
	size_t size = was->build_id_size ? recorded_kernel_build_id(notes, id, sizeof(id)) : 0;
	struct utsname host;

	if (size)
		return size != was->build_id_size || memcmp(id, was->build_id, size) ? KERNEL_OTHER
										     : KERNEL_SAME;
	if (!*was->release || uname(&host))
		return KERNEL_UNKNOWN;
	return strcmp(was->release, host.release) ? KERNEL_OTHER : KERNEL_SAME;
}

const char *recorded_kernel_reason(enum kernel_match match)
{
	static const char *const reasons[] = {
		[KERNEL_OTHER] = "recorded on another kernel",
		[KERNEL_UNKNOWN] = "not known which kernel it was recorded on",
	};

	return reasons[match];
}

uint64_t recorded_kernel_now(const struct recorded_kernel *k, uint64_t addr)
{
	return addr >= k->start && addr < k->end ? addr - k->shift : addr;
}

uint64_t recorded_kernel_then(const struct recorded_kernel *k, uint64_t addr)
{
	uint64_t then = addr + k->shift;

	return then >= k->start && then < k->end ? then : addr;
}
