// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data from anywhere: header, events, records, and their decoding.
 * FUZZ: sampler
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata.h"
#include "sampler/file/perfdata_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef __SANITIZE_ADDRESS__
#define HAS_ASAN 1
#elif defined(__has_feature)
#define HAS_ASAN __has_feature(address_sanitizer)
#else
#define HAS_ASAN 0
#endif
#if HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)
#define ASAN_UNPOISON_MEMORY_REGION(at, size)
#endif

void *__wrap_xcalloc(size_t nr, size_t size);
void *__real_xcalloc(size_t nr, size_t size);
void __wrap_free(void *p);
void __real_free(void *p);

/*
 * One block for the recordings of all inputs: it is so large that ASan would map and unmap it and
 * its shadow each time, which took half of an input. While it is free it is poisoned; then only
 * the used part is set to zero.
 */
static struct perfdata *kept;
static bool kept_used;

static void check_zero(const void *p, size_t size)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			abort();
}

/* Events are added in order. */
static void clear(void)
{
	static uint32_t inputs;
	struct perfdata_events *t = &kept->events;
	uint8_t *rest = (uint8_t *)t->attrs;

	memset(t->events, 0, t->nr * sizeof(t->events[0]));
	memset(rest, 0, (size_t)((uint8_t *)(kept + 1) - rest));
	memset(kept, 0, offsetof(struct perfdata, events));
	if (++inputs % 1024 == 0)
		check_zero(kept, sizeof(*kept));
}

void *__wrap_xcalloc(size_t nr, size_t size)
{
	if (nr * size != sizeof(*kept) || kept_used)
		return __real_xcalloc(nr, size);
	if (!kept)
		kept = __real_xcalloc(1, sizeof(*kept));
	ASAN_UNPOISON_MEMORY_REGION(kept, sizeof(*kept));
	clear();
	kept_used = true;
	return kept;
}

void __wrap_free(void *p)
{
	if (!kept_used || p != kept) {
		__real_free(p);
		return;
	}
	kept_used = false;
	ASAN_POISON_MEMORY_REGION(kept, sizeof(*kept));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfdata *pd;

	if (kept_used)
		abort(); /* not closed by the last input */
	if (perfdata_from_memory(&pd, data, size, NULL))
		return 0;
	for (uint64_t i = 0; i < perfdata_nr_records(pd); i++) {
		const struct record_layout *layout;
		size_t record_size;
		const uint8_t *bytes = perfdata_record(pd, i, &record_size, &layout);
		struct record r;

		if (record_decode(&r, layout, bytes, record_size))
			continue;
		perfdata_event_of(pd, r.id);
		if (r.type == PERF_RECORD_MMAP || r.type == PERF_RECORD_MMAP2)
			perfdata_identify(pd, &r.mmap);
	}
	perfdata_close(pd);
	return 0;
}
