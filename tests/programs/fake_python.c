// SPDX-License-Identifier: GPL-2.0-or-later
/* BUILD: -rdynamic */
/*
 * A fake Python 3.11, under that file name: reads of its interpreter list hang,
 * because the list is in memory with unserved faults (userfaultfd(2)).
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIZE 65536

uint64_t _PyRuntime[512];
uint64_t PyCode_Type[64];
const unsigned long Py_Version = 0x030b02f0;
unsigned int _PyEval_EvalFrameDefault(unsigned int n);

__attribute__((noinline)) unsigned int _PyEval_EvalFrameDefault(unsigned int n)
{
	for (volatile unsigned int i = 0; i < 1000000; i++)
		n = n * 1103515245 + i;
	return n;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *trap = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t end = time(NULL) + 600;
	unsigned int n = 1;

	if (fd < 0 || trap == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return 77;
	reg.range.start = (uint64_t)(uintptr_t)trap;
	reg.range.len = SIZE;
	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		return 77;
	/* interpreters.head */
	_PyRuntime[5] = (uint64_t)(uintptr_t)trap;
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		n = _PyEval_EvalFrameDefault(n);
	return n == 0;
}
