/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/script/, and by tests; no other room includes it. */
#ifndef SYMBOLS_SCRIPT_INTERNAL_H
#define SYMBOLS_SCRIPT_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/script/script.h"

struct code_key;
struct code_text;
struct detect_file;
struct elffile;
struct lang_function;
struct lang_memory;
struct lang_process;
struct lang_range;
struct lang_reader;
struct lang_sample;
struct lang_text;
struct lang_thread;
struct lang_work;
struct line_ends;
struct line_ends_key;
struct line_ends_text;
struct php_layout;
struct py_layout;
struct script_functions;
struct script_log;
struct v8_entry;
struct v8_inlined;
struct v8_layout;

/*
 * The ends of the lines of scripts, for languages that have positions in the text instead of
 * lines. The text is read in parts, one at a sample, so that a large script takes several. Scripts
 * that are not looked up are forgotten; texts with equal ends, of any process, are one.
 *
 * Threads: any, under a mutex; a text does not change, and lives as long as the table.
 */

#define LINE_ENDS_MEMORY_MAX	 (64U << 20)
#define LINE_ENDS_PROCESS_MEMORY (LINE_ENDS_MEMORY_MAX / 8)
#define LINE_ENDS_SCRIPTS_MAX	 4096U /* at most twice as many */

/* Return the text that was read to its end; else NULL, and how far it was read in *@from. */
const struct line_ends_text *line_ends_get(struct line_ends *l, const struct line_ends_key *key,
					   uint32_t *from);
/*
 * Add the @nr ends of lines from position @from to @to. Ignored if another thread was faster.
 * @last: the text ends there.
 */
void line_ends_add(struct line_ends *l, const struct line_ends_key *key, uint32_t from, uint32_t to,
		   const uint32_t *ends, uint32_t nr, bool last);
/* Give up: the script has no lines. */
void line_ends_refuse(struct line_ends *l, const struct line_ends_key *key);
/* Return the line of a position, from 1; 0: there are no lines. */
uint32_t line_ends_line(const struct line_ends_text *t, uint32_t position);
/*
 * Find the ends of lines in @nr characters of a text, from position @from: one byte each, or two
 * (@wide). Returns how many were written to @ends (@nr elements), and in *@used how many
 * characters were taken: not a last carriage return, unless @last.
 */
uint32_t line_ends_find(const uint8_t *text, uint32_t nr, bool wide, bool last, uint32_t from,
			uint32_t *ends, uint32_t *used);

#define LANG_CALLS_MAX 32U /* 1 to 3 us each, while the thread is preempted */

enum lang_piece_kind {
	PIECE_AHEAD, /* nothing has needed it */
	PIECE_NEEDED,
	PIECE_ONCE,   /* needed, but not at the next samples */
	PIECE_WINDOW, /* on frames */
	PIECE_TAIL,
};

/* Forget all pieces, before another thread or process. */
void lang_memory_begin(struct lang_memory *m);
/*
 * Queue a piece, unless it was queued ahead; returns its number, -1: full, or an impossible
 * address.
 */
int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size);
/* The same for a piece that the next samples do not need. */
int lang_memory_want_once(struct lang_memory *m, uint64_t addr, uint32_t size);
/* Queue a piece, also if it was read before. */
int lang_memory_queue(struct lang_memory *m, uint64_t addr, uint32_t size,
		      enum lang_piece_kind kind);
/*
 * Read the queued pieces and the tail in one call; behind a piece that cannot be read, in
 * another. False: no call is left.
 */
bool lang_memory_fetch(struct lang_memory *m);
/* The bytes of piece @piece; NULL: not read. */
const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece);
/* Queue and fetch one piece; NULL: it cannot be read. */
const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size);

/* Return whether this may be a pointer to an object: user half, aligned, not the first page. */
static inline bool lang_memory_is_pointer(uint64_t addr)
{
	return addr >= 4096 && addr < 1ULL << 56 && !(addr & 7);
}

/*
 * Return the id of the thread with this pthread_self(), by struct pthread, which begins with a
 * pointer to itself: at 16 in glibc, at 0 in musl, for x86-64. -1: it is none.
 */
static inline pid_t lang_tid_of_pthread(struct lang_reader *r, uint64_t self)
{
	static const struct {
		uint16_t self, tid;
	} pthreads[] = { { 16, 0x2d0 }, { 0, 0x30 } };

	for (size_t i = 0; i < ARRAY_SIZE(pthreads); i++) {
		const uint8_t *bytes;

		lang_memory_begin(&r->memory);
		bytes = lang_memory_is_pointer(self)
				? lang_memory_read(&r->memory, self, pthreads[i].tid + 4U)
				: NULL;
		if (bytes && bytes_u64(bytes + pthreads[i].self) == self)
			return (pid_t)bytes_u32(bytes + pthreads[i].tid);
	}
	return -1;
}

/*
 * CPython's layout of frames, threads and code: byte offsets for each minor
 * version, x86-64 and other 64-bit CPUs with the same alignment.
 *
 * They were generated from the headers of 3.8 to 3.15. From 3.13 on a process
 * describes itself (_Py_DebugOffsets), which wins: so any patch level is read. Pure.
 */

#define PY_DEBUG_OFFSETS_WORDS 64

/* The layout of @version (as Py_Version), of the newest one known for a later one; NULL: none. */
const struct py_layout *pylayout_of(uint32_t version);

/*
 * Ruby's line tables: from a position in the instructions to its line.
 *
 * An iseq has an entry for each instruction, and a bit vector of their positions with ranks
 * ("succinct index"). The kept table: number of entries, the line of each, the index. Pure; hostile
 * bytes.
 */

#define RUBYLINES_ENTRY 12U /* bytes of an entry in the process: line, node, events */

/* Bytes of an object that are read before its type is known. */
#define V8_HEAD 32

/* Bytes of the object that describes code of WebAssembly. */
#define V8_WASM_CODE 64

/* The number that the symbol @name has the value of; V8_NR: none. */
enum v8_number v8layout_number(const char *name);
/*
 * Complete the numbers of the file by those of its version, or of the next lower one (*nearest),
 * and check them all. Words why they cannot be used, NULL: they can.
 */
const char *v8layout_complete(struct v8_layout *l, uint32_t version, bool *nearest);

/* A table in the making, in the caller's bytes. */
struct v8_table {
	uint8_t *bytes;
	uint32_t room, size;
	struct v8_entry last;
};

/* Begin a table with the calls that were inlined. */
bool v8table_begin(struct v8_table *t, const struct v8_inlined *inlined, uint32_t nr);
/* Append an entry; false: it does not fit, or the next one will not: no line is known from it on.
 */
bool v8table_add(struct v8_table *t, const struct v8_entry *e);

/* V8's table of positions: of bytecodes, or of instructions. */
struct v8_positions {
	const uint8_t *at, *end;
	int bits;	   /* V8_POSITION_BITS */
	int64_t code;	   /* byte */
	int64_t raw;	   /* the position as V8 encodes it */
	uint32_t position; /* in the text; UINT32_MAX: none */
	uint32_t inlined;  /* as in struct v8_entry */
};

#define V8_INLINED_MAX 512U /* calls in one piece of code */

/*
 * From bytes of baseline code to its bytecodes: a number of bytes for each, in order.
 */
struct v8_baseline {
	const uint8_t *at, *end, *bytecodes;
	uint32_t size;
	const uint8_t *sizes; /* of struct v8_layout */
	uint32_t pc, next_pc; /* the code of a bytecode: first byte, and the one behind it */
	uint32_t bytecode, next_bytecode;
};

/* The bytes of the bytecode at @code, of which @room are there; 0: unknown. */
uint32_t v8table_bytecode_size(const uint8_t *sizes, const uint8_t *code, uint32_t room);
/* Begin in front of the first bytecode. */
bool v8table_baseline(struct v8_baseline *b, const uint8_t *sizes, const uint8_t *map,
		      uint32_t map_size, const uint8_t *bytecodes, uint32_t size);
/* Go to the next bytecode. False: the end. */
bool v8table_next_bytecode(struct v8_baseline *b);
/* Return whether both tables end at the same bytecode. Otherwise no line is true. */
bool v8table_fits(const struct v8_baseline *b);

void v8table_positions(struct v8_positions *p, const uint8_t *bytes, uint32_t size, int bits);
bool v8table_next_position(struct v8_positions *p);
/* Decode a position. */
void v8table_position(int64_t raw, uint32_t *position, uint32_t *inlined);

/*
 * Code that a virtual machine has had, for recordings alone: copies by (process, address, stamp),
 * in the order in which they were read. They leave with their process.
 *
 * Threads: any, under a mutex that is held for a copy only.
 */

#define SCRIPT_LOG_MEMORY_MAX  (32UL << 20)
#define SCRIPT_LOG_PROCESS_MAX (1U << 16) /* entries of one process */

#define SCRIPT_FUNCTIONS_MEMORY_MAX	(64UL << 20)
#define SCRIPT_FUNCTIONS_USER_MEMORY	(SCRIPT_FUNCTIONS_MEMORY_MAX / 4 * 3)
#define SCRIPT_FUNCTIONS_PROCESS_MEMORY (SCRIPT_FUNCTIONS_MEMORY_MAX / 8) /* their bytes */
#define SCRIPT_FUNCTIONS_KEYS_MAX	(1U << 17) /* found by their keys; at most twice as many */

/* The id, or CODE_NONE. */
uint32_t script_functions_find(struct script_functions *c, const struct code_key *key);
/* The ends of lines of scripts. */
struct line_ends *script_functions_line_ends(struct script_functions *c);

/* Ruby: a member that a version does not have; the bound of a frame; an iseq by its flags. */
#define RUBY_ABSENT	0xffffU
#define RUBY_FRAME_MAX	256U
#define RUBY_IMEMO_MASK 0xf01fU
#define RUBY_IMEMO_ISEQ 0x701aU

/* A version of Ruby that is read, and later patch levels. */
struct ruby_version {
	uint32_t version; /* 0x03030800 */
	bool compared;	  /* with the frames of the interpreter */
	struct ruby_layout layout;
};

/* A version of PHP that is read. */
struct php_version {
	const char *api; /* which extensions are checked against, in the file */
	uint32_t version;
	uint8_t compared; /* PHP_NTS, PHP_ZTS: builds that were compared with the truth */
	struct php_layout layout;
};

/*
 * The messages between detect.c and its reader in the sandbox. Both have the same program.
 */

struct detect_request {
	uint64_t serial;	/* of the job, not 0 */
	uint64_t start, offset; /* of the mapping that holds the code, and in the file */
	uint64_t code; /* address in the file, in the loop of the interpreter; 0: unknown */
	uint32_t kind; /* enum lang_kind */
	char name[LANG_FILE_MAX]; /* of the file, without its folder */
};

/* The symbols of an interpreter's file, as addresses in the file. */
struct detect_file {
	uint64_t bias; /* to add to them in the process */
	uint64_t runtime, code_type, version_at;
	struct lang_range eval[LANG_EVAL_MAX];
	struct lang_range main[LANG_MAIN_MAX];
	uint32_t nr_eval, nr_main;
	uint32_t kind;	   /* enum lang_kind */
	uint32_t stripped; /* it is one, but its functions were not found */
	uint32_t version;  /* from the name of the file: 0x030b0000; PHP: from its bytes, or 0 */
	uint32_t php;	   /* number of its row + 1; 0: none */
	uint32_t machine;
	/* Of LANG_NODE. */
	uint32_t v8_version;
	struct v8_layout v8;
	uint64_t blob_offset, blob_size; /* in the file; size 0: not found */
};

/*
 * The layout of V8 in its file: the numbers for debuggers, and the place of the
 * code of its builtins. Hostile files; any thread.
 */

/* Addresses of symbols; 0: missing. */
struct v8_symbols {
	uint64_t number[V8_NR];
	uint64_t major, minor;
	uint64_t sizes, sizes_size; /* of bytecodes: a table */
	uint64_t wasm;		    /* GetWasmCodeManager() */
	uint64_t wasm_import;	    /* WasmModuleObject::FromCompiledModule() */
	struct elfv8_symbols builtins;
};

/*
 * A language: how its files are found, and three verbs. Another language is another file with one
 * of these, and its line in languages.inc; another version is a row of data.
 */

/* A file that is looked through. */
struct detect_search {
	struct detect_file *out;
	const char *name;
	struct v8_symbols symbols; /* of LANG_NODE */
	uint32_t python;	   /* version before 3.11, by its functions; 0: unknown */
	uint64_t entry; /* rb_during_gc() of Ruby, which begins with its VM; lua_call() */
	uint64_t code;	/* as in the request */
};

/* Return the address of a text among the constants of a file; 0: none. */
uint64_t detect_find_text(const struct elffile *f, const char *text);

struct language {
	const char *name;     /* "python": for programs */
	const char *title;    /* "Python" */
	const char *versions; /* of --check; NULL: another language has them */
	char letter;	      /* of its functions in lists */
	/* Its files begin with these, or is_file() says so, or a file has the function @shown. */
	const char *program, *library, *shown;
	bool (*is_file)(const char *name);
	/* Symbols; NULL: none. */
	const char *runtime, *code_type, *version, *eval;
	bool finds_loop; /* its loop without a symbol is found by an address of the process */
	/* Any other symbol of its file, then the file: 0, -ENOENT; 1: whatever symbols it has. */
	void (*on_symbol)(struct detect_search *search, const Elf64_Sym *s, const char *name);
	int (*on_file)(struct detect_search *search, const struct elffile *f);
	/*
	 * Set version and layout of a process, proven on its memory, or the reason for none. True:
	 * it may be too early.
	 */
	bool (*detect)(struct lang_process *p, const struct detect_file *d, pid_t pid);
	/* Read the frames of a thread. */
	enum lang_status (*stack)(struct lang_reader *r, const struct lang_process *p,
				  const struct lang_sample *s, struct lang_thread *t);
	/*
	 * Say how chains of a thread can be copied; NULL, false: not. Code of a copy may have been
	 * replaced when functions() sees it: code that is not known to last is missed.
	 */
	bool (*plan)(const struct lang_process *p, const struct lang_thread *t,
		     struct lang_plan *out);
	/* Give each code an id, and each frame its instruction. */
	enum lang_status (*functions)(struct lang_reader *r, const struct lang_process *p,
				      uint32_t process);
	/* Find the state of a thread; NULL: the process has one. */
	void (*find_thread)(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s);
	/* How to have names of functions that are not read, from a minor version on; NULL: none. */
	const char *fix;
	uint32_t fix_since;
	bool part_of_stack; /* stack() needs the beginning of the copy only, mostly */
};

#define LANGUAGE(kind, name) extern const struct language language_##name;
#include "symbols/script/languages.inc"
#undef LANGUAGE

/* By enum lang_kind; NULL: none. */
extern const struct language *const languages[LANG_NR];

/* NULL: none, or Java or Go, which have frames of their own. */
static inline const struct language *language_of(uint32_t kind)
{
	return kind < LANG_NR ? languages[kind] : NULL;
}

#define V8_MAPS_MAX 128
#define V8_PAGE	    (256U << 10)

/* Types of objects by their maps, as they are queued. */
struct v8_types {
	uint32_t nr;
	uint64_t map[V8_MAPS_MAX];
	int piece[V8_MAPS_MAX];
};

/* Return whether @value may be a pointer to an object. */
static inline bool v8objects_is_tagged(uint64_t value)
{
	return lang_memory_is_pointer(value - 1);
}

static inline bool v8objects_is_smi(uint64_t value)
{
	return !(value << 32);
}

/* Queue the type of the object with its head in @piece. */
void v8objects_want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
			 int piece);
/* The type of the object with its head in @piece; -1: unknown. */
int v8objects_type(const struct lang_memory *m, const struct v8_types *t, int piece);
/* The same: the head of the object at @tagged; -1: no object. */
void v8objects_want_head(struct lang_memory *m, uint64_t tagged, uint32_t size, int *piece);
/* Return whether the object with its head in @piece is an array of bytes. */
bool v8objects_is_bytes(const struct lang_memory *m, const struct lang_process *p,
			const struct v8_types *t, int piece);
/* The bytes of a piece; NULL: not read, or fewer than @size, so that it is no such object. */
const uint8_t *v8objects_whole(const struct lang_memory *m, int piece, uint32_t size);

/*
 * The frames of a thread in its interpreter's language, from the memory of the
 * process, while the thread is preempted.
 *
 * Runs on: a reader. Everything kept from sample to sample (states of
 * threads, addresses of the last reads, known code) is a cache: each use is
 * checked against fresh reads.
 */

/*
 * Known code. Its header is read again at each sample while it is young, if it is of no file, or
 * once its process has replaced old code of a file; else after 1/200 of its age, so from 10 ms on,
 * and after 100 ms at most. Ten times as long while the frames that run it have the function and
 * the globals of the last time: new code at its address would need a new function at that address.
 */
#define LANG_YOUNG_NS	  2000000000ULL
#define LANG_CHECK_SHARE  200
#define LANG_CHECK_MAX_NS 100000000ULL
#define LANG_SAME_FACTOR  10
/*
 * A search for a thread takes up to 1,500 calls. After one that did not find its thread, the next
 * one in this process is made after a pause, which is doubled each time.
 */
#define LANG_SEARCH_NS	   10000000ULL
#define LANG_SEARCH_MAX_NS (LANG_SEARCH_NS << 6)
#define LANG_WAYS	   4U

enum lang_encoding { LANG_BYTES, LANG_LATIN1, LANG_UTF16 };

/* Before a look at the first @size bytes of the stack. */
static inline void lang_chain_need(const struct lang_sample *s, uint64_t size)
{
	if (!s->rest || size <= s->rest->here)
		return;
	s->rest->copy(s->rest->ctx);
	s->rest->here = UINT64_MAX;
}

/* Read memory of a process at once, for its description; a word: 0 if it cannot be read. */
bool lang_memory_copy(pid_t pid, uint64_t addr, void *out, size_t size);
uint64_t lang_memory_word(pid_t pid, uint64_t addr);
/* Set the reason why it cannot be read, by errno. */
void lang_memory_refused(struct lang_process *p);
/* Queue the pieces that the last samples of the thread needed, and set the tail. */
void prefetch_want(struct lang_reader *r, struct lang_thread *t, const struct lang_sample *s);
/*
 * The bytes of the frame at @addr, read ahead or in another call, with the bytes below it unless
 * @alone. NULL: they cannot be read.
 */
const uint8_t *prefetch_frame(struct lang_reader *r, struct lang_thread *t, uint64_t addr,
			      uint32_t size, bool alone);
/* Number the code of each frame, each address once: sets script_functions_of. */
void functions_number(struct lang_reader *r, uint32_t process);
/* Return the index in script_functions_of of code without a frame; one entry must be free. */
uint32_t functions_code(struct lang_reader *r, uint32_t process, uint64_t address);
/* Find codes by their addresses again: some were left out. */
void functions_index(struct lang_work *w);
/* Set the ids of known functions by their stamps; returns how many are unknown. */
uint32_t functions_find(struct lang_reader *r, uint32_t process);
/* Append the bytes of @t to the @used ones of @out as UTF-8, SCRIPT_FUNCTIONS_TEXT_MAX at most;
 * return all. */
uint16_t functions_put_text(const struct lang_memory *m, const struct lang_text *t, char *out,
			    uint16_t used);
/* Put a function into the table. Return its id; CODE_UNNAMED if the table is full. */
uint32_t functions_put(struct lang_reader *r, const struct code_key *key,
		       const struct code_text *text);
/* Make the table of lines of a new function, the parts of which were read, at @out. */
typedef void (*functions_lines_fn)(const struct lang_memory *m, struct lang_function *f,
				   uint8_t *out);
/* Name the functions of Lua that have no name, as Lua does: by file and line. */
void functions_name_lua(const struct lang_memory *m, struct lang_work *k);
/*
 * Give each code an id: its stamp and its entry in functions are set, no texts are read yet.
 * @lines: NULL if functions have no parts.
 */
enum lang_status functions_add(struct lang_reader *r, const struct lang_process *p,
			       uint32_t process, functions_lines_fn lines);
/*
 * Frames of a deep stack that are kept: the innermost ones, and the least number of the outermost;
 * calls after which no more of these are read, as the functions need some.
 */
#define LANG_INNER	     (LANG_FRAMES_MAX - 64U)
#define LANG_OUTER_LEAST     32U
#define LANG_OUTER_CALLS_MAX (LANG_CALLS_MAX / 4 * 3)

/* Leave out the frames of a full chain between the innermost ones and the @nr last ones. */
static inline void lang_leave_out(struct lang_work *w, uint32_t nr)
{
	uint64_t *const of_frames[] = { w->base, w->address, w->function, w->instr, w->boundary };

	for (size_t i = 0; i < ARRAY_SIZE(of_frames); i++)
		memmove(of_frames[i] + LANG_INNER, of_frames[i] + w->nr - nr,
			nr * sizeof(*of_frames[i]));
	w->nr = LANG_INNER + nr;
}

/* Keep which state thread @tid has. */
struct lang_thread *lang_chain_keep_thread(struct lang_reader *r, uint32_t process, pid_t tid,
					   uint64_t state, uint64_t id);

/*
 * V8: from candidates for frames to functions, in steps of a reader: their scripts, names
 * and lines, and their compiled code. Hostile memory; the type of each object is checked.
 */

/* Of a BytecodeArray. */
#define V8_BYTECODES_HEAD 40

/*
 * Queue the heads of scripts of functions from @first on; find the scripts: the ends of their
 * lines, or the next part of their texts. False: no call is left.
 */
void v8script_want(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
		   uint32_t first);
bool v8script_read(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		   struct v8_types *t);
/* The bytecodes that a function has in a frame; 0: none. */
uint64_t v8code_bytecodes(const struct lang_work *w, uint32_t code);
/* Return whether the text of the function's script is read, or there is none. */
bool v8script_is_whole(const struct lang_work *w, uint32_t code);
/* The line of a position in the script of a function; 0: not known. */
uint32_t v8script_line(const struct lang_work *w, uint32_t code, uint32_t position);
/* Read names, files and lines of new functions. False: not now. */
bool v8names_read(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		  const uint32_t *codes, uint32_t nr, struct v8_types *t);
/* Find code of WebAssembly in a stack, and the names of its functions. */
void v8wasm_read(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s);
/* The proof of the layout of a process. */
struct lang_proof *v8names_proof(struct lang_reader *r, uint32_t process);

#endif
