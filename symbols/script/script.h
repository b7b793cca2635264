/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of a thread in its interpreter's language, from the memory of the
 * process, while the thread is preempted.
 *
 * Runs on: a reader. Everything kept from sample to sample (states of
 * threads, addresses of the last reads, known code) is a cache: each use is
 * checked against fresh reads.
 */
#ifndef SYMBOLS_LANG_CHAIN_H
#define SYMBOLS_LANG_CHAIN_H

#include <sys/types.h>

#include "symbols/lang/codes.h"
#include "symbols/lang/lang.h"
#include "symbols/lang/line_ends.h"
#include "symbols/lang/memory.h"
#include "symbols/lang/v8table.h"

/* Windows on the frames of the last chain of a thread, read ahead at its next sample. */
#define LANG_AHEAD 256
/* Other pieces read ahead. */
#define LANG_MORE 96

struct lang_ahead {
	uint64_t addr;
	uint32_t size;
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
};

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

/*
 * A search for a thread takes up to 1,500 calls. After one that did not find its thread, the next
 * one in this process is made after a pause, which is doubled each time.
 */
#define LANG_SEARCH_NS	   10000000ULL
#define LANG_SEARCH_MAX_NS (LANG_SEARCH_NS << 6)

struct lang_search {
	uint32_t process; /* 0: empty */
	uint64_t pause_ns, until_ns;
};

#define LANG_THREADS  512U /* powers of two */
#define LANG_WAYS     4U
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

enum lang_encoding { LANG_BYTES, LANG_LATIN1, LANG_UTF16 };

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
#define LANG_V8_NEW	16U /* compiled code, at a sample; the rest at the next one */
#define LANG_V8_INLINED 64U /* functions; code with more has no table */

/* The work of the reader of V8 at a sample. "Pieces" are of memory. */
struct lang_v8_work {
	enum lang_top top;
	/* Of each frame. */
	uint64_t function[LANG_FRAMES_MAX];
	int piece[LANG_FRAMES_MAX];
	uint64_t bytecodes[LANG_FRAMES_MAX]; /* 0: none */
	int bytecodes_piece[LANG_FRAMES_MAX];
	/* Of each function: the heads of its code, of its baseline code, and of the first one's
	 * data. */
	int compiled[LANG_FRAMES_MAX][LANG_COMPILED], data[LANG_FRAMES_MAX];
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
		uint32_t nr_functions; /* that are inlined */
		uint16_t function[LANG_V8_INLINED];
	} news[LANG_V8_NEW];
	uint32_t ends[LANG_PIECE_MAX];			   /* of lines, in one part */
	uint32_t used;					   /* bytes of lines */
	uint8_t lines[256U << 10];			   /* tables of new functions */
	uint8_t table[V8_TABLE_MAX];			   /* of compiled code */
	char texts[2 * V8_NEW_MAX * (CODES_TEXT_MAX + 1)]; /* of strings in parts */
};

/* The state of one reader. */
struct lang_reader {
	struct lang_memory memory;
	struct codes *codes; /* borrowed, shared */
	uint32_t next_way;
	uint32_t replaces[LANG_REPLACES];	    /* processes that have replaced code, by hash */
	struct lang_search searches[LANG_SEARCHES]; /* by process, by hash */
	struct lang_thread threads[LANG_THREADS];
	struct lang_known known[LANG_KNOWN];
	struct lang_work { /* of the chain in hand */
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
		uint32_t nr_here;		    /* as in struct lang_slot */
		uint64_t base[LANG_FRAMES_MAX];	    /* of frames on that stack; 0: in a generator */
		uint64_t address[LANG_FRAMES_MAX];  /* of each frame's code */
		uint64_t function[LANG_FRAMES_MAX]; /* as in struct lang_known; CPython's */
		uint64_t instr[LANG_FRAMES_MAX]; /* as in struct lang_frame, once codes have ids */
		uint64_t boundary[LANG_FRAMES_MAX];
		uint16_t code[LANG_FRAMES_MAX]; /* of each frame, in codes_of */
		struct lang_code_at {
			uint64_t address, stamp, name, function;
			int header, hash; /* pieces */
			uint32_t id, words;
			struct lang_known *known;
			bool fresh; /* checked lately: its header is not read */
		} codes_of[LANG_FRAMES_MAX];
		struct lang_function functions[LANG_FRAMES_MAX]; /* as codes_of; not CPython's */
		uint16_t slots[2 * LANG_FRAMES_MAX]; /* of codes_of by address: index + 1 */
		struct lang_v8_work v8;		     /* V8's, before they are codes */
		uint8_t ruby_lines[64U << 10];	     /* tables of new functions */
	} work;
};

/* The rest of a copy of a stack, which most chains do not need. */
struct lang_rest {
	uint64_t here; /* bytes that are there; UINT64_MAX: all */
	void (*copy)(void *ctx);
	void *ctx;
};

/* The sample, before memory is read. */
struct lang_sample {
	uint32_t process; /* incarnation */
	pid_t tid;	  /* as the process knows it */
	bool is_main;	  /* the first thread of its process: the only one after a fork() */
	uint64_t sp;
	uint64_t loop[2];     /* in the loop of PHP: its frame and its statement; else 0 */
	const uint8_t *stack; /* the kernel's copy of the stack, from sp on */
	uint64_t stack_size;
	struct lang_rest *rest; /* for lang_chain_need(); NULL: the whole copy is there */
	uint64_t time_ns;
	uint64_t pc, fp, rdi; /* registers; 0: not known. fp, rdi: for V8 only */
	uint64_t r9, r15; /* V8's interpreter: byte in the bytecodes; table of its code for each */
};

/* Before a look at the first @size bytes of the stack. */
static inline void lang_chain_need(const struct lang_sample *s, uint64_t size)
{
	if (!s->rest || size <= s->rest->here)
		return;
	s->rest->copy(s->rest->ctx);
	s->rest->here = UINT64_MAX;
}

/* A chain in the making: at most LANG_FRAMES_MAX frames. */
struct lang_chain {
	enum lang_none none; /* LANG_NONE_NR: there are frames */
	uint32_t nr, nr_here;
	uint64_t same;			    /* as in struct lang_slot */
	bool broken, settled, rooted, deep; /* as in struct lang_work */
	enum lang_top top;
	struct lang_frame frames[LANG_FRAMES_MAX];
};

/*
 * Read the chain of @s. False: the thread is not known yet, see
 * lang_chain_find_thread(); the chain says LANG_NONE_NO_THREAD.
 */
bool lang_chain(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s,
		struct lang_chain *out);
/*
 * Find the state of the thread of @s in its interpreter's lists, bounded, after lang_chain(); keeps
 * all states on the way. False: in this process it is too early for another search.
 */
bool lang_chain_find_thread(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s);

/* Queue the pieces that the last samples of the thread needed, and set the tail. */
void ahead_want(struct lang_reader *r, struct lang_thread *t, const struct lang_sample *s);
/* Note the pieces that this sample needed. @compared: bytes of the stack that had to be compared.
 */
void ahead_keep(const struct lang_reader *r, struct lang_thread *t, uint32_t compared);
/*
 * The bytes of the frame at @addr, read ahead or in another call, with the bytes below it unless
 * @alone. NULL: they cannot be read.
 */
const uint8_t *ahead_frame(struct lang_reader *r, struct lang_thread *t, uint64_t addr,
			   uint32_t size, bool alone);
/* Number the code of each frame, each address once: sets codes_of. */
void functions_number(struct lang_reader *r, uint32_t process);
/* Return the index in codes_of of code without a frame; one entry must be free. */
uint32_t functions_code(struct lang_reader *r, uint32_t process, uint64_t address);
/* Find codes by their addresses again: some were left out. */
void functions_index(struct lang_work *w);
/* Set the ids of known functions by their stamps; returns how many are unknown. */
uint32_t functions_find(struct lang_reader *r, uint32_t process);
/* Append the bytes of @t to the @used ones of @out as UTF-8, CODES_TEXT_MAX at most; return all. */
uint16_t functions_put_text(const struct lang_memory *m, const struct lang_text *t, char *out,
			    uint16_t used);
/* Put a function into the table. Return its id; CODE_UNNAMED if the table is full. */
uint32_t functions_put(struct lang_reader *r, const struct code_key *key,
		       const struct code_text *text);
/* Give each code an id: its stamp and its entry in functions are set, no texts are read yet. */
enum lang_none functions_add(struct lang_reader *r, const struct lang_process *p, uint32_t process);

/* PHP's. */
enum lang_none php_chain(struct lang_reader *r, const struct lang_process *p,
			 const struct lang_sample *s, struct lang_thread *t);
enum lang_none php_codes(struct lang_reader *r, const struct lang_process *p, uint32_t process);

/* Ruby's. */
enum lang_none ruby_chain(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, struct lang_thread *t);
enum lang_none ruby_codes(struct lang_reader *r, const struct lang_process *p, uint32_t process);
/* Make the table of lines of a new function, the parts of which were read, at @out. */
void ruby_set_lines(const struct lang_memory *m, struct lang_function *f, uint8_t *out);
void ruby_find_thread(struct lang_reader *r, const struct lang_process *p,
		      const struct lang_sample *s);

/* Perl's. */
enum lang_none perl_chain(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, struct lang_thread *t);
enum lang_none perl_codes(struct lang_reader *r, const struct lang_process *p, uint32_t process);

/* V8's (v8chain.c, v8code.c). */
enum lang_none v8chain_read(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s, struct lang_thread *t);
enum lang_none v8code_find(struct lang_reader *r, const struct lang_process *p, uint32_t process);

/* CPython's (pychain.c, pythread.c, pycode.c). */
enum lang_none pychain_read(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s, struct lang_thread *t);
void pythread_find(struct lang_reader *r, const struct lang_process *p,
		   const struct lang_sample *s);
enum lang_none pycode_find(struct lang_reader *r, const struct lang_process *p, uint32_t process);
/* Keep which state thread @tid has. */
void lang_chain_keep_thread(struct lang_reader *r, uint32_t process, pid_t tid, uint64_t state,
			    uint64_t id);

#endif
