// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames copied by the kernel: a BPF program that runs at each sample, in the sampling interrupt,
 * copies the state of the thread and its chain of frames, and wakes the reader where that is not
 * enough.
 *
 * Runs on: the main thread (load), the builder (areas), a reader (plans, copies). The program of a
 * CPU and the reader of that CPU never run at the same time: the reader is pinned to it.
 *
 * The reader then needs no wake-up at each sample, and no call to read the memory. It has a plan
 * for each thread that it knows, and a table of the code that it knows from copies. A sample
 * with other code, and one of an interpreter's thread without a plan, wakes it, before the thread
 * runs on. Needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN; Linux 5.8 (bpf_ringbuf_output(), the
 * capabilities). man 2 bpf, <linux/bpf.h>.
 */
#include "sampler/reader/reader.h"

#include <assert.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/script/script.h"

/* A copy may begin at the end of the ring: bytes behind it are for that. */
#define COPY_LIMIT (COPIES_RING + COPY_MAX - 1024)

_Static_assert(sizeof(struct copy_head) % 8 == 0 && sizeof(struct lang_moment_piece) == 16, "");
_Static_assert(COPIES_THREADS == 1ULL << (32 - COPIES_HASH_SHIFT), "copies_slot()");
_Static_assert(COPIES_CODES == 2ULL << (32 - COPIES_CODE_SHIFT), "copies_code_slot()");

/* ---- the program ---- */

#define PROGRAM_MAX 512U
#define LABELS	    16U
#define JUMPS_MAX   64U

struct program {
	struct bpf_insn insns[PROGRAM_MAX];
	uint32_t nr, nr_jumps;
	uint32_t labels[LABELS];
	struct {
		uint32_t at, label;
	} jumps[JUMPS_MAX];
};

static void put(struct program *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	assert(p->nr < PROGRAM_MAX);
	p->insns[p->nr++] = (struct bpf_insn){
		.code = code, .dst_reg = dst & 15, .src_reg = src & 15, .off = off, .imm = imm
	};
}

static void move(struct program *p, uint8_t dst, uint8_t src)
{
	put(p, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void set(struct program *p, uint8_t dst, int32_t value)
{
	put(p, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static void add(struct program *p, uint8_t dst, uint8_t src)
{
	put(p, BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0);
}

/* @op: BPF_ADD, BPF_AND, BPF_MUL ... */
static void compute(struct program *p, uint8_t op, uint8_t dst, int32_t value)
{
	put(p, BPF_ALU64 | op | BPF_K, dst, 0, 0, value);
}

/* @size: BPF_W, BPF_DW. */
static void load(struct program *p, uint8_t size, uint8_t dst, uint8_t base, int at)
{
	put(p, BPF_LDX | BPF_MEM | size, dst, base, (int16_t)at, 0);
}

static void store(struct program *p, uint8_t size, uint8_t base, int at, uint8_t src)
{
	put(p, BPF_STX | BPF_MEM | size, base, src, (int16_t)at, 0);
}

static void call(struct program *p, int32_t function)
{
	put(p, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* Jump to @label if @dst is @op (BPF_JEQ, BPF_JGT ...) @value. */
static void jump_if(struct program *p, uint8_t op, uint8_t dst, int32_t value, uint32_t label)
{
	assert(p->nr_jumps < JUMPS_MAX && label < LABELS);
	p->jumps[p->nr_jumps].at = p->nr;
	p->jumps[p->nr_jumps++].label = label;
	put(p, BPF_JMP | op | BPF_K, dst, 0, 0, value);
}

static void jump_if_differ(struct program *p, uint8_t a, uint8_t b, uint32_t label)
{
	jump_if(p, BPF_JNE, a, 0, label);
	p->insns[p->nr - 1].code |= BPF_X;
	p->insns[p->nr - 1].src_reg = b & 15;
}

static void label(struct program *p, uint32_t which)
{
	p->labels[which] = p->nr;
}

static void link_jumps(struct program *p)
{
	for (uint32_t i = 0; i < p->nr_jumps; i++)
		p->insns[p->jumps[i].at].off =
			(int16_t)((int)p->labels[p->jumps[i].label] - (int)p->jumps[i].at - 1);
}

/* Registers that calls keep, and words on the stack. */
enum { AREA = BPF_REG_6, FRAME = BPF_REG_7, AT = BPF_REG_8, THREAD = BPF_REG_9 };
enum { KEY = -8, START = -16, WORD = -24, COUNT = -32, UNKNOWN = -40, PROCESS = -48 };
enum { CODE = -56, CODE_KEY = -64, OTHER = -72, PERIOD = -80 };

/* Bytes by which the name of a function is known: its length and hash. */
#define COPY_NAME 16
enum { OUT, DONE, LOOP, NOT_WRAPPED, NO_PLAN, WAKE };

#define PLAN(member) ((int)(offsetof(struct copied_thread, plan.member)))
#define BYTES	     ((int)(offsetof(struct copier_area, bytes)))

/* AREA + AT, in @dst; the bytes there begin behind BYTES, which has no room in an offset. */
static void here(struct program *p, uint8_t dst)
{
	move(p, dst, AREA);
	add(p, dst, AT);
	compute(p, BPF_ADD, dst, BYTES);
}

/* Load the size of a piece, which is @size, or which the plan has at @size_at, at most @mask. */
static void load_size(struct program *p, int32_t size, int size_at, int32_t mask)
{
	if (size) {
		set(p, BPF_REG_2, size);
		return;
	}
	load(p, BPF_W, BPF_REG_2, THREAD, size_at);
	compute(p, BPF_AND, BPF_REG_2, mask);
}

/* Copy bytes, their number in register 2, from the address in register 3 to the piece at
 * register 1. No branch follows, as each one doubles the work of the verifier. The piece is at
 * register 4 then.
 */
static void read_piece(struct program *p)
{
	store(p, BPF_DW, BPF_REG_1, offsetof(struct lang_moment_piece, addr), BPF_REG_3);
	store(p, BPF_W, BPF_REG_1, offsetof(struct lang_moment_piece, size), BPF_REG_2);
	compute(p, BPF_ADD, BPF_REG_1, sizeof(struct lang_moment_piece));
	call(p, BPF_FUNC_probe_read_user);
	here(p, BPF_REG_4);
	store(p, BPF_W, BPF_REG_4, offsetof(struct lang_moment_piece, error), BPF_REG_0);
}

/* Go on behind a piece with bytes, their number in register 2. */
static void pass_bytes(struct program *p)
{
	compute(p, BPF_ADD, BPF_REG_2, sizeof(struct lang_moment_piece) + 7);
	compute(p, BPF_AND, BPF_REG_2, ~7);
	add(p, AT, BPF_REG_2);
}

/* Copy the bytes at the address in register 3 to a piece at AT, with the result of the read. */
static void copy_piece(struct program *p, int32_t size, int size_at, int32_t mask)
{
	here(p, BPF_REG_1);
	load_size(p, size, size_at, mask);
	read_piece(p);
}

/* Go on behind the piece. */
static void pass_piece(struct program *p, int32_t size, int size_at, int32_t mask)
{
	load_size(p, size, size_at, mask);
	pass_bytes(p);
}

/* Read the word at the address in register 3 into @dst, or 0 if that fails. */
static void read_word(struct program *p, uint8_t dst)
{
	move(p, BPF_REG_1, BPF_REG_10);
	compute(p, BPF_ADD, BPF_REG_1, WORD);
	set(p, BPF_REG_2, 8);
	call(p, BPF_FUNC_probe_read_user);
	load(p, BPF_DW, dst, BPF_REG_10, WORD);
}

/* Have THREAD at the offset in register 1 behind the first one; its id in register 2. */
static void load_thread(struct program *p)
{
	move(p, THREAD, AREA);
	add(p, THREAD, BPF_REG_1);
	compute(p, BPF_ADD, THREAD, offsetof(struct copier_area, threads));
	load(p, BPF_W, BPF_REG_2, THREAD, offsetof(struct copied_thread, tid));
}

/* Have the entry of the map (@map_fd -1: the one in register 1) with the key in register 0. */
static void look_up(struct program *p, int map_fd)
{
	store(p, BPF_W, BPF_REG_10, KEY, BPF_REG_0);
	move(p, BPF_REG_2, BPF_REG_10);
	compute(p, BPF_ADD, BPF_REG_2, KEY);
	if (map_fd >= 0) {
		put(p, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd);
		put(p, 0, 0, 0, 0, 0);
	}
	call(p, BPF_FUNC_map_lookup_elem);
	jump_if(p, BPF_JEQ, BPF_REG_0, 0, OUT);
}

/* Set @dst to 1 if @a and @b differ, else to 0, without a branch; clobbers @a. */
static void set_if_differ(struct program *p, uint8_t dst, uint8_t a, uint8_t b)
{
	put(p, BPF_ALU64 | BPF_XOR | BPF_X, a, b, 0, 0);
	move(p, dst, a);
	put(p, BPF_ALU64 | BPF_NEG, dst, 0, 0, 0);
	put(p, BPF_ALU64 | BPF_OR | BPF_X, dst, a, 0, 0);
	compute(p, BPF_RSH, dst, 63);
}

/* Find the area of this CPU, and the plan of this thread; else go to NO_PLAN. */
static void find_thread(struct program *p, int cpus_fd)
{
	load(p, BPF_DW, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_perf_event_data, sample_period));
	store(p, BPF_DW, BPF_REG_10, PERIOD, BPF_REG_2);
	call(p, BPF_FUNC_get_current_pid_tgid);
	/* The lower half is the id of the thread. */
	put(p, BPF_ALU | BPF_MOV | BPF_X, FRAME, BPF_REG_0, 0, 0);
	jump_if(p, BPF_JEQ, FRAME, 0, OUT);
	compute(p, BPF_RSH, BPF_REG_0, 32);
	store(p, BPF_DW, BPF_REG_10, PROCESS, BPF_REG_0);
	call(p, BPF_FUNC_get_smp_processor_id);
	look_up(p, cpus_fd);
	/* The one entry of the area. */
	move(p, BPF_REG_1, BPF_REG_0);
	set(p, BPF_REG_0, 0);
	look_up(p, -1);
	move(p, AREA, BPF_REG_0);
	put(p, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_1, FRAME, 0, 0);
	put(p, BPF_ALU | BPF_MUL | BPF_K, BPF_REG_1, 0, 0, (int32_t)COPIES_HASH);
	put(p, BPF_ALU | BPF_RSH | BPF_K, BPF_REG_1, 0, 0, COPIES_HASH_SHIFT);
	compute(p, BPF_AND, BPF_REG_1, ~1);
	compute(p, BPF_MUL, BPF_REG_1, sizeof(struct copied_thread));
	load_thread(p);
	/* The second one if the first is another's. */
	set_if_differ(p, BPF_REG_3, BPF_REG_2, FRAME);
	compute(p, BPF_MUL, BPF_REG_3, sizeof(struct copied_thread));
	add(p, BPF_REG_1, BPF_REG_3);
	load_thread(p);
	jump_if_differ(p, BPF_REG_2, FRAME, NO_PLAN);
}

/* Begin a copy: its head, but for the size. */
static void begin_copy(struct program *p)
{
	load(p, BPF_DW, AT, AREA, offsetof(struct copier_area, written));
	compute(p, BPF_AND, AT, COPIES_RING - 1);
	store(p, BPF_DW, BPF_REG_10, START, AT);
	call(p, BPF_FUNC_ktime_get_ns);
	here(p, BPF_REG_1);
	store(p, BPF_DW, BPF_REG_1, offsetof(struct copy_head, time_ns), BPF_REG_0);
	store(p, BPF_W, BPF_REG_1, offsetof(struct copy_head, tid), FRAME);
	compute(p, BPF_ADD, AT, sizeof(struct copy_head));
}

/*
 * Copy the state, the words and the C frame; then the address of the innermost frame is in FRAME.
 * Without a C frame the pointer to it is read twice.
 */
static void copy_state(struct program *p)
{
	load(p, BPF_DW, BPF_REG_3, THREAD, PLAN(state));
	copy_piece(p, 0, PLAN(state_size), COPY_STATE_MAX);
	pass_piece(p, 0, PLAN(state_size), COPY_STATE_MAX);
	for (uint32_t i = 0; i < LANG_PLAN_WORDS; i++) {
		load(p, BPF_DW, BPF_REG_3, THREAD, PLAN(words) + 8 * (int)i);
		copy_piece(p, 8, 0, 0);
		pass_piece(p, 8, 0, 0);
	}
	load(p, BPF_DW, BPF_REG_3, THREAD, PLAN(current));
	read_word(p, FRAME);
	move(p, BPF_REG_3, FRAME);
	copy_piece(p, 0, PLAN(cframe_size), COPY_FRAME_MAX);
	pass_piece(p, 0, PLAN(cframe_size), COPY_FRAME_MAX);
	load(p, BPF_DW, BPF_REG_3, THREAD, PLAN(cframe_mask));
	put(p, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_3, FRAME, 0, 0);
	load(p, BPF_DW, BPF_REG_1, THREAD, PLAN(cframe_at));
	add(p, BPF_REG_3, BPF_REG_1);
	read_word(p, FRAME);
}

/* Load the word of the piece at register 4 that is at the offset of the plan at @offset. */
static void load_of_piece(struct program *p, uint8_t dst, int offset)
{
	load(p, BPF_W, BPF_REG_5, THREAD, offset);
	compute(p, BPF_AND, BPF_REG_5, COPY_FRAME_MAX);
	add(p, BPF_REG_5, BPF_REG_4);
	load(p, BPF_DW, dst, BPF_REG_5, sizeof(struct lang_moment_piece));
}

/*
 * Set register 3 to 1 if the key in register 1 is not in the table, else to 0: as
 * copies_code_slot(). Clobbers 2 and 5.
 */
static void look_up_code(struct program *p)
{
	move(p, BPF_REG_2, BPF_REG_1);
	compute(p, BPF_RSH, BPF_REG_2, 4);
	put(p, BPF_ALU | BPF_MUL | BPF_K, BPF_REG_2, 0, 0, (int32_t)COPIES_HASH);
	put(p, BPF_ALU | BPF_RSH | BPF_K, BPF_REG_2, 0, 0, COPIES_CODE_SHIFT);
	compute(p, BPF_LSH, BPF_REG_2, 4);
	add(p, BPF_REG_2, AREA);
	compute(p, BPF_ADD, BPF_REG_2, offsetof(struct copier_area, codes));
	load(p, BPF_DW, BPF_REG_3, BPF_REG_2, 0);
	load(p, BPF_DW, BPF_REG_2, BPF_REG_2, 8);
	set_if_differ(p, BPF_REG_5, BPF_REG_3, BPF_REG_1);
	set_if_differ(p, BPF_REG_3, BPF_REG_2, BPF_REG_1);
	put(p, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_3, BPF_REG_5, 0, 0);
}

/* Look whether the function of the frame at register 4 is one that lasts: OTHER is 0, else 1. */
static void check_code(struct program *p)
{
	load_of_piece(p, BPF_REG_1, PLAN(frame_code));
	store(p, BPF_DW, BPF_REG_10, CODE, BPF_REG_1);
	load(p, BPF_W, BPF_REG_2, THREAD, offsetof(struct copied_thread, process));
	compute(p, BPF_LSH, BPF_REG_2, COPIES_PROCESS_SHIFT);
	put(p, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	store(p, BPF_DW, BPF_REG_10, CODE_KEY, BPF_REG_1);
	look_up_code(p);
	store(p, BPF_DW, BPF_REG_10, OTHER, BPF_REG_3);
}

/* Go on with the key: as copies_mix(). The word is in register @word. */
static void mix(struct program *p, uint8_t word)
{
	compute(p, BPF_MUL, BPF_REG_1, COPIES_MIX);
	put(p, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, word, 0, 0);
}

/* Set register 2 to @size, or to the size of a head (0), or, with OTHER 0, to none. */
static void load_other_size(struct program *p, int32_t size)
{
	load_size(p, size, PLAN(head_size), COPY_FRAME_MAX);
	load(p, BPF_DW, BPF_REG_5, BPF_REG_10, OTHER);
	compute(p, BPF_AND, BPF_REG_5, 1);
	put(p, BPF_ALU64 | BPF_MUL | BPF_X, BPF_REG_2, BPF_REG_5, 0, 0);
	compute(p, BPF_AND, BPF_REG_2, COPY_FRAME_MAX);
}

/* As copy_piece() and pass_piece(), of that size: no bytes are read and copied with OTHER 0. */
static void copy_other(struct program *p, int32_t size)
{
	here(p, BPF_REG_1);
	load_other_size(p, size);
	read_piece(p);
}

static void pass_other(struct program *p, int32_t size)
{
	load_other_size(p, size);
	pass_bytes(p);
}

/*
 * Copy the head of a function that is not known to last, and its name's hash, and look for the key
 * of both: code that was freed by the time at which the copy is decoded is known by these.
 */
static void copy_other_code(struct program *p)
{
	load(p, BPF_DW, BPF_REG_3, BPF_REG_10, CODE);
	load(p, BPF_DW, BPF_REG_1, THREAD, PLAN(code_mask));
	put(p, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
	load(p, BPF_DW, BPF_REG_1, THREAD, PLAN(head_at));
	add(p, BPF_REG_3, BPF_REG_1);
	copy_other(p, 0);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, CODE_KEY);
	for (uint32_t i = 0; i < LANG_PLAN_HEAD; i++) {
		load_of_piece(p, BPF_REG_2, PLAN(head_words) + 4 * (int)i);
		mix(p, BPF_REG_2);
	}
	store(p, BPF_DW, BPF_REG_10, CODE_KEY, BPF_REG_1);
	load_of_piece(p, BPF_REG_1, PLAN(head_name));
	store(p, BPF_DW, BPF_REG_10, CODE, BPF_REG_1);
	pass_other(p, 0);
	load(p, BPF_DW, BPF_REG_3, BPF_REG_10, CODE);
	load(p, BPF_DW, BPF_REG_1, THREAD, PLAN(name_at));
	add(p, BPF_REG_3, BPF_REG_1);
	copy_other(p, COPY_NAME);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, CODE_KEY);
	for (int i = 0; i < 2; i++) {
		load(p, BPF_DW, BPF_REG_2, BPF_REG_4,
		     (int)sizeof(struct lang_moment_piece) + 8 * i);
		mix(p, BPF_REG_2);
	}
	look_up_code(p);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, OTHER);
	put(p, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, UNKNOWN);
	put(p, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_1, BPF_REG_3, 0, 0);
	store(p, BPF_DW, BPF_REG_10, UNKNOWN, BPF_REG_1);
	pass_other(p, COPY_NAME);
}

/* Copy the frames. The kernel clears bytes that it cannot read. */
static void copy_frames(struct program *p)
{
	set(p, BPF_REG_1, 0);
	store(p, BPF_DW, BPF_REG_10, COUNT, BPF_REG_1);
	store(p, BPF_DW, BPF_REG_10, UNKNOWN, BPF_REG_1);
	label(p, LOOP);
	jump_if(p, BPF_JEQ, FRAME, 0, DONE);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, COUNT);
	jump_if(p, BPF_JGT, BPF_REG_1, (int32_t)COPIED_FRAMES_MAX - 1, DONE);
	compute(p, BPF_ADD, BPF_REG_1, 1);
	store(p, BPF_DW, BPF_REG_10, COUNT, BPF_REG_1);
	jump_if(p, BPF_JGT, AT, COPY_LIMIT, DONE);
	move(p, BPF_REG_3, FRAME);
	copy_piece(p, 0, PLAN(frame_size), COPY_FRAME_MAX);
	/* The caller's frame. */
	load_of_piece(p, FRAME, PLAN(frame_previous));
	check_code(p);
	pass_piece(p, 0, PLAN(frame_size), COPY_FRAME_MAX);
	copy_other_code(p);
	jump_if(p, BPF_JA, 0, 0, LOOP);
}

/* End the copy: its size, and the place of the next one. With unknown code go on to WAKE. */
static void end_copy(struct program *p)
{
	label(p, DONE);
	load(p, BPF_DW, BPF_REG_2, BPF_REG_10, START);
	compute(p, BPF_AND, BPF_REG_2, COPIES_RING - 1);
	move(p, BPF_REG_1, AREA);
	add(p, BPF_REG_1, BPF_REG_2);
	compute(p, BPF_ADD, BPF_REG_1, BYTES);
	move(p, BPF_REG_3, AT);
	put(p, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
	store(p, BPF_W, BPF_REG_1, offsetof(struct copy_head, size), BPF_REG_3);
	load(p, BPF_DW, FRAME, BPF_REG_10, UNKNOWN);
	store(p, BPF_DW, BPF_REG_1, offsetof(struct copy_head, unknown), FRAME);
	load(p, BPF_DW, BPF_REG_4, AREA, offsetof(struct copier_area, written));
	put(p, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_4, BPF_REG_2, 0, 0);
	jump_if(p, BPF_JLT, AT, COPIES_RING, NOT_WRAPPED);
	set(p, AT, COPIES_RING);
	label(p, NOT_WRAPPED);
	add(p, BPF_REG_4, AT);
	store(p, BPF_DW, AREA, offsetof(struct copier_area, written), BPF_REG_4);
	jump_if(p, BPF_JNE, FRAME, 0, WAKE);
	jump_if(p, BPF_JA, 0, 0, OUT);
}

/* A thread without a plan: go on to WAKE if its process is to be read, else to OUT. */
static void look_at_process(struct program *p)
{
	label(p, NO_PLAN);
	load(p, BPF_DW, BPF_REG_2, BPF_REG_10, PROCESS);
	move(p, BPF_REG_1, BPF_REG_2);
	compute(p, BPF_AND, BPF_REG_1, COPIES_PROCESSES - 1);
	compute(p, BPF_LSH, BPF_REG_1, 2);
	add(p, BPF_REG_1, AREA);
	compute(p, BPF_ADD, BPF_REG_1, offsetof(struct copier_area, processes));
	load(p, BPF_W, BPF_REG_1, BPF_REG_1, 0);
	jump_if(p, BPF_JEQ, BPF_REG_1, COPIES_READ_ALL, WAKE);
	compute(p, BPF_LSH, BPF_REG_2, 1);
	put(p, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	jump_if(p, BPF_JEQ, BPF_REG_1, 0, OUT);
	jump_if(p, BPF_JEQ, BPF_REG_1, 1, WAKE);
	load(p, BPF_DW, BPF_REG_1, AREA, offsetof(struct copier_area, any_new));
	jump_if(p, BPF_JEQ, BPF_REG_1, 0, OUT);
}

/* Wake the reader by a record in its ring, which the reader drops. */
static void wake_reader(struct program *p, int rings_fd)
{
	label(p, WAKE);
	load(p, BPF_DW, BPF_REG_1, BPF_REG_10, PERIOD);
	jump_if(p, BPF_JEQ, BPF_REG_1, COPIER_QUIET_PERIOD, OUT);
	call(p, BPF_FUNC_get_smp_processor_id);
	look_up(p, rings_fd);
	move(p, BPF_REG_1, BPF_REG_0);
	move(p, BPF_REG_2, BPF_REG_10);
	compute(p, BPF_ADD, BPF_REG_2, PROCESS);
	set(p, BPF_REG_3, 8);
	set(p, BPF_REG_4, BPF_RB_FORCE_WAKEUP);
	call(p, BPF_FUNC_ringbuf_output);
	label(p, OUT);
	/* The sample is wanted. */
	set(p, BPF_REG_0, 1);
	put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void assemble(struct program *p, int cpus_fd, int rings_fd)
{
	memset(p, 0, sizeof(*p));
	find_thread(p, cpus_fd);
	begin_copy(p);
	copy_state(p);
	copy_frames(p);
	end_copy(p);
	look_at_process(p);
	wake_reader(p, rings_fd);
	link_jumps(p);
}

/* ---- the copier: the program, the areas of the CPUs ---- */

#ifndef PROC_PID_INIT_INO
#define PROC_PID_INIT_INO 0xEFFFFFFCU
#endif

/* Of a kernel for x86-64 (CONFIG_NR_CPUS); a CPU beyond it is read without copies. */
#define CPUS_MAX 8192U

static int bpf(int command, union bpf_attr *attr)
{
	int rc = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return rc < 0 ? -errno : rc;
}

/* Make an array of one area, or (@type BPF_MAP_TYPE_RINGBUF) a ring. */
static int new_map(uint32_t type)
{
	const bool is_ring = type == BPF_MAP_TYPE_RINGBUF;
	union bpf_attr attr = {
		.map_type = type,
		.key_size = is_ring ? 0 : 4,
		.value_size = is_ring ? 0 : sizeof(struct copier_area),
		.max_entries = is_ring ? (uint32_t)sysconf(_SC_PAGESIZE) : 1,
		.map_flags = is_ring ? 0 : BPF_F_MMAPABLE,
		.map_name = "proftop_copies",
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

/* Make the array of the maps of this @type of all CPUs, none of which has one. */
static int new_cpus(uint32_t type)
{
	int one = new_map(type), rc;
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
		.key_size = 4,
		.value_size = 4,
		.max_entries = CPUS_MAX,
		.inner_map_fd = (uint32_t)one,
		.map_name = "proftop_cpus",
	};

	if (one < 0)
		return one;
	rc = bpf(BPF_MAP_CREATE, &attr);
	close(one);
	return rc;
}

static int load_program(int cpus_fd, int rings_fd)
{
	struct program p;
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (uintptr_t)p.insns,
		/* bpf_probe_read_user() is for programs under the GPL. */
		.license = (uintptr_t) "GPL",
		.prog_name = "proftop_copy",
	};

	assemble(&p, cpus_fd, rings_fd);
	attr.insn_cnt = p.nr;
	return bpf(BPF_PROG_LOAD, &attr);
}

/* The program sees the ids of threads of the first PID namespace. */
static bool is_first_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == PROC_PID_INIT_INO;
}

/* Up to Linux 5.10 arrays and programs count as locked memory of the user. */
static bool lift_limit(void)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	return !setrlimit(RLIMIT_MEMLOCK, &none);
}

static void close_fd(int *fd)
{
	if (*fd > 0)
		close(*fd);
	*fd = 0;
}

void copier_close(struct copier *c)
{
	close_fd(&c->cpus_fd);
	close_fd(&c->rings_fd);
	close_fd(&c->program_fd);
}

int copier_load(struct copier *c)
{
	*c = (struct copier){ .cpus_fd = 0 };
	if (!is_first_namespace())
		return -ENOTSUP;
	c->cpus_fd = new_cpus(BPF_MAP_TYPE_ARRAY);
	if (c->cpus_fd == -EPERM && lift_limit())
		c->cpus_fd = new_cpus(BPF_MAP_TYPE_ARRAY);
	if (c->cpus_fd > 0)
		c->rings_fd = new_cpus(BPF_MAP_TYPE_RINGBUF);
	if (c->rings_fd > 0)
		c->program_fd = load_program(c->cpus_fd, c->rings_fd);
	if (c->program_fd <= 0) {
		int rc = MIN(MIN(c->cpus_fd, c->rings_fd), c->program_fd);

		copier_close(c);
		return rc;
	}
	return 0;
}

/* Make a map of the @type, and put it in for the CPU. */
static int set_map(int array_fd, uint32_t cpu, uint32_t type)
{
	int map = new_map(type), rc;
	uint32_t fd = (uint32_t)map;
	union bpf_attr attr = {
		.map_fd = (uint32_t)array_fd,
		.key = (uintptr_t)&cpu,
		.value = (uintptr_t)&fd,
	};

	if (map < 0)
		return map;
	rc = bpf(BPF_MAP_UPDATE_ELEM, &attr);
	if (!rc)
		return map;
	close(map);
	return rc;
}

static void drop_map(int array_fd, uint32_t cpu)
{
	union bpf_attr attr = { .map_fd = (uint32_t)array_fd, .key = (uintptr_t)&cpu };

	bpf(BPF_MAP_DELETE_ELEM, &attr);
}

int copier_set_cpu(const struct copier *c, int cpu, int fds[2])
{
	int ring_fd, area_fd;

	drop_map(c->cpus_fd, (uint32_t)cpu);
	drop_map(c->rings_fd, (uint32_t)cpu);
	if (!fds)
		return 0;
	ring_fd = set_map(c->rings_fd, (uint32_t)cpu, BPF_MAP_TYPE_RINGBUF);
	if (ring_fd < 0)
		return ring_fd;
	area_fd = set_map(c->cpus_fd, (uint32_t)cpu, BPF_MAP_TYPE_ARRAY);
	if (area_fd < 0) {
		close(ring_fd);
		return area_fd;
	}
	fds[0] = area_fd;
	fds[1] = ring_fd;
	return 0;
}
