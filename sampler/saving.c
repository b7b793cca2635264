// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of matches of a trap.
 *
 * Runs on: the builder; the writer of the recorder writes them.
 */
#include "sampler/saving.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/record/record.h"
#include "sampler/recording.h"

#define AFTER_NS 2000000000ULL

void saving_begin(const struct saving *s, const struct saving_config *config, struct recorder *r,
		  uint64_t end_ns, char *text, size_t size)
{
	time_t now = time(NULL);
	char stamp[32], path[PATH_MAX], *copy;
	struct tm tm;

	if (s->nr >= config->max_files) {
		snprintf(text, size, "not saved: %u of %u files are written (--save-files)", s->nr,
			 config->max_files);
		return;
	}
	/* A file has at most the records of the memory, and records of running processes. */
	if (s->bytes + config->memory > config->max_bytes) {
		snprintf(text, size,
			 "not saved: a file takes up to %llu MiB (--trap-memory), %llu of %llu MiB "
			 "are used (--save-size)",
			 (unsigned long long)config->memory >> 20,
			 (unsigned long long)s->bytes >> 20,
			 (unsigned long long)config->max_bytes >> 20);
		return;
	}
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	if (snprintf(path, sizeof(path), "%s/trap-%s.data", config->dir, stamp) >=
	    (int)sizeof(path))
		return;
	copy = strdup(path);
	if (!copy || recorder_save(r, copy, end_ns + AFTER_NS)) {
		free(copy);
		snprintf(text, size, "not saved: the match before is being saved");
		return;
	}
	snprintf(text, size, "saving to %.*s", (int)(size - sizeof("saving to ")), path);
}

bool saving_check(struct saving *s, struct recorder *r, char *text, size_t size)
{
	struct recorder_saved saved;
	struct err e;
	char unmapped[80], dropped[80] = "";

	if (!r || !recorder_saved(r, &saved, &e))
		return false;
	if (saved.bytes < 0) {
		snprintf(text, size, "%s", e.text);
		return true;
	}
	s->nr++;
	s->bytes += (uint64_t)saved.bytes;
	if (saved.unsaved)
		snprintf(dropped, sizeof(dropped),
			 "; %llu KiB of earlier records dropped: no memory",
			 (unsigned long long)(saved.unsaved + 1023) >> 10);
	snprintf(text, size, "saved %.1f MiB around the match%s%s", (double)saved.bytes / (1 << 20),
		 recording_unmapped(saved.nr_unmapped, unmapped), dropped);
	return true;
}
