// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session from its configuration to its end: its parts, tables and their generations, profiles on
 * request, processes by name.
 *
 * Runs on: the owner's thread.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/code/code.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

/*
 * A profile of the next seconds, beside the ticks.
 */

/* 0 or -errno with a sentence. */
static int collect_open(struct collect *c, struct err *e)
{
	c->due_ns = UINT64_MAX;
	return mailbox_open(&c->mailbox, e);
}

static void collect_close(struct collect *c)
{
	mailbox_close(&c->mailbox);
}

bool collect_begin(struct collect *c, uint64_t now_ns)
{
	/* Relaxed: the span is all there is to see. */
	uint64_t span_ns = atomic_exchange_explicit(&c->wanted_ns, 0, memory_order_relaxed);

	if (!span_ns)
		return false;
	c->begin_ns = now_ns;
	c->due_ns = now_ns + span_ns;
	return true;
}

/*
 * The list of events for the picker, filled in the background.
 *
 * Runs on: the builder and the UI.
 */

struct event_table {
	struct event_list list;
	atomic_int *codes; /* relaxed: each is independent */
};

static struct event_table *new_table(void)
{
	struct event_table *t = xcalloc(1, sizeof(*t));

	event_list_init(&t->list, "");
	t->codes = xcalloc(t->list.nr, sizeof(*t->codes));
	for (uint32_t i = 0; i < t->list.nr; i++)
		atomic_init(&t->codes[i], 1);
	return t;
}

void event_states_probe(struct event_states *es, pid_t pid, int cpu, bool kernel)
{
	struct event_table *t;
	bool tracepoint = false;
	struct event ev;
	int code = 0;

	if (atomic_load_explicit(&es->table, memory_order_relaxed))
		return;
	t = new_table();
	/* Release: pairs with event_states_get(). */
	atomic_store_explicit(&es->table, t, memory_order_release);
	for (uint32_t i = 0; i < t->list.nr; i++) {
		const struct event_info *info = &t->list.infos[i];

		/* Opening a tracepoint waits for all CPUs: the first one answers for all. */
		if (!tracepoint || strcmp(info->group, EVENT_GROUP_TRACEPOINTS)) {
			code = event_parse(&ev, info->name, NULL);
			tracepoint = !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
			if (!code) {
				ev.kernel &= kernel;
				code = event_probe(&ev, pid, pid < 0 ? cpu : -1);
			}
		}
		atomic_store_explicit(&t->codes[i], code, memory_order_relaxed);
	}
}

static uint32_t fixed_states(struct sampler_event_state *out, uint32_t max)
{
	const struct event_info *info = event_catalogue();
	uint32_t nr = 0;

	for (; info[nr].name; nr++)
		if (nr < max)
			out[nr] = (struct sampler_event_state){ &info[nr], 1 };
	return nr;
}

uint32_t event_states_get(struct event_states *es, struct sampler_event_state *out, uint32_t max,
			  bool *probed)
{
	/* Acquire: pairs with event_states_probe(), the list is complete. */
	const struct event_table *t = atomic_load_explicit(&es->table, memory_order_acquire);

	*probed = t;
	if (!t)
		return fixed_states(out, max);
	for (uint32_t i = 0; i < MIN(max, t->list.nr); i++)
		out[i] = (struct sampler_event_state){
			.info = &t->list.infos[i],
			.code = atomic_load_explicit(&t->codes[i], memory_order_relaxed),
		};
	return t->list.nr;
}

static void event_states_free(struct event_states *es)
{
	struct event_table *t = atomic_exchange_explicit(&es->table, NULL, memory_order_acquire);

	if (!t)
		return;
	event_list_fini(&t->list);
	free(t->codes);
	free(t);
}

/* Choose cycles where there is a PMU, else cpu-clock with a banner. */
static void choose_event(struct sampler *s)
{
	struct sampler_config *c = &s->config;
	int code;

	event_parse(&c->events[0], "cycles", NULL);
	c->nr_events = 1;
	code = event_probe(&c->events[0], 0, -1);
	if (code == -EACCES || code == -EPERM) {
		struct event user = c->events[0];

		user.kernel = user.hv = false;
		code = event_probe(&user, 0, -1);
	}
	if (code != -ENOENT && code != -ENODEV && code != -EOPNOTSUPP && code != -ENXIO)
		return;
	event_parse(&c->events[0], "cpu-clock", NULL);
	snprintf(s->banner, sizeof(s->banner), PROFILE_NO_CYCLES "%s",
		 code == -ENOENT ? PROFILE_NO_PMU : event_errno(code));
}

static int open_counters(struct sampler *s, struct err *e)
{
	return live_open_counters(&s->config, &s->target, &s->live.counters, e);
}

static bool refused(int code)
{
	return code == -EACCES || code == -EPERM;
}

/* Put @text before the banner: missing samples matter most. */
void session_add_banner(struct sampler *s, const char *text)
{
	char before[sizeof(s->banner)];

	memcpy(before, s->banner, sizeof(before));
	snprintf(s->banner, sizeof(s->banner), "%s%s%.150s", text, before[0] ? "; " : "", before);
}

/*
 * Open the requested events; without the right to them, the permitted ones, with a banner: first
 * without the kernel, then one's own processes instead of all. If nothing is permitted, the message
 * is from the first refusal.
 */
static int open_permitted(struct sampler *s, struct err *e)
{
	struct sampler_config *c = &s->config;
	struct err later;
	int code = open_counters(s, e), second;

	if (!refused(code))
		return code;
	if (c->target != TARGET_SYSTEM && config_user_only(c->events, c->nr_events)) {
		second = open_counters(s, &later);
		if (!second)
			session_add_banner(s, CONFIG_USER_ONLY);
		return second ? code : 0;
	}
	if (c->target != TARGET_SYSTEM)
		return code;
	c->target = TARGET_USER;
	c->uid = getuid();
	second = target_open(&s->target, c, &later);
	if (!second)
		second = open_counters(s, &later);
	if (refused(second) && config_user_only(c->events, c->nr_events))
		second = open_counters(s, &later);
	if (second)
		return code;
	session_add_banner(s, c->events[0].kernel ? "not permitted to see other users' processes: "
						    "your own only"
						  : "not permitted to see other users' processes "
						    "or the kernel: your own user code only");
	return 0;
}

/* Return how many frames the kernel follows. */
static uint32_t chain_max(void)
{
	long max;

	if (procstat_sysctl("", "perf_event_max_stack", &max) || max < 1 || max > UINT16_MAX)
		return PIPELINE_CHAIN_MAX;
	return (uint32_t)max;
}

static int share(struct sampler *s, struct err *e)
{
	const bool all = s->config.include_self || s->replay;
	struct sampler_thread_shared *shared = aligned_alloc(CACHELINE, sizeof(*shared));

	if (!shared)
		return err_set(e, -ENOMEM, "out of memory");
	memset(shared, 0, sizeof(*shared));
	shared->counters = s->live.counters;
	shared->sideband = s->live.sideband;
	shared->recorder = s->recording.recorder;
	shared->builder_fd = s->controls.fd;
	s->live.shared = shared;
	store_publish(&s->store, shared, &s->config, s->replay ? replay_machine(s->replay) : 0,
		      all ? -1 : getpid(), s->replay ? 0 : chain_max());
	return 0;
}

static void init_config(struct sampler *s, const struct sampler_config *config)
{
	s->config = *config;
	s->messages.remark = config->remark;
	if (!config->stack_size && config->call_graph == CALL_GRAPH_DWARF)
		s->config.call_graph = CALL_GRAPH_OFF;
	s->ticks.window = PROFILE_WINDOW;
	s->ticks.period_ns = config->tick_ns;
	atomic_init(&s->annotate.function, SYMBOL_NONE);
	s->annotate.in[0] = SYMBOL_NONE;
	s->annotate.replay = config->replay != NULL;
	s->rates.enabled = true;
	target_init(&s->target);
	if (s->config.nr_events == 0 && !config->replay)
		choose_event(s);
	rates_init(&s->rates, &s->config);
	for (uint32_t i = 0; i < config->nr_traps; i++)
		traps_add(&s->traps, &config->traps[i]);
}

/* Open target, CPUs, events and side-band. */
static int open_live(struct sampler *s, struct err *e)
{
	int code = target_open(&s->target, &s->config, e);

	if (code)
		return code;
	if (history_use_moments(s->store.history))
		return err_set(e, -ENOMEM, "no memory for the tables: %s", strerror(ENOMEM));
	/* Before the events: a CPU that is online just after them is then one that came back. */
	s->live.online = live_online();
	if (procstat_pid_namespace(""))
		maps_in_namespace(s->store.maps);
	s->cpu_times = cpu_times_new(NULL);
	if (!s->cpu_times)
		return err_set(e, -ENOMEM, "out of memory");
	code = open_permitted(s, e);
	if (!code)
		target_choose(s);
	if (!code && s->target.kind == TARGET_NAME && !s->target.wide &&
	    config_wait_slot(&s->config) < 0)
		session_add_banner(s, TARGET_LONG_ONLY);
	if (!code)
		code = sideband_new(&s->live.sideband, s->live.counters, s->store.maps,
				    s->store.symbols);
	return code;
}

static int check_symfs(const char *symfs, struct err *e)
{
	struct stat st;

	if (!symfs || (!stat(symfs, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, -ENOTDIR,
		       "--symfs %.400s: no such folder\n"
		       "  it has copies of the recorded machine's files, for example "
		       "DIR/usr/bin/app",
		       symfs);
}

/* Report kernel samples without symbols: the kernel is not the running one. */
static void note_kernel(struct sampler *s)
{
	const struct kernel_identity *was = replay_kernel(s->replay);
	enum kernel_match match = symbols_recorded_kernel(s->store.symbols, was);
	char text[160], release[2 * KERNEL_RELEASE_MAX];

	if (match == KERNEL_SAME || !replay_has_kernel(s->replay))
		return;
	text_sanitise(release, sizeof(release), was->release, strlen(was->release));
	snprintf(text, sizeof(text), "%s%s%s: no kernel symbols", recorded_kernel_reason(match),
		 release[0] ? ", " : "", release);
	session_add_banner(s, text);
}

static int open_recording(struct sampler *s, struct err *e)
{
	int code = check_symfs(s->config.symfs, e);

	if (!code)
		code = replay_open(&s->replay, &s->config, e);
	if (code)
		return code;
	rates_init(&s->rates, &s->config);
	maps_no_proc(s->store.maps);
	symbols_recorded(s->store.symbols, s->config.symfs);
	note_kernel(s);
	if (!replay_monotonic(s->replay))
		symbols_other_clock(s->store.symbols);
	if (replay_note(s->replay)[0])
		session_add_banner(s, replay_note(s->replay));
	return 0;
}

/* Set the build-id of the kernel, for exports; of a stream it may still be unknown. */
static void identify_kernel(struct sampler *s)
{
	struct object_identity *kernel = &objects_at(s->store.objects, OBJECT_ID_KERNEL)->identity;

	if (s->config.replay) {
		const struct kernel_identity *was = replay_kernel(s->replay);

		kernel->build_id_size = was->build_id_size;
		memcpy(kernel->build_id, was->build_id, sizeof(was->build_id));
	} else {
		kernel->build_id_size = (uint8_t)recorded_kernel_build_id("/sys/kernel/notes",
									  kernel->build_id,
									  sizeof(kernel->build_id));
	}
}

static int open_parts(struct sampler *s, const struct sampler_config *config, struct err *e)
{
	int code = controls_open(&s->controls, e), mailbox = mailbox_open(&s->mailbox, e);

	code = code ? code : mailbox;
	if (!code)
		code = collect_open(&s->collect, e);
	init_config(s, config);
	if (!code)
		code = store_open(&s->store, &s->config, e);
	if (!code)
		code = rates_open(&s->rates, e);
	if (!code)
		code = config->replay ? open_recording(s, e) : open_live(s, e);
	if (!code)
		identify_kernel(s);
	if (!code)
		code = keep_open(&s->keep, &config->keep, e);
	if (!code)
		code = recording_open(&s->recording, config->record,
				      config->saving.dir ? config->saving.memory : 0,
				      s->live.counters, s->live.sideband,
				      symbols_codes(s->store.symbols), e);
	return code ? code : share(s, e);
}

int session_new(struct sampler **out, const struct sampler_config *config, struct err *e)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	int code = open_parts(s, config, e);

	if (code) {
		session_free(s);
		return code;
	}
	target_describe(&s->target, &s->config);
	*out = s;
	return 0;
}

/* Before the sampler threads start. */
static int open_waits(struct sampler *s, struct err *e)
{
	int code;

	if (config_wait_slot(&s->config) < 0)
		return 0;
	code = store_open_waits(&s->store, counters_nr_cpus(s->live.counters),
				config_latency_slot(&s->config));
	return code ? err_set(e, code, "no memory for the switches of tasks") : 0;
}

int session_start(struct sampler *s, struct err *e)
{
	int code = recording_start(&s->recording, e);

	if (!code && s->config.record)
		mailbox_say(&s->mailbox, "recording to %s", s->config.record);
	symbols_watch_interpreters(s->store.symbols, s->controls.fd);
	if (!code)
		code = symbols_start(s->store.symbols, e);
	if (code)
		return code;
	/* Every profile has kernel code: its names are needed first. */
	if (object_want(objects_at(s->store.objects, OBJECT_ID_KERNEL)))
		symbols_wake(s->store.symbols);
	s->rates.cpus = rates_new_cpus(counters_nr_cpus(s->live.counters));
	if (s->config.languages & ~CONFIG_JAVA)
		langreaders_open(&s->live.readers, symbols_codes(s->store.symbols),
				 s->config.languages & ~CONFIG_JAVA);
	code = open_waits(s, e);
	code = code ? code : live_start_threads(&s->live, e);
	if (!code && s->config.target != TARGET_COMMAND) {
		code = counters_enable(s->live.counters, true);
		if (code)
			err_set(e, code, "cannot start sampling: %s", strerror(-code));
	}
	return code ? code : target_release(&s->target, s->config.command, e);
}

void session_free(struct sampler *s)
{
	assert(!s->builder.runs && !s->live.nr_threads);
	if (s->store.symbols)
		symbols_stop(s->store.symbols);
	target_close(&s->target);
	cpu_times_free(s->cpu_times);
	recording_close(&s->recording);
	live_close(&s->live);
	replay_close(s->replay);
	mailbox_close(&s->mailbox);
	collect_close(&s->collect);
	rates_close(&s->rates);
	event_states_free(&s->events);
	keep_close(s->keep);
	past_close(&s->past);
	traps_clear(&s->traps);
	controls_close(&s->controls);
	config_free_spec(s->spec);
	config_free_spec(s->focus.spec);
	langreaders_close(&s->live.readers);
	store_close(&s->store);
	free(s);
}

/*
 * One job at a time reads the names of all processes. A job that hangs is kept until it ends, and
 * the next jobs leave out the command line of its process.
 */

/* A read that takes longer hangs. */
#define HANG_NS 250000000ULL

/* How often a job is looked at. */
#define STEP_NS 20000000ULL

/* Jobs that hang; then command lines are no longer read. */
#define HUNG_MAX 16U

/* For the helpers at the end. */
#define END_NS 100000000ULL

struct names_job {
	struct job job;
	process_names_read_fn read;
	pid_t guard;
	char *pattern;
	bool threads; /* no command lines */
	uint32_t nr_without;
	pid_t without[HUNG_MAX]; /* no command line is read of these */
	atomic_int pid;		 /* the process that is read; relaxed */
	bool failed;
	pid_t *pids;
	uint32_t nr, room;
};

struct process_names {
	process_names_read_fn read;
	pid_t guard;
	unsigned int nr_users;
	struct helpers *helpers;
	struct names_job *job; /* NULL: none runs */
	struct names_job *hung[HUNG_MAX];
	uint32_t nr_hung;
	pid_t told;		/* hangs, not taken yet; 0: none */
	struct names_job *last; /* finished; NULL: none */
};

static void drop(struct job *job)
{
	struct names_job *j = (struct names_job *)job;

	free(j->pattern);
	free(j->pids);
	free(j);
}

static bool is_without(const struct names_job *j, pid_t pid)
{
	for (uint32_t i = 0; i < j->nr_without; i++)
		if (j->without[i] == pid)
			return true;
	return false;
}

/* Match the name of the first thread, and that of the program. */
static bool matches(struct names_job *j, const regex_t *name, pid_t pid)
{
	char text[512], *base;

	if (!j->read(pid, "comm", text, sizeof(text))) {
		text[strcspn(text, "\n")] = '\0';
		/* It is no path, and may have a slash. */
		if (!regexec(name, text, 0, NULL, 0))
			return true;
	}
	if (j->threads || is_without(j, pid))
		return false;
	atomic_store_explicit(&j->pid, pid, memory_order_relaxed);
	if (watch_begin(&j->job.watch))
		return false;
	if (j->read(pid, "cmdline", text, sizeof(text)))
		text[0] = '\0';
	watch_end(&j->job.watch, 0);
	text[strcspn(text, "\n")] = '\0';
	base = strrchr(text, '/');
	return text[0] && !regexec(name, base ? base + 1 : text, 0, NULL, 0);
}

static void run(struct job *job)
{
	struct names_job *j = (struct names_job *)job;
	struct dirent *entry;
	regex_t name;
	DIR *dir;

	j->failed = regcomp(&name, j->pattern, REG_EXTENDED | REG_NOSUB);
	if (j->failed)
		return;
	dir = opendir("/proc");
	while (dir && !j->failed && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || pid == j->guard || !matches(j, &name, pid))
			continue;
		j->failed = !array_reserve(&j->pids, &j->room, j->nr + 1ULL);
		if (!j->failed)
			j->pids[j->nr++] = pid;
	}
	if (dir)
		closedir(dir);
	regfree(&name);
}

struct process_names *process_names_new(process_names_read_fn read, pid_t guard)
{
	struct process_names *n = calloc(1, sizeof(*n));

	if (!n || helpers_new(&n->helpers, -1)) {
		free(n);
		return NULL;
	}
	n->read = read;
	n->guard = guard;
	n->nr_users = 1;
	return n;
}

struct process_names *process_names_share(struct process_names *n)
{
	if (n)
		n->nr_users++;
	return n;
}

void process_names_put(struct process_names *n)
{
	if (!n || --n->nr_users)
		return;
	if (n->job)
		helper_job_leave(&n->job->job);
	for (uint32_t i = 0; i < n->nr_hung; i++)
		helper_job_leave(&n->hung[i]->job);
	if (n->last)
		drop(&n->last->job);
	helpers_free(n->helpers, time_now_ns() + END_NS);
	free(n);
}

/* Make a job; NULL: out of memory. */
static struct names_job *new_job(struct process_names *n, const char *pattern, bool threads)
{
	struct names_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop;
	j->read = n->read;
	j->guard = n->guard;
	j->threads = threads;
	j->pattern = strdup(pattern);
	for (uint32_t i = 0; i < n->nr_hung; i++)
		j->without[j->nr_without++] =
			atomic_load_explicit(&n->hung[i]->pid, memory_order_relaxed);
	if (!j->pattern) {
		drop(&j->job);
		return NULL;
	}
	return j;
}

/* Keep the list of a job that has ended as the last one. */
static void keep(struct process_names *n, struct names_job *j)
{
	if (j->failed) {
		drop(&j->job);
		return;
	}
	if (n->last)
		drop(&n->last->job);
	n->last = j;
}

/* Return the number of processes in the last list; -ENOMEM: none is of this pattern. */
static int take_last(const struct process_names *n, const char *pattern, const pid_t **pids)
{
	if (!n->last || strcmp(n->last->pattern, pattern))
		return -ENOMEM;
	*pids = n->last->pids;
	return (int)n->last->nr;
}

/* Make the list here, without command lines: then nothing hangs. */
static int look_at_threads(struct process_names *n, const char *pattern, const pid_t **pids)
{
	struct names_job *j = new_job(n, pattern, true);

	if (j) {
		run(&j->job);
		keep(n, j);
	}
	return take_last(n, pattern, pids);
}

/* Free the jobs that no longer hang. */
static void tidy(struct process_names *n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->nr_hung; i++)
		if (helper_job_done(&n->hung[i]->job))
			drop(&n->hung[i]->job);
		else
			n->hung[kept++] = n->hung[i];
	n->nr_hung = kept;
}

/* Take the list of the job if it has ended, put it aside if it hangs. False: it goes on. */
static bool end_job(struct process_names *n)
{
	struct names_job *j = n->job;

	if (helper_job_done(&j->job)) {
		keep(n, j);
	} else if (watch_blocked_ns(&j->job.watch, time_now_ns()) >= HANG_NS) {
		n->told = atomic_load_explicit(&j->pid, memory_order_relaxed);
		n->hung[n->nr_hung++] = j;
		/* It ends with this read. */
		atomic_store_explicit(&j->job.watch.cancel, true, memory_order_relaxed);
	} else {
		return false;
	}
	n->job = NULL;
	return true;
}

/* Start a job; false: there are no more helpers. */
static bool start_job(struct process_names *n, const char *pattern)
{
	n->job = n->nr_hung < HUNG_MAX ? new_job(n, pattern, false) : NULL;
	if (n->job && helpers_start(n->helpers, &n->job->job)) {
		drop(&n->job->job);
		n->job = NULL;
	}
	return n->job;
}

/* Run jobs until one ends that began in this call; false: none did until @until_ns. */
static bool run_jobs(struct process_names *n, const char *pattern, uint64_t until_ns)
{
	uint32_t nr_hung;
	uint64_t now_ns;

	do {
		if (!n->job && !start_job(n, pattern))
			return false;
		helpers_wait(n->helpers, &n->job->job, MIN(time_now_ns() + STEP_NS, until_ns));
		nr_hung = n->nr_hung;
		if (end_job(n) && n->nr_hung == nr_hung)
			return true;
		now_ns = time_now_ns();
	} while (now_ns < until_ns);
	return false;
}

int process_names_look(struct process_names *n, const char *pattern, uint64_t wait_ns,
		       const pid_t **pids)
{
	uint64_t until_ns = time_now_ns() + wait_ns;
	bool online = rcu_read_ongoing();

	tidy(n);
	/* Of an earlier call. */
	if (n->job && !end_job(n) && strcmp(n->job->pattern, pattern)) {
		helper_job_leave(&n->job->job);
		n->job = NULL;
	}
	if (online)
		rcu_thread_offline();
	run_jobs(n, pattern, until_ns);
	if (online)
		rcu_thread_online();
	if (n->nr_hung == HUNG_MAX || take_last(n, pattern, pids) < 0)
		return look_at_threads(n, pattern, pids);
	return take_last(n, pattern, pids);
}

pid_t process_names_take_hung(struct process_names *n, uint32_t *nr)
{
	pid_t pid = n->told;

	n->told = 0;
	*nr = n->nr_hung;
	return pid;
}
