// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads are copied one after another, unwound until all their code is loaded, and the ones that
 * end early are stopped and copied again; then all are named.
 *
 * Runs on: the caller, registered with urcu here. A session's tables are not used.
 * Invariant: a copy without a stop is used only if the task did not run from its first read to the
 * last one of its language.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/hot/hot.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

#define TASK_STACKS_MAX 4096 /* threads */

/* To read /proc/PID, and to describe an interpreter. */
#define PROCESS_NS 3000000000ULL

#define DETECT_NS 2000000000ULL

/* To load the code of the stacks; of a JVM: its code cache is read at first. */
#define LOAD_NS 8000000000ULL

#define LOAD_IDLE_NS 200000000ULL
#define LOAD_JAVA_NS 3000000000ULL

/* To name it. */
#define NAMES_NS 15000000000ULL

#define NAMES_IDLE_NS 1000000000ULL
#define STEP_MS	      5

/* To read the language of a thread that sleeps. */
#define LANGUAGE_NS 50000000ULL

#define LOOKS 3 /* at a thread that runs, for its sleep */

#define STACKS_MEMORY ((size_t)64 << 20)

/* One thread. */
struct thread {
	pid_t tid;
	uint64_t goroutine; /* its number; 0: a thread */
	char state;
	char comm[64];
	size_t comm_size;
	uint64_t regs[UNWIND_REGS_MAX], mask;
	uint64_t sp, pc, time_ns, stop_ns;
	uint8_t *bytes; /* of the stack; NULL: no copy */
	size_t size;
	uint64_t nr_runs;		       /* when it was copied without a stop */
	struct unwind_interrupted interrupted; /* the stack behind a signal handler */
	uint64_t interrupted_sp;	       /* as unwound last; 0: in no other stack */
	struct lang_slot *slot;		       /* NULL: none */
	int code;			       /* of the last stop: 0 or -errno */
	/* As unwound last. */
	enum unwind_stop stop;
	enum pipeline_lang lang;
	enum lang_status lang_status;
	bool guessed;
	uint32_t nr;
	struct task_stack *out;
};

struct reader {
	const struct task_stacks_want *want;
	struct sampler_config config;
	struct store store;
	struct sampler_thread_shared *shared;
	struct pipeline *pipeline;
	struct langreader_shared languages;
	struct langreader *langreader; /* NULL: no interpreter */
	enum lang_kind kind;
	bool is_kernel;		   /* a thread of the kernel */
	const char *reason;	   /* static: why functions of the language are missing; NULL */
	const char *no_goroutines; /* static: why they are not shown; NULL */
	uint32_t nr_parked;	   /* goroutines, shown or not */
	size_t parked_size;	   /* of their copies */
	struct thread *threads;
	uint32_t nr;
	uint8_t *scratch; /* ASLEEP_COPY_MAX */
};

/* What a stop is for. */
struct stop_for {
	struct reader *r;
	struct thread *t;
	size_t size;
	struct unwind_interrupted interrupted;
};

const char *task_stacks_state_name(enum task_stacks_state state)
{
	static const char *const names[] = { "complete", "guessed", "cut", "none" };

	assert((unsigned int)state < ARRAY_SIZE(names));
	return names[state];
}

static void nap(void)
{
	rcu_thread_offline();
	poll(NULL, 0, STEP_MS);
	rcu_thread_online();
}

static bool is_cancelled(const struct reader *r)
{
	return r->want->cancel && atomic_load_explicit(r->want->cancel, memory_order_relaxed);
}

/* ---- the threads ---- */

/* Read the name and the state of a thread; false: it has ended. */
static bool read_status(pid_t pid, struct thread *t)
{
	char text[4096], *end;
	size_t size = untrusted_read_task(text, sizeof(text), pid, t->tid, "status");

	t->state = procfs_status_state(text, size);
	if (!size || !t->state || strncmp(text, "Name:\t", 6))
		return false;
	end = memchr(text, '\n', size);
	t->comm_size = MIN((size_t)(end ? end - text - 6 : 0), sizeof(t->comm));
	memcpy(t->comm, text + 6, t->comm_size);
	return true;
}

static int add_thread(struct reader *r, pid_t tid)
{
	struct thread *t = &r->threads[r->nr];

	*t = (struct thread){ .tid = tid, .stop = UNWIND_NR_STOPS };
	if (read_status(r->want->pid, t))
		r->nr++;
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* List the threads. 0, or -ESRCH with a sentence. */
static int list_threads(struct reader *r, struct err *e)
{
	const pid_t pid = r->want->pid;
	struct dirent *d;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return err_set(e, -ESRCH,
			       "no process %d\n  it has ended, or the number is wrong\n"
			       "  'ps -ef' lists the processes",
			       (int)pid);
	for (uint32_t i = 0; i < r->want->nr_tids && r->nr < TASK_STACKS_MAX; i++)
		add_thread(r, r->want->tids[i]);
	while (!r->want->tids && r->nr < TASK_STACKS_MAX && (d = readdir(dir)))
		if (atoi(d->d_name) > 0)
			add_thread(r, atoi(d->d_name));
	closedir(dir);
	qsort(r->threads, r->nr, sizeof(r->threads[0]), by_tid);
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->threads[i].state != 'Z' && r->threads[i].state != 'X')
			return 0;
	return err_set(e, -ESRCH,
		       "process %d has ended\n"
		       "  it is a zombie: its parent has not waited for it",
		       (int)pid);
}

/* ---- the tables ---- */

static int open_tables(struct reader *r, struct err *e)
{
	int code;

	r->config = (struct sampler_config){ .target = TARGET_PIDS,
					     .hz = 1,
					     .nr_events = 1,
					     .window_ns = 1000000000,
					     .languages = r->want->languages,
					     .shown_frames = r->want->frames };
	code = store_open(&r->store, &r->config, e);
	if (code)
		return code;
	r->shared = aligned_alloc(CACHELINE, sizeof(*r->shared));
	r->scratch = malloc(ASLEEP_COPY_MAX);
	if (!r->shared || !r->scratch)
		return err_set(e, -ENOMEM, "out of memory");
	memset(r->shared, 0, sizeof(*r->shared));
	store_publish(&r->store, r->shared, &r->config, 0, -1, 0);
	code = symbols_start(r->store.symbols, e);
	if (!code)
		code = pipeline_new(&r->pipeline, r->store.tables, e);
	r->languages.codes = symbols_codes(r->store.symbols);
	r->languages.languages = r->want->languages & ~CONFIG_JAVA;
	return code;
}

static void close_tables(struct reader *r)
{
	langreader_stop(r->langreader);
	pipeline_free(r->pipeline);
	if (r->store.symbols)
		symbols_stop(r->store.symbols);
	if (r->store.objects)
		store_close(&r->store);
	free(r->shared);
	free(r->scratch);
	for (uint32_t i = 0; i < r->nr; i++) {
		free(r->threads[i].bytes);
		free((void *)r->threads[i].interrupted.bytes);
		free(r->threads[i].slot);
	}
	free(r->threads);
}

/* Look the process up; false: it is not read yet. */
static bool look_up(struct reader *r, struct maps_hit *hit)
{
	uint64_t now_ns = time_now_ns();

	maps_find(r->store.maps, r->store.tables->tasks, r->want->pid, r->want->pid, now_ns, hit);
	if (hit->known)
		return true;
	if (maps_ask(r->store.maps, r->want->pid, now_ns))
		symbols_wake(r->store.symbols);
	return false;
}

/* Have the process read, and its interpreter described. 0, or -errno with a sentence. */
static int read_process(struct reader *r, struct err *e)
{
	const uint64_t begin_ns = time_now_ns();
	struct maps_hit hit;

	while (!look_up(r, &hit)) {
		if (time_now_ns() > begin_ns + PROCESS_NS)
			return err_set(e, -ETIME,
				       "cannot read /proc/%d: it does not respond, or has ended",
				       (int)r->want->pid);
		nap();
	}
	while (maps_is_undescribed(r->store.maps, r->want->pid) &&
	       time_now_ns() < begin_ns + PROCESS_NS + DETECT_NS)
		nap();
	look_up(r, &hit);
	r->is_kernel = hit.kernel_thread;
	if (!hit.lang)
		return 0;
	r->kind = hit.lang->kind;
	r->reason = hit.lang->reason;
	if (hit.lang->kind == LANG_JAVA || r->reason ||
	    (r->kind != LANG_GO && !(r->languages.languages & lang_bit(r->kind))))
		return 0;
	/* Without one its frames are the interpreter's. */
	if (!langreader_start_asked(&r->langreader, &r->languages, e))
		langreader_note_process(r->langreader, r->want->pid, hit.process, hit.lang, true);
	return 0;
}

/* ---- the copies ---- */

/* Make the words of one line of /proc/TID/stack: "[<0>] do_epoll_wait+0x5a/0x70 [ext4]". */
static void put_kernel_line(struct task_stack *out, size_t *used, const char *line, size_t size)
{
	char clean[128];
	size_t plus;

	for (size_t i = 0; i + 1 < size; i++)
		if (line[i] == ']' && line[i + 1] == ' ') {
			size -= i + 2;
			line += i + 2;
			break;
		}
	for (plus = 0; plus < size && line[plus] != '+' && line[plus] != ' ';)
		plus++;
	if (!plus || *used + plus + 2 > sizeof(out->kernel) || plus >= sizeof(clean))
		return;
	text_sanitise(clean, sizeof(clean), line, plus);
	*used += (size_t)snprintf(out->kernel + *used, sizeof(out->kernel) - *used, "%s\n", clean);
	*used = MIN(*used, sizeof(out->kernel) - 1);
}

/* Read the functions of the kernel that a thread is in; one of them where more is not permitted. */
static void read_kernel(pid_t pid, struct task_stack *out)
{
	char text[TASK_STACKS_KERNEL];
	size_t size = untrusted_read_task(text, sizeof(text), pid, out->tid, "stack"), used = 0;

	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t line = end ? (size_t)(end - text) - at : size - at;

		put_kernel_line(out, &used, text + at, line);
		at += line + 1;
	}
	if (size)
		return;
	size = untrusted_read_task(text, sizeof(text), pid, out->tid, "wchan");
	if (size && strcmp(text, "0"))
		put_kernel_line(out, &used, text, size);
}

static struct record_sample sample_of(const struct reader *r, const struct thread *t)
{
	return (struct record_sample){
		.ip = t->pc,
		.time_ns = t->time_ns,
		.pid = (uint32_t)r->want->pid,
		.tid = (uint32_t)t->tid,
		.cpumode = PERF_RECORD_MISC_USER,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs = (const uint8_t *)t->regs,
		.stack = t->bytes,
		.stack_size = ASLEEP_COPY_MAX,
		.stack_dyn = t->size,
	};
}

/* Have the frames of the language read, until @deadline_ns. @stack: the copy. */
static bool ask_language(struct reader *r, const struct thread *t, const uint8_t *stack,
			 size_t size, uint64_t deadline_ns)
{
	const size_t nr = (size_t)__builtin_popcountll(unwind_regs_mask());
	struct record_sample s = sample_of(r, t);
	uint64_t regs[UNWIND_REGS_MAX] = { 0 };

	if (!r->langreader)
		return true;
	s.stack = stack;
	s.stack_dyn = size;
	/* The reader has one layout: without a stop the other registers are 0. */
	for (size_t i = 0, at = 0, from = 0; i < 64 && at < nr; i++) {
		if (!(unwind_regs_mask() >> i & 1))
			continue;
		regs[at++] = t->mask >> i & 1 ? t->regs[from++] : 0;
	}
	s.regs = (const uint8_t *)regs;
	return langreader_ask(r->langreader, &s, deadline_ns);
}

/* Take the frames that the language reader found. */
static void take_slot(struct reader *r, struct thread *t)
{
	const struct lang_slot *slot;
	size_t size;

	free(t->slot);
	t->slot = NULL;
	if (!r->langreader)
		return;
	langreader_answer(r->langreader, false);
	slot = frame_channel_find(langreader_feed(r->langreader), t->time_ns,
				  (uint32_t)r->want->pid, (uint32_t)t->tid);
	if (!slot)
		return;
	size = sizeof(*slot) + slot->nr * sizeof(slot->frames[0]) + slot->other.size;
	t->slot = malloc(size);
	if (t->slot)
		memcpy(t->slot, slot, size);
}

/* Keep a copy of the stack. */
static void keep_bytes(struct reader *r, struct thread *t, size_t size)
{
	free(t->bytes);
	t->bytes = malloc(MAX(size, 1u));
	t->size = t->bytes ? size : 0;
	if (t->bytes)
		memcpy(t->bytes, r->scratch, size);
}

/* Copy the stack that a signal handler has interrupted, if the last walk led to one. */
static struct unwind_interrupted copy_interrupted(const struct reader *r, const struct thread *t)
{
	struct unwind_interrupted s = { .sp = t->interrupted_sp };
	uint8_t *bytes = s.sp ? malloc(ASLEEP_COPY_MAX) : NULL;

	if (bytes)
		s.size = asleep_copy_stack(r->want->pid, s.sp, bytes, ASLEEP_COPY_MAX);
	s.bytes = bytes;
	return s;
}

/* The same of a thread that was not stopped, if it did not run since its stack was copied. */
static bool add_interrupted(struct reader *r, struct thread *t)
{
	struct unwind_interrupted s;
	uint64_t nr_runs;

	if (!t->interrupted_sp || t->mask == unwind_regs_mask() || t->interrupted.size)
		return false;
	s = copy_interrupted(r, t);
	if (!s.size || !asleep_runs(t->tid, &nr_runs) || nr_runs != t->nr_runs) {
		free((void *)s.bytes);
		return false;
	}
	free((void *)t->interrupted.bytes);
	t->interrupted = s;
	return true;
}

/* Copy a thread that does not run, without a stop. False: it runs, or may not be read. */
static bool copy_asleep(struct reader *r, struct thread *t)
{
	uint64_t before, after, sp, pc;
	size_t size;

	if (!asleep_runs(t->tid, &before))
		return false;
	t->out->kernel[0] = '\0';
	if (t->state != 'R')
		read_kernel(r->want->pid, t->out);
	if (!asleep_registers(t->tid, &sp, &pc))
		return false;
	t->sp = t->regs[0] = sp;
	t->pc = t->regs[1] = pc;
	t->mask = unwind_regs_mask_of_stack();
	t->time_ns = time_now_ns();
	size = asleep_copy_stack(r->want->pid, sp, r->scratch, ASLEEP_COPY_MAX);
	if (size)
		ask_language(r, t, r->scratch, size, time_now_ns() + LANGUAGE_NS);
	take_slot(r, t);
	if (size && asleep_runs(t->tid, &after) && before == after) {
		keep_bytes(r, t, size);
		t->nr_runs = before;
		/* It had the registers of a wait. */
		if (t->state == 'R')
			t->state = 'S';
		return t->bytes != NULL;
	}
	free(t->slot);
	t->slot = NULL;
	return false;
}

/*
 * Copy all threads that do not run. One that ran may sleep again soon: it is looked at
 * again, with its state.
 */
static void copy_all_asleep(struct reader *r)
{
	for (int look = 0; look < LOOKS; look++) {
		bool any = false;

		for (uint32_t i = 0; i < r->nr && !is_cancelled(r); i++) {
			struct thread *t = &r->threads[i];

			if (t->state == 'Z' || t->state == 'X' || t->goroutine || t->bytes)
				continue;
			if (look && !read_status(r->want->pid, t))
				t->state = 'X';
			else
				any |= !copy_asleep(r, t);
		}
		if (!any || look == LOOKS - 1)
			return;
		nap();
	}
}

/* While the thread is stopped: copy its stack, and the frames of its language. */
static void copy_stopped(void *ctx, const struct stopped *s, uint64_t deadline_ns)
{
	struct stop_for *f = ctx;
	struct thread *t = f->t;

	memcpy(t->regs, s->regs, sizeof(t->regs));
	t->mask = unwind_regs_mask();
	t->sp = s->sp;
	t->time_ns = time_now_ns();
	f->size = asleep_copy_stack(f->r->want->pid, t->sp, f->r->scratch, ASLEEP_COPY_MAX);
	f->interrupted = copy_interrupted(f->r, t);
	if (f->size)
		ask_language(f->r, t, f->r->scratch, f->size, deadline_ns);
}

/* Stop a thread, and copy it. */
static void stop_thread(struct reader *r, struct thread *t)
{
	struct thread was = *t;
	struct stop_for f = { .r = r, .t = t };
	struct stopped s;

	t->bytes = NULL;
	t->slot = NULL;
	t->code = stopped_read(t->tid, &s, copy_stopped, &f);
	if (t->mask == unwind_regs_mask())
		take_slot(r, t);
	if (!t->code && (!s.whole || !f.size))
		t->code = s.whole ? -EFAULT : -ETIME;
	if (!t->code) {
		keep_bytes(r, t, f.size);
		t->interrupted = f.interrupted;
		f.interrupted = was.interrupted;
		free(was.bytes);
		free(was.slot);
	} else {
		/* The copy without a stop. */
		was.code = t->code;
		free(t->slot);
		*t = was;
	}
	free((void *)f.interrupted.bytes);
	t->stop_ns += s.stop_ns;
}

/* ---- goroutines that no thread runs ---- */

/* Fields at the begin of Go's struct g: stack.lo, stack.hi, m, sched.sp, sched.pc, sched.g. */
enum { G_LO = 0, G_HI = 8, G_M = 48, G_SP = 56, G_PC = 64, G_SELF = 72, G_SIZE = 168 };

/* The others, by version: runtime2.go of Go 1.19, 1.24 and 1.27. Proven on each process. */
static const struct go_layout {
	uint16_t status, number;
} go_layouts[] = {
	{ 144, 152 }, /* to 1.22; from 1.25 */
	{ 152, 160 }, /* 1.23 and 1.24, with syscallbp */
};

/* atomicstatus: _Grunnable, _Gwaiting, _Gpreempted; the bit is set while the stack is scanned. */
#define GO_PARKED     (1U << 1 | 1U << 4 | 1U << 9)
#define GO_SCAN	      0x1000U
#define GO_STATUS_MAX 15U

#define GOROUTINES_MAX 1000000U /* looked at */

struct goroutine {
	uint64_t lo, hi, m, sp, pc, number;
	uint32_t status;
};

/* Open the file of the program, mapped at *@start. */
static bool open_program(pid_t pid, struct untrusted_file *file, uint64_t *start)
{
	struct procfs_map m = { .path_size = 0 };
	char path[4096], *text = NULL;
	size_t size = 0;
	struct err e;
	bool found;

	if (untrusted_read_proc(pid, "maps", PROCFS_MAPS_SIZE_MAX, &text, &size))
		return false;
	found = procfs_next_map(&(struct procfs_text){ .at = text, .end = text + size }, &m) &&
		m.path_size && !m.offset;
	*start = m.start;
	if (found) {
		path[procfs_unescape(path, sizeof(path) - 1, m.path, m.path_size)] = '\0';
		found = !untrusted_open(&(struct untrusted_want){ .pid = pid,
								  .start = m.start,
								  .end = m.end,
								  .path = path,
								  .maj = m.maj,
								  .min = m.min,
								  .ino = m.ino },
					file, &e);
	}
	free(text);
	return found;
}

/* Find the table of goroutines of a Go program: its variable; 0: none. */
static uint64_t find_goroutines(pid_t pid)
{
	struct elfvar var = { .name = "runtime.allgs" };
	struct untrusted_file file;
	struct elffacts facts;
	uint64_t start, found = 0;

	if (!open_program(pid, &file, &start))
		return 0;
	if (!elffacts_read(&facts, &(struct elffacts_input){ .fd = file.fd,
							     .size = file.size,
							     .vars = &var,
							     .nr_vars = 1 }) &&
	    facts.has_vaddr && var.vaddr)
		found = start + (var.vaddr - facts.vaddr);
	close(file.fd);
	return found;
}

static bool read_goroutine(struct remote *mem, uint64_t at, const struct go_layout *layout,
			   struct goroutine *g)
{
	uint8_t bytes[G_SIZE];
	uint64_t self;

	if (remote_read(mem, at, bytes, sizeof(bytes)))
		return false;
	memcpy(&self, bytes + G_SELF, 8);
	memcpy(&g->lo, bytes + G_LO, 8);
	memcpy(&g->hi, bytes + G_HI, 8);
	memcpy(&g->m, bytes + G_M, 8);
	memcpy(&g->sp, bytes + G_SP, 8);
	memcpy(&g->pc, bytes + G_PC, 8);
	g->pc--; /* in the call that it returns from */
	memcpy(&g->number, bytes + layout->number, 8);
	memcpy(&g->status, bytes + layout->status, 4);
	g->status &= ~GO_SCAN;
	return self == at;
}

/* Find the layout by which goroutines have a number and a status, the first one number 1; NULL. */
static const struct go_layout *prove_layout(struct remote *mem, uint64_t table, uint64_t nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(go_layouts); i++) {
		const uint64_t looked_at = MIN(nr, 16u);
		struct goroutine g;
		uint64_t k = 0, at;

		while (k < looked_at && !remote_read_u64(mem, table + 8 * k, &at) &&
		       read_goroutine(mem, at, &go_layouts[i], &g) && g.status <= GO_STATUS_MAX &&
		       (k ? g.number > 1 : g.number == 1))
			k++;
		if (k && k == looked_at)
			return &go_layouts[i];
	}
	return NULL;
}

static bool is_parked(const struct goroutine *g)
{
	return g->status < 32 && GO_PARKED >> g->status & 1 && !g->m && g->lo < g->hi &&
	       g->sp >= g->lo && g->sp < g->hi && g->pc;
}

/* Copy the stack of the goroutine at @at, if it is parked before and after. */
static void add_goroutine(struct reader *r, struct remote *mem, uint64_t at,
			  const struct go_layout *layout)
{
	struct thread *t = &r->threads[r->nr];
	struct goroutine g = { 0 }, after = { 0 };
	size_t size;

	if (!read_goroutine(mem, at, layout, &g) || !is_parked(&g))
		return;
	r->nr_parked++;
	if (r->nr == TASK_STACKS_MAX || r->parked_size > STACKS_MEMORY)
		return;
	size = asleep_copy_stack(r->want->pid, g.sp, r->scratch, MIN(g.hi - g.sp, ASLEEP_COPY_MAX));
	if (!size || !read_goroutine(mem, at, layout, &after) || memcmp(&g, &after, sizeof(g)))
		return;
	*t = (struct thread){ .tid = r->want->pid,
			      .goroutine = g.number,
			      .state = 'P',
			      .regs = { g.sp, g.pc },
			      .mask = unwind_regs_mask_of_stack(),
			      .sp = g.sp,
			      .pc = g.pc,
			      .time_ns = time_now_ns(),
			      .stop = UNWIND_NR_STOPS };
	keep_bytes(r, t, size);
	r->parked_size += t->size;
	r->nr += t->bytes != NULL;
}

/* Add the goroutines that no thread runs: their registers and stacks are in memory. */
static void add_goroutines(struct reader *r)
{
	uint64_t variable = r->is_kernel || r->want->tids ? 0 : find_goroutines(r->want->pid);
	int dir_fd = variable ? untrusted_open_proc(r->want->pid) : -1;
	struct remote mem = { .fd = dir_fd < 0 ? -1 : remote_open(dir_fd) };
	const struct go_layout *layout = NULL;
	uint64_t table, nr, at;

	r->no_goroutines = "the program has no symbol runtime.allgs, as with -ldflags=-s";
	if (mem.fd >= 0) {
		if (!remote_read_u64(&mem, variable, &table) &&
		    !remote_read_u64(&mem, variable + 8, &nr))
			layout = prove_layout(&mem, table, nr);
		r->no_goroutines = layout ? NULL : "this version of Go is not known";
		for (uint64_t i = 0; layout && i < MIN(nr, GOROUTINES_MAX) && !is_cancelled(r); i++)
			if (!remote_read_u64(&mem, table + 8 * i, &at))
				add_goroutine(r, &mem, at, layout);
		close(mem.fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
}

/* Say which goroutines are not shown, if it is a Go program. */
static void note_goroutines(const struct reader *r, struct task_stacks *out)
{
	const struct profile *p = out->profile;
	uint32_t shown = 0;
	bool is_go = false;

	for (uint32_t i = 0; i < r->nr; i++)
		shown += r->threads[i].goroutine != 0;
	for (uint32_t i = 0; p && i < p->nr_functions && !is_go; i++)
		is_go = !strncmp(p->functions[i].name.str, "runtime.mstart", 14);
	if (is_go && r->no_goroutines)
		snprintf(out->note, sizeof(out->note),
			 "goroutines that no thread runs are not shown: %s", r->no_goroutines);
	else if (shown < r->nr_parked)
		snprintf(out->note, sizeof(out->note),
			 "%" PRIu32 " of %" PRIu32 " goroutines that no thread runs are shown",
			 shown, r->nr_parked);
}

/* ---- the stacks ---- */

/* Unwind the copy of a thread. */
static void resolve(struct reader *r, struct thread *t, struct pipeline_stack *stack)
{
	const struct record_sample s = sample_of(r, t);

	pipeline_set_slot(r->pipeline, t->slot, &t->interrupted);
	pipeline_resolve(r->pipeline, &s, t->mask);
	pipeline_set_slot(r->pipeline, NULL, NULL);
	pipeline_stack(r->pipeline, stack);
	t->stop = stack->stop;
	/* At a pointer into this copy the walk has not left it: it is Go's or a fiber's own switch.
	 */
	t->interrupted_sp = t->stop == UNWIND_SWITCHED && stack->sp - t->sp >= t->size ? stack->sp
										       : 0;
	t->guessed = stack->nr_guessed;
	t->lang = stack->lang;
	t->lang_status = stack->lang_status;
	t->nr = stack->nr;
	if (pipeline_take_asked(r->pipeline))
		symbols_wake(r->store.symbols);
}

static bool is_rooted(const struct thread *t)
{
	return t->stop == UNWIND_COMPLETE || t->stop == UNWIND_NO_USER;
}

/* Report whether the functions of a language are all there, or there are none. */
static bool has_language(const struct reader *r, const struct thread *t)
{
	if (t->lang == PIPELINE_LANG_NONE)
		return r->reason || r->kind == LANG_JAVA ||
		       (t->lang_status != LANG_NO_READER && t->lang_status != LANG_MISMATCH &&
			t->lang_status != LANG_BAD_CHAIN);
	return t->lang != PIPELINE_LANG_GUESSED;
}

/* Unwind all threads until their code is loaded. */
static void settle(struct reader *r)
{
	const uint64_t begin_ns = time_now_ns();
	uint64_t changed_ns = begin_ns, idle_ns;
	uint64_t was = UINT64_MAX;

	idle_ns = r->kind == LANG_JAVA ? LOAD_JAVA_NS : LOAD_IDLE_NS;
	for (;;) {
		uint64_t now = 0, now_ns;
		bool all = true, pending = false;

		for (uint32_t i = 0; i < r->nr; i++) {
			struct pipeline_stack stack;

			if (!r->threads[i].bytes)
				continue;
			resolve(r, &r->threads[i], &stack);
			now += stack.nr;
			pending |= stack.stop == UNWIND_PENDING;
			all &= is_rooted(&r->threads[i]) && !r->threads[i].guessed;
		}
		now_ns = time_now_ns();
		changed_ns = now != was ? now_ns : changed_ns;
		was = now;
		if (all || is_cancelled(r) || now_ns > begin_ns + LOAD_NS ||
		    (!pending && now_ns > changed_ns + idle_ns))
			return;
		nap();
	}
}

/* Report whether a stop may find more of the stack of a thread. */
static bool is_worth_a_stop(const struct reader *r, const struct thread *t)
{
	if (r->is_kernel || t->goroutine || t->state == 'Z' || t->state == 'X' || t->state == 'D')
		return false;
	if (!t->bytes)
		return true;
	return t->stop != UNWIND_DEPTH && !(is_rooted(t) && !t->guessed && has_language(r, t));
}

/* Stop the threads with cut stacks. @again: which were stopped, for the stack behind a handler. */
static void stop_threads(struct reader *r, bool again)
{
	bool any = false;

	for (uint32_t i = 0; i < r->nr && !is_cancelled(r); i++) {
		struct thread *t = &r->threads[i];

		if (!is_worth_a_stop(r, t) || (again && !t->interrupted_sp))
			continue;
		stop_thread(r, t);
		any = true;
	}
	if (any)
		settle(r);
}

static void read_stacks(struct reader *r)
{
	bool any = false;

	copy_all_asleep(r);
	settle(r);
	for (uint32_t i = 0; i < r->nr && !is_cancelled(r); i++)
		any |= add_interrupted(r, &r->threads[i]);
	if (any)
		settle(r);
	for (int again = 0; r->want->stop && again < 2; again++)
		stop_threads(r, again);
}

/* ---- the result ---- */

/* Name the tracer of a thread; false: there is none. */
static bool say_tracer(pid_t pid, pid_t tid, char *why, size_t size)
{
	char text[4096], comm[64] = "";
	uint64_t tracer;
	size_t got = untrusted_read_task(text, sizeof(text), pid, tid, "status");

	if (!procfs_status_number(text, got, "TracerPid", &tracer) || !tracer)
		return false;
	got = untrusted_read_task(comm, sizeof(comm), (pid_t)tracer, (pid_t)tracer, "comm");
	text_format(why, size, "traced by %.*s[%d], as by a debugger", (int)(got ? got - 1 : 0),
		    comm, (int)tracer);
	return true;
}

/* Say why a thread has no stack, or a cut one. */
static void say_why(const struct reader *r, const struct thread *t, struct task_stack *out)
{
	const char *text = NULL;

	if (r->is_kernel)
		text = "it is a thread of the kernel";
	else if (t->state == 'Z' || t->state == 'X')
		text = "it has ended";
	else if (t->code == -EPERM || (!t->bytes && !r->want->stop))
		text = say_tracer(r->want->pid, t->tid, out->why, sizeof(out->why)) ? out->why
		       : t->code == -EPERM ? "not permitted: another user, or "
					     "kernel.yama.ptrace_scope is not 0"
		       : t->state == 'R'   ? "it runs, and was not stopped"
					 : "it woke as it was read, or may not be read; it was not "
					   "stopped";
	else if (t->code == -ETIME)
		text = "it did not stop in 0.2 s: it waits for a disk, or has no CPU";
	else if (t->code == -ESRCH)
		text = "it has ended";
	else if (t->code == -EPROTO)
		text = "a 32-bit program";
	else if (t->code)
		text = strerror(-t->code);
	else if (!t->bytes && t->state == 'D')
		text = "it waits for a disk (state D), and cannot be read";
	else if (t->bytes && t->state == 'D' && t->stop == UNWIND_BAD_REGS)
		text = "its registers are not read: in state D (as in vfork()) it does not stop";
	else if (t->bytes && !is_rooted(t))
		text = unwind_stop_name(t->stop);
	else if (t->bytes && r->reason)
		text = r->reason;
	if (text && text != out->why)
		snprintf(out->why, sizeof(out->why), "%s", text);
}

static enum task_stacks_state state_of(const struct reader *r, const struct thread *t)
{
	if (!t->bytes || !t->nr)
		return TASK_STACKS_NONE;
	if (!is_rooted(t))
		return TASK_STACKS_CUT;
	return t->guessed || !has_language(r, t) ? TASK_STACKS_GUESSED : TASK_STACKS_COMPLETE;
}

/* Unwind once more, and intern the stacks: the places are then named. */
static uint32_t intern_all(struct reader *r, struct stacks *stacks, struct task_stacks *out,
			   struct history_cell *cells)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr; i++) {
		struct pipeline_stack stack = { .nr = 0 };

		if (r->threads[i].bytes)
			resolve(r, &r->threads[i], &stack);
		out->list[i].stack = UINT32_MAX;
		if (!stack.nr)
			continue;
		out->list[i].stack = stacks_intern(stacks, stack.places, stack.nr);
		if (out->list[i].stack == STACK_NONE)
			continue;
		cells[nr++] = (struct history_cell){
			.stack = out->list[i].stack, .task = stack.task, .count = 1, .weight = 1
		};
	}
	return nr;
}

/* Wait until the loader has named all places. */
static void wait_for_names(struct reader *r)
{
	const uint64_t begin_ns = time_now_ns();
	uint64_t changed_ns = begin_ns, was = UINT64_MAX;

	symbols_wake(r->store.symbols);
	for (;;) {
		struct symbols_stats s;
		uint64_t now, now_ns = time_now_ns();

		symbols_stats(r->store.symbols, &s);
		if (!s.nr_waiting && !s.nr_lines_waiting &&
		    s.nr_named + s.nr_unnamed >= places_nr(r->store.places))
			return;
		now = s.nr_named + s.nr_unnamed + s.nr_lines + s.nr_images;
		changed_ns = now != was ? now_ns : changed_ns;
		was = now;
		if (is_cancelled(r) || now_ns > begin_ns + NAMES_NS ||
		    now_ns > changed_ns + NAMES_IDLE_NS)
			return;
		nap();
	}
}

/* Make the profile of the stacks. */
static int make_profile(struct reader *r, struct task_stacks *out)
{
	struct history_cell *cells = calloc(r->nr + 1ULL, sizeof(*cells));
	struct stacks *stacks = NULL;
	int code = cells ? stacks_new(&stacks, 2 * TASK_STACKS_MAX, STACKS_MEMORY) : -ENOMEM;

	if (!code) {
		const struct assemble_input in = {
			.counts = cells,
			.nr_counts = intern_all(r, stacks, out, cells),
			.stacks = stacks,
			.places = r->store.places,
			.symbols = r->store.symbols,
			.maps = r->store.maps,
			.objects = r->store.objects,
			.shown_frames = r->want->frames,
			.wait = symbols_wait(r->store.symbols),
		};

		wait_for_names(r);
		out->profile = xcalloc(1, sizeof(*out->profile));
		code = assemble(out->profile, &in);
	}
	if (stacks)
		stacks_free(stacks);
	free(cells);
	return code;
}

/* Set the name and the command line of the process. */
static void name_process(const struct reader *r, struct task_stacks *out)
{
	char *text = NULL;
	size_t size = 0;

	out->comm =
		r->threads[0].tid == r->want->pid
			? text_arena_add(out->texts, r->threads[0].comm, r->threads[0].comm_size)
			: TEXT("");
	out->command = TEXT("");
	if (untrusted_read_proc(r->want->pid, "cmdline", 4096, &text, &size))
		return;
	while (size && !text[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : ' ';
	if (size)
		out->command = text_arena_add(out->texts, text, size);
	free(text);
}

/* Make the entries of the result. 0 or -ENOMEM. */
static int begin_result(struct reader *r, struct task_stacks *out)
{
	out->texts = text_arena_new();
	out->list = calloc(MAX(r->nr, 1u), sizeof(*out->list));
	if (!out->list || !out->texts)
		return -ENOMEM;
	out->nr = r->nr;
	for (uint32_t i = 0; i < r->nr; i++) {
		out->list[i].goroutine = r->threads[i].goroutine;
		out->list[i].tid = r->threads[i].goroutine ? 0 : r->threads[i].tid;
		r->threads[i].out = &out->list[i];
	}
	return 0;
}

/* Return the lock that a thread waits for, by its functions: as wait_hint() has it; NULL. */
static const char *find_own_lock(const struct profile *p, const struct task_stack *s)
{
	const struct profile_stack *at = p && s->stack < p->nr_stacks ? &p->stacks[s->stack] : NULL;
	const char *found = NULL;

	for (uint32_t i = 0; at && i < at->nr && !found; i++) {
		const struct profile_function *f = &p->functions[p->frames[at->first + i]];

		found = wait_hint(f->name.str, f->name.size, false).holder;
	}
	return found;
}

static int make_result(struct reader *r, struct task_stacks *out)
{
	int code;

	out->pid = r->want->pid;
	name_process(r, out);
	code = make_profile(r, out);
	for (uint32_t i = 0; i < r->nr; i++) {
		const struct thread *t = &r->threads[i];
		struct task_stack *s = &out->list[i];

		s->comm = text_arena_add(out->texts, t->comm, t->comm_size);
		s->state = t->state;
		s->stop_ns = t->stop_ns;
		s->result = state_of(r, t);
		s->waits_for = t->state == 'R' ? NULL : find_own_lock(out->profile, s);
		say_why(r, t, s);
	}
	note_goroutines(r, out);
	return code;
}

/* Report that nothing of the process may be read. */
static int check_refused(const struct reader *r, const struct task_stacks *out, struct err *e)
{
	for (uint32_t i = 0; i < r->nr; i++)
		if (out->list[i].result != TASK_STACKS_NONE || out->list[i].kernel[0] ||
		    (r->threads[i].code != -EPERM && r->threads[i].state != 'Z' && !r->is_kernel))
			return 0;
	if (r->is_kernel)
		return err_set(e, -EPERM,
			       "process %d is a thread of the kernel\n"
			       "  its stack can be read as root: sudo proftop --stacks %d",
			       (int)r->want->pid, (int)r->want->pid);
	return err_set(e, -EPERM,
		       "cannot read the stacks of process %d: %s\n"
		       "  as root: sudo proftop --stacks %d",
		       (int)r->want->pid, out->list[r->nr - 1].why, (int)r->want->pid);
}

int task_stacks_read(struct task_stacks **out, const struct task_stacks_want *want, struct err *e)
{
	struct task_stacks *t = xcalloc(1, sizeof(*t));
	struct reader r = { .want = want };
	int code;

	rcu_register_thread();
	r.threads = calloc(TASK_STACKS_MAX, sizeof(*r.threads));
	code = r.threads ? list_threads(&r, e) : err_set(e, -ENOMEM, "out of memory");
	if (!code)
		code = open_tables(&r, e);
	if (!code)
		code = read_process(&r, e);
	if (!code)
		add_goroutines(&r);
	if (!code && begin_result(&r, t))
		code = err_set(e, -ENOMEM, "out of memory");
	if (!code) {
		read_stacks(&r);
		code = make_result(&r, t);
		if (code)
			err_set(e, code, "out of memory");
	}
	if (!code)
		code = check_refused(&r, t, e);
	rcu_thread_offline();
	close_tables(&r);
	rcu_thread_online();
	rcu_unregister_thread();
	if (code) {
		task_stacks_free(t);
		return code;
	}
	*out = t;
	return 0;
}

void task_stacks_free(struct task_stacks *t)
{
	if (!t)
		return;
	profile_free(t->profile);
	text_arena_free(t->texts);
	free(t->list);
	free(t);
}
