/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPython's layout of frames, threads and code: byte offsets for each minor
 * version, x86-64 and other 64-bit CPUs with the same alignment.
 *
 * They were generated from the headers of 3.8 to 3.15. From 3.13 on a process
 * describes itself (_Py_DebugOffsets), which wins: so any patch level is read. Pure.
 */
#ifndef SYMBOLS_LANG_PYLAYOUT_H
#define SYMBOLS_LANG_PYLAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

#define PY_DEBUG_OFFSETS_WORDS 64

/* The layout of @version (as Py_Version), or NULL. */
const struct py_layout *pylayout_of(uint32_t version);
/*
 * From 3.13 on: copy the offsets of @words, the first of _PyRuntime, to @layout.
 * NULL, or static words why not.
 */
const char *pylayout_debug(struct py_layout *layout, const uint64_t words[PY_DEBUG_OFFSETS_WORDS]);

#endif
