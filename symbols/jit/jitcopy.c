// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parts of files for readers in the cage.
 *
 * Runs on: a helper.
 */
#include "symbols/jit/jitcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbols/cage/cage.h"

#define PIECE (256U << 10)

/* Read one piece. Return its size, 0 at the end, or -errno. */
static ssize_t read_piece(int file, uint64_t at, uint8_t *piece, size_t max, struct watch *watch)
{
	ssize_t nr = watch_begin(watch);

	if (nr)
		return nr;
	do {
		nr = pread(file, piece, max, (off_t)at);
	} while (nr < 0 && errno == EINTR);
	nr = nr < 0 ? -errno : nr;
	watch_end(watch, (uint64_t)MAX(nr, 0));
	return nr;
}

int jitcopy(int file, uint64_t at, size_t max, struct watch *watch, size_t *size)
{
	uint8_t *piece = malloc(PIECE);
	int fd = piece ? cage_file() : -1;
	ssize_t nr = fd < 0 ? -ENOMEM : 1;

	*size = 0;
	while (nr > 0 && *size < max) {
		nr = read_piece(file, at + *size, piece, MIN(max - *size, (size_t)PIECE), watch);
		if (nr <= 0)
			break;
		*size += (size_t)nr;
		if (fd_write_all(fd, piece, (size_t)nr))
			nr = -ENOMEM;
	}
	free(piece);
	if (fd >= 0)
		cage_fix_size(fd);
	if (nr < 0 && fd >= 0) {
		close(fd);
		fd = -1;
	}
	return nr < 0 ? (int)nr : fd;
}
