// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Formats of tracepoints, laid out as by tools/perf/util/trace-event-info.c, version 0.6.
 *
 * Runs on: the recorder's writer.
 */
#include "sampler/file/tracing_data.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/event/tracefs.h"
#include "sampler/file/perfdata_attrs.h"

/* A file of tracefs; its size is not known before it is read. */
#define TEXT_MAX (1u << 20)

static void put_u32(FILE *out, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, out);
}

static void put_u64(FILE *out, uint64_t v)
{
	fwrite(&v, sizeof(v), 1, out);
}

/* Write the size of a file below @events and its bytes; a file that cannot be read is empty. */
static void put_file(FILE *out, int events, const char *path)
{
	int fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	char *text = xcalloc(1, TEXT_MAX);
	size_t size = 0;
	ssize_t got = 0;

	while (fd >= 0 && (got = read(fd, text + size, TEXT_MAX - size)) > 0)
		size += (size_t)got;
	put_u64(out, size);
	fwrite(text, 1, size, out);
	free(text);
	if (fd >= 0)
		close(fd);
}

/* Split "sched:sched_switch:k"; false: not the name of a tracepoint. */
static bool split_name(const char *name, char system[128], char event[128])
{
	return sscanf(name, "%127[a-zA-Z0-9_-]:%127[a-zA-Z0-9_-]", system, event) == 2;
}

/* Return whether event @at is a tracepoint, with another name than all before it. */
static bool is_new(const struct perfdata_attrs *attrs, uint32_t at, char system[128],
		   char event[128])
{
	char other_system[128], other[128];

	if (attrs->events[at].attr.type != PERF_TYPE_TRACEPOINT ||
	    !split_name(attrs->events[at].name, system, event))
		return false;
	for (uint32_t i = 0; i < at; i++)
		if (attrs->events[i].attr.type == PERF_TYPE_TRACEPOINT &&
		    split_name(attrs->events[i].name, other_system, other) &&
		    !strcmp(system, other_system) && !strcmp(event, other))
			return false;
	return true;
}

/* Write the formats of all tracepoints: each as a system with one event. */
static void put_formats(FILE *out, int events, const struct perfdata_attrs *attrs, uint32_t nr)
{
	char system[128], event[128], path[300];

	put_u32(out, nr);
	for (uint32_t i = 0; i < attrs->nr; i++) {
		if (!is_new(attrs, i, system, event))
			continue;
		fwrite(system, 1, strlen(system) + 1, out);
		put_u32(out, 1);
		snprintf(path, sizeof(path), "%s/%s/format", system, event);
		put_file(out, events, path);
	}
}

bool tracing_data_write(FILE *out, const struct perfdata_attrs *attrs)
{
	static const char magic[] = "\x17\x08\x44tracing0.6"; /* with its NUL */
	const uint16_t one = 1;
	char system[128], event[128];
	uint32_t nr = 0;
	int events;

	for (uint32_t i = 0; i < attrs->nr; i++)
		nr += is_new(attrs, i, system, event);
	if (!nr)
		return false;
	tracefs_open("", &events);
	if (events < 0)
		return false;
	fwrite(magic, 1, sizeof(magic), out);
	fputc(!*(const uint8_t *)&one, out); /* big endian */
	fputc(sizeof(long), out);
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	fwrite("header_page", 1, 12, out);
	put_file(out, events, "header_page");
	fwrite("header_event", 1, 13, out);
	put_file(out, events, "header_event");
	put_u32(out, 0); /* events of ftrace */
	put_formats(out, events, attrs, nr);
	put_u32(out, 0); /* kallsyms */
	put_u32(out, 0); /* printk formats */
	put_u64(out, 0); /* saved command lines */
	close(events);
	return true;
}
