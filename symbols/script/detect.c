// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a file to the interpreter that it is: names of files and symbols, the job that describes a
 * process, the worker's side and the messages.
 *
 * Any thread; pure.
 *
 * Interpreters by the names of their files, and the symbols that they have.
 *
 * Any thread; pure.
 */
#include "symbols/script/internal.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"

struct detect_names {
	const char *program, *library;			  /* how files begin */
	const char *shown;				  /* a function that other files show */
	const char *runtime, *code_type, *version, *eval; /* symbols; NULL: none */
};

/* Return the minor version in "python3.11" or "libpython3.11.so.1.0"; -1: it is neither. */
static int detect_python_minor(const char *name)
{
	static const char *const begins[] = { "libpython3.", "python3." };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		size_t size = strlen(begins[i]);
		char *end;
		long minor;

		if (strncmp(name, begins[i], size) != 0 || name[size] < '0' || name[size] > '9')
			continue;
		minor = strtol(name + size, &end, 10);
		return minor < 256 && (!*end || strchr(".dt- ", *end)) ? (int)minor : -1;
	}
	return -1;
}

/* Symbols of interpreters, by the names of their files. */
static const struct detect_names all[LANG_NR] = {
	[LANG_PYTHON] = { "python", "libpython", "_PyEval_EvalFrameDefault", "_PyRuntime",
			  "PyCode_Type", "Py_Version", "_PyEval_EvalFrameDefault" },
	[LANG_PHP] = { "php", "libphp", "execute_ex", "executor_globals", NULL, NULL,
		       "execute_ex" },
	[LANG_RUBY] = { "ruby", "libruby", "ruby_run_node", "ruby_current_vm_ptr", NULL,
			"ruby_version", "rb_vm_exec" },
	[LANG_PERL] = { "perl", "libperl", "Perl_runops_standard", "PL_curinterp", NULL,
			"PL_interp_size", "Perl_runops_standard" },
	[LANG_NODE] = { "node", "libnode", "_ZN4node5StartEiPPc", NULL, NULL, NULL,
			NULL }, /* detect_v8.h */
};

static const struct detect_ruby rubies[] = {
#define RUBY_FIELD(name, member)
#define RUBY_LAYOUT(major, minor, patch, compared, ...)                                            \
	{ (major) << 24 | (minor) << 16 | (patch) << 8, compared, { __VA_ARGS__ } },
#include "symbols/script/ruby_layouts.inc"
#undef RUBY_FIELD
#undef RUBY_LAYOUT
};

const struct detect_ruby *detect_ruby(uint32_t version)
{
	const struct detect_ruby *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rubies); i++)
		if (rubies[i].version <= version && rubies[i].version >> 16 == version >> 16)
			found = &rubies[i];
	return found;
}

static const struct detect_php phps[] = {
#define PHP_FIELD(name, member)
#define PHP_LAYOUT(api, major, minor, compared, ...)                                               \
	{ api, (major) << 24 | (minor) << 16, compared, { __VA_ARGS__ } },
#include "symbols/script/php_layouts.inc"
#undef PHP_FIELD
#undef PHP_LAYOUT
};

const struct detect_php *detect_php(size_t i)
{
	return i < ARRAY_SIZE(phps) ? &phps[i] : NULL;
}

/* "php", "php8.2", "php-fpm8.2", "libphp.so"; not "phpize". */
static bool begins_with(const char *name, const char *word)
{
	size_t size = strlen(word);

	return !strncmp(name, word, size) && (!name[size] || strchr(".-0123456789", name[size]));
}

/* Return the language of files of this name; LANG_NONE. */
static enum lang_kind detect_names_find(const char *name)
{
	if (detect_python_minor(name) >= 0)
		return LANG_PYTHON;
	for (int i = LANG_PYTHON + 1; i < LANG_NR; i++)
		if (begins_with(name, all[i].program) || begins_with(name, all[i].library))
			return (enum lang_kind)i;
	return LANG_NONE;
}

static const struct detect_names *detect_names(enum lang_kind kind)
{
	return &all[kind];
}

/*
 * Recognise and describe interpreters.
 *
 * Runs on: a helper. A job uses nothing but its struct, so that a hanging one
 * (file system, userfaultfd) can be abandoned.
 */

/* struct interpreter of 5.36 to 5.42, and of 5.44, with threads: what is read of them is the same.
 */
#define PERL_INTERP_SIZE 3768

#define PERL_INTERP_SIZE_44 3776

/* Outermost frames of Ruby of which one has a function, not C code. */
#define RUBY_PROOF_FRAMES 16U

/* Tries until a process without frames of its language has another reason than its age: 6 s. */
#define DETECT_TRIES 30U

enum lang_kind detect_kind(const struct object *object)
{
	uint32_t loop = atomic_load_explicit(&object->loop, memory_order_relaxed);
	const char *symbol = elfloop_symbol((uint8_t)loop);
	enum lang_kind kind = detect_names_find(object->name.str);

	if (symbol && !strcmp(symbol, ELFLOOP_GO))
		return LANG_GO;

	for (int i = LANG_PYTHON; i < LANG_NR && symbol && kind == LANG_NONE; i++)
		if (!strcmp(symbol, detect_names((enum lang_kind)i)->shown))
			kind = (enum lang_kind)i;
	return kind;
}

static bool read_memory(pid_t pid, uint64_t addr, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/*
 * Set the user, and whether it is in another pid namespace than ours: then it knows its threads by
 * other ids.
 */
static void read_status(pid_t pid, struct lang_process *p)
{
	char *text;
	size_t size;
	const char *line;

	p->user = UINT32_MAX;
	if (untrusted_read_proc(pid, "status", 64 << 10, &text, &size))
		return;
	line = strstr(text, "\nUid:");
	if (line)
		p->user = (uint32_t)strtoul(line + 5, NULL, 10);
	line = strstr(text, "\nNSpid:");
	if (line) {
		char *end;

		/* "NSpid:\t4711\t12": more than one number. */
		strtol(line + 7, &end, 10);
		p->nested = *end == '\t';
	}
	free(text);
}

/* Return whether the process executes a program with such a name, not one that embeds it. */
static bool runs_program(pid_t pid, const char *name)
{
	char link[32], path[PATH_MAX];
	ssize_t size;
	const char *slash;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	size = readlink(link, path, sizeof(path) - 1);
	if (size < 0)
		return false;
	path[size] = 0;
	slash = strrchr(path, '/');
	return begins_with(slash ? slash + 1 : path, name);
}

/* Set the reason by errno. */
static void set_unreadable(struct lang_process *p)
{
	p->refused = errno == EPERM || errno == EACCES;
	p->reason = p->refused ? "no permission to read its memory" : "its memory cannot be read";
}

/* Set CPython's version and layout, checked against the memory of the process. */
static void set_python_version(struct lang_process *p, const struct detect_file *d, uint64_t bias,
			       pid_t pid)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS];
	const struct py_layout *layout;
	uint32_t version;

	if (!read_memory(pid, p->runtime, words, sizeof(words))) {
		set_unreadable(p);
		return;
	}
	if (d->version_at) {
		if (read_memory(pid, d->version_at + bias, &version, sizeof(version)) &&
		    (!d->version || version >> 16 == d->version >> 16))
			p->version = version;
		else
			p->reason = "it says another version than its file's name";
	}
	layout = pylayout_of(p->version);
	if (!layout) {
		p->reason = "not supported (3.8 to 3.15 are)";
		return;
	}
	p->py = *layout;
	if (layout->minor >= 13 && !p->reason)
		p->reason = pylayout_debug(&p->py, words);
}

/* Return a word of the process; 0: it cannot be read. */
static uint64_t read_process_word(pid_t pid, uint64_t addr)
{
	uint64_t word;

	return lang_memory_is_pointer(addr) && read_memory(pid, addr, &word, 8) ? word : 0;
}

/* Return the address of the first instruction of the function in a frame; 0: it has none. */
static uint64_t ruby_frame_code(pid_t pid, const struct ruby_layout *l, uint64_t frame)
{
	uint64_t iseq = read_process_word(pid, frame + l->frame_iseq), body, code, pc, size;

	if ((read_process_word(pid, iseq) & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
		return 0;
	body = read_process_word(pid, iseq + l->iseq_body);
	/* A word of two numbers. */
	size = read_process_word(pid, (body + l->body_words) & ~7ULL);
	size = l->body_words & 4 ? size >> 32 : size & UINT32_MAX;
	code = read_process_word(pid, body + l->body_code);
	pc = read_process_word(pid, frame + l->frame_pc);
	return code && pc - code <= 8 * size ? read_process_word(pid, code) : 0;
}

/*
 * Prove a layout on the main thread of the first ractor: its pointers lead back to it. Return an
 * instruction of its frames, an address in the loop; 0: it does not fit.
 */
static uint64_t ruby_prove(pid_t pid, const struct ruby_layout *l, uint64_t vm)
{
	uint64_t ractor = read_process_word(pid, vm + l->ractors) - l->ractor_node;
	uint64_t th = read_process_word(pid, ractor + l->ractor_threads) - l->thread_node;
	uint64_t ec = read_process_word(pid, th + l->thread_ec), cfp, end, found = 0;

	if (read_process_word(pid, th + l->thread_vm) != vm ||
	    read_process_word(pid, ec + l->ec_thread) != th)
		return 0;
	cfp = read_process_word(pid, ec + l->ec_cfp);
	end = read_process_word(pid, ec + l->ec_stack) +
	      8 * read_process_word(pid, ec + l->ec_stack_words);
	if (cfp > end || (end - cfp) % l->frame_size)
		return 0;
	/* The outermost frames: they stay while the process runs. */
	for (uint64_t i = 1; i <= RUBY_PROOF_FRAMES && i * l->frame_size <= end - cfp && !found;
	     i++)
		found = ruby_frame_code(pid, l, end - i * l->frame_size);
	return found;
}

/* Prove a layout; exported functions may have the address of the VM, or that of its pointer. */
static bool ruby_fits(struct lang_process *p, const struct detect_file *d, pid_t pid,
		      const struct ruby_layout *l)
{
	uint64_t at = d->runtime + d->bias;

	for (int i = 0; i < 2; i++, at = read_process_word(pid, at)) {
		uint64_t vm = read_process_word(pid, at);

		p->code_type = vm ? ruby_prove(pid, l, vm) : 0;
		if (!p->code_type)
			continue;
		p->runtime = at;
		p->ruby = *l;
		return true;
	}
	return false;
}

/* Set Ruby's version, "3.3.8", and its layout. False: the process may have no frames yet. */
static bool set_ruby(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const struct detect_ruby *row;
	char said[16], *end;

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + d->bias, said, sizeof(said))) {
		set_unreadable(p);
		return true;
	}
	said[sizeof(said) - 1] = 0;
	p->version = (uint32_t)(strtoul(said, &end, 10) & 255) << 24;
	p->version |= (uint32_t)(strtoul(end + (*end == '.'), &end, 10) & 255) << 16;
	p->version |= (uint32_t)(strtoul(end + (*end == '.'), NULL, 10) & 255) << 8;
	row = detect_ruby(p->version);
	if (!row)
		p->reason = "not supported (3.1 to 4.0 are)";
	else if (!d->runtime)
		p->reason = "the VM of this build is not found";
	else if (!ruby_fits(p, d, pid, &row->layout)) {
		p->reason = "structures of this build differ from its version";
		return false;
	} else {
		p->untried |= !row->compared;
	}
	return true;
}

/* Check Perl's layout: the size of its interpreter differs by version and options. */
static void set_perl_version(struct lang_process *p, const struct detect_file *d, uint64_t bias,
			     pid_t pid)
{
	uint16_t size;

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + bias, &size, sizeof(size)))
		set_unreadable(p);
	else if (size != PERL_INTERP_SIZE && size != PERL_INTERP_SIZE_44)
		p->reason = "this version or build is not supported (5.36 to 5.44 with threads "
			    "are)";
}

/* V8's layout is that of its file. */
static void set_v8(struct lang_process *p, const struct detect_file *f)
{
	p->v8 = f->v8;
	p->version = f->v8_version;
	p->reason = v8layout_complete(&p->v8, f->v8_version, &p->untried);
	if (!p->reason && !f->blob_size)
		p->reason = "its builtins cannot be found";
	p->code_offset = f->blob_offset;
	p->code_size = f->blob_size;
}

/* PHP's layout is that of its version. */
static void set_php(struct lang_process *p, const struct detect_file *d)
{
	const struct detect_php *row = d->php ? detect_php(d->php - 1) : NULL;

	if (!row) {
		p->reason = "not supported (8.1 to 8.6 without threads are)";
		return;
	}
	p->php = row->layout;
	p->untried |= !row->compared;
}

static void set_version(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	p->version = d->version;
	if (p->kind == LANG_PYTHON)
		set_python_version(p, d, d->bias, pid);
	else if (p->kind == LANG_PERL)
		set_perl_version(p, d, d->bias, pid);
	else if (p->kind == LANG_NODE)
		set_v8(p, d);
	else if (p->kind == LANG_PHP)
		set_php(p, d);
}

static void set_ranges(struct lang_range *out, const struct lang_range *in, uint32_t nr,
		       uint64_t bias)
{
	for (uint32_t i = 0; i < nr; i++)
		out[i] = (struct lang_range){ in[i].start + bias, in[i].end + bias };
}

static int detect_process(struct detect *job, const struct detect_file *d)
{
	struct lang_process *p;

	job->desc = calloc(1, sizeof(*job->desc));
	if (!job->desc)
		return -ENOMEM;
	atomic_init(&job->desc->refs, 1);
	p = &job->desc->info;
	p->kind = (enum lang_kind)d->kind;
	p->runtime = d->runtime + d->bias;
	p->code_type = d->code_type + d->bias;
	p->nr_eval = d->nr_eval;
	p->nr_main = d->nr_main;
	set_ranges(p->eval, d->eval, d->nr_eval, d->bias);
	set_ranges(p->main, d->main, d->nr_main, d->bias);
	p->program = p->kind != LANG_GO &&
		     runs_program(job->where.pid, detect_names(p->kind)->program);
	read_status(job->where.pid, p);
	set_version(p, d, job->where.pid);
	p->untried |= d->machine != EM_X86_64;
	if (p->kind != LANG_RUBY || set_ruby(p, d, job->where.pid) || ++job->tries == DETECT_TRIES)
		return 0;
	lang_desc_put(job->desc);
	job->desc = NULL;
	return -EAGAIN;
}

static atomic_ullong last_serial; /* relaxed */

/* Check an answer and copy it to @out. False: invalid; the reader may have been taken over. */
static bool take_file(struct detect_file *out, const struct sandbox_answer *a, enum lang_kind kind)
{
	if (a->size != ELF_SANDBOX_ANSWER + sizeof(*out))
		return false;
	memcpy(out, a->bytes + ELF_SANDBOX_ANSWER, sizeof(*out));
	return out->kind == (uint32_t)kind && out->nr_eval <= LANG_EVAL_MAX &&
	       out->nr_main <= LANG_MAIN_MAX;
}

/* Have the file read in the sandbox; @code: as in the request. 0 or -errno. */
static int read_file(struct detect *d, const struct untrusted_file *opened, uint64_t code,
		     struct detect_file *out)
{
	const struct detect_where *w = &d->where;
	struct detect_request r = {
		.serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1,
		.start = w->start,
		.offset = w->offset,
		.code = code,
		.kind = (uint32_t)w->kind,
	};
	struct elf_sandbox *c = elf_sandbox_new();
	struct sandbox_answer a;
	int rc = c ? 0 : -ENOMEM;

	/* Without a reader of the language: not published, whatever the worker says. */
	if (w->kind == LANG_NONE)
		rc = -ENOENT;
	memcpy(r.name, w->name, sizeof(r.name));
	if (!rc) {
		c->watch = &d->job.watch;
		rc = elf_sandbox_open(c, 0, opened->fd, opened->size);
	}
	atomic_store_explicit(&d->asks, true, memory_order_relaxed);
	if (!rc)
		rc = elf_sandbox_ask(c, &detect_reader, &r, sizeof(r), &a);
	atomic_store_explicit(&d->asks, false, memory_order_relaxed);
	if (!rc) {
		rc = take_file(out, &a, w->kind) ? 0 : elf_sandbox_refuse(c);
		sandbox_answer_free(&a);
	}
	if (c)
		elf_sandbox_free(c);
	return rc;
}

/* Find the loop of a stripped interpreter by an address in it, which the process has. */
static int find_loop(struct detect *d, const struct untrusted_file *opened,
		     struct detect_file *file)
{
	struct lang_process *p = &d->desc->info;
	int rc = read_file(d, opened, p->code_type - file->bias, file);

	if (rc)
		return rc;
	p->nr_eval = file->nr_eval;
	set_ranges(p->eval, file->eval, file->nr_eval, file->bias);
	if (!p->nr_eval)
		p->reason = "the loop of this build has no unwind table";
	return 0;
}

static int detect_run(struct detect *d)
{
	const struct detect_where *w = &d->where;
	const struct untrusted_want want = {
		.pid = w->pid,
		.start = w->start,
		.end = w->end,
		.path = w->path,
		.maj = w->maj,
		.min = w->min,
		.ino = w->ino,
	};
	struct detect_file file;
	struct untrusted_file opened;
	int rc = untrusted_open(&want, &opened, NULL);

	if (rc)
		return rc;
	rc = read_file(d, &opened, 0, &file);
	if (!rc)
		rc = detect_process(d, &file);
	if (!rc && d->desc->info.kind == LANG_RUBY && !d->desc->info.reason && !file.nr_eval)
		rc = find_loop(d, &opened, &file);
	close(opened.fd);
	return rc;
}

static void run(struct job *job)
{
	struct detect *d = (struct detect *)job;

	d->rc = detect_run(d);
}

static void drop(struct job *job)
{
	struct detect *d = (struct detect *)job;

	lang_desc_put(d->desc);
	free(d->where.path);
	free(d);
}

struct detect *detect_new(const struct detect_where *where)
{
	struct detect *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->job.run = run;
	d->job.drop = drop;
	d->where = *where;
	return d;
}

/*
 * Find the symbols of an interpreter in its file.
 *
 * Runs in the worker, or in the thread of the call.
 */

#define SYMBOLS_MAX (1U << 20)
#define RODATA_MAX  (32U << 20)
/* Bytes of a function of Ruby in which its first address is. */
#define RUBY_DECODE_SIZE 32U

/* A file that is looked through. */
struct search {
	struct detect_file *out;
	struct v8_symbols symbols; /* of LANG_NODE */
	uint32_t python;	   /* version before 3.11, by its functions; 0: unknown */
	uint64_t in_gc;		   /* rb_during_gc() of Ruby, which begins with its VM */
	uint64_t code;		   /* as in the request */
};

static void add_eval(struct detect_file *d, uint64_t start, uint64_t size, bool first)
{
	for (uint32_t i = 0; i < d->nr_eval; i++)
		if (d->eval[i].start == start)
			return;
	if (!size || d->nr_eval == LANG_EVAL_MAX || start + size < start)
		return;
	/* The function itself first, then its parts. */
	if (first)
		memmove(d->eval + 1, d->eval, d->nr_eval * sizeof(d->eval[0]));
	d->eval[first ? 0 : d->nr_eval] = (struct lang_range){ start, start + size };
	d->nr_eval++;
}

/*
 * Add a function that runs Perl's main program. Perl compiles it, and runs its BEGIN and END
 * blocks, outside of any loop: its frame belongs to these functions then.
 */
static void add_main(struct detect_file *d, const Elf64_Sym *s, const char *name)
{
	static const char *const names[LANG_MAIN_MAX] = {
		"perl_run", "perl_parse", "perl_destruct", [LANG_MAIN_EVAL] = "Perl_eval_sv"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		if (i && i != LANG_MAIN_EVAL)
			add_eval(d, s->st_value, s->st_size, false);
		d->main[i] = (struct lang_range){ s->st_value, s->st_value + s->st_size };
		d->nr_main = LANG_MAIN_MAX;
	}
}

/* Note the version of CPython that has a function of this name: 3.8 to 3.10 have no Py_Version. */
static void note_python(struct search *search, const char *name)
{
	static const struct {
		const char *name;
		uint32_t minor;
	} since[] = {
		{ "PyCode_NewWithPosOnlyArgs", 8 },
		{ "PyObject_GC_IsTracked", 9 },
		{ "Py_NewRef", 10 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(since); i++)
		if (!strcmp(name, since[i].name))
			search->python = MAX(search->python, 3U << 24 | since[i].minor << 16);
}

static void on_symbol(struct search *search, const Elf64_Sym *s, const char *name)
{
	struct detect_file *d = search->out;
	const struct detect_names *r = detect_names((enum lang_kind)d->kind);
	size_t eval = r->eval ? strlen(r->eval) : 0;

	if (!s->st_value || s->st_shndx == SHN_UNDEF)
		return;
	if (d->kind == LANG_NODE)
		detect_v8_symbol(&search->symbols, name, s->st_value, s->st_size);
	else if (!strcmp(name, r->runtime))
		d->runtime = s->st_value;
	else if (r->code_type && !strcmp(name, r->code_type))
		d->code_type = s->st_value;
	else if (r->version && !strcmp(name, r->version))
		d->version_at = s->st_value;
	else if (!strncmp(name, r->eval, eval) && (!name[eval] || name[eval] == '.'))
		add_eval(d, s->st_value, s->st_size, !name[eval]);
	else if (d->kind == LANG_PERL)
		add_main(d, s, name);
	else if (d->kind == LANG_PYTHON)
		note_python(search, name);
	else if (d->kind == LANG_RUBY && !strcmp(name, "rb_during_gc"))
		search->in_gc = s->st_value;
}

/*
 * Return the address that code at @vaddr of x86-64 takes first: "lea X(%rip), reg", or the same
 * mov. Before it are parts of a prologue.
 */
static uint64_t first_address_x86(const uint8_t code[static RUBY_DECODE_SIZE], uint64_t vaddr)
{
	static const struct {
		uint8_t size, bytes[4];
	} prologue[] = {
		{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
		{ 1, { 0x55 } },		   /* push %rbp */
		{ 3, { 0x48, 0x89, 0xe5 } },	   /* mov %rsp, %rbp */
		{ 3, { 0x48, 0x83, 0xec } },	   /* sub $N, %rsp; its N is the next byte */
	};
	uint32_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(prologue); i++)
		if (!memcmp(code + at, prologue[i].bytes, prologue[i].size))
			at += prologue[i].size + (i == 3 ? 1U : 0U);
	/* REX.W, lea or mov, relative to the next instruction. */
	if ((code[at] & 0xfb) != 0x48 || (code[at + 1] != 0x8d && code[at + 1] != 0x8b) ||
	    (code[at + 2] & 0xc7) != 0x05)
		return 0;
	return vaddr + at + 7 + (uint64_t)(int32_t)bytes_u32(code + at + 3);
}

/* The same of AArch64: adrp, then an add of the rest, or a load with it as its offset. */
static uint64_t first_address_arm(const uint8_t code[static RUBY_DECODE_SIZE], uint64_t vaddr)
{
	uint64_t page = 0;
	uint32_t reg = 32;

	for (uint32_t at = 0; at + 4 <= RUBY_DECODE_SIZE; at += 4) {
		uint32_t insn = bytes_u32(code + at);

		if ((insn & 0x9f000000) == 0x90000000) {
			uint32_t pages = (insn >> 29 & 3) | (insn >> 5 & 0x7ffff) << 2;

			page = ((vaddr + at) & ~0xfffULL) +
			       ((uint64_t)(int64_t)(int32_t)(pages << 11) << 1);
			reg = insn & 31;
		} else if ((insn >> 5 & 31) == reg && (insn & 0xffc00000) == 0x91000000) {
			return page + (insn >> 10 & 0xfff);
		} else if ((insn >> 5 & 31) == reg && (insn & 0xffc00000) == 0xf9400000) {
			return page + 8 * (insn >> 10 & 0xfff);
		}
	}
	return 0;
}

/*
 * Ruby from 3.3 on exports no address of its VM. rb_during_gc(), which it exports, begins with it,
 * or with that of a pointer to it.
 */
static void find_ruby_vm(struct search *search, const struct elffile *f)
{
	uint8_t code[RUBY_DECODE_SIZE];

	if (search->out->runtime || !search->in_gc ||
	    !elffile_read_at(f, search->in_gc, code, sizeof(code)))
		return;
	search->out->runtime = f->machine == EM_X86_64	  ? first_address_x86(code, search->in_gc)
			       : f->machine == EM_AARCH64 ? first_address_arm(code, search->in_gc)
							  : 0;
}

/*
 * Take the cold parts of the loop from the image of a stripped file, which finds them; a loop
 * without a symbol is the function with an unwind table that @code is in.
 */
static void add_parts(struct detect_file *d, const struct elffile *f, uint64_t code)
{
	const char *eval = detect_names((enum lang_kind)d->kind)->eval;
	size_t size = strlen(eval);
	struct ehframe_fde fde;
	struct image *image;

	if ((d->nr_eval ? elffile_section_of_type(f, SHT_SYMTAB) != NULL : !code) ||
	    image_build(&image, &(struct image_parts){ .file = f }) || !image)
		return;
	if (!d->nr_eval && ehframe_find(&image->eh, code, &fde))
		add_eval(d, fde.start, fde.size, true);
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image->names + s->name;

		if (!strncmp(name, eval, size) && name[size] == '.')
			add_eval(d, s->vaddr, s->size, false);
	}
	image_free(image);
}

/* Look through the symbols of one table. */
static void read_symbols(struct search *search, const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type), *strings;
	void *symbols = NULL, *names = NULL;
	size_t nr;

	if (!s || s->sh_link >= f->nr_shdrs || s->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return;
	strings = &f->shdrs[s->sh_link];
	if (strings->sh_type != SHT_STRTAB || strings->sh_size > 64U << 20)
		return;
	/* Both are missed in one call, and nothing is read without the other. */
	if (elffile_expect(f, s->sh_offset, s->sh_size) |
	    elffile_expect(f, strings->sh_offset, strings->sh_size))
		return;
	if (elffile_read_alloc(f, s->sh_offset, s->sh_size, &symbols))
		return;
	if (elffile_read_alloc(f, strings->sh_offset, strings->sh_size, &names)) {
		free(symbols);
		return;
	}
	nr = s->sh_size / sizeof(Elf64_Sym);
	for (size_t i = 0; i < nr; i++) {
		Elf64_Sym sym;

		memcpy(&sym, (char *)symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_name < strings->sh_size)
			on_symbol(search, &sym, (const char *)names + sym.st_name);
	}
	free(symbols);
	free(names);
}

/* Find the version of PHP, and the one that extensions are checked against: "API420220829,NTS". */
static void set_php_version(struct detect_file *out, const struct elffile *f)
{
	static const char header[] = "X-Powered-By: PHP/";
	const Elf64_Shdr *s = elffile_section(f, ".rodata");
	const struct detect_php *row;
	const char *said;
	void *bytes;

	if (!s || s->sh_size > RODATA_MAX ||
	    elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes))
		return;
	/* The bytes end with a NUL. */
	said = memmem(bytes, s->sh_size, header, sizeof(header) - 1);
	if (said && said[18] >= '0' && said[18] <= '9' && said[19] == '.')
		out->version = (uint32_t)(said[18] - '0') << 24 |
			       (uint32_t)(strtoul(said + 20, NULL, 10) & 255) << 16;
	for (size_t i = 0; (row = detect_php(i)); i++) {
		if (!memmem(bytes, s->sh_size, row->api, strlen(row->api) + 1))
			continue;
		out->version = row->version;
		out->php = (uint32_t)i + 1;
	}
	free(bytes);
}

/* Look through the symbols. 0 or -ENOENT: no file of an interpreter. */
static int find_symbols(struct search *search, const struct elffile *f, enum lang_kind kind,
			const char *name)
{
	struct detect_file *out = search->out;

	*out = (struct detect_file){ .kind = (uint32_t)kind, .machine = f->machine };
	if (f->elf_class != ELFCLASS64)
		return -ENOENT;
	if (kind == LANG_GO)
		return 0;
	if (kind <= LANG_NONE || kind >= LANG_NR)
		return -ENOENT;
	if (out->kind == LANG_PYTHON && detect_python_minor(name) >= 0)
		out->version = 3U << 24 | (uint32_t)detect_python_minor(name) << 16;
	read_symbols(search, f, SHT_DYNSYM);
	if (out->kind != LANG_NODE || !search->symbols.builtins.code)
		read_symbols(search, f, SHT_SYMTAB);
	return 0;
}

/* Find the function by which Go calls C: by Go's own table if it is stripped. 0 or -ENOENT. */
static int find_go(struct detect_file *d, const struct elffile *f)
{
	static const char name[] = "runtime.asmcgocall";
	struct image *image;

	if (f->machine != EM_X86_64 || image_build(&image, &(struct image_parts){ .file = f }) ||
	    !image)
		return -ENOENT;
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *rest = image->names + s->name;

		if (strncmp(rest, name, sizeof(name) - 1) != 0)
			continue;
		rest += sizeof(name) - 1;
		if (!*rest || !strcmp(rest, ".abi0"))
			add_eval(d, s->vaddr, s->size, false);
	}
	image_free(image);
	return d->nr_eval ? 0 : -ENOENT;
}

/* Read the values of the symbols. 0 or -ENOENT: some symbols are missing. */
static int read_symbol_values(struct search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	const Elf64_Shdr *runtime;

	if (out->kind == LANG_GO)
		return find_go(out, f);
	if (out->kind == LANG_NODE) {
		detect_v8(out, &search->symbols, f);
		/* Debian's program "node" has none: they are in libnode.so. */
		return search->symbols.number[V8_FP_FUNCTION] ? 0 : -ENOENT;
	}
	find_ruby_vm(search, f);
	add_parts(out, f, search->code);
	if (out->kind == LANG_PYTHON && !out->version && !out->version_at)
		out->version = search->python;
	runtime = elffile_section(f, ".PyRuntime");
	if (!out->runtime && runtime && out->kind == LANG_PYTHON)
		out->runtime = runtime->sh_addr;
	/* Without its loop, which is found by an address in it; or without its VM, for the reason.
	 */
	if (out->kind == LANG_RUBY && out->version_at)
		return 0;
	if (!out->runtime || !out->nr_eval ||
	    (detect_names((enum lang_kind)out->kind)->code_type && !out->code_type))
		return -ENOENT;
	if (out->kind == LANG_PHP)
		set_php_version(out, f);
	return 0;
}

int detect_read_file(struct detect_file *out, const struct elffile *f, enum lang_kind kind,
		     const char *name)
{
	struct search search = { .out = out };
	int rc = find_symbols(&search, f, kind, name);

	return rc ? rc : read_symbol_values(&search, f);
}

/* Get the bias of the addresses in the file; false: the mapping is not of this file. */
static bool bias_of(const struct elffile *f, const struct detect_request *w, uint64_t *bias)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		/* Mappings begin at pages: before the segment, maybe. */
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    w->offset + 65536 <= p->p_offset || w->offset >= p->p_offset + p->p_filesz)
			continue;
		*bias = w->start - (p->p_vaddr + (w->offset - p->p_offset));
		return true;
	}
	return false;
}

/* The symbols of the last file: it may take several calls until the bytes at them are there. */
static struct {
	uint64_t serial; /* of the request; 0: none */
	struct detect_file file;
	struct v8_symbols symbols;
	uint32_t python;
	uint64_t in_gc;
} kept;

/* Find the symbols of the file, or take the kept ones. */
static int have_symbols(struct search *search, const struct elf_sandbox_serve *v,
			const struct detect_request *r)
{
	int rc;

	if (r->serial == kept.serial) {
		*search->out = kept.file;
		search->symbols = kept.symbols;
		search->python = kept.python;
		search->in_gc = kept.in_gc;
		return 0;
	}
	rc = find_symbols(search, &v->file[0], (enum lang_kind)r->kind, r->name);
	kept.serial = rc || elf_sandbox_serve_misses(v) ? 0 : r->serial;
	kept.file = *search->out;
	kept.symbols = search->symbols;
	kept.python = search->python;
	kept.in_gc = search->in_gc;
	return rc;
}

static int serve_file(struct elf_sandbox_serve *v, struct sandbox_call *c, const void *request)
{
	const struct detect_request *r = request;
	struct detect_file file = { .nr_eval = 0 };
	struct search search = { .out = &file, .code = r->code };
	int rc = memchr(r->name, 0, sizeof(r->name)) ? elf_sandbox_serve_open(v, c, 0) : -EINVAL;

	if (!rc)
		rc = have_symbols(&search, v, r);
	if (!rc && !elf_sandbox_serve_misses(v))
		rc = read_symbol_values(&search, &v->file[0]);
	if (!rc && !bias_of(&v->file[0], r, &file.bias))
		rc = -ESTALE;
	rc = elf_sandbox_serve_begin(v, c, rc);
	if (!rc && !elf_sandbox_serve_misses(v))
		sandbox_put(&c->reply, &file, sizeof(file));
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct detect_request r;

	return elf_sandbox_serve_call(c, &r, sizeof(r), serve_file);
}

const struct sandbox_reader detect_reader = {
	.kind = SANDBOX_DESCRIBE,
	.name = "proftop-lang",
	.serve = serve,
	.memory_max = 2ULL << 30,
};
