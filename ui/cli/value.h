/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of settings: one check and one error for a value, whether it is of an option, a command, a
 * picker or the file of settings. Runs on: the main thread.
 *
 * @name is what the value was given to, as typed: "--ring", ":ring", "delay =". All return 0, or
 * -EINVAL with a message that begins with the name and the value; then the result is unchanged.
 */
#ifndef UI_CLI_VALUE_H
#define UI_CLI_VALUE_H

#include "sampler/sampler.h"

/* @max_hz: kernel.perf_event_max_sample_rate; 0: unknown. */
int value_hz(const char *name, const char *text, double max_hz, double *hz, struct err *e);
/* Seconds between two ticks. */
int value_delay(const char *name, const char *text, uint64_t *ns, struct err *e);
/* Seconds of the window. */
int value_window(const char *name, const char *text, uint64_t *ns, struct err *e);
/* The percentage below which rows are hidden. */
int value_limit(const char *name, const char *text, double *pct, struct err *e);
int value_ring(const char *name, const char *text, uint64_t *size, struct err *e);
/* "auto": the size is that of the start. */
int value_stack_size(const char *name, const char *text, uint32_t *size, bool *is_auto,
		     struct err *e);
/* "dwarf,32K": *size is the text of the size; else NULL. */
int value_call_graph(const char *name, const char *text, enum call_graph *mode, const char **size,
		     struct err *e);
int value_frames(const char *name, const char *text, enum profile_frames *frames, struct err *e);
/* enum theme */
int value_theme(const char *name, const char *text, int *theme, struct err *e);
/* As number_cpus() and number_pids(). */
int value_cpus(const char *name, const char *text, int **cpus, uint32_t *nr, struct err *e);
int value_pids(const char *name, const char *text, pid_t **pids, uint32_t *nr, struct err *e);
/* A number; an unknown name is of the caller. */
int value_uid(const char *name, const char *text, uid_t *uid, struct err *e);
bool value_is_uid(const char *text);
/* The expression of --name. */
int value_process_name(const char *name, const char *text, struct err *e);

#endif
