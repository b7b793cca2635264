// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * steptruth [-n STEPS] [-w WINDOW] [-s MS] [-g MS] [-t SECONDS] COMMAND...: run a program, and step
 * its busiest thread through windows of WINDOW instructions, the first one after -s, the next ones
 * after -g ms of its CPU time, STEPS in all. A shadow stack of its calls has the frame at each of
 * them, with which the row of code without tables is compared: the place of the caller's frame, and
 * its saved registers. Prints a line for each file; fails if a row is wrong, or less than 95 % of
 * the instructions have one.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "tests/unwind/row_at.h"

#define DEPTH_MAX  8192
#define SPOTS_MAX  (1u << 18) /* of which half may be used */
#define FILES_MAX  64
#define JUMP_MAX   (4 << 20) /* of the stack pointer: more is another stack */
#define NR_REGS	   32	     /* by DWARF number */
#define FEW	   1000	     /* instructions: a file with fewer is not judged */
#define MOST_SHOWN 12

#if defined(__x86_64__)
enum { FP = 6, SP = 7, RA = 16, ABOVE = 8 }; /* ABOVE: the CFA is above sp in a function's begin */
static const uint8_t saved_regs[] = { 3, FP, 12, 13, 14, 15 };
#elif defined(__aarch64__)
enum { FP = 29, SP = 31, RA = 30, ABOVE = 0 };
static const uint8_t saved_regs[] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP, RA };
#else
#error "single steps: not written for this machine"
#endif

struct rule {
	uint8_t op; /* DW_CFA_*: same_value, offset, expression, undefined; def_cfa,
		       def_cfa_expression */
	uint8_t reg;
	int64_t off;
	const uint8_t *at, *end; /* of an expression */
};

/* An instruction that was executed. */
struct spot {
	uint64_t pc, vaddr;
	struct file *file;
	enum { NO_ROW, TABLE, DERIVED, GUESSED } from;
	bool is_call, is_row;
	bool is_back;	   /* returns, or ends longjmp() */
	bool is_exclusive; /* a load whose store would fail at each step */
	struct cfi_row row;
	struct rule cfa, saved[NR_REGS];
	uint64_t nr, wrong;
};

struct file {
	char path[256];
	dev_t device;
	ino_t inode;
	struct image *image; /* NULL: cannot be read */
	uint64_t nr[GUESSED + 1], wrong[GUESSED + 1];
};

struct call {
	uint64_t cfa;
	uint64_t reg[NR_REGS]; /* as it begins */
};

static struct {
	pid_t pid, tid;
	struct file files[FILES_MAX];
	unsigned int nr_files;
	struct spot *spots;
	uint32_t nr_spots;
	struct call calls[DEPTH_MAX];
	unsigned int depth;
	uint64_t steps;
} t;

static volatile sig_atomic_t late;

static bool read_memory(uint64_t at, void *out, size_t size)
{
	struct iovec to = { out, size }, from = { (void *)(uintptr_t)at, size };

	return process_vm_readv(t.pid, &to, 1, &from, 1, 0) == (ssize_t)size;
}

#if defined(__x86_64__)
static bool registers(uint64_t *pc, uint64_t *reg)
{
	struct user_regs_struct u;

	if (ptrace(PTRACE_GETREGS, t.tid, 0, &u))
		return false;
	*pc = u.rip;
	memcpy(reg,
	       (uint64_t[NR_REGS]){ u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
				    u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15 },
	       NR_REGS * sizeof(*reg));
	return true;
}

/* Classify an instruction of up to 16 bytes: a call of the next one is none. */
static void classify(struct spot *p, const uint8_t *code)
{
	static const uint8_t next[4];
	int i = 0;

	while (i < 8 && code[i] &&
	       (strchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65", code[i]) ||
		(code[i] & 0xf0) == 0x40))
		i++;
	p->is_call = (code[i] == 0xe8 && memcmp(code + i + 1, next, 4) != 0) ||
		     (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2);
}
#else
static bool registers(uint64_t *pc, uint64_t *reg)
{
	struct user_regs_struct u;
	struct iovec to = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, t.tid, NT_PRSTATUS, &to))
		return false;
	*pc = u.pc;
	memcpy(reg, u.regs, sizeof(u.regs));
	reg[SP] = u.sp;
	return true;
}

/* By the Arm Architecture Reference Manual, C4.1: branches, and exclusive loads. */
static void classify(struct spot *p, const uint8_t *code)
{
	uint32_t w = bytes_u32(code), to = w >> 21 & 7;
	bool by_register = (w & 0xfe000000) == 0xd6000000;

	p->is_call = (w & 0xfc000000) == 0x94000000 || (by_register && to == 1);
	p->is_back = by_register && (to == 2 || (!to && (w >> 5 & 31) == RA));
	p->is_exclusive = (w & 0x3fc00000) == 0x08400000;
}
#endif

/* Return whether a register has another value than at the call; a return address may be signed. */
static bool differs(int reg, uint64_t value, const struct call *call)
{
	return (value ^ call->reg[reg]) << (reg == RA ? 16 : 0);
}

/* Read a rule with an operand; a block is an expression. */
static void read_rule(struct ehread *r, struct rule *rule, uint8_t op, bool block)
{
	uint64_t size;

	*rule = (struct rule){ .op = op };
	if (!block)
		return;
	size = ehread_uleb(r);
	rule->at = ehread_block(r, size);
	rule->end = rule->at ? rule->at + size : NULL;
}

/* Run one of the instructions that derived records have. Return the bytes of code to go on by; -1:
 * unknown. */
static int64_t run_one(struct ehread *r, struct spot *p)
{
	uint8_t op = (uint8_t)ehread_fixed(r, 1);
	uint64_t reg;

	if (op >> 6 == 1)
		return op & 63;
	if (op == 0x02 || op == 0x04)
		return (int64_t)ehread_fixed(r, op == 2 ? 1 : 4);
	if (op == 0x0f || op == 0x0e) {
		struct rule before = p->cfa;

		read_rule(r, &p->cfa, op, op == 0x0f);
		if (op == 0x0e)
			p->cfa = (struct rule){ 0x0c, before.reg, (int64_t)ehread_uleb(r), NULL,
						NULL };
		return 0;
	}
	reg = op >> 6 == 2 ? op & 63 : ehread_uleb(r);
	if (op == 0x0c || op == 0x12) {
		p->cfa = (struct rule){ .op = 0x0c, .reg = (uint8_t)reg };
		p->cfa.off = op == 0x0c ? (int64_t)ehread_uleb(r) : ehread_sleb(r) * -8;
		return reg < NR_REGS ? 0 : -1;
	}
	if (reg == RA && op == 0x07) { /* there is no caller */
		p->cfa.op = op;
		return 0;
	}
	if (ABOVE > 0 && reg == RA) { /* always below the CFA */
		ehread_uleb(r);
		return op >> 6 == 2 ? 0 : -1;
	}
	if (reg >= NR_REGS ||
	    (op >> 6 != 2 && op != 0x11 && op != 0x10 && op != 0x08 && op != 0x07))
		return -1;
	read_rule(r, &p->saved[reg], op >> 6 == 2 ? 0x11 : op, op == 0x10);
	if (op >> 6 == 2)
		p->saved[reg].off = (int64_t)ehread_uleb(r) * -8;
	else if (op == 0x11)
		p->saved[reg].off = ehread_sleb(r) * -8;
	return 0;
}

/* Read the rules of a derived record. */
static bool read_rules(const struct ehframe *eh, const struct ehframe_fde *fde, struct spot *p)
{
	struct ehframe_record rec;
	uint64_t loc = fde->start;
	struct ehread r;
	int64_t more;

	if (ehframe_read(eh, fde->offset, &rec))
		return false;
	for (unsigned int i = 0; i < NR_REGS; i++)
		p->saved[i].op = 0x08;
	for (int part = 0; part < 2; part++) {
		r.pos = eh->bytes + (part ? rec.insns : rec.cie.insns);
		r.end = eh->bytes + (part ? rec.insns_end : rec.cie.insns_end);
		r.bad = false;
		while (r.pos < r.end && !r.bad && loc <= p->vaddr) {
			more = run_one(&r, p);
			if (more < 0)
				return false;
			loc += (uint64_t)more;
			if (loc > p->vaddr)
				return true;
		}
	}
	return !r.bad;
}

/* Return the file that is mapped at @pc, and the address there. */
static struct file *file_at(uint64_t pc, uint64_t *vaddr)
{
	unsigned long start, end, offset, inode;
	unsigned int major, minor, i;
	struct file *f = NULL;
	char line[512], path[256], perms[5];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t.pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		struct stat st;
		struct err e;
		int fd, nr = sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %255s", &start, &end, perms,
				    &offset, &major, &minor, &inode, path);

		if (nr < 8 || !inode || pc - start >= end - start)
			continue;
		for (i = 0; i < t.nr_files && strcmp(t.files[i].path, path) != 0; i++)
			;
		if (i == FILES_MAX)
			break;
		f = &t.files[i];
		if (i == t.nr_files) {
			t.nr_files++;
			snprintf(f->path, sizeof(f->path), "%s", path);
			snprintf(line, sizeof(line), "/proc/%d/root%s", (int)t.pid, path);
			fd = open(line, O_RDONLY | O_CLOEXEC);
			if (fd < 0 || fstat(fd, &st) ||
			    image_read_fd(&f->image, fd, (uint64_t)st.st_size, &e))
				f->image = NULL;
			if (fd >= 0)
				close(fd);
		}
		for (i = 0; f->image && i < f->image->nr_segments; i++) {
			const struct image_segment *s = &f->image->segments[i];

			if (s->exec && pc - start + offset - s->offset < s->file_size)
				*vaddr = pc - start + offset - s->offset + s->vaddr;
		}
		break;
	}
	if (maps)
		fclose(maps);
	return f;
}

/* Get the row that the product has at a new place. */
static void fill(struct spot *p)
{
	const struct ehframe *eh;
	struct ehframe_fde fde;
	uint8_t code[16] = { 0 };

	for (size_t size = sizeof(code); size && !read_memory(p->pc, code, size); size--)
		;
	classify(p, code);
	p->file = file_at(p->pc, &p->vaddr);
	if (!p->file || !p->file->image)
		return;
	/* The walk knows this code by its bytes. */
	if (p->vaddr - p->file->image->sigreturn < p->file->image->sigreturn_size) {
		p->file = NULL;
		return;
	}
	eh = &p->file->image->eh;
	if (!ehframe_find(eh, p->vaddr, &fde))
		return;
	p->from = !eh->derived || fde.offset < eh->derived   ? TABLE
		  : eh->guessed && fde.offset >= eh->guessed ? GUESSED
							     : DERIVED;
	p->is_row =
		!cfi_row_at(arch_of(p->file->image->machine), eh, fde.offset, p->vaddr, &p->row);
	if (p->from != TABLE && (!p->is_row || !read_rules(eh, &fde, p)))
		p->cfa.op = 0;
}

static struct spot *spot_at(uint64_t pc)
{
	uint32_t i = (uint32_t)((pc * 0x9e3779b97f4a7c15ull) >> 40) % SPOTS_MAX;

	while (t.spots[i].pc && t.spots[i].pc != pc)
		i = (i + 1) % SPOTS_MAX;
	if (!t.spots[i].pc && t.nr_spots < SPOTS_MAX / 2) {
		t.nr_spots++;
		t.spots[i].pc = pc;
		fill(&t.spots[i]);
	}
	return t.spots[i].pc ? &t.spots[i] : NULL;
}

/* Run an expression of a derived record. */
static bool evaluate(const struct rule *rule, const uint64_t *reg, uint64_t *out)
{
	struct ehread r = { rule->at, rule->end, false };
	uint64_t stack[4] = { 0 };
	int nr = 0;

	while (r.pos < r.end && !r.bad) {
		uint8_t op = (uint8_t)ehread_fixed(&r, 1);

		if (op >= 0x70 && op < 0x70 + NR_REGS && nr < 4) {
			stack[nr++] = reg[op - 0x70] + (uint64_t)ehread_sleb(&r);
		} else if (op == 0x06 && nr) {
			if (!read_memory(stack[nr - 1], &stack[nr - 1], 8))
				return false;
		} else if (op == 0x23 && nr) {
			stack[nr - 1] += ehread_uleb(&r);
		} else if (op == 0x22 && nr > 1) {
			nr--;
			stack[nr - 1] += stack[nr];
		} else {
			return false;
		}
	}
	*out = stack[0];
	return nr == 1 && !r.bad;
}

/* Return whether the product's rule about a register, with its number, leads to its value. */
static bool is_kept(const uint64_t *reg, const struct call *call, int number, uint8_t where,
		    int32_t off)
{
	uint64_t value = reg[number];

	if (where == CFI_AT_CFA && !read_memory(call->cfa + (uint64_t)(int64_t)off, &value, 8))
		return false;
	return (where != CFI_SAME && where != CFI_AT_CFA) || !differs(number, value, call);
}

/* Return whether the row that the product reads leads to @call. */
static bool row_agrees(const struct spot *p, const uint64_t *reg, const struct call *call)
{
	const struct cfi_row *row = &p->row;
	uint64_t cfa = reg[row->cfa_is_fp ? FP : SP] + (uint64_t)(int64_t)row->cfa_off;

	if (row->kind != CFI_ROW)
		return row->kind == CFI_COMPLEX;
	if (row->cfa_is_word && !read_memory(cfa, &cfa, 8))
		return false;
	cfa += row->cfa_is_above ? 8 : 0;
	if (cfa != call->cfa)
		return false;
	/* Helpers of assembler lose registers of which their tables say nothing. */
	return (ABOVE > 0 || is_kept(reg, call, RA, row->ra_where, row->ra_off)) &&
	       (p->from == TABLE || is_kept(reg, call, FP, row->fp_where, row->fp_off));
}

/* Return whether all that a derived record says leads to @call. */
static bool rules_agree(const struct spot *p, const uint64_t *reg, const struct call *call)
{
	uint64_t cfa = p->cfa.op == 0x0c ? reg[p->cfa.reg] + (uint64_t)p->cfa.off : 0, at, value;

	if (p->cfa.op == 0x0f && !evaluate(&p->cfa, reg, &cfa))
		return false;
	if (cfa != call->cfa)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(saved_regs); i++) {
		uint8_t r = saved_regs[i];
		const struct rule *rule = &p->saved[r];

		if (rule->op == 0x07)
			continue;
		at = cfa + (uint64_t)rule->off;
		value = reg[r];
		if ((rule->op == 0x10 && !evaluate(rule, reg, &at)) ||
		    (rule->op != 0x08 && !read_memory(at, &value, 8)) || differs(r, value, call))
			return false;
	}
	return true;
}

static void compare(struct spot *p, const uint64_t *reg)
{
	const struct call *call = &t.calls[t.depth - 1];
	bool has = p->from != NO_ROW && p->is_row;
	unsigned int from = has ? p->from : NO_ROW;

	p->nr++;
	p->file->nr[from]++;
	if (!has || (row_agrees(p, reg, call) && (p->from == TABLE || rules_agree(p, reg, call))))
		return;
	p->wrong++;
	p->file->wrong[from]++;
}

static void push(const uint64_t *reg)
{
	if (t.depth == DEPTH_MAX)
		t.depth = 0;
	t.calls[t.depth].cfa = reg[SP] + ABOVE;
	memcpy(t.calls[t.depth++].reg, reg, sizeof(t.calls[0].reg));
}

/* Leave the calls that are over. @back: the last instruction returned, or ended longjmp(). */
static void leave(uint64_t pc, uint64_t sp, bool back)
{
	unsigned int i;

	/* A return address that is not on the stack leaves sp as it was at the call. */
	while (t.depth && t.calls[t.depth - 1].cfa < sp + ABOVE)
		t.depth--;
	for (i = t.depth; back && i && t.calls[i - 1].cfa == sp; i--)
		if (!differs(RA, pc, &t.calls[i - 1])) {
			t.depth = i - 1;
			return;
		}
	t.depth = i;
}

/* Step until the thread stops again. False: it has ended, or time is over. */
static bool step(int *signal)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, t.tid, 0, *signal) ||
	    waitpid(t.tid, &status, __WALL) != t.tid || !WIFSTOPPED(status))
		return false;
	*signal = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
	return true;
}

/* Step through a window. False: the thread has ended. */
static bool run_window(uint64_t nr)
{
	uint64_t reg[NR_REGS], before, pc;
	int signal = 0;

	t.depth = 0;
	if (!registers(&pc, reg))
		return false;
	for (; nr && !late; nr--) {
		struct spot *p = spot_at(pc);
		bool delivered = signal, ran;

		if (p && p->file && t.depth && !signal)
			compare(p, reg);
		if (p && p->is_exclusive && !signal)
			return true;
		before = reg[SP];
		if (!step(&signal) || !registers(&pc, reg))
			return false;
		t.steps++;
		/* Another stack, or one that was left. */
		if (reg[SP] - before + JUMP_MAX > 2 * JUMP_MAX)
			t.depth = 0;
		/* Behind a system call AArch64 stops twice. */
		ran = p && pc != p->pc;
		leave(pc, reg[SP], ran && p->is_back);
		if (delivered || (ran && p->is_call && reg[SP] == before - ABOVE &&
				  (ABOVE > 0 || reg[RA] == p->pc + 4)))
			push(reg);
	}
	return true;
}

/* Return the nanoseconds of CPU time that the thread has had. */
static uint64_t time_of(pid_t tid)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)t.pid, (int)tid);
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return strtoull(line, NULL, 10);
}

/* Return the thread that has used most CPU time since its last window, at least @least_ns; 0: none.
 */
static pid_t busiest(uint64_t least_ns)
{
	static struct {
		pid_t tid;
		uint64_t time;
	} last[256], *best = NULL;
	uint64_t most = least_ns;
	struct dirent *d;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t.pid);
	dir = opendir(path);
	best = NULL;
	while (dir && (d = readdir(dir)) != NULL) {
		pid_t tid = atoi(d->d_name);
		size_t i = 0;

		while (i < ARRAY_SIZE(last) - 1 && last[i].tid && last[i].tid != tid)
			i++;
		if (!tid || time_of(tid) < last[i].time + most)
			continue;
		last[i].tid = tid;
		best = &last[i];
		most = time_of(tid) - last[i].time;
	}
	if (dir)
		closedir(dir);
	if (best)
		best->time += most;
	return best ? best->tid : 0;
}

static void run_windows(uint64_t steps, uint64_t window, uint64_t skip_ms, uint64_t gap_ms)
{
	const struct timespec pause = { 0, 1000000 };
	uint64_t gap_ns = (uint64_t)skip_ms * 1000000;

	while (t.steps < steps && !late) {
		int status;

		nanosleep(&pause, NULL);
		t.tid = busiest(gap_ns);
		if (waitpid(t.pid, &status, WNOHANG | __WALL) == t.pid)
			return;
		if (!t.tid || ptrace(PTRACE_SEIZE, t.tid, 0, 0))
			continue;
		if (!ptrace(PTRACE_INTERRUPT, t.tid, 0, 0) &&
		    waitpid(t.tid, &status, __WALL) == t.tid && WIFSTOPPED(status))
			run_window(MIN(window, steps - t.steps));
		gap_ns = gap_ms * 1000000;
		ptrace(PTRACE_DETACH, t.tid, 0, 0);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	uint64_t n = x->wrong ? x->wrong << 32 : x->nr, m = y->wrong ? y->wrong << 32 : y->nr;

	return COMPARE(m, n);
}

/* Print the places that lack a row, or have a wrong one. */
static void show_spots(void)
{
	uint32_t nr = 0, shown = 0;

	for (uint32_t i = 0; i < SPOTS_MAX; i++)
		if (t.spots[i].file &&
		    (t.spots[i].wrong || t.spots[i].from == NO_ROW || !t.spots[i].is_row))
			t.spots[nr++] = t.spots[i];
	qsort(t.spots, nr, sizeof(*t.spots), by_number);
	for (uint32_t i = 0; i < nr && shown < MOST_SHOWN; i++) {
		const struct spot *p = &t.spots[i];
		const struct image_symbol *s = p->file->image ? image_find(p->file->image, p->vaddr)
							      : NULL;
		char buf[IMAGE_STUB_MAX];
		size_t size = 0;
		const char *name = s ? image_symbol_name(p->file->image, s, buf, &size) : "?";

		if (!p->nr)
			continue;
		shown++;
		printf("  %s %#lx (%.*s+%#lx): %s, %lu of %lu\n", p->file->path,
		       (unsigned long)p->vaddr, s ? (int)size : 1, name,
		       s ? (unsigned long)(p->vaddr - s->vaddr) : 0ul,
		       p->wrong ? "wrong" : "no row", (unsigned long)(p->wrong ?: p->nr),
		       (unsigned long)p->nr);
	}
}

/* Print the result of each file. Return whether one is bad. */
static bool show_files(void)
{
	bool bad = false;

	for (unsigned int i = 0; i < t.nr_files; i++) {
		const struct file *f = &t.files[i];
		uint64_t rows = f->nr[DERIVED] + f->nr[GUESSED], nr = rows + f->nr[NO_ROW];

		bad |= f->wrong[DERIVED] || f->wrong[TABLE] || (nr >= FEW && rows * 100 < nr * 95);
		printf("%s: %lu without tables, %.2f %% with a row (%.2f %% guessed), %lu wrong, "
		       "of guessed %lu; "
		       "with tables %lu, %lu wrong\n",
		       f->path, (unsigned long)nr, 100.0 * (double)rows / (double)MAX(nr, 1ul),
		       100.0 * (double)f->nr[GUESSED] / (double)MAX(nr, 1ul),
		       (unsigned long)f->wrong[DERIVED], (unsigned long)f->wrong[GUESSED],
		       (unsigned long)f->nr[TABLE], (unsigned long)f->wrong[TABLE]);
	}
	return bad;
}

static void on_alarm(int signal)
{
	(void)signal;
	late = 1;
}

int main(int argc, char **argv)
{
	uint64_t steps = 200000, window = 10000, skip = 0, gap = 10;
	unsigned int seconds = 60;
	cpu_set_t one;
	int option;

	while ((option = getopt(argc, argv, "+n:w:s:g:t:")) != -1) {
		unsigned long v = strtoul(optarg ?: "", NULL, 10);

		if (option == 'n')
			steps = v;
		else if (option == 'w')
			window = v;
		else if (option == 'g')
			gap = v;
		else if (option == 's')
			skip = v;
		else if (option == 't')
			seconds = (unsigned int)v;
		else
			return 2;
	}
	/* Both on one CPU: a step is two switches, and wakes no other one. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	t.spots = calloc(SPOTS_MAX, sizeof(*t.spots));
	t.pid = t.spots && optind < argc ? fork() : -1;
	if (t.pid < 0)
		return 2;
	if (!t.pid) {
		execvp(argv[optind], argv + optind);
		_exit(127);
	}
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
	alarm(seconds);
	run_windows(steps, window, skip, gap);
	kill(t.pid, SIGKILL);
	printf("%s: %lu steps\n", argv[optind], (unsigned long)t.steps);
	option = show_files();
	show_spots();
	return option || !t.steps;
}
