/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the task and the frames of one sample, for a pipeline. Threads as in pipeline.h.
 */
#ifndef SAMPLER_PIPELINE_PIPELINE_FRAMES_H
#define SAMPLER_PIPELINE_PIPELINE_FRAMES_H

#include "sampler/file/lang_record.h"
#include "sampler/pipeline/pipeline_types.h"

struct pipeline;

/*
 * Find the task and the stack of @s; @regs_mask as in the record's layout. The first half of
 * pipeline_sample().
 */
void pipeline_resolve(struct pipeline *p, const struct record_sample *s, uint64_t regs_mask);
/*
 * Get the result of pipeline_resolve(); borrowed until the next sample. Live, it may have no frame:
 * the process is not read yet.
 */
void pipeline_stack(struct pipeline *p, struct pipeline_stack *out);
/*
 * Get the places of both ends of branch @index of @s, which was resolved last;
 * pipeline_take_asked() as after pipeline_resolve().
 */
struct pipeline_branch pipeline_branch(struct pipeline *p, const struct record_sample *s,
				       uint32_t index);
/*
 * Live: get the frames of the sample that was resolved last, @s, for a recording. False: it is
 * of no interpreter.
 */
bool pipeline_get_frames(const struct pipeline *p, const struct record_sample *s,
			 struct lang_frames *out);

#endif
