// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptions of interpreters by a reader that was taken over: they are bounded, and their
 * language is that of the object by which the process was found.
 * Live: reads memory of processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbols/sandbox/sandbox.h"
#include "tests/makers/detect.h"
#include "symbols/elf/elf.h"
#include "symbols/process/process.h"
#include "tests/makers/eh_frame.h"
#include "tests/makers/elf.h"
#include "tests/makers/interpreters.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"

#define BASE	  0x400000U
#define CODE_SIZE 0x1000U

#define NR_ROUNDS 300U

/* The answer of the worker, which shares this memory. */
static struct said {
	struct detect_file file;
	bool own_kind; /* not that of the name */
	size_t size;
} * said;

static int serve_request(struct sandbox_call *c)
{
	const struct elf_sandbox_answer head = { .nr_missed = { 0, 0 } };
	struct detect_file file = said->file;
	struct detect_request r;

	memcpy(&r, (const uint8_t *)c->request + c->size - sizeof(r), sizeof(r));
	if (!said->own_kind)
		file.kind = r.kind;
	sandbox_put(&c->reply, &head, sizeof(head));
	sandbox_put(&c->reply, &file, said->size);
	return 0;
}

static enum lang_kind kind_of(const char *name, uint8_t loop)
{
	struct object object = { .name = { .str = name, .size = strlen(name) }, .loop = loop };

	return detect_kind(&object);
}

/* Describe this process by the file of this program, as if it were the one of @name. */
static int detect_as(const char *name, struct lang_process *out)
{
	struct detect_where where = { .pid = getpid() };
	struct detect *d;
	struct stat st;
	int rc;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	where.ino = st.st_ino;
	where.maj = major(st.st_dev);
	where.min = minor(st.st_dev);
	where.path = realpath("/proc/self/exe", NULL);
	where.kind = kind_of(name, 0);
	snprintf(where.name, sizeof(where.name), "%s", name);
	d = detect_new(&where);
	assert_non_null(d);
	d->job.run(&d->job);
	rc = d->rc;
	assert_true(!rc == !!d->desc);
	if (!rc)
		*out = d->desc->info;
	d->job.drop(&d->job);
	return rc;
}

TEST(test_kinds)
{
	struct lang_process p;

	*said = (struct said){ .size = sizeof(said->file) };
	assert_int_equal(detect_as("python3.11", &p), 0);
	assert_int_equal(p.kind, LANG_PYTHON);
	assert_non_null(p.reason); /* its runtime is at 0 */
	assert_int_equal(p.user, getuid());
	assert_false(p.nested);
	/* Not the name of the object: a process may map the file by another one. */
	assert_int_equal(detect_as("x", &p), -ENOENT);
	assert_int_equal(detect_as("", &p), -ENOENT);
	said->own_kind = true;
	for (said->file.kind = 0; said->file.kind < 256; said->file.kind++)
		assert_int_equal(detect_as("python3.11", &p),
				 said->file.kind == LANG_PYTHON ? 0 : -EBADMSG);
	said->own_kind = false;
	said->file.nr_eval = LANG_EVAL_MAX + 1;
	assert_int_equal(detect_as("python3.11", &p), -EBADMSG);
	said->file.nr_eval = LANG_EVAL_MAX;
	said->file.nr_main = LANG_MAIN_MAX + 1;
	assert_int_equal(detect_as("python3.11", &p), -EBADMSG);
	said->file.nr_main = LANG_MAIN_MAX;
	assert_int_equal(detect_as("python3.11", &p), 0);
	said->size--;
	assert_int_equal(detect_as("python3.11", &p), -EBADMSG);
}

/* Numbers at random: no layout that was refused is without a reason. */
TEST(test_numbers)
{
	static const char *const names[] = { "python3.8", "python3.15", "php8.2",
					     "ruby3.1",	  "perl5.36",	"node" };
	struct lang_process p;
	unsigned int seed = 1;
	bool nearest;

	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		*said = (struct said){ .size = sizeof(said->file) };
		for (size_t i = 0; i < sizeof(said->file); i++)
			((uint8_t *)&said->file)[i] = (uint8_t)(rand_r(&seed) >> 8);
		said->file.nr_eval %= LANG_EVAL_MAX + 1;
		said->file.nr_main %= LANG_MAIN_MAX + 1;
		if (round % 2) /* readable */
			said->file.runtime = said->file.version_at = (uintptr_t)said;
		said->file.bias = round % 4 ? 0 : said->file.bias;
		assert_int_equal(detect_as(names[round % ARRAY_SIZE(names)], &p), 0);
		assert_in_range(p.kind, LANG_PYTHON, LANG_NR - 1);
		assert_in_range(p.nr_eval, 0, LANG_EVAL_MAX);
		if (p.kind == LANG_NODE && !p.reason)
			assert_null(v8layout_complete(&p.v8, p.version, &nearest));
		if (p.kind == LANG_PYTHON && !p.reason)
			assert_non_null(pylayout_of(p.version));
	}
}

/* A symbol of a made file. */
struct made_symbol {
	const char *name;
	uint64_t value, size;
};

/* The first bytes of its code. */
static uint8_t made_code[512];

/* Read the file of @name that exports the @nr symbols. */
static int read_made(enum lang_kind kind, const char *name, const struct made_symbol *symbols,
		     size_t nr, struct detect_file *out)
{
	Elf64_Sym syms[16] = { 0 };
	char strings[512] = "";
	size_t used = 1;
	struct elfmake m;
	struct elffile f;
	struct err e;
	int rc;

	elfmake_init(&m, EM_X86_64, BASE, CODE_SIZE);
	memcpy(m.bytes + 0x1000, made_code, sizeof(made_code));
	for (size_t i = 0; i < nr; i++) {
		syms[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)used,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL,
								    kind == LANG_GO ? STT_FUNC
										    : STT_OBJECT),
					   .st_shndx = 1,
					   .st_value = symbols[i].value,
					   .st_size = symbols[i].size };
		strcpy(strings + used, symbols[i].name);
		used += strlen(symbols[i].name) + 1;
	}
	elfmake_symbols(&m, SHT_DYNSYM, syms, nr + 1, strings, used);
	elfmake_finish(&m);
	assert_int_equal(elffile_open(&f, -1, m.bytes, m.size, &e), 0);
	rc = detect_read_file(out, &f, kind, name, 0);
	elffile_close(&f);
	elfmake_fini(&m);
	return rc;
}

/* Debian's /usr/bin/node is a small program beside libnode.so, which has the numbers. */
TEST(test_program_beside_library)
{
	static const struct made_symbol of_program[] = { { "main", BASE + 16, 4 } },
					of_library[] = { { "v8dbg_off_fp_function", BASE + 64,
							   4 } };
	struct detect_file file;

	assert_int_equal(read_made(LANG_NODE, "node", NULL, 0, &file), -ENOENT);
	assert_int_equal(read_made(LANG_NODE, "node", of_program, 1, &file), -ENOENT);
	assert_int_equal(read_made(LANG_NODE, "libnode.so.108", of_library, 1, &file), 0);
	assert_int_equal(file.kind, LANG_NODE);
}

/*
 * A stripped libnode.so exports no function of WebAssembly's manager: its variable is found by a
 * function that calls the one for the engine, which is behind it (of gcc and clang).
 */
TEST(test_wasm_of_stripped)
{
	static const struct made_symbol symbols[] = {
		{ "v8dbg_off_fp_function", BASE + 512, 4 },
		{ "_ZN2v816WasmModuleObject18FromCompiledModuleEPNS_7IsolateERKNS_"
		  "18CompiledWasmModuleE",
		  BASE + 64, 32 },
	};
	static const uint8_t engines[][20] = {
		{ 0x48, 0x8b, 0x05, 0xf9, 0, 0, 0, 0x48, 0x05, 0xd0, 0, 0, 0, 0xc3 },
		{ 0x55, 0x48, 0x89, 0xe5, 0xb8, 0xd0, 0, 0, 0, 0x48, 0x03, 0x05, 0xf0, 0, 0, 0 },
		{ 0x48, 0x8b, 0x05, 0xf9, 0, 0, 0, 0xc3 }, /* a manager apart */
	};
	struct detect_file file;

	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		/* push %rbp; mov %rsp,%rbp; call */
		static const uint8_t call[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0, 0, 0 };

		memset(made_code, 0x90, sizeof(made_code));
		memcpy(made_code + 64, call, sizeof(call));
		memcpy(made_code + 320, engines[i], sizeof(engines[i]));
		assert_int_equal(read_made(LANG_NODE, "libnode.so.137", symbols, 2, &file), 0);
		assert_int_equal(file.code_type, i < 2 ? BASE + 320 + 256 : 0);
	}
	memset(made_code, 0, sizeof(made_code));
}

/* Files of other names are known by a function. */
TEST(test_other_names)
{
	static const struct {
		const char *name;
		uint8_t loop;
		enum lang_kind kind;
	} files[] = {
		{ "python3.11", 0, LANG_PYTHON },
		{ "my-service", 0, LANG_NONE },
		{ "my-service", 1, LANG_PYTHON },
		{ "frankenphp", 2, LANG_PHP },
		{ "my_ruby", 3, LANG_RUBY },
		{ "myperl", 4, LANG_PERL },
		{ "nsolid", 5, LANG_NODE },
		{ "redis-server", 7, LANG_LUA },
		{ "openresty", 6, LANG_LUAJIT },
		{ "lua5.4", 0, LANG_LUA },
		{ "liblua5.3.so.0.0.0", 0, LANG_LUA },
		{ "luac", 0, LANG_NONE },
		{ "libR.so", 0, LANG_R },
		{ "R", 0, LANG_R },
		{ "Rscript", 0, LANG_NONE },
		{ "beam.smp", 0, LANG_BEAM },
		{ "luajit-2.1", 0, LANG_LUAJIT },
		{ "emqx", 8, LANG_BEAM },
		{ "my-statistics", 9, LANG_R },
		{ "my-service", 10, LANG_GO },
		{ "node-exporter", 10, LANG_GO },
		{ "my-service", 11, LANG_NONE },
		{ "my-service", 255, LANG_NONE },
		{ "php8.2", 1, LANG_PHP },
		{ "python", 1, LANG_PYTHON },
		{ "phpize", 0, LANG_NONE },
	};
	static const struct made_symbol of_3_9[] = { { "_PyRuntime", BASE + 64, 64 },
						     { "PyCode_Type", BASE + 128, 64 },
						     { "_PyEval_EvalFrameDefault", BASE + 256, 64 },
						     { "PyObject_GC_IsTracked", BASE + 512, 8 },
						     { "PyCode_NewWithPosOnlyArgs", BASE + 520,
						       8 } },
					of_3_11[] = { { "_PyRuntime", BASE + 64, 64 },
						      { "PyCode_Type", BASE + 128, 64 },
						      { "_PyEval_EvalFrameDefault", BASE + 256,
							64 },
						      { "Py_NewRef", BASE + 512, 8 },
						      { "Py_Version", BASE + 520, 8 } };
	struct detect_file file;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(kind_of(files[i].name, files[i].loop), files[i].kind);
	assert_int_equal(read_made(LANG_PYTHON, "my-service", of_3_9, ARRAY_SIZE(of_3_9), &file),
			 0);
	assert_int_equal(file.version, 0x03090000);
	/* It is in the process. */
	assert_int_equal(read_made(LANG_PYTHON, "my-service", of_3_11, ARRAY_SIZE(of_3_11), &file),
			 0);
	assert_int_equal(file.version, 0);
	assert_int_equal(file.version_at, BASE + 520);
}

/* Functions of Go that change the stack, which its table has without their ABI. */
TEST(test_go)
{
	static const struct made_symbol table[] = { { "runtime.asmcgocall", BASE + 256, 64 },
						    { "runtime.asmcgocall.abi0", BASE + 512, 8 },
						    { "runtime.asmcgocall_no_g", BASE + 640, 8 },
						    { "runtime.systemstack.abi0", BASE + 704, 8 },
						    { "runtime.systemstack_switch", BASE + 768,
						      8 } };
	struct detect_file file;

	assert_int_equal(read_made(LANG_GO, "my-service", table, ARRAY_SIZE(table), &file), 0);
	assert_int_equal(file.nr_eval, 3);
	assert_int_equal(file.eval[0].start, BASE + 256);
	assert_int_equal(file.eval[1].end, BASE + 520);
	assert_int_equal(file.eval[2].start, BASE + 704);
	assert_int_equal(read_made(LANG_GO, "my-service", table + 2, 1, &file), -ENOENT);
}

/*
 * PHP by the version in its file, also where no section has its name; one that is not read has its
 * version for the message.
 */
TEST(test_php)
{
	static const char *const apis[] = { "API420220829,NTS", "API420240924,NTS",
					    "API420260924,NTS", "API420240924,TS",
					    "API420270924,NTS" };
	static const uint32_t versions[] = { 0x08020000, 0x08040000, 0x08060000, 0x08070000,
					     0x08070000 };
	static const uint16_t current[] = { 488, 488, 512, 0, 0 };

	for (size_t k = 0; k < 2 * ARRAY_SIZE(apis); k++) {
		const size_t i = k / 2;
		static const char header[] = "X-Powered-By: PHP/8.7.1";
		static const Elf64_Sym syms[] = {
			{ 0 },
			{ .st_name = 1, .st_shndx = 1, .st_value = BASE + 64, .st_size = 8 },
			{ .st_name = 18, .st_shndx = 1, .st_value = BASE + 128, .st_size = 64 }
		};
		static const char names[] = "\0executor_globals\0execute_ex";
		char bytes[64] = "";
		struct detect_file file;
		struct lang_process p;
		struct elfmake m;
		struct elffile f;
		struct err e;

		memcpy(bytes, header, sizeof(header));
		memcpy(bytes + sizeof(header), apis[i], strlen(apis[i]));
		elfmake_init(&m, EM_X86_64, BASE, CODE_SIZE);
		if (k % 2)
			elfmake_section(&m, ".rodata",
					(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
						      .sh_size = sizeof(bytes) },
					bytes);
		else
			memcpy(m.bytes + 0x1000, bytes, sizeof(bytes));
		elfmake_symbols(&m, SHT_DYNSYM, syms, 3, names, sizeof(names));
		elfmake_finish(&m);
		assert_int_equal(elffile_open(&f, -1, m.bytes, m.size, &e), 0);
		assert_int_equal(detect_read_file(&file, &f, LANG_PHP, "php", 0), 0);
		elffile_close(&f);
		elfmake_fini(&m);
		assert_int_equal(file.version, versions[i]);
		*said = (struct said){ .file = file, .size = sizeof(file) };
		/* A later one is sought in the process. */
		assert_int_equal(detect_as("php", &p), current[i] ? 0 : -EAGAIN);
		if (!current[i])
			continue;
		assert_null(p.reason);
		assert_int_equal(p.version, versions[i]);
		assert_int_equal(p.php.current, current[i]);
	}
}

/* With threads the table of these is known by the code of ts_free_thread(). */
TEST(test_php_threads_file)
{
	static const struct made_symbol symbols[] = {
		{ "executor_globals_offset", BASE + 448, 8 },
		{ "ts_free_thread", BASE + 64, 64 },
		{ "execute_ex", BASE + 320, 64 },
	};
	/* mov mutex, %rdi; call; movslq size, %rcx; mov, xor, div; mov table, %rax; the last one
	 * with the table in front of the size. */
	static const uint8_t codes[][40] = {
		{ 0x48, 0x8b, 0x3d, 0xf9, 0,	0,    0,    0xe8, 0,	0,    0,    0,
		  0x48, 0x63, 0x0d, 0x1d, 1,	0,    0,    0x48, 0x89, 0xe8, 0x31, 0xd2,
		  0x48, 0xf7, 0xf1, 0x48, 0x8b, 0x05, 0x1e, 1,	  0,	0 },
		{ 0x48, 0x8b, 0x05, 0xf9, 0, 0, 0, 0x48, 0x63, 0x0d, 0x2a, 1, 0, 0, 0xc3 },
	};
	static const char api[] = "API420220829,TS";
	struct detect_file file;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct lang_process p;

		memset(made_code, 0x90, sizeof(made_code));
		memcpy(made_code + 64, codes[i], sizeof(codes[i]));
		memcpy(made_code + 464, api, sizeof(api));
		assert_int_equal(read_made(LANG_PHP, "php", symbols, 3, &file), 0);
		assert_int_equal(file.version, 0x08020000);
		assert_int_equal(file.runtime, BASE + 448);
		assert_int_equal(file.code_type, i ? 0 : BASE + 64 + 34 + 0x11e);
		assert_int_equal(file.version_at, i ? BASE + 448 : BASE + 64 + 19 + 0x11d);
		if (!i)
			continue;
		*said = (struct said){ .file = file, .size = sizeof(file) };
		assert_int_equal(detect_as("php", &p), 0);
		assert_non_null(strstr(p.reason, "with threads"));
	}
	memset(made_code, 0, sizeof(made_code));
}

/* The layout is proven on the globals of a thread that has a stack of frames. */
TEST(test_php_threads)
{
	static struct {
		uint64_t entry[16];
		struct made_php php;
	} threads[2];
	static uint64_t offset = sizeof(threads[0].entry), table[3], *pointer = table;
	static uint64_t storage[3];
	static uint32_t slots = 3;
	struct lang_process p;

	*said = (struct said){ .size = sizeof(said->file) };
	said->file.machine = EM_X86_64;
	said->file.runtime = (uintptr_t)&offset;
	said->file.code_type = (uintptr_t)&pointer;
	said->file.version_at = (uintptr_t)&slots;
	for (uint32_t i = 0; i < 3; i++) {
		const struct php_layout *l = &php_version(i == 2 ? 5 : i ? 3 : 1)->layout;

		said->file.php = i == 2 ? 0 : i ? 4 : 2;
		said->file.version = 0x08070000;
		memset(threads, 0, sizeof(threads));
		threads[0].entry[ENTRY_THREAD / 8] = 3000 + 2;
		threads[0].entry[ENTRY_NEXT / 8] = (uintptr_t)threads[1].entry;
		threads[1].entry[ENTRY_THREAD / 8] = 6000 + 2;
		table[2] = (uintptr_t)threads[0].entry;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		make_php(&threads[1].php, l);
		assert_int_equal(detect_as("php", &p), 0);
		assert_null(p.reason);
		/* Compared with the truth were threads of 8.2. */
		assert_int_equal(p.untried, i > 0);
		assert_int_equal(p.php.current, l->current + offset);
		assert_int_equal(p.php.stack, l->stack + offset);
		assert_int_equal(p.runtime, (uintptr_t)&slots);
		assert_int_equal(p.code_type, (uintptr_t)&pointer);
		/* A program that uses it has a copy of the variable, which is 0 here. */
		offset = 0;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		threads[1].entry[0] = (uintptr_t)storage;
		threads[1].entry[1] = ARRAY_SIZE(storage);
		storage[1] = (uintptr_t)threads[1].php.globals;
		assert_int_equal(detect_as("php", &p), 0);
		offset = sizeof(threads[0].entry);
		assert_int_equal(p.php.current, l->current + offset);
		/* An entry in the slot of another; a page with another end. */
		threads[1].entry[ENTRY_THREAD / 8]++;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		threads[1].entry[ENTRY_THREAD / 8]--;
		threads[1].php.page[1] += 8;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
	}
	said->file.runtime = 0;
	assert_int_equal(detect_as("php", &p), 0);
	assert_non_null(p.reason);
}

/* A later PHP that runs a function, with members where no version so far has them. */
TEST(test_php_unseen)
{
	static struct made_php php;
	const struct php_layout *row = &php_version(5)->layout;
	struct php_layout layouts[] = { *row, *row, *row };
	struct lang_process p;

	layouts[0].stack = 496;
	layouts[1].stack = layouts[2].stack = 536;
	layouts[2].nr_ops = 108;
	layouts[2].ops = 112;
	layouts[2].file = 200;
	*said = (struct said){ .size = sizeof(said->file) };
	said->file.machine = EM_X86_64;
	said->file.version = 0x08070000;
	said->file.runtime = (uintptr_t)php.globals;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		make_php(&php, &layouts[i]);
		/* No script runs yet: it is as the newest one that is known. */
		php.globals[layouts[i].stack / 8 + 2] = 0;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		make_php(&php, &layouts[i]);
		assert_int_equal(detect_as("php", &p), 0);
		assert_null(p.reason);
		assert_true(p.untried);
		assert_int_equal(p.php.stack, layouts[i].stack);
		assert_int_equal(p.php.current, layouts[i].stack + 16);
		assert_int_equal(p.php.nr_ops, layouts[i].nr_ops);
		assert_int_equal(p.php.ops, layouts[i].ops);
		assert_int_equal(p.php.file, layouts[i].file);
		assert_int_equal(p.php.line, layouts[i].file + 8);
		/* A line outside of the function, no return at its end, a page with another end. */
		php.ops[7] = 10;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		php.ops[7] = 7;
		((uint8_t *)(php.ops + 12))[OP_CODE] = RETURN + 1;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
		((uint8_t *)(php.ops + 12))[OP_CODE] = RETURN;
		php.page[1] += 8;
		assert_int_equal(detect_as("php", &p), -EAGAIN);
	}
}

/* Of the loops of Lua and LuaJIT. */
#define LUA_COMPARE "attempt to compare %s with %s"

/* The address of its code; unwind tables are at EH_VADDR. */
#define STRIPPED_BASE (EH_VADDR - 0x3400)

/* Make a program without symbols: two texts, a function of 8 KiB and one behind it. */
static void make_stripped(struct elfmake *m, const char *text, const char *text2)
{
	static struct eh_section eh;
	uint32_t cie, to;

	eh.size = 0;
	cie = eh_cie(&eh, false, eh_usual, sizeof(eh_usual));
	eh_fde(&eh, cie, STRIPPED_BASE + 0x1000, 0x2000, NULL, 0);
	eh_fde(&eh, cie, STRIPPED_BASE + 0x3000, 0x100, NULL, 0);
	elfmake_init(m, EM_X86_64, STRIPPED_BASE, 0x4000);
	strcpy((char *)m->bytes + 0x1000, text);
	strcpy((char *)m->bytes + 0x1080, text2);
	for (uint32_t i = 0; i < 8; i++) {
		uint8_t *store = m->bytes + 0x2000 + 0x100 + (size_t)16 * i;
		uint8_t *call = m->bytes + 0x2000 + 0x2000 + (size_t)16 * i;

		memcpy(store, "\x48\x89\x58\x20", 4); /* mov %rbx,32(%rax) */
		call[0] = 0xe8;
		to = 0x1000 + 0x40 - (0x3000 + 16 * i + 5);
		memcpy(call + 1, &to, sizeof(to));
	}
	elfmake_section(m, ".eh_frame",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = EH_VADDR,
				      .sh_offset = 0x1000 + 0x3400,
				      .sh_size = eh.size },
			eh.bytes);
	elfmake_finish(m);
}

/*
 * Interpreters without symbols: the loop by its code, or the reason why not. Others are none, such
 * as a program that has the first text to recognise an interpreter.
 */
TEST(test_stripped)
{
	static const struct {
		const char *text, *text2, *name;
		enum lang_kind kind;
		uint8_t loop;
		bool found, stripped;
	} files[] = {
		{ "$LuaVersion: Lua 5.4.4  Copyright", LUA_COMPARE, "lua", LANG_LUA, 7, true,
		  false },
		{ "$LuaVersion: Lua 5.1.5  Copyright", LUA_COMPARE, "lua", LANG_LUA, 7, false,
		  true },
		{ "$LuaVersion: Lua 5.1.5  Copyright", "", "lua", LANG_LUA, 0, false, false },
		{ "LuaJIT 2.1.0-beta3", LUA_COMPARE, "luajit", LANG_LUAJIT, 6, true, false },
		{ "panic: restartop in perl_run", "Can't locate object method \"%s\"", "perl",
		  LANG_PERL, 4, false, true },
		{ "panic: restartop in perl_run", "any text", "perl", LANG_PERL, 0, false, false },
		{ "zend_mm_heap corrupted", "Cannot redeclare %s", "php", LANG_PHP, 2, false,
		  true },
		{ "zend_mm_heap corrupted", "", "php", LANG_PHP, 0, false, false },
		{ "Fatal Python error: x", "__build_class__", "python3.11", LANG_PYTHON, 1, false,
		  true },
		{ "Fatal Python error: x", "", "python3.11", LANG_PYTHON, 0, false, false },
		{ "", "__build_class__", "python3.11", LANG_PYTHON, 0, false, false },
		{ "any text", "", "lua", LANG_LUA, 0, false, false },
		{ "any text", LUA_COMPARE, "perl", LANG_PERL, 0, false, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct detect_file file;
		struct lang_process p;
		struct image *image;
		struct elfmake m;
		struct elffile f;
		struct err e;

		make_stripped(&m, files[i].text, files[i].text2);
		assert_int_equal(elffile_open(&f, -1, m.bytes, m.size, &e), 0);
		assert_int_equal(image_build(&image, &(struct image_parts){ .file = &f }), 0);
		assert_int_equal(image->loop, files[i].loop);
		image_free(image);
		/* The texts are for a process that is read: a recording has none. */
		assert_int_equal(image_build(&image,
					     &(struct image_parts){ .file = &f, .recorded = true }),
				 0);
		assert_int_equal(image->loop, 0);
		image_free(image);
		assert_int_equal(detect_read_file(&file, &f, files[i].kind, "service", 0),
				 files[i].loop ? 0 : -ENOENT);
		elffile_close(&f);
		elfmake_fini(&m);
		assert_int_equal(file.nr_eval, files[i].found);
		assert_int_equal(file.stripped, files[i].stripped);
		if (files[i].found) {
			assert_int_equal(file.eval[0].start, STRIPPED_BASE + 0x1000);
			assert_int_equal(file.eval[0].end, STRIPPED_BASE + 0x3000);
			assert_int_equal(file.runtime, STRIPPED_BASE);
		}
		if (!files[i].stripped)
			continue;
		*said = (struct said){ .file = file, .size = sizeof(file) };
		assert_int_equal(detect_as(files[i].name, &p), 0);
		assert_string_equal(p.reason, "its interpreter has no symbols");
		assert_non_null(strstr(lang_fix(&p), "-rdynamic"));
	}
}

/* The size of struct interpreter. */
TEST(test_versions_in_memory)
{
	static uint16_t size;
	struct lang_process p;

	*said = (struct said){ .size = sizeof(said->file) };
	said->file.machine = EM_X86_64;
	said->file.version_at = (uintptr_t)&size;
	for (uint32_t i = 0; i < 5000; i++) {
		size = (uint16_t)i;
		if (i % 8 && i != 3769)
			continue;
		/* Others are proven on the process. */
		if (i != 3768 && i != 3776) {
			assert_int_equal(detect_as("perl", &p), -EAGAIN);
			continue;
		}
		assert_int_equal(detect_as("perl", &p), 0);
		assert_null(p.reason);
		assert_false(p.untried);
	}
}

/* A later Perl, by the stacks and the statement of its interpreter. */
TEST(test_perl_unseen)
{
	static uint16_t size = 3800;
	static struct made_perl perl;
	struct lang_process p;

	*said = (struct said){ .size = sizeof(said->file) };
	said->file.machine = EM_X86_64;
	said->file.version_at = (uintptr_t)&size;
	said->file.runtime = (uintptr_t)&perl.curinterp;
	assert_int_equal(detect_as("perl", &p), -EAGAIN);
	make_perl(&perl);
	assert_int_equal(detect_as("perl", &p), 0);
	assert_null(p.reason);
	assert_true(p.untried);
	/* Another layout is refused without a wait, one that runs nothing yet is not. */
	perl.info[4] = 61 | 60ULL << 32;
	assert_int_equal(detect_as("perl", &p), 0);
	assert_string_equal(p.reason, "not supported (5.36 to 5.44 with threads are)");
	perl.info[4] = 2 | 60ULL << 32;
	perl.cop[4] = 0;
	assert_int_equal(detect_as("perl", &p), -EAGAIN);
}

/* Ruby's layout is proven on the process, through an address that its code has of its VM. */
TEST(test_ruby_proof)
{
	static const struct {
		const char *text;
		uint32_t version;
	} versions[] = { { "3.1.2", 0x03010200 }, { "3.2.11", 0x03020b00 },
			 { "3.3.8", 0x03030800 }, { "3.4.11", 0x03040b00 },
			 { "4.0.5", 0x04000500 }, { "4.0.6", 0x04000600 },
			 { "4.0.10", 0x04000a00 } };
	static struct made_vm vm;
	struct lang_process p;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		make_vm(&vm, versions[i].text, &ruby_version(versions[i].version)->layout);
		*said = (struct said){ .size = sizeof(said->file) };
		said->file.version_at = (uintptr_t)vm.version;
		said->file.runtime = (uintptr_t)&vm.pointer;
		said->file.nr_eval = 1;
		assert_int_equal(detect_as("libruby.so", &p), 0);
		assert_null(p.reason);
		assert_int_equal(p.version, versions[i].version);
		assert_int_equal(p.runtime, (uintptr_t)&vm.pointer);
		/* A pointer to it, as in the table of offsets of a library. */
		said->file.runtime = (uintptr_t)&vm.pointer2;
		assert_int_equal(detect_as("libruby.so", &p), 0);
		assert_null(p.reason);
		assert_int_equal(p.runtime, (uintptr_t)&vm.pointer);
		/* A loop that is found nowhere. */
		said->file.nr_eval = 0;
		assert_int_equal(detect_as("libruby.so", &p), 0);
		assert_string_equal(p.reason, "the loop of this build has no unwind table");
	}
}

TEST(test_ruby_without_proof)
{
	static struct made_vm vm;
	struct lang_process p;

	make_vm(&vm, "3.3.8", &ruby_version(0x03030800)->layout);
	*said = (struct said){ .size = sizeof(said->file) };
	said->file.version_at = (uintptr_t)vm.version;
	said->file.nr_eval = 1;
	assert_int_equal(detect_as("libruby-3.3.so", &p), 0); /* without an address of its VM */
	assert_string_equal(p.reason, "the VM of this build is not found");
	said->file.runtime = (uintptr_t)&vm.pointer;
	/* No VM yet, no frame yet, or structures of another version. */
	vm.pointer = NULL;
	assert_int_equal(detect_as("libruby-3.3.so", &p), -EAGAIN);
	vm.pointer = vm.words;
	vm.ec[2] += 56;
	assert_int_equal(detect_as("libruby-3.3.so", &p), -EAGAIN);
	make_vm(&vm, "3.3.8", &ruby_version(0x03010200)->layout);
	assert_int_equal(detect_as("libruby-3.3.so", &p), -EAGAIN);
	make_vm(&vm, "5.0.0", &ruby_version(0x03010200)->layout);
	assert_int_equal(detect_as("libruby-5.0.so", &p), -EAGAIN);
	make_vm(&vm, "3.0.7", &ruby_version(0x03010200)->layout);
	assert_int_equal(detect_as("libruby-3.0.so", &p), 0);
	assert_string_equal(p.reason, "not supported (3.1 to 4.0 are)");
	assert_int_equal(p.version, 0x03000700);
}

/* A later version, or a patch level, in which structures have other members: they are sought. */
TEST(test_ruby_unseen)
{
	static const char *const versions[] = { "4.0.9", "4.1.0", "5.0.2" };
	struct ruby_layout l = ruby_version(0x04000600)->layout;
	static struct made_vm vm;
	struct lang_process p;

	l.ractor_node += 40;
	l.ractor_threads -= 8;
	l.native_tid += 16;
	l.ec_c_stack += 8;
	l.ec_c_stack_size += 8;
	l.frame_size += 8;
	*said = (struct said){ .size = sizeof(said->file) };
	said->file.machine = EM_X86_64;
	said->file.version_at = (uintptr_t)vm.version;
	said->file.runtime = (uintptr_t)&vm.pointer;
	said->file.nr_eval = 1;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		make_vm(&vm, versions[i], &l);
		assert_int_equal(detect_as("libruby.so", &p), 0);
		assert_null(p.reason);
		assert_true(p.untried);
		assert_int_equal(p.ruby.ractor_node - p.ruby.ractor_threads,
				 l.ractor_node - l.ractor_threads);
		assert_int_equal(p.ruby.native_tid, l.native_tid);
		assert_int_equal(p.ruby.ec_c_stack, l.ec_c_stack);
		assert_int_equal(p.ruby.ec_c_stack_size, l.ec_c_stack_size);
		assert_int_equal(p.ruby.frame_size, l.frame_size);
		/* A list that does not lead back, a frame of another kind. */
		vm.thread[l.thread_node / 8 + 1]++;
		assert_int_equal(detect_as("libruby.so", &p), -EAGAIN);
		make_vm(&vm, versions[i], &l);
		vm.iseq[0]++;
		assert_int_equal(detect_as("libruby.so", &p), -EAGAIN);
	}
}

/*
 * Code of rb_during_gc(): of Debian's 3.3.8, of a program that is not moved, with a frame pointer,
 * of AArch64; others have no address.
 */
TEST(test_ruby_vm_in_code)
{
	static const struct {
		uint16_t machine;
		uint8_t code[32];
		uint64_t address; /* from BASE on */
	} rows[] = {
		{ EM_X86_64,
		  { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05, 0x7d, 0x2b, 0x37, 0x00, 0x48, 0x8b },
		  0x100 + 11 + 0x372b7d },
		{ EM_X86_64,
		  { 0x48, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff, 0x48, 0x85 },
		  0x100 + 7 - 16 },
		{ EM_X86_64,
		  { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x4c,
		    0x8b, 0x2d, 0x00, 0x01, 0x00, 0x00 },
		  0x100 + 19 + 0x100 },
		{ EM_X86_64, { 0x31, 0xc0, 0xc3 }, 0 },
		/* adrp x0, +0x12000; add x0, x0, #0x348 */
		{ EM_AARCH64, { 0x80, 0x00, 0x00, 0xd0, 0x00, 0x20, 0x0d, 0x91 }, 0x12348 },
		/* adrp x3, -0x1000; mov; ldr x0, [x3, #24] */
		{ EM_AARCH64,
		  { 0xe3, 0xff, 0xff, 0xf0, 0xe0, 0x03, 0x1f, 0xaa, 0x60, 0x0c, 0x40, 0xf9 },
		  (uint64_t)-0x1000 + 24 },
		{ EM_AARCH64, { 0x00, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 }, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static const Elf64_Sym syms[] = {
			{ 0 },
			{ .st_name = 1, .st_shndx = 1, .st_value = BASE + 64, .st_size = 8 },
			{ .st_name = 14, .st_shndx = 1, .st_value = BASE + 0x100, .st_size = 64 }
		};
		static const char names[] = "\0ruby_version\0rb_during_gc";
		struct detect_file file;
		struct elfmake m;
		struct elffile f;
		struct err e;

		elfmake_init(&m, rows[i].machine, BASE, CODE_SIZE);
		elfmake_symbols(&m, SHT_DYNSYM, syms, 3, names, sizeof(names));
		elfmake_finish(&m);
		memcpy(m.bytes + 0x1000 + 0x100, rows[i].code, sizeof(rows[i].code));
		assert_int_equal(elffile_open(&f, -1, m.bytes, m.size, &e), 0);
		assert_int_equal(detect_read_file(&file, &f, LANG_RUBY, "ruby", 0), 0);
		assert_int_equal(file.runtime, rows[i].address ? BASE + rows[i].address : 0);
		assert_int_equal(file.version_at, BASE + 64);
		elffile_close(&f);
		elfmake_fini(&m);
	}
}

TEST(test_titles)
{
	char buf[LANG_TITLE_MAX];

	assert_string_equal(lang_title(buf, lang_packed_version(LANG_NODE, 0x0d060000)), "V8 13.6");
	assert_string_equal(lang_title(buf, lang_packed_version(LANG_PYTHON, 0x031002f0)), "Python "
											   "3.16");
	assert_string_equal(lang_title(buf, lang_packed_version(LANG_PERL, 0)), "Perl");
	assert_string_equal(lang_title(buf, 255), "interpreter");
}

static struct sandbox_reader reader;

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS];

	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	reader = detect_reader;
	reader.serve = serve_request;
	readers[SANDBOX_DESCRIBE] = &reader;
	return said == MAP_FAILED ? -1 : sandbox_start(readers);
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
