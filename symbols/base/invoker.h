/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invoking user, and the rights of that user.
 *
 * proftop may have more rights than the invoking user at the keyboard: by sudo, doas or pkexec, or
 * by file capabilities. Files that the user names, and programs that the user starts, are used with
 * the rights of the invoking user alone: no capability, and behind sudo the user and groups of the
 * caller. See doc/SECURITY.md.
 */
#ifndef SYMBOLS_BASE_INVOKER_H
#define SYMBOLS_BASE_INVOKER_H

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/base.h"

#define INVOKER_GROUPS_MAX 64

/* The rights of a thread, to be restored. */
struct invoker_saved {
	uid_t uid;
	gid_t gid;
	gid_t groups[INVOKER_GROUPS_MAX];
	int nr_groups; /* -1: the user is not changed */
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	bool has_caps;
	int death_signal; /* a change of the user clears it */
};

/*
 * Find the invoking user: in the environment, /etc/passwd and /etc/group. Then forbid core files
 * and tracing of a process with capabilities, since its memory has that of others. Before any
 * thread.
 */
void invoker_init(void);

/* Return whether the invoking user is another user than the one of this process: it was started by
 * sudo.
 */
bool invoker_is_other(void);
/* Return whether the caller controls the environment of a process with capabilities (AT_SECURE). */
bool invoker_is_unprivileged(void);
/* Return the user of files that the invoking user makes: behind sudo not geteuid(). */
uid_t invoker_uid(void);
/* Return the user behind sudo; NULL: none, or unknown. Static. */
const char *invoker_name(void);
/* Return the home where that is not to be taken from the environment; NULL otherwise. Static. */
const char *invoker_home(void);
/*
 * Behind sudo, name a folder in the home of the caller for libdebuginfod, unless the environment
 * names one: HOME may be of root, where the caller cannot write. Before any thread.
 */
void invoker_set_cache(void);
/* Take that name back: for a command, which may have the rights of root; after fork(). */
void invoker_unset_cache(void);
/* Make the folder above the cache, ~/.cache, if the name is of invoker_set_cache(). */
void invoker_make_cache(void);

/*
 * Take the rights of the invoking user in this thread, and in threads it starts, until
 * invoker_end(). 0, or -EPERM with a message (@e may be NULL): not possible, no right is changed.
 */
int invoker_begin(struct invoker_saved *saved, struct err *e);
void invoker_end(const struct invoker_saved *saved);
/*
 * In a thread with these rights, for good: give up all capabilities, except of root the ones for
 * files. Without invoker_end().
 */
void invoker_stay(void);
/*
 * Take the rights of the invoking user in this process for good; after fork(): async-signal-safe.
 * False: not possible.
 */
bool invoker_become(void);

#endif
