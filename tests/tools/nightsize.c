// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nightsize DIR [SECONDS HZ [SIZE]]: write 24 hours, or SECONDS, of 2 busy CPUs at 99 Hz, or HZ, as
 * --keep would, and print the bytes; with SIZE, as --keep-size=SIZE would, which fails beyond it.
 *
 * The samples are 5,000 stacks of 12 functions of three objects, in 40 tasks: few of them are hot,
 * most are rare (each rank half as likely as the one of half its number). Each hour has other
 * stacks. Without SIZE the limits are larger than needed, so that all is kept.
 */
#include "sampler/count/history.c"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/internal.h"
#include "sampler/event/event.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "sampler/profile/profile.h"

#define T_SECOND  1000000000ull
#define NIGHT_S	  (24 * 3600)
#define TICK	  600 /* slices */
#define HZ	  99
#define HZ_MAX	  1000
#define STACKS	  5000
#define FUNCTIONS 3000
#define DEPTH	  12
#define HOUR	  36000

static uint64_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

struct night {
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct symbols *symbols;
	struct stacks *stacks;
	struct slices *slices;
	uint32_t objects_ids[3], ids[STACKS];
	uint32_t seconds, hz;
	const char *dir;
	uint64_t most; /* bytes of the folder */
};

static void make_tables(struct night *n)
{
	static const char *const paths[] = { "/usr/bin/program", "/usr/lib/libexample.so.6",
					     "/usr/lib/libc.so.6" };

	if (objects_new(&n->objects) || maps_new(&n->maps, n->objects, 1024) ||
	    places_new(&n->places, 1 << 20) || stacks_new(&n->stacks, 1 << 18, 256 << 20) ||
	    symbols_new(&n->symbols, n->places, n->objects, n->maps, NULL) ||
	    slices_new(&n->slices, 600 * T_SECOND, 64 << 20))
		out_of_memory();
	for (uint32_t i = 0; i < 3; i++) {
		const struct object_identity identity = { .kind = OBJECT_FILE, .ino = 100 + i };

		n->objects_ids[i] = objects_intern(n->objects, &identity, paths[i],
						   strlen(paths[i]), 1, 0x1000, 0x2000)
					    ->id;
	}
}

/* The stacks of the next hour. The tables have space ahead for 13 hours; a session grows them. */
static void make_stacks(struct night *n, uint32_t hour)
{
	places_grow(n->places);
	stacks_grow(n->stacks);
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t places[DEPTH];

		for (uint32_t k = 0; k < DEPTH; k++)
			places[k] = places_intern(n->places, n->objects_ids[rnd(3)],
						  0x1000 + 64ull * (rnd(FUNCTIONS) + hour * 100));
		n->ids[i] = stacks_intern(n->stacks, places, DEPTH);
		if (n->ids[i] == STACK_NONE)
			out_of_memory();
	}
}

/* A rank, each half as likely as the one of half its number. */
static uint32_t rank_of(void)
{
	uint32_t below = 2 + rnd(12);

	return rnd(below < 12 ? 1u << below : STACKS);
}

static void t_add_slice(struct night *n, uint32_t number)
{
	const struct slice about = { .begin_ns = T_SECOND + number * (T_SECOND / 10),
				     .end_ns = T_SECOND + (number + 1) * (T_SECOND / 10) };
	struct count counts[2 * HZ_MAX / 10 + 1];
	uint32_t nr = 2 * n->hz / 10 + (rnd(10) < 2 * n->hz % 10);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t rank = rank_of();

		counts[i] = (struct count){
			n->ids[rank % STACKS], (rank + rnd(2)) % 40, 0, 1, T_SECOND / n->hz, 0
		};
	}
	if (slices_add(n->slices, counts, nr, &about))
		out_of_memory();
}

static uint64_t bytes_of(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (!fstatat(dirfd(dir), e->d_name, &st, 0) && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return sum;
}

/* Write the slices, as the builder does in ticks of a minute. */
static void write_slices(struct night *n, struct keep *keep, const struct keep_input *in)
{
	for (uint32_t i = 0; i < n->seconds * 10; i++) {
		if (i % HOUR == 0)
			make_stacks(n, i / HOUR);
		t_add_slice(n, i);
		if (i % TICK != TICK - 1)
			continue;
		keep_tick(keep, in);
		/* The writer needs less; missed slices are in the history for 10 minutes. */
		usleep(5000);
		n->most = MAX(n->most, bytes_of(n->dir));
	}
	keep_tick(keep, in);
}

int main(int argc, char **argv)
{
	struct event event = { .name = "cpu-clock", .clock = true };
	uint64_t size = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	const struct keep_config config = { argc > 1 ? argv[1] : "", size ? size : 4ull << 30,
					    UINT64_MAX / 4 };
	struct night n = { .seconds = argc > 3 ? (uint32_t)atoi(argv[2]) : NIGHT_S,
			   .hz = argc > 3 ? (uint32_t)atoi(argv[3]) : HZ,
			   .dir = config.dir };
	struct assemble_input tables;
	double hz = n.hz;
	struct keep_input in = { .tables = &tables,
				 .events = &event,
				 .hz = &hz,
				 .nr_events = 1,
				 .settled_ns = UINT64_MAX };
	struct keep *keep;
	struct err e = { "usage: nightsize DIR [SECONDS HZ [SIZE]]" };
	uint64_t bytes;

	rcu_register_thread();
	make_tables(&n);
	tables = (struct assemble_input){ .maps = n.maps,
					  .places = n.places,
					  .symbols = n.symbols,
					  .objects = n.objects,
					  .stacks = n.stacks };
	in.slices = n.slices;
	if (argc < 2 || !n.hz || n.hz > HZ_MAX || keep_open(&keep, &config, &e)) {
		fprintf(stderr, "nightsize: %s\n", e.text);
		return 2;
	}
	write_slices(&n, keep, &in);
	keep_close(keep);
	bytes = MAX(n.most, bytes_of(n.dir));
	printf("%u s of 2 CPUs at %u Hz: %" PRIu64 " bytes, %.1f MiB\n", n.seconds, n.hz, bytes,
	       (double)bytes / (1 << 20));
	rcu_unregister_thread();
	/* That of the limit is in use, and no more. */
	if (size)
		return bytes <= size && bytes > size / 2 ? 0 : 1;
	return bytes <= 200ull << 20 ? 0 : 1;
}
