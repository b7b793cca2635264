// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin [THREADS]: keep THREADS CPUs busy until killed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define THREADS_MAX 256

__attribute__((noinline)) static void burn(uint64_t *sink)
{
	for (int i = 0; i < 100000; i++)
		*sink = *sink * 6364136223846793005U + 1442695040888963407U;
}

static void *spin(void *arg)
{
	volatile uint64_t *out = arg;
	uint64_t sink = 1;

	for (;;) {
		burn(&sink);
		*out = sink;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t sinks[THREADS_MAX * 8];
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	for (int i = 1; i < nr && i < THREADS_MAX; i++)
		if (pthread_create(&thread, NULL, spin, &sinks[i * 8]))
			return 1;
	spin(&sinks[0]);
	return 0;
}
