/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of /proc/PID/cgroup, and the container of a cgroup; see cgroups(7).
 *
 * Hostile: users choose the names of their cgroups. Bytes in, fields out.
 * Pure; any thread.
 */
#ifndef SYMBOLS_PROCESS_CGROUP_H
#define SYMBOLS_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_CONTAINER_MAX 96

/*
 * Find the most useful path in the text: that of the unified hierarchy, or if empty
 * that of systemd. False: none.
 */
bool cgroup_path(const char *text, size_t size, const char **path, size_t *path_size);

/*
 * Write the outermost container: "docker:3fa1c2d4e5f6", "podman:…", "k8s:…", "lxc:NAME" or
 * "nspawn:NAME" to @out; ids have 12 digits, as in these tools. Below the systemd of a user only
 * podman's form counts, as "podman@1000:3fa1c2d4e5f6". @id: all 64 digits in @path, of the system's
 * containers only; NULL: none. Returns the size, 0: no known container. Not sanitised.
 */
size_t cgroup_container(const char *path, size_t size, char out[static CGROUP_CONTAINER_MAX],
			const char **id);

#endif
