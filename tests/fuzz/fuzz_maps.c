// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parsers of /proc, and the maps under any sequence of events.
 * FUZZ: symbols
 * LIBFUZZER: -detect_leaks=0 -max_len=1024
 * First byte even: the rest is text. Odd: the rest is a program of events.
 * Oracle: parsed mappings are in order inside the text; a look-up finds the mapping that covers the
 * address at that time; counts of processes and spaces return to their first values.
 * Live: waits for threads or processes.
 */
#include "symbols/process/internal.h"

#include <stdlib.h>
#include <string.h>

#include <urcu-qsbr.h>

#include "tests/fuzz/require.h"
#include "symbols/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_text(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct procfs_text t = { .at = text, .end = text + size };
	struct procfs_map m;
	char path[64];
	uint64_t v;

	while (procfs_next_map(&t, &m)) {
		REQUIRE(m.start < m.end);
		REQUIRE(!m.path_size || (m.path > text && m.path + m.path_size < text + size));
		REQUIRE(procfs_unescape(path, sizeof(path), m.path, m.path_size) <= sizeof(path));
		procfs_kind(m.path, m.path_size, m.start, m.is_private);
	}
	procfs_status_number(text, size, "Uid", &v);
	procfs_status_inner(text, size, &v);
	procfs_status_state(text, size);
	procfs_stat_flags(text, size, &v);
}

static void tell_mmap(struct maps *maps, pid_t pid, const uint8_t *op, uint64_t time)
{
	static const char *const names[] = { "/a", "/b", "//anon", "[vdso]", "[vsyscall]", "/c" };
	const char *name = names[op[3] % 6];
	struct maps_mmap ev = {
		.pid = pid,
		.tid = pid,
		.prot = 4,
		.time_ns = time,
		.start = (uint64_t)op[2] << 12,
		.size = (1 + (uint64_t)op[4] % 32) << 12,
		.pgoff = (uint64_t)op[2] << 12,
		.filename = name,
		.filename_size = 16,
		.identity = { .ino = 1 + op[3] % 6u },
	};

	ev.filename_size = strlen(name);
	maps_on_mmap(maps, &ev);
}

static void look(struct maps *maps, pid_t pid, pid_t tid, uint64_t time)
{
	struct maps_hit hit;

	maps_find(maps, maps_tasks(maps), pid, tid, time, &hit);
	REQUIRE(maps_task(maps, hit.task));
	for (uint64_t addr = 0x800; addr < 300 << 12; addr += 5 << 12) {
		const struct mapping *m = space_find(hit.space, addr, time);

		REQUIRE(!m ||
			(m->start <= addr && addr < m->end && m->birth_ns <= time && m->object));
	}
}

/* Six bytes an event: kind and task, time, and three arguments. */
static void fuzz_events(struct maps *maps, const uint8_t *op, size_t size)
{
	for (; size >= 6; size -= 6, op += 6) {
		pid_t pid = 10 + op[0] / 8 % 4, other = 10 + op[2] % 4;
		uint64_t time = 1 + op[1];

		switch (op[0] % 8) {
		case 0:
		case 1:
			tell_mmap(maps, pid, op, time);
			break;
		case 2:
			maps_on_comm(maps, pid, op[3] & 1 ? pid : other, (const char *)op + 2, 4,
				     op[5] & 1, time);
			break;
		case 3:
			maps_on_fork(maps, pid, other, op[3] & 1 ? pid : 20 + op[3] % 4, other,
				     time);
			break;
		case 4:
			maps_on_exit(maps, pid, op[3] & 1 ? pid : 20 + op[3] % 4, time);
			break;
		case 5:
			maps_publish(maps, op[2], op[3] % 64);
			break;
		case 6:
			if (op[3] == 255)
				maps_on_lost(maps);
			maps_ask(maps, pid, time);
			break;
		default:
			look(maps, pid, other, time);
		}
		rcu_quiescent_state();
	}
}

/*
 * One table for all inputs: each ends with the exit of all tasks, and must leave nothing behind. It
 * grows, so that libFuzzer would look for leaks after each input: 13 inputs a second.
 */
static struct maps *table(void)
{
	static struct maps *maps;
	static struct objects *objects;

	if (!maps) {
		rcu_register_thread();
		REQUIRE(!objects_new(&objects) && !maps_new(&maps, objects, 1 << 20));
	}
	return maps;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps_stats before, after;

	if (!size)
		return 0;
	if (!(data[0] & 1)) {
		fuzz_text(data + 1, size - 1);
		return 0;
	}
	maps_stats(table(), &before);
	fuzz_events(table(), data + 1, size - 1);
	for (pid_t pid = 10; pid < 14; pid++)
		for (pid_t tid = 0; tid < 8; tid++)
			maps_on_exit(table(), pid, tid < 4 ? 10 + tid : 16 + tid, 1000);
	maps_publish(table(), 5000, 0);
	rcu_quiescent_state();
	maps_stats(table(), &after);
	REQUIRE(after.nr_processes == before.nr_processes);
	REQUIRE(after.nr_spaces == before.nr_spaces && after.nr_mappings == before.nr_mappings);
	return 0;
}
