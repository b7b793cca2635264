/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolve FILE: of each address on standard input the functions at that place,
 * innermost first, one a line: name, tab, file:line; then an empty line. The last
 * name is that of the symbol.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/sandbox/sandbox.h"
#include "symbols/dwarf/internal.h"
#include "symbols/image/internal.h"
#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

static void print_place(const struct dwarf_frame *f)
{
	char path[4096];

	if (!f->line || !f->file) {
		printf("??:0\n");
		return;
	}
	dwarf_path(path, sizeof(path), f->dir, f->file);
	printf("%s:%u\n", path, f->line);
}

static void print(const struct image *image, struct dwarf_sandbox *lines, uint64_t vaddr)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX] = { { .name = NULL } };
	const struct image_symbol *s = image_find(image, vaddr);
	char buf[IMAGE_STUB_MAX];
	size_t size = 2;
	const char *name = s ? image_symbol_name(image, s, buf, &size) : "??";
	struct dwarf_chains chains = { 0 };
	int nr = 0;

	if (lines && !dwarf_sandbox_chains(lines, &vaddr, 1, &chains))
		nr = chains.nr_frames[0];
	for (int i = 0; i < nr; i++)
		frames[i] = chains.frames[i];

	for (int i = 0; i < MAX(nr, 1); i++) {
		if (i == MAX(nr, 1) - 1)
			printf("%.*s\t", (int)size, name);
		else
			printf("%s\t", frames[i].name);
		print_place(&frames[i]);
	}
	printf("%s\n", nr == -ETIME ? "late" : "");
	dwarf_chains_free(&chains);
}

int main(int argc, char **argv)
{
	struct image_input in = { .path = argv[1] };
	struct load_where where = { .identity = { .kind = OBJECT_FILE }, .seen.path = argv[1] };
	struct dwarf_sandbox *lines = NULL;
	struct image *image;
	struct stat st;
	uint64_t vaddr;

	in.fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (in.fd < 0 || fstat(in.fd, &st))
		return 1;
	in.size = (uint64_t)st.st_size;
	where.identity.ino = st.st_ino;
	if (image_read(&image, &in, NULL))
		return 1;
	if (dwarf_object_open(&where, false, NULL, &lines))
		lines = NULL;
	while (scanf("%" SCNx64, &vaddr) == 1)
		print(image, lines, vaddr);
	dwarf_sandbox_close(lines);
	image_free(image);
	close(in.fd);
	return 0;
}
