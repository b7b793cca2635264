// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The details in /proc: of this process and of a child.
 * Live: waits for threads or processes.
 */
#include "symbols/process/maps.c"

#include "tests/prelude.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/image/image.h"
#include "tests/unhash.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/sandbox/sandbox.h"

static struct objects *objects;
static struct maps *maps;
static struct details *details;
static struct text_arena *arena;

static int setup(void **state)
{
	rcu_register_thread();
	assert_int_equal(objects_new(&objects), 0);
	assert_int_equal(maps_new(&maps, objects, 1000), 0);
	details = details_new(maps);
	arena = text_arena_new();
	return 0;
}

static int teardown(void **state)
{
	text_arena_free(arena);
	details_free(details);
	maps_free(maps);
	objects_free(objects);
	rcu_unregister_thread();
	return 0;
}

/* The id of the incarnation that has @pid now. */
static uint32_t incarnation(pid_t pid)
{
	struct maps_hit hit;

	assert_int_equal(maps_load(maps, pid), 0);
	maps_find(maps, maps_tasks(maps), pid, pid, time_now_ns(), &hit);
	return maps_task(maps, hit.task)->process;
}

static pid_t sleeper(char *const argv[])
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv("/bin/sleep", argv);
		_exit(1);
	}
	/* Until the new program has its arguments: execve() sets the name before. */
	for (char path[64], text[64] = ""; strcmp(text, argv[0]) != 0; usleep(1000)) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		f = fopen(path, "r");
		assert_non_null(f);
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		fclose(f);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct safe_text text_of(const char *text)
{
	return (struct safe_text){ text, (uint16_t)strlen(text), (uint16_t)strlen(text) };
}

/* A name that says only "main thread" is that of a runtime; all others were chosen by a program. */
TEST(test_main_thread)
{
	static const char *const generic[] = { "MainThread", "node-MainThread", "Main Thread",
					       "main-thread", "main_thread" };
	static const char *const chosen[] = {
		"node",	       "postgres",    "Web Content", "main",  "Thread",
		"kworker/0:1", "MainThread2", "(sd-pam)",    "nginx", ""
	};

	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		assert_string_equal(details_name(text_of(generic[i]), TEXT("node")).str, "node");
		assert_string_equal(details_name(text_of(generic[i]), TEXT("")).str, generic[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		assert_string_equal(details_name(text_of(chosen[i]), TEXT("node")).str, chosen[i]);
}

TEST(test_child, setup, teardown)
{
	char *const argv[] = { "s\033[31m", "1000", NULL };
	struct process_details d;
	pid_t pid = sleeper(argv);
	uint32_t id = incarnation(pid);
	uint64_t now = time_now_ns();

	/* Not known yet; requested once, not twice. */
	assert_false(details_get(details, id, pid, now, arena, &d));
	assert_false(details_get(details, id, pid, now, arena, &d));
	assert_true(details_wanted(details));
	assert_true(details_serve(details, 1) == 1);
	assert_true(details_get(details, id, pid, now, arena, &d));
	assert_string_equal(d.command.str, "s\u00b7[31m 1000");
	assert_string_equal(d.comm.str, "sleep");
	assert_true(d.program.size);
	assert_int_equal(d.parent, getpid());
	assert_int_equal(d.uid, getuid());
	assert_true(d.start_ns > 0);
	/* Its ancestors were requested with it. */
	assert_true(details_serve(details, 100) >= 1);
	assert_true(details_get(details, 0, getpid(), now, arena, &d));
	assert_int_equal(d.parent, getppid());
	assert_false(details_wanted(details));
	/* Old details are requested again, and shown until then. */
	assert_true(details_get(details, id, pid, now + 60000000000, arena, &d));
	assert_true(details_wanted(details));
	/* Ended: the known details remain. */
	end(pid);
	assert_int_equal(details_serve(details, 1), 1);
	assert_true(details_get(details, id, pid, now + 120000000000, arena, &d));
	assert_int_equal(d.parent, getpid());
	assert_false(details_wanted(details));
	/* Without a request. */
	assert_true(details_known(details, id, arena, &d));
	assert_string_equal(d.comm.str, "sleep");
	assert_false(details_known(details, id + 1, arena, &d));
	assert_false(details_wanted(details));
}

/* A pid that now belongs to another incarnation has no details for the requested one. */
TEST(test_other, setup, teardown)
{
	char *const argv[] = { "sleep", "1000", NULL };
	struct process_details d;
	pid_t pid = sleeper(argv);
	uint32_t id = incarnation(pid);

	maps_on_comm(maps, pid, pid, "other", 5, true, time_now_ns());
	maps_publish(maps, time_now_ns(), 0);
	assert_false(details_get(details, id, pid, time_now_ns(), arena, &d));
	details_serve(details, 100);
	assert_false(details_get(details, id, pid, time_now_ns(), arena, &d));
	end(pid);
}

/* Few entries also leave without a request: with the second sweep. */
TEST(test_not_requested, setup, teardown)
{
	char *const argv[] = { "sleep", "1000", NULL };
	const uint64_t minute = 60000000000;
	uint64_t now = time_now_ns();
	struct process_details d;
	pid_t pids[2];
	uint32_t ids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = sleeper(argv);
		ids[i] = incarnation(pids[i]);
		details_get(details, ids[i], pids[i], now, arena, &d);
	}
	details_serve(details, 100);
	for (uint32_t i = 1; i <= 22; i++) {
		assert_true(details_known(details, ids[0], arena, &d));
		assert_int_equal(details_known(details, ids[1], arena, &d), i <= 20);
		assert_true(details_get(details, ids[0], pids[0], now + i * minute, arena, &d));
		details_get(details, 100000 + i, 1 << 21, now + i * minute, arena, &d);
	}
	/* As long as the past. */
	details_keep(details, 60 * minute);
	details_get(details, ids[1], pids[1], now + 23 * minute, arena, &d);
	details_serve(details, 100);
	for (uint32_t i = 24; i < 84; i++) {
		details_get(details, 100000 + i, 1 << 21, now + i * minute, arena, &d);
		assert_true(details_known(details, ids[1], arena, &d));
	}
	for (int i = 0; i < 2; i++)
		end(pids[i]);
}

/* Many more than the limit: the latest are kept, and nothing breaks. */
TEST(test_many, setup, teardown)
{
	struct process_details d;

	uint64_t now = time_now_ns();

	for (uint32_t i = 1; i < 200000; i++)
		details_get(details, i, 1 << 21, now + i * 100000, arena, &d);
	assert_true(details_wanted(details));
	while (details_serve(details, 1000))
		;
	/* Two sweeps: details not requested between them are gone. */
	now += 60000000000;
	for (int i = 0; i < 3; i++, now += 2000000000)
		assert_false(details_get(details, 0, getpid(), now, arena, &d) && !i);
	details_serve(details, 1);
	assert_true(details_get(details, 0, getpid(), now, arena, &d));
	assert_false(details_get(details, 5, -1, time_now_ns(), arena, &d));
}

#define CHAINED 16384

static uint64_t ancestors_ns(bool chosen)
{
	struct details *d = details_new(maps);
	uint64_t begin_ns, ns = 0;
	struct process_details out;
	pid_t pid = 0;

	for (int i = 0; i < CHAINED; i++) {
		pid = unhash_pid(pid, 2 * CHAINED, 1U << 31, chosen);
		begin_ns = time_thread_ns();
		assert_false(details_get(d, 0, pid, 1, arena, &out));
		ns += time_thread_ns() - begin_ns;
	}
	details_free(d);
	return ns;
}

/* Parents with pids that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_pids, setup, teardown)
{
	/* Pids that are far apart need more pages. */
	unhash_compare_by("ancestors by pid", ancestors_ns, 10, 10000000);
}

/* ---- the service of a process context ---- */

struct context_head {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns;
	const uint8_t *message;
};

/* Append a message or text of protobuf of less than 128 bytes. */
static size_t put_field(uint8_t *to, unsigned int field, const void *bytes, size_t size)
{
	to[0] = (uint8_t)(field << 3 | 2);
	to[1] = (uint8_t)size;
	memcpy(to + 2, bytes, size);
	return size + 2;
}

static size_t put_attribute(uint8_t *to, const char *key, const char *text)
{
	uint8_t value[128], pair[300];
	size_t nr = put_field(value, 1, text, strlen(text)), size;

	size = put_field(pair, 1, key, strlen(key));
	size += put_field(pair + size, 2, value, nr);
	return put_field(to, 1, pair, size);
}

/* A context with a field that no version has, and an attribute that is none of ours. */
static size_t make_context(uint8_t *to, const char *name, const char *version)
{
	uint8_t resource[400] = { 9 << 3, 7 };
	size_t size = 2;

	size += put_attribute(resource + size, "service.name", name);
	size += put_attribute(resource + size, "telemetry.sdk.language", "c");
	if (version)
		size += put_attribute(resource + size, "service.version", version);
	return put_field(to, 1, resource, size);
}

static struct context_head *publish(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct context_head *head;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	head = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_true(head != MAP_FAILED);
	close(fd);
	return head;
}

/* Read the details of this process again, as ten seconds later; return the text @fact. */
static const char *service_of(uint32_t id, unsigned int fact)
{
	static uint64_t later;
	struct process_details d;

	later += 60000000000;
	details_get(details, id, getpid(), time_now_ns() + later, arena, &d);
	details_serve(details, 100);
	assert_true(details_get(details, id, getpid(), time_now_ns(), arena, &d));
	return d.service[fact].str;
}

TEST(test_service, setup, teardown)
{
	uint32_t id = incarnation(getpid());
	struct context_head *head = publish();
	uint8_t message[600];

	head->message = message;
	head->size = (uint32_t)make_context(message, "sh\033op", "1.2");
	head->version = 2;
	head->published_ns = 7;
	memcpy(head->signature, "OTEL_CTX", 8);
	assert_string_equal(service_of(id, SERVICE_NAME), "sh\u00b7op");
	assert_string_equal(service_of(id, SERVICE_VERSION), "1.2");
	assert_string_equal(service_of(id, SERVICE_NAMESPACE), "");
	/* The known texts are kept while it is written; each publication has another number. */
	head->published_ns = 0;
	head->size = (uint32_t)make_context(message, "till", NULL);
	assert_string_equal(service_of(id, SERVICE_NAME), "sh\u00b7op");
	head->published_ns = 8;
	assert_string_equal(service_of(id, SERVICE_NAME), "till");
	assert_string_equal(service_of(id, SERVICE_VERSION), "");
	/* Hostile: a wild pointer, a size beyond the limit. */
	head->published_ns = 9;
	head->message = (const uint8_t *)8;
	assert_string_equal(service_of(id, SERVICE_NAME), "");
	head->message = message;
	assert_string_equal(service_of(id, SERVICE_NAME), "till");
	head->published_ns = 10;
	head->size = 1u << 30;
	assert_string_equal(service_of(id, SERVICE_NAME), "");
	munmap(head, 4096);
}

/* Every end, and random bytes: some texts, or none. */
TEST(test_hostile_service)
{
	const size_t known = sizeof("shop") - 1;
	uint8_t message[600], bytes[600];
	size_t size = make_context(message, "shop", "1.2");
	struct sandbox_answer a;
	uint16_t sizes[SERVICE_NR];

	srand(7);
	for (unsigned int i = 0; i < 3000; i++) {
		size_t part = i <= size ? i : size;

		memcpy(bytes, message, size);
		for (unsigned int k = 0; i > size && k < 1 + i % 4; k++)
			bytes[(size_t)rand() % size] = (uint8_t)rand();
		assert_int_equal(sandbox_call(&service_reader, bytes, part, NULL, 0, 1000000000,
					      &a),
				 0);
		assert_true(a.size > sizeof(sizes));
		memcpy(sizes, a.bytes, sizeof(sizes));
		assert_true(sizes[SERVICE_NAME] <= 256);
		if (i == size)
			assert_int_equal(sizes[SERVICE_NAME], known);
		sandbox_answer_free(&a);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
