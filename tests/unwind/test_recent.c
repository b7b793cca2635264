// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recent look-ups: of two mappings at one address, each sample is in the one of its time, in any
 * order of the samples.
 * Live: waits for threads or processes.
 */
#include "unwind/unwind.h"

#include "tests/prelude_rcu.h"

#include <linux/perf_event.h>

#include "tests/unwind/shot.h"
#include "tests/unwind/world.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"

#define PID	0x3ffffff0
#define START	0x7e0000000000ULL
#define SIZE	0x10000U
#define KEEP_NS 1000000000ULL

static void map_file(struct world *w, uint64_t ino, uint64_t time_ns)
{
	static const char path[] = "/made/by/this/test";
	const struct maps_mmap ev = {
		.pid = PID,
		.tid = PID,
		.start = START,
		.size = SIZE,
		.time_ns = time_ns,
		.prot = PROT_READ | PROT_EXEC,
		.identity = { .kind = OBJECT_FILE, .maj = 77, .ino = ino, .ino_generation = 1 },
		.filename = path,
		.filename_size = sizeof(path) - 1,
	};

	maps_on_mmap(w->maps, &ev);
}

/* Return the inode of the file in which a sample at @time_ns is. */
static uint64_t file_at(struct world *w, struct unwinder *u, uint64_t time_ns)
{
	static struct unwind_result result;
	static uint64_t stack[2], regs[64];
	struct unwind_input in = {
		.regs = regs,
		.regs_mask = SHOT_MASK,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack = (const uint8_t *)stack,
		.stack_size = sizeof(stack),
		.time_ns = time_ns,
	};
	struct maps_hit hit;
	const struct place *place;

	regs[SHOT_SP] = 0x7ffe00000000ULL;
	regs[SHOT_IP] = START + 0x100;
	maps_find(w->maps, maps_tasks(w->maps), PID, PID, time_ns, &hit);
	in.space = hit.space;
	unwind_sample(u, &in, &result);
	assert_int_equal(result.nr, 1);
	place = places_at(w->places, result.place[0]);
	return objects_at(w->objects, place->object)->identity.ino;
}

TEST(test_ended_mapping)
{
	uint64_t now = time_now_ns();
	struct unwinder *u;
	struct world w;

	world_new(&w);
	u = w.row;
	maps_on_comm(w.maps, PID, PID, "made", 4, true, now);
	map_file(&w, 1, now + 1000);
	map_file(&w, 2, now + 2000);
	maps_publish(w.maps, now + 3000, KEEP_NS);
	assert_int_equal(file_at(&w, u, now + 1500), 1);
	assert_int_equal(file_at(&w, u, now + 2500), 2);
	assert_int_equal(file_at(&w, u, now + 1500), 1);
	assert_int_equal(file_at(&w, u, now + 2500), 2);
	world_free(&w);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
