/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --baseline: the profile of a recording or of a folder of --keep, which the rows are compared
 * with.
 *
 * The main thread, before the screen.
 */
#ifndef UI_CLI_BASELINE_FILE_H
#define UI_CLI_BASELINE_FILE_H

#include "sampler/sampler.h"

/*
 * Read the profile of @path, with the folder of files and the frames of @config. Blocks; SIGINT,
 * SIGTERM and SIGHUP end it. 0, or -errno with a sentence; *@out is the caller's.
 */
int baseline_file_read(struct profile **out, const char *path, const struct sampler_config *config,
		       struct err *e);

#endif
