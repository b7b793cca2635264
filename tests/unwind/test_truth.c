// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Single-step a child and unwind it at every instruction, against a shadow
 * stack made of the calls and returns that it really executed: prologues,
 * epilogues, PLT stubs, the lazy resolver, libc's assembly. By rows, and the
 * same by libunwind alone.
 * Live: steps through a child.
 */
#include "tests/prelude_rcu.h"

#if !defined(__x86_64__)

int main(void)
{
	puts("not on this machine: x86-64");
	return 77;
}
#else
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "tests/unwind/world.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

#define NOINLINE  __attribute__((noinline, noclone))
#define STEPS_MAX 60000
#define DEPTH_MAX 128
#define DUMP_MAX  (32u << 10)

static volatile int sink;

NOINLINE static int leaf(int n)
{
	return n * 3 + sink;
}

NOINLINE static int tail(int n)
{
	sink++;
	return leaf(n + 1);
}

NOINLINE static int recurse(int n)
{
	volatile int keep[4] = { n };

	return n ? recurse(n - 1) + keep[0] : tail(keep[0]);
}

NOINLINE static int on_heap_of_stack(size_t n)
{
	volatile char *p = alloca(n);

	p[0] = (char)n;
	return leaf(p[0]);
}

NOINLINE static int aligned(int n)
{
	volatile char big[200] __attribute__((aligned(64)));

	big[0] = (char)n;
	return recurse(1) + big[0];
}

static int compare(const void *a, const void *b)
{
	return tail(*(const int *)a) - tail(*(const int *)b);
}

/*
 * Functions without tables, as assemblers make them: their rows are derived. The frame is found by
 * the stack pointer, a frame pointer, a word on a realigned stack, and behind a table of jumps.
 */
__asm__(".pushsection .text\n.p2align 4\n"
	".type bare_plain,@function\n bare_plain: push %rbx\n push %r12\n sub $40, %rsp\n"
	" mov %rdi, %rbx\n lea 1(%rdi), %rdi\n call bare_aligned\n add %rbx, %rax\n"
	" test %rax, %rax\n jz 1f\n lea 2(%rbx), %rdi\n call bare_framed\n 1: add $40, %rsp\n"
	" pop %r12\n pop %rbx\n ret\n .size bare_plain, .-bare_plain\n"
	".p2align 4\n bare_aligned: push %rbp\n mov %rsp, %rax\n push %r14\n and $-64, %rsp\n"
	" sub $192, %rsp\n mov %rax, 128(%rsp)\n mov %r14, 64(%rsp)\n xor %ebp, %ebp\n"
	" mov %rdi, %r14\n call bare_table\n mov 64(%rsp), %r14\n mov 128(%rsp), %rsp\n pop %rbp\n"
	" ret\n"
	".p2align 4\n bare_framed: push %rbp\n mov %rsp, %rbp\n mov %rdi, %rcx\n shl $5, %rcx\n"
	" and $224, %ecx\n sub %rcx, %rsp\n push %rdi\n pop %rdi\n call bare_table\n leave\n ret\n"
	".p2align 4\n bare_table: sub $8, %rsp\n and $3, %edi\n lea 9f(%rip), %rdx\n"
	" movslq (%rdx,%rdi,4), %rcx\n add %rdx, %rcx\n jmp *%rcx\n"
	" 2: push %rbx\n push %rbx\n xor %eax, %eax\n mov $3, %ah\n pop %rbx\n pop %rbx\n jmp 5f\n"
	" 3: pushfq\n mov $1, %eax\n popfq\n jmp 5f\n 4: mov $2, %eax\n 5: add $8, %rsp\n ret\n"
	".pushsection .rodata\n .p2align 2\n 9: .long 2b-9b, 3b-9b, 4b-9b, 2b-9b\n .popsection\n"
	" .fill 256, 1, 0x90\n .popsection\n");
long bare_plain(long n);

/* libgmp has functions in assembler, without tables. */
typedef unsigned long (*multiply_fn)(unsigned long *, const unsigned long *, long,
				     const unsigned long *, long);
static multiply_fn multiply;

static jmp_buf jump;

NOINLINE static void jumps(int n)
{
	if (n > 0)
		jumps(n - 1);
	else if (sink != -1)
		longjmp(jump, 1);
	sink++;
}

/* Everything the child does while it is watched. */
NOINLINE static void workload(void)
{
	char text[128];
	int v[] = { 5, 2, 9, 1, 7 };

	sink += recurse(12);
	sink += on_heap_of_stack(100) + on_heap_of_stack(333);
	sink += aligned(3);
	for (int i = 0; i < 4; i++)
		sink += (int)bare_plain(i);
	if (multiply) {
		const unsigned long a[9] = { 3, 1, 4, 1, 5, 9, 2, 6, 5 };
		unsigned long product[18];

		for (long n = 1; n <= 9; n++)
			multiply(product, a, 9, a, n);
	}
	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare);
	if (!setjmp(jump))
		jumps(3);
	snprintf(text, sizeof(text), "%d %s %f %lx", v[0], "text", 1.5, 0xabcdL);
	sink += (int)strtol(text, NULL, 10);
	sink += strcoll("abc", "abd") + (int)strspn(text, "0123") + (int)strlen(text);
	free(malloc(100));
	sink += (int)getppid() + (int)time_now_ns();
	/* The first call: through the lazy resolver. */
	sink += (int)strverscmp("a9", "a10") + ffsl(12);
}

static void child(void)
{
	void *gmp = dlopen("libgmp.so.10", RTLD_NOW);

	multiply = gmp ? (multiply_fn)dlsym(gmp, "__gmpn_mul") : NULL;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	workload();
	_exit(0);
}

struct shadow {
	uint64_t addr, ra;
};

struct test_watch {
	pid_t pid;
	struct world world;
	struct user_regs_struct regs;
	uint64_t stack_end;
	uint8_t dump[DUMP_MAX];
	size_t size;
	struct shadow calls[DEPTH_MAX];
	int nr_calls;
	uint64_t base[DEPTH_MAX]; /* look-up pcs of the frames above workload() */
	int nr_base;
	uint64_t nr, exact, guessed, longer, wrong;
};

static bool go(struct test_watch *w)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, w->pid, 0, 0) || waitpid(w->pid, &status, 0) != w->pid ||
	    !WIFSTOPPED(status))
		return false;
	return ptrace(PTRACE_GETREGS, w->pid, 0, &w->regs) == 0;
}

static void read_stack(struct test_watch *w)
{
	struct iovec to = { w->dump, MIN(DUMP_MAX, w->stack_end - w->regs.rsp) };
	struct iovec from = { (void *)w->regs.rsp, to.iov_len };
	ssize_t n = process_vm_readv(w->pid, &to, 1, &from, 1, 0);

	assert_true(n > 0);
	w->size = (size_t)n;
}

static uint64_t top(const struct test_watch *w)
{
	uint64_t v;

	memcpy(&v, w->dump, 8);
	return v;
}

static void unwind(struct test_watch *w, struct unwinder *u, struct unwind_result *out)
{
	const struct user_regs_struct *r = &w->regs;
	const uint64_t regs[] = { r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi,
				  r->rbp, r->rsp, r->rip, r->r8,  r->r9,  r->r10,
				  r->r11, r->r12, r->r13, r->r14, r->r15 };
	const struct unwind_input in = {
		.regs = regs,
		.regs_mask = 0xff01ff,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack = w->dump,
		.stack_size = w->size,
		.stack_full = false,
		.space = w->world.space,
		.time_ns = time_now_ns(),
	};

	unwind_sample(u, &in, out);
}

/* Follow a call or a return that led from (@pc, @sp) to the registers of now. */
static void follow(struct test_watch *w, uint64_t pc, uint64_t sp)
{
	uint64_t now = w->regs.rsp;

	while (w->nr_calls && w->calls[w->nr_calls - 1].addr < now)
		w->nr_calls--;
	if (now == sp - 8 && top(w) - pc - 2 < 6 && w->regs.rip != top(w)) {
		assert_true(w->nr_calls < DEPTH_MAX);
		w->calls[w->nr_calls++] = (struct shadow){ now, top(w) };
	}
}

static bool is_true(const struct test_watch *w, const struct unwind_result *r, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		int call = w->nr_calls - (int)i; /* frame i + 1 returns to calls[call - 1] */
		uint64_t want;

		if (i == 0)
			want = w->regs.rip;
		else if (call >= 0)
			want = w->calls[call].ra - 1;
		else if (-call - 1 < w->nr_base)
			want = w->base[-call - 1];
		else
			return false;
		if (r->ip[i] != want)
			return false;
	}
	return true;
}

static void judge(struct test_watch *w, const struct unwind_result *r)
{
	uint32_t all = (uint32_t)(1 + w->nr_calls + w->nr_base);

	w->nr++;
	if (r->stop == UNWIND_COMPLETE && r->nr == all && is_true(w, r, all)) {
		w->exact++;
		w->guessed += r->nr_guessed != 0;
		return;
	}
	if (!r->nr_guessed && !is_true(w, r, r->nr))
		w->wrong++;
	if (w->nr - w->exact <= 12)
		print_message("at %#llx: %s, %u frames of %u, %u guessed%s\n", w->regs.rip,
			      unwind_stop_name(r->stop), r->nr, all, r->nr_guessed,
			      is_true(w, r, r->nr) ? "" : ", not the true ones");
}

/* Start the child and let it run to the first instruction of workload(). */
static void start(struct test_watch *w)
{
	struct unwind_result *r = xcalloc(1, sizeof(*r));
	int status;

	w->pid = fork();
	if (w->pid == 0)
		child();
	assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
	assert_true(WIFSTOPPED(status));
	world_new(&w->world);
	world_load(&w->world, w->pid);
	do {
		assert_true(go(w));
	} while (w->regs.rip != (uint64_t)(uintptr_t)workload);
	w->stack_end = w->regs.rsp + DUMP_MAX;
	read_stack(w);
	unwind(w, w->world.step, r);
	assert_int_equal(r->stop, UNWIND_COMPLETE);
	assert_int_equal(r->ip[1], top(w) - 1);
	assert_true(r->nr > 3 && r->nr < DEPTH_MAX);
	w->nr_base = (int)r->nr - 1;
	memcpy(w->base, r->ip + 1, (r->nr - 1) * sizeof(r->ip[0]));
	free(r);
}

/* calls[0] is called by workload(); the frame below it is base[0]. */
TEST(test_every_instruction)
{
	struct test_watch *w = xcalloc(1, sizeof(*w));
	struct unwind_result *r = xcalloc(1, sizeof(*r));
	struct unwind_stats s;
	uint64_t entry;

	start(w);
	entry = w->regs.rsp;
	while (w->nr < STEPS_MAX) {
		uint64_t pc = w->regs.rip, sp = w->regs.rsp;

		if (!go(w) || w->regs.rsp > entry)
			break;
		read_stack(w);
		follow(w, pc, sp);
		unwind(w, w->world.row, r);
		judge(w, r);
	}
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	unwind_stats(w->world.row, &s);
	print_message("%" PRIu64 " instructions: %" PRIu64 " exact, %" PRIu64 " of them by a "
		      "guess, "
		      "%" PRIu64 " wrong\n",
		      w->nr, w->exact, w->guessed, w->wrong);
	print_message("%" PRIu64 " rows, %" PRIu64 " not admitted; %" PRIu64 " of %" PRIu64
		      " samples differ from libunwind\n",
		      s.nr_rows, s.nr_rows_differ, s.nr_verify_differ, s.nr_verified);
	assert_true(w->nr > 5000);
	assert_int_equal(w->wrong, 0);
	assert_true(w->exact >= w->nr - w->nr / 1000);
	assert_int_equal(s.nr_verify_differ, 0);
	world_free(&w->world);
	free(r);
	free(w);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
#endif
