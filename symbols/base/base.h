/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shared base: errors, time, hashing, macros. Every layer may include it. */
#ifndef SYMBOLS_BASE_BASE_H
#define SYMBOLS_BASE_BASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#undef ARRAY_SIZE /* of libiberty; the same */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
/* Compare for qsort(): negative, 0 or positive. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Keep fields that different threads write at least this far apart. */
#define CACHELINE 64

/*
 * One error message: the failure, its reason, the fix; three lines at most. Written by
 * set-up code, never on the hot path.
 */
struct err {
	char text[768];
};

/*
 * Format the message and return @code (a negative errno), as in "return
 * err_set(...)". Replaces control bytes other than newline, so foreign text may be
 * an argument. @e may be NULL.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Return the kernel's CLOCK_MONOTONIC in nanoseconds, the clock of every perf record. */
uint64_t time_now_ns(void);
/*
 * In a time namespace, time_namespaces(7), this process sees another CLOCK_MONOTONIC than perf
 * records have: read the difference from /proc/self below @root. Before all other threads.
 */
void time_read_namespace(const char *root);
/* Convert a time for functions that wait until a time of CLOCK_MONOTONIC. */
struct timespec time_deadline(uint64_t time_ns);
/*
 * Parse a time of @size bytes: digits with at most one point, then ms, s, m or h; s if there is
 * none. 0, or -EINVAL: something else, or more than 100 years.
 */
int time_parse(const char *text, size_t size, uint64_t *ns);
/* Return the time of a clock, clock_gettime(2), in nanoseconds; 0: its thread or process has ended.
 */
uint64_t time_clock_ns(clockid_t clock);
/* Return the CPU time of the calling thread in nanoseconds. */
uint64_t time_thread_ns(void);
/* Convert a time of time_now_ns() to the present CLOCK_REALTIME. */
uint64_t time_real_ns(uint64_t time_ns);

/*
 * Make a mutex with priority inheritance: sampler threads, which go before all
 * others, wait for its holder.
 */
void mutex_init_urgent(pthread_mutex_t *lock);

/* Write all bytes to @fd. 0 or -errno. */
int fd_write_all(int fd, const void *bytes, size_t size);

/* End the program with a message. */
void out_of_memory(void) __attribute__((noreturn));
/* Allocate zeroed memory at set-up, or end the program with a message. */
void *xcalloc(size_t nr, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc_array(void *p, size_t nr, size_t size) __attribute__((returns_nonnull));
char *xstrndup(const char *s, size_t size) __attribute__((malloc, returns_nonnull));
/*
 * Allocate memory that is going to be filled, as malloc(): whole large pages of it, as it takes
 * longer to get small ones than to fill them. realloc() to more may copy it. NULL: none.
 */
void *alloc_to_fill(size_t size) __attribute__((malloc));
/*
 * Allocate zeroed memory, from 64 KiB on mapped by itself: pages that are not used are not
 * resident, and all go back when it is freed. calloc(3) may take free memory of the heap,
 * and clear it. NULL: none.
 */
void *alloc_sparse(size_t size) __attribute__((malloc));
/* Free what alloc_sparse() returned for @size. */
void free_sparse(void *p, size_t size);

/* Mix all bits of @x (the finaliser of splitmix64, Steele et al. 2014). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

#endif
