// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The function table of Go to a worker; its functions or unwind tables back.
 *
 * Runs on: a helper.
 */
#include "symbols/object/elfgo_cage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cage/cage.h"
#include "symbols/object/elfgo.h"

#define TIMEOUT_NS 8000000000ULL

/* Copy the table of @f to a memfd. Return the descriptor, -ENOENT without one, or -errno. */
static int copy_table(const struct elffile *f, struct elfgo_request *r)
{
	const Elf64_Shdr *s = elffile_section(f, ".gopclntab"), *text;
	void *bytes;
	int rc;

	if (!s)
		s = elffile_section(f, ".data.rel.ro.gopclntab");
	text = elffile_section(f, ".text");
	if (!s || !text || s->sh_size > ELFGO_SIZE_MAX || f->elf_class != ELFCLASS64)
		return -ENOENT;
	rc = elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	r->size = s->sh_size;
	r->text = text->sh_addr;
	rc = cage_wrap(bytes, s->sh_size);
	free(bytes);
	return rc;
}

static int call(const struct elffile *f, bool frames, struct cage_answer *a)
{
	struct elfgo_request r = { .frames = frames };
	int fds[CAGE_FDS_MAX] = { copy_table(f, &r), -1 };
	int rc;

	if (fds[0] < 0)
		return fds[0];
	rc = cage_call(&elfgo_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, a);
	close(fds[0]);
	return rc;
}

/* Take the function at *@at of the reply. Return its name, NULL: damaged. */
static const char *take_function(const struct cage_answer *a, size_t *at, struct elfgo_function *f)
{
	const char *name = (const char *)a->bytes + *at + sizeof(*f);

	if (a->size - *at < sizeof(*f))
		return NULL;
	memcpy(f, a->bytes + *at, sizeof(*f));
	*at += sizeof(*f);
	if (!f->name_size || f->name_size > IMAGE_NAME_MAX || f->name_size > a->size - *at ||
	    memchr(name, 0, f->name_size))
		return NULL;
	*at += f->name_size;
	return name;
}

int elfgo_cage_add(struct elfsym *t, const struct elffile *f)
{
	struct elfgo_function function;
	struct cage_answer a;
	size_t at = 0;
	int rc = call(f, false, &a);

	if (rc)
		return rc;
	while (at < a.size && !rc) {
		const char *name = take_function(&a, &at, &function);

		rc = name ? elfsym_add_named(t, function.vaddr, function.size, name,
					     function.name_size)
			  : -EBADMSG;
	}
	cage_answer_free(&a);
	return rc;
}

int elfgo_cage_frames(const struct elffile *f, uint8_t **out, size_t *size)
{
	struct cage_answer a;
	int rc = f->machine == EM_X86_64 ? call(f, true, &a) : -ENOENT;

	if (rc)
		return rc;
	*out = a.bytes;
	*size = a.size;
	return 0;
}
