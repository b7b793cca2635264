// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of functions without a linkage name in DWARF (lambdas, members, functions of one file):
 * with the namespaces, classes and functions around them, "deep::Box::each",
 * "run::{lambda}::operator()"; of D "m.main.parse".
 *
 * The path from a unit down to a function, for the names along it. A DIE does not know its parent.
 * All DIEs below one are between it and its next sibling, so the path is found by offsets, without
 * walking all of the unit. Results are kept by DIE: functions are looked up many times.
 *
 * Runs on: the worker; without a sandbox, the calling thread (one at a time).
 */
#include "symbols/dwarf/internal.h"

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
#define BUCKETS		      1024U
#define DWARF_SCOPE_NAMES_MAX 65536U
#define DEPTH_MAX	      64U
#define HOPS_MAX	      16U
#define CLOCK_EVERY	      64U

struct known {
	struct known *next;
	const void *die; /* address of its bytes: unique */
	char name[];
};

struct dwarf_scopes {
	struct known *buckets[BUCKETS];
	uint32_t nr;
	uint64_t deadline_ns;
	uint32_t nr_steps;
};

void dwarf_scopes_free(struct dwarf_scopes *s)
{
	for (uint32_t i = 0; s && i < BUCKETS; i++) {
		for (struct known *k = s->buckets[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(s);
}

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
	struct known **bucket, *k;
	const char *own;

	if (!*scopes)
		*scopes = calloc(1, sizeof(**scopes));
	s = *scopes;
	if (!s)
		return dwarf_diename(die);
	to_declaration(&declaration);
	bucket = &s->buckets[hash_u64((uintptr_t)declaration.addr) % BUCKETS];
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
