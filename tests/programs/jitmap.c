/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A JIT compiler with a perf map (/tmp/perf-PID.map): one function made at run
 * time, hot until killed. jitmap NAME: called that in the map, between two
 * others; without NAME it writes no map.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
/* dec rdi; jnz; ret */
static const uint8_t code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
/* subs x0, x0, #1; b.ne; ret */
static const uint32_t code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#else
#error "no code for this machine"
#endif

int main(int argc, char **argv)
{
	uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*fn)(uint64_t);
	char path[64];
	FILE *map;

	if (at == MAP_FAILED)
		return 1;
	at += 64;
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(code));
	if (argc > 1) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		map = fopen(path, "w");
		if (!map)
			return 1;
		fprintf(map, "%lx 40 jit_before\n%lx %zx %s\n%lx 40 jit_after\n",
			(unsigned long)at - 64, (unsigned long)at, sizeof(code), argv[1],
			(unsigned long)at + 64);
		fclose(map);
	}
	fn = (void (*)(uint64_t))(uintptr_t)at;
	for (;;)
		fn(1000000);
}
