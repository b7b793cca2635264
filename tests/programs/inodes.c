// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inodes DIR [SECONDS]: create, map executable and unlink files in DIR as fast as one CPU can:
 * many file systems give each of them the same inode number. Prints the number of files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 5);
	unsigned int nr = 0;

	if (argc < 2 || chdir(argv[1]))
		return 2;
	for (; time(NULL) < end; nr++) {
		int fd = open("inodes.tmp", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
		void *p;

		if (fd < 0 || ftruncate(fd, 4096))
			return 1;
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		unlink("inodes.tmp");
		close(fd);
		if (p == MAP_FAILED)
			return 1;
		munmap(p, 4096);
	}
	printf("%u files\n", nr);
	return 0;
}
