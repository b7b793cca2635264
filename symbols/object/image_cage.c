// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read an image: the bytes of the file by elfcage.h, their meaning in the cage.
 *
 * Runs on: a helper.
 */
#include "symbols/object/image_read.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/watch.h"
#include "symbols/object/elfcage.h"
#include "symbols/object/image_flat.h"
#include "symbols/object/image_wire.h"

static atomic_ullong last_serial; /* relaxed */

struct reading {
	const struct image_input *in;
	struct elfcage *files;
	bool by_link, same_crc;
	struct image_answer answer;
};

/* Check the head of an answer. */
static int take_head(struct reading *r, const struct cage_answer *a)
{
	struct image_answer *head = &r->answer;
	struct debugfile_names *n = &head->names;

	if (a->size < ELFCAGE_ANSWER + sizeof(*head))
		return -EBADMSG;
	memcpy(head, a->bytes + ELFCAGE_ANSWER, sizeof(*head));
	if (n->build_id_size > sizeof(n->build_id) || !memchr(n->link, 0, sizeof(n->link)) ||
	    (n->link[0] && !debugfile_link_ok(n->link)))
		return -EBADMSG;
	return 0;
}

/* Call the worker. 0 (the caller frees the answer), or -errno. */
static int ask(struct reading *r, struct cage_answer *a)
{
	const struct image_request request = {
		.serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1,
		.memory_max = r->in->memory_max,
		.by_link = r->by_link,
		.same_crc = r->same_crc,
	};
	const struct cage_reader *reader =
		&image_readers[cage_idle(CAGE_IMAGE, CAGE_IMAGE_LAST) - CAGE_IMAGE];
	int rc = elfcage_ask(r->files, reader, &request, sizeof(request), a);

	if (rc)
		return rc;
	if (!take_head(r, a))
		return 0;
	cage_answer_free(a);
	return elfcage_refuse(r->files);
}

/* Take the image of an answer, which is freed. */
static int take_image(struct reading *r, struct cage_answer *a, struct image **out)
{
	int rc = image_flat_take(out, a, ELFCAGE_ANSWER + sizeof(struct image_answer));

	cage_answer_free(a);
	return rc == -EBADMSG ? elfcage_refuse(r->files) : rc;
}

static bool is_from_debug_file(const struct image *image)
{
	return !strcmp(image->source, "debug file") || !strcmp(image->source, "debug link");
}

/* Without a build-id the CRC decides: if it is the one of the link, call again. */
static int compare_crc(struct reading *r, int fd, uint64_t size, struct cage_answer *a)
{
	uint32_t crc;
	int rc = debugfile_crc(fd, size, r->in->watch, DEBUGFILE_CRC_NS, &crc);

	if (rc == -EAGAIN)
		return rc;
	if (rc || crc != r->answer.names.crc)
		return 0;
	cage_answer_free(a);
	r->same_crc = true;
	return ask(r, a);
}

/* Read the image again with the debug file @fd. NULL: of another object, or without functions. */
static int read_with(struct reading *r, int fd, uint64_t size, struct image **out)
{
	struct cage_answer a = { 0 };
	int rc = elfcage_open(r->files, IMAGE_DEBUG, fd, size);

	r->same_crc = false;
	if (!rc)
		rc = ask(r, &a);
	if (!rc && r->answer.match == DEBUGFILE_CRC_DECIDES)
		rc = compare_crc(r, fd, size, &a);
	if (!rc && r->answer.match == DEBUGFILE_SAME)
		rc = take_image(r, &a, out);
	cage_answer_free(&a);
	elfcage_close(r->files, IMAGE_DEBUG);
	if (!rc && *out && !is_from_debug_file(*out)) {
		image_free(*out);
		*out = NULL;
	}
	return rc;
}

/*
 * Replace @image by one with the functions of its debug file: by build-id, else by link. 0, or
 * -EAGAIN; after other errors the image is as before.
 */
static int add_debug_file(struct reading *r, struct image **image)
{
	const struct debugfile_names names = r->answer.names;
	struct image *better = NULL;
	struct foreign_file file;
	int rc = 0;

	watch_aside(r->in->watch, true);
	for (unsigned int i = 0; rc != -ERANGE && rc != -EAGAIN && !better; i++) {
		rc = debugfile_try(&names, i, DEBUGFILE_ROOT, r->in->path, r->in->watch, &file,
				   &r->by_link);
		if (rc)
			continue;
		rc = read_with(r, file.fd, file.size, &better);
		close(file.fd);
	}
	watch_aside(r->in->watch, false);
	if (better) {
		image_free(*image);
		*image = better;
	}
	return rc == -EAGAIN ? rc : 0;
}

static int read_image(struct reading *r, struct image **image)
{
	struct cage_answer a = { 0 };
	int rc = elfcage_open(r->files, IMAGE_OBJECT, r->in->fd, r->in->size);

	if (!rc)
		rc = ask(r, &a);
	if (!rc)
		rc = take_image(r, &a, image);
	if (!rc && !r->in->no_debug_files && strcmp((*image)->source, ".symtab") != 0)
		rc = add_debug_file(r, image);
	return rc;
}

int image_read(struct image **out, const struct image_input *in, struct err *e)
{
	struct reading r = { .in = in, .files = elfcage_new() };
	struct image *image = NULL;
	int rc = -ENOMEM;

	if (r.files) {
		r.files->watch = in->watch;
		r.files->memory_max = in->memory_max;
		r.files->copied = in->copied;
		rc = read_image(&r, &image);
		elfcage_free(r.files);
	}
	if (rc) {
		image_free(image);
		return err_set(e, rc, "cannot read the ELF file");
	}
	*out = image;
	return 0;
}

int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e)
{
	const struct image_input in = { .fd = fd, .size = file_size };

	return image_read(out, &in, e);
}
