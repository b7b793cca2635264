// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read headers from a file: the command line of a process is readable by all users.
 */
#include "ui/push/headers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/invoker.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

bool headers_valid(const char *line)
{
	/* Made by libcurl, or with an effect on the connection. */
	static const char *const ours[] = { "content-length", "content-type", "transfer-encoding",
					    "expect",	      "connection",   "upgrade" };
	size_t size = strspn(line, NAME_BYTES);

	if (!size || line[size] != ':')
		return false;
	for (const char *at = line + size; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
			return false;
	/* "Name:" alone would remove a header of libcurl. */
	if (!line[size + 1 + strspn(line + size + 1, " \t")])
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == size && !strncasecmp(line, ours[i], size))
			return false;
	return true;
}

/* Open the file with the rights of the invoking user. NULL and errno. */
static FILE *open_file(const char *path)
{
	struct invoker_saved saved;
	struct stat st;
	int fd, code = invoker_begin(&saved, NULL);

	if (code) {
		errno = -code;
		return NULL;
	}
	/* Not blocking: it may be a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	invoker_end(&saved);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	return fd >= 0 ? fdopen(fd, "r") : NULL;
}

static int refuse(struct err *e, const char *path, unsigned int number, const char *why)
{
	return err_set(e, -EINVAL,
		       "--push-headers: %s:%u: %s\n"
		       "  one header per line, as in X-Scope-OrgID: team",
		       path, number, why);
}

int headers_read(const char *path, int (*add)(void *ctx, const char *line), void *ctx,
		 struct err *e)
{
	FILE *f = open_file(path);
	unsigned int nr = 0, number = 0;
	char line[HEADERS_LINE_MAX];
	int code = 0;

	if (!f)
		return err_set(e, -errno, "--push-headers: cannot read %s: %s", path,
			       errno == EINVAL ? "not a regular file" : strerror(errno));
	while (!code && fgets(line, sizeof(line), f)) {
		size_t size = strcspn(line, "\n");
		bool whole = line[size] == '\n' || feof(f);

		number++;
		line[size] = '\0';
		if (size && line[size - 1] == '\r')
			line[size - 1] = '\0';
		if (whole && (!line[0] || line[0] == '#'))
			continue;
		if (!whole || !headers_valid(line))
			code = refuse(e, path, number, "invalid header");
		else if (++nr > HEADERS_MAX)
			code = refuse(e, path, number, "more than 16 headers");
		else if (add(ctx, line))
			code = err_set(e, -ENOMEM, "--push: out of memory");
	}
	if (!code && ferror(f))
		code = err_set(e, -EIO, "--push-headers: cannot read %s", path);
	fclose(f);
	explicit_bzero(line, sizeof(line));
	return code;
}
