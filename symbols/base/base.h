/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shared base: errors, time, hashing, arrays, sorting, macros. Every room may include it. */
#ifndef SYMBOLS_BASE_BASE_H
#define SYMBOLS_BASE_BASE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct timespec;

/*
 * Growable arrays: a pointer, the number of elements in use, and the number
 * that fit. All zero is an empty array; free() releases it.
 *
 * Threads: an array has one owner; there is no locking.
 */

/*
 * Reserve @nr elements in *@array, at least doubling it: so appending
 * one by one is linear. False: out of memory, or 2^32 elements are passed;
 * the array is then as before. New elements are not initialised.
 *
 *	if (!array_reserve(&a->items, &a->room, a->nr + 1ull))
 *		return -ENOMEM;
 *	a->items[a->nr++] = item;
 */
#define array_reserve(array, room, nr) array_reserve_size((array), (room), (nr), sizeof(**(array)))
/* The same; new elements are zero: an index by ids. */
#define array_reserve_zeroed(array, room, nr)                                                      \
	array_reserve_zeroed_size((array), (room), (nr), sizeof(**(array)))

/* The same; @array is the address of a pointer to elements of @size bytes. */
bool array_reserve_size(void *array, uint32_t *room, uint64_t nr, size_t size);
bool array_reserve_zeroed_size(void *array, uint32_t *room, uint64_t nr, size_t size);

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

/*
 * Allocate zeroed memory for sampler threads, and threads that share a lock with them:
 * malloc(3) waits for a thread that is in it, and without CPU time on a busy machine. NULL: none.
 */
void *urgent_alloc(size_t size) __attribute__((malloc));
/* Free it; any thread. @p may be NULL. */
void urgent_free(void *p);

/* Mix all bits of @x (the finaliser of splitmix64, Steele et al. 2014). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/*
 * Numbers in foreign bytes, at any alignment, in the order of this machine.
 *
 * Threads: any.
 */

static inline uint32_t bytes_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t bytes_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * Load libraries that few runs need: linking them would map and relocate them at
 * every start.
 *
 * Any thread. A loaded library is never unloaded.
 */

/* A function, and the offset of its pointer in the struct of the caller. */
struct library_function {
	const char *name;
	size_t at;
};

/*
 * Load the library @soname and store pointers to all @nr functions. False: not
 * installed, or a function is missing.
 */
bool library_find(const char *soname, void *functions, const struct library_function *list,
		  size_t nr);

/* Search in sorted arrays. Pure; any thread. */

/*
 * Return how many of the elements 0 to @nr - 1 are the first ones: @is_first is an expression of
 * the index @i, true for the first elements and false for all after them. Evaluates it log2(@nr)
 * times.
 *
 *	uint32_t after = search_split(nr, i, starts[i] <= addr);
 *
 *	return after && addr < ends[after - 1] ? after - 1 : NONE;
 */
#define search_split(nr, i, is_first)                                                              \
	({                                                                                         \
		uint32_t low_ = 0, high_ = (nr);                                                   \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const uint32_t i = low_ + (high_ - low_) / 2;                              \
                                                                                                   \
			if (is_first)                                                              \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

/*
 * Fields of a line of text (kallsyms, maps, perf maps): blanks, words, hex numbers.
 *
 * Pure; reads nothing at or after @end.
 */

/* Value of a hex digit plus one; 0: not a digit. */
extern const uint8_t fields_digits[256];

static inline int fields_digit(char c)
{
	return fields_digits[(uint8_t)c] - 1;
}

static inline bool fields_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline const char *fields_skip_blanks(const char *p, const char *end)
{
	while (p < end && fields_is_blank(*p))
		p++;
	return p;
}

/* Read a hex number into *@out and return its end. NULL: no digit, or more than 64 bits. */
const char *fields_hex(const char *p, const char *end, uint64_t *out);

/* Sort large arrays by a number. Pure; any thread. */

static inline uint64_t sort_number(const uint8_t *record)
{
	uint64_t number;

	memcpy(&number, record, sizeof(number));
	return number;
}

/* Return byte @digit of the number that @record begins with. */
static inline uint8_t sort_digit(const uint8_t *record, unsigned int digit)
{
	return (uint8_t)(sort_number(record) >> 8 * digit);
}

/*
 * Sort @nr records of @size bytes, a constant, by the uint64_t that each begins with; equal ones
 * keep their order. Digit by digit: of addresses, three or four differ. qsort() takes five times as
 * long for 100,000. 0, or -ENOMEM: unchanged.
 */
static inline int sort_by_number(void *records, uint32_t nr, size_t size)
{
	uint8_t *spare = alloc_to_fill(nr * size + 1), *from = records, *to = spare, *swap;
	uint64_t differ = 0;

	if (!spare)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr; i++)
		differ |= sort_number(from + i * size) ^ sort_number(from);
	for (unsigned int digit = 0; digit < sizeof(differ); digit++) {
		uint32_t at[256] = { 0 }, sum = 0;

		if (!(differ >> 8 * digit & 0xff))
			continue;
		for (uint32_t i = 0; i < nr; i++)
			at[sort_digit(from + i * size, digit)]++;
		for (unsigned int d = 0; d < 256; d++) {
			uint32_t here = at[d];

			at[d] = sum;
			sum += here;
		}
		for (uint32_t i = 0; i < nr; i++) {
			const uint8_t *record = from + i * size;

			memcpy(to + at[sort_digit(record, digit)]++ * size, record, size);
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != records)
		memcpy(records, from, nr * size);
	free(spare);
	return 0;
}

#endif
