// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recordings of other writers: compressed, from pipes, damaged, cut short, and
 * files that are none.
 */
#include "tests/sampler/perfdata/from_memory.h"

#include "sampler/perfdata/perfdata_read.c"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <unistd.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#define FILE_SIZE (1 << 20)
#include "tests/makers/perfdata.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

#define HEADER_FEATURE 80
#define EVENT_UPDATE   78
#define COMPRESSED     81
#define COMPRESSED2    83

static struct file file;

static struct perfdata *t_open_file(const struct file *f)
{
	struct perfdata *pd;
	struct err e = { "" };

	if (perfdata_from_memory(&pd, f->bytes, f->size, &e))
		fail_msg("%s", e.text);
	return pd;
}

/* Expect @nr records and a note that has @note; "": none. */
static void expect(const struct file *f, uint64_t nr, const char *note)
{
	struct perfdata *pd = t_open_file(f);
	const char *got = perfdata_info(pd).found->note;

	assert_int_equal(perfdata_info(pd).nr_records, nr);
	if (!strstr(got, note) || (!*note && *got))
		fail_msg("no '%s' in: %s", note, got);
	perfdata_close(pd);
}

static void begin_pipe(struct file *f)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);

	put_pipe(f, &attr);
}

/* Records of unknown types, each of a few bytes, need no memory. */
TEST(test_unknown_types)
{
	struct perfdata *pd;
	struct err e;

	begin_pipe(&file);
	put_sample(&file, 7, 0x1000, 100, 1);
	for (uint32_t type = RECORD_CHAIN_DEFERRED + 1; type < 64; type++)
		put_header(&file, type, 8);
	put_comm(&file, 7, 100, "a", 2);
	put_sample(&file, 7, 0x1000, 100, 3);
	assert_int_equal(perfdata_from_memory(&pd, file.bytes, file.size, &e), 0);
	assert_int_equal(perfdata_info(pd).nr_records, 3);
	assert_string_equal(perfdata_info(pd).found->note, "");
	perfdata_close(pd);
}

#ifdef HAVE_ZSTD
/* Compressed blocks, one zstd stream over all of them. */
struct packer {
	ZSTD_CStream *stream;
	uint32_t type;
};

static void pack(struct packer *p, struct file *f, const void *bytes, size_t size)
{
	static uint8_t out[60000];
	ZSTD_inBuffer in = { bytes, size, 0 };
	ZSTD_outBuffer to = { out, sizeof(out), 0 };
	size_t padded;

	if (!p->stream)
		p->stream = ZSTD_createCStream();
	assert_false(ZSTD_isError(ZSTD_compressStream2(p->stream, &to, &in, ZSTD_e_flush)));
	assert_int_equal(in.pos, size);
	padded = p->type == COMPRESSED2 ? (to.pos + 7) / 8 * 8 + 8 : to.pos;
	put_header(f, p->type, (uint16_t)(8 + padded));
	if (p->type == COMPRESSED2)
		put_u64(f, to.pos);
	put(f, out, to.pos);
	if (p->type == COMPRESSED2)
		put(f, "\xff\xff\xff\xff\xff\xff\xff", padded - 8 - to.pos);
}

/*
 * Records fill the decompression buffer several times: the bytes in the decoder
 * when all input was taken are read also. Records go on in the next block.
 */
TEST(test_compressed)
{
	static const uint32_t types[] = { COMPRESSED, COMPRESSED2 };
	static struct file plain;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		for (size_t nr = 1; nr <= 16384; nr *= 2) {
			struct packer p = { .type = types[i] };
			size_t half;

			plain.size = 0;
			for (uint64_t k = 0; k < nr; k++)
				put_sample(&plain, 7, 0x1000, 100, k);
			half = plain.size / 2 + 13;
			begin_pipe(&file);
			pack(&p, &file, plain.bytes, half);
			pack(&p, &file, plain.bytes + half, plain.size - half);
			expect(&file, nr, "");
			ZSTD_freeCStream(p.stream);
		}
	}
}

/* More than the limit of all blocks is no damage. */
TEST(test_compressed_limit)
{
	static struct file plain;
	struct packer p = { .type = COMPRESSED };
	struct perfdata_zstd *z = NULL;
	const size_t head = sizeof(struct perf_event_header);

	plain.size = file.size = 0;
	for (uint64_t k = 0; k < 1000; k++)
		put_sample(&plain, 7, 0x1000, 100, k);
	pack(&p, &file, plain.bytes, plain.size);
	assert_int_equal(perfdata_zstd_add(&z, file.bytes + head, file.size - head, plain.size), 0);
	perfdata_zstd_free(z);
	z = NULL;
	assert_int_equal(perfdata_zstd_add(&z, file.bytes + head, file.size - head, plain.size - 1),
			 -EFBIG);
	perfdata_zstd_free(z);
	ZSTD_freeCStream(p.stream);
}

/* A compressed block in a compressed block would be unpacked again and again. */
TEST(test_nested)
{
	static const uint32_t types[] = { COMPRESSED, COMPRESSED2, 66, 71 };
	static struct file inner;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct packer p = { .type = COMPRESSED };

		inner.size = 0;
		put_sample(&inner, 7, 0x1000, 100, 1);
		put_header(&inner, types[i], 32);
		for (int k = 0; k < 3; k++)
			put_u64(&inner, 16);
		begin_pipe(&file);
		pack(&p, &file, inner.bytes, inner.size);
		expect(&file, 1, "damaged: record");
		ZSTD_freeCStream(p.stream);
	}
}

TEST(test_damaged_blocks)
{
	static uint8_t zeros[1 << 20];
	struct packer p = { .type = COMPRESSED2 };
	static struct file plain;

	/* no records in it */
	begin_pipe(&file);
	pack(&p, &file, zeros, 1000);
	expect(&file, 0, "damaged: record of 0 bytes");
	/* no zstd */
	plain.size = 0;
	put_sample(&plain, 7, 0x1000, 100, 1);
	begin_pipe(&file);
	put_sample(&file, 7, 0x1000, 100, 1);
	put_header(&file, COMPRESSED, 16);
	put_u64(&file, 0x1234567890);
	put_sample(&file, 7, 0x1000, 100, 1);
	expect(&file, 1, "damaged: a compressed block");
	/* larger than its record */
	begin_pipe(&file);
	put_header(&file, COMPRESSED2, 24);
	put_u64(&file, 9);
	put_u64(&file, 0);
	expect(&file, 0, "damaged: a compressed block");
	/* the last record is not all there */
	begin_pipe(&file);
	ZSTD_freeCStream(p.stream);
	p.stream = NULL;
	pack(&p, &file, plain.bytes, plain.size - 1);
	expect(&file, 0, "cut short");
	ZSTD_freeCStream(p.stream);
}
#endif

static void put_feature(struct file *f, uint64_t feature, const char *text)
{
	uint32_t size = (uint32_t)strlen(text) + 1, padded = (size + 3) / 8 * 8 + 8;
	char body[64] = "";

	memcpy(body, &size, 4);
	strcpy(body + 4, text);
	put_header(f, HEADER_FEATURE, (uint16_t)(16 + padded));
	put_u64(f, feature);
	put(f, body, padded);
}

static void put_name(struct file *f, uint64_t id, const char *name)
{
	char text[32] = "";

	snprintf(text, sizeof(text), "%s", name);
	put_header(f, EVENT_UPDATE, 8 + 16 + sizeof(text));
	put_u64(f, 2);
	put_u64(f, id);
	put(f, text, sizeof(text));
}

/* A pipe has its header's features as records. */
TEST(test_pipe_features)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	const uint32_t desc[4] = { 1, sizeof(attr), 0, 16 };
	struct perfdata *pd;

	begin_pipe(&file);
	put_feature(&file, 4, "4.19.0-other");
	put_feature(&file, 6, "riscv64");
	put_header(&file, HEADER_FEATURE, 8 + 8 + 8 + sizeof(attr) + 8 + 16);
	put_u64(&file, 12);
	put(&file, desc, 8);
	put(&file, &attr, sizeof(attr));
	put(&file, desc + 2, 8);
	put(&file, "my-clock:u\0\0\0\0\0", 16);
	put_header(&file, HEADER_FEATURE, 8); /* nothing in it */
	put_header(&file, HEADER_FEATURE, 16);
	put_u64(&file, 12);
	pd = t_open_file(&file);
	assert_string_equal(perfdata_info(pd).kernel->release, "4.19.0-other");
	assert_string_equal(perfdata_info(pd).machine, "riscv64");
	assert_string_equal(perfdata_event(pd, 0)->event.name, "my-clock:u");
	perfdata_close(pd);
	put_name(&file, 8, "sched:sched_switch");
	put_header(&file, EVENT_UPDATE, 24);
	put_u64(&file, 2);
	put_u64(&file, 8);
	pd = t_open_file(&file);
	assert_string_equal(perfdata_event(pd, 0)->event.name, "sched:sched_switch");
	perfdata_close(pd);
}

/* A file of one event and @nr samples. */
static void make_file(struct file *f, uint64_t nr)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	const uint64_t attrs_at = 104 + 8, entry = sizeof(attr) + 16, data_at = attrs_at + entry;

	f->size = 0;
	put(f, "PERFILE2", 8);
	put_u64(f, 104);
	put_u64(f, entry);
	put_u64(f, attrs_at);
	put_u64(f, entry);
	put_u64(f, data_at);
	put_u64(f, nr * 48);
	for (int i = 0; i < 6; i++)
		put_u64(f, 0);
	put_u64(f, 7);
	put(f, &attr, sizeof(attr));
	put_u64(f, 104);
	put_u64(f, 8);
	for (uint64_t i = 0; i < nr; i++)
		put_sample(f, 7, 0x1000, 100, i);
}

/* All samples are there; of the facts behind them, the sections or their contents are cut off. */
TEST(test_cut_facts)
{
	const uint64_t features[4] = { 1 << 4 };
	const char release[] = "\x0c\0\0\0"
			       "1.2.3-other";
	struct perfdata *pd;
	uint64_t section[2];

	make_file(&file, 3);
	memcpy(file.bytes + 72, features, sizeof(features));
	section[0] = file.size + sizeof(section);
	section[1] = sizeof(release);
	put(&file, section, sizeof(section));
	put(&file, release, sizeof(release));
	pd = t_open_file(&file);
	assert_string_equal(perfdata_info(pd).found->note, "");
	assert_string_equal(perfdata_info(pd).kernel->release, "1.2.3-other");
	perfdata_close(pd);
	for (size_t cut = 1; cut <= sizeof(section) + sizeof(release); cut++) {
		file.size--;
		expect(&file, 3, "not the facts behind them");
	}
}

/* The file is read as far as it goes, and the note says so. */
TEST(test_cut_short)
{
	const uint64_t nr = 20, data_at = 104 + 8 + sizeof(struct perf_event_attr) + 16;
	struct perfdata *pd;
	struct err e;

	make_file(&file, nr);
	expect(&file, nr, "");
	for (uint64_t i = 1; i < nr; i++) {
		file.size = data_at + 48 * i;
		expect(&file, i, "bytes are missing");
		file.size -= 1 + i;
		expect(&file, i - 1, "bytes are missing");
	}
	file.size = data_at - 1;
	assert_int_equal(perfdata_from_memory(&pd, file.bytes, file.size, &e), -EINVAL);
	assert_non_null(strstr(e.text, "header is damaged or cut short"));
	make_file(&file, nr);
	memset(file.bytes + 48, 0, 8);
	expect(&file, nr, "not finished");
	begin_pipe(&file);
	put_sample(&file, 7, 0x1000, 100, 1);
	expect(&file, 1, "");
	put_sample(&file, 7, 0x1000, 100, 2);
	for (int i = 0; i < 47; i++) {
		file.size--;
		expect(&file, 1, "ends in the middle of a record");
	}
	begin_pipe(&file);
	put_sample(&file, 7, 0x1000, 100, 1);
	put_u64(&file, 0);
	put_sample(&file, 7, 0x1000, 100, 1);
	expect(&file, 1, "damaged: record of 0 bytes at byte");
}

/* Traces of hardware are skipped, and the note says so. */
TEST(test_aux)
{
	begin_pipe(&file);
	put_header(&file, 71, 48);
	put_u64(&file, 16); /* bytes behind the record */
	for (int i = 0; i < 6; i++)
		put_u64(&file, 0);
	put_sample(&file, 7, 0x1000, 100, 1);
	expect(&file, 1, "AUX traces");
}

static void refuse(const char *bytes, size_t size, const char *says)
{
	struct perfdata *pd;
	struct err e = { "" };

	assert_int_equal(perfdata_from_memory(&pd, bytes, size, &e), -EINVAL);
	if (!strstr(e.text, says))
		fail_msg("no '%s' in: %s", says, e.text);
}

TEST(test_other_files)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct perfdata *pd;
	struct err e = { "" };

	refuse("", 0, "empty file");
	refuse("{\"a\":1}", 7, "not a perf.data file");
	refuse("PERFFILE\x20", 9, "before Linux 3.0");
	refuse("2ELIFREP\x20", 9, "other byte order");
	refuse("\x1f\x8b\x08\0\0\0\0\0", 8, "gzip -dc");
	refuse("\x28\xb5\x2f\xfd\0\0\0\0", 8, "zstd -dc");
	refuse("PERFILE2\x10\0\0\0\0\0\0\0", 16, "header is damaged or cut short");
	assert_int_equal(perfdata_open_step(&pd, "/tmp", NULL, &e), -EISDIR);
	assert_non_null(strstr(e.text, "/tmp: a directory"));
	begin_pipe(&file);
	for (int i = 0; i < 256; i++) {
		put_header(&file, 64, 8 + sizeof(attr));
		put(&file, &attr, sizeof(attr));
	}
	assert_int_equal(perfdata_from_memory(&pd, file.bytes, file.size, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 256 events"));
}

/* How many samples each event has: by an id at the front, or behind other fields. */
TEST(test_samples_by_event)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct perfdata *pd;

	begin_pipe(&file);
	put_header(&file, 64, 8 + sizeof(attr) + 8);
	put(&file, &attr, sizeof(attr));
	put_u64(&file, 9);
	for (int i = 0; i < 5; i++)
		put_sample(&file, i < 2 ? 7 : 9, 0x1000, 100, 1);
	pd = t_open_file(&file);
	assert_int_equal(perfdata_event(pd, 0)->nr_samples, 2);
	assert_int_equal(perfdata_event(pd, 1)->nr_samples, 3);
	perfdata_close(pd);
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID;
	put_pipe(&file, &attr);
	put_header(&file, 64, 8 + sizeof(attr) + 8);
	put(&file, &attr, sizeof(attr));
	put_u64(&file, 9);
	for (int i = 0; i < 5; i++) {
		put_header(&file, PERF_RECORD_SAMPLE, 8 + 4 * 8);
		for (int k = 0; k < 3; k++)
			put_u64(&file, 1);
		put_u64(&file, i < 1 ? 8 : 9);
	}
	pd = t_open_file(&file);
	assert_int_equal(perfdata_event(pd, 0)->nr_samples, 1);
	assert_int_equal(perfdata_event(pd, 1)->nr_samples, 4);
	perfdata_close(pd);
}

/* A file whose events are in front of the records, and again behind these, is cut short. */
TEST(test_cut_before_events)
{
	const uint64_t nr = 20, entry = sizeof(struct perf_event_attr) + 16;
	const uint64_t data_at = 104 + 8 + entry, end = data_at + 48 * nr;

	make_file(&file, nr);
	memcpy(file.bytes + 24, &end, sizeof(end)); /* attrs.offset */
	put(&file, file.bytes + 104 + 8, entry);
	expect(&file, nr, "");
	for (uint64_t i = 1; i < nr; i++) {
		file.size = data_at + 48 * i;
		expect(&file, i, "bytes are missing");
	}
	file.size = end + 1;
	expect(&file, nr, "");
}

static int nr_steps;

/* Let the data through, then stop; the pipe is still open. */
static enum file_reading stop_later(uint64_t bytes)
{
	return ++nr_steps > 2 && bytes ? FILE_READING_STOP : FILE_READING_GO;
}

/* Wait for no more data than is in the pipe. */
static enum file_reading drain(uint64_t bytes)
{
	nr_steps++;
	return FILE_READING_DRAIN;
}

static enum file_reading cancel(uint64_t bytes)
{
	return FILE_READING_CANCEL;
}

/* A pipe that stays open is read as far as wanted, and the note says so. */
TEST(test_open_pipe)
{
	static const file_reading_fn fns[] = { stop_later, drain };
	struct perfdata *pd;
	struct err e = { "" };
	char path[64];
	int fds[2];

	begin_pipe(&file);
	for (uint64_t i = 0; i < 20; i++)
		put_sample(&file, 7, 0x1000, 100, i);
	assert_int_equal(pipe(fds), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	for (size_t i = 0; i < ARRAY_SIZE(fns); i++) {
		nr_steps = 0;
		assert_int_equal(write(fds[1], file.bytes, file.size), file.size);
		if (perfdata_open_step(&pd, path, fns[i], &e))
			fail_msg("%s", e.text);
		assert_int_equal(perfdata_info(pd).nr_records, 20);
		assert_non_null(strstr(perfdata_info(pd).found->note, "stopped while it was "
								      "read"));
		assert_true(nr_steps >= 2);
		perfdata_close(pd);
	}
	assert_int_equal(perfdata_open_step(&pd, path, cancel, &e), -ECANCELED);
	/* read to its end: no note of that */
	assert_int_equal(write(fds[1], file.bytes, file.size), file.size);
	close(fds[1]);
	assert_int_equal(perfdata_open_step(&pd, path, drain, &e), 0);
	assert_int_equal(perfdata_info(pd).nr_records, 20);
	assert_string_equal(perfdata_info(pd).found->note, "");
	perfdata_close(pd);
	close(fds[0]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
