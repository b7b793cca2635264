// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as a segment of --keep: as they are, and with all checksums made right, so that the records
 * themselves are reached. Slices must be in order, add up, and be the same when they are packed
 * again.
 * FUZZ: sampler
 */
#include "sampler/keep.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "sampler/event/event.h"
#include "sampler/count/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;

static void touch(struct keepfile_text t)
{
	for (size_t i = 0; i < t.size; i++)
		sum += (uint8_t)t.str[i];
}

static void t_on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	if (nr > EVENTS_MAX)
		abort();
	for (uint32_t i = 0; i < nr; i++)
		touch(events[i].name);
}

static void t_on_function(void *ctx, const struct keepfile_function *f)
{
	touch(f->name);
	touch(f->module);
}

static void t_on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		sum += functions[i];
}

static void t_on_interpreter(void *ctx, struct keepfile_text module)
{
	touch(module);
}

static void t_on_task(void *ctx, const struct keepfile_task *t)
{
	touch(t->comm);
	touch(t->process_comm);
}

static void t_on_slice(void *ctx, const struct slice *slice)
{
	struct count *counts = malloc((slice->nr + 1ULL) * sizeof(*counts));
	struct slice packed = { .nr = 0 };
	struct slice_reader r;
	uint64_t count = 0;
	uint32_t nr = 0;

	for (slice_read_begin(&r, slice); nr <= slice->nr && slice_read(&r, &counts[nr]); nr++)
		count += counts[nr].count;
	if (nr != slice->nr || count != slice->count || slice->end_ns <= slice->begin_ns ||
	    count > SLICE_COUNT_MAX)
		abort();
	if (slice_pack(&packed, counts, nr) || packed.nr != nr || packed.count != count ||
	    slice_check(packed.bytes, packed.size, nr, &count) != nr || count != slice->count)
		abort();
	free(packed.bytes);
	free(counts);
}

static void run(const uint8_t *data, size_t size)
{
	const struct keepfile_reader r = { t_on_events, t_on_function, t_on_stack, t_on_interpreter,
					   t_on_task,	t_on_slice,    NULL,	   NULL };
	int64_t read = keepfile_read(data, size, &r);

	if (read > (int64_t)size)
		abort();
}

/* The input is a list of payloads: size, type, bytes; each becomes a record. */
static void run_records(const uint8_t *data, size_t size)
{
	struct keepfile_out out = { .bytes = NULL };

	keepfile_header(&out);
	while (size >= 3) {
		size_t length = MIN((size_t)(data[0] | data[1] << 8), size - 3);

		begin(&out, data[2]);
		put_bytes(&out, data + 3, length);
		end(&out);
		data += 3 + length;
		size -= 3 + length;
	}
	if (!out.failed)
		run(out.bytes, out.size);
	keepfile_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run(data, size);
	run_records(data, size);
	return 0;
}
