// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page that needs no network: ui/export/page.html, with the data as JSON in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/export/facts.h"
#include "ui/export/json.h"
#include "ui/export/markup.h"
#include "ui/export/tree.h"
#include "ui/export/writers.h"

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
