/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of /proc/PID/cgroup, and which container a cgroup is of; see
 * cgroups(7).
 *
 * Hostile: whoever may make cgroups chooses their names. Bytes in, fields out.
 * Pure; any thread.
 */
#ifndef SYMBOLS_PROCESS_CGROUP_H
#define SYMBOLS_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_CONTAINER_MAX 96

/*
 * The path that tells most: of the unified hierarchy, or where that is empty
 * of systemd's. In the text; false: there is none.
 */
bool cgroup_path(const char *text, size_t size, const char **path, size_t *path_size);

/*
 * "docker:3fa1c2d4e5f6", "podman:…", "k8s:…", "lxc:NAME", "nspawn:NAME" into
 * @out; ids are shortened to 12 digits, as those tools show them. Returns its
 * size, 0: no container that we know. Not clean yet.
 */
size_t cgroup_container(const char *path, size_t size, char out[static CGROUP_CONTAINER_MAX]);

#endif
