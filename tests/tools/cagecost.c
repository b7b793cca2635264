/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cagecost names|lines|images FILE [ROUNDS], cagecost perfmap ENTRIES [ROUNDS]: CPU time of readers
 * in the sandbox and in the calling thread: demangled names of the ELF file, chains of its DWARF, a
 * perf map, and images of the ELF files in the list FILE, one path a line. Prints milliseconds of
 * each round, then the medians, and the throughput in the sandbox as a share of that without it.
 */
#include "symbols/jit/perfmap.c"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/sandbox/sandbox.h"
#include "symbols/jit/internal.h"
#include "symbols/name/name.h"
#include "symbols/elf/elf.h"
#include "symbols/image/internal.h"
#include "symbols/dwarf/internal.h"
#include "symbols/symbols.h"
#include "symbols/base/base.h"
#include "symbols/script/script.h"

#define ROUNDS_MAX   101U
#define PLACES	     8192U
#define NAMES_A_CALL 1000U
#define REPEAT_NAMES 20U
#define PLACES_EACH  4U

/* Work on the file once. Return the number of results. */
typedef uint64_t (*work_fn)(const char *path);

/* CPU time before the readers, not counted. */
static uint64_t before_ns;

/* Return the CPU time of this process. */
static uint64_t process_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int open_file(const char *path, uint64_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "cagecost: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

static struct image *read_image(const char *path)
{
	struct image_input in = { .path = path };
	struct image *image;

	in.fd = open_file(path, &in.size);
	if (!image_read(&image, &in, NULL))
		return image;
	fprintf(stderr, "cagecost: cannot read %s\n", path);
	exit(1);
}

/* Demangle all names of @image, NAMES_A_CALL at a time. */
static uint64_t demangle_all(const struct image *image)
{
	struct demangler d = { .nr = 0 };
	char buf[IMAGE_STUB_MAX];
	uint64_t clean = 0;

	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		size_t size;
		const char *name = image_symbol_name(image, &image->symbols[i], buf, &size);

		demangler_want(&d, 0, name, size);
		if (d.nr - d.nr_done == NAMES_A_CALL)
			demangler_run(&d);
	}
	demangler_run(&d);
	for (uint32_t i = 0; i < d.nr; i++)
		clean += d.names[i].clean_size != 0;
	demangler_fini(&d);
	return clean;
}

static uint64_t work_names(const char *path)
{
	const struct image *image = read_image(path);
	uint64_t clean = 0;

	before_ns = process_ns();
	for (uint32_t i = 0; i < REPEAT_NAMES; i++)
		clean += demangle_all(image);
	return clean;
}

/* Parse a map as Node writes it. */
static uint64_t work_perfmap(const char *entries)
{
	FILE *f = tmpfile();
	struct perfmap *map;
	size_t got;
	int copy;

	for (uint64_t i = 0; f && i < strtoull(entries, NULL, 10); i++)
		fprintf(f,
			"%llx %llx LazyCompile:*function%llu "
			"node:internal/modules/file%llu.js:%llu:9\n",
			0x7f0000000000ULL + i * 96, 80 + i % 16ULL, i + 0ULL, i % 500ULL,
			i % 3000ULL);
	if (!f || fflush(f))
		return 0;
	before_ns = process_ns();
	copy = jitcopy(fileno(f), 0, PERFMAP_SIZE_MAX, NULL, &got);
	return copy < 0 || perfmap_sandbox_parse(&map, copy, got) ? 0 : perfmap_nr(map);
}

/* Look @nr places up. Return the number of chains. */
static uint64_t look_up(struct dwarf_sandbox *d, const uint64_t *vaddrs, uint32_t nr)
{
	uint64_t sum = 0;

	for (uint32_t done = 0; done < nr;) {
		uint32_t part = MIN(nr - done, DWARF_SANDBOX_PLACES);
		struct dwarf_chains c;

		if (dwarf_sandbox_chains(d, vaddrs + done, part, &c) || !c.nr)
			break;
		done += c.nr;
		for (uint32_t i = 0; i < c.nr; i++)
			sum += c.nr_frames[i] > 0;
		dwarf_chains_free(&c);
	}
	return sum;
}

/* Take places of the functions of @image, evenly spread. */
static uint32_t take_places(const struct image *image, uint64_t vaddrs[PLACES])
{
	uint32_t step = MAX(image->nr_symbols * PLACES_EACH / PLACES, 1U), nr = 0;

	for (uint32_t i = 0; i < image->nr_symbols; i += step) {
		const struct image_symbol *s = &image->symbols[i];

		for (uint32_t k = 0; k < PLACES_EACH && nr < PLACES; k++)
			vaddrs[nr++] = s->vaddr + s->size * k / PLACES_EACH;
	}
	return nr;
}

static uint64_t work_lines(const char *path)
{
	char *real = realpath(path, NULL);
	struct load_where where = { .identity = { .kind = OBJECT_FILE }, .seen.path = real };
	static uint64_t vaddrs[PLACES];
	struct dwarf_sandbox *lines;
	struct stat st;
	uint32_t nr;

	if (!real || stat(real, &st))
		return 0;
	where.identity.ino = st.st_ino;
	nr = take_places(read_image(real), vaddrs);
	before_ns = process_ns();
	return dwarf_object_open(&where, false, NULL, &lines) ? 0 : look_up(lines, vaddrs, nr);
}

static bool with_sandbox; /* in this process */

/* Build and keep the image of @path, as proftop does: in the sandbox, or from the file itself. */
static bool build_image(const char *path)
{
	struct image_input in = { .no_debug_files = true };
	struct image_parts parts = { 0 };
	struct image *image = NULL;
	struct elffile f;
	int rc;

	in.fd = open_file(path, &in.size);
	if (with_sandbox) {
		rc = image_read(&image, &in, NULL);
	} else {
		rc = elffile_open(&f, in.fd, NULL, in.size, NULL);
		parts.file = &f;
		if (!rc) {
			rc = image_build(&image, &parts);
			if (!rc)
				elfsig_find(image, &f);
			elffile_close(&f);
		}
	}
	close(in.fd);
	return !rc;
}

static uint64_t work_images(const char *list)
{
	FILE *f = fopen(list, "re");
	char path[4096];
	uint64_t nr = 0;

	before_ns = process_ns();
	while (f && fscanf(f, "%4095s", path) == 1)
		nr += build_image(path);
	return nr;
}

/* Measure @work in a new process: nanoseconds of CPU time and the number of results. */
static void measure(work_fn work, const char *path, bool caged, uint64_t out[2])
{
	int pair[2];
	pid_t pid;

	if (pipe(pair))
		exit(1);
	pid = fork();
	if (!pid) {
		if (caged) {
			const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = { NULL };

			symbols_sandbox_readers(false, readers);
			sandbox_start(readers);
		}
		with_sandbox = caged;
		out[1] = work(path);
		out[0] = process_ns() - before_ns + (caged ? sandbox_cpu_ns() : 0);
		_exit(write(pair[1], out, 2 * sizeof(*out)) < 0);
	}
	close(pair[1]);
	if (read(pair[0], out, 2 * sizeof(*out)) < 0 || !out[1]) {
		fprintf(stderr, "cagecost: %s: nothing was read\n", path);
		exit(1);
	}
	close(pair[0]);
	waitpid(pid, NULL, 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		work_fn work;
	} works[] = { { "names", work_names },
		      { "lines", work_lines },
		      { "perfmap", work_perfmap },
		      { "images", work_images } };
	uint32_t rounds = argc > 3 ? (uint32_t)atoi(argv[3]) : 5, kind = 0;
	double ms[3][ROUNDS_MAX];

	while (argc > 2 && kind < ARRAY_SIZE(works) && strcmp(works[kind].name, argv[1]))
		kind++;
	if (argc < 3 || kind == ARRAY_SIZE(works) || !rounds || rounds > ROUNDS_MAX) {
		fputs("usage: cagecost names|lines|images FILE [ROUNDS]\n"
		      "       cagecost perfmap ENTRIES [ROUNDS]\n",
		      stderr);
		return 2;
	}
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t direct[2], caged[2];

		measure(works[kind].work, argv[2], i % 2, i % 2 ? caged : direct);
		measure(works[kind].work, argv[2], !(i % 2), i % 2 ? direct : caged);
		ms[0][i] = (double)direct[0] / 1e6;
		ms[1][i] = (double)caged[0] / 1e6;
		ms[2][i] = 100 * ms[0][i] / ms[1][i];
		printf("%.1f ms direct, %.1f ms caged, %llu results\n", ms[0][i], ms[1][i],
		       (unsigned long long)caged[1]);
		if (caged[1] != direct[1])
			fprintf(stderr, "cagecost: %llu results without the cage\n",
				(unsigned long long)direct[1]);
	}
	for (int k = 0; k < 3; k++)
		qsort(ms[k], rounds, sizeof(double), compare);
	printf("%s: %.1f ms direct, %.1f ms caged, throughput %.0f %%\n", argv[1],
	       ms[0][rounds / 2], ms[1][rounds / 2], ms[2][rounds / 2]);
	return 0;
}
