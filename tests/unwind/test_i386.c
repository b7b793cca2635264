// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stack of a 32-bit process, made by hand: tables of i386, registers of a sample with ABI_32.
 * Live: reads a clock.
 */
#include "tests/unwind/row_at.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/prelude_rcu.h"
#include "tests/makers/eh_frame.h"
#include "tests/unwind/world.h"

#define PID  4321
#define BASE 0x56550000ULL
#define SP   0xffffd000ULL

enum {
	LEAF = 0x1000,
	FRAMED = 0x2000,
	MAIN = 0x3000,
	START = 0x4000,
	PLT = 0x5000,
	RETURN = 0x6000
};

/* push %ebp; mov %esp,%ebp */
static const uint8_t framed[] = { 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5 };
/* As gcc aligns the stack of main(): CFA = *(ebp - 4), the saved ebp is at ebp. */
static const uint8_t aligned[] = { 0x0f, 3, 0x75, 0x7c, 0x06, 0x10, 5, 2, 0x75, 0 };
static const uint8_t root[] = { 0x07, 8 };
/* As linkers write it: sp + 4 + ((eip & 15) >= 11) * 4. */
static const uint8_t plt[] = {
	0x0f, 11, 0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22
};
/* As the vdso's: CFA = *(esp + 32). */
static const uint8_t handled[] = { 0x0f, 3, 0x74, 32, 0x06 };

static const uint8_t cie[] = { 0x14, 0,	   0, 0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
			       1,    0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1,   0,   0 };

/* The same with "S": the frame above it was interrupted. */
static const uint8_t signal_cie[] = { 0x14, 0, 0,    0, 0, 0,	 0, 0, 1, 'z', 'R', 'S',
				      0,    1, 0x7c, 8, 1, 0x1b, 0, 0, 0, 0,   0,   0 };

static struct image *make_image(void)
{
	static struct eh_section section;
	struct image *image = xcalloc(1, sizeof(*image));
	uint8_t *bytes;

	memcpy(section.bytes, cie, sizeof(cie));
	section.size = sizeof(cie);
	eh_fde(&section, 0, LEAF, 0x100, NULL, 0);
	eh_fde(&section, 0, FRAMED, 0x100, framed, sizeof(framed));
	eh_fde(&section, 0, MAIN, 0x100, aligned, sizeof(aligned));
	eh_fde(&section, 0, START, 0x100, root, sizeof(root));
	eh_fde(&section, 0, PLT, 0x100, plt, sizeof(plt));
	memcpy(section.bytes + section.size, signal_cie, sizeof(signal_cie));
	section.size += sizeof(signal_cie);
	eh_fde(&section, (uint32_t)(section.size - sizeof(signal_cie)), RETURN, 0x10, handled,
	       sizeof(handled));
	eh_put(&section, 0, 4);
	bytes = xcalloc(1, section.size);
	memcpy(bytes, section.bytes, section.size);
	assert_int_equal(ehframe_init(&image->eh, bytes, section.size, EH_VADDR, EM_386), 0);
	assert_int_equal(image->eh.nr_fdes, 6);
	image->machine = EM_386;
	image->elf_class = ELFCLASS32;
	image->segments = xcalloc(1, sizeof(*image->segments));
	image->nr_segments = 1;
	image->segments[0] = (struct image_segment){ 0, 0, 1 << 21, 1 << 21, true };
	return image;
}

/* Unwind a stack at SP from the registers, twice: read, then cached. */
static void walk(bool is_vdso, uint64_t *regs, const uint32_t *stack, size_t size,
		 const uint64_t *ips, uint32_t nr)
{
	const struct unwind_config config = { .machine = EM_X86_64 };
	static struct unwind_result result;
	struct unwinder *u;
	struct world w;
	struct unwind_input in;

	world_new(&w);
	in = (struct unwind_input){
		.regs = regs,
		.regs_mask = 0xff01ff,
		.regs_abi = PERF_SAMPLE_REGS_ABI_32,
		.stack = (const uint8_t *)stack,
		.stack_size = size,
		.space = world_map(&w, make_image(), PID, BASE, 1 << 21),
		.time_ns = time_now_ns(),
	};
	if (is_vdso)
		space_find(in.space, BASE, in.time_ns)->object->identity.kind = OBJECT_VDSO;
	world_must(unwind_new_with(&u, w.places, w.objects, &config, NULL));
	/* Between two samples of 64-bit processes. */
	for (int n = 0; n < 3; n++) {
		struct unwind_input wide = in;
		const uint64_t pc = regs[8];

		unwind_sample(u, &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, 0);
		assert_int_equal(result.nr, nr);
		for (uint32_t i = 0; i < nr; i++)
			assert_int_equal(result.ip[i] - BASE, ips[i]);
		wide.regs_abi = PERF_SAMPLE_REGS_ABI_64;
		wide.stack_size = 0;
		regs[8] = BASE + LEAF + 0x80;
		unwind_sample(u, &wide, &result);
		regs[8] = pc;
		assert_int_equal(result.nr, 1);
	}
	unwind_free(u);
	world_free(&w);
}

TEST(test_stack)
{
	static const uint64_t ips[] = { LEAF + 0x20, FRAMED + 0x2f, MAIN + 0x3f, START + 0x4f };
	/* Below main's ebp is the CFA that it saved; 40 bytes above, that frame. */
	uint32_t stack[32] = {
		[0] = BASE + FRAMED + 0x30, [4] = SP + 4 * 10, [5] = BASE + MAIN + 0x40,
		[9] = SP + 4 * 21,	    [10] = 0,	       [20] = BASE + START + 0x50,
	};
	uint64_t regs[17] = { [6] = SP + 4 * 4, [7] = SP, [8] = BASE + LEAF + 0x20 };

	walk(false, regs, stack, sizeof(stack), ips, ARRAY_SIZE(ips));
}

/*
 * A signal handler returns by the vdso: its table says where the kernel's copy of the registers
 * is. It has interrupted an entry of a PLT that has pushed its number.
 */
TEST(test_signal)
{
	static const uint64_t ips[] = { LEAF + 0x20, RETURN, PLT + 0x1b, START + 0x4f };
	uint32_t stack[32] = { [0] = BASE + RETURN + 1,
			       [9] = SP + 4 * 20,
			       [16] = BASE + PLT + 0x1b,
			       [20] = 8,
			       [21] = BASE + START + 0x50 };
	uint64_t regs[17] = { [7] = SP, [8] = BASE + LEAF + 0x20 };

	walk(false, regs, stack, sizeof(stack), ips, ARRAY_SIZE(ips));
	/* The same while the kernel returns, behind the end of the code; the word before is pushed.
	 */
	stack[16] = BASE + PLT + 0x1a;
	stack[20] = BASE + START + 0x50;
	regs[7] = SP + 4;
	regs[8] = BASE + RETURN + 0x10;
	walk(true, regs, stack + 1, sizeof(stack) - 4,
	     (const uint64_t[]){ RETURN + 0x10, PLT + 0x1a, START + 0x4f }, 3);
}

#define CODE_AT (EH_VADDR - 0x400)

/* A file of i386 with @code at CODE_AT. */
static struct image *read_file(const uint8_t *code, uint32_t size, const struct eh_section *eh)
{
	static const char names[] = "\0.eh_frame\0.text";
	static uint8_t bytes[0x2000];
	Elf32_Ehdr *head = (Elf32_Ehdr *)bytes;
	Elf32_Shdr *sh = (Elf32_Shdr *)(bytes + 0x200);
	struct image *image;
	int fd = memfd_create("i386", MFD_CLOEXEC);

	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_ident[EI_CLASS] = ELFCLASS32;
	head->e_ident[EI_DATA] = ELFDATA2LSB;
	head->e_ident[EI_VERSION] = EV_CURRENT;
	head->e_machine = EM_386;
	head->e_phoff = sizeof(*head);
	head->e_phentsize = sizeof(Elf32_Phdr);
	head->e_phnum = 1;
	head->e_shoff = 0x200;
	head->e_shentsize = sizeof(*sh);
	head->e_shnum = 4;
	head->e_shstrndx = 3;
	*(Elf32_Phdr *)(head + 1) = (Elf32_Phdr){ .p_type = PT_LOAD,
						  .p_vaddr = EH_VADDR - 0x1400,
						  .p_filesz = sizeof(bytes),
						  .p_memsz = sizeof(bytes),
						  .p_flags = PF_R | PF_X };
	sh[1] = (Elf32_Shdr){ .sh_name = 11,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			      .sh_addr = CODE_AT,
			      .sh_offset = 0x1000,
			      .sh_size = size };
	sh[2] = (Elf32_Shdr){ .sh_name = 1,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC,
			      .sh_addr = EH_VADDR,
			      .sh_offset = 0x1400,
			      .sh_size = (Elf32_Word)eh->size };
	sh[3] = (Elf32_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = 0x400, .sh_size = sizeof(names) };
	memcpy(bytes + 0x400, names, sizeof(names));
	memcpy(bytes + 0x1000, code, size);
	memcpy(bytes + 0x1400, eh->bytes, eh->size);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(image_read_fd(&image, fd, sizeof(bytes), NULL), 0);
	close(fd);
	return image;
}

static int cfa_at(const struct image *image, uint64_t pc, bool *derived)
{
	struct cfi_row row;
	struct ehframe_fde fde;

	assert_true(ehframe_find(&image->eh, pc, &fde));
	assert_int_equal(cfi_row_at(&arch_i386, &image->eh, fde.offset, pc, &row), CFI_OK);
	assert_false(row.cfa_is_fp);
	*derived = image->eh.derived && fde.offset >= image->eh.derived;
	return row.cfa_off;
}

/* glibc's memcpy() pushes a register of which its table says nothing: its code decides. */
TEST(test_wrong_table)
{
	static const uint8_t pushes[] = { 0x41, 0x0e, 8, 0x83, 2, 0x42, 0x0e, 4 };
	uint8_t code[64] = { 0x89, 0xf8, 0x50, 0xf3, 0xa5, 0x58, 0xc3 };
	struct eh_section eh = { .size = sizeof(cie) };
	struct image *image;
	bool derived;

	memcpy(eh.bytes, cie, sizeof(cie));
	/* push %ebx; pop %ebx; nop; ret: with a table that is right. */
	memcpy(code + 32, (const uint8_t[]){ 0x53, 0x41, 0x5b, 0xc3 }, 4);
	eh_fde(&eh, 0, CODE_AT, 32, NULL, 0);
	eh_fde(&eh, 0, CODE_AT + 32, 32, pushes, sizeof(pushes));
	eh_put(&eh, 0, 4);
	image = read_file(code, sizeof(code), &eh);
	assert_int_equal(cfa_at(image, CODE_AT, &derived), 4);
	assert_int_equal(cfa_at(image, CODE_AT + 3, &derived), 8);
	assert_true(derived);
	assert_int_equal(cfa_at(image, CODE_AT + 6, &derived), 4);
	assert_int_equal(cfa_at(image, CODE_AT + 33, &derived), 8);
	assert_false(derived);
	image_free(image);
}

/* A file without any table: its rows are known to be derived, so that calls are proven. */
TEST(test_no_table)
{
	const uint8_t code[256] = { 0x53, 0x5b, 0xc3 };
	const struct eh_section none = { .size = 0 };
	struct image *image = read_file(code, sizeof(code), &none);
	bool derived;

	assert_int_equal(cfa_at(image, CODE_AT + 1, &derived), 8);
	assert_true(derived);
	image_free(image);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
