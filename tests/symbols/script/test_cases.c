// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads of real runtimes, as tests/tools/langcase kept them (tests/cases): the layout of each
 * version is found, and the functions with their lines are the same, without the runtime.
 */
#include "tests/prelude.h"

#include <dirent.h>
#include <errno.h>

#include "symbols/script/php.c"
#include "tests/langcase.h"

#define CASES	  "tests/cases"
#define CASES_MIN 170
#define CASE_MAX  (200U << 10) /* bytes */

static struct langcase *c;
static char frames[LANGCASE_TEXT];

#define LINE 64U /* blocks begin and end with one */

/* Copy the bytes at @addr, in one line; the ones that were kept are first, then zeros. */
static bool copy_line(uint64_t addr, uint8_t *out, size_t size)
{
	for (uint32_t i = 0; i < c->nr_blocks; i++) {
		const struct langcase_block *b = &c->blocks[i];

		if (addr - b->addr >= b->size || size > b->size - (addr - b->addr))
			continue;
		if (b->at)
			memcpy(out, c->bytes + b->at + (addr - b->addr), size);
		else
			memset(out, 0, size);
		return true;
	}
	return false;
}

/* In place of libc's: the memory of the case. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local,
			 const struct iovec *remote, unsigned long nr_remote, unsigned long flags)
{
	uint64_t addr = (uintptr_t)remote->iov_base;
	size_t left = remote->iov_len, size;
	uint8_t *out = local->iov_base;

	(void)flags;
	assert_true(pid == 1 && nr_local == 1 && nr_remote == 1);
	for (; left; left -= size, addr += size, out += size) {
		size = MIN(left, LINE - addr % LINE);
		if (!copy_line(addr, out, size)) {
			errno = EFAULT;
			return -1;
		}
	}
	return (ssize_t)remote->iov_len;
}

static void add_range(struct lang_range *r, uint32_t *nr, uint32_t max, const char *values)
{
	assert_true(*nr < max);
	assert_int_equal(sscanf(values, "%" SCNx64 " %" SCNx64, &r[*nr].start, &r[*nr].end), 2);
	(*nr)++;
}

static void set_api(const char *api)
{
	for (uint32_t i = 0; php_version(i); i++)
		if (!strcmp(php_version(i)->api, api))
			c->file.php = i + 1;
}

/* A number of V8 by the name of its symbol: "v8dbg_frametype_InterpretedFrame 13". */
static void set_number(char *text)
{
	char *space = strchr(text, ' ');
	enum v8_number i;

	assert_non_null(space);
	*space = 0;
	i = v8layout_number(text);
	assert_true(i < V8_NR);
	c->file.v8.number[i] = (int16_t)atoi(space + 1);
}

static void set_sizes(const char *hex)
{
	unsigned int byte;

	for (uint32_t i = 0; i < sizeof(c->file.v8.sizes); i++) {
		assert_int_equal(sscanf(hex + 2UL * i, "%2x", &byte), 1);
		c->file.v8.sizes[i] = (uint8_t)byte;
	}
}

/* Take a line, and the bytes behind it; returns their end. */
static const uint8_t *take(const char *name, char *value, const uint8_t *at)
{
	struct langcase_block *b = &c->blocks[c->nr_blocks];

	if (!strcmp(name, "eval"))
		add_range(c->file.eval, &c->file.nr_eval, LANG_EVAL_MAX, value);
	else if (!strcmp(name, "main"))
		add_range(c->file.main, &c->file.nr_main, LANG_MAIN_MAX, value);
	else if (!strcmp(name, "number"))
		set_number(value);
	else if (!strcmp(name, "sizes"))
		set_sizes(value);
	else if (!strcmp(name, "api"))
		set_api(value);
	else if (!strcmp(name, "frame"))
		snprintf(c->frames + strlen(c->frames), LANGCASE_TEXT - strlen(c->frames), "%s\n",
			 value);
	else if (strcmp(name, "memory") != 0 && strcmp(name, "zero") != 0)
		langcase_number(c, name, strtoull(value, NULL, 16));
	else {
		assert_int_equal(sscanf(value, "%" SCNx64 " %x", &b->addr, &b->size), 2);
		c->nr_blocks++;
		if (*name == 'z')
			return at;
		b->at = (uint32_t)(at - c->bytes);
		at += b->size + 1;
	}
	return at;
}

static void load(const char *path)
{
	const uint8_t *at, *end;
	FILE *f = fopen(path, "r");
	size_t size;

	assert_non_null(f);
	memset(c, 0, sizeof(*c));
	c->bytes = malloc(CASE_MAX + 1);
	for (uint32_t i = 0; i < V8_NR; i++)
		c->file.v8.number[i] = -1;
	size = fread(c->bytes, 1, CASE_MAX + 1, f);
	fclose(f);
	assert_true(size && size <= CASE_MAX);
	for (at = c->bytes, end = at + size; at < end;) {
		char line[1024], *space;
		const uint8_t *next = memchr(at, '\n', (size_t)(end - at));

		assert_true(next && next - at < (ptrdiff_t)sizeof(line));
		snprintf(line, sizeof(line), "%.*s", (int)(next - at), (const char *)at);
		space = strchr(line, ' ');
		assert_non_null(space);
		*space = 0;
		at = take(line, space + 1, next + 1);
	}
	assert_int_equal(at - end, 0);
}

static pid_t pid = 1;

static void copy_stack(void)
{
	struct iovec local, remote;

	local = (struct iovec){ c->stack, c->sample.stack_size };
	remote = (struct iovec){ (void *)(uintptr_t)c->sample.sp, c->sample.stack_size };
	assert_true(c->sample.stack_size <= sizeof(c->stack));
	assert_true(process_vm_readv(pid, &local, 1, &remote, 1, 0) > 0);
}

static void check(const char *path)
{
	load(path);
	copy_stack();
	langcase_describe(c, pid);
	if (c->process.reason)
		print_message("%s: %s\n", path, c->process.reason);
	assert_null(c->process.reason);
	if (langcase_chain(c, &pid, frames) != LANG_OK || strcmp(frames, c->frames) != 0)
		print_message("%s: %s, and not\n%s\nbut\n%s\n", path,
			      lang_status_name(c->chain.none), c->frames, frames);
	assert_int_equal(c->chain.none, LANG_OK);
	assert_string_equal(frames, c->frames);
	free(c->bytes);
}

TEST(test_cases)
{
	struct dirent **list;
	char path[512];
	int nr = scandir(CASES, &list, NULL, alphasort), nr_cases = 0;

	assert_true(nr > 0);
	c = calloc(1, sizeof(*c));
	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), CASES "/%s", list[i]->d_name);
		if (list[i]->d_name[0] != '.') {
			check(path);
			nr_cases++;
		}
		free(list[i]);
	}
	free(list);
	free(c);
	assert_true(nr_cases >= CASES_MIN);
}

/*
 * Behind the instruction that makes a frame its words are of earlier functions, return addresses
 * among them. In this case it is 56 bytes before, and 8 bytes above is one.
 */
TEST(test_beam_frame_made)
{
	c = calloc(1, sizeof(*c));
	load(CASES "/erlang-29.1.2-sid-plain-1");
	copy_stack();
	langcase_describe(c, pid);
	assert_int_equal(langcase_chain(c, &pid, frames), LANG_OK);
	assert_false(c->chain.broken);
	memset(&c->reader, 0, sizeof(c->reader));
	c->sample.pc -= 56;
	memcpy(c->stack, c->stack + 8, 8);
	assert_int_equal(langcase_chain(c, &pid, frames), LANG_OK);
	assert_true(c->chain.broken);
	free(c->bytes);
	free(c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
