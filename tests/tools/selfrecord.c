// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * selfrecord FILE MODE SECONDS: a mode of tests/programs/truth_chain.c, sampled without perf
 * events: the handler of a timer, on a separate stack, takes the registers and the bytes of the
 * interrupted stack. So a recording can be made where nothing but signals work, as under qemu-user.
 *
 * The child runs the mode and writes samples into shared memory; the parent makes a perf.data of
 * them.
 */
#include "sampler/record/recorder.c"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sampler/perfdata/perfdata.h"
#include "symbols/process/process.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "sampler/event/event.h"

#define REGS_MAX    33
#define STACK_BYTES 8192u
#define SAMPLES_MAX 4096u
#define MAPS_BYTES  (64u << 10)
#define EVENT_ID    1
#define EVERY_NS    500000

/* main() of truth_chain.c, and the _exit() that it calls. */
int truth_main(int argc, char **argv);
__attribute__((noreturn)) void truth_exit(int status);

struct sample {
	uint64_t time_ns, regs[REGS_MAX];
	uint64_t size; /* of stack */
	uint8_t stack[STACK_BYTES];
};

struct shared {
	char maps[MAPS_BYTES];
	size_t maps_size;
	uint64_t stack_start, stack_end; /* of the main thread's */
	_Atomic uint32_t nr;
	struct sample samples[SAMPLES_MAX];
};

static struct shared *shared;
static volatile sig_atomic_t ended; /* what follows is no part of the mode's chains */

/* The registers of @mc in perf's order. */
static unsigned int take_regs(uint64_t *regs, const mcontext_t *mc)
{
#if defined(__aarch64__)
	for (unsigned int i = 0; i < 31; i++)
		regs[i] = mc->regs[i];
	regs[PERF_REG_ARM64_SP] = mc->sp;
	regs[PERF_REG_ARM64_PC] = mc->pc;
	return PERF_REG_ARM64_SP;
#else
	static const int order[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_RIP, REG_R8,	 REG_R9,  REG_R10,
				     REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		regs[i] = (uint64_t)mc->gregs[order[i]];
	return PERF_REG_X86_SP;
#endif
}

static uint64_t ip_of(const struct sample *s)
{
#if defined(__aarch64__)
	return s->regs[PERF_REG_ARM64_PC];
#else
	return s->regs[PERF_REG_X86_IP];
#endif
}

static void on_timer(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	uint32_t nr = atomic_load_explicit(&shared->nr, memory_order_relaxed);
	struct sample *s = &shared->samples[nr];
	uint64_t sp;

	if (nr == SAMPLES_MAX || ended)
		return;
	s->time_ns = time_now_ns();
	sp = s->regs[take_regs(s->regs, &uc->uc_mcontext)];
	if (sp < shared->stack_start || sp >= shared->stack_end)
		return;
	s->size = MIN(shared->stack_end - sp, STACK_BYTES) & ~7ULL;
	memcpy(s->stack, (const void *)(uintptr_t)sp, s->size);
	/* release: pairs with the parent's reading, after the child's end */
	atomic_store_explicit(&shared->nr, nr + 1, memory_order_release);
}

/* This name, since an emulator shows the emulated program's maps under no other. */
static void take_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct procfs_text text;
	struct procfs_map m;

	if (!f)
		exit(1);
	shared->maps_size = fread(shared->maps, 1, sizeof(shared->maps), f);
	fclose(f);
	text = (struct procfs_text){ .at = shared->maps, .end = shared->maps + shared->maps_size };
	while (procfs_next_map(&text, &m))
		if ((uint64_t)(uintptr_t)&f >= m.start && (uint64_t)(uintptr_t)&f < m.end) {
			shared->stack_start = m.start;
			shared->stack_end = m.end;
		}
}

/* Objects mapped on the way are known at the end. */
void truth_exit(int status)
{
	ended = 1;
	signal(SIGPROF, SIG_IGN);
	take_maps();
	_exit(status);
}

static void child(char *mode, char *seconds)
{
	static uint8_t own_stack[64 << 10];
	static char name[] = "truth";
	char *argv[] = { name, mode, seconds, NULL };
	const stack_t ss = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction sa = { .sa_sigaction = on_timer,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	const struct itimerspec every = { { 0, EVERY_NS }, { 0, EVERY_NS } };
	timer_t timer;

	take_maps();
	sigfillset(&sa.sa_mask);
	if (sigaltstack(&ss, NULL) || sigaction(SIGPROF, &sa, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		_exit(1);
	truth_exit(truth_main(3, argv));
}

static void t_append(struct perfdata_writer *w, uint32_t type, uint16_t misc, struct iovec *pieces,
		     int nr)
{
	struct perf_event_header h = { .type = type, .misc = misc, .size = sizeof(h) };
	struct iovec all[8] = { { &h, sizeof(h) } };

	for (int i = 0; i < nr; i++) {
		all[i + 1] = pieces[i];
		h.size = (uint16_t)(h.size + pieces[i].iov_len);
	}
	perfdata_append(w, all, nr + 1);
}

static void put_comm(struct perfdata_writer *w, uint32_t pid, const char *mode)
{
	struct {
		uint32_t pid, tid;
		char comm[16];
	} body = { .pid = pid, .tid = pid };
	struct synth_id id = { .pid = pid, .tid = pid, .id = EVENT_ID };
	struct iovec pieces[] = { { &body, sizeof(body) }, { &id, sizeof(id) } };

	snprintf(body.comm, sizeof(body.comm), "t_%s", mode);
	t_append(w, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, pieces, 2);
}

static void put_map(struct perfdata_writer *w, uint32_t pid, const struct procfs_map *m)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint32_t maj, min;
		uint64_t ino, generation;
		uint32_t prot, flags;
	} body = { pid,	   pid,	   m->start, m->end - m->start,	    m->offset,	m->maj,
		   m->min, m->ino, 0,	     PROT_READ | PROT_EXEC, MAP_PRIVATE };
	struct synth_id id = { .pid = pid, .tid = pid, .id = EVENT_ID };
	char name[1024] = "//anon";
	size_t size = MIN(m->path_size, sizeof(name) - 8);

	if (size) {
		memset(name, 0, sizeof(name));
		memcpy(name, m->path, size);
	}
	size = (strlen(name) + 8) & ~7ULL;
	t_append(w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
		 (struct iovec[]){ { &body, sizeof(body) }, { name, size }, { &id, sizeof(id) } },
		 3);
}

static void put_sample(struct perfdata_writer *w, uint32_t pid, struct sample *s)
{
	struct {
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t period, abi;
	} body = {
		EVENT_ID, ip_of(s), pid, pid, s->time_ns, 0, 0, EVERY_NS, PERF_SAMPLE_REGS_ABI_64
	};
	uint64_t dyn_size = s->size, size = STACK_BYTES;
	size_t nr_regs = (size_t)__builtin_popcountll(unwind_regs_mask());

	t_append(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		 (struct iovec[]){ { &body, sizeof(body) },
				   { s->regs, nr_regs * 8 },
				   { &size, 8 },
				   { s->stack, STACK_BYTES },
				   { &dyn_size, 8 } },
		 5);
}

static int write_all(const char *path, uint32_t pid, const char *mode)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = EVERY_NS,
		.sample_id_all = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = unwind_regs_mask(),
		.sample_stack_user = STACK_BYTES,
	};
	struct perfdata_attrs attrs = { 0 };
	struct procfs_text text = { .at = shared->maps, .end = shared->maps + shared->maps_size };
	struct perfdata_writer *w;
	struct procfs_map m;
	struct err e = { .text = "" };
	uint64_t id = EVENT_ID;
	int rc;

	perfdata_attrs_add(&attrs, "cpu-clock", &attr, &id, 1);
	rc = perfdata_create(&w, path, &e);
	if (rc) {
		fprintf(stderr, "selfrecord: %s\n", e.text);
		return rc;
	}
	perfdata_begin(w, &attrs);
	put_comm(w, pid, mode);
	while (procfs_next_map(&text, &m))
		if (m.exec)
			put_map(w, pid, &m);
	for (uint32_t i = 0; i < atomic_load_explicit(&shared->nr, memory_order_acquire); i++)
		put_sample(w, pid, &shared->samples[i]);
	rc = perfdata_finish(w, &attrs);
	perfdata_writer_close(w);
	perfdata_attrs_fini(&attrs);
	return rc;
}

int main(int argc, char **argv)
{
	pid_t pid;
	int status;

	if (argc != 4)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	pid = fork();
	if (pid == 0)
		child(argv[2], argv[3]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	fprintf(stderr, "%s: %u samples\n", argv[2], shared->nr);
	return write_all(argv[1], (uint32_t)pid, argv[2]) || status || !shared->nr;
}
