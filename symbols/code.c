// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The instructions of one function.
 *
 * Runs on: the loader, but for want and copy. The file is opened anew by its
 * identity, so what is read is what was sampled, or nothing.
 */
#include "symbols/code.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "symbols/foreign.h"
#include "symbols/image.h"
#include "symbols/jitdumps.h"

void code_init(struct code_desk *d, struct dsos *dsos, const struct symtab *symtab,
	       const atomic_bool *stop)
{
	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	d->wanted = d->done.symbol = SYMBOL_NONE;
	d->dsos = dsos;
	d->symtab = symtab;
	d->stop = stop;
}

void code_fini(struct code_desk *d)
{
	free(d->done.bytes);
	pthread_mutex_destroy(&d->lock);
}

void code_want(struct code_desk *d, uint32_t symbol)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = symbol;
	pthread_mutex_unlock(&d->lock);
}

int code_copy(struct code_desk *d, uint32_t symbol, struct code *out)
{
	int code = 0;

	pthread_mutex_lock(&d->lock);
	*out = d->done;
	if (out->symbol != symbol) {
		code = -EAGAIN;
	} else if (out->bytes) {
		out->bytes = malloc(out->nr_bytes);
		if (!out->bytes)
			code = -ENOMEM;
		else
			memcpy(out->bytes, d->done.bytes, out->nr_bytes);
	}
	pthread_mutex_unlock(&d->lock);
	return code;
}

/* Up to @size bytes of @fd at @offset into out->bytes; 0 or -errno. */
static int read_bytes(struct code *out, int fd, uint64_t offset, uint64_t size)
{
	uint32_t want = (uint32_t)MIN(size, (uint64_t)CODE_SIZE_MAX), got = 0;

	out->bytes = malloc(MAX(want, 1u));
	if (!out->bytes)
		return -ENOMEM;
	while (got < want) {
		ssize_t n = pread(fd, out->bytes + got, want - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (uint32_t)n;
	}
	out->nr_bytes = got;
	if (got)
		return 0;
	free(out->bytes);
	out->bytes = NULL;
	return -EIO;
}

/* The extent of the function at @vaddr: of its symbol, else of the FDE that covers it. */
static uint64_t extent(const struct image *image, uint64_t vaddr)
{
	const struct image_symbol *symbol = image_find(image, vaddr);
	const struct ehframe_fde *fde = ehframe_find(&image->eh, vaddr);

	if (symbol && symbol->vaddr <= vaddr && vaddr - symbol->vaddr < symbol->size)
		return symbol->vaddr + symbol->size - vaddr;
	return fde && vaddr - fde->start < fde->size ? fde->start + fde->size - vaddr : 0;
}

static const char *read_file(struct code_desk *d, const struct dso *dso, const struct image *image,
			     struct code *out)
{
	struct dso_sighting seen;
	struct foreign_want want;
	struct foreign_file file;
	uint64_t offset;
	int code;

	if (!image_offset(image, out->vaddr, &offset))
		return "its code is not in the file";
	dsos_sighting(d->dsos, dso, &seen);
	want = (struct foreign_want){
		.pid = d->no_proc ? 0 : seen.pid,
		.start = seen.start,
		.end = seen.end,
		.path = seen.path && *seen.path ? seen.path : NULL,
		.root = d->root,
		.maj = dso->identity.maj,
		.min = dso->identity.min,
		.ino = dso->identity.ino,
	};
	code = foreign_open(&want, &file, NULL);
	free(seen.path);
	if (code)
		return code == -ESTALE ? "the file on disk is not the one that runs" :
					 "the file cannot be opened (it is gone, or not permitted)";
	code = read_bytes(out, file.fd, offset, out->size);
	close(file.fd);
	return code ? "the file cannot be read" : NULL;
}

/* Ours serves for all: it is the same code. */
static const char *read_vdso(const struct image *image, struct code *out)
{
	const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	uint64_t offset;

	if (!base || !image_offset(image, out->vaddr, &offset))
		return "no vdso here";
	out->nr_bytes = (uint32_t)MIN(out->size, (uint64_t)CODE_SIZE_MAX);
	out->bytes = malloc(MAX(out->nr_bytes, 1u));
	if (!out->bytes)
		return "out of memory";
	memcpy(out->bytes, base + offset, out->nr_bytes);
	return NULL;
}

/* The memory itself is not read: a jitdump has the code as it was sampled. */
static const char *read_jit(struct code_desk *d, struct dso *dso, const struct symbol *symbol,
			    struct code *out)
{
	int nr = d->jitdumps ? jitdumps_code(d->jitdumps, dso, symbol->start, symbol->variant,
					     &out->bytes, CODE_SIZE_MAX, &out->size, &out->machine) :
			       -ENOENT;

	if (nr > 0) {
		out->nr_bytes = (uint32_t)nr;
		out->wide = out->machine == EM_X86_64 || out->machine == EM_AARCH64;
		return NULL;
	}
	if (!nr)
		free(out->bytes);
	out->bytes = NULL;
	return nr == -ENOENT ? "code in memory (JIT) is known from a jitdump only" :
			       "its jitdump cannot be read";
}

static const char *read_code(struct code_desk *d, const struct symbol *symbol, struct code *out)
{
	struct dso *dso = dsos_at(d->dsos, symbol->dso);
	/* Acquire: pairs with the release of whoever published the image. */
	const struct image *image =
		dso ? atomic_load_explicit(&dso->image, memory_order_acquire) : NULL;

	if (dso && dso->identity.kind == DSO_KERNEL)
		return "kernel code is not read";
	if (dso && dso->identity.kind == DSO_ANON)
		return read_jit(d, dso, symbol, out);
	if (!image)
		return "its object could not be loaded";
	out->machine = image->machine;
	out->wide = image->elf_class == ELFCLASS64;
	out->size = extent(image, out->vaddr);
	if (!out->size)
		return "its end is not known";
	if (dso->identity.kind == DSO_VDSO)
		return read_vdso(image, out);
	return read_file(d, dso, image, out);
}

/* Has the image of @symbol's object left? Then it is asked for, and the question waits. */
static bool is_away(struct code_desk *d, const struct symbol *symbol)
{
	struct dso *dso = dsos_at(d->dsos, symbol->dso);
	/* Acquire: pairs with the releases of the loader. */
	int state = dso ? atomic_load_explicit(&dso->state, memory_order_acquire) : DSO_FAILED;
	const struct image *image =
		dso ? atomic_load_explicit(&dso->image, memory_order_acquire) : NULL;

	if (!image || !image->away || state >= DSO_READY)
		return false;
	dso_want(dso);
	return true;
}

void code_serve(struct code_desk *d)
{
	const struct symbol *symbol;
	struct code code = { .symbol = SYMBOL_NONE };
	uint8_t *old;

	pthread_mutex_lock(&d->lock);
	code.symbol = d->wanted;
	if (code.symbol == d->done.symbol)
		code.symbol = SYMBOL_NONE;
	pthread_mutex_unlock(&d->lock);
	symbol = code.symbol != SYMBOL_NONE ? symtab_at(d->symtab, code.symbol) : NULL;
	if (!symbol || is_away(d, symbol))
		return;
	code.vaddr = symbol->start;
	code.why = read_code(d, symbol, &code);
	/* After a read that hung nobody may be there any more. */
	if (atomic_load_explicit(d->stop, memory_order_acquire)) {
		free(code.bytes);
		return;
	}
	pthread_mutex_lock(&d->lock);
	old = d->done.bytes;
	d->done = code;
	pthread_mutex_unlock(&d->lock);
	free(old);
}
