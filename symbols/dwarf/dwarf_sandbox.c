// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client's side of DWARF in the sandbox: the file with the debug information of an object found
 * and checked, requests, answers that are checked before use.
 *
 * Runs on: a helper.
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
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"

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
 * As dwarf_open_fds(); also -EPERM (owned by another user), -EFBIG, -ENOLINK (its dwz file is
 * missing) and the errors of sandbox_call(). @where: the object, to find its dwz file; where->fd is
 * the one that refers to it.
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

int dwarf_sandbox_split(const struct dwarf_sandbox *d)
{
	return d->split_rc;
}

uint64_t dwarf_sandbox_size(const struct dwarf_sandbox *d)
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

/* Fill @out from @from, and take over its bytes. False: invalid. */
static bool take_chains(const struct sandbox_answer *from, uint32_t nr, struct dwarf_chains *out,
			struct wanted *w)
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
		if (out->nr_frames[i] > 0 &&
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
	if (take_chains(&a, nr, out, w)) {
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
