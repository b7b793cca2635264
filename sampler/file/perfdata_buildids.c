// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * { header, i32 pid, u8 id[20], u8 size, u8[3], name[] }: a table sorted by name.
 *
 * One thread, that of the replay. Invariant: ids[].name and name_size lie in
 * names; both are limited, however large the file is.
 */
#include "sampler/file/perfdata_buildids.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata_format.h"
#include "symbols/image/image.h"

/* Return whether the object is the kernel, not a module. */
static bool is_kernel(const char *name, size_t size)
{
	static const char kallsyms[] = "[kernel.kallsyms]", file[] = "vmlinux";
	const char *slash = memrchr(name, '/', size);

	if (size >= sizeof(kallsyms) - 1 && !memcmp(name, kallsyms, sizeof(kallsyms) - 1))
		return true;
	size -= slash ? (size_t)(slash + 1 - name) : 0;
	return size >= sizeof(file) - 1 &&
	       !memcmp(slash ? slash + 1 : name, file, sizeof(file) - 1);
}

static void add(struct perfdata_build_ids *t, const char *name, size_t size, const uint8_t *id,
		uint8_t id_size)
{
	struct perfdata_build_id *entry;

	if (t->nr == PERFDATA_BUILD_IDS_MAX || size > PERFDATA_NAMES_MAX - t->names_size)
		return;
	if (t->nr == t->room) {
		t->room = MAX(2 * t->room, 64u);
		t->ids = xrealloc_array(t->ids, t->room, sizeof(*t->ids));
	}
	if (t->names_room - t->names_size < size) {
		t->names_room = 2 * t->names_room + size;
		t->names = xrealloc_array(t->names, t->names_room, 1);
	}
	entry = &t->ids[t->nr++];
	*entry = (struct perfdata_build_id){
		(uint32_t)t->names_size, (uint32_t)size, { 0 }, id_size
	};
	memcpy(entry->id, id, id_size);
	memcpy(t->names + t->names_size, name, size);
	t->names_size += size;
	t->sorted = false;
}

bool perfdata_build_ids_add(struct perfdata_build_ids *t, struct kernel_identity *kernel,
			    const uint8_t *record, size_t size)
{
	const size_t id_at = offsetof(struct perfdata_build_id_record, id);
	struct perfdata_build_id_record r;
	const char *name = (const char *)record + sizeof(r);
	uint8_t id_size = sizeof(r.id);
	size_t name_size;

	if (size < sizeof(r))
		return false;
	memcpy(&r, record, sizeof(r));
	name_size = strnlen(name, size - sizeof(r));
	/* Before perf 5.10 there was no size: SHA-1 it was, or something shorter and zeros. */
	if (r.h.misc & PERFDATA_MISC_BUILD_ID_SIZE)
		id_size = MIN(r.size, id_size);
	if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
		if (name_size && id_size)
			add(t, name, name_size, record + id_at, id_size);
	} else if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
		   is_kernel(name, name_size)) {
		kernel->build_id_size = id_size;
		memcpy(kernel->build_id, r.id, id_size);
	}
	return true;
}

static int compare_names(const char *a, size_t a_size, const char *b, size_t b_size)
{
	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	return memcmp(a, b, a_size);
}

static int compare(const void *a, const void *b, void *names)
{
	const struct perfdata_build_id *x = a, *y = b;
	const char *text = names;

	return compare_names(text + x->name, x->name_size, text + y->name, y->name_size);
}

/* Of a name with several build-ids none is kept, unless all are the same. */
static void sort(struct perfdata_build_ids *t)
{
	uint32_t kept = 0;

	t->sorted = true;
	if (!t->nr)
		return;
	qsort_r(t->ids, t->nr, sizeof(*t->ids), compare, t->names);
	for (uint32_t i = 1; i < t->nr; i++) {
		struct perfdata_build_id *last = &t->ids[kept];

		if (compare(last, &t->ids[i], t->names))
			t->ids[++kept] = t->ids[i];
		else if (memcmp(last->id, t->ids[i].id, sizeof(last->id)))
			last->size = 0;
	}
	t->nr = kept + 1;
}

bool perfdata_build_ids_find(struct perfdata_build_ids *t, const char *name, size_t size,
			     struct object_identity *id)
{
	uint32_t lo = 0, hi;

	if (!t->sorted)
		sort(t);
	for (hi = t->nr; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct perfdata_build_id *e = &t->ids[mid];
		int order = compare_names(t->names + e->name, e->name_size, name, size);

		if (!order) {
			if (!e->size)
				return false;
			memcpy(id->build_id, e->id, sizeof(id->build_id));
			id->build_id_size = e->size;
			return true;
		}
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

void perfdata_build_ids_fini(struct perfdata_build_ids *t)
{
	free(t->ids);
	free(t->names);
	*t = (struct perfdata_build_ids){ 0 };
}
