// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a fuzz target over its corpus, without a fuzzer: part of make check.
 *
 * The program's name says which: fuzz_x reads tests/fuzz/corpus/fuzz_x/.
 */
#include <dirent.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_bytes(const uint8_t *bytes, size_t size)
{
	/* A separate block of this size, so that ASan sees the first byte too far. */
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int run_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t size;

	if (!f) {
		perror(path);
		return 1;
	}
	size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	run_bytes(bytes, size);
	/* Also cut and flipped: the cheapest neighbours of a good input. */
	for (size_t cut = 1; cut < size && cut < 64; cut++)
		run_bytes(bytes, size - cut);
	for (size_t i = 0; i < size && i < 256; i++) {
		bytes[i] ^= 0x80;
		run_bytes(bytes, size);
		bytes[i] ^= 0x80;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char dir[256], path[1024];
	struct dirent *entry;
	int nr = 0, failed = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "tests/fuzz/corpus/%s", basename(argv[0]));
	d = opendir(dir);
	if (!d) {
		printf("no corpus %s\n", dir);
		return 1;
	}
	run_bytes((const uint8_t *)"", 0);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		failed |= run_file(path);
		nr++;
	}
	closedir(d);
	printf("%d inputs\n", nr);
	return nr == 0 || failed;
}
