// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program behind checkout.data: slow, and it uses no CPU. Four workers charge orders at a bank that
 * takes 25 ms to answer, and hold one lock meanwhile; then they sync a journal. Without a library, as
 * the program behind shop.data.
 *
 * Made by tests/data/checkout/make; see there.
 */
typedef unsigned long u64;

static inline long call(long nr, long a, long b, long c, long d = 0)
{
	register long r10 asm("r10") = d;
	long ret;

	asm volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}

enum {
	SYS_read = 0, SYS_write = 1, SYS_open = 2, SYS_poll = 7, SYS_pipe = 22, SYS_nanosleep = 35, SYS_fork = 57,
	SYS_fdatasync = 75, SYS_prctl = 157, SYS_futex = 202,
	PR_SET_PDEATHSIG = 1, PR_SET_NAME = 15, SIGKILL = 9,
	FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129, CREATE = 0102 | 01000,
	THREAD = 0x50f00, /* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
	WORKERS = 4,
};

#define NOINLINE __attribute__((noinline, noipa))

/* What follows a call, so that it is no jump: the caller has a frame. */
static volatile u64 sink;

static int request[2], answer[2], journal;
static char stacks[WORKERS][16384] __attribute__((aligned(16)));

struct Mutex {
	int word = 0; /* 1: taken, 2: and there may be waiters */

	NOINLINE void lock()
	{
		int free = 0;

		if (__atomic_compare_exchange_n(&word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE))
			call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 2);
		sink++;
	}
	NOINLINE void unlock()
	{
		if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
			call(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1);
		sink++;
	}
};

namespace bank {

NOINLINE void clear_payment()
{
	const long time[2] = { 0, 25000000 };

	call(SYS_nanosleep, (long)time, 0, 0);
	sink++;
}

NOINLINE void run()
{
	char c;

	for (;;) {
		call(SYS_read, request[0], (long)&c, 1);
		clear_payment();
		call(SYS_write, answer[1], (long)&c, 1);
	}
}

/* Ask the process above. */
NOINLINE void transfer()
{
	char c = 0;

	call(SYS_write, request[1], (long)&c, 1);
	call(SYS_read, answer[0], (long)&c, 1);
	sink++;
}

} // namespace bank

namespace checkout {

struct Account {
	Mutex mutex;

	NOINLINE void charge()
	{
		mutex.lock();
		bank::transfer();
		mutex.unlock();
		sink++;
	}
};

static Account account;

NOINLINE void compute_price()
{
	u64 x = sink;

	for (u64 i = 0; i < 1000000; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	sink = x;
}

NOINLINE void write_journal()
{
	char line[64] = {};

	call(SYS_write, journal, (long)line, sizeof(line));
	call(SYS_fdatasync, journal, 0, 0);
	sink++;
}

NOINLINE void place_order()
{
	compute_price();
	account.charge();
	write_journal();
	sink++;
}

extern "C" NOINLINE void worker_thread(long at)
{
	char name[] = "worker-0";

	name[7] = (char)(name[7] + at);
	call(SYS_prctl, PR_SET_NAME, (long)name, 0);
	for (;;)
		place_order();
}

/* Connections that never come. */
NOINLINE void accept_orders()
{
	call(SYS_poll, 0, 0, 700);
	sink++;
}

} // namespace checkout

extern "C" long start_thread(long flags, char *stack, long at);

extern "C" NOINLINE int main()
{
	call(SYS_pipe, (long)request, 0, 0);
	call(SYS_pipe, (long)answer, 0, 0);
	if (!call(SYS_fork, 0, 0, 0)) {
		call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
		call(SYS_prctl, PR_SET_NAME, (long)"bank", 0);
		bank::run();
	}
	journal = (int)call(SYS_open, (long)"/opt/journal", CREATE, 0600);
	for (long i = 0; i < WORKERS; i++)
		start_thread(THREAD, stacks[i] + sizeof(stacks[i]), i);
	for (;;)
		checkout::accept_orders();
}

/* The ends of the stacks: no caller, which the undefined return address says. */
asm(".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "	.cfi_startproc\n"
    "	.cfi_undefined rip\n"
    "	xor %ebp, %ebp\n"
    "	call main\n"
    "	hlt\n"
    "	.cfi_endproc\n"
    ".size _start, . - _start\n"
    ".globl start_thread\n"
    ".type start_thread, @function\n"
    "start_thread:\n"
    "	.cfi_startproc\n"
    "	mov %rdx, %r9\n"
    "	mov $56, %eax\n"
    "	xor %edx, %edx\n"
    "	xor %r10d, %r10d\n"
    "	xor %r8d, %r8d\n"
    "	syscall\n"
    "	test %eax, %eax\n"
    "	jz clone_start\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size start_thread, . - start_thread\n"
    ".type clone_start, @function\n"
    "clone_start:\n"
    "	.cfi_startproc\n"
    "	.cfi_undefined rip\n"
    "	xor %ebp, %ebp\n"
    "	mov %r9, %rdi\n"
    "	call worker_thread\n"
    "	hlt\n"
    "	.cfi_endproc\n"
    ".size clone_start, . - clone_start\n");
