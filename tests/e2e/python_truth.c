// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loaded into a Python program by ctypes: at each SIGTRAP of a sample
 * (perf_event_attr.sigtrap) a handler walks the chain of frames with the headers
 * of CPython, and writes it to shared memory.
 *
 * Built by tests/e2e/python.sh; shares no offset with proftop.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#elif PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/lang_truth.h"

static struct truth *truth;
static uintptr_t loop; /* _PyEval_EvalFrameDefault */
static __thread sigjmp_buf half_made;
static __thread volatile sig_atomic_t walking;

PyObject *_PyEval_EvalFrameDefault();

static uint64_t hash_text(uint64_t hash, PyObject *text)
{
	Py_ssize_t size;
	const void *data;
	int kind;

	if (!PyUnicode_Check(text))
		return 0; /* the frame is being made */
	size = PyUnicode_GET_LENGTH(text);
	kind = PyUnicode_KIND(text);
	data = PyUnicode_DATA(text);
	for (Py_ssize_t i = 0; i < size && i < 400; i++)
		hash = (hash ^ PyUnicode_READ(kind, data, i)) * TRUTH_PRIME;
	return hash;
}

static void put(struct truth_entry *e, PyCodeObject *code, int instr)
{
	uint64_t hash = TRUTH_SEED ^ (uint64_t)code->co_firstlineno;

	if (e->nr == TRUTH_FRAMES) {
		e->cut = 1;
		return;
	}
#if PY_VERSION_HEX >= 0x030b0000
	hash = hash_text(hash, code->co_qualname);
#else
	hash = hash_text(hash, code->co_name);
#endif
	e->hash[e->nr] = truth_join(hash, hash_text(TRUTH_SEED, code->co_filename));
	e->instr[e->nr++] = instr;
}

#if PY_VERSION_HEX >= 0x030b0000
static void walk(struct truth_entry *e, PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030d0000
	_PyInterpreterFrame *f = ts->current_frame;
#else
	_PyInterpreterFrame *f = ts->cframe->current_frame;
#endif

	for (; f; f = f->previous) {
#if PY_VERSION_HEX >= 0x030e0000
		if (f->owner >= FRAME_OWNED_BY_INTERPRETER)
			continue;
#elif PY_VERSION_HEX >= 0x030c0000
		if (f->owner == FRAME_OWNED_BY_CSTACK)
			continue;
#endif
#if PY_VERSION_HEX >= 0x030d0000
#if PY_VERSION_HEX >= 0x030e0000
		PyCodeObject *code = (PyCodeObject *)PyStackRef_AsPyObjectBorrow(f->f_executable);
#else
		PyCodeObject *code = (PyCodeObject *)f->f_executable;
#endif
		put(e, code, (int)((char *)f->instr_ptr - (char *)_PyCode_CODE(code)));
#else
		put(e, f->f_code, (int)((char *)f->prev_instr - (char *)_PyCode_CODE(f->f_code)));
#endif
	}
}
#else
static void walk(struct truth_entry *e, PyThreadState *ts)
{
	for (PyFrameObject *f = ts->frame; f; f = f->f_back)
#if PY_VERSION_HEX >= 0x030a0000
		put(e, f->f_code, f->f_lasti * 2);
#else
		put(e, f->f_code, f->f_lasti);
#endif
}
#endif

/* A sample may be taken while a frame or its code is being made: then there is no truth about it.
 */
static void on_fault(int sig)
{
	if (walking)
		siglongjmp(half_made, 1);
	signal(sig, SIG_DFL);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	struct timespec ts;
	struct truth_entry *e;
	uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	PyThreadState *state = PyGILState_GetThisThreadState();
	uint32_t at = atomic_fetch_add(&truth->nr, 1);

	if (at >= TRUTH_ENTRIES)
		return;
	e = &truth->entries[at];
	clock_gettime(CLOCK_MONOTONIC, &ts);
	e->pc = (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	e->sp = (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
	e->tid = (int)syscall(SYS_gettid);
	e->nr = 0;
	e->entering = pc - loop < TRUTH_PROLOGUE;
	if (sigsetjmp(half_made, 1)) {
		walking = 0;
		return;
	}
	walking = 1;
	if (state)
		walk(e, state);
	walking = 0;
	atomic_store(&e->time_ns, (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec);
}

int truth_start(const char *path)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction fault = { .sa_handler = on_fault };
	int fd = open(path, O_RDWR);

	if (fd < 0)
		return -1;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	loop = (uintptr_t)_PyEval_EvalFrameDefault;
	if (truth == MAP_FAILED || sigaction(SIGSEGV, &fault, NULL))
		return -1;
	return sigaction(SIGTRAP, &sa, NULL);
}
