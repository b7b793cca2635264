// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hangfs FOLDER FILE NR: a file system (FUSE, by its protocol alone: <linux/fuse.h>) on FOLDER with
 * files f0 to f<NR-1>, copies of FILE, which hangs on command, a word a line: "open", "read",
 * "statfs", "lookup", "flush": such requests are not answered from now on; "trickle": reads are
 * answered after 200 ms each; "ok": all are answered again, also the queued ones. Prints "ready".
 * Ends with its input; then the kernel fails the queued requests. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX (FUSE_MIN_READ_BUFFER + 4096)
#define HELD_MAX    1024
#define FOREVER	    1000000000ULL

enum mode { OK, HANG_OPEN, HANG_READ, HANG_STATFS, TRICKLE, HANG_LOOKUP, HANG_FLUSH };

struct hangfs {
	int fuse, file, nr;
	uint64_t size;
	enum mode mode;
	struct held {
		size_t size;
		char bytes[256];
	} held[HELD_MAX];
	int nr_held;
};

static void reply(struct hangfs *fs, const struct fuse_in_header *in, int error, const void *data,
		  size_t size)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + size),
				       .error = error,
				       .unique = in->unique };
	struct iovec v[] = { { &out, sizeof(out) }, { (void *)(uintptr_t)data, size } };

	/* ENOENT: the requesting process was killed. */
	if (writev(fs->fuse, v, 2) < 0 && errno != ENOENT)
		perror("hangfs: reply");
}

static void fill_attr(const struct hangfs *fs, uint64_t node, struct fuse_attr *a)
{
	*a = (struct fuse_attr){ .ino = node,
				 .nlink = 1,
				 .blksize = 4096,
				 .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755 };
	if (node != FUSE_ROOT_ID) {
		a->size = fs->size;
		a->blocks = (fs->size + 511) / 512;
	}
}

static void on_lookup(struct hangfs *fs, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out e = { .entry_valid = FOREVER, .attr_valid = FOREVER };
	char *end;
	long i = name[0] == 'f' ? strtol(name + 1, &end, 10) : -1;

	if (i < 0 || i >= fs->nr || *end) {
		reply(fs, in, -ENOENT, NULL, 0);
		return;
	}
	e.nodeid = (uint64_t)i + FUSE_ROOT_ID + 1;
	fill_attr(fs, e.nodeid, &e.attr);
	reply(fs, in, 0, &e, sizeof(e));
}

static void on_read(struct hangfs *fs, const struct fuse_in_header *in,
		    const struct fuse_read_in *r)
{
	static char buf[1 << 20];
	ssize_t n = pread(fs->file, buf, r->size < sizeof(buf) ? r->size : sizeof(buf),
			  (off_t)r->offset);

	reply(fs, in, n < 0 ? -EIO : 0, buf, n < 0 ? 0 : (size_t)n);
}

static void on_init(struct hangfs *fs, const struct fuse_in_header *in,
		    const struct fuse_init_in *i)
{
	const struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = i->max_readahead,
		.max_background = 64,
		.congestion_threshold = 64,
		.max_write = 4096,
	};

	reply(fs, in, 0, &out, sizeof(out));
}

static void answer(struct hangfs *fs, const struct fuse_in_header *in)
{
	const void *arg = in + 1;
	/* Reads of cached content would not hang. Running pages are kept, or the program hangs. */
	const struct fuse_open_out opened = {
		.open_flags = FOPEN_KEEP_CACHE |
			      (fs->mode == HANG_READ || fs->mode == TRICKLE ? FOPEN_DIRECT_IO : 0U),
	};
	const struct fuse_statfs_out st = { .st = { .bsize = 4096, .namelen = 255 } };
	struct fuse_attr_out attr = { .attr_valid = FOREVER };

	switch (in->opcode) {
	case FUSE_INIT:
		on_init(fs, in, arg);
		break;
	case FUSE_LOOKUP:
		on_lookup(fs, in, arg);
		break;
	case FUSE_GETATTR:
		fill_attr(fs, in->nodeid, &attr.attr);
		reply(fs, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(fs, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		on_read(fs, in, arg);
		break;
	case FUSE_STATFS:
		reply(fs, in, 0, &st, sizeof(st));
		break;
	case FUSE_FLUSH: /* with ENOSYS none would be sent any more */
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(fs, in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* a dead server does not listen to it either */
		break;
	default:
		reply(fs, in, -ENOSYS, NULL, 0);
	}
}

static bool is_held(const struct hangfs *fs, uint32_t opcode)
{
	return (fs->mode == HANG_OPEN && (opcode == FUSE_OPEN || opcode == FUSE_OPENDIR)) ||
	       (fs->mode == HANG_LOOKUP && opcode == FUSE_LOOKUP) ||
	       (fs->mode == HANG_FLUSH && opcode == FUSE_FLUSH) ||
	       (fs->mode == HANG_READ && opcode == FUSE_READ) ||
	       (fs->mode == HANG_STATFS && opcode == FUSE_STATFS);
}

/* One request: answer it, or keep it for later. */
static void on_request(struct hangfs *fs, const char *bytes, size_t size)
{
	const struct fuse_in_header *in = (const struct fuse_in_header *)bytes;
	const struct timespec nap = { .tv_nsec = 200000000 };

	if (is_held(fs, in->opcode) && fs->nr_held < HELD_MAX &&
	    size <= sizeof(fs->held[0].bytes)) {
		fs->held[fs->nr_held].size = size;
		memcpy(fs->held[fs->nr_held++].bytes, bytes, size);
		return;
	}
	if (fs->mode == TRICKLE && in->opcode == FUSE_READ)
		nanosleep(&nap, NULL);
	answer(fs, in);
}

/* A word of our input; false at its end. */
static bool on_word(struct hangfs *fs)
{
	static const char *const words[] = { "ok",	"open",	  "read", "statfs",
					     "trickle", "lookup", "flush" };
	char line[64] = "";

	/* A byte at a time: the next word may be there already. */
	for (size_t i = 0; i < sizeof(line) - 1; i++) {
		if (read(STDIN_FILENO, line + i, 1) != 1)
			return false;
		if (line[i] == '\n') {
			line[i] = '\0';
			break;
		}
	}
	for (int i = 0; i < 7; i++)
		if (!strcmp(line, words[i]))
			fs->mode = (enum mode)i;
	for (int i = 0; fs->mode == OK && i < fs->nr_held; i++)
		answer(fs, (const struct fuse_in_header *)fs->held[i].bytes);
	if (fs->mode == OK)
		fs->nr_held = 0;
	return true;
}

static int serve(struct hangfs *fs, const char *folder)
{
	static char bytes[REQUEST_MAX];
	struct pollfd fds[] = {
		{ .fd = fs->fuse, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	while (poll(fds, 2, -1) > 0 || errno == EINTR) {
		ssize_t n = fds[0].revents ? read(fs->fuse, bytes, sizeof(bytes)) : 0;

		if (n < 0 && errno == ENODEV)
			break;
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			on_request(fs, bytes, (size_t)n);
		if (fds[1].revents && !on_word(fs))
			break;
	}
	/* Queued requests fail with the connection. */
	close(fs->fuse);
	umount2(folder, MNT_DETACH);
	return 0;
}

int main(int argc, char **argv)
{
	static struct hangfs fs;
	struct stat st;
	char options[96];

	if (argc != 4)
		return 2;
	fs.nr = atoi(argv[3]);
	fs.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	fs.file = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fs.fuse < 0 || fs.file < 0 || fstat(fs.file, &st))
		return 77;
	fs.size = (uint64_t)st.st_size;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fs.fuse);
	if (mount("hangfs", argv[1], "fuse", MS_NOSUID | MS_NODEV, options))
		return 77;
	puts("ready");
	fflush(stdout);
	return serve(&fs, argv[1]);
}
