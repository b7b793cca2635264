// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Convert registers from perf's order to DWARF's; know the CPU of this machine.
 *
 * Any thread; no state. The only file of the project with conditional code for
 * CPUs.
 */
#include "unwind/arch.h"

#include <assert.h>
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

static void make_order(struct arch_order *o, uint64_t mask)
{
	*o = (struct arch_order){ .arch = o->arch, .mask = mask };
	for (uint8_t from = 0; mask; mask &= mask - 1, from++) {
		unsigned int perf = (unsigned int)__builtin_ctzll(mask);
		uint8_t reg = perf < o->arch->nr_perf ? o->arch->dwarf_of_perf[perf] : ARCH_NO_REG;

		if (reg == ARCH_NO_REG)
			continue;
		assert(o->nr < o->arch->nr_regs);
		o->kept[o->nr].from = from;
		o->kept[o->nr++].reg = reg;
		o->valid |= 1ULL << reg;
	}
}

void arch_load(struct arch_order *o, struct arch_frame *f, uint64_t mask, const void *regs)
{
	const uint8_t *p = regs;

	if (o->mask != mask)
		make_order(o, mask);
	f->valid = o->valid;
	for (uint32_t i = 0; i < o->nr; i++) {
		uint8_t reg = o->kept[i].reg;
		uint64_t value;

		memcpy(&value, p + sizeof(value) * o->kept[i].from, sizeof(value));
		if (value == UINT64_MAX && o->arch->unavailable >> reg & 1)
			f->valid &= ~(1ULL << reg);
		else
			f->reg[reg] = value;
	}
}
