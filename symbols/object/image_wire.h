/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between image_read() and its worker. Both have the same program.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_WIRE_H
#define SYMBOLS_OBJECT_IMAGE_WIRE_H

#include "symbols/object/debugfile.h"

enum image_file { IMAGE_OBJECT, IMAGE_DEBUG };

struct image_request {
	uint64_t serial; /* the same for all calls for one image, until it is there */
	uint64_t memory_max;
	uint32_t by_link;
	uint32_t same_crc; /* the debug file is the one of the link */
};

/* The image follows (image_flat.h). */
struct image_answer {
	_Alignas(16) uint32_t match;  /* enum debugfile_match; another file: no image follows */
	struct debugfile_names names; /* of the object */
};
_Static_assert(sizeof(struct image_answer) % 16 == 0, "the image is aligned");

#endif
