// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Call tree, flame graph, callers and callees: whole screens, the effect of keys, and that the
 * selection keeps its function.
 * Live: takes about a second of CPU time, or more.
 */
#include "ui/view/view_flame.c"

#include "tests/ui/folded.h"
#include "tests/ui/golden.h"

#include <math.h>
#include <time.h>

#include "ui/fold/fold.h"
#include "tests/yardstick.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/export/export.h"
#include "ui/key/key.h"
#include "ui/draw/internal.h"
#include "ui/state/state.h"
#include "ui/internal.h"

static const char server[] =
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::create_order;"
	"json::Parser::parseObject 1210\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::create_order;"
	"json::Parser::parseObject;json::Parser::parseValue 310\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::create_order;"
	"json::Parser::parseObject;json::Parser::parseValue;json::Parser::parseString 690\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::create_order;"
	"json::Parser::parseObject;json::Parser::parseValue;json::Parser::parseArray;"
	"json::Parser::parseValue;json::Parser::parseObject 140\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::create_order;"
	"json::Parser::parseObject;std::_Rb_tree<json::Key, json::Node>::_M_insert_;malloc 480\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::update_cart;"
	"json::Parser::parseObject 720\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;api::handlers::update_cart;"
	"json::Parser::parseObject;json::Parser::parseValue 260\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;log::Sink::write 210\n"
	"api-server;start_thread;Worker::run;api::Router::dispatch;log::Sink::write;vfs_write|k;"
	"copy_user_enhanced_fast_string|k 190\n"
	"api-server;start_thread;gc::loop 215\n"
	"api-server;start_thread;gc::loop;gc::mark_slab 260\n"
	"nginx;main;ngx_worker_process_cycle;ngx_http_process_request_line 120\n"
	"nginx;main;ngx_worker_process_cycle;ngx_http_process_request_line;tcp_sendmsg_locked|k "
	"95\n"
	"nginx;main;ngx_worker_process_cycle;epoll_wait;schedule|k 60\n"
	"node;LazyCompile:~handle app.js:88|j 330\n"
	"node;LazyCompile:~handle app.js:88|j;0x00007f31c2a41b60|? 42\n"
	"node;LazyCompile:~handle app.js:88|j;clock_gettime|v 18\n";

struct size {
	unsigned int cols, rows;
	bool ascii;
};

static const struct size sizes[] = {
	{ 80, 24, false }, { 100, 30, false }, { 200, 60, false }, { 40, 8, false },
	{ 80, 24, true },  { 100, 30, true },  { 200, 60, true },  { 40, 8, true },
};

/* One view at all sizes: the keys pressed, then the screen. */
static void all_sizes(const char *name, const uint32_t *keys)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct bench b;
		char path[80];

		bench_init(&b, sizes[i].cols, sizes[i].rows, sizes[i].ascii);
		model_take(&b.st, folded_profile(server));
		look(&b);
		for (const uint32_t *k = keys; *k; k++)
			press(&b, *k);
		snprintf(path, sizeof(path), "%s-%ux%u%s", name, sizes[i].cols, sizes[i].rows,
			 sizes[i].ascii ? "-ascii" : "");
		golden(&b, path);
		bench_fini(&b);
	}
}

TEST(test_screens)
{
	all_sizes("tree", (const uint32_t[]){ '3', 0 });
	all_sizes("tree-bottom-up", (const uint32_t[]){ 't', 'I', 0 });
	all_sizes("flame", (const uint32_t[]){ '4', 0 });
	all_sizes("callers", (const uint32_t[]){ 'b', 0 });
}

static const char *selected(struct bench *b)
{
	static char buf[TEXT_MAX];
	const struct list *list = ui_state_list(&b->st);
	uint32_t fn;

	assert_true(list->cursor < list->nr);
	fn = view_of(b->st.view)->function(&b->st, &list->rows[list->cursor]);
	snprintf(buf, sizeof(buf), "%s",
		 fn == FOLD_NONE ? "-" : b->st.shown->functions[fn].name.str);
	return buf;
}

TEST(test_tree_keys)
{
	struct bench b;
	uint32_t before;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, K_F(5));
	assert_int_equal(b.st.view, VIEW_TREE);
	assert_string_equal(selected(&b), "-");
	/* The end of the hottest path is the function with most self samples there. */
	press(&b, 'J');
	assert_string_equal(selected(&b), "json::Parser::parseObject");
	before = b.st.lists[VIEW_TREE].nr;
	press(&b, K_ENTER);
	assert_int_not_equal(b.st.lists[VIEW_TREE].nr, before);
	press(&b, K_ENTER);
	assert_int_equal(b.st.lists[VIEW_TREE].nr, before);
	assert_string_equal(selected(&b), "json::Parser::parseObject");
	press(&b, K_LEFT);
	press(&b, K_LEFT);
	assert_string_equal(selected(&b), "api::handlers::create_order");
	press(&b, '-');
	before = b.st.lists[VIEW_TREE].nr;
	press(&b, K_RIGHT);
	assert_true(b.st.lists[VIEW_TREE].nr > before);
	press(&b, K_RIGHT);
	assert_string_equal(selected(&b), "json::Parser::parseObject");
	/* Everything, and nothing. */
	press(&b, 'g');
	press(&b, '*');
	look(&b);
	assert_int_equal(b.st.lists[VIEW_TREE].nr,
			 folds_tree_shown(&b.st, FOLDS_TREE)->fold.nr_nodes);
	press(&b, '*');
	assert_int_equal(b.st.lists[VIEW_TREE].nr, 1);
	press(&b, 't');
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

/* Nodes that were unfolded long ago do not prevent that others are. */
TEST(test_tree_many_marks)
{
	struct bench b;
	uint32_t before;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '3');
	press(&b, 'J');
	before = b.st.lists[VIEW_TREE].nr;
	for (uint32_t id = 1; b.st.folds->nr_marks < FOLDS_MARKS / 4 * 3; id++)
		folds_mark(&b.st, id, MARK_OPEN);
	press(&b, K_ENTER);
	assert_int_not_equal(b.st.lists[VIEW_TREE].nr, before);
	assert_non_null(strstr(look(&b), "these choices are dropped"));
	assert_int_equal(b.st.folds->nr_marks, 1);
	bench_fini(&b);
}

/* A filter leaves the matches and the way to them. */
TEST(test_tree_filter)
{
	struct bench b;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '3');
	press(&b, '\\');
	type(&b, "schedule");
	press(&b, K_ENTER);
	/* system, nginx, main, cycle, epoll_wait, schedule */
	assert_int_equal(b.st.lists[VIEW_TREE].nr, 6);
	assert_non_null(strstr(look(&b), "schedule"));
	assert_null(strstr(look(&b), "gc::loop"));
	press(&b, K_ESC);
	assert_true(b.st.lists[VIEW_TREE].nr > 6);
	bench_fini(&b);
}

/* The same of boxes: the others are gone, the shares are still of all samples. */
TEST(test_flame_filter)
{
	struct bench b;
	const struct list *list = &b.st.lists[VIEW_FLAME];
	uint32_t all;

	bench_init(&b, 200, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '4');
	look(&b);
	all = list->nr;
	press(&b, '\\');
	type(&b, "schedule");
	press(&b, K_ENTER);
	/* system, nginx, main, cycle, epoll_wait, schedule */
	assert_int_equal(list->nr, 6);
	assert_null(strstr(look(&b), "gc::loop"));
	assert_true(list->nr_hidden > 0);
	/* nginx, at the left end: 275 of 5 350 samples. */
	assert_true(fabs(list->rows[1].total - 275 / 5350.0) < 1e-9);
	assert_int_equal(b.st.folds->boxes[0].cols, 200);
	assert_int_equal(b.st.folds->boxes[1].col, 0);
	assert_int_equal(b.st.folds->boxes[1].cols, 10);
	/* Found in all samples, as without the filter. */
	press(&b, '/');
	type(&b, "parse");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "71.21% in all"));
	/* Zoomed into a node that the filter leaves out: its nearest ancestor that is kept. */
	press(&b, K_ESC);
	press(&b, K_ESC);
	assert_int_equal(list->nr, all);
	press(&b, K_DOWN);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "zoom api-server"));
	press(&b, '\\');
	type(&b, "schedule");
	press(&b, K_ENTER);
	assert_null(strstr(look(&b), "zoom api-server"));
	assert_int_equal(list->nr, 6);
	press(&b, '\\');
	type(&b, "nowhere");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "no row matches the filter '"));
	press(&b, K_ESC);
	assert_non_null(strstr(look(&b), "zoom api-server"));
	bench_fini(&b);
}

/* Rows that only change their weight keep the cursor on its row. */
TEST(test_selection_stays)
{
	static const uint32_t views[] = { '3', '4' };

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		struct bench b;
		char more[sizeof(server) + 200];

		bench_init(&b, 100, 40, false);
		model_take(&b.st, folded_profile(server));
		press(&b, views[i]);
		look(&b);
		press(&b, '/');
		type(&b, "ngx_worker");
		press(&b, K_ENTER);
		if (views[i] == '3') {
			press(&b, K_ESC);
			press(&b, 'g');
			press(&b, '*');
			press(&b, '/');
			type(&b, "ngx_worker");
			press(&b, K_ENTER);
		}
		assert_string_equal(selected(&b), "ngx_worker_process_cycle");
		snprintf(more, sizeof(more), "another;alone 9000\nnginx;main;aaa 700\n%s", server);
		model_take(&b.st, folded_profile(more));
		look(&b);
		assert_string_equal(selected(&b), "ngx_worker_process_cycle");
		bench_fini(&b);
	}
}

TEST(test_callers_keys)
{
	struct bench b;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '/');
	type(&b, "parseValue");
	press(&b, K_ENTER);
	press(&b, K_ESC);
	press(&b, 'b');
	look(&b);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	assert_string_equal(selected(&b), "json::Parser::parseValue");
	assert_non_null(strstr(look(&b), "recursive"));
	press(&b, 'k');
	assert_string_equal(selected(&b), "json::Parser::parseObject");
	press(&b, K_ENTER);
	assert_string_equal(selected(&b), "json::Parser::parseObject");
	press(&b, K_ESC);
	assert_string_equal(selected(&b), "json::Parser::parseValue");
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

TEST(test_flame_keys)
{
	struct bench b;
	const struct list *list = &b.st.lists[VIEW_FLAME];
	const char *text;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '4');
	look(&b);
	assert_int_equal(list->rows[list->cursor].total, 1);
	press(&b, K_DOWN);
	assert_non_null(strstr(look(&b), "▶ api-server[4242]"));
	press(&b, K_DOWN);
	press(&b, K_DOWN);
	assert_string_equal(selected(&b), "Worker::run");
	press(&b, K_RIGHT);
	assert_string_equal(selected(&b), "gc::loop");
	press(&b, K_LEFT);
	assert_string_equal(selected(&b), "Worker::run");
	press(&b, K_UP);
	assert_string_equal(selected(&b), "start_thread");
	press(&b, K_DOWN);
	press(&b, K_DOWN);
	press(&b, K_ENTER);
	text = look(&b);
	assert_non_null(strstr(text, "zoom api::Router::dispatch"));
	/* As wide as the screen now. */
	assert_int_equal(b.st.folds->boxes[0].cols, 100);
	assert_string_equal(selected(&b), "api::Router::dispatch");
	press(&b, K_ESC);
	assert_null(strstr(look(&b), "zoom api"));
	assert_string_equal(selected(&b), "api::Router::dispatch");
	/* Upside down, down is away from the leaves. */
	press(&b, 'I');
	press(&b, K_DOWN);
	assert_string_equal(selected(&b), "Worker::run");
	press(&b, '/');
	type(&b, "parse");
	press(&b, K_ENTER);
	text = look(&b);
	assert_non_null(strstr(text, "[json::Parser::parseObject]"));
	/* 3 810 of 5 350 samples have a parser on their stack, however deep it recurs. */
	assert_non_null(strstr(text, "71.21% in all"));
	bench_fini(&b);
}

/* The box of a row is found at its place on the screen, and clicked there. */
TEST(test_flame_mouse)
{
	struct bench b;

	for (int below = 0; below < 2; below++) {
		bench_init(&b, 100, 36, false);
		model_take(&b.st, folded_profile(server));
		press(&b, '4');
		if (below)
			press(&b, 'I');
		look(&b);
		for (unsigned int row = 0; row < 36; row++)
			for (unsigned int col = 0; col < 100; col++) {
				const struct cell *cell = canvas_at(&b.canvas, row, col);

				if (strcmp(cell->text, "▏") || cell->style.role < ROLE_BOX_PROCESS)
					continue;
				input_key(&b.st, &(struct key){ .code = K_MOUSE,
								.row = (uint16_t)row,
								.col = (uint16_t)col,
								.button = BUTTON_LEFT });
				b.st.click_ns = 0;
				screen_draw(&b.st, &b.canvas);
				assert_string_equal(canvas_at(&b.canvas, row, col)->text, "▶");
			}
		bench_fini(&b);
	}
}

/* No width is off by a cell, no two boxes overlap, none leaves its parent. */
TEST(test_flame_widths)
{
	struct profile *p = folded_profile(server);
	struct fold_tree_config config = { .order = FOLD_BY_ID, .first = FOLD_PROCESSES };
	struct fold_tree t;

	config.filter = (struct fold_filter){ .process = UINT32_MAX, .task = UINT32_MAX };
	assert_int_equal(fold_tree(p, &config, &t), 0);
	for (unsigned int cols = 1; cols < 300; cols++) {
		struct flame_box *boxes;
		uint32_t nr = flame_lay_out(&t, &(struct flame_part){ .width = 1, .uncut = true },
					    cols, &boxes);

		assert_true(nr > 0 && boxes[0].cols == cols);
		for (uint32_t i = 0; i < nr; i++) {
			double exact = boxes[i].total * cols / t.weight;

			assert_true(exact - 1 < boxes[i].cols && boxes[i].cols < exact + 1);
			for (uint32_t k = 0; k < nr; k++) {
				if (boxes[k].node == (boxes[i].rest
							      ? boxes[i].node
							      : t.nodes[boxes[i].node].parent) &&
				    !boxes[k].rest)
					assert_true(boxes[i].col >= boxes[k].col &&
						    boxes[i].col + boxes[i].cols <=
							    boxes[k].col + boxes[k].cols);
				if (k != i && boxes[k].level == boxes[i].level)
					assert_true(boxes[i].col >= boxes[k].col + boxes[k].cols ||
						    boxes[k].col >= boxes[i].col + boxes[i].cols);
			}
		}
		free(boxes);
	}
	fold_tree_fini(&t);
	profile_free(p);
}

static void mouse(struct bench *b, enum key_button button, unsigned int row, unsigned int col)
{
	input_key(&b->st, &(struct key){ .code = K_MOUSE,
					 .row = (uint16_t)row,
					 .col = (uint16_t)col,
					 .button = (uint8_t)button });
	screen_draw(&b->st, &b->canvas);
}

/* Column of the box called @name; below zero: it is not in sight. */
static int col_of_box(struct bench *b, const char *name)
{
	const struct folds *s = b->st.folds;
	char buf[TEXT_MAX];

	for (uint32_t i = 0; i < s->nr_boxes; i++)
		if (!strcmp(folds_text(&b->st,
				       &folds_tree_shown(&b->st, FOLDS_FLAME)
						->fold.nodes[s->boxes[i].node],
				       buf, sizeof(buf))
				    .str,
			    name))
			return s->boxes[i].col;
	return -1;
}

/* The wheel zooms at the pointer, a drag moves the graph, a tick and Esc keep the selection. */
TEST(test_flame_closer)
{
	static const char *const text = "a;main;x 40\na;main;y 30\na;main;z 30\n";
	struct bench b;
	unsigned int row;
	int col;

	bench_init(&b, 100, 36, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	look(&b);
	row = b.st.nr_zones ? 0 : 1;
	for (uint32_t i = 0; i < b.st.nr_zones; i++)
		if (b.st.zones[i].kind == ZONE_ROWS)
			row = b.st.zones[i].row + 3u;
	col = col_of_box(&b, "y");
	assert_true(col > 0);
	mouse(&b, BUTTON_UP, row, (unsigned int)col + 1);
	mouse(&b, BUTTON_UP, row, (unsigned int)col + 1);
	assert_string_equal(selected(&b), "y");
	assert_true(abs(col_of_box(&b, "y") - col) <= 4);
	assert_non_null(strstr(look(&b), "x4 from"));
	/* Drag the graph from the position of the other boxes. */
	col = col_of_box(&b, "y");
	b.st.now_ns += 1000000000;
	mouse(&b, BUTTON_LEFT, row, (unsigned int)col + 5);
	mouse(&b, BUTTON_RELEASED, row, (unsigned int)col + 15);
	assert_int_equal(col_of_box(&b, "y"), col + 10);
	assert_string_equal(selected(&b), "y");
	model_take(&b.st, folded_profile("a;main;x 90\na;main;y 30\na;main;z 30\n"));
	look(&b);
	assert_string_equal(selected(&b), "y");
	/* Beyond the edge the next one is selected. */
	for (int i = 0; i < 20; i++)
		press(&b, K_RIGHT);
	assert_string_not_equal(selected(&b), "y");
	press(&b, '-');
	press(&b, K_ESC);
	assert_null(strstr(look(&b), " from "));
	assert_int_equal(b.st.view, VIEW_FLAME);
	bench_fini(&b);
}

/* The exact position and width of the node's box in the visible part: cells, of @cols. */
static double exact_cols(const struct fold_tree *t, const struct flame_part *part, uint32_t n,
			 unsigned int cols)
{
	double from, to;

	assert_true(flame_extent(t, part, cols, n, &from, &to));
	from = (from - part->left) / part->width * cols;
	to = (to - part->left) / part->width * cols;
	return MAX(MIN(to, cols), 0) - MIN(MAX(from, 0), cols);
}

/* The same of every part that can be magnified: the root fills it, and all that is cut is in sight,
 * but for what is left out. */
static void check_part(const struct fold_tree *t, const struct flame_part *part, unsigned int cols)
{
	struct flame_box *boxes;
	uint32_t nr = flame_lay_out(t, part, cols, &boxes);
	unsigned int sums[64] = { 0 };

	assert_true(nr > 0 && boxes[0].node == part->zoom && boxes[0].col == 0 &&
		    boxes[0].cols == cols);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t node = boxes[i].node, up = 0;
		uint32_t parent = boxes[i].rest ? node : t->nodes[node].parent;

		while (i && (boxes[up].node != parent || boxes[up].rest))
			assert_true(++up < i);
		assert_true(!part->keep || part->keep[node]);
		if (!boxes[i].rest)
			assert_true(fabs(exact_cols(t, part, node, cols) - boxes[i].cols) <= 1);
		assert_true(boxes[i].cols > 0 && boxes[i].col + boxes[i].cols <= cols);
		if (boxes[i].level < ARRAY_SIZE(sums))
			sums[boxes[i].level] += boxes[i].cols;
		assert_true(boxes[i].col >= boxes[up].col &&
			    boxes[i].col + boxes[i].cols <= boxes[up].col + boxes[up].cols);
	}
	for (size_t level = 0; level < ARRAY_SIZE(sums); level++)
		assert_true(sums[level] <= (level ? sums[level - 1] : cols));
	free(boxes);
}

TEST(test_flame_parts)
{
	struct profile *p = folded_profile(server);
	struct fold_tree_config config = { .filter = { .process = UINT32_MAX, .task = UINT32_MAX },
					   .first = FOLD_PROCESSES,
					   .order = FOLD_BY_ID };
	uint32_t seed = 7;
	struct fold_tree t;
	bool keep[64];

	assert_int_equal(fold_tree(p, &config, &t), 0);
	assert_in_range(t.nr_nodes, 2, ARRAY_SIZE(keep));
	for (int i = 0; i < 4000; i++) {
		struct flame_part part = { .uncut = true, .keep = i % 2 ? keep : NULL };

		seed = seed * 1664525u + 1013904223u;
		part.zoom = (seed >> 8) % t.nr_nodes;
		part.width = 1.0 / (1 << (seed >> 5) % 11);
		part.left = (1 - part.width) * ((seed >> 16) % 1000 / 999.0);
		/* Some nodes, and their ancestors. */
		memset(keep, 0, sizeof(keep));
		for (uint32_t n = t.nr_nodes; n-- > 0;) {
			keep[n] |= n == part.zoom || hash_u64(seed + n) % 4 == 0;
			if (keep[n] && n)
				keep[t.nodes[n].parent] = true;
		}
		check_part(&t, &part, 1 + (seed >> 10) % 230);
	}
	fold_tree_fini(&t);
	profile_free(p);
}

static void search(struct bench *b, const char *text)
{
	b->st.message[0] = '\0';
	press(b, '/');
	type(b, text);
	press(b, K_ENTER);
}

/* On a low screen chains of frames are one line each, so that the lines show differences; no
 * name is cut to a few letters. */
TEST(test_flame_low)
{
	static const char text[] = "py;_start;start_main;main;run;eval;leaf 60\n"
				   "py;_start;start_main;main;run;eval;other 40\n"
				   "sh;_begin;begin_main;loop;parse_it 50\n"
				   "sh;_begin;begin_main;loop;fork_it 45\n"
				   "sh;_begin;begin_main;loop;longname 5\n";
	const char *shown;
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	shown = look(&b);
	assert_non_null(strstr(shown, "4 frames to run (Enter: show)"));
	assert_non_null(strstr(shown, "eval"));
	assert_null(strstr(shown, "start_main"));
	assert_null(strstr(shown, "lon"));
	golden(&b, "flame-low-80x24");
	/* From box to box, also through a chain. */
	press(&b, K_DOWN);
	press(&b, K_DOWN);
	assert_non_null(strstr(look(&b), "▶ 4 frames to run"));
	press(&b, K_DOWN);
	assert_string_equal(selected(&b), "eval");
	press(&b, K_UP);
	assert_non_null(strstr(look(&b), "▶ 4 frames to run"));
	/* Enter shows all; a search too. */
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "start_main"));
	press(&b, K_ESC);
	assert_null(strstr(look(&b), "start_main"));
	press(&b, '/');
	type(&b, "start_main");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "[start_main]"));
	bench_fini(&b);
	/* There are lines for all on a high one. */
	bench_init(&b, 100, 30, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	assert_non_null(strstr(look(&b), "start_main"));
	bench_fini(&b);
}

/* Frames that all samples share are one line, until Enter; narrow boxes are one, with their share.
 */
TEST(test_flame_cut)
{
	char text[4000] = "";
	struct bench b;

	for (int i = 0; i < 60; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "py;_start;main;Py_Run;eval;handle;leaf%d 1\n", i);
	strcat(text, "py;_start;main;Py_Run;eval;handle;hot 240\npy;_start;main;Py_Run;eval;other "
		     "99\n");
	bench_init(&b, 100, 30, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	assert_non_null(strstr(look(&b), "4 frames to Py_Run (Enter: show)"));
	assert_null(strstr(look(&b), "_start"));
	assert_non_null(strstr(look(&b), "60 more 15.04%"));
	golden(&b, "flame-cut-100x30");
	press(&b, K_DOWN);
	assert_non_null(strstr(look(&b), "\xe2\x96\xb6 4 frames to Py_Run"));
	press(&b, K_DOWN);
	assert_string_equal(selected(&b), "eval");
	press(&b, K_UP);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "_start"));
	assert_null(strstr(look(&b), "4 frames"));
	press(&b, K_ESC);
	assert_non_null(strstr(look(&b), "4 frames to Py_Run"));
	/* A search opens it while it is in force. */
	search(&b, "^main$");
	assert_string_equal(selected(&b), "main");
	bench_fini(&b);
	/* Tall screens have boxes of two lines, with their shares. */
	bench_init(&b, 200, 60, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	golden(&b, "flame-cut-200x60");
	bench_fini(&b);
	/* Where all boxes are narrow, the rest says so. */
	*text = '\0';
	for (int i = 0; i < 200; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "py;leaf%d 1\n", i);
	bench_init(&b, 100, 30, false);
	model_take(&b.st, folded_profile(text));
	press(&b, '4');
	assert_non_null(strstr(look(&b), "200 more 100.0%, each narrower than a cell: see the "
					 "tree"));
	bench_fini(&b);
}

/* Neighbours of a kind differ in hue, the same function has the same one in all places. */
TEST(test_flame_hues)
{
	uint32_t hues = 0, nr[THEME_HUES] = { 0 };
	struct bench b;

	bench_init(&b, 200, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '4');
	look(&b);
	for (unsigned int row = 0; row < 40; row++)
		for (unsigned int col = 0; col < 200; col++) {
			unsigned int role = canvas_at(&b.canvas, row, col)->style.role;

			if (role >= ROLE_BOX_USER && role < ROLE_BOX_USER + THEME_HUES)
				nr[role - ROLE_BOX_USER]++;
		}
	for (uint32_t i = 0; i < THEME_HUES; i++)
		hues += nr[i] > 0;
	assert_true(hues >= 3);
	assert_int_equal(theme_box('u', 7), theme_box('u', 7 + THEME_HUES));
	bench_fini(&b);
}

/* Vanished rows of one name are reported once: how many, and how much together. */
TEST(test_gone_names)
{
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, folded_profile("api;main;steady 300\ncc1;main 90\ncc2;main "
					 "80\ncc3;main 70\n"));
	press(&b, ',');
	press(&b, '4');
	press(&b, 'H');
	press(&b, 'B');
	model_take(&b.st, folded_profile("api;main;steady 900\n"));
	assert_non_null(strstr(look(&b), "gone cc* (3) 44.44%\n"));
	bench_fini(&b);
}

/* A box that is gone hands the selection to its parent, not to whatever is there now. */
TEST(test_flame_gone)
{
	struct bench b;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile("a;main;x 10\na;main;y 10\n"));
	press(&b, '4');
	look(&b);
	for (int i = 0; i < 3; i++)
		press(&b, K_DOWN);
	press(&b, K_RIGHT);
	press(&b, K_LEFT);
	assert_true(!strcmp(selected(&b), "x") || !strcmp(selected(&b), "y"));
	look(&b);
	model_take(&b.st, folded_profile("a;main;z 10\nb;other 10\n"));
	look(&b);
	assert_string_equal(selected(&b), "main");
	bench_fini(&b);
}

/* From a row into the flame graph, zoomed there. */
TEST(test_flame_here)
{
	struct bench b;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '/');
	type(&b, "gc::loop");
	press(&b, K_ENTER);
	press(&b, K_ESC);
	press(&b, 'v');
	assert_non_null(strstr(look(&b), "zoom gc::loop"));
	assert_string_equal(selected(&b), "gc::loop");
	bench_fini(&b);
}

/* Keys without a fold of the profile: keys that only move must not fold again. */
TEST(test_folds_are_kept)
{
	struct bench b;
	const void *nodes;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile(server));
	press(&b, '3');
	nodes = folds_tree_shown(&b.st, FOLDS_TREE)->fold.nodes;
	assert_non_null(nodes);
	for (const char *k = "jjk+-*GgJ142356 3"; *k; k++) {
		press(&b, (uint32_t)*k);
		look(&b);
	}
	assert_ptr_equal(folds_tree_shown(&b.st, FOLDS_TREE)->fold.nodes, nodes);
	press(&b, 'K');
	assert_true(folds_tree_shown(&b.st, FOLDS_TREE)->config.filter.hide_kernel);
	bench_fini(&b);
}

TEST(test_recursion)
{
	struct bench b;

	bench_init(&b, 100, 40, false);
	model_take(&b.st, folded_profile("a;main;walk;walk;walk;leaf 10\na;main;walk;leaf 5\n"));
	press(&b, '4');
	look(&b);
	assert_int_equal(b.st.lists[VIEW_FLAME].nr, 8);
	press(&b, 'X');
	assert_non_null(strstr(look(&b), "recursion folded (X)"));
	/* The frames above the last are cut: all samples share them. */
	assert_int_equal(b.st.lists[VIEW_FLAME].nr, 3);
	press(&b, '3');
	press(&b, 'g');
	press(&b, '*');
	assert_int_equal(b.st.lists[VIEW_TREE].nr, 5);
	/* Unfolded nodes remain unfolded. */
	press(&b, 'X');
	assert_int_equal(b.st.lists[VIEW_TREE].nr, 8);
	bench_fini(&b);
}

/* 200 000 distinct stacks of 30 frames out of 20 000 functions. */
static struct profile *large_profile(void)
{
	enum { NR = 200000, DEPTH = 30, FUNCTIONS = 20000 };
	struct profile *p = calloc(1, sizeof(*p));

	p->names = text_arena_new();
	p->sampling = true;
	strcpy(p->target, "system");
	fake_cpus(p, 2);
	fake_event(p, 0, "cpu-clock", 997, 996.4);
	p->functions = calloc(FUNCTIONS, sizeof(*p->functions));
	p->processes = calloc(1, sizeof(*p->processes));
	p->tasks = calloc(1, sizeof(*p->tasks));
	p->stacks = calloc(NR, sizeof(*p->stacks));
	p->counts = calloc(NR, sizeof(*p->counts));
	p->frames = calloc((size_t)NR * DEPTH, sizeof(*p->frames));
	p->processes[0].comm = p->tasks[0].comm = TEXT("large");
	p->nr_processes = p->nr_tasks = 1;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%u", i);
		p->functions[i] = (struct profile_function){
			.id = i,
			.kind = 'u',
			.name = folded_text(p, name, strlen(name)),
			.module = TEXT("large"),
		};
	}
	p->nr_functions = FUNCTIONS;
	for (uint32_t i = 0; i < NR; i++) {
		uint32_t call = 0;

		p->stacks[i] = (struct profile_stack){ i * DEPTH, DEPTH };
		for (uint32_t d = 0; d < DEPTH; d++) {
			uint32_t which = (uint32_t)rand() % 8;

			call = (call * 4 + (which > 3 ? 0 : which) + 1) % FUNCTIONS;
			p->frames[i * DEPTH + DEPTH - 1 - d] = call;
		}
		p->counts[i] = (struct profile_count){ i, 0, 0, 1, 1 };
	}
	p->nr_stacks = p->nr_counts = NR;
	p->nr_frames = NR * DEPTH;
	return p;
}

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* From a key to the screen: a key never folds again. */
TEST(test_large)
{
	static const char keys[] = "1jjjGgVnjk3jj+J-jjGg*Gg4jjjjhhj1b jj3J4";
	double most = 0, first = 0, begin = cpu_ms();
	struct bench b;

	srand(5);
	bench_init(&b, 200, 60, false);
	model_take(&b.st, large_profile());
	screen_draw(&b.st, &b.canvas);
	print_message("first screen: %.1f ms (with making the profile)\n", cpu_ms() - begin);
	/* The first time in a view makes its fold; each key after that finds it made. */
	for (const char *k = "34b"; *k; k++) {
		begin = cpu_ms();
		press(&b, (uint32_t)*k);
		screen_draw(&b.st, &b.canvas);
		first = MAX(first, cpu_ms() - begin);
	}
	for (const char *k = keys; *k; k++) {
		begin = cpu_ms();
		press(&b, (uint32_t)*k);
		screen_draw(&b.st, &b.canvas);
		most = MAX(most, cpu_ms() - begin);
	}
	print_message("a view's first key: %.1f ms at most; others: %.1f ms\n", first, most);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(most < 100 * yardstick_slowness());
#endif
	bench_fini(&b);
}

/* Ticks a second apart: a function that rises, one that falls, one that begins. */
static void take_seconds(struct bench *b, int from, int to)
{
	for (int s = from; s < to; s++) {
		char text[400];
		struct profile *p;

		snprintf(text, sizeof(text),
			 "api;main;steady 300\napi;main;rises %d\napi;main;falls %d\n%s%s",
			 100 + s * 10, 900 - s * 10, s >= 50 ? "api;main;comes 80\n" : "",
			 s < 50 ? "api;main;goes 70\n" : "");
		p = folded_profile(text);
		p->running_ns = (uint64_t)(100 + s) * 1000000000u;
		model_take(&b->st, p);
	}
}

/* A search that no row matches says whether there are such samples, how many, and where. */
TEST(test_missed)
{
	struct bench b;

	bench_init(&b, 110, 34, true);
	model_take(&b.st, folded_profile("api;main;hot 99000\napi;main;warm;deep_fn 900\n"
					 "api;main;exc_page_fault 40\n"));
	press(&b, '4');
	look(&b);
	search(&b, "exc_page_fault");
	assert_non_null(strstr(b.st.message, "exc_page_fault: 0.04% in all, in boxes too narrow"));
	search(&b, "exc_page_fauxt");
	assert_string_equal(b.st.message, "exc_page_fauxt: not found");
	/* While it is typed. */
	press(&b, '/');
	type(&b, "exc_page_f");
	assert_non_null(strstr(look(&b), "0.04% in all, in boxes too narrow"));
	press(&b, K_ESC);
	press(&b, '3');
	look(&b);
	search(&b, "deep_fn");
	assert_non_null(strstr(b.st.message, "deep_fn: 0.90% in all, in folded rows"));
	press(&b, '1');
	search(&b, "deep_fn");
	assert_string_equal(b.st.message, "");
	type(&b, ":limit 50\r");
	search(&b, "deep_fn");
	assert_non_null(strstr(b.st.message, "0.90% in all, but hidden by the limit (L)"));
	type(&b, ":limit 0\r");
	type(&b, "\\hot\r");
	search(&b, "deep_fn");
	assert_non_null(strstr(b.st.message, "hidden by the filter"));
	assert_string_equal(b.st.lists[VIEW_FUNCTIONS].filter.text, "hot");
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].nr, 1);
	search(&b, "no_such_fn");
	assert_string_equal(b.st.message, "no_such_fn: not found");
	bench_fini(&b);
}

/* Return how many rows are compared with the window before. */
static uint32_t nr_compared(const struct bench *b)
{
	const struct list *list = &b->st.lists[VIEW_FUNCTIONS];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		struct row row = list->rows[i];

		row.change = CHANGE_UNKNOWN;
		folds_compare(&b->st, &row);
		nr += row.change == CHANGE_WINDOW;
	}
	return nr;
}

/* Take profiles of @nr seconds with another @window, rate or target. */
static void take_changed(struct bench *b, int from, int nr, enum profile_window window, double hz,
			 const char *target)
{
	for (int s = from; s < from + nr; s++) {
		struct profile *p = folded_profile("api;main;steady 300\napi;main;other 100\n");

		p->running_ns = (uint64_t)(100 + s) * 1000000000u;
		p->window = window;
		p->events[0].want_hz = hz;
		strcpy(p->target, target);
		model_take(&b->st, p);
	}
}

/* A change of the window, the rate or the target is no change of the program: no delta, no trend.
 */
TEST(test_trend_begins_again)
{
	static const struct {
		enum profile_window window;
		double hz;
		const char *target;
	} changes[] = {
		{ PROFILE_TOTAL, 997, "system" },
		{ PROFILE_TOTAL, 4999, "system" },
		{ PROFILE_TOTAL, 4999, "pid 42" },
		{ PROFILE_WINDOW, 4999, "pid 42" },
	};
	struct bench b;
	int at = 20;

	bench_init(&b, 100, 30, true);
	take_changed(&b, 0, 20, PROFILE_WINDOW, 997, "system");
	assert_true(nr_compared(&b) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++, at += 20) {
		/* Both windows must have passed since. */
		for (int s = 0; s < 9; s++) {
			take_changed(&b, at + s, 1, changes[i].window, changes[i].hz,
				     changes[i].target);
			assert_int_equal(nr_compared(&b), 0);
			assert_int_equal(folds_trend(&b.st)->begun, 100 + at);
		}
		take_changed(&b, at + 9, 11, changes[i].window, changes[i].hz, changes[i].target);
		assert_true(nr_compared(&b) > 0);
	}
	/* The governor changes the rate, but no share. */
	at -= 20;
	for (int s = 20; s < 24; s++) {
		struct profile *p = folded_profile("api;main;steady 300\n");

		p->running_ns = (uint64_t)(100 + at + s) * 1000000000u;
		p->events[0].want_hz = 4999 / 4.0;
		p->rate_factor = 0.25;
		strcpy(p->target, "pid 42");
		model_take(&b.st, p);
		assert_int_equal(folds_trend(&b.st)->begun, 100 + at);
	}
	bench_fini(&b);
}

TEST(test_trend)
{
	static const struct size trends[] = {
		{ 100, 30, false },
		{ 200, 60, false },
		{ 80, 24, false },
		{ 100, 30, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(trends); i++) {
		struct bench b;
		char name[80];

		bench_init(&b, trends[i].cols, trends[i].rows, trends[i].ascii);
		take_seconds(&b, 0, 40);
		snprintf(name, sizeof(name), "trend-%ux%u%s", trends[i].cols, trends[i].rows,
			 trends[i].ascii ? "-ascii" : "");
		golden(&b, name);
		press(&b, 'B');
		take_seconds(&b, 40, 60);
		snprintf(name, sizeof(name), "baseline-%ux%u%s", trends[i].cols, trends[i].rows,
			 trends[i].ascii ? "-ascii" : "");
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		golden(&b, name);
		assert_non_null(strstr(look(&b), "new!"));
		assert_non_null(strstr(look(&b), "gone      goes 5."));
		press(&b, 'B');
		assert_null(strstr(look(&b), "new!"));
		bench_fini(&b);
	}
}

/* Nothing is compared with a window that was not whole. */
TEST(test_first_windows)
{
	struct bench b;

	bench_init(&b, 100, 24, false);
	for (uint64_t s = 0; s < 14; s++) {
		struct profile *p = folded_profile("api;main;steady 300\napi;main;other 100\n");

		p->running_ns = (s + 1) * 1000000000u;
		model_take(&b.st, p);
		look(&b); /* of drawn rows alone */
		assert_int_equal(b.st.lists[VIEW_FUNCTIONS].rows[0].change,
				 s + 1 < 10 ? CHANGE_UNKNOWN : CHANGE_WINDOW);
	}
	bench_fini(&b);
}

/* Against the baseline, in each view that compares; and no longer. */
TEST(test_baseline)
{
	static const struct {
		const char *name;
		uint32_t keys[4];
	} views[] = {
		{ "tree", { '3', '*' } },
		{ "flame", { '4', K_LEFT } },
		{ "callers", { 'b', K_UP, K_ENTER } },
		{ "processes", { '2' } },
		{ "threads", { '3', 'H', '*' } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		struct bench b;
		char name[80];

		bench_init(&b, i & 1 ? 100 : 80, 24, i & 1);
		model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 500\n"
						 "api;main;goes 70\nold;main;stays 9\n"));
		press(&b, 'B');
		model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 100\n"
						 "api;main;comes 80\nold;main;stays 9\n"
						 "new;main;comes 400\n"));
		for (size_t k = 0; k < ARRAY_SIZE(views[i].keys) && views[i].keys[k]; k++)
			press(&b, views[i].keys[k]);
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		snprintf(name, sizeof(name), "baseline-%s", views[i].name);
		golden(&b, name);
		assert_non_null(strstr(look(&b), "new!"));
		press(&b, 'B');
		assert_null(strstr(look(&b), "new!"));
		assert_null(strstr(look(&b), "gone"));
		bench_fini(&b);
	}
}

/* Return the role of the cell where @text begins on the screen. */
static uint8_t role_at(struct bench *b, const char *text)
{
	const struct canvas *c = &b->canvas;
	size_t size = strlen(text);

	look(b);
	for (unsigned int i = 0; i + size <= c->rows * c->cols; i++) {
		size_t n = 0;

		while (n < size && c->cells[i + n].text[0] == text[n])
			n++;
		if (n == size)
			return c->cells[i].style.role;
	}
	fail_msg("'%s' is not on the screen", text);
	return 0;
}

/* Dropped samples are a warning, but for the last ones before a change of events. */
TEST(test_dropped_role)
{
	for (uint64_t gone = 0; gone <= 4; gone += 4) {
		struct profile *p = folded_profile("api;main;steady 1000\n");
		struct bench b;

		p->account =
			(struct profile_account){ .taken = 1000, .complete = 996, .dropped = 4 };
		p->dropped_by[DROP_EVENT_GONE] = gone;
		p->dropped_by[DROP_CELLS_FULL] = 4 - gone;
		bench_init(&b, 120, 24, true);
		model_take(&b.st, p);
		assert_int_equal(role_at(&b, "<1%"), gone ? ROLE_VALUE : ROLE_WARN);
		bench_fini(&b);
	}
}

/* Boxes of the flame graph with a larger share are red, with a smaller one blue, others grey. */
TEST(test_baseline_colours)
{
	struct bench b;

	bench_init(&b, 100, 24, true);
	model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 500\n"
					 "api;main;rises 100\n"));
	press(&b, '4');
	assert_in_range(role_at(&b, "steady"), ROLE_BOX_USER, ROLE_BOX_KERNEL - 1);
	press(&b, 'B');
	model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 100\n"
					 "api;main;rises 300\napi;main;comes 200\n"));
	assert_int_equal(role_at(&b, "steady"), ROLE_BOX_SAME);
	assert_int_equal(role_at(&b, "-44.4!"), ROLE_BOX_LESS);
	assert_int_equal(role_at(&b, "+22.2!"), ROLE_BOX_MORE);
	assert_int_equal(role_at(&b, "new!"), ROLE_BOX_MORE);
	assert_int_equal(role_at(&b, " + more "), ROLE_BOX_MORE);
	assert_int_equal(role_at(&b, " - less "), ROLE_BOX_LESS);
	press(&b, 'c');
	assert_int_not_equal(role_at(&b, "steady"), ROLE_BOX_SAME);
	press(&b, 'B');
	assert_null(strstr(look(&b), " + more "));
	bench_fini(&b);
}

/* Boxes too narrow for a figure have its sign: a terminal may have no colours. */
TEST(test_baseline_signs)
{
	struct bench b;

	bench_init(&b, 100, 24, true);
	model_take(&b.st, folded_profile("api;main;steady_work 9000\napi;main;falls_much 900\n"
					 "api;main;rises_much 100\n"));
	press(&b, '4');
	press(&b, 'B');
	model_take(&b.st, folded_profile("api;main;steady_work 9000\napi;main;falls_much 450\n"
					 "api;main;rises_much 550\n"));
	assert_non_null(strstr(look(&b), "|-   |steady"));
	assert_non_null(strstr(look(&b), "|+"));
	bench_fini(&b);
}

/* Return the text of an export with the differences from @old. */
static char *differences(struct profile *now, struct profile *old, enum export_format format,
			 uint32_t process)
{
	struct snapshot_scope scope;
	struct out o = { .failed = false };
	struct err e;

	export_scope_all(&scope, 0);
	scope.baseline = old;
	scope.filter.process = process;
	strcpy(scope.against, "old<data");
	assert_int_equal(export_write(&o, now, &scope, format, &e), 0);
	out_bytes(&o, "", 1);
	return o.data;
}

/* Pages and pictures have the differences that the screen has, of the whole and of one process. */
TEST(test_exported_differences)
{
	struct profile *old = folded_profile("api;main;steady 300\napi;main;falls 500\n"
					     "api;main;rises 100\nother;main;x 900\n");
	struct profile *now = folded_profile("other;main;x 900\napi;main;steady 300\n"
					     "api;main;falls 100\napi;main;rises 300\n"
					     "api;main;comes 200\n");
	char *text = differences(now, old, EXPORT_SVG, UINT32_MAX);

	assert_non_null(strstr(text, ", against old&lt;data</title>"));
	assert_non_null(strstr(text, ">falls (api-server) 5.56%, self 5.56%, -22.22</title><rect "
				     "class=\"l3\""));
	assert_non_null(strstr(text, ">comes (api-server) 11.11%, self 11.11%, +11.11</title><rect "
				     "class=\"m3\""));
	assert_non_null(strstr(text, ">steady (api-server) 16.67%, self 16.67%</title><rect "
				     "class=\"p\""));
	assert_non_null(strstr(text, ">+11.1 rises</text>"));
	free(text);
	text = differences(now, old, EXPORT_HTML, UINT32_MAX);
	assert_non_null(strstr(text, "\"change\":["));
	assert_non_null(strstr(text, "-22.222"));
	free(text);
	/* Process 1 of the one is 0 of the other. */
	text = differences(now, old, EXPORT_SVG, 1);
	assert_non_null(strstr(text, ">falls (api-server) 11.11%, self 11.11%, -44.44</title>"));
	free(text);
	text = differences(now, NULL, EXPORT_HTML, UINT32_MAX);
	assert_null(strstr(text, "\"change\":["));
	free(text);
	profile_free(now);
	profile_free(old);
}

/* Folded stacks have two counts, as difffolded.pl -n writes: of 900 samples before, of 1,800 now.
 */
TEST(test_folded_differences)
{
	struct profile *old = folded_profile("api;main;steady 300\napi;main;falls 500\n"
					     "api;main;goes 100\n");
	struct profile *now = folded_profile("api;main;steady 600\napi;main;falls 100\n"
					     "api;main;comes 1100\n");
	struct snapshot_scope scope;
	struct out o = { .failed = false };
	char *text = differences(now, old, EXPORT_FOLDED, UINT32_MAX);
	struct err e;

	assert_string_equal(text, "api;main;comes 0 1100\napi;main;falls 1000 100\n"
				  "api;main;goes 200 0\napi;main;steady 600 600\n");
	free(text);
	fake_event(old, 0, "page-faults", 99, 99);
	export_scope_all(&scope, 0);
	scope.baseline = old;
	strcpy(scope.against, "old.data");
	for (int i = 0; i < EXPORT_NR; i++) {
		bool compares = export_compares((enum export_format)i);

		assert_int_equal(export_write(&o, now, &scope, (enum export_format)i, &e),
				 compares ? -ENOENT : 0);
		if (compares)
			assert_string_equal(e.text, "cannot compare: old.data has no event "
						    "cpu-clock");
	}
	out_fini(&o);
	profile_free(now);
	profile_free(old);
}

/* Give all functions and processes other ids, as after a new build and a restart. */
static struct profile *rebuilt(struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_functions; i++)
		p->functions[i].id += 1000003;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].id += 100;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].id += 100;
	return p;
}

/* Just after B, with a limit: the boxes are of the tree that is shown. */
TEST(test_baseline_limit)
{
	struct bench b;
	const struct folds_tree *t;

	bench_init(&b, 100, 24, true);
	model_take(&b.st, folded_profile("api;aa;x 1\napi;ab;y 1\napi;main;steady "
					 "800\napi;main;falls 198\n"));
	b.st.set.percent_limit = 1;
	press(&b, '4');
	press(&b, 'B');
	t = folds_tree_shown(&b.st, FOLDS_FLAME);
	assert_int_equal(b.st.lists[VIEW_FLAME].nr, b.st.folds->nr_boxes);
	assert_in_range(b.st.folds->nr_boxes, 4, t->fold.nr_nodes);
	for (uint32_t i = 0; i < b.st.folds->nr_boxes; i++) {
		const struct flame_box *box = &b.st.folds->boxes[i];

		if (!box->rest)
			assert_int_equal(t->ids[box->node], b.st.lists[VIEW_FLAME].rows[i].id);
	}
	assert_null(strstr(look(&b), "aa"));
	bench_fini(&b);
}

/* The profile of a file: its ids are of another session, so rows compare by name alone. */
TEST(test_baseline_file)
{
	static const uint32_t views[] = { '1', '2', '3', '4', '6' };
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		bench_init(&b, 100, 24, true);
		b.st.baseline = folded_profile("api;main;falls 500\napi;main;steady 300\n");
		b.st.baseline_path = "/var/tmp/old.data";
		model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 100\n"));
		press(&b, views[i]);
		press(&b, '*');
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		assert_null(strstr(look(&b), "new!"));
		assert_null(strstr(look(&b), "gone"));
		assert_non_null(strstr(look(&b), "against old.data (B)"));
		if (views[i] == '1')
			assert_non_null(strstr(look(&b), "-37.5!"));
		press(&b, 'B');
		assert_null(strstr(look(&b), "old.data"));
		bench_fini(&b);
	}
	bench_init(&b, 100, 24, true);
	b.st.baseline = fake_profile(2, NULL);
	fake_event(b.st.baseline, 0, "page-faults", 99, 99);
	b.st.baseline_path = "old.data";
	model_take(&b.st, fake_profile(2, NULL));
	assert_non_null(strstr(look(&b), "not compared: old.data has no event cpu-clock"));
	bench_fini(&b);
}

/* Inside one process, a file is compared by the process of that name; not inside one thread. */
TEST(test_baseline_file_process)
{
	static const char *const keys[] = { "2\r", "2=\r" };
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		bench_init(&b, 100, 24, true);
		b.st.baseline = folded_profile("db;main;query 4000\n"
					       "api;main;falls 500\napi;main;steady 300\n");
		b.st.baseline_path = "/var/tmp/old.data";
		model_take(&b.st, folded_profile("api;main;steady 3000\napi;main;falls 1000\n"
						 "db;main;query 10\n"));
		type(&b, keys[i]);
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		assert_true(b.st.scope.drilled);
		assert_non_null(strstr(look(&b), "-37.5!"));
		assert_null(strstr(look(&b), "query"));
		assert_null(strstr(look(&b), "new!"));
		assert_non_null(strstr(look(&b), "against old.data (B)"));
		b.st.scope.in_thread = true;
		assert_null(strstr(look(&b), "against old.data"));
		b.st.scope.in_thread = false;
		bench_fini(&b);
	}
}

/* After a rebuild and a restart, rows compare by module and name: nothing is new or gone. */
TEST(test_baseline_rebuilt)
{
	static const uint32_t views[] = { '1', '2', '3', '4', '6' };

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		struct bench b;

		bench_init(&b, 100, 24, true);
		model_take(&b.st, folded_profile("api;main;steady 300\napi;main;falls 500\n"));
		press(&b, 'B');
		model_take(&b.st, rebuilt(folded_profile("api;main;steady 300\n"
							 "api;main;falls 100\n")));
		press(&b, views[i]);
		press(&b, '*');
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		assert_null(strstr(look(&b), "new!"));
		assert_null(strstr(look(&b), "gone"));
		if (views[i] == '1')
			assert_non_null(strstr(look(&b), "-37.5!"));
		bench_fini(&b);
	}
	/* New and gone functions are still reported. */
	{
		struct bench b;

		bench_init(&b, 100, 24, true);
		model_take(&b.st, folded_profile("api;main;steady 300\napi;main;goes 500\n"));
		press(&b, 'B');
		model_take(&b.st, rebuilt(folded_profile("api;main;steady 300\n"
							 "api;main;comes 100\n")));
		b.st.now_ns += 60000000000ull;
		b.st.taken_ns = b.st.now_ns;
		assert_non_null(strstr(look(&b), "new!"));
		assert_non_null(strstr(look(&b), "goes 62.50%"));
		press(&b, '3');
		assert_non_null(strstr(look(&b), "api[4242] goes 62.50%"));
		bench_fini(&b);
	}
}

/* Any keys at any size with changing profiles: no fault (ASan looks on). */
TEST(test_random_keys)
{
	static const uint32_t keys[] = {
		'1',	'3', '4', 'b', 'v', 't',     'I',   'X',       '+',	'-',  '*',
		'J',	'j', 'k', 'g', 'G', K_ENTER, K_ESC, K_LEFT,    K_RIGHT, K_UP, K_DOWN,
		K_PGDN, ' ', 'K', 'U', 'n', 'N',     K_TAB, K_BACKTAB, 'V',	'F',  'T',
		'P',	'M', '<', '>', 'h', 'B',     'z',   '2',       '5',	'6',  '7',
	};
	struct bench b;

	srand(3);
	bench_init(&b, 80, 24, false);
	for (int i = 0; i < 20000; i++) {
		int what = rand() % 40;

		if (what == 0)
			model_take(&b.st, folded_profile(rand() % 4 ? server : "x;y 1\n"));
		else if (what == 1)
			canvas_resize(&b.canvas, 1 + (unsigned int)rand() % 60,
				      1 + (unsigned int)rand() % 200);
		else if (what == 2)
			model_take(&b.st, folded_profile(""));
		else if (what == 3)
			input_key(&b.st, &(struct key){ .code = K_MOUSE,
							.row = (uint16_t)(rand() % 60),
							.col = (uint16_t)(rand() % 200),
							.button = BUTTON_LEFT });
		else
			press(&b, keys[(size_t)rand() % ARRAY_SIZE(keys)]);
		screen_draw(&b.st, &b.canvas);
		b.st.quit = false;
	}
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
