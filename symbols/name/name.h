/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kind of a wait, from the names of the functions on its stack.
 *
 * Pure; any thread. A kind is also the file offset of a place in the object [wait], with a symbol
 * that is its name: the innermost frame of a waiting stack.
 */
#ifndef SYMBOLS_NAME_WAIT_KIND_H
#define SYMBOLS_NAME_WAIT_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wait_kind {
	WAIT_NO,	/* not a wait */
	WAIT_RUNNING,	/* on a CPU: exact times only, without a stack */
	WAIT_QUEUE,	/* runnable, in a run queue */
	WAIT_LOCK,	/* futex, kernel mutex */
	WAIT_CONDITION, /* condition variable, barrier */
	WAIT_POLL,	/* poll, epoll, select, io_uring: for an event */
	WAIT_SLEEP,	/* for a time */
	WAIT_PIPE,	/* pipe, socket, terminal */
	WAIT_DISK,
	WAIT_FAULT,   /* page fault */
	WAIT_CHILD,   /* wait4(), pthread_join() */
	WAIT_KTHREAD, /* a kernel thread waits for work */
	WAIT_OTHER,
	WAIT_ASLEEP, /* asleep; the kind is found in the stack */
	WAIT_LONG,   /* the same, WAIT_LONG_NS and more */
	WAIT_FOUND,  /* no kind: a mark below it, of a wait found in /proc */
	WAIT_CUT,    /* no kind: the outermost frame of a wait with unknown callers */
	WAIT_NR,
};

/* A wait in poll or for a condition variable is idle from this age on: it is for work. */
#define WAIT_LONG_NS 100000000ULL

/* Return the name of the frame: "[lock]". */
const char *wait_kind_name(enum wait_kind kind);
/* Return the kind with this name; WAIT_OTHER: none has it. */
enum wait_kind wait_kind_named(const char *name, size_t size);
/* Return the key of the kind for programs: "lock". */
const char *wait_kind_key(enum wait_kind kind);

/* The meaning of a function on the stack of a waiting task. */
struct wait_hint {
	uint8_t kind;	/* enum wait_kind; WAIT_NO: nothing */
	bool scheduler; /* a function of the scheduler itself: left out of stacks */
	bool kthread;	/* outermost function of kernel threads */
};

/* Return the hint of a kernel function, or of a function of a program (@kernel false). */
struct wait_hint wait_hint(const char *name, size_t size, bool kernel);
/*
 * Return the kind of a wait in a system call of a CPU (e_machine: EM_X86_64, EM_AARCH64); WAIT_NO:
 * it may wait for anything.
 */
enum wait_kind wait_kind_of_call(long number, uint16_t machine);

/* A stack that is looked at, from the innermost frame outwards. All zero: not begun. */
struct wait_look {
	enum wait_kind kind; /* so far; WAIT_NO: not known */
	bool program;	     /* a function of the program had a meaning */
};

void wait_look_at(struct wait_look *look, struct wait_hint hint, bool kernel);

#endif
