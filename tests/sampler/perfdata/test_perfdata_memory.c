// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of a recording: a kernel that forbids memfds that can be executed, or no memory at all.
 */
#include "sampler/perfdata/perfdata.c"

#include "tests/prelude.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

#define NOEXEC_SEAL 8U /* MFD_NOEXEC_SEAL of Linux 6.3 */
#define NR	    (1U << 20)

/* memfd_create(2) fails so; 0: as with vm.memfd_noexec=2. */
static int memfd_errno;

int memfd_create(const char *name, unsigned int flags)
{
	if (memfd_errno || !(flags & NOEXEC_SEAL)) {
		errno = memfd_errno ? memfd_errno : EACCES;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags & ~NOEXEC_SEAL);
}

TEST(test_memfd)
{
	struct perfdata_bytes b;

	memfd_errno = 0;
	assert_int_equal(perfdata_bytes_copy(&b, "x", 1), 0);
	assert_int_equal(*perfdata_bytes_at(&b, 0, 1), 'x');
	perfdata_bytes_close(&b);
	memfd_errno = EMFILE;
	assert_int_equal(perfdata_bytes_copy(&b, "x", 1), -EMFILE);
	perfdata_bytes_close(&b);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Records are sorted also without memory for it: none of them is lost. */
TEST(test_sort)
{
	struct perfdata_ref *refs = xcalloc(NR, sizeof(*refs));
	struct rlimit was, now;

	/* Pairs of a time, the later ones first. */
	for (uint32_t i = 0; i < NR; i++)
		refs[i] = (struct perfdata_ref){ .time_ns = (NR - i) / 2, .at = i };
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	now = (struct rlimit){ 4096, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
	perfdata_order_sort(refs, NR);
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
	for (uint32_t i = 1; i < NR; i++)
		if (refs[i].time_ns < refs[i - 1].time_ns ||
		    (refs[i].time_ns == refs[i - 1].time_ns && refs[i].at < refs[i - 1].at))
			fail_msg("record %u is before the one of an earlier time", i);
	free(refs);
}
#endif

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
