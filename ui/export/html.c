// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pages and pictures of flame graphs (page.html with the data as JSON in it, SVG), folded stacks;
 * text of XML and HTML.
 */
#include "ui/export/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"

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
	uint32_t *order;
	struct tree t;

	if (tree_make(&t, s))
		return -ENOMEM;
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
	out_text(o, "]}}");
	o->failed |= !order;
	free(order);
	tree_fini(&t);
	return 0;
}

int html_write(struct out *o, const struct snapshot *s)
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
	return code || o->failed ? -ENOMEM : 0;
}

/*
 * A flame graph as SVG, without scripts: text in boxes, the rest in tooltips. Dark and light.
 */

#define WIDTH	  1200.0
#define MARGIN	  10.0
#define ROW	  17
#define HEAD	  56
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
	double base; /* weight of the whole width */
	double all;  /* of shares: with samples that the filter leaves out */
	double height;
};

static void put_box(const struct drawing *d, const struct tree_node *node, double left)
{
	double width = node->total / d->base * (WIDTH - 2 * MARGIN);
	double y = d->height - MARGIN - (node->depth + 1.0) * ROW;
	struct safe_text name = tree_text(d->s, node);
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
	out_format(o,
		   "</title><rect class=\"%c\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
		   "rx=\"1\"/>",
		   tree_class(d->s, node), MARGIN + left, y, width, ROW - 1);
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
				       "%.0f samples; taken %llu, guessed %llu, broken %llu, lost "
				       "%llu since the start; proftop " PROFTOP_VERSION,
				       d->s->count,
				       (unsigned long long)d->s->profile->account_total.taken,
				       (unsigned long long)d->s->profile->account_total.guessed,
				       (unsigned long long)d->s->profile->account_total.broken,
				       (unsigned long long)d->s->profile->account_total.lost),
			   160);
	out_text(o, "</text>\n");
}

int svg_write(struct out *o, const struct snapshot *s)
{
	struct tree t;
	struct drawing d = { .o = o, .s = s, .t = &t };
	int code = tree_make(&t, s);

	if (code)
		return code;
	d.base = t.nodes[0].total > 0 ? t.nodes[0].total : 1;
	d.all = s->all_weight > 0 ? s->all_weight : 1;
	d.height = HEAD + (t.depth + 1.0) * ROW + 2 * MARGIN;
	put_head(&d);
	put_boxes(&d);
	out_text(o, "</svg>\n");
	tree_fini(&t);
	return o->failed ? -ENOMEM : 0;
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
	double weight;
};

static int compare_lines(const void *a, const void *b, void *texts)
{
	const struct folded_line *x = a, *y = b;
	const char *text = texts;
	int order = memcmp(text + x->at, text + y->at, MIN(x->size, y->size));

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Stacks of several threads, or of other lines and places of the same functions, are one line. */
static void put_sums(struct out *o, struct out *texts, struct folded_line *lines, uint32_t nr)
{
	double rest = 0;

	if (nr)
		qsort_r(lines, nr, sizeof(*lines), compare_lines, texts->data);
	for (uint32_t i = 0, next; i < nr; i = next) {
		double weight = lines[i].weight;
		long long whole;

		for (next = i + 1;
		     next < nr && !compare_lines(&lines[i], &lines[next], texts->data); next++)
			weight += lines[next].weight;
		whole = snapshot_whole(weight, &rest);
		if (!whole)
			continue;
		out_bytes(o, texts->data + lines[i].at, lines[i].size);
		out_format(o, " %lld\n", whole);
	}
}

int folded_write(struct out *o, const struct snapshot *s)
{
	struct folded_line *lines = calloc(MAX(s->nr_stacks, 1u), sizeof(*lines));
	struct out texts = { .max = o->max };

	for (uint32_t i = 0; lines && i < s->nr_stacks; i++) {
		const struct snapshot_stack *stack = &s->stacks[i];
		const struct profile_process *process = snapshot_process_of(s, stack->task);

		lines[i] = (struct folded_line){ .at = texts.size, .weight = stack->weight };
		put_name(&texts, process ? process->comm : TEXT("?"), !stack->nr);
		for (uint32_t k = 0; k < stack->nr; k++)
			put_frame(&texts, snapshot_function(s, s->calls[stack->first + k]),
				  k + 1 == stack->nr);
		lines[i].size = texts.size - lines[i].at;
		out_progress(o, i, s->nr_stacks);
	}
	o->failed |= !lines || texts.failed;
	if (!o->failed)
		put_sums(o, &texts, lines, s->nr_stacks);
	out_fini(&texts);
	free(lines);
	return o->failed ? -ENOMEM : 0;
}
