/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check the findings of a recording's reader, and keep them.
 *
 * The reader may have been taken over by the recording: each number that look-ups or loops rely on
 * is checked here. Texts are foreign, as in the file. One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_ACCEPT_H
#define SAMPLER_FILE_PERFDATA_ACCEPT_H

#include <stddef.h>
#include <stdint.h>

struct cage_answer;
struct perfdata;
struct perfdata_found;

/* Read the totals of an answer. 0 or -EBADMSG. */
int perfdata_accept_found(const uint8_t *answer, size_t size, struct perfdata_found *found);
/* Replace the events and facts. 0 or -EBADMSG. */
int perfdata_accept_facts(struct perfdata *pd, const uint8_t *facts, size_t size);
/*
 * Add records and decompressed bytes, and take the totals. The events are there. The bytes of
 * @answer are taken over if some are kept. 0, -EBADMSG, or -EFBIG: too many are in memory.
 */
int perfdata_accept_answer(struct perfdata *pd, struct cage_answer *answer);

#endif
