// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * langtruth PID FILE SECONDS HZ: for SECONDS of its CPU time sample PID by events that also send it
 * a SIGTRAP at each sample, let readers and the pipeline find the frames of its language, and
 * compare each with the chain that the program wrote to FILE at the signal (tests/lang_truth.h).
 * Prints one line of figures; exit status 1 if a certain sample is wrong.
 *
 * langtruth PID FILE SECONDS HZ java: the same for a JVM with the agent tests/truth_java.c: its
 * chains and ours as names of methods, inlined ones as well. "edge": equal but for the innermost
 * one, which is being entered or left. "at_call": equal where the innermost method is that of
 * CompiledMethodLoad: AsyncGetCallTrace() errs at calls into the runtime.
 *
 * NO_COPIES=1: without the copies of frames that the kernel makes at samples (copier.c).
 *
 * langtruth PID - SECONDS HZ: send no signals, and print each sample: "certain",
 * "guessed" or why there are no frames, and the names of its functions with their lines,
 * outermost first; "*": others may be inlined in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/event/event.h"
#include "sampler/hot/internal.h"
#include "sampler/reader/reader.h"
#include "symbols/script/script.h"
#include "tests/java_scopes.h"
#include "tests/lang_truth.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/process/maps.c"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"

#define CPUS	 64
#define SAMPLES	 80000
#define PATIENCE 50 /* seconds more on a busy machine */
#define PLACES	 (1u << 20)
/* DWARF numbers. */
#define X86_64_RSP  7
#define X86_64_RIP  16
#define STACK_BYTES (32U << 10) /* parsers of PHP and Ruby have frames of 10 KiB */

struct sample {
	uint64_t time_ns;
	int tid;
	enum pipeline_lang lang;
	enum lang_status none;
	uint64_t pc, sp;
	uint32_t doubts;     /* enum interleave_doubt */
	uint32_t nr_guessed; /* native frames */
	enum unwind_stop stop;
	uint32_t nr, first; /* in chains */
	bool used;
};

struct tool {
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct symbols *symbols;
	struct counters *counters;
	struct sideband *sideband;
	struct pipeline_tables tables;
	struct pipeline *pipeline;
	struct langreader_shared shared;
	struct langreader *readers[CPUS];
	struct sample *samples;
	uint32_t nr_samples;
	uint64_t *chains; /* places */
	size_t nr_chains, max_chains;
	bool java;
	uint32_t nr_pending; /* samples before all objects were loaded, which are not judged */
	struct truth *truth;
};

static int trap_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		     unsigned long flags)
{
	if (ctx && attr->config == PERF_COUNT_SW_CPU_CLOCK && attr->type == PERF_TYPE_SOFTWARE) {
		attr->sigtrap = 1;
		attr->remove_on_exec = 1;
		attr->read_format &= ~(uint64_t)PERF_FORMAT_LOST;
	}
	return counters_kernel.perf_open(NULL, attr, pid, cpu, group, flags);
}

static void die(const char *what, int code)
{
	fprintf(stderr, "langtruth: %s: %s\n", what, strerror(-code));
	exit(2);
}

static void open_all(struct tool *t, pid_t pid, double hz)
{
	static struct counters_sys sys;
	struct counters_config c = {
		.hz = hz, .stack_size = STACK_BYTES, .regs_mask = unwind_regs_mask(), .nr_events = 1
	};
	struct event event;
	struct err e = { .text = "" };
	pid_t *tids = NULL;
	int *cpus = NULL, nr;

	sys = counters_kernel;
	sys.perf_open = trap_open;
	sys.ctx = t->truth;
	if (objects_new(&t->objects) || maps_new(&t->maps, t->objects, 4096) ||
	    places_new(&t->places, PLACES) ||
	    symbols_new(&t->symbols, t->places, t->objects, t->maps, &e))
		die("tables", -ENOMEM);
	event_parse(&event, "cpu-clock", &e);
	c.events = &event;
	nr = task_list_threads(&pid, 1, &tids, &e);
	if (nr <= 0)
		die(e.text, nr);
	c.tids = tids;
	c.nr_tids = (uint32_t)nr;
	c.nr_cpus = (uint32_t)task_list_online_cpus(&cpus, &e);
	c.cpus = cpus;
	if (!getenv("NO_COPIES") && !copier_load(&t->shared.copier))
		c.program_fd = t->shared.copier.program_fd;
	if (counters_open(&t->counters, &c, &sys, &e))
		die(e.text, -EINVAL);
	if (sideband_new(&t->sideband, t->counters, t->maps, t->symbols, NULL))
		die("side-band", -ENOMEM);
	free(tids);
	free(cpus);
}

static void start_all(struct tool *t, pid_t pid)
{
	struct err e = { .text = "" };

	t->tables = (struct pipeline_tables){
		.objects = t->objects,
		.maps = t->maps,
		.tasks = maps_tasks(t->maps),
		.places = t->places,
		.own_pid = -1,
		.codes = symbols_codes(t->symbols),
		.script = symbols_script(t->symbols),
		.languages = UINT32_MAX,
	};
	if (pipeline_new(&t->pipeline, &t->tables, &e) || symbols_start(t->symbols, &e))
		die(e.text, -ENOMEM);
	maps_load(t->maps, pid);
	symbols_wake(t->symbols);
	usleep(400000);
	t->shared.codes = symbols_codes(t->symbols);
	t->shared.languages = UINT32_MAX & ~lang_bit(LANG_JAVA);
	counters_enable(t->counters, true);
	for (uint32_t i = 0; i < counters_nr_cpus(t->counters); i++) {
		int copies = langreader_start(&t->readers[i], &t->shared, t->counters, i,
					      eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), &e);

		if (copies < 0)
			die(e.text, copies);
		if (counters_wake(t->counters, i,
				  copies ? COUNTERS_WAKE_OTHERS : COUNTERS_WAKE_ALL))
			die("events that wake", -EINVAL);
	}
}

static uint64_t user_register(const struct tool *t, const struct record_sample *s, unsigned int nr)
{
	return s->regs ? unwind_register(s->regs, counters_layout(t->counters)->regs_mask, nr) : 0;
}

static void keep_sample(struct tool *t, const struct record_sample *s)
{
	struct pipeline_stack stack;
	struct sample *out;

	if (t->nr_samples == SAMPLES)
		return;
	pipeline_resolve(t->pipeline, s, counters_layout(t->counters)->regs_mask);
	pipeline_stack(t->pipeline, &stack);
	if (stack.stop == UNWIND_PENDING) {
		t->nr_pending++;
		return;
	}
	out = &t->samples[t->nr_samples++];
	*out = (struct sample){ .time_ns = s->time_ns,
				.tid = (int)s->tid,
				.lang = stack.lang,
				.none = stack.lang_status,
				.doubts = stack.doubts,
				.stop = stack.stop,
				.nr_guessed = stack.nr_guessed,
				.pc = user_register(t, s, X86_64_RIP),
				.sp = user_register(t, s, X86_64_RSP),
				.first = (uint32_t)t->nr_chains };
	for (uint32_t i = 0; i < stack.nr; i++) {
		const struct place *p = places_at(t->places, stack.places[i]);

		if (!p || (p->object != t->tables.script && !t->java))
			continue;
		if (t->nr_chains == t->max_chains) {
			t->max_chains = 2 * t->max_chains + 65536;
			t->chains = xrealloc_array(t->chains, t->max_chains, sizeof(*t->chains));
		}
		t->chains[t->nr_chains++] = t->java ? stack.places[i] : p->offset;
		out->nr++;
	}
}

static void take(struct tool *t, uint32_t cpu)
{
	struct ring *ring = &counters_cpu(t->counters, cpu)->data;
	const struct perf_event_header *h;
	struct record r;

	if (!ring_begin(ring))
		return;
	rcu_thread_offline();
	sideband_drain(t->sideband);
	rcu_thread_online();
	pipeline_set_reader(t->pipeline, t->readers[cpu]);
	langreader_catch_up(t->readers[cpu], ring);
	langreader_answer(t->readers[cpu], false);
	while ((h = ring_next(ring))) {
		if (record_decode(&r, counters_layout(t->counters), h, h->size) ||
		    r.type != PERF_RECORD_SAMPLE)
			continue;
		langreader_note_event(t->readers[cpu], r.sample.id,
				      counters_event_of(t->counters, cpu, r.sample.id));
		keep_sample(t, &r.sample);
	}
	ring_end(ring);
	places_grow(t->places);
	if (pipeline_take_asked(t->pipeline))
		symbols_wake(t->symbols);
}

static uint64_t hash_text(uint64_t hash, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)text[i]) * TRUTH_PRIME;
	return hash;
}

/* The truth of Ruby has the names of methods: "total" for "block (2 levels) in total". */
static void base_name(const struct code_text *c, const char **name, size_t *size)
{
	*name = c->name;
	*size = c->name_size;
	for (size_t i = 0; i + 4 <= c->name_size; i++) {
		if (memcmp(c->name + i, " in ", 4))
			continue;
		*name = c->name + i + 4;
		*size = c->name_size - i - 4;
	}
}

static bool is_lua(const struct code_text *c)
{
	return c->language == LANG_LUA || c->language == LANG_LUAJIT;
}

static uint64_t hash_of(const struct tool *t, uint64_t place)
{
	const struct code_text *c =
		script_functions_at(symbols_codes(t->symbols), lang_place_code(place));
	uint64_t hash;
	const char *name;
	size_t size;

	if (!c)
		return 0;
	if (c->language == LANG_RUBY) {
		base_name(c, &name, &size);
		hash = hash_text(TRUTH_SEED, name, size);
	} else {
		/* Lua's functions have the names of their calls. */
		hash = hash_text(TRUTH_SEED ^ c->first_line, c->name, is_lua(c) ? 0 : c->name_size);
	}
	return truth_join(hash, hash_text(TRUTH_SEED, c->file, c->file_size));
}

/* "(eval)", from Ruby 3.3 on "(eval at FILE:LINE)". */
static bool is_eval(const struct code_text *c)
{
	return c->file_size >= 6 && !memcmp(c->file, "(eval", 5);
}

static bool is_name(const struct code_text *c, const char *wanted)
{
	const char *name;
	size_t size;

	base_name(c, &name, &size);
	return size == strlen(wanted) && !memcmp(name, wanted, size);
}

static bool same_function(const struct tool *t, uint64_t place, uint64_t truth)
{
	const struct code_text *c =
		script_functions_at(symbols_codes(t->symbols), lang_place_code(place));
	uint64_t hash = hash_of(t, place);

	/* In Ruby's truth code of eval has the file, and from 3.4 on the name, of its caller. */
	if (c && c->language == LANG_RUBY && is_eval(c))
		return hash >> 32 == truth >> 32 || is_name(c, "<compiled>");
	return hash == truth;
}

/* Does a frame without a line fit the line of the truth? A block's is in its method. */
static bool fits_line(const struct tool *t, uint64_t place, int line)
{
	const struct code_text *c =
		script_functions_at(symbols_codes(t->symbols), lang_place_code(place));

	if (c->language != LANG_RUBY)
		return line < 0 || is_lua(c);
	return (int)c->first_line <= line || is_eval(c);
}

static int by_sample_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* The sample of that signal: the last one of the thread before. */
static struct sample *sample_of(struct tool *t, const struct truth_entry *e)
{
	uint32_t lo = 0, hi = t->nr_samples;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->samples[mid].time_ns <= e->time_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo-- > 0)
		if (t->samples[lo].tid == e->tid)
			return t->samples[lo].used ? NULL : &t->samples[lo];
	return NULL;
}

/* Get the line of a frame, of Python's the instruction; LANG_NO_INSTR: not known. */
static uint32_t instr_of(const struct tool *t, uint64_t place)
{
	const struct code_text *c =
		script_functions_at(symbols_codes(t->symbols), lang_place_code(place));
	uint32_t instr = lang_place_instr(place), line;

	if (!c || c->language != LANG_RUBY || instr == LANG_NO_INSTR)
		return instr;
	line = rubyline_of(c->table, c->table_size, instr);
	return line ? line : LANG_NO_INSTR;
}

/* 0: equal; 1: another function; 2: the same functions, another instruction. */
static int compare(const struct tool *t, const struct sample *s, const struct truth_entry *e)
{
	int differ = 0;

	if (s->nr != e->nr)
		return 1;
	for (uint32_t i = 0; i < s->nr; i++) {
		uint64_t place = t->chains[s->first + i];
		uint32_t instr = instr_of(t, place);

		if (!same_function(t, place, e->hash[i]))
			return 1;
		if (e->instr[i] == TRUTH_ANY_LINE)
			continue;
		if (instr != LANG_NO_INSTR ? (int)instr != e->instr[i]
					   : !fits_line(t, place, e->instr[i]))
			differ = 2;
	}
	return differ;
}

static void show(const struct tool *t, const struct sample *s, const struct truth_entry *e)
{
	fprintf(stderr, "wrong: %u frames, truth %u%s\n", s->nr, e->nr,
		e->entering ? " (entering)" : "");
	for (uint32_t i = 0; i < MAX(s->nr, e->nr) && i < 12; i++) {
		uint64_t place = i < s->nr ? t->chains[s->first + i] : 0;
		const struct code_text *c = i < s->nr
						    ? script_functions_at(symbols_codes(t->symbols),
									  lang_place_code(place))
						    : NULL;

		fprintf(stderr, "  %.*s:%u +%d  %s +%d\n", c ? c->name_size : 1, c ? c->name : "-",
			c ? c->first_line : 0, (int)instr_of(t, place),
			i < e->nr && c && same_function(t, place, e->hash[i]) ? "=" : "differs",
			i < e->nr ? e->instr[i] : 0);
	}
}

static const char *const doubt_names[INTERLEAVE_DOUBTS] = {
	"cut", "unaligned", "entering", "late", "broken", "changed", "untried",
};

static int judge(struct tool *t)
{
	uint32_t nr = MIN(atomic_load(&t->truth->nr), (uint32_t)TRUTH_ENTRIES), matched = 0,
		 entering = 0, elsewhere = 0;
	uint32_t certain[3] = { 0 }, guessed[3] = { 0 }, none[LANG_OK] = { 0 }, nones = 0;
	uint32_t doubts[INTERLEAVE_DOUBTS] = { 0 };

	qsort(t->samples, t->nr_samples, sizeof(*t->samples), by_sample_time);
	for (uint32_t i = 0; i < nr; i++) {
		const struct truth_entry *e = &t->truth->entries[i];
		struct sample *s = e->time_ns && !e->cut ? sample_of(t, e) : NULL;
		int result;

		if (!s)
			continue;
		s->used = true;
		matched++;
		/* The signal of a sample in the handler itself is late: its chain is another one.
		 */
		if (s->pc != e->pc || s->sp != e->sp) {
			elsewhere++;
			continue;
		}
		entering += e->entering;
		result = compare(t, s, e);
		if (s->lang == PIPELINE_LANG_CERTAIN) {
			certain[result]++;
			if (result && certain[1] + certain[2] < 4)
				show(t, s, e);
		} else if (s->lang == PIPELINE_LANG_GUESSED) {
			guessed[result]++;
			for (int k = 0; k < INTERLEAVE_DOUBTS; k++)
				doubts[k] += s->doubts >> k & 1;
		} else {
			none[MIN(s->none, LANG_OK - 1)]++;
			nones++;
		}
	}
	printf("samples %u pending %u signals %u matched %u elsewhere %u certain %u wrong "
	       "%u "
	       "wrong_line %u guessed %u guessed_right %u entering %u none %u",
	       t->nr_samples, t->nr_pending, nr, matched, elsewhere,
	       certain[0] + certain[1] + certain[2], certain[1], certain[2],
	       guessed[0] + guessed[1] + guessed[2], guessed[0] + guessed[2], entering, nones);
	for (int i = 0; i < LANG_OK; i++)
		if (none[i])
			printf(" %s %u", lang_status_name((enum lang_status)i), none[i]);
	for (int i = 0; i < INTERLEAVE_DOUBTS; i++)
		if (doubts[i])
			printf(" %s %u", doubt_names[i], doubts[i]);
	putchar('\n');
	return certain[1] || certain[2];
}

static void print_chain(const struct tool *t, const struct sample *s)
{
	fputs(s->lang == PIPELINE_LANG_CERTAIN	 ? "certain"
	      : s->lang == PIPELINE_LANG_GUESSED ? "guessed"
	      : s->lang == PIPELINE_LANG_NO	 ? "unknown"
						 : lang_status_name(s->none),
	      stdout);
	for (uint32_t i = s->lang == PIPELINE_LANG_NONE ? 0 : s->nr; i-- > 0;) {
		uint64_t place = t->chains[s->first + i];
		const struct code_text *c =
			script_functions_at(symbols_codes(t->symbols), lang_place_code(place));

		printf(" %.*s", c ? c->name_size : 1, c ? c->name : "?");
		if (lang_place_instr(place) == LANG_INLINED)
			putchar('*');
		else if (lang_place_instr(place) != LANG_NO_INSTR)
			printf(":%u", lang_place_instr(place));
	}
	putchar('\n');
}

static int print_chains(struct tool *t)
{
	for (uint32_t i = 0; i < t->nr_samples; i++)
		print_chain(t, &t->samples[i]);
	return 0;
}

/* ---- Java: chains as text, one method a line, innermost first ---- */

#define JAVA_TEXT_MAX (64U << 10)

struct method {
	uint64_t id;
	char *name;
};

static struct method *methods;
static size_t nr_methods, max_methods;
static struct java_scopes scopes;

static int by_id(const void *a, const void *b)
{
	const struct method *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Read "ID NAME" lines. */
static void read_methods(const char *file)
{
	char path[4096], line[4096], name[2048];
	unsigned long id;
	FILE *f;

	snprintf(path, sizeof(path), "%s.names", file);
	f = fopen(path, "r");
	if (!f)
		die(path, -errno);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %2047s", &id, name) != 2)
			continue;
		if (nr_methods == max_methods) {
			max_methods = 2 * max_methods + 4096;
			methods = xrealloc_array(methods, max_methods, sizeof(*methods));
		}
		methods[nr_methods++] = (struct method){ id, strdup(name) };
	}
	fclose(f);
	if (nr_methods)
		qsort(methods, nr_methods, sizeof(*methods), by_id);
	snprintf(path, sizeof(path), "%s.scopes", file);
	if (!java_scopes_read(&scopes, path))
		die(path, -errno);
}

/* Return the bytes of "/1234" at @name: JVMTI of Java 11 has a hash behind classes without a file.
 */
static size_t hash_at(const char *name)
{
	size_t nr = *name == '/' || *name == '.' ? strspn(name + 1, "0123456789") : 0;

	return nr && (name[nr + 1] == '.' || !name[nr + 1]) ? nr + 1 : 0;
}

/* Add a line. Names of classes without a file are written in several ways. */
static void add_name(char *out, size_t *used, const char *name)
{
	for (name += hash_at(name); *name && *used + 2 < JAVA_TEXT_MAX;
	     name++, name += hash_at(name))
		out[(*used)++] = *name == '/' || *name == '+' ? '.' : *name;
	if (*used + 2 < JAVA_TEXT_MAX)
		out[(*used)++] = '\n';
	out[*used] = '\0';
}

/* Write the names of @ids as lines. */
static void write_methods(const uint64_t *ids, uint32_t nr, char *out)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < nr; i++) {
		const struct method key = { .id = ids[i] };
		const struct method *m =
			nr_methods ? bsearch(&key, methods, nr_methods, sizeof(key), by_id) : NULL;

		add_name(out, &used, m ? m->name : "?");
	}
}

static void add_symbol(const struct tool *t, uint32_t id, char *out, size_t *used)
{
	const struct symbol *s = symbols_at(t->symbols, id);

	/* Stubs and adapters have no class. */
	if (s && s->kind == LANG_JAVA && strchr(s->name.str, '.'))
		add_name(out, used, s->name.str);
}

/* False: a name is not read yet. */
static bool our_text(const struct tool *t, const struct sample *s, char *out)
{
	size_t used = 0;
	bool all = true;

	out[0] = '\0';
	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t place = (uint32_t)t->chains[s->first + i], nr = 0;
		const struct symbol_frame *f = symbols_source(t->symbols, place, &nr);
		const struct place *p = places_at(t->places, place);
		uint32_t id = atomic_load(&p->symbol);

		all &= id != SYMBOL_NONE;
		for (uint32_t k = 0; k + 1 < nr; k++)
			add_symbol(t, f[k].symbol, out, &used);
		add_symbol(t, id, out, &used);
	}
	return all;
}

static const char *next_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end ? end + 1 : text;
}

/* 0: equal; 1: equal but for the innermost one, which one of them may lack; 2: they differ. */
static int compare_texts(const char *ours, const char *theirs)
{
	if (!strcmp(ours, theirs))
		return 0;
	if (!strcmp(next_line(ours), theirs) || !strcmp(ours, next_line(theirs)) ||
	    !strcmp(next_line(ours), next_line(theirs)))
		return 1;
	return 2;
}

/*
 * The return address of the innermost Java frame of @s, if it calls a stub of the runtime; 0: it
 * does not. AsyncGetCallTrace() takes the description behind such calls.
 */
static uint64_t runtime_call(const struct tool *t, const struct sample *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct place *p = places_at(t->places, (uint32_t)t->chains[s->first + i]);
		const struct symbol *y = symbols_at(t->symbols, atomic_load(&p->symbol));

		if (y && y->kind == LANG_JAVA && strchr(y->name.str, '.'))
			return i ? p->offset + 1 : 0;
	}
	return 0;
}

/* Is @ours @head, and behind it a part of @theirs that follows the last method of @head? */
static bool is_joined(const char *ours, const char *head, const char *theirs)
{
	size_t size = strlen(head), last = 0;

	if (strncmp(ours, head, size) != 0)
		return false;
	for (const char *at = head; *at; at = next_line(at))
		last = strlen(at);
	for (; *theirs; theirs = next_line(theirs))
		if (!strncmp(theirs, head + size - last, last) &&
		    !strcmp(theirs + last, ours + size))
			return true;
	return false;
}

/* Does @ours have the methods that the JVM described at the call, and behind them callers of
 * @theirs? */
static bool equal_at_call(const struct tool *t, const struct sample *s, const char *ours,
			  const char *theirs)
{
	static char head[JAVA_TEXT_MAX];
	uint64_t pc = runtime_call(t, s);

	for (size_t i = pc ? java_scopes_at(&scopes, pc) : scopes.nr;
	     i < scopes.nr && scopes.scopes[i].pc == pc; i++) {
		write_methods(scopes.ids + scopes.scopes[i].first, scopes.scopes[i].nr, head);
		if (is_joined(ours, head, theirs))
			return true;
	}
	return false;
}

/*
 * Does @theirs only lack inner frames of @ours, in native code? Compiled code calls C functions
 * without a note for the JVM; AsyncGetCallTrace() then follows frame pointers, which they lack.
 */
static bool lacks_inner(const struct tool *t, const struct sample *s, const char *ours,
			const char *theirs)
{
	const struct place *p = places_at(t->places, (uint32_t)t->chains[s->first]);
	size_t size = strlen(ours), least = strlen(theirs);

	return p && objects_at(t->objects, p->object)->identity.kind != OBJECT_ANON &&
	       least < size && !strcmp(ours + size - least, theirs);
}

/* Does the JVM's chain end where threads begin? AsyncGetCallTrace() also cuts chains. */
static bool has_root(const char *text)
{
	const char *last = text;

	while (*next_line(last))
		last = next_line(last);
	return strstr(last, ".main\n") || (strstr(last, ".run\n") && !strchr(last, '$'));
}

struct java_result {
	uint32_t matched, elsewhere, failed, skipped, cut, unread, at_call;
	uint32_t by_sure[2][3]; /* native frames exact to the root; compare_texts() */
};

/* Print the frames of a sample with their native ones. */
static void show_frames(const struct tool *t, const struct sample *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct place *p = places_at(t->places, (uint32_t)t->chains[s->first + i]);
		const struct symbol *y = symbols_at(t->symbols, atomic_load(&p->symbol));

		fprintf(stderr, "  # %u+%lx %s\n", p->object, (unsigned long)p->offset,
			y ? y->name.str : "?");
	}
}

static void judge_entry(struct tool *t, const struct truth_entry *e, struct java_result *r)
{
	static char ours[JAVA_TEXT_MAX], theirs[JAVA_TEXT_MAX];
	struct sample *s = e->time_ns && !e->cut ? sample_of(t, e) : NULL;
	bool sure, read;
	int differ;

	if (!s)
		return;
	s->used = true;
	r->matched++;
	if (s->pc != e->pc || s->sp != e->sp) {
		r->elsewhere++;
		return;
	}
	write_methods(e->hash, e->nr, theirs);
	if (!e->nr || !has_root(theirs)) {
		r->failed++;
		return;
	}
	sure = s->stop == UNWIND_COMPLETE && !s->nr_guessed;
	r->cut += s->stop != UNWIND_COMPLETE;
	read = our_text(t, s, ours);
	r->unread += !read;
	differ = compare_texts(ours, theirs);
	if (differ && equal_at_call(t, s, ours, theirs)) {
		r->at_call++;
		differ = 0;
	}
	if (differ == 2 && lacks_inner(t, s, ours, theirs)) {
		r->skipped++;
		return;
	}
	sure &= read || !differ;
	r->by_sure[sure][differ]++;
	if (!differ || (!sure && !getenv("ALL")) || r->by_sure[sure][1] + r->by_sure[sure][2] >= 8)
		return;
	fprintf(stderr, "%s%s, %s, pc %lx:\n%s--- truth:\n%s\n", sure ? "sure" : "guessed",
		differ == 1 ? ", edge" : "", unwind_stop_name(s->stop), (unsigned long)s->pc, ours,
		theirs);
	show_frames(t, s);
}

static int judge_java(struct tool *t)
{
	uint32_t nr = MIN(atomic_load(&t->truth->nr), (uint32_t)TRUTH_ENTRIES);
	struct java_result r = { 0 };
	const uint32_t *sure = r.by_sure[1], *guess = r.by_sure[0];

	qsort(t->samples, t->nr_samples, sizeof(*t->samples), by_sample_time);
	for (uint32_t i = 0; i < nr; i++)
		judge_entry(t, &t->truth->entries[i], &r);
	printf("samples %u pending %u signals %u matched %u elsewhere %u failed %u skipped %u cut "
	       "%u "
	       "unread %u at_call %u certain %u wrong %u wrong_edge %u guessed %u guessed_right %u "
	       "guessed_edge %u\n",
	       t->nr_samples, t->nr_pending, nr, r.matched, r.elsewhere, r.failed, r.skipped, r.cut,
	       r.unread, r.at_call, sure[0] + sure[1] + sure[2], sure[2], sure[1],
	       guess[0] + guess[1] + guess[2], guess[0], guess[1]);
	return sure[2] != 0;
}

/* Return the CPU time of @pid; UINT64_MAX once it has ended. */
static uint64_t cpu_time_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return UINT64_MAX;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct tool t;
	uint64_t end_ns, give_up_ns;
	pid_t pid;
	int fd;

	if (argc < 5)
		return 2;
	pid = (pid_t)atoi(argv[1]);
	if (strcmp(argv[2], "-") != 0) {
		fd = open(argv[2], O_RDWR);
		t.truth = fd < 0 ? MAP_FAILED
				 : mmap(NULL, sizeof(*t.truth), PROT_READ, MAP_SHARED, fd, 0);
		if (t.truth == MAP_FAILED)
			die(argv[2], -errno);
	}
	t.java = argc > 5 && !strcmp(argv[5], "java");
	t.samples = xcalloc(SAMPLES, sizeof(*t.samples));
	rcu_register_thread();
	open_all(&t, pid, atof(argv[4]));
	start_all(&t, pid);
	end_ns = cpu_time_ns(pid) + (uint64_t)(atof(argv[3]) * 1e9);
	give_up_ns = time_now_ns() + (uint64_t)((atof(argv[3]) + PATIENCE) * 1e9);
	while (cpu_time_ns(pid) < end_ns && time_now_ns() < give_up_ns) {
		rcu_thread_offline();
		usleep(20000);
		rcu_thread_online();
		for (uint32_t i = 0; i < counters_nr_cpus(t.counters); i++)
			take(&t, i);
	}
	counters_enable(t.counters, false);
	if (t.java) {
		sleep(2); /* names that are being read */
		read_methods(argv[2]);
		_exit(judge_java(&t) | fflush(stdout));
	}
	_exit((t.truth ? judge(&t) : print_chains(&t)) | fflush(stdout));
}
