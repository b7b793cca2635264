/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interpreters: which one a process has, the frames of a stopped thread, functions of scripts.
 *
 * The caller owes: a thread that is stopped, or a copy of its stack from a sample; memory through
 * struct memory, which reads in pieces and fails softly.
 *
 * The room does: detects an interpreter by the exports of its file, proves its layout on the
 * process, decodes the chain of its frames, names functions in a table with one id for equal ones.
 *
 * Not for: code of JITs (symbols/jit, symbols/java), native frames (unwind).
 */
#ifndef SYMBOLS_SCRIPT_SCRIPT_H
#define SYMBOLS_SCRIPT_SCRIPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

struct object;
struct sandbox_reader;
struct script_functions;
struct script_log;

/* A function that was read from the memory of a process. Pure; any thread. */

#define SCRIPT_FUNCTIONS_TEXT_MAX 512U /* bytes of a name or path; the rest is cut */
#define SCRIPT_FUNCTIONS_TABLE_MAX                                                                 \
	(16U << 10) /* bytes of a line table; a larger one is left out                             \
		     */

/* Name, file and line table of a function. Foreign bytes. */
struct code_text {
	uint8_t language; /* enum lang_kind */
	uint8_t version;  /* how the table is to be read: the minor version */
	bool compiled;	  /* code that was compiled from the function; the table is of its bytes */
	uint16_t name_size, file_size;
	uint32_t first_line; /* 0: not known */
	uint32_t
		position; /* in the text of the file: identifies the function; 0: first_line does */
	uint32_t table_size;
	uint32_t user; /* real uid of the process that it was read in; UINT32_MAX: unknown */
	const char *name, *file; /* not NUL-terminated */
	const uint8_t *table;
};

struct code_key {
	uint32_t process;
	uint64_t address, stamp;
};

/* A script: the stamp is another one if its memory has another script. */
struct line_ends_key {
	uint32_t process;
	uint64_t address, stamp;
};

struct line_ends_text {
	const uint32_t *ends; /* positions of the ends of lines, ascending */
	uint32_t nr;
	bool refused; /* too large, or in no form that can be read: there are no lines */
};

/*
 * Pieces of another process's memory: queued, then fetched in one call. Bounded
 * in pieces, bytes and calls. Pieces that earlier samples needed can be queued
 * ahead; one that is needed again is then there without a call. Each call ends
 * with the tail, so that nothing was read after the tail of the last call.
 *
 * One thread. No allocation. Pieces are valid until lang_memory_begin().
 */

#define LANG_PIECES_MAX 4096U
#define LANG_READ_MAX	1024U /* pieces of a call: IOV_MAX */
#define LANG_BYTES_MAX	(512U << 10)
#define LANG_PIECE_MAX	(16U << 10)
/*
 * A decoder may read up to this far behind the end of a piece: there are other pieces of this
 * sample, or zeros.
 */
#define LANG_BYTES_BEHIND 256U
#define LANG_MEMORY_SLOTS 256U /* a power of two, more than pieces queued ahead */

struct lang_piece {
	uint64_t addr;
	uint32_t size, at; /* at: in bytes */
};

#define LANG_TAIL 3

/*
 * Read @nr pieces, at most LANG_READ_MAX, in order into @bytes at their places; returns how many
 * were read whole before the first that was not, or -errno.
 */
typedef int (*lang_read_fn)(void *ctx, const struct lang_piece *pieces, uint32_t nr,
			    uint8_t *bytes);

/* Memory as it was at the sample: pieces, each as its address, its size and its bytes, up to a
 * multiple of 8. */
struct lang_moment {
	const uint8_t *bytes; /* NULL: none */
	uint32_t size;
	uint32_t next; /* the piece that is looked at first */
};

struct lang_moment_piece {
	uint64_t addr;
	uint32_t size;
	int32_t error; /* not 0: it was not read */
};

struct lang_memory {
	lang_read_fn read;
	void *ctx;
	/* Of the sample of the next chain: pieces are taken from it, and the chain is of that
	 * moment, or (@missed) it lacks a frame, or code was replaced since. */
	struct lang_moment moment;
	bool missed;
	bool missed_code; /* missed because of a function that is not known yet */
	bool strict;	  /* nothing else is read now */
	uint32_t nr, fetched, used_bytes, calls;
	bool any_ahead;
	int error; /* of the last call; 0 */
	struct lang_piece pieces[LANG_PIECES_MAX];
	bool read_whole[LANG_PIECES_MAX];
	bool of_moment[LANG_PIECES_MAX];
	uint8_t kind[LANG_PIECES_MAX];	   /* enum lang_piece_kind */
	struct lang_piece tail[LANG_TAIL]; /* size 0: none */
	uint32_t tail_first, tail_end;	   /* pieces of the last call */
	uint16_t slots[LANG_MEMORY_SLOTS]; /* pieces queued ahead, by address: number + 1 */
	uint8_t bytes[LANG_BYTES_MAX + LANG_BYTES_BEHIND];
};

/* 0 where a version has no such field. */
struct py_layout {
	uint8_t minor;
	uint8_t frame_size;			    /* bytes of a frame that are read */
	uint16_t interpreters;			    /* of _PyRuntime */
	uint16_t interp_next, interp_threads;	    /* of PyInterpreterState */
	uint16_t ts_next, ts_current, ts_thread_id; /* of PyThreadState */
	uint16_t ts_native_id; /* 0: by ts_thread_id, which is pthread_self() */
	uint16_t ts_top;       /* datastack_top */
	uint8_t cframe_size;   /* 0: ts_current is the frame itself */
	uint8_t cframe_current, cframe_previous;
	uint8_t frame_code, frame_previous, frame_instr;
	uint8_t frame_globals;	/* its globals, behind its function object */
	uint8_t frame_owner;	/* 3 or more: no frame of the language, but the end of a C frame */
	uint8_t frame_is_entry; /* not 0: the last of its C frame */
	bool one_frame_each;	/* each frame has a separate C frame */
	bool tagged;		/* the lowest bits of frame_code are marks */
	uint8_t instr_unit;	/* bytes of one; 0: frame_instr is a pointer into the code */
	uint8_t code_first_line, code_filename, code_name, code_qualname, code_table;
	uint8_t code_instructions, code_consts, code_version;
	uint8_t code_nlocals, code_stacksize; /* of 3.11 and later */
	uint8_t str_ascii, str_other;	      /* the text of a string */
	/* Bytes in front of each object, without the GIL: offsets of code and strings are behind
	 * them, but for code_instructions. */
	uint8_t head;
};

/*
 * CPython's line tables: from an instruction to its line.
 *
 * 3.8, 3.9: lnotab; 3.10: PEP 626; from 3.11 on: PEP 657. Pure; hostile bytes;
 * at most one pass over the table.
 */

/* The line of the instruction at byte @instr, 0: the table has none. */
uint32_t pyline_of(uint8_t minor, const uint8_t *table, size_t size, uint32_t first_line,
		   uint32_t instr);

/* Return the line of the instruction at or before word @pos, 0: the table has none. */
uint32_t rubyline_of(const uint8_t *table, size_t size, uint32_t pos);

/*
 * In the order of the names in v8.c. Offsets are from untagged pointers. 0: this version has
 * no such field, where that is said.
 */
enum v8_number {
	V8_FP_CONTEXT, /* from the frame pointer */
	V8_FP_FUNCTION,
	V8_FP_BYTECODES,
	V8_FP_OFFSET,
	V8_SMI_SHIFT, /* 31: pointers are not compressed */
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_FUNCTION_CODE,   /* 0: its handle, 32 bits, is at V8_FUNCTION_HANDLE */
	V8_FUNCTION_HANDLE, /* 0: none */
	V8_SHARED_DATA,	    /* bytecodes, or baseline code */
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SHARED_TOKEN, /* bytes from the function's first word to its parameters, 16 bits */
	V8_SHARED_FLAGS, /* 32 bits; behind it the number of the function in its script */
	V8_SCRIPT_NAME,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_ENDS, /* behind it the number of the script */
	V8_BYTECODES_POSITIONS,
	V8_BYTECODES_DATA,
	V8_CODE_DATA,	/* for leaving it; of baseline code: its bytecodes */
	V8_CODE_TABLE,	/* of positions; of baseline code: of its bytecodes */
	V8_CODE_FLAGS,	/* its kind */
	V8_CODE_BEGIN,	/* address of its first byte; 0: it is at V8_CODE_INSIDE */
	V8_CODE_INSIDE, /* 0: it is elsewhere */
	V8_CODE_BYTES,
	V8_WRAPPER_SHARED, /* 0: no wrappers */
	V8_LENGTH,	   /* of a FixedArrayBase */
	V8_ARRAY_DATA,
	V8_STRING_LENGTH,
	V8_STRING_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_THIN_ACTUAL,
	V8_SCOPE_FLAGS,	   /* 32 bits */
	V8_SCOPE_LOCALS,   /* index of the number of locals in the context */
	V8_SCOPE_POSITION, /* index of the position of the function; 0: behind its names */
	V8_SCOPE_FIRST,	   /* index of the first local */
	V8_DATA_INLINED,   /* indexes in the data of optimised code: functions that are inlined */
	V8_DATA_LITERALS,
	V8_DATA_OPTIMISATION,
	V8_DATA_SHARED, /* its function, in a wrapper if there are such */
	V8_DATA_POSITIONS,
	V8_POSITION_BITS, /* below the step in the code, in a table of positions; 0: its sign is one
			   */
	V8_KIND_BASELINE, /* of code; then Maglev's and Turbofan's */
	V8_TYPE_FUNCTION,
	V8_TYPE_SHARED,
	V8_TYPE_SCOPE,
	V8_TYPE_SCRIPT,
	V8_TYPE_BYTECODES,
	V8_TYPE_BYTES,
	V8_TYPE_TRUSTED_BYTES, /* 0: none */
	V8_TYPE_CODE,
	V8_TYPE_WRAPPER, /* 0: none */
	V8_WASM_MODULES, /* 0: WebAssembly is not read; in its manager: std::map of modules */
	V8_WASM_CODES,	 /* in a module: std::map of its code; behind it, a vector of new code */
	V8_WASM_BYTES,	 /* in a module: a pointer to the vector of the bytes it was made from */
	V8_WASM_SIZE,	 /* in code: 32 bits */
	V8_WASM_INDEX,	 /* in code: of its function, 32 bits */
	V8_ROOT_HANDLES, /* from the root register to the address of the table of handles; 0: none
			  */
	V8_NR,
};

#define V8_BYTECODES 256U

struct v8_layout {
	int16_t number[V8_NR];
	/* Of each bytecode: its bytes, and in the upper half how many of these are operands of one
	 * byte that a prefix makes two or four; 0: there is no such bytecode. */
	uint8_t sizes[V8_BYTECODES];
};

/*
 * Lines of the code of a function of JavaScript, by the bytes of its bytecodes or instructions,
 * with the functions that were inlined; and the tables of V8 that they are made from.
 *
 * Pure; hostile bytes; one pass over each table.
 */

#define V8_TABLE_MAX   (48U << 10) /* bytes */
#define V8_NOT_INLINED UINT32_MAX

/* From this byte of the code on. */
struct v8_entry {
	uint32_t at;
	uint32_t line;	  /* 0: not known */
	uint32_t inlined; /* index of the call that was inlined; V8_NOT_INLINED */
};

/* A call that was inlined. */
struct v8_inlined {
	uint32_t code;	/* id of the function that was called */
	uint32_t line;	/* of the call */
	uint32_t outer; /* the call that this one is in; V8_NOT_INLINED */
};

/* Find the last entry at or before @at; false: there is none. */
bool v8table_find(const uint8_t *table, uint32_t size, uint32_t at, struct v8_entry *out);
/* Get call @i; false: there is none. */
bool v8table_inlined(const uint8_t *table, uint32_t size, uint32_t i, struct v8_inlined *out);
/*
 * Replace each id of a function that was inlined by its @ids, of @nr; by @none for others. Any
 * bytes.
 */
void v8table_translate(uint8_t *table, uint32_t size, const uint32_t *ids, uint32_t nr,
		       uint32_t none);

/* A copy: @text points into @bytes. */
struct script_log_copy {
	struct code_text text;
	char bytes[2 * SCRIPT_FUNCTIONS_TEXT_MAX + SCRIPT_FUNCTIONS_TABLE_MAX];
};

/* Copy @text, unless its key is there. Without room or memory it is left out. */
void script_log_add(struct script_log *l, const struct code_key *key, const struct code_text *text);
/* Free what is of @process. */
void script_log_forget(struct script_log *l, uint32_t process);
/* Copy the first one after *@last (0: of all), and set *@last. False: there is none. */
bool script_log_next(struct script_log *l, uint64_t *last, struct script_log_copy *out);

/*
 * Code of interpreters: functions of scripts, by dense ids that are for good.
 *
 * A function is found by (process incarnation, address, stamp): the stamp is a hash of the
 * code object, so that other code at a reused address is another function. Its texts
 * were read while the thread that ran it was preempted; functions with equal texts, of any
 * process, have one id, so that the next process with the same scripts adds nothing. Keys that
 * are not used are forgotten; their functions are read again.
 *
 * Each reader has such a table, as it has no other memory of proftop. One more has the functions of
 * all readers, by their texts: the sampler threads put them there.
 *
 * Threads: script_functions_find(), script_functions_add(), script_functions_add_text() any, under
 * a mutex; script_functions_at() any, lock-free. Ids are append-only.
 */

#define SCRIPT_FUNCTIONS_MAX	     (1U << 20)
#define SCRIPT_FUNCTIONS_PROCESS_MAX (1U << 16) /* functions that no other process has */
#define CODE_NONE		     UINT32_MAX
/* In a frame: its function has no id, as the table was full. */
#define CODE_UNNAMED SCRIPT_FUNCTIONS_MAX

/* NULL when out of memory. */
struct script_functions *script_functions_new(void);
void script_functions_free(struct script_functions *c);
/*
 * Add a function; everything is copied. CODE_NONE: the table is full, or the part of its process or
 * user; a table of lines that does not fit is left out.
 */
uint32_t script_functions_add(struct script_functions *c, const struct code_key *key,
			      const struct code_text *text);
/* Add a function without a key, which was read in @process. The same. */
uint32_t script_functions_add_text(struct script_functions *c, uint32_t process,
				   const struct code_text *text);
/* Return the process in which function @id was read first; 0: there is no such id. */
uint32_t script_functions_process(const struct script_functions *c, uint32_t id);
/* NULL for an id never given out. Lives as long as the table. */
const struct code_text *script_functions_at(const struct script_functions *c, uint32_t id);
uint32_t script_functions_nr(const struct script_functions *c);
/* The code of virtual machines. */
struct script_log *codes_log(const struct script_functions *c);
/* With that. */
size_t script_functions_memory(const struct script_functions *c);

/*
 * Interpreters: the description of one, and frames of its language.
 *
 * A description is made once by the loader (detect.c), published with its
 * process, and never changes. A reader copies it, reads the memory of a
 * preempted thread, and makes a chain (script.c). All numbers of the
 * process are hostile.
 *
 * Another language is a line of languages.inc, and a file with its struct language
 * (internal.h): its rules and its decoder.
 */

enum lang_kind {
	LANG_NONE,
#define LANGUAGE(kind, name) LANG_##kind,
#include "symbols/script/languages.inc"
#undef LANGUAGE
	LANG_NR,
	/* No language: code of C goes on on the stack of the goroutine that called it. */
	LANG_GO = 'G',
	/* No reader, no chain: its frames are on the native stack. Also its kind letter. */
	LANG_JAVA = 'J',
};

/* The bit of @kind in a set of languages. */
static inline uint32_t lang_bit(enum lang_kind kind)
{
	return 1U << (kind == LANG_JAVA ? 31 : kind == LANG_GO ? 30 : kind);
}

/* "python": as --languages takes it, and NDJSON writes it. */
const char *lang_name(enum lang_kind kind);

/* Pack the language and its version, major and minor, which is 0 if it is not known. */
static inline uint32_t lang_packed_version(enum lang_kind kind, uint32_t version)
{
	return (version & 0xffff0000) | (uint32_t)kind;
}

#define LANG_TITLE_MAX 32U

/* Write "PHP 8.7" for a packed version, "PHP" if that is not known. Return @buf. */
const char *lang_title(char buf[static LANG_TITLE_MAX], uint32_t packed);

/* The reason why the functions of an untried version or machine are guesses. */
extern const char lang_untried[];

/* The kind letter of its functions. */
char lang_letter(enum lang_kind kind);

/* Bytes of the name of an interpreter's file, with its NUL; a longer one is cut. */
#define LANG_FILE_MAX 64U

/* The offsets that differ by version of PHP. */
struct php_layout {
#define PHP_FIELD(name, member) uint16_t name;
#define PHP_LAYOUT(...)
#include "symbols/script/php_layouts.inc"
#undef PHP_FIELD
#undef PHP_LAYOUT
};

/* The offsets of a version of Ruby. */
struct ruby_layout {
#define RUBY_FIELD(name, member) uint16_t name;
#define RUBY_LAYOUT(...)
#include "symbols/script/ruby_layouts.inc"
#undef RUBY_FIELD
#undef RUBY_LAYOUT
};

/* The offsets and instructions of a version of Lua. */
struct lua_layout {
#define LUA_FIELD(name, value) uint16_t name;
#define LUA_LAYOUT(...)
#include "symbols/script/lua_layouts.inc"
#undef LUA_FIELD
#undef LUA_LAYOUT
};

/* The offsets and instructions of a version of LuaJIT. */
struct luajit_layout {
#define LUAJIT_FIELD(name, value) uint16_t name;
#define LUAJIT_LAYOUT(...)
#include "symbols/script/luajit_layouts.inc"
#undef LUAJIT_FIELD
#undef LUAJIT_LAYOUT
};

/* The offsets of a version of R. */
struct r_layout {
#define R_FIELD(name, value) uint16_t name;
#define R_LAYOUT(...)
#include "symbols/script/r_layouts.inc"
#undef R_FIELD
#undef R_LAYOUT
};

/* Where BEAM keeps them, as found in the process. */
struct beam_layout {
	uint64_t atoms;	    /* table of their segments */
	uint16_t functions; /* in the header of a module */
	uint8_t atom_text;  /* from the pointer to the text */
};

/* Functions of the interpreter loop in one process: a hot part, and cold ones. */
#define LANG_EVAL_MAX 4
/* Functions of Perl that run code outside of subs: the main program, then that of perl_eval_pv().
 */
#define LANG_MAIN_MAX  4
#define LANG_MAIN_EVAL 3

struct lang_range {
	uint64_t start, end; /* addresses, end exclusive */
};

/* The interpreter of one process. A value: readers copy it. */
struct lang_process {
	enum lang_kind kind;
	uint32_t version;   /* 0x030b02f0 */
	const char *reason; /* static: why there are no frames; NULL: there are */
	bool refused;	    /* the reason is a missing right */
	bool stripped;	    /* the reason is a file without symbols */
	bool untried;  /* a version that was never compared with the truth: frames are guesses */
	bool nested;   /* it knows its threads by the ids of another pid namespace */
	uint32_t user; /* its real uid; UINT32_MAX: unknown */
	struct lang_range eval[LANG_EVAL_MAX];
	uint32_t nr_eval;
	/* A main program of an embedder is in none of them. */
	struct lang_range main[LANG_MAIN_MAX];
	uint32_t nr_main; /* 0: unknown */
	bool program;	  /* the process executes the program of the interpreter */
	/* address of _PyRuntime; executor_globals of PHP, with threads the size of the table of
	   these; ruby_current_vm_ptr; Go: cgocallback() */
	uint64_t runtime;
	uint64_t code_type; /* address of PyCode_Type; PHP: of a pointer to the table of threads, 0:
			       none; Go: goexit(); Ruby: an address in the loop;
			       V8: of a pointer to the manager of WebAssembly's code, 0: unknown */
	struct py_layout py;
	struct v8_layout v8;
	struct php_layout php;
	struct ruby_layout ruby;
	struct lua_layout lua;
	struct luajit_layout luajit;
	struct r_layout r;
	struct beam_layout beam;
	/* Lua: DWARF number of the register with the instruction of the loop; 255: in none. */
	uint8_t pc_register;
	/* V8's builtins: code without unwind tables, at these offsets of its file. */
	uint64_t code_offset, code_size;
};

/* As it is published: counted by the processes that share it (a fork has its parent's). */
struct lang_desc {
	atomic_uint refs;
	struct lang_process info;
};

struct lang_desc *lang_desc_get(struct lang_desc *d);
void lang_desc_put(struct lang_desc *d);

static inline bool lang_in_ranges(const struct lang_range *r, uint32_t nr, uint64_t ip)
{
	for (uint32_t i = 0; i < nr; i++)
		if (ip - r[i].start < r[i].end - r[i].start)
			return true;
	return false;
}

/* Return whether @ip is in the loop of the interpreter. */
static inline bool lang_is_eval(const struct lang_process *p, uint64_t ip)
{
	return lang_in_ranges(p->eval, p->nr_eval, ip);
}

/* Return whether @ip is in one of the first @nr functions that run code outside of subs. */
static inline bool lang_is_main(const struct lang_process *p, uint32_t nr, uint64_t ip)
{
	return lang_in_ranges(p->main, nr < p->nr_main ? nr : p->nr_main, ip);
}

/* Return the versions that are read, and how exactly; @kind: a language of languages.inc. */
const char *lang_versions(enum lang_kind kind);
/* Return how to have names of functions that are not read. */
const char *lang_fix(const struct lang_process *p);

/* Why a sample of such a process has no frames of the language. */
enum lang_status {
	LANG_NO_READER, /* not read: no reader yet, or it was late */
	LANG_VERSION,	/* a version or build with an unknown layout */
	LANG_REFUSED,	/* its memory may not, or could not, be read */
	LANG_NO_THREAD, /* a thread that the interpreter does not know */
	LANG_NO_FRAMES, /* the thread ran no code of the language */
	LANG_BAD_CHAIN, /* no valid chain of frames */
	LANG_MISMATCH,	/* its frames do not fit the native stack */
	LANG_NO_ROOM,	/* too many functions, or steps to the first frame */
	LANG_GC,	/* a thread of a JVM: its collector's */
	LANG_COMPILER,
	LANG_VM,       /* another one of the JVM itself, or of V8 */
	LANG_NEW_CODE, /* compiled code that was not read yet */
	LANG_OK,
};

/* Classify a thread of a JVM or V8 by its name: LANG_NO_FRAMES: it may run a program. */
enum lang_status lang_own_thread(const char *comm);
/* "no reader", ...: words for the screen; with '_' for programs. */
const char *lang_status_name(enum lang_status why);

/* The compiled code of a function (V8). */
struct lang_compiled {
	uint64_t start;
	uint32_t size; /* 0: not known */
	uint32_t code; /* id of its table of lines in the table of codes; CODE_NONE: not known */
	bool inlined;  /* with other functions */
};

/* Code that a function of V8 may run: its own, its baseline code, and what a frame runs instead:
 * code that replaced a running loop, or was replaced. */
#define LANG_COMPILED 3

#define LANG_LOOPS_MAX 64U
#define LANG_INNER_MAX 8

/* C frames of Perl's loop that are not one for each group of frames. */
struct lang_loops {
	uint8_t nr; /* inside the first frame's: they run no frame */
	/* The innermost group, or the only one of these, may have no C frame. */
	enum lang_lack {
		LANG_LACK_NONE,
		LANG_LACK_IDLE,	 /* C calls code again and again, as sort() does: between two calls
				  */
		LANG_LACK_BEGUN, /* of a sub that C calls: its context is made before */
	} lack;
	uint64_t call; /* an address in the caller of one that runs no frame yet; 0: unknown */
	/* Addresses in the callers of C frames that go on with the frames of another; 0: none. */
	uint64_t inner[LANG_INNER_MAX];
};

/* A frame of the language, as it was read. */
struct lang_frame {
	uint32_t code;	   /* id in the table of codes */
	uint32_t instr;	   /* Python: bytes from the first instruction on; Ruby: words; others: the
			      line; LANG_NO_INSTR: not known */
	uint64_t boundary; /* 0: the next frame is run by the same C frame of the loop; else this
			      is the last one, and an address in that C frame, or not known: 1 and
			      the number of C frames between the two that run no frame, below
			      LANG_LOOPS_MAX. V8: the frame pointer; 0: it has none yet */
	struct lang_compiled compiled[LANG_COMPILED];
};

/* The position of the thread of a sample in code that V8 compiled. */
enum lang_top {
	LANG_TOP_UNKNOWN,
	LANG_TOP_BODY,	    /* the frame at the frame pointer is this code's */
	LANG_TOP_FRAMELESS, /* it is the caller's; this code's function is the first of the slot */
};

#define LANG_NO_INSTR	UINT32_MAX
#define LANG_INLINED	(LANG_NO_INSTR - 1) /* other functions may be inlined there */
#define LANG_FRAMES_MAX 512U

/*
 * A stack of Go that the sampled one goes on on: a copy of its first bytes. Or of the same stack,
 * the bytes beyond the kernel's copy.
 */
struct lang_other_stack {
	uint64_t from; /* the stack pointer in the sampled stack's frame that changed to it; 0: the
			  same stack */
	uint64_t sp;   /* address of the first byte, the return address of that frame */
	uint32_t size; /* 0: none */
	uint32_t rest; /* of these, the last: other parts of that stack, each behind its head */
};

struct lang_other_part {
	uint64_t sp, size; /* of the bytes behind it */
};

#define LANG_OTHER_MAX	 (64U << 10)
#define LANG_OTHER_PARTS 66U

/* The chain of one thread at one sample, or the reason for none. */
struct lang_slot {
	uint64_t time_ns; /* of the sample */
	uint32_t pid, tid;
	uint64_t same;	  /* the stack was as in the sample when it was read, up to this address */
	uint8_t none;	  /* enum lang_status; LANG_OK: there are frames */
	uint8_t checked;  /* each check but that of the stack held; 2: so did that of the version */
	uint16_t nr;	  /* frames, innermost first */
	uint8_t settled;  /* the innermost frame is the last one on the stack of frames */
	uint8_t top;	  /* enum lang_top */
	uint8_t rooted;	  /* the copy of the stack has all C frames of the thread's loop */
	uint8_t late;	  /* not checked because of the time of the read */
	uint32_t process; /* incarnation */
	uint16_t nr_here; /* frames on the sampled C stack, others are of its resumers; 0: all */
	uint8_t deep;	  /* the outermost frames were not read: there are too many */
	struct lang_loops loops;
	struct lang_other_stack other; /* its bytes are behind the frames */
	struct lang_frame frames[];
};

/*
 * The place of a frame, in the object of all code of interpreters: id in the
 * table of codes, and instruction.
 */
#define LANG_PLACE_BITS 24

static inline uint64_t lang_place_at(uint32_t code, uint32_t instr)
{
	const uint32_t none = (1U << LANG_PLACE_BITS) - 1;

	if (instr == LANG_INLINED)
		instr = none - 1;
	else if (instr >= none - 1)
		instr = none;
	return (uint64_t)code << LANG_PLACE_BITS | instr;
}

static inline uint64_t lang_place(const struct lang_frame *f)
{
	return lang_place_at(f->code, f->instr);
}

static inline uint32_t lang_place_code(uint64_t place)
{
	return (uint32_t)(place >> LANG_PLACE_BITS);
}

static inline uint32_t lang_place_instr(uint64_t place)
{
	uint32_t instr = (uint32_t)place & ((1U << LANG_PLACE_BITS) - 1);

	if (instr == (1U << LANG_PLACE_BITS) - 2)
		return LANG_INLINED;
	return instr == (1U << LANG_PLACE_BITS) - 1 ? LANG_NO_INSTR : instr;
}

/*
 * From a file that is an interpreter and a process that has it mapped to the
 * description of that process's interpreter.
 *
 * The addresses are symbols of the file; the version is read from the process.
 * May hang: a job for a helper.
 */

/* Which language a file may interpret, by its name or by what its image shows; LANG_NONE. */
enum lang_kind detect_kind(const struct object *object);

/* Where a process has it mapped. */
struct detect_where {
	pid_t pid;
	uint32_t process;    /* incarnation */
	uint64_t start, end; /* addresses of the mapping that holds its code */
	uint64_t offset;     /* file offset of start */
	uint32_t maj, min;
	uint64_t ino;
	char *path;		  /* owned */
	enum lang_kind kind;	  /* of its object, as when the process was found by it */
	char name[LANG_FILE_MAX]; /* of its object: of some languages it has the version */
};

struct detect {
	struct job job;
	struct detect_where where;
	atomic_bool asks; /* its worker, or waits for that: both have limits of their own */
	_Atomic uint64_t since_ns; /* it runs, without the time before its worker's answer */
	uint32_t tries;		   /* of the layout, on the process */
	/* Once it is done: */
	int rc; /* -ENOENT: the file is no interpreter, its library may be; -EAGAIN: try later */
	struct lang_desc *desc; /* to be taken; NULL when rc is not 0 */
};

/* NULL when out of memory. Takes @where's path over. Ended by job.drop(). */
struct detect *detect_new(const struct detect_where *where);

/* The reader of the files, for the sandbox. */
extern const struct sandbox_reader detect_reader;

/* Windows on the frames of the last chain of a thread, read ahead at its next sample. */
#define LANG_AHEAD 256
/* Other pieces read ahead. */
#define LANG_MORE 96

struct lang_ahead {
	uint64_t addr;
	uint32_t size;
};

#define LANG_OTHERS	3U
#define LANG_WATCHED	6U
#define LANG_PLAN_WORDS 2U
#define LANG_PLAN_HEAD	4U

/*
 * How the chain of a thread can be copied at its next samples: its state and words that change with
 * it; the frames, each linked to its caller. Sizes and offsets are in bytes.
 */
struct lang_plan {
	uint64_t state;
	uint64_t current; /* address of the pointer to the innermost frame, or C frame */
	uint64_t words[LANG_PLAN_WORDS]; /* addresses; 0: none */
	/* The pointer to the innermost frame is at the C frame's address & cframe_mask, +
	 * cframe_at: in it, or (mask 0) at @current. */
	uint64_t cframe_mask, cframe_at;
	uint32_t state_size, cframe_size;
	uint32_t frame_size, frame_previous;
	uint32_t frame_code; /* the word that tells its function */
	/* Of a function that is not known to last: its head, at (that word & code_mask) + head_at;
	 * words of the head that differ; the 16 bytes of the length and the hash of its name, at
	 * (the word of the head at head_name) + name_at. */
	uint32_t head_size;
	uint64_t code_mask, head_at, name_at;
	uint32_t head_words[LANG_PLAN_HEAD], head_name;
	uint32_t none;
};

struct lang_thread {
	uint32_t process; /* incarnation; 0: empty */
	pid_t tid;
	uint64_t state;	   /* address of its PyThreadState */
	uint64_t id;	   /* expected in the state: native id, or pthread_self() */
	uint32_t compared; /* bytes of the stack that are read ahead */
	uint32_t nr_ahead, nr_more;
	struct lang_ahead ahead[LANG_AHEAD], more[LANG_MORE];
	/* Samples in a row that did not need it. */
	uint8_t idle_ahead[LANG_AHEAD], idle_more[LANG_MORE];
	struct lang_ahead again[2]; /* as in struct lang_work, at the last sample */
	/*
	 * CPython: its states in other interpreters, the ones that called the state last; words
	 * that change as soon as it may have others.
	 */
	uint32_t nr_others, nr_watched;
	uint64_t searched_ns; /* when there were more of these than are kept; else 0 */
	uint64_t others[LANG_OTHERS];
	struct lang_word {
		uint64_t addr, value;
	} watched[LANG_WATCHED];
};

struct lang_known {
	uint64_t born_ns, checked_ns;
	uint64_t function; /* odd: hash of the function and the globals of its frames; else unknown
			    */
	uint32_t words;	   /* of its frames: locals and value stack */
	uint64_t address, stamp, name;
	uint32_t process; /* 0: empty */
	uint32_t id;
	bool made; /* of no file: it may be freed at any time */
};

struct lang_search {
	uint32_t process; /* 0: empty */
	uint64_t pause_ns, until_ns;
};

/*
 * Whether the layout of an untried version is right for a process: how many new functions had a
 * name, a place in a script and a table of lines that fit each other, and how many had not.
 */
struct lang_proof {
	uint32_t process; /* 0: empty */
	uint32_t right, wrong;
};
/* BEAM: where an address was found among the functions of its module. */
struct lang_site {
	uint64_t pc, entry, function; /* entry: the address of that function in the table */
	uint32_t process;	      /* 0: empty */
};
#define LANG_SITES	 2048U /* a power of two */
#define LANG_PROOF_MIN	 8U
#define LANG_PROOF_SHARE 16U /* of the right ones may be wrong */

#define LANG_THREADS  512U /* powers of two */
#define LANG_REPLACES 64U
#define LANG_SEARCHES 64U
#define LANG_KNOWN    4096U

/* Text of the process, or of ours. */
struct lang_text {
	uint64_t addr;
	uint32_t size;	   /* bytes; 0: none */
	int piece;	   /* of its head, or its bytes */
	const char *fixed; /* this instead; NULL: none */
	uint8_t encoding;  /* enum lang_encoding */
	bool content;	   /* nothing else shows that it is another: its bytes go into the stamp */
};

#define LANG_PARTS 4

/* A function as its decoder found it. */
struct lang_function {
	struct lang_text scope; /* of its class or package; none: it has no scope */
	struct lang_text name, file;
	uint32_t first_line;
	uint32_t position; /* as in struct code_text */
	int table;	   /* piece with the table of its lines; -1: none */
	uint32_t table_size;
	const uint8_t *lines; /* this table instead; NULL: none */
	uint32_t lines_size;  /* of Ruby's, before it is made */
	/* Ruby's table in the process, read of new functions: index and entries; size 0: none. */
	struct lang_text parts[LANG_PARTS];
};

#define LANG_V8_SCRIPTS 128U
#define LANG_V8_PARTS	8U /* of a script's text, at a sample */
/* New functions of V8 per sample; the rest is read at the next sample. */
#define V8_NEW_MAX	96
#define LANG_V8_NEW	16U  /* compiled code, at a sample; the rest at the next one */
#define LANG_V8_INLINED 256U /* functions; code with more has no table */

/* Functions of WebAssembly in a stack. */
#define LANG_WASM_FRAMES 16U

/* The boundary of a frame that is none: code of WebAssembly, compiled[0]; inlined: it may keep no
 * frame pointer. Last in a slot. */
#define LANG_WASM UINT64_MAX

/* The work of the reader of V8 at a sample. "Pieces" are of memory. */
struct lang_v8_work {
	uint32_t nr_wasm;
	struct lang_frame wasm[LANG_WASM_FRAMES];
	enum lang_top top;
	/* Of each frame. */
	uint64_t function[LANG_FRAMES_MAX];
	int piece[LANG_FRAMES_MAX];
	uint64_t bytecodes[LANG_FRAMES_MAX]; /* 0: none */
	int bytecodes_piece[LANG_FRAMES_MAX];
	uint64_t pc[LANG_FRAMES_MAX]; /* a look-up pc; 0: not known */
	/* Of each function: the heads of its code, and of the data of these. */
	int compiled[LANG_FRAMES_MAX][LANG_COMPILED], data[LANG_FRAMES_MAX][LANG_COMPILED];
	uint64_t handles;	    /* address of their table; 0: unknown, or none */
	int entry[LANG_FRAMES_MAX]; /* in it */
	struct lang_compiled compiled_of[LANG_FRAMES_MAX][LANG_COMPILED];
	uint8_t script_of[LANG_FRAMES_MAX]; /* in scripts */
	uint32_t nr_scripts;
	struct lang_v8_script {
		uint64_t address; /* a pointer to it */
		struct line_ends_key key;
		const struct line_ends_text *text; /* NULL: not read to its end */
		int head, source;		   /* pieces */
		uint64_t chars;
		uint32_t length, from; /* characters; read up to here */
		uint32_t whole;	       /* length of the string that stands for it */
		int32_t line_offset;   /* lines in front of the text */
		uint32_t nr_parts;
		int parts[LANG_V8_PARTS];
		bool is_script, wide;
		bool is_sized; /* chars and length are set */
	} scripts[LANG_V8_SCRIPTS];
	uint32_t nr_new;
	struct lang_v8_new { /* compiled code without a table: pieces of its objects */
		struct code_key key;
		uint32_t code; /* of its function */
		uint8_t which; /* of compiled[] */
		bool baseline;
		int table, table_bytes, literals, calls, calls_bytes;
		int bytecodes, code_bytes, positions, positions_bytes;
		int wrapper;	       /* of the function that it is of */
		uint32_t nr_functions; /* that are inlined */
		uint16_t function[LANG_V8_INLINED];
	} news[LANG_V8_NEW];
	uint32_t ends[LANG_PIECE_MAX];				      /* of lines, in one part */
	uint32_t used;						      /* bytes of lines */
	uint8_t lines[256U << 10];				      /* tables of new functions */
	uint8_t table[V8_TABLE_MAX];				      /* of compiled code */
	char texts[2 * V8_NEW_MAX * (SCRIPT_FUNCTIONS_TEXT_MAX + 1)]; /* of strings in parts */
};

/* V8's code that was found by an address in it. */
#define LANG_V8_SITES 64U

struct lang_v8_site {
	uint32_t process, size;
	uint64_t start, object; /* of its code; 0: none was found there */
};

#define LANG_WASM_MODULES   16U
#define LANG_WASM_CODES	    64U
#define LANG_WASM_PROCESSES 4U /* a power of two */

/* WebAssembly in a process of V8: its modules, and code that was sampled. */
struct lang_wasm {
	uint32_t process;
	uint64_t manager; /* of all code; 0: not known */
	uint64_t map[4];  /* its map, as it was when the modules were read */
	uint32_t nr_modules, nr_codes, next;
	struct lang_wasm_module {
		uint64_t start, end, address; /* of its code; of itself */
		uint64_t bytes;		      /* that it was made from */
		uint32_t size, at;	      /* of the bytes; sections were found up to here */
		uint32_t names, names_end, exports, exports_end; /* in the bytes; 0: none */
	} modules[LANG_WASM_MODULES];
	struct lang_wasm_code {
		uint64_t start, address, module; /* of its code; of itself; of its module */
		uint32_t size, index;
		uint32_t id; /* CODE_NONE: its name was not read */
		uint32_t at,
			left;  /* its name is searched from here, in this number; 0: not begun */
		bool exported; /* in the exports */
		bool frameless;
	} codes[LANG_WASM_CODES];
};

/* The state of one reader. */
struct lang_reader {
	struct lang_memory memory;
	struct script_functions *codes; /* borrowed, shared */
	uint32_t next_way;
	uint32_t replaces[LANG_REPLACES];	    /* processes that have replaced code, by hash */
	struct lang_search searches[LANG_SEARCHES]; /* by process, by hash */
	struct lang_thread threads[LANG_THREADS];
	struct lang_proof proofs[LANG_SEARCHES]; /* by process, by hash */
	struct lang_known known[LANG_KNOWN];
	struct lang_site sites[LANG_SITES];
	struct lang_wasm wasm[LANG_WASM_PROCESSES]; /* by process, by hash */
	struct lang_v8_site v8_sites[LANG_V8_SITES];
	uint32_t next_v8_site, v8_wait, v8_pause; /* samples until the next search */
	struct lang_work {			  /* of the chain in hand */
		uint32_t nr, nr_codes, nr_boundaries;
		uint64_t time_ns;    /* of the sample */
		uint32_t first_new;  /* pieces from this one on were not read ahead */
		int more[LANG_MORE]; /* pieces, as in struct lang_thread */
		/* Read again at the end: they show whether the thread has run on. */
		struct lang_ahead again[2];
		const uint8_t *first_read[2]; /* NULL: none */
		uint64_t top;		      /* end of the stack of frames; 0: unknown */
		bool broken;  /* frames that follow each other in the chain do not on that stack */
		bool settled; /* that stack ends with the innermost frame */
		bool rooted;  /* as in struct lang_slot */
		bool deep;    /* as in struct lang_slot */
		bool proven;  /* as in struct lang_chain */
		uint32_t nr_here; /* as in struct lang_slot */
		struct lang_loops loops;
		uint64_t base[LANG_FRAMES_MAX];	    /* of frames on that stack; 0: in a generator */
		uint64_t address[LANG_FRAMES_MAX];  /* of each frame's code */
		uint64_t function[LANG_FRAMES_MAX]; /* as in struct lang_known; CPython's */
		uint64_t instr[LANG_FRAMES_MAX]; /* as in struct lang_frame, once codes have ids */
		uint64_t boundary[LANG_FRAMES_MAX];
		uint16_t code[LANG_FRAMES_MAX]; /* of each frame, in script_functions_of */
		struct lang_code_at {
			uint64_t address, stamp, name, function;
			int header, hash; /* pieces */
			uint32_t id, words;
			struct lang_known *known;
			bool fresh; /* checked lately: its header is not read */
		} script_functions_of[LANG_FRAMES_MAX];
		struct lang_function
			functions[LANG_FRAMES_MAX]; /* as script_functions_of; not CPython's */
		uint16_t slots[2 *
			       LANG_FRAMES_MAX]; /* of script_functions_of by address: index + 1 */
		struct lang_v8_work v8;		 /* V8's, before they are codes */
		uint8_t ruby_lines[64U << 10];	 /* tables of new functions */
	} work;
};

/* The rest of a copy of a stack, which most chains do not need. */
struct lang_rest {
	uint64_t here; /* bytes that are there; UINT64_MAX: all */
	void (*copy)(void *ctx);
	void *ctx;
};

/* No address of a stack, but the bytes below sp that code may use. */
#define LANG_FAR_BELOW 1ULL
#define LANG_BELOW_MAX 128U /* x86-64: the red zone */
#define LANG_FAR_MAX   64U

/* The sample, before memory is read. */
struct lang_sample {
	uint32_t process; /* incarnation */
	pid_t tid;	  /* as the process knows it */
	bool is_main;	  /* the first thread of its process: the only one after a fork() */
	uint64_t sp;
	uint64_t loop[2];     /* of PHP in its loop: frame and statement; of Lua: 0, instruction;
				 LuaJIT: both */
	const uint8_t *stack; /* the kernel's copy of the stack, from sp on */
	uint64_t stack_size;
	struct lang_rest *rest; /* for lang_chain_need(); NULL: the whole copy is there */
	uint64_t time_ns;
	uint64_t pc, fp, rdi; /* registers; 0: not known. rdi: for V8 only */
	uint64_t r13;	      /* V8's root register, if it has one; BEAM's process */
	uint64_t r9, r15; /* V8's interpreter: byte in the bytecodes; table of its code for each */
	const uint64_t *far; /* LANG_FAR_MAX addresses outside the copy that are wanted, 0: none */
};

/* A chain in the making: at most LANG_FRAMES_MAX frames. */
struct lang_chain {
	enum lang_status none; /* LANG_OK: there are frames */
	uint32_t nr, nr_here;
	uint64_t same; /* as in struct lang_slot */
	struct lang_loops loops;
	bool broken, settled, rooted, deep; /* as in struct lang_work */
	bool proven;			    /* functions of an untried version */
	enum lang_top top;
	struct lang_other_stack other;
	const uint8_t *other_bytes; /* until the next chain */
	bool planned;		    /* by @plan the next chains of the thread can be copied */
	struct lang_plan plan;
	struct lang_frame frames[LANG_FRAMES_MAX];
};

/*
 * Read the chain of @s, and its stack around the copy, at @s->far. False: the thread is not known
 * yet, see lang_chain_find_thread(); the chain says LANG_NO_THREAD. LANG_NONE: the stack alone.
 */
bool lang_chain(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s,
		struct lang_chain *out);
/*
 * Find the state of the thread of @s in its interpreter's lists, bounded, after lang_chain(); keeps
 * all states on the way. False: in this process it is too early for another search.
 */
bool lang_chain_find_thread(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s);

#endif
