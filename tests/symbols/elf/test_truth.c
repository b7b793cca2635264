// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth: names of random addresses in libraries of this system against the
 * tables as libelf reads them. No wrong name, no missing one.
 *
 * TRUTH_ADDRESSES=2000 (of each library) makes it 100 000 addresses.
 */
#include "tests/prelude.h"

#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

#define LIBRARIES 50
#define ADDRESSES 300

/* A function according to libelf. */
struct truth {
	uint64_t start, size;
	const char *name; /* in the Elf, which is kept open */
};

struct library {
	struct truth *list;
	size_t nr, max;
	Elf *elf[2];
	int fd[2];
	uint64_t text, text_end; /* the executable section that is largest */
};

static void add_truth(struct library *l, const GElf_Sym *sym, const char *name)
{
	if (l->nr == l->max) {
		l->max = l->max ? l->max * 2 : 1024;
		l->list = realloc(l->list, l->max * sizeof(*l->list));
		assert_non_null(l->list);
	}
	l->list[l->nr++] = (struct truth){ sym->st_value, sym->st_size, name };
}

/* Take all functions of the tables of @elf; labels too, for their names may be shown. */
static void add_tables(struct library *l, Elf *elf, uint64_t bias)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr s;
		Elf_Data *data;

		gelf_getshdr(scn, &s);
		if (s.sh_type != SHT_SYMTAB && s.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < s.sh_size / s.sh_entsize; i++) {
			GElf_Sym sym;
			unsigned int type;

			gelf_getsym(data, (int)i, &sym);
			type = GELF_ST_TYPE(sym.st_info);
			if (!sym.st_value || sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS ||
			    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
				continue;
			if (type == STT_NOTYPE)
				sym.st_size = 0;
			sym.st_value += bias;
			add_truth(l, &sym, elf_strptr(elf, s.sh_link, sym.st_name));
		}
	}
}

static void find_text(struct library *l)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(l->elf[0], scn));) {
		GElf_Shdr s;

		gelf_getshdr(scn, &s);
		if (s.sh_flags & SHF_EXECINSTR && s.sh_size > l->text_end - l->text) {
			l->text = s.sh_addr;
			l->text_end = s.sh_addr + s.sh_size;
		}
	}
}

/* Open @path, and its debug file if the image took names from there. */
static void open_truth(struct library *l, const char *path, const struct image *image)
{
	char debug[256];

	memset(l, 0, sizeof(*l));
	l->fd[0] = open(path, O_RDONLY);
	l->fd[1] = -1;
	l->elf[0] = elf_begin(l->fd[0], ELF_C_READ, NULL);
	assert_non_null(l->elf[0]);
	find_text(l);
	add_tables(l, l->elf[0], 0);
	if (strcmp(image->source, "debug file"))
		return;
	assert_true(debugfile_path(image->build_id, image->build_id_size, debug, sizeof(debug)));
	l->fd[1] = open(debug, O_RDONLY);
	l->elf[1] = elf_begin(l->fd[1], ELF_C_READ, NULL);
	assert_non_null(l->elf[1]);
	add_tables(l, l->elf[1], 0);
}

static void close_truth(struct library *l)
{
	for (int i = 0; i < 2; i++) {
		elf_end(l->elf[i]);
		if (l->fd[i] >= 0)
			close(l->fd[i]);
	}
	free(l->list);
}

static bool covers(const struct truth *t, uint64_t addr)
{
	return addr - t->start < t->size;
}

static bool name_is(const struct image *image, const struct image_symbol *s, const char *name)
{
	return name && image_symbol_is(image, s, name);
}

/* Assert that @s is a right name for @addr, NULL that there is none. Returns if it had one. */
static bool check(const char *path, const struct library *l, const struct image *image,
		  uint64_t addr)
{
	const struct image_symbol *s = image_find(image, addr);
	const struct truth *inner = NULL;
	bool right = false;

	for (size_t i = 0; i < l->nr; i++) {
		const struct truth *t = &l->list[i];

		if (covers(t, addr) && (!inner || t->start > inner->start))
			inner = t;
		right |= s && t->start == s->vaddr && name_is(image, s, t->name);
	}
	if (!s && inner)
		fail_msg("%s 0x%" PRIx64 ": no name, but %s", path, addr, inner->name);
	if (!s)
		return false;
	/* The data of libnode has the names of V8's builtins, no table of symbols does. */
	if (!right && (inner || strncmp(image->names + s->name, "Builtins_", 9) != 0))
		fail_msg("%s 0x%" PRIx64 ": %s is in no table", path, addr, image->names + s->name);
	if (addr - s->vaddr >= s->size)
		fail_msg("%s 0x%" PRIx64 ": %s ends before", path, addr, image->names + s->name);
	/* Something that covers it and starts later would be the better name. */
	if (inner && inner->start > s->vaddr)
		fail_msg("%s 0x%" PRIx64 ": %s, not %s", path, addr, image->names + s->name,
			 inner->name);
	/* A name that no size proves must be the last one before the address. */
	for (size_t i = 0; i < l->nr && !inner; i++) {
		const struct truth *t = &l->list[i];

		if (t->size && t->start > s->vaddr && t->start <= addr)
			fail_msg("%s 0x%" PRIx64 ": %s reaches over %s", path, addr,
				 image->names + s->name, t->name);
	}
	return true;
}

/* @nr random addresses of one library; false when it is no library or has no code. */
static bool check_library(const char *path, unsigned int nr, unsigned int *seed,
			  unsigned int *nr_named)
{
	struct image *image;
	struct library l;
	struct stat st;
	int fd = open(path, O_RDONLY), rc;

	if (fd < 0)
		return false;
	rc = fstat(fd, &st) ? -1 : image_read_fd(&image, fd, (uint64_t)st.st_size, NULL);
	close(fd);
	if (rc)
		return false;
	open_truth(&l, path, image);
	for (unsigned int i = 0; i < nr && l.text_end > l.text; i++) {
		uint64_t random = (uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed);

		*nr_named += check(path, &l, image, l.text + random % (l.text_end - l.text));
	}
	rc = l.text_end > l.text;
	close_truth(&l);
	image_free(image);
	return rc;
}

static int is_library(const struct dirent *d)
{
	return strstr(d->d_name, ".so.") && d->d_type == DT_REG;
}

TEST(test_libraries)
{
	static const char *const folders[] = {
		"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu",
		"/usr/lib64",
	};
	const char *wish = getenv("TRUTH_ADDRESSES");
	unsigned int nr = wish ? (unsigned int)atoi(wish) : ADDRESSES;
	unsigned int nr_libraries = 0, nr_named = 0, seed = 1;

	elf_version(EV_CURRENT);
	for (size_t f = 0; f < ARRAY_SIZE(folders); f++) {
		struct dirent **list;
		int nr_list = scandir(folders[f], &list, is_library, alphasort);

		/* Spread over the alphabet. */
		for (int i = 0; i < nr_list; i++) {
			int step = MAX(nr_list / (LIBRARIES + LIBRARIES / 4), 1);
			char path[512];

			snprintf(path, sizeof(path), "%s/%s", folders[f], list[i]->d_name);
			if ((i % step == 0 || !strncmp(list[i]->d_name, "libc.so", 7)) &&
			    nr_libraries < LIBRARIES)
				nr_libraries += check_library(path, nr, &seed, &nr_named);
			free(list[i]);
		}
		if (nr_list >= 0)
			free(list);
	}
	if (!nr_libraries)
		skip_test("not on this machine: libraries with symbols, and nm");
	print_message("%u libraries, %u addresses, %u with a name\n", nr_libraries,
		      nr_libraries * nr, nr_named);
	assert_true(nr_named > nr_libraries * nr / 20);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
