// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined functions of one object, by libdw: an index of units, the walk down to an
 * address, qualified names.
 *
 * Runs on: a helper.
 */
#include "symbols/dwarf/internal.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

/*
 * Names of functions without a linkage name in DWARF (lambdas, members, functions
 * of one file): with the namespaces, classes and functions around them,
 * "deep::Box::each", "run::{lambda}::operator()".
 *
 * One thread: the owner of the dwarf.
 *
 * The path from a unit down to a function, for the names along it.
 *
 * A DIE does not know its parent. All DIEs below one are between it and its next
 * sibling, so the path is found by offsets, without walking all of the unit.
 * Results are kept by DIE: functions are looked up many times.
 *
 * Runs on: a helper of the loader.
 */

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

static int dwarf_scopes_new(struct dwarf_scopes **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void dwarf_scopes_free(struct dwarf_scopes *s)
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

/* Return true if scopes of this unit are written with "::". */
static bool has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
	case 0x2b: /* C++17, C++20: newer than some dwarf.h */
	case 0x2e:
		return true;
	default:
		/* The units that dwz made have no language. */
		return dwarf_tag(unit) == DW_TAG_partial_unit;
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
		return name;
	default:
		return NULL;
	}
}

/* Write the names on the path to @die, then its name. */
static void compose(struct dwarf_scopes *s, Dwarf_Die *die, const char *own, char *buf, size_t size)
{
	const Dwarf_Off to = dwarf_dieoffset(die);
	Dwarf_Die at;
	size_t used = 0;

	if (dwarf_diecu(die, &at, NULL, NULL) && has_scopes(&at)) {
		for (uint32_t depth = 0; depth < DEPTH_MAX && step_down(s, &at, to); depth++) {
			const char *name = dwarf_dieoffset(&at) == to ? NULL : scope_name(&at, own);

			if (dwarf_dieoffset(&at) == to)
				break;
			if (name && used < size)
				used += (size_t)snprintf(buf + used, size - used, "%s::", name);
		}
	}
	if (used < size)
		snprintf(buf + used, size - used, "%s", own);
}

/*
 * Return the name of the function @die, an inlined one's or its origin's, as in
 * the source; NULL when it has none. At most until @deadline_ns of this thread's
 * CPU time, then without its scopes. Valid as long as @s.
 */
static const char *dwarf_scopes_name(struct dwarf_scopes *s, Dwarf_Die *die, uint64_t deadline_ns)
{
	char buf[DWARF_SCOPE_NAME_MAX];
	Dwarf_Die declaration = *die;
	struct known **bucket, *k;
	const char *own;

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

#define DWARF_QUERY_NS 200000000ULL  /* CPU time of one request */
#define DWARF_OPEN_NS  2000000000ULL /* CPU time of the index of units */
#define UNITS_MAX      (1U << 20)
#define RANGES_MAX     (4U << 20)
#define LINE_SIZE_MAX  (4U << 20)  /* of one unit's line program: a byte can be a row */
#define LINES_SUM_MAX  (16U << 20) /* of the units read since libdw opened the file */
#define LOOK_BACK      16U	   /* ranges that a look-up steps over */

struct range {
	uint64_t start, end;
	uint64_t what; /* unit: its index; function: offset of its DIE */
};

struct ranges {
	struct range *list;
	uint32_t nr, max;
};

/* A function that is inlined somewhere, and has no linkage name. */
struct abstract {
	uint64_t hash; /* of its name and place in the source; 0: not known yet */
	Dwarf_Off die;
};

struct unit {
	Dwarf_Off die;
	struct ranges functions;
	struct abstract *abstracts; /* hashes known: sorted by them */
	uint32_t nr_abstracts, max_abstracts;
	bool indexed, hashed;
	uint32_t lines;	 /* bytes of its line program; 0: none, or too large */
	uint32_t opened; /* dwarf->nr_opened when libdw read it */
};

struct dwarf {
	struct dwarf_opened main, alt;
	int fd, alt_fd;
	bool own_alt_fd, no_lines;
	bool split;	    /* some units have their functions in files that are not read */
	uint32_t nr_opened; /* libdw never frees lines: after LINES_SUM_MAX it opens the file again
			     */
	uint32_t lines_sum;
	uint64_t bias, size;
	struct unit *units;
	uint32_t nr_units, max_units;
	struct ranges ranges;
	struct dwarf_scopes *scopes;
	uint64_t deadline_ns; /* of this thread's CPU time */
	uint32_t nr_dies;     /* used; the clock is read now and then */
};

static bool dwarf_is_late(struct dwarf *d)
{
	return d->nr_dies++ % 64 == 0 && time_thread_ns() > d->deadline_ns;
}

static int ranges_add(struct ranges *r, uint64_t start, uint64_t end, uint64_t what)
{
	if (start >= end)
		return 0;
	if (r->nr >= RANGES_MAX)
		return -EFBIG;
	if (!array_reserve(&r->list, &r->max, r->nr + 1ull))
		return -ENOMEM;
	r->list[r->nr++] = (struct range){ start, end, what };
	return 0;
}

/* Of ranges, the later start is last, then the smaller one. */
static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end);
}

/* Return the innermost range with @addr, or NULL. */
static const struct range *ranges_find(const struct ranges *r, uint64_t addr)
{
	uint32_t lo = search_split(r->nr, i, r->list[i].start <= addr);

	for (uint32_t i = lo; i > 0 && lo - i < LOOK_BACK; i--) {
		if (addr < r->list[i - 1].end)
			return &r->list[i - 1];
	}
	return NULL;
}

/* Add all ranges of @die. */
static int add_die_ranges(struct dwarf *d, struct ranges *r, Dwarf_Die *die, uint64_t what)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		/* 0: left out by the linker. */
		int rc = start ? ranges_add(r, start, end, what) : 0;

		if (rc)
			return rc;
		if (dwarf_is_late(d))
			return -ETIME;
	}
	return 0;
}

/* A unit with its functions in a separate file (split DWARF) still has its lines here. */
static bool is_unit(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_compile_unit || dwarf_tag(die) == DW_TAG_skeleton_unit;
}

/* Return the bytes of the line program of @die, 0 if too large. @lines: the section. */
static uint32_t size_of_lines(Dwarf_Die *die, const Elf_Data *lines)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	uint64_t size = 0;
	const uint8_t *at;

	if (!lines || !lines->d_buf || !dwarf_attr(die, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &offset) || lines->d_size < 12 || offset > lines->d_size - 12)
		return 0;
	at = (const uint8_t *)lines->d_buf + offset;
	memcpy(&size, at, 4);
	if (size == 0xffffffff)
		memcpy(&size, at + 4, 8);
	return size <= LINE_SIZE_MAX ? (uint32_t)MAX(size, 1U) : 0;
}

static int add_unit(struct dwarf *d, Dwarf_Die *die, const Elf_Data *lines)
{
	if (!is_unit(die))
		return 0;
	if (d->nr_units >= UNITS_MAX)
		return -EFBIG;
	if (!array_reserve(&d->units, &d->max_units, d->nr_units + 1ull))
		return -ENOMEM;
	d->split |= dwarf_hasattr(die, DW_AT_dwo_name) || dwarf_hasattr(die, DW_AT_GNU_dwo_name);
	d->units[d->nr_units] = (struct unit){
		.die = dwarf_dieoffset(die),
		.lines = size_of_lines(die, lines),
	};
	return add_die_ranges(d, &d->ranges, die, d->nr_units++);
}

/* Index the units by address. */
static int index_units(struct dwarf *d)
{
	const Elf_Data *lines = d->no_lines ? NULL : dwarf_open_section(d->main.dw, ".debug_line");
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int rc = 0;

	d->deadline_ns = time_thread_ns() + DWARF_OPEN_NS;
	/* The subdie is not read: that would open split files. */
	while (!rc && !dwarf_get_units(d->main.dw, cu, &cu, NULL, NULL, &die, NULL)) {
		rc = add_unit(d, &die, lines);
		if (!rc && dwarf_is_late(d))
			rc = -ETIME;
	}
	if (d->ranges.nr)
		qsort(d->ranges.list, d->ranges.nr, sizeof(*d->ranges.list), compare_ranges);
	return rc ? rc : d->ranges.nr ? 0 : -ENODATA;
}

/* Have libdw open the files. 0 or -errno. */
static int begin(struct dwarf *d)
{
	int rc = dwarf_scopes_new(&d->scopes);

	if (rc)
		return rc;
	d->nr_opened++;
	d->lines_sum = 0;
	rc = dwarf_open_begin(&d->main, d->fd, !d->no_lines);
	if (rc || d->alt_fd < 0)
		return rc;
	rc = dwarf_open_begin(&d->alt, d->alt_fd, !d->no_lines);
	if (!rc)
		dwarf_setalt(d->main.dw, d->alt.dw);
	return rc;
}

/* Free all that libdw has. */
static void end(struct dwarf *d)
{
	dwarf_scopes_free(d->scopes);
	dwarf_open_end(&d->main);
	dwarf_open_end(&d->alt);
	d->scopes = NULL;
}

/* Before a look-up in @u: bound the lines that libdw keeps. False: there are none to read. */
static bool bound_lines(struct dwarf *d, struct unit *u)
{
	if (u->opened == d->nr_opened || !u->lines)
		return u->lines;
	if (d->lines_sum && d->lines_sum + u->lines > LINES_SUM_MAX) {
		end(d);
		if (begin(d))
			return false;
	}
	d->lines_sum += u->lines;
	u->opened = d->nr_opened;
	return true;
}

int dwarf_open_fds(struct dwarf **out, const struct elffile *f, uint64_t bias, int alt_fd,
		   bool no_lines)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	d->fd = f->fd;
	d->alt_fd = alt_fd;
	d->no_lines = no_lines;
	d->bias = bias;
	rc = begin(d);
	if (!rc)
		rc = index_units(d);
	if (rc) {
		dwarf_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

int dwarf_open(struct dwarf **out, const struct elffile *f, uint64_t bias)
{
	struct elffacts facts;
	int alt_fd, rc;

	elffacts_collect(&facts, f);
	rc = facts.dwarf ? facts.dwarf : dwarf_open_permitted(f->fd);
	if (!rc)
		rc = dwarf_open_find_alt(&facts, &alt_fd);
	if (rc)
		return rc;
	rc = dwarf_open_fds(out, f, bias, alt_fd, false);
	if (rc) {
		if (alt_fd >= 0)
			close(alt_fd);
		return rc;
	}
	(*out)->size = facts.dwarf_size;
	(*out)->own_alt_fd = true;
	return 0;
}

void dwarf_close(struct dwarf *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->nr_units; i++) {
		free(d->units[i].functions.list);
		free(d->units[i].abstracts);
	}
	free(d->units);
	free(d->ranges.list);
	end(d);
	if (d->own_alt_fd && d->alt_fd >= 0)
		close(d->alt_fd);
	free(d);
}

bool dwarf_is_split(const struct dwarf *d)
{
	return d->split;
}

uint64_t dwarf_size(const struct dwarf *d)
{
	return d->size;
}

/* Return true if functions may be inside of such a DIE. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

/* Note @die of @u, if inlined functions refer to it. 0 or -ENOMEM. */
static int note_abstract(struct unit *u, Dwarf_Die *die)
{
	if (!dwarf_hasattr(die, DW_AT_inline))
		return 0;
	if (!array_reserve(&u->abstracts, &u->max_abstracts, u->nr_abstracts + 1ull))
		return -ENOMEM;
	u->abstracts[u->nr_abstracts++] = (struct abstract){ .die = dwarf_dieoffset(die) };
	return 0;
}

/* Index the functions below @root, with an explicit stack of limited depth. */
static int index_functions(struct dwarf *d, struct unit *u, Dwarf_Die *root)
{
	Dwarf_Die stack[DEPTH_MAX];
	uint32_t depth = 0;
	int rc = 0, more = dwarf_child(root, &stack[0]);

	while (!rc) {
		Dwarf_Die *die = &stack[depth];

		if (dwarf_is_late(d)) {
			rc = -ETIME;
			break;
		}
		if (more) { /* no further sibling: up */
			if (!depth)
				break;
			more = dwarf_siblingof(&stack[depth - 1], &stack[depth - 1]);
			depth--;
			continue;
		}
		if (dwarf_tag(die) == DW_TAG_subprogram) {
			rc = add_die_ranges(d, &u->functions, die, dwarf_dieoffset(die));
			rc = rc ? rc : note_abstract(u, die);
		}
		if (depth + 1 < DEPTH_MAX && may_hold_functions(dwarf_tag(die)) &&
		    !dwarf_child(die, &stack[depth + 1]))
			depth++;
		else
			more = dwarf_siblingof(die, die);
	}
	if (u->functions.nr)
		qsort(u->functions.list, u->functions.nr, sizeof(*u->functions.list),
		      compare_ranges);
	/* A walk that ran out of time is not tried again. */
	u->indexed = true;
	return rc;
}

/* Step into the child of @die that covers @addr; false when there is none. */
static bool descend(struct dwarf *d, Dwarf_Die *die, uint64_t addr)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&child, addr) == 1) {
			*die = child;
			return true;
		}
	} while (!dwarf_is_late(d) && !dwarf_siblingof(&child, &child));
	return false;
}

/* Find the inlined functions at @addr of the function @die, outermost first. */
static uint32_t find_inlined(struct dwarf *d, Dwarf_Die die, uint64_t addr,
			     Dwarf_Die out[DWARF_FRAMES_MAX])
{
	uint32_t nr = 0;

	for (uint32_t depth = 0; depth < DEPTH_MAX && nr < DWARF_FRAMES_MAX - 1; depth++) {
		if (!descend(d, &die, addr))
			break;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			out[nr++] = die;
	}
	return nr;
}

/* Return the linkage name, which is unique; NULL: there is none. */
static const char *linkage_name(Dwarf_Die *die)
{
	static const unsigned int linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attr;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(linkage); i++) {
		/* Follows abstract origins, at most sixteen. */
		if (dwarf_attr_integrate(die, linkage[i], &attr) &&
		    (name = dwarf_formstring(&attr)) && *name)
			return name;
	}
	return NULL;
}

static const char *name_of(struct dwarf *d, Dwarf_Die *die)
{
	const char *name = linkage_name(die);

	if (!name)
		name = dwarf_scopes_name(d->scopes, die, d->deadline_ns);
	return name && *name ? name : "[inlined]";
}

static uint64_t number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return value;
}

/* The same of the declaration that @die refers to. */
static uint64_t declared_number(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return value;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3ULL;
	return hash;
}

/* Hash a path as if "." and ".." were not in it: units have different ways to one header. */
static uint64_t hash_path(uint64_t hash, const char *path)
{
	const char *parts[64];
	size_t sizes[64], nr = 0;

	for (size_t size; *path; path += size + (path[size] == '/')) {
		size = strcspn(path, "/");
		if (!size || (size == 1 && path[0] == '.'))
			continue;
		if (size == 2 && !memcmp(path, "..", 2) && nr) {
			nr--;
		} else if (nr < ARRAY_SIZE(parts)) {
			parts[nr] = path;
			sizes[nr++] = size;
		}
	}
	for (size_t i = 0; i < nr; i++)
		hash = hash_bytes(hash_bytes(hash, "/", 1), parts[i], sizes[i]);
	return hash;
}

/* Hash the name of the function @die, and its place in the source by numbers. */
static uint64_t hash_declaration(Dwarf_Die *die)
{
	static const unsigned int numbers[] = { DW_AT_decl_file, DW_AT_decl_line,
						DW_AT_decl_column };
	const char *name = dwarf_diename(die);
	uint64_t hash = hash_bytes(1, name ? name : "", name ? strlen(name) : 0);

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		hash = hash_u64(hash + declared_number(die, numbers[i]));
	return hash ? hash : 1;
}

static int compare_abstracts(const void *a, const void *b)
{
	const struct abstract *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

static void hash_abstracts(struct dwarf *d, struct unit *u)
{
	for (uint32_t i = 0; i < u->nr_abstracts && !dwarf_is_late(d); i++) {
		Dwarf_Die die;

		if (dwarf_offdie(d->main.dw, u->abstracts[i].die, &die) && !linkage_name(&die))
			u->abstracts[i].hash = hash_declaration(&die);
	}
	if (u->nr_abstracts)
		qsort(u->abstracts, u->nr_abstracts, sizeof(*u->abstracts), compare_abstracts);
	u->hashed = true;
}

/*
 * Return the offset of the function @origin if another one of @u has its name and place: methods of
 * two classes where DWARF has lines only, templates for two lambdas. Else 0.
 */
static Dwarf_Off twin_of(struct dwarf *d, struct unit *u, Dwarf_Die *origin)
{
	uint64_t hash = hash_declaration(origin);
	uint32_t at;

	if (!u->hashed)
		hash_abstracts(d, u);
	at = search_split(u->nr_abstracts, i, u->abstracts[i].hash < hash);
	return at + 1 < u->nr_abstracts && u->abstracts[at + 1].hash == hash
		       ? dwarf_dieoffset(origin)
		       : 0;
}

/* Return the file of the declaration @die; NULL: none, or it costs too much to read. */
static const char *declared_file(struct dwarf *d, const struct unit *u, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die unit;

	/* Of this unit: its lines are bounded. */
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) ||
	    !dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_dieoffset(&unit) != u->die)
		return NULL;
	return dwarf_decl_file(die);
}

/*
 * Return the identity of the function @die, inlined in @u, beside its name: a hash of the place of
 * its declaration; without that the file @at of its code. 0: its name is enough.
 */
static uint64_t identity_of(struct dwarf *d, struct unit *u, Dwarf_Die *die, bool lines,
			    const struct dwarf_frame *at)
{
	const char *file = lines ? declared_file(d, u, die) : NULL;
	char path[TEXT_MAX];
	Dwarf_Attribute attr;
	Dwarf_Die origin = *die;
	uint64_t hash;

	if (linkage_name(die))
		return 0;
	if (dwarf_attr(die, DW_AT_abstract_origin, &attr))
		dwarf_formref_die(&attr, &origin);
	hash = hash_u64(declared_number(die, DW_AT_decl_line));
	hash = hash_u64(hash + declared_number(die, DW_AT_decl_column));
	hash += twin_of(d, u, &origin);
	if (!file)
		file = at->file;
	if (file) {
		dwarf_path(path, sizeof(path), at->dir, file);
		hash = hash_path(hash, path);
	}
	return hash ? hash : 1;
}

/* Return the folder that @unit was compiled in; NULL: unknown. */
static const char *dir_of(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;

	return dwarf_attr(unit, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
}

void dwarf_path(char *buf, size_t size, const char *dir, const char *file)
{
	bool below = file[0] != '/' && dir && *dir;

	snprintf(buf, size, "%s%s%s", below ? dir : "", below ? "/" : "", file);
}

/* Get the file and line of the call of @inlined. */
static void put_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct dwarf_frame *out)
{
	uint64_t file = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t nr;

	out->line = (uint32_t)number_of(inlined, DW_AT_call_line);
	if (!dwarf_getsrcfiles(unit, &files, &nr) && file < nr)
		out->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void put_line(Dwarf_Die *unit, uint64_t addr, struct dwarf_frame *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	int nr = 0;

	if (!line || dwarf_lineno(line, &nr))
		return;
	out->line = (uint32_t)MAX(nr, 0);
	out->file = dwarf_linesrc(line, NULL, NULL);
}

/* Return the first line of @function: of its declaration, else of its entry, as Go has it. */
static uint32_t first_line(Dwarf_Die *unit, Dwarf_Die *function, bool lines)
{
	uint32_t declared = (uint32_t)declared_number(function, DW_AT_decl_line);
	struct dwarf_frame entry = { .line = 0 };
	Dwarf_Addr at;

	if (!declared && lines && !dwarf_entrypc(function, &at))
		put_line(unit, at, &entry);
	return declared ? declared : entry.line;
}

int dwarf_chain(struct dwarf *d, uint64_t vaddr, struct dwarf_frame out[DWARF_FRAMES_MAX])
{
	const struct range *range = ranges_find(&d->ranges, vaddr - d->bias);
	Dwarf_Die inlined[DWARF_FRAMES_MAX], function, root;
	struct unit *u = range ? &d->units[range->what] : NULL;
	uint64_t addr = vaddr - d->bias;
	bool lines = u && bound_lines(d, u);
	uint32_t nr = 0;

	if (!u || !dwarf_offdie(d->main.dw, u->die, &root))
		return 0;
	d->deadline_ns = time_thread_ns() + DWARF_QUERY_NS;
	if (!u->indexed && index_functions(d, u, &root) == -ETIME)
		return -ETIME;
	range = ranges_find(&u->functions, addr);
	if (range && !dwarf_offdie(d->main.dw, range->what, &function))
		range = NULL;
	if (range)
		nr = find_inlined(d, function, addr, inlined);
	memset(out, 0, (nr + 1) * sizeof(*out));
	for (uint32_t i = 0; i < nr; i++) { /* inside out */
		out[i].name = name_of(d, &inlined[nr - 1 - i]);
		if (lines)
			put_call(&root, &inlined[nr - 1 - i], &out[i + 1]);
	}
	if (lines)
		put_line(&root, addr, &out[0]);
	for (uint32_t i = 0; i <= nr; i++)
		out[i].dir = dir_of(&root);
	for (uint32_t i = 0; i < nr; i++) {
		out[i].identity = identity_of(d, u, &inlined[nr - 1 - i], lines, &out[i]);
		out[i].start = (uint32_t)declared_number(&inlined[nr - 1 - i], DW_AT_decl_line);
	}
	if (range)
		out[nr].start = first_line(&root, &function, lines);
	if (time_thread_ns() > d->deadline_ns)
		return -ETIME;
	return (int)nr + 1;
}

/* Return the last row at or before @addr. */
static size_t first_row(Dwarf_Lines *rows, size_t nr, uint64_t addr)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		Dwarf_Addr at = 0;

		dwarf_lineaddr(dwarf_onesrcline(rows, middle), &at);
		if (at <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

int dwarf_lines(struct dwarf *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn, void *ctx)
{
	uint64_t addr = vaddr - d->bias;
	const struct range *range = ranges_find(&d->ranges, addr);
	struct unit *u = range ? &d->units[range->what] : NULL;
	struct dwarf_frame frame = { .name = NULL };
	Dwarf_Lines *rows;
	Dwarf_Die root;
	size_t nr;

	d->deadline_ns = time_thread_ns() + DWARF_QUERY_NS;
	if (!u || !bound_lines(d, u) || !dwarf_offdie(d->main.dw, u->die, &root) ||
	    dwarf_getsrclines(&root, &rows, &nr))
		return 0;
	frame.dir = dir_of(&root);
	for (size_t i = first_row(rows, nr, addr); i < nr; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i);
		Dwarf_Addr at = 0;
		bool end = false;
		int line = 0;

		if (dwarf_lineaddr(row, &at) || at >= addr + size)
			break;
		dwarf_lineendsequence(row, &end);
		dwarf_lineno(row, &line);
		frame.line = end ? 0 : (uint32_t)MAX(line, 0);
		frame.file = frame.line ? dwarf_linesrc(row, NULL, NULL) : NULL;
		fn(ctx, at + d->bias, &frame);
		if (dwarf_is_late(d))
			return -ETIME;
	}
	return 0;
}
