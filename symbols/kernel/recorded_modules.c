// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernel modules of a recording. Runs on: the loader. */
#include "symbols/kernel/recorded_modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"

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
