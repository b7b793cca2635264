/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An image as one piece of bytes without pointers, as it comes out of the cage: a head, then
 * segments, symbols, FDEs, names and the bytes of .eh_frame, each aligned.
 *
 * The bytes are foreign: all that look-ups rely on is checked when they are taken.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_FLAT_H
#define SYMBOLS_OBJECT_IMAGE_FLAT_H

#include "symbols/cage/cage.h"
#include "symbols/object/image.h"

/* Append @image; the reply before it is a multiple of 16 bytes. */
void image_flat_put(struct cage_reply *reply, const struct image *image);
/*
 * Make an image of the bytes from @at on, which it owns: *@a is empty then. The caller frees *@a
 * after an error. 0, -EBADMSG or -ENOMEM.
 */
int image_flat_take(struct image **out, struct cage_answer *a, size_t at);

#endif
