/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes that need the events opened again. A message reports how each went; a refusal leaves
 * everything as it was.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_REOPEN_H
#define SAMPLER_REOPEN_H

#include "sampler/config.h"

struct sampler;

/* @why: text before the message; "": it was requested. */
void reopen_stack(struct sampler *s, size_t size, const char *why);
void reopen_call_graph(struct sampler *s, enum call_graph mode);
void reopen_ring(struct sampler *s, size_t size);
/* @spec is taken over. */
void reopen_target(struct sampler *s, struct sampler_target_spec *spec);
/* Sample the CPUs of @cpus, which is taken over. */
void reopen_cpus(struct sampler *s, struct sampler_target_spec *cpus);
/* Sample process @pid alone, at a higher rate and with larger stack copies. 0: as before. */
void reopen_focus(struct sampler *s, pid_t pid);
/* Each second: sample a CPU that is online again, was offline for a moment, or is new. */
void reopen_check_cpus(struct sampler *s, uint64_t now_ns);

#endif
