// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The process drilled into, or the processes sampled, in one or two lines. The main thread; reads
 * the state.
 */
#include "ui/view/header_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/draw/pen.h"
#include "ui/text/format.h"
#include "ui/text/users.h"
#include "ui/view/common_columns.h"
#include "ui/fold/fold.h"
#include "ui/view/header_cpus.h"
#include "ui/view/times.h"
#include "ui/view/view.h"

/* Sums of the shown samples of the window. */
struct sums {
	double count, weight, kernel, cpu_ns;
	uint32_t nr_tasks, nr_processes;
};

static struct sums sums_of(const struct ui_state *st)
{
	const struct fold_task *tasks = folds_tasks(st);
	uint8_t *seen = calloc(st->shown->nr_processes + 1ULL, 1);
	double *cpu = malloc((st->shown->nr_processes + 1ULL) * sizeof(*cpu));
	struct sums sums = { .nr_tasks = 0 };
	struct fold_filter f;

	if (!tasks || !seen || !cpu || !view_filter(st, &f))
		goto out;
	sums.cpu_ns = fold_cpu(st->shown, &f, cpu);
	for (uint32_t i = 0; i < st->shown->nr_tasks; i++) {
		if (!(tasks[i].count > 0) || !fold_passes_task(st->shown, &f, i))
			continue;
		sums.count += tasks[i].count;
		sums.weight += tasks[i].weight;
		sums.kernel += tasks[i].kernel;
		sums.nr_tasks++;
		sums.nr_processes += !seen[st->shown->tasks[i].process];
		seen[st->shown->tasks[i].process] = 1;
	}
out:
	free(seen);
	free(cpu);
	return sums;
}

/* Draw the command line, cut to leave space for user, cgroup and age. */
static void draw_who(const struct ui_state *st, struct canvas *c, unsigned int row,
		     const struct profile_process *p)
{
	struct pen pen = { c, row, 1, c->cols };
	char up[48], name[64], clock[FORMAT_MAX];
	struct safe_text age =
		!p->up_ns ? TEXT("")
			  : text_format(up, sizeof(up), "up %s", format_clock(clock, p->up_ns).str);
	struct safe_text user = users_name(st->config->users, p->uid, name, sizeof(name));
	struct safe_text group = p->container.size ? p->container : p->cgroup;
	unsigned int rest = age.width + user.width + 10u;

	if (c->cols >= 100 && group.size)
		rest += MIN(group.width, c->cols / 3) + 10u;
	if (c->cols > rest + 10)
		pen.col += canvas_elide(c, row, pen.col, c->cols - rest,
					p->command.size ? p->command : p->comm,
					(struct style){ ROLE_VALUE, 0 });
	pen_value(&pen, 3, TEXT("user"), user, ROLE_NORMAL);
	if (c->cols >= 100 && group.size && pen.col + 12 < pen.end) {
		pen_text(&pen, 3, TEXT("cgroup"), ROLE_DIM);
		pen.col += 1 + canvas_elide(c, row, pen.col + 1,
					    MIN(pen.end - pen.col, c->cols / 3), group,
					    (struct style){ ROLE_NORMAL, 0 });
	}
	pen_text(&pen, 3, age, ROLE_NORMAL);
}

void header_process_sums(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	const struct sums sums = sums_of(st);
	struct pen pen = { c, row, 1, c->cols };
	unsigned int gap = c->cols < 100 ? 2 : 3;
	char buf[FORMAT_MAX], span[FORMAT_MAX], text[64];
	bool waits = ui_state_waits(st, st->shown);
	struct safe_text cpu;

	if (waits) {
		times_draw_total(st, &pen, 0);
	} else {
		cpu = common_cpu(st, sums.cpu_ns, sums.weight, buf);
		pen_value(&pen, 0,
			  ui_state_latency(st, st->shown) ? TEXT("Wall")
			  : common_by_samples_alone(st)	  ? TEXT("~CPU")
							  : TEXT("CPU"),
			  *cpu.str == '-' ? cpu : text_format(text, sizeof(text), "%s%%", cpu.str),
			  ROLE_VALUE);
	}
	if (!sums.nr_tasks)
		return;
	if (sums.nr_processes > 1)
		pen_value(&pen, gap, TEXT("Processes"), format_count(buf, sums.nr_processes),
			  ROLE_VALUE);
	pen_value(&pen, gap, TEXT("Threads"), format_count(buf, sums.nr_tasks), ROLE_VALUE);
	if (c->cols >= 100)
		pen_text(&pen, 1, TEXT("with samples"), ROLE_DIM);
	pen_value(&pen, gap, TEXT("Samples"), format_count(buf, sums.count), ROLE_VALUE);
	if (st->shown->window_ns)
		pen_text(&pen, 1,
			 text_format(text, sizeof(text), "in %s",
				     format_span(span, st->shown->window_ns).str),
			 ROLE_DIM);
	if (waits)
		times_draw_kinds(st, &pen, gap);
	if (!(sums.weight > 0) || waits)
		return;
	pen_value(&pen, gap, TEXT("user code"), format_share(buf, 1 - sums.kernel / sums.weight),
		  ROLE_VALUE);
	pen_value(&pen, 1, TEXT("kernel"), format_share(buf, sums.kernel / sums.weight),
		  ROLE_VALUE);
}

/* Find the one process that is shown: drilled into or sampled alone. UINT32_MAX: none or several.
 */
static uint32_t process_alone(const struct ui_state *st)
{
	if (view_scope(st) != VIEW_ALL)
		return ui_state_process(st, st->shown);
	return st->shown->nr_processes == 1 ? 0 : UINT32_MAX;
}

unsigned int header_process(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	uint32_t alone = st->shown ? process_alone(st) : UINT32_MAX;
	/* Of the system the lines of the CPUs say more. */
	bool drilled = view_scope(st) != VIEW_ALL;
	bool target = st->shown && !st->config->replayed && !drilled &&
		      strcmp(st->shown->target, "system") != 0;

	if (!target && (!drilled || (alone == UINT32_MAX && !st->scope.group[0])))
		return 0;
	/* The breadcrumb has the name. */
	if (c->rows < HEADER_TALL || alone == UINT32_MAX) {
		header_process_sums(st, c, row);
		return 1;
	}
	draw_who(st, c, row, &st->shown->processes[alone]);
	header_process_sums(st, c, row + 1);
	return 2;
}
