// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text of /proc parsed; memory of another process read, bounded; processes that hang a reader are
 * left out.
 *
 * Forward only: every number is bounded by its line, every line by the text, so no input takes more
 * than one pass.
 *
 * Runs on: any thread (the loader).
 */
#include "symbols/process/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"

/* Parse a number of @base (10 or 16) that ends in @stop; moves *@at after it. */
static bool number(const char **at, const char *end, int base, char stop, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;
	int digit;

	for (; p < end && (digit = fields_digit(*p)) >= 0 && digit < base; p++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	if (p == *at || p == end || *p != stop)
		return false;
	*at = p + 1;
	*value = v;
	return true;
}

/* Parse "start-end rwxp offset maj:min ino    path", see proc(5); @end is the newline. */
static bool parse_map(const char *at, const char *end, struct procfs_map *m)
{
	uint64_t maj, min;

	if (!number(&at, end, 16, '-', &m->start) || !number(&at, end, 16, ' ', &m->end))
		return false;
	if (end - at < 5 || at[4] != ' ')
		return false;
	m->writable = at[1] == 'w';
	m->exec = at[2] == 'x';
	m->is_private = at[3] == 'p';
	at += 5;
	if (!number(&at, end, 16, ' ', &m->offset) || !number(&at, end, 16, ':', &maj) ||
	    !number(&at, end, 16, ' ', &min))
		return false;
	/* Without a path the line ends after the inode, or after a space. */
	if (!number(&at, end, 10, ' ', &m->ino) && !number(&at, end + 1, 10, '\n', &m->ino))
		return false;
	if (m->start >= m->end || maj > UINT32_MAX || min > UINT32_MAX)
		return false;
	m->maj = (uint32_t)maj;
	m->min = (uint32_t)min;
	while (at < end && *at == ' ')
		at++;
	m->path = at;
	m->path_size = at < end ? (size_t)(end - at) : 0;
	return true;
}

bool procfs_next_map(struct procfs_text *text, struct procfs_map *out)
{
	while (text->at < text->end) {
		const char *line = text->at;
		const char *newline = memchr(line, '\n', (size_t)(text->end - line));

		if (!newline) { /* the text ends inside a line */
			text->at = text->end;
			return false;
		}
		text->at = newline + 1;
		if (parse_map(line, newline, out))
			return true;
		text->nr_bad++;
	}
	return false;
}

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

size_t procfs_unescape(char *dst, size_t dst_size, const char *src, size_t size)
{
	size_t n = 0;

	assert(dst || !dst_size);
	for (size_t i = 0; i < size && n < dst_size; i++) {
		if (src[i] == '\\' && size - i >= 4 && is_octal(src + i + 1)) {
			dst[n++] = (char)((src[i + 1] - '0') << 6 | (src[i + 2] - '0') << 3 |
					  (src[i + 3] - '0'));
			i += 3;
		} else {
			dst[n++] = src[i];
		}
	}
	return n;
}

static bool begins(const char *path, size_t size, const char *prefix)
{
	size_t n = strlen(prefix);

	return size >= n && !memcmp(path, prefix, n);
}

static bool equals(const char *path, size_t size, const char *name)
{
	return size == strlen(name) && !memcmp(path, name, size);
}

enum object_kind procfs_kind(const char *path, size_t size, uint64_t start, bool is_private)
{
	assert(path || !size);
	/* Memory without a file that could be ELF; used for JIT code. */
	static const char *const anon[] = {
		"//anon", "anon_inode:", "/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage",
	};

	if (!size)
		return OBJECT_ANON;
	if (equals(path, size, "[vdso]"))
		return start >> 32 ? OBJECT_VDSO : OBJECT_FILE;
	/* The last: probes of newer kernels call it (7.3, x86); no JIT. */
	if (equals(path, size, "[vsyscall]") || equals(path, size, "[uprobes]") ||
	    equals(path, size, "[uprobes-trampoline]"))
		return OBJECT_UNKNOWN;
	if (path[0] == '[') /* [heap], [stack], [anon:…]: a path has a slash */
		return OBJECT_ANON;
	if (is_private && begins(path, size, "/memfd:"))
		return OBJECT_FILE;
	for (size_t i = 0; i < ARRAY_SIZE(anon); i++)
		if (begins(path, size, anon[i]))
			return OBJECT_ANON;
	return OBJECT_FILE;
}

/* Find the value of "Name:\tvalue", up to *@value_end, which is @end without a newline; NULL:
 * absent. */
static const char *find_status(const char *text, const char *end, const char *name,
			       const char **value_end)
{
	size_t name_size = strlen(name);

	/* "Name:" is first and escaped by the kernel, so it cannot forge another line. */
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		size_t line_size = (size_t)(line_end - text);

		if (line_size >= name_size + 2 && begins(text, line_size, name) &&
		    text[name_size] == ':' && text[name_size + 1] == '\t') {
			*value_end = line_end;
			return text + name_size + 2;
		}
		text = newline ? newline + 1 : end;
	}
	return NULL;
}

bool procfs_status_number(const char *text, size_t size, const char *name, uint64_t *value)
{
	const char *line_end, *at = find_status(text, text + size, name, &line_end);

	assert(text && name && value);
	return at && line_end < text + size &&
	       (number(&at, line_end, 10, '\t', value) ||
		number(&at, line_end + 1, 10, '\n', value));
}

unsigned int procfs_status_inner(const char *text, size_t size, uint64_t *pid)
{
	const char *line_end, *at = find_status(text, text + size, "NSpid", &line_end);
	unsigned int nr = 0;

	while (at && line_end < text + size &&
	       (number(&at, line_end, 10, '\t', pid) || number(&at, line_end + 1, 10, '\n', pid)))
		nr++;
	return nr;
}

char procfs_status_state(const char *text, size_t size)
{
	const char *line_end, *at = find_status(text, text + size, "State", &line_end);

	return at && at < line_end ? *at : '\0';
}

bool procfs_stat_field(const char *text, size_t size, int nr, uint64_t *value)
{
	assert(text && nr > 0 && value);
	/*
	 * The name in brackets may have brackets, spaces and newlines: the last
	 * bracket closes it.
	 */
	const char *at = size ? memrchr(text, ')', size) : NULL;
	const char *end = text + size;
	int spaces = 0;

	if (!at)
		return false;
	while (at < end && spaces < nr - 2)
		spaces += *at++ == ' ';
	return spaces == nr - 2 && number(&at, end, 10, ' ', value);
}

int64_t procfs_start_ns(uint64_t ticks)
{
	const int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);

	if (!ticks)
		return 0;
	return (int64_t)(time_clock_ns(CLOCK_REALTIME) - time_clock_ns(CLOCK_BOOTTIME)) +
	       (int64_t)MIN(ticks, (uint64_t)(INT64_MAX / 4 / tick_ns)) * tick_ns;
}

bool procfs_stat_flags(const char *text, size_t size, uint64_t *flags)
{
	return procfs_stat_field(text, size, 9, flags);
}

/*
 * The begin of a read is one word: the end of the read and proc_watch_leave() exchange it, so that
 * one of two threads has the work.
 */

#define STATUS_MAX (64U << 10)
#define LEFT	   UINT64_MAX

static _Thread_local struct proc_watch *own;

uid_t proc_user_of(pid_t pid)
{
	uint64_t user;
	char *text;
	size_t size;

	if (untrusted_read_proc(pid, "status", STATUS_MAX, &text, &size))
		return (uid_t)-1;
	if (!procfs_status_number(text, size, "Uid", &user))
		user = (uid_t)-1;
	free(text);
	return (uid_t)user;
}

bool proc_hung_is_full(const struct proc_hung *h, uid_t user)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++)
		nr += atomic_load_explicit(&h->pids[i], memory_order_relaxed) &&
		      atomic_load_explicit(&h->users[i], memory_order_relaxed) == user;
	return nr >= PROC_HUNG_OF_USER;
}

/* Test whether @pid is left out: its user is read only if there may be too many of that user. */
static bool is_left_out(const struct proc_hung *h, pid_t pid)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		pid_t hung = atomic_load_explicit(&h->pids[i], memory_order_relaxed);

		if (hung == pid)
			return true;
		nr += hung != 0;
	}
	return nr >= PROC_HUNG_OF_USER && proc_hung_is_full(h, h->user_of(pid));
}

void proc_watch_use(struct proc_watch *w)
{
	own = w;
}

bool proc_watch_begin(pid_t pid)
{
	if (!own)
		return true;
	if (is_left_out(own->hung, pid))
		return false;
	atomic_store_explicit(&own->pid, pid, memory_order_relaxed);
	/* Release: the process; pairs with proc_watch_hangs(). */
	atomic_store_explicit(&own->since_ns, time_now_ns(), memory_order_release);
	return true;
}

bool proc_watch_end(void)
{
	if (!own)
		return true;
	/* Acquire and release: of two threads one has the work after the other. */
	own->left |= atomic_exchange_explicit(&own->since_ns, 0, memory_order_acq_rel) == LEFT;
	return !own->left;
}

bool proc_watch_is_mine(void)
{
	return !own || !own->left;
}

pid_t proc_watch_hangs(const struct proc_watch *w, uint64_t ns, uint64_t *since_ns)
{
	/* Acquire: pairs with proc_watch_begin(). */
	uint64_t since = atomic_load_explicit(&w->since_ns, memory_order_acquire);

	*since_ns = since;
	if (!since || since == LEFT || time_now_ns() < since + ns)
		return 0;
	return atomic_load_explicit(&w->pid, memory_order_relaxed);
}

bool proc_watch_leave(struct proc_watch *w, uint64_t since_ns)
{
	unsigned long long since = since_ns;

	/* As in proc_watch_end(). */
	return atomic_compare_exchange_strong_explicit(&w->since_ns, &since, LEFT,
						       memory_order_acq_rel, memory_order_relaxed);
}

/*
 * Read the memory of another process. Runs on: a helper.
 */

#define PAGE   4096U
#define ROUNDS 32U /* of reads that depend on each other */

int remote_open(int dir_fd)
{
	int fd = openat(dir_fd, "mem", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* /proc/PID/mem belongs to the memory that it was opened for: after an exec it has no byte. */
static int read_process(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	ssize_t nr = addr > INT64_MAX ? 0 : pread(r->fd, buf, size, (off_t)addr);

	if (addr > INT64_MAX || (nr < 0 && errno == EIO))
		return -EFAULT;
	if (nr < 0)
		return -errno;
	if (!nr && size)
		return -ESRCH;
	return (size_t)nr == size ? 0 : -EFAULT;
}

int remote_read(struct remote *r, uint64_t addr, void *buf, size_t size)
{
	int rc = watch_begin(r->watch);

	assert(buf || !size);
	if (rc)
		return rc;
	if (r->nr_reads_max && r->nr_reads >= r->nr_reads_max)
		return -E2BIG;
	r->nr_reads++;
	rc = (r->read ? r->read : read_process)(r, addr, buf, size);
	watch_end(r->watch, rc ? 0 : size);
	return rc;
}

int remote_read_each(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got)
{
	assert(!nr || (addrs && buf && got));
	if (r->read_each) {
		if (r->nr_reads_max && r->nr_reads + nr > r->nr_reads_max)
			return -E2BIG;
		r->nr_reads += nr;
		return r->read_each(r, addrs, nr, size, buf, got);
	}
	for (uint32_t i = 0; i < nr; i++) {
		int rc = remote_read(r, addrs[i], buf + i * size, size);

		if (rc && rc != -EFAULT)
			return rc;
		got[i] = !rc;
	}
	return 0;
}

/* Do the open items. */
static int do_round(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of,
		    bool *done)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		if (done[i])
			continue;
		r->missed = false;
		rc = item(of, i);
		done[i] = !r->missed;
	}
	return rc;
}

int remote_for_each(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of)
{
	bool *done = calloc(MAX(nr, 1U), sizeof(*done));
	int rc = done ? 0 : -ENOMEM;

	assert(item);
	/* The last round defers nothing: bytes that change all the time cannot make it endless. */
	for (uint32_t round = r->fetch ? 0 : ROUNDS - 1; round < ROUNDS && !rc; round++) {
		r->may_defer = round < ROUNDS - 1;
		rc = do_round(r, nr, item, of, done);
		if (!rc && r->may_defer) {
			if (!memchr(done, false, nr))
				break;
			rc = r->fetch(r);
		}
	}
	r->may_defer = r->missed = false;
	free(done);
	return rc;
}

int remote_read_u64(struct remote *r, uint64_t addr, uint64_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

int remote_read_u32(struct remote *r, uint64_t addr, uint32_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

int remote_read_u16(struct remote *r, uint64_t addr, uint16_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

ssize_t remote_read_string(struct remote *r, uint64_t addr, char *buf, size_t size)
{
	size_t done = 0;

	assert(buf && size);
	while (done < size - 1) {
		/* Not across a page: the next one may not be there. */
		size_t nr = MIN(size - 1 - done, PAGE - (addr + done) % PAGE);
		int rc = remote_read(r, addr + done, buf + done, nr);
		const char *end;

		if (rc)
			return rc;
		end = memchr(buf + done, '\0', nr);
		if (end)
			return end - buf;
		done += nr;
	}
	buf[done] = '\0';
	return (ssize_t)done;
}

/*
 * Copies of text. V8 copies its builtins to memory near its code, and a program that moves its text
 * to huge pages may choose another address: such memory is anonymous, and has no names.
 */

#define COPY_MIN    (64U << 10) /* bytes of memory that may be a copy */
#define COPIES_MAX  4U		/* mappings looked at for one process */
#define COPY_PAGE   4096U
#define COPY_CHUNK  (256U << 10)
#define COPY_SEARCH (256U << 20) /* bytes of text compared */

static bool read_page(int mem, uint64_t addr, uint8_t page[static COPY_PAGE])
{
	return pread(mem, page, COPY_PAGE, (off_t)addr) == (ssize_t)COPY_PAGE;
}

/* Compare all pages with the text at @from but the last one, which may end in other bytes. */
static bool is_copy(int mem, const struct mapping *copy, uint64_t from)
{
	uint8_t a[COPY_PAGE], b[COPY_PAGE];
	uint64_t size = copy->end - copy->start;

	for (uint64_t off = 0; off + COPY_PAGE < size; off += COPY_PAGE)
		if (!read_page(mem, copy->start + off, a) || !read_page(mem, from + off, b) ||
		    memcmp(a, b, COPY_PAGE) != 0)
			return false;
	return true;
}

/* Find the page @first in the text @file; 0: it is not there. */
static uint64_t find_text(int mem, const struct mapping *copy, const struct mapping *file,
			  const uint8_t *first, uint8_t *chunk)
{
	uint64_t size = copy->end - copy->start;

	for (uint64_t at = file->start; at < file->end && size <= file->end - at;) {
		ssize_t nr = pread(mem, chunk, MIN(COPY_CHUNK, file->end - at), (off_t)at);

		if (nr < (ssize_t)COPY_PAGE)
			return 0;
		for (ssize_t off = 0; off + (ssize_t)COPY_PAGE <= nr; off += COPY_PAGE)
			if (size <= file->end - at - (uint64_t)off &&
			    !memcmp(chunk + off, first, COPY_PAGE) &&
			    is_copy(mem, copy, at + (uint64_t)off))
				return at + (uint64_t)off;
		at += (uint64_t)nr / COPY_PAGE * COPY_PAGE;
	}
	return 0;
}

/* Find the text that @copy was made from; true: @copy has its object and offset. */
static bool find_copy(struct objects *objects, pid_t pid, int mem, struct mapping *copy,
		      const struct mapping *maps, uint32_t nr, uint8_t *chunk, uint64_t *left)
{
	uint8_t first[COPY_PAGE];

	if (!read_page(mem, copy->start, first))
		return false;
	for (uint32_t k = 0; k < nr && *left; k++) {
		const struct mapping *file = &maps[k];
		uint64_t from;

		if (!file->object || file->object->identity.kind != OBJECT_FILE || file->copied ||
		    file->end - file->start < copy->end - copy->start)
			continue;
		*left -= MIN(*left, file->end - file->start);
		from = find_text(mem, copy, file, first, chunk);
		if (!from)
			continue;
		copy->object = objects_hold(objects, &file->object->identity,
					    file->object->path.str, file->object->path.size, pid,
					    file->start, file->end);
		copy->offset = file->offset + (from - file->start);
		copy->copied = true;
		return true;
	}
	return false;
}

#define MOVED_READS 8U /* images with program headers read for one process */

/* The image of a file, of which lines of a maps file are, by its program headers in memory. */
struct text_owner {
	struct procfs_map first; /* one of its lines */
	uint64_t start, end;	 /* of its beginning, and its last line so far; end 0: none */
	union {
		uint8_t page[COPY_PAGE];
		Elf64_Ehdr header;
	} is;
	bool read; /* the page, in vain if it is no ELF header */
};

static bool is_file_of(const struct procfs_map *a, const struct procfs_map *b)
{
	return a->ino == b->ino && a->maj == b->maj && a->min == b->min;
}

/*
 * Get the offset in the file of @o of all of @line, by its program headers; false: no segment is
 * there, executable if the line is.
 */
static bool find_offset(const struct text_owner *o, const struct procfs_map *line, uint64_t *offset)
{
	const Elf64_Ehdr *h = &o->is.header;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t bias = 0;
	bool first = true;

	if (memcmp(h->e_ident, ELFMAG "\2", SELFMAG + 1) != 0 ||
	    h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff > COPY_PAGE ||
	    h->e_phoff + h->e_phnum * sizeof(Elf64_Phdr) > COPY_PAGE)
		return false;
	for (uint16_t i = 0; i < h->e_phnum; i++) {
		uint64_t start, end;
		Elf64_Phdr p;

		memcpy(&p, o->is.page + h->e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_LOAD)
			continue;
		if (first) /* it begins with the file */
			bias = o->start - (p.p_vaddr & ~(page - 1));
		first = false;
		start = bias + (p.p_vaddr & ~(page - 1));
		end = bias + ((p.p_vaddr + p.p_filesz + page - 1) & ~(page - 1));
		*offset = (p.p_offset & ~(page - 1)) + (line->start - start);
		if (line->start >= start && line->end <= end && (!line->exec || (p.p_flags & PF_X)))
			return true;
	}
	return false;
}

/* Read the program headers of @o once; false: none. */
static bool read_owner(struct text_owner *o, int dir_fd, unsigned int *reads)
{
	int mem;

	if (o->read || *reads == MOVED_READS)
		return o->read;
	(*reads)++;
	o->read = true;
	memset(&o->is, 0, sizeof(o->is));
	mem = openat(dir_fd, "mem", O_RDONLY | O_CLOEXEC);
	if (mem < 0 || !read_page(mem, o->start, o->is.page))
		memset(&o->is, 0, sizeof(o->is));
	if (mem >= 0)
		close(mem);
	return true;
}

/* Give @m, which is text of @o that the program moved, the file and its @offset. */
static void put_moved(struct objects *objects, pid_t pid, struct mapping *m,
		      const struct procfs_map *file, uint64_t offset)
{
	const struct object_identity identity = {
		.kind = OBJECT_FILE, .maj = file->maj, .min = file->min, .ino = file->ino
	};
	char path[PATH_SIZE_MAX];
	size_t size = procfs_unescape(path, sizeof(path), file->path, file->path_size);

	object_put(m->object);
	m->object = objects_hold(objects, &identity, path, size, pid, file->start, file->end);
	m->offset = offset;
	m->copied = true;
}

/*
 * Find text of a file that the program has put into other memory at the same address (huge pages):
 * lines at which the program headers of the image have code. Linkers leave less space in the file
 * than in memory, so that the lines on both sides do not say which offset it is of.
 */
static void find_moved(struct objects *objects, int dir_fd, pid_t pid, struct mapping *maps,
		       uint32_t nr, struct procfs_text text)
{
	struct text_owner o = { .end = 0 };
	struct procfs_map line, below = { .end = 0 };
	struct mapping *at = NULL; /* of the line below */
	unsigned int reads = 0;
	uint64_t offset;

	for (uint32_t i = 0; procfs_next_map(&text, &line); below = line) {
		bool file = line.ino && line.path_size && line.path[0] == '/';

		/* All of the first segment was moved, with the header. */
		if (at && file && line.offset && line.start == below.end &&
		    !is_file_of(&below, &line) && !(o.end && is_file_of(&o.first, &line))) {
			o = (struct text_owner){ line, .start = below.start, .end = below.end };
			if (read_owner(&o, dir_fd, &reads) && find_offset(&o, &line, &offset) &&
			    offset == line.offset && find_offset(&o, &below, &offset))
				put_moved(objects, pid, at, &line, offset);
			else
				o.end = 0;
		}
		at = i < nr && maps[i].start == line.start ? &maps[i++] : NULL;
		if (o.end && is_file_of(&o.first, &line)) {
			o.end = line.end;
		} else if (at && line.start == o.end && read_owner(&o, dir_fd, &reads) &&
			   find_offset(&o, &line, &offset)) {
			put_moved(objects, pid, at, &o.first, offset);
			o.end = line.end;
		} else if (file && !line.offset) {
			o = (struct text_owner){ line, .start = line.start, .end = line.end };
		}
	}
}

void procfs_find_copies(struct objects *objects, int dir_fd, pid_t pid, struct mapping *maps,
			uint32_t nr, struct procfs_text text)
{
	uint64_t left = COPY_SEARCH;
	unsigned int looked = 0;
	uint8_t *chunk = NULL;
	int mem = -1;

	find_moved(objects, dir_fd, pid, maps, nr, text);
	for (uint32_t i = 0; i < nr && looked < COPIES_MAX; i++) {
		struct mapping *copy = &maps[i];

		if (copy->object || copy->writable || copy->end - copy->start < COPY_MIN)
			continue;
		if (!looked++) {
			mem = openat(dir_fd, "mem", O_RDONLY | O_CLOEXEC);
			chunk = malloc(COPY_CHUNK);
		}
		if (mem < 0 || !chunk)
			break;
		find_copy(objects, pid, mem, copy, maps, nr, chunk, &left);
	}
	free(chunk);
	if (mem >= 0)
		close(mem);
}

/*
 * Calls: answers by a hash of the question, questions in slots that sampler threads fill. Both are
 * of all sessions: keys have the number of their table of places.
 */
#define CALLS_ASKED 256	  /* a power of two */
#define JUMPS_MAX   4	  /* from a call to the function: PLT stub, thunk, jump to another name */
#define SITE_MAX    16384 /* bytes of a function that are searched for a call */
#define SITE_READS  512	  /* functions that are looked at, among the ones called at one depth */
#define PROBE_X86   0xcc  /* UPROBE_SWBP_INSN */

enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_ASKED };

struct call_answer calls_known[CALLS_KNOWN];

static struct {
	atomic_uint state;
	struct call_question q;
} questions[CALLS_ASKED];

bool call_ask(const struct call_question *q)
{
	unsigned int state = SLOT_FREE, i = q->key >> 8 & (CALLS_ASKED - 1);

	/* Acquire: the reader is done with the question before. */
	if (!atomic_compare_exchange_strong_explicit(&questions[i].state, &state, SLOT_FILLING,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	questions[i].q = *q;
	/* Release: pairs with calls_serve(). */
	atomic_store_explicit(&questions[i].state, SLOT_ASKED, memory_order_release);
	return true;
}

static bool read_code(pid_t pid, uint64_t at, void *out, size_t size)
{
	struct iovec ours = { out, size }, theirs = { (void *)(uintptr_t)at, size };

	return process_vm_readv(pid, &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

static uint64_t number_at(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return (uint64_t)(int64_t)v;
}

/* Get the pointer at @disp from @next, in 32-bit code at @disp. */
static bool read_pointer(const struct call_question *q, uint64_t disp, uint64_t next, uint64_t *to)
{
	*to = 0;
	if (q->machine == EM_386)
		return read_code(q->pid, disp & UINT32_MAX, to, 4);
	return read_code(q->pid, next + disp, to, 8);
}

/* Follow the jump that the code at *@at, @b, is. False: it is none. */
static bool follow_x86(const struct call_question *q, uint64_t *at, const uint8_t b[16])
{
	static const uint8_t endbr[3] = { 0xf3, 0x0f, 0x1e };
	unsigned int i = memcmp(b, endbr, sizeof(endbr)) ? 0 : 4;

	i += b[i] == 0xf2; /* bnd */
	if (b[i] == 0xe9)
		*at += i + 5 + number_at(b + i + 1);
	else if (b[i] == 0xeb)
		*at += i + 2 + (uint64_t)(int64_t)(int8_t)b[i + 1];
	else if (b[i] != 0xff || b[i + 1] != 0x25)
		return false;
	else
		return read_pointer(q, number_at(b + i + 2), *at + i + 6, at);
	return true;
}

/* The same on AArch64: b, or adrp, ldr, (add,) br as the PLT has them. */
static bool follow_arm64(const struct call_question *q, uint64_t *at, const uint8_t b[16])
{
	uint32_t w[4], i = 0;
	int64_t page;

	memcpy(w, b, sizeof(w));
	i += w[0] == 0xd503245f; /* bti c */
	if ((w[i] & 0xfc000000) == 0x14000000) {
		*at += 4 * i + (uint64_t)((int64_t)((uint64_t)w[i] << 38) >> 36);
		return true;
	}
	if ((w[i] & 0x9f00001f) != 0x90000010 || (w[i + 1] & 0xffc003ff) != 0xf9400211)
		return false;
	page = (int64_t)((uint64_t)(w[i] >> 5 & 0x7ffff) << 45 | (uint64_t)(w[i] >> 29 & 3) << 43);
	return read_code(q->pid,
			 ((*at + 4 * i) & ~4095ULL) + (uint64_t)(page >> 43 << 12) +
				 (w[i + 1] >> 10 & 4095) * 8,
			 at, 8);
}

/* Return whether a call of @at reaches the function of @q. */
static bool reaches(const struct call_question *q, uint64_t at)
{
	uint8_t b[16];

	for (int nr = 0; q->function && nr <= JUMPS_MAX; nr++) {
		if (at == q->function)
			return true;
		if (!read_code(q->pid, at, b, sizeof(b)) ||
		    !(q->machine == EM_AARCH64 ? follow_arm64 : follow_x86)(q, &at, b))
			return false;
	}
	return false;
}

/* Return whether @p, @size bytes, are a call by register or by memory: ff /2. */
static bool is_call_by(const uint8_t *p, unsigned int size)
{
	uint8_t mod = p[1] >> 6, rm = p[1] & 7;
	unsigned int n = 2;

	if (p[0] != 0xff || (p[1] >> 3 & 7) != 2)
		return false;
	if (mod != 3 && rm == 4) {
		n++;
		if (size > 2 && !mod && (p[2] & 7) == 5)
			n += 4;
	} else if (!mod && rm == 5) {
		n += 4;
	}
	n += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	return n == size;
}

/* @b: the seven bytes before the return address. */
static enum call_verdict judge_x86(const struct call_question *q, const uint8_t b[7])
{
	bool direct = b[2] == 0xe8, some = direct;
	uint64_t to;

	if (direct && reaches(q, q->address + number_at(b + 3)))
		return CALL_REACHES;
	/* By a word at a known address. */
	if (b[1] == 0xff && b[2] == 0x15 && q->function &&
	    read_pointer(q, number_at(b + 3), q->address, &to) && reaches(q, to))
		return CALL_REACHES;
	for (unsigned int size = 2; size <= 7; size++)
		some |= is_call_by(b + 7 - size, size);
	return some ? CALL_SOME : CALL_NONE;
}

static enum call_verdict judge_arm64(const struct call_question *q, const uint8_t *b)
{
	uint32_t w;

	memcpy(&w, b, sizeof(w));
	if ((w & 0xfc000000) == 0x94000000) /* bl */
		return reaches(q, q->address - 4 + (uint64_t)((int64_t)((uint64_t)w << 38) >> 36))
			       ? CALL_REACHES
			       : CALL_SOME;
	/* blr; blraa and its like */
	return (w & 0xfffffc1f) == 0xd63f0000 || (w & 0xfefff800) == 0xd63f0800 ? CALL_SOME
										: CALL_NONE;
}

/* Return the target of the direct call before @next, of which @b has the last five bytes; 0: none.
 */
static uint64_t called_by(uint16_t machine, uint64_t next, const uint8_t b[5])
{
	uint32_t w;

	memcpy(&w, b + 1, sizeof(w));
	if (machine != EM_AARCH64)
		return b[0] == 0xe8 ? next + number_at(b + 1) : 0;
	return (w & 0xfc000000) == 0x94000000
		       ? next - 4 + (uint64_t)((int64_t)((uint64_t)w << 38) >> 36)
		       : 0;
}

/* Code from the start of a function on, and behind its end; one reader of processes. */
static struct {
	uint64_t start;
	ssize_t size;
	uint8_t code[SITE_MAX];
} body;

/* The functions that a body calls and that were looked at, each by a read; by a hash. */
static struct {
	uint64_t at[2 * SITE_READS]; /* a power of two; 0: free */
	unsigned int left;	     /* that may yet be looked at */
} looked;

/* Return whether the function at @at may be looked at: it was not yet, and there is a read left. */
static bool may_look(uint64_t at)
{
	uint64_t i = hash_u64(at);

	for (; looked.at[i % ARRAY_SIZE(looked.at)]; i++)
		if (looked.at[i % ARRAY_SIZE(looked.at)] == at)
			return false;
	if (!looked.left)
		return false;
	looked.left--;
	looked.at[i % ARRAY_SIZE(looked.at)] = at;
	return true;
}

/* @share: bodies at this depth. */
static void read_body(const struct call_question *q, uint64_t start, unsigned int share)
{
	struct iovec ours = { body.code, sizeof(body.code) };
	struct iovec theirs = { (void *)(uintptr_t)start, sizeof(body.code) };

	memset(looked.at, 0, sizeof(looked.at));
	looked.left = SITE_READS / share;
	body.start = start;
	body.size = start ? process_vm_readv(q->pid, &ours, 1, &theirs, 1, 0) : 0;
	/* A probe hides its first byte: perhaps a call, else the bytes behind it lead nowhere. */
	if (body.size > 0 && q->machine != EM_AARCH64 && body.code[0] == PROBE_X86)
		body.code[0] = 0xe8;
}

/*
 * Find the next direct call in the body, the first one that ends behind *@end; 0: none. On x86
 * instructions have no fixed places: the target of bytes that are none is in no code.
 */
static uint64_t next_call(const struct call_question *q, ssize_t *end)
{
	ssize_t step = q->machine == EM_AARCH64 ? 4 : 1;
	uint64_t to = 0;

	for (*end = MAX(*end + step, step > 1 ? 8 : 5); *end <= body.size && !to; *end += step)
		to = called_by(q->machine, body.start + (uint64_t)*end, body.code + *end - 5);
	*end -= step;
	return to;
}

/* Return whether the function at @at ends with a jump to that of @q, early in its code. */
static bool jumps_on(const struct call_question *q, uint64_t at)
{
	static const ssize_t size = 512;
	uint8_t code[512 + 16] = { 0 };
	struct iovec ours = { code, (size_t)size };
	struct iovec theirs = { (void *)(uintptr_t)at, (size_t)size };
	ssize_t step = q->machine == EM_AARCH64 ? 4 : 1;
	ssize_t got = process_vm_readv(q->pid, &ours, 1, &theirs, 1, 0);

	for (ssize_t i = 0; i + 5 <= got; i += step) {
		uint64_t to = at + (uint64_t)i;

		if ((q->machine == EM_AARCH64 ? follow_arm64 : follow_x86)(q, &to, code + i) &&
		    to == q->function)
			return true;
	}
	return false;
}

/* Return whether a call before @end of the body is by register or memory. */
static bool is_by(const struct call_question *q, ssize_t end)
{
	uint32_t w;

	if (q->machine != EM_AARCH64) {
		for (unsigned int size = 2; size <= 7 && size <= end; size++)
			if (is_call_by(body.code + end - size, size))
				return true;
		return false;
	}
	memcpy(&w, body.code + end - 4, sizeof(w));
	return (w & 0xfffffc1f) == 0xd63f0000 || (w & 0xfefff800) == 0xd63f0800;
}

/*
 * Find the first call of the function of @q in the body, or of one that jumps on to it; of CALL_BY
 * the first call that may be one. Return the distance behind it; 0: none.
 */
static ssize_t find_call(const struct call_question *q)
{
	ssize_t step = q->machine == EM_AARCH64 ? 4 : 1;
	uint64_t to;

	for (ssize_t end = step > 1 ? 4 : 2; q->kind == CALL_BY && end <= body.size; end += step)
		if (is_by(q, end))
			return end;
	for (ssize_t end = 0; q->kind != CALL_BY && (to = next_call(q, &end));)
		if (to == q->function || (may_look(to) && (reaches(q, to) || jumps_on(q, to))))
			return end;
	return 0;
}

/* Follow the jumps at *@at: a stub, a thunk; @b: the code there. False: not to be read. */
static bool follow(const struct call_question *q, uint64_t *at, uint8_t b[16])
{
	for (int nr = 0; read_code(q->pid, *at, b, 16); nr++)
		if (nr == JUMPS_MAX ||
		    !(q->machine == EM_AARCH64 ? follow_arm64 : follow_x86)(q, at, b))
			return true;
	return false;
}

/* Functions with a probe, which are few. */
struct probed {
	uint64_t at[8];
	unsigned int nr;
};

/* Add the functions with a probe that the body calls: their first instruction is a breakpoint. */
static void add_probed(const struct call_question *q, struct probed *set)
{
	static const uint32_t brk = 0xd42000a0; /* UPROBE_SWBP_INSN of AArch64 */
	uint8_t b[16];
	uint64_t to;

	for (ssize_t end = 0; (to = next_call(q, &end)) && set->nr < ARRAY_SIZE(set->at);) {
		unsigned int n = 0;

		if (!may_look(to) || !follow(q, &to, b) ||
		    (q->machine == EM_AARCH64 ? memcmp(b, &brk, sizeof(brk)) : b[0] != PROBE_X86))
			continue;
		while (n < set->nr && set->at[n] != to)
			n++;
		set->at[n] = to;
		set->nr = MAX(set->nr, n + 1);
	}
}

/*
 * Find the call of the function of @q in the function that is called before its address, or in one
 * that is called from there through @depth functions with a probe. Return the address behind that
 * call, and its distance from the start; 0: none.
 */
static uint64_t find_site(const struct call_question *q)
{
	struct probed level = { .nr = 1 };
	uint8_t b[16];
	ssize_t end;

	if (!read_code(q->pid, q->address - 5, b, 5))
		return 0;
	level.at[0] = called_by(q->machine, q->address, b);
	if (!level.at[0] || !follow(q, &level.at[0], b))
		return 0;
	for (unsigned int i = 0; i < q->depth; i++) {
		struct probed next = { .nr = 0 };

		for (unsigned int n = 0; n < level.nr; n++) {
			read_body(q, level.at[n], level.nr);
			add_probed(q, &next);
		}
		level = next;
	}
	for (unsigned int n = 0; n < level.nr; n++) {
		read_body(q, level.at[n], level.nr);
		end = find_call(q);
		if (end && !((body.start + (uint64_t)end) >> CALL_SITE_BITS))
			return (body.start + (uint64_t)end) | (uint64_t)end << CALL_SITE_BITS;
	}
	return 0;
}

/*
 * Stubs that a runtime copies for each of its functions, so that a profiler sees them: each calls
 * the function in a register. Of CPython with -X perf or perf_jit, Python/asm_trampoline.S.
 */
static const struct stub {
	uint16_t machine;
	uint8_t size, after; /* bytes, and the bytes before the return address */
	uint8_t bytes[21];   /* and a NUL */
	unsigned int frame;  /* as in the answer */
} stubs[] = {
	/* 3.12 and 3.13: sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
	{ EM_X86_64, 11, 6, "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 16 },
	/* 3.14 and 3.15: push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
	{ EM_X86_64, 8, 6, "\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 16 | CALL_STUB_FP },
	/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x3; ldp x29,x30,[sp],16; ret */
	{ EM_AARCH64, 20, 12,
	  "\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x60\x00\x3f\xd6\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6",
	  16 | CALL_STUB_FP },
};

/* Return the frame of the stub around the return address of @q; 0: there is none. */
static unsigned int find_stub(const struct call_question *q)
{
	uint8_t code[sizeof(stubs->bytes)];

	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		const struct stub *s = &stubs[i];

		if (s->machine == q->machine &&
		    read_code(q->pid, q->address - s->after, code, s->size) &&
		    !memcmp(code, s->bytes, s->size))
			return s->frame;
	}
	return 0;
}

#define THUNK_BEFORE 32U /* bytes: a call, and the loop that it never returns to */
#define THUNK_AFTER  16U

/*
 * The ends of thunks that a processor must not run ahead of: they call themselves, so that it takes
 * the loop behind that call for their target.
 */
static const struct thunk {
	uint8_t bytes[7], size;
	uint8_t ret;	     /* the instruction behind the first one */
	uint8_t below[2];    /* words below the return address at the first, and at the second */
	uint8_t mask, index; /* bits of a byte that are a register */
} thunks[] = {
	{ "\x48\x8d\x64\x24\x08\xc3", 6, 5, { 1, 0 }, 0, 0 }, /* lea 8(%rsp),%rsp; ret */
	{ "\x48\x83\xc4\x08\xc3", 5, 4, { 1, 0 }, 0, 0 },     /* add $8,%rsp; ret */
	{ "\x48\x89\x04\x24\xc3", 5, 4, { 1, 1 }, 0x38, 2 },  /* mov %rax,(%rsp); ret */
	{ "\x4c\x89\x04\x24\xc3", 5, 4, { 1, 1 }, 0x38, 2 },  /* mov %r8,(%rsp); ret */
};

static bool is_thunk(const struct thunk *t, const uint8_t *code)
{
	for (unsigned int i = 0; i < t->size; i++)
		if ((code[i] ^ t->bytes[i]) & ~(i == t->index ? t->mask : 0))
			return false;
	return true;
}

/* Return the distance to the target of the call at @p, behind it in a thunk; 0: there is none. */
static unsigned int thunk_call(const uint8_t *p)
{
	uint64_t to = p[0] == 0xe8 ? number_at(p + 1) : 0;

	return to && to <= THUNK_BEFORE - 5 ? (unsigned int)to + 5 : 0;
}

/*
 * Return CALL_THUNK_WORDS and the number of words below the return address, if the instruction at
 * the address of @q is one of a thunk; 0: it is none.
 */
static uint64_t find_thunk(const struct call_question *q)
{
	uint8_t code[THUNK_BEFORE + 5 + THUNK_BEFORE + THUNK_AFTER];
	const uint64_t start = q->address - THUNK_BEFORE - 5;
	const unsigned int pc = THUNK_BEFORE + 5;

	if (q->machine != EM_X86_64 || !read_code(q->pid, start, code, sizeof(code)))
		return 0;
	for (unsigned int at = 0; at <= pc; at++) {
		unsigned int end = at + thunk_call(code + at);

		for (size_t i = 0; end > at && i < ARRAY_SIZE(thunks); i++) {
			const struct thunk *t = &thunks[i];

			if (!is_thunk(t, code + end))
				continue;
			if (at == pc)
				return CALL_THUNK_WORDS;
			if (end == pc || end + t->ret == pc)
				return CALL_THUNK_WORDS + t->below[end != pc];
		}
	}
	return 0;
}

/*
 * Return the target of the direct call before the address of @q; 0: none, or it is that of a thunk,
 * of which a table has the word.
 */
static uint64_t find_target(const struct call_question *q)
{
	struct call_question there = *q;
	uint8_t b[5];

	if (!read_code(q->pid, q->address - sizeof(b), b, sizeof(b)))
		return 0;
	there.address = called_by(q->machine, q->address, b);
	return there.address && !find_thunk(&there) ? there.address : 0;
}

static void put_answer(uint64_t key, enum call_verdict v, uint64_t site)
{
	struct call_answer *a = call_slot(key);

	/* No reader takes the site of one answer for that of another. */
	atomic_store_explicit(&a->word, 0, memory_order_relaxed);
	atomic_store_explicit(&a->site, site, memory_order_release);
	atomic_store_explicit(&a->word, (key & ~7ULL) | v, memory_order_release);
}

static void answer(const struct call_question *q)
{
	enum call_verdict v = CALL_UNREADABLE;
	uint8_t b[7];

	if (q->kind != CALL_TARGET) {
		uint64_t site = q->kind == CALL_STUB	 ? find_stub(q)
				: q->kind == CALL_INSIDE ? find_target(q)
				: q->kind == CALL_THUNK	 ? find_thunk(q)
							 : find_site(q);

		put_answer(q->key, site ? CALL_REACHES : CALL_NONE, site);
		return;
	}
	if (!read_code(q->pid, q->address - sizeof(b), b, sizeof(b))) {
		/* Another process may have the answer. */
		if (errno == ESRCH)
			return;
	} else {
		v = q->machine == EM_AARCH64 ? judge_arm64(q, b + 3) : judge_x86(q, b);
	}
	put_answer(q->key, v, 0);
}

unsigned int calls_serve(void)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < CALLS_ASKED; i++) {
		struct call_question q;

		/* Acquire: pairs with call_ask(). */
		if (atomic_load_explicit(&questions[i].state, memory_order_acquire) != SLOT_ASKED)
			continue;
		q = questions[i].q;
		if (proc_watch_begin(q.pid)) {
			answer(&q);
			if (!proc_watch_end())
				return nr;
		}
		/* Release: pairs with call_ask(). */
		atomic_store_explicit(&questions[i].state, SLOT_FREE, memory_order_release);
		nr++;
	}
	return nr;
}
