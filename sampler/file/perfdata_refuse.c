// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Word the refusal of a file: another format, damaged, too many events. perfdata_header.c finds it.
 *
 * Any thread; pure.
 */
#include "sampler/file/perfdata_refuse.h"

#include <errno.h>
#include <string.h>

#include "sampler/file/perfdata_events.h"

static const struct kind {
	const char *magic;
	size_t size;
	const char *reason, *fix;
} kinds[] = {
	{ "PERFFILE", 8, "written by perf before Linux 3.0",
	  "'perf script -i FILE' of any version reads it" },
	{ "2ELIFREP", 8, "recorded on a machine of the other byte order",
	  "'perf report -i FILE' reads it" },
	{ "\x1f\x8b", 2, "compressed by gzip", "'gzip -dc FILE | proftop --replay -'" },
	{ "\x28\xb5\x2f\xfd", 4, "compressed by zstd", "'zstd -dc FILE | proftop --replay -'" },
	{ "\xfd"
	  "7zXZ",
	  5, "compressed by xz", "'xz -dc FILE | proftop --replay -'" },
	{ "BZh", 3, "compressed by bzip2", "'bzip2 -dc FILE | proftop --replay -'" },
};

static const struct kind *find_kind(const uint8_t *head, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (size >= kinds[i].size && !memcmp(head, kinds[i].magic, kinds[i].size))
			return &kinds[i];
	return NULL;
}

const char *perfdata_reason(int code)
{
	switch (code) {
	case -ENOSYS:
		return "the reader of foreign files does not start; see 'proftop --check'";
	case -EMFILE:
		return "too many recordings are opened at a time";
	case -ETIME:
		return "reading it took too long";
	case -ECANCELED:
		return "interrupted";
	case -EFBIG:
		return "its records need more than 8 GiB of memory";
	case -EPIPE:
	case -ESTALE:
	case -EBADMSG:
		return "its reader failed: a damaged file, or out of memory";
	default:
		return strerror(-code);
	}
}

int perfdata_refuse(struct err *e, int code, const char *path, const uint8_t *head, size_t size)
{
	const struct kind *kind = find_kind(head, size);

	if (code == -ENOTSUP)
		return err_set(e, code,
			       "cannot replay %.300s: compressed, and this proftop was built "
			       "without libzstd\n"
			       "  build with libzstd-dev installed, or record without -z",
			       path);
	if (code == -EFBIG)
		return err_set(e, code,
			       "cannot replay %.300s: %s\n"
			       "  record in parts, or for less time",
			       path, perfdata_reason(code));
	if (code != -E2BIG && code != -EINVAL)
		return err_set(e, code, "cannot replay %.300s: %s", path, perfdata_reason(code));
	if (code == -E2BIG)
		return err_set(e, code,
			       "cannot replay %.300s: it has more than %d events\n"
			       "  record fewer events, or look at it with perf report",
			       path, PERFDATA_EVENTS_MAX);
	if (kind)
		return err_set(e, code, "cannot replay %.300s: %s\n  %s", path, kind->reason,
			       kind->fix);
	if (!size)
		return err_set(e, code,
			       "cannot replay %.300s: empty file\n"
			       "  record again with perf record or proftop --record",
			       path);
	if (size < 8 || memcmp(head, "PERFILE2", 8))
		return err_set(e, code,
			       "cannot replay %.300s: not a perf.data file\n"
			       "  perf record and proftop --record write such files",
			       path);
	return err_set(e, code,
		       "cannot replay %.300s: its header is damaged or cut short\n"
		       "  record again with perf record or proftop --record",
		       path);
}

int perfdata_refuse_folder(struct err *e, const char *path)
{
	return err_set(e, -EISDIR,
		       "cannot replay %.300s: a directory\n"
		       "  perf record --threads writes one; record without it",
		       path);
}
