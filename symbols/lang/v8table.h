/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of the code of a function of JavaScript, by the bytes of its bytecodes or instructions,
 * with the functions that were inlined; and the tables of V8 that they are made from.
 *
 * Pure; hostile bytes; one pass over each table.
 */
#ifndef SYMBOLS_LANG_V8TABLE_H
#define SYMBOLS_LANG_V8TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define V8_TABLE_MAX   (48U << 10) /* bytes */
#define V8_INLINED_MAX 48U
#define V8_NOT_INLINED UINT32_MAX

/* From this byte of the code on. */
struct v8_entry {
	uint32_t at;
	uint32_t line;	  /* 0: not known */
	uint32_t inlined; /* index of the call that was inlined; V8_NOT_INLINED */
};

/* A call that was inlined. */
struct v8_inlined {
	uint32_t code;	/* id of the function that was called */
	uint32_t line;	/* of the call */
	uint32_t outer; /* the call that this one is in; V8_NOT_INLINED */
};

/* Find the last entry at or before @at; false: there is none. */
bool v8table_find(const uint8_t *table, uint32_t size, uint32_t at, struct v8_entry *out);
/* Get call @i; false: there is none. */
bool v8table_inlined(const uint8_t *table, uint32_t size, uint32_t i, struct v8_inlined *out);

/*
 * Replace each id of a function that was inlined by its @ids, of @nr; by @none for others. Any
 * bytes.
 */
void v8table_translate(uint8_t *table, uint32_t size, const uint32_t *ids, uint32_t nr,
		       uint32_t none);

/* A table in the making, in the caller's bytes. */
struct v8_table {
	uint8_t *bytes;
	uint32_t room, size;
	struct v8_entry last;
};

/* Begin a table with the calls that were inlined. */
bool v8table_begin(struct v8_table *t, const struct v8_inlined *inlined, uint32_t nr);
/* Append an entry; false: it does not fit, or the next one will not: no line is known from it on.
 */
bool v8table_add(struct v8_table *t, const struct v8_entry *e);

/* V8's table of positions: of bytecodes, or of instructions. */
struct v8_positions {
	const uint8_t *at, *end;
	int64_t code;	   /* byte */
	int64_t raw;	   /* the position as V8 encodes it */
	uint32_t position; /* in the text; UINT32_MAX: none */
	uint32_t inlined;  /* as in struct v8_entry */
};

void v8table_positions(struct v8_positions *p, const uint8_t *bytes, uint32_t size);
bool v8table_next_position(struct v8_positions *p);
/* Decode a position. */
void v8table_position(int64_t raw, uint32_t *position, uint32_t *inlined);

/* The bytes of the bytecode at @code, of which @room are there; 0: unknown. @major: of V8. */
uint32_t v8table_bytecode_size(uint32_t major, const uint8_t *code, uint32_t room);

/*
 * From bytes of baseline code to its bytecodes: a number of bytes for each, in order.
 */
struct v8_baseline {
	const uint8_t *at, *end, *bytecodes;
	uint32_t size, major;
	uint32_t pc, next_pc; /* the code of a bytecode: first byte, and the one behind it */
	uint32_t bytecode, next_bytecode;
};

/* Begin in front of the first bytecode. */
bool v8table_baseline(struct v8_baseline *b, uint32_t major, const uint8_t *map, uint32_t map_size,
		      const uint8_t *bytecodes, uint32_t size);
/* Go to the next bytecode. False: the end. */
bool v8table_next_bytecode(struct v8_baseline *b);
/* Return whether both tables end at the same bytecode. Otherwise no line is true. */
bool v8table_fits(const struct v8_baseline *b);

#endif
