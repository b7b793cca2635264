// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * code: functions of this very process with their lines, from a file, the
 * vdso, and memory; the kernel's from a core file made here; source files.
 * Live: waits for threads or processes.
 */
#include "symbols/code/code.c"

#include "tests/prelude.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/kernel/kernel.h"
#include "symbols/elf/elf.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/symbols.h"
#include "tests/symbols/with_symbols.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"

/* Where @function is in the file of this program. */
static uint64_t offset_in_file(int (*function)(int))
{
	uint64_t addr = (uint64_t)(uintptr_t)function, start, end, pgoff, found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096 + 128];

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &pgoff) ==
			    3 &&
		    addr >= start && addr < end)
			found = addr - start + pgoff;
	fclose(maps);
	return found;
}

/* The symbol that @addr of this process is named by. */
static uint32_t symbol_at(struct fixture *f, uint64_t addr, const char *name)
{
	uint64_t offset = 0;
	struct object *object = object_at(f, addr, &offset);
	uint32_t place, symbol;

	assert_non_null(object);
	place = places_intern(f->places, object->id, offset);
	symbols_run(f->symbols);
	symbol = atomic_load(&places_at(f->places, place)->symbol);
	if (name)
		assert_string_equal(symbols_at(f->symbols, symbol)->name.str, name);
	return symbol;
}

static struct listing *listing_in(struct fixture *f, uint32_t symbol,
				  const struct listing_instance *in)
{
	struct listing *l;

	symbols_want_code(f->symbols, symbol, in);
	assert_null(symbols_code(f->symbols, symbol));
	symbols_run(f->symbols);
	l = symbols_code(f->symbols, symbol);
	assert_non_null(l);
	return l;
}

static struct listing *listing_of(struct fixture *f, uint32_t symbol)
{
	return listing_in(f, symbol, &(struct listing_instance){ .object = 0 });
}

enum { FIRST_LINE = __LINE__ + 4 };
/* Clang and gcc alike: a loop and a call of another function of ours. */
__attribute__((noinline)) static int counted_function(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++, sum++)
		__asm__ volatile("nop" : "+r"(sum)); /* the line we look for */
	return sum + (int)strtol("7", NULL, 10);
}
enum { ASM_LINE = FIRST_LINE + 3, LAST_LINE = FIRST_LINE + 4 };

TEST(test_own_function, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t symbol = symbol_at(f, (uint64_t)(uintptr_t)&counted_function, "counted_function");
	struct listing *l = listing_of(f, symbol);
	const struct listing_file *file;
	bool asm_seen = false;

	assert_int_equal(counted_function(3), 10);
	assert_null(l->why);
	assert_null(l->no_source);
	assert_null(l->origin);
	assert_int_equal(l->nr_bytes, l->size);
	assert_true(l->nr_insns > 4);
	assert_int_equal(l->insns[0].vaddr, l->vaddr);
	assert_int_equal(l->insns[l->nr_insns - 1].vaddr + l->insns[l->nr_insns - 1].size,
			 l->vaddr + l->nr_bytes);
	assert_true(l->nr_files >= 1);
	file = &l->files[l->insns[0].file];
	assert_non_null(strstr(listing_text(l, file->path), "test_code.c"));
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];

		if (insn->file != l->insns[0].file)
			continue;
		assert_in_range(insn->line, FIRST_LINE - 2, LAST_LINE + 1);
		asm_seen |= insn->line == ASM_LINE;
		if (!file->why)
			assert_in_range(insn->line, file->first, file->first + file->nr_lines - 1);
	}
	assert_true(asm_seen);
	/* Built in another place, the program has no source here, and the listing says so. */
	assert_int_equal(file->why == NULL, access(listing_text(l, file->path), R_OK) == 0);
	if (!file->why)
		assert_non_null(
			strstr(listing_text(l, l->lines[file->lines + ASM_LINE - file->first]),
			       "the line we look for"));
#ifdef HAVE_CAPSTONE
	bool called = false, jumped = false;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct symbol *s = symbols_at(f->symbols, l->insns[i].callee);

		called |= s && strstr(s->name.str, "strtol");
		jumped |= l->insns[i].target != LISTING_NONE;
	}
	assert_true(called);
	assert_true(jumped);
#endif
	listing_put(l);
}

/* Copy this program to @path. */
static void copy_program(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY),
	    to = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
	char buf[65536];
	ssize_t n;

	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		assert_int_equal(write(to, buf, (size_t)n), n);
	close(from);
	close(to);
}

__attribute__((cold, noinline)) static int complain(int n)
{
	return (int)strtol("7", NULL, 10) + n;
}

/* GCC moves the call of a cold function away. */
#ifndef __clang__
__attribute__((optimize("O2")))
#endif
__attribute__((noinline)) static int
divided_function(int n)
{
	if (n > 1000)
		n = complain(n) * 3;
	return n ^ 5;
}

TEST(test_own_function_in_parts, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t symbol = symbol_at(f, (uint64_t)(uintptr_t)&divided_function, "divided_function");
	struct listing *l = listing_of(f, symbol);
	uint32_t nr_elsewhere = 0, nr_jumps = 0;

	assert_int_equal(divided_function(3), 6);
	assert_null(l->why);
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];
		bool elsewhere = insn->vaddr - l->vaddr >= l->size;

		assert_true(listing_covers(l, insn->vaddr));
		assert_int_equal(listing_at(l, insn->vaddr), i);
		if (insn->target != LISTING_NONE)
			nr_jumps += elsewhere !=
				    (l->insns[insn->target].vaddr - l->vaddr >= l->size);
		nr_elsewhere += elsewhere;
	}
	assert_int_equal(nr_elsewhere > 0, l->nr_parts > 0);
#ifdef HAVE_CAPSTONE
	/* At least from one to the other. */
	if (l->nr_parts)
		assert_true(nr_jumps);
#endif
	if (l->nr_parts) {
		uint64_t here = (uint64_t)(uintptr_t)&divided_function;

		assert_int_equal(symbol_at(f, here + (l->parts[0].vaddr - l->vaddr), NULL), symbol);
		assert_null(strstr(listing_text(l, l->insns[0].text), "divided_function"));
	}
	listing_put(l);
}

/*
 * A program's file is replaced while it runs: with the right to read its memory the mapped code is
 * shown, with a note; otherwise a reason.
 */
TEST(test_replaced, setup, teardown)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/test_code.XXXXXX", path[64], other[64];
	uint32_t symbol;
	struct listing *l;
	struct stat st;
	uint8_t *map;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	copy_program(path);
	assert_int_equal(stat(path, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE,
		   open(path, O_RDONLY), 0);
	assert_true(map != MAP_FAILED);
	symbol = symbol_at(f, (uint64_t)(uintptr_t)map + offset_in_file(&counted_function),
			   "counted_function");
	copy_program(other);
	assert_int_equal(rename(other, path), 0);
	l = listing_of(f, symbol);
	if (l->why)
		assert_non_null(strstr(l->why, "not the running one"));
	else
		assert_non_null(strstr(l->origin, "replaced"));
	assert_true(!l->why || l->fix);
	listing_put(l);
	munmap(map, (size_t)st.st_size);
	unlink(path);
	rmdir(dir);
}

/*
 * A file is written in place, as cp(1) does: it is the same inode, with another build-id. Neither
 * its code nor its lines belong to the image.
 */
TEST(test_written_in_place, setup, teardown)
{
	struct fixture *f = *state;
	char path[] = "/tmp/test_code.XXXXXX";
	uint64_t offset = offset_in_file(&counted_function);
	struct dwarf_sandbox *lines = NULL;
	struct load_where where;
	struct object *object;
	const struct image *image;
	struct listing *l;
	uint32_t symbol;
	struct stat st;
	uint8_t *map, *id;

	close(mkstemp(path));
	copy_program(path);
	assert_int_equal(stat(path, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED,
		   open(path, O_RDWR | O_CLOEXEC), 0);
	assert_true(map != MAP_FAILED);
	symbol = symbol_at(f, (uint64_t)(uintptr_t)map + offset, "counted_function");
	object = object_at(f, (uint64_t)(uintptr_t)map + offset, &offset);
	image = atomic_load(&object->image);
	id = memmem(map, (size_t)st.st_size, image->build_id, image->build_id_size);
	assert_non_null(id);
	load_where(&where, f->objects, object, false, NULL);
	assert_int_equal(dwarf_object_open(&where, false, NULL, &lines), 0);
	dwarf_sandbox_close(lines);
	*id ^= 1;
	assert_int_equal(dwarf_object_open(&where, false, NULL, &lines), -ESTALE);
	l = listing_of(f, symbol);
	assert_non_null(l->why);
	assert_non_null(strstr(l->why, "not the running one"));
	listing_put(l);
	load_where_fini(&where);
	munmap(map, (size_t)st.st_size);
	unlink(path);
}

TEST(test_vdso, setup, teardown)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct fixture *f = *state;
	struct listing *l;
	Elf64_Ehdr h;
	Elf64_Phdr p = { 0 };

	if (!vdso)
		skip_test("not on this machine: a vDSO");
	memcpy(&h, vdso, sizeof(h));
	for (unsigned int i = 0; i < h.e_phnum && !(p.p_type == PT_LOAD); i++)
		memcpy(&p, vdso + h.e_phoff + i * sizeof(p), sizeof(p));
	/* Something in the middle has a name or an FDE. */
	l = listing_of(f, symbol_at(f, (uint64_t)(uintptr_t)vdso + h.e_entry, NULL));
	assert_non_null(l->no_source ? l->no_source : l->why);
	if (!l->why)
		assert_memory_equal(&l->nr_bytes, &(uint32_t){ (uint32_t)l->size }, 4);
	listing_put(l);
}

/* Code without a known end is refused with a message, not by a fault. */
TEST(test_memory, setup, teardown)
{
	struct fixture *f = *state;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct object_identity id = { .kind = OBJECT_ANON, .owner = 1 };
#ifdef __aarch64__
	const uint32_t nop = 0xd503201f;
#else
	const uint8_t nop = 0x90;
#endif
	uint64_t at = (uint64_t)(uintptr_t)code;
	char path[64], text[128];
	struct listing_instance in;
	struct listing *l;
	struct object *object;
	uint32_t place, symbol;
	FILE *map;

	for (size_t i = 0; i < 4096; i += sizeof(nop))
		memcpy((char *)code + i, &nop, sizeof(nop));
	object = objects_intern(f->objects, &id, "//anon", 6, getpid(), at, at + 4096);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	snprintf(text, sizeof(text), "%" PRIx64 " 20 made_at_run_time\n%" PRIx64 " 20 made_later\n",
		 at + 0x100, at + 0x120);
	fputs(text, map);
	fclose(map);
	place = places_intern(f->places, object->id, at + 0x108);
	symbols_run(f->symbols);
	for (int i = 0; i < 200 && (i < 1 || !symbols_at(f->symbols, symbol) ||
				    symbols_at(f->symbols, symbol)->made_up);
	     i++) {
		usleep(20000);
		symbols_run(f->symbols);
		symbol = atomic_load(&places_at(f->places, place)->symbol);
	}
	unlink(path);
	assert_string_equal(symbols_at(f->symbols, symbol)->name.str, "made_at_run_time");
	in = (struct listing_instance){ object->id, at + 0x108 };
	l = listing_in(f, symbol, &in);
	assert_null(l->why);
	assert_int_equal(l->vaddr, at + 0x100);
	assert_int_equal(l->nr_bytes, 0x20);
	assert_non_null(strstr(l->origin, "memory of the process"));
#ifdef HAVE_CAPSTONE
	assert_int_equal(l->nr_insns, 0x20 / sizeof(nop));
	assert_non_null(strstr(listing_text(l, l->insns[0].text), "nop"));
#endif
	listing_put(l);
	/* Code of this name in no process, and of another name at the address: none is shown. */
	l = listing_of(f, symbol);
	assert_non_null(strstr(l->why, "without samples"));
	assert_int_equal(l->nr_insns, 0);
	listing_put(l);
	in.addr = at + 0x128;
	l = listing_in(f, symbol, &in);
	assert_non_null(strstr(l->why, "another function"));
	assert_true(!l->nr_insns && !l->nr_bytes);
	listing_put(l);
	munmap(code, 4096);
	/* It is gone: in words. */
	symbols_want_code(f->symbols, SYMBOL_NONE, &(struct listing_instance){ .object = 0 });
	symbols_run(f->symbols);
}

/* ---- the kernel ---- */

static char core_path[64];

/* A core file with one segment of @size bytes at @vaddr. */
static void make_core(uint64_t vaddr, uint64_t offset, uint64_t size, uint16_t type)
{
	Elf64_Ehdr h = { .e_type = type,
			 .e_machine = EM_X86_64,
			 .e_version = 1,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2 };
	Elf64_Phdr p[2] = { { .p_type = PT_NOTE, .p_vaddr = vaddr, .p_filesz = size },
			    { .p_type = PT_LOAD,
			      .p_vaddr = vaddr,
			      .p_offset = offset,
			      .p_filesz = size,
			      .p_memsz = size } };
	int fd;

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	strcpy(core_path, "/tmp/test_code.XXXXXX");
	fd = mkstemp(core_path);
	assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
	assert_int_equal(write(fd, p, sizeof(p)), sizeof(p));
	assert_int_equal(pwrite(fd, "0123456789", 10, 4096), 10);
	close(fd);
}

/* ---- the kernel of a recording: files of another machine, below a folder ---- */

#define WAS_TEXT 0xffffffff9a000000ULL /* address in the recording */
#define NOW_TEXT 0xffffffff81000000ULL /* address in the list and the core */

static char recorded_root[64];

static void write_file(const char *name, const void *bytes, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", recorded_root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
}

static void make_recorded_root(void)
{
	static const char list[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000010 t do_work\n"
				   "ffffffff81000018 T _etext\n"
				   "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n"
				   "ffffffffc0000006 t nft_end\t[nf_tables]\n";
	char proc[80], path[128];
	uint8_t core[8192];
	FILE *f;

	strcpy(recorded_root, "/tmp/test_code_root.XXXXXX");
	assert_non_null(mkdtemp(recorded_root));
	snprintf(proc, sizeof(proc), "%s/proc", recorded_root);
	assert_int_equal(mkdir(proc, 0700), 0);
	write_file("/proc/kallsyms", list, sizeof(list) - 1);
	make_core(NOW_TEXT, 4096, 4096, ET_CORE);
	f = fopen(core_path, "r");
	memset(core, 0x90, sizeof(core));
	assert_true(fread(core, 1, 4096, f) > 0);
	fclose(f);
	unlink(core_path);
	/* do_work: 8 bytes; neighbours before and after it must not be included. */
	memset(core + 4096, 0xcc, 4096);
	memcpy(core + 4096 + 0x10, "\x31\xc0\xff\xc0\x75\xfc\x90\xc3", 8);
	snprintf(path, sizeof(path), "%s/proc/kcore", recorded_root);
	write_file("/proc/kcore", core, sizeof(core));
}

static void remove_recorded_root(void)
{
	static const char *const names[] = { "/proc/kallsyms", "/proc/kcore" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s%s", recorded_root, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/proc", recorded_root);
	rmdir(path);
	rmdir(recorded_root);
}

static uint32_t kernel_symbol(struct fixture *f, uint64_t addr)
{
	uint32_t place = places_intern(f->places, OBJECT_ID_KERNEL, addr);

	symbols_run(f->symbols);
	return atomic_load(&places_at(f->places, place)->symbol);
}

/* Recorded at another address than the list and the core have it at (KASLR). */
TEST(test_kernel_moved, setup, teardown)
{
	const struct kernel_identity was = { .release = "1.2.3-of-the-recording" };
	const struct recorded_kernel told = { .mark = WAS_TEXT,
					      .start = WAS_TEXT,
					      .end = WAS_TEXT + 0x100000 };
	struct fixture *f = *state;
	const struct symbol *symbol;
	struct listing *l;
	uint32_t id;

	make_recorded_root();
	symbols_recorded(f->symbols, recorded_root);
	symbols_recorded_kernel(f->symbols, &was);
	symbols_kernel_was(f->symbols, &told);
	id = kernel_symbol(f, WAS_TEXT + 0x13);
	symbol = symbols_at(f->symbols, id);
	assert_string_equal(symbol->name.str, "do_work");
	assert_int_equal(symbol->start, WAS_TEXT + 0x10);
	l = listing_of(f, id);
	assert_null(l->why);
	assert_int_equal(l->vaddr, WAS_TEXT + 0x10);
	assert_int_equal(l->size, 8);
	assert_int_equal(l->nr_bytes, 8);
	assert_non_null(strstr(l->origin, "kcore"));
#if defined(HAVE_CAPSTONE) && defined(__x86_64__)
	assert_int_equal(l->nr_insns, 5);
	assert_int_equal(l->insns[2].target, 1);
	assert_non_null(strstr(listing_text(l, l->insns[4].text), "ret"));
#endif
	listing_put(l);
	/* A module: its address is known; its code is not in this core. */
	id = kernel_symbol(f, 0xffffffffc0000002ULL);
	assert_string_equal(symbols_at(f->symbols, id)->module.str, "[nf_tables]");
	l = listing_of(f, id);
	assert_int_equal(l->size, 6);
	assert_int_equal(l->nr_insns, 0);
	assert_non_null(strstr(l->why, "no kernel code at its address"));
	listing_put(l);
	remove_recorded_root();
}

/* Nothing here describes another kernel: neither names nor code. */
TEST(test_kernel_of_others, setup, teardown)
{
	const struct kernel_identity was = { .release = "1.2.3-of-the-recording" };
	struct fixture *f = *state;
	struct listing *l;
	uint32_t id;

	symbols_recorded(f->symbols, NULL);
	symbols_recorded_kernel(f->symbols, &was);
	id = kernel_symbol(f, NOW_TEXT + 0x1000);
	assert_string_equal(symbols_at(f->symbols, id)->name.str, "[kernel]");
	l = listing_of(f, id);
	assert_int_equal(l->nr_insns, 0);
	assert_non_null(strstr(l->why, "another kernel"));
	assert_non_null(l->fix);
	listing_put(l);
}

/* A BPF program: its extent is the recorded one; an unloaded one has no code. */
TEST(test_kernel_code_at_run_time, setup, teardown)
{
	struct fixture *f = *state;
	struct listing *l;
	uint32_t id;

	symbols_on_kernel_code(f->symbols, 0xffffffffc0100000ULL, 96, true, "bpf_prog_1_a", 12);
	symbols_on_kernel_code(f->symbols, 0xffffffffc0200000ULL, 96, true, "bpf_prog_2_b", 12);
	id = kernel_symbol(f, 0xffffffffc0100010ULL);
	assert_string_equal(symbols_at(f->symbols, id)->name.str, "bpf_prog_1_a");
	l = listing_of(f, id);
	assert_int_equal(l->size, 96);
	listing_put(l);
	id = kernel_symbol(f, 0xffffffffc0200010ULL);
	symbols_on_kernel_gone(f->symbols, 0xffffffffc0200000ULL, 96);
	l = listing_of(f, id);
	assert_non_null(strstr(l->why, "removed by the kernel"));
	listing_put(l);
}

TEST(test_kcore)
{
	const uint64_t base = 0xffffffff81000000;
	char buf[16] = "";

	make_core(base, 4096, 10, ET_CORE);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base, buf, 4), 4);
	assert_memory_equal(buf, "0123", 4);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base + 7, buf, sizeof(buf)), 3);
	assert_memory_equal(buf, "789", 3);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base + 10, buf, 4), -EFAULT);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base - 1, buf, 4), -EFAULT);
	unlink(core_path);
	/* A segment with a false address; a file that is no core; a missing file. */
	make_core(base, INT64_MAX - 2, 10, ET_CORE);
	assert_true(kernel_sandbox_memory(NULL, core_path, base + 5, buf, 4) < 0);
	unlink(core_path);
	make_core(base, 4096, 1 << 20, ET_CORE);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base + 5000, buf, 4), -EIO);
	unlink(core_path);
	make_core(base, 4096, 10, ET_EXEC);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base, buf, 4), -ENOEXEC);
	unlink(core_path);
	assert_int_equal(kernel_sandbox_memory(NULL, core_path, base, buf, 4), -ENOENT);
}

/* ---- source ---- */

static const char *line_at(const struct listing *l, const struct listing_file *f, uint32_t n)
{
	return listing_text(l, l->lines[f->lines + n]);
}

TEST(test_source_text)
{
	static const char text[] = "one\r\n\ttwo\n  \tthree\n\033[31mfour\n\xff\nlast";
	struct listing *l = listing_new(1);
	struct listing_file f = { 0 }, later = { 0 }, beyond = { 0 };
	struct source_want want = { .path = "/x", .first = 1, .last = 6 };

	source_parse(l, &f, &want, text, sizeof(text) - 1);
	assert_int_equal(f.nr_lines, 6);
	assert_string_equal(line_at(l, &f, 0), "one");
	assert_string_equal(line_at(l, &f, 1), "        two");
	assert_string_equal(line_at(l, &f, 2), "        three");
	assert_null(strchr(line_at(l, &f, 3), '\033'));
	assert_non_null(strstr(line_at(l, &f, 3), "four"));
	assert_string_equal(line_at(l, &f, 4), "\xc2\xb7");
	assert_string_equal(line_at(l, &f, 5), "last");
	want.first = 5;
	want.last = UINT32_MAX - 1;
	source_parse(l, &later, &want, text, sizeof(text) - 1);
	assert_int_equal(later.nr_lines, 2);
	assert_string_equal(line_at(l, &later, 1), "last");
	want.first = 7;
	source_parse(l, &beyond, &want, text, sizeof(text) - 1);
	assert_int_equal(beyond.nr_lines, 0);
	assert_non_null(beyond.why);
	listing_put(l);
}

/* Neither devices nor folders nor relative names are read. */
TEST(test_source_files)
{
	static const char *const refused[] = { "/dev/zero", "/tmp", "relative.c", "/proc/self/maps",
					       "/nowhere/at/all.c" };
	struct listing *l = listing_new(1);

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct source_want want = { .path = refused[i], .first = 1, .last = 9 };
		struct listing_file f = { 0 };

		source_read(l, &f, &want);
		assert_non_null(f.why);
		assert_int_equal(f.nr_lines, 0);
	}
	listing_put(l);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
