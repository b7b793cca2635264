// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An export: folded stacks, flame graphs as pictures and pages; the table of all formats; an export
 * as file work.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

/*
 * The stacks of a snapshot merged into a tree, for flame graphs: all, then processes by name, then
 * functions.
 */

#define TREE_NONE UINT32_MAX

/* A node; children are after their parent, and in order of their weight. */
struct tree_node {
	uint32_t function; /* index in functions; TREE_NONE: the root, or a process */
	uint32_t process;  /* index in processes: the first of that name; TREE_NONE: a function */
	uint32_t parent, child, next;
	uint32_t depth; /* of the root: 0 */
	double self, total;
};

struct tree {
	struct tree_node *nodes;
	uint32_t nr_nodes;
	uint32_t depth; /* the largest */
};

struct tree_making {
	const struct snapshot *s;
	struct tree *t;
	struct dense nodes; /* (parent, function or process) -> node - 1 */
	uint32_t capacity;
	uint32_t *same; /* by process: the first process of that name */
};

/* Return the node below @parent for @key: a function, or (from nr_functions on) a process. */
static uint32_t node_of(struct tree_making *m, uint32_t parent, uint32_t key)
{
	uint32_t nr_functions = m->s->profile->nr_functions, n;
	struct tree *t = m->t;
	struct tree_node *nodes;
	bool is_new;

	assert(parent < t->nr_nodes);
	n = dense_add(&m->nodes, (uint64_t)parent << 32 | key, &is_new);
	if (n == DENSE_NONE || !is_new)
		return n == DENSE_NONE ? TREE_NONE : n + 1;
	if (n + 1 >= m->capacity) {
		nodes = reallocarray(t->nodes, m->capacity * 2ULL, sizeof(*nodes));
		if (!nodes)
			return TREE_NONE;
		t->nodes = nodes;
		m->capacity *= 2;
	}
	t->nodes[n + 1] = (struct tree_node){
		.function = key < nr_functions ? key : TREE_NONE,
		.process = key < nr_functions ? TREE_NONE : key - nr_functions,
		.parent = parent,
		.child = TREE_NONE,
		.next = TREE_NONE,
		.depth = t->nodes[parent].depth + 1,
	};
	t->nr_nodes = n + 2;
	t->depth = MAX(t->depth, t->nodes[n + 1].depth);
	return n + 1;
}

static int tree_add_stack(struct tree_making *m, const struct snapshot_stack *stack)
{
	const struct snapshot *s = m->s;
	uint32_t process = s->profile->tasks[stack->task].process;
	uint32_t n = node_of(m, 0, s->profile->nr_functions + m->same[process]);

	for (uint32_t k = 0; n != TREE_NONE; k++) {
		m->t->nodes[n].total += stack->weight;
		if (k == stack->nr)
			break;
		n = node_of(m, n, s->frames[s->calls[stack->first + k]].function);
	}
	if (n == TREE_NONE)
		return -ENOMEM;
	m->t->nodes[n].self += stack->weight;
	m->t->nodes[0].total += stack->weight;
	return 0;
}

struct named {
	struct safe_text comm;
	uint32_t process;
};

static int compare_named(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = strcmp(a->comm.str, b->comm.str);

	return c ? c : COMPARE(a->process, b->process);
}

/* Find the processes of the same name. */
static int find_same(struct tree_making *m)
{
	const struct profile *p = m->s->profile;
	struct named *all = calloc(p->nr_processes + 1ULL, sizeof(*all));

	m->same = calloc(p->nr_processes + 1ULL, sizeof(*m->same));
	if (!all || !m->same) {
		free(all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		all[i] = (struct named){ profile_process_name(&p->processes[i]), i };
	qsort(all, p->nr_processes, sizeof(*all), compare_named);
	for (uint32_t i = 0, first = 0; i < p->nr_processes; i++) {
		if (strcmp(all[i].comm.str, all[first].comm.str))
			first = i;
		m->same[all[i].process] = all[first].process;
	}
	free(all);
	return 0;
}

struct sibling {
	double total;
	uint32_t parent, node;
};

static int compare_siblings(const void *pa, const void *pb)
{
	const struct sibling *a = pa, *b = pb;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return COMPARE(a->node, b->node);
}

/* Link the children of each node in order of their weight. */
static int link_children(struct tree *t)
{
	struct sibling *all = calloc(t->nr_nodes, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->nr_nodes; i++)
		all[i - 1] = (struct sibling){ t->nodes[i].total, t->nodes[i].parent, i };
	qsort(all, t->nr_nodes - 1, sizeof(*all), compare_siblings);
	for (uint32_t i = t->nr_nodes - 1; i-- > 0;) {
		struct tree_node *parent = &t->nodes[all[i].parent];

		t->nodes[all[i].node].next = parent->child;
		parent->child = all[i].node;
	}
	free(all);
	return 0;
}

static void tree_fini(struct tree *t)
{
	free(t->nodes);
	*t = (struct tree){ 0 };
}

/* Return 0 or -ENOMEM. */
static int tree_make(struct tree *t, const struct snapshot *s)
{
	struct tree_making m = { .s = s, .t = t, .capacity = 1024 };
	int code;

	*t = (struct tree){ .nodes = calloc(m.capacity, sizeof(*t->nodes)), .nr_nodes = 1 };
	code = t->nodes ? find_same(&m) : -ENOMEM;
	if (t->nodes)
		t->nodes[0] = (struct tree_node){ TREE_NONE, TREE_NONE, TREE_NONE, TREE_NONE,
						  TREE_NONE, 0,		0,	   0 };
	for (uint32_t i = 0; i < s->nr_stacks && !code; i++)
		code = tree_add_stack(&m, &s->stacks[i]);
	if (!code)
		code = link_children(t);
	dense_fini(&m.nodes);
	free(m.same);
	if (code)
		tree_fini(t);
	return code;
}

/* Return the text of a node. */
static struct safe_text tree_text(const struct snapshot *s, const struct tree_node *node)
{
	if (node->function != TREE_NONE)
		return s->profile->functions[node->function].name;
	return node->process == TREE_NONE
		       ? TEXT("all")
		       : profile_process_name(&s->profile->processes[node->process]);
}

/*
 * The difference of a tree from that of another profile: nodes with the same names on their path.
 */

struct tree_paths {
	struct dense names; /* hash of a name */
	struct dense paths; /* (path of the parent + 1, name) */
	double *sums[2];    /* by path: weight in the baseline, now */
	uint32_t capacity;
};

static uint64_t name_hash(const struct snapshot *s, const struct tree_node *node)
{
	const struct profile_function *fn;
	struct safe_text name = tree_text(s, node);
	uint64_t h = hash_u64(keyhash_name(name.str, name.str ? name.size : 0));

	if (node->function == TREE_NONE)
		return h + (node->process == TREE_NONE);
	fn = &s->profile->functions[node->function];
	return hash_u64(h + 2 + fn->inlined) +
	       keyhash_name(fn->module.str, fn->module.str ? fn->module.size : 0);
}

/* Add the weights of a tree to the sums @which; @of: the path of each node. 0 or -ENOMEM. */
static int add_paths(struct tree_paths *x, const struct snapshot *s, const struct tree *t,
		     int which, uint32_t *of)
{
	for (uint32_t i = 0; i < t->nr_nodes; i++) {
		const struct tree_node *node = &t->nodes[i];
		bool is_new;
		uint32_t name = dense_add(&x->names, name_hash(s, node), &is_new);
		uint64_t parent = i ? of[node->parent] + 1ull : 0;

		of[i] = dense_add(&x->paths, parent << 32 | name, &is_new);
		if (name == DENSE_NONE || of[i] == DENSE_NONE)
			return -ENOMEM;
		assert(of[i] < x->capacity);
		x->sums[which][of[i]] += node->total;
	}
	return 0;
}

/* Choose the tasks of the baseline: of processes with the names of the shown ones; NULL: all. */
static uint8_t *tasks_like(const struct snapshot *s, bool *failed)
{
	const struct profile *p = s->profile, *b = s->scope.baseline;
	const struct fold_filter *f = &s->scope.filter;
	struct dense names = { .nr = 0 };
	uint8_t *tasks = NULL;
	struct safe_text name;
	bool is_new;

	*failed = false;
	if (f->process == UINT32_MAX && f->task == UINT32_MAX && !f->tasks)
		return NULL;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		if (s->has_process[i]) {
			name = profile_process_name(&p->processes[i]);
			dense_add(&names, keyhash_name(name.str, name.size), &is_new);
		}
	tasks = calloc(b->nr_tasks + 1ull, 1);
	for (uint32_t i = 0; tasks && i < b->nr_tasks; i++) {
		uint32_t nr = names.nr;

		if (b->tasks[i].process >= b->nr_processes)
			continue;
		name = profile_process_name(&b->processes[b->tasks[i].process]);
		tasks[i] = dense_add(&names, keyhash_name(name.str, name.size), &is_new) < nr;
	}
	*failed = !tasks;
	dense_fini(&names);
	return tasks;
}

/*
 * Make the snapshot of the baseline with the scope of @s. 0, -ENOMEM, or -ENOENT: the baseline has
 * not the event.
 */
static int baseline_make(struct snapshot *old, const struct snapshot *s)
{
	const struct profile *b = s->scope.baseline;
	struct snapshot_scope scope = s->scope;
	uint32_t event = 0;
	uint8_t *tasks;
	bool failed;
	int code;

	*old = (struct snapshot){ .profile = NULL };
	while (event < b->nr_events &&
	       strcmp(b->events[event].event.name, s->event->event.name) != 0)
		event++;
	if (event == b->nr_events)
		return -ENOENT;
	tasks = tasks_like(s, &failed);
	if (failed)
		return -ENOMEM;
	scope.baseline = NULL;
	scope.module = UINT32_MAX;
	scope.filter.process = scope.filter.task = UINT32_MAX;
	scope.filter.tasks = tasks;
	scope.filter.event = event;
	code = snapshot_make(old, b, &scope, false);
	old->scope.filter.tasks = NULL;
	free(tasks);
	return code;
}

/* Set the differences of shares, by node: of sure ones; others are 0. */
static void set_changes(const struct tree_paths *x, const struct snapshot *s,
			const struct snapshot *old, const struct tree *t, const uint32_t *of,
			double *changes)
{
	double n0 = old->all_count, n1 = s->all_count;

	for (uint32_t i = 0; i < t->nr_nodes; i++) {
		double before = x->sums[0][of[i]] / MAX(old->all_weight, 1);
		double now = x->sums[1][of[i]] / MAX(s->all_weight, 1);

		changes[i] = text_shares_differ(before * n0, n0, now * n1, n1) ? now - before : 0;
	}
}

/* Set *@changes to the change of each node; without a baseline to NULL. 0 or -errno. */
static int tree_changes(double **changes, const struct snapshot *s, const struct tree *t)
{
	struct tree_paths x = { .capacity = 0 };
	struct tree before = { .nodes = NULL };
	uint32_t *of = NULL, *of_old = NULL;
	struct snapshot old;
	int code;

	*changes = NULL;
	if (!s->scope.baseline)
		return 0;
	code = baseline_make(&old, s);
	if (!code)
		code = tree_make(&before, &old);
	if (!code) {
		x.capacity = before.nr_nodes + t->nr_nodes;
		for (int i = 0; i < 2; i++)
			x.sums[i] = calloc(x.capacity, sizeof(double));
		of = calloc(t->nr_nodes, sizeof(*of));
		of_old = calloc(before.nr_nodes, sizeof(*of_old));
		*changes = calloc(t->nr_nodes, sizeof(**changes));
		if (!x.sums[0] || !x.sums[1] || !of || !of_old || !*changes ||
		    add_paths(&x, &old, &before, 0, of_old) || add_paths(&x, s, t, 1, of))
			code = -ENOMEM;
		else
			set_changes(&x, s, &old, t, of, *changes);
		tree_fini(&before);
	}
	snapshot_fini(&old);
	dense_fini(&x.names);
	dense_fini(&x.paths);
	free(x.sums[0]);
	free(x.sums[1]);
	free(of);
	free(of_old);
	return code;
}

/* Return the class of a node: "k", "u", "j", "i" inlined, "s" script, "p" process, "q" unknown. */
static char tree_class(const struct snapshot *s, const struct tree_node *node)
{
	const struct profile_function *fn;

	if (node->function == TREE_NONE)
		return 'p';
	fn = &s->profile->functions[node->function];
	if (fn->kernel || fn->kind == 'k')
		return 'k';
	if (fn->inlined)
		return 'i';
	if (profile_language_name(fn->kind))
		return 's';
	return fn->kind == 'u' || fn->kind == 'j' ? fn->kind : 'q';
}

/*
 * Pages and pictures of flame graphs (page.html with the data as JSON in it, SVG), folded stacks;
 * text of XML and HTML.
 */

/*
 * The escaper of XML and HTML: for text and quoted attributes.
 *
 * Any thread.
 *
 * Text of XML and HTML.
 */

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void put(struct out *o, const char *text, size_t size)
{
	size_t from = 0;

	for (size_t i = 0; i < size; i++) {
		const char *name = entity(text[i]);

		if (!name)
			continue;
		out_bytes(o, text + from, i - from);
		out_text(o, name);
		from = i + 1;
	}
	out_bytes(o, text + from, size - from);
}

static void markup_put(struct out *o, struct safe_text t)
{
	put(o, t.str, t.size);
}

/* Add at most @cols cells of @t, the last ones ".." if it is longer. */
static void markup_put_clipped(struct out *o, struct safe_text t, unsigned int cols)
{
	unsigned int width;

	if (t.width <= cols) {
		put(o, t.str, t.size);
	} else if (cols >= 3) {
		put(o, t.str, text_clip(t, cols - 2, &width));
		out_text(o, "..");
	}
}

/* clang-format off */
__asm__(".section .rodata\n"
	"html_page:\n.incbin \"ui/export/page.html\"\n.byte 0\n"
	".previous\n");

/* clang-format on */
extern const char html_page[] __attribute__((visibility("hidden")));

#define TITLE "@TITLE@"
#define DATA  "@DATA@"

/* Names, modules and kinds of functions; processes follow. */
static void put_names(struct out *o, const struct snapshot *s)
{
	const struct profile *p = s->profile;

	out_text(o, "\"names\":[");
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		out_text(o, i ? "," : "");
		json_put(o, snapshot_name(s, i));
	}
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		out_text(o, p->nr_functions + i ? "," : "");
		json_put(o, snapshot_comm(s, i));
	}
	out_text(o, "],\n\"modules\":[");
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		out_text(o, i ? "," : "");
		json_put(o, snapshot_module_of(s, i));
	}
	out_text(o, "],\n\"kinds\":\"");
	for (uint32_t i = 0; i < p->nr_functions; i++)
		out_format(o, "%c", tree_class(s, &(struct tree_node){ .function = i }));
	for (uint32_t i = 0; i < p->nr_processes; i++)
		out_text(o, "p");
	out_text(o, "\"");
}

static void put_facts(struct out *o, const struct snapshot *s)
{
	struct fact facts[FACTS_MAX];
	uint32_t nr = facts_make(s, facts);
	char title[512];

	out_text(o, "{\"title\":");
	json_put(o, facts_title(s, title));
	out_text(o, ",\"facts\":[");
	for (uint32_t i = 0; i < nr; i++) {
		out_format(o, "%s[\"%s\",", i ? "," : "", facts[i].name);
		json_put(o, text_format(title, sizeof(title), "%s", facts[i].text));
		out_format(o, ",%s]", facts[i].bad ? "true" : "false");
	}
	out_text(o, "],\"unit\":");
	json_put(o, s->unit);
	out_text(o, ",\"type\":");
	json_put(o, s->type);
	out_text(o, ",\"all\":");
	out_number(o, s->all_weight, 3);
	out_text(o, ",\n");
}

static void put_rows(struct out *o, const struct snapshot *s)
{
	out_text(o, ",\n\"rows\":[");
	for (uint32_t i = 0; i < s->nr_rows; i++) {
		out_format(o, "%s[%u,", i ? "," : "", s->rows[i].function);
		out_number(o, s->rows[i].self, 3);
		out_text(o, ",");
		out_number(o, s->rows[i].total, 3);
		out_text(o, "]");
	}
	out_text(o, "]");
}

/* List the nodes in preorder. */
static uint32_t *order_of(const struct tree *t)
{
	uint32_t *order = calloc(t->nr_nodes + 1ULL, sizeof(*order)), n = 0;

	for (uint32_t i = 0; order && i < t->nr_nodes; i++) {
		order[i] = n;
		if (t->nodes[n].child != TREE_NONE) {
			n = t->nodes[n].child;
			continue;
		}
		while (n && t->nodes[n].next == TREE_NONE)
			n = t->nodes[n].parent;
		n = n ? t->nodes[n].next : 0;
	}
	return order;
}

static int put_tree(struct out *o, const struct snapshot *s)
{
	double *changes;
	uint32_t *order;
	struct tree t;
	int code;

	if (tree_make(&t, s))
		return -ENOMEM;
	code = tree_changes(&changes, s, &t);
	order = order_of(&t);
	out_text(o, ",\n\"tree\":{\"key\":[");
	for (uint32_t i = 0; order && i < t.nr_nodes; i++) {
		const struct tree_node *node = &t.nodes[order[i]];

		out_text(o, i ? "," : "");
		if (node->function != TREE_NONE)
			out_format(o, "%u", node->function);
		else if (node->process != TREE_NONE)
			out_format(o, "%u", s->profile->nr_functions + node->process);
		else
			out_text(o, "-1");
		out_progress(o, i, t.nr_nodes);
	}
	out_text(o, "],\n\"depth\":[");
	for (uint32_t i = 0; order && i < t.nr_nodes; i++)
		out_format(o, i ? ",%u" : "%u", t.nodes[order[i]].depth);
	out_text(o, "],\n\"total\":[");
	for (uint32_t i = 0; order && i < t.nr_nodes; i++) {
		out_text(o, i ? "," : "");
		out_number(o, t.nodes[order[i]].total, 3);
	}
	out_text(o, "]");
	for (uint32_t i = 0; order && changes && i < t.nr_nodes; i++) {
		out_text(o, i ? "," : ",\n\"change\":[");
		out_number(o, 100 * changes[order[i]], 3);
	}
	out_text(o, changes ? "]}}" : "}}");
	o->failed |= !order;
	free(changes);
	free(order);
	tree_fini(&t);
	return code;
}

/* A page with flame graph, functions and account; needs no network. */
static int html_write(struct out *o, const struct snapshot *s)
{
	const char *title = strstr(html_page, TITLE), *data = strstr(html_page, DATA);
	char buf[512];
	int code;

	out_bytes(o, html_page, (size_t)(title - html_page));
	markup_put(o, facts_title(s, buf));
	title += strlen(TITLE);
	out_bytes(o, title, (size_t)(data - title));
	put_facts(o, s);
	put_names(o, s);
	put_rows(o, s);
	code = put_tree(o, s);
	out_text(o, data + strlen(DATA));
	return code ? code : o->failed ? -ENOMEM : 0;
}

/*
 * A flame graph as SVG, without scripts: text in boxes, the rest in tooltips. Dark and light.
 */

#define WIDTH	  1200.0
#define MARGIN	  10.0
#define ROW	  17
#define TITLES	  56  /* height of both */
#define CELL	  7.0 /* width of a character */
#define NARROWEST 0.2 /* boxes below are left out */

static const char style[] = "<style>"
			    ".b{fill:#fff}"
			    "text{font:11px monospace;fill:#1b1b1b}"
			    "text.t{font:bold 15px sans-serif}text.d{font:12px sans-serif}"
			    "rect{stroke:#fff;stroke-width:.5}"
			    ".u{fill:#f4b860}.k{fill:#e58a6b}.i{fill:#f0d493}.j{fill:#a3cf83}.s{"
			    "fill:#9cc2ea}"
			    ".p{fill:#cfcfd6}.q{fill:#bdbdbd}"
			    ".m1{fill:#f7cfc8}.m2{fill:#f1998c}.m3{fill:#e5604f}"
			    ".l1{fill:#cfdff5}.l2{fill:#98bdec}.l3{fill:#5f9be0}"
			    "@media(prefers-color-scheme:dark){.b{fill:#16181d}"
			    "text.t,text.d{fill:#e6e6e6}rect{stroke:#16181d}"
			    ".u{fill:#d39a44}.k{fill:#c76f51}.i{fill:#c9ab62}.j{fill:#7fae5e}.s{"
			    "fill:#6f9fd0}"
			    ".p{fill:#8d8f99}.q{fill:#83858c}}"
			    "</style>\n";

struct drawing {
	struct out *o;
	const struct snapshot *s;
	const struct tree *t;
	const double *changes; /* by node; NULL: no baseline */
	double base;	       /* weight of the whole width */
	double all;	       /* of shares: with samples that the filter leaves out */
	double height;
};

/* Return the class of a box: its kind, or how much its share has changed: three steps. */
static const char *box_class(const struct drawing *d, const struct tree_node *node,
			     char buf[static 4])
{
	double change = d->changes ? d->changes[node - d->t->nodes] : 0;
	double size = fabs(change);

	if (!d->changes)
		snprintf(buf, 4, "%c", tree_class(d->s, node));
	else if (!(size > 0))
		return "p";
	else
		snprintf(buf, 4, "%c%d", change > 0 ? 'm' : 'l',
			 size >= 0.1	? 3
			 : size >= 0.02 ? 2
					: 1);
	return buf;
}

static void put_box(const struct drawing *d, const struct tree_node *node, double left)
{
	double change = d->changes ? 100 * d->changes[node - d->t->nodes] : 0;
	double width = node->total / d->base * (WIDTH - 2 * MARGIN);
	double y = d->height - MARGIN - (node->depth + 1.0) * ROW;
	struct safe_text name = tree_text(d->s, node);
	char changed[TEXT_MAX], class[4];
	struct out *o = d->o;

	out_text(o, "<g><title>");
	markup_put(o, name);
	if (node->function != TREE_NONE) {
		out_text(o, " (");
		markup_put(o, d->s->profile->functions[node->function].module);
		out_text(o, ")");
	}
	out_format(o, " %.2f%%, self %.2f%%", 100 * node->total / d->all,
		   100 * node->self / d->all);
	if (change < 0 || change > 0)
		out_format(o, ", %+.2f", change);
	out_format(o,
		   "</title><rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
		   "rx=\"1\"/>",
		   box_class(d, node, class), MARGIN + left, y, width, ROW - 1);
	if (change < 0 || change > 0)
		name = text_format(changed, sizeof(changed), "%+.1f %s", change, name.str);
	if (width > 3 * CELL) {
		out_format(o, "<text x=\"%.2f\" y=\"%.0f\">", MARGIN + left + 3, y + 12);
		markup_put_clipped(o, name, (unsigned int)((width - 6) / CELL));
		out_text(o, "</text>");
	}
	out_text(o, "</g>\n");
}

/* Draw all boxes that can be seen, from the root on. */
static void put_boxes(const struct drawing *d)
{
	double left = 0, scale = (WIDTH - 2 * MARGIN) / d->base;
	uint32_t n = 0, nr = 0;

	for (;;) {
		const struct tree_node *node = &d->t->nodes[n];
		bool seen = node->total * scale >= NARROWEST;

		if (seen) {
			put_box(d, node, left);
			out_progress(d->o, nr++, d->t->nr_nodes);
		}
		if (seen && node->child != TREE_NONE) {
			n = node->child;
			continue;
		}
		/* Children are beside each other, from the left edge of their parent. */
		left += node->total * scale;
		while (n && d->t->nodes[n].next == TREE_NONE) {
			uint32_t parent = d->t->nodes[n].parent;
			double children = 0;

			for (uint32_t c = d->t->nodes[parent].child; c != TREE_NONE;
			     c = d->t->nodes[c].next)
				children += d->t->nodes[c].total;
			left += (d->t->nodes[parent].total - children) * scale;
			n = parent;
		}
		if (!n)
			return;
		n = d->t->nodes[n].next;
	}
}

static void put_head(const struct drawing *d)
{
	struct fact facts[FACTS_MAX];
	uint32_t nr = facts_make(d->s, facts);
	struct out *o = d->o;
	char title[512];

	out_format(o,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		   "viewBox=\"0 0 %.0f %.0f\">\n<title>",
		   WIDTH, d->height, WIDTH, d->height);
	markup_put(o, facts_title(d->s, title));
	out_text(o, "</title>\n<desc>");
	for (uint32_t i = 0; i < nr; i++) {
		out_format(o, "%s: ", facts[i].name);
		markup_put(o, text_format(title, sizeof(title), "%s", facts[i].text));
		out_text(o, "\n");
	}
	out_text(o, "</desc>\n");
	out_text(o, style);
	/* Not all viewers know a background in the style. */
	out_text(o, "<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n");
	out_format(o, "<text class=\"t\" x=\"%.0f\" y=\"24\">", MARGIN);
	markup_put_clipped(o, facts_title(d->s, title), 130);
	out_format(o, "</text>\n<text class=\"d\" x=\"%.0f\" y=\"44\">", MARGIN);
	markup_put_clipped(o,
			   text_format(title, sizeof(title),
				       "%s%.0f samples; taken %llu, guessed %llu, broken %llu, "
				       "lost "
				       "%llu since the start; proftop " PROFTOP_VERSION,
				       d->changes ? "red: + more, blue: - less; " : "", d->s->count,
				       (unsigned long long)d->s->profile->account_total.taken,
				       (unsigned long long)d->s->profile->account_total.guessed,
				       (unsigned long long)d->s->profile->account_total.broken,
				       (unsigned long long)d->s->profile->account_total.lost),
			   160);
	out_text(o, "</text>\n");
}

/* A flame graph, without scripts. */
static int svg_write(struct out *o, const struct snapshot *s)
{
	struct tree t;
	struct drawing d = { .o = o, .s = s, .t = &t };
	int code = tree_make(&t, s);
	double *changes;

	if (code)
		return code;
	code = tree_changes(&changes, s, &t);
	d.changes = changes;
	d.base = t.nodes[0].total > 0 ? t.nodes[0].total : 1;
	d.all = s->all_weight > 0 ? s->all_weight : 1;
	d.height = TITLES + (t.depth + 1.0) * ROW + 2 * MARGIN;
	put_head(&d);
	put_boxes(&d);
	out_text(o, "</svg>\n");
	free(changes);
	tree_fini(&t);
	return code ? code : o->failed ? -ENOMEM : 0;
}

/*
 * Folded stacks, as FlameGraph's stackcollapse-perf.pl writes them: suffixes _[k] kernel, _[j]
 * code of a JIT, _[i] inlined.
 */

/* Add a name; the format has no quotes: separators are replaced. */
static void put_name(struct out *o, struct safe_text t, bool last)
{
	size_t from = 0, digits = t.size;

	/* A number behind a blank would be read as a second count, also "1.5". */
	while (digits &&
	       (t.str[digits - 1] == '.' || (unsigned char)(t.str[digits - 1] - '0') <= 9))
		digits--;
	for (size_t i = 0; i < t.size; i++) {
		bool blank = t.str[i] == ' ' &&
			     (!i || i + 1 == t.size || (last && i + 1 == digits));

		if (t.str[i] != ';' && !blank)
			continue;
		out_bytes(o, t.str + from, i - from);
		out_text(o, blank ? "_" : ":");
		from = i + 1;
	}
	out_bytes(o, t.str + from, t.size - from);
	if (!t.size)
		out_text(o, "?");
}

static void put_frame(struct out *o, const struct profile_function *fn, bool last)
{
	out_text(o, ";");
	put_name(o, fn->name, last);
	out_text(o, fn->kind == 'k'   ? "_[k]"
		    : fn->kind == 'j' ? "_[j]"
		    : fn->inlined     ? "_[i]"
				      : "");
}

/* A line without its count, in the text of all. */
struct folded_line {
	size_t at, size;
	double weights[2]; /* of the baseline, now */
};

struct folded {
	struct out texts;
	struct folded_line *lines;
	uint32_t nr;
	bool compared;
};

static int compare_lines(const void *a, const void *b, void *texts)
{
	const struct folded_line *x = a, *y = b;
	const char *text = texts;
	int order = memcmp(text + x->at, text + y->at, MIN(x->size, y->size));

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Stacks of several threads, or of other lines and places of the same functions, are one line. */
static void put_sums(struct out *o, struct folded *f)
{
	const struct folded_line *lines = f->lines;
	double rest[2] = { 0, 0 };

	if (f->nr)
		qsort_r(f->lines, f->nr, sizeof(*lines), compare_lines, f->texts.data);
	for (uint32_t i = 0, next = 0; i < f->nr; i = next) {
		double weights[2] = { 0, 0 };
		long long before, now;

		for (; next < f->nr && !compare_lines(&lines[i], &lines[next], f->texts.data);
		     next++)
			for (int side = 0; side < 2; side++)
				weights[side] += lines[next].weights[side];
		before = snapshot_whole(weights[0], &rest[0]);
		now = snapshot_whole(weights[1], &rest[1]);
		if (!before && !now)
			continue;
		out_bytes(o, f->texts.data + lines[i].at, lines[i].size);
		if (f->compared)
			out_format(o, " %lld", before);
		out_format(o, " %lld\n", now);
	}
}

/* Add the stacks of @s, with weights of the side @side times @scale. */
static void add_lines(struct out *o, struct folded *f, const struct snapshot *s, int side,
		      double scale)
{
	struct out *texts = &f->texts;

	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		const struct profile_process *process = snapshot_process_of(s, stack->task);
		struct folded_line *line = &f->lines[f->nr++];

		*line = (struct folded_line){ .at = texts->size };
		line->weights[side] = stack->weight * scale;
		put_name(texts, process ? profile_process_name(process) : TEXT("?"), !stack->nr);
		for (uint32_t k = 0; k < stack->nr; k++)
			put_frame(texts, snapshot_function(s, s->calls[stack->first + k]),
				  k + 1 == stack->nr);
		line->size = texts->size - line->at;
		out_progress(o, i, s->nr_stacks);
	}
}

/*
 * Beside a baseline two counts, as difffolded.pl -n writes them for flamegraph.pl: before and now,
 * with the one before scaled to the same sum.
 */
static int folded_write(struct out *o, const struct snapshot *s)
{
	struct folded f = { .texts = { .max = o->max }, .compared = s->scope.baseline != NULL };
	struct snapshot old = { .profile = NULL };
	int code = f.compared ? baseline_make(&old, s) : 0;

	if (!code) {
		f.lines = calloc(1ull + s->nr_stacks + old.nr_stacks, sizeof(*f.lines));
		code = f.lines ? 0 : -ENOMEM;
	}
	if (!code) {
		if (old.all_weight > 0)
			add_lines(o, &f, &old, 0, s->all_weight / old.all_weight);
		add_lines(o, &f, s, 1, 1);
		o->failed |= f.texts.failed;
		if (!o->failed)
			put_sums(o, &f);
	}
	snapshot_fini(&old);
	out_fini(&f.texts);
	free(f.lines);
	return code ? code : o->failed ? -ENOMEM : 0;
}

static const struct format {
	const char *name;
	const char *endings[3]; /* the first is the usual one */
	const char *help;
	int (*write)(struct out *o, const struct snapshot *s);
	batch_sink_fn sink; /* instead: a format of the batch output */
} formats[EXPORT_NR] = {
	[EXPORT_HTML] = { "html",
			  { ".html", ".htm" },
			  "page with flame graph, functions and account",
			  html_write,
			  NULL },
	[EXPORT_SVG] = { "svg", { ".svg" }, "flame graph as a picture", svg_write, NULL },
	[EXPORT_PPROF] = { "pprof",
			   { ".pb.gz", ".pprof" },
			   "for go tool pprof, Pyroscope, Parca",
			   pprof_write,
			   NULL },
	[EXPORT_SPEEDSCOPE] = { "speedscope",
				{ ".speedscope.json" },
				"for speedscope.app",
				speedscope_write,
				NULL },
	[EXPORT_FIREFOX] = { "firefox",
			     { ".firefox.json" },
			     "for profiler.firefox.com, Perfetto",
			     firefox_write,
			     NULL },
	[EXPORT_FOLDED] = { "folded",
			    { ".folded", ".collapsed" },
			    "folded stacks, for flamegraph.pl",
			    folded_write,
			    NULL },
	[EXPORT_JSON] = { "json",
			  { ".json", ".ndjson" },
			  "functions and account, as --format=ndjson",
			  NULL,
			  batch_ndjson },
	[EXPORT_TEXT] = { "text",
			  { ".txt" },
			  "functions and account, as --format=text",
			  NULL,
			  batch_text },
	[EXPORT_OTLP] = { "otlp",
			  { ".otlp.pb", ".otlp" },
			  "OpenTelemetry profiles (experimental)",
			  otlp_write,
			  NULL },
};

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), n = strlen(end);

	return size > n && !strcmp(text + size - n, end);
}

enum export_format export_format_of(const char *path)
{
	enum export_format found = EXPORT_NR;
	size_t longest = 0;

	/* "x.speedscope.json" also ends with ".json". */
	for (int i = 0; i < EXPORT_NR; i++)
		for (size_t k = 0; k < ARRAY_SIZE(formats[i].endings); k++) {
			const char *end = formats[i].endings[k];

			if (!end || !ends_with(path, end) || strlen(end) <= longest)
				continue;
			longest = strlen(end);
			found = (enum export_format)i;
		}
	return found;
}

enum export_format export_format_parse(const char *name)
{
	int i = 0;

	while (i < EXPORT_NR && strcmp(formats[i].name, name))
		i++;
	return (enum export_format)i;
}

struct export_words export_words(enum export_format format)
{
	const struct format *f = &formats[format];

	assert((unsigned int)format < EXPORT_NR);
	return (struct export_words){ f->name, f->endings[0], f->help };
}

void export_scope_all(struct snapshot_scope *scope, uint32_t event)
{
	*scope = (struct snapshot_scope){
		.filter = { .event = event,
			    .process = UINT32_MAX,
			    .task = UINT32_MAX,
			    .hide_idle = PROFILE_IDLE_KTHREAD },
		.module = UINT32_MAX,
	};
}

/* Return the event of waits, or of a clock. UINT32_MAX: none. */
static uint32_t find_time(const struct profile *p, bool waits)
{
	for (uint32_t i = 0; i < p->nr_events; i++)
		if (waits ? p->events[i].event.wait : p->events[i].event.clock)
			return i;
	return UINT32_MAX;
}

void export_scope_time(struct snapshot_scope *scope, const struct profile *p,
		       enum ui_config_time time)
{
	uint32_t waits = find_time(p, true), clock = find_time(p, false);

	if (time == CONFIG_TIME_WAIT && waits < p->nr_events)
		scope->filter.event = waits;
	if (time != CONFIG_TIME_ALL || waits >= p->nr_events || clock >= p->nr_events)
		return;
	scope->filter.event = clock;
	scope->filter.also = waits + 1;
	scope->filter.hide_idle = PROFILE_IDLE;
}

uint32_t export_event(const struct profile *p)
{
	uint32_t first = p->nr_events;

	for (uint32_t i = 0; i < p->nr_counts; i++)
		first = MIN(first, p->counts[i].event);
	return first < p->nr_events ? first : 0;
}

/* Write a format of the batch output. */
static int write_tick(struct out *o, const struct profile *p, const struct snapshot_scope *scope,
		      batch_sink_fn sink)
{
	char only[sizeof(scope->title) + sizeof(scope->only) + 2];
	struct batch_config config = { .sink = sink,
				       .filter = scope->find[0] ? scope->find : NULL,
				       .scope = &scope->filter,
				       .one_module = scope->module != UINT32_MAX,
				       .module = scope->module,
				       .range = scope->range };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int code;

	snprintf(only, sizeof(only), "%s%s%s", scope->title,
		 scope->title[0] && scope->only[0] ? ", " : "", scope->only);
	config.only = *only ? only : NULL;
	code = f ? batch_print(f, p, &config) : -ENOMEM;
	if (f && fclose(f) && !code)
		code = -ENOMEM;
	if (!code)
		out_bytes(o, text, size);
	free(text);
	return code ? code : o->failed ? -ENOMEM : 0;
}

int export_write(struct out *o, const struct profile *p, const struct snapshot_scope *scope,
		 enum export_format format, struct err *e)
{
	struct snapshot s;
	int code;

	assert((unsigned int)format < EXPORT_NR);
	if (formats[format].sink) {
		code = write_tick(o, p, scope, formats[format].sink);
	} else {
		code = snapshot_make(&s, p, scope, format == EXPORT_PPROF);
		if (!code) {
			code = formats[format].write(o, &s);
			snapshot_fini(&s);
		}
	}
	if (code == -ENODATA)
		return err_set(e, code, "cannot export: the profile has no events");
	if (code == -ENOENT)
		return err_set(e, code, "cannot compare: %s has no event %s", scope->against,
			       p->events[scope->filter.event].event.name);
	if (code)
		return err_set(e, code, "cannot export: %s",
			       o->size >= OUT_MAX / 2 ? "more than 1 GiB" : strerror(-code));
	return 0;
}

struct work {
	struct file_work work; /* first: the two are cast */
	struct profile *profile;
	struct snapshot_scope scope;
	uint8_t *tasks; /* owned copy of the filter's mask; NULL: none */
	enum export_format format;
	char *path;
	bool replace;
};

static int run(struct file_work *work, struct err *e)
{
	struct work *w = (struct work *)work;
	struct out o = { .permille = &work->permille };
	int code = export_write(&o, w->profile, &w->scope, w->format, e);

	if (!code)
		code = file_work_write_text(w->path, o.data ? o.data : "", o.size, w->replace, e);
	out_fini(&o);
	return code;
}

static void free_work(struct file_work *work)
{
	struct work *w = (struct work *)work;

	profile_free(w->profile);
	profile_free(w->scope.baseline);
	free(w->tasks);
	free(w->path);
	free(w);
}

/* Write where @path is, with its folder; below the home folder as "~/...". A long one is cut in the
 * middle. */
static void show_place(char *buf, size_t size, const char *path)
{
	enum { HEAD = 20, LONGEST = 60 };
	char folder[512], text[1024];
	const char *home = getenv("HOME"), *at = text;
	size_t n;

	if (*path == '/' || !getcwd(folder, sizeof(folder)))
		*folder = '\0';
	snprintf(text, sizeof(text), "%s%s%s", folder, *folder && folder[1] ? "/" : "", path);
	n = home ? strlen(home) : 0;
	if (n > 1 && !strncmp(text, home, n) && text[n] == '/') {
		at = text + n - 1;
		text[n - 1] = '~';
	}
	n = strlen(at);
	if (n <= LONGEST)
		snprintf(buf, size, "%s", at);
	else
		snprintf(buf, size, "%.*s...%s", HEAD, at, at + n - (LONGEST - HEAD - 3));
}

struct file_work *export_work(struct profile *p, const struct snapshot_scope *scope,
			      enum export_format format, const char *path, bool replace)
{
	struct work *w = calloc(1, sizeof(*w));
	char place[128];

	assert((unsigned int)format < EXPORT_NR);
	if (!w)
		return NULL;
	*w = (struct work){ .work = { .run = run, .free = free_work },
			    .profile = profile_keep(p),
			    .scope = *scope,
			    .format = format,
			    .path = strdup(path),
			    .replace = replace };
	if (scope->baseline)
		w->scope.baseline = profile_keep(scope->baseline);
	if (scope->filter.tasks) {
		w->tasks = malloc(p->nr_tasks + 1ULL);
		if (w->tasks)
			memcpy(w->tasks, scope->filter.tasks, p->nr_tasks);
		w->scope.filter.tasks = w->tasks;
	}
	if (!w->path || (scope->filter.tasks && !w->tasks)) {
		free_work(&w->work);
		return NULL;
	}
	show_place(place, sizeof(place), path);
	snprintf(w->work.done, sizeof(w->work.done), "exported to %s (%s)", place,
		 formats[format].name);
	return &w->work;
}
