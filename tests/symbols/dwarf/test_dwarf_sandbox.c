// SPDX-License-Identifier: GPL-2.0-or-later
/* dwarf_sandbox: the answers of a worker that was taken over. */
#include "symbols/dwarf/lines.c"

#include "tests/prelude.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/sandbox/sandbox.h"
#include "symbols/base/file.h"
#include "symbols/elf/elf.h"

/* The chain of the worker; shared with it. */
static struct shared {
	int32_t nr;
	bool is_named[DWARF_FRAMES_MAX];
} * shared;

static int serve(struct sandbox_call *c)
{
	static const char text[] = "name";
	const struct dwarf_wire_request *r = c->request;
	const struct dwarf_wire_opened opened = { .handle = 1 };
	const struct dwarf_wire_head head = { .nr = 1, .texts_size = sizeof(text) };

	if (r->kind != DWARF_WIRE_CHAINS) {
		sandbox_put(&c->reply, &opened, sizeof(opened));
		return 0;
	}
	sandbox_put(&c->reply, &head, sizeof(head));
	sandbox_put(&c->reply, &shared->nr, sizeof(shared->nr));
	for (int i = 0; i < shared->nr; i++) {
		const struct dwarf_wire_frame f = {
			.name = shared->is_named[i] ? 0 : DWARF_WIRE_NONE,
			.file = DWARF_WIRE_NONE,
			.dir = DWARF_WIRE_NONE,
			.line = 7,
		};

		sandbox_put(&c->reply, &f, sizeof(f));
	}
	sandbox_put(&c->reply, text, sizeof(text));
	return 0;
}

static int get_chain(struct dwarf_sandbox *d, bool first, bool last)
{
	const uint64_t vaddr = 0x1000;
	struct dwarf_chains chains;
	int rc;

	shared->nr = 2;
	shared->is_named[0] = first;
	shared->is_named[1] = last;
	rc = dwarf_sandbox_chains(d, &vaddr, 1, &chains);
	if (rc)
		return rc;
	assert_int_equal(chains.nr_frames[0], 2);
	assert_true(!chains.frames[0].name == !first);
	dwarf_chains_free(&chains);
	return 0;
}

/* The last function is that of the place: it has its name there, and only one. */
TEST(names_of_chain)
{
	const struct elffacts facts = { .alt_rc = -ENOENT };
	struct untrusted_file file = { .fd = memfd_create("object", MFD_CLOEXEC) };
	struct dwarf_sandbox *d;

	assert_int_equal(dwarf_sandbox_open(&d, &file, &facts, NULL, 0, false), 0);
	assert_int_equal(get_chain(d, true, false), 0);
	assert_int_equal(get_chain(d, false, false), 0);
	assert_int_equal(get_chain(d, true, true), -EBADMSG);
	dwarf_sandbox_close(d);
	close(file.fd);
}

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS];
	static struct sandbox_reader reader;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	reader = dwarf_sandbox_reader;
	reader.serve = serve;
	readers[SANDBOX_DWARF] = &reader;
	return shared == MAP_FAILED ? -1 : sandbox_start(readers);
}

static int tear_down(void **state)
{
	sandbox_stop();
	return 0;
}

int main(void)
{
	return run_unit_tests(set_up, tear_down);
}
