// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the languages share: descriptions of interpreters, memory of a process in pieces, the frames
 * of a stopped thread by the decoder of its language, frames read ahead.
 *
 * Runs on: any thread.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "symbols/base/base.h"

const char lang_untried[] = "functions of scripts are guesses: this version of the interpreter, or "
			    "this kind of CPU, is untested";

const struct language *const languages[LANG_NR] = {
#define LANGUAGE(kind, name) [LANG_##kind] = &language_##name,
#include "symbols/script/languages.inc"
#undef LANGUAGE
};

const char *lang_name(enum lang_kind kind)
{
	const struct language *l = language_of(kind);

	if (l)
		return l->name;
	return kind == LANG_JAVA   ? "java"
	       : kind == LANG_GO   ? "go"
	       : kind == LANG_NONE ? "none"
				   : "?";
}

const char *lang_title(char buf[static LANG_TITLE_MAX], uint32_t packed)
{
	const struct language *l = language_of(packed & 0xff);
	const char *title = l ? l->title : "interpreter";

	if (l == &language_beam)
		snprintf(buf, LANG_TITLE_MAX, "%s %u", title, packed >> 24);
	else if (packed >> 16)
		snprintf(buf, LANG_TITLE_MAX, "%s %u.%u", title, packed >> 24, packed >> 16 & 255);
	else
		snprintf(buf, LANG_TITLE_MAX, "%s", title);
	return buf;
}

const char *lang_fix(const struct lang_process *p)
{
	const struct language *l = language_of(p->kind);

	if (p->stripped)
		return "link it with -rdynamic, or strip debug information only (strip -g)";
	if (l && l->fix && p->version >= l->fix_since)
		return l->fix;
	return "none: proftop --check lists the versions that are read";
}

const char *lang_versions(enum lang_kind kind)
{
	return language_of(kind)->versions;
}

char lang_letter(enum lang_kind kind)
{
	const struct language *l = language_of(kind);

	return l ? l->letter : '?';
}

const char *lang_status_name(enum lang_status why)
{
	static const char *const names[LANG_OK] = {
		[LANG_NO_READER] = "not_read",	   [LANG_VERSION] = "unknown_version",
		[LANG_REFUSED] = "memory_refused", [LANG_NO_THREAD] = "unknown_thread",
		[LANG_NO_FRAMES] = "no_frames",	   [LANG_BAD_CHAIN] = "bad_chain",
		[LANG_MISMATCH] = "mismatch",	   [LANG_NO_ROOM] = "no_room",
		[LANG_GC] = "gc_thread",	   [LANG_COMPILER] = "compiler_thread",
		[LANG_VM] = "vm_thread",	   [LANG_NEW_CODE] = "code_not_read",
	};

	return (unsigned int)why < LANG_OK ? names[why] : "?";
}

/*
 * Names of HotSpot's own threads, as cut to 15 bytes (JDK source: os::set_native_thread_name()): at
 * the end, from JDK 26 on in the middle. And of V8's, which compile and collect, as Node.js names
 * them: 24.21.0 and 26.10.0, in /proc.
 */
enum lang_status lang_own_thread(const char *comm)
{
	static const struct {
		const char *begin;
		enum lang_status kind;
	} threads[] = {
		{ "GC Thread#", LANG_GC },
		{ "G1 ", LANG_GC },
		{ "ParGC Thread#", LANG_GC },
		{ "Shenandoah ", LANG_GC },
		{ "ZWorker", LANG_GC },
		{ "ZDriver", LANG_GC },
		{ "ZDirector", LANG_GC },
		{ "ZUncommitter", LANG_GC },
		{ "ZUnmapper", LANG_GC },
		{ "ZStat", LANG_GC },
		{ "XWorker", LANG_GC },
		{ "XDriver", LANG_GC },
		{ "RuntimeWorker#", LANG_GC },
		{ "StringDedupProc", LANG_GC },
		{ "C1 CompilerThre", LANG_COMPILER },
		{ "C2 CompilerThre", LANG_COMPILER },
		{ "JVMCI CompilerT", LANG_COMPILER },
		{ "Sweeper thread", LANG_COMPILER },
		{ "VM Thread", LANG_VM },
		{ "VM Periodic Tas", LANG_VM },
		{ "Service Thread", LANG_VM },
		{ "Monitor Deflati", LANG_VM },
		{ "Signal Dispatch", LANG_VM },
		{ "Shenand..", LANG_GC },
		{ "Runtime..", LANG_GC },
		{ "StringD..", LANG_GC },
		{ "C1 Comp..", LANG_COMPILER },
		{ "C2 Comp..", LANG_COMPILER },
		{ "JVMCI C..", LANG_COMPILER },
		{ "VM Peri..", LANG_VM },
		{ "Monitor..", LANG_VM },
		{ "Signal ..", LANG_VM },
		{ "V8Worker", LANG_VM },
		{ "node-V8Worker", LANG_VM },
		{ "DelayedTaskSche", LANG_VM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		if (!strncmp(comm, threads[i].begin, strlen(threads[i].begin)))
			return threads[i].kind;
	return LANG_NO_FRAMES;
}

struct lang_desc *lang_desc_get(struct lang_desc *d)
{
	if (d)
		atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void lang_desc_put(struct lang_desc *d)
{
	/* Acquire and release: all uses precede the free. */
	if (d && atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1)
		free(d);
}

/*
 * From a sample to its chain, for all languages.
 *
 * Runs on: a reader. The order matters: the frames, their code, and the
 * live stack last. While it equals the kernel's copy of the sample, the thread
 * has not run on, and all earlier reads are of the moment of the sample.
 */

/* Return the kept state of a thread; NULL: none. */
static struct lang_thread *lang_memory_thread(struct lang_reader *r, uint32_t process, pid_t tid);
/* Read last: the state again, and @size bytes of the stack. */
static void prefetch_set_tail(struct lang_reader *r, const struct lang_sample *s, uint32_t size);
/*
 * How far the live stack equals the copy: the address behind the last equal word. 0 when the state
 * of the thread has changed since it was read.
 */
static uint64_t prefetch_same_up_to(struct lang_reader *r, const struct lang_sample *s,
				    uint32_t size);
/* Note the pieces that this sample needed. @compared: bytes of the stack that had to be compared.
 */
static void prefetch_keep(const struct lang_reader *r, struct lang_thread *t, uint32_t compared);

/* Bytes of the live stack that are compared. */
#define SAME_MAX LANG_PIECE_MAX

/* The same if the end of the innermost group is unknown, and beyond its end. */
#define SAME_UNKNOWN 4096U

#define SAME_BEYOND 1024U

/* Find the first word in the stack that may return to the loop: bytes from its top. */
static uint64_t return_to_loop(const struct lang_process *p, const struct lang_sample *s)
{
	if (lang_is_eval(p, s->pc))
		return 0;
	for (uint64_t at = 0; at + 8 <= s->stack_size; at += 8) {
		lang_chain_need(s, at + 8);
		if (lang_is_eval(p, bytes_u64(s->stack + at)))
			return at;
	}
	return 0;
}

/* Bytes of the stack to compare: the innermost C frame of the loop has to be in them. */
static uint32_t compared(const struct lang_reader *r, const struct lang_process *p,
			 const struct lang_sample *s)
{
	const struct lang_work *w = &r->work;
	uint64_t size = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		if (!w->boundary[i])
			continue;
		if (w->boundary[i] > s->sp)
			size = w->boundary[i] - s->sp + SAME_BEYOND;
		break;
	}
	if (!size)
		size = SAME_UNKNOWN + return_to_loop(p, s);
	return (uint32_t)MIN(MIN(size, s->stack_size), (uint64_t)SAME_MAX) & ~7U;
}

static void put_frames(const struct lang_reader *r, const struct lang_process *p,
		       struct lang_chain *out)
{
	const struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct lang_code_at *c = &w->script_functions_of[w->code[i]];
		uint64_t instr = w->instr[i];

		out->frames[i] = (struct lang_frame){
			.code = c->id,
			.instr = instr < LANG_NO_INSTR ? (uint32_t)instr : LANG_NO_INSTR,
			.boundary = w->boundary[i],
		};
		if (p->kind == LANG_NODE)
			memcpy(out->frames[i].compiled, w->v8.compiled_of[w->code[i]],
			       sizeof(out->frames[i].compiled));
	}
	out->nr = w->nr;
	if (p->kind != LANG_NODE)
		return;
	for (uint32_t i = 0; i < w->v8.nr_wasm && out->nr < LANG_FRAMES_MAX; i++)
		out->frames[out->nr++] = w->v8.wasm[i];
}

/* Words above a return address to asmcgocall() among which it keeps the goroutine. */
#define GO_WORDS 8U

/* Return addresses to it that are tried, as a stack has old ones as well. */
#define GO_TRIES 4U

/* Bytes of a call, and of its operation code. */
#define GO_CALL 5U

/* Bytes of a goroutine's stack that are read. */
#define GO_STACK_MAX (32U << 10)

/* Bytes below the frame pointer of the caller of systemstack() among which its call is sought. */
#define GO_FRAME 2048U

/* Words above a return address to cgocallback() among which is its own. */
#define GO_CALLBACK_WORDS 8U

/* Bytes of code of cgocallback() at most. */
#define GO_CALLBACK 512U

/* Return the function that the code before @pc, near @near, calls; 0: none. */
static uint64_t called_before(struct lang_reader *r, uint64_t pc, uint64_t near)
{
	const uint8_t *code;

	/* Its distance has 32 bits. */
	if ((pc - near + (1ULL << 31)) >> 32)
		return 0;
	code = lang_memory_read(&r->memory, pc - GO_CALL, GO_CALL);
	return code && code[0] == 0xe8 ? pc + (uint64_t)(int64_t)(int32_t)bytes_u32(code + 1) : 0;
}

/* Return whether the code before @pc calls asmcgocall() or systemstack(). */
static bool is_go_call(struct lang_reader *r, const struct lang_process *p, uint64_t pc)
{
	uint64_t to = p->nr_eval ? called_before(r, pc, p->eval[0].start) : 0;

	for (uint32_t i = 0; i < p->nr_eval; i++)
		if (p->eval[i].start == to)
			return true;
	return false;
}

/* Read the stack at @sp, which ends at @end. Return its bytes; NULL: not all are there. */
static const uint8_t *read_other(struct lang_memory *m, uint64_t sp, uint64_t end, uint32_t *size)
{
	int first = -1, last = -1;

	*size = (uint32_t)MIN(end - sp, (uint64_t)GO_STACK_MAX);
	/* One behind the other. */
	for (uint32_t at = 0; at < *size; at += LANG_PIECE_MAX) {
		last = lang_memory_queue(m, sp + at, MIN(*size - at, LANG_PIECE_MAX), PIECE_ONCE);
		first = first < 0 ? last : first;
		if (last < 0)
			return NULL;
	}
	if (first < 0 || !lang_memory_fetch(m) || !lang_memory_piece(m, last))
		return NULL;
	return lang_memory_piece(m, first);
}

/*
 * Find the goroutine by the words at @at in the stack copy, the frame of asmcgocall(): it keeps
 * how deep the goroutine's stack is, and the goroutine, which begins with the bounds of its stack.
 */
static bool go_stack_at(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s, uint64_t at, struct lang_chain *out)
{
	for (uint32_t i = 0; i + 1 < GO_WORDS; i++) {
		uint64_t depth = bytes_u64(s->stack + at + 8ULL * i), low, high;
		uint64_t goroutine = bytes_u64(s->stack + at + 8ULL * i + 8);
		const uint8_t *head = !depth || depth & 7 || !lang_memory_is_pointer(goroutine)
					      ? NULL
					      : lang_memory_read(&r->memory, goroutine, 16);

		if (!head)
			continue;
		low = bytes_u64(head);
		high = bytes_u64(head + 8);
		if (high <= low || high & 7 || depth > high - low)
			continue;
		out->other = (struct lang_other_stack){ .from = s->sp + at, .sp = high - depth };
		out->other_bytes = read_other(&r->memory, out->other.sp, high, &out->other.size);
		for (uint32_t k = 0; k < 2 && out->other_bytes && out->other.size >= 8; k++) {
			if (is_go_call(r, p, bytes_u64(out->other_bytes)))
				return true;
			/* Go 1.24 has saved the frame pointer by then, 1.19 has not. */
			out->other.sp += 8;
			out->other.size -= 8;
			out->other_bytes += 8;
		}
		out->other.size = 0;
	}
	return false;
}

/* Read the stack at @sp for the frame at @from: the end of the memory may be near. */
static bool read_upward(struct lang_reader *r, struct lang_chain *out, uint64_t from, uint64_t sp)
{
	uint32_t size = GO_STACK_MAX;

	out->other = (struct lang_other_stack){ .from = from, .sp = sp };
	do {
		out->other_bytes = read_other(&r->memory, sp, sp + size, &out->other.size);
		size /= 4;
	} while (!out->other_bytes && size >= 512);
	if (!out->other_bytes)
		out->other.size = 0;
	return out->other_bytes;
}

/*
 * Find the goroutine by the frame pointer of systemstack(), which the function that it calls on
 * the stack of the thread keeps below its return address, the word before @at; at its begin it is
 * in the register. Since Go 1.21 the return address of systemstack() is behind it, before that it
 * is the one of the caller, and the address is the next one below.
 */
static bool system_stack_at(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s, uint64_t at, struct lang_chain *out)
{
	const uint64_t fp = at < 16 ? s->fp : bytes_u64(s->stack + at - 16);
	uint8_t frame[GO_FRAME];
	const uint8_t *bytes = fp & 7 || !lang_memory_is_pointer(fp)
				       ? NULL
				       : lang_memory_read(&r->memory, fp + 16 - GO_FRAME, GO_FRAME);
	uint32_t i = GO_FRAME - 8;

	if (!bytes)
		return false;
	memcpy(frame, bytes, sizeof(frame));
	while (i && !is_go_call(r, p, bytes_u64(frame + i)))
		i -= 8;
	if (!i)
		return false;
	return read_upward(r, out, s->sp + at, fp + 16 - GO_FRAME + i);
}

/*
 * C has called Go on a thread of C: the goroutine's stack begins with the frame of cgocallback(),
 * which returns to goexit(). The function that it calls keeps its frame pointer below the return
 * address, the word before @at: that is still the one on the stack of the thread, where C is.
 */
static bool callback_at(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s, uint64_t at, struct lang_chain *out)
{
	const uint64_t fp = at < 16 ? s->fp : bytes_u64(s->stack + at - 16);
	const uint8_t *word = NULL;
	uint64_t from = at;

	while (bytes_u64(s->stack + from) - p->code_type > GO_CALL)
		if ((from += 8) == at + 8ULL * GO_CALLBACK_WORDS)
			return false;
	if (!(fp & 7) && lang_memory_is_pointer(fp))
		word = lang_memory_read(&r->memory, fp + 8, 8);
	return word && called_before(r, bytes_u64(word), p->runtime) == p->runtime &&
	       read_upward(r, out, s->sp + from + 8, fp + 8);
}

/*
 * Read the stack of the goroutine that called the sampled code of C: asmcgocall() calls it on the
 * stack of the thread, and the goroutine's rests until that returns. The same of code of the
 * runtime that systemstack() calls there, and of the stack of C that called Go.
 */
static enum lang_status go_stack(struct lang_reader *r, const struct lang_process *p,
				 const struct lang_sample *s, struct lang_chain *out)
{
	uint32_t tries = 0, size;

	lang_chain_need(s, s->stack_size);
	for (uint64_t at = 8; at + 8ULL * GO_WORDS <= s->stack_size && tries < GO_TRIES; at += 8) {
		uint64_t to = bytes_u64(s->stack + at - 8);
		bool callback = to > GO_CALLBACK && to - p->runtime < GO_CALLBACK;

		if (!callback && !lang_is_eval(p, to))
			continue;
		tries++;
		size = (uint32_t)MIN(at + 8ULL * GO_WORDS, (uint64_t)SAME_MAX) & ~7U;
		prefetch_set_tail(r, s, size);
		if (callback ? !callback_at(r, p, s, at, out)
			     : !go_stack_at(r, p, s, at, out) && !system_stack_at(r, p, s, at, out))
			continue;
		out->same = prefetch_same_up_to(r, s, size);
		out->broken = out->same < s->sp + at + 8ULL * GO_WORDS;
		return LANG_OK;
	}
	return r->memory.error == -EPERM || r->memory.error == -ENOSYS ? LANG_REFUSED
								       : LANG_NO_FRAMES;
}

/* Bytes at the end of the copy that have to be in the stack as it is read. */
#define FAR_SAME 256U

/*
 * Bytes that are read behind an address that was wanted, for the callers of its frame, as far as it
 * is connected to the copy; the same of others, and before these; and the least of all for one.
 */
#define FAR_AHEAD  (8U << 10)
#define FAR_AROUND 4096U
#define FAR_BEFORE 256U
#define FAR_LEAST  960U

#define FAR_PAGE 4096U

/* Unreadable ranges that are skipped; the stack behind the last one is not read. */
#define FAR_CUTS 8

/* The parts of a stack that are read, which ascend, and the bytes that are left for more. */
struct far_parts {
	struct {
		uint64_t begin, end;
	} at[LANG_OTHER_PARTS];
	uint32_t nr, left;
	uint64_t least; /* no part begins before it */
};

/* False: no room. */
static bool far_add(struct far_parts *f, uint64_t begin, uint64_t end)
{
	const uint64_t size = end - begin + sizeof(struct lang_other_part);

	if (f->nr == LANG_OTHER_PARTS || size > f->left)
		return false;
	f->at[f->nr].begin = begin;
	f->at[f->nr++].end = end;
	f->left -= (uint32_t)size;
	return true;
}

/*
 * Add the bytes around @wanted, with the ones behind the last part if that is near: it is one of
 * the @nr last ones, which share the room. False: there is none.
 */
static bool far_around(struct far_parts *f, uint64_t wanted, uint32_t nr)
{
	const uint64_t around = sizeof(struct lang_other_part) + FAR_BEFORE;
	const uint64_t each = MIN(FAR_AROUND + around, (f->left / nr) & ~7ULL);
	const uint64_t until = wanted + each - around;
	uint64_t *end = f->nr ? &f->at[f->nr - 1].end : NULL;

	if (!end || until > *end + each)
		return each > around && far_add(f, MAX(wanted - FAR_BEFORE, f->least), until);
	if (until <= *end)
		return true;
	f->left -= (uint32_t)(until - *end);
	*end = until;
	return true;
}

/* Fill @out with the addresses of @far outside [@sp, @end), ascending; returns how many. */
static uint32_t far_sorted(const uint64_t *far, uint64_t sp, uint64_t end, uint64_t *out)
{
	uint32_t nr = 0, k;

	for (uint32_t i = 0; i < LANG_FAR_MAX; i++) {
		if (far[i] - (sp - LANG_BELOW_MAX) < end - (sp - LANG_BELOW_MAX) ||
		    !lang_memory_is_pointer(far[i]))
			continue;
		for (k = nr++; k && out[k - 1] > far[i]; k--)
			out[k] = out[k - 1];
		out[k] = far[i] & ~7ULL;
	}
	return nr;
}

/* The end of the page that is read last, if the stack is read from its copy to @wanted. */
static uint64_t far_until(uint64_t wanted)
{
	return (wanted + FAR_AHEAD + FAR_PAGE - 1) & ~(FAR_PAGE - 1ULL);
}

/* Choose the parts of the stack of @s, which has a copy up to @end. */
static void far_choose(const struct lang_sample *s, uint64_t end, struct far_parts *f)
{
	uint64_t wanted[LANG_FAR_MAX], room;
	uint32_t nr = far_sorted(s->far, s->sp, end, wanted), i = 0, lower;

	*f = (struct far_parts){ .left = LANG_OTHER_MAX };
	for (; i < nr && wanted[i] < s->sp; i++)
		if (!far_around(f, wanted[i], nr - i))
			return;
	lower = i;
	f->least = end;
	for (uint32_t k = 0; k < LANG_FAR_MAX; k++)
		if (s->far[k] == LANG_FAR_BELOW && lang_memory_is_pointer(s->sp - LANG_BELOW_MAX)) {
			far_add(f, s->sp - LANG_BELOW_MAX, s->sp);
			break;
		}
	if (i == nr)
		return;
	/* The ones that are near enough are read together, if that leaves room for the others. */
	room = f->left - sizeof(struct lang_other_part);
	while (i < nr && far_until(wanted[i]) - end + (nr - i - 1) * FAR_LEAST <= room)
		i++;
	if (i > lower)
		far_add(f, end, far_until(wanted[i - 1]));
	for (; i < nr && far_around(f, wanted[i], nr - i); i++)
		;
}

/* Fill @pieces with the pages of the parts, in @bytes of the memory, each part behind its head. */
static uint32_t far_pieces(const struct far_parts *f, struct lang_piece *pieces, uint32_t bytes)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < f->nr; i++) {
		bytes += (uint32_t)(i ? sizeof(struct lang_other_part) : 0);
		for (uint64_t at = f->at[i].begin; at < f->at[i].end; nr++) {
			uint32_t size = (uint32_t)MIN(FAR_PAGE - at % FAR_PAGE, f->at[i].end - at);

			pieces[nr] = (struct lang_piece){ at, size, bytes };
			bytes += size;
			at += size;
		}
	}
	return nr;
}

/*
 * Cut the part that has @addr, which cannot be read: it ends there. Return false for the last part:
 * its bytes before @addr are enough.
 */
static bool far_cut(struct far_parts *f, uint64_t addr)
{
	uint32_t i = 0;

	while (i < f->nr && addr - f->at[i].begin >= f->at[i].end - f->at[i].begin)
		i++;
	if (i + 1 >= f->nr)
		return false;
	f->at[i].end = addr;
	if (addr == f->at[i].begin)
		memmove(&f->at[i], &f->at[i + 1], (--f->nr - i) * sizeof(f->at[0]));
	return true;
}

/* Put the heads between the parts, of which @left bytes were read, behind @begin in the memory. */
static void far_heads(struct lang_memory *m, const struct far_parts *f, uint64_t left,
		      uint32_t begin, struct lang_chain *out)
{
	uint32_t at = begin, size;

	out->other = (struct lang_other_stack){ .sp = f->at[0].begin };
	out->other_bytes = m->bytes + begin;
	for (uint32_t i = 0; i < f->nr && left; i++) {
		const struct lang_other_part part = { f->at[i].begin,
						      MIN(f->at[i].end - f->at[i].begin, left) };

		size = (uint32_t)part.size + (uint32_t)(i ? sizeof(part) : 0);
		if (i)
			memcpy(m->bytes + at, &part, sizeof(part));
		out->other.size += size;
		out->other.rest += i ? size : 0;
		left -= part.size;
		at += size;
	}
}

/*
 * Read the stack beyond the copy, where samples of this thread wanted it: the copy ends at its
 * limit, or at a page that was never used, which does not end a read; a function of OpenBLAS has
 * 500 KiB of its own. And the bytes below sp. The end of the copy is read with it, or its begin: if
 * that is another one by now, so is the rest. Of a long one either may be: a system call writes to
 * a buffer on the stack.
 */
static void far_stack(struct lang_reader *r, const struct lang_sample *s, struct lang_chain *out)
{
	const uint32_t again = (uint32_t)MIN(s->stack_size, (uint64_t)FAR_SAME) & ~7U;
	const uint64_t end = (s->sp + s->stack_size) & ~7ULL;
	struct lang_memory *m = &r->memory;
	/* A part begins and ends within a page. */
	struct lang_piece pieces[2 + LANG_OTHER_MAX / FAR_PAGE + 2 * LANG_OTHER_PARTS];
	struct far_parts parts;
	bool both, same;
	uint64_t left = 0;
	uint32_t nr, first;
	int whole, nr_cut = 0;

	if (!s->far)
		return;
	far_choose(s, end, &parts);
	if (!parts.nr || (again && end - again < s->sp) ||
	    m->used_bytes > LANG_BYTES_MAX - 2 * FAR_SAME - LANG_OTHER_MAX)
		return;
	pieces[0] = (struct lang_piece){ end - again, again, m->used_bytes };
	if (parts.at[0].begin < s->sp)
		pieces[0].addr = s->sp;
	both = pieces[0].addr > s->sp && s->stack_size >= 2UL * FAR_SAME;
	first = (again != 0) + both;
	if (both)
		pieces[1] = (struct lang_piece){ s->sp, again, m->used_bytes + again };
	do {
		nr = first + far_pieces(&parts, pieces + first, m->used_bytes + again * first);
		whole = m->read(m->ctx, pieces, nr, m->bytes);
	} while (whole >= (int)first && whole < (int)nr && nr_cut++ < FAR_CUTS &&
		 far_cut(&parts, pieces[whole].addr));
	lang_chain_need(s, pieces[0].addr + again - s->sp);
	if (whole <= (int)first)
		return;
	same = !again ||
	       !memcmp(m->bytes + m->used_bytes, s->stack + (pieces[0].addr - s->sp), again);
	if (!same && !(both && !memcmp(m->bytes + m->used_bytes + again, s->stack, again)))
		return;
	for (uint32_t i = first; i < MIN((uint32_t)whole, nr); i++)
		left += pieces[i].size;
	far_heads(m, &parts, left, pieces[first].at, out);
}

/* Pass the result on. */
static void put_work(const struct lang_reader *r, const struct lang_process *p,
		     struct lang_chain *out)
{
	const struct lang_work *w = &r->work;

	out->broken = w->broken;
	out->settled = w->settled;
	out->top = w->v8.top;
	out->rooted = w->rooted;
	out->deep = w->deep;
	out->proven = w->proven;
	out->nr_here = w->nr_here;
	out->loops = w->loops;
	put_frames(r, p, out);
}

/* The frames were taken from the moment of the sample: find their functions. */
static bool finish_moment(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, struct lang_chain *out)
{
	struct lang_memory *m = &r->memory;

	m->strict = false;
	if (!m->missed && out->none == LANG_OK)
		out->none = language_of(p->kind)->functions(r, p, s->process);
	if (m->missed)
		out->none = LANG_NO_READER;
	if (out->none != LANG_OK)
		return true;
	put_work(r, p, out);
	out->same = s->sp + s->stack_size;
	return true;
}

static bool read_chain(struct lang_reader *r, const struct lang_process *p,
		       const struct lang_sample *s, struct lang_chain *out)
{
	struct lang_thread *t = lang_memory_thread(r, s->process, s->tid);
	const struct language *l = language_of(p->kind);
	uint32_t size;

	/* Java has no reader. */
	assert(p->kind == LANG_GO || (p->kind > LANG_NONE && p->kind < LANG_NR));
	out->same = 0;
	out->broken = out->settled = out->rooted = out->deep = out->proven = false;
	out->top = LANG_TOP_UNKNOWN;
	lang_memory_begin(&r->memory);
	r->work.nr = r->work.nr_codes = 0;
	r->work.time_ns = s->time_ns;
	r->work.v8.top = LANG_TOP_UNKNOWN;
	r->work.rooted = r->work.deep = r->work.proven = false;
	r->work.nr_here = 0;
	r->work.loops = (struct lang_loops){ .nr = 0 };
	r->work.first_read[0] = r->work.first_read[1] = NULL;
	if (p->kind == LANG_GO) {
		out->none = go_stack(r, p, s, out);
		return true;
	}
	/* One interpreter for all threads is found without a search. */
	if (!t && !l->find_thread) {
		lang_chain_keep_thread(r, s->process, s->tid, p->runtime, 0);
		t = lang_memory_thread(r, s->process, s->tid);
	}
	if (!t) {
		out->none = LANG_NO_THREAD;
		return false;
	}
	if (!l->part_of_stack)
		lang_chain_need(s, s->stack_size);
	out->none = l->stack(r, p, s, t);
	if (r->memory.moment.bytes)
		return finish_moment(r, p, s, out);
	size = compared(r, p, s);
	prefetch_set_tail(r, s, size);
	if (out->none == LANG_OK)
		out->none = l->functions(r, p, s->process);
	if (out->none != LANG_OK && (r->memory.error == -EPERM || r->memory.error == -ENOSYS))
		out->none = LANG_REFUSED;
	if (out->none == LANG_NO_THREAD)
		t->process = 0;
	if (out->none != LANG_OK)
		return out->none != LANG_NO_THREAD;
	put_work(r, p, out);
	out->same = prefetch_same_up_to(r, s, size);
	prefetch_keep(r, t, size);
	out->planned = l->plan && l->plan(p, t, &out->plan);
	return true;
}

bool lang_chain(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s,
		struct lang_chain *out)
{
	bool known = true;

	out->nr = out->nr_here = out->other.size = 0;
	out->loops = (struct lang_loops){ .nr = 0 };
	out->none = LANG_NO_FRAMES;
	out->planned = false;
	if (p->kind == LANG_NONE)
		lang_memory_begin(&r->memory);
	else
		known = read_chain(r, p, s, out);
	if (!out->other.size)
		far_stack(r, s, out);
	return known;
}

/* Double the pause until the next search, or end it. */
static void set_pause(struct lang_search *search, uint64_t now_ns, bool found)
{
	search->pause_ns =
		found ? 0 : MIN(MAX(2 * search->pause_ns, LANG_SEARCH_NS), LANG_SEARCH_MAX_NS);
	search->until_ns = now_ns + search->pause_ns;
}

bool lang_chain_find_thread(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s)
{
	struct lang_search *search = &r->searches[hash_u64(s->process) & (LANG_SEARCHES - 1)];

	assert(p->kind > LANG_NONE && p->kind < LANG_NR);
	if (search->process != s->process)
		*search = (struct lang_search){ .process = s->process };
	if (r->work.time_ns < search->until_ns)
		return false;
	lang_memory_begin(&r->memory);
	if (languages[p->kind]->find_thread)
		languages[p->kind]->find_thread(r, p, s);
	else
		lang_chain_keep_thread(r, s->process, s->tid, p->runtime, 0);
	set_pause(search, r->work.time_ns, lang_memory_thread(r, s->process, s->tid));
	return true;
}

/* ---- memory of a process, in pieces ---- */

/*
 * Invariants: pieces below m->fetched were requested; they, and
 * LANG_BYTES_BEHIND bytes behind each, have no byte of an earlier sample, which may be another
 * user's.
 */

#define PROBES 8

void lang_memory_begin(struct lang_memory *m)
{
	m->nr = m->fetched = m->used_bytes = m->calls = 0;
	m->error = 0;
	m->any_ahead = false;
	m->strict = m->moment.bytes;
	m->missed = m->missed_code = false;
	m->moment.next = 0;
	m->tail_first = m->tail_end = 0;
	memset(m->tail, 0, sizeof(m->tail));
}

int lang_memory_queue(struct lang_memory *m, uint64_t addr, uint32_t size,
		      enum lang_piece_kind kind)
{
	if (m->nr == LANG_PIECES_MAX || !size || size > LANG_PIECE_MAX ||
	    size > LANG_BYTES_MAX - m->used_bytes || addr < 4096 || addr >= 1ULL << 56)
		return -1;
	m->pieces[m->nr] = (struct lang_piece){ addr, size, m->used_bytes };
	m->read_whole[m->nr] = m->of_moment[m->nr] = false;
	m->kind[m->nr] = (uint8_t)kind;
	/* A piece may end inside a word: the rest of that must not be of an earlier sample. */
	if (size & 7)
		memset(m->bytes + m->used_bytes + (size & ~7U), 0, 8);
	m->used_bytes += (size + 7) & ~7U;
	if (m->used_bytes > LANG_BYTES_MAX)
		m->used_bytes = LANG_BYTES_MAX;
	return (int)m->nr++;
}

static uint32_t slot_of(uint64_t addr)
{
	return (uint32_t)hash_u64(addr) & (LANG_MEMORY_SLOTS - 1);
}

/* Queue a piece that a later lang_memory_want() may need; as lang_memory_want(). */
static int lang_memory_want_ahead(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);
	int piece = lang_memory_queue(m, addr, size, PIECE_AHEAD);

	if (piece < 0)
		return piece;
	if (!m->any_ahead)
		memset(m->slots, 0, sizeof(m->slots));
	m->any_ahead = true;
	/* A piece without a slot would only be read twice. */
	for (int i = 0; i < PROBES && m->slots[at]; i++)
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	m->slots[at] = (uint16_t)(piece + 1);
	return piece;
}

static int find_ahead(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);

	for (int i = 0; i <= PROBES && m->slots[at]; i++) {
		int piece = m->slots[at] - 1;

		if (m->pieces[piece].addr == addr && m->pieces[piece].size == size)
			return piece;
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	}
	return -1;
}

static int want(struct lang_memory *m, uint64_t addr, uint32_t size, enum lang_piece_kind kind)
{
	int piece = m->any_ahead ? find_ahead(m, addr, size) : -1;

	if (piece < 0)
		return lang_memory_queue(m, addr, size, kind);
	m->kind[piece] = (uint8_t)kind;
	return piece;
}

int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_NEEDED);
}

int lang_memory_want_once(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_ONCE);
}

/* Set a piece of the tail. */
static void lang_memory_set_tail(struct lang_memory *m, int i, uint64_t addr, uint32_t size)
{
	assert(i >= 0 && i < LANG_TAIL);
	m->tail[i].addr = addr;
	m->tail[i].size = size;
}

static void queue_tail(struct lang_memory *m)
{
	m->tail_first = m->nr;
	for (int i = 0; i < LANG_TAIL; i++)
		lang_memory_queue(m, m->tail[i].addr, m->tail[i].size, PIECE_TAIL);
	m->tail_end = m->nr;
}

/* Clear a piece that could not be read: decoders may look at it behind the piece before. */
static void clear(struct lang_memory *m, uint32_t piece)
{
	assert(piece < m->nr);
	memset(m->bytes + m->pieces[piece].at, 0, m->pieces[piece].size);
}

/* Find @size bytes at @addr in the moment of the sample, from the piece that was found last on. */
static const uint8_t *in_moment(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	struct lang_moment *t = &m->moment;
	uint32_t at = t->next;

	for (bool again = false;;) {
		struct lang_moment_piece p;
		uint32_t left = t->size - at;

		if (left < sizeof(p)) {
			if (again || !t->next)
				return NULL;
			again = true;
			at = 0;
			continue;
		}
		memcpy(&p, t->bytes + at, sizeof(p));
		left -= sizeof(p);
		if (p.size > left)
			return NULL;
		if (addr - p.addr < p.size && size <= p.size - (addr - p.addr)) {
			t->next = at;
			/* A page that was not there may be another one's by now. */
			m->missed |= p.error;
			return p.error ? NULL : t->bytes + at + sizeof(p) + (addr - p.addr);
		}
		at += sizeof(p) + MIN((p.size + 7) & ~7U, left);
		if (again && at > t->next)
			return NULL;
	}
}

/* Take the next piece from the moment. False: that has it not. */
static bool take_of_moment(struct lang_memory *m, uint32_t piece)
{
	const struct lang_piece *p = &m->pieces[piece];
	const uint8_t *bytes = in_moment(m, p->addr, p->size);

	assert(piece < m->nr);
	if (bytes)
		memcpy(m->bytes + p->at, bytes, p->size);
	m->read_whole[piece] = m->of_moment[piece] = bytes;
	return bytes;
}

static bool fetch_now(struct lang_memory *m, uint32_t end);

/* Read all pieces that are queued, as they were at the sample where that is known. */
static bool fetch_of_moment(struct lang_memory *m)
{
	while (m->fetched < m->nr) {
		uint32_t end = m->fetched;

		if (take_of_moment(m, end)) {
			m->fetched++;
			continue;
		}
		m->missed |= m->strict;
		if (m->missed) {
			clear(m, m->fetched++);
			continue;
		}
		/* The ones behind it that are not there either, in one call. */
		while (++end < m->nr && !take_of_moment(m, end))
			;
		if (!fetch_now(m, end))
			return false;
	}
	return true;
}

/* Read all pieces that are queued. */
static bool fetch(struct lang_memory *m)
{
	if (m->fetched < m->nr)
		memset(m->bytes + m->used_bytes, 0, LANG_BYTES_BEHIND);
	return m->moment.bytes ? fetch_of_moment(m) : fetch_now(m, m->nr);
}

/* Read the pieces up to number @end from the process. */
static bool fetch_now(struct lang_memory *m, uint32_t end)
{
	while (m->fetched < end) {
		const int wanted = (int)MIN(end - m->fetched, LANG_READ_MAX);
		int nr;

		if (m->calls == LANG_CALLS_MAX) {
			memset(m->bytes + m->pieces[m->fetched].at, 0, LANG_BYTES_BEHIND);
			return false;
		}
		m->calls++;
		nr = m->read(m->ctx, m->pieces + m->fetched, (uint32_t)wanted, m->bytes);
		m->error = nr < 0 ? nr : 0;
		nr = MAX(MIN(nr, wanted), 0);
		memset(m->read_whole + m->fetched, true, (size_t)nr);
		m->fetched += (uint32_t)nr;
		if (nr < wanted)
			clear(m, m->fetched++);
	}
	return true;
}

bool lang_memory_fetch(struct lang_memory *m)
{
	if (m->fetched == m->nr)
		return true;
	queue_tail(m);
	return fetch(m);
}

/* Read the tail again, alone. */
static bool lang_memory_fetch_tail(struct lang_memory *m)
{
	queue_tail(m);
	return fetch(m);
}

const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece)
{
	return piece >= 0 && (uint32_t)piece < m->fetched && m->read_whole[piece]
		       ? m->bytes + m->pieces[piece].at
		       : NULL;
}

/* The bytes at @addr if they are in a piece from number @first to @end; NULL. */
static const uint8_t *lang_memory_bytes(const struct lang_memory *m, uint32_t first, uint32_t end,
					uint64_t addr, uint32_t size)
{
	for (uint32_t i = first; i < end; i++) {
		const struct lang_piece *p = &m->pieces[i];
		uint64_t at = addr - p->addr; /* too large if it is below */

		if (at < p->size && size <= p->size - at && m->read_whole[i])
			return m->bytes + p->at + at;
	}
	return NULL;
}

const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	int piece = lang_memory_want(m, addr, size);

	return piece >= 0 && lang_memory_fetch(m) ? lang_memory_piece(m, piece) : NULL;
}

/* The ways in which a thread may be kept. */
static struct lang_thread *thread_ways(struct lang_reader *r, uint32_t process, pid_t tid)
{
	uint64_t hash = hash_u64((uint64_t)process << 32 ^ (uint32_t)tid);

	return &r->threads[hash & (LANG_THREADS - LANG_WAYS)];
}

static struct lang_thread *lang_memory_thread(struct lang_reader *r, uint32_t process, pid_t tid)
{
	struct lang_thread *ways = thread_ways(r, process, tid);

	for (uint32_t i = 0; i < LANG_WAYS; i++)
		if (ways[i].process == process && ways[i].tid == tid)
			return &ways[i];
	return NULL;
}

/* Return a way that is free, or gives way: each time another one. */
static struct lang_thread *free_thread(struct lang_reader *r, uint32_t process, pid_t tid)
{
	struct lang_thread *ways = thread_ways(r, process, tid);

	for (uint32_t i = 0; i < LANG_WAYS; i++)
		if (!ways[i].process)
			return &ways[i];
	return &ways[r->next_way++ & (LANG_WAYS - 1)];
}

struct lang_thread *lang_chain_keep_thread(struct lang_reader *r, uint32_t process, pid_t tid,
					   uint64_t state, uint64_t id)
{
	struct lang_thread *t = lang_memory_thread(r, process, tid);

	if (t && t->state == state && t->id == id)
		return t;
	if (!t)
		t = free_thread(r, process, tid);
	t->process = process;
	t->tid = tid;
	t->state = state;
	t->id = id;
	t->nr_ahead = t->nr_more = t->compared = 0;
	t->nr_others = t->nr_watched = 0;
	t->searched_ns = 0;
	memset(t->again, 0, sizeof(t->again));
	return t;
}

/* ---- the tail ---- */

static const uint8_t *in_tail(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return lang_memory_bytes(m, m->tail_first, m->tail_end, addr, size);
}

/* Read last: the state again, and @size bytes of the stack. */
static void prefetch_set_tail(struct lang_reader *r, const struct lang_sample *s, uint32_t size)
{
	const struct lang_work *w = &r->work;

	for (int i = 0; i < 2; i++)
		lang_memory_set_tail(&r->memory, i, w->again[i].addr,
				     w->first_read[i] ? w->again[i].size : 0);
	lang_memory_set_tail(&r->memory, 2, s->sp, size);
}

/* Return whether nothing was read after the last tail, and it has all that is needed. */
static bool is_tail_enough(const struct lang_reader *r, const struct lang_sample *s, uint32_t size)
{
	const struct lang_memory *m = &r->memory;
	const struct lang_work *w = &r->work;

	if (m->nr != m->tail_end || (size && !in_tail(m, s->sp, size)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(w->again); i++)
		if (w->first_read[i] && !in_tail(m, w->again[i].addr, w->again[i].size))
			return false;
	return true;
}

/*
 * How far the live stack equals the copy: the address behind the last equal word. 0 when the state
 * of the thread has changed since it was read.
 */
static uint64_t prefetch_same_up_to(struct lang_reader *r, const struct lang_sample *s,
				    uint32_t size)
{
	struct lang_memory *m = &r->memory;
	const struct lang_work *w = &r->work;
	const uint8_t *live;
	uint32_t at = 0;

	if (!is_tail_enough(r, s, size) && !lang_memory_fetch_tail(m))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(w->again); i++) {
		const uint8_t *now = in_tail(m, w->again[i].addr, w->again[i].size);

		if (w->first_read[i] && (!now || memcmp(now, w->first_read[i], w->again[i].size)))
			return 0;
	}
	live = size ? in_tail(m, s->sp, size) : NULL;
	lang_chain_need(s, size);
	while (live && at < size && bytes_u64(live + at) == bytes_u64(s->stack + at))
		at += 8;
	return s->sp + at;
}

/*
 * Memory read ahead: at a sample, the pieces that the thread's last samples needed are
 * read in the first call. If nothing else is needed, one call is all.
 */

#define PAGE 4096ULL

/* Larger pieces are texts, which are needed once. */
#define MORE_SIZE 256U

/* A piece that this many samples did not need is not read ahead. */
#define PREFETCH_IDLE_MAX 2

void prefetch_want(struct lang_reader *r, struct lang_thread *t, const struct lang_sample *s)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	if (m->moment.bytes)
		return;
	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		lang_memory_queue(m, t->ahead[i].addr, t->ahead[i].size, PIECE_WINDOW);
		if (++t->idle_ahead[i] > PREFETCH_IDLE_MAX)
			continue;
		t->ahead[nr] = t->ahead[i];
		t->idle_ahead[nr++] = t->idle_ahead[i];
	}
	t->nr_ahead = nr;
	for (uint32_t i = 0; i < t->nr_more; i++)
		w->more[i] = lang_memory_want_ahead(m, t->more[i].addr, t->more[i].size);
	w->first_new = m->nr;
	for (int i = 0; i < 2; i++)
		lang_memory_set_tail(m, i, t->again[i].addr, t->again[i].size);
	lang_memory_set_tail(m, 2, s->sp, (uint32_t)MIN(t->compared, s->stack_size) & ~7U);
}

/* Move the last of @nr pieces to its place by address: near ones are read as one. */
static void insert_sorted(struct lang_ahead *pieces, uint8_t *idle, uint32_t nr)
{
	struct lang_ahead last = pieces[nr - 1];
	uint32_t at = search_split(nr - 1, i, pieces[i].addr <= last.addr);

	assert(nr);
	memmove(pieces + at + 1, pieces + at, (nr - 1 - at) * sizeof(*pieces));
	memmove(idle + at + 1, idle + at, nr - 1 - at);
	pieces[at] = last;
	idle[at] = 0;
}

/* Read this piece ahead at the next sample. */
static void keep_window(const struct lang_memory *m, struct lang_thread *t, uint32_t piece)
{
	const struct lang_piece *p = &m->pieces[piece];

	assert(piece < m->nr);
	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		if (t->ahead[i].addr != p->addr)
			continue;
		t->ahead[i].size = MAX(t->ahead[i].size, p->size);
		t->idle_ahead[i] = 0;
		return;
	}
	if (t->nr_ahead == LANG_AHEAD)
		return;
	t->ahead[t->nr_ahead++] = (struct lang_ahead){ p->addr, p->size };
	insert_sorted(t->ahead, t->idle_ahead, t->nr_ahead);
}

/* Find the bytes of a frame in the windows read so far. */
static const uint8_t *find_frame(const struct lang_memory *m, struct lang_thread *t, uint64_t addr,
				 uint32_t size)
{
	for (uint32_t i = 0; i < m->fetched; i++) {
		const uint8_t *bytes;

		if (m->kind[i] != PIECE_WINDOW)
			continue;
		bytes = lang_memory_bytes(m, i, i + 1, addr, size);
		if (!bytes)
			continue;
		keep_window(m, t, i);
		return bytes;
	}
	return NULL;
}

const uint8_t *prefetch_frame(struct lang_reader *r, struct lang_thread *t, uint64_t addr,
			      uint32_t size, bool alone)
{
	struct lang_memory *m = &r->memory;
	uint32_t page = (uint32_t)(addr & (PAGE - 1));
	const uint8_t *bytes;

	if (m->moment.bytes)
		return lang_memory_read(m, addr, size);
	bytes = find_frame(m, t, addr, size);
	if (bytes)
		return bytes;
	if (alone) {
		lang_memory_queue(m, addr, size, PIECE_WINDOW);
	} else {
		/* Its callers are below it, mostly. */
		lang_memory_queue(m, addr - page, page + size, PIECE_WINDOW);
		if (page < PAGE / 2)
			lang_memory_queue(m, addr - page - PAGE, PAGE, PIECE_WINDOW);
	}
	return lang_memory_fetch(m) ? find_frame(m, t, addr, size) : NULL;
}

/* The piece to read for the bytes @a: the window on them, if there is one. */
static struct lang_ahead around(const struct lang_thread *t, const struct lang_ahead *a)
{
	for (uint32_t i = 0; i < t->nr_ahead; i++)
		if (a->addr >= t->ahead[i].addr &&
		    a->addr + a->size <= t->ahead[i].addr + t->ahead[i].size)
			return t->ahead[i];
	return *a;
}

static void keep_more(const struct lang_memory *m, const struct lang_work *w, struct lang_thread *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_more; i++) {
		bool needed = w->more[i] >= 0 && m->kind[w->more[i]] == PIECE_NEEDED;
		uint8_t idle = needed ? 0 : (uint8_t)(t->idle_more[i] + 1);

		if (idle > PREFETCH_IDLE_MAX)
			continue;
		t->more[nr] = t->more[i];
		t->idle_more[nr++] = idle;
	}
	for (uint32_t i = w->first_new; i < m->nr && nr < LANG_MORE; i++) {
		if (m->kind[i] != PIECE_NEEDED || m->pieces[i].size > MORE_SIZE)
			continue;
		t->more[nr++] = (struct lang_ahead){ m->pieces[i].addr, m->pieces[i].size };
		insert_sorted(t->more, t->idle_more, nr);
	}
	t->nr_more = nr;
}

/* Note the pieces that this sample needed. @compared: bytes of the stack that had to be compared.
 */
static void prefetch_keep(const struct lang_reader *r, struct lang_thread *t, uint32_t compared)
{
	const struct lang_work *w = &r->work;

	keep_more(&r->memory, w, t);
	for (size_t i = 0; i < ARRAY_SIZE(t->again); i++)
		t->again[i] = w->first_read[i] ? around(t, &w->again[i])
					       : (struct lang_ahead){ 0, 0 };
	/* Follow a deeper stack now, a flatter one slowly: another call costs more than 1 KiB. */
	t->compared = compared > t->compared ? compared
					     : t->compared - (t->compared - compared) / 128;
}

/* ---- words for a description ---- */

bool lang_memory_copy(pid_t pid, uint64_t addr, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Set the reason by errno. */
void lang_memory_refused(struct lang_process *p)
{
	p->refused = errno == EPERM || errno == EACCES;
	p->reason = p->refused ? "no permission to read its memory" : "its memory cannot be read";
}

/* Return a word of the process; 0: it cannot be read. */
uint64_t lang_memory_word(pid_t pid, uint64_t addr)
{
	uint64_t word;

	return lang_memory_is_pointer(addr) && lang_memory_copy(pid, addr, &word, 8) ? word : 0;
}
