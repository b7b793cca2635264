// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Errors, time and allocation at set-up; growable arrays, bytes, numbers and words of a line,
 * sorting, libraries loaded on first use. Any thread.
 */
#include "symbols/base/base.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TIME_MAX_S 3155760000.0
#define LARGE_PAGE ((size_t)2 << 20)
#define SPARSE_MIN (64UL << 10)

/* A sanitizer knows the bounds of what malloc(3) returns. */
#ifdef __has_feature
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	for (char *p = e->text; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c < 0x20 && c != '\n') || c == 0x7f)
			*p = '?';
	}
	return code;
}

uint64_t time_clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC of this process minus that of the kernel. */
static int64_t namespace_ns;

uint64_t time_now_ns(void)
{
	return time_clock_ns(CLOCK_MONOTONIC) - (uint64_t)namespace_ns;
}

void time_read_namespace(const char *root)
{
	char path[512], line[128];
	long long seconds, ns;
	FILE *f;

	namespace_ns = 0;
	snprintf(path, sizeof(path), "%s/proc/self/timens_offsets", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "monotonic %lld %lld", &seconds, &ns) == 2)
			namespace_ns = (int64_t)seconds * 1000000000 + ns;
	if (f)
		fclose(f);
}

struct timespec time_deadline(uint64_t time_ns)
{
	uint64_t at = time_ns + (uint64_t)namespace_ns;

	return (struct timespec){ .tv_sec = (time_t)(at / 1000000000),
				  .tv_nsec = (long)(at % 1000000000) };
}

uint64_t time_thread_ns(void)
{
	return time_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t time_real_ns(uint64_t time_ns)
{
	return time_clock_ns(CLOCK_REALTIME) + time_ns - time_now_ns();
}

int fd_write_all(int fd, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	assert(fd >= 0 && (bytes || !size));
	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

void out_of_memory(void)
{
	static const char text[] = "proftop: out of memory\n";

	/* The guard restores the terminal. Nothing is flushed: that may allocate. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* Allocations at set-up are small and bounded; without them there is nothing to show. */
static void *check_memory(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

void mutex_init_urgent(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(lock, &attr))
		pthread_mutex_init(lock, NULL);
	pthread_mutexattr_destroy(&attr);
}

void *xcalloc(size_t nr, size_t size)
{
	return check_memory(calloc(nr ? nr : 1, size ? size : 1));
}

void *xrealloc_array(void *p, size_t nr, size_t size)
{
	return check_memory(reallocarray(p, nr ? nr : 1, size ? size : 1));
}

char *xstrndup(const char *s, size_t size)
{
	return check_memory(strndup(s, size));
}

/* Return the seconds of a unit; 0: unknown. */
static double unit_of(const char *text, size_t size)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "h", 3600 } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == size && !memcmp(units[i].name, text, size))
			return units[i].seconds;
	return 0;
}

int time_parse(const char *text, size_t size, uint64_t *ns)
{
	double value = 0, place = 0, seconds;
	size_t i = 0, digits = 0;

	assert(text && ns);
	for (; i < size && ((text[i] >= '0' && text[i] <= '9') || (text[i] == '.' && !place));
	     i++) {
		if (text[i] == '.') {
			place = 1;
			continue;
		}
		value = value * 10 + (text[i] - '0');
		place *= 10;
		digits++;
	}
	seconds = unit_of(text + i, size - i);
	if (!digits || digits > 18 || !(seconds > 0))
		return -EINVAL;
	value = value / (place > 0 ? place : 1) * seconds;
	if (value > TIME_MAX_S)
		return -EINVAL;
	*ns = (uint64_t)(value * 1e9 + 0.5);
	return 0;
}

void *alloc_to_fill(size_t size)
{
	void *p;

	if (size < LARGE_PAGE)
		return malloc(size);
	/* Not aligned_alloc(3), which wants a multiple of the page. */
	if (posix_memalign(&p, LARGE_PAGE, size))
		return NULL;
	madvise(p, size - size % LARGE_PAGE, MADV_HUGEPAGE);
	return p;
}

static bool is_mapped(size_t size)
{
	return size >= SPARSE_MIN && !SANITIZED;
}

void *alloc_sparse(size_t size)
{
	void *p;

	if (!is_mapped(size))
		return calloc(1, size);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void free_sparse(void *p, size_t size)
{
	if (!is_mapped(size))
		free(p);
	else if (p)
		munmap(p, size);
}

/*
 * Memory for threads that go before all others.
 *
 * The locks of malloc(3) have no priority inheritance: a thread that is preempted in it stops all
 * others that need its heap, for as long as it has no CPU. Here is one lock, which has it. Pieces
 * of one size are in slabs, so that the slab of a piece is found by its address; freed pieces are
 * used before untouched ones. A slab without pieces is unmapped, unless it is the last of its size
 * with room, and was small. A piece above PIECE_MAX has a slab for itself.
 *
 * Runs on: any thread.
 */

#define SLAB	  ((size_t)512 << 10)
#define SLAB_HEAD 64u
#define PIECE_MIN 64u
#define PIECE_MAX ((size_t)64 << 10)
#define NR_PIECES 41u /* four sizes from one power of two to the next */
#define KEPT_MAX  ((size_t)64 << 10)
#define ROUND	  ((size_t)64 << 10) /* a multiple of all sizes of pages */

struct slab {
	struct slab *next, **link; /* in the list of slabs with room; link NULL: not in it */
	void *freed;		   /* a list through the pieces */
	size_t size, piece;
	uint32_t nr, nr_used, nr_touched;
};

_Static_assert(sizeof(struct slab) <= SLAB_HEAD, "the pieces follow");

static struct {
	pthread_mutex_t lock;
	struct slab *slabs[NR_PIECES];
} urgent;

/* Before main(): pthread_once() makes a system call that readers of interpreters may not make. */
__attribute__((constructor)) static void urgent_init(void)
{
	mutex_init_urgent(&urgent.lock);
}

static size_t piece_size(unsigned int kind)
{
	return (size_t)PIECE_MIN / 4 * (4 + kind % 4) << kind / 4;
}

/* Return the kind of the smallest piece of @size; NR_PIECES: it is larger than all. */
static unsigned int piece_kind(size_t size)
{
	unsigned int kind = 0;

	while (kind < NR_PIECES && piece_size(kind) < size)
		kind++;
	return kind;
}

/* Map a slab at a multiple of SLAB, for @nr pieces. */
static struct slab *slab_new(size_t piece, uint32_t nr)
{
	size_t size = (SLAB_HEAD + nr * piece + ROUND - 1) / ROUND * ROUND, before;
	char *p;
	struct slab *s;

	if (size < piece || size + SLAB < size)
		return NULL;
	p = mmap(NULL, size + SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	before = (SLAB - (uintptr_t)p % SLAB) % SLAB;
	if (before)
		munmap(p, before);
	munmap(p + before + size, SLAB - before);
	s = (struct slab *)(void *)(p + before);
	*s = (struct slab){ .size = size, .piece = piece, .nr = nr };
	return s;
}

static void slab_link(struct slab *s)
{
	struct slab **list = &urgent.slabs[piece_kind(s->piece)];

	s->next = *list;
	s->link = list;
	if (s->next)
		s->next->link = &s->next;
	*list = s;
}

static void slab_unlink(struct slab *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->next = NULL;
	s->link = NULL;
}

static void *piece_take(struct slab *s)
{
	void *p = s->freed;

	assert(s->nr_used < s->nr);
	if (p)
		memcpy(&s->freed, p, sizeof(s->freed));
	else
		p = (char *)s + SLAB_HEAD + s->nr_touched++ * s->piece;
	if (++s->nr_used == s->nr && s->link)
		slab_unlink(s);
	return p;
}

/* Give a piece back. Return its slab if that is to be unmapped. */
static struct slab *piece_put(struct slab *s, void *p)
{
	assert(s->nr_used);
	memcpy(p, &s->freed, sizeof(s->freed));
	s->freed = p;
	if (s->nr_used-- == s->nr && s->nr > 1)
		slab_link(s);
	if (s->nr_used)
		return NULL;
	/* The last one with room, unless it has been large. */
	if (s->nr > 1 && !s->next && s->link == &urgent.slabs[piece_kind(s->piece)] &&
	    s->nr_touched * s->piece <= KEPT_MAX)
		return NULL;
	if (s->link)
		slab_unlink(s);
	return s;
}

void *urgent_alloc(size_t size)
{
	unsigned int kind = piece_kind(size);
	struct slab *s;
	void *p;

	if (SANITIZED)
		return calloc(1, size);
	if (kind == NR_PIECES) {
		s = slab_new(size, 1);
		return s ? piece_take(s) : NULL;
	}
	pthread_mutex_lock(&urgent.lock);
	s = urgent.slabs[kind];
	if (!s) {
		size_t piece = piece_size(kind);

		s = slab_new(piece, (uint32_t)((SLAB - SLAB_HEAD) / piece));
		if (s)
			slab_link(s);
	}
	p = s ? piece_take(s) : NULL;
	pthread_mutex_unlock(&urgent.lock);
	return p ? memset(p, 0, size) : NULL;
}

void urgent_free(void *p)
{
	struct slab *s = (struct slab *)(void *)((char *)p - (uintptr_t)p % SLAB);

	if (SANITIZED || !p) {
		free(p);
		return;
	}
	pthread_mutex_lock(&urgent.lock);
	s = piece_put(s, p);
	pthread_mutex_unlock(&urgent.lock);
	if (s)
		munmap(s, s->size);
}

/*
 * Growable arrays. Runs on: any thread.
 */

#define ROOM_MIN 64u

bool array_reserve_size(void *array, uint32_t *room, uint64_t nr, size_t size)
{
	uint64_t larger = MAX(MAX(2ull * *room, nr), ROOM_MIN);
	void *p;

	assert(size);
	if (nr <= *room)
		return true;
	larger = MIN(larger, UINT32_MAX);
	if (nr > UINT32_MAX || larger > SIZE_MAX / size)
		return false;
	/* A pointer of any type is read and written by its bytes. */
	memcpy(&p, array, sizeof(p));
	p = realloc(p, larger * size);
	if (!p)
		return false;
	memcpy(array, &p, sizeof(p));
	*room = (uint32_t)larger;
	return true;
}

bool array_reserve_zeroed_size(void *array, uint32_t *room, uint64_t nr, size_t size)
{
	uint32_t before = *room;
	char *p;

	assert(array && room && size);
	if (!array_reserve_size(array, room, nr, size))
		return false;
	memcpy(&p, array, sizeof(p));
	if (*room > before)
		memset(p + before * size, 0, (*room - before) * size);
	return true;
}

/*
 * Numbers in lines of text. Pure.
 */

const uint8_t fields_digits[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

const char *fields_hex(const char *p, const char *end, uint64_t *out)
{
	const char *first = p;
	uint64_t value = 0;
	uint8_t digit;

	for (; p < end && (digit = fields_digits[(uint8_t)*p]); p++)
		value = value << 4 | (digit - 1U);
	*out = value;
	if (p == first)
		return NULL;
	while (first < p && *first == '0')
		first++;
	return p - first > 16 ? NULL : p;
}

/*
 * dlopen(3) without dlclose(3): threads of a library may still run.
 */

bool library_find(const char *soname, void *functions, const struct library_function *list,
		  size_t nr)
{
	void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	assert(soname && functions && list);
	for (size_t i = 0; handle && i < nr; i++) {
		void *function = dlsym(handle, list[i].name);

		if (!function)
			return false;
		memcpy((char *)functions + list[i].at, &function, sizeof(function));
	}
	return handle;
}
