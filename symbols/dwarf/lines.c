// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined functions of sampled places: the file with the debug information of an object
 * found and checked, requests to the sandbox, answers that are checked before use; look-up by
 * object, result by place.
 *
 * Runs on: the loader; run_*() on a helper, for a debug file may hang as any other and its index
 * takes seconds. One job at a time.
 */
#include "symbols/dwarf/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/name/name.h"
#include "symbols/name/naming.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

/*
 * The client's side of DWARF in the sandbox: the file with the debug information of an object found
 * and checked, requests, answers that are checked before use.
 *
 * Runs on: a helper.
 */

#define DWZ_FOLDER "/.dwz/"

/* Check whether DWARF of this file may be read, by its owner. 0, -EPERM or -EINVAL. */
static int dwarf_open_permitted(int fd)
{
	struct stat st;

	assert(fd >= 0);
	if (fstat(fd, &st))
		return -EINVAL;
	/* With file capabilities the caller is not trusted either. */
	return !st.st_uid || (st.st_uid == geteuid() && !getauxval(AT_SECURE)) ? 0 : -EPERM;
}

/*
 * Open @path below the root of @where (@there) or ours, if it has this build-id and its owner could
 * as well have written the file that refers to it. Return a descriptor or -errno.
 */
static int open_dwz(const char *path, const struct elfdwarf_alt *alt,
		    const struct debugfile_where *where, bool there)
{
	struct untrusted_want want = {
		.pid = there ? where->pid : 0,
		.root = there ? where->root : NULL,
		.path = path,
		.size_max = ELFDWARF_SIZE_MAX,
	};
	struct elffacts_input in = { .fd = -1 };
	struct untrusted_file file;
	struct elffacts facts;
	struct stat own, st;
	int rc = untrusted_open(&want, &file, NULL);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc)
		rc = facts.dwarf;
	if (!rc)
		rc = dwarf_open_permitted(file.fd);
	if (rc == -EPERM && !fstat(where->fd, &own) && !fstat(file.fd, &st) &&
	    own.st_uid == st.st_uid)
		rc = 0;
	if (!rc && (facts.names.build_id_size != alt->id_size ||
		    memcmp(facts.names.build_id, alt->id, alt->id_size)))
		rc = -ENOENT;
	if (rc) {
		close(file.fd);
		return rc;
	}
	return file.fd;
}

/* Places of a dwz file: by build-id, where distributions have them, and as the link says. */
enum dwz_place { DWZ_BY_ID, DWZ_INSTALLED, DWZ_LINK, DWZ_LINK_DEBUG, DWZ_PLACES };

/* Write the path of a place. False: there is none. */
static bool dwz_path(const struct elfdwarf_alt *alt, enum dwz_place place,
		     const struct debugfile_where *where, char path[PATH_MAX])
{
	const char *rest = strstr(alt->link, DWZ_FOLDER), *slash;
	bool absolute = alt->link[0] == '/';
	int size;

	switch (place) {
	case DWZ_BY_ID:
		return debugfile_path(alt->id, alt->id_size, path, PATH_MAX);
	case DWZ_INSTALLED:
		while (rest && strstr(rest + 1, DWZ_FOLDER))
			rest = strstr(rest + 1, DWZ_FOLDER);
		if (!rest || strstr(rest, "/../"))
			return false;
		size = snprintf(path, PATH_MAX, "%s%s", where->folder, rest);
		break;
	default:
		/* A relative one begins in the folder of the file that refers to it. */
		slash = where->path ? strrchr(where->path, '/') : NULL;
		if (absolute ? place != DWZ_LINK : !slash || where->path[0] != '/')
			return false;
		size = snprintf(path, PATH_MAX, "%.*s%s%s",
				absolute ? 0 : (int)(slash - where->path + 1),
				absolute ? "" : where->path, place == DWZ_LINK ? "" : ".debug/",
				alt->link);
	}
	return size > 0 && size < PATH_MAX;
}

/* Find the dwz file: below the root of the object, as of a container, and below ours. */
static int find_dwz(const struct elfdwarf_alt *alt, const struct debugfile_where *where)
{
	bool elsewhere = where->pid > 0 || where->root;
	char path[PATH_MAX];
	int fd = -ENOENT;

	for (int there = elsewhere; there >= 0; there--)
		for (enum dwz_place i = 0; i < DWZ_PLACES && fd < 0; i++)
			if (dwz_path(alt, i, where, path))
				fd = open_dwz(path, alt, where, there);
	return fd;
}

/*
 * Open the dwz file that a file with @facts refers to: *fd, which the caller closes; -1: it refers
 * to none. 0, -ENOLINK when it is missing, -EBADMSG.
 */
static int dwarf_open_find_alt(const struct elffacts *facts, const struct debugfile_where *where,
			       int *fd)
{
	*fd = -1;
	if (facts->alt_rc)
		return facts->alt_rc == -ENOENT ? 0 : facts->alt_rc;
	*fd = find_dwz(&facts->alt, where);
	return *fd < 0 ? -ENOLINK : 0;
}

/* The CPU time limits of dwarf.h, on a machine with other work. */
#define CALL_TIMEOUT_NS 4000000000ULL

struct dwarf_sandbox {
	const struct sandbox_reader *reader;
	uint32_t handle, generation;
	uint64_t size;
	bool split;
	int split_rc; /* dwarf_sandbox_split() */
	/* Of an object with split files: as in untrusted_want, and its owner. */
	char *path, *root;
	pid_t pid;
	uid_t uid;
};

/* An answer as it is read: everything in it is foreign. */
struct answer {
	const uint8_t *at, *end;
	const char *texts; /* the last byte is NUL */
	size_t texts_size;
};

/*
 * Choose the worker for a file. One that a stranger wrote may take over its worker, which then must
 * not have the files of others.
 */
static int choose_reader(struct dwarf_sandbox *d, int fd)
{
	int rc = dwarf_open_permitted(fd);

	d->reader = rc ? &dwarf_sandbox_others : &dwarf_sandbox_reader;
	return rc == -EPERM && sandbox_is_on() ? 0 : rc;
}

/*
 * 0, -ENODATA (no DWARF), -ETIME, -EBADMSG, -ENOMEM; -EPERM (owned by another user), -EFBIG,
 * -ENOLINK (its dwz file is missing) and the errors of sandbox_call(). @where: the object, to find
 * its dwz file; where->fd is the one that refers to it.
 */
static int dwarf_sandbox_open(struct dwarf_sandbox **out, const struct untrusted_file *file,
			      const struct elffacts *facts, const struct debugfile_where *where,
			      uint64_t bias, bool no_lines)
{
	struct dwarf_wire_request r = {
		.kind = DWARF_WIRE_OPEN,
		.bias = bias,
		.no_lines = no_lines,
	};
	int fds[SANDBOX_FDS_MAX] = { file->fd, -1 };
	struct dwarf_sandbox *d = calloc(1, sizeof(*d));
	struct dwarf_wire_opened opened;
	struct sandbox_answer a;
	int rc = d ? facts->dwarf : -ENOMEM;

	if (!rc)
		rc = choose_reader(d, file->fd);
	if (!rc)
		rc = dwarf_open_find_alt(facts, where, &fds[1]);
	r.size = file->size;
	r.alt = fds[1] >= 0;
	if (!rc)
		rc = sandbox_call(d->reader, &r, sizeof(r), fds, 0, DWARF_SANDBOX_OPEN_NS, &a);
	if (fds[1] >= 0)
		close(fds[1]);
	if (!rc && a.size != sizeof(opened)) {
		free(a.bytes);
		rc = -EBADMSG;
	}
	if (rc) {
		free(d);
		return rc;
	}
	memcpy(&opened, a.bytes, sizeof(opened));
	d->size = facts->dwarf_size;
	d->handle = opened.handle;
	d->split = opened.split;
	d->generation = a.generation;
	free(a.bytes);
	*out = d;
	return 0;
}

void dwarf_sandbox_close(struct dwarf_sandbox *d)
{
	struct dwarf_wire_request r = { .kind = DWARF_WIRE_CLOSE };
	struct sandbox_answer a;

	if (!d)
		return;
	r.handle = d->handle;
	if (!sandbox_call(d->reader, &r, sizeof(r), NULL, d->generation, CALL_TIMEOUT_NS, &a))
		free(a.bytes);
	free(d->path);
	free(d->root);
	free(d);
}

/*
 * Return whether all split files that were wanted were read: 0; -ENOTSUP: one is missing, -EACCES:
 * it is of another user, -E2BIG: too large, -ELIBBAD: damaged, or not of this program. -EUCLEAN:
 * lines or names of the file are damaged.
 */
static int dwarf_sandbox_split(const struct dwarf_sandbox *d)
{
	return d->split_rc;
}

/* Return the bytes of debug sections. */
static uint64_t dwarf_sandbox_size(const struct dwarf_sandbox *d)
{
	return d->size;
}

/* Take @size bytes of the answer; NULL: it is shorter. */
static const uint8_t *take(struct answer *a, size_t size)
{
	const uint8_t *at = a->at;

	assert(a->at <= a->end);
	if (size > (size_t)(a->end - a->at))
		return NULL;
	a->at += size;
	return at;
}

/* Take the head of an answer: the texts are at its end. False: invalid. */
static bool take_head(struct answer *a, const struct sandbox_answer *from,
		      struct dwarf_wire_head *h)
{
	const uint8_t *at;

	*a = (struct answer){ .at = from->bytes, .end = from->bytes + from->size };
	at = take(a, sizeof(*h));
	if (!at)
		return false;
	memcpy(h, at, sizeof(*h));
	if (h->texts_size > (size_t)(a->end - a->at))
		return false;
	a->end -= h->texts_size;
	a->texts = (const char *)a->end;
	a->texts_size = h->texts_size;
	return !a->texts_size || !a->texts[a->texts_size - 1];
}

/* Get the text at @offset; false: outside. */
static bool text_at(const struct answer *a, uint32_t offset, const char **text)
{
	*text = NULL;
	if (offset == DWARF_WIRE_NONE)
		return true;
	if (offset >= a->texts_size)
		return false;
	*text = a->texts + offset;
	return true;
}

static bool take_frame(struct answer *a, struct dwarf_frame *out)
{
	struct dwarf_wire_frame f;
	const uint8_t *at = take(a, sizeof(f));

	if (!at)
		return false;
	memcpy(&f, at, sizeof(f));
	out->line = f.line;
	out->start = f.start;
	out->identity = f.identity[0] | (uint64_t)f.identity[1] << 32;
	return text_at(a, f.name, &out->name) && text_at(a, f.file, &out->file) &&
	       text_at(a, f.dir, &out->dir);
}

/* Read @nr lengths of chains; false: impossible ones. *sum: of their frames. */
static bool take_lengths(struct answer *a, uint32_t nr, struct dwarf_chains *out, uint32_t *sum)
{
	const uint8_t *at = take(a, nr * sizeof(int32_t));

	assert(nr <= DWARF_SANDBOX_PLACES);
	*sum = 0;
	for (uint32_t i = 0; at && i < nr; i++) {
		int32_t n;

		memcpy(&n, at + i * sizeof(n), sizeof(n));
		if (n > (int32_t)DWARF_FRAMES_MAX || (n < 0 && n != -ETIME))
			return false;
		out->nr_frames[i] = n;
		out->first[i] = *sum;
		*sum += (uint32_t)MAX(n, 0);
	}
	return at;
}

/* A split file that the worker wants; the texts are in its answer. */
struct wanted {
	const char *name, *dir; /* name NULL: none is wanted */
	uint32_t unit;
	bool damaged; /* lines or names of the file */
};

/* Fill @out from @from, of @nr places, and take over its bytes. False: invalid. */
static bool take_chains(const struct sandbox_answer *from, const uint64_t *vaddrs, uint32_t nr,
			struct dwarf_chains *out, struct wanted *w)
{
	struct dwarf_wire_head h;
	struct answer a;
	uint32_t sum;

	*out = (struct dwarf_chains){ .texts = from->bytes };
	*w = (struct wanted){ .name = NULL };
	if (!take_head(&a, from, &h) || h.nr > nr || !take_lengths(&a, h.nr, out, &sum))
		return false;
	if (h.wanted && (!text_at(&a, h.wanted_name, &w->name) ||
			 !text_at(&a, h.wanted_dir, &w->dir) || !w->name))
		return false;
	w->unit = h.wanted - 1;
	w->damaged = h.damaged;
	/* One at least, or the same call would be made again and again. */
	if (!h.nr && !w->name)
		return false;
	out->nr = h.nr;
	out->frames = calloc(MAX(sum, 1U), sizeof(*out->frames));
	if (!out->frames)
		return false;
	for (uint32_t i = 0; i < sum; i++)
		if (!take_frame(&a, &out->frames[i]))
			return false;
	/* The last one of a chain is the function of the place, which has its name elsewhere. */
	for (uint32_t i = 0; i < out->nr; i++)
		if (out->nr_frames[i] > 0 && !(vaddrs[i] & DWARF_NAMELESS) &&
		    out->frames[out->first[i] + (uint32_t)out->nr_frames[i] - 1].name)
			return false;
	return a.at == a.end;
}

#define PACKAGE_MAX (8ULL << 30)

/*
 * Open a split file at @path: of the owner of the program or of root, as a debug file beside it. In
 * the root of the object, then in ours.
 */
static int open_split(const struct dwarf_sandbox *d, const char *path, uint64_t max,
		      struct untrusted_file *out)
{
	struct untrusted_want want = {
		.path = path,
		.size_max = max,
		.pid = d->pid,
		.root = d->root,
		.owned = true,
		.linked = true,
		.uid = d->uid,
	};
	int rc = untrusted_open(&want, out, NULL);

	if (rc != -ENOENT || (d->pid <= 0 && !d->root))
		return rc;
	want.pid = 0;
	want.root = NULL;
	return untrusted_open(&want, out, NULL);
}

/* Write place @i where the split file may be; false: there are no more. An empty one is left out.
 */
static bool split_path(const struct dwarf_sandbox *d, const struct wanted *w, int i,
		       char path[PATH_MAX])
{
	const char *slash = d->path ? strrchr(d->path, '/') : NULL, *base = strrchr(w->name, '/');
	int folder = slash ? (int)(slash - d->path) : 0;
	bool below = w->name[0] != '/' && w->dir && *w->dir;
	char named[PATH_MAX];
	int size;

	path[0] = '\0';
	size = snprintf(named, sizeof(named), "%s%s%s", below ? w->dir : "", below ? "/" : "",
			w->name);
	if (size >= (int)sizeof(named) || i > 2 || (i && !slash))
		return false;
	/* As it is named, or from the folder of the program on; there; by its last part, there. */
	if (!i)
		size = named[0] == '/' ? snprintf(path, PATH_MAX, "%s", named)
		       : slash	       ? snprintf(path, PATH_MAX, "%.*s/%s", folder, d->path, named)
				       : 0;
	else if (i == 1 ? w->name[0] != '/' : base != NULL)
		size = snprintf(path, PATH_MAX, "%.*s/%s", folder, d->path,
				i == 1 ? w->name : base + 1);
	if (size >= PATH_MAX)
		path[0] = '\0';
	return true;
}

/* Send a split file or a package; -1: there is none. */
static int send_split(struct dwarf_sandbox *d, enum dwarf_wire_kind kind, uint32_t unit, int fd,
		      uint64_t size)
{
	const int fds[SANDBOX_FDS_MAX] = { fd, -1 };
	struct dwarf_wire_request r = {
		.kind = kind,
		.handle = d->handle,
		.unit = unit,
		.size = size,
	};
	struct sandbox_answer a;
	int rc = sandbox_call(d->reader, &r, sizeof(r), fds, d->generation, CALL_TIMEOUT_NS, &a);

	if (!rc)
		free(a.bytes);
	return rc;
}

/* Return dwarf_sandbox_split() for an error of opening or reading a split file. */
static int split_state(int rc)
{
	switch (rc) {
	case -EPERM:
	case -EACCES:
	case -EMLINK:
		return -EACCES;
	case -EFBIG:
	case -ENOMEM:
		return -E2BIG;
	case -EBADMSG:
	case -ENOEXEC:
	case -ESRCH: /* another unit is in it */
		return -ELIBBAD;
	default:
		return -ENOTSUP;
	}
}

/* Find the file that the worker wants and send it. 0, or an error of sandbox_call(). */
static int send_wanted(struct dwarf_sandbox *d, const struct wanted *w)
{
	struct untrusted_file file = { .fd = -1 };
	char path[PATH_MAX];
	int rc = -ENOENT;

	for (int i = 0; rc && split_path(d, w, i, path); i++) {
		int next = path[0] ? open_split(d, path, ELFDWARF_SIZE_MAX, &file) : -ENOENT;

		/* A missing file says less than one that is refused. */
		rc = next == -ENOENT ? rc : next;
	}
	if (!rc) {
		rc = send_split(d, DWARF_WIRE_SPLIT, w->unit, file.fd, file.size);
		close(file.fd);
		if (rc == -ESTALE || rc == -EPIPE || rc == -ETIME || !rc)
			return rc;
	}
	d->split_rc = split_state(rc);
	return send_split(d, DWARF_WIRE_SPLIT, w->unit, -1, 0);
}

/* As dwarf_sandbox_chains(); no chain: *w is wanted. */
static int ask_chains(struct dwarf_sandbox *d, const uint64_t *vaddrs, uint32_t nr,
		      struct dwarf_chains *out, struct wanted *w)
{
	struct dwarf_wire_request r = {
		.kind = DWARF_WIRE_CHAINS,
		.handle = d->handle,
		.nr = nr,
	};
	struct sandbox_answer a;
	int rc;

	assert(vaddrs || !nr);
	assert(nr <= DWARF_SANDBOX_PLACES);
	memcpy(r.vaddrs, vaddrs, nr * sizeof(*vaddrs));
	rc = sandbox_call(d->reader, &r, sizeof(r), NULL, d->generation, CALL_TIMEOUT_NS, &a);
	if (rc)
		return rc;
	if (take_chains(&a, vaddrs, nr, out, w)) {
		if (w->damaged && !d->split_rc)
			d->split_rc = -EUCLEAN;
		return 0;
	}
	dwarf_chains_free(out);
	return -EBADMSG;
}

int dwarf_sandbox_chains(struct dwarf_sandbox *d, const uint64_t *vaddrs, uint32_t nr,
			 struct dwarf_chains *out)
{
	struct wanted w;
	int rc = ask_chains(d, vaddrs, nr, out, &w);

	assert(out && (vaddrs || !nr));
	if (rc || out->nr)
		return rc;
	rc = send_wanted(d, &w);
	dwarf_chains_free(out);
	if (!rc)
		rc = ask_chains(d, vaddrs, nr, out, &w);
	if (!rc && !out->nr) {
		/* It has the file, or knows that there is none. */
		dwarf_chains_free(out);
		rc = -EBADMSG;
	}
	return rc;
}

void dwarf_chains_free(struct dwarf_chains *c)
{
	free(c->frames);
	free(c->texts);
	*c = (struct dwarf_chains){ 0 };
}

/* Pass on the rows: in order, inside of the code. False: invalid. */
static bool pass_rows(const struct sandbox_answer *from, uint64_t vaddr, uint64_t size,
		      dwarf_line_fn fn, void *ctx)
{
	struct dwarf_wire_head h;
	uint64_t last = 0;
	struct answer a;

	if (!take_head(&a, from, &h) || h.nr > DWARF_SANDBOX_ROWS)
		return false;
	for (uint32_t i = 0; i < h.nr; i++) {
		const uint8_t *at = take(&a, sizeof(uint64_t));
		struct dwarf_frame frame;
		uint64_t start;

		if (!at || !take_frame(&a, &frame))
			return false;
		memcpy(&start, at, sizeof(start));
		/* The first row may begin before the code. */
		if ((i && start < last) || (start > vaddr && start - vaddr >= size))
			return false;
		last = start;
		fn(ctx, start, &frame);
	}
	return a.at == a.end;
}

int dwarf_sandbox_lines(struct dwarf_sandbox *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn,
			void *ctx)
{
	struct dwarf_wire_request r = {
		.kind = DWARF_WIRE_LINES,
		.handle = d->handle,
		.size = size,
		.nr = 1,
		.vaddrs = { vaddr },
	};
	struct sandbox_answer a;
	int rc = sandbox_call(d->reader, &r, sizeof(r), NULL, d->generation, CALL_TIMEOUT_NS, &a);

	if (rc)
		return rc;
	rc = pass_rows(&a, vaddr, size, fn, ctx) ? 0 : -EBADMSG;
	free(a.bytes);
	return rc;
}

/*
 * Find the debug information of an object, in the object or in its debug file, and open it.
 *
 * Runs on: a helper.
 */

/* Replace the object by the file with its debug information, if that is another one. */
static int to_debug_file(const struct elffacts_input *in, const struct debugfile_where *where,
			 struct untrusted_file *file, struct elffacts *facts, uint64_t *bias)
{
	struct untrusted_file debug;
	struct elffacts found;
	int rc;

	*bias = 0;
	if (facts->dwarf != -ENODATA)
		return 0;
	rc = elffacts_open_debug(in, facts, where, &debug, &found, bias);
	if (rc)
		return rc;
	close(file->fd);
	*file = debug;
	*facts = found;
	return 0;
}

/* Keep the place of the object, for its split files, and send the package of them if there is one.
 */
static void find_splits(struct dwarf_sandbox *d, const struct load_where *where, int fd)
{
	const struct load_where *w = where;
	char path[PATH_MAX];
	struct untrusted_file file;
	struct stat st;

	d->path = w->seen.path ? strdup(w->seen.path) : NULL;
	d->root = w->root ? strdup(w->root) : NULL;
	d->pid = w->seen.pid;
	d->uid = fstat(fd, &st) ? 0 : st.st_uid;
	for (int i = 0; d->path && i < 2; i++) {
		int size =
			snprintf(path, sizeof(path), "%s%s.dwp", i ? DEBUGFILE_ROOT : "", d->path);

		if (size >= (int)sizeof(path) || open_split(d, path, PACKAGE_MAX, &file))
			continue;
		send_split(d, DWARF_WIRE_PACKAGE, 0, file.fd, file.size);
		close(file.fd);
		return;
	}
}

int dwarf_object_open(const struct load_where *where, bool no_lines, int *code,
		      struct dwarf_sandbox **out)
{
	struct debugfile_where place = {
		DEBUGFILE_ROOT, where->seen.path, where->seen.pid, where->root, -1, NULL
	};
	struct elffacts_input in = { .fd = -1 };
	struct untrusted_file file;
	struct elffacts facts;
	uint64_t bias;
	int rc = load_open(where, NULL, &file);

	if (code)
		*code = -1;
	if (rc)
		return rc;
	in.fd = place.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc && !load_is_of_image(where, facts.names.build_id, facts.names.build_id_size))
		rc = -ESTALE;
	if (!rc && code)
		*code = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	if (!rc && out)
		rc = to_debug_file(&in, &place, &file, &facts, &bias);
	place.fd = file.fd;
	if (!rc && out)
		rc = dwarf_sandbox_open(out, &file, &facts, &place, bias, no_lines);
	if (!rc && out && (*out)->split)
		find_splits(*out, where, file.fd);
	close(file.fd);
	return rc;
}

const char *dwarf_object_words(int code)
{
	switch (code) {
	case 0:
		return "with debug information";
	case -ENODATA:
	case -ENOENT:
	case -ESTALE:
	case -ENOEXEC: /* no ELF file: it can have none */
		return NULL;
	case -ENOTSUP:
		return OBJECT_DEBUG_NOT_READ "a split file (.dwo) with inlined functions is "
					     "missing";
	case -EACCES:
		return OBJECT_DEBUG_NOT_READ "a split file (.dwo) is of another user";
	case -E2BIG:
		return OBJECT_DEBUG_NOT_READ "a split file (.dwo) is too large";
	case -ELIBBAD:
		return OBJECT_DEBUG_NOT_READ "a split file (.dwo) is damaged, or of another build";
	case -EUCLEAN:
		return OBJECT_DEBUG_NOT_READ "its lines or its names are damaged";
	case -ENOLINK:
		return OBJECT_DEBUG_NOT_READ "the file that it shares with others (dwz) is missing";
	case -EPERM:
		return OBJECT_DEBUG_NOT_READ "it is of another user";
	case -EFBIG:
		return OBJECT_DEBUG_NOT_READ "it is too large";
	case -ETIME:
		return OBJECT_DEBUG_NOT_READ "it takes too long";
	case -EPIPE:
	case -EBADMSG:
		return OBJECT_DEBUG_NOT_READ "it is damaged, or in an unknown format";
	default:
		return OBJECT_DEBUG_NOT_READ "its file cannot be read";
	}
}

#define IDLE_NS 10000000000ULL /* an unused file is closed after that */

/*
 * The limit of a job: it hangs then, and its file is not read again. A call takes a quarter at
 * most, on a busy machine; a job may wait for calls of the code view.
 */
#define JOB_MAX_NS (4 * 2 * DWARF_SANDBOX_OPEN_NS)

#define JOB_PLACES	DWARF_SANDBOX_PLACES
#define OPEN_MAX	16U
#define OPEN_SIZE_MAX	(256ULL << 20)
#define LATE_MAX	3U /* look-ups that took too long: no more in that file */
#define LOST_MAX	3U /* workers that a file lost without a result in between */
#define IMAGE_CACHE_MAX 65536U

/* Fewer places wait for others: 1/20 of the age of the session, 500 ms at most. */
#define FEW_PLACES 64U

#define FEW_WAIT_NS    500000000ULL
#define FEW_WAIT_SHARE 20

struct lines_object {
	uint32_t object;
	uint32_t *queue;
	uint32_t nr, max;
	struct dwarf_sandbox
		*file; /* used by one thread at a time; NULL: closed, or lent to a job */
	uint64_t used_ns;
	int code; /* the object itself, with its calls; the same; -1: closed, or lent */
	uint32_t nr_late, nr_lost;
	bool refused; /* its debug information, permanently */
	bool left;    /* the object: it hangs, or is not there */
};

/* A job: open a file, look some places up, or close it. A job that hangs keeps its file. */
struct lines_job {
	struct job job;
	struct load_where where; /* to open */
	bool no_lines, code_only;
	struct dwarf_sandbox *file; /* to look up in, or just opened; NULL: none */
	int code;		    /* the same of the object; -1: none */
	struct lines_object *of;    /* the loader's, not used by the job */
	uint64_t began_ns;
	int rc;	   /* of opening, or of the look-up */
	bool lost; /* the worker that had the file open was replaced: open it again */
	uint32_t nr;
	uint32_t places[JOB_PLACES];
	uint64_t vaddrs[JOB_PLACES], offsets[JOB_PLACES];
	bool nameless[JOB_PLACES];
	uint16_t machine;
	/* The result: of the first places; and functions that a call there leads through. */
	struct dwarf_chains chains;
	uint32_t nr_tails[JOB_PLACES];
	uint64_t tails[JOB_PLACES][TAIL_CALLS_MAX];
};

void lines_init(struct lines *l, const struct image_cache *images, struct places *places,
		struct symtab *symtab, struct inlines *chains)
{
	memset(l, 0, sizeof(*l));
	l->images = images;
	l->places = places;
	l->symtab = symtab;
	l->chains = chains;
	l->began_ns = time_now_ns();
}

static void drop_job(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	dwarf_sandbox_close(j->file);
	if (j->code >= 0)
		close(j->code);
	load_where_fini(&j->where);
	dwarf_chains_free(&j->chains);
	free(j);
}

static struct lines_job *new_job(void (*run)(struct job *job), struct dwarf_sandbox *file, int code)
{
	struct lines_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop_job;
	j->file = file;
	j->code = code;
	return j;
}

static void run_close(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	dwarf_sandbox_close(j->file);
	j->file = NULL;
	if (j->code >= 0)
		close(j->code);
	j->code = -1;
}

static bool is_open(const struct lines_object *o)
{
	return o->file || o->code >= 0;
}

/* Have the files of @o closed, by a helper: even closing may hang. */
static void close_object(struct lines *l, struct lines_object *o)
{
	struct lines_job *j = is_open(o) ? new_job(run_close, o->file, o->code) : NULL;

	if (!j)
		return;
	o->file = NULL;
	o->code = -1;
	if (helpers_start(l->images->helpers, &j->job))
		j->job.drop(&j->job);
	else
		helper_job_leave(&j->job);
}

void lines_fini(struct lines *l)
{
	if (l->job)
		helper_job_leave(&l->job->job);
	l->job = NULL;
	for (uint32_t i = 0; i < l->nr_list; i++) {
		close_object(l, l->list[i]);
		free(l->list[i]->queue);
		free(l->list[i]);
	}
	free(l->list);
	free(l->by_object);
	demangler_fini(&l->demangler);
	l->list = NULL;
	l->by_object = NULL;
	l->nr_list = l->nr_by_object = 0;
}

static struct lines_object *object_of(struct lines *l, uint32_t object)
{
	struct lines_object **list, *o;

	if (object < l->nr_by_object && l->by_object[object])
		return l->list[l->by_object[object] - 1];
	if (l->nr_list == IMAGE_CACHE_MAX ||
	    !array_reserve_zeroed(&l->by_object, &l->nr_by_object, object + 1ULL))
		return NULL;
	list = reallocarray(l->list, l->nr_list + 1, sizeof(*list));
	if (!list)
		return NULL;
	l->list = list;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->object = object;
	o->code = -1;
	list[l->nr_list++] = o;
	l->by_object[object] = l->nr_list;
	return o;
}

static void count_waiting(struct lines *l, long nr)
{
	/* Pairs with symbols_stats(): of a place that waits no longer, the lines are there. */
	atomic_fetch_add_explicit(&l->nr_waiting, (unsigned long)nr, memory_order_release);
}

void lines_add(struct lines *l, uint32_t id)
{
	const struct place *place = l->off ? NULL : places_at(l->places, id);
	const struct object *object = place ? objects_at(l->images->objects, place->object) : NULL;
	struct lines_object *o;

	if (!object || object->identity.kind != OBJECT_FILE)
		return;
	o = object_of(l, place->object);
	if (!o || o->left)
		return;
	if (!array_reserve(&o->queue, &o->max, o->nr + 1ULL))
		return;
	o->queue[o->nr++] = id;
	count_waiting(l, 1);
}

static uint32_t moved(const uint32_t *ids, uint32_t nr_ids, uint32_t id)
{
	return id < nr_ids ? ids[id] - 1 : PLACE_NONE;
}

void lines_move(struct lines *l, struct places *places, struct inlines *chains, const uint32_t *ids,
		uint32_t nr_ids)
{
	_Static_assert(PLACE_NONE == 0U - 1, "0 in ids is no place");
	l->places = places;
	l->chains = chains;
	for (uint32_t i = 0; i < l->nr_list; i++) {
		struct lines_object *o = l->list[i];
		uint32_t nr = 0;

		for (uint32_t k = 0; k < o->nr; k++) {
			uint32_t id = moved(ids, nr_ids, o->queue[k]);

			if (id != PLACE_NONE)
				o->queue[nr++] = id;
		}
		count_waiting(l, (long)nr - (long)o->nr);
		o->nr = nr;
	}
	/* The helper does not use them. */
	for (uint32_t i = 0; l->job && i < l->job->nr; i++)
		l->job->places[i] = moved(ids, nr_ids, l->job->places[i]);
}

static int inlines_put(struct inlines *c, uint32_t place, const struct symbol_frame *frames,
		       uint32_t nr);

static uint32_t inlines_intern_file(struct inlines *c, uint32_t object, const char *path);

void lines_told(struct lines *l, uint32_t id, const char *file, uint32_t line)
{
	struct symbol_frame frame = { .symbol = SYMBOL_NONE, .line = line };
	const struct place *place = places_at(l->places, id);
	uint32_t nr;

	if (l->off || !place || inlines_at(l->chains, id, &nr))
		return;
	frame.file = inlines_intern_file(l->chains, place->object, file);
	if (!inlines_put(l->chains, id, &frame, 1))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* The function of a Java method: of any code compiled from it (naming's set_java()). */
static uint32_t java_symbol(struct lines *l, const char *name)
{
	struct naming_found f = { .text.kind = LANG_JAVA };
	uint32_t id;

	naming_share(&f, naming_shared_object(l->images->objects, "[java]"), name, strlen(name));
	naming_found_module(&f, "[java]", sizeof("[java]") - 1);
	id = symtab_find_named(l->symtab, &f.key, &f.text);
	return id == SYMBOL_NONE ? symtab_add(l->symtab, &f.key, &f.text) : id;
}

void lines_java(struct lines *l, const struct jvm_table_chain *chain)
{
	const struct place *place = places_at(l->places, chain->place);
	const struct objects *objects = l->images->objects;
	struct symbol_frame out[DWARF_FRAMES_MAX];
	uint32_t nr = MIN(chain->nr, DWARF_FRAMES_MAX), skip = chain->nr - nr, was;

	/* Since then the id may have become that of a place in another process. */
	if (l->off || !nr || !place || place->offset != chain->addr ||
	    objects_at(objects, place->object)->identity.owner !=
		    objects_at(objects, chain->object)->identity.owner ||
	    inlines_at(l->chains, chain->place, &was))
		return;
	/* Of a chain that is too long the outermost ones: the last is the place's symbol. */
	for (uint32_t i = 0; i < nr; i++) {
		const struct jvm_read_job_frame *f = &chain->frames[skip + i];

		out[i].symbol = i + 1 < nr ? java_symbol(l, f->name) : SYMBOL_NONE;
		if (i + 1 < nr && out[i].symbol == SYMBOL_NONE)
			return;
		out[i].line = f->line;
		out[i].file = *f->file ? inlines_intern_file(l->chains, place->object, f->file)
				       : SYMBOL_NO_FILE;
	}
	if (nr == 1 && !out[0].line)
		return;
	if (!inlines_put(l->chains, chain->place, out, nr))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* Give up the look-ups of @o. */
static void leave(struct lines *l, struct lines_object *o)
{
	close_object(l, o);
	o->left = true;
	count_waiting(l, -(long)o->nr);
	free(o->queue);
	o->queue = NULL;
	o->nr = o->max = 0;
}

void lines_again(struct lines *l, uint32_t object)
{
	struct lines_object *o = object_of(l, object);

	if (!o)
		return;
	close_object(l, o);
	o->refused = o->left = false;
	o->nr_late = o->nr_lost = 0;
}

static void run_open(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	j->rc = dwarf_object_open(&j->where, j->no_lines, &j->code, j->code_only ? NULL : &j->file);
}

/* Find the functions that the calls before the places lead through. */
static void find_tails(struct lines_job *j)
{
	struct derive_file f = { .fd = j->code, .machine = j->machine };

	for (uint32_t i = 0; j->code >= 0 && i < j->nr; i++) {
		f.bias = j->vaddrs[i] - j->offsets[i];
		j->nr_tails[i] = derive_tail_calls(&f, j->vaddrs[i] + 1, j->tails[i]);
	}
}

static void run_look_up(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;
	uint64_t wanted[JOB_PLACES];

	find_tails(j);
	if (!j->file) { /* no debug information: there are no chains */
		j->chains.nr = j->nr;
		return;
	}
	for (uint32_t i = 0; i < j->nr; i++)
		wanted[i] = j->vaddrs[i] | (j->nameless[i] ? DWARF_NAMELESS : 0);
	j->rc = dwarf_sandbox_chains(j->file, wanted, j->nr, &j->chains);
	/* Not of run_open(): there it is a file that was replaced on disk. */
	j->lost = j->rc == -ESTALE;
	/* Its worker is gone, and with it the open file. */
	if (j->rc) {
		dwarf_sandbox_close(j->file);
		j->file = NULL;
	}
}

/* Close the file unused for longest, until another one may be open. */
static void make_room(struct lines *l, uint64_t now_ns, bool for_one)
{
	for (;;) {
		struct lines_object *oldest = NULL;
		uint64_t size = 0;
		uint32_t nr = 0;

		for (uint32_t i = 0; i < l->nr_list; i++) {
			struct lines_object *o = l->list[i];

			if (!is_open(o))
				continue;
			size += o->file ? dwarf_sandbox_size(o->file) : 0;
			nr++;
			if (!oldest || o->used_ns < oldest->used_ns)
				oldest = o;
		}
		if (!oldest || (now_ns - oldest->used_ns < IDLE_NS &&
				!(for_one && (nr >= OPEN_MAX || size > OPEN_SIZE_MAX))))
			return;
		close_object(l, oldest);
	}
}

/* Return the symbol @key, added if new, with the name @text, which may be mangled. */
static uint32_t symbol_named(struct lines *l, const struct symtab_key *key, char dialect,
			     struct symtab_text *text)
{
	uint32_t id = symtab_find(l->symtab, key);
	const char *demangled;
	size_t clean;

	if (id != SYMBOL_NONE)
		return id;
	clean = demangler_get(&l->demangler, dialect, text->name, text->name_size, &demangled);
	if (clean) {
		text->name = demangled;
		text->name_size = clean;
	}
	return symtab_add(l->symtab, key, text);
}

/* Return the symbol of an inlined function, added if new. */
static uint32_t inlined_symbol(struct lines *l, const struct object *object,
			       const struct dwarf_frame *frame)
{
	const char *name = frame->name;
	size_t size = strnlen(name, DEMANGLE_NAME_MAX);
	const struct symtab_key key = {
		.object = object->id,
		.variant = keyhash_name(name, size) + frame->identity,
	};
	struct symtab_text text = {
		.name = name,
		.name_size = size,
		.module = object->name.str,
		.module_size = object->name.size,
		.kind = 'u',
		.inlined = true,
	};

	return symbol_named(l, &key, 0, &text);
}

/*
 * Return the function that begins at @vaddr and leads on to another one at @next; NULL: none, or
 * both are one. @bias: of the place with the call.
 */
static const struct image_symbol *tail_at(const struct image *image, uint64_t vaddr, uint64_t next,
					  uint64_t bias)
{
	const struct image_symbol *s = image_find(image, vaddr), *to = image_find(image, next);
	uint64_t offset;

	if (!s || !to || s->vaddr != vaddr || image_whole(image, s) == image_whole(image, to))
		return NULL;
	return image_offset(image, vaddr, &offset) && vaddr - offset == bias ? s : NULL;
}

/* Add the functions that the call before place @i of @j leads through, the last one first. */
static uint32_t add_tails(struct lines *l, const struct object *object, const struct lines_job *j,
			  uint32_t i, struct symbol_frame *out)
{
	assert(i < j->nr);
	/* Acquire: pairs with the release of publish(); only this thread removes it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	const uint64_t *tails = j->tails[i], bias = j->vaddrs[i] - j->offsets[i];
	const struct image_symbol *found[TAIL_CALLS_MAX];
	uint32_t nr = 0, nr_out = 0;

	while (image && nr + 1 < j->nr_tails[i] &&
	       (found[nr] = tail_at(image, tails[nr], tails[nr + 1], bias)))
		nr++;
	while (nr--) {
		struct symtab_key key = { .object = object->id, .start = found[nr]->vaddr };
		struct symtab_text text = {
			.module = object->name.str,
			.module_size = object->name.size,
			.kind = 'u',
		};
		char stub[IMAGE_STUB_MAX];
		uint32_t id;

		text.name = image_symbol_name(image, found[nr], stub, &text.name_size);
		id = symbol_named(l, &key, image->dialect, &text);
		if (id != SYMBOL_NONE)
			out[nr_out++] = (struct symbol_frame){ id, SYMBOL_TAIL_CALL, 0 };
	}
	return nr_out;
}

void dwarf_path(char *buf, size_t size, const char *dir, const char *file)
{
	bool below = file[0] != '/' && dir && *dir;

	assert(buf && size && file);
	snprintf(buf, size, "%s%s%s", below ? dir : "", below ? "/" : "", file);
}

static uint32_t file_id(struct lines *l, const struct object *object,
			const struct dwarf_frame *frame)
{
	char path[TEXT_MAX];

	if (!frame->file)
		return SYMBOL_NO_FILE;
	dwarf_path(path, sizeof(path), frame->dir, frame->file);
	return inlines_intern_file(l->chains, object->id, path);
}

/* Return the symbol of a frame: SYMBOL_NONE is the one of the place. */
static uint32_t symbol_at(const struct lines *l, uint32_t place, uint32_t symbol)
{
	const struct place *p = symbol == SYMBOL_NONE ? places_at(l->places, place) : NULL;

	return p ? atomic_load_explicit(&p->symbol, memory_order_relaxed) : symbol;
}

/* Name place @at of @j, which has no symbol, by its function @f in DWARF. */
static void name_by_dwarf(struct lines *l, const struct object *object, const struct lines_job *j,
			  uint32_t at, const struct dwarf_frame *f)
{
	/* Acquire: pairs with the release of publish(); only this thread removes it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	const struct symtab_key key = { .object = object->id, .start = f->identity };
	struct symtab_text text = {
		.name = f->name,
		.name_size = strnlen(f->name, DEMANGLE_NAME_MAX),
		.module = object->name.str,
		.module_size = object->name.size,
		.kind = 'u',
	};
	uint32_t id = symbol_named(l, &key, image ? image->dialect : 0, &text);

	if (id != SYMBOL_NONE)
		places_name(l->places, j->places[at], id);
}

/*
 * Return whether a place has no symbol, or one without a size that reaches to the next one, perhaps
 * over other functions.
 */
static bool is_nameless(const struct lines *l, const struct image *image, uint32_t place,
			uint64_t vaddr)
{
	const struct symbol *name = symtab_at(l->symtab, symbol_at(l, place, SYMBOL_NONE));
	const struct image_symbol *s = image_find(image, vaddr);

	return name && (name->made_up || (s && (s->rank & (IMAGE_RANK_TABLE | IMAGE_RANK_SIZE)) ==
						       IMAGE_RANK_TABLE));
}

/* Keep the functions at place @at of @j. */
static void keep(struct lines *l, const struct object *object, const struct lines_job *j,
		 uint32_t at)
{
	const struct dwarf_frame *frames = j->chains.frames ? j->chains.frames + j->chains.first[at]
							    : NULL;
	struct symbol_frame all[DWARF_FRAMES_MAX + TAIL_CALLS_MAX], *out = all;
	uint32_t nr = (uint32_t)MAX(j->chains.nr_frames[at], 0), id = j->places[at];

	assert(at < j->nr);
	if (nr && j->nameless[at] && frames[nr - 1].name)
		name_by_dwarf(l, object, j, at, &frames[nr - 1]);
	out += add_tails(l, object, j, at, all);
	for (uint32_t i = 0; i < nr; i++) {
		out[i].symbol = SYMBOL_NONE;
		if (i + 1 < nr && frames[i].name) {
			out[i].symbol = inlined_symbol(l, object, &frames[i]);
			if (out[i].symbol == SYMBOL_NONE)
				return; /* the table is full */
		}
		if (frames[i].start)
			symtab_set_line(l->symtab, symbol_at(l, id, out[i].symbol),
					frames[i].start);
		out[i].line = frames[i].line;
		out[i].file = file_id(l, object, &frames[i]);
	}
	if (!nr)
		out[nr++] = (struct symbol_frame){ SYMBOL_NONE, SYMBOL_NO_FILE, 0 };
	nr += (uint32_t)(out - all);
	if (nr == 1 && !out[0].line)
		return;
	/* Of a chain that is too long the outermost ones: the last is the place's symbol. */
	out = all + nr - MIN(nr, DWARF_FRAMES_MAX);
	if (!inlines_put(l->chains, id, out, MIN(nr, DWARF_FRAMES_MAX)))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* Return the object with the longest queue. */
static struct lines_object *choose(const struct lines *l)
{
	struct lines_object *best = NULL;

	for (uint32_t i = 0; i < l->nr_list; i++) {
		if (l->list[i]->nr && (!best || l->list[i]->nr > best->nr))
			best = l->list[i];
	}
	return best;
}

/* Lend the file to @j for @o. */
static bool lend(struct lines *l, struct lines_object *o, struct lines_job *j, uint64_t now_ns)
{
	j->of = o;
	j->began_ns = now_ns;
	if (helpers_start(l->images->helpers, &j->job)) {
		for (uint32_t i = 0; i < j->nr; i++)
			lines_add(l, j->places[i]);
		count_waiting(l, -(long)j->nr);
		o->file = j->file;
		o->code = j->code;
		j->file = NULL;
		j->code = -1;
		j->job.drop(&j->job);
		return false;
	}
	l->job = j;
	return true;
}

static bool begin_open(struct lines *l, struct lines_object *o, uint64_t now_ns)
{
	struct lines_job *j = new_job(run_open, NULL, -1);

	if (!j)
		return false;
	close_object(l, o);
	j->no_lines = l->no_lines;
	j->code_only = o->refused;
	load_where(&j->where, l->images->objects, objects_at(l->images->objects, o->object),
		   l->images->no_proc, l->images->root);
	return lend(l, o, j, now_ns);
}

/*
 * Take some places of @o. Its image is loaded or has left its segments, for the
 * places have names.
 */
static bool begin_look_up(struct lines *l, struct lines_object *o, uint64_t now_ns)
{
	const struct object *object = objects_at(l->images->objects, o->object);
	/* Acquire: pairs with the release of publish(); only this thread removes it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	struct lines_job *j = new_job(run_look_up, o->file, o->code);
	uint32_t taken = 0;

	if (!j)
		return false;
	o->file = NULL;
	o->code = -1;
	j->machine = image ? image->machine : 0;
	for (; taken < o->nr && j->nr < JOB_PLACES; taken++) {
		const struct place *place = places_at(l->places, o->queue[taken]);

		if (!image || !image_vaddr(image, place->offset, &j->vaddrs[j->nr]))
			continue;
		j->offsets[j->nr] = place->offset;
		j->nameless[j->nr] = is_nameless(l, image, o->queue[taken], j->vaddrs[j->nr]);
		j->places[j->nr++] = o->queue[taken];
	}
	o->nr -= taken;
	memmove(o->queue, o->queue + taken, o->nr * sizeof(*o->queue));
	/* The ones that are looked up wait until end_job(). */
	count_waiting(l, (long)j->nr - (long)taken);
	return lend(l, o, j, now_ns);
}

/* Demangle the functions of @c in one call. */
static void demangle_all(struct lines *l, const struct dwarf_chains *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		for (int k = 0; k < c->nr_frames[i]; k++) {
			const char *name = c->frames[c->first[i] + (uint32_t)k].name;

			if (name)
				demangler_want(&l->demangler, 0, name,
					       strnlen(name, DEMANGLE_NAME_MAX));
		}
	}
	demangler_run(&l->demangler);
}

/* Tell the user whether debug information of @o is read. */
static void tell(struct lines *l, const struct lines_object *o, int code)
{
	struct object *object = objects_at(l->images->objects, o->object);

	/* Its lines are read; a file that was closed is read again. */
	if (!code && o->file)
		code = dwarf_sandbox_split(o->file);
	atomic_store_explicit(&object->debug, dwarf_object_words(code), memory_order_relaxed);
}

/* A job is done: keep its results, and the file. */
static void take_answer(struct lines *l, struct lines_job *j, uint64_t now_ns)
{
	struct lines_object *o = j->of;
	const struct object *object = objects_at(l->images->objects, o->object);

	demangle_all(l, &j->chains);
	for (uint32_t i = 0; i < j->chains.nr; i++) {
		keep(l, object, j, i);
		o->nr_late += j->chains.nr_frames[i] == -ETIME;
	}
	o->used_ns = now_ns;
	o->file = j->file;
	o->code = j->code;
	j->file = NULL;
	j->code = -1;
	for (uint32_t i = j->chains.nr; i < j->nr; i++)
		lines_add(l, j->places[i]);
	/* Not without end: a file may be the reason. */
	o->nr_lost = j->chains.nr ? 0 : o->nr_lost + j->lost;
	if (o->nr_late >= LATE_MAX)
		j->rc = -ETIME;
	else if (o->nr_lost >= LOST_MAX)
		j->rc = -EPIPE;
	else if (j->lost)
		j->rc = 0;
	if (!o->refused)
		tell(l, o, j->rc);
	o->refused |= j->rc != 0;
	if (o->refused && o->code < 0)
		leave(l, o);
	else if (o->refused && o->file) /* opened again for its calls alone */
		close_object(l, o);
	j->job.drop(&j->job);
}

/* Check the running job: done or abandoned. False: it continues. */
static bool end_job(struct lines *l, uint64_t now_ns)
{
	struct lines_job *j = l->job;
	uint32_t nr = j->nr;

	if (helper_job_done(&j->job)) {
		take_answer(l, j, now_ns);
	} else if (now_ns - j->began_ns > JOB_MAX_NS) {
		tell(l, j->of, -ETIME);
		leave(l, j->of);
		helper_job_leave(&j->job);
	} else {
		return false;
	}
	count_waiting(l, -(long)nr);
	l->job = NULL;
	return true;
}

/* Return whether the queue is short and was empty lately: each job wakes four threads. */
static bool can_wait(const struct lines *l, uint64_t now_ns)
{
	uint64_t wait_ns = MIN((now_ns - l->began_ns) / FEW_WAIT_SHARE, FEW_WAIT_NS);

	return atomic_load_explicit(&l->nr_waiting, memory_order_relaxed) < FEW_PLACES &&
	       now_ns - l->emptied_ns < wait_ns;
}

/* Return whether all that is read of @o is open. */
static bool is_ready(const struct lines_object *o)
{
	return o->file || (o->refused && o->code >= 0);
}

bool lines_work(struct lines *l, bool now)
{
	uint64_t now_ns = time_now_ns();
	bool ended = l->job;
	struct lines_object *o;

	if (l->job && !end_job(l, now_ns))
		return false;
	o = choose(l);
	if (!o && ended)
		l->emptied_ns = now_ns;
	make_room(l, now_ns, o && !is_ready(o));
	if (!o || (!now && !ended && can_wait(l, now_ns)))
		return false;
	return is_ready(o) ? begin_look_up(l, o, now_ns) : begin_open(l, o, now_ns);
}

bool lines_busy(const struct lines *l)
{
	return l->job;
}

/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * changed after that. Equal chains are kept once: a program with a JIT that starts again and again
 * has the same ones at new addresses. Files are in a chunked store. Both are found by hash sets.
 */

#define CHUNK_BITS 12
#define CHUNK_SIZE (1U << CHUNK_BITS)
#define NR_CHUNKS  (1U << 14)
#define BLOCK_SIZE (64UL << 10)
#define BLOCKS_MAX (INLINES_MEMORY_MAX / BLOCK_SIZE)
#define WORD	   8U /* chains begin at multiples */
#define FILE_BITS  10
#define FILES_MAX  (1U << 20)

/* The bytes of files are counted by object, in slots by hash: one object may name millions. */
#define NR_SHARES 4096U

struct chain {
	uint32_t nr;
	struct symbol_frame frames[];
};

/* By place; the pointer is the release, acquired by inlines_at(). */
struct chunk {
	_Atomic(const struct chain *) chains[CHUNK_SIZE];
};

/* Chains by their number: the words before it in all blocks. */
struct pool {
	char *blocks[BLOCKS_MAX];
	uint32_t nr_blocks;
	size_t used; /* bytes of the last block */
	struct hashset set;
};

/* Clean texts, complete when published. */
struct files {
	struct text_arena *texts;
	struct keyhash_key secret; /* against texts that were chosen for one bucket */
	struct hashset set;
	struct chunked list; /* struct safe_text */
	uint32_t memory;     /* bytes, with each file's part of set and list */
	uint32_t shares[NR_SHARES];
};

struct inlines {
	struct pool pool;
	size_t memory;
	struct keyhash_key secret; /* against chains that were chosen for one bucket */
	struct files files;
	_Atomic(struct chunk *) chunks[NR_CHUNKS]; /* release, acquire in inlines_at() */
};

int inlines_new(struct inlines **out)
{
	struct inlines *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->secret = keyhash_new_key();
	c->files.secret = keyhash_new_key();
	c->files.texts = text_arena_new();
	if (!c->files.texts ||
	    chunked_init(&c->files.list, sizeof(struct safe_text), FILE_BITS, FILES_MAX)) {
		inlines_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void inlines_free(struct inlines *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->pool.nr_blocks; i++)
		free_sparse(c->pool.blocks[i], BLOCK_SIZE);
	hashset_fini(&c->pool.set);
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&c->chunks[i], memory_order_relaxed));
	chunked_fini(&c->files.list);
	hashset_fini(&c->files.set);
	text_arena_free(c->files.texts);
	free(c);
}

static bool is_full(const struct inlines *c, size_t size)
{
	return c->memory + hashset_memory(&c->pool.set) + size > INLINES_MEMORY_MAX;
}

static struct chain *chain_of(const struct pool *p, uint32_t number)
{
	size_t at = (size_t)number * WORD;

	return (struct chain *)(p->blocks[at / BLOCK_SIZE] + at % BLOCK_SIZE);
}

/* Reserve @size bytes, which live as long as the table. Return their number; INLINES_NONE: the
 * limit. */
static uint32_t inlines_take(struct inlines *c, size_t size)
{
	struct pool *p = &c->pool;
	size_t at;

	size = (size + WORD - 1) / WORD * WORD;
	if (!p->nr_blocks || p->used + size > BLOCK_SIZE) {
		if (size > BLOCK_SIZE || p->nr_blocks == BLOCKS_MAX || is_full(c, BLOCK_SIZE))
			return INLINES_NONE;
		p->blocks[p->nr_blocks] = alloc_sparse(BLOCK_SIZE);
		if (!p->blocks[p->nr_blocks])
			return INLINES_NONE;
		p->nr_blocks++;
		p->used = 0;
		c->memory += BLOCK_SIZE;
	}
	at = (p->nr_blocks - 1) * BLOCK_SIZE + p->used;
	p->used += size;
	return (uint32_t)(at / WORD);
}

static uint64_t hash_chain(const struct inlines *c, const struct symbol_frame *frames, uint32_t nr)
{
	struct keyhash h = keyhash_begin(&c->secret);

	for (uint32_t i = 0; i < nr; i++) {
		keyhash_word(&h, (uint64_t)frames[i].symbol << 32 | frames[i].file);
		keyhash_word(&h, frames[i].line);
	}
	return keyhash_end(&h);
}

uint32_t chains_intern(struct inlines *c, const struct symbol_frame *frames, uint32_t nr)
{
	uint64_t hash = hash_chain(c, frames, nr);
	uint32_t number, at = 0;
	struct chain *chain;

	while ((number = hashset_next(&c->pool.set, hash, &at)) != HASHSET_NONE) {
		chain = chain_of(&c->pool, number);
		if (chain->nr == nr && !memcmp(chain->frames, frames, nr * sizeof(*frames)))
			return number;
	}
	if (hashset_reserve(&c->pool.set, 1))
		return INLINES_NONE;
	number = inlines_take(c, sizeof(*chain) + nr * sizeof(*frames));
	if (number == INLINES_NONE)
		return INLINES_NONE;
	chain = chain_of(&c->pool, number);
	chain->nr = nr;
	memcpy(chain->frames, frames, nr * sizeof(*frames));
	hashset_add(&c->pool.set, hash, number);
	return number;
}

int inlines_set(struct inlines *c, uint32_t place, uint32_t number)
{
	const struct chain *chain = chain_of(&c->pool, number);
	struct chunk *chunk;

	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return -ENOSPC;
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_relaxed);
	if (!chunk) {
		if (is_full(c, sizeof(*chunk)))
			return -ENOSPC;
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		c->memory += sizeof(*chunk);
		/* Publishes an empty chunk; pairs with inlines_at(). */
		atomic_store_explicit(&c->chunks[place >> CHUNK_BITS], chunk, memory_order_release);
	}
	/* Publishes the chain; pairs with inlines_at(). */
	atomic_store_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)], chain,
			      memory_order_release);
	return 0;
}

/* Writer. Both. */
static int inlines_put(struct inlines *c, uint32_t place, const struct symbol_frame *frames,
		       uint32_t nr)
{
	uint32_t number = place >> CHUNK_BITS < NR_CHUNKS ? chains_intern(c, frames, nr)
							  : INLINES_NONE;

	return number == INLINES_NONE ? -ENOSPC : inlines_set(c, place, number);
}

const struct symbol_frame *inlines_at(const struct inlines *c, uint32_t place, uint32_t *nr)
{
	const struct chain *chain;
	struct chunk *chunk;

	assert(nr);
	*nr = 0;
	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return NULL;
	/* Pair with the releases in inlines_put(). */
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_acquire);
	if (!chunk)
		return NULL;
	chain = atomic_load_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)],
				     memory_order_acquire);
	if (!chain)
		return NULL;
	*nr = chain->nr;
	return chain->frames;
}

static uint64_t hash_text(const struct files *f, struct safe_text text)
{
	struct keyhash h = keyhash_begin(&f->secret);

	keyhash_bytes(&h, text.str, text.size);
	return keyhash_end(&h);
}

/* Return the id of a clean text; SYMBOL_NO_FILE: it is new. */
static uint32_t find_file(const struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id, at = 0;

	while ((id = hashset_next(&f->set, hash, &at)) != HASHSET_NONE) {
		const struct safe_text *is = chunked_at(&f->list, id);

		if (is->size == text.size && !memcmp(is->str, text.str, text.size))
			return id;
	}
	return SYMBOL_NO_FILE;
}

/* Charge a new text to the table and to the share of @object. False: too little memory is left. */
static bool charge_text(struct files *f, uint32_t object, size_t size, bool moved)
{
	/* A set has four slots for each id at most. */
	uint32_t cost =
		(uint32_t)(size + 1 + sizeof(struct safe_text) + 4 * sizeof(struct hashset_slot));
	uint32_t left = INLINES_FILES_MEMORY_MAX - f->memory;
	uint32_t *share = &f->shares[hash_u64(object ^ f->secret.k0) % NR_SHARES];

	/* An eighth of the rest, not of the limit: later objects also get a share. */
	if (cost > left || (!moved && *share + cost > left / 8))
		return false;
	f->memory += cost;
	*share += cost;
	return true;
}

static uint32_t add_file(struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id = chunked_nr(&f->list);
	struct safe_text *file = chunked_reserve(&f->list, id);

	if (!file || hashset_reserve(&f->set, 1))
		return SYMBOL_NO_FILE;
	*file = text_arena_add(f->texts, text.str, text.size);
	hashset_add(&f->set, hash, id);
	chunked_publish(&f->list, id + 1);
	return id;
}

/*
 * Writer. Return the id of a path (foreign bytes) that @object names; SYMBOL_NO_FILE when the
 * table is full, or @object has had its share.
 */
static uint32_t inlines_intern_file(struct inlines *c, uint32_t object, const char *path)
{
	char buf[TEXT_MAX + 1];
	struct safe_text text = text_sanitise(buf, sizeof(buf), path, strlen(path));
	uint64_t hash = hash_text(&c->files, text);
	uint32_t id = find_file(&c->files, hash, text);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, text.size, false))
		return id;
	return add_file(&c->files, hash, text);
}

uint32_t inlines_move_file(struct inlines *c, uint32_t object, struct safe_text file)
{
	uint64_t hash = hash_text(&c->files, file);
	uint32_t id = find_file(&c->files, hash, file);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, file.size, true))
		return id;
	return add_file(&c->files, hash, file);
}

struct safe_text inlines_file(const struct inlines *c, uint32_t id)
{
	const struct safe_text *file;

	if (id >= chunked_nr(&c->files.list))
		return TEXT("");
	file = chunked_at(&c->files.list, id);
	return *file;
}

uint32_t inlines_nr_files(const struct inlines *c)
{
	return chunked_nr(&c->files.list);
}

size_t inlines_memory(const struct inlines *c)
{
	return c->memory + hashset_memory(&c->pool.set) + sizeof(c->files) +
	       text_arena_size(c->files.texts) + hashset_memory(&c->files.set) +
	       chunked_memory(&c->files.list);
}
