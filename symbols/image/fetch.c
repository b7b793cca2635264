// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Get debug files from debuginfod servers, by libdebuginfod.
 *
 * Runs on: the loader; the transfer in a process, for which a helper waits, with a copy of the
 * build-id: the library (0.192) looks whether to go on only once a server has answered, and one
 * that does not is waited for as long as the time-out of the library. To cancel is to end the
 * process.
 */
#include "symbols/image/image.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"

#define LIBRARY	     "libdebuginfod.so.1"
#define TELL_NS	     1000000000ULL
#define LOOK_MS	     100 /* how often it is asked whether to cancel */
#define BUILD_ID_MAX 20U

/* The functions of libdebuginfod that are used (its header need not be installed). */
struct library {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *build_id, int size, char **path);
	void (*set_progress)(void *client, int (*fn)(void *client, long a, long b));
	void (*end)(void *client);
};

struct fetch {
	struct job job;
	struct library lib;
	uint32_t object;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_size;
	char name[64];		/* the loader's */
	int rc;			/* result; 0: the file is in the cache */
	bool refused;		/* without the rights of the invoking user */
	char missing[PATH_MAX]; /* the folder of the cache, if it was not made */
};

/* Progress functions get only the client; a process has one transfer. */
static struct fetch *fetching;

static bool find_functions(struct library *lib)
{
	static const struct library_function list[] = {
		{ "debuginfod_begin", offsetof(struct library, begin) },
		{ "debuginfod_find_debuginfo", offsetof(struct library, find) },
		{ "debuginfod_set_progressfn", offsetof(struct library, set_progress) },
		{ "debuginfod_end", offsetof(struct library, end) },
	};

	return library_find(LIBRARY, lib, list, ARRAY_SIZE(list));
}

/* Store the progress: @a of @b, 0: unknown. */
static int on_progress(void *client, long a, long b)
{
	struct watch *w = &fetching->job.watch;

	atomic_store_explicit(&w->done, (unsigned long long)MAX(a, 0), memory_order_relaxed);
	atomic_store_explicit(&w->total, (unsigned long long)MAX(b, 0), memory_order_relaxed);
	return 0;
}

/*
 * Remove the empty file that libdebuginfod leaves in the cache after any failure: it
 * would prevent the next request.
 */
static void forget_failure(const struct fetch *f)
{
	char path[PATH_MAX];
	struct stat st;

	for (unsigned int i = 0;
	     debugfile_cache_path(f->build_id, f->build_id_size, i, path, sizeof(path)); i++) {
		if (*path && !lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size &&
		    st.st_uid == invoker_uid())
			unlink(path);
	}
}

/*
 * Note the folder that libdebuginfod would have made for its cache, if there is none: its error for
 * that may be the one for a file that no server has.
 */
static void look_for_cache(struct fetch *f)
{
	char path[PATH_MAX];
	struct stat st;

	for (unsigned int i = 0; i < DEBUGFILE_CACHES; i++) {
		if (!debugfile_cache_folder(i, path, sizeof(path)))
			continue;
		if (!stat(path, &st)) {
			f->missing[0] = '\0';
			return;
		}
		if (!f->missing[0])
			memcpy(f->missing, path, sizeof(path));
		/* Only this one is used. */
		if (!i)
			return;
	}
}

/* Find the file, with the rights of the invoking user; return 0: it is in the cache, or -errno. */
static int find(struct fetch *f)
{
	void *client = f->lib.begin();
	char *path = NULL;
	int rc;

	if (!client)
		return -ENOMEM;
	fetching = f;
	f->lib.set_progress(client, on_progress);
	rc = f->lib.find(client, f->build_id, f->build_id_size, &path);
	if (rc >= 0)
		close(rc);
	else if (rc != -ENOENT)
		forget_failure(f);
	/* This comes before it makes the folder. */
	if (rc < 0 && rc != -ENOSYS)
		look_for_cache(f);
	/* 0.192 says so of any folder that it cannot make. */
	if (rc == -ENOMEM && f->missing[0])
		rc = -ENOENT;
	free(path);
	f->lib.end(client);
	return MIN(rc, 0);
}

/* Remove the parts of the file that a transfer that was ended has left beside it. */
static void forget_parts(const struct fetch *f, const struct timespec *since)
{
	char path[PATH_MAX], pattern[PATH_MAX + 8];
	struct stat st;

	for (unsigned int i = 0;
	     debugfile_cache_path(f->build_id, f->build_id_size, i, path, sizeof(path)); i++) {
		glob_t found;

		snprintf(pattern, sizeof(pattern), "%s.??????", path);
		if (!*path || glob(pattern, 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			if (!lstat(found.gl_pathv[k], &st) && S_ISREG(st.st_mode) &&
			    st.st_uid == invoker_uid() && st.st_mtime >= since->tv_sec)
				unlink(found.gl_pathv[k]);
		globfree(&found);
	}
}

/*
 * Fetch with the rights of the invoking user: the cache is that user's, with any links in it, and
 * libdebuginfod makes files there, and removes some. Threads that it starts have the same rights.
 *
 * Runs on: the process of the transfer. @f: memory that it shares.
 */
static void transfer(struct fetch *f)
{
	struct invoker_saved saved;

	/* With the helper, which waits for it; no descriptor of ours is kept open. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 3U, ~0U, 0U);
	f->rc = invoker_begin(&saved, NULL);
	f->refused = f->rc;
	if (f->rc)
		return;
	invoker_make_cache();
	f->rc = find(f);
}

/* Wait for the end of the process, and pass its progress on; cancelled, it is ended. */
static void wait_for(struct fetch *f, const struct fetch *shared, int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	const struct watch *from = &shared->job.watch;
	struct watch *to = &f->job.watch;

	while (!poll(&end, 1, LOOK_MS)) {
		atomic_store_explicit(&to->done, atomic_load(&from->done), memory_order_relaxed);
		atomic_store_explicit(&to->total, atomic_load(&from->total), memory_order_relaxed);
		if (atomic_load_explicit(&to->cancel, memory_order_relaxed))
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	}
}

/* Run the transfer in a process. 0 or -errno: it did not run to its end. */
static int run_process(struct fetch *f, struct fetch *shared)
{
	siginfo_t info = { .si_code = 0 };
	int pidfd;
	pid_t pid = fork();

	if (!pid) {
		transfer(shared);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0)
		wait_for(f, shared, pidfd);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) && errno == EINTR)
		;
	if (pidfd >= 0)
		close(pidfd);
	return info.si_code == CLD_EXITED ? 0 : -ECANCELED;
}

/* Runs on: a helper. */
static void run(struct job *job)
{
	struct fetch *f = (struct fetch *)job, *shared;
	struct invoker_saved saved;
	struct timespec since;

	f->rc = -ELIBACC;
	if (!find_functions(&f->lib))
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	f->rc = -ENOMEM;
	if (shared == MAP_FAILED)
		return;
	/* All but the watch: another thread may write it. */
	memcpy(&shared->job + 1, &f->job + 1, sizeof(*f) - sizeof(f->job));
	clock_gettime(CLOCK_REALTIME, &since);
	f->rc = run_process(f, shared);
	if (!f->rc) {
		f->rc = shared->rc;
		f->refused = shared->refused;
		memcpy(f->missing, shared->missing, sizeof(f->missing));
	} else if (!invoker_begin(&saved, NULL)) {
		forget_failure(f);
		forget_parts(f, &since);
		invoker_end(&saved);
	}
	munmap(shared, sizeof(*shared));
}

static void drop(struct job *job)
{
	free((struct fetch *)job);
}

void fetch_init(struct fetch_desk *d, struct objects *objects)
{
	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	d->objects = objects;
}

void fetch_fini(struct fetch_desk *d)
{
	if (d->job) {
		atomic_store_explicit(&d->job->job.watch.cancel, true, memory_order_relaxed);
		helper_job_leave(&d->job->job);
	}
	d->job = NULL;
	pthread_mutex_destroy(&d->lock);
}

void fetch_ask(struct fetch_desk *d, uint32_t object)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = object;
	pthread_mutex_unlock(&d->lock);
}

bool fetch_news(struct fetch_desk *d, char *buf, size_t size)
{
	bool news;

	assert(size);
	pthread_mutex_lock(&d->lock);
	news = d->news;
	if (news)
		snprintf(buf, size, "%s", d->text);
	d->news = false;
	pthread_mutex_unlock(&d->lock);
	return news;
}

__attribute__((format(printf, 2, 3))) static void tell(struct fetch_desk *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pthread_mutex_lock(&d->lock);
	vsnprintf(d->text, sizeof(d->text), fmt, ap);
	d->news = true;
	pthread_mutex_unlock(&d->lock);
	va_end(ap);
}

/* Copy the build-id of @object, from its mapping or from its image; return its size. */
static uint8_t build_id_of(const struct object *object, uint8_t out[BUILD_ID_MAX])
{
	/*
	 * Acquire: pairs with publish() of image_cache.c; images leave on this
	 * thread only.
	 */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	const uint8_t *id = object->identity.build_id;
	uint8_t size = object->identity.build_id_size;

	if (!size && image) {
		id = image->build_id;
		size = image->build_id_size;
	}
	size = MIN(size, (uint8_t)BUILD_ID_MAX);
	memcpy(out, id, size);
	return size;
}

static void start(struct fetch_desk *d, uint32_t id)
{
	const struct object *object = objects_at(d->objects, id);
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct fetch *f;

	if (!object || object->identity.kind != OBJECT_FILE) {
		tell(d, "cannot fetch debug symbols: not a file: %s",
		     object ? object->name.str : "unknown object");
		return;
	}
	if (getauxval(AT_SECURE)) {
		tell(d, "cannot fetch debug symbols: proftop runs with file capabilities: "
			"run it as root");
		return;
	}
	if (!urls || !*urls) {
		tell(d, "no debuginfod server: set DEBUGINFOD_URLS, as in "
			"DEBUGINFOD_URLS=https://debuginfod.debian.net, and restart");
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->job.run = run;
	f->job.drop = drop;
	f->object = id;
	f->build_id_size = build_id_of(object, f->build_id);
	snprintf(f->name, sizeof(f->name), "%s", object->name.str);
	if (!f->build_id_size) {
		tell(d, "%s has no build-id, by which servers know it", f->name);
	} else if (!helpers_start(d->helpers, &f->job)) {
		tell(d, "fetching debug symbols for %s; D cancels", f->name);
		d->job = f;
		return;
	} else {
		tell(d, "too many files are being read: try again in a moment");
	}
	free(f);
}

/* Report the result. */
static void tell_end(struct fetch_desk *d, const struct fetch *f)
{
	bool cancelled = atomic_load_explicit(&f->job.watch.cancel, memory_order_relaxed);

	if (!f->rc)
		tell(d, "fetched debug symbols for %s", f->name);
	else if (cancelled)
		tell(d, "cancelled fetching debug symbols for %s", f->name);
	else if (f->rc == -ELIBACC)
		tell(d, "libdebuginfod is not installed (Debian: apt-get install libdebuginfod1)");
	else if (f->refused)
		tell(d, "cannot fetch debug symbols: cannot take the rights of the invoking user: "
			"CAP_SETUID and CAP_SETGID are needed");
	else if (f->missing[0])
		tell(d,
		     "cannot fetch debug symbols: cannot make the cache %.100s: %s: set "
		     "DEBUGINFOD_CACHE_PATH to a folder, and restart",
		     f->missing, strerror(-f->rc));
	else if (f->rc == -ENOENT)
		tell(d, "no server has debug symbols for %s", f->name);
	else
		tell(d, "cannot fetch debug symbols for %s: %s", f->name, strerror(-f->rc));
}

static void tell_progress(struct fetch_desk *d, const struct fetch *f, uint64_t now_ns)
{
	const struct watch *w = &f->job.watch;
	double mib = (double)atomic_load_explicit(&w->done, memory_order_relaxed) / 1048576;

	if (now_ns < d->tell_ns)
		return;
	d->tell_ns = now_ns + TELL_NS;
	/* The figures count the servers, which are tried first. */
	if (atomic_load_explicit(&w->total, memory_order_relaxed) > 65536)
		tell(d, "fetching debug symbols for %s: %.1f MiB, %u %%; D cancels", f->name, mib,
		     watch_permille(w) / 10);
}

/* Take the requested object; the object in transfer requested again: cancel. */
static uint32_t take_wanted(struct fetch_desk *d)
{
	uint32_t wanted;

	pthread_mutex_lock(&d->lock);
	wanted = d->wanted;
	d->wanted = OBJECT_ID_UNKNOWN;
	pthread_mutex_unlock(&d->lock);
	if (wanted == OBJECT_ID_UNKNOWN || !d->job)
		return wanted;
	if (wanted == d->job->object)
		atomic_store_explicit(&d->job->job.watch.cancel, true, memory_order_relaxed);
	else
		tell(d, "still fetching debug symbols for %s: try again later", d->job->name);
	return OBJECT_ID_UNKNOWN;
}

uint32_t fetch_serve(struct fetch_desk *d, uint64_t now_ns)
{
	uint32_t wanted = take_wanted(d), came = OBJECT_ID_UNKNOWN;
	struct fetch *f;

	if (wanted != OBJECT_ID_UNKNOWN) {
		d->tell_ns = now_ns + TELL_NS;
		start(d, wanted);
	}
	f = d->job;
	if (!f)
		return OBJECT_ID_UNKNOWN;
	if (!helper_job_done(&f->job)) {
		tell_progress(d, f, now_ns);
		return OBJECT_ID_UNKNOWN;
	}
	tell_end(d, f);
	if (!f->rc)
		came = f->object;
	f->job.drop(&f->job);
	d->job = NULL;
	return came;
}

bool fetch_busy(const struct fetch_desk *d)
{
	return d->job;
}
