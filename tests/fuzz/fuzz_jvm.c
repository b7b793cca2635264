// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as the result of the reader of a JVM: refused, or its table of code, names and chains are
 * within their limits. Input: a byte (bit 0: of a scan), the result.
 * FUZZ: symbols
 */
#include "symbols/java/java_sandbox.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sandbox/sandbox.h"
#include "tests/fuzz/require.h"
#include "tests/jvm_sane.h"
#include "symbols/elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Make a JVM with two known blobs, the second one without a name. */
static struct jvm_read_job *make(bool scan)
{
	struct jvm_read_job *j = jvm_read_job_new(1, jvm_read_sandbox_run);
	const struct jvm_read_blob known[] = {
		{ .blob = 0x1000,
		  .start = 0x1040,
		  .end = 0x1100,
		  .method = 7,
		  .compile_id = 1,
		  .kind = JVM_READ_COMPILED },
		{ .blob = 0x2000, .start = 0x2040, .end = 0x2100, .kind = JVM_READ_STUB },
	};

	REQUIRE(j);
	j->scan = scan;
	j->vm.blobs = calloc(2, sizeof(*j->vm.blobs));
	memcpy(j->vm.blobs, known, sizeof(known));
	j->vm.blobs[0].name = strdup("pkg.Class.get");
	j->vm.blobs[0].name_size = 13;
	j->vm.nr_blobs = 2;
	jvm_read_blobs_count(&j->vm, 0);
	j->methods = calloc(2, sizeof(*j->methods));
	j->nr_methods = 2;
	j->chains = calloc(2, sizeof(*j->chains));
	j->nr_chains = 2;
	return j;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sandbox_answer a = { .size = size ? size - 1 : 0 };
	struct jvm_read_job *j;

	if (!size)
		return 0;
	j = make(data[0] & 1);
	a.bytes = malloc(a.size + 1);
	memcpy(a.bytes, data + 1, a.size);
	jvm_read_sandbox_take(j, &a, 1000);
	REQUIRE(jvm_is_sane(j));
	sandbox_answer_free(&a);
	jvm_read_job_drop(&j->job);
	return 0;
}
