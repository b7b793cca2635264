// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events at an address: hardware breakpoints, user and kernel probes.
 *
 * Any thread, slow for a probe by symbol: the file is read, with the rights of the invoking user. A
 * uprobe is opened by a file and an offset in it, so the symbol is looked up here.
 */
#include "sampler/event/event_parse.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/invoker.h"
#include "symbols/object/image_read.h"

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
