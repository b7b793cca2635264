// SPDX-License-Identifier: GPL-2.0-or-later
/* Unwind rows derived from instructions, at labels in code without tables; hostile code. */
#include "tests/prelude.h"

#if !defined(__x86_64__)

int main(void)
{
	puts("not on this machine: x86-64");
	return 77;
}
#else
#include <elf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/elf/internal.h"

/* clang-format off */
#define FUNCTION(name, body) \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n" #name ":\n" body \
		"\n.globl " #name "_end\n" #name "_end:\n.popsection\n"); \
	extern const uint8_t name[], name##_end[]
#define LABEL(name) "\n.globl " #name "\n" #name ":\n"
#define AT(name) ({ extern const uint8_t name[]; (uint64_t)(uintptr_t)name; })

FUNCTION(d_plain,
	"push %rbx\n push %r12\n sub $40, %rsp" LABEL(d_plain_body)
	"mov %rdi, %rbx\n or $12, %ah\n call *%rsi" LABEL(d_plain_called)
	"add $40, %rsp\n pop %r12\n pop %rbx" LABEL(d_plain_popped) "ret");
FUNCTION(d_frame,
	"push %rbp\n mov %rsp, %rbp\n sub %rdi, %rsp" LABEL(d_frame_body)
	"call *%rsi\n leave" LABEL(d_frame_left) "ret");
FUNCTION(d_xchg,
	 "push %rbx\n lea -256(%rsp), %rbx\n and $-64, %rbx\n xchg %rsp, %rbx" LABEL(
		 d_xchg_body) "call *%rsi\n xchg %rsp, %rbx" LABEL(d_xchg_back)
	 "lea -64(%rsp), %rax\n xchg %rax, %rsp" LABEL(d_xchg_rax)
	 "xchg %rsp, %rax\n pop %rbx" LABEL(d_xchg_left) "ret");
FUNCTION(d_enter,
	"enter $48, $0\n push %rbx" LABEL(d_enter_body)
	"call *%rsi\n pop %rbx\n leave" LABEL(d_enter_left) "ret");
FUNCTION(d_aligned,
	"mov %rsp, %rax\n and $-64, %rsp\n sub $128, %rsp" LABEL(d_aligned_by_reg)
	"mov %rax, 72(%rsp)\n xor %eax, %eax" LABEL(d_aligned_by_word)
	"call *%rsi\n mov 72(%rsp), %rsp" LABEL(d_aligned_back) "ret");
FUNCTION(d_distance,
	"mov %rsp, %r11\n and $31, %r11\n add $224, %r11\n sub %r11, %rsp" LABEL(d_distance_by_reg)
	"mov %r11, 160(%rsp)\n mov %r12, 168(%rsp)\n xor %r12d, %r12d\n call *%rsi"
	LABEL(d_distance_by_word) "push %rdi" LABEL(d_distance_pushed) "pop %rdi\n"
	"mov 160(%rsp), %r11\n mov 168(%rsp), %r12\n add %r11, %rsp" LABEL(d_distance_back) "ret");
FUNCTION(d_joined,
	"test %edi, %edi\n jz 1f\n sub $16, %rsp\n 1:" LABEL(d_joined_unknown) "nop\n ret");
FUNCTION(d_endless,
	"sub $24, %rsp\n test %edi, %edi\n jz 1f\n call 2f\n .p2align 4\n"
	"1:" LABEL(d_endless_after) "add $24, %rsp\n ret\n .p2align 4\n 2: push %rbx\n hlt");
/* A branch that is always taken, and padding; then another function, or the same one. */
FUNCTION(d_taken,
	"push %rbx\n sub $32, %rsp\n jmp 2f\n 1: add $32, %rsp\n pop %rbx\n ret\n"
	"2: test %edi, %edi\n jz 1b\n nop\n .p2align 4" LABEL(d_taken_next)
	"push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_not_taken,
	"push %rbx\n sub $32, %rsp\n jmp 2f\n 1: add $32, %rsp\n pop %rbx\n ret\n"
	"2: test %edi, %edi\n jz 1b\n nop\n .p2align 4" LABEL(d_not_taken_next)
	"call *%rsi\n jmp 1b");
/* A function that takes long to end, then another one without padding. */
FUNCTION(d_long,
	"sub $24, %rsp\n test %edi, %edi\n jz 1f\n add $24, %rsp\n ret\n 1: call 2f"
	LABEL(d_long_next) "push %rbx\n call *%rsi\n pop %rbx\n ret\n .p2align 4\n"
	"2: test %edi, %edi\n jz 3f\n .rept 200\n inc %edi\n .endr\n 3: call 4f\n ret\n"
	".p2align 4\n 4: call 5f\n ret\n .p2align 4\n 5: hlt");
/* A place in a function that it passes on, as to setjmp(), and that never returns. */
FUNCTION(d_place,
	"sub $24, %rsp\n lea 2f(%rip), %rsi\n call *%rdi\n add $24, %rsp\n ret\n .p2align 4\n"
	"2:" LABEL(d_place_passed) "mov (%rsp), %rdi\n hlt");
/* The cases of an interpreter, of which only data has the addresses. */
FUNCTION(d_cases,
	"ret\n .p2align 4\n push %rbx\n sub $16, %rsp\n mov (%rsi), %rbx\n 9: jmp *%rbx\n"
	".p2align 4" LABEL(d_cases_saved) "mov (%r12), %rdi\n 1: call *%rsi\n jmp 1b\n"
	".p2align 4" LABEL(d_cases_word) "mov (%rsp), %rdi\n 2: call *%rsi\n jmp 2b\n"
	".p2align 4" LABEL(d_cases_next) "inc %edi\n jmp *%rbx\n"
	".p2align 4" LABEL(d_cases_back) "inc %edi\n jmp 9b\n"
	".p2align 4" LABEL(d_cases_byte) "movzbl (%rdi), %eax\n jmp *%rsi\n"
	".p2align 4" LABEL(d_cases_argument) "mov %rdx, %rax\n jmp *%rax\n"
	".p2align 4" LABEL(d_cases_function) "mov (%rdi), %rax\n jmp *16(%rax)");
FUNCTION(d_table,
	"sub $8, %rsp\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rcx\n add %rax, %rcx\n"
	"jmp *%rcx\n"
	".p2align 2\n 3: .long 4f-3b, 5f-3b\n 4: add $8, %rsp\n ret\n"
	"5:" LABEL(d_table_second) "push %rbx" LABEL(d_table_pushed) "pop %rbx\n jmp 4b");
/* The first entry leads to a cold part behind another function. */
FUNCTION(d_cold,
	"sub $24, %rsp\n call 8f\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rcx\n"
	"add %rax, %rcx\n jmp *%rcx\n .p2align 2\n 3: .long 9f-3b, 4f-3b, 5f-3b\n"
	"4: add $24, %rsp\n ret\n 5:" LABEL(d_cold_case) "push %rbx" LABEL(d_cold_pushed)
	"pop %rbx\n jmp 4b\n .p2align 4\n 8: xor %eax, %eax\n ret\n"
	"9:" LABEL(d_cold_part) "inc %eax\n jmp 4b");
/* A table that leads to the last of three functions, of which the second one is found later. */
FUNCTION(d_split,
	"sub $8, %rsp\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rcx\n add %rax, %rcx\n"
	"jmp *%rcx\n .p2align 2\n 3: .long 5f-3b, 6f-3b\n 5: add $8, %rsp\n ret\n .p2align 4\n"
	"endbr64\n push %rbx" LABEL(d_split_second) "call *%rsi\n pop %rbx\n ret\n .p2align 4\n"
	"6: endbr64\n push %rbx" LABEL(d_split_third) "call *%rsi\n pop %rbx\n ret");
FUNCTION(d_short,
	"sub $8, %rsp\n lea 2f(%rip), %r10\n movzwl 3f-2f(%r10,%rdi,2), %ecx\n"
	"test %esi, %esi\n jnz 2f\n xor %esi, %esi\n 2: add %r10, %rcx\n jmp *%rcx\n"
	"3: .word 6f+1-2b, 4f-2b, 5f-2b, 6f+1-2b\n 4: add $8, %rsp\n ret\n"
	"5:" LABEL(d_short_second) "push %rbx" LABEL(d_short_pushed) "pop %rbx\n 6: call *%rsi\n"
	LABEL(d_short_called) "jmp 4b");
FUNCTION(d_next,
	"ret\n .p2align 4\n endbr64\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rcx\n"
	"add %rax, %rcx\n jmp *%rcx\n"
	".p2align 2\n 3: .long 4f-3b, 5f-3b\n 4: ret\n 5: nop\n ret\n .p2align 4"
	LABEL(d_next_function) "push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_behind_return,
	"ret\n .p2align 4\n endbr64\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rcx\n"
	"add %rax, %rcx\n jmp *%rcx\n"
	".p2align 2\n 3: .long 4f-3b, 5f-3b\n 4: ret\n 5: mov $1, %eax\n"
	".p2align 4, 0xc3" LABEL(d_behind_return_function)
	"push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_by_data,
	"push %r12\n mov (%rdi,%rsi,8), %rax\n jmp *%rax\n .p2align 4" LABEL(d_by_data_label)
	"push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_tail_by_data,
	"mov (%rdi,%rsi,8), %rax\n jmp *%rax\n .p2align 4" LABEL(d_tail_by_data_label)
	"push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_computed,
	"sub $8, %rsp\n jmp *%rdi\n .p2align 4" LABEL(d_computed_to) "add $8, %rsp\n ret");
FUNCTION(d_labels,
	"sub $8, %rsp\n lea 2f(%rip), %r14\n test %edi, %edi\n jz 1f\n lea 3f(%rip), %r14\n"
	"1: jmp *%r14\n 2:" LABEL(d_labels_first) "add $8, %rsp\n ret\n"
	"3:" LABEL(d_labels_second) "push %rbx" LABEL(d_labels_pushed) "pop %rbx\n jmp 2b");
FUNCTION(d_first,
	"lea d_first(%rip), %r14\n test %edi, %edi\n jz 1f\n lea d_first_end(%rip), %r14\n"
	"1: jmp *%r14" LABEL(d_first_next) "push %rbx\n call *%rsi\n pop %rbx\n ret");
FUNCTION(d_root,
	"xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call 1f" LABEL(d_root_called)
	"hlt\n 1: ret");
FUNCTION(d_child, "xor %ebp, %ebp\n pop %rdi\n call *%r9" LABEL(d_child_called) "hlt");
FUNCTION(d_behind,
	"sub $24, %rsp\n test %edi, %edi\n jz 1f\n add $24, %rsp\n ret\n 1: call *%rsi\n"
	".p2align 4" LABEL(d_behind_next) "mov %rdi, %rax\n ret");
FUNCTION(d_padded,
	"sub $24, %rsp\n test %edi, %edi\n jz 1f\n add $24, %rsp\n ret\n 1: call *%rsi\n"
	".p2align 4" LABEL(d_padded_next) "push %rbx\n mov %rdi, %rbx\n 2: call *%rbx\n jmp 2b");
FUNCTION(d_loop,
	"push %rbx\n sub $16, %rsp\n call *%rsi\n .p2align 4\n 1:" LABEL(d_loop_head)
	"call *%rdx\n test %eax, %eax\n jnz 1b\n add $16, %rsp\n pop %rbx\n ret");
FUNCTION(d_goto,
	"sub $24, %rsp\n jmp *%rdi" LABEL(d_goto_label) "1: call *%rsi\n jmp 1b");
FUNCTION(d_inner,
	"sub $24, %rsp\n call *%rsi\n add $24, %rsp\n ret" LABEL(d_inner_label)
	"add $24, %rsp\n ret");
FUNCTION(d_within,
	"ret\n .p2align 4, 0x57" LABEL(d_within_label) "1: call *%rsi\n jmp 1b");
/* A loop behind a call; the call before it is of a function that never returns. */
FUNCTION(d_not_returned,
	"sub $24, %rsp\n push %rax\n push %rax\n call *%rsi\n call *%rdx\n .p2align 4\n 1:"
	LABEL(d_not_returned_rest) "dec %edi\n jne 1b\n add $24, %rsp\n ret");
FUNCTION(d_marks,
	"ret" LABEL(d_marks_pad) "endbr64\n 1: call *%rsi\n jmp 1b\n .p2align 4"
	LABEL(d_marks_start) "endbr64\n 2: call *%rsi\n jmp 2b\n .p2align 4"
	LABEL(d_marks_landing) "endbr64\n mov %rax, %rbx\n 3: call *%rsi\n jmp 3b\n .p2align 4"
	LABEL(d_marks_other) "endbr64\n mov %r13, %rdi\n 4: call *%rsi\n jmp 4b\n .p2align 4"
	LABEL(d_marks_jump) "endbr64\n jmp 5f\n 5: jmp 5b");
FUNCTION(d_tail_call,
	"push %r12\n push %rbx\n push %rbp\n call *%rsi\n pop %rbp\n pop %rbx\n pop %r12\n jmp 1f\n"
	".p2align 4\n 1: push %rbp\n sub $24, %rsp" LABEL(d_tail_call_body)
	"mov %rax, 8(%rsp)\n call *%rsi\n add $24, %rsp\n pop %rbp\n ret");
FUNCTION(d_clone,
	"test %edi, %edi\n jz 1f\n ret\n 1:" LABEL(d_clone_child)
	"xor %ebp, %ebp\n pop %rax\n call *%rax\n hlt");
FUNCTION(d_tails,
	"call 1f" LABEL(d_tails_one) "call 2f" LABEL(d_tails_two) "call 3f" LABEL(d_tails_pushed)
	"call 4f" LABEL(d_tails_branch) "call 5f" LABEL(d_tails_to) "call 6f" LABEL(d_tails_round)
	"call *%rax" LABEL(d_tails_by_register) "ret\n"
	"1:" LABEL(d_tails_jump) "jmp 9f\n"
	"2:" LABEL(d_tails_moves) "endbr64\n mov %rsi, %rdx\n xor %edi, %edi\n jmp 1b\n"
	"3: push %rbx\n jmp 9f\n 4: test %edi, %edi\n jz 9f\n jmp 1b\n 5: jmp *%rax\n"
	"6: jmp 6b\n 9:" LABEL(d_tails_last) "ret");
FUNCTION(d_kept,
	"mov %rsp, %rcx\n and $-32, %rsp\n sub $96, %rsp\n call 1f" LABEL(d_kept_called)
	"call 2f" LABEL(d_kept_lost) "mov %rcx, %rsp\n ret\n"
	".p2align 4\n 1: test %edi, %edi\n jz 3f\n xor %eax, %eax\n ret\n 3: ret\n"
	".p2align 4\n 2: test %edi, %edi\n jz 3f\n ret\n 3: xor %ecx, %ecx\n ret");
FUNCTION(d_vectors,
	"sub $24, %rsp\n movq %mm0, 16(%rsp)\n vpbroadcastd 24(%rsp), %zmm30"
	LABEL(d_vectors_loaded) "test %edi, %edi\n jz 1f\n vpmovdb %zmm0, 16(%rsp)"
	LABEL(d_vectors_stored) "nop\n hlt\n 1: vcvtps2ph $0, %ymm0, 16(%rsp)"
	LABEL(d_vectors_halves) "nop\n hlt");
FUNCTION(d_make,
	"lea 2f(%rip), %rcx\n mov %rcx, (%rdi)\n ret\n push %rbp\n jmp *%rbx\n"
	"2:" LABEL(d_make_last) "xor %edi, %edi\n hlt");
/* Thunks of gcc: 1 is entered by a call, the loop never runs. */
FUNCTION(d_thunk_return,
	"push %rbx\n call *%rsi\n pop %rbx" LABEL(d_thunk_return_from) "call 1f"
	LABEL(d_thunk_return_loop) "pause\n lfence\n jmp d_thunk_return_loop\n 1:"
	LABEL(d_thunk_return_to) "lea 8(%rsp), %rsp" LABEL(d_thunk_return_last) "ret");
FUNCTION(d_thunk_call,
	"push %rbx\n jmp 3f\n 1:" LABEL(d_thunk_call_begin) "call 2f"
	LABEL(d_thunk_call_loop) "pause\n lfence\n jmp d_thunk_call_loop\n 2:"
	LABEL(d_thunk_call_to) "mov %r11, (%rsp)\n ret\n 3:" LABEL(d_thunk_call_from)
	"call 1b" LABEL(d_thunk_call_next) "pop %rbx\n ret");
FUNCTION(d_thunk_jump,
	"sub $24, %rsp\n call *%rsi\n add $24, %rsp\n call 2f" LABEL(d_thunk_jump_loop)
	"pause\n lfence\n jmp d_thunk_jump_loop\n 2:" LABEL(d_thunk_jump_to)
	"mov %rax, (%rsp)\n ret");
FUNCTION(d_thunk_abort,
	"push %rbx\n jmp 3f\n 1: call 2f\n 4: pause\n lfence\n jmp 4b\n 2: mov %r11, (%rsp)\n"
	"ret\n 3: call 1b\n .p2align 4" LABEL(d_thunk_abort_next) "mov %rdi, %rax\n ret");
/* clang-format on */

/* clang-format off */
/* Code as JIT compilers make it. */
FUNCTION(m_plain,
	"push %rbp\n push %rbx\n push %rax\n lea 16(%rsp), %rbp" LABEL(m_plain_body)
	".rept 5\n clc\n .endr\n call *%rsi\n nop"
	LABEL(m_plain_nop) "add $8, %rsp\n pop %rbx\n pop %rbp" LABEL(m_plain_left) "ret");
/* .NET: it goes on in the frame of the function that it replaces. */
FUNCTION(m_replaces,
	"mov (%rbp), %rax\n push %rax\n mov %rsp, %rbp\n mov 36(%rbp), %ecx" LABEL(m_replaces_body)
	"add $0x50, %rsp\n pop %rbp\n ret");
FUNCTION(m_loop, "push %rbp\n mov %rsp, %rbp" LABEL(m_loop_body) "1: inc %eax\n jmp 1b");
FUNCTION(m_leaves,
	"push %rbp\n sub $16, %rsp" LABEL(m_leaves_body) "call *%rsi\n add $16, %rsp\n pop %rbp"
	LABEL(m_leaves_left) "jmp *0x100000(%rip)");
/* PHP: in the frame of the interpreter, which it leaves for. */
FUNCTION(m_inside,
	"sub $16, %rsp" LABEL(m_inside_body) "call *%rsi\n add $16, %rsp\n jmp *(%r15)");
/* The table of jumps is not in the code. */
FUNCTION(m_switch,
	"push %rbp\n sub $32, %rsp\n lea 0x100000(%rip), %rcx\n mov (%rcx,%rdi,4), %ecx\n"
	"lea m_switch(%rip), %rdx\n add %rdx, %rcx\n jmp *%rcx" LABEL(m_switch_one)
	"call *%rsi\n jmp 1f" LABEL(m_switch_two) "call *%rdx\n 1: nop\n add $32, %rsp\n pop %rbp\n"
	"ret" LABEL(m_switch_other) "call *%rsi\n ud2");
/* clang-format on */

struct rows {
	struct {
		uint64_t start, end;
		struct derive_row row;
		bool guessed;
	} v[256];
	size_t nr;
	uint64_t visits;
};

static void take(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		 bool guessed)
{
	struct rows *r = ctx;

	assert_true(start < end && row->cfa != DERIVE_NO_CFA);
	assert_true(!r->nr || r->v[MIN(r->nr, ARRAY_SIZE(r->v)) - 1].end <= start);
	if (r->nr < ARRAY_SIZE(r->v)) {
		r->v[r->nr].start = start;
		r->v[r->nr].end = end;
		r->v[r->nr].row = *row;
		r->v[r->nr++].guessed = guessed;
	}
}

static void derive_within(struct rows *r, const uint8_t *code, const uint8_t *end, uint64_t entry,
			  uint64_t maybe, uint64_t visits_max)
{
	const uint64_t start = (uint64_t)(uintptr_t)code;
	const struct derive_input in = {
		.visits_max = visits_max,
		.cpu = &derive_x86,
		.code = { code, start, (size_t)(end - code) },
		.starts = &start,
		.nr_starts = 1,
		.maybe = &maybe,
		.nr_maybe = 1,
		.entry = entry,
	};
	const struct derive_sink sink = { take, r };

	r->nr = 0;
	r->visits = derive_rows(&in, &sink);
}

static void derive(struct rows *r, const uint8_t *code, const uint8_t *end, uint64_t entry,
		   uint64_t maybe)
{
	derive_within(r, code, end, entry, maybe, UINT64_MAX);
}

#define DERIVE(r, name) derive(r, name, name##_end, 0, 0)

/* Return the row of @pc; one without a CFA where there is none. */
static struct derive_row row_at(const struct rows *r, uint64_t pc, bool *guessed)
{
	for (size_t i = 0; i < r->nr; i++)
		if (pc >= r->v[i].start && pc < r->v[i].end) {
			*guessed = r->v[i].guessed;
			return r->v[i].row;
		}
	*guessed = false;
	return (struct derive_row){ .cfa = DERIVE_NO_CFA };
}

static void assert_cfa(const struct rows *r, uint64_t pc, enum derive_cfa cfa, int reg, int off,
		       int word_off)
{
	bool guessed;
	struct derive_row row = row_at(r, pc, &guessed);

	assert_int_equal(row.cfa, cfa);
	assert_false(guessed);
	assert_int_equal(row.reg, reg);
	assert_int_equal(row.off, off);
	assert_int_equal(row.word_off, word_off);
}

/* Expect a guess: the stack pointer + @off. */
static void assert_guess(const struct rows *r, uint64_t pc, int off)
{
	bool guessed;
	struct derive_row row = row_at(r, pc, &guessed);

	assert_int_equal(row.cfa, DERIVE_BY_REG);
	assert_int_equal(row.reg, 7);
	assert_int_equal(row.off, off);
	assert_true(guessed);
}

static void assert_saved(const struct rows *r, uint64_t pc, unsigned int i, enum derive_where where,
			 int off)
{
	bool guessed;
	struct derive_row row = row_at(r, pc, &guessed);

	assert_int_equal(row.saved[i].where, where);
	assert_int_equal(row.saved[i].off, off);
}

enum { RBX, RBP, R12 };

TEST(test_pushes)
{
	struct rows r;

	DERIVE(&r, d_plain);
	assert_cfa(&r, AT(d_plain), DERIVE_BY_REG, 7, 8, 0);
	assert_cfa(&r, AT(d_plain_body), DERIVE_BY_REG, 7, 64, 0);
	assert_saved(&r, AT(d_plain_body), RBX, DERIVE_AT_CFA, -16);
	assert_saved(&r, AT(d_plain_body), R12, DERIVE_AT_CFA, -24);
	assert_saved(&r, AT(d_plain_body), RBP, DERIVE_SAME, 0);
	/* A write to ah is none to the stack pointer, though both have number 4. */
	assert_cfa(&r, AT(d_plain_called), DERIVE_BY_REG, 7, 64, 0);
	assert_cfa(&r, AT(d_plain_popped), DERIVE_BY_REG, 7, 8, 0);
	assert_saved(&r, AT(d_plain_popped), RBX, DERIVE_SAME, 0);
}

TEST(test_frame_pointer)
{
	struct rows r;

	DERIVE(&r, d_frame);
	assert_cfa(&r, AT(d_frame_body), DERIVE_BY_REG, 6, 16, 0);
	assert_saved(&r, AT(d_frame_body), RBP, DERIVE_AT_CFA, -16);
	assert_cfa(&r, AT(d_frame_left), DERIVE_BY_REG, 7, 8, 0);
	DERIVE(&r, d_xchg);
	assert_cfa(&r, AT(d_xchg_body), DERIVE_BY_REG, 3, 16, 0);
	assert_saved(&r, AT(d_xchg_body), RBX, DERIVE_AT_CFA, -16);
	assert_cfa(&r, AT(d_xchg_back), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_xchg_rax), DERIVE_BY_REG, 7, 80, 0);
	assert_cfa(&r, AT(d_xchg_left), DERIVE_BY_REG, 7, 8, 0);
	DERIVE(&r, d_enter);
	assert_cfa(&r, AT(d_enter_body), DERIVE_BY_REG, 7, 72, 0);
	assert_saved(&r, AT(d_enter_body), RBP, DERIVE_AT_CFA, -16);
	assert_cfa(&r, AT(d_enter_left), DERIVE_BY_REG, 7, 8, 0);
}

TEST(test_realigned)
{
	struct rows r;

	DERIVE(&r, d_aligned);
	assert_cfa(&r, AT(d_aligned_by_reg), DERIVE_BY_REG, 0, 8, 0);
	assert_cfa(&r, AT(d_aligned_by_word), DERIVE_BY_WORD, 7, 72, 8);
	assert_cfa(&r, AT(d_aligned_back), DERIVE_BY_REG, 7, 8, 0);
}

/* x264 calls functions that leave the register with the old stack pointer alone. */
TEST(test_kept)
{
	struct rows r;

	DERIVE(&r, d_kept);
	assert_cfa(&r, AT(d_kept_called), DERIVE_BY_REG, 2, 8, 0);
	assert_cfa(&r, AT(d_kept_lost), DERIVE_NO_CFA, 0, 0, 0);
}

/* Beside the return address: 8 bytes of MMX and a load leave it alone, 16 bytes stored do not. */
TEST(test_vectors)
{
	struct rows r;

	DERIVE(&r, d_vectors);
	assert_cfa(&r, AT(d_vectors_loaded), DERIVE_BY_REG, 7, 32, 0);
	assert_cfa(&r, AT(d_vectors_stored), DERIVE_NO_CFA, 0, 0, 0);
	assert_cfa(&r, AT(d_vectors_halves), DERIVE_NO_CFA, 0, 0, 0);
}

/* As qhasm makes functions: libsodium has them. */
TEST(test_distance)
{
	struct rows r;

	DERIVE(&r, d_distance);
	assert_cfa(&r, AT(d_distance_by_reg), DERIVE_BY_SUM, 11, 0, 8);
	assert_cfa(&r, AT(d_distance_by_word), DERIVE_BY_SUM_WORD, 7, 160, 8);
	assert_saved(&r, AT(d_distance_by_word), R12, DERIVE_AT_SP, 168);
	assert_cfa(&r, AT(d_distance_pushed), DERIVE_BY_SUM_WORD, 7, 168, 16);
	assert_cfa(&r, AT(d_distance_back), DERIVE_BY_REG, 7, 8, 0);
	assert_saved(&r, AT(d_distance_back), R12, DERIVE_SAME, 0);
}

TEST(test_ways_that_disagree)
{
	struct rows r;

	DERIVE(&r, d_joined);
	assert_cfa(&r, AT(d_joined_unknown), DERIVE_NO_CFA, 0, 0, 0);
}

/* The code behind a call of a function that never returns is reached in other ways only. */
TEST(test_endless)
{
	struct rows r;

	DERIVE(&r, d_endless);
	assert_cfa(&r, AT(d_endless_after), DERIVE_BY_REG, 7, 32, 0);
}

static bool is_certain(const struct rows *r, uint64_t pc)
{
	bool guessed;

	return row_at(r, pc, &guessed).cfa != DERIVE_NO_CFA && !guessed;
}

/* Find the frame at @pc in the code at @code; false: it is a guess. */
static bool frame_at(const uint8_t *code, const uint8_t *end, uint64_t pc, struct derive_frame *out)
{
	const uint64_t start = (uint64_t)(uintptr_t)code;
	struct derive_frame frames[64];
	const uint32_t nr = derive_function(EM_X86_64, start, code, (size_t)(end - code), frames,
					    ARRAY_SIZE(frames));

	for (uint32_t i = 0; i < nr; i++)
		if (pc - start - frames[i].start < frames[i].size) {
			*out = frames[i];
			return true;
		}
	return false;
}

#define FRAME_AT(name, label) frame_at(name, name##_end, AT(label), &f)

/* Code made at run time is certain where it shows that a call has entered it. */
TEST(test_made)
{
	struct derive_frame f, one;

	assert_true(FRAME_AT(m_plain, m_plain_body));
	assert_int_equal(f.cfa, 32);
	assert_int_equal(f.ra, -8);
	assert_int_equal(f.fp, -16);
	assert_false(f.by_fp);
	/* A nop behind a call, and the end of the frame at a multiple of 16, are no new function.
	 */
	assert_int_equal(AT(m_plain_nop) % 16, 0);
	assert_true(FRAME_AT(m_plain, m_plain_nop));
	assert_true(FRAME_AT(m_plain, m_plain_left));
	assert_int_equal(f.cfa, 8);
	assert_int_equal(f.fp, 0);
	assert_false(FRAME_AT(m_replaces, m_replaces_body));
	assert_false(FRAME_AT(m_loop, m_loop_body));
	assert_true(FRAME_AT(m_leaves, m_leaves_body));
	assert_int_equal(f.cfa, 32);
	assert_true(FRAME_AT(m_leaves, m_leaves_left));
	assert_false(FRAME_AT(m_inside, m_inside_body));
	assert_true(FRAME_AT(m_switch, m_switch_one));
	assert_int_equal(f.cfa, 48);
	assert_true(FRAME_AT(m_switch, m_switch_two));
	assert_false(FRAME_AT(m_switch, m_switch_other));
	/* Of other machines, and no more than are wanted. */
	assert_int_equal(derive_function(EM_PPC64, 0, m_plain, 16, &f, 1), 0);
	assert_int_equal(derive_function(EM_X86_64, UINT64_MAX, m_plain, 16, &f, 1), 0);
	assert_int_equal(derive_function(EM_X86_64, 4096, m_plain, (size_t)(m_plain_end - m_plain),
					 &one, 1),
			 1);
	assert_int_equal(one.start, 0);
}

/* A function that never returns may be long, and end by a call of another one. */
TEST(test_long_endless)
{
	struct rows r;

	DERIVE(&r, d_long);
	assert_true(is_certain(&r, AT(d_long)));
	assert_false(is_certain(&r, AT(d_long_next)));
}

/* Call @to from the begin of 1 MiB, which is analysed in pieces, and look behind the call. */
static bool goes_on_behind_call(uint32_t to, const struct derive_stub *stubs, uint32_t nr_stubs)
{
	static const uint8_t begin[] = { 0x48, 0x83, 0xec, 0x18, 0xe8, 0, 0, 0, 0, 0x53, 0xc3 };
	const size_t size = 1 << 20;
	const uint64_t start = 0x10000;
	uint8_t *code = xcalloc(1, size);
	struct derive_input in = { .cpu = &derive_x86,
				   .visits_max = UINT64_MAX,
				   .code = { code, start, size },
				   .starts = &start,
				   .nr_starts = 1,
				   .stubs = stubs,
				   .nr_stubs = nr_stubs };
	struct rows r = { .nr = 0 };
	const struct derive_sink sink = { take, &r };
	uint32_t rel = to - 9;
	bool result;

	memset(code, 0xc3, size);
	memcpy(code, begin, sizeof(begin));
	memcpy(code + 5, &rel, sizeof(rel));
	code[900000] = 0xf4; /* hlt */
	derive_rows(&in, &sink);
	result = is_certain(&r, start + 9);
	free(code);
	return result;
}

/* A function that never returns may be far away, or behind a stub. */
TEST(test_far_endless)
{
	const struct derive_stub stubs[] = { { 0x10000 + 500, 0x10000 + 700000 },
					     { 0x10000 + 600, 0x10000 + 900000 } };

	assert_true(goes_on_behind_call(800000, NULL, 0));
	assert_false(goes_on_behind_call(900000, NULL, 0));
	assert_true(goes_on_behind_call(500, stubs, ARRAY_SIZE(stubs)));
	assert_false(goes_on_behind_call(600, stubs, ARRAY_SIZE(stubs)));
}

/* Data has the addresses of functions and of the cases of interpreters: these have a frame. */
TEST(test_cases)
{
	const uint64_t cases[] = { AT(d_cases_saved), AT(d_cases_word), AT(d_cases_next),
				   AT(d_cases_back), AT(d_cases_byte) };
	struct rows r;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		derive(&r, d_cases, d_cases_end, 0, cases[i]);
		assert_false(is_certain(&r, cases[i]));
	}
	DERIVE(&r, d_place);
	assert_false(is_certain(&r, AT(d_place_passed)));
	derive(&r, d_cases, d_cases_end, 0, AT(d_cases_argument));
	assert_cfa(&r, AT(d_cases_argument), DERIVE_BY_REG, 7, 8, 0);
	derive(&r, d_cases, d_cases_end, 0, AT(d_cases_function));
	assert_cfa(&r, AT(d_cases_function), DERIVE_BY_REG, 7, 8, 0);
}

/*
 * Code behind a call and padding that returns with the stack pointer of its begin: the call did
 * not return, and this is another function.
 */
TEST(test_behind_call)
{
	struct rows r;

	DERIVE(&r, d_behind);
	assert_cfa(&r, AT(d_behind_next), DERIVE_BY_REG, 7, 8, 0);
}

/* Code that would not return from its begin either is no function. */
TEST(test_not_returned)
{
	struct rows r;

	DERIVE(&r, d_not_returned);
	assert_cfa(&r, AT(d_not_returned_rest), DERIVE_BY_REG, 7, 48, 0);
}

/* Padding behind a call is for a jump, as of a loop; without one the next code is a guess. */
TEST(test_padding)
{
	struct rows r;

	DERIVE(&r, d_padded);
	assert_guess(&r, AT(d_padded_next), 8);
	DERIVE(&r, d_loop);
	assert_cfa(&r, AT(d_loop_head), DERIVE_BY_REG, 7, 32, 0);
}

/* No frame begins behind a branch and padding, unless the branch is always taken. */
TEST(test_taken)
{
	struct rows r;

	DERIVE(&r, d_taken);
	assert_guess(&r, AT(d_taken_next), 8);
	DERIVE(&r, d_not_taken);
	assert_cfa(&r, AT(d_not_taken_next), DERIVE_BY_REG, 7, 48, 0);
}

/* A tail call leaves the words that were popped below the stack pointer: they are free again. */
TEST(test_behind_tail_call)
{
	struct rows r;

	DERIVE(&r, d_tail_call);
	assert_cfa(&r, AT(d_tail_call_body), DERIVE_BY_REG, 7, 40, 0);
	assert_saved(&r, AT(d_tail_call_body), RBP, DERIVE_AT_CFA, -16);
}

/* boost.context puts the address of code that ends the program at the end of a fiber's stack. */
TEST(test_end_of_fiber)
{
	struct rows r;
	bool guessed;

	DERIVE(&r, d_make);
	assert_cfa(&r, AT(d_make_last), DERIVE_BY_REG, 7, 8, 0);
	assert_int_equal(row_at(&r, AT(d_make_last) - 1, &guessed).cfa, DERIVE_NO_CFA);
}

TEST(test_table)
{
	struct rows r;

	DERIVE(&r, d_table);
	assert_cfa(&r, AT(d_table_second), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_table_pushed), DERIVE_BY_REG, 7, 24, 0);
}

/* Offsets of 16 bits from another address than the table's; the first and the last one are others'.
 */
TEST(test_cold_part)
{
	struct rows r;

	DERIVE(&r, d_cold);
	assert_cfa(&r, AT(d_cold_case), DERIVE_BY_REG, 7, 32, 0);
	assert_cfa(&r, AT(d_cold_pushed), DERIVE_BY_REG, 7, 40, 0);
	assert_cfa(&r, AT(d_cold_part), DERIVE_BY_REG, 7, 32, 0);
}

/* Code that was reached by a table is looked at again when the function ends before it. */
TEST(test_found_later)
{
	struct rows r;

	DERIVE(&r, d_split);
	assert_cfa(&r, AT(d_split_second), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_split_third), DERIVE_BY_REG, 7, 16, 0);
}

TEST(test_short_table)
{
	struct rows r;

	DERIVE(&r, d_short);
	assert_cfa(&r, AT(d_short_second), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_short_pushed), DERIVE_BY_REG, 7, 24, 0);
	assert_cfa(&r, AT(d_short_called), DERIVE_BY_REG, 7, 16, 0);
}

/* Where a jump leads to is not known: code that nothing else reaches has its state, as a guess. */
TEST(test_computed_jump)
{
	struct rows r;

	DERIVE(&r, d_computed);
	assert_guess(&r, AT(d_computed_to), 16);
}

/*
 * An address that data has is of a function, but not behind such a jump, nor with the end of a
 * function alone. If code that nothing reaches goes on into it, it is a guess.
 */
TEST(test_addresses)
{
	struct rows r;
	bool guessed;

	derive(&r, d_behind, d_behind_end, 0, AT(d_behind_next));
	assert_cfa(&r, AT(d_behind_next), DERIVE_BY_REG, 7, 8, 0);
	derive(&r, d_goto, d_goto_end, 0, AT(d_goto_label));
	assert_guess(&r, AT(d_goto_label), 32);
	derive(&r, d_inner, d_inner_end, 0, AT(d_inner_label));
	assert_int_equal(row_at(&r, AT(d_inner_label), &guessed).cfa, DERIVE_NO_CFA);
	derive(&r, d_within, d_within_end, 0, AT(d_within_label));
	assert_guess(&r, AT(d_within_label), 8);
}

/*
 * Behind a jump by a table an address of data is a function; labels of one by data look the same.
 * Without a frame they have the row of one.
 */
TEST(test_next_function)
{
	struct rows r;

	derive(&r, d_next, d_next_end, 0, AT(d_next_function));
	assert_cfa(&r, AT(d_next_function), DERIVE_BY_REG, 7, 8, 0);
	derive(&r, d_behind_return, d_behind_return_end, 0, AT(d_behind_return_function));
	assert_cfa(&r, AT(d_behind_return_function), DERIVE_BY_REG, 7, 8, 0);
	derive(&r, d_by_data, d_by_data_end, 0, AT(d_by_data_label));
	assert_false(is_certain(&r, AT(d_by_data_label)));
	derive(&r, d_tail_by_data, d_tail_by_data_end, 0, AT(d_tail_by_data_label));
	assert_cfa(&r, AT(d_tail_by_data_label), DERIVE_BY_REG, 7, 8, 0);
}

/* endbr64 is at the begin of functions; without alignment perhaps at a landing pad. */
TEST(test_marks)
{
	struct rows r;

	DERIVE(&r, d_marks);
	assert_cfa(&r, AT(d_marks_start), DERIVE_BY_REG, 7, 8, 0);
	assert_cfa(&r, AT(d_marks_pad), DERIVE_NO_CFA, 0, 0, 0);
	/* No function gets something in rax, or r13: a landing pad has its exception there. */
	assert_guess(&r, AT(d_marks_landing), 8);
	assert_guess(&r, AT(d_marks_other), 8);
	assert_guess(&r, AT(d_marks_jump), 8);
}

/* A jump to a label: its function computes the addresses of several, as in libgmp. */
TEST(test_labels)
{
	struct rows r;
	bool guessed;

	DERIVE(&r, d_labels);
	assert_cfa(&r, AT(d_labels_first), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_labels_second), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_labels_pushed), DERIVE_BY_REG, 7, 24, 0);
	/* The first byte of all as well: the jump leads nowhere else. */
	DERIVE(&r, d_first);
	assert_int_equal(row_at(&r, AT(d_first_next), &guessed).cfa, DERIVE_NO_CFA);
}

/* A word of a thunk is on the stack between its call and its end: its function is there once. */
TEST(test_thunks)
{
	struct rows r;
	bool guessed;

	DERIVE(&r, d_thunk_return);
	assert_cfa(&r, AT(d_thunk_return_from), DERIVE_BY_REG, 7, 8, 0);
	assert_int_equal(row_at(&r, AT(d_thunk_return_loop), &guessed).cfa, DERIVE_NO_CFA);
	assert_cfa(&r, AT(d_thunk_return_to), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_thunk_return_last), DERIVE_BY_REG, 7, 8, 0);
	DERIVE(&r, d_thunk_call);
	assert_cfa(&r, AT(d_thunk_call_from), DERIVE_BY_REG, 7, 16, 0);
	assert_cfa(&r, AT(d_thunk_call_begin), DERIVE_BY_REG, 7, 24, 0);
	assert_int_equal(row_at(&r, AT(d_thunk_call_loop), &guessed).cfa, DERIVE_NO_CFA);
	assert_cfa(&r, AT(d_thunk_call_to), DERIVE_BY_REG, 7, 32, 0);
	assert_saved(&r, AT(d_thunk_call_to), RBX, DERIVE_AT_CFA, -16);
	assert_cfa(&r, AT(d_thunk_call_next), DERIVE_BY_REG, 7, 16, 0);
	DERIVE(&r, d_thunk_jump);
	assert_int_equal(row_at(&r, AT(d_thunk_jump_loop), &guessed).cfa, DERIVE_NO_CFA);
	assert_cfa(&r, AT(d_thunk_jump_to), DERIVE_BY_REG, 7, 16, 0);
	/* A function behind a call that does not return. */
	derive(&r, d_thunk_abort, d_thunk_abort_end, 0, AT(d_thunk_abort_next));
	assert_cfa(&r, AT(d_thunk_abort_next), DERIVE_BY_REG, 7, 8, 0);
}

TEST(test_roots)
{
	struct rows r;
	bool guessed;

	derive(&r, d_root, d_root_end, AT(d_root), 0);
	assert_int_equal(row_at(&r, AT(d_root_called) - 1, &guessed).cfa, DERIVE_END);
	/* No entry: an ordinary function. */
	DERIVE(&r, d_root);
	assert_int_equal(row_at(&r, AT(d_root_called) - 1, &guessed).cfa, DERIVE_BY_REG);
	/* A thread's first function pops the return address; its frame pointer is 0. */
	DERIVE(&r, d_child);
	assert_int_equal(row_at(&r, AT(d_child_called) - 1, &guessed).cfa, DERIVE_END);
	/* So it is before: of clone(), which returns in the parent. */
	DERIVE(&r, d_clone);
	assert_int_equal(row_at(&r, AT(d_clone), &guessed).cfa, DERIVE_BY_REG);
	assert_int_equal(row_at(&r, AT(d_clone_child), &guessed).cfa, DERIVE_END);
}

/* Functions that lead on to another one, in a file. */
TEST(test_tail_calls)
{
	const struct {
		uint64_t next;
		uint32_t nr;
		uint64_t first, then, last;
	} is[] = {
		{ AT(d_tails_one), 2, AT(d_tails_jump), AT(d_tails_last), 0 },
		{ AT(d_tails_two), 3, AT(d_tails_moves), AT(d_tails_jump), AT(d_tails_last) },
		{ AT(d_tails_pushed), 1, 0, 0, 0 },
		{ AT(d_tails_branch), 1, 0, 0, 0 },
		{ AT(d_tails_to), 1, 0, 0, 0 },
		{ AT(d_tails_round), TAIL_CALLS_MAX, 0, 0, 0 },
		{ AT(d_tails_by_register), 0, 0, 0, 0 },
		{ AT(d_tails) + 3, 0, 0, 0, 0 },     /* before the file */
		{ AT(d_tails_end) + 9, 0, 0, 0, 0 }, /* behind it */
	};
	struct derive_file f = { memfd_create("code", 0), EM_X86_64, AT(d_tails) };
	size_t size = (size_t)(d_tails_end - d_tails);

	assert_int_equal(write(f.fd, d_tails, size), size);
	for (size_t i = 0; i < ARRAY_SIZE(is); i++) {
		uint64_t out[TAIL_CALLS_MAX] = { 0 };

		assert_int_equal(derive_tail_calls(&f, is[i].next, out), is[i].nr);
		if (!is[i].first)
			continue;
		assert_int_equal(out[0], is[i].first);
		assert_int_equal(out[1], is[i].then);
		assert_int_equal(out[2], is[i].last);
	}
	f.machine = EM_RISCV;
	assert_int_equal(derive_tail_calls(&f, AT(d_tails_one), (uint64_t[TAIL_CALLS_MAX]){ 0 }),
			 0);
	close(f.fd);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* A large file without tables: a second for all of it, not for each piece of its code. */
TEST(test_budget)
{
	const size_t size = 8u << 20;
	uint8_t *code = xcalloc(1, size);
	struct rows r;

	memset(code, 0xc3, size);
	derive_within(&r, code, code + size, 0, 0, 100000);
	assert_in_range(r.visits, 1, 100000);
	free(code);
}

/*
 * Functions that only their marks show, found when the first one is done, each with a loop: their
 * instructions are looked at by find_more(), discovered, and visited twice.
 */
TEST(test_cost)
{
	static const uint8_t function[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0xff, 0xd6, 0xff,
					    0xcb, 0x75, 0xfa, 0x5b, 0xc3, 0xcc, 0xcc, 0xcc };
	const size_t nr = 8192, nr_instructions = 7 * nr;
	uint8_t *code = xcalloc(nr, sizeof(function));
	struct rows r;

	for (size_t i = 0; i < nr; i++)
		memcpy(code + i * sizeof(function), function, sizeof(function));
	derive(&r, code, code + nr * sizeof(function), 0, 0);
	assert_in_range(r.visits, nr_instructions, 5 * nr_instructions);
	free(code);
}

static uint64_t data_bytes(void)
{
	unsigned long pages[6] = { 0 };
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu %lu %lu %lu %lu", &pages[0], &pages[1], &pages[2],
				&pages[3], &pages[4], &pages[5]),
			 6);
	fclose(f);
	return pages[5] * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* 100,000 branches, each with the facts of the same few registers: 24 MiB for all of them. */
TEST(test_memory)
{
	static const uint8_t branch[] = { 0x85, 0xc0, 0x74, 0x01, 0x90 };
	const size_t size = 500000;
	uint8_t *code = xcalloc(1, size + 1);
	struct rlimit before, low;
	struct rows r;

	for (size_t i = 0; i < size; i++)
		code[i] = branch[i % sizeof(branch)];
	code[size] = 0xc3;
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	low = (struct rlimit){ data_bytes() + (24u << 20), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_DATA, &low), 0);
	derive(&r, code, code + size + 1, 0, 0);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_true(r.nr && r.v[0].start == (uintptr_t)code);
	assert_true(r.v[r.nr - 1].end == (uintptr_t)code + size + 1);
	free(code);
}

/* Random bytes, and random jumps: all that is visited is bounded, no row is outside. */
TEST(test_hostile_code)
{
	uint8_t *code = xcalloc(1, 4096);
	uint32_t seed = 7;

	for (int round = 0; round < 3000; round++) {
		size_t size = 1 + next_random(&seed) % (round % 100 ? 256 : 4096);
		struct rows r;

		for (size_t i = 0; i < size; i++)
			code[i] = (uint8_t)next_random(&seed);
		for (size_t i = 0; round % 3 == 0 && i + 1 < size;
		     i += 2 + next_random(&seed) % 8) {
			static const uint8_t some[] = { 0xeb, 0x75, 0x55, 0x5c, 0xc9, 0xe8, 0x48 };

			code[i] = some[next_random(&seed) % sizeof(some)];
		}
		derive(&r, code, code + size, 0, 0);
		assert_true(r.visits <= size * (48 + 16) + 8200);
		for (size_t i = 0; i < r.nr; i++)
			assert_true(r.v[i].start >= (uintptr_t)code &&
				    r.v[i].end <= (uintptr_t)code + size);
	}
	free(code);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
#endif
