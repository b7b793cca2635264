// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of functions without a linkage name in DWARF (lambdas, members, functions of one file):
 * with the namespaces, classes and functions around them, "deep::Box::each",
 * "run::{lambda}::operator()"; of D "m.main.parse".
 *
 * The path from a unit down to a function, for the names along it. A DIE does not know its parent.
 * All DIEs below one are between it and its next sibling, so the path is found by offsets, without
 * walking all of the unit. Results are kept by DIE: functions are looked up many times. And lines
 * of units, copied from libdw.
 *
 * Runs on: the worker; without a sandbox, the calling thread (one at a time).
 */
#include "symbols/dwarf/internal.h"

#include <assert.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define DWARF_SCOPE_NAME_MAX  1024U /* bytes of one; the rest is cut */
#define DWARF_SCOPE_NAMES_MAX 65536U
#define DEPTH_MAX	      64U
#define HOPS_MAX	      16U
#define CLOCK_EVERY	      64U

static bool is_late(struct dwarf_scopes *s)
{
	return s->nr_steps++ % CLOCK_EVERY == 0 && time_thread_ns() > s->deadline_ns;
}

/* Return the text between scopes in names of this unit; NULL: names have none. */
static const char *separator(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
	case 0x2b: /* C++17, C++20: newer than some dwarf.h */
	case 0x2e:
		return "::";
	case DW_LANG_D:
		return ".";
	default:
		/* The units that dwz made have no language. */
		return dwarf_tag(unit) == DW_TAG_partial_unit ? "::" : NULL;
	}
}

/* Go from an inlined function to its declaration in the source. */
static void to_declaration(Dwarf_Die *die)
{
	static const unsigned int links[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Attribute attr;
	Dwarf_Die next;

	for (uint32_t hops = 0; hops < HOPS_MAX; hops++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(links) &&
		       (!dwarf_attr(die, links[i], &attr) || !dwarf_formref_die(&attr, &next)))
			i++;
		if (i == ARRAY_SIZE(links))
			return;
		*die = next;
	}
}

/* Find the child of @die with offset @to; false when there is none. */
static bool step_down(struct dwarf_scopes *s, Dwarf_Die *die, Dwarf_Off to)
{
	Dwarf_Die child, next;

	if (dwarf_child(die, &child))
		return false;
	while (dwarf_dieoffset(&child) <= to) {
		*die = child;
		if (is_late(s))
			return false;
		if (dwarf_siblingof(&child, &next) || dwarf_dieoffset(&next) > to)
			return true;
		child = next;
	}
	return false;
}

/* Return the name of a scope around @own; NULL: not shown in names. */
static const char *scope_name(Dwarf_Die *die, const char *own)
{
	const char *name = dwarf_diename(die);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return name ? name : strcmp(own, "operator()") ? "{unnamed type}" : "{lambda}";
	case DW_TAG_subprogram:
		/* "D main", whose nested functions are named as in main. */
		return name && !strncmp(name, "D ", 2) ? name + 2 : name;
	case DW_TAG_module:
		return name;
	default:
		return NULL;
	}
}

/* Write the names on the path to @die, then its name. */
static void compose(struct dwarf_scopes *s, Dwarf_Die *die, const char *own, char *buf, size_t size)
{
	const Dwarf_Off to = dwarf_dieoffset(die);
	const char *between = NULL;
	Dwarf_Die at;
	size_t used = 0;

	if (dwarf_diecu(die, &at, NULL, NULL))
		between = separator(&at);
	if (between) {
		for (uint32_t depth = 0; depth < DEPTH_MAX && step_down(s, &at, to); depth++) {
			const char *name = dwarf_dieoffset(&at) == to ? NULL : scope_name(&at, own);

			if (dwarf_dieoffset(&at) == to)
				break;
			if (name && used < size)
				used += (size_t)snprintf(buf + used, size - used, "%s%s", name,
							 between);
		}
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", own);
}

static const char *scoped_name(struct dwarf_scopes **scopes, Dwarf_Die *die, uint64_t deadline_ns)
{
	char buf[DWARF_SCOPE_NAME_MAX];
	Dwarf_Die declaration = *die;
	struct dwarf_scopes *s;
	struct dwarf_scope **bucket, *k;
	const char *own;

	if (!*scopes)
		*scopes = calloc(1, sizeof(**scopes));
	s = *scopes;
	if (!s)
		return dwarf_diename(die);
	to_declaration(&declaration);
	bucket = &s->buckets[hash_u64((uintptr_t)declaration.addr) % DWARF_SCOPE_BUCKETS];
	for (k = *bucket; k; k = k->next) {
		if (k->die == declaration.addr)
			return k->name;
	}
	/* The inlined one's name has its template arguments; a declaration may lack them. */
	own = dwarf_diename(die);
	if (!own || !*own || s->nr == DWARF_SCOPE_NAMES_MAX)
		return own;
	s->deadline_ns = deadline_ns;
	compose(s, &declaration, own, buf, sizeof(buf));
	k = malloc(sizeof(*k) + strlen(buf) + 1);
	if (!k)
		return own;
	k->die = declaration.addr;
	strcpy(k->name, buf);
	k->next = *bucket;
	*bucket = k;
	s->nr++;
	return k->name;
}

/*
 * Return whether the name is not in its string section: libdw 0.192 refuses strings without an end,
 * which 0.188 gives as they are. One in a shared file (dwz) may be missing with that.
 */
static bool has_lost_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_name, &attr) && attr.form != DW_FORM_GNU_strp_alt &&
	       attr.form != DW_FORM_strp_sup && !dwarf_formstring(&attr);
}

const char *dwarf_scopes_name(struct dwarf_scopes **scopes, Dwarf_Die *die, uint64_t deadline_ns,
			      bool *damaged)
{
	const char *name = dwarf_linkage_name(die);

	if (!name)
		name = scoped_name(scopes, die, deadline_ns);
	*damaged |= !name && has_lost_name(die);
	for (const char *c = name; c && *c; c++) {
		/* No text: the strings are damaged. */
		if ((unsigned char)*c < ' ' || *c == 0x7f) {
			*damaged = true;
			return NULL;
		}
	}
	return name;
}

/* Return the copy of @path in @paths; NULL: there is none, or out of memory. */
static const char *keep_path(struct dwarf_scopes *paths, const char *path)
{
	size_t size = path ? strlen(path) + 1 : 0;
	struct dwarf_scope **to, *k;

	if (!path)
		return NULL;
	to = &paths->buckets[keyhash_name(path, size) % DWARF_SCOPE_BUCKETS];
	for (k = *to; k; k = k->next)
		if (!strcmp(k->name, path))
			return k->name;
	k = malloc(sizeof(*k) + size);
	if (!k)
		return NULL;
	memcpy(k->name, path, size);
	k->die = NULL;
	k->next = *to;
	*to = k;
	paths->size += sizeof(*k) + size;
	return k->name;
}

static struct dwarf_row row_of(Dwarf_Line *line)
{
	struct dwarf_row row = { .file = DWARF_ROW_END };
	Dwarf_Files *files;
	Dwarf_Addr at = 0;
	bool end = true;
	size_t file = 0;
	int nr = 0;

	dwarf_lineaddr(line, &at);
	row.at = at;
	if (dwarf_lineendsequence(line, &end) || end || dwarf_lineno(line, &nr))
		return row;
	row.line = (uint32_t)MAX(nr, 0);
	row.file = dwarf_line_file(line, &files, &file)
			   ? DWARF_ROW_END - 1
			   : (uint32_t)MIN(file, (size_t)DWARF_ROW_END - 1);
	return row;
}

/* Collect the rows of @lines. Of rows at one address the last one counts, as in dwarf_getsrc_die().
 */
static bool collect_rows(struct dwarf_rows *r, Dwarf_Lines *lines, size_t nr)
{
	uint32_t max = 0;

	for (size_t i = 0; i < nr; i++) {
		struct dwarf_row row = row_of(dwarf_onesrcline(lines, i));

		if (r->nr && r->list[r->nr - 1].at == row.at)
			r->nr--;
		if (r->nr && r->list[r->nr - 1].line == row.line &&
		    r->list[r->nr - 1].file == row.file)
			continue;
		if (!array_reserve(&r->list, &max, r->nr + 1ULL))
			return false;
		r->list[r->nr++] = row;
	}
	assert(r->nr <= max);
	return true;
}

struct dwarf_rows *dwarf_rows_read(struct dwarf_scopes **paths, Dwarf_Die *unit)
{
	struct dwarf_rows all = { .list = NULL }, *r = NULL;
	Dwarf_Files *files;
	Dwarf_Lines *lines = NULL;
	size_t nr;

	if (dwarf_getsrcfiles(unit, &files, &nr))
		nr = 0;
	all.nr_files = (uint32_t)MIN(nr, DWARF_ROW_END - 1);
	if (!*paths)
		*paths = calloc(1, sizeof(**paths));
	if (dwarf_getsrclines(unit, &lines, &nr))
		nr = 0;
	if (*paths && collect_rows(&all, lines, nr)) {
		all.size =
			sizeof(*r) + all.nr * sizeof(*r->list) + all.nr_files * sizeof(*r->files);
		r = malloc(all.size);
	}
	if (r) {
		*r = all;
		r->size -= (*paths)->size;
		r->list = (struct dwarf_row *)(r + 1);
		if (r->nr)
			memcpy(r->list, all.list, r->nr * sizeof(*r->list));
		r->files = (const char **)(r->list + r->nr);
		for (uint32_t i = 0; i < r->nr_files; i++)
			r->files[i] = keep_path(*paths, dwarf_filesrc(files, i, NULL, NULL));
	}
	if (r)
		r->size += (*paths)->size;
	free(all.list);
	return r;
}
