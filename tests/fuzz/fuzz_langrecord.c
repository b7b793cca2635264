// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 *
 * Records with frames of languages: hostile bytes. An accepted record points inside
 * itself only, and is the same when written and read again.
 */
#include "symbols/java/java.c"
#include "sampler/perfdata/lang_record.c"

#include "symbols/java/internal.h"
#include "unwind/unwind.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/jit/jit.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t again[LANG_RECORD_MAX];

static void check_inside(const void *p, size_t nr, const uint8_t *data, size_t size)
{
	const uint8_t *at = p;

	if (nr && (at < data || nr > (size_t)(data + size - at)))
		abort();
}

static void check_function(const uint8_t *data, size_t size)
{
	struct code_text text, back;
	struct jvm_table_kept kept;
	uint32_t number, same;
	size_t whole;

	if (lang_record_function(data, size, &number, &text))
		return;
	check_inside(text.name, text.name_size, data, size);
	check_inside(text.file, text.file_size, data, size);
	check_inside(text.table, text.table_size, data, size);
	if (jvm_table_kept(&text, &kept) && kept.kind == JVM_TABLE_KEPT_CHAIN)
		free(jvm_table_kept_frames(&text, &kept));
	whole = lang_record_put_function(again, number, &text);
	if (!whole || lang_record_function(again, whole, &same, &back) || same != number ||
	    back.table_size != text.table_size || back.name_size != text.name_size ||
	    memcmp(back.name, text.name, text.name_size) ||
	    memcmp(back.file, text.file, text.file_size) ||
	    memcmp(back.table, text.table, text.table_size))
		abort();
}

static void check_frames(const uint8_t *data, size_t size)
{
	static struct lang_frames f, back;
	size_t whole;

	if (lang_record_frames(data, size, &f))
		return;
	if (f.nr > INTERLEAVE_FRAMES_MAX)
		abort();
	whole = lang_record_put_frames(again, &f);
	if (!whole || lang_record_frames(again, whole, &back) || back.time_ns != f.time_ns ||
	    back.nr != f.nr || memcmp(back.entries, f.entries, f.nr * sizeof(f.entries[0])) ||
	    back.other.size > f.other.size ||
	    (back.other.size && memcmp(back.other.bytes, f.other.bytes, back.other.size)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t time_ns;

	/* Both: the kind may be wrong. */
	lang_record_kind(data, size, &time_ns);
	check_function(data, size);
	check_frames(data, size);
	return 0;
}
