// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any .eh_frame through the gate and then libunwind, on any stack: no crash,
 * nothing read outside copy and section, a budget that holds.
 * The first 256 bytes are the stack.
 * FUZZ: unwind
 */
#include "unwind/internal.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"

#include <elf.h>
#include <signal.h>
#include <stdlib.h>

#define SP   0x7ffe00000000ULL
#define COPY 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Instead of libc's, for libunwind, which blocks all signals around each look into its cache: no
 * handler of the fuzzer steps.
 */
int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return old ? sigemptyset(old) : 0;
}

/* Step the frame at @vaddr of the object, and its callers as if they were also there. */
static void steps(struct step *s, struct step_input *in, uint64_t vaddr)
{
	struct arch_frame f = { .valid = 0 };
	bool signal;

	for (unsigned int reg = 0; reg < 17; reg++)
		arch_set(&f, reg, reg == 7 ? SP : SP + 16 * reg);
	in->vaddr = in->pc_vaddr = vaddr;
	in->first = true;
	if (step_gate(s, in, &signal) != STEP_CALLER)
		return;
	for (int i = 0; i < 4; i++) {
		if (step_frame(s, in, &f) != STEP_CALLER)
			return;
		if (!arch_has(&f, 16) || !arch_has(&f, 7))
			abort();
		in->first = false;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t next_id = OBJECT_ID_FIRST;
	static struct step *s;
	struct image image = { .machine = EM_X86_64 };
	struct stack_copy copy = { SP, data, COPY, true, { 0 }, NULL };
	struct object object = { .id = 0 };
	struct step_input in = { .copy = &copy, .object = &object, .image = &image };
	struct ehframe_fde fde;

	if (size < COPY || (!s && step_new(&s, &arch_x86_64, NULL)))
		return 0;
	/* A new object each time: libunwind remembers rules by address. */
	if (++next_id >= 1u << 23)
		next_id = OBJECT_ID_FIRST;
	object.id = next_id;
	ehframe_init(&image.eh, data + COPY, size - COPY, 0x10000, EM_X86_64);
	step_begin(s);
	for (uint32_t i = 0; i < image.eh.nr_fdes && i < 16; i++) {
		if (!ehframe_at(&image.eh, i, &fde))
			abort();
		in.fde = &fde;
		steps(s, &in, in.fde->start);
		steps(s, &in, in.fde->start + in.fde->size - 1);
	}
	ehframe_fini(&image.eh);
	return 0;
}
