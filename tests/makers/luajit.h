/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states and the C stack of a made-up LuaJIT, in the memory of cpython.h: functions of given
 * names, and frames of them. For tests of the decoder.
 */
#ifndef TESTS_MAKERS_LUAJIT_H
#define TESTS_MAKERS_LUAJIT_H

#include "tests/makers/cpython.h"
#include "symbols/base/base.h"

#define LUAJITMAKE_LOOP	  0x400000ULL
#define LUAJITMAKE_STACK  (PYMAKE_BASE + PYMAKE_STACK)
#define LUAJITMAKE_SLOTS  256U
#define LUAJITMAKE_INSNS  12U
#define LUAJITMAKE_CALL	  4U  /* the number of the call in each function */
#define LUAJITMAKE_REG	  2U  /* that the call is of */
#define LUAJITMAKE_FROM_C 64U /* bytes on the stack of Lua between a call from C and its caller */

struct luajitmake {
	struct pymake *m;
	const struct luajit_layout *l;
	uint64_t global, state, base,
		pc; /* pc: behind the call of the innermost function; 0: C's */
	uint64_t c_frame;
};

static inline uint64_t luajitmake_object(struct luajitmake *u, uint32_t size, uint8_t type)
{
	uint64_t addr = pymake_take(u->m, size);

	*pymake_at(u->m, addr + 9) = type;
	return addr;
}

static inline uint64_t luajitmake_string(struct luajitmake *u, const char *text)
{
	uint64_t addr = luajitmake_object(u, 64, 4);

	pymake_u32(u->m, addr + u->l->string_length, (uint32_t)strlen(text));
	memcpy(pymake_at(u->m, addr + u->l->string_text), text, strlen(text));
	return addr;
}

/*
 * A function that calls the global "NAME" by its instruction LUAJITMAKE_CALL; each instruction is
 * on another line.
 */
static inline uint64_t luajitmake_function(struct luajitmake *u, const char *source, uint32_t line,
					   const char *name)
{
	const struct luajit_layout *l = u->l;
	uint64_t proto = luajitmake_object(u, l->proto_size + 4 * LUAJITMAKE_INSNS, 7);
	uint64_t code = proto + l->proto_size, constants = pymake_take(u->m, 16) + 8;
	uint64_t lines = pymake_take(u->m, LUAJITMAKE_INSNS), f = luajitmake_object(u, 40, 8);
	uint32_t a = LUAJITMAKE_REG << 8;

	pymake_u64(u->m, f + l->function_pc, code);
	pymake_u32(u->m, proto + l->proto_nr_code, LUAJITMAKE_INSNS);
	pymake_u64(u->m, proto + l->proto_constants, constants);
	pymake_u64(u->m, proto + l->proto_source, luajitmake_string(u, source));
	pymake_u32(u->m, proto + l->proto_line, line);
	pymake_u32(u->m, proto + l->proto_nr_lines, LUAJITMAKE_INSNS);
	pymake_u64(u->m, proto + l->proto_lines, lines);
	pymake_u64(u->m, constants - 8, luajitmake_string(u, name));
	for (uint32_t i = 0; i < LUAJITMAKE_INSNS; i++)
		*pymake_at(u->m, lines + i) = (uint8_t)(i + 1);
	pymake_u32(u->m, code + 4UL * (LUAJITMAKE_CALL - 1), l->op_getglobal | a);
	pymake_u32(u->m, code + 4UL * LUAJITMAKE_CALL, l->op_call | a);
	return f;
}

static inline uint64_t luajitmake_code(const struct luajitmake *u, uint64_t function)
{
	return bytes_u64(pymake_at(u->m, function + u->l->function_pc));
}

/* Have the innermost state run in a C frame at @at of the stack. */
static inline void luajitmake_enter(struct luajitmake *u, uint32_t at)
{
	uint64_t frame = LUAJITMAKE_STACK + at;

	pymake_u64(u->m, frame + u->l->frame_state, u->state);
	pymake_u64(u->m, frame + u->l->frame_previous, u->c_frame);
	pymake_u32(u->m, frame + u->l->frame_results, 1);
	if (u->c_frame)
		pymake_u64(u->m, u->c_frame + u->l->frame_pc, u->pc);
	pymake_u64(u->m, u->state + u->l->state_frame, frame);
	u->c_frame = frame;
}

/* Begin a state, resumed by the one before. */
static inline void luajitmake_state(struct luajitmake *u)
{
	uint64_t stack = pymake_take(u->m, 8 * LUAJITMAKE_SLOTS);

	u->state = luajitmake_object(u, u->l->state_size, 6);
	pymake_u64(u->m, u->state + u->l->state_global, u->global);
	pymake_u64(u->m, u->state + u->l->state_stack, stack);
	pymake_u32(u->m, u->state + u->l->state_stack_size, LUAJITMAKE_SLOTS);
	u->base = stack + 16;
}

static inline void luajitmake_begin(struct luajitmake *u, struct pymake *m,
				    const struct luajit_layout *l)
{
	m->end = PYMAKE_BASE + 4096;
	m->process.kind = LANG_LUAJIT;
	m->process.luajit = *l;
	m->process.runtime = pymake_take(m, 64);
	m->process.eval[0] = (struct lang_range){ LUAJITMAKE_LOOP, LUAJITMAKE_LOOP + 4096 };
	m->process.nr_eval = 1;
	*u = (struct luajitmake){ .m = m, .l = l, .global = pymake_take(m, 512) };
	luajitmake_state(u);
	pymake_u64(m, u->global + l->global_main, u->state);
	pymake_u32(m, u->global + l->global_vm, UINT32_MAX);
}

/* Call @function by the instruction of the innermost one, or from C. */
static inline void luajitmake_call(struct luajitmake *u, uint64_t function, bool from_c)
{
	bool in_c = *pymake_at(u->m, function + u->l->function_kind);

	u->base += from_c ? LUAJITMAKE_FROM_C : 8 * (LUAJITMAKE_REG + 2);
	pymake_u64(u->m, u->base - 16, function | (uint64_t)-9 << 47);
	pymake_u64(u->m, u->base - 8, from_c ? LUAJITMAKE_FROM_C | 1 : u->pc);
	u->pc = luajitmake_code(u, function) + (in_c ? 4 : 4 * (LUAJITMAKE_CALL + 1UL));
	pymake_u64(u->m, u->state + u->l->state_base, u->base);
}

/* A function in C. */
static inline uint64_t luajitmake_in_c(struct luajitmake *u)
{
	uint64_t f = luajitmake_object(u, 40, 8);

	*pymake_at(u->m, f + u->l->function_kind) = 2;
	pymake_u64(u->m, f + u->l->function_pc, pymake_take(u->m, 16));
	return f;
}

#endif
