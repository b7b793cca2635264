// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks as pstack, gdb and py-spy dump print them: a line for the thread, a line for each frame,
 * the innermost first.
 */
#include "ui/cli/cli.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/text.h"

#define SCHEMA 1

/* Return the state of /proc/PID/stat in words. */
static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "asleep";
	case 'D':
		return "disk";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'P':
		return "parked";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "unknown state";
	}
}

struct safe_text stacks_describe(const struct task_stack *s, char *buf, size_t size)
{
	const char *cut = s->result == TASK_STACKS_CUT	     ? "; callers unknown"
			  : s->result == TASK_STACKS_NONE    ? "; no user stack"
			  : s->result == TASK_STACKS_GUESSED ? "; partly guessed"
							     : "";
	char stop[48] = "";

	assert(buf && size);
	if (s->stop_ns)
		snprintf(stop, sizeof(stop), ", stopped for %.2f ms", (double)s->stop_ns / 1e6);
	return text_format(buf, size, "%s%s%s%s%s", state_word(s->state), stop, cut,
			   s->why[0] ? ": " : "", s->why);
}

/* A frame, as its line shows it. */
struct frame {
	const struct profile_function *function;
	struct safe_text file; /* "": not known */
	uint32_t line;
};

/* Get frame @i of stack @at. */
static struct frame frame_at(const struct profile *p, const struct profile_stack *at, uint32_t i)
{
	uint32_t index = p->frame_lines ? p->frame_lines[at->first + i] : PROFILE_NO_LINE;
	struct frame f = { &p->functions[p->frames[at->first + i]], TEXT(""), 0 };
	const struct profile_line *line = index < p->nr_lines ? &p->lines[index] : NULL;

	if (line && line->file < p->nr_files) {
		f.file = p->files[line->file];
		f.line = line->line;
	}
	return f;
}

static const struct profile_stack *stack_of(const struct task_stacks *t, const struct task_stack *s)
{
	return s->stack < t->profile->nr_stacks ? &t->profile->stacks[s->stack] : NULL;
}

static void print_kernel(FILE *out, const char *lines, uint32_t *nr)
{
	while (*lines) {
		size_t size = strcspn(lines, "\n");

		fprintf(out, "#%-3" PRIu32 " %.*s  [kernel]\n", (*nr)++, (int)size, lines);
		lines += size + (lines[size] == '\n');
	}
}

static void print_thread(FILE *out, const struct task_stacks *t, const struct task_stack *s)
{
	const struct profile_stack *at = stack_of(t, s);
	char how[256];
	uint32_t nr = 0;

	stacks_describe(s, how, sizeof(how));
	if (s->goroutine)
		fprintf(out, "\nGoroutine %" PRIu64 " (%s)\n", s->goroutine, how);
	else
		fprintf(out, "\nThread %d %s (%s)\n", (int)s->tid, s->comm.str, how);
	if (s->waits_for)
		fprintf(out, "It waits for %s\n", s->waits_for);
	print_kernel(out, s->kernel, &nr);
	for (uint32_t i = 0; at && i < at->nr; i++) {
		struct frame f = frame_at(t->profile, at, i);

		fprintf(out, "#%-3" PRIu32 " %s  %s", nr++, f.function->name.str,
			f.function->module.str);
		if (f.line)
			fprintf(out, "  %s:%" PRIu32, f.file.str, f.line);
		fprintf(out, "%s\n", f.function->inlined ? "  (inlined)" : "");
	}
	if (at && s->result == TASK_STACKS_CUT)
		fprintf(out, "#%-3" PRIu32 " [callers unknown]\n", nr);
}

/* Print why functions have no names, and the fix, once for each module. */
static void print_missing(FILE *out, const struct profile *p)
{
	for (uint32_t m = 0; m < p->nr_modules; m++)
		for (uint32_t i = 0; i < p->nr_functions; i++) {
			const struct profile_function *f = &p->functions[i];

			if (f->module_index != m || !f->reason || !*f->reason)
				continue;
			fprintf(out, "\n%s: names are missing: %s%s%s\n", f->module.str, f->reason,
				f->fix && *f->fix ? "; " : "", f->fix ? f->fix : "");
			break;
		}
}

static void print_text(FILE *out, const struct task_stacks *t)
{
	fprintf(out, "Process %d %s", (int)t->pid, t->comm.str);
	if (t->command.size)
		fprintf(out, ": %s", t->command.str);
	fprintf(out, "\n");
	for (uint32_t i = 0; i < t->nr; i++)
		print_thread(out, t, &t->list[i]);
	if (t->note[0])
		fprintf(out, "\n%s\n", t->note);
	print_missing(out, t->profile);
}

static json_t *text(struct safe_text t)
{
	return json_stringn(t.str, t.size);
}

static json_t *frames(const struct task_stacks *t, const struct task_stack *s)
{
	const struct profile_stack *at = stack_of(t, s);
	json_t *list = json_array();

	for (const char *line = s->kernel; *line;) {
		size_t size = strcspn(line, "\n");
		json_t *o = json_object();

		json_object_set_new(o, "symbol", json_stringn(line, size));
		json_object_set_new(o, "module", json_string("[kernel]"));
		json_array_append_new(list, o);
		line += size + (line[size] == '\n');
	}
	for (uint32_t i = 0; at && i < at->nr; i++) {
		struct frame f = frame_at(t->profile, at, i);
		json_t *o = json_object();

		json_object_set_new(o, "symbol", text(f.function->name));
		json_object_set_new(o, "module", text(f.function->module));
		if (f.line) {
			json_object_set_new(o, "file", text(f.file));
			json_object_set_new(o, "line", json_integer(f.line));
		}
		json_object_set_new(o, "inlined", json_boolean(f.function->inlined));
		json_array_append_new(list, o);
	}
	return list;
}

/* One object a thread and line. */
static void print_ndjson(FILE *out, const struct task_stacks *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct task_stack *s = &t->list[i];
		const char state[] = { s->state ? s->state : '?', '\0' };
		json_t *o = json_object();

		json_object_set_new(o, "schema", json_integer(SCHEMA));
		json_object_set_new(o, "type", json_string("stack"));
		json_object_set_new(o, "pid", json_integer(t->pid));
		if (s->goroutine)
			json_object_set_new(o, "goroutine", json_integer((json_int_t)s->goroutine));
		else
			json_object_set_new(o, "tid", json_integer(s->tid));
		json_object_set_new(o, "comm", text(s->comm));
		json_object_set_new(o, "state", json_string(state));
		json_object_set_new(o, "stack", json_string(task_stacks_state_name(s->result)));
		json_object_set_new(o, "why", json_string(s->why));
		if (s->waits_for)
			json_object_set_new(o, "waits_for", json_string(s->waits_for));
		json_object_set_new(o, "stopped_ms", json_real((double)s->stop_ns / 1e6));
		json_object_set_new(o, "frames", frames(t, s));
		json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
		fputc('\n', out);
		json_decref(o);
	}
}

void stacks_print(FILE *out, const struct task_stacks *t, bool ndjson)
{
	if (ndjson)
		print_ndjson(out, t);
	else
		print_text(out, t);
}
