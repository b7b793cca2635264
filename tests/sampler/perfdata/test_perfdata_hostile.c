// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording with a reader that was taken over by it: each answer is refused, or harmless.
 */
/* The readers of this test, not the ones of perfdata_read.c. */
#define perfdata_readers test_readers

#include "tests/sampler/perfdata/from_memory.h"

#include "tests/prelude.h"

#include <errno.h>
#include <malloc.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "symbols/sandbox/sandbox.h"

#include "tests/makers/perfdata.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

/* The answer to call @nr for records, from 0 on. */
static void (*reader)(struct sandbox_call *c, unsigned int nr);
static unsigned int nr_calls;
static uint32_t nr_events, nr_ids;

static void answer(struct sandbox_call *c, const void *inflated, size_t size,
		   const struct perfdata_ref *refs, uint64_t nr, struct perfdata_found found)
{
	const struct perfdata_answer a = { .inflated = size, .nr_refs = nr, .found = found };

	if (size)
		sandbox_put(&c->reply, inflated, size);
	if (nr)
		sandbox_put(&c->reply, refs, nr * sizeof(*refs));
	sandbox_put(&c->reply, &a, sizeof(a));
}

static void put_facts(struct sandbox_call *c)
{
	const struct perfdata_facts f = { .nr_events = nr_events, .nr_ids = nr_ids };
	const struct perfdata_id id = { .id = 1 };
	const struct perfdata_fact_event ev = { .attr = attr_of(PERF_COUNT_SW_CPU_CLOCK) };

	sandbox_put(&c->reply, &f, sizeof(f));
	for (uint32_t i = 0; i < nr_events; i++)
		sandbox_put(&c->reply, &ev, sizeof(ev));
	for (uint32_t i = 0; i < nr_ids; i++)
		sandbox_put(&c->reply, &id, sizeof(id));
}

static int serve(struct sandbox_call *c)
{
	const struct perfdata_request *r = c->request;

	if (r->call == PERFDATA_FACTS)
		put_facts(c);
	else if (r->call == PERFDATA_FEED || r->call == PERFDATA_MORE)
		reader(c, nr_calls++);
	return 0;
}

/* Without a sandbox they run in this thread. */
#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = SANDBOX_RECORDING + (nr), .name = "test", .serve = serve,                  \
		.reply_max = 1UL << 30                                                             \
	}
const struct sandbox_reader perfdata_readers[PERFDATA_READERS] = { READER(0), READER(1), READER(2),
								   READER(3) };

static void begin(void (*fn)(struct sandbox_call *c, unsigned int nr))
{
	reader = fn;
	nr_calls = 0;
	nr_events = 1;
	nr_ids = 0;
}

static enum file_reading go_on(uint64_t bytes)
{
	return FILE_READING_GO;
}

/* Open a stream at standard input; returns the end to write to. */
static int open_stream(struct perfdata **pd)
{
	int fds[2], was = dup(STDIN_FILENO);
	struct err e = { "" };

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
	assert_int_equal(write(fds[1], "PERFILE2", 8), 8);
	if (perfdata_open_stream(pd, "-", go_on, &e))
		fail_msg("%s", e.text);
	assert_int_equal(dup2(was, STDIN_FILENO), STDIN_FILENO);
	close(was);
	return fds[1];
}

static struct perfdata_found stream_found(void)
{
	return (struct perfdata_found){
		.done = 1, .begun = 1, .kind = PERFDATA_KIND_STREAM, .version = 1
	};
}

/* Records in decompressed bytes, the last one behind their end. */
static void refused_part(struct sandbox_call *c, unsigned int nr)
{
	static const uint8_t inflated[100];
	const struct perfdata_ref refs[] = { { .at = 0, .size = 64, .inflated = 1 },
					     { .at = 64, .size = 64, .inflated = 1 } };

	answer(c, inflated, nr ? sizeof(inflated) : 0, refs, nr ? ARRAY_SIZE(refs) : 0,
	       stream_found());
}

/* Of an answer that is refused nothing is taken, also in a stream, which goes on. */
TEST(test_refused_in_stream)
{
	struct perfdata *pd;
	int fd;

	begin(refused_part);
	fd = open_stream(&pd);
	assert_int_equal(write(fd, "12345678", 8), 8);
	assert_false(perfdata_more(pd, false));
	assert_string_equal(perfdata_info(pd).found->note, "reading stopped: its reader failed: a "
							   "damaged "
							   "file, or out of memory");
	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *layout;
		size_t size;

		assert_non_null(perfdata_record(pd, i, &size, &layout));
	}
	assert_int_equal(perfdata_info(pd).nr_records, 0);
	perfdata_close(pd);
	close(fd);
}

/* A record in decompressed bytes that are not there has no bytes. */
TEST(test_no_bytes)
{
	static uint8_t bytes[64];
	struct perfdata_chunk chunk = { .at = 100, .size = sizeof(bytes), .bytes = bytes };
	struct perfdata_event event = { .nr_samples = 0 };
	struct perfdata_ref refs[] = { { .at = 0, .size = 8, .inflated = 1 },
				       { .at = 160, .size = 8, .inflated = 1 },
				       { .at = 156, .size = 8, .inflated = 1 } };
	struct perfdata pd = { .chunks = &chunk,
			       .nr_chunks = 1,
			       .events = { .events = &event, .nr = 1 },
			       .refs = refs,
			       .nr_refs = ARRAY_SIZE(refs) };
	const struct record_layout *layout;
	size_t size;

	assert_null(perfdata_record(&pd, 0, &size, &layout));
	assert_null(perfdata_record(&pd, 1, &size, &layout));
	assert_ptr_equal(perfdata_record(&pd, 2, &size, &layout), bytes + 56);
}

/* Open a file with this reader. */
static int open_file(struct perfdata **pd, void (*fn)(struct sandbox_call *c, unsigned int nr))
{
	static uint8_t bytes[65536];
	struct err e;

	begin(fn);
	return perfdata_from_memory(pd, bytes, sizeof(bytes), &e);
}

/* There is more, always: a few bytes in each answer. */
static void small_parts(struct sandbox_call *c, unsigned int nr)
{
	answer(c, NULL, 0, NULL, 0, (struct perfdata_found){ .version = 1, .walked = 8 + 8 * nr });
}

/* Facts of an earlier version. */
static void earlier_facts(struct sandbox_call *c, unsigned int nr)
{
	struct perfdata_found found = stream_found();

	found.version = 9 - nr;
	answer(c, NULL, 0, NULL, 0, found);
}

TEST(test_small_parts)
{
	struct perfdata *pd;
	int fd;

	assert_int_equal(open_file(&pd, small_parts), -EBADMSG);
	assert_in_range(nr_calls, 1, 2);
	begin(earlier_facts);
	fd = open_stream(&pd);
	assert_int_equal(write(fd, "12345678", 8), 8);
	assert_false(perfdata_more(pd, false));
	assert_int_equal(pd->version, 9);
	perfdata_close(pd);
	close(fd);
}

/* More decompressed bytes than a file of 64 KiB can have. */
static void much_inflated(struct sandbox_call *c, unsigned int nr)
{
	const size_t size = 140UL << 20;
	uint8_t *bytes = xcalloc(1, size);

	answer(c, bytes, size, NULL, 0, (struct perfdata_found){ .version = 1, .done = 1 });
	free(bytes);
}

/* A few such bytes with many records. */
static void many_records(struct sandbox_call *c, unsigned int nr)
{
	static struct perfdata_ref refs[20000];
	static const uint8_t bytes[ARRAY_SIZE(refs) * 8];

	for (size_t i = 0; i < ARRAY_SIZE(refs); i++)
		refs[i] = (struct perfdata_ref){ .at = 8 * i, .size = 8, .inflated = 1 };
	answer(c, bytes, sizeof(bytes), refs, ARRAY_SIZE(refs),
	       (struct perfdata_found){ .version = 1, .done = 1 });
}

TEST(test_inflated)
{
	struct perfdata *pd;

	assert_int_equal(open_file(&pd, much_inflated), -EBADMSG);
	/* Of an answer these bytes are kept alone. */
	assert_int_equal(open_file(&pd, many_records), 0);
	assert_int_equal(pd->nr_chunks, 1);
	assert_in_range(malloc_usable_size(pd->chunks[0].bytes), 160000, 200000);
	perfdata_close(pd);
}

static void no_records(struct sandbox_call *c, unsigned int nr)
{
	answer(c, NULL, 0, NULL, 0, (struct perfdata_found){ .version = 1, .done = 1 });
}

/* More ids than the reader takes. */
static void many_ids(struct sandbox_call *c, unsigned int nr)
{
	nr_ids = PERFDATA_IDS_MAX + 1;
	no_records(c, nr);
}

TEST(test_facts)
{
	struct perfdata *pd;

	assert_int_equal(open_file(&pd, no_records), 0);
	perfdata_close(pd);
	assert_int_equal(open_file(&pd, many_ids), -EBADMSG);
}

/* Two records in the same bytes. */
static void overlapping(struct sandbox_call *c, unsigned int nr)
{
	const struct perfdata_ref refs[] = { { .at = 64, .size = 64 }, { .at = 120, .size = 64 } };

	answer(c, NULL, 0, refs, ARRAY_SIZE(refs),
	       (struct perfdata_found){ .version = 1, .done = 1, .walked = 1024 });
}

/* A record of the part before. */
static void earlier(struct sandbox_call *c, unsigned int nr)
{
	const struct perfdata_ref ref = { .at = 0, .size = 8 };
	struct perfdata_found found = stream_found();

	found.walked = 8 + 8 * nr;
	answer(c, NULL, 0, &ref, nr, found);
}

/* Records are in the order of their bytes, each once. */
TEST(test_overlapping)
{
	struct perfdata *pd;
	int fd;

	assert_int_equal(open_file(&pd, overlapping), -EBADMSG);
	begin(earlier);
	fd = open_stream(&pd);
	assert_int_equal(write(fd, "12345678", 8), 8);
	perfdata_more(pd, false);
	assert_int_equal(pd->nr_refs, 0);
	perfdata_close(pd);
	close(fd);
}

/* A compressed record for each second, behind the end of a round. */
static void compressed_rounds(struct sandbox_call *c, unsigned int nr)
{
	static const uint8_t inflated[1000];
	const struct perfdata_ref ref = {
		.time_ns = nr * 1000, .at = nr * sizeof(inflated), .size = 64, .inflated = 1
	};
	struct perfdata_found found = stream_found();

	found.walked = 8 + 8 * nr;
	found.max_ns = nr * 1000;
	found.flush_ns = nr > 1 ? (nr - 2) * 1000 : 0;
	answer(c, inflated, sizeof(inflated), &ref, 1, found);
}

/* Decompressed bytes of a stream are freed with their records; the limit is for the others. */
TEST(test_compressed_stream)
{
	const struct record_layout *layout;
	struct perfdata *pd;
	uint64_t nr = 0;
	size_t size;
	int fd;

	begin(compressed_rounds);
	fd = open_stream(&pd);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(write(fd, "12345678", 8), 8);
		assert_true(perfdata_more(pd, false));
		for (uint64_t k = 0; k < perfdata_info(pd).nr_records; k++)
			assert_non_null(perfdata_record(pd, k, &size, &layout));
		nr += perfdata_info(pd).nr_records;
		perfdata_drop(pd);
		assert_in_range(pd->nr_chunks, 1, 3);
	}
	assert_in_range(nr, 97, 99);
	assert_int_equal(pd->kept, 1000 * pd->nr_chunks);
	pd->kept = PERFDATA_ZSTD_MAX;
	assert_int_equal(write(fd, "12345678", 8), 8);
	assert_false(perfdata_more(pd, false));
	assert_string_equal(perfdata_info(pd).found->note, "reading stopped: its records need "
							   "more than "
							   "8 GiB "
							   "of memory");
	perfdata_close(pd);
	close(fd);
}

/* A number of records that needs more than 8 GiB of memory is refused. */
TEST(test_much_memory)
{
	struct {
		struct perfdata_ref ref;
		struct perfdata_answer answer;
	} bytes = { .ref = { .size = 8 }, .answer = { .nr_refs = 1, .found = { .walked = 1024 } } };
	struct sandbox_answer a = { .bytes = (uint8_t *)&bytes, .size = sizeof(bytes) };
	struct perfdata_event event = { .nr_samples = 0 };
	struct perfdata pd = { .bytes = { .size = 1ULL << 40, .pipe = -1 },
			       .events = { .events = &event, .nr = 1 },
			       .nr_refs = PERFDATA_MEMORY_MAX / sizeof(bytes.ref),
			       .room_refs = PERFDATA_MEMORY_MAX / sizeof(bytes.ref) };

	assert_int_equal(perfdata_accept_answer(&pd, &a), -EFBIG);
	pd.nr_refs = pd.room_refs = 0;
	assert_int_equal(perfdata_accept_answer(&pd, &a), 0);
	free(pd.refs);
}

static void done_at_once(struct sandbox_call *c, unsigned int nr)
{
	nr_events = 0;
	answer(c, NULL, 0, NULL, 0, (struct perfdata_found){ .done = 1 });
}

/* A recording without events is refused, whatever its reader says. */
TEST(test_no_events)
{
	struct perfdata *pd;

	assert_int_equal(open_file(&pd, done_at_once), -EINVAL);
}

/* Records at falling times, and an end of a round behind each third. */
static void falling(struct sandbox_call *c, unsigned int nr)
{
	const struct perfdata_ref ref = { .time_ns = 1000 - nr, .at = 8 * nr, .size = 8 };
	struct perfdata_found found = stream_found();

	found.walked = 8 + 8 * nr;
	found.max_ns = 2000 + nr;
	found.flush_ns = nr / 3 * 1000;
	answer(c, NULL, 0, &ref, 1, found);
}

/* A stream is sorted at the end of a round only: else each read costs as much as all records. */
TEST(test_rounds)
{
	struct perfdata *pd;
	int fd;

	begin(falling);
	fd = open_stream(&pd);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(write(fd, "12345678", 8), 8);
		assert_true(perfdata_more(pd, false));
		assert_int_equal(perfdata_info(pd).nr_records, 0);
		perfdata_drop(pd);
	}
	assert_int_equal(pd->nr_refs, 3);
	assert_true(pd->refs[0].time_ns > pd->refs[2].time_ns);
	assert_int_equal(write(fd, "12345678", 8), 8);
	assert_true(perfdata_more(pd, false));
	assert_int_equal(perfdata_info(pd).nr_records, 4);
	assert_true(pd->refs[0].time_ns < pd->refs[2].time_ns);
	perfdata_drop(pd);
	/* The writer is slow. */
	assert_int_equal(write(fd, "12345678", 8), 8);
	assert_true(perfdata_more(pd, false));
	assert_int_equal(perfdata_info(pd).nr_records, 0);
	assert_true(perfdata_more(pd, true));
	assert_int_equal(perfdata_info(pd).nr_records, 1);
	perfdata_close(pd);
	close(fd);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
