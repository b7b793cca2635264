/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The views, in the order of their tabs.
 */
#ifndef UI_STATE_VIEW_ID_H
#define UI_STATE_VIEW_ID_H

enum view_id {
	VIEW_FUNCTIONS,
	VIEW_PROCESSES,
	VIEW_TREE,
	VIEW_FLAME,
	VIEW_CPUS,
	VIEW_MODULES,
	VIEW_MESSAGES,
	VIEW_HELP, /* views before this one have tabs */
	VIEW_CALLERS,
	VIEW_ANNOTATE,
	VIEW_BRANCHES,
	VIEW_MEMORY,
	VIEW_NR,
};

#endif
