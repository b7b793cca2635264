// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Registers from perf's order to DWARF's; which CPU this is.
 *
 * Any thread; no state. The only place of the project that asks for the CPU.
 */
#include "unwind/arch.h"

#include <string.h>

const struct arch_ops *arch_native(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#else
	return NULL;
#endif
}

static const struct arch_ops *const known[] = { &arch_x86_64, &arch_aarch64 };

const struct arch_ops *arch_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i]->machine == machine)
			return known[i];
	return NULL;
}

const struct arch_ops *arch_named(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i]->name, name))
			return known[i];
	return NULL;
}

void arch_load(const struct arch_ops *arch, struct arch_frame *f, uint64_t mask, const void *regs)
{
	const uint8_t *p = regs;

	f->valid = 0;
	for (; mask; mask &= mask - 1) {
		unsigned int perf = (unsigned int)__builtin_ctzll(mask);
		uint64_t value;

		memcpy(&value, p, sizeof(value));
		p += sizeof(value);
		if (perf >= arch->nr_perf || arch->dwarf_of_perf[perf] == ARCH_NO_REG)
			continue;
		if (value == UINT64_MAX && arch->unavailable >> arch->dwarf_of_perf[perf] & 1)
			continue;
		frame_set(f, arch->dwarf_of_perf[perf], value);
	}
}
