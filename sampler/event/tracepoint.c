// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tracepoints, breakpoints and probes: names → ids in tracefs, which is mounted or opened without a
 * mount; the event of wake-ups.
 *
 * Any thread; no state.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

static int no_tracefs(const struct event *ev, enum tracefs_state state, struct err *e)
{
	if (state == TRACEFS_CLOSED)
		return err_set(e, -EINVAL,
			       "event '%.100s': cannot read the tracepoints: permission denied\n"
			       "  only root may read /sys/kernel/tracing/events\n"
			       "  'sudo chgrp -R perf_users /sys/kernel/tracing/events', or run as "
			       "root; see proftop --list-events",
			       ev->name);
	if (state == TRACEFS_LOCKED)
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoints: kernel lockdown is in force\n"
			       "  /sys/kernel/security/lockdown is 'confidentiality'; it forbids "
			       "tracefs to every user\n"
			       "  boot with lockdown=integrity or none; or choose another event "
			       "(proftop --list-events)",
			       ev->name);
	return err_set(e, -EINVAL,
		       "event '%.100s': the kernel's tracepoints are not mounted\n"
		       "  /sys/kernel/tracing is empty, and CAP_SYS_ADMIN is needed to read them "
		       "without a mount\n"
		       "  'sudo mount -t tracefs nodev /sys/kernel/tracing', then see "
		       "proftop --list-events",
		       ev->name);
}

/* Find the tracepoint below the open folder @events. */
static int find_tracepoint(int events, struct event *ev, const char *system, const char *name,
			   struct err *e)
{
	char path[256], line[32], *end;

	if (faccessat(events, system, F_OK, 0))
		return -ENOENT;
	snprintf(path, sizeof(path), "%.120s/%.120s/id", system, name);
	if (!pmu_read_line_at(events, path, line, sizeof(line)))
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoint '%.60s' in '%.60s'\n"
			       "  the kernel has others there\n"
			       "  'proftop --list-events' shows all events",
			       ev->name, name, system);
	ev->type = PERF_TYPE_TRACEPOINT;
	ev->config = strtoull(line, &end, 10);
	/* Each one counts, as with perf: they are events, not a measure of time. */
	ev->period = 1;
	return end != line ? 0 : -ENOENT;
}

int tracepoint_parse(const char *root, struct event *ev, const char *system, const char *name,
		     struct err *e)
{
	enum tracefs_state state;
	int events, code;

	if (!pmu_is_word(system) || !pmu_is_word(name))
		return -ENOENT;
	state = tracefs_open(root, &events);
	if (events < 0)
		return no_tracefs(ev, state, e);
	code = find_tracepoint(events, ev, system, name, e);
	close(events);
	return code;
}

static int plain_entry(const struct dirent *d)
{
	return pmu_is_word(d->d_name);
}

/* Call @fn with each event of one system: its folders that have an id. */
static void each_of_system(int events, const char *system, void (*fn)(void *ctx, const char *name),
			   void *ctx)
{
	char path[512], name[EVENT_NAME_MAX];
	struct dirent **list;
	int nr = scandirat(events, system, &list, plain_entry, alphasort);

	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%.120s/%.120s/id", system, list[i]->d_name);
		if (!faccessat(events, path, F_OK, 0)) {
			snprintf(name, sizeof(name), "%.120s:%.120s", system, list[i]->d_name);
			fn(ctx, name);
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

/* By folders: available_events has no ftrace events. */
void tracepoint_each(const char *root, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent **list;
	int events, nr;

	tracefs_open(root, &events);
	if (events < 0)
		return;
	nr = scandirat(events, ".", &list, plain_entry, alphasort);
	for (int i = 0; i < nr; i++) {
		each_of_system(events, list[i]->d_name, fn, ctx);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	close(events);
}

/*
 * The kernel's tracepoints: the mounted tracefs, else a private mount that is in no mount namespace
 * and ends with its descriptor.
 *
 * Any thread. The only state is that mount, which is kept: later there may be no right to make one.
 */

static atomic_int kept = -1;

/* Open tracefs without a place in the file system (kernel 5.2, CAP_SYS_ADMIN). -1: refused. */
static int mount_detached(void)
{
	int config = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

	if (config < 0)
		return -1;
	if (!syscall(SYS_fsconfig, config, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, config, FSMOUNT_CLOEXEC,
				  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  MOUNT_ATTR_NOEXEC);
	close(config);
	return fd;
}

/* Return the mount, made at the first call that may; not the caller's to close. -1: refused. */
static int private_mount(void)
{
	int fd = atomic_load_explicit(&kept, memory_order_acquire), none = -1;

	if (fd >= 0)
		return fd;
	fd = mount_detached();
	if (fd < 0 || atomic_compare_exchange_strong(&kept, &none, fd))
		return fd;
	close(fd);
	return none;
}

static int open_events(int dir, const char *path)
{
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The kernel leaves tracefs empty while lockdown forbids reading the kernel's memory. */
static enum tracefs_state missing(const char *root)
{
	char level[20];

	procstat_lockdown(root, level, sizeof(level));
	return strcmp(level, "confidentiality") ? TRACEFS_MISSING : TRACEFS_LOCKED;
}

enum tracefs_state tracefs_open(const char *root, int *fd)
{
	static const char *const places[] = {
		"/sys/kernel/tracing/events",
		"/sys/kernel/debug/tracing/events",
	};
	char path[512];
	int mount;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s%s", root, places[i]);
		*fd = open_events(AT_FDCWD, path);
		if (*fd >= 0)
			return TRACEFS_MOUNTED;
		/* Mounted, but closed to us: say so rather than look elsewhere. */
		if (errno == EACCES)
			return TRACEFS_CLOSED;
	}
	assert(*fd < 0);
	mount = root[0] ? -1 : private_mount();
	if (mount >= 0)
		*fd = open_events(mount, "events");
	return *fd >= 0 ? TRACEFS_DETACHED : missing(root);
}

/*
 * Events at an address: hardware breakpoints, user and kernel probes.
 *
 * Any thread, slow for a probe by symbol: the file is read, with the rights of the invoking user. A
 * uprobe is opened by a file and an offset in it, so the symbol is looked up here.
 */

#define MODIFIERS "ukhHGpP"

/* A decimal or hexadecimal number at *@text. */
static bool take_number(const char **text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 0);
	*text = end;
	return !errno;
}

static int refuse_mem(const struct event *ev, struct err *e)
{
	return err_set(e, -EINVAL,
		       "event '%.100s': not a breakpoint\n"
		       "  give mem:ADDRESS[/LENGTH][:rwx], as in mem:0x7ffe1000/8:w\n"
		       "  lengths are 1, 2, 4, 8; see proftop --list-events",
		       ev->name);
}

/* "rw" of mem:…:rw; false for a letter that is invalid or repeated. */
static bool take_access(const char *text, size_t size, uint32_t *type)
{
	static const struct {
		char letter;
		uint32_t bit;
	} letters[] = { { 'r', HW_BREAKPOINT_R },
			{ 'w', HW_BREAKPOINT_W },
			{ 'x', HW_BREAKPOINT_X } };

	*type = 0;
	for (size_t i = 0; i < size; i++) {
		uint32_t bit = 0;

		for (size_t k = 0; k < ARRAY_SIZE(letters); k++)
			if (letters[k].letter == text[i])
				bit = letters[k].bit;
		if (!bit || *type & bit)
			return false;
		*type |= bit;
	}
	return *type;
}

/* mem:ADDRESS[/LENGTH][:rwx][:modifiers]; defaults are perf's. */
static int parse_mem(struct event *ev, const char *text, const char **modifiers, struct err *e)
{
	uint64_t address, len = 0;

	if (!take_number(&text, &address))
		return refuse_mem(ev, e);
	if (*text == '/') {
		text++;
		if (!take_number(&text, &len) || (len != 1 && len != 2 && len != 4 && len != 8))
			return refuse_mem(ev, e);
	}
	ev->bp_type = HW_BREAKPOINT_R | HW_BREAKPOINT_W;
	if (*text == ':' && strspn(text + 1, "rwx") == strcspn(text + 1, ":") && text[1] != ':') {
		size_t size = strcspn(text + 1, ":");

		if (!size || !take_access(text + 1, size, &ev->bp_type))
			return refuse_mem(ev, e);
		text += 1 + size;
	}
	if (*text && *text != ':')
		return refuse_mem(ev, e);
	if (!len)
		len = ev->bp_type == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	ev->type = PERF_TYPE_BREAKPOINT;
	ev->config1 = address;
	ev->config2 = len;
	ev->period = 1;
	*modifiers = *text ? text + 1 : NULL;
	return 0;
}

/* Open the file with the rights of the invoking user. The descriptor or -errno. */
static int open_program(const char *path, struct stat *st)
{
	struct invoker_saved saved;
	int fd, code;

	if (invoker_begin(&saved, NULL))
		return -EPERM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	code = fd < 0 || fstat(fd, st) ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;
	invoker_end(&saved);
	if (!code)
		return fd;
	if (fd >= 0)
		close(fd);
	return code;
}

/* Where @symbol begins in the file. */
static int symbol_offset(const struct event *ev, const char *path, const char *symbol,
			 uint64_t *offset, struct err *e)
{
	struct image *image = NULL;
	struct stat st;
	int code = -ENOENT, fd = open_program(path, &st);

	if (fd < 0)
		return err_set(e, -EINVAL,
			       "event '%.100s': cannot read '%.100s': %s\n"
			       "  a probe needs the program or library itself, by its full path\n"
			       "  uprobe:/path:symbol[+offset]; see proftop --list-events",
			       ev->name, path, strerror(-fd));
	if (!image_read_fd(&image, fd, (uint64_t)st.st_size, NULL)) {
		for (uint32_t i = 0; i < image->nr_symbols && code; i++) {
			const struct image_symbol *s = &image->symbols[i];

			if (image_symbol_is(image, s, symbol) &&
			    image_offset(image, s->vaddr, offset))
				code = 0;
		}
		image_free(image);
	}
	close(fd);
	return !code ? 0
		     : err_set(e, -EINVAL,
			       "event '%.100s': no function '%.60s' in '%.100s'\n"
			       "  the file has no such symbol, or is stripped\n"
			       "  'nm -D FILE' shows them; or give an offset in the file: "
			       "uprobe:/path:0x1234 (--list-events)",
			       ev->name, symbol, path);
}

/* Set the PMU of probes, and the bit for the return. */
static int probe_pmu(const char *root, struct event *ev, const char *pmu, bool ret, struct err *e)
{
	if (pmu_parse(root, ev, pmu, ret ? "retprobe" : "", NULL))
		return err_set(e, -EINVAL,
			       "event '%.100s': this kernel has no %ss\n"
			       "  /sys/bus/event_source/devices/%s is not there\n"
			       "  it needs CONFIG_%s_EVENTS; see proftop --list-events",
			       ev->name, pmu, pmu, pmu[0] == 'k' ? "KPROBE" : "UPROBE");
	ev->period = 1;
	return 0;
}

/* "symbol+0x10" or "0x1234" split; false if the number is none. */
static bool split_offset(char *text, uint64_t *offset)
{
	char *plus = strrchr(text, '+');
	const char *number = plus ? plus + 1 : text;

	*offset = 0;
	if (plus) {
		*plus = '\0';
		return take_number(&number, offset) && !*number && *text;
	}
	return *text;
}

/* The spec behind the prefix: where, and the modifiers after the last colon. */
static int split_spec(const struct event *ev, const char *text, char *where, size_t size,
		      const char **modifiers, unsigned int colons, struct err *e)
{
	const char *last = strrchr(text, ':');
	unsigned int found = 0;
	size_t length = strlen(text);

	for (const char *p = text; *p; p++)
		found += *p == ':';
	*modifiers = NULL;
	if (last && found > colons && strspn(last + 1, MODIFIERS) == strlen(last + 1)) {
		*modifiers = last + 1;
		length = (size_t)(last - text);
	}
	if (!length || length >= size)
		return err_set(e, -EINVAL,
			       "event '%.100s': not a probe\n"
			       "  uprobe:/path:symbol[+offset], kprobe:function[+offset]; "
			       "uretprobe, kretprobe\n"
			       "  see proftop --list-events",
			       ev->name);
	memcpy(where, text, length);
	where[length] = '\0';
	return 0;
}

static int parse_uprobe(const char *root, struct event *ev, const char *text, bool ret,
			const char **modifiers, struct err *e)
{
	char where[EVENT_TEXT_MAX], *colon;
	const char *number;
	uint64_t offset, start = 0;
	int code = split_spec(ev, text, where, sizeof(where), modifiers, 1, e);

	if (code)
		return code;
	colon = strrchr(where, ':');
	if (where[0] != '/' || !colon || !split_offset(colon + 1, &offset))
		return err_set(e, -EINVAL,
			       "event '%.100s': not a probe of a program\n"
			       "  give the full path and a function: uprobe:/bin/sh:main+4\n"
			       "  or an offset in the file: uprobe:/bin/sh:0x1234; see proftop "
			       "--list-events",
			       ev->name);
	*colon = '\0';
	number = colon + 1;
	if (!take_number(&number, &start) || *number)
		code = symbol_offset(ev, where, colon + 1, &start, e);
	if (!code)
		code = probe_pmu(root, ev, "uprobe", ret, e);
	if (code)
		return code;
	memcpy(ev->target, where, strlen(where) + 1);
	ev->config2 = start + offset;
	return 0;
}

static int parse_kprobe(const char *root, struct event *ev, const char *text, bool ret,
			const char **modifiers, struct err *e)
{
	char where[EVENT_TEXT_MAX];
	uint64_t offset;
	int code = split_spec(ev, text, where, sizeof(where), modifiers, 0, e);

	if (code)
		return code;
	if (!split_offset(where, &offset) || !pmu_is_word(where))
		return err_set(e, -EINVAL,
			       "event '%.100s': not a function of the kernel\n"
			       "  kprobe:do_exit, kretprobe:do_exit, kprobe:do_exit+4\n"
			       "  /proc/kallsyms has their names; see proftop --list-events",
			       ev->name);
	code = probe_pmu(root, ev, "kprobe", ret, e);
	if (code)
		return code;
	memcpy(ev->target, where, strlen(where) + 1);
	ev->config2 = offset;
	return 0;
}

bool probe_parse(const char *root, struct event *ev, const char *text, const char **modifiers,
		 int *code, struct err *e)
{
	*modifiers = NULL;
	if (!strncmp(text, "mem:", 4))
		*code = parse_mem(ev, text + 4, modifiers, e);
	else if (!strncmp(text, "uprobe:", 7))
		*code = parse_uprobe(root, ev, text + 7, false, modifiers, e);
	else if (!strncmp(text, "uretprobe:", 10))
		*code = parse_uprobe(root, ev, text + 10, true, modifiers, e);
	else if (!strncmp(text, "kprobe:", 7))
		*code = parse_kprobe(root, ev, text + 7, false, modifiers, e);
	else if (!strncmp(text, "kretprobe:", 10))
		*code = parse_kprobe(root, ev, text + 10, true, modifiers, e);
	else
		return false;
	return true;
}
