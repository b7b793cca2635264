// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries of the state, the rows and the cursor among them, the line being typed. Runs on: the main
 * thread.
 */
#include "ui/state/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/key/key.h"
#include "ui/text/text.h"

#define MESSAGE_NS (6 * 1000000000ull)
#define HELD_NS	   (2 * 1000000000ull) /* of an error */

/* Above the ids of the sampler's messages, which are their places in a table. */
#define ANSWER_ID (1u << 24)

/* A request without an answer after this time was refused. */
#define ASKED_NS (2 * 1000000000ull)

struct safe_text ui_state_clean(char *buf, size_t size, const char *text)
{
	return text_sanitise(buf, size, text, strlen(text));
}

struct safe_text ui_state_target(const struct profile *p, char *buf, size_t size)
{
	static const char recording[] = "recording ";
	const char *name = strrchr(p->target, '/');

	if (!name || strncmp(p->target, recording, sizeof(recording) - 1))
		return ui_state_clean(buf, size, p->target);
	return text_format(buf, size, "%s%s", recording, name + 1);
}

bool ui_state_whole(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p && st->config->replayed && p->window_ns + 1000000000ull >= p->running_ns;
}

struct safe_text ui_state_name(const struct ui_state *st, char buf[static TEXT_MAX],
			       struct safe_text name)
{
	return st->full_names ? name : text_short_name(buf, name);
}

/* Keep the message for view 7, once. */
static void keep_answer(struct ui_state *st)
{
	uint64_t now_ns = st->latest ? st->latest->session_ns : 0;
	struct profile_message *m = st->answers;

	for (uint32_t i = 0; i < st->nr_answers; i++, m++)
		if (!strcmp(m->detail, st->message)) {
			m->count++;
			m->last_ns = now_ns;
			return;
		}
	if (st->nr_answers == UI_STATE_ANSWERS) {
		memmove(st->answers, st->answers + 1, sizeof(*m) * (UI_STATE_ANSWERS - 1));
		m = &st->answers[--st->nr_answers];
	}
	st->nr_answers++;
	*m = (struct profile_message){ .id = ANSWER_ID + st->answer_seq++,
				       .severity = st->message_bad ? MESSAGE_WARN : MESSAGE_INFO,
				       .key = "answer",
				       .count = 1,
				       .first_ns = now_ns,
				       .last_ns = now_ns,
				       .fix = "none: it is the answer to a key or a command" };
	_Static_assert(sizeof(m->detail) >= sizeof(st->message), "an answer is cut");
	memcpy(m->detail, st->message, sizeof(st->message));
}

void ui_state_say(struct ui_state *st, bool bad, const char *fmt, ...)
{
	char text[sizeof(st->message)];
	struct safe_text clean;
	bool is_long;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	clean = ui_state_clean(st->message, sizeof(st->message), text);
	is_long = st->cols && clean.width + 2u > st->cols;
	st->message_bad = bad;
	st->message_until_ns = st->now_ns + (is_long ? 2 : 1) * MESSAGE_NS;
	st->message_held_ns = bad ? st->now_ns + HELD_NS : 0;
	/* Two lines of the screen show the rest of them whole. */
	if (bad || (is_long && clean.width + 4u > 2u * st->cols))
		keep_answer(st);
}

bool ui_state_is_held(const struct ui_state *st)
{
	return st->message[0] && st->now_ns < st->message_held_ns;
}

/* Return the index of the first event of waits, or of a clock; UINT32_MAX: there is none. */
static uint32_t ui_state_find_time(const struct profile *p, bool waits)
{
	for (uint32_t i = 0; i < p->nr_events; i++)
		if (waits ? p->events[i].event.wait : p->events[i].event.clock)
			return i;
	return UINT32_MAX;
}

uint32_t ui_state_also(const struct ui_state *st, const struct profile *p)
{
	if (!st->scope.with_waits || ui_state_find_time(p, false) == UINT32_MAX)
		return 0;
	return ui_state_find_time(p, true) + 1;
}

bool ui_state_waits(const struct ui_state *st, const struct profile *p)
{
	return p && p->nr_events &&
	       (ui_state_also(st, p) || p->events[ui_state_event(st, p)].event.wait);
}

bool ui_state_latency(const struct ui_state *st, const struct profile *p)
{
	return st->scope.latency && p && p->latency && p->latency <= p->nr_events;
}

enum ui_config_time ui_state_time(const struct ui_state *st, const struct profile *p)
{
	return ui_state_latency(st, p) ? CONFIG_TIME_LATENCY
	       : ui_state_also(st, p)  ? CONFIG_TIME_ALL
	       /* Waits may be requested of the next profile. */
	       : ui_state_waits(st, p) || !strcmp(st->scope.event_name, EVENT_WAITS)
		       ? CONFIG_TIME_WAIT
		       : CONFIG_TIME_CPU;
}

void ui_state_set_time(struct ui_state *st, enum ui_config_time time)
{
	st->scope.with_waits = time == CONFIG_TIME_ALL;
	st->scope.latency = time == CONFIG_TIME_LATENCY;
	snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s",
		 time == CONFIG_TIME_WAIT ? EVENT_WAITS : "");
}

uint8_t ui_state_hides_idle(const struct ui_state *st, const struct profile *p)
{
	if (!ui_state_waits(st, p) || st->scope.idle == IDLE_SHOWN)
		return 0;
	return st->scope.idle == IDLE_HIDDEN || ui_state_also(st, p) ? PROFILE_IDLE
								     : PROFILE_IDLE_KTHREAD;
}

uint32_t ui_state_event(const struct ui_state *st, const struct profile *p)
{
	if (ui_state_latency(st, p))
		return p->latency - 1;
	if (ui_state_also(st, p))
		return ui_state_find_time(p, false);
	for (uint32_t i = 0; i < p->nr_events; i++)
		if (!strcmp(p->events[i].event.name, st->scope.event_name))
			return i;
	return 0;
}

double ui_state_want_hz(const struct ui_state *st)
{
	if (st->asked_hz > 0 && st->now_ns - st->asked_ns <= ASKED_NS)
		return st->asked_hz;
	if (!st->latest || !st->latest->nr_events)
		return 0;
	return st->latest->events[ui_state_event(st, st->latest)].want_hz;
}

enum profile_window ui_state_want_window(const struct ui_state *st)
{
	if (st->asked_window_ns && st->now_ns - st->asked_window_ns <= ASKED_NS)
		return st->asked_window;
	return st->latest ? st->latest->window : PROFILE_WINDOW;
}

void ui_state_ask_window(struct ui_state *st, enum profile_window window)
{
	sampler_set_window(st->sampler, window, st->set.window_ns);
	st->asked_window = window;
	st->asked_window_ns = MAX(st->now_ns, 1);
}

uint32_t ui_state_process(const struct ui_state *st, const struct profile *p)
{
	for (uint32_t i = 0; !st->scope.group[0] && p && i < p->nr_processes; i++)
		if (p->processes[i].id == st->scope.process)
			return i;
	return UINT32_MAX;
}

void ui_state_zone(struct ui_state *st, const struct zone *zone)
{
	assert(st->nr_zones <= ZONES_MAX);
	if (st->nr_zones < ZONES_MAX)
		st->zones[st->nr_zones++] = *zone;
}

const struct profile_message *ui_state_worst(const struct ui_state *st)
{
	for (uint32_t i = 0; st->latest && i < st->latest->nr_messages; i++)
		if (st->latest->messages[i].id + 1 == st->worst)
			return &st->latest->messages[i];
	return NULL;
}

const struct profile_message *ui_state_message(const struct ui_state *st, const char *key)
{
	for (uint32_t i = 0; st->latest && i < st->latest->nr_messages; i++)
		if (st->latest->messages[i].active && !strcmp(st->latest->messages[i].key, key))
			return &st->latest->messages[i];
	return NULL;
}

void ui_state_say_error(struct ui_state *st, const struct err *e)
{
	char text[sizeof(st->message)];
	size_t n = 0;

	for (const char *at = e->text; *at && n + 2 < sizeof(text); at++) {
		if (*at != '\n') {
			text[n++] = *at;
			continue;
		}
		text[n++] = ';';
		while (at[1] == ' ')
			at++;
		text[n++] = ' ';
	}
	text[n] = '\0';
	ui_state_say(st, true, "%s", text);
}

/*
 * A line being typed: code points in, code points out. Any thread.
 */

void line_set(struct line *l, const char *text)
{
	char clean[LINE_SIZE];
	struct safe_text t = text_sanitise(clean, sizeof(clean), text, strlen(text));

	memcpy(l->text, t.str, t.size + 1u);
	l->size = l->at = t.size;
}

/* Return the bytes of the code point before or after the cursor. */
static size_t before(const struct line *l)
{
	size_t n = 0;

	while (n < l->at && (l->text[l->at - ++n] & 0xc0) == 0x80)
		;
	return n;
}

static size_t after(const struct line *l)
{
	size_t n = l->at < l->size;

	while (l->at + n < l->size && (l->text[l->at + n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void erase(struct line *l, size_t from, size_t n)
{
	memmove(l->text + from, l->text + from + n, l->size - from - n + 1);
	l->size -= n;
	l->at = from;
}

static bool insert(struct line *l, uint32_t code)
{
	char bytes[8], clean[16];
	utf8proc_ssize_t n =
		utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)bytes);
	struct safe_text t;

	if (n <= 0)
		return false;
	t = text_sanitise(clean, sizeof(clean), bytes, (size_t)n);
	/* Refuse bytes that are not clean text. */
	if (t.size != (size_t)n || memcmp(t.str, bytes, (size_t)n))
		return false;
	l->full = l->size + (size_t)n > (l->max ? l->max : sizeof(l->text) - 1);
	if (l->full)
		return false;
	memmove(l->text + l->at + n, l->text + l->at, l->size - l->at + 1);
	memcpy(l->text + l->at, bytes, (size_t)n);
	l->at += (size_t)n;
	l->size += (size_t)n;
	return true;
}

static void erase_word(struct line *l)
{
	size_t from = l->at;

	while (from && l->text[from - 1] == ' ')
		from--;
	while (from && l->text[from - 1] != ' ')
		from--;
	erase(l, from, l->at - from);
}

bool line_key(struct line *l, uint32_t code, bool *changed)
{
	size_t size = l->size;

	*changed = l->full = false;
	switch (code) {
	case K_LEFT:
		l->at -= before(l);
		return true;
	case K_RIGHT:
		l->at += after(l);
		return true;
	case K_BACKSPACE:
		erase(l, l->at - before(l), before(l));
		break;
	case K_DELETE:
		erase(l, l->at, after(l));
		break;
	case K_CTRL('u'):
		erase(l, 0, l->at);
		break;
	case K_CTRL('w'):
		erase_word(l);
		break;
	default:
		if (code < 32 || code >= 0x110000)
			return false;
		*changed = insert(l, code);
		return true;
	}
	*changed = size != l->size;
	assert(l->at <= l->size && l->size < sizeof(l->text) && !l->text[l->size]);
	return true;
}

/*
 * Rows and the cursor among them. Runs on: the main thread.
 */

#define ROWS_MAX (1u << 22)

void list_fini(struct list *list)
{
	free(list->rows);
	free(list->sorted);
	free(list->keys);
	free(list->slots);
	match_fini(&list->search);
	match_fini(&list->filter);
	*list = (struct list){ 0 };
}

struct row *list_add(struct list *list)
{
	assert(list->nr <= list->capacity);
	assert(list->nr <= ROWS_MAX);
	if (list->nr == ROWS_MAX || !array_reserve(&list->rows, &list->capacity, list->nr + 1ULL))
		return NULL;
	list->rows[list->nr] = (struct row){ .task = UINT32_MAX, .top_function = UINT32_MAX };
	return &list->rows[list->nr++];
}

struct list_position list_position(const struct list *list)
{
	return (struct list_position){ list->selected, list->cursor, list->top, list->pinned };
}

void list_restore(struct list *list, const struct list_position *at)
{
	uint32_t page = MAX(list->page, 1u);

	list->selected = at->selected;
	list->cursor = at->cursor;
	list->top = at->top;
	/* Without rows, they may be on their way. */
	if (list->nr) {
		list->cursor = MIN(at->cursor, list->nr - 1);
		list->top = list->nr > page ? MIN(at->top, list->nr - page) : 0;
	}
	list->pinned = at->pinned;
	for (uint32_t i = 0; at->pinned && i < list->nr; i++)
		if (list->rows[i].id == at->selected)
			list->cursor = i;
	assert(list->cursor < list->nr || !list->nr);
}

const struct row *list_current(const struct list *list)
{
	assert(list->nr <= list->capacity);
	return list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
}
