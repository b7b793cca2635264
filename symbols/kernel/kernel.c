// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel code generated at run time (BPF, trampolines) from KSYMBOL records; the kernel of a
 * recording and its modules.
 *
 * Runs on: the side-band drain; the loader.
 */
#include "symbols/kernel/kernel.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"

#define KSYMS_MAX      65536U
#define KSYMS_SIZE_MAX (16U << 20) /* bytes of one entry */

struct entry {
	uint64_t start;
	uint32_t size;
	uint8_t type;
	bool gone;
	char *name;
};

struct ksyms {
	pthread_mutex_t lock;
	struct entry *entries; /* sorted by start; disjoint */
	uint32_t nr, max;
	uint64_t news_start, news_end; /* range that changed; empty: none */
};

int ksyms_new(struct ksyms **out)
{
	struct ksyms *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	mutex_init_urgent(&k->lock);
	*out = k;
	return 0;
}

void ksyms_free(struct ksyms *k)
{
	if (!k)
		return;
	for (uint32_t i = 0; i < k->nr; i++)
		free(k->entries[i].name);
	free(k->entries);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* Return the index of the first entry that ends after @addr. */
static uint32_t index_of(const struct ksyms *k, uint64_t addr)
{
	return search_split(k->nr, i, k->entries[i].start + k->entries[i].size <= addr);
}

/* Remove all entries that overlap [start, end); return the index for a new one. */
static uint32_t make_free(struct ksyms *k, uint64_t start, uint64_t end)
{
	uint32_t first = index_of(k, start), last = first;

	while (last < k->nr && k->entries[last].start < end)
		free(k->entries[last++].name);
	memmove(&k->entries[first], &k->entries[last], (k->nr - last) * sizeof(*k->entries));
	k->nr -= last - first;
	return first;
}

static bool has_room(struct ksyms *k)
{
	return k->nr < KSYMS_MAX && array_reserve(&k->entries, &k->max, k->nr + 1ull);
}

static void add_news(struct ksyms *k, uint64_t start, uint64_t end)
{
	bool none = k->news_start >= k->news_end;

	k->news_start = none ? start : MIN(k->news_start, start);
	k->news_end = none ? end : MAX(k->news_end, end);
}

void ksyms_add(struct ksyms *k, uint64_t start, uint32_t size, enum ksyms_type type,
	       const char *name, size_t name_size)
{
	struct entry e = { .start = start, .size = size, .type = (uint8_t)type };
	uint32_t at;

	assert(name || !name_size);
	name_size = strnlen(name, MIN(name_size, (size_t)KSYMS_NAME_MAX - 1));
	if (!size || size > KSYMS_SIZE_MAX || start > UINT64_MAX - size || !name_size)
		return;
	e.name = strndup(name, name_size);
	if (!e.name)
		return;
	pthread_mutex_lock(&k->lock);
	if (has_room(k)) {
		at = make_free(k, start, start + size);
		memmove(&k->entries[at + 1], &k->entries[at], (k->nr - at) * sizeof(*k->entries));
		k->entries[at] = e;
		k->nr++;
		assert(!at || e.start - k->entries[at - 1].start >= k->entries[at - 1].size);
		assert(at + 1 == k->nr || k->entries[at + 1].start >= start + size);
		add_news(k, start, start + size);
		e.name = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	free(e.name);
}

void ksyms_remove(struct ksyms *k, uint64_t start, uint32_t size)
{
	uint32_t at;

	pthread_mutex_lock(&k->lock);
	at = index_of(k, start);
	if (at < k->nr && k->entries[at].start == start && k->entries[at].size == size)
		k->entries[at].gone = true;
	pthread_mutex_unlock(&k->lock);
}

bool ksyms_find(struct ksyms *k, uint64_t addr, struct ksyms_symbol *out)
{
	const struct entry *e = NULL;
	uint32_t at;

	assert(out);
	pthread_mutex_lock(&k->lock);
	at = index_of(k, addr);
	if (at < k->nr && k->entries[at].start <= addr)
		e = &k->entries[at];
	if (e) {
		*out = (struct ksyms_symbol){
			.start = e->start,
			.size = e->size,
			.type = (enum ksyms_type)e->type,
			.gone = e->gone,
			.name_size = strlen(e->name),
		};
		memcpy(out->name, e->name, out->name_size);
	}
	pthread_mutex_unlock(&k->lock);
	return e;
}

bool ksyms_take_news(struct ksyms *k, uint64_t *start, uint64_t *end)
{
	pthread_mutex_lock(&k->lock);
	*start = k->news_start;
	*end = k->news_end;
	k->news_start = k->news_end = 0;
	pthread_mutex_unlock(&k->lock);
	return *start < *end;
}

/*
 * Compare the kernel of a recording with the running one. Runs on: the loader.
 */

size_t recorded_kernel_build_id(const char *path, uint8_t *id, size_t max)
{
	uint8_t notes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, notes, sizeof(notes));

	assert(max);
	if (fd >= 0)
		close(fd);
	return size > 0 ? elffile_notes_build_id(notes, (size_t)size, id, max) : 0;
}

enum kernel_match recorded_kernel_match(const struct kernel_identity *was, const char *notes)
{
	uint8_t id[sizeof(was->build_id)];
	size_t size = was->build_id_size ? recorded_kernel_build_id(notes, id, sizeof(id)) : 0;
	struct utsname host;

	if (size)
		return size != was->build_id_size || memcmp(id, was->build_id, size) ? KERNEL_OTHER
										     : KERNEL_SAME;
	if (!*was->release || uname(&host))
		return KERNEL_UNKNOWN;
	return strcmp(was->release, host.release) ? KERNEL_OTHER : KERNEL_SAME;
}

const char *recorded_kernel_reason(enum kernel_match match)
{
	static const char *const reasons[] = {
		[KERNEL_OTHER] = "recorded on another kernel",
		[KERNEL_UNKNOWN] = "not known which kernel it was recorded on",
	};

	assert(match == KERNEL_OTHER || match == KERNEL_UNKNOWN);
	return reasons[match];
}

uint64_t recorded_kernel_now(const struct recorded_kernel *k, uint64_t addr)
{
	return addr >= k->start && addr < k->end ? addr - k->shift : addr;
}

uint64_t recorded_kernel_then(const struct recorded_kernel *k, uint64_t addr)
{
	uint64_t then = addr + k->shift;

	return then >= k->start && then < k->end ? then : addr;
}

/*
 * Kernel modules of a recording. Runs on: the loader.
 */

#define RECORDED_MODULES_MAX 4096U

/* Write the module's name for @file into @out; false: @file is no module. */
static bool name_of(const char *file, size_t size, char out[RECORDED_MODULE_NAME_MAX])
{
	const char *slash = memrchr(file, '/', size), *suffix;
	const char *name = slash ? slash + 1 : file;
	size_t left = size - (size_t)(name - file), used = 0;

	if (!slash && left > 2 && name[0] == '[' && name[left - 1] == ']') {
		name++;
		left -= 2;
	} else {
		suffix = memmem(name, left, ".ko", 3);
		if (!suffix)
			return false;
		left = (size_t)(suffix - name);
	}
	if (!left || left > RECORDED_MODULE_NAME_MAX - 3)
		return false;
	out[used++] = '[';
	for (size_t i = 0; i < left; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!isascii(c) || !(isalnum(c) || strchr("_-.", c)))
			return false;
		out[used++] = c == '-' ? '_' : (char)c;
	}
	out[used++] = ']';
	out[used] = '\0';
	return true;
}

/* Return the number of modules that start at or below @addr. */
static uint32_t nr_from(const struct recorded_modules *m, uint64_t addr)
{
	return search_split(m->nr, i, m->list[i].start <= addr);
}

void recorded_modules_add(struct recorded_modules *m, const char *file, size_t size, uint64_t start,
			  uint64_t end)
{
	struct recorded_module module = { start, end, "" };
	uint32_t at = nr_from(m, start);

	assert(file || !size);
	if (end <= start || !name_of(file, size, module.name))
		return;
	if (at && m->list[at - 1].start == start) {
		m->list[at - 1] = module;
		return;
	}
	if (m->nr == RECORDED_MODULES_MAX || !array_reserve(&m->list, &m->room, m->nr + 1ULL))
		return;
	memmove(m->list + at + 1, m->list + at, (m->nr - at) * sizeof(*m->list));
	m->list[at] = module;
	m->nr++;
}

const struct recorded_module *recorded_modules_find(const struct recorded_modules *m, uint64_t addr)
{
	uint32_t nr = nr_from(m, addr);

	return nr && addr < m->list[nr - 1].end ? &m->list[nr - 1] : NULL;
}

struct safe_text recorded_module_text(const struct recorded_module *module)
{
	uint16_t size = (uint16_t)strlen(module->name);

	return (struct safe_text){ module->name, size, size };
}

void recorded_modules_fini(struct recorded_modules *m)
{
	free(m->list);
	*m = (struct recorded_modules){ 0 };
}
