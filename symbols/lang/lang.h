/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interpreters: the description of one, and frames of its language.
 *
 * A description is made once by the loader (describe.h), published with its
 * process, and never changes. A reader copies it, reads the memory of a
 * preempted thread, and makes a chain (chain.h). All numbers of the
 * process are hostile.
 *
 * Another language is another enum lang_kind, its rules in describe.c, and one
 * decoder in chain.c.
 */
#ifndef SYMBOLS_LANG_LANG_H
#define SYMBOLS_LANG_LANG_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "symbols/lang/pylayout.h"
#include "symbols/lang/v8layout.h"

enum lang_kind {
	LANG_NONE,
	LANG_PYTHON,
	LANG_PHP,
	LANG_RUBY,
	LANG_PERL,
	LANG_NODE,
	LANG_NR,
	/* No reader, no chain: its frames are on the native stack. Also its kind letter. */
	LANG_JAVA = 'J',
};

/* The bit of @kind in a set of languages. */
static inline uint32_t lang_bit(enum lang_kind kind)
{
	return 1U << (kind == LANG_JAVA ? 31 : kind);
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

/* PHP's layout of functions, without threads: what differs by version. */
struct php_layout {
	uint16_t current;		 /* executor_globals.current_execute_data */
	uint8_t nr_ops, ops, file, line; /* of zend_op_array */
};

/* Functions of the interpreter loop in one process: a hot part, and cold ones. */
#define LANG_EVAL_MAX 4
#define LANG_MAIN_MAX 3

struct lang_range {
	uint64_t start, end; /* addresses, end exclusive */
};

/* The interpreter of one process. A value: readers copy it. */
struct lang_process {
	enum lang_kind kind;
	uint32_t version;   /* 0x030b02f0 */
	const char *reason; /* static: why there are no frames; NULL: there are */
	bool refused;	    /* the reason is a missing right */
	bool untried;  /* a version that was never compared with the truth: frames are guesses */
	bool nested;   /* it knows its threads by the ids of another pid namespace */
	uint32_t user; /* its real uid; UINT32_MAX: unknown */
	struct lang_range eval[LANG_EVAL_MAX];
	uint32_t nr_eval;
	/* Functions of Perl that run the main program; one of an embedder is not in any. */
	struct lang_range main[LANG_MAIN_MAX];
	uint32_t nr_main; /* 0: unknown */
	uint64_t runtime; /* address of _PyRuntime; executor_globals of PHP; ruby_current_vm_ptr */
	uint64_t code_type; /* address of PyCode_Type */
	struct py_layout py;
	struct v8_layout v8;
	struct php_layout php;
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

/* Return whether @ip is in a function that runs the main program. */
static inline bool lang_is_main(const struct lang_process *p, uint64_t ip)
{
	return lang_in_ranges(p->main, p->nr_main, ip);
}

/* Why a sample of such a process has no frames of the language. */
enum lang_none {
	LANG_NONE_NO_READER, /* not read: no reader yet, or it was late */
	LANG_NONE_VERSION,   /* a version or build with an unknown layout */
	LANG_NONE_REFUSED,   /* its memory may not, or could not, be read */
	LANG_NONE_NO_THREAD, /* a thread that the interpreter does not know */
	LANG_NONE_NO_FRAMES, /* the thread ran no code of the language */
	LANG_NONE_BAD_CHAIN, /* no valid chain of frames */
	LANG_NONE_MISMATCH,  /* its frames do not fit the native stack */
	LANG_NONE_NO_ROOM,   /* too many functions, or steps to the first frame */
	LANG_NONE_GC,	     /* a thread of a JVM: its collector's */
	LANG_NONE_COMPILER,
	LANG_NONE_VM,	    /* another one of the JVM itself */
	LANG_NONE_NEW_CODE, /* compiled code that was not read yet */
	LANG_NONE_NR,
};
/* Classify a thread of a JVM by its name: LANG_NONE_NO_FRAMES: it may run Java. */
enum lang_none lang_jvm_thread(const char *comm);
/* "no reader", ...: words for the screen; with '_' for programs. */
const char *lang_none_name(enum lang_none why);

/* The compiled code of a function (V8). */
struct lang_compiled {
	uint64_t start;
	uint32_t size; /* 0: not known */
	uint32_t code; /* id of its table of lines in the table of codes; CODE_NONE: not known */
	bool inlined;  /* with other functions */
};

/* Code that a function of V8 may run: its own, and its baseline code. */
#define LANG_COMPILED 2

/* A frame of the language, as it was read. */
struct lang_frame {
	uint32_t code;	   /* id in the table of codes */
	uint32_t instr;	   /* Python: bytes from the first instruction on; Ruby: words; others: the
			      line; LANG_NO_INSTR: not known */
	uint64_t boundary; /* 0: the next frame is run by the same C frame of the loop; else this
			      is the last one, and an address in that C frame, or 1: not known.
			      V8: the frame pointer; 0: it has none yet */
	struct lang_compiled compiled[LANG_COMPILED];
};

/* The position of the thread of a sample in code that V8 compiled. */
enum lang_top {
	LANG_TOP_UNKNOWN,
	LANG_TOP_BODY, /* the frame at the frame pointer is this code's */
};

#define LANG_NO_INSTR	UINT32_MAX
#define LANG_INLINED	(LANG_NO_INSTR - 1) /* other functions may be inlined there */
#define LANG_FRAMES_MAX 512U

/* The chain of one thread at one sample, or the reason for none. */
struct lang_slot {
	uint64_t time_ns; /* of the sample */
	uint32_t pid, tid;
	uint64_t same;	  /* the stack was as in the sample when it was read, up to this address */
	uint8_t none;	  /* enum lang_none; LANG_NONE_NR: there are frames */
	uint8_t checked;  /* each check but that of the stack held */
	uint16_t nr;	  /* frames, innermost first */
	uint8_t settled;  /* the innermost frame is the last one on the stack of frames */
	uint8_t top;	  /* enum lang_top */
	uint8_t rooted;	  /* the copy of the stack has all C frames of the thread's loop */
	uint8_t late;	  /* not checked because of the time of the read */
	uint32_t process; /* incarnation */
	uint16_t nr_here; /* frames on the sampled C stack, others are of its resumers; 0: all */
	uint8_t deep;	  /* the outermost frames were not read: there are too many */
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

#endif
