// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * debugfile: the CRC of large files, one after another and for a limited time.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"

struct summing {
	struct watch watch;
	uint64_t time_ns;
	int fd, rc;
	pthread_t thread;
};

#define SUMMED_SIZE (1ULL << 40)

static void *sum_large(void *arg)
{
	struct summing *s = arg;
	uint32_t crc;

	s->rc = debugfile_crc(s->fd, SUMMED_SIZE, &s->watch, s->time_ns, &crc);
	return NULL;
}

/* Begin a sum that would take minutes. */
static void begin_sum(struct summing *s, uint64_t time_ns)
{
	atomic_store(&s->watch.cancel, false);
	atomic_store(&s->watch.done, 0);
	s->time_ns = time_ns;
	assert_int_equal(pthread_create(&s->thread, NULL, sum_large, s), 0);
	for (int i = 0; i < 10000 && !atomic_load(&s->watch.done); i++)
		usleep(1000);
	assert_true(atomic_load(&s->watch.done));
}

static int cancel_sum(struct summing *s)
{
	atomic_store(&s->watch.cancel, true);
	pthread_join(s->thread, NULL);
	return s->rc;
}

/* Begin a sum, try the one of file @fd beside it, and cancel the first. */
static void begin_and_cancel(struct summing *s, int fd)
{
	uint32_t crc;

	begin_sum(s, DEBUGFILE_CRC_NS);
	assert_int_equal(debugfile_crc(fd, 9, NULL, DEBUGFILE_CRC_NS, &crc), -EAGAIN);
	assert_int_equal(cancel_sum(s), -ECANCELED);
}

/* Make a file with this text, which has no name; returns its descriptor. */
static int make_text(const char *text)
{
	char path[] = "/tmp/test_sources.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0 && !unlink(path));
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* Make a file of SUMMED_SIZE bytes; returns its descriptor. */
static int make_huge(void)
{
	int fd = memfd_create("large", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)SUMMED_SIZE), 0);
	return fd;
}

/* Large files are summed one after another, and a sum can be cancelled: then it is not known. */
TEST(test_sums)
{
	struct summing s = { .fd = make_huge() };
	int fd = make_text("123456789");
	uint32_t crc;

	begin_and_cancel(&s, fd);
	begin_and_cancel(&s, fd);
	assert_int_equal(debugfile_crc(fd, 9, NULL, DEBUGFILE_CRC_NS, &crc), 0);
	assert_int_equal(crc, 0xcbf43926);
	close(fd);
	close(s.fd);
}

/* A sum that takes too long is ended, and its file is not read again; others are summed then. */
TEST(test_sum_limit)
{
	const uint64_t ms = 1000000;
	struct summing s = { .fd = make_huge() };
	int fd = make_text("abcdefghi");
	struct watch watch = { 0 };
	uint32_t crc;

	(void)state;
	/* One that goes on, as if it did not look at the time, holds up others for as long. */
	begin_sum(&s, DEBUGFILE_CRC_NS);
	usleep(20000);
	assert_int_equal(debugfile_crc(fd, 9, NULL, 10 * ms, &crc), 0);
	assert_int_equal(cancel_sum(&s), -ECANCELED);
	begin_sum(&s, 1000 * ms);
	for (int i = 0; i < 10000 && debugfile_crc(s.fd, 1, NULL, DEBUGFILE_CRC_NS, &crc); i++)
		usleep(1000);
	assert_int_equal(cancel_sum(&s), -ETIME);
	assert_int_equal(debugfile_crc(s.fd, SUMMED_SIZE, &watch, DEBUGFILE_CRC_NS, &crc), -ETIME);
	assert_int_equal(atomic_load(&watch.done), 0);
	close(fd);
	close(s.fd);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
