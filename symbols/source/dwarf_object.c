// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find the debug information of an object, in the object or in its debug file, and open it.
 *
 * Runs on: a helper.
 */
#include "symbols/source/dwarf_object.h"

#include <errno.h>
#include <unistd.h>

#include "symbols/object/debugfile.h"
#include "symbols/source/dwarf_open.h"

/* Turn @f, the object, into the file with its debug information. */
static int to_debug_file(struct elffile *f, uint64_t *bias)
{
	struct elffile debug;
	uint64_t size;
	int rc = dwarf_open_check(f, &size);

	*bias = 0;
	if (rc != -ENODATA)
		return rc;
	rc = debugfile_open(f, DEBUGFILE_ROOT, &debug, bias);
	if (rc)
		return rc;
	debugfile_close(f);
	*f = debug;
	return 0;
}

int dwarf_object_open(const struct load_where *where, bool no_lines, struct dwarf_cage **out)
{
	struct foreign_file file;
	struct elffile elf;
	uint64_t bias;
	int rc = load_open(where, NULL, &file);

	if (rc)
		return rc;
	rc = elffile_open(&elf, file.fd, NULL, file.size, NULL);
	if (rc) {
		close(file.fd);
		return rc;
	}
	elf.path = where->seen.path;
	rc = to_debug_file(&elf, &bias);
	if (!rc)
		rc = dwarf_cage_open(out, &elf, bias, no_lines);
	debugfile_close(&elf);
	return rc;
}
