// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * langcase PID TID python|php|ruby|perl|lua|luajit|node|r|erlang FILE TITLE: write a case of this
 * thread, which is stopped for it, as it is described in langcase.h. Needs the right to trace it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/script/php.c"
#include "tests/langcase.h"
#include "tests/makers/detect.h"

#define LINE	    64U /* bytes of memory that are kept together */
#define DATA_BESIDE 2048U
#define PLACE	    "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4095[^\n]"

static struct langcase c;
static struct lang_range kept_ranges[2]; /* of the data of BEAM */
static char frames[LANGCASE_TEXT];
static char *names; /* of the symbols of its file */
static size_t names_size;

/* Note lines of memory that were read; in the order of addresses, each once. */
static void note(uint64_t addr, uint64_t size)
{
	for (uint64_t line = addr & ~(LINE - 1ULL); line < addr + size; line += LINE) {
		uint32_t i = c.nr_blocks;

		while (i && c.blocks[i - 1].addr > line)
			i--;
		if ((i && line - c.blocks[i - 1].addr < c.blocks[i - 1].size) ||
		    c.nr_blocks == LANGCASE_BLOCKS)
			continue;
		if (i && c.blocks[i - 1].addr + c.blocks[i - 1].size == line) {
			c.blocks[i - 1].size += LINE;
			continue;
		}
		memmove(&c.blocks[i + 1], &c.blocks[i], (c.nr_blocks - i) * sizeof(c.blocks[0]));
		c.blocks[i] = (struct langcase_block){ line, LINE, 0 };
		c.nr_blocks++;
	}
}

/* Note a read of the data of BEAM, of which the case keeps two parts: the rest is zero. */
static void note_data(uint64_t addr, uint64_t size, uint8_t *bytes)
{
	for (uint64_t i = 0; i < size; i++)
		if (addr + i - kept_ranges[0].start >= kept_ranges[0].end - kept_ranges[0].start &&
		    addr + i - kept_ranges[1].start >= kept_ranges[1].end - kept_ranges[1].start)
			bytes[i] = 0;
	for (int i = 0; i < 2; i++)
		note(kept_ranges[i].start, kept_ranges[i].end - kept_ranges[i].start);
}

/* In place of libc's: notes each read. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local,
			 const struct iovec *remote, unsigned long nr_remote, unsigned long flags)
{
	ssize_t got = syscall(SYS_process_vm_readv, pid, local, nr_local, remote, nr_remote, flags);
	uint64_t addr = nr_remote == 1 ? (uintptr_t)remote->iov_base : 0;

	if (got > 0 && kept_ranges[0].end && addr == c.file.main[0].start)
		note_data(addr, (uint64_t)got, local->iov_base);
	else if (got > 0 && nr_remote == 1)
		note(addr, (uint64_t)got);
	return got;
}

/* Keep the names of symbols: the numbers of V8 are written by name. */
static void keep_names(const struct elffile *f)
{
	const Elf64_Shdr *s = elffile_section(f, ".dynstr");
	void *text;

	if (!s || elffile_read_alloc(f, s->sh_offset, s->sh_size, &text))
		return;
	free(names);
	names = text;
	names_size = s->sh_size;
}

/* Read the facts of the file that is mapped so. False: it is no such interpreter. */
static bool copy_file(const char *path, uint64_t start, uint64_t offset, uint64_t code)
{
	const char *slash = strrchr(path, '/');
	struct elffile f;
	struct stat st;
	struct err e;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -1;

	if (fd < 0 || fstat(fd, &st) || elffile_open(&f, fd, NULL, (uint64_t)st.st_size, &e))
		return false;
	for (uint32_t i = 0; i < f.nr_phdrs && rc; i++) {
		const Elf64_Phdr *p = &f.phdrs[i];
		uint64_t bias = start - (p->p_vaddr + (offset - p->p_offset));
		enum lang_kind kind = (enum lang_kind)c.file.kind;
		struct detect_file file;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		rc = detect_read_file(&file, &f, kind, slash ? slash + 1 : path,
				      code ? code - bias : 0);
		if (rc)
			break;
		c.file = file;
		keep_names(&f);
		c.file.runtime += file.runtime ? bias : 0;
		c.file.code_type += file.code_type ? bias : 0;
		c.file.version_at += file.version_at ? bias : 0;
		for (uint32_t k = 0; k < LANG_EVAL_MAX; k++)
			c.file.eval[k] = (struct lang_range){ file.eval[k].start + bias,
							      file.eval[k].end + bias };
		for (uint32_t k = 0; k < LANG_MAIN_MAX; k++)
			c.file.main[k] = (struct lang_range){ file.main[k].start + bias,
							      file.main[k].end + bias };
	}
	elffile_close(&f);
	close(fd);
	return !rc;
}

/* Find the interpreter among the mappings; @code: an address in its loop, or 0. */
static bool find_file(pid_t pid, uint64_t code)
{
	char line[5000], root[32], path[4096], real[5000], mode[5];
	uint64_t start, end, offset;
	bool found = false;
	FILE *maps;

	snprintf(real, sizeof(real), "/proc/%d/maps", pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	maps = fopen(real, "r");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, PLACE, &start, &end, mode, &offset, path) != 5 || mode[2] != 'x' ||
		    path[0] != '/')
			continue;
		/* Of a process in another root the path is that of ours, if it can be seen. */
		snprintf(real, sizeof(real), "%s%s", access(path, R_OK) ? root : "", path);
		found = copy_file(real, start, offset, code);
	}
	if (maps)
		fclose(maps);
	return found;
}

static void set_registers(const struct user_regs_struct *r)
{
	bool loop = lang_is_eval(&c.process, r->rip);

	c.sample.pc = r->rip;
	c.sample.sp = r->rsp;
	if (c.file.kind == LANG_NODE) {
		c.sample.fp = r->rbp;
		c.sample.rdi = r->rdi;
		c.sample.r9 = r->r9;
		c.sample.r13 = r->r13;
		c.sample.r15 = r->r15;
	}
	if (c.file.kind == LANG_BEAM) {
		c.sample.fp = r->rbp;
		c.sample.r13 = r->r13;
	}
	if (c.file.kind == LANG_PHP && loop) {
		c.sample.loop[0] = r->r14;
		c.sample.loop[1] = r->r15;
	}
	if (c.file.kind == LANG_LUAJIT && loop) {
		c.sample.loop[0] = r->rdx;
		c.sample.loop[1] = r->rbx;
	}
	/* DWARF's numbers of the registers that calls keep. */
	if (c.file.kind == LANG_LUA)
		c.sample.loop[1] = c.process.pc_register == 3	 ? r->rbx
				   : c.process.pc_register == 6	 ? r->rbp
				   : c.process.pc_register == 12 ? r->r12
				   : c.process.pc_register == 13 ? r->r13
				   : c.process.pc_register == 14 ? r->r14
				   : c.process.pc_register == 15 ? r->r15
								 : 0;
}

static void copy_stack(pid_t pid)
{
	for (uint64_t size = LANGCASE_STACK; size >= 256; size -= 256) {
		struct iovec local = { c.stack, size };
		struct iovec remote = { (void *)(uintptr_t)c.sample.sp, size };

		if (syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0) == (ssize_t)size) {
			c.sample.stack_size = size;
			return;
		}
	}
}

static void put_ranges(FILE *f, const char *name, const struct lang_range *r, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		fprintf(f, "%s %" PRIx64 " %" PRIx64 "\n", name, r[i].start, r[i].end);
}

/* Make one block of all that touch: a read may be of both. */
static void merge_blocks(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < c.nr_blocks; i++) {
		struct langcase_block *last = nr ? &c.blocks[nr - 1] : NULL;

		if (last && last->addr + last->size == c.blocks[i].addr)
			last->size += c.blocks[i].size;
		else
			c.blocks[nr++] = c.blocks[i];
	}
	c.nr_blocks = nr;
}

/* Write the numbers that symbols of the file have the values of, each once. */
static void put_numbers(FILE *out)
{
	bool put[V8_NR] = { false };

	for (const char *name = names; name && name < names + names_size;
	     name += strlen(name) + 1) {
		enum v8_number i = v8layout_number(name);

		if (i == V8_NR || put[i] || c.file.v8.number[i] == -1)
			continue;
		put[i] = true;
		fprintf(out, "number %s %d\n", name, c.file.v8.number[i]);
	}
	fprintf(out, "sizes ");
	for (uint32_t i = 0; i < sizeof(c.file.v8.sizes); i++)
		fprintf(out, "%02x", c.file.v8.sizes[i]);
	fprintf(out, "\n");
}

/* Write the case; the stack is memory as well. */
static int put_case(FILE *f, pid_t pid, const char *what)
{
	static uint8_t bytes[1U << 20];
	const struct php_version *php = c.file.php ? php_version(c.file.php - 1) : NULL;

	fprintf(f, "# %s\nkind %x\nversion %x\nmachine %x\nprogram %x\ntid %x\nis_main %x\n", what,
		c.file.kind, c.file.version, c.file.machine, c.program, c.sample.tid,
		c.sample.is_main);
	fprintf(f, "runtime %" PRIx64 "\ncode_type %" PRIx64 "\nversion_at %" PRIx64 "\n",
		c.file.runtime, c.file.code_type, c.file.version_at);
	fprintf(f, "pc %" PRIx64 "\nsp %" PRIx64 "\nstack %" PRIx64 "\n", c.sample.pc, c.sample.sp,
		c.sample.stack_size);
	fprintf(f, "loop0 %" PRIx64 "\nloop1 %" PRIx64 "\n", c.sample.loop[0], c.sample.loop[1]);
	if (c.file.kind == LANG_NODE) {
		fprintf(f, "v8 %x\ncode_offset %" PRIx64 "\ncode_size %" PRIx64 "\n",
			c.file.v8_version, c.file.blob_offset, c.file.blob_size);
		fprintf(f, "fp %" PRIx64 "\nrdi %" PRIx64 "\nr9 %" PRIx64 "\n", c.sample.fp,
			c.sample.rdi, c.sample.r9);
		fprintf(f, "r13 %" PRIx64 "\nr15 %" PRIx64 "\n", c.sample.r13, c.sample.r15);
		put_numbers(f);
	}
	if (c.file.kind == LANG_BEAM)
		fprintf(f, "fp %" PRIx64 "\nr13 %" PRIx64 "\n", c.sample.fp, c.sample.r13);
	if (php)
		fprintf(f, "api %s\n", php->api);
	merge_blocks();
	put_ranges(f, "eval", c.file.eval, c.file.nr_eval);
	put_ranges(f, "main", c.file.main, c.file.nr_main);
	for (char *line = strtok(frames, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(f, "frame %s\n", line);
	for (uint32_t i = 0; i < c.nr_blocks; i++) {
		const struct langcase_block *b = &c.blocks[i];
		struct iovec local = { bytes, b->size };
		struct iovec remote = { (void *)(uintptr_t)b->addr, b->size };

		if (b->size > sizeof(bytes) || syscall(SYS_process_vm_readv, pid, &local, 1,
						       &remote, 1, 0) != (ssize_t)b->size)
			return -EIO;
		fprintf(f, "memory %" PRIx64 " %x\n", b->addr, b->size);
		fwrite(bytes, 1, b->size, f);
		fputc('\n', f);
	}
	if (kept_ranges[0].end)
		fprintf(f, "zero %" PRIx64 " %" PRIx64 "\n", c.file.main[0].start,
			c.file.main[0].end - c.file.main[0].start);
	return fclose(f);
}

/* Return the lines around @addr in the data. */
static struct lang_range beside(uint64_t addr)
{
	const struct lang_range *data = &c.file.main[0];

	return (struct lang_range){ MAX(data->start, (addr & ~(LINE - 1ULL)) - DATA_BESIDE),
				    MIN(data->end, addr + DATA_BESIDE) };
}

/* Keep the data of BEAM only around its two tables, which are found by their contents. */
static void narrow_data(pid_t pid)
{
	uint64_t atoms = c.file.main[0].start, word = 0;

	while (atoms + 8 < c.file.main[0].end &&
	       (!lang_memory_copy(pid, atoms, (uint8_t *)&word, 8) || word != c.process.beam.atoms))
		atoms += 8;
	kept_ranges[0] = beside(c.process.runtime);
	kept_ranges[1] = beside(atoms);
	c.nr_blocks = 0;
	langcase_describe(&c, pid);
}

/* Of the stopped thread. 0 or 1. */
static int make(pid_t pid, pid_t tid, const char *path, const char *what)
{
	struct user_regs_struct regs;
	uint32_t kind = c.file.kind;
	FILE *f;

	c.sample.tid = tid;
	c.sample.is_main = pid == tid;
	if (!find_file(pid, 0)) {
		fprintf(stderr, "langcase: no file of the interpreter is mapped\n");
		return 1;
	}
	langcase_describe(&c, pid);
	/* A stripped interpreter: by an address in its loop, which the process has. */
	if (!c.file.nr_eval && c.process.code_type) {
		c.file.kind = kind;
		find_file(pid, c.process.code_type);
		langcase_describe(&c, pid);
	}
	if (kind == LANG_BEAM && !c.process.reason)
		narrow_data(pid);
	if (c.process.reason || ptrace(PTRACE_GETREGS, tid, NULL, &regs)) {
		fprintf(stderr, "langcase: %s\n",
			c.process.reason ? c.process.reason : "registers");
		return 1;
	}
	set_registers(&regs);
	copy_stack(pid);
	if (langcase_chain(&c, &pid, frames) != LANG_OK || !frames[0]) {
		fprintf(stderr, "langcase: %s\n", lang_status_name(c.chain.none));
		return 1;
	}
	note(c.sample.sp, c.sample.stack_size);
	f = fopen(path, "w");
	return !f || put_case(f, pid, what);
}

int main(int argc, char **argv)
{
	static const char *const languages_of[LANG_NR] = {
		[LANG_PYTHON] = "python", [LANG_PHP] = "php", [LANG_RUBY] = "ruby",
		[LANG_PERL] = "perl",	  [LANG_LUA] = "lua", [LANG_NODE] = "node",
		[LANG_LUAJIT] = "luajit", [LANG_R] = "r",     [LANG_BEAM] = "erlang"
	};
	pid_t pid, tid;
	int rc;

	if (argc != 6)
		return 2;
	pid = atoi(argv[1]);
	tid = atoi(argv[2]);
	for (uint32_t i = 0; i < LANG_NR; i++)
		if (languages_of[i] && !strcmp(argv[3], languages_of[i]))
			c.file.kind = i;
	if (ptrace(PTRACE_ATTACH, tid, NULL, NULL) || waitpid(tid, NULL, __WALL) != tid) {
		perror("langcase");
		return 1;
	}
	c.program = true;
	rc = make(pid, tid, argv[4], argv[5]);
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return rc;
}
