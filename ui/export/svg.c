// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A flame graph as SVG, without scripts: text in boxes, the rest in tooltips. Dark and light.
 */
#include <errno.h>

#include "ui/export/facts.h"
#include "ui/export/markup.h"
#include "ui/export/tree.h"
#include "ui/export/writers.h"

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
