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

/* Replace the object by the file with its debug information, if that is another one. */
static int to_debug_file(const struct elffacts_input *in, const char *path,
			 struct foreign_file *file, struct elffacts *facts, uint64_t *bias)
{
	struct foreign_file debug;
	struct elffacts found;
	int rc;

	*bias = 0;
	if (facts->dwarf != -ENODATA)
		return 0;
	rc = elffacts_open_debug(in, facts, DEBUGFILE_ROOT, path, &debug, &found, bias);
	if (rc)
		return rc;
	close(file->fd);
	*file = debug;
	*facts = found;
	return 0;
}

int dwarf_object_open(const struct load_where *where, bool no_lines, struct dwarf_cage **out)
{
	struct elffacts_input in = { .fd = -1 };
	struct foreign_file file;
	struct elffacts facts;
	uint64_t bias;
	int rc = load_open(where, NULL, &file);

	if (rc)
		return rc;
	in.fd = file.fd;
	in.size = file.size;
	rc = elffacts_read(&facts, &in);
	if (!rc && !load_is_of_image(where, facts.names.build_id, facts.names.build_id_size))
		rc = -ESTALE;
	if (!rc)
		rc = to_debug_file(&in, where->seen.path, &file, &facts, &bias);
	if (!rc)
		rc = dwarf_cage_open(out, &file, &facts, bias, no_lines);
	close(file.fd);
	return rc;
}
