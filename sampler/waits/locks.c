// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The system call of a task shows the address of its futex. A mutex of glibc has its lock word
 * there, and its owner 8 bytes on; one with priority inheritance has the owner in the lock word.
 * An owner that is no task of the process is refused.
 */
#include "sampler/waits/waits.h"

#include <assert.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"

/* The lock word of glibc's mutex with waiters; they wait for it to change from that. */
#define LOCKED_WITH_WAITERS 2

#define OWNER_OFFSET 8

/* Get the address of the mutex that a task waits for; false: it does not. */
static bool find_address(const struct lock_task *task, uint64_t *address, bool *inherits)
{
	unsigned long long addr, op, value;
	char text[256];
	int number;

	if (!untrusted_read_task(text, sizeof(text), task->pid, task->tid, "syscall") ||
	    sscanf(text, "%d %llx %llx %llx", &number, &addr, &op, &value) != 4 ||
	    number != SYS_futex)
		return false;
	op &= FUTEX_CMD_MASK;
	*inherits = op == FUTEX_LOCK_PI;
	*address = addr;
	return *inherits || (op == FUTEX_WAIT && value == LOCKED_WITH_WAITERS);
}

/* Read the owner of a mutex; 0: not known. */
static pid_t find_owner(pid_t pid, uint64_t address, bool inherits)
{
	int dir_fd = untrusted_open_proc(pid);
	struct remote r = { .fd = dir_fd < 0 ? -1 : remote_open(dir_fd) };
	uint32_t word = 0, owner = 0;
	char text[16];

	if (r.fd >= 0) {
		if (!remote_read_u32(&r, address, &word) && inherits)
			owner = word & FUTEX_TID_MASK;
		else if (word && remote_read_u32(&r, address + OWNER_OFFSET, &owner))
			owner = 0;
		close(r.fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
	return owner && owner <= INT32_MAX &&
			       untrusted_read_task(text, sizeof(text), pid, (pid_t)owner, "comm")
		       ? (pid_t)owner
		       : 0;
}

/* Read the state and the wait channel of the owner. */
static void look_at_owner(struct lock *lock)
{
	char text[512], *state;

	if (!untrusted_read_task(text, sizeof(text), lock->pid, lock->owner, "stat"))
		return;
	state = strrchr(text, ')');
	if (state && state[1] == ' ')
		lock->state = state[2];
	if (untrusted_read_task(lock->wchan, sizeof(lock->wchan), lock->pid, lock->owner,
				"wchan") &&
	    !strcmp(lock->wchan, "0"))
		lock->wchan[0] = '\0';
}

/* Write the name of a mapping without its folder. */
static void set_where(struct lock *lock, const char *path, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (path[i] == '/') {
			path += i + 1;
			size -= i + 1;
			i = (size_t)-1;
		}
	text_sanitise(lock->where, sizeof(lock->where), path, size);
}

/* Name the variable at the mutex: @first is the mapping of the first byte of its file. */
static void name_variable(struct lock *lock, const struct procfs_map *first)
{
	const uint64_t at = lock->address - first->start;
	char path[4096], name[ELFFACTS_NAME_MAX];
	struct untrusted_file file;
	struct err e;
	uint64_t begin;

	path[procfs_unescape(path, sizeof(path) - 1, first->path, first->path_size)] = '\0';
	if (untrusted_open(&(struct untrusted_want){ .pid = lock->pid,
						     .start = first->start,
						     .end = first->end,
						     .path = path,
						     .maj = first->maj,
						     .min = first->min,
						     .ino = first->ino },
			   &file, &e))
		return;
	if (file.same && !elffacts_variable(file.fd, file.size, at, name, &begin)) {
		struct demangler d = { .nr = 0 };
		const char *clean = name;
		size_t clean_size = demangler_get(&d, 0, name, strlen(name), &clean);
		int size = clean_size ? (int)clean_size : (int)strlen(name);

		if (at == begin)
			text_format(lock->symbol, sizeof(lock->symbol), "%.*s (%s)", size, clean,
				    lock->where);
		else
			text_format(lock->symbol, sizeof(lock->symbol), "%.*s+0x%llx (%s)", size,
				    clean, (unsigned long long)(at - begin), lock->where);
		demangler_fini(&d);
	}
	close(file.fd);
}

/* Find the mapping and the variable of a mutex: of a file, or of the memory behind it. */
static void find_variable(struct lock *lock)
{
	struct procfs_map m, first = { .path_size = 0 };
	uint64_t end = 0;
	char *text = NULL;
	size_t size = 0;
	struct procfs_text at;

	if (untrusted_read_proc(lock->pid, "maps", PROCFS_MAPS_SIZE_MAX, &text, &size))
		return;
	at = (struct procfs_text){ .at = text, .end = text + size };
	while (procfs_next_map(&at, &m)) {
		/* .bss is anonymous, directly behind the file. */
		bool behind = !m.path_size && first.path_size && m.start == end;

		if (m.path_size && m.path[0] == '/' && !m.offset)
			first = m;
		else if (!behind && (!m.path_size || m.ino != first.ino))
			first.path_size = 0;
		end = m.end;
		if (lock->address < m.start || lock->address >= m.end)
			continue;
		if (first.path_size || m.path_size)
			set_where(lock, first.path_size ? first.path : m.path,
				  first.path_size ? first.path_size : m.path_size);
		else
			snprintf(lock->where, sizeof(lock->where), "in anonymous memory");
		if (first.path_size)
			name_variable(lock, &first);
		break;
	}
	free(text);
}

static int compare(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	return (x->nr_waiters < y->nr_waiters) - (x->nr_waiters > y->nr_waiters);
}

uint32_t locks_find(const struct lock_task *tasks, uint32_t nr, struct lock *out, uint32_t max)
{
	uint32_t found = 0;

	assert(tasks || !nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t address;
		bool inherits;
		uint32_t at = 0;

		if (!find_address(&tasks[i], &address, &inherits))
			continue;
		while (at < found && (out[at].pid != tasks[i].pid || out[at].address != address))
			at++;
		if (at == max)
			continue;
		if (at == found)
			out[found++] = (struct lock){
				.pid = tasks[i].pid,
				.address = address,
				.owner = find_owner(tasks[i].pid, address, inherits),
			};
		if (out[at].nr_waiters < LOCKS_WAITERS)
			out[at].waiters[out[at].nr_waiters] = tasks[i].tid;
		out[at].nr_waiters++;
	}
	for (uint32_t i = 0; i < found; i++)
		if (out[i].owner)
			look_at_owner(&out[i]);
	if (found) {
		qsort(out, found, sizeof(*out), compare);
		find_variable(&out[0]);
	}
	return found;
}
