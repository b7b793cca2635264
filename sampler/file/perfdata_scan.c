// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The scan of a perf.data file: its header, then its records part by part.
 *
 * Runs in the worker, or in the thread of the call. Offsets and sizes of the file are checked in
 * one place, perfdata_bytes_at(), which all reads use.
 */
#include "sampler/file/perfdata_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata_zstd.h"

void perfdata_scan_init(struct perfdata_scan *s)
{
	*s = (struct perfdata_scan){ .bytes = { .fd = -1, .pipe = -1, .memory = -1 } };
}

void perfdata_scan_fini(struct perfdata_scan *s)
{
	perfdata_zstd_free(s->zstd);
	perfdata_events_fini(&s->events);
	perfdata_bytes_close(&s->bytes);
	free(s->refs);
	s->refs = NULL;
	s->zstd = NULL;
}

/* Note missing data, unless damage was met. */
static void check_whole(struct perfdata_scan *s)
{
	const struct perfdata_extent *extent = &s->extent;
	uint64_t left = s->found.nr_bad + perfdata_zstd_left(s->zstd);

	if (s->found.stop)
		return;
	if (s->stopped)
		perfdata_damage(s, "stopped while it was read: %" PRIu64 " bytes of the pipe",
				s->bytes.size);
	else if (extent->missing)
		perfdata_damage(s,
				"recording cut short: %" PRIu64 " of %" PRIu64 " bytes are "
				"missing",
				extent->missing, extent->missing + extent->data.size);
	else if (extent->cut)
		perfdata_damage(s, "recording cut short: all samples are there, but not the "
				   "facts behind them, such as build-ids");
	else if (left)
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
	else if (extent->unfinished)
		perfdata_damage(s, "recording not finished: its writer was killed");
	else if (s->aux)
		perfdata_damage(s, "AUX traces (Intel PT, SPE, CoreSight) are not decoded: "
				   "see perf script");
}

int perfdata_scan_open(struct perfdata_scan *s)
{
	int code = perfdata_header_read(&s->bytes, &s->events, &s->extent);

	s->opened = true;
	s->found.version++;
	s->found.walked = s->extent.data.offset;
	s->end = s->extent.data.offset + s->extent.data.size;
	return code;
}

int perfdata_scan_more(struct perfdata_scan *s)
{
	int code = perfdata_walk(s);

	s->found.done = code || !s->full;
	if (code || !s->found.done || s->found.kind == PERFDATA_KIND_STREAM)
		return code;
	s->found.nr_bad = s->end - s->found.walked;
	check_whole(s);
	return s->events.nr ? 0 : -EINVAL;
}

/* Note a record that is cut at the end of a pipe. */
static void end_stream(struct perfdata_scan *s)
{
	s->found.done = true;
	s->found.nr_bad = s->bytes.size - s->found.walked;
	if (s->found.nr_bad || perfdata_zstd_left(s->zstd))
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
}

int perfdata_scan_feed(struct perfdata_scan *s, const uint8_t *bytes, size_t size)
{
	int code;

	if (!size) {
		end_stream(s);
		return 0;
	}
	perfdata_bytes_append(&s->bytes, bytes, size, s->found.walked);
	if (!s->opened) {
		if (s->bytes.size < sizeof(struct perfdata_header))
			return 0;
		code = perfdata_scan_open(s);
		s->found.kind = !code && s->extent.data.offset == PERFDATA_PIPE_HEADER
					? PERFDATA_KIND_STREAM
					: PERFDATA_KIND_WHOLE;
	}
	s->end = s->bytes.size;
	return s->found.kind == PERFDATA_KIND_STREAM ? perfdata_scan_more(s) : 0;
}

const uint8_t *perfdata_scan_inflated(const struct perfdata_scan *s, size_t *size)
{
	return perfdata_zstd_new(s->zstd, size);
}

void perfdata_scan_clear(struct perfdata_scan *s)
{
	s->nr_refs = 0;
	perfdata_zstd_clear(s->zstd);
}
