// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * image_cache: images that leave, and objects that have none.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "tests/resident.h"
#include "tests/symbols/generation.h"
#include "tests/symbols/with_symbols.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"

static __attribute__((noinline)) int named_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2;
}

static uint64_t machine_memory; /* 0: as it is */

#ifdef __clang__
#define NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define NOT_INSTRUMENTED __attribute__((no_sanitize_thread))
#endif

/*
 * In place of the C library's: a machine with another memory. TSan calls it before it can serve
 * instrumented code.
 */
NOT_INSTRUMENTED long sysconf(int name)
{
	static long (*real)(int);

	if (name == _SC_PHYS_PAGES && machine_memory)
		return (long)(machine_memory / 4096);
	if (name == _SC_PAGESIZE && machine_memory)
		return 4096;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

struct loading {
	struct image_cache cache;
	struct helpers *helpers;
	int event;
};

static void loading_begin(struct loading *l, struct objects *objects)
{
	l->event = wake_new();
	assert_int_equal(helpers_new(&l->helpers, l->event), 0);
	image_cache_init(&l->cache, objects, l->helpers);
}

static void loading_end(struct loading *l)
{
	image_cache_fini(&l->cache);
	helpers_free(l->helpers, time_now_ns() + 60000000000);
	close(l->event);
}

/* Work at @now_ns until @object has this state. */
static void wait_for(struct image_cache *c, const struct object *object, uint64_t now_ns,
		     enum object_state state)
{
	for (int i = 0; i < 3000 && atomic_load(&object->state) != (int)state; i++) {
		/* Time goes on: a device that was slow beside other load rests. */
		image_cache_work(c, now_ns + (uint64_t)i * 10000000);
		usleep(10000);
	}
	assert_int_equal(atomic_load(&object->state), state);
}

/* Load the image of @object, at @now_ns. */
static void load_image(struct image_cache *c, struct object *object, uint64_t now_ns)
{
	object_want(object);
	wait_for(c, object, now_ns, OBJECT_READY);
	assert_false(atomic_load(&object->image)->away);
	/* Mapped, so that its pages go back with it. */
	assert_true(atomic_load(&object->image)->block_size > 0);
}

/* The memory of images is a part of that of the machine: a small one has room for its programs. */
TEST(test_memory_of_the_machine)
{
	static const struct {
		uint64_t machine, images;
	} cases[] = {
		{ 512ULL << 20, 64 << 20 }, { 1ULL << 30, 64 << 20 },	  { 4ULL << 30, 122 << 20 },
		{ 8ULL << 30, 245 << 20 },  { 1000ULL << 30, 512 << 20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct image_cache c;

		machine_memory = cases[i].machine;
		image_cache_init(&c, NULL, NULL);
		machine_memory = 0;
		assert_in_range(c.memory_max, cases[i].images, cases[i].images + (1 << 20));
		image_cache_fini(&c);
	}
}

/* Images without a sample for ten minutes leave, with their memory; a sample loads them again. */
TEST(test_idle_images_leave, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t minute_ns = 60000000000, now_ns = time_now_ns();
	uint64_t offset;
	struct object *idle = object_at(f, (uint64_t)(uintptr_t)&strfry, &offset);
	struct object *used = object_at(f, (uint64_t)(uintptr_t)&named_function, &offset);
	const uint32_t clock = object_clock(now_ns);
	struct loading l;

	loading_begin(&l, f->objects);
	object_touch(idle, clock);
	load_image(&l.cache, idle, now_ns);
	/* Objects that no sample requests are not in its lists: others are not slower for them. */
	assert_int_equal(l.cache.open.nr, 0);
	load_image(&l.cache, used, now_ns);
	object_touch(used, object_clock(now_ns + 11 * minute_ns));
	image_cache_work(&l.cache, now_ns + minute_ns / 2); /* too early for the next check */
	assert_false(atomic_load(&idle->image)->away);
	l.cache.no_proc = true; /* a recording */
	image_cache_work(&l.cache, now_ns + 11 * minute_ns);
	assert_false(atomic_load(&idle->image)->away);
	l.cache.no_proc = false;
	image_cache_work(&l.cache, now_ns + 11 * minute_ns);
	assert_true(atomic_load(&idle->image)->away);
	assert_false(atomic_load(&used->image)->away);
	assert_int_equal(atomic_load(&l.cache.memory), atomic_load(&used->memory));
	assert_int_equal(atomic_load(&l.cache.nr_images), 1);
	load_image(&l.cache, idle, now_ns + 11 * minute_ns);
	assert_int_equal(atomic_load(&l.cache.memory),
			 atomic_load(&used->memory) + atomic_load(&idle->memory));
	/* A minute later it has had its sample, when it was loaded, as late as the other one. */
	image_cache_work(&l.cache, now_ns + 12 * minute_ns);
	assert_false(atomic_load(&idle->image)->away);
	loading_end(&l);
}

/*
 * While images take much memory, one that had no sample for a short while leaves: not while its
 * load was long, as the next would be, and not while they take little.
 */
TEST(test_spare_images_leave, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t second_ns = 1ULL << 30, now_ns = time_now_ns(), ms = 1000000;
	uint64_t offset;
	struct object *spare = object_at(f, (uint64_t)(uintptr_t)&strfry, &offset);
	struct object *used = object_at(f, (uint64_t)(uintptr_t)&named_function, &offset);
	struct loading l;

	loading_begin(&l, f->objects);
	object_touch(spare, object_clock(now_ns));
	load_image(&l.cache, spare, now_ns);
	load_image(&l.cache, used, now_ns);
	object_touch(used, object_clock(now_ns + 60 * second_ns));
	image_cache_work(&l.cache, now_ns + 60 * second_ns);
	assert_false(atomic_load(&spare->image)->away);
	l.cache.memory_idle = atomic_load(&used->memory);
	spare->load_ns = 800 * ms;
	object_touch(spare, object_clock(now_ns + 4 * second_ns));
	image_cache_work(&l.cache, now_ns + 65 * second_ns);
	assert_false(atomic_load(&spare->image)->away);
	spare->load_ns = 100 * ms;
	l.cache.no_proc = true; /* a recording */
	image_cache_work(&l.cache, now_ns + 70 * second_ns);
	assert_false(atomic_load(&spare->image)->away);
	l.cache.no_proc = false;
	image_cache_work(&l.cache, now_ns + 70 * second_ns);
	assert_true(atomic_load(&spare->image)->away);
	assert_false(atomic_load(&used->image)->away);
	/* Its next sample loads it again, and then it is in use. */
	load_image(&l.cache, spare, now_ns + 71 * second_ns);
	assert_true(spare->load_ns < second_ns);
	image_cache_work(&l.cache, now_ns + 80 * second_ns);
	assert_false(atomic_load(&spare->image)->away);
	loading_end(&l);
}

/* Return the memory of the images of @objects that are there; it is the cache's account. */
static size_t assert_account(const struct image_cache *c, struct object *const *objects,
			     uint32_t nr)
{
	size_t sum = 0;
	uint64_t nr_images = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct image *image = atomic_load(&objects[i]->image);

		if (!image || image->away)
			continue;
		sum += image_memory(image);
		nr_images++;
	}
	assert_int_equal(atomic_load(&c->memory), sum);
	assert_int_equal(atomic_load(&c->nr_images), nr_images);
	return sum;
}

/*
 * All images together take no more than the limit, whichever are loaded: the one without a sample
 * for longest leaves. One that has samples rests then; one larger than the limit is not loaded.
 */
TEST(test_limit, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t second_ns = 1ULL << 30, now_ns = time_now_ns();
	const void *const code[] = { &named_function, &strfry, &_cmocka_run_group_tests, &inflate };
	struct object *objects[ARRAY_SIZE(code)];
	const uint32_t nr = ARRAY_SIZE(code);
	size_t all = 0, most = 0;
	uint64_t at_ns, offset;
	struct loading l;

	loading_begin(&l, f->objects);
	for (uint32_t i = 0; i < nr; i++) {
		objects[i] = object_at(f, (uint64_t)(uintptr_t)code[i], &offset);
		load_image(&l.cache, objects[i], now_ns);
		all += image_memory(atomic_load(&objects[i]->image));
		most = MAX(most, image_memory(atomic_load(&objects[i]->image)));
	}
	assert_int_equal(assert_account(&l.cache, objects, nr), all);
	l.cache.memory_max = MAX(all / 2, most);
	for (uint32_t n = 0; n < 4 * nr; n++) {
		struct object *object = objects[n * 3 % nr];

		at_ns = now_ns + (n + 1) * 20 * second_ns;
		object_touch(object, object_clock(at_ns));
		load_image(&l.cache, object, at_ns);
		image_cache_work(&l.cache, at_ns);
		assert_true(assert_account(&l.cache, objects, nr) <= l.cache.memory_max);
		assert_false(atomic_load(&object->image)->away);
	}
	/* All have samples from now on: there is no place for them together. */
	at_ns += 20 * second_ns;
	for (uint32_t i = 0, nr_aside = 0; i < 3000 && !nr_aside; i++, usleep(10000)) {
		at_ns += 10000000;
		for (uint32_t k = 0; k < nr; k++) {
			object_touch(objects[k], object_clock(at_ns));
			object_want(objects[k]);
		}
		image_cache_work(&l.cache, at_ns);
		assert_true(assert_account(&l.cache, objects, nr) <= l.cache.memory_max);
		for (uint32_t k = 0; k < nr; k++)
			nr_aside += atomic_load(&objects[k]->state) == OBJECT_ASIDE;
		assert_true(nr_aside || i < 2999);
	}
	loading_end(&l);
}

#define LARGE_CODE (17U << 20)
#define LARGE_SITE (1U << 12)

/* Make a file of large code without tables, with a small function at the begin of each site. */
static void make_large(const char *path)
{
	static const uint8_t function[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x90, 0x5b, 0xc3 };
	uint8_t *bytes = xcalloc(1, 4096 + LARGE_CODE);
	Elf64_Ehdr *eh = (Elf64_Ehdr *)(void *)bytes;
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);

	*eh = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(*eh),
		.e_ehsize = sizeof(*eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	*(Elf64_Phdr *)(void *)(eh + 1) = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = 4096,
		.p_vaddr = 4096,
		.p_filesz = LARGE_CODE,
		.p_memsz = LARGE_CODE,
		.p_align = 4096,
	};
	for (uint32_t at = 0; at < LARGE_CODE; at += LARGE_SITE)
		memcpy(bytes + 4096 + at, function, sizeof(function));
	assert_int_equal(write(fd, bytes, 4096 + LARGE_CODE), 4096 + LARGE_CODE);
	close(fd);
	free(bytes);
}

/* Work until @object has rows for the code of @site, or until no more are derived. */
static void wait_for_site(struct loading *l, struct object *object, uint64_t now_ns,
			  unsigned int site)
{
	const struct image *image = atomic_load(&object->image);

	for (int i = 0; i < 3000 && !image_of_site(image, site) && object_has_sites(object);
	     i++, usleep(10000)) {
		image_cache_work(&l->cache, now_ns + (uint64_t)i * 10000000);
		/* The image stays. */
		assert_ptr_equal(atomic_load(&object->image), image);
		assert_false(image->away);
		assert_int_equal(atomic_load(&object->state), OBJECT_READY);
		assert_account(&l->cache, &object, 1);
	}
}

static bool has_row(const struct object *object, unsigned int site)
{
	const struct image *image = atomic_load(&object->image);
	const uint64_t vaddr = image->sites.base + (uint64_t)site * LARGE_SITE + 5;
	struct ehframe_fde fde;

	return ehframe_find(&image_rows(image, vaddr)->eh, vaddr, &fde);
}

/* As a sampler thread: looks for rows while more are added. */
struct rows_reader {
	const struct object *object;
	atomic_bool end;
	bool has[LARGE_CODE / LARGE_SITE];
	unsigned int nr, nr_lost;
	pthread_t thread;
};

static void *read_rows(void *arg)
{
	struct rows_reader *r = arg;

	while (!atomic_load_explicit(&r->end, memory_order_relaxed)) {
		for (unsigned int i = 0; i < ARRAY_SIZE(r->has); i++) {
			bool has = has_row(r->object, i);

			r->nr += has && !r->has[i];
			r->nr_lost += !has && r->has[i];
			r->has[i] = has;
		}
		usleep(1000);
	}
	return NULL;
}

static void rows_reader_begin(struct rows_reader *r, const struct object *object)
{
	*r = (struct rows_reader){ .object = object };
	assert_int_equal(pthread_create(&r->thread, NULL, read_rows, r), 0);
}

static void rows_reader_end(struct rows_reader *r)
{
	atomic_store_explicit(&r->end, true, memory_order_relaxed);
	pthread_join(r->thread, NULL);
	assert_true(r->nr > 0);
	assert_int_equal(r->nr_lost, 0);
}

/*
 * Of code that is too large as a whole, the sites with samples are derived, the hottest first,
 * up to a limit, while a thread uses the image.
 */
TEST(test_sites, setup, teardown)
{
	const unsigned int nr_sites = LARGE_CODE / LARGE_SITE;
	struct fixture *f = *state;
	char path[] = "/tmp/test_image_cache.XXXXXX";
	int fd = mkstemp(path);
	uint64_t offset, now_ns = time_now_ns();
	const struct image *image;
	struct object *object;
	unsigned int nr = 0, left = 0;
	struct rows_reader reader;
	struct loading l;
	void *code;

	make_large(path);
	code = mmap(NULL, LARGE_CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	assert_true(code != MAP_FAILED);
	object = object_at(f, (uint64_t)(uintptr_t)code, &offset);
	loading_begin(&l, f->objects);
	load_image(&l.cache, object, now_ns);
	image = atomic_load(&object->image);
	assert_true(image->sites.cut && !has_row(object, 3));
	assert_int_equal(image_site(image, 4096 + 3 * LARGE_SITE + 70), 3);
	rows_reader_begin(&reader, object);
	assert_true(object_want_site(object, 3));
	assert_false(object_want_site(object, 3));
	wait_for_site(&l, object, now_ns, 3);
	assert_true(has_row(object, 3) && !has_row(object, 2) && !has_row(object, 5));
	assert_int_equal(atomic_load(&object->nr_derived), 1);
	for (unsigned int i = 0; i < nr_sites; i++)
		for (unsigned int k = 0; k < (i % 8 == 7 ? 2 : 1); k++)
			object_want_site(object, i);
	for (unsigned int i = 7; i < nr_sites; i += 8) {
		wait_for_site(&l, object, now_ns += 600000000000, i);
		assert_true(has_row(object, i));
	}
	for (unsigned int i = 0; i < nr_sites; i++) {
		nr += has_row(object, i);
		left = has_row(object, i) ? left : i;
	}
	/* The rest is for later. */
	assert_in_range(nr, nr_sites / 8, nr_sites * 2 / 3);
	assert_int_equal(atomic_load(&object->nr_derived), nr);
	/* The work of more than they may cost. */
	object->sites->visits = UINT32_MAX;
	wait_for_site(&l, object, now_ns += 600000000000, left);
	assert_false(object_has_sites(object));
	assert_false(has_row(object, left));
	rows_reader_end(&reader);
	/* An image that leaves, and is loaded again, gets rows again, the hottest first. */
	l.cache.newest = UINT32_MAX;
	image_cache_work(&l.cache, now_ns += 600000000000);
	image = atomic_load(&object->image);
	assert_true(image->away);
	load_image(&l.cache, object, now_ns);
	assert_true(object_has_sites(object) && has_row(object, nr_sites - 1));
	loading_end(&l);
	munmap(code, LARGE_CODE);
	close(fd);
	unlink(path);
}

/* See a file with the inode number of @object, and @generation, in the same mapping. */
static struct object *see_generation(struct fixture *f, const struct object *object,
				     uint64_t generation)
{
	struct object_identity id = object->identity;
	struct object_sighting seen;
	struct object *found;

	objects_sighting(f->objects, object, &seen);
	id.ino_generation = generation;
	found = objects_intern(f->objects, &id, seen.path, strlen(seen.path), seen.pid, seen.start,
			       seen.end);
	free(seen.path);
	return found;
}

/*
 * A program that runs since before the start is deleted, and the next one has the number of its
 * inode: it does not get the image of the former.
 */
TEST(test_rebuilt, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t offset, generation, now_ns = time_now_ns();
	struct object *object = object_at(f, (uint64_t)(uintptr_t)&named_function, &offset), *next;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct loading l;

	generation = generation_of(fd);
	close(fd);
	if (!generation)
		skip_test("not on this machine: a file system with generations of inodes");
	loading_begin(&l, f->objects);
	load_image(&l.cache, object, now_ns);
	assert_ptr_equal(see_generation(f, object, generation), object);
	next = see_generation(f, object, generation + 1);
	assert_ptr_not_equal(next, object);
	/* There is no such file here. */
	object_want(next);
	wait_for(&l.cache, next, now_ns, OBJECT_FAILED);
	assert_string_equal(atomic_load(&next->reason), "replaced on disk");
	loading_end(&l);
}

#define BLOCKS 4096U
#define BLOCK  (16U << 10)

/* Free memory between blocks that are in use goes back to the system each minute. */
TEST(test_free_memory, setup, teardown)
{
	struct fixture *f = *state;
	struct loading l;
	long before_kb;
	void *last;

	if (SANITIZED) /* it has memory of its kind */
		skip();
	loading_begin(&l, f->objects);
	last = leave_free(BLOCKS, BLOCK);
	before_kb = resident_kb();
	image_cache_work(&l.cache, time_now_ns());
	print_message("%ld, then %ld KiB\n", before_kb, resident_kb());
	assert_true(resident_kb() < before_kb - (long)(BLOCKS * BLOCK / 2048));
	free(last);
	loading_end(&l);
}

#define MANY 600U

/* Map file @i of folder @at, which is no program, or was deleted. */
static struct object *map_file(struct objects *objects, const char *at, uint32_t i, bool deleted)
{
	struct object_identity id = { .kind = OBJECT_FILE };
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%u", at, i);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fstat(fd, &st), 0);
	/* A deleted one may have the number of the one before. */
	id.ino_generation = generation_of(fd);
	if (!id.ino_generation)
		id.ino_generation = i + 1;
	close(fd);
	if (deleted)
		unlink(path);
	id.maj = major(st.st_dev);
	id.min = minor(st.st_dev);
	id.ino = st.st_ino;
	return objects_hold(objects, &id, path, strlen(path), 0, 4096, 8192);
}

/*
 * Files that cannot be loaded, requested with the other mappings of a sampled process, leave when
 * no process maps them: else any user fills the table of objects for good.
 */
TEST(test_failed_leave)
{
	uint64_t now_ns = time_now_ns();
	const uint64_t second_ns = 1000000000;
	char at[] = "/tmp/proftop-test-XXXXXX", path[64];
	struct object *objects[MANY];
	struct objects *table;
	struct loading l;
	uint32_t nr;

	assert_non_null(mkdtemp(at));
	assert_int_equal(objects_new(&table), 0);
	loading_begin(&l, table);
	for (uint32_t i = 0; i < MANY; i++) {
		objects[i] = map_file(table, at, i, i % 2);
		object_want(objects[i]);
	}
	nr = objects_nr(table);
	for (uint32_t i = 0; i < MANY; i++)
		wait_for(&l.cache, objects[i], now_ns, OBJECT_FAILED);
	assert_int_equal(atomic_load(&l.cache.nr_failed), MANY);
	assert_int_equal(l.cache.failed.nr + l.cache.nr_retries, MANY);
	assert_true(l.cache.failed.nr >= MANY / 2 && l.cache.nr_retries > 0);
	object_touch(objects[0], 1);
	object_touch(objects[1], 1);
	for (uint32_t i = 0; i < MANY - 2; i++)
		object_put(objects[i]);
	/* Each time all, but for some where it begins in the middle. */
	for (int i = 0; i < 3; i++)
		image_cache_work(&l.cache, now_ns += 2 * second_ns);
	/* Two had a sample, two are mapped. */
	assert_int_equal(atomic_load(&l.cache.nr_failed), 4);
	assert_int_equal(l.cache.failed.nr, 2);
	assert_int_equal(l.cache.nr_retries, 2);
	assert_int_equal(atomic_load(&objects[MANY - 1]->state), OBJECT_FAILED);
	/* Others have their ids. */
	for (uint32_t i = MANY; i < 2 * MANY - 4; i++)
		assert_int_equal(atomic_load(&map_file(table, at, i, true)->state), OBJECT_NEW);
	assert_int_equal(objects_nr(table), nr);
	loading_end(&l);
	objects_free(table);
	for (uint32_t i = 0; i < MANY; i += 2) {
		snprintf(path, sizeof(path), "%s/%u", at, i);
		unlink(path);
	}
	rmdir(at);
}

#define WANTED 20000U
/* Beyond the first that a load looks at. */
#define BUSY 15000U

/* Many files that are requested, and are no programs. */
static struct {
	char path[32];
	struct objects *table;
	struct object *objects[WANTED];
	struct loading l;
} many;

static int request_many(void **state)
{
	struct object_identity id = { .kind = OBJECT_FILE };
	struct stat st;
	int fd;

	strcpy(many.path, "/tmp/proftop-test-XXXXXX");
	fd = mkstemp(many.path);
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal(objects_new(&many.table), 0);
	loading_begin(&many.l, many.table);
	id.maj = major(st.st_dev);
	id.min = minor(st.st_dev);
	id.ino = st.st_ino;
	for (uint32_t i = 0; i < WANTED; i++) {
		id.ino_generation = i + 1;
		many.objects[i] =
			objects_hold(many.table, &id, many.path, strlen(many.path), 0, 4096, 8192);
		object_want(many.objects[i]);
		object_wait(many.objects[i]);
	}
	return 0;
}

static int end_many(void **state)
{
	loading_end(&many.l);
	objects_free(many.table);
	unlink(many.path);
	return 0;
}

/*
 * Of files that are requested by the ten thousand, each load looks at some only: it is linear. The
 * one with the most samples has its turn after a few others.
 */
TEST(test_many_wanted, request_many, end_many)
{
	struct image_cache *c = &many.l.cache;

	object_wait(many.objects[BUSY]);
	wait_for(c, many.objects[BUSY], time_now_ns(), OBJECT_FAILED);
	print_message("%lu loaded before\n", atomic_load(&c->nr_failed) - 1);
	assert_in_range(atomic_load(&c->nr_failed), 1, 64);
}

/* Many that no process maps any more are dropped in several calls: other work does not wait. */
TEST(test_many_gone, request_many, end_many)
{
	struct image_cache *c = &many.l.cache;
	uint64_t now_ns = time_now_ns();

	image_cache_work(c, now_ns);
	for (uint32_t i = 0; i < WANTED; i++)
		object_put(many.objects[i]);
	image_cache_work(c, now_ns);
	assert_in_range(c->open.nr, 1, WANTED / 3 * 2);
	for (int i = 0; i < 8; i++)
		image_cache_work(c, now_ns);
	assert_int_equal(c->open.nr, 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
