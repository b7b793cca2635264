// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of the methods of a JVM. Runs on: a helper.
 */
#include "symbols/jit/hotspot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SYMBOL_MAX (HOTSPOT_NAME_MAX / 2 - 2)

/* Read a Symbol: its text with '/' as '.', NUL added. The length or -errno. */
static int read_symbol(const struct vmstructs *v, struct remote *r, uint64_t symbol, char *text)
{
	uint16_t length;
	int rc = remote_read_u16(r, symbol + v->symbol_length, &length);

	if (rc)
		return rc;
	length = (uint16_t)MIN(length, SYMBOL_MAX);
	rc = remote_read(r, symbol + v->symbol_body, text, length);
	if (rc)
		return rc;
	for (uint16_t i = 0; i < length; i++)
		text[i] = (char)(text[i] == '/' ? '.' : text[i]);
	text[length] = '\0';
	return length ? length : -EBADMSG;
}

int hotspot_constant(const struct hotspot *h, struct remote *r, uint64_t pool, uint16_t index,
		     char *text, size_t size)
{
	char whole[SYMBOL_MAX + 1];
	uint64_t symbol;
	int rc = remote_read_u64(r, pool + h->vm.pool_size + 8ULL * index, &symbol);

	if (!rc)
		rc = read_symbol(&h->vm, r, symbol & ~1ULL, whole);
	if (rc < 0)
		return rc;
	return snprintf(text, size, "%s", whole);
}

/* Read the name of the class with the constants @pool. Its length or -errno. */
static int read_class(const struct vmstructs *v, struct remote *r, uint64_t pool, char *text)
{
	uint64_t holder, symbol;
	int rc = remote_read_u64(r, pool + v->pool_holder, &holder);

	if (!rc)
		rc = remote_read_u64(r, holder + v->klass_name, &symbol);
	return rc ? rc : read_symbol(v, r, symbol, text);
}

int hotspot_method(const struct hotspot *h, struct remote *r, uint64_t method,
		   char name[static HOTSPOT_NAME_MAX], uint64_t *code, uint32_t *code_size)
{
	const struct vmstructs *v = &h->vm;
	char klass_text[SYMBOL_MAX + 1], method_text[SYMBOL_MAX + 1];
	uint64_t constant, pool;
	bool missed = false;
	uint16_t index, size;
	int rc;

	if (!method || method % 8)
		return -EBADMSG;
	rc = remote_read_u64(r, method + v->method_const, &constant);
	if (!rc)
		rc = remote_read_u64(r, constant + v->const_pool, &pool);
	if (!rc)
		rc = remote_read_u16(r, constant + v->const_name, &index);
	if (!rc)
		rc = remote_read_u16(r, constant + v->const_code_size, &size);
	if (rc)
		return rc;
	rc = read_class(v, r, pool, klass_text);
	if (rc < 0 && !r->missed)
		return rc;
	remote_begin_part(r, &missed);
	rc = hotspot_constant(h, r, pool, index, method_text, sizeof(method_text));
	if (remote_end_parts(r, missed))
		return -EAGAIN;
	if (rc < 0)
		return rc;
	snprintf(name, HOTSPOT_NAME_MAX, "%s.%s", klass_text, method_text);
	*code = constant + v->const_method_size;
	*code_size = size;
	return 0;
}
