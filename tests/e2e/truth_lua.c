// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of Lua by lua_getinfo() on each state that runs. See tests/lang_truth_trap.h.
 *
 * luaopen_truth(), which the work calls, replaces coroutine.resume() and coroutine.wrap() by own
 * ones, which note the states.
 */
#include "tests/lang_truth_trap.h"

#include <setjmp.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#ifdef LUAJIT_FRAME_AT
/*
 * LuaJIT has the frame in a register while its interpreter runs, which is the function with an
 * unwind table that called luaopen_truth().
 */
struct dwarf_eh_bases {
	void *tbase, *dbase, *func;
};
const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

static uintptr_t loop_start, loop_size;

static void find_loop(void *pc)
{
	struct dwarf_eh_bases bases;
	const char *fde = _Unwind_Find_FDE(pc, &bases);
	uint32_t size;

	/* Behind its length, the offset of the CIE and the address. */
	memcpy(&size, fde + 12, sizeof(size));
	loop_start = (uintptr_t)bases.func;
	loop_size = size;
}
#endif

#define STATES 64
#define CHUNK  64 /* bytes of a chunk that is no file */

static lua_State *volatile running[STATES];
static volatile int nr_running;

/* Put a call if it is of Lua. @innermost: its instruction may be in a register. */
static void put_call(struct truth_entry *e, const lua_Debug *ar, int innermost)
{
	const char *file = ar->source, *end;
	size_t size = strlen(file);

	if (strcmp(ar->what, "Lua") != 0 && strcmp(ar->what, "main") != 0)
		return;
	if (size > 1 && (*file == '@' || *file == '=')) {
		file++;
		size--;
	} else {
		size = size < CHUNK ? size : CHUNK;
		end = memchr(file, '\n', size);
		size = end && end > file ? (size_t)(end - file) : size;
	}
	truth_put(e, (uint32_t)ar->linedefined, NULL, 0, "", 0, file, size,
		  innermost || ar->currentline <= 0 ? TRUTH_ANY_LINE : ar->currentline);
}

/* The signal may have come while a call was being made: its parts are wild then. */
static sigjmp_buf in_walk;

static void on_fault(int sig)
{
	siglongjmp(in_walk, sig);
}

static void walk_states(struct truth_entry *e, int innermost)
{
	for (int i = nr_running; i-- > 0;) {
		lua_State *L = running[i];
		lua_Debug ar;

		/* It has not gone on yet, or is about to stop. */
		if (lua_status(L) == LUA_YIELD) {
			e->cut = 1;
			return;
		}
		for (int level = 0; lua_getstack(L, level, &ar); level++) {
			/* The number of tail calls of 5.1 is wild in a call that is being made. */
			e->cut |= level == TRUTH_FRAMES;
			if (e->cut)
				return;
			/* 5.1 stores the line's instruction in the innermost call: not now. */
			const char *parts = LUA_VERSION_NUM == 501 && !level ? "S" : "Sl";

			ar.currentline = 0;
			if (!lua_getinfo(L, parts, &ar))
				continue;
			/* A function of Lua without a line: its call is being made. */
			if ((*ar.what == 'L' || *ar.what == 'm') && ar.currentline < 0)
				e->cut = 1;
			put_call(e, &ar, innermost);
			innermost = 0;
		}
	}
}

static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	int innermost = LUA_VERSION_NUM == 501 || LUA_VERSION_NUM == 504;
	/* For the time of the walk a state of LuaJIT has its frame. */
	static void **base, *kept;

	base = NULL;
#ifdef LUAJIT_FRAME_AT
	const greg_t *regs = context->uc_mcontext.gregs;

	if (nr_running && (uintptr_t)regs[REG_RIP] - loop_start < loop_size) {
		base = (void **)((char *)running[nr_running - 1] + LUAJIT_FRAME_AT);
		kept = *base;
		*base = (void *)regs[REG_RDX];
	}
#else
	(void)context;
#endif
	if (sigsetjmp(in_walk, 1))
		e->cut = 1;
	else
		walk_states(e, innermost);
	if (base)
		*base = kept;
}

static int resume(lua_State *L, lua_State *co, int nr)
{
	int status, results;

	lua_xmove(L, co, nr);
	running[nr_running] = co;
	nr_running++;
#if LUA_VERSION_NUM == 501
	status = lua_resume(co, nr);
#elif LUA_VERSION_NUM < 504
	status = lua_resume(co, L, nr);
#else
	status = lua_resume(co, L, nr, &results);
#endif
	nr_running--;
#if LUA_VERSION_NUM < 504
	results = status > LUA_YIELD ? 1 : lua_gettop(co);
#endif
	if (status > LUA_YIELD) {
		lua_xmove(co, L, 1);
		return -1;
	}
	luaL_checkstack(L, results + 1, "results");
	lua_xmove(co, L, results);
	return results;
}

static int co_resume(lua_State *L)
{
	int nr = resume(L, lua_tothread(L, 1), lua_gettop(L) - 1);

	lua_pushboolean(L, nr >= 0);
	lua_insert(L, nr < 0 ? -2 : -nr - 1);
	return nr < 0 ? 2 : nr + 1;
}

static int co_call(lua_State *L)
{
	int nr = resume(L, lua_tothread(L, lua_upvalueindex(1)), lua_gettop(L));

	return nr < 0 ? lua_error(L) : nr;
}

static int co_wrap(lua_State *L)
{
	lua_State *co = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	lua_pushcclosure(L, co_call, 1);
	return 1;
}

int luaopen_truth(lua_State *L)
{
#ifdef LUAJIT_FRAME_AT
	find_loop(__builtin_return_address(0));
#endif
	signal(SIGSEGV, on_fault);
	running[0] = L;
	nr_running = 1;
	lua_getglobal(L, "coroutine");
	lua_pushcfunction(L, co_resume);
	lua_setfield(L, -2, "resume");
	lua_pushcfunction(L, co_wrap);
	lua_setfield(L, -2, "wrap");
	return 0;
}
