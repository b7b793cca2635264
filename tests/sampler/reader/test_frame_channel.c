// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * feed: slots are found in order and whole, also around the end of the ring;
 * earlier ones are dropped; a full ring refuses; hostile bytes do no harm.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/script/internal.h"
#include "symbols/base/base.h"

static struct lang_frame frames[LANG_FRAMES_MAX];

#define FUNCTIONS 600U

/* Both ends of a ring. */
struct channel_ends {
	struct frame_channel_ring *ring;
	struct script_functions *theirs, *ours; /* of the reader, of the sampler thread */
	struct frame_channel_writer w;
	struct frame_channel f;
};

static uint32_t t_add_function(struct script_functions *c, uint32_t n)
{
	char name[16];
	struct code_text t = { .language = LANG_PYTHON, .first_line = n, .name = name };
	const struct code_key key = { 7, n, n };

	t.name_size = (uint16_t)snprintf(name, sizeof(name), "f%u", n);
	t.file = "a.py";
	t.file_size = 4;
	return script_functions_add(c, &key, &t);
}

static void ends_open(struct channel_ends *e)
{
	*e = (struct channel_ends){ .ring = aligned_alloc(CACHELINE,
							  sizeof(struct frame_channel_ring)),
				    .theirs = script_functions_new(),
				    .ours = script_functions_new() };
	assert_true(e->ring && e->theirs && e->ours);
	memset(e->ring, 0, sizeof(*e->ring));
	e->w = (struct frame_channel_writer){ e->ring, e->theirs, 0 };
	assert_int_equal(frame_channel_init(&e->f, e->ring, e->ours), 0);
	/* Other ids than the reader has. */
	assert_int_equal(t_add_function(e->ours, 5000), 0);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		assert_int_equal(t_add_function(e->theirs, i), i);
}

static void ends_close(struct channel_ends *e)
{
	frame_channel_fini(&e->f);
	script_functions_free(e->theirs);
	script_functions_free(e->ours);
	free(e->ring);
}

static bool t_put(struct channel_ends *e, uint64_t time_ns, uint16_t nr)
{
	const struct lang_slot slot = {
		.time_ns = time_ns, .pid = 1, .tid = 2, .nr = nr, .none = LANG_OK, .process = 7
	};

	for (uint32_t i = 0; i < nr; i++) {
		frames[i].code = (uint32_t)(time_ns + i) % FUNCTIONS;
		frames[i].instr = (uint32_t)time_ns + i;
	}
	return frame_channel_put(&e->w, &slot, frames, NULL);
}

static void check(struct channel_ends *e, const struct lang_slot *slot, uint64_t time_ns,
		  uint16_t nr)
{
	assert_int_equal(slot->nr, nr);
	assert_int_equal(slot->none, LANG_OK);
	for (uint32_t i = 0; i < nr; i++) {
		const struct code_text *t = script_functions_at(e->ours, slot->frames[i].code);

		assert_non_null(t);
		assert_int_equal(t->first_line, (uint32_t)(time_ns + i) % FUNCTIONS);
		assert_int_equal(slot->frames[i].instr, (uint32_t)time_ns + i);
	}
}

static void expect(struct channel_ends *e, uint64_t time_ns, uint16_t nr)
{
	const struct lang_slot *slot = frame_channel_find(&e->f, time_ns, 1, 2);

	assert_non_null(slot);
	check(e, slot, time_ns, nr);
	assert_int_equal(atomic_load(&e->f.nr_bad), 0);
}

TEST(test_order)
{
	struct channel_ends e;

	ends_open(&e);
	assert_null(frame_channel_find(&e.f, 5, 1, 2));
	assert_true(t_put(&e, 10, 3));
	assert_true(t_put(&e, 20, 0));
	assert_true(t_put(&e, 30, 512));
	assert_null(frame_channel_find(&e.f, 5, 1, 2));
	expect(&e, 10, 3);
	expect(&e, 10, 3);
	assert_null(frame_channel_find(&e.f, 20, 1, 3));
	expect(&e, 30, 512);
	assert_null(frame_channel_find(&e.f, 31, 1, 2));
	assert_null(frame_channel_find(&e.f, 10, 1, 2));
	ends_close(&e);
}

/* The bytes of another stack, alone and behind frames; a hostile size is refused. */
TEST(test_other_stack)
{
	uint8_t bytes[LANG_OTHER_MAX] = { 1, 2, 3 };
	struct lang_slot slot = { .pid = 1, .tid = 2, .none = LANG_OK, .process = 7 };
	const struct lang_slot *found;
	struct channel_ends e;

	ends_open(&e);
	slot.other = (struct lang_other_stack){ 4096, 8192, sizeof(bytes), 24 };
	slot.time_ns = 10;
	assert_true(frame_channel_put(&e.w, &slot, NULL, bytes));
	found = frame_channel_find(&e.f, 10, 1, 2);
	assert_non_null(found);
	assert_int_equal(found->other.from, 4096);
	assert_int_equal(found->other.size, sizeof(bytes));
	assert_int_equal(found->other.rest, 24);
	assert_memory_equal(found->frames, bytes, sizeof(bytes));
	/* More than it has. */
	slot.time_ns = 20;
	assert_true(frame_channel_put(&e.w, &slot, NULL, bytes));
	/* Behind the first one. */
	for (uint64_t at = LANG_OTHER_MAX; at < LANG_OTHER_MAX + 512; at += 4)
		if (!memcmp(e.ring->bytes + e.f.tail + at, &slot.other.size, 4))
			e.ring->bytes[e.f.tail + at + 2] = 2;
	assert_null(frame_channel_find(&e.f, 20, 1, 2));
	assert_int_equal(atomic_load(&e.f.nr_bad), 1);
	slot.time_ns = 30;
	slot.nr = LANG_FRAMES_MAX;
	for (uint32_t i = 0; i < slot.nr; i++)
		frames[i].code = (30 + i) % FUNCTIONS;
	assert_true(frame_channel_put(&e.w, &slot, frames, bytes));
	found = frame_channel_find(&e.f, 30, 1, 2);
	assert_non_null(found);
	assert_int_equal(found->nr, LANG_FRAMES_MAX);
	assert_int_equal(found->other.size, sizeof(bytes));
	assert_memory_equal(found->frames + found->nr, bytes, sizeof(bytes));
	assert_int_equal(script_functions_at(e.ours, found->frames[511].code)->first_line,
			 (30 + 511) % FUNCTIONS);
	ends_close(&e);
}

TEST(test_around)
{
	struct channel_ends e;

	ends_open(&e);
	for (uint64_t t = 1; t < 5000; t++) {
		assert_true(t_put(&e, t, (uint16_t)(t * 37 % 513)));
		if (t > 3)
			expect(&e, t - 3, (uint16_t)((t - 3) * 37 % 513));
	}
	ends_close(&e);
}

TEST(test_full)
{
	struct channel_ends e;
	uint64_t t = 1;

	ends_open(&e);
	while (t_put(&e, t, 100))
		t++;
	assert_in_range(t, 100, FRAME_CHANNEL_SIZE / 1600);
	expect(&e, t - 1, 100);
	assert_true(t_put(&e, t, 100));
	expect(&e, t, 100);
	/* A function that found no room is sent with the next slot. */
	while (t_put(&e, ++t, 500))
		;
	assert_int_equal(t_add_function(e.theirs, FUNCTIONS), FUNCTIONS);
	assert_false(t_put(&e, ++t, 500));
	assert_null(frame_channel_find(&e.f, t, 1, 2));
	frames[0].code = FUNCTIONS;
	assert_true(frame_channel_put(
		&e.w,
		&(struct lang_slot){
			.time_ns = t, .pid = 1, .tid = 2, .nr = 1, .none = LANG_OK, .process = 7 },
		frames, NULL));
	assert_int_equal(script_functions_at(e.ours,
					     frame_channel_find(&e.f, t, 1, 2)->frames[0].code)
				 ->first_line,
			 FUNCTIONS);
	ends_close(&e);
}

#define PUTS 20000U

static void *put_all(void *arg)
{
	for (uint64_t t = 1; t <= PUTS; t++)
		while (!t_put(arg, t, (uint16_t)(t * 37 % 200)))
			sched_yield();
	return NULL;
}

/* A reader puts while the sampler thread looks: a slot that is found is whole. */
TEST(test_threads)
{
	struct channel_ends e;
	pthread_t reader;

	ends_open(&e);
	assert_int_equal(pthread_create(&reader, NULL, put_all, &e), 0);
	for (uint64_t t = 1; t <= PUTS; t++) {
		const struct lang_slot *slot;

		while (!(slot = frame_channel_find(&e.f, t, 1, 2)))
			sched_yield();
		check(&e, slot, t, (uint16_t)(t * 37 % 200));
	}
	pthread_join(reader, NULL);
	ends_close(&e);
}

/* A frame of a function that the table does not have is unnamed; the others have names. */
TEST(test_unknown_function)
{
	const struct lang_slot *slot;
	struct channel_ends e;

	ends_open(&e);
	assert_true(t_put(&e, 10, 3));
	assert_false(atomic_load(&e.f.refused));
	frames[0].code = FUNCTIONS + 1;
	frames[1].code = 5;
	assert_true(frame_channel_put(
		&e.w,
		&(struct lang_slot){ .time_ns = 20, .pid = 1, .tid = 2, .nr = 2, .none = LANG_OK },
		frames, NULL));
	slot = frame_channel_find(&e.f, 20, 1, 2);
	assert_int_equal(slot->none, LANG_OK);
	assert_int_equal(slot->nr, 2);
	assert_int_equal(slot->frames[0].code, CODE_UNNAMED);
	assert_int_equal(slot->frames[0].instr, LANG_NO_INSTR);
	assert_int_equal(script_functions_at(e.ours, slot->frames[1].code)->first_line, 5);
	/* The reader is to be replaced: there may be room later. */
	assert_true(atomic_load(&e.f.refused));
	ends_close(&e);
}

static bool put_one(struct channel_ends *e, uint64_t time_ns, uint32_t code)
{
	const struct lang_slot slot = {
		.time_ns = time_ns, .pid = 1, .tid = 2, .nr = 1, .none = LANG_OK, .process = 7
	};
	const struct lang_frame frame = { .code = code };

	return frame_channel_put(&e->w, &slot, &frame, NULL);
}

/* Add a function with a table. */
static uint32_t add_table(struct script_functions *c, uint32_t n, enum lang_kind kind,
			  const uint8_t *table, uint32_t size)
{
	const struct code_text t = { .language = kind,
				     .compiled = kind == LANG_NODE,
				     .first_line = n,
				     .name = "table",
				     .name_size = 5,
				     .file = "",
				     .table = table,
				     .table_size = size };

	return script_functions_add(c, &(struct code_key){ 7, n, n }, &t);
}

/* A function that is refused has an id: later ones have the names that are theirs. */
TEST(test_refused_function)
{
	static const uint8_t table[V8_TABLE_MAX + 1];
	uint32_t refused, compiled, last;
	const struct lang_slot *slot;
	struct channel_ends e;

	ends_open(&e);
	refused = add_table(e.theirs, 7001, LANG_PYTHON, table, 20 << 10);
	compiled = add_table(e.theirs, 7002, LANG_NODE, table, 20 << 10);
	add_table(e.theirs, 7003, LANG_NODE, table, V8_TABLE_MAX + 1);
	last = t_add_function(e.theirs, 7004);
	assert_true(put_one(&e, 10, refused) && put_one(&e, 20, compiled) && put_one(&e, 30, last));
	slot = frame_channel_find(&e.f, 10, 1, 2);
	assert_int_equal(slot->frames[0].code, CODE_UNNAMED);
	slot = frame_channel_find(&e.f, 20, 1, 2);
	assert_int_equal(script_functions_at(e.ours, slot->frames[0].code)->first_line, 7002);
	slot = frame_channel_find(&e.f, 30, 1, 2);
	assert_int_equal(script_functions_at(e.ours, slot->frames[0].code)->first_line, 7004);
	assert_int_equal(atomic_load(&e.f.nr_bad), 2);
	ends_close(&e);
}

/* Functions that were inlined in compiled code are named by its table: with our ids. */
TEST(test_inlined)
{
	uint8_t bytes[256];
	struct v8_table t = { .bytes = bytes, .room = sizeof(bytes) };
	const struct v8_inlined calls[] = { { 3, 11, V8_NOT_INLINED }, { 123456, 12, 0 } };
	struct v8_inlined call;
	const struct code_text *text;
	struct channel_ends e;
	uint32_t code;

	ends_open(&e);
	assert_true(v8table_begin(&t, calls, 2));
	assert_true(v8table_add(&t, &(struct v8_entry){ 0, 5, 1 }));
	code = add_table(e.theirs, 7001, LANG_NODE, bytes, t.size);
	assert_true(put_one(&e, 10, code));
	text = script_functions_at(e.ours, frame_channel_find(&e.f, 10, 1, 2)->frames[0].code);
	assert_int_equal(text->first_line, 7001);
	assert_true(v8table_inlined(text->table, text->table_size, 0, &call));
	assert_int_equal(script_functions_at(e.ours, call.code)->first_line, 3);
	assert_int_equal(call.line, 11);
	assert_true(v8table_inlined(text->table, text->table_size, 1, &call));
	assert_int_equal(call.code, CODE_NONE);
	assert_int_equal(call.outer, 0);
	ends_close(&e);
}

/*
 * Functions that found no room are sent with a slot of another process: they are of the first one,
 * and of its user.
 */
TEST(test_process)
{
	const struct code_key key = { 8, 7001, 7001 };
	struct code_text t = {
		.language = LANG_PERL, .user = 9, .name = "late", .name_size = 4, .file = ""
	};
	struct channel_ends e;
	uint32_t code;

	ends_open(&e);
	code = script_functions_add(e.theirs, &key, &t);
	assert_int_equal(script_functions_process(e.theirs, code), 8);
	assert_true(put_one(&e, 10, code));
	code = frame_channel_find(&e.f, 10, 1, 2)->frames[0].code;
	assert_int_equal(script_functions_process(e.ours, code), 8);
	assert_int_equal(script_functions_at(e.ours, code)->user, 9);
	assert_int_equal(script_functions_process(e.ours, code - 1), 7);
	assert_int_equal(script_functions_process(e.ours, code + 1), 0);
	ends_close(&e);
}

/* A ring of the smallest parts does not keep the sampler thread, which has a real-time priority. */
TEST(test_budget)
{
	const struct {
		uint32_t kind, size;
	} padding = { 0, sizeof(padding) };
	uint64_t tail = 0, calls = 0;
	struct channel_ends e;

	ends_open(&e);
	for (uint32_t at = 0; at < FRAME_CHANNEL_SIZE; at += sizeof(padding))
		memcpy(e.ring->bytes + at, &padding, sizeof(padding));
	atomic_store(&e.ring->head, FRAME_CHANNEL_SIZE);
	assert_null(frame_channel_find(&e.f, 10, 1, 2));
	assert_int_equal(atomic_load(&e.f.nr_bad), 1);
	assert_int_equal(atomic_load(&e.ring->tail), FRAME_CHANNEL_SIZE);
	/* Slots of earlier samples are skipped in several calls, and the one that is wanted found.
	 */
	e.w.nr_sent = FUNCTIONS;
	while (t_put(&e, ++tail, 0))
		;
	while (!frame_channel_find(&e.f, tail - 1, 1, 2))
		calls++;
	print_message("%llu slots, %llu calls more\n", (unsigned long long)tail,
		      (unsigned long long)calls);
	assert_in_range(calls, tail / 16384, tail / 16384 + 1);
	ends_close(&e);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Check that a slot of any bytes is within its bounds. */
static void check_sane(const struct channel_ends *e, const struct lang_slot *s)
{
	assert_in_range(s->nr, 0, LANG_FRAMES_MAX);
	assert_in_range(s->none, 0, LANG_OK);
	assert_in_range(s->nr_here, 0, s->nr);
	assert_in_range(s->top, 0, LANG_TOP_FRAMELESS);
	for (uint32_t i = 0; i < s->nr; i++)
		assert_true(s->frames[i].code == CODE_UNNAMED ||
			    script_functions_at(e->ours, s->frames[i].code));
}

/* The sampler thread is woken before long stacks find no room, and not by a few frames. */
TEST(test_crowded)
{
	static uint8_t bytes[LANG_OTHER_MAX];
	const struct record_sample sample = { .pid = 1, .tid = 2, .time_ns = 10 };
	struct reader_share *share = calloc(1, sizeof(*share));
	struct langreader_loop *r = calloc(1, sizeof(*r));
	struct channel_ends e;
	uint64_t kicks = 0;

	ends_open(&e);
	assert_true(share && r);
	r->share = share;
	r->feed = e.w;
	r->lang.codes = e.theirs;
	r->kick_fd = wake_new();
	put_slot(r, &sample, 7, true);
	assert_int_equal(read(r->kick_fd, &kicks, sizeof(kicks)), -1);
	r->chain.other_bytes = bytes;
	for (int i = 0; i < 12; i++) {
		r->chain.other.size = sizeof(bytes);
		put_slot(r, &sample, 7, true);
	}
	assert_int_equal(read(r->kick_fd, &kicks, sizeof(kicks)), sizeof(kicks));
	assert_in_range(kicks, 3, 6);
	close(r->kick_fd);
	free(r);
	free(share);
	ends_close(&e);
}

/* A reader that was taken over writes anything, anywhere. */
TEST(test_hostile)
{
	uint32_t seed = 1, nr_slots = 0;
	uint64_t nr_bad = 0;

	for (uint32_t round = 0; round < 400; round++) {
		struct channel_ends e;

		ends_open(&e);
		for (uint64_t t = 1; t < 40; t++) {
			const struct lang_slot *slot;
			uint64_t head;

			t_put(&e, t, (uint16_t)(next_random(&seed) % 100));
			head = atomic_load(&e.ring->head);
			for (uint32_t i = 0; i < 3; i++)
				e.ring->bytes[(head - next_random(&seed) % 4096) %
					      FRAME_CHANNEL_SIZE] =
					next_random(&seed) % 2 ? (uint8_t)next_random(&seed) : 0xff;
			if (next_random(&seed) % 64 == 0)
				atomic_store(&e.ring->head, head + next_random(&seed) * 64);
			slot = frame_channel_find(&e.f, t, 1, 2);
			nr_slots += slot != NULL;
			if (slot)
				check_sane(&e, slot);
		}
		nr_bad += atomic_load(&e.f.nr_bad);
		ends_close(&e);
	}
	print_message("%u slots, %llu times no sense\n", nr_slots, (unsigned long long)nr_bad);
	assert_in_range(nr_slots, 1000, 15000);
	assert_true(nr_bad > 400);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
