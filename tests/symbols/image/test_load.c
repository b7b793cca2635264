// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * load: a file that changes while it is read gives the image of one of its
 * versions or a reason, never a mixture and never a crash.
 * Live: waits for threads or processes and takes about a second of CPU time, or more.
 */
#include "symbols/image/image_cache.c"

#include "tests/prelude.h"

#include <errno.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/makers/elf.h"
#include "symbols/elf/elf.h"

#define NR_SYMBOLS 8000
#define VADDR	   0x201000ULL
#define NAME_SIZE  8
#define NR_LOADS   150

/* A file that somebody changes all the time. */
struct changing {
	char dir[64], path[96], next[96];
	struct elfmake versions[2];
	struct objects *objects;
	const struct object *object;
	atomic_bool stop;
	atomic_uint nr_changes;
};

/* All names of version 0 are "aNNNNNN", of version 1 "bNNNNNN". */
static void make_version(struct elfmake *m, char letter)
{
	Elf64_Sym *syms = calloc(NR_SYMBOLS, sizeof(*syms));
	char *names = calloc(NR_SYMBOLS + 1, NAME_SIZE);

	assert_true(syms && names);
	elfmake_init(m, EM_X86_64, VADDR, NR_SYMBOLS * 2);
	elfmake_code(m, ".text", VADDR, VADDR, NR_SYMBOLS * 2, 0, NULL);
	for (unsigned int i = 0; i < NR_SYMBOLS; i++) {
		snprintf(names + NAME_SIZE * (i + 1), NAME_SIZE, "%c%06u", letter, i);
		syms[i] = (Elf64_Sym){ .st_name = NAME_SIZE * (i + 1),
				       .st_shndx = 1,
				       .st_size = 2,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_value = VADDR + 2 * i };
	}
	elfmake_symbols(m, SHT_SYMTAB, syms, NR_SYMBOLS, names, (NR_SYMBOLS + 1) * NAME_SIZE);
	elfmake_finish(m);
	free(syms);
	free(names);
}

static void write_whole(const char *path, const struct elfmake *m)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, m->bytes, m->size), m->size);
	close(fd);
}

static int set_up(void **state)
{
	const struct object_identity id = { .kind = OBJECT_FILE };
	struct changing *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	strcpy(c->dir, "/tmp/test_load.XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	snprintf(c->path, sizeof(c->path), "%s/object", c->dir);
	snprintf(c->next, sizeof(c->next), "%s/next", c->dir);
	make_version(&c->versions[0], 'a');
	make_version(&c->versions[1], 'b');
	write_whole(c->path, &c->versions[0]);
	assert_int_equal(objects_new(&c->objects), 0);
	c->object = objects_intern(c->objects, &id, c->path, strlen(c->path), 0, 0, 0);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	struct changing *c = *state;

	unlink(c->path);
	unlink(c->next);
	rmdir(c->dir);
	elfmake_fini(&c->versions[0]);
	elfmake_fini(&c->versions[1]);
	objects_free(c->objects);
	free(c);
	return 0;
}

/* Load it on this thread, as a helper does. */
static struct load *load_once(struct changing *c)
{
	struct load *l = load_new(c->objects, c->object, true, NULL);

	assert_non_null(l);
	l->job.run(&l->job);
	return l;
}

/* The letter that all names have; 0: there are none; fails on a mixture. */
static char letter_of(const struct image *image)
{
	char first = image->nr_symbols ? image->names[image->symbols[0].name] : 0;

	for (uint32_t i = 1; i < image->nr_symbols; i++)
		assert_int_equal(image->names[image->symbols[i].name], first);
	return first;
}

static void run_beside(struct changing *c, void *(*changer)(void *), unsigned int loaded[256],
		       unsigned int *refused)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, changer, c), 0);
	for (int i = 0; i < NR_LOADS || atomic_load(&c->nr_changes) < NR_LOADS; i++) {
		struct load *l = load_once(c);

		if (l->rc) {
			assert_null(l->image);
			assert_true(l->rc == -EBUSY || l->rc == -ENOEXEC || l->rc == -EIO ||
				    l->rc == -ERANGE);
			++*refused;
		} else {
			loaded[(unsigned char)letter_of(l->image)]++;
		}
		l->job.drop(&l->job);
	}
	atomic_store(&c->stop, true);
	pthread_join(thread, NULL);
}

/* As package managers do: another file under the same name. */
static void *replace(void *arg)
{
	struct changing *c = arg;

	while (!atomic_load(&c->stop)) {
		write_whole(c->next, &c->versions[atomic_fetch_add(&c->nr_changes, 1) & 1]);
		assert_int_equal(rename(c->next, c->path), 0);
	}
	return NULL;
}

TEST(test_replaced_while_read, set_up, tear_down)
{
	unsigned int loaded[256] = { 0 }, refused = 0;

	run_beside(*state, replace, loaded, &refused);
	print_message("a %u, b %u, refused %u\n", loaded['a'], loaded['b'], refused);
	assert_true(loaded['a'] && loaded['b']);
	/* The opened file is read whole, also if its name now belongs to another. */
	assert_int_equal(loaded[0], 0);
	assert_int_equal(refused, 0);
}

/* As a linker that writes in place: shorter and longer by turns. */
static void *cut_and_grow(void *arg)
{
	struct changing *c = arg;
	const struct elfmake *m = &c->versions[0];
	int fd = open(c->path, O_WRONLY | O_CLOEXEC);
	unsigned int seed = 1;

	while (fd >= 0 && !atomic_load(&c->stop)) {
		size_t size = (size_t)rand_r(&seed) % m->size;

		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		usleep(100);
		assert_int_equal(pwrite(fd, m->bytes + size, m->size - size, (off_t)size),
				 m->size - size);
		usleep(100);
		atomic_fetch_add(&c->nr_changes, 1);
	}
	close(fd);
	return NULL;
}

TEST(test_truncated_while_read, set_up, tear_down)
{
	unsigned int loaded[256] = { 0 }, refused = 0;

	run_beside(*state, cut_and_grow, loaded, &refused);
	print_message("whole %u, without names %u, refused %u\n", loaded['a'], loaded[0], refused);
	assert_true(refused > 0);
	assert_int_equal(loaded['b'], 0);
}

/* A change between open and the last read is reported. */
TEST(test_changed, set_up, tear_down)
{
	struct changing *c = *state;
	struct load *l = load_once(c);

	assert_int_equal(l->rc, 0);
	assert_int_equal(letter_of(l->image), 'a');
	l->job.drop(&l->job);
	write_whole(c->path, &c->versions[1]);
	l = load_once(c);
	assert_int_equal(l->rc, 0);
	assert_int_equal(letter_of(l->image), 'b');
	l->job.drop(&l->job);
	/* A folder, a FIFO, nothing in its place. */
	assert_int_equal(unlink(c->path), 0);
	assert_int_equal(mkfifo(c->path, 0644), 0);
	l = load_once(c);
	assert_int_equal(l->rc, -EINVAL);
	l->job.drop(&l->job);
	assert_int_equal(unlink(c->path), 0);
	assert_int_equal(mkdir(c->path, 0755), 0);
	l = load_once(c);
	assert_int_equal(l->rc, -EINVAL);
	l->job.drop(&l->job);
	assert_int_equal(rmdir(c->path), 0);
	l = load_once(c);
	assert_int_equal(l->rc, -ENOENT);
	l->job.drop(&l->job);
}

/* Return how many KiB of mapped files are in the memory of this process. */
static long files_kib(void)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "RssFile: %ld", &kib);
	fclose(f);
	return kib;
}

static uint64_t sum_of(const struct image *image)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < image->names_size; i++)
		sum = sum * 31 + (uint8_t)image->names[i];
	for (size_t i = 0; i < image->eh.size; i++)
		sum = sum * 31 + image->eh.bytes[i];
	return sum;
}

/* Pages of a file leave the memory of this process; the bytes of ours behind them do not. */
TEST(test_give_pages_back)
{
	char path[] = "build/test-load-XXXXXX";
	struct image *image = NULL;
	Dl_info libc;
	int from, fd;
	uint64_t sum;
	off_t size;
	long kib;

	if (geteuid())
		skip();
	/* A file with large tables. */
	assert_true(dladdr((void *)(uintptr_t)&strfry, &libc));
	from = open(libc.dli_fname, O_RDONLY | O_CLOEXEC);
	fd = mkstemp(path);
	assert_true(from >= 0 && fd >= 0 && !fchmod(fd, 0755));
	size = lseek(from, 0, SEEK_END);
	assert_true(sendfile(fd, from, &(off_t){ 0 }, (size_t)size) == size);
	assert_int_equal(image_read_fd(&image, fd, (uint64_t)size, NULL), 0);
	/* Of another mount than the root folder it is copied. */
	if (image->name_pages.at) {
		sum = sum_of(image);
		kib = files_kib();
		give_pages_back(image, false);
		assert_true(files_kib() <= kib - (long)(image->names_in_file >> 11));
		assert_true(sum_of(image) == sum);
		/* Of an object without samples also its unwind tables. */
		give_pages_back(image, false);
		kib = files_kib();
		give_pages_back(image, true);
		assert_true(image->eh.in_file > 65536);
		assert_true(files_kib() <= kib - (long)(image->eh.in_file >> 11));
		assert_true(sum_of(image) == sum);
	}
	image_free(image);
	close(from);
	close(fd);
	unlink(path);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
