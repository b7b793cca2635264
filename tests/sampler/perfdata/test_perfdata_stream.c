// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of a stream, byte by byte.
 */
#include "sampler/perfdata/perfdata_write.c"

#include "tests/prelude.h"

#include <sys/mman.h>
#include <unistd.h>

/* The size of tracing data is that of its bytes and their padding, as perf checks it. */
TEST(test_tracing_data)
{
	const char data[16] = "\27\10\104tracing";
	uint8_t bytes[PERFDATA_PIPE_HEADER + 16 + sizeof(data)] = { 0 };
	const uint8_t *record = bytes + PERFDATA_PIPE_HEADER;
	struct perf_event_header h;

	for (size_t size = 9; size <= sizeof(data); size++) {
		int fd = memfd_create("stream", MFD_CLOEXEC);
		struct perfdata_stream *s;
		uint32_t of_data;

		assert_int_equal(perfdata_stream_new(&s, fd, NULL), 0);
		assert_int_equal(perfdata_stream_tracing(s, data, size), 0);
		perfdata_stream_free(s);
		assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		assert_int_equal(lseek(fd, 0, SEEK_END), sizeof(bytes));
		memcpy(&h, record, sizeof(h));
		memcpy(&of_data, record + sizeof(h), sizeof(of_data));
		assert_int_equal(h.type, PERFDATA_TRACING_DATA);
		assert_int_equal(h.size, 16);
		assert_int_equal(of_data, sizeof(data));
		assert_memory_equal(record + 16, data, size);
		close(fd);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
