/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --script: keys from the command line, the screen on standard output. No
 * terminal is needed, and the same keys give the same screen from a replay.
 *
 * A script is text: each character is that key. Between < and > stand keys by
 * the names of the help page (<Enter>, <F6>, <^D>, <Space>, <lt>), and
 *   <tick>          wait for the next profile
 *   <size 100x30>   another size of the screen
 *   <click 3,10>    press the left button in line 3, cell 10 (from 0)
 * A '<' without a name behind it is the key '<'.
 *
 * Runs on: the main thread.
 */
#ifndef UI_SCRIPT_H
#define UI_SCRIPT_H

#include <stdio.h>

#include "ui/cli/config.h"
#include "ui/key/key.h"

enum script_kind { SCRIPT_END, SCRIPT_KEY, SCRIPT_TICK, SCRIPT_SIZE };

struct script_step {
	enum script_kind kind;
	struct key key;
	unsigned int rows, cols; /* SCRIPT_SIZE */
};

/* Return the next step and advance *@at. Bytes that are not UTF-8 are skipped. Pure. */
struct script_step script_next(const char **at);

/* Check the names of keys. 0, or -EINVAL with a message: one of them is not known. Pure. */
int script_check(const char *keys, struct err *e);

struct script_config {
	const char *keys;
	unsigned int rows, cols;
};

/*
 * Wait for the first profile, press the keys, and print the screen unless
 * they quit. Return 0, or -errno with a sentence. The main thread.
 */
int script_run(struct sampler *s, const struct ui_config *app, const struct script_config *config,
	       FILE *out, struct err *e);

#endif
