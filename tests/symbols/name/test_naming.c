// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * naming: kernel addresses while the kernel's list changes: modules that are loaded, BPF programs
 * that replace others.
 * Live: reads a clock.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <unistd.h>

#include "symbols/name/naming.h"
#include "symbols/script/script.h"
#include "symbols/name/name.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/jit/jit.h"
#include "symbols/java/java.h"

#define CODE 0xffffffffc0000000ULL

struct fixture {
	struct objects *objects;
	struct symtab *symtab;
	struct naming naming;
	atomic_bool stop;
	char path[32], modules[40];
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

static void write_list(const struct fixture *f, const char *text)
{
	write_file(f->path, text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_int_equal(objects_new(&f->objects), 0);
	assert_int_equal(symtab_new(&f->symtab), 0);
	naming_init(&f->naming, f->objects, f->symtab, &f->stop);
	strcpy(f->path, "/tmp/test_naming.XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	f->naming.kernel.path = f->path;
	snprintf(f->modules, sizeof(f->modules), "%s.m", f->path);
	f->naming.kernel.modules_path = f->modules;
	atomic_store(&objects_at(f->objects, OBJECT_ID_KERNEL)->state, OBJECT_READY);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	unlink(f->modules);
	naming_fini(&f->naming);
	symtab_free(f->symtab);
	objects_free(f->objects);
	free(f);
	return 0;
}

/* Request the name of @addr as of @since_ns; return it, or NULL while it has to wait. */
static const char *ask(struct fixture *f, uint64_t addr, uint64_t since_ns, bool now)
{
	const struct naming_question q = {
		.object = OBJECT_ID_KERNEL,
		.offset = addr,
		.since_ns = since_ns,
		.now = now,
	};
	struct naming_answer a;
	int rc = naming_find(&f->naming, &q, &a);

	if (rc == -EAGAIN)
		return NULL;
	assert_int_equal(rc, 0);
	return symtab_at(f->symtab, a.symbol)->name.str;
}

/* As if the list had been read @seconds earlier. */
static void age(struct fixture *f, uint64_t seconds)
{
	f->naming.kernel.read_ns -= seconds * 1000000000ULL;
}

TEST(test_new_module, setup, teardown)
{
	struct fixture *f = *state;

	write_list(f, "ffffffff81000000 T schedule\nffffffff81000100 T _etext\n");
	assert_string_equal(ask(f, 0xffffffff81000010, time_now_ns(), false), "schedule");
	/* Requested after the list was read: it may be new, but not each address reads the list. */
	assert_null(ask(f, CODE + 0x10, time_now_ns(), false));
	assert_string_equal(ask(f, CODE + 0x10, time_now_ns(), true), "[kernel] "
								      "0xffffffffc0000000");
	write_list(f, "ffffffff81000000 T schedule\nffffffff81000100 T _etext\n"
		      "ffffffffc0000000 t nft_eval\t[nf_tables]\n");
	age(f, 11);
	assert_string_equal(ask(f, CODE + 0x20, time_now_ns(), false), "nft_eval");
	assert_string_equal(objects_at(f->objects, OBJECT_ID_KERNEL)->source, "kallsyms");
}

/* The old name of memory that another program has now would be a wrong name. */
TEST(test_bpf_program_replaced, setup, teardown)
{
	struct fixture *f = *state;

	write_list(f, "ffffffff81000000 T schedule\n"
		      "ffffffffc0000000 t bpf_prog_1111_first\t[bpf]\n");
	assert_string_equal(ask(f, CODE + 0x10, time_now_ns(), false), "bpf_prog_1111_first");
	write_list(f, "ffffffff81000000 T schedule\n"
		      "ffffffffc0000000 t bpf_prog_1111_first\t[bpf]\n"
		      "ffffffffc0000040 t bpf_prog_2222_second\t[bpf]\n");
	assert_null(ask(f, CODE + 0x50, time_now_ns(), false));
	age(f, 3);
	assert_string_equal(ask(f, CODE + 0x50, time_now_ns(), false), "bpf_prog_2222_second");
	assert_string_equal(ask(f, 0xffffffff81000020, time_now_ns(), false), "schedule");
}

/* A module at the addresses of one that was removed: the list is read again, and names with it. */
TEST(module_replaced, setup, teardown)
{
	struct fixture *f = *state;

	write_file(f->modules, "first 16384 1 - Live 0xffffffffc0000000 (OE)\n");
	write_list(f, "ffffffff81000000 T schedule\n"
		      "ffffffffc0000000 t one\t[first]\n");
	assert_string_equal(ask(f, CODE + 0x10, time_now_ns(), false), "one");
	/* Other users of a module are not news. */
	write_file(f->modules, "first 16384 2 other, Live 0xffffffffc0000000 (OE)\n");
	assert_string_equal(ask(f, CODE + 0x20, time_now_ns(), false), "one");
	assert_false(naming_kernel_take_news(&f->naming.kernel));
	write_file(f->modules, "second 16384 0 - Live 0xffffffffc0000000\n");
	write_list(f, "ffffffff81000000 T schedule\n"
		      "ffffffffc0000000 t two\t[second]\n");
	f->naming.kernel.look_ns = 0;
	assert_null(ask(f, CODE + 0x30, time_now_ns(), false));
	age(f, 3);
	assert_string_equal(ask(f, CODE + 0x30, time_now_ns(), false), "two");
	assert_true(naming_kernel_take_news(&f->naming.kernel));
	assert_false(naming_kernel_take_news(&f->naming.kernel));
}

/* A signal handler returns to the start of its restorer: the byte before is another function's. */
TEST(test_restorer, setup, teardown)
{
	struct fixture *f = *state;
	struct image_segment segment = { .mem_size = 0x1000, .file_size = 0x1000, .exec = true };
	struct image_symbol symbols[] = { { .vaddr = 0x80, .size = 0x80, .name = 0 },
					  { .vaddr = 0x100, .size = 9, .name = 7 } };
	struct image image = { .sigreturn = 0x100,
			       .sigreturn_size = 9,
			       .segments = &segment,
			       .nr_segments = 1,
			       .symbols = symbols,
			       .nr_symbols = 1,
			       .names = "before\0runtime.sigreturn",
			       .names_size = 25 };
	const struct {
		uint64_t offset;
		uint32_t nr_symbols;
		const char *name;
	} cases[] = { { 0xfe, 1, "before" },
		      { 0xff, 0, "__restore_rt" },
		      { 0x107, 0, "__restore_rt" },
		      { 0xff, 2, "runtime.sigreturn" },
		      { 0x109, 0, "libc.so.6+0x109" } };

	struct safe_text names[ARRAY_SIZE(cases)];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct object_identity identity = { .kind = OBJECT_FILE, .ino = i };
		struct object *object =
			objects_intern(f->objects, &identity, "/lib/libc.so.6", 14, 0, 0, 0);
		const struct naming_question q = { .object = object->id,
						   .offset = cases[i].offset };
		struct naming_answer a = { .symbol = SYMBOL_NONE };

		atomic_store(&object->image, &image);
		atomic_store(&object->state, OBJECT_READY);
		image.nr_symbols = cases[i].nr_symbols;
		naming_find(&f->naming, &q, &a);
		names[i] = symtab_at(f->symtab, a.symbol)->name;
		atomic_store(&object->image, NULL); /* it is not to be freed */
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(names[i].str, cases[i].name);
}

/* A function of a script that found no place in the table: one symbol, and the reason. */
TEST(test_unnamed_function, setup, teardown)
{
	struct fixture *f = *state;
	const struct object_identity identity = { .kind = OBJECT_SCRIPT };
	struct object *object = objects_intern(f->objects, &identity, "[script]", 8, 0, 0, 0);
	const struct naming_question q = {
		.object = object->id,
		.offset = lang_place_at(CODE_UNNAMED, LANG_NO_INSTR),
	};
	struct naming_answer a;
	struct script_functions *codes = script_functions_new();

	f->naming.codes = codes;
	assert_int_equal(naming_find(&f->naming, &q, &a), 0);
	assert_string_equal(symtab_at(f->symtab, a.symbol)->name.str, "[script]");
	assert_true(symtab_at(f->symtab, a.symbol)->made_up);
	assert_int_equal(symtab_at(f->symtab, a.symbol)->object, object->id);
	assert_string_equal(atomic_load(&object->reason), "too many functions of interpreters");
	script_functions_free(codes);
}

static const char *name_in(struct fixture *f, const struct object *object, uint64_t offset)
{
	const struct naming_question q = { .object = object->id, .offset = offset };
	struct naming_answer a;

	assert_int_equal(naming_find(&f->naming, &q, &a), 0);
	return symtab_at(f->symtab, a.symbol)->name.str;
}

/* Code in a file that is no ELF, as in sbcl.core, is by page; of an ELF file, by address. */
TEST(test_no_elf, setup, teardown)
{
	struct fixture *f = *state;
	const struct object_identity identity = { .kind = OBJECT_FILE, .ino = 5 };
	struct object *object = objects_intern(f->objects, &identity, "/x/my.core", 10, 0, 0, 0);

	atomic_store(&object->state, OBJECT_FAILED);
	assert_string_equal(name_in(f, object, 0x1b47948), "my.core+0x1b47948");
	atomic_store(&object->no_elf, true);
	assert_string_equal(name_in(f, object, 0x1b47948), "my.core+0x1b47000");
	assert_ptr_equal(name_in(f, object, 0x1b47951), name_in(f, object, 0x1b4794c));
	assert_string_equal(name_in(f, object, 0x1b48000), "my.core+0x1b48000");
}

TEST(test_hidden, setup, teardown)
{
	struct fixture *f = *state;

	write_list(f, "0000000000000000 T schedule\n0000000000000000 T _etext\n");
	assert_string_equal(ask(f, CODE, time_now_ns(), false), "[kernel]");
	assert_string_equal(objects_at(f->objects, OBJECT_ID_KERNEL)->reason, "kernel addresses "
									      "are hidden from "
									      "this user");
	assert_non_null(strstr(objects_at(f->objects, OBJECT_ID_KERNEL)->fix, "kernel.kptr_"
									      "restrict"));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
