/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The span of time that a profile covers.
 */
#ifndef SAMPLER_COUNT_WINDOW_H
#define SAMPLER_COUNT_WINDOW_H

enum profile_window {
	PROFILE_WINDOW, /* the last few seconds */
	PROFILE_DECAY,	/* all, older ones fading */
	PROFILE_TOTAL,	/* since reset */
	PROFILE_NR_WINDOWS,
};

#endif
