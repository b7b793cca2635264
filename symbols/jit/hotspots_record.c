// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Encode and decode code of JVMs. Runs on: the loader; replay.
 */
#include "symbols/jit/hotspots_record.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lang/code_log.h"
#include "symbols/lang/lang.h"

#define NO_FILE "-" /* a recorded function has a file */

/* A frame of a chain; the texts follow. */
struct kept_frame {
	uint32_t line;
	uint16_t name_size, file_size;
};

static void keep(const struct hotspots_keeper *k, const struct code_key *key, const char *name,
		 const void *table, size_t size)
{
	const struct code_text text = {
		.language = LANG_JAVA,
		.name_size = (uint16_t)MIN(strlen(name), CODES_TEXT_MAX),
		.file_size = sizeof(NO_FILE) - 1,
		.table_size = (uint32_t)size,
		.name = name,
		.file = NO_FILE,
		.table = table,
	};

	if (*name)
		code_log_add(k->log, key, &text);
}

static struct hotspots_kept begin(const struct hotspots_keeper *k, enum hotspots_kept_kind kind)
{
	return (struct hotspots_kept){
		.time_ns = k->time_ns,
		.memory = k->memory,
		.pid = k->pid,
		.kind = kind,
		.call_return = k->call_return,
	};
}

static struct code_key key_of(const struct hotspots_keeper *k, const struct hotspots_kept *kept,
			      uint64_t stamp)
{
	return (struct code_key){ .process = (uint32_t)k->process,
				  .address = kept->start,
				  .stamp = stamp << 2 | kept->kind };
}

void hotspots_keep_code(const struct hotspots_keeper *k, const struct hotspot_blob *b)
{
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_CODE);
	struct code_key key;

	if (!k->log || !b->name)
		return;
	kept.memory = kept.start = b->start;
	kept.end = b->end;
	kept.deopt = b->deopt;
	kept.compile_id = b->compile_id;
	kept.frame_words = b->frame_words;
	kept.complete = b->complete;
	kept.code_kind = b->kind;
	kept.flags = (b->retired ? HOTSPOTS_KEPT_RETIRED : 0) |
		     (b->inlines ? HOTSPOTS_KEPT_INLINES : 0) |
		     (b->blind ? HOTSPOTS_KEPT_BLIND : 0) |
		     (k->untried ? HOTSPOTS_KEPT_UNTRIED : 0);
	key = key_of(k, &kept,
		     hash_u64(b->compile_id ^ b->method << 8 ^ b->end << 1 ^ (uint64_t)b->retired));
	keep(k, &key, b->name, &kept, sizeof(kept));
}

void hotspots_keep_method(const struct hotspots_keeper *k, uint64_t method, const char *name,
			  uint64_t bytecodes, uint32_t size)
{
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_METHOD);
	struct code_key key;

	if (!k->log)
		return;
	kept.start = method;
	kept.bytecodes = bytecodes;
	kept.bytecodes_size = size;
	key = key_of(k, &kept, 0);
	keep(k, &key, name, &kept, sizeof(kept));
}

void hotspots_keep_chain(const struct hotspots_keeper *k, const struct hotspot_job_chain *chain)
{
	const struct hotspot_job_frame *frames = chain->frames;
	const uint32_t nr = chain->nr;
	struct hotspots_kept kept = begin(k, HOTSPOTS_KEPT_CHAIN);
	uint8_t table[CODES_TABLE_MAX], *at = table + sizeof(kept);
	struct code_key key;

	if (!k->log)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		struct kept_frame f = { .line = frames[i].line };
		size_t name = strlen(frames[i].name), file = strlen(frames[i].file);

		if (sizeof(f) + name + file > (size_t)(table + sizeof(table) - at))
			return;
		f.name_size = (uint16_t)name;
		f.file_size = (uint16_t)file;
		at = mempcpy(at, &f, sizeof(f));
		at = mempcpy(at, frames[i].name, name);
		at = mempcpy(at, frames[i].file, file);
	}
	kept.start = chain->addr;
	kept.layer = chain->layer;
	kept.flags = chain->exact ? HOTSPOTS_KEPT_EXACT : 0;
	kept.nr = nr;
	memcpy(table, &kept, sizeof(kept));
	key = key_of(k, &kept, chain->layer);
	keep(k, &key, nr ? frames[nr - 1].name : "", table, (size_t)(at - table));
}

static bool is_code(const struct hotspots_kept *k)
{
	return k->start < k->end && k->code_kind <= HOTSPOT_INTERPRETER && k->memory == k->start &&
	       k->end - k->start <= JITCODE_SIZE_MAX && k->frame_words < 65536;
}

bool hotspots_kept(const struct code_text *text, struct hotspots_kept *out)
{
	if (text->table_size < sizeof(*out))
		return false;
	memcpy(out, text->table, sizeof(*out));
	switch (out->kind) {
	case HOTSPOTS_KEPT_CODE:
		return is_code(out);
	case HOTSPOTS_KEPT_METHOD:
		return out->start && out->start % 8 == 0 && out->bytecodes_size <= UINT16_MAX;
	case HOTSPOTS_KEPT_CHAIN:
		return out->nr && out->nr <= HOTSPOT_FRAMES_MAX && out->layer < JITCODE_LAYERS;
	default:
		return false;
	}
}

size_t hotspots_kept_size(const struct code_text *text, const struct hotspots_kept *kept)
{
	return kept->nr * (sizeof(struct hotspot_job_frame) + 2) + text->table_size;
}

struct hotspot_job_frame *hotspots_kept_frames(const struct code_text *text,
					       const struct hotspots_kept *kept)
{
	struct hotspot_job_frame *frames = malloc(hotspots_kept_size(text, kept));
	const uint8_t *at = text->table + sizeof(*kept), *end = text->table + text->table_size;
	char *to = (char *)(frames + kept->nr);

	for (uint32_t i = 0; frames && i < kept->nr; i++) {
		struct kept_frame f = { .line = 0 };
		bool fits = (size_t)(end - at) >= sizeof(f);

		if (fits) {
			memcpy(&f, at, sizeof(f));
			at += sizeof(f);
			fits = (size_t)(end - at) >= (size_t)f.name_size + f.file_size;
		}
		if (!fits) {
			free(frames);
			return NULL;
		}
		frames[i] = (struct hotspot_job_frame){ .name = to, .line = f.line };
		to = mempcpy(to, at, f.name_size);
		*to++ = '\0';
		frames[i].file = to;
		to = mempcpy(to, at + f.name_size, f.file_size);
		*to++ = '\0';
		at += f.name_size + f.file_size;
	}
	return frames;
}
