/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waits at high rates of switches: a record of each switch costs the program half a microsecond,
 * one of each wake-up a whole one. Then wake-ups are not recorded, and switches of whole CPUs in
 * short windows only. The kernel counts the times of the tasks.
 *
 * Threads: the builder.
 */
#ifndef SAMPLER_SWITCH_WINDOWS_H
#define SAMPLER_SWITCH_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

struct sampler;

/* Waits begin: record all switches. */
void windows_begin(struct sampler *s);
/* Before a tick is counted: read the times of the tasks. Return the time with switches recorded. */
uint64_t windows_read(struct sampler *s, uint64_t now_ns, uint64_t tick_ns);
/*
 * After a tick with @rate switches a second of each CPU: begin, go on or end. Return true if all
 * switches are recorded again: the tasks are to be found again.
 */
bool windows_govern(struct sampler *s, double rate);
/* While waits are measured: return when windows_turn() is due; UINT64_MAX: never. */
uint64_t windows_due(const struct sampler *s);
/* Open or close a window; without windows look at the rate, and begin where it is high. */
void windows_turn(struct sampler *s);
/* Have the sampler threads read their rings up to @now_ns, which takes a moment. */
void windows_read_rings(struct sampler *s, uint64_t now_ns);

#endif
