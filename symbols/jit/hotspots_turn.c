// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When a JVM is read again: a hostile one makes each reading as expensive, or as slow, as it can.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/hotspot_cage.h"
#include "symbols/jit/hotspots.h"
#include "symbols/jit/hotspots_private.h"

#define COST_FACTOR 100U	  /* a scan takes at most a hundredth of a CPU */
#define NEW_FACTOR  25U		  /* but more while the JVM compiles: unknown code has no callers */
#define COST_MAX_NS 1000000000ULL /* but the names of much new code are read once */
#define WANT_FACTOR 10U		  /* in any case, and of look-ups: at most a tenth of a CPU */
#define FEW	    32U /* addresses: most of a look-up's cost does not depend on their number */
#define FEW_FACTOR  40U /* so after few of them the next ones wait for more */
#define JOBS_MAX    HOTSPOT_READERS /* of the helpers, most are for files */
#define JOBS_USER   6U

void hotspots_rest(struct hotspots_entry *e, uint64_t now_ns)
{
	const struct hotspot_job *r = e->reading;
	uint32_t nr = r->nr_pcs + r->nr_methods + r->nr_chains;
	uint64_t look_up_ns =
		(r->cost_ns - r->scan_ns) * (nr && nr < FEW ? FEW_FACTOR : WANT_FACTOR);
	uint64_t scan_ns = r->scan_ns * (r->vm.nr_new ? NEW_FACTOR : COST_FACTOR);
	/* A reading that hangs needs no CPU time, but its helper: half of the time at most. */
	uint64_t took_ns = now_ns - e->began_ns;

	scan_ns = MIN(scan_ns, MAX(COST_MAX_NS, r->scan_ns * WANT_FACTOR));
	/* No rest after it was opened: all of its samples wait for names. */
	e->due_ns = now_ns + (r->rc || e->scanned_ns ? MAX(look_up_ns, took_ns) : 0);
	if (r->scan)
		e->scan_due_ns = now_ns + MAX(HOTSPOTS_INTERVAL_NS, MAX(scan_ns, took_ns));
}

bool hotspots_has_turn(const struct hotspots *h, const struct hotspots_entry *e)
{
	uint32_t nr = hotspot_job_nr_left(), nr_user = 0;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		nr += h->entries[i]->runs;
		nr_user += h->entries[i]->runs && h->entries[i]->uid == e->uid;
	}
	/* In a pass, the place of one that has ended goes to the ones behind it. */
	return nr < JOBS_MAX && nr_user < JOBS_USER;
}
