// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The invoking user.
 *
 * Linux keeps users, groups and capabilities for each thread; the functions of the C library change
 * them in all threads, so system calls are used here.
 */
#include "symbols/base/invoker.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_SIZE 64
#define HOME_SIZE 1024
#define NOBODY	  65534u
#define CACHE	  "DEBUGINFOD_CACHE_PATH"

static struct {
	bool other;
	uid_t uid;
	gid_t gid;
	gid_t groups[INVOKER_GROUPS_MAX];
	int nr_groups;
	char name[NAME_SIZE], home[HOME_SIZE];
	bool hidden;	/* not dumpable */
	bool has_cache; /* the variable CACHE is ours */
} invoker;

/* Parse an id; false: not a number. */
static bool id_of(const char *text, unsigned int *id)
{
	unsigned long n;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (*end || errno || n >= (unsigned int)-1)
		return false;
	*id = (unsigned int)n;
	return true;
}

/* Copy the entry of /etc/passwd with this name, or with invoker.uid when @name is NULL. */
static bool find_user(const char *name)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) &&
	       (name ? strcmp(pw->pw_name, name) != 0 : pw->pw_uid != invoker.uid))
		;
	if (pw) {
		invoker.uid = pw->pw_uid;
		invoker.gid = pw->pw_gid;
		snprintf(invoker.name, sizeof(invoker.name), "%s", pw->pw_name);
		if (strlen(pw->pw_dir) < sizeof(invoker.home))
			snprintf(invoker.home, sizeof(invoker.home), "%s", pw->pw_dir);
	}
	if (f)
		fclose(f);
	return pw;
}

static bool is_member(const struct group *g, const char *name)
{
	for (char **member = g->gr_mem; *member; member++)
		if (!strcmp(*member, name))
			return true;
	return false;
}

/* Read the groups of the invoking user: from /etc/group only, as names of users. */
static void find_groups(void)
{
	FILE *f = fopen("/etc/group", "re");
	struct group *g;

	invoker.groups[invoker.nr_groups++] = invoker.gid;
	while (f && invoker.name[0] && invoker.nr_groups < INVOKER_GROUPS_MAX && (g = fgetgrent(f)))
		if (g->gr_gid != invoker.gid && is_member(g, invoker.name))
			invoker.groups[invoker.nr_groups++] = g->gr_gid;
	if (f)
		fclose(f);
}

/* Find the caller of sudo, pkexec or doas, which set these variables; root alone can forge them.
 */
static bool find_caller(void)
{
	const char *doas = getenv("DOAS_USER");
	unsigned int gid;

	if (id_of(getenv("SUDO_UID"), &invoker.uid) || id_of(getenv("PKEXEC_UID"), &invoker.uid)) {
		invoker.gid = id_of(getenv("SUDO_GID"), &gid) ? gid : NOBODY;
		find_user(NULL);
		return invoker.uid;
	}
	return doas && find_user(doas) && invoker.uid;
}

static bool get_caps(struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capget, &header, caps);
}

static bool set_caps(const struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capset, &header, caps);
}

/* Forbid core files and tracing. A change of the user sets this back to fs.suid_dumpable. */
static void hide(void)
{
	if (invoker.hidden)
		prctl(PR_SET_DUMPABLE, 0);
}

void invoker_init(void)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (!getuid() && !geteuid() && !getauxval(AT_SECURE)) {
		invoker.other = find_caller();
		if (invoker.other)
			find_groups();
	} else if (getauxval(AT_SECURE)) {
		invoker.uid = getuid();
		find_user(NULL);
	}
	/* Sanitizers trace their process to find leaks. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	invoker.hidden = get_caps(caps) && (caps[0].permitted | caps[1].permitted);
#else
	(void)caps;
#endif
	hide();
}

bool invoker_is_other(void)
{
	return invoker.other;
}

bool invoker_is_unprivileged(void)
{
	return getauxval(AT_SECURE);
}

uid_t invoker_uid(void)
{
	return invoker.other ? invoker.uid : geteuid();
}

const char *invoker_name(void)
{
	return invoker.other && invoker.name[0] ? invoker.name : NULL;
}

const char *invoker_home(void)
{
	return invoker.home[0] == '/' ? invoker.home : NULL;
}

void invoker_set_cache(void)
{
	char path[HOME_SIZE + sizeof("/.cache/debuginfod_client")];

	if (!invoker.other || !invoker_home() || getenv(CACHE))
		return;
	snprintf(path, sizeof(path), "%s/.cache/debuginfod_client", invoker.home);
	invoker.has_cache = !setenv(CACHE, path, 1);
}

void invoker_unset_cache(void)
{
	if (invoker.has_cache)
		unsetenv(CACHE);
}

void invoker_make_cache(void)
{
	char path[HOME_SIZE + sizeof("/.cache")];

	if (!invoker.has_cache)
		return;
	snprintf(path, sizeof(path), "%s/.cache", invoker.home);
	mkdir(path, 0700);
}

/* Change user and groups of this thread's file accesses. False: not possible, or only in part. */
static bool set_user(uid_t uid, gid_t gid, const gid_t *groups, int nr_groups)
{
	bool done = !syscall(SYS_setgroups, nr_groups, groups);

	syscall(SYS_setfsgid, gid);
	syscall(SYS_setfsuid, uid);
	hide();
	/* Both return the id before, and no error; -1 is no id: nothing is changed. */
	return done && (gid_t)syscall(SYS_setfsgid, -1) == gid &&
	       (uid_t)syscall(SYS_setfsuid, -1) == uid;
}

/* Take the user and groups of the caller of sudo. */
static bool take_user(struct invoker_saved *saved)
{
	prctl(PR_GET_PDEATHSIG, &saved->death_signal);
	saved->uid = geteuid();
	saved->gid = getegid();
	saved->nr_groups = getgroups(INVOKER_GROUPS_MAX, saved->groups);
	return saved->nr_groups >= 0 &&
	       set_user(invoker.uid, invoker.gid, invoker.groups, invoker.nr_groups);
}

/* Remove the effective capabilities. Root itself has the rights of root. */
static bool take_caps(const struct invoker_saved *saved)
{
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (!invoker.other && !geteuid())
		return true;
	if (!saved->has_caps || !(saved->caps[0].effective | saved->caps[1].effective))
		return saved->has_caps;
	memcpy(none, saved->caps, sizeof(none));
	none[0].effective = none[1].effective = 0;
	return set_caps(none);
}

static int refuse(struct err *e)
{
	return e ? err_set(e, -EPERM,
			   "cannot take the rights of the invoking user %u: %s\n"
			   "  files are read and written with these rights; CAP_SETUID and "
			   "CAP_SETGID are needed\n"
			   "  'env -u SUDO_UID proftop' has the rights of root",
			   invoker.uid, strerror(EPERM))
		 : -EPERM;
}

int invoker_begin(struct invoker_saved *saved, struct err *e)
{
	*saved = (struct invoker_saved){ .nr_groups = -1 };
	saved->has_caps = get_caps(saved->caps);
	if ((!invoker.other || take_user(saved)) && take_caps(saved))
		return 0;
	invoker_end(saved);
	return refuse(e);
}

void invoker_end(const struct invoker_saved *saved)
{
	if (saved->has_caps)
		set_caps(saved->caps);
	if (!invoker.other || saved->nr_groups < 0)
		return;
	set_user(saved->uid, saved->gid, saved->groups, saved->nr_groups);
	/* A change of the user removes the capabilities for files. */
	if (saved->has_caps)
		set_caps(saved->caps);
	if (saved->death_signal)
		prctl(PR_SET_PDEATHSIG, saved->death_signal);
}

void invoker_stay(void)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	/* Root itself reads and writes in the folders of others. */
	if (!invoker.other && !geteuid() && get_caps(caps)) {
		caps[0].effective &= 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
		caps[0].permitted = caps[0].effective;
		caps[0].inheritable = 0;
		caps[1] = (struct __user_cap_data_struct){ 0 };
	}
	set_caps(caps);
}

bool invoker_become(void)
{
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (invoker.other && (syscall(SYS_setgroups, invoker.nr_groups, invoker.groups) ||
			      syscall(SYS_setresgid, invoker.gid, invoker.gid, invoker.gid) ||
			      syscall(SYS_setresuid, invoker.uid, invoker.uid, invoker.uid)))
		return false;
	hide();
	return (!invoker.other && !geteuid()) || set_caps(none);
}
