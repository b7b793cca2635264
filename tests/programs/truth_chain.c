/* Programs with a known call chain. BUILD: -ldl -fno-builtin */
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth_chain MODE SECONDS [LIB_A LIB_B]: run one of the modes below, under the name "t_MODE".
 *
 * The chain of functions of each mode is known from the innermost one alone: each function is
 * called from one place only. tests/e2e/stacks.py has the same list, and compares. Built by
 * stacks.sh with several compilers and at all levels of optimization; none of them may inline or
 * clone.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif
/* Something behind a call, so that it is not the last thing done (no tail call). */
#define KEEP() __asm__ volatile("" ::: "memory")

#define DEEP 60

static volatile uint64_t sink;
static uint64_t end_ns;

ALONE static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static int time_left(void)
{
	return clock_now() < end_ns;
}

ALONE static void spin_leaf(int n)
{
	uint64_t x = sink;

	while (n-- > 0)
		x = x * 6364136223846793005U + 1442695040888963407U;
	sink = x;
}

/* Two dozen functions in a row; each works a little before and behind the call of the next. */
#define LINK(name, next)                                                                           \
	ALONE static int name(int a, int b, int c)                                                 \
	{                                                                                          \
		int x = (int)sink + a * b, y = x ^ c, z = x + 3 * y;                               \
                                                                                                   \
		sink++;                                                                            \
		x += next(y, z, x);                                                                \
		KEEP();                                                                            \
		sink += (uint64_t)(x + y + z);                                                     \
		return x;                                                                          \
	}

ALONE static int chain_23(int a, int b, int c)
{
	sink += (uint64_t)(a + b + c);
	return a;
}
LINK(chain_22, chain_23)
LINK(chain_21, chain_22)
LINK(chain_20, chain_21)
LINK(chain_19, chain_20)
LINK(chain_18, chain_19)
LINK(chain_17, chain_18)
LINK(chain_16, chain_17)
LINK(chain_15, chain_16)
LINK(chain_14, chain_15)
LINK(chain_13, chain_14)
LINK(chain_12, chain_13)
LINK(chain_11, chain_12)
LINK(chain_10, chain_11)
LINK(chain_9, chain_10)
LINK(chain_8, chain_9)
LINK(chain_7, chain_8)
LINK(chain_6, chain_7)
LINK(chain_5, chain_6)
LINK(chain_4, chain_5)
LINK(chain_3, chain_4)
LINK(chain_2, chain_3)
LINK(chain_1, chain_2)
LINK(chain_0, chain_1)

ALONE static void run_chain(void)
{
	while (time_left())
		for (int i = 0; i < 20000; i++)
			chain_0(i, i, i);
	KEEP();
}

ALONE static int deep_rec(int n)
{
	int x;

	if (n == 1) {
		spin_leaf(300);
		KEEP();
		return 1;
	}
	x = deep_rec(n - 1);
	KEEP();
	return x + 1;
}

ALONE static void run_deep(void)
{
	while (time_left())
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)deep_rec(DEEP);
	KEEP();
}

/* Nothing but prologue and epilogue: all registers that a callee has to keep. */
#if defined(__aarch64__)
__asm__(".text\n\t.type pushes, %function\npushes:\n\t.cfi_startproc\n\t"
	"stp x29, x30, [sp, #-32]!\n\t.cfi_def_cfa_offset 32\n\t.cfi_offset x29, -32\n\t"
	".cfi_offset x30, -24\n\t"
	"stp x19, x20, [sp, #16]\n\t.cfi_offset x19, -16\n\t.cfi_offset x20, -8\n\t"
	"mov x19, xzr\n\tmov x30, xzr\n\tmov x29, xzr\n\t"
	"ldp x19, x20, [sp, #16]\n\t.cfi_restore x19\n\t.cfi_restore x20\n\t"
	"ldp x29, x30, [sp], #32\n\t.cfi_def_cfa_offset 0\n\t.cfi_restore x29\n\t.cfi_restore "
	"x30\n\t"
	"ret\n\t.cfi_endproc\n\t.size pushes, .-pushes\n");
#else
__asm__(".text\n\t.type pushes, @function\npushes:\n\t.cfi_startproc\n\t"
	"push %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbp, 0\n\t"
	"push %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbx, 0\n\t"
	"push %r12\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset r12, 0\n\t"
	"xor %ebp, %ebp\n\txor %ebx, %ebx\n\t"
	"pop %r12\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore r12\n\t"
	"pop %rbx\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbx\n\t"
	"pop %rbp\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbp\n\t"
	"ret\n\t.cfi_endproc\n\t.size pushes, .-pushes\n");
#endif
void pushes(void) __asm__("pushes");

ALONE static void pushes_caller(void)
{
	pushes();
	KEEP();
}

ALONE static void run_pushes(void)
{
	while (time_left())
		for (int i = 0; i < 100000; i++)
			pushes_caller();
	KEEP();
}

/* tail_1 jumps to tail_2, and that to tail_3: only the last one is on the stack. */
__attribute__((used)) ALONE static void tail_3(int n)
{
	spin_leaf(n);
	KEEP();
}

#if defined(__aarch64__)
__asm__(".text\n\t.type tail_2, %function\ntail_2:\n\t.cfi_startproc\n\tnop\n\tb tail_3\n\t"
	".cfi_endproc\n\t.size tail_2, .-tail_2\n\t"
	".type tail_1, %function\ntail_1:\n\t.cfi_startproc\n\tstr x19, [sp, #-16]!\n\t"
	".cfi_def_cfa_offset 16\n\t.cfi_offset x19, -16\n\tldr x19, [sp], #16\n\t"
	".cfi_def_cfa_offset 0\n\t.cfi_restore x19\n\tb tail_2\n\t"
	".cfi_endproc\n\t.size tail_1, .-tail_1\n");
#else
__asm__(".text\n\t.type tail_2, @function\ntail_2:\n\t.cfi_startproc\n\tnop\n\tjmp tail_3\n\t"
	".cfi_endproc\n\t.size tail_2, .-tail_2\n\t"
	".type tail_1, @function\ntail_1:\n\t.cfi_startproc\n\tpush %rbx\n\t.cfi_adjust_cfa_offset "
	"8\n\t"
	".cfi_rel_offset rbx, 0\n\tpop %rbx\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbx\n\t"
	"jmp tail_2\n\t"
	".cfi_endproc\n\t.size tail_1, .-tail_1\n");
#endif
void tail_1(int n) __asm__("tail_1");

ALONE static void run_tail(void)
{
	while (time_left())
		for (int i = 0; i < 20000; i++)
			tail_1(20);
	KEEP();
}

ALONE static void realigned(int n)
{
	volatile char big[200] __attribute__((aligned(128)));

	memset((void *)big, n, sizeof(big));
	spin_leaf(60);
	sink += (uint64_t)big[n & 127];
}

ALONE static void with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	p[n - 1] = 1;
	realigned((int)n);
	sink += (uint64_t)p[n - 1];
}

ALONE static void run_alloca(void)
{
	while (time_left())
		for (size_t i = 1; i < 4000; i++)
			with_alloca(i);
	KEEP();
}

ALONE static void handler_leaf(void)
{
	spin_leaf(20000);
	KEEP();
}

static void on_signal(int sig)
{
	handler_leaf();
	KEEP();
}

/* Interrupted at any instruction, by the timer. */
ALONE static void interrupted(void)
{
	while (time_left())
		spin_leaf(3000);
	KEEP();
}

static void run_signal_on(void *stack, size_t size)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = stack ? SA_ONSTACK : 0 };
	stack_t ss = { .ss_sp = stack, .ss_size = size };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 200000 }, { 0, 200000 } };
	timer_t timer;

	if (stack)
		sigaltstack(&ss, NULL);
	sigaction(SIGALRM, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		exit(1);
	interrupted();
	timer_delete(timer); /* the functions before are not those of the mode */
	KEEP();
}

ALONE static void run_signal(void)
{
	run_signal_on(NULL, 0);
	KEEP();
}

/* The alternate stack is elsewhere: the interrupted frames are not in the stack copy. */
ALONE static void run_altstack(void)
{
	run_signal_on(malloc(1 << 16), 1 << 16);
	KEEP();
}

/*
 * The alternate stack is just below the interrupted frames: the stack copy holds both. Not by the
 * address of a variable, which is on another stack with -fsanitize=safe-stack.
 */
ALONE static void run_altinside(void)
{
	char *below = (char *)((uintptr_t)__builtin_frame_address(0) & ~15UL) - (12 << 10);

	run_signal_on(below, 8 << 10);
	KEEP();
}

/* The call is the last instruction: its return address belongs to the next function. */
ALONE __attribute__((noreturn)) static void never_returns(void)
{
	while (time_left())
		spin_leaf(3000);
	_exit(0);
}

ALONE __attribute__((noreturn)) static void calls_noreturn(void)
{
	sink++;
	never_returns();
}

ALONE static void run_noreturn(void)
{
	calls_noreturn();
}

ALONE static void run_plt(void)
{
	while (time_left())
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)labs(i) + (uint64_t)ffs(i);
	KEEP();
}

/*
 * Calls by pointer, jumps by table and returns, with little else: most samples are at one. The jump
 * at the end of pointers_1 leaves it no frame.
 */
static int (*volatile pointers[4])(int);

ALONE static int pointers_3(int x)
{
	return x ^ 3;
}

ALONE static int pointers_2(int x)
{
	volatile int kept[6] = { x };

	switch (x & 7) {
	case 0:
		sink += 3;
		break;
	case 1:
		sink ^= 5;
		break;
	case 2:
		sink *= 7;
		break;
	case 3:
		sink -= 9;
		break;
	case 4:
		sink |= 11;
		break;
	case 5:
		sink >>= 1;
		break;
	case 6:
		return kept[0];
	}
	return pointers[3](x) + kept[x & 1] + pointers[3](x + 1);
}

ALONE static int pointers_1(int x)
{
	return pointers[2](x + 1);
}

ALONE static int pointers_0(int x)
{
	return pointers[1](x) + 1;
}

ALONE static void run_pointers(void)
{
	pointers[0] = pointers_0;
	pointers[1] = pointers_1;
	pointers[2] = pointers_2;
	pointers[3] = pointers_3;
	while (time_left())
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)pointers[0](i);
	KEEP();
}

/* A separate stack, entered and left all the time. (Not with musl.) */
#ifdef __GLIBC__
static struct {
	ucontext_t outside, inside;
} coro;

ALONE static void coro_work(void)
{
	spin_leaf(300);
	KEEP();
}

ALONE static void coro_main(void)
{
	for (;;) {
		coro_work();
		swapcontext(&coro.inside, &coro.outside);
	}
}

ALONE static void switch_work(void)
{
	spin_leaf(300);
	KEEP();
}

ALONE static void run_switch(void)
{
	size_t size = 64 << 10;

	if (getcontext(&coro.inside))
		exit(1);
	coro.inside.uc_stack = (stack_t){ .ss_sp = malloc(size), .ss_size = size };
	makecontext(&coro.inside, coro_main, 0);
	while (time_left()) {
		switch_work();
		swapcontext(&coro.outside, &coro.inside);
	}
	KEEP();
}

#else
static void run_switch(void)
{
}
#endif

/* Below a frame larger than any usual stack copy. */
ALONE static void run_buried(void)
{
	volatile char big[40 << 10];

	memset((void *)big, 1,
	       sizeof(big)); /* untouched pages are not copied, nor the frames above them */
	run_deep();
	sink += (uint64_t)big[sink & 1023];
}

/* Two objects, loaded one after the other at the same address. */
void callback_a(void);
void callback_b(void);
ALONE void callback_a(void)
{
	spin_leaf(100000);
	KEEP();
}

ALONE void callback_b(void)
{
	spin_leaf(100000);
	KEEP();
}

ALONE static void run_dlopen(const char *const *libs)
{
	for (int i = 0; time_left(); i ^= 1) {
		void *lib = dlopen(libs[i], RTLD_NOW);
		void (*fn)(void (*)(void)) = NULL;

		if (lib)
			*(void **)&fn = dlsym(lib, i ? "lib_b" : "lib_a");
		if (!fn)
			exit(1);
		for (int k = 0; k < 4; k++)
			fn(i ? callback_b : callback_a);
		dlclose(lib);
	}
}

ALONE static void exec_work(void)
{
	spin_leaf(1000000);
	KEEP();
}

ALONE static void run_exec(char **argv)
{
	char left[32];

	exec_work();
	if (!time_left())
		return;
	snprintf(left, sizeof(left), "@%llu", (unsigned long long)end_ns);
	argv[2] = left;
	execv("/proc/self/exe", argv);
	exit(1);
}

ALONE static void fork_work(void)
{
	spin_leaf(500000);
	KEEP();
}

ALONE static void run_fork(void)
{
	while (time_left()) {
		pid_t pid = fork();

		if (pid == 0) {
			fork_work();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

#if defined(__aarch64__)
/* stp x29,x30,[sp,-16]!; mov x29,sp; mov w0,n; (subs; b.ne); ldp x29,x30,[sp],16; ret */
static const uint8_t code_fp[] = { 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x7d,
				   0x80, 0x52, 0x00, 0x04, 0x00, 0x71, 0xe1, 0xff, 0xff, 0x54,
				   0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6 };
/* mov w0,n; (subs; b.ne); ret: a leaf that leaves the stack alone */
static const uint8_t code_leaf[] = { 0x00, 0x7d, 0x80, 0x52, 0x00, 0x04, 0x00, 0x71,
				     0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#else
/* push %rbp; mov %rsp,%rbp; push %rbx; (mov $n,%ecx; dec; jnz); pop %rbx; pop %rbp; ret */
static const uint8_t code_fp[] = { 0x55, 0x48, 0x89, 0xe5, 0x53, 0xb9, 0xe8, 0x03, 0,
				   0,	 0xff, 0xc9, 0x75, 0xfc, 0x5b, 0x5d, 0xc3 };
/* mov $n,%ecx; dec; jnz; ret: a leaf that leaves the stack alone */
static const uint8_t code_leaf[] = { 0xb9, 0xe8, 0x03, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#endif

ALONE static void run_jit(const uint8_t *code, size_t size)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*fn)(void);

	memcpy(page, code, size);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)page, (char *)page + size);
	*(void **)&fn = page;
	while (time_left())
		for (int i = 0; i < 1000; i++)
			fn();
	KEEP();
}

static int run(const char *mode, int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{ "chain", run_chain },	      { "deep", run_deep },
		{ "pushes", run_pushes },     { "tail", run_tail },
		{ "alloca", run_alloca },     { "signal", run_signal },
		{ "altstack", run_altstack }, { "altinside", run_altinside },
		{ "noreturn", run_noreturn }, { "plt", run_plt },
		{ "fork", run_fork },	      { "switch", run_switch },
		{ "buried", run_buried },     { "pointers", run_pointers },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(mode, modes[i].name)) {
			modes[i].run();
			return 0;
		}
	if (!strcmp(mode, "dlopen") && argc == 5)
		run_dlopen((const char *const *)argv + 3);
	else if (!strcmp(mode, "exec"))
		run_exec(argv);
	else if (!strcmp(mode, "jitfp"))
		run_jit(code_fp, sizeof(code_fp));
	else if (!strcmp(mode, "jitleaf"))
		run_jit(code_leaf, sizeof(code_leaf));
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	char name[16];
	int rc;

	if (argc < 3)
		return 2;
	end_ns = argv[2][0] == '@' ? strtoull(argv[2] + 1, NULL, 10)
				   : clock_now() + (uint64_t)(atof(argv[2]) * 1e9);
	snprintf(name, sizeof(name), "t_%s", argv[1]);
	prctl(PR_SET_NAME, name);
	rc = run(argv[1], argc, argv);
	KEEP();
	_exit(rc);
}
