// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sched:sched_waking: its format, checked.
 *
 * Any thread; no state.
 */
#include "sampler/event/waking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/event/procstat.h"
#include "sampler/event/tracefs.h"

/* Return whether the text of a format file has the woken task at WAKING_PID_OFFSET. */
static bool is_expected(const char *text)
{
	const char *line = strstr(text, "field:pid_t pid;");
	unsigned int offset, size;

	return line && sscanf(line, "field:pid_t pid; offset:%u; size:%u;", &offset, &size) == 2 &&
	       offset == WAKING_PID_OFFSET && size == sizeof(int32_t);
}

static int check_format(void)
{
	char text[2048];
	ssize_t size;
	int events, fd;

	tracefs_open("", &events);
	if (events < 0)
		return -EACCES;
	fd = openat(events, "sched/sched_waking/format", O_RDONLY | O_CLOEXEC);
	close(events);
	if (fd < 0)
		return -errno;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(size, 0)] = '\0';
	return is_expected(text) ? 0 : -EBADMSG;
}

int waking_event(struct event *ev)
{
	struct err e = { .text = "" };
	int code;

	/* Tracepoints have the numbers of the first namespace, samples have ours. */
	if (procstat_pid_namespace(""))
		return -ENOTSUP;
	code = check_format();
	return code ? code : event_parse(ev, WAKING_NAME, &e);
}
