// SPDX-License-Identifier: GPL-2.0-or-later
/* The segments in the folder of --keep. */
#include "sampler/keep_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/invoker.h"

#define LOCK "lock"

int keep_dir_open(int *fd, const char *path, struct err *e)
{
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return err_set(e, -errno,
			       "cannot open %.300s: %s\n"
			       "  --keep and --open take a folder: create it first",
			       path, strerror(errno));
	return 0;
}

/* Return whether no other user can open the file: to lock it, it is enough to read it. */
static bool is_private(int dir, int fd)
{
	struct stat st, folder;

	return !fstat(fd, &st) && !fstat(dir, &folder) && S_ISREG(st.st_mode) &&
	       !(st.st_mode & 077) && (st.st_uid == invoker_uid() || st.st_uid == folder.st_uid);
}

int keep_dir_lock(int *lock, int dir, const char *path, struct err *e)
{
	*lock = openat(dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		       0600);
	if (*lock < 0)
		return err_set(e, -errno,
			       "cannot open %.300s/" LOCK ": %s\n"
			       "  --keep takes a folder in which you may create files",
			       path, strerror(errno));
	if (!is_private(dir, *lock))
		err_set(e, -EBUSY,
			"%.300s/" LOCK ": another user can open it\n"
			"  remove it, or give another folder",
			path);
	else if (!flock(*lock, LOCK_EX | LOCK_NB))
		return 0;
	else
		err_set(e, -EBUSY,
			"%.300s: another proftop keeps its samples there\n"
			"  give another folder",
			path);
	close(*lock);
	*lock = -1;
	return -EBUSY;
}

void keep_dir_name(char name[static KEEP_DIR_NAME], uint32_t number)
{
	snprintf(name, KEEP_DIR_NAME, "%08x.keep", number);
}

/* Return the number of a segment by its name; 0: it is another file. */
static uint32_t number_of(const char *name)
{
	char again[KEEP_DIR_NAME];
	uint32_t number = (uint32_t)strtoul(name, NULL, 16);

	keep_dir_name(again, number);
	return strcmp(name, again) ? 0 : number;
}

static int ascending(const void *a, const void *b)
{
	return COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

int keep_dir_list(int fd, uint32_t **numbers, struct err *e)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), nr = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	*numbers = NULL;
	if (!dir) {
		nr = err_set(e, -errno, "cannot read the folder: %s", strerror(errno));
		if (copy >= 0)
			close(copy);
		return nr;
	}
	while (nr <= KEEP_SEGMENTS_MAX && (entry = readdir(dir))) {
		uint32_t number = number_of(entry->d_name);

		if (!number)
			continue;
		*numbers = xrealloc_array(*numbers, (size_t)nr + 1, sizeof(**numbers));
		(*numbers)[nr++] = number;
	}
	closedir(dir);
	if (nr > KEEP_SEGMENTS_MAX) {
		free(*numbers);
		*numbers = NULL;
		return err_set(e, -E2BIG, "the folder has more than %d files named *.keep",
			       KEEP_SEGMENTS_MAX);
	}
	if (nr)
		qsort(*numbers, (size_t)nr, sizeof(**numbers), ascending);
	return nr;
}

int keep_dir_last(int fd, uint32_t *last, struct err *e)
{
	uint32_t *numbers;
	int nr = keep_dir_list(fd, &numbers, e);

	*last = nr > 0 ? numbers[nr - 1] : 0;
	free(numbers);
	if (nr < 0)
		return nr;
	if (*last >= KEEP_NUMBER_MAX)
		return err_set(e, -EOVERFLOW, "%08x.keep: there are no higher numbers", *last);
	return 0;
}

int keep_dir_shrink(int fd, uint64_t size, uint64_t time_ns, struct err *e)
{
	uint32_t *numbers;
	int nr = keep_dir_list(fd, &numbers, e), code = MIN(nr, 0);
	time_t oldest = time(NULL) - (time_t)(time_ns / 1000000000);
	uint64_t used = 0;
	char name[KEEP_DIR_NAME];
	struct stat st;

	/* From the newest on: the rest is too much. */
	for (int i = nr; i-- > 0;) {
		keep_dir_name(name, numbers[i]);
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		used += (uint64_t)st.st_size;
		if ((used > size || st.st_mtime < oldest) && unlinkat(fd, name, 0) &&
		    errno != ENOENT)
			code = err_set(e, -errno, "cannot remove %s: %s", name, strerror(errno));
	}
	free(numbers);
	return code;
}
