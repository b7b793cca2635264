// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables of lines. See src/codegen/source-position-table.cc and
 * src/baseline/bytecode-offset-iterator.h of V8.
 *
 * Runs on: a reader (making), sampler threads (look-up).
 */
#include "symbols/lang/v8table.h"

#include <string.h>

#include "symbols/base/search.h"

struct head {
	uint32_t nr_inlined, nr_entries;
};

/* ---- our table: head, calls, entries ---- */

static bool get_head(const uint8_t *table, uint32_t size, struct head *h)
{
	if (size < sizeof(*h))
		return false;
	memcpy(h, table, sizeof(*h));
	size -= sizeof(*h);
	return h->nr_inlined <= V8_INLINED_MAX &&
	       h->nr_inlined * sizeof(struct v8_inlined) <= size &&
	       (size - h->nr_inlined * sizeof(struct v8_inlined)) / sizeof(struct v8_entry) >=
		       h->nr_entries;
}

static struct v8_entry entry_at(const uint8_t *table, const struct head *h, uint32_t i)
{
	struct v8_entry e;

	memcpy(&e, table + sizeof(*h) + h->nr_inlined * sizeof(struct v8_inlined) + i * sizeof(e),
	       sizeof(e));
	return e;
}

bool v8table_find(const uint8_t *table, uint32_t size, uint32_t at, struct v8_entry *out)
{
	uint32_t after;
	struct head h;

	if (!get_head(table, size, &h))
		return false;
	after = search_split(h.nr_entries, i, entry_at(table, &h, i).at <= at);
	if (!after)
		return false;
	*out = entry_at(table, &h, after - 1);
	return true;
}

bool v8table_inlined(const uint8_t *table, uint32_t size, uint32_t i, struct v8_inlined *out)
{
	struct head h;

	if (!get_head(table, size, &h) || i >= h.nr_inlined)
		return false;
	memcpy(out, table + sizeof(h) + i * sizeof(*out), sizeof(*out));
	return true;
}

void v8table_translate(uint8_t *table, uint32_t size, const uint32_t *ids, uint32_t nr,
		       uint32_t none)
{
	uint8_t *at = table + sizeof(struct head);
	struct v8_inlined call;
	struct head h;

	if (!get_head(table, size, &h))
		return;
	for (uint32_t i = 0; i < h.nr_inlined; i++, at += sizeof(call)) {
		memcpy(&call, at, sizeof(call));
		call.code = call.code < nr ? ids[call.code] : none;
		memcpy(at, &call, sizeof(call));
	}
}

bool v8table_begin(struct v8_table *t, const struct v8_inlined *inlined, uint32_t nr)
{
	const struct head h = { .nr_inlined = nr };

	t->size = (uint32_t)(sizeof(h) + nr * sizeof(*inlined));
	t->last = (struct v8_entry){ .inlined = V8_NOT_INLINED };
	if (nr > V8_INLINED_MAX || t->size > t->room)
		return false;
	memcpy(t->bytes, &h, sizeof(h));
	if (nr)
		memcpy(t->bytes + sizeof(h), inlined, nr * sizeof(*inlined));
	return true;
}

bool v8table_add(struct v8_table *t, const struct v8_entry *e)
{
	const bool is_last = t->room - t->size < 2 * sizeof(*e);
	struct v8_entry entry = *e;
	struct head h;

	memcpy(&h, t->bytes, sizeof(h));
	if (h.nr_entries && e->line == t->last.line && e->inlined == t->last.inlined)
		return true;
	if (t->room - t->size < sizeof(*e))
		return false;
	/* Entries at one byte: the last one counts. */
	if (h.nr_entries && e->at <= t->last.at) {
		t->size -= (uint32_t)sizeof(*e);
		h.nr_entries--;
	}
	if (is_last) {
		entry.line = 0;
		entry.inlined = V8_NOT_INLINED;
	}
	memcpy(t->bytes + t->size, &entry, sizeof(entry));
	t->size += (uint32_t)sizeof(entry);
	t->last = entry;
	h.nr_entries++;
	memcpy(t->bytes, &h, sizeof(h));
	return !is_last;
}

/* ---- V8's positions ---- */

/* Read a number of groups of 7 bits, the lowest first; false: the table ends in it. */
static bool read_unsigned(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return true;
	}
	return false;
}

static bool read_signed(const uint8_t **at, const uint8_t *end, int64_t *value)
{
	uint64_t v;

	if (!read_unsigned(at, end, &v))
		return false;
	*value = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return true;
}

void v8table_positions(struct v8_positions *p, const uint8_t *bytes, uint32_t size)
{
	*p = (struct v8_positions){ .at = bytes, .end = bytes + size, .code = -1 };
}

void v8table_position(int64_t raw, uint32_t *position, uint32_t *inlined)
{
	/* Both numbers are one more; bit 0: not of JavaScript. */
	*position = raw & 1 ? UINT32_MAX : ((uint32_t)(raw >> 1) & ((1U << 30) - 1)) - 1;
	*inlined = (uint32_t)((uint64_t)raw >> 31 & 0xffff) - 1;
}

bool v8table_next_position(struct v8_positions *p)
{
	int64_t code, raw;

	if (!read_signed(&p->at, p->end, &code) || !read_signed(&p->at, p->end, &raw))
		return false;
	/* The sign says whether a statement begins. A sum that is too large is negative. */
	p->code = (int64_t)((uint64_t)p->code + (uint64_t)(code < 0 ? -(code + 1) : code));
	p->raw = (int64_t)((uint64_t)p->raw + (uint64_t)raw);
	v8table_position(p->raw, &p->position, &p->inlined);
	return p->code >= -1 && p->code < INT32_MAX;
}

/* ---- V8's baseline code ---- */

/*
 * Each bytecode, two digits: its bytes, and how many of these are operands of one byte that a
 * prefix makes two or four.
 */
static const char sizes_10[] =
	"1010101010213243545263211021101010101021434321212132212121101010203232324321"
	"2143432143433143433232324343434343532132323232323232323232323232323232323232"
	"3232323232212121211010102121215454435465543243545452634242545432323232323232"
	"3221212121104242102142104232422132323232101010322121212121212121212121212121"
	"2121212121212121432132325421101010102110102143544343102121101010101010101010"
	"1010101010101010";
static const char sizes_11[] =
	"1010101010213243545263211021101010101021434321212132212121101010203232324321"
	"2143432143433143433232324343435343533232323232323232323232323232323232323232"
	"3232323221212121101010212121435454435465543243545452634242545432323232323232"
	"3221212121105242102142104232422132323232101010432121212121212121212121212121"
	"2121212121212121432132325421101010102110102143544343102121101010101010101010"
	"1010101010101010";

#define WIDE 0
/* Then EXTRA_WIDE; the same for debuggers. */
#define DEBUG_WIDE	 2
#define DEBUG_EXTRA_WIDE 3

uint32_t v8table_bytecode_size(uint32_t major, const uint8_t *code, uint32_t room)
{
	const char *sizes = major == 10 ? sizes_10 : sizes_11;
	uint32_t scale = 1, prefix = 0;

	if (room > 1 && code[0] <= DEBUG_EXTRA_WIDE) {
		scale = code[0] == WIDE || code[0] == DEBUG_WIDE ? 2 : 4;
		prefix = 1;
	}
	if (room <= prefix || code[prefix] >= (sizeof(sizes_11) - 1) / 2)
		return 0;
	sizes += (size_t)2 * code[prefix];
	return prefix + (uint32_t)(sizes[0] - '0') + (uint32_t)(sizes[1] - '0') * (scale - 1);
}

bool v8table_baseline(struct v8_baseline *b, uint32_t major, const uint8_t *map, uint32_t map_size,
		      const uint8_t *bytecodes, uint32_t size)
{
	uint64_t pc;

	*b = (struct v8_baseline){ .at = map, .end = map + map_size, .bytecodes = bytecodes };
	b->size = size;
	b->major = major;
	if (!read_unsigned(&b->at, b->end, &pc) || pc > INT32_MAX)
		return false;
	b->next_pc = (uint32_t)pc;
	return true;
}

bool v8table_next_bytecode(struct v8_baseline *b)
{
	uint64_t pc;
	uint32_t size;

	if (b->next_bytecode >= b->size || !read_unsigned(&b->at, b->end, &pc) ||
	    pc > INT32_MAX - b->next_pc)
		return false;
	size = v8table_bytecode_size(b->major, b->bytecodes + b->next_bytecode,
				     b->size - b->next_bytecode);
	if (!size)
		return false;
	b->pc = b->next_pc;
	b->next_pc += (uint32_t)pc;
	b->bytecode = b->next_bytecode;
	b->next_bytecode += size;
	return true;
}

bool v8table_fits(const struct v8_baseline *b)
{
	return b->at == b->end && b->next_bytecode == b->size;
}
