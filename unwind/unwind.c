// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An unwinder: create, free, unwind samples, verify, statistics.
 *
 * Runs on the sampler thread that owns it; statistics are read by any thread.
 * Invariant: each sample is counted under exactly one reason to stop.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/name/name.h"

#define ROWS_DEFAULT (1u << 22)

/* Use the registers and tables of processes of @abi. */
static void use_abi(struct unwinder *u, uint64_t abi)
{
	const struct arch_ops *arch = u->arch;
	struct arch_order order = u->order;
	struct step *step = u->step;

	if (!u->other.arch || (abi == PERF_SAMPLE_REGS_ABI_32) == (arch->word == 4))
		return;
	u->arch = u->other.arch;
	u->order = u->other.order;
	u->step = u->other.step;
	u->other.arch = arch;
	u->other.order = order;
	u->other.step = step;
}

/* @allowance: the reads are charged to the process, which may have few left. */
static int walk_or_redo(struct unwinder *u, const struct unwind_input *in,
			struct unwind_result *out, bool rows, bool allowance)
{
	int stop;

	out->nr = out->nr_guessed = 0;
	out->nr_v8 = out->nr_v8_guessed = out->nr_loop_guessed = 0;
	out->asked = out->maps_stale = false;
	if (!in->space)
		return in->regs_abi == PERF_SAMPLE_REGS_ABI_NONE ? UNWIND_NO_USER : UNWIND_PENDING;
	if (in->regs_abi == PERF_SAMPLE_REGS_ABI_NONE || !in->regs)
		return UNWIND_BAD_REGS;
	use_abi(u, in->regs_abi);
	if (allowance)
		step_begin_of(u->step, in->pid, in->time_ns);
	else
		step_begin(u->step);
	stop = walk_stack(u, in, out, rows);
	if (stop == WALK_REDO) {
		unwinder_count(&u->count.redone, 1);
		stop = walk_stack(u, in, out, false);
	}
	step_end(u->step);
	return stop;
}

/*
 * Return whether both walks found the same. One that ran out of reads is the beginning of the
 * other; and so is @check where its gate refuses a table, of which a row is known by another table
 * with the same instructions.
 */
static bool agree(const struct unwind_result *check, const struct unwind_result *out)
{
	bool check_ends = check->stop == UNWIND_BUDGET || check->stop == UNWIND_CFI_REFUSED;
	uint32_t nr = MIN(check->nr, out->nr);

	if (memcmp(check->ip, out->ip, nr * sizeof(out->ip[0])) != 0)
		return false;
	return (check->stop == out->stop && check->nr == out->nr) ||
	       (check_ends && nr == check->nr) || (out->stop == UNWIND_BUDGET && nr == out->nr);
}

/* Return whether the walk had to do without something that is being read. */
static bool lacks_some(const struct unwind_result *r)
{
	return r->asked || r->new_code || r->stop == UNWIND_PENDING;
}

/*
 * Unwind the sample by libunwind alone, with reads that are not charged to the process. Where
 * something is being read, one walk may have it and the other not: that is no mistake of either.
 */
static void verify(struct unwinder *u, const struct unwind_input *in,
		   const struct unwind_result *out)
{
	struct unwind_result *check = &u->scratch;

	check->stop = (enum unwind_stop)walk_or_redo(u, in, check, false, false);
	if (lacks_some(check) || lacks_some(out))
		return;
	unwinder_count(&u->count.verified, 1);
	if (!agree(check, out))
		unwinder_count(&u->count.verify_differ, 1);
}

void unwind_sample(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out)
{
	struct walk_counters *c = &u->count;

	out->stop = (enum unwind_stop)walk_or_redo(u, in, out, !u->step_only, u->allowance);
	assert((unsigned int)out->stop < UNWIND_NR_STOPS && out->nr_guessed <= out->nr);
	unwinder_count(&c->samples, 1);
	unwinder_count(&c->frames, out->nr);
	unwinder_count(&c->guessed, out->nr_guessed);
	unwinder_count(&c->stop[out->stop], 1);
	if (u->verify_every && u->verify_in-- == 0) {
		u->verify_in = u->verify_every - 1;
		verify(u, in, out);
	}
	reclaim_reader_done();
}

int unwind_new_with(struct unwinder **out, struct places *places, struct objects *objects,
		    const struct unwind_config *config, struct err *e)
{
	static const struct unwind_config none;
	const struct unwind_config *c = config ? config : &none;
	const struct arch_ops *arch = c->machine ? arch_of(c->machine) : arch_native();
	struct unwinder *u;
	int rc;

	if (!arch)
		return err_set(e, -ENOTSUP, "user stacks cannot be unwound on this CPU");
	u = aligned_alloc(CACHELINE, (sizeof(*u) + CACHELINE - 1) / CACHELINE * CACHELINE);
	if (!u)
		return err_set(e, -ENOMEM, "out of memory");
	memset(u, 0, sizeof(*u));
	u->arch = u->order.arch = arch;
	u->places = places;
	u->serial = places_serial(places);
	if (arch == arch_native()) {
		u->step_only = c->step_only;
		u->verify_every = c->verify_every;
		u->allowance = c->allowance && !c->step_only;
		u->ask_calls = c->ask_calls;
	}
	u->rows = c->rows;
	u->own_rows = !c->rows;
	rc = u->rows ? 0 : unwind_rows_new(&u->rows, ROWS_DEFAULT);
	if (rc)
		err_set(e, rc, "out of memory for unwind rows");
	else
		rc = step_new(&u->step, arch, e);
	if (!rc && arch == &arch_x86_64) {
		u->other.arch = u->other.order.arch = &arch_i386;
		rc = step_new(&u->other.step, &arch_i386, e);
	}
	if (rc) {
		unwind_free(u);
		return rc;
	}
	*out = u;
	return 0;
}

bool unwind_use(struct unwinder *u, struct places *places, struct unwind_rows *rows)
{
	if (u->serial == places_serial(places))
		return false;
	assert(rows && !u->own_rows);
	u->places = places;
	u->serial = places_serial(places);
	u->rows = rows;
	memset(u->tried, 0, sizeof(u->tried));
	memset(&u->recent, 0, sizeof(u->recent));
	return true;
}

void unwind_free(struct unwinder *u)
{
	if (!u)
		return;
	step_free(u->step);
	step_free(u->other.step);
	if (u->own_rows)
		unwind_rows_free(u->rows);
	free(u);
}

void unwind_stats(const struct unwinder *u, struct unwind_stats *out)
{
	const struct walk_counters *c = &u->count;

#define READ(field) atomic_load_explicit(&c->field, memory_order_relaxed)
	*out = (struct unwind_stats){
		.nr_samples = READ(samples),
		.nr_frames = READ(frames),
		.nr_guessed = READ(guessed),
		.nr_row_hits = READ(row_hits),
		.nr_steps = READ(steps),
		.nr_rows = READ(rows),
		.nr_rows_differ = READ(rows_differ),
		.nr_redone = READ(redone),
		.nr_verified = READ(verified),
		.nr_verify_differ = READ(verify_differ),
	};
	for (int i = 0; i < UNWIND_NR_STOPS; i++)
		out->nr_stop[i] = READ(stop[i]);
#undef READ
}

int unwind_rows_new(struct unwind_rows **out, uint32_t max_places)
{
	struct unwind_rows *t = xcalloc(1, sizeof(*t));
	void *mem = mmap(NULL, (size_t)max_places * sizeof(*t->rows), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED) {
		free(t);
		return -ENOMEM;
	}
	t->rows = mem;
	t->nr = max_places;
	*out = t;
	return 0;
}

int unwind_rows_renew(struct unwind_rows **out, const struct unwind_rows *old)
{
	int rc = unwind_rows_new(out, old->nr);

	for (uint32_t i = 0; !rc && i < ROWS_PROGRAMS; i++)
		atomic_init(&(*out)->programs[i],
			    atomic_load_explicit(&old->programs[i], memory_order_relaxed));
	return rc;
}

void unwind_rows_move(struct unwind_rows *to, uint32_t to_place, const struct unwind_rows *from,
		      uint32_t place)
{
	uint64_t row = rows_get(from, place);

	if (row_kind(row) != ROW_UNKNOWN)
		rows_put(to, to_place, row);
}

void unwind_rows_free(struct unwind_rows *t)
{
	if (!t)
		return;
	munmap(t->rows, t->nr * sizeof(*t->rows));
	free(t);
}

const char *unwind_stop_name(enum unwind_stop stop)
{
	static const char *const names[UNWIND_NR_STOPS] = {
		[UNWIND_COMPLETE] = "complete",
		[UNWIND_NO_USER] = "no user stack",
		[UNWIND_TRUNCATED] = "truncated",
		[UNWIND_DEPTH] = "too deep",
		[UNWIND_PENDING] = "pending",
		[UNWIND_NO_MAP] = "outside all mappings",
		[UNWIND_NO_CFI] = "no unwind tables",
		[UNWIND_CFI_REFUSED] = "refused unwind tables",
		[UNWIND_BAD_FRAME] = "bad frame",
		[UNWIND_BUDGET] = "over budget",
		[UNWIND_BAD_REGS] = "no registers",
		[UNWIND_OUTSIDE] = "outside this PID namespace",
		[UNWIND_GAP] = "truncated at unused memory",
		[UNWIND_SWITCHED] = "truncated at a switch of stacks",
		[UNWIND_PROBE] = "return probe of another tool",
		[UNWIND_NO_CALL] = "no call before a return address",
	};

	return (unsigned int)stop < UNWIND_NR_STOPS ? names[stop] : "?";
}

uint16_t unwind_machine(const char *name)
{
	static const struct arch_ops *const known[] = { &arch_x86_64, &arch_aarch64 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i]->name, name))
			return known[i]->machine;
	return 0;
}

uint64_t unwind_register(const void *regs, uint64_t regs_mask, unsigned int number)
{
	const struct arch_ops *arch = arch_native();
	struct arch_order order = { .arch = arch };
	struct arch_frame f;

	if (!arch || !regs || number >= arch->nr_regs)
		return 0;
	arch_load(&order, &f, regs_mask, regs);
	return arch_has(&f, number) ? f.reg[number] : 0;
}

bool unwind_stack_pointer(const void *regs, uint64_t regs_mask, uint64_t *sp)
{
	const struct arch_ops *arch = arch_native();
	struct arch_order order = { .arch = arch };
	struct arch_frame f;

	if (!arch || !regs)
		return false;
	arch_load(&order, &f, regs_mask, regs);
	if (!arch_has(&f, arch->sp))
		return false;
	*sp = f.reg[arch->sp];
	return true;
}

uint64_t unwind_regs_mask(void)
{
	const struct arch_ops *arch = arch_native();

	return arch ? arch->regs_mask : 0;
}

/* Find the word of a register in NT_PRSTATUS; NULL: it is not there. */
static const uint64_t *find_user(const struct arch_ops *arch, const uint64_t *user, size_t size,
				 uint8_t reg)
{
	for (unsigned int i = 0; i < arch->nr_user && (i + 1) * sizeof(*user) <= size; i++)
		if (arch->dwarf_of_user[i] == reg)
			return &user[i];
	return NULL;
}

bool unwind_regs_of_user(const uint64_t *user, size_t size, uint64_t regs[static UNWIND_REGS_MAX])
{
	const struct arch_ops *arch = arch_native();
	unsigned int nr = 0;

	for (unsigned int i = 0; arch && i < arch->nr_perf; i++) {
		const uint64_t *word;

		if (!(arch->regs_mask >> i & 1))
			continue;
		word = find_user(arch, user, size, arch->dwarf_of_perf[i]);
		if (!word || nr == UNWIND_REGS_MAX)
			return false;
		regs[nr++] = *word;
	}
	return nr > 0;
}

uint64_t unwind_regs_mask_of_stack(void)
{
	const struct arch_ops *arch = arch_native();
	uint64_t mask = 0;

	for (unsigned int i = 0; arch && i < arch->nr_perf; i++)
		if (arch->dwarf_of_perf[i] == arch->sp || arch->dwarf_of_perf[i] == arch->pc)
			mask |= 1ULL << i;
	return mask;
}
