// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole unwinder on this process's own stacks, against libgcc's unwinder:
 * by libunwind alone, while rows are learnt, and by rows. With an argument: measure the cost of a
 * sample.
 * Live: reads memory of processes.
 */
#include "unwind/unwind.h"

#include "tests/prelude.h"

#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#include <urcu/urcu-qsbr.h>

#include "unwind/internal.h"
#include "symbols/elf/elf.h"
#include "symbols/jit/jit.h"
#include "symbols/symbols.h"
#include "tests/unwind/shot.h"
#include "tests/unwind/world.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/name/name.h"

#define NOINLINE  __attribute__((noinline, noclone))
#define TRUTH_MAX 600

static struct shot shot;
static uint64_t truth[TRUTH_MAX]; /* look-up pcs, as libgcc sees them */
static int nr_truth;
static struct unwind_result result;
static struct world world;

/* libunwind has the same names; libgcc's are meant. */
static struct {
	_Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
	_Unwind_Ptr (*ip)(struct _Unwind_Context *, int *);
} gcc;

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *c, void *arg)
{
	int before = 0;
	uint64_t ip = gcc.ip(c, &before);

	if (nr_truth == TRUTH_MAX || !ip)
		return _URC_END_OF_STACK;
	truth[nr_truth++] = ip - !before;
	return _URC_NO_REASON;
}

/* The stack that a handler interrupted; stack_end 0: none. */
static struct shot interrupted;

static bool no_truth; /* libgcc would read memory that is not there */

/* The innermost function of all chains: take the sample and libgcc's stack. */
NOINLINE static void take(void)
{
	shot_regs(&shot);
	shot_stack(&shot);
	if (interrupted.stack_end)
		shot_stack(&interrupted);
	nr_truth = 0;
	if (!no_truth)
		gcc.backtrace(on_frame, NULL);
	truth[0] = shot.regs[SHOT_IP];
}

static struct unwind_input input(void)
{
	return (struct unwind_input){
		.regs = shot.regs,
		.regs_mask = SHOT_MASK,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack = shot.stack,
		.stack_size = shot.size,
		.stack_full = shot.size == SHOT_STACK,
		.space = world.space,
		.time_ns = time_now_ns(),
	};
}

static bool same_as_truth(uint32_t nr)
{
	return nr <= (uint32_t)nr_truth && !memcmp(result.ip, truth, nr * sizeof(truth[0]));
}

static void unwind_with(struct unwinder *u)
{
	const struct unwind_input in = input();

	unwind_sample(u, &in, &result);
	if (result.stop != UNWIND_COMPLETE || !same_as_truth(result.nr) ||
	    result.nr != (uint32_t)nr_truth)
		for (int i = 0; i < nr_truth || i < (int)result.nr; i++)
			print_message("%2d %12" PRIx64 " %12" PRIx64 "\n", i,
				      i < (int)result.nr ? result.ip[i] : 0,
				      i < nr_truth ? truth[i] : 0);
}

/* By libunwind alone, by rows while they are learnt, and by rows: the true chain each time. */
static void assert_true_chain(int at_least)
{
	struct unwinder *u[] = { world.step, world.row, world.row };

	world_load(&world, getpid());
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_with(u[i]);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, 0);
		assert_int_equal(result.nr, nr_truth);
		assert_true(same_as_truth(result.nr));
		assert_true(result.nr >= (uint32_t)at_least);
	}
}

/* In builds for sanitisers, all callers need rbp, which these tests take from them or leave as it
 * is. */
static void skip_with_frame_pointers(void)
{
	if (SANITIZED)
		skip();
}

static int set_up(void **state)
{
	shot.stack_end = shot_stack_end();
	return 0;
}

NOINLINE static int recurse(int n)
{
	volatile int keep[3] = { n, n, n };

	if (n == 0)
		take();
	else
		keep[1] = recurse(n - 1);
	return keep[0] + keep[1];
}

TEST(test_recursion, set_up)
{
	assert_int_equal(recurse(20), 190 + 20);
	assert_true_chain(22);
}

static int compare_and_take(const void *a, const void *b)
{
	take();
	return *(const int *)a - *(const int *)b;
}

TEST(test_through_libc, set_up)
{
	int v[] = { 3, 1, 2 };

	qsort(v, 3, sizeof(v[0]), compare_and_take);
	assert_true_chain(6);
}

NOINLINE static void with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	p[n - 1] = 1;
	take();
	p[0] = p[n - 1];
}

TEST(test_alloca, set_up)
{
	with_alloca(1000);
	assert_true_chain(4);
}

NOINLINE static void with_alignment(void *p)
{
	volatile char big[256] __attribute__((aligned(128)));

	big[0] = *(char *)p;
	recurse(2);
	big[1] = big[0];
}

TEST(test_realigned_stack, set_up)
{
	char c = 1;

	with_alignment(&c);
	assert_true_chain(7);
}

static jmp_buf after_noreturn;

__attribute__((noreturn, noinline)) static void never_returns(void)
{
	take();
	longjmp(after_noreturn, 1);
}

/* The call is the last instruction: its return address is behind the function. */
NOINLINE static void last_call_never_returns(void)
{
	never_returns();
}

TEST(test_noreturn_last_call, set_up)
{
	if (!setjmp(after_noreturn))
		last_call_never_returns();
	assert_true_chain(5);
}

static void on_signal(int sig)
{
	take();
}

static void raise_with(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	raise(SIGUSR1);
}

TEST(test_signal_handler, set_up)
{
	raise_with(0);
	assert_true_chain(8);
}

/* A fault: the interrupted pc is in the middle of a function, not behind a call. */
static volatile char *fault_at;

static void on_fault(int sig)
{
	take();
	mprotect((void *)fault_at, 4096, PROT_READ | PROT_WRITE);
}

TEST(test_fault_handler, set_up)
{
	struct sigaction sa = { .sa_handler = on_fault };

	fault_at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(sigaction(SIGSEGV, &sa, NULL), 0);
	fault_at[0] = 1;
	signal(SIGSEGV, SIG_DFL);
	munmap((void *)fault_at, 4096);
	assert_true_chain(5);
}

/* Below all frames, in the same memory: the copy holds both stacks, and sp jumps up. */
TEST(test_alternate_stack_inside, set_up)
{
	char *below = (char *)__builtin_frame_address(0) - (48 << 10);
	stack_t alt = { .ss_sp = below, .ss_size = 24 << 10 };

	assert_int_equal(sigaltstack(&alt, NULL), 0);
	raise_with(SA_ONSTACK);
	alt.ss_flags = SS_DISABLE;
	sigaltstack(&alt, NULL);
	assert_true_chain(8);
}

/* On a separate stack, the copy ends with it: the interrupted frames are in a second copy only. */
TEST(test_alternate_stack_elsewhere, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	size_t size = 1 << 16;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alt = { .ss_sp = memory, .ss_size = size };
	struct unwind_input in;

	interrupted.regs[SHOT_SP] = (uint64_t)__builtin_frame_address(0) - (8 << 10);
	interrupted.stack_end = shot.stack_end;
	shot.stack_end = (uint64_t)memory + size;
	assert_int_equal(sigaltstack(&alt, NULL), 0);
	raise_with(SA_ONSTACK);
	interrupted.stack_end = 0;
	alt.ss_flags = SS_DISABLE;
	sigaltstack(&alt, NULL);
	munmap(memory, size);
	world_load(&world, getpid());
	in = input();
	unwind_sample(world.row, &in, &result);
	/* No larger copy has them. */
	assert_int_equal(result.stop, UNWIND_SWITCHED);
	/* take, the trampoline, and the pc that the kernel saved */
	assert_true(result.nr >= 3);
	assert_true(same_as_truth(result.nr));
	in.interrupted = (struct unwind_interrupted){ .sp = interrupted.regs[SHOT_SP],
						      .bytes = interrupted.stack,
						      .size = interrupted.size };
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, nr_truth);
		assert_true(same_as_truth(result.nr));
	}
	/* It ends early. */
	in.interrupted.size = result.sp[result.nr - 3] - in.interrupted.sp;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_TRUNCATED);
	assert_true(result.nr >= 3 && same_as_truth(result.nr));
}

/*
 * The copy ends early: the walk says which address it wants, and goes on in a second copy of the
 * same stack. If that may be of another time, the frames in it are guesses.
 */
TEST(test_beyond_copy, set_up)
{
	static uint8_t parts[256 + SHOT_STACK];
	struct lang_other_part part;
	struct unwinder *u[] = { world.step, world.row, world.row };
	struct unwind_input in;
	uint64_t sp;
	size_t size;

	recurse(10);
	world_load(&world, getpid());
	in = input();
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_COMPLETE);
	assert_int_equal(result.wanted, 0);
	size = result.sp[2] - result.sp[0];
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		in = input();
		sp = shot.regs[SHOT_SP];
		in.stack_size = size;
		in.stack_full = true;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_TRUNCATED);
		assert_in_range(result.wanted, sp + size, sp + size + 4096);
		in.interrupted = (struct unwind_interrupted){ .sp = sp + size,
							      .bytes = in.stack + size,
							      .size = shot.size - size };
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_true(same_as_truth(result.nr));
		assert_int_equal(result.nr_guessed, 0);
		/* The same in parts, of which the first one is not on the way. */
		part.sp = sp + size;
		part.size = 64;
		memcpy(parts + 128, &part, 16);
		memcpy(parts + 128 + 16, in.stack + size, 64);
		part.sp = sp + size + 64;
		part.size = 1ULL << 40;
		memcpy(parts + 128 + 80, &part, 16);
		memcpy(parts + 128 + 96, in.stack + size + 64, shot.size - size - 64);
		in.interrupted =
			(struct unwind_interrupted){ .sp = sp - 4096,
						     .bytes = parts,
						     .size = 128 + 96 + shot.size - size - 64,
						     .rest = 96 + shot.size - size - 64 };
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_true(same_as_truth(result.nr));
		assert_int_equal(result.nr_guessed, 0);
		in.interrupted.guessed = true;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, result.nr - 3);
		assert_int_equal(result.guessed_by, 2);
	}
}

#ifdef __x86_64__
/* As libcrypto's SHA-2: while sp moves, the word below it tells the frame. DWARF: *(rsp - 8) + 8.
 */
__asm__(".text\n.globl below_sp\n.type below_sp,@function\nbelow_sp:\n.cfi_startproc\n"
	".cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8\n	.fill 16, 1, 0x90\n"
	".cfi_endproc\n.size below_sp, .-below_sp\n");
extern const char below_sp[];

/* As helpers in x264's assembler: it uses rbp for a value that is not the caller's. */
__asm__(".text\n.globl uses_rbp\n.type uses_rbp,@function\nuses_rbp:\n.cfi_startproc\n"
	".cfi_undefined %rbp\n	.fill 16, 1, 0x90\n"
	".cfi_endproc\n.size uses_rbp, .-uses_rbp\n");
extern const char uses_rbp[];

#define BELOW_FRAME 256

/*
 * The walk says that it wants a word below sp, and finds the frame by a second copy that has it. If
 * that may be another word by now, all callers are guesses.
 */
TEST(test_below_sp, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	uint64_t below[16] = { 0 }, ra, sp;
	static uint8_t stack[BELOW_FRAME + SHOT_STACK];
	struct unwind_input in;

	recurse(3);
	world_load(&world, getpid());
	/* It is called by the function that took the sample. */
	sp = shot.regs[SHOT_SP];
	ra = shot.regs[SHOT_IP] + 1;
	below[15] = sp - 8;
	memcpy(stack + BELOW_FRAME - 8, &ra, sizeof(ra));
	memcpy(stack + BELOW_FRAME, shot.stack, shot.size);
	shot.regs[SHOT_SP] = sp - BELOW_FRAME;
	shot.regs[SHOT_IP] = (uint64_t)(uintptr_t)below_sp + 4;
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		in = input();
		in.stack = stack;
		in.stack_size = BELOW_FRAME + shot.size;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_BAD_FRAME);
		assert_in_range(result.wanted, sp - BELOW_FRAME - 128, sp - BELOW_FRAME - 1);
		in.interrupted =
			(struct unwind_interrupted){ .sp = sp - BELOW_FRAME - sizeof(below),
						     .bytes = (const uint8_t *)below,
						     .size = sizeof(below) };
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, nr_truth + 1);
		assert_memory_equal(result.ip + 1, truth, (size_t)nr_truth * sizeof(truth[0]));
		assert_int_equal(result.nr_guessed, 0);
		in.interrupted.guessed = true;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, result.nr - 1);
		assert_int_equal(result.guessed_by, 0);
	}
}

/* libunwind 1.6 ends there; the row is enough. */
TEST(test_lost_frame_pointer, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	static uint8_t stack[8 + SHOT_STACK];
	struct unwind_input in;
	uint64_t ra;

	skip_with_frame_pointers();
	recurse(3);
	world_load(&world, getpid());
	ra = shot.regs[SHOT_IP] + 1;
	memcpy(stack, &ra, sizeof(ra));
	memcpy(stack + 8, shot.stack, shot.size);
	shot.regs[SHOT_SP] -= 8;
	shot.regs[SHOT_IP] = (uint64_t)(uintptr_t)uses_rbp + 4;
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		in = input();
		in.stack = stack;
		in.stack_size = 8 + shot.size;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, nr_truth + 1);
		assert_memory_equal(result.ip + 1, truth, (size_t)nr_truth * sizeof(truth[0]));
		assert_int_equal(result.nr_guessed, 0);
	}
}
#endif

#if defined(__x86_64__)
/* It says that its caller is on another stack; in rbp is no frame pointer. */
__asm__(".text\n\t.type on_other_stack, @function\non_other_stack:\n\t.cfi_startproc\n\t"
	".cfi_undefined rip\n\t.cfi_undefined rsp\n\t"
	"pushq %rbp\n\tmovl $1, %ebp\n\tcall *%rdi\n\tpopq %rbp\n\tret\n\t"
	".cfi_endproc\n\t.size on_other_stack, .-on_other_stack");
void on_other_stack(void (*fn)(void));

TEST(test_switch_of_stacks, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };

	on_other_stack(take);
	world_load(&world, getpid());
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		const struct unwind_input in = input();

		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_SWITCHED);
		assert_int_equal(result.nr, 2);
		assert_int_equal(result.nr_guessed, 0);
		assert_true(result.ip[0] == truth[0] && result.ip[1] == truth[1]);
	}
}

/* As caml_start_program of OCaml 5: the CFA is 80 bytes above the word on top of the stack. */
__asm__(".text\n\t.type with_saved_stack, @function\nwith_saved_stack:\n\t.cfi_startproc\n\t"
	"subq $8, %rsp\n\tmovq %rsi, (%rsp)\n\t"
	".cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 80\n\t"
	"call *%rdi\n\taddq $8, %rsp\n\tret\n\t"
	".cfi_endproc\n\t.size with_saved_stack, .-with_saved_stack");
void with_saved_stack(void (*fn)(void), uint64_t sp);

/* Its callers are on the other stack, which no larger copy has; nearer, a larger one has them. */
TEST(test_saved_stack, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	const uint64_t end = shot.stack_end, other[] = { end - 512, end + (1 << 20), 1 << 20 };

	no_truth = true;
	for (size_t k = 0; k < ARRAY_SIZE(other); k++) {
		with_saved_stack(take, other[k]);
		shot.size = MIN(shot.size, end - 512 - shot.regs[SHOT_SP]);
		world_load(&world, getpid());
		for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
			struct unwind_input in = input();

			in.stack_full = true;
			unwind_sample(u[i], &in, &result);
			assert_int_equal(result.stop, k ? UNWIND_SWITCHED : UNWIND_TRUNCATED);
			assert_int_equal(result.nr, 2);
			assert_true(result.ip[0] == truth[0]);
			assert_int_equal(result.nr_guessed, 0);
		}
	}
	no_truth = false;
}

/* As caml_c_call of OCaml 5: 8 bytes above that word. */
__asm__(".text\n\t.type with_lower_stack, @function\nwith_lower_stack:\n\t.cfi_startproc\n\t"
	"subq $8, %rsp\n\tmovq %rsi, (%rsp)\n\t"
	".cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8\n\t"
	"call *%rdi\n\taddq $8, %rsp\n\tret\n\t"
	".cfi_endproc\n\t.size with_lower_stack, .-with_lower_stack");
void with_lower_stack(void (*fn)(void), uint64_t sp);

/* The other stack is below: it is wanted, and its copy has the callers. */
TEST(test_lower_stack, set_up)
{
	static const struct {
		void (*run)(void (*)(void), uint64_t);
		size_t ra;
	} cases[] = { { with_saved_stack, 72 }, { with_lower_stack, 0 } };
	struct unwinder *u[] = { world.step, world.row, world.row };
	const uint64_t lower = 1 << 20;
	uint64_t words[32] = { 0 };

	no_truth = true;
	for (size_t k = 0; k < 2 * ARRAY_SIZE(cases); k++) {
		const bool read = k % 2;

		cases[k / 2].run(take, lower);
		world_load(&world, getpid());
		words[cases[k / 2].ra / 8] = (uintptr_t)recurse + 8;
		for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
			struct unwind_input in = input();

			if (read)
				in.interrupted = (struct unwind_interrupted){
					.sp = lower,
					.bytes = (const uint8_t *)words,
					.size = sizeof(words),
				};
			unwind_sample(u[i], &in, &result);
			assert_int_equal(result.nr_guessed, 0);
			assert_true(result.ip[0] == truth[0]);
			if (!read) {
				assert_int_equal(result.stop, UNWIND_SWITCHED);
				assert_int_equal(result.nr, 2);
				assert_int_equal(result.wanted, lower + cases[k / 2].ra);
			} else {
				assert_true(result.nr > 2);
				assert_int_equal(result.ip[2], (uintptr_t)recurse + 7);
				assert_int_equal(result.sp[2], lower + cases[k / 2].ra + 8);
			}
		}
	}
	no_truth = false;
}

/* As __morestack of gcc -fsplit-stack: it keeps its frame pointer on the stack that it has left. */
__asm__(".text\n\t.type with_left_frame, @function\nwith_left_frame:\n\t.cfi_startproc\n\t"
	"pushq %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset rbp, -16\n\t"
	"movq %rsi, %rbp\n\ttestq %rsi, %rsi\n\tcmovzq %rsp, %rbp\n\t.cfi_def_cfa rbp, 16\n\t"
	"call *%rdi\n\t.cfi_def_cfa rsp, 16\n\tpopq %rbp\n\t.cfi_def_cfa_offset 8\n\tret\n\t"
	".cfi_endproc\n\t.size with_left_frame, .-with_left_frame");
void with_left_frame(void (*fn)(void), uint64_t fp);

/* A number that is no address of a frame, or a near one, is none of another stack. */
TEST(test_left_frame, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	const uint64_t end = shot.stack_end;
	const struct {
		uint64_t fp;
		int stop;
	} frames[] = {
		{ 0, UNWIND_COMPLETE }, /* the frame of with_left_frame() */
		{ end + (1 << 20), UNWIND_SWITCHED },
		{ end + (1 << 20) + 1, UNWIND_BAD_FRAME },
		{ end - 128, UNWIND_BAD_FRAME },
	};

	no_truth = true;
	for (size_t k = 0; k < ARRAY_SIZE(frames); k++) {
		with_left_frame(take, frames[k].fp);
		if (frames[k].fp)
			shot.size = MIN(shot.size, end - 512 - shot.regs[SHOT_SP]);
		world_load(&world, getpid());
		for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
			struct unwind_input in = input();

			in.stack_full = false;
			unwind_sample(u[i], &in, &result);
			assert_int_equal(result.stop, frames[k].stop);
			assert_true(result.ip[0] == truth[0]);
			assert_int_equal(result.nr_guessed, 0);
			assert_true(!frames[k].fp || result.nr == 2);
		}
	}
	no_truth = false;
}

/* The same with its frame in order: the rest of the stack is the one that it has left. */
__asm__(".text\n\t.type on_left_stack, @function\non_left_stack:\n\t.cfi_startproc\n\t"
	".cfi_undefined rip\n\t.cfi_undefined rsp\n\t"
	"subq $8, %rsp\n\tcall *%rdi\n\taddq $8, %rsp\n\tret\n\t"
	".cfi_endproc\n\t.size on_left_stack, .-on_left_stack");
void on_left_stack(void (*fn)(void));

/* The first function of a stack, as goexit() of Go. */
__asm__(".text\n\t.type at_root, @function\nat_root:\n\t.cfi_startproc\n\t"
	".cfi_undefined rip\n\t"
	"subq $8, %rsp\n\tcall *%rdi\n\taddq $8, %rsp\n\tret\n\t"
	".cfi_endproc\n\t.size at_root, .-at_root");
void at_root(void (*fn)(void));

/* The rest of the stack is in a second copy, for the frame of @run. @stop: for another one. */
static void check_left_stack(void (*run)(void (*)(void)), enum unwind_stop stop)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	struct unwind_input in;
	uint64_t from, ra;

	run(take);
	world_load(&world, getpid());
	in = input();
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.nr, 2);
	from = result.sp[1];
	in.stack_size = from + 8 - shot.regs[SHOT_SP];
	in.interrupted = (struct unwind_interrupted){ .sp = from + 8,
						      .bytes = in.stack + in.stack_size,
						      .size = shot.size - in.stack_size,
						      .from = from };
	memcpy(&ra, in.interrupted.bytes, sizeof(ra));
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_true(result.nr > 4 && result.ip[2] == ra - 1);
		assert_int_equal(result.sp[2], from + 16);
		assert_int_equal(result.nr_guessed, 0);
	}
	in.interrupted.guessed = true;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_COMPLETE);
	assert_int_equal(result.nr_guessed, 1);
	assert_int_equal(result.guessed_by, 1);
	/* That of another frame. */
	in.interrupted.from += 16;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, stop);
	assert_int_equal(result.nr, 2);
}

/* As code of C that Go has called, and a goroutine that C has called. */
TEST(test_left_stack, set_up)
{
	skip_with_frame_pointers();
	check_left_stack(on_left_stack, UNWIND_SWITCHED);
	check_left_stack(at_root, UNWIND_COMPLETE);
}

/* Its table is off by a word, which is 0. */
__asm__(".text\n\t.type with_wrong_table, @function\nwith_wrong_table:\n\t.cfi_startproc\n\t"
	"subq $24, %rsp\n\t.cfi_def_cfa_offset 24\n\tmovq $0, 16(%rsp)\n\t"
	"call *%rdi\n\taddq $24, %rsp\n\tret\n\t"
	".cfi_endproc\n\t.size with_wrong_table, .-with_wrong_table");
void with_wrong_table(void (*fn)(void));

/* As LuaJIT's interpreter: a return address of 0 is no root, where the true one is right above. */
TEST(test_zero_is_no_root, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };
	const uint64_t begin = (uint64_t)(uintptr_t)on_left_stack;
	struct unwind_input in;
	uint64_t ra, at;

	with_wrong_table(take);
	world_load(&world, getpid());
	in = input();
	unwind_sample(world.row, &in, &result);
	at = result.sp[1] + 24;
	memcpy(&ra, shot.stack + (at - shot.regs[SHOT_SP]), sizeof(ra));
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_true(result.nr > 4 && result.ip[2] == ra - 1);
		assert_int_equal(result.sp[2], at + 8);
		assert_int_equal(result.nr_guessed, 1);
		assert_int_equal(result.guessed_by, 1);
	}
	/* A stack that was made: no word above it is a return address, but a function to call. */
	memset(shot.stack + (at - shot.regs[SHOT_SP]), 0, 32);
	memcpy(shot.stack + (at - shot.regs[SHOT_SP]), &begin, sizeof(begin));
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, 2);
		assert_int_equal(result.nr_guessed, 0);
	}
}

/* The page of the kernel's probes in this process. */
static struct maps_mmap probes_at(uint64_t start)
{
	return (struct maps_mmap){
		.pid = getpid(),
		.tid = getpid(),
		.start = start,
		.size = 4096,
		.time_ns = time_now_ns(),
		.prot = PROT_EXEC,
		.filename = "[uprobes]",
		.filename_size = 9,
	};
}

/* The kernel replaced the return address of a function. */
TEST(test_return_probe, set_up)
{
	const uint64_t at = 0x7fffffffe000;
	const struct maps_mmap probes = probes_at(at);
	const struct unwind_config config = { .ask_calls = true };
	struct unwinder *u;
	uint64_t word = 0;
	size_t i = 0, at_word;

	recurse(2);
	/* From the second recurse() to the third. */
	for (; i + 8 <= shot.size && word != truth[2] + 1; i += 8)
		memcpy(&word, shot.stack + i, 8);
	assert_int_equal(word, truth[2] + 1);
	at_word = i;
	memcpy(shot.stack + i - 8, &at, 8);
	world_load(&world, getpid());
	maps_on_mmap(world.maps, &probes);
	world_load(&world, getpid());
	for (i = 0; i < 2; i++) {
		const struct unwind_input in = input();

		unwind_sample(world.row, &in, &result);
		assert_int_equal(result.stop, UNWIND_PROBE);
		assert_false(result.maps_stale);
		assert_int_equal(result.nr, 2);
		assert_true(same_as_truth(2));
	}
	/* Its caller is one that calls it and is called before an address further up. */
	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	for (i = 0; i < 4; i++) {
		struct unwind_input in = input();

		in.pid = (uint32_t)getpid();
		unwind_sample(u, &in, &result);
		assert_int_equal(result.stop, i ? UNWIND_COMPLETE : UNWIND_PROBE);
		assert_int_equal(result.asked, !i);
		calls_serve();
	}
	assert_int_equal(result.nr, nr_truth);
	assert_true(result.nr_guessed > 0 && result.probed);
	assert_true(same_as_truth(result.nr));
	/* No function is called there that calls it: the probe is reported. */
	memset(shot.stack + at_word, 0, shot.size - at_word);
	{
		struct unwind_input in = input();

		in.pid = (uint32_t)getpid();
		unwind_sample(u, &in, &result);
		assert_int_equal(result.stop, UNWIND_PROBE);
	}
	unwind_free(u);
}

/* probed() calls no function; each of the others is its caller in another way. */
#define PROBED(name, code)                                                                         \
	__asm__(".text\n.type " #name ", @function\n" #name ": .cfi_startproc\n\t" code            \
		"\tret\n\t.cfi_endproc\n.size " #name ", . - " #name "\n.globl " #name "\n")
#define PROBED_CALL(name, call)                                                                    \
	PROBED(name, "sub $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\t" call "\n.globl " #name         \
		     "_at\n" #name "_at: add $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n")
PROBED(probed, "nop\n");
PROBED(probed_jump, "nop\n\tjmp probed\n"); /* as a tail call */
PROBED_CALL(probed_by_jump, "call probed_jump");
PROBED_CALL(probed_by_register, "call *%rax");
PROBED_CALL(probed_middle, "call probed");
PROBED_CALL(probed_nested, "call probed_middle");
PROBED(probed_last, ".cfi_undefined rip\n\tcall *%rax\n");
PROBED(probed_root, ".cfi_undefined rip\n\tcall probed_by_jump\n.globl probed_from\n"
		    "probed_from: call probed_by_register\n\tcall probed_nested\n"
		    "\tcall probed_last\n");
/* Calls of 600 functions, each of which is another one. */
__asm__(".macro calls_600\n.rept 600\n.byte 0xe8\n.long 0x4000\n.endr\n.endm");
PROBED_CALL(probed_dense, "calls_600\n\tcall probed");
PROBED(probed_around, "sub $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall probed_middle\n"
		      ".globl probed_around_at\nprobed_around_at: calls_600\n"
		      "\tadd $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n");
PROBED(probed_dense_root, ".cfi_undefined rip\n\tcall probed_dense\n.globl probed_dense_from\n"
			  "probed_dense_from: call probed_around\n\tnop\n");
extern const char probed_dense_from[], probed_dense_at[], probed_around_at[];
extern const char probed[], probed_from[], probed_by_jump_at[], probed_by_register_at[];
extern char probed_middle[];
extern const char probed_middle_at[], probed_nested_at[];

/* Write into code as a debugger does: the pages are not writable. */
static void poke(void *at, uint8_t byte)
{
	int fd = open("/proc/self/mem", O_RDWR);

	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(uintptr_t)at), 1);
	close(fd);
}

/* Unwind from probed() until its callers are known: the places behind the calls. */
static void unwind_probed(const uint64_t *words, uint32_t nr, const char *const *callers,
			  uint32_t nr_callers)
{
	const struct unwind_config config = { .ask_calls = true };
	struct unwinder *u;

	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = (uintptr_t)probed + 1;
	shot.regs[SHOT_SP] = 0x10000;
	memcpy(shot.stack, words, nr * sizeof(*words));
	shot.size = nr * sizeof(*words);
	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	for (int i = 0; i < 6; i++) {
		struct unwind_input in = input();

		in.pid = (uint32_t)getpid();
		unwind_sample(u, &in, &result);
		calls_serve();
	}
	assert_int_equal(result.stop, nr_callers ? UNWIND_COMPLETE : UNWIND_PROBE);
	assert_int_equal(result.nr, nr_callers + 1);
	assert_int_equal(result.nr_guessed > 0, nr_callers > 0);
	for (uint32_t i = 0; i < nr_callers; i++)
		assert_int_equal(result.ip[i + 1], (uintptr_t)callers[i] - 1);
	unwind_free(u);
}

/* Callers behind return probes: by a jump, by a register, and themselves with a probe. */
TEST(test_return_probe_callers, set_up)
{
	const uint64_t at = 0x7fffffffd000, from = (uintptr_t)probed_from;
	const struct maps_mmap probes = probes_at(at);
	uint8_t byte = (uint8_t)probed_middle[0];

	world_load(&world, getpid());
	maps_on_mmap(world.maps, &probes);
	world_load(&world, getpid());
	unwind_probed((uint64_t[]){ at, 0, from }, 3,
		      (const char *[]){ probed_by_jump_at, probed_from }, 2);
	unwind_probed((uint64_t[]){ at, 0, from + 5 }, 3,
		      (const char *[]){ probed_by_register_at, probed_from + 5 }, 2);
	unwind_probed((uint64_t[]){ at, 0, (uintptr_t)probed_dense_from }, 3,
		      (const char *[]){ probed_dense_at, probed_dense_from }, 2);
	/* The frame of a function that calls by register does not end there: it is another one. */
	unwind_probed((uint64_t[]){ at, 0, 1, from + 5 }, 4, NULL, 0);
	unwind_probed((uint64_t[]){ at, from + 15 }, 2, NULL, 0);
	/* Two return addresses were replaced: the function between them has a probe. */
	poke(probed_middle, 0xcc);
	unwind_probed((uint64_t[]){ at, 0, at, 0, from + 10 }, 5,
		      (const char *[]){ probed_middle_at, probed_nested_at, probed_from + 10 }, 3);
	unwind_probed((uint64_t[]){ at, 0, at, 0, (uintptr_t)probed_dense_from + 5 }, 5,
		      (const char *[]){ probed_middle_at, probed_around_at, probed_dense_from + 5 },
		      3);
	poke(probed_middle, byte);
}
#endif

#if defined(__x86_64__)
#define MADE_SIZE 4096

/* Unwind code of a JIT twice: before its call is known, and after it was read. */
static void unwind_made(struct unwinder *u, uint8_t *made)
{
	struct unwind_input in;

	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = (uintptr_t)made + 0x800;
	shot.regs[SHOT_SP] = 0x10000;
	shot.regs[SHOT_FP] = 0x10020;
	memcpy(shot.stack + 0x28, (uint64_t[]){ (uintptr_t)made + 0x100 }, 8);
	shot.size = 0x40;
	world_load(&world, getpid());
	in = input();
	in.pid = (uint32_t)getpid();
	unwind_sample(u, &in, &result);
	assert_int_equal(result.nr, 2);
	assert_int_equal(result.nr_guessed, 1);
	assert_true(result.asked);
	calls_serve();
	unwind_sample(u, &in, &result);
	assert_false(result.asked);
}

__asm__(".text\n\t.type without_table, @function\nwithout_table: nop\n\tret\n\t"
	".size without_table, .-without_table\n\t"
	".type with_table, @function\nwith_table:\n\t.cfi_startproc\n\tnop\n\tret\n\t"
	".cfi_endproc\n\t.size with_table, .-with_table");
void with_table(void);
void without_table(void);

/* Assembler keeps a number in the frame pointer: two words of 0 there do not end the stack for
 * certain.
 */
TEST(test_zeros_at_fp, set_up)
{
	struct unwinder *u[] = { world.step, world.row, world.row };

	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = (uint64_t)(uintptr_t)without_table;
	shot.regs[SHOT_SP] = 0x10000;
	shot.regs[SHOT_FP] = 0x10020;
	shot.size = 0x40;
	world_load(&world, getpid());
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		struct unwind_input in = input();

		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, 1);
		assert_int_equal(result.nr_guessed, 1);
		assert_int_equal(result.guessed_by, 0);
	}
	/* A table leads to a frame pointer of 0, as at the start of a process. */
	shot.regs[SHOT_IP] = (uint64_t)(uintptr_t)with_table;
	shot.regs[SHOT_FP] = 0;
	memcpy(shot.stack, (uint64_t[]){ (uint64_t)(uintptr_t)without_table + 1 }, 8);
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		struct unwind_input in = input();

		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, 2);
		assert_int_equal(result.nr_guessed, 0);
	}
}

__asm__(".type starts_stack, @function\nstarts_stack:\n\t.cfi_startproc\n\tnop\n\tret\n\t"
	".cfi_endproc\n\t.size starts_stack, .-starts_stack\n\t"
	".type calls_last, @function\ncalls_last:\n\t.cfi_startproc\n\tcall with_table\n\t"
	".cfi_endproc\n\t.size calls_last, .-calls_last\n\t"
	".type called_last, @function\ncalled_last:\n\t.cfi_startproc\n\tnop\n\tret\n\t"
	"call 1f\n\t.cfi_endproc\n\t.size called_last, .-called_last\n\t"
	".type ends_stack, @function\nends_stack:\n1:\t.cfi_startproc\n\tnop\n\tret\n\t"
	".cfi_endproc\n\t.size ends_stack, .-ends_stack");
void starts_stack(void);
void called_last(void);
void ends_stack(void);

/* libcoro: the stack begins with the address of a function, right behind another one. */
TEST(test_started_by_hand, set_up)
{
	const struct unwind_config config = { .ask_calls = true };
	const uint64_t junk = 0xfff0000000;
	uint64_t to[] = { (uintptr_t)starts_stack, (uintptr_t)ends_stack, (uintptr_t)called_last };
	struct unwinder *u;

	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	world_load(&world, getpid());
	for (int at = 0; at < 3; at++) {
		bool last = at == 2;

		memset(&shot, 0, sizeof(shot));
		shot.regs[SHOT_IP] = (uintptr_t)with_table;
		shot.regs[SHOT_SP] = 0x10000;
		memcpy(shot.stack, (uint64_t[]){ to[at], junk }, 16);
		shot.size = 0x20;
		for (int known = 0; known < 2; known++) {
			struct unwind_input in = input();

			in.pid = (uint32_t)getpid();
			unwind_sample(u, &in, &result);
			assert_int_equal(result.stop,
					 known && !last ? UNWIND_COMPLETE : UNWIND_NO_MAP);
			assert_int_equal(result.nr, 2);
			assert_int_equal(result.asked, !known);
			assert_int_equal(result.ip[1], to[at] - (last || !known));
			calls_serve();
		}
	}
	unwind_free(u);
}

/*
 * As Bun, without tables but with frame pointers: the row of code that nothing leads to takes it
 * for the begin of a function, and leads to no code.
 */
TEST(test_likely_row, set_up)
{
	const struct cfi_row begin = { .kind = CFI_ROW,
				       .cfa_off = 8,
				       .ra_where = CFI_AT_CFA,
				       .ra_off = -8,
				       .fp_where = CFI_SAME };
	const uint64_t likely = (uintptr_t)without_table + 1, to = (uintptr_t)with_table + 1;
	struct unwinder *u;

	world_must(unwind_new_with(&u, world.places, world.objects, &(struct unwind_config){ 0 },
				   NULL));
	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = to;
	shot.regs[SHOT_SP] = 0x10000;
	shot.regs[SHOT_FP] = 0x10020;
	memcpy(shot.stack, (uint64_t[]){ likely, 0xfff0000000, 0, 0, 0, to }, 48);
	shot.size = 0x40;
	world_load(&world, getpid());
	for (int i = 0; i < 2; i++) {
		struct unwind_input in = input();

		unwind_sample(u, &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr, 3);
		assert_int_equal(result.ip[1], likely - 1);
		assert_int_equal(result.ip[2], to - 1);
		assert_int_equal(result.nr_guessed, 1);
		rows_put(u->rows, result.place[1], row_pack(&begin) | ROW_DERIVED | ROW_GUESS);
	}
	unwind_free(u);
}

/* A guessed caller is none where no call is before its address. */
TEST(test_guess_behind_call, set_up)
{
	const struct unwind_config config = { .ask_calls = true };
	struct unwinder *u;

	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	for (int call = 0; call < 2; call++) {
		/* Another mapping: the answer is kept for an address. */
		uint8_t *made = mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(made != MAP_FAILED);
		memset(made, 0x90, MADE_SIZE);
		if (call)
			memcpy(made + 0xfe, (uint8_t[]){ 0xff, 0xd0 }, 2);
		unwind_made(u, made);
		assert_int_equal(result.nr, 1 + call);
		assert_int_equal(result.nr_guessed, call);
		assert_int_equal(result.stop, call ? UNWIND_COMPLETE : UNWIND_NO_CALL);
	}
	unwind_free(u);
}

/* SBCL: a word on top of the stack is an address of executable memory, but no return address. */
TEST(test_word_on_top, set_up)
{
	const struct unwind_config config = { .ask_calls = true };
	uint8_t *made = mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct unwind_input in;
	struct unwinder *u;

	assert_true(made != MAP_FAILED);
	memset(made, 0x90, MADE_SIZE);
	memcpy(made + 0xfe, (uint8_t[]){ 0xff, 0xd0 }, 2);
	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	unwind_made(u, made);
	memcpy(shot.stack, (uint64_t[]){ (uintptr_t)made + 0x200 }, 8);
	in = input();
	in.pid = (uint32_t)getpid();
	for (int known = 0; known < 2; known++) {
		unwind_sample(u, &in, &result);
		calls_serve();
	}
	assert_int_equal(result.stop, UNWIND_COMPLETE);
	assert_int_equal(result.nr, 2);
	assert_int_equal(result.ip[1], (uintptr_t)made + 0xff);
	unwind_free(u);
}

/*
 * Code that YJIT made has its return address, into the file of Ruby's loop, above registers that it
 * pushed. Other words are none, and other code has no such rule.
 */
TEST(test_compiled_ruby, set_up)
{
	const uint64_t loop = (uintptr_t)with_table;
	const struct lang_process ruby = { .eval = { { loop, loop + 2 } }, .nr_eval = 1 };
	uint8_t *made = mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(made != MAP_FAILED);
	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = (uintptr_t)made + 0x800;
	shot.regs[SHOT_SP] = 0x10000;
	shot.regs[SHOT_FP] = 3;
	memcpy(shot.stack, (uint64_t[]){ 3, (uintptr_t)&shot, loop, loop + 1, 0 }, 40);
	shot.size = 0x40;
	world_load(&world, getpid());
	for (int i = 0; i < 2; i++) {
		struct unwind_input in = input();

		in.ruby = i ? NULL : &ruby;
		unwind_sample(world.row, &in, &result);
		assert_int_equal(result.stop, i ? UNWIND_NO_CFI : UNWIND_COMPLETE);
		assert_int_equal(result.nr, 2 - i);
		assert_int_equal(result.nr_guessed, 1 - i);
		assert_int_equal(result.nr_loop_guessed, 1 - i);
	}
	assert_int_equal(result.ip[0], (uintptr_t)made + 0x800);
	munmap(made, MADE_SIZE);
}

/*
 * Take the chain of this function, then call @take by a stub of CPython, at an odd address, which
 * libgcc cannot pass. Return the address of the stub.
 */
NOINLINE static uint64_t take_in_stub(const char *stub, size_t size)
{
	uint8_t *made = mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*volatile call)(int, int, int, void (*)(void));

	assert_true(made != MAP_FAILED);
	memcpy(made + 11, stub, size);
	call = (void (*)(int, int, int, void (*)(void)))(uintptr_t)(made + 11);
	take();
	world_load(&world, getpid());
	unwind_with(world.row);
	call(0, 0, 0, take);
	world_load(&world, getpid());
	return (uint64_t)(uintptr_t)(made + 11);
}

/*
 * Code of a JIT has the frames that were derived from it, once there are some: of a process with
 * V8, a guess.
 */
TEST(test_derived_code, set_up)
{
	static const char stub[] = "\x48\x83\xec\x18\xff\xd1\x48\x83\xc4\x18\xc3";
	const struct unwind_config config = { .ask_calls = true };
	const uint64_t at = take_in_stub(stub, 11);
	struct unwind_input in = input();
	struct codemap *map = codemap_new(1, 0, 0);
	struct object *object;
	struct unwinder *u;

	map->derived = true;
	map->codes[0] = (struct codemap_code){
		.start = at + 4, .size = 6, .kind = CODEMAP_DERIVED, .derived = { 32, -8, 0, false }
	};
	object = space_find(in.space, at, in.time_ns)->object;
	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	in.pid = (uint32_t)getpid();
	for (int round = 0; round < 4; round++) {
		unwind_sample(u, &in, &result);
		calls_serve();
		assert_int_equal(result.stop == UNWIND_COMPLETE && !result.nr_guessed, round == 3);
		assert_true(atomic_load(&object->codemap_wanted));
		if (round == 1)
			codemap_publish(object, map);
	}
	assert_true(result.ip[1] == at + 5);
	codemap_reclaim(codemap_publish(object, NULL));
	unwind_free(u);
}

/* A stub of AArch64, read on this machine. */
static void ask_stub_arm64(void)
{
	static const char stub[] = "\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x60\x00\x3f\xd6"
				   "\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6";
	struct call_question q = { .key = 8,
				   .address = (uint64_t)(uintptr_t)stub + 12,
				   .pid = getpid(),
				   .machine = EM_AARCH64,
				   .kind = CALL_STUB };
	uint64_t frame;

	assert_true(call_ask(&q));
	calls_serve();
	assert_int_equal(call_site(q.key, &frame), CALL_REACHES);
	assert_int_equal(frame, CALL_STUB_FP | 16);
}

/* Stubs of CPython -X perf: their code is known, and once it was compared no guess is needed. */
TEST(test_stub, set_up)
{
	static const struct {
		const char *code;
		size_t size;
	} stubs[] = {
		{ "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11 },
		{ "\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 8 },
		/* Nearly the first: the frame is not known by its code. */
		{ "\x48\x83\xec\x18\xff\xd1\x48\x83\xc4\x18\xc3", 11 },
	};
	const struct unwind_config config = { .ask_calls = true };
	struct unwinder *u;

	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		const uint64_t at = take_in_stub(stubs[i].code, stubs[i].size);
		const uint32_t nr = result.nr;
		uint64_t ip[TRUTH_MAX];

		memcpy(ip, result.ip, nr * sizeof(*ip));
		for (int again = 0; again < 2; again++) {
			struct unwind_input in = input();

			in.pid = (uint32_t)getpid();
			unwind_sample(u, &in, &result);
			assert_int_equal(result.asked, !again);
			calls_serve();
		}
		assert_int_equal(result.stop == UNWIND_COMPLETE && !result.nr_guessed, i < 2);
		assert_true(result.ip[0] == truth[0] && result.ip[1] == at + 5);
		if (i == 2)
			continue;
		/* The same callers as of take() without the stub. */
		assert_int_equal(result.nr, nr + 1);
		assert_true(result.ip[2] > ip[1] && result.ip[2] - ip[1] < 1024);
		assert_memory_equal(&result.ip[3], &ip[2], (nr - 2) * sizeof(*ip));
	}
	ask_stub_arm64();
	unwind_free(u);
}

/* A function of assembler that calls a part of itself, with one row for both. */
void inside_outer(void);
__asm__(".text\n"
	".p2align 4\n"
	"inside_outer:\n"
	".cfi_startproc\n"
	".cfi_def_cfa_offset 32\n"
	"nop\n"
	"call 1f\n" /* 6 bytes from the start */
	"call inside_outer\n"
	"nop; nop; nop; nop\n"
	"1:\n" /* 15 */
	"nop; nop; nop; nop\n"
	"ret\n"
	".cfi_endproc\n");

/* Unwind with the pc @at and the word @back on top; return whether it reached the caller. */
static bool leaves_inside(struct unwinder *u, uint64_t at, uint64_t back, uint32_t asks)
{
	const uint64_t outer = (uintptr_t)inside_outer, caller = (uintptr_t)recurse + 8;
	struct unwind_input in;
	uint32_t asked = 0;

	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = outer + at;
	shot.regs[SHOT_SP] = 0x10000;
	shot.size = 0x100;
	memcpy(shot.stack, (uint64_t[]){ outer + back, 1, 2, 3, caller }, 40);
	/* Whether it is a thunk is a question about the pc. */
	for (int i = 0; i < 3; i++) {
		in = input();
		in.pid = (uint32_t)getpid();
		unwind_sample(u, &in, &result);
		asked += result.asked;
		calls_serve();
	}
	assert_int_equal(asked, asks);
	return result.nr > 1 && !result.nr_guessed && result.ip[1] == caller - 1;
}

/* Walks in which nothing was unknown are the same without rows: @nr of the ones before. */
static void check_verified(const struct unwinder *u, uint64_t nr)
{
	struct unwind_stats s;

	unwind_stats(u, &s);
	assert_int_equal(s.nr_verified, nr);
	assert_int_equal(s.nr_verify_differ, 0);
}

TEST(test_call_inside, set_up)
{
	const struct unwind_config config = { .ask_calls = true, .verify_every = 1 };
	struct unwinder *u;

	world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
	assert_true(leaves_inside(u, 17, 6, 1));
	/* Not in the part that was called; behind a call of the whole function; behind none. */
	assert_false(leaves_inside(u, 12, 6, 0));
	assert_false(leaves_inside(u, 17, 11, 1));
	assert_false(leaves_inside(u, 17, 13, 1));
	check_verified(u, 4 * 3 - 3);
	unwind_free(u);
}

/*
 * As gcc -mfunction-return=thunk-inline returns, with a part of the function behind it: the table
 * has a word at the end of the thunk, also when that word has left the stack.
 */
void by_thunk(void);
__asm__(".section .text.unlikely, \"ax\", @progbits\n" /* the begin of .text */
	".p2align 4\n"
	"by_thunk:\n"
	".cfi_startproc\n"
	"nop\n"
	"call 1f\n" /* 6 bytes from the start */
	"2: pause\n"
	"lfence\n"
	"jmp 2b\n"
	"1:\n"
	".cfi_def_cfa_offset 16\n"
	"lea 8(%rsp), %rsp\n" /* 13 */
	"ret\n"
	"nop\n" /* 19: another part */
	"call 3f\n"
	"4: pause\n"
	"lfence\n"
	"jmp 4b\n"
	"3: mov %r11, (%rsp)\n" /* 32 */
	"ret\n"
	"push %rbp\n" /* 37: another part, with a frame and a call by a thunk inside */
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 6, -16\n"
	"sub $16, %rsp\n"
	".cfi_def_cfa_offset 32\n"
	"jmp 6f\n"
	"5: call 7f\n" /* 44 */
	"8: pause\n"
	"lfence\n"
	"jmp 8b\n"
	"7:\n"
	".cfi_def_cfa_offset 16\n"
	"mov %rax, (%rsp)\n" /* 56 */
	"ret\n"
	"6: call 5b\n"
	"add $16, %rsp\n" /* 66 */
	".cfi_def_cfa_offset 16\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	"call 9f\n" /* 71 */
	"4: pause\n"
	"lfence\n"
	"jmp 4b\n"
	"9:\n"
	".cfi_def_cfa_offset 16\n"
	"lea 8(%rsp), %rsp\n" /* 83 */
	"ret\n"
	".cfi_endproc\n"
	".text\n");

/*
 * Unwind at @at in by_thunk() with @below words on the stack, the first one @top, below the return
 * address; return whether it has its caller, by tables. Live there is one question, whether the
 * word on top is that of a part of the function that calls another.
 */
static bool leaves_thunk(struct unwinder *u, uint64_t at, unsigned int below, uint64_t top)
{
	const uint64_t caller = (uintptr_t)recurse + 8;
	const uint64_t back = (uintptr_t)by_thunk + 66;
	uint64_t words[] = { top, back, 1, 1, 1, 1, 1 };

	words[below] = caller;
	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = (uintptr_t)by_thunk + at;
	shot.regs[SHOT_SP] = 0x10000;
	shot.size = 0x100;
	memcpy(shot.stack, words, sizeof(words));
	for (int i = 0; i < 3; i++) {
		struct unwind_input in = input();

		in.pid = (uint32_t)getpid();
		unwind_sample(u, &in, &result);
		calls_serve();
	}
	return result.nr > 1 && !result.asked && !result.nr_guessed && result.ip[1] == caller - 1;
}

TEST(test_thunk, set_up)
{
	const uint64_t start = (uintptr_t)by_thunk;

	for (int live = 0; live < 2; live++) {
		const struct unwind_config config = { .ask_calls = live, .verify_every = 1 };
		struct unwinder *u;

		world_must(unwind_new_with(&u, world.places, world.objects, &config, NULL));
		assert_true(leaves_thunk(u, 13, 1, start + 6));
		assert_true(leaves_thunk(u, 18, 0, 0));
		assert_true(leaves_thunk(u, 19, 0, 0)); /* no thunk */
		assert_true(leaves_thunk(u, 20, 0, 0));
		assert_true(leaves_thunk(u, 32, 1, start + 25));
		assert_true(leaves_thunk(u, 36, 1, (uintptr_t)take));
		assert_true(leaves_thunk(u, 42, 3, 1));
		assert_true(leaves_thunk(u, 44, 4, start + 66));
		assert_true(leaves_thunk(u, 56, 5, start + 49));
		assert_true(leaves_thunk(u, 60, 5, (uintptr_t)take));
		assert_true(leaves_thunk(u, 66, 3, 1));
		assert_true(leaves_thunk(u, 83, 1, start + 76));
		assert_true(leaves_thunk(u, 88, 0, 0));
		check_verified(u, 13 * 3 - (live ? 5 : 0));
		unwind_free(u);
	}
}
#endif

static void *in_thread(void *arg)
{
	shot.stack_end = shot_stack_end();
	recurse(3);
	return NULL;
}

TEST(test_thread_has_a_root, set_up)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, in_thread, NULL), 0);
	pthread_join(t, NULL);
	assert_true_chain(7);
}

static ucontext_t outside, fiber;

static void in_fiber(void)
{
	recurse(3);
	swapcontext(&fiber, &outside);
}

/* A fiber's first function returns to __start_context(), which nothing called. */
static void check_fiber(uint8_t *memory, size_t size, size_t readable)
{
	struct unwinder *u[] = { world.step, world.row, world.row };

	shot.stack_end = (uint64_t)(uintptr_t)memory + readable;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = memory;
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = &outside;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&outside, &fiber);
	world_load(&world, getpid());
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		unwind_with(u[i]);
#if defined(__x86_64__)
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, 0);
#endif
		/* take, four times recurse, in_fiber, __start_context */
		assert_true(result.nr >= 6 && same_as_truth(6));
	}
}

/* The same where that address is the last word of the memory, as on stacks of PHP. */
TEST(test_fiber_has_a_root, set_up)
{
	const size_t size = 64u << 10, above = 16; /* words above the address */
	uint8_t *memory = aligned_alloc(4096, size + 4096);

	assert_non_null(memory);
	check_fiber(memory, size, size);
#if defined(__x86_64__)
	check_fiber(memory, size + above, size);
#endif
	free(memory);
}

TEST(test_truncated, set_up)
{
	struct unwind_input in;

	recurse(20);
	world_load(&world, getpid());
	in = input();
	for (in.stack_size = 0; in.stack_size < 1024; in.stack_size += 8) {
		in.stack_full = true;
		unwind_sample(world.row, &in, &result);
		assert_int_equal(result.stop, UNWIND_TRUNCATED);
		assert_true(result.nr >= 1);
		assert_true(same_as_truth(result.nr));
		if (!((shot.regs[SHOT_SP] + in.stack_size) & 4095) || !in.stack_size)
			continue;      /* see test_gap */
		in.stack_full = false; /* the stack is said to end here: it does not fit */
		unwind_sample(world.row, &in, &result);
		assert_int_equal(result.stop, UNWIND_BAD_FRAME);
	}
}

/* Have 1 MiB of stack that is never written, as a thread of Ruby. */
NOINLINE static int above_gap(void)
{
	volatile char unused[1 << 20];

	unused[0] = 1;
	take();
	return unused[0];
}

/* The kernel's copy ends at the first page that was never used; elsewhere an end is an end. */
TEST(test_gap, set_up)
{
	struct unwinder *u[] = { world.row, world.step };
	struct unwind_input in;

	if (SANITIZED) /* its variables are elsewhere */
		skip();
	assert_int_equal(above_gap(), 1);
	world_load(&world, getpid());
	in = input();
	in.stack_full = false;
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		/* The innermost page as well. */
		in.stack_size = 0;
		unwind_sample(u[i], &in, &result);
		assert_int_equal(result.stop, UNWIND_GAP);
		for (int rest = 0; rest < 2; rest++) {
			in.stack_size = 4096 - shot.regs[SHOT_SP] % 4096 + 8192 - 8 * (size_t)rest;
			assert_true(in.stack_size <= shot.size);
			unwind_sample(u[i], &in, &result);
			assert_int_equal(result.stop, rest ? UNWIND_BAD_FRAME : UNWIND_GAP);
			assert_true(result.nr >= 2);
			assert_true(same_as_truth(result.nr));
		}
	}
}

/* A stack copy that is too short gives the beginning of the same stack, truncated. */
TEST(test_part, set_up)
{
	static struct unwind_result whole;
	struct unwinder *u[] = { world.row, world.step };
	struct unwind_input in;

	recurse(20);
	world_load(&world, getpid());
	in = input();
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		size_t enough = 0;

		unwind_sample(u[i], &in, &whole);
		assert_int_equal(whole.stop, UNWIND_COMPLETE);
		for (size_t size = 0; size < shot.size; size += 8) {
			struct unwind_input part = in;

			part.stack_size = size;
			part.stack_full = true;
			unwind_sample(u[i], &part, &result);
			assert_true(result.nr <= whole.nr);
			assert_memory_equal(result.ip, whole.ip, result.nr * sizeof(whole.ip[0]));
			if (result.stop == UNWIND_COMPLETE)
				enough = enough ? enough : size;
			else
				assert_int_equal(result.stop, UNWIND_TRUNCATED);
			assert_true(!enough || result.nr == whole.nr);
		}
		assert_true(enough > 20 * 16 && enough < shot.size);
	}
}

TEST(test_pending_then_there, set_up)
{
	struct world fresh;
	struct unwind_input in;

	recurse(3);
	world_new(&fresh);
	world_maps(&fresh, getpid());
	world_find(&fresh, getpid());
	in = input();
	in.space = fresh.space;
	check_verified(fresh.row, 0);
	unwind_sample(fresh.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_PENDING);
	assert_int_equal(result.nr, 1);
	assert_true(result.asked);
	assert_true(result.place[0] != PLACE_NONE);
	unwind_sample(fresh.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_PENDING);
	assert_false(result.asked);
	check_verified(fresh.row, 0);
	world_load(&fresh, getpid());
	in.space = fresh.space;
	unwind_sample(fresh.row, &in, &result);
	/* libc is wanted next */
	assert_true(result.stop == UNWIND_COMPLETE || result.asked);
	world_free(&fresh);
}

/*
 * Large code without rows: the sites of the sample and of words above it are requested, once, and
 * until they are derived it is a guess; not where that is done, or no more is.
 */
TEST(test_sites, set_up)
{
	const uint64_t at = 0x7000000000, size = 64u << 16;
	static uint64_t done[2][IMAGE_SITES / 64];
	struct image_segment segment = {
		.offset = 0, .vaddr = 0, .file_size = size, .mem_size = size, .exec = true
	};
	struct image image = { .machine = EM_X86_64,
			       .elf_class = ELFCLASS64,
			       .segments = &segment,
			       .nr_segments = 1,
			       .source = "none",
			       .sites = { .shift = 16, .cut = true },
			       .done = done[0] };
	struct image more = { .machine = EM_X86_64,
			      .sites = { .shift = 16, .cut = true },
			      .done = done[1] };
	struct world made;
	struct object *object;
	struct unwind_input in;

	image.machine = arch_native()->machine;
	world_new(&made);
	world_map(&made, &image, 4242, at, size);
	object = space_find(made.space, at, time_now_ns())->object;
	object->sites = xcalloc(1, sizeof(*object->sites));
	memset(&shot, 0, sizeof(shot));
	shot.regs[SHOT_IP] = at + (3 << 16) + 7;
	shot.regs[SHOT_SP] = 0x10000;
	shot.size = 0x100;
	memcpy(shot.stack, (uint64_t[]){ 1, at + (9 << 16), 2, at + size, at + (5 << 16) }, 40);
	in = input();
	in.space = made.space;
	for (int i = 0; i < 2; i++) {
		unwind_sample(made.row, &in, &result);
		assert_int_equal(result.asked, !i);
		for (unsigned int k = 0; k < OBJECT_SITES; k++)
			assert_int_equal(atomic_load(&object->sites->nr[k]) > 0,
					 k == 3 || k == 9 || k == 5);
		assert_true(atomic_load(&object->sites->nr[3]) > (unsigned int)i);
	}
	for (int i = 0; i < 2; i++) {
		struct image *has = i ? &more : &image;
		unsigned int nr = atomic_load(&object->sites->nr[3]);

		has->done[0] = 1u << 3;
		atomic_store(&image.more, i ? &more : NULL);
		unwind_sample(made.row, &in, &result);
		assert_false(result.asked);
		assert_int_equal(atomic_load(&object->sites->nr[3]), nr);
		has->done[0] = 0;
	}
	shot.regs[SHOT_IP] += 1 << 16;
	in = input();
	in.space = made.space;
	atomic_store(&object->sites->closed, true);
	unwind_sample(made.row, &in, &result);
	assert_false(result.asked);
	assert_int_equal(atomic_load(&object->sites->nr[4]), 0);
	atomic_store(&object->image, NULL);
	world_free(&made);
}

TEST(test_bad_input, set_up)
{
	struct unwind_input in;
	struct unwind_stats before, after;

	recurse(3);
	world_load(&world, getpid());
	unwind_stats(world.row, &before);
	in = input();
	in.space = NULL;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_PENDING);
	in = input();
	in.regs_abi = PERF_SAMPLE_REGS_ABI_NONE;
	in.regs = NULL;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_BAD_REGS);
	in = input();
	in.regs_mask = 0x3f; /* neither sp nor ip */
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_BAD_REGS);
	assert_int_equal(result.nr, 0);
	in = input();
	shot.regs[SHOT_IP] = 0x10;
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_NO_MAP);
	assert_true(result.maps_stale);
	assert_int_equal(result.nr, 1);
	shot.regs[SHOT_IP] = (uint64_t)&shot; /* data */
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_NO_MAP);
	unwind_stats(world.row, &after);
	assert_int_equal(after.nr_samples - before.nr_samples, 5);
	assert_int_equal(after.nr_stop[UNWIND_BAD_REGS] - before.nr_stop[UNWIND_BAD_REGS], 2);
	assert_int_equal(after.nr_stop[UNWIND_NO_MAP] - before.nr_stop[UNWIND_NO_MAP], 2);
}

/* Junk on the stack: any stop will do, but frames are within bounds and sums fit. */
TEST(test_junk_stacks, set_up)
{
	uint64_t seed = 3;
	struct unwind_input in;

	recurse(20);
	world_load(&world, getpid());
	in = input();
	for (int n = 0; n < 3000; n++) {
		uint64_t keep[4], at[4];

		for (int i = 0; i < 4; i++) {
			uint64_t r = hash_u64(seed++);

			at[i] = (r % (1024 / 8)) * 8;
			memcpy(&keep[i], shot.stack + at[i], 8);
			r = r & 1 ? truth[r / 2 % (uint64_t)nr_truth] : r >> (r % 64);
			memcpy(shot.stack + at[i], &r, 8);
		}
		unwind_sample(n & 1 ? world.row : world.step, &in, &result);
		assert_in_range(result.nr, 1, UNWIND_FRAMES_MAX);
		assert_true(result.stop < UNWIND_NR_STOPS);
		for (int i = 3; i >= 0; i--)
			memcpy(shot.stack + at[i], &keep[i], 8);
	}
	unwind_sample(world.row, &in, &result);
	assert_int_equal(result.stop, UNWIND_COMPLETE);
}

#define NR_THREADS 4

struct racer {
	pthread_t thread;
	struct unwinder *u;
	const struct unwind_input *in;
	struct unwind_result result;
	int nr_wrong;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	urcu_qsbr_register_thread();
	for (int i = 0; i < 300; i++) {
		unwind_sample(r->u, r->in, &r->result);
		r->nr_wrong +=
			r->result.stop != UNWIND_COMPLETE || r->result.nr != (uint32_t)nr_truth ||
			memcmp(r->result.ip, result.ip, sizeof(result.ip[0]) * result.nr) != 0;
		urcu_qsbr_quiescent_state();
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

/* Threads that learn the same rows together: all see the true chain, and one set of rows is enough.
 */
TEST(test_shared_rows, set_up)
{
	struct unwind_config config = { .verify_every = 10 };
	struct unwind_input in;
	struct racer *r = xcalloc(NR_THREADS, sizeof(*r));
	uint64_t steps = 0;

	recurse(20);
	assert_true_chain(22);
	in = input();
	assert_int_equal(unwind_rows_new(&config.rows, 1u << 20), 0);
	for (int i = 0; i < NR_THREADS; i++) {
		r[i].in = &in;
		world_must(unwind_new_with(&r[i].u, world.places, world.objects, &config, NULL));
		world_must(pthread_create(&r[i].thread, NULL, race, &r[i]));
	}
	urcu_qsbr_thread_offline();
	for (int i = 0; i < NR_THREADS; i++) {
		struct unwind_stats s;

		pthread_join(r[i].thread, NULL);
		assert_int_equal(r[i].nr_wrong, 0);
		unwind_stats(r[i].u, &s);
		assert_int_equal(s.nr_verify_differ, 0);
		assert_int_equal(s.nr_verified, 30);
		steps += s.nr_steps;
		unwind_free(r[i].u);
	}
	urcu_qsbr_thread_online();
	assert_true(steps <= (uint64_t)nr_truth * NR_THREADS);
	unwind_rows_free(config.rows);
	free(r);
}

TEST(test_sums, set_up)
{
	struct unwind_stats s;
	uint64_t sum = 0;

	unwind_stats(world.row, &s);
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		assert_true(strlen(unwind_stop_name((enum unwind_stop)i)) > 3);
		sum += s.nr_stop[i];
	}
	assert_int_equal(sum, s.nr_samples);
	print_message("%" PRIu64 " samples, %" PRIu64 " frames, %" PRIu64 " by rows, %" PRIu64
		      " by steps, %" PRIu64 " rows, %" PRIu64 " differ, %" PRIu64 " redone\n",
		      s.nr_samples, s.nr_frames, s.nr_row_hits, s.nr_steps, s.nr_rows,
		      s.nr_rows_differ, s.nr_redone);
	assert_true(s.nr_row_hits > s.nr_steps);
	assert_int_equal(s.nr_rows_differ, 0);
	assert_int_equal(s.nr_verify_differ, 0);
	assert_in_range(s.nr_verified, s.nr_samples * 99 / 100, s.nr_samples);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* With an argument: how long a sample of 20 frames takes. */
static void bench(const char *name, struct unwinder *u, int times)
{
	const struct unwind_input in = input();
	uint64_t start;

	unwind_sample(u, &in, &result);
	start = cpu_ns();
	for (int i = 0; i < times; i++)
		unwind_sample(u, &in, &result);
	start = cpu_ns() - start;
	printf("%s: %u frames, %.0f ns a sample, %.1f ns a frame (%s)\n", name, result.nr,
	       (double)start / times, (double)start / times / result.nr,
	       unwind_stop_name(result.stop));
}

static int run_bench(void)
{
	struct unwinder *plain;

	world_new(&world);
	set_up(NULL);
	recurse(17);
	world_load(&world, getpid());
	bench("libunwind", world.step, 20000);
	if (unwind_new_with(&plain, world.places, world.objects, NULL, NULL))
		return 1;
	bench("rows", plain, 1000000);
	unwind_free(plain);
	world_free(&world);
	return 0;
}

static void find_libgcc(void)
{
	void *lib = dlopen("libgcc_s.so.1", RTLD_NOW);

	*(void **)&gcc.backtrace = lib ? dlsym(lib, "_Unwind_Backtrace") : NULL;
	*(void **)&gcc.ip = lib ? dlsym(lib, "_Unwind_GetIPInfo") : NULL;
	if (!gcc.backtrace || !gcc.ip) {
		fprintf(stderr, "not installed: libgcc_s.so.1\n");
		exit(77);
	}
}

int main(int argc, char **argv)
{
	int rc;

	find_libgcc();
	urcu_qsbr_register_thread();
	if (argc > 1)
		return run_bench();
	world_new(&world);
	rc = run_unit_tests(NULL, NULL);
	world_free(&world);
	urcu_qsbr_unregister_thread();
	return rc;
}
