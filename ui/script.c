// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --script: keys in, screen out, without a terminal. Runs on: the main thread.
 *
 * The screen is drawn after each key, as in the loop: page size and mouse
 * zones are set by drawing.
 */
#include "ui/script.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "ui/draw/canvas.h"
#include "ui/input.h"
#include "ui/model.h"
#include "ui/screen.h"
#include "ui/text/number.h"

/* A long recording takes minutes to its first profile; a tick is at most a minute. */
#define FIRST_MS       600000
#define TICK_MS	       65000
#define REPLAY_MS      10000 /* a recording has one profile, and another for each answer */
#define NAME_MAX_BYTES 24
/* In the names of keys, and in sizes and places behind them. */
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789^,- "

/* "3,10" */
static bool cell_of(const char *text, size_t size, struct key *key)
{
	const char *comma = memchr(text, ',', size);
	uint64_t row, col;

	if (!comma || number_u64(text, (size_t)(comma - text), 0, CANVAS_MAX, &row) ||
	    number_u64(comma + 1, size - (size_t)(comma - text) - 1, 0, CANVAS_MAX, &col))
		return false;
	*key = (struct key){ .code = K_MOUSE, .row = (uint16_t)row, .col = (uint16_t)col };
	return true;
}

/* Parse "click 3,10". Return false if it is not a mouse step. */
static bool mouse_of(const char *text, size_t size, struct key *key)
{
	static const struct {
		const char *name;
		enum key_button button;
	} buttons[] = {
		{ "click ", BUTTON_LEFT },
		{ "release ", BUTTON_RELEASED },
		{ "wheel-up ", BUTTON_UP },
		{ "wheel-down ", BUTTON_DOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(buttons); i++) {
		size_t n = strlen(buttons[i].name);

		if (size <= n || strncmp(text, buttons[i].name, n))
			continue;
		if (!cell_of(text + n, size - n, key))
			return false;
		key->button = buttons[i].button;
		return true;
	}
	return false;
}

/* Parse the text between < and >. Return false if it is unknown. */
static bool step_of(const char *text, size_t size, struct script_step *step)
{
	if (size == 4 && !strncmp(text, "tick", 4)) {
		step->kind = SCRIPT_TICK;
		return true;
	}
	if (size > 5 && !strncmp(text, "size ", 5)) {
		step->kind = SCRIPT_SIZE;
		return number_screen_size(text + 5, size - 5, CANVAS_MAX, &step->cols, &step->rows);
	}
	step->kind = SCRIPT_KEY;
	if (mouse_of(text, size, &step->key))
		return true;
	step->key.code = size == 2 && !strncmp(text, "lt", 2) ? '<'
			 : size > 1			      ? key_code(text, size)
							      : K_NONE;
	return step->key.code != K_NONE;
}

/* Return whether this looks like the name of a key; a single letter is typed as it is. */
static bool is_name(const char *text, size_t size)
{
	return size > 1 && (isalpha((unsigned char)*text) || *text == '^') &&
	       strspn(text, NAME_BYTES) >= size;
}

int script_check(const char *keys, struct err *e)
{
	struct script_step step;

	do {
		const char *end = *keys == '<' ? strchr(keys, '>') : NULL;
		size_t size = end ? (size_t)(end - keys) - 1 : 0;

		if (end && is_name(keys + 1, size) &&
		    (size >= NAME_MAX_BYTES || !step_of(keys + 1, size, &step)))
			return err_set(e, -EINVAL,
				       "--script: <%.*s>: unknown key\n"
				       "  proftop(1) has the names; <lt> is the key '<'",
				       (int)MIN(size, 60U), keys + 1);
	} while (script_next(&keys).kind != SCRIPT_END);
	return 0;
}

struct script_step script_next(const char **at)
{
	struct script_step step = { .kind = SCRIPT_END };
	const char *end = **at == '<' ? memchr(*at, '>', strnlen(*at, NAME_MAX_BYTES)) : NULL;
	utf8proc_int32_t code;
	utf8proc_ssize_t n;

	if (end && step_of(*at + 1, (size_t)(end - *at) - 1, &step)) {
		*at = end + 1;
		return step;
	}
	step = (struct script_step){ .kind = SCRIPT_END };
	for (; **at; ++*at) {
		n = utf8proc_iterate((const utf8proc_uint8_t *)*at, -1, &code);
		if (n <= 0 || code <= 0)
			continue;
		*at += n;
		step.kind = SCRIPT_KEY;
		step.key.code = code == '\n' ? K_ENTER : (uint32_t)code;
		return step;
	}
	return step;
}

/* Take the next profile. Return false if none arrived within @ms, or none will: a recording ended.
 */
static bool wait_profile(struct ui_state *st, int ms)
{
	struct pollfd fd = { .fd = sampler_fd(st->sampler), .events = POLLIN };
	uint64_t end = time_now_ns() + (uint64_t)ms * 1000000;
	struct profile *p = sampler_take(st->sampler);

	while (!p && time_now_ns() < end) {
		bool settled = sampler_is_settled(st->sampler);

		if (poll(&fd, 1, settled ? 0 : 100) < 0 && errno != EINTR)
			return false;
		p = sampler_take(st->sampler);
		if (settled)
			break;
	}
	st->now_ns = time_now_ns();
	model_take(st, p);
	return p != NULL;
}

static int run_steps(struct ui_state *st, struct canvas *c, const char *keys, struct err *e)
{
	bool replayed = st->config->replayed;
	struct script_step step;

	while (!st->quit && (step = script_next(&keys)).kind != SCRIPT_END) {
		if (step.kind == SCRIPT_TICK && !wait_profile(st, replayed ? REPLAY_MS : TICK_MS) &&
		    !replayed)
			return err_set(e, -ETIMEDOUT, "--script: timeout: no profile for <tick>");
		if (step.kind == SCRIPT_SIZE && canvas_resize(c, step.rows, step.cols))
			return err_set(e, -ENOMEM, "out of memory for the screen");
		if (step.kind == SCRIPT_KEY)
			input_key(st, &step.key);
		if (st->edit.path[0])
			ui_state_say(st, false, "no terminal for an editor here: %s:%u",
				     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
		st->now_ns = time_now_ns();
		screen_draw(st, c);
	}
	return 0;
}

static int print_screen(const struct canvas *c, FILE *out, struct err *e)
{
	char *text = canvas_dump(c);
	int code = 0;

	if (!text)
		return err_set(e, -ENOMEM, "out of memory for the screen");
	if (fputs(text, out) == EOF || fflush(out))
		code = err_set(e, -errno, "cannot write the screen: %s", strerror(errno));
	free(text);
	return code;
}

int script_run(struct sampler *s, const struct ui_config *app, const struct script_config *config,
	       FILE *out, struct err *e)
{
	struct ui_state st;
	struct canvas c;
	int code;

	canvas_init(&c, app->ascii);
	model_init(&st, s, app, app->ascii);
	st.now_ns = time_now_ns();
	if (app->window != PROFILE_WINDOW)
		sampler_set_window(s, app->window);
	code = canvas_resize(&c, config->rows, config->cols);
	if (code)
		err_set(e, code, "out of memory for the screen");
	else if (!wait_profile(&st, FIRST_MS))
		code = err_set(e, -ETIMEDOUT, "--script: timeout: no profile");
	if (!code) {
		screen_draw(&st, &c);
		code = run_steps(&st, &c, config->keys, e);
	}
	if (!code)
		code = st.quit_by;
	if (!code && !st.quit)
		code = print_screen(&c, out, e);
	model_fini(&st);
	canvas_fini(&c);
	return code;
}
